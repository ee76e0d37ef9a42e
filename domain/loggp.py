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


SEND_STAGE, NETWORK_STAGE, RECEIVE_STAGE = "send", "network", "receive"


def pipeline_assumptions(stages: tuple[str, ...]) -> tuple[str, ...]:
    """Return what the pipeline that follows from the parameters takes for granted, and what it
    loses.

    Derivation: in LogP k small messages take o_s + (k - 1) max(g, o_s, o_r) + L + o_r. The pipeline
    of sender, network and receiver with a constant delay d takes o_s + g + o_r + (k - 1) max(...) +
    d, which is the same for d = L - g: the part of L that occupies the network is its stage.
    """
    if not stages:
        return ()
    assumptions = [
        "sender and receiver are one stage each: a processor that sends does not receive meanwhile",
        "the send and the receive overhead hold for messages in one direction",
    ]
    if NETWORK_STAGE in stages:
        assumptions += [
            "the interval between messages is that of one network stage; several stages in there "
            "are seen only by the slowest of them",
            "the delay is the wire latency less the network stage's own time, in the middle of all "
            "sizes, so that an unpipelined message takes half a round trip",
        ]
    else:
        assumptions += [
            "the interval between messages is explained by the two end points: no stage of the "
            "network is seen, and none is in the pipeline",
            "the delay is the wire latency, in the middle of all sizes",
        ]
    return tuple(assumptions)
