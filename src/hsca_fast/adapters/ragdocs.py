"""Search results compressed, in the shape of ragdocs' tool `query_documents_compressed`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from hsca_fast.retrieval.compress import ChunkResult, compress
from hsca_fast.vectors.arrays import as_count, stack_rows


def query_documents_compressed(
    results: Sequence[Mapping[str, Any] | Any],
    embeddings: npt.ArrayLike | Sequence[Any] | None = None,
    *,
    top_n: int = 5,
    min_score: float = 0.3,
    similarity_threshold: float = 0.85,
    answer: str = "",
) -> dict[str, Any]:
    """The results that are relevant and do not repeat each other, as they were, and what became of the others.

    Parameters
    ----------
    results
        Anything with a `score`, as a key or as an attribute.
    embeddings
        One row a result; the results' `embedding` when not given.
    top_n, min_score, similarity_threshold
        1 to 100, 0 to 1, and 0.5 to 1, as the tool's schema has them.
    answer
        Handed through.

    Returns
    -------
    dict
        ``answer``, ``results`` and ``compression_stats``.

    Examples
    --------
    >>> found = [{"chunk_id": "a", "score": 0.9}, {"chunk_id": "b", "score": 0.8}, {"chunk_id": "c", "score": 0.1}]
    >>> reply = query_documents_compressed(found, [[1.0, 0.0], [0.99, 0.1], [0.0, 1.0]])
    >>> reply["results"], reply["compression_stats"]["after_threshold"], reply["compression_stats"]["clusters_merged"]
    ([{'chunk_id': 'a', 'score': 0.9}], 2, 1)
    """
    top_n = as_count(top_n, "top_n", least=1)
    if top_n > 100:
        raise ValueError(f"top_n must be at most 100, not {top_n}")
    if embeddings is None:
        embeddings = stack_rows([_field(result, "embedding", i) for i, result in enumerate(results)], "embeddings")
    elif isinstance(embeddings, (list, tuple)):
        embeddings = stack_rows(list(embeddings), "embeddings")
    # The id is the row, by which what stays is found again.
    rows = [ChunkResult(str(i), "", _field(result, "score", i), "", "", "") for i, result in enumerate(results)]
    kept, stats = compress(
        rows, embeddings, min_score=min_score, similarity_threshold=similarity_threshold, top_n=top_n
    )
    names = ("original_count", "after_threshold", "after_dedup", "clusters_merged")
    return {
        "answer": answer,
        "results": [results[int(each.chunk_id)] for each in kept],
        "compression_stats": {name: getattr(stats, name) for name in names},
    }


def _field(result: Any, name: str, row: int) -> Any:
    value = result.get(name) if isinstance(result, Mapping) else getattr(result, name, None)
    if value is None:
        raise ValueError(f"results[{row}] has no {name}")
    return value
