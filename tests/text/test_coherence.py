"""Coherence: the native layer against the reference, parts worked out by hand, and the order of the kinds."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import MESSY_TEXT, PROSE, in_both_unicode_versions

import hsca_fast
from hsca_fast._native import text as native
from hsca_fast._reference import coherence as reference

FUNCTION_WORDS = frozenset(native.function_words())
TABLES = reference.Tables(order_words=native.order_words(), **native.coherence_tables())
PARTS = ("length", "pronouns", "punctuation", "clauses", "edges", "extent", "known", "letters", "order", "score")

PARAGRAPH = (
    "The harbour was built by the monks in the twelfth century, and for three hundred years it was the only safe place "
    "on that coast. When the river silted up, the merchants moved their ships to the south, but the fishermen stayed. "
    "They repaired the walls themselves, with stones that they took from the abbey, and they paid nobody for them. "
    "Visitors who walk along the quay today can still see the marks of the chisels, although most of the houses behind "
    "it were pulled down after the war. It is a quiet place now, and those who live there would not have it otherwise."
)
SENTENCE = "The fishermen repaired the walls of the old harbour."
FRAGMENT = "walls of the old"


def parts_of(text: str) -> reference.Coherence:
    found = hsca_fast.explain_text(text).coherence
    return reference.Coherence(**{name: getattr(found, name) for name in PARTS})


def assert_equal_to_reference(text: str) -> None:
    expected = reference.coherence(text, TABLES, FUNCTION_WORDS)
    found = parts_of(text)
    for name in PARTS:
        # The kernel's own exp is within a few units in the last place, steep gates make that 1e-12.
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-12, abs=1e-13), (name, text)
    assert hsca_fast.score_texts([text]).coherence_score[0] == found.score


@settings(max_examples=150)
@given(PROSE)
def test_equals_reference_on_sentences(text):
    assert_equal_to_reference(text)


@settings(max_examples=400)
@given(MESSY_TEXT)
def test_equals_reference_on_messy_text(text):
    assert_equal_to_reference(in_both_unicode_versions(text))


@pytest.mark.parametrize(
    "text",
    [
        PARAGRAPH,
        SENTENCE,
        FRAGMENT,
        "",
        "?!",
        "(He), — 'she'... it; They! 7.5% of X1 NATO's pneumonoultramicroscopicsilicovolcanoconiosis 1st",
        "word " * 2500,
        "日本語です。漢字！ Mixed 東京 text.",
        "Привет, мир. Как дела?",
        SENTENCE + " " + SENTENCE + " " + PARAGRAPH + " " + SENTENCE,
        "x" * 5000 + " and " + "ab" * 3000,
    ],
)
def test_equals_reference(text):
    assert_equal_to_reference(text)


def test_parts_worked_out_by_hand():
    found = parts_of("He left.")
    assert found.pronouns == 0.5  # one pronoun, nobody it could stand for: (0 + 1) / (1 + 1)
    assert found.edges == 1.0  # a capital and a stop
    assert found.extent == 2 / (2 + 15)
    assert found.length == 2 / 12  # rises to 1 at twelve words
    assert found.punctuation == 1 - (0.5 - 0.4) / (1.2 - 0.4)  # half a mark a word
    assert found.clauses == 0.5  # one clause of two
    assert parts_of("The captain left. He smiled.").pronouns == 1.0
    assert parts_of("left the house").edges == 0.0


def test_a_sentence_counts_once():
    assert parts_of((SENTENCE + " ") * 200) == parts_of(SENTENCE)


def shuffled(text: str, seed: int) -> str:
    words = text.split()
    random.Random(seed).shuffle(words)
    return " ".join(words)


def noise(seed: int) -> str:
    rng = random.Random(seed)
    return " ".join("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(80))


def test_kinds_keep_their_order():
    gibberish, salad, fragment, sentence, paragraph = hsca_fast.score_texts(
        [noise(0), shuffled(PARAGRAPH, 0), FRAGMENT, SENTENCE, PARAGRAPH]
    ).coherence_score
    assert gibberish < 0.02
    assert salad < 0.1
    assert salad < fragment < 0.35
    assert 0.4 < sentence < 0.65
    assert paragraph > 0.8


def test_disorder_lowers_the_score():
    real = hsca_fast.score_texts([PARAGRAPH]).coherence_score[0]
    assert (hsca_fast.score_texts([shuffled(PARAGRAPH, seed) for seed in range(20)]).coherence_score < real / 2).all()
    assert (hsca_fast.score_texts([noise(seed) for seed in range(20)]).coherence_score < 0.05).all()


@settings(max_examples=100)
@given(MESSY_TEXT)
def test_range(text):
    parts = parts_of(text)
    assert all(0.0 <= getattr(parts, name) <= 1.0 for name in PARTS)


def test_threads_and_batches_agree():
    texts = [PARAGRAPH, SENTENCE, FRAGMENT, noise(1), ""] * 50
    one = hsca_fast.score_texts(texts).coherence_score
    np.testing.assert_array_equal(one, hsca_fast.score_texts(texts, threads=3).coherence_score)
    np.testing.assert_array_equal(one[:5], [hsca_fast.score_texts([t]).coherence_score[0] for t in texts[:5]])


@pytest.mark.parametrize(
    "text",
    [
        "Dom stał na zboczu wzgórza, a z okien widać było jezioro. Babcia gotowała kawę każdego ranka, zanim inni się "
        "obudzili, a dzieci biegły na brzeg, gdy tylko wzeszło słońce. Wieczorem wszyscy siedzieli na werandzie.",
        "Ev tepenin yamacında duruyordu ve pencerelerinden göl görünüyordu. Büyükanne her sabah diğerleri uyanmadan önce "
        "kahve pişirirdi, çocuklar güneş doğar doğmaz kıyıya koşardı.",
        "Talo seisoi mäen rinteellä, ja sen ikkunoista näkyi järvelle asti. Isoäiti keitti kahvia joka aamu ennen kuin "
        "muut heräsivät, ja lapset juoksivat rantaan heti kun aurinko nousi.",
    ],
    ids=["Polish", "Turkish", "Finnish"],
)
def test_languages_of_accented_letters_are_no_letter_noise(text):
    assert_equal_to_reference(text)
    assert parts_of(text).score > 0.4
    # Shuffled ASCII letters stay what they are.
    letters = list(PARAGRAPH)
    random.Random(3).shuffle(letters)
    assert parts_of("".join(letters)).score < 0.02
