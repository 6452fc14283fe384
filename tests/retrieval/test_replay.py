"""A packet brings back ids, order and scores in another process, whatever became of the store since."""

import copy
import json
import subprocess
import sys

import numpy as np
import pytest
from retrieval_stores import (
    DAY,
    EVERYTHING,
    NOW,
    WORDS,
    busy_index,
    fill,
    open_index,
    outcome,
    random_profile,
    random_texts,
)

from hsca_fast import PacketError, RetrievalPipeline

IN_ANOTHER_PROCESS = """
import json, sys
sys.path[:0] = {path!r}
from hsca_fast import RetrievalPipeline
from retrieval_stores import open_index, outcome
with open_index({index!r}, mode="r") as index:
    pipeline = RetrievalPipeline(index)
    for line in open({packets!r}):
        packet = json.loads(line)
        found = pipeline.replay(packet)
        same = [list(each) for each in outcome(found)] == packet["results"] and found.pipeline_trace["reproduced"]
        events = all(sum(e["delta"] for e in packet["score_events"][r.id]) == r.score for r in found.results)
        print(int(same and events and not found.pipeline_trace["phases_failed"]))
"""


def replays_in_another_process(tmp_path, n, seed):
    rng = np.random.default_rng(seed)
    index, ids = busy_index(tmp_path / "index", n=80, seed=seed)
    texts = []
    with index:
        for _ in range(n):
            query = " ".join(rng.choice(WORDS, int(rng.integers(1, 5))))
            run = RetrievalPipeline(index, random_profile(rng), clock=lambda: NOW + float(rng.uniform(0, DAY)))
            found = run.run(query, dry_run=bool(rng.integers(4)))
            assert found.replay_packet["results"] == [list(each) for each in outcome(found)]
            texts.append(json.dumps(found.replay_packet))
        # The store goes on: more records, more uses, marks and archives.
        fill(index, random_texts(30, seed=seed + 1), wings=["new"] * 30, ages=[0.0] * 30)
        index.touch(ids[:20], query="lamp", at=NOW)
        index.supersede(ids[3], ids[9])
        index.archive(ids[10:14], reason="test")
    (tmp_path / "packets.jsonl").write_text("\n".join(texts) + "\n")
    code = IN_ANOTHER_PROCESS.format(
        path=[p for p in sys.path if p], index=str(tmp_path / "index"), packets=str(tmp_path / "packets.jsonl")
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_random_replays_in_a_fresh_process(tmp_path):
    assert replays_in_another_process(tmp_path, 60, 1) == ["1"] * 60


@pytest.mark.soak
def test_a_thousand_random_replays(tmp_path):
    assert replays_in_another_process(tmp_path, 1000, 2) == ["1"] * 1000


@pytest.fixture(scope="module")
def packet(tmp_path_factory):
    index, _ = busy_index(tmp_path_factory.mktemp("packet") / "index", n=40)
    with index:
        found = RetrievalPipeline(index, EVERYTHING, clock=lambda: NOW).run("lamp oil", dry_run=True)
        yield index, json.loads(json.dumps(found.replay_packet))


def test_a_packet_is_plain_and_full(packet):
    _, plain = packet
    assert plain["evidence"].keys() == {"models", "terms", "recalled", "wing_counts", "use", "pinned"}
    assert {"wing_counts_at_query_time", "model_guard_result", "score_events", "generation"} <= plain.keys()
    for record_id, score in plain["results"]:
        assert sum(event["delta"] for event in plain["score_events"][record_id]) == score


def test_another_store_is_refused_with_both_named(packet, tmp_path):
    index, plain = packet
    with open_index(tmp_path / "other") as other, pytest.raises(PacketError) as error:
        RetrievalPipeline(other).replay(plain)
    assert index.store_id in str(error.value)
    assert other.store_id in str(error.value)


def test_another_model_is_refused_with_both_named(packet):
    index, plain = packet
    changed = copy.deepcopy(plain)
    changed["model"]["name"] = "mpnet"
    with pytest.raises(PacketError, match=r"the packet is of model mpnet \(64, .*\), not of words \(64"):
        RetrievalPipeline(index).replay(changed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.pop("evidence"), "a replay packet has evidence, which this one has not"),
        (lambda p: p.update(version=99), "the packet is of version 99"),
        (lambda p: p["profile"].update(mmr_lambda=3), "damaged: a retrieval profile has 1 fault"),
        (lambda p: p.update(results=[["a"]]), "damaged"),
        (lambda p: p["evidence"].pop("recalled"), "damaged"),
        (lambda p: p["evidence"]["recalled"][0].__setitem__(0, "0" * 32), "damaged"),
    ],
)
def test_damaged_packets(packet, change, message):
    index, plain = packet
    changed = copy.deepcopy(plain)
    change(changed)
    with pytest.raises(PacketError, match=message):
        RetrievalPipeline(index).replay(changed)
    with pytest.raises(PacketError, match="a replay packet is a dict"):
        RetrievalPipeline(index).replay([])


@pytest.mark.parametrize(
    "change",
    [
        {"k": "5"},
        {"k": -1},
        {"query": 7},
        {"now": float("nan")},
        {"max_tokens": "9"},
        {"evidence": []},
        {"evidence": {"recalled": 3}},
    ],
)
def test_packets_of_wrong_types(packet, change):
    index, plain = packet
    with pytest.raises(PacketError, match="the packet is damaged: "):
        RetrievalPipeline(index).replay(copy.deepcopy(plain) | change)


def test_a_replay_after_everything_was_archived(tmp_path):
    index, ids = busy_index(tmp_path / "index", n=20)
    with index:
        found = RetrievalPipeline(index, EVERYTHING, clock=lambda: NOW).run("lamp oil", dry_run=True)
        assert found.results
        plain = json.loads(json.dumps(found.replay_packet))
        index.archive(ids[:10], reason="old")
        index.delete(ids[10:])
        again = RetrievalPipeline(index).replay(plain)
    assert again.pipeline_trace["reproduced"]
    assert outcome(again) == outcome(found)


def test_a_packet_that_lies_is_found_out(packet):
    index, plain = packet
    changed = copy.deepcopy(plain)
    changed["results"][0][1] += 2.0**-40
    found = RetrievalPipeline(index).replay(changed)
    assert found.pipeline_trace["reproduced"] is False
    assert found.warnings == ["the retrieval did not come out as in the packet"]
