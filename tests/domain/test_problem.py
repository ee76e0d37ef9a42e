"""Limits on fragments, and which numbers of fragments they admit."""

import pickle
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.aggregate import Aggregate
from domain.errors import Infeasible, InvalidInput, InvalidLimits
from domain.machine import Machine, StageRules, Window
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import AggregateProblem, FragmentLimits, MachineProblem, Problem

PIPELINE = pipeline_of_lines([("a", 1.0, 1.0), ("b", 2.0, 1.0)])


def admitted_counts(size: int, minimum: int, maximum: int, unit: int) -> set[int]:
    """Every number of fragments some cut has, by trying all cuts (the contract's own words)."""
    if size < minimum:
        return {1} if size <= maximum else set()
    counts: set[int] = set()

    def extend(rest: int, count: int) -> None:
        if minimum <= rest <= maximum:
            counts.add(count + 1)
        for part in range(unit, min(maximum, rest - 1) + 1, unit):
            if part >= minimum:
                extend(rest - part, count + 1)

    extend(size, 0)
    return counts


@given(st.integers(1, 13), st.integers(1, 6), st.none() | st.integers(1, 12), st.integers(1, 4))
def test_the_admitted_counts_are_those_of_all_cuts(
    size: int, minimum: int, maximum: int | None, unit: int
) -> None:
    """count_range is a closed form; brute force over every cut must agree."""
    problem = Problem(PIPELINE, size, FragmentLimits(minimum, maximum, unit))
    expected = admitted_counts(size, minimum, maximum or size, unit)
    if not expected:
        with pytest.raises(Infeasible, match="min_fragment_bytes"):
            problem.count_range()
        return
    counts = problem.count_range()
    assert set(range(counts.minimum, counts.maximum + 1)) == expected


def test_the_cap_that_binds_is_named() -> None:
    """The greatest count says which of the three caps set it."""
    assert Problem(PIPELINE, 100).count_range().capped_by == "min_fragment_bytes"
    limits = FragmentLimits(max_fragments=5)
    assert Problem(PIPELINE, 100, limits).count_range().capped_by == "max_fragments"
    assert Problem(PIPELINE, 100, fragment_cap=7).count_range().capped_by == "SLUICE_MAX_FRAGMENTS"


def test_a_cap_below_what_the_greatest_size_needs_is_infeasible() -> None:
    """The error names the two limits that clash."""
    limits = FragmentLimits(max_fragment_bytes=10, max_fragments=5)
    with pytest.raises(Infeasible, match=r"max_fragment_bytes 10 .* max_fragments allows 5"):
        Problem(PIPELINE, 100, limits).count_range()


def test_a_message_below_the_least_size_is_sent_whole() -> None:
    """The one exception to the least size."""
    problem = Problem(PIPELINE, 3, FragmentLimits(min_fragment_bytes=8))
    assert problem.count_range().maximum == 1
    assert problem.admits((3,))
    assert not problem.admits((1, 2))


@pytest.mark.parametrize("size", [0, -1, 2**48 + 1, 1.5, True])
def test_a_message_size_outside_its_range_is_refused(size: object) -> None:
    """1 to 2^48, whole."""
    with pytest.raises(InvalidInput, match="message_bytes"):
        Problem(PIPELINE, size)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["min_fragment_bytes", "alignment_bytes", "max_fragments"])
def test_a_limit_below_one_is_refused(name: str) -> None:
    """Every limit is a whole number from 1, and the error names it."""
    with pytest.raises(InvalidLimits, match=name):
        FragmentLimits(**{name: 0})


def test_only_the_last_fragment_may_break_the_alignment() -> None:
    """The last one in sending order carries the rest."""
    problem = Problem(PIPELINE, 21, FragmentLimits(alignment_bytes=8))
    assert problem.admits((8, 8, 5))
    assert not problem.admits((8, 5, 8))
    assert not problem.admits((8, 8))


def test_identical_questions_have_one_digest_and_others_have_another() -> None:
    """The digest covers everything an answer depends on."""
    base = Problem(PIPELINE, 100)
    others = [
        Problem(PIPELINE, 101),
        Problem(PIPELINE, 100, FragmentLimits(alignment_bytes=2)),
        Problem(PIPELINE, 100, fragment_cap=9),
        Problem(PIPELINE, 100, allow_refragmentation=True),
        Problem(pipeline_of_lines([("a", 1.0, 1.0), ("b", 2.0, 1.0)], delay_us=1.0), 100),
        Problem(pipeline_of_lines([("a", 1.0, 1.0), ("c", 2.0, 1.0)]), 100),
    ]
    assert Problem(PIPELINE, 100).digest() == base.digest()
    assert len({problem.digest() for problem in [base, *others]}) == 1 + len(others)


def test_plain_questions_have_the_digests_that_are_stored() -> None:
    """Of a pipeline with everything that one may have, and of an aggregate."""
    line = Stage("a", (FitRange(1.5, 2.0),))
    ranges = Stage("b", (FitRange(1.0, 0.5, 4096), FitRange(2.0, 0.25)), 64)
    slowest = Stage("b", (FitRange(1.0, 1.0),))
    assert Problem(Pipeline((line, ranges), 3.0), 4096).digest() == (
        "96c5f04ca7857f0a4c58378b6f5e6d662693af9d626160fbf2829f88bdf36d2e"
    )
    assert AggregateProblem(Aggregate(line, slowest, 3.0), 4096).digest() == (
        "bab26915503211b45b845f23b08caa114f0463d437e263dfd9920a0a241d7370"
    )


def test_every_word_of_a_machine_is_in_its_digest() -> None:
    """Two machines that differ by one word are two questions, and neither is the plain one."""
    costs = pipeline_of_lines([("a", 1.0, 1.0), ("b", 2.0, 1.0), ("c", 1.0, 2.0)])
    plain, window = StageRules(), Window(0, 1, 2)
    lanes, both = (StageRules(2), plain, plain), StageRules(processor="p")
    machines = [
        Machine(costs, lanes),
        Machine(costs, (StageRules(3), plain, plain)),
        Machine(costs, (plain, StageRules(2), plain)),
        Machine(costs, (StageRules(2, 0.5), plain, plain)),
        Machine(costs, (StageRules(2, 0.0, 1.0), plain, plain)),
        Machine(costs, (both, both, plain)),
        Machine(costs, (both, plain, both)),
        Machine(costs, (StageRules(processor="q"), plain, StageRules(processor="q"))),
        Machine(costs, lanes, (window,)),
        Machine(costs, lanes, (window, window)),
        Machine(costs, lanes, (Window(0, 2, 2),)),
        Machine(costs, lanes, (Window(1, 1, 2),)),
        Machine(costs, lanes, (Window(0, 1, 3),)),
        Machine(costs, lanes, (Window(0, 1, None, 2),)),
        Machine(costs, lanes, (Window(0, 1, 2, 2),)),
        Machine(costs, lanes, (Window(0, 1, 2, None, 1.0),)),
    ]
    digests = {MachineProblem(machine, 100).digest() for machine in machines}
    assert len(digests | {Problem(costs, 100).digest()}) == len(machines) + 1
    assert MachineProblem(Machine(costs, lanes), 100).digest() in digests


def test_a_window_of_bytes_bounds_the_fragments() -> None:
    """The least of them, and it is named where no cut is left."""
    costs = pipeline_of_lines([("a", 1.0, 1.0)])
    windows = Window(0, 0, bytes=40), Window(0, 0, bytes=30)
    machine = Machine(costs, (StageRules(),), windows)
    problem = MachineProblem(machine, 100)
    assert problem.largest_fragment_bytes == 30
    assert problem.count_range().minimum == 4
    assert not problem.admits((40, 30, 30))
    with pytest.raises(Infeasible, match="min_fragment_bytes 31 and a window of 30 bytes"):
        MachineProblem(machine, 100, FragmentLimits(min_fragment_bytes=31)).count_range()


# ---- what follows from a problem -----------------------------------------------------------------


def test_what_follows_is_computed_once_and_not_kept_elsewhere() -> None:
    """Equal, hashed, copied and pickled by its fields alone."""
    pipeline = pipeline_of_lines([("a", 1.0, 2.0), ("b", 3.0, 4.0)])
    problem, calls = Problem(pipeline, 4096), []

    def count(one: Problem) -> int:
        calls.append(one)
        return len(one.pipeline)

    assert (problem.derived(count), problem.derived(count)) == (2, 2)
    assert calls == [problem]
    assert problem.count_range() is problem.count_range()
    fresh = Problem(pipeline, 4096)
    assert problem == fresh
    assert hash(problem) == hash(fresh)
    assert pickle.dumps(problem) == pickle.dumps(fresh)
    other = pickle.loads(pickle.dumps(problem))
    assert other == problem
    assert other.derived(count) == 2
    assert len(calls) == 2
    with pytest.raises(FrozenInstanceError):
        problem.message_bytes = 1  # type: ignore[misc]
