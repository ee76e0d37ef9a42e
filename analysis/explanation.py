"""Where a message's latency is spent, and what a cheaper stage would buy.

Source    own derivation, on the critical path of the recurrence (Wang98 eq. (1)-(3)).
Cost      `path_shares`: O(length of the path). `cheaper`: O(stages).
Exact     the shares sum to the latency without the delay, up to the rounding of sums.
Traps     stages off the critical path have a share of 0 and may still matter a little: another cut
          may be better once they are cheaper. So a saving is stated twice, for the same cut, which
          the evaluator prices, and for the best cut of the cheaper pipeline, which somebody solves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from domain.errors import InvalidInput
from domain.pipeline import Pipeline, Stage
from domain.timeline import CriticalPathPart, Timeline

DEFAULT_SHARE = 0.1  # how much cheaper: a tenth


class Cost(StrEnum):
    """Which of a stage's two costs."""

    OVERHEAD = "overhead"
    PER_BYTE = "per_byte"


@dataclass(frozen=True, slots=True)
class PathShare:
    """What one stage contributes to the critical path; times in µs.

    `fragments` is the number of its fragments on the path. `share` is of the latency without the
    delay, 0 for a message that takes no time.
    """

    stage: int
    name: str
    fragments: int
    overhead_us: float
    bytes_us: float
    share: float

    @property
    def is_binding(self) -> bool:
        """Whether more than its part of one fragment's passage is on the path.

        Every stage is passed once, by the fragment that the path takes across it. One with a
        second fragment on the path holds the message up.
        """
        return self.fragments > 1


@dataclass(frozen=True, slots=True)
class Saving:
    """What one cost of one stage, made cheaper by a share of it, would take off the latency; µs.

    `same_cut_us` is what the schedule as it is would save. `best_cut_us` is what the best schedule
    of the cheaper pipeline saves, never less; None where it was not solved.
    """

    stage: int
    name: str
    cost: Cost
    same_cut_us: float
    best_cut_us: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a schedule takes as long as it does, and what would make it faster."""

    latency_us: float
    delay_us: float
    shares: tuple[PathShare, ...]
    cheaper_by: float
    savings: tuple[Saving, ...]

    @property
    def binding(self) -> tuple[PathShare, ...]:
        """The stages that hold the message up, the greatest share first."""
        found = (one for one in self.shares if one.is_binding)
        return tuple(sorted(found, key=lambda one: -one.share))


def path_shares(timeline: Timeline) -> tuple[PathShare, ...]:
    """Return what each stage contributes to the critical path, in the order of the stages."""
    parts = {part.stage: part for part in timeline.critical_parts()}
    return tuple(_share(timeline, j, parts[j]) for j in range(len(timeline.stages)))


def _share(timeline: Timeline, stage: int, part: CriticalPathPart) -> PathShare:
    here = timeline.stages[stage]
    sizes = here.fragment_bytes[part.first : part.last + 1]
    fixed = {size: _overhead_us(here.stage, size) for size in set(sizes)}
    times = {size: here.stage.time_us(size) for size in fixed}
    overhead_us = sum(map(fixed.__getitem__, sizes))
    spent_us = sum(map(times.__getitem__, sizes))
    return PathShare(
        stage,
        here.stage.name,
        len(sizes),
        overhead_us,
        max(0.0, spent_us - overhead_us),
        spent_us / timeline.exit_us if timeline.exit_us > 0.0 else 0.0,
    )


def _overhead_us(stage: Stage, size_bytes: int) -> float:
    for part in stage.ranges:
        if part.up_to_bytes is None or size_bytes <= part.up_to_bytes:
            return part.overhead_us
    raise AssertionError("the last range of a stage is open")


def cheaper(pipeline: Pipeline, stage: int, cost: Cost, *, by: float = DEFAULT_SHARE) -> Pipeline:
    """Return the pipeline with one cost of one stage less by this share, in every range of sizes.

    Raises InvalidInput for a share outside 0 to 1 and for a stage that there is not.
    """
    if not 0.0 < by <= 1.0:
        raise InvalidInput("expected 0 < cheaper_by <= 1", field="cheaper_by")
    kept = 1.0 - by
    if cost is Cost.OVERHEAD:
        return pipeline.scaled(stage, overhead=kept)
    return pipeline.scaled(stage, per_byte=kept)


def cheaper_pipelines(
    pipeline: Pipeline, *, by: float = DEFAULT_SHARE
) -> Iterator[tuple[int, Cost, Pipeline]]:
    """Yield every stage's two costs made cheaper in turn; a cost of 0 is passed over."""
    for stage, old in enumerate(pipeline.stages):
        for cost in Cost:
            name = "overhead_us" if cost is Cost.OVERHEAD else "ns_per_byte"
            if any(getattr(part, name) for part in old.ranges):
                yield stage, cost, cheaper(pipeline, stage, cost, by=by)
