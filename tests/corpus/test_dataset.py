"""Parquet datasets scored file by file: what is done stays done, and no hole is silent."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from hsca_fast import ArrowScorer, EngineError, InputError, OutputExistsError, ScoringConfig, score_dataset
from hsca_fast.cli import main
from hsca_fast.corpus import dataset, partition
from hsca_fast.corpus.engines import engine, failed, local
from hsca_fast.corpus.partition import Partition, PartitionResult, PartitionScorer, read_receipt

SENTENCES = "The river rose. The bridge held the river back. Perhaps the bridge would fall, {i} said."


def texts(n, start=0):
    return [None if i % 7 == 3 else SENTENCES.format(i=i) * (1 + i % 3) for i in range(start, start + n)]


@pytest.fixture
def corpus(tmp_path):
    """Three files in two directories; 60 + 40 + 0 rows in groups of 20."""
    for name, n in {"lang=en/a.parquet": 60, "lang=en/b.parquet": 40, "lang=pl/c.parquet": 0}.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table({"id": pa.array(range(n), pa.int64()), "text": pa.array(texts(n), pa.string())})
        pq.write_table(table, path, row_group_size=20, write_page_checksum=True, use_dictionary=False)
    (tmp_path / "in" / "_SUCCESS").touch()
    return tmp_path / "in"


def names(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def damage(path, group):
    """Changes a byte in the texts of one row group."""
    column = pq.read_metadata(path).row_group(group).column(1)
    data = bytearray(path.read_bytes())
    data[column.data_page_offset + column.total_compressed_size - 10] ^= 0xFF
    path.write_bytes(data)


def run(*arguments):
    return main(["score", *map(str, arguments)])


# ---- what is written


@pytest.mark.parametrize(("workers", "threads"), [(1, 1), (3, 1), (1, 2)])
def test_output_is_what_the_scorer_says_of_each_file(corpus, tmp_path, workers, threads):
    out = tmp_path / "out"
    report = score_dataset(corpus, out, scorer=ArrowScorer(threads=threads), workers=workers)
    assert names(out) == ["_hsca_manifest.json", "lang=en/a.parquet", "lang=en/b.parquet", "lang=pl/c.parquet"]
    for name in names(corpus)[1:]:
        assert pq.read_table(out / name, partitioning=None).equals(
            ArrowScorer()(pq.read_table(corpus / name, partitioning=None))
        )
    n_null = sum(text is None for text in texts(60) + texts(40))
    assert (report.n_rows, report.n_null, report.n_replaced, report.failed, report.damaged) == (100, n_null, 0, (), ())
    assert report.n_text_bytes() == sum(len(text or "") for text in texts(60) + texts(40))
    # The partitioning of the input is that of the output, for other tools as well.
    whole = ds.dataset(out, partitioning="hive").to_table()
    assert (whole.num_rows, set(whole["lang"].to_pylist())) == (100, {"en"})


def test_batches_and_groups_change_nothing_but_the_layout(corpus, tmp_path, monkeypatch):
    score_dataset(corpus, tmp_path / "one")
    monkeypatch.setattr(partition, "BATCH_BYTES", 300)
    monkeypatch.setattr(partition, "GROUP_ROWS", 7)
    score_dataset(corpus, tmp_path / "two")
    for name in names(corpus)[1:]:
        assert pq.read_table(tmp_path / "one" / name).equals(pq.read_table(tmp_path / "two" / name))
    assert pq.read_metadata(tmp_path / "two" / "lang=en" / "a.parquet").num_row_groups > 5


def test_chosen_columns(corpus, tmp_path):
    score_dataset(corpus / "lang=en", tmp_path / "out", columns=["id"])
    written = pq.read_table(tmp_path / "out" / "a.parquet")
    whole = ArrowScorer()(pq.read_table(corpus / "lang=en" / "a.parquet", partitioning=None))
    assert written.equals(whole.drop_columns(["text"]))
    score_dataset(corpus / "lang=en" / "a.parquet", tmp_path / "none", columns=[])
    assert pq.read_table(tmp_path / "none" / "a.parquet").equals(whole.drop_columns(["id", "text"]))


def test_command(corpus, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(corpus, "-o", out, "--engine", "local", "--tags", "bits", "--columns", "id", "--workers", 2) == 0
    assert "3 files, 100 rows, 15 without a text, 0.0 MB in" in capsys.readouterr().err
    assert pq.read_table(out / "lang=en" / "b.parquet", partitioning=None).column_names[:4] == [
        *("id", "layer1_score", "coherence_score", "domain_bits")
    ]
    assert run(corpus, "-o", out, "--engine", "local", "--tags", "bits", "--columns", "id", "--resume", "--quiet") == 0
    assert capsys.readouterr().err == ""
    manifest = json.loads((out / "_hsca_manifest.json").read_text())
    assert manifest["settings"]["columns"] == ["id"]
    assert [p["n_rows"] for p in manifest["partitions"]] == [60, 40, 0]
    assert all(p["was_done"] for p in manifest["partitions"])


# ---- what is done stays done


def test_complete_partitions_are_not_done_again(corpus, tmp_path):
    out = tmp_path / "out"
    score_dataset(corpus, out)
    before = {name: os.stat(out / name).st_mtime_ns for name in names(out) if name.endswith(".parquet")}
    (out / "lang=en" / "b.parquet").unlink()
    report = score_dataset(corpus, out, resume=True)
    assert [p.was_done for p in report.partitions] == [True, False, True]
    after = {name: os.stat(out / name).st_mtime_ns for name in before}
    assert [name for name in before if before[name] != after[name]] == ["lang=en/b.parquet"]
    assert (report.n_rows, report.n_null) == (100, 15)


@pytest.mark.parametrize("keep", [0, 4, 500, -1])
def test_half_a_file_is_never_taken_for_complete(corpus, tmp_path, keep):
    out = tmp_path / "out"
    score_dataset(corpus, out)
    path = out / "lang=en" / "a.parquet"
    whole = pq.read_table(path)
    path.write_bytes(path.read_bytes()[:keep])
    report = score_dataset(corpus, out, resume=True)
    assert [p.was_done for p in report.partitions] == [False, True, True]
    assert pq.read_table(path).equals(whole)


def test_a_changed_input_is_done_again(corpus, tmp_path):
    out = tmp_path / "out"
    score_dataset(corpus, out)
    pq.write_table(pa.table({"id": [5], "text": ["Another text."]}), corpus / "lang=en" / "a.parquet")
    report = score_dataset(corpus, out, resume=True)
    assert [(p.was_done, p.n_rows) for p in report.partitions] == [(False, 1), (True, 40), (True, 0)]


def test_killed_runs_go_on(corpus, tmp_path):
    """Kill -9 while the second file is written: the first stays, nothing of the second has its name."""
    code = (
        "import sys, time, hsca_fast.corpus.partition as partition\n"
        "from hsca_fast import score_dataset\n"
        "finish = partition._Writer.finish\n"
        "def slow(self, receipt):\n"
        "    if receipt.result.name.endswith('b.parquet'):\n"
        "        print('writing', flush=True); time.sleep(60)\n"
        "    finish(self, receipt)\n"
        "partition._Writer.finish = slow\n"
        "score_dataset(*sys.argv[1:])"
    )
    out = tmp_path / "out"
    process = subprocess.Popen([sys.executable, "-c", code, corpus, out], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"writing\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    left = names(out)
    assert [name for name in left if name.endswith(".parquet")] == ["lang=en/a.parquet"]
    assert [name for name in left if name.endswith(".tmp")]
    with pytest.raises(OutputExistsError, match="is not empty: resume to go on"):
        score_dataset(corpus, out)
    report = score_dataset(corpus, out, resume=True)
    assert [p.was_done for p in report.partitions] == [True, False, False]
    assert names(out) == ["_hsca_manifest.json", *names(corpus)[1:]]


def test_other_settings_are_not_mixed(corpus, tmp_path):
    out = tmp_path / "out"
    score_dataset(corpus, out)
    for scorer in (
        ArrowScorer(tags="bits"),
        ArrowScorer(ScoringConfig(window=6)),
        ArrowScorer(ScoringConfig(domain_model="rules")),
    ):
        with pytest.raises(OutputExistsError, match=r"parquet was scored with other settings .*overwrite"):
            score_dataset(corpus, out, scorer=scorer, resume=True)
    with pytest.raises(OutputExistsError, match="other settings"):
        score_dataset(corpus, out, columns=["id"], resume=True)
    # How the work is divided is no such setting.
    assert score_dataset(corpus, out, scorer=ArrowScorer(threads=2), workers=2, resume=True).partitions[0].was_done
    report = score_dataset(corpus, out, scorer=ArrowScorer(tags="bits"), overwrite=True)
    assert not any(p.was_done for p in report.partitions)


def test_settings_follow_the_content_of_a_model(tmp_path):
    model = tmp_path / "model.onnx"
    model.write_bytes(b"one")
    scorer = ArrowScorer(ScoringConfig(domain_model=model))
    before = dataset._settings(scorer, None)
    model.write_bytes(b"two")
    assert dataset._settings(scorer, None) != before


def test_foreign_files_are_neither_removed_nor_left_in_the_output(corpus, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(OutputExistsError, match="is not empty"):
        score_dataset(corpus, out)
    score_dataset(corpus, out, overwrite=True)
    assert (out / "notes.txt").read_text() == "mine"
    pq.write_table(pa.table({"text": ["mine"]}), out / "mine.parquet")
    with pytest.raises(OutputExistsError, match=r"mine\.parquet is not the work of an earlier run"):
        score_dataset(corpus, out, overwrite=True)
    with pytest.raises(OutputExistsError, match=r"mine\.parquet has no file of the input"):
        score_dataset(corpus, out, resume=True)
    assert names(out)[-1] == "notes.txt"


def test_resume_does_not_replace_a_file_of_somebody_else(corpus, tmp_path):
    mine = tmp_path / "out" / "lang=en" / "a.parquet"
    mine.parent.mkdir(parents=True)
    pq.write_table(pa.table({"text": ["mine"]}), mine)
    with pytest.raises(OutputExistsError, match=r"a\.parquet is not the work of an earlier run"):
        score_dataset(corpus, tmp_path / "out", resume=True)
    assert pq.read_table(mine)["text"].to_pylist() == ["mine"]


def test_a_file_gone_from_the_input_is_not_left_in_the_output(corpus, tmp_path):
    score_dataset(corpus, tmp_path / "out")
    (corpus / "lang=en" / "b.parquet").unlink()
    with pytest.raises(OutputExistsError, match=r"b\.parquet has no file of the input"):
        score_dataset(corpus, tmp_path / "out", resume=True)
    score_dataset(corpus, tmp_path / "out", overwrite=True)
    assert names(tmp_path / "out") == ["_hsca_manifest.json", "lang=en/a.parquet", "lang=pl/c.parquet"]


# ---- what is wrong is named


def test_a_damaged_row_group_is_left_out_and_named(corpus, tmp_path, capsys):
    out = tmp_path / "out"
    damage(corpus / "lang=en" / "a.parquet", 1)
    assert run(corpus, "-o", out, "--engine", "local") == 1
    error = capsys.readouterr().err
    assert "hsca: lang=en/a.parquet: row group 1 (20 rows): " in error
    assert "80 rows" in error
    assert "0 failed, 1 damaged" in error
    kept = [*range(20), *range(40, 60)]
    assert pq.read_table(out / "lang=en" / "a.parquet", partitioning=None)["id"].to_pylist() == kept
    # Complete, so not done again, but not forgotten either.
    assert run(corpus, "-o", out, "--engine", "local", "--resume") == 1
    assert "row group 1 (20 rows)" in capsys.readouterr().err


def test_strict_stops_at_damage(corpus, tmp_path, capsys):
    out = tmp_path / "out"
    damage(corpus / "lang=en" / "a.parquet", 1)
    assert run(corpus, "-o", out, "--engine", "local", "--strict") == 1
    error = capsys.readouterr().err
    assert "hsca: lang=en/a.parquet: row group 1 (20 rows): " in error
    assert "stopped at the first failure (--strict)" in error
    assert "lang=en/a.parquet" not in names(out)
    # A run that is not strict leaves a file with a hole; a strict one does not take it.
    assert run(corpus, "-o", out, "--engine", "local", "--resume", "--quiet") == 1
    with pytest.raises(InputError, match="row group 1"):
        score_dataset(corpus, out, resume=True, strict=True)


def test_damage_deep_in_a_group_leaves_no_half_of_it(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(partition, "BATCH_BYTES", 300)  # rows of the group are scored before its damage is met
    path = corpus / "lang=en" / "a.parquet"
    table = pq.read_table(path, partitioning=None)
    pq.write_table(
        table,
        path,
        row_group_size=30,
        data_page_size=200,
        write_batch_size=2,
        write_page_checksum=True,
        use_dictionary=False,
    )
    column = pq.read_metadata(path).row_group(1).column(1)
    data = bytearray(path.read_bytes())
    data[column.data_page_offset + column.total_compressed_size - 10] ^= 0xFF
    path.write_bytes(data)
    report = score_dataset(corpus, tmp_path / "out")
    (broken,) = report.damaged
    assert (broken.name, broken.n_rows) == ("lang=en/a.parquet", 30)
    assert pq.read_table(tmp_path / "out" / broken.name, partitioning=None)["id"].to_pylist() == list(range(30))


def test_files_of_which_nothing_can_be_read(corpus, tmp_path, capsys):
    for group in range(3):
        damage(corpus / "lang=en" / "a.parquet", group)
    (corpus / "lang=pl" / "c.parquet").write_bytes(b"PAR1 no, not really")
    assert run(corpus, "-o", tmp_path / "out", "--engine", "local") == 1
    error = capsys.readouterr().err
    assert "lang=en/a.parquet: no row group can be read; row group 0 (20 rows)" in error
    assert "lang=pl/c.parquet: cannot read it as Parquet" in error
    assert "3 files, 40 rows" in error
    assert "2 failed" in error
    assert names(tmp_path / "out") == ["_hsca_manifest.json", "lang=en/b.parquet"]


def test_damage_anywhere_is_told_or_harmless(corpus, tmp_path):
    """Bytes of the data changed one at a time: what comes out is right, and what does not is said to be missing."""
    path = corpus / "lang=en" / "b.parquet"
    good = path.read_bytes()
    want = ArrowScorer()(pq.read_table(path, partitioning=None)).to_pylist()
    n_data = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    n_damaged = 0
    for position in range(4, n_data, 31):
        data = bytearray(good)
        data[position] ^= 0x41
        path.write_bytes(data)
        target = tmp_path / f"{position}.parquet"
        result = PartitionScorer(ArrowScorer())(Partition("b", str(path), str(target), 0, 0))
        missing = [group for group in range(2) if any(f"row group {group} " in told for told in result.damaged)]
        assert pq.read_table(target).to_pylist() == [row for row in want if row["id"] // 20 not in missing]
        n_damaged += len(missing)
    assert n_damaged > 10


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"id": [1], "body": ["x"]}), "no column 'text'; it has 'id', 'body'"),
        (pa.table({"text": [1]}), "column 'text' has type int64, expected text"),
        (pa.table({"text": ["x"], "n_words": [1]}), "a column 'n_words' already"),
    ],
)
@pytest.mark.parametrize("name", ["lang=en/a.parquet", "lang=pl/c.parquet"])
def test_wrong_columns(corpus, tmp_path, table, message, name, capsys):
    pq.write_table(table, corpus / name)
    assert run(corpus, "-o", tmp_path / "out", "--engine", "local") == 1
    assert f"hsca: {name}: " in (error := capsys.readouterr().err)
    assert message in error
    # The first file is looked at before anything is started; of the others, the rest goes on.
    assert (tmp_path / "out" / "lang=en" / "b.parquet").exists() == (name != "lang=en/a.parquet")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "local"], "--engine needs an output directory"),
        (["--engine", "local", "-o", "-"], "--engine needs an output directory"),
        (["--engine", "local", "-o", "OUT", "--format", "csv"], "--format is not for --engine"),
        (["--engine", "local", "-o", "OUT", "--errors", "skip"], "--errors is not for --engine"),
        (["--engine", "local", "-o", "OUT", "--resume", "--overwrite"], "resume and overwrite exclude each other"),
        (["--engine", "local", "-o", "OUT", "--address", "x:1"], "'local' has no address"),
        (["--engine", "local", "-o", "IN/out"], "lie in one another"),
        (["--engine", "local", "-o", "."], "lie in one another"),
        (["-", "--engine", "local", "-o", "OUT"], "--engine reads files, not standard input"),
        (["--resume"], "--resume needs --engine"),
        (["--workers", "2"], "--workers needs --engine"),
        (["--engine", "local", "-o", "OUT", "--window", "1"], "--window must be between"),
    ],
)
def test_usage(corpus, tmp_path, arguments, message, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [a.replace("OUT", str(tmp_path / "out")).replace("IN", str(corpus)) for a in arguments]
    assert run(corpus, *arguments) == 2
    assert message in capsys.readouterr().err


def test_output_not_empty(corpus, tmp_path, capsys):
    assert run(corpus, "-o", tmp_path / "out", "--engine", "local") == 0
    assert run(corpus, "-o", tmp_path / "out", "--engine", "local") == 2
    assert "is not empty: resume to go on with it, overwrite to begin again" in capsys.readouterr().err


def test_nothing_to_read(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    assert run(tmp_path / "in", "-o", tmp_path / "out", "--engine", "local") == 1
    assert "no .parquet files in this directory" in capsys.readouterr().err
    assert run(tmp_path / "gone.parquet", "-o", tmp_path / "out", "--engine", "local") == 1
    assert "gone.parquet: No such file or directory" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_names_in_capitals_leave_no_hole(corpus, tmp_path):
    (corpus / "lang=pl" / "c.parquet").rename(corpus / "lang=pl" / "C.PARQUET")
    assert [p.name for p in score_dataset(corpus, tmp_path / "out").partitions][-1] == "lang=pl/C.PARQUET"
    assert score_dataset(corpus, tmp_path / "out", resume=True).partitions[-1].was_done


def test_texts_that_are_all_null_have_no_type(corpus, tmp_path):
    pq.write_table(pa.table({"id": [1, 2], "text": pa.nulls(2)}), corpus / "lang=pl" / "c.parquet")
    report = score_dataset(corpus, tmp_path / "out")
    assert [(p.n_rows, p.n_null, p.error) for p in report.partitions][-1] == (2, 2, "")
    written = pq.read_table(tmp_path / "out" / "lang=pl" / "c.parquet", partitioning=None)
    assert written["layer1_score"].to_pylist() == [None, None]


def test_an_output_that_is_a_file(corpus, tmp_path, capsys):
    (tmp_path / "out").write_text("mine")
    assert run(corpus, "-o", tmp_path / "out", "--engine", "local") == 3
    assert "out: it is a file, and a directory is needed" in capsys.readouterr().err
    assert (tmp_path / "out").read_text() == "mine"


def test_an_engine_that_does_not_start_leaves_the_output_empty(corpus, tmp_path, monkeypatch):
    def unreachable(score, partitions, *, workers, address):
        raise EngineError("nobody there")
        yield

    monkeypatch.setattr(dataset, "engine_named", lambda name: unreachable)
    with pytest.raises(EngineError, match="nobody there"):
        score_dataset(corpus, tmp_path / "out")
    monkeypatch.undo()
    assert score_dataset(corpus, tmp_path / "out").failed == ()


def test_many_partitions_are_not_all_waited_for_at_once(monkeypatch):
    most = 0
    wait = local.wait

    def counted(running, **options):
        nonlocal most
        most = max(most, len(running))
        return wait(running, **options)

    monkeypatch.setattr(local, "wait", counted)
    partitions = [Partition(str(i), "", "", 0, 0) for i in range(100)]
    results = local.run(lambda p, stop: PartitionResult(p.name), partitions, workers=3, address=None)
    assert sorted(int(result.name) for result in results) == list(range(100))
    assert most <= 6


def test_partitions_under_way_stop_when_the_caller_leaves(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(partition, "rows_per_batch", lambda *_: 1)
    batches = []

    def leave(scorer, batch):
        batches.append(batch)
        if len(batches) == 3:
            raise KeyboardInterrupt  # as if pressed in the main thread: what waits for the workers is interrupted
        time.sleep(0.01)
        return score_batch(scorer, batch)

    score_batch = ArrowScorer.score_batch
    monkeypatch.setattr(ArrowScorer, "score_batch", leave)
    monkeypatch.setattr(local, "failed", lambda partition, error: (_ for _ in ()).throw(error))
    with pytest.raises(KeyboardInterrupt):
        score_dataset(corpus, tmp_path / "out", workers=2)
    assert len(batches) < 12  # of 100
    assert not [name for name in names(tmp_path / "out") if "lang=en" in name]


def test_two_files_of_one_name(corpus, tmp_path):
    with pytest.raises(ValueError, match=r"would both be written to 'a\.parquet'"):
        score_dataset([corpus / "lang=en" / "a.parquet", corpus / "lang=en"], tmp_path / "out")


def test_a_full_disk_is_no_success(corpus, tmp_path, capsys, monkeypatch):
    def full(self, batch):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(partition._Writer, "write", full)
    assert run(corpus, "-o", tmp_path / "out", "--engine", "local") == 3
    assert "a.parquet: cannot write it: No space left on device" in capsys.readouterr().err
    assert names(tmp_path / "out") == ["_hsca_manifest.json"]


def test_a_file_that_cannot_be_read_now_is_not_called_damaged(corpus, tmp_path, monkeypatch):
    def flaky(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
        yield

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", flaky)
    report = score_dataset(corpus, tmp_path / "out")
    assert [(p.name, p.error) for p in report.failed] == [
        ("lang=en/a.parquet", "Input/output error"),
        ("lang=en/b.parquet", "Input/output error"),
        ("lang=pl/c.parquet", "Input/output error"),
    ]
    assert report.damaged == ()
    monkeypatch.undo()
    assert score_dataset(corpus, tmp_path / "out", resume=True).failed == ()


def test_an_engine_that_loses_partitions_leaves_no_silent_hole(corpus, tmp_path, monkeypatch):
    def forgetful(score, partitions, *, workers, address):
        yield score(partitions[0])
        yield failed(partitions[1], RuntimeError("worker died"))

    monkeypatch.setattr(dataset, "engine_named", lambda name: forgetful)
    report = score_dataset(corpus, tmp_path / "out")
    assert [(p.name, p.error) for p in report.failed] == [
        ("lang=en/b.parquet", "its worker failed: RuntimeError: worker died"),
        ("lang=pl/c.parquet", "the engine ended without it"),
    ]


def test_engines_that_cannot_be_had(corpus, tmp_path, monkeypatch, capsys):
    with pytest.raises(ValueError, match="engine must be one of local, ray, dask, spark, not 'hadoop'"):
        engine("hadoop")
    monkeypatch.setattr("hsca_fast.corpus.engines.find_spec", lambda name: None)
    for name, module in ("ray", "ray"), ("dask", "dask"), ("spark", "pyspark"):
        with pytest.raises(EngineError, match=rf"'{name}' needs {module}: pip install 'hsca_fast\[{name}\]'"):
            engine(name)
    assert run(corpus, "-o", tmp_path / "out", "--engine", "ray") == 2
    assert "pip install 'hsca_fast[ray]'" in capsys.readouterr().err


def test_receipts_are_read_of_whole_files_only(corpus, tmp_path):
    score_dataset(corpus, tmp_path / "out")
    receipt = read_receipt(str(tmp_path / "out" / "lang=en" / "a.parquet"))
    assert (receipt.result.name, receipt.result.n_rows, receipt.result.seconds) == ("lang=en/a.parquet", 60, 0.0)
    assert read_receipt(str(corpus / "lang=en" / "a.parquet")) is None
    assert read_receipt(str(tmp_path / "nothing")) is None


def test_workers_overlap(corpus, tmp_path, monkeypatch):
    """Two partitions are under way at the same time when two workers are asked for."""
    under_way, most = 0, 0

    def slowly(self, partition, stop):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        time.sleep(0.3)
        under_way -= 1
        return PartitionResult(partition.name)

    monkeypatch.setattr(PartitionScorer, "__call__", slowly)
    score_dataset(corpus, tmp_path / "out", workers=2)
    assert most == 2


@pytest.mark.parametrize(
    ("megabytes", "at_most"), [(96, 500), pytest.param(2000, 1000, marks=pytest.mark.soak)], ids=["short", "2GB"]
)
def test_memory_does_not_grow_with_the_input(tmp_path, megabytes, at_most):
    """One file with one row group, larger than all that may be held at once; in MB of resident memory."""
    chunk = [SENTENCES.format(i=i) * 17 for i in range(2000)]
    n_rows = megabytes * 1_000_000 // len(chunk[0])
    table = pa.table({"text": pa.chunked_array([pa.array(chunk)] * (n_rows // 2000), pa.string())})
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet", row_group_size=table.num_rows, use_dictionary=False)
    code = (
        "import re, sys\n"
        "from hsca_fast import score_dataset\n"
        f"assert score_dataset(*sys.argv[1:]).n_rows == {table.num_rows}\n"
        # Not ru_maxrss: that of a child begins with its parent's.
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) // 1000)"
    )
    command = [sys.executable, "-c", code, tmp_path / "in", tmp_path / "out"]
    used = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert used < at_most
