"""Random machines, and how long fragments take through one by a simulation of events."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from hypothesis import strategies as st

from contract.limits import MAX_LAG
from domain.errors import Infeasible
from domain.machine import Lags, Machine, StageRules, Window
from domain.pipeline import FitRange, Pipeline, Stage

Rows = Sequence[tuple[float, float]]


def machine_of(
    lines: Rows,
    windows: Sequence[tuple[int, int, int | None, float]] = (),
    *,
    lanes: Sequence[int] | None = None,
    delay_us: Sequence[float] | None = None,
    together: tuple[int, int] | None = None,
) -> Machine:
    """A machine of lines, (µs, µs per byte), and windows (a, z, b, r); stages count from 1."""
    stages = tuple(
        Stage.of_line(f"stage {j}", overhead_us=g, ns_per_byte=1000.0 * cost)
        for j, (g, cost) in enumerate(lines, start=1)
    )
    rules = tuple(
        StageRules(
            lanes[j] if lanes else 1,
            0.0,
            delay_us[j] if delay_us else 0.0,
            "one" if together and j + 1 in together else None,
        )
        for j in range(len(lines))
    )
    named = tuple(Window(a - 1, z - 1, b, None, r) for a, z, b, r in windows)
    return Machine(Pipeline(stages), rules, named)


# --- random machines ------------------------------------------------------------------------------


def some_machine(
    rng: np.random.Generator,
    *,
    ranges: bool = False,
    bytes_too: bool = False,
    shared: bool = True,
    processors: bool = True,
) -> Machine:
    """One to five stages whose costs are whole µs and whole µs a byte: sums are exact.

    With ranges costs are any, and fall or rise from one to the next.
    """
    n = int(rng.integers(1, 6))
    names = _processors(rng, n) if processors else [None] * n
    stages = tuple(_stage(rng, f"stage {j}", ranges=ranges) for j in range(n))
    rules = []
    for stage, name in zip(stages, names, strict=True):
        lanes = 1 if name else int(rng.choice([1, 1, 2, 3, 5]))
        least = min(part.ns_per_byte for part in stage.ranges)
        part = float(rng.integers(0, int(least // 1000.0) + 1)) * 1000.0
        delay_us = float(rng.choice([0, 0, 3, 11]))
        rules.append(StageRules(lanes, part if shared and lanes > 1 else 0.0, delay_us, name))
    windows = tuple(_window(rng, n, bytes_too=bytes_too) for _ in range(rng.integers(0, 4)))
    return Machine(Pipeline(stages), tuple(rules), windows)


def machines(**words: bool) -> st.SearchStrategy[Machine]:
    """The same for Hypothesis."""
    return st.integers(0, 2**32 - 1).map(
        lambda seed: some_machine(np.random.default_rng(seed), **words)
    )


def _stage(rng: np.random.Generator, name: str, *, ranges: bool) -> Stage:
    ends: list[int | None] = [None]
    if ranges:
        ends = [*np.unique(rng.integers(1, 400, rng.integers(0, 3))).tolist(), None]
    parts = []
    for end in ends:
        overhead_us, per_byte = (float(number) for number in rng.integers(0, 9, 2))
        broken = rng.choice([1.0, 0.37], 2) if ranges else (1.0, 1.0)
        parts.append(FitRange(overhead_us * broken[0], 1000.0 * per_byte * broken[1], end))
    return Stage(name, tuple(parts))


def _processors(rng: np.random.Generator, n: int) -> list[str | None]:
    """None, one, or two that do not interleave."""
    names: list[str | None] = [None] * n
    for name in ("one", "two")[: rng.integers(0, 3)]:
        free = [j for j in range(n) if names[j] is None]
        if len(free) < 2:
            break
        j, k = sorted(rng.choice(free, 2, replace=False).tolist())
        inside = [other for other in names[j:k] if other is not None]
        if len(inside) != 1:
            names[j] = names[k] = name
    return names


def _window(rng: np.random.Generator, n: int, *, bytes_too: bool) -> Window:
    first, last = sorted(rng.integers(0, n, 2).tolist())
    kind = int(rng.integers(0, 3)) if bytes_too else 0
    fragments = None if kind == 1 else int(rng.integers(1, 7))
    held = None if kind == 0 else int(rng.integers(300, 2500))
    return Window(first, last, fragments, held, float(rng.choice([0, 0, 2, 7])))


# --- a simulation of events -----------------------------------------------------------------------


def carried_us(machine: Machine, cut: Sequence[float], lags: Lags | None = None) -> float:
    """The latency of a cut, without the constant delay, where any free lane takes the next.

    Fragments queue in front of a node in the order of their arrival. The first one starts as soon
    as every window that begins there has a place; whichever fragment ends gives one back. A
    processor goes through the order of its lag, whatever came first; without given lags the best
    ones count.
    """
    if lags is not None:
        return _Run(machine, cut, lags).latency_us()
    places = machine.places(max(cut))
    every = product(range(MAX_LAG + 1), repeat=len(machine.network.processors))
    live = (one for one in every if machine.offsets(places, one) is not None)
    return min(_Run(machine, cut, one).latency_us() for one in live)


class _Run:
    """One simulation: events in a heap, places as counters."""

    def __init__(self, machine: Machine, cut: Sequence[float], lags: Lags) -> None:
        self._network = machine.network
        self._times = [machine.node_times_us(size) for size in cut]
        self._free = list(machine.places(max(cut)))
        self._queues: list[list[tuple[float, int]]] = [[] for _ in range(len(self._network))]
        self._orders = [
            list(_order(len(cut), pair, lag))[::-1]
            for pair, lag in zip(self._network.processors, lags, strict=True)
        ]
        self._busy = [False] * len(self._orders)
        # (µs, what happens, fragment, node or window)
        self._events = [(0.0, "comes", i, 0) for i in range(len(cut))]

    def latency_us(self) -> float:
        """Run it to its end."""
        last, done_us = len(self._network) - 1, 0.0
        while self._events:
            now_us = self._events[0][0]
            while self._events and self._events[0][0] == now_us:
                _, what, i, at = heapq.heappop(self._events)
                if what == "comes":
                    heapq.heappush(self._queues[at], (now_us, i))
                elif what == "is back":
                    self._free[at] += 1
                else:
                    self._end(now_us, i, at)
                    done_us = now_us if at == last else done_us
            self._start_all(now_us)
        assert not any(self._queues), "a fragment waits for ever"
        return done_us + self._network.delay_us[-1]

    def _end(self, now_us: float, i: int, node: int) -> None:
        for w, one in enumerate(self._network.windows):
            if one.last == node:
                heapq.heappush(self._events, (now_us + one.return_us, "is back", i, w))
        for at, pair in enumerate(self._network.processors):
            if node in pair:
                self._busy[at] = False
        if node + 1 < len(self._network):
            came_us = now_us + self._network.delay_us[node]
            heapq.heappush(self._events, (came_us, "comes", i, node + 1))

    def _start_all(self, now_us: float) -> None:
        for node, queue in enumerate(self._queues):
            windows = [w for w, one in enumerate(self._network.windows) if one.first == node]
            while queue and all(self._free[w] for w in windows):
                i = self._take(queue, node)
                if i is None:
                    break
                for w in windows:
                    self._free[w] -= 1
                heapq.heappush(self._events, (now_us + self._times[i][node], "ends", i, node))

    def _take(self, queue: list[tuple[float, int]], node: int) -> int | None:
        """The next fragment of a queue, that whose turn it is where a processor has an order."""
        for at, pair in enumerate(self._network.processors):
            if node in pair:
                turn = self._orders[at][-1] if self._orders[at] else None
                came = [one for one in queue if (one[1], node) == turn]
                if self._busy[at] or not came:
                    return None
                self._orders[at].pop()
                self._busy[at] = True
                queue.remove(came[0])
                heapq.heapify(queue)
                return came[0][1]
        return heapq.heappop(queue)[1]


def _order(count: int, pair: tuple[int, int], lag: int) -> Iterator[tuple[int, int]]:
    """Round q has fragment q in the first node, then fragment q - lag in the second."""
    for q in range(count + lag):
        if q < count:
            yield q, pair[0]
        if q >= lag:
            yield q - lag, pair[1]


def fits(machine: Machine, size: float) -> bool:
    """Whether a fragment of this size fits every window."""
    try:
        return bool(machine.places(size))
    except Infeasible:
        return False
