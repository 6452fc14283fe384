"""Measure the nuance flags that come from cues: hedged, absolute, rhetorical_question, instructional, urgent, analogy.

    python tools/evaluate_nuance.py --data DIR [--reference] [--texts]

DIR holds the archives of docs/data.md. Lines say "tuning" or "seen" where cues were chosen after a look at the part;
docs/nuance.md has the whole account. --reference asks the Python oracle instead of the kernel. --texts lists the flags of whole
texts. Everything is deterministic.
"""

import argparse
import csv
import html
import io
import json
import random
import re
import tarfile
import tomllib
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from pathlib import Path

import hsca_fast
from hsca_fast._native import text as native
from hsca_fast._reference import lexicon as reference

ROOT = Path(__file__).resolve().parent.parent
Labelled = list[tuple[str, bool]]
Judge = Callable[[list[str]], list[set[str]]]


# ---- flags -------------------------------------------------------------------------------------------------------
def sentence_flags(sentences: list[str]) -> list[set[str]]:
    """A text of one sentence has a flag when its sentence shows it."""
    batch = hsca_fast.score_texts(sentences)
    return [set(batch.nuance_flags(i)) for i in range(len(sentences))]


def reference_flags(sentences: list[str]) -> list[set[str]]:
    source = (files("hsca_fast") / "data" / "nuance.toml").read_text(encoding="utf-8")
    lexicon = reference.parse(tomllib.loads(source))
    function_words = frozenset(native.function_words())
    return [reference.flags(reference.sentences_of(s, function_words), lexicon).names for s in sentences]


# ---- data --------------------------------------------------------------------------------------------------------
def members(data: Path, name: str) -> dict[str, bytes]:
    """Files of an archive, or of the folder of that name, by path."""
    if (folder := data / name).is_dir():
        return {str(p.relative_to(data)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    with tarfile.open(data / f"{name}.tar.xz") as archive:
        return {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}


def rows(source: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(source.decode("utf-8", "replace"))))


def half(name: str) -> int:
    """0 for tuning, 1 for held out; of a document's name, so that no document is in both."""
    return zlib.crc32(name.encode()) % 2


def szeged(data: Path) -> dict[tuple[str, int], Labelled]:
    """Sentences of the Szeged uncertainty corpus by part and half; one with a cue is uncertain."""
    found: dict[tuple[str, int], Labelled] = {}
    for path, source in members(data, "szeged_uncertainty").items():
        if not path.endswith(".xml"):
            continue
        for document in re.findall(r"<Document type.*?</Document>", source.decode(), re.DOTALL):
            name = re.search(r"<DocID[^>]*>(.*?)</DocID>", document, re.DOTALL)[1]
            for sentence in re.findall(r"<Sentence[^>]*>(.*?)</Sentence>", document, re.DOTALL):
                text = html.unescape(re.sub(r"<[^>]+>", "", sentence))
                found.setdefault((Path(path).stem, half(name)), []).append((text, "<ccue" in sentence))
    return found


def letters(text: str) -> str:
    return re.sub(r"\W+", "", text.lower())


def prose(data: Path, count: int) -> list[str]:
    """Held-out sentences that instruct nobody: books of every other author, Brown news, ABC science."""
    rng = random.Random(11)
    texts: dict[str, list[str]] = {"books": [], "brown": [], "abc": []}
    authors: dict[str, list[str]] = {}
    with tarfile.open(data / "classic_books.tar.xz") as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(".md"):
                text = archive.extractfile(member).read().decode("utf-8", "replace")
                authors.setdefault(member.name.split("/")[1], []).append(text[20_000:60_000])
    for author in sorted(authors)[1::2]:
        texts["books"] += authors[author]
    with tarfile.open(data / "nltk.tar.xz") as archive:
        inner = {Path(m.name).name: m for m in archive.getmembers()}
        with zipfile.ZipFile(io.BytesIO(archive.extractfile(inner["brown.zip"]).read())) as corpus:
            for name in sorted(corpus.namelist()):
                if re.fullmatch(r"brown/c[abc]\d\d", name):
                    words = re.sub(r"(\S+)/\S+", r"\1", corpus.read(name).decode())
                    texts["brown"].append(re.sub(r" ([.,;:?!])", r"\1", words.replace("``", '"').replace("''", '"')))
        with zipfile.ZipFile(io.BytesIO(archive.extractfile(inner["abc.zip"]).read())) as corpus:
            texts["abc"].append(corpus.read("abc/science.txt").decode("latin-1"))
    found = []
    for documents in texts.values():
        sentences = [
            " ".join(text[a:b].split())
            for text in documents
            for a, b in hsca_fast.segment(text).sentences
            if b - a < 400
        ]
        found += rng.sample(sentences, count // 3)
    return found


def dialogue_acts(data: Path) -> list[tuple[str, str]]:
    """Turns of DailyDialog's test part and their acts: inform, question, directive, commissive."""
    inside = members(data, "dailydialog")
    names = {"1": "inform", "2": "question", "3": "directive", "4": "commissive"}
    found = []
    lines = [inside[f"dailydialog/test/dialogues{kind}.txt"].decode().splitlines() for kind in ("", "_act")]
    for turns, acts in zip(*lines, strict=True):
        spoken = [re.sub(r" ([.,;:?!’])", r"\1", t.strip()).replace("’ ", "’") for t in turns.split("__eou__")[:-1]]
        found += list(zip(spoken, (names[a] for a in acts.split()), strict=False))
    return found


def tagged_utterances(inside: dict[str, bytes], path: str, column: int) -> Labelled:
    """Utterances of a file `speaker|text|tag...`, True for a rhetorical question."""
    fields = [line.split("|") for line in inside[path].decode("utf-8", "replace").splitlines()]
    return [(f[1], f[column].strip() == "qh") for f in fields if len(f) > column and re.search(r"\w", f[1])]


def own_sentences(name: str, part: str) -> Labelled:
    lines = (ROOT / "tests" / "text" / f"{name}_sentences.tsv").read_text(encoding="utf-8").splitlines()
    fields = [line.split("\t") for line in lines if not line.startswith("#")]
    return [(f[-1], f[1] == "1") for f in fields if f[0] == part]


# ---- figures -----------------------------------------------------------------------------------------------------
def figures(found: Iterable[bool], truth: Iterable[bool]) -> str:
    pairs = Counter(zip(map(bool, found), truth, strict=True))
    hits, false, missed = pairs[True, True], pairs[True, False], pairs[False, True]
    precision, recall = hits / max(hits + false, 1), hits / max(hits + missed, 1)
    f1 = 2 * precision * recall / max(precision + recall, 1e-12)
    return f"P {precision:.3f}  R {recall:.3f}  F1 {f1:.3f}  ({hits + missed} of {sum(pairs.values())} are)"


def report(title: str, flag: str, judge: Judge, data: Labelled) -> None:
    found = judge([text for text, _ in data])
    print(f"  {title:52s} {figures((flag in f for f in found), (label for _, label in data))}")


def report_words(title: str, words: Sequence[str], data: Labelled) -> None:
    """A plain list of words as the baseline."""
    pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, words)) + r")\b", re.IGNORECASE)
    print(f"  {title:52s} {figures((pattern.search(t) is not None for t, _ in data), (label for _, label in data))}")


def hedged(data: Path, judge: Judge) -> None:
    print("hedged")
    listed = (data / "hedge_lexicons" / "hedge_words.txt").read_text(encoding="utf-8").splitlines()
    words = [w.strip() for w in listed if w.strip() and not w.startswith("#")]
    corpus = szeged(data)
    for part in ("wiki", "bio_bmc", "bio_fly", "bio_hbc"):
        for side, name in ((0, "tuning"), (1, "held out")):
            report(f"Szeged {part}, {name}", "hedged", judge, corpus[part, side])
        report_words("    plain list of hedges", words, corpus[part, 1])
    tuned = {letters(text) for text, _ in corpus["wiki", 0]}
    test = rows(members(data, "hedge_wikiweasel")["hedge_wikiweasel/test.csv"])
    weasels = [(r["text"], r["label"] == "1") for r in test if letters(r["text"]) not in tuned]
    report("CoNLL-2010 Wikipedia test, without the tuning half", "hedged", judge, weasels)
    report_words("    plain list of hedges", words, weasels)


def instructional(data: Path, judge: Judge) -> None:
    print("instructional")
    steps = [r["step"] for r in rows(members(data, "noisywikihow")["noisywikihow/test.csv"])]
    steps = random.Random(5).sample(steps, 3000)
    other = prose(data, 3000)
    labelled = [(s, True) for s in steps] + [(s, False) for s in other]
    report("wikiHow steps against prose", "instructional", judge, labelled)
    print(f"  {'    every sentence':52s} {figures((True for _ in labelled), (y for _, y in labelled))}")
    acts = dialogue_acts(data)
    report("DailyDialog test, directive turns", "instructional", judge, [(t, act == "directive") for t, act in acts])
    statements = [(t, act == "directive") for t, act in acts if "?" not in t]
    report("DailyDialog test, turns without a question mark", "instructional", judge, statements)


def rhetorical(data: Path, judge: Judge) -> None:
    print("rhetorical_question")
    flag = "rhetorical_question"
    for title, name, path, column in (
        ("SwDA, all parts", "swda", r"swda/swda_data/.*\.txt", 2),
        ("MRDA test", "mrda", r"mrda/test_set\.txt", 4),
    ):
        inside = members(data, name)
        utterances = [u for p in inside if re.fullmatch(path, p) for u in tagged_utterances(inside, p, column)]
        asked = [(t, y) for t, y in utterances if "?" in t]
        report(f"{title}, among questions", flag, judge, asked)
        print(f"  {'    every question':52s} {figures((True for _ in asked), (y for _, y in asked))}")
        report(f"{title}, among all utterances", flag, judge, utterances)
        print(f"  {'    every question':52s} {figures(('?' in t for t, _ in utterances), (y for _, y in utterances))}")
    tweets = [r for r in rows((data / "isarcasm" / "train.En.csv").read_bytes()) if r["rhetorical_question"]]
    labelled = [(r["tweet"], float(r["rhetorical_question"]) == 1) for r in tweets]
    asked = [(t, y) for t, y in labelled if "?" in t][1::2]
    report("iSarcasm sarcastic tweets with '?', every other", flag, judge, asked)
    print(f"  {'    every question':52s} {figures((True for _ in asked), (y for _, y in asked))}")
    posts = rows(members(data, "sarcasm_v2")["sarcasm_v2/RQ-sarc-notsarc.csv"])[1::2]
    inner = [q for r in posts for q in re.split(r"(?<=[?.!])\s+", r["text"])[:-1] if q.endswith("?") and q[:-1].strip()]
    other = [
        re.split(r"(?<=[?.!])\s+", t)[-1] for t, act in dialogue_acts(data) if act == "question" and t.endswith("?")
    ]
    mixed = [(q, True) for q in inner] + [(q, False) for q in other]
    report("Sarcasm V2 RQ against DailyDialog's questions (seen)", flag, judge, mixed)
    print(f"  {'    every question':52s} {figures((True for _ in mixed), (y for _, y in mixed))}")


def own(judge: Judge) -> None:
    for name, flag, parts in (
        ("absolute", "absolute", ("tuning", "seen", "held-out")),
        ("urgent", "emotional_tone_urgent", ("tuning", "seen")),
        ("analogy", "analogy", ("tuning", "seen")),
    ):
        print(flag)
        for part in parts:
            report(f"own sentences, {part}", flag, judge, own_sentences(name, part))
    naive = ["always", "never", "all", "every", "none"]
    report_words("    absolute, held-out: " + ", ".join(naive), naive, own_sentences("absolute", "held-out"))
    report_words("    analogy, seen: like", ["like"], own_sentences("analogy", "seen"))


def rates(data: Path, judge: Judge) -> None:
    """How often each flag is set where it should be rare, and on sets that mean something else by the name."""
    print("share of sentences with each flag")
    for title, sentences in (
        ("books, news, science", prose(data, 3000)),
        ("DailyDialog, informing turns", [t for t, act in dialogue_acts(data) if act == "inform"]),
    ):
        counts = Counter(flag for found in judge(sentences) for flag in found if "tone_p" not in flag)
        shown = {f: counts[f] / len(sentences) for f in FLAGS}
        print(f"  {title:40s} " + "  ".join(f"{f.split('_')[-1]} {share:.3f}" for f, share in shown.items()))


FLAGS = ("hedged", "absolute", "rhetorical_question", "instructional", "emotional_tone_urgent", "analogy")


def whole_texts(data: Path, judge: Judge) -> None:
    print("flags of whole texts")
    texts = {p.name: p.read_text(encoding="utf-8") for p in sorted((ROOT / "examples" / "texts").iterdir())}
    steps = rows(members(data, "noisywikihow")["noisywikihow/test.csv"])
    for category in ("Bathing", "Getting a Cat"):
        of_one = [s["step"].replace(" .", ".") for s in steps if s["cat"] == category][:20]
        texts[f"wikiHow steps, {category}"] = " ".join(s[:1].upper() + s[1:] for s in of_one)
    with tarfile.open(data / "cuad" / "full_contract_txt.tar.xz") as archive:
        contract = next(m for m in archive if m.isfile() and m.name.endswith(".txt"))
        texts["a contract (CUAD)"] = archive.extractfile(contract).read().decode("utf-8", "replace")[:20_000]
    conversation = (ROOT / "examples" / "conversation.jsonl").read_text(encoding="utf-8").splitlines()
    for n, line in enumerate(conversation[:8]):
        texts[f"conversation turn {n + 1}"] = str(json.loads(line).get("text", ""))
    for name, found in zip(texts, judge(list(texts.values())), strict=True):
        print(f"  {name:40s} {', '.join(f for f in FLAGS if f in found) or '-'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the archives of docs/data.md")
    parser.add_argument("--reference", action="store_true", help="use the Python oracle")
    parser.add_argument("--texts", action="store_true", help="also list the flags of whole texts")
    options = parser.parse_args()
    judge = reference_flags if options.reference else sentence_flags
    hedged(options.data, judge)
    instructional(options.data, judge)
    rhetorical(options.data, judge)
    own(judge)
    rates(options.data, judge)
    if options.texts:
        whole_texts(options.data, judge)


if __name__ == "__main__":
    main()
