"""Branch and bound on the regions of fragments: cuts on stages with ranges, with a proof.

Source    own derivation; docs/theory.md sec. 7, "Branch and bound on regions".
Notation  as in nodes.py.
Cost      a linear program for each node that no earlier dual excludes, until work or time ends.
Exact     the least bound of all nodes that hold cuts of k fragments bounds these cuts.
Traps     a node of many counts is one program for all of them; small counts have their own. The
          bound of a node without anything to divide is that of its real sizes, and whole bytes may
          cost more: no division removes that difference.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from solvers.contract import Candidate, Deadline
from solvers.exact.convex import ConvexProblem, resampled
from solvers.exact.count_search import CountSearch
from solvers.kernels.native_dual import MAX_TREE_REGIONS, NativeTree
from solvers.ranges.bound import tree_counts
from solvers.ranges.divisions import WHOLE, divisions
from solvers.ranges.improve import annealed, improved
from solvers.ranges.moves import cut_us
from solvers.ranges.nodes import Node, Planes, Programs, Relaxed
from solvers.ranges.regions import Region, Regions, whole_cut_within
from solvers.rounding import nearest_cut, round_cut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Cut = tuple[int, ...]

_MAX_ENTRIES = 60_000  # of one program; larger nodes keep the bound that they have
_NEAR = 1.02  # of the best latency known: cuts up to it are improved
_EACH = 500
_IMPROVE_CELLS = 200_000  # k n that improving one cut may evaluate
_IMPROVEMENTS = 12
_SPREAD = 1.0  # of a count: how far off another is that its dual is adapted to
_SMALL = 8  # fragments up to which each count begins with a node of its own
_TRIED = 2  # divisions of which the best is taken
_BETWEEN_DIVES, _DEEPEST = 32, 24  # nodes of least bound between two dives, and those of one
_FIRST_SINGLE = 6  # fragments that are told apart at first where counts are larger
_GROWTH = 1.5  # of the counts that begin with one node
_TURNS = 400  # of a tree of several counts, before its halves have one each
_SLICE = 5e7  # numbers that one tree writes before another may be the one of least bound
_NUMBERS, _CELLS = 3_500, 500  # of a tree, and cells of random moves, that take as long as an entry
_THRESHOLDS = ((0.03, 0.003), (0.1, 0.01))  # of random moves, at their beginning, by turns
_MOVING = 0.1  # of all work: random moves
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
    is_root: bool = field(compare=False, default=False)


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


class Branching:
    """The search over all counts that could win; tightens the bounds of a search over counts."""

    max_work = 5_000_000  # entries of all programs of one search, and what each takes besides

    def __init__(self, search: CountSearch, relaxed: ConvexProblem, best: Cut) -> None:
        problem = search.problem
        self._search, self._problem, self._best = search, problem, best
        self._best_us = cut_us(problem, np.array(best))
        self._delay = problem.pipeline.delay_us
        B = float(problem.message_bytes)
        self._regions = Region.of(problem, relaxed.M)
        self._ends = self._regions.ends()[0]
        self._sizes = self._regions.low[0], self._regions.high[-1]
        self._programs = Programs(self._regions, B, self._best_us - self._delay)
        self._planes: dict[bytes, Planes] = {}
        self._heap: list[_Open] = []
        self._closed: list[tuple[float, Node]] = []  # what is not divided, with its bound
        self._entered, self._improvements, self._visits = 0, 0, 0
        self._work = self._moved = self._seed = 0  # of all, of random moves, and what these had
        self._lowest: _Open | None = None  # of the parts of the last division
        self._tried: set[tuple[int, ...]] = {best}
        self._every = Regions.of(problem.pipeline)
        self._native = self._regions.in_native(problem)
        self._counts: list[_Counts] = []
        self._narrowed_us = self._left_out_us = np.inf  # the latter: proven of regions left out

    def run(self, *, relative_gap: float, deadline: Deadline) -> Iterator[Candidate]:
        """Yield better cuts; the bounds of the counts rise meanwhile, and are told at the end."""
        self._start()
        while not deadline.passed and self._work < self.max_work:
            target = self._best_us / (1.0 + relative_gap) - self._delay
            lowest = min(self._counts, key=lambda count: count.bound_us, default=None)
            first = self._heap[0].bound_us if self._heap else np.inf
            bound = first if lowest is None else min(first, lowest.bound_us)
            if bound >= target or self._is_stuck(bound):
                break
            if self._moved < _MOVING * (self._work - _EASY):
                yield from self._annealed(self._best)
            is_easy = self._work <= _EASY and lowest is not None and lowest.bound_us <= first
            if not is_easy and self._best_us < self._narrowed_us * _BETTER:
                yield from self._begun(relative_gap, deadline)
                continue
            if lowest is not None and lowest.bound_us <= first:
                yield from self._advance(lowest, target, deadline)
                continue
            yield from self._visit(heapq.heappop(self._heap), target, deadline)
            self._visits += 1
            if self._visits % _BETWEEN_DIVES == 1:
                yield from self._dive(relative_gap, deadline)
        self._tell()

    def _begun(self, relative_gap: float, deadline: Deadline) -> Iterator[Candidate]:
        """Begin with what the best cut leaves of the sizes; once more where one is much better."""
        yield from self._annealed(self._best)
        self._tell()
        self._heap, self._counts, self._closed, self._lowest = [], [], [], None
        self._narrowed_us = self._best_us
        self.narrow(relative_gap, deadline)
        self._start()

    def narrow(self, relative_gap: float, deadline: Deadline) -> Region:
        """Leave out the regions that no fragment of a cut below the target can have; return others.

        With a fragment of the region as the first, the last or one between, and any others, a
        program bounds all counts at once.
        """
        target = self._best_us / (1.0 + relative_gap) - self._delay
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
        B = float(self._problem.message_bytes)
        self._regions, self._ends, self._planes = regions, regions.ends()[0], {}
        self._programs = Programs(regions, B, self._best_us - self._delay)

    def _is_out(self, r: int, counts: tuple[int, int], target: float, deadline: Deadline) -> bool:
        """Whether every cut with a fragment of this region takes as long as the target."""
        bound, B = np.inf, float(self._problem.message_bytes)
        most = np.floor(B / self._regions.low).astype(np.int64)
        for place in (1, 0, 2):
            node = Node.around(r, place, counts, most).settled()
            if node is not None and not self._is_void(node):
                bound = min(bound, self._solved(_Open(0.0, 0.0, 0, node), deadline).bound_us)
            if bound < target:
                return False
        self._left_out_us = min(self._left_out_us, bound)
        return True

    def _advance(self, count: _Counts, target: float, deadline: Deadline) -> Iterator[Candidate]:
        """Let the tree of some counts work for a while; what it met is improved."""
        if count.tree is None:
            native = (count.regions or self._regions).in_native(self._problem)
            known_us = self._best_us - self._delay
            if native is not None:
                count.tree = native.tree((count.low, count.high), known_us)
        is_long = count.tree is None or count.is_closed or count.turns >= _TURNS
        if count.tree is None or (is_long and count.low < count.high):
            self._counts.remove(count)
            if count.low < count.high:
                self._counts += count.parts()
            else:
                self._push(Node.whole(count.low, len(self._regions)), count.bound_us, is_root=True)
            return
        count.turns += 1
        left = count.tree.advance(target, _SLICE)
        self._work += int((_SLICE - left) / _NUMBERS) + 1
        closed, real = count.tree.real
        count.bound_us = max(count.bound_us, min(count.tree.bound_us, target))
        count.is_closed = closed <= count.bound_us
        latency, sizes = count.tree.best
        if latency + self._delay < self._best_us * _NEAR:
            cut = tuple(int(size) for size in sizes)
            if cut not in self._tried:
                self._tried.add(cut)
                yield from self._offered(cut, tuple(sizes.tolist()))
                yield from self._annealed(cut)
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

    def _dive(self, relative_gap: float, deadline: Deadline) -> Iterator[Candidate]:
        """Divide the part of least value again and again: sizes near whole ones are cuts early."""
        for _ in range(_DEEPEST):
            target = self._best_us / (1.0 + relative_gap) - self._delay
            entry, self._lowest = self._lowest, None
            if entry is None or entry.bound_us >= target or deadline.passed:
                return
            at = next((at for at, one in enumerate(self._heap) if one is entry), None)
            if at is None:
                return
            self._heap.pop(at)
            heapq.heapify(self._heap)
            yield from self._visit(entry, target, deadline)

    def _start(self) -> None:
        """Make a node for each small count that could win, and for intervals of the others."""
        first, lower = self._search.lines.k_min, self._search.lower
        could_win = np.flatnonzero(lower < self._best_us - self._delay)
        few = could_win[(could_win + first <= _SMALL) & (could_win + first > 1)]
        native = self._regions.in_native(self._problem)
        if native is not None and len(self._problem.pipeline) > 1:
            counts, few = could_win[could_win + first > 1] + first, could_win[:0]
            for low, high in tree_counts(native, counts.tolist()):
                bound = float(lower[low - first : high - first + 1].min())
                self._counts.append(_Counts(low, high, bound))
        last = max([count.high for count in self._counts], default=_SMALL)
        for index in few:
            node = Node.whole(first + int(index), len(self._regions))
            self._push(node, float(lower[index]), is_root=True)
        most = np.floor(self._problem.message_bytes / self._regions.low).astype(np.int64)
        rest = could_win[could_win + first > last]
        while len(rest):
            low = int(rest[0]) + first
            here = rest[rest + first < max(low + 1, int(_GROWTH * low))]
            node = Node.many(min(_FIRST_SINGLE, low), (low, int(here[-1]) + first), most)
            self._push(node, float(lower[here].min()))
            rest = rest[len(here) :]

    def _push(self, node: Node, bound: float, *, is_root: bool = False) -> None:
        settled = node.settled()
        if settled is not None and not self._is_void(settled):
            self._enter(_Open(bound, 0.0, 0, settled, None, is_root))

    def _enter(self, entry: _Open) -> _Open:
        self._entered += 1
        heapq.heappush(self._heap, entered := replace(entry, order=self._entered))
        return entered

    def _planes_of(self, node: Node) -> Planes:
        if node.shape not in self._planes:
            B = float(self._problem.message_bytes)
            self._planes[node.shape] = Planes(self._regions, node, B)
        return self._planes[node.shape]

    def _is_stuck(self, bound_us: float) -> bool:
        """Whether what cannot be divided any more lies below all that can."""
        closed = [one.bound_us for one in self._counts if one.is_closed and one.low == one.high]
        return min([*closed, *(bound for bound, _ in self._closed)], default=np.inf) <= bound_us

    def _visit(self, entry: _Open, target: float, deadline: Deadline) -> Iterator[Candidate]:
        """Bound a node by its own program, and divide it where that does not exclude it."""
        if entry.found is None:
            entry = self._solved(entry, deadline)
            if entry.found is not None:
                if entry.is_root:
                    self._adapted(entry.found)
                yield from self._cuts_near(entry.found, deadline)
            if entry.bound_us > (self._heap[0].bound_us if self._heap else target):
                self._enter(entry)
                return
        if self._programs.entries(entry.node) > _MAX_ENTRIES:
            self._closed.append((entry.bound_us, entry.node))
            return
        if entry.found is None and deadline.passed:
            self._enter(entry)
            return
        # Without a solution the node has no cut at all, or the solver failed: halves tell.
        best = self._divided(entry, target, deadline)
        if best is None:
            self._closed.append((entry.bound_us, entry.node))
            return
        self._lowest = None
        for part in best:
            entered = self._enter(part)
            if self._lowest is None or entered.own_us < self._lowest.own_us:
                self._lowest = entered
            if part.found is not None and part.bound_us < target:
                yield from self._cuts_near(part.found, deadline)

    def _divided(self, entry: _Open, target: float, deadline: Deadline) -> list[_Open] | None:
        """The parts of a node by the division that raises their bounds most, of some tried."""
        node, found = entry.node, entry.found
        if found is None:
            halves = node.halves()
            return None if halves is None else self._parts(entry, halves, deadline)
        best, most = None, -1.0
        for pair in divisions(node, found, self._ends, _TRIED):
            parts = self._parts(entry, pair, deadline)
            gains = [min(part.own_us, target) - entry.own_us for part in parts]
            gains += [target - entry.own_us] * (2 - len(parts))
            score = max(min(gains), 0.0) + 0.2 * max(max(gains), 0.0)
            if score > most:
                best, most = parts, score
            if min(gains) >= target - entry.own_us or deadline.passed:
                break
        return best

    def _parts(self, entry: _Open, pair: tuple[Node, Node], deadline: Deadline) -> list[_Open]:
        parts = []
        for half in pair:
            settled = half.settled()
            if settled is None or self._is_void(settled):
                continue
            part = _Open(entry.bound_us, entry.own_us, 0, settled)
            parts.append(self._solved(part, deadline))
        return parts

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

    def _adapted(self, found: Relaxed) -> None:
        """Bound the counts that were not solved yet by the same mixture of paths, adapted."""
        for at, entry in enumerate(self._heap):
            k = len(entry.node.low)
            if entry.is_root and abs(k - len(found.x)) <= _SPREAD * len(found.x):
                planes = self._planes_of(entry.node)
                planes.add(resampled(found.p, k), found.price, found.nu, 0)
                bound = max(entry.bound_us, planes.bound_us(entry.node, last=True))
                self._heap[at] = replace(entry, bound_us=bound)
        heapq.heapify(self._heap)

    def _is_void(self, node: Node) -> bool:
        """Whether no sizes of this node make up the message."""
        low, high, B = self._regions.low, self._regions.high, self._problem.message_bytes
        if low[node.low].sum() > B:
            return True
        if not node.grouped.any() and high[node.high].sum() < B:
            return True
        from_counts = node.min_counts - np.append(node.min_counts[1:], 0)
        to_counts = node.max_counts - np.append(node.max_counts[1:], 0)
        return bool(not from_counts @ low <= B <= to_counts @ high)

    def _tell(self) -> None:
        """Raise the bounds of the counts to what is proven of all their nodes."""
        first, lower = self._search.lines.k_min, self._search.lower
        known = self._best_us - self._delay
        proven = np.full(len(lower), min(known, self._left_out_us))
        if first == 1:  # one fragment is one cut, and its latency is known
            proven[0] = cut_us(self._problem, np.array([self._problem.message_bytes])) - self._delay
        nodes = self._closed + [(entry.bound_us, entry.node) for entry in self._heap]
        for bound, node in nodes:
            at = slice(max(0, int(node.min_counts[0]) - first), int(node.max_counts[0]) - first + 1)
            proven[at] = np.minimum(proven[at], bound)
        for count in self._counts:
            at = slice(count.low - first, count.high - first + 1)
            proven[at] = np.minimum(proven[at], count.bound_us)
        could_win = lower < known
        lower[could_win] = np.maximum(lower, proven)[could_win]

    def _cuts_near(self, found: Relaxed, deadline: Deadline) -> Iterator[Candidate]:
        """Whole-byte cuts near relaxed sizes, improved where they are close to the best."""
        problem, structure = self._problem, np.argmax(found.weights, axis=1)
        whole = found.weights[np.arange(len(structure)), structure].min() >= 1.0 - WHOLE
        cuts: list[Cut | None] = []
        if found.in_groups.any():
            for sizes in self._with_groups(found):
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

    def _with_groups(self, found: Relaxed) -> list[Floats]:
        """The sizes with whole numbers of fragments in each group, scaled to the message.

        Those of a group one size after the other, and all of its sizes spread evenly.
        """
        at, cuts = self._programs.at, []
        for is_spread in (False, True):
            parts = [found.x[:1]]
            for g, number in enumerate(found.in_groups):
                whole = np.rint(number).astype(np.int64)
                sizes = np.repeat(at, whole)
                if is_spread:
                    places = [(np.arange(count) + 0.5) / count for count in whole if count]
                    sizes = sizes[np.argsort(np.concatenate([[], *places]), kind="stable")]
                parts += [sizes, found.x[g + 1 : g + 2]]
            x = np.concatenate(parts)
            cuts.append(x * (self._problem.message_bytes / x.sum()))
        return cuts
