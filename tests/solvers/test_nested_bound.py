"""The bound over nested cuts is below every schedule there is, and above the weak one."""

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from domain.errors import Infeasible
from domain.nested import NestedSchedule, nested_latency_us
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from domain.solution import Strategy
from solvers import solve
from solvers.nested.bound import nested_lower_bound_us
from tests.support.counts import count, is_campaign

Floats = NDArray[np.float64]

costs = st.one_of(st.just(0.0), st.floats(0.01, 10.0), st.floats(1.0, 1000.0))
bytes_costs = costs.map(lambda cost: cost * 1000.0)


@st.composite
def stages(draw: st.DrawFn) -> Stage:
    """Mostly lines; sometimes two ranges."""
    last = FitRange(draw(costs), draw(bytes_costs))
    if draw(st.integers(0, 3)):
        return Stage("s", (last,))
    return Stage("s", (FitRange(draw(costs), draw(bytes_costs), draw(st.integers(1, 4))), last))


limits = st.builds(
    FragmentLimits,
    min_fragment_bytes=st.sampled_from([1, 1, 2]),
    max_fragment_bytes=st.sampled_from([None, None, 3]),
    alignment_bytes=st.sampled_from([1, 1, 2]),
    max_fragments=st.sampled_from([None, None, 2]),
)


def all_cuts(problem: Problem) -> list[tuple[int, ...]]:
    """Every admitted cut of a tiny message."""
    size = problem.message_bytes
    found = []
    for pieces in range(1, size + 1):
        for inner in combinations(range(1, size), pieces - 1):
            ends = (*inner, size)
            cut = tuple(end - start for start, end in zip((0, *inner), ends, strict=True))
            if problem.admits(cut):
                found.append(cut)
    return found


def min_nested_us(problem: Problem) -> float:
    """The least latency over all admitted cuts of all stages, by trying them."""
    cuts = all_cuts(problem)
    return min(
        nested_latency_us(problem.pipeline, NestedSchedule(levels))
        for levels in product(cuts, repeat=len(problem.pipeline))
    )


@settings(max_examples=count(600))
@given(st.lists(stages(), min_size=1, max_size=3), st.integers(1, 6), limits, st.booleans())
def test_no_nested_cut_of_a_tiny_message_is_below_the_bound(
    parts: list[Stage], size: int, within: FragmentLimits, delayed: bool
) -> None:
    """All cuts in all stages: up to 4096 schedules an example."""
    size = min(size, 5) if len(parts) == 3 else size
    problem = Problem(Pipeline(tuple(parts), 2.5 if delayed else 0.0), size, within)
    assume(all_cuts(problem))
    best_us = min_nested_us(problem)
    assert nested_lower_bound_us(problem) <= best_us * (1.0 + 1e-12)
    assert best_nested_us(problem) == pytest.approx(best_us, rel=1e-12)


def best_nested_us(problem: Problem) -> float:
    """The least latency over all cuts of all stages: what each byte leaves a stage at, for every
    cut of it and every such row of the stage before, but for rows that another is not later than
    at any byte.
    """
    rows = np.zeros((1, problem.message_bytes + 1))
    for stage in problem.pipeline.stages:
        kept = not_dominated(rows)
        rows = np.concatenate([left_at(stage, kept, cut) for cut in all_cuts(problem)])
    return float(rows[:, -1].min()) + problem.pipeline.delay_us


def left_at(stage: Stage, ready: Floats, cut: tuple[int, ...]) -> Floats:
    """When each byte (columns, from 1) leaves a stage that cuts so, for each row of `ready`."""
    left, now, end = np.zeros_like(ready), np.zeros(len(ready)), 0
    for part in cut:
        now = np.maximum(now, ready[:, end + part]) + stage.time_us(part)
        left[:, end + 1 : end + part + 1] = now[:, None]
        end += part
    return left


def not_dominated(rows: Floats) -> Floats:
    """The rows than which no other is earlier everywhere; the one of least sum is such a row."""
    left, kept = rows[np.argsort(rows.sum(axis=1), kind="stable")], []
    while len(left):
        kept.append(left[0])
        left = left[~(left[0] <= left + 1e-12).all(axis=1)]
    return np.array(kept)


def tiny_problems(count: int, *, seed: int) -> Iterator[Problem]:
    """Two to four stages, four to eight bytes, overheads that matter to every cut."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        stages = int(rng.choice([2, 3, 3, 4]))
        overheads = rng.choice([0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0], stages)
        costs = rng.choice([500.0, 1000.0, 2000.0, 4000.0], stages)
        near = rng.uniform(0.8, 1.2, (2, stages))
        lines = [
            (f"s{j}", float(overheads[j] * near[0, j]), float(costs[j] * near[1, j]))
            for j in range(stages)
        ]
        most = (8 if stages < 4 else 7) if is_campaign() else 6
        size = int(rng.integers(most - 2, most + 1))
        yield Problem(pipeline_of_lines(lines), size, allow_refragmentation=True)


def test_small_messages_are_bounded_closely_and_cut_well() -> None:
    """Against all cuts of all stages: half of the bounds within 5 % of the optimum, nine of ten
    answers within 0.5 % of it, and all within 2 %.
    """
    short, over = [], []
    for problem in tiny_problems(count(100, share=10), seed=21):
        best_us = best_nested_us(problem)
        answer = solve(problem, Strategy.AUTO)
        assert answer.lower_bound_us <= best_us * (1.0 + 1e-9)
        assert answer.latency_us >= best_us * (1.0 - 1e-9)
        short.append(1.0 - answer.lower_bound_us / best_us)
        over.append(answer.latency_us / best_us - 1.0)
    assert np.median(short) <= 0.05
    assert np.quantile(over, 0.9) <= 0.005
    assert max(over) <= 0.02


@given(
    st.lists(st.tuples(st.just("s"), costs, costs), min_size=1, max_size=6).map(pipeline_of_lines),
    st.integers(1, 10**7),
    st.integers(1, 50),
    st.none() | st.integers(100, 10**6),
)
def test_the_bound_is_never_below_the_weak_one(
    pipeline: Pipeline, size: int, minimum: int, maximum: int | None
) -> None:
    """max_b (k_b g_b + B G_b + sum over the others of g_j + m G_j), k_b the least count."""
    problem = Problem(pipeline, size, FragmentLimits(minimum, maximum))
    try:
        counts = problem.count_range()
    except Infeasible:
        reject()
    block = [stage.time_us(problem.smallest_fragment_bytes) for stage in pipeline.stages]
    weak_us = max(
        counts.minimum * stage.ranges[0].overhead_us
        + size * stage.ranges[0].ns_per_byte / 1000.0
        + sum(block)
        - block[b]
        for b, stage in enumerate(pipeline.stages)
    )
    assert nested_lower_bound_us(problem) >= weak_us * (1.0 - 1e-9)


def test_a_single_stage_is_bounded_by_its_optimum() -> None:
    """One stage: as few fragments as are admitted."""
    pipeline = pipeline_of_lines([("only", 3.0, 100.0)], delay_us=1.0)
    problem = Problem(pipeline, 1000, FragmentLimits(max_fragment_bytes=400))
    optimum_us = latency_us(pipeline, (400, 400, 200))
    assert nested_lower_bound_us(problem) == pytest.approx(optimum_us, rel=1e-9)


def test_the_order_of_the_stages_does_not_matter_to_the_reversed_pipeline() -> None:
    """Reversal maps every nested schedule to one of equal latency, and the bound with it."""
    pipeline = pipeline_of_lines(
        [("a", 36.0, 36.0), ("b", 26.0, 124.5), ("disk", 4000.0, 200.0), ("c", 37.0, 39.5)]
    )
    forwards = nested_lower_bound_us(Problem(pipeline, 65_536))
    backwards = nested_lower_bound_us(Problem(pipeline.reversed(), 65_536))
    assert backwards == pytest.approx(forwards, rel=1e-6)


def test_a_fast_network_and_a_slow_disk_are_bounded_closely() -> None:
    """The stage before the disk must deliver a first block: far more than the weak bound says."""
    pipeline = pipeline_of_lines([("net", 0.0, 100.0), ("disk", 4000.0, 200.0)])
    bound_us = nested_lower_bound_us(Problem(pipeline, 65_536))
    # Two blocks with 0.1 (B - x) = 4000 + 0.2 x, so that the disk never waits.
    first = (6553.6 - 4000.0) / 0.3
    assert bound_us == pytest.approx(0.1 * first + 8000.0 + 0.2 * 65_536, rel=1e-6)


def test_the_most_fragments_do_not_limit_bytes_that_are_handed_on_as_they_move() -> None:
    """The case that showed it: the stream of a stage was bounded as if it had three blocks."""
    costs = [(0.0, 454.0, 1), (0.25, 2224.0, 1), (0.0, 720.0, 2)]
    pipeline = Pipeline(
        tuple(
            Stage.of_line("s", overhead_us=g, ns_per_byte=per_byte, handoff_bytes=grain)
            for g, per_byte, grain in costs
        )
    )
    problem = Problem(pipeline, 40, FragmentLimits(max_fragments=3), allow_refragmentation=True)
    cuts = NestedSchedule(((7, 7, 26), (7, 33), (21, 14, 5)))
    assert all(map(problem.admits, cuts.stage_bytes))
    assert nested_lower_bound_us(problem) <= nested_latency_us(pipeline, cuts)
