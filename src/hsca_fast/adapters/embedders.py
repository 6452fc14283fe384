"""Embedders by name, for front ends that write their components to files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy.typing as npt

from hsca_fast.vectors.embedder import Embedder

NAMES = ("default", "minilm")


class TextEmbedder(Protocol):
    """What the adapters ask of an embedder: ours have it, and so have LangChain's."""

    def embed_documents(self, texts: list[str]) -> npt.ArrayLike | Sequence[Any]: ...

    def embed_query(self, text: str) -> npt.ArrayLike | Sequence[Any]: ...


def named_embedder(name: str) -> Embedder:
    """ "default": `default_embedder()`; "minilm": `minilm_embedder()`, which needs the extra `minilm`.

    Examples
    --------
    >>> named_embedder("default").dim
    256
    """
    if name == "default":
        from hsca_fast.vectors.static import default_embedder

        return default_embedder()
    if name == "minilm":
        from hsca_fast.vectors.onnx import minilm_embedder

        return minilm_embedder()
    raise ValueError(f"embedder must be one of {', '.join(NAMES)}, not {name!r}")


def as_embedder(embedder: Any) -> TextEmbedder | None:
    """`embedder` itself, or the one of that name; None stays None.

    Raises
    ------
    TypeError
        It is neither a name nor an object with `embed_documents` and `embed_query`.
    """
    if embedder is None:
        return None
    if isinstance(embedder, str):
        return named_embedder(embedder)
    if not all(callable(getattr(embedder, name, None)) for name in ("embed_documents", "embed_query")):
        raise TypeError(
            f"embedder must be one of {', '.join(NAMES)}, or have embed_documents and embed_query, "
            f"not {type(embedder).__name__}"
        )
    found: TextEmbedder = embedder
    return found
