import json

import pytest

from hsca_fast import SemanticIndex, default_embedder
from hsca_fast.cli import main

TEXTS = [
    "The lamp on the tower is broken. A storm broke it last night.",
    "The lamp on the tower is broken. A storm broke it last night!",
    "We sail at dawn with the fishing boats.",
    "Oil for the lamp is in the shed behind the house.",
    "Gulls nest on the cliff below the tower.",
]


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "memory"
    with SemanticIndex.open(path, embedder=default_embedder()) as index:
        index.append(TEXTS, metadata=[{"wing": "work"}] * 3 + [{"wing": "home"}] * 2)
    return str(path)


def test_query_explains(store, capsys):
    assert main(["query", store, "which lamp is broken?", "-k", "2", "--explain", "--trace"]) == 0
    out = capsys.readouterr().out
    assert "The lamp on the tower is broken." in out
    assert "cosine similarity" in out
    assert "final score" in out
    assert out.splitlines()[-1].startswith("2 of 2 candidates in ")


def test_query_as_json_with_filter_and_profile(store, capsys):
    arguments = ["query", store, "lamp", "--json", "--where", '{"wing": "home"}', "--profile", "observe", "--explain"]
    assert main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert {each["metadata"]["wing"] for each in told["results"]} == {"home"}
    assert told["pipeline_trace"]["profile_used"] == "observe"
    for each in told["results"]:
        parts = each["score_breakdown"]
        assert sum(value for name, value in parts.items() if name != "final_score") == each["score"]


def test_only_record_writes(store, capsys):
    main(["query", store, "lamp"])
    with SemanticIndex.open(store, embedder=default_embedder(), mode="r") as index:
        assert list(index.access_log()) == []
    main(["query", store, "lamp", "--record"])
    with SemanticIndex.open(store, embedder=default_embedder(), mode="r") as index:
        assert len(list(index.access_log())) == 1


def test_replay(store, tmp_path, capsys):
    packet = tmp_path / "why.json"
    assert main(["query", store, "lamp", "--profile", "orient", "--packet", str(packet)]) == 0
    capsys.readouterr()
    assert main(["replay", str(packet), "--json"]) == 0
    captured = capsys.readouterr()
    written = json.loads(packet.read_text())
    assert [[each["id"], each["score"]] for each in json.loads(captured.out)["results"]] == written["results"]
    assert "came out as in the packet" in captured.err
    written["results"][0][1] += 0.5
    packet.write_text(json.dumps(written))
    assert main(["replay", str(packet)]) == 1
    assert "DID NOT" in capsys.readouterr().err


def test_replay_refuses(store, tmp_path, capsys):
    packet = tmp_path / "why.json"
    main(["query", store, "lamp", "--packet", str(packet)])
    with SemanticIndex.open(tmp_path / "other", embedder=default_embedder()) as other:
        other.append(["x"])
    for arguments, message in [
        ([str(packet), "--store", str(tmp_path / "other")], "the packet is of store"),
        ([str(tmp_path / "none.json")], "cannot read"),
        ([__file__], "is no packet"),
    ]:
        capsys.readouterr()
        assert main(["replay", *arguments]) == 2
        assert message in capsys.readouterr().err
    packet.write_text("[]")
    assert main(["replay", str(packet), "--store", store]) == 2


def test_compress(store, capsys):
    assert main(["compress", store, "which lamp is broken?", "--min-score", "0.05", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    stats = told["compression_stats"]
    assert (stats["original_count"], stats["clusters_merged"], stats["removed"]) == (5, 1, 1)
    assert stats["tokens_after"] < stats["tokens_before"]
    assert len(told["results"]) == stats["returned"] == stats["after_dedup"] >= 2
    assert main(["compress", store, "which lamp is broken?", "--min-score", "0.05", "--max-tokens", "18"]) == 0
    assert "truncated to the budget" in capsys.readouterr().out


def test_compress_to_sentences_and_previews(store, capsys):
    common = ["compress", store, "which lamp is broken?", "--min-score", "0.05", "--json"]
    assert main([*common, "--sentences", "20"]) == 0
    told = json.loads(capsys.readouterr().out)
    (first, *_) = told["results"]
    assert told["compression_stats"]["returned"] == len(told["results"])
    assert told["compression_stats"]["tokens_after"] <= 20
    assert first["text"] == "The lamp on the tower is broken."
    assert first["spans"] == [[0, 32]]
    assert main([*common, "--previews"]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["preview"] == "The lamp on the tower is broken."
    assert main([*common, "--sentences", "1"]) == 0
    nothing = json.loads(capsys.readouterr().out)
    assert (nothing["results"], nothing["compression_stats"]["tokens_after"]) == ([], 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["query", "{none}", "lamp"], "none"),
        (["query", "{store}", "lamp", "--where", "x"], "--where is no JSON"),
        (["query", "{store}", "lamp", "--where", "[]"], "--where must be an object"),
        (["query", "{store}", "lamp", "-k", "-1"], "k must be at least 0"),
        (["query", "{store}", "lamp", "--profiles", "{none}"], "none"),
        (["compress", "{store}", "lamp", "--min-score", "7"], "min_score must be between"),
    ],
)
def test_usage_errors(store, tmp_path, capsys, arguments, message):
    filled = [each.format(store=store, none=tmp_path / "none") for each in arguments]
    assert main(filled) == 2
    assert message in capsys.readouterr().err


def test_an_unknown_profile_warns(store, capsys):
    assert main(["query", store, "lamp", "--profile", "flow"]) == 0
    assert "there is no retrieval profile 'flow'" in capsys.readouterr().err
