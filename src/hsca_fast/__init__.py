"""hsca_fast turns text into context, in native code, in batches, with no model required.

    text ──► text/       relational weight, coherence and domain, nuance (layers 1 to 3)     ──► ScoreBatch, WeightedChunk
    text ──► context/    adaptive window, conversation map, sessions, claims (layer 4)       ──► ContextSnapshot
    text ──► vectors/    embedders, model guard; prefix tiers, cascade, MMR, de-duplication  ──► vectors, nearest rows
    turns ─► memory/     chunking, the durable index, brightness, summaries of old turns     ──► SemanticIndex
    query ─► retrieval/  one explainable pipeline over the index; compression                ──► RetrievalResult
    query ─► assembly/   rules, recent tail and recall within a budget                       ──► AssembledContext
    arrays ► ranking/    scores, budgets and gates over candidates                           ──► arrays
    files ─► corpus/     the same scorer over files and Arrow, on one machine or many        ──► `hsca score`
    any ───► report/     pages and figures to look at                                        ──► `hsca report`
    others ► adapters/   the same behind other people's frontends

Formulas: `_reference` (the oracle) and the C++ core behind `_native`; docs/formulas.md explains them.

Every public name is here and is loaded when it is first used, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hsca_fast.assembly.context import AssembledContext, ContextItem, assemble, check_hard_reserve
    from hsca_fast.assembly.document import AuthoredDocument, AuthoredNode, partition_document
    from hsca_fast.assembly.recall import Candidate, RecallConfig
    from hsca_fast.assembly.tail import Tail, recent_tail
    from hsca_fast.config import ScoringConfig
    from hsca_fast.context.beats import BEAT_PRESETS, BeatConfig, find_beats
    from hsca_fast.context.calibration import (
        SNAPSHOT_PRESETS,
        SnapshotPreset,
        ThresholdCalibration,
        calibrate_snapshot_threshold,
    )
    from hsca_fast.context.claims import ClaimGraph, ClaimNode, ClaimType, EvidenceEdge, Relation
    from hsca_fast.context.conversation_map import ConversationMap, Transition, leading_domain, merge_maps
    from hsca_fast.context.engine import HSCAEngine
    from hsca_fast.context.provenance import Provenance
    from hsca_fast.context.session import SessionState, SessionStatus, SessionStore, StaleSessionError
    from hsca_fast.context.tuning import HistoryLog, Tuner, TuningParameters, TuningReport, weighted_domains
    from hsca_fast.corpus.arrow import ArrowScorer
    from hsca_fast.corpus.dataset import DatasetReport, OutputExistsError, score_dataset
    from hsca_fast.corpus.engines import EngineError
    from hsca_fast.corpus.partition import PartitionResult
    from hsca_fast.corpus.readers import InputError
    from hsca_fast.files import Tear, TornFileWarning
    from hsca_fast.memory.brightness import ActiveContext, ChunkState, PruneReport, Resurrection, resurrect_from
    from hsca_fast.memory.chunking import (
        Chunk,
        ChunkStream,
        chunk_text,
        embedding_windows,
        merge_short_lines,
        sentence_ids,
        turn_pair_windows,
    )
    from hsca_fast.memory.compaction import (
        CompactionReport,
        CompactionStore,
        compact_session,
        expand_summary,
        partition_chronological,
    )
    from hsca_fast.memory.eviction import Eviction
    from hsca_fast.memory.index import SemanticIndex, Stats
    from hsca_fast.memory.neighbours import smooth_neighbours
    from hsca_fast.memory.onnx_summarizer import OnnxSummarizer
    from hsca_fast.memory.preservation import Preservation, decay_rate, preservation, summary_confidence
    from hsca_fast.memory.presets import MEMORY_PRESETS, MemoryPreset
    from hsca_fast.memory.records import Hit, Record
    from hsca_fast.memory.repair import repair
    from hsca_fast.memory.search import LexicalLagWarning, SearchSettings
    from hsca_fast.memory.session_view import SessionView
    from hsca_fast.memory.store_files import StoreLocked, StoreVersionError
    from hsca_fast.memory.summarizer import Draft, Summarizer, extractive_summary
    from hsca_fast.memory.transfer import ImportRefusedError
    from hsca_fast.memory.turns import Turn
    from hsca_fast.memory.verification import Problem, Report, verify_store
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
        fuse_scores,
        gating_scalar,
        hybrid_scores,
        hybrid_top_k,
        keyword_coverage,
        merge_ranked,
        recency,
        second_pass_scores,
        second_pass_top_k,
    )
    from hsca_fast.report.conversation import conversation_report
    from hsca_fast.report.corpus import CorpusSummary
    from hsca_fast.report.figures import (
        plot_breakdown,
        plot_curves,
        plot_domain_evolution,
        plot_domains,
        plot_map,
        plot_nuance,
        plot_scores,
    )
    from hsca_fast.report.query import query_report
    from hsca_fast.retrieval.calibration import ScoreCalibration
    from hsca_fast.retrieval.compaction import CompactionCandidate, CompactionPlan
    from hsca_fast.retrieval.compress import ChunkResult, CompressionStats, compress
    from hsca_fast.retrieval.packet import PacketError
    from hsca_fast.retrieval.pipeline import RetrievalError, RetrievalPipeline
    from hsca_fast.retrieval.previews import Preview, Previews
    from hsca_fast.retrieval.profile import ProfileBook, ProfileError, ResolvedProfile, RetrievalProfile, merge_profiles
    from hsca_fast.retrieval.results import RetrievalResult, RetrievedRecord
    from hsca_fast.retrieval.run import ScoreEvent
    from hsca_fast.retrieval.scan import ScanReport, ScanState
    from hsca_fast.retrieval.sentences import Extraction, extract_sentences
    from hsca_fast.retrieval.store import RetrievalStore
    from hsca_fast.text.explanation import (
        CategoryTotal,
        Coherence,
        CueSpan,
        SentimentSpan,
        TextExplanation,
        explain_text,
    )
    from hsca_fast.text.lexicon import Category, Cue, Lexicon, LexiconError
    from hsca_fast.text.models import DomainModel, NuanceModel, bundled_nuance_models
    from hsca_fast.text.relational import BlockFactors, RelationalWeights, relational_weights
    from hsca_fast.text.scoring import ScoreBatch, score_text, score_texts
    from hsca_fast.text.segmentation import Segmentation, segment
    from hsca_fast.text.supervisor import ModelWarning
    from hsca_fast.types import ContextSnapshot, DomainTag, NuanceFlag, WeightedChunk
    from hsca_fast.vectors.calibration import Calibration
    from hsca_fast.vectors.cascade import CascadeIndex, calibrate_thresholds
    from hsca_fast.vectors.dedup import Dedup, deduplicate
    from hsca_fast.vectors.embedder import CallableEmbedder, Embedder, HashEmbedder
    from hsca_fast.vectors.guard import ModelMismatchError, ModelStamp, check_model
    from hsca_fast.vectors.mmr import mmr
    from hsca_fast.vectors.onnx import OnnxEmbedder, minilm_embedder
    from hsca_fast.vectors.prefix import prefix_tiers
    from hsca_fast.vectors.results import BackfillReport, SearchResult
    from hsca_fast.vectors.rotation import Rotation, fit_rotation
    from hsca_fast.vectors.static import StaticEmbedder, default_embedder
    from hsca_fast.vectors.storage import DamagedIndexError

# By module; the imports above say the same to type checkers.
_NAMES = {
    "assembly.context": "AssembledContext ContextItem assemble check_hard_reserve",
    "assembly.document": "AuthoredDocument AuthoredNode partition_document",
    "assembly.recall": "Candidate RecallConfig",
    "assembly.tail": "Tail recent_tail",
    "config": "ScoringConfig",
    "context.beats": "BEAT_PRESETS BeatConfig find_beats",
    "context.calibration": "SNAPSHOT_PRESETS SnapshotPreset ThresholdCalibration calibrate_snapshot_threshold",
    "context.claims": "ClaimGraph ClaimNode ClaimType EvidenceEdge Relation",
    "context.conversation_map": "ConversationMap Transition leading_domain merge_maps",
    "context.engine": "HSCAEngine",
    "context.provenance": "Provenance",
    "context.session": "SessionState SessionStatus SessionStore StaleSessionError",
    "context.tuning": "HistoryLog Tuner TuningParameters TuningReport weighted_domains",
    "corpus.arrow": "ArrowScorer",
    "corpus.dataset": "DatasetReport OutputExistsError score_dataset",
    "corpus.engines": "EngineError",
    "corpus.partition": "PartitionResult",
    "corpus.readers": "InputError",
    "files": "Tear TornFileWarning",
    "memory.brightness": "ActiveContext ChunkState PruneReport Resurrection resurrect_from",
    "memory.chunking": "Chunk ChunkStream chunk_text embedding_windows merge_short_lines sentence_ids turn_pair_windows",
    "memory.compaction": "CompactionReport CompactionStore compact_session expand_summary partition_chronological",
    "memory.eviction": "Eviction",
    "memory.index": "SemanticIndex Stats",
    "memory.neighbours": "smooth_neighbours",
    "memory.onnx_summarizer": "OnnxSummarizer",
    "memory.preservation": "Preservation decay_rate preservation summary_confidence",
    "memory.presets": "MEMORY_PRESETS MemoryPreset",
    "memory.records": "Hit Record",
    "memory.repair": "repair",
    "memory.search": "LexicalLagWarning SearchSettings",
    "memory.session_view": "SessionView",
    "memory.store_files": "StoreLocked StoreVersionError",
    "memory.summarizer": "Draft Summarizer extractive_summary",
    "memory.transfer": "ImportRefusedError",
    "memory.turns": "Turn",
    "memory.verification": "Problem Report verify_store",
    "ranking": "Gating GatingConfig RECENCY_DECAY SCOPE_WEIGHT TopK authority_weights coarse_candidates estimate_tokens expand_hops extract_keywords fit_budget fuse_ranks fuse_scores gating_scalar hybrid_scores hybrid_top_k keyword_coverage merge_ranked recency second_pass_scores second_pass_top_k",
    "report.conversation": "conversation_report",
    "report.corpus": "CorpusSummary",
    "report.figures": "plot_breakdown plot_curves plot_domain_evolution plot_domains plot_map plot_nuance plot_scores",
    "report.query": "query_report",
    "retrieval.calibration": "ScoreCalibration",
    "retrieval.compaction": "CompactionCandidate CompactionPlan",
    "retrieval.compress": "ChunkResult CompressionStats compress",
    "retrieval.packet": "PacketError",
    "retrieval.pipeline": "RetrievalError RetrievalPipeline",
    "retrieval.previews": "Preview Previews",
    "retrieval.profile": "ProfileBook ProfileError ResolvedProfile RetrievalProfile merge_profiles",
    "retrieval.results": "RetrievalResult RetrievedRecord",
    "retrieval.run": "ScoreEvent",
    "retrieval.scan": "ScanReport ScanState",
    "retrieval.sentences": "Extraction extract_sentences",
    "retrieval.store": "RetrievalStore",
    "text.explanation": "CategoryTotal Coherence CueSpan SentimentSpan TextExplanation explain_text",
    "text.lexicon": "Category Cue Lexicon LexiconError",
    "text.models": "DomainModel NuanceModel bundled_nuance_models",
    "text.relational": "BlockFactors RelationalWeights relational_weights",
    "text.scoring": "ScoreBatch score_text score_texts",
    "text.segmentation": "Segmentation segment",
    "text.supervisor": "ModelWarning",
    "types": "ContextSnapshot DomainTag NuanceFlag WeightedChunk",
    "vectors.calibration": "Calibration",
    "vectors.cascade": "CascadeIndex calibrate_thresholds",
    "vectors.dedup": "Dedup deduplicate",
    "vectors.embedder": "CallableEmbedder Embedder HashEmbedder",
    "vectors.guard": "ModelMismatchError ModelStamp check_model",
    "vectors.mmr": "mmr",
    "vectors.onnx": "OnnxEmbedder minilm_embedder",
    "vectors.prefix": "prefix_tiers",
    "vectors.results": "BackfillReport SearchResult",
    "vectors.rotation": "Rotation fit_rotation",
    "vectors.static": "StaticEmbedder default_embedder",
    "vectors.storage": "DamagedIndexError",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "BEAT_PRESETS",
    "MEMORY_PRESETS",
    "RECENCY_DECAY",
    "SCOPE_WEIGHT",
    "SNAPSHOT_PRESETS",
    "ActiveContext",
    "ArrowScorer",
    "AssembledContext",
    "AuthoredDocument",
    "AuthoredNode",
    "BackfillReport",
    "BeatConfig",
    "BlockFactors",
    "Calibration",
    "CallableEmbedder",
    "Candidate",
    "CascadeIndex",
    "Category",
    "CategoryTotal",
    "Chunk",
    "ChunkResult",
    "ChunkState",
    "ChunkStream",
    "ClaimGraph",
    "ClaimNode",
    "ClaimType",
    "Coherence",
    "CompactionCandidate",
    "CompactionPlan",
    "CompactionReport",
    "CompactionStore",
    "CompressionStats",
    "ContextItem",
    "ContextSnapshot",
    "ConversationMap",
    "CorpusSummary",
    "Cue",
    "CueSpan",
    "DamagedIndexError",
    "DatasetReport",
    "Dedup",
    "DomainModel",
    "DomainTag",
    "Draft",
    "Embedder",
    "EngineError",
    "Eviction",
    "EvidenceEdge",
    "Extraction",
    "Gating",
    "GatingConfig",
    "HSCAEngine",
    "HashEmbedder",
    "HistoryLog",
    "Hit",
    "ImportRefusedError",
    "InputError",
    "LexicalLagWarning",
    "Lexicon",
    "LexiconError",
    "MemoryPreset",
    "ModelMismatchError",
    "ModelStamp",
    "ModelWarning",
    "NuanceFlag",
    "NuanceModel",
    "OnnxEmbedder",
    "OnnxSummarizer",
    "OutputExistsError",
    "PacketError",
    "PartitionResult",
    "Preservation",
    "Preview",
    "Previews",
    "Problem",
    "ProfileBook",
    "ProfileError",
    "Provenance",
    "PruneReport",
    "RecallConfig",
    "Record",
    "Relation",
    "RelationalWeights",
    "Report",
    "ResolvedProfile",
    "Resurrection",
    "RetrievalError",
    "RetrievalPipeline",
    "RetrievalProfile",
    "RetrievalResult",
    "RetrievalStore",
    "RetrievedRecord",
    "Rotation",
    "ScanReport",
    "ScanState",
    "ScoreBatch",
    "ScoreCalibration",
    "ScoreEvent",
    "ScoringConfig",
    "SearchResult",
    "SearchSettings",
    "Segmentation",
    "SemanticIndex",
    "SentimentSpan",
    "SessionState",
    "SessionStatus",
    "SessionStore",
    "SessionView",
    "SnapshotPreset",
    "StaleSessionError",
    "StaticEmbedder",
    "Stats",
    "StoreLocked",
    "StoreVersionError",
    "Summarizer",
    "Tail",
    "Tear",
    "TextExplanation",
    "ThresholdCalibration",
    "TopK",
    "TornFileWarning",
    "Transition",
    "Tuner",
    "TuningParameters",
    "TuningReport",
    "Turn",
    "WeightedChunk",
    "assemble",
    "authority_weights",
    "bundled_nuance_models",
    "calibrate_snapshot_threshold",
    "calibrate_thresholds",
    "check_hard_reserve",
    "check_model",
    "chunk_text",
    "coarse_candidates",
    "compact_session",
    "compress",
    "conversation_report",
    "decay_rate",
    "deduplicate",
    "default_embedder",
    "embedding_windows",
    "estimate_tokens",
    "expand_hops",
    "expand_summary",
    "explain_text",
    "extract_keywords",
    "extract_sentences",
    "extractive_summary",
    "find_beats",
    "fit_budget",
    "fit_rotation",
    "fuse_ranks",
    "fuse_scores",
    "gating_scalar",
    "hybrid_scores",
    "hybrid_top_k",
    "keyword_coverage",
    "leading_domain",
    "merge_maps",
    "merge_profiles",
    "merge_ranked",
    "merge_short_lines",
    "minilm_embedder",
    "mmr",
    "partition_chronological",
    "partition_document",
    "plot_breakdown",
    "plot_curves",
    "plot_domain_evolution",
    "plot_domains",
    "plot_map",
    "plot_nuance",
    "plot_scores",
    "prefix_tiers",
    "preservation",
    "query_report",
    "recency",
    "recent_tail",
    "relational_weights",
    "repair",
    "resurrect_from",
    "score_dataset",
    "score_text",
    "score_texts",
    "second_pass_scores",
    "second_pass_top_k",
    "segment",
    "sentence_ids",
    "smooth_neighbours",
    "summary_confidence",
    "turn_pair_windows",
    "verify_store",
    "weighted_domains",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"hsca_fast.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if name == "__version__":  # importlib.metadata is not cheap either
        from importlib.metadata import version

        return version("hsca_fast")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
