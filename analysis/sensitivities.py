"""How an answer's latency moves with the costs of its stages and with its message.

Source    docs/theory.md, "Sensitivities of an answer": Danskin's theorem on the reduced dual, and
          the paths of Wang98 eq. (1)-(3).
Notation  n stages, k fragments; g, G: (n,) µs and µs/byte; x: (k,) bytes; p: (k-1, n), the reduced
          dual (solvers/exact/dual.py); f: (k, n), the share of paths that fragment i spends in
          stage j; lambda: dT*/dB.
Cost      two solves of the answer's count, each a small part of the search for it; at a kink
          4n + 4 more. Of a cut that is kept O(k n^2).
Exact     the bounds of CostChange are proven, for a repaired p is a feasible dual at any costs.
          Derivatives of the optimum are those of a primal and a dual solution that agree to 1e-9;
          those of a cut are whole numbers, of fragments and of bytes on its critical paths.
Traps     an interior point gives the centre of all optimal duals, so that at a kink its derivative
          lies between the two sides and is that of neither. Both sides are then solved beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.explain import Explained
from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import Problem
from domain.sensitivity import Basis, CostChange, Sensitivities, Slope, StageSensitivity
from domain.solution import Solution, Strategy
from solvers.contract import Deadline
from solvers.exact.dual import marginal_us, value_us
from solvers.exact.lp.lines import CountResult
from solvers.exact.structured import solve_count
from solvers.kernels import stage_times_us
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHANGES = (-0.1, 0.1)
MAX_CELLS = 200_000  # fragments times stages of an answer that is looked at
_OPTIMUM_CELLS = 20_000  # of one whose optimum is solved again: each solve takes some ms
_KINK_CELLS = 500  # of one whose kinks are
_OPTIMAL = (Strategy.AUTO, Strategy.EXACT)
_CHANGED_CELLS = 500  # of one whose optimum is solved at changed costs
_CHANGED = 1e-6  # of the latency: how closely
_AGREE = 1e-9  # of primal and dual, relative
_AIM = 1e-13
_STEPS = (3e-5, 3e-6)  # relative: beside a kink, the second where another is nearer than the first
_FOLLOWS = 1e-5  # of the latency, times the step: what it may differ by from its derivative
_KINK = 1e-3  # relative: what the derivatives beside a point differ by at a kink
_ONE = 1e-6  # relative: derivatives that differ by less are one
_TIE = 1e-12  # of the latency: paths that differ by less are equally long
_NO_DEADLINE = Deadline(float("inf"))


@dataclass(frozen=True, slots=True)
class _Gradient:
    """dT*/dg and dT*/dG (n,), dT*/dB, and the dual and primal that they are of."""

    g: Floats
    G: Floats
    B: float
    found: CountResult


def sensitivities(solution: Solution, asked: Strategy) -> Sensitivities | None:
    """Return how a solution's latency moves; None of an aggregate and of very many fragments.

    The optimum's derivatives where the stages are lines and the strategy asked for seeks the
    optimum, else those of the solution's own cut.
    """
    problem = solution.problem
    if not isinstance(problem, Problem):
        return None
    cuts = solution.levels or (solution.schedule.fragment_bytes,)
    explained = Explained(problem.pipeline, cuts, problem.limits, problem.fragment_cap)
    if explained.cells > MAX_CELLS or solution.latency_us <= 0.0:
        return None
    optimum = _optimum(solution, problem, asked)
    slopes = None
    if optimum is not None:
        slopes = _optimum_slopes(*optimum)
    if slopes is not None:
        return _assembled(explained, solution, Basis.OPTIMUM, slopes, optimum)
    n = len(problem.pipeline)
    unknown = ([Slope()] * n, [Slope()] * n, Slope())
    kept = None if solution.levels else cut_slopes(problem.pipeline, cuts[0])
    slopes = unknown if kept is None else (*kept, Slope())
    return _assembled(explained, solution, Basis.CUT, slopes, optimum)


_Slopes = tuple[list[Slope], list[Slope], Slope]


def _assembled(
    explained: Explained,
    solution: Solution,
    basis: Basis,
    slopes: _Slopes,
    optimum: tuple[LineProblem, _Gradient] | None,
) -> Sensitivities:
    pipeline = explained.pipeline
    changed = [
        (stage, by, scaled(pipeline, stage, 1.0 + by))
        for stage in range(len(pipeline))
        for by in CHANGES
    ]
    latencies = explained.latencies_us(one for _, _, one in changed)
    rows: list[list[CostChange]] = [[] for _ in pipeline.stages]
    for (stage, by, _), latency_us in zip(changed, latencies, strict=True):
        best_us, bound_us = (None, None) if optimum is None else _changed(*optimum, stage, by)
        if bound_us is not None:
            bound_us = min(latency_us, pipeline.delay_us + bound_us)
            best_us = None if best_us is None else pipeline.delay_us + best_us
        rows[stage].append(CostChange(by, latency_us, best_us, bound_us))
    overhead, per_byte, message = slopes
    return Sensitivities(
        basis,
        solution.latency_us,
        None if optimum is None else pipeline.delay_us + optimum[1].found.upper_us,
        message,
        tuple(
            StageSensitivity(by_overhead, by_byte, tuple(changes))
            for by_overhead, by_byte, changes in zip(overhead, per_byte, rows, strict=True)
        ),
    )


def _changed(
    lines: LineProblem, here: _Gradient, stage: int, by: float
) -> tuple[float | None, float]:
    """The optimum at changed costs, µs without the delay, None where it is not solved; its bound.

    The dual of the unchanged costs is a feasible one of the changed costs too.
    """
    factor = np.where(np.arange(lines.n) == stage, 1.0 + by, 1.0)
    there = replace(lines, g=lines.g * factor, G=lines.G * factor)
    k = here.found.k
    if k * lines.n > _CHANGED_CELLS:
        return None, value_us(there, here.found.p)
    found = solve_count(there, k, _NO_DEADLINE, close=_CHANGED, aim=_CHANGED)
    return found.upper_us, found.lower_us


def scaled(pipeline: Pipeline, stage: int, factor: float) -> Pipeline:
    """Return the pipeline with both costs of one stage times this factor, at every size."""
    old = pipeline.stages[stage]
    ranges = tuple(
        replace(part, overhead_us=part.overhead_us * factor, ns_per_byte=part.ns_per_byte * factor)
        for part in old.ranges
    )
    stages = list(pipeline.stages)
    stages[stage] = Stage(old.name, ranges, old.handoff_bytes)
    return replace(pipeline, stages=tuple(stages))


# --- the optimum ----------------------------------------------------------------------------------


def _optimum(
    solution: Solution, problem: Problem, asked: Strategy
) -> tuple[LineProblem, _Gradient] | None:
    """The relaxation and its gradient at the solution's count; None where it is not solved."""
    k = solution.schedule.fragments
    pipeline = problem.pipeline
    if solution.levels or asked not in _OPTIMAL:
        return None
    if k * len(pipeline) > _OPTIMUM_CELLS or pipeline.without_handoffs is not pipeline:
        return None
    lines = LineProblem.of(problem)
    gradient = None if lines is None else _gradient(lines, k)
    return None if lines is None or gradient is None else (lines, gradient)


def _gradient(lines: LineProblem, k: int) -> _Gradient | None:
    """The derivatives that a primal and a dual solution give; None where they do not agree."""
    if not k * lines.m <= lines.B <= k * lines.M:
        return None
    found = solve_count(lines, k, _NO_DEADLINE, close=_AGREE / 10.0, aim=_AIM)
    if found.upper_us - found.lower_us > _AGREE * found.upper_us:
        return None
    # A fragment is in the stages from where its path came to where it goes on to the next.
    p, n = found.p, lines.n
    at_end = np.vstack([p, np.eye(1, n, n - 1)])
    at_start = np.vstack([np.eye(1, n, 0), p])
    came = np.cumsum(at_start, axis=1)
    gone = np.cumsum(at_end, axis=1) - at_end
    spent = came - gone
    return _Gradient(g=1.0 + p.sum(axis=0), G=found.x @ spent, B=marginal_us(lines, p), found=found)


def _optimum_slopes(lines: LineProblem, here: _Gradient) -> _Slopes | None:
    """Both derivatives by each parameter; None where a kink's sides cannot be had."""
    k = here.found.k
    tilt = 1.0 + 0.5 * np.cos(np.arange(2 * lines.n + 1, dtype=float) ** 2)
    beside = _gradient(_moved(lines, k, _STEPS[0] * tilt), k)
    if beside is not None and _is_smooth(here, beside):
        return (
            [_slope(value, cost) for value, cost in zip(here.g.tolist(), lines.g, strict=True)],
            [_slope(value, cost) for value, cost in zip(here.G.tolist(), lines.G, strict=True)],
            Slope(here.B, here.B),
        )
    if k * lines.n > _KINK_CELLS:
        return None
    return _sides(lines, here)


def _slope(value: float, cost: float) -> Slope:
    return Slope(value if cost > 0.0 else None, value)


def _is_smooth(here: _Gradient, beside: _Gradient) -> bool:
    """Whether the derivatives beside a point are those in it, but for their own change.

    At a kink those in it are of the centre of the optimal duals, away from those on each side.
    """
    one, other = np.append(here.g, here.B), np.append(beside.g, beside.B)
    return bool(
        (abs(other - one) <= _KINK * np.append(1.0 + here.g, here.B)).all()
        and (abs(beside.G - here.G) <= _KINK * float(here.found.x.sum())).all()
    )


def _moved(lines: LineProblem, k: int, by: Floats) -> LineProblem:
    """The problem with g, G and B moved: G and B by shares of themselves, g by its own scale.

    A cost of 0 stays where it would fall. Of limits that are the message's own size, they follow.
    """
    n = lines.n
    mean = lines.B / k
    scale = lines.latency_us(np.full(k, mean)) / (n + k - 1)
    overheads = lines.g + by[:n] * np.where(lines.g > 0.0, lines.g, scale)
    costs = lines.G + by[n:-1] * np.where(lines.G > 0.0, lines.G, scale / mean)
    size = lines.B * (1.0 + by[-1])
    return replace(
        lines,
        g=np.maximum(overheads, 0.0),
        G=np.maximum(costs, 0.0),
        B=size,
        M=size if lines.M == lines.B else lines.M,
    )


def _sides(lines: LineProblem, here: _Gradient) -> _Slopes | None:
    """Both derivatives by each parameter, solved beside the point; None where one is not found."""
    n = lines.n
    values = np.concatenate([lines.g, lines.G, [lines.B]])
    centre = np.concatenate([here.g, here.G, [here.B]])

    def side(at: int, sign: float) -> float | None:
        by = sign * np.eye(1, 2 * n + 1, at)[0]
        found = (_beside(lines, here, at, by * step) for step in _STEPS)
        return next((one for one in found if one is not None), None)

    def both(at: int) -> Slope:
        falling = side(at, -1.0) if values[at] > 0.0 else None
        rising = side(at, 1.0)
        # The centre of the optimal duals is that of one side only where the two are one.
        known = [one for one in (falling, rising) if one is not None]
        value = float(centre[at])
        has_sides = at < 2 * n and values[at] > 0.0
        if has_sides and len(known) == 1 and abs(known[0] - value) <= _ONE * abs(value):
            return Slope(value, value)
        return Slope(falling, rising)

    slopes = [both(at) for at in range(2 * n + 1)]
    costs = zip(values[:-1], slopes[:-1], strict=True)
    if any(one.rising is None or (cost and one.falling is None) for cost, one in costs):
        return None
    return slopes[:n], slopes[n:-1], slopes[-1]


def _beside(lines: LineProblem, here: _Gradient, at: int, by: Floats) -> float | None:
    """The derivative beside the point, extrapolated to it from two steps and one.

    None where the latency does not follow it: there is another kink within the step.
    """
    values, found = [], []
    for steps in (0.0, 1.0, 2.0):
        moved = _moved(lines, here.found.k, steps * by)
        values.append(float(np.concatenate([moved.g, moved.G, [moved.B]])[at]))
        gradient = _gradient(moved, here.found.k) if steps else here
        if gradient is None:
            return None
        found.append(gradient)
    near = [float(np.concatenate([one.g, one.G, [one.B]])[at]) for one in found[1:]]
    derivative = 2.0 * near[0] - near[1]
    risen_us = found[1].found.upper_us - here.found.upper_us
    followed_us = 0.5 * (derivative + near[0]) * (values[1] - values[0])
    allowed_us = _FOLLOWS * float(np.abs(by).max()) * here.found.upper_us
    return derivative if abs(risen_us - followed_us) <= allowed_us else None


# --- a cut that is kept ---------------------------------------------------------------------------


def cut_slopes(pipeline: Pipeline, cut: tuple[int, ...]) -> tuple[list[Slope], list[Slope]] | None:
    """Return the derivatives of a cut's latency by each stage's overhead and cost per byte.

    A path counts by its fragments in the stage (1) and by their bytes; of all longest paths the
    most is the derivative from above, the least that from below. A stage's costs move at all sizes
    alike. None where stages hand fragments on in parts, which is another recurrence.
    """
    n, k = len(pipeline), len(cut)
    if pipeline.without_handoffs is not pipeline:
        return None
    sizes = np.array(cut, dtype=np.int64)
    big = 4 * (int(sizes.sum()) + k) + 1
    if big * k >= 1 << 62:
        return None
    times = stage_times_us(pipeline, sizes.astype(np.float64))
    tie_us = _TIE * float(times.sum(axis=0).max() + times.sum(axis=1).max())
    steps = np.stack([np.ones(k, dtype=np.int64), sizes, np.full(k, -1), -sizes], axis=1)
    sums = np.cumsum(steps, axis=0)
    entry = np.full(k, -np.inf)
    entry[0] = 0.0
    counts = np.zeros((k, n, 4), dtype=np.int64)  # of the paths to here, most and (minus) least
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
