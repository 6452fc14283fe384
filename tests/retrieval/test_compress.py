"""Compression against a plain statement of the rule, on planted near-duplicates, and on every bad input."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from retrieval_corpus import planted_duplicates

from hsca_fast import ChunkResult, Previews, ScoreCalibration, compress, default_embedder, extract_sentences
from hsca_fast._reference.dedup import components
from hsca_fast.ranking import estimate_tokens


def chunk(i, score=0.9, text="The keeper lit the lamp.", header="Guide > Lamps"):
    return ChunkResult(f"c{i}", "d", score, header, "guide.md", text)


def test_the_seeds_example():
    results = [chunk(i, s) for i, s in enumerate([0.95, 0.82, 0.8, 0.29, 0.3])]
    vectors = [[1, 0, 0], [0.95, 0.1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]
    kept, stats = compress(results, vectors)
    assert [each.chunk_id for each in kept] == ["c0", "c2", "c4"]
    assert kept == [results[0], results[2], results[4]]  # not rewritten
    assert stats.to_dict() == {
        "original_count": 5,
        "after_threshold": 4,
        "after_dedup": 3,
        "clusters_merged": 1,
        "removed": 1,
        "returned": 3,
        "tokens_before": 30,
        "tokens_after": 18,
        "truncated": False,
    }


@given(
    st.lists(st.tuples(st.floats(0, 1), st.lists(st.integers(-3, 3), min_size=3, max_size=3)), max_size=25),
    st.floats(0, 1),
    st.sampled_from([0.5, 0.8, 0.9, 1.0]),
    st.integers(0, 10),
)
@settings(max_examples=150)
def test_against_the_rule_in_plain_words(rows, min_score, threshold, top_n):
    results = [chunk(i, score) for i, (score, _) in enumerate(rows)]
    vectors = np.array([vector for _, vector in rows], float).reshape(len(rows), 3)
    kept, stats = compress(results, vectors, min_score=min_score, similarity_threshold=threshold, top_n=top_n)
    passed = [i for i, (score, _) in enumerate(rows) if score >= min_score]
    # Cosines count from a rounding below the threshold on.
    groups = components(vectors[passed].tolist(), threshold - 1e-6) if passed else []
    heads = [min(group, key=lambda j: (-results[passed[j]].score, j)) for group in groups]
    best = sorted((passed[j] for j in heads), key=lambda i: (-results[i].score, i))
    assert [each.chunk_id for each in kept] == [f"c{i}" for i in best[:top_n]]
    assert (stats.original_count, stats.after_threshold, stats.after_dedup) == (len(rows), len(passed), len(best))
    assert stats.clusters_merged == sum(len(group) > 1 for group in groups)
    assert stats.removed == len(passed) - len(best)


def test_planted_duplicates_are_reduced_and_the_rest_is_kept():
    corpus = planted_duplicates(seed=3)
    vectors = default_embedder().embed_documents([each.content for each in corpus.results])
    kept, stats = compress(corpus.results, vectors, top_n=len(corpus.results))
    ids = {each.chunk_id for each in kept}
    reduced = sum(len(group & ids) == 1 for group in corpus.groups)
    assert reduced >= 0.95 * len(corpus.groups)
    assert len(corpus.distinct - ids) <= 0.01 * len(corpus.distinct)
    assert stats.tokens_after <= 0.6 * stats.tokens_before


def test_budget_is_hard_and_said():
    results = [chunk(i, 1 - i / 10, text="word " * n) for i, n in enumerate([10, 10, 100, 1])]
    kept, stats = compress(results, np.eye(4), max_tokens=40)
    assert [each.chunk_id for each in kept] == ["c0", "c1"]
    assert stats.tokens_after == sum(estimate_tokens(each.content) for each in kept) <= 40
    assert stats.truncated
    assert compress(results, np.eye(4), max_tokens=0)[0] == []
    counted, _ = compress(results, np.eye(4), max_tokens=3, count_tokens=lambda text: 1)
    assert len(counted) == 3


def test_calibrated_scores():
    shift = ScoreCalibration(0.02, 150.0)
    results = [chunk(0, 0.031), chunk(1, 0.02), chunk(2, 0.005)]
    kept, stats = compress(results, np.eye(3), calibration=shift)
    assert [each.score for each in kept] == [pytest.approx(1 / (1 + math.exp(-1.65))), 0.5]
    assert stats.after_threshold == 2
    # One hopeless result is not lifted to 1.
    assert compress([chunk(0, 0.001)], [[1.0]], calibration=shift)[0] == []


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20), st.floats(-5, 5), st.floats(0.01, 300))
def test_calibration_is_monotone_and_within_its_range(scores, midpoint, steepness):
    found = ScoreCalibration(midpoint, steepness)(sorted(scores))
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found) >= 0).all()


def test_calibration_fits_what_was_judged():
    rng = np.random.default_rng(0)
    scores = rng.uniform(0, 1, 20_000)
    truth = ScoreCalibration(0.6, 12.0)
    fitted = ScoreCalibration.fit(scores, rng.uniform(size=len(scores)) < truth(scores))
    assert (fitted.midpoint, fitted.steepness) == (pytest.approx(0.6, abs=0.01), pytest.approx(12.0, rel=0.05))
    for bad, message in [
        (([0.1, 0.2], [1, 1]), "both kinds"),
        (([0.1, 0.1], [0, 1]), "all the same"),
        (([0.1, 0.9], [1, 0]), "turn the order"),
    ]:
        with pytest.raises(ValueError, match=message):
            ScoreCalibration.fit(*bad)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"min_score": 1.5}, ValueError, "min_score must be between 0.0 and 1.0, not 1.5"),
        ({"similarity_threshold": 0.4}, ValueError, "similarity_threshold must be between 0.5"),
        ({"top_n": -1}, ValueError, "top_n must be at least 0"),
        ({"top_n": True}, TypeError, "top_n must be an int"),
        ({"max_tokens": -1}, ValueError, "max_tokens"),
        ({"count_tokens": lambda text: "x"}, TypeError, "count_tokens must return an int, for result 0"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        compress([chunk(0)], [[1.0]], **arguments)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (1.2, r"results\[1\].score must be between 0 and 1, not 1.2"),
        (float("nan"), r"results\[1\].score must be finite"),
    ],
)
def test_bad_scores_are_named(score, message):
    with pytest.raises(ValueError, match=message):
        compress([chunk(0), chunk(1, score)], np.eye(2))


def test_shapes():
    assert compress([], np.empty((0, 4)))[1].original_count == 0
    with pytest.raises(ValueError, match="embeddings has 1 rows for 2 results"):
        compress([chunk(0), chunk(1)], [[1.0, 2.0]])
    # Results without an embedding repeat nothing.
    assert len(compress([chunk(0), chunk(1)], np.zeros((2, 3)))[0]) == 2
    assert len(compress([chunk(0), chunk(1)], np.ones((2, 3)), top_n=10**9)[0]) == 1


TEXT = "Fog came in. The keeper, old and slow, lit the lamp. Gulls slept on the wall! Who lit it? Rain fell for days."


@pytest.mark.parametrize("embedder", [None, default_embedder()])
@pytest.mark.parametrize("max_tokens", [0, 3, 12, 20, 1000])
def test_sentences_are_exact_in_order_and_within_the_budget(embedder, max_tokens):
    results = [
        chunk(0, text=TEXT),
        chunk(1, text=TEXT[::-1]),
        chunk(2, text=""),
        chunk(3, text="Ölkännchen — 漢字。 Ja!"),
    ]
    found = extract_sentences("who lit the lamp", results, max_tokens=max_tokens, embedder=embedder)
    assert sum(each.n_tokens for each in found) <= max_tokens
    for each in found:
        assert each.spans
        assert each.n_tokens == estimate_tokens(each.text)
        assert list(each.spans) == sorted(each.spans)
        assert all(sentence in each.result.content for sentence in each.sentences)
    if max_tokens == 1000:
        assert [each.result.chunk_id for each in found] == ["c0", "c1", "c3"]
        assert found[0].text == TEXT


def test_the_sentence_that_answers_is_taken():
    found = extract_sentences("who lit the lamp", [chunk(0, text=TEXT)], max_tokens=12)
    assert found[0].sentences == ["The keeper, old and slow, lit the lamp."]
    rare = extract_sentences("lamp rain", [chunk(0, text="The lamp. A lamp. No lamp. Lamp rain.")], max_tokens=3)
    assert rare[0].sentences == ["Lamp rain."]


def test_a_counter_that_charges_more_for_the_whole_is_obeyed():
    found = extract_sentences(
        "lamp",
        [chunk(0, text="One lamp. Two lamps. Three lamps.")],
        max_tokens=20,
        count_tokens=lambda t: len(t.split()) ** 2,
    )
    assert [each.n_tokens for each in found] == [16]


def test_previews_lead_back():
    long = "word " * 200 + "end."
    results = [
        chunk(0, text=TEXT),
        chunk(1, text=long),
        replace(chunk(2, text=long), header_path=""),
        chunk(3, text="..."),
    ]
    previews = Previews(results)
    assert [each.preview for each in previews] == [
        "Fog came in.",
        "Guide > Lamps (201 words)",
        f"{'word ' * 16}... (201 words)",
        "Guide > Lamps",
    ]
    assert [previews.expand(each.chunk_id) for each in previews] == results
    assert previews[1].n_tokens == estimate_tokens(long)
    assert previews[0].to_dict()["chunk_id"] == "c0"
    with pytest.raises(KeyError):
        previews.expand("c9")
    with pytest.raises(ValueError, match=r"results\[1\] has the id 'c0'"):
        Previews([chunk(0), chunk(0)])
