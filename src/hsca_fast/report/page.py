"""One HTML file with everything in it: figures, their program, style. Nothing is fetched when it is opened."""

from __future__ import annotations

import base64
import gzip
import html
import json
import os
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from hsca_fast.files import replacing

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


class Page:
    """A page that grows section by section. Every text is escaped on its way in; HTML made here is of type `Markup`."""

    def __init__(self, title: str, *, subtitle: str = "") -> None:
        self._title = title
        self._parts = [f"<header><h1>{html.escape(title)}</h1><p>{html.escape(subtitle)}</p></header><main>"]
        self._figures: list[str] = []
        self._open = False

    def section(self, heading: str, note: str = "") -> None:
        """Begins a section; what follows goes into it."""
        if self._open:
            self._parts.append("</section>")
        self._open = True
        self._parts.append(f"<section><h2>{html.escape(heading)}</h2>")
        if note:
            self._parts.append(f"<p class=note>{html.escape(note)}</p>")

    def figure(self, figure: Figure, *, label: str, name: str = "") -> None:
        """A figure; `label` says to those who cannot see it what it shows, `name` is what the page's script calls it."""
        place = name or f"figure-{len(self._figures)}"
        data = json.loads(figure.to_json())
        self._figures.append(f"[{_in_script(place)}, {_in_script(data)}]")
        self._parts.append(
            f'<div class=figure id="{html.escape(place)}" role=img tabindex=0 aria-label="{html.escape(label)}"></div>'
        )

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A table; cells of type `Markup` are put in as they are."""
        head = "".join(f"<th scope=col>{html.escape(column)}" for column in columns)
        body = "".join(f"<tr>{''.join(f'<td>{as_html(cell)}' for cell in row)}" for row in rows)
        self._parts.append(f"<div class=scroll tabindex=0><table><thead><tr>{head}<tbody>{body}</table></div>")

    def facts(self, facts: dict[str, object]) -> None:
        """A few numbers in large type."""
        cells = "".join(
            f"<div><dd>{as_html(value)}</dd><dt>{html.escape(name)}</dt></div>" for name, value in facts.items()
        )
        self._parts.append(f"<dl class=facts>{cells}</dl>")

    def add(self, markup: Markup) -> None:
        """Further HTML made here."""
        self._parts.append(markup)

    def data(self, name: str, value: Any) -> None:
        """JSON for the page's script, compressed, as the text of an element that browsers do not run."""
        packed = gzip.compress(json.dumps(value, allow_nan=False).encode(), compresslevel=4, mtime=0)
        text = base64.b64encode(packed).decode("ascii")
        self._parts.append(f'<script type="text/plain" id="{html.escape(name)}">{text}</script>')

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the page; the file is replaced whole or not at all."""
        from plotly.offline import get_plotlyjs

        own = files("hsca_fast.report")
        with replacing(path) as stream:
            for part in (
                '<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">',
                f"<title>{html.escape(self._title)}</title><style>{(own / 'page.css').read_text('utf-8')}</style>",
                *self._parts,
                "</section>" if self._open else "",
                f"</main><script>{get_plotlyjs()}</script>",
                f"<script>const figures = [{','.join(self._figures)}];\n{(own / 'page.js').read_text('utf-8')}</script>",
            ):
                stream.write(part.encode("utf-8", "replace"))


class Markup(str):
    """HTML that was escaped where it had to be."""

    __slots__ = ()


def as_html(value: object) -> str:
    """A cell: numbers in a short form, texts escaped."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return html.escape(str(value))


def _in_script(value: Any) -> str:
    # "</script>" inside of a string would end the element; "<!--" would open a comment.
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
