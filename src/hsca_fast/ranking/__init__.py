"""Ranking: pure functions over arrays of candidates. Formulas and their sources: docs/ranking.md."""

from hsca_fast.ranking.activity import age_factor, novelty_factor, rescaled_ltp, use_factor
from hsca_fast.ranking.budget import fit_budget
from hsca_fast.ranking.decay import RECENCY_DECAY, recency
from hsca_fast.ranking.fusion import fuse_ranks, fuse_scores
from hsca_fast.ranking.gating import Gating, GatingConfig, gating_scalar
from hsca_fast.ranking.hops import expand_hops, merge_ranked
from hsca_fast.ranking.hybrid import SCOPE_WEIGHT, TopK, hybrid_scores, hybrid_top_k
from hsca_fast.ranking.keywords import extract_keywords, keyword_coverage
from hsca_fast.ranking.tokens import estimate_tokens
from hsca_fast.ranking.two_pass import (
    authority_weights,
    coarse_candidates,
    second_pass_scores,
    second_pass_top_k,
)

__all__ = [
    "RECENCY_DECAY",
    "SCOPE_WEIGHT",
    "Gating",
    "GatingConfig",
    "TopK",
    "age_factor",
    "authority_weights",
    "coarse_candidates",
    "estimate_tokens",
    "expand_hops",
    "extract_keywords",
    "fit_budget",
    "fuse_ranks",
    "fuse_scores",
    "gating_scalar",
    "hybrid_scores",
    "hybrid_top_k",
    "keyword_coverage",
    "merge_ranked",
    "novelty_factor",
    "recency",
    "rescaled_ltp",
    "second_pass_scores",
    "second_pass_top_k",
    "use_factor",
]
