"""What the pipeline costs beyond recall, what watching it costs, how fast a store is scanned; and figures of its effect."""

import os
import random
import resource
import statistics
import time
from functools import cache

import numpy as np
import pytest
from memory_store import MemoryIndex, MemoryRecord
from retrieval_corpus import passages, planted_duplicates

from hsca_fast import (
    CallableEmbedder,
    RetrievalPipeline,
    RetrievalProfile,
    SemanticIndex,
    compress,
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
    n, wings, query = index.count(), index.value_counts("wing"), cache(index.query)
    index.count, index.value_counts, index.query = lambda _: n, lambda _: wings, query  # a store is quick
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
    times = [beyond_recall(pipeline, query, **options) for query in queries * 5]
    benchmark.extra_info["p50_ms"] = statistics.median(times) * 1e3
    benchmark.pedantic(pipeline.run, (queries[0],), {"dry_run": True, **options}, rounds=3)
    print(f"\nbeyond recall, p50 of one thread: {statistics.median(times) * 1e3:.2f} ms")


def test_planted_duplicates(benchmark):
    """Groups reduced to one, distinct texts lost and tokens saved, over five seeds."""
    reduced = groups = lost = distinct = before = after = 0
    for seed in range(5):
        corpus = planted_duplicates(seed)
        vectors = default_embedder().embed_documents([each.content for each in corpus.results])
        kept, stats = compress(corpus.results, vectors, top_n=len(corpus.results))
        ids = {each.chunk_id for each in kept}
        reduced += sum(len(group & ids) == 1 for group in corpus.groups)
        groups += len(corpus.groups)
        lost += len(corpus.distinct - ids)
        distinct += len(corpus.distinct)
        before, after = before + stats.tokens_before, after + stats.tokens_after
    print(
        f"\n{reduced}/{groups} groups reduced, {lost}/{distinct} distinct lost, {1 - after / before:.1%} fewer tokens"
    )
    assert reduced >= 0.95 * groups
    assert lost <= 0.01 * distinct
    assert after <= 0.6 * before
    benchmark(compress, corpus.results, vectors, top_n=len(corpus.results))


def test_scan(benchmark, tmp_path):
    """All records of a store, a batch at a time; `HSCA_BENCH_RECORDS` says how many."""
    n = int(os.environ.get("HSCA_BENCH_RECORDS", "100000"))
    embedder = CallableEmbedder(lambda texts: [[1.0] * 8] * len(texts), name="ones", dim=8)
    with SemanticIndex.open(tmp_path / "index", embedder=embedder) as index:
        for begin in range(0, n, 50_000):
            size = min(50_000, n - begin)
            index.append(
                [f"record {begin + i} of a store" for i in range(size)], embeddings=np.ones((size, 8), np.float32)
            )
        pipeline = RetrievalPipeline(index, RetrievalProfile(max_scan_depth=10**9))
        report = benchmark.pedantic(pipeline.scan, kwargs={"dry_run": True}, rounds=3)
        assert (report.scanned, report.watermark) == (n, n)
    print(
        f"\n{n / benchmark.stats['min']:,.0f} records/s, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB at most"
    )


@pytest.mark.parametrize("multiplier", [1, 20])
def test_small_wing_beside_a_big_one(benchmark, tmp_path, multiplier):
    """Twenty records with the answers beside 20,000: among the first five, or told in the trace."""
    n, small = 20_000, 20
    rng = random.Random(0)
    prose = passages(2)
    answers = rng.sample(prose, small)
    others = [text for text in prose if text not in set(answers)]
    with SemanticIndex.open(tmp_path / "index", embedder=default_embedder()) as index:
        big = [f"{rng.choice(others)} {i}" for i in range(n)]
        index.append(big, metadata={"wing": "work"})
        index.append(answers, metadata={"wing": "flights"})
        pipeline = RetrievalPipeline(index, RetrievalProfile(candidate_pool_multiplier=multiplier))
        hits = told = 0
        for i in range(200):
            words = [word for word in answers[i % small].split() if len(word) > 4]
            found = pipeline.run(" ".join(rng.sample(words, 3)), k=5, dry_run=True, candidate_trace=True)
            hit = answers[i % small] in {each.text for each in found.results}
            hits += hit
            named = {each.get("wing") for each in found.pipeline_trace["candidate_trace"]}
            in_pool = found.pipeline_trace["wings_in_pool"].get("flights", 0)
            told += hit or "flights" in named or in_pool > 0
        print(f"\nmultiplier {multiplier}: {hits}/200 in the top 5, {told}/200 found or told in the trace")
        assert told == 200
        if multiplier > 1:
            assert hits >= 190
        benchmark.pedantic(pipeline.run, ("lamp",), {"k": 5, "dry_run": True}, rounds=3)
