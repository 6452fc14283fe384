"""Inputs and options that are wrong: a message and an exit code, never a traceback."""

import random
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hsca_fast.cli import main


def run(*arguments: str, cwd=None, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "hsca_fast", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, **options)


def test_damaged_parquet_never_ends_the_process(tmp_path):
    rng = random.Random(3)
    table = pa.table({"text": [f"Text number {i}. It has words." for i in range(50)]})
    pq.write_table(table, tmp_path / "good.parquet")
    good = (tmp_path / "good.parquet").read_bytes()
    for i in range(60):
        data = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        (tmp_path / f"bad{i:02}.parquet").write_bytes(data)
    result = run("score", ".", "--format", "csv", cwd=tmp_path)
    assert result.returncode in (0, 1), result.stderr
    assert "Traceback" not in result.stderr
    assert "good.parquet,49," in result.stdout


def test_two_text_columns(tmp_path, capsys):
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    pq.write_table(table, tmp_path / "two.parquet")
    assert main(["score", str(tmp_path / "two.parquet")]) == 1
    assert "more than one column 'text'" in capsys.readouterr().err


def test_unclosed_quote_is_a_failure(tmp_path, capsys):
    (tmp_path / "open.csv").write_text('id,text\n0,fine row\n1,"never closed\n2,b row\n')
    assert main(["score", str(tmp_path / "open.csv"), "--format", "csv"]) == 1
    captured = capsys.readouterr()
    assert "unexpected end of data" in captured.err
    assert captured.out.count("\n") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--threads", "5000"], "5000 is not between 0 and 1024"),
        (["--threads", "x"], "'x' is not a whole number"),
        (["--chunk-bytes", "1"], "1 is too small"),
        (["--window", "1"], "--window must be between 2 and 1000, not 1"),
        (["-"], "standard input (-) can be read once only"),
    ],
)
def test_usage_errors(arguments, message):
    result = run("score", "-", *arguments, input="")
    assert result.returncode == 2
    assert message in result.stderr


def test_closed_streams():
    shell = f"'{sys.executable}' -m hsca_fast"
    closed_input = subprocess.run(f"{shell} score - <&-", shell=True, capture_output=True, text=True, check=False)
    assert (closed_input.returncode, "standard input is closed" in closed_input.stderr) == (1, True)
    closed_output = subprocess.run(f"{shell} doctor >&-", shell=True, stderr=subprocess.PIPE, text=True, check=False)
    assert "Traceback" not in closed_output.stderr
