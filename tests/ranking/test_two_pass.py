import math

import numpy as np
import pytest
from golden import cases
from hypothesis import given
from hypothesis import strategies as st

from hsca_fast import (
    authority_weights,
    coarse_candidates,
    extract_keywords,
    keyword_coverage,
    second_pass_scores,
    second_pass_top_k,
)
from hsca_fast._native import ranking as native
from hsca_fast._reference import hybrid as reference_hybrid
from hsca_fast._reference import two_pass as reference

NOW = 1775000000000
AUTHORITY = cases("authority_weight")
# An access count above the largest of the corpus is no valid input: f stays in [0, 1] here.
CAPPED = {"acc 20 of max 10": 0.7}
TWO_PASS = cases("rank_two_pass")
REFUSED = {"lambda_r negative clamps to 0": "decay", "k values floor and clamp to 1": "k must be"}


def metadata_columns(metadata):
    def real(value, default):
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default

    ages = [(NOW - real(m.get("ts"), NOW)) / 1000 for m in metadata]
    access = [real(m.get("access_count"), 0.0) for m in metadata]
    authored = [real(m.get("authority"), 1.0 if m.get("authored") is True else 0.0) for m in metadata]
    return np.array(ages), np.array(access), np.array(authored)


@pytest.mark.parametrize("name", AUTHORITY)
def test_recorded_authority(name):
    given_, expected = AUTHORITY[name]
    opts = given_["opts"]
    found = authority_weights(
        *metadata_columns([given_["metadata"]]),
        weights=(opts["alphaR"], opts["alphaF"], opts["alphaA"]),
        decay=opts["authorityRecencyLambda"],
        max_access=opts["maxAccessCount"],
    )
    # f capped at 1 leaves 0.5 + 0.2 * ln(11)/ln(12).
    omega = 0.5 + 0.2 * math.log(11) / math.log(12) if name in CAPPED else expected["omega"]
    assert found[0] == pytest.approx(omega, abs=1e-12)


def ranked(items, opts, *, max_over="corpus", fallback=None):
    """(collection, id, score) in rank order for a recorded case, by the document's passes."""
    seen = {(item["metadata"].get("collection"), item["id"]): item for item in reversed(items)}
    items = [item for item in items if seen[item["metadata"].get("collection"), item["id"]] is item]
    items = [item for item in items if not math.isnan(item["score"])]
    similarity = np.array([item["score"] for item in items], np.float64)
    rows = coarse_candidates(similarity, k=opts.get("k1", 16), theta=opts.get("theta1", 0.2))
    ages, access, authored = metadata_columns([item["metadata"] for item in items])
    weights = [opts.get(f"authority{part}Weight", w) for part, w in
               (("Recency", 0.5), ("Frequency", 0.2), ("Authored", 0.3))]  # fmt: skip
    pool = access if max_over == "corpus" else access[rows]
    omega = authority_weights(
        ages[rows],
        access[rows],
        authored[rows],
        weights=fallback or weights,
        decay=opts.get("authorityRecencyLambda", 1e-5),
        max_access=pool.max(initial=0.0),
    )
    keywords = extract_keywords(opts["queryText"], kind="ascii")
    coverage = keyword_coverage(keywords, [items[row]["text"] for row in rows], kind="ascii")
    best = second_pass_top_k(similarity[rows], omega, coverage, opts.get("k2", 8), kappa=opts.get("kappa", 0.3))
    picked = [items[row] for row in rows[best.rows]]
    return [(i["metadata"].get("collection"), i["id"], s) for i, s in zip(picked, best.scores.tolist(), strict=True)]


@pytest.mark.parametrize("name", TWO_PASS.keys() - REFUSED.keys())
def test_recorded_two_pass(name):
    given_, expected = TWO_PASS[name]
    wanted = [(item.get("collection"), item["id"], item["finalScore"]) for item in expected]
    fallback = (0.7, 0.2, 0.1) if "all zero fall back" in name else None
    found = ranked(given_["items"], given_["opts"], max_over="pass 1", fallback=fallback)
    assert [f[:2] for f in found] == [w[:2] for w in wanted]
    assert [f[2] for f in found] == pytest.approx([w[2] for w in wanted], abs=1e-12)


@pytest.mark.parametrize("name", REFUSED)
def test_recorded_but_outside_the_domain(name):
    given_, _ = TWO_PASS[name]
    with pytest.raises((ValueError, TypeError), match=REFUSED[name]):
        ranked(given_["items"], given_["opts"])


def test_max_access_is_taken_over_the_whole_corpus():
    given_, expected = TWO_PASS["max access taken only over top-k1"]
    ((_, _, score),) = ranked(given_["items"], given_["opts"])
    assert score < expected[0]["finalScore"]
    assert score == pytest.approx(0.7 * (0.5 + 0.2 * math.log(4) / math.log(1002)), abs=1e-12)


def test_zero_authority_weights_fall_back_to_their_own_defaults():
    columns = [1e5, 2e5], [3, 0], [0.2, 1.0]
    assert authority_weights(*columns, weights=(0, -1, 0)).tobytes() == authority_weights(*columns).tobytes()


REALS = st.floats(-2, 2)


@given(
    st.lists(st.tuples(st.floats(-1e4, 1e9), st.floats(-3, 1e6) | st.integers(0, 50), REALS), max_size=50),
    st.tuples(REALS, REALS, REALS),
    st.floats(0, 1e-3),
    st.none() | st.floats(0, 1e6),
)
def test_authority_reference(rows, weights, decay, max_access):
    age, access, authored = (
        (np.array(column, np.float64) for column in zip(*rows, strict=True)) if rows else [np.empty(0)] * 3
    )
    most = max(0.0, access.max(initial=0.0)) if max_access is None else max_access
    expected = [
        reference.authority_weight(*row, most, weights=weights, decay=decay)
        for row in zip(age, access, authored, strict=True)
    ]
    found = authority_weights(age, access, authored, weights=weights, decay=decay, max_access=max_access)
    assert found.tolist() == pytest.approx(expected, abs=1e-12)
    assert ((found >= 0) & (found <= 1)).all()
    single = authority_weights(
        *(c.astype(np.float32) for c in (age, access, authored)),
        weights=weights,
        decay=decay,
        max_access=float(np.float32(most)),
    )
    assert single.dtype == np.float32
    assert ((single >= 0) & (single <= 1)).all()


def test_authority_cold_start_and_monotony():
    cold = authority_weights([0.0] * 3, [0, 0, 0], [0, 0, 0])
    assert cold.tolist() == [0.5] * 3
    more = authority_weights([0.0] * 100, np.arange(100), np.zeros(100))
    assert (np.diff(more) > 0).all()


@given(st.lists(st.tuples(REALS, REALS, REALS), max_size=50), st.floats(0, 1e6), st.integers(1, 60))
def test_second_pass_reference(rows, kappa, k):
    columns = [np.array(column) for column in zip(*rows, strict=True)] if rows else [np.empty(0)] * 3
    expected = [reference.second_pass_score(*row, kappa=kappa) for row in rows]
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-6)):
        typed = [column.astype(dtype) for column in columns]
        found = second_pass_scores(*typed, kappa=kappa)
        assert found.dtype == dtype
        assert found.tolist() == pytest.approx(expected, abs=tolerance)
        # 0 <= S <= omega <= 1 exactly, rounding included (7.6).
        omega = np.clip(typed[1], 0, 1)
        assert ((found >= 0) & (found <= omega)).all()
        best = second_pass_top_k(*typed, k, kappa=kappa)
        assert best.rows.tolist() == reference_hybrid.top_k(found.tolist(), k)
        assert best.scores.tobytes() == found[best.rows].tobytes()


def test_extreme_parameters_give_no_nan():
    for dtype in (np.float32, np.float64):
        column = np.array([0.0, 0.5, 1.0], dtype)
        for kappa in (0.0, 1e-300, 1e39, 1.7e308):
            scores = second_pass_scores(column, column, column, kappa=kappa)
            assert (scores <= column).all()
            assert scores[-1] == 1.0
        for decay in (1e39, 1.7e308):
            weights = authority_weights(column * 1e9, column, column, decay=decay, max_access=1.7e308)
            assert np.isfinite(weights).all()


def test_kappa_as_the_document_reads_it():
    similarity, authority = [0.8] * 2, [1.0] * 2
    assert second_pass_scores(similarity, authority, [0.0, 1.0], kappa=0.0).tolist() == [0.8, 0.8]
    half = second_pass_scores(similarity, authority, [0.0, 1.0], kappa=0.5)
    assert half[0] / half[1] == pytest.approx(2 / 3, rel=1e-15)
    assert second_pass_scores(similarity, authority, [0.0, 1.0], kappa=1.0).tolist() == [0.4, 0.8]


@given(st.lists(REALS | st.sampled_from([0.2, 0.5]), max_size=60), st.integers(1, 70), st.floats(-1, 1))
def test_coarse_reference(similarity, k, theta):
    assert coarse_candidates(similarity, k=k, theta=theta).tolist() == reference.coarse_candidates(
        similarity, k=k, theta=theta
    )


def test_threads_and_instruction_sets_change_no_bit():
    rng = np.random.default_rng(4)
    weights = np.array([0.5, 0.2, 0.3])
    for dtype in (np.float32, np.float64):
        a, b, c = (rng.normal(0.5, 0.5, 40_003).astype(dtype) for _ in range(3))
        whole = second_pass_scores(a, b, c)
        for threads in (2, 5):
            assert second_pass_scores(a, b, c, threads=threads).tobytes() == whole.tobytes()
            assert (
                second_pass_top_k(a, b, c, 50, threads=threads).rows.tolist()
                == second_pass_top_k(a, b, c, 50).rows.tolist()
            )
        authority = authority_weights(a * 1e5, b * 100, c, weights=weights)
        for isa in native.isa_levels():
            out = np.empty_like(a)
            assert native.second_pass_scores(a, b, c, 0.3, 1, out, isa)
            assert out.tobytes() == whole.tobytes()
            most = float(max((b * 100).max(), 0))
            assert native.authority_weights(a * dtype(1e5), b * dtype(100), c, weights, 1e-5, most, out, isa)
            assert out.tobytes() == authority.tobytes()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: second_pass_scores([1, math.nan], [1, 1], [1, 1]), r"similarity\[1\] is nan"),
        (lambda: second_pass_scores([1, 1], [1, 1], [-math.inf, 1]), r"coverage\[0\] is -inf"),
        (lambda: second_pass_top_k([1, 1], [1, math.inf], [1, 1], 1), r"authority\[1\] is inf"),
        (lambda: second_pass_scores([1, 1], [1], [1, 1]), "authority has 1 elements but similarity has 2"),
        (lambda: second_pass_scores([1], [1], [1], kappa=-0.1), "kappa must be at least 0, not -0.1"),
        (lambda: second_pass_scores([1], [1], [1], kappa=math.inf), "kappa must be at least 0, not inf"),
        (lambda: second_pass_top_k([1], [1], [1], 0), "k must be at least 1, not 0"),
        (lambda: coarse_candidates([math.nan]), r"similarity\[0\] is nan"),
        (lambda: coarse_candidates([0.5], theta=1.5), "theta must be from -1 to 1, not 1.5"),
        (lambda: coarse_candidates([0.5], k=0), "k must be at least 1"),
        (lambda: authority_weights([0, 0], [1, math.nan], [0, 0]), r"access_count\[1\] is nan"),
        (lambda: authority_weights([0, 0], [1, math.inf], [0, 0]), r"access_count\[1\] is inf"),
        (lambda: authority_weights([0, math.nan], [1, 1], [0, 0]), r"age_seconds\[1\] is nan"),
        (lambda: authority_weights([0], [1], [math.nan]), r"authored\[0\] is nan"),
        (lambda: authority_weights([0], [1], [0], max_access=-1), "max_access must be at least 0, not -1"),
        (lambda: authority_weights([0], [1], [0], decay=-1e-5), "decay must be at least 0"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_empty_in_empty_out():
    assert authority_weights([], [], []).shape == (0,)
    assert second_pass_scores([], [], []).shape == (0,)
    assert second_pass_top_k([], [], [], 3).rows.tolist() == []
    assert coarse_candidates([]).tolist() == []
