from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import MESSY_TEXT

import hsca_fast
from hsca_fast._native import text as native
from hsca_fast._native.strings import StringColumn
from hsca_fast._reference import sentiment as reference

TABLES = Path(__file__).parents[2] / "csrc" / "src" / "text" / "sentiment_lexicon.inc"
LEXICON = reference.Lexicon.from_tables(TABLES.read_text("utf-8"))


def compounds(texts: list[str]) -> list[float]:
    return native.sentiment_compounds(StringColumn.from_sequence(tuple(texts), 0, 1 << 40)).tolist()


# The examples of vaderSentiment 3.3.2's own demonstration with the compounds that it prints.
PUBLISHED = [
    ("VADER is smart, handsome, and funny.", 0.8316),
    ("VADER is smart, handsome, and funny!", 0.8439),
    ("VADER is very smart, handsome, and funny.", 0.8545),
    ("VADER is VERY SMART, handsome, and FUNNY.", 0.9227),
    ("VADER is VERY SMART, handsome, and FUNNY!!!", 0.9342),
    ("VADER is VERY SMART, uber handsome, and FRIGGIN FUNNY!!!", 0.9469),
    ("VADER is not smart, handsome, nor funny.", -0.7424),
    ("The book was good.", 0.4404),
    ("At least it isn't a horrible book.", 0.431),
    ("The book was only kind of good.", 0.3832),
    ("The plot was good, but the characters are uncompelling and the dialog is not great.", -0.7042),
    ("Today SUX!", -0.5461),
    ("Today only kinda sux! But I'll get by, lol", 0.5249),
    ("Make sure you :) or :D today!", 0.8633),
    ("Catch utf-8 emoji such as 💘 and 💋 and 😁", 0.875),
    ("Not bad at all", 0.431),
    ("Sentiment analysis has never been good.", -0.3412),
    ("Sentiment analysis has never been this good!", 0.5672),
    ("Most automated sentiment analysis tools are shit.", -0.5574),
    ("With VADER, sentiment analysis is the shit!", 0.6476),
    ("Other sentiment analysis tools can be quite bad.", -0.5849),
    ("On the other hand, VADER is quite bad ass", 0.802),
    ("VADER is such a badass!", 0.4003),
    ("Without a doubt, excellent idea.", 0.7013),
    ("Roger Dodger is one of the most compelling variations on this theme.", 0.2944),
    ("Roger Dodger is at least compelling as a variation on the theme.", 0.2263),
    ("Roger Dodger is one of the least compelling variations on this theme.", -0.1695),
    ("Not such a badass after all.", -0.2584),
    ("Without a doubt, an excellent idea.", 0.7013),
]

TRICKY = [
    "", " ", "\n\n", "!", "???", "but", "no", "No", "NO", "kind of", "kind", "least", "never", "GOOD", "good", "Good!", "!good",
    "good? good?? good???", "Is it good????", "wow!!!!!!!!", "no good", "no, good", "No good or bad.", "no x or good", "no x nor good",
    "no x and good", "no no no", "no no good", "No fun. No love, no hope!", "kind of good", "it is kind of good", "sort of nice weather",
    "just enough love for all", "a kind of great day", "the kind of hope", "most kind OF you", "least good", "the least good", "at least good",
    "very least good", "At Least Good", "never so good", "never this good", "never ever so good", "never was this happy", "is this happy",
    "and so very happy", "it was so happy", "that this terrible crime", "without doubt good", "without a doubt good", "without any real doubt good",
    "without joy", "despite the pain", "isn't it sad", "ISN'T IT SAD", "isn’t it sad", "couldn't've been happier", "xn'ty happy", "n't good",
    "VERY good", "VERY GOOD", "VERY BAD day", "EXTREMELY happy people", "SLIGHTLY BAD day", "really really really good", "very not good",
    "barely alive and hardly happy", "The party was the bomb", "they are to die for friends", "cake to die for today", "by the bus stop again",
    "we saw the bus stop", "oh well then yeah right", "yeah right", "that was a kiss of death", "kiss of death", "with a beating heart",
    "a a a beating heart", "bad ass", "he is a bad ass dude", "so bad ass love", "love but hate", "love love but love love",
    "good bad good but bad good bad", "hurt but hurt but hurt", "good but GOOD but good", "But good", "good but", "good, but. bad",
    "nice nice but happy :) but sad :(", "1.6 gladness but 0.8 ok", ":) :( :D :P ;) <3 </3 :'( (: XD xD =D", "(good)", '"good"', "“good”",
    "good-bad", "good/bad", "good,bad", "good\u00a0bad", "good\u3000bad", "good\u200bbad", "good\u2028bad", "good\x1cbad", "good\x85bad",
    "good\x0ebad", "\ufeffgood", "go\u00adod", "good\u0301", "ɢood", "ＧＯＯＤ", "GOOD ＤＡＹ", "ÉTÉ GOOD", "été GOOD", "ǅ GOOD", "ⅷ GOOD",
    "Ⅷ GOOD", "ª GOOD", "漢字 GOOD", "1 GOOD", "GOOD 1", "GOOD :)", "\u212aIND MEN", "\u212aind", "not \u212aind", "\u212aind of", "sharK\u212a",
    "İLL", "ill", "😀", "😀😀", "😀😡", "a😀", "😀a", " 😀 ", "\t😀", "\n😀good", "good😀", "good😀good", "❤", "❤️", "👍🏽", "👨‍👩‍👧", "🇺🇸",
    "not 😀", "NOT 😀 x", "very 💘!", "🆗 🆒", "🔛 ‼ ⁉", "© ® ™ ℹ", "love© love®", "🅰 GOOD", "Ⓜ GOOD", "🙅 kind", "😂 but 😭", "but😀 good",
    "x" * 70 + " good", "." * 70 + "good" + "!" * 70, "good" + "x" * 70, "not " + "." * 90 + "good", "é" * 60 + " good", " " * 100 + "good",
    "GOOD \u212a", "GOOD 1\u212a", "GOOD 😀", "GOOD " * 40 + "😀", "GOOD " * 40 + "\u212a", "x" * 70 + "😀 good", "not good " * 300 + "😀 bad",
    "extraordinarily-unhappy-ish", "disappointments", "incomprehensibility love", "f@ck sh!t a$$", "o_O O_o o.O 8-) :-Þ :Þ", "^urs", "can't stand",
    "fed up", "( '}{' )", "--<--<@ @>-->--", "\0good\0", "good \0 bad", "love " * 60 + "but " + "hate " * 60, "good bad great " * 40 + "but ok",
]  # fmt: skip

WORDS = sorted(LEXICON.valences)
MODIFIERS = sorted(
    {*reference.STRENGTHENING, *reference.WEAKENING, *reference.NEGATIONS}
    | {word for phrase in (*reference.IDIOMS, *reference.WEAKENING_PAIRS) for word in phrase}
    | set("no or nor least at very never so this without doubt kind of but But BUT a the it x".split())
)
TOKENS = (
    st.sampled_from(WORDS)
    | st.sampled_from(MODIFIERS)
    | st.sampled_from(["good", "bad", "love", "hate", "kind", "no", "but", "not", "very", "never", "so", "this"])
    | st.sampled_from(sorted(LEXICON.emoji))
    | st.sampled_from([":)", ":(", "é", "É", "\u212a", "\ufe0f", "漢", "12", "can’t", "ﬁne", "İ", "ß"])
)
CASED = st.tuples(TOKENS, st.sampled_from([str, str, str, str.upper, str.title])).map(lambda pair: pair[1](pair[0]))
GLUE = st.sampled_from([" "] * 20 + [", ", ". ", "! ", "? ", "!!! ", "?? ", "\n", "\t", " (", ') "', "", "-", "'", "\u00a0", "\u2003", "…"])  # fmt: skip
RATED = st.lists(st.tuples(CASED, GLUE), max_size=40).map(lambda parts: "".join(a + b for a, b in parts))


@pytest.mark.parametrize(("text", "expected"), PUBLISHED)
def test_published_examples(text, expected):
    assert reference.sentiment(text, LEXICON).rounded == expected
    assert round(compounds([text])[0], 4) == expected


def test_tricky_sentences_equal_the_reference():
    assert compounds(TRICKY) == [reference.compound(text, LEXICON) for text in TRICKY]


# The operations are the same in the same order: the results are equal, not close.
@settings(max_examples=600)
@given(RATED)
def test_rated_words_equal_the_reference(text):
    assert compounds([text]) == [reference.compound(text, LEXICON)]


@settings(max_examples=300)
@given(MESSY_TEXT)
def test_messy_text_equals_the_reference(text):
    text = text.encode("utf-8", "replace").decode()
    assert compounds([text]) == [reference.compound(text, LEXICON)]


@settings(max_examples=300)
@given(st.binary(max_size=300))
def test_any_bytes_have_a_score_in_range(data):
    text = data.decode("utf-8", "replace")
    (found,) = compounds([text])
    assert -1.0 <= found <= 1.0


def test_many_texts_are_scored_one_by_one():
    together = compounds(TRICKY * 3)
    assert together == [compounds([text])[0] for text in TRICKY] * 3
    assert native.sentiment_compounds(StringColumn.from_sequence((), 0, 1)).dtype == np.float64


def test_contrast_changes_the_first_equal_value():
    assert reference.contrast([1.0, 1.0, 0.0, 1.0], 2) == [0.5, 0.5, 0.0, 1.5]
    assert reference.contrast([1.6, 0.8, 0.0], 2) == [0.4, 0.8, 0.0]


@pytest.fixture(scope="module")
def analyzer():
    package = pytest.importorskip("vaderSentiment.vaderSentiment")
    return package.SentimentIntensityAnalyzer()


def test_tables_are_the_package_s(analyzer):
    assert len(analyzer.lexicon) == 7506
    assert all(analyzer.lexicon[word] == valence for word, valence in LEXICON.valences.items())
    # A key is missing exactly when no text can contain it as a token.
    for word in analyzer.lexicon.keys() - LEXICON.valences.keys():
        assert [token.lower() for token in reference.tokenize(word)] != [word]
    assert {key: text for key, text in analyzer.emojis.items() if len(key) == 1} == LEXICON.emoji


def test_reference_equals_the_package_on_tricky_sentences(analyzer):
    for text in [text for text, _ in PUBLISHED] + TRICKY:
        assert reference.sentiment(text, LEXICON).rounded == analyzer.polarity_scores(text)["compound"], text


@settings(max_examples=600)
@given(RATED)
def test_reference_equals_the_package(analyzer, text):
    # Half a unit of the last decimal may fall either way: since Python 3.12 the package's sum() rounds otherwise.
    assert abs(reference.compound(text, LEXICON) - analyzer.polarity_scores(text)["compound"]) <= 0.5e-4 + 1e-12


@settings(max_examples=200)
@given(st.lists(RATED | st.sampled_from(["😀", ":)", "\n\n", "!!", "I left.", "It rains. "]), max_size=6).map(" ".join))
def test_sentiment_of_a_text_equals_the_reference(text):
    text = text.encode("utf-8", "replace").decode()
    sentences = hsca_fast.segment(text).sentences.tolist()
    expected = reference.text_sentiment(text, sentences, LEXICON)
    assert hsca_fast.score_texts([text]).sentiment_score[0] == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert len(hsca_fast.explain_text(text).sentence_compounds) == len(sentences)
