"""Hierarchical compression: a line for each result first, the whole text of those that somebody wants to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import overload

from hsca_fast.ranking.costs import CountTokens, token_costs
from hsca_fast.retrieval.compress import ChunkResult
from hsca_fast.text.segmentation import segment
from hsca_fast.vectors.arrays import as_count


@dataclass(frozen=True, slots=True)
class Preview:
    """A line for a chunk; `n_tokens` is what the whole chunk would cost."""

    chunk_id: str
    preview: str
    score: float
    n_tokens: int

    def to_dict(self) -> dict[str, str | float | int]:
        """Plain values for JSON."""
        return asdict(self)


class Previews(Sequence[Preview]):
    """Previews in the order of the results, and the way back to these.

    Each is the chunk's first sentence when that fits `max_tokens`; otherwise its headings, or as many words of the sentence as fit,
    and the number of words of the chunk.

    Parameters
    ----------
    results
        Chunks with ids of their own.
    max_tokens
        Most that a preview may cost, at least 1; headings may cost more.
    count_tokens
        Cost of a text; the default is `estimate_tokens`.

    Examples
    --------
    >>> previews = Previews([ChunkResult("a1", "a", 0.9, "Guide > Lamps", "guide.md", "Lamps burn oil. Oil is costly.")])
    >>> previews[0].preview, previews.expand("a1").content
    ('Lamps burn oil.', 'Lamps burn oil. Oil is costly.')
    """

    def __init__(
        self, results: Sequence[ChunkResult], *, max_tokens: int = 24, count_tokens: CountTokens | None = None
    ) -> None:
        max_tokens = as_count(max_tokens, "max_tokens", least=1)
        self._results: dict[str, ChunkResult] = {}
        for row, result in enumerate(results):
            if self._results.setdefault(result.chunk_id, result) is not result:
                raise ValueError(f"results[{row}] has the id {result.chunk_id!r} of another result")
        costs = token_costs([result.content for result in results], count_tokens, "result")
        self._previews = [
            Preview(result.chunk_id, _line(result, max_tokens, count_tokens), result.score, cost)
            for result, cost in zip(results, costs, strict=True)
        ]

    def expand(self, chunk_id: str) -> ChunkResult:
        """The whole chunk; KeyError for an id that was not among the results."""
        return self._results[chunk_id]

    @overload
    def __getitem__(self, row: int) -> Preview: ...
    @overload
    def __getitem__(self, row: slice) -> list[Preview]: ...
    def __getitem__(self, row: int | slice) -> Preview | list[Preview]:
        return self._previews[row]

    def __len__(self) -> int:
        return len(self._previews)

    def __iter__(self) -> Iterator[Preview]:
        return iter(self._previews)


def _line(result: ChunkResult, max_tokens: int, count_tokens: CountTokens | None) -> str:
    found = segment(result.content)
    if not len(found.sentences):
        return result.header_path or result.file_path
    start, end = found.sentences[0].tolist()
    first = " ".join(result.content[start:end].split())
    (cost,) = token_costs([first], count_tokens, "preview")
    if cost <= max_tokens:
        return first
    size = f"({len(found.words)} words)"
    if result.header_path:
        return f"{result.header_path} {size}"
    words = first.split(" ")
    kept = 0
    while kept < len(words):
        (cost,) = token_costs([f"{' '.join(words[: kept + 1])} ... {size}"], count_tokens, "preview")
        if cost > max_tokens:
            break
        kept += 1
    return f"{' '.join(words[:kept])} ... {size}" if kept else size
