"""What the exit code of `hsca` says; `hsca --help` prints the same list."""

OK = 0
INPUTS_FAILED = CHECK_FAILED = 1
USAGE = 2
OUTPUT_FAILED = 3
INTERRUPTED = 130  # as a shell reports SIGINT
PIPE_CLOSED = 141  # as a shell reports SIGPIPE

EPILOG = """\
exit codes:
  0    everything was scored
  1    some inputs could not be read (each is named on stderr)
  2    usage error
  3    the output could not be written; nothing is left under its name
  130  interrupted
  141  the reader of standard output went away"""


class UsageError(Exception):
    """The command line asks for something that cannot be."""
