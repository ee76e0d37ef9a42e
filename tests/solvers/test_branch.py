"""Branch and bound on regions: its bounds below every cut, its answers against a mixed program."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize

from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import Problem
from domain.schedule import latency_us
from domain.solution import Status
from solvers import compile_table, solve
from solvers.contract import Deadline
from solvers.exact import strategy as exact
from solvers.exact.convex_problem import ConvexProblem
from solvers.exact.dual import repaired
from solvers.exact.relaxation import solve_relaxed
from solvers.heuristics.fixed import best_count
from solvers.ranges import branch
from solvers.ranges.branch import Branching
from solvers.ranges.divisions import divisions
from solvers.ranges.nodes import Node, Planes, Programs
from solvers.ranges.regions import Region
from tests.solvers.ranged_pipelines import (
    Rule,
    best_of_every_cut,
    every_cut,
    random_cut,
    random_problems,
)
from tests.support.compiler import require_native_kernels
from tests.support.counts import count

SMALL = Rule(stages=(1, 4), message_bytes=(2, 12))
MANY = Rule(stages=(2, 4), message_bytes=(20, 100_000))


def regions_of(problem: Problem) -> Region:
    """The regions of all admitted sizes."""
    return Region.of(problem, float(problem.largest_fragment_bytes))


def node_around(region: Region, cut: tuple[int, ...], rng: np.random.Generator) -> Node:
    """Some node that holds this cut: some of its fragments told apart, groups of others between."""
    at, R, k = np.searchsorted(region.high, np.array(cut)), len(region), len(cut)
    counts = (at[None, :] >= np.arange(R)[:, None]).sum(axis=1)
    chosen = np.flatnonzero(rng.random(k) < rng.random()) if rng.random() < 0.7 else np.arange(k)
    told = np.union1d([0, k - 1], chosen)
    low, high = [], []
    for first, last in pairwise(told):
        between, empty = at[first + 1 : last], rng.random() < 0.5
        if len(between) or not empty:
            least, most = (between.min(), between.max()) if len(between) else (R - 1, 0)
            low.append(int(rng.integers(0, least + 1)))
            high.append(int(rng.integers(max(most, low[-1]), R)))
        else:
            low.append(0)
            high.append(-1)
    node = Node(
        rng.integers(0, at[told] + 1),
        rng.integers(at[told], R),
        np.array(low, dtype=np.int64),
        np.array(high, dtype=np.int64),
        rng.integers(0, counts + 1),
        rng.integers(counts, k + 4),
    )
    node.min_counts[0] = int(rng.integers(len(told), k + 1))
    settled = node.settled()
    assert settled is not None, "a node with a cut is not void"
    return settled


def test_any_dual_with_any_prices_bounds_every_cut_of_a_node() -> None:
    """Nothing of the solver is needed: random flows, prices of bytes and of fragments."""
    rng, grouped = np.random.default_rng(3), 0
    for problem in random_problems(count(300), seed=131, rule=MANY):
        cut = random_cut(problem, rng)
        if cut is None or len(cut) < 2:
            continue
        region, node = regions_of(problem), node_around(regions_of(problem), cut, rng)
        grouped += bool(node.grouped.any())
        planes = Planes(region, node, float(problem.message_bytes))
        latency, steps = latency_us(problem.pipeline, cut), int(node.places[0][-1])
        for _ in range(3):
            p = repaired(rng.normal(size=(steps, len(problem.pipeline))))
            nu = rng.normal(size=len(region)) * latency / len(cut)
            price = float(rng.choice([0.0, 0.1, 1.0]) * rng.normal())
            price *= latency / problem.message_bytes
            planes.add(p, price, nu * rng.choice([0.0, 0.01, 1.0]), node.max_in_groups)
            assert planes.bound_us(node, last=True) <= latency * (1 + 1e-12)
        assert planes.bound_us(node) <= latency * (1 + 1e-12)
    assert grouped > 0


def test_the_program_of_a_node_is_below_its_cuts_and_above_the_minorants() -> None:
    """The joint hull of all stages says no less than a hull for each stage."""
    rng = np.random.default_rng(5)
    above = 0
    for problem in random_problems(count(60), seed=137, rule=MANY):
        cut = random_cut(problem, rng)
        if cut is None or len(cut) < 2:
            continue
        region, k, B = regions_of(problem), len(cut), float(problem.message_bytes)
        latency = latency_us(problem.pipeline, cut)
        programs, root = Programs(region, B, latency), 0.0
        for node in (Node.whole(k, len(region)), node_around(region, cut, rng)):
            found = programs.solve(node, Deadline.after(30.0))
            assert found is not None, "a node with a cut has an optimum"
            planes = Planes(region, node, B)
            planes.add(found.p, found.price, found.nu, node.max_in_groups)
            assert planes.bound_us(node) <= latency * (1 + 1e-12)
            sizes = found.x.sum() + (found.in_groups @ programs.at).sum()
            assert sizes == pytest.approx(B, rel=1e-5)
            root = root or planes.bound_us(node)
        convex = solve_relaxed(ConvexProblem.of(problem), k, Deadline.after(30.0), aim=1e-9)
        assert root >= convex.lower_us * (1 - 1e-6)
        above += root > convex.lower_us * (1 + 1e-6)
    assert above > 0


def test_one_node_of_many_counts_bounds_each_of_them() -> None:
    """A group in the middle: its program is below that of every count that it stands for."""
    for problem in random_problems(count(20), seed=141, rule=MANY):
        region, B = regions_of(problem), float(problem.message_bytes)
        if problem.count_range().minimum > 6:
            continue
        most = np.floor(B / region.low).astype(np.int64)
        node = Node.many(4, (5, 9), most).settled()
        if node is None:
            continue
        programs = Programs(region, B, 1.0)
        found = programs.solve(node, Deadline.after(30.0))
        if found is None:
            continue
        planes = Planes(region, node, B)
        planes.add(found.p, found.price, found.nu, node.max_in_groups)
        for k in range(5, 10):
            each = Node.whole(k, len(region))
            exact_program = programs.solve(each, Deadline.after(30.0))
            if exact_program is None:
                continue
            of_count = Planes(region, each, B)
            of_count.add(exact_program.p, exact_program.price, exact_program.nu, 0)
            assert planes.bound_us(node) <= of_count.bound_us(each) * (1 + 1e-6)


@pytest.mark.parametrize("by_program", [False, True])
def test_divisions_lose_no_cut_of_a_node(by_program: bool) -> None:
    """A cut of the node is in one of its parts, whatever the node is divided by."""
    rng = np.random.default_rng(7)
    for problem in random_problems(count(30 if by_program else 200), seed=139, rule=MANY):
        cut = random_cut(problem, rng)
        if cut is None or len(cut) < 2:
            continue
        region, B = regions_of(problem), float(problem.message_bytes)
        at, node = np.searchsorted(region.high, np.array(cut)), node_around(region, cut, rng)
        programs = Programs(region, B, 1.0)
        for _ in range(12 if by_program else 64):
            pair = node.halves()
            if by_program and pair is not None:
                found = programs.solve(node, Deadline.after(30.0))
                assert found is not None, "a node with a cut has an optimum"
                pairs = divisions(node, found, region.ends()[0], 8)
                pair = pairs[int(rng.integers(len(pairs)))] if pairs else None
            if pair is None:
                break
            settled = [part for half in pair if (part := half.settled()) is not None]
            holding = [part for part in settled if _holds(part, at)]
            assert holding
            node = holding[int(rng.integers(len(holding)))]
        if node.halves() is None:
            assert (node.low == at).all()


def test_the_first_or_last_of_some_regions_told_apart_loses_no_cut() -> None:
    """Any group, any region: no fragment of the group has it or more (or less), or one is it."""
    rng, told = np.random.default_rng(17), 0
    for problem in random_problems(count(300), seed=167, rule=MANY):
        cut = random_cut(problem, rng)
        if cut is None or len(cut) < 2:
            continue
        region = regions_of(problem)
        at, node = np.searchsorted(region.high, np.array(cut)), node_around(region, cut, rng)
        for g in np.flatnonzero(node.group_low < node.group_high):
            r = int(rng.integers(node.group_low[g] + 1, node.group_high[g] + 1))
            by = node.by_first if rng.random() < 0.5 else node.by_last
            pair = by(int(g), above=r) if rng.random() < 0.5 else by(int(g), below=r)
            settled = [part for half in pair if (part := half.settled()) is not None]
            holding = [part for part in settled if _holds(part, at)]
            assert holding
            told += len(holding[-1].low) > len(node.low)
    assert told > 0


def test_few_large_fragments_are_proven_against_any_number_of_small_ones() -> None:
    """Tiny fragments cost nearly nothing: no count of them may be what the bound rests on."""
    require_native_kernels()
    first = FitRange(0.2, 22.611, 4757), FitRange(98.74, 1.895, 4918), FitRange(3.2, 10.367)
    other = FitRange(2.07, 35.634, 2136), FitRange(5.55, 15.048, 6455), FitRange(28.67, 4.198)
    problem = Problem(Pipeline((Stage("a", first), Stage("b", other))), 48_632)
    found = solve(problem, time_limit_s=60.0)
    assert found.relative_gap <= 1.001e-6
    assert len(found.schedule.fragment_bytes) < 10


def _holds(node: Node, at: np.ndarray) -> bool:
    """Whether the regions of a cut match the node's fragments and groups, one after the other."""
    counts = (at[None, :] >= np.arange(len(node.min_counts))[:, None]).sum(axis=1)
    if not ((node.min_counts <= counts).all() and (counts <= node.max_counts).all()):
        return False
    places = {0}  # fragments that the part so far may have taken
    for i, (low, high) in enumerate(zip(node.low, node.high, strict=True)):
        places = {place + 1 for place in places if place < len(at) and low <= at[place] <= high}
        if i < len(node.group_low):
            least, most = node.group_low[i], node.group_high[i]
            for place in sorted(places):
                while place < len(at) and least <= at[place] <= most:
                    place += 1
                    places.add(place)
    return len(at) in places


def test_bounds_of_counts_are_below_the_best_cut_of_each() -> None:
    """All compositions of messages up to 12 bytes, from the worst and from the best cut."""
    for problem in random_problems(count(150), seed=149, rule=SMALL):
        best = best_of_every_cut(problem)
        search = exact.start(problem)
        if not isinstance(search.lines, ConvexProblem):
            continue
        search.run(near=best_count(problem), relative_gap=1e-6, deadline=Deadline.after(60.0))
        start = solve(problem, "fixed").schedule.fragment_bytes
        branching, known = (
            Branching(search, search.lines, start),
            latency_us(problem.pipeline, start),
        )
        for candidate in branching.run(relative_gap=1e-9, deadline=Deadline.after(60.0)):
            assert problem.admits(candidate.fragment_bytes)
            assert latency_us(problem.pipeline, candidate.fragment_bytes) < known
            known = latency_us(problem.pipeline, candidate.fragment_bytes)
        for k, value in best.items():
            if k - search.lines.k_min < len(search.lower):
                delay = problem.pipeline.delay_us
                assert search.lower[k - search.lines.k_min] + delay <= value * (1 + 1e-9)


def test_nodes_that_reach_the_target_prove_it_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes of many counts alone, from cuts that nothing improves, to coarse gaps."""
    require_native_kernels()
    for name in ("_met", "_annealed"):
        monkeypatch.setattr(Branching, name, lambda *_: iter(()))
    monkeypatch.setattr(branch, "tree_counts", lambda *_: [])
    rng, short = np.random.default_rng(23), 0
    for problem in random_problems(count(3000), seed=151, rule=SMALL):
        search, start = exact.start(problem), random_cut(problem, rng)
        if not isinstance(search.lines, ConvexProblem) or start is None:
            continue
        best = best_of_every_cut(problem)
        branching = Branching(search, search.lines, start)
        better = branching.run(relative_gap=0.1, deadline=Deadline.after(60.0))
        cuts = [start, *(candidate.fragment_bytes for candidate in better)]
        known = latency_us(problem.pipeline, cuts[-1]) - problem.pipeline.delay_us
        for k, value in best.items():
            if k - search.lines.k_min < len(search.lower):
                bound = min(search.lower[k - search.lines.k_min], known)
                assert bound <= (value - problem.pipeline.delay_us) * (1.0 + 1e-9)
        short += known > (min(best.values()) - problem.pipeline.delay_us) * (1.0 + 1e-9)
    assert short > 0


def test_regions_that_are_left_out_hold_no_better_cut() -> None:
    """Of all compositions, those below the target have sizes in the regions that stay."""
    left_out, gap = 0, 1e-3
    for problem in random_problems(count(400), seed=161, rule=SMALL):
        search = exact.start(problem)
        if not isinstance(search.lines, ConvexProblem):
            continue
        start = solve(problem, "fixed").schedule.fragment_bytes
        start_us = latency_us(problem.pipeline, start)
        before = regions_of(problem)
        kept = Branching(search, search.lines, start).narrow(gap, Deadline.after(60.0))
        left_out += kept.high[-1] < before.high[-1] or len(kept) < len(before)
        counts = problem.count_range()
        for k in range(max(2, counts.minimum), counts.maximum + 1):
            for cut in every_cut(problem, k):
                if latency_us(problem.pipeline, cut) * (1.0 + gap) < start_us * (1.0 - 1e-9):
                    at = np.searchsorted(kept.high, np.array(cut))
                    assert (at < len(kept)).all()
                    assert (kept.low[at] <= cut).all()
    assert left_out > 0


def test_whole_bytes_are_proven() -> None:
    """The best of all compositions, and a bound that is it: real sizes may take less."""
    require_native_kernels()
    tried = proven = 0
    for problem in random_problems(count(600), seed=163, rule=SMALL):
        best_us = min(best_of_every_cut(problem).values())
        solution = solve(problem, "auto", time_limit_s=60.0)
        assert solution.lower_bound_us <= best_us * (1 + 1e-9)
        assert solution.latency_us >= best_us * (1 - 1e-12)
        tried += 1
        proven += solution.relative_gap <= 2e-6
        if solution.relative_gap <= 2e-6:
            assert solution.latency_us == pytest.approx(best_us, rel=3e-6)
    assert proven >= 0.9 * tried


def test_counts_whose_common_tree_ends_at_real_sizes_are_searched_one_by_one() -> None:
    """Whole bytes are proven within 1e-6 then, where the real optimum is 1.3e-5 below them."""
    require_native_kernels()
    bus = Stage("bus", (FitRange(1.0, 9.0, 2048), FitRange(12.0, 3.0)))
    lines = (Stage("wire", (FitRange(4.0, 6.5),)), Stage("disk", (FitRange(2.5, 5.0),)))
    found = solve(Problem(Pipeline((bus, *lines), 3.5), 20_000), time_limit_s=60.0)
    assert found.status is Status.OPTIMAL
    assert found.relative_gap <= 1.001e-6
    assert found.latency_us == pytest.approx(189.834, rel=1e-9)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("relative_gap", [0.0, 1e-6, 0.1])
def test_a_bound_that_ends_at_the_gap_asked_for_is_optimal(relative_gap: float) -> None:
    """No answer misses its status by a rounding, and at no gap anything overflows."""
    stages = (
        Stage("a", (FitRange(0.0, 0.001, 3), FitRange(0.0, 2e6, 4), FitRange(0.0, 0.0))),
        Stage("b", (FitRange(0.0, 626271.5370199163, 3), FitRange(9104874912.62042, 2e6))),
    )
    problems = [Problem(Pipeline(stages), size) for size in range(7, 11)]
    problems += random_problems(count(60), seed=331, rule=Rule((2, 4), (6, 60)))
    for problem in problems:
        found = solve(problem, "exact", relative_gap=relative_gap)
        is_met = found.relative_gap <= relative_gap * (1.0 + 1e-9)
        assert is_met == (found.status is Status.OPTIMAL)


def test_without_time_no_bound_is_raised() -> None:
    """Counts whose node was not looked at must not be taken for counts that cannot win."""
    for problem in random_problems(count(40), seed=151, rule=SMALL):
        search = exact.start(problem)
        if not isinstance(search.lines, ConvexProblem):
            continue
        search.run(near=best_count(problem), relative_gap=1e-6, deadline=Deadline.after(60.0))
        start, before = solve(problem, "fixed").schedule.fragment_bytes, search.lower.copy()
        branching, over = Branching(search, search.lines, start), Deadline.after(0.0)
        assert not list(branching.run(relative_gap=1e-9, deadline=over))
        best_us = latency_us(problem.pipeline, start) - problem.pipeline.delay_us
        could_win = (before < best_us) & (np.arange(len(before)) + search.lines.k_min > 1)
        assert np.array_equal(search.lower[could_win], before[could_win])


@pytest.mark.usefixtures("native_kernels")
def test_answers_equal_a_mixed_program_over_all_counts() -> None:
    """The optimum in whole bytes lies between bound and latency; both are it where proven."""
    rule, proven = Rule(stages=(2, 3), message_bytes=(200, 20_000)), 0
    tried = 0
    for problem in random_problems(count(200, share=40), seed=151, rule=rule):
        counts = problem.count_range()
        if counts.maximum > 6 and counts.minimum > 1:
            continue
        few = Problem(
            problem.pipeline, problem.message_bytes, _at_most(problem, max(counts.minimum, 5))
        )
        solution = solve(few, "auto", time_limit_s=20.0)
        value = min(
            mixed_optimum_us(few, k)
            for k in range(few.count_range().minimum, few.count_range().maximum + 1)
        )
        assert solution.lower_bound_us <= value * (1 + 1e-6)
        assert solution.latency_us >= value * (1 - 1e-6)
        tried += 1
        if solution.relative_gap <= 1e-6:
            proven += 1
            assert solution.latency_us == pytest.approx(value, rel=3e-6)
    assert proven >= 0.5 * tried


def _at_most(problem: Problem, fragments: int) -> object:
    from dataclasses import replace

    return replace(problem.limits, max_fragments=fragments)


def mixed_optimum_us(problem: Problem, k: int) -> float:
    """The optimum for k fragments by HiGHS: bytes and a choice for each fragment and region."""
    region, n = regions_of(problem), len(problem.pipeline)
    R = len(region)
    size = problem.message_bytes
    unit = float((region.g[-1] + region.G[-1] * size).sum()) or 1.0
    columns = 2 * k * R + k * n  # bytes, choices, ends of every fragment in every stage
    rows: list[np.ndarray] = []
    low: list[float] = []
    for i in range(k):
        for j in range(n):
            for before in {(i - 1, j), (i, j - 1)}:
                if min(before) < 0 and (i, j) != (0, 0):
                    continue
                row = np.zeros(columns)
                row[2 * k * R + i * n + j] = 1.0
                if min(before) >= 0:
                    row[2 * k * R + before[0] * n + before[1]] = -1.0
                row[i * R : (i + 1) * R] = -region.G[:, j] / unit
                row[k * R + i * R : k * R + (i + 1) * R] = -region.g[:, j] / unit
                rows.append(row)
                low.append(0.0)
        for r in range(R):
            for sign, end in ((1.0, region.low[r]), (-1.0, region.high[r])):
                row = np.zeros(columns)
                row[i * R + r], row[(k + i) * R + r] = sign, -sign * end
                rows.append(row)
                low.append(0.0)
    equal = np.zeros((k + 1, columns))
    for i in range(k):
        equal[i, (k + i) * R : (k + i + 1) * R] = 1.0
    equal[k, : k * R] = 1.0
    total = np.append(np.ones(k), size)
    cost = np.zeros(columns)
    cost[-1] = 1.0
    integral = np.zeros(columns)
    integral[: 2 * k * R] = 1.0
    upper = np.full(columns, np.inf)
    upper[k * R : 2 * k * R] = 1.0
    result = optimize.milp(
        cost,
        constraints=[
            optimize.LinearConstraint(np.array(rows), np.array(low), np.inf),
            optimize.LinearConstraint(equal, total, total),
        ],
        integrality=integral,
        bounds=optimize.Bounds(0.0, upper),
        options={"mip_rel_gap": 1e-9},
    )
    if result.x is None:
        return np.inf
    return float(result.fun) * unit + problem.pipeline.delay_us


def test_a_table_of_one_message_is_no_better_than_auto_proves() -> None:
    """Two ways to one question: neither's cut may be below the other's bound."""
    for problem in random_problems(count(60), seed=157, rule=MANY):
        size = problem.message_bytes
        table = compile_table(
            problem.pipeline, problem.limits, min_message_bytes=size, max_message_bytes=size
        )
        auto = solve(problem)
        assert table.cuts[0].latency_us >= auto.lower_bound_us * (1 - 1e-9)
