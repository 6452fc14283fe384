"""Where a snapshot comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hsca_fast.fields import Fields


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a snapshot of a merged map comes from.

    Attributes
    ----------
    namespace
        The session; "" in a map that was not merged.
    snapshot_id, conversation_position
        What they were in that session.
    decay
        What the session's weights count for, in [0, 1].

    Examples
    --------
    >>> Provenance.from_dict(Provenance("monday", "s1", 0, 0.5).to_dict())
    Provenance(namespace='monday', snapshot_id='s1', conversation_position=0, decay=0.5)
    """

    namespace: str
    snapshot_id: str
    conversation_position: int
    decay: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Provenance:
        """What `to_dict` wrote; unknown fields are refused."""
        fields = Fields(cls.__name__, d, cls.__dataclass_fields__)
        return cls(
            fields.text("namespace"),
            fields.text("snapshot_id"),
            fields.count("conversation_position"),
            fields.unit("decay", 1.0),
        )
