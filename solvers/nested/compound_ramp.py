"""Ramps over the blocks of a slow stage between compound stages that are taken as lines.

Source    Wang98 sec. 4.1 (ramp-up), 4.2 (ramp-up-and-down), 4.3.1 and 5.5 (algorithms C and C');
          theory sec. 3-5.
Notation  g, G: µs, µs/byte of a line; before, slow, behind: the three lines, of which before or
          behind may be missing; k blocks x_0..x_{k-1}, bytes; peak: index of the largest one.
Cost      O(k^2) NumPy work for all ramps of at most MAX_BLOCKS blocks, O(k) for each one evaluated.
Exact     the best ramp where the slow line is above the others at every size; else a heuristic.
Traps     sizes follow from the peak outwards (x' = (t(x) - g_slow)/G_slow, t the compound line):
          that does not amplify rounding as Wang's order does, and needs no special case for a = 1,
          but with G_slow = 0 it leaves nothing but the single block. A ramp with a size that is not
          positive is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import Line

Floats = NDArray[np.float64]

FIT_SAMPLES = 40  # Wang98's regression; theory sec. 5
FIRST_FIT_SHARE = 50  # the first regression starts at this part of the message


def fitted_line(x: Floats, times_us: Floats) -> Line:
    """Return the least-squares line through (x, times_us)."""
    middle, level = float(x.mean()), float(times_us.mean())
    spread = x - middle
    square = float(spread @ spread)
    slope_us = float(spread @ (times_us - level)) / square if square > 0.0 else 0.0
    return Line(level - slope_us * middle, slope_us * 1000.0)


MAX_BLOCKS = 64
_SUM = 1e-9  # relative error of the sum of a ramp's sizes beyond which cancellation has spoilt it
_PRICED = 12  # ramps priced by the recurrence, of those with the least estimates


@dataclass(frozen=True, slots=True)
class CompoundLines:
    """The compound pipeline as lines; `before` or `behind` is None where there is no such stage."""

    before: Line | None
    slow: Line
    behind: Line | None

    def latency_us(self, sizes: Floats) -> float:
        """Return the latency of these blocks by the convention: one block at a time in every
        stage.
        """
        before_us = slow_us = behind_us = 0.0
        for size in sizes.tolist():
            before_us += self.before.time_us(size) if self.before else 0.0
            slow_us = max(slow_us, before_us) + self.slow.time_us(size)
            behind_us = max(behind_us, slow_us) + (
                self.behind.time_us(size) if self.behind else 0.0
            )
        return behind_us


def best_ramps(
    lines: CompoundLines, message_bytes: float, *, min_blocks: int, max_blocks: int
) -> list[tuple[float, Floats]]:
    """Return (latency by the lines in µs, sizes) of the most promising ramps, best first.

    There is at least the single block, where it is asked for.
    """
    maximum = min(max_blocks, MAX_BLOCKS)
    up, down = (
        _Side.of(lines.before, lines.slow, maximum),
        _Side.of(lines.behind, lines.slow, maximum),
    )
    with np.errstate(all="ignore"):  # a side that overflows gives sizes that are no ramp
        peak = _peaks(up, down, message_bytes)
        first, last = _end_sizes(up, peak, axis=1), _end_sizes(down, peak, axis=0)
        estimate_us = _ends_us(lines, first, last) + _blocks_us(lines.slow, peak, message_bytes)
        blocks = np.add.outer(np.arange(maximum), np.arange(maximum)) + 1
        usable = (blocks >= min_blocks) & (blocks <= maximum) & np.isfinite(estimate_us)
        usable &= (peak > 0.0) & (first > 0.0) & (last > 0.0)
    rows, columns = np.nonzero(usable)
    order = np.argsort(estimate_us[rows, columns], kind="stable")[:_PRICED]
    found = []
    for i, j in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        size = float(peak[i, j])
        sizes = np.concatenate([up.sizes(size, i)[::-1], down.sizes(size, j)[1:]])
        if sizes.min() > 0.0 and abs(float(sizes.sum()) - message_bytes) <= _SUM * message_bytes:
            found.append((lines.latency_us(sizes), sizes))
    return sorted(found, key=lambda ramp: (ramp[0], len(ramp[1])))


@dataclass(frozen=True, slots=True)
class _Side:
    """Sizes at distance d from the peak p are offset[d] + factor[d] p."""

    offset: Floats
    factor: Floats

    @classmethod
    def of(cls, compound: Line | None, slow: Line, maximum: int) -> _Side:
        """One side of the peak; only the peak itself where no size follows from another."""
        offset, factor = np.full(maximum, np.nan), np.full(maximum, np.nan)
        offset[0], factor[0] = 0.0, 1.0
        if compound is None or slow.ns_per_byte <= 0.0:
            return cls(offset, factor)
        ratio = compound.ns_per_byte / slow.ns_per_byte
        shift = (compound.overhead_us - slow.overhead_us) * 1000.0 / slow.ns_per_byte
        with np.errstate(over="ignore", invalid="ignore"):
            for d in range(1, maximum):
                offset[d] = offset[d - 1] * ratio + shift
                factor[d] = factor[d - 1] * ratio
        return cls(offset, factor)

    def sizes(self, peak: float, distance: int) -> Floats:
        """Sizes from the peak to this distance, the peak first."""
        found: Floats = self.offset[: distance + 1] + self.factor[: distance + 1] * peak
        return found


def _peaks(up: _Side, down: _Side, message_bytes: float) -> Floats:
    """The peak for every (distance before, distance behind) such that the sizes add up."""
    offsets = np.add.outer(np.cumsum(up.offset), np.cumsum(down.offset))
    factors = np.add.outer(np.cumsum(up.factor), np.cumsum(down.factor)) - 1.0
    peaks: Floats = (message_bytes - offsets) / factors
    return peaks


def _end_sizes(side: _Side, peak: Floats, *, axis: int) -> Floats:
    """The size at the end of the side: sizes change in one direction, none inside is smaller."""
    shape = (-1, 1) if axis == 1 else (1, -1)
    ends: Floats = side.offset.reshape(shape) + side.factor.reshape(shape) * peak
    return ends


def _ends_us(lines: CompoundLines, first: Floats, last: Floats) -> Floats:
    total = np.zeros(first.shape)
    for line, sizes in ((lines.before, first), (lines.behind, last)):
        if line is not None:
            total = total + line.overhead_us + line.ns_per_byte * sizes / 1000.0
    return total


def _blocks_us(slow: Line, peak: Floats, message_bytes: float) -> Floats:
    blocks = np.add.outer(np.arange(peak.shape[0]), np.arange(peak.shape[1])) + 1.0
    time_us: Floats = blocks * slow.overhead_us + slow.time_us(message_bytes) - slow.overhead_us
    return time_us
