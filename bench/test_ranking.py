"""Ranking beside numpy, numba, numexpr and Python: one thread each, results checked first. See bench/README.md.

Set HSCA_BENCH_ROWS to change the number of candidates (1,000,000).
"""

import os
import random

import numba
import numexpr
import numpy as np
import pytest

from hsca_fast import (
    estimate_tokens,
    fit_budget,
    gating_scalar,
    hybrid_scores,
    hybrid_top_k,
    keyword_coverage,
    second_pass_scores,
)
from hsca_fast._native import ranking as native
from hsca_fast._reference import budget, gating, tokens
from hsca_fast._reference.keywords import keyword_coverage as reference_coverage

N = int(os.environ.get("HSCA_BENCH_ROWS", 1_000_000))
K = 100
rng = np.random.default_rng(0)
F = np.float32

cosine = rng.random(N, F)
age = rng.random(N, F) * F(4e5)  # e^-x stays a normal number, which the peers need to be fast
scope = rng.integers(0, 3, N, np.uint8)
authority = rng.random(N, F)
coverage = rng.integers(0, 5, N).astype(F) / F(4)
decay_table, weight_table = np.array([1e-4, 1e-5, 2e-6], F), np.array([1.0, 0.6, 0.3], F)
decay, scope_weight = decay_table[scope], weight_table[scope]  # looked up beforehand: the peers need not
out, second, third = np.empty(N, F), np.empty(N, F), np.empty(N, F)
none, no_scope = np.empty(0, F), np.empty(0, np.uint8)


def numpy_hybrid():
    np.multiply(decay, age, out=out)
    np.negative(out, out=out)
    np.exp(out, out=out)
    np.multiply(out, F(0.2), out=out)
    np.clip(cosine, F(0), F(1), out=second)
    np.multiply(second, F(0.7), out=second)
    np.add(out, second, out=out)
    np.multiply(scope_weight, F(0.1), out=second)
    np.add(out, second, out=out)
    return out


@numba.njit(fastmath=True)
def _numba_hybrid(cosine, age, scope, decays, weights, out):
    for i in range(len(cosine)):
        c = min(max(cosine[i], np.float32(0)), np.float32(1))
        r = np.exp(-decays[scope[i]] * max(age[i], np.float32(0)))
        out[i] = np.float32(0.7) * c + np.float32(0.2) * r + np.float32(0.1) * weights[scope[i]]


def numba_hybrid():
    _numba_hybrid(cosine, age, scope, decay_table, weight_table, out)
    return out


def numexpr_hybrid():
    variables = {"c": cosine, "l": decay, "a": age, "s": scope_weight, "x": F(0.7), "y": F(0.2), "z": F(0.1)}
    return numexpr.evaluate("x * c + y * exp(-l * a) + z * s", variables, out=out)


def numpy_second_pass():
    np.maximum(cosine, F(0), out=out)
    np.multiply(out, authority, out=out)
    np.multiply(coverage, F(0.3), out=second)
    np.add(second, F(1), out=second)
    np.multiply(out, second, out=out)
    np.divide(out, F(1.3), out=out)
    return out


@numba.njit(fastmath=True)
def _numba_second_pass(similarity, authority, coverage, out):
    for i in range(len(similarity)):
        s = max(similarity[i], np.float32(0))
        out[i] = authority[i] * s * (np.float32(1) + np.float32(0.3) * coverage[i]) / np.float32(1.3)


def numba_second_pass():
    _numba_second_pass(cosine, authority, coverage, out)
    return out


def numexpr_second_pass():
    variables = {"c": cosine, "w": authority, "m": coverage, "k": F(0.3), "o": F(1), "d": F(1.3)}
    return numexpr.evaluate("w * c * (o + k * m) / d", variables, out=out)


HYBRID = {
    "hsca_fast": lambda: hybrid_scores(cosine, age, scope, out=out),
    "numpy float32, out=": numpy_hybrid,
    "numba": numba_hybrid,
    "numexpr": numexpr_hybrid,
}
SECOND_PASS = {
    "hsca_fast": lambda: second_pass_scores(cosine, authority, coverage, out=out),
    "numpy float32, out=": numpy_second_pass,
    "numba": numba_second_pass,
    "numexpr": numexpr_second_pass,
}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = numexpr.set_num_threads(1)
    yield
    numexpr.set_num_threads(before)


def run(benchmark, group, job, rounds=15):
    benchmark.group = group
    return benchmark.pedantic(job, rounds=rounds, warmup_rounds=2)


@pytest.mark.parametrize("name", HYBRID)
def test_hybrid(benchmark, name):
    expected = hybrid_scores(*(x[:1000].astype(float) for x in (cosine, age)), scope[:1000])
    assert HYBRID[name]()[:1000] == pytest.approx(expected, abs=1e-6)
    run(benchmark, "hybrid", HYBRID[name])


@pytest.mark.parametrize("isa", native.isa_levels())
def test_hybrid_by_instruction_set(benchmark, isa):
    weights, tables = np.array([0.7, 0.2, 0.1]), (decay_table.astype(float), weight_table.astype(float))
    run(benchmark, "hybrid", lambda: native.hybrid_scores(cosine, age, scope, none, weights, 0.5, *tables, 1, out, isa))


def test_hybrid_memory_bound(benchmark):
    run(benchmark, "hybrid", lambda: native.stream_columns(cosine, age, none, scope, out))


@pytest.mark.parametrize("name", SECOND_PASS)
def test_second_pass(benchmark, name):
    columns = (x[:1000].astype(float) for x in (cosine, authority, coverage))
    assert SECOND_PASS[name]()[:1000] == pytest.approx(second_pass_scores(*columns), abs=1e-6)
    run(benchmark, "second pass", SECOND_PASS[name])


@pytest.mark.parametrize("isa", native.isa_levels())
def test_second_pass_by_instruction_set(benchmark, isa):
    run(benchmark, "second pass", lambda: native.second_pass_scores(cosine, authority, coverage, 0.3, 1, out, isa))


def test_second_pass_memory_bound(benchmark):
    run(benchmark, "second pass", lambda: native.stream_columns(cosine, authority, coverage, no_scope, out))


def numpy_top_k(scores):
    rows = np.argpartition(scores, -K)[-K:]
    return rows[np.argsort(-scores[rows], kind="stable")]


def numpy_hybrid_in_float64():
    c, a, d, w = (x.astype(np.float64) for x in (cosine, age, decay, scope_weight))
    return lambda: 0.7 * np.clip(c, 0, 1) + 0.2 * np.exp(-d * a) + 0.1 * w


@pytest.mark.parametrize("name", ["hsca_fast", "numpy float32, out= + argpartition", "numpy float64 + argpartition"])
def test_top_k(benchmark, name):
    float64 = numpy_hybrid_in_float64()
    jobs = {
        "hsca_fast": lambda: hybrid_top_k(cosine, age, scope, K).rows,
        "numpy float32, out= + argpartition": lambda: numpy_top_k(numpy_hybrid()),
        "numpy float64 + argpartition": lambda: numpy_top_k(float64()),
    }
    rows = run(benchmark, "top k", jobs[name])
    assert cosine[rows].mean() > 0.9
    assert set(rows[:50]) <= set(np.argsort(-hybrid_scores(cosine, age, scope))[: K + 20])


@pytest.mark.parametrize("share", [0.001, 0.1])
@pytest.mark.parametrize("name", ["hsca_fast", "numpy argsort"])
def test_packing(benchmark, name, share):
    scores = hybrid_scores(cosine, age, scope)
    costs = rng.integers(20, 400, N, np.int32)
    limit = float(costs.sum()) * share

    def numpy_pack():
        order = np.argsort(-scores)
        return order[: np.searchsorted(np.cumsum(costs[order]), limit, side="right")]

    jobs = {"hsca_fast": lambda: fit_budget(costs, limit, scores=scores), "numpy argsort": numpy_pack}
    rows = run(benchmark, f"packing {share:.1%} of the rows", jobs[name])
    order = np.argsort(-scores, kind="stable")
    assert costs[rows].sum() <= limit
    head = budget.fit_budget(costs[order].tolist(), limit)
    if name == "hsca_fast":
        assert rows.tolist() == order[head].tolist()


WORDS = (
    "the a of we to and fixed bug in src/main.py at line 42 deployed easy every commit 8a11632 main branch i prefer tea "
    "my manager Alice is here call foo(bar) configured https://example.org/a 2026-04-02 error 503 switched to Postgres"
).split()


def made_texts(n, words, seed=1):
    chooser = random.Random(seed)
    return [" ".join(chooser.choices(WORDS, k=chooser.randint(words // 2, 2 * words))) for _ in range(n)]


@pytest.mark.parametrize("name", ["hsca_fast", "Python"])
@pytest.mark.parametrize("kind", ["host", "sidecar", "fitted"])
def test_tokens(benchmark, name, kind):
    texts = made_texts(100_000, 60)
    rules = {
        "host": tokens.host_tokens,
        "sidecar": tokens.sidecar_tokens,
        "fitted": lambda text: tokens.fitted_tokens(text, native.token_coefficients()),
    }
    if name == "hsca_fast":
        found = run(benchmark, f"tokens {kind}, 100k texts", lambda: estimate_tokens(texts, kind=kind), 5)
        assert found[:500].tolist() == [rules[kind](text) for text in texts[:500]]
    else:
        run(benchmark, f"tokens {kind}, 100k texts", lambda: [rules[kind](text) for text in texts], 2)


@pytest.mark.parametrize("name", ["hsca_fast", "Python re"])
def test_gating(benchmark, name):
    texts = made_texts(5_000, 40)
    if name == "hsca_fast":
        found = run(benchmark, "gating, 5k texts", lambda: gating_scalar(texts), 5)
        expected = [gating.gating_signals(text)["score"] for text in texts[:200]]
        assert found.score[:200].tolist() == pytest.approx(expected, abs=1e-12)
    else:
        run(benchmark, "gating, 5k texts", lambda: [gating.gating_signals(text) for text in texts], 1)


@pytest.mark.parametrize("name", ["hsca_fast", "Python re"])
def test_coverage(benchmark, name):
    texts = made_texts(20_000, 60)
    keywords = ["deployed", "postgres", "branch", "missing", "tea"]
    if name == "hsca_fast":
        found = run(benchmark, "coverage, 20k texts", lambda: keyword_coverage(keywords, texts), 5)
        assert found[:200].tolist() == [reference_coverage(keywords, text) for text in texts[:200]]
    else:
        job = lambda: [reference_coverage(keywords, text, kind="ascii") for text in texts]  # noqa: E731
        run(benchmark, "coverage, 20k texts", job, 1)
