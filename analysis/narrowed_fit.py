"""One line a stage over the fragment sizes that schedules use (Wang98 sec. 5.2, theory.md sec. 7).

The line over all sizes gives a first schedule. Its least and greatest fragment then bound the
samples that count, and so on until the range stands. It may go back and forth between a few ranges
instead; the line then covers all of these.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import TypeAlias

from domain.fit import TraceFit
from domain.model import CostModel
from domain.problem import AnyProblem
from domain.solution import Notice
from domain.units import format_bytes

MAX_ROUNDS = 10
MIN_SIZES = 3  # two distinct sizes fix a line; the third is the least that can contradict it

Range: TypeAlias = tuple[int, int]
FitWithin: TypeAlias = Callable[[Range], TraceFit]
SizesUsed: TypeAlias = Callable[[CostModel], Sequence[int]]


def fit_narrowed(
    fit: FitWithin, sizes_used: SizesUsed, measured: Sequence[Sequence[int]]
) -> TraceFit:
    """Return the fit over the sizes that the schedules of its own model use, and a notice that says
    so.

    `fit` is given the least and the greatest size in bytes to fit over, both included;
    `sizes_used` returns the fragment sizes of the best schedule; `measured` are the distinct sizes,
    ascending, of each group of samples. Raises what the two functions raise.
    """
    current = hull([(sizes[0], sizes[-1]) for sizes in measured])
    seen: list[Range] = []
    while True:
        seen.append(current)
        found = fit(current)
        following = range_around(sizes_used(found.to_model()), measured)
        if following == current:
            return _with_notice(found, _stands(current, len(seen)))
        if following in seen:
            cycle = hull(seen[seen.index(following) :])
            return _with_notice(fit(cycle), _goes_round(cycle))
        if len(seen) == MAX_ROUNDS:
            return _with_notice(found, _not_yet(current))
        current = following


def range_around(used: Sequence[int], measured: Sequence[Sequence[int]]) -> Range:
    """Return the least and greatest measured size that hold all sizes used between them.

    Wider where that leaves a group of samples fewer distinct sizes than support a line.
    """
    minimum, maximum = min(used), max(used)
    return hull([_of_one_group(minimum, maximum, sizes) for sizes in measured])


def _of_one_group(minimum: int, maximum: int, sizes: Sequence[int]) -> Range:
    first = max(0, bisect_right(sizes, minimum) - 1)
    last = min(len(sizes) - 1, bisect_left(sizes, maximum))
    while last - first + 1 < min(MIN_SIZES, len(sizes)):
        below = minimum / sizes[first - 1] if first > 0 else inf
        above = sizes[last + 1] / maximum if last + 1 < len(sizes) else inf
        first, last = (first - 1, last) if below <= above else (first, last + 1)
    return sizes[first], sizes[last]


def equal_sizes(problem: AnyProblem) -> tuple[int, ...]:
    """Return the sizes of the best cut into equal fragments, in real sizes, of stages of one line
    each.

    k fragments take sum_j t_j(B/k) + (k-1) max_j t_j(B/k), which is convex in k: it is the greatest
    of k g_j + (G - G_j) B/k + constants, G the sum of all G_j (Wang98 sec. 4.1: algorithm A).
    Raises Infeasible.
    """
    counts = problem.count_range()
    minimum, maximum = counts.minimum, counts.maximum
    while minimum < maximum:
        middle = (minimum + maximum) // 2
        if _equal_us(problem, middle) <= _equal_us(problem, middle + 1):
            maximum = middle
        else:
            minimum = middle + 1
    return problem.message_bytes // minimum, -(-problem.message_bytes // minimum)


def _equal_us(problem: AnyProblem, count: int) -> float:
    return problem.model.equal_us(problem.message_bytes / count, count)


def hull(ranges: Iterable[Range]) -> Range:
    """Return the range that holds all of these."""
    minima, maxima = zip(*ranges, strict=True)
    return min(minima), max(maxima)


def _with_notice(found: TraceFit, notice: Notice) -> TraceFit:
    return replace(found, notices=(notice, *found.notices))


def _stands(over: Range, rounds: int) -> Notice:
    return Notice(
        "narrowed_fit",
        f"one line a stage over the fragment sizes that the schedule uses, {_format_range(over)}; "
        f"the range stands after {rounds} {'fit' if rounds == 1 else 'fits'}. Costs of other sizes "
        "are not described",
    )


def _goes_round(over: Range) -> Notice:
    return Notice(
        "narrowed_fit_alternates",
        f"the schedule of each fit uses other sizes than the fit is of, and round again; the lines "
        f"are over all of these, {_format_range(over)}",
    )


def _not_yet(over: Range) -> Notice:
    return Notice(
        "narrowed_fit_unsettled",
        f"the range of fragment sizes still moves after {MAX_ROUNDS} fits; the lines are over the "
        f"last one, {_format_range(over)}",
    )


def _format_range(over: Range) -> str:
    return f"{format_bytes(over[0])} to {format_bytes(over[1])}"
