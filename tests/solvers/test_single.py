"""One fragment: always itself, or a refusal that names the limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import Infeasible, StrategyDeclined
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from solvers import solve
from solvers.contract import Deadline, SolveOptions
from solvers.heuristics.constant import run_single

PLAIN = pipeline_of_lines([("a", 1.0, 2.0), ("b", 3.0, 4.0)])


@given(
    st.integers(1, 2**48),
    st.sampled_from([1, 7, 2**40]),
    st.sampled_from([None, 1000, 2**40]),
    st.sampled_from([1, 64]),
)
def test_the_whole_message_or_a_reason(
    size: int, minimum: int, maximum: int | None, unit: int
) -> None:
    """A least size above the message and an alignment do not forbid one fragment."""
    problem = Problem(PLAIN, size, FragmentLimits(minimum, maximum, unit))
    if maximum is None or size <= maximum:
        candidate = run_single(problem, SolveOptions(), Deadline.after(10.0))
        assert candidate.fragment_bytes == (size,)
        assert problem.admits(candidate.fragment_bytes)
    else:
        with pytest.raises((StrategyDeclined, Infeasible), match="max_fragment_bytes"):
            run_single(problem, SolveOptions(), Deadline.after(10.0))


def test_every_stage_takes_its_own_range() -> None:
    """Latency is the sum of the stage times at the message's size."""
    wire = Stage("wire", (FitRange(1.0, 1000.0, 99), FitRange(5.0, 2000.0)))
    pipeline = Pipeline((wire, Stage.of_line("copy", overhead_us=2.0, ns_per_byte=500.0)), 7.0)
    assert solve(Problem(pipeline, 99), "single").latency_us == 1.0 + 99.0 + 2.0 + 49.5 + 7.0
    assert solve(Problem(pipeline, 100), "single").latency_us == 5.0 + 200.0 + 2.0 + 50.0 + 7.0


def test_with_one_stage_a_single_fragment_is_proven_optimal() -> None:
    """Splitting a message in one stage only adds overheads."""
    solution = solve(Problem(pipeline_of_lines([("only", 2.0, 3.0)]), 5000), "single")
    assert solution.status.value == "optimal"
