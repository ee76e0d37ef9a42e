"""The pipeline that LogP parameters at several sizes give: send, network, receive and a delay.

Source    theory.md sec. 7; bulk transfers: parameters as functions of n bytes.
Notation  RTT: round-trip time; d: the delay beside the stages.
Cost      three fits of a stage.
Exact     of the delays, the one of least sum |stages + d - RTT/2| / (RTT/2).
Traps     above a protocol switch sender, network and receiver can be occupied by one transfer:
          where they do not sum up to half a round trip, the aggregate holds what was measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from domain.fit import BOTTLENECK_STAGE, END_TO_END_STAGE, AggregateFit, FitOptions, StageFit
from domain.loggp import NETWORK_STAGE, RECEIVE_STAGE, SEND_STAGE
from domain.solution import Notice
from domain.units import format_bytes
from fitting.regimes import AGREE
from fitting.signature_sizes import SizeFit
from fitting.stage import fit_stage

_DISAGREE = 0.1  # of half a round trip; more, and the stages are not in series


def stage_of(
    name: str, sizes: list[SizeFit], attribute: str, options: FitOptions
) -> tuple[StageFit, tuple[Notice, ...]] | None:
    """Return the stage whose times are this attribute of each size; None where fewer than two
    sizes have one.
    """
    known = [
        (size.message_bytes, value.value)
        for size in sizes
        if (value := getattr(size, attribute)) is not None
    ]
    if len(known) < 2:
        return None
    x, y = zip(*known, strict=True)
    if len(known) == 2:  # a line through two points: each counts twice, and the fit says how little
        x, y = x * 2, y * 2
    return fit_stage(name, x, y, options)


_Model = tuple[tuple[StageFit, ...], float, AggregateFit | None, tuple[Notice, ...]]


def pipeline_of(sizes: list[SizeFit], options: FitOptions) -> _Model:
    """Return send, network where it is seen, receive, and the delay that makes up the round trip.

    Above a protocol switch the sender, the network and the receiver can be occupied by one and the
    same transfer, which as stages in series would count several times. Where the stages do not sum
    up to half a round trip at some size, the aggregate holds what was measured.
    """
    parts = {
        SEND_STAGE: stage_of(SEND_STAGE, sizes, "send", options),
        NETWORK_STAGE: stage_of(NETWORK_STAGE, sizes, "gap", options),
        RECEIVE_STAGE: stage_of(RECEIVE_STAGE, sizes, "receive", options),
    }
    if any(part is None for part in parts.values()) or all(size.wire is None for size in sizes):
        return (), 0.0, None, ()
    if not _network_is_seen(sizes):
        del parts[NETWORK_STAGE]
    found = [part for part in parts.values() if part is not None]
    stages = tuple(stage for stage, _ in found)
    notices = [notice for _, many in found for notice in many]
    sums = stages_and_round_trips(sizes, stages)
    free_us = _middle_delay(sums)
    delay_us = max(0.0, free_us)
    worst = max(sums, key=lambda one: one.off(delay_us) - one.allowed)
    if worst.off(delay_us) > worst.allowed:
        outside = _aggregate(sizes, options)
        said = _disagreement(worst, delay_us, is_replaced=outside is not None)
        if outside is not None:
            aggregate, notices_outside = outside
            return (), 0.0, aggregate, (said, *notices_outside)
        notices.insert(0, said)
    if free_us < 0.0:
        notices.insert(
            0,
            Notice(
                "network_hides_delay",
                f"the stages take {-free_us:.3g} µs more than half a round trip: the delay is set "
                "to 0, and unpipelined latencies come out that much too long",
            ),
        )
    return stages, delay_us, None, tuple(notices)


@dataclass(frozen=True, slots=True)
class _Sum:
    """The stages' sum and half a round trip, both of one size, in µs; `allowed` is by which share
    they may differ.
    """

    message_bytes: int
    stages_us: float
    half_us: float
    allowed: float

    def off(self, delay_us: float) -> float:
        """Return by which share of half a round trip the sum with this delay differs from it."""
        return abs(self.stages_us + delay_us - self.half_us) / max(self.half_us, 1e-300)


def stages_and_round_trips(sizes: list[SizeFit], stages: tuple[StageFit, ...]) -> list[_Sum]:
    """Return the stages' sum and half a round trip of each size that has one."""
    models = [stage.to_stage() for stage in stages]
    return [
        _Sum(
            size.message_bytes,
            sum(model.time_us(size.message_bytes) for model in models),
            size.half.value,
            max(_DISAGREE, size.half.half_width / max(size.half.value, 1e-300)),
        )
        for size in sizes
        if size.wire is not None and size.half is not None
    ]


def _middle_delay(sums: list[_Sum]) -> float:
    """The delay d of least sum |stages + d - half| / half: the median weighted by 1 / half."""
    left = np.array([one.half_us - one.stages_us for one in sums])
    weight = np.array([1.0 / max(one.half_us, 1e-12) for one in sums])
    order = np.argsort(left, kind="stable")
    reached = np.cumsum(weight[order])
    return float(left[order[int(np.searchsorted(reached, reached[-1] / 2.0))]])


def _disagreement(worst: _Sum, delay_us: float, *, is_replaced: bool) -> Notice:
    total_us = worst.stages_us + delay_us
    then = (
        "half the round trip is taken as the total, the interval between messages as the bottleneck"
        if is_replaced
        else "the interval between messages is missing, or they could be fitted from outside"
    )
    return Notice(
        "stages_disagree_with_round_trip",
        f"messages of {format_bytes(worst.message_bytes)} take {worst.half_us:.4g} µs one way, but "
        f"overheads, interval between messages and delay sum up to {total_us:.4g} µs: they are not "
        f"stages one after the other; {then}",
        values=(("message_bytes", worst.message_bytes), ("stages_us", total_us)),
    )


def _aggregate(
    sizes: list[SizeFit], options: FitOptions
) -> tuple[AggregateFit, tuple[Notice, ...]] | None:
    """Total = RTT/2, bottleneck = the gap, as from outside (theory.md sec. 7)."""
    total = stage_of(END_TO_END_STAGE, sizes, "half", options)
    bottleneck = stage_of(BOTTLENECK_STAGE, sizes, "gap", options)
    if total is None or bottleneck is None:
        return None
    return AggregateFit(total[0], bottleneck[0]), (*total[1], *bottleneck[1])


def _network_is_seen(sizes: list[SizeFit]) -> bool:
    """Whether messages follow each other more slowly than either end point explains."""
    for size in sizes:
        if size.gap is None or size.send is None or size.receive is None:
            continue
        ends = size.send.value + size.receive.value
        if size.gap.value > ends * (1.0 + AGREE) + size.gap.half_width:
            return True
    return False
