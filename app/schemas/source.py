"""Where the costs of a request come from: its block of fields as the domain has it."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn, TypeVar

from app.questions.fits import FitReference, options_named
from app.questions.question import Question
from app.questions.source import Source
from app.questions.traces import Measurement
from app.schemas.base import dump_request
from app.schemas.fit_documents import alone, given_fit
from app.schemas.fit_requests import fit_options_of
from app.schemas.stages import asked_aggregate, asked_pipeline, limits_of
from contract.constraints import ConstraintsIn
from contract.fit_options import FitOptionsIn
from contract.measurements import listed
from contract.source import SOURCES, SourceIn
from domain.errors import FieldProblem, InconsistentInput, InvalidFields
from domain.fit import FitOptions
from domain.profile import ProfileReference, ProfileRevision
from domain.stage_table import is_stage_table, read_stage_table

_NO_LIMITS = ConstraintsIn()
SourceT = TypeVar("SourceT", bound=SourceIn)


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


def pinned(asked: SourceT, profile: ProfileRevision | None) -> SourceT:
    """Return a request for the revision of its profile that was found; itself without a profile."""
    if profile is None:
        return asked
    return replace(asked, profile=f"{profile.name}@{profile.revision}")


def as_job(asked: SourceIn, profile: ProfileRevision | None) -> bytes:
    """Return this request as a job keeps it: a profile pinned to the revision that it had."""
    kept = pinned(asked, profile)
    return dump_request(kept if kept.fit is None else replace(kept, fit=alone(kept.fit)))


def source_of(asked: SourceIn) -> Source:
    """Return where the costs come from; a table of stages' costs among measurements is a pipeline.

    Raises InvalidInput for none, or more than one.
    """
    check_exactly_one({name: getattr(asked, name) for name in SOURCES})
    if asked.fit_options is not None and asked.measurements is None:
        _refuse_options(asked.fit_options)
    if asked.pipeline is not None:
        return asked_pipeline(asked.pipeline)
    if asked.aggregate is not None:
        return asked_aggregate(asked.aggregate)
    if asked.profile is not None:
        return ProfileReference.parse(asked.profile)
    if asked.fit is not None:
        return given_fit(asked.fit, "fit")
    if asked.fit_id is not None:
        return FitReference(asked.fit_id)
    given = listed(asked.measurements)
    if len(given) == 1 and given[0].kind is None and is_stage_table(given[0].content):
        return read_stage_table(given[0].content)
    return tuple(Measurement(one.content, one.kind) for one in given)


def options_of(asked: SourceIn) -> FitOptions | None:
    """Return how measurements are fitted, None where nothing is said. Raises InvalidInput."""
    if asked.fit_options is None:
        return None
    names = ("columns", "test", "run", "where", "stages_overlap")
    with options_named({name: f"fit_options.{name}" for name in names}):
        return fit_options_of(asked.fit_options)


def costs_question(
    asked: SourceIn, message_bytes: int, constraints: ConstraintsIn = _NO_LIMITS
) -> Question:
    """Return the question that finds or fits the model of these costs, for messages of at most this
    size, bytes. Raises InvalidInput.
    """
    return Question(
        message_bytes=message_bytes,
        source=source_of(asked),
        limits=limits_of(constraints),
        fit_options=options_of(asked),
    )


def _refuse_options(given: FitOptionsIn) -> NoReturn:
    """Raise InconsistentInput for what is said of measurements where there are none."""
    for name in ("stages_overlap", "several_at_once"):
        if getattr(given, name) is not None:
            raise InconsistentInput(
                "said of a file of measurements, and there is none: fit the file again and say "
                f"it there (sluice fit FILE --{name.replace('_', '-')} yes|no)",
                field=f"fit_options.{name}",
            )
    for name in ("test", "run", "where"):
        if getattr(given, name) is not None:
            raise InconsistentInput(
                "said of a file of measurements or of own transfers, and there is none",
                field=f"fit_options.{name}",
            )
    raise InconsistentInput(
        "fit_options say how to fit measurements, and there are none", field="fit_options"
    )
