"""Where one path overtakes the other: against every size, published figures, and measured times."""

from __future__ import annotations

from itertools import groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.crossover import (
    Basis,
    CrossoverQuestion,
    Crossovers,
    Faster,
    Path,
    TimedSize,
    Verdict,
    faster_of,
    find_crossovers,
    notices_of,
)
from domain.aggregate import Aggregate
from domain.errors import InconsistentInput
from domain.model import CostModel
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.schedule import latency_us
from domain.uncertainty import KnownErrors, stated_model

LAST = 160  # sizes that are evaluated one by one

# openucx/ucx, pull request 5132: what one message takes by either protocol, µs and ns a byte.
EAGER = pipeline_of_lines([("eager", 0.82, 2.66)])
RENDEZVOUS = pipeline_of_lines([("rendezvous", 12.84, 0.0346)])
DEFAULT = 256 * 1024  # UCX's own threshold there


def asked(
    a: CostModel,
    b: CostModel,
    *,
    first: int = 1,
    last: int = 2**30,
    current: int | None = None,
    timed: tuple[dict[int, float], ...] = ({}, {}),
    errors: tuple[float | None, float | None] = (None, None),
    timed_error: float = 0.0,
) -> Crossovers:
    """What is found of two models, whose costs are known to these relative deviations."""
    paths = [
        Path(
            name=name,
            model=model,
            errors=None if error is None else KnownErrors(stated_model(model, error)),
            timed=tuple(TimedSize(size, us, timed_error * us) for size, us in times.items()),
        )
        for name, model, times, error in zip("ab", (a, b), timed, errors, strict=True)
    ]
    return find_crossovers(
        CrossoverQuestion(
            a=paths[0],
            b=paths[1],
            min_message_bytes=first,
            max_message_bytes=last,
            current_bytes=current,
        )
    )


def test_the_public_figures_of_ucx() -> None:
    """Eager and rendezvous cross at 4.6 KB; just below 256 KiB eager takes 32 times as long."""
    found = asked(EAGER, RENDEZVOUS, current=DEFAULT)
    assert found.verdict is Verdict.ONE
    (place,) = found.crossovers
    assert (place.before, place.after) == (Faster.PATH_A, Faster.PATH_B)
    assert f"{place.at_bytes / 1000:.1f} KB" == "4.6 KB"
    assert latency_us(EAGER, (place.at_bytes,)) > latency_us(RENDEZVOUS, (place.at_bytes,))
    before = (place.at_bytes - 1,)
    assert latency_us(EAGER, before) <= latency_us(RENDEZVOUS, before)
    assert found.advised is not None
    assert found.advised.threshold_bytes == place.at_bytes
    assert found.advised.wrong == ()
    assert found.current is not None
    assert found.current.wrong == ((place.at_bytes, DEFAULT - 1),)
    assert found.current.worst_bytes == DEFAULT - 1
    assert round(found.current.more_by + 1.0) == 32
    assert [one.code for one in notices_of(found)] == ["costs_taken_as_exact"]


# --- every size -----------------------------------------------------------------------------------

COSTS = st.integers(0, 12)
LINES = st.tuples(COSTS, COSTS)


@st.composite
def models(draw: st.DrawFn) -> CostModel:
    """Stages of up to three ranges, or a total and a bottleneck; whole µs, and µs a byte."""
    stages = draw(st.lists(_stages(), min_size=1, max_size=3))
    delay = draw(COSTS)
    if len(stages) == 2 and draw(st.booleans()):
        return Aggregate(stages[0], stages[1], delay)
    return Pipeline(tuple(stages), delay)


@st.composite
def _stages(draw: st.DrawFn) -> Stage:
    ends = sorted(draw(st.sets(st.integers(1, LAST + 9), max_size=2)))
    lines = draw(st.lists(LINES, min_size=len(ends) + 1, max_size=len(ends) + 1))
    parts = zip(lines, [*ends, None], strict=True)
    return Stage("stage", tuple(FitRange(10.0 * g, 1000.0 * G, end) for (g, G), end in parts))


def by_evaluation(a: CostModel, b: CostModel, sizes: range) -> list[tuple[Faster, int, int]]:
    """The runs, of every size priced by itself."""
    found = ((faster_of(a.latency_us((x,)), b.latency_us((x,))), x) for x in sizes)
    grouped = [
        (faster, [x for _, x in rows]) for faster, rows in groupby(found, lambda row: row[0])
    ]
    return [(faster, rows[0], rows[-1]) for faster, rows in grouped]


@given(a=models(), b=models(), first=st.integers(1, LAST), current=st.integers(1, LAST))
def test_runs_and_losses_are_those_of_every_size(
    a: CostModel, b: CostModel, first: int, current: int
) -> None:
    """Ties, jumps at the ends of ranges and kinks of aggregates among them."""
    found = asked(a, b, first=first, last=LAST, current=current)
    expected = by_evaluation(a, b, range(first, LAST + 1))
    assert [(run.faster, run.from_bytes, run.up_to_bytes) for run in found.runs] == expected
    strict = [run for run in expected if run[0] is not Faster.NEITHER]
    changes = [
        (before[0], after[0], after[1])
        for before, after in pairwise(strict)
        if before[0] is not after[0]
    ]
    assert [(one.before, one.after, one.at_bytes) for one in found.crossovers] == changes
    assert found.current is not None
    losses = [loss_at(a, b, size, current) for size in range(first, LAST + 1)]
    assert found.current.more_by == pytest.approx(max(losses))
    wrong = {x for low, high in found.current.wrong for x in range(low, high + 1)}
    assert wrong == {x for x, loss in enumerate(losses, first) if loss > 0.0}


def loss_at(a: CostModel, b: CostModel, size: int, threshold: int) -> float:
    """By which share the path of the threshold takes more than the faster one."""
    a_us, b_us = a.latency_us((size,)), b.latency_us((size,))
    if faster_of(a_us, b_us) is Faster.NEITHER:
        return 0.0
    taken, least = (a_us if size < threshold else b_us), min(a_us, b_us)
    if taken <= least:
        return 0.0
    return taken / least - 1.0 if least > 0.0 else float("inf")


@given(a=models(), b=models())
def test_no_change_is_advised_that_loses_more(a: CostModel, b: CostModel) -> None:
    """The threshold advised loses at its worst size no more than any other one does at its own."""
    found = asked(a, b, last=LAST)
    assert found.advised is not None
    for threshold in range(LAST + 2):
        worst = max(loss_at(a, b, size, threshold) for size in range(1, LAST + 1))
        assert found.advised.more_by <= worst or found.advised.more_by == pytest.approx(worst)


# --- what is said of it ---------------------------------------------------------------------------


def test_no_crossover() -> None:
    """One path is the faster one throughout; the threshold is then none, or nothing is below it."""
    slower = pipeline_of_lines([("slow", 20.0, 3.0)])
    found = asked(EAGER, slower)
    assert (found.verdict, found.crossovers) == (Verdict.NONE, ())
    assert found.advised is not None
    assert found.advised.threshold_bytes is None
    turned = asked(slower, EAGER)
    assert turned.advised is not None
    assert turned.advised.threshold_bytes == 0


def test_equal_paths() -> None:
    """Neither is faster, and nothing is lost by any threshold."""
    found = asked(EAGER, EAGER, current=DEFAULT)
    assert [run.faster for run in found.runs] == [Faster.NEITHER]
    assert found.verdict is Verdict.NONE
    assert found.current is not None
    assert found.current.more_by == 0.0


def test_several_are_all_listed() -> None:
    """With the path that is faster in each range; the threshold advised says what it loses."""
    stepped = Pipeline((Stage("b", (FitRange(12.84, 0.0346, 8192), FitRange(60.0, 0.0346))),))
    found = asked(EAGER, stepped)
    assert found.verdict is Verdict.SEVERAL
    assert [one.after for one in found.crossovers] == [Faster.PATH_B, Faster.PATH_A, Faster.PATH_B]
    assert [run.faster for run in found.runs] == [
        Faster.PATH_A,
        Faster.PATH_B,
        Faster.PATH_A,
        Faster.PATH_B,
    ]
    assert found.advised is not None
    assert found.advised.threshold_bytes in [one.at_bytes for one in found.crossovers]
    assert found.advised.more_by > 0.0


def test_paths_the_other_way_round_are_said() -> None:
    """A threshold has the first path below it."""
    found = asked(RENDEZVOUS, EAGER)
    assert [one.after for one in found.crossovers] == [Faster.PATH_A]
    assert "paths_swapped" in [one.code for one in notices_of(found)]


# --- how sure -------------------------------------------------------------------------------------


def test_the_interval_is_around_the_crossover() -> None:
    """And wider the less the costs are known; outside of it the draws agree."""
    widths = []
    for error in (0.02, 0.1):
        found = asked(EAGER, RENDEZVOUS, errors=(error, error), current=DEFAULT)
        assert found.verdict is Verdict.ONE
        (place,) = found.crossovers
        assert place.between_bytes is not None
        low, high = place.between_bytes
        assert low is not None
        assert high is not None
        assert low <= place.at_bytes <= high
        widths.append(high - low)
        assert found.current is not None
        assert found.current.more_by_within is not None
        least, most = found.current.more_by_within
        assert least <= found.current.more_by <= most
    assert widths[0] < widths[1]


def test_nothing_is_provable_where_the_errors_cover_all() -> None:
    """Both paths within each other's errors at every size: no threshold is advised."""
    a = pipeline_of_lines([("a", 10.0, 1.0)])
    b = pipeline_of_lines([("b", 10.5, 0.98)])
    found = asked(a, b, errors=(0.5, 0.5))
    assert found.verdict is Verdict.NOT_PROVABLE
    assert found.advised is None
    sure = [run.is_sure for run in found.runs if run.faster is not Faster.NEITHER]
    assert sure == [False, False]
    swapped = asked(b, a, errors=(0.5, 0.5))
    assert swapped.verdict is Verdict.NOT_PROVABLE
    assert [one.after for one in swapped.crossovers] == [Faster.PATH_A]
    assert "paths_swapped" not in [one.code for one in notices_of(swapped)]


def test_an_end_that_no_size_is_certain_on_is_open() -> None:
    """The slower path's lead is within the errors above the crossover."""
    a = pipeline_of_lines([("a", 1.0, 1.0)])
    b = pipeline_of_lines([("b", 50.0, 0.99)])
    found = asked(a, b, errors=(0.05, 0.05))
    (place,) = found.crossovers
    assert place.between_bytes is not None
    assert place.between_bytes[0] is not None
    assert place.between_bytes[1] is None


# --- what was measured ----------------------------------------------------------------------------


def test_measured_times_decide_between_their_sizes() -> None:
    """The costs cross at 4.6 KB; the files have the eager path ahead up to 64 KiB."""
    eager = {1024: 1.0, 16384: 9.0, 65536: 15.0, 262144: 90.0}
    rendezvous = {1024: 12.0, 16384: 13.0, 65536: 16.0, 262144: 22.0}
    found = asked(EAGER, RENDEZVOUS, timed=(eager, rendezvous), current=DEFAULT)
    (place,) = found.crossovers
    assert place.basis is Basis.MEASURED
    assert 65536 < place.at_bytes <= 262144
    assert place.between_bytes == (65537, 262144)
    assert found.overruled == (16384, 65536)
    assert "measured_decides" in [one.code for one in notices_of(found)]


def test_the_costs_say_where_between_two_measured_sizes() -> None:
    """Where they have the same path ahead at both."""
    sizes = (1024, 4096, 8192, 262144)
    times = tuple({x: one.latency_us((x,)) for x in sizes} for one in (EAGER, RENDEZVOUS))
    found = asked(EAGER, RENDEZVOUS, timed=times)
    by_costs = asked(EAGER, RENDEZVOUS)
    assert [one.at_bytes for one in found.crossovers] == [
        one.at_bytes for one in by_costs.crossovers
    ]
    assert found.crossovers[0].between_bytes == (4097, 8192)
    assert found.overruled == ()


def test_times_within_their_errors_decide_nothing() -> None:
    """The costs do, then."""
    times = ({16384: 13.0}, {16384: 13.4})
    found = asked(EAGER, RENDEZVOUS, timed=times, timed_error=0.1)
    assert found.decided == ()
    assert asked(EAGER, RENDEZVOUS, timed=times).decided == (16384,)


@given(
    a=models(),
    b=models(),
    times=st.dictionaries(
        st.integers(1, LAST), st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=6
    ),
)
def test_no_run_contradicts_a_measured_size(
    a: CostModel, b: CostModel, times: dict[int, tuple[int, int]]
) -> None:
    """Whatever the costs say; and between two sizes that agree nothing changes."""
    ordered = sorted(times.items())
    timed = tuple({x: float(both[place]) for x, both in ordered} for place in (0, 1))
    found = asked(a, b, last=LAST, timed=timed)
    assert found.runs[0].from_bytes == 1
    assert found.runs[-1].up_to_bytes == LAST
    for before, after in pairwise(found.runs):
        assert after.from_bytes == before.up_to_bytes + 1
        assert after.faster is not before.faster
    known = [(x, faster_of(*both)) for x, both in ordered if both[0] != both[1]]
    for x, faster in known:
        assert run_at(found, x) is faster
    for (x, faster), (y, other) in pairwise(known):
        if faster is other:
            assert {run_at(found, size) for size in range(x, y + 1)} == {faster}
    for threshold in (1, 7, LAST):
        price = asked(a, b, last=LAST, timed=timed, current=threshold).current
        assert price is not None
        assert price.more_by >= 0.0


def run_at(found: Crossovers, size: int) -> Faster:
    """Which path is the faster one at a size."""
    return next(one.faster for one in found.runs if one.from_bytes <= size <= one.up_to_bytes)


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    """Naming the field."""
    with pytest.raises(InconsistentInput) as refused:
        asked(EAGER, RENDEZVOUS, first=9, last=8)
    assert refused.value.field == "min_message_bytes"
