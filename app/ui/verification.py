"""A verification of a model as parts: the verdict, and what was measured of each size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.text.notices import capitalised
from app.text.units import format_time, printable
from app.ui.parts import Beyond, Cell, Column, Grid, Part
from contract.verification import VerificationOut
from domain.units import format_bytes
from domain.verification import TOLERANCE


def verification_parts(found: VerificationOut) -> Iterator[Part]:
    """Yield a verdict, what it rests on, and the further reasons that the times speak for."""
    yield capitalised(printable(found.detail)) + "."
    yield ""
    yield verified_sizes(found)
    for reason in found.reasons[1:]:
        yield f"also: {printable(reason.detail)}"


def verified_sizes(found: VerificationOut) -> Grid:
    """Return a row for each size: what is predicted and the median that was measured of it; the
    ratio of both is marked where the model does not hold for it.
    """
    names = ("fragments of", "predicted", "measured", "95 % interval", "ratio", "runs")
    rows = tuple(
        (
            f"{format_bytes(size.fragment_bytes)} ({size.fragments})",
            format_time(size.predicted_us),
            format_time(size.measured_us),
            " to ".join(map(format_time, size.measured_us_interval)),
            _ratio(size.ratio),
            str(size.runs),
        )
        for size in found.sizes
    )
    words = transfers_words(found.message_bytes, found.stages)
    return Grid(tuple(map(Column, names)), rows, printable(words))


def transfers_words(message_bytes: int, stages: Sequence[str]) -> str:
    """Return what was transferred, and through which stages where they were named."""
    through = f" through {', '.join(stages)}" if stages else ""
    return f"Transfers of {format_bytes(message_bytes)}{through}"


def _ratio(ratio: float) -> Cell:
    is_off = abs(ratio - 1.0) > TOLERANCE
    return Beyond(f"{ratio:.3f}", ", more than 5 % off") if is_off else f"{ratio:.3f}"
