"""What the kernel scores by, made from a `ScoringConfig` and the files of the package, and kept."""

from __future__ import annotations

from functools import cache, lru_cache

from hsca_fast._native import text as _native
from hsca_fast._native.strings import encode
from hsca_fast.config import ScoringConfig
from hsca_fast.data import PACKAGED
from hsca_fast.text import lexicon
from hsca_fast.text.lexicon import DOMAIN_PREFIX, Lexicon
from hsca_fast.types import DomainTag, NuanceFlag

# A category is a flag's unless the user made it up; tones by sentiment have no cues.
_FLAG_BITS = {flag.value: 1 << i for i, flag in enumerate(NuanceFlag)}
_TAGS = {tag.value: i for i, tag in enumerate(DomainTag)}


@lru_cache(maxsize=16)
def all_cues(extra: tuple[Lexicon, ...], *, with_domain_rules: bool) -> Lexicon:
    """The built-in cues and `extra` ones."""
    names = ("nuance", "domain_rules") if with_domain_rules else ("nuance",)
    return lexicon.merge([*(lexicon.builtin(name) for name in names), *extra])


@lru_cache(maxsize=16)
def _native_lexicon(extra: tuple[Lexicon, ...], with_domain_rules: bool) -> _native.Lexicon:
    cues, categories, rules = [], [], []
    for i, category in enumerate(all_cues(extra, with_domain_rules=with_domain_rules).categories):
        threshold = 1.0 if category.threshold is None else category.threshold
        share = 0.0 if category.share is None else category.share
        categories.append((round(threshold * 1000), share, _FLAG_BITS.get(category.name, 0)))
        if with_domain_rules and category.name.startswith(DOMAIN_PREFIX):
            rules.append((i, _TAGS[category.name.removeprefix(DOMAIN_PREFIX)], threshold))
        for cue in category.cues:
            at, within = lexicon.AT.index(cue.at), lexicon.IN.index(cue.within)
            cues.append((encode(cue.text)[0], i, round(cue.weight * 1000), at, within))
    positive, negative, neutral = (_FLAG_BITS[f"emotional_tone_{tone}"] for tone in ("positive", "negative", "neutral"))
    return _native.Lexicon(cues, categories, (positive, negative, neutral), rules)


@cache
def linear_model() -> _native.DomainModel:
    """The trained model of domains."""
    return _native.DomainModel((PACKAGED / "domain_linear.bin").read_bytes())


def native_scorer(config: ScoringConfig, *, explains: bool = False) -> _native.Scorer:
    """The kernel's side of `config`; to explain, the domain rules are looked for whoever decides."""
    by_rules = config.domain_model == "rules"
    model = linear_model() if config.domain_model == "linear" else None
    # A user's own model has the last word on domains, so nothing native needs to know them.
    return _native.Scorer(config.window, _native_lexicon(tuple(config.lexicons), by_rules or explains), model)
