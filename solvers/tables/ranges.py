"""Plan tables for stages with several fit ranges: structures, and bounds over all of them.

Source    own derivation; docs/format.md, docs/theory.md sec. 7.
Notation  structure: a region (solvers/ranges/regions.py) for each fragment; B: message;
          k fragments; a span: the sizes from one entry to the next, both included.
Cost      a linear program for each structure and size that is tried, some trees for each span.
Exact     both ends of a stretch have one structure, so every stage is one line a fragment between
          them: the latency there is at most the chord and what rounding adds. It is compared with
          bounds over every cut of every count (solvers/ranges/bound.py).
Traps     which structure is best changes from size to size; the sizes at which it does are found by
          halving, and the stretch that starts there begins one byte further on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np

from domain.errors import SolverFailed
from domain.plan_table import FRACTION_BITS, TableCut
from domain.problem import Problem
from domain.schedule import latency_us
from domain.solution import Strategy, relative_excess
from solvers.contract import Deadline, SolveOptions
from solvers.heuristics.fixed import best_count
from solvers.kernels.native_dual import MAX_TREE_REGIONS
from solvers.ranges.bound import CountPlanes, Found, Span, SpanBound, SpanTrees
from solvers.ranges.improve import improved
from solvers.ranges.regions import (
    Boxed,
    Cut,
    Node,
    NodeSolver,
    Regions,
    Structure,
    whole_cut_within,
)
from solvers.rounding import nearest_cut
from solvers.tables.budget import SolveOne
from solvers.tables.count_bounds import CountBounds, OpenCounts
from solvers.tables.cuts import reader_latencies_us
from solvers.tables.stretches import Stretch, StretchCompiler
from solvers.tables.structures import StructurePool

_WORK, _TIRED_WORK, _LAST_WORK = 3e8, 4e7, 1e7  # numbers that the trees of one stretch write
_MAX_WORK = 5e9  # of all stretches; then gaps are stated as reached, as where points are many
_MAX_POINTS = 3_000  # message sizes that are tried; then the gaps reached are stated
_MAX_SOLVES = 48  # linear programs for one count and span
_EASY_COUNTS, _EASY_FRAGMENTS, _EASY_SOLVES = 8, 64, 6  # where there are too many counts
_MAX_ALL_SOLVES = 12_000  # linear programs of a table; from there on few, and gaps as reached
_TIRED_RATIO = 1.1  # of the ends of spans then
_MAX_UNPROVEN = 200  # stretches of which nothing is proven that are halved all the same
_TRIES, _FEW_TRIES, _LAST_TRIES = 10, 2, 4  # better structures that are taken up for one span
_KEEPS = 0.25  # of the tolerance that an entry's own structure may lose against the best
_LAST_GAP = 0.1  # above which stretches are halved to _TIRED_RATIO, whatever was spent
_LAST_S, _LAST_SHARE = 12.0, 0.2  # when time is over: at most, and of what was taken before
_HALVINGS = 4  # of what is between a tolerance that is proven and one that is not
_NEAR = 1.02  # ratio of the ends of a span from which on its floor is looked at
_FLOOR_SLACK = 1.05
_EACH_BYTE_CELLS = 40_000  # k n bytes of a stretch up to which every byte size is evaluated
_MOVED_CELLS = 20_000  # that moves of whole units may evaluate
_MAX_ASKED, _ASKED_S = 8, 0.5  # optimisations of single messages that no cut is proven for
_FAR_S = 3600.0
_SAFE = 1e-12
_MAX_GAP = 1e300


@dataclass(frozen=True, slots=True)
class Entry:
    """A whole cut and its structure; `relative_gap` is proven of this very size, where it is."""

    cut: Cut
    structure: Structure
    relative_gap: float = np.inf


class RangeCompiler(StretchCompiler[Entry, TableCut]):
    """Compiles the cuts of one table, from the least message size upwards."""

    def __init__(
        self,
        problem: Problem,
        solve: SolveOne | None = None,
        *,
        min_message_bytes: int,
        max_message_bytes: int,
        tolerance: float,
    ) -> None:
        regions = Regions.of(problem.pipeline)
        super().__init__(
            regions, min_message_bytes=min_message_bytes, max_message_bytes=max_message_bytes
        )
        self._problem, self._solve, self._tolerance = problem, solve, tolerance
        self._counts = CountBounds(problem)
        self._asked = 0  # optimisations of single messages
        self._planes: dict[int, CountPlanes] = {}
        self._solver = NodeSolver(self._regions, problem.pipeline)
        self._solved: dict[tuple[Node, int], Boxed | None] = {}
        self._pool = StructurePool(self._solver, problem, self._leaf)
        self._wholes: dict[tuple[Structure, int], Cut | None] = {}
        self._alones: dict[int, Entry] = {}
        self._proposed: set[int] = set()
        self._tries = _TRIES if len(regions) <= MAX_TREE_REGIONS else _FEW_TRIES  # of planes
        self._are_many = False
        self._begun_s = time.monotonic()
        self._last: Deadline | None = None
        self.solves = self._unproven = 0
        self._work = 0.0

    def restart(self, tolerance: float) -> None:
        """Begin anew to this tolerance, with what is known of single messages and structures."""
        self._tolerance, self._entries, self._alones = tolerance, [], {}
        self._are_many, self._points, self.solves, self._unproven = False, 0, 0, 0
        self._work = 0.0

    def spend(self) -> None:
        """Take what little work proves from now on, and soon what closed forms prove."""
        taken_s = time.monotonic() - self._begun_s
        self._points = _MAX_POINTS + 1
        self._last = Deadline.after(min(_LAST_S, _LAST_SHARE * taken_s))

    @property
    def _is_over(self) -> bool:
        """Whether little work is left to each stretch."""
        return self._last is not None

    @property
    def _is_late(self) -> bool:
        """Whether closed forms alone are left: a program each would take minutes."""
        return self._last is not None and self._last.passed

    @property
    def is_spent(self) -> bool:
        """Whether more message sizes were asked for, or more work, than are tried."""
        return self._points > _MAX_POINTS or self._work > _MAX_WORK

    @property
    def _work_of_one(self) -> float:
        """Numbers that the trees of one stretch may write: few once all together wrote many."""
        if self._is_over:
            return _LAST_WORK
        return _WORK if self._work < _MAX_WORK else _TIRED_WORK

    # ---- one stretch -----------------------------------------------------------------------------

    def _tried(self, first: int, last: int, pending: Entry | None) -> Stretch[Entry] | None:
        short = last - first <= max(1, self._problem.limits.alignment_bytes // 4)
        tired = self.solves > _MAX_ALL_SOLVES and last <= first * _TIRED_RATIO
        final = short or tired or self.is_spent
        for tried in range(self._tries):
            ends = self._ends(first, last, pending)
            if ends is None:
                return None
            found = self._measured(first, last, ends, fully=final)
            is_last = self._is_late or (
                self._is_over and tried == min(_LAST_TRIES, self._tries - 1)
            )
            if found.better is not None and not is_last:
                if found.better in self._pool:  # one that suits a message within alone
                    break
                self._pool.add(found.better)
                continue
            relative_gap = min(_MAX_GAP, max(0.0, found.ratio - 1.0) + _SAFE)
            if final and relative_gap >= _MAX_GAP and self._unproven < _MAX_UNPROVEN:
                self._unproven += 1  # what takes no time may be had at single messages alone
                return None
            is_long = relative_gap > _LAST_GAP and last > first * _TIRED_RATIO and not self._is_late
            if relative_gap <= self._tolerance + 2.0 * _SAFE or (final and not is_long):
                return _stretch(ends, relative_gap)
            break
        if self._is_over or (last > first * _NEAR and not self._are_many):
            return None
        return self._as_good_as_it_gets(first, last, pending)

    def _as_good_as_it_gets(
        self, first: int, last: int, pending: Entry | None
    ) -> Stretch[Entry] | None:
        """The same where what is left of the gap is at the ends themselves already."""
        floor = max(self._floor(first), self._floor(last))
        ends = self._ends(first, last, pending)
        if floor <= self._tolerance + 4.0 * _SAFE or ends is None:
            return None
        wanted = _FLOOR_SLACK * floor
        found = self._measured(first, last, ends, fully=True, tolerance=wanted)
        if found.better is not None or found.ratio - 1.0 > wanted + _SAFE:
            return None
        return _stretch(ends, max(0.0, found.ratio - 1.0) + _SAFE)

    def _ends(self, first: int, last: int, pending: Entry | None) -> tuple[Entry, Entry] | None:
        """Whole cuts of the structure that is best over both ends, or of the pending one."""
        order = list[tuple[float, Structure]]()
        ranked = self._ranked(first, last)
        for excess, structure in ranked:
            order.append((excess, structure))
            if pending is None or excess > order[0][0] + _KEEPS * self._tolerance:
                break
            if structure == pending.structure:
                other = self._whole(structure, last)
                if other is not None:
                    return pending, Entry(other, structure)
        for _, structure in chain(order, ranked):
            one, other = self._whole(structure, first), self._whole(structure, last)
            if one is not None and other is not None:
                return Entry(one, structure), Entry(other, structure)
        return None

    def _ranked(self, first: int, last: int) -> Iterator[tuple[float, Structure]]:
        """Structures that suit both ends, by how far they are above the best known ones."""
        self._propose(first)
        self._propose(last)
        return self._pool.ranked(first, last)

    def _propose(self, size: int) -> None:
        """Structures of equal sizes: something to start with."""
        if size in self._proposed:
            return
        self._proposed.add(size)
        problem = self._at(size)
        counts = problem.count_range()
        for k in (counts.minimum, best_count(problem)):
            self._pool.add(self._regions.structure_of(np.full(k, size / k)))

    def _measured(
        self,
        first: int,
        last: int,
        ends: tuple[Entry, Entry],
        *,
        fully: bool,
        tolerance: float | None = None,
    ) -> Found:
        """The proven quotient over every admitted cut, or a structure that is better."""
        span = self._span(first, last, ends, tolerance or self._tolerance)
        counts, near = self._counts.open_counts(span), len(ends[0].cut)
        self._are_many = False
        if self._is_late:
            return Found(max(1.0 + span.tolerance, counts.ratio))
        trees = SpanTrees(self._regions, self._problem, span, self._work_of_one)
        best = trees.run(counts.open, near, fully=fully, every=self._is_over)
        self._work += self._work_of_one - trees.work
        worst, rest = best.ratio, counts.beyond(trees.last_count)
        if not self._is_over and (best.better or (worst > 1.0 + span.tolerance and not fully)):
            return best
        if counts.open and counts.open[0] == 1 and trees.last_count:
            found = self._single(span)
            worst = max(worst, found.ratio)
            best = found if found.better is not None else best
            if found.better is not None and not self._is_over:
                return found
        if self._is_over:
            return replace(
                best, ratio=min(max(worst, rest.ratio), max(1.0 + span.tolerance, counts.ratio))
            )
        self._are_many = rest.are_many
        if self._are_many:
            better = self._better_near(near, span) if not trees.last_count else None
            return Found(np.inf, better) if better else Found(max(worst, rest.ratio))
        found = self._by_planes(span, rest, near, fully=fully)
        return replace(found, ratio=max(worst, found.ratio))

    def _by_planes(self, span: Span, counts: OpenCounts, near: int, *, fully: bool) -> Found:
        """Each count by planes of its own."""
        worst = 1.0 + span.tolerance
        for k in sorted(counts.open, key=lambda k: (abs(k - near), k)):
            found = self._bounded(k, span, fully=fully)
            if found.better is not None:
                return found
            worst = max(worst, found.ratio)
            if worst > 1.0 + span.tolerance and not fully:
                break
        return Found(worst)

    def _single(self, span: Span) -> Found:
        """The quotient over the message in one fragment, which is straight within a region."""
        one, other = self._regions.structure_of((span.first, span.last))
        if one != other:
            return Found(np.inf)
        line = float(self._regions.g[one].sum()), float(self._regions.G[one].sum())
        own = [(line[0] + line[1] * size) * (1.0 - _SAFE) for size in (span.first, span.last)]
        ratio = float(span.ratio(np.array(own[:1]), np.array(own[1:]))[0])
        is_better = ratio > (1.0 + span.tolerance) * (1.0 + 1e-9)
        return Found(ratio, (one,) if is_better else None)

    def _better_near(self, near: int, span: Span) -> Structure | None:
        """A structure of about as many fragments that is below the chord, where one is found."""
        for k in (near, near - 1, near + 1, *range(2, _EASY_COUNTS)):
            if 1 <= k <= _EASY_FRAGMENTS:
                found = self._bounded(k, span, fully=False, max_solves=_EASY_SOLVES)
                if found.better is not None:
                    return found.better
        return None

    def _bounded(self, k: int, span: Span, *, fully: bool, max_solves: int = _MAX_SOLVES) -> Found:
        if self.solves > _MAX_ALL_SOLVES:
            max_solves = min(max_solves, _EASY_SOLVES)
        planes = self._planes.get(k)
        if planes is None:
            planes = self._planes[k] = CountPlanes(self._regions, k)
        limits = self._problem.limits
        maximum = float(min(span.last, limits.max_fragment_bytes or span.last))
        minimum = float(min(limits.min_fragment_bytes, span.first)) if k > 1 else 0.0
        unit = limits.alignment_bytes
        bound = SpanBound(planes, span, (minimum, maximum), max_solves=max_solves, unit=unit)
        return bound.run(self._node, fully=fully)

    def _span(self, first: int, last: int, ends: tuple[Entry, Entry], tolerance: float) -> Span:
        cuts = ends[0].cut, ends[1].cut
        latency = [self._latency_us(cut) for cut in cuts]
        added = self._added_us(first, last, ends, (latency[0], latency[1]))
        delay_us = self._problem.pipeline.delay_us
        return Span(first, last, latency[0] + added, latency[1] + added, delay_us, tolerance)

    def _added_us(
        self, first: int, last: int, ends: tuple[Entry, Entry], latency: tuple[float, float]
    ) -> float:
        """The most that a reader's rounding adds to the chord; byte by byte where that is quick."""
        one, other = ends[0].cut, ends[1].cut
        if first == last or len(one) == 1:
            return 0.0
        n = len(self._problem.pipeline)
        if (last - first) * len(one) * n <= _EACH_BYTE_CELLS:
            sizes = np.arange(first, last, dtype=np.int64)
            values = reader_latencies_us(self._problem, one, other, sizes)
            chord = latency[0] + (latency[1] - latency[0]) * ((sizes - first) / (last - first))
            return max(0.0, float((values - chord).max())) + _SAFE * latency[1]
        unit = self._problem.limits.alignment_bytes if one[:-1] != other[:-1] else 0
        costs = float(self._regions.G[ends[0].structure[-1]].sum())
        trace = (last - first + 1) / 2.0**FRACTION_BITS * costs
        return self._regions.rounding_us(ends[0].structure, unit) + trace

    # ---- single sizes ----------------------------------------------------------------------------

    def _at(self, size: int) -> Problem:
        return replace(self._problem, message_bytes=size)

    def _node(self, node: Node, size: int) -> Boxed | None:
        if (node, size) not in self._solved:
            self.solves += 1
            self._solved[node, size] = self._solver.solve(self._at(size), node)
        return self._solved[node, size]

    def _leaf(self, structure: Structure, size: int) -> Boxed | None:
        """The best real sizes of this structure."""
        return self._node(tuple((r, r) for r in structure), size)

    def _whole(self, structure: Structure, size: int) -> Cut | None:
        if (structure, size) not in self._wholes:
            leaf = self._leaf(structure, size)
            self._wholes[structure, size] = (
                None
                if leaf is None
                else whole_cut_within(self._regions, self._at(size), structure, leaf.x)
            )
        return self._wholes[structure, size]

    def _latency_us(self, cut: Cut) -> float:
        return latency_us(self._problem.pipeline, cut)

    def _floor(self, size: int) -> float:
        """The gap of the best whole cut of one size: it stays, however one halves."""
        return self._alone(size).relative_gap

    def _alone(self, size: int) -> Entry:
        """The best whole cut at one size with what is proven of it; it is asked for again."""
        if size not in self._alones:
            self._alones[size] = self._alone_now(size)
        return self._alones[size]

    def _alone_now(self, size: int) -> Entry:
        ends = self._ends(size, size, None)
        for _ in range(4 * self._tries if ends else 0):
            assert ends is not None
            found = self._measured(size, size, ends, fully=True)
            if found.better is not None and found.better not in self._pool:
                self._pool.add(found.better)
                other = self._ends(size, size, None)
                ends = min(ends, other or ends, key=lambda pair: self._latency_us(pair[0].cut))
            elif found.better is not None and self._at(size).admits(found.cut):
                ends = (Entry(found.cut, found.better),) * 2
            elif found.better is None and found.ratio - 1.0 <= self._tolerance + 2.0 * _SAFE:
                return replace(ends[0], relative_gap=max(0.0, found.ratio - 1.0) + _SAFE)
            else:
                break
        known = [ends[0].cut] if ends else []
        for _, structure in islice(self._ranked(size, size), _TRIES):
            leaf = self._leaf(structure, size)
            if leaf is not None and self._problem.limits.alignment_bytes > 1:
                regions, problem = self._regions, self._at(size)
                cut = whole_cut_within(regions, problem, structure, leaf.x, has_room=False)
                known += [cut] if cut else []  # a reader rounds nothing here
        return self._moved(size, min(known, key=self._latency_us, default=None))

    def _moved(self, size: int, start: Cut | None) -> Entry:
        """The best whole cut that moves of whole units find from this one, or from equal sizes."""
        problem = self._at(size)
        if start is None:
            k = problem.count_range().minimum
            nearest = nearest_cut(problem, np.full(k, size / k))
            if nearest is None:
                raise SolverFailed(f"no whole-byte cut was found for {size} bytes")
            start = tuple(nearest.tolist())
        candidate, _ = improved(problem, start, Deadline.after(_FAR_S), cells=_MOVED_CELLS)
        cut = candidate.fragment_bytes
        structure = self._regions.structure_of(cut)
        self._pool.add(structure)
        entry = Entry(cut, structure)
        gap = self._proven(size, entry)
        entry = replace(entry, relative_gap=min(_MAX_GAP, max(0.0, gap) + _SAFE))
        is_binding = entry.relative_gap > _FLOOR_SLACK * self._tolerance
        if self._solve is None or not is_binding or self._asked >= _MAX_ASKED or self._is_over:
            return entry
        self._asked += 1
        return self._optimised(size, entry, self._solve)

    def _optimised(self, size: int, entry: Entry, solve: SolveOne) -> Entry:
        """The better of this entry and an optimisation's cut, with the better proof of both."""
        options = SolveOptions(relative_gap=self._tolerance, time_limit_s=_ASKED_S)
        found = solve(self._at(size), Strategy.EXACT, options)
        own_us, cut = self._latency_us(entry.cut), found.schedule.fragment_bytes
        bound_us = max(found.lower_bound_us, own_us / (1.0 + entry.relative_gap))
        if found.latency_us < own_us:
            structure = self._regions.structure_of(cut)
            self._pool.add(structure)
            entry, own_us = Entry(cut, structure), found.latency_us
        gap = min(_MAX_GAP, relative_excess(own_us, bound_us, bound_us) + _SAFE)
        return replace(entry, relative_gap=gap)

    def _proven(self, size: int, entry: Entry) -> float:
        """What is proven of an entry at its own size, at whatever tolerance that takes."""
        tolerance, failed = self._tolerance, 0.0
        while tolerance < 1e6:
            proven = self._proven_to(tolerance, size, entry)
            if proven < np.inf:
                break
            failed, tolerance = tolerance, 2.0 * tolerance
        else:
            return _MAX_GAP  # real sizes take nothing, or next to it: no quotient says more
        for _ in range(_HALVINGS if failed else 0):
            middle = 0.5 * (failed + proven)
            better = self._proven_to(middle, size, entry) if proven > failed else np.inf
            failed, proven = (middle, proven) if better >= proven else (failed, better)
        return proven

    def _proven_to(self, tolerance: float, size: int, entry: Entry) -> float:
        """The same where no real sizes are better by more than this; infinite where some are."""
        found = self._measured(size, size, (entry, entry), fully=True, tolerance=tolerance)
        return np.inf if found.better is not None else found.ratio - 1.0

    def _is_same(self, end: Entry, pending: Entry) -> bool:
        return end.cut == pending.cut

    def _add(self, message: int, end: Entry, relative_gap: float) -> None:
        latency = self._latency_us(end.cut)
        self._entries.append(TableCut(message, end.cut, latency, relative_gap))

    def _close(self, message: int, pending: Entry | None) -> None:
        entry = pending or self._alone(message)
        self._add(message, entry, entry.relative_gap)


def _stretch(ends: tuple[Entry, Entry], relative_gap: float) -> Stretch[Entry]:
    return Stretch(ends[0], replace(ends[1], relative_gap=relative_gap), relative_gap)
