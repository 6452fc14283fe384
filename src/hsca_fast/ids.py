"""Random ids in the form of version 4 UUIDs."""

from __future__ import annotations

import os
from collections.abc import Iterator

_NODE_BITS = 48
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def random_ids(n: int) -> Iterator[str]:
    """`n` new ids that share 74 random bits and count on from a random number: several times cheaper than `uuid.uuid4`.

    Examples
    --------
    >>> a, b = random_ids(2)
    >>> a != b, len(a)
    (True, 36)
    """
    prefix, node = _drawn()
    start = int(node, 16)
    if start + n >> _NODE_BITS:
        start = 0
    return (f"{prefix}{i:012x}" for i in range(start, start + n))


def random_id() -> str:
    """One new id."""
    prefix, node = _drawn()
    return prefix + node


def _drawn() -> tuple[str, str]:
    # Drawn at every call, never kept: two processes after a fork must not hand out the same ids.
    h = os.urandom(16).hex()
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-{_VARIANT[h[16]]}{h[17:20]}-", h[20:]
