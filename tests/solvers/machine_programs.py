"""The least latency of k real fragments of a machine, by another program than the product's.

Written from the rules of the stages and windows alone, edge by edge: its columns are the ends of
fragments, its method the dual simplex.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from math import inf

import numpy as np
from scipy.optimize import linprog

from domain.machine import Machine

Edge = tuple[tuple[int, int], tuple[int, int], float]


def nodes_of(machine: Machine) -> tuple[list[tuple[float, float, int]], list[int], list[int]]:
    """Nodes as (µs, µs per byte, lanes), and of each stage its first and its last node."""
    nodes, first, last = list[tuple[float, float, int]](), list[int](), list[int]()
    for stage, rules in zip(machine.stages, machine.rules, strict=True):
        line = stage.ranges[0]
        shared = rules.shared_ns_per_byte / 1000.0
        first.append(len(nodes))
        nodes.append((line.overhead_us, line.ns_per_byte / 1000.0 - shared, rules.lanes))
        if shared:
            nodes.append((0.0, shared, 1))
        last.append(len(nodes) - 1)
    return nodes, first, last


def edges_of(machine: Machine, k: int, places: list[int], lags: tuple[int, ...]) -> list[Edge]:
    """Edges from ends to starts, (fragment, node), with what passes between, µs. `places` are those
    of the given windows, in order.
    """
    nodes, first, last = nodes_of(machine)
    delays = defaultdict(float)
    bounded = [(j, j, lanes, 0.0) for j, (_, _, lanes) in enumerate(nodes)]
    for at, rules in enumerate(machine.rules):
        delays[last[at]] = rules.delay_us
        bounded.append((first[at], last[at], rules.lanes, 0.0))
    for window, b in zip(machine.windows, places, strict=True):
        bounded.append((first[window.first], last[window.last], b, window.return_us))
    edges = list[Edge]()
    for i in range(k):
        edges += [((i, j), (i, j + 1), delays[j]) for j in range(len(nodes) - 1)]
        edges += [((i - b, z), (i, a), r) for a, z, b, r in bounded if i >= b]
        for (early, late), lag in zip(machine.processors.values(), lags, strict=True):
            edges.append(((min(i + lag, k - 1), first[early]), (i, first[late]), 0.0))
            if i - 1 - lag >= 0:
                edges.append(((i - 1 - lag, first[late]), (i, first[early]), 0.0))
    return edges


def min_us(
    machine: Machine,
    total: float,
    k: int,
    *,
    places: list[int] | None = None,
    lags: tuple[int, ...] | None = None,
    least: float = 0.0,
    most: float = inf,
) -> float:
    """The least latency in µs over real sizes, at these lags or the best ones; infinite where there
    are none.
    """
    held = [one.fragments or 0 for one in machine.windows] if places is None else places
    every = product(range(9), repeat=len(machine.processors)) if lags is None else [lags]
    return min(_least_us(machine, total, k, held, one, least, most) for one in every)


def _least_us(
    machine: Machine,
    total: float,
    k: int,
    places: list[int],
    lags: tuple[int, ...],
    least: float,
    most: float,
) -> float:
    nodes, _, _ = nodes_of(machine)
    n = len(nodes)
    unit_us = sum(g + G * total for g, G, _ in nodes) or 1.0
    columns = k + k * n + 1  # sizes, ends, latency
    rows, limits = list[np.ndarray](), list[float]()

    def at_least(end: int, before: int | None, wait_us: float, i: int, j: int | None) -> None:
        """end >= before + wait + time of fragment i in node j"""
        row = np.zeros(columns)
        row[end] -= 1.0
        if before is not None:
            row[before] += 1.0
        overhead, per_byte = (nodes[j][0], nodes[j][1]) if j is not None else (0.0, 0.0)
        row[i] += per_byte * total / unit_us
        rows.append(row)
        limits.append(-(wait_us + overhead) / unit_us)

    for i in range(k):
        for j in range(n):
            at_least(k + i * n + j, None, 0.0, i, j)
        at_least(columns - 1, k + i * n + n - 1, machine.rules[-1].delay_us, i, None)
    for (u, a), (v, b), wait_us in edges_of(machine, k, places, lags):
        at_least(k + v * n + b, k + u * n + a, wait_us, v, b)
    objective = np.zeros(columns)
    objective[-1] = 1.0
    sums = np.zeros((1, columns))
    sums[0, :k] = 1.0
    bounds = [(least / total, min(1.0, most / total))] * k + [(0.0, None)] * (k * n + 1)
    result = linprog(
        objective,
        A_ub=np.array(rows),
        b_ub=limits,
        A_eq=sums,
        b_eq=[1.0],
        bounds=bounds,
        method="highs-ds",
    )
    # Lags that deadlock are a cycle of waits: no ends satisfy it.
    return inf if result.fun is None or result.status != 0 else result.fun * unit_us
