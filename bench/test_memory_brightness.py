"""A step of attention over a conversation of 100,000 tokens and a prune to half of it, beside the same in numpy; chunking."""

import heapq

import numpy as np
import pytest

from hsca_fast import MEMORY_PRESETS, ActiveContext, embedding_windows, merge_short_lines

N_TOKENS = 100_000


def conversation(preset):
    rng = np.random.default_rng(0)
    context = ActiveContext(preset=preset)
    while context.n_tokens < N_TOKENS:
        i = len(context)
        n = min(int(rng.integers(5, 60)), N_TOKENS - context.n_tokens)
        context.append_chunk(f"c{i}", n, turn_id=str(i // 8), role=("user", "assistant")[i // 4 % 2])
    context.end_turn()
    return context, rng.dirichlet(np.full(N_TOKENS, 0.2)).astype(np.float32)


def step_in_numpy(attention, brightness, offsets, preset):
    """The same step: brightness afterwards, and the peak of each chunk."""
    if not (np.isfinite(attention).all() and (attention >= 0).all()):
        raise ValueError("attention")
    sink = float(attention[0] if preset.sink == "first" else attention.max())
    ratio = attention.astype(np.float64) / ((1.0 - sink) / (len(attention) - 1))
    brighter = np.minimum(brightness + np.minimum(ratio, 1e9).astype(np.int32), preset.max_brightness)
    after = np.where(ratio > 1, brighter, np.maximum(brightness - 1, -1_000_000_000)).astype(np.int32)
    if preset.sink == "first":
        after[0] = brightness[0]
    return after, np.maximum.reduceat(after, offsets[:-1])


@pytest.mark.parametrize("name", sorted(MEMORY_PRESETS))
@pytest.mark.benchmark(group="brightness of 100k tokens")
def test_score_step(benchmark, name):
    context, attention = conversation(name)
    offsets = np.array([context.chunk(f"c{i}").start for i in range(len(context))] + [N_TOKENS])
    before = np.concatenate([context.brightness(f"c{i}") for i in range(len(context))])
    assert context.score_step(attention)
    after, peaks = step_in_numpy(attention, before, offsets, context.preset)
    assert np.concatenate([context.brightness(f"c{i}") for i in range(len(context))]).tolist() == after.tolist()
    assert [context.chunk(f"c{i}").peak for i in range(len(context))] == peaks.tolist()
    assert benchmark(context.score_step, attention)


@pytest.mark.parametrize("name", sorted(MEMORY_PRESETS))
@pytest.mark.benchmark(group="brightness of 100k tokens")
def test_score_step_in_numpy(benchmark, name):
    context, attention = conversation(name)
    offsets = np.array([context.chunk(f"c{i}").start for i in range(len(context))] + [N_TOKENS])
    preset = context.preset
    after, _ = benchmark(step_in_numpy, attention, np.full(N_TOKENS, preset.new_brightness, np.int32), offsets, preset)
    assert len(after) == N_TOKENS


@pytest.mark.parametrize("name", sorted(MEMORY_PRESETS))
@pytest.mark.benchmark(group="prune 100k tokens to half")
def test_prune(benchmark, name):
    context, attention = conversation(name)
    context.score_step(attention)
    report = benchmark(context.prune, N_TOKENS // 2, dry_run=True)
    assert report.fits
    if name == "seed":  # where the order is a sort
        peaks = [(context.chunk(f"c{i}").peak, i) for i in range(len(context))]
        assert report.pruned == tuple(f"c{i}" for _, i in heapq.nsmallest(len(report.pruned), peaks))


@pytest.mark.benchmark(group="chunking")
def test_merge_short_lines(benchmark):
    text = "Groceries:\n- Milk\n- Eggs\nI'll pick them up after work since the store is on my way home.\n" * 5000
    chunks = benchmark(merge_short_lines, text)
    assert "".join(chunk.text for chunk in chunks) == text
    assert len(chunks) == 5000


@pytest.mark.benchmark(group="chunking")
def test_embedding_windows(benchmark):
    chunks = merge_short_lines("I'll pick them up after work since the store is on my way home.\n" * 5000)
    assert len(benchmark(embedding_windows, chunks)) == 5000
