"""Users of eight kinds: a machine, what was measured of it, a message, and the setting in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from bench.users.machines import Clock, Curve, Machine, Noise, Piece, Row, Shape, repeated

Generator = np.random.Generator
Pair = tuple[float, float]


class Kind(StrEnum):
    """What is hard about a user's file."""

    CLEAN = "clean"
    HETEROSCEDASTIC = "heteroscedastic"
    CORRELATED = "correlated"
    BIMODAL = "bimodal"
    DRIFTING = "drifting"
    COARSE_CLOCK = "coarse clock"
    BUMPY = "bumpy"
    CLIFF = "cliff"


@dataclass(frozen=True, slots=True)
class Spread:
    """What users are drawn from: least and greatest of each, inclusive."""

    stages: tuple[int, int] = (2, 4)
    sizes: tuple[int, int] = (6, 13)
    repetitions: tuple[int, int] = (5, 30)
    min_octave: tuple[int, int] = (9, 13)
    overhead_us: Pair = (0.4, 60.0)
    ns_per_byte: Pair = (0.04, 5.0)
    others_faster: Pair = (1.0, 6.0)  # by how much the other stages are
    deviation: Pair = (0.01, 0.06)
    wide_deviation: Pair = (0.12, 0.35)
    rare_share: Pair = (0.002, 0.02)
    walk: Pair = (0.03, 0.07)
    slow_share: Pair = (0.1, 0.45)
    slow_factor: Pair = (1.5, 3.0)
    drift: Pair = (0.1, 0.4)
    ticks_us: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 10.0)
    bump: float = 0.08
    switch_slope: Pair = (0.45, 2.0)
    switch_jump: Pair = (0.0, 0.5)
    cliff_slope: Pair = (1.2, 3.0)
    cliff_jump: Pair = (0.1, 0.6)
    cliff_fall: Pair = (0.03, 0.5)


@dataclass(frozen=True, slots=True)
class User:
    """A user: `seed` and `kind` say how to make it again; `rows` is the file."""

    seed: tuple[int, ...]
    kind: Kind
    machine: Machine
    sizes: tuple[int, ...]
    repetitions: int
    rows: tuple[Row, ...]
    message_bytes: int
    current_bytes: int

    @property
    def csv(self) -> str:
        """The file, as `sluice fit` reads it."""
        return csv_of(self.rows)

    def candidates(self) -> tuple[int, ...]:
        """The fragment sizes among which the best is looked for: within those measured."""
        low, high, total = self.sizes[0], self.sizes[-1], self.message_bytes
        wanted = {*self.sizes, *(3 * size // 2 for size in self.sizes)}
        wanted |= {-(-total // count) for count in range(1, 17)}
        return tuple(sorted(size for size in wanted if low <= size <= min(high, total)))


def csv_of(rows: Sequence[Row]) -> str:
    """Rows as a file of fragments, a column of µs a stage."""
    names = ",".join(f"stage{at}_us" for at in range(len(rows[0][2])))
    lines = [f"message_bytes,repetition,{names}"]
    lines += (
        f"{size},{block}," + ",".join(f"{time:.3f}" for time in times)
        for size, block, times in rows
    )
    return "\n".join(lines) + "\n"


def user_of(seed: tuple[int, ...], kind: Kind, spread: Spread | None = None) -> User:
    """The user of this seed and kind."""
    rng, spread = np.random.default_rng(list(seed)), spread or Spread()
    sizes = _sizes(rng, spread)
    stages = _whole(rng, spread.stages)
    repetitions = _whole(rng, spread.repetitions)
    machine = Machine(
        _curves(rng, spread, kind, sizes, stages),
        _noises(rng, spread, kind, stages),
        _clock(rng, spread, kind),
        sizes[0],
        sizes[-1],
    )
    rows = machine.measured(rng, sizes, repetitions)
    message = _message(rng, sizes)
    user = User(seed, kind, machine, sizes, repetitions, rows, message, 1)
    return replace(user, current_bytes=_current(rng, user))


def _logarithmic(rng: Generator, ends: Pair) -> float:
    return float(np.exp(rng.uniform(np.log(ends[0]), np.log(ends[1]))))


def _uniform(rng: Generator, ends: Pair) -> float:
    return float(rng.uniform(*ends))


def _whole(rng: Generator, ends: tuple[int, int]) -> int:
    return int(rng.integers(ends[0], ends[1] + 1))


def _sizes(rng: Generator, spread: Spread) -> tuple[int, ...]:
    """Powers of two, of four where they are few, and sometimes decimal sizes."""
    count, octave = _whole(rng, spread.sizes), _whole(rng, spread.min_octave)
    if count <= 8 and rng.random() < 0.4:
        return tuple(2 ** (octave + 2 * at) for at in range(count))
    if rng.random() < 0.15:
        return tuple((1, 2, 5)[at % 3] * 10 ** (3 + at // 3) for at in range(count))
    return tuple(2 ** (octave + at) for at in range(count))


def _curves(
    rng: Generator, spread: Spread, kind: Kind, sizes: tuple[int, ...], stages: int
) -> tuple[Curve, ...]:
    slowest_ns, overhead_us = _logarithmic(rng, spread.ns_per_byte), spread.overhead_us
    slowest = int(rng.integers(stages))
    has_switch, with_cliff = rng.random() < 0.5, int(rng.integers(stages))
    found = []
    for stage in range(stages):
        faster = 1.0 if stage == slowest else _logarithmic(rng, spread.others_faster)
        piece = Piece(0.0, _logarithmic(rng, overhead_us), slowest_ns / faster)
        pieces = [piece]
        if has_switch and rng.random() < 0.7:
            inner = float(sizes[2]), float(sizes[-3])
            above = _logarithmic(rng, inner)
            pieces.append(_above(rng, piece, above, spread.switch_jump, spread.switch_slope))
        if kind is Kind.CLIFF and (stage == with_cliff or rng.random() < 0.15):
            pieces.append(_cliff(rng, spread, pieces[-1], sizes))
        bumps: tuple[float, ...] = ()
        if kind is Kind.BUMPY:
            bumps = tuple(np.exp(rng.normal(0.0, spread.bump, 32)).tolist())
        found.append(Curve(tuple(pieces), bumps))
    return tuple(found)


def _above(rng: Generator, piece: Piece, above: float, jump: Pair, slope: Pair) -> Piece:
    """The line above a size: a jump, a share of the time there, and another cost a byte."""
    there_us = float(piece.time_us(np.array([above]))[0])
    ns_per_byte = piece.ns_per_byte * _logarithmic(rng, slope)
    overhead_us = there_us * (1.0 + _uniform(rng, jump)) - ns_per_byte * above / 1e3
    return Piece(above, overhead_us, ns_per_byte)


def _cliff(rng: Generator, spread: Spread, piece: Piece, sizes: tuple[int, ...]) -> Piece:
    """A change above all but the last one to three sizes: of slope, a jump, or a fall."""
    count = int(rng.integers(1, 4))
    above = _logarithmic(rng, (sizes[-count - 1] * 1.01, sizes[-count] * 0.99))
    how = rng.random()
    if how < 0.55:
        jump = spread.cliff_jump if rng.random() < 0.3 else (0.0, 0.0)
        return _above(rng, piece, above, jump, spread.cliff_slope)
    if how < 0.75:
        return _above(rng, piece, above, spread.cliff_jump, (1.0, 1.0))
    there_us = float(piece.time_us(np.array([above]))[0])
    fallen_us = there_us * _logarithmic(rng, spread.cliff_fall)
    ns_per_byte = piece.ns_per_byte * _logarithmic(rng, spread.cliff_fall)
    return Piece(above, max(fallen_us - ns_per_byte * above / 1e3, 0.1), ns_per_byte)


def _noises(rng: Generator, spread: Spread, kind: Kind, stages: int) -> tuple[Noise, ...]:
    shape = Shape.FLOOR if rng.random() < 0.3 else Shape.LOGNORMAL
    has_rare = kind is not Kind.CLEAN and rng.random() < 0.5
    rare = _uniform(rng, spread.rare_share) if has_rare else 0.0
    at_once, common = bool(rng.random() < 0.3), float(rng.choice([-1.0, 1.0]))
    found = []
    for _ in range(stages):
        deviation = _uniform(rng, spread.deviation)
        noise = Noise(deviation, deviation, shape, rare_share=rare)
        if kind is Kind.HETEROSCEDASTIC:
            wide = _uniform(rng, spread.wide_deviation)
            ends = (wide, deviation) if rng.random() < 0.7 else (deviation, wide)
            noise = replace(noise, min_deviation=ends[0], max_deviation=ends[1])
        elif kind is Kind.CORRELATED:
            step = float(rng.uniform(0.005, 0.03))
            noise = replace(noise, walk=_uniform(rng, spread.walk), walk_step=step)
        elif kind is Kind.BIMODAL:
            noise = replace(
                noise,
                slow_share=_uniform(rng, spread.slow_share),
                slow_factor=_uniform(rng, spread.slow_factor),
                slow_run=1.0 if rng.random() < 0.7 else float(rng.uniform(2.0, 10.0)),
            )
        elif kind is Kind.DRIFTING:
            sign = common if rng.random() < 0.8 else float(rng.choice([-1.0, 1.0]))
            noise = replace(noise, drift=sign * _uniform(rng, spread.drift), drifts_at_once=at_once)
        found.append(noise)
    return tuple(found)


def _clock(rng: Generator, spread: Spread, kind: Kind) -> Clock:
    if kind is not Kind.COARSE_CLOCK:
        return Clock()
    return Clock(float(rng.choice(spread.ticks_us)), bool(rng.random() < 0.5))


def _message(rng: Generator, sizes: tuple[int, ...]) -> int:
    """Within the sizes measured, or up to four times the greatest."""
    top = sizes[-1]
    if rng.random() < 0.75:
        return int(top * rng.choice([0.25, 0.5, 1.0, 1.0, 2.0, 4.0]))
    return int(_logarithmic(rng, (top / 4.0, 3.0 * top)))


def _current(rng: Generator, user: User) -> int:
    """Two of three are within four times of the best size, the others anywhere."""
    low, total = user.sizes[0], user.message_bytes
    if rng.random() < 2 / 3:
        sizes = [size for size in user.sizes if size <= total] or [low]
        best = min(sizes, key=lambda size: user.machine.chain_us(repeated(total, size)))
        return int(np.clip(best * 2.0 ** rng.integers(-2, 3), low, max(low, total)))
    if rng.random() < 0.25:
        return total
    size = _logarithmic(rng, (low, max(low + 1, total)))
    return int(2 ** round(np.log2(size)) if rng.random() < 0.7 else size)
