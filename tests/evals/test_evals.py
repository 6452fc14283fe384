"""The evals on a few cases; `hsca eval` runs them in full."""

import json
import random

import numpy as np
import pytest

from hsca_fast.cli import main
from hsca_fast.evals import adversarial, bridging, fidelity, improvement, macro, passages, segmentation, speed
from hsca_fast.evals.passages import HALVES, in_half, shipped_passages
from hsca_fast.evals.report import EvalReport, Figure, wilson_interval
from hsca_fast.types import ContextSnapshot


@pytest.fixture(scope="module")
def dev():
    return in_half(shipped_passages(), "dev")


def test_halves_share_no_group():
    passages = shipped_passages()
    groups = {half: {p.group for p in passages if p.half == half} for half in HALVES}
    assert not groups["dev"] & groups["held-out"]
    assert all(len(in_half(passages, half)) == 10 for half in HALVES)


def test_wilson_interval_against_published_values():
    # Newcombe 1998, table I: 81/263, 15/148, 0/20, 1/29
    for passed, cases, low, high in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        assert wilson_interval(passed, cases) == pytest.approx((low, high), abs=6e-5)
    with pytest.raises(ValueError, match="passed"):
        wilson_interval(3, 2)


def test_a_figure_below_its_target_fails():
    assert not Figure("x", 89, 100, 0.9).passed
    assert Figure("x", 90, 100, 0.9).passed
    assert not Figure("x", 0, 0, 0.0).passed


def test_report_tells_criterion_interval_and_failures():
    report = EvalReport("9", "T", "C", {"held-out": (Figure("x", 1, 2, 0.9),)}, ("case 7",))
    text = report.to_text()
    assert all(part in text for part in ("C", "50.0%", "[9.5%, 90.5%]", "FAIL", "case 7", "NOT PASSED"))
    assert json.loads(json.dumps(report.to_dict()))["figures"]["held-out"][0]["passed"] is False


def test_beats_are_built_as_told(dev):
    beats = fidelity.make_beats(dev, 20, 1)
    assert beats == fidelity.make_beats(dev, 20, 1)
    for beat in beats:
        assert 8 <= len(beat.turns) <= 11
        assert len(beat.turns[beat.aside]) >= 1000
        assert sum(len(s.chunks) for s in fidelity.fold(beat.turns)) == len(beat.turns)


def test_the_topic_leaves_out_what_the_source_leaves_open():
    assert fidelity.topic_of({"legal": 0.9, "medical": 0.5, "cross_domain": 1.0}, ["legal"]) == "medical"
    assert fidelity.topic_of({"unclassified": 1.0}, []) is None


def test_fidelity_notices_a_wrong_topic(dev):
    beats = fidelity.make_beats(dev, 30, 2)
    missed, _ = fidelity.measure(beats)
    assert len(missed) <= 9
    shifted = [fidelity.Beat(b.turns, b.aside, "poetry" if b.label != "poetry" else "legal", (), b.name) for b in beats]
    assert len(fidelity.measure(shifted)[0]) >= 27


def test_history_marks_central_turns_as_hits(dev):
    (beat,) = fidelity.make_beats(dev, 1, 3)
    log = improvement.interactions([beat])
    assert [hit for _, _, hit in log[0].triples()] == [i != beat.aside for i in range(len(beat.turns))]


def summaries(*rows):
    return [
        ContextSnapshot(str(i), [], 0.5, dict.fromkeys(row, 1.0), i, False, created_at=0.0)
        for i, row in enumerate(rows)
    ]


def test_turns_of_counted_sentences():
    text = "1. 1.1. The party shall pay the fee. Mr Smith. The other party shall not pay it."
    assert passages.turns_of(text, random.Random(0), sentences=(1, 1), least_words=5) == [
        "1. 1.1. The party shall pay the fee.",
        "Mr Smith. The other party shall not pay it.",
    ]
    assert len(passages.turns_of(text, random.Random(0), sentences=(1, 1))) > 2


def test_passages_without_sentences_are_refused():
    empty = passages.Passage("books", "nobody", "legal", (), "1. 2. 3.")
    with pytest.raises(ValueError, match="legal"):
        passages.turns_from(empty, [empty], random.Random(0), 3, sentences=(4, 7), least_words=5)


def test_text_tiling_is_that_of_nltk(monkeypatch):
    nltk = pytest.importorskip("nltk.tokenize")
    turns = [p for p in speed.sample_text().split("\n\n") if len(p) > 80][:14]
    fast = segmentation.text_tiling(turns, 10, 3)
    monkeypatch.setattr(segmentation, "_tokenizer", lambda: nltk.TextTilingTokenizer)
    assert fast
    assert fast == segmentation.text_tiling(turns, 10, 3)


def test_stretches_are_where_domains_change():
    rows = [["legal"]] * 4 + [["poetry"]] * 5 + [["legal", "poetry"]] * 5 + [["legal"]] * 4
    found = macro.stretches(summaries(*rows))
    assert [(s.begin, s.end, sorted(s.domains)) for s in found] == [
        (0, 4, ["legal"]),
        (4, 9, ["poetry"]),
        (9, 14, ["legal", "poetry"]),
        (14, 18, ["legal"]),
    ]
    assert macro.stretches([]) == []


def test_journeys_are_followed_and_wrong_ones_are_not(dev):
    labels = {label: dev[label] for label in ("legal", "poetry", "historical", "medical")}
    config = macro.ScoringConfig(domain_model=macro.paragraph_domains)
    fine = macro.TuningParameters(snapshot_coherence_threshold=0.3)
    right = wrong = 0
    for journey in macro.make_journeys(labels, 12, 4):
        snapshots = macro.fold(journey.turns, fine, config=config)
        right += macro.changes_match(journey, snapshots)
        wrong += macro.changes_match(journey, snapshots[::-1][: len(snapshots) // 2])
    assert right >= 9
    assert wrong == 0


def test_tf_idf_equals_scikit_learn():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    documents = ["the lamp lit the harbour", "boats came into the harbour", "each boat had a lamp and a lamp"]
    vectorizer = text.TfidfVectorizer(token_pattern=r"[a-z]+")
    rows = vectorizer.fit_transform(documents)
    wanted = (rows @ vectorizer.transform(["lamp harbour"]).T).toarray().ravel()
    np.testing.assert_allclose(adversarial.tf_idf(["lamp", "harbour"], documents), wanted, atol=1e-12)


@pytest.mark.parametrize("kind", adversarial.KINDS)
def test_adversaries_are_full_of_the_query(dev, kind):
    attacks = [a for a in adversarial.make_attacks(dev, 8, 5) if f" {kind}," in a.name]
    assert attacks
    for attack in attacks:
        *densities, dense = (
            sum(w in attack.query for w in words) / len(words)
            for words in map(adversarial.words_of, attack.documents[1:])  # the query is from the first
        )
        assert dense > 5 * sum(densities) / len(densities)
        assert adversarial.score_texts(attack.documents[-1:]).layer1_score[0] <= 0.5


def test_the_tortoise_and_the_hare():
    pair = bridging.Pair(bridging.RABBIT, bridging.TORTOISE_AND_HARE, "narrative", "")
    assert bridging.shared_weight(pair) >= bridging.SHARED
    assert "rabbit" not in " ".join(bridging.TORTOISE_AND_HARE).lower()
    assert "hare" not in " ".join(bridging.RABBIT).lower()


def test_sides_of_a_pair_use_different_words(dev):
    for pair in bridging.make_pairs(dev, ["historical", "narrative"], 5, 6):
        one = pair.name.split()[1]
        assert one in " ".join(pair.before).lower()
        assert one not in " ".join(pair.after).lower().split()


def test_hsca_eval(monkeypatch, capsys):
    monkeypatch.setattr(adversarial, "CASES", 8)
    assert main(["eval", "4"]) == 0
    assert "PASSED on the held-out half" in capsys.readouterr().out
    assert main(["eval", "4", "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["passed"]
    assert report["figures"]["held-out"][0]["cases"] == 8
    monkeypatch.setattr(adversarial, "LOW", 0.0)
    assert main(["eval", "4"]) == 1


def test_hsca_eval_bad_input(tmp_path, capsys):
    assert main(["eval", "boundaries"]) == 2
    assert main(["eval", "1", "--data", str(tmp_path / "none")]) == 2
    assert main(["eval", "1", "--data", str(tmp_path)]) == 2
    assert "classic_books" in capsys.readouterr().err
