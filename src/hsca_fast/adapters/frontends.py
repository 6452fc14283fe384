"""The releases of the front ends that the adapters were tested with."""

from __future__ import annotations

import re
import warnings
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import NamedTuple

Release = tuple[int, int]


class Tested(NamedTuple):
    """A distribution and its releases: from `least` on, before `below`."""

    distribution: str
    least: Release
    below: Release

    def __str__(self) -> str:
        return f"{self.distribution}>={_text(self.least)},<{_text(self.below)}"


#: By extra; pyproject.toml says the same.
TESTED = MappingProxyType(
    {
        "langchain": (Tested("langchain-core", (1, 7), (1, 8)), Tested("langchain-text-splitters", (1, 1), (1, 2))),
        "llamaindex": (Tested("llama-index-core", (0, 14), (0, 15)),),
        "haystack": (Tested("haystack-ai", (3, 4), (3, 5)),),
        "mempalace": (Tested("mempalace", (3, 11), (3, 12)),),
        "chroma": (Tested("chromadb", (1, 5), (1, 6)),),
        "mcp": (Tested("mcp", (2, 0), (3, 0)),),
    }
)


class FrontendVersionWarning(UserWarning):
    """A front end is installed in a release that its adapter was not tested with."""


def require(extra: str) -> None:
    """What the adapter `extra` needs is installed; a release that was not tested gives a warning that names both.

    Raises
    ------
    ImportError
        It is not; the message names the extra.
    """
    for tested in TESTED[extra]:
        try:
            installed = version(tested.distribution)
        except PackageNotFoundError:
            raise ImportError(
                f"hsca_fast.adapters.{extra} needs {tested.distribution}: pip install 'hsca_fast[{extra}]'"
            ) from None
        if not tested.least <= _release(installed) < tested.below:
            warnings.warn(
                f"hsca_fast.adapters.{extra} was tested with {tested}, and {tested.distribution} {installed} is installed",
                FrontendVersionWarning,
                stacklevel=3,
            )


def _release(text: str) -> Release:
    found = re.match(r"(?:\d+!)?(\d+)(?:\.(\d+))?", text)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def _text(release: Release) -> str:
    return f"{release[0]}.{release[1]}"
