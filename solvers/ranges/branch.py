"""Branch and bound on the regions of fragments: cuts on stages with ranges, with a proof.

Source    own derivation; docs/theory.md sec. 7, "Branch and bound on regions".
Notation  as in nodes.py.
Cost      a program for each node that is not excluded, until work or time ends; in C if possible.
Exact     the least bound of all nodes that hold cuts of k fragments bounds these cuts.
Traps     a node of many counts is one program for all of them; small counts have trees too. The
          bound of a node without anything to divide is that of its real sizes, and whole bytes may
          cost more: no division removes that difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from solvers.contract import Candidate, Deadline
from solvers.exact.convex_problem import ConvexProblem
from solvers.exact.count_search import CountSearch
from solvers.kernels.native_dual import MAX_TREE_REGIONS, NativeGroups, NativeRegions, NativeTree
from solvers.ranges.bound import tree_counts
from solvers.ranges.divisions import WHOLE, divisions
from solvers.ranges.improve import annealed, improved
from solvers.ranges.moves import cut_us
from solvers.ranges.nodes import Node, Planes, Programs, Relaxed
from solvers.ranges.regions import Region, Regions, whole_cut_within
from solvers.ranges.relaxed_sizes import in_whole_numbers
from solvers.rounding import nearest_cut, round_cut

Floats = NDArray[np.float64]
Cut = tuple[int, ...]

_MAX_ENTRIES = 60_000  # of one program; larger nodes keep the bound that they have
_NEAR = 1.1  # of the best latency known: cuts up to it are improved
_EACH = 500
_IMPROVE_CELLS = 200_000  # k n that improving one cut may evaluate
_IMPROVEMENTS, _FEW = 24, 32  # cuts that are, and fragments up to which random moves do
_TRIED = 4  # divisions of each kind of which the best is taken
_STEEP = 4.0  # of how much is left to divide, over the whole way to the target; as in tree.c
_ROUNDED = 16.0 * float(np.finfo(np.float64).eps)  # relative, of a bound that is met exactly
_OF_TREES = 4  # times the work of nodes, where both may raise the least bound and trees know more
_TURNS = 400  # of a tree of several counts, before its halves have one each
_GROWTH, _FIRST_SLICE = 1.5, 1e7  # of counts whose first bounds are of one search, and its numbers
_SLICE = 5e7  # numbers that one tree writes before another may be the one of least bound
_NUMBERS, _CELLS = 5_000, 150  # of a tree, and cells of random moves, that take as long as an entry
_THRESHOLDS = ((0.03, 0.003), (0.1, 0.01))  # of random moves, at their beginning, by turns
_MOVING = 0.15  # of all work: random moves
_ANNEALED = 500_000  # fragments that these evaluate
_EASY = 30_000  # entries before the largest sizes are left out, which takes as long
_BETTER = 0.99  # of the latency that sizes were left out for: they are once more
_MORE_REGIONS = 40  # by which a count's own may be more
_MAX_NARROWED = 32  # regions
_FIRST_STEP, _LAST_STEP = 1.0, 0.06  # of the greatest size, in each of which it is lowered


@dataclass(order=True, slots=True)
class _Open:
    """A node with its bound, µs without delay; then its own program's value, and the order."""

    bound_us: float
    own_us: float
    order: int
    node: Node = field(compare=False)
    found: Relaxed | None = field(compare=False, default=None)


@dataclass(slots=True)
class _Counts:
    """The tree of some numbers of fragments, and what it proves of them, µs without delay."""

    low: int
    high: int
    bound_us: float
    tree: NativeTree | None = None
    is_closed: bool = False  # only whole bytes are left
    regions: Region | None = None  # its own, finer than the search's
    turns: int = 0

    def parts(self) -> tuple[_Counts, _Counts]:
        """Return two of half the numbers each."""
        middle, bound = (self.low + self.high) // 2, self.bound_us
        return _Counts(self.low, middle, bound), _Counts(middle + 1, self.high, bound)


@dataclass(slots=True)
class _Groups:
    """Nodes of many counts, and what those prove that can be divided, and others; µs, no delay."""

    native: NativeGroups
    at: slice  # of all counts
    divisible: Floats
    closed: Floats


class Branching:
    """The search over all counts that could win; tightens the bounds of a search over counts."""

    max_work = 7_000_000  # entries of all programs of one search, and what each takes besides

    def __init__(self, search: CountSearch, relaxed: ConvexProblem, best: Cut) -> None:
        problem = search.problem
        self._search, self._problem, self._best = search, problem, best
        self._best_us = cut_us(problem, np.array(best))
        self._delay = problem.pipeline.delay_us
        self._B = B = float(problem.message_bytes)
        self._regions = Region.of(problem, relaxed.M)
        self._ends = self._regions.ends()[0]
        self._sizes = self._regions.low[0], self._regions.high[-1]
        self._programs = Programs(self._regions, B, self._best_us - self._delay)
        self._planes: dict[bytes, Planes] = {}
        self._open: list[_Open] = []
        self._closed: list[_Open] = []  # what is not divided
        self._entered = self._improvements = 0
        self._work = self._moved = self._seed = 0  # of all, of random moves, and what these had
        self._in_trees = 0  # of all work
        self._groups: list[_Groups] = []  # of all counts, of some
        self._spent = [0, 0]  # of all work: the latter, the former
        self._floor = search.lower.copy()
        self._tried: set[tuple[int, ...]] = {best}
        self._every = Regions.of(problem.pipeline)
        self._native = self._regions.in_native(problem)
        self._counts: list[_Counts] = []
        self._narrowed_us = self._left_out_us = np.inf  # the latter: proven of regions left out

    def run(self, *, relative_gap: float, deadline: Deadline) -> Iterator[Candidate]:
        """Yield better cuts; the bounds of the counts rise meanwhile, and are told at the end."""
        yield from self._start(deadline)
        while not deadline.passed and self._work < self.max_work:
            target = self._target(relative_gap)
            known = np.maximum(self._of_trees(), self._of_nodes())
            at = int(np.argmin(known))
            way = self._way_of(at)
            if known[at] >= target or way is None:
                break
            if self._moved < _MOVING * (self._work - _EASY):
                yield from self._annealed(self._best)
            if self._work > _EASY and self._best_us < self._narrowed_us * _BETTER:
                yield from self._begun(relative_gap, deadline)
            elif isinstance(way, _Counts):
                yield from self._advance(way, target, deadline)
            elif isinstance(way, _Groups):
                yield from self._divide(way, target, _SLICE, deadline)
            else:
                yield from self._visit(way, target, deadline)
        self._tell()

    def _target(self, relative_gap: float) -> float:
        """What proves the best cut to this gap, its own rounding included, µs without delay."""
        return self._best_us * min(1.0, (1.0 + _ROUNDED) / (1.0 + relative_gap)) - self._delay

    def _of_trees(self) -> Floats:
        """What is known of each count from its tree or its first node, µs without delay."""
        bounds, first = self._floor.copy(), self._search.lines.k_min
        for count in self._counts:
            at = slice(count.low - first, count.high - first + 1)
            bounds[at] = np.maximum(bounds[at], count.bound_us)
        return bounds

    def _of_nodes(self) -> Floats:
        """What nodes prove of each count: each cut is in one of them, and in one of each search."""
        known = self._best_us - self._delay
        bounds = np.full(len(self._search.lower), known)
        for entry in (*self._open, *self._closed):
            at = self._counts_of(entry)
            bounds[at] = np.minimum(bounds[at], entry.bound_us)
        if self._groups:
            bounds[self._groups[0].at] = 0.0
        for groups in self._groups:
            proven = np.minimum(known, np.minimum(groups.divisible, groups.closed))
            bounds[groups.at] = np.maximum(bounds[groups.at], proven)
        return bounds

    def _counts_of(self, entry: _Open) -> slice:
        first, node = self._search.lines.k_min, entry.node
        return slice(int(node.min_counts[0]) - first, int(node.max_counts[0]) - first + 1)

    def _way_of(self, at: int) -> _Counts | _Groups | _Open | None:
        """What may raise the bound of a count, of the kind that has had least of the work: which
        of them takes least to the target differs from problem to problem.
        """
        k = at + self._search.lines.k_min
        more = _OF_TREES if self._of_trees()[at] >= self._of_nodes()[at] else 1
        ways: list[tuple[float, _Counts | _Groups | _Open]] = [
            (self._in_trees / more, count)
            for count in self._counts
            if count.low <= k <= count.high and not (count.is_closed and count.low == count.high)
        ]
        for groups in self._groups:
            i = at - groups.at.start
            if groups.at.start <= at < groups.at.stop and groups.divisible[i] < groups.closed[i]:
                ways.append((self._spent[groups is self._groups[0]], groups))
        for entry in self._open:
            here = self._counts_of(entry)
            if here.start <= at < here.stop:
                ways.append((entry.bound_us, entry))
        return min(ways, key=lambda way: way[0])[1] if ways else None

    def _divide(
        self, groups: _Groups, target: float, work: float, deadline: Deadline
    ) -> Iterator[Candidate]:
        """Let nodes of many counts be divided for a while; what they met is improved."""
        known = np.maximum(self._of_trees(), self._of_nodes())[groups.at]
        left = groups.native.advance(target, known, work)
        # What has reached the target is known to no more than that.
        groups.divisible, groups.closed = np.minimum(groups.native.bounds_us, target)
        self._spent[groups is self._groups[0]] += int((work - left) / _NUMBERS) + 1
        self._work += int((work - left) / _NUMBERS) + 1
        yield from self._met(*groups.native.best(), deadline)

    def _met(self, latency: float, sizes: Floats, deadline: Deadline) -> Iterator[Candidate]:
        cut = tuple(int(size) for size in sizes)
        if latency + self._delay < self._best_us * _NEAR and cut not in self._tried:
            self._tried.add(cut)
            yield from self._offered(cut, tuple(sizes.tolist()))
            if len(cut) > _FEW and self._improvements < _IMPROVEMENTS:
                self._improvements += 1
                moved, _ = improved(self._problem, cut, deadline, cells=_IMPROVE_CELLS)
                self._tried.add(moved.fragment_bytes)
                yield from self._offered(moved.fragment_bytes, moved.real_sizes)
            elif self._moved < 2.0 * _MOVING * self._work:
                yield from self._annealed(cut)

    def _begun(self, relative_gap: float, deadline: Deadline) -> Iterator[Candidate]:
        """Begin with what the best cut leaves of the sizes; once more where one is much better."""
        yield from self._annealed(self._best)
        self._tell()
        self._open, self._counts, self._closed = [], [], []
        self._groups = []
        self._narrowed_us = self._best_us
        self.narrow(relative_gap, deadline)
        yield from self._start(deadline)

    def narrow(self, relative_gap: float, deadline: Deadline) -> Region:
        """Leave out the regions that no fragment of a cut below the target can have; return others.

        With a fragment of the region as the first, the last or one between, and any others, a
        program bounds all counts at once.
        """
        target = self._target(relative_gap)
        first = self._search.lines.k_min
        could_win = np.flatnonzero(self._search.lower < self._best_us - self._delay) + first
        could_win = could_win[could_win > 1]
        if not len(could_win) or len(self._regions) > _MAX_NARROWED:
            return self._regions
        counts = int(could_win[0]), int(could_win[-1])
        self._lower(counts, target, deadline)
        r = len(self._regions) - 1
        while r >= 0 and len(self._regions) > 1 and not deadline.passed:
            if self._is_out(r, counts, target, deadline):
                self._take(self._regions.only(np.arange(len(self._regions)) != r))
            r -= 1
        return self._regions

    def _lower(self, counts: tuple[int, int], target: float, deadline: Deadline) -> None:
        """Leave out the largest sizes, step by step."""
        step = _FIRST_STEP
        while step > _LAST_STEP and not deadline.passed:
            regions, last = self._regions, len(self._regions) - 1
            low, high = regions.low[-1], regions.high[-1]
            behind = max(np.floor(high / (1.0 + step)), low - 1.0)
            if behind >= low:
                self._take(regions.split(last, behind))
            top = len(self._regions) - 1
            if top > 0 and self._is_out(top, counts, target, deadline):
                self._take(self._regions.only(np.arange(top + 1) < top))
            else:
                self._take(regions)
                step *= 0.5

    def _take(self, regions: Region) -> None:
        self._regions, self._ends, self._planes = regions, regions.ends()[0], {}
        self._programs = Programs(regions, self._B, self._best_us - self._delay)

    def _is_out(self, r: int, counts: tuple[int, int], target: float, deadline: Deadline) -> bool:
        """Whether every cut with a fragment of this region takes as long as the target."""
        bound = np.inf
        most = np.floor(self._B / self._regions.low).astype(np.int64)
        for place in (1, 0, 2):
            node = Node.around(r, place, counts, most).settled()
            if node is not None and not node.is_void(self._regions, self._B):
                bound = min(bound, self._solved(_Open(0.0, 0.0, 0, node), deadline).bound_us)
            if bound < target:
                return False
        self._left_out_us = min(self._left_out_us, bound)
        return True

    def _advance(self, count: _Counts, target: float, deadline: Deadline) -> Iterator[Candidate]:
        """Let the tree of some counts work for a while; what it met is improved."""
        if count.tree is None:
            native = (count.regions or self._regions).in_native(self._problem)
            if native is not None:
                count.tree = native.tree((count.low, count.high), self._best_us - self._delay)
        is_long = count.tree is None or count.is_closed or count.turns >= _TURNS
        if count.tree is None or (is_long and count.low < count.high):
            self._counts.remove(count)
            self._counts += count.parts() if count.low < count.high else ()
            return
        count.turns += 1
        left = count.tree.advance(target, _SLICE)
        self._work += int((_SLICE - left) / _NUMBERS) + 1
        self._in_trees += int((_SLICE - left) / _NUMBERS) + 1
        closed, real = count.tree.real
        count.bound_us = max(count.bound_us, min(count.tree.bound_us, target))
        count.is_closed = closed <= count.bound_us
        yield from self._met(*count.tree.best, deadline)
        if count.is_closed and len(real):
            regions = self._every.structure_of(real)
            for whole in (
                round_cut(self._problem, real, search_cells=0),
                whole_cut_within(self._every, self._problem, regions, real),
            ):
                if whole is not None:
                    yield from self._offered(whole, tuple(real.tolist()))
            if count.low == count.high:
                self._divide_sizes(count, real)

    def _divide_sizes(self, count: _Counts, real: Floats) -> None:
        """Divide regions at sizes that are not whole: a tree over these knows whole ones apart."""
        regions, unit = count.regions or self._regions, self._problem.limits.alignment_bytes
        behind = np.unique(np.floor(real[np.abs(real - np.rint(real)) > WHOLE] / unit) * unit)
        for size in behind:
            r = min(int(np.searchsorted(regions.high, size)), len(regions) - 1)
            if regions.low[r] <= size < regions.high[r]:
                regions = regions.split(r, float(size))
        had = len(count.regions or self._regions)
        if had < len(regions) <= min(MAX_TREE_REGIONS, len(self._regions) + _MORE_REGIONS):
            count.regions, count.tree, count.is_closed = regions, None, False

    def _offered(self, cut: Cut, real: tuple[float, ...] | None) -> Iterator[Candidate]:
        """The cut, where the limits admit it and it is better than all before."""
        latency = cut_us(self._problem, np.array(cut))
        if latency < self._best_us and self._problem.admits(cut):
            self._best, self._best_us = cut, latency
            yield Candidate(cut, real)

    def _annealed(self, cut: Cut) -> Iterator[Candidate]:
        """What random moves from this cut find that is better than all before."""
        start, native, (low, high) = np.array(cut, dtype=np.int64), self._native, self._sizes
        if native is None or not low <= start.min() <= start.max() <= high:
            return
        for first in _THRESHOLDS[self._seed // 2 % len(_THRESHOLDS)]:
            self._seed += 1
            found, cells = annealed(
                self._problem, native, start, each=_ANNEALED, first=first, seed=self._seed
            )
            self._work += cells // _CELLS
            self._moved += cells // _CELLS
            yield from self._offered(tuple(int(size) for size in found), None)

    def _start(self, deadline: Deadline) -> Iterator[Candidate]:
        """Make a node of all counts that could win, and trees of the smaller ones."""
        first, lower = self._search.lines.k_min, self._search.lower
        counts = np.flatnonzero(lower < self._best_us - self._delay) + first
        counts = counts[counts > 1]
        if not len(counts):
            return
        native = self._regions.in_native(self._problem)
        known, ends = self._best_us - self._delay, (int(counts[0]), int(counts[-1]))
        every = self._groups_of(native, ends)
        if native is None or every is None:
            most = np.floor(self._B / self._regions.low).astype(np.int64)
            node = Node.many(2, ends, most).settled()
            if node is not None and not node.is_void(self._regions, self._B):
                self._enter(_Open(float(lower[counts - first].min()), 0.0, 0, node))
            return
        self._groups.append(every)
        for low, high in tree_counts(native, counts.tolist()):
            here = (low <= counts) & (counts <= high)
            self._counts.append(_Counts(low, high, float(lower[counts[here] - first].min())))
        while len(counts) and not deadline.passed:
            here = counts[counts <= _GROWTH * counts[0]]
            some = self._groups_of(native, (int(here[0]), int(here[-1])))
            if some is not None:
                self._groups.append(some)
                yield from self._divide(some, known, _FIRST_SLICE, deadline)
            counts = counts[len(here) :]

    def _groups_of(self, native: NativeRegions | None, counts: tuple[int, int]) -> _Groups | None:
        known, first = self._best_us - self._delay, self._search.lines.k_min
        groups = native.groups(counts, known) if native is not None else None
        at = slice(counts[0] - first, counts[1] - first + 1)
        return None if groups is None else _Groups(groups, at, *groups.bounds_us)

    def _enter(self, entry: _Open) -> None:
        self._entered += 1
        self._open.append(replace(entry, order=self._entered))

    def _planes_of(self, node: Node) -> Planes:
        if node.shape not in self._planes:
            self._planes[node.shape] = Planes(self._regions, node, self._B)
        return self._planes[node.shape]

    def _visit(self, entry: _Open, target: float, deadline: Deadline) -> Iterator[Candidate]:
        """Bound a node by its own program, and divide it where that does not exclude it."""
        self._open = [one for one in self._open if one is not entry]
        if entry.found is None:
            entry = self._solved(entry, deadline)
            if entry.found is not None:
                yield from self._cuts_near(entry.found, deadline)
            if entry.bound_us >= target or (entry.found is None and deadline.passed):
                self._enter(entry)
                return
        # Without a solution the node has no cut at all, or the solver failed: halves tell.
        is_large = self._programs.entries(entry.node) > _MAX_ENTRIES
        best = None if is_large else self._divided(entry, target, deadline)
        if best is None:
            self._closed.append(entry)
            return
        for part in best:
            self._enter(part)
            if part.found is not None and part.bound_us < target:
                yield from self._cuts_near(part.found, deadline)

    def _divided(self, entry: _Open, target: float, deadline: Deadline) -> list[_Open] | None:
        """The parts of a node by the division that leaves least to divide, of those tried."""
        node, found = entry.node, entry.found
        if found is None:
            pair = node.halves()
            return pair and self._parts(entry, pair, target, deadline, np.inf)[0]
        best, smallest = None, np.inf
        for pair in divisions(node, found, self._ends, _TRIED):
            parts, left = self._parts(entry, pair, target, deadline, smallest)
            if left < smallest:
                best, smallest = parts, left
            if left == 0.0 or deadline.passed:
                break
        return best

    def _parts(
        self, entry: _Open, pair: tuple[Node, Node], target: float, deadline: Deadline, most: float
    ) -> tuple[list[_Open], float]:
        """The parts, and how much is left to divide in them; not all where that reaches `most`."""
        parts, left = [], 0.0
        for half in pair:
            settled = half.settled()
            if settled is None or settled.is_void(self._regions, self._B) or left >= most:
                continue
            part = self._solved(_Open(entry.bound_us, entry.own_us, 0, settled), deadline)
            parts.append(part)
            way = min(1.0, (target - part.own_us) / (target - entry.own_us))
            left += float(np.exp(_STEEP * way)) if part.bound_us < target else 0.0
        return parts, left

    def _solved(self, entry: _Open, deadline: Deadline) -> _Open:
        """The same with its own program's optimum, where that is not too large."""
        node, planes = entry.node, self._planes_of(entry.node)
        bound = max(entry.bound_us, planes.bound_us(node))
        target, entries = self._best_us - self._delay, self._programs.entries(node)
        if bound >= target or entries > _MAX_ENTRIES or deadline.passed:
            return replace(entry, bound_us=bound, own_us=max(bound, entry.own_us))
        self._work += entries + _EACH
        found = self._programs.solve(node, deadline)
        own = entry.own_us
        if found is not None:
            planes.add(found.p, found.price, found.nu, node.max_in_groups)
            own = planes.bound_us(node, last=True)
        return replace(entry, bound_us=max(bound, own), own_us=own, found=found)

    def _tell(self) -> None:
        """Raise the bounds of the counts to what is proven of all their nodes."""
        first, lower = self._search.lines.k_min, self._search.lower
        known = self._best_us - self._delay
        proven = np.maximum(self._of_trees(), self._of_nodes())
        proven = np.minimum(proven, min(known, self._left_out_us))
        if first == 1:  # one fragment is one cut, and its latency is known
            proven[0] = cut_us(self._problem, np.array([self._problem.message_bytes])) - self._delay
        could_win = lower < known
        lower[could_win] = np.maximum(lower, proven)[could_win]

    def _cuts_near(self, found: Relaxed, deadline: Deadline) -> Iterator[Candidate]:
        """Whole-byte cuts near relaxed sizes, improved where they are close to the best."""
        problem, structure = self._problem, np.argmax(found.weights, axis=1)
        whole = found.weights[np.arange(len(structure)), structure].min() >= 1.0 - WHOLE
        cuts: list[Cut | None] = []
        if found.in_groups.any():
            for sizes in in_whole_numbers(found, self._programs.at, problem.message_bytes):
                near = nearest_cut(problem, sizes)
                cuts.append(None if near is None else tuple(int(size) for size in near))
        else:
            cuts.append(round_cut(problem, found.x, search_cells=0))
            if whole:
                regions = self._every.structure_of(self._regions.high[structure])
                cuts.append(whole_cut_within(self._every, problem, regions, found.x))
        for cut in cuts:
            if cut is None or cut in self._tried:
                continue
            self._tried.add(cut)
            latency = cut_us(problem, np.array(cut))
            candidate = Candidate(cut, tuple(found.x.tolist()))
            if latency <= self._best_us * _NEAR and self._improvements < _IMPROVEMENTS:
                self._improvements += 1
                candidate, _ = improved(problem, cut, deadline, cells=_IMPROVE_CELLS)
                self._tried.add(candidate.fragment_bytes)
                latency = cut_us(problem, np.array(candidate.fragment_bytes))
            if latency < self._best_us:
                self._best, self._best_us = candidate.fragment_bytes, latency
                yield candidate
