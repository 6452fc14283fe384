"""Models that a user brings for domains and for the nuance flags that rules cannot set.

A model is never trusted: it may raise, hang, or return nonsense, and scoring goes on. A text whose model failed is
`unclassified`, or the flag is not assessed for it, which is not the same as absent. Every failure is counted and told in
one `ModelWarning` a call.
"""

from __future__ import annotations

import importlib
import math
import os
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hsca_fast._native import text as _native
from hsca_fast._native.strings import StringColumn
from hsca_fast.text.worker import Worker

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
FEATURES = "hashed-ngrams-v1"
NATIVE_DOMAIN_MODELS = ("rules", "linear")
DEFAULT_TIMEOUT_SECONDS = 30.0

_BATCH_ROWS = 256  # texts a model is given at a time
_BATCH_FEATURES = 1 << 22  # floats in the dense rows of a batch, 16 MB
_MAX_FEATURES = 1 << 20
_MAX_FAILURES_IN_A_ROW = 3
_HEADS = Path(__file__).parent.parent / "data" / "heads"

DomainCallable: TypeAlias = Callable[[list[str]], Sequence[Collection[str] | Mapping[str, float]]]
NuanceCallable: TypeAlias = Callable[[list[str]], Sequence[float] | npt.NDArray[Any]]


class ModelWarning(UserWarning):
    """A model failed for some texts; what it should have told of them is missing from the result."""


class _UnusableError(Exception):
    """The model cannot work, now or later."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """What a model said of a batch: a value for each text, whether it is any good, and what is wrong with the others."""

    values: npt.NDArray[Any]
    good: npt.NDArray[np.bool_]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How one call of a model ended: with rows, or with the reason why there are none."""

    rows: _Rows | None
    reason: str = ""
    is_final: bool = False  # calling again is no use
    is_raised: bool = False


@dataclass(frozen=True, slots=True)
class ModelFailure:
    """What a model did, what that means for a text, and for how many texts."""

    model: str
    reason: str
    effect: str
    n_texts: int

    def __str__(self) -> str:
        texts = "text" if self.n_texts == 1 else "texts"
        return f"model {self.model} {self.reason}: {self.effect} for {self.n_texts} {texts}"


class Failures:
    """Adds up what went wrong, during one scoring call or several, for one warning at the end."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str], int] = {}

    def add(self, model: str, reason: str, effect: str, rows: int) -> None:
        key = (model, effect, reason)
        self._rows[key] = self._rows.get(key, 0) + rows

    def add_all(self, failures: Iterable[ModelFailure]) -> None:
        for failure in failures:
            self.add(failure.model, failure.reason, failure.effect, failure.n_texts)

    def all(self) -> tuple[ModelFailure, ...]:
        """One for each model, reason and effect."""
        return tuple(ModelFailure(model, reason, effect, rows) for (model, effect, reason), rows in self._rows.items())


def warn_of(failures: Sequence[ModelFailure], stacklevel: int = 2) -> None:
    """Issue one `ModelWarning` if anything went wrong; `stacklevel` as of `warnings.warn`, from here: 1 is the line
    that calls this, 2 the line that calls its function."""
    if failures:
        warnings.warn("; ".join(map(str, failures)), ModelWarning, stacklevel=stacklevel + 1)


def check_timeout(timeout_seconds: float) -> float:
    """`timeout_seconds` as a float, if it is a time to wait."""
    if isinstance(timeout_seconds, bool) or not isinstance(timeout_seconds, (int, float)):
        raise TypeError(f"model_timeout_seconds must be a number, not {type(timeout_seconds).__name__}")
    if not 0 < timeout_seconds <= threading.TIMEOUT_MAX:
        raise ValueError(f"model_timeout_seconds must be above 0 and finite, not {timeout_seconds}")
    return float(timeout_seconds)


def _describe(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except BaseException:  # an exception's own message may raise, SystemExit too
        text = ""
    text = "".join(c if c.isprintable() else "?" for c in text)  # it may end up in a terminal
    return f"raised {type(error).__name__}" + (f" ({text[:200]})" if text else "")


class ModelGuard:
    """Calls a model in a thread of its own, so that it can be left behind, and believes nothing unchecked.

    Attributes
    ----------
    failures
        Calls that gave nothing, over the guard's life.
    failed_rows
        Texts without a result, over the guard's life.
    given_up
        Why the model is never called again, or None: it hung, or its file is unusable. Whatever else fails is given up
        after three batches, or texts, in a row, for that call of `run` only.
    """

    def __init__(self, name: str, effect: str, *, retry_rows: bool) -> None:
        self.name = name
        self.effect = effect
        self.retry_rows = retry_rows
        self.failures = 0
        self.failed_rows = 0
        self.given_up: str | None = None

    def run(
        self,
        model: Callable[[list[str]], _Rows],
        texts: Sequence[str],
        dtype: npt.DTypeLike,
        timeout_seconds: float,
        failures: Failures,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Values for `texts` in batches, and which of them are good. A batch with its retries has `timeout_seconds`."""
        values = np.zeros(len(texts), dtype)
        good = np.zeros(len(texts), np.bool_)
        start = in_a_row = 0
        while start < len(texts):
            if in_a_row == _MAX_FAILURES_IN_A_ROW:
                reason = f"failed for {_MAX_FAILURES_IN_A_ROW} batches in a row, so the rest was not tried"
                self._note(reason, len(texts) - start, failures)
                break
            if self.given_up is not None:
                self._note(self.given_up, len(texts) - start, failures)
                break
            rows = slice(start, min(start + _BATCH_ROWS, len(texts)))
            batch = list(texts[rows])
            start = rows.stop
            deadline = time.monotonic() + timeout_seconds
            outcome = self._call(model, batch, deadline, timeout_seconds)
            if outcome.rows is not None:
                values[rows], good[rows] = outcome.rows.values, outcome.rows.good
                self._note(outcome.rows.reason, len(batch) - int(outcome.rows.good.sum()), failures)
            elif outcome.is_raised and self.retry_rows and len(batch) > 1:
                if not self._retry(model, batch, values[rows], good[rows], deadline, timeout_seconds, failures):
                    reason = f"failed for {_MAX_FAILURES_IN_A_ROW} texts in a row, so the rest was not tried"
                    self._note(reason, len(texts) - start, failures)
                    break
            else:
                self._note(outcome.reason, len(batch), failures)
            in_a_row = 0 if good[rows].any() else in_a_row + 1
        return values, good

    def _retry(
        self,
        model: Callable[[list[str]], _Rows],
        batch: list[str],
        values: npt.NDArray[Any],
        good: npt.NDArray[np.bool_],
        deadline: float,
        timeout_seconds: float,
        failures: Failures,
    ) -> bool:
        """Text by text, for the one that made the batch fail. False when nothing seems to work."""
        in_a_row = 0
        for i, text in enumerate(batch):
            outcome = self._call(model, [text], deadline, timeout_seconds)
            if outcome.rows is not None and outcome.rows.good[0]:
                values[i], good[i] = outcome.rows.values[0], True
                in_a_row = 0
                continue
            in_a_row += 1
            reason = outcome.rows.reason if outcome.rows is not None else outcome.reason
            stops = self.given_up is not None or in_a_row == _MAX_FAILURES_IN_A_ROW
            self._note(reason, len(batch) - i if stops else 1, failures)
            if stops:
                return self.given_up is not None
        return True

    def _call(
        self, model: Callable[[list[str]], _Rows], batch: list[str], deadline: float, timeout_seconds: float
    ) -> _Outcome:
        found: list[_Outcome] = []

        def work() -> None:
            try:
                found.append(_Outcome(model(batch)))
            except _UnusableError as error:
                found.append(_Outcome(None, str(error), is_final=True))
            except BaseException as error:
                # SystemExit too: it would end only this thread, and nothing would be found.
                found.append(_Outcome(None, _describe(error), is_raised=True))

        worker = Worker(work, f"hsca model {self.name}")
        try:
            worker.start()
        except RuntimeError as error:  # no thread to be had
            return _Outcome(None, _describe(error))
        try:
            is_done = worker.done.wait(max(0.0, deadline - time.monotonic()))
        except BaseException:  # Ctrl-C
            worker.leave()
            raise
        if is_done:
            outcome = found[0]
        else:
            worker.leave()
            outcome = _Outcome(None, f"took more than {timeout_seconds:g} s and is not called again", is_final=True)
        if outcome.is_final:
            self.given_up = outcome.reason
        return outcome

    def _note(self, reason: str, rows: int, failures: Failures) -> None:
        if rows > 0:
            self.failures += 1
            self.failed_rows += rows
            failures.add(self.name, reason, self.effect, rows)


# ---- ONNX files --------------------------------------------------------------------------------------------------
class _OnnxFile:
    """An ONNX model that reads texts (a string tensor [n]) or their hashed features (float32 [n, dim])."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._session: Any = None
        self._input = self._output = ""
        self._dim = 0  # 0 for a string tensor
        self.metadata: dict[str, str] = {}

    def __getstate__(self) -> dict[str, Any]:
        # A session can be neither copied nor pickled; the copy opens the file itself.
        return {**self.__dict__, "_session": None}

    def open(self, width: int) -> None:
        """Open the file; `width` is the number of probabilities that a row of its output must have."""
        if self._session is not None:
            return
        try:
            runtime = importlib.import_module("onnxruntime")
        except ImportError as error:
            raise _UnusableError("needs onnxruntime, which is not installed (the extra `onnx`)") from error
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise _UnusableError(f"cannot be read ({error.strerror or type(error).__name__})") from error
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what is wrong is told in the warning
        try:
            session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
            inputs, outputs = session.get_inputs(), session.get_outputs()
            metadata = dict(session.get_modelmeta().custom_metadata_map)
        except Exception as error:
            raise _UnusableError(f"is no ONNX model that can be run ({_describe(error)})") from error
        if len(inputs) != 1:
            raise _UnusableError(f"has {len(inputs)} inputs, not one")
        kind, shape = inputs[0].type, inputs[0].shape
        if kind == "tensor(string)" and len(shape) == 1:
            self._dim = 0
        elif (
            kind == "tensor(float)" and len(shape) == 2 and isinstance(shape[1], int) and 1 <= shape[1] <= _MAX_FEATURES
        ):
            self._dim = shape[1]
            told = metadata.get("hsca.features", FEATURES), metadata.get("hsca.dim", str(self._dim))
            if told != (FEATURES, str(self._dim)):
                raise _UnusableError(
                    f"wants features {told[0]!r} of size {told[1]}, not {FEATURES!r} of size {self._dim}"
                )
        else:
            raise _UnusableError(f"has an input {kind} of shape {shape}, not strings [n] or floats [n, dim]")
        if isinstance(shape[0], int):
            raise _UnusableError(f"takes {shape[0]} rows at a time, not any number")
        width_told = outputs[0].shape[-1] if len(outputs[0].shape) == 2 else 1
        if outputs[0].type != "tensor(float)" or (isinstance(width_told, int) and width_told != width):
            raise _UnusableError(
                f"has an output {outputs[0].type} of shape {outputs[0].shape}, not floats [n, {width}]"
            )
        self._input, self._output = inputs[0].name, outputs[0].name
        self.metadata = metadata
        self._session = session

    def __call__(self, texts: list[str]) -> npt.NDArray[Any]:
        if not self._dim:
            # No lone surrogate can be written as UTF-8.
            rows = [text.encode("utf-8", "replace").decode() for text in texts]
            return np.asarray(self._run(np.array(rows, dtype=object)))
        step = max(1, min(_BATCH_ROWS, _BATCH_FEATURES // self._dim))
        parts = [self._run(hashed_features(texts[i : i + step], self._dim)) for i in range(0, len(texts), step)]
        return np.concatenate(parts)

    def _run(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        options = importlib.import_module("onnxruntime").RunOptions()
        options.log_severity_level = 4  # stopping it is no news
        worker = threading.current_thread()
        if isinstance(worker, Worker):
            worker.attach(options)
        return np.asarray(self._session.run([self._output], {self._input: rows}, options)[0])


def hashed_features(texts: Sequence[str], dim: int) -> npt.NDArray[np.float32]:
    """Rows of features "hashed-ngrams-v1" for small models: words, pairs of words, pieces of words and marks.

    Examples
    --------
    >>> hashed_features(["A cat sat.", ""], 64).shape
    (2, 64)
    """
    return _native.hashed_features(StringColumn.from_sequence(tuple(texts), 0, 1 << 62), dim)


def _probabilities(result: object, n: int, width: int) -> _Rows:
    """Checks an array of probabilities [n, width], or [n] when width is 1."""
    values = np.asarray(result)
    if values.dtype.kind not in "fiub":
        return _none_good(n, np.float64, f"returned values of type {values.dtype}, not probabilities")
    if values.shape != (n, width) and not (width == 1 and values.shape == (n,)):
        return _none_good(n, np.float64, f"returned shape {values.shape} for {n} texts")
    values = values.astype(np.float64).reshape(n, width)
    good: npt.NDArray[np.bool_] = np.all((values >= 0) & (values <= 1), axis=1)  # no comparison holds for NaN
    return _Rows(np.where(good[:, None], values, 0.0), good, "returned a number that is no probability")


def _none_good(n: int, dtype: npt.DTypeLike, reason: str) -> _Rows:
    return _Rows(np.zeros(n, dtype), np.zeros(n, np.bool_), reason)


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
        self._file = _OnnxFile(self.source) if isinstance(self.source, Path) else None
        self.guard = ModelGuard(_name(self.source), "domain unclassified", retry_rows=self._file is None)

    def __call__(self, texts: list[str]) -> _Rows:
        if self._file is None:
            assert callable(self.source)
            return _tag_bits(self.source(list(texts)), len(texts), self.threshold)
        self._file.open(N_DOMAINS)
        rows = _probabilities(self._file(texts), len(texts), N_DOMAINS)
        if rows.values.ndim == 1:
            return rows
        bits = (rows.values >= self.threshold) @ (1 << np.arange(N_DOMAINS))
        return _Rows(bits.astype(np.uint16), rows.good, rows.reason)


def _tag_bits(result: object, n: int, threshold: float) -> _Rows:
    if isinstance(result, np.ndarray):
        result = result.tolist()
    if not isinstance(result, (list, tuple)):
        return _none_good(n, np.uint16, f"returned a {type(result).__name__}, not a list with one element a text")
    if len(result) != n:
        return _none_good(n, np.uint16, f"returned {len(result)} elements for {n} texts")
    bits = np.zeros(n, np.uint16)
    good = np.zeros(n, np.bool_)
    reason = ""
    for i, tags in enumerate(result):
        try:
            bits[i] = _bits_of_tags(tags, threshold)
            good[i] = True
        except (TypeError, ValueError) as error:
            reason = reason or str(error)
    return _Rows(bits, good, reason)


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
    bits, good = model.guard.run(model, texts, np.uint16, check_timeout(timeout_seconds), noted)
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
        self._file = _OnnxFile(self.source) if isinstance(self.source, Path) else None
        if flag is None and self._file is None:
            raise ValueError("a callable nuance model needs the name of its flag")
        self.flag = None if flag is None else _flag(flag)
        if threshold is not None and (isinstance(threshold, bool) or not isinstance(threshold, (int, float))):
            raise TypeError(f"threshold must be a number, not {type(threshold).__name__}")
        if threshold is not None and not 0 <= threshold <= 1:
            raise ValueError(f"threshold must be between 0 and 1, not {threshold}")
        self.threshold = 0.5 if threshold is None and self._file is None else threshold
        effect = f"{self.flag or 'its flag'} not assessed"
        self.guard = ModelGuard(_name(self.source), effect, retry_rows=self._file is None)

    @property
    def metadata(self) -> dict[str, str]:
        """What an .onnx file says of itself; empty before its first use."""
        return dict(self._file.metadata) if self._file is not None else {}

    def __call__(self, texts: list[str]) -> _Rows:
        if self._file is None:
            assert callable(self.source)
            result = self.source(list(texts))
        else:
            self._file.open(1)
            self._read_metadata(self._file.metadata)
            result = self._file(texts)
        rows = _probabilities(result, len(texts), 1)
        return _Rows(rows.values.reshape(-1), rows.good, rows.reason)

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
            raise _UnusableError(f"has no usable metadata ({error})") from None
        if self.flag not in (None, flag):
            raise _UnusableError(f"is for the flag {flag}, not {self.flag}")
        self.flag, self.threshold = flag, threshold
        self.guard.effect = f"{flag} not assessed"


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
        values, good = model.guard.run(model, texts, np.float64, timeout, noted)
        if model.flag in taken:  # files name theirs only when they are opened
            reason = f"is for the flag {model.flag}, which another model has already"
            noted.add(model.guard.name, reason, "its answer is not used", int(good.sum()))
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
    return sorted(_HEADS.glob("*.onnx"))
