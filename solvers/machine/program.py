"""The best real sizes of one number of fragments, by a linear program, and a proof of them.

Source    docs/theory.md, "Machines".
Notation  k fragments of x_i bytes in n nodes; s_ij, e_ij: start and end; T: latency; an edge goes
          from an end to a start, or to T; f_ij: flow through a node; w_i = sum_j G_j f_ij.
Cost      building 1 to 2 ms; the library's interior point 0.1 s at 8 nodes x 100 fragments.
Exact     the bound is below every cut of k fragments with these places and lags, whatever the
          library did; the sizes are the library's, within the limits.
Traps     `highspy` imported beside OR-Tools breaks that: SciPy's copy of the library does not.
          The library's dual is only approximate, and is used as branching ratios alone.

Program: least T with s_v >= e_u + c for each edge (u, v, c), e_u = s_u + g + G x_i, sum x_i = B.
Its dual is a unit flow from the starts to T: T >= sum g_j f_ij + sum c f + min_x sum_i w_i x_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domain.machine import Lags, Machine
from domain.problem import MachineProblem
from solvers.contract import Deadline

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PartialLags = tuple[int | None, ...]

_EPSILON = float(np.finfo(float).eps)
_SHORT = 1.0 - 1e-12  # of the greatest size: windows of bytes then hold as many, when it is divided
# With less time for one program the library returns nothing; and where reading it takes all of
# that, the library's limit is below 0, which is none.
_MIN_S, _MIN_S_OF_EDGE = 0.05, 1e-5


@dataclass(frozen=True, slots=True)
class Region:
    """The cuts of one program: k fragments from `least` to `most` bytes (real), the places of each
    of the network's windows, and the lags of the processors.

    A processor without a lag serves in any order. `live_lags` are lags of all, those given among
    them, that do not deadlock: they give the order in which the evaluator passes the nodes.
    """

    k: int
    minimum: float
    most: float
    places: tuple[int, ...]
    lags: PartialLags
    live_lags: Lags


@dataclass(frozen=True, slots=True)
class Solved:
    """What a program gave: a bound in µs on all cuts of the region, without the constant delay, the
    best sizes in bytes (k,), and the dual. Without these two, the library did not end in time.
    """

    bound_us: float
    sizes: Floats | None = None
    dual: Dual | None = None


def solve_region(problem: MachineProblem, region: Region, deadline: Deadline) -> Solved:
    """Solve the program of this region, unless time is up."""
    if deadline.passed:
        return Solved(0.0)
    edges, paths = Edges.of(problem.machine, region), busy_paths(problem.machine, region)
    if deadline.remaining_s < _MIN_S + _MIN_S_OF_EDGE * len(edges.tail):
        return Solved(0.0)
    found = _solved(problem, region, edges, paths, deadline)
    if found is None:
        return Solved(0.0)
    sizes, dual = found
    bound_us = _flow_bound_us(problem, region, edges, paths, dual)
    return Solved(bound_us, within(sizes, problem.message_bytes, region.minimum, region.most), dual)


def bound_by_us(problem: MachineProblem, region: Region, dual: Dual) -> float:
    """Return a bound in µs on every cut of the region, without the constant delay, from any values
    >= 0 of as many fragments: an approximate dual's, or one of another count.
    """
    edges, paths = Edges.of(problem.machine, region), busy_paths(problem.machine, region)
    return _flow_bound_us(problem, region, edges, paths, dual)


@dataclass(frozen=True, slots=True)
class Dual:
    """Values >= 0, nearly a flow: what starts at each node (k, n), passes the edge of each rule
    of each fragment (rules, k), and takes each of the processors' paths.
    """

    starts: Floats
    passed: Floats
    paths: Floats

    def of_count(self, k: int, at: int) -> Dual:
        """Return values for k fragments: those of fragment `at` are repeated, or those behind it
        are left out.
        """
        known = len(self.starts)
        if k >= known:
            rows = np.concatenate(
                [np.arange(at), np.full(k - known, at), np.arange(at, known)]
            ).astype(np.int64)
        else:
            at = min(at, k)
            rows = np.concatenate([np.arange(at), np.arange(at + known - k, known)])
        return Dual(self.starts[rows], self.passed[:, rows], self.paths)


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges from ends to starts: node j of fragment i is i n + j, and the latency is k n.

    They are in the order in which the evaluator passes their `tail`; `first` is the node that it
    passes first. Arrays over edges: `us` is what passes between, `rule` numbers the rules, alike
    for every count. `g_us` and `G_us` are the costs of the nodes (n,).
    """

    tail: Ints
    head: Ints
    rule: Ints
    us: Floats
    first: int
    g_us: Floats
    G_us: Floats

    @classmethod
    def of(cls, machine: Machine, region: Region) -> Edges:
        """Return the edges of these rules, for stages of one line over the sizes."""
        network, n, k = machine.network, len(machine.network), region.k
        i = np.arange(k, dtype=np.int64)
        # From, to, and what passes between; rules that reach beyond the last fragment are empty.
        parts: list[tuple[Ints, Ints, float]] = [
            (i * n + j, i * n + j + 1, network.delay_us[j]) for j in range(n - 1)
        ]
        for one, b in zip(network.windows, region.places, strict=True):
            parts.append((i[: max(0, k - b)] * n + one.last, i[b:] * n + one.first, one.return_us))
        for (early, late), lag in zip(network.processors, region.lags, strict=True):
            if lag is None:
                continue
            ahead, behind = np.minimum(i + lag, k - 1), max(0, k - 1 - lag)
            parts.append((ahead * n + early, i * n + late, 0.0))
            parts.append((i[:behind] * n + late, i[lag + 1 :] * n + early, 0.0))
        last = i[max(0, k - machine.rules[-1].lanes) :]  # of each lane the last fragment
        if network.is_shared[-1]:
            last = i[-1:]
        parts.append((last * n + n - 1, np.full(len(last), k * n), network.delay_us[-1]))
        tail, head = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
        lengths = [len(part[0]) for part in parts]
        us = np.repeat([part[2] for part in parts], lengths)
        rule = np.repeat(np.arange(len(parts)), lengths)
        rank = _ranks(machine, region)
        by = np.argsort(rank[tail], kind="stable")
        g, G = node_lines(machine, region.minimum, region.most)
        return cls(tail[by], head[by], rule[by], us[by], int(np.argmin(rank)), g, G)

    def fragments(self) -> Ints:
        """Return the fragment by which each edge is known among those of its rule: the one that it
        goes to, or, where it ends, the one that it comes from.

        Behind the last fragments a processor's edges to several of them come from one.
        """
        n = len(self.g_us)
        nodes = np.where(self.head > self.tail.max(), self.tail, self.head)
        fragments: Ints = nodes // n
        return fragments


@dataclass(frozen=True, slots=True)
class BusyPath:
    """The path through all that a processor does, of which every order has one: to its earlier
    stage with the first fragment, then both stages of all fragments, then on with the last.

    It takes `us` and `weights` (k,) µs per byte of each fragment.
    """

    us: float
    weights: Floats

    @classmethod
    def of(cls, machine: Machine, region: Region, early: int, late: int) -> BusyPath:
        """Return that of the processor of these two nodes."""
        g, G = node_lines(machine, region.minimum, region.most)
        delay, k = machine.network.delay_us, region.k
        weights = np.full(k, G[early] + G[late])
        weights[0] += G[:early].sum()
        weights[-1] += G[late + 1 :].sum()
        around_us = g[:early].sum() + g[late + 1 :].sum()
        around_us += sum(delay[:early]) + sum(delay[late:])
        return cls(float(around_us + k * (g[early] + g[late])), weights)


def busy_paths(machine: Machine, region: Region) -> list[BusyPath]:
    """Return those of the processors that serve in any order."""
    pairs = zip(machine.network.processors, region.lags, strict=True)
    return [BusyPath.of(machine, region, *pair) for pair, lag in pairs if lag is None]


def node_lines(machine: Machine, minimum: float, most: float) -> tuple[Floats, Floats]:
    """Return each node's overhead, µs, and cost, µs per byte, (n,), for stages of one line over
    these sizes.
    """
    network = machine.network
    g, G = np.zeros(len(network)), np.zeros(len(network))
    for node, (stage, is_shared) in enumerate(
        zip(network.stage_of, network.is_shared, strict=True)
    ):
        line = machine.stages[stage].line_over(minimum, most)
        assert line is not None, "one line covers these sizes"
        shared = machine.rules[stage].shared_ns_per_byte
        if not is_shared:
            g[node] = line.overhead_us
        G[node] = (shared if is_shared else line.ns_per_byte - shared) / 1000.0
    return g, G


def _ranks(machine: Machine, region: Region) -> Ints:
    """When the evaluator passes each node."""
    n, k = len(machine.network), region.k
    offsets = machine.offsets(region.places, region.live_lags)
    assert offsets is not None, "these lags do not deadlock"
    steps = np.arange(k, dtype=np.int64)[:, None] + np.array(offsets)
    ranks: Ints = (steps * n + np.arange(n)).ravel()
    return ranks


def _solved(
    problem: MachineProblem,
    region: Region,
    edges: Edges,
    paths: list[BusyPath],
    deadline: Deadline,
) -> tuple[Floats, Dual] | None:
    """The library's sizes in bytes, and its dual; None where it did not end in time.

    Columns x_i, s_ij, T; sizes are scaled by the message, and times by about what it takes.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    k, n, total = region.k, len(problem.machine.network), float(problem.message_bytes)
    scale_us = _scale_us(edges, k, total)
    node, count = edges.tail % n, len(edges.tail)
    rows, of_path = np.arange(count), np.arange(count, count + len(paths))
    columns = k + k * n + 1
    entries = [
        (rows, k + edges.head, -np.ones(count)),
        (rows, k + edges.tail, np.ones(count)),
        (rows, edges.tail // n, edges.G_us[node] * total / scale_us),
        (of_path, np.full(len(paths), columns - 1), -np.ones(len(paths))),
    ]
    for at, path in zip(of_path.tolist(), paths, strict=True):
        entries.append((np.full(k, at), np.arange(k), path.weights * total / scale_us))
    row, column = (np.concatenate([entry[part] for entry in entries]) for part in (0, 1))
    value = np.concatenate([entry[2] for entry in entries])
    fixed_us = np.append(edges.us + edges.g_us[node], [path.us for path in paths])
    objective = np.zeros(columns)
    objective[-1] = 1.0
    waits: Any = csr_array((value, (row, column)), shape=(count + len(paths), columns))
    sums: Any = csr_array((np.ones(k), (np.zeros(k, dtype=np.int64), np.arange(k))), (1, columns))
    most = max(region.most * _SHORT / total, 1.0 / k)
    result = linprog(
        objective,
        A_ub=waits,
        b_ub=-fixed_us / scale_us,
        A_eq=sums,
        b_eq=[1.0],
        bounds=[(region.minimum / total, most)] * k + [(0.0, None)] * (columns - k),
        method="highs-ipm",
        options={"time_limit": deadline.remaining_s},
    )
    if result.x is None or result.status != 0:
        return None
    flow = np.maximum(0.0, -result.ineqlin.marginals)
    starts = np.maximum(0.0, result.lower.marginals[k : k + k * n]).reshape(k, n)
    passed = np.zeros((int(edges.rule.max()) + 1, k))
    passed[edges.rule, edges.fragments()] = flow[:count]
    return result.x[:k] * total, Dual(starts, passed, flow[count:])


def _scale_us(edges: Edges, k: int, total: float) -> float:
    """About what equal sizes take: one fragment all nodes, and all of them the slowest one."""
    g, G = edges.g_us, edges.G_us
    through_us = float((g + G * (total / k)).sum() + edges.us.max())
    slowest_us = float((k * g + G * total).max())
    return through_us + slowest_us if through_us + slowest_us > 0.0 else 1.0


def within(sizes: Floats, total: float, minimum: float, most: float) -> Floats:
    """Return these sizes moved into the limits (all bytes), with the right sum, (k,)."""
    most = max(most * _SHORT, total / len(sizes))
    found = np.clip(sizes, minimum, most)
    short = total - float(found.sum())
    room = most - found if short > 0.0 else found - minimum
    if room.sum() > 0.0:
        found += room * min(1.0, abs(short) / float(room.sum())) * np.sign(short)
    return found


def _flow_bound_us(
    problem: MachineProblem, region: Region, edges: Edges, paths: list[BusyPath], dual: Dual
) -> float:
    """The bound of the flow that these values are ratios of.

    One unit is sent from the starts, and leaves each node by the ratios of its edges, so that the
    flow is one, whatever the values are. A node whose edges have none goes on by the first of them.
    """
    k, nodes = region.k, region.k * len(problem.machine.network)
    inflow = np.zeros(nodes + 1)
    total = float(dual.starts.sum() + dual.paths.sum())
    if total > 0.0:
        inflow[:nodes] = dual.starts.ravel() / total
    else:
        inflow[edges.first] = 1.0
    through, flow = _sent(edges, inflow, dual.passed[edges.rule, edges.fragments()])
    through = through[:nodes].reshape(k, -1)
    fixed_us, weights = float((through @ edges.g_us).sum() + flow @ edges.us), through @ edges.G_us
    for path, value in zip(paths, dual.paths.tolist(), strict=True):
        share = value / total if total > 0.0 else 0.0
        fixed_us, weights = fixed_us + share * path.us, weights + share * path.weights
    min_us = knapsack_us(weights, problem.message_bytes, region.minimum, region.most)
    return (fixed_us + min_us) * (1.0 - 8.0 * _EPSILON * (nodes + 100))


def _sent(edges: Edges, inflow: Floats, ratios: Floats) -> tuple[Floats, Floats]:
    """What passes each node, and each edge."""
    through = inflow.tolist()
    flow = [0.0] * len(edges.tail)
    firsts = np.flatnonzero(np.diff(edges.tail, prepend=-1))
    sums = np.add.reduceat(ratios, firsts).tolist()
    tails, heads, of_edge = edges.tail[firsts].tolist(), edges.head.tolist(), ratios.tolist()
    ends = [*firsts[1:].tolist(), len(flow)]
    for tail, first, end, ratio_sum in zip(tails, firsts.tolist(), ends, sums, strict=True):
        passed = through[tail]
        if passed == 0.0:
            continue
        if ratio_sum <= 0.0:
            flow[first] = passed
            through[heads[first]] += passed
            continue
        for edge in range(first, end):
            share = passed * (of_edge[edge] / ratio_sum)
            flow[edge] = share
            through[heads[edge]] += share
    return np.array(through), np.array(flow)


def knapsack_us(weights: Floats, total: float, minimum: float, most: float) -> float:
    """Return min sum w_i x_i with sum x_i = total and least <= x_i <= most, of weights (k,) in µs
    per byte.

    Every fragment has the least; the rest goes to the least weights first.
    """
    ascending = np.sort(weights)
    rest, room = total - minimum * len(weights), max(0.0, most - minimum)
    given = np.clip(rest - room * np.arange(len(weights)), 0.0, room)
    return float(ascending @ given + minimum * ascending.sum())
