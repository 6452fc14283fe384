"""Real passages with the domain that their source is labelled with; conversations of the evals are cut from them."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import lzma
import random
import re
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hsca_fast.data import PACKAGED
from hsca_fast.text.segmentation import segment

HALVES = ("dev", "held-out")
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of one source.

    Attributes
    ----------
    source, group
        Where it is from; what shares a group (an author, a contract) is never in both halves.
    label
        The domain that the source stands for.
    unsure
        Domains that the source leaves open: neither right nor wrong.
    """

    source: str
    group: str
    label: str
    unsure: tuple[str, ...]
    text: str

    @property
    def half(self) -> str:
        return HALVES[hashlib.sha256(f"h1/{self.group}".encode()).digest()[0] % 2]


def shipped_passages() -> list[Passage]:
    """The passages that come with the package.

    Examples
    --------
    >>> passages = shipped_passages()
    >>> sorted({p.half for p in passages})
    ['dev', 'held-out']
    """
    packed = (PACKAGED / "eval_passages.jsonl.xz").read_bytes()
    return [_passage(json.loads(line)) for line in lzma.decompress(packed).decode().splitlines()]


def _passage(row: dict[str, str]) -> Passage:
    return Passage(row["source"], row["group"], row["label"], tuple(row["unsure"].split()), row["text"])


def load_passages(data: Path | None = None) -> list[Passage]:
    """The passages of the full sets in `data`, with the package's documentation of mathematics, physics and software, or those of the
    package alone; groups that trained the domain model are left out."""
    shipped = shipped_passages()
    if data is None:
        return shipped
    return [p for reader in _READERS for p in reader(Path(data))] + [p for p in shipped if p.source == "docs"]


def in_half(passages: Sequence[Passage], half: str) -> dict[str, list[Passage]]:
    """The passages of one half by label, in the order of the labels."""
    found: dict[str, list[Passage]] = {}
    for passage in passages:
        if passage.half == half:
            found.setdefault(passage.label, []).append(passage)
    return dict(sorted(found.items()))


@lru_cache(maxsize=4096)
def sentences_of(text: str) -> tuple[tuple[int, int], ...]:
    """The spans of the sentences, in characters."""
    return tuple((begin, end) for begin, end in segment(text).sentences.tolist())


@lru_cache(maxsize=4096)
def _sentences_of_words(text: str, least: int) -> tuple[tuple[int, int], ...]:
    """The sentences of at least so many words, each with the shorter ones before it."""
    units: list[tuple[int, int]] = []
    begin: int | None = None
    for start, end in sentences_of(text):
        begin = start if begin is None else begin
        if len(_WORD.findall(text, start, end)) >= least:
            units.append((begin, end))
            begin = None
    return tuple(units)


def turns_of(
    text: str, rng: random.Random, *, sentences: tuple[int, int] = (3, 5), most: int = 100, least_words: int = 0
) -> list[str]:
    """Neighbouring turns of a few sentences each, as they stand in the text.

    With `least_words`, shorter sentences come along and are not counted: a section number, a name in a list or a heading is
    about nothing by itself.
    """
    spans = _sentences_of_words(text, least_words)
    turns: list[str] = []
    at = 0
    while len(turns) < most:
        end = at + rng.randint(*sentences)
        if end > len(spans):
            break
        turns.append(text[spans[at][0] : spans[end - 1][1]])
        at = end
    return turns


def turns_from(
    first: Passage,
    others: Sequence[Passage],
    rng: random.Random,
    n: int,
    *,
    sentences: tuple[int, int],
    least_words: int = 0,
) -> list[str]:
    """`n` turns of one passage, and where it is too short, of others as well."""
    turns = turns_of(first.text, rng, sentences=sentences, most=n, least_words=least_words)
    for _ in range(100 * n):
        if len(turns) == n:
            return turns
        text = rng.choice(others).text
        turns += turns_of(text, rng, sentences=sentences, most=n - len(turns), least_words=least_words)
    raise ValueError(f"the passages of {first.label} ({first.source}) have too few sentences for {n} turns")


def long_turn(text: str, size: int) -> str:
    """The first sentences of a text, up to about `size` characters."""
    spans = sentences_of(text)
    end = next((e for _, e in spans if e >= size), len(text))
    return text[spans[0][0] : end] if spans else text


# ---- full sets ---------------------------------------------------------------------------------------------------
# Authors whose books are not plain fiction and did not train the domain model. Fiction: whose hash is odd, as in training.
_VERSE = ("poetry", "narrative philosophical")
_AUTHORS = {
    "Aristotle": ("philosophical", "poetry"),
    "Henry David Thoreau": ("philosophical", "narrative historical poetry"),
    "Dante": _VERSE,
    "Henry Wadsworth Longfellow": _VERSE,
    "John Milton": _VERSE,
}
# Not plain fiction, or in the domain model's training; memoirs and legends are history to one reader and a story to another.
_NOT_FICTION = frozenset(
    "Benedict de Spinoza|Confucius|Jean-Jacques Rousseau|Charlotte Perkins Gilman|Cotton Mather|Francis Parkman|"
    "Henry Morton Stanley|Edward J. Ruppelt|Charles Baudelaire|Edgar Allan Poe|Ernest Shackleton|Frederick Douglass|"
    "David Kalakaua|Edwin A. Abbott|Jonathan Swift|George Bernard Shaw|Henri Barbusse|E.E. Cummings".split("|")
)
_SIZE = 6000


def _held_from_training(group: str) -> bool:
    """The rule by which the domain model's training left groups out."""
    return hashlib.sha256(group.encode()).digest()[0] % 2 == 1


def _members(path: Path) -> Iterator[tuple[str, str]]:
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                yield member.name, content.read().decode("utf-8", "replace")


def _pieces(text: str, most: int) -> Iterator[str]:
    """Up to `most` stretches of a long text, evenly spread, each from a blank line on."""
    step = max(_SIZE, len(text) // most)
    for at in range(min(3000, len(text) // 10), max(1, len(text) - _SIZE), step):
        begin = text.find("\n\n", at) + 2
        if begin >= 2 and len(piece := text[begin : begin + _SIZE].strip()) >= 1000:
            yield piece


def _books(data: Path) -> Iterator[Passage]:
    for name, text in sorted(_members(data / "classic_books.tar.xz")):
        author = name.split("/")[-2]
        special = _AUTHORS.get(author)
        if special is None and (author in _NOT_FICTION or not _held_from_training(author)):
            continue
        label, unsure = special or ("narrative", "")
        for piece in _pieces(text, 24 if special else 4):
            yield Passage("classic_books", author, label, tuple(unsure.split()), piece)


def _poems(data: Path) -> Iterator[Passage]:
    for name, text in sorted(_members(data / "poetry_rhymedata.tar.xz")):
        poet = Path(name).stem
        if "english_raw/" not in name or not _held_from_training(poet) or poet == "shakespeare":
            continue
        poems = re.split(r"^TITLE.*\n", re.sub(r"^(RHYME|AUTHOR|DATE).*\n*", "", text, flags=re.M), flags=re.M)[1:]
        long = [poem.strip() for poem in poems if len(poem) >= 1000]
        for poem in long[:: max(1, len(long) // 12)][:12]:
            yield Passage("rhymedata", f"poet/{poet}", "poetry", ("narrative", "philosophical"), poem[:_SIZE])


def _contracts(data: Path) -> Iterator[Passage]:
    for n, (name, text) in enumerate(_members(data / "cuad/full_contract_txt.tar.xz")):
        company = Path(name).stem.split("_")[0]
        if name.endswith(".txt") and n < 240 and _held_from_training(company):
            for piece in _pieces(text, 1):
                yield Passage("cuad", f"cuad/{company}", "legal", ("technical_prose",), piece)


def _abstracts(data: Path) -> Iterator[Passage]:
    open_ = ("technical_prose", "physics", "mathematics")
    for name, text in _members(data / "pubmedqa.tar.xz"):
        if name.endswith("ori_pqal.json"):
            for key, row in list(json.loads(text).items())[500:]:
                abstract = "\n".join([*row["CONTEXTS"], row["LONG_ANSWER"]])
                yield Passage("pubmedqa", f"pubmedqa/{key}", "medical", open_, abstract)
    with zipfile.ZipFile(data / "scifact/scifact.zip") as archive:
        name = next(n for n in archive.namelist() if n.endswith("corpus_train.csv"))
        for i, row in enumerate(csv.DictReader(io.TextIOWrapper(archive.open(name), "utf-8"))):
            if i < 200:
                parts = re.findall(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", row["abstract"])
                abstract = row["title"] + ".\n" + " ".join(a or b for a, b in parts)
                yield Passage("scifact", f"scifact/{i}", "medical", open_, abstract)
    text = (data / "cranfield/cran.all.1400").read_text("latin-1")
    for i, entry in enumerate(re.split(r"^\.I \d+\n", text, flags=re.M)[1:]):
        body = entry.split(".W\n")[-1].strip()
        authors = re.search(r"\.A\n(.*)", entry)
        author = authors.group(1) if authors else str(i)
        # Lower case, with a blank before each full stop.
        body = re.sub(r" \.\s+([a-z])", lambda m: f". {m[1].upper()}", body)
        if len(body) >= 1000 and _held_from_training(author):
            yield Passage("cranfield", f"cranfield/{author}", "physics", ("technical_prose", "mathematics"), body)


def _talk(data: Path) -> Iterator[Passage]:
    for name, text in _members(data / "dailydialog.tar.xz"):
        if name.endswith("test/dialogues.txt"):
            for i, line in enumerate(text.splitlines()):
                said = re.sub(r" ([.,?!'\u2019])", r"\1", line.replace("__eou__", "\n")).replace("\u2019 ", "\u2019")
                if len(said) >= 800:
                    yield Passage(
                        "dailydialog", f"dailydialog/{i}", "conversational", ("narrative", "technical_prose"), said
                    )


def _addresses(data: Path) -> Iterator[Passage]:
    for name, content in _binary_members(data / "nltk.tar.xz", r"(inaugural|state_union)\.zip$"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for inner in sorted(archive.namelist()):
                president = re.search(r"\d{4}-([^/]*)\.txt$", inner)
                if president and _held_from_training(president.group(1)):
                    for piece in _pieces(archive.read(inner).decode("latin-1"), 2):
                        group = f"president/{president.group(1)}"
                        yield Passage(Path(name).stem, group, "historical", ("legal", "philosophical"), piece)


def _binary_members(path: Path, pattern: str) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member) if re.search(pattern, member.name) else None
            if content is not None:
                yield member.name, content.read()


_READERS = (_books, _poems, _contracts, _abstracts, _talk, _addresses)
