"""The measurements of one pipeline: which traces go together, and which fit they get."""

from __future__ import annotations

from collections.abc import Sequence

from domain.errors import UnreadableTrace
from domain.fit import FitOptions, TraceFit
from domain.measurement import DirectTrace, Reading
from fitting.direct import fit_direct


def fit_readings(readings: Sequence[Reading], options: FitOptions) -> TraceFit:
    """Fit one direct trace. Raises UnreadableTrace and PoorFit."""
    if len(readings) != 1 or not isinstance(readings[0].trace, DirectTrace):
        raise UnreadableTrace("expected one direct trace", field="measurements")
    return fit_direct(readings[0].trace, options, understood=readings[0].understood)
