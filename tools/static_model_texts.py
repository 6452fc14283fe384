"""Training texts of the bundled static model, from a folder of data sets (docs/data.md names them).

Used by tools/distil_static_model.py. Sentences that occur in an evaluation set (STS-B, SciFact, the long chats) are
left out, whatever set they come from.
"""

import csv
import io
import json
import random
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

# Texts drawn from each source; the rarer the register is on the list, the more of it is kept.
SHARES = {
    "classic_books": 26_000,
    "20newsgroups": 24_000,
    "nltk": 34_000,
    "hedge_wikiweasel": 14_000,
    "szeged_uncertainty": 14_000,
    "pubmedqa": 9_000,
    "cuad": 5_000,
    "dailydialog": 6_000,
    "goemotions": 12_000,
    "noisywikihow": 4_000,
}
MAX_CHARACTERS = 420
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])")
_WORDS = re.compile(r"\w+")


def sentences(text: str) -> list[str]:
    return [s for s in (" ".join(s.split()) for s in _SENTENCE_END.split(text)) if s]


def _archive(path: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(path) as tar:
        for member in sorted(tar.getmembers(), key=lambda m: m.name):
            if member.isfile() and "/._" not in member.name:
                yield member.name, tar.extractfile(member).read()


def _rows(content: bytes, **options) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(content.decode("utf-8", "replace")), **options)


def _paragraphs(text: str) -> list[list[str]]:
    return [sentences(p) for p in re.split(r"\n\s*\n", text)]


def _classic_books(data: Path) -> Iterator[list[str]]:
    for name, content in _archive(data / "classic_books.tar.xz"):
        if name.endswith((".md", ".txt")):
            yield from _paragraphs(content.decode("utf-8", "replace"))


def _newsgroups(data: Path) -> Iterator[list[str]]:
    for _, content in _archive(data / "20newsgroups" / "20news-bydate.tar.gz"):
        body = content.decode("latin-1").partition("\n\n")[2]
        lines = [line for line in body.split("\n") if not re.match(r"^[>|:]|.*(wrote|writes):|^--", line)]
        for paragraph in _paragraphs("\n".join(lines)):
            # Signatures and tables are not prose.
            yield [s for s in paragraph if sum(c.isalpha() or c == " " for c in s) > 0.85 * len(s)]


def _nltk(data: Path) -> Iterator[list[str]]:
    for name, content in _archive(data / "nltk.tar.xz"):
        corpus = Path(name).stem
        if not name.endswith(".zip") or corpus not in {
            "abc", "brown", "inaugural", "movie_reviews", "qc", "state_union", "subjectivity", "webtext",
        }:  # fmt: skip
            continue
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in sorted(archive.namelist()):
                text = archive.read(member).decode("latin-1")
                base = Path(member).name
                if corpus == "brown" and re.fullmatch(r"c[a-r]\d\d", base):
                    text = re.sub(r"(\S+)/[^\s/]+", r"\1", text)
                    yield from ([" ".join(line.split())] for line in text.split("\n") if line.strip())
                elif corpus in {"qc", "subjectivity", "webtext", "abc"} and "README" not in base:
                    for line in text.split("\n"):
                        yield sentences(re.sub(r"^[A-Z]+:\w+ ", "", line) if corpus == "qc" else line)
                elif corpus in {"movie_reviews", "state_union", "inaugural"} and base.endswith(".txt"):
                    yield from ([" ".join(p.split())] for p in re.split(r"(?<=[.!?])\s*\n", text))


def _wikiweasel(data: Path) -> Iterator[list[str]]:
    for name, content in _archive(data / "hedge_wikiweasel.tar.xz"):
        if name.endswith(".csv"):
            yield from ([" ".join(row[0].split())] for row in _rows(content) if row)


def _szeged(data: Path) -> Iterator[list[str]]:
    for name, content in _archive(data / "szeged_uncertainty.tar.xz"):
        if name.endswith(".xml"):
            for part in re.split(r"</DocumentPart>", content.decode("utf-8")):
                found = re.findall(r"<Sentence[^>]*>(.*?)</Sentence>", part, re.S)
                yield [" ".join(re.sub(r"<[^>]+>", "", s).split()) for s in found]


def _pubmedqa(data: Path) -> Iterator[list[str]]:
    for name, content in _archive(data / "pubmedqa.tar.xz"):
        if name.endswith("ori_pqal.json"):
            for record in json.loads(content).values():
                yield [record["QUESTION"]]
                yield sentences(record["LONG_ANSWER"])
                yield from map(sentences, record["CONTEXTS"])


def _cuad(data: Path) -> Iterator[list[str]]:
    for name, content in _archive(data / "cuad" / "full_contract_txt.tar.xz"):
        if name.endswith(".txt"):
            yield from _paragraphs(content.decode("utf-8", "replace"))


def _dailydialog(data: Path) -> Iterator[list[str]]:
    for name, content in _archive(data / "dailydialog.tar.xz"):
        if name.endswith("dialogues.txt"):
            for line in content.decode("utf-8").split("\n"):
                yield [" ".join(turn.split()) for turn in line.split("__eou__") if turn.strip()]


def _goemotions(data: Path) -> Iterator[list[str]]:
    for name, content in _archive(data / "goemotions.tar.xz"):
        if name.endswith("train.tsv"):
            yield from ([row[0]] for row in _rows(content, delimiter="\t", quoting=csv.QUOTE_NONE) if row)


def _wikihow(data: Path) -> Iterator[list[str]]:
    for name, content in _archive(data / "noisywikihow.tar.xz"):
        if name.endswith(("test.csv", "val.csv")):
            yield from ([row[3]] for row in _rows(content) if len(row) > 3)


_READERS = {
    "classic_books": _classic_books,
    "20newsgroups": _newsgroups,
    "nltk": _nltk,
    "hedge_wikiweasel": _wikiweasel,
    "szeged_uncertainty": _szeged,
    "pubmedqa": _pubmedqa,
    "cuad": _cuad,
    "dailydialog": _dailydialog,
    "goemotions": _goemotions,
    "noisywikihow": _wikihow,
}


def _key(sentence: str) -> str:
    return " ".join(_WORDS.findall(sentence.lower()))


def held_out(data: Path) -> set[str]:
    """Keys of all sentences of the evaluation sets."""
    texts: list[str] = []
    for name, content in _archive(data / "stsb.tar.xz"):
        if name.endswith(".csv"):
            texts += [cell for row in _rows(content) for cell in row[:2]]
    with zipfile.ZipFile(data / "scifact" / "scifact.zip") as archive:
        for name in archive.namelist():
            for row in _rows(archive.read(name)):
                texts += row[1:3]
                texts += re.findall(r"'([^']*)'", row[2])
    for name, content in _archive(data / "beam_100k.tar.xz"):
        if name.endswith(".json"):
            texts += [json.loads(f'"{s}"') for s in re.findall(r'"((?:[^"\\]|\\.)*)"', content.decode("utf-8"))]
    return {_key(s) for text in texts for s in [text, *sentences(text)]}


def passages(paragraph: list[str], rng: random.Random) -> Iterator[str]:
    """A paragraph as texts of one sentence (six in ten) or of several."""
    i = 0
    while i < len(paragraph):
        n = 1 if rng.random() < 0.6 else rng.randint(2, 5)
        text = paragraph[i]
        i += 1
        while n > 1 and i < len(paragraph) and len(text) + len(paragraph[i]) < MAX_CHARACTERS:
            text += " " + paragraph[i]
            i += 1
            n -= 1
        yield text[:MAX_CHARACTERS]


def training_texts(data: Path, seed: int = 7) -> list[str]:
    """The sample that the teacher embeds, shuffled."""
    rng = random.Random(seed)
    forbidden = held_out(data)
    chosen: list[str] = []
    for source, share in SHARES.items():
        seen: set[str] = set()
        found: list[str] = []
        for paragraph in _READERS[source](data):
            kept = [s for s in paragraph if len(s) >= 12 and _key(s) not in forbidden]
            for text in passages(kept, rng):
                if text not in seen and len(_WORDS.findall(text)) >= 3:
                    seen.add(text)
                    found.append(text)
        chosen += rng.sample(found, min(share, len(found)))
    rng.shuffle(chosen)
    return chosen
