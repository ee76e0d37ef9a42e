"""Where the costs of a request come from: the fields that all requests share."""

from __future__ import annotations

from typing import ClassVar

from .declare import Input, asked, exactly_one
from .fit import FitOut
from .fit_options import FitOptionsIn
from .measurements import MeasurementsIn
from .pipeline import AggregateIn, PipelineIn
from .rules import FitId, ProfileAt

SOURCES = ("pipeline", "aggregate", "profile", "measurements", "fit", "fit_id")
SOURCE_FIELDS = (*SOURCES, "fit_options")


class SourceIn(Input):
    """Where the costs come from: exactly one of stages, an aggregate of them, a stored profile,
    measurements to fit, and a fit, as POST /fit gave it or by the identifier under which it is
    stored. `fit_options` say how measurements are fitted.
    """

    schema_rules: ClassVar = {"oneOf": exactly_one(*SOURCES)}

    pipeline: PipelineIn | None = asked("the stages, in their order", default=None)
    aggregate: AggregateIn | None = asked(
        "all stages together and the slowest of them, where single ones are not known",
        default=None,
    )
    profile: ProfileAt | None = asked(
        "a profile's name: its current revision; name@2 pins one",
        default=None,
        is_source=True,
        is_required=True,
        label="Stored profile",
        hint="name or name@2",
    )
    measurements: MeasurementsIn | None = asked("a file to fit, or several", default=None)
    fit: FitOut | None = asked("a fit, as POST /fit gave it", default=None)
    fit_id: FitId | None = asked("a stored fit, as `fit_id` of POST /fit", default=None)
    fit_options: FitOptionsIn | None = asked(
        "how measurements are fitted",
        default=None,
        block=FitOptionsIn,
        only=("test", "run", "where", "several_at_once", "stages_overlap"),
    )
