"""The JSON body of POST /fit: several files that are measurements of one pipeline."""

from __future__ import annotations

from app.flows.questions import Measurement
from app.schemas.base import Input
from app.schemas.optimize import MeasurementsIn


class FitIn(Input):
    """One file or several, fitted together. How to fit them is said in the query."""

    measurements: MeasurementsIn

    def to_domain(self) -> tuple[Measurement, ...]:
        """The measurements, in their order."""
        given = self.measurements
        listed = given if isinstance(given, list) else [given]
        return tuple(Measurement(one.content, one.kind) for one in listed)
