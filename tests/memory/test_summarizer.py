import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from libravdb_vectors import recorded

from hsca_fast._reference import compaction as reference
from hsca_fast.memory.summarizer import DENSITY, extractive_summary
from hsca_fast.ranking import estimate_tokens


@recorded("extractive_summary")
def test_recorded_extracts(case):
    if "error" in case["output"]:  # one turn: there an error, here it stands for itself
        assert extractive_summary(["T0"], case["input"]["vectors"]).text == "T0"
        return
    vectors = np.float32(case["input"]["vectors"])
    texts = [f"T{i}" for i in range(len(vectors))]
    extract = extractive_summary(texts, vectors, density=case["input"]["density"] or DENSITY)
    assert extract.text == case["output"]["text"]
    assert [texts[row] for row in extract.picked] == case["output"]["source_ids"]
    assert extract.similarity == pytest.approx(case["output"]["confidence"], abs=1e-6)
    assert not extract.is_cut


@given(
    st.lists(st.lists(st.integers(-4, 4), min_size=3, max_size=3), min_size=1, max_size=12),
    st.sampled_from([0.1, 0.25, 0.4, 0.5, 1.0]),
)
def test_equals_the_definition(vectors, density):
    texts = [str(i) for i in range(len(vectors))]
    extract = extractive_summary(texts, vectors, density=density)
    centre = reference.mean(vectors)
    nearness = [reference.cosine(vector, centre) for vector in vectors]
    expected = reference.extract_rows(vectors, density)
    # The same rows, but for near ties.
    assert sorted(nearness[row] for row in extract.picked) == pytest.approx(
        sorted(nearness[row] for row in expected), abs=1e-9
    )
    assert list(extract.picked) == sorted(extract.picked)
    assert extract.text == " ".join(texts[row] for row in extract.picked)
    assert 0.0 <= extract.similarity <= 1.0


SENTENCES = [
    "The lamp is lit.",
    "Gulls cry over the harbour.",
    "Rain",
    "supercalifragilistic" * 4,
    "漢字の文です。",
    "",
]


@given(
    st.lists(st.lists(st.sampled_from(SENTENCES), max_size=4).map(" ".join), min_size=1, max_size=8), st.integers(1, 40)
)
def test_cap_is_respected(texts, max_tokens):
    vectors = np.random.default_rng(len(texts)).normal(size=(len(texts), 4))
    extract = extractive_summary(texts, vectors, density=1.0, max_tokens=max_tokens)
    assert estimate_tokens(extract.text) <= max_tokens
    if extract.is_cut:
        (row,) = extract.picked
        assert texts[row].strip().startswith(extract.text)
    else:
        assert extract.text == " ".join(texts[row] for row in extract.picked)


def test_cut_after_a_sentence_and_nowhere_else():
    text = "The lamp is lit. The harbour is dark and the boats are out."
    assert extractive_summary([text], [[1.0]], max_tokens=5).text == "The lamp is lit."
    assert extractive_summary([text], [[1.0]], max_tokens=2).text == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"density": 0.0}, "density must be above 0 and at most 1, not 0.0"),
        ({"density": float("nan")}, "density"),
        ({"max_tokens": 0}, "max_tokens must be at least 1, not 0"),
        ({"vectors": [[1.0]]}, r"vectors must be one row for each of 2 texts, not of shape \(1, 1\)"),
        ({"vectors": [[1.0], [float("inf")]]}, r"vectors\[1, 0\] is inf"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        extractive_summary(**{"texts": ["a", "b"], "vectors": [[1.0], [2.0]]} | options)


def test_nothing():
    assert extractive_summary([], []).text == ""
