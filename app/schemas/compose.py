"""What contract/compose.py declares: measurements of stages, and how to fit them together."""

from __future__ import annotations

from collections.abc import Iterator

from app.questions.question import Measurement
from app.schemas.base import refused_fields
from app.schemas.fit_requests import checked_columns, left_out
from contract.compose import ComposeIn
from contract.measurements import listed
from domain.conditions import RowChoice
from domain.errors import FieldProblem, InvalidInput
from domain.fit import ComposedStage, FitMethod, FitOptions, FitShape


def composed_measurements(asked: ComposeIn) -> tuple[Measurement, ...]:
    """Return all measurements, those of the first stage first.

    Raises InvalidFields where columns of tables, or chosen rows, are none.
    """
    if problems := tuple(_wrong_words(asked)):
        raise refused_fields(problems)
    files = (file for stage in asked.stages for file in listed(stage.measurements))
    return tuple(Measurement(file.content, file.kind) for file in files)


def composed_options(asked: ComposeIn) -> FitOptions:
    """Return how to fit them. Raises InvalidInput."""
    return FitOptions(
        FitMethod(asked.method),
        FitShape(asked.shape),
        asked.max_ranges,
        excluded=left_out(asked.excluded),
        composed=tuple(
            ComposedStage(
                stage.name,
                len(listed(stage.measurements)),
                stage.step,
                stage.processor,
                stage.columns,
                RowChoice(stage.test, stage.run, stage.where),
            )
            for stage in asked.stages
        ),
    )


def _wrong_words(asked: ComposeIn) -> Iterator[FieldProblem]:
    for place, stage in enumerate(asked.stages):
        try:
            RowChoice(stage.test, stage.run, stage.where)
        except InvalidInput as refusal:
            yield FieldProblem(f"/stages/{place}/{refusal.field}", refusal.detail)
        if stage.columns is None:
            continue
        try:
            checked_columns(stage.columns)
        except ValueError as refusal:
            yield FieldProblem(f"/stages/{place}/columns", str(refusal))
