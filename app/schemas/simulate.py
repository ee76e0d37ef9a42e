"""POST /simulate: a pipeline and a cut in, every interval out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, FailFast, Field
from typing_extensions import TypeAliasType

from app.flows.simulate import MAX_CELLS, Cut, Interval, Simulation
from app.schemas.base import (
    Input,
    Output,
    PlainBytes,
    ProfileRevisionOut,
    all_whole,
)
from app.schemas.optimize import ProfileAt, check_exactly_one, exactly_one
from app.schemas.queries import Query
from app.schemas.stages import PipelineIn, PipelineOut
from domain.pipeline import MAX_STAGES, Pipeline
from domain.profile import ProfileReference

# Named aliases, because the members of a union must be hashable and FailFast is not.
Sizes = TypeAliasType(
    "Sizes",
    Annotated[
        list[PlainBytes],
        FailFast(),
        Field(min_length=1, max_length=MAX_CELLS),
        BeforeValidator(all_whole),
    ],
)
Levels = TypeAliasType(
    "Levels", Annotated[list[Sizes], FailFast(), Field(min_length=1, max_length=MAX_STAGES)]
)


class SimulationFormat(StrEnum):
    """Every interval as data, or all of them as a picture."""

    JSON = "json"
    SVG = "svg"


class SimulateQuery(Query):
    """What to answer with, where `Accept` does not say it."""

    format: SimulationFormat | None = None


class SimulateIn(Input):
    """A pipeline or a profile, and one cut for all stages or one cut a stage."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                {"oneOf": exactly_one("pipeline", "profile")},
                {"oneOf": exactly_one("fragment_bytes", "levels")},
            ]
        }
    )

    pipeline: PipelineIn | None = None
    profile: ProfileAt | None = None
    fragment_bytes: Sizes | None = None
    levels: Levels | None = None

    def source(self) -> Pipeline | ProfileReference:
        """The pipeline, or the profile that holds it. Raises InvalidInput for both or none."""
        check_exactly_one({"pipeline": self.pipeline, "profile": self.profile})
        if self.pipeline is not None:
            return self.pipeline.to_domain()
        return ProfileReference.parse(self.profile or "")

    def cut(self) -> Cut:
        """The shared cut, or the cuts by stage. Raises InvalidInput for both or none."""
        check_exactly_one({"fragment_bytes": self.fragment_bytes, "levels": self.levels})
        levels = self.levels or [self.fragment_bytes or []]
        return Cut(tuple(tuple(sizes) for sizes in levels), is_nested=self.levels is not None)


@dataclass(frozen=True)
class StepOut(Output):
    """One step of the critical path."""

    fragment: int
    stage: int


@dataclass(frozen=True)
class SimulateOut(Output):
    """A run of a cut. `critical_path` is null where stages cut differently."""

    message_bytes: int
    latency_us: float
    intervals: tuple[Interval, ...]
    critical_path: tuple[StepOut, ...] | None
    bottleneck_stage: int
    busy_us: tuple[float, ...]
    pipeline: PipelineOut
    profile: ProfileRevisionOut | None

    @classmethod
    def of(cls, simulation: Simulation) -> SimulateOut:
        """Return a run as it is sent."""
        path = simulation.critical_path
        return cls(
            message_bytes=simulation.message_bytes,
            latency_us=simulation.latency_us,
            intervals=simulation.intervals,
            critical_path=None if path is None else tuple(StepOut(*step) for step in path),
            bottleneck_stage=simulation.bottleneck_stage,
            busy_us=simulation.busy_us,
            pipeline=PipelineOut.of(simulation.pipeline),
            profile=ProfileRevisionOut.of(simulation.profile),
        )
