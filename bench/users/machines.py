"""Machines: what a fragment costs in each stage, and how that varies; measured, and run.

Times are in µs, sizes in bytes. An expected latency is the mean of simulated whole messages, each
fragment of which draws its times anew: slow fragments hold up those behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_EVENTS = 400_000  # fragments that an expected latency is simulated with
_RARE_FACTORS = (2.0, 6.0)
_MIN_MESSAGES, _MOST_MESSAGES = 200, 20_000


@dataclass(frozen=True, slots=True)
class Piece:
    """One line of a stage's cost: overhead in µs and ns a byte, of sizes above `above_bytes`."""

    above_bytes: float
    overhead_us: float
    ns_per_byte: float

    def time_us(self, sizes: Floats) -> Floats:
        """The time of fragments, (sizes,)."""
        return self.overhead_us + self.ns_per_byte * sizes / 1e3


@dataclass(frozen=True, slots=True)
class Curve:
    """What a fragment costs in one stage without noise: lines, the first from size 0 on.

    `bumps` are factors at sizes 2^0, 2^1, ..., interpolated between them in the logarithm; none
    where they are empty.
    """

    pieces: tuple[Piece, ...]
    bumps: tuple[float, ...] = ()

    def time_us(self, sizes: Floats) -> Floats:
        """The time of fragments of these sizes, (sizes,)."""
        times = self.pieces[0].time_us(sizes)
        for piece in self.pieces[1:]:
            times = np.where(sizes > piece.above_bytes, piece.time_us(sizes), times)
        if self.bumps:
            octaves = np.log2(np.maximum(sizes, 1.0))
            times = times * np.interp(octaves, np.arange(len(self.bumps)), self.bumps)
        return times


class Shape(StrEnum):
    """How single times lie about their mean."""

    LOGNORMAL = "lognormal"
    FLOOR = "floor and exponential"  # a least time, and waiting on top of it


@dataclass(frozen=True, slots=True)
class Noise:
    """How the times of one stage vary about its curve.

    The deviation goes from `min_deviation`, at the least size measured, to `max_deviation`.
    In `slow_share` of the events, which follow each other for `slow_run` in the mean, a time is
    `slow_factor` times as long; in `rare_share` two to six times. `walk` is the deviation of a
    state that changes slowly, by `walk_step` an event; `drift` by how much the times grow
    from the first event of the file to the last, at once in its middle where `drifts_at_once`.
    """

    min_deviation: float
    max_deviation: float
    shape: Shape = Shape.LOGNORMAL
    slow_share: float = 0.0
    slow_factor: float = 1.0
    slow_run: float = 1.0
    rare_share: float = 0.0
    walk: float = 0.0
    walk_step: float = 0.03
    drift: float = 0.0
    drifts_at_once: bool = False

    def drifted(self, moment: Floats) -> Floats:
        """The factor at moments of the file, 0 its begin and 1 its end; 1 in the mean."""
        if self.drifts_at_once:
            return 1.0 + self.drift * np.where(moment < 0.5, -0.5, 0.5)
        return 1.0 + self.drift * (moment - 0.5)

    def factors(self, rng: np.random.Generator, deviation: Floats | float, count: int) -> Floats:
        """The factors of single events but for slow ones, walk and drift, (count,)."""
        if self.shape is Shape.FLOOR:
            found = 1.0 - deviation + deviation * rng.exponential(1.0, count)
        else:
            sigma = np.sqrt(np.log1p(np.square(deviation)))
            found = np.exp(rng.normal(0.0, 1.0, count) * sigma - 0.5 * sigma**2)
        if self.rare_share:
            rare = rng.random(count) < self.rare_share
            found = np.where(rare, found * rng.uniform(*_RARE_FACTORS, count), found)
        return found

    def next_slow(
        self, rng: np.random.Generator, slow: NDArray[np.bool_] | None, count: int
    ) -> NDArray[np.bool_]:
        """Which events are slow, after these, (count,)."""
        if slow is None or self.slow_run <= 1.0:
            return rng.random(count) < self.slow_share
        leave = 1.0 / self.slow_run
        enter = leave * self.slow_share / (1.0 - self.slow_share)
        return np.where(slow, rng.random(count) >= leave, rng.random(count) < enter)


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock with this tick, in µs: a time is the difference of two readings, or is rounded."""

    tick_us: float = 0.001
    rounds: bool = True

    def read(self, rng: np.random.Generator, times_us: Floats) -> Floats:
        """What it says of times, the same shape."""
        ticks = times_us / self.tick_us
        if self.rounds:
            return np.round(ticks) * self.tick_us
        return np.floor(ticks + rng.random(ticks.shape)) * self.tick_us


Row = tuple[int, int, tuple[float, ...]]  # size, repetition, a time a stage


@dataclass(frozen=True, slots=True)
class Machine:
    """Stages and their noise; `min_bytes` and `max_bytes` are what their noise goes from
    and to.
    """

    curves: tuple[Curve, ...]
    noises: tuple[Noise, ...]
    clock: Clock
    min_bytes: int
    max_bytes: int

    def deviation(self, stage: int, size: float) -> float:
        """The deviation of single times of this size."""
        noise = self.noises[stage]
        low, high = np.log(self.min_bytes), np.log(self.max_bytes)
        share = float(np.clip((np.log(size) - low) / (high - low), 0.0, 1.0))
        return noise.min_deviation + share * (noise.max_deviation - noise.min_deviation)

    def measured(
        self, rng: np.random.Generator, sizes: Sequence[int], repetitions: int
    ) -> tuple[Row, ...]:
        """The rows of a file: in blocks that have each size once, in an order of their own."""
        order = [
            (int(size), block)
            for block in range(repetitions)
            for size in rng.permutation(np.array(sizes))
        ]
        moments = np.linspace(0.0, 1.0, len(order))
        columns = []
        for stage, (curve, noise) in enumerate(zip(self.curves, self.noises, strict=True)):
            asked = np.array([size for size, _ in order], dtype=float)
            deviations = np.array([self.deviation(stage, size) for size, _ in order])
            times = curve.time_us(asked) * noise.factors(rng, deviations, len(order))
            times *= noise.drifted(moments)
            if noise.walk:
                times *= np.exp(_walk(rng, noise, len(order)))
            if noise.slow_share:
                slow = np.zeros(len(order), dtype=bool)
                state: NDArray[np.bool_] | None = None
                for event in range(len(order)):
                    state = noise.next_slow(rng, state, 1)
                    slow[event] = state[0]
                times = np.where(slow, times * noise.slow_factor, times)
            columns.append(self.clock.read(rng, times))
        return tuple(
            (size, block, tuple(float(column[event]) for column in columns))
            for event, (size, block) in enumerate(order)
        )

    def mean_us(self, size: float) -> tuple[float, ...]:
        """The expected time of one fragment of this size, a stage each."""
        return tuple(
            float(curve.time_us(np.array([float(size)]))[0])
            * (1.0 + noise.slow_share * (noise.slow_factor - 1.0))
            * (1.0 + noise.rare_share * (sum(_RARE_FACTORS) / 2.0 - 1.0))
            * float(np.exp(0.5 * noise.walk**2))
            for curve, noise in zip(self.curves, self.noises, strict=True)
        )

    def chain_us(self, cut: Sequence[int]) -> float:
        """The latency of a message were every time its mean: a lower bound of what is expected."""
        ends = [0.0] * len(self.curves)
        known: dict[int, tuple[float, ...]] = {}
        for size in cut:
            if size not in known:
                known[size] = self.mean_us(size)
            before = 0.0
            for stage, time in enumerate(known[size]):
                before = ends[stage] = max(ends[stage], before) + time
        return ends[-1]

    def latencies_us(self, seed: Sequence[int], cut: Sequence[int], messages: int) -> Floats:
        """The latencies of simulated messages in these fragments, (messages,).

        At a moment of the file each, spread evenly: what drifts is as it was in the mean. States
        of messages with the same seed and number are equal, whatever their cut.
        """
        shared = np.random.default_rng(list(seed))
        moments = (np.arange(messages) + 0.5) / messages
        stages = range(len(self.curves))
        held = np.ones((len(stages), messages))
        for stage in stages:
            noise = self.noises[stage]
            held[stage] = noise.drifted(moments) * np.exp(
                noise.walk * shared.normal(0.0, 1.0, messages)
            )
        rng = np.random.default_rng([*seed, 1])
        ends = np.zeros((len(stages), messages))
        slow: list[NDArray[np.bool_] | None] = [None for _ in stages]
        known: dict[int, list[tuple[float, float]]] = {}
        for size in cut:
            if size not in known:
                asked = np.array([float(size)])
                known[size] = [
                    (float(self.curves[stage].time_us(asked)[0]), self.deviation(stage, size))
                    for stage in stages
                ]
            before = np.zeros(messages)
            for stage in stages:
                noise, (mean_us, deviation) = self.noises[stage], known[size][stage]
                times = mean_us * held[stage] * noise.factors(rng, deviation, messages)
                if noise.slow_share:
                    state = slow[stage] = noise.next_slow(rng, slow[stage], messages)
                    times = np.where(state, times * noise.slow_factor, times)
                before = ends[stage] = np.maximum(ends[stage], before) + times
        latencies: Floats = ends[-1]
        return latencies

    def expected_us(self, seed: Sequence[int], cut: Sequence[int], *, times: int = 1) -> float:
        """The mean latency of a message in these fragments; of `times` as many messages."""
        messages = int(np.clip(_EVENTS // len(cut), _MIN_MESSAGES, _MOST_MESSAGES))
        return float(self.latencies_us(seed, cut, times * messages).mean())


def repeated(message_bytes: int, size: int) -> tuple[int, ...]:
    """The fragments of a message where this size is repeated."""
    full, rest = divmod(message_bytes, min(size, message_bytes))
    return (min(size, message_bytes),) * full + ((rest,) if rest else ())


def _walk(rng: np.random.Generator, noise: Noise, count: int) -> Floats:
    """A state that is as far off in the mean as `walk` says, and moves by its step an event."""
    step = min(noise.walk_step, noise.walk)
    keep = np.sqrt(1.0 - (step / noise.walk) ** 2)
    state = rng.normal(0.0, noise.walk)
    found = np.empty(count)
    for event in range(count):
        found[event] = state = keep * state + rng.normal(0.0, step)
    return found
