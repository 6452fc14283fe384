"""What the pipeline costs beyond recall, what watching it costs, how fast a store is scanned; and figures of its effect."""

import statistics
import time
from functools import cache

import numpy as np
import pytest
from memory_store import MemoryIndex, MemoryRecord
from retrieval_corpus import passages

from hsca_fast import (
    RetrievalPipeline,
    RetrievalProfile,
    default_embedder,
)

NOW = 1_790_000_000.0
DAY = 86_400.0
CANDIDATES = 200
EVERYTHING = RetrievalProfile(
    candidate_pool_multiplier=CANDIDATES // 10,
    mmr_final_k=10,
    query_expansion_enabled=True,
    supersede_filter_enabled=True,
    min_score=0.0,
    min_similarity=-1.0,
    ngram_dedup_enabled=True,
    semantic_dedup_enabled=True,
    semantic_dedup_threshold=0.95,
    mmr_enabled=True,
    pinned_memory_enabled=True,
    max_tokens=4000,
)


@pytest.fixture(scope="module")
def memory():
    """Prose in pieces of 240 characters, of eight wings, some of it asked for before; a store that costs nothing."""
    rng = np.random.default_rng(0)
    texts = [text[:240] for text in passages(3)][:1000]
    records = [
        MemoryRecord(f"{i:032x}", i + 1, text, NOW - float(rng.uniform(0, 200)) * DAY, {"wing": f"w{i % 8}"})
        for i, text in enumerate(texts)
    ]
    index = MemoryIndex(default_embedder(), records)
    for _ in range(300):
        picked = [records[i].id for i in rng.integers(0, len(records), 5)]
        index.touch(picked, query=f"about {rng.integers(100)}", at=NOW - float(rng.uniform(0, 80)) * DAY)
    return index, [" ".join(text.split()[:8]) for text in texts[:40]]


def beyond_recall(pipeline, query, **options):
    """Seconds of one thread in a run, without those in recall and in the store."""
    recall = pipeline._phases[2]
    spent = 0.0
    apply = type(recall).apply

    def timed(run):
        nonlocal spent
        begin = time.thread_time()
        apply(recall, run)
        spent = time.thread_time() - begin

    recall.apply = timed
    begin = time.thread_time()
    found = pipeline.run(query, dry_run=True, **options)
    total = time.thread_time() - begin
    del recall.apply
    assert found.pipeline_trace["total_candidates_in"] >= CANDIDATES
    assert found.pipeline_trace["phases_skipped"] == []
    return total - spent


@pytest.mark.parametrize("watching", [False, True])
def test_overhead_beyond_recall(benchmark, memory, watching):
    index, queries = memory
    pipeline = RetrievalPipeline(index, EVERYTHING, clock=lambda: NOW)
    options = {"explain": True, "candidate_trace": True} if watching else {}
    n, wings, query = index.count(), index.value_counts("wing"), cache(index.query)
    index.count, index.value_counts, index.query = lambda _: n, lambda _: wings, query  # a store is quick
    times = [beyond_recall(pipeline, query, **options) for query in queries * 5]
    benchmark.extra_info["p50_ms"] = statistics.median(times) * 1e3
    benchmark.pedantic(pipeline.run, (queries[0],), {"dry_run": True, **options}, rounds=3)
    print(f"\nbeyond recall, p50 of one thread: {statistics.median(times) * 1e3:.2f} ms")
