"""The integer optimum: equal to trying every cut, and a clear answer at its time limit."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import solvers
from bench.reference.integer_optimum import MAX_CELLS, IntegerStatus, integer_optimum
from bench.reference.integer_scaled import Piece, Scaling, scaled
from bench.reference.integer_search import CountToTry, Report, search
from domain.errors import Infeasible, InvalidInput, StrategyDeclined
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from tests.solvers.integer_cases import small_problems
from tests.solvers.ranged_pipelines import Rule, best_of_every_cut, random_problems
from tests.support.counts import count

GENEROUS_S = 60.0
# In this one the rounded cut is not proven without the integer program.
HARD = Problem(pipeline_of_lines([("a", 1.3, 2.1), ("b", 0.4, 3.7), ("c", 0.9, 1.6)]), 753)
# And here that takes half a minute.
STUBBORN = Problem(
    pipeline_of_lines(
        [
            ("a", 0.0019229278052044954, 0.5977410091831884),
            ("b", 0.0076675587643699630, 2.3805111273880266),
            ("c", 0.0028423071559613646, 1.8222642112906642),
            ("d", 0.0103163910222940510, 1.2172228657807045),
            ("e", 0.0004617360726350709, 1.6952753303776311),
        ]
    ),
    2000,
    FragmentLimits(max_fragments=40),
)
NOT_UNIMODAL = Problem(
    pipeline_of_lines([("a", 0.0, 3000.0), ("b", 2.0, 4000.0), ("c", 3.0, 3000.0)]), 5
)


# ---- the optimum --------------------------------------------------------------------------------


@pytest.mark.parametrize(("fragments", "best_us"), [(1, 55), (2, 42), (3, 38), (4, 40), (5, 39)])
def test_whole_bytes_are_not_unimodal_in_the_count(fragments: int, best_us: float) -> None:
    """Results sec. 2: 55, 42, 38, 40, 39."""
    found = integer_optimum(NOT_UNIMODAL, time_limit_s=GENEROUS_S, fragments=fragments)
    assert found.status is IntegerStatus.PROVEN
    assert found.latency_us == pytest.approx(best_us, rel=1e-12)
    assert len(found.fragment_bytes) == fragments


def test_the_best_count_is_found() -> None:
    """Over all counts: three fragments, 38 µs, and the delay on top of both sides."""
    delayed = replace(NOT_UNIMODAL, pipeline=replace(NOT_UNIMODAL.pipeline, delay_us=7.0))
    found = integer_optimum(delayed, time_limit_s=GENEROUS_S)
    assert found.status is IntegerStatus.PROVEN
    assert found.latency_us == pytest.approx(45.0, rel=1e-12)
    assert found.lower_bound_us == pytest.approx(45.0, rel=1e-9)
    assert len(found.fragment_bytes) == 3


def tiny_problems(number: int, *, seed: int) -> list[Problem]:
    """At most 14 bytes and 4 stages: ranges, alignment, least and greatest sizes."""
    rng = np.random.default_rng(seed)
    rule = Rule(stages=(1, 4), message_bytes=(2, 14))
    aligned = []
    for one in random_problems(number, seed=seed, rule=rule):
        limits = replace(one.limits, alignment_bytes=int(rng.choice([1, 1, 2, 3])))
        aligned.append(replace(one, limits=limits))
    return aligned


def every_optimum(problem: Problem) -> dict[int, float]:
    """The least latency for each count that the limits admit; none where they clash."""
    try:
        return best_of_every_cut(problem)
    except Infeasible:
        return {}


@pytest.mark.parametrize("problem", tiny_problems(count(1000), seed=41))
def test_the_program_finds_what_trying_every_cut_finds(problem: Problem) -> None:
    """Each count by itself, from a known latency far above: the program alone does the work."""
    for fragments, best_us in every_optimum(problem).items():
        known_us = 1.5 * best_us + 1e-3
        scaling = Scaling.of(problem, known_us)
        steps = scaling.steps(known_us)
        reports: list[Report] = []
        search(
            scaled(problem, scaling, known_steps=steps),
            [CountToTry(fragments, None)],
            known_steps=steps,
            tolerance=1e-9,
            until_s=time.monotonic() + GENEROUS_S,
            report=reports.append,
        )
        last = reports[-1]
        assert last.is_final
        assert last.sizes is not None
        cut = scaling.bytes_of(last.sizes)
        assert problem.admits(cut)
        assert latency_us(problem.pipeline, cut) == pytest.approx(best_us, rel=1e-9)
        bounds = [scaling.us(report.bound_steps) for report in reports]
        assert max(bounds) <= best_us * (1.0 + 1e-12)
        assert scaling.us(last.bound_steps) == pytest.approx(best_us, rel=1e-8)


@pytest.mark.parametrize("problem", tiny_problems(count(200), seed=43))
def test_the_answer_is_what_trying_every_cut_finds(problem: Problem) -> None:
    """Over all counts, by the door, bound and status included."""
    best = every_optimum(problem)
    if not best:
        with pytest.raises(Infeasible):
            integer_optimum(problem, time_limit_s=GENEROUS_S)
        return
    found = integer_optimum(problem, time_limit_s=GENEROUS_S)
    assert found.status is IntegerStatus.PROVEN
    assert problem.admits(found.fragment_bytes)
    assert found.latency_us == pytest.approx(min(best.values()), rel=1e-9)
    assert found.lower_bound_us <= min(best.values()) * (1.0 + 1e-12)


def rounding_loss_us(problem: Problem) -> float:
    """What rounding to the alignment may add (theory sec. 6)."""
    cost = np.array([stage.ranges[0].ns_per_byte for stage in problem.pipeline.stages]) / 1000.0
    nearest = cost.sum() - (cost[0] + cost[-1]) / 2.0
    unit = problem.limits.alignment_bytes
    return float(unit * min(cost[1:].sum(), cost[:-1].sum(), nearest))


@pytest.mark.parametrize("problem", list(small_problems(count(600), seed=47)))
def test_auto_lies_between_the_optimum_and_the_rounding_lemma(problem: Problem) -> None:
    """Bound <= integer optimum <= auto's whole bytes <= bound + what rounding may add."""
    auto = solvers.solve(problem, relative_gap=0.0)
    found = integer_optimum(problem, time_limit_s=GENEROUS_S)
    assert found.status is IntegerStatus.PROVEN
    assert problem.admits(found.fragment_bytes)
    assert auto.lower_bound_us <= found.latency_us * (1.0 + 1e-12)
    assert found.lower_bound_us <= found.latency_us <= auto.latency_us
    assert auto.latency_us <= auto.lower_bound_us * (1.0 + 1e-8) + rounding_loss_us(problem)


# ---- the scaled problem -------------------------------------------------------------------------


def test_scaled_costs_are_never_above_the_true_ones() -> None:
    """And below by less than 1 + u steps; the last fragment carries what alignment leaves."""
    pipeline = Pipeline(
        (
            Stage("a", (FitRange(0.1, 0.7, 50), FitRange(3.3, 0.01, None))),
            Stage("b", (FitRange(1e-7, 1e3, 33), FitRange(0.0, 0.0, None))),
        )
    )
    problem = Problem(pipeline, 107, FragmentLimits(5, 90, 4))
    scaling = Scaling.of(problem, 500.0)
    whole = scaled(problem, scaling, known_steps=scaling.steps(500.0))
    assert (whole.units, scaling.rest_bytes) == (26, 3)
    for pieces, rest in ((whole.inner, 0), (whole.last, 3)):
        assert covered(pieces) == list(range(2 - rest // 3, (90 - rest) // 4 + 1))
        for piece in pieces:
            for units in range(piece.minimum, piece.maximum + 1):
                assert_just_below(pipeline, piece, units, 4 * units + rest, scaling)


def covered(pieces: tuple[Piece, ...]) -> list[int]:
    """All sizes of these pieces, in units."""
    assert all(one.maximum < other.minimum for one, other in pairwise(pieces))
    return [units for piece in pieces for units in range(piece.minimum, piece.maximum + 1)]


def assert_just_below(
    pipeline: Pipeline, piece: Piece, units: int, size: int, scaling: Scaling
) -> None:
    """The steps of one fragment in every stage against the exact product."""
    for stage, (overhead, cost) in zip(pipeline.stages, piece.lines, strict=True):
        part = stage.range_at(size)
        true_us = Fraction(part.overhead_us) + Fraction(part.ns_per_byte) * size / 1000
        true = true_us * scaling.steps_per_us
        assert true - 1 - units < overhead + cost * units <= true


def test_sizes_that_no_fast_cut_can_have_are_left_out() -> None:
    """A fragment that alone takes longer than the known cut is in no better one."""
    problem = Problem(pipeline_of_lines([("a", 1.0, 1e9), ("b", 2.0, 1e9)]), 1000)
    scaling = Scaling.of(problem, 2e7)
    whole = scaled(problem, scaling, known_steps=scaling.steps(2e7))
    assert covered(whole.inner) == list(range(1, 10))
    assert scaled(problem, scaling, known_steps=scaling.steps(2.0)).inner == ()


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e8])
def test_costs_of_any_scale_fit_the_solver(scale: float) -> None:
    """Tiny and huge costs, and a stage that costs nothing, are proven all the same."""
    rows = [("a", 3.0 * scale, 2.0 * scale), ("b", 0.0, 0.0), ("c", 1e-4 * scale, 7.0 * scale)]
    problem = Problem(pipeline_of_lines(rows), 300, FragmentLimits(max_fragments=6))
    assert integer_optimum(problem, time_limit_s=GENEROUS_S).status is IntegerStatus.PROVEN


def test_costs_of_nothing_take_no_time() -> None:
    """Zeros everywhere: 0 µs is proven without a division by it."""
    problem = Problem(pipeline_of_lines([("a", 0.0, 0.0), ("b", 0.0, 0.0)]), 50)
    found = integer_optimum(problem, time_limit_s=GENEROUS_S)
    assert (found.latency_us, found.status) == (0.0, IntegerStatus.PROVEN)


# ---- what is refused ----------------------------------------------------------------------------


def test_what_is_too_large_is_refused() -> None:
    """A clear error names the rule."""
    problem = Problem(pipeline_of_lines([("s", 1e-3, 3.0)] * 8), 400)
    with pytest.raises(StrategyDeclined, match=f"at most {MAX_CELLS}") as refused:
        integer_optimum(problem, time_limit_s=GENEROUS_S)
    assert refused.value.field == "message_bytes"


def test_bad_arguments_are_named() -> None:
    """Time, count, and stages that may cut differently."""
    for arguments, field in (
        ({"time_limit_s": 0.0}, "time_limit_s"),
        ({"time_limit_s": float("nan")}, "time_limit_s"),
        ({"fragments": 6}, "fragments"),
    ):
        with pytest.raises(InvalidInput) as refused:
            integer_optimum(NOT_UNIMODAL, **{"time_limit_s": 1.0, **arguments})  # type: ignore[arg-type]
        assert refused.value.field == field
    with pytest.raises(StrategyDeclined):
        integer_optimum(replace(NOT_UNIMODAL, allow_refragmentation=True), time_limit_s=1.0)


# ---- hard ones ----------------------------------------------------------------------------------


def test_what_rounding_leaves_open_is_proven() -> None:
    """The rounded cut alone is not; the program finds the best one, or that there is no better."""
    auto = solvers.solve(HARD, relative_gap=0.0)
    found = integer_optimum(HARD, time_limit_s=GENEROUS_S)
    assert found.status is IntegerStatus.PROVEN
    assert HARD.admits(found.fragment_bytes)
    assert auto.lower_bound_us * (1.0 - 1e-8) <= found.lower_bound_us
    assert found.latency_us <= auto.latency_us


def test_at_its_time_limit_the_program_gives_what_it_has() -> None:
    """The bound is no worse than that in real sizes."""
    found = integer_optimum(STUBBORN, time_limit_s=2.0)
    auto = solvers.solve(STUBBORN, relative_gap=0.0)
    assert found.status is IntegerStatus.LIMIT
    assert STUBBORN.admits(found.fragment_bytes)
    assert auto.lower_bound_us * (1.0 - 1e-8) <= found.lower_bound_us
    assert found.lower_bound_us < found.latency_us <= auto.latency_us
