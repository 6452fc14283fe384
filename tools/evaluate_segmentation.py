"""Sentence boundaries beside other splitters on Universal Dependencies English EWT (gold boundaries).

    python tools/evaluate_segmentation.py --data DIR [--split dev|test] [--errors 20]

The rules were written against the dev split; the test split is for reporting. Text is rebuilt from the treebank with its
own spacing, paragraphs as blank lines. A boundary is the last character of a sentence that is not white space.
Splitters that are not installed are left out.
"""

import argparse
import importlib.util
import io
import re
import tarfile
from pathlib import Path

import hsca_fast


def documents(data: Path, split: str) -> list[tuple[str, set[int]]]:
    with tarfile.open(data / "ud_ewt.tar.xz") as archive:
        member = next(m for m in archive if m.name.endswith(f"en_ewt-ud-{split}.conllu"))
        lines = io.TextIOWrapper(archive.extractfile(member), "utf-8").read().split("\n\n")
    found: list[tuple[str, set[int]]] = []
    text, ends = "", set()
    for block in lines:
        if not block.strip():
            continue
        if "# newdoc" in block and text:
            found.append((text, ends))
            text, ends = "", set()
        if "# newpar" in block and text:
            text = text.rstrip() + "\n\n"
        sentence = re.search(r"^# text = (.*)$", block, re.M)[1]
        text += sentence
        ends.add(len(text.rstrip()))
        last = [line for line in block.split("\n") if re.match(r"\d+\t", line)][-1]
        text += "" if "SpaceAfter=No" in last else " "
    found.append((text, ends))
    return found


def ours(text: str) -> set[int]:
    return {int(end) for _, end in hsca_fast.segment(text).sentences}


def ends_of(text: str, parts) -> set[int]:
    ends, at = set(), 0
    for part in parts:
        part = part.strip()
        if not part:
            continue
        start = text.find(part, at)
        if start < 0:  # the splitter changed the text; count its length only
            start = at
        at = start + len(part)
        ends.add(at)
    return ends


def splitters() -> dict[str, object]:
    found = {"hsca_fast": ours}
    if importlib.util.find_spec("sentencex"):
        import sentencex

        found["sentencex"] = lambda text: ends_of(text, sentencex.segment("en", text))
    if importlib.util.find_spec("pysbd"):
        import pysbd

        splitter = pysbd.Segmenter(language="en", clean=False)
        found["pysbd"] = lambda text: ends_of(text, splitter.segment(text))
    if importlib.util.find_spec("blingfire"):
        import blingfire

        found["blingfire"] = lambda text: ends_of(text, blingfire.text_to_sentences(text).split("\n"))
    if importlib.util.find_spec("spacy"):
        import spacy

        nlp = spacy.blank("en")
        nlp.add_pipe("sentencizer")
        found["spacy sentencizer"] = lambda text: ends_of(text, [s.text for s in nlp(text).sents])
    if importlib.util.find_spec("unicode_segmentation_rs"):
        import unicode_segmentation_rs

        found["unicode-segmentation-rs"] = lambda text: ends_of(text, unicode_segmentation_rs.unicode_sentences(text))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--split", choices=["dev", "test"], default="test")
    parser.add_argument("--errors", type=int, default=0, help="show this many of our errors")
    args = parser.parse_args()
    docs = documents(args.data, args.split)
    for name, split in splitters().items():
        hit = made = gold = 0
        shown = 0
        for text, ends in docs:
            found = split(text)
            hit += len(found & ends)
            made += len(found)
            gold += len(ends)
            if name == "hsca_fast" and shown < args.errors:
                for at in sorted(found ^ ends):
                    print(
                        "extra  " if at in found else "missing",
                        repr(text[max(0, at - 50) : at]),
                        "|",
                        repr(text[at : at + 30]),
                    )
                    shown += 1
        print(f"{name:24} precision {hit / made:.4f} recall {hit / gold:.4f} F1 {2 * hit / (made + gold):.4f}")


if __name__ == "__main__":
    main()
