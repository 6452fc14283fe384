"""hsca_fast turns text into context, in native code, in batches, with no model required.

    text ──► text/     words, sentences, relational weight (layer 1)     ──► ScoreBatch
    files ─► corpus/   the same scorer over files and Arrow              ──► `hsca score`
    turns ─► memory/   summaries of old turns, as views of them          ──► CompactionReport
    query ─► assembly/ rules, recent tail and recall within a budget     ──► AssembledContext
    arrays ► ranking/  scores, budgets and gates over candidates         ──► arrays

Formulas: `_reference` (the oracle) and the C++ core behind `_native`; docs/formulas.md explains them.
"""

from hsca_fast.assembly.context import AssembledContext, ContextItem, assemble, check_hard_reserve
from hsca_fast.assembly.document import AuthoredDocument, AuthoredNode, partition_document
from hsca_fast.assembly.recall import Candidate, RecallConfig
from hsca_fast.assembly.tail import Tail, recent_tail
from hsca_fast.config import ScoringConfig
from hsca_fast.memory.compaction import (
    CompactionReport,
    CompactionStore,
    compact_session,
    expand_summary,
    partition_chronological,
)
from hsca_fast.memory.onnx_summarizer import OnnxSummarizer
from hsca_fast.memory.preservation import Preservation, decay_rate, preservation, summary_confidence
from hsca_fast.memory.summarizer import Draft, Summarizer, extractive_summary
from hsca_fast.memory.turns import Turn
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
    "AssembledContext",
    "AuthoredDocument",
    "AuthoredNode",
    "BlockFactors",
    "Candidate",
    "CompactionReport",
    "CompactionStore",
    "ContextItem",
    "Draft",
    "Gating",
    "GatingConfig",
    "OnnxSummarizer",
    "Preservation",
    "RecallConfig",
    "RelationalWeights",
    "ScoreBatch",
    "ScoringConfig",
    "Segmentation",
    "Summarizer",
    "Tail",
    "TopK",
    "Turn",
    "assemble",
    "authority_weights",
    "check_hard_reserve",
    "coarse_candidates",
    "compact_session",
    "decay_rate",
    "estimate_tokens",
    "expand_hops",
    "expand_summary",
    "extract_keywords",
    "extractive_summary",
    "fit_budget",
    "fuse_ranks",
    "gating_scalar",
    "hybrid_scores",
    "hybrid_top_k",
    "keyword_coverage",
    "merge_ranked",
    "partition_chronological",
    "partition_document",
    "preservation",
    "recency",
    "recent_tail",
    "relational_weights",
    "score_texts",
    "second_pass_scores",
    "second_pass_top_k",
    "segment",
    "summary_confidence",
]


def __getattr__(name: str) -> str:
    if name == "__version__":  # looked up on demand: importlib.metadata costs more than the rest of the import
        from importlib.metadata import version

        return version("hsca_fast")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
