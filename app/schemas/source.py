"""Where the costs of a request come from: the block of fields that all requests share."""

from __future__ import annotations

from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import ConfigDict, Field
from pydantic.config import JsonValue

from app.questions.fits import options_named
from app.questions.question import FitReference, Measurement, Source
from app.schemas.base import Input
from app.schemas.fit_documents import FitDocument, given_fit
from app.schemas.fit_requests import FitOptionsIn, MeasurementsIn
from app.schemas.stages import AggregateIn, PipelineIn
from domain.errors import FieldProblem, InconsistentInput, InvalidFields
from domain.fit import FitOptions
from domain.profile import PROFILE_NAME_RULE, ProfileReference, ProfileRevision

SOURCES = ("pipeline", "aggregate", "profile", "measurements", "fit", "fit_id")
SOURCE_FIELDS = (*SOURCES, "fit_options")

ProfileAt = Annotated[
    str,
    Field(
        pattern=f"^{PROFILE_NAME_RULE}(@[1-9][0-9]{{0,8}})?$",
        description="a profile's name: its current revision; name@2 pins one",
    ),
]
FitId = Annotated[
    str, Field(pattern="^[0-9a-f]{32}$", description="a stored fit, as `fit_id` of POST /fit")
]
InputT = TypeVar("InputT", bound=Input)


def exactly_one(*names: str) -> list[JsonValue]:
    """Return the JSON Schema `oneOf` by which exactly one of these fields is not null."""
    return [
        {
            "required": [name],
            "properties": {
                other: {"not": {"type": "null"}} if other == name else {"type": "null"}
                for other in names
            },
        }
        for name in names
    ]


def check_exactly_one(given: dict[str, object]) -> None:
    """Raise InvalidFields unless one of these fields, and only one, is not null."""
    present = [name for name, value in given.items() if value is not None]
    if len(present) == 1:
        return
    rule = f"expected exactly one of {', '.join(given)}"
    places = present or list(given)
    raise InvalidFields(
        f"{rule}, got {', '.join(present) or 'none'}",
        problems=tuple(FieldProblem(f"/{name}", rule) for name in places),
    )


def pinned(asked: InputT, profile: ProfileRevision | None) -> InputT:
    """Return a request for the revision of its profile that was found; itself without a profile."""
    if profile is None:
        return asked
    return asked.model_copy(update={"profile": f"{profile.name}@{profile.revision}"})


class SourceIn(Input):
    """Where the costs come from: exactly one of stages, an aggregate of them, a stored profile,
    measurements to fit, and a fit, as POST /fit gave it or by the identifier under which it is
    stored. `fit_options` say how measurements are fitted.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": exactly_one(*SOURCES)})

    pipeline: PipelineIn | None = None
    aggregate: AggregateIn | None = None
    profile: ProfileAt | None = None
    measurements: MeasurementsIn | None = None
    fit: FitDocument | None = None
    fit_id: FitId | None = None
    fit_options: FitOptionsIn | None = None

    def as_job(self, profile: ProfileRevision | None) -> bytes:
        """Return this request as a job keeps it: a profile pinned to the revision that it had."""
        return pinned(self, profile).model_dump_json(exclude_none=True).encode()

    def source(self) -> Source:
        """Return where the costs come from. Raises InvalidInput for none, or more than one."""
        check_exactly_one({name: getattr(self, name) for name in SOURCES})
        if self.fit_options is not None and self.measurements is None:
            self._refuse_options(self.fit_options)
        if self.pipeline is not None:
            return self.pipeline.to_domain()
        if self.aggregate is not None:
            return self.aggregate.to_domain()
        if self.profile is not None:
            return ProfileReference.parse(self.profile)
        if self.fit is not None:
            return given_fit(self.fit, "fit")
        if self.fit_id is not None:
            return FitReference(self.fit_id)
        given = self.measurements if isinstance(self.measurements, list) else [self.measurements]
        return tuple(Measurement(one.content, one.kind) for one in given if one is not None)

    def options(self) -> FitOptions | None:
        """Return how measurements are fitted, None where nothing is said. Raises InvalidInput."""
        if self.fit_options is None:
            return None
        with options_named({"stages_overlap": "fit_options.stages_overlap"}):
            return self.fit_options.to_domain()

    @staticmethod
    def _refuse_options(given: FitOptionsIn) -> NoReturn:
        """Raise InconsistentInput for what is said of measurements where there are none."""
        for name in ("stages_overlap", "several_at_once"):
            if getattr(given, name) is not None:
                raise InconsistentInput(
                    "said of a file of measurements, and there is none: fit the file again and say "
                    f"it there (sluice fit FILE --{name.replace('_', '-')} yes|no)",
                    field=f"fit_options.{name}",
                )
        raise InconsistentInput(
            "fit_options say how to fit measurements, and there are none", field="fit_options"
        )

    def given_source(self) -> dict[str, Any]:
        """Return the fields of this block, for another request about the same costs."""
        return {name: getattr(self, name) for name in SOURCE_FIELDS}
