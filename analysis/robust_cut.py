"""The cut, and the repeated size, of least worst regret over draws of the costs.

Source    docs/theory.md, "A cut for uncertain costs"; solvers/settings/cut_in_draws.py.
Cost      a solve of the answer's count in each draw, then some linear programs of k + 1 columns.
Exact     the bound is of all real-valued cuts into as many fragments, in the draws looked at; the
          worst regret is that of the whole bytes there. Of repeated sizes all are tried where the
          message is small, else those that are priced anyway. With ranges T is not convex in the
          sizes: the best of a pool, without a bound.
Traps     the draws that a cut was chosen by flatter it: its regret is told from the others too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analysis.draw_costs import PricedSizes, cut_us, quantile, regrets_over, repeated_us
from analysis.draws import Draws, pipeline_of
from analysis.repeated_sizes import is_admitted
from domain.nested import NestedSchedule
from domain.problem import MessageProblem, Problem
from domain.uncertain_answer import RegretFigures, RobustChoice
from domain.uncertainty import ANSWER, NamedCut
from solvers import solve
from solvers.contract import Deadline
from solvers.line_problem import LineProblem
from solvers.rounding import nearest_cut
from solvers.settings.cut_in_draws import LinesInDraws, best_cuts_us, min_worst_regret

Floats = NDArray[np.float64]

CHOSEN_BY = 64  # draws
TIME_LIMIT_S = 2.0
MAX_CELLS = 2_000  # fragments times stages: more take longer than that
POOL_DRAWS = 8  # whose best cuts are tried, where stages have ranges
ALL_SIZES = 16_384  # bytes of a message of which every repeated size is tried
_CLOSE = 1e-4  # of the worst regret to its bound


def robust_choice(
    problem: MessageProblem, draws: Draws, priced: PricedSizes, cut: tuple[int, ...]
) -> RobustChoice | None:
    """Return the best cut into as many fragments as this one for the worst draw; and such a size.

    Regret is over the better of the best such cut and the best repeated size of each draw. Where
    stages have ranges, see `_of_pool`. None where a draw takes no time, and for many fragments.
    """
    if not isinstance(problem, Problem) or len(cut) * draws.stages > MAX_CELLS:
        return None
    if problem.pipeline.without_handoffs is not problem.pipeline:
        return None
    lines, count = LineProblem.of(problem), len(cut)
    if lines is None or draws.overhead_us.shape[1] != 1:
        return _of_pool(problem, draws, priced, cut)
    overheads, costs = draws.overhead_us[:, 0].T.copy(), draws.ns_per_byte[:, 0].T.copy()
    cuts_us = best_cuts_us(lines, overheads, costs, count)
    best_us = np.minimum(cuts_us + draws.delay_us, priced.best_us)
    if not best_us.min() > 0.0:
        return None
    few = slice(0, CHOSEN_BY)
    there = LinesInDraws.of(lines, overheads[few], costs[few], best_us[few], draws.delay_us)
    start = np.array(cut, dtype=np.float64)
    found = min_worst_regret(there, start, Deadline.after(TIME_LIMIT_S), close=_CLOSE)
    whole = nearest_cut(problem, found.x)
    kept = cut if whole is None else tuple(whole.tolist())
    regret, before = (
        regrets_over(_cut_us(draws, problem.message_bytes, one), best_us) for one in (kept, cut)
    )
    if before[few].max() <= regret[few].max():  # whole bytes have undone what was gained
        kept, regret = cut, before
    return replace(
        _chosen(problem, draws, priced, best_us, kept, (regret, before)),
        lower_bound=max(0.0, found.lower_bound),
        is_proven=found.worst_regret - found.lower_bound <= _CLOSE,
    )


def _of_pool(
    problem: Problem, draws: Draws, priced: PricedSizes, cut: tuple[int, ...]
) -> RobustChoice | None:
    """The least worst regret among this cut, one piece, and what `auto` finds in some draws.

    Regret is over the best of these, and of the repeated sizes, in each draw.
    """
    deadline = Deadline.after(TIME_LIMIT_S)
    most = min(problem.fragment_cap, MAX_CELLS // draws.stages)  # the answer's cut has no more
    asked = replace(problem, fragment_cap=most, allow_refragmentation=False)
    pool = [cut, *([(problem.message_bytes,)] if problem.admits((problem.message_bytes,)) else [])]
    for at in range(1, min(1 + POOL_DRAWS, draws.count)):  # the first is the estimate
        if deadline.passed:
            break
        there = replace(asked, pipeline=pipeline_of(draws, at))
        left_s = deadline.remaining_s / (1 + POOL_DRAWS - at)
        pool.append(solve(there, time_limit_s=left_s).schedule.fragment_bytes)
    cuts = list(dict.fromkeys(pool))
    latencies = np.array([_cut_us(draws, problem.message_bytes, one) for one in cuts])
    best_us = np.minimum(latencies.min(axis=0), priced.best_us)
    if not best_us.min() > 0.0:
        return None
    regret = regrets_over(latencies, best_us)
    best = int(regret[:, :CHOSEN_BY].max(axis=1).argmin())
    return _chosen(problem, draws, priced, best_us, cuts[best], (regret[best], regret[0]))


def _chosen(
    problem: Problem,
    draws: Draws,
    priced: PricedSizes,
    best_us: Floats,
    cut: tuple[int, ...],
    regrets: tuple[Floats, Floats],
) -> RobustChoice:
    """This cut and the best repeated size, without a bound; regrets of the cut and the answer's."""
    regret, before = regrets
    sizes, are_all, latency_us = _sizes(problem, draws, priced)
    worst = regrets_over(latency_us, best_us[:CHOSEN_BY]).max(axis=1)
    size = int(worst.argmin())
    return RobustChoice(
        fragment_bytes=cut,
        draws=len(best_us[:CHOSEN_BY]),
        worst_regret=float(regret[:CHOSEN_BY].max()),
        lower_bound=0.0,
        is_proven=False,
        answer_worst_regret=float(before[:CHOSEN_BY].max()),
        other_draws=_figures(regret[CHOSEN_BY:]),
        answer_in_other_draws=_figures(before[CHOSEN_BY:]),
        size_bytes=int(sizes[size]),
        size_worst_regret=float(worst[size]),
        is_best_size=are_all,
    )


def _cut_us(draws: Draws, message_bytes: int, cut: tuple[int, ...]) -> Floats:
    return cut_us(draws, message_bytes, NamedCut(ANSWER, schedule=NestedSchedule((cut,))))


def _sizes(
    problem: Problem, draws: Draws, priced: PricedSizes
) -> tuple[NDArray[np.int64], bool, Floats]:
    """Repeated sizes, whether these are all that are admitted, and their latencies in few draws."""
    if problem.message_bytes > ALL_SIZES:
        return priced.sizes, False, priced.latency_us[:, :CHOSEN_BY]
    every = np.arange(1, problem.message_bytes + 1)
    sizes = every[is_admitted(problem, every)]
    return sizes, True, repeated_us(draws.part(0, CHOSEN_BY), problem.message_bytes, sizes)


def _figures(regret: Floats) -> RegretFigures | None:
    if not len(regret):
        return None
    return RegretFigures(float(regret.mean()), quantile(regret, 0.95), float(regret.max()))
