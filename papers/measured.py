"""What Strumpen94 measured, measured on this machine by the reference mover.

Source    V. Strumpen, Communication Latency Hiding, ETH report 216, 1994: Figures 20, 21 and 23.
Traps     the paper prints no points of its curves: nothing here has a published number. Without a
          limited link the processors themselves carry the bytes, and hiding has little to gain.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace

from measuring.moving import Way, exchange
from papers.items import Figure, Item, ItemSpec

_BYTES = 800_000  # of a boundary: 100 000 doubles, sec. 4.2
_FRAGMENT_BYTES = 32 << 10
_SMALL, _LARGE = 64 << 10, 4 << 20  # buffers below and above the message
_SHARES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the calculation over the communication
_MIN_US = 1.0


def measured_items(between: str | None, repetitions: int = 20) -> tuple[ItemSpec, ...]:
    """Return the items, over loopback or between two namespaces (near/far/address)."""
    way = Way(between)
    items = {
        "fig-20-measured": lambda: _both_at_once(way, repetitions),
        "fig-21-measured": lambda: _buffers(way, repetitions),
        "fig-23-measured": lambda: _gains(way, repetitions),
    }
    return tuple(ItemSpec(name, compute) for name, compute in items.items())


def _fastest(way: Way, message_bytes: int, calculation_us: float, times: int) -> dict[str, float]:
    found = exchange(
        way,
        message_bytes,
        calculation_us=calculation_us,
        repetitions=times,
        fragment_bytes=_FRAGMENT_BYTES,
    )
    return {name: max(_MIN_US, min(row)) for name, row in found.items()}


def _both_at_once(way: Way, times: int) -> Item:
    figures = []
    for size in (4096, 65_536, _BYTES):
        fastest = _fastest(way, size, 0.0, times)
        ratio = fastest["ping_pong"] / fastest["simultaneous"]
        figures.append(Figure(f"ping-pong over simultaneous, {size} bytes", "", ratio))
    return _item(
        "fig-20-measured",
        "Both send at once, against one after the other",
        "Fig. 20",
        figures,
        'the paper: both at once are "about 50 % faster" for large messages, on an Ethernet of '
        "one direction at a time; where both directions are free, 2 is the limit",
        way,
    )


def _buffers(way: Way, times: int) -> Item:
    calculation_us = _fastest(way, _BYTES, 0.0, times)["simultaneous"]
    figures = [Figure("calculation", "µs", calculation_us)]
    for name, buffer_bytes in (("4 MiB", _LARGE), ("64 KiB", _SMALL)):
        sized = replace(way, buffer_bytes=buffer_bytes)
        fastest = _fastest(sized, _BYTES, calculation_us, times)
        ratio = fastest["boundary_first"] / fastest["hiding"]
        figures.append(Figure(f"boundary first over hiding, buffers of {name}", "", ratio))
    return _item(
        "fig-21-measured",
        "What the buffers hold, and what only an agent hides",
        "Fig. 21",
        figures,
        "the paper: with messages below the socket buffers both hide; above them only the "
        "separate process gains",
        way,
    )


def _gains(way: Way, times: int) -> Item:
    communication_us = _fastest(way, _BYTES, 0.0, times)["simultaneous"]
    figures = [
        Figure("communication", "µs", communication_us),
        Figure("rate of each direction", "B/µs", _BYTES / communication_us),
    ]
    for share in _SHARES:
        fastest = _fastest(way, _BYTES, share * communication_us, times)
        gain = fastest["simultaneous"] / fastest["hiding"]
        figures.append(Figure(f"gain at c / T = {share:g}", "", gain))
    return _item(
        "fig-23-measured",
        "What hiding gains by the calculation over the communication",
        "Fig. 23",
        figures,
        "the paper: ping-pong, simultaneous and hiding by granularity, without printed points; by "
        "its model the gain is greatest, 2, where both take the same time",
        way,
    )


def _item(
    name: str, title: str, source: str, figures: Sequence[Figure], said: str, way: Way
) -> Item:
    where = "loopback" if way.between is None else f"between namespaces {way.between}"
    facts: Mapping[str, str] = {
        "here": f"{platform.machine()}, {os.cpu_count()} processors, {where}",
        "load": f"{os.getloadavg()[0]:.1f} in the last minute; the calculation sleeps",
    }
    remarks = (said, *(f"{key}: {value}" for key, value in facts.items()))
    return Item(
        name,
        title,
        source,
        tuple(replace(one, is_measured=True) for one in figures),
        remarks=remarks,
    )
