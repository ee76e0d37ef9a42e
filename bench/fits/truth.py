"""Synthetic measurements whose parameters are known.

Multiplicative noise, and outliers of twice to eight times the time: what traces of real machines
have, made with a seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NOISE = 0.02
OVERHEAD_US, NS_PER_BYTE = 22.0, 11.3
SWITCH_BYTES = 8192
BEFORE, AFTER = (10.0, 20.0), (60.0, 11.3)  # (overhead in µs, ns per byte) around the switch


@dataclass(frozen=True, slots=True)
class Data:
    """Samples of one stage: sizes in bytes and times in µs, (N,) each."""

    message_bytes: Ints
    times_us: Floats


def one_line(seed: int, *, outlier_share: float, sizes: int = 15, repetitions: int = 20) -> Data:
    """Sizes from 64 B to 4 MiB, spaced evenly in their logarithm, each measured several times."""
    x = _sizes(sizes, repetitions)
    truth_us = OVERHEAD_US + NS_PER_BYTE * x.astype(np.float64) / 1000.0
    return _disturbed(x, truth_us, seed, outlier_share)


def with_switch(seed: int, *, outlier_share: float, repetitions: int = 20) -> Data:
    """Powers of two from 64 B to 1 MiB; another line, with a jump, above SWITCH_BYTES."""
    x = np.repeat(2 ** np.arange(6, 21, dtype=np.int64), repetitions)
    overhead, cost = (np.where(x <= SWITCH_BYTES, BEFORE[i], AFTER[i]) for i in (0, 1))
    return _disturbed(x, overhead + cost * x / 1000.0, seed, outlier_share)


def direct_csv(rows: int, stages: int = 5) -> bytes:
    """A trace in the project's own format, 16 sizes, with 2 % noise."""
    rng = np.random.default_rng(rows)
    sizes = 2 ** np.arange(6, 22, dtype=np.int64)
    x = np.resize(sizes, rows)
    columns = [
        (j + 1.0) * (5.0 + x * 0.002) * (1.0 + NOISE * rng.standard_normal(rows))
        for j in range(stages)
    ]
    header = ",".join(["message_bytes", "repetition", *(f"stage_{j}_us" for j in range(stages))])
    times = ("%.3f," * stages)[:-1]
    measured = zip(*(column.tolist() for column in columns), strict=True)
    lines = [
        f"{size},{row // len(sizes)}," + times % values
        for row, (size, values) in enumerate(zip(x.tolist(), measured, strict=True))
    ]
    return "\n".join([header, *lines, ""]).encode()


def _sizes(sizes: int, repetitions: int) -> Ints:
    exact = np.exp(np.linspace(np.log(64.0), np.log(4.0 * 2**20), sizes))
    return np.repeat(exact.astype(np.int64), repetitions)


def _disturbed(x: Ints, truth_us: Floats, seed: int, outlier_share: float) -> Data:
    rng = np.random.default_rng(seed)
    times = truth_us * (1.0 + NOISE * rng.standard_normal(len(x)))
    hit = rng.random(len(x)) < outlier_share
    return Data(x, np.where(hit, times * rng.uniform(2.0, 8.0, len(x)), times))
