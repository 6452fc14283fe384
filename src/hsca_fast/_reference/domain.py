"""Layer 2, the domains of a text, from its folded words: the linear model, the keyword rules, and the two tags that
follow from the others.

The formula and the reasons for it are in docs/formulas.md; symbols are the same here and there.
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

TAGS = (
    "physics",
    "mathematics",
    "legal",
    "medical",
    "poetry",
    "narrative",
    "technical_prose",
    "conversational",
    "philosophical",
    "historical",
)
CROSS_DOMAIN = 10  # bit numbers; those of TAGS are their places
UNCLASSIFIED = 11

# Pairs that say nothing new when they come together: one is the other's tool or the manner it is written in.
# Everything may be talked about, so conversational is related to all.
TRIVIALLY_RELATED = frozenset(
    {
        ("physics", "mathematics"),
        ("physics", "technical_prose"),
        ("mathematics", "technical_prose"),
        ("medical", "technical_prose"),
        ("poetry", "narrative"),
        ("narrative", "historical"),
        *((tag, "conversational") for tag in TAGS if tag != "conversational"),
    }
)

MAGIC = b"HSCADOM1"
N_BUCKETS = 32768
LEAST_ENGLISH = 0.1
MOST = 30.0  # |z| beyond it changes no probability that anyone could use


def trivially_related(a: str, b: str) -> bool:
    return (a, b) in TRIVIALLY_RELATED or (b, a) in TRIVIALLY_RELATED


def with_cross_domain(bits: int) -> int:
    """The content tags of `bits`, with cross_domain or unclassified where they belong."""
    bits &= (1 << len(TAGS)) - 1
    if not bits:
        return 1 << UNCLASSIFIED
    present = [tag for i, tag in enumerate(TAGS) if bits >> i & 1]
    if any(not trivially_related(a, b) for i, a in enumerate(present) for b in present[:i]):
        bits |= 1 << CROSS_DOMAIN
    return bits


# ---- the linear model --------------------------------------------------------------------------------------------
_M64 = (1 << 64) - 1


def _mix(x: int) -> int:
    x ^= x >> 32
    x = x * 0xD6E8FEB86659FD93 & _M64
    return x ^ x >> 29


def word_key(word: str) -> tuple[int, int]:
    """A folded word as two 64-bit integers: its bytes, zero padded, or a hash of more than 16."""
    data = word.encode("utf-8", "surrogatepass").replace(b"_", b"\x7f")
    if len(data) <= 16:
        low, high = struct.unpack("<QQ", data.ljust(16, b"\0"))
        return low, high
    a, b = len(data), ~len(data) & _M64
    for i in range(0, len(data), 8):
        part = int.from_bytes(data[i : i + 8], "little")
        a = _mix((a * 0x9E3779B97F4A7C15 + part) & _M64)
        b = _mix((b ^ part) * 0xC2B2AE3D27D4EB4F & _M64)
    return a, b | 0xFF << 56


def bucket_of(word: str, n_buckets: int) -> int:
    low, high = word_key(word)
    return _mix(low * 0x9E3779B97F4A7C15 & _M64 ^ (high * 0xC2B2AE3D27D4EB4F & _M64) >> 7) & n_buckets - 1


_VERSE_BREAK = re.compile(rb"[A-Za-z,;:-][ \t\r]*\n[ \t\r]*(?=[A-Z])")


def verse_breaks(text: bytes) -> list[int]:
    """Where a line ends without ending a sentence and the next begins with a capital, as the lines of verse do."""
    return [match.start() for match in _VERSE_BREAK.finditer(text)]


@dataclass(frozen=True)
class LinearModel:
    half_length: float  # words at which the evidence has half its weight
    scale: tuple[float, ...]
    bias: tuple[float, ...]
    break_weight: tuple[float, ...]
    threshold: tuple[float, ...]
    weights: Sequence[Sequence[int]]  # [bucket][tag], int8

    def to_bytes(self) -> bytes:
        n_tags = len(TAGS)
        body = MAGIC + struct.pack("<IIf", len(self.weights), n_tags, self.half_length)
        for numbers in (self.scale, self.bias, self.break_weight, self.threshold):
            body += struct.pack(f"<{n_tags}f", *numbers)
        body += b"".join(struct.pack(f"<{n_tags}b", *row) for row in self.weights)
        return body + struct.pack("<I", zlib.crc32(body))

    @classmethod
    def from_bytes(cls, data: bytes) -> LinearModel:
        n_tags = len(TAGS)
        n_buckets, found_tags, half_length = struct.unpack_from("<IIf", data, 8)
        size = 20 + 16 * n_tags + n_buckets * n_tags + 4
        if data[:8] != MAGIC or found_tags != n_tags or len(data) != size:
            raise ValueError("not a domain model")
        if zlib.crc32(data[:-4]) != struct.unpack_from("<I", data, size - 4)[0]:
            raise ValueError("domain model: the checksum does not match")
        rows = [struct.unpack_from(f"<{n_tags}f", data, 20 + 4 * n_tags * i) for i in range(4)]
        first = 20 + 16 * n_tags
        weights = [struct.unpack_from(f"<{n_tags}b", data, first + n_tags * i) for i in range(n_buckets)]
        return cls(half_length, rows[0], rows[1], rows[2], rows[3], weights)


def linear_scores(words: Sequence[str], n_breaks: int, model: LinearModel) -> list[float]:
    """Probability of each tag."""
    sums = [0] * len(TAGS)
    for word in words:
        for tag, weight in enumerate(model.weights[bucket_of(word, len(model.weights))]):
            sums[tag] += weight
    found = []
    for tag, total in enumerate(sums):
        evidence = (total * model.scale[tag] + n_breaks * model.break_weight[tag]) / (len(words) + model.half_length)
        z = min(MOST, max(-MOST, model.bias[tag] + evidence))
        found.append(1.0 / (1.0 + math.exp(-z)))
    return found


def linear_bits(scores: Sequence[float], model: LinearModel, english_share: float) -> int:
    """The tags; none where too few of the words are English ones (`coherence.english_share`)."""
    if english_share < LEAST_ENGLISH:
        return 1 << UNCLASSIFIED
    bits = sum(1 << i for i, score in enumerate(scores) if score >= model.threshold[i])
    return with_cross_domain(bits)


# ---- the keyword rules -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Rules:
    """Cues of all tags. A cue is a tuple of folded words and carries (tag, weight) pairs."""

    cues: Mapping[tuple[str, ...], Sequence[tuple[int, float]]]
    thresholds: tuple[float, ...]
    longest: int

    @classmethod
    def from_categories(cls, categories: Iterable[Mapping[str, object]]) -> Rules:
        """`categories` as in domain_rules.toml: name, threshold, cues."""
        cues: dict[tuple[str, ...], list[tuple[int, float]]] = {}
        thresholds = [math.inf] * len(TAGS)
        for category in categories:
            tag = TAGS.index(str(category["name"]).removeprefix("domain."))
            thresholds[tag] = float(category["threshold"])  # type: ignore[arg-type]
            for cue in category["cues"]:  # type: ignore[attr-defined]
                text, weight = (cue, 1.0) if isinstance(cue, str) else (cue["text"], float(cue["weight"]))
                cues.setdefault(tuple(text.split()), []).append((tag, weight))
        return cls(cues, tuple(thresholds), max(map(len, cues), default=0))


def rules_scores(sentences: Sequence[Sequence[str]], rules: Rules) -> list[float]:
    """Sum of the weights of the cues found over the root of the number of words. In a sentence, the longest cue at the
    leftmost word is taken and reading goes on after it."""
    sums = [0.0] * len(TAGS)
    for words in sentences:
        at = 0
        while at < len(words):
            step = 1
            for n in range(min(rules.longest, len(words) - at), 0, -1):
                found = rules.cues.get(tuple(words[at : at + n]))
                if found:
                    for tag, weight in found:
                        sums[tag] += weight
                    step = n
                    break
            at += step
    root = math.sqrt(sum(map(len, sentences))) or 1.0
    return [total / root for total in sums]


def rules_bits(scores: Sequence[float], rules: Rules) -> int:
    return with_cross_domain(sum(1 << i for i, score in enumerate(scores) if score >= rules.thresholds[i]))
