"""The best repeated size is the best of all sizes; a static size keeps or names its limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import Infeasible, InvalidInput, StrategyDeclined
from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from solvers import solve
from solvers.repeat import best_repeat
from solvers.usual_settings import baselines_of

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
    """A baseline without an admitted cut has a reason and no latency; the others are judged."""
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
