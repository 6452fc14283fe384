"""Eval 5: are related things that appear in different framings linked through the domain that they share?"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hsca_fast._reference.domain import trivially_related
from hsca_fast.config import ScoringConfig
from hsca_fast.context.paragraphs import paragraph_domains
from hsca_fast.context.tuning import weighted_domains
from hsca_fast.evals.fidelity import fold
from hsca_fast.evals.macro import recognised
from hsca_fast.evals.passages import HALVES, Passage, in_half, load_passages, sentences_of
from hsca_fast.evals.report import SEED, EvalReport, Figure

CASES = 200
CONTROLS = 40
SHARED = 0.2
TARGET = 0.85
CRITERION = (
    "both sides of a pair hold >= 0.2 of their domain weight on the domain that bridges them, in >= 85 % of pairs "
    "(specification: 75 %), the tortoise and the hare among them"
)
# Words for one thing; the two sides of a pair use different ones.
CONCEPTS = tuple(
    tuple(line.split())
    for line in """
    rabbit rabbits hare hares|ship ships vessel vessels boat boats|sea seas ocean waters|king kings ruler prince monarch
    child children boy boys girl infant|man men fellow gentleman person persons|woman women lady wife|house houses home dwelling
    road roads path street way|war wars battle fight army|doctor physician patient patients|death dead die died mortal
    god gods heaven divine|night nights dark darkness evening|day days morning light|money payment payments price cost costs
    work works labor labour task tasks|friend friends companion|law laws rule rules right rights|nation nations country people
    fire flame flames heat hot|water river rain stream|tree trees wood forest|earth ground land soil|mind minds thought soul spirit
    word words language speech voice|time times hour hours year years|number numbers value values amount|force forces power powers
    life living lives alive|heart hearts love|state states government|study studies research|field fields grass plain
    """.replace("\n", "|").split("|")
    if line.strip()
)

# Written for this eval: a rabbit that is talked about, and the fable of Aesop, told again, with what it means.
RABBIT = (
    "Last spring a rabbit moved in under our garden shed. It came out every evening when the light was going, and my daughter "
    "sat at the window and waited for it. One night she crept outside with a carrot. The rabbit looked at her, and then it was gone.",
    "She did not give up. Every evening she put the carrot a little nearer to the door and sat down on the step. The rabbit "
    "watched her from the hedge. After a week it ran across the grass, took the carrot and fled, and she laughed so loudly that the dog woke up.",
    "In June it no longer fled. It sat beside her and ate, and she told it about her day at school. When the first snow fell "
    "she cried, because she thought that it would freeze. My husband carried straw to the shed, and in the morning there were tracks in it.",
)
TORTOISE_AND_HARE = (
    "A hare once laughed at a tortoise because his legs were short and his step was slow. The tortoise smiled and said that he "
    "would beat her in a race. The fox drew the line and called the start. The hare was over the hill before the tortoise had crossed the road.",
    "She looked back and saw nobody, and so she lay down in the shade of an oak and fell asleep. The tortoise came by and did "
    "not stop. When the hare woke she ran as she had never run, but the tortoise was already sitting at the end of the field.",
    "What is it that we ought to learn from this? A gift is not a virtue, for it is nothing that we have chosen; virtue lies in "
    "the will that holds to its purpose. Reason tells us that the good of a life is not its moments of speed but its constancy. Pride "
    "mistakes what it could do for what it does, and that is an error of judgment before it is a fault of character.",
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sides of a conversation: one domain, then that domain together with another."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    bridge: str
    name: str


def make_pairs(
    passages: Mapping[str, Sequence[Passage]], bridges: Sequence[str], n: int, seed: int, *, bridged: bool = True
) -> list[Pair]:
    """`n` pairs over the domains `bridges`: turns about a thing from a source of the bridging domain; then turns that name it otherwise, from another source
    of that domain and from one of a domain that is not related to it.

    With `bridged` False both sources of the second side are of unrelated domains: nothing should be shared.
    """
    rng = random.Random(seed)
    labels = list(passages)
    pairs: list[Pair] = []
    tries = 0
    while len(pairs) < n:
        tries += 1
        if tries > 5000 * n:
            raise ValueError(f"only {len(pairs)} of {n} pairs can be made of {len(labels)} labels")
        bridge = bridges[tries % len(bridges)]
        strange = [x for x in labels if x != bridge and not trivially_related(x, bridge)]
        if not strange:
            continue
        concept = rng.choice(CONCEPTS)
        one, *others = rng.sample(concept, len(concept))
        source = rng.choice(passages[bridge])
        there = rng.choice(passages[bridge if bridged else rng.choice(strange)])
        other = rng.choice(passages[rng.choice(strange)])
        if there is source:
            continue
        here = _around(source, [one], rng)
        first, second = _around(there, others, rng, without=one), _around(other, others, rng, without=one)
        if not (here and first and second) or bridge in other.unsure or (not bridged and bridge in there.unsure):
            continue
        name = f"{len(pairs)}: {one} in {bridge}, {'/'.join(others)} in {there.label} ({there.group}) and {other.label} ({other.group})"
        pairs.append(Pair(tuple(here), (*first, *second), bridge, name))
    return pairs


@lru_cache(maxsize=4096)
def _words_by_sentence(text: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(re.findall(r"[a-z]+", text[a:b].lower())) for a, b in sentences_of(text))


def _around(passage: Passage, words: Sequence[str], rng: random.Random, *, without: str | None = None) -> list[str]:
    """Two neighbouring turns of three to five sentences, of which the first names the thing; none if no place in the passage does."""
    spans, said = sentences_of(passage.text), _words_by_sentence(passage.text)
    places = [i for i, own in enumerate(said) if not own.isdisjoint(words)]
    rng.shuffle(places)
    for place in places:
        begin = max(0, place - rng.randint(0, 2))
        middle = begin + rng.randint(3, 5)
        end = middle + rng.randint(3, 5)
        if end <= len(spans) and (without is None or not any(without in own for own in said[begin:end])):
            return [passage.text[spans[a][0] : spans[b - 1][1]] for a, b in ((begin, middle), (middle, end))]
    return []


def shared_weight(pair: Pair) -> float:
    """The lesser of the two sides' domain weights on the bridge."""
    config = ScoringConfig(domain_model=paragraph_domains)
    sides = [weighted_domains(fold(turns, config=config)) for turns in (pair.before, pair.after)]
    return min(side.get(pair.bridge, 0.0) for side in sides)


def run(data: Path | None = None) -> EvalReport:
    """Eval 5 on both halves, with the engine's defaults; the bridging domains are those that the dev half's turns are tagged with."""
    passages = load_passages(data)
    bridges = recognised(in_half(passages, "dev"))
    hare = Pair(RABBIT, TORTOISE_AND_HARE, "narrative", "the tortoise and the hare")
    hare_weight = shared_weight(hare)
    figures: dict[str, tuple[Figure, ...]] = {}
    failures: list[str] = []
    for half in HALVES:
        own = in_half(passages, half)
        weights = {pair.name: shared_weight(pair) for pair in make_pairs(own, bridges, CASES, SEED)}
        failures = [f"{name}: {weight:.2f}" for name, weight in weights.items() if weight < SHARED]
        control = sum(shared_weight(pair) >= SHARED for pair in make_pairs(own, bridges, CONTROLS, SEED, bridged=False))
        figures[half] = (
            Figure(f"bridge holds >= {SHARED} on both sides", CASES - len(failures), CASES, TARGET),
            Figure("the same without a bridge (should be low)", control, CONTROLS),
            Figure("the tortoise and the hare", int(hare_weight >= SHARED), 1, 1.0),
        )
    passed = all(figure.passed for figure in figures[HALVES[1]])
    note = f"the tortoise and the hare share {hare_weight:.2f} on narrative"
    return EvalReport("5", "Cross-domain bridging", CRITERION, figures, tuple(failures), (note,), passed=passed)
