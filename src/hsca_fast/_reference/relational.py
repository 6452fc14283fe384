"""Layer 1, the relational weight of a text, from its sentences of folded words.

The formula and the reasons for it are in docs/formulas.md; symbols are the same here and there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

# Fitted on the tuning half of the calibration texts (tools/calibrate_layer1.py); the rest were set by hand.
BREADTH_WEIGHT = 2.75
CARRIAGE_WEIGHT = 7.58
CLUSTER_WEIGHT = 13.3
LENGTH_WEIGHT = 3.31
CONTINUITY_WEIGHT = 0.985
LOG_SCALE = 17.7
SOFTNESS = 0.8
MIN_RATE = 1 / 40
OWN_SHARE = 0.4
OWN_HALF = 0.2
SHORT_SCORE = 0.02

BLOCK = 64  # distinct sentences judged together; the last block of a text holds 32 to 95
MIN_LISTED = 0.15  # share of function words below which the list does not know the language
NEUTRAL_CARRIAGE = 0.6

# Person and tense of a sentence, by the function words that show them.
CONTINUITIES = tuple(
    frozenset(words.split())
    for words in (
        "he him his himself he'd he'll he's",
        "she her hers herself she'd she'll she's",
        "i me my mine myself i'd i'll i'm i've",
        "we us our ours ourselves we'd we'll we're we've",
        "they them their theirs themselves they'd they'll they're they've",
        "you your yours yourself yourselves you'd you'll you're you've",
        "it its itself it'd it'll it's",
        "was were had did wasn't weren't hadn't didn't",
        "is are has have do does am isn't aren't hasn't haven't don't doesn't",
    )
)

_SUFFIXES = (("ing", 4), ("ed", 4), ("es", 4), ("ly", 4), ("s", 4), ("e", 4))


def stem(word: str) -> str:
    """Inflections fold together: drop 's, then one suffix, when at least four bytes remain. Long words stay."""
    if len(word.encode()) > 16:
        return word
    if word.endswith("'s") and len(word.encode()) >= 5:
        word = word[:-2]
    for suffix, least in _SUFFIXES:
        if word.endswith(suffix) and len(word.encode()) - len(suffix) >= least:
            return word[: -len(suffix)]
    return word


@dataclass
class Block:
    """The counts and factors of up to 95 distinct sentences."""

    n: int
    tokens: int
    breadth: float
    clustering: float
    carriage: float
    continuity: float
    strength: float
    ties: dict[str, float]  # r_w of the words that return
    own: list[float]  # x of each sentence


@dataclass
class Relational:
    """Scores of one text, from words to the whole."""

    layer1_score: float = 0.0
    short: bool = True
    sentence_scores: list[float] = field(default_factory=list)
    word_scores: dict[str, float] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)


def _is_profile_function_word(word: str, sentence_frequency: int, n: int) -> bool:
    """Where no list helps: the shortest words, and short ones that come back in many sentences."""
    return len(word) <= 3 or (len(word) <= 5 and sentence_frequency >= max(3, 0.15 * n))


def continuity(sentences: Sequence[Sequence[str]]) -> float:
    """How much longer person and tense last than their shares alone would make them; sentences of folded words."""
    n = len(sentences)
    total = 0.0
    for markers in CONTINUITIES:
        shows = [any(word in markers for word in words) for words in sentences]
        share = sum(shows) / n
        agreeing = sum(a == b for a, b in pairwise(shows))
        total += agreeing - (n - 1) * (share**2 + (1 - share) ** 2)
    return total / math.sqrt(n)


def measure_block(
    sentences: Sequence[Sequence[str | None]],
    words_of: Sequence[Sequence[str]],
    unspaced: frozenset[str],
    window: int,
) -> Block:
    """Factors of one block: sentences as stems with None for a function word, and as folded words."""
    n = len(sentences)
    listed = sum(w is None for s in sentences for w in s)
    words = sum(len(s) for s in sentences)
    n_unspaced = sum(w in unspaced for s in sentences for w in s if w is not None)
    profile: set[str] = set()
    if 2 * n_unspaced < words and listed < MIN_LISTED * words:
        frequency: dict[str, int] = {}
        for s in sentences:
            for word in {w for w in s if w is not None}:
                frequency[word] = frequency.get(word, 0) + 1
        profile = {w for w, df in frequency.items() if w not in unspaced and _is_profile_function_word(w, df, n)}

    tokens = carried = 0
    last: dict[str, int] = {}
    gaps: dict[str, list[int]] = {}
    for i, s in enumerate(sentences):
        after_function_word = False
        for w in s:
            if w is None or w in profile:
                after_function_word = True
                continue
            tokens += 1
            carried += after_function_word
            after_function_word = False
            if w in last and last[w] != i:
                gaps.setdefault(w, []).append(i - last[w])
            last[w] = i

    breadth = clustering = 0.0
    ties: dict[str, float] = {}
    for w, returns in gaps.items():
        k = len(returns)
        rate = k / (n - 1)
        breadth += (1 - rate) / k
        ties[w] = (1 - rate) / math.sqrt(k)
        for g in returns:
            clustering += -math.log(1 - math.exp(-(g - 0.5) * max(rate, MIN_RATE))) - 1
    breadth = (0.5 + breadth) / tokens if tokens else 0.0
    clustering = clustering / tokens if tokens else 0.0
    carriage = NEUTRAL_CARRIAGE if 2 * n_unspaced >= words else (carried + 1) / (tokens + 2)
    person_and_tense = continuity(words_of)
    strength = 0.0
    if tokens:
        z = SOFTNESS * (
            LOG_SCALE
            + BREADTH_WEIGHT * math.log(breadth)
            + CARRIAGE_WEIGHT * math.log(carriage)
            + (CLUSTER_WEIGHT * clustering - LENGTH_WEIGHT) * math.log(n)
            + CONTINUITY_WEIGHT * person_and_tense
        )
        strength = 1 / (1 + math.exp(-max(-60.0, min(60.0, z))))

    own = []
    for s in sentences:
        r = [ties.get(w, 0.0) for w in s if w is not None and w not in profile]
        pairs = [1 - (1 - r[i]) * (1 - r[j]) for i in range(len(r)) for j in range(i + 1, min(i + window, len(r)))]
        x = sum(pairs) / len(pairs) if pairs else sum(r)
        own.append(x / (x + OWN_HALF))
    return Block(n, tokens, breadth, clustering, carriage, person_and_tense, strength, ties, own)


def relational(
    sentences: Sequence[Sequence[str]],
    function_words: frozenset[str],
    *,
    unspaced: frozenset[str] = frozenset(),
    window: int = 5,
) -> Relational:
    """Layer 1 of a text given as sentences of folded words; `unspaced` are its words of unspaced scripts."""
    result = Relational()
    score: list[float] = []  # of each distinct sentence
    where: list[int | None] = []  # distinct sentence of each sentence
    pending: list[list[str | None]] = []  # distinct sentences not yet judged
    pending_words: list[Sequence[str]] = []
    bags: list[frozenset[str]] = []

    def judge(count: int) -> None:
        block = measure_block(pending[:count], pending_words[:count], unspaced, window)
        result.blocks.append(block)
        for x in block.own:
            score.append(block.strength * (1 - OWN_SHARE + OWN_SHARE * x))
        for w, r in block.ties.items():
            result.word_scores[w] = max(result.word_scores.get(w, 0.0), block.strength * r)
        del pending[:count], pending_words[:count], bags[:count]

    for words in sentences:
        stems = [None if len(word) == 1 or word in function_words else stem(word) for word in words]
        bag = frozenset(w for w in stems if w is not None)
        if not bag:
            where.append(None)
        elif bag in bags:
            where.append(len(score) + bags.index(bag))
        else:
            where.append(len(score) + len(bags))
            bags.append(bag)
            pending.append(stems)
            pending_words.append(words)
            if len(pending) == BLOCK + BLOCK // 2:
                judge(BLOCK)
    result.short = len(score) + len(pending) < 3
    if result.short:
        score = [SHORT_SCORE] * len(pending)
    else:
        judge(len(pending))
    result.sentence_scores = [0.0 if j is None else score[j] for j in where]
    live = [s for s, j in zip(result.sentence_scores, where, strict=True) if j is not None]
    result.layer1_score = sum(live) / len(live) if live else 0.0
    return result
