"""A plain pipeline that no machine beats: c lanes as one that is c times as fast.

Source    docs/theory.md, "Machines".
Notation  c: lanes of a node; t/c: the cost of its one fast lane; k fragments.
Cost      one search over k of a plain pipeline, ended by work.
Exact     for every cut the plain pipeline takes no longer, whichever lane a fragment takes.
Traps     proven where nodes with lanes that follow each other have equally many, between nodes with
          one lane or ends. Of others only those of one number are kept; the rest cost nothing.

On the longest path of the plain pipeline let a node with lanes be crossed on rows u to v. Each lane
enters the node at its first row from u on and leaves at its last row up to v; before and behind it
nodes with one lane are crossed on no fewer rows. The mean of these c real paths counts every row
at least 1/c times. Windows and processors only make a machine slower, and delays are constant.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from domain.machine import Machine
from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import FragmentLimits, MachineProblem, Problem
from solvers.contract import Deadline
from solvers.exact.count_search import CountSearch
from solvers.exact.relaxation import relaxation_of

Floats = NDArray[np.float64]

_SAFETY = 1.0 - 1e-12  # costs are divided, and differences of costs rounded
_CLOSE = 1e-3  # between its bound and its optimum; more is not worth another solve
_CELLS = 30_000  # fragments times stages that the search may solve


def fast_bounds_us(problem: MachineProblem, *, near: int, known_us: float = np.inf) -> Floats:
    """Return a bound in µs for every admitted count, ascending, the constant delay included.

    `near` is a count with which the search begins. Of counts that take longer than `known_us` no
    more than that is said.
    """
    fast, counts = fast_problem(problem), problem.count_range()
    search = CountSearch.start(fast, relaxation_of(fast), known_us=known_us, near=near)
    search.run(near=near, relative_gap=_CLOSE, deadline=_ENDLESS, max_cells=_CELLS)
    bounds = np.full(counts.maximum - counts.minimum + 1, min(search.beyond_us, np.inf))
    bounds[: len(search.lower)] = search.lower + fast.pipeline.delay_us
    return bounds * _SAFETY


_ENDLESS = Deadline(float("inf"))  # the search ends by work


def fast_problem(problem: MachineProblem) -> Problem:
    """Return the same message for the plain pipeline, with the sizes that windows admit."""
    limits, most = problem.limits, problem.largest_fragment_bytes
    if most < problem.message_bytes:
        limits = FragmentLimits(
            limits.min_fragment_bytes, most, limits.alignment_bytes, limits.max_fragments
        )
    pipeline = fast_pipeline(problem.machine)
    return Problem(pipeline, problem.message_bytes, limits, problem.fragment_cap)


def fast_pipeline(machine: Machine) -> Pipeline:
    """Return the plain pipeline, its delay that of all stages and of the whole."""
    stages = [_fast_stage(machine, node) for node in _kept(machine)]
    return Pipeline(tuple(stages), machine.delay_us + sum(machine.network.delay_us))


def _kept(machine: Machine) -> list[int]:
    """The nodes whose costs count: of neighbours with several numbers of lanes those of the number
    that costs most a byte, and of equals the most overhead.
    """
    nodes = range(len(machine.network))
    kept = list[int]()
    for has_lanes, run in groupby(nodes, key=lambda node: _lanes(machine, node) > 1):
        members = list(run)
        if has_lanes:
            of_number: dict[int, list[int]] = {}
            for node in members:
                of_number.setdefault(_lanes(machine, node), []).append(node)
            members = max(of_number.values(), key=lambda group: _load(machine, group))
        kept += members
    return kept


def _lanes(machine: Machine, node: int) -> int:
    network = machine.network
    return 1 if network.is_shared[node] else machine.rules[network.stage_of[node]].lanes


def _load(machine: Machine, group: list[int]) -> tuple[float, float]:
    lasts = [_fast_stage(machine, node).ranges[-1] for node in group]
    return sum(one.ns_per_byte for one in lasts), sum(one.overhead_us for one in lasts)


def _fast_stage(machine: Machine, node: int) -> Stage:
    network, lanes = machine.network, _lanes(machine, node)
    at = network.stage_of[node]
    stage, rules = machine.stages[at], machine.rules[at]
    shared = rules.shared_ns_per_byte
    if network.is_shared[node]:
        return Stage.of_line(stage.name, overhead_us=0.0, ns_per_byte=shared)
    return Stage(
        stage.name,
        tuple(
            FitRange(one.overhead_us / lanes, (one.ns_per_byte - shared) / lanes, one.up_to_bytes)
            for one in stage.ranges
        ),
    )
