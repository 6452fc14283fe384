"""Assembly with many candidates and partition of long documents, beside plain Python that does the same."""

import random

import pytest
from markdown_it import MarkdownIt

from hsca_fast import Candidate, RecallConfig, Turn, assemble, partition_document
from hsca_fast._reference import assembly as reference

NOW = 1_775_000_000.0
BUDGET = 8000
QUERY = "where is the lamp of the old harbour tower"
WORDS = "lamp tower sea stone wind gull rope net harbour light boat fog chart keeper storm window stair door bell old".split()


def corpus(n):
    rng = random.Random(0)
    return {
        "hard": ["Be kind and brief."] * 10,
        "soft": ["You should cite what you recall."] * 10,
        "turns": [Turn(" ".join(rng.choices(WORDS, k=40)), ("user", "assistant")[i % 2], f"t{i}") for i in range(200)],
        "candidates": [
            Candidate(
                f"d{i}",
                " ".join(rng.choices(WORDS, k=60)),
                rng.uniform(-0.2, 1.0),
                collection="user:1",
                timestamp=NOW - rng.uniform(0, 1e6),
                access_count=rng.randint(0, 50),
                hop_targets=[f"d{rng.randint(0, n - 1)}"] if i % 50 == 0 else [],
            )
            for i in range(n)
        ],
    }


def ranked_in_python(arguments):
    """Ids by rank, every candidate scored, as plain Python does it."""
    keywords = {word for word in QUERY.split() if len(word) >= 3}
    largest = max(each.access_count for each in arguments["candidates"])
    scores = {}
    for each in arguments["candidates"]:
        if each.score >= 0.2:
            weight = reference.authority(NOW - each.timestamp, each.access_count, each.authority, largest)
            coverage = len(keywords & set(each.text.split())) / len(keywords)
            scores[each.id] = reference.final_score(each.score, weight, coverage, 0.3)
    edges = {each.id: each.hop_targets for each in arguments["candidates"]}
    known = {each.id for each in arguments["candidates"]}
    hops = reference.hop_scores(
        {id: s for id, s in scores.items() if edges[id]}, edges, known - scores.keys(), 0.5, 0.15
    )
    scores |= hops
    return sorted(scores, key=lambda id: (-scores[id], id))


@pytest.mark.parametrize("n", [1000, 10_000])
def test_assemble(benchmark, n):
    arguments = corpus(n)
    context = benchmark(assemble, QUERY, budget=BUDGET, now=NOW, **arguments)
    recalled = [item.id for item in context.items if item.kind in ("recall", "hop")]
    assert recalled == ranked_in_python(arguments)[: len(recalled)]
    assert 0.98 * BUDGET < context.total_tokens <= BUDGET
    assert not context.degraded


def test_assemble_first_fit(benchmark):
    """The policy that has to look at every candidate."""
    config = RecallConfig(policy="first_fit")
    context = benchmark(assemble, QUERY, budget=BUDGET, now=NOW, config=config, **corpus(10_000))
    assert context.total_tokens <= BUDGET


@pytest.mark.parametrize("n", [10_000])
def test_rank_in_plain_python(benchmark, n):
    assert len(benchmark(ranked_in_python, corpus(n))) > n / 2


PIECE = "# Part\n\nYou must keep the *lamp* lit, see [rules](http://x).\n\n- first `item` of a list\n- second\n  - nested\n\n> quoted\n\n"


@pytest.mark.parametrize("kilobytes", [250, 500, 1000])
def test_partition_document(benchmark, kilobytes):
    n = kilobytes * 1000 // len(PIECE)
    document = benchmark.pedantic(partition_document, (PIECE * n,), rounds=3)
    assert (len(document.hard), len(document.soft), len(document.variant)) == (2 * n, 2 * n, n)


def test_markdown_it_alone(benchmark):
    n = 1_000_000 // len(PIECE)
    tokens = benchmark.pedantic(MarkdownIt("commonmark").parse, (PIECE * n,), rounds=3)
    assert sum(token.type == "blockquote_open" for token in tokens) == n
