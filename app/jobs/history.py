"""How a job's best latency and the bound on it came about, while it ran."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.schemas.base import dump_json

MAX_POINTS = 200


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """What was known from this moment of the job on."""

    elapsed_s: float
    best_latency_us: float
    lower_bound_us: float


@dataclass(slots=True)
class JobHistory:
    """The points of one run, in order of time, never worse than those before; at most MAX_POINTS.

    Where there are more every second one goes, the first and the last aside.
    """

    points: list[HistoryPoint] = field(default_factory=list)

    def add(self, best_us: float, bound_us: float, *, elapsed_s: float) -> bool:
        """Return whether this is better than what was known, which then is the next point."""
        if self.points:
            last = self.points[-1]
            best_us, bound_us = (
                min(best_us, last.best_latency_us),
                max(bound_us, last.lower_bound_us),
            )
            if (best_us, bound_us) == (last.best_latency_us, last.lower_bound_us):
                return False
        self.points.append(HistoryPoint(round(max(0.0, elapsed_s), 3), best_us, bound_us))
        if len(self.points) > MAX_POINTS:
            self.points = [*self.points[:-1:2], self.points[-1]]
        return True

    def as_json(self) -> bytes:
        """Return it as a job's row keeps it: a list of JobPointOut."""
        return dump_json(self.points)
