"""One contract, every registered strategy: answers are admitted, judged, honestly labelled."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import Infeasible, StrategyDeclined
from domain.nested import NestedSchedule, nested_latency_us
from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from domain.solution import Solution, Status, Strategy
from solvers import solve
from solvers.strategies import REGISTRY, names

ALL = tuple(names())
ONE_CUT = tuple(
    spec.name for spec in REGISTRY if not spec.refragments and spec.name is not Strategy.STATIC
)

costs = st.one_of(st.just(0.0), st.floats(1e-3, 100.0), st.sampled_from([1.0, 2.0]))


@st.composite
def stages(draw: st.DrawFn) -> Stage:
    """Mostly lines; sometimes a protocol switch."""
    last = FitRange(draw(costs), draw(costs))
    if draw(st.integers(0, 5)):
        return Stage("s", (last,))
    return Stage("s", (FitRange(draw(costs), draw(costs), draw(st.integers(1, 300))), last))


@st.composite
def ranged_stages(draw: st.DrawFn) -> Stage:
    """Two or three ranges, with jumps either way."""
    ends = draw(st.lists(st.integers(1, 300), min_size=1, max_size=2, unique=True))
    inner = [FitRange(draw(costs), draw(costs), end) for end in sorted(ends)]
    return Stage("s", (*inner, FitRange(draw(costs), draw(costs))))


pipelines = st.builds(
    Pipeline,
    st.lists(stages(), min_size=1, max_size=5).map(tuple),
    st.sampled_from([0.0, 3.0]),
)
limits = st.builds(
    FragmentLimits,
    min_fragment_bytes=st.sampled_from([1, 1, 7, 50]),
    max_fragment_bytes=st.sampled_from([None, None, 64, 200]),
    alignment_bytes=st.sampled_from([1, 1, 8, 3]),
    max_fragments=st.sampled_from([None, 1, 4, 20]),
)
problems = st.builds(
    Problem,
    pipelines,
    st.integers(1, 700),
    limits,
    allow_refragmentation=st.booleans(),
)

ranged_problems = st.builds(
    Problem,
    st.builds(Pipeline, st.lists(ranged_stages(), min_size=1, max_size=4).map(tuple)),
    st.integers(1, 700),
    limits,
    allow_refragmentation=st.booleans(),
)


def attempt(problem: Problem, strategy: Strategy) -> Solution | None:
    """The answer, or None where the strategy declines or nothing is admitted, saying why."""
    size = 64 if strategy is Strategy.STATIC else None
    try:
        return solve(problem, strategy, static_bytes=size, time_limit_s=30.0)
    except (StrategyDeclined, Infeasible) as refusal:
        _check_reason(refusal.detail)
        return None


def _check_reason(detail: str) -> None:
    assert len(detail) > 20, "a refusal says why"


@pytest.mark.parametrize("strategy", ALL)
@given(problem=problems | ranged_problems)
@pytest.mark.usefixtures("native_kernels")
def test_every_answer_keeps_the_contract(strategy: Strategy, problem: Problem) -> None:
    """Admitted whole bytes, the evaluator's latency, a bound below it, a status that follows."""
    solution = attempt(problem, strategy)
    if solution is None:
        return
    cut = solution.schedule.fragment_bytes
    assert sum(cut) == problem.message_bytes
    if solution.levels is None:
        assert problem.admits(cut)
        assert solution.latency_us == latency_us(problem.pipeline, cut)
    else:
        assert all(problem.admits(level) for level in solution.levels)
        nested = NestedSchedule(solution.levels)
        assert solution.latency_us == nested_latency_us(problem.pipeline, nested)
    assert 0.0 <= solution.lower_bound_us <= solution.latency_us
    assert math.isfinite(solution.relative_gap)
    if solution.status is Status.OPTIMAL:
        assert solution.relative_gap <= 1e-6
    if solution.status is Status.OPTIMAL_BEFORE_ROUNDING:
        assert solution.unrounded_latency_us is not None
        assert solution.unrounded_latency_us <= solution.lower_bound_us * (1 + 1e-6)
    assert solution.status is not Status.TIME_LIMIT


@given(problem=problems | ranged_problems)
def test_auto_is_never_above_any_strategy(problem: Problem) -> None:
    """After rounding; without refragmentation against the shared cuts, with it against all."""
    best = attempt(problem, Strategy.AUTO)
    if best is None:
        return
    alternatives = [name for name in ALL if problem.allow_refragmentation or name in ONE_CUT]
    for alternative in alternatives:
        other = attempt(problem, alternative)
        if other is not None and (problem.allow_refragmentation or other.levels is None):
            assert best.latency_us <= other.latency_us * (1 + 1e-12), alternative


@given(problem=problems | ranged_problems)
def test_no_cut_lies_below_the_bound_of_another_strategy(problem: Problem) -> None:
    """Every bound covers the whole class, so it holds against every other answer of the class."""
    found = [attempt(problem, name) for name in ONE_CUT]
    answers = [solution for solution in found if solution is not None]
    for one in answers:
        for other in answers:
            assert one.lower_bound_us <= other.latency_us * (1 + 1e-9)


@pytest.mark.parametrize("strategy", ALL)
def test_the_same_question_gets_the_same_answer(strategy: Strategy) -> None:
    """Deterministic to the last bit."""
    pipeline = Pipeline(
        (
            Stage.of_line("a", overhead_us=3.0, ns_per_byte=2.0),
            Stage.of_line("b", overhead_us=5.0, ns_per_byte=4.0),
        )
    )
    problem = Problem(pipeline, 20_000)
    assert attempt(problem, strategy) == attempt(problem, strategy)


@pytest.mark.parametrize("overhead_us", [0.0, 1e12])
@pytest.mark.parametrize("ns_per_byte", [0.0, 1e9])
@pytest.mark.parametrize("message_bytes", [1, 4096, 2**48])
@pytest.mark.parametrize("strategy", [Strategy.AUTO, Strategy.FIXED, Strategy.REPEAT])
def test_numbers_at_the_limits_give_finite_answers(
    strategy: Strategy, message_bytes: int, ns_per_byte: float, overhead_us: float
) -> None:
    """A stage with zero overhead, zero cost, or both is legal; so are the greatest numbers."""
    pipeline = Pipeline(
        (
            Stage.of_line("extreme", overhead_us=overhead_us, ns_per_byte=ns_per_byte),
            Stage.of_line("plain", overhead_us=1.0, ns_per_byte=1.0),
            Stage.of_line("free", overhead_us=0.0, ns_per_byte=0.0),
        )
    )
    solution = solve(Problem(pipeline, message_bytes, fragment_cap=300), strategy)
    for value in (solution.latency_us, solution.lower_bound_us, solution.relative_gap):
        assert math.isfinite(value)
    assert solution.lower_bound_us > 0.0


def test_a_pipeline_without_any_cost_is_solved() -> None:
    """Latency 0, bound 0, gap 0: nothing is divided by zero."""
    pipeline = Pipeline((Stage.of_line("free", overhead_us=0.0, ns_per_byte=0.0),) * 3)
    solution = solve(Problem(pipeline, 1000))
    assert (solution.latency_us, solution.lower_bound_us, solution.relative_gap) == (0.0, 0.0, 0.0)
    assert solution.status is Status.OPTIMAL
