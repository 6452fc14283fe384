"""What the tests of the adapters share."""

import numpy as np
import pytest

from hsca_fast import deduplicate, default_embedder, fit_budget, mmr
from hsca_fast.adapters.selection import cosines
from hsca_fast.ranking import estimate_tokens

TEXTS = [
    "The keeper lit the lamp at dusk.",
    "The keeper lit the lamp at dusk!",
    "Ships saw the lamp from far away.",
    "Bread needs flour, water and salt.",
    "Flour, water and salt make bread.",
    "The harbour was dark before the lamp was lit.",
    "",
    "日本語のランプ。",
]
QUERY = "who lit the lamp?"


def needs(*modules):
    """Skips a module of tests, with the reason, where a front end is not installed."""
    for module in modules:
        pytest.importorskip(module, reason=f"{module} is not installed: pip install '.[adapters]'")


def expected(
    texts, query, *, min_score=0.3, similarity_threshold=0.85, lambda_=None, top_n=5, max_tokens=None, embedder=None
):
    """(row, score) by the library's own functions, composed as the guide says."""
    embedder = embedder or default_embedder()
    vectors = embedder.embed_documents(texts)
    scores = cosines(embedder.embed_query(query)[None], vectors)
    rows = np.flatnonzero(scores >= min_score)
    rows = rows[deduplicate(vectors[rows], scores[rows], threshold=similarity_threshold).keep]
    rows = rows[:top_n] if lambda_ is None else rows[mmr(scores[rows], vectors[rows], top_n, lambda_=lambda_)]
    if max_tokens is not None:
        rows = rows[fit_budget(estimate_tokens([texts[i] for i in rows]), max_tokens)]
    return [(int(row), float(scores[row])) for row in rows]


OPTIONS = [
    {},
    {"min_score": 0.0, "top_n": 3},
    {"min_score": -1.0, "lambda_": 0.5, "similarity_threshold": 0.99},
    {"min_score": 0.0, "lambda_": 0.7, "max_tokens": 18},
    {"min_score": 0.0, "max_tokens": 0},
    {"min_score": 2.0},
]
