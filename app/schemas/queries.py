"""Query parameters, as strict as bodies.

FastAPI reads the parameters of an operation together from a model of pydantic alone, and refuses
dataclasses: so these stand here, and not in `contract`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from analysis.explanation import DEFAULT_SHARE
from app.questions.fits import check_request
from app.schemas.fit_requests import EXCLUDED_PATTERN, CheckedColumns, parse_excluded, parse_group
from contract.declare import words_of
from contract.fit import FitQueryIn
from contract.fit_options import MaxRanges, Run, TestName, Where
from contract.limits import (
    DEFAULT_MAX_RANGES,
    MAX_MESSAGE_BYTES,
    MAX_NAME_LENGTH,
    MAX_REVISION,
    MAX_STAGES,
)
from contract.rules import Name, ProfileName
from domain.conditions import RowChoice
from domain.fit import FitMethod, FitOptions, FitShape
from domain.measurement import TraceKind
from domain.solution import Strategy
from models.records import FitRequest

MAX_PAGE_SIZE = 1_000
DEFAULT_PAGE_SIZE = 50
MAX_EXCLUDED_IN_QUERY = 100
_MAX_EXCLUDED_LENGTH = 20 + 40 + MAX_NAME_LENGTH
_MAX_GROUP_LENGTH = (MAX_STAGES + 2) * MAX_NAME_LENGTH


def _plain_digits(value: Any) -> Any:
    if isinstance(value, str) and not (value.isascii() and value.isdigit() and len(value) < 20):
        raise ValueError("expected a whole number in plain digits")
    return value


def _true_or_false(value: Any) -> Any:
    if isinstance(value, str) and value not in ("true", "false"):
        raise ValueError("expected true or false")
    return value


Flag = Annotated[bool, BeforeValidator(_true_or_false)]
Digits = BeforeValidator(_plain_digits)
Limit = Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE), Digits]
Identifier = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Typed = Annotated[str, Field(max_length=40)]  # a size as a page is given it
MessageBytes = Annotated[int, Field(ge=1, le=MAX_MESSAGE_BYTES), Digits]
_Group = Annotated[
    str,
    Field(max_length=_MAX_GROUP_LENGTH, pattern="^[^:]+:(overlap|sequence):[^,]+(,[^,]+)+$"),
]
_Excluded = Annotated[str, Field(max_length=_MAX_EXCLUDED_LENGTH, pattern=EXCLUDED_PATTERN)]
_CURSOR = "where the page begins: `next_cursor` of the page before"
_LIMIT = "items of the page at most"
_FIT_MEANS = {
    word.place[0]: word.means.replace("null:", "absent:") for word in words_of(FitQueryIn)
}


class TableFormat(StrEnum):
    """A compiled table's file, the file's JSON twin, or what is told of it."""

    SLT = "slt"
    JSON = "json"
    SUMMARY = "summary"


class Query(BaseModel):
    """The parameters of one operation."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoQuery(Query):
    """No parameters at all."""


class ExplanationQuery(Query):
    """How much cheaper each cost is made in turn: a share of it."""

    cheaper_by: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        DEFAULT_SHARE, description="how much cheaper each cost is made in turn, as a share of it"
    )


class OptimizationsQuery(Query):
    """Which stored answers, and where the page begins."""

    profile: ProfileName | None = Field(None, description="of this profile alone")
    revision: Annotated[int, Field(ge=1, le=MAX_REVISION), Digits] | None = Field(
        None, description="of this revision of the profile alone"
    )
    message_bytes: MessageBytes | None = Field(
        None, description="of messages of this size alone, bytes"
    )
    strategy: Strategy | None = Field(None, description="by this strategy alone")
    cursor: Identifier | None = Field(None, description=_CURSOR)
    limit: Limit = Field(DEFAULT_PAGE_SIZE, description=_LIMIT)


class ProfilesQuery(Query):
    """Where the page begins."""

    cursor: ProfileName | None = Field(None, description=_CURSOR)
    limit: Limit = Field(DEFAULT_PAGE_SIZE, description=_LIMIT)


class TablesQuery(Query):
    """Where the page begins."""

    cursor: Identifier | None = Field(None, description=_CURSOR)
    limit: Limit = Field(DEFAULT_PAGE_SIZE, description=_LIMIT)


class ChangesQuery(Query):
    """Of which subject, and where the page begins."""

    subject: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(
        None, description="of this profile, or what has this identifier, alone"
    )
    cursor: Identifier | None = Field(None, description=_CURSOR)
    limit: Limit = Field(DEFAULT_PAGE_SIZE, description=_LIMIT)


class TableQuery(Query):
    """The form that is wanted; without it the media types that are accepted decide."""

    format: TableFormat | None = Field(
        None,
        description="slt: the file; json: its twin in JSON; summary: what is told of it; absent: "
        "the media types that are accepted decide",
    )


class ScheduleQuery(Query):
    """The message to cut."""

    bytes: MessageBytes = Field(description="size of the message, bytes")


class FitQuery(Query):
    """What the trace is, how to fit it, the profile to save it as, and whether a plot is wanted."""

    kind: TraceKind | None = Field(None, description=_FIT_MEANS["kind"])
    method: FitMethod = Field(FitMethod.ROBUST, description=_FIT_MEANS["method"])
    shape: FitShape = Field(FitShape.RANGES, description=_FIT_MEANS["shape"])
    max_ranges: Annotated[MaxRanges, Digits] = Field(
        DEFAULT_MAX_RANGES, description=_FIT_MEANS["max_ranges"]
    )
    group: Annotated[list[_Group], Field(max_length=MAX_STAGES)] = Field(
        [],
        description="name:overlap:step,step or name:sequence:...; steps of a direct trace that "
        "form one stage",
    )
    exclude: Annotated[list[_Excluded], Field(max_length=MAX_EXCLUDED_IN_QUERY)] = Field(
        [], description="bytes:µs:stage, left out by hand"
    )
    as_stage: Name | None = Field(None, description=_FIT_MEANS["as_stage"])
    columns: CheckedColumns | None = Field(None, description=_FIT_MEANS["columns"])
    test: TestName | None = Field(None, description=_FIT_MEANS["test"])
    run: Annotated[Run, Digits] | None = Field(None, description=_FIT_MEANS["run"])
    where: Where | None = Field(None, description=_FIT_MEANS["where"])
    total_is_uncut: Flag = Field(False, description=_FIT_MEANS["total_is_uncut"])
    several_at_once: Flag | None = Field(None, description=_FIT_MEANS["several_at_once"])
    stages_overlap: Flag | None = Field(None, description=_FIT_MEANS["stages_overlap"])
    message_bytes: MessageBytes | None = Field(None, description=_FIT_MEANS["message_bytes"])
    save_as: ProfileName | None = Field(None, description=_FIT_MEANS["save_as"])
    plot: Flag = Field(False, description=_FIT_MEANS["plot"])

    def to_request(self, num_traces: int = 1) -> FitRequest:
        """Return how to fit. Raises InvalidInput."""
        groups = tuple(map(parse_group, self.group))
        excluded = tuple(map(parse_excluded, self.exclude))
        options = FitOptions(
            self.method,
            self.shape,
            self.max_ranges,
            groups,
            excluded,
            self.as_stage,
            columns=self.columns,
            choice=RowChoice(self.test, self.run, self.where),
            total_is_uncut=self.total_is_uncut,
            several_at_once=self.several_at_once,
            stages_overlap=self.stages_overlap,
        )
        request = FitRequest(options, self.message_bytes, (self.kind,) * num_traces)
        check_request(request)
        return request
