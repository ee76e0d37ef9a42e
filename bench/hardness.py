"""Five classes of pipelines that an exact solver finds hard for different reasons, drawn by seed.

Notation  n = 8 stages, k fragments of B bytes; g, G: µs and µs/byte; x: (k,) the optimal sizes;
          b: the slowest stage at the mean size B/k.

A class says how a pipeline is drawn and what must hold at the optimum, so that a seed is taken only
where the hardness that the class is named for is there for this very message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import Pipeline, pipeline_of_lines
from solvers.contract import Deadline
from solvers.exact.chain import Chain, ChainOptions
from solvers.exact.dual import value_us
from solvers.exact.lp.lines import CountResult
from solvers.exact.structured import default_method, solve_count
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]
Rows = tuple[tuple[float, float], ...]

STAGES = 8
_NS_PER_BYTE = 15.0
_OVERHEAD_US = 7.0
_DIGITS = 6  # of what is drawn: the same numbers whatever the machine's exp and pow round to
_MOVED_SHARE = 0.02  # of the fragments: for how many another stage than the usual one is slowest
_ESSENTIAL = 1e-7  # relative: what forbidding to wait must cost
_SOLVE_LIMIT_S = 60.0
_INTERIOR = ChainOptions(close=1e-10, time_limit_s=_SOLVE_LIMIT_S)


@dataclass(frozen=True, slots=True)
class Hardness:
    """A class: its letter and name, how it is drawn, and what must hold at the optimum."""

    letter: str
    name: str
    draw: Callable[[np.random.Generator, int], tuple[Floats, Floats]]
    holds: Callable[[LineProblem, CountResult], bool]

    def rows(self, seed: int) -> Rows:
        """(overhead in µs, ns per byte) of every stage."""
        rng = np.random.default_rng([ord(self.letter), seed])
        overhead, cost = self.draw(rng, seed)
        return tuple((_short(g), _short(G)) for g, G in zip(overhead, cost, strict=True))


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def pipeline_of(rows: Rows) -> Pipeline:
    """The stages under numbers."""
    return pipeline_of_lines([(f"stage {j}", g, G) for j, (g, G) in enumerate(rows)])


# ---- how they are drawn --------------------------------------------------------------------------


def _log_uniform(rng: np.random.Generator, spread: float, number: int) -> Floats:
    half = np.log(spread) / 2.0
    drawn: Floats = np.exp(rng.uniform(-half, half, number))
    return drawn


def _one_slowest(rng: np.random.Generator, seed: int) -> tuple[Floats, Floats]:
    """Greatest overhead and cost in one stage; for even seeds it outweighs each side's costs.

    Costs near the greatest let sizes grow slowly from fragment to fragment, and only then can many
    fragments be best: how near they are is drawn too.
    """
    b = int(rng.integers(STAGES))
    overhead = rng.uniform(0.05, 0.95, STAGES)
    cost = rng.uniform(rng.uniform(0.05, 0.9), 0.98, STAGES)
    sides = cost[:b].sum(), cost[b + 1 :].sum()
    if seed % 2 == 0:
        cost *= rng.uniform(0.5, 1.0) / max(1.0, *sides)
    overhead[b] = cost[b] = 1.0
    scale = _log_uniform(rng, 4.0, 2)
    return _OVERHEAD_US * scale[0] * overhead, _NS_PER_BYTE * scale[1] * cost


def _moving(rng: np.random.Generator, seed: int) -> tuple[Floats, Floats]:
    """Two lines cross above all others: one slowest below that size, the other above it."""
    small, large = rng.permutation(STAGES)[:2]
    overhead = rng.uniform(0.05, 0.8, STAGES)
    cost = rng.uniform(rng.uniform(0.05, 0.9), 0.98, STAGES)
    cost[large], overhead[large] = 1.0, rng.uniform(0.1, 1.0)
    cost[small] = rng.uniform(0.2, 0.7)
    overhead, cost = _OVERHEAD_US * overhead, _NS_PER_BYTE * cost
    crossing_bytes = 10.0 ** rng.uniform(2.0, 5.5)
    ahead_us = (cost[large] - cost[small]) * crossing_bytes / 1000.0
    overhead[small] = overhead[large] + ahead_us
    return overhead, cost


def _near_ties(rng: np.random.Generator, seed: int) -> tuple[Floats, Floats]:
    """All overheads and all costs within four per cent."""
    scale = _log_uniform(rng, 4.0, 2)
    overhead, cost = rng.uniform(0.98, 1.02, (2, STAGES))
    return _OVERHEAD_US * scale[0] * overhead, _NS_PER_BYTE * scale[1] * cost


def _waiting(rng: np.random.Generator, seed: int) -> tuple[Floats, Floats]:
    """Overheads and costs within a factor 30; whether fragments must wait is found by solving."""
    overhead, cost = _log_uniform(rng, 30.0, STAGES), _log_uniform(rng, 30.0, STAGES)
    return _OVERHEAD_US * overhead, _NS_PER_BYTE * cost


def _six_decades(rng: np.random.Generator, seed: int) -> tuple[Floats, Floats]:
    """Overheads from 1e-3 to 1e3 µs in any order, costs within a factor 10."""
    exponents = np.linspace(-3.0, 3.0, STAGES)
    exponents[1:-1] += rng.uniform(-0.4, 0.4, STAGES - 2)
    overhead = 10.0 ** rng.permutation(exponents)
    return overhead, _NS_PER_BYTE * _log_uniform(rng, 10.0, STAGES)


# ---- what must hold at the optimum ---------------------------------------------------------------


def slowest_stage(lines: LineProblem, k: int) -> int:
    """b."""
    return int(np.argmax(lines.g + lines.G * (lines.B / k)))


def _always(lines: LineProblem, optimum: CountResult) -> bool:
    return True


def _is_slowest_throughout(lines: LineProblem, optimum: CountResult) -> bool:
    b = slowest_stage(lines, optimum.k)
    return bool((lines.g[b] >= lines.g).all() and (lines.G[b] >= lines.G).all())


def _moves(lines: LineProblem, optimum: CountResult) -> bool:
    """Whether two stages are each slowest for some fragments of the optimum."""
    slowest = np.argmax(lines.g[:, None] + lines.G[:, None] * optimum.x, axis=0)
    counts = np.sort(np.bincount(slowest, minlength=lines.n))
    return bool(counts[-2] >= _MOVED_SHARE * optimum.k)


def _must_wait(lines: LineProblem, optimum: CountResult) -> bool:
    """Whether fragments wait in front of b in x, and forbidding just that costs time."""
    b = slowest_stage(lines, optimum.k)
    return b > 0 and longest_wait_us(lines, optimum.x, b) > 0.0 and _waiting_pays(lines, optimum, b)


def longest_wait_us(lines: LineProblem, x: Floats, stage: int) -> float:
    """How long a fragment waits in front of this stage at most, µs; rounding is not counted."""
    arrived = np.zeros(len(x))
    for j, (g, G) in enumerate(zip(lines.g, lines.G, strict=True)):
        t = g + G * x
        done = np.cumsum(t)
        begun = np.maximum.accumulate(arrived - (done - t)) + (done - t)
        if j == stage:
            wait = float((begun - arrived).max())
            return wait if wait > _ESSENTIAL * float(done[-1]) / len(x) else 0.0
        arrived = begun + t
    raise ValueError("no such stage")


def _waiting_pays(lines: LineProblem, optimum: CountResult, b: int) -> bool:
    """The optimum where fragments may wait behind every stage but b-1, against the optimum."""
    chain = Chain(
        overhead=lines.g + lines.m * lines.G,
        G=lines.G,
        free_bytes=lines.free_bytes(optimum.k),
        spread_bytes=lines.M - lines.m,
        k=optimum.k,
        boundaries=tuple(d for d in range(lines.n - 1) if d != b - 1),
    )
    found = default_method()(chain, _INTERIOR)
    if found is None:
        return False
    p = np.maximum(found.p, 0.0)
    without_us = value_us(lines, p / p.sum(axis=1, keepdims=True))
    return without_us > optimum.upper_us * (1.0 + _ESSENTIAL)


CLASSES: tuple[Hardness, ...] = (
    Hardness("a", "one stage slowest", _one_slowest, _is_slowest_throughout),
    Hardness("b", "bottleneck moves", _moving, _moves),
    Hardness("c", "near ties", _near_ties, _always),
    Hardness("d", "fragments wait", _waiting, _must_wait),
    Hardness("e", "six decades", _six_decades, _always),
)


def class_of(letter: str) -> Hardness:
    """The class of this letter."""
    return next(one for one in CLASSES if one.letter == letter)


def optimum_of(lines: LineProblem, k: int) -> CountResult:
    """The certified optimum for k fragments."""
    return solve_count(lines, k, Deadline.after(_SOLVE_LIMIT_S), whole=True)
