"""Query parameters, as strict as bodies: unknown ones are refused, numbers are plain digits."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from analysis.explanation import DEFAULT_SHARE
from app.questions.fits import check_request
from app.schemas.base import ProfileName
from app.schemas.fit_requests import (
    EXCLUDED_PATTERN,
    Columns,
    MaxRanges,
    Name,
    parse_excluded,
    parse_group,
)
from domain.fit import DEFAULT_MAX_RANGES, FitMethod, FitOptions, FitShape
from domain.measurement import TraceKind
from domain.pipeline import MAX_MESSAGE_BYTES, MAX_NAME_LENGTH, MAX_STAGES
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

    cheaper_by: Annotated[float, Field(gt=0.0, le=1.0)] = DEFAULT_SHARE


class OptimizationsQuery(Query):
    """Which stored answers, and where the page begins."""

    profile: ProfileName | None = None
    revision: Annotated[int, Field(ge=1, le=999_999_999), Digits] | None = None
    message_bytes: Annotated[int, Field(ge=1, le=MAX_MESSAGE_BYTES), Digits] | None = None
    strategy: Strategy | None = None
    cursor: Identifier | None = None
    limit: Limit = DEFAULT_PAGE_SIZE


class ProfilesQuery(Query):
    """Where the page begins."""

    cursor: ProfileName | None = None
    limit: Limit = DEFAULT_PAGE_SIZE


class TablesQuery(Query):
    """Where the page begins."""

    cursor: Identifier | None = None
    limit: Limit = DEFAULT_PAGE_SIZE


class TableQuery(Query):
    """The form that is wanted; without it the media types that are accepted decide."""

    format: TableFormat | None = None


class ScheduleQuery(Query):
    """The message to cut."""

    bytes: Annotated[int, Field(ge=1, le=MAX_MESSAGE_BYTES), Digits]


class FitQuery(Query):
    """What the trace is, how to fit it, the profile to save it as, and whether a plot is wanted."""

    kind: TraceKind | None = None
    method: FitMethod = FitMethod.ROBUST
    shape: FitShape = FitShape.RANGES
    max_ranges: Annotated[MaxRanges, Digits] = DEFAULT_MAX_RANGES
    group: Annotated[
        list[
            Annotated[
                str,
                Field(
                    max_length=_MAX_GROUP_LENGTH,
                    pattern="^[^:]+:(overlap|sequence):[^,]+(,[^,]+)+$",
                ),
            ]
        ],
        Field(max_length=MAX_STAGES, description="name:overlap:step,step or name:sequence:..."),
    ] = []
    exclude: Annotated[
        list[
            Annotated[
                str,
                Field(max_length=_MAX_EXCLUDED_LENGTH, pattern=EXCLUDED_PATTERN),
            ]
        ],
        Field(max_length=MAX_EXCLUDED_IN_QUERY, description="bytes:µs:stage, left out by hand"),
    ] = []
    as_stage: Name | None = None
    columns: Annotated[Columns | None, Field(description="size=column,time=column:unit")] = None
    message_bytes: Annotated[int, Field(ge=1, le=MAX_MESSAGE_BYTES), Digits] | None = None
    save_as: ProfileName | None = None
    plot: Flag = False

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
        )
        request = FitRequest(options, self.message_bytes, (self.kind,) * num_traces)
        check_request(request)
        return request
