"""The JSON body of POST /fit: several files that are measurements of one pipeline."""

from __future__ import annotations

from app.flows.questions import Measurement
from app.schemas.base import Input
from app.schemas.fit_options import Excluded
from app.schemas.optimize import MeasurementsIn
from domain.fit import ExcludedSample


class FitIn(Input):
    """One file or several, fitted together, and samples to leave out.

    How else to fit them is said in the query.
    """

    measurements: MeasurementsIn
    excluded: Excluded = ()

    def to_domain(self) -> tuple[Measurement, ...]:
        """The measurements, in their order."""
        given = self.measurements
        listed = given if isinstance(given, list) else [given]
        return tuple(Measurement(one.content, one.kind) for one in listed)

    def left_out(self) -> tuple[ExcludedSample, ...]:
        """The samples to leave out."""
        return tuple(sample.to_domain() for sample in self.excluded)
