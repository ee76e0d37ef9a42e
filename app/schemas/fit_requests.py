"""What is said of how to fit, as the domain has it: in bodies, in queries and in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator

from app.questions.traces import Measurement
from contract.fit import FitIn
from contract.fit_options import (
    COLUMNS_PATTERN,
    Columns,
    ExcludedSampleIn,
    FitOptionsIn,
)
from contract.limits import (
    MAX_NAME_LENGTH,
)
from contract.measurements import listed
from domain.conditions import RowChoice
from domain.errors import InvalidInput
from domain.fit import (
    Combine,
    ExcludedSample,
    FitMethod,
    FitOptions,
    FitShape,
    StepGroup,
)
from domain.table_columns import parse_columns

# Sizes below 10^14 bytes and times below 10^12 µs: every one that matches is a sample.
EXCLUDED_PATTERN = (
    r"^[1-9][0-9]{0,13}:[0-9]{1,12}(\.[0-9]{1,20})?([eE]-[0-9]{1,3})?:.+$"  # bytes:µs:stage
)
_EXCLUDED = re.compile(EXCLUDED_PATTERN, re.ASCII)


_COLUMNS = re.compile(COLUMNS_PATTERN, re.ASCII)


def checked_columns(text: str) -> str:
    """Return the word, where it names columns as `parse_columns` has them and the pattern allows.

    Raises ValueError.
    """
    try:
        parse_columns(text)
    except InvalidInput as refusal:
        raise ValueError(refusal.detail) from None
    if not _COLUMNS.search(text):
        raise ValueError(
            "expected the size first, then the time, then interarrival or rate, and names of ASCII "
            "without , : and =; another column is named by its place, as #2"
        )
    return text


CheckedColumns = Annotated[Columns, AfterValidator(checked_columns)]


def parse_group(text: str) -> StepGroup:
    """Return a group in one word, `name:overlap:step,step`. Raises InvalidInput naming `group`."""
    name, _, rest = text.partition(":")
    combine, _, steps = rest.partition(":")
    words = tuple(steps.split(","))
    if combine not in tuple(Combine) or not name or len(words) < 2 or not all(words):
        raise InvalidInput(
            "expected a group as name:overlap:step,step or name:sequence:step,step, with the names "
            "of two or more steps",
            field="group",
        )
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidInput(
            f"expected a name of at most {MAX_NAME_LENGTH} characters", field="group"
        )
    return StepGroup(name, words, Combine(combine))


def parse_excluded(text: str) -> ExcludedSample:
    """Return a sample in one word, `bytes:µs:stage`. Raises InvalidInput naming `exclude`."""
    if _EXCLUDED.fullmatch(text) is None:
        raise InvalidInput(
            "expected a sample as bytes:µs:stage, its time to the last digit, as in "
            "4096:12.75:copy",
            field="exclude",
        )
    size, time_us, stage = text.split(":", 2)
    return ExcludedSample(stage, int(size), float(time_us))


def fit_options_of(given: FitOptionsIn) -> FitOptions:
    """Return the options of a request. Raises InvalidInput that names the option's field."""
    if given.columns is not None:
        try:
            checked_columns(given.columns)
        except ValueError as refusal:
            raise InvalidInput(str(refusal), field="columns") from None
    return FitOptions(
        FitMethod(given.method),
        FitShape(given.shape),
        given.max_ranges,
        tuple(
            StepGroup(group.name, tuple(group.steps), Combine(group.combine))
            for group in given.groups
        ),
        left_out(given.excluded),
        given.as_stage,
        columns=given.columns,
        choice=RowChoice(given.test, given.run, given.where),
        total_is_uncut=given.total_is_uncut,
        several_at_once=given.several_at_once,
        stages_overlap=given.stages_overlap,
    )


def fit_measurements(asked: FitIn) -> tuple[Measurement, ...]:
    """Return the measurements, in their order."""
    return tuple(Measurement(file.content, file.kind) for file in listed(asked.measurements))


def left_out(given: Sequence[ExcludedSampleIn]) -> tuple[ExcludedSample, ...]:
    """Return the samples to leave out."""
    return tuple(
        ExcludedSample(sample.stage, sample.message_bytes, sample.time_us) for sample in given
    )
