"""Users whose clock is coarse for what they measure."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from bench.users.kinds import Kind, User
from bench.users.machines import Clock, Curve, Machine, Noise, Piece
from bench.users.questions import ask


def ticking_user(number: int, seed: int) -> User:
    """Two or three cheap stages, six to eight sizes, and a clock of half a microsecond to ten."""
    rng = np.random.default_rng([seed, number])
    stages, count = int(rng.integers(2, 4)), int(rng.integers(6, 9))
    octave, step = int(rng.integers(9, 12)), 1 + number % 2
    sizes = tuple(2 ** (octave + step * at) for at in range(count))
    curves = []
    for _ in range(stages):
        overhead_us, ns_per_byte = np.exp(rng.uniform(np.log([0.1, 0.02]), np.log([20.0, 1.0])))
        curves.append(Curve((Piece(0.0, float(overhead_us), float(ns_per_byte)),)))
    clock = Clock(float(rng.choice([0.5, 1.0, 2.0, 4.0, 10.0])), bool(rng.random() < 0.5))
    noises = (Noise(0.02, 0.02),) * stages
    machine = Machine(tuple(curves), noises, clock, sizes[0], sizes[-1])
    repetitions = int(rng.integers(5, 31))
    rows = machine.measured(rng, sizes, repetitions)
    total = int(sizes[-1] * rng.choice([0.5, 1.0, 2.0]))
    current = int(min(total, rng.choice(sizes)))
    seeds = (seed, number)
    return User(seeds, Kind.COARSE_CLOCK, machine, sizes, repetitions, rows, total, current)


def measured_sum_us(user: User, cut: Sequence[int]) -> float:
    """All times of a cut one after the other, by the means of the file; half a tick where they are
    less. Above the greatest size measured in proportion.
    """
    sizes = np.array(user.sizes, dtype=float)
    total_us = 0.0
    for stage in range(len(user.machine.curves)):
        means = [
            max(
                float(np.mean([times[stage] for one, _, times in user.rows if one == size])),
                user.machine.clock.tick_us / 2.0,
            )
            for size in user.sizes
        ]
        for size in cut:
            beyond = max(size / sizes[-1], 1.0)
            total_us += float(np.interp(size, sizes, means)) * beyond
    return total_us


def over_measured(user: User) -> float | None:
    """Ask for this user: the end of the interval over the measured sum; None without one."""
    answer = ask(user.rows, user.message_bytes, user.current_bytes).answer
    known = None if answer is None else answer.uncertainty
    if answer is None or known is None:
        return None
    high_us = known.latency_us.p95
    return inf if high_us is None else high_us / measured_sum_us(user, answer.fragment_bytes)
