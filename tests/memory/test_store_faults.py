"""Stores and the end of processes, disks and patience.

A thousand kills and longer runs: pytest -m soak tests/memory/test_store_faults.py
"""

import errno
import gc
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from hsca_fast import HashEmbedder, SemanticIndex, StoreLocked, repair, verify_store
from hsca_fast.memory import segments

repair_module = sys.modules["hsca_fast.memory.repair"]  # the package has a function of that name

EMBEDDER = HashEmbedder(8)
HERE = os.path.dirname(__file__)


def child(script, *arguments, **options):
    code = "from hsca_fast import *\nimport os, sys, json, time\n" + textwrap.dedent(script)
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True, **options
    )


@pytest.fixture
def memory_path(tmp_path):
    """A folder in memory, for tests that do not need a disk but wait for it."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


# ---- kill -9

# Appends, uses, compactions, exports and searches, one after the other. Each line that it prints is a promise: it names
# what was returned before. A parent forks it many times, so that a trial costs no start of an interpreter.
WORKER = """
import random
path, export, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])

def work(seed, out):
    rng = random.Random(seed)
    say = lambda *words: os.write(out, (json.dumps(words) + "\\n").encode())
    with SemanticIndex.open(path, embedder=HashEmbedder(8), timeout=10.0) as index:
        say("open")
        while True:
            step = rng.choice(["append"] * 6 + ["touch"] * 2 + ["compact"] * 2 + ["bulk", "export", "query", "store"])
            tag = f"{seed}-{rng.random()}"
            if step in ("append", "bulk"):
                texts = [f"{tag} {i} the lamp of the sea" for i in range(rng.choice([1, 3, 40]) if step == "append" else 700)]
                ids = index.append(texts, metadata={"session": "s"})
                say("append", tag, len(texts), ids[0], ids[-1])
                last = ids[:3]
            elif step == "touch":
                if used := index_ids(index, rng):
                    index.touch(used, query=tag)
                    say("touch", tag)
            elif step == "compact":
                report = compact_session(index.session("s"), keep_recent=max(4, index.count({"session": "s"}) - 60), target_size=30)
                for cluster in report.clusters:
                    if cluster.record:
                        say("summary", cluster.record.id, list(cluster.source_ids))
            elif step == "export":
                index.export(export)
                say("export", index.generation)
            elif step == "store":
                index.compact()
            else:
                index.query("lamp sea", k=3)

def index_ids(index, rng):
    n = index.generation and next(index.iter_records(5), [])
    return [record.id for record in n or []][: rng.randint(1, 3)]

for line in sys.stdin:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        work(int(line), write)
    os.close(write)
    with os.fdopen(read) as lines:
        said = lines.readline() if int(line) % 5 else ""  # one in five is killed while it opens
        print(pid, flush=True)
        said += lines.read()
    os.waitpid(pid, 0)
    print(json.dumps(said), flush=True)
"""


def kill_trials(tmp_path, n, seed=7):
    """Starts and kills a writer n times; returns what it promised."""
    import json

    tmp_path.mkdir()
    store, export = tmp_path / "store", tmp_path / "out.jsonl"
    rng = random.Random(seed)
    promises = []
    with child(WORKER, store, export, seed, stdin=subprocess.PIPE) as parent:
        for trial in range(n):
            parent.stdin.write(f"{seed * 100_000 + trial}\n")
            parent.stdin.flush()
            pid = int(parent.stdout.readline())
            time.sleep(rng.choice([0.02, 0.1, 0.4]) * rng.random())
            os.kill(pid, signal.SIGKILL)
            said = json.loads(parent.stdout.readline())
            # A line may be cut off; one that is whole was said after the deed.
            promises += [json.loads(line) for line in said.splitlines(keepends=True) if line.endswith("\n")]
            if trial % 20 == 19:
                check_promises(store, promises)
        parent.stdin.close()
    check_promises(store, promises)
    return promises


def check_promises(store, promises):
    report = verify_store(store)
    assert report.ok, report.problems
    with SemanticIndex.open(store, embedder=EMBEDDER, timeout=5.0) as index:
        records = {record.id: record for batch in index.iter_records(include_archived=True) for record in batch}
        by_tag = {}
        for record in (record for record in records.values() if record.role != "summary"):
            by_tag.setdefault(record.text.split(" ")[0], []).append(record)
        appended = {tag: n for what, tag, n, *_ in (p for p in promises if p[0] == "append")}
        for what, tag, n, first, last in (p for p in promises if p[0] == "append"):
            assert len(by_tag[tag]) == n, f"{what} {tag}: {len(by_tag[tag])} of {n} records"
            assert {first, last} <= records.keys()
        sizes = {1, 3, 40, 700}
        for tag, those in by_tag.items():
            assert len(those) in sizes  # promised or not: all of an append, or nothing
            assert [record.sentence_id for record in those] == list(range(len(those)))
            assert appended.get(tag, len(those)) == len(those)
        session = index.session("s")
        there = set(session.summary_ids())
        for _, summary, sources in (p for p in promises if p[0] == "summary"):
            assert summary in there
            assert all(records[source].compacted_into for source in sources)
        queries = {query for _, query, _, _ in index.access_log()}
        assert queries >= {p[1] for p in promises if p[0] == "touch"}


def test_kill_9(tmp_path):
    promises = [promise for seed in range(5) for promise in kill_trials(tmp_path / str(seed), 20, seed)]
    assert {p[0] for p in promises} >= {"open", "append", "touch"}


@pytest.mark.soak
def test_kill_9_a_thousand_times(tmp_path):
    promises = [promise for seed in range(40) for promise in kill_trials(tmp_path / str(seed), 25, seed)]
    assert {p[0] for p in promises} == {"open", "append", "touch", "summary", "export"}


def test_a_killed_writer_loses_its_lock(tmp_path):
    script = """
        index = SemanticIndex.open(sys.argv[1], embedder=HashEmbedder(8))
        index.append(["mine"])
        print("ready", flush=True)
        time.sleep(60)
    """
    with child(script, tmp_path) as writer:
        writer.stdout.readline()
        with pytest.raises(StoreLocked, match=f"written by process {writer.pid} on "):
            SemanticIndex.open(tmp_path, embedder=EMBEDDER)
        with pytest.raises(StoreLocked):
            repair(tmp_path)
        assert verify_store(tmp_path).ok
        writer.kill()
        writer.wait()
        with SemanticIndex.open(tmp_path, embedder=EMBEDDER, timeout=1.0) as index:
            assert index.count() == 1


# ---- many processes


def test_eight_processes_append(memory_path):
    script = """
        import random
        path, name, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
        done = 0
        while done < n:
            try:
                with SemanticIndex.open(path, embedder=HashEmbedder(8)) as index:
                    for _ in range(random.randint(1, 50)):
                        if done < n:
                            index.append([f"{name} {done}"])
                            done += 1
            except StoreLocked:
                time.sleep(0.002)
    """
    SemanticIndex.open(memory_path, embedder=EMBEDDER).close()
    children = [child(script, memory_path, name, 500) for name in range(8)]
    assert [each.wait() for each in children] == [0] * 8
    for each in children:
        each.stdout.close()
    with SemanticIndex.open(memory_path, embedder=EMBEDDER) as index:
        texts = [record.text for batch in index.iter_records() for record in batch]
    assert sorted(texts) == sorted(f"{name} {i}" for name in range(8) for i in range(500))
    assert verify_store(memory_path).ok


READER = """
    path, seconds = sys.argv[1], float(sys.argv[2])
    stop = time.monotonic() + seconds
    rounds, most = 0, 0
    index = SemanticIndex.open(path, embedder=HashEmbedder(8), mode="r")
    while time.monotonic() < stop:
        n = 0
        for batch in index.iter_records(200):
            for record in batch:
                n += 1
                assert record.sequence == n, (record.sequence, n)
                assert record.text.startswith(f"{record.metadata['batch']} "), record
        assert n % 5 == 0, n  # batches of five, all or nothing
        assert n >= most
        most = n
        hits = index.query("lamp", k=5, where={"batch": {"$gte": n // 5 - 3}})
        for hit in hits:
            assert "lamp" in hit.text or hit.lexical_rank is None
        if n:
            ids = [hit.id for hit in hits]
            assert index.vectors(ids).shape == (len(ids), 8)
        if rounds % 10 == 9:
            index.close()
            index = SemanticIndex.open(path, embedder=HashEmbedder(8), mode="r")
        rounds += 1
    print(rounds, most)
"""


def readers_beside_a_writer(tmp_path, seconds):
    with SemanticIndex.open(tmp_path, embedder=EMBEDDER) as index:
        readers = [child(READER, tmp_path, seconds) for _ in range(4)]
        batch = 0
        while any(reader.poll() is None for reader in readers):
            ids = index.append([f"{batch} lamp {i}" for i in range(5)], metadata={"batch": batch})
            index.touch(ids[:2])
            batch += 1
            if batch % 50 == 0:
                index.compact()
            time.sleep(0.005)
        for reader in readers:
            rounds, most = map(int, reader.stdout.read().split())
            assert rounds > 1
            assert 0 < most <= 5 * batch
            assert reader.returncode == 0
            reader.stdout.close()
    assert verify_store(tmp_path).ok


def test_readers_beside_a_writer(tmp_path):
    readers_beside_a_writer(tmp_path, 3.0)


@pytest.mark.soak
def test_readers_beside_a_writer_for_long(tmp_path):
    readers_beside_a_writer(tmp_path, 30.0)


def test_a_forked_copy_is_refused(tmp_path):
    script = """
        index = SemanticIndex.open(sys.argv[1], embedder=HashEmbedder(8))
        index.append(["one"])
        pid = os.fork()
        if pid == 0:
            try:
                index.count()
            except RuntimeError as error:
                print(error, flush=True)
            index.close()
            os._exit(0)
        os.waitpid(pid, 0)
        index.append(["two"])
        print(index.count())
    """
    with child(script, tmp_path) as process:
        said = process.stdout.read()
    assert "open it again after a fork" in said
    assert said.endswith("2\n")


def test_a_child_does_not_hold_its_parents_lock(tmp_path):
    """Else a pool of workers that was forked beside an open index would lock its store until the last of them ends."""
    script = """
        index = SemanticIndex.open(sys.argv[1], embedder=HashEmbedder(8))
        index.append(["one"])
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.read(reading, 1)
            os._exit(0)
        index.close()
        with SemanticIndex.open(sys.argv[1], embedder=HashEmbedder(8)) as again:
            print(again.count(), flush=True)
        os.write(writing, b".")
        os.waitpid(pid, 0)
    """
    with child(script, tmp_path) as process:
        assert process.stdout.read() == "1\n"


def test_an_index_that_was_dropped_lets_go(tmp_path):
    SemanticIndex.open(tmp_path, embedder=EMBEDDER).append(["lamp"])
    gc.collect()
    with SemanticIndex.open(tmp_path, embedder=EMBEDDER) as index:
        assert index.count() == 1


def test_a_writer_that_waits_for_a_repair_gets_the_new_store(tmp_path, monkeypatch):
    """Its lock would be of the old folder, and another writer could take the new one's."""
    path = tmp_path / "store"
    with SemanticIndex.open(path, embedder=EMBEDDER) as index:
        index.append(["lamp"])
    (path / "head").write_bytes(b"?")
    opened = []
    waiting = threading.Thread(target=lambda: opened.append(SemanticIndex.open(path, embedder=EMBEDDER, timeout=10.0)))
    rebuild = repair_module._rebuild

    def slowly(*arguments):
        waiting.start()
        time.sleep(0.1)
        return rebuild(*arguments)

    monkeypatch.setattr(repair_module, "_rebuild", slowly)
    assert repair(path).repaired
    waiting.join()
    with opened[0] as index:
        with pytest.raises(StoreLocked):
            SemanticIndex.open(path, embedder=EMBEDDER)
        index.append(["gull"])
    with SemanticIndex.open(path, embedder=EMBEDDER, mode="r") as index:
        assert index.count() == 2


@pytest.mark.parametrize("stage", ["manifest", "file", "tables"])
def test_a_store_that_was_only_begun(tmp_path, stage):
    """Whoever makes a store may be killed before its catalog is there; nothing is lost, and nothing is damaged."""
    with SemanticIndex.open(tmp_path, embedder=EMBEDDER):
        pass
    (tmp_path / "catalog.sqlite3").unlink()
    if stage != "manifest":
        with closing(sqlite3.connect(tmp_path / "catalog.sqlite3")) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            if stage == "tables":  # of a transaction that was not committed
                connection.execute("BEGIN")
                connection.execute("CREATE TABLE records (sequence INTEGER PRIMARY KEY)")
    assert verify_store(tmp_path).ok
    assert not repair(tmp_path).repaired
    with pytest.raises(FileNotFoundError, match="is not a store yet"):
        SemanticIndex.open(tmp_path, embedder=EMBEDDER, mode="r")
    with SemanticIndex.open(tmp_path, embedder=EMBEDDER) as index:
        index.append(["lamp"])
    assert verify_store(tmp_path).n_records == 1


# ---- full disks, failing writes, interrupts


def with_file_limit(n_bytes):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))

    return limit


@pytest.mark.parametrize(("dim", "text"), [(512, "x"), (2, "lamp " * 200)])
def test_no_room_left(tmp_path, dim, text):
    """Files may not grow beyond a limit: first those of vectors, then those of SQLite."""
    script = """
        path, dim, text = sys.argv[1], int(sys.argv[2]), sys.argv[3]
        index = SemanticIndex.open(path, embedder=HashEmbedder(dim))
        done = 0
        try:
            while True:
                index.append([f"{done} {text}"] * 10)
                done += 1
                print(done, flush=True)
        except OSError as error:
            print(error.errno, type(error).__name__, flush=True)
        assert index.count() == 10 * done, (index.count(), done)
        try:
            index.append(["small"] * 10)
        except OSError:
            pass
        index.close()
    """
    with child(script, tmp_path, dim, text, preexec_fn=with_file_limit(400_000)) as process:
        *counts, failure = process.stdout.read().splitlines()
        assert process.wait() == 0
    assert failure.endswith("OSError")
    done = int(counts[-1])
    with SemanticIndex.open(tmp_path, embedder=HashEmbedder(dim)) as index:
        assert index.count() in (10 * done, 10 * done + 10)
        index.append(["room again"])
    assert verify_store(tmp_path).ok


class FailingIO:
    """The n-th write or sync fails."""

    def __init__(self, monkeypatch, at, number=errno.ENOSPC):
        self.left = at
        self.number = number
        self.failed = False
        monkeypatch.setattr(segments, "_write_all", self.wrap(segments._write_all, half=True))
        monkeypatch.setattr(segments, "_sync", self.wrap(segments._sync))

    def wrap(self, function, half=False):
        def call(*arguments):
            self.left -= 1
            if self.left == 0:
                self.failed = True
                if half:
                    descriptor, data, offset = arguments
                    os.pwrite(descriptor, data[: len(data) // 2], offset)
                raise OSError(self.number, os.strerror(self.number))
            return function(*arguments)

        return call


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_any_write_may_fail(memory_path, monkeypatch, number):
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 10 * 32)
    for at in range(1, 60):
        path = memory_path / str(at)
        with monkeypatch.context() as patch:
            io = FailingIO(patch, at, number)
            expected = []
            with SemanticIndex.open(path, embedder=EMBEDDER) as index:
                for i in range(12):
                    texts = [f"{i} {j}" for j in range(4)]
                    try:
                        index.append(texts)
                        expected += texts
                    except OSError as error:
                        assert error.errno == number  # noqa: PT017 (most do not fail)
                    assert [r.text for batch in index.iter_records() for r in batch] == expected
        assert verify_store(path).ok
        with SemanticIndex.open(path, embedder=EMBEDDER) as index:
            assert index.vectors([r.id for b in index.iter_records() for r in b]).shape == (len(expected), 8)
            assert len(expected) == (44 if io.failed else 48)
        if not io.failed:
            break
    assert at > 20


def test_interrupts_at_any_moment(tmp_path):
    """SIGINT while appending: the append is there or it is not, and the index goes on."""
    script = """
        import random, signal, threading
        index = SemanticIndex.open(sys.argv[1], embedder=HashEmbedder(8))
        rng = random.Random(3)
        sure, maybe = set(), set()
        interrupts = 0
        for i in range(150):
            try:
                timer = threading.Timer(rng.random() * 0.012, os.kill, (os.getpid(), signal.SIGINT))
                try:
                    timer.start()
                    maybe.add(i)
                    index.append([f"{i} {j}" for j in range(3)])
                    sure.add(i)
                finally:
                    timer.cancel()
                    timer.join()
            except KeyboardInterrupt:
                interrupts += 1
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        texts = [r.text for batch in index.iter_records() for r in batch]
        found = {int(text.split()[0]) for text in texts}
        assert sure <= found <= maybe, (sure - found, found - maybe)
        assert sorted(texts) == sorted(f"{i} {j}" for i in found for j in range(3))
        report = index.verify()
        assert report.ok, report.problems
        index.close()
        print(interrupts)
    """
    with child(script, tmp_path / "store") as process:
        said = process.stdout.read()
        assert process.wait() == 0
    assert int(said) > 5


# ---- folders that cannot be written


def test_a_folder_that_cannot_be_written():
    script = """
        import errno
        path, other = sys.argv[1:]
        with SemanticIndex.open(other, embedder=HashEmbedder(8)) as index:
            index.append(["all modules are loaded now"])
            index.query("now", where={"wing": "a"})
            index.verify()
        if os.getuid() == 0:  # root writes anywhere
            os.setuid(65534)
        with SemanticIndex.open(path, embedder=HashEmbedder(8), mode="r") as index:
            print(index.query("lamp")[0].text, index.count({"wing": "a"}), verify_store(path).ok)
        try:
            SemanticIndex.open(path, embedder=HashEmbedder(8))
        except OSError as error:
            print(errno.errorcode[error.errno])
    """
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        store = os.path.join(folder, "store")
        with SemanticIndex.open(store, embedder=EMBEDDER) as index:
            index.append(["lamp"], metadata={"wing": "a"})
        os.chmod(store, 0o555)
        for name in os.listdir(store):
            os.chmod(os.path.join(store, name), 0o444)
        with child(script, store, os.path.join(folder, "other")) as process:
            said = process.stdout.read()
        os.chmod(store, 0o755)
    assert said.split("\n") == ["lamp 1 True", "EACCES", ""]


def test_names_that_sqlite_reads_otherwise(tmp_path):
    for name in ("a b", "a?mode=memory", "a#b", "100%41", "灯"):
        with SemanticIndex.open(tmp_path / name, embedder=EMBEDDER) as index:
            index.append(["lamp"])
        assert (tmp_path / name / "catalog.sqlite3").stat().st_size > 4096
        with SemanticIndex.open(tmp_path / name, embedder=EMBEDDER, mode="r") as index:
            assert index.query(np.ones(8))[0].text == "lamp"
