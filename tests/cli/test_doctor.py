import json
from importlib.metadata import version

from hsca_fast.cli import doctor, main


def test_doctor_tells_what_is_here(capsys):
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    told = {line[:12].strip(): line[13:] for line in lines}
    assert told["hsca_fast"] == version("hsca_fast")
    assert told["numpy"] == version("numpy")
    assert told["self check"] == "ok"
    assert told["simd"]


def test_doctor_says_what_a_missing_part_is_for(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "_version_of", lambda name: None)
    assert main(["doctor"]) == 0
    expected = "not installed: for Parquet files and Arrow tables: pip install 'hsca_fast[arrow]'"
    assert expected in capsys.readouterr().out


def test_doctor_as_json_fails_when_scoring_does(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "self_check", lambda: "scores are wrong")
    assert main(["doctor", "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["self_check"] == "scores are wrong"
    assert facts["parts"]["numpy"] == version("numpy")
    assert facts["threads"] >= 1
