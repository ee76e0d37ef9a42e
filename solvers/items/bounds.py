"""Lower bounds on cuts of items: what follows a label, and any cut at all.

Source    docs/theory.md, "Items", bounds.
Notation  m items, n stages; columns u = 0 .. m: items u+1 .. m are still to be done; g', G': a line
          below a stage's cost with g' >= 0; (a, b): two stages, the others between them M.
Cost      O(m n), and O(m K) for each pair of stages; some runs of the solver of any byte.
Exact     each is below every admitted cut. One that leaves limits out is lower, and still one.
Traps     only lines with an overhead that is not negative may be counted once for several
          fragments. A stage's cost may fall with size: what a fragment takes at least is over all
          sizes from its first item on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, inf

import numpy as np
from numpy.typing import NDArray

from contract.limits import MAX_NS_PER_BYTE, MAX_STAGES
from domain.errors import StrategyDeclined
from domain.items import ItemCut, ItemProblem
from domain.machine import Machine, StageRules
from domain.model import CostModel
from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import FragmentLimits, problem_of
from domain.solution import Solution, Strategy
from solvers.backends import backend_of
from solvers.contract import Deadline, SolveOptions
from solvers.items.arrays import arrays_of, item_kernels
from solvers.kernels.items import LabelBounds

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Line = tuple[float, float]  # µs a fragment, µs a byte

_PAIR_WORK = 2e7  # cells of all pairs together
_MAX_PAIR_FRAGMENTS = 400
_MAX_CURVE_LINES = 8  # below the ready curve, that are solved for
_BYTES_S, _BYTES_GAP = 0.1, 1e-3  # of one run of the solver of any byte
_WINDOW_LINES, _WINDOWS_S = 3, 1.0  # lines for which it is run with windows, and time of each


def label_bounds(problem: ItemProblem, known_us: float) -> LabelBounds:
    """Return what follows a label at least; `known_us`, without the delay, is a known latency."""
    return _Following(problem).bounds(known_us)


def lower_bound_us(problem: ItemProblem, bounds: LabelBounds) -> float:
    """Return what these prove of every admitted cut, in µs, without the delay."""
    return max(float(bounds.rest_us[0, 0]), float(bounds.ready_rest_us[0]))


class _Following:
    """What items behind a label take at least."""

    def __init__(self, problem: ItemProblem) -> None:
        self._arrays = arrays_of(problem)
        self._stages, arrays = problem.pipeline.stages, self._arrays
        sizes = np.diff(arrays.ends_bytes)
        smallest, total = int(sizes.min()), int(arrays.ends_bytes[-1])
        self._lines = [_lines_below(stage, smallest, total) for stage in self._stages]
        self._rest_bytes = (arrays.ends_bytes[-1] - arrays.ends_bytes).astype(np.float64)
        self._fewest = self._fewest_behind()
        own = [self._own(place) for place in range(len(self._stages))]
        self._own_left = np.array([column[-1] - column for column in own])
        self._head = np.zeros_like(arrays.spent_us)
        for place, stage in enumerate(self._stages):
            self._head[place, 1:] = _min_us(stage, sizes) + np.diff(own[place])
        self._floor = np.array([_floor_us(lines) for lines in self._lines])
        tails = np.cumsum(self._head[::-1, -1])[::-1]  # of the last fragment, from a stage on
        self._behind = np.append(tails[1:], 0.0)

    def bounds(self, known_us: float) -> LabelBounds:
        """All of them."""
        arrays, count = self._arrays, len(self._stages)
        rest = np.array([self._work_us(place) for place in range(count)])
        rest += self._behind[:, None]
        windows = np.zeros((len(arrays.window_first), arrays.items + 1))
        for place, first in enumerate(arrays.window_first.tolist()):
            windows[place] = self._window_us(place)
            rest[first] = np.maximum(rest[first], windows[place])
            windows[place, self._fewest < arrays.window_places[place]] = -inf
        rest[:, -1] = 0.0
        most = int(_PAIR_WORK / (arrays.items * max(1, count * (count - 1) // 2)))
        for first in range(count):
            for last in range(first + 1, count):
                pair = self._pair_us(first, last, known_us, min(most, _MAX_PAIR_FRAGMENTS))
                rest[first, :-1] = np.maximum(rest[first, :-1], pair[:-1] + self._behind[last])
        for place in range(count - 2, -1, -1):
            through = self._head[place, 1:] + rest[place + 1, :-1]
            rest[place, :-1] = np.maximum(rest[place, :-1], through)
        by_item = arrays.ready_us[1:] + rest[0, :-1]
        ready = np.append(np.maximum.accumulate(by_item[::-1])[::-1], 0.0)
        left = arrays.spent_us[:, -1:] - arrays.spent_us + self._behind[:, None]
        left[:, -1] = 0.0
        is_rising = all(stage.rises for stage in self._stages)
        return LabelBounds(self._head, rest, ready, left, is_rising, self._floor, windows)

    def _own(self, place: int) -> Floats:
        """(m+1,) what the first items take by themselves in this stage, without its own cost."""
        arrays, stage = self._arrays, self._stages[place]
        own: Floats = arrays.spent_us[place]
        if stage.is_line:
            own = own - stage.ranges[0].ns_per_byte * arrays.ends_bytes / 1000.0
        return own

    def _work_us(self, place: int) -> Floats:
        """(m+1,) what one stage spends on the items that are left."""
        of_lines = (
            each * self._fewest + per * self._rest_bytes for each, per in self._lines[place]
        )
        work: Floats = np.maximum.reduce(list(of_lines)) + self._own_left[place]
        return work

    def _window_us(self, place: int) -> Floats:
        """(m+1,) what the window of this place lets the items that are left take at least, from
        when it has a place: of b, those whose fragments take most of it.

        Fragments b apart wait for each other, and so does all that they take between the window's
        ends, and the way back in between; some stage behind its last one follows.
        """
        arrays = self._arrays
        first, last = int(arrays.window_first[place]), int(arrays.window_last[place])
        places, back_us = int(arrays.window_places[place]), float(arrays.window_return_us[place])
        through = sum(
            (self._work_us(stage) for stage in range(first, last + 1)),
            np.zeros(arrays.items + 1),
        )
        through += back_us * np.maximum(0.0, self._fewest - places)
        behind_us = float(self._head[last + 1 :, 1:].min(axis=1, initial=inf).sum())
        return through / places + behind_us

    def _fewest_behind(self) -> Floats:
        """(m+1,) the fewest fragments that the items which are left need."""
        earliest, items = self._arrays.earliest, self._arrays.items
        fewest = np.ones(items + 1)
        fewest[-1] = 0.0
        if earliest.any():
            longest = np.searchsorted(earliest[1:], np.arange(items), side="right").tolist()
            counts = [0] * (items + 1)
            for item in range(items - 1, -1, -1):
                counts[item] = 1 + counts[longest[item]]
            fewest = np.array(counts, dtype=np.float64)
        return fewest

    def _pair_us(self, first: int, last: int, known_us: float, most: int) -> Floats:
        """(m+1,) two stages that handle one fragment at a time, those between any number."""
        lines = [self._line_for_many(place) for place in range(first, last + 1)]
        spent = [
            per * self._arrays.ends_bytes + self._own_left[place][0] - self._own_left[place]
            for place, (_, per) in enumerate(lines, start=first)
        ]
        parts = np.array([spent[0], sum(spent[1:-1], np.zeros_like(spent[0])), spent[-1]])
        overheads = (lines[0][0], sum(each for each, _ in lines[1:-1]), lines[-1][0])
        highest, counted = max(overheads[0], overheads[2]), self._arrays.max_fragments
        if highest > 0.0:
            counted = min(counted, ceil(min(known_us / highest, 1e9)) + 1)
        tried = max(1, min(counted, most))
        rest = item_kernels().pair_rest_us(overheads, parts, tried)
        if tried < counted:  # more fragments, by their overheads alone
            each_us = [
                (tried + 1) * overhead + part[-1] - part
                for overhead, part in ((overheads[0], parts[0]), (overheads[2], parts[2]))
            ]
            rest = np.minimum(rest, np.maximum(*each_us))
        return rest

    def _line_for_many(self, place: int) -> Line:
        """The line of a stage that is dearest for a fragment of middling size."""
        count = max(1.0, float(np.sqrt(self._arrays.items)))
        size = float(self._rest_bytes[0]) / count
        return max(self._lines[place], key=lambda line: line[0] + line[1] * size)


def _lines_below(stage: Stage, smallest: int, largest: int) -> list[Line]:
    """Lines below the stage's cost at these sizes, with overheads that are not negative."""
    if stage.is_line:
        return [(stage.ranges[0].overhead_us, stage.ranges[0].ns_per_byte / 1000.0)]
    points = stage.minorant_points(smallest, largest)
    lines = [(0.0, min(us / size for size, us in points)), (min(us for _, us in points), 0.0)]
    for (size, us), (next_size, next_us) in pairwise(points):
        per_byte = (next_us - us) / (next_size - size)
        if per_byte >= 0.0 and us - per_byte * size >= 0.0:
            lines.append((us - per_byte * size, per_byte))
    return lines


def _floor_us(lines: list[Line]) -> float:
    """What any fragment takes in a stage, beside what its bytes take where that is one line."""
    return max(each for each, _ in lines)


def _min_us(stage: Stage, sizes: Ints) -> Floats:
    """What a fragment of each of these sizes, or any larger one, takes at least."""
    floor, start = np.full(len(sizes), inf), 0.0
    for part in stage.ranges:
        end = inf if part.up_to_bytes is None else part.up_to_bytes
        here = part.overhead_us + part.ns_per_byte * np.maximum(sizes, start) / 1000.0
        floor = np.where(sizes <= end, np.minimum(floor, here), floor)
        start = end
    return floor


@dataclass(frozen=True, slots=True)
class AnyByte:
    """A bound by cuts at any byte, in µs, without the delay, and its cut at the nearest ends of
    items; None without one that the limits admit.
    """

    bound_us: float
    cut: ItemCut | None


_NOTHING = AnyByte(0.0, None)


def any_byte(problem: ItemProblem, deadline: Deadline) -> AnyByte:
    """Return a bound by cuts at any byte, without windows, and what is near the cut behind it.

    Each line below the ready curve is a front stage: fragments are no later than it. What items
    take by themselves counts by the least of it a byte.
    """
    curve = _curve(problem)
    lines = curve[:: -(-len(curve) // _MAX_CURVE_LINES)]
    plain = replace(problem, windows=())
    return max(_by_lines(plain, lines, _BYTES_S, deadline), key=_bound_us, default=_NOTHING)


def any_byte_in_windows(problem: ItemProblem, deadline: Deadline) -> AnyByte:
    """Return the same within windows of fragments, by the lines that bound best without them."""
    curve = _curve(problem)
    lines = curve[:: -(-len(curve) // _MAX_CURVE_LINES)]
    if len(lines) > _WINDOW_LINES:
        plain = replace(problem, windows=())
        by_line = zip(_by_lines(plain, lines, _BYTES_S, deadline), lines, strict=False)
        ranked = sorted(by_line, key=lambda found: -found[0].bound_us)
        lines = [line for _, line in ranked[:_WINDOW_LINES]]
    return max(_by_lines(problem, lines, _WINDOWS_S, deadline), key=_bound_us, default=_NOTHING)


def _bound_us(found: AnyByte) -> float:
    return found.bound_us


def _curve(problem: ItemProblem) -> list[Line]:
    arrays = arrays_of(problem)
    return _lines_below_curve(arrays.ends_bytes, arrays.ready_us)


def _by_lines(
    problem: ItemProblem, lines: Sequence[Line], line_s: float, deadline: Deadline
) -> Iterator[AnyByte]:
    """Yield what each of these lines bounds; of those for which there is no time, nothing."""
    sizes = np.diff(arrays_of(problem).ends_bytes)
    stages = tuple(
        _with_items(stage, column, sizes)
        for stage, column in zip(problem.pipeline.stages, problem.item_us, strict=True)
    )
    for start_us, us_per_byte in lines:
        left_s = deadline.remaining_s
        if left_s <= 0.0:
            return
        options = SolveOptions(_BYTES_GAP, min(line_s, left_s))
        found = _at_any_byte(problem, stages, 1000.0 * us_per_byte, options)
        if found is None:
            yield _NOTHING
        else:
            cut = _nearest(problem, found.schedule.fragment_bytes)
            yield AnyByte(start_us + found.lower_bound_us, cut)


def _nearest(problem: ItemProblem, fragment_bytes: tuple[int, ...]) -> ItemCut | None:
    ends = arrays_of(problem).ends_bytes
    wanted = np.cumsum(fragment_bytes)
    behind = np.searchsorted(ends, wanted)
    is_before = wanted - ends[behind - 1] < ends[behind] - wanted
    items = set((behind - is_before).tolist()) | {len(problem.sequence)}
    cut = tuple(sorted(items - {0}))
    return cut if problem.admits(cut) else None


def _at_any_byte(
    problem: ItemProblem, stages: tuple[Stage, ...], ns_per_byte: float, options: SolveOptions
) -> Solution | None:
    if ns_per_byte > MAX_NS_PER_BYTE or len(stages) == MAX_STAGES:
        return None
    windows = problem.windows
    if ns_per_byte > 0.0:
        stages = (Stage.of_line("ready", overhead_us=0.0, ns_per_byte=ns_per_byte), *stages)
        windows = tuple(
            replace(window, first=window.first + 1, last=window.last + 1) for window in windows
        )
    cap = problem.most_bytes
    if cap is not None and cap < max(problem.sequence.item_bytes):
        cap = None  # items above it are sent whole
    limits = FragmentLimits(max_fragment_bytes=cap, max_fragments=problem.max_fragments)
    model: CostModel = Pipeline(stages)
    if windows:
        model = Machine(Pipeline(stages), (StageRules(),) * len(stages), windows)
    asked = problem_of(
        model, problem.sequence.total_bytes, limits, fragment_cap=len(problem.sequence)
    )
    try:
        return backend_of(asked.model).solve(asked, Strategy.EXACT, options)
    except StrategyDeclined:
        return None


def _with_items(stage: Stage, column: tuple[float, ...] | None, sizes: Ints) -> Stage:
    """The stage with what items take there by themselves, the least of it a byte."""
    if column is None:
        return stage
    ns_per_byte = 1000.0 * float((np.array(column) / sizes).min())
    ranges = tuple(
        FitRange(
            part.overhead_us,
            min(part.ns_per_byte + ns_per_byte, MAX_NS_PER_BYTE),
            part.up_to_bytes,
        )
        for part in stage.ranges
    )
    return Stage(stage.name, ranges)


def _lines_below_curve(ends_bytes: Ints, ready_us: Floats) -> list[Line]:
    """(µs, µs a byte) of lines at or below the ready time at the end of every item: the edges of
    the greatest convex function below, and the level one from its first point.
    """
    hull: list[tuple[float, float]] = []
    for point in zip(ends_bytes[1:].tolist(), ready_us[1:].tolist(), strict=True):
        while len(hull) > 1 and _is_above(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    lines = [(hull[0][1], 0.0)]
    for (size, us), (next_size, next_us) in pairwise(hull):
        per_byte = (next_us - us) / (next_size - size)
        start_us = us - per_byte * size
        if per_byte > 0.0:
            lines.append((start_us, per_byte))
    return lines


def _is_above(
    left: tuple[float, float], middle: tuple[float, float], right: tuple[float, float]
) -> bool:
    """Whether the middle point is on or above the line from left to right."""
    return (middle[1] - left[1]) * (right[0] - left[0]) >= (right[1] - left[1]) * (
        middle[0] - left[0]
    )
