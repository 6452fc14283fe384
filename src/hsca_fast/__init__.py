"""hsca_fast turns text into context, in native code, in batches, with no model required.

    text ──► text/     words, sentences, relational weight (layer 1)     ──► ScoreBatch
    files ─► corpus/   the same scorer over files and Arrow              ──► `hsca score`

Formulas: `_reference` (the oracle) and the C++ core behind `_native`; docs/formulas.md explains them.
"""

from importlib.metadata import version as _version

from hsca_fast.config import ScoringConfig
from hsca_fast.text.relational import BlockFactors, RelationalWeights, relational_weights
from hsca_fast.text.scoring import ScoreBatch, score_texts
from hsca_fast.text.segmentation import Segmentation, segment

__version__ = _version("hsca_fast")

__all__ = [
    "BlockFactors",
    "RelationalWeights",
    "ScoreBatch",
    "ScoringConfig",
    "Segmentation",
    "__version__",
    "relational_weights",
    "score_texts",
    "segment",
]
