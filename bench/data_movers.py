"""Random machines like those that move data between hosts, devices and files."""

from __future__ import annotations

import random
from math import exp, log

from domain.machine import Machine, StageRules, Window
from domain.pipeline import Pipeline, Stage


def data_mover(rng: random.Random) -> tuple[Machine, int]:
    """A machine like those of real data movers, and a message in bytes.

    3 to 6 stages of 0.5 to 20 µs and 3 to 50 GB/s, 256 KiB to 64 MiB; lanes in half of them, slots
    between neighbours, delays, a window of credits, a processor for two stages.
    """

    def spread(low: float, high: float) -> float:
        return exp(rng.uniform(log(low), log(high)))

    n = rng.randint(3, 6)
    g, G = [spread(0.5, 20.0) for _ in range(n)], [1.0 / spread(3e3, 5e4) for _ in range(n)]
    lanes, delays, total = [1] * n, [0.0] * n, int(spread(2**18, 2**26))
    windows, names = list[Window](), dict[int, str]()
    if rng.random() < 0.5:
        j = rng.randrange(n)
        lanes[j] = rng.choice([2, 2, 4, 8])
        G[j] *= lanes[j] * rng.uniform(0.7, 1.3)
    if rng.random() < 0.35:
        delays[rng.randrange(n - 1)] = spread(1.0, 200.0)
    if rng.random() < 0.7:
        for j in range(n - 1):
            if rng.random() < 0.6:
                places = rng.choice([1, 2, 2, 3, 4, 8]) + max(lanes[j], lanes[j + 1]) - 1
                back_us = spread(0.2, 10.0) if rng.random() < 0.5 else 0.0
                windows.append(Window(j, j + 1, places, None, back_us))
    if rng.random() < 0.35:
        a = rng.randrange(n - 1)
        z = rng.randrange(a + 1, n)
        way_us = sum(delays[a:z]) + spread(0.5, 10.0)
        windows.append(Window(a, z, rng.choice([4, 8, 16]), None, way_us))
    single = [j for j in range(n) if lanes[j] == 1]
    if len(single) >= 2 and rng.random() < 0.3:
        names = dict.fromkeys(rng.sample(single, 2), "core")
    stages = [Stage.of_line(f"s{j}", overhead_us=g[j], ns_per_byte=G[j] * 1e3) for j in range(n)]
    rules = [StageRules(lanes[j], 0.0, delays[j], names.get(j)) for j in range(n)]
    return Machine(Pipeline(tuple(stages)), tuple(rules), tuple(windows)), total


def wide_chain(rng: random.Random, stages: int) -> Machine:
    """A machine of so many stages, with eight places between neighbours that take 1 µs to come
    back.
    """

    def spread(low: float, high: float) -> float:
        return exp(rng.uniform(log(low), log(high)))

    costs = [(spread(0.5, 20.0), 1e3 / spread(3e3, 5e4)) for _ in range(stages)]
    return Machine(
        Pipeline(
            tuple(
                Stage.of_line(f"s{j}", overhead_us=overhead, ns_per_byte=cost)
                for j, (overhead, cost) in enumerate(costs)
            )
        ),
        (StageRules(),) * stages,
        tuple(Window(j, j + 1, 8, None, 1.0) for j in range(stages - 1)),
    )
