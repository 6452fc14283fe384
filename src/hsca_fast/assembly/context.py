"""A context put together within its token budget (sections 7.8 to 7.10 of the document)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any, Literal, TypeVar

from hsca_fast.assembly.document import AuthoredNode
from hsca_fast.assembly.recall import Candidate, Key, Ranked, Recall, RecallConfig, as_candidates
from hsca_fast.assembly.tail import MIN_TURNS, coupled, tail_start, whole_number
from hsca_fast.memory.turns import Turn, chronological
from hsca_fast.ranking import fit_budget
from hsca_fast.ranking.columns import number, triple
from hsca_fast.ranking.costs import CountTokens, token_costs

FRACTIONS = (1.0, 0.3, 0.25)
LIKELY_COST = 64  # of a recalled document: a guess that decides how many are ranked at first
CHUNK = 64  # documents and turns that are wrapped and counted together

Authored = str | AuthoredNode
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One piece of a context and where it comes from.

    Attributes
    ----------
    kind
        "hard" and "soft" authored text, "recall" and "hop" for recalled documents, "turn" for the recent tail.
    text
        As it was handed in.
    rendered
        As it stands in the context: authored text as it is, everything else escaped and wrapped with its role and source.
    n_tokens
        Cost of `rendered`.
    id, collection, role
        Of the node, document or turn.
    score
        sigma(d) of a recalled document, else None.
    via
        (collection, id) of the best parent of a hop.
    """

    kind: Literal["hard", "soft", "recall", "hop", "turn"]
    text: str
    rendered: str
    n_tokens: int
    id: str = ""
    collection: str = ""
    role: str = ""
    score: float | None = None
    via: Key | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where the budget went, in tokens, in the order in which it was given out; limits are what each part could take."""

    budget: int
    hard: int
    base: int
    soft_limit: int
    soft: int
    tail_limit: int
    tail: int
    variant_limit: int
    variant: int


@dataclass(frozen=True, slots=True)
class AssembledContext:
    """A context that fits.

    Attributes
    ----------
    items
        Hard rules, soft rules, recalled documents by rank, the recent tail in time order.
    text
        All of them rendered, one after the other.
    total_tokens
        The larger of the sum of the items' costs and the cost of `text`; never more than the budget.
    degraded
        No legal assembly exists; `reasons` say why. What does fit is still here, except hard text: that is whole or absent.
    ledger
        The accounts.
    """

    items: tuple[ContextItem, ...]
    text: str
    total_tokens: int
    degraded: bool
    reasons: tuple[str, ...]
    ledger: Ledger


def check_hard_reserve(
    hard: Iterable[Authored], *, budget: int, fraction: float = 1.0, count_tokens: CountTokens | None = None
) -> int:
    """Refuse, at start-up, hard text that costs more than its share of the budget; return what it costs.

    Raises
    ------
    ValueError
        The hard text costs more than fraction * budget.

    Examples
    --------
    >>> check_hard_reserve(["Be kind."], budget=100, fraction=0.1)
    3
    """
    fraction = number("fraction", fraction, 0.0, 1.0)
    budget = whole_number("budget", budget)
    cost = _total(_authored_items(hard, "hard", count_tokens, set()), count_tokens)
    reserve = _share(fraction, budget)
    if cost > reserve:
        raise ValueError(f"hard text costs {cost} tokens but its reserve is {reserve} of {budget}")
    return cost


def assemble(
    query: str,
    *,
    budget: int,
    hard: Iterable[Authored] = (),
    soft: Iterable[Authored] = (),
    turns: Iterable[Turn | Mapping[str, object] | str] = (),
    candidates: Iterable[Candidate | Mapping[str, Any]] = (),
    linked: Iterable[Candidate | Mapping[str, Any]] = (),
    fractions: tuple[float, float, float] = FRACTIONS,
    tail_tokens: int | None = None,
    min_turns: int = MIN_TURNS,
    config: RecallConfig | None = None,
    now: float | None = None,
    max_access: int | None = None,
    count_tokens: CountTokens | None = None,
) -> AssembledContext:
    """Put authored rules, the recent tail and ranked recall together within a token budget.

    Hard text comes whole, then at least the last `min_turns` turns, then soft rules by longest prefix, more of the tail, and with
    what is left the recalled documents by rank. When hard text and the last turns do not fit together the result is `degraded` and
    says so; hard text that does not fit by itself leaves the context empty rather than cut.

    Parameters
    ----------
    query
        Its keywords count in the ranking of candidates.
    budget
        Tokens for everything, wrapping included.
    hard, soft
        Texts or nodes of `partition_document`, in authored order; injected as they are, a node given twice once.
    turns
        The session.
    candidates
        Documents that a search found. Those that are in the tail, hard or soft already are left out.
    linked
        Documents that hops may reach beside the candidates.
    fractions
        Share of the budget for hard text (alpha_1, where 1 means no share of its own), the most that soft text may take (alpha_2),
        and the target of the tail (beta). Their sum may not pass 1, alpha_1 = 1 not counted.
    tail_tokens
        Target of the tail in tokens instead of beta * budget.
    min_turns
        Turns that must be there; 0 for no tail.
    now
        Seconds since the epoch against which ages are taken; the default is the clock.
    max_access
        Largest access count in the store; the default, and the least, is that of the candidates.
    count_tokens
        Cost of a text; the default is `estimate_tokens`.

    Examples
    --------
    >>> context = assemble(
    ...     "Where is the lamp?",
    ...     budget=60,
    ...     hard=["Be brief."],
    ...     turns=[Turn("Where is the lamp?", "user")],
    ...     candidates=[Candidate("d1", "The lamp is in the <old> tower.", 0.9, collection="notes")],
    ... )
    >>> print(context.text, end="")
    Be brief.
    <recalled role="unknown" source="notes">The lamp is in the &lt;old&gt; tower.</recalled>
    <turn role="user" source="session">Where is the lamp?</turn>
    >>> context.total_tokens, context.degraded
    (42, False)
    """
    if not isinstance(query, str):
        raise TypeError(f"query must be str, not {type(query).__name__}")
    now = time.time() if now is None else number("now", now, -math.inf)
    if max_access is not None:
        max_access = whole_number("max_access", max_access)
    if config is None:
        config = RecallConfig()
    elif not isinstance(config, RecallConfig):
        raise TypeError(f"config must be a RecallConfig, not {type(config).__name__}")
    budget = whole_number("budget", budget)
    min_turns = whole_number("min_turns", min_turns)
    alpha1, alpha2, beta = _fractions(fractions)
    target = _share(beta, budget) if tail_tokens is None else whole_number("tail_tokens", tail_tokens)
    session = chronological(turns)
    nodes: set[tuple[str, str]] = set()
    rules = _authored_items(hard, "hard", count_tokens, nodes)
    guidance = _authored_items(soft, "soft", count_tokens, nodes)
    talk = _last_turns(session, min_turns, budget, count_tokens)
    found = as_candidates(candidates, "candidates")
    reachable = as_candidates(linked, "linked")

    hard_cost, reserve = _total(rules, count_tokens), _share(alpha1, budget)
    n_base = min(min_turns, len(talk))
    base = len(talk) - n_base
    base_cost = _cost(talk[base:])
    reasons = []
    if hard_cost > reserve:
        reasons.append(f"hard text costs {hard_cost} tokens but its reserve is {reserve} of {budget}")
    if (mandatory := _total([*rules, *talk[base:]], count_tokens)) > budget:
        reasons.append(f"hard text and the last {n_base} turns cost {mandatory} tokens but the budget is {budget}")
    if reasons:
        return _degraded(rules, talk[base:], budget, reasons, count_tokens)

    hard_cost = _cost(rules)
    authored = {(item.collection, item.id) for item in (*rules, *guidance) if item.id}
    soft_limit = min(_share(alpha2, budget), budget - hard_cost - base_cost)
    guidance = guidance[: len(fit_budget(_costs(guidance), soft_limit))]
    room = budget - hard_cost - _cost(guidance)
    bundles = coupled(session)[len(session) - len(talk) :]
    base, start, _ = tail_start(_costs(talk), bundles, min_turns, target, room)

    # The costs of the items fit. The text as a whole may still cost more, when one kanji makes each of its characters dear or a
    # counter rounds down: then the oldest turns go until the text fits too, then soft rules, the bundle of the base last of all.
    starts = [row for row in range(start, base + 1) if row == start or row == len(talk) or not bundles[row]]
    smaller = [(len(guidance), row) for row in starts]
    smaller += [(n, starts[-1]) for n in range(len(guidance) - 1, -1, -1)]
    smaller.append((0, base))
    n_soft, start = _first_within(
        smaller, budget, lambda cut: _total([*rules, *guidance[: cut[0]], *talk[cut[1] :]], count_tokens)
    )
    before, tail = [*rules, *guidance[:n_soft]], talk[start:]
    if tail and bundles[start]:
        reasons.append(
            f"the bundle that the last {n_base} turns begin in does not fit {budget} tokens with all the rest"
        )
    room = budget - _cost(before)
    recall = Recall(
        query,
        found,
        reachable,
        config,
        now=now,
        max_access=max_access,
        excluded=authored | {(item.collection, item.id) for item in tail if item.id},
    )
    recalled = _packed(recall, room - _cost(tail), count_tokens)
    total = _total([*before, *recalled, *tail], count_tokens)
    if total > budget:
        recalled = _packed(recall, room - _cost(tail), count_tokens, _Whole(before, tail, budget, count_tokens))
        total = _total([*before, *recalled, *tail], count_tokens)
    ledger = Ledger(
        budget=budget,
        hard=hard_cost,
        base=base_cost,
        soft_limit=soft_limit,
        soft=_cost(guidance[:n_soft]),
        tail_limit=min(max(target, base_cost), room),
        tail=_cost(tail),
        variant_limit=room - _cost(tail),
        variant=_cost(recalled),
    )
    return _context([*before, *recalled, *tail], total, reasons, ledger)


def _degraded(
    rules: list[ContextItem],
    base: list[ContextItem],
    budget: int,
    reasons: list[str],
    count_tokens: CountTokens | None,
) -> AssembledContext:
    """Hard text and as many of the last turns as fit beside it; nothing at all when the hard text does not fit."""
    items: list[ContextItem] = []
    if _total(rules, count_tokens) <= budget:
        kept = _first_within(range(len(base) + 1), budget, lambda row: _total([*rules, *base[row:]], count_tokens))
        items = [*rules, *base[kept:]]
        if kept:
            reasons.append(f"the first {kept} of the last {len(base)} turns were left out")
    elif rules:
        reasons.append("hard text is never cut, so the context is empty")
    hard = _cost(items[: len(rules)])
    tail = _cost(items[len(rules) :])
    ledger = Ledger(budget, hard, _cost(base), 0, 0, budget - hard, tail, 0, 0)
    return _context(items, _total(items, count_tokens), reasons, ledger)


def _context(items: list[ContextItem], total: int, reasons: list[str], ledger: Ledger) -> AssembledContext:
    return AssembledContext(
        items=tuple(items),
        text="".join(item.rendered for item in items),
        total_tokens=total,
        degraded=bool(reasons),
        reasons=tuple(reasons),
        ledger=ledger,
    )


@dataclass(frozen=True, slots=True)
class _Whole:
    """Keeps the text as a whole within the budget, where that costs more than its parts."""

    before: list[ContextItem]
    tail: list[ContextItem]
    budget: int
    count_tokens: CountTokens | None

    def total(self, recalled: Sequence[ContextItem]) -> int:
        return _total([*self.before, *recalled, *self.tail], self.count_tokens)

    def fitting(self, packed: Sequence[ContextItem], items: Sequence[ContextItem]) -> int:
        """How many of the next items fit, one after the other."""
        counts = range(len(items), -1, -1)
        return _first_within(counts, self.budget, lambda n: self.total([*packed, *items[:n]]))

    def is_dear(self, packed: Sequence[ContextItem], item: ContextItem) -> bool:
        """Does the item cost more the first time than the second? Then it is not too long, but makes all else dearer."""
        none, once, twice = (self.total([*packed, *[item] * n]) for n in range(3))
        return once - none > twice - once + 1


def _packed(
    recall: Recall, limit: int, count_tokens: CountTokens | None, whole: _Whole | None = None
) -> list[ContextItem]:
    """The ranked documents that fit the limit, in order; ranks and wraps no more of them than it must."""
    packed: list[ContextItem] = []
    seen: set[Key] = set()
    policy = recall.config.policy
    room = None
    k = limit // LIKELY_COST + 16
    while True:
        ranked = recall.ranked(k, room=room)
        fresh = (
            [each for each in ranked if (each.candidate.collection, each.candidate.id) not in seen] if seen else ranked
        )
        for start in range(0, len(fresh), CHUNK):
            items = _recalled_items(fresh[start : start + CHUNK], count_tokens)
            while items:
                rows = fit_budget(_costs(items), limit, policy=policy).tolist()
                fitting = [items[row] for row in rows]
                n = len(fitting) if whole is None else whole.fitting(packed, fitting)
                is_cut = n < len(fitting)
                if is_cut and whole is not None and not whole.is_dear([*packed, *fitting[:n]], fitting[n]):
                    return packed + fitting[:n]
                packed += fitting[:n]
                limit -= _cost(fitting[:n])
                if not is_cut and policy == "prefix" and len(fitting) < len(items):
                    return packed
                items = items[rows[n] + 1 :] if is_cut else []
        if len(ranked) < k:
            return packed
        seen.update((each.candidate.collection, each.candidate.id) for each in fresh)
        k *= 4
        # Wrapping makes no text cheaper, so what costs more unwrapped can be passed over unseen; another's counter may differ.
        if policy == "first_fit" and count_tokens is None:
            room = limit


def _first_within(choices: Sequence[_T], budget: int, cost: Callable[[_T], int]) -> _T:
    """The first choice whose cost is within the budget, by bisection; costs fall along the choices and the last one fits."""
    if cost(choices[0]) <= budget:
        return choices[0]
    low, high = 0, len(choices) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if cost(choices[middle]) <= budget:
            high = middle
        else:
            low = middle
    return choices[high]


def _costs(items: Sequence[ContextItem]) -> list[int]:
    return [item.n_tokens for item in items]


def _cost(items: Sequence[ContextItem]) -> int:
    return sum(_costs(items))


def _total(items: Sequence[ContextItem], count_tokens: CountTokens | None) -> int:
    """Cost of items one by one or of their text as a whole, whichever is more."""
    if not items:
        return 0
    whole = token_costs(["".join(item.rendered for item in items)], count_tokens, "context")
    return max(_cost(items), *whole)


def _authored_items(
    nodes: Iterable[Authored],
    kind: Literal["hard", "soft"],
    count_tokens: CountTokens | None,
    seen: set[tuple[str, str]],
) -> list[ContextItem]:
    """Items of texts or nodes; a node, told by its text and id, that was `seen` before does not come again."""
    if isinstance(nodes, str) or not isinstance(nodes, Iterable):
        raise TypeError(f"{kind} must be a sequence of texts or nodes, not {type(nodes).__name__}")
    pairs = []
    for row, node in enumerate(nodes):
        if not isinstance(node, (str, AuthoredNode)):
            raise TypeError(f"{kind}[{row}] must be a str or an AuthoredNode, not {type(node).__name__}")
        pair = (node, "") if isinstance(node, str) else (node.text, node.id)
        if pair not in seen:
            pairs.append(pair)
        if pair[1]:
            seen.add(pair)
    rendered = [text + "\n" for text, _ in pairs]
    costs = token_costs(rendered, count_tokens, kind)
    return [
        ContextItem(kind, text, shown, cost, id) for (text, id), shown, cost in zip(pairs, rendered, costs, strict=True)
    ]


def _last_turns(
    session: Sequence[Turn], min_turns: int, budget: int, count_tokens: CountTokens | None
) -> list[ContextItem]:
    """The end of the session: all of it, or more than the budget holds and more than the base."""
    chunks: list[list[ContextItem]] = []
    stop, n_items, cost = len(session), 0, 0
    while stop > 0 and (n_items <= min_turns or cost <= budget):
        start = max(0, stop - CHUNK)
        chunks.append(_turn_items(session[start:stop], count_tokens))
        n_items += stop - start
        cost += _cost(chunks[-1])
        stop = start
    return [item for chunk in reversed(chunks) for item in chunk]


def _turn_items(session: Sequence[Turn], count_tokens: CountTokens | None) -> list[ContextItem]:
    rendered = [_wrapped("turn", turn.text, turn.role, turn.collection or "session") for turn in session]
    costs = token_costs(rendered, count_tokens, "turn")
    return [
        ContextItem("turn", turn.text, shown, cost, turn.id, turn.collection, turn.role)
        for turn, shown, cost in zip(session, rendered, costs, strict=True)
    ]


def _recalled_items(ranked: Sequence[Ranked], count_tokens: CountTokens | None) -> list[ContextItem]:
    documents = [each.candidate for each in ranked]
    rendered = [_wrapped("recalled", each.text, each.role, each.collection or "memory") for each in documents]
    costs = token_costs(rendered, count_tokens, "recalled document")
    return [
        ContextItem(
            "hop" if place.via else "recall",
            each.text,
            shown,
            cost,
            each.id,
            each.collection,
            each.role,
            place.score,
            place.via,
        )
        for place, each, shown, cost in zip(ranked, documents, rendered, costs, strict=True)
    ]


def _wrapped(tag: str, text: str, role: str, source: str) -> str:
    """Text that cannot close its own tag or pass for another's words."""
    return f"{_opening(tag, role, source)}{escape(text, quote=False)}</{tag}>\n"


@lru_cache(maxsize=256)
def _opening(tag: str, role: str, source: str) -> str:
    role, source = (escape(" ".join(value.split())) for value in (role or "unknown", source))
    return f'<{tag} role="{role}" source="{source}">'


def _fractions(fractions: tuple[float, float, float]) -> tuple[float, float, float]:
    alpha1, alpha2, beta = triple("fractions", fractions, 0.0, 1.0)
    total = alpha2 + beta + (alpha1 if alpha1 < 1.0 else 0.0)
    if total > 1.0 + 1e-9:
        raise ValueError(f"fractions add up to {total:g}, which is more than 1")
    return alpha1, alpha2, beta


def _share(fraction: float, budget: int) -> int:
    """Whole tokens of fraction * budget; 0.29 of 100 is 29 whatever the last bit says."""
    return math.floor(fraction * budget + 1e-9)
