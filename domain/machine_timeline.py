"""The course of a message through a machine: a row for each lane of each stage that is used.

The times are those of the evaluator, `Machine.node_times`. Fragment i is on lane i mod lanes. A
stage whose lanes share a part of its cost is two nodes: there a fragment is from the start of what
its lane does alone to the end of what all share, with whatever it waits in between.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contract.limits import MAX_LAG
from domain.machine import Lags, Machine, NodeTimes, PathStep
from domain.schedule import Schedule
from domain.timeline import CriticalPathPart, StageTimeline, Timeline


@dataclass(frozen=True, slots=True)
class MachineTimeline(Timeline):
    """`stages` are rows, one for each lane, in the order of the stages.

    `first_rows` has each stage's first row; `path` the critical path, by row and by the place of
    fragments in it. `busy_us` is how long each stage is occupied, of lanes the sum over all;
    `busiest` the stage that is occupied longest, by one lane of it where there are several.
    """

    fragment_bytes: tuple[int, ...]
    end_us: float
    first_rows: tuple[int, ...]
    path: tuple[CriticalPathPart, ...]
    steps: tuple[tuple[int, int], ...]
    busy_us: tuple[float, ...]
    busiest: int
    lags: Lags

    @property
    def message_bytes(self) -> int:
        """The size of the message."""
        return sum(self.fragment_bytes)

    @property
    def number_of_stages(self) -> int:
        """How many stages there are, whatever their lanes."""
        return len(self.first_rows)

    @property
    def is_shared(self) -> bool:
        """All stages have one cut."""
        return True

    @property
    def cuts(self) -> tuple[tuple[int, ...], ...]:
        """The one cut."""
        return (self.fragment_bytes,)

    @property
    def exit_us(self) -> float:
        """When the last fragment has left, the delay behind the last stage included."""
        return self.end_us

    @property
    def busiest_stage(self) -> int:
        """The first row of the stage that is occupied longest."""
        return self.first_rows[self.busiest]

    @property
    def by_stage(self) -> tuple[StageTimeline, ...]:
        """A row for each stage, with all its fragments in their order, on whatever lane."""
        return tuple(
            _one_row([self.stages[first + lane] for lane in range(self._used_lanes(first))])
            for first in self.first_rows
        )

    def _used_lanes(self, first: int) -> int:
        row = self.stages[first]
        return min(row.lanes, row.total)

    def span_us(self, fragment: int, stage: int) -> tuple[float, float]:
        """Return when a fragment enters a stage, and when it leaves it, µs; counted from 0."""
        first = self.first_rows[stage]
        place, lane = divmod(fragment, self.stages[first].lanes)
        row = self.stages[first + lane]
        return row.start_us[place], row.exit_us[place]

    def critical_path(self) -> tuple[tuple[int, int], ...]:
        """Return (fragment, stage) pairs of a longest path, in order."""
        return self.steps

    def critical_parts(self) -> tuple[CriticalPathPart, ...]:
        """Return it row by row."""
        return self.path


def work_of(machine: Machine, fragments: int) -> int:
    """Return how many steps the evaluator takes for so many fragments, over all lags it tries."""
    orders = int((MAX_LAG + 1) ** len(machine.network.processors))
    return fragments * len(machine) * orders


def busiest_stage(machine: Machine, fragment_bytes: Sequence[int]) -> int:
    """Return the stage that a cut occupies longest, of lanes by one of them; of equals the first.

    Of what all lanes share it is the time of that, where it is longer.
    """
    busy = [_busy_us(machine, fragment_bytes, j, lanes_together=False) for j in range(len(machine))]
    return busy.index(max(busy))


def machine_timeline_of(machine: Machine, fragment_bytes: tuple[int, ...]) -> MachineTimeline:
    """Return the timeline of one cut, at the best lags. O(lags * k * (nodes + windows)).

    Raises InvalidInput for sizes that are none, and Infeasible for one that fits no window.
    """
    cut = Schedule(fragment_bytes).fragment_bytes
    times = machine.node_times(cut)
    spans = [_span_of(machine, times, j) for j in range(len(machine))]
    rows: list[StageTimeline] = []
    first_rows = list[int]()
    for j, (starts, exits) in enumerate(spans):
        first_rows.append(len(rows))
        rows.extend(_rows_of(machine, j, cut, starts, exits))
    walked = machine.critical_path(times, max(cut))
    steps = tuple(_steps_of(machine, walked))
    return MachineTimeline(
        tuple(rows),
        machine.delay_us,
        cut,
        times.latency_us,
        tuple(first_rows),
        tuple(_parts_of(machine, spans, first_rows, steps)),
        steps,
        tuple(_busy_us(machine, cut, j, lanes_together=True) for j in range(len(machine))),
        busiest_stage(machine, cut),
        times.lags,
    )


def _span_of(machine: Machine, times: NodeTimes, stage: int) -> tuple[list[float], list[float]]:
    """When each fragment is in a stage: from its first node's start to its last node's end."""
    nodes = [v for v, j in enumerate(machine.network.stage_of) if j == stage]
    starts = [row[nodes[0]] for row in times.start_us]
    return starts, [row[nodes[-1]] for row in times.end_us]


def _rows_of(
    machine: Machine,
    stage: int,
    cut: Sequence[int],
    starts: Sequence[float],
    exits: Sequence[float],
) -> Iterator[StageTimeline]:
    lanes, costs = machine.rules[stage].lanes, machine.stages[stage]
    for lane in range(min(lanes, len(cut))):
        begun, ended = array("d", starts[lane::lanes]), array("d", exits[lane::lanes])
        sizes = tuple(cut[lane::lanes])
        yield StageTimeline(
            costs,
            sizes,
            begun,
            ended,
            range(len(sizes)),
            tuple(sorted(set(sizes))),
            busy_us=sum(ended) - sum(begun),
            priced_us=sum(map(costs.time_us, sizes)),
            idle_us=sum(begun[1:]) - sum(ended[:-1]),
            lane=lane,
            lanes=lanes,
            fragments=len(cut),
        )


def _one_row(lanes: Sequence[StageTimeline]) -> StageTimeline:
    """The rows of all lanes of a stage as one; what is idle is not said of it."""
    first, count = lanes[0], lanes[0].total
    where = [divmod(i, first.lanes) for i in range(count)]
    cut = tuple(lanes[lane].fragment_bytes[place] for place, lane in where)
    return StageTimeline(
        first.stage,
        cut,
        array("d", [lanes[lane].start_us[place] for place, lane in where]),
        array("d", [lanes[lane].exit_us[place] for place, lane in where]),
        range(count),
        tuple(sorted(set(cut))),
        busy_us=sum(row.busy_us for row in lanes),
        priced_us=sum(row.priced_us for row in lanes),
        idle_us=0.0,
    )


def _steps_of(machine: Machine, walked: Sequence[PathStep]) -> Iterator[tuple[int, int]]:
    """The fragments and stages of a path through nodes, each pair once in a row."""
    last: tuple[int, int] | None = None
    for step in walked:
        found = step.fragment, machine.network.stage_of[step.node]
        if found != last:
            yield found
        last = found


def _parts_of(
    machine: Machine,
    spans: Sequence[tuple[list[float], list[float]]],
    first_rows: Sequence[int],
    steps: Sequence[tuple[int, int]],
) -> Iterator[CriticalPathPart]:
    """The path by rows: steps that follow each other on one lane without a pause are one part."""
    part: CriticalPathPart | None = None
    for fragment, j in steps:
        lanes = machine.rules[j].lanes
        row, place = first_rows[j] + fragment % lanes, fragment // lanes
        start_us, exit_us = spans[j][0][fragment], spans[j][1][fragment]
        if (
            part is not None
            and (part.stage, part.last + 1) == (row, place)
            and part.exit_us == start_us
        ):
            part = CriticalPathPart(row, part.first, place, part.start_us, exit_us)
            continue
        if part is not None:
            yield part
        part = CriticalPathPart(row, place, place, start_us, exit_us)
    if part is not None:
        yield part


def _busy_us(machine: Machine, cut: Sequence[int], stage: int, *, lanes_together: bool) -> float:
    """How long a stage is occupied by a cut; else its busiest part is: a lane, or what all lanes
    share, whichever is longer.
    """
    costs, rules = machine.stages[stage], machine.rules[stage]
    times = [costs.time_us(size) for size in cut]
    if lanes_together or rules.lanes == 1:
        return sum(times)
    shared = [rules.shared_ns_per_byte * size / 1000.0 for size in cut]
    alone = [time - part for time, part in zip(times, shared, strict=True)]
    return max(sum(shared), *(sum(alone[lane :: rules.lanes]) for lane in range(rules.lanes)))
