"""What the signature of one message size gives, and what is odd about it, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from domain.solution import Notice
from domain.units import format_bytes
from fitting.regimes import Measured

_OVERHEADS_DISAGREE = 0.2  # of the greater; beyond their noise


@dataclass(frozen=True, slots=True)
class SizeFit:
    """What the signature of one message size gives, and what it does not, in µs.

    `missing` names measurements, `clipped` overheads that came out below 0. `ends_limit`: messages
    follow each other as fast as the sending end works. `measured_receive` is what the receiver
    timed itself, beside what follows from the signature.
    """

    message_bytes: int
    send: Measured | None
    receive: Measured | None
    gap: Measured | None
    round_trip: Measured | None
    missing: tuple[str, ...]
    clipped: tuple[str, ...]
    ends_limit: bool = False
    measured_receive: Measured | None = None

    @property
    def half(self) -> Measured | None:
        """RTT/2."""
        return None if self.round_trip is None else self.round_trip.halved()

    @property
    def wire(self) -> Measured | None:
        """L = RTT/2 - o_s - o_r."""
        if self.round_trip is None or self.send is None or self.receive is None:
            return None
        return self.round_trip.halved().less(self.send, self.receive)


def missing_notices(sizes: Sequence[SizeFit]) -> tuple[Notice, ...]:
    """Return a notice for each measurement that is missing, with the sizes that lack it."""
    lacking: dict[str, list[int]] = {}
    for size in sizes:
        for what in size.missing:
            lacking.setdefault(what, []).append(size.message_bytes)
    notices = [
        Notice(
            "regime_missing",
            f"missing for {_share_of(places, len(sizes))}: {what}",
        )
        for what, places in lacking.items()
    ]
    if len(sizes) == 1:
        notices.append(
            Notice(
                "one_size",
                f"only messages of {format_bytes(sizes[0].message_bytes)} were measured: the "
                "parameters hold for them; a pipeline needs signatures of two sizes and more",
            )
        )
    return tuple(notices)


def _share_of(places: list[int], of: int) -> str:
    if len(places) == of:
        return "every size"
    shown = ", ".join(format_bytes(place) for place in places[:4])
    return shown if len(places) <= 4 else f"{shown} and {len(places) - 4} more"


def negative_notices(sizes: Sequence[SizeFit]) -> tuple[Notice, ...]:
    """Return what came out below 0 and was set to 0, with the sizes of each."""
    notices = [
        Notice(
            "negative_overhead_clipped",
            f"the {what} comes out below 0 for {_share_of(places, len(sizes))} and is set to 0: do "
            "the costs include the computation between messages?",
        )
        for what in ("send overhead", "receive overhead")
        if (places := [size.message_bytes for size in sizes if what in size.clipped])
    ]
    below = [size for size in sizes if size.wire is not None and size.wire.value < 0.0]
    if below:
        notices.append(
            Notice(
                "negative_wire_latency_clipped",
                "half the round trip is below the two overheads for "
                f"{_share_of([size.message_bytes for size in below], len(sizes))}: the wire "
                "latency is set to 0; is the round trip that of the same messages?",
            )
        )
    return tuple(notices)


def ends_notices(sizes: Sequence[SizeFit]) -> tuple[Notice, ...]:
    """Return where the ends limit the rate, and where what they timed themselves contradicts it."""
    notices = []
    if places := [size.message_bytes for size in sizes if size.ends_limit]:
        notices.append(
            Notice(
                "ends_are_the_bottleneck",
                f"for {_share_of(places, len(sizes))} messages follow each other as fast as the "
                "overheads of one end allow: the interval between messages is theirs, and that of "
                "the network may be anything below it",
            )
        )
    for size in sizes:
        fitted, measured = size.receive, size.measured_receive
        if fitted is None or measured is None:
            continue
        apart = abs(fitted.value - measured.value)
        noise = float(np.hypot(fitted.half_width, measured.half_width))
        if apart > max(_OVERHEADS_DISAGREE * max(fitted.value, measured.value), noise):
            notices.append(
                Notice(
                    "overheads_disagree",
                    f"to receive {format_bytes(size.message_bytes)} takes {measured.value:.4g} µs "
                    f"where it is timed itself, and {fitted.value:.4g} µs by the signature: "
                    "replies may be handled in other work, or wait for what is timed",
                    values=(
                        ("message_bytes", size.message_bytes),
                        ("measured_us", measured.value),
                        ("fitted_us", fitted.value),
                    ),
                )
            )
    return tuple(notices)
