import random

import pytest

from hsca_fast import TornFileWarning
from hsca_fast.context.tuning import HistoryLog, Tuner, TuningParameters, weighted_domains
from hsca_fast.types import ContextSnapshot, WeightedChunk


def snapshot(number, rows):
    """rows: (layer1, coherence, tags, flags)"""
    chunks = [
        WeightedChunk(f"{number}/{i}", "", layer1, tags, coherence, flags, None, created_at=0.0)
        for i, (layer1, coherence, tags, flags) in enumerate(rows)
    ]
    return ContextSnapshot(str(number), chunks, 0.5, {}, 0, False, created_at=0.0)


def history(n, *, signal=True, seed=0):
    """Queries that are answered by hedged chunks, each beside a heavier chunk about something else."""
    rng = random.Random(seed)
    log = HistoryLog()
    for number in range(n):
        rows = [(rng.uniform(0.2, 0.4), 0.6, ["legal"], ["hedged"]) for _ in range(2)]
        rows.append((rng.uniform(0.5, 0.9), 0.6, ["medical"], ["absolute"] if rng.random() < 0.5 else []))
        made = snapshot(number, rows)
        hits = [f"{number}/0", f"{number}/1"] if signal else [f"{number}/{rng.randrange(3)}"]
        log.record("?", [made], hits=hits)
    return log


def test_learns_which_flags_answer():
    report = Tuner(history(120)).tune()
    assert report.parameters.nuance_weights["hedged"] > 1.5
    assert report.fidelity_after > report.fidelity_before
    accepted = [c for c in report.changes if c.accepted]
    assert accepted
    for change in accepted:
        assert change.expected_gain > 0
        assert change.old != change.new
        assert "80 interactions searched, 40 judged" in change.evidence


@pytest.mark.parametrize("seed", range(4))
def test_never_worse_on_its_validation_split(seed):
    report = Tuner(history(60, signal=False, seed=seed), seed=seed).tune()
    assert report.fidelity_after >= report.fidelity_before


def test_same_history_same_result():
    assert Tuner(history(60), seed=3).tune() == Tuner(history(60), seed=3).tune()


def test_every_change_can_be_taken_back():
    report = Tuner(history(120)).tune()
    parameters = report.parameters
    for change in (c for c in report.changes if c.accepted):
        back = report.revert(change.parameter)
        assert back != parameters
    assert report.revert("nuance_weights.hedged").nuance_weights["hedged"] == 1.0
    assert report.before == TuningParameters()
    with pytest.raises(KeyError):
        report.revert("cooccurrence_window")


def test_too_little_history_changes_nothing():
    start = TuningParameters(snapshot_coherence_threshold=0.6)
    report = Tuner(history(19), parameters=start).tune()
    assert report.parameters == start
    assert report.changes == ()


def test_history_on_disk(tmp_path):
    log = history(3)
    log.save(tmp_path / "log.jsonl")
    path = tmp_path / "log.jsonl"
    loaded = HistoryLog.load(path)
    assert [loaded[i] for i in range(len(loaded))] == [log[i] for i in range(3)]  # every bit
    assert loaded.tear is None
    whole = path.read_text()
    for torn, n_lost in ((whole[:-20], len(whole.splitlines()[2]) + 1 - 20), ("".join(whole.splitlines(True)[:2]), 0)):
        path.write_text(torn)
        with pytest.warns(TornFileWarning, match="torn at line 3"):
            loaded = HistoryLog.load(path)
        assert [x.hits for x in (loaded[0], loaded[1])] == [log[0].hits, log[1].hits]
        assert (len(loaded), loaded.tear.n_lost) == (2, n_lost)
    path.write_text(whole.replace('"hits"', '"hit"'))
    with pytest.raises(ValueError, match=r"log\.jsonl, line 1: Interaction has no field 'hit'"):
        HistoryLog.load(path)


def test_hits_of_no_domain_say_nothing():
    log = HistoryLog()
    for number in range(60):
        tags = ["unclassified"] if number % 3 else ["legal"]
        made = snapshot(number, [(0.5, 0.5, tags, []), (0.5, 0.5, ["medical"], [])])
        log.record("?", [made], hits=[f"{number}/0"])
    report = Tuner(log).tune()
    assert 0 <= report.fidelity_before <= report.fidelity_after <= 1
    only = Tuner(HistoryLog([log[i] for i in range(60) if i % 3])).tune()
    assert (only.parameters, only.changes) == (TuningParameters(), ())


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"query": 3}, "query must be str"),
        ({"snapshots": [1]}, r"snapshots\[0\] must be a ContextSnapshot"),
        ({"hits": "x"}, "hits must be a collection of ids"),
        ({"cooccurrence_window": "5"}, "window must be an int"),
    ],
)
def test_records_of_the_wrong_type(options, names):
    with pytest.raises(TypeError, match=names):
        HistoryLog().record(**{"query": "?", "snapshots": [], "hits": []} | options)
    with pytest.raises(TypeError, match="history must be a HistoryLog"):
        Tuner([1])
    with pytest.raises(TypeError, match="parameters must be TuningParameters"):
        Tuner(history(3), parameters={})


def test_hit_of_no_chunk_is_refused():
    with pytest.raises(ValueError, match="'x'"):
        HistoryLog().record("?", [snapshot(0, [(0.5, 0.5, [], [])])], hits=["x"])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"snapshot_coherence_threshold": 1.5}, "snapshot_coherence_threshold"),
        ({"cooccurrence_window": 1}, "window"),
        ({"max_buffer_chunks": 0}, "max_buffer_chunks"),
        ({"nuance_weights": {"hedged": 3.0}}, "hedged"),
        ({"nuance_weights": {"loud": 1.0}}, "loud"),
    ],
)
def test_parameters_out_of_bounds(options, named):
    with pytest.raises(ValueError, match=named):
        TuningParameters(**options)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"snapshot_coherence_threshold": "0.5"}, "snapshot_coherence_threshold must be a number"),
        ({"max_buffer_chunks": 1.5}, "max_buffer_chunks must be an int"),
        ({"nuance_weights": [1]}, "nuance_weights must be a dict"),
        ({"nuance_weights": {"hedged": "1"}}, r"nuance_weights\['hedged'\] must be a number"),
    ],
)
def test_parameters_of_the_wrong_type(options, named):
    with pytest.raises(TypeError, match=named):
        TuningParameters(**options)


def test_weighted_domains_is_the_mean_of_the_summaries():
    one = snapshot(0, [(0.4, 0.5, ["legal"], []), (0.2, 0.5, ["medical"], [])])
    two = snapshot(1, [(0.9, 0.5, ["medical"], [])])
    # macro weights 0.3 and 0.9; summaries 2/3 legal + 1/3 medical, and medical
    found = weighted_domains([one, two])
    assert found == pytest.approx({"legal": 0.3 * 2 / 3 / 1.2, "medical": (0.3 / 3 + 0.9) / 1.2})
    assert weighted_domains([]) == {}
