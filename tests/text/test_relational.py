from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import MESSY_TEXT, PROSE

import hsca_fast
from hsca_fast._native import text as native
from hsca_fast._reference import relational as reference
from hsca_fast._reference import segmentation

FUNCTION_WORDS = frozenset(native.function_words())


def reference_scores(text: str, window: int = 5) -> reference.Relational:
    _, sentences, words = segmentation.segment(text, FUNCTION_WORDS)
    folded = [[] for _ in sentences]
    unspaced = set()
    at = 0
    for begin, end in words:
        while end > sentences[at][1]:
            at += 1
        word = segmentation.fold(text[begin:end])
        folded[at].append(word)
        if segmentation.char_class(text[begin]) == "unspaced":
            unspaced.add(word)
    return reference.relational(folded, FUNCTION_WORDS, unspaced=frozenset(unspaced), window=window)


def assert_equal_to_reference(text: str, window: int = 5) -> None:
    expected = reference_scores(text, window)
    found = hsca_fast.relational_weights(text, window=window)
    # Sums of at most a few thousand float64 terms: 1e-12 leaves room for the order of summation only.
    assert found.layer1_score == pytest.approx(expected.layer1_score, rel=1e-12, abs=1e-14)
    np.testing.assert_allclose(found.sentence_scores, expected.sentence_scores, rtol=1e-11, atol=1e-13)
    assert found.short_chunk == expected.short
    assert len(found.blocks) == len(expected.blocks)
    for a, b in zip(found.blocks, expected.blocks, strict=True):
        assert (a.n_sentences, a.n_tokens) == (b.n, b.tokens)
        assert a.breadth == pytest.approx(b.breadth, rel=1e-12)
        assert a.clustering == pytest.approx(b.clustering, rel=1e-11, abs=1e-13)
        assert a.carriage == b.carriage
        assert a.continuity == pytest.approx(b.continuity, rel=1e-12, abs=1e-13)
    batch = hsca_fast.score_texts([text], config=hsca_fast.ScoringConfig(window=window))
    assert batch.layer1_score[0] == found.layer1_score


@settings(max_examples=300)
@given(PROSE)
def test_equal_to_reference_on_sentences(text):
    assert_equal_to_reference(text)
    assert_equal_to_reference(text, window=2)


@settings(max_examples=300)
@given(MESSY_TEXT)
def test_equal_to_reference_on_messy_text(text):
    text = "".join(ch for ch in text if ch.isascii() or len(ch.encode("utf-8", "replace")) == 2)
    assert_equal_to_reference(text, window=3)


@settings(max_examples=200)
@given(PROSE | MESSY_TEXT)
def test_in_range(text):
    weights = hsca_fast.relational_weights(text)
    for values in (
        weights.word_scores,
        weights.sentence_scores,
        weights.paragraph_scores,
        [weights.layer1_score],
    ):
        values = np.asarray(values)
        assert ((values >= 0) & (values <= 1)).all()


@pytest.mark.parametrize("word", ["houses", "house", "walking", "man's", "реках", "cats", "quickly", "a" * 17 + "s"])
def test_stems_join_what_the_reference_joins(word):
    base = reference.stem(word)
    weights = hsca_fast.relational_weights(f"Green {word} grow. Blue {base} fall. Red {word} rest.")
    assert len(weights.words) == len(
        {reference.stem(w) for w in f"green {word} grow blue {base} fall red {word} rest".split()}
    )


def test_word_map_of_a_small_text():
    text = "Bees make honey. Honey feeds bees in winter.\n\nIn winter bees rest."
    weights = hsca_fast.relational_weights(text)
    assert weights.words == ["bees", "make", "honey", "feeds", "winter", "rest"]
    dense = weights.matrix.toarray()
    np.testing.assert_array_equal(dense, dense.T)
    assert dense[0].tolist() == [0, 1, 2, 1, 2, 1]
    np.testing.assert_allclose(
        weights.paragraph_scores, [weights.sentence_scores[:2].mean(), weights.sentence_scores[2]], rtol=1e-15
    )
    assert weights.layer1_score == pytest.approx(weights.sentence_scores.mean(), rel=1e-15)


def test_factors_by_hand():
    """Four sentences worked out on paper from the formulas of docs/formulas.md."""
    text = "The river runs. A river bends. The stone sits. The river stone shines."
    block = hsca_fast.relational_weights(text).blocks[0]
    assert (block.n_sentences, block.n_tokens) == (4, 9)
    # river returns twice (rate 2/3), gaps 1 and 2; stone once (rate 1/3), gap 1
    assert block.breadth == pytest.approx((0.5 + (1 / 3) / 2 + 2 / 3) / 9)
    # -ln(1 - e^-1/3) - 1 = 0.2607..., -ln(1 - e^-1) - 1 = -0.5413..., -ln(1 - e^-1/6) - 1 = 0.8739...
    assert block.clustering == pytest.approx((0.2606536 - 0.5413249 + 0.8739352) / 9, abs=1e-6)
    assert block.carriage == pytest.approx(5 / 11)


PARAGRAPH = (
    "The lighthouse keeper climbed the spiral stairs every evening. At the top of the stairs he lit the old lamp. "
    "The lamp threw its beam over the harbour, and the fishing boats steered by it. One night the lamp failed and "
    "the boats drifted toward the rocks. The keeper rang the harbour bell until his arms ached. Hearing the bell, "
    "the fishermen turned their boats away from the rocks. In the morning they brought the keeper fresh fish and a "
    "new wick for his lamp."
)


def score(text: str) -> float:
    return float(hsca_fast.score_texts([text]).layer1_score[0])


@pytest.mark.parametrize("times", [2, 5, 40])
def test_repetition_changes_nothing(times):
    assert score("\n\n".join([PARAGRAPH] * times)) == pytest.approx(score(PARAGRAPH), rel=1e-12)


def test_degenerate_texts_are_defined():
    assert score("") == 0.0
    assert score("the of and") == 0.0
    assert score("word") == reference.SHORT_SCORE
    assert score("One sentence only.") == reference.SHORT_SCORE
    assert score("The same sentence again. " * 1000) == reference.SHORT_SCORE


def test_strangers_lower_the_score_steadily():
    sentences = [s + "." for s in PARAGRAPH.rstrip(".").split(". ")]
    strangers = [
        "Copper prices rose again in March.", "Her violin needed two new strings.", "Nobody had mowed that lawn for weeks.",
        "The committee postponed its verdict.", "Basil grows best in full sun.", "A train whistled beyond the quarry.",
        "He never learned to swim.",
    ]  # fmt: skip
    curve = [score(" ".join(strangers[:k] + sentences[k:])) for k in range(len(sentences) + 1)]
    assert curve[0] > 0.5
    assert curve[-1] < 0.2
    assert all(later <= earlier + 0.05 for earlier, later in pairwise(curve)), curve


@pytest.mark.parametrize("window", [1, 0, -3, 1001, 10**9])
def test_window_out_of_range_is_named(window):
    with pytest.raises(ValueError, match=f"window must be between 2 and 1000, not {window}"):
        hsca_fast.relational_weights("text", window=window)


def test_window_of_another_type_is_named():
    with pytest.raises(TypeError, match="window must be an int, not float"):
        hsca_fast.ScoringConfig(window=5.0)
