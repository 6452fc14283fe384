import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from contexts import SNAPSHOTS, snapshot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hsca_fast import SessionState, SessionStore, StaleSessionError, TornFileWarning, files
from hsca_fast.context import session


@pytest.fixture
def store(tmp_path):
    return SessionStore(tmp_path / "sessions")


def version_file(store, session_id, version):
    return store._folder(session_id) / f"{version:08d}.json"


# ---- states


def test_fields_of_the_state():
    assert [f.name for f in dataclasses.fields(SessionState)] == [
        "session_id", "run_ids", "phylactery_head", "memory_snapshot", "task_summaries", "status", "created_at",
        "updated_at", "version", "context_snapshots",
    ]  # fmt: skip
    state = SessionState("s")
    assert (state.context_snapshots, state.task_summaries, state.version, state.status) == ([], [], 1, "active")


def test_states_from_before_there_were_snapshots():
    old = {"session_id": "s", "task_summaries": ["did this"], "status": "suspended", "version": 4}
    state = SessionState.from_dict(old)
    assert (state.task_summaries, state.context_snapshots, state.version) == (["did this"], [], 4)


@pytest.mark.parametrize(
    ("change", "error", "names"),
    [
        ({"session_id": 3}, TypeError, "SessionState.session_id"),
        ({"status": "asleep"}, ValueError, "SessionState.status.*'asleep'"),
        ({"context_snapshots": [{"snapshot_id": "x"}]}, KeyError, "ContextSnapshot.macro_weight"),
        ({"mood": 1}, ValueError, "'mood'"),
        ({"version": "2"}, TypeError, "SessionState.version"),
    ],
)
def test_a_wrong_state_names_its_field(change, error, names):
    with pytest.raises(error, match=names):
        SessionState.from_dict({**SessionState("s").to_dict(), **change})


# ---- the store


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SNAPSHOTS, st.text(min_size=1, max_size=20))
def test_every_bit_comes_back(tmp_path, snapshots, session_id):
    store = SessionStore(tmp_path)
    state = SessionState(session_id, ["r"], "head", {"k": [1, None]}, ["t"], "suspended", 1.0, 2.0, 1, snapshots)
    if session_id in store.list_sessions():
        state.version = store.load(session_id).version
    version = store.save(state)
    assert store.load(session_id) == state
    assert state.version == version
    assert session_id in store.list_sessions()


def test_versions(store):
    state = SessionState("s")
    for i in range(3):
        state.task_summaries.append(f"step {i}")
        store.save(state)
    assert store.versions("s") == [2, 3, 4]
    assert store.load("s", version=3).task_summaries == ["step 0", "step 1"]
    assert store.load("s").version == 4
    for missing in ({"session_id": "t"}, {"session_id": "s", "version": 9}):
        with pytest.raises(KeyError, match="no session"):
            store.load(**missing)


def test_old_versions_go(tmp_path):
    store = SessionStore(tmp_path, keep=2)
    state = SessionState("s")
    for _ in range(5):
        store.save(state)
    assert store.versions("s") == [5, 6]
    assert store.load("s") == state


def test_a_stale_state_is_refused(store):
    state = SessionState("s")
    store.save(state)
    other = store.load("s")
    store.save(state)
    with pytest.raises(StaleSessionError, match="at version 3, and this state comes from 2"):
        store.save(other)
    with pytest.raises(StaleSessionError):
        store.save(SessionState("s"))
    assert store.versions("s") == [2, 3]


def test_of_writers_at_once_one_wins(store):
    store.save(SessionState("s"))
    states = [store.load("s") for _ in range(8)]
    outcomes = []

    def write(state):
        try:
            outcomes.append(store.save(state))
        except StaleSessionError:
            outcomes.append(None)

    threads = [threading.Thread(target=write, args=(state,)) for state in states]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes, key=str) == [3] + [None] * 7
    assert store.versions("s") == [2, 3]


def test_names_that_are_no_file_names(store):
    names = [".", "..", "a/b", "../up", "a%2Fb", "ü 🙂", "CON", "a\0b", "\ud800"]
    for name in names:
        store.save(SessionState(name))
    assert store.list_sessions() == sorted(names)
    assert all(store.load(name).session_id == name for name in names)
    for wrong, error in (("", ValueError), ("x" * 300, ValueError), (3, TypeError)):
        with pytest.raises(error, match="session_id"):
            store.load(wrong)


def test_resume(store):
    store.save(SessionState("s", status="suspended"))
    assert store.resume("s").status == "resumed"
    assert store.load("s").status == "resumed"


def test_updated_at_never_goes_back(tmp_path):
    times = iter([10.0, 3.0])
    store = SessionStore(tmp_path, clock=lambda: next(times))
    state = SessionState("s", created_at=1.0, updated_at=1.0)
    store.save(state)
    store.save(state)
    assert (state.updated_at, store.load("s").updated_at) == (10.0, 10.0)


# ---- crashes


@pytest.mark.parametrize(
    ("status", "after"), [("active", "crashed"), ("resumed", "crashed"), ("completed", "completed")]
)
def test_crash_recovery(store, status, after):
    store.save(SessionState("s", status=status, task_summaries=["kept"]))
    leftover = store._folder("s") / ".00000003.json.1.1.tmp"
    leftover.write_text('{"session_id": "s", "task_su')
    state = store.crash_recover("s")
    assert (state.status, state.task_summaries) == (after, ["kept"])
    assert store.load("s").status == after
    assert not leftover.exists()


@pytest.mark.parametrize("damage", [b"", b'{"session_id": "s", "vers', b"\0" * 50, b'{"session_id": 3}', b"[]"])
def test_a_damaged_version_is_passed_over(store, damage):
    state = SessionState("s", task_summaries=["first"])
    store.save(state)
    state.task_summaries = ["second"]
    store.save(state)
    version_file(store, "s", 3).write_bytes(damage)
    with pytest.warns(TornFileWarning, match=r"00000003\.json"):
        loaded = store.load("s")
    assert loaded.task_summaries == ["first"]
    with pytest.raises(ValueError, match=r"00000003\.json"):
        store.load("s", version=3)
    assert store.save(loaded) == 4  # the damaged one is neither an obstacle nor written over
    assert store.load("s").task_summaries == ["first"]
    for version in (2, 4):
        version_file(store, "s", version).write_bytes(damage)
    with pytest.warns(TornFileWarning), pytest.raises(ValueError, match="all damaged"):
        store.load("s")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_while_writing_changes_nothing(store, monkeypatch, step):
    state = SessionState("s", task_summaries=["first"])
    store.save(state)
    before = dataclasses.replace(state)

    def fails(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, step, fails)
    state.task_summaries = ["second"]
    with pytest.raises(OSError, match="No space"):
        store.save(state)
    monkeypatch.undo()
    assert (state.version, state.updated_at) == (before.version, before.updated_at)
    assert store.load("s").task_summaries == ["first"]
    assert sorted(os.listdir(store._folder("s"))) == ["00000002.json"]
    assert store.save(state) == 3


def test_what_json_cannot_hold_is_refused_before_writing(store):
    with pytest.raises(TypeError, match="serializable"):
        store.save(SessionState("s", memory_snapshot={"x": object()}))
    with pytest.raises(ValueError, match="JSON"):
        store.save(SessionState("s", memory_snapshot={"x": float("nan")}))
    assert store.versions("s") == []
    assert store.list_sessions() == []


@pytest.mark.parametrize(
    ("change", "error", "names"),
    [
        ({"task_summaries": [1]}, TypeError, r"SessionState.task_summaries\[0\]"),
        ({"run_ids": "abc"}, TypeError, "SessionState.run_ids"),
        ({"context_snapshots": [1]}, TypeError, r"SessionState.context_snapshots\[0\]"),
        ({"context_snapshots": [snapshot("a", ["text"], weight=7.0)]}, ValueError, "layer1_score"),
        ({"memory_snapshot": {"a": [{1: "x"}]}}, TypeError, r"SessionState.memory_snapshot\['a'\]\[0\] has the key 1"),
        ({"memory_snapshot": 3}, TypeError, "SessionState.memory_snapshot"),
        ({"created_at": None}, TypeError, "SessionState.created_at"),
        ({"status": "asleep"}, ValueError, "asleep"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(tmp_path, change, error, names):
    store = SessionStore(tmp_path, keep=1)
    good = SessionState("s", task_summaries=["good"])
    store.save(good)
    wrong = dataclasses.replace(good, **change)
    with pytest.raises(error, match=names):
        store.save(wrong)
    assert wrong.version == good.version
    assert store.load("s") == good


def test_recovery_leaves_the_file_that_is_being_written(store, monkeypatch):
    state = SessionState("s", status="completed")
    store.save(state)
    recovery = threading.Thread(target=store.crash_recover, args=("s",))
    fsync = os.fsync

    def in_the_middle(descriptor):
        if not recovery.ident:
            recovery.start()
            recovery.join(0.2)
        fsync(descriptor)

    monkeypatch.setattr(files.os, "fsync", in_the_middle)
    assert store.save(state) == 3
    recovery.join()
    assert store.versions("s") == [2, 3]


def test_a_version_that_goes_while_it_is_looked_for(tmp_path, monkeypatch):
    store = SessionStore(tmp_path, keep=1)
    state = SessionState("s")
    store.save(state)
    read = session._read

    def after_another_save(path):
        monkeypatch.undo()
        store.save(state)
        return read(path)

    monkeypatch.setattr(session, "_read", after_another_save)
    assert store.load("s").version == 3
    with pytest.raises(KeyError, match="of version 2"):
        store.load("s", version=2)


def test_everything_is_written_before_it_has_its_name(store, monkeypatch):
    steps = []
    for step in ("fsync", "replace"):
        real = getattr(os, step)
        monkeypatch.setattr(files.os, step, lambda *a, step=step, real=real: (steps.append(step), real(*a))[1])
    store.save(SessionState("s"))
    assert steps[-3:] == ["fsync", "replace", "fsync"]  # the file, its name, the directory


WRITER = """
import sys
from hsca_fast import SessionState, SessionStore
store = SessionStore(sys.argv[1], keep=3)
state = SessionState("s", memory_snapshot={"filler": "x" * 200_000})
while True:
    state.task_summaries = [str(store.save(state))]
    print(state.version, flush=True)
"""


def test_a_killed_writer_loses_nothing_it_was_told_was_saved(tmp_path):
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, tmp_path], stdout=subprocess.PIPE, text=True)
        for _ in range(3):
            writer.stdout.readline()
        time.sleep(0.01)
        writer.send_signal(signal.SIGKILL)
        told = writer.communicate()[0].split()
        store = SessionStore(tmp_path)
        state = store.crash_recover("s")
        assert state.version >= max(map(int, told), default=0)
        assert state.status == "crashed"
        for version in store.versions("s"):
            json.loads(version_file(store, "s", version).read_bytes())
        for path in store._folder("s").iterdir():
            path.unlink()


def test_snapshots_of_a_session(store):
    state = SessionState("s", context_snapshots=[snapshot("a", ["text"], weight=1 / 3, domains={"legal": 2 / 3})])
    store.save(state)
    assert store.load("s").context_snapshots == state.context_snapshots


def test_options(tmp_path):
    for wrong, error in ((0, ValueError), (2.0, TypeError)):
        with pytest.raises(error, match="keep"):
            SessionStore(tmp_path, keep=wrong)
    with pytest.raises(TypeError, match="state must be a SessionState"):
        SessionStore(tmp_path).save({"session_id": "s"})
