"""Cuts of items in plain Python: latencies, best cuts of one and two stages, layouts, labels.

Source    docs/theory.md, "Items"; the same in C: kernels/native/items.c, item_labels.c.
Notation  m items, n stages; (i, j]: the fragment of items i+1 .. j, counted from 1; f(j): when a
          stage has done items 1 .. j at the soonest; C: `spent_us`; F: the times of a label: of
          stages, then of each window when its last places but one are free, newest first.
Cost      a row O(m); a label O(its times) for each end that it is extended to.
Exact     the operations of the C code in its order: the same bits.
Traps     latencies are without the pipeline's delay.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.kernels.item_draws import ItemDraws, latencies_us

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ends = tuple[int, ...]

SAME = 1e-12  # latencies that differ by less, relative, are equal: fewer fragments win


@dataclass(frozen=True)
class ItemArrays:
    """A problem of items as kernels read it: of the first 0 .. m items in n stages.

    `ready_us`, `ends_bytes`, `earliest` (m+1); `spent_us` (n, m+1): costs without overheads, of a
    stage with several ranges those of the items alone; `overhead_us` (n) of stages of one line;
    `ranges`, `first_range` (n), and the ranges of all stages one behind the other. `earliest[j]` is
    the least i of an admitted fragment (i, j], at most j - 1. Windows (w): stages, fragments that
    one holds and bytes, in slots of a cut's greatest fragment, 0 for any, and when a place is back.
    """

    ready_us: Floats
    ends_bytes: Ints
    spent_us: Floats
    overhead_us: Floats
    ranges: Ints
    first_range: Ints
    range_ends_bytes: Floats
    range_overhead_us: Floats
    range_ns_per_byte: Floats
    earliest: Ints
    max_fragments: int
    window_first: Ints
    window_last: Ints
    window_places: Ints
    window_bytes: Ints
    window_return_us: Floats

    @property
    def items(self) -> int:
        """How many items there are."""
        return len(self.ready_us) - 1

    @property
    def stages(self) -> int:
        """How many stages there are."""
        return len(self.overhead_us)

    @property
    def label_times(self) -> int:
        """How many times a label has: of each stage, and of each window its places but one."""
        return self.stages + int((self.window_places - 1).sum())


@dataclass(frozen=True, slots=True)
class CapWalk:
    """How far a walk over the layouts of a cap has come, and the best admitted one so far.

    `next_cap` 0: it has ended; `latency_us` infinite: none was admitted; `to_bytes` 0: every
    greater cap gives it, too.
    """

    is_before: bool
    first_bytes: int
    next_cap: int
    last_cap: int
    layouts: int = 0
    latency_us: float = inf
    fragments: int = 0
    from_bytes: int = 0
    to_bytes: int = 0


@dataclass(frozen=True, eq=False)
class ListedLayouts:
    """Layouts of a walk, by rising caps: the least cap in bytes that gives each, how many fragments
    it has, and its latency in µs, infinite where it is not admitted; (layouts,) each.
    """

    from_bytes: Ints
    fragments: Ints
    latency_us: Floats


class CapStep(NamedTuple):
    """A layout, what it takes (infinite: it is not admitted, and fragments are 0), and the caps
    that give it; `to_bytes` 0: every greater one does.
    """

    fragments: int
    latency_us: float
    from_bytes: int
    to_bytes: int


@dataclass(frozen=True)
class LabelBounds:
    """Lower bounds on what follows a label, µs; columns u = 0 .. m, rows stages.

    `head_us` (n, m+1): what a fragment that begins with item u takes; `rest_us` (n, m+1): from when
    a stage may begin with item u+1 to the end; `ready_rest_us` (m+1): from 0 to the end, by the
    ready times of items u+1 .. m; `left_us` (n, m+1): what a stage, and those behind it, have to do
    once it has done u items. `is_rising`: no fragment takes less with an item more. `floor_us`
    (n,): what a fragment takes beside its `spent_us`; `window_rest_us` (w, m+1): from the mean of
    when a window's places are free to the end, -infinite where fewer fragments may be left.
    """

    head_us: Floats
    rest_us: Floats
    ready_rest_us: Floats
    left_us: Floats
    is_rising: bool
    floor_us: Floats
    window_rest_us: Floats


@dataclass(frozen=True, slots=True)
class LabelsFound:
    """The best cut below the target, infinite latency and no ends without one; no admitted cut
    takes less than the bound or the target.
    """

    latency_us: float
    ends: Ends
    bound_us: float
    work: int


class PlainItems:
    """The kernels of items in Python, called as those in C."""

    def latency_us(self, arrays: ItemArrays, ends: Sequence[int], most_us: float = inf) -> float:
        """Return the latency of this cut, or more than `most_us` once it is certain to be; infinite
        where a fragment does not fit a window.
        """
        free_us = [0.0] * arrays.stages
        cost = _costs(arrays)
        windows = _windows(arrays, _places(arrays, ends))
        if any(window.places < 1 for window in windows):
            return inf
        for fragment, (first, last) in enumerate(pairwise((0, *ends))):
            ready = float(arrays.ready_us[last])
            for stage, time_us in enumerate(cost(first, last)):
                start_us = max(ready, free_us[stage])
                for window in windows:
                    if window.first == stage and fragment >= window.places:
                        start_us = max(start_us, window.back_us[fragment - window.places])
                ready = free_us[stage] = start_us + time_us
            for window in windows:
                window.back_us.append(free_us[window.last] + window.return_us)
            if ready > most_us:
                break
        return free_us[-1]

    def one_stage(self, arrays: ItemArrays) -> Ends:
        """Return the best cut of one stage that takes no less for an item more, of any number of
        fragments.
        """
        done = [0.0] * len(arrays.ready_us)
        row = _row_of(arrays, 0)
        came = row.fill(done, arrays.ready_us.tolist(), done)
        ends, last = list[int](), arrays.items
        while last > 0:
            ends.append(last)
            last = came[last]
        return tuple(reversed(ends))

    def few(self, arrays: ItemArrays, most: int) -> Ends:
        """Return the same of at most so many fragments; none where that admits none."""
        return self._counted(arrays, most, 0)

    def two_stages(self, arrays: ItemArrays, most: int) -> Ends:
        """Return the best cut of two stages of a line each, without ready times, of at most so many
        fragments; none where that admits none.
        """
        return self._counted(arrays, most, 1)

    def _counted(self, arrays: ItemArrays, most: int, stage: int) -> Ends:
        row, count = _row_of(arrays, stage), len(arrays.ready_us)
        done = [0.0] + [inf] * arrays.items
        entry, came = arrays.ready_us.tolist(), list[list[int]]()
        front, overhead = arrays.spent_us[0].tolist(), float(arrays.overhead_us[0])
        best_us, best_count = inf, 0
        for fragments in range(1, most + 1):
            if stage:
                entry = [fragments * overhead + spent for spent in front]
            out = [0.0] * count
            here = row.fill(done, entry, out)
            if not stage:
                fewer = [j for j in range(count) if done[j] <= out[j]]
                for j in fewer:
                    out[j], here[j] = done[j], -1
            came.append(here)
            done = out
            if done[-1] < best_us:
                best_us, best_count = done[-1], fragments
        ends, last = list[int](), arrays.items
        for here in reversed(came[:best_count]):
            if 0 <= here[last] < last:
                ends.append(last)
            last = here[last] if here[last] >= 0 else last
        return tuple(reversed(ends))

    def pair_rest_us(
        self, overhead_us: tuple[float, float, float], spent_us: Floats, most: int
    ) -> Floats:
        """Return (m+1) what items u+1 .. m take at least in the first of three parts, which with
        the last handles one fragment at a time, where the one between handles any number, over 1 to
        `most` fragments. spent_us (3, m+1).
        """
        turned = (spent_us[:, -1:] - spent_us[:, ::-1]).tolist()
        count = len(turned[0])
        row = _Row.of(overhead_us[0], turned[0], middle=turned[1])
        done, rest = [0.0] + [inf] * (count - 1), np.full(count, inf)
        for fragments in range(1, most + 1):
            overheads = fragments * overhead_us[2] + overhead_us[1]
            entry = [overheads + turned[2][j] + turned[1][j] for j in range(count)]
            out = [0.0] * count
            row.fill(done, entry, out)
            done = out
            rest[:-1] = np.minimum(rest[:-1], done[:0:-1])
        rest[-1] = 0.0
        return rest

    def cap_steps(self, arrays: ItemArrays, walk: CapWalk) -> Iterator[CapStep]:
        """Yield each layout that is left of a walk."""
        while cap := walk.next_cap:
            walk = self.walk_caps(arrays, replace(walk, latency_us=inf, fragments=0, to_bytes=0), 1)
            last = walk.to_bytes if walk.fragments else max(0, walk.next_cap - 1)
            yield CapStep(walk.fragments, walk.latency_us, cap, last)

    def walk_caps(self, arrays: ItemArrays, walk: CapWalk, work: int) -> CapWalk:
        """Go on with a walk until about so many fragments were made."""
        while walk.next_cap and work > 0:
            ends = filled(arrays, walk, walk.next_cap)
            work -= len(ends)
            walk = self._walked(arrays, walk, ends)
        return walk

    def list_caps(
        self, arrays: ItemArrays, walk: CapWalk, work: int, room: int
    ) -> tuple[CapWalk, ListedLayouts]:
        """Go on with a walk until about so many fragments were made, or so many layouts listed."""
        caps, fragments, latencies = list[int](), list[int](), list[float]()
        while walk.next_cap and work > 0 and len(caps) < room:
            cap, ends = walk.next_cap, filled(arrays, walk, walk.next_cap)
            work -= len(ends)
            walk = self._walked(arrays, walk, ends)
            caps.append(cap)
            fragments.append(len(ends))
            latencies.append(self.latency_us(arrays, ends) if _admits(arrays, ends) else inf)
        return walk, ListedLayouts(np.array(caps), np.array(fragments), np.array(latencies))

    def laid_out(self, arrays: ItemArrays, walk: CapWalk, caps: Ints, fragments: Ints) -> Ints:
        """Return the ends of the layouts of these caps by the walk's rule, one behind the other;
        `fragments` are how many each has.
        """
        found = [end for cap in caps.tolist() for end in filled(arrays, walk, cap)]
        return np.array(found, dtype=np.int64)

    def in_draws_us(self, of: ItemDraws, fragments: Ints, ends: Ints) -> Floats:
        """Return the latencies in µs, (cuts, draws), delay included, of cuts of so many fragments,
        whose ends are one behind the other.
        """
        return latencies_us(of, fragments, ends)

    def _walked(self, arrays: ItemArrays, walk: CapWalk, ends: Ends) -> CapWalk:
        following = next_cap(arrays, walk, ends)
        walk, cap = (
            replace(
                walk,
                layouts=walk.layouts + 1,
                next_cap=following if following <= walk.last_cap else 0,
            ),
            walk.next_cap,
        )
        if not _admits(arrays, ends):
            return walk
        best_us, most_us = walk.latency_us, walk.latency_us * (1.0 + SAME)
        latency_us = self.latency_us(arrays, ends, most_us)
        is_same = latency_us >= best_us * (1.0 - SAME)
        if latency_us > most_us or (is_same and len(ends) >= walk.fragments):
            return walk
        return replace(
            walk,
            latency_us=latency_us,
            fragments=len(ends),
            from_bytes=cap,
            to_bytes=following - 1 if following else 0,
        )

    def labels(
        self, arrays: ItemArrays, bounds: LabelBounds, *, width: int, target_us: float
    ) -> PlainLabels:
        """Begin a search for cuts below the target, with at most `width` labels an item."""
        return PlainLabels(arrays, bounds, width, target_us)


@dataclass(slots=True)
class _Slots:
    """A window, the fragments that it holds, and when the place of each is free again."""

    first: int
    last: int
    places: int
    return_us: float
    back_us: list[float]


def _windows(arrays: ItemArrays, places: Sequence[int]) -> list[_Slots]:
    return [
        _Slots(*window, [])
        for window in zip(
            arrays.window_first.tolist(),
            arrays.window_last.tolist(),
            places,
            arrays.window_return_us.tolist(),
            strict=True,
        )
    ]


def _places(arrays: ItemArrays, ends: Sequence[int]) -> list[int]:
    """How many fragments of this cut each window holds, counted at the greatest one."""
    sizes = arrays.ends_bytes[[0, *ends]]
    largest = int((sizes[1:] - sizes[:-1]).max())
    held = [size // largest if size else len(ends) for size in arrays.window_bytes.tolist()]
    given = arrays.window_places.tolist()
    return [min(one or most, most) for one, most in zip(given, held, strict=True)]


def _admits(arrays: ItemArrays, ends: Ends) -> bool:
    if len(ends) > arrays.max_fragments:
        return False
    return all(arrays.earliest[last] <= first for first, last in pairwise((0, *ends)))


def filled(arrays: ItemArrays, walk: CapWalk, cap_bytes: int) -> Ends:
    """Return the layout of this cap by the walk's rule."""
    ends, sizes, items = list[int](), arrays.ends_bytes, arrays.items
    first = 0
    while first < items:
        own = walk.first_bytes if not ends and walk.first_bytes else cap_bytes
        side = "right" if walk.is_before else "left"
        found = int(np.searchsorted(sizes, sizes[first] + own, side=side))  # type: ignore[call-overload]
        first = max(first + 1, found - 1) if walk.is_before else min(items, found)
        ends.append(first)
    return tuple(ends)


def next_cap(arrays: ItemArrays, walk: CapWalk, ends: Ends) -> int:
    """Return the least greater cap that gives another layout, 0 without one."""
    caps, sizes = list[int](), arrays.ends_bytes
    for place, (first, last) in enumerate(pairwise((0, *ends[:-1]))):  # the last one stays
        if place == 0 and walk.first_bytes:
            continue
        if walk.is_before:
            caps.append(int(sizes[last + 1] - sizes[first]))
        else:
            caps.append(int(sizes[last] - sizes[first]) + 1)
    return min(caps, default=0)


class _Row:
    """The rows of a dynamic program over ends, by a queue of candidates."""

    def __init__(self, arrays: ItemArrays, stage: int, *, is_empty: bool) -> None:
        self._overhead = float(arrays.overhead_us[stage])
        self._spent: list[float] = arrays.spent_us[stage].tolist()
        self._middle = [0.0] * len(self._spent)
        self._earliest: list[int] = arrays.earliest.tolist()
        self._is_empty = is_empty

    @classmethod
    def of(cls, overhead_us: float, spent_us: list[float], *, middle: list[float]) -> _Row:
        """Rows without limits, whose fragments may be empty."""
        row = cls.__new__(cls)
        row._overhead, row._spent, row._middle = overhead_us, spent_us, middle
        row._earliest, row._is_empty = [0] * len(spent_us), True
        return row

    def fill(self, done: list[float], entry: list[float], out: list[float]) -> list[int]:
        """Fill out(j), the least of max(f(i) + M(j) - M(i), r(j)) + g + C(j) - C(i); return the i
        of each, -1 without one.
        """
        spent, middle = self._spent, self._middle
        came, queue, passed = [-1] * len(out), deque[int](), -1
        for j in range(0 if self._is_empty else 1, len(out)):
            last = j if self._is_empty else j - 1
            lowest = self._earliest[j] if j else 0
            key = done[last] - spent[last]
            while queue and done[queue[-1]] - spent[queue[-1]] >= key:
                queue.pop()
            queue.append(last)
            while passed + 1 <= last and done[passed + 1] + middle[passed + 1] <= entry[j]:
                passed += 1
            while queue and (queue[0] <= passed or queue[0] < lowest):
                queue.popleft()
            best = inf
            if passed >= lowest:
                best, came[j] = entry[j] - middle[passed] - spent[passed], passed
            if queue and done[queue[0]] - spent[queue[0]] < best:
                came[j] = queue[0]
                best = done[came[j]] - spent[came[j]]
            out[j] = best + self._overhead + spent[j]
        return came


def _row_of(arrays: ItemArrays, stage: int) -> _Row | _RangedRow:
    """The rows of a stage; behind another one, of one line, its fragments may be empty."""
    if arrays.ranges[stage] > 1:
        return _RangedRow(arrays, stage)
    return _Row(arrays, stage, is_empty=stage > 0)


class _RangedRow:
    """The same of one stage with several ranges, which takes no less for an item more: a queue for
    each range.
    """

    def __init__(self, arrays: ItemArrays, stage: int) -> None:
        first = int(arrays.first_range[stage])
        ranges = range(first, first + int(arrays.ranges[stage]))
        own, self._earliest = arrays.spent_us[stage], arrays.earliest.tolist()
        self._bytes: list[int] = arrays.ends_bytes.tolist()
        ends = [0.0, *arrays.range_ends_bytes[first : ranges.stop - 1].tolist(), inf]
        self._sizes = list(pairwise(ends))
        self._overheads = [float(arrays.range_overhead_us[r]) for r in ranges]
        self._spent: list[list[float]] = [
            (arrays.range_ns_per_byte[r] * arrays.ends_bytes / 1000.0 + own).tolist()
            for r in ranges
        ]

    def fill(self, done: list[float], entry: list[float], out: list[float]) -> list[int]:
        """Fill out(j), the least of max(f(i), r(j)) and what the fragment takes; return the i of
        each, -1 without one.
        """
        came, passed = [-1] * len(out), -1
        windows = [_Window(*both) for both in zip(self._sizes, self._spent, strict=True)]
        for j in range(1, len(out)):
            while passed + 1 < j and done[passed + 1] <= entry[j]:
                passed += 1
            best = inf
            for window, overhead in zip(windows, self._overheads, strict=True):
                if self._bytes[j] <= window.above:
                    break
                window.advance(self._bytes, done, j, passed, self._earliest[j])
                after, spent = overhead + window.spent[j], window.spent
                at_once = min(passed, window.high)
                if at_once >= window.low and entry[j] - spent[at_once] + after < best:
                    best, came[j] = entry[j] - spent[at_once] + after, at_once
                if window.queue:
                    i = window.queue[0]
                    if done[i] - spent[i] + after < best:
                        best, came[j] = done[i] - spent[i] + after, i
            out[j] = best
        return came


class _Window:
    """The ends from which a fragment has a size of one range, those that wait in a queue by rising
    f - C.
    """

    def __init__(self, sizes: tuple[float, float], spent: list[float]) -> None:
        self.above, self._end = sizes
        self.spent, self.queue = spent, deque[int]()
        self.low, self.high = 0, -1

    def advance(
        self, sizes: list[int], done: list[float], j: int, passed: int, earliest: int
    ) -> None:
        """Go on to fragments that end with j; not before `earliest`."""
        spent, queue = self.spent, self.queue
        while self.high + 1 < j and sizes[j] - sizes[self.high + 1] > self.above:
            self.high += 1
            key = done[self.high] - spent[self.high]
            while queue and done[queue[-1]] - spent[queue[-1]] >= key:
                queue.pop()
            queue.append(self.high)
        while self.low < j and sizes[j] - sizes[self.low] > self._end:
            self.low += 1
        self.low = max(self.low, earliest)
        while queue and (queue[0] <= passed or queue[0] < self.low):
            queue.popleft()


@dataclass(frozen=True, slots=True)
class _Label:
    times: list[float]
    bound: float
    end: int
    parent: _Label | None
    count: int


class PlainLabels:
    """A search by labels; see item_labels.c."""

    def __init__(
        self, arrays: ItemArrays, bounds: LabelBounds, width: int, target_us: float
    ) -> None:
        self._arrays, self._width, self._target = arrays, width, target_us
        self._cost = _costs(arrays)
        self._ready: list[float] = arrays.ready_us.tolist()
        self._earliest: list[int] = arrays.earliest.tolist()
        self._head: list[list[float]] = bounds.head_us.T.tolist()
        self._rest: list[list[float]] = bounds.rest_us.T.tolist()
        self._left: list[list[float]] = bounds.left_us.T.tolist()
        self._ready_rest: list[float] = bounds.ready_rest_us.tolist()
        self._is_rising = bounds.is_rising
        self._floor: list[float] = bounds.floor_us.tolist()
        self._spent: list[list[float]] = arrays.spent_us.tolist()
        self._windows = _windows(arrays, arrays.window_places.tolist())
        self._window_rest: list[list[float]] = bounds.window_rest_us.tolist()
        self._is_counted = arrays.max_fragments < arrays.items
        self._best, self._dropped = inf, inf
        self._last: _Label | None = None
        self._next, self._work, self._live = 1, 0, [0]
        all_free = [-inf] * (arrays.label_times - arrays.stages)
        start = self._clamped(0, [0.0] * arrays.stages + all_free)
        self._at: list[list[_Label]] = [[] for _ in self._ready]
        self._at[0].append(_Label(start, self._bound(0, start), 0, None, 0))

    def advance(self, work: int) -> bool:
        """Go on for about this much work; return whether it has ended."""
        until = self._work + work
        while self._next <= self._arrays.items:
            if self._work >= until:
                return False
            end = self._next
            alive = [
                item
                for item in reversed(self._live)
                if item >= self._earliest[end] and self._extend(item, end)
            ]
            self._work += len(self._live)
            self._live = alive[::-1]
            if self._at[end]:
                self._live.append(end)
            self._next += 1
        return True

    def best(self) -> LabelsFound:
        """Return the best cut that was met, and what is proven by now."""
        bound = self._dropped
        if self._next <= self._arrays.items:
            bound = min(bound, min((self._at[item][0].bound for item in self._live), default=inf))
        ends, label = list[int](), self._last
        while label is not None and label.end > 0:
            ends.append(label.end)
            label = label.parent
        return LabelsFound(self._best, tuple(reversed(ends)), bound, self._work)

    def _extend(self, item: int, end: int) -> bool:
        arrays, times = self._arrays, self._cost(item, end)
        is_last, left = end == arrays.items, self._left[end]
        is_live = not self._is_rising
        self._work += len(self._at[item])
        for label in self._at[item]:
            target, ready, count = min(self._best, self._target), self._ready[end], label.count + 1
            if label.bound >= target:
                break
            if self._is_counted and count + (not is_last) > arrays.max_fragments:
                is_live |= count <= arrays.max_fragments
                continue
            is_short, after = True, list[float]()
            for before, time_us, rest_us in zip(label.times, times, left, strict=False):
                ready = max(ready, before) + time_us
                after.append(ready)
                is_short &= ready + rest_us < target
            is_live |= is_short
            if is_last:
                if ready < target:
                    self._best, self._last = ready, _Label(after, ready, end, label, count)
                continue
            if self._is_rising and not is_short:
                continue
            after = self._clamped(end, self._taken(label.times, after))
            bound = self._bound(end, after)
            if bound < target:
                self._offer(end, _Label(after, bound, end, label, count))
        return is_live

    def _offer(self, end: int, new: _Label) -> None:
        labels, bound = self._at[end], new.bound
        is_full = len(labels) >= self._width
        if is_full and bound >= self._dropped and bound >= labels[-1].bound:
            return
        for place, old in enumerate(labels):
            if old.bound > bound:
                break
            if self._is_as_good(old, new):
                self._work += place + 1
                return
        self._work += len(labels)
        labels[:] = [old for old in labels if not self._is_as_good(new, old)]
        if len(labels) >= self._width:
            if labels[-1].bound <= bound:
                self._dropped = min(self._dropped, bound)
                return
            self._dropped = min(self._dropped, labels.pop().bound)
        labels.insert(bisect_right(labels, bound, key=lambda old: old.bound), new)

    def _is_as_good(self, one: _Label, other: _Label) -> bool:
        if self._is_counted and one.count > other.count:
            return False
        return all(own <= its for own, its in zip(one.times, other.times, strict=True))

    def _taken(self, before: list[float], after: list[float]) -> list[float]:
        """A new label's times with the places that its last fragment and those before it leave."""
        place, kept, coming = self._arrays.stages, list[float](), list[tuple[int, float]]()
        for window in self._windows:
            newest = after[window.last] + window.return_us
            back = [newest, *before[place : place + window.places - 1]]
            coming.append((window.first, back.pop()))
            kept += back
            place += window.places - 1
        for first, back_us in coming:
            after[first] = max(after[first], back_us)
        return after + kept

    def _clamped(self, item: int, times: list[float]) -> list[float]:
        """Each time raised to what the next fragment lets it be, and those of places to when the
        fragments can come that take them.
        """
        ready, raised = self._ready[item + 1], list[float]()
        for time_us, head_us in zip(times, self._head[item + 1], strict=False):
            raised.append(max(ready, time_us))
            ready = raised[-1] + head_us
        for window in self._windows:
            for ahead in range(window.places - 1, 0, -1):
                back_us = times[len(raised)]
                raised.append(max(back_us, self._soonest(item, ahead, window.first, raised)))
        return raised

    def _soonest(self, item: int, ahead: int, stage: int, times: list[float]) -> float:
        """When the fragment so many behind the next one can be in this stage; infinite without
        one.
        """
        if item + ahead >= self._arrays.items:
            return inf
        soonest_us = self._ready[item + 1 + ahead]
        for place in range(stage + 1):
            spent = self._spent[place]
            own_us = ahead * self._floor[place] + (spent[item + ahead] - spent[item])
            soonest_us = max(soonest_us, times[place] + own_us)
        return soonest_us

    def _bound(self, item: int, times: list[float]) -> float:
        rests = zip(times, self._rest[item], strict=False)
        bound = max(self._ready_rest[item], *(time_us + rest_us for time_us, rest_us in rests))
        place = self._arrays.stages
        for window, rest in zip(self._windows, self._window_rest, strict=True):
            end = place + window.places - 1
            if rest[item] > -inf:
                total = times[window.first]
                for back_us in times[place:end]:
                    total += back_us
                bound = max(bound, total / window.places + rest[item])
            place = end
        return bound


def _costs(arrays: ItemArrays) -> Callable[[int, int], list[float]]:
    """What a fragment (i, j] takes in each stage."""
    spent: list[list[float]] = arrays.spent_us.tolist()
    sizes: list[int] = arrays.ends_bytes.tolist()
    overheads: list[float] = arrays.overhead_us.tolist()
    ends: list[float] = arrays.range_ends_bytes.tolist()
    range_overheads: list[float] = arrays.range_overhead_us.tolist()
    range_costs: list[float] = arrays.range_ns_per_byte.tolist()
    spans = list(zip(arrays.first_range.tolist(), arrays.ranges.tolist(), strict=True))

    def time_us(stage: int, first: int, last: int) -> float:
        own = spent[stage][last] - spent[stage][first]
        place, count = spans[stage]
        if count == 1:
            return overheads[stage] + own
        size, end = float(sizes[last] - sizes[first]), place + count - 1
        while place < end and size > ends[place]:
            place += 1
        line_us: float = range_overheads[place] + range_costs[place] * size / 1000.0
        return line_us + own

    stages = range(arrays.stages)
    return lambda first, last: [time_us(stage, first, last) for stage in stages]
