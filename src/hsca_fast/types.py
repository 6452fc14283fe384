"""The types of the HSCA specification (section 6), field for field."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


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


@dataclass
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values; scores are rounded to four digits."""
        return {
            "chunk_id": self.chunk_id,
            "text": self.text,
            "layer1_score": round(self.layer1_score, 4),
            "domain_tags": self.domain_tags,
            "coherence_score": round(self.coherence_score, 4),
            "nuance_flags": self.nuance_flags,
            "parent_id": self.parent_id,
            "created_at": self.created_at,
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> WeightedChunk:
        """The chunk that `to_dict` wrote; missing tags are read as unclassified."""
        return cls(
            chunk_id=d["chunk_id"],
            text=d["text"],
            layer1_score=d["layer1_score"],
            domain_tags=d.get("domain_tags", [DomainTag.UNCLASSIFIED.value]),
            coherence_score=d["coherence_score"],
            nuance_flags=d.get("nuance_flags", []),
            parent_id=d.get("parent_id"),
            created_at=d.get("created_at", 0.0),
        )
