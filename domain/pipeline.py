"""Stages and pipelines.

A stage is a store-and-forward resource that handles one fragment at a time. Its time for a
fragment of x bytes is overhead_us + ns_per_byte * x / 1000 (Wang98 sec. 2: g and G), or one such
line for each range of fragment sizes. Costs are asked of the stage.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import ClassVar

from contract.limits import (
    MAX_MESSAGE_BYTES,
    MAX_NAME_LENGTH,
    MAX_NS_PER_BYTE,
    MAX_OVERHEAD_US,
    MAX_RANGES,
    MAX_STAGES,
)
from domain.derived import Derived
from domain.errors import InvalidStage


@dataclass(frozen=True, slots=True)
class Line:
    """A cost line: overhead_us (µs per fragment) and ns_per_byte (ns per byte)."""

    overhead_us: float
    ns_per_byte: float

    def time_us(self, fragment_bytes: float) -> float:
        """Return the time in µs for one fragment of this many bytes."""
        return self.overhead_us + self.ns_per_byte * fragment_bytes / 1000.0


@dataclass(frozen=True, slots=True)
class FitRange:
    """One line and the greatest fragment size it covers, inclusive; None means without end."""

    overhead_us: float
    ns_per_byte: float
    up_to_bytes: int | None = None

    def __post_init__(self) -> None:
        check_cost("overhead_us", self.overhead_us, MAX_OVERHEAD_US)
        check_cost("ns_per_byte", self.ns_per_byte, MAX_NS_PER_BYTE)
        object.__setattr__(self, "overhead_us", float(self.overhead_us) + 0.0)  # also turns -0 to 0
        object.__setattr__(self, "ns_per_byte", float(self.ns_per_byte) + 0.0)
        end = self.up_to_bytes
        if end is None:
            return
        if not _is_whole(end):
            raise InvalidStage("expected up_to_bytes to be a whole number", field="up_to_bytes")
        if not 1 <= end <= MAX_MESSAGE_BYTES:
            raise InvalidStage(
                f"expected 1 <= up_to_bytes <= {MAX_MESSAGE_BYTES}, got {end}", field="up_to_bytes"
            )

    @property
    def line(self) -> Line:
        """The cost line of this range."""
        return Line(self.overhead_us, self.ns_per_byte)


@dataclass(frozen=True, slots=True)
class Stage:
    """One step: a name and its fit ranges, ascending, the last without end.

    Its fragments are handed on when they are complete, or, with `handoff_bytes`, as their bytes
    move, so many at a time; of the last stage that means nothing. `Stage.of_line` makes a stage of
    one line. Raises InvalidStage.
    """

    name: str
    ranges: tuple[FitRange, ...]
    handoff_bytes: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= MAX_NAME_LENGTH:
            raise InvalidStage(
                f"expected a name of 1 to {MAX_NAME_LENGTH} characters", field="name"
            )
        if not 1 <= len(self.ranges) <= MAX_RANGES:
            raise InvalidStage(f"expected 1 to {MAX_RANGES} ranges", field="ranges")
        ends = [part.up_to_bytes for part in self.ranges]
        if ends[-1] is not None:
            raise InvalidStage("the last range must be open (up_to_bytes null)", field="ranges")
        if any(end is None for end in ends[:-1]):
            raise InvalidStage("only the last range may be open", field="ranges")
        if any(not left < right for left, right in pairwise(_known(ends))):
            raise InvalidStage("up_to_bytes must increase from range to range", field="ranges")
        if self.handoff_bytes is not None:
            _check_handoff(self.handoff_bytes)

    @classmethod
    def of_line(
        cls, name: str, *, overhead_us: float, ns_per_byte: float, handoff_bytes: int | None = None
    ) -> Stage:
        """Return a stage whose cost is one line at every fragment size."""
        return cls(name, (FitRange(overhead_us, ns_per_byte),), handoff_bytes)

    @property
    def is_line(self) -> bool:
        """Whether one line covers every fragment size."""
        return len(self.ranges) == 1

    @property
    def rises(self) -> bool:
        """Whether a byte more never takes less: no range begins below the end of the one before."""
        for before, behind in pairwise(self.ranges):
            end = before.up_to_bytes or 0
            if behind.line.time_us(end + 1) < before.line.time_us(end):
                return False
        return True

    def range_at(self, fragment_bytes: float) -> FitRange:
        """Return the range that holds this fragment size (ends are inclusive)."""
        for part in self.ranges:
            if part.up_to_bytes is None or fragment_bytes <= part.up_to_bytes:
                return part
        raise AssertionError("the last range is open")

    def time_us(self, fragment_bytes: float) -> float:
        """Return the time in µs that one fragment of this many bytes occupies the stage (Wang98:
        t_ij).
        """
        part = self.ranges[0] if len(self.ranges) == 1 else self.range_at(fragment_bytes)
        return part.overhead_us + part.ns_per_byte * fragment_bytes / 1000.0

    def times_us(self, fragment_bytes: Sequence[float]) -> list[float]:
        """Return the same of many fragments."""
        costs = [(part.overhead_us, part.ns_per_byte) for part in self.ranges]
        if self.is_line:
            overhead_us, ns_per_byte = costs[0]
            return [overhead_us + ns_per_byte * size / 1000.0 for size in fragment_bytes]
        ends = _known([part.up_to_bytes for part in self.ranges])
        parts = zip(
            fragment_bytes, (costs[bisect_left(ends, size)] for size in fragment_bytes), strict=True
        )
        return [
            overhead_us + ns_per_byte * size / 1000.0 for size, (overhead_us, ns_per_byte) in parts
        ]

    def visible_us(self, fragment_bytes: int, offset_bytes: int) -> float:
        """Return when the next stage may have the first bytes of a fragment, in µs after its start.

        The overhead comes first, then byte after byte at the stage's cost; they are seen in grains
        of `handoff_bytes` counted from the first one, and all of them at the end.
        """
        grain = self.handoff_bytes
        if grain is None:
            return self.time_us(fragment_bytes)
        seen = min(fragment_bytes, -(-offset_bytes // grain) * grain)
        part = self.range_at(fragment_bytes)
        return part.overhead_us + part.ns_per_byte * seen / 1000.0

    def line_over(self, min_bytes: float, max_bytes: float) -> Line | None:
        """Return the one line that covers these fragment sizes, or None where more than one range
        does.
        """
        first, last = self.range_at(min_bytes), self.range_at(max_bytes)
        return first.line if first is last else None

    def minorant_points(
        self, min_bytes: float, max_bytes: float
    ) -> tuple[tuple[float, float], ...]:
        """Return vertices (bytes, µs) of the greatest convex function below the cost on these
        sizes.

        A lower bound on a schedule may use this and nothing above it (a regressed line gives no
        bound). It is the lower hull of the ends of all pieces, each taken as a limit from inside
        its range. Vertices and not lines: a line's value far from its own ends is a difference of
        large numbers, and may come out above the cost.
        """
        if max_bytes <= min_bytes:
            return ((float(min_bytes), self.time_us(min_bytes)),)
        return tuple(_lower_hull(self._piece_ends(min_bytes, max_bytes)))

    def _piece_ends(self, minimum: float, maximum: float) -> list[tuple[float, float]]:
        points: list[tuple[float, float]] = []
        start = 0.0
        for part in self.ranges:
            end = maximum if part.up_to_bytes is None else float(part.up_to_bytes)
            low, high = max(start, minimum), min(end, maximum)
            if low <= high and start < maximum:  # a range begins above its start
                points += [(low, part.line.time_us(low)), (high, part.line.time_us(high))]
            start = end
        return points


@dataclass(frozen=True)
class Pipeline(Derived):
    """Ordered stages and a constant delay (µs) that occupies no stage. Raises InvalidStage."""

    kind: ClassVar = "stages"
    premise: ClassVar = ""

    stages: tuple[Stage, ...]
    delay_us: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= len(self.stages) <= MAX_STAGES:
            raise InvalidStage(f"expected 1 to {MAX_STAGES} stages", field="stages")
        check_cost("delay_us", self.delay_us, MAX_OVERHEAD_US)
        object.__setattr__(self, "delay_us", float(self.delay_us) + 0.0)

    def __len__(self) -> int:
        return len(self.stages)

    @cached_property
    def all_lines(self) -> bool:
        """Whether every stage is one line at every fragment size."""
        return all(stage.is_line for stage in self.stages)

    @cached_property
    def range_ends(self) -> tuple[int, ...]:
        """Sizes in bytes at which some stage passes to its next range, ascending."""
        return ends_of(self.stages)

    @cached_property
    def hands_on(self) -> bool:
        """Whether a stage hands its bytes on as they move."""
        return any(stage.handoff_bytes is not None for stage in self.stages)

    @property
    def without_handoffs(self) -> Pipeline:
        """The same with whole fragments handed on: what counts for cuts that all stages share, and
        what a table file holds.
        """
        if not self.hands_on:
            return self
        stages = tuple(Stage(stage.name, stage.ranges) for stage in self.stages)
        return Pipeline(stages, self.delay_us)

    def scaled(self, stage: int, *, overhead: float = 1.0, per_byte: float = 1.0) -> Pipeline:
        """Return the same with the two costs of a stage times these factors, in all its ranges.

        Raises InvalidStage for a stage that there is not, counted from 0, and for costs beyond what
        a stage may have.
        """
        if not 0 <= stage < len(self):
            raise InvalidStage("expected the number of a stage", field="stage")
        old = self.stages[stage]
        ranges = tuple(
            FitRange(one.overhead_us * overhead, one.ns_per_byte * per_byte, one.up_to_bytes)
            for one in old.ranges
        )
        new = Stage(old.name, ranges, old.handoff_bytes)
        return Pipeline((*self.stages[:stage], new, *self.stages[stage + 1 :]), self.delay_us)

    def may_cost(self, factor: float) -> bool:
        """Return whether all costs times this factor are costs that a stage may have."""
        return all(
            part.overhead_us * factor <= MAX_OVERHEAD_US
            and part.ns_per_byte * factor <= MAX_NS_PER_BYTE
            for stage in self.stages
            for part in stage.ranges
        )

    def costs(self) -> dict[str, tuple[Stage, ...]]:
        """Return the stages."""
        return {"stages": self.stages}

    def words(self) -> dict[str, object]:
        """Return nothing: the stages say all."""
        return {}

    def latency_us(self, fragment_bytes: Sequence[float]) -> float:
        """Return the latency T of this cut in µs, the delay included (Wang98 eq. 1-3).

        Sizes may be real: a schedule is priced before and after rounding by the same evaluator.
        O(k n) time, O(n) space.
        """
        exit_us = [0.0] * len(self.stages)  # tau[i, :] of the fragment in hand
        known, times_us = -1.0, exit_us  # t[i, :]; neighbours are often of one size
        for size in fragment_bytes:
            if size != known:
                known, times_us = size, self.times_us(size)
            ready_us = 0.0  # tau[i, j-1]
            for j, time_us in enumerate(times_us):
                free_us = exit_us[j]
                ready_us = exit_us[j] = (ready_us if ready_us > free_us else free_us) + time_us
        return exit_us[-1] + self.delay_us

    def times_us(self, fragment_bytes: float) -> list[float]:
        """Return the time in µs that one fragment of this size occupies each stage."""
        if self._lines is None:
            return [stage.time_us(fragment_bytes) for stage in self.stages]
        return [overhead + cost * fragment_bytes / 1000.0 for overhead, cost in self._lines]

    @cached_property
    def _lines(self) -> list[tuple[float, float]] | None:
        """(overhead_us, ns_per_byte) of every stage where all are lines: many sizes are priced."""
        if not self.all_lines:
            return None
        return [(stage.ranges[0].overhead_us, stage.ranges[0].ns_per_byte) for stage in self.stages]

    def equal_us(self, fragment_bytes: float, count: int) -> float:
        """Return the latency in µs of `count` fragments of this size, without the delay."""
        times = self.times_us(fragment_bytes)
        return sum(times) + (count - 1) * max(times)

    def bottleneck_at(self, fragment_bytes: float) -> int:
        """Return the index of the slowest stage for this fragment size; the first one of equals."""
        times = self.times_us(fragment_bytes)
        return times.index(max(times))

    def reversed(self) -> Pipeline:
        """Return the same stages in the opposite order (Wang98 sec. 4.1.1: reversibility)."""
        return Pipeline(self.stages[::-1], self.delay_us)


def pipeline_of_lines(
    lines: Sequence[tuple[str, float, float]], *, delay_us: float = 0.0
) -> Pipeline:
    """Return a pipeline from (name, overhead_us, ns_per_byte) rows."""
    stages = tuple(
        Stage.of_line(name, overhead_us=overhead, ns_per_byte=cost)
        for name, overhead, cost in lines
    )
    return Pipeline(stages, delay_us)


def stage_name(number: int) -> str:
    """Return what a stage without a name is called; the first one's number is 1."""
    return f"stage {number}"


def unique_names(names: Sequence[str | None]) -> tuple[str, ...]:
    """Return names of their own for stages, in their order.

    One without a name is called by its number; each that was there before has the next free number
    behind it: the second "copy" is "copy (2)".
    """
    given = [name or stage_name(place) for place, name in enumerate(names, start=1)]
    taken, found = set(given), list[str]()
    for place, name in enumerate(given):
        number, own = 2, name
        while (place and own in found) or (own != name and own in taken):
            ending = f" ({number})"
            own, number = name[: MAX_NAME_LENGTH - len(ending)] + ending, number + 1
        found.append(own)
    return tuple(found)


def ends_of(stages: Iterable[Stage]) -> tuple[int, ...]:
    """Return the sizes in bytes at which one of these passes to its next range, ascending."""
    ends = {part.up_to_bytes for stage in stages for part in stage.ranges}
    return tuple(sorted(end for end in ends if end is not None))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_handoff(handoff_bytes: int) -> None:
    if not _is_whole(handoff_bytes):
        raise InvalidStage("expected handoff_bytes to be a whole number", field="handoff_bytes")
    if not 1 <= handoff_bytes <= MAX_MESSAGE_BYTES:
        raise InvalidStage(
            f"expected 1 <= handoff_bytes <= {MAX_MESSAGE_BYTES}, got {handoff_bytes}",
            field="handoff_bytes",
        )


def check_cost(field: str, value: float, maximum: float) -> None:
    """Raise InvalidStage, naming the field, unless the value is a number from 0 to the greatest."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidStage(f"expected {field} to be a number", field=field)
    if not (isfinite(value) and 0.0 <= value <= maximum):
        raise InvalidStage(f"expected 0 <= {field} <= {maximum:g}, got {value!r}", field=field)


def _known(ends: Sequence[int | None]) -> list[int]:
    return [end for end in ends if end is not None]


def _lower_hull(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Lower convex hull by Andrew's monotone chain; at one abscissa only the lowest counts."""
    hull: list[tuple[float, float]] = []
    for point in sorted(points):
        if hull and hull[-1][0] == point[0]:
            continue
        while len(hull) >= 2 and _turns_down(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _turns_down(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])
