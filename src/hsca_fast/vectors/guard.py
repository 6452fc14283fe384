"""The model guard: vectors of two models are never compared unnoticed."""

from __future__ import annotations

from dataclasses import dataclass

from hsca_fast.vectors.embedder import Embedder


@dataclass(frozen=True, slots=True)
class ModelStamp:
    """Which model made some vectors; stamped into everything that stores them.

    Examples
    --------
    >>> from hsca_fast.vectors.embedder import HashEmbedder
    >>> ModelStamp.of(HashEmbedder(dim=64)).name
    'hash-64'
    """

    name: str
    dim: int
    fingerprint: str

    def __post_init__(self) -> None:
        for field, kind in (("name", str), ("dim", int), ("fingerprint", str)):
            value = getattr(self, field)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise TypeError(f"{field} must be {kind.__name__}, not {type(value).__name__}")
        if self.dim < 1:
            raise ValueError(f"dim must be at least 1, not {self.dim}")

    @classmethod
    def of(cls, embedder: Embedder) -> ModelStamp:
        """The stamp of what `embedder` makes."""
        return cls(embedder.name, embedder.dim, embedder.fingerprint)

    def __str__(self) -> str:
        return f"{self.name} ({self.dim})"


class ModelMismatchError(ValueError):
    """Vectors of one model were about to be compared with those of another."""

    def __init__(self, message: str, expected: ModelStamp, found: ModelStamp) -> None:
        super().__init__(message)
        self.expected = expected
        self.found = found

    def __reduce__(self) -> tuple[type[ModelMismatchError], tuple[str, ModelStamp, ModelStamp]]:
        return type(self), (str(self), self.expected, self.found)


def check_model(expected: ModelStamp, found: ModelStamp, *, strict: bool = False) -> str | None:
    """Compare the model that made the stored vectors with the one at hand.

    Returns
    -------
    str or None
        None when name, dimension and fingerprint are the same; otherwise a warning that names both sides, for the
        caller to show.

    Raises
    ------
    ModelMismatchError
        With `strict`, when they differ.

    Examples
    --------
    >>> stored = ModelStamp("all-mpnet-base-v2", 768, "onnx:1f")
    >>> check_model(stored, ModelStamp("all-MiniLM-L6-v2", 384, "onnx:8e"))
    'ingest model: all-mpnet-base-v2 (768), query model: all-MiniLM-L6-v2 (384): results may be unreliable'
    """
    if expected == found:
        return None
    sides = [str(expected), str(found)]
    if sides[0] == sides[1]:  # two models of one name and width: only the fingerprints say which is which
        sides = [f"{stamp.name} ({stamp.dim}, {stamp.fingerprint})" for stamp in (expected, found)]
    both = f"ingest model: {sides[0]}, query model: {sides[1]}"
    if strict:
        raise ModelMismatchError(f"{both}: refused", expected, found)
    return f"{both}: results may be unreliable"
