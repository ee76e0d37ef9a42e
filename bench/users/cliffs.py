"""A grid of cliffs: two stages, one of which costs more a byte above the last sizes measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench.users.kinds import Kind, User
from bench.users.machines import Clock, Curve, Machine, Noise, Piece, repeated
from bench.users.verdicts import STRATEGIES, Verdict, judged

SLOPES = (1.0, 1.3, 1.6, 2.5)  # 1.0: no cliff
ABOVE = (1, 2, 3)  # how many sizes lie above it
_SIZES = 11


def cliff_user(slope: float, above: int, number: int, seed: int) -> User:
    """Two stages measured at eleven sizes, 20 times each, with 2 % of noise; of one of them a byte
    costs `slope` times as much above all but the last sizes.
    """
    rng = np.random.default_rng([seed, int(10 * slope), above, number])
    octave = int(rng.integers(9, 13))
    sizes = tuple(2 ** (octave + at) for at in range(_SIZES))
    low, high = sizes[-above - 1], sizes[-above]
    edge = float(low if number % 2 else np.exp(rng.uniform(np.log(low), np.log(0.95 * high))))
    which = int(rng.integers(2))
    curves = []
    for stage in range(2):
        overhead_us, ns_per_byte = np.exp(rng.uniform(np.log([3.0, 0.2]), np.log([60.0, 4.0])))
        pieces = [Piece(0.0, float(overhead_us), float(ns_per_byte))]
        if stage == which and slope != 1.0:
            there_us = overhead_us + ns_per_byte * edge / 1e3
            steep = float(ns_per_byte * slope)
            pieces.append(Piece(edge, float(there_us - steep * edge / 1e3), steep))
        curves.append(Curve(tuple(pieces)))
    noises = (Noise(0.02, 0.02),) * 2
    machine = Machine(tuple(curves), noises, Clock(), sizes[0], sizes[-1])
    total = int(sizes[-1] * (0.5, 1.0, 2.0, 4.0, 16.0, 1.3)[number % 6])
    rows = machine.measured(rng, sizes, 20)
    user = User(
        (seed, int(10 * slope), above, number), Kind.CLIFF, machine, sizes, 20, rows, total, 1
    )
    best = min(user.candidates(), key=lambda size: machine.chain_us(repeated(total, size)))
    if number % 4 == 3:  # the best below the cliff
        best = min(best, low)
    current = int(np.clip(best * 2.0 ** rng.integers(-4, 6), sizes[0], min(total, sizes[-1])))
    return replace(user, current_bytes=current)


def judged_grid(count: int, seed: int) -> dict[float, list[Verdict]]:
    """The verdicts on so many users of the grid, by slope: of each place in turn."""
    places = [(slope, above) for above in ABOVE for slope in SLOPES]
    found: dict[float, list[Verdict]] = {slope: [] for slope in SLOPES}
    for number in range(count):
        slope, above = places[number % len(places)]
        turn = number // len(places)
        user = cliff_user(slope, above, turn, seed)
        found[slope].append(judged(user, STRATEGIES[turn % len(STRATEGIES)]))
    return found
