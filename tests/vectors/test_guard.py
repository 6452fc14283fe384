"""Vectors of two models are told apart."""

import pickle

import pytest

from hsca_fast.vectors.embedder import CallableEmbedder, HashEmbedder
from hsca_fast.vectors.guard import ModelMismatchError, ModelStamp, check_model
from hsca_fast.vectors.onnx import minilm_embedder
from hsca_fast.vectors.static import default_embedder

MPNET = ModelStamp("all-mpnet-base-v2", 768, "onnx:a")
MINILM = ModelStamp("all-MiniLM-L6-v2", 384, "onnx:b")


def test_same_model_passes():
    stamp = ModelStamp.of(default_embedder())
    assert stamp == ModelStamp(stamp.name, stamp.dim, stamp.fingerprint)
    assert check_model(stamp, ModelStamp.of(default_embedder()), strict=True) is None


def test_warning_names_both_sides_and_their_dimensions():
    warning = check_model(MPNET, MINILM)
    assert warning.startswith("ingest model: all-mpnet-base-v2 (768), query model: all-MiniLM-L6-v2 (384)")
    assert "unreliable" in warning


def test_strict_refuses_and_says_which():
    with pytest.raises(ModelMismatchError, match=r"all-mpnet-base-v2 \(768\), .*MiniLM-L6-v2 \(384\)") as caught:
        check_model(MPNET, MINILM, strict=True)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.expected, copy.found, str(copy)) == (MPNET, MINILM, str(caught.value))


def test_two_models_of_384_dimensions_are_told_apart():
    minilm = ModelStamp.of(minilm_embedder())
    others = [
        HashEmbedder(384),
        CallableEmbedder(lambda texts: [[0.0] * 384 for _ in texts], name=minilm.name, dim=384),
        CallableEmbedder(lambda texts: [[0.0] * 384 for _ in texts], name=minilm.name, dim=384, fingerprint="mine:1"),
    ]
    assert len({minilm.fingerprint, *(other.fingerprint for other in others)}) == 4
    for other in others:
        warning = check_model(minilm, ModelStamp.of(other))
        assert minilm.name in warning
        assert other.name in warning
    # One name and one width: the fingerprints are what tells them apart, so they are shown.
    assert minilm.fingerprint in check_model(minilm, ModelStamp.of(others[1]))
    assert "mine:1" in check_model(minilm, ModelStamp.of(others[2]))


def test_bad_stamps_are_refused():
    for arguments in ((1, 2, "a"), ("a", "2", "b"), ("a", 2.0, "b"), ("a", True, "b"), ("a", 2, None)):
        with pytest.raises(TypeError, match="must be"):
            ModelStamp(*arguments)
    with pytest.raises(ValueError, match="dim must be at least 1, not 0"):
        ModelStamp("a", 0, "b")
