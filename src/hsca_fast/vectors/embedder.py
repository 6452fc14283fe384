"""What an embedder is, and the embedders that need no weights of ours."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from hsca_fast._native.inputs import Texts, string_columns
from hsca_fast._native.strings import StringColumn

Progress = Callable[[int, int], None]
"""Called with (texts done, texts in all) now and then."""

NO_LIMIT = 2**31 - 1
"""`max_tokens` of an embedder that takes a text of any length in one piece."""


@runtime_checkable
class Embedder(Protocol):
    """Text in, float32 vectors out.

    Attributes
    ----------
    name
        Of the model, for people.
    dim
        Numbers in a vector.
    fingerprint
        Differs whenever vectors may differ: a hash of weights, vocabulary and options, after the embedder's kind.
    max_tokens
        A text of more tokens, as `count_tokens` counts them, is embedded in pieces.
    """

    @property
    def name(self) -> str: ...
    @property
    def dim(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def max_tokens(self) -> int: ...

    def embed_documents(self, texts: Texts, *, progress: Progress | None = None) -> npt.NDArray[np.float32]:
        """One row a text."""

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """The vector of a question; differs from a document's where a model has prefixes."""

    def count_tokens(self, text: str) -> int:
        """Tokens of `text` as the model sees it."""


def fingerprint(kind: str, *parts: bytes | str | int | float) -> str:
    """`kind` and a hash of `parts`, each with its length, so that no two lists of parts read alike."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return f"{kind}:{digest.hexdigest()[:32]}"


def text_list(texts: Texts) -> list[str]:
    """`texts` as str, Arrow columns too; a null row is an empty text, a lone surrogate U+FFFD."""
    return [text for _, column in string_columns(texts)[1] for text in column.to_list()]


def one_text(text: str) -> StringColumn:
    """A column of one row."""
    if not isinstance(text, str):
        raise TypeError(f"text must be str, not {type(text).__name__}")
    return StringColumn.from_sequence((text,), 0, 1)


def unit_rows(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Rows scaled to length 1; zero rows stay zero."""
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    norms[norms == 0.0] = 1.0
    scaled: npt.NDArray[np.float32] = (vectors / norms[:, None]).astype(np.float32)
    return scaled


def _positive(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")
    return value


class CallableEmbedder:
    """An embedder of your own: any function from a list of str to rows of numbers.

    Parameters
    ----------
    fn
        Takes a list of str, gives anything that `np.asarray` turns into [n, dim] finite numbers.
    name, dim
        What the model is called, and the width of its vectors.
    fingerprint
        Tells this model from others of the same name; a hash of `name` and `dim` when not given, since a function's
        weights cannot be seen from outside.
    query_fn
        The same for questions, where the model treats them otherwise.
    max_tokens, count_tokens
        The model's limit and its tokenizer; words of letters and digits are counted when none is given.
    batch_size
        Texts handed to `fn` at once.

    Examples
    --------
    >>> lengths = CallableEmbedder(lambda texts: [[len(t), 1.0] for t in texts], name="lengths", dim=2)
    >>> lengths.embed_documents(["a", "abc"]).tolist()
    [[1.0, 1.0], [3.0, 1.0]]
    """

    def __init__(
        self,
        fn: Callable[[list[str]], npt.ArrayLike],
        *,
        name: str,
        dim: int,
        fingerprint: str | None = None,
        query_fn: Callable[[list[str]], npt.ArrayLike] | None = None,
        max_tokens: int = NO_LIMIT,
        count_tokens: Callable[[str], int] | None = None,
        batch_size: int = 256,
    ) -> None:
        if not callable(fn):
            raise TypeError(f"fn must be callable, not {type(fn).__name__}")
        if not name:
            raise ValueError("name must not be empty: an index remembers it")
        self.name = name
        self.dim = _positive("dim", dim)
        self.max_tokens = _positive("max_tokens", max_tokens)
        self.fingerprint = fingerprint or _callable_fingerprint(name, dim)
        self._batch_size = _positive("batch_size", batch_size)
        self._fn = fn
        self._query_fn = query_fn or fn
        self._count_tokens = count_tokens or _count_words

    def embed_documents(self, texts: Texts, *, progress: Progress | None = None) -> npt.NDArray[np.float32]:
        """One row a text, as the function gave it."""
        rows = text_list(texts)
        out = np.empty((len(rows), self.dim), np.float32)
        for start in range(0, len(rows), self._batch_size):
            batch = rows[start : start + self._batch_size]
            out[start : start + len(batch)] = self._checked(self._fn(batch), len(batch), start)
            if progress is not None:
                progress(start + len(batch), len(rows))
        return out

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """The vector of a question."""
        return self._checked(self._query_fn(one_text(text).to_list()), 1, 0).reshape(self.dim).copy()

    def count_tokens(self, text: str) -> int:
        """What the given counter says."""
        return self._count_tokens(one_text(text).to_list()[0])

    def _checked(self, result: npt.ArrayLike, n: int, start: int) -> npt.NDArray[np.float32]:
        vectors = np.asarray(result, dtype=np.float32)
        if vectors.shape != (n, self.dim):
            raise ValueError(f"{self.name}: fn gave an array of shape {vectors.shape} for {n} texts of dim {self.dim}")
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise ValueError(f"{self.name}: fn gave numbers that are not finite for texts {(bad[:5] + start).tolist()}")
        return vectors


class HashEmbedder:
    """Signed hashes of words: deterministic, meaningless, for tests. Never chosen for you.

    Examples
    --------
    >>> hashed = HashEmbedder(dim=8)
    >>> hashed.fingerprint.split(":")[0], hashed.embed_documents(["one two", ""]).shape
    ('hash', (2, 8))
    """

    max_tokens = NO_LIMIT

    def __init__(self, dim: int = 256) -> None:
        self.dim = _positive("dim", dim)
        self.name = f"hash-{dim}"
        self.fingerprint = fingerprint("hash", "blake2b signed words", dim)

    def embed_documents(self, texts: Texts, *, progress: Progress | None = None) -> npt.NDArray[np.float32]:
        """Unit vectors, one row a text; a text without words has the zero vector."""
        rows = text_list(texts)
        out = np.zeros((len(rows), self.dim), np.float32)
        for row, text in enumerate(rows):
            for word in _words(text.lower()):
                digest = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
                out[row, digest % self.dim] += 1.0 if digest >> 63 else -1.0
            if progress is not None:
                progress(row + 1, len(rows))
        return unit_rows(out)

    def embed_query(self, text: str) -> npt.NDArray[np.float32]:
        """As of a document."""
        return self.embed_documents(one_text(text).to_list()).reshape(self.dim)

    def count_tokens(self, text: str) -> int:
        """Words of letters and digits."""
        return _count_words(one_text(text).to_list()[0])


def _callable_fingerprint(name: str, dim: int) -> str:
    return fingerprint("callable", name, dim)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _count_words(text: str) -> int:
    return len(_words(text))
