"""Models that a user brings for domains and for the nuance flags that rules cannot set.

A text whose model failed is `unclassified`, or the flag is not assessed for it, which is not the same as absent.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hsca_fast.data import PACKAGED
from hsca_fast.text.onnx_file import OnnxFile
from hsca_fast.text.supervisor import (
    DEFAULT_TIMEOUT_SECONDS,
    Failures,
    Rows,
    Supervisor,
    UnusableError,
    check_timeout,
    none_good,
    warn_of,
)

DOMAIN_TAGS = (
    "physics",
    "mathematics",
    "legal",
    "medical",
    "poetry",
    "narrative",
    "technical_prose",
    "conversational",
    "philosophical",
    "historical",
    "cross_domain",
    "unclassified",
)  # the place of a tag is its bit
N_DOMAINS = 10  # tags a model has a probability for
UNCLASSIFIED = np.uint16(1 << DOMAIN_TAGS.index("unclassified"))
NUANCE_MODEL_FLAGS = ("metaphor_model", "sarcasm_model", "analogy_model", "narrative_thread_model")  # by bit
NATIVE_DOMAIN_MODELS = ("rules", "linear")

DomainCallable: TypeAlias = Callable[[list[str]], Sequence[Collection[str] | Mapping[str, float]]]
NuanceCallable: TypeAlias = Callable[[list[str]], Sequence[float] | npt.NDArray[Any]]


def _probabilities(result: object, n: int, width: int) -> Rows:
    """Checks an array of probabilities [n, width], or [n] when width is 1."""
    values = np.asarray(result)
    if values.dtype.kind not in "fiub":
        return none_good(n, np.float64, f"returned values of type {values.dtype}, not probabilities")
    if values.shape != (n, width) and not (width == 1 and values.shape == (n,)):
        return none_good(n, np.float64, f"returned shape {values.shape} for {n} texts")
    values = values.astype(np.float64).reshape(n, width)
    good: npt.NDArray[np.bool_] = np.all((values >= 0) & (values <= 1), axis=1)  # no comparison holds for NaN
    return Rows(np.where(good[:, None], values, 0.0), good, "returned a number that is no probability")


def _source(source: object, what: str) -> Path | Callable[[list[str]], Any]:
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if not isinstance(path, str):
            raise TypeError(f"{what} must be named by a path of str, not {type(path).__name__}")
        return Path(path)
    if not callable(source) or isinstance(source, type):
        raise TypeError(f"{what} must be a callable or the path of an .onnx file, not {type(source).__name__}")
    return source


def _name(source: Path | Callable[..., Any]) -> str:
    if isinstance(source, Path):
        return repr(source.name)
    return repr(str(getattr(source, "__qualname__", type(source).__name__)))


# ---- domains -----------------------------------------------------------------------------------------------------
class DomainModel:
    """Tells the domains of texts.

    Parameters
    ----------
    source
        A callable that takes a list of str and returns for each text a collection of tags, or a mapping from tag to
        probability (tags of at least .5 count); or the path of an .onnx file whose input is a string tensor [n] or
        hashed features [n, dim] and whose output is float32 [n, 10], probabilities in the order of `DOMAIN_TAGS`.

    Raises
    ------
    TypeError
        `source` is neither. Anything wrong with a file shows when texts are scored, as a warning.

    Examples
    --------
    >>> model = DomainModel(lambda texts: [["legal"] if "hereby" in text else [] for text in texts])
    >>> bits, n_failed = predict_domains(model, ["I hereby resign.", "Rain."])
    >>> [domain_names(row) for row in bits], n_failed
    ([['legal'], ['unclassified']], 0)
    """

    threshold = 0.5

    def __init__(self, source: str | os.PathLike[str] | DomainCallable) -> None:
        self.source = _source(source, "domain_model")
        self._file = OnnxFile(self.source) if isinstance(self.source, Path) else None
        self.supervisor = Supervisor(_name(self.source), "domain unclassified", retry_rows=self._file is None)

    def __call__(self, texts: list[str]) -> Rows:
        if self._file is None:
            assert callable(self.source)
            return _tag_bits(self.source(list(texts)), len(texts), self.threshold)
        self._file.open(N_DOMAINS)
        rows = _probabilities(self._file(texts), len(texts), N_DOMAINS)
        if rows.values.ndim == 1:
            return rows
        bits = (rows.values >= self.threshold) @ (1 << np.arange(N_DOMAINS))
        return Rows(bits.astype(np.uint16), rows.good, rows.reason)


def _tag_bits(result: object, n: int, threshold: float) -> Rows:
    if isinstance(result, np.ndarray):
        result = result.tolist()
    if not isinstance(result, (list, tuple)):
        return none_good(n, np.uint16, f"returned a {type(result).__name__}, not a list with one element a text")
    if len(result) != n:
        return none_good(n, np.uint16, f"returned {len(result)} elements for {n} texts")
    bits = np.zeros(n, np.uint16)
    good = np.zeros(n, np.bool_)
    reason = ""
    for i, tags in enumerate(result):
        try:
            bits[i] = _bits_of_tags(tags, threshold)
            good[i] = True
        except (TypeError, ValueError) as error:
            reason = reason or str(error)
    return Rows(bits, good, reason)


def _bits_of_tags(tags: object, threshold: float) -> int:
    if isinstance(tags, Mapping):
        for tag, probability in tags.items():
            is_number = isinstance(probability, (int, float, np.integer, np.floating))
            if not is_number or not math.isfinite(probability) or not 0 <= probability <= 1:
                raise ValueError(f"returned a number that is no probability for {str(tag)[:40]!r}")
        names: list[object] = [tag for tag, probability in tags.items() if probability >= threshold]
        _check_tags(tags)
    elif isinstance(tags, (list, tuple, set, frozenset)):
        names = list(tags)
        _check_tags(names)
    else:
        raise TypeError(f"returned a {type(tags).__name__} for a text, not a list of tags or a mapping")
    bits = 0
    for name in names:
        assert isinstance(name, str)
        bits |= 1 << DOMAIN_TAGS.index(name)
    return bits


def _check_tags(tags: Collection[object]) -> None:
    for tag in tags:
        if not isinstance(tag, str) or tag not in DOMAIN_TAGS:
            raise ValueError(f"returned {str(tag)[:40]!r}, which is no domain tag")


def domain_names(bits: int | np.unsignedinteger[Any]) -> list[str]:
    """The tags of a row of `predict_domains`."""
    return [tag for i, tag in enumerate(DOMAIN_TAGS) if int(bits) >> i & 1]


def domain_model_of(spec: object) -> DomainModel | str:
    """The option `domain_model` checked: "rules" or "linear" as they are, anything else as a `DomainModel`."""
    if isinstance(spec, DomainModel):
        return spec
    if isinstance(spec, str):
        if spec in NATIVE_DOMAIN_MODELS:
            return spec
        if not spec.endswith(".onnx"):
            raise ValueError(f"domain_model must be 'rules', 'linear', a callable or an .onnx file, not {spec!r}")
    return DomainModel(spec)  # type: ignore[arg-type]


def predict_domains(
    model: DomainModel,
    texts: Sequence[str],
    *,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    failures: Failures | None = None,
    add_cross_domain: Callable[[npt.NDArray[np.uint16]], npt.NDArray[np.uint16]] | None = None,
) -> tuple[npt.NDArray[np.uint16], int]:
    """Domain bits of texts by a model, and for how many of them it failed; those are `unclassified`.

    Parameters
    ----------
    timeout_seconds
        For each batch of 256 texts, the first of which also loads the model.
    failures
        Where failures are noted. Without it they are warned of here.
    add_cross_domain
        Applied to the bits at the end, for the tag that follows from the others.
    """
    noted = Failures() if failures is None else failures
    bits, good = model.supervisor.run(model, texts, np.uint16, check_timeout(timeout_seconds), noted)
    bits[~good] = 0
    bits &= ~UNCLASSIFIED
    if add_cross_domain is not None:
        bits = np.array(add_cross_domain(bits), np.uint16)
    bits[bits == 0] = UNCLASSIFIED
    if failures is None:
        warn_of(noted.all())
    return bits, int(len(texts) - good.sum())


# ---- nuance ------------------------------------------------------------------------------------------------------
class NuanceModel:
    """Tells whether texts have one of the flags that rules cannot tell: `NUANCE_MODEL_FLAGS`.

    Parameters
    ----------
    source
        A callable that takes a list of str and returns their probabilities, or the path of an .onnx file whose input
        is a string tensor [n] or hashed features [n, dim] and whose output is float32 [n] or [n, 1]. The file's
        metadata name the flag (`hsca.flag`, such as "sarcasm"), the features (`hsca.features`, "hashed-ngrams-v1"),
        their number (`hsca.dim`) and the threshold (`hsca.threshold`).
    flag
        The flag, with or without `_model`; needed for a callable. A file of another flag is refused.
    threshold
        Texts of at least this probability have the flag. The default is the file's, or .5 for a callable. A file
        without metadata needs both.

    Examples
    --------
    >>> model = NuanceModel(lambda texts: [0.9 * text.startswith("Oh, great") for text in texts], flag="sarcasm")
    >>> found = predict_nuance([model], ["Oh, great, rain.", "Rain."])
    >>> found.names(0), found.names(1), found.assessed_names(1)
    (['sarcasm_model'], [], ['sarcasm_model'])
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | NuanceCallable,
        *,
        flag: str | None = None,
        threshold: float | None = None,
    ) -> None:
        self.source = _source(source, "a nuance model")
        self._file = OnnxFile(self.source) if isinstance(self.source, Path) else None
        if flag is None and self._file is None:
            raise ValueError("a callable nuance model needs the name of its flag")
        self.flag = None if flag is None else _flag(flag)
        if threshold is not None and (isinstance(threshold, bool) or not isinstance(threshold, (int, float))):
            raise TypeError(f"threshold must be a number, not {type(threshold).__name__}")
        if threshold is not None and not 0 <= threshold <= 1:
            raise ValueError(f"threshold must be between 0 and 1, not {threshold}")
        self.threshold = 0.5 if threshold is None and self._file is None else threshold
        effect = f"{self.flag or 'its flag'} not assessed"
        self.supervisor = Supervisor(_name(self.source), effect, retry_rows=self._file is None)

    @property
    def metadata(self) -> dict[str, str]:
        """What an .onnx file says of itself; empty before its first use."""
        return dict(self._file.metadata) if self._file is not None else {}

    def __call__(self, texts: list[str]) -> Rows:
        if self._file is None:
            assert callable(self.source)
            result = self.source(list(texts))
        else:
            self._file.open(1)
            self._read_metadata(self._file.metadata)
            result = self._file(texts)
        rows = _probabilities(result, len(texts), 1)
        return Rows(rows.values.reshape(-1), rows.good, rows.reason)

    def _read_metadata(self, metadata: dict[str, str]) -> None:
        """What the file says of itself; what the user said goes first, but for another flag."""
        flag, threshold = self.flag, self.threshold
        try:
            if "hsca.flag" in metadata or flag is None:
                flag = _flag(metadata.get("hsca.flag", ""))
            if "hsca.threshold" in metadata or threshold is None:
                told = float(metadata.get("hsca.threshold", ""))
                if not 0 <= told <= 1:
                    raise ValueError(f"threshold {told}")
                threshold = told if threshold is None else threshold
        except ValueError as error:
            raise UnusableError(f"has no usable metadata ({error})") from None
        if self.flag not in (None, flag):
            raise UnusableError(f"is for the flag {flag}, not {self.flag}")
        self.flag, self.threshold = flag, threshold
        self.supervisor.effect = f"{flag} not assessed"


def _flag(name: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"flag must be a str, not {type(name).__name__}")
    flag = name if name.endswith("_model") else f"{name}_model"
    if flag not in NUANCE_MODEL_FLAGS:
        raise ValueError(f"flag must be one of {', '.join(NUANCE_MODEL_FLAGS)}, not {name[:40]!r}")
    return flag


@dataclass(frozen=True, slots=True, eq=False)
class NuancePrediction:
    """Bits of `NUANCE_MODEL_FLAGS` for each text: `present` are set, `assessed` are known. A bit that is not assessed
    is unknown."""

    present: npt.NDArray[np.uint8]
    assessed: npt.NDArray[np.uint8]
    n_failed: int  # results that are missing, over all models

    def names(self, row: int) -> list[str]:
        return [flag for i, flag in enumerate(NUANCE_MODEL_FLAGS) if int(self.present[row]) >> i & 1]

    def assessed_names(self, row: int) -> list[str]:
        return [flag for i, flag in enumerate(NUANCE_MODEL_FLAGS) if int(self.assessed[row]) >> i & 1]


def nuance_models_of(spec: object) -> tuple[NuanceModel, ...]:
    """The option `nuance_models` checked: a sequence of `NuanceModel`s and .onnx paths, or a mapping from flag to
    callable or path. None is no model."""
    if spec is None:
        return ()
    if isinstance(spec, Mapping):
        models = tuple(
            source if isinstance(source, NuanceModel) else NuanceModel(source, flag=flag)
            for flag, source in spec.items()
        )
    elif isinstance(spec, Sequence) and not isinstance(spec, (str, bytes)):
        models = tuple(source if isinstance(source, NuanceModel) else NuanceModel(source) for source in spec)
    else:
        raise TypeError(f"nuance_models must be a sequence or a mapping of models, not {type(spec).__name__}")
    flags = [model.flag for model in models if model.flag is not None]
    if len(set(flags)) < len(flags):
        raise ValueError("nuance_models must have one model a flag")
    return models


def predict_nuance(
    models: Sequence[NuanceModel],
    texts: Sequence[str],
    *,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    failures: Failures | None = None,
) -> NuancePrediction:
    """Flags of texts by models; a flag is not assessed where its model failed. Arguments as of `predict_domains`."""
    noted = Failures() if failures is None else failures
    timeout = check_timeout(timeout_seconds)
    present = np.zeros(len(texts), np.uint8)
    assessed = np.zeros(len(texts), np.uint8)
    n_failed = 0
    taken: set[str | None] = set()
    for model in models:
        values, good = model.supervisor.run(model, texts, np.float64, timeout, noted)
        if model.flag in taken:  # files name theirs only when they are opened
            reason = f"is for the flag {model.flag}, which another model has already"
            noted.add(model.supervisor.name, reason, "its answer is not used", int(good.sum()))
            good[:] = False
        n_failed += int(len(texts) - good.sum())
        if model.flag is None or model.threshold is None:  # a file that could not be opened
            continue
        taken.add(model.flag)
        bit = np.uint8(1 << NUANCE_MODEL_FLAGS.index(model.flag))
        assessed[good] |= bit
        present[good & (values >= model.threshold)] |= bit
    if failures is None:
        warn_of(noted.all())
    return NuancePrediction(present, assessed, n_failed)


def bundled_nuance_models() -> list[Path]:
    """The .onnx heads that come with the package, by name. They need the extra `onnx`."""
    return sorted((PACKAGED / "heads").glob("*.onnx"))
