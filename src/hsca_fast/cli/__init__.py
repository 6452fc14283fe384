"""The `hsca` command. Data goes to standard output, everything else to standard error."""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from hsca_fast.cli import bench, doctor, evaluate, explain, index, mcp, report, retrieve, score
from hsca_fast.cli.exit_codes import EPILOG, INTERRUPTED, OUTPUT_FAILED, PIPE_CLOSED, USAGE, UsageError

# Each has add_parser(subparsers), which sets `run`, and run(args) -> exit code; heavy imports wait until run.
_COMMANDS = (score, explain, report, index, retrieve, mcp, evaluate, bench, doctor)


class _Version(argparse.Action):
    """Prints the version; looking it up only now keeps the other commands quick."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"hsca {version('hsca_fast')}", flush=True)
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Run `hsca` with `argv` (None: the process's own) and return its exit code."""
    code = _run(argv)
    if argv is None:
        _leave_running_models(code)
    return code


def _leave_running_models(code: int) -> None:
    """Ends the process here if a user's model still runs in native code, which an orderly exit might not survive."""
    worker = sys.modules.get("hsca_fast.text.worker")  # not there: no model was run
    if worker is None or worker.wait_for_those_left(0.0):
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError, ValueError):
            stream.flush()
    os._exit(code)


def _run(argv: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog="hsca",
        description="Turn text into context: score it, keep it, find it again and say why. No model, no network.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(subparsers)
    if sys.stderr is None:  # closed by the caller; print would fall back to standard output
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (until the process ends)
    args = argparse.Namespace()
    try:
        args = parser.parse_args(argv)
        code: int = args.run(args)
        return code
    except KeyboardInterrupt:
        print("hsca: interrupted", file=sys.stderr)
        return INTERRUPTED
    except UsageError as error:
        print(f"hsca: error: {error}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        _abandon_stdout()
        return PIPE_CLOSED
    except OSError as error:  # inputs report their own, so this is the output
        _abandon_stdout()
        output = getattr(args, "output", None) or "standard output"
        print(f"hsca: cannot write {output}: {error.strerror or error}", file=sys.stderr)
        return OUTPUT_FAILED


def _abandon_stdout() -> None:
    """Stop the interpreter from flushing, and failing, once more on its way out."""
    with suppress(OSError, AttributeError):
        descriptor = sys.stdout.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)
