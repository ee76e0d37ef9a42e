"""Regret: how much more a setting costs than the best that is known, and than is possible."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from contract.limits import MAX_MESSAGE_BYTES
from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting
from domain.workload import Workload


@dataclass(frozen=True, slots=True)
class BestKnown:
    """What a message can be done in: µs, delay included.

    `latency_us` is the evaluator's on a schedule in whole bytes, `lower_bound_us` is proven over
    every schedule that the limits and the cap on fragments admit. `repeat_bytes` is the best
    repeated size, `repeat_us` its latency; both are None where the limits admit none, or where none
    was looked for. `is_partial`: time ended the search, so that more of it may find less.
    """

    message_bytes: int
    latency_us: float
    lower_bound_us: float
    repeat_bytes: int | None
    repeat_us: float | None
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class Regret:
    """One message under a setting, beside the best known for it. Figures are shares: 0.05 is 5%."""

    best: BestKnown
    size_bytes: int
    latency_us: float

    @property
    def message_bytes(self) -> int:
        """The message's size."""
        return self.best.message_bytes

    @property
    def over_best(self) -> float:
        """What the setting costs over the best known schedule: (T - T*) / T*, at least that much.

        0 where both are 0; below 0 only where the setting found a better one than was known.
        """
        return share_over(self.latency_us, self.best.latency_us)

    @property
    def over_bound(self) -> float:
        """What it costs at most over any schedule that is admitted: (T - bound) / bound."""
        return share_over(self.latency_us, self.best.lower_bound_us)

    @property
    def at_most(self) -> float:
        """What the regret is at most: `over_bound`, and never less than `over_best`."""
        return max(self.over_best, self.over_bound)

    @property
    def improved_best(self) -> BestKnown:
        """The best known, now that the setting's own cut is known too.

        The setting may have more fragments than the cap on the schedules that were searched.
        """
        latency_us = min(self.best.latency_us, self.latency_us)
        bound_us = min(self.best.lower_bound_us, latency_us)
        return replace(self.best, latency_us=latency_us, lower_bound_us=bound_us)


class Objective(StrEnum):
    """What a setting is chosen for, and held against a limit."""

    TIME = "time"  # least total time of the workload: what is sent most and takes long counts most
    MEAN = "mean"  # least mean regret over the workload
    WORST = "worst"  # least worst regret over the workload


def default_objective(workload: Workload | None) -> Objective:
    """Return what counts where nobody says: the total time of a workload that is given, and over a
    range the mean regret.

    Nobody states how often each message of a range is sent. Counted alike in every octave, the
    largest octave would be half of the total time.
    """
    return Objective.MEAN if workload is None else Objective.TIME


@dataclass(frozen=True, slots=True)
class SizeRule:
    """The sizes that a library takes: multiples of `multiple_of`, inclusive limits; or 2^i only.

    Raises InvalidInput. Whether any size keeps the rule is checked where one is chosen.
    """

    min_bytes: int = 1
    max_bytes: int = MAX_MESSAGE_BYTES
    multiple_of: int = 1
    is_power_of_two: bool = False

    def __post_init__(self) -> None:
        if self.multiple_of < 1:
            raise InvalidInput("expected multiple_of >= 1", field="sizes")

    def admits(self, size_bytes: int) -> bool:
        """Return whether a size keeps the rule."""
        is_between = self.min_bytes <= size_bytes <= self.max_bytes
        is_power = not size_bytes & (size_bytes - 1)
        fits = size_bytes % self.multiple_of == 0
        return is_between and fits and (is_power or not self.is_power_of_two)


@dataclass(frozen=True, slots=True)
class PricedSetting:
    """A setting and what it costs over the best known of a workload, as shares.

    `time_regret` is that of the total time; `mean_regret` and `worst_regret` are the mean and the
    worst `Regret.over_best`.
    """

    setting: FragmentSetting
    time_regret: float
    mean_regret: float
    worst_regret: float

    def regret_of(self, objective: Objective) -> float:
        """Return the one of the three that settings are chosen by."""
        if objective is Objective.TIME:
            return self.time_regret
        return self.worst_regret if objective is Objective.WORST else self.mean_regret


@dataclass(frozen=True, slots=True)
class ChosenSetting:
    """A setting and what it costs: over the workload, and at each power of two in its range.

    `time_regret` and `mean_regret` are over the workload, `worst_regret` over the workload too or,
    where they were looked at, over more messages of its range: as `PricedSetting` has them. Over
    any schedules that the limits and the cap on fragments admit they are at most `time_at_most`,
    `mean_at_most` and `worst_at_most`.
    `is_partial`: time ended searches that leave much open, so that more of it may choose another.
    `is_given`: the setting was given, and only priced. `wanted` is what would be chosen if the
    library took every size that the limits admit; `default` what the library does where nothing is
    set; both over the same workload, None where not priced.
    """

    setting: FragmentSetting
    objective: Objective
    workload: Workload
    time_regret: float
    time_at_most: float
    mean_regret: float
    mean_at_most: float
    worst_regret: float
    worst_at_most: float
    at_powers: tuple[Regret, ...]
    is_partial: bool = False
    is_given: bool = False
    wanted: PricedSetting | None = None
    default: PricedSetting | None = None

    @property
    def written(self) -> PricedSetting:
        """The setting itself, priced as `wanted` and `default` are."""
        figures = (self.time_regret, self.mean_regret, self.worst_regret)
        return PricedSetting(self.setting, *figures)


def share_over(latency_us: float, min_us: float) -> float:
    """Return (T - T*) / T*; 0 where both are 0, infinite where T* alone is."""
    if min_us > 0.0:
        return (latency_us - min_us) / min_us
    return 0.0 if latency_us <= min_us else float("inf")
