"""Phase 10: vectors of two models are not compared unnoticed."""

from __future__ import annotations

from hsca_fast.retrieval.phases.phase import Phase
from hsca_fast.retrieval.profile import RetrievalProfile
from hsca_fast.retrieval.run import Run
from hsca_fast.vectors.guard import ModelMismatchError, check_model


class ModelGuard(Phase):
    """Compares the model of the store with that of the query; a mismatch warns, or with `model_guard_strict` ends the run."""

    name = "model_guard"

    def wanted(self, profile: RetrievalProfile) -> bool:
        return profile.model_guard

    def apply(self, run: Run) -> None:
        stored, asking = run.evidence.models()
        strict = run.profile.model_guard_strict
        try:
            warning = None if asking is None else check_model(stored, asking, strict=strict)
        except ModelMismatchError as error:
            run.stopped = True
            warning = run.trace["error"] = str(error)
        run.trace["model_guard"] = "MATCH" if warning is None else "MISMATCH"
        if warning is not None and asking is not None:
            run.warnings.append(warning)
            if run.tracing:
                run.steps.append(
                    {
                        "phase": self.name,
                        "action": "block" if strict else "warn",
                        "ingest_model": stored.name,
                        "query_model": asking.name,
                        "dim_ingest": stored.dim,
                        "dim_query": asking.dim,
                    }
                )
        run.fire(
            "post_model_guard",
            lambda: {
                "match": warning is None,
                "ingest_model": stored.name,
                "query_model": None if asking is None else asking.name,
            },
        )
