"""Branch and bound on the regions of fragments: cuts on stages with ranges, with a proof.

Source    own derivation; docs/theory.md sec. 7, "Branch and bound on regions".
Notation  k fragments, n stages; region q: sizes on which no stage changes its range, q ascending;
          C_r: how many fragments have a region of r or above; a node: an interval of regions for
          each fragment and an interval for each C_r; f: (k, n) the flow of a dual p; lambda: price
          of a byte; nu_r: of a fragment in region r or above, mu_q = nu_1 + .. + nu_q.
Cost      a linear program for each node that no earlier dual excludes: a row for each fragment and
          end of a region.
Exact     for ANY p, lambda, nu: T >= lambda B + sum_i min_q [A_i(q) - mu_q] + sum_r nu_r C_r, with
          A_i(q) the least of sum_j f_ij t_j(x) - lambda x over the sizes x of region q. So what a
          program says is never trusted: its dual is evaluated, errors deducted.
Traps     many fragments are nearly alike: there it is decided first how many have a region, and
          only then which. The bound of a node without anything to divide is that of its real
          sizes, and whole bytes may cost more: no division removes that difference.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.contract import Candidate, Deadline
from solvers.exact.convex import ConvexProblem, flow_of, resampled
from solvers.exact.count_search import CountSearch
from solvers.exact.dual import repaired
from solvers.exact.lp.lines import (
    PARAMETER_SETS,
    SparseModel,
    order_entries,
    run_glop,
    sparse_matrix,
)
from solvers.ranges.improve import improved
from solvers.ranges.moves import cut_us
from solvers.ranges.regions import Regions, whole_cut_within
from solvers.rounding import round_cut

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Cut = tuple[int, ...]

_EPS = float(np.finfo(np.float64).eps)
_PARAMETERS = "use_dual_simplex:true use_preprocessing:false use_scaling:false"
_WHOLE = 1e-6  # of a number of fragments, and of a fragment: what a solver may miss a whole one by
_MAX_ENTRIES = 60_000  # of one program; larger counts keep the bound that they have
_WORK = 500_000  # entries of all programs of one search, and what each takes besides
_NEAR = 1.02  # of the best latency known: cuts up to it are improved
_EACH = 500
_IMPROVE_CELLS = 200_000  # k n that improving one cut may evaluate
_IMPROVEMENTS = 12
_SPREAD = 1.0  # of a count: how far off another is that its dual is adapted to
_FEW = 6  # fragments up to which it is decided which have a region, and not how many
_OUTSTANDING = 0.15  # share of what all miss from which on one fragment is decided by itself
_LITTLE, _TINY = 1e-9, 1e-300  # weight of fragments that miss nothing


@dataclass(frozen=True, slots=True)
class Region:
    """The admitted sizes of a problem by region, bytes, and the lines there: (R,) and (R, n)."""

    low: Floats
    high: Floats
    g: Floats
    G: Floats

    @classmethod
    def of(cls, problem: Problem, maximum: float) -> Region:
        """Return the regions with sizes from the problem's least to this greatest one."""
        every = Regions.of(problem.pipeline)
        low = np.maximum(every.low, float(problem.smallest_fragment_bytes))
        high = np.minimum(every.high, maximum)
        kept = low <= high
        return cls(low[kept], high[kept], every.g[kept], every.G[kept])

    def __len__(self) -> int:
        return len(self.low)

    def ends(self) -> tuple[Ints, Floats, Floats]:
        """Return region (V,), size (V,) and costs (V, n), µs, of both ends of each region."""
        q = np.repeat(np.arange(len(self)), 2)
        at = np.stack([self.low, self.high], axis=1).ravel()
        kept = np.ones(len(at), dtype=bool)
        kept[1::2] = self.high > self.low
        return q[kept], at[kept], (self.g[q] + self.G[q] * at[:, None])[kept]


@dataclass(frozen=True, slots=True)
class Node:
    """Regions from..to (k,) of each fragment; fragments from..to (R,) in each region or above."""

    low: Ints
    high: Ints
    min_counts: Ints
    max_counts: Ints

    @classmethod
    def whole(cls, k: int, regions: int) -> Node:
        """Return the node of all cuts of this many fragments."""
        zeros = np.zeros(k, dtype=np.int64)
        counts = np.full(regions, k, dtype=np.int64)
        low_counts = np.zeros(regions, dtype=np.int64)
        low_counts[0] = k
        return cls(zeros, zeros + regions - 1, low_counts, counts)

    def settled(self) -> Node | None:
        """Return it with what intervals of fragments and counts say of each other; None if void."""
        r, k = np.arange(len(self.min_counts))[:, None], len(self.low)
        low = np.maximum(self.low, np.flatnonzero(self.min_counts == k)[-1])
        high = np.minimum(self.high, np.flatnonzero(self.max_counts > 0)[-1])
        low_counts = np.maximum(self.min_counts, (low[None, :] >= r).sum(axis=1))
        high_counts = np.minimum(self.max_counts, (high[None, :] >= r).sum(axis=1))
        low_counts = np.maximum.accumulate(low_counts[::-1])[::-1]
        high_counts = np.minimum.accumulate(high_counts)
        void = (low_counts > high_counts).any() or (low > high).any()
        return None if void else Node(low, high, low_counts, high_counts)

    def halves(self) -> tuple[Node, Node] | None:
        """Return two nodes that are together this one; None where nothing is left to decide."""
        wide = self.max_counts - self.min_counts
        if wide.any():
            r = int(np.argmax(wide))
            return self.by_count(r, int(self.min_counts[r] + self.max_counts[r]) // 2)
        i = int(np.argmax(self.high - self.low))
        if self.high[i] == self.low[i]:
            return None
        return self.by_fragment(i, int(self.low[i] + self.high[i] + 1) // 2)

    def by_count(self, r: int, count: int) -> tuple[Node, Node]:
        """Return the nodes with at most this many fragments in region r or above, and with more."""
        low_counts, high_counts = self.min_counts.copy(), self.max_counts.copy()
        low_counts[r], high_counts[r] = count + 1, count
        fewer = Node(self.low, self.high, self.min_counts, high_counts)
        return fewer, Node(self.low, self.high, low_counts, self.max_counts)

    def by_fragment(self, i: int, r: int) -> tuple[Node, Node]:
        """Return the nodes with fragment i below region r, and in it or above."""
        low, high = self.low.copy(), self.high.copy()
        low[i], high[i] = r, r - 1
        below = Node(self.low, high, self.min_counts, self.max_counts)
        return below, Node(low, self.high, self.min_counts, self.max_counts)


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A node's program: its dual p, price and prices nu (R,); weights (k, R) and sizes (k,)."""

    p: Floats
    price: float
    nu: Floats
    weights: Floats
    x: Floats
    missing: Floats


class Planes:
    """What all duals found so far say of the nodes of one count, at one message."""

    def __init__(self, regions: Region, k: int, message_bytes: float) -> None:
        self._regions, self._k, self._B = regions, k, message_bytes
        self._values = np.zeros((0, k, len(regions)))  # A - mu
        self._nu = np.zeros((0, len(regions)))
        self.own = 0
        self._fixed = np.zeros(0)  # lambda B, less what rounding may take

    def add(self, found: Relaxed) -> None:
        """Add a dual."""
        f, price, regions = flow_of(found.p), found.price, self._regions
        a, s = f @ regions.g.T, f @ regions.G.T
        slope = s - price
        minimum = a + np.minimum(slope * regions.low, slope * regions.high)
        mu = np.cumsum(found.nu)
        size = np.abs(a).max(axis=1).sum() + self._k * np.abs(found.nu).sum()
        moved = (s.max(axis=1).sum() + self._k * abs(price)) * float(regions.high[-1])
        error = 16.0 * _EPS * (size + moved + abs(price) * self._B)
        self._values = np.concatenate([self._values, (minimum - mu)[None]])
        self._nu = np.concatenate([self._nu, found.nu[None]])
        self._fixed = np.append(self._fixed, price * self._B - error)

    def bound_us(self, node: Node, *, last: bool = False) -> float:
        """Return the greatest bound of all duals on this node, no delay; or that of the last."""
        start = len(self._fixed) - 1 if last else 0
        if len(self._fixed) == 0:
            return 0.0
        q = np.arange(len(self._regions))[None, :]
        inside = (q >= node.low[:, None]) & (q <= node.high[:, None])
        minimum = np.where(inside[None], self._values[start:], np.inf).min(axis=2).sum(axis=1)
        nu = self._nu[start:]
        counted = np.minimum(nu * node.min_counts, nu * node.max_counts).sum(axis=1)
        return float((self._fixed[start:] + minimum + counted).max())


class Programs:
    """The relaxation of nodes: the mean of paths at the joint hull of all stages' true costs."""

    def __init__(self, regions: Region, message_bytes: float, unit_us: float) -> None:
        self._regions, self._B, self._unit = regions, message_bytes, unit_us or 1.0
        self._q, self._at, costs = regions.ends()
        self._costs = costs
        tails = np.cumsum(costs[:, ::-1], axis=1)[:, ::-1] / self._unit
        self._tails, self._behind = tails, tails - costs / self._unit

    def entries(self, k: int) -> int:
        """Return about how many numbers the program of this many fragments has."""
        return k * self._tails.size * 2

    def solve(self, node: Node, deadline: Deadline) -> Relaxed | None:
        """Return the node's optimum; None where it has none, or the solver found none."""
        regions, k, n = self._regions, len(node.low), self._tails.shape[1]
        low = regions.low[node.low]
        total = self._B - float(low.sum())
        if total < 0.0 or float(regions.high[node.high].sum()) < self._B:
            return None
        free = total or 1.0
        i, v = np.nonzero(
            (self._q[None, :] >= node.low[:, None]) & (self._q[None, :] <= node.high[:, None])
        )
        model = self._model(node, (i, v), (self._at[v] - low[i]) / free)
        for parameters in (_PARAMETERS, PARAMETER_SETS[0], PARAMETER_SETS[2]):
            found = run_glop(model, parameters, deadline)
            if found is not None or deadline.passed:
                break
        if found is None:
            return None
        columns, R = (k - 1) * n, len(regions)
        p = found[0][:columns].reshape(k - 1, n)
        nu = found[0][columns + 1 + k :][:R] - found[0][columns + 1 + k + R :][:R]
        shares = np.zeros((k, len(self._at)))
        shares[i, v] = found[1][: len(i)]
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        weights = np.zeros((k, R))
        np.add.at(weights.T, self._q, shares.T)
        price = float(found[0][columns]) * self._unit / free
        p, x = repaired(p), shares @ self._at
        f = flow_of(p)
        q_x = np.minimum(np.searchsorted(regions.high, x - 1e-9 * x), R - 1)
        true = (f * (regions.g[q_x] + regions.G[q_x] * x[:, None])).sum(axis=1)
        hull = (f * (shares @ self._costs)).sum(axis=1)
        return Relaxed(p, price, nu * self._unit, weights, x, np.maximum(0.0, true - hull))

    def _model(self, node: Node, rows: tuple[Ints, Ints], bytes_above: Floats) -> SparseModel:
        """Columns: p, lambda, theta_i, nu+ and nu-. Rows: an end of each fragment, unit, order."""
        (i, v), k, n = rows, len(node.low), self._tails.shape[1]
        R, columns, count = len(self._regions), (len(node.low) - 1) * self._tails.shape[1], len(i)
        row, stage = np.arange(count), np.arange(n)
        parts: list[tuple[Ints, Ints, Floats]] = []
        for step, cost, inside in (
            (i - 1, self._tails[v], i >= 1),
            (i, -self._behind[v], i <= k - 2),
        ):
            at = (step[inside, None] * n + stage).ravel()
            parts.append((np.repeat(row[inside], n), at, cost[inside].ravel()))
        parts.append((row, np.full(count, columns), -bytes_above))
        parts.append((row, columns + 1 + i, np.full(count, -1.0)))
        tied = (node.min_counts > 0) | (node.max_counts < k)
        tied[0] = False
        at_or_below, r = np.nonzero(tied[None, :] & (np.arange(R)[None, :] <= self._q[v][:, None]))
        first = columns + 1 + k
        parts.append((at_or_below, first + r, np.full(len(r), -1.0)))
        parts.append((at_or_below, first + R + r, np.ones(len(r))))
        steps = np.repeat(np.arange(k - 1), n)
        parts.append((count + steps, np.arange(columns), np.ones(columns)))
        a, d = np.nonzero(np.ones((max(0, k - 2), n - 1), dtype=bool))
        parts.append(order_entries((a, d), n, first_row=count + k - 1))
        data = [np.concatenate(part) for part in zip(*parts, strict=True)]
        kept = data[2] != 0.0
        width = first + 2 * R
        height = count + k - 1 + len(a)
        total = np.array([1.0 if self._regions.low[node.low].sum() < self._B else 0.0])
        free = np.concatenate([np.full(1 + k, np.inf), np.where(tied, np.inf, 0.0)])
        return SparseModel(
            cost=-np.concatenate(
                [np.zeros(columns), total, np.ones(k), node.min_counts, -node.max_counts]
            ).astype(float),
            low=np.concatenate([np.zeros(columns), np.full(1 + k, -np.inf), np.zeros(2 * R)]),
            high=np.concatenate([np.ones(columns), free, free[1 + k :]]),
            row_low=np.concatenate(
                [np.where(i == 0, -self._tails[v, 0], 0.0), np.ones(k - 1), np.zeros(len(a))]
            ),
            row_high=np.concatenate(
                [np.full(count, np.inf), np.ones(k - 1), np.full(len(a), np.inf)]
            ),
            matrix=sparse_matrix(
                data[2][kept], data[0][kept], data[1][kept], shape=(height, width)
            ),
        )


@dataclass(order=True, slots=True)
class _Open:
    """A node with its bound, µs without delay; the order of entry decides between equal bounds."""

    bound_us: float
    order: int
    node: Node = field(compare=False)
    planes: Planes = field(compare=False)

    @property
    def is_root(self) -> bool:
        """Whether it holds all cuts of its count, and nothing but others' duals bounds it."""
        return self.planes.own == 0


class Branching:
    """The search over all counts that could win; tightens the bounds of a search over counts."""

    def __init__(self, search: CountSearch, relaxed: ConvexProblem, best: Cut) -> None:
        problem = search.problem
        self._search, self._problem, self._best = search, problem, best
        self._best_us = cut_us(problem, np.array(best))
        self._delay = problem.pipeline.delay_us
        B = float(problem.message_bytes)
        self._regions = Region.of(problem, relaxed.M)
        self._programs = Programs(self._regions, B, self._best_us - self._delay)
        self._heap: list[_Open] = []
        self._closed: dict[int, float] = {}  # least bound of what is not divided, of each count
        self._entered, self._improvements, self._work = 0, 0, 0
        self._tried: set[tuple[int, ...]] = {best}
        self._every = Regions.of(problem.pipeline)

    def run(self, *, relative_gap: float, deadline: Deadline) -> Iterator[Candidate]:
        """Yield better cuts; the bounds of the counts rise meanwhile, and are told at the end.

        Nothing is told where the deadline passes before every count has its node.
        """
        if not self._started(deadline):
            return
        while self._heap and not deadline.passed and self._work < _WORK:
            target = self._best_us / (1.0 + relative_gap) - self._delay
            first = self._heap[0]
            if first.bound_us >= target or self._is_stuck(first.bound_us):
                break
            heapq.heappop(self._heap)
            yield from self._visit(first, target, deadline)
        self._tell()

    def _started(self, deadline: Deadline) -> bool:
        """Make a node for each count that could win; return whether there was time for all."""
        first, target = self._search.lines.k_min, self._best_us - self._delay
        for index in np.flatnonzero(self._search.lower < target):
            if deadline.passed:
                return False
            k, bound = first + int(index), float(self._search.lower[index])
            if k == 1:  # one cut, and its latency is known
                self._close(
                    1, cut_us(self._problem, np.array([self._problem.message_bytes])) - self._delay
                )
                continue
            planes = Planes(self._regions, k, float(self._problem.message_bytes))
            self._push(Node.whole(k, len(self._regions)), bound, planes)
        return True

    def _push(self, node: Node, bound: float, planes: Planes) -> None:
        self._entered += 1
        heapq.heappush(self._heap, _Open(bound, self._entered, node, planes))

    def _close(self, k: int, bound_us: float) -> None:
        self._closed[k] = min(bound_us, self._closed.get(k, np.inf))

    def _is_stuck(self, bound_us: float) -> bool:
        """Whether what cannot be divided any more lies below all that can."""
        return min(self._closed.values(), default=np.inf) <= bound_us

    def _visit(self, entry: _Open, target: float, deadline: Deadline) -> Iterator[Candidate]:
        """Bound a node by its own program, and divide it where that does not exclude it."""
        node, planes, k = entry.node, entry.planes, len(entry.node.low)
        bound = max(entry.bound_us, planes.bound_us(node))
        if bound > entry.bound_us and bound > (self._heap[0].bound_us if self._heap else target):
            self._push(node, bound, planes)
            return
        if self._programs.entries(k) > _MAX_ENTRIES:
            self._close(k, bound)
            return
        self._work += self._programs.entries(k) + _EACH
        found = self._programs.solve(node, deadline)
        if found is not None:
            is_root = entry.is_root
            planes.add(found)
            planes.own += 1
            bound = max(bound, planes.bound_us(node, last=True))
            if is_root:
                self._adapted(found)
            yield from self._cuts_near(found, deadline)
            if bound >= target:
                self._push(node, bound, planes)
                return
        # Without a solution the node has no cut at all, or the solver failed: halves tell.
        parts = node.halves() if found is None else _divided(node, found)
        if parts is None:
            self._close(k, bound)
            return
        for part in parts:
            settled = part.settled()
            if settled is not None and not self._is_void(settled):
                self._push(settled, bound, planes)

    def _adapted(self, found: Relaxed) -> None:
        """Bound the counts that were not solved yet by the same mixture of paths, adapted."""
        for at, entry in enumerate(self._heap):
            k = len(entry.node.low)
            if entry.is_root and abs(k - len(found.x)) <= _SPREAD * len(found.x):
                entry.planes.add(replace(found, p=resampled(found.p, k)))
                bound = max(entry.bound_us, entry.planes.bound_us(entry.node, last=True))
                self._heap[at] = _Open(bound, entry.order, entry.node, entry.planes)
        heapq.heapify(self._heap)

    def _is_void(self, node: Node) -> bool:
        """Whether no sizes of this node make up the message."""
        low, high, B = self._regions.low, self._regions.high, self._problem.message_bytes
        if not low[node.low].sum() <= B <= high[node.high].sum():
            return True
        from_counts = node.min_counts - np.append(node.min_counts[1:], 0)
        to_counts = node.max_counts - np.append(node.max_counts[1:], 0)
        return bool(not from_counts @ low <= B <= to_counts @ high)

    def _tell(self) -> None:
        """Raise the bounds of the counts to what is proven of all their nodes."""
        lowest = dict(self._closed)
        for entry in self._heap:
            k = len(entry.node.low)
            lowest[k] = min(entry.bound_us, lowest.get(k, np.inf))
        first = self._search.lines.k_min
        known = self._best_us - self._delay
        for index in np.flatnonzero(self._search.lower < known):
            k = first + int(index)
            value = min(known, lowest.get(k, np.inf))
            self._search.lower[index] = max(float(self._search.lower[index]), value)

    def _cuts_near(self, found: Relaxed, deadline: Deadline) -> Iterator[Candidate]:
        """Whole-byte cuts near relaxed sizes, improved where they are close to the best."""
        problem, structure = self._problem, np.argmax(found.weights, axis=1)
        whole = found.weights[np.arange(len(structure)), structure].min() >= 1.0 - _WHOLE
        cuts = [round_cut(problem, found.x, search_cells=0)]
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


def _divided(node: Node, found: Relaxed) -> tuple[Node, Node] | None:
    """Two nodes: by how many fragments have a region or one above, else by which fragment has."""
    above = np.cumsum(found.weights[:, ::-1], axis=1)[:, ::-1]  # weight in region r or above
    counts = above.sum(axis=0)
    off = np.abs(counts - np.rint(counts))
    off[node.min_counts >= node.max_counts] = 0.0
    away = np.minimum(above, 1.0 - above)
    by_fragment = away * (found.missing + _LITTLE * found.missing.sum() + _TINY)[:, None]
    by_count = np.where(off > _WHOLE * len(above), np.minimum(off, 1.0), 0.0)
    by_count *= by_fragment.sum(axis=0)
    alike = len(above) > _FEW and by_fragment.max() < _OUTSTANDING * by_fragment.sum(axis=0).max()
    r = int(np.argmax(by_count))
    if by_count[r] > 0.0 and (alike or by_fragment.max() <= _WHOLE * by_count[r]):
        return node.by_count(r, int(np.floor(counts[r])))
    i, r = (int(at) for at in np.unravel_index(int(np.argmax(by_fragment)), away.shape))
    if away[i, r] <= _WHOLE or not node.low[i] < r <= node.high[i]:
        return None
    return node.by_fragment(i, r)
