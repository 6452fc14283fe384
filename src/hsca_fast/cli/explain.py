"""`hsca explain`: a readable account of one text's scores."""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hsca_fast.cli.exit_codes import EPILOG, INPUTS_FAILED, OK
from hsca_fast.cli.options import add_scoring_options, printable, scoring_config, warn_of_models

if TYPE_CHECKING:
    from hsca_fast.text.explanation import TextExplanation

_EXAMPLES = """\
examples:
  hsca explain essay.txt
  hsca explain essay.txt --json | jq .domain_scores
  echo "It might rain, but who cares?" | hsca explain -

Shows every score with its parts, then the text with the words that caused each flag. What a flag that is not
shown means depends on the line "not assessed": those were not looked for, so they are unknown, not false.

"""
# SGR codes; a category keeps its colour.
_COLOURS = {
    "hedged": "36",
    "absolute": "35",
    "rhetorical_question": "34",
    "instructional": "33",
    "emotional_tone_urgent": "1;31",
    "analogy": "1;34",
}
_OTHER, _GOOD, _BAD, _BOLD, _DIM = "1;36", "32", "31", "1", "2"
_MOST_SENTENCES = 40
_BAR = 20


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "explain",
        help="show why a text has its scores",
        description="Show every score of one text, what it is made of, and the words that caused each flag.",
        epilog=_EXAMPLES + EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    parser.add_argument("path", metavar="FILE", help="a UTF-8 text file, or - for standard input")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--all", action="store_true", help=f"show all sentences, not only the first {_MOST_SENTENCES}")
    parser.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="auto (default): in a terminal, unless NO_COLOR is set",
    )
    add_scoring_options(parser)


def run(args: argparse.Namespace) -> int:
    from hsca_fast.text.explanation import explain_text
    from hsca_fast.text.supervisor import ModelWarning

    config = scoring_config(args)
    try:
        if args.path == "-":
            content = sys.stdin.buffer.read()
        else:
            with open(args.path, "rb") as file:
                content = file.read()
    except OSError as error:
        print(f"hsca: cannot read {args.path}: {error.strerror or error}", file=sys.stderr)
        return INPUTS_FAILED
    text = content.decode("utf-8", "replace")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # said below, in a line of our own
        found = explain_text(text, config=config)
    if args.json:
        print(json.dumps(_as_json(found), indent=2))
    else:
        coloured = args.color == "always" or (
            args.color == "auto" and sys.stdout.isatty() and "NO_COLOR" not in os.environ
        )
        lines = _account(found, _Paint(coloured), None if args.all else _MOST_SENTENCES)
        sys.stdout.writelines(line + "\n" for line in lines)
    sys.stdout.flush()  # an error in writing belongs here
    warn_of_models(found.warnings)
    return OK


def _as_json(found: TextExplanation) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "layer1_score": found.layer1_score,
        "short_chunk": found.short_chunk,
        "relational": [asdict(block) for block in found.relational],
        "coherence": asdict(found.coherence),
        "domain_tags": found.domain_tags,
        "domain_scores": found.domain_scores,
        "nuance_flags": found.nuance_flags,
        "assessed": sorted(flag.value for flag in found.assessed),
        "cues": [asdict(cue) for cue in found.cues],
        "categories": {name: asdict(total) for name, total in found.categories.items() if total.n_cues},
        "sentiment_score": found.sentiment_score,
        "sentiment": [asdict(word) for word in found.sentiment],
        "sentences": [
            {"start": start, "end": end, "layer1_score": score, "compound": compound}
            for (start, end), score, compound in zip(
                found.sentences.tolist(),
                found.sentence_scores.tolist(),
                found.sentence_compounds.tolist(),
                strict=True,
            )
        ],
        "n_words": found.n_words,
        "warnings": list(found.warnings),
    }


class _Paint:
    def __init__(self, coloured: bool) -> None:
        self._coloured = coloured

    def __call__(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._coloured and text else text


def _bar(value: float) -> str:
    filled = round(value * _BAR)
    return "█" * filled + "░" * (_BAR - filled)


def _account(found: TextExplanation, paint: _Paint, most: int | None) -> Iterator[str]:
    from dataclasses import asdict

    from hsca_fast.text.explanation import is_domain_rule
    from hsca_fast.types import NuanceFlag

    def score(name: str, value: float, note: str = "") -> str:
        return f"  {name:18} {value:6.3f} {_bar(value)} {note}".rstrip()

    yield paint("Layer 1: relational weight", _BOLD)
    yield score("layer1_score", found.layer1_score, "short: too little text to judge" if found.short_chunk else "")
    for block in found.relational[:3]:
        parts = ", ".join(
            f"{name} {getattr(block, name):.3g}" for name in ("breadth", "clustering", "carriage", "continuity")
        )
        yield f"    {block.n_sentences} sentences: strength {block.strength:.3f} from {parts}"
    if len(found.relational) > 3:
        yield f"    and {len(found.relational) - 3} more stretches of sentences"
    yield paint("Layer 2: coherence and domain", _BOLD)
    yield score("coherence_score", found.coherence_score)
    for name, value in asdict(found.coherence).items():
        if name != "score":
            yield paint(score("  " + name, value), _DIM)
    yield f"  domain             {', '.join(found.domain_tags)}"
    for name, value in sorted(found.domain_scores.items(), key=lambda item: -item[1])[:4]:
        words = {cue.text.lower(): None for cue in found.cues if cue.category == f"domain.{name}"}
        note = f"({', '.join(printable(word) for word in list(words)[:6])})" if words else ""
        yield paint(score("  " + name, min(value, 1.0), note), _DIM)
    yield paint("Layer 3: nuance", _BOLD)
    yield f"  flags              {', '.join(found.nuance_flags) or 'none'}"
    unknown = [flag.value for flag in NuanceFlag if flag not in found.assessed]
    yield paint(f"  not assessed       {', '.join(unknown)}", _DIM)
    tone = _GOOD if found.sentiment_score > 0 else _BAD
    yield f"  sentiment          {paint(f'{found.sentiment_score:+.3f}', tone)}"
    for name, total in found.categories.items():
        if total.n_cues and not is_domain_rule(name):
            label = paint(f"{printable(name):18}", _COLOURS.get(name, _OTHER))
            cues = {cue.text.lower(): None for cue in found.cues if cue.category == name}
            listed = ", ".join(printable(cue) for cue in list(cues)[:8])
            sentences = f"{total.n_sentences} of {len(found.sentences)} sentences"
            yield f"  {label} {sentences}, weight {total.weight:g}: {listed}"
    yield ""
    yield from _marked_text(found, paint, most)


def _marked_text(found: TextExplanation, paint: _Paint, most: int | None) -> Iterator[str]:
    """The sentences with their cues and words of feeling marked, the relational weight before each."""
    marks = found.marks()
    shown = found.sentences.tolist()[:most]
    at = 0
    for (start, end), weight in zip(shown, found.sentence_scores.tolist(), strict=False):
        while at < len(marks) and marks[at].start < start:
            at += 1
        line, done = "", start
        while at < len(marks) and marks[at].end <= end:
            mark = marks[at]
            at += 1
            names = mark.categories
            colour = _COLOURS.get(names[0], _OTHER) if names else _GOOD if mark.valence > 0 else _BAD
            line += printable(found.text[done : mark.start]) + paint(
                printable(found.text[mark.start : mark.end]), colour
            )
            if names:
                line += paint(printable(f"[{', '.join(names)}]"), _DIM)
            done = mark.end
        line += printable(found.text[done:end])
        yield f"{paint(f'{weight:5.2f}', _DIM)}  {line}"
    hidden = len(found.sentences) - len(shown)
    if hidden:
        yield paint(f"... {hidden:,} more sentences (--all)", _DIM)
