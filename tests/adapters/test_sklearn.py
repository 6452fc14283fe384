"""`HSCAScorer`: scores as features."""

import numpy as np
import pandas as pd
import pytest

from hsca_fast import DomainTag, NuanceFlag, ScoringConfig, score_texts

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from hsca_fast.adapters.sklearn import HSCAScorer

PROSE = "The keeper lit the lamp number {i}. The lamp lit the harbour. Boats came into the harbour."
ADVICE = "You might wait {i} days, perhaps. Perhaps the rain will stop. It could possibly clear."
TEXTS = [text.format(i=i) for i in range(10) for text in (PROSE, ADVICE)]
IS_ADVICE = [i % 2 for i in range(20)]


def test_columns_are_the_scores():
    scorer = HSCAScorer()
    features = dict(zip(scorer.get_feature_names_out(), scorer.transform(TEXTS).T, strict=True))
    batch = score_texts(TEXTS)
    for name in "layer1_score", "coherence_score", "sentiment_score", "n_sentences", "n_words", "short_chunk":
        assert features[name].tolist() == getattr(batch, name).tolist()
    for i in range(len(TEXTS)):
        assert {t.value for t in DomainTag if features[f"domain_{t.value}"][i]} == set(batch.domain_tags(i))
        assert {f.value for f in NuanceFlag if features[f"nuance_{f.value}"][i]} == set(batch.nuance_flags(i))
    assert np.isfinite(scorer.transform(TEXTS)).all()


def test_in_a_pipeline():
    pipeline = make_pipeline(HSCAScorer(), StandardScaler(), LogisticRegression()).fit(TEXTS, IS_ADVICE)
    assert pipeline.predict([PROSE, ADVICE]).tolist() == [0, 1]
    names = pipeline[:-1].get_feature_names_out()
    assert names[np.argmax(pipeline[-1].coef_[0])] in names
    assert len(names) == pipeline[-1].coef_.shape[1] == 34


def test_options_are_parameters():
    scorer = HSCAScorer(ScoringConfig(window=7), threads=2)
    assert clone(scorer).get_params() == {"config": ScoringConfig(window=7), "threads": 2}
    pipeline = make_pipeline(HSCAScorer(), LogisticRegression(max_iter=2000))
    search = GridSearchCV(pipeline, {"hscascorer__config": [None, ScoringConfig(window=3)]}, cv=2)
    assert search.fit(TEXTS, IS_ADVICE).best_score_ == 1.0


def test_frames():
    scorer = HSCAScorer().set_output(transform="pandas")
    frame = scorer.fit_transform(pd.Series(TEXTS, index=range(100, 120)))
    assert list(frame.columns) == list(scorer.get_feature_names_out())
    union = make_union(HSCAScorer(), HSCAScorer(ScoringConfig(window=3)))
    assert union.fit_transform(TEXTS).shape == (20, 68)


def test_empty_and_wrong():
    assert HSCAScorer().transform([]).shape == (0, 34)
    with pytest.raises(TypeError, match=r"texts\[1\] must be str, not int"):
        HSCAScorer().transform(["a", 1])


def test_scikit_learn_knows_what_it_takes():
    tags = get_tags(HSCAScorer())
    assert (tags.input_tags.string, tags.input_tags.one_d_array, tags.input_tags.two_d_array) == (True, True, False)
    assert not tags.requires_fit
