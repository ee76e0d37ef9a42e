"""What contract/compose.py declares, as the domain has it: files of stages, how they are fitted."""

from __future__ import annotations

from collections.abc import Iterator

from app.questions.traces import Measurement
from app.schemas.base import refused_fields
from app.schemas.fit_requests import checked_columns, left_out
from contract.compose import ComposedStageIn, ComposeIn
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
                _columns(stage),
                _rows(stage),
            )
            for stage in asked.stages
        ),
    )


def _columns(stage: ComposedStageIn) -> str | None:
    """Return which columns its tables have. Raises InvalidInput."""
    if stage.columns is None:
        return None
    try:
        return checked_columns(stage.columns)
    except ValueError as refusal:
        raise InvalidInput(str(refusal), field="columns") from None


def _rows(stage: ComposedStageIn) -> RowChoice:
    """Return which rows of its files are taken. Raises InvalidInput."""
    return RowChoice(stage.test, stage.run, stage.where)


def _wrong_words(asked: ComposeIn) -> Iterator[FieldProblem]:
    for place, stage in enumerate(asked.stages):
        for read in (_rows, _columns):
            try:
                read(stage)
            except InvalidInput as refusal:
                yield FieldProblem(f"/stages/{place}/{refusal.field}", refusal.detail)
