"""The static embedder against the reference, by hand, and whatever the order, the threads and the container."""

import signal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import MESSY_TEXT

from hsca_fast._reference.static_model import static_vector
from hsca_fast._reference.wordpiece import wordpiece
from hsca_fast.vectors.static import VOCABULARY, WEIGHTS, StaticEmbedder, default_embedder

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "##s", "dog", "fish", "."]


def make(folder, rows, scales, tokens=TOKENS, **options):
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    np.savez(folder / "model.npz", rows=rows, scales=scales)
    return StaticEmbedder(folder / "model.npz", folder / "vocab.txt", **options)


def small(folder, **options):
    rows = np.zeros((10, 4), np.int8)
    rows[5], rows[6], rows[7], rows[8] = [3, 4, 0, 0], [0, 0, 127, 0], [-3, -4, 0, 0], [0, 0, 0, -128]
    scales = np.array([0, 0, 0, 0, 0, 1, 0.5, 1, 2, 1], np.float32)
    return make(folder, rows, scales, **options)


def test_vectors_by_hand(tmp_path):
    found = small(tmp_path).embed_documents(["cat", "Cat cat .", "cat dog", "", "zebra", "fish", "cats"])
    inverse = 1 / np.sqrt(25 + 63.5**2)
    expected = [[0.6, 0.8, 0, 0], [0.6, 0.8, 0, 0], [0] * 4, [0] * 4, [0] * 4, [0, 0, 0, -1]]
    np.testing.assert_allclose(found, [*expected, [3 * inverse, 4 * inverse, 63.5 * inverse, 0]], atol=1e-7)
    assert found.dtype == np.float32


def test_prefix_of_dimensions_is_scaled_by_itself(tmp_path):
    assert small(tmp_path, dim=1).embed_documents(["cats", "fish"]).tolist() == [[1.0], [0.0]]


def test_bundled_model_and_reference_agree():
    embedder = StaticEmbedder(WEIGHTS, VOCABULARY, dim=48)
    with np.load(WEIGHTS) as model:
        rows, scales = model["rows"].tolist(), model["scales"].tolist()
    texts = ["The keeper lit the lamp.", "naïve café", "", "zzzzqx 🙂", "one " * 300]
    ids = embedder.tokenizer.ids
    expected = [static_vector(wordpiece(text, ids), rows, scales, 48) for text in texts]
    # float32 sums of a few hundred terms against float64.
    np.testing.assert_allclose(embedder.embed_documents(texts), expected, atol=2e-6)


@given(st.lists(MESSY_TEXT | st.text(), max_size=40), st.integers(2, 5))
@settings(max_examples=60)
def test_bits_do_not_depend_on_threads_or_batches(texts, threads):
    one = default_embedder()
    many = StaticEmbedder(WEIGHTS, VOCABULARY, threads=threads)
    together = one.embed_documents(texts)
    assert together.tobytes() == many.embed_documents(texts * 5)[: len(texts)].tobytes()
    for row, text in enumerate(texts):
        assert one.embed_query(text).tobytes() == together[row].tobytes()
    lengths = np.linalg.norm(together.astype(np.float64), axis=1)
    assert np.isfinite(together).all()
    assert ((lengths == 0) | (np.abs(lengths - 1) < 1e-5)).all()


def test_all_containers_give_the_same():
    texts = ["one cat", "zwei Hunde", "", "trois poissons"]
    embedder = default_embedder()
    wanted = embedder.embed_documents(texts).tobytes()
    for container in (
        tuple(texts),
        iter(texts),
        np.array(texts),
        pa.array(texts),
        pa.chunked_array([texts[:1], texts[1:]]),
    ):
        assert embedder.embed_documents(container).tobytes() == wanted
    assert embedder.embed_documents(pa.array(["one cat", None])).tobytes()[1024:] == bytes(1024)
    assert embedder.embed_documents(["a\ud800b"]).tobytes() == embedder.embed_documents(["a\ufffdb"]).tobytes()
    assert embedder.embed_documents([]).shape == (0, 256)


def test_bundled_model_knows_what_is_alike():
    pairs = [
        ("How do I reset my password?", "I forgot my login and cannot get into my account."),
        ("The surgeon removed the tumour.", "Doctors operated on the patient's cancer."),
        ("Interest rates rose last quarter.", "The central bank raised the cost of borrowing."),
        ("The cat slept on the sofa.", "A kitten was napping on the couch."),
        ("We hiked up the mountain at dawn.", "They climbed to the summit early in the morning."),
        ("The recipe needs two cups of flour.", "Add sugar and butter, then bake the cake."),
        ("The court dismissed the lawsuit.", "A judge threw out the legal case."),
        ("The band played its new album.", "Fans listened to the singer's latest songs."),
        ("The rocket reached orbit.", "A satellite was launched into space."),
        ("My train was an hour late.", "The railway apologised for the delay."),
    ]
    embedder = default_embedder()
    similarity = embedder.embed_documents([a for a, _ in pairs]) @ embedder.embed_documents([b for _, b in pairs]).T
    assert (similarity.argmax(axis=1) == np.arange(len(pairs))).all()
    assert (similarity.argmax(axis=0) == np.arange(len(pairs))).all()


def test_bundled_model_has_its_energy_in_front():
    embedder = default_embedder()
    vectors = embedder.embed_documents([f"{a} {b} {c}" for a in ("red", "fast", "old", "warm") for b in ("car", "river", "law", "song") for c in ("sinks", "grows", "ends")])  # fmt: skip
    energy = (vectors**2).mean(axis=0)
    quarters = energy.reshape(4, 64).sum(axis=1)
    assert (np.diff(quarters) < 0).all()
    assert quarters[0] > 0.4


def test_bundled_model_is_small_and_pinned():
    assert WEIGHTS.stat().st_size <= 8_000_000
    assert default_embedder() is default_embedder()
    assert default_embedder().fingerprint == "static:c8a02b30d7d963004a3a1cc571ce58cb"
    assert default_embedder().count_tokens("Hello world!") == 3


def test_fingerprint_sees_weights_vocabulary_and_dim(tmp_path):
    rows, scales = np.ones((10, 4), np.int8), np.ones(10, np.float32)
    other_rows, other_scales = rows.copy(), scales.copy()
    other_rows[3, 3], other_scales[9] = 2, 1.5
    made = [
        make(tmp_path, rows, scales),
        make(tmp_path, other_rows, scales),
        make(tmp_path, rows, other_scales),
        make(tmp_path, rows, scales, [*TOKENS[:-1], "!"]),
        make(tmp_path, rows, scales, dim=3),
    ]
    assert len({embedder.fingerprint for embedder in made}) == 5
    assert make(tmp_path, rows, scales).fingerprint == made[0].fingerprint


@pytest.mark.parametrize(
    ("rows", "scales", "message"),
    [
        (np.ones((9, 4), np.int8), np.ones(9, np.float32), "9 rows, but the vocabulary has 10"),
        (np.ones((10, 4), np.float32), np.ones(10, np.float32), "rows must be int8"),
        (np.ones((10, 0), np.int8), np.ones(10, np.float32), "rows must be int8 with two dimensions"),
        (np.ones((10, 4), np.int8), np.ones(9, np.float32), "scales must be float32"),
        (np.ones((10, 4), np.int8), np.full(10, np.nan, np.float32), r"scales of rows \[0, 1, 2, 3, 4\]"),
        (np.ones((10, 4), np.int8), np.full(10, np.inf, np.float32), "not finite"),
    ],
)
def test_bad_weights_are_refused(tmp_path, rows, scales, message):
    with pytest.raises(ValueError, match=message):
        make(tmp_path, rows, scales)


def test_other_files_and_options_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", vectors=np.ones(3))
    with pytest.raises(ValueError, match="'rows' and 'scales'"):
        StaticEmbedder(tmp_path / "other.npz", VOCABULARY)
    for dim, error in ((0, ValueError), (257, ValueError), (True, TypeError), (2.0, TypeError)):
        with pytest.raises(error, match="dim must be"):
            StaticEmbedder(WEIGHTS, VOCABULARY, dim=dim)
    with pytest.raises(TypeError, match="text must be str, not bytes"):
        default_embedder().embed_query(b"x")
    with pytest.raises(TypeError, match=r"texts\[1\] must be str, not NoneType"):
        default_embedder().embed_documents(["a", None])


def test_progress_reaches_the_end():
    seen = []
    default_embedder().embed_documents(
        ["word " * 1_000_000] * 8, progress=lambda done, total: seen.append((done, total))
    )
    assert len(seen) > 1
    assert seen[-1] == (8, 8)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_signal_stops_the_work(threads):
    class StoppedError(Exception):
        pass

    def handler(number, frame):
        raise StoppedError

    embedder = StaticEmbedder(WEIGHTS, VOCABULARY, threads=threads)
    column = pa.array(["word " * 20_000] * 2_000)  # seconds of work, were it not stopped
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(StoppedError):
            embedder.embed_documents(column)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert embedder.embed_documents(["still works"]).any()


def test_files_that_are_no_model_are_named(tmp_path):
    good = WEIGHTS.read_bytes()
    np.save(tmp_path / "rows.npy", np.zeros((3, 4), np.int8))
    (tmp_path / "cut.npz").write_bytes(good[: len(good) // 2])
    (tmp_path / "empty.npz").write_bytes(b"")
    for path in tmp_path.iterdir():
        with pytest.raises(ValueError, match=rf"{path.name}: a static model is"):
            StaticEmbedder(path, VOCABULARY)
    broken = tmp_path / "tokenizer.json"
    broken.write_text('{"model": ')
    with pytest.raises(ValueError, match=r"tokenizer\.json: not JSON"):
        StaticEmbedder(WEIGHTS, broken)


@pytest.mark.parametrize("act", ["embed_query", "count_tokens"])
def test_one_long_text_can_be_interrupted(act):
    text = "lighthouse keepers " * 4_000_000
    embedder = default_embedder()
    getattr(embedder, act)("warm")
    handler = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            getattr(embedder, act)(text)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
