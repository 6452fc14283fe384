"""Layer 4: when a buffer of chunks becomes a snapshot, and what the snapshot says (HSCA 2.4 and 6).

Sums run from the first chunk to the last, by plain addition: `sum` compensates in some versions of Python and not in others.
"""

from __future__ import annotations

from collections.abc import Sequence

from hsca_fast.types import WeightedChunk


def total_weight(buffer: Sequence[WeightedChunk]) -> float:
    """W = Σ layer1."""
    weight = 0.0
    for chunk in buffer:
        weight += chunk.layer1_score
    return weight


def aggregate_coherence(buffer: Sequence[WeightedChunk]) -> float:
    """Σ layer1 · coherence / W; 0 where there is no weight."""
    weight = total_weight(buffer)
    if weight == 0:
        return 0.0
    moment = 0.0
    for chunk in buffer:
        moment += chunk.coherence_score * chunk.layer1_score
    return moment / weight


def is_coherent(buffer: Sequence[WeightedChunk], threshold: float) -> bool:
    """There is weight, and the aggregate coherence reaches the threshold."""
    return total_weight(buffer) > 0 and aggregate_coherence(buffer) >= threshold


def should_snapshot(buffer: Sequence[WeightedChunk], threshold: float, max_buffer_chunks: int) -> bool:
    """Coherent, or full."""
    return len(buffer) > 0 and (len(buffer) >= max_buffer_chunks or is_coherent(buffer, threshold))


def is_forced(buffer: Sequence[WeightedChunk], threshold: float, max_buffer_chunks: int) -> bool:
    """Full, and not coherent."""
    return len(buffer) >= max_buffer_chunks and not is_coherent(buffer, threshold)


def macro_weight(buffer: Sequence[WeightedChunk]) -> float:
    """W / n, at most 1."""
    return min(total_weight(buffer) / len(buffer), 1.0)


def domain_summary(buffer: Sequence[WeightedChunk]) -> dict[str, float]:
    """For each tag, the weight of the chunks that have it, divided by W (by 1 where W is 0)."""
    tags = dict.fromkeys(tag for chunk in buffer for tag in chunk.domain_tags)
    weight = total_weight(buffer) or 1.0
    return {tag: total_weight([chunk for chunk in buffer if tag in chunk.domain_tags]) / weight for tag in tags}
