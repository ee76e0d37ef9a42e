"""A verification as parts: the verdict, and the sizes that matter beside the best measured."""

from __future__ import annotations

from collections.abc import Iterator

from app.schemas.verification import verification_out
from app.text.units import format_time
from app.ui.parts import Facts, Part
from app.ui.verification import verification_parts
from domain.units import format_bytes
from domain.verification import Verification, VerifiedSize


def parts(found: Verification, recommended_bytes: int, current_bytes: int | None) -> Iterator[Part]:
    """Yield the verdict, what it rests on, and what was measured of the sizes that matter."""
    yield from verification_parts(verification_out(found))
    yield ""
    yield Facts(tuple(_comparison(found, recommended_bytes, current_bytes)))


def _comparison(
    found: Verification, recommended_bytes: int, current_bytes: int | None
) -> Iterator[tuple[str, str]]:
    best = found.best_measured
    for name, size in (("recommended", recommended_bytes), ("current", current_bytes)):
        verified = found.of_size(size)
        if verified is not None:
            more = verified.measured_us / best.measured_us - 1.0
            yield name, f"{_with_times(verified)}; {more:.1%} over the best measured"
    yield "best measured", _with_times(best)


def _with_times(size: VerifiedSize) -> str:
    """Return a size with what was measured and predicted of it."""
    predicted, measured = format_time(size.predicted_us), format_time(size.measured_us)
    return f"{format_bytes(size.fragment_bytes)}: measured {measured}, predicted {predicted}"
