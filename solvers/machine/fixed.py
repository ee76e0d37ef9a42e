"""Equal fragments for a machine: the best number of them, in real sizes and in whole bytes.

Source    docs/theory.md, "Machines".
Notation  k fragments of B/k; B: message.
Cost      the formula for every count that bounds leave, then a few cuts in whole bytes.
Exact     over k, for equal real sizes.
Traps     with lanes the latency is neither convex nor unimodal in k: an uneven last round costs a
          whole one, so that every count that could win is looked at. In whole bytes sizes differ by
          a unit: those that ascend leave each stage in order, whichever lane is free.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits, MachineProblem, Problem
from solvers.contract import Candidate
from solvers.heuristics.balanced_cuts import BalancedCuts
from solvers.machine.costs import Costs
from solvers.machine.counts import counts_below, sample_counts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_AT_ONCE = 256  # counts that are priced together, at most
_TRIED = 8  # of the best in real sizes, in whole bytes
_TIE = 1e-12


def fixed_cut(problem: MachineProblem) -> Candidate:
    """Return the best equal cut in whole bytes. Raises StrategyDeclined where the limits admit
    none.
    """
    k, latency_us = _priced_counts(problem)
    cuts = BalancedCuts.of(_sizes_alone(problem), k[np.argsort(latency_us, kind="stable")])
    if not len(cuts.k):
        counts = problem.count_range()
        every = np.arange(counts.minimum, counts.maximum + 1, dtype=np.int64)
        cuts = BalancedCuts.of(_sizes_alone(problem), every)
    if not len(cuts.k):
        raise StrategyDeclined(
            "no equal sizes satisfy the limits: with every count some size would leave "
            "min_fragment_bytes or max_fragment_bytes",
            field="strategy",
        )
    costs = Costs(problem.machine)
    best_us, best = float("inf"), tuple[int, ...]()
    for index in range(min(_TRIED, len(cuts.k))):
        for cut in _orders(cuts, index):
            cut_us = costs.cut_us(cut)
            if cut_us < best_us * (1.0 - _TIE):
                best_us, best = cut_us, cut
    return Candidate(best, (problem.message_bytes / len(best),) * len(best))


def best_count(problem: MachineProblem) -> int:
    """Return the k whose equal real fragments take the least time; the fewest of equals."""
    k, latency_us = _priced_counts(problem)
    return int(k[int(np.argmax(latency_us <= latency_us.min() * (1.0 + _TIE)))])


def _priced_counts(problem: MachineProblem) -> tuple[Ints, Floats]:
    """Counts that could be the best one, ascending, and what equal fragments of each take, µs."""
    return problem.derived(_priced)


def _priced(problem: MachineProblem) -> tuple[Ints, Floats]:
    """The least bounds first, until no other could win."""
    known_us = float(_in_turn(problem, *sample_counts(problem), inf)[1].min())
    limit_us = known_us * (1.0 + _TIE) + problem.machine.delay_us
    k, latency_us = _in_turn(problem, *counts_below(problem, limit_us), known_us)
    order = np.argsort(k)
    return k[order], latency_us[order]


def _in_turn(
    problem: MachineProblem, k: Ints, below_us: Floats, known_us: float
) -> tuple[Ints, Floats]:
    """Those of the counts that could be better than the ones before them, and what equal fragments
    of each take, µs.
    """
    costs, total, delay_us = Costs(problem.machine), problem.message_bytes, problem.machine.delay_us
    found, start, some = [np.empty(0)], 0, 1
    while start < len(k) and below_us[start] - delay_us <= known_us * (1.0 + _TIE):
        part = k[start : start + some]
        found.append(costs.equal_us(total / part, part))
        known_us = min(known_us, float(found[-1].min()))
        start, some = start + some, min(2 * some, _AT_ONCE)
    latency_us = np.concatenate(found)
    return k[: len(latency_us)], latency_us


def _sizes_alone(problem: MachineProblem) -> Problem:
    """The same message with no more than its sizes and limits, which balanced cuts are made of."""
    limits, most = problem.limits, problem.machine.max_fragment_bytes
    if most is not None:
        known = limits.max_fragment_bytes or most
        limits = FragmentLimits(
            limits.min_fragment_bytes,
            min(known, most),
            limits.alignment_bytes,
            limits.max_fragments,
        )
    stages = Pipeline(problem.machine.stages[:1])
    return Problem(stages, problem.message_bytes, limits, problem.fragment_cap)


def _orders(cuts: BalancedCuts, index: int) -> list[tuple[int, ...]]:
    """The sizes of one count in ascending and in descending order, what is left at the end."""
    unit, k = cuts.problem.limits.alignment_bytes, int(cuts.k[index])
    small, large, rest = (int(x[index]) for x in (cuts.small, cuts.large_count, cuts.rest))
    plain, last = (small,) * (k - large - (rest > 0)), (small + rest,) * (rest > 0)
    greater = (small + unit,) * large
    return [(*plain, *greater, *last), (*greater, *plain, *last)]
