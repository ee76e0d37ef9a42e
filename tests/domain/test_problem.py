"""Limits on fragments, and which numbers of fragments they admit."""

import pickle
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import Infeasible, InvalidInput, InvalidLimits
from domain.pipeline import pipeline_of_lines
from domain.problem import FragmentLimits, Problem

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
