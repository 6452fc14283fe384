"""Figures for notebooks and pages; each `plot_*` returns a plotly figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hsca_fast.context.conversation_map import ConversationMap, leading_domain
from hsca_fast.text.scoring import ScoreBatch
from hsca_fast.types import DomainTag, NuanceFlag

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

# Told apart on white and on black; the two that say no domain are grey.
DOMAIN_COLOURS = {
    "physics": "#4e79a7",
    "mathematics": "#2ca6b8",
    "legal": "#b07aa1",
    "medical": "#e15759",
    "poetry": "#ff7fb0",
    "narrative": "#f28e2b",
    "technical_prose": "#59a14f",
    "conversational": "#c9a227",
    "philosophical": "#8c6bd1",
    "historical": "#9c755f",
    "cross_domain": "#7f8c9a",
    "unclassified": "#b5b9be",
}
_OTHER_DOMAIN = "#7f8c9a"
_BLUE, _GREEN, _RED = "#4e79a7", "#59a14f", "#e15759"
_BINS = 50


def plot_scores(batch: ScoreBatch) -> Figure:
    """Histograms of the scores of a batch, rows that are null or too short for Layer 1 left out of it.

    Examples
    --------
    >>> from hsca_fast import score_texts
    >>> plot_scores(score_texts(["It rained. It poured. It snowed."])).layout.yaxis.title.text  # doctest: +SKIP
    'texts'
    """
    judged = batch.valid & ~batch.short_chunk
    columns = {
        "layer1_score": (batch.layer1_score[judged], 0.0),
        "coherence_score": (batch.coherence_score[batch.valid], 0.0),
        "sentiment_score": (batch.sentiment_score[batch.valid], -1.0),
    }
    counts = {name: np.histogram(values, _BINS, (low, 1.0))[0] for name, (values, low) in columns.items()}
    return score_histograms(counts)


def score_histograms(counts: Mapping[str, npt.NDArray[np.int64]]) -> Figure:
    """The figure of `plot_scores` from counts of equal bins over a score's range."""
    figure = _panels(1, len(counts), titles=list(counts))
    for place, (name, count) in enumerate(counts.items(), 1):
        low = -1.0 if name == "sentiment_score" else 0.0
        width = (1.0 - low) / len(count)
        figure.add_bar(
            x=low + width * (np.arange(len(count)) + 0.5),
            y=count,
            width=width,
            name=name,
            marker_color=_BLUE,
            hovertemplate="%{x:.2f}: %{y:,} texts<extra></extra>",
            row=1,
            col=place,
        )
    figure.update_yaxes(title_text="texts", col=1)
    return figure.update_layout(bargap=0, showlegend=False, height=300)


def plot_domains(batch: ScoreBatch) -> Figure:
    """How many texts have each domain tag; a text may have several."""
    bits = batch.domain_bits[batch.valid]
    return tag_bars({tag.value: int((bits >> i & 1).sum()) for i, tag in enumerate(DomainTag)}, "texts")


def plot_nuance(batch: ScoreBatch) -> Figure:
    """How many texts have each nuance flag, of those that were looked for."""
    bits = batch.nuance_bits[batch.valid]
    counts = {f.value: int((bits >> i & 1).sum()) for i, f in enumerate(NuanceFlag) if f in batch.assessed}
    return tag_bars(counts, "texts")


def tag_bars(counts: Mapping[str, int], unit: str) -> Figure:
    """Horizontal bars, the longest on top, names without any left out."""
    shown = sorted(((n, name) for name, n in counts.items() if n), key=lambda item: (item[0], item[1]))
    figure = _figure()
    figure.add_bar(
        x=[n for n, _ in shown],
        y=[name for _, name in shown],
        orientation="h",
        marker_color=[DOMAIN_COLOURS.get(name, _BLUE) for _, name in shown],
        hovertemplate="%{y}: %{x:,} " + unit + "<extra></extra>",
    )
    return figure.update_layout(height=120 + 24 * len(shown), xaxis_title=unit, showlegend=False)


def plot_map(talk: ConversationMap) -> Figure:
    """The conversation as blocks: width = chunks, height = macro weight, colour = leading domain; forced ones are hatched."""
    ends = np.cumsum([len(snapshot.chunks) for snapshot in talk])
    kinds: dict[tuple[str, bool], list[int]] = {}
    for i, snapshot in enumerate(talk):
        kinds.setdefault((leading_domain(snapshot), snapshot.forced), []).append(i)
    figure = _figure()
    # The blocks of one kind are one outline: thousands of bars would take a browser seconds to draw.
    for (domain, forced), rows in kinds.items():
        colour = DOMAIN_COLOURS.get(domain, _OTHER_DOMAIN)
        weights = np.array([talk[i].macro_weight for i in rows])
        widths = np.array([len(talk[i].chunks) for i in rows])
        starts = ends[rows] - widths
        figure.add_scatter(
            x=_outline(starts, starts, ends[rows], ends[rows]),
            y=_outline(np.zeros(len(rows)), weights, weights, np.zeros(len(rows))),
            customdata=np.repeat(np.array(rows, np.int32), 5),
            mode="lines",
            line={"width": 0.5, "color": colour},
            fill="toself",
            fillcolor=colour,
            fillpattern={"shape": "/", "size": 5, "bgcolor": colour, "fgcolor": "rgba(255,255,255,.8)"}
            if forced
            else None,
            name=f"{domain}, forced" if forced else domain,
            hovertemplate="snapshot %{customdata}, weight %{y:.3f}<extra>%{fullData.name}</extra>",
        )
    figure.update_layout(hovermode="closest", xaxis_title="chunk", yaxis_title="macro weight", height=320)
    return figure


def _outline(*corners: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """The corners of each shape in turn, with a gap after each shape."""
    return np.stack([*corners, np.full(len(corners[0]), np.nan)], axis=1).ravel().astype(np.float32)


def plot_domain_evolution(talk: ConversationMap) -> Figure:
    """Share of each domain over the snapshots, as a heat map."""
    labels, matrix = talk.domain_evolution()
    figure = _figure()
    figure.add_heatmap(
        z=matrix.T.astype(np.float32),
        x=[snapshot.conversation_position for snapshot in talk],
        y=labels,
        zmin=0,
        zmax=1,
        colorscale="Blues",
        hovertemplate="snapshot %{x}, %{y}: %{z:.2f}<extra></extra>",
        colorbar={"title": "share"},
    )
    return figure.update_layout(height=140 + 24 * len(labels), xaxis_title="snapshot")


def plot_curves(talk: ConversationMap) -> Figure:
    """Relational weight and coherence of every chunk in order, with the chunks of each nuance flag marked."""
    chunks = [chunk for snapshot in talk for chunk in snapshot.chunks]
    x = np.arange(len(chunks))
    figure = _figure()
    for name, colour in (("coherence_score", _GREEN), ("layer1_score", _BLUE)):
        figure.add_scatter(
            x=x,
            y=np.array([getattr(chunk, name) for chunk in chunks], np.float32),
            mode="lines",
            name=name,
            line={"color": colour, "width": 1.2},
            hovertemplate="chunk %{x}: %{y:.3f}<extra>" + name + "</extra>",
        )
    flags = sorted({flag for chunk in chunks for flag in chunk.nuance_flags})
    for place, flag in enumerate(flags):
        rows = np.array([i for i, chunk in enumerate(chunks) if flag in chunk.nuance_flags])
        level = np.full(len(rows), -0.06 * (place + 1))
        figure.add_scatter(  # ticks of one line, again for the browser's sake
            x=_outline(rows, rows),
            y=_outline(level - 0.02, level + 0.02),
            mode="lines",
            line={"width": 1},
            name=flag,
            hovertemplate="chunk %{x}<extra>" + flag + "</extra>",
        )
    figure.update_layout(xaxis_title="chunk", height=340 + 10 * len(flags))
    return figure


def plot_breakdown(breakdowns: Sequence[tuple[str, Mapping[str, float]]]) -> Figure:
    """What each phase added to or took from the score of each result: stacked bars, the first result on top.

    Parameters
    ----------
    breakdowns
        Of each result its name and the deltas of its phases, which add up to its score.
    """
    labels = [label for label, _ in breakdowns]
    phases = list(dict.fromkeys(phase for _, deltas in breakdowns for phase in deltas))
    figure = _figure()
    for phase in phases:
        figure.add_bar(
            y=list(range(len(labels))),
            x=[deltas.get(phase, 0.0) for _, deltas in breakdowns],
            orientation="h",
            name=phase,
            hovertemplate="%{x:+.4f}<extra>" + phase + "</extra>",
        )
    figure.update_yaxes(tickvals=list(range(len(labels))), ticktext=labels, autorange="reversed")
    return figure.update_layout(barmode="relative", xaxis_title="score", height=160 + 28 * len(labels))


def _figure() -> Figure:
    figure = _plotly().Figure()
    return _plain(figure)


def _panels(rows: int, columns: int, *, titles: list[str]) -> Figure:
    _plotly()
    from plotly.subplots import make_subplots

    return _plain(make_subplots(rows, columns, subplot_titles=titles))


def _plain(figure: Figure) -> Figure:
    # No background of its own: a page is light or dark.
    return figure.update_layout(
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 60, "r": 20, "t": 40, "b": 50},
        font={"family": "system-ui, sans-serif", "size": 13},
        modebar={"bgcolor": "rgba(0,0,0,0)"},
    ).update_yaxes(automargin=True)


def _plotly() -> Any:
    try:
        import plotly.graph_objects
    except ImportError as error:
        raise ImportError("figures need plotly: pip install 'hsca_fast[viz]'") from error
    return plotly.graph_objects
