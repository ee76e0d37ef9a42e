"""What is known of the overlap of a fit's stages, as it is sent and taken."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from app.schemas.base import Output, whole
from domain.pipeline import MAX_STAGES
from domain.structure import MAX_PLACES, KnownOverlap, Structure, StructureKind

MAX_LISTED = 16  # windows, turns and flags of a trace's stages

NotNegative = Annotated[float, Field(ge=0.0)]
Places = Annotated[int, Field(ge=1, le=MAX_PLACES), BeforeValidator(whole)]
Counted = Annotated[int, Field(ge=0), BeforeValidator(whole)]
Named = Annotated[tuple[str, ...], Field(max_length=MAX_STAGES)]


@dataclass(frozen=True)
class TracedWindowOut(Output):
    """At most so many fragments between the start of a stage and the end of another, or itself.

    A place is free again `return_us` after that.
    """

    first: str
    last: str
    fragments: Places
    return_us: NotNegative


@dataclass(frozen=True)
class SharedProcessorsOut(Output):
    """Stages that compute on so many processors; a fraction where that is estimated."""

    stages: Named
    processors: Annotated[float, Field(ge=1.0, le=MAX_PLACES)]


@dataclass(frozen=True)
class PlaceFlagOut(Output):
    """The first `fragments` of a message take `ratio` times what later ones do; in all `more` of
    the message's time.
    """

    stage: str
    ratio: NotNegative
    fragments: Places
    more: float


@dataclass(frozen=True)
class EvidenceOut(Output):
    """What a structure was found by; shares are of 1.

    `overlap` is the time in which two stages work, over that in which any does; `late` by what
    begins come later than in a chain, over the messages' time, and `left` what is left of that;
    `replay_error` of the median message, replayed by what was found.
    """

    messages: Counted
    fragments: Counted
    overlap: float
    late: float
    left: float
    replay_error: float


@dataclass(frozen=True)
class StructureOut(Output):
    """What begins of the stages show: `kind`, in words as `sentence`, and its numbers.

    `lanes` are of each stage, `return_us` is from a fragment that has left to the next begin.
    """

    kind: StructureKind
    sentence: str
    stages: Annotated[tuple[str, ...], Field(min_length=1, max_length=MAX_STAGES)]
    evidence: EvidenceOut
    lanes: Annotated[tuple[Places, ...], Field(max_length=MAX_STAGES)]
    windows: Annotated[tuple[TracedWindowOut, ...], Field(max_length=MAX_LISTED)]
    turns: Annotated[tuple[Named, ...], Field(max_length=MAX_LISTED)]
    shared: SharedProcessorsOut | None
    return_us: NotNegative
    places: Annotated[tuple[PlaceFlagOut, ...], Field(max_length=MAX_LISTED)]
    handing_over_us: Annotated[tuple[NotNegative, ...], Field(max_length=MAX_STAGES)]
    queue_us: Annotated[tuple[NotNegative, ...], Field(max_length=MAX_STAGES)]
    has_busy_time: bool
    reason: str

    @classmethod
    def of(cls, found: Structure) -> StructureOut:
        """Return a structure as it is sent."""
        sent = asdict(found)
        shared = sent.pop("shared")
        return cls(
            **{
                **sent,
                "sentence": found.sentence,
                "evidence": EvidenceOut(**sent["evidence"]),
                "windows": tuple(TracedWindowOut(**one) for one in sent["windows"]),
                "places": tuple(PlaceFlagOut(**one) for one in sent["places"]),
            },
            shared=shared and SharedProcessorsOut(**shared),
        )


@dataclass(frozen=True)
class OverlapOut(Output):
    """What is known of the overlap of a fit's stages.

    `structure` is what begins show. `is_bare`: times are durations alone, which serial and
    pipelined programs write alike. `several_at_once`: whether a stage handles several fragments at
    once, null where nobody has said.
    """

    structure: StructureOut | None
    is_bare: bool
    several_at_once: bool | None

    @classmethod
    def of(cls, overlap: KnownOverlap) -> OverlapOut | None:
        """Return what is known as it is sent, None where the stages are a pipeline."""
        if overlap == KnownOverlap():
            return None
        found = overlap.structure
        structure = None if found is None else StructureOut.of(found)
        return cls(structure, overlap.is_bare, overlap.several_at_once)

    def as_stored(self) -> dict[str, Any]:
        """Return it as the store has it."""
        return asdict(self)
