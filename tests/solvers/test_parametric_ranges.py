"""Plan tables on stages with ranges: certificates against independent searches and brute force."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest

from domain.pipeline import FitRange, Pipeline, Stage
from domain.plan_table import PlanTable, TableRepeat, repeated_size
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from solvers import compile_table, solve
from solvers.ranges.bound import CountPlanes, Span, SpanBound, SpanTrees
from solvers.ranges.regions import Boxed, NodeSolver, Regions, whole_cut_within
from solvers.tables.count_bounds import CountBounds
from solvers.tables.cuts import _Repeated
from solvers.tables.structures import StructurePool
from tests.solvers.ranged_pipelines import Rule, best_of_every_cut, random_problems, random_stage
from tests.support.counts import count

_EXACTLY = 1.0 + 1e-9


def _local_path() -> Pipeline:
    """Like the fit of the example trace: costs that jump down and up from range to range."""
    return Pipeline(
        (
            _stage("copy_in", (0.189, 0.0, 2048), (0.46, 0.0567, 16384), (0.0, 0.0921, None)),
            _stage("crc", (0.868, 0.0, 512), (0.273, 0.3127, None)),
            _stage("tcp", (7.859, 0.124, 16384), (2.86, 0.2739, None)),
            _stage("write", (52.836, 0.7196, 65536), (84.893, 0.6296, None)),
        ),
        delay_us=0.25,
    )


def _stage(name: str, *ranges: tuple[float, float, int | None]) -> Stage:
    return Stage(name, tuple(FitRange(*part) for part in ranges))


@cache
def _local_table() -> PlanTable:
    return compile_table(
        _local_path(), FragmentLimits(), min_message_bytes=1, max_message_bytes=1 << 19
    )


def _tiny(seed: int) -> Pipeline:
    rng = np.random.default_rng(seed)
    stages = int(rng.integers(1, 4))
    return Pipeline(tuple(random_stage(rng, 12, 1.0) for _ in range(stages)))


def _all_cuts(size: int, limits: FragmentLimits) -> list[tuple[int, ...]]:
    problem = Problem(_local_path(), size, limits)
    ends = range(1, size)
    cuts = (
        tuple(int(x) for x in np.diff((0, *inner, size)))
        for k in range(size)
        for inner in combinations(ends, k)
    )
    return [cut for cut in cuts if problem.admits(cut)]


def _repeated(message: int, size: int) -> tuple[int, ...]:
    q = (message - 1) // size
    return (size,) * q + (message - q * size,)


@pytest.mark.parametrize("limit_s", [60.0, 1e-9])
@pytest.mark.parametrize("seed", range(count(80)))
def test_tiny_tables_hold_at_every_byte_against_all_cuts(seed: int, limit_s: float) -> None:
    """Where time ends the search at once, too: closed forms prove what the entries then state."""
    limits = FragmentLimits(
        min_fragment_bytes=1 + seed % 2, alignment_bytes=1 + (seed // 2) % 2, max_fragments=5
    )
    pipeline = _tiny(seed)
    table = compile_table(
        pipeline, limits, min_message_bytes=1, max_message_bytes=12, time_limit_s=limit_s
    )
    for size in range(1, 13):
        every = [latency_us(pipeline, cut) for cut in _all_cuts(size, limits)]
        cut = table.cut_at(size)
        assert Problem(pipeline, size, limits).admits(cut)
        own = latency_us(pipeline, cut)
        assert own <= (1.0 + table.relative_gap_at(size)) * min(every) * _EXACTLY


@pytest.mark.parametrize("seed", range(count(80)))
def test_tiny_repeats_hold_at_every_byte_against_all_sizes(seed: int) -> None:
    pipeline, limits = _tiny(1000 + seed), FragmentLimits(min_fragment_bytes=1 + seed % 2)
    table = compile_table(pipeline, limits, min_message_bytes=1, max_message_bytes=40)
    for size in range(1, 41):
        problem = Problem(pipeline, size, limits)
        cuts = [_repeated(size, s) for s in range(1, size + 1)]
        best = min(latency_us(pipeline, cut) for cut in cuts if problem.admits(cut))
        repeated = _repeated(size, table.repeated_size_at(size))
        assert problem.admits(repeated)
        own = latency_us(pipeline, repeated)
        assert own <= (1.0 + table.repeat_gap_at(size)) * best * _EXACTLY


def test_time_ends_the_search_of_a_table_of_many_ranges_too() -> None:
    """Some hundred ends of ranges, each a message of its own: no program is solved for any."""
    rng = np.random.default_rng(3)
    ends = sorted(rng.choice(np.arange(64, 60_000), 60, replace=False).tolist())
    ranges = [(float(rng.exponential(9.0)), float(rng.exponential(9.0)), end) for end in ends]
    pipeline = Pipeline((_stage("a", *ranges, (1.0, 2.0, None)), _stage("b", (5.0, 3.0, None))))
    cut_off: list[bool] = []
    table = compile_table(
        pipeline,
        FragmentLimits(),
        min_message_bytes=1,
        max_message_bytes=1 << 16,
        time_limit_s=1e-9,
        on_cut_off=lambda: cut_off.append(True),
    )
    assert cut_off == [True]
    for size in np.exp(rng.uniform(0.0, np.log(1 << 16), 20)).astype(int).tolist():
        cut, found = table.cut_at(size), solve(Problem(pipeline, size), "auto", time_limit_s=0.1)
        own = latency_us(pipeline, cut)
        assert own <= (1.0 + table.relative_gap_at(size)) * found.latency_us * _EXACTLY


def test_the_local_path_is_within_the_tolerance_everywhere() -> None:
    table = _local_table()
    worst = max(cut.relative_gap for cut in table.cuts)
    assert worst <= 1e-3 + 1e-9
    assert max(repeat.relative_gap for repeat in table.repeats) <= 1e-3 + 1e-9


def test_the_local_path_against_searches_for_single_messages() -> None:
    table, rng = _local_table(), np.random.default_rng(7)
    for size in np.exp(rng.uniform(0.0, np.log(1 << 19), count(200))).astype(int).tolist():
        problem = Problem(table.pipeline, size)
        cut, found = table.cut_at(size), solve(problem, "exact")
        assert problem.admits(cut)
        own = latency_us(table.pipeline, cut)
        assert own <= (1.0 + table.relative_gap_at(size)) * found.latency_us * _EXACTLY
        assert own >= found.lower_bound_us * (1.0 - 1e-9)
        repeat = solve(problem, "repeat").latency_us
        repeated = latency_us(table.pipeline, _repeated(size, table.repeated_size_at(size)))
        assert repeated <= (1.0 + table.repeat_gap_at(size)) * repeat * _EXACTLY


@pytest.mark.parametrize(
    "limits",
    [
        FragmentLimits(alignment_bytes=512),
        FragmentLimits(max_fragment_bytes=50_000),
        FragmentLimits(min_fragment_bytes=4_096),
        FragmentLimits(max_fragments=2),
        FragmentLimits(min_fragment_bytes=1_000, max_fragment_bytes=70_000, alignment_bytes=64),
    ],
)
def test_limits_are_kept_and_certified(limits: FragmentLimits) -> None:
    pipeline, rng = _local_path(), np.random.default_rng(11)
    table = compile_table(
        pipeline, limits, min_message_bytes=60_000, max_message_bytes=90_000, relative_gap=1e-2
    )
    for size in rng.integers(60_000, 90_001, count(100)).tolist():
        problem = Problem(pipeline, size, limits)
        cut = table.cut_at(size)
        assert problem.admits(cut)
        own, found = latency_us(pipeline, cut), solve(problem, "exact")
        assert own <= (1.0 + table.relative_gap_at(size)) * found.latency_us * _EXACTLY


def test_tables_are_deterministic() -> None:
    again = compile_table(
        _local_path(), FragmentLimits(), min_message_bytes=1, max_message_bytes=1 << 19
    )
    assert again == _local_table()


def test_a_range_that_no_fragment_reaches_is_no_range() -> None:
    """Within the limits every stage is one line: the table is that of the lines."""
    stages = (_stage("a", (1.0, 2.0, 100), (9.0, 1.0, None)), _stage("b", (2.0, 3.0, None)))
    lines = (_stage("a", (1.0, 2.0, None)), _stage("b", (2.0, 3.0, None)))
    limits = FragmentLimits(max_fragment_bytes=100)
    tables = [
        compile_table(Pipeline(each), limits, min_message_bytes=1, max_message_bytes=2_000)
        for each in (stages, lines)
    ]
    assert tables[0].cuts == tables[1].cuts
    assert tables[0].repeats == tables[1].repeats


def test_regions_lie_between_the_ends_of_all_ranges() -> None:
    regions = Regions.of(_local_path())
    assert regions.high.tolist() == [512.0, 2048.0, 16384.0, 65536.0, np.inf]
    assert regions.low.tolist() == [1.0, 513.0, 2049.0, 16385.0, 65537.0]
    assert regions.structure_of((512, 513, 70_000)) == (0, 1, 4)


def test_a_structure_keeps_its_regions_in_whole_bytes() -> None:
    regions, problem = Regions.of(_local_path()), Problem(_local_path(), 200_000)
    solver = NodeSolver(regions, problem.pipeline)
    for structure in product(range(5), repeat=3):
        boxed = solver.solve(problem, tuple((r, r) for r in structure))
        cut = None if boxed is None else whole_cut_within(regions, problem, structure, boxed.x)
        if boxed is not None:
            assert cut is not None
            assert regions.structure_of(cut) == structure
            assert latency_us(problem.pipeline, cut) <= (boxed.latency_us + 0.25) * 1.001


def test_planes_bound_every_cut_of_every_message() -> None:
    pipeline, rng = _local_path(), np.random.default_rng(3)
    regions = Regions.of(pipeline)
    planes = CountPlanes(regions, 3)
    solver = NodeSolver(regions, pipeline)
    root = ((0, 4),) * 3
    for size in (90_000, 300_000):
        boxed = solver.solve(Problem(pipeline, size), root)
        assert boxed is not None
        planes.add(boxed.p, boxed.price)
    ranges, error = planes.table(1.0, 400_000.0)
    for _ in range(count(2_000)):
        x = np.exp(rng.uniform(0.0, np.log(130_000.0), 3)).round()
        at = np.array(regions.structure_of(x))
        values = ranges[:, np.arange(3), at, at].sum(axis=1) + planes.price * x.sum() - error
        assert values.max() + 0.25 <= latency_us(pipeline, tuple(x.tolist())) * _EXACTLY


def test_a_span_without_a_good_enough_cut_is_told_of_a_better_structure() -> None:
    pipeline, size = _local_path(), 400_000
    regions, solver = Regions.of(pipeline), NodeSolver(Regions.of(pipeline), pipeline)
    single = latency_us(pipeline, (size,))
    span = Span(size, size, single, single, 0.25, 1e-3)
    bound = SpanBound(CountPlanes(regions, 3), span, (1.0, float(size)), max_solves=20)
    found = bound.run(lambda node, at: solver.solve(Problem(pipeline, at), node), fully=True)
    assert found.better is not None
    assert len(found.better) == 3


def test_counts_that_the_closed_form_excludes_hold_no_better_cut() -> None:
    pipeline, size = _local_path(), 100_000
    problem = Problem(pipeline, size)
    best = solve(problem, "exact").latency_us
    span = Span(size, size, best, best, 0.25, 0.0)
    open_ = CountBounds(problem).open_counts(span).open
    for k in sorted({*range(1, 8)} - set(open_)):
        equal = (size // k,) * (k - 1) + (size - (k - 1) * (size // k),)
        assert latency_us(pipeline, equal) >= best
    assert len(solve(problem, "exact").schedule.fragment_bytes or ()) in open_


def test_structures_are_ranked_as_if_all_were_solved() -> None:
    """Lines from other messages decide which are solved, and in no case what comes out."""
    rng = np.random.default_rng(47)
    for problem in random_problems(count(100), seed=48, rule=Rule((2, 4), (200, 5_000))):
        regions, messages = Regions.of(problem.pipeline), problem.message_bytes
        solver = NodeSolver(regions, problem.pipeline)
        solved = list[tuple[int, tuple[int, ...]]]()

        def solve_one(
            structure: tuple[int, ...],
            size: int,
            *,
            problem: Problem = problem,
            solver: NodeSolver = solver,
            solved: list[tuple[int, tuple[int, ...]]] = solved,
        ) -> Boxed | None:
            solved.append((size, structure))
            at_size = replace(problem, message_bytes=size)
            return solver.solve(at_size, tuple((r, r) for r in structure))

        pool = StructurePool(solver, problem, solve_one)
        structures = {
            tuple(rng.integers(0, len(regions), rng.integers(1, 5)).tolist()) for _ in range(30)
        }
        for structure in sorted(structures):
            pool.add(structure)
        for _ in range(6):
            first, last = sorted(rng.integers(messages // 2, messages + 1, 2).tolist())
            us = {
                one: [leaf.latency_us if (leaf := solve_one(one, at)) else np.inf for at in ends]
                for ends in ((first, last),)
                for one in structures
            }
            best = np.min(list(us.values()), axis=0)
            if not np.isfinite(best).all() or not (best > 0.0).all():
                continue
            over = {one: float(np.max(np.array(both) / best)) - 1.0 for one, both in us.items()}
            expected = sorted(excess for excess in over.values() if excess < np.inf)
            solved.clear()
            assert [excess for excess, _ in pool.ranked(first, last)] == pytest.approx(
                expected, rel=1e-7, abs=1e-9
            )
            solved.clear()
            for excess, structure in pool.ranked(first, last):
                assert excess == pytest.approx(expected[0], rel=1e-7, abs=1e-9)
                assert over[structure] == pytest.approx(expected[0], rel=1e-7, abs=1e-9)
                break
            assert len(set(solved)) <= 2 * len(structures)


@pytest.mark.parametrize("unit", [1, 3])
@pytest.mark.usefixtures("native_kernels")
def test_tables_of_few_units_are_proven_in_whole_bytes(unit: int) -> None:
    """No gap is left by sizes between bytes, nor in repeated sizes."""
    for seed in range(count(60)):
        limits = FragmentLimits(alignment_bytes=unit, max_fragments=6)
        pipeline = _tiny(2000 + seed)
        if len(Regions.of(pipeline)) == 1:
            continue
        table = compile_table(
            pipeline, limits, min_message_bytes=1, max_message_bytes=24, relative_gap=1e-4
        )
        assert max(one.relative_gap for one in table.cuts) <= 1e-4 + 1e-9
        assert max(one.relative_gap for one in table.repeats) <= 1e-4 + 1e-9


def test_repeated_sizes_whose_best_count_changes_with_every_few_bytes_have_few_entries() -> None:
    """Small fragments without overhead: any count is as good, and the best one is another."""
    stages = (
        _stage("a", (0.0, 21.42, 65), (1.39, 0.0, 1_952), (0.0, 21.76, None)),
        _stage("b", (35.23, 0.0, 18), (0.0, 28.11, None)),
    )
    table = compile_table(
        Pipeline(stages), FragmentLimits(), min_message_bytes=55_082, max_message_bytes=220_330
    )
    assert len(table.repeats) < 50
    assert max(one.relative_gap for one in table.repeats) <= 1e-3 + 1e-9
    for message in np.random.default_rng(5).integers(55_082, 220_330, count(40)).tolist():
        best = solve(Problem(table.pipeline, message), "repeat").latency_us
        own = latency_us(table.pipeline, _repeated(message, table.repeated_size_at(message)))
        assert own <= (1.0 + table.repeat_gap_at(message)) * best * _EXACTLY


def test_mixtures_of_stages_exclude_counts_that_no_stage_excludes() -> None:
    """Stages whose cheap sizes differ: each alone has fragments that cost next to nothing."""
    stages = (
        _stage("a", (0.0, 0.0, 5), (0.0, 55.0, 20), (0.0, 8.0, None)),
        _stage("b", (0.0, 2.0, 9), (139.0, 0.0, None)),
        _stage("c", (0.0, 44.0, 7), (0.31, 0.0, None)),
        _stage("d", (78.0, 11.0, 3), (0.0, 0.0, None)),
    )
    problem = Problem(Pipeline(stages), 161)
    best = solve(problem, "auto")
    span = Span(161, 161, best.latency_us, best.latency_us, 0.0, 1e-3)
    counts = CountBounds(problem).open_counts(span)
    assert best.schedule.fragments in counts.open
    assert counts.ratio < 1.2
    of_stages = CountBounds(problem)
    of_stages._seek = lambda costs, k, message: False  # type: ignore[method-assign]
    assert of_stages.open_counts(span).ratio > 2.0


def test_counts_of_many_stages_and_ranges_take_little_memory() -> None:
    """100 000 counts and thousands of prices: no array has a number for each pair of them."""
    ends = [16 * i + int(16 * 1.25**i) for i in range(63)]
    steps = [(0.0, 1.0 + 0.05 * i, end) for i, end in enumerate([*ends, None])]
    problem = Problem(Pipeline(tuple(_stage(f"s{j}", *steps) for j in range(64))), 1 << 22)
    cut_us = 3.0 * latency_us(problem.pipeline, (64,) * (1 << 16))
    span = Span((1 << 22) - 1000, 1 << 22, cut_us, cut_us, 0.0, 1e-3)
    tracemalloc.start()
    counts = CountBounds(problem).open_counts(span)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counts.open[-1] == problem.fragment_cap
    assert len(counts.open) == len(counts.ratios)
    assert peak < 200 << 20


@pytest.mark.usefixtures("native_kernels")
def test_closed_forms_and_trees_bound_every_cut_of_a_span_in_whole_units() -> None:
    """All compositions of a few short messages: counts that are left out reach the chord, and what
    is stated of the others, by the closed form and by trees, is no less than what they take.
    """
    rng, excluded, proven = np.random.default_rng(29), 0, 0
    rule = Rule(stages=(1, 4), message_bytes=(5, 11))
    for problem in random_problems(count(600), seed=331, rule=rule):
        first, last = problem.message_bytes, problem.message_bytes + int(rng.integers(0, 3))
        unit = int(rng.choice([1, 1, 2, 3]))
        problem = replace(problem, limits=FragmentLimits(alignment_bytes=unit, max_fragments=6))
        best = {
            size: best_of_every_cut(replace(problem, message_bytes=size))
            for size in range(first, last + 1)
        }
        ends = [min(best[size].values()) * rng.uniform(0.9, 1.5) for size in (first, last)]
        if first == last:
            ends[1] = ends[0]
        span = Span(first, last, ends[0], ends[1], problem.pipeline.delay_us, 0.01)
        counts = CountBounds(problem).open_counts(span)
        ratios = dict(zip(counts.open, counts.ratios, strict=True))
        trees = SpanTrees(Regions.of(problem.pipeline), problem, span, 1e7)
        found = trees.run(counts.open, 2, fully=True)
        for size, values in best.items():
            for k, best_us in values.items():
                chord = span.at_us(size)
                if k not in ratios:
                    excluded += 1
                    assert chord <= 1.01 * best_us * _EXACTLY
                    continue
                assert chord <= ratios[k] * best_us * _EXACTLY or best_us == 0.0
                if 1 < k <= trees.last_count and found.better is None and best_us > 0.0:
                    proven += found.ratio <= 1.01 * _EXACTLY
                    assert chord <= found.ratio * best_us * _EXACTLY
    assert excluded > 0
    assert proven > 0


def test_repeated_sizes_of_all_messages_at_once_are_those_that_a_reader_computes() -> None:
    """Any entries, limits and alignment: the reader's cut, or none where it is not admitted."""
    rng, admitted = np.random.default_rng(23), 0
    pipeline = Pipeline((random_stage(rng, 500, 1.0), random_stage(rng, 500, 1.0)))
    for _ in range(count(200)):
        unit = int(rng.choice([1, 1, 4]))
        limits = FragmentLimits(
            min_fragment_bytes=int(rng.choice([1, 7, 40])),
            max_fragment_bytes=None if rng.random() < 0.5 else 4 * int(rng.integers(10, 60)),
            max_fragments=int(rng.integers(1, 20)),
            alignment_bytes=unit,
        )
        ends = np.unique(rng.integers(1, 500, 6))
        repeats = [
            TableRepeat(int(end), unit * int(rng.integers(0, end // unit + 2)), 1.0, 0.0)
            for end in ends
        ]
        messages = np.arange(ends[0], ends[-1] + 1)
        of_entry = np.array([(one.message_bytes, one.size_bytes, one.fragments) for one in repeats])
        found = _Repeated.of(Problem(pipeline, 1, limits), of_entry, messages)
        latencies = found.latencies_us(Problem(pipeline, 1, limits))
        for at, message in enumerate(messages.tolist()):
            here = int(np.searchsorted(ends, message, side="right")) - 1
            size = repeats[here].size_bytes
            if size and message != repeats[here].message_bytes:
                size = repeated_size(repeats[here], repeats[here + 1], message, limits)
            many = -(-message // max(size, 1))
            cut = (*[size] * (many - 1), message - (many - 1) * size)
            fits = size > 0 and Problem(pipeline, message, limits).admits(cut)
            assert found.cut(at) == (cut if fits else None)
            assert latencies[at] == (
                pytest.approx(latency_us(pipeline, cut), rel=1e-12) if fits else np.inf
            )
            admitted += fits
    assert admitted > 0
