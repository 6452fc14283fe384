"""Phase 7: words of what past queries like this one returned."""

from __future__ import annotations

from hsca_fast.retrieval.phases.phase import Phase
from hsca_fast.retrieval.profile import RetrievalProfile
from hsca_fast.retrieval.run import Run


class QueryExpansion(Phase):
    """Finds terms; recall asks once more with each, and what only they bring starts with a part of its score."""

    name = "query_expansion"

    def wanted(self, profile: RetrievalProfile) -> bool:
        return profile.query_expansion_enabled

    def apply(self, run: Run) -> None:
        run.terms = run.evidence.terms(run.asked)
        run.trace["query_expansion_terms"] = list(run.terms)
        run.fire("post_query_expansion", lambda: {"terms": list(run.terms)})
