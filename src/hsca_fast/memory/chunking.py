"""Text into chunks that mean something by themselves, and what each is embedded with.

A line is too small a piece: a heading says nothing without its list. Short lines are merged with those that follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hsca_fast.memory.presets import MemoryPreset, as_preset
from hsca_fast.ranking.costs import CountTokens, token_costs


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a text: `text` is that of the whole from character `start` to `end`.

    Attributes
    ----------
    n_tokens
        What it costs.
    sentence_id
        Its number within its text, from 0.
    """

    text: str
    start: int
    end: int
    n_tokens: int
    sentence_id: int


def merge_short_lines(text: str, *, min_line_tokens: int = 10, count_tokens: CountTokens | None = None) -> list[Chunk]:
    r"""Chunks that each end with a line of at least `min_line_tokens`; shorter lines go with the next.

    The chunks are the text: put together they give it back, line ends included. What is left after the last long line is a
    chunk of its own.

    Parameters
    ----------
    text
        Lines end with a line feed; a carriage return before it belongs to it.
    min_line_tokens
        At least 1. The line end does not count.
    count_tokens
        A function from str to int, such as `Embedder.count_tokens`, or a `tokenizers.Tokenizer`. The estimate of
        `estimate_tokens`, which knows scripts, when not given.

    Examples
    --------
    >>> text = "Groceries:\n- Milk\n- Eggs\nI'll pick them up after work, the store is on my way.\nNot today.\n"
    >>> [(chunk.start, chunk.end, chunk.text[-14:]) for chunk in merge_short_lines(text)]
    [(0, 79, 'is on my way.\n'), (79, 90, 'Not today.\n')]
    """
    return _whole(text, ChunkStream(min_line_tokens=min_line_tokens, count_tokens=count_tokens))


def chunk_text(
    text: str, *, preset: str | MemoryPreset = "seed", count_tokens: CountTokens | None = None
) -> list[Chunk]:
    r"""Chunks by the boundary of a preset; ``"seed"`` is `merge_short_lines`.

    Examples
    --------
    >>> [chunk.text for chunk in chunk_text("One.\n\nTwo.\n", preset="halo_final")]
    ['One.\n\nTwo.\n']
    """
    return _whole(text, ChunkStream(preset=preset, count_tokens=count_tokens))


class ChunkStream:
    r"""The same chunks from a text that comes in pieces, each as soon as its last line has ended.

    Parameters
    ----------
    min_line_tokens
        As in `merge_short_lines`; in place of the preset's `min_tokens`.
    preset
        Whose boundary is used.

    Examples
    --------
    >>> stream = ChunkStream(min_line_tokens=2)
    >>> [chunk.text for piece in ("Milk", " and eg", "gs\nBread", "\n") for chunk in stream.feed(piece)]
    ['Milk and eggs\n', 'Bread\n']
    >>> stream.close()
    []
    """

    def __init__(
        self,
        *,
        min_line_tokens: int | None = None,
        preset: str | MemoryPreset = "seed",
        count_tokens: CountTokens | None = None,
    ) -> None:
        chosen = as_preset(preset)
        self._is_block = chosen.boundary == "block"
        self._min_tokens = chosen.min_tokens
        if min_line_tokens is not None:
            self._min_tokens = whole_number("min_line_tokens", min_line_tokens, 1)
        self._count_tokens = count_tokens
        self._restart()

    def _restart(self) -> None:
        self._lines: list[str] = []  # of the chunk that is growing
        self._line: list[str] = []  # pieces of the line that is growing
        self._n_tokens = 0  # in whole lines of the chunk
        self._in_fence = False
        self._n_fed = 0
        self._start = 0
        self._sentence_id = 0

    def feed(self, text: str) -> list[Chunk]:
        """The chunks that this piece completes."""
        check_text(text, "text", self._n_fed)
        self._n_fed += len(text)
        cut = text.rfind("\n") + 1
        if not cut:
            self._line.append(text)
            return []
        lines = "".join([*self._line, text[:cut]]).split("\n")[:-1]
        self._line = [text[cut:]]
        finished = []
        costs = token_costs([line.removesuffix("\r") for line in lines], self._count_tokens, "line")
        for line, cost in zip(lines, costs, strict=True):
            self._lines.append(line)
            if self._ends_chunk(line, cost):
                finished.append("\n".join([*self._lines, ""]))
                self._lines = []
                self._n_tokens = 0
        return self._chunks(finished)

    def close(self) -> list[Chunk]:
        """What is left, as a chunk; none when nothing is. The stream then starts anew, with offsets from 0."""
        rest = "\n".join([*self._lines, "".join(self._line)])
        chunks = self._chunks([rest] if rest else [])
        self._restart()
        return chunks

    def _ends_chunk(self, line: str, cost: int) -> bool:
        if not self._is_block:
            return cost >= self._min_tokens
        self._n_tokens += cost
        is_fence = line.startswith("```")
        self._in_fence ^= is_fence
        ends_block = is_fence or not line.strip() or (line.startswith("}") and not self._in_fence)
        return ends_block and self._n_tokens >= self._min_tokens

    def _chunks(self, texts: list[str]) -> list[Chunk]:
        chunks = []
        for text, cost in zip(texts, token_costs(texts, self._count_tokens, "chunk"), strict=True):
            end = self._start + len(text)
            chunks.append(Chunk(text, self._start, end, cost, self._sentence_id))
            self._start = end
            self._sentence_id += 1
        return chunks


def sentence_ids(tokens: Iterable[str], *, min_line_tokens: int = 10) -> Iterator[int]:
    r"""The chunk of every token of a stream, as soon as the token is there.

    A token counts for the line it is in; one that holds a line feed ends it. The number goes up by one after a line
    of at least `min_line_tokens` tokens.

    Examples
    --------
    >>> list(sentence_ids(["Milk", ":\n", "two", " or", " three", ".\n", "Eggs"], min_line_tokens=3))
    [0, 0, 0, 0, 0, 0, 1]
    """
    least = whole_number("min_line_tokens", min_line_tokens, 1)
    sentence_id = n_tokens = 0
    for row, token in enumerate(tokens):
        check_text(token, f"tokens[{row}]")
        yield sentence_id
        n_tokens += 1
        if "\n" in token:
            sentence_id += n_tokens >= least
            n_tokens = 0


def embedding_windows(
    chunks: Sequence[Chunk | str], *, budget: int = 256, count_tokens: CountTokens | None = None
) -> list[str]:
    """What each chunk is embedded with: itself, then the chunk before it if there is room, then those after it.

    Parameters
    ----------
    chunks
        In order; of a str the cost is counted.
    budget
        Tokens of a window. The first chunk after this one that does not fit ends it. A chunk that is larger by itself
        is a window of its own.
    count_tokens
        As in `merge_short_lines`, for str.

    Examples
    --------
    >>> chunks = [Chunk(text, 0, 0, n, 0) for text, n in [("a", 8), ("b", 10), ("c", 12), ("d", 6)]]
    >>> embedding_windows(chunks, budget=30), embedding_windows(chunks, budget=20)
    (['a b c', 'a b c', 'b c d', 'c d'], ['a b', 'a b', 'c d', 'c d'])
    """
    texts, costs = _texts_and_costs(chunks, count_tokens)
    budget = whole_number("budget", budget, 0)
    windows = []
    for i, cost in enumerate(costs):
        first, last = i, i
        room = budget - cost
        if i > 0 and costs[i - 1] <= room:
            first = i - 1
            room -= costs[first]
        while last + 1 < len(costs) and costs[last + 1] <= room:
            last += 1
            room -= costs[last]
        windows.append(" ".join(texts[first : last + 1]))
    return windows


def turn_pair_windows(
    messages: Sequence[tuple[str, Sequence[Chunk | str]]],
    *,
    budget: int = 256,
    count_tokens: CountTokens | None = None,
) -> list[list[str]]:
    """What each chunk of a conversation is embedded with: how its question or answer begins, and how its own message does.

    Parameters
    ----------
    messages
        (role, chunks) in order. A user's message and the assistant's that follows it at once are a pair; others stand alone.
    budget
        Tokens of a window. The other message's first chunk goes before this message's; what does not fit is left out.

    Examples
    --------
    >>> turn_pair_windows([("user", ["Why?", "Really?"]), ("assistant", ["Because.", "Yes."])])
    [['Why? Because.', 'Why? Really? Because.'], ['Why? Because.', 'Why? Because. Yes.']]
    """
    budget = whole_number("budget", budget, 0)
    counted = [_texts_and_costs(chunks, count_tokens) for _, chunks in messages]
    roles = [role for role, _ in messages]
    windows: list[list[str]] = []
    for i, (texts, costs) in enumerate(counted):
        other = paired_message(roles, i)
        windows.append([])
        for j, text in enumerate(texts):
            parts = [(i, j, text)]
            room = budget - costs[j]
            for message, chunk in ((other, 0), (i, 0)):
                if message is None or (message, chunk) == (i, j) or not counted[message][0]:
                    continue
                if counted[message][1][chunk] <= room:
                    room -= counted[message][1][chunk]
                    parts.append((message, chunk, counted[message][0][chunk]))
            windows[-1].append(" ".join(part for _, _, part in sorted(parts)))
    return windows


def paired_message(roles: Sequence[str], i: int) -> int | None:
    """Number of the message that answers message `i`, or that it answers; None when there is none."""
    if roles[i] == "user" and i + 1 < len(roles) and roles[i + 1] == "assistant":
        return i + 1
    if roles[i] == "assistant" and i > 0 and roles[i - 1] == "user":
        return i - 1
    return None


def check_text(text: object, name: str, offset: int = 0) -> None:
    """Raises for what is no str, or holds half a surrogate pair, which no file and no model takes."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be str, not {type(text).__name__}")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            lone = f"U+{ord(text[error.start]):04X}"
            raise ValueError(f"{name} has the lone surrogate {lone} at character {offset + error.start}") from None


def _whole(text: str, stream: ChunkStream) -> list[Chunk]:
    return stream.feed(text) + stream.close()


def _texts_and_costs(chunks: Sequence[Chunk | str], count_tokens: CountTokens | None) -> tuple[list[str], list[int]]:
    if isinstance(chunks, str) or not isinstance(chunks, Sequence):
        raise TypeError(f"chunks must be a sequence of Chunk or str, not {type(chunks).__name__}")
    texts = []
    for row, chunk in enumerate(chunks):
        text = chunk.text if isinstance(chunk, Chunk) else chunk
        check_text(text, f"chunks[{row}]")
        texts.append(text)
    rows = [row for row, chunk in enumerate(chunks) if not isinstance(chunk, Chunk)]
    counted = dict(zip(rows, token_costs([texts[row] for row in rows], count_tokens, "chunk"), strict=True))
    return texts, [chunk.n_tokens if isinstance(chunk, Chunk) else counted[row] for row, chunk in enumerate(chunks)]


def whole_number(name: str, value: int, least: int, most: int | None = None) -> int:
    """`value` if it is an int of at least `least` and at most `most`; `name` is for the error."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {most}, not {value}")
    return value
