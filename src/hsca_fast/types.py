"""The types of the HSCA specification (section 6), field for field."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hsca_fast.fields import Fields, unit


class DomainTag(str, Enum):
    """What a text is about; the order is the order of the bits in `ScoreBatch.domain_bits`."""

    PHYSICS = "physics"
    MATHEMATICS = "mathematics"
    LEGAL = "legal"
    MEDICAL = "medical"
    POETRY = "poetry"
    NARRATIVE = "narrative"
    TECHNICAL_PROSE = "technical_prose"
    CONVERSATIONAL = "conversational"
    PHILOSOPHICAL = "philosophical"
    HISTORICAL = "historical"
    CROSS_DOMAIN = "cross_domain"
    UNCLASSIFIED = "unclassified"


class NuanceFlag(str, Enum):
    """How a text says it; the order is the order of the bits in `ScoreBatch.nuance_bits`.

    Flags that end in `_model` come from a model. A flag that was not assessed is unknown, not false.
    """

    METAPHOR = "metaphor"
    METAPHOR_MODEL = "metaphor_model"
    SARCASM = "sarcasm"
    SARCASM_MODEL = "sarcasm_model"
    EMOTIONAL_TONE_POSITIVE = "emotional_tone_positive"
    EMOTIONAL_TONE_NEGATIVE = "emotional_tone_negative"
    EMOTIONAL_TONE_URGENT = "emotional_tone_urgent"
    EMOTIONAL_TONE_NEUTRAL = "emotional_tone_neutral"
    RHETORICAL_QUESTION = "rhetorical_question"
    ANALOGY = "analogy"
    ANALOGY_MODEL = "analogy_model"
    HEDGED = "hedged"
    ABSOLUTE = "absolute"
    NARRATIVE_THREAD = "narrative_thread"
    NARRATIVE_THREAD_MODEL = "narrative_thread_model"
    INSTRUCTIONAL = "instructional"


# In `WeightedChunk.nuance_flags`, beside the flags of layer 3: too few sentences to judge, so the weight is a flat low value.
SHORT_CHUNK = "short_chunk"


@dataclass(slots=True)
class WeightedChunk:
    """A text with its scores of layers 1 to 3; `nuance_flags` that are missing are unknown, not false.

    Examples
    --------
    >>> chunk = WeightedChunk("c1", "Bees make honey.", 0.02, ["unclassified"], 0.5, [], None, created_at=0.0)
    >>> WeightedChunk.from_dict(chunk.to_dict()) == chunk
    True
    """

    chunk_id: str
    text: str
    layer1_score: float
    domain_tags: list[str]
    coherence_score: float
    nuance_flags: list[str]
    parent_id: str | None
    created_at: float = field(default_factory=time.time)

    def to_dict(self, *, digits: int | None = 4) -> dict[str, Any]:
        """Plain values; scores are rounded to `digits`, None keeps every bit."""
        return {
            "chunk_id": self.chunk_id,
            "text": self.text,
            "layer1_score": _rounded(self.layer1_score, digits),
            "domain_tags": self.domain_tags,
            "coherence_score": _rounded(self.coherence_score, digits),
            "nuance_flags": self.nuance_flags,
            "parent_id": self.parent_id,
            "created_at": self.created_at,
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> WeightedChunk:
        """The chunk that `to_dict` wrote; missing tags are read as unclassified, unknown fields are refused."""
        fields = Fields(cls.__name__, d, cls.__dataclass_fields__)
        return cls(
            chunk_id=fields.text("chunk_id"),
            text=fields.text("text"),
            layer1_score=fields.unit("layer1_score"),
            domain_tags=fields.texts("domain_tags", [DomainTag.UNCLASSIFIED.value]),
            coherence_score=fields.unit("coherence_score"),
            nuance_flags=fields.texts("nuance_flags", []),
            parent_id=fields.text_or_none("parent_id"),
            created_at=fields.number("created_at", 0.0),
        )


@dataclass(slots=True)
class ContextSnapshot:
    """One beat of a conversation: its chunks with their weights, and what they are about.

    Attributes
    ----------
    macro_weight
        Mean of the chunks' `layer1_score`, in [0, 1].
    domain_summary
        For each tag of the chunks, the share of the weight that lies on chunks with that tag. Chunks may have several
        tags, so the shares may add up to more than 1.
    conversation_position
        The place in the list of all snapshots.
    forced
        The buffer was full before it was coherent.

    Examples
    --------
    >>> snapshot = ContextSnapshot("s1", [], 0.5, {"physics": 1.0}, 0, False, created_at=0.0)
    >>> ContextSnapshot.from_dict(snapshot.to_dict()) == snapshot
    True
    """

    snapshot_id: str
    chunks: list[WeightedChunk]
    macro_weight: float
    domain_summary: dict[str, float]
    conversation_position: int
    forced: bool
    created_at: float = field(default_factory=time.time)

    def to_dict(self, *, digits: int | None = 4) -> dict[str, Any]:
        """Plain values; weights and scores are rounded to `digits`, None keeps every bit."""
        return {
            "snapshot_id": self.snapshot_id,
            "chunks": [chunk.to_dict(digits=digits) for chunk in self.chunks],
            "macro_weight": _rounded(self.macro_weight, digits),
            "domain_summary": {tag: _rounded(weight, digits) for tag, weight in self.domain_summary.items()},
            "conversation_position": self.conversation_position,
            "forced": self.forced,
            "created_at": self.created_at,
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> ContextSnapshot:
        """The snapshot that `to_dict` wrote; unknown fields are refused."""
        fields = Fields(cls.__name__, d, cls.__dataclass_fields__)
        summary = fields.mapping("domain_summary", {})
        return cls(
            snapshot_id=fields.text("snapshot_id"),
            chunks=fields.each("chunks", WeightedChunk.from_dict, []),
            macro_weight=fields.unit("macro_weight"),
            domain_summary={tag: unit(w, f"{cls.__name__}.domain_summary[{tag!r}]") for tag, w in summary.items()},
            conversation_position=fields.count("conversation_position", 0),
            forced=fields.truth("forced", False),
            created_at=fields.number("created_at", 0.0),
        )


def _rounded(value: float, digits: int | None) -> float:
    return value if digits is None else round(value, digits)
