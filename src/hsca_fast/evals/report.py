"""What an eval found: its criterion, its figures with confidence intervals, and the cases that failed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

SEED = 20261118


@dataclass(frozen=True, slots=True)
class Figure:
    """A share of cases.

    Examples
    --------
    >>> figure = Figure("central topic found", 18, 20, target=0.8)
    >>> figure.share, figure.passed, [round(x, 3) for x in figure.interval]
    (0.9, True, [0.699, 0.972])
    """

    name: str
    passed_cases: int
    cases: int
    target: float | None = None  # None: told, not judged

    @property
    def share(self) -> float:
        return self.passed_cases / self.cases if self.cases else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        return wilson_interval(self.passed_cases, self.cases)

    @property
    def passed(self) -> bool:
        return self.target is None or (self.cases > 0 and self.share >= self.target)


@dataclass(frozen=True, slots=True)
class EvalReport:
    """One eval on both halves; only the held-out half is judged."""

    number: str
    title: str
    criterion: str
    figures: dict[str, tuple[Figure, ...]]  # by half
    failures: tuple[str, ...]  # of the held-out half
    notes: tuple[str, ...] = ()
    passed: bool = field(default=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "eval": self.number,
            "title": self.title,
            "criterion": self.criterion,
            "passed": self.passed,
            "figures": {
                half: [
                    {
                        "name": f.name,
                        "passed_cases": f.passed_cases,
                        "cases": f.cases,
                        "share": round(f.share, 4),
                        "wilson_95": [round(x, 4) for x in f.interval],
                        "target": f.target,
                        "passed": f.passed,
                    }
                    for f in figures
                ]
                for half, figures in self.figures.items()
            },
            "failures": list(self.failures),
            "notes": list(self.notes),
        }

    def to_text(self, *, most_failures: int = 10) -> str:
        """A page to read."""
        lines = [f"Eval {self.number}: {self.title}", f"  criterion: {self.criterion}"]
        for half, figures in self.figures.items():
            for f in figures:
                low, high = f.interval
                judged = (
                    ""
                    if f.target is None or half == "dev"
                    else f"   {'pass' if f.passed else 'FAIL'} (>= {f.target:.0%})"
                )
                lines.append(
                    f"  {half:9} {f.name:44} {f.passed_cases:5} / {f.cases:<5} {f.share:6.1%}  [{low:.1%}, {high:.1%}]{judged}"
                )
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  failed: {case}" for case in self.failures[:most_failures]]
        if len(self.failures) > most_failures:
            lines.append(f"  ... and {len(self.failures) - most_failures} more failed (--json has all)")
        lines.append(f"  {'PASSED' if self.passed else 'NOT PASSED'} on the held-out half")
        return "\n".join(lines)


def wilson_interval(passed: int, cases: int, *, z: float = 1.959964) -> tuple[float, float]:
    """The 95 % score interval of a share (Wilson 1927); (0, 1) without cases.

    Examples
    --------
    >>> [round(x, 4) for x in wilson_interval(9, 10)]
    [0.5958, 0.9821]
    """
    if not 0 <= passed <= cases:
        raise ValueError(f"passed must be between 0 and cases ({cases}), not {passed}")
    if cases == 0:
        return 0.0, 1.0
    share, z2 = passed / cases, z * z
    centre = (share + z2 / (2 * cases)) / (1 + z2 / cases)
    reach = z / (1 + z2 / cases) * math.sqrt(share * (1 - share) / cases + z2 / (4 * cases * cases))
    return max(0.0, centre - reach), min(1.0, centre + reach)
