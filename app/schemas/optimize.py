"""POST /optimize: the question in, the answer out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Discriminator, FailFast, Field, Tag
from pydantic.config import JsonValue
from typing_extensions import TypeAliasType

from app.flows.questions import (
    DEFAULT_RELATIVE_GAP,
    DEFAULT_TIME_LIMIT_S,
    MAX_TIME_LIMIT_S,
    Measurement,
    Question,
    Source,
)
from app.flows.solve_message import Answer
from app.schemas.aggregates import AggregateIn, AggregateOut, model_document
from app.schemas.base import MANY, ONE, Bytes, Input, Output, ProfileName, dump_json, timestamp
from app.schemas.fit_options import FitOptionsIn
from app.schemas.fits import FitOut, NoticeOut, ProfileRevisionOut, fit_document, notice_document
from app.schemas.stages import (
    ConstraintsIn,
    ConstraintsOut,
    PipelineIn,
    PipelineOut,
    constraints_document,
)
from domain.errors import FieldProblem, InvalidFields
from domain.profile import PROFILE_NAME_RULE, ProfileReference, ProfileRevision
from domain.solution import Solution, Status, Strategy

if TYPE_CHECKING:
    from solvers.usual_settings import BaselineSet

MAX_MEASUREMENTS = 16
SOURCES = ("pipeline", "aggregate", "profile", "measurements")

ProfileAt = Annotated[
    str,
    Field(
        pattern=f"^{PROFILE_NAME_RULE}(@[1-9][0-9]{{0,8}})?$",
        description="a profile's name: its current revision; name@2 pins one",
    ),
]
RelativeGap = Annotated[float, Field(ge=0.0, le=1.0)]
TimeLimitS = Annotated[float, Field(gt=0.0, le=MAX_TIME_LIMIT_S)]


class MeasurementIn(Input):
    """The text of one trace, and its kind where it cannot be told from the text."""

    content: str
    kind: Annotated[str, Field(max_length=32)] | None = None


def _how_many(value: Any) -> str:
    return MANY if isinstance(value, list) else ONE


# A named alias, because the members of a union must be hashable and FailFast is not.
MeasurementList = TypeAliasType(
    "MeasurementList",
    Annotated[list[MeasurementIn], FailFast(), Field(min_length=1, max_length=MAX_MEASUREMENTS)],
)
MeasurementsIn = Annotated[
    Annotated[MeasurementIn, Tag(ONE)] | Annotated[MeasurementList, Tag(MANY)],
    Discriminator(_how_many),
]


def exactly_one(*names: str) -> list[JsonValue]:
    """The JSON Schema `oneOf` that says which of these fields is the one that is not null."""
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


class OptimizeIn(Input):
    """A message, where its pipeline comes from, and how to cut it."""

    model_config = ConfigDict(json_schema_extra={"oneOf": exactly_one(*SOURCES)})

    message_bytes: Bytes
    pipeline: PipelineIn | None = None
    aggregate: AggregateIn | None = None
    profile: ProfileAt | None = None
    measurements: MeasurementsIn | None = None
    strategy: Strategy = Strategy.AUTO
    static_bytes: Bytes | None = None
    constraints: ConstraintsIn = ConstraintsIn()
    allow_refragmentation: bool = False
    relative_gap: RelativeGap = DEFAULT_RELATIVE_GAP
    time_limit_s: TimeLimitS = DEFAULT_TIME_LIMIT_S
    save_as: ProfileName | None = None
    fit_options: FitOptionsIn | None = None

    def to_domain(self) -> Question:
        """The question. Raises InvalidInput for sources or fields that exclude each other."""
        check_exactly_one({name: getattr(self, name) for name in SOURCES})
        return Question(
            message_bytes=self.message_bytes,
            source=self._source(),
            strategy=self.strategy,
            static_bytes=self.static_bytes,
            limits=self.constraints.to_domain(),
            allow_refragmentation=self.allow_refragmentation,
            relative_gap=self.relative_gap,
            time_limit_s=self.time_limit_s,
            save_as=self.save_as,
            fit_options=self.fit_options.to_domain() if self.fit_options else None,
        )

    def as_job(self, profile: ProfileRevision | None) -> bytes:
        """This request as a job keeps it: a profile pinned to the revision that it had."""
        pinned = self
        if profile is not None:
            name = f"{profile.name}@{profile.revision}"
            pinned = self.model_copy(update={"profile": name})
        return pinned.model_dump_json(exclude_none=True).encode()

    def _source(self) -> Source:
        if self.pipeline is not None:
            return self.pipeline.to_domain()
        if self.aggregate is not None:
            return self.aggregate.to_domain()
        if self.profile is not None:
            return ProfileReference.parse(self.profile)
        given = self.measurements if isinstance(self.measurements, list) else [self.measurements]
        return tuple(Measurement(one.content, one.kind) for one in given if one is not None)


class BestFixedOut(Output):
    """The best single size for a library that repeats one size."""

    size_bytes: int
    fragments: int
    latency_us: float


class BaselineOut(Output):
    """One usual setting; `declined` says why where the limits forbid its cut."""

    strategy: Strategy
    static_bytes: int | None
    latency_us: float | None
    fragments: int | None
    declined: str | None


class OptimizeOut(Output):
    """A schedule with a proof of how good it is. Times in µs, sizes in whole bytes.

    One of `pipeline` and `aggregate` is null. Of an aggregate no stage is known to be the
    bottleneck, and `latency_us` is the most that any pipeline with these costs can take.
    """

    id: str
    created_at: str
    strategy: Strategy
    message_bytes: int
    fragment_bytes: list[int]
    fragments: int
    latency_us: float
    unrounded_latency_us: float | None
    lower_bound_us: float
    relative_gap: float
    rounding_gap: float | None
    status: Status
    limited_by: str | None
    bottleneck_stage: int | None
    best_fixed: BestFixedOut | None
    baselines: list[BaselineOut]
    levels: list[list[int]] | None
    latency_paper_us: float | None
    constraints: ConstraintsOut
    allow_refragmentation: bool
    pipeline: PipelineOut | None
    aggregate: AggregateOut | None
    fit: FitOut | None
    profile: ProfileRevisionOut | None
    solve_ms: float
    warnings: list[NoticeOut]


def render_answer(answer: Answer) -> bytes:
    """The JSON of an answer, as it is sent and stored."""
    return dump_json(answer_document(answer))


def answer_document(answer: Answer) -> dict[str, Any]:
    """OptimizeOut."""
    problem, fitted = answer.solution.problem, answer.prepared.fitted
    notices = answer.solution.notices + (fitted.fit.notices if fitted else ())
    return {
        "id": answer.id,
        "created_at": timestamp(answer.created_at),
        **solution_document(answer.solution),
        "bottleneck_stage": answer.bottleneck_stage,
        **_baselines_document(answer.baselines),
        "constraints": constraints_document(problem.limits),
        "allow_refragmentation": problem.allow_refragmentation,
        **model_document(problem.model),
        "fit": fit_document(fitted, None) if fitted else None,
        "profile": (
            {"name": answer.profile.name, "revision": answer.profile.revision}
            if answer.profile
            else None
        ),
        "solve_ms": round(answer.solve_ms, 3),
        "warnings": [notice_document(notice) for notice in notices],
    }


def solution_document(solution: Solution) -> dict[str, Any]:
    """The part of an answer that a job shows of its best so far."""
    return {
        "strategy": solution.strategy,
        "message_bytes": solution.problem.message_bytes,
        "fragment_bytes": solution.schedule.fragment_bytes,
        "fragments": solution.schedule.fragments,
        "latency_us": solution.latency_us,
        "unrounded_latency_us": solution.unrounded_latency_us,
        "lower_bound_us": solution.lower_bound_us,
        "relative_gap": solution.relative_gap,
        "rounding_gap": solution.rounding_gap,
        "status": solution.status,
        "limited_by": solution.limited_by,
        "levels": solution.levels,
        "latency_paper_us": solution.latency_paper_us,
    }


def _baselines_document(baselines: BaselineSet) -> dict[str, Any]:
    best = baselines.best_repeat
    return {
        "best_fixed": (
            {
                "size_bytes": best.size_bytes,
                "fragments": best.fragments,
                "latency_us": best.latency_us,
            }
            if best
            else None
        ),
        "baselines": [
            {
                "strategy": entry.strategy,
                "static_bytes": entry.static_bytes,
                "latency_us": entry.latency_us,
                "fragments": entry.fragments,
                "declined": entry.declined,
            }
            for entry in baselines.entries
        ],
    }
