import math

import numpy as np
import pytest
from golden import cases
from hypothesis import given, settings
from hypothesis import strategies as st

from hsca_fast import RECENCY_DECAY, SCOPE_WEIGHT, hybrid_scores, hybrid_top_k
from hsca_fast._native import ranking as native
from hsca_fast._reference import decay as reference_decay
from hsca_fast._reference import hybrid as reference

NOW = 1775000000000
SCORES = cases("score_candidates")
# Parameters outside their domain are refused here, clamped there.
REFUSED = {"delta -1": "delta", "negative lambdas clamp to 0": "decays"}
SCOPES = list(SCOPE_WEIGHT)


def scored(items, opts):
    """(id, score) pairs in rank order for the items of a recorded case."""

    def scope(metadata):
        if metadata.get("sessionId") == opts.get("sessionId"):
            return "session"
        return "user" if metadata.get("userId") == opts.get("userId") else "global"

    def age(metadata):
        ts = metadata.get("ts")
        return (NOW - ts) / 1000 if isinstance(ts, int | float) else 0.0

    def rate(metadata):
        value = metadata.get("decay_rate")
        return value if metadata.get("type") == "summary" and isinstance(value, int | float) else 0.0

    metadata = [item["metadata"] for item in items]
    keys = {"session": "recencyLambdaSession", "user": "recencyLambdaUser", "global": "recencyLambdaGlobal"}
    scores = hybrid_scores(
        np.array([item["score"] for item in items], np.float64),
        np.array([age(m) for m in metadata]),
        [scope(m) for m in metadata],
        decay_rate=np.array([rate(m) for m in metadata]),
        weights=[opts.get(name, default) for name, default in (("alpha", 0.7), ("beta", 0.2), ("gamma", 0.1))],
        delta=opts.get("delta", 0.5),
        decays={s: opts.get(keys[s], RECENCY_DECAY[s]) for s in SCOPES},
    )
    return {item["id"]: score for item, score in zip(items, scores.tolist(), strict=True)}


@pytest.mark.parametrize("name", SCORES.keys() - REFUSED.keys())
def test_recorded(name):
    given_, expected = SCORES[name]
    found = scored(given_["items"], given_["opts"])
    assert found == pytest.approx({item["id"]: item["finalScore"] for item in expected}, abs=1e-12)


@pytest.mark.parametrize("name", REFUSED)
def test_recorded_but_outside_the_domain(name):
    given_, _ = SCORES[name]
    with pytest.raises(ValueError, match=REFUSED[name]):
        scored(given_["items"], given_["opts"])


@pytest.mark.parametrize("name", cases("normalize_weights"))
def test_recorded_weights(name):
    given_, expected = cases("normalize_weights")[name]
    weights = given_["weights"]
    assert reference_decay.normalize_weights(weights, (0.7, 0.2, 0.1)) == pytest.approx(expected, abs=1e-12)
    # cos = 1, R = 1 and S = 1 one at a time show each weight.
    cosine, age, scope = [1, 0, 0], [1e300, 0.0, 1e300], ["none", "none", "all"]
    parts = hybrid_scores(
        cosine, age, scope, weights=weights, decays={"none": 1.0, "all": 1.0}, scope_weights={"none": 0.0, "all": 1.0}
    )
    assert parts.tolist() == pytest.approx(expected, abs=1e-12)


CANDIDATES = st.lists(
    st.tuples(
        st.floats(-2, 2) | st.sampled_from([0.0, 1.0, -0.0]), st.floats(-1e4, 1e8), st.integers(0, 2), st.floats(-1, 2)
    ),
    max_size=60,
)
WEIGHTS = st.tuples(*[st.floats(-1, 2)] * 3)


def columns_of(candidates, dtype=np.float64):
    rows = list(zip(*candidates, strict=True)) or [(), (), (), ()]
    return (
        np.array(rows[0], dtype),
        np.array(rows[1], dtype),
        np.array(rows[2], np.uint8),
        np.array(rows[3], dtype),
    )


@given(CANDIDATES, WEIGHTS, st.floats(0, 1), st.booleans())
def test_reference(candidates, weights, delta, summaries):
    expected = [
        reference.hybrid_score(
            c,
            a,
            RECENCY_DECAY[SCOPES[s]],
            SCOPE_WEIGHT[SCOPES[s]],
            r if summaries else None,
            weights=weights,
            delta=delta,
        )
        for c, a, s, r in candidates
    ]
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-6)):
        cosine, age, scope, rate = columns_of(candidates, dtype)
        options = {"decay_rate": rate if summaries else None, "weights": weights, "delta": delta}
        found = hybrid_scores(cosine, age, scope, **options)
        assert found.dtype == dtype
        assert found.tolist() == pytest.approx(expected, abs=tolerance)
        assert ((found >= 0) & (found <= 1)).all()
        names = [SCOPES[s] for s in scope]
        assert hybrid_scores(cosine, age, names, **options).tobytes() == found.tobytes()
        assert hybrid_scores(cosine, age, scope.astype(np.int64), **options).tobytes() == found.tobytes()


@settings(max_examples=50)
@given(CANDIDATES, st.integers(1, 70))
def test_top_k_is_the_head_of_the_sorted_scores(candidates, k):
    for dtype in (np.float64, np.float32):
        cosine, age, scope, rate = columns_of(candidates, dtype)
        scores = hybrid_scores(cosine, age, scope, decay_rate=rate)
        best = hybrid_top_k(cosine, age, scope, k, decay_rate=rate)
        assert best.rows.tolist() == reference.top_k(scores.tolist(), k)
        assert best.scores.tobytes() == scores[best.rows].tobytes()


@pytest.mark.parametrize("order", ["random", "ascending", "descending", "ties"])
def test_top_k_of_many(order):
    rng = np.random.default_rng(3)
    n = 70_000
    cosine = rng.random(n, np.float32)
    if order == "ascending":
        cosine.sort()
    elif order == "descending":
        cosine[::-1].sort()
    elif order == "ties":
        cosine = cosine.round(2)
    age = np.zeros(n, np.float32)
    expected = np.lexsort((np.arange(n), -hybrid_scores(cosine, age, "user")))
    for k in (1, 100, 5000, n, n + 10):
        for threads in (1, 2, 5):
            assert hybrid_top_k(cosine, age, "user", k, threads=threads).rows.tolist() == expected[:k].tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weights", [(0.7, 0.2, 0.1), (0.0, 1.0, 0.0), (0.1, 0.8, 0.1)])
def test_top_k_passes_over_no_row_that_belongs(weights, dtype):
    rng = np.random.default_rng(4)
    n = 20_011
    half_life = np.log(2.0) / np.array([1e-4, 1e-5, 2e-6])
    scope = rng.integers(0, 3, n, np.uint8)
    # Many ages are just before or after a half-life, where the bound that spares most rows their score is the score.
    age = (half_life[scope] * rng.choice([0.0, 0.5, 1.0 - 1e-7, 1.0, 1.0 + 1e-7, 3.0], n)).astype(dtype)
    cosine, rate = rng.choice([0.0, 0.5, 0.9, 1.0], n).astype(dtype), rng.choice([0.0, 0.5], n).astype(dtype)
    tables = np.array(weights), 0.5, np.array([1e-4, 1e-5, 2e-6]), np.array([1.0, 0.6, 0.3])
    for rates in (rate, rate[:0]):
        scores = np.empty(n, dtype)
        assert native.hybrid_scores(cosine, age, scope, rates, *tables, 1, scores)
        expected = np.lexsort((np.arange(n), -scores))
        for isa in native.isa_levels():
            for k in (1, 70, 3000):
                rows, found = native.hybrid_top_k(cosine, age, scope, rates, *tables, k, 1, isa)
                assert rows.tolist() == expected[:k].tolist()
                assert found.tobytes() == scores[rows].tobytes()


def test_threads_batches_and_instruction_sets_change_no_bit():
    rng = np.random.default_rng(1)
    weights = np.array(reference_decay.normalize_weights([0.7, 0.2, 0.1], ()))
    tables = np.array([1e-4, 1e-5, 2e-6]), np.array([1.0, 0.6, 0.3])
    for dtype in (np.float32, np.float64):
        n = 50_021
        cosine, age = rng.normal(0.4, 0.5, n).astype(dtype), (rng.random(n) * 1e7 - 1e5).astype(dtype)
        scope, rate = rng.integers(0, 3, n, np.uint8), rng.random(n).astype(dtype)
        whole = hybrid_scores(cosine, age, scope, decay_rate=rate)
        for threads in (2, 3, 0):
            assert hybrid_scores(cosine, age, scope, decay_rate=rate, threads=threads).tobytes() == whole.tobytes()
        for start, size in ((0, 1), (1, 15), (7, 257), (100, 16_385)):
            part = slice(start, start + size)
            again = hybrid_scores(cosine[part], age[part], scope[part], decay_rate=rate[part])
            assert again.tobytes() == whole[part].tobytes()
        for isa in native.isa_levels():
            for rates in (rate, rate[:0]):
                out = np.empty_like(cosine)
                assert native.hybrid_scores(cosine, age, scope, rates, weights, 0.5, *tables, 1, out, isa)
                expected = whole if len(rates) else hybrid_scores(cosine, age, scope)
                assert out.tobytes() == expected.tobytes()


def test_many_scopes():
    names = [f"s{i}" for i in range(256)]
    decays = {name: 1e-6 * (i + 1) for i, name in enumerate(names)}
    weights = {name: i / 255 for i, name in enumerate(names)}
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 256, 1000, np.uint8)
    age = rng.random(1000) * 1e6
    found = hybrid_scores(np.full(1000, 0.5), age, codes, decays=decays, scope_weights=weights)
    expected = [
        reference.hybrid_score(0.5, a, decays[names[c]], weights[names[c]]) for a, c in zip(age, codes, strict=True)
    ]
    assert found.tolist() == pytest.approx(expected, abs=1e-12)
    more = dict.fromkeys([*names, "x"], 0.5)
    with pytest.raises(ValueError, match="1 to 256 scopes, not 257"):
        hybrid_scores([0.5], [0.0], "x", decays=more, scope_weights=more)


@given(st.floats(0, 1), st.floats(0, 1e7), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_the_monotone_loop(cosine, age, delta, low, high):
    """Section 6: higher confidence, lower decay rate, higher score at equal base; exactly, rounding included."""
    low, high = sorted((low, high))
    rates = 1.0 - np.array([low, high])  # decay_rate = 1 - confidence
    scores = hybrid_scores([cosine] * 2, [age] * 2, "session", decay_rate=rates, delta=delta)
    assert scores[0] <= scores[1]


def test_extreme_decays_give_no_nan():
    for dtype in (np.float32, np.float64):
        for decay in (1e39, 1.7e308):
            decays = dict.fromkeys(SCOPES, decay)
            scores = hybrid_scores(np.ones(2, dtype), np.array([0.0, 1e30], dtype), "session", decays=decays)
            assert scores.tolist() == pytest.approx([1.0, 0.8], abs=1e-6)


def test_boundary_cases_of_the_document():
    cosine, age, scope = [0.9, 0.1], [5.0, 1.0], ["global", "session"]
    assert hybrid_scores(cosine, age, scope, weights=(1, 0, 0)).tolist() == cosine
    assert hybrid_scores(cosine, age, scope, weights=(0, 0, 1)).tolist() == [0.3, 1.0]
    no_penalty = hybrid_scores(cosine, age, scope, decay_rate=[1.0, 1.0], delta=0.0)
    assert no_penalty.tobytes() == hybrid_scores(cosine, age, scope).tobytes()
    assert hybrid_scores(cosine, age, scope, decay_rate=[1.0, 1.0], delta=1.0).tolist() == [0.0, 0.0]
    assert hybrid_scores([1.0], [0.0], "session").tolist() == [1.0]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([1, math.nan], [0, 0], "user"), {}, ValueError, r"cosine\[1\] is nan"),
        (([1, 1], [0, math.inf], "user"), {}, ValueError, r"age_seconds\[1\] is inf"),
        (([1, 1], [0, 0], "user"), {"decay_rate": [0, -math.inf]}, ValueError, r"decay_rate\[1\] is -inf"),
        (([1, 1], [0], "user"), {}, ValueError, "age_seconds has 1 elements but cosine has 2"),
        (([1], [0], "team"), {}, ValueError, "scope must be one of .* not 'team'"),
        (([1, 1], [0, 0], ["user", "team"]), {}, ValueError, r"scope\[1\] must be one of .* not 'team'"),
        (([1, 1], [0, 0], [0, 3]), {}, ValueError, r"scope\[1\] is 3, but there are 3 scopes"),
        (([1, 1], [0, 0], [-1, 0]), {}, ValueError, r"scope\[0\] is -1"),
        (([1, 1], [0, 0], np.array([0, 9], np.uint8)), {}, ValueError, r"scope\[1\] is 9"),
        (([1, 1], [0, 0], ["user"]), {}, ValueError, r"scope has shape \(1,\) but cosine has 2"),
        (([1], [0], "user"), {"delta": 1.5}, ValueError, "delta must be from 0 to 1, not 1.5"),
        (([1], [0], "user"), {"weights": (1, 2)}, ValueError, "weights must be three numbers, not 2"),
        (([1], [0], "user"), {"weights": (1, math.nan, 0)}, ValueError, r"weights\[1\] must be .* not nan"),
        (([1], [0], "user"), {"decays": {"user": 1.0}}, ValueError, "decays and scope_weights must name the same"),
        (([1], [0], "user"), {"decays": dict.fromkeys(SCOPES, -1.0)}, ValueError, r"decays\['session'\] must be"),
        (([1], [0], "user"), {"scope_weights": dict.fromkeys(SCOPES, 1.1)}, ValueError, r"scope_weights\['session'\]"),
        (([1], [0], "user"), {"threads": -1}, ValueError, "threads must be between 0"),
    ],
)
def test_bad_input(arguments, options, error, message):
    with pytest.raises(error, match=message):
        hybrid_scores(*arguments, **options)
    with pytest.raises(error, match=message):
        hybrid_top_k(*arguments, 1, **options)


@pytest.mark.parametrize(("k", "error"), [(0, ValueError), (-3, ValueError), (1.5, TypeError), (True, TypeError)])
def test_bad_k(k, error):
    with pytest.raises(error, match="k must be"):
        hybrid_top_k([1.0], [0.0], "user", k)


def test_empty_in_empty_out():
    assert hybrid_scores([], [], []).shape == (0,)
    assert hybrid_scores([], [], "user", decay_rate=[]).shape == (0,)
    assert hybrid_top_k([], [], [], 5).rows.tolist() == []


def test_out_and_odd_layouts():
    base = np.random.default_rng(0).random((100, 2))
    contiguous = hybrid_scores(base[:, 0].copy(), base[:, 1].copy(), "user")
    assert hybrid_scores(base[:, 0], base[:, 1], "user").tobytes() == contiguous.tobytes()
    frozen = base[:, 0].copy()
    frozen.flags.writeable = False
    out = np.empty(100)
    assert hybrid_scores(frozen, base[:, 1], "user", out=out) is out
    assert out.tobytes() == contiguous.tobytes()
