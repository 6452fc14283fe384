import csv
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hsca_fast import score_texts
from hsca_fast.cli import main
from hsca_fast.cli.progress import FailureLog, Progress, _clock
from hsca_fast.corpus.readers import STREAM_FORMATS, InputError
from hsca_fast.corpus.writers import FORMATS, LIST_COLUMNS, named_columns

TEXTS = [
    "The river rose in the night. By morning the river had reached the bridge. The bridge held.",
    "",
    "Zażółć gęślą jaźń. 漢字と仮名。 Emoji 🎉 too.",
]
HSCA = [sys.executable, "-m", "hsca_fast"]


def hsca(*args):
    return main([str(arg) for arg in args])


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "data.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return folder


def csv_value(name, cell):
    if name in LIST_COLUMNS:
        return cell.split(";") if cell else []
    return cell if name == "source" else json.loads(cell)


def read_scores(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return [{name: csv_value(name, cell) for name, cell in row.items()} for row in csv.DictReader(file)]
    if path.suffix == ".json":
        return json.loads(path.read_text())
    return [json.loads(line) for line in path.read_text().splitlines()]


def expected(source, texts):
    columns = {name: column.tolist() for name, column in named_columns(score_texts(list(texts))).items()}
    return [
        {"source": str(source), "row": i} | {name: column[i] for name, column in columns.items()}
        for i in range(len(texts))
    ]


# ---- what is written


@pytest.mark.parametrize("extension", ["csv", "json", "jsonl", "ndjson", "parquet"])
def test_output_is_what_the_library_computes(tmp_path, corpus, extension, capsys):
    out = tmp_path / f"out.{extension}"
    assert hsca("score", corpus, "-o", out) == 0
    assert read_scores(out) == expected(corpus / "data.jsonl", TEXTS)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("hsca: 3 texts, 0.0 MB in ")
    assert "0 failed, 0 characters replaced" in captured.err
    assert "not assessed, so unknown where missing: metaphor, metaphor_model, sarcasm" in captured.err


def test_standard_output_holds_data_only(corpus, capsys):
    assert hsca("score", corpus, "--format", "jsonl") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == expected(corpus / "data.jsonl", TEXTS)


def test_table_is_the_default(corpus, capsys):
    assert hsca("score", corpus, "-o", "-", "--quiet") == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0].split()[:3] == ["source", "row", "layer1_score"]
    assert captured.out.endswith("3 rows\n")
    assert captured.err == ""


@pytest.mark.parametrize("threads", [0, 2])
def test_threads_change_nothing(tmp_path, corpus, threads):
    hsca("score", corpus, "-o", tmp_path / "one.csv")
    hsca("score", corpus, "-o", tmp_path / "more.csv", "--threads", threads)
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "more.csv").read_bytes()


@pytest.mark.parametrize("extension", ["jsonl", "parquet"])
def test_null_text_gives_null_scores(tmp_path, extension):
    texts = ["One. Two.", None]
    if extension == "parquet":
        pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    else:
        (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    assert hsca("score", tmp_path / f"a.{extension}", "-o", tmp_path / "out.json") == 0
    first, second = read_scores(tmp_path / "out.json")
    assert first == expected(tmp_path / f"a.{extension}", texts[:1])[0]
    assert second == {**dict.fromkeys(first), "source": first["source"], "row": 1}


def test_standard_input(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"body\nhello there\n")))
    assert hsca("score", "-", "--input-format", "csv", "--text-column", "body", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == expected("-", ["hello there"])


def test_long_text_is_cut(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("one two\n\nthree four\n\nfive")
    assert hsca("score", tmp_path / "a.txt", "--chunk-bytes", 12, "--format", "json") == 0
    parts = ["one two\n\n", "three four\n\n", "five"]
    assert json.loads(capsys.readouterr().out) == expected(tmp_path / "a.txt", parts)


@pytest.mark.parametrize("extension", ["csv", "json", "jsonl", "parquet"])
def test_no_rows_give_an_empty_output(tmp_path, extension):
    (tmp_path / "a.jsonl").touch()
    out = tmp_path / f"out.{extension}"
    assert hsca("score", tmp_path / "a.jsonl", "-o", out) == 0
    assert read_scores(out) == []
    if extension == "csv":
        assert out.read_text() == ",".join(["source", "row", *named_columns(score_texts([]))]) + "\n"


def test_replaced_characters_are_counted(tmp_path, capsys):
    (tmp_path / "a.txt").write_bytes(b"a \xff b")
    (tmp_path / "b.jsonl").write_text('{"text": "\\ud800 c"}')
    assert hsca("score", tmp_path) == 0
    assert "0 failed, 2 characters replaced" in capsys.readouterr().err
    assert hsca("score", tmp_path, "--errors", "skip") == 0
    assert "1 characters replaced, 1 texts skipped" in capsys.readouterr().err
    assert hsca("score", tmp_path, "--errors", "strict") == 1
    assert "a.txt: part 0: invalid UTF-8 at byte 2" in capsys.readouterr().err


# ---- inputs that fail


def test_failures_are_named_and_the_rest_goes_on(tmp_path, corpus, capsys):
    (corpus / "bad.parquet").write_bytes(b"PAR1 not really PAR1")
    out = tmp_path / "out.jsonl"
    assert hsca("score", corpus, tmp_path / "gone.txt", "-o", out) == 1
    assert read_scores(out) == expected(corpus / "data.jsonl", TEXTS)
    err = capsys.readouterr().err.splitlines()
    assert err[0].startswith(f"hsca: {corpus}/bad.parquet: ")
    assert err[1] == f"hsca: {tmp_path}/gone.txt: No such file or directory"
    assert "2 failed" in err[2]


def test_strict_stops_and_leaves_the_old_output(tmp_path, corpus, capsys):
    out = tmp_path / "out.csv"
    out.write_text("old")
    assert hsca("score", corpus, tmp_path / "gone.txt", corpus, "-o", out, "--strict") == 1
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus", "out.csv"]
    assert f"{tmp_path}/gone.txt: No such file" in capsys.readouterr().err


def test_many_failures_of_a_file_are_capped(tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text("x\n" * 1000)
    (tmp_path / "b.jsonl").write_text("x\n")
    assert hsca("score", tmp_path) == 1
    err = capsys.readouterr().err.splitlines()
    assert len(err) == 20 + 1 + 1 + 2  # shown, counted, of the other file, summary
    assert err[20] == f"hsca: {tmp_path}/a.jsonl: 980 more failures"
    assert "1,001 failed" in err[-2]


def test_directory_with_nothing_to_read(tmp_path, capsys):
    assert hsca("score", tmp_path) == 1
    assert f"{tmp_path}: no files in this directory to read" in capsys.readouterr().err


# ---- usage


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--window", "1"], "window"),
        (["-o", "scores.xyz"], "give --format"),
        (["-o", "data.jsonl"], "is one of the inputs and would be overwritten"),
    ],
)
def test_usage_errors(corpus, monkeypatch, capsys, args, message):
    monkeypatch.chdir(corpus)
    before = (corpus / "data.jsonl").read_bytes()
    assert hsca("score", ".", *args) == 2
    assert message in capsys.readouterr().err
    assert [path.read_bytes() for path in corpus.iterdir()] == [before]


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["score"],
        ["score", "a", "--threads", "-1"],
        ["score", "a", "--chunk-bytes", "3"],
        ["score", "a", "--errors", "x"],
    ],
)
def test_argument_errors(args, capsys):
    with pytest.raises(SystemExit) as stop:
        hsca(*args)
    assert stop.value.code == 2
    assert "usage: hsca" in capsys.readouterr().err


def test_parquet_output_without_pyarrow(corpus, monkeypatch, capsys):
    monkeypatch.setattr("hsca_fast.cli.score.find_spec", lambda name: None)
    assert hsca("score", corpus, "--format", "parquet") == 2
    assert "hsca_fast[arrow]" in capsys.readouterr().err


def test_help_lists_the_formats_that_exist(capsys):
    # The parser spells them out, so that --help need not import the readers and writers.
    with pytest.raises(SystemExit):
        hsca("score", "--help")
    text = capsys.readouterr().out
    assert "{" + ",".join(FORMATS) + "}" in text
    assert "{" + ",".join(STREAM_FORMATS) + "}" in text
    assert "exit codes:" in text


# ---- outputs that fail


def test_missing_output_directory(tmp_path, corpus, capsys):
    assert hsca("score", corpus, "-o", tmp_path / "no" / "out.csv") == 3
    assert capsys.readouterr().err == f"hsca: cannot write {tmp_path}/no/out.csv: No such file or directory\n"


@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_full_disk_leaves_nothing_under_the_name(tmp_path, extension):
    (tmp_path / "a.csv").write_text("text\n" + "some words here\n" * 50_000)

    def limit_file_size():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    command = [*HSCA, "score", "a.csv", "-o", f"out.{extension}"]
    done = subprocess.run(command, cwd=tmp_path, preexec_fn=limit_file_size, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"hsca: cannot write out.{extension}: File too large\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("args", [["doctor"], *(["score", "data.jsonl", "--format", f] for f in ("table", "parquet"))])
def test_full_device_as_standard_output(corpus, args, unbuffered):
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*HSCA, *args], cwd=corpus, env=environment, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 3
    assert done.stderr == "hsca: cannot write standard output: No space left on device\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_slow_pipe_gets_everything(tmp_path, unbuffered):
    (tmp_path / "a.csv").write_text("text\n" + "some words here\n" * 50_000)
    command = [*HSCA, "score", "a.csv", "--format", "jsonl"]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        time.sleep(0.1)
        rows = [json.loads(line)["row"] for line in process.stdout]
    assert rows == list(range(50_000))


def test_closed_pipe_is_quiet(tmp_path):
    (tmp_path / "a.csv").write_text("text\n" + "some words here\n" * 50_000)
    command = [*HSCA, "score", str(tmp_path / "a.csv"), "--format", "csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith(b"source,row,")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_parquet_through_a_pipe(corpus):
    done = subprocess.run([*HSCA, "score", str(corpus), "--format", "parquet"], capture_output=True, check=True)
    assert pq.read_table(io.BytesIO(done.stdout)).to_pylist() == expected(corpus / "data.jsonl", TEXTS)


def test_interrupt_stops_at_once_and_leaves_nothing(tmp_path):
    os.mkfifo(tmp_path / "endless")
    command = [*HSCA, "score", "endless", "--input-format", "jsonl", "-o", "out.csv"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        with open(tmp_path / "endless", "w") as pipe:
            pipe.write('{"text": "one two"}\n' * 100_000)
            pipe.flush()
            assert any(path.suffix == ".tmp" for path in tmp_path.iterdir())
            sent = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.wait(5) == 130
            assert time.monotonic() - sent < 1
        assert process.stderr.read() == "hsca: interrupted\n"
    assert [path.name for path in tmp_path.iterdir()] == ["endless"]


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads the peak from Linux's /proc")
@pytest.mark.parametrize("extension", ["txt", "jsonl", "parquet"])
def test_memory_does_not_grow_with_the_corpus(tmp_path, extension):
    line = "The quick brown fox jumps over the lazy dog near the river bank today. " * 14 + "\n\n"
    for name, n_lines in ("small", 30_000), ("large", 90_000):
        path = tmp_path / f"{name}.{extension}"
        if extension == "parquet":
            table = pa.table({"text": [f"{i} {line}" for i in range(n_lines)]})
            pq.write_table(table, path, use_dictionary=False, compression="none")
        else:
            path.write_text((line if extension == "txt" else json.dumps({"text": line}) + "\n") * n_lines)
    # Measured by the child itself: ru_maxrss would begin with the memory of this process.
    script = (
        "import re, sys; from hsca_fast.cli import main\n"
        "for path in sys.argv[1:]:\n"
        "    main(['score', path, '-o', 'out.csv', '--quiet'])\n"
        "    print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
    )
    command = [sys.executable, "-c", script, f"small.{extension}", f"large.{extension}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    small, large = (int(peak) / 1024 for peak in done.stdout.split())
    assert len(read_scores(tmp_path / "out.csv")) == (22 if extension == "txt" else 90_000)
    assert large - small < 30  # MiB, where the texts grew by 57
    assert large < 250  # Python, numpy and pyarrow take some 90 of these


# ---- what is said meanwhile


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal_only(corpus, monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("hsca_fast.cli.progress._SECONDS_BETWEEN_UPDATES", 0)
    assert hsca("score", corpus, "--format", "csv") == 0
    assert "MB/s  100%  0:00 left" in terminal.getvalue()
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setattr("sys.stderr", plain := io.StringIO())
    assert hsca("score", corpus, "--format", "csv") == 0
    assert "\r" not in plain.getvalue()


def test_progress_without_a_known_total(monkeypatch):
    monkeypatch.setattr("hsca_fast.cli.progress._SECONDS_BETWEEN_UPDATES", 0)
    progress = Progress(stream := io.StringIO(), enabled=True)
    progress.update(5_000_000, 0)
    assert "5 MB" in stream.getvalue()
    assert "left" not in stream.getvalue()


def test_clock():
    assert [_clock(s) for s in (0, 59.6, 3599, 3600, 90_061)] == [
        "0:00",
        "1:00",
        "59:59",
        "1:00:00",
        "25:01:01",
    ]


def test_failures_cannot_move_the_cursor():
    log = FailureLog(Progress(stream := io.StringIO(), enabled=False))
    log.add(InputError("a\x1b[2J\n.txt", "gone"))
    assert stream.getvalue() == "hsca: a\\x1b[2J\\n.txt: gone\n"


def test_module_runs_as_the_command(corpus):
    done = subprocess.run([*HSCA, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("hsca ")
    assert np.all([part.isdigit() for part in done.stdout.split()[1].split(".")[:2]])


@pytest.mark.parametrize("filters", ["", "error"])
def test_failures_of_a_model_are_added_up_over_batches(tmp_path, filters):
    with open(tmp_path / "many.jsonl", "w") as file:
        file.writelines(json.dumps({"text": "A cat sat on the mat. " * 1000}) + "\n" for _ in range(1500))
    command = [*HSCA, "score", "many.jsonl", "--quiet", "-o", "out.csv", "--domain-model", "none.onnx"]
    environment = {**os.environ, "PYTHONWARNINGS": filters}
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0
    assert ended.stderr == (
        "hsca: warning: model 'none.onnx' cannot be read (No such file or directory): "
        "domain unclassified for 1500 texts\n"
    )


@pytest.mark.parametrize(
    "bad", ['name = "domain.foo"', "share = " + "1" * 5001, 'name = "metaphor"', "cues = " + "[" * 5000]
)
def test_a_bad_lexicon_is_a_usage_error(tmp_path, capsys, bad):
    (tmp_path / "x.toml").write_text(f"[[category]]\n{bad}\n" + ("" if "cues" in bad else "cues = []\n"))
    assert hsca("score", tmp_path, "--lexicon", tmp_path / "x.toml") == 2
    assert "x.toml:2: " in capsys.readouterr().err
