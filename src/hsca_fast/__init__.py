"""hsca_fast turns text into context, in native code, in batches, with no model required.

    text ──► text/     words, sentences, relational weight (layer 1)     ──► ScoreBatch
    files ─► corpus/   the same scorer over files and Arrow              ──► `hsca score`
    vectors ► vectors/ prefix tiers, exact and fast search, diversity    ──► SearchResult

Formulas: `_reference` (the oracle) and the C++ core behind `_native`; docs/formulas.md explains them.
"""

from hsca_fast.config import ScoringConfig
from hsca_fast.text.relational import BlockFactors, RelationalWeights, relational_weights
from hsca_fast.text.scoring import ScoreBatch, score_texts
from hsca_fast.text.segmentation import Segmentation, segment
from hsca_fast.vectors.calibration import Calibration
from hsca_fast.vectors.cascade import CascadeIndex, calibrate_thresholds
from hsca_fast.vectors.dedup import Dedup, deduplicate
from hsca_fast.vectors.mmr import mmr
from hsca_fast.vectors.prefix import prefix_tiers
from hsca_fast.vectors.results import BackfillReport, SearchResult
from hsca_fast.vectors.rotation import Rotation, fit_rotation
from hsca_fast.vectors.storage import DamagedIndexError

__all__ = [
    "BackfillReport",
    "BlockFactors",
    "Calibration",
    "CascadeIndex",
    "DamagedIndexError",
    "Dedup",
    "RelationalWeights",
    "Rotation",
    "ScoreBatch",
    "ScoringConfig",
    "SearchResult",
    "Segmentation",
    "calibrate_thresholds",
    "deduplicate",
    "fit_rotation",
    "mmr",
    "prefix_tiers",
    "relational_weights",
    "score_texts",
    "segment",
]


def __getattr__(name: str) -> str:
    if name == "__version__":  # looked up on demand: importlib.metadata costs more than the rest of the import
        from importlib.metadata import version

        return version("hsca_fast")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
