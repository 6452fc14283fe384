"""Plain dicts read field by field, with errors that name the field."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

REQUIRED: Final[Any] = object()
T = TypeVar("T")


class Fields:
    """The fields of a dict that should hold a `owner`.

    A field that is missing is a `KeyError`, one of the wrong type a `TypeError`, one out of range or unknown a
    `ValueError`; unknown ones are refused, since an object has no place to keep them.
    """

    def __init__(self, owner: str, values: object, known: Iterable[str]) -> None:
        if not isinstance(values, Mapping):
            raise TypeError(f"{owner} must be read from a dict, not {type(values).__name__}")
        self._owner = owner
        self._values = values
        if unknown := values.keys() - set(known):
            raise ValueError(f"{owner} has no field {min(map(str, unknown))!r}")

    def any(self, name: str, default: Any = REQUIRED) -> Any:
        """The value as it is."""
        value = self._values.get(name, default)
        if value is REQUIRED:
            raise KeyError(f"{self._owner}.{name} is missing")
        return value

    def text(self, name: str, default: Any = REQUIRED) -> str:
        """A str."""
        value = self.any(name, default)
        if not isinstance(value, str):
            raise self._wrong_type(name, "a str", value)
        return value

    def text_or_none(self, name: str) -> str | None:
        """A str, or None, which is also the default."""
        return None if self.any(name, None) is None else self.text(name)

    def truth(self, name: str, default: Any = REQUIRED) -> bool:
        """A bool."""
        value = self.any(name, default)
        if not isinstance(value, bool):
            raise self._wrong_type(name, "a bool", value)
        return value

    def count(self, name: str, default: Any = REQUIRED) -> int:
        """An int that is not negative."""
        return self._count(self.any(name, default), name)

    def counts(self, name: str, default: Any = REQUIRED) -> list[int]:
        """A list of ints that are not negative, copied."""
        return [self._count(value, f"{name}[{i}]") for i, value in enumerate(self.items(name, default))]

    def number(self, name: str, default: Any = REQUIRED) -> float:
        """A finite float."""
        return finite(self.any(name, default), f"{self._owner}.{name}")

    def unit(self, name: str, default: Any = REQUIRED) -> float:
        """A float between 0 and 1."""
        return unit(self.any(name, default), f"{self._owner}.{name}")

    def texts(self, name: str, default: Any = REQUIRED) -> list[str]:
        """A list of str, copied."""
        values = self.items(name, default)
        for i, value in enumerate(values):
            if not isinstance(value, str):
                raise self._wrong_type(f"{name}[{i}]", "a str", value)
        return values

    def items(self, name: str, default: Any = REQUIRED) -> list[Any]:
        """A list, copied."""
        values = self.any(name, default)
        if not isinstance(values, (list, tuple)):
            raise self._wrong_type(name, "a list", values)
        return list(values)

    def each(self, name: str, read: Callable[[Any], T], default: Any = REQUIRED) -> list[T]:
        """A list of what `read` makes of each item; its errors say which item it was."""
        found = []
        for i, item in enumerate(self.items(name, default)):
            try:
                found.append(read(item))
            except (KeyError, TypeError, ValueError) as error:
                raise type(error)(f"{self._owner}.{name}[{i}]: {error.args[0]}") from error
        return found

    def mapping(self, name: str, default: Any = REQUIRED) -> dict[str, Any]:
        """A dict with str keys, copied."""
        values = self.any(name, default)
        if not isinstance(values, Mapping):
            raise self._wrong_type(name, "a dict", values)
        for key in values:
            if not isinstance(key, str):
                raise self._wrong_type(f"{name}'s key {key!r}", "a str", key)
        return dict(values)

    def _count(self, value: Any, name: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong_type(name, "an int", value)
        if value < 0:
            raise ValueError(f"{self._owner}.{name} must not be negative, not {value}")
        return value

    def _wrong_type(self, name: str, wanted: str, value: object) -> TypeError:
        return TypeError(f"{self._owner}.{name} must be {wanted}, not {type(value).__name__}")


def at_least_one(value: Any, name: str) -> int:
    """`value` as an int of at least 1; `name` is for the error."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")
    return value


def finite(value: Any, name: str) -> float:
    """`value` as a float; `name` is for the error."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, not {value}")
    return float(value)


def unit(value: Any, name: str) -> float:
    """`value` as a float between 0 and 1; `name` is for the error."""
    number = finite(value, name)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must be between 0 and 1, not {value}")
    return number
