# app/verbs/curve/show.py
"""A curve as parts: for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterator

from app.text.units import format_time
from app.ui.parts import Column, Grid, Part
from contract.curve import CurveOut
from domain.units import format_bytes


def parts(found: CurveOut) -> Iterator[Part]:
    """Yield the table of latencies."""
    rows = tuple(
        (format_bytes(point.message_bytes), format_time(point.latency_us)) for point in found.points
    )
    yield Grid((Column("message"), Column("latency")), rows, "Latency by message")
