"""What five machines of docs/machines.md, and weights under 6 GB, have in flight."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.enough import repeated_us
from analysis.in_flight import MAX_CELLS, in_flight, places_in_use
from analysis.size_by_count import size_by_count
from domain.errors import WouldDeadlock
from domain.in_flight import InFlight, InUse, LimitKind
from domain.machine import Machine, NodeTimes, StageRules, Window
from domain.pipeline import Pipeline, Stage
from domain.problem import FragmentLimits, MachineProblem
from domain.solution import Solution, Strategy
from solvers import is_quick, solve
from solvers.contract import Deadline
from solvers.machine.solve import QUICK_COUNTED
from tests.support.uncertain_machines import MIB, line, machines, s3_connections

PLAIN, KIB, GIB, GB = StageRules(), 2**10, 2**30, 10**9
PATIENT = Deadline.after(3600.0)

S3 = MachineProblem(s3_connections(), GIB, FragmentLimits(5 * MIB))


def machine(stages: list[Stage], rules: list[StageRules], *windows: Window) -> Machine:
    """A machine without a constant delay."""
    return Machine(Pipeline(tuple(stages)), tuple(rules), windows)


ENGINE = StageRules(processor="copy engine")
STAGING = machine(
    [
        line("device to host", 7.7, 0.0185),
        line("network", 2.8, 0.0204),
        line("host to device", 7.7, 0.0185),
    ],
    [ENGINE, PLAIN, ENGINE],
    Window(0, 1, 2),
    Window(1, 2, 2),
)
RAILS = machine(
    [line("send", 20.0, 0.1), line("rail", 2.0, 0.32), line("receive", 30.0, 0.1)],
    [PLAIN, StageRules(4, delay_us=25_000.0), PLAIN],
    Window(1, 2, 64, return_us=25_000.0),
)
COPIER = machine(
    [line("read", 80.0, 0.5), line("write", 20.0, 0.9)],
    [StageRules(16, 0.15), StageRules(16, 0.35)],
    Window(0, 1, 16),
)
CORE = StageRules(processor="core 3")
DMA = machine(
    [line("copy out", 0.3, 0.08), line("DMA", 1.2, 0.05), line("copy in", 0.3, 0.08)],
    [CORE, PLAIN, CORE],
    Window(0, 2, 4),
)
WEIGHTS = machine(
    [line("gather", 171_714.0, 0.05957), line("broadcast and load", 218_000.0, 0.082)],
    [PLAIN, PLAIN],
    Window(0, 1, bytes=6 * GB),
)


def found_of(problem: MachineProblem, strategy: Strategy = Strategy.REPEAT) -> InFlight:
    """What the answer of a strategy has in flight."""
    solution = solve(problem, strategy)
    best = max(solve(problem, Strategy.REPEAT).schedule.fragment_bytes)
    return in_flight(solution, problem, best)


def answered(problem: MachineProblem) -> Solution:
    """The best repeated size."""
    return solve(problem, Strategy.REPEAT)


def test_connections_to_s3() -> None:
    """20.3 MiB in 51 parts, 1.66 s; all ten connections are needed, 18 would let all through."""
    solution = answered(S3)
    size = solution.schedule.fragment_bytes[0]
    assert size == pytest.approx(20.4 * MIB, rel=0.01)
    assert solution.latency_us == pytest.approx(1.66e6, rel=0.01)
    assert repeated_us(S3, 8 * MIB) / solution.latency_us == pytest.approx(1.23, abs=0.01)
    found = in_flight(solution, S3, size)
    assert [one.lanes for one in found.stages] == [InUse(10, 10, 10)]
    assert [one.places for one in found.windows] == [InUse(12, 12, 11)]
    memory = found.windows[0].bytes
    assert memory == InUse(256 * MIB, 12 * size, 224 * MIB)
    assert memory.enough == 256 * MIB
    assert found.limit.kind is LimitKind.LANES
    assert found.limit.round_trip_us == pytest.approx(60_000.0 + 11.1e-3 * size)
    assert found.period_us == found.limit.round_trip_us / 10
    full = found.limit.full_rate
    assert full is not None
    assert full.period_us == pytest.approx(0.8e-3 * size)
    assert full.places == 18
    assert full.bytes == pytest.approx(found.limit.round_trip_us / full.period_us * size)
    assert not found.stages[0].is_near_knee


def test_staging_through_two_bounce_buffers() -> None:
    """16 MiB take 2.60 ms; the copy engine is what limits, a fragment ahead, or two."""
    problem = MachineProblem(STAGING, 64 * MIB)
    assert repeated_us(problem, 16 * MIB) == pytest.approx(2_600.0, rel=0.001)
    assert repeated_us(problem, 512 * KIB) / 2_600.0 == pytest.approx(1.71, abs=0.01)
    solution = answered(problem)
    assert 0.98 * 2_600.0 < solution.latency_us <= 2_600.0
    found = in_flight(solution, problem, max(solution.schedule.fragment_bytes))
    assert [one.places for one in found.windows] == [InUse(2, 2, 2), InUse(2, 2, 2)]
    assert found.limit.kind is LimitKind.PROCESSOR
    assert found.limit.processor == "copy engine"
    assert found.work_us == pytest.approx(
        len(solution.schedule.fragment_bytes) * 15.4 + 2483.03, rel=1e-4
    )
    assert [(one.name, one.max_lag) for one in found.processors] == [("copy engine", 2)]


def test_rails_over_a_long_link() -> None:
    """8.3 MiB, 0.14 s; 1 MiB takes 466 % more; 35 of 64 fragments outstanding would do."""
    problem = MachineProblem(RAILS, GIB)
    solution = answered(problem)
    size = solution.schedule.fragment_bytes[0]
    assert size == pytest.approx(8.3 * MIB, rel=0.01)
    assert solution.latency_us == pytest.approx(0.14e6, rel=0.01)
    assert repeated_us(problem, MIB) / solution.latency_us == pytest.approx(5.66, abs=0.01)
    found = in_flight(solution, problem, size)
    assert found.stages[0].lanes == InUse(4, 4, 4)
    assert found.windows[0].places == InUse(64, 61, 35)
    assert found.windows[0].places.enough == 44
    assert (found.limit.kind, found.limit.first) == (LimitKind.STAGE, 2)
    assert found.limit.full_rate is None
    assert not found.delays_alone


def test_a_window_that_limits_says_what_the_full_rate_takes() -> None:
    """One of 16 MiB on the long link of 1 MiB fragments: its bandwidth-delay product and more."""
    problem = MachineProblem(
        machine(
            [
                line("send", 20.0, 1 / 2),
                line("wire", 0.0, 1 / 1.25),
                line("receive", 100.0, 1 / 1.6),
            ],
            [PLAIN, StageRules(delay_us=25_000.0), PLAIN],
            Window(1, 2, bytes=16 * MIB, return_us=25_000.0),
        ),
        GIB,
        FragmentLimits(MIB, MIB),
    )
    found, size = found_of(problem), MIB
    assert found.limit.kind is LimitKind.WINDOW
    trip_us = 50_000.0 + 100.0 + size * (1 / 1.25 + 1 / 1.6) / 1e3
    assert found.limit.round_trip_us == pytest.approx(trip_us)
    assert (found.limit.window, found.limit.places) == (0, 16)
    full = found.limit.full_rate
    assert full is not None
    assert full.period_us == pytest.approx(size / 1.25 / 1e3)
    assert full.bytes == pytest.approx(trip_us / full.period_us * size, abs=1)
    assert full.bytes > 62_500_000  # the product alone
    raised = replace(
        problem,
        machine=machine(
            list(problem.machine.stages),
            list(problem.machine.rules),
            Window(1, 2, bytes=full.places * size, return_us=25_000.0),
        ),
    )
    assert found_of(raised).period_us == pytest.approx(full.period_us)


def test_a_copier_with_a_deep_queue() -> None:
    """Flat: 128 KiB and 1 MiB are within 0.3 %; what the lanes of the write share limits."""
    whole, problem = MachineProblem(COPIER, GIB), MachineProblem(COPIER, 64 * MIB)
    assert repeated_us(whole, MIB) / repeated_us(whole, 128 * KIB) == pytest.approx(1.0, abs=0.003)
    found = found_of(problem, Strategy.FIXED)
    assert [one.lanes.given for one in found.stages] == [16, 16]
    assert all((one.lanes.enough or 0) < 16 for one in found.stages)
    assert found.limit.kind is LimitKind.SHARED_PART
    assert found.limit.first == 1


def test_a_copy_by_one_core() -> None:
    """In two, 0.672 ms, which is what the core has to do."""
    problem = MachineProblem(DMA, 4 * MIB)
    found = found_of(problem)
    solution = answered(problem)
    assert len(solution.schedule.fragment_bytes) == 2
    assert solution.latency_us == pytest.approx(672.29, abs=0.01)
    assert found.work_us == pytest.approx(solution.latency_us)
    assert found.limit.kind is LimitKind.PROCESSOR
    assert found.windows[0].places == InUse(4, 2, 2)
    assert [(one.lag, one.max_lag) for one in found.processors] == [(1, 3)]


def test_weights_under_six_gigabytes() -> None:
    """Two buffers of 3 GB take 155 s; one of 6 GB 207, four of 1.5 GB 227."""
    problem = MachineProblem(WEIGHTS, 1000 * GB, FragmentLimits(GB // 10))
    solution = answered(problem)
    size = solution.schedule.fragment_bytes[0]
    assert size == pytest.approx(3 * GB, rel=0.01)
    found = in_flight(solution, problem, size)
    assert found.windows[0].places == InUse(2, 2, 2)
    assert not found.windows[0].never_binds
    table = size_by_count(problem, size, (), PATIENT)
    assert table is not None
    assert (table.stage, table.window) == (None, 0)
    rows = {row.count: row for row in table.rows}
    assert list(rows) == [1, 2, 4, 8]
    assert [round(rows[one].latency_us / 1e6) for one in (1, 2, 4)] == [207, 155, 228]
    assert [round(rows[one].size_bytes / GB, 1) for one in (1, 2, 4)] == [6.0, 3.0, 1.5]
    assert rows[2].size_bytes == size


def test_rows_are_the_best_of_their_lanes() -> None:
    """Each is the answer of the machine with so many; they fall, and end with what was given."""
    best = answered(S3).schedule.fragment_bytes[0]
    table = size_by_count(S3, best, (3, 10), PATIENT)
    assert table is not None
    assert [row.count for row in table.rows] == [1, 2, 3, 4, 8, 10]
    for row in table.rows:
        fewer = replace(S3, machine=S3.machine.with_rules(lanes={1: row.count}))
        solution = answered(fewer)
        assert row.latency_us == pytest.approx(solution.latency_us, rel=1e-12)
        assert row.fragments == len(solution.schedule.fragment_bytes)
    latencies = [row.latency_us for row in table.rows]
    assert latencies == sorted(latencies, reverse=True)


def test_rows_need_lanes_or_a_window_and_time() -> None:
    """Delays alone have none."""
    plain = machine([line("a", 1.0, 1.0), line("b", 1.0, 1.0)], [StageRules(delay_us=5.0), PLAIN])
    problem = MachineProblem(plain, 4096)
    assert size_by_count(problem, 1024, (), PATIENT) is None
    late = size_by_count(S3, 20 * MIB, (), Deadline.after(0.0))
    assert late is not None
    assert late.rows == ()
    assert late.left_out == (1, 2, 4, 8, 10)


def test_delays_alone_and_two_places_between_plain_neighbours_change_nothing() -> None:
    """Both are said."""
    stages = [line("a", 1.0, 1.0), line("b", 2.0, 1.0), line("c", 1.0, 2.0)]
    rules = [StageRules(delay_us=50.0), PLAIN, PLAIN]
    found = found_of(MachineProblem(machine(stages, rules, Window(1, 2, 2)), 4096))
    assert found.delays_alone
    assert [one.never_binds for one in found.windows] == [True]
    one_place = found_of(MachineProblem(machine(stages, rules, Window(1, 2, 1)), 4096))
    assert [one.never_binds for one in one_place.windows] == [False]
    over = found_of(MachineProblem(machine(stages, rules, Window(0, 1, 2)), 4096))
    assert not over.delays_alone
    assert [one.never_binds for one in over.windows] == [False]


@given(machines(), st.integers(1, 9000), st.integers(1, 30))
def test_a_window_that_never_binds_can_be_left_out(drawn: Machine, size: int, count: int) -> None:
    """For equal fragments."""
    found = in_flight_of_equal(drawn, size, count)
    kept = tuple(
        window
        for window, one in zip(drawn.windows, found.windows, strict=True)
        if not one.never_binds
    )
    without = replace(drawn, windows=kept)
    assert without.equal_us(size, count) == pytest.approx(drawn.equal_us(size, count), rel=1e-9)


@given(machines(), st.integers(1, 9000), st.integers(1, 12))
def test_the_max_lag_is_live_and_one_more_deadlocks(drawn: Machine, size: int, count: int) -> None:
    """Of each processor, with the lags of the others."""
    found = in_flight_of_equal(drawn, size, count)
    lags = tuple(one.lag for one in found.processors)
    for at, one in enumerate(found.processors):
        beyond = 10_000 if one.max_lag is None else one.max_lag
        drawn.check_live(size, (*lags[:at], beyond, *lags[at + 1 :]))
        if one.max_lag is not None:
            with pytest.raises(WouldDeadlock):
                drawn.check_live(size, (*lags[:at], one.max_lag + 1, *lags[at + 1 :]))


@given(machines(), st.integers(1, 9000), st.integers(1, 20))
def test_the_limit_has_the_period_of_the_machine(drawn: Machine, size: int, count: int) -> None:
    """And nothing that more lanes or places would raise has a longer one."""
    found = in_flight_of_equal(drawn, size, count)
    lags = tuple(one.lag for one in found.processors)
    assert found.period_us == pytest.approx(drawn.period_us(size, lags), rel=1e-9)
    full = found.limit.full_rate
    assert full is None or full.period_us <= found.period_us


def in_flight_of_equal(drawn: Machine, size: int, count: int) -> InFlight:
    """What equal fragments have in flight, beside nothing that is enough."""
    problem = MachineProblem(drawn, size * count, FragmentLimits(size, size))
    return in_flight(solve(problem, Strategy.FIXED), problem, None)


def test_of_very_many_fragments_what_is_used_is_not_told() -> None:
    """All else is."""
    problem = MachineProblem(RAILS, (MAX_CELLS // 3 + 1) * KIB, FragmentLimits(KIB, KIB))
    found = in_flight(solve(problem, Strategy.FIXED), problem, None)
    assert found.stages[0].lanes == InUse(4, None, None)
    assert found.windows[0].places == InUse(64, None, None)
    assert found.limit.kind is LimitKind.WINDOW


def test_many_lanes_and_windows_are_no_work_for_the_service_itself() -> None:
    """For each of them it is found how many are enough."""
    stages, rules = [line("a", 1.0, 1.0), line("b", 2.0, 1.0)], [StageRules(2), StageRules(3)]
    few, many = (
        MachineProblem(machine(stages, rules, *[Window(0, 1, 4)] * count), 4096)
        for count in (QUICK_COUNTED - 2, QUICK_COUNTED - 1)
    )
    assert is_quick(few, Strategy.REPEAT)
    assert not is_quick(many, Strategy.REPEAT)


# --- places in use against counting them ----------------------------------------------------------


def counted(times: NodeTimes, machine: Machine) -> list[int]:
    """At each start, how many fragments have started and are not back."""
    found = []
    for one in machine.network.windows:
        spans = [
            (start[one.first], end[one.last] + one.return_us)
            for start, end in zip(times.start_us, times.end_us, strict=True)
        ]
        found.append(max(sum(start <= at < back for start, back in spans) for at, _ in spans))
    return found


@given(machines(), st.lists(st.integers(1, 9000), min_size=1, max_size=12))
def test_places_in_use_are_counted_and_never_more_than_there_are(
    machine: Machine, cut: list[int]
) -> None:
    """A place is in use until it has come back; uneven cuts too."""
    times = machine.node_times(cut)
    found = places_in_use(machine, cut, times.lags)
    places = machine.places(max(cut))
    for used, most, count in zip(found, places, counted(times, machine), strict=True):
        assert used == max(1, count)  # fragments of no time are in use for none
        assert used <= most


@given(machines(), st.integers(1, 9000), st.integers(1, 12))
def test_as_many_places_as_are_in_use_change_nothing(
    machine: Machine, size: int, count: int
) -> None:
    """For equal fragments; processors could go in another order."""
    cut = (size,) * count
    times = machine.node_times(cut)
    used = places_in_use(machine, cut, times.lags)
    of_windows = {
        one.window: used[at]
        for at, one in enumerate(machine.network.windows)
        if one.window is not None
    }
    same = machine.with_rules(places=of_windows)
    if not machine.processors:
        assert same.latency_us(cut) == pytest.approx(machine.latency_us(cut), rel=1e-12)
