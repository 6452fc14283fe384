"""Calls of a user's model, none of them trusted: it may raise, hang, or return nonsense, and scoring goes on.

What failed is counted, and told in one `ModelWarning` a call.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hsca_fast.text.worker import Worker

DEFAULT_TIMEOUT_SECONDS = 30.0
BATCH_ROWS = 256  # texts a model is given at a time
_MAX_FAILURES_IN_A_ROW = 3


class ModelWarning(UserWarning):
    """A model failed for some texts; what it should have told of them is missing from the result."""


class UnusableError(Exception):
    """The model cannot work, now or later."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a model said of a batch: a value for each text, whether it is any good, and what is wrong with the others."""

    values: npt.NDArray[Any]
    good: npt.NDArray[np.bool_]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one call of a model ended: with rows, or with the reason why there are none."""

    rows: Rows | None
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


def describe(error: BaseException) -> str:
    try:
        text = " ".join(str(error).split())
    except BaseException:  # an exception's own message may raise, SystemExit too
        text = ""
    text = "".join(c if c.isprintable() else "?" for c in text)  # it may end up in a terminal
    return f"raised {type(error).__name__}" + (f" ({text[:200]})" if text else "")


class Supervisor:
    """Calls a model in a thread of its own, so that it can be left behind, and believes nothing unchecked.

    Attributes
    ----------
    failures
        Calls that gave nothing, over its life.
    failed_rows
        Texts without a result, over its life.
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
        model: Callable[[list[str]], Rows],
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
            rows = slice(start, min(start + BATCH_ROWS, len(texts)))
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
        model: Callable[[list[str]], Rows],
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
        self, model: Callable[[list[str]], Rows], batch: list[str], deadline: float, timeout_seconds: float
    ) -> Outcome:
        found: list[Outcome] = []

        def work() -> None:
            try:
                found.append(Outcome(model(batch)))
            except UnusableError as error:
                found.append(Outcome(None, str(error), is_final=True))
            except BaseException as error:
                # SystemExit too: it would end only this thread, and nothing would be found.
                found.append(Outcome(None, describe(error), is_raised=True))

        worker = Worker(work, f"hsca model {self.name}")
        try:
            worker.start()
        except RuntimeError as error:  # no thread to be had
            return Outcome(None, describe(error))
        try:
            is_done = worker.done.wait(max(0.0, deadline - time.monotonic()))
        except BaseException:  # Ctrl-C
            worker.leave()
            raise
        if is_done:
            outcome = found[0]
        else:
            worker.leave()
            outcome = Outcome(None, f"took more than {timeout_seconds:g} s and is not called again", is_final=True)
        if outcome.is_final:
            self.given_up = outcome.reason
        return outcome

    def _note(self, reason: str, rows: int, failures: Failures) -> None:
        if rows > 0:
            self.failures += 1
            self.failed_rows += rows
            failures.add(self.name, reason, self.effect, rows)


def none_good(n: int, dtype: npt.DTypeLike, reason: str) -> Rows:
    return Rows(np.zeros(n, dtype), np.zeros(n, np.bool_), reason)
