import math
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hsca_fast import HSCAEngine, ScoringConfig
from hsca_fast._native.strings import StringColumn
from hsca_fast._native.text import domain_sums
from hsca_fast._reference.domain import LinearModel
from hsca_fast.context.calibration import SNAPSHOT_PRESETS, calibrate_snapshot_threshold, split_by_coherence
from hsca_fast.context.paragraphs import best_cuts, paragraph_domains
from hsca_fast.text.kernel import linear_model, native_scorer

LAMP = "The lamp lit the harbour. Boats came into the harbour. Each boat had a lamp."
TURNS = [LAMP, "ok", "yes, and then?", LAMP + " The lamp was old.", "no", LAMP, "well", "hm"]


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.6, 0.72, 0.9, 1.0])
@pytest.mark.parametrize("most", [1, 2, 5, 20])
def test_splits_where_the_engine_does(threshold, most):
    engine = HSCAEngine(threshold, most)
    chunks = engine.ingest_turns(TURNS)
    ends = np.cumsum([len(s.chunks) for s in engine.get_macro_context()]).tolist()
    coherence = np.array([c.coherence_score for c in chunks])
    layer1 = np.array([c.layer1_score for c in chunks])
    found = split_by_coherence(coherence, layer1, threshold=threshold, max_buffer_chunks=most)
    assert found == [end for end in ends if end < len(TURNS)]


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=30), st.floats(0, 1), st.integers(1, 10))
def test_no_part_is_longer_than_the_buffer(scores, threshold, most):
    coherence, layer1 = np.array(scores).reshape(-1, 2).T
    edges = [0, *split_by_coherence(coherence, layer1, threshold=threshold, max_buffer_chunks=most), len(scores)]
    assert all(0 < b - a <= most for a, b in pairwise(edges)) or not scores


def test_calibration_finds_what_separates():
    talk = ["Good. Yes.", LAMP] * 5
    found = calibrate_snapshot_threshold([(talk, [2, 4, 6, 8])], max_buffer_chunks=20)
    assert found.pk == 0.0
    assert found.pk == min(found.pk_by_threshold.values())
    assert found.preset.max_buffer_chunks == 20


def test_calibration_of_nothing_is_refused():
    with pytest.raises(ValueError, match="empty"):
        calibrate_snapshot_threshold([])


@pytest.mark.parametrize(
    ("conversation", "options", "error", "names"),
    [
        ((["a", "b"], [5]), {}, ValueError, r"conversations_with_boundaries\[0\] has boundary 5, outside of 1 to 1"),
        ((["a", "b"], [1.5]), {}, TypeError, r"conversations_with_boundaries\[0\] has the boundary 1.5"),
        ((["a", "b"], [1]), {"max_buffer_chunks": 0}, ValueError, "max_buffer_chunks must be at least 1"),
    ],
)
def test_calibration_of_what_is_wrong(conversation, options, error, names):
    with pytest.raises(error, match=names):
        calibrate_snapshot_threshold([conversation], **options)


def test_presets_are_valid_engines():
    for preset in SNAPSHOT_PRESETS.values():
        HSCAEngine(preset.snapshot_coherence_threshold, preset.max_buffer_chunks)


def test_paragraph_domains_sees_both_topics():
    law = (
        "This Agreement shall be governed by the laws of the State of New York. The Licensee shall indemnify the Licensor against "
        "any breach of this Agreement, and either party may terminate it upon thirty days' written notice to the other party."
    )
    story = (
        "She ran down the stairs and threw open the door. Her brother stood in the rain, and he was laughing. 'You came back,' she "
        "whispered, and he took her hand and drew her out into the dark street where the horse was waiting for them both."
    )
    (found,) = paragraph_domains([f"{law}\n\n{story}"])
    assert {"legal", "narrative"} <= set(found)
    assert paragraph_domains([]) == []


def test_evidence_of_paragraphs_adds_up():
    column = StringColumn.from_sequence(
        ("One lamp.\n\nTwo boats came.", "One lamp.", "Two boats came.", ""), 0, 1 << 40
    )
    sums, words = domain_sums(native_scorer(ScoringConfig()), column)
    assert words.tolist() == [5, 2, 3, 0]
    np.testing.assert_allclose(sums[0], sums[1] + sums[2], rtol=0, atol=1e-9)
    assert not sums[3].any()


def test_margins_are_where_tags_begin():
    model = LinearModel.from_bytes((files("hsca_fast") / "data" / "domain_linear.bin").read_bytes())
    wanted = [b - math.log(t / (1 - t)) for b, t in zip(model.bias, model.threshold, strict=True)]
    np.testing.assert_allclose(linear_model().margins, wanted, rtol=0, atol=1e-12)
    assert linear_model().half_length == model.half_length


def test_cuts_are_where_the_evidence_changes():
    law = 1000.0 * (np.eye(10)[2] - np.eye(10)[5])
    sums = np.array([law, law, -law, -law])
    assert best_cuts(sums, np.full(4, 40, np.int32), np.full(4, 200)) == [2]
    assert best_cuts(sums, np.full(4, 40, np.int32), np.full(4, 40)) == []  # parts too short
    assert best_cuts(sums[:1], np.full(1, 40, np.int32), np.full(1, 400)) == []
