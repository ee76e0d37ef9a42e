"""Random machines, and machines by columns of numbers."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from math import exp, log

from domain.machine import Machine, StageRules, Window
from domain.pipeline import Pipeline, Stage


def machine_of(
    g: Sequence[float],
    G: Sequence[float],
    *,
    lanes: Sequence[int] | None = None,
    delays: Mapping[int, float] | None = None,
    windows: Sequence[tuple[int, int, int, float]] = (),
    processors: Sequence[tuple[int, int]] = (),
    shared: Mapping[int, float] | None = None,
) -> Machine:
    """A machine of these overheads, µs, and costs, µs per byte. Stages count from 1; windows are
    (first, last, fragments, return).
    """
    number = len(g)
    names = {stage: f"p{at}" for at, pair in enumerate(processors) for stage in pair}
    return Machine(
        Pipeline(
            tuple(
                Stage.of_line(f"s{j + 1}", overhead_us=g[j], ns_per_byte=G[j] * 1000.0)
                for j in range(number)
            )
        ),
        tuple(
            StageRules(
                lanes[j] if lanes else 1,
                (shared or {}).get(j + 1, 0.0) * 1000.0,
                (delays or {}).get(j + 1, 0.0),
                names.get(j + 1),
            )
            for j in range(number)
        ),
        tuple(Window(a - 1, z - 1, b, None, r) for a, z, b, r in windows),
    )


def small_machine(rng: random.Random, *, has_bytes: bool = False, total: int = 8) -> Machine:
    """A machine of small whole numbers with anything that it may have; `has_bytes` also windows in
    bytes, of messages of `total`.
    """
    n = rng.randint(1, 4)
    lanes = [rng.choice([1, 1, 2, 3]) for _ in range(n)]
    names: list[str | None] = [None] * n
    single = [j for j in range(n) if lanes[j] == 1]
    if len(single) >= 2 and rng.random() < 0.3:
        for j in rng.sample(single, 2):
            names[j] = "core"
    stages, rules = list[Stage](), list[StageRules]()
    for j in range(n):
        per_byte = float(rng.randint(0, 4))
        shared = float(rng.randint(0, int(per_byte))) if lanes[j] > 1 else 0.0
        stages.append(
            Stage.of_line(f"s{j}", overhead_us=rng.randint(0, 5), ns_per_byte=per_byte * 1000.0)
        )
        delay = rng.choice([0.0, 0.0, float(rng.randint(1, 9))])
        rules.append(StageRules(lanes[j], shared * 1000.0, delay, names[j]))
    windows = list[Window]()
    for _ in range(rng.choice([0, 1, 1, 2])):
        a = rng.randrange(n)
        z = rng.randrange(a, n)
        in_bytes = rng.randint(max(2, total // 3), total) if has_bytes else None
        fragments = rng.randint(1, 4) if in_bytes is None or rng.random() < 0.4 else None
        windows.append(Window(a, z, fragments, in_bytes, float(rng.choice([0, 0, 1, 3]))))
    return Machine(Pipeline(tuple(stages), float(rng.choice([0, 7]))), tuple(rules), tuple(windows))


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
