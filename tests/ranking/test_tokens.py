import numpy as np
import pyarrow as pa
import pytest
from golden import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import MESSY_TEXT

from hsca_fast import estimate_tokens
from hsca_fast._native import ranking as native
from hsca_fast._native.strings import StringColumn, text_lengths
from hsca_fast._reference import tokens as reference

TEXTS = MESSY_TEXT | st.text()


def clean(text):
    return "".join("\ufffd" if "\ud800" <= ch <= "\udfff" else ch for ch in text)


@pytest.mark.parametrize("name", cases("estimate_tokens"))
def test_recorded_host(name):
    given_, expected = cases("estimate_tokens")[name]
    # Pairs of surrogates are one character in Python; a lone one stays.
    text = given_["text"].encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert estimate_tokens(text) == expected["tokens"]
    assert reference.host_tokens(text) == expected["tokens"]


@pytest.mark.parametrize("name", cases("count_tokens"))
def test_recorded_sums(name):
    given_, expected = cases("count_tokens")[name]
    assert estimate_tokens([message["content"] for message in given_["messages"]]).sum() == expected["total"]


@pytest.mark.parametrize("name", cases("sidecar_tokens"))
def test_recorded_sidecar(name):
    given_, expected = cases("sidecar_tokens")[name]
    assert estimate_tokens(given_["text"], kind="sidecar") == expected["sidecar_floor"]


@given(st.lists(TEXTS, max_size=8))
def test_reference(texts):
    assert estimate_tokens(texts).tolist() == [reference.host_tokens(clean(t)) for t in texts]
    assert estimate_tokens(texts, kind="sidecar").tolist() == [reference.sidecar_tokens(t) for t in texts]
    coefficients = native.token_coefficients()
    expected = [reference.fitted_tokens(clean(t), coefficients) for t in texts]
    assert estimate_tokens(texts, kind="fitted").tolist() == expected
    features = native.token_features(StringColumn.from_sequence(tuple(texts), 0, 1 << 40))
    assert features.tolist() == [reference.token_features(clean(t)) for t in texts]


@given(st.binary(max_size=300))
def test_malformed_utf8_from_arrow(data):
    column = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, len(data)], np.int32)), pa.py_buffer(data)]
    )
    for kind in ("host", "sidecar", "fitted"):
        (tokens,) = estimate_tokens(column, kind=kind)
        # A byte is at most one accented letter and one word.
        assert 0 <= tokens <= (max(native.token_coefficients()) + 1) * len(data) + 1


@pytest.mark.parametrize("length", [0, 1, 31, 32, 33, 239, 240, 241, 480, 5000])
@pytest.mark.parametrize("filler", ["a", "a b", "é", "日", "😀x", ".\n"])
def test_lengths_around_blocks(length, filler):
    text = (filler * length)[:length]
    for end in ("", "x", "Я", "漢"):
        whole = text + end
        assert estimate_tokens(whole) == reference.host_tokens(whole)
        assert estimate_tokens(whole, kind="fitted") == reference.fitted_tokens(whole, native.token_coefficients())


@settings(max_examples=30)
@given(st.lists(TEXTS.map(clean), max_size=30))
def test_threads_arrow_and_arrays(texts):
    for kind in ("host", "sidecar", "fitted"):
        expected = estimate_tokens(texts, kind=kind)
        assert expected.dtype == np.int32
        assert estimate_tokens(texts, kind=kind, threads=3).tolist() == expected.tolist()
        assert estimate_tokens(pa.array(texts, pa.string()), kind=kind).tolist() == expected.tolist()
        assert estimate_tokens(np.array(texts, object), kind=kind).tolist() == expected.tolist()
        assert [estimate_tokens(text, kind=kind) for text in texts] == expected.tolist()


def test_lists_that_lie_of_their_length_or_items_are_asked_for_them():
    class Long(list):
        def __len__(self):
            return 100_000

    class Other(list):
        def __iter__(self):
            return iter(["x" * 400] * 2)

    assert estimate_tokens(Long(["a"] * 3), kind="sidecar").tolist() == [1, 1, 1]
    assert estimate_tokens(Other(["a", "b"]), kind="sidecar").tolist() == [100, 100]
    for texts in (Long(["a"]), [""] * 3):
        with pytest.raises((TypeError, ValueError), match=r"texts must be a list or tuple, not Long|3 elements, not 2"):
            text_lengths(texts, np.empty(2, np.int64))


def test_more_text_never_costs_less():
    text = "The lamp, lit in 1897, went out; nobody knew why. " * 40
    for kind in ("host", "sidecar", "fitted"):
        costs = estimate_tokens([text[:i] for i in range(len(text))], kind=kind)
        assert (np.diff(costs) >= 0).all()


def test_fitted_is_near_a_real_tokenizer():
    # cl100k_base gives 23 tokens (tools/validate_token_estimates.py).
    plain = "The keeper lit the lamp every evening at six, and the boats came home across the dark water one by one."
    assert estimate_tokens(plain, kind="fitted") == pytest.approx(23, abs=2)


def test_empty_and_nulls():
    assert estimate_tokens([]).shape == (0,)
    assert [estimate_tokens("", kind=kind) for kind in ("host", "sidecar", "fitted")] == [0, 1, 0]
    assert estimate_tokens(pa.array([None, "word"])).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: estimate_tokens("x", kind="exact"), ValueError, "kind must be 'host', 'sidecar' or 'fitted'"),
        (lambda: estimate_tokens(["x", 3]), TypeError, r"texts\[1\] must be str, not int"),
        (lambda: estimate_tokens(["x", None], kind="sidecar"), TypeError, r"texts\[1\] must be str, not NoneType"),
        (lambda: estimate_tokens(3, kind="sidecar"), TypeError, "texts must be a sequence of str"),
        (lambda: estimate_tokens(3), TypeError, "texts must be a sequence of str, not int"),
        (lambda: estimate_tokens(b"x"), TypeError, "texts must be a sequence of str, not bytes"),
        (lambda: estimate_tokens(["x"], threads=-1), ValueError, "threads must be between 0"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
