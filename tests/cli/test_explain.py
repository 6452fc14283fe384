import io
import json
import re
import subprocess
import sys

import pytest

from hsca_fast import explain_text
from hsca_fast.cli import main

TEXT = "It might rain today. Never trust a forecast! The lovely café was closed, but who cares?"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_account(file, capsys):
    assert main(["explain", str(file)]) == 0
    out = capsys.readouterr().out
    found = explain_text(TEXT)
    assert f"layer1_score       {found.layer1_score:6.3f}" in out
    assert f"coherence_score    {found.coherence_score:6.3f}" in out
    assert f"flags              {', '.join(found.nuance_flags)}" in out
    assert "might[hedged]" in out
    assert "Never[absolute, instructional]" in out
    assert "not assessed" in out
    assert "sarcasm_model" in out
    assert "\x1b" not in out


def test_colours_do_not_change_the_words(file, capsys):
    main(["explain", str(file), "--color", "never"])
    plain = capsys.readouterr().out
    main(["explain", str(file), "--color", "always"])
    coloured = capsys.readouterr().out
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_json(file, capsys):
    assert main(["explain", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    found = explain_text(TEXT)
    assert told["layer1_score"] == found.layer1_score
    assert told["coherence"]["score"] == found.coherence_score
    assert [cue["text"] for cue in told["cues"]] == [cue.text for cue in found.cues]
    assert [sentence["compound"] for sentence in told["sentences"]] == found.sentence_compounds.tolist()


def test_standard_input_and_lexicon(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.toml").write_text('[[category]]\nname = "weather"\ncues = ["rain"]\n')
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert main(["explain", "-", "--lexicon", str(tmp_path / "mine.toml")]) == 0
    assert "rain[weather]" in capsys.readouterr().out


def test_long_texts_are_cut_short(tmp_path, capsys):
    (tmp_path / "long.txt").write_text("".join(f"Sentence number {i} is here. " for i in range(100)))
    assert main(["explain", str(tmp_path / "long.txt")]) == 0
    assert "... 60 more sentences (--all)" in capsys.readouterr().out
    assert main(["explain", str(tmp_path / "long.txt"), "--all"]) == 0
    assert "Sentence number 99" in capsys.readouterr().out


def test_a_text_cannot_talk_to_the_terminal(tmp_path, capsys):
    (tmp_path / "evil.txt").write_bytes(b"It might \x1b]0;title\x07 rain \x9b2J. \xff\xfe\n")
    assert main(["explain", str(tmp_path / "evil.txt")]) == 0
    out = capsys.readouterr().out
    assert not set(out) & {"\x1b", "\x07", "\x9b"}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["missing.txt"], 1, "cannot read missing.txt: No such file"),
        (["."], 1, "cannot read .: Is a directory"),
        (["a.txt", "--lexicon", "bad.toml"], 2, "bad.toml:3: category 'x': cue '!' has no words"),
        (["a.txt", "--domain-model", "magic"], 2, "--domain-model must be 'rules', 'linear', a callable or an .onnx"),
        (["a.txt", "--window", "1"], 2, "--window must be between 2 and 1000"),
    ],
)
def test_bad_input_gets_a_message(tmp_path, arguments, code, message):
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "bad.toml").write_text('[[category]]\nname = "x"\ncues = ["!"]\n')
    command = [sys.executable, "-m", "hsca_fast", "explain", *arguments]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (result.returncode, "Traceback" in result.stderr) == (code, False)
    assert message in result.stderr


def test_a_missing_model_is_a_warning(tmp_path, capsys):
    (tmp_path / "a.txt").write_text(TEXT)
    for options in ([], ["--json"]):
        assert main(["explain", str(tmp_path / "a.txt"), "--domain-model", "no_such.onnx", *options]) == 0
        out, errors = capsys.readouterr()
        assert "unclassified" in out
        assert errors.startswith("hsca: warning: model 'no_such.onnx' cannot be read")
        assert errors.count("\n") == 1


def test_names_of_categories_cannot_talk_to_the_terminal(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("A cat sat.")
    (tmp_path / "x.toml").write_text('[[category]]\nname = "\\u001b[31mred"\ncues = ["cat"]\n')
    assert main(["explain", str(tmp_path / "a.txt"), "--lexicon", str(tmp_path / "x.toml")]) == 0
    out = capsys.readouterr().out
    assert "[31mred" in out
    assert "\x1b" not in out
