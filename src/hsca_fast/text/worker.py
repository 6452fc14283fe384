"""Threads that run a user's model and can be left behind when it takes too long.

A thread cannot be ended from outside, and an interpreter that shuts down while one is in native code may crash or hang.
So an ONNX run that is left behind is told to stop, and at exit every such thread is interrupted and waited for, for a
while: one call into native code cannot be interrupted.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from typing import Any

SECONDS_AT_EXIT = 5.0
_SECONDS_TO_STOP = 1.0  # what a run that was told to stop is given for it

_left_behind: set[Worker] = set()


class Worker(threading.Thread):
    """Runs `work` once; `done` is set when it ended, however it did."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._work = work
        self._lock = threading.Lock()
        self._run_options: Any = None
        self._is_left = False
        self.done = threading.Event()

    def run(self) -> None:
        try:
            self._work()
        finally:
            self.done.set()

    def attach(self, run_options: Any) -> None:
        """The options of the ONNX run that begins; their `terminate` is how to stop it."""
        with self._lock:
            self._run_options = run_options
            if self._is_left:
                run_options.terminate = True

    def leave(self) -> None:
        """Nobody waits for the result any more."""
        _left_behind.difference_update([worker for worker in _left_behind if not worker.is_alive()])
        _left_behind.add(self)
        with self._lock:
            self._is_left = True
            if self._run_options is not None:
                self._run_options.terminate = True
        if self._run_options is not None:
            self.join(_SECONDS_TO_STOP)


def wait_for_those_left(seconds: float = SECONDS_AT_EXIT) -> bool:
    """Waits for the threads that were left behind, for so long in all; False when one still runs."""
    deadline = time.monotonic() + seconds
    for worker in list(_left_behind):
        worker.join(max(0.0, deadline - time.monotonic()))
    return not any(worker.is_alive() for worker in _left_behind)


@atexit.register
def _end_those_left() -> None:
    """Raises SystemExit in every thread that was left behind, which ends it at its next step in Python, and waits."""
    running = [worker.ident for worker in _left_behind if worker.is_alive() and worker.ident is not None]
    if not running:
        return
    import ctypes

    for thread in running:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(SystemExit))
    wait_for_those_left()
