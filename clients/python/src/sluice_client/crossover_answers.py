"""What the service answers about two paths of a message: where one overtakes the other."""

from __future__ import annotations

from dataclasses import dataclass

from sluice_client.fit_answers import Notice, ProfileRevision
from sluice_client.shapes import Aggregate, Pipeline


@dataclass(frozen=True, slots=True)
class CrossoverPath:
    """One of the two paths: its stages, or an aggregate of them.

    `measured_bytes` are the least and the greatest size that its costs were measured at.
    """

    name: str
    pipeline: Pipeline | None
    aggregate: Aggregate | None
    profile: ProfileRevision | None
    measured_bytes: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class FasterRun:
    """Sizes from the first to the last at which one path is faster: "a", "b" or "neither".

    `is_sure`: at one of them at least the files' times or the draws say so; None where that is not
    known.
    """

    from_bytes: int
    up_to_bytes: int
    faster: str
    is_sure: bool | None


@dataclass(frozen=True, slots=True)
class CrossoverAt:
    """The first size at which `after` is faster, what both paths take there, and the sizes between
    which it lies with 95 % of certainty, an end of which is None where no size is certain.
    """

    at_bytes: int
    before: str
    after: str
    a_us: float
    b_us: float
    basis: str
    between_bytes: tuple[int | None, int | None] | None


@dataclass(frozen=True, slots=True)
class ThresholdPrice:
    """What a threshold costs: the sizes on the slower path, and the one that loses most.

    `threshold_bytes` None is the first path alone, 0 the second; `more_by` is a share, None where
    it has no bound.
    """

    threshold_bytes: int | None
    wrong: tuple[tuple[int, int], ...]
    worst_bytes: int | None
    taken_us: float
    faster_us: float
    more_by: float | None
    basis: str
    more_by_within: tuple[float | None, float | None] | None


@dataclass(frozen=True, slots=True)
class TimedByBoth:
    """A message that both files timed: the medians, and which path is faster by them."""

    message_bytes: int
    a_us: float
    b_us: float
    faster: str


@dataclass(frozen=True, slots=True)
class PathSetting:
    """The threshold in a program's own words."""

    target: str
    file_name: str
    text: str


@dataclass(frozen=True, slots=True)
class Crossovers:
    """Where one path overtakes the other: `verdict` is "one", "several", "none" or "not_provable".

    `advised` is the threshold whose worst loss is least, None where none is provable.
    """

    verdict: str
    a: CrossoverPath
    b: CrossoverPath
    min_message_bytes: int
    max_message_bytes: int
    runs: tuple[FasterRun, ...]
    crossovers: tuple[CrossoverAt, ...]
    advised: ThresholdPrice | None
    current: ThresholdPrice | None
    timed_by_both: tuple[TimedByBoth, ...]
    setting: PathSetting | None
    warnings: tuple[Notice, ...]
