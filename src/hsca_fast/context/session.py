"""Sessions on disk: the state of a conversation's program, every version of it whole."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from hsca_fast.fields import Fields, at_least_one, finite
from hsca_fast.files import TornFileWarning, replacing, sync_directory
from hsca_fast.types import ContextSnapshot

KEPT_VERSIONS = 10

_FOLDER_PREFIX = "session-"  # so that no id makes a hidden or a special name
_MAX_NAME_BYTES = 255
_VERSION_FILE = re.compile(r"(\d{8,})\.json")


class SessionStatus(StrEnum):
    """Where a session stands."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    CRASHED = "crashed"
    COMPLETED = "completed"


class StaleSessionError(RuntimeError):
    """Somebody else saved a newer version of the session."""


@dataclass
class SessionState:
    """What a session needs to go on (OmegA's class, with the snapshots of HSCA 5.1).

    Attributes
    ----------
    task_summaries
        Summaries as text, as before there were snapshots.
    context_snapshots
        The conversation so far.
    version
        Of the last save.

    Examples
    --------
    >>> state = SessionState("s1", created_at=0.0, updated_at=0.0)
    >>> SessionState.from_dict(state.to_dict()) == state
    True
    """

    session_id: str
    run_ids: list[str] = field(default_factory=list)
    phylactery_head: str | None = None
    memory_snapshot: dict[str, Any] = field(default_factory=dict)
    task_summaries: list[str] = field(default_factory=list)
    status: str = SessionStatus.ACTIVE.value
    created_at: float = field(default_factory=time.time)
    updated_at: float = field(default_factory=time.time)
    version: int = 1
    context_snapshots: list[ContextSnapshot] = field(default_factory=list)

    def to_dict(self, *, digits: int | None = 4) -> dict[str, Any]:
        """Plain values; scores are rounded to `digits`, None keeps every bit."""
        return {
            "session_id": self.session_id,
            "run_ids": self.run_ids,
            "phylactery_head": self.phylactery_head,
            "memory_snapshot": self.memory_snapshot,
            "task_summaries": self.task_summaries,
            "status": SessionStatus(self.status).value,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "version": self.version,
            "context_snapshots": [snapshot.to_dict(digits=digits) for snapshot in self.context_snapshots],
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> SessionState:
        """The state that `to_dict` wrote; all but the id may be missing, unknown fields are refused."""
        fields = Fields(cls.__name__, d, cls.__dataclass_fields__)
        status = fields.text("status", SessionStatus.ACTIVE.value)
        if status not in set(SessionStatus):
            raise ValueError(f"SessionState.status must be one of {[s.value for s in SessionStatus]}, not {status!r}")
        return cls(
            session_id=fields.text("session_id"),
            run_ids=fields.texts("run_ids", []),
            phylactery_head=fields.text_or_none("phylactery_head"),
            memory_snapshot=fields.mapping("memory_snapshot", {}),
            task_summaries=fields.texts("task_summaries", []),
            status=status,
            created_at=fields.number("created_at", 0.0),
            updated_at=fields.number("updated_at", 0.0),
            version=fields.count("version", 1),
            context_snapshots=fields.each("context_snapshots", ContextSnapshot.from_dict, []),
        )


class SessionStore:
    """States of sessions in a directory, a file a version.

    A version is written beside, made durable and then given its name, so that a crash leaves the old versions or all of the
    new one. Versions are never written over.

    Parameters
    ----------
    directory
        Made if it is not there.
    keep
        So many of the latest versions of a session stay on disk.
    clock
        For `updated_at`, which never goes back.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SessionStore(folder)
    ...     version = store.save(SessionState("s1", task_summaries=["said hello"]))
    ...     store.load("s1").task_summaries, version, store.list_sessions()
    (['said hello'], 2, ['s1'])
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        keep: int = KEPT_VERSIONS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._root = Path(directory)
        self._root.mkdir(parents=True, exist_ok=True)
        self._keep = at_least_one(keep, "keep")
        self._clock = clock

    def save(self, state: SessionState) -> int:
        """Write a new version and return its number, which `state.version` is then.

        Raises
        ------
        StaleSessionError
            There is a newer version than the one that `state` was loaded from; nothing is written.
        TypeError, ValueError
            A field of `state` could not be read back; nothing is written.
        """
        if not isinstance(state, SessionState):
            raise TypeError(f"state must be a SessionState, not {type(state).__name__}")
        folder = self._folder(state.session_id)
        content = _content(state)
        if not folder.exists():
            folder.mkdir(exist_ok=True)
            sync_directory(self._root)
        with _locked(folder):
            files = _version_files(folder)
            newer = [path for number, path in files.items() if number > state.version]
            if any(not isinstance(_read(path), ValueError) for path in newer):
                raise StaleSessionError(
                    f"session {state.session_id!r} is at version {max(files)}, and this state comes from {state.version}"
                )
            version = max([state.version, *files]) + 1
            updated_at = max(finite(self._clock(), "clock()"), state.updated_at)
            self._write(folder / f"{version:08d}.json", {**content, "version": version, "updated_at": updated_at})
            for number in sorted(files)[: max(0, len(files) + 1 - self._keep)]:
                files[number].unlink(missing_ok=True)
        state.version, state.updated_at = version, updated_at
        return version

    def load(self, session_id: str, *, version: int | None = None) -> SessionState:
        """The latest version that can be read, or the one asked for.

        Raises
        ------
        KeyError
            There is no such session or version.
        ValueError
            What there is cannot be read.

        Warns
        -----
        TornFileWarning
            A later version is damaged, and was passed over.
        """
        folder = self._folder(session_id)
        damaged: dict[int, ValueError] = {}
        while files := _wanted(folder, version, damaged):
            number = max(files)
            try:
                found = _read(files[number])
            except FileNotFoundError:  # a writer has put a newer version in its place since the folder was listed
                continue
            if isinstance(found, SessionState):
                return found
            if version is not None:
                raise found
            warnings.warn(f"{found}; an earlier version is taken", TornFileWarning, stacklevel=2)
            damaged[number] = found
        if damaged:
            raise ValueError(f"no version of session {session_id!r} can be read: {sorted(damaged)} are all damaged")
        wanted = "" if version is None else f" of version {version}"
        raise KeyError(f"no session {session_id!r}{wanted} in {self._root}")

    def versions(self, session_id: str) -> list[int]:
        """The versions on disk, oldest first."""
        return sorted(_version_files(self._folder(session_id)))

    def list_sessions(self) -> list[str]:
        """The ids of all sessions, sorted."""
        found = (path.name for path in self._root.iterdir() if path.name.startswith(_FOLDER_PREFIX))
        return sorted(_session_id(name) for name in found if _version_files(self._root / name))

    def resume(self, session_id: str) -> SessionState:
        """Load a session and note that it goes on."""
        return self._with_status(self.load(session_id), SessionStatus.RESUMED)

    def crash_recover(self, session_id: str) -> SessionState:
        """What is left of a session after a crash: the latest state that can be read, noted as crashed if it was running.

        Half-written files are removed.
        """
        folder = self._folder(session_id)
        if folder.exists():
            with _locked(folder):  # not the file that another writer is at
                for leftover in folder.glob(".*.tmp"):
                    leftover.unlink(missing_ok=True)
        state = self.load(session_id)
        if state.status not in (SessionStatus.ACTIVE, SessionStatus.RESUMED):
            return state
        return self._with_status(state, SessionStatus.CRASHED)

    def _with_status(self, state: SessionState, status: SessionStatus) -> SessionState:
        state.status = status.value
        self.save(state)
        return state

    def _folder(self, session_id: str) -> Path:
        if not isinstance(session_id, str):
            raise TypeError(f"session_id must be a str, not {type(session_id).__name__}")
        name = _FOLDER_PREFIX + quote(session_id, safe="", errors="surrogatepass")
        if not session_id or len(name) > _MAX_NAME_BYTES:
            raise ValueError(f"session_id must be a name that fits a file's, not {session_id!r}")
        return self._root / name

    @staticmethod
    def _write(path: Path, content: dict[str, Any]) -> None:
        import json

        with replacing(path) as stream:
            stream.write(json.dumps(content, allow_nan=False).encode())


def _session_id(folder_name: str) -> str:
    return unquote(folder_name.removeprefix(_FOLDER_PREFIX), errors="surrogatepass")


def _version_files(folder: Path) -> dict[int, Path]:
    with suppress(FileNotFoundError):
        names = ((_VERSION_FILE.fullmatch(path.name), path) for path in folder.iterdir())
        return {int(match[1]): path for match, path in names if match}
    return {}


def _wanted(folder: Path, version: int | None, damaged: Collection[int]) -> dict[int, Path]:
    """The versions that are there, or the one asked for, without those that were found damaged."""
    files = _version_files(folder)
    return {n: path for n, path in files.items() if n not in damaged and version in (None, n)}


def _content(state: SessionState) -> dict[str, Any]:
    """The state as a dict that reads back as the same state: a version that nobody can load must not push out one that is good."""
    for i, snapshot in enumerate(state.context_snapshots):
        if not isinstance(snapshot, ContextSnapshot):
            raise TypeError(
                f"SessionState.context_snapshots[{i}] must be a ContextSnapshot, not {type(snapshot).__name__}"
            )
    content = state.to_dict(digits=None)
    SessionState.from_dict(content)  # says which field is wrong
    _check_keys(state.memory_snapshot, "SessionState.memory_snapshot")
    return content


def _check_keys(value: object, name: str) -> None:
    """JSON turns other keys into str, and then two keys may be one."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{name} has the key {key!r}, which must be a str, not {type(key).__name__}")
            _check_keys(item, f"{name}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            _check_keys(item, f"{name}[{i}]")


def _read(path: Path) -> SessionState | ValueError:
    import json

    try:
        return SessionState.from_dict(json.loads(path.read_bytes()))
    except (KeyError, TypeError, ValueError) as error:
        return ValueError(f"{path} cannot be read: {error}")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Writers of one session take turns, in this process and in others."""
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
