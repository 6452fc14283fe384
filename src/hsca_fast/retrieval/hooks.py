"""Functions that watch a retrieval. They are handed copies and cannot change it; one that raises is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

HOOKS = (
    "post_model_guard",
    "post_query_expansion",
    "post_recall",
    "post_score",
    "post_score_event",
    "post_supersede",
    "post_consolidation",
    "post_threshold",
    "post_dedup",
    "post_mmr",
    "post_cross_wing",
    "post_pinned",
    "post_budget",
    "post_batch",
    "post_compaction_plan",
)

Hook = Callable[[dict[str, Any]], object]


class Hooks:
    """Hooks by name, in the order they were registered."""

    def __init__(self) -> None:
        self._hooks: dict[str, list[Hook]] = {}

    def register(self, name: str, hook: Hook) -> None:
        if name not in HOOKS:
            raise ValueError(f"there is no hook {name!r}; there are {', '.join(HOOKS)}")
        if not callable(hook):
            raise TypeError(f"a hook must be callable, not {type(hook).__name__}")
        self._hooks.setdefault(name, []).append(hook)

    def wanted(self, name: str) -> bool:
        """Whether anybody listens; contexts are made only then."""
        return name in self._hooks

    def fire(self, name: str, context: Callable[[], dict[str, Any]], errors: list[str]) -> None:
        """Call the hooks of a name, each with a context of its own."""
        for hook in self._hooks.get(name, ()):
            try:
                hook(context())
            except Exception as error:  # a watcher must not break what it watches
                errors.append(f"hook {name} raised {type(error).__name__}: {error}")
