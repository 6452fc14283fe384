"""Every number of a retrieval, its default, its range; profiles by name, in layers that remember who said what."""

from __future__ import annotations

import math
import os
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from typing import Any, Literal

from hsca_fast.data import PACKAGED

AXES = ("ltp", "tagging", "association", "similarity", "decay", "recency", "mmr")
BUILT_IN = "built in"
MAX_BOOST = 10.0  # three such boosts and `MAX_WING_WEIGHT` keep scores below 2¹³, where sums of them are exact
MAX_WING_WEIGHT = 1000.0
_LARGEST = sys.float_info.max

_Check = Callable[[Any], str | None]  # what is wrong with a value, None for nothing


def _is_number(value: Any) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return -_LARGEST <= value <= _LARGEST  # of ints beyond any float, too


def _number(low: float, high: float = math.inf, *, above: bool = False) -> _Check:
    def check(value: Any) -> str | None:
        if _is_number(value) and (low < value if above else low <= value) and value <= high:
            return None
        bounds = (
            f"above {low:g}" if above else f"of at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        )
        return f"must be a number {bounds}"

    return check


def _count(least: int) -> _Check:
    def check(value: Any) -> str | None:
        good = isinstance(value, int) and not isinstance(value, bool) and value >= least
        return None if good else f"must be an int of at least {least}"

    return check


def _or_none(check: _Check) -> _Check:
    return lambda value: None if value is None else (found := check(value)) and f"{found}, or None"


def _truth(value: Any) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else "must be a str"


def _axes(value: Any) -> str | None:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return "must be a list of axes"
    unknown = [axis for axis in value if axis not in AXES]
    return f"has no axis {unknown[0]!r}; there are {', '.join(AXES)}" if unknown else None


def _one_of(*values: str) -> _Check:
    return lambda value: None if value in values else f"must be one of {', '.join(values)}"


def _weights(value: Any) -> str | None:
    good = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 3
    return None if good and all(_is_number(w) and 0 <= w <= 1 for w in value) else "must be three numbers from 0 to 1"


def _field(default: Any, check: _Check) -> Any:
    return field(default=default, metadata={"check": check})


_SHARE = _number(0.0, 1.0)
_BOOST = _number(1.0, MAX_BOOST)
_WINDOW = _number(0.0, above=True)


@dataclass(frozen=True, slots=True)
class RetrievalProfile:
    """How a retrieval works. docs/retrieval.md explains every field; all faults are reported together.

    Examples
    --------
    >>> RetrievalProfile(mmr_enabled=True, mmr_lambda=0.4).mmr_final_k
    5
    >>> RetrievalProfile(mmr_lambda=2, ltp_max_boost=0)
    Traceback (most recent call last):
    hsca_fast.retrieval.profile.ProfileError: a retrieval profile has 2 faults:
      ltp_max_boost must be a number from 1 to 10, not 0
      mmr_lambda must be a number from 0 to 1, not 2
    """

    description: str = _field("", _text)
    axes_enabled: tuple[str, ...] = _field(("ltp", "tagging", "association"), _axes)
    # score
    kappa: float = _field(0.1, _number(0.0))
    authority_weights: tuple[float, float, float] = _field((0.0, 0.0, 1.0), _weights)
    authority_decay: float = _field(1e-5, _number(0.0))
    half_life_days: float = _field(90.0, _number(0.0))
    decay_floor: float = _field(0.0, _SHARE)
    ltp_enabled: bool = _field(True, _truth)
    ltp_window_days: float = _field(30.0, _WINDOW)
    ltp_max_boost: float = _field(2.0, _BOOST)
    tagging_enabled: bool = _field(True, _truth)
    tagging_window_hours: float = _field(24.0, _WINDOW)
    tagging_max_boost: float = _field(1.5, _BOOST)
    association_enabled: bool = _field(True, _truth)
    association_max_boost: float = _field(1.4, _BOOST)
    association_coefficient: float = _field(0.2, _number(0.0))
    # guard
    model_guard: bool = _field(True, _truth)
    model_guard_strict: bool = _field(False, _truth)
    # query expansion
    query_expansion_enabled: bool = _field(False, _truth)
    query_expansion_max_terms: int = _field(3, _count(1))
    query_expansion_similarity_threshold: float = _field(0.65, _SHARE)
    query_expansion_boost: float = _field(0.7, _SHARE)
    query_expansion_lookback_days: float = _field(60.0, _WINDOW)
    # recall
    candidate_pool_multiplier: int = _field(1, _count(1))
    # supersede
    supersede_filter_enabled: bool = _field(False, _truth)
    supersede_similarity_threshold: float = _field(0.86, _SHARE)
    supersede_min_age_gap_days: float = _field(7.0, _number(0.0))
    supersede_action: Literal["annotate", "filter"] = _field("annotate", _one_of("annotate", "filter"))
    supersede_max_candidates: int = _field(10, _count(1))
    # consolidation
    include_consolidated_summaries: bool = _field(True, _truth)
    include_consolidated_sources: bool = _field(False, _truth)
    consolidation_suggestions_in_status: bool = _field(True, _truth)
    # threshold
    min_score: float | None = _field(None, _or_none(_number(0.0)))
    min_similarity: float | None = _field(None, _or_none(_number(-1.0, 1.0)))
    # duplicates
    exact_dedup_enabled: bool = _field(True, _truth)
    ngram_dedup_enabled: bool = _field(False, _truth)
    ngram_dedup_threshold: float = _field(0.7, _number(0.0, 1.0, above=True))
    ngram_dedup_size: int = _field(3, _count(1))
    semantic_dedup_enabled: bool = _field(False, _truth)
    semantic_dedup_threshold: float = _field(0.85, _number(0.001, 1.0))
    # diversity
    mmr_enabled: bool = _field(False, _truth)
    mmr_lambda: float = _field(0.7, _SHARE)
    mmr_final_k: int = _field(5, _count(1))
    wing_diversity_weight: float = _field(0.3, _number(0.0, MAX_WING_WEIGHT))
    # pinned
    pinned_memory_enabled: bool = _field(False, _truth)
    pinned_max_tokens: int = _field(2000, _count(0))
    pinned_max_items: int = _field(5, _count(0))
    pinned_ltp_threshold: float = _field(1.5, _BOOST)
    pinned_include_tagged: bool = _field(True, _truth)
    pinned_tagged_window_hours: float = _field(48.0, _WINDOW)
    # budget
    max_tokens: int | None = _field(None, _or_none(_count(0)))
    # observation
    explain: bool = _field(False, _truth)
    candidate_trace: bool = _field(False, _truth)
    # compaction
    adaptive_compaction: bool = _field(False, _truth)
    compaction_threshold: float = _field(0.3, _SHARE)
    compaction_age_days: float = _field(30.0, _number(0.0))
    decay_enabled: bool = _field(False, _truth)
    decay_lambda: float = _field(0.01, _number(0.0))
    # paginated scoring
    paginated_scoring: bool = _field(True, _truth)
    batch_size: int = _field(5000, _count(1))
    max_scan_depth: int = _field(50_000, _count(1))

    def __post_init__(self) -> None:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        if faults := profile_faults(values):
            raise ProfileError("a retrieval profile", faults)
        for name in ("axes_enabled", "authority_weights"):
            object.__setattr__(self, name, tuple(values[name]))

    def axis(self, name: Literal["ltp", "tagging", "association", "decay"]) -> bool:
        """Whether an axis moves scores: it is listed and its switch is on. Age counts unless no axis at all is listed."""
        if name == "decay":
            return bool(self.axes_enabled) and self.half_life_days > 0
        return name in self.axes_enabled and bool(getattr(self, f"{name}_enabled"))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


_CHECKS: dict[str, _Check] = {each.name: each.metadata["check"] for each in fields(RetrievalProfile)}


class ProfileError(ValueError):
    """Everything that is wrong with a profile; `faults` has one line each."""

    def __init__(self, owner: str, faults: Sequence[str]) -> None:
        count = f"{len(faults)} fault{'s' * (len(faults) != 1)}"
        super().__init__("\n  ".join([f"{owner} has {count}:", *faults]))
        self.owner = owner
        self.faults = tuple(faults)

    def __reduce__(self) -> tuple[type[ProfileError], tuple[str, tuple[str, ...]]]:
        return type(self), (self.owner, self.faults)


def profile_faults(values: Mapping[str, Any]) -> list[str]:
    """What is wrong with values of fields, a line each, in the order of the fields; unknown ones last."""
    faults = []
    for name, check in _CHECKS.items():
        if name in values and (fault := check(values[name])):
            faults.append(f"{name} {fault}, not {values[name]!r}")
    return faults + [f"there is no field {name!r}" for name in sorted(map(str, values.keys() - _CHECKS.keys()))]


@dataclass(frozen=True, slots=True)
class ResolvedProfile:
    """A profile made of layers.

    Attributes
    ----------
    profile
        The values that hold.
    sources
        For each field the layer that said so last.
    warnings
        What was asked for and is not there.
    """

    profile: RetrievalProfile
    sources: dict[str, str]
    warnings: tuple[str, ...] = ()


def merge_profiles(*layers: tuple[str, Mapping[str, Any]]) -> ResolvedProfile:
    """One profile of several layers; what a later one says holds. None says nothing.

    Parameters
    ----------
    layers
        (name, values by field) each; fields that no layer names have their defaults.

    Raises
    ------
    ProfileError
        With the faults of all layers, each with the layer's name.

    Examples
    --------
    >>> found = merge_profiles(("config", {"mmr_lambda": 0.5, "batch_size": 100}), ("this query", {"mmr_lambda": 0.9}))
    >>> found.profile.mmr_lambda, found.sources["mmr_lambda"], found.sources["batch_size"], found.sources["explain"]
    (0.9, 'this query', 'config', 'built in')
    """
    values: dict[str, Any] = {}
    sources = dict.fromkeys(_CHECKS, BUILT_IN)
    faults = []
    for name, layer in layers:
        said = {key: value for key, value in layer.items() if value is not None}
        faults += [f"{name}: {fault}" for fault in profile_faults(said)]
        values |= said
        sources |= dict.fromkeys(said.keys() & sources.keys(), name)
    if faults:
        raise ProfileError("a retrieval profile", faults)
    return ResolvedProfile(RetrievalProfile(**values), sources)


class ProfileBook:
    """Profiles by name, from files, over the four that come with the package.

    A TOML file holds one table a profile. Its table `default` is a layer under all of them. A profile may name another of
    its file or of the package as `inherits`; that one may not inherit itself.

    Parameters
    ----------
    paths
        Files, later ones over earlier ones.

    Examples
    --------
    >>> ProfileBook().names()
    ['act', 'decide', 'observe', 'orient']
    >>> found = ProfileBook().resolve("decide", {"mmr_final_k": 8})
    >>> found.profile.half_life_days, found.sources["half_life_days"], found.sources["mmr_final_k"]
    (7, 'profile decide', 'this query')
    """

    def __init__(self, *paths: str | os.PathLike[str]) -> None:
        self._layers: list[tuple[str, dict[str, dict[str, Any]]]] = [("", _bundled())]
        for path in paths:
            with open(path, "rb") as file:
                try:
                    tables = tomllib.load(file)
                except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                    raise ProfileError(os.fspath(path), [str(error)]) from None
            self._layers.append((os.fspath(path), tables))
        for source, tables in self._layers[1:]:
            if faults := self._faults(tables):
                raise ProfileError(source, faults)

    def names(self) -> list[str]:
        """Of all profiles, in order."""
        return sorted({name for _, tables in self._layers for name in tables} - {"default"})

    def resolve(self, name: str | None = None, overrides: Mapping[str, Any] | None = None) -> ResolvedProfile:
        """A named profile with the values of one query over it. An unknown name gives the default, and a warning."""
        layers = self._of("default")
        warnings = []
        if name is not None and name != "default":
            if name in self.names():
                parents = [t[name]["inherits"] for _, t in self._layers if "inherits" in t.get(name, {})]
                layers += self._of(parents[-1]) if parents else []
                layers += self._of(name)
            else:
                known = ", ".join(self.names())
                warnings.append(f"there is no retrieval profile {name!r}, only {known}: the default is used")
        resolved = merge_profiles(*layers, ("this query", overrides or {}))
        return ResolvedProfile(resolved.profile, resolved.sources, tuple(warnings))

    def _of(self, name: str) -> list[tuple[str, dict[str, Any]]]:
        return [
            (
                f"profile {name}" + (f" of {source}" if source else ""),
                {key: value for key, value in tables[name].items() if key != "inherits"},
            )
            for source, tables in self._layers
            if name in tables
        ]

    def _faults(self, tables: Mapping[str, Any]) -> list[str]:
        faults = []
        for name, table in tables.items():
            if not isinstance(table, Mapping):
                faults.append(f"{name} must be a table")
                continue
            values = dict(table)
            parent = values.pop("inherits", None)
            faults += [f"{name}: {fault}" for fault in profile_faults(values)]
            if parent is not None:
                family = [t[parent] for _, t in self._layers if isinstance(parent, str) and parent in t]
                if not family:
                    faults.append(f"{name}: inherits from {parent!r}, which is not there")
                elif any("inherits" in each for each in family):
                    faults.append(f"{name}: inherits from {parent!r}, which inherits itself")
        return faults


@cache
def _bundled() -> dict[str, dict[str, Any]]:
    return tomllib.loads((PACKAGED / "retrieval_profiles.toml").read_text(encoding="utf-8"))
