"""Equal fragments for a machine: the best number of them, in real sizes and in whole bytes.

Source    docs/theory.md, "Machines".
Notation  k fragments of B/k; B: message.
Cost      the formula for every count that bounds leave, with processors the evaluator for those of
          the least bounds: PRICED_CELLS. Then a few cuts in whole bytes.
Exact     over k, for equal real sizes, where the candidate is not cut off.
Traps     with lanes the latency is neither convex nor unimodal in k: an uneven last round costs a
          whole one, so that every count that could win is looked at. In whole bytes sizes differ by
          a unit: those that ascend leave each stage in order, whichever lane is free.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from contract.limits import MAX_LAG
from domain.errors import StrategyDeclined
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits, MachineProblem, Problem
from solvers.contract import Candidate
from solvers.heuristics.balanced_cuts import BalancedCuts
from solvers.machine.costs import Costs
from solvers.machine.counts import counts_below, sample_counts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PRICED_CELLS = 50_000_000  # fragments times nodes times lags that the evaluator may pass, twice
_AT_ONCE = 256  # counts that are priced together, at most
_TRIED = 8  # of the best in real sizes, in whole bytes
_TIE = 1e-12


def fixed_cut(problem: MachineProblem) -> Candidate:
    """Return the best equal cut in whole bytes. Raises StrategyDeclined where the limits admit
    none.
    """
    k, latency_us, cut_off = _priced_counts(problem)
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
    return Candidate(best, (problem.message_bytes / len(best),) * len(best), cut_off=cut_off)


def best_count(problem: MachineProblem) -> int:
    """Return the k whose equal real fragments take the least time; the fewest of equals."""
    k, latency_us, _ = _priced_counts(problem)
    return int(k[int(np.argmax(latency_us <= latency_us.min() * (1.0 + _TIE)))])


def _priced_counts(problem: MachineProblem) -> tuple[Ints, Floats, bool]:
    """Counts that could be the best one, ascending, what equal fragments of each take, µs, and
    whether there are more of them than may be priced.
    """
    return problem.derived(_priced)


def _priced(problem: MachineProblem) -> tuple[Ints, Floats, bool]:
    """The least bounds first, until no other could win."""
    samples, samples_us, _ = _in_turn(problem, *sample_counts(problem), inf)
    known_us = float(samples_us.min())
    limit_us = known_us * (1.0 + _TIE) + problem.machine.delay_us
    k, latency_us, cut_off = _in_turn(problem, *counts_below(problem, limit_us), known_us)
    if cut_off:  # the best one may be among the samples alone
        k, latency_us = np.append(k, samples), np.append(latency_us, samples_us)
    k, first = np.unique(k, return_index=True)
    return k, latency_us[first], cut_off


def _in_turn(
    problem: MachineProblem, k: Ints, below_us: Floats, known_us: float
) -> tuple[Ints, Floats, bool]:
    """Those of the counts that could be better than the ones before them, what equal fragments of
    each take, µs, and whether there are more of them than may be priced.
    """
    costs, total, delay_us = Costs(problem.machine), problem.message_bytes, problem.machine.delay_us
    cells = np.cumsum(k * _cells_each(problem))
    most = max(1, int(np.searchsorted(cells, PRICED_CELLS, side="right")))
    found, start, some = [np.empty(0)], 0, 1
    while start < len(k) and below_us[start] - delay_us <= known_us * (1.0 + _TIE):
        part = k[start : min(start + some, most)]
        if not len(part):
            break
        found.append(costs.equal_us(total / part, part))
        known_us = min(known_us, float(found[-1].min()))
        start, some = start + some, min(2 * some, _AT_ONCE)
    latency_us = np.concatenate(found)
    could_win = below_us[len(latency_us) :] - delay_us <= known_us * (1.0 + _TIE)
    return k[: len(latency_us)], latency_us, bool(could_win.any())


def _cells_each(problem: MachineProblem) -> int:
    """What the evaluator passes for a fragment; nothing where the formula takes its place."""
    network = problem.machine.network
    lags: int = (MAX_LAG + 1) ** len(network.processors)
    return len(network) * lags if network.processors else 0


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
