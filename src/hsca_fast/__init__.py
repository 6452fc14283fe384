"""hsca_fast turns text into context, in native code, in batches, with no model required.

    text ──► text/     relational weight, coherence and domain, nuance (layers 1 to 3)     ──► ScoreBatch, WeightedChunk
             context/  adaptive window, conversation map, sessions, claims (layer 4 and above)   ──► ContextSnapshot
    files ─► corpus/   the same scorer over files and Arrow                                ──► `hsca score`

Formulas: `_reference` (the oracle) and the C++ core behind `_native`; docs/formulas.md explains them.
"""

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
from hsca_fast.context.tuning import HistoryLog, Tuner, TuningParameters, TuningReport
from hsca_fast.files import Tear, TornFileWarning
from hsca_fast.text.explanation import (
    CategoryTotal,
    Coherence,
    CueSpan,
    SentimentSpan,
    TextExplanation,
    explain_text,
)
from hsca_fast.text.lexicon import Category, Cue, Lexicon, LexiconError
from hsca_fast.text.models import DomainModel, ModelWarning, NuanceModel, bundled_nuance_models
from hsca_fast.text.relational import BlockFactors, RelationalWeights, relational_weights
from hsca_fast.text.scoring import ScoreBatch, score_text, score_texts
from hsca_fast.text.segmentation import Segmentation, segment
from hsca_fast.types import ContextSnapshot, DomainTag, NuanceFlag, WeightedChunk

__all__ = [
    "BEAT_PRESETS",
    "SNAPSHOT_PRESETS",
    "BeatConfig",
    "BlockFactors",
    "Category",
    "CategoryTotal",
    "ClaimGraph",
    "ClaimNode",
    "ClaimType",
    "Coherence",
    "ContextSnapshot",
    "ConversationMap",
    "Cue",
    "CueSpan",
    "DomainModel",
    "DomainTag",
    "EvidenceEdge",
    "HSCAEngine",
    "HistoryLog",
    "Lexicon",
    "LexiconError",
    "ModelWarning",
    "NuanceFlag",
    "NuanceModel",
    "Provenance",
    "Relation",
    "RelationalWeights",
    "ScoreBatch",
    "ScoringConfig",
    "Segmentation",
    "SentimentSpan",
    "SessionState",
    "SessionStatus",
    "SessionStore",
    "SnapshotPreset",
    "StaleSessionError",
    "Tear",
    "TextExplanation",
    "ThresholdCalibration",
    "TornFileWarning",
    "Transition",
    "Tuner",
    "TuningParameters",
    "TuningReport",
    "WeightedChunk",
    "bundled_nuance_models",
    "calibrate_snapshot_threshold",
    "explain_text",
    "find_beats",
    "leading_domain",
    "merge_maps",
    "relational_weights",
    "score_text",
    "score_texts",
    "segment",
]


def __getattr__(name: str) -> str:
    if name == "__version__":  # looked up on demand: importlib.metadata costs more than the rest of the import
        from importlib.metadata import version

        return version("hsca_fast")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
