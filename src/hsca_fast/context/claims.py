"""Claims and what grounds them: snapshots as sources, their weights as support (HSCA 5.2)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any

from hsca_fast.context.conversation_map import ConversationMap, leading_domain
from hsca_fast.context.relevance import locality
from hsca_fast.context.words import content_words
from hsca_fast.fields import Fields, finite, unit
from hsca_fast.ids import random_id
from hsca_fast.types import ContextSnapshot, WeightedChunk

# OmegA's numbers: the share of a claim's words that a chunk must hold, and how much of it then counts.
SUPPORTED_OVERLAP = 0.3
INFERRED_OVERLAP = 0.1
GROUNDED_ABOVE = 0.3
CONTRADICTED_BELOW = 0.2
EXCERPT_CHARACTERS = 200


class ClaimType(StrEnum):
    """How a claim stands."""

    SUPPORTED = "supported"
    INFERRED = "inferred"
    CONTRADICTED = "contradicted"
    UNRESOLVED = "unresolved"


class Relation(StrEnum):
    """What a claim does to another."""

    SUPPORTS = "supports"
    CONTRADICTS = "contradicts"
    QUALIFIES = "qualifies"
    SUPERSEDES = "supersedes"


@dataclass
class ClaimNode:
    """A claim.

    Attributes
    ----------
    support_strength
        The weight of what supports it, in [0, 1]: shallow sources give little however many words they share.
    grounding_strength
        How much of the claim is in its sources at all, in [0, 1].
    source_refs
        Ids of snapshots and chunks.
    grounding_context
        Domains of the sources and their shares.

    Examples
    --------
    >>> claim = ClaimNode("c1", "Bees make honey.", "supported", 0.5, 0.9, ["s1"], created_at=0.0)
    >>> ClaimNode.from_dict(claim.to_dict()) == claim
    True
    """

    claim_id: str
    text: str
    claim_type: str = ClaimType.UNRESOLVED.value
    support_strength: float = 0.0
    grounding_strength: float = 0.0
    source_refs: list[str] = field(default_factory=list)
    created_at: float = field(default_factory=time.time)
    grounding_context: dict[str, float] = field(default_factory=dict)

    def to_dict(self, *, digits: int | None = 4) -> dict[str, Any]:
        """Plain values; strengths are rounded to `digits`, None keeps every bit."""

        def rounded(value: float) -> float:
            return value if digits is None else round(value, digits)

        return {
            "claim_id": self.claim_id,
            "text": self.text,
            "claim_type": ClaimType(self.claim_type).value,
            "support_strength": rounded(self.support_strength),
            "grounding_strength": rounded(self.grounding_strength),
            "source_refs": self.source_refs,
            "created_at": self.created_at,
            "grounding_context": {tag: rounded(share) for tag, share in self.grounding_context.items()},
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> ClaimNode:
        """The claim that `to_dict` wrote; unknown fields are refused."""
        fields = Fields(cls.__name__, d, cls.__dataclass_fields__)
        context = fields.mapping("grounding_context", {})
        return cls(
            claim_id=fields.text("claim_id"),
            text=fields.text("text"),
            claim_type=_member(ClaimType, fields.text("claim_type", "unresolved"), "ClaimNode.claim_type"),
            support_strength=fields.unit("support_strength", 0.0),
            grounding_strength=fields.unit("grounding_strength", 0.0),
            source_refs=fields.texts("source_refs", []),
            created_at=fields.number("created_at", 0.0),
            grounding_context={
                tag: unit(share, f"ClaimNode.grounding_context[{tag!r}]") for tag, share in context.items()
            },
        )


@dataclass
class EvidenceEdge:
    """What one claim says about another.

    Examples
    --------
    >>> edge = EvidenceEdge("e1", "c1", "c2", "contradicts", 0.5)
    >>> EvidenceEdge.from_dict(edge.to_dict()) == edge
    True
    """

    edge_id: str
    source_id: str
    target_id: str
    relation: str
    weight: float = 1.0
    source_ref: str = ""
    excerpt: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the excerpt is cut to 200 characters."""
        return {
            "edge_id": self.edge_id,
            "source_id": self.source_id,
            "target_id": self.target_id,
            "relation": Relation(self.relation).value,
            "weight": self.weight,
            "source_ref": self.source_ref,
            "excerpt": self.excerpt[:EXCERPT_CHARACTERS],
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> EvidenceEdge:
        """The edge that `to_dict` wrote; unknown fields are refused."""
        fields = Fields(cls.__name__, d, cls.__dataclass_fields__)
        return cls(
            edge_id=fields.text("edge_id"),
            source_id=fields.text("source_id"),
            target_id=fields.text("target_id"),
            relation=_member(Relation, fields.text("relation"), "EvidenceEdge.relation"),
            weight=fields.unit("weight", 1.0),
            source_ref=fields.text("source_ref", ""),
            excerpt=fields.text("excerpt", ""),
        )


class ClaimGraph:
    """Claims, and what they say about each other.

    Examples
    --------
    >>> from hsca_fast import HSCAEngine
    >>> engine = HSCAEngine(max_buffer_chunks=1)
    >>> _ = engine.ingest_turn("The lamp lit the harbour. Boats came into the harbour. Each boat had a lamp.")
    >>> graph = ClaimGraph()
    >>> claim = graph.ground("Boats came to the harbour", engine.get_macro_context())
    >>> claim.claim_type, 0 < claim.support_strength <= engine.get_macro_context()[0].macro_weight
    ('supported', True)
    """

    def __init__(self) -> None:
        self._claims: dict[str, ClaimNode] = {}
        self._edges: dict[str, EvidenceEdge] = {}

    @property
    def claims(self) -> list[ClaimNode]:
        """All claims, in the order they came."""
        return list(self._claims.values())

    @property
    def edges(self) -> list[EvidenceEdge]:
        """All edges, in the order they came."""
        return list(self._edges.values())

    def __getitem__(self, claim_id: str) -> ClaimNode:
        return self._claims[claim_id]

    def __contains__(self, claim_id: object) -> bool:
        return claim_id in self._claims

    def add_claim(self, claim: ClaimNode) -> ClaimNode:
        """Add a claim; its id must be new."""
        if not isinstance(claim, ClaimNode):
            raise TypeError(f"claim must be a ClaimNode, not {type(claim).__name__}")
        _member(ClaimType, claim.claim_type, "claim_type")
        for name in ("support_strength", "grounding_strength"):
            unit(getattr(claim, name), name)
        if claim.claim_id in self._claims:
            raise ValueError(f"claim_id {claim.claim_id!r} is there already")
        self._claims[claim.claim_id] = claim
        return claim

    def add_edge(self, edge: EvidenceEdge) -> EvidenceEdge:
        """Add an edge between claims that are there; its id must be new."""
        if not isinstance(edge, EvidenceEdge):
            raise TypeError(f"edge must be an EvidenceEdge, not {type(edge).__name__}")
        if edge.edge_id in self._edges:
            raise ValueError(f"edge_id {edge.edge_id!r} is there already")
        for name in ("source_id", "target_id"):
            if getattr(edge, name) not in self._claims:
                raise ValueError(f"{name} {getattr(edge, name)!r} is no claim of this graph")
        _member(Relation, edge.relation, "relation")
        unit(edge.weight, "weight")
        self._edges[edge.edge_id] = edge
        return edge

    def add_snapshot(
        self, snapshot: ContextSnapshot, *, min_macro_weight: float = 0.5, decay: float = 1.0
    ) -> ClaimNode | None:
        """The snapshot as a source of claims, if its macro weight is high enough; else None.

        Its text is its strongest chunk's, its support the macro weight, its grounding the share of its leading domain, and its
        `grounding_context` the domain summary. `decay` is what the macro weight counts for: `ConversationMap.decay` has it for the
        snapshots of a merged map.
        """
        if not isinstance(snapshot, ContextSnapshot):
            raise TypeError(f"snapshot must be a ContextSnapshot, not {type(snapshot).__name__}")
        support = snapshot.macro_weight * unit(decay, "decay")
        if support < unit(min_macro_weight, "min_macro_weight"):
            return None
        strongest = max(snapshot.chunks, key=lambda chunk: chunk.layer1_score, default=None)
        return self.add_claim(
            ClaimNode(
                claim_id=_source_id(snapshot),
                text="" if strongest is None else strongest.text,
                claim_type=ClaimType.SUPPORTED.value,
                support_strength=support,
                grounding_strength=snapshot.domain_summary.get(leading_domain(snapshot), 0.0),
                source_refs=[snapshot.snapshot_id],
                created_at=snapshot.created_at,
                grounding_context=dict(snapshot.domain_summary),
            )
        )

    def ground(
        self,
        text: str,
        conversation: ConversationMap | Sequence[ContextSnapshot],
        *,
        claim_id: str | None = None,
        created_at: float | None = None,
    ) -> ClaimNode:
        """Add a claim that rests on the chunks of a conversation which share its words.

        The chunk that gives most decides the support: its `layer1_score`, by the share of the claim's words it holds. Snapshots
        that were added as sources get an edge to the claim. Sessions that decayed count for less.

        Give the `ConversationMap` itself when there are several claims: it indexes its words once.

        Raises
        ------
        ValueError
            The snapshots kept only their weights, so nothing can be said of their words.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be str, not {type(text).__name__}")
        if not isinstance(conversation, ConversationMap):
            conversation = ConversationMap(conversation)
        words = set(content_words(text))
        near = conversation.holding(words)
        found = [
            (share, chunk, snapshot, decay)
            for snapshot, decay in zip(near, near.decay.tolist(), strict=True)
            for chunk in snapshot.chunks
            if (share := _overlap(words, chunk)) >= INFERRED_OVERLAP
        ]
        best = max((share for share, *_ in found), default=0.0)
        grounding = {snapshot.snapshot_id for _, _, snapshot, _ in found}
        rows = [i for i, snapshot in enumerate(near) if snapshot.snapshot_id in grounding]
        sources = near.rows(rows)
        claim = self.add_claim(
            ClaimNode(
                claim_id=random_id() if claim_id is None else claim_id,
                text=text,
                claim_type=_type_by_overlap(best).value,
                support_strength=max((_support(o, c.layer1_score) * decay for o, c, _, decay in found), default=0.0),
                grounding_strength=_grounding(best),
                source_refs=[
                    *(snapshot.snapshot_id for snapshot in sources),
                    *(chunk.chunk_id for _, chunk, _, _ in found),
                ],
                created_at=time.time() if created_at is None else finite(created_at, "created_at"),
                grounding_context=sources.domain_summary(),
            )
        )
        for snapshot in sources:
            if _source_id(snapshot) in self._claims:
                share, chunk = max(
                    ((o, c) for o, c, s, _ in found if s is snapshot), key=lambda pair: pair[0] * pair[1].layer1_score
                )
                self.add_edge(
                    EvidenceEdge(
                        edge_id=random_id(),
                        source_id=_source_id(snapshot),
                        target_id=claim.claim_id,
                        relation=Relation.SUPPORTS.value,
                        weight=share,
                        source_ref=chunk.chunk_id,
                        excerpt=chunk.text[:EXCERPT_CHARACTERS],
                    )
                )
        return claim

    def grounding_ratio(self) -> float:
        """The share of claims that are supported with a grounding above 0.3; 0 without claims."""
        grounded = sum(
            claim.claim_type == ClaimType.SUPPORTED and claim.grounding_strength > GROUNDED_ABOVE
            for claim in self._claims.values()
        )
        return grounded / len(self._claims) if self._claims else 0.0

    def propagate_uncertainty(self) -> list[str]:
        """Take from each claim half the strength of what contradicts it; the ids of those that fall below 0.2.

        All strengths are those from before, so the order of edges does not matter.
        """
        strength = {claim_id: claim.support_strength for claim_id, claim in self._claims.items()}
        loss: dict[str, float] = {}
        for edge in sorted(self._edges.values(), key=lambda edge: (edge.source_id, edge.edge_id)):
            if edge.relation == Relation.CONTRADICTS:
                loss[edge.target_id] = loss.get(edge.target_id, 0.0) + edge.weight * strength[edge.source_id] * 0.5
        fallen = []
        for claim_id, lost in loss.items():
            claim = self._claims[claim_id]
            claim.support_strength = max(claim.support_strength - lost, 0.0)
            if claim.support_strength < CONTRADICTED_BELOW:
                claim.claim_type = ClaimType.CONTRADICTED.value
                fallen.append(claim_id)
        return sorted(fallen)

    def relevant_claims(
        self,
        query: str,
        conversation: ConversationMap,
        *,
        context_position: int | None = None,
        radius: int | None = None,
    ) -> list[tuple[str, float]]:
        """Claims by the share of the query's words they hold, times their support; the best first, none of score 0.

        With a `context_position`, only claims with a source near it count (HSCA 5.3); see `ConversationMap.relevance`.
        """
        if not isinstance(query, str):
            raise TypeError(f"query must be str, not {type(query).__name__}")
        words = set(content_words(query))
        near = locality(len(conversation), context_position, radius).tolist()
        place = {snapshot.snapshot_id: i for i, snapshot in enumerate(conversation)}
        scored = []
        for claim in self._claims.values():
            close = max((near[place[ref]] for ref in claim.source_refs if ref in place), default=0.0)
            share = len(words.intersection(content_words(claim.text))) / max(len(words), 1)
            score = share * claim.support_strength * (1.0 if context_position is None else close)
            if score > 0:
                scored.append((claim.claim_id, score))
        return sorted(scored, key=lambda pair: (-pair[1], pair[0]))

    def to_dict(self, *, digits: int | None = 4) -> dict[str, Any]:
        """Plain values; see `ClaimNode.to_dict`."""
        return {
            "claims": [claim.to_dict(digits=digits) for claim in self._claims.values()],
            "edges": [edge.to_dict() for edge in self._edges.values()],
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> ClaimGraph:
        """The graph that `to_dict` wrote; unknown fields are refused."""
        fields = Fields(cls.__name__, d, ("claims", "edges"))
        graph = cls()
        fields.each("claims", lambda claim: graph.add_claim(ClaimNode.from_dict(claim)), [])
        fields.each("edges", lambda edge: graph.add_edge(EvidenceEdge.from_dict(edge)), [])
        return graph


def _source_id(snapshot: ContextSnapshot) -> str:
    return f"snapshot:{snapshot.snapshot_id}"


def _overlap(words: set[str], chunk: WeightedChunk) -> float:
    return len(words.intersection(content_words(chunk.text))) / len(words) if words else 0.0


def _type_by_overlap(overlap: float) -> ClaimType:
    if overlap >= SUPPORTED_OVERLAP:
        return ClaimType.SUPPORTED
    return ClaimType.INFERRED if overlap >= INFERRED_OVERLAP else ClaimType.UNRESOLVED


def _support(overlap: float, layer1: float) -> float:
    return (min(1.0, 1.5 * overlap) if overlap >= SUPPORTED_OVERLAP else overlap) * layer1


def _grounding(overlap: float) -> float:
    if overlap >= SUPPORTED_OVERLAP:
        return min(1.0, 1.2 * overlap)
    return 0.5 * overlap if overlap >= INFERRED_OVERLAP else 0.0


def _member(members: type[Enum], value: str, name: str) -> str:
    allowed = [member.value for member in members]
    if value not in allowed:
        raise ValueError(f"{name} must be one of {allowed}, not {value!r}")
    return value
