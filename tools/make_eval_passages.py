"""Cut the passages that the evals ship with: src/hsca_fast/data/eval_passages.jsonl.xz.

    python tools/make_eval_passages.py --data DIR --extra EXTRA --out src/hsca_fast/data/eval_passages.jsonl.xz

DIR and EXTRA as in train_domain.py, of which only sources that did not train the domain model are used. What is shipped is in
the public domain (books, verse, presidents' addresses, NIST documentation), under CC BY 4.0 (CUAD contracts) or under MIT and BSD
terms (PubMedQA, TIAGE, documentation of packages); src/hsca_fast/data/README.md lists them.
"""

import argparse
import json
import lzma
import random
from collections import defaultdict
from pathlib import Path

import train_domain

from hsca_fast.evals import passages
from hsca_fast.evals.passages import Passage, long_turn

SHIPPED = ("classic_books", "rhymedata", "cuad", "pubmedqa", "inaugural", "state_union")
PER_LABEL_AND_HALF = 16
PER_GROUP = 8
SIZE = 3600


def documentation(extra: Path) -> list[Passage]:
    found = []
    for document in train_domain.documentation(extra, {"test"}):
        cells = dict(zip(train_domain.TAGS, document.labels, strict=True))
        label = next(tag for tag, cell in cells.items() if cell == "+")
        unsure = tuple(tag for tag, cell in cells.items() if cell == "?")
        found.append(Passage("docs", document.group, label, unsure, document.text))
    return found


def chats(data: Path) -> list[Passage]:
    talks = json.loads((data / "tiage/anno_test.json").read_text())
    joined = ["\n".join(turn[0] for turn in talk) for talk in talks.values()]
    unsure = ("narrative", "technical_prose")
    return [
        Passage("tiage", f"tiage/{i}", "conversational", unsure, "\n".join(joined[i : i + 4]))
        for i in range(0, len(joined), 4)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--extra", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    found = [p for p in passages.load_passages(args.data) if p.source in SHIPPED]
    found += documentation(args.extra) + chats(args.data)
    random.Random(20261118).shuffle(found)
    taken: dict[object, int] = defaultdict(int)
    lines = []
    for p in found:
        cell, group = (p.label, p.half), (p.label, p.group)
        if len(p.text) < 1500 or taken[cell] >= PER_LABEL_AND_HALF or taken[group] >= PER_GROUP:
            continue
        taken[cell] += 1
        taken[group] += 1
        row = {"source": p.source, "group": p.group, "label": p.label, "unsure": " ".join(p.unsure)}
        lines.append(json.dumps(row | {"text": long_turn(p.text, SIZE)}, ensure_ascii=False))
    args.out.write_bytes(lzma.compress("\n".join(sorted(lines)).encode(), preset=9))
    for cell, n in sorted((c, n) for c, n in taken.items() if c[1] in passages.HALVES):
        print(*cell, n)
    print(f"{len(lines)} passages, {args.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
