"""Compound sentiment beside the vaderSentiment package on real sentences and on whole texts of about 1.5 KB.

    python tools/evaluate_sentiment.py --data DIR [--per-source 8000] [--seed 1]

DIR holds the data of docs/data.md (goemotions, tweeteval, 20newsgroups, dailydialog, movie reviews of nltk, classic_books).
Nothing is fitted, so there is no split. Printed: number of texts, greatest and mean difference of the two compounds, both
rounded to four decimals as the package does, and how many differ at all; then native and reference, not rounded.
"""

import argparse
import io
import random
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

import hsca_fast
from hsca_fast._native import text as native
from hsca_fast._native.strings import StringColumn
from hsca_fast._reference import sentiment as reference

TEXT_SIZE = 1500
MOST_BYTES = 1 << 40


def members(archive: Path, ending: str) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(archive) as files:
        for member in files:
            if member.isfile() and member.name.endswith(ending):
                yield member.name, files.extractfile(member).read()


def messages(data: Path) -> dict[str, list[str]]:
    """Short texts, taken as they are."""
    found = {"goemotions": [], "dailydialog": []}
    for _, content in members(data / "goemotions.tar.xz", ".tsv"):
        found["goemotions"] += [line.split("\t")[0] for line in content.decode("utf-8", "replace").split("\n")]
    for _, content in members(data / "dailydialog.tar.xz", "dialogues.txt"):
        found["dailydialog"] += content.decode("utf-8", "replace").replace("\n", "__eou__").split("__eou__")
    for task in ("irony", "emotion"):
        files = sorted((data / f"tweeteval_{task}").glob("*_text.txt"))
        found[f"tweeteval_{task}"] = "\n".join(f.read_text("utf-8") for f in files).split("\n")
    return found


def documents(data: Path) -> dict[str, list[str]]:
    """Long texts; news are read as Latin-1, which makes odd characters of some of them."""
    news = [c.decode("latin-1") for _, c in members(data / "20newsgroups" / "20news-bydate.tar.gz", "")]
    books = [
        content.decode("utf-8", "replace")[5000:105_000]
        for k, (_, content) in enumerate(members(data / "classic_books.tar.xz", ".md"))
        if k % 5 == 0
    ]
    _, packed = next(members(data / "nltk.tar.xz", "movie_reviews.zip"))
    with zipfile.ZipFile(io.BytesIO(packed)) as files:
        reviews = [files.read(name).decode("utf-8", "replace") for name in files.namelist() if name.endswith(".txt")]
    return {"20newsgroups": news, "movie reviews": reviews, "classic books": books}


def native_compounds(texts: list[str]) -> np.ndarray:
    return native.sentiment_compounds(StringColumn.from_sequence(tuple(texts), 0, MOST_BYTES))


def samples(data: Path, per_source: int, seed: int) -> Iterator[tuple[str, list[str]]]:
    rng = random.Random(seed)
    for name, texts in messages(data).items():
        kept = [text for text in texts if text.strip()]
        yield name, rng.sample(kept, min(per_source, len(kept)))
    for name, texts in documents(data).items():
        few = rng.sample(texts, min(per_source // 8, len(texts)))
        sentences = [text[begin:end] for text in few for begin, end in hsca_fast.segment(text).sentences]
        yield name, rng.sample(sentences, min(per_source, len(sentences)))
        wholes = [text[at : at + TEXT_SIZE] for text in few for at in range(0, len(text) - TEXT_SIZE + 1, TEXT_SIZE)]
        yield f"{name}, {TEXT_SIZE} characters", rng.sample(wholes, min(per_source // 4, len(wholes)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--per-source", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    analyzer = SentimentIntensityAnalyzer()
    lexicon = reference.Lexicon(analyzer.lexicon, {k: v for k, v in analyzer.emojis.items() if len(k) == 1})
    print(f"{'':34}{'n':>7}{'max':>10}{'mean':>10}{'differ':>8}{'max, reference':>16}")
    every = []
    for name, texts in samples(arguments.data, arguments.per_source, arguments.seed):
        found = native_compounds(texts)
        package = np.array([analyzer.polarity_scores(text)["compound"] for text in texts])
        plain = np.array([reference.compound(text, lexicon) for text in texts])
        rounded = np.array([round(float(x), 4) for x in found])
        row = np.stack([np.abs(rounded - package), np.abs(found - plain)])
        every.append(row)
        show(name, row)
    show("all", np.concatenate(every, axis=1))


def show(name: str, row: np.ndarray) -> None:
    package, plain = row
    print(
        f"{name:34}{package.size:>7}{package.max():>10.1e}{package.mean():>10.1e}{(package > 0).sum():>8}{plain.max():>16.1e}"
    )


if __name__ == "__main__":
    main()
