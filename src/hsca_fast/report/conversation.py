"""The page of a conversation: its map on a line of time, its domains, its curves, and its chunks to read."""

from __future__ import annotations

import time

from hsca_fast.context.conversation_map import ConversationMap, leading_domain
from hsca_fast.report.figures import plot_curves, plot_domain_evolution, plot_map
from hsca_fast.report.marked import pieces
from hsca_fast.report.page import Markup, Page
from hsca_fast.text.explanation import text_marks
from hsca_fast.types import ContextSnapshot, WeightedChunk

_MOST_CHARACTERS = 1_000  # of a chunk: ten thousand chunks must stay a page that opens
_READER = Markup(
    "<div id=reader><nav><button class=previous>previous</button><label>snapshot <input type=number min=0></label><span class=count></span>"
    "<button class=next>next</button></nav><div class=body tabindex=0 role=region aria-live=polite aria-label=snapshot>"
    "</div></div>"
)


def conversation_report(talk: ConversationMap, *, title: str = "Conversation") -> Page:
    """A page of a conversation map.

    Examples
    --------
    >>> from hsca_fast import HSCAEngine
    >>> engine = HSCAEngine(max_buffer_chunks=1)
    >>> _ = engine.ingest_turns(["The keeper lit the lamp.", "Now, about lunch."])
    >>> page = conversation_report(ConversationMap(engine.get_macro_context()))
    >>> page.write("talk.html")  # doctest: +SKIP
    """
    n_chunks = sum(len(snapshot.chunks) for snapshot in talk)
    page = Page(title, subtitle=f"{len(talk):,} snapshots of {n_chunks:,} chunks")
    page.facts(
        {
            "snapshots": len(talk),
            "forced": sum(snapshot.forced for snapshot in talk),
            "chunks": n_chunks,
            "changes of domain": len(talk.transitions()),
        }
    )
    if not len(talk):
        page.section("Nothing to show", "The map has no snapshots.")
        return page
    page.section(
        "Map",
        "Width: chunks. Height: weight. Colour: leading domain. Hatched: forced. Choose a block to read it (arrow keys: the next).",
    )
    page.figure(plot_map(talk), name="map", label="Snapshots in order, as blocks coloured by domain")
    page.add(_READER)
    page.data("snapshots", [[_facts(snapshot), [_chunk(chunk) for chunk in snapshot.chunks]] for snapshot in talk])
    page.section("Domains", "Share of the weight that lies on chunks with a tag.")
    page.figure(plot_domain_evolution(talk), label="Share of each domain over the snapshots")
    page.section(
        "Coherence, weight, nuance", "One point a chunk; its nuance flags are marked below. Choose one to read it."
    )
    page.figure(
        plot_curves(talk), name="curves", label="Coherence and relational weight of each chunk, with its nuance flags"
    )
    return page


def _facts(snapshot: ContextSnapshot) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(snapshot.created_at))
    n = len(snapshot.chunks)
    kind = "forced" if snapshot.forced else "coherent"
    return (
        f"{leading_domain(snapshot)}, {kind}, weight {snapshot.macro_weight:.3f}, {n} chunk{'s' * (n != 1)}, {when} UTC"
    )


def _chunk(chunk: WeightedChunk) -> tuple[str, list[object]]:
    """A line of facts, and the text in pieces: a string, or a string with the class and the label of its mark."""
    facts = [f"weight {chunk.layer1_score:.3f}", f"coherence {chunk.coherence_score:.3f}"]
    facts += chunk.domain_tags + chunk.nuance_flags
    parts = pieces(chunk.text, text_marks(chunk.text), _MOST_CHARACTERS)
    return ", ".join(facts), [piece if len(piece) > 1 else piece[0] for piece in parts]
