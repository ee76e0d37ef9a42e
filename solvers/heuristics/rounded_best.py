"""Several real cuts of one strategy to its one whole-byte candidate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.problem import Problem
from domain.solution import Notice
from solvers.contract import Candidate, Deadline
from solvers.kernels import cut_latency_us
from solvers.rounding import round_cut

Floats = NDArray[np.float64]

ROUNDED_CELLS = 20_000  # fragments * stages of all cuts that are rounded after the first
_CLOSE = 1e-9  # relative error of a size or of the sum at which a real cut is still one


def best_rounded(
    problem: Problem,
    cuts: Sequence[Floats],
    deadline: Deadline,
    *,
    notices: tuple[Notice, ...] = (),
) -> Candidate:
    """Round each cut; the least latency wins, then fewer fragments, then a smaller first one.

    They are taken by their real latency, until that is no better than a whole-byte one already
    found or ROUNDED_CELLS are spent. A cut whose sizes leave the limits or miss the message (a
    recurrence that grew amplifies rounding) is dropped. `real_sizes` of the result are the real cut
    of least latency, whichever rounded best. Raises StrategyDeclined where no cut is left.
    """
    ranked = sorted((_latency_us(problem, x), len(x), i) for i, x in enumerate(cuts))
    real: Floats | None = None
    found: list[tuple[float, int, tuple[int, ...]]] = []
    cells, cut_off = 0, False
    tried: list[Floats] = []
    for real_us, count, i in ranked:
        if not _is_cut(problem, cuts[i]):
            continue
        real = cuts[i] if real is None else real
        if any(len(x) == count and np.allclose(x, cuts[i], rtol=_CLOSE, atol=0.0) for x in tried):
            continue
        if found and (real_us >= min(found)[0] or cells > ROUNDED_CELLS):
            break
        cut_off = bool(found) and deadline.passed
        if cut_off:
            break
        cells += count * len(problem.pipeline)
        tried.append(cuts[i])
        rounded = round_cut(problem, cuts[i])
        if rounded is not None:
            latency = _latency_us(problem, np.array(rounded, dtype=float))
            found.append((latency, len(rounded), rounded))
    if real is None:
        raise StrategyDeclined("its recurrence gives no cut within the limits", field="strategy")
    if not found:
        raise StrategyDeclined("the limits admit no whole-byte cut near it", field="strategy")
    return Candidate(min(found)[2], tuple(real.tolist()), notices=notices, cut_off=cut_off)


def _is_cut(problem: Problem, x: Floats) -> bool:
    low, high = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    inside = low * (1.0 - _CLOSE) <= x.min() and x.max() <= high * (1.0 + _CLOSE)
    return bool(inside and abs(float(x.sum()) / problem.message_bytes - 1.0) <= _CLOSE)


def _latency_us(problem: Problem, x: Floats) -> float:
    return cut_latency_us(problem.pipeline, x)
