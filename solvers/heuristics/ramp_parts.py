"""What ramps share: sizes y_{i+1} = a y_i + b from y_0 on, for every length; the best rounded one.

Notation  a: ratio; b: step, bytes; y_i = p_i y_0 + o_i, p_i = a^i, o_i = b (1 + a + .. + a^{i-1}).
Cost      O(length), once; then O(1) for the last size or the sum of any length.
Traps     a near 1: everything is summed term by term, nothing is divided by 1 - a; a > 1 overflows
          to infinity, which no limit on sizes admits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.problem import Problem
from domain.solution import Notice
from solvers.contract import Candidate, Deadline
from solvers.kernels import cut_latency_us
from solvers.line_problem import LineProblem
from solvers.rounding import round_cut

Floats = NDArray[np.float64]

_MIN_LOG = -708.0  # logarithm of the least power that is kept
_SAMPLES = 64  # counts whose equal fragments are priced


@dataclass(frozen=True, slots=True)
class Recurrence:
    """For each length l = 1.. at index l-1: p and o of the last size, and their sums so far."""

    powers: Floats
    offsets: Floats
    power_sums: Floats
    offset_sums: Floats

    @classmethod
    def of(cls, ratio: float, step: float, length: int) -> Recurrence:
        """Return all lengths up to this one."""
        with np.errstate(over="ignore", invalid="ignore"):
            powers = _powers(ratio, length)
            power_sums = np.cumsum(powers)
            offsets = np.concatenate([[0.0], step * power_sums[:-1]])
            return cls(powers, offsets, power_sums, np.cumsum(offsets))

    def sizes(self, start: float, count: int) -> Floats:
        """Return the first `count` sizes from this start on."""
        out: Floats = self.powers[:count] * start + self.offsets[:count]
        return out

    def starts_within(self, minimum: float, maximum: float) -> tuple[Floats, Floats]:
        """Return between which starts all sizes of each length lie in [minimum, maximum].

        None does where low > high. The sizes rise or fall all along, so the first and the last one
        are enough.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            low = (minimum - self.offsets) / self.powers
            high = (maximum - self.offsets) / self.powers
        fixed = self.powers == 0.0  # the last size is its offset, whatever the start
        fits = (self.offsets >= minimum) & (self.offsets <= maximum)
        low = np.where(fixed, np.where(fits, minimum, np.inf), low)
        high = np.where(fixed, np.where(fits, maximum, -np.inf), high)
        known = np.isfinite(self.power_sums) & np.isfinite(self.offset_sums)
        low = np.where(known, np.maximum(low, minimum), np.inf)
        high = np.where(known, np.minimum(high, maximum), -np.inf)
        return low, high


def _powers(ratio: float, length: int) -> Floats:
    """ratio^0 .. ratio^(length-1); 0 where that is below all normal numbers, which are slow."""
    if not 0.0 < ratio < 1.0:
        out: Floats = ratio ** np.arange(float(length))
        return out
    normal = min(length, int(min(_MIN_LOG / np.log(ratio), float(length))) + 1)
    return np.concatenate([ratio ** np.arange(float(normal)), np.zeros(length - normal)])


def promising_length(lines: LineProblem) -> int:
    """Return the count that no larger one can beat: it costs some stage k g_b + B G_b, and equal
    sizes cost less.
    """
    k = np.geomspace(lines.k_min, lines.k_max, _SAMPLES).astype(np.int64)
    t = lines.g + lines.G * (lines.B / k)[:, None]
    reached = float((t.sum(axis=1) + (k - 1) * t.max(axis=1)).min())
    paying = lines.g > 0.0
    spare = reached - lines.B * lines.G[paying] - (lines.g.sum() - lines.g[paying])
    with np.errstate(over="ignore"):
        maximum = float((spare / lines.g[paying]).min(initial=2.0**40))
    return max(lines.k_min, min(lines.k_max, int(max(maximum, 0.0) * (1.0 + 1e-9)) + 2))


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
