"""The pipeline as a whole: the score against the oracle, observation that changes nothing, failures that stay small."""

import json

import numpy as np
import pytest
from retrieval_stores import (
    DAY,
    EVERYTHING,
    NOW,
    WORDS,
    busy_index,
    fill,
    folder_bytes,
    open_index,
    outcome,
    random_profile,
    random_texts,
)

from hsca_fast import RetrievalError, RetrievalPipeline, RetrievalProfile
from hsca_fast._reference import activity
from hsca_fast._reference.relevance_blend import blended_relevance, dealt_relevance
from hsca_fast._reference.two_pass import second_pass_score
from hsca_fast.ranking import extract_keywords, keyword_coverage
from hsca_fast.retrieval.evidence import Recalled
from hsca_fast.retrieval.hooks import HOOKS
from hsca_fast.retrieval.phases.phase import Phase
from hsca_fast.retrieval.pipeline import PHASES
from hsca_fast.retrieval.profile import MAX_BOOST, MAX_WING_WEIGHT


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    index, ids = busy_index(tmp_path_factory.mktemp("busy") / "index")
    with index:
        yield index, ids


def pipeline(index, profile=None, **options):
    return RetrievalPipeline(index, profile, clock=lambda: NOW, **options)


def test_scores_are_those_of_the_formulas(busy):
    index, _ = busy
    profile = RetrievalProfile(candidate_pool_multiplier=4, wing_diversity_weight=0.0, exact_dedup_enabled=False)
    query = "lamp oil in the storm"
    found = pipeline(index, profile).run(query, k=5, dry_run=True, explain=True)
    hits = index.query(query, 20)
    relevance = dealt_relevance([blended_relevance(hit.vector_score, hit.lexical_score or 0.0) for hit in hits])
    log = list(index.access_log())
    expected = {}
    for hit, relevant in zip(hits, relevance, strict=True):
        record = index.get(hit.id)
        n = sum(hit.id in ids for at, _, _, ids in log if at >= NOW - 30 * DAY)
        together = sum(
            sum(other.id in ids for other in hits) - 1
            for at, _, _, ids in log
            if hit.id in ids and at >= NOW - 90 * DAY
        )
        coverage = keyword_coverage(extract_keywords(query), [hit.text])[0]
        age = NOW - record.timestamp
        score = second_pass_score(relevant, 1.0, coverage, kappa=profile.kappa)
        score *= activity.age_factor(age, 90)
        score *= activity.use_factor(n, 0.3, 2.0) * activity.use_factor(together, 0.2, 1.4)
        expected[hit.id] = score * activity.novelty_factor(age, 24, 1.5)
    best = sorted(expected, key=lambda each: (-expected[each], each))[:5]
    assert [each.id for each in found.results] == best
    assert [each.score for each in found.results] == pytest.approx([expected[each] for each in best], rel=1e-6)
    assert any(each.score_breakdown["ltp_boost"] > 0 for each in found.results)
    assert any(each.score_breakdown["association_boost"] > 0 for each in found.results)


def test_parts_sum_to_the_score_exactly(busy):
    index, _ = busy
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(40):
        query = " ".join(rng.choice(WORDS, 3))
        found = pipeline(index, random_profile(rng)).run(query, explain=True, candidate_trace=True, dry_run=True)
        parts = [each.score_breakdown for each in found.results] + list(
            found.pipeline_trace["candidate_scores"].values()
        )
        for breakdown in parts:
            values = [value for name, value in breakdown.items() if name != "final_score"]
            for order in (values, values[::-1]):
                total = 0.0
                for value in order:
                    total += value
                assert total == breakdown["final_score"]
            seen |= {name for name, value in breakdown.items() if value}
        assert [each.score for each in found.results] == [each.score_breakdown["final_score"] for each in found.results]
    assert {
        "cosine_similarity",
        "lexical_match",
        "age_decay",
        "ltp_boost",
        "mmr_penalty",
        "wing_diversity_penalty",
    } <= seen


def test_each_kind_of_evidence_has_its_own_part(busy):
    """A word that matched counts for a record, not against it."""
    index, _ = busy
    found = pipeline(index, RetrievalProfile(axes_enabled=())).run("lamp oil", explain=True, dry_run=True)
    assert any(each.lexical for each in found.results)
    for each in found.results:
        parts = each.score_breakdown
        assert parts["cosine_similarity"] == pytest.approx(blended_relevance(each.cosine, 0.0))
        assert parts["lexical_match"] == pytest.approx(blended_relevance(0.0, each.lexical or 0.0))
        assert parts["lexical_match"] >= 0.0


def test_dx_flags_off_identical_results(busy):
    index, _ = busy
    rng = np.random.default_rng(6)
    for _ in range(30):
        profile = random_profile(rng)
        query = " ".join(rng.choice(WORDS, 3))
        plain = pipeline(index, profile).run(query, dry_run=True)
        watched = pipeline(index, profile)
        seen = []
        for name in HOOKS:
            watched.register_hook(name, seen.append)
            watched.register_hook(name, lambda context: context.clear())
        observed = watched.run(query, dry_run=True, explain=True, candidate_trace=True)
        assert outcome(observed) == outcome(plain)
        assert [each.notes for each in observed.results] == [each.notes for each in plain.results]
        assert seen


def test_gamma_zero_is_plain_mmr_to_the_bit(busy):
    index, _ = busy
    rng = np.random.default_rng(7)
    for _ in range(20):
        base = {
            "candidate_pool_multiplier": int(rng.integers(1, 8)),
            "mmr_enabled": True,
            "mmr_lambda": float(rng.uniform()),
        }
        query = " ".join(rng.choice(WORDS, 3))
        zero = pipeline(index, RetrievalProfile(**base, wing_diversity_weight=0.0)).run(query, dry_run=True)
        # The same records without any wings.
        bare = pipeline(index, RetrievalProfile(**base, wing_diversity_weight=0.3))
        bare._phases = [phase for phase in bare._phases if phase.name != "cross_wing_balancing"]
        off = RetrievalProfile(**base, wing_diversity_weight=0.0)
        assert outcome(zero) == outcome(bare.run(query, profile=off, dry_run=True))
        assert "cross_wing_balancing" in zero.pipeline_trace["phases_skipped"]
        assert "wing_saturation" not in zero.pipeline_trace


def test_dry_run_writes_nothing_and_a_run_notes_what_it_returned(tmp_path):
    index, _ = busy_index(tmp_path / "index", n=30)
    with index:
        run = pipeline(index, EVERYTHING)
        before = folder_bytes(tmp_path / "index")
        found = run.run("lamp oil", dry_run=True, explain=True, candidate_trace=True)
        assert folder_bytes(tmp_path / "index") == before
        generation = index.generation
        again = run.run("lamp oil", session="s")
        assert outcome(again) == outcome(found)
        assert index.generation == generation + 1
        asked_for = [each.id for each in again.results if not each.pinned]
        assert 0 < len(asked_for) < len(again.results)
        assert list(index.access_log())[-1] == (NOW, "lamp oil", "s", asked_for)


def test_a_read_only_index_is_only_read(tmp_path):
    busy_index(tmp_path / "index", n=20)[0].close()
    with open_index(tmp_path / "index", mode="r") as index:
        found = pipeline(index).run("lamp")
    assert found.results
    assert found.warnings == []


def test_everything_on(busy):
    index, _ = busy
    found = pipeline(index, EVERYTHING).run("lamp oil storm", dry_run=True, candidate_trace=True, explain=True)
    trace = found.pipeline_trace
    names = [phase.name for phase in PHASES]
    assert trace["phases_applied"] == names
    assert trace["phases_skipped"] == trace["phases_failed"] == []
    assert set(names) | {"score_explainability"} == set(trace["phase_timing_ms"])
    assert all(value >= 0 for value in trace["phase_timing_ms"].values())
    # Every candidate is among the results or has a reason.
    reasons = {each["drawer_id"]: each for each in trace["candidate_trace"] if "drawer_id" in each}
    results = {each.id for each in found.results}
    assert not results & reasons.keys()
    assert results | reasons.keys() == set(trace["candidate_scores"])
    assert all(each["reason"] and each["dropped_at"] in names for each in reasons.values())
    for each in reasons.values():
        parts = dict(each["score_at_drop"])
        assert parts.pop("partial_score") == sum(parts.values())
    json.dumps(found.to_dict())


def test_without_flags_there_is_no_account(busy):
    index, _ = busy
    found = pipeline(index).run("lamp", dry_run=True)
    assert all(each.score_breakdown is None for each in found.results)
    assert not {"candidate_trace", "candidate_scores"} & found.pipeline_trace.keys()
    assert "score_explainability" not in found.pipeline_trace["phase_timing_ms"]


# ---- bad input


@pytest.mark.parametrize("query", ["", "   ", "\n"])
def test_an_empty_query_finds_nothing(busy, query):
    found = pipeline(busy[0]).run(query)
    assert found.results == []
    assert found.warnings == ["the query is empty: nothing was looked for"]
    assert found.replay_packet["results"] == []


def test_an_empty_index(tmp_path):
    with open_index(tmp_path / "index") as index:
        found = pipeline(index, EVERYTHING).run("lamp", explain=True, candidate_trace=True)
        assert (found.results, found.truncated, found.pipeline_trace["total_candidates_in"]) == ([], False, 0)
        assert found.warnings == ["the store has no live record"]
        index.append(["a lamp"], metadata={"wing": "work"})
        missed = pipeline(index).run("lamp", where={"wing": "home"})
        assert missed.warnings == ["the store has no live record that passes the filter"]
        assert pipeline(index).run("lamp", k=0).warnings == []


def test_a_query_of_a_megabyte(busy):
    found = pipeline(busy[0], RetrievalProfile(exact_dedup_enabled=False)).run("lamp storm " * 100_000, dry_run=True)
    assert len(found.results) == 5


@pytest.mark.parametrize("k", [0, 1, 10**9])
def test_k(busy, k):
    index, ids = busy
    found = pipeline(index, RetrievalProfile(exact_dedup_enabled=False)).run("lamp", k=k, dry_run=True)
    assert len(found.results) == min(k, len(ids))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"query": 3}, TypeError, "query must be str, not int"),
        ({"query": "lamp", "k": -1}, ValueError, "k must be at least 0, not -1"),
        ({"query": "lamp", "k": 1.5}, TypeError, "k must be an int"),
        ({"query": "lamp", "max_tokens": -1}, ValueError, "max_tokens must be at least 0"),
        (
            {"query": "lamp", "profile": {"min_score": 1}},
            TypeError,
            "profile must be a RetrievalProfile, a name or None",
        ),
        ({"query": "lamp", "now": float("nan")}, ValueError, "now must be finite"),
        ({"query": "a\ud800"}, ValueError, "query has the lone surrogate"),
    ],
)
def test_bad_arguments(busy, arguments, error, message):
    with pytest.raises(error, match=message):
        pipeline(busy[0]).run(**arguments)


def test_an_unknown_profile_is_the_default_with_a_warning(busy):
    found = pipeline(busy[0]).run("lamp", profile="flow", dry_run=True)
    assert found.pipeline_trace["profile_used"] == "default"
    assert found.warnings == [
        "there is no retrieval profile 'flow', only act, decide, observe, orient: the default is used"
    ]
    assert outcome(found) == outcome(pipeline(busy[0]).run("lamp", dry_run=True))
    assert pipeline(busy[0]).run("lamp", profile="decide", dry_run=True).pipeline_trace["profile_used"] == "decide"


def test_sources_of_the_profile(busy):
    found = pipeline(busy[0], "decide").resolve(overrides={"mmr_lambda": 0.1})
    assert (found.sources["half_life_days"], found.sources["mmr_lambda"]) == ("profile decide", "this query")
    given = pipeline(busy[0], RetrievalProfile(mmr_lambda=0.3)).resolve(overrides={"batch_size": 3, "kappa": None})
    assert (given.profile.mmr_lambda, given.profile.batch_size, given.profile.kappa) == (
        0.3,
        3,
        RetrievalProfile().kappa,
    )


# ---- failures


class Broken(Phase):
    name = "broken"

    def apply(self, run):
        run.order = run.order[:1]
        run.score = run.score * 0
        raise RuntimeError("no")


def test_a_phase_that_raises_is_named_and_left_out(busy):
    index, _ = busy
    run = pipeline(index)
    plain = run.run("lamp", dry_run=True)
    run._phases.insert(4, Broken())
    found = run.run("lamp", dry_run=True)
    assert outcome(found) == outcome(plain)
    assert found.pipeline_trace["phases_failed"] == [{"phase": "broken", "error": "RuntimeError: no"}]
    assert found.warnings == ["phase broken failed and was left out: RuntimeError: no"]
    assert found.pipeline_trace["phases_applied"][-1] == "budget"


class Careless(Phase):
    """Changes everything it can before it fails."""

    name = "careless"

    def apply(self, run):
        rows = run.add_candidates([Recalled(each, None, None) for each in STRANGERS])
        run.move(self.name, "pinned_boost", run.score + 1.0, "no reason")
        run.keep(run.order[1:], self.name, lambda row: ("no reason", {}))
        run.notes.setdefault(int(run.order[0]), {})["careless"] = True
        run.steps.append({"phase": self.name})
        run.pinned.append(int(rows[0]))
        run.trace["careless"] = run.truncated = run.stopped = True
        raise RuntimeError("no")


STRANGERS = []


def test_a_phase_that_raises_leaves_nothing_behind(busy):
    index, ids = busy
    run = pipeline(index, EVERYTHING)
    options = {"dry_run": True, "explain": True, "candidate_trace": True}
    plain = run.run("lamp", **options)
    STRANGERS[:] = [each for each in ids if each not in plain.pipeline_trace["candidate_scores"]][:3]
    assert STRANGERS
    run._phases.insert(6, Careless())
    found = run.run("lamp", **options)
    assert [each.to_dict() for each in found.results] == [each.to_dict() for each in plain.results]
    for each in found.results:
        assert sum(v for name, v in each.score_breakdown.items() if name != "final_score") == each.score
    for name in ("candidate_trace", "candidate_scores", "total_results_out"):
        assert found.pipeline_trace[name] == plain.pipeline_trace[name]
    assert "careless" not in found.pipeline_trace
    assert found.replay_packet["score_events"] == plain.replay_packet["score_events"]


def test_parts_sum_exactly_at_the_ends_of_the_ranges(busy):
    index, _ = busy
    profile = RetrievalProfile(
        ltp_max_boost=MAX_BOOST, association_max_boost=MAX_BOOST, association_coefficient=1e9, tagging_max_boost=MAX_BOOST,
        tagging_window_hours=1e9, wing_diversity_weight=MAX_WING_WEIGHT, mmr_enabled=True, mmr_lambda=0.1, mmr_final_k=10,
        candidate_pool_multiplier=5, query_expansion_enabled=True, query_expansion_boost=0.999,
    )  # fmt: skip
    found = pipeline(index, profile).run("lamp oil", dry_run=True, explain=True)
    assert max(abs(each.score) for each in found.results) > 300
    for each in found.pipeline_trace["candidate_scores"].values():
        parts = [value for name, value in each.items() if name != "final_score"]
        assert sum(parts) == sum(reversed(parts)) == each["final_score"]


def test_a_store_that_does_not_answer_fails_the_run(busy, monkeypatch):
    index, _ = busy
    monkeypatch.setattr(type(index), "query", lambda *args, **options: 1 / 0)
    with pytest.raises(RetrievalError, match="phase recall failed: ZeroDivisionError") as error:
        pipeline(index).run("lamp")
    assert error.value.phase == "recall"


def test_a_hook_that_raises_is_reported(busy):
    run = pipeline(busy[0])
    run.register_hook("post_recall", lambda context: 1 / 0)
    seen = []
    run.register_hook("post_recall", seen.append)
    found = run.run("lamp", dry_run=True)
    assert found.warnings == ["hook post_recall raised ZeroDivisionError: division by zero"]
    assert len(seen[0]["candidates"]) == 5
    assert outcome(found) == outcome(pipeline(busy[0]).run("lamp", dry_run=True))
    with pytest.raises(ValueError, match="there is no hook 'post_lunch'"):
        run.register_hook("post_lunch", print)
    with pytest.raises(TypeError, match="callable"):
        run.register_hook("post_recall", None)


def test_score_event_hook_sees_every_move(busy):
    run = pipeline(busy[0], RetrievalProfile(mmr_enabled=True, candidate_pool_multiplier=4))
    events = []
    run.register_hook("post_score_event", events.append)
    found = run.run("lamp storm", dry_run=True, explain=True)
    for each in found.results:
        deltas = [event["delta"] for event in events if event["drawer_id"] == each.id]
        assert sum(deltas) == each.score
    penalties = [event["delta"] for event in events if event["phase"] == "mmr"]
    assert len(penalties) == 5
    assert all(-1 <= delta <= 0 for delta in penalties)


def test_filter_before_counting(tmp_path):
    with open_index(tmp_path / "index") as index:
        fill(index, random_texts(200), wings=["big"] * 197 + ["small"] * 3)
        found = pipeline(index).run("lamp", where={"wing": "small"}, k=3)
        assert {each.wing for each in found.results} == {"small"}
        assert len(found.results) == 3
