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
_FLAG_COLOURS = {
    "emotional_tone_positive": _GREEN,
    "emotional_tone_negative": _RED,
    "emotional_tone_neutral": "#7f8c9a",
}
# From nothing to blue: it reads on white and on black.
_SHARES = [[0, "rgba(78,121,167,0.06)"], [0.5, "rgba(78,121,167,0.6)"], [1, "rgba(64,142,224,1)"]]
_BINS = 50
_MOST_COLUMNS = 600


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
    figure = _panels(1, len(counts), subplot_titles=list(counts))
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
    """Share of each domain over the snapshots, as a heat map; of more than 600, means of neighbours."""
    labels, matrix = talk.domain_evolution()
    positions = np.array([snapshot.conversation_position for snapshot in talk])
    n_mean = -(-len(talk) // _MOST_COLUMNS)  # a browser would show one of so many and hide the others
    if n_mean > 1:
        starts = np.arange(0, len(talk), n_mean)
        matrix = np.add.reduceat(matrix, starts) / np.diff(np.append(starts, len(talk)))[:, None]
        positions = positions[starts]
    figure = _figure()
    figure.add_heatmap(
        z=matrix.T.astype(np.float32),
        x=positions,
        y=labels,
        zmin=0,
        zmax=1,
        colorscale=_SHARES,
        hovertemplate=("snapshot %{x}" if n_mean < 2 else f"%{{x}} and {n_mean - 1} more")
        + ", %{y}: %{z:.2f}<extra></extra>",
        colorbar={"title": "share"},
    )
    figure.update_xaxes(showgrid=False, zeroline=False).update_yaxes(showgrid=False, zeroline=False)
    title = "snapshot" if n_mean < 2 else f"snapshot (means of {n_mean})"
    return figure.update_layout(height=140 + 24 * len(labels), xaxis_title=title)


def plot_curves(talk: ConversationMap) -> Figure:
    """Relational weight and coherence of every chunk in order, and below them the chunks of each nuance flag.

    Of more than a few hundred chunks the curves are pale, with their running means over a hundredth of them on top.
    """
    chunks = [chunk for snapshot in talk for chunk in snapshot.chunks]
    flags = sorted({flag for chunk in chunks for flag in chunk.nuance_flags})
    heights = [260, 24 * max(1, len(flags))]
    figure = _panels(2, 1, shared_xaxes=True, row_heights=heights, vertical_spacing=0.06)
    x = np.arange(len(chunks))
    n_mean = len(chunks) // 100
    for name, colour in (("coherence_score", _GREEN), ("layer1_score", _BLUE)):
        y = np.array([getattr(chunk, name) for chunk in chunks], np.float32)
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            name=name,
            legendgroup=name,
            line={"color": colour, "width": 1.2},
            opacity=1.0 if n_mean < 3 else 0.25,
            hovertemplate="chunk %{x}: %{y:.3f}<extra>" + name + "</extra>",
            row=1,
            col=1,
        )
        if n_mean >= 3:
            figure.add_scatter(
                x=x,
                y=_running_mean(y, n_mean),
                mode="lines",
                name=f"{name}, mean of {n_mean}",
                legendgroup=name,
                line={"color": colour, "width": 2.5},
                hoverinfo="skip",
                row=1,
                col=1,
            )
    for place, flag in enumerate(flags):
        rows = np.array([i for i, chunk in enumerate(chunks) if flag in chunk.nuance_flags])
        figure.add_scatter(  # ticks of one line, again for the browser's sake
            x=_outline(rows, rows),
            y=_outline(np.full(len(rows), place - 0.35), np.full(len(rows), place + 0.35)),
            mode="lines",
            line={"width": 1, "color": _FLAG_COLOURS.get(flag, _BLUE)},
            name=flag,
            showlegend=False,
            hovertemplate="chunk %{x}<extra>" + flag + "</extra>",
            row=2,
            col=1,
        )
    figure.update_xaxes(title_text="chunk", row=2)
    figure.update_yaxes(range=[0, 1], row=1)
    figure.update_yaxes(tickvals=list(range(len(flags))), ticktext=flags, range=[len(flags) - 0.4, -0.6], row=2)
    figure.update_yaxes(showgrid=False, zeroline=False, row=2)
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    return figure.update_layout(legend=legend, hovermode="closest", height=130 + sum(heights))


def _running_mean(values: npt.NDArray[np.float32], width: int) -> npt.NDArray[np.float32]:
    """The mean of the `width` values around each, of fewer at the ends."""
    sums = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
    at = np.arange(len(values))
    low, high = np.maximum(at - width // 2, 0), np.minimum(at - width // 2 + width, len(values))
    means: npt.NDArray[np.float32] = ((sums[high] - sums[low]) / (high - low)).astype(np.float32)
    return means


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


def _panels(rows: int, columns: int, **options: Any) -> Figure:
    _plotly()
    from plotly.subplots import make_subplots

    return _plain(make_subplots(rows, columns, **options))


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
