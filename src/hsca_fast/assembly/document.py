"""Authored markdown cut into hard rules, soft rules and variants (sections 7.2 and 7.7 of the document)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from hsca_fast.assembly.deontic import NO_CUES, Deontic, deontic_cues
from hsca_fast.ranking.columns import number
from hsca_fast.ranking.costs import token_costs

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

Kind = Literal["front_matter", "list_item", "quote", "paragraph", "heading", "code", "html"]
Tier = Literal["hard", "soft", "variant"]

# Deeper lists and quotes stay text of the level above, markers and all: the parser recurses, Python's stack is short, and
# every level reads its lines once more.
MAX_NESTING = 40
MAX_INLINE_NESTING = 10
# Longer runs of inline text are parsed in pieces: the parser looks ahead from every bracket to the end of the run.
INLINE_PIECE = 4096

_FENCE_OPEN = re.compile(r"---[ \t]*\n")
_FENCE_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.M)
_NO_HOP_VALUE = frozenset("{*&!|>")  # YAML's mappings, aliases, tags and blocks of text; no id in them was meant as one
_HOP_KEY = re.compile(r"^hop_targets[ \t]*:[ \t]*", re.M)
_HOP_ENTRY = re.compile(r"[ \t]*-[ \t]+")
_HOP_REMARK = re.compile(r"[ \t]*(?:#.*)?(?:\n|\Z)")
_QUOTED = r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\n]|'')*'"""
_HOP_LINE = re.compile(rf"{_QUOTED}|(?:(?!\s#).)*")
_HOP_PART = re.compile(rf"\s*(?:#.*|(?P<close>\])|,|(?P<entry>{_QUOTED}|(?:(?!\s#)[^,\]\n])+))")
_MARKUP = re.compile(r"[\\`*_\[\]!<&]")
_COMMENT = re.compile(r"<!--.*?-->", re.S)


@dataclass(frozen=True, slots=True)
class AuthoredNode:
    """A piece of an authored document.

    Attributes
    ----------
    id
        Document name, "#", six-digit ordinal.
    text
        Its words without markup; blocks inside it on lines of their own.
    tier
        "hard" is injected whole, "soft" by longest prefix, "variant" when it is recalled.
    lines
        First line and the line after the last, counted from 0: where the source of this node stands.
    cues
        Rules found in a paragraph.
    hop_targets
        Ids that the document names as related; on variants only.
    """

    id: str
    text: str
    tier: Tier
    kind: Kind
    ordinal: int
    n_tokens: int
    authority: float
    lines: tuple[int, int]
    cues: Deontic = NO_CUES
    hop_targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuthoredDocument:
    """All nodes of a document in authored order, and what was odd about it.

    Attributes
    ----------
    warnings
        Malformed front matter, one sentence each.
    """

    name: str
    nodes: tuple[AuthoredNode, ...]
    warnings: tuple[str, ...] = ()

    @property
    def hard(self) -> tuple[AuthoredNode, ...]:
        return self._tier("hard")

    @property
    def soft(self) -> tuple[AuthoredNode, ...]:
        return self._tier("soft")

    @property
    def variant(self) -> tuple[AuthoredNode, ...]:
        return self._tier("variant")

    def _tier(self, tier: Tier) -> tuple[AuthoredNode, ...]:
        return tuple(node for node in self.nodes if node.tier == tier)


@dataclass(frozen=True, slots=True)
class _Block:
    kind: Kind
    text: str
    lines: tuple[int, int]


def partition_document(
    markdown: str,
    *,
    name: str = "",
    authority: float = 1.0,
    imperatives: bool = False,
    count_tokens: Callable[[str], int] | None = None,
) -> AuthoredDocument:
    """Cut authored markdown into hard invariants, soft invariants and variants.

    Front matter and top-level list items are hard. Block quotes are soft, and so are paragraphs with a deontic cue ("you must",
    "you may not"). Everything else is variant. Time grows linearly with the length, whatever the nesting.

    Parameters
    ----------
    name
        Name of the document, the first part of the ids.
    authority
        a(d) of every node, in [0, 1].
    imperatives
        Paragraphs with a bare command ("Never ...", "Always ...") are soft too.
    count_tokens
        Cost of a text; the default is `estimate_tokens`.

    Raises
    ------
    ImportError
        markdown-it-py is missing: it comes with the extra `markdown`.

    Examples
    --------
    >>> document = partition_document("- Be kind.\\n\\nYou must cite.\\n\\nThe sea is wide.\\n", name="rules")
    >>> [(node.id, node.tier, node.text) for node in document.nodes]  # doctest: +NORMALIZE_WHITESPACE
    [('rules#000000', 'hard', 'Be kind.'), ('rules#000001', 'soft', 'You must cite.'),
     ('rules#000002', 'variant', 'The sea is wide.')]
    """
    if not isinstance(markdown, str):
        raise TypeError(f"markdown must be str, not {type(markdown).__name__}")
    if not isinstance(name, str):
        raise TypeError(f"name must be str, not {type(name).__name__}")
    authority = number("authority", authority, 0.0, 1.0)
    source = markdown.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    warnings: list[str] = []
    front_matter, body = _front_matter(source, warnings)
    targets = _hop_targets(front_matter, warnings)
    first_line = source.count("\n", 0, len(source) - len(body))
    blocks = list(_blocks(body, first_line))
    if front_matter.strip():
        blocks.insert(0, _Block("front_matter", front_matter.strip(), (0, first_line)))

    costs = token_costs([block.text for block in blocks], count_tokens, "node")
    nodes = []
    for ordinal, (block, cost) in enumerate(zip(blocks, costs, strict=True)):
        cues = NO_CUES
        if block.kind == "paragraph":
            for cue in deontic_cues(block.text, imperatives=imperatives):
                cues |= cue.kind
        tier: Tier = "variant"
        if block.kind in ("front_matter", "list_item"):
            tier = "hard"
        elif block.kind == "quote" or cues:
            tier = "soft"
        node = AuthoredNode(
            id=f"{name}#{ordinal:06d}",
            text=block.text,
            tier=tier,
            kind=block.kind,
            ordinal=ordinal,
            n_tokens=cost,
            authority=authority,
            lines=block.lines,
            cues=cues,
            hop_targets=targets if tier == "variant" else (),
        )
        nodes.append(node)
    return AuthoredDocument(name, tuple(nodes), tuple(warnings))


def _front_matter(source: str, warnings: list[str]) -> tuple[str, str]:
    """Inner text of the front matter ("" without any) and the rest of the document."""
    opening = _FENCE_OPEN.match(source)
    if opening is None:
        return "", source
    closing = _FENCE_CLOSE.search(source, opening.end())
    if closing is None:
        warnings.append("front matter that starts on line 1 is not closed; it was read as markdown")
        return "", source
    return source[opening.end() : closing.start()], source[closing.end() :]


def _hop_targets(front_matter: str, warnings: list[str]) -> tuple[str, ...]:
    """One id, an inline list or a list of lines, as YAML has them: quotes hold commas and #, a # after a blank is a remark."""
    key = _HOP_KEY.search(front_matter)
    if key is None:
        return ()
    value = front_matter[key.end() :]
    if _HOP_KEY.search(front_matter, key.end()):
        warnings.append("hop_targets is in the front matter more than once; the first was read")
    if value[:1] in _NO_HOP_VALUE:
        warnings.append(f"hop_targets in the front matter is no list of ids: {value.partition(chr(10))[0].strip()!r}")
        return ()
    entries = []
    if value.startswith("["):
        at, is_closed = 1, False
        while not is_closed and (part := _HOP_PART.match(value, at)) is not None:
            at = part.end()
            is_closed = part["close"] is not None
            entries.append(part["entry"] or "")
        if not is_closed:
            warnings.append("hop_targets in the front matter is a list that is not closed; its first line was read")
            entries = value.partition("\n")[0][1:].split(",")
    elif not _HOP_REMARK.match(value):
        entries.append(_HOP_LINE.match(value)[0])  # type: ignore[index]  # it matches every line
    else:
        for line in value.split("\n")[1:]:
            if entry := _HOP_ENTRY.match(line):
                entries.append(_HOP_LINE.match(line, entry.end())[0])  # type: ignore[index]
            elif line[:1] not in ("", " ", "\t", "#"):
                break
            elif not _HOP_REMARK.match(line):
                warnings.append(f"hop_targets in the front matter has a line that is no entry: {line.strip()!r}")
    return tuple(dict.fromkeys(target for entry in entries if (target := _unquoted(entry.strip()))))


def _unquoted(entry: str) -> str:
    if entry[:1] == '"' == entry[-1:] and len(entry) > 1:
        return re.sub(r"\\(.)", r"\1", entry[1:-1]).strip()
    if entry[:1] == "'" == entry[-1:] and len(entry) > 1:
        return entry[1:-1].replace("''", "'").strip()
    return entry


def _blocks(body: str, first_line: int) -> Iterator[_Block]:
    """Top-level blocks of the markdown in order; empty ones left out."""
    parser, inline = _parsers()
    env: dict[str, Any] = {}
    container: Kind | None = None
    parts: list[str] = []
    span = (0, 0)
    heading = False
    for token in parser.parse(body, env):
        if token.level == 0 or (token.level == 1 and token.type.startswith("list_item")):
            if token.type in ("list_item_open", "blockquote_open"):
                container = "list_item" if token.type == "list_item_open" else "quote"
                parts, span = [], _span(token, first_line)
            elif token.type in ("list_item_close", "blockquote_close"):
                if container is not None and (text := "\n".join(parts)):
                    yield _Block(container, text, span)
                container = None
            heading = token.type == "heading_open"
        if token.type == "inline":
            kind: Kind = "heading" if heading else "paragraph"
            text = _plain(token.content, inline, env)
        elif token.type in ("fence", "code_block"):
            kind, text = "code", token.content.strip("\n").rstrip()
        elif token.type == "html_block":
            kind, text = "html", token.content.strip()
        else:
            continue
        if text and container is not None:
            parts.append(text)
        elif text:
            yield _Block(kind, text, _span(token, first_line))


def _span(token: Token, first_line: int) -> tuple[int, int]:
    start, stop = token.map or (0, 0)
    return first_line + start, first_line + stop


def _plain(content: str, parser: MarkdownIt, env: dict[str, Any]) -> str:
    """Inline markdown as words: markers and link destinations gone, blanks collapsed."""
    if _MARKUP.search(content):
        content = "".join(_inline_text(piece, parser, env) for piece in _pieces(content))
    return " ".join(content.split())


def _pieces(content: str) -> Iterator[str]:
    start = 0
    while len(content) - start > INLINE_PIECE:
        blank = content.rfind(" ", start, start + INLINE_PIECE)
        stop = blank + 1 if blank >= start else start + INLINE_PIECE
        yield content[start:stop]
        start = stop
    yield content[start:]


def _inline_text(content: str, parser: MarkdownIt, env: dict[str, Any]) -> str:
    tokens: list[Token] = []
    parser.inline.parse(content, parser, env, tokens)
    words = []
    stack = tokens[::-1]
    while stack:
        token = stack.pop()
        if token.type in ("softbreak", "hardbreak"):
            words.append(" ")
        elif token.type == "image":
            stack.extend(reversed(token.children or ()))
        elif token.type == "html_inline":
            # Kept, since an author's <placeholder> is one to the parser.
            words.append(_COMMENT.sub("", token.content))
        else:
            words.append(token.content)
    return "".join(words)


@lru_cache(maxsize=1)
def _parsers() -> tuple[MarkdownIt, MarkdownIt]:
    """One for blocks and one for inline text, which differ in how deep they go."""
    try:
        from markdown_it import MarkdownIt
        from markdown_it.rules_block import blockquote, list_block
    except ImportError as error:
        raise ImportError(
            "partition_document needs markdown-it-py, which comes with hsca_fast[markdown]", name="markdown_it"
        ) from error

    def bounded(rule: Callable[[StateBlock, int, int, bool], bool]) -> Callable[[StateBlock, int, int, bool], bool]:
        # A list adds two levels. At its limit the parser would drop the text; refusing the rule keeps it as a paragraph.
        # A silent rule only says that a paragraph ends here, which it does at any depth.
        def within_limit(state: StateBlock, start: int, end: int, silent: bool) -> bool:
            return (silent or state.level + 2 < MAX_NESTING) and rule(state, start, end, silent)

        return within_limit

    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
    parser.core.ruler.enableOnly(["normalize", "block"])
    interrupts = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.at("blockquote", bounded(blockquote), {"alt": interrupts})
    parser.block.ruler.at("list", bounded(list_block), {"alt": ["paragraph", "reference", "blockquote"]})
    return parser, MarkdownIt("commonmark", {"maxNesting": MAX_INLINE_NESTING})
