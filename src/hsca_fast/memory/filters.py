"""Filters over records: a mapping of names to values or conditions, checked once and applied to whole columns.

{"wing": "work", "timestamp": {"$gte": 1.7e9}, "$or": [{"role": "user"}, {"pinned": {"$exists": True}}]}
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Where = Mapping[str, Any]
FIELDS = ("turn_id", "role", "timestamp")
"""Names that mean the record's own fields; every other name is a key of its metadata."""

MISSING = object()
_MAX_DEPTH = 32


class Column:
    """One value a record, as codes into the distinct ones."""

    def __init__(self) -> None:
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

    def mask(self, test: Callable[[Any], bool]) -> Mask:
        accepted = np.array([test(value) for value in self.values], bool)
        return accepted[self.codes] if self.n else np.zeros(0, bool)


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
                mask &= column.mask(_TESTS[operator](operand))
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
