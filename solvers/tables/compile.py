"""All message sizes of a range at once: a plan table, certified at every byte.

Source    results sec. 5; docs/format.md.
Notation  B: message size; k fragments; entries at message sizes b; a stretch: the sizes from one
          entry to the next.
Cost      some exact solves for each entry, a few hundred entries for seven decades of sizes.
Exact     every stretch states a proven gap for every byte size in it, over every admitted cut. A
          stretch is halved until its gap is within the tolerance, or until what is left is the
          rounding to whole bytes at its own ends.
Traps     what the tolerance cannot be met for must not be refined for ever: the gap at both ends
          and the rounding are what no halving removes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from contract.limits import DEFAULT_TABLE_GAP
from domain.errors import InvalidInput, SolverFailed, StrategyDeclined, TimeLimitReached
from domain.hiding import HiddenBehind
from domain.pipeline import Pipeline, Stage
from domain.plan_table import (
    MAX_STRETCH_BYTES,
    PlanTable,
    TableCut,
    TableRepeat,
    check_table_gap,
    check_table_range,
)
from domain.problem import DEFAULT_FRAGMENT_CAP, FragmentLimits, Problem
from domain.schedule import latency_us
from domain.solution import relative_excess
from solvers.contract import Deadline
from solvers.line_problem import LineProblem
from solvers.rounding import round_cut
from solvers.tables.bound import Stretch
from solvers.tables.budget import (
    MARGIN,
    CompileProgress,
    Compiler,
    Entry,
    EvenCompilation,
    Memory,
    OneMessage,
    SolveOne,
)
from solvers.tables.cuts import (
    FINE_CELLS,
    Cut,
    has_room,
    no_slower,
    reader_latencies_us,
    rounding_us,
    shifts_fit,
    whole_cut,
)
from solvers.tables.points import HostCosts, Point, Solved, between, count_grid
from solvers.tables.range_repeat import RangeRepeatCompiler
from solvers.tables.ranges import RangeCompiler
from solvers.tables.repeat import RepeatCompiler

_NEIGHBOURS = 2  # counts of the grid on each side of the best that bound a stretch
_MORE_NEIGHBOURS = 6
_EACH_BYTE_CELLS = 400_000  # k n bytes of a stretch up to which every byte size is evaluated
_FIRST_RATIO = 2.0  # of the message sizes that are tried first
_MAX_POINTS = 4_000  # message sizes that are solved; then the gaps reached are stated
_FLOOR_SLACK = 1.05  # of the gap that no halving can remove
_UNIT_SHARE = 0.5  # of the greatest rounding to units, where these are greater than a byte
_SAFE = 1e-12
_MAX_GAP = 1e300  # where nothing is proven
_CUTS_SHARE = 0.7  # of the time, for schedules; what they leave is for repeated sizes
_FINISH_S = 60.0  # of either part after the limit, for what is taken as it is then
_SEARCH_SHARE = 0.4  # of the time left, for each part that is compiled again to looser tolerances


class CutCompiler:
    """Compiles the cuts of one table, from the least message size upwards."""

    def __init__(
        self,
        problem: Problem,
        host: HostCosts | None = None,
        *,
        min_message_bytes: int,
        max_message_bytes: int,
        tolerance: float,
    ) -> None:
        self._problem, self._host, self._tolerance = problem, host, tolerance
        self._minimum, self._maximum = min_message_bytes, max_message_bytes
        self._near = self._points = 0
        self._known, self._memory = Solved(), Memory()
        self._grid = count_grid(self._point(max_message_bytes).maximum)
        self._entries: list[TableCut] = []
        self._floors: dict[int, float] = {}
        self._bounds: dict[int, float] = {}
        self._rounded: dict[tuple[int, int], Cut | None] = {}

    def restart(self, tolerance: float) -> None:
        """Begin anew to this tolerance, with what is known of single messages and stretches."""
        self._tolerance, self._entries = tolerance, []
        self._near, self._points = 0, 1
        self._memory.open()

    def spend(self) -> None:
        """Take what is proven from now on, as where more message sizes were asked for."""
        self._points = _MAX_POINTS + 1

    @property
    def is_spent(self) -> bool:
        """Whether more message sizes were asked for than are tried."""
        return self._points > _MAX_POINTS

    def run(self, deadline: Deadline, reached: Callable[[int], None]) -> list[TableCut]:
        """Return the entries, ascending; `reached` is called with the message that it is at.

        Raises Infeasible and TimeLimitReached.
        """
        ahead = [self._point(size) for size in self._first_sizes()][::-1]
        here, pending = ahead.pop(), None
        while ahead:
            reached(here.size)
            if deadline.passed:
                raise TimeLimitReached("the plan table was not compiled within its time limit")
            last = ahead[-1]
            if last.size - here.size > MAX_STRETCH_BYTES:
                ahead.append(self._point(here.size + MAX_STRETCH_BYTES))
                continue
            alone = last.size - here.size == 1
            ends = None if alone else self._chosen(here, last, pending)
            if ends is None and not alone:
                ahead.append(self._point(between(here.size, last.size)))
            elif ends is None or (pending is not None and len(ends[0]) != len(pending)):
                self._close(here, pending or self._alone(here))
                here, pending = ahead.pop() if alone else self._point(here.size + 1), None
            else:
                relative_gap, floor = self._measured(here, last, ends)
                if self._is_done(relative_gap, floor, last.size - here.size):
                    self._add(here.size, pending or ends[0], relative_gap)
                    here, pending = ahead.pop(), ends[1]
                else:
                    ahead.append(self._point(between(here.size, last.size)))
        self._close(here, pending or self._alone(here))
        return self._entries

    # ---- points and counts -----------------------------------------------------------------------

    def _point(self, size: int) -> Point:
        self._points += 1
        return Point.of(replace(self._problem, message_bytes=size), self._host, self._known)

    def _first_sizes(self) -> list[int]:
        sizes = [self._minimum]
        while sizes[-1] < self._maximum:
            sizes.append(min(self._maximum, max(sizes[-1] + 1, int(sizes[-1] * _FIRST_RATIO))))
        return sizes

    def _counts(self, first: Point, last: Point, reach: int) -> list[int]:
        """The counts whose bounds a stretch rests on: around the best, and the least admitted."""
        self._near = first.nearby(self._grid, self._near)
        at = (self._near, last.nearby(self._grid, self._near))
        near = self._grid[max(0, min(at) - reach) : max(at) + reach + 1]
        ends = {k for k in (first.minimum, last.minimum) if k <= near[-1]}
        return sorted({*near, *ends})

    # ---- stretches -------------------------------------------------------------------------------

    def _chosen(self, first: Point, last: Point, pending: Cut | None) -> tuple[Cut, Cut] | None:
        key = ("ends", first.size, last.size, pending)
        return self._memory.of(key, lambda: self._chosen_now(first, last, pending))

    def _chosen_now(self, first: Point, last: Point, pending: Cut | None) -> tuple[Cut, Cut] | None:
        """Cuts of the count that is best over both ends; None where no count suits both.

        With units above a byte also cuts that differ in the last fragment alone: they need no room
        for rounding.
        """
        counts = self._counts(first, last, 0 if self._unit == 1 else 1)
        shared = [k for k in counts if first.solve(k) and last.solve(k)]
        shared.sort(key=lambda k: _excess(k, first, last))
        found = []
        for k in shared:
            keeps = pending is not None and len(pending) == k
            one = pending if keeps else self._whole(first, k)
            other = self._whole(last, k)
            if one is not None and other is not None and has_room(self._problem, one):
                found += [(one, other)] if shifts_fit(one, other, self._unit) else []
            if self._unit > 1:
                found += self._standing(first, last, k, pending if keeps else None)
            if found and self._unit == 1:
                return found[0]
        return min(found, key=lambda ends: self._measured(first, last, ends)[0], default=None)

    def _whole(self, point: Point, k: int) -> Cut | None:
        """A whole-byte cut of a count that was solved; every stretch that ends there asks for
        it.
        """
        if (point.size, k) not in self._rounded:
            self._rounded[point.size, k] = whole_cut(point.problem, point.solves[k].x)
        return self._rounded[point.size, k]

    def _standing(
        self, first: Point, last: Point, k: int, pending: Cut | None
    ) -> list[tuple[Cut, Cut]]:
        """Cuts whose last fragment alone grows over the stretch."""
        one = pending or round_cut(first.problem, first.solves[k].x)
        if one is None or k == 1:
            return []
        other = (*one[:-1], last.size - sum(one[:-1]))
        return [(one, other)] if last.problem.admits(other) else []

    def _measured(self, first: Point, last: Point, ends: tuple[Cut, Cut]) -> tuple[float, float]:
        """The proven gap of a stretch, and what no halving can remove of it."""
        key = ("gap", first.size, last.size, ends)
        return self._memory.of(
            key, lambda: self._measured_now(first, last, ends), holds=self._is_measured
        )

    def _is_measured(self, known: tuple[float, float]) -> bool:
        """What sufficed for a looser tolerance need not do for this one."""
        return known[0] <= self._tolerance or known[1] > 0.0

    def _measured_now(
        self, first: Point, last: Point, ends: tuple[Cut, Cut]
    ) -> tuple[float, float]:
        latency = self._latency_us(ends[0]), self._latency_us(ends[1])
        added = rounding_us(self._problem, ends[0], ends[1], last.size - first.size)
        delay_us = self._problem.pipeline.delay_us
        is_short = (last.size - first.size) * len(ends[0]) <= self._max_bytes
        for reach in (_NEIGHBOURS, _MORE_NEIGHBOURS):
            counts = self._counts(first, last, reach)
            stretch = Stretch.between(first, last, self._lines(last), counts)
            if is_short and added > self._tolerance * max(latency):  # no chord is within it
                ratio = 1.0 + self._each_byte(stretch, (first, last), ends)
            else:
                ratio = stretch.worst_ratio(
                    latency[0] - delay_us + added, latency[1] - delay_us + added, delay_us
                )
                if is_short and ratio - 1.0 + _SAFE > self._tolerance:
                    ratio = 1.0 + self._each_byte(stretch, (first, last), ends)
            if ratio < _MAX_GAP:
                break
        relative_gap = max(0.0, ratio - 1.0) + _SAFE
        if relative_gap <= self._tolerance:
            return relative_gap, 0.0
        floor = max(self._floor(point) for point in (first, last))
        if self._unit > 1:  # what rounding to units adds stays as well
            floor += _UNIT_SHARE * added / max(latency[0], 1e-300)
        return relative_gap, floor

    def _each_byte(
        self, stretch: Stretch, points: tuple[Point, Point], ends: tuple[Cut, Cut]
    ) -> float:
        """The greatest gap of what a reader computes, size by size; bounds of the ends are kept."""
        first, last = points
        sizes = np.arange(first.size, last.size, dtype=np.int64)
        latency = reader_latencies_us(self._problem, ends[0], ends[1], sizes)
        if self._host is not None:
            latency = self._host.longer_us(latency, len(ends[0]), sizes)
        every = stretch.lower_us(np.arange(first.size, last.size + 1, dtype=float))
        every += self._problem.pipeline.delay_us
        bound = every[:-1]
        for point, own_us in zip(points, (every[0], every[-1]), strict=True):
            if own_us > 0.0:
                self._bounds.setdefault(point.size, float(own_us))
        with np.errstate(all="ignore"):
            worst = np.argmax(np.where(bound > 0.0, (latency - bound) / bound, np.inf))
        return _excess_of(float(latency[worst]), float(bound[worst]))

    def _is_done(self, relative_gap: float, floor: float, length: int) -> bool:
        """Within the tolerance, or as good as halving can make it, or enough sizes were tried."""
        tried = self._points > _MAX_POINTS and np.isfinite(relative_gap)
        shortest = length <= max(1, self._unit // 4)
        return relative_gap <= max(self._tolerance, _FLOOR_SLACK * floor) or shortest or tried

    @property
    def _unit(self) -> int:
        return self._problem.limits.alignment_bytes

    @property
    def _max_bytes(self) -> int:
        return _EACH_BYTE_CELLS // len(self._problem.pipeline)

    def _lines(self, point: Point) -> LineProblem:
        lines = LineProblem.of(point.problem)
        if lines is None:
            raise StrategyDeclined("a plan table needs stages of one line", field="stages")
        return lines

    # ---- entries ---------------------------------------------------------------------------------

    def _latency_us(self, cut: Cut) -> float:
        """The latency of a cut, or what its host does meanwhile where that takes longer."""
        found = latency_us(self._problem.pipeline, cut)
        if self._host is None:
            return found
        return float(self._host.longer_us(np.array(found), len(cut), sum(cut)))

    def _add(self, size: int, cut: Cut, relative_gap: float) -> None:
        self._entries.append(TableCut(size, cut, self._latency_us(cut), relative_gap))

    def _close(self, point: Point, cut: Cut) -> None:
        """An entry that stands for its own message size alone."""
        bound = self._bound_us(point)
        self._add(point.size, cut, _excess_of(self._latency_us(cut), bound) + _SAFE)

    def _floor(self, point: Point) -> float:
        """The gap of the best whole cut at one size: it stays, however one halves."""
        if point.size not in self._floors:
            latency = self._latency_us(self._alone(point))
            self._floors[point.size] = _excess_of(latency, self._bound_us(point))
        return self._floors[point.size]

    def _bound_us(self, point: Point) -> float:
        """A bound over every cut of one message size, delay included."""
        if point.size not in self._bounds:
            self._bounds[point.size] = self._bound_now_us(point)
        return self._bounds[point.size]

    def _bound_now_us(self, point: Point) -> float:
        for reach in (_NEIGHBOURS, _MORE_NEIGHBOURS, len(self._grid)):
            counts = self._counts(point, point, reach)
            stretch = Stretch.between(point, point, self._lines(point), counts)
            bound = float(stretch.lower_us(np.array([float(point.size)]))[0])
            if bound > 0.0:
                break
        return bound + self._problem.pipeline.delay_us

    def _alone(self, point: Point) -> Cut:
        """The best whole cut at one size; here a reader interpolates nothing."""
        found, best_us = list[Cut](), np.inf
        solves = [point.solve(k) for k in self._counts(point, point, 1)]
        for solve in sorted((one for one in solves if one), key=lambda one: one.upper_us):
            below = max(line.at_us(point.size) for line in solve.lines)
            if below + self._problem.pipeline.delay_us > best_us:
                continue  # no whole bytes of it are better
            is_fine = self._unit == 1 and len(solve.x) * len(self._problem.pipeline) <= FINE_CELLS
            cut = self._whole(point, solve.k) if is_fine else round_cut(point.problem, solve.x)
            if cut is not None:
                found.append(cut)
                best_us = min(best_us, self._latency_us(cut))
        if not found:
            raise SolverFailed(f"no whole-byte cut was found for {point.size} bytes")
        return min(found, key=lambda cut: (self._latency_us(cut), len(cut)))


def _excess(k: int, first: Point, last: Point) -> float:
    """How far this count is above the best known one, at the worse of the two ends."""
    ratios = [
        point.solves[k].upper_us / max(1e-300, min(s.upper_us for s in point.solves.values()))
        for point in (first, last)
    ]
    return max(ratios)


def _excess_of(latency: float, bound: float) -> float:
    return relative_excess(latency, bound, bound)


def compile_table(
    pipeline: Pipeline,
    limits: FragmentLimits,
    *,
    min_message_bytes: int,
    max_message_bytes: int,
    relative_gap: float = DEFAULT_TABLE_GAP,
    fragment_cap: int = DEFAULT_FRAGMENT_CAP,
    time_limit_s: float = 60.0,
    behind: HiddenBehind | None = None,
    solve: SolveOne | None = None,
    on_progress: Callable[[float], None] = lambda share: None,
    on_loosened: Callable[[float], None] = lambda relative_gap: None,
    on_cut_off: Callable[[], None] = lambda: None,
    is_ended: Callable[[], bool] | None = None,
) -> PlanTable:
    """Return the plan table of a pipeline, limits, range of message sizes and tolerance.

    `on_progress` is called with the share done, 1 at the end alone, `on_loosened` with the gap
    that the cuts were compiled to, where the one asked for takes too many of them (theory.md,
    section 15), `on_cut_off` where time, or `is_ended`, ended the search: from some message size on
    the gaps are those reached by then. Where messages are hidden `behind` a calculation, the run
    time takes the place of the latency: of what cuts are chosen by, what entries state and what
    gaps are of (theory.md, section 19). A table of one message has the cut of `solve`, which is
    asked on stages with ranges wherever else nothing good is proven, for a few messages. Raises
    InvalidInput, Infeasible where no cut of some message size satisfies the limits,
    TimeLimitReached where not even that ends soon after, and StrategyDeclined for hidden messages
    where stages are no lines.
    """
    check_table_range(min_message_bytes, max_message_bytes)
    check_table_gap(relative_gap)
    deadline = Deadline.after(time_limit_s, is_ended)
    last = Deadline.after(time_limit_s + _FINISH_S)
    lines = as_lines(pipeline, limits, min_message_bytes, max_message_bytes)
    problem = Problem(lines or pipeline, max_message_bytes, limits, fragment_cap)
    over = Over(min_message_bytes, max_message_bytes, relative_gap * MARGIN)
    compiler, repeater = compilers(problem, over, behind, are_lines=lines is not None, solve=solve)
    if min_message_bytes == max_message_bytes and behind is None and solve is not None:
        compiler = OneMessage(replace(problem, pipeline=pipeline), relative_gap, solve)
    progress = CompileProgress(min_message_bytes, max_message_bytes, on_progress)
    even, even_repeats = (
        EvenCompilation(compiler, relative_gap),
        EvenCompilation(repeater, relative_gap),
    )
    even.first(deadline.share(_CUTS_SHARE), progress.cuts_at, last=last)
    left_s = max(deadline.remaining_s, (1.0 - _CUTS_SHARE) * time_limit_s)  # what was theirs
    last = Deadline.after(left_s + _FINISH_S)
    even_repeats.first(Deadline.after(left_s, is_ended), progress.repeats_at, last=last)
    if even.is_cut_off or even_repeats.is_cut_off:
        on_cut_off()
    cuts, loosened_gap = even.loosened(
        deadline.share(_SEARCH_SHARE), lambda size, before: progress.again(size, before / 2)
    )
    repeats, _ = even_repeats.loosened(
        deadline.share(2 * _SEARCH_SHARE),
        lambda size, before: progress.again(size, (1 + before) / 2),
    )
    if loosened_gap > relative_gap:
        on_loosened(loosened_gap)
    progress.end()
    if behind is not None:  # whatever the cut, this is over before: no gap grows by it
        cuts, repeats = _later(cuts, behind), _later(repeats, behind)
    elif not even.is_cut_off and not even_repeats.is_cut_off:
        cuts = no_slower(replace(problem, pipeline=pipeline), cuts, repeats)
    return PlanTable(
        pipeline=pipeline,
        limits=limits,
        fragment_cap=fragment_cap,
        min_message_bytes=min_message_bytes,
        max_message_bytes=max_message_bytes,
        relative_gap=relative_gap,
        cuts=tuple(cuts),
        repeats=tuple(repeats),
    )


def as_lines(
    pipeline: Pipeline, limits: FragmentLimits, min_message_bytes: int, max_message_bytes: int
) -> Pipeline | None:
    """The stages as the lines that they are over every admitted size, or None where one is not."""
    minimum = min(limits.min_fragment_bytes, min_message_bytes)
    maximum = min(limits.max_fragment_bytes or max_message_bytes, max_message_bytes)
    lines = [(stage.name, stage.line_over(minimum, maximum)) for stage in pipeline.stages]
    stages = tuple(
        Stage.of_line(name, overhead_us=line.overhead_us, ns_per_byte=line.ns_per_byte)
        for name, line in lines
        if line is not None
    )
    return Pipeline(stages, pipeline.delay_us) if len(stages) == len(lines) else None


class Over(NamedTuple):
    """The message sizes that compilers are for, and the tolerance."""

    min_message_bytes: int
    max_message_bytes: int
    tolerance: float


def compilers(
    problem: Problem,
    over: Over,
    behind: HiddenBehind | None,
    *,
    are_lines: bool,
    solve: SolveOne | None = None,
) -> tuple[Compiler[TableCut], Compiler[TableRepeat]]:
    """Return what compiles schedules and repeated sizes. Raises StrategyDeclined, InvalidInput."""
    options = over._asdict()
    if not are_lines:
        if behind is not None:
            raise StrategyDeclined(
                "a table of hidden messages needs stages that are one line over its sizes: narrow "
                "them, or fit lines",
                field="hidden",
            )
        return RangeCompiler(problem, solve, **options), RangeRepeatCompiler(problem, **options)
    stages = len(problem.pipeline)
    if behind is None:
        host = None
    elif all(0 <= j < stages for on in behind.processors for j in on):
        host = HostCosts.of(behind, problem.pipeline)
    else:
        raise InvalidInput("expected indices of stages", field="host_stages")
    return CutCompiler(problem, host, **options), RepeatCompiler(problem, host, **options)


def _later(entries: Sequence[Entry], behind: HiddenBehind) -> list[Entry]:
    return [
        replace(one, latency_us=one.latency_us + behind.before_us(one.message_bytes))
        if one.fragments
        else one  # none of the limits' cuts repeats a size
        for one in entries
    ]
