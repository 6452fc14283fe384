import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from libravdb_vectors import recorded

from hsca_fast._reference import compaction as reference
from hsca_fast.memory.preservation import Preservation, decay_rate, preservation, summary_confidence
from hsca_fast.ranking import hybrid_scores


@recorded("preservation")
def test_recorded_preservation(case):
    inputs, output = case["input"], case["output"]
    kept = preservation(np.float32(inputs["summary_vector"]), np.float32(inputs["source_vectors"]))
    assert kept.align == pytest.approx(output["q_align"], abs=1e-6)
    assert kept.cover == pytest.approx(output["q_cover"], abs=1e-6)
    is_abstractive = inputs["method"] == "onnx-t5"
    assert (output["final_method"] == inputs["method"]) == (not is_abstractive or kept.passes())
    if output["final_method"] == inputs["method"]:
        decoder = inputs["conf_t5"] if is_abstractive else None
        confidence = summary_confidence(kept, decoder_confidence=decoder)
        assert confidence == pytest.approx(output["confidence"], abs=1e-6)
        assert decay_rate(confidence) == pytest.approx(output["decay_rate"], abs=1e-6)


@recorded("compaction_eval_table")
def test_published_table(case):
    inputs, output = case["input"], case["output"]
    kept = Preservation(inputs["q_align"], inputs["q_cover"])
    confidence = summary_confidence(kept, decoder_confidence=inputs["conf_t5"])
    assert confidence == pytest.approx(output["recomputed"], rel=1e-12)
    assert confidence == pytest.approx(output["confidence_rounded4"], abs=2e-4)
    assert kept.passes(0.65)
    assert kept.passes(0.75)
    assert kept.passes(0.85) == ("cross_domain" not in case["name"])


VECTORS = st.integers(1, 6).flatmap(
    lambda d: st.lists(
        st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=d, max_size=d), min_size=2, max_size=12
    )
)


@given(VECTORS)
def test_equals_the_definition(vectors):
    summary, sources = vectors[0], vectors[1:]
    if any(0 < abs(x) < 1e-100 for row in vectors for x in row):  # their squares vanish in the reference
        return
    kept = preservation(summary, sources)
    centre = reference.mean(sources)
    if max(map(abs, centre)) > 1e-9 * max(abs(x) for row in sources for x in row):  # else all digits cancel
        assert kept.align == pytest.approx(reference.align(summary, sources), abs=1e-6)
    assert kept.cover == pytest.approx(reference.cover(summary, sources), abs=1e-12)
    assert -1.0 <= kept.align <= 1.0
    assert 0.0 <= kept.cover <= 1.0
    assert kept.confidence == pytest.approx(reference.preservation_confidence(kept.align, kept.cover), abs=1e-15)


def test_equals_the_definition_closely():
    rows = np.random.default_rng(0).normal(size=(21, 768)) + 0.3
    kept = preservation(rows[0], rows[1:])
    assert kept.align == pytest.approx(reference.align(rows[0].tolist(), rows[1:].tolist()), rel=1e-12)
    assert kept.cover == pytest.approx(reference.cover(rows[0].tolist(), rows[1:].tolist()), rel=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_scale_does_not_matter(scale):
    kept = preservation([3 * scale, 4 * scale], [[3.0, 4.0], [4.0, -3.0]])
    assert kept.align == pytest.approx(math.sqrt(0.5), rel=1e-14)
    assert kept.cover == 0.5


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(-2, 2) | st.none(), st.floats(0, 1))
def test_confidence_is_bounded(align, cover, decoder, weight):
    confidence = summary_confidence(Preservation(align, cover), decoder_confidence=decoder, weight=weight)
    assert 0.0 <= confidence <= 1.0
    assert 0.0 <= decay_rate(confidence) <= 1.0


def test_zero_vectors_and_no_sources():
    assert preservation([0.0, 0.0], [[1.0, 0.0]]) == Preservation(0.0, 0.0)
    assert preservation([1.0, 0.0], [[1.0, 0.0], [-1.0, 0.0]]) == Preservation(0.0, 0.5)
    assert preservation([1.0, 0.0], []) == Preservation(0.0, 0.0)
    assert preservation([1.0, 0.0], []).confidence == 0.0


# Section 6: the part of the quality loop that is an obligation of the code.
@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=8, unique=True),
    st.floats(0.001, 1),
    st.floats(0, 1),
    st.floats(0, 1e6),
    st.sampled_from(["session", "user", "global"]),
)
def test_higher_confidence_never_scores_lower(confidences, delta, cosine, age, scope):
    confidences.sort()
    decays = [decay_rate(confidence) for confidence in confidences]
    assert decays == sorted(decays, reverse=True)
    n = len(confidences)
    scores = hybrid_scores([cosine] * n, [age] * n, [scope] * n, decay_rate=decays, delta=delta).tolist()
    assert scores == sorted(scores)


@pytest.mark.parametrize("delta", [0.25, 0.5, 1.0])
def test_higher_confidence_scores_higher_exactly(delta):
    """Eighths are exact in binary, so that every step of the loop can be written down."""
    confidences = [i / 8 for i in range(9)]
    decays = [decay_rate(confidence) for confidence in confidences]
    assert decays == [1 - i / 8 for i in range(9)]
    base, scored = (
        hybrid_scores([0.8] * 9, [0.0] * 9, ["session"] * 9, decay_rate=rates, delta=delta).tolist()
        for rates in ([0.0] * 9, decays)
    )
    multipliers = [1 - delta * decay for decay in decays]
    assert scored == [score * multiplier for score, multiplier in zip(base, multipliers, strict=True)]
    assert all(low < high for low, high in pairwise(scored))
    assert all(1 - delta <= multiplier <= 1 for multiplier in multipliers)


def test_better_kept_summaries_score_higher():
    """The whole way: vectors to preservation to confidence to decay to score."""
    sources = [[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.6, 0.8, 0.0]]
    angles = [0.0, 0.3, 0.6, 0.9, 1.2, 1.5]
    summaries = [[0.8 * math.cos(a), 0.6 * math.cos(a), math.sin(a)] for a in angles]
    decays = [decay_rate(summary_confidence(preservation(summary, sources))) for summary in summaries]
    assert decays == sorted(decays)
    scores = hybrid_scores([0.5] * 6, [60.0] * 6, ["user"] * 6, decay_rate=decays).tolist()
    assert all(high > low for high, low in pairwise(scores))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: preservation([1.0], [[1.0, 2.0]]), "source_vectors have 2 dims but summary_vector has 1"),
        (lambda: preservation([[1.0]], [[1.0]]), "summary_vector must have 1 dimension, not 2"),
        (lambda: preservation([1.0], [1.0]), "source_vectors must have 2 dimensions, not 1"),
        (lambda: preservation([1.0, 1.0], [[1.0, 1.0], [1.0, float("nan")]]), r"source_vectors\[1, 1\] is nan"),
        (lambda: preservation([float("inf")], [[1.0]]), r"summary_vector\[0\] is inf"),
        (lambda: summary_confidence(Preservation(1, 1), decoder_confidence=float("nan")), "decoder_confidence must be finite"),
        (lambda: summary_confidence(Preservation(1, 1), weight=1.5), "weight must be between 0 and 1, not 1.5"),
        (lambda: decay_rate(1.5), "confidence must be between 0 and 1, not 1.5"),
        (lambda: decay_rate(float("nan")), "confidence must be between 0 and 1, not nan"),
        (lambda: Preservation(1, 1).passes(2), "threshold must be between -1 and 1, not 2"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
