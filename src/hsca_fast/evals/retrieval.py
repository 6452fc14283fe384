"""Does fused search find more than either of its arms? Recall on four sets, on the half that chose nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from hsca_fast.evals.passages import in_half, shipped_passages
from hsca_fast.evals.report import EvalReport, Figure
from hsca_fast.evals.retrieval_sets import HALVES, LOADERS, Question, RetrievalSet
from hsca_fast.memory.index import SemanticIndex
from hsca_fast.memory.search import SearchSettings
from hsca_fast.ranking import fuse_ranks
from hsca_fast.retrieval.pipeline import RetrievalPipeline
from hsca_fast.retrieval.profile import RetrievalProfile
from hsca_fast.text.segmentation import segment
from hsca_fast.vectors.static import default_embedder

CRITERION = "fused search has a higher recall@5 and @10 than BM25, than vectors and than equal-weight fusion, on the held-out half of every set"
DEPTHS = (5, 10)
PLAIN = ("BM25", "vectors", "equal weights")
JUDGED = "fused (default)"
_APPEND = 2000
_POOL = 100

Way = Callable[[Question, int], list[str]]  # ids of records, best first


def built(found: RetrievalSet, folder: Path) -> tuple[SemanticIndex, dict[str, str]]:
    """An index over the documents, and the name of the document of each record."""
    index = SemanticIndex.open(folder, embedder=default_embedder())
    names = list(found.documents)
    ids: list[str] = []
    for begin in range(0, len(names), _APPEND):
        part = names[begin : begin + _APPEND]
        ids += index.append(
            [found.documents[name] for name in part],
            metadata=[{"session": found.scopes[name]} if name in found.scopes else {} for name in part],
            timestamps=0.0,
        )
    return index, dict(zip(ids, names, strict=True))


def ways(index: SemanticIndex) -> dict[str, Way]:
    """Ways to search: plain ones, the index's own, and the pipeline's."""
    plain = SearchSettings(neighbour_weight=0.0, lexical_neighbour_weight=0.0)
    own = index.settings
    pipeline = RetrievalPipeline(
        index,
        RetrievalProfile(axes_enabled=(), exact_dedup_enabled=False, wing_diversity_weight=0.0),
        clock=lambda: 0.0,
    )

    def arm(question: Question, k: int, **arms: bool) -> list[str]:
        index.settings = plain
        try:
            return [hit.id for hit in index.query(question.text, k, where=_where(question), **arms)]
        finally:
            index.settings = own

    def fused(question: Question, k: int) -> list[str]:
        return [hit.id for hit in index.query(question.text, k, where=_where(question))]

    def equal(question: Question, k: int) -> list[str]:
        arms = [arm(question, _POOL, lexical=False), arm(question, _POOL, vector=False)]
        return [record_id for record_id, _ in fuse_ranks(arms)[:k]]

    def piped(question: Question, k: int) -> list[str]:
        profile = RetrievalProfile(
            axes_enabled=(), exact_dedup_enabled=False, wing_diversity_weight=0.0, candidate_pool_multiplier=_POOL // k
        )
        found = pipeline.run(question.text, k=k, where=_where(question), profile=profile, dry_run=True)
        return [result.id for result in found.results]

    return {
        "BM25": lambda question, k: arm(question, k, vector=False),
        "vectors": lambda question, k: arm(question, k, lexical=False),
        "equal weights": equal,
        JUDGED: fused,
        "pipeline": piped,
    }


def _where(question: Question) -> dict[str, str] | None:
    return None if question.scope is None else {"session": question.scope}


def recall(way: Way, names: dict[str, str], questions: Sequence[Question]) -> list[float]:
    """Mean recall at each depth."""
    deepest = max(DEPTHS)
    shares = []
    for question in questions:
        found = [names[record_id] for record_id in way(question, deepest)]
        shares.append([len(question.relevant & set(found[:k])) / len(question.relevant) for k in DEPTHS])
    return [float(mean) for mean in np.mean(shares, axis=0)] if shares else [0.0] * len(DEPTHS)


def sample() -> RetrievalSet:
    """Passages that come with the package: the middle sentence of each asks for its passage. Only to see that all is well."""
    documents: dict[str, str] = {}
    questions = []
    for half in HALVES:
        for label, passages in in_half(shipped_passages(), half).items():
            for i, passage in enumerate(passages):
                spans = segment(passage.text).sentences.tolist()
                if len(spans) < 5:
                    continue
                name = f"{half} {label} {i}"
                start, end = spans[len(spans) // 2]
                documents[name] = passage.text[:start] + passage.text[end:]
                questions.append(Question(passage.text[start:end], frozenset({name}), half))
    return RetrievalSet("sample", documents, {}, tuple(questions))


def run(data: Path | None) -> EvalReport:
    """Every way on every set in `data`, or on the sample."""
    sets = [sample()] if data is None else [load(data) for load in LOADERS.values()]
    notes: list[str] = []
    failures: list[str] = []
    figures: dict[str, tuple[Figure, ...]] = {}
    for half in HALVES:
        won = compared = 0
        for found in sets:
            with tempfile.TemporaryDirectory() as folder:
                index, names = built(found, Path(folder) / "index")
                with index:
                    measured = {name: recall(way, names, found.in_half(half)) for name, way in ways(index).items()}
            for name, values in measured.items():
                shown = "  ".join(f"recall@{k} {value:.4f}" for k, value in zip(DEPTHS, values, strict=True))
                notes.append(f"{half:9} {found.name:10} {name:16} {shown}")
            for name in PLAIN:
                for k, fused, plain in zip(DEPTHS, measured[JUDGED], measured[name], strict=True):
                    compared += 1
                    won += fused > plain
                    if fused <= plain and half == HALVES[1]:
                        failures.append(f"{found.name} recall@{k}: {fused:.4f}, {name} {plain:.4f}")
        figures[half] = (Figure("comparisons that fused search wins", won, compared, None if data is None else 1.0),)
    judged = figures[HALVES[1]][0]
    title = "Retrieval" if data is not None else "Retrieval, on a sample that proves nothing"
    return EvalReport("retrieval", title, CRITERION, figures, tuple(failures), tuple(notes), passed=judged.passed)
