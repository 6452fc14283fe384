"""hsca_fast turns text into context, in native code, in batches, with no model required.

    text ──► text/     words, sentences, relational weight (layer 1)     ──► ScoreBatch
    text ──► vectors/  embedders, model guard                            ──► float32 vectors
    files ─► corpus/   the same scorer over files and Arrow              ──► `hsca score`

Formulas: `_reference` (the oracle) and the C++ core behind `_native`; docs/formulas.md explains them.
"""

from hsca_fast.config import ScoringConfig
from hsca_fast.text.relational import BlockFactors, RelationalWeights, relational_weights
from hsca_fast.text.scoring import ScoreBatch, score_texts
from hsca_fast.text.segmentation import Segmentation, segment
from hsca_fast.vectors.embedder import CallableEmbedder, Embedder, HashEmbedder
from hsca_fast.vectors.guard import ModelMismatchError, ModelStamp, check_model
from hsca_fast.vectors.onnx import OnnxEmbedder, minilm_embedder
from hsca_fast.vectors.static import StaticEmbedder, default_embedder

__all__ = [
    "BlockFactors",
    "CallableEmbedder",
    "Embedder",
    "HashEmbedder",
    "ModelMismatchError",
    "ModelStamp",
    "OnnxEmbedder",
    "RelationalWeights",
    "ScoreBatch",
    "ScoringConfig",
    "Segmentation",
    "StaticEmbedder",
    "check_model",
    "default_embedder",
    "minilm_embedder",
    "relational_weights",
    "score_texts",
    "segment",
]


def __getattr__(name: str) -> str:
    if name == "__version__":  # looked up on demand: importlib.metadata costs more than the rest of the import
        from importlib.metadata import version

        return version("hsca_fast")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
