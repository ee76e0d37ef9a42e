"""The system of Yocum et al. 1997: a page over a sender's bus, a link and a receiver's bus.

Source    sec. 2 to 4; pulses by `domain.delivery`, latencies by `domain.nested`.
Model     three stages, the first of them one transfer of the whole payload; bytes are visible to
          the next stage as they move. The bus rates and the 27 µs of a control message are the
          paper's; the set-ups and the link's rate are fitted to its seven latencies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from domain.delivery import Delivery, DeliveryRule, deliver
from domain.nested import NestedSchedule, nested_latency_us
from domain.pipeline import Pipeline, Stage

PAGE_BYTES = 8192
CONTROL_US = 27.0  # one way, all overhead at both ends
WHOLE = Delivery(DeliveryRule.STORE_AND_FORWARD)
_FITTED = (("bus read", 4.4, 7.8125), ("link", 1.0, 9.7), ("bus write", 2.35, 15.625))
_MAX_PULSES = 1_000_000


def static(size: int) -> Delivery:
    """Return the rule of pulses of this size, in bytes."""
    return Delivery(DeliveryRule.STATIC, pulse_bytes=size)


def eager(size: int) -> Delivery:
    """Return the rule of pulses of all that is there, this many bytes at least."""
    return Delivery(DeliveryRule.EAGER, threshold_bytes=size)


def _pipeline(
    costs: Iterable[tuple[str, float, float]], delay_us: float, handoff_bytes: int | None
) -> Pipeline:
    stages = (
        Stage.of_line(
            name, overhead_us=overhead_us, ns_per_byte=per_byte, handoff_bytes=handoff_bytes
        )
        for name, overhead_us, per_byte in costs
    )
    return Pipeline(tuple(stages), delay_us)


def measured(handoff_bytes: int | None) -> Pipeline:
    """Return the fitted pipeline whose stages hand on so many bytes at a time; None: all."""
    return _pipeline(_FITTED, CONTROL_US, handoff_bytes)


MEASURED = measured(1)


def without_overhead(ns_per_byte: Sequence[float]) -> Pipeline:
    """Return the pipeline of these three rates alone, without overheads and delay."""
    names = (name for name, _, _ in _FITTED)
    costs = ((name, 0.0, ns) for name, ns in zip(names, ns_per_byte, strict=True))
    return _pipeline(costs, 0.0, 1)


def pulses(
    link: Delivery, write: Delivery, size: int = PAGE_BYTES, pipeline: Pipeline = MEASURED
) -> NestedSchedule:
    """Return what each stage moves at a time, of a payload in bytes."""
    return deliver(pipeline, size, (WHOLE, link, write), max_pulses=_MAX_PULSES)


def latency_us(
    link: Delivery, write: Delivery, size: int = PAGE_BYTES, pipeline: Pipeline = MEASURED
) -> float:
    """Return the latency one way by these rules."""
    return nested_latency_us(pipeline, pulses(link, write, size, pipeline))


def stored_us(size: int = PAGE_BYTES, pipeline: Pipeline = MEASURED) -> float:
    """Return the latency by store and forward."""
    return latency_us(WHOLE, WHOLE, size, pipeline)


@cache
def static_us(send: int, receive: int) -> float:
    """Return the latency of a page by static pulses of these sizes in bytes."""
    return latency_us(static(send), static(receive))


@cache
def eager_us(send: int, receive: int) -> float:
    """Return the latency of a page by eager pulses of these thresholds in bytes."""
    return latency_us(eager(send), eager(receive))
