"""The papers' study of a disk behind, or between, networks: algorithms A, B, C and C'.

Source    Wang98 sec. 5.5 and Figure 14; theory sec. 5.
Notation  B: message; k blocks of the disk; c(x): compound time by the convention, µs.
Cost      milliseconds: a few dozen block counts, a few regressions of FIT_SAMPLES sizes.
Exact     A and B are the best of their kind in real sizes, up to MAX_BLOCKS blocks.
Traps     all of it is the paper's convention, in real sizes: B by c(x) itself, C and C' by the line
          fitted to c(x), as the paper's model says. Whoever wants a cut to use takes `hierarchical`
          or `hierarchical_ramp`, which choose by the true latency.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from domain.hierarchy import Grouping
from domain.pipeline import Pipeline
from solvers.nested.compound import plan_pieces, split_at, split_plan
from solvers.nested.compound_ramp import (
    FIRST_FIT_SHARE,
    FIT_SAMPLES,
    CompoundLines,
    best_ramps,
    fitted_line,
)

MAX_BLOCKS = 64
_ROUNDS = 50  # regressions at most; the range of sizes stands long before
_STANDS = 1e-9  # relative change of the range in use at which it stands


@dataclass(frozen=True, slots=True)
class StudyResult:
    """Latency (µs, without delay) of one algorithm, and the sizes of its blocks at the disk."""

    latency_us: float
    blocks_bytes: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Study:
    """A, B and C (C' where there are stages behind the slow one) on one pipeline."""

    fixed: StudyResult
    hierarchical: StudyResult
    hierarchical_ramp: StudyResult

    @property
    def hierarchy_gain(self) -> float:
        """Improvement of B over A: old/new - 1."""
        return self.fixed.latency_us / self.hierarchical.latency_us - 1.0

    @property
    def ramp_gain(self) -> float:
        """Improvement of C over B: old/new - 1."""
        return self.hierarchical.latency_us / self.hierarchical_ramp.latency_us - 1.0


def disk_study(pipeline: Pipeline, slow: int, message_bytes: int) -> Study:
    """A, B and C with the stage of index `slow` as the disk; every stage must be one line."""
    grouping = split_at(0, len(pipeline) - 1, slow)
    return Study(
        fixed=_fixed(pipeline, float(message_bytes)),
        hierarchical=_equal_blocks(pipeline, grouping, float(message_bytes)),
        hierarchical_ramp=_ramp(pipeline, grouping, float(message_bytes)),
    )


def _fixed(pipeline: Pipeline, size: float) -> StudyResult:
    x = np.array([size])
    best = plan_pieces(pipeline, Grouping(0, len(pipeline) - 1), x, x)
    count = int(best.counts[0, 0])
    return StudyResult(float(best.time_us[0]), (size / count,) * count)


def _equal_blocks(pipeline: Pipeline, grouping: Grouping, size: float) -> StudyResult:
    count = np.arange(1.0, MAX_BLOCKS + 1.0)
    time_us, _ = split_plan(pipeline, grouping, size / count, count, size / count)
    best = int(np.argmin(time_us))
    return StudyResult(float(time_us[best]), (size / (best + 1),) * (best + 1))


def _ramp(pipeline: Pipeline, grouping: Grouping, size: float) -> StudyResult:
    low, high = size / FIRST_FIT_SHARE, size
    for _ in range(_ROUNDS):
        lines = _lines_over(pipeline, grouping, low, high)
        latency_us, sizes = best_ramps(lines, size, min_blocks=1, max_blocks=MAX_BLOCKS)[0]
        before, (low, high) = (low, high), (float(sizes.min()), float(sizes.max()))
        if abs(low - before[0]) + abs(high - before[1]) <= _STANDS * size or low == high:
            break
    return StudyResult(latency_us, tuple(sizes.tolist()))


def _lines_over(pipeline: Pipeline, grouping: Grouping, low: float, high: float) -> CompoundLines:
    x = np.linspace(low, high, FIT_SAMPLES)
    before, behind = (
        fitted_line(x, plan_pieces(pipeline, part, x, x).time_us) if part is not None else None
        for part in (grouping.before, grouping.behind)
    )
    slow = pipeline.stages[grouping.slow or 0].ranges[0].line
    return CompoundLines(before, slow, behind)
