"""Options that several commands share: how texts are scored."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hsca_fast.cli.exit_codes import UsageError

if TYPE_CHECKING:
    from hsca_fast import ScoringConfig


def whole_number(text: str) -> int:
    """An int, or the error that argparse shows."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def thread_option(text: str) -> int:
    """A number of threads or workers, or the error that argparse shows."""
    value = whole_number(text)
    if not 0 <= value <= 1024:
        raise argparse.ArgumentTypeError(f"{value} is not between 0 and 1024")
    return value


def add_scoring_options(parser: argparse._ArgumentGroup | argparse.ArgumentParser) -> None:
    """Adds what `scoring_config` reads."""
    parser.add_argument("--window", type=whole_number, metavar="N", help="co-occurrence window in words (default: 5)")
    parser.add_argument(
        "--domain-model",
        default="linear",
        metavar="MODEL",
        help="linear (default): the model of the package; rules: its keyword lists; or an .onnx file",
    )
    parser.add_argument(
        "--nuance-model",
        action="append",
        default=[],
        metavar="FILE",
        help="an .onnx head for one of the flags that need a model; may be repeated; 'bundled': those of the package",
    )
    parser.add_argument(
        "--lexicon", action="append", default=[], metavar="FILE", help="a TOML file of further cues; may be repeated"
    )


def scoring_config(args: argparse.Namespace) -> ScoringConfig:
    """The options as a `ScoringConfig`; raises `UsageError` for a wrong one."""
    from hsca_fast import Lexicon, LexiconError, ScoringConfig, bundled_nuance_models

    heads: list[Any] = []
    for name in args.nuance_model:
        heads += bundled_nuance_models() if name == "bundled" else [name]
    options = {} if args.window is None else {"window": args.window}
    try:
        lexicons = [Lexicon.from_toml(path) for path in args.lexicon]
        return ScoringConfig(domain_model=args.domain_model, nuance_models=heads, lexicons=lexicons, **options)
    except LexiconError as error:
        raise UsageError(str(error)) from error
    except ValueError as error:  # its first word is the name of the option
        name, _, rest = str(error).partition(" ")
        raise UsageError(f"--{name.replace('_', '-')} {rest}") from error


def printable(text: str) -> str:
    """On one line, and unable to talk to the terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def warn_of_models(messages: Sequence[str]) -> None:
    """One line on standard error if a model failed."""
    if messages:
        print(f"hsca: warning: {printable('; '.join(messages))}", file=sys.stderr)
