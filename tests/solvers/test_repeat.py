"""The best repeated size is the best of all sizes; a static size keeps or names its limits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import Infeasible, InvalidInput, StrategyDeclined
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from solvers import solve
from solvers.contract import Deadline, SolveOptions
from solvers.default_settings import baselines_of
from solvers.heuristics.repeat import best_repeat, run
from solvers.kernels import stage_times_us
from tests.support.counts import count

costs = st.one_of(st.just(0.0), st.floats(1e-3, 50.0))


@st.composite
def stages(draw: st.DrawFn) -> Stage:
    """Lines, and stages with up to two switches."""
    ends = sorted(draw(st.lists(st.integers(1, 250), max_size=2, unique=True)))
    parts = [FitRange(draw(costs), draw(costs), end) for end in ends]
    return Stage("s", (*parts, FitRange(draw(costs), draw(costs))))


pipelines = st.builds(Pipeline, st.lists(stages(), min_size=1, max_size=4).map(tuple))
limits = st.builds(
    FragmentLimits,
    st.sampled_from([1, 1, 5, 40]),
    st.sampled_from([None, None, 30, 100]),
    st.sampled_from([1, 1, 4, 7]),
    st.sampled_from([None, 3, 12]),
)


def repeated(total: int, size: int) -> tuple[int, ...]:
    """floor(B/s) fragments of s, then the remainder."""
    full, rest = divmod(total, size)
    return (size,) * full + ((rest,) if rest else ())


@given(pipelines, st.integers(1, 300), limits)
def test_no_size_is_better(pipeline: Pipeline, total: int, limits: FragmentLimits) -> None:
    """Brute force over every s from 1 to B, lines and ranges, with and without limits."""
    problem = Problem(pipeline, total, limits)
    cuts = [repeated(total, size) for size in range(1, total + 1)]
    times = [latency_us(pipeline, cut) for cut in cuts if problem.admits(cut)]
    if not times:
        with pytest.raises((StrategyDeclined, Infeasible)):
            best_repeat(problem)
        return
    size, cut = best_repeat(problem)
    assert cut == repeated(total, size)
    assert problem.admits(cut)
    assert latency_us(pipeline, cut) == pytest.approx(min(times), rel=1e-12)


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """A number whose logarithm is uniform; every fifth is zero."""
    return 0.0 if rng.random() < 0.2 else float(10.0 ** rng.uniform(low, high))


def random_stage(rng: np.random.Generator) -> Stage:
    """A line, or up to three switches anywhere below 300 kB."""
    ends = {int(10.0 ** rng.uniform(0.0, 5.5)) for _ in range(rng.integers(0, 4))}
    parts = [
        FitRange(log_uniform(rng, -3, 3), log_uniform(rng, -2, 3), end)
        for end in (*sorted(ends), None)
    ]
    return Stage("s", tuple(parts))


def min_of_all_sizes_us(problem: Problem) -> float:
    """The least latency over every admitted s, by the closed form; infinite where there is none."""
    limits, total = problem.limits, problem.message_bytes
    s = np.arange(1, total + 1)
    q, rest = np.divmod(total, s)
    fragments = q + (rest > 0)
    fits = (s <= problem.largest_fragment_bytes) & (fragments <= problem.count_range().maximum)
    several = (s % limits.alignment_bytes == 0) & (s >= limits.min_fragment_bytes)
    several &= (rest == 0) | (rest >= limits.min_fragment_bytes)
    fits &= several | (fragments == 1)
    s, q, rest = s[fits], q[fits], rest[fits]
    if not len(s):
        return math.inf
    t = stage_times_us(problem.pipeline, s.astype(float))
    exits = np.cumsum(t, axis=1) + (q - 1)[:, None] * np.maximum.accumulate(t, axis=1)
    behind = stage_times_us(problem.pipeline, np.maximum(rest, 1).astype(float))
    last = np.zeros(len(s))
    for j in range(t.shape[1]):
        last = np.maximum(last, exits[:, j]) + behind[:, j]
    return float(np.where(rest > 0, last, exits[:, -1]).min())


def test_no_size_is_better_for_larger_messages() -> None:
    """Every s up to 300 kB, where the intervals of one number of full fragments are long."""
    rng = np.random.default_rng(5)
    admitted = 0
    for _ in range(count(4000)):
        pipeline = Pipeline(tuple(random_stage(rng) for _ in range(rng.integers(1, 7))))
        total = int(10.0 ** rng.uniform(0.0, 5.5))
        limits = FragmentLimits(
            int(rng.choice([1, 1, 7, 100, 1500])),
            [None, None, max(1, total // 3), max(1, total // 50)][rng.integers(4)],
            int(rng.choice([1, 1, 8, 64, 100])),
            [None, None, 5, 200][rng.integers(4)],
        )
        problem = Problem(pipeline, total, limits)
        try:
            minimum = min_of_all_sizes_us(problem)
            cut = best_repeat(problem)[1]
        except Infeasible:
            continue
        except StrategyDeclined:
            assert minimum == math.inf
            continue
        assert problem.admits(cut)
        assert latency_us(pipeline, cut) == pytest.approx(minimum, rel=1e-11)
        admitted += 1
    assert admitted >= count(4000) // 2


def test_a_deadline_ends_the_search_with_the_best_so_far() -> None:
    """An admitted cut comes back all the same, and says that the search was cut off."""
    rows = [("a", 0.0, 1.0), ("b", 0.0, 2.0), ("c", 0.0, 1.5)]
    problem = Problem(pipeline_of_lines(rows), 2**48)
    candidate = run(problem, SolveOptions(), Deadline(0.0))
    assert candidate.cut_off
    assert problem.admits(candidate.fragment_bytes)


def test_the_largest_message_is_no_effort() -> None:
    """2^48 bytes: the answer is admitted and no worse than powers of two around it."""
    pipeline = Pipeline(
        tuple(
            Stage.of_line(str(j), overhead_us=g, ns_per_byte=cost)
            for j, (g, cost) in enumerate([(7.0, 7.0), (5.0, 24.0), (7.5, 24.3), (7.4, 8.0)])
        )
    )
    problem = Problem(pipeline, 2**48)
    size, cut = best_repeat(problem)
    assert problem.admits(cut)
    for power in range(32, 44):
        other = repeated(2**48, 2**power)
        assert latency_us(pipeline, cut) <= latency_us(pipeline, other)
    assert size > 2**30


PLAIN = Pipeline((Stage.of_line("a", overhead_us=1.0, ns_per_byte=1.0),) * 2)


@pytest.mark.parametrize(
    ("limits", "size", "named"),
    [
        (FragmentLimits(max_fragment_bytes=50), 60, "max_fragment_bytes"),
        (FragmentLimits(min_fragment_bytes=30), 60, "min_fragment_bytes"),  # the remainder is 20
        (FragmentLimits(alignment_bytes=8), 60, "alignment_bytes"),
        (FragmentLimits(max_fragments=3), 10, "max_fragments"),
    ],
)
def test_a_static_size_that_breaks_a_limit_names_it(
    limits: FragmentLimits, size: int, named: str
) -> None:
    """80 bytes; the refusal says which limit."""
    with pytest.raises(StrategyDeclined, match=named):
        solve(Problem(PLAIN, 80, limits), "static", static_bytes=size)


def test_static_needs_its_size() -> None:
    """The error names the field."""
    with pytest.raises(InvalidInput, match="static_bytes"):
        solve(Problem(PLAIN, 80), "static")


def test_a_static_size_above_the_message_sends_it_whole() -> None:
    """As a library would."""
    solution = solve(Problem(PLAIN, 80), "static", static_bytes=4096)
    assert solution.schedule.fragment_bytes == (80,)


def test_baselines_say_what_the_limits_forbid() -> None:
    """A baseline without an admitted cut has a reason and no latency; the others are evaluated."""
    problem = Problem(PLAIN, 10_000, FragmentLimits(max_fragment_bytes=5_000))
    found = baselines_of(problem)
    entries = {(entry.strategy.value, entry.static_bytes): entry for entry in found.entries}
    assert entries["single", None].latency_us is None
    assert "max_fragment_bytes" in (entries["single", None].declined or "")
    static = entries["static", 4096]
    assert static.latency_us == latency_us(PLAIN, (4096, 4096, 1808))
    best = found.best_repeat
    assert best is not None
    assert best.latency_us <= (static.latency_us or 0.0)
