"""How the latency of a cut that is kept moves with the costs of its stages.

Source    the paths of Wang98 eq. (1)-(3); docs/theory.md, "Sensitivities of an answer".
Cost      O(fragments x stages^2).
Exact     derivatives are whole numbers, of fragments and of bytes on the cut's critical paths.
"""

from __future__ import annotations

import numpy as np

from domain.pipeline import FitRange, Pipeline
from domain.sensitivity import Slope
from solvers.kernels import stage_times_us

_TIE = 1e-12  # of the latency: paths that differ by less are equally long


def cut_slopes(pipeline: Pipeline, cut: tuple[int, ...]) -> tuple[list[Slope], list[Slope]] | None:
    """Return the derivatives of a cut's latency by each stage's overhead and cost per byte.

    A path counts by its fragments in the stage (1) and by their bytes; of all longest paths the
    most is the derivative from above, the least that from below. A stage's costs move at all sizes
    alike. None where stages hand fragments on in parts, which is another recurrence.
    """
    n, count = len(pipeline), len(cut)
    if pipeline.without_handoffs is not pipeline:
        return None
    sizes = np.array(cut, dtype=np.int64)
    big = 4 * (int(sizes.sum()) + count) + 1
    if big * count >= 1 << 62:
        return None
    times = stage_times_us(pipeline, sizes.astype(np.float64))
    tie_us = _TIE * float(times.sum(axis=0).max() + times.sum(axis=1).max())
    steps = np.stack([np.ones(count, dtype=np.int64), sizes, np.full(count, -1), -sizes], axis=1)
    sums = np.cumsum(steps, axis=0)
    entry = np.full(count, -np.inf)
    entry[0] = 0.0
    counts = np.zeros((count, n, 4), dtype=np.int64)  # of the paths to here, most and (minus) least
    for j in range(n):
        spent = np.cumsum(times[:, j])
        ahead = entry - (spent - times[:, j])
        best = np.maximum.accumulate(ahead)
        group = np.cumsum(np.diff(best, prepend=best[0]) > tie_us)[:, None, None]
        passed = np.zeros_like(counts)
        passed[:, j] = sums
        before = passed.copy()
        before[:, j] -= steps
        among = np.where(
            (ahead >= best - tie_us)[:, None, None], counts - before + group * big, -(1 << 62)
        )
        counts = np.maximum.accumulate(among, axis=0) - group * big + passed
        entry = best + spent
    most = counts[-1]
    ranges = [stage.ranges for stage in pipeline.stages]
    return (
        [
            Slope(None if _is_zero(ranges[j], "overhead_us") else -float(low), float(high))
            for j, (high, low) in enumerate(zip(most[:, 0], most[:, 2], strict=True))
        ],
        [
            Slope(None if _is_zero(ranges[j], "ns_per_byte") else -float(low), float(high))
            for j, (high, low) in enumerate(zip(most[:, 1], most[:, 3], strict=True))
        ],
    )


def _is_zero(ranges: tuple[FitRange, ...], name: str) -> bool:
    return any(getattr(part, name) == 0.0 for part in ranges)
