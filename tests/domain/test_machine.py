"""Machines: what they refuse, and their evaluator against oracles, a formula, and events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.limits import MAX_LAG, MAX_OVERHEAD_US
from domain.errors import Infeasible, InvalidStage, WouldDeadlock
from domain.machine import Machine, StageRules, Window, waited_us
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from tests.support.counts import count
from tests.support.machines import carried_us, fits, machine_of, machines, some_machine

KIB = 1000.0 / 1024.0
MYRINET = [(7.2, 7.2 / 1024), (5.2, 24.9 / 1024), (7.5, 24.9 / 1024), (7.4, 7.9 / 1024)]
TODAYS_CUT = (293, 729, 824, 919, 1013, 318)
SLOTS = [(1, 2, 2, 0.0), (2, 3, 2, 0.0), (3, 4, 2, 0.0)]


def random_sizes(rng: np.random.Generator, most: int = 25) -> list[float]:
    sizes: list[float] = rng.integers(1, 300, rng.integers(1, most)).astype(float).tolist()
    return sizes


class TestOracles:
    """Worked by hand, or proven by an exact primal and an exact dual flow."""

    def test_1_lanes(self) -> None:
        assert machine_of([(1, 0)], lanes=[3]).latency_us([1] * 7) == 3

    def test_2_two_lane_counts(self) -> None:
        machine = machine_of([(4, 0), (5, 0)], lanes=[2, 3])
        assert machine.latency_us([1] * 6) == machine.equal_us(1, 6) == 18
        assert machine.equal_us(1, 1) + 5 * machine.period_us(1) == 19  # the rate alone

    def test_3_credits(self) -> None:
        delays = [0, 10, 0]
        machine = machine_of([(1, 1), (0, 2), (2, 1)], [(2, 3, 3, 10)], delay_us=delays)
        assert machine.latency_us([3] * 10) == machine.equal_us(3, 10) == 118

    @pytest.mark.parametrize(
        ("sizes", "in_turn", "any_free"), [((2, 1, 1, 2), 3, 4), ((3, 1, 1, 1), 4, 3)]
    )
    def test_4_lanes_in_turn_or_any_free(
        self, sizes: tuple[int, ...], in_turn: float, any_free: float
    ) -> None:
        machine = machine_of([(0, 1)], lanes=[2])
        assert machine.latency_us(sizes) == in_turn
        assert carried_us(machine, sizes) == any_free

    @pytest.mark.parametrize(("lanes", "expected"), [(2, 5), (3, 6)])
    def test_5_more_lanes_hurt_a_given_cut(self, lanes: int, expected: float) -> None:
        assert machine_of([(0, 1)], lanes=[lanes]).latency_us([3, 1, 1, 3, 1, 1]) == expected

    @pytest.mark.parametrize(("k", "expected"), [(1, 19), (2, 23), (5, 38), (9, 57), (20, 113)])
    def test_6_lanes_delay_and_a_window(self, k: int, expected: float) -> None:
        lines, delays = [(2, 1), (3, 2), (1, 1)], [0, 5, 0]
        machine = machine_of(lines, [(1, 2, 3, 4)], lanes=[1, 4, 2], delay_us=delays)
        assert machine.latency_us([2] * k) == machine.equal_us(2, k) == expected

    def test_7_unequal_sizes(self) -> None:
        machine, sizes = machine_of([(2, 1), (3, 1)], lanes=[1, 2]), (4, 1, 3, 2)
        assert machine.latency_us(sizes) == carried_us(machine, sizes) == 23
        fast = pipeline_of_lines([("a", 2, 1000), ("b", 1.5, 500)])
        assert fast.latency_us(sizes) == 20.5

    def test_8_a_deadlock(self) -> None:
        lines = [(1, 2), (2, 3), (1, 1)]
        with pytest.raises(WouldDeadlock) as caught:
            machine_of(lines, [(1, 3, 2, 0)], together=(1, 3)).check_live(1, (2,))
        assert str(caught.value) == (
            "processor 'one' handles fragment i + 2 of 'stage 1' before fragment i of 'stage 3', "
            "and the window over both holds 2: it needs at least 3"
        )
        assert caught.value.field == "pipeline.windows.0"
        live = machine_of(lines, [(1, 3, 3, 0)], together=(1, 3))
        live.check_live(1, (2,))
        assert live.node_times([1] * 9, (2,)).latency_us == carried_us(live, [1] * 9, (2,))

    @pytest.mark.parametrize(
        ("machine", "expected"),
        [
            (machine_of(MYRINET, SLOTS), 184.361328),
            (machine_of(MYRINET, lanes=[1, 2, 2, 1]), 149.597559),
            (machine_of(MYRINET, [(1, 4, 3, 5.0)]), 189.137012),
        ],
    )
    def test_20_a_published_cut(self, machine: Machine, expected: float) -> None:
        assert machine.latency_us(TODAYS_CUT) == pytest.approx(expected, abs=6e-7)

    def test_20_at_a_lag(self) -> None:
        """Both copies on one core, fragment i + 1 sent before fragment i is copied out."""
        machine = machine_of(MYRINET, together=(1, 4))
        assert machine.node_times(TODAYS_CUT, (1,)).latency_us == pytest.approx(
            226.767871, abs=6e-7
        )

    def test_20_a_repeated_size(self) -> None:
        two_rails = machine_of(MYRINET, lanes=[1, 2, 2, 1])
        assert two_rails.latency_us([683] * 5 + [681]) == pytest.approx(133.918555, abs=6e-7)

    @pytest.mark.parametrize(
        ("sizes", "expected"),
        [((2,), 11), ((2,) * 2, 14), ((2,) * 3, 18), ((2,) * 5, 25), ((2,) * 9, 39)],
    )
    def test_21_a_part_that_lanes_share(self, sizes: tuple[int, ...], expected: float) -> None:
        pipeline = pipeline_of_lines([("a", 1, 1000), ("b", 1, 3000), ("c", 0, 500)])
        machine = Machine(pipeline, (StageRules(), StageRules(2, 1000.0), StageRules()))
        assert machine.latency_us(sizes) == expected
        assert machine.latency_us((3, 1, 2, 2)) == 24

    @pytest.mark.parametrize(
        ("size", "expected"),
        [(2, {1: 7, 3: 15, 6: 27}), (3, {1: 9, 3: 19, 6: 34}), (7, {1: 17, 3: 53, 6: 107})],
    )
    def test_22_a_window_of_bytes(self, size: int, expected: dict[int, float]) -> None:
        machine = window_of_bytes()
        assert {k: machine.latency_us([size] * k) for k in expected} == expected
        assert {k: machine.equal_us(size, k) for k in expected} == expected

    def test_22_what_does_not_fit(self) -> None:
        machine = window_of_bytes()
        assert machine.max_fragment_bytes == 7
        with pytest.raises(Infeasible):
            machine.equal_us(8, 2)
        with pytest.raises(Infeasible) as caught:
            machine.latency_us([3, 8])
        assert str(caught.value) == "a fragment of 8 bytes does not fit the window of 7 bytes"
        assert caught.value.field == "pipeline.windows.0.bytes"


def window_of_bytes() -> Machine:
    pipeline = pipeline_of_lines([("a", 1, 1000), ("b", 2, 1000)])
    return Machine(pipeline, (StageRules(),) * 2, (Window(0, 1, None, 7, 1.0),))


# --- bad input ------------------------------------------------------------------------------------

PLAIN = Stage.of_line("s", overhead_us=1.0, ns_per_byte=2.0)
LANES = "expected lanes >= 2 beside shared_ns_per_byte: it is what lanes share"
WHOLE = "expected {} to be a whole number"
PART = "expected shared_ns_per_byte <= 2, the stage's cost: it is a part of it"


@pytest.mark.parametrize(
    ("words", "field", "text"),
    [
        ({"lanes": 0}, "lanes", "expected 1 <= lanes <= 1024, got 0"),
        ({"lanes": 1025}, "lanes", "expected 1 <= lanes <= 1024, got 1025"),
        ({"lanes": True}, "lanes", WHOLE.format("lanes")),
        ({"lanes": 2.0}, "lanes", WHOLE.format("lanes")),
        ({"shared_ns_per_byte": 1.0}, "shared_ns_per_byte", LANES),
        ({"lanes": 2, "shared_ns_per_byte": -1.0}, "shared_ns_per_byte", None),
        ({"lanes": 2, "shared_ns_per_byte": float("nan")}, "shared_ns_per_byte", None),
        ({"delay_us": -1.0}, "delay_us", None),
        ({"delay_us": float("inf")}, "delay_us", None),
        ({"delay_us": 2 * MAX_OVERHEAD_US}, "delay_us", None),
        ({"processor": ""}, "processor", "expected a name of 1 to 100 characters"),
        ({"processor": "x" * 101}, "processor", "expected a name of 1 to 100 characters"),
        (
            {"processor": "core", "lanes": 2},
            "processor",
            "expected no lanes beside a processor: its stages handle one fragment at a time",
        ),
    ],
)
def test_rules_that_are_refused(words: dict[str, object], field: str, text: str | None) -> None:
    refused(lambda: StageRules(**words), field, text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "field", "text"),
    [
        ({"first": 1, "last": 0}, "to", "expected a stage that is not before from"),
        ({"fragments": None}, "fragments", "expected fragments, bytes or both"),
        ({"fragments": 0}, "fragments", "expected 1 <= fragments <= 1048576, got 0"),
        ({"fragments": 2**20 + 1}, "fragments", "expected 1 <= fragments <= 1048576, got 1048577"),
        ({"fragments": True}, "fragments", WHOLE.format("fragments")),
        ({"bytes": 0}, "bytes", "expected 1 <= bytes <= 281474976710656, got 0"),
        ({"bytes": 2**63}, "bytes", f"expected 1 <= bytes <= {2**48}, got {2**63}"),
        ({"bytes": 1.5}, "bytes", WHOLE.format("bytes")),
        ({"return_us": -1.0}, "return_us", None),
        ({"return_us": float("nan")}, "return_us", None),
    ],
)
def test_windows_that_are_refused(words: dict[str, object], field: str, text: str | None) -> None:
    given = {"first": 0, "last": 1, "fragments": 2, **words}
    refused(lambda: Window(**given), field, text)  # type: ignore[arg-type]


def test_a_handed_on_stage() -> None:
    stage = replace(PLAIN, handoff_bytes=64)
    text = "expected no handoff_bytes beside lanes, delay_us, processor or windows"
    pipeline, rules = Pipeline((PLAIN, stage)), (StageRules(), StageRules(2))
    refused(lambda: Machine(pipeline, rules), "stages.1.handoff_bytes", text)


def test_a_shared_part_above_the_cost() -> None:
    """Of any of the stage's ranges."""
    stage = Stage("s", (FitRange(1.0, 5.0, 100), FitRange(1.0, 2.0)))
    pipeline, rules = Pipeline((stage,)), (StageRules(2, 3.0),)
    refused(lambda: Machine(pipeline, rules), "stages.0.shared_ns_per_byte", PART)


@pytest.mark.parametrize("window", [Window(0, 2, 1), Window(-1, 0, 1)])
def test_windows_of_other_stages(window: Window) -> None:
    text = "expected stages of this pipeline"
    refused(lambda: plain(2, windows=(window,)), "windows.0.to", text)


def test_rules_for_other_stages() -> None:
    text = "expected rules for each stage"
    refused(lambda: Machine(Pipeline((PLAIN,)), (StageRules(),) * 2), "stages", text)


def test_too_many_windows() -> None:
    assert len(plain(1, windows=(Window(0, 0, 1),) * 64).windows) == 64
    many = (Window(0, 0, 1),) * 65
    refused(lambda: plain(1, windows=many), "windows", "expected at most 64 windows")


@pytest.mark.parametrize(
    ("names", "field", "text"),
    [
        (["a"], "stages.0.processor", "expected two stages of a processor, not one"),
        (["a", None], "stages.0.processor", "expected two stages of a processor, not one"),
        (["a", "a", "a"], "stages.2.processor", "expected two stages of a processor, not 3"),
        ([*"aabbcc"], "stages.4.processor", "expected at most 2 processors"),
        (
            [*"abab"],
            "stages.1.processor",
            "expected processors that do not interleave: of two, both stages of one are between, "
            "before or behind those of the other",
        ),
    ],
)
def test_processors_that_are_refused(names: list[str | None], field: str, text: str) -> None:
    refused(lambda: plain(len(names), names), field, text)


@pytest.mark.parametrize("names", ["abba", "aabb", "a.a"])
def test_processors_that_are_not(names: str) -> None:
    machine = plain(len(names), [None if name == "." else name for name in names])
    assert set(machine.processors) == {*names} - {"."}


def plain(
    n: int, names: list[str | None] | None = None, windows: tuple[Window, ...] = ()
) -> Machine:
    rules = tuple(StageRules(processor=name) for name in names or [None] * n)
    return Machine(Pipeline((PLAIN,) * n), rules, windows)


def refused(make: Callable[[], object], field: str, text: str | None) -> None:
    with pytest.raises(InvalidStage) as caught:
        make()
    assert caught.value.field == field
    assert text is None or str(caught.value) == text


# --- the evaluator --------------------------------------------------------------------------------


@given(machines(processors=False), st.integers(1, 200), st.integers(1, 60))
def test_a_plain_pipeline_is_a_machine(machine: Machine, size: int, k: int) -> None:
    rules = (StageRules(),) * len(machine)
    same = Machine(machine.pipeline, rules)
    cut = (size,) * k + (1,)
    assert same.latency_us(cut) == machine.pipeline.latency_us(cut)


def test_the_formula_is_the_evaluator() -> None:
    """Equal fragments, without processors: exact, for costs are whole numbers."""
    rng = np.random.default_rng(1)
    for _ in range(count(10_000)):
        machine = some_machine(rng, processors=False, bytes_too=True)
        size, k = int(rng.integers(1, 300)), int(rng.integers(1, 60))
        if fits(machine, size):
            assert machine.equal_us(size, k) == machine.node_times([size] * k).latency_us


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6)), max_size=4), st.integers(1, 40))
def test_the_short_form_is_the_knapsack(trips: list[tuple[int, int]], k: int) -> None:
    """Every sum of places is passed through, whatever window has the greatest pace."""
    sums = [0] * k
    for q in range(1, k):
        best = [sums[q - 1], *(sums[q - b] + trip for trip, b in trips if b <= q)]
        sums[q] = max(best)
    assert waited_us([(float(trip), b) for trip, b in trips], k) == sums[-1]


@given(machines(processors=False), st.integers(1, 200), st.integers(1, 60))
def test_the_period_bounds_equal_fragments(machine: Machine, size: int, k: int) -> None:
    """From both sides: whole uses of the window that sets it, and k - 1 periods."""
    once_us = machine.equal_us(size, 1)
    trips = machine.round_trips(size)
    trip_us, b = max(trips, key=lambda one: one[0] / one[1])
    found_us = machine.equal_us(size, k)
    assert once_us + (k - 1) // b * trip_us <= found_us
    assert found_us <= (once_us + (k - 1) * machine.period_us(size)) * (1.0 + 1e-12)


def test_events_take_as_long() -> None:
    """Equal sizes, whichever lane is free; processors in the order of each lag."""
    rng = np.random.default_rng(2)
    for _ in range(count(10_000, share=40)):
        machine = some_machine(rng, bytes_too=True)
        size, k = float(rng.integers(1, 300)), int(rng.integers(1, 25))
        if fits(machine, size):
            assert carried_us(machine, [size] * k) == machine.latency_us([size] * k)


def test_events_of_ascending_sizes() -> None:
    """Fragments leave each node in order, so that lanes in turn are the free ones."""
    rng = np.random.default_rng(3)
    for _ in range(count(10_000)):
        machine, cut = some_machine(rng, processors=False), sorted(random_sizes(rng))
        assert carried_us(machine, cut) == machine.latency_us(cut)


def test_reversed() -> None:
    """Stages, windows and fragments the other way round take as long."""
    rng = np.random.default_rng(4)
    for _ in range(count(2000)):
        machine, cut = some_machine(rng, shared=False), random_sizes(rng)
        assert turned(machine).latency_us(cut[::-1]) == machine.latency_us(cut)


def turned(machine: Machine) -> Machine:
    last = len(machine) - 1
    delays = [*(rules.delay_us for rules in machine.rules[-2::-1]), machine.rules[-1].delay_us]
    rules = [
        StageRules(old.lanes, 0.0, delay_us, old.processor)
        for old, delay_us in zip(machine.rules[::-1], delays, strict=True)
    ]
    windows = [
        Window(last - one.last, last - one.first, one.fragments, None, one.return_us)
        for one in machine.windows
    ]
    return Machine(machine.pipeline.reversed(), tuple(rules), tuple(windows))


def test_more_is_never_slower() -> None:
    """Of equal sizes: a lane or a place more, wherever."""
    rng = np.random.default_rng(5)
    for _ in range(count(2000)):
        machine = some_machine(rng, processors=False)
        size, k = int(rng.integers(1, 200)), int(rng.integers(1, 60))
        known_us = machine.equal_us(size, k)
        for j, rules in enumerate(machine.rules):
            assert machine.with_rules(lanes={j: rules.lanes + 1}).equal_us(size, k) <= known_us
        for w, one in enumerate(machine.windows):
            assert one.fragments is not None
            more = machine.with_rules(places={w: one.fragments + 1})
            assert more.equal_us(size, k) <= known_us


def test_as_many_places_as_lanes_are_enough() -> None:
    """Of equal sizes, where places come back at once and nothing is on its way."""
    rng = np.random.default_rng(6)
    for _ in range(count(4000)):
        machine = some_machine(rng, processors=False, shared=False)
        first, last = sorted(rng.integers(0, len(machine), 2).tolist())
        rules = [replace(one, delay_us=0.0) for one in machine.rules]
        without = Machine(machine.pipeline, tuple(rules), machine.windows)
        window = Window(first, last, sum(one.lanes for one in rules[first : last + 1]))
        beside = Machine(machine.pipeline, tuple(rules), (*machine.windows, window))
        size, k = int(rng.integers(1, 200)), int(rng.integers(1, 60))
        assert beside.equal_us(size, k) == without.equal_us(size, k)


def test_two_places_are_not_enough_for_lanes() -> None:
    machine = machine_of([(4, 0), (4, 0)], [(1, 2, 2, 0)], lanes=[2, 2])
    assert machine.equal_us(1, 8) > machine.with_rules(places={0: 4}).equal_us(1, 8)


def test_the_critical_path_is_as_long_as_the_latency() -> None:
    """Its times, and the delays and ways back between them; it begins at 0."""
    rng = np.random.default_rng(7)
    for _ in range(count(2000)):
        machine, cut = some_machine(rng), random_sizes(rng)
        times = machine.node_times(cut)
        path, network = machine.critical_path(times, max(cut)), machine.network
        assert times.start_us[path[0].fragment][path[0].node] == 0.0
        length_us = network.delay_us[-1]
        for step in path:
            length_us += machine.node_times_us(cut[step.fragment])[step.node]
        for before, step in pairwise(path):
            if step.window is not None:
                length_us += network.windows[step.window].return_us
            elif (step.fragment, step.node) == (before.fragment, before.node + 1):
                length_us += network.delay_us[before.node]
        assert length_us == times.latency_us


# --- lags -----------------------------------------------------------------------------------------


def test_lag_0_never_deadlocks() -> None:
    """Whatever the windows; events come to an end as well."""
    rng = np.random.default_rng(8)
    for _ in range(count(2000)):
        machine, cut = some_machine(rng, bytes_too=True), random_sizes(rng, 8)
        if not fits(machine, max(cut)):
            continue
        lags = (0,) * len(machine.network.processors)
        machine.check_live(max(cut), lags)
        assert machine.node_times(cut, lags).latency_us <= carried_bound_us(machine, cut)


def carried_bound_us(machine: Machine, cut: list[float]) -> float:
    """One fragment after the other, each place back before the next: an order of every rule."""
    ways_us = sum(one.return_us for one in machine.network.windows)
    through_us = sum(machine.network.delay_us) + ways_us
    return sum(sum(machine.node_times_us(size)) + through_us for size in cut)


def test_some_lag_deadlocks_where_a_window_is_small() -> None:
    machine = machine_of([(1, 0), (2, 0), (1, 0)], [(1, 3, 4, 0)], together=(1, 3))
    for lag in range(MAX_LAG + 1):
        if lag < 4:
            machine.check_live(1, (lag,))
            continue
        with pytest.raises(WouldDeadlock, match=f"holds 4: it needs at least {lag + 1}"):
            machine.node_times([1, 1], (lag,))
    assert [lags for lags, _ in machine.lag_choices(machine.places(1))] == [(0,), (1,), (2,), (3,)]


def test_processors_that_wait_for_each_other() -> None:
    """Of one inside the other the inner one cannot be further ahead."""
    machine = plain(4, [*"abba"])
    machine.check_live(1, (1, 1))
    with pytest.raises(WouldDeadlock) as caught:
        machine.check_live(1, (0, 1))
    assert str(caught.value) == "processors of lags 0, 1 wait for each other"
    assert caught.value.field == "pipeline.stages"


def test_the_least_of_the_best_lags() -> None:
    """All lags are tried; of equals the least is said."""
    rng = np.random.default_rng(9)
    for _ in range(count(400)):
        machine, cut = some_machine(rng), random_sizes(rng, 12)
        found = {
            lags: machine.node_times(cut, lags).latency_us
            for lags, _ in machine.lag_choices(machine.places(max(cut)))
        }
        best = machine.node_times(cut)
        assert best.latency_us == min(found.values())
        assert best.lags == min(lags for lags, us in found.items() if us == best.latency_us)


# --- other machines of one ------------------------------------------------------------------------


def test_other_lanes_and_places() -> None:
    pipeline = pipeline_of_lines([("a", 1, 5), ("b", 1, 5)])
    machine = Machine(pipeline, (StageRules(4, 2.0, 3.0), StageRules()), (Window(0, 1, 8, 900, 2),))
    other = machine.with_rules(lanes={0: 2}, places={0: 3})
    assert other.rules == (StageRules(2, 2.0, 3.0), StageRules())
    assert other.windows == (Window(0, 1, 3, 900, 2),)
    assert machine.with_rules(lanes={0: 1}).rules[0] == StageRules(1, 0.0, 3.0)


def test_what_is_said_of_a_machine() -> None:
    pipeline = pipeline_of_lines([("a", 1, 5), ("b", 1, 5)])
    machine = Machine(pipeline, (StageRules(4, 2.0), StageRules()), (Window(0, 1, 8),))
    assert machine.words() == {
        "rules": [{"lanes": 4, "shared_ns_per_byte": 2.0}, {}],
        "windows": [{"first": 0, "last": 1, "fragments": 8, "return_us": 0.0}],
    }
    assert plain(1).words() == {"rules": [{}]}
