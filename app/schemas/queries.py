"""Query parameters, as strict as bodies; limits, health, keys and changes; pages of answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from analysis.explanation import DEFAULT_SHARE
from app.questions import compare, keys, question
from app.questions.fits import check_request
from app.questions.optimize import MAX_NAME, MAX_NOTE, AnswerPage
from app.schemas.base import Input, Output, ProfileName, ProfileRevisionOut, timestamp, whole
from app.schemas.fit_requests import (
    EXCLUDED_PATTERN,
    MAX_MEASUREMENTS,
    Columns,
    MaxRanges,
    Name,
    parse_excluded,
    parse_group,
)
from app.settings import Settings
from domain import pipeline
from domain.fit import DEFAULT_MAX_RANGES, FitMethod, FitOptions, FitShape
from domain.measurement import TraceKind
from domain.pipeline import MAX_MESSAGE_BYTES, MAX_NAME_LENGTH, MAX_STAGES
from domain.solution import Status, Strategy
from models.records import AnswerSummary, ApiKeyRecord, ChangeRecord, FitRequest, KeyScope

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


class ChangesQuery(Query):
    """Of which subject, and where the page begins."""

    subject: Annotated[str, Field(min_length=1, max_length=200)] | None = None
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
    total_is_uncut: Annotated[
        Flag, Field(description="nothing cut the messages whose latencies were measured")
    ] = False
    several_at_once: Annotated[
        Flag | None,
        Field(description="whether a stage handles several fragments at once; absent: not known"),
    ] = None
    stages_overlap: Annotated[
        Flag | None,
        Field(description="whether stages work on different fragments at the same time"),
    ] = None
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
            total_is_uncut=self.total_is_uncut,
            several_at_once=self.several_at_once,
            stages_overlap=self.stages_overlap,
        )
        request = FitRequest(options, self.message_bytes, (self.kind,) * num_traces)
        check_request(request)
        return request


@dataclass(frozen=True)
class LimitsOut(Output):
    """Everything that a request is measured against. Sizes in bytes, times in µs or s."""

    max_stages: int
    max_ranges_per_stage: int
    max_name_length: int
    max_overhead_us: float
    max_ns_per_byte: float
    min_message_bytes: int
    max_message_bytes: int
    max_fragments: int
    max_body_bytes: int
    max_trace_bytes: int
    max_measurements: int
    max_simulation_intervals: int
    max_comparison_rows: int
    default_relative_gap: float
    default_time_limit_s: float
    max_time_limit_s: float
    max_page_size: int
    strategies: tuple[Strategy, ...]
    workers: int
    worker_memory_bytes: int

    @classmethod
    def of(cls, settings: Settings, *, max_page_size: int) -> LimitsOut:
        """Return the limits of a service with these settings."""
        return cls(
            max_stages=pipeline.MAX_STAGES,
            max_ranges_per_stage=pipeline.MAX_RANGES,
            max_name_length=pipeline.MAX_NAME_LENGTH,
            max_overhead_us=pipeline.MAX_OVERHEAD_US,
            max_ns_per_byte=pipeline.MAX_NS_PER_BYTE,
            min_message_bytes=1,
            max_message_bytes=pipeline.MAX_MESSAGE_BYTES,
            max_fragments=settings.max_fragments,
            max_body_bytes=settings.max_body_bytes,
            max_trace_bytes=settings.max_trace_bytes,
            max_measurements=MAX_MEASUREMENTS,
            max_simulation_intervals=compare.MAX_INTERVALS,
            max_comparison_rows=compare.MAX_COMPARED,
            default_relative_gap=question.DEFAULT_RELATIVE_GAP,
            default_time_limit_s=question.DEFAULT_TIME_LIMIT_S,
            max_time_limit_s=question.MAX_TIME_LIMIT_S,
            max_page_size=max_page_size,
            strategies=tuple(Strategy),
            workers=settings.worker_count,
            worker_memory_bytes=settings.worker_memory_bytes,
        )


@dataclass(frozen=True)
class AliveOut(Output):
    """The process answers."""

    status: Literal["alive"]


@dataclass(frozen=True)
class ReadyOut(Output):
    """The database and the workers answer too. Where everybody needs a key, anybody may ask for
    this all the same, and `database` is null.
    """

    status: Literal["ready"]
    database: Literal["sqlite", "postgresql"] | None
    workers: int


# --- keys -----------------------------------------------------------------------------------------


class KeyIn(Input):
    """A new key of who asks for it; without `expires_in_s` it does not expire.

    `requests_per_s` limits it further than its owner is.
    """

    name: Annotated[str, Field(min_length=1, max_length=keys.MAX_NAME, pattern=r"^[^\u0000]*$")]
    scope: KeyScope
    expires_in_s: Annotated[int, Field(ge=1, le=keys.MAX_AGE_S), BeforeValidator(whole)] | None = (
        None
    )
    requests_per_s: Annotated[int, Field(ge=1, le=10**6), BeforeValidator(whole)] | None = None


class RotationIn(Input):
    """How long the key that is exchanged goes on."""

    kept_s: Annotated[int, Field(ge=0, le=30 * 86_400), BeforeValidator(whole)] = keys.KEPT_S


@dataclass(frozen=True)
class KeyOut(Output):
    """A key, without its secret, which is not stored."""

    id: str
    owner: str
    name: str
    scope: KeyScope
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    requests_per_s: int | None

    @classmethod
    def of(cls, key: ApiKeyRecord) -> KeyOut:
        """Return a key as it is sent."""
        return cls(**_shown(key))


@dataclass(frozen=True)
class NewKeyOut(KeyOut):
    """A new key; its `secret` is sent this once."""

    secret: str

    @classmethod
    def of_new(cls, made: keys.NewKey) -> NewKeyOut:
        """Return a new key as it is sent."""
        return cls(**_shown(made.record), secret=made.secret)


@dataclass(frozen=True)
class KeysOut(Output):
    """Every key of an owner, the newest first, revoked ones as well."""

    items: tuple[KeyOut, ...]


@dataclass(frozen=True)
class ChangeOut(Output):
    """One change: `made_by` is the name of a key, or what else acted, empty where nobody is asked
    who he is; `before` and `after` are a revision, a digest or a state.
    """

    id: str
    created_at: str
    owner: str
    made_by: str
    key_id: str | None
    request: str | None
    action: str
    subject: str
    before: str | None
    after: str | None

    @classmethod
    def of(cls, change: ChangeRecord) -> ChangeOut:
        """Return a change as it is sent."""
        values = {name: getattr(change, name) for name in ChangeRecord.__slots__}
        return cls(**{**values, "created_at": timestamp(change.created_at)})


@dataclass(frozen=True)
class ChangesOut(Output):
    """A page of an owner's changes, the newest first; `next_cursor` is null at the end."""

    items: tuple[ChangeOut, ...]
    next_cursor: str | None

    @classmethod
    def of(cls, page: keys.ChangePage) -> ChangesOut:
        """Return a page as it is sent."""
        return cls(tuple(map(ChangeOut.of, page.changes)), page.after)


def _shown(key: ApiKeyRecord) -> dict[str, Any]:
    return {
        "id": key.id,
        "owner": key.owner,
        "name": key.name,
        "scope": key.scope,
        "created_at": timestamp(key.created_at),
        "expires_at": None if key.expires_at is None else timestamp(key.expires_at),
        "revoked_at": None if key.revoked_at is None else timestamp(key.revoked_at),
        "requests_per_s": key.requests_per_s,
    }


# --- pages of stored answers ----------------------------------------------------------------------


# No NUL, and none of the characters at which a text has another line.
_ONE_LINE = r"^[^\u0000\n\r\u000b\u000c\u001c-\u001e\u0085\u2028\u2029]*$"


class DescriptionIn(Input):
    """What a stored answer is called, and a note about it; empty for none. What is left out stays
    as it is.
    """

    name: Annotated[str, Field(max_length=MAX_NAME, pattern=_ONE_LINE)] | None = None
    note: Annotated[str, Field(max_length=MAX_NOTE, pattern=r"^[^\u0000]*$")] | None = None


@dataclass(frozen=True)
class SummaryOut(Output):
    """What a page shows of a stored answer; GET /optimizations/{id} gives all of it."""

    id: str
    created_at: str
    strategy: Strategy
    message_bytes: int
    fragments: int
    latency_us: float
    lower_bound_us: float
    relative_gap: float
    status: Status
    profile: ProfileRevisionOut | None
    name: str | None
    note: str | None

    @classmethod
    def of(cls, summary: AnswerSummary) -> SummaryOut:
        """Return what a page shows of a stored answer."""
        name, revision = summary.profile_name, summary.profile_revision
        return cls(
            id=summary.id,
            created_at=timestamp(summary.created_at),
            strategy=summary.strategy,
            message_bytes=summary.message_bytes,
            fragments=summary.fragments,
            latency_us=summary.latency_us,
            lower_bound_us=summary.lower_bound_us,
            relative_gap=summary.relative_gap,
            status=summary.status,
            profile=None
            if name is None or revision is None
            else ProfileRevisionOut(name, revision),
            name=summary.name,
            note=summary.note,
        )


@dataclass(frozen=True)
class OptimizationsOut(Output):
    """A page of stored answers, newest first; `next_cursor` is null at the end."""

    items: tuple[SummaryOut, ...]
    next_cursor: str | None

    @classmethod
    def of(cls, page: AnswerPage) -> OptimizationsOut:
        """Return a page of stored answers as it is sent."""
        return cls(tuple(map(SummaryOut.of, page.summaries)), page.after)
