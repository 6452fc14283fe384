"""Questions with known answers, in one form: what is searched, what is asked, what should be found."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HALVES = ("dev", "held-out")


@dataclass(frozen=True, slots=True)
class Question:
    """Asked of the documents of `scope` alone, or of all when that is None."""

    text: str
    relevant: frozenset[str]
    half: str
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """Documents by id, the scope of each where there are scopes, and questions."""

    name: str
    documents: dict[str, str]
    scopes: dict[str, str]
    questions: tuple[Question, ...]

    def in_half(self, half: str) -> list[Question]:
        return [question for question in self.questions if question.half == half]


def half_of(group: str) -> str:
    """By a hash of the name, so that a group is never in both."""
    return HALVES[hashlib.sha256(group.encode()).digest()[0] % 2]


def scifact(data: Path) -> RetrievalSet:
    """Claims and the abstracts they cite; the validation claims, the usual test set, are held out."""
    with zipfile.ZipFile(data / "scifact" / "scifact.zip") as file:
        tables = {
            name: list(csv.DictReader(io.StringIO(file.read(name).decode())))
            for name in ("corpus_train.csv", "claims_train.csv", "claims_validation.csv")
        }
    quoted = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")  # numpy's way to print a list of str
    documents = {
        row["doc_id"]: f"{row['title']} " + " ".join(one or two for one, two in quoted.findall(row["abstract"]))
        for row in tables["corpus_train.csv"]
    }
    questions = []
    for name, half in (("claims_train.csv", "dev"), ("claims_validation.csv", "held-out")):
        cited: dict[str, tuple[str, set[str]]] = {}
        for row in tables[name]:
            cited.setdefault(row["id"], (row["claim"], set()))[1].update(re.findall(r"\d+", row["cited_doc_ids"]))
        questions += [
            Question(claim, frozenset(ids & documents.keys()), half)
            for claim, ids in cited.values()
            if ids & documents.keys()
        ]
    return RetrievalSet("scifact", documents, {}, tuple(questions))


def cranfield(data: Path) -> RetrievalSet:
    """Questions of engineers to 1,400 abstracts; judgements of "no interest" do not count."""
    folder = data / "cranfield"
    entries = re.split(r"^\.I (\d+)\n", (folder / "cran.all.1400").read_text("latin-1"), flags=re.M)[1:]
    documents = {
        number: " ".join(entry.split(".W\n")[-1].split())
        for number, entry in zip(entries[::2], entries[1::2], strict=True)
    }
    documents = {number: text for number, text in documents.items() if text}
    relevant: dict[int, set[str]] = {}
    for line in (folder / "QRelsCorrectedforTRECeval").read_text().splitlines():
        question, _, document, grade = line.split()
        if int(grade) > 0 and document in documents:
            relevant.setdefault(int(question), set()).add(document)
    asked = re.split(r"^\.I \d+\n\.W\n", (folder / "cran.qry").read_text("latin-1"), flags=re.M)[1:]
    questions = [
        Question(" ".join(text.split()), frozenset(relevant[n]), half_of(f"cranfield {n}"))
        for n, text in enumerate(asked, 1)  # the judgements count the questions from 1, whatever .I says
        if n in relevant
    ]
    return RetrievalSet("cranfield", documents, {}, tuple(questions))


def beam_100k(data: Path) -> RetrievalSet:
    """Questions to the turns of the asker's own long chat."""
    files = dict(_members(data / "beam_100k.tar.xz"))
    documents: dict[str, str] = {}
    scopes: dict[str, str] = {}
    questions = []
    for name in sorted(name for name in files if name.endswith("chat.json")):
        chat = name.split("/")[-2]
        for turn in (turn for block in json.loads(files[name]) for pair in block["turns"] for turn in pair):
            key = f"{chat}/{turn['id']}"
            documents[key] = re.sub(r"\s*->->.*$", "", turn["content"])  # the generator's own marks
            scopes[key] = chat
        asked = json.loads(files[name.replace("chat.json", "probing_questions/probing_questions.json")])
        for item in (item for items in asked.values() for item in items):
            evidence = {f"{chat}/{i}" for i in _numbers(item.get("source_chat_ids"))} & documents.keys()
            if evidence:
                questions.append(Question(item["question"], frozenset(evidence), half_of(f"beam {chat}"), chat))
    return RetrievalSet("beam_100k", documents, scopes, tuple(questions))


def qmsum(data: Path) -> RetrievalSet:
    """Questions to the turns of one meeting; the validation meetings are held out."""
    documents: dict[str, str] = {}
    scopes: dict[str, str] = {}
    questions = []
    for name, text in _members(data / "qmsum.tar.xz"):
        if not name.endswith(".jsonl"):
            continue
        part = Path(name).stem
        for number, line in enumerate(text.splitlines()):
            row = json.loads(line)
            meeting = f"{part} {number}"
            for i, turn in enumerate(row["meeting_transcripts"]):
                documents[f"{meeting}/{i}"] = f"{turn['speaker']}: {turn['content']}"
                scopes[f"{meeting}/{i}"] = meeting
            for item in row["specific_query_list"]:
                turns = {
                    f"{meeting}/{i}"
                    for first, last in item["relevant_text_span"]
                    for i in range(int(first), int(last) + 1)
                }
                questions.append(
                    Question(
                        item["query"],
                        frozenset(turns & documents.keys()),
                        "held-out" if "val" in part else "dev",
                        meeting,
                    )
                )
    return RetrievalSet("qmsum", documents, scopes, tuple(question for question in questions if question.relevant))


def _members(path: Path) -> Iterator[tuple[str, str]]:
    with tarfile.open(path) as archive:
        for member in sorted(archive.getmembers(), key=lambda m: m.name):
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                yield member.name, content.read().decode("utf-8", "replace")


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers(item)


LOADERS: dict[str, Callable[[Path], RetrievalSet]] = {
    "beam_100k": beam_100k,
    "qmsum": qmsum,
    "scifact": scifact,
    "cranfield": cranfield,
}
