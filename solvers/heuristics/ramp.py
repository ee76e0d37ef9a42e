"""Two stages: sizes that grow or shrink so that the second stage never waits, nor keeps waiting.

Source    Wang98 sec. 4.1; theory.md sec. 3. Exactness for every k: derived below.
Notation  g, G: (2,) µs and µs/byte; k fragments; y: sizes from one end of the cut, the end from
          which they contract: y_{i+1} = a y_i + b with 0 <= a <= 1; m, M: least and greatest size.
Cost      O(k_max), every k at once; k_max from what equal fragments cost.
Exact     for every k whose ramp keeps all limits; over all k unless a k that was skipped could be
          better, which is tested and said.
Traps     G_1 > G_0 makes the forward recurrence grow and amplify rounding, so it is run backwards;
          a near 1 has no (1 - a) in a denominator here; a^k cannot overflow because a <= 1; both
          G = 0 leaves no ramp at all.

Forwards G_0 x_{i+1} + g_0 = G_1 x_i + g_1: a fragment is through stage 0 when the one before it is
through stage 1. Then all k lattice paths (into stage 1 at fragment i) are equally long. Weights w_i
of these paths with w_{i+1} G_1 = w_i G_0 count every size with the same factor, so they are a dual
of the program without limits on sizes, and the ramp is its optimum: for every k its latency is a
lower bound, whether its sizes keep the limits or not, and the optimum where they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.problem import Problem
from domain.solution import Notice, Strategy
from solvers.contract import Candidate, Deadline, SolveOptions, StrategySpec
from solvers.kernels import cut_latency_us
from solvers.line_problem import LineProblem
from solvers.rounding import round_cut

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


Floats = NDArray[np.float64]

TRIED_COUNTS = 8  # the best counts in real sizes that are rounded to whole bytes
_TIE = 1e-12  # relative difference of two latencies that is rounding alone


def run(problem: Problem, options: SolveOptions, deadline: Deadline) -> Candidate:
    """Return the best ramp over every admitted k. Raises StrategyDeclined where there is none."""
    lines = _lines(problem)
    length = promising_length(lines)
    candidate = _best_ramp(problem, lines, length, deadline)
    if candidate is None and length < lines.k_max:
        candidate = _best_ramp(problem, lines, lines.k_max, deadline)
    if candidate is None:
        raise StrategyDeclined(
            "no ramp satisfies the limits: for every count its sizes leave min_fragment_bytes or "
            "max_fragment_bytes",
            field="strategy",
        )
    return candidate


def _best_ramp(
    problem: Problem, lines: LineProblem, length: int, deadline: Deadline
) -> Candidate | None:
    """The best ramp of at most `length` fragments, if there is one."""
    ratio, step, backwards = _contracting(lines)
    y = Recurrence.of(ratio, step, length)
    start = (lines.B - y.offset_sums) / y.power_sums
    low, high = y.starts_within(lines.m, lines.M)
    k = np.arange(1, length + 1)
    fits = (start >= low) & (start <= high) & (k >= lines.k_min)
    if not fits.any():
        return None
    first = y.powers * start + y.offsets if backwards else start
    with np.errstate(over="ignore", invalid="ignore"):  # only where the sizes do not fit
        latency = lines.g[0] + lines.G[0] * first + k * lines.g[1] + lines.B * lines.G[1]
    order = np.argsort(np.where(fits, latency, np.inf), kind="stable")[:TRIED_COUNTS]
    cuts = [y.sizes(start[index], index + 1) for index in order if fits[index]]
    skipped = latency[~fits & (k >= lines.k_min)]
    binds = bool((skipped < latency[order[0]] * (1.0 - _TIE)).any())
    return best_rounded(
        problem,
        [sizes[::-1] if backwards else sizes for sizes in cuts],
        deadline,
        notices=(_LIMITS_BIND,) if binds else (),
    )


def _lines(problem: Problem) -> LineProblem:
    if len(problem.pipeline) != 2:
        raise StrategyDeclined("ramp needs exactly two stages", field="strategy")
    lines = LineProblem.of(problem)
    if lines is None:
        raise StrategyDeclined("ramp needs stages of one line each", field="strategy")
    if not lines.G.any():
        raise StrategyDeclined(
            "ramp needs a per-byte cost in one of its stages; without any, one fragment is best",
            field="strategy",
        )
    return lines


def _contracting(lines: LineProblem) -> tuple[float, float, bool]:
    """(a, b, backwards): the recurrence in the direction in which a <= 1."""
    (g0, g1), (G0, G1) = lines.g, lines.G
    with np.errstate(over="ignore"):  # no ramp but one fragment is left then
        if G1 <= G0:
            return float(G1 / G0), float((g1 - g0) / G0), False
        return float(G0 / G1), float((g0 - g1) / G1), True


_LIMITS_BIND = Notice(
    "not_proven_optimal",
    "the ramp is a heuristic here: with a count that was skipped, because its sizes would leave "
    "the least or the greatest fragment size, a cut that is no ramp may be better",
)

SPEC = StrategySpec(
    name=Strategy.RAMP,
    run=run,
    needs="exactly two stages of one line each, not both free of per-byte cost",
    optimal_when="always for two stages, unless the least or the greatest size binds",
)
