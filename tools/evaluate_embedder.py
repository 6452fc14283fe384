"""Quality of embedders: STS-B (Spearman), SciFact (nDCG@10), long chats (recall@10 of evidence turns).

    python tools/evaluate_embedder.py --data DIR [--embedder default|minilm] [--dim 64] [--split test|dev]

`--split dev` measures on STS-B dev and on the training claims of SciFact, for choosing settings; `test` is for reporting.
In the long chats each question is put to the turns of its own chat, and to the turns of all ten at once.
"""

import argparse
import csv
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from hsca_fast.vectors.onnx import minilm_embedder
from hsca_fast.vectors.static import VOCABULARY, WEIGHTS, StaticEmbedder

Embed = Callable[[list[str]], np.ndarray]
csv.field_size_limit(1 << 30)


def archive(path: Path) -> Iterator[tuple[str, str]]:
    with tarfile.open(path) as tar:
        for member in sorted(tar.getmembers(), key=lambda m: m.name):
            if member.isfile():
                yield member.name, tar.extractfile(member).read().decode("utf-8", "replace")


def sts(data: Path, split: str, embed: Embed) -> float:
    (content,) = [text for name, text in archive(data / "stsb.tar.xz") if name.endswith(f"-{split}.csv")]
    rows = list(csv.reader(io.StringIO(content)))
    first, second = (embed([row[i] for row in rows]) for i in (0, 1))
    return float(spearmanr((first * second).sum(axis=1), [float(row[2]) for row in rows]).statistic)


def scifact(data: Path, split: str, embed: Embed) -> float:
    with zipfile.ZipFile(data / "scifact" / "scifact.zip") as file:
        read = {name: file.read(name).decode() for name in file.namelist()}

    def table(part: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(next(text for name, text in read.items() if name.endswith(part)))))

    corpus = table("corpus_train.csv")
    quoted = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")  # numpy's way to print a list of str
    texts = [
        f"{row['title']} " + " ".join(single or double for single, double in quoted.findall(row["abstract"]))
        for row in corpus
    ]
    names = [row["doc_id"] for row in corpus]
    claims: dict[str, tuple[str, set[str]]] = {}
    for row in table(f"claims_{'validation' if split == 'test' else 'train'}.csv"):
        claims.setdefault(row["id"], (row["claim"], set()))[1].update(re.findall(r"\d+", row["cited_doc_ids"]))
    scores = embed([claim for claim, _ in claims.values()]) @ embed(texts).T
    gains = 1 / np.log2(np.arange(10) + 2)
    found = []
    for row, (_, relevant) in zip(scores, claims.values(), strict=True):
        best = np.argsort(-row, kind="stable")[:10]
        hits = np.array([names[i] in relevant for i in best])
        found.append(gains[hits].sum() / gains[: len(relevant)].sum())
    return float(np.mean(found))


def numbers(value: object) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from numbers(item)


def without_marks(content: str) -> str:
    """A turn without what the generator of the chats noted behind it."""
    return re.sub(r"\s*->->.*$", "", content)


def long_chats(data: Path, embed: Embed) -> tuple[float, float]:
    """Recall@10 among the turns of a question's own chat, and among those of all chats."""
    files = dict(archive(data / "beam_100k.tar.xz"))
    turns: list[str] = []
    questions: list[tuple[str, range, set[int]]] = []
    for name in (name for name in files if name.endswith("chat.json")):
        chat = [turn for block in json.loads(files[name]) for pair in block["turns"] for turn in pair]
        place = {turn["id"]: len(turns) + i for i, turn in enumerate(chat)}
        own = range(len(turns), len(turns) + len(chat))
        turns += [without_marks(turn["content"]) for turn in chat]
        asked = json.loads(files[name.replace("chat.json", "probing_questions/probing_questions.json")])
        for item in (item for items in asked.values() for item in items):
            evidence = {place[i] for i in numbers(item.get("source_chat_ids")) if i in place}
            if evidence:
                questions.append((item["question"], own, evidence))
    scores = embed([question for question, _, _ in questions]) @ embed(turns).T
    within, everywhere = [], []
    for row, (_, own, evidence) in zip(scores, questions, strict=True):
        best = {own.start + int(i) for i in np.argsort(-row[own.start : own.stop], kind="stable")[:10]}
        within.append(len(best & evidence) / len(evidence))
        everywhere.append(len(set(np.argsort(-row, kind="stable")[:10].tolist()) & evidence) / len(evidence))
    return float(np.mean(within)), float(np.mean(everywhere))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--embedder", choices=["default", "minilm"], default="default")
    parser.add_argument(
        "--weights", type=Path, default=WEIGHTS, help="static model to measure instead of the bundled one"
    )
    parser.add_argument("--dim", type=int)
    parser.add_argument("--split", choices=["test", "dev"], default="test")
    options = parser.parse_args()
    embedder = (
        minilm_embedder()
        if options.embedder == "minilm"
        else StaticEmbedder(options.weights, VOCABULARY, dim=options.dim)
    )
    print(f"{embedder.name}, {embedder.dim} dimensions, {embedder.fingerprint}")
    embed = embedder.embed_documents
    print(f"STS-B {options.split}, Spearman: {sts(options.data, options.split, embed):.4f}")
    print(f"SciFact {options.split}, nDCG@10: {scifact(options.data, options.split, embed):.4f}")
    if options.split == "test":
        print("long chats, recall@10, own chat / all chats: {:.4f} / {:.4f}".format(*long_chats(options.data, embed)))


if __name__ == "__main__":
    main()
