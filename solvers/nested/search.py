"""What the hierarchical strategies share: proposals of nested cuts, evaluated by the true latency.

Source    theory sec. 5 (refragmentation; which of the two latencies chooses).
Notation  k: blocks of the slow stage; counts: (k, n) or (1, n) pieces of each block at each stage.
Cost      O(blocks in all stages) NumPy work a proposal, at most SEARCH_BLOCKS in all.
Exact     no: it keeps the best of what is proposed.
Traps     the convention's best cut is not the best one: it proposes, and the true latency decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.hierarchy import Grouping, convention_latency_us
from domain.nested import NestedSchedule
from domain.problem import Problem
from domain.solution import Notice, Strategy
from solvers.contract import Candidate, Deadline, SolveOptions
from solvers.heuristics import fixed
from solvers.kernels import nested_latency_us
from solvers.nested.compound import levels_of
from solvers.rounding import nearest_cut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SEARCH_BLOCKS = 4_000_000  # blocks, over all stages, that one search may evaluate


@dataclass(frozen=True, slots=True)
class NestedPlan:
    """Blocks (k,) of the grouping's slow stage; pieces of each at each stage, (k or 1, n)."""

    grouping: Grouping
    blocks: Ints
    counts: Ints


class NestedSearch:
    """The best nested cut so far, starting from the one cut of `fixed` shared by all stages."""

    def __init__(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> None:
        self.problem = problem
        self._deadline = deadline
        self._blocks_left = SEARCH_BLOCKS
        self.cut_off = False
        shared = np.array(fixed.SPEC.run(problem, options, deadline).fragment_bytes, dtype=np.int64)
        stages = len(problem.pipeline)
        self.plan: NestedPlan | None = None
        self._levels: Sequence[Ints] = [shared] * stages
        self.latency_us = nested_latency_us(problem.pipeline, self._levels)

    @property
    def ended(self) -> bool:
        """Whether the deadline or the budget has ended the search."""
        if self._deadline.passed:
            self.cut_off = True
        return self.cut_off or self._blocks_left <= 0

    def blocks(self, real_sizes: Floats) -> Ints | None:
        """Return whole-byte blocks near these sizes, or None where the limits admit none."""
        return nearest_cut(self.problem, real_sizes)

    def offer(self, plan: NestedPlan) -> float:
        """Return the true latency of this plan; the plan is kept if it is the best so far."""
        levels = levels_of(self.problem, plan.grouping, plan.blocks, plan.counts)
        self._blocks_left -= sum(len(level) for level in levels)
        latency = nested_latency_us(self.problem.pipeline, levels)
        if latency < self.latency_us:
            self.latency_us, self.plan, self._levels = latency, plan, levels
        return latency

    def candidate(self, notices: tuple[Notice, ...]) -> Candidate:
        """Return the best nested cut as a strategy's proposal."""
        known: dict[int, tuple[int, ...]] = {}
        for level in self._levels:
            known.setdefault(id(level), tuple(level.tolist()))
        cuts = tuple(known[id(level)] for level in self._levels)
        paper_us = self.latency_us  # one cut for all stages: the convention says nothing else
        if self.plan is not None:
            paper_us = convention_latency_us(
                self.problem.pipeline, self.plan.grouping, NestedSchedule(cuts)
            )
        return Candidate(
            fragment_bytes=min(cuts, key=len),
            levels=cuts,
            latency_paper_us=paper_us,
            notices=notices,
            cut_off=self.cut_off,
        )


def room_for(problem: Problem, x: Floats) -> Floats:
    """Return pieces, at least one, that blocks of these sizes may have: their share of the greatest
    count.

    Pieces keep the least size, too. Shape of x.
    """
    minimum, _ = problem.aligned_sizes()
    share = problem.count_range().maximum * (x / problem.message_bytes)
    room: Floats = np.maximum(1.0, np.minimum(x / minimum, share))
    return room


def check_stages(problem: Problem, strategy: Strategy) -> None:
    """Raise StrategyDeclined for a single stage: there is nothing to form a compound stage of."""
    if len(problem.pipeline) < 2:
        raise StrategyDeclined(
            f"{strategy} needs at least two stages: one stage has no other to form a compound "
            "stage with",
            field="strategy",
        )
