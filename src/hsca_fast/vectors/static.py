"""Static embeddings: a vector a token, and their weighted mean a text."""

from __future__ import annotations

import os
import zipfile
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hsca_fast._native import embedding as _native
from hsca_fast._native.inputs import Texts, string_columns, thread_count
from hsca_fast._native.strings import StringColumn
from hsca_fast.data import PACKAGED
from hsca_fast.vectors.embedder import NO_LIMIT, Embedder, Progress, fingerprint, one_text
from hsca_fast.vectors.wordpiece import WordPiece

VOCABULARY = PACKAGED / "bert_uncased_vocab.txt"
"""The vocabulary of BERT uncased, of the bundled model and of all-MiniLM-L6-v2."""
WEIGHTS = PACKAGED / "static_minilm_256.npz"
"""The bundled static model; data/README.md says what it is and how it was made."""

# Beyond it a sum of rows could leave float32.
_MAX_SCALE = 1e20


class StaticEmbedder:
    """Mean of token vectors, scaled to length 1; native from the bytes of the text to the vector.

    Parameters
    ----------
    weights_path
        `.npz` with `rows` (int8 [tokens, width]) and `scales` (float32 [tokens]): a token's vector is its row times its
        scale, and the scale carries the token's weight in the mean.
    tokenizer_path
        Vocabulary of the rows: `vocab.txt` or `tokenizer.json` of an uncased BERT WordPiece tokenizer.
    dim
        Use this many leading dimensions; all when not given. The bundled model has its dimensions in order of energy.
    threads
        Worker threads of `embed_documents`; 0 takes every usable CPU. The result is the same for every number.
    name
        What the model is called; the weights' file name when not given.

    Examples
    --------
    >>> embedder = StaticEmbedder(WEIGHTS, VOCABULARY, dim=64)
    >>> a, b, c = embedder.embed_documents(["The cat sat.", "A kitten was sitting.", "Interest rates rose."])
    >>> bool(a @ b > a @ c)
    True
    """

    max_tokens = NO_LIMIT

    def __init__(
        self,
        weights_path: str | os.PathLike[str],
        tokenizer_path: str | os.PathLike[str],
        *,
        dim: int | None = None,
        threads: int = 1,
        name: str | None = None,
    ) -> None:
        self.tokenizer = WordPiece(tokenizer_path)
        self._rows, self._scales = _load_weights(weights_path, len(self.tokenizer))
        width = self._rows.shape[1]
        dim = width if dim is None else dim
        if isinstance(dim, bool) or not isinstance(dim, int):
            raise TypeError(f"dim must be an int, not {type(dim).__name__}")
        if not 1 <= dim <= width:
            raise ValueError(f"dim must be between 1 and the model's {width}, not {dim}")
        self.dim = dim
        self.threads = thread_count(threads)
        self.name = Path(weights_path).stem if name is None else name
        self.fingerprint = fingerprint(
            "static", self._rows.tobytes(), self._scales.tobytes(), self.tokenizer.vocabulary_bytes(), "mean", dim
        )

    def embed_documents(self, texts: Texts, *, progress: Progress | None = None) -> npt.NDArray[np.float32]:
        """Unit vectors, one row a text; a text without known tokens has the zero vector."""
        n, columns = string_columns(texts)
        out = np.empty((n, self.dim), np.float32)
        for start, column in columns:
            self._embed(column, out[start : start + len(column)], self.threads)
            if progress is not None:
                progress(start + len(column), n)
        return out

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """As of a document."""
        out = np.empty((1, self.dim), np.float32)
        self._embed(one_text(text), out, 1)
        return out.reshape(self.dim)

    def count_tokens(self, text: str) -> int:
        """WordPiece tokens of `text`."""
        return self.tokenizer.count(text)

    def _embed(self, column: StringColumn, out: npt.NDArray[np.float32], threads: int) -> None:
        _native.embed_texts(self.tokenizer.native, self._rows, self._scales, column, threads, out)


@cache
def default_embedder() -> Embedder:
    """The embedder that comes with the package: a static model of 256 dimensions, no download, no other package.

    Examples
    --------
    >>> embedder = default_embedder()
    >>> embedder.name, embedder.embed_query("hello").shape
    ('hsca-static-minilm-256', (256,))
    """
    return StaticEmbedder(WEIGHTS, VOCABULARY, name="hsca-static-minilm-256")


def _load_weights(path: str | os.PathLike[str], n_tokens: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    where = os.fspath(path)
    with open(path, "rb") as stream:
        try:
            file = np.load(stream, allow_pickle=False)
            rows, scales = np.ascontiguousarray(file["rows"]), np.ascontiguousarray(file["scales"])
        except (ValueError, KeyError, IndexError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(
                f"{where}: a static model is an .npz file with arrays 'rows' and 'scales' ({error})"
            ) from None
    if rows.dtype != np.int8 or rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"{where}: rows must be int8 with two dimensions, not {rows.dtype} {rows.shape}")
    if scales.dtype != np.float32 or scales.shape != rows.shape[:1]:
        raise ValueError(f"{where}: scales must be float32 [{len(rows)}], not {scales.dtype} {scales.shape}")
    if len(rows) != n_tokens:
        raise ValueError(f"{where}: {len(rows)} rows, but the vocabulary has {n_tokens} tokens")
    bad = np.flatnonzero(~(np.abs(scales) <= _MAX_SCALE))
    if len(bad):
        raise ValueError(f"{where}: scales of rows {bad[:5].tolist()} are not finite numbers of at most {_MAX_SCALE:g}")
    return rows, scales
