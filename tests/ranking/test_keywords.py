import numpy as np
import pyarrow as pa
import pytest
from golden import cases
from hypothesis import given
from hypothesis import strategies as st
from strategies import MESSY_TEXT, table_differs

from hsca_fast import extract_keywords, keyword_coverage
from hsca_fast._reference import keywords as reference

KINDS = ("unicode", "ascii")
# Lone surrogates stay in; characters newer than this Python's tables do not.
TEXTS = (MESSY_TEXT | st.text()).map(
    lambda text: "".join(ch for ch in text if "\ud800" <= ch <= "\udfff" or not table_differs(ch))
)


@pytest.mark.parametrize("name", cases("extract_keywords"))
def test_recorded_keywords(name):
    given_, expected = cases("extract_keywords")[name]
    assert extract_keywords(given_["text"], kind="ascii") == expected["keywords"]
    assert [term for term, _ in reference.terms(given_["text"], kind="ascii")] == expected["terms"]


@pytest.mark.parametrize("name", cases("keyword_coverage"))
def test_recorded_coverage(name):
    given_, expected = cases("keyword_coverage")[name]
    keywords = extract_keywords(given_["query"], kind="ascii")
    found = keyword_coverage(keywords, [given_["text"]], kind="ascii")
    assert found[0] == pytest.approx(expected["coverage"], abs=1e-12)


def clean(text):
    return "".join("\ufffd" if "\ud800" <= ch <= "\udfff" else ch for ch in text)


@given(TEXTS, st.lists(TEXTS, max_size=5), st.integers(1, 6))
def test_reference(query, texts, min_length):
    for kind in KINDS:
        keywords = extract_keywords(query, kind=kind, min_length=min_length)
        assert keywords == reference.extract_keywords(clean(query), kind=kind, min_length=min_length)
        texts = [*texts, query]
        found = keyword_coverage(keywords, texts, kind=kind)
        assert found.tolist() == [reference.keyword_coverage(keywords, clean(t), kind=kind) for t in texts]
        assert found[-1] == (1.0 if keywords else 0.0)
        assert keyword_coverage(keywords, texts, kind=kind, threads=3).tolist() == found.tolist()


def test_unicode_terms():
    assert extract_keywords("Straße NAÏVE ΣΊΣΥΦΟΣ don't x2y_z") == ["strasse", "naïve", "σίσυφοσ", "don", "x2y_z"]
    assert extract_keywords("日本語 ok 漢") == ["日本", "本語", "漢"]
    assert extract_keywords("Привет, мир!") == ["привет", "мир"]
    assert extract_keywords("co\u00adoperate") == ["cooperate"]
    assert keyword_coverage(["本語"], ["これは日本語です"]).tolist() == [1.0]
    assert keyword_coverage(["STRASSE", "strasse"], ["Die Straße"]).tolist() == [1.0]


def test_arrow_numpy_and_nulls():
    texts = ["a token budget", "", "Token!"]
    expected = [1.0, 0.0, 0.5]
    for given_ in (texts, np.array(texts), pa.array(texts), pa.chunked_array([texts[:1], texts[1:]])):
        assert keyword_coverage(["token", "budget"], given_).tolist() == expected
    assert keyword_coverage(["token"], pa.array([None, "token"])).tolist() == [0.0, 1.0]


def test_many_keywords():
    words = [f"word{i}" for i in range(5000)]
    half = " ".join(words[::2])
    assert keyword_coverage(words, [half, "word1", ""]).tolist() == [0.5, 1 / 5000, 0.0]


def test_empty():
    assert extract_keywords("") == []
    assert keyword_coverage([], ["text", ""]).tolist() == [0.0, 0.0]
    assert keyword_coverage(["text"], []).shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: extract_keywords(b"x"), TypeError, "text must be str, not bytes"),
        (lambda: extract_keywords("x", kind="latin"), ValueError, "kind must be 'unicode' or 'ascii'"),
        (lambda: extract_keywords("x", min_length=0), ValueError, "min_length must be at least 1, not 0"),
        (lambda: keyword_coverage("word", ["x"]), TypeError, "keywords must be a sequence of str"),
        (lambda: keyword_coverage(["a", 2], ["x"]), TypeError, r"keywords\[1\] must be str, not int"),
        (lambda: keyword_coverage(["a"], ["x", None]), TypeError, r"texts\[1\] must be str, not NoneType"),
        (lambda: keyword_coverage(["a"], ["x"], kind="latin"), ValueError, "kind must be"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_keywords_that_differ_in_the_middle_only():
    # Every byte of a keyword counts in its place in the table: lists like this one took quadratic time.
    keywords = [f"abcdefgh{i:08d}abcdefgh" for i in range(30_000)]
    assert keyword_coverage(keywords, [" ".join(keywords[:300]), keywords[7].upper()]).tolist() == [0.01, 1 / 30_000]


def test_empty_keywords_are_none():
    assert keyword_coverage(["", "a"], ["a"]).tolist() == [1.0]
    assert keyword_coverage([""], ["a"]).tolist() == [0.0]


def test_words_that_begin_in_ascii_and_go_on_elsewhere():
    keywords = extract_keywords("naïve café x_1é ab漢字cd éab")
    assert keywords == ["naïve", "café", "x_1é", "漢字", "éab"]
    texts = ["NAÏVE", "caf", "x_1", "ab漢字", "é ab", "the Café, éAB"]
    assert keyword_coverage(keywords, texts).tolist() == [0.2, 0.0, 0.0, 0.2, 0.0, 0.4]
