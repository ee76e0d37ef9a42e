"""What to set as parts, and how the model is beside what was transferred."""

from __future__ import annotations

from collections.abc import Iterator

from app.ui.parts import Part
from app.ui.verification import verification_parts
from contract.tune import TunedOut


def parts(found: TunedOut) -> Iterator[Part]:
    """Yield the size to set, and the verdict on the model with what it rests on."""
    yield found.transfers.set_this.sentence
    yield ""
    yield from verification_parts(found.verification)
