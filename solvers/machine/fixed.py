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

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits, MachineProblem, Problem
from solvers.contract import Candidate
from solvers.heuristics.balanced_cuts import BalancedCuts
from solvers.machine.bound import count_bounds_us
from solvers.machine.costs import Costs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SAMPLES = 64  # counts that are priced first: they decide which others are worth it
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
    counts, costs, total = problem.count_range(), Costs(problem.machine), problem.message_bytes
    every = np.arange(counts.minimum, counts.maximum + 1, dtype=np.int64)
    sample = every[np.unique(np.geomspace(1, len(every), _SAMPLES).astype(np.int64)) - 1]
    known_us = costs.equal_us(total / sample, sample).min()
    bounds_us = count_bounds_us(problem, every) - problem.machine.delay_us
    could_win = every[bounds_us <= known_us * (1.0 + _TIE)]
    return could_win, costs.equal_us(total / could_win, could_win)


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
