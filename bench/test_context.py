"""The engine's own cost, beside the specification's class as it is written, and files of snapshots."""

import os
import resource

import pytest

from hsca_fast import ContextSnapshot, ConversationMap, HSCAEngine, score_texts
from hsca_fast._reference import snapshot as reference
from hsca_fast.evals import speed

N_TURNS = 100_000
N_SNAPSHOTS = 100_000


@pytest.fixture(scope="module")
def turns():
    """Paragraphs of the sample, as turns."""
    paragraphs = [p for p in speed.sample_text().split("\n\n") if p.strip()]
    return [paragraphs[i % len(paragraphs)][: 80 + i % 400] for i in range(N_TURNS)]


@pytest.fixture(scope="module")
def batch(turns):
    return score_texts(turns, threads=0)


def beats(snapshots):
    return [(len(s.chunks), s.macro_weight, s.forced) for s in snapshots]


class PlainEngine:
    """The buffer of the specification: every sum anew after every turn."""

    def __init__(self):
        self.buffer, self.snapshots = [], []

    def ingest_chunks(self, chunks):
        for chunk in chunks:
            self.buffer.append(chunk)
            if reference.should_snapshot(self.buffer, 0.72, 20):
                self.snapshots.append(
                    ContextSnapshot(
                        chunk.chunk_id,
                        list(self.buffer),
                        reference.macro_weight(self.buffer),
                        reference.domain_summary(self.buffer),
                        len(self.snapshots),
                        reference.is_forced(self.buffer, 0.72, 20),
                    )
                )
                self.buffer.clear()


def report(benchmark, n):
    benchmark.extra_info["turns_per_second"] = n / benchmark.stats.stats.min


def test_scored_batch(benchmark, batch):
    benchmark.group = "engine, scored turns"
    engines = benchmark.pedantic(
        lambda e: (e.ingest_chunks(batch), e)[1], setup=lambda: ((HSCAEngine(),), {}), rounds=5
    )
    assert sum(len(s.chunks) for s in engines.get_macro_context()) + len(engines._buffer) == N_TURNS
    report(benchmark, N_TURNS)


@pytest.mark.parametrize("make", [HSCAEngine, PlainEngine])
def test_scored_chunks(benchmark, batch, make):
    benchmark.group = "engine, scored turns"

    def setup():
        return (make(), batch.to_chunks(created_at=0.0)), {}

    benchmark.pedantic(lambda engine, chunks: engine.ingest_chunks(chunks), setup=setup, rounds=5)
    fast, plain = HSCAEngine(), PlainEngine()
    fast.ingest_chunks(batch.to_chunks())
    plain.ingest_chunks(batch.to_chunks())
    assert beats(fast.get_macro_context()) == beats(plain.snapshots)
    report(benchmark, N_TURNS)


@pytest.mark.parametrize("short_chunks", ["flag", "defer"])
@pytest.mark.parametrize("how", ["one by one", "batch"])
def test_turns(benchmark, turns, how, short_chunks):
    benchmark.group = f"engine, turns to score, {short_chunks}"
    some = turns[:2000]
    ingest = {
        "one by one": lambda engine: [engine.ingest_turn(text) for text in some],
        "batch": lambda engine: engine.ingest_turns(some),
    }

    def run(engine):
        ingest[how](engine)
        return engine

    engine = benchmark.pedantic(run, setup=lambda: ((HSCAEngine(short_chunks=short_chunks),), {}), rounds=5)
    other = HSCAEngine(short_chunks=short_chunks)
    other.ingest_turns(some)
    assert beats(engine.get_macro_context()) == beats(other.get_macro_context())
    report(benchmark, len(some))


@pytest.mark.parametrize("name", ["map.jsonl", "map.npz"])
def test_files(benchmark, batch, tmp_path, name):
    benchmark.group = "files of 100,000 snapshots, written and read"
    engine = HSCAEngine(max_buffer_chunks=1)
    engine.ingest_chunks(batch)
    talk = ConversationMap(engine.get_macro_context())
    assert len(talk) == N_SNAPSHOTS

    def there_and_back():
        talk.save(tmp_path / name)
        return ConversationMap.load(tmp_path / name)

    assert benchmark.pedantic(there_and_back, rounds=1) == talk
    benchmark.extra_info["megabytes"] = os.path.getsize(tmp_path / name) / 1e6


def test_memory_of_a_million_turns(benchmark, turns):
    """Peak of the whole process, so run it alone: `pytest bench/test_context.py -k million`."""
    benchmark.group = "a million turns"
    engine = HSCAEngine()

    def replay():
        for _ in range(1_000_000 // N_TURNS):
            engine.ingest_turns(turns)

    benchmark.pedantic(replay, rounds=1)
    assert sum(len(s.chunks) for s in engine.get_macro_context()) + len(engine._buffer) == 1_000_000
    benchmark.extra_info["peak_megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    benchmark.extra_info["snapshots"] = len(engine.get_macro_context())
    report(benchmark, 1_000_000)
