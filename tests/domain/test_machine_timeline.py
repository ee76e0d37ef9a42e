"""Timelines of machines hold the evaluator's times, a row for each lane that is used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import Infeasible
from domain.machine import Machine, StageRules, Window
from domain.machine_timeline import busiest_stage, machine_timeline_of, work_of
from domain.pipeline import FitRange, Pipeline, Stage

COSTS = st.tuples(st.integers(0, 9), st.integers(0, 9))


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """One to four stages with any of the words but processors, and a window over some of them."""
    count = draw(st.integers(1, 4))
    stages, rules = [], []
    for j in range(count):
        overhead, per_byte = draw(COSTS)
        lanes = draw(st.integers(1, 4))
        shared = draw(st.integers(0, per_byte)) if lanes > 1 else 0
        stages.append(Stage(f"s{j}", (FitRange(float(overhead), 1000.0 * per_byte),)))
        rules.append(StageRules(lanes, 1000.0 * shared, float(draw(st.integers(0, 3)))))
    first = draw(st.integers(0, count - 1))
    window = Window(first, draw(st.integers(first, count - 1)), draw(st.integers(1, 5)))
    return Machine(Pipeline(tuple(stages), 2.0), tuple(rules), (window,))


@given(machines(), st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_rows_are_the_times_of_the_evaluator(machine: Machine, sizes: list[int]) -> None:
    """Every fragment of every stage from its first node's start to its last node's end, once."""
    cut = tuple(sizes)
    times, timeline = machine.node_times(cut), machine_timeline_of(machine, cut)
    nodes = machine.network.stage_of
    for j in range(len(machine)):
        of_stage = [v for v, stage in enumerate(nodes) if stage == j]
        for i in range(len(cut)):
            spans = times.start_us[i][of_stage[0]], times.end_us[i][of_stage[-1]]
            assert timeline.span_us(i, j) == spans
            row = timeline.by_stage[j]
            assert (row.start_us[i], row.exit_us[i], row.fragment_bytes[i]) == (*spans, cut[i])
    assert timeline.latency_us == machine.latency_us(cut)
    assert timeline.number_of_stages == len(machine)
    rows = [min(rules.lanes, len(cut)) for rules in machine.rules]
    assert len(timeline.stages) == sum(rows)


@given(machines(), st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_no_row_has_two_fragments_at_once(machine: Machine, sizes: list[int]) -> None:
    """So that what overlaps is drawn one below the other; and each row says whose they are."""
    cut = tuple(sizes)
    numbers = []
    for row in machine_timeline_of(machine, cut).stages:
        for place in range(len(row.fragment_bytes)):
            numbers.append(row.number(place))
            assert row.fragment_bytes[place] == cut[row.number(place) - 1]
            if place:
                assert row.exit_us[place - 1] <= row.start_us[place]
    assert sorted(numbers) == sorted(list(range(1, len(cut) + 1)) * len(machine))


@given(machines(), st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_the_path_leads_from_the_start_to_the_end(machine: Machine, sizes: list[int]) -> None:
    """In whole numbers it is exact: its parts are rows' stretches, the last one the last exit."""
    timeline = machine_timeline_of(machine, tuple(sizes))
    path, parts = timeline.critical_path(), timeline.critical_parts()
    assert timeline.span_us(*path[0])[0] == 0.0
    last_delay = machine.rules[-1].delay_us
    assert timeline.span_us(*path[-1])[1] + last_delay == timeline.exit_us
    assert sum(part.last - part.first + 1 for part in parts) == len(path)
    for part in parts:
        row = timeline.stages[part.stage]
        assert part.start_us == row.start_us[part.first]
        assert part.exit_us == row.exit_us[part.last]


def test_by_hand() -> None:
    """Two lanes of 3 us a fragment before one stage of 1 us."""
    stages = Stage("wide", (FitRange(3.0, 0.0),)), Stage("narrow", (FitRange(1.0, 0.0),))
    machine = Machine(Pipeline(stages), (StageRules(lanes=2), StageRules()))
    timeline = machine_timeline_of(machine, (1, 1, 1))
    assert [row.name for row in timeline.stages] == ["wide, lane 1", "wide, lane 2", "narrow"]
    assert [list(row.start_us) for row in timeline.stages] == [[0.0, 3.0], [0.0], [3.0, 4.0, 6.0]]
    assert timeline.busy_us == (9.0, 3.0)
    assert timeline.busiest_stage == 0
    assert timeline.critical_path() == ((0, 0), (2, 0), (2, 1))
    assert timeline.lags == ()


def test_what_lanes_share_may_be_busiest() -> None:
    """Four lanes of 4 us each, 3 of them shared, are occupied for longer than 2 us by one."""
    stages = Stage("shared", (FitRange(0.0, 4000.0),)), Stage("after", (FitRange(2.0, 0.0),))
    machine = Machine(Pipeline(stages), (StageRules(4, 3000.0), StageRules()))
    assert busiest_stage(machine, (1, 1, 1, 1)) == 0
    alone = Machine(Pipeline(stages), (StageRules(4), StageRules()))
    assert busiest_stage(alone, (1, 1, 1, 1)) == 1


def test_a_fragment_that_fits_no_window_is_refused() -> None:
    """As by the evaluator."""
    stage = Stage("a", (FitRange(1.0, 1.0),))
    machine = Machine(Pipeline((stage,)), (StageRules(),), (Window(0, 0, bytes=10),))
    with pytest.raises(Infeasible) as refused:
        machine_timeline_of(machine, (11,))
    assert refused.value.field == "pipeline.windows.0.bytes"


def test_work_counts_the_orders_of_processors() -> None:
    """Nine lags of one processor, 81 of two."""
    stages = tuple(Stage(str(j), (FitRange(1.0, 0.0),)) for j in range(4))
    rules = [StageRules(processor=name) for name in ("a", "b", "b", "a")]
    assert work_of(Machine(Pipeline(stages), tuple(rules)), 10) == 10 * 4 * 81
    plain = (StageRules(lanes=2), *(StageRules(),) * 3)
    assert work_of(Machine(Pipeline(stages), plain), 10) == 40
