"""How a latency moves with a machine, against differences of the evaluator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from analysis.machine_sensitivities import MAX_CELLS, machine_sensitivities
from analysis.machine_slopes import machine_slopes
from contract.limits import MAX_OVERHEAD_US
from domain.machine import Machine, StageRules, Window
from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import MachineProblem
from domain.sensitivity import Sensitivities, Slope
from tests.support.uncertain_machines import line, machines, s3_connections

STEP = 1e-4  # µs, or ns per byte: far below what makes another path the longest
cuts = st.lists(st.integers(1, 900), min_size=1, max_size=9).map(tuple)


def _costs(machine: Machine, stage: int, overhead: float, per_byte: float) -> Machine:
    pipeline, old = machine.pipeline, machine.stages[stage]
    ranges = tuple(
        FitRange(one.overhead_us + overhead, one.ns_per_byte + per_byte, one.up_to_bytes)
        for one in old.ranges
    )
    stages = (*pipeline.stages[:stage], Stage(old.name, ranges), *pipeline.stages[stage + 1 :])
    return replace(machine, pipeline=Pipeline(stages, pipeline.delay_us))


def _delayed(machine: Machine, stage: int, more: float) -> Machine:
    rules = list(machine.rules)
    rules[stage] = replace(rules[stage], delay_us=rules[stage].delay_us + more)
    return replace(machine, rules=tuple(rules))


def _later_back(machine: Machine, window: int, more: float) -> Machine:
    windows = list(machine.windows)
    one = windows[window]
    windows[window] = Window(one.first, one.last, one.fragments, one.bytes, one.return_us + more)
    return replace(machine, windows=tuple(windows))


def _check(slope: Slope, changed: Callable[[float], Machine], cut: tuple[int, ...]) -> None:
    here_us = changed(0.0).latency_us(cut)
    close = 1e-9 * here_us / STEP + 1e-6 * sum(cut) * STEP
    assert slope.rising is not None
    more_us = changed(STEP).latency_us(cut) - here_us
    assert more_us / STEP == pytest.approx(slope.rising, rel=1e-6, abs=close)
    if slope.falling is not None:
        less_us = here_us - changed(-STEP).latency_us(cut)
        assert less_us / STEP == pytest.approx(slope.falling, rel=1e-6, abs=close)


def _whole(value: float) -> float:
    """A cost without digits that rounding could lose: kinks are then apart by more than steps."""
    return round(value * 4.0) / 4.0


def rounded(machine: Machine) -> Machine:
    """The machine with costs in quarters."""
    stages = tuple(
        Stage(
            one.name,
            tuple(
                FitRange(_whole(part.overhead_us), _whole(part.ns_per_byte), part.up_to_bytes)
                for part in one.ranges
            ),
        )
        for one in machine.stages
    )
    rules = tuple(
        replace(one, shared_ns_per_byte=min(part.ns_per_byte for part in stage.ranges) / 2.0)
        if one.shared_ns_per_byte
        else one
        for one, stage in zip(machine.rules, stages, strict=True)
    )
    pipeline = Pipeline(stages, machine.delay_us)
    return Machine(pipeline, rules, machine.windows)


@given(machines().map(rounded), cuts)
def test_slopes_are_differences_of_the_evaluator(machine: Machine, cut: tuple[int, ...]) -> None:
    """On both sides, at kinks too: by overheads, costs per byte, delays and ways back."""
    assume(machine.latency_us(cut) > 1.0)
    found = machine_slopes(machine, cut)
    for stage in range(len(machine)):
        _check(found.overhead[stage], lambda by, at=stage: _costs(machine, at, by, 0.0), cut)
        _check(found.delay[stage], lambda by, at=stage: _delayed(machine, at, by), cut)
        per_byte = found.per_byte[stage]
        in_ns = Slope(
            None if per_byte.falling is None else per_byte.falling / 1000.0,
            None if per_byte.rising is None else per_byte.rising / 1000.0,
        )
        _check(in_ns, lambda by, at=stage: _costs(machine, at, 0.0, by), cut)
    for window in range(len(machine.windows)):
        _check(found.way_back[window], lambda by, at=window: _later_back(machine, at, by), cut)


def _of(machine: Machine, total: int, cut: tuple[int, ...]) -> Sensitivities:
    found = machine_sensitivities(
        MachineProblem(machine, total),
        cut,
        (-0.1, 0.1),
        latency_us=machine.latency_us(cut),
        repeated_bytes=None,
    )
    assert found is not None
    return found


@given(machines(), st.integers(1, 2000), st.integers(0, 12))
def test_more_lanes_and_places_are_never_slower_for_a_repeated_size(
    machine: Machine, size: int, full: int
) -> None:
    """And fewer never faster; the cut is that of the message in this size."""
    assume(not machine.network.processors)
    total = max(1, full * size + size // 3)
    cut = (min(size, total),) * (total // min(size, total))
    cut += (total - sum(cut),) * (total > sum(cut))
    assume(machine.latency_us(cut) > 0.0)
    words = _of(machine, total, cut).words
    assert words is not None
    assert words.repeated_us == pytest.approx(machine.latency_us(cut), rel=1e-12)
    changes = [one for one in (*words.lanes, *words.windows) if one is not None]
    here_us = words.repeated_us or 0.0
    for one in changes:
        assert one.more_us is None or one.more_us <= here_us * (1.0 + 1e-12)
        assert one.fewer_us is None or one.fewer_us >= here_us * (1.0 - 1e-12)
        assert (one.fewer_us is None) == (one.places == 1)


def test_ten_connections() -> None:
    """Fifty parts on ten connections: the last round waits for five, with eleven it is shorter."""
    machine, size = s3_connections(), 21_475_000
    total = 50 * size
    found = _of(machine, total, (size,) * 50)
    words = found.words
    assert words is not None
    assert found.deciding is not None
    assert found.deciding.stage == 1
    connection = words.lanes[1]
    assert words.lanes[0] is None
    assert connection is not None
    assert connection.places == 10
    for count, taken_us in ((9, connection.fewer_us), (11, connection.more_us)):
        other = machine.with_rules(lanes={1: count}).latency_us((size,) * 50)
        assert taken_us == pytest.approx(other, rel=1e-12)
    (window,) = words.windows
    assert window.places == 256 * 2**20 // size


def test_a_stages_change_is_of_what_its_lanes_share_too() -> None:
    """10 % less of both costs is 10 % less of all its parts."""
    machine = Machine(
        Pipeline((line("send", 8.0, 4.0),)), (StageRules(lanes=2, shared_ns_per_byte=3.0),)
    )
    cut = (1000,) * 7
    (stage,) = _of(machine, 7000, cut).stages
    assert [one.same_cut_us for one in stage.changes] == pytest.approx(
        [0.9 * machine.latency_us(cut), 1.1 * machine.latency_us(cut)]
    )


def test_nothing_is_said_of_very_many_fragments_and_of_the_greatest_costs() -> None:
    def asked(machine: Machine, count: int) -> Sensitivities | None:
        problem = MachineProblem(machine, 10 * count)
        return machine_sensitivities(
            problem, (10,) * count, (-0.1, 0.1), latency_us=1.0, repeated_bytes=None
        )

    plain = Machine(Pipeline((line("send", 1.0, 1.0),)), (StageRules(lanes=2),))
    assert asked(plain, MAX_CELLS) is not None
    assert asked(plain, MAX_CELLS + 1) is None
    assert (
        asked(replace(plain, pipeline=Pipeline((line("send", MAX_OVERHEAD_US, 1.0),))), 2) is None
    )
