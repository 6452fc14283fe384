"""Recall: a vector arm and a lexical arm, each ranked among the records that pass the filter, fused by standard scores."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from hsca_fast._native.vectors import dot_products
from hsca_fast.memory.catalog import Catalog
from hsca_fast.memory.filters import MISSING, Where, where_mask
from hsca_fast.memory.view import View
from hsca_fast.ranking import fuse_scores
from hsca_fast.vectors.embedder import unit_rows

Float32 = npt.NDArray[np.float32]
_TERM = re.compile(r"\w+")
_MAX_TERMS = 64
_TAIL_LIMIT = 20_000
_LEAST_SQUARE = 0.01  # of a length: what is next to the mean has no direction to speak of
_FEW = 4096  # so few records are named to SQLite one by one


class LexicalLagWarning(UserWarning):
    """The writer has yet to index the text of recent records; only vectors find them."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How recall weighs its arms. docs/memory.md says how the defaults were chosen.

    Attributes
    ----------
    vector_weight, lexical_weight, position_weight
        Of each arm's standard scores in the fused score.
    depth
        Candidates of each arm, at least; four times `k` if that is more.
    neighbour_weight, lexical_neighbour_weight
        Share of the scores of the records before and after, of the same session, that is added to a record's own before an
        arm ranks; 0 for none. Words are often said in the turn before the answer.
    mean_weight
        Share of the mean vector of the store that is taken out of query and records before the vector arm of a fused search
        ranks: what all records have in common tells none of them apart. Stores of fewer than 64 records have no mean.
    """

    vector_weight: float = 0.4
    lexical_weight: float = 0.6
    position_weight: float = 0.1
    depth: int = 200
    neighbour_weight: float = 0.0
    lexical_neighbour_weight: float = 0.5
    mean_weight: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
                raise ValueError(f"{field.name} must be a number of at least 0, not {value!r}")
        if not isinstance(self.depth, int) or self.depth < 1:
            raise ValueError(f"depth must be an int of at least 1, not {self.depth!r}")


@dataclass(frozen=True, slots=True)
class Found:
    """A record that was found, and how."""

    sequence: int
    score: float
    vector_score: float | None
    lexical_score: float | None
    vector_rank: int | None
    lexical_rank: int | None


def allowed_records(view: View, where: Where | None, include_archived: bool) -> npt.NDArray[np.bool_] | None:
    """Which records may be found, None for all."""
    status = view.status()
    mask = status < (2 if include_archived else 1)
    if where:
        mask &= where_mask(where, view)
    return None if mask.all() else mask


def search(
    catalog: Catalog,
    view: View,
    settings: SearchSettings,
    *,
    vector: Float32 | None,
    text: str | None,
    k: int,
    allowed: npt.NDArray[np.bool_] | None,
    position: int | None,
) -> list[Found]:
    """The k best. Each arm is left out when it has nothing to go by."""
    depth = max(settings.depth, 4 * k)
    rankings: list[list[tuple[int, float]]] = []
    weights: list[float] = []
    cosines: Float32 | None = None
    vector_ranks: dict[int, int] = {}
    if vector is not None:
        cosines = view.segments().cosines(unit_rows(vector[None])[0])
        ranked = cosines
        if text is not None and settings.mean_weight:
            ranked = _apart_from_mean(ranked, view, unit_rows(vector[None])[0], settings.mean_weight)
        if settings.neighbour_weight:
            ranked = _with_neighbours(ranked, view, settings.neighbour_weight)
        best = top_rows(ranked, depth, allowed) if vector.any() else []
        vector_ranks = {row + 1: rank for rank, row in enumerate(best)}
        rankings.append([(row + 1, float(ranked[row])) for row in best])
        weights.append(settings.vector_weight)
    lexical: dict[int, float] = {}
    lexical_ranks: dict[int, int] = {}
    if text is not None:
        lexical = dict(lexical_matches(catalog, view, text, depth, allowed))
        words = list(lexical.items())
        if words and settings.lexical_neighbour_weight and vector is not None:
            words = _words_nearby(lexical, view, settings.lexical_neighbour_weight, depth, allowed)
        lexical_ranks = {sequence: rank for rank, (sequence, _) in enumerate(words)}
        rankings.append(words)
        weights.append(settings.lexical_weight)
    if position is not None:
        union = sorted({*vector_ranks, *lexical_ranks})
        rankings.append([(sequence, float(-abs(sequence - position))) for sequence in union])
        weights.append(settings.position_weight)
    scored = rankings[0] if len(rankings) == 1 else fuse_scores(rankings, weights=weights)
    if len(rankings) == 1 and cosines is not None:
        scored = [(sequence, float(cosines[sequence - 1])) for sequence in vector_ranks]
    return [
        Found(
            sequence,
            score,
            None if cosines is None else float(cosines[sequence - 1]),
            lexical.get(sequence),
            vector_ranks.get(sequence),
            lexical_ranks.get(sequence),
        )
        for sequence, score in scored[:k]
    ]


def top_rows(scores: Float32, k: int, allowed: npt.NDArray[np.bool_] | None = None) -> list[int]:
    """Rows of the k best scores, ties by row."""
    rows = np.arange(len(scores)) if allowed is None else np.flatnonzero(allowed)
    values = scores if allowed is None else scores[rows]
    if k < len(values):
        kth = np.partition(values, len(values) - k)[len(values) - k]
        chosen = np.flatnonzero(values >= kth)
        rows, values = rows[chosen], values[chosen]
    found: list[int] = rows[np.lexsort((rows, -values))][:k].tolist()
    return found


def _apart_from_mean(cosines: Float32, view: View, query: Float32, weight: float) -> Float32:
    """Cosines of query - w·mean and record - w·mean; a record without a vector is last."""
    found = view.mean_direction()
    if found is None:
        return cosines
    mean, with_mean = found
    ends = np.stack([query, mean])
    asked, size = dot_products(mean[None], ends)[0].astype(np.float64).tolist()
    w = float(weight)
    above = cosines - np.float32(w) * with_mean + np.float32(w * w * size - w * asked)
    own = np.maximum(1.0 - 2.0 * w * with_mean.astype(np.float64) + w * w * size, _LEAST_SQUARE)
    asking = max(1.0 - 2.0 * w * asked + w * w * size, _LEAST_SQUARE)
    centred: Float32 = (above / np.sqrt(own * asking)).astype(np.float32)
    centred[(cosines == 0.0) & (with_mean == 0.0)] = -1.0
    return centred


def _with_neighbours(cosines: Float32, view: View, weight: float) -> Float32:
    column = view.column("session")
    if all(value is MISSING for value in column.values):
        return cosines
    codes = column.codes
    values = np.where(view.status() == 2, np.float32(0.0), cosines)
    order = np.argsort(codes, kind="stable") if len(column.values) > 1 else np.arange(len(codes))
    own = values[order]
    in_session = np.array([value is not MISSING for value in column.values], bool)[codes[order]]
    together = (codes[order][1:] == codes[order][:-1]) & in_session[1:]
    total = own.copy()
    total[1:] += np.where(together, own[:-1], np.float32(0.0)) * np.float32(weight)
    total[:-1] += np.where(together, own[1:], np.float32(0.0)) * np.float32(weight)
    smoothed = np.empty_like(total)
    smoothed[order] = total
    return smoothed


def _words_nearby(
    lexical: dict[int, float], view: View, weight: float, depth: int, allowed: npt.NDArray[np.bool_] | None
) -> list[tuple[int, float]]:
    """BM25 with the share that comes from neighbours, who may have no word of the query themselves."""
    scores = np.zeros(view.n, np.float32)
    scores[np.array(list(lexical)) - 1] = list(lexical.values())
    nearby = _with_neighbours(scores, view, weight)
    mask = nearby > 0.0 if allowed is None else (nearby > 0.0) & allowed
    return [(row + 1, float(nearby[row])) for row in top_rows(nearby, depth, mask)]


def match_expression(text: str) -> str | None:
    """An FTS5 expression for any of the words of `text`; None if it has none."""
    terms = list(dict.fromkeys(term.lower() for term in _TERM.findall(text)))[:_MAX_TERMS]
    return " OR ".join(f'"{term}"' for term in terms) if terms else None


def lexical_matches(
    catalog: Catalog, view: View, text: str, depth: int, allowed: npt.NDArray[np.bool_] | None
) -> list[tuple[int, float]]:
    """(sequence, BM25) of the best allowed records, best first, ties by sequence."""
    expression = match_expression(text)
    tip = view.tip
    if expression is None or not tip.last_sequence:
        return []
    if tip.indexed < tip.last_sequence and catalog.write:
        tip = view.tip = catalog.index_text(tip)
    found = _filtered(lambda limit, among: catalog.match(expression, limit, among=among), depth, allowed)
    lag = tip.last_sequence - tip.indexed
    if lag > _TAIL_LIMIT:
        warnings.warn(
            f"{catalog.path}: the text of the last {lag} records is not indexed yet; the writer does it when it searches"
            " or closes",
            LexicalLagWarning,
            stacklevel=4,
        )
    elif lag:
        tail = _filtered(lambda limit, _: catalog.match_tail(expression, limit, tip), depth, allowed)
        found = sorted(found + tail, key=lambda item: (-item[1], item[0]))[:depth]
    return found


def _filtered(
    ask: Callable[[int, Sequence[int] | None], Sequence[tuple[int, float]]],
    depth: int,
    allowed: npt.NDArray[np.bool_] | None,
) -> list[tuple[int, float]]:
    """The `depth` best of what is allowed: more is asked for until there are as many, or no more."""
    if allowed is None:
        return list(ask(depth, None))
    n_allowed = int(allowed.sum())
    if not n_allowed:
        return []
    among: Sequence[int] | None = (np.flatnonzero(allowed) + 1).tolist() if n_allowed <= _FEW else None
    limit = depth
    while True:
        rows = ask(limit, among)
        kept = [(sequence, score) for sequence, score in rows if sequence <= len(allowed) and allowed[sequence - 1]]
        if len(kept) >= depth or len(rows) < limit:
            return kept[:depth]
        limit *= 8
