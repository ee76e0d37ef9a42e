"""What every repeated size takes, against the evaluator; what is round, and what is admitted."""

from __future__ import annotations

import pytest

import solvers
from analysis.size_curve import SizeCurve, SizePoint, choose_size, preferred, size_curve
from domain.aggregate import Aggregate
from domain.errors import StrategyDeclined
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, problem_of
from domain.uncertain_answer import RoundRule
from solvers.kernels import active

STAGING = pipeline_of_lines(
    [("to host", 9.15, 0.02428), ("network", 2.8, 0.0204), ("to device", 9.15, 0.02428)]
)
LINES = (("line", 3.0, 0.5), ("slow", 1.0, 0.9))


def curve(
    pipeline: Pipeline | Aggregate, message: int, *also: int, **limits: int | None
) -> SizeCurve:
    """The curve of a message within limits."""
    return size_curve(problem_of(pipeline, message, FragmentLimits(**limits)), also=also)  # type: ignore[arg-type]


@pytest.mark.parametrize("message", [1, 7, 4096, 1_000_003, 2**24])
@pytest.mark.parametrize("pipeline", [STAGING, pipeline_of_lines(LINES)], ids=["three", "two"])
def test_each_point_is_what_the_evaluator_says(pipeline: Pipeline, message: int) -> None:
    """Sizes ascend, one piece is the last, and none that was tried is faster than the best."""
    found, evaluator = curve(pipeline, message), solvers.evaluator_of(pipeline)
    sizes = [one.size_bytes for one in found.points]
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == message
    for one in (*found.points[:: max(1, len(sizes) // 20)], found.best, found.recommended):
        full, rest = divmod(message, one.size_bytes)
        cut = [one.size_bytes] * full + [rest] * (rest > 0)
        assert one.fragments == len(cut)
        assert one.latency_us == pytest.approx(evaluator(cut), rel=1e-10)
        assert one.latency_us >= found.best.latency_us * (1.0 - 1e-12)


def test_the_round_size_costs_little() -> None:
    """2 MiB instead of 1.778 MiB: within half a per cent of the best, which repeats 9 fragments."""
    found = curve(STAGING, 2**24)
    best = solvers.solve(problem_of(STAGING, 2**24, FragmentLimits()), strategy="repeat")
    assert found.best.latency_us == pytest.approx(best.latency_us, rel=1e-9)
    assert found.recommended.size_bytes == 2**21
    assert found.recommended.latency_us <= 1.005 * found.best.latency_us
    assert {one.within for one in found.good} == {0.01, 0.02, 0.05}


@pytest.mark.parametrize("is_native", [True, False])
def test_of_sizes_that_are_as_fast_the_roundest_is_recommended(
    monkeypatch: pytest.MonkeyPatch, *, is_native: bool
) -> None:
    """From 49 MiB on a GiB has 21 parts, whichever size they have; a power of two has 32."""
    if not is_native:
        monkeypatch.setattr(active, "NATIVE", None)
    upload = pipeline_of_lines([("PUT part", 97_948.0, 7.161)])
    found = curve(upload, 2**30, min_fragment_bytes=5 * 2**20, max_fragment_bytes=50 * 2**20)
    assert found.recommended.size_bytes == 50 * 2**20
    assert found.recommended.latency_us == pytest.approx(found.best.latency_us, rel=1e-9)
    assert found.round_sizes[0][0].rule is RoundRule.MEBIBYTE
    pages = [one.size_bytes for one, _ in found.round_sizes if one.rule is RoundRule.PAGE]
    assert not pages  # the best of these is a multiple of 1 MiB, and listed as such


@pytest.mark.parametrize("message", [2_090 * 5, 2_099 * 40, 2_100 * 900])
def test_what_is_repeated_is_within_2_percent_of_the_best(message: int) -> None:
    """Where costs jump between round sizes these are slow: the best size is recommended then."""
    link = Stage("link", (FitRange(1.0, 0.1, 2_100), FitRange(90_000.0, 0.1)))
    pipeline = Pipeline((link, Stage.of_line("copy", overhead_us=1.0, ns_per_byte=0.02)))
    found = curve(pipeline, message, min_fragment_bytes=2_050)
    problem = problem_of(pipeline, message, FragmentLimits(2_050))
    choice = choose_size(problem, None, current_bytes=None)
    assert choice is not None
    assert choice.chosen == found.recommended
    assert found.round_sizes[0][0].regret_mean > 0.02
    assert found.recommended.latency_us <= 1.02 * found.best.latency_us


@pytest.mark.parametrize(
    ("gain", "decision", "misfit", "is_changed"),
    [
        (0.02, "", 0.0, True),
        (0.01, "", 0.0, False),
        (0.02, "", 0.3, False),  # as much as the model is known to be wrong by
        (0.31, "", 0.3, True),
        (0.001, "measure_first", 0.0, True),
        (-0.001, "measure_first", 0.0, False),
        (-0.001, "set_it", 0.3, True),  # what was measured counts in the draws
        (-0.001, "keep_yours", 0.0, False),
    ],
)
def test_todays_size_stays_where_too_little_is_gained(
    gain: float, decision: str, misfit: float, *, is_changed: bool
) -> None:
    today, wanted = SizePoint(8192, 290, 100.0), SizePoint(12288, 194, 100.0 * (1.0 - gain))
    found = preferred(wanted, today, decision, misfit=misfit)
    assert (found is wanted) == is_changed
    assert preferred(wanted, None, decision, misfit=misfit) is wanted


def test_limits_are_kept() -> None:
    """Every point, and what was asked for: None where the limits do not admit it."""
    found = curve(STAGING, 2**20, 65536, 100_000, 2**21, alignment_bytes=4096, max_fragments=64)
    assert all(one.size_bytes % 4096 == 0 for one in found.points[:-1])
    assert all(one.fragments <= 64 for one in found.points)
    known = [None if one is None else one.size_bytes for one in found.asked]
    assert known == [65536, None, 2**20]


def test_an_aggregate_has_one_too() -> None:
    """Of its bound for equal fragments."""
    total = Stage.of_line("all", overhead_us=27.3, ns_per_byte=63.0)
    aggregate = Aggregate(total, Stage.of_line("worst", overhead_us=7.5, ns_per_byte=24.3))
    found = curve(aggregate, 65536)
    size = found.best.size_bytes
    full, rest = divmod(65536, size)
    assert found.best.latency_us == pytest.approx(
        aggregate.latency_us([size] * full + [rest] * (rest > 0)), rel=1e-12
    )


def test_no_size_can_be_repeated() -> None:
    """The remainder would be smaller than a fragment may be."""
    with pytest.raises(StrategyDeclined):
        curve(STAGING, 13, min_fragment_bytes=4, max_fragment_bytes=5)
