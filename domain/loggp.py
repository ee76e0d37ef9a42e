"""LogP and LogGP parameters of a pair of end points, and what they say about stages.

Notation  o_s, o_r: processor time to send and to receive; g: least interval between messages (the
          slowest stage's time); L: wire latency (Culler96 sec. 2). Here they have names:
          LogP's g is `message_gap_us` and no stage's overhead.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval (low, high)."""

    value: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class LogGPParameters:
    """The parameters at one message size, in µs; None where the measurements do not give one.

    Where `receive_overhead_us` was not measured, `wire_latency_us` is not known either.
    """

    message_bytes: int
    send_overhead_us: Estimate | None
    receive_overhead_us: Estimate | None
    message_gap_us: Estimate | None
    wire_latency_us: Estimate | None
    round_trip_us: Estimate | None


@dataclass(frozen=True, slots=True)
class LogGPFit:
    """Parameters at every measured size, ascending, and the assumptions behind the pipeline."""

    sizes: tuple[LogGPParameters, ...]
    byte_gap_ns: Estimate | None
    assumptions: tuple[str, ...] = ()
