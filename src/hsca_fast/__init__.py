"""hsca_fast turns text into context, in native code, in batches, with no model required.

    text ──► text/     words, sentences, relational weight (layer 1)     ──► ScoreBatch
    files ─► corpus/   the same scorer over files and Arrow              ──► `hsca score`
    arrays ► ranking/  scores, budgets and gates over candidates         ──► arrays

Formulas: `_reference` (the oracle) and the C++ core behind `_native`; docs/formulas.md explains them.
"""

from hsca_fast.config import ScoringConfig
from hsca_fast.ranking import (
    RECENCY_DECAY,
    SCOPE_WEIGHT,
    Gating,
    GatingConfig,
    TopK,
    authority_weights,
    coarse_candidates,
    estimate_tokens,
    expand_hops,
    extract_keywords,
    fit_budget,
    fuse_ranks,
    gating_scalar,
    hybrid_scores,
    hybrid_top_k,
    keyword_coverage,
    merge_ranked,
    recency,
    second_pass_scores,
    second_pass_top_k,
)
from hsca_fast.text.relational import BlockFactors, RelationalWeights, relational_weights
from hsca_fast.text.scoring import ScoreBatch, score_texts
from hsca_fast.text.segmentation import Segmentation, segment

__all__ = [
    "RECENCY_DECAY",
    "SCOPE_WEIGHT",
    "BlockFactors",
    "Gating",
    "GatingConfig",
    "RelationalWeights",
    "ScoreBatch",
    "ScoringConfig",
    "Segmentation",
    "TopK",
    "authority_weights",
    "coarse_candidates",
    "estimate_tokens",
    "expand_hops",
    "extract_keywords",
    "fit_budget",
    "fuse_ranks",
    "gating_scalar",
    "hybrid_scores",
    "hybrid_top_k",
    "keyword_coverage",
    "merge_ranked",
    "recency",
    "relational_weights",
    "score_texts",
    "second_pass_scores",
    "second_pass_top_k",
    "segment",
]


def __getattr__(name: str) -> str:
    if name == "__version__":  # looked up on demand: importlib.metadata costs more than the rest of the import
        from importlib.metadata import version

        return version("hsca_fast")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
