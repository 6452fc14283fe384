import numpy as np
import pytest
from hypothesis import given, settings
from strategies import MESSY_TEXT, PROSE

from hsca_fast._native import text as native
from hsca_fast._native.strings import StringColumn
from hsca_fast._reference import features as reference

FUNCTION_WORDS = frozenset(native.function_words())


def found(texts: list[str], dim: int) -> np.ndarray:
    return native.hashed_features(StringColumn.from_sequence(tuple(texts), 0, 1 << 30), dim)


def assert_equal_to_reference(texts: list[str], dim: int) -> None:
    rows = found(texts, dim)
    assert rows.dtype == np.float32
    assert rows.shape == (len(texts), dim)
    # Counts, one division, one root, one rounding: not a bit may differ.
    np.testing.assert_array_equal(rows, reference.hashed_features(texts, dim, FUNCTION_WORDS))


@settings(max_examples=200)
@given(PROSE)
def test_equal_to_reference_on_sentences(text):
    assert_equal_to_reference([text], 4096)


@settings(max_examples=300)
@given(MESSY_TEXT)
def test_equal_to_reference_on_messy_text(text):
    text = "".join(ch for ch in text if ch.isascii() or len(ch.encode("utf-8", "replace")) == 2)
    assert_equal_to_reference([text, ""], 256)


@pytest.mark.parametrize("dim", [1, 3, 4096, 16384])
def test_equal_to_reference_in_other_scripts(dim):
    texts = [
        "日本語です。漢字！",
        "Привет, мир. Как дела?",
        "L’été: naïve Straße!",
        "snake_case --- a" + "b" * 40,
        "!?",
        "",
    ]
    assert_equal_to_reference(texts, dim)


def test_rows_have_length_one_or_zero():
    rows = found(["One cat. Two cats!", " \n", "...", "x" * 1000], 512)
    np.testing.assert_allclose((rows**2).sum(axis=1), [1, 0, 1, 1], rtol=1e-6)


def test_words_order_case_and_marks():
    rows = found(["the cat sat", "The Cat SAT", "the sat cat", "the cat sat!"], 8192)
    np.testing.assert_array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[0], rows[2])
    assert not np.array_equal(rows[0], rows[3])


@pytest.mark.parametrize("dim", [0, -1, (1 << 20) + 1])
def test_impossible_dimensions(dim):
    with pytest.raises(ValueError, match="dim"):
        found(["word"], dim)


def test_no_rows():
    assert found([], 64).shape == (0, 64)
