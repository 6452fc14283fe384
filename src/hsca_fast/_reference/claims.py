"""How well the chunks of a conversation ground a claim (docs/context.md)."""

from __future__ import annotations

from collections.abc import Set

SUPPORTED_OVERLAP = 0.3
INFERRED_OVERLAP = 0.1


def overlap(claim: Set[str], chunk: Set[str]) -> float:
    """The share of the claim's words that the chunk has."""
    return len(claim & chunk) / len(claim) if claim else 0.0


def support_strength(overlap: float, layer1: float) -> float:
    """What one chunk gives a claim: its weight, by how much of the claim it holds."""
    if overlap >= SUPPORTED_OVERLAP:
        return min(1.0, 1.5 * overlap) * layer1
    return overlap * layer1 if overlap >= INFERRED_OVERLAP else 0.0


def grounding_strength(overlap: float) -> float:
    """How much of the claim is in a chunk at all."""
    if overlap >= SUPPORTED_OVERLAP:
        return min(1.0, 1.2 * overlap)
    return 0.5 * overlap if overlap >= INFERRED_OVERLAP else 0.0


def contradicted_strength(target: float, edges: list[tuple[float, float]]) -> float:
    """target − Σ weight · source / 2 over the edges that contradict it, at least 0."""
    for weight, source in edges:
        target -= weight * source * 0.5
    return max(target, 0.0)
