"""What `hsca` says on standard error while it works."""

import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from hsca_fast.corpus.readers import InputError

_SECONDS_BETWEEN_UPDATES = 0.2
_MESSAGES_PER_SOURCE = 20


class Progress:
    """One line, rewritten in place: text done, rate, time left."""

    def __init__(self, stream: TextIO, *, enabled: bool) -> None:
        self.stream = stream
        self.enabled = enabled
        self.n_input_bytes_total: int | None = None
        self._started = self._shown = time.monotonic()

    def update(self, n_bytes: int, n_input_bytes: int) -> None:
        """`n_bytes` of text are scored, which took `n_input_bytes` of the input files."""
        now = time.monotonic()
        if not self.enabled or now - self._shown < _SECONDS_BETWEEN_UPDATES:
            return
        self._shown = now
        elapsed = now - self._started
        line = f"{n_bytes / 1e6:,.0f} MB  {n_bytes / 1e6 / elapsed:,.1f} MB/s"
        if self.n_input_bytes_total and 0 < n_input_bytes <= self.n_input_bytes_total:
            done = n_input_bytes / self.n_input_bytes_total
            line += f"  {done:.0%}  {_clock(elapsed * (1 - done) / done)} left"
        self._rewrite(line)

    def clear(self) -> None:
        if self.enabled:
            self._rewrite("")

    def _rewrite(self, line: str) -> None:
        self.stream.write(f"\r\x1b[K{line}")
        self.stream.flush()


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class FailureLog:
    """Names and counts what failed; of one source, only the first so many by name."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._source: str | None = None
        self._n_of_source = 0
        self.count = 0

    def add(self, error: "InputError") -> None:
        if error.source != self._source:
            self.close()
            self._source = error.source
        self._n_of_source += 1
        self.count += 1
        if self._n_of_source <= _MESSAGES_PER_SOURCE:
            self._say(str(error))

    def close(self) -> None:
        """Say how many of the current source were not named."""
        if self._n_of_source > _MESSAGES_PER_SOURCE:
            self._say(f"{self._source}: {self._n_of_source - _MESSAGES_PER_SOURCE:,} more failures")
        self._source, self._n_of_source = None, 0

    def _say(self, message: str) -> None:
        self._progress.clear()
        # A name may hold line ends and terminal escapes.
        print(
            f"hsca: {''.join(c if c.isprintable() else repr(c)[1:-1] for c in message)}",
            file=self._progress.stream,
        )
