"""Train small heads for the nuance flags that rules cannot set, measure them, and write those that are worth shipping.

    python tools/train_nuance_heads.py --data DIR [--write]

DIR holds the sets of docs/data.md. A head is a logistic regression on hashed features, stored as ONNX with int8 weights.
For each flag and set a head is trained on three quarters of the set and measured on the held-out quarter, and on every
other set of the flag: a head that only knows its corpus fails there. A head is shipped (--write) if
  - every set it was trained on has a licence that allows it,
  - its F1 on held-out texts beats the best constant answer, and
  - its AUC is at least .6 on every other set of the flag.
Quarters follow from a checksum of the text, books from their author: nothing depends on chance.
"""

import argparse
import collections
import csv
import io
import json
import random
import re
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score

import hsca_fast
from hsca_fast.text.models import NuanceModel, bundled_nuance_models, predict_nuance
from hsca_fast.text.onnx_file import FEATURES, hashed_features

DIM = 8192
MIN_CROSS_AUC = 0.6
MAX_ROWS = 8000  # texts of a set
HEADS = Path(__file__).parent.parent / "src" / "hsca_fast" / "data" / "heads"


@dataclass
class Corpus:
    """Labelled texts of one source; `licence` is empty where none allows a head trained on it to be shipped."""

    name: str
    licence: str
    texts: list[str]
    labels: np.ndarray
    held_out: np.ndarray


def corpus(name: str, licence: str, rows: list[tuple[str, bool]], held_out: list[bool] | None = None) -> Corpus:
    """Rows in the order of a checksum, at most MAX_ROWS; every fourth is held out unless `held_out` says which."""
    if held_out is None:
        held_out = [zlib.crc32(text.encode()) % 4 == 0 for text, _ in rows]
    joined = [(t, y, h) for (t, y), h in zip(rows, held_out, strict=True) if t.strip()]
    joined = sorted(set(joined), key=lambda row: (zlib.crc32(b"order" + row[0].encode()), row))[:MAX_ROWS]
    return Corpus(name, licence, *(list(c) if i == 0 else np.array(c) for i, c in enumerate(zip(*joined, strict=True))))


# ---- texts -------------------------------------------------------------------------------------------------------
def read_files(data: Path, name: str) -> dict[str, str]:
    """Files of a set by name, from its archive or its folder."""
    archive = data / f"{name}.tar.xz"
    if archive.exists():
        with tarfile.open(archive) as files:
            found = {m.name: files.extractfile(m).read() for m in files if m.isfile()}
    else:
        found = {p.name: p.read_bytes() for p in sorted((data / name).iterdir()) if p.suffix != ".xz"}
    return {Path(path).name: content.decode("utf-8", "replace") for path, content in found.items()}


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def plain(tweet: str) -> str:
    """Without addresses, names and hashtags: they tell how a set was collected."""
    return " ".join(w for w in re.sub(r"https?://\S+", "", tweet).split() if not w.startswith(("@", "#")))


def untokenised(text: str) -> str:
    return re.sub(r" (?=[.,;:?!]|'\w|n't)", "", text)


def sarcasm(data: Path) -> list[Corpus]:
    forum = table(read_files(data, "sarcasm_v2")["GEN-sarc-notsarc.csv"])
    ets = read_files(data, "sarcasm_ets")
    own = read_files(data, "isarcasm")
    irony = read_files(data, "tweeteval_irony")
    told = lines(read_files(data, "flute")["sarcasm_train.jsonl"])
    ironic = [
        (plain(t), y == "1")
        for part in ("train", "val", "test")
        for t, y in zip(irony[f"{part}_text.txt"].splitlines(), irony[f"{part}_labels.txt"].split(), strict=False)
    ]
    tasks = {
        name: [
            (plain(row["response"]), row["label"] == "SARCASM")
            for row in lines(ets[f"sarcasm_detection_shared_task_{name}_training.jsonl"])
        ]
        for name in ("reddit", "twitter")
    }
    return [
        corpus("isarcasm", "MIT", [(plain(r["tweet"]), r["sarcastic"] == "1") for r in table(own["train.En.csv"])]),
        corpus("isarcasm test", "MIT", [(plain(r["text"]), r["sarcastic"] == "1") for r in table(own["task_A_En_test.csv"])]),
        corpus("sarcasm_v2", "", [(r["text"], r["class"] == "sarc") for r in forum]),
        corpus("sarcasm_ets reddit", "", tasks["reddit"]),
        corpus("sarcasm_ets twitter", "", tasks["twitter"]),
        corpus("tweeteval_irony", "", ironic),
        corpus("flute sarcasm", "", [(r["hypothesis"], r["label"] == "Contradiction") for r in told]),
    ]  # fmt: skip


def metaphor(data: Path) -> list[Corpus]:
    files = read_files(data, "metaphor")
    flute = read_files(data, "flute")
    words = collections.defaultdict(list)
    for row in table(files["VUA_allpos_test.csv"]):
        words[row["sentence"]].append(row["label"] == "1")
    paired = lines(flute["metaphor_train.jsonl"])
    return [
        corpus("MOH-X", "", [(r["sentence"], r["label"] == "1") for r in table(files["MOH-X_formatted_svo_cleaned.csv"])]),
        corpus("TroFi", "", [(r["sentence"], r["label"] == "1") for r in table(files["TroFi_formatted_all3737.csv"])]),
        corpus("VUA", "", [(sentence, any(labels)) for sentence, labels in words.items()]),
        corpus("flute metaphor", "", figurative(paired)),
    ]  # fmt: skip


def figurative(rows: list[dict]) -> list[tuple[str, bool]]:
    """Figurative sentences, and what they say in plain words."""
    return [(r["hypothesis"], True) for r in rows] + [(r["premise"], False) for r in rows if r["label"] == "Entailment"]


def analogy(data: Path) -> list[Corpus]:
    # analogy_scan (MIT) has pairs of words and no text: nothing to train on, nothing to measure on.
    flute = read_files(data, "flute")
    liking = re.compile(r"\blike\b|\bas \w+ as\b", re.IGNORECASE)
    talk = re.split(r"__eou__|\n", read_files(data, "dailydialog")["dialogues.txt"])
    similes = [(r["hypothesis"], True) for r in lines(flute["simile_train.jsonl"])]
    # "Would you like some tea?" and its kind: the words of a comparison without one, by and large.
    no_similes = [(t.strip(), False) for t in talk if liking.search(t) and "like a" not in t]
    return [
        corpus("flute simile", "", figurative(lines(flute["simile_train.jsonl"]))),
        corpus("flute simile, dailydialog", "", similes + no_similes[: 2 * len(similes)]),
    ]


# A narrative thread: the passage tells what befell somebody, as stories and memoirs do, and does not argue, explain,
# report or rule.
ESSAYS = (
    "Aristotle/Poetics", "Charlotte Perkins Gilman/Women and Economics", "Confucius/The Analects",
    "Jean-Jacques Rousseau/The Social Contract", "Benedict de Spinoza/The Ethics", "Henry David Thoreau/Civil Disobedience",
    "Frederick Douglass/Why Is the Negro Lynched?", "Jonathan Swift/A Modest Proposal",
)  # fmt: skip
HELD_OUT_ESSAYS = ESSAYS[4:]
NEITHER = (  # verse, a play, and books that do both
    "Charles Baudelaire/", "Dante/", "Edgar Allan Poe/Poems", "Henry Wadsworth Longfellow/", "John Milton/",
    "George Bernard Shaw/", "Cotton Mather/", "David Kalakaua/", "Edward J. Ruppelt/", "Henry David Thoreau/A Week",
)  # fmt: skip


def passages(text: str, n: int, rng: random.Random) -> list[str]:
    """Up to n passages of 2 to 12 sentences, in places of their own."""
    sentences = [" ".join(text[a:b].split()) for a, b in hsca_fast.segment(text).sentences]
    found, at = [], 0
    while at < len(sentences) - 1:
        size = rng.choice((2, 3, 4, 6, 8, 12))
        found.append(" ".join(sentences[at : at + size]))
        at += size
    return rng.sample(found, min(n, len(found)))


def narrative_thread(data: Path) -> list[Corpus]:
    rng = random.Random(20261118)
    rows, held_out = [], []

    def add(texts: list[str], label: bool, is_held_out: bool) -> None:
        rows.extend((text, label) for text in texts)
        held_out.extend([is_held_out] * len(texts))

    with tarfile.open(data / "classic_books.tar.xz") as archive:
        books = {m.name.split("/", 1)[1]: archive.extractfile(m).read().decode("utf-8", "replace") for m in archive if m.name.endswith(".md")}  # fmt: skip
    authors = sorted({name.split("/")[0] for name in books})
    for name in sorted(books):
        title = name.removesuffix(".md")
        if title.startswith(NEITHER):
            continue
        is_essay = title in ESSAYS
        body = books[name][3000:303_000] if len(books[name]) > 12_000 else books[name]
        later = title in HELD_OUT_ESSAYS if is_essay else authors.index(name.split("/")[0]) % 4 == 3
        add(passages(body, 200 if is_essay else 16, rng), not is_essay, later)
    with tarfile.open(data / "nltk.tar.xz") as archive:
        inner = {Path(m.name).name: archive.extractfile(m).read() for m in archive if m.name.endswith(".zip")}
    for package in ("inaugural", "state_union"):
        with zipfile.ZipFile(io.BytesIO(inner[f"{package}.zip"])) as files:
            for i, name in enumerate(sorted(n for n in files.namelist() if n.endswith(".txt"))):
                add(passages(files.read(name).decode("utf-8", "replace"), 4, rng), False, i % 4 == 3)
    abstracts = json.loads(read_files(data, "pubmedqa")["ori_pqal.json"])
    for i, row in enumerate(abstracts.values()):
        add(passages(" ".join([*row["CONTEXTS"], row["LONG_ANSWER"]]), 1, rng)[: i % 2], False, i % 8 == 7)
    with tarfile.open(data / "cuad" / "full_contract_txt.tar.xz") as archive:
        for i, member in enumerate(m for m in archive if m.name.endswith(".txt")):
            add(
                passages(archive.extractfile(member).read(100_000).decode("utf-8", "replace"), 1, rng),
                False,
                i % 4 == 3,
            )
    for i, row in enumerate(table(read_files(data, "isarcasm")["train.En.csv"])):
        if row["sarcastic"] == "0" and i % 5 < 2:
            add([plain(row["tweet"])], False, i % 20 < 2)

    # Talk has a story's persons and marks without its telling.
    talks = [turn for part in ("train", "dev", "test") for turn in json.loads(read_files(data, "tiage")[f"anno_{part}.json"]).values()]  # fmt: skip
    for i, turns in enumerate(talks):
        add([untokenised("\n".join(turn for turn, _ in turns[at : at + 5])) for at in (0, 5)], False, i % 4 == 3)
    meetings = [m for name, text in sorted(read_files(data, "qmsum").items()) if name.endswith(".jsonl") for m in lines(text)]  # fmt: skip
    for i, meeting in enumerate(meetings):
        turns = [re.sub(r"\{\w+\}", "", turn["content"]) for turn in meeting["meeting_transcripts"]]
        add(passages(untokenised("\n".join(turns)), 8, rng), False, i % 4 == 3)

    brown = []
    with zipfile.ZipFile(io.BytesIO(inner["brown.zip"])) as files:
        for name in sorted(files.namelist()):
            if re.fullmatch(r"brown/c[abcdehjklmnp]\d\d", name):
                tagged = re.sub(r"(\S+)/\S+", r"\1", files.read(name).decode()).replace("``", '"').replace("''", '"')
                text = re.sub(r" ([.,;:?!])", r"\1", re.sub(r"\s+", " ", tagged))
                brown += [(passage, name[7] in "klmnp") for passage in passages(text, 12, rng)]
    books_name = "books, speeches, abstracts, contracts, tweets, talk"
    licence = (
        "trained on public-domain books and speeches, PubMedQA abstracts (MIT), CUAD contracts (CC BY 4.0), "
        "iSarcasmEval tweets (MIT), TIAGE chats (MIT) and QMSum meetings (MIT)"
    )
    return [corpus(books_name, licence, rows, held_out), corpus("brown", "", brown)]


def narrative_checks(data: Path) -> dict[str, list[str]]:
    """Texts of other kinds, none of them a story: how many get the flag?"""
    rng = random.Random(5)
    talk = [t.replace("__eou__", "\n") for t in read_files(data, "dailydialog")["dialogues.txt"].splitlines()]
    with tarfile.open(data / "nltk.tar.xz") as archive:
        news = next(archive.extractfile(m).read() for m in archive if m.name.endswith("abc.zip"))
    with zipfile.ZipFile(io.BytesIO(news)) as files:
        stories = {part: files.read(f"abc/{part}.txt").decode("latin-1") for part in ("rural", "science")}
    return {
        "dailydialog dialogues": rng.sample(talk, min(500, len(talk))),
        **{f"ABC {part} news": passages(text[:400_000], 500, rng) for part, text in stories.items()},
    }


# ---- heads -------------------------------------------------------------------------------------------------------
def features(texts: list[str]) -> sparse.csr_matrix:
    return sparse.vstack(
        [sparse.csr_matrix(hashed_features(texts[i : i + 512], DIM)) for i in range(0, len(texts), 512)]
    )


def fit(x: sparse.csr_matrix, y: np.ndarray) -> tuple[np.ndarray, float]:
    model = LogisticRegression(C=10.0, class_weight="balanced", max_iter=500).fit(x, y)
    return model.coef_[0], float(model.intercept_[0])


def cautious_threshold(x: sparse.csr_matrix, y: np.ndarray) -> float:
    """Logit that 1 in 200 of the training texts without the flag reach, judged by heads that did not see them.

    A flag that is missing is unknown and does no harm; a false one does."""
    scores = np.zeros(len(y))
    for fold in range(5):
        other = np.arange(len(y)) % 5 != fold
        weights, bias = fit(x[np.flatnonzero(other)], y[other])
        scores[~other] = x[np.flatnonzero(~other)] @ weights + bias
    return float(np.quantile(scores[~y], 0.995))


def quantise(weights: np.ndarray) -> tuple[np.ndarray, float]:
    """int8 steps of a power of two: coarse enough for the same bytes wherever it is run."""
    scale = 2.0 ** np.ceil(np.log2(np.abs(weights).max() / 127))
    return np.rint(weights / scale).astype(np.int8), float(scale)


def to_onnx(flag: str, weights: np.ndarray, bias: float, threshold: float, figures: dict, licence: str) -> bytes:
    steps, scale = quantise(weights)
    tensors = {
        "steps": steps.reshape(DIM, 1),
        "scale": np.float32(scale),
        "zero": np.int8(0),
        "bias": np.array([round(bias, 4)], np.float32),
    }
    graph = helper.make_graph(
        [
            helper.make_node("DequantizeLinear", ["steps", "scale", "zero"], ["weights"]),
            helper.make_node("MatMul", ["features", "weights"], ["product"]),
            helper.make_node("Add", ["product", "bias"], ["sum"]),
            helper.make_node("Sigmoid", ["sum"], ["probability"]),
        ],
        flag,
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", DIM])],
        [helper.make_tensor_value_info("probability", TensorProto.FLOAT, ["n", 1])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in tensors.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="hsca_fast"
    )
    facts = {
        "hsca.flag": flag,
        "hsca.features": FEATURES,
        "hsca.dim": str(DIM),
        "hsca.threshold": f"{threshold:g}",
        "hsca.held_out": json.dumps(figures, sort_keys=True),
        "hsca.licence": licence,
    }
    helper.set_model_props(model, facts)
    onnx.checker.check_model(model)
    return model.SerializeToString(deterministic=True)


def best_constant_f1(y: np.ndarray) -> float:
    return f1_score(y, np.ones_like(y))


def study(flag: str, sets: list[Corpus]) -> bytes | None:
    """Prints how heads of one flag do; returns the one to ship, if any."""
    print(f"\n== {flag}")
    rows = {c.name: features(c.texts) for c in sets}
    chosen = None
    for c in sets:
        train, held_out = np.flatnonzero(~c.held_out), np.flatnonzero(c.held_out)
        weights, bias = fit(rows[c.name][train], c.labels[train])
        steps, scale = quantise(weights)
        scores = {k: x @ (steps * scale) + bias for k, x in rows.items()}
        y, found = c.labels[held_out], scores[c.name][held_out]
        f1, constant = f1_score(y, found >= 0), best_constant_f1(y)
        accuracy, majority = np.mean((found >= 0) == y), max(y.mean(), 1 - y.mean())
        auc = roc_auc_score(y, found)
        cross = {d.name: roc_auc_score(d.labels, scores[d.name]) for d in sets if d is not c}
        print(
            f"{c.name}: {len(train)} train, {len(held_out)} held out; F1 {f1:.3f} (always {constant:.3f}), "
            f"accuracy {accuracy:.3f} (majority {majority:.3f}), AUC {auc:.3f}"
        )
        print("   AUC elsewhere: " + ", ".join(f"{name} {value:.3f}" for name, value in cross.items()))
        reasons = [
            *([] if c.licence else ["no licence that allows it"]),
            *([] if f1 > constant and accuracy > majority else ["no better than a constant answer"]),
            *([] if cross and min(cross.values()) >= MIN_CROSS_AUC else [f"AUC below {MIN_CROSS_AUC} elsewhere"]),
        ]
        print("   " + ("not shipped: " + "; ".join(reasons) if reasons else "to be shipped"))
        if not reasons:
            threshold = round(1 / (1 + np.exp(-cautious_threshold(rows[c.name][train], c.labels[train]))), 2)
            logit = np.log(threshold / (1 - threshold))
            figures = {f"{c.name}, held out": at_threshold(y, found, logit)}
            figures |= {d.name: at_threshold(d.labels, scores[d.name], logit) for d in sets if d is not c}
            for name, values in figures.items():
                print(f"   at threshold {threshold:.2f} on {name}: {values}")
            chosen = to_onnx(flag, weights, bias, threshold, figures, c.licence)
    return chosen


def at_threshold(y: np.ndarray, scores: np.ndarray, logit: float) -> dict[str, float]:
    values = {
        "precision": precision_score(y, scores >= logit),
        "recall": recall_score(y, scores >= logit),
        "f1": f1_score(y, scores >= logit),
        "f1_always": best_constant_f1(y),
        "auc": roc_auc_score(y, scores),
    }
    return {name: round(float(value), 3) for name, value in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="write the heads to ship into the package")
    args = parser.parse_args()
    for read in (sarcasm, metaphor, analogy, narrative_thread):
        head = study(read.__name__, read(args.data))
        path = HEADS / f"{read.__name__}.onnx"
        if args.write and head is not None:
            HEADS.mkdir(exist_ok=True)
            path.write_bytes(head)
            print(f"   wrote {path.name}, {len(head)} bytes")
    for path in bundled_nuance_models():
        if path.stem == "narrative_thread":
            print("\nshare with the flag among texts that are no stories:")
            for name, texts in narrative_checks(args.data).items():
                found = predict_nuance([NuanceModel(path)], texts)
                print(f"   {name}: {np.mean(found.present != 0):.3f} of {len(texts)}")


if __name__ == "__main__":
    main()
