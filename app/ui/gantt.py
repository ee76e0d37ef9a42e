"""A Gantt of one message in characters.

    > wire         ####----####----
      copy             ####----####
                   0 us       12 us

A block is painted in every column of which it covers at least half; where it reaches no column in
that way it leaves a thin mark, so that no fragment vanishes. Where more than two blocks share a
column they can no longer be distinguished, and the column is painted dense.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.text.units import fit_to, format_given_time, format_time, width_of
from app.ui.parts import Chart, GanttRow
from domain.machine_timeline import MachineTimeline
from domain.nested import NestedSchedule, simulate_nested
from domain.pipeline import Pipeline
from domain.schedule import simulate

MAX_BLOCKS = 200_000
MIN_WIDTH = 40
_MARK_WIDTH = 2
_MAX_NAME = 30
_MAX_DISTINCT_BLOCKS = 2


@dataclass(frozen=True, slots=True)
class Ink:
    """The characters of a chart: two alternating fills, and the rest."""

    fills: tuple[str, str]
    dense: str
    thin: str
    bottleneck: str
    cut_off: str
    micro: str


UNICODE = Ink(fills=("█", "░"), dense="▒", thin="▏", bottleneck="▶", cut_off="…", micro="µs")
ASCII = Ink(fills=("#", "-"), dense="+", thin="|", bottleneck=">", cut_off="~", micro="us")


def chart_of(
    pipeline: Pipeline,
    fragment_bytes: Sequence[int],
    *,
    bottleneck: int,
    levels: Sequence[Sequence[int]] | None = None,
) -> Chart:
    """Return the chart of this cut, or of the nested cuts in `levels`, one a stage. O(blocks)."""
    names = [stage.name for stage in pipeline.stages]
    starts: Sequence[Sequence[float]]
    exits: Sequence[Sequence[float]]
    if levels is None:
        timeline = simulate(pipeline, fragment_bytes)
        starts = list(zip(*timeline.start_us, strict=True))
        exits = list(zip(*timeline.exit_us, strict=True))
    else:
        nested = simulate_nested(pipeline, NestedSchedule(tuple(map(tuple, levels))))
        starts, exits = nested.start_us, nested.exit_us
    rows = tuple(
        GanttRow(name, tuple(zip(start, end, strict=True)))
        for name, start, end in zip(names, starts, exits, strict=True)
    )
    return Chart(rows, bottleneck, pipeline.delay_us)


def machine_chart_of(timeline: MachineTimeline) -> Chart:
    """Return the chart of a machine's timeline: a row for each lane that is used. O(blocks)."""
    rows = tuple(
        GanttRow(row.name, tuple(zip(row.start_us, row.exit_us, strict=True)))
        for row in timeline.stages
    )
    return Chart(rows, timeline.busiest_stage, timeline.delay_us)


def draw(chart: Chart, *, width: int, ink: Ink = UNICODE) -> list[str]:
    """Return the chart as lines of at most `width` columns (at least 40)."""
    width = max(MIN_WIDTH, width)
    longest = max(width_of(row.name) for row in chart.rows)
    label = min(longest, _MAX_NAME, width // 3)
    columns = width - _MARK_WIDTH - label - 1
    end_us = chart.end_us
    lines = []
    for place, row in enumerate(chart.rows):
        mark = ink.bottleneck if place == chart.bottleneck else " "
        name = fit_to(row.name, label, cut_off=ink.cut_off)
        lines.append(f"{mark} {name} {paint(row, end_us, columns, ink)}".rstrip())
    indent = " " * (_MARK_WIDTH + label + 1)
    return [*lines, indent + _axis(end_us, columns, ink), *_delay_note(chart, indent, ink)]


def paint(row: GanttRow, end_us: float, columns: int, ink: Ink = UNICODE) -> str:
    """Return one row of `columns` characters for the time from 0 to `end_us`."""
    whole_us = end_us or 1.0  # a message may take no time at all
    cells = [" "] * columns
    touching = [0] * columns
    hidden: list[int] = []
    for index, (start_us, stop_us) in enumerate(row.blocks):
        start, stop = start_us / whole_us * columns, stop_us / whole_us * columns
        first, last = min(int(start), columns - 1), min(int(stop), columns - 1)
        # Columns whose centre lies inside the block are those of which it covers half or more,
        # short blocks aside.
        left, right = round(start), min(round(stop), columns)
        cells[left:right] = ink.fills[index % 2] * (right - left)
        if right <= left:
            hidden.append((first + last) // 2)
        if first == last:
            touching[first] += 1
    for column in hidden:
        if cells[column] == " ":
            cells[column] = ink.thin
    for column, count in enumerate(touching):
        if count > _MAX_DISTINCT_BLOCKS:
            cells[column] = ink.dense
    return "".join(cells)


def _axis(end_us: float, columns: int, ink: Ink) -> str:
    left, right = f"0 {ink.micro}", _time(end_us, ink)
    middle = _time(end_us / 2, ink)
    start = (columns - len(middle)) // 2
    if len(left) + len(middle) + len(right) + 4 <= columns and end_us > 0.0:
        left = left.ljust(start) + middle
    return left + right.rjust(columns - len(left))


def _time(time_us: float, ink: Ink) -> str:
    return format_time(time_us).replace("µs", ink.micro)


def _delay_note(chart: Chart, indent: str, ink: Ink) -> list[str]:
    if chart.delay_us <= 0.0:
        return []
    delay = format_given_time(chart.delay_us).replace("µs", ink.micro)
    return [f"{indent}and then {delay} of constant delay"]
