"""How relevant snapshots are to a query; the formulas are in `_reference/relevance.py` and docs/context.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from hsca_fast.context.words import content_words
from hsca_fast.types import ContextSnapshot

Floats: TypeAlias = npt.NDArray[np.float64]

# "What we were discussing in the last three beats" (HSCA 3).
DEFAULT_RADIUS = 3


class EmbedsTexts(Protocol):
    """What is needed of an embedder."""

    def embed_documents(self, texts: Sequence[str], /) -> npt.NDArray[np.float32]: ...
    def embed_query(self, text: str, /) -> npt.NDArray[np.float32]: ...


def locality(n: int, context_position: int | None, radius: int | None) -> Floats:
    """1 at the position, falling evenly to 0 just outside of the radius; 1 everywhere without a position."""
    if context_position is None:
        if radius is not None:
            raise ValueError("radius needs a context_position")
        return np.ones(n)
    for name, value in (("context_position", context_position), ("radius", radius)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if not -n <= context_position < n:
        raise ValueError(f"context_position {context_position} is outside of a map of {n} snapshots")
    radius = DEFAULT_RADIUS if radius is None else radius
    if radius < 0:
        raise ValueError(f"radius must not be negative, not {radius}")
    away = np.abs(np.arange(n) - context_position % n)
    return np.maximum(0.0, 1 - away / (radius + 1))


def strongest_by_word(snapshots: Sequence[ContextSnapshot]) -> dict[str, dict[int, float]]:
    """For each word, the largest `layer1_score` of the chunks that hold it, by snapshot."""
    weights: dict[str, dict[int, float]] = {}
    for i, snapshot in enumerate(snapshots):
        for chunk in snapshot.chunks:
            for word in content_words(chunk.text):
                places = weights.setdefault(word, {})
                places[i] = max(places.get(i, 0.0), chunk.layer1_score)
    return weights


def by_words(words: Sequence[str], weights: Mapping[str, Mapping[int, float]], n: int) -> Floats:
    """Mean over the query's words of the strongest chunk with the word, rare words counting more."""
    score, total = np.zeros(n), 0.0
    for word in words:
        places = weights.get(word, {})
        # log2 by straight lines between the powers of two: libm has other bits on other machines.
        mantissa, exponent = np.frexp((n + 1) / (len(places) + 1))
        rarity = float(exponent - 1 + 2 * mantissa)
        total += rarity
        if places:
            rows = np.fromiter(places.keys(), np.int64, len(places))
            score[rows] += rarity * np.fromiter(places.values(), np.float64, len(places))
    # Sums of rounded products may pass their bound by a last bit.
    return np.minimum(score / total, 1.0) if words else score


def by_domains(tags: Sequence[str], snapshots: Sequence[ContextSnapshot]) -> Floats:
    """Macro weight times the mean share of the query's domains."""
    shares = np.zeros(len(snapshots))
    for tag in tags:
        shares += np.array([snapshot.domain_summary.get(tag, 0.0) for snapshot in snapshots])
    return np.array([snapshot.macro_weight for snapshot in snapshots]) * shares / len(tags)


def by_vectors(query: str, embedder: EmbedsTexts, vectors: Floats) -> Floats:
    """Dot product of the query's unit vector and each snapshot's vector, at least 0."""
    vector = _unit_rows(np.asarray(embedder.embed_query(query), np.float64)[None, :])[0]
    if vectors.shape[1] != len(vector):
        raise ValueError(f"embedder gives documents {vectors.shape[1]} dimensions but queries {len(vector)}")
    products = np.zeros(len(vectors))
    for j in range(len(vector)):  # not a matrix product, whose bits depend on the number of rows
        products += vectors[:, j] * vector[j]
    return np.clip(products, 0.0, 1.0)


def snapshot_vectors(snapshots: Sequence[ContextSnapshot], embedder: EmbedsTexts) -> Floats:
    """The direction of the chunks' unit vectors added up by `layer1_score`, of the length `macro_weight`."""
    chunks = [(i, chunk) for i, snapshot in enumerate(snapshots) for chunk in snapshot.chunks if chunk.text]
    embedded = np.asarray(embedder.embed_documents([chunk.text for _, chunk in chunks]), np.float64)
    if embedded.ndim != 2 or len(embedded) != len(chunks):
        raise ValueError(f"embedder.embed_documents gave the shape {embedded.shape} for {len(chunks)} texts")
    added = np.zeros((len(snapshots), embedded.shape[1]))
    for (i, chunk), row in zip(chunks, _unit_rows(embedded), strict=True):
        added[i] += chunk.layer1_score * row
    vectors = _unit_rows(added)
    vectors *= np.array([snapshot.macro_weight for snapshot in snapshots])[:, None]
    return vectors


def _unit_rows(rows: Floats) -> Floats:
    if not np.isfinite(rows).all():
        raise ValueError("embedder gave a vector that is not finite")
    norms = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return rows / np.where(norms > 0, norms, 1.0)
