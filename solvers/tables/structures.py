"""The structures that a table's solver has met, and what each takes at least at all messages.

Source    results sec. 5; docs/theory.md sec. 7.
Notation  a line (at, value, slope): value + slope (B - at), µs without delay.
Cost      one solve for each structure and message that no line shows to be worse.
Exact     what a structure takes is convex in the message, so that every line is below it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from functools import partial
from heapq import heapify, heappop, heappush
from math import inf

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.ranges.regions import MAX_CELLS, Boxed, NodeSolver, Structure
from solvers.tables.points import LOST

Floats = NDArray[np.float64]


class StructurePool:
    """Structures that were met, and lines below what they take at all messages.

    What a structure takes is convex in the message, so the price of a byte where it was solved is
    the slope of such a line: most need not be solved to be known to be worse than others.
    """

    def __init__(
        self,
        solver: NodeSolver,
        problem: Problem,
        solve: Callable[[Structure, int], Boxed | None],
    ) -> None:
        self._solver, self._problem, self._solve = solver, problem, solve
        self._at: dict[Structure, int] = {}
        self._structures: list[Structure] = []
        self._low, self._high = array("d"), array("d")  # sums of least and greatest sizes
        self._line_of, self._at_0, self._slope = array("q"), array("d"), array("d")
        self._known: set[tuple[Structure, int]] = set()

    def __contains__(self, structure: Structure) -> bool:
        return structure in self._at

    def add(self, structure: Structure) -> None:
        """Have this structure ranked from now on."""
        if structure in self._at:
            return
        low, high = self._solver.box(self._problem, tuple((r, r) for r in structure))
        self._at[structure] = len(self._structures)
        self._structures.append(structure)
        self._low.append(float(low.sum()) if (low <= high).all() else inf)
        self._high.append(float(high.sum()))

    def ranked(self, first: int, last: int) -> Iterator[tuple[float, Structure]]:
        """Yield the structures that suit both messages, ascending by how far they are above the
        best of all at that end where they are further; solved no sooner than they have to be.
        """
        ends = (first,) if first == last else (first, last)
        below, over = [self._below_us(size) for size in ends], np.zeros(len(self._structures))
        best = list[float]()
        for size, values in zip(ends, below, strict=True):
            ascending = self._ascending(values, partial(self._us, size))
            best.append(next(ascending, (inf, ()))[0])
            over = np.maximum(over, [_over(us, best[-1]) for us in values.tolist()])

        def excess(structure: Structure) -> float:
            found = zip(ends, best, strict=True)
            return max(_over(self._us(size, structure), best_us) for size, best_us in found)

        yield from self._ascending(over, excess)

    def _ascending(
        self, below: Floats, exactly: Callable[[Structure], float]
    ) -> Iterator[tuple[float, Structure]]:
        heap = [
            (value, len(structure), structure, False)
            for value, structure in zip(below.tolist(), self._structures, strict=True)
            if value < inf
        ]
        heapify(heap)
        while heap:
            value, count, structure, is_exact = heappop(heap)
            if is_exact:
                yield value, structure
            elif (found := exactly(structure)) < inf:
                heappush(heap, (found, count, structure, True))

    def _us(self, size: int, structure: Structure) -> float:
        """What its best real sizes take, without delay; infinite where it has none."""
        leaf = self._solve(structure, size)
        if leaf is None:
            return inf
        is_solved = len(structure) * len(self._problem.pipeline) <= MAX_CELLS
        if is_solved and (structure, size) not in self._known:
            self._known.add((structure, size))
            self._line_of.append(self._at[structure])
            self._at_0.append(leaf.latency_us * (1.0 - LOST) - leaf.price * size)
            self._slope.append(leaf.price)
        return leaf.latency_us

    def _below_us(self, size: int) -> Floats:
        """(S,) the greatest line of each, infinite where it cannot make up this message."""
        below = np.full(len(self._structures), -inf)
        lines = np.frombuffer(self._at_0) + np.frombuffer(self._slope) * size
        np.maximum.at(below, np.frombuffer(self._line_of, dtype=np.int64), lines)
        suits = (np.frombuffer(self._low) <= size) & (np.frombuffer(self._high) >= size)
        return np.where(suits, below, inf)


def _over(latency: float, best: float) -> float:
    return latency / best - 1.0 if best > 0.0 else (0.0 if latency <= 0.0 else inf)
