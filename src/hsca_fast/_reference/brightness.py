"""Brightness, pruning and resurrection of a conversation, as its authors tell it: token by token, chunk by chunk.

A chunk is a dict with `tokens` (brightness of each), `live`, `pinned`, `turn`, `role`, `message` (its number) and `first` (is it the
first of its message?); chunks stand in the order of their positions.
"""

from __future__ import annotations

import math
from typing import Any

LIMIT = 1_000_000_000
Chunk = dict[str, Any]


def threshold(attention: list[float], sink: str) -> float | None:
    """(1 - s) / (n - 1), s the attention of the first token or the largest; None when a step says nothing."""
    if len(attention) < 2:
        return None
    s = attention[0] if sink == "first" else max(attention)
    t = (1.0 - s) / (len(attention) - 1)
    return t if t > 0 else None


def brighter(b: int, a: float, t: float, most: int) -> int:
    """b + floor(a / t) where a > t, b - 1 elsewhere, within the limits."""
    if a > t:
        return min(b + math.floor(min(a / t, LIMIT)), most)
    return max(b - 1, -LIMIT)


def score_step(
    chunks: list[Chunk], attention: list[float], *, prefix: int, sink: str, most: int, skipped_turn: object
) -> bool:
    """One step of attention over the live tokens, in place. Tokens of `skipped_turn` are left alone."""
    t = threshold(attention, sink)
    if t is None:
        return False
    at = prefix
    for chunk in chunks:
        if not chunk["live"]:
            continue
        for i, b in enumerate(chunk["tokens"]):
            is_sink = sink == "first" and at == 0
            if not is_sink and chunk["turn"] != skipped_turn:
                chunk["tokens"][i] = brighter(b, attention[at], t, most)
            at += 1
    return True


def peak(chunk: Chunk) -> int:
    """The brightest token stands for its chunk."""
    tokens: list[int] = chunk["tokens"]
    return max(tokens)


def n_live_tokens(chunks: list[Chunk]) -> int:
    """Tokens in the active context."""
    return sum(len(chunk["tokens"]) for chunk in chunks if chunk["live"])


def partner(chunks: list[Chunk], chunk: Chunk) -> Chunk | None:
    """The live first chunk of the answer to this chunk's message, or of the question that it answers."""
    step = {"user": 1, "assistant": -1}.get(chunk["role"])
    if step is None:
        return None
    other = {"user": "assistant", "assistant": "user"}[chunk["role"]]
    for each in chunks:
        is_beside = each["message"] == chunk["message"] + step and each["role"] == other
        if is_beside and each["first"] and each["live"]:
            return each
    return None


def is_alone(chunks: list[Chunk], chunk: Chunk) -> bool:
    """No other chunk of its message is live."""
    return len([each for each in chunks if each["live"] and each["message"] == chunk["message"]]) == 1


def is_exempt(chunk: Chunk, current_turn: object) -> bool:
    """Pinned, of the system, or of the current turn."""
    return bool(chunk["pinned"] or chunk["role"] == "system" or chunk["turn"] == current_turn)


def may_go(chunks: list[Chunk], chunk: Chunk, current_turn: object, anchors: bool) -> bool:
    """Whether pruning may take this chunk."""
    if not chunk["live"] or is_exempt(chunk, current_turn):
        return False
    if not anchors or not chunk["first"]:
        return True
    other = partner(chunks, chunk)
    if not is_alone(chunks, chunk):
        return False
    return other is None or (is_alone(chunks, other) and not is_exempt(other, current_turn))


def prune(chunks: list[Chunk], budget: int, *, current_turn: object, anchors: bool, keep: int) -> list[int]:
    """Chunk after chunk, the one with the lowest peak, the oldest of equals, until the budget holds. In place."""
    gone = []
    while n_live_tokens(chunks) > budget:
        prunable = [i for i, chunk in enumerate(chunks) if may_go(chunks, chunk, current_turn, anchors)]
        if len(prunable) <= keep:
            break
        lowest = min(prunable, key=lambda i: (peak(chunks[i]), i))
        going = [lowest]
        other = partner(chunks, chunks[lowest])
        if anchors and chunks[lowest]["first"] and other is not None:
            going.append(next(i for i, chunk in enumerate(chunks) if chunk is other))
        for i in going:
            chunks[i]["live"] = False
        gone += going
    return gone


def resurrect(
    chunks: list[Chunk],
    matches: list[int],
    *,
    budget: int,
    brightness: int | None,
    live_hits_count: bool,
    stops_at_overflow: bool,
) -> tuple[list[int], list[int], int]:
    """Chunks that came back, chunks that were referred to, and tokens spent; `matches` in order of similarity."""
    revived, referenced, spent = [], [], 0
    for i in matches:
        chunk = chunks[i]
        if chunk["live"] and not live_hits_count:
            continue
        if spent + len(chunk["tokens"]) > budget:
            if stops_at_overflow:
                break
            continue
        if not chunk["live"]:
            chunk["live"] = True
            if brightness is not None:
                chunk["tokens"] = [brightness] * len(chunk["tokens"])
            revived.append(i)
        referenced.append(i)
        spent += len(chunk["tokens"])
    return revived, referenced, spent
