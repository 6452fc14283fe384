"""Every number a user may turn, its default, its range and where it comes from."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hsca_fast.text.lexicon import Lexicon, check_together
from hsca_fast.text.models import DomainModel, NuanceModel, domain_model_of, nuance_models_of
from hsca_fast.text.supervisor import DEFAULT_TIMEOUT_SECONDS, check_timeout

MAX_WINDOW = 1000


@dataclass(frozen=True, slots=True)
class ScoringConfig:
    """How texts are scored.

    Parameters
    ----------
    window
        Content words less than this far apart in a sentence are neighbours (HSCA 2.1: "default 5 tokens"); 2 to 1000.
    domain_model
        Who tells domains: "linear" (the trained model of the package), "rules" (its cue lists), a callable from a list
        of texts to their tags, or the path of an .onnx file. A model that fails leaves its texts `unclassified`.
    nuance_models
        Models for the flags that end in `_model`: paths of .onnx heads, such as `bundled_nuance_models()`, or
        `NuanceModel` objects; or a mapping from flag to such or to a callable. Without one a flag is not assessed.
    lexicons
        Cue lists added to the built-in ones (`Lexicon.from_toml`).
    model_timeout_seconds
        How long a batch of texts may take in a user's model before the model is given up.

    Examples
    --------
    >>> ScoringConfig(window=8).window
    8
    """

    window: int = 5
    domain_model: str | os.PathLike[str] | Callable[[list[str]], Any] | DomainModel = "linear"
    nuance_models: (
        Sequence[str | os.PathLike[str] | NuanceModel]
        | Mapping[str, str | os.PathLike[str] | NuanceModel | Callable[[list[str]], Any]]
    ) = ()
    lexicons: Sequence[Lexicon] = ()
    model_timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS

    def __post_init__(self) -> None:
        if isinstance(self.window, bool) or not isinstance(self.window, int):
            raise TypeError(f"window must be an int, not {type(self.window).__name__}")
        if not 2 <= self.window <= MAX_WINDOW:
            raise ValueError(f"window must be between 2 and {MAX_WINDOW}, not {self.window}")
        if isinstance(self.lexicons, Lexicon) or not isinstance(self.lexicons, Sequence):
            raise TypeError(f"lexicons must be a sequence of Lexicon, not {type(self.lexicons).__name__}")
        for i, lexicon in enumerate(self.lexicons):
            if not isinstance(lexicon, Lexicon):
                raise TypeError(f"lexicons[{i}] must be a Lexicon, not {type(lexicon).__name__}")
        object.__setattr__(self, "lexicons", tuple(self.lexicons))
        check_together(self.lexicons)
        object.__setattr__(self, "domain_model", domain_model_of(self.domain_model))
        object.__setattr__(self, "nuance_models", nuance_models_of(self.nuance_models))
        object.__setattr__(self, "model_timeout_seconds", check_timeout(self.model_timeout_seconds))
