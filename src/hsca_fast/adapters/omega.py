"""The names of `omega/hsca.py` (HSCA specification, section 6), to stand in for that module.

    sys.modules["omega.hsca"] = hsca_fast.adapters.omega

or `from hsca_fast.adapters.omega import *` as the whole of the file. Nothing but these names is needed: the engine of
this module calls `score_layers`, `should_snapshot` and `take_snapshot` as the specification's stub does, so that a subclass
may replace any of them.
"""

from __future__ import annotations

from hsca_fast.context.engine import HSCAEngine as _Engine
from hsca_fast.types import ContextSnapshot, DomainTag, NuanceFlag, WeightedChunk

__all__ = ["ContextSnapshot", "DomainTag", "HSCAEngine", "NuanceFlag", "WeightedChunk"]


class HSCAEngine(_Engine):
    """`hsca_fast.HSCAEngine`, whose parts a subclass may replace.

    Examples
    --------
    >>> engine = HSCAEngine(max_buffer_chunks=1)
    >>> chunk = engine.ingest_turn("Bees make honey.")
    >>> [snapshot.chunks[0].text for snapshot in engine.get_macro_context()]
    ['Bees make honey.']
    """

    def ingest_turn(self, text: str) -> WeightedChunk:
        """`score_layers`, and `take_snapshot` if `should_snapshot`."""
        if self.short_chunks == "defer":
            return super().ingest_turn(text)
        chunk = self.score_layers(text)
        self._buffer.append(chunk)
        if self.should_snapshot():
            self.take_snapshot()
        return chunk
