"""What a cut takes if stages overlap and if they work one after another, beside another one.

Source    docs/theory.md, "What overlaps".
Traps     by the file's own times a larger size may look cheaper than it is: where the first
          fragments of a message cost more, and where a stage had a processor for itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.decision import gains_over, is_certain
from analysis.draw_costs import cut_us
from analysis.draws import Draws
from analysis.file_votes import as_measured, by_dearest, by_own_means
from domain.measured_times import MeasuredTimes
from domain.uncertain_answer import Thresholds
from domain.uncertainty import NamedCut

Floats = NDArray[np.float64]

LESS = 0.95  # of the time in use, both ways: from there on a size is advised
_APART = 1.5  # by which a size is below the one in use, for times to have grown up to that


def serial_us(draws: Draws, message_bytes: int, cut: NamedCut) -> Floats:
    """Return what a cut takes where stages work one after another, delay included, (draws,)."""
    taken_us = [cut_us(alone(draws, stage), message_bytes, cut) for stage in range(draws.stages)]
    found: Floats = np.sum(taken_us, axis=0) + draws.delay_us
    return found


def alone(draws: Draws, stage: int) -> Draws:
    """Return the draws of one stage by itself, without the constant delay."""
    one = slice(stage, stage + 1)
    factors = draws.mean_factors
    return replace(
        draws,
        names=draws.names[one],
        overhead_us=draws.overhead_us[one],
        ns_per_byte=draws.ns_per_byte[one],
        ends_bytes=draws.ends_bytes[one],
        delay_us=0.0,
        mean_factors=None if factors is None else factors[one],
    )


def is_slower_by_file(
    cut: NamedCut, other: NamedCut, times: MeasuredTimes | None, message_bytes: int
) -> bool:
    """Return whether by the file's own times a cut is no faster than another, one way or the other.

    By means of each size's own times, which hold what depends on the place of a fragment; and by
    lines that go on from the other cut: a stage that takes less than these may have had a processor
    for itself.
    """
    if times is None:
        return False
    means = by_own_means(times)
    prices = [(means, means)]
    if cut.size_bytes and other.size_bytes and cut.size_bytes > other.size_bytes:
        medians = as_measured(times).at_most.part(0, 1)
        sizes = (min(other.size_bytes, message_bytes), min(cut.size_bytes, message_bytes))
        prices.append((_going_on(times, *sizes), medians))
    for price_us in (cut_us, serial_us):
        for costs, others in prices:
            if price_us(costs, message_bytes, cut) >= price_us(others, message_bytes, other):
                return True
    return False


@dataclass(frozen=True, slots=True, eq=False)
class SentBothWays:
    """A message's latency in µs by two repeated sizes, in draws, (draws,), both ways."""

    message_bytes: int
    cut: NamedCut
    other: NamedCut
    chain_us: Floats
    other_chain_us: Floats
    serial_us: Floats
    other_serial_us: Floats

    @classmethod
    def of(
        cls,
        draws: Draws,
        message_bytes: int,
        cut: tuple[NamedCut, Floats],
        other: tuple[NamedCut, Floats],
    ) -> SentBothWays:
        """Price both, whose latencies are known where stages overlap, one after another too."""
        serial = [
            chain_us if one.is_whole(message_bytes) else serial_us(draws, message_bytes, one)
            for one, chain_us in (cut, other)
        ]
        return cls(message_bytes, cut[0], other[0], cut[1], other[1], serial[0], serial[1])

    def is_faster(self, times: MeasuredTimes | None, thresholds: Thresholds) -> bool:
        """Return whether the first size gains 5 % for certain, both ways, by the file's own times
        too; or both cut the message alike.

        The file may be of longer messages, of whose fragments this one has the dearest: by these
        the size is faster as well.
        """
        sizes = [cut.size_bytes for cut in (self.cut, self.other)]
        if None in sizes:  # fragments that are no repeated size
            return False
        sent = {min(size or 1, self.message_bytes) for size in sizes}
        ways = (
            (self.chain_us, self.other_chain_us),
            (self.serial_us, self.other_serial_us),
        )
        return len(sent) == 1 or (
            all(
                one.mean() < LESS * other.mean() and is_certain(gains_over(one, other), thresholds)
                for one, other in ways
            )
            and not is_slower_by_file(self.cut, self.other, times, self.message_bytes)
            and not (times and self._is_slower_by_dearest(times))
        )

    def _is_slower_by_dearest(self, times: MeasuredTimes) -> bool:
        total = self.message_bytes
        longest = max(stage.sizes[-1].message_bytes for stage in times.stages)
        dearest, means = by_dearest(times, total / longest), by_own_means(times)
        return any(
            price_us(dearest, total, self.cut) >= price_us(means, total, self.other)
            for price_us in (cut_us, serial_us)
        )


def _going_on(times: MeasuredTimes, now: int, size: int) -> Draws:
    """What a fragment of a larger size takes if each stage's times go on from those of the size in
    use as they grew up to it; no less than was measured.
    """
    found = list[float]()
    for stage in times.stages:
        known = np.array([size.message_bytes for size in stage.sizes], dtype=np.float64)
        medians_us = np.array([size.median_us for size in stage.sizes])
        at_now, at_size = np.interp([now, size], known, medians_us).tolist()
        before = known[known <= now / _APART]
        if len(before):
            grew = at_now - float(np.interp(before[-1], known, medians_us))
            at_size = max(at_size, at_now + grew / (now - before[-1]) * (size - now))
        found.append(at_size)
    overhead_us = np.array(found)[:, None, None]
    names = tuple(stage.name for stage in times.stages)
    none = np.zeros((len(found), 0, 1))
    return Draws(times.kind, names, overhead_us, np.zeros_like(overhead_us), none, times.delay_us)
