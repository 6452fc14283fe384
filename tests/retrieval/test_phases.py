"""Each phase by itself: what it changes, what it says, whom it tells."""

import numpy as np
import pytest
from retrieval_stores import DAY, NOW, fill, open_index, outcome, random_texts, word_embedder

from hsca_fast import RetrievalPipeline, RetrievalProfile, compact_session
from hsca_fast._native.vectors import dot_products
from hsca_fast.vectors.embedder import unit_rows


@pytest.fixture
def index(tmp_path):
    with open_index(tmp_path / "index") as opened:
        yield opened


def pipeline(index, *, hooks=(), embedder=None, **fields):
    made = RetrievalPipeline(index, RetrievalProfile(**fields), embedder=embedder, clock=lambda: NOW)
    for name, hook in hooks:
        made.register_hook(name, hook)
    return made


def drops(found):
    return {each["drawer_id"]: each for each in found.pipeline_trace["candidate_trace"] if "drawer_id" in each}


# ---- model guard


def test_guard_match(index):
    fill(index, ["The lamp."])
    seen = {}
    found = pipeline(index, hooks=[("post_model_guard", seen.update)]).run("lamp")
    assert found.pipeline_trace["model_guard"] == "MATCH"
    assert seen == {"match": True, "ingest_model": "words", "query_model": "words"}
    assert found.replay_packet["model_guard_result"] == "MATCH"


def test_guard_mismatch_warns_and_searches_on(index):
    fill(index, ["The lamp.", "The sea."])
    seen = {}
    found = pipeline(index, hooks=[("post_model_guard", seen.update)], embedder=word_embedder("other")).run(
        "lamp", candidate_trace=True
    )
    assert found.pipeline_trace["model_guard"] == "MISMATCH"
    assert found.warnings == ["ingest model: words (64), query model: other (64): results may be unreliable"]
    assert found.pipeline_trace["candidate_trace"][0] == {
        "phase": "model_guard",
        "action": "warn",
        "ingest_model": "words",
        "query_model": "other",
        "dim_ingest": 64,
        "dim_query": 64,
    }
    assert seen["match"] is False
    assert found.results[0].text == "The lamp."
    assert found.replay_packet["model_guard_result"] == "MISMATCH"


def test_guard_strict_refuses(index):
    fill(index, ["The lamp."])
    run = pipeline(index, embedder=word_embedder("other"), model_guard_strict=True)
    found = run.run("lamp", candidate_trace=True)
    assert found.results == []
    assert found.warnings == ["ingest model: words (64), query model: other (64): refused"]
    assert found.pipeline_trace["error"] == found.warnings[0]
    assert found.pipeline_trace["candidate_trace"][0]["action"] == "block"
    assert found.pipeline_trace["phases_applied"] == ["model_guard"]
    off = pipeline(index, embedder=word_embedder("other"), model_guard=False, model_guard_strict=True).run("lamp")
    assert len(off.results) == 1
    assert "model_guard" not in off.pipeline_trace


def test_vectors_of_another_width_are_not_compared(index):
    from hsca_fast import HashEmbedder

    fill(index, ["The lamp.", "The sea."])
    found = pipeline(index, embedder=HashEmbedder(dim=32)).run("lamp")
    assert [each.text for each in found.results] == ["The lamp."]
    assert found.results[0].cosine is None


# ---- query expansion


def test_expansion_asks_with_words_of_past_results(index):
    ids = fill(index, ["lamp wick trimming", "lamp glass", "wick oil gull", "sea storm", "rope net"])
    index.touch(ids[:1], query="lamp care", at=NOW - DAY)
    base = {"mmr_final_k": 2, "half_life_days": 0, "axes_enabled": []}
    plain = pipeline(index, **base).run("lamp", dry_run=True)
    seen = {}
    fields = {
        "query_expansion_enabled": True,
        "query_expansion_similarity_threshold": 0.5,
        "query_expansion_max_terms": 2,
    }
    found = pipeline(index, hooks=[("post_query_expansion", seen.update)], **base, **fields).run(
        "lamp", k=4, dry_run=True, explain=True
    )
    assert seen == {"terms": ["trimming", "wick"]}
    assert found.pipeline_trace["query_expansion_terms"] == ["trimming", "wick"]
    assert len(plain.results) == 2
    by_text = {each.text: each for each in found.results}
    direct = by_text["lamp glass"].score_breakdown
    assert direct["query_expansion_penalty"] == 0
    # Nothing new can come when the pool holds all that the query finds.
    far = pipeline(index, **base, **fields).run("lamp", k=1, dry_run=True, explain=True)
    assert far.pipeline_trace["total_candidates_in"] >= 1
    none = pipeline(index, **base, **fields).run("rope", dry_run=True)
    assert none.pipeline_trace["query_expansion_terms"] == []


def test_what_only_a_term_finds_keeps_a_part_of_its_score(index):
    ids = fill(index, ["lamp wick", "wick wick wick", "gull", "sea"])
    index.touch(ids[:1], query="lamp care", at=NOW - DAY)
    run = pipeline(
        index,
        query_expansion_enabled=True,
        query_expansion_similarity_threshold=0.5,
        axes_enabled=[],
        candidate_pool_multiplier=2,
        wing_diversity_weight=0.0,
    )
    found = run.run("lamp", k=1, dry_run=True, explain=True)
    penalties = {i: parts["query_expansion_penalty"] for i, parts in found.pipeline_trace["candidate_scores"].items()}
    assert penalties[ids[0]] == 0
    assert len(penalties) >= 2


# ---- supersede


def test_marks_of_the_store_are_shown(index):
    old, new = fill(index, ["lamp cost ten", "lamp cost twelve"])
    index.supersede(old, new)
    found = pipeline(index).run("lamp cost", dry_run=True)
    notes = {each.id: each.notes for each in found.results}
    assert notes == {old: {"superseded": {"by": new, "confidence": "explicit", "similarity": 1.0}}, new: {}}


@pytest.mark.parametrize(
    ("gap", "text", "confidence"),
    [
        (40, "lamp cost ten", "high"),
        (20, "lamp cost ten", "medium"),
        (8, "lamp cost ten", "low"),
        (6, "lamp cost ten", None),
    ],
)
def test_supersede_by_likeness_and_date(index, gap, text, confidence):
    old, new = fill(index, [text + ".", "Lamp cost ten"], ages=[50 + gap, 50])
    seen = {}
    fields = {"supersede_filter_enabled": True, "exact_dedup_enabled": False}
    found = pipeline(index, hooks=[("post_supersede", seen.update)], **fields).run("lamp cost", dry_run=True)
    assert {each.id for each in found.results} == {old, new}
    note = next(each.notes for each in found.results if each.id == old)
    assert note.get("superseded", {}).get("confidence") == confidence
    assert [each["drawer_id"] for each in seen["superseded"]] == ([old] if confidence else [])
    filtered = pipeline(index, **fields, supersede_action="filter").run("lamp cost", dry_run=True, candidate_trace=True)
    assert ({each.id for each in filtered.results} == {new}) == (confidence is not None)
    if confidence:
        assert drops(filtered)[old]["dropped_at"] == "supersede"
        assert drops(filtered)[old]["superseded_by"] == new


def likeness_by_pairs(cosines, ages, ids, threshold, gap, most):
    """The same, a pair at a time."""
    pairs = []
    for i in range(len(ids)):
        for j in range(len(ids)):
            days = np.floor(ages[i] - ages[j])
            if cosines[i, j] >= threshold and ages[i] > ages[j] and days >= gap:
                near = cosines[i, j]
                level = 1 if near >= 0.93 and days >= 30 else 2 if near >= 0.86 and days >= 14 else 3
                pairs.append((level, -near, ids[j], i))
    found = {}
    for level, negative, newer, i in sorted(pairs):
        if ids[i] not in found and len(found) < most:
            found[ids[i]] = ("", "high", "medium", "low")[level], float(-negative), newer
    return found


@pytest.mark.parametrize(("seed", "most"), [(0, 10), (1, 3), (2, 100)])
def test_supersede_by_likeness_is_that_of_all_pairs(index, seed, most):
    rng = np.random.default_rng(seed)
    ages = rng.integers(0, 60, 40).astype(float).tolist()
    ids = fill(index, random_texts(40, seed, words=5), ages=ages)
    found = pipeline(
        index, axes_enabled=[], supersede_filter_enabled=True, supersede_similarity_threshold=0.6,
        supersede_max_candidates=most, exact_dedup_enabled=False,
    ).run("lamp tower sea stone", k=40, dry_run=True)  # fmt: skip
    units = unit_rows(index.vectors(ids))
    expected = likeness_by_pairs(dot_products(units, units), ages, ids, 0.6, 7, most)
    marked = {each.id: each.notes["superseded"] for each in found.results if each.notes}
    assert 0 < len(expected) <= most
    assert {each: (note["confidence"], note["similarity"], note["by"]) for each, note in marked.items()} == expected


# ---- consolidation


def test_summaries_stand_for_their_sources(index):
    texts = [f"{text} lamp" for text in random_texts(8, words=12)]
    index.append(texts, metadata={"session": "s1"}, timestamps=[NOW - 100 * DAY + i for i in range(8)])
    compact_session(index.session("s1"), keep_recent=2, target_size=6, clock=lambda: NOW)
    (summary,) = [r for batch in index.iter_records() for r in batch if r.role == "summary"]
    found = pipeline(index, axes_enabled=[]).run("lamp", k=6, dry_run=True, candidate_trace=True)
    assert [each.id for each in found.results].count(summary.id) == 1
    gone = drops(found)
    assert {each["dropped_at"] for each in gone.values()} == {"consolidation"}
    assert all(each["consolidated_into"] == summary.id for each in gone.values())
    nested = pipeline(index, axes_enabled=[], include_consolidated_sources=True).run("lamp", k=6, dry_run=True)
    (note,) = [each.notes for each in nested.results if each.id == summary.id]
    assert set(note["consolidated_sources"]) == gone.keys()
    raw = pipeline(index, axes_enabled=[], include_consolidated_summaries=False).run("lamp", k=6, dry_run=True)
    assert summary.id not in {each.id for each in raw.results}


def test_a_summary_that_does_not_pass_the_filter_takes_no_place(index):
    texts = [f"{text} lamp" for text in random_texts(8, words=12)]
    ids = index.append(
        texts, metadata={"session": "s1", "wing": "w"}, timestamps=[NOW - 100 * DAY + i for i in range(8)]
    )
    compact_session(index.session("s1"), keep_recent=2, target_size=6, clock=lambda: NOW)
    (summary,) = [r for batch in index.iter_records() for r in batch if r.role == "summary"]
    assert "wing" not in summary.metadata
    found = pipeline(index, axes_enabled=[]).run("lamp", k=9, where={"wing": "w"}, dry_run=True)
    assert {each.id for each in found.results} == set(ids)


# ---- threshold


def test_nothing_found_is_said_of_unrounded_scores(index):
    fill(index, ["lamp wick oil sea"])
    plain = pipeline(index, axes_enabled=[]).run("lamp gull", dry_run=True)
    (score,) = [each.score for each in plain.results]
    least = np.nextafter(score, 1.0)
    assert round(least, 12) == round(score, 12)
    found = pipeline(index, axes_enabled=[], min_score=float(least)).run(
        "lamp gull", dry_run=True, candidate_trace=True
    )
    assert found.results == []
    assert found.warnings == [f"nothing found: the best score, {score}, is below {least}"]
    assert next(iter(drops(found).values()))["reason"] == f"score {score} < {least}"
    assert outcome(pipeline(index, axes_enabled=[], min_score=score).run("lamp gull", dry_run=True)) == outcome(plain)


def test_least_similarity(index):
    fill(index, ["lamp", "lamp sea gull rope net stone wind"])
    found = pipeline(index, min_similarity=0.6).run("lamp", dry_run=True)
    assert [each.text for each in found.results] == ["lamp"]
    assert "nothing found: the best similarity" in pipeline(index, min_similarity=1.0).run("fog chart").warnings[0]


# ---- duplicates


def test_three_kinds_of_duplicates(index):
    long = "the keeper of the old lamp by the harbour went down the stair"
    ids = fill(
        index,
        [
            long,
            f"  {long} ",
            f"{long} now",
            "harbour stair old keeper lamp the of went down by the the",
            "sea",
        ],
    )
    fields = {"axes_enabled": [], "ngram_dedup_enabled": True, "semantic_dedup_enabled": True}
    seen = []
    found = pipeline(index, hooks=[("post_dedup", seen.append)], **fields).run(
        "keeper lamp", dry_run=True, candidate_trace=True
    )
    gone = drops(found)
    assert {gone[i]["dropped_at"] for i in gone} == {"exact_dedup", "ngram_dedup", "semantic_dedup"}
    assert len(found.results) == 2
    assert [each["phase"] for each in seen] == ["exact_dedup", "ngram_dedup", "semantic_dedup"]
    assert all(each["duplicate_of"] in ids for each in gone.values())
    kept = pipeline(index, axes_enabled=[], exact_dedup_enabled=False).run("keeper lamp", dry_run=True)
    assert len(kept.results) == 5


# ---- diversity


def test_mmr_relevance_is_the_score_of_the_pipeline(index):
    # The raw cosine would prefer the old record; its score does not.
    old, new = fill(index, ["lamp", "lamp sea"], ages=[900, 0])
    found = pipeline(index, mmr_enabled=True, mmr_lambda=0.99).run("lamp", k=1, dry_run=True)
    both = pipeline(index, mmr_enabled=True, mmr_lambda=0.99, candidate_pool_multiplier=2).run(
        "lamp", k=1, dry_run=True
    )
    assert [each.id for each in found.results] == [old]  # alone in the pool
    assert [each.id for each in both.results] == [new]


def test_mmr_leaves_out_what_repeats(index):
    ids = fill(index, ["lamp oil wick", "lamp oil wick now", "lamp sea gull", "rope"])
    run = pipeline(index, mmr_enabled=True, mmr_lambda=0.3, candidate_pool_multiplier=2, axes_enabled=[])
    found = run.run("lamp oil wick", k=2, dry_run=True, candidate_trace=True, explain=True)
    assert found.results[0].id == ids[0]
    assert ids[1] not in {each.id for each in found.results}
    entry = drops(found)[ids[1]]
    assert entry["dropped_at"] == "mmr"
    assert entry["reason"].startswith(f"similarity to {ids[0]} = 0.8")
    assert found.pipeline_trace["mmr"]["candidates_before_mmr"] == 4
    assert found.results[0].score_breakdown["mmr_penalty"] <= 0


def test_cross_wing_surfaces_small_wing(index):
    texts = [f"cambodia schema work{i}" for i in range(20)] + ["cambodia trip itinerary flight"]
    fill(index, texts, wings=["work"] * 20 + ["flights"])
    captured = {}
    run = pipeline(index, hooks=[("post_cross_wing", captured.update)], candidate_pool_multiplier=5)
    found = run.run("cambodia schema", dry_run=True, candidate_trace=True, explain=True)
    assert "flights" in {each["wing"] for each in captured["candidates_after"][:5]}
    assert "flights" not in {each["wing"] for each in captured["candidates_before"]}
    assert captured["wing_saturation_scores"] == {"work": 0.8, "flights": 0.2}
    assert "flights" in {each.wing for each in found.results}
    displaced = [each for each in drops(found).values() if each["dropped_at"] == "cross_wing_balancing"]
    (entry,) = displaced
    assert entry["reason"] == "wing 'work' already saturated (4/5 selected results)"
    assert entry["wing_saturation"] == 0.8
    assert entry["penalized_score"] == pytest.approx(entry["original_mmr_score"] - 0.3 * 0.8)
    assert sum(each["dropped_at"] == "top_k" for each in drops(found).values()) == 15
    assert "cross_wing_balancing" in found.pipeline_trace["phase_timing_ms"]
    assert found.replay_packet["wing_counts_at_query_time"] == {"work": 20, "flights": 1}
    # The second pick of a wing pays for the first.
    penalties = [each.score_breakdown["wing_diversity_penalty"] for each in found.results]
    assert penalties[0] == 0
    assert min(penalties) < 0


def test_both_diversities_report_their_own_time(index):
    fill(index, random_texts(30), wings=["a", "b", "c"] * 10)
    found = pipeline(index, mmr_enabled=True, candidate_pool_multiplier=4).run(
        "lamp", dry_run=True, candidate_trace=True
    )
    assert {"mmr", "cross_wing_balancing"} <= found.pipeline_trace["phase_timing_ms"].keys()
    assert {each["dropped_at"] for each in drops(found).values()} <= {"mmr", "cross_wing_balancing"}
    assert len(found.results) + len(drops(found)) == 20


def test_without_a_larger_pool_the_order_stays(index):
    fill(index, random_texts(30), wings=["a", "b", "c"] * 10)
    plain = pipeline(index, wing_diversity_weight=0.0).run("lamp oil", dry_run=True)
    assert outcome(pipeline(index).run("lamp oil", dry_run=True)) == outcome(plain)


# ---- pinned


def test_pinned_stand_in_front(index):
    ids = fill(index, ["oil in the shed", "sea chart", "lamp glass", "lamp wick", "rope"])
    for i in range(6):
        index.touch([ids[0]], query=f"where is it {i}", at=NOW - i * 3600)
    index.touch([ids[1]] * 1, query="chart", at=NOW - DAY)
    seen = {}
    fields = {"pinned_memory_enabled": True, "pinned_ltp_threshold": 1.5, "pinned_include_tagged": False}
    found = pipeline(index, hooks=[("post_pinned", seen.update)], **fields).run("lamp", k=2, dry_run=True, explain=True)
    assert found.results[0].id == ids[0]
    assert [each.pinned for each in found.results] == [True, False, False]
    # ltp of 6 retrievals, times the spread of six questions
    assert found.results[0].notes["pinning"] == pytest.approx((1 + 0.3 * np.log(7)) * (1 + 0.2 * 6))
    assert [each["drawer_id"] for each in seen["pinned"]] == [ids[0]]
    tight = pipeline(index, **fields, pinned_max_tokens=1).run("lamp", k=2, dry_run=True)
    assert not any(each.pinned for each in tight.results)


def test_new_records_are_pinned_for_a_while(index):
    ids = fill(index, ["fog bell", "lamp wick", "lamp oil"], ages=[1, 10, 10])
    found = pipeline(index, pinned_memory_enabled=True).run("lamp", k=1, dry_run=True)
    assert (found.results[0].id, found.results[0].pinned) == (ids[0], True)
    old = pipeline(index, pinned_memory_enabled=True, pinned_tagged_window_hours=12).run("lamp", k=1, dry_run=True)
    assert not any(each.pinned for each in old.results)


def test_what_is_only_pinned_is_not_counted_as_asked_for(index):
    """Otherwise a new record would be returned by every question, and pinned for ever by that."""
    ids = fill(index, ["fog bell", "lamp wick", "lamp oil"], ages=[1, 100, 100])
    run = pipeline(index, pinned_memory_enabled=True)
    for i in range(8):
        found = run.run(f"lamp {i}", k=2)
        assert ids[0] in {each.id for each in found.results if each.pinned}
    assert index.get(ids[0]).reference_count == 0
    assert index.get(ids[1]).reference_count == 8
    late = run.run("lamp", k=2, now=NOW + 20 * DAY, dry_run=True)
    assert ids[0] not in {each.id for each in late.results}


def test_pinned_pass_the_filter(index):
    secret, note = fill(index, ["lamp of the others", "lamp of ours"], wings=["theirs", "ours"], ages=[1, 1])
    for i in range(6):
        index.touch([secret], query=f"question {i}", at=NOW - 3600)
    run = pipeline(index, pinned_memory_enabled=True)
    assert run.run("lamp", dry_run=True).results[0].id == secret
    found = run.run("lamp", where={"wing": "ours"}, dry_run=True)
    assert [each.id for each in found.results] == [note]


# ---- budget


def test_budget(index):
    fill(index, [f"lamp {'oil ' * (10 * i)}" for i in range(1, 6)])
    seen = {}
    run = pipeline(index, hooks=[("post_budget", seen.update)], axes_enabled=[])
    whole = run.run("lamp", dry_run=True)
    assert not whole.truncated
    limit = sum(each.n_tokens for each in whole.results[:2]) + 1
    found = run.run("lamp", dry_run=True, max_tokens=limit, candidate_trace=True)
    assert outcome(found) == outcome(whole)[:2]
    assert found.truncated
    assert seen == {"truncated": True, "tokens": limit - 1}
    assert {each["dropped_at"] for each in drops(found).values()} == {"budget"}
    counted = RetrievalPipeline(index, RetrievalProfile(max_tokens=3), count_tokens=lambda text: 1, clock=lambda: NOW)
    assert len(counted.run("lamp", dry_run=True).results) == 3
    assert pipeline(index, max_tokens=0).run("lamp", dry_run=True).results == []
