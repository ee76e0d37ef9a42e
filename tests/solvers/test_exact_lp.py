"""One linear program, three statements: ours for GLOP, PuLP's for CBC, the tests' for HiGHS."""

from dataclasses import replace

import numpy as np
import pytest

from bench.reference.pulp_model import solve_reference
from domain.problem import FragmentLimits, Problem
from solvers.contract import Deadline
from solvers.exact.lp.lines import CountResult, solve_count
from solvers.exact.lp.reduced_dual import reduced_dual
from solvers.line_problem import LineProblem
from tests.solvers.pipelines import Case, random_cases
from tests.solvers.reference_lp import optimum_us


def lines_of(case: Case, limits: FragmentLimits | None = None) -> LineProblem:
    """The relaxation of a case."""
    lines = LineProblem.of(Problem(case.pipeline, case.message_bytes, limits or FragmentLimits()))
    assert lines is not None
    return lines


def solved(lines: LineProblem, k: int) -> CountResult:
    """The default engine's result."""
    return solve_count(lines, k, Deadline.after(60.0))


@pytest.mark.parametrize("index", range(12))
def test_the_reference_model_has_the_same_optimum(index: int) -> None:
    """PuLP with CBC, at three counts."""
    case = list(random_cases(12, seed=7))[index]
    for k in (1, 2, 9):
        reference = solve_reference(lines_of(case), k)
        assert reference.proven
        assert sum(reference.x) == pytest.approx(case.message_bytes)
        assert solved(lines_of(case), k).upper_us == pytest.approx(reference.latency_us, rel=1e-6)


def test_arbitrary_counts_least_and_greatest_sizes() -> None:
    """Certified on both sides, and equal to the independent program."""
    rng = np.random.default_rng(3)
    for case in random_cases(60, seed=11):
        k = int(rng.integers(2, 40))
        minimum = float(rng.choice([1.0, case.message_bytes / k / 3]))
        maximum = float(rng.choice([case.message_bytes, case.message_bytes / k * 1.4]))
        lines = replace(lines_of(case), m=minimum, M=maximum)
        result = solved(lines, k)
        expected = optimum_us(
            case.pipeline, case.message_bytes, k, minimum=minimum, maximum=maximum
        )
        assert result.upper_us == pytest.approx(expected, rel=1e-7)
        assert result.lower_us <= result.upper_us
        assert result.lower_us == pytest.approx(expected, rel=1e-7)
        assert result.x.sum() == pytest.approx(case.message_bytes, rel=1e-12)
        assert result.x.min() >= minimum * (1 - 1e-9)
        assert result.x.max() <= maximum * (1 + 1e-9)
        assert result.upper_us == pytest.approx(lines.latency_us(result.x), rel=1e-15)


def test_the_model_has_the_rows_that_its_page_says() -> None:
    """2k-1 rows without order rows, one more for each that is asked for."""
    case = next(iter(random_cases(1, seed=5, stages=4)))
    none = (np.zeros(0, dtype=np.int64),) * 2
    assert reduced_dual(lines_of(case), 10, none).matrix.shape == (19, 37)
    one = (np.array([3]), np.array([2]))
    model = reduced_dual(lines_of(case), 10, one)
    assert model.matrix.shape == (20, 37)
    row = model.matrix[[19]].toarray().ravel()
    assert np.flatnonzero(row > 0).tolist() == [12, 13, 14]
    assert np.flatnonzero(row < 0).tolist() == [16, 17, 18]


def test_a_passed_deadline_still_gives_a_certified_pair() -> None:
    """Equal sizes and one stage's bound are there before any solve."""
    case = next(iter(random_cases(1, seed=9)))
    result = solve_count(lines_of(case), 12, Deadline.after(0.0))
    assert 0.0 < result.lower_us <= result.upper_us


def test_fragments_that_wait_in_front_of_a_stage_need_order_rows() -> None:
    """All costs 1, the last two overheads 1: the optimum starves the bottleneck on purpose."""
    lines = LineProblem(
        g=np.array([0.0, 0.0, 1.0, 1.0]), G=np.ones(4), B=40.0, m=0.0, M=40.0,
        k_min=1, k_max=40,
    )  # fmt: skip
    best = min((solved(lines, k).upper_us, k) for k in range(1, 30))
    assert best[0] == pytest.approx(59.385, abs=5e-4)
    assert best[1] == 13
