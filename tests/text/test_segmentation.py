import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import MESSY_TEXT, in_both_unicode_versions, table_differs

import hsca_fast
from hsca_fast._native import text as native
from hsca_fast._reference import segmentation as reference

FUNCTION_WORDS = frozenset(native.function_words())


def assert_equal_to_reference(text: str) -> None:
    found = hsca_fast.segment(text)
    paragraphs, sentences, words = reference.segment(text, FUNCTION_WORDS)
    assert list(map(tuple, found.words.tolist())) == words
    assert list(map(tuple, found.sentences.tolist())) == sentences
    assert list(map(tuple, found.paragraphs.tolist())) == paragraphs


@settings(max_examples=1500)
@given(MESSY_TEXT)
def test_equal_to_reference(text):
    assert_equal_to_reference(in_both_unicode_versions(text))


@settings(max_examples=40)
@given(MESSY_TEXT)
def test_equal_to_reference_across_windows_of_masks(text):
    # 4 KiB is one stretch of the scanner: every alignment of the text against its end.
    text = in_both_unicode_versions(text)
    for padding in (4096 - 66, 4096 - 3, 4095, 8191):
        assert_equal_to_reference("a" + " " * padding + text)


def test_character_classes_agree_with_this_unicode_database():
    different = [cp for cp in range(0x110000) if not 0xD800 <= cp < 0xE000 and table_differs(chr(cp))]
    if unicodedata.unidata_version == native.unicode_version():
        assert different == []
    # Another version may only differ where one of the two has no character, or re-sorted a handful.
    assert sum(unicodedata.category(chr(cp)) != "Cn" for cp in different) < 6000


@settings(max_examples=300)
@given(MESSY_TEXT)
def test_simd_levels_agree(text):
    data = text.encode("utf-8", "replace")
    scalar = native.segment(data, "scalar")
    for level in ("baseline",):
        for a, b in zip(scalar, native.segment(data, level), strict=True):
            np.testing.assert_array_equal(a, b)


@settings(max_examples=300)
@given(MESSY_TEXT)
def test_spans_are_ordered_and_inside(text):
    found = hsca_fast.segment(text)
    for spans in (found.paragraphs, found.sentences):
        flat = spans.ravel()
        assert (np.diff(flat) >= 0).all()
    for spans in (found.paragraphs, found.sentences, found.words):
        assert (spans[:, 0] < spans[:, 1]).all()
        assert spans.size == 0 or 0 <= spans.min() <= spans.max() <= len(text)


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"abc\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"a\x80b", b"\xed\xa0\x80", b"\xc0\xaf."]
)
def test_malformed_utf8_is_no_word(data):
    words = native.segment(data)[2]
    for begin, end in words:
        assert data[begin:end].isascii()


def sentences_of(text: str) -> list[str]:
    return [text[a:b] for a, b in hsca_fast.segment(text).sentences]


def words_of(text: str) -> list[str]:
    return [text[a:b] for a, b in hsca_fast.segment(text).words]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Dr. Smith met Mrs. Jones at 5 p.m. on Monday. They left.", 2),
        ("It costs $3.50. That is cheap!", 2),
        ("J. R. R. Tolkien wrote it. He was English.", 2),
        ("See example.com/index.html for v1.2.3 of file.txt please.", 1),
        ("He lives in the U.S. Army base.", 1),
        ("He lives in the U.S. The base is old.", 2),
        ("“Really?” she asked. “Yes.” He nodded.", 3),
        ("Wait... what? No!", 2),
        ("Wrapped text goes\non over lines. Then it ends.", 2),
        ("A title\n\nA paragraph.", 2),
        ("Items:\n- one\n- two\n1. three\n2. four", 5),
        ("# Heading\nText follows. More.", 3),
        ("これは文です。次の文です！", 2),
        ("यह वाक्य है। दूसरा वाक्य।", 2),
        ("هل هذا سؤال؟ نعم.", 2),
        ("Fig. 3 shows it (cf. Table 2). Good.", 2),
        ("", 0),
        ("... --- !!!", 0),
    ],
)
def test_sentence_counts(text, count):
    assert len(sentences_of(text)) == count, sentences_of(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't well-known 3.14 1,000 snake_case", ["don't", "well-known", "3.14", "1,000", "snake_case"]),
        ("'quoted' -dash- trailing-", ["quoted", "dash", "trailing"]),
        ("🙂 ok 👍🏽 → ± ok2", ["ok", "ok2"]),
        ("日本語 漢", ["日本", "本語", "漢"]),
        ("naïve Straße l’été", ["naïve", "Straße", "l’été"]),
        ("a..b 1.2. x,y", ["a", "b", "1.2", "x", "y"]),
    ],
)
def test_words(text, words):
    assert words_of(text) == words


def test_a_sentence_is_cut_after_a_thousand_words():
    assert len(sentences_of("word " * 2500)) == 3
    assert_equal_to_reference("word " * 2500)


def test_segment_refuses_other_types():
    with pytest.raises(TypeError, match="text must be str, not bytes"):
        hsca_fast.segment(b"abc")
