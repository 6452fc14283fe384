"""What a phase is."""

from __future__ import annotations

from typing import ClassVar

from hsca_fast.retrieval.profile import RetrievalProfile
from hsca_fast.retrieval.run import Run


class Phase:
    """A step of a retrieval.

    Attributes
    ----------
    name
        In traces and timings.
    vital
        Without it there is no retrieval: its failure fails the run. Others are left out when they fail.
    """

    name: ClassVar[str]
    vital: ClassVar[bool] = False

    def wanted(self, profile: RetrievalProfile) -> bool:
        """Whether the profile asks for it."""
        return True

    def apply(self, run: Run) -> None:
        """Change the run."""
        raise NotImplementedError
