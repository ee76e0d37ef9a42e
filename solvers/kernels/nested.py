"""The recurrence for cuts that differ from stage to stage, vectorised over the blocks of a stage.

Source    theory sec. 5 (refragmentation); Wang98 eq. (1)-(3) within a stage.
Notation  n stages; cuts[j]: (k_j,) sizes of stage j's blocks, bytes; t, tau: (k_j,) µs.
Cost      O(sum of k_j) NumPy work, and a binary search per block where the cut changes.
Exact     equal to `domain.nested.nested_latency_us` to 1e-12 relative, by property test.
Traps     a block needs the block before that holds its last byte, not one of equal index.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import Pipeline
from solvers.kernels.recurrence import stage_times_us

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def levels_latency_us(pipeline: Pipeline, cuts: Sequence[Ints]) -> float:
    """Latency in µs of one cut per stage, the delay included.

    Stages that share a cut should share its array: then no search for the holding block is made.
    """
    tau = np.zeros(len(cuts[0]))
    cut_before = cuts[0]
    for stage, cut in zip(pipeline.stages, cuts, strict=True):
        if cut is not cut_before:
            tau = tau[np.searchsorted(np.cumsum(cut_before), np.cumsum(cut), side="left")]
            cut_before = cut
        t = stage_times_us(Pipeline((stage,)), cut.astype(float))[:, 0]
        done = np.cumsum(t)
        tau = np.maximum.accumulate(tau - (done - t)) + done
    return float(tau[-1]) + pipeline.delay_us
