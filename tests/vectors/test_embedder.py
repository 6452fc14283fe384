"""The protocol, and embedders that bring no weights."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hsca_fast.vectors.embedder import CallableEmbedder, Embedder, HashEmbedder, fingerprint
from hsca_fast.vectors.onnx import minilm_embedder
from hsca_fast.vectors.static import default_embedder


def lengths(texts):
    return [[len(text), text.count("e")] for text in texts]


EMBEDDERS = {
    "default": default_embedder,
    "minilm": minilm_embedder,
    "hash": HashEmbedder,
    "callable": lambda: CallableEmbedder(lengths, name="lengths", dim=2),
}


@pytest.mark.parametrize("make", EMBEDDERS.values(), ids=EMBEDDERS)
def test_every_embedder_keeps_the_protocol(make):
    embedder = make()
    assert isinstance(embedder, Embedder)
    assert embedder.fingerprint == make().fingerprint
    assert embedder.fingerprint.split(":")[0] in {"static", "onnx", "hash", "callable"}
    documents = embedder.embed_documents(pa.array(["one text", None, "another \ud800text".replace("\ud800", "")]))
    assert documents.shape == (3, embedder.dim)
    assert documents.dtype == np.float32
    assert np.isfinite(documents).all()
    query = embedder.embed_query("a lone \ud800 surrogate")
    assert query.shape == (embedder.dim,)
    assert query.dtype == np.float32
    assert embedder.embed_documents([]).shape == (0, embedder.dim)
    assert 0 <= embedder.count_tokens("one text") <= embedder.max_tokens
    for bad in ("one text", b"bytes", 3, [b"bytes"], [None]):
        with pytest.raises(TypeError, match="texts"):
            embedder.embed_documents(bad)
    for call in (embedder.embed_query, embedder.count_tokens):
        with pytest.raises(TypeError, match="text must be str, not int"):
            call(3)


def test_callable_is_called_in_batches_and_checked():
    calls = []

    def recorded(texts):
        calls.append(list(texts))
        return lengths(texts)

    seen = []
    embedder = CallableEmbedder(recorded, name="lengths", dim=2, batch_size=2, query_fn=lambda texts: [[7.0, 7.0]])
    found = embedder.embed_documents(["e", "ab", "\ud800e"], progress=lambda done, total: seen.append((done, total)))
    assert found.tolist() == [[1, 1], [2, 0], [2, 1]]
    assert calls == [["e", "ab"], ["\ufffde"]]
    assert seen == [(2, 3), (3, 3)]
    assert embedder.embed_query("x").tolist() == [7.0, 7.0]
    counted = CallableEmbedder(lengths, name="lengths", dim=2, count_tokens=len, max_tokens=5)
    assert (counted.count_tokens("four"), counted.max_tokens) == (4, 5)


def test_callable_results_of_the_wrong_shape_or_not_finite_are_refused():
    with pytest.raises(ValueError, match=r"shape \(3, 2\) for 3 texts of dim 3"):
        CallableEmbedder(lengths, name="lengths", dim=3).embed_documents(["a", "b", "c"])
    broken = CallableEmbedder(
        lambda texts: [[np.nan if t == "bad" else 1.0] for t in texts], name="b", dim=1, batch_size=2
    )
    with pytest.raises(ValueError, match=r"not finite for texts \[3\]"):
        broken.embed_documents(["a", "b", "c", "bad"])
    for options, error in (
        ({"dim": 0}, ValueError),
        ({"dim": 2.0}, TypeError),
        ({"name": ""}, ValueError),
        ({"batch_size": 0}, ValueError),
        ({"max_tokens": 0}, ValueError),
    ):
        with pytest.raises(error, match=next(iter(options))):
            CallableEmbedder(lengths, **{"name": "lengths", "dim": 2} | options)
    with pytest.raises(TypeError, match="fn must be callable"):
        CallableEmbedder(3, name="x", dim=2)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=30), max_size=6), st.integers(1, 64))
def test_hash_vectors_are_unit_or_zero_and_only_of_the_text(texts, dim):
    embedder = HashEmbedder(dim)
    found = embedder.embed_documents(texts)
    norms = np.linalg.norm(found, axis=1)
    assert ((np.abs(norms - 1) < 1e-5) | (norms == 0)).all()
    for row, text in zip(found, texts, strict=True):
        assert embedder.embed_query(text).tolist() == row.tolist()
    assert embedder.fingerprint.startswith("hash:")
    assert embedder.fingerprint != HashEmbedder(dim + 1).fingerprint


def test_fingerprints_read_parts_apart():
    assert fingerprint("x", b"ab", b"c") != fingerprint("x", b"a", b"bc")
    assert fingerprint("x", "1") != fingerprint("x", 1)
    assert fingerprint("x", 1) != fingerprint("y", 1)


def test_a_functions_buffer_stays_its_own():
    buffer = np.ones((1, 2), np.float32)
    vector = CallableEmbedder(lambda texts: buffer, name="b", dim=2).embed_query("x")
    buffer[:] = 7.0
    assert vector.tolist() == [1.0, 1.0]
