"""Sets of cuts on stages with ranges, what is proven of each, and what it is divided by.

Source    own derivation; docs/theory.md sec. 7, "Branch and bound on regions".
Notation  n stages; region q: sizes on which no stage changes its range, q ascending; C_r: how many
          fragments have a region of r or above, C_0 all of them; s: fragments of a node that are
          told apart, a group: any number of further ones between two neighbours of these;
          f: (s, n) the flow of a dual p (s-1, n); lambda: price of a byte; nu_r: of a fragment in
          region r or above, mu_q = nu_0 + .. + nu_q.
Cost      a linear program for each node: a row for each fragment or group and end of a region.
Exact     for ANY p, lambda, nu: T >= lambda B + sum_i min_q [A_i(q) - mu_q] + sum_r nu_r C_r
          + m min(0, min_q [A_g(q) - mu_q]) for a group that has at most m fragments, with A_i(q)
          the least of sum_j f_ij t_j(x) - lambda x over the sizes x of region q, and A_g the same
          for the distribution of the group's step. So what a program says is never trusted: its
          dual is evaluated, errors deducted.
Traps     a group's fragments have one distribution in common: where they are few, or at the ends of
          the message, they are told apart one by one until nothing is lost by that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from solvers.contract import Deadline
from solvers.exact.convex_dual import flow_of
from solvers.exact.dual import repaired
from solvers.exact.lp.glop import PARAMETER_SETS, SparseModel, run_glop, sparse_matrix
from solvers.exact.lp.reduced_dual import order_entries
from solvers.ranges.regions import Region

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_EPS = float(np.finfo(np.float64).eps)
_PARAMETERS = "use_dual_simplex:true use_preprocessing:false use_scaling:false"
_MAX_KEPT = 128  # duals of one kind of node


@dataclass(frozen=True, slots=True)
class Node:
    """Regions from..to of each fragment (s,) and group (s-1,); counts from..to (R,).

    A group whose `group_high` is below its `group_low` has no fragment.
    """

    low: Ints
    high: Ints
    group_low: Ints
    group_high: Ints
    min_counts: Ints
    max_counts: Ints

    @classmethod
    def whole(cls, k: int, regions: int) -> Node:
        """Return the node of all cuts of this many fragments, k >= 2."""
        zeros, none = np.zeros(k, dtype=np.int64), np.zeros(k - 1, dtype=np.int64)
        counts = np.full(regions, k, dtype=np.int64)
        low_counts = np.zeros(regions, dtype=np.int64)
        low_counts[0] = k
        return cls(zeros, zeros + regions - 1, none, none - 1, low_counts, counts)

    @classmethod
    def many(cls, singles: int, counts: tuple[int, int], most: Ints) -> Node:
        """Return the node of all cuts whose counts are in this interval, one group in the middle.

        `most` (R,) is how many fragments may have each region or one above.
        """
        node = cls.whole(singles, len(most))
        high, low_counts = node.group_high.copy(), node.min_counts.copy()
        high[(singles - 1) // 2] = len(most) - 1
        low_counts[0] = counts[0]
        return replace(
            node, group_high=high, min_counts=low_counts, max_counts=np.minimum(most, counts[1])
        )

    @classmethod
    def around(cls, r: int, place: int, counts: tuple[int, int], most: Ints) -> Node:
        """Return the node of all cuts with a fragment of region r: the first (place 0), one between
        (1) or the last (2).
        """
        R, singles = len(most), 3 if place == 1 else 2
        low, high = np.zeros(singles, dtype=np.int64), np.full(singles, R - 1)
        low[min(place, singles - 1)] = high[min(place, singles - 1)] = r
        groups, low_counts = np.zeros(singles - 1, dtype=np.int64), np.zeros(R, dtype=np.int64)
        low_counts[0] = max(counts[0], singles)
        high_counts = np.minimum(most, counts[1])
        return cls(low, high, groups, groups + R - 1, low_counts, high_counts)

    @property
    def grouped(self) -> Bools:
        """Which steps have a group, (s-1,)."""
        return self.group_low <= self.group_high

    def is_void(self, regions: Region, message_bytes: float) -> bool:
        """Return whether no sizes of this node make up the message."""
        low, high = regions.low, regions.high
        if low[self.low].sum() > message_bytes:
            return True
        if not self.grouped.any() and high[self.high].sum() < message_bytes:
            return True
        from_counts = self.min_counts - np.append(self.min_counts[1:], 0)
        to_counts = self.max_counts - np.append(self.max_counts[1:], 0)
        return bool(not from_counts @ low <= message_bytes <= to_counts @ high)

    @property
    def shape(self) -> bytes:
        """What the duals of two nodes must have in common to bound both."""
        return self.grouped.tobytes()

    @property
    def places(self) -> tuple[Ints, Ints]:
        """Where fragments (s,) and groups stand in a dual: each between two of its steps."""
        width = 1 + self.grouped
        at = np.concatenate([[0], np.cumsum(width)])
        return at, at[:-1][self.grouped] + 1

    @property
    def max_in_groups(self) -> int:
        """How many fragments all groups together may have."""
        return int(self.max_counts[0]) - len(self.low)

    def settled(self) -> Node | None:
        """Return it with what intervals and counts say of each other; None if void."""
        r = np.arange(len(self.min_counts))[:, None]
        low, high = self.low, self.high
        group_low, group_high = self.group_low, self.group_high
        min_counts, max_counts = self.min_counts, self.max_counts
        for _ in range(2):
            every = np.flatnonzero(min_counts >= max_counts[0])
            if len(every):
                low, group_low = np.maximum(low, every[-1]), np.maximum(group_low, every[-1])
            if max_counts[0] == len(low):
                group_high = np.minimum(group_high, group_low - 1)
            above = (low[None, :] >= r).sum(axis=1)
            full = np.flatnonzero(max_counts <= above)  # no other may have these regions
            if len(full):
                high = np.where(low >= full[0], high, np.minimum(high, full[0] - 1))
                group_high = np.minimum(group_high, full[0] - 1)
            grouped = group_low <= group_high
            most = (high[None, :] >= r).sum(axis=1)
            most += ((group_high[None, :] >= r) & grouped).any(axis=1) * (max_counts[0] - len(low))
            min_counts = np.maximum(min_counts, above)
            max_counts = np.minimum(max_counts, most)
            min_counts = np.maximum.accumulate(min_counts[::-1])[::-1]
            max_counts = np.minimum.accumulate(max_counts)
            if (min_counts > max_counts).any() or (low > high).any():
                return None
        node = replace(
            self,
            low=low,
            high=high,
            group_low=group_low,
            group_high=group_high,
            min_counts=min_counts,
            max_counts=max_counts,
        )
        return node._singled()

    def _singled(self) -> Node:
        """The same without its only group, where its number of fragments is known."""
        at = np.flatnonzero(self.grouped)
        more = int(self.min_counts[0]) - len(self.low)
        if len(at) != 1 or more + len(self.low) != self.max_counts[0]:
            return self
        g = int(at[0])
        node, low, high = self, int(self.group_low[g]), int(self.group_high[g])
        empty = self.group_high.copy()
        empty[g] = low - 1
        repeat = np.ones(len(empty), dtype=np.int64)
        repeat[g] += more
        return replace(
            node,
            low=np.insert(self.low, g + 1, np.full(more, low)),
            high=np.insert(self.high, g + 1, np.full(more, high)),
            group_low=np.repeat(self.group_low, repeat),
            group_high=np.repeat(empty, repeat),
        )

    def halves(self) -> tuple[Node, Node] | None:
        """Return two nodes that are together this one; None where nothing is left to decide."""
        wide = self.max_counts - self.min_counts
        if wide.any():
            r = int(np.argmax(wide))
            return self.by_count(r, int(self.min_counts[r] + self.max_counts[r]) // 2)
        i = int(np.argmax(self.high - self.low))
        if self.high[i] > self.low[i]:
            return self.by_fragment(i, int(self.low[i] + self.high[i] + 1) // 2)
        at = np.flatnonzero(self.grouped)
        return self.by_first(int(at[0]), above=int(self.group_low[at[0]])) if len(at) else None

    def by_count(self, r: int, count: int) -> tuple[Node, Node]:
        """Return the nodes with at most this many fragments in region r or above, and with more."""
        low_counts, high_counts = self.min_counts.copy(), self.max_counts.copy()
        low_counts[r], high_counts[r] = count + 1, count
        return replace(self, max_counts=high_counts), replace(self, min_counts=low_counts)

    def by_fragment(self, i: int, r: int) -> tuple[Node, Node]:
        """Return the nodes with fragment i below region r, and in it or above."""
        low, high = self.low.copy(), self.high.copy()
        low[i], high[i] = r, r - 1
        return replace(self, high=high), replace(self, low=low)

    def by_first(
        self, g: int, *, above: int | None = None, below: int | None = None
    ) -> tuple[Node, Node]:
        """Return the nodes without and with a fragment of group g in a region.

        The region is `above` or one above it, or else below `below`; the first such fragment is
        told apart, so that those before it are the group's others.
        """
        low, high = int(self.group_low[g]), int(self.group_high[g])
        if above is not None:
            own, others = (above, high), (low, above - 1)
        else:
            assert below is not None
            own, others = (low, below - 1), (below, high)
        lows, highs = self.group_low.copy(), self.group_high.copy()
        lows[g], highs[g] = others
        without = replace(self, group_low=lows, group_high=highs)
        return without, replace(
            self,
            low=np.insert(self.low, g + 1, own[0]),
            high=np.insert(self.high, g + 1, own[1]),
            group_low=np.insert(lows, g + 1, low),
            group_high=np.insert(highs, g + 1, high),
        )

    def by_last(
        self, g: int, *, above: int | None = None, below: int | None = None
    ) -> tuple[Node, Node]:
        """Return the same as by_first with the last such fragment told apart."""
        without, with_one = self.by_first(g, above=above, below=below)
        lows, highs = with_one.group_low.copy(), with_one.group_high.copy()
        for ends in (lows, highs):
            ends[[g, g + 1]] = ends[[g + 1, g]]
        return without, replace(with_one, group_low=lows, group_high=highs)


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A node's program: its dual p, price and prices nu (R,); weights (s, R) and sizes (s,).

    `missing` (s,) is what each fragment would pay beyond its mixture. Of groups: how many fragments
    (s-1, V) have which end, and what each such end would pay beyond if it were told apart.
    """

    p: Floats
    price: float
    nu: Floats
    weights: Floats
    x: Floats
    missing: Floats
    in_groups: Floats
    beyond: Floats


class Planes:
    """What all duals found so far say of the nodes of one shape, at one message."""

    def __init__(self, regions: Region, node: Node, message_bytes: float) -> None:
        R, s = len(regions), len(node.low)
        self._regions, self._B, self._grouped = regions, message_bytes, node.grouped
        self._places = node.places
        self._values = np.zeros((0, s, R))  # A - mu
        self._groups = np.zeros((0, int(node.grouped.sum()), R))
        self._nu = np.zeros((0, R))
        self._fixed = np.zeros(0)  # lambda B, less what rounding may take
        self._most = np.zeros(0)  # fragments of all groups up to which it holds

    def add(self, p: Floats, price: float, nu: Floats, most: int) -> None:
        """Add a dual of a node whose groups have at most so many fragments."""
        mu, size, (own, groups) = np.cumsum(nu), float(np.abs(nu).sum()), self._places
        values, error = _priced(self._regions, flow_of(p)[own], price)
        of_groups, short = _priced(self._regions, group_flows(p, groups, most), price)
        of_groups -= short + 16.0 * _EPS * size
        minimum = of_groups.reshape(2, len(groups), len(mu)).min(axis=0)
        total = float(error.max(axis=1).sum())
        total += 16.0 * _EPS * (len(own) * size + abs(price) * self._B)
        first = 1 if len(self._fixed) >= _MAX_KEPT else 0
        self._values = np.concatenate([self._values[first:], (values - mu)[None]])
        self._groups = np.concatenate([self._groups[first:], (minimum - mu)[None]])
        self._nu = np.concatenate([self._nu[first:], nu[None]])
        self._fixed = np.append(self._fixed[first:], price * self._B - total)
        self._most = np.append(self._most[first:], most)

    def bound_us(self, node: Node, *, last: bool = False) -> float:
        """Return the greatest bound of all duals on this node, no delay; or that of the last."""
        start = len(self._fixed) - 1 if last else 0
        if len(self._fixed) == 0:
            return 0.0
        q = np.arange(len(self._regions))[None, :]
        inside = (q >= node.low[:, None]) & (q <= node.high[:, None])
        value = np.where(inside[None], self._values[start:], np.inf).min(axis=2).sum(axis=1)
        if self._grouped.any():
            low, high = node.group_low[self._grouped], node.group_high[self._grouped]
            inside = (q >= low[:, None]) & (q <= high[:, None])
            of_groups = np.where(inside[None], self._groups[start:], 0.0).min(axis=(1, 2))
            value += node.max_in_groups * np.minimum(0.0, of_groups)
            value[self._most[start:] < node.max_in_groups] = -np.inf
        nu = self._nu[start:]
        value += np.minimum(nu * node.min_counts, nu * node.max_counts).sum(axis=1)
        return max(0.0, float((self._fixed[start:] + value).max()))


def group_flows(p: Floats, groups: Ints, most: int) -> Floats:
    """Return how much of the mixture passes each cell of a group's fragments, (2 G, n).

    Of its first fragments, then of its last ones; those between have a mean of the two.
    """
    first, last = p[groups - 1], p[groups]
    passing = np.maximum(flow_of(p)[groups] - first, 0.0) / max(1, most)
    return np.concatenate([first + passing, last + passing])


def _priced(regions: Region, f: Floats, price: float) -> tuple[Floats, Floats]:
    """A (., R) of these flows, and the greatest rounding error of each."""
    a, s = f @ regions.g.T, f @ regions.G.T
    slope = s - price
    minimum: Floats = a + np.minimum(slope * regions.low, slope * regions.high)
    return minimum, 16.0 * _EPS * (np.abs(a) + (s + abs(price)) * regions.high)


class Programs:
    """The relaxation of nodes: the mean of paths at the joint hull of all stages' true costs."""

    def __init__(self, regions: Region, message_bytes: float, unit_us: float) -> None:
        self._regions, self._B, self._unit = regions, message_bytes, unit_us or 1.0
        self._q, self.at, costs = regions.ends()
        self._costs = costs
        tails = np.cumsum(costs[:, ::-1], axis=1)[:, ::-1] / self._unit
        self._tails, self._behind = tails, tails - costs / self._unit

    def entries(self, node: Node) -> int:
        """Return about how many numbers the program of this node has."""
        return (len(node.low) + 2 * int(node.grouped.sum())) * self._tails.size * 2

    def solve(self, node: Node, deadline: Deadline) -> Relaxed | None:
        """Return the node's optimum; None where it has none, or the solver found none."""
        regions, s, n = self._regions, len(node.low), self._tails.shape[1]
        low = regions.low[node.low]
        total = self._B - float(low.sum())
        room = float(regions.high[node.high].sum())
        if total < 0.0 or (room < self._B and not node.grouped.any()):
            return None
        free = total or 1.0
        i, v = np.nonzero(
            (self._q[None, :] >= node.low[:, None]) & (self._q[None, :] <= node.high[:, None])
        )
        group_low, group_high = node.group_low[node.grouped], node.group_high[node.grouped]
        g, u = np.nonzero(
            (self._q[None, :] >= group_low[:, None]) & (self._q[None, :] <= group_high[:, None])
        )
        above = (self.at[v] - low[i]) / free, self.at[u] / free
        model = self._model(node, (i, v), (g, u), above)
        for parameters in (_PARAMETERS, PARAMETER_SETS[0], PARAMETER_SETS[2]):
            found = run_glop(model, parameters, deadline)
            if found is not None or deadline.passed:
                break
        if found is None:
            return None
        columns, R = int(node.places[0][-1]) * n, len(regions)
        nu = found[0][columns + 1 + s :][:R] - found[0][columns + 1 + s + R :][:R]
        p = repaired(found[0][:columns].reshape(-1, n))
        price = float(found[0][columns]) * self._unit / free
        nu = nu * self._unit
        price = self._held(p, price, nu, node)
        shares, in_groups = np.zeros((s, len(self.at))), np.zeros((s - 1, len(self.at)))
        shares[i, v] = found[1][: len(i)]
        at = np.flatnonzero(node.grouped)[g]
        in_groups[at, u] = found[1][len(i) :][: 2 * len(g)].reshape(2, len(g)).sum(axis=0)
        return self._relaxed(node, (p, price, nu), shares, in_groups)

    def _held(self, p: Floats, price: float, nu: Floats, node: Node) -> float:
        """The price lowered by a solver's error: no fragment of a group costs less than its own."""
        regions, q, (_, groups) = self._regions, np.arange(len(self._regions)), node.places
        if not len(groups):
            return price
        low, high = node.group_low[node.grouped], node.group_high[node.grouped]
        inside = np.tile((q >= low[:, None]) & (q <= high[:, None]), (2, 1))
        flows = group_flows(p, groups, node.max_in_groups)
        for _ in range(3):
            values, error = _priced(regions, flows, price)
            short = np.cumsum(nu) + error + 16.0 * _EPS * np.abs(nu).sum() - values
            if (short[inside] <= 0.0).all():
                break
            each = np.where(inside, short, 0.0) / np.maximum(regions.low, 1.0)
            price -= 2.0 * float(each.max())
        return price

    def _relaxed(
        self, node: Node, dual: tuple[Floats, float, Floats], shares: Floats, in_groups: Floats
    ) -> Relaxed:
        (p, price, nu), (own, groups) = dual, node.places
        regions, R = self._regions, len(self._regions)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        weights = np.zeros((len(shares), R))
        np.add.at(weights.T, self._q, shares.T)
        x = shares @ self.at
        f = flow_of(p)[own]
        q_x = np.minimum(np.searchsorted(regions.high, x - 1e-9 * x), R - 1)
        true = (f * (regions.g[q_x] + regions.G[q_x] * x[:, None])).sum(axis=1)
        hull = (f * (shares @ self._costs)).sum(axis=1)
        beyond = np.zeros_like(in_groups)
        mean = 0.5 * (p[groups - 1] + p[groups])
        beyond[node.grouped] = self._costs.sum(axis=1)[None, :] - mean @ self._costs.T
        missing = np.maximum(0.0, true - hull)
        return Relaxed(p, price, nu, weights, x, missing, in_groups, beyond)

    def _model(
        self,
        node: Node,
        rows: tuple[Ints, Ints],
        of_groups: tuple[Ints, Ints],
        bytes_above: tuple[Floats, Floats],
    ) -> SparseModel:
        """Columns: p, lambda, theta_i, nu+, nu-. Rows: ends of fragments, groups; unit, order."""
        (i, v), (g, u), s, n = rows, of_groups, len(node.low), self._tails.shape[1]
        places, groups = node.places
        P, R, own = int(places[-1]), len(self._regions), len(i)
        columns, row, stage, count = P * n, np.arange(own), np.arange(n), own + 2 * len(g)
        parts: list[tuple[Ints, Ints, Floats]] = []
        for step, cost, inside in (
            (places[i] - 1, self._tails[v], i >= 1),
            (places[i], -self._behind[v], i <= s - 2),
        ):
            at = (step[inside, None] * n + stage).ravel()
            parts.append((np.repeat(row[inside], n), at, cost[inside].ravel()))
        each = self._costs[u] / self._unit
        rest = self._behind[u] / max(1, node.max_in_groups)
        for at_end, (before, after) in enumerate(((each + rest, -rest), (rest, each - rest))):
            group_row = np.repeat(own + at_end * len(g) + np.arange(len(g)), n)
            for step, cost in ((groups[g] - 1, before), (groups[g], after)):
                parts.append((group_row, (step[:, None] * n + stage).ravel(), cost.ravel()))
        size = np.concatenate([bytes_above[0], bytes_above[1], bytes_above[1]])
        parts.append((np.arange(count), np.full(count, columns), -size))
        parts.append((row, columns + 1 + i, np.full(own, -1.0)))
        at_least, at_most = self._tied(node)
        q = np.concatenate([self._q[v], self._q[u], self._q[u]])
        at_or_below, r = np.nonzero(
            (at_least | at_most)[None, :] & (np.arange(R)[None, :] <= q[:, None])
        )
        first = columns + 1 + s
        parts.append((at_or_below, first + r, np.full(len(r), -1.0)))
        parts.append((at_or_below, first + R + r, np.ones(len(r))))
        steps = np.repeat(np.arange(P), n)
        parts.append((count + steps, np.arange(columns), np.ones(columns)))
        a, d = np.nonzero(np.ones((P - 1, n - 1), dtype=bool))
        parts.append(order_entries((a, d), n, first_row=count + P))
        data = [np.concatenate(part) for part in zip(*parts, strict=True)]
        kept = data[2] != 0.0
        height = count + P + len(a)
        rest = self._regions.low[node.low].sum() < self._B
        total = np.array([1.0 if rest else 0.0])
        free = np.full(1 + s, np.inf)
        nu_high = np.concatenate([np.where(at_least, np.inf, 0.0), np.where(at_most, np.inf, 0.0)])
        return SparseModel(
            cost=-np.concatenate(
                [np.zeros(columns), total, np.ones(s), node.min_counts, -node.max_counts]
            ).astype(float),
            low=np.concatenate([np.zeros(columns), np.full(1 + s, -np.inf), np.zeros(2 * R)]),
            high=np.concatenate([np.ones(columns), free, nu_high]),
            row_low=np.concatenate(
                [
                    np.where(i == 0, -self._tails[v, 0], 0.0),
                    np.zeros(2 * len(g)),
                    np.ones(P),
                    np.zeros(len(a)),
                ]
            ),
            row_high=np.concatenate([np.full(count, np.inf), np.ones(P), np.full(len(a), np.inf)]),
            matrix=sparse_matrix(
                data[2][kept], data[0][kept], data[1][kept], shape=(height, first + 2 * R)
            ),
        )

    def _tied(self, node: Node) -> tuple[Bools, Bools]:
        """Which regions' least and greatest counts say more than the intervals do, (R,) each."""
        r, grouped = np.arange(len(node.min_counts))[:, None], node.grouped
        at_least = node.min_counts > (node.low[None, :] >= r).sum(axis=1)
        open_ = ((node.group_high[None, :] >= r) & grouped).any(axis=1)
        at_most = open_ | (node.max_counts < (node.high[None, :] >= r).sum(axis=1))
        return at_least, at_most
