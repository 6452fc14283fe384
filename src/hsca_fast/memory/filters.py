"""Filters over records: a mapping of names to values or conditions, checked once and applied to whole columns.

{"wing": "work", "timestamp": {"$gte": 1.7e9}, "$or": [{"role": "user"}, {"pinned": {"$exists": True}}]}
"""

from __future__ import annotations

import json
import math
import operator as operators
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Where = Mapping[str, Any]
FIELDS = ("turn_id", "sentence_id", "role", "timestamp")
"""Names that mean the record's own fields; every other name is a key of its metadata."""

MISSING = object()
_MAX_DEPTH = 32


class Column:
    """One value a record, as codes into the distinct ones."""

    def __init__(self) -> None:
        self._numbers = np.empty(0, np.float64)
        self._codes: list[npt.NDArray[np.int32]] = []
        self._by_key: dict[tuple[str, str], int] = {}
        self.values: list[Any] = []
        self.n = 0

    def extend(self, values: Sequence[Any]) -> None:
        codes = np.empty(len(values), np.int32)
        for i, value in enumerate(values):
            # True, 1 and 1.0 are alike to a dict but not to JSON.
            key = (type(value).__name__, value if isinstance(value, str) else repr(value))
            code = self._by_key.get(key)
            if code is None:
                code = self._by_key[key] = len(self.values)
                self.values.append(value)
            codes[i] = code
        self._codes.append(codes)
        self.n += len(values)

    @property
    def codes(self) -> npt.NDArray[np.int32]:
        if len(self._codes) != 1:
            self._codes = [np.concatenate([np.empty(0, np.int32), *self._codes])]
        return self._codes[0]

    @property
    def numbers(self) -> npt.NDArray[np.float64]:
        """The distinct values that are numbers and have a float64 of their own; NaN in the place of all others."""
        if len(self._numbers) < len(self.values):
            new = [_as_float(value) for value in self.values[len(self._numbers) :]]
            self._numbers = np.concatenate([self._numbers, np.array(new, np.float64)])
        return self._numbers

    def mask(self, test: Callable[[Any], bool]) -> Mask:
        """Records whose value passes a test of one value."""
        accepted = np.array([test(value) for value in self.values], bool)
        return accepted[self.codes] if self.n else np.zeros(0, bool)

    def where(self, operator: str, operand: Any) -> Mask:
        """Records whose value meets a condition; times and other numbers mostly differ, so they are compared all at once."""
        test = _TESTS[operator](operand)
        compare, number = _COMPARISONS.get(operator), _as_float(operand)
        if compare is None or math.isnan(number) or not self.n:
            return self.mask(test)
        accepted: Mask = compare(self.numbers, number)
        for i in np.flatnonzero(np.isnan(self.numbers)).tolist():
            accepted[i] = test(self.values[i])
        return accepted[self.codes]


class Columns(Protocol):
    def column(self, name: str) -> Column:
        """The values of a name, one a record."""

    @property
    def n(self) -> int:
        """Records."""


def where_mask(where: Where, columns: Columns) -> Mask:
    """Which records `where` accepts."""
    mask = np.ones(columns.n, bool)
    for name, condition in where.items():
        if name == "$and":
            for part in condition:
                mask &= where_mask(part, columns)
        elif name == "$or":
            any_of = np.zeros(columns.n, bool)
            for part in condition:
                any_of |= where_mask(part, columns)
            mask &= any_of
        elif name == "$not":
            mask &= ~where_mask(condition, columns)
        else:
            column = columns.column(name)
            for operator, operand in _conditions(condition):
                mask &= column.where(operator, operand)
    return mask


def check_where(where: object, name: str = "where", depth: int = 0) -> Where:
    """`where`, if it can be applied; the error names the place that cannot."""
    if not isinstance(where, Mapping):
        raise TypeError(f"{name} must be a mapping, not {type(where).__name__}")
    if depth > _MAX_DEPTH:
        raise ValueError(f"{name} is nested deeper than {_MAX_DEPTH}")
    for key, condition in where.items():
        place = f"{name}[{key!r}]"
        if not isinstance(key, str):
            raise TypeError(f"{name} has the key {key!r}; keys are str")
        if key in ("$and", "$or"):
            if not isinstance(condition, Sequence) or isinstance(condition, str) or not condition:
                raise ValueError(f"{place} must be a list of one or more mappings, not {condition!r}")
            for i, part in enumerate(condition):
                check_where(part, f"{place}[{i}]", depth + 1)
        elif key == "$not":
            check_where(condition, place, depth + 1)
        elif key.startswith("$"):
            raise ValueError(f"{name} has the unknown operator {key!r}; there are $and, $or, $not")
        else:
            for operator, operand in _conditions(condition):
                _check_condition(operator, operand, place)
    return where


def _conditions(condition: Any) -> list[tuple[str, Any]]:
    """A plain value stands for equality."""
    if isinstance(condition, Mapping) and any(isinstance(key, str) and key.startswith("$") for key in condition):
        return list(condition.items())
    return [("$eq", condition)]


def _check_condition(operator: str, operand: Any, place: str) -> None:
    if operator not in _TESTS:
        raise ValueError(f"{place} has the unknown operator {operator!r}; there are {', '.join(_TESTS)}")
    if operator in ("$in", "$nin"):
        if not isinstance(operand, Sequence) or isinstance(operand, str):
            raise TypeError(f"{place}[{operator!r}] must be a list, not {type(operand).__name__}")
    elif operator == "$exists":
        if not isinstance(operand, bool):
            raise TypeError(f"{place}['$exists'] must be a bool, not {type(operand).__name__}")
    elif operator in ("$gt", "$gte", "$lt", "$lte"):
        if isinstance(operand, bool) or not isinstance(operand, (int, float, str)):
            raise TypeError(f"{place}[{operator!r}] must be a number or a str, not {type(operand).__name__}")
        if isinstance(operand, float) and math.isnan(operand):
            raise ValueError(f"{place}[{operator!r}] is not a number")
        return
    try:
        json.dumps(operand, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place} is not JSON: {error}") from None


def _as_float(value: Any) -> float:
    """A number that float64 holds exactly, else NaN."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 2**53:
        return math.nan
    return float(value)


def _same(a: Any, b: Any) -> bool:
    """Equal as JSON: numbers by value, but never a bool with a number."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return bool(a == b)


def _comparable(a: Any, b: Any) -> bool:
    number = (int, float)
    if isinstance(a, bool) or isinstance(b, bool):
        return False
    return (isinstance(a, str) and isinstance(b, str)) or (isinstance(a, number) and isinstance(b, number))


_COMPARISONS: dict[str, Callable[[Any, float], Any]] = {
    "$eq": operators.eq, "$ne": operators.ne, "$gt": operators.gt, "$gte": operators.ge, "$lt": operators.lt, "$lte": operators.le
}  # fmt: skip
"""What the tests below say of two numbers, for whole columns."""

_TESTS: dict[str, Callable[[Any], Callable[[Any], bool]]] = {
    "$eq": lambda b: lambda a: _same(a, b),
    "$ne": lambda b: lambda a: not _same(a, b),
    "$in": lambda b: lambda a: any(_same(a, each) for each in b),
    "$nin": lambda b: lambda a: not any(_same(a, each) for each in b),
    "$gt": lambda b: lambda a: _comparable(a, b) and a > b,
    "$gte": lambda b: lambda a: _comparable(a, b) and a >= b,
    "$lt": lambda b: lambda a: _comparable(a, b) and a < b,
    "$lte": lambda b: lambda a: _comparable(a, b) and a <= b,
    "$exists": lambda b: lambda a: (a is not MISSING) == b,
}
