"""How far the token estimates are off real tokenizers, script by script; and the fit of the "fitted" rule.

    python tools/validate_token_estimates.py --tokenizers DIR --texts GROUP=GLOB [GROUP=GLOB ...] [--fit]

DIR holds tokenizer files that some packages carry, under any of the names below; `pip download --no-deps litellm
mistral-common` and unzipping gives all of them. Needs tiktoken and tokenizers. Groups are named by their script (`cjk`,
`cyrillic`, `arabic_hebrew`; any other name counts as "otherwise"). A .mo file gives its translated messages, any other
file its text; both are cut into pieces of 1,500 characters. Every second file belongs to the tuning half, which --fit
uses; the other half is reported on. The results in docs/ranking.md were made with this.
"""

from __future__ import annotations

import argparse
import base64
import gettext
import glob
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hsca_fast import estimate_tokens
from hsca_fast._native import ranking as native
from hsca_fast._native.strings import StringColumn

PIECE = 1500
PER_HALF = 400
CHI = {"cjk": 1.6, "cyrillic": 2.5, "arabic_hebrew": 2.5}
FEATURES = "letters words punctuation digits latin greek cyrillic two_byte cjk three_byte four_byte".split()
FITTED_TO = "cl100k_base"

# Split patterns of the two encodings; their merges are files named by a hash.
CL100K = r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
O200K = "|".join(
    [
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
        r"""\p{N}{1,3}""",
        r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""",
        r"""\s*[\r\n]+""",
        r"""\s+(?!\S)""",
        r"""\s+""",
    ]
)
Counter = Callable[[str], int]


def _bpe(ranks: dict[bytes, int], pattern: str) -> Counter:
    import tiktoken

    encoding = tiktoken.Encoding("local", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return lambda text: len(encoding.encode_ordinary(text))


def _tiktoken_file(path: Path, pattern: str) -> Counter:
    lines = (line.split() for line in path.read_bytes().splitlines())
    return _bpe({base64.b64decode(token): int(rank) for token, rank in lines}, pattern)


def _tekken_file(path: Path) -> Counter:
    content = json.loads(path.read_text())
    config = content["config"]
    n_merges = config["default_vocab_size"] - config["default_num_special_tokens"]
    ranks = {base64.b64decode(entry["token_bytes"]): entry["rank"] for entry in content["vocab"][:n_merges]}
    return _bpe(ranks, config["pattern"])


def _json_file(path: Path) -> Counter:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def load_tokenizers(folder: Path) -> dict[str, Counter]:
    """The tokenizers found, by name."""
    known: dict[str, tuple[str, Callable[[Path], Counter]]] = {
        "cl100k_base": ("9b5ad71b2ce5302211f9c61530b329a4922fc6a4", lambda path: _tiktoken_file(path, CL100K)),
        "o200k_base": ("fb374d419588a4632f3f557e76b4b70aebbca790", lambda path: _tiktoken_file(path, O200K)),
        "anthropic": ("anthropic_tokenizer.json", _json_file),
        "deepseek": ("deepseek_tokenizer.json", _json_file),
        "tekken": ("tekken_240911.json", _tekken_file),
    }
    return {name: load(folder / file) for name, (file, load) in known.items() if (folder / file).exists()}


def read_text(path: str) -> str:
    """A file's text, or the messages of a gettext catalogue."""
    if path.endswith(".mo"):
        with open(path, "rb") as stream:
            try:
                messages = gettext.GNUTranslations(stream)._catalog  # type: ignore[attr-defined]
            except (UnicodeDecodeError, OSError) as error:
                print(f"left out: {path}: {error}", file=sys.stderr)
                return ""
        return "\n".join(text for key, text in messages.items() if key and isinstance(text, str))
    return Path(path).read_text(errors="replace")


def pieces_of(patterns: list[str], half: int) -> list[str]:
    """At most PER_HALF pieces of every second file, the same ones each time."""
    found: list[str] = []
    for pattern in patterns:
        for path in sorted(glob.glob(pattern, recursive=True))[half::2]:
            text = read_text(path)
            found += [text[i : i + PIECE] for i in range(0, len(text) - PIECE, PIECE)]
    random.Random(1).shuffle(found)
    return found[:PER_HALF]


def with_emoji(pieces: list[str]) -> list[str]:
    """Pieces with an emoji after every sixth word or so."""
    rng = random.Random(2)
    emoji = [chr(c) for c in (*range(0x1F600, 0x1F650), *range(0x1F300, 0x1F400))]
    return [
        " ".join(w + (" " + rng.choice(emoji) if rng.random() < 1 / 6 else "") for w in p.split(" ")) for p in pieces
    ]


def features_of(pieces: list[str]) -> np.ndarray:
    return native.token_features(StringColumn.from_sequence(tuple(pieces), 0, 1 << 62)).astype(float)


def fit(groups: dict[str, list[str]], count: Counter) -> np.ndarray:
    """Least squares of the relative error, every group weighing the same."""
    rows, targets = [], []
    for pieces in groups.values():
        tokens = np.array([count(piece) for piece in pieces], float)
        weight = 1 / tokens / np.sqrt(len(tokens))
        rows.append(features_of(pieces) * weight[:, None])
        targets.append(tokens * weight)
    coefficients, *_ = np.linalg.lstsq(np.vstack(rows), np.concatenate(targets), rcond=None)
    return coefficients


def report(groups: dict[str, list[str]], tokenizers: dict[str, Counter]) -> None:
    """Markdown: characters a token, and mean absolute error of each rule."""
    print("| text | pieces | tokenizer | characters a token | χ | host | sidecar | fitted |")
    print("|---|---|---|---|---|---|---|---|")
    for group, pieces in groups.items():
        for name, count in tokenizers.items():
            tokens = np.array([count(piece) for piece in pieces], float)
            ratio = sum(len(piece) for piece in pieces) / tokens.sum()
            errors = []
            for kind in ("host", "sidecar", "fitted"):
                off = estimate_tokens(pieces, kind=kind) / tokens - 1  # type: ignore[call-overload]
                errors.append(f"{100 * np.abs(off).mean():.1f} % ({100 * off.mean():+.1f})")
            print(f"| {group} | {len(pieces)} | {name} | {ratio:.2f} | {CHI.get(group, 4.0)} | {' | '.join(errors)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizers", type=Path, required=True)
    parser.add_argument("--texts", nargs="+", required=True, metavar="GROUP=GLOB")
    parser.add_argument("--emoji", metavar="GROUP", help="add a group `emoji`: the pieces of GROUP with emoji put in")
    parser.add_argument("--fit", action="store_true", help="print coefficients instead of errors")
    arguments = parser.parse_args()
    tokenizers = load_tokenizers(arguments.tokenizers)
    patterns: dict[str, list[str]] = {}
    for group, _, pattern in (text.partition("=") for text in arguments.texts):
        patterns.setdefault(group, []).append(pattern)
    groups = {group: pieces_of(globs, 0 if arguments.fit else 1) for group, globs in patterns.items()}
    if arguments.emoji:
        groups["emoji"] = with_emoji(groups[arguments.emoji])
    if not arguments.fit:
        report(groups, tokenizers)
        return
    for name, value in zip(FEATURES, fit(groups, tokenizers[FITTED_TO]), strict=True):
        print(f"{name:12} {value:.3f}")


if __name__ == "__main__":
    main()
