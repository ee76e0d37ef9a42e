"""Algorithm B: equal blocks for the slow stage, equal pieces of them in the stages around it.

Source    Wang98 sec. 4.3 (hierarchical fragmentation) and 5.5 (algorithm B); theory sec. 5.
Notation  k: blocks of the slow stage; b: its index; q: pieces of a block in a compound stage;
          c(x): compound time by the convention; B: message.
Cost      O(|k| |q| n) NumPy work for the proposals, then at most DESCENT_STEPS evaluated cuts for
          each of the best two.
Exact     no. The convention (a compound stage is free when its last stage is) proposes groupings
          and counts; counts then move while the true pipelined latency falls.
Traps     which stage is slowest depends on the size of the blocks, so every stage that is slowest
          for some k proposes its own split; a compound stage with a slow stage of its own is split
          again where the convention gains by it.

The hierarchy without any split is among the proposals, as the cut of `fixed`: so the answer is
never above that of `fixed`, and says so by a notice where no split was better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.hierarchy import Grouping
from domain.problem import Problem
from domain.solution import Notice, Strategy
from solvers.contract import Candidate, Deadline, SolveOptions, StrategySpec
from solvers.nested.compound import NESTED_DEPTH, regrouped, split_at, split_plan
from solvers.nested.search import NestedPlan, NestedSearch, check_stages, room_for

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DESCENT_STEPS = 120  # evaluated cuts of one descent
_COUNTS = 48  # numbers of blocks tried in a first round, spread geometrically
_SPLITS = 6  # slow stages tried
_EVALUATED = 8  # proposals evaluated by the true latency
_DESCENTS = 2  # and of these, how many are improved
_NO_GAIN = Notice(
    "no_hierarchy",
    "no hierarchy of cuts is faster here than the one cut of fixed, which is this answer",
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """k equal blocks around the grouping's slow stage, and the pieces of each block, (n,)."""

    grouping: Grouping
    k: int
    pieces: Ints
    paper_us: float


def run(problem: Problem, options: SolveOptions, deadline: Deadline) -> Candidate:
    """Run algorithm B. Raises StrategyDeclined for a single stage, Infeasible where nothing
    fits.
    """
    check_stages(problem, Strategy.HIERARCHICAL)
    search = NestedSearch(problem, options, deadline)
    improve_equal(search)
    return search.candidate((_NO_GAIN,) if search.plan is None else ())


def improve_equal(search: NestedSearch) -> tuple[Proposal, ...]:
    """Offer the search equal blocks with equal pieces; the proposals, best by convention first."""
    proposals = equal_proposals(search.problem)
    evaluated: list[tuple[float, int, Proposal]] = []
    for order, proposal in enumerate(proposals[:_EVALUATED]):
        if search.ended:
            break
        latency = _offer(search, proposal.grouping, proposal.k, proposal.pieces)
        evaluated.append((latency, order, proposal))
    for latency, _, proposal in sorted(evaluated, key=lambda entry: entry[:2])[:_DESCENTS]:
        _descend(search, proposal, latency)
    return proposals


def equal_proposals(problem: Problem) -> tuple[Proposal, ...]:
    """Return splits and numbers of blocks, best first by the convention in real sizes."""
    counts = problem.count_range()
    spread = np.geomspace(counts.minimum, counts.maximum, _COUNTS)
    few = np.arange(counts.minimum, min(counts.minimum + 8, counts.maximum + 1))
    k = np.unique(np.concatenate([np.rint(spread), few]).astype(np.int64))
    found = [
        proposal for slow in _slow_stages(problem, k) for proposal in _around(problem, slow, k)
    ]
    return tuple(sorted(found, key=lambda proposal: (proposal.paper_us, proposal.k)))


def _slow_stages(problem: Problem, k: Ints) -> list[int]:
    """The stages that are slowest for some number of equal blocks, fewest blocks first."""
    sizes = problem.message_bytes / k
    slow = [problem.pipeline.bottleneck_at(float(size)) for size in sizes]
    return list(dict.fromkeys(slow))[:_SPLITS]


def _around(problem: Problem, slow: int, k: Ints) -> list[Proposal]:
    """The best numbers of blocks around this stage, with flat parts and with parts split again."""
    flat = split_at(0, len(problem.pipeline) - 1, slow)
    found = _best_counts(problem, flat, k)
    size = problem.message_bytes / found[0].k
    room = float(room_for(problem, np.array([size]))[0])
    deep = regrouped(problem.pipeline, flat, size, room, depth=NESTED_DEPTH)
    return found if deep == flat else found + _best_counts(problem, deep, k)


def _best_counts(problem: Problem, grouping: Grouping, k: Ints) -> list[Proposal]:
    paper_us, pieces = _timed(problem, grouping, k)
    best = int(np.argmin(paper_us))
    low, high = int(k[max(0, best - 1)]), int(k[min(len(k) - 1, best + 1)])
    if high - low > 2:
        k = np.unique(np.linspace(low, high, 16).astype(np.int64))
        paper_us, pieces = _timed(problem, grouping, k)
    order = np.argsort(paper_us, kind="stable")[:3]
    return [
        Proposal(grouping, int(k[i]), pieces[i] // int(k[i]), float(paper_us[i])) for i in order
    ]


def _timed(problem: Problem, grouping: Grouping, k: Ints) -> tuple[Floats, Ints]:
    y = problem.message_bytes / k
    return split_plan(problem.pipeline, grouping, y, k.astype(float), room_for(problem, y))


# ---- descent on the true latency -----------------------------------------------------------------


def _offer(search: NestedSearch, grouping: Grouping, k: int, pieces: Ints) -> float:
    blocks = search.blocks(np.full(k, search.problem.message_bytes / k))
    if blocks is None:
        return float("inf")
    return search.offer(NestedPlan(grouping, blocks, pieces[None, :]))


def _descend(search: NestedSearch, proposal: Proposal, latency_us: float) -> None:
    """Move one count at a time while the true latency falls.

    The counts are k and, for each set of stages that shares a cut, how often it divides the pieces
    of the set around it.
    """
    grouping = proposal.grouping
    tree = _tree(grouping)
    current = (proposal.k, *_factors(tree, proposal.pieces))
    tried = {current}
    steps = 0
    while True:
        moved = False
        for step in _moves(search.problem, current):
            if step in tried:
                continue
            if steps >= DESCENT_STEPS or search.ended:
                return
            tried.add(step)
            steps += 1
            found_us = _offer(search, grouping, step[0], _pieces(grouping, tree, step[1:]))
            if found_us < latency_us:
                current, latency_us, moved = step, found_us, True
                break
        if not moved:
            return


def _tree(grouping: Grouping) -> list[tuple[tuple[int, ...], int]]:
    """(stages that share a cut, index of the set around it) for all sets inside, outer first."""
    sets: list[tuple[tuple[int, ...], int]] = []

    def visit(group: Grouping, around: int) -> None:
        for part in group.parts():
            sets.append((next(part.cuts()), around))
            visit(part, len(sets) - 1)

    visit(grouping, -1)
    return sets


def _factors(tree: list[tuple[tuple[int, ...], int]], pieces: Ints) -> tuple[int, ...]:
    around = [1 if parent < 0 else int(pieces[tree[parent][0][0]]) for _, parent in tree]
    return tuple(
        int(pieces[stages[0]]) // whole for (stages, _), whole in zip(tree, around, strict=True)
    )


def _pieces(
    grouping: Grouping, tree: list[tuple[tuple[int, ...], int]], factors: tuple[int, ...]
) -> Ints:
    pieces = np.ones(len(grouping), dtype=np.int64)
    for (stages, parent), factor in zip(tree, factors, strict=True):
        whole = 1 if parent < 0 else int(pieces[tree[parent][0][0]])
        pieces[list(stages)] = whole * factor
    return pieces


def _moves(problem: Problem, current: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Each count one up or down, or by about a third; k also with the pieces' sizes kept."""
    counts = problem.count_range()
    found: list[tuple[int, ...]] = []
    for place, value in enumerate(current):
        for changed in (value + 1, value - 1, value + value // 3, value - value // 4):
            minimum, maximum = (
                (counts.minimum, counts.maximum) if place == 0 else (1, counts.maximum)
            )
            if changed == value or not minimum <= changed <= maximum:
                continue
            found.append((*current[:place], changed, *current[place + 1 :]))
            if place == 0:
                kept = (max(1, round(factor * value / changed)) for factor in current[1:])
                found.append((changed, *kept))
    return found


SPEC = StrategySpec(
    name=Strategy.HIERARCHICAL,
    run=run,
    needs="at least two stages",
    optimal_when="never proven of the model: equal pieces at every level; its gap is stated",
    refragments=True,
)
