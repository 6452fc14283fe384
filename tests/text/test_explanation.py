import numpy as np
import pytest
from hypothesis import given, settings
from strategies import MESSY_TEXT, PROSE

import hsca_fast
from hsca_fast import NuanceFlag, ScoringConfig, explain_text, relational_weights, score_texts, segment
from hsca_fast.text.explanation import text_marks

TEXT = (
    "It might rain in Zürich, perhaps. Never trust the forecast! Isn't it awful? The café was lovely, but the "
    "waiter was rude. Turn left at the bridge."
)


@settings(max_examples=80)
@given(PROSE | MESSY_TEXT)
def test_an_explanation_has_the_scores_of_the_batch(text):
    batch, found = score_texts([text]), explain_text(text)
    assert found.layer1_score == batch.layer1_score[0]
    assert found.coherence_score == batch.coherence_score[0]
    assert found.sentiment_score == batch.sentiment_score[0]
    assert found.domain_tags == batch.domain_tags(0)
    assert found.nuance_flags == batch.nuance_flags(0)
    assert found.assessed == batch.assessed
    assert found.n_words == batch.n_words[0]
    assert found.sentences.tolist() == segment(text).sentences.tolist()
    assert len(found.sentence_scores) == len(found.sentence_compounds) == len(found.sentences)
    for cue in found.cues:
        assert cue.text == text[cue.start : cue.end]
    for word in found.sentiment:
        assert word.text == text[word.start : word.end]


def test_every_flag_has_its_spans():
    found = explain_text(TEXT)
    shown = {(cue.category, cue.text) for cue in found.cues}
    assert {("hedged", "might"), ("hedged", "perhaps"), ("absolute", "Never")} <= shown
    for flag in found.nuance_flags:
        if not flag.startswith("emotional_tone"):
            assert sum(cue.weight for cue in found.flag_spans(flag)) > 0
    words = {word.text: word.valence for word in found.sentiment}
    assert words["rude"] < 0 < words["lovely"]


def test_totals_are_those_of_the_spans():
    found = explain_text(TEXT)
    for name, total in found.categories.items():
        spans = found.flag_spans(name)
        assert total.n_cues == len(spans)
        assert total.weight == pytest.approx(sum(cue.weight for cue in spans))
        assert total.n_sentences <= len(found.sentences)


def test_sentiment_is_the_mean_of_the_sentences():
    found = explain_text(TEXT)
    assert found.sentiment_score == pytest.approx(np.mean(found.sentence_compounds), rel=1e-12)


def test_layer_one_is_that_of_relational_weights():
    found, weights = explain_text(TEXT), relational_weights(TEXT)
    assert found.layer1_score == weights.layer1_score
    assert found.relational == weights.blocks


def test_domain_scores_follow_the_model():
    text = "The court held that the contract was void. The plaintiff shall pay damages under this agreement."
    linear = explain_text(text)
    assert max(linear.domain_scores, key=linear.domain_scores.get) == "legal"
    assert linear.categories["domain.legal"].n_cues > 0
    rules = explain_text(text, config=ScoringConfig(domain_model="rules"))
    expected = rules.categories["domain.legal"].weight / np.sqrt(rules.n_words)
    assert rules.domain_scores["legal"] == pytest.approx(expected, rel=1e-12)
    assert "legal" in rules.domain_tags
    own = explain_text(text, config=ScoringConfig(domain_model=lambda texts: [["poetry"] for _ in texts]))
    assert own.domain_tags == ["poetry"]


def test_domain_rules_never_change_the_flags():
    texts = [TEXT, "All rights reserved. The court may decide.", "Perhaps the proof is always trivial."]
    linear, rules = score_texts(texts), score_texts(texts, config=ScoringConfig(domain_model="rules"))
    assert linear.nuance_bits.tolist() == rules.nuance_bits.tolist()


def test_flags_that_need_a_model_are_not_assessed():
    assert (
        explain_text("Fine.").assessed
        == score_texts(["Fine.", ""]).assessed
        == frozenset(
            flag
            for flag in NuanceFlag
            if not flag.value.endswith("_model") and flag.value not in ("metaphor", "sarcasm", "narrative_thread")
        )
    )


def test_no_domain_scores_where_a_users_model_decides():
    config = hsca_fast.ScoringConfig(domain_model=lambda texts: [["legal"]])
    found = explain_text("The court shall hear the plaintiff under this agreement.", config=config)
    assert found.domain_tags == ["legal"]
    assert set(found.domain_scores.values()) == {0.0}


def test_empty_text():
    found = explain_text("")
    assert (found.layer1_score, found.coherence_score, found.sentiment_score) == (0.0, 0.0, 0.0)
    assert (found.domain_tags, found.nuance_flags, found.cues) == (["unclassified"], [], [])


def test_other_types_are_named():
    with pytest.raises(TypeError, match="text must be str, not bytes"):
        explain_text(b"x")
    with pytest.raises(TypeError, match="text must be str, not NoneType"):
        hsca_fast.score_text(None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It may rain. Perhaps not, which would be terrible.",
        "🙂 Vielleicht. You must never trust the image! Wonderful \ud83d perhaps.",
        "The court shall grant relief. " * 30,
    ],
)
def test_marks_alone_are_those_of_the_explanation(text):
    assert text_marks(text) == explain_text(text).marks()
