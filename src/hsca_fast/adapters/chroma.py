"""Chroma: our embedders as an embedding function, its collections as a `SemanticIndex`, its query results ranked again."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from hsca_fast.adapters.frontends import require

require("chroma")

from chromadb.api.types import Documents, EmbeddingFunction, Embeddings
from chromadb.utils.embedding_functions import known_embedding_functions, register_embedding_function

from hsca_fast.adapters.embedders import NAMES, named_embedder
from hsca_fast.adapters.selection import Candidates, SelectionOptions, cosines, select
from hsca_fast.vectors.arrays import as_count, as_rows
from hsca_fast.vectors.embedder import Embedder, Progress
from hsca_fast.vectors.guard import ModelMismatchError, ModelStamp, check_model

if TYPE_CHECKING:
    from chromadb import Collection

    from hsca_fast.memory.index import SemanticIndex

# Embedders that are no names, by fingerprint: Chroma builds a function from its configuration even to make a collection.
_GIVEN: dict[str, Embedder] = {}


def _function_name(embedder: str) -> str:
    """By the embedder's name or fingerprint."""
    return "hsca_fast" if embedder == "default" else f"hsca_fast_{embedder}"


@register_embedding_function
class HSCAEmbeddingFunction(EmbeddingFunction[Documents]):
    """An embedder as Chroma wants it. A collection remembers which, and is not opened with another.

    Parameters
    ----------
    embedder
        "default", "minilm", or an embedder. A collection that was made with an embedder of your own is opened again after the
        same has been given to an `HSCAEmbeddingFunction` in the process.

    Examples
    --------
    >>> function = HSCAEmbeddingFunction()
    >>> function(["a lamp"])[0].shape, function.get_config()["model"]
    ((256,), 'hsca-static-minilm-256')
    """

    def __init__(self, embedder: str | Embedder = "default") -> None:
        self._name = embedder if isinstance(embedder, str) else None
        self.embedder = named_embedder(embedder) if isinstance(embedder, str) else embedder
        self.stamp = ModelStamp.of(self.embedder)
        if self._name is None:
            _GIVEN[self.stamp.fingerprint] = self.embedder
        # Of a function that is given, Chroma compares nothing but the name, so that each model needs its own.
        own_name = _function_name(self._name or self.stamp.fingerprint)
        known_embedding_functions[own_name] = HSCAEmbeddingFunction
        self.name = partial(str, own_name)  # type: ignore[method-assign]

    def __call__(self, input: Documents) -> Embeddings:
        """One vector a document."""
        return list(self.embedder.embed_documents(input))

    def embed_query(self, input: Documents) -> Embeddings:
        """One vector a question."""
        return [self.embedder.embed_query(text) for text in input]

    @staticmethod
    def name() -> str:
        """The name that collections remember; a function of another embedder has its own."""
        return _function_name("default")

    def default_space(self) -> Literal["cosine"]:
        """Vectors are compared by cosine."""
        return "cosine"

    def get_config(self) -> dict[str, Any]:
        """The embedder's name, and the model's stamp."""
        return {
            "embedder": self._name,
            "model": self.stamp.name,
            "dim": self.stamp.dim,
            "fingerprint": self.stamp.fingerprint,
        }

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> HSCAEmbeddingFunction:
        """The function of a configuration.

        Raises
        ------
        ModelMismatchError
            The embedder of that name has other weights today.
        """
        HSCAEmbeddingFunction.validate_config(config)
        stored = _stamp_of(config)
        if config["embedder"] is None:
            if stored.fingerprint not in _GIVEN:
                raise ValueError(f"the collection's embedder is {stored}: give it to HSCAEmbeddingFunction first")
            return HSCAEmbeddingFunction(_GIVEN[stored.fingerprint])
        function = HSCAEmbeddingFunction(config["embedder"])
        check_model(stored, function.stamp, strict=True)
        return function

    @staticmethod
    def validate_config(config: dict[str, Any]) -> None:
        """Refuses what `get_config` cannot have written."""
        missing = {"embedder", "model", "dim", "fingerprint"} - set(config)
        if missing:
            raise ValueError(
                f"the configuration of an hsca_fast embedding function has no {', '.join(sorted(missing))}"
            )
        if config["embedder"] is not None and config["embedder"] not in NAMES:
            raise ValueError(f"embedder must be one of {', '.join(NAMES)}, not {config['embedder']!r}")

    def validate_config_update(self, old_config: dict[str, Any], new_config: dict[str, Any]) -> None:
        """A collection's model does not change."""
        check_model(_stamp_of(old_config), _stamp_of(new_config), strict=True)


for _embedder in NAMES:
    known_embedding_functions[_function_name(_embedder)] = HSCAEmbeddingFunction


def _stamp_of(config: Mapping[str, Any]) -> ModelStamp:
    return ModelStamp(config["model"], config["dim"], config["fingerprint"])


Space = Literal["cosine", "ip", "l2"]
_PER_RECORD = ("ids", "embeddings", "documents", "uris", "data", "metadatas", "distances")


def rerank(
    results: Mapping[str, Any],
    queries: Sequence[str] | None = None,
    *,
    query_embeddings: npt.ArrayLike | None = None,
    embedder: Embedder | None = None,
    space: Space | None = None,
    min_score: float | None = None,
    similarity_threshold: float | None = 0.85,
    lambda_: float | None = None,
    top_n: int | None = None,
    max_tokens: int | None = None,
) -> dict[str, Any]:
    """What `collection.query` returned, selected and in a new order, in the same shape.

    A record's vector is in the results if the query asked for `include=["embeddings", ...]`; else `embedder` makes it of the
    document. The result has one more key, `hsca`: the breakdown of each record.

    Parameters
    ----------
    results
        Of `collection.query`, with documents if they are to be embedded or counted.
    queries, query_embeddings
        What was asked, one for each list of the results; records are scored by their cosine to it.
    space
        The collection's: scores come from `distances` instead ("l2" is Chroma's squared distance, of vectors of length 1).
    min_score, similarity_threshold, lambda_, top_n, max_tokens
        As of `SelectionOptions`.
    """
    options = SelectionOptions(min_score, similarity_threshold, lambda_, top_n, max_tokens)
    lists = results.get("ids")
    if lists is None or any(isinstance(ids, str) for ids in lists):
        raise ValueError("results must be what collection.query returned: a list of ids for each question")
    for name, given in (("queries", queries), ("query_embeddings", query_embeddings)):
        if given is not None and len(np.asarray(given, dtype=object)) != len(lists):
            raise ValueError(
                f"{name} has {len(np.asarray(given, dtype=object))} elements for {len(lists)} result lists"
            )
    asked = [None] * len(lists) if query_embeddings is None else [*as_rows(query_embeddings, "query_embeddings")]
    chosen = []
    for q, ids in enumerate(lists):
        candidates = Candidates(
            f"results[{q}]" if len(lists) > 1 else "results",
            _column(results, "documents", q, len(ids)),
            _column(results, "embeddings", q, len(ids)),
            _similarities(results, q, len(ids), space),
        )
        query = None if queries is None else queries[q]
        chosen.append(select(candidates, options, query=query, query_vector=asked[q], embedder=embedder))
    out: dict[str, Any] = dict(results)
    for name in _PER_RECORD:
        columns = results.get(name)
        if columns is not None:
            out[name] = [
                [column[row] for row in each.rows.tolist()] for column, each in zip(columns, chosen, strict=True)
            ]
    out["hsca"] = [each.breakdowns() for each in chosen]
    return out


def _column(results: Mapping[str, Any], name: str, q: int, n: int) -> Sequence[Any]:
    columns = results.get(name)
    return [None] * n if columns is None else [*columns[q]]


def _similarities(results: Mapping[str, Any], q: int, n: int, space: Space | None) -> Sequence[float | None]:
    if space is None:
        return [None] * n
    if space not in ("cosine", "ip", "l2"):
        raise ValueError(f"space must be 'cosine', 'ip' or 'l2', not {space!r}")
    distances = results.get("distances")
    if distances is None:
        raise ValueError('the results have no distances: query with include=["distances", ...], or leave space out')
    half = 0.5 if space == "l2" else 1.0
    return [1.0 - half * float(distance) for distance in distances[q]]


def import_collection(
    collection: Collection,
    path: str | os.PathLike[str],
    *,
    embedder: Embedder,
    batch_size: int = 1000,
    verify: int = 32,
    progress: Progress | None = None,
) -> SemanticIndex:
    """A collection's records and vectors as a `SemanticIndex`, which is returned open.

    Vectors are kept as they are and the index is stamped with `embedder`. A record's id is its `turn_id`. An import that was
    cut off is finished by another call: what is there already is left as it is, with a warning if Chroma has another document
    or other metadata for it by now. What was deleted from the collection since then stays in the index.

    Parameters
    ----------
    embedder
        The model that made the vectors. It is checked: by the fingerprint if the collection has an `HSCAEmbeddingFunction`, and
        by embedding up to `verify` documents again.
    verify
        How many; 0 for an embedder that cannot run here.

    Raises
    ------
    ModelMismatchError
        The vectors are of another model. Nothing has been written.
    ValueError
        A record has no document or no vector; the message names it.
    """
    from hsca_fast.memory.index import SemanticIndex

    _check_collection(collection, embedder, as_count(verify, "verify"))
    index = SemanticIndex.open(path, embedder=embedder)
    try:
        done, total = 0, collection.count()
        changed: list[str] = []
        for ids, documents, metadatas, vectors in _pages(collection, as_count(batch_size, "batch_size", least=1)):
            own = [_record_id(collection, each) for each in ids]
            begun = index.last_sequence
            index.append(documents, turn_id=ids, metadata=metadatas, ids=own, embeddings=vectors, on_conflict="skip")
            if index.last_sequence < begun + len(ids):  # some were there already
                records = zip(ids, documents, metadatas, index.get_many(own), strict=True)
                changed += [id_ for id_, text, extra, found in records if (text, extra) != (found.text, found.metadata)]
            done += len(ids)
            if progress is not None:
                progress(done, total)
        if changed:
            warnings.warn(
                f"{len(changed)} records of {collection.name} have changed since they were imported, the first is "
                f"{changed[0]!r}: the index has them as they were; import into a new folder",
                stacklevel=2,
            )
    except BaseException:
        index.close()
        raise
    return index


def _record_id(collection: Collection, record: str) -> str:
    """The same for the same record, so that a second import finds what the first has done."""
    return hashlib.blake2b(f"{collection.id}/{record}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _pages(
    collection: Collection, size: int
) -> Iterator[tuple[list[str], list[str], list[dict[str, Any]], npt.NDArray[np.float32]]]:
    for offset in range(0, collection.count(), size):
        page = collection.get(limit=size, offset=offset, include=["documents", "metadatas", "embeddings"])
        ids = page["ids"]
        for i, document in enumerate(page["documents"]):
            if document is None:
                raise ValueError(f"the record {ids[i]!r} of {collection.name} has no document")
        vectors = as_rows(page["embeddings"], f"embeddings of {collection.name}", ndim=(2,)) if ids else None
        if vectors is None:
            return
        yield ids, page["documents"], [dict(metadata or {}) for metadata in page["metadatas"]], vectors


_LEAST_COSINE = 0.99  # quantised weights and other runtimes move a vector by less, other models by much more


def _check_collection(collection: Collection, embedder: Embedder, verify: int) -> None:
    given = ModelStamp.of(embedder)
    function = collection.configuration.get("embedding_function")
    if isinstance(function, HSCAEmbeddingFunction):
        check_model(function.stamp, given, strict=True)
    sample = collection.get(limit=max(verify, 1), include=["documents", "embeddings"])
    if not sample["ids"]:
        return
    vectors = as_rows(sample["embeddings"], f"embeddings of {collection.name}", ndim=(2,))
    found = ModelStamp(f"collection {collection.name}", vectors.shape[1], "chroma")
    if found.dim != given.dim:
        raise ModelMismatchError(f"ingest model: {found}, query model: {given}: refused", found, given)
    texts = sample["documents"][:verify]
    if verify and None not in texts:
        made = embedder.embed_documents(texts)
        for i, text in enumerate(texts):
            near = float(cosines(made[i : i + 1], vectors[i : i + 1])[0])
            if near < _LEAST_COSINE and made[i].any():
                raise ModelMismatchError(
                    f"{given} makes another vector of {text[:40]!r} than {found} has (cosine {near:.3f}): refused",
                    found,
                    given,
                )
