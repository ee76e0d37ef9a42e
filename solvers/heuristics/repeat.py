"""The best single size for a library that repeats one: floor(B/s) fragments of s, then the rest.

Source    theory.md sec. 2.
Notation  q: full fragments of s bytes; r = B - q s < s: the remainder, sent last; B: message.
Cost      O(n) NumPy passes over the admitted q, and the rounds of repeat_search.py.
Exact     over every admitted s, in whole bytes; brute force in tests/solvers/test_repeat.py.
Traps     r = 0 is a point of its own: the latency jumps there by what a remainder costs. The
          alignment holds for s as soon as there is a second fragment.
"""

from __future__ import annotations

import numpy as np

from domain.errors import StrategyDeclined
from domain.problem import Problem
from domain.solution import Strategy
from solvers.contract import Candidate, Deadline, SolveOptions, StrategySpec
from solvers.heuristics.constant import repeated_cut
from solvers.heuristics.fixed import best_count, equal_latency_us
from solvers.heuristics.repeat_search import Best, search_remainders
from solvers.kernels import active
from solvers.kernels.native_whole import whole_of

_NATIVE_CELLS = 2_000_000  # n times the admitted counts that C takes
BASELINE_S = 2.0  # what a baseline may take; only thousands of ranges come near it


def run(problem: Problem, options: SolveOptions, deadline: Deadline) -> Candidate:
    """Return the cut of the best repeated size. Raises StrategyDeclined where none is admitted."""
    best = Best()
    cut_off = search(problem, best, deadline)
    return Candidate(repeated_cut(problem, best.size), cut_off=cut_off)


def best_repeat(problem: Problem) -> tuple[int, tuple[int, ...]]:
    """Return the best repeated size in bytes, and its cut, to compare with. Raises
    StrategyDeclined.
    """
    best = Best()
    search(problem, best, Deadline.after(BASELINE_S))
    return best.size, repeated_cut(problem, best.size)


def search(problem: Problem, best: Best, deadline: Deadline) -> bool:
    """Fill in the best size; whether time ended the search. Raises StrategyDeclined without any.

    C and NumPy give the same size but for ties.
    """
    cut_off = False
    if deadline.passed or not _natively(problem, best):
        known = problem.derived(_Known)
        if known.best is not None:
            best.latency_us, best.q, best.size = known.best
        else:
            _offer_divisors(problem, best)
            cut_off = search_remainders(problem, best, deadline)
            known.best = None if cut_off else (best.latency_us, best.q, best.size)
    if not best.q:
        raise StrategyDeclined(
            "no repeated size satisfies the limits: with every one of them the remainder is "
            "smaller than min_fragment_bytes or the fragments are too many",
            field="strategy",
        )
    return cut_off


class _Known:
    """What a search that came to its end found for a problem: the baselines ask for it again."""

    def __init__(self, _problem: Problem) -> None:
        self.best: tuple[float, int, int] | None = None


def _natively(problem: Problem, best: Best) -> bool:
    """Whether this was for C, which does not look at the clock."""
    counts = problem.count_range()
    if (counts.maximum - counts.minimum) * len(problem.pipeline) > _NATIVE_CELLS:
        return False
    if active.NATIVE is None or whole_of(problem) is None:
        return False
    best.latency_us, best.q, best.size = problem.derived(_native_repeat)
    return True


def _native_repeat(problem: Problem) -> tuple[float, int, int]:
    """Latency without delay, full fragments and size; computed once, also for the baselines."""
    native, whole = active.NATIVE, whole_of(problem)
    assert native is not None
    assert whole is not None
    return native.whole.repeated(whole, near=best_count(problem))


def _offer_divisors(problem: Problem, best: Best) -> None:
    """Sizes that leave no remainder, the whole message among them."""
    counts, total, unit = problem.count_range(), problem.message_bytes, _unit(problem)
    minimum, maximum = problem.aligned_sizes()
    q = np.arange(counts.minimum, counts.maximum + 1, dtype=np.int64)
    q = q[total % q == 0]
    size = total // q
    fits = (size % unit == 0) & (size >= minimum) & (size <= maximum)
    q, size = q[fits | (q == 1)], size[fits | (q == 1)]
    best.offer(equal_latency_us(problem, q), q, size)


def _unit(problem: Problem) -> int:
    return problem.limits.alignment_bytes


SPEC = StrategySpec(
    name=Strategy.REPEAT,
    run=run,
    needs="a repeated size whose remainder the limits admit",
    optimal_when="among all schedules s, s, ..., remainder; never claimed for other cuts",
)
