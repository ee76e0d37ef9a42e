"""Random machines, and machines by columns of numbers."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

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
