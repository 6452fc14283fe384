import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import MESSY_TEXT, PROSE

import hsca_fast
from hsca_fast import ModelWarning, ScoringConfig, explain_text, score_text, score_texts

BATCHES = st.lists(PROSE | MESSY_TEXT, max_size=12)


def assert_same(a: hsca_fast.ScoreBatch, b: hsca_fast.ScoreBatch) -> None:
    for name, column in a.columns().items():
        assert column.tobytes() == b.columns()[name].tobytes(), name


@settings(max_examples=60)
@given(BATCHES)
def test_threads_and_batch_size_change_no_bit(texts):
    whole = score_texts(texts)
    for threads in (2, 3, 7, 0):
        assert_same(whole, score_texts(texts, threads=threads))
    alone = [score_texts([text]) for text in texts]
    for name, column in whole.columns().items():
        assert column.tolist() == [part.columns()[name][0] for part in alone]


@settings(max_examples=60)
@given(BATCHES, st.integers(0, 5), st.integers(0, 5))
def test_arrow_gives_the_same_as_a_list(texts, skip, size):
    texts = [t.encode("utf-8", "replace").decode() for t in texts]
    expected = score_texts(texts[skip : skip + size])
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        array = pa.array(texts, kind)
        assert_same(expected, score_texts(array.slice(skip, size)))
        chunked = pa.chunked_array([array[:3], array[3:]], kind)
        assert_same(expected, score_texts(chunked.slice(skip, size)))
        assert_same(expected, score_texts(pa.table({"text": chunked}).slice(skip, size)))


def test_nulls_come_out_as_nulls():
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        batch = score_texts(pa.chunked_array([["One.", "Two."], ["x", None, "A much longer row of text."]], kind))
        assert batch.valid.tolist() == [True, True, True, False, True]
        assert batch.to_dict()["n_words"] == [1, 1, 1, None, 6]
        assert pa.table(batch)["n_words"].to_pylist() == [1, 1, 1, None, 6]


def test_result_is_arrow_without_copies():
    batch = score_texts(["One two. Three four.", "Five."])
    table = pa.table(batch)
    assert table.column_names == list(batch.columns())
    assert table.to_pydict() == batch.to_dict()
    address = table["layer1_score"].chunk(0).buffers()[1].address
    assert address == batch.layer1_score.ctypes.data
    del batch
    assert table["n_words"].to_pylist() == [4, 1]


def test_other_arrow_libraries():
    polars = pytest.importorskip("polars")
    texts = ["A first text. With two sentences.", None, "Grüße aus Köln an alle Freunde."]
    batch = score_texts(polars.Series(texts))
    assert batch.valid.tolist() == [True, False, True]
    frame = polars.DataFrame(batch)
    assert frame["n_words"].to_list() == [6, None, 6]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["ok", 3], r"texts\[1\] must be str, not int"),
        (["ok", None], r"texts\[1\] must be str, not NoneType"),
        (["ok", b"x"], r"texts\[1\] must be str, not bytes"),
        ("one string", "texts must be a sequence of str, not str"),
        (7, "texts must be a sequence of str, not int"),
        (pa.array([1, 2]), "format 'l'"),
        (pa.array([], pa.int64()), "format 'l'"),
        (pa.array(["a"]).dictionary_encode(), "dictionary-encoded"),
        (pa.table({"a": ["x"], "b": ["y"]}), r"2 Arrow columns \('a', 'b'\)"),
    ],
)
def test_wrong_types_are_named(texts, message):
    with pytest.raises(TypeError, match=message):
        score_texts(texts)


@pytest.mark.parametrize("threads", [-1, 1025])
def test_bad_thread_counts_are_named(threads):
    with pytest.raises(ValueError, match=f"threads must be between 0 .* and 1024, not {threads}"):
        score_texts([], threads=threads)


def test_config_of_another_type_is_named():
    with pytest.raises(TypeError, match="config must be a ScoringConfig, not dict"):
        score_texts([], config={"window": 5})


def test_empty_batches():
    for empty in (
        [],
        (),
        np.array([], dtype=object),
        pa.array([], pa.string()),
        pa.chunked_array([], pa.string()),
    ):
        batch = score_texts(empty)
        assert len(batch) == 0
        assert pa.table(batch).num_rows == 0


def test_numpy_arrays():
    texts = ["One two.", "Three."]
    expected = score_texts(texts)
    assert_same(expected, score_texts(np.array(texts, dtype=object)))
    assert_same(expected, score_texts(np.array(texts)))
    assert_same(expected, score_texts(np.array(texts, dtype=np.dtypes.StringDType())))
    with pytest.raises(ValueError, match="texts must have one dimension, not 2"):
        score_texts(np.array([texts]))


def test_lone_surrogates_are_replaced_and_counted():
    batch = score_texts(["a \ud800 b \udfff.", "pair \ud83d\ude00 here", "plain"])
    assert batch.replaced == 4
    assert batch.n_words.tolist() == [2, 2, 1]


@pytest.mark.parametrize(
    "text", ["\0", "\ufeff", "\ufeffOne two three.", "a\0b. c", " " * 5000, "\n" * 5000, "." * 5000]
)
def test_odd_characters_are_ordinary(text):
    batch = score_texts([text])
    assert 0.0 <= batch.layer1_score[0] <= 1.0


def test_a_million_tiny_texts():
    batch = score_texts(["a b.", "Cat.", ""] * 333_334, threads=2)
    assert len(batch) == 1_000_002
    assert batch.n_words[:3].tolist() == [2, 1, 0]


@pytest.mark.parametrize("unit", ["word ", "Some words. ", "x", "日", ". ", '" ', "(", "\n ", "1.", "a'"])
def test_time_is_linear_in_length(unit):
    def seconds(n: int) -> float:
        text = unit * (n // len(unit))
        best = 1e9
        for _ in range(3):
            start = time.thread_time()  # other people's work on the machine does not count
            score_texts([text])
            best = min(best, time.thread_time() - start)
        return best

    # Quadratic behaviour would give 64.
    assert seconds(3_200_000) < 32 * max(seconds(400_000), 0.002)


def test_interrupt_answers_quickly():
    text = "Some words make a sentence here. " * 1_000_000
    texts = [text] * 50

    def interrupt() -> None:
        time.sleep(0.3)
        signal.raise_signal(signal.SIGINT)
        sent.append(time.process_time())

    for threads in (1, 2):
        sent: list[float] = []
        sender = threading.Thread(target=interrupt)
        sender.start()
        with pytest.raises(KeyboardInterrupt):
            score_texts(texts, threads=threads)
        answered = time.process_time()  # work of this process: what else the machine does is not counted
        sender.join()
        # 0.2 s is the promise; all of it would take more than ten.
        assert answered - sent[0] < 1.0


def test_many_python_threads_at_once():
    texts = ["The cat sat on the mat. The mat was red. A red cat slept."] * 200
    expected = score_texts(texts)
    with ThreadPoolExecutor(8) as pool:
        for batch in pool.map(lambda _: score_texts(texts, threads=2), range(32)):
            assert_same(expected, batch)


def test_window_reaches_the_kernel():
    text = "Red cats chase small grey mice daily. Small mice fear red cats. Grey cats chase mice at night."
    narrow = score_texts([text], config=ScoringConfig(window=2)).layer1_score[0]
    wide = score_texts([text], config=ScoringConfig(window=50)).layer1_score[0]
    assert narrow != wide


@pytest.mark.parametrize(
    "function", [score_text, explain_text, lambda text, config: score_texts([text], config=config)]
)
def test_the_warning_of_a_model_points_at_the_users_line(function):
    config = ScoringConfig(domain_model=lambda texts: None)
    with pytest.warns(ModelWarning) as caught:
        function("A cat sat.", config=config)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("text", ["😀", ":)", " :) ", "I went home. 😀", "I went home.\n\n:)\n", "😀\n\nI went home."])
def test_what_has_no_words_has_a_tone(text):
    batch = score_texts([text])
    assert batch.sentiment_score[0] > 0.05
    assert "emotional_tone_positive" in batch.nuance_flags(0)


@pytest.mark.parametrize("text", ["", " ", "...", "?!"])
def test_a_text_without_words_or_feeling_has_no_tone(text):
    assert (score_texts([text]).sentiment_score[0], score_texts([text]).nuance_flags(0)) == (0.0, [])
