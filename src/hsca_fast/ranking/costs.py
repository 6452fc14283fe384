"""What texts cost: the built-in estimate in one call, a tokenizer's count, or the caller's own counter, checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, Protocol, runtime_checkable

from hsca_fast.ranking.tokens import estimate_tokens


@runtime_checkable
class BatchTokenizer(Protocol):
    """The part of a `tokenizers.Tokenizer` that counting needs."""

    def encode_batch(self, input: Any, *, add_special_tokens: bool) -> Sequence[Any]: ...


CountTokens = Callable[[str], int] | BatchTokenizer


def token_costs(texts: Sequence[str], count_tokens: CountTokens | None, what: str) -> list[int]:
    """Cost of every text; a counter that does not give an int of at least 0 is named with the row."""
    if count_tokens is None:
        costs: list[int] = estimate_tokens(texts).tolist() if len(texts) else []
        return costs
    if isinstance(count_tokens, BatchTokenizer):
        if getattr(count_tokens, "truncation", None) is not None:
            raise ValueError("count_tokens truncates: call its no_truncation() first")
        encodings = count_tokens.encode_batch(list(texts), add_special_tokens=False)
        return [sum(encoding.attention_mask) for encoding in encodings]  # padding is masked
    costs = []
    for row, text in enumerate(texts):
        try:
            cost = index(count_tokens(text))
        except TypeError as error:
            raise TypeError(f"count_tokens must return an int, for {what} {row}: {error}") from error
        if cost < 0:
            raise ValueError(f"count_tokens returned {cost} for {what} {row}")
        costs.append(cost)
    return costs
