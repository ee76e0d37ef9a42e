"""The search over the number of fragments: its bound, its end, and what it leaves out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.pipeline import Pipeline, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from solvers.bounds import closed_form_us
from solvers.contract import Deadline
from solvers.exact import structured
from solvers.exact.count_search import CountSearch, _last_that_could_win
from solvers.exact.lp.lines import solve_count
from solvers.kernels.native import Choice
from solvers.line_problem import LineProblem
from tests.support.counts import count
from tests.support.kernels import computed_by

costs = st.one_of(st.just(0.0), st.floats(1e-2, 50.0))
pipelines = st.lists(st.tuples(st.just("s"), costs, costs), min_size=1, max_size=6).map(
    pipeline_of_lines
)


def searched(problem: Problem, near: int) -> CountSearch:
    """A search run to its end."""
    lines = LineProblem.of(problem)
    assert lines is not None
    search = CountSearch.start(problem, lines)
    search.run(near=near, relative_gap=1e-6, deadline=Deadline.after(60.0))
    return search


@settings(max_examples=count(1000))
@given(pipelines, st.integers(1, 600), st.integers(1, 30), st.sampled_from([1, 3, 20]))
def test_the_search_finds_the_best_of_all_counts(
    pipeline: Pipeline, size: int, near: int, minimum: int
) -> None:
    """Every admitted count solved one by one gives the same optimum; the bound is below all."""
    problem = Problem(pipeline, size, FragmentLimits(minimum, max_fragments=30))
    search = searched(problem, near)
    counts = range(search.lines.k_min, search.lines.k_max + 1)
    assert isinstance(search.lines, LineProblem)
    every = [solve_count(search.lines, k, Deadline.after(60.0)).upper_us for k in counts]
    assert search.unrounded_us == pytest.approx(min(every), rel=2e-6, abs=1e-12)
    assert search.bound_us <= min(every) * (1 + 1e-12)
    assert search.is_proven(1e-6)
    assert (search.lower <= np.array(every) * (1 + 1e-9) + 1e-12).all()


def test_few_solves_are_needed() -> None:
    """Bisection, not enumeration: 1 MiB on Myrinet admits 100 000 counts."""
    kib = 1000.0 / 1024.0
    myrinet = pipeline_of_lines(
        [
            ("a", 7.2, 7.2 * kib),
            ("b", 5.2, 24.9 * kib),
            ("c", 7.5, 24.9 * kib),
            ("d", 7.4, 7.9 * kib),
        ]
    )
    search = searched(Problem(myrinet, 1 << 20), near=75)
    assert search.lines.k_max == 100_000
    assert search.best.k == 69
    assert len(search.solved) <= 20


def test_free_splitting_ends_at_the_infimum_or_at_the_cap() -> None:
    """With all overheads zero more fragments never hurt; the answer says what stopped it."""
    even = pipeline_of_lines([("a", 0.0, 1.0), ("b", 0.0, 1.0)])
    search = searched(Problem(even, 1000, FragmentLimits(max_fragments=50)), near=50)
    assert search.best.k == 50
    assert search.more_could_win()
    assert search.unrounded_us == pytest.approx(1.0 + 1.0 / 50)


def test_a_positive_overhead_makes_the_best_count_stand_by_itself() -> None:
    """One more fragment cannot win where one fragment is already best."""
    slow = pipeline_of_lines([("a", 100.0, 1.0), ("b", 100.0, 1.0)])
    search = searched(Problem(slow, 1, FragmentLimits()), near=1)
    assert search.best.k == 1
    assert not search.more_could_win()


@pytest.mark.parametrize("kernels", ["native", "numpy"])
@given(pipelines, st.integers(20, 600), st.sampled_from([None, 7, 40]))
@pytest.mark.usefixtures("native_kernels")
def test_counts_left_out_for_a_known_cut_cannot_win(
    kernels: Choice, pipeline: Pipeline, size: int, maximum: int | None
) -> None:
    """The closed form never falls after the first count: what is left out lies above the cut."""
    problem = Problem(pipeline, size, FragmentLimits(max_fragment_bytes=maximum))
    lines = LineProblem.of(problem)
    assert lines is not None
    counts = np.arange(lines.k_min, lines.k_max + 1)
    bounds = closed_form_us(problem, counts)
    assert (np.diff(bounds[1:]) >= -1e-12 * bounds.max()).all()
    known = float(bounds[len(bounds) // 2])
    with computed_by(kernels):
        last = _last_that_could_win(problem, lines, known, near=1, worth_bisecting=0)
    assert (bounds[last - lines.k_min + 1 :] > known * (1.0 - 1e-12)).all()
    assert last == lines.k_max or last >= counts[len(bounds) // 2]


def test_flat_pipelines_jump_to_their_best_count() -> None:
    """Stages that differ by a part in a thousand want 8000 fragments: the slopes say how far.

    The counts around it, solved by themselves, are no better; doubling took 22 solves.
    """
    flat = pipeline_of_lines([("s", 1e-4, 10.0 + 0.01 * j) for j in range(8)])
    search = searched(Problem(flat, 4 << 20), near=256)
    assert search.is_proven(1e-6)
    assert len(search.solved) <= 6
    assert isinstance(search.lines, LineProblem)
    for k in (search.best.k - 1500, search.best.k + 1500):
        other = structured.solve_count(search.lines, k, Deadline.after(60.0))
        assert search.bound_us <= other.upper_us
        assert search.unrounded_us < other.lower_us
