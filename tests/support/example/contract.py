# contract/curve.py
"""POST /curve: a profile in; latencies by message size out."""

from __future__ import annotations

from dataclasses import dataclass

from contract.declare import Input, Output, asked
from contract.rules import Bytes, ProfileAt


class CurveIn(Input):
    """Which profile, and up to which message."""

    profile: ProfileAt = asked(
        "a profile's name: its current revision; name@2 pins one",
        is_source=True,
        is_required=True,
        label="Stored profile",
        hint="name or name@2",
    )
    max_message_bytes: Bytes = asked(
        "the largest message, bytes",
        help="the largest message",
        unit="bytes",
        option="--max-message",
        metavar="SIZE",
        is_required=True,
        page="message",
        label="Largest message",
        hint="1 MiB",
        begins_with="1 MiB",
    )


@dataclass(frozen=True)
class CurvePointOut(Output):
    """One message and its least latency."""

    message_bytes: int
    latency_us: float


@dataclass(frozen=True)
class CurveOut(Output):
    """Latencies of every power of two."""

    points: tuple[CurvePointOut, ...]
