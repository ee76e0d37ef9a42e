"""A verification of a model as parts: the verdict, and what was measured of each size."""

from __future__ import annotations

from collections.abc import Iterator

from app.text.notices import capitalised
from app.text.units import format_time, printable
from app.ui.parts import Column, Grid, Part
from contract.verification import VerificationOut
from domain.units import format_bytes


def verification_parts(found: VerificationOut) -> Iterator[Part]:
    """Yield a verdict, what it rests on, and the further reasons that the times speak for."""
    yield capitalised(printable(found.detail)) + "."
    yield ""
    names = ("fragments of", "predicted", "measured", "95 % interval", "ratio", "runs")
    rows = tuple(
        (
            f"{format_bytes(size.fragment_bytes)} ({size.fragments})",
            format_time(size.predicted_us),
            format_time(size.measured_us),
            " to ".join(map(format_time, size.measured_us_interval)),
            f"{size.ratio:.3f}",
            str(size.runs),
        )
        for size in found.sizes
    )
    yield Grid(tuple(map(Column, names)), rows)
    for reason in found.reasons[1:]:
        yield f"also: {printable(reason.detail)}"
