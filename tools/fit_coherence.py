"""Fit the tables and weights of coherence on one half of public texts and report on the other half.

    python tools/fit_coherence.py --data DIR [--per-cell 150] [--fit]

DIR holds the archives of docs/data.md (classic_books.tar.xz, nltk.tar.xz, pubmedqa.tar.xz, cuad/full_contract_txt.tar.xz,
dailydialog.tar.xz, beam_100k.tar.xz). Sources are split, not passages: tuning and held-out texts never share an author, a
newspaper section, a contract or a chat. Noise is made from the passages of its own half. Everything follows from --seed.

With --fit the tables are fitted on the tuning half and written to csrc/src/text/order_words.inc and
coherence_tables.inc; the package has to be built again before the report shows them.
"""

import argparse
import collections
import io
import json
import random
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from calibrate_layer1 import abstracts, auc, books, nltk_texts
from scipy.optimize import lsq_linear, minimize

import hsca_fast
from hsca_fast._native import text as native
from hsca_fast._reference import coherence

SIZES = (200, 500, 1500)
NOISES = ("moved", "framed", "in_sentence", "letters", "anagrams", "mash", "dictionary")
FUNCTION_WORDS = frozenset(native.function_words())
SOURCES = Path(__file__).resolve().parent.parent / "csrc" / "src" / "text"

# Words with a class of their own, a class a line: every English function word and the commonest of other words. After
# the words: P for a pronoun that needs an antecedent, C for a word that opens a clause.
CLASSES = """
the
a
an
this
these those
that C
which C
who C
whom whose C
what C
what's where's who's here's there's that's C
when C
where C
why how C
if unless C
because although though whereas since C
while until till C
whether C
as C
than
after before C
so
and
or
but
nor
not
no
of
in
to
for
with
on
at
by
from
into onto
about
over
under below beneath above
between among amongst
through throughout across along around
against toward towards
upon unto
without within
during despite
per via
like
near behind beyond beside besides inside outside except
up
out
down off away
back
is
are
was
were
be
been
being
am
has
have
had
having
do
does
did
done doing
will
would
shall
should
can
could
may
might
must ought
cannot can't couldn't won't wouldn't shouldn't mustn't shan't mightn't
don't doesn't didn't
isn't aren't wasn't weren't hasn't haven't hadn't
i
i'm i've i'd i'll
you
you're you've you'd you'll
we
we're we've we'd we'll
he P
she P
it P
they P
he's she's it's it'd it'll P
he'd she'd he'll she'll they're they've they'd they'll P
me us
him P
her P
them P
my
your
our
his P
its P
their P
mine yours ours thine
hers theirs P
himself herself itself themselves P
myself yourself yourselves ourselves
thou ye
thee thy
hath doth shalt
there
here
then
now
also
only
just even
still already ever always often never sometimes usually
again soon once today yesterday tomorrow
very too quite rather really
more
most
less least
much
many few several
some
any
all
both
each every
either neither
another
other
others
such
same
own
one
ones
two three four five six seven eight nine ten
first second third last next
hundred thousand million dozen
something nothing anything everything
someone anyone everyone nobody somebody anybody everybody none
perhaps maybe indeed however therefore thus hence moreover furthermore otherwise nevertheless instead meanwhile thereby
almost nearly especially mostly particularly somewhat somehow
enough
else anyway together afterwards further
yet
well
yes yeah oh ok okay please thanks hello hi hey
let let's
used
know think see want need make take get go come give find keep say tell believe feel hear understand ask help leave try
said says asked replied answered cried
went came took made got gave found saw knew thought told felt left began became seemed looked stood kept heard brought
going
new old good great little small large big young long high different important whole full certain better best
able likely
time times day days year years week month man men woman people person child children life world way things thing part
mr mrs ms dr miss sir
according due
etc
everywhere anywhere nowhere somewhere
wherever whenever whatever whoever C
"""
N_ENDINGS = 24  # classes of words that are not listed, by their last two letters

# Set by hand: where each part begins, is full, falls and ends, and how much a short text is drawn to the middle.
CONSTANTS = {
    "length_low": 0.0, "length_full": 12.0, "length_falls": 40.0, "length_none": 160.0,
    "marks_low": -0.02, "marks_full": 0.08, "marks_falls": 0.4, "marks_none": 1.2,
    "clauses_low": 0.0, "clauses_full": 2.0, "clauses_falls": 9.0, "clauses_none": 30.0,
    "extent_half": 15.0,
    "glue_prior": 0.4, "glue_words": 2.0, "glue_low": 0.0, "glue_full": 0.2,
    "letters_prior": 0.3, "letters_pairs": 4.0,
    "order_prior": 0.3, "order_pairs": 2.0,
    "english_low": 0.12, "english_full": 0.24, "accents_low": 0.1, "accents_full": 0.2,
}  # fmt: skip
# What the median of each kind should come to.
TARGETS = {"fragment": 0.25, "sentence": 0.5, "clause": 0.62, "paragraph": 0.88}
# Every heuristic of the specification has a say: what it guards against (walls of text, endless nesting) is rare in the
# texts of the fit, where extent alone would do.
LEAST_WEIGHT = 0.05


# ---- texts -------------------------------------------------------------------------------------------------------
def contracts(data: Path) -> list[str]:
    with tarfile.open(data / "cuad" / "full_contract_txt.tar.xz") as archive:
        members = sorted((m for m in archive if m.name.endswith(".txt") and "/" in m.name), key=lambda m: m.name)
        return [archive.extractfile(m).read().decode("utf-8", "replace") for m in members]


def dialogues(data: Path, part: str) -> list[str]:
    with tarfile.open(data / "dailydialog.tar.xz") as archive:
        lines = archive.extractfile(f"dailydialog/{part}/dialogues.txt").read().decode().splitlines()
    found = []
    for line in lines:
        text = " ".join(turn.strip() for turn in line.split("__eou__"))
        text = re.sub(r" ?([’']) ?(?=(?:s|t|m|re|ve|ll|d)\b)", r"\1", text)
        found.append(re.sub(r" +([.,;:?!])", r"\1", text))
    return found


def chats(data: Path) -> list[str]:
    """The turns of each chat without its code blocks."""
    found = {}
    with tarfile.open(data / "beam_100k.tar.xz") as archive:
        for member in archive:
            if member.name.endswith("/chat.json"):
                batches = json.load(archive.extractfile(member))
                turns = [t["content"] for b in batches for pair in b["turns"] for t in pair]
                text = "\n\n".join(re.sub(r"```.*?```|->->.*", "", t, flags=re.DOTALL) for t in turns)
                found[int(member.name.split("/")[1])] = text
    return [found[i] for i in sorted(found)]


def dictionary(data: Path) -> list[str]:
    with tarfile.open(data / "nltk.tar.xz") as archive:
        member = next(m for m in archive if Path(m.name).name == "words.zip")
        with zipfile.ZipFile(io.BytesIO(archive.extractfile(member).read())) as files:
            return [w for w in files.read("words/en").decode().split() if w.islower()]


def load(data: Path) -> dict[str, dict[str, list[str]]]:
    brown, abc = nltk_texts(data)
    by_author = list(books(data).values())
    fiction = [[text[:100_000] for texts in by_author[half::2] for text in texts[:3]] for half in (0, 1)]
    papers, legal, talks = abstracts(data), contracts(data), chats(data)
    return {
        "tuning": {
            "news": abc["rural"] + brown["a"][:22] + brown["b"],
            "books": fiction[0] + brown["k"] + brown["l"],
            "technical": papers[0::2] + brown["e"] + brown["f"],
            "legal": [text[:60_000] for text in legal[0:240:2]],
            "chat": dialogues(data, "validation") + [text[:300_000] for text in talks[0::2]],
        },
        "held-out": {
            "news": abc["science"] + brown["a"][22:] + brown["c"],
            "books": fiction[1] + brown["m"] + brown["n"] + brown["p"],
            "technical": papers[1::2] + brown["j"] + brown["h"],
            "legal": [text[:60_000] for text in legal[1:240:2]],
            "chat": dialogues(data, "test") + [text[:300_000] for text in talks[1::2]],
        },
    }


class Maker:
    """Passages, single sentences, fragments and noise from the documents of one half."""

    def __init__(self, registers: dict[str, list[str]], words: list[str], seed: int):
        self.rng = random.Random(seed)
        self.words = words
        self.registers = {}
        for register, docs in registers.items():
            cleaned = (" ".join(doc.split()) for doc in docs)
            self.registers[register] = [
                (doc, hsca_fast.segment(doc).sentences.tolist()) for doc in cleaned if len(doc) > 200
            ]

    def passage(self, register: str, size: int) -> str:
        """From the start of a sentence to the last whole word before `size`."""
        for _ in range(1000):
            doc, sentences = self.rng.choice(self.registers[register])
            begin = self.rng.choice(sentences)[0]
            if len(doc) - begin > size:
                return doc[begin : begin + size].rsplit(" ", 1)[0]
        raise ValueError(f"no document of {register} is long enough")

    def sentence(self, register: str, least: int, most: int) -> str:
        while True:
            doc, sentences = self.rng.choice(self.registers[register])
            begin, end = self.rng.choice(sentences)
            text = doc[begin:end]
            if least <= len(text.split()) <= most and re.fullmatch(r"[A-Z].*[a-z].*[.?!]", text):
                return text

    def fragment(self, register: str) -> str:
        words = self.sentence(register, 10, 40).rstrip(".?!").split()
        size = self.rng.randint(2, 6)
        begin = self.rng.randint(1, len(words) - size)
        return " ".join(words[begin : begin + size])

    def frame(self, text: str, words: list[str]) -> str:
        """Other words in the same places: punctuation and the capitals of sentences stay."""
        places = hsca_fast.segment(text).words.tolist()
        starts = {begin for begin, _ in hsca_fast.segment(text).sentences.tolist()}
        parts, at = [], 0
        for (begin, end), word in zip(places, words, strict=True):
            parts += [text[at:begin], word[:1].upper() + word[1:] if begin in starts else word]
            at = end
        return "".join(parts) + text[at:]

    def bare_words(self, text: str, begin: int = 0, end: int | None = None) -> list[str]:
        """Words without the capital that only the start of the sentence gave them."""
        cut = hsca_fast.segment(text)
        starts = {a for a, _ in cut.sentences.tolist()}
        end = len(text) if end is None else end
        return [
            text[a].lower() + text[a + 1 : b] if a in starts and text[a:b] != "I" else text[a:b]
            for a, b in cut.words.tolist()
            if begin <= a and b <= end
        ]

    def noise(self, kind: str, text: str) -> str:
        rng = self.rng
        if kind == "moved":
            words = text.split()
            rng.shuffle(words)
            return " ".join(words)
        words = self.bare_words(text)
        if kind == "framed":
            rng.shuffle(words)
        elif kind == "in_sentence":
            words = []
            for begin, end in hsca_fast.segment(text).sentences.tolist():
                inside = self.bare_words(text, begin, end)
                rng.shuffle(inside)
                words += inside
        elif kind == "letters":
            words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=len(w))) for w in words]
        elif kind == "anagrams":
            words = ["".join(rng.sample(w, len(w))) for w in words]
        elif kind == "mash":
            rows = ["qwertyuiop", "asdfghjkl", "zxcvbnm", "asdfjkl", "sdfghjk"]
            words = ["".join(rng.choices(rng.choice(rows), k=rng.randint(3, 12))) for _ in words]
            return " ".join(words)
        elif kind == "dictionary":
            words = [rng.choice(self.words) for _ in words]
        return self.frame(text, words)


def make(
    registers: dict[str, list[str]], words: list[str], per_cell: int, seed: int
) -> dict[tuple[str, int], list[str]]:
    """Texts by kind and size; the kind of a real passage is its register, single sentences have size 0."""
    maker = Maker(registers, words, seed)
    cells: dict[tuple[str, int], list[str]] = collections.defaultdict(list)
    for register in registers:
        prose = register if register != "legal" else "news"
        for _ in range(per_cell):
            cells["fragment", 0].append(maker.fragment(register))
            cells["sentence", 0].append(maker.sentence(prose, 6, 20))
            cells["clause", 0].append(maker.sentence("legal", 15, 60))
            for size in SIZES:
                real = maker.passage(register, size)
                cells[register, size].append(real)
                for kind in NOISES:
                    cells[kind, size].append(maker.noise(kind, real))
    return dict(cells)


# ---- fitting -----------------------------------------------------------------------------------------------------
def listed_classes() -> tuple[dict[str, int], list[int]]:
    """Class of each listed word, and the properties of the classes from 0 on."""
    classes: dict[str, int] = {}
    properties = [0]
    for number, line in enumerate(CLASSES.split("\n")[1:-1], 1):
        words = line.split()
        flags = {"P": coherence.PRONOUN, "C": coherence.CLAUSE}.get(words[-1], 0)
        for word in words[:-1] if flags else words:
            assert word not in classes, word
            classes[word] = number
        properties.append(flags)
    return classes, properties


def symbols(docs: list[str], tables: coherence.Tables) -> Iterator[list[int]]:
    """Sentences of documents as classes, with 784 symbols for endings: what Counter pairs, before endings have classes."""

    class Recorder(coherence.Counter):
        def shape(self, raw: bytes, after_border: bool) -> int:
            if not after_border and coherence._is_upper(raw, 0) and not coherence._is_upper(raw, 1):
                return tables.title
            before = coherence.letter_code(raw[-2]) if len(raw) > 1 else 0
            return tables.title + 1 + 28 * before + coherence.letter_code(raw[-1])

    recorder = Recorder(tables, FUNCTION_WORDS)
    for doc in docs:
        cut = hsca_fast.segment(doc)
        words = cut.words.tolist()
        at = 0
        for begin, end in cut.sentences.tolist():
            first = at
            while at < len(words) and words[at][1] <= end:
                at += 1
            sentence = [0]
            last_end = begin
            for a, b in words[first:at]:
                marks = coherence._count_marks(doc[last_end:a])
                if marks and sentence[-1]:
                    sentence.append(tables.pause)
                raw = doc[a:b].encode("utf-8", "replace")
                listed = tables.order_words.get(coherence.fold(doc[a:b]), 0)
                sentence.append(listed or recorder.shape(raw, sentence[-1] == 0))
                last_end = max(last_end, b)
            if coherence._count_marks(doc[last_end:end]):
                sentence.append(0)
            yield sentence


def pair_counts(registers: dict[str, list[str]], tables: coherence.Tables, budget: int, seed: int) -> np.ndarray:
    """How often two symbols stand side by side, each register with the same number of bytes."""
    size = tables.title + 1 + 784
    total = np.zeros((size, size))
    for number, docs in enumerate(registers.values()):
        rng = random.Random(seed + number)
        docs = [" ".join(d.split()) for d in docs]
        rng.shuffle(docs)
        counts = np.zeros((size, size))
        taken = 0
        for doc in docs:
            share = doc[: max(3000, budget // len(docs) * 3)]
            for sentence in symbols([share], tables):
                np.add.at(counts, (sentence[:-1], sentence[1:]), 1)
            taken += len(share)
            if taken > budget:
                break
        total += counts * (budget / taken)
    return total


def cluster_endings(counts: np.ndarray, title: int) -> np.ndarray:
    """Endings whose neighbours are alike share a class: k-means on the roots of the shares of the neighbours, from the
    commonest endings. Rare endings go with the others of their last letter."""
    ends = counts[title + 1 :, : title + 1], counts[: title + 1, title + 1 :].T
    mass = ends[0].sum(1) + ends[1].sum(1)
    profile = np.hstack([np.sqrt(e / np.maximum(e.sum(1, keepdims=True), 1)) for e in ends])
    known = np.flatnonzero(mass >= 100)
    centres = profile[known[np.argsort(-mass[known], kind="stable")[:N_ENDINGS]]]
    for _ in range(40):
        near = ((profile[known, None, :] - centres[None]) ** 2).sum(2).argmin(1)
        for k in range(N_ENDINGS):
            members = known[near == k]
            if len(members):
                weight = np.sqrt(mass[members])
                centres[k] = (profile[members] * weight[:, None]).sum(0) / weight.sum()
    classes = np.full(784, -1)
    classes[known] = near
    for last in range(28):
        column = np.arange(28) * 28 + last
        votes = np.zeros(N_ENDINGS)
        seen = column[classes[column] >= 0]
        np.add.at(votes, classes[seen], mass[seen])
        classes[column[classes[column] < 0]] = votes.argmax()
    return classes.reshape(28, 28)


def order_table(counts: np.ndarray, smoothing: float) -> np.ndarray:
    expected = counts.sum(1, keepdims=True) * counts.sum(0, keepdims=True) / counts.sum()
    ratio = np.log((counts + smoothing) / (expected + smoothing))
    return np.clip(np.rint(16 * ratio), -64, 64).astype(np.int8)


def letter_table(registers: dict[str, list[str]], classes: dict[str, int], seed: int) -> np.ndarray:
    """Pairs in words that are not listed against pairs of uniform letters and of the same letters shuffled."""
    counts, once = np.zeros((27, 27)), np.zeros(27)
    rng = random.Random(seed)
    for docs in registers.values():
        vocabulary = collections.Counter()
        for doc in rng.sample(docs, min(len(docs), 60)):
            vocabulary.update(w for w in re.findall(r"[a-z]+", doc[:20_000].lower()) if len(w) > 1 and w not in classes)
        for word, times in sorted(vocabulary.items()):
            codes = [ord(ch) - 96 for ch in word[: coherence.LETTER_BYTES]]
            weight = times**0.5  # common words must not be all there is
            np.add.at(once, codes, weight)
            np.add.at(counts, (codes[:-1], codes[1:]), weight)
    real = (counts + 0.0005 * counts.sum() / 27) / (1 + 27 * 0.0005) / counts.sum()
    letters = once / once.sum()
    noise = 0.5 / 26**2 + 0.5 * np.outer(letters, letters)
    table = np.clip(np.rint(32 * np.log(real / noise)), -64, 64)
    table[0, :] = table[:, 0] = 0
    return table.astype(np.int8)


def logistic(x: np.ndarray, is_real: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Slope and middle of the fall from 1 to 0. What the two sides leave free between them would make the slope endless:
    it is paid for."""

    def loss(p: np.ndarray) -> float:
        z = p[0] * (x - p[1])
        return float((weight * np.logaddexp(0, np.where(is_real, -z, z))).sum() + 1e-5 * p[0] ** 2)

    slope, middle = minimize(loss, np.array([10.0, 0.0]), method="Nelder-Mead", options={"xatol": 1e-5}).x
    return float(slope), float(middle)


def fit(
    halves: dict[str, dict[str, list[str]]], cells: dict[tuple[str, int], list[str]], seed: int
) -> coherence.Tables:
    registers = halves["tuning"]
    order_words, properties = listed_classes()
    pause = len(properties)
    title = pause + 1
    blank = coherence.Tables(order_words, properties, pause, title, np.zeros((28, 28), np.uint8), np.zeros((1, 1), np.int8),
                             np.zeros((27, 27), np.int8), {})  # fmt: skip
    raw = pair_counts(registers, blank, 900_000, seed)
    endings = cluster_endings(raw, title)
    size = title + 1 + N_ENDINGS
    to = np.concatenate([np.arange(title + 1), title + 1 + endings.ravel()])
    counts = np.zeros((size, size))
    np.add.at(counts, (to[:, None], to[None, :]), raw)
    # A word of any shape but that of an adverb or a verb's -ed and -ing can be what a pronoun stands for.
    not_nouns = {int(endings[a, b]) for a, b in ((12, 25), (5, 4), (14, 7))}
    properties = [*properties, 0, coherence.ANTECEDENT]
    properties += [0 if k in not_nouns else coherence.ANTECEDENT for k in range(N_ENDINGS)]
    constants = {**CONSTANTS, "letters_slope": 1.0, "letters_middle": 0.0, "order_slope": 1.0, "order_middle": 0.0}
    for part in ("length", "pronouns", "punctuation", "clauses", "edges", "extent"):
        constants[part] = 0.0
    tables = coherence.Tables(order_words, properties, pause, title, (title + 1 + endings).astype(np.uint8),
                              order_table(counts, 2.0), letter_table(registers, order_words, seed), constants)  # fmt: skip
    fit_weights(tables, constants, cells, list(registers))
    return tables


def counts_of(text: str, tables: coherence.Tables) -> coherence.Counts:
    counter = coherence.Counter(tables, FUNCTION_WORDS)
    cut = hsca_fast.segment(text)
    words = cut.words.tolist()
    at = 0
    for begin, end in cut.sentences.tolist():
        first = at
        while at < len(words) and words[at][1] <= end:
            at += 1
        counter.add_sentence(text, begin, end, words[first:at])
    return counter.counts


def fit_weights(tables: coherence.Tables, constants: dict[str, float], cells: dict[tuple[str, int], list[str]],
                registers: list[str]) -> None:  # fmt: skip
    """The two gates by logistic regression against their noises, then the weights of the parts by least squares to the
    targets of the kinds, none of them below LEAST_WEIGHT."""
    counts = {cell: [counts_of(t, tables) for t in texts] for cell, texts in cells.items()}

    def gate(mean, noises: tuple[str, ...]) -> tuple[float, float]:
        xs, ys, ws = [], [], []
        for (kind, size), rows in counts.items():
            if size and (kind in registers or kind in noises):
                xs += [mean(c) for c in rows]
                ys += [kind in registers] * len(rows)
                ws += [1 / len(rows) / (len(registers) if kind in registers else len(noises))] * len(rows)
        return logistic(np.array(xs), np.array(ys), np.array(ws))

    k = constants
    k["letters_slope"], k["letters_middle"] = gate(
        lambda c: (c.letters / 32 + k["letters_prior"] * k["letters_pairs"]) / (c.letter_pairs + k["letters_pairs"]),
        ("letters", "anagrams", "mash"),
    )
    k["order_slope"], k["order_middle"] = gate(
        lambda c: (c.order / 16 + k["order_prior"] * k["order_pairs"]) / (c.pairs + k["order_pairs"]),
        ("moved", "framed", "in_sentence"),
    )
    names = ("length", "pronouns", "punctuation", "clauses", "edges", "extent")
    xs, ys = [], []
    for (kind, size), rows in counts.items():
        target = TARGETS.get(kind) or (TARGETS["paragraph"] if kind in registers and size >= 500 else None)
        if target:
            weight = 1 / np.sqrt(len(rows)) / (np.sqrt(2 * len(registers)) if kind in registers else 1)
            for c in rows:
                r = coherence.finish(c, k)
                gates = r.known * r.letters * r.order
                xs.append([weight * gates * getattr(r, name) for name in names])
                ys.append(weight * target)
    weights = lsq_linear(np.array(xs), np.array(ys), bounds=(LEAST_WEIGHT, 1.0)).x
    k.update(zip(names, map(float, weights), strict=True))
    for name in k:
        k[name] = float(f"{k[name]:.4g}")


# ---- writing -----------------------------------------------------------------------------------------------------
def write(tables: coherence.Tables) -> None:
    lines = [f'{{"{word}", {number}}},' for word, number in tables.order_words.items()]
    (SOURCES / "order_words.inc").write_text("\n".join(lines) + "\n")

    def rows(name: str, kind: str, table: np.ndarray) -> str:
        flat = [str(int(v)) for v in np.asarray(table).ravel()]
        body = "\n".join(", ".join(flat[i : i + 28]) + "," for i in range(0, len(flat), 28))
        return f"constexpr std::{kind} {name}[] = {{\n{body}\n}};\n"

    constants = "\n".join(f'    {{"{name}", {value!r}}},' for name, value in tables.constants.items())
    (SOURCES / "coherence_tables.inc").write_text(
        "// Written by tools/fit_coherence.py --fit. Do not edit.\n// clang-format off\n"
        + f"constexpr std::size_t kClasses = {len(tables.properties)};\n"
        + f"constexpr std::uint32_t kPause = {tables.pause};\nconstexpr std::uint32_t kTitle = {tables.title};\n"
        + f"constexpr NamedConstant kConstants[] = {{\n{constants}\n}};\n"
        + rows("kProperties", "uint8_t", np.array(tables.properties))
        + rows("kEndings", "uint8_t", tables.endings)
        + rows("kLetters", "int8_t", tables.letters)
        + rows("kOrder", "int8_t", tables.order)
        + "// clang-format on\n"
    )


# ---- reporting ---------------------------------------------------------------------------------------------------
def report(scores: dict[tuple[str, int], np.ndarray], registers: list[str]) -> None:
    for size in SIZES:
        real = np.concatenate([scores[r, size] for r in registers])
        print(f"-- {size} B: real median {np.median(real):.3f}, 5 % {np.quantile(real, 0.05):.3f}")
        for kind in NOISES:
            noise = scores[kind, size]
            print(
                f"   {kind:12} AUC {auc(real, noise):.4f}  median {np.median(noise):.3f}  95 % {np.quantile(noise, 0.95):.3f}"
            )
        print("   " + "  ".join(f"{r} {np.median(scores[r, size]):.3f}" for r in registers))
    for kind in ("fragment", "sentence", "clause"):
        print(
            f"   {kind:12} 5/25/50/75/95 % {np.round(np.quantile(scores[kind, 0], [0.05, 0.25, 0.5, 0.75, 0.95]), 3)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--per-cell", type=int, default=150, help="texts of each kind, register and size")
    parser.add_argument("--seed", type=int, default=20261118)
    parser.add_argument("--fit", action="store_true", help="fit, write the tables and report with the reference")
    args = parser.parse_args()
    halves = load(args.data)
    registers = list(halves["tuning"])
    words = dictionary(args.data)
    texts = {
        name: make(half, words[i::2], args.per_cell, args.seed + i) for i, (name, half) in enumerate(halves.items())
    }
    if args.fit:
        tables = fit(halves, texts["tuning"], args.seed)
        write(tables)

        def score(batch: list[str]) -> np.ndarray:
            return np.array([coherence.finish(counts_of(t, tables), tables.constants).score for t in batch])

    else:

        def score(batch: list[str]) -> np.ndarray:
            return hsca_fast.score_texts(batch).coherence_score

    for name, cells in texts.items():
        print(f"==== {name}")
        report({cell: score(batch) for cell, batch in cells.items()}, registers)


if __name__ == "__main__":
    main()
