"""The course of a message that is cut between items: a row for its calculation, and one a stage.

Source    docs/theory.md, "Items": ready times are a stage in front without overheads.
Notation  k fragments of m items; rows are counted from 0.
Cost      O(k n), and O(items) for the borders inside a fragment.
Exact     the times are the evaluator's, `ItemProblem.simulate`; borders inside a fragment are where
          its items end if a stage takes its overhead first, and then byte after byte.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import sub

from domain.items import ItemCut, ItemProblem, ItemSequence
from domain.pipeline import Stage
from domain.timeline import StageTimeline, Timeline

CALCULATION = "calculation"


@dataclass(frozen=True, slots=True)
class Calculation(StageTimeline):
    """When the items of each fragment become ready, from those of the fragment before on."""


@dataclass(frozen=True, slots=True)
class ItemTimeline(Timeline):
    """`stages` are rows: first the calculation, where items are ready at times of their own."""

    cut: ItemCut
    sequence: ItemSequence
    item_us: tuple[tuple[float, ...] | None, ...]

    @property
    def has_calculation(self) -> bool:
        """Whether the first row is the calculation."""
        return isinstance(self.stages[0], Calculation)

    @property
    def number_of_stages(self) -> int:
        """How many stages there are, the calculation not counted."""
        return len(self.stages) - self.has_calculation

    @property
    def busiest_stage(self) -> int:
        """The row of the stage that is occupied longest; the calculation is none."""
        busy = [row.priced_us for row in self.stages[self.has_calculation :]]
        return busy.index(max(busy)) + self.has_calculation

    def items_of(self, fragment: int) -> range:
        """Return the items of a fragment."""
        return range(self.cut[fragment - 1] if fragment else 0, self.cut[fragment])

    def item_ends_us(self, row: int, fragment: int) -> list[float]:
        """Return when each item of a fragment is ready, or done by the stage of this row, in µs."""
        held, sequence = self.items_of(fragment), self.sequence
        if not row and self.has_calculation:
            return list(sequence.all_ready_us[held.start + 1 : held.stop + 1])
        here = self.stages[row]
        part = here.stage.range_at(here.fragment_bytes[fragment])
        begun_us = here.start_us[fragment] + part.overhead_us
        first, ends = sequence.ends_bytes[held.start], sequence.ends_bytes
        column = self.item_us[row - self.has_calculation]
        more = accumulate(column[held.start : held.stop]) if column else [0.0] * len(held)
        return [
            begun_us + part.ns_per_byte * (ends[item + 1] - first) / 1000.0 + us
            for item, us in zip(held, more, strict=True)
        ]


def item_timeline_of(problem: ItemProblem, cut: Sequence[int]) -> ItemTimeline:
    """Return the timeline of a cut. O(k n). Raises InvalidInput where it is none of these items."""
    times, sequence = problem.simulate(cut), problem.sequence
    sizes = sequence.fragment_bytes(cut)
    starts = list(zip(*times.in_stages.start_us, strict=True))
    exits = list(zip(*times.in_stages.exit_us, strict=True))
    rows = [
        _row(StageTimeline, stage, sizes, begun, ended)
        for stage, begun, ended in zip(problem.pipeline.stages, starts, exits, strict=True)
    ]
    if times.ready_us[-1] > 0.0:
        calculation = Stage.of_line(CALCULATION, overhead_us=0.0, ns_per_byte=0.0)
        begun = (0.0, *times.ready_us[:-1])
        rows.insert(0, _row(Calculation, calculation, sizes, begun, times.ready_us))
    return ItemTimeline(
        tuple(rows), problem.pipeline.delay_us, tuple(cut), sequence, problem.item_us
    )


def _row(
    kind: type[StageTimeline],
    stage: Stage,
    sizes: tuple[int, ...],
    starts: Sequence[float],
    exits: Sequence[float],
) -> StageTimeline:
    busy_us = sum(map(sub, exits, starts))
    return kind(
        stage,
        sizes,
        array("d", starts),
        array("d", exits),
        range(len(sizes)),
        tuple(sorted(set(sizes))),
        busy_us=busy_us,
        priced_us=busy_us,
        idle_us=sum(map(sub, starts[1:], exits[:-1])),
    )
