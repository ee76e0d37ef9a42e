"""How an answer's latency moves with the costs of the stages and with the message."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Basis(StrEnum):
    """Which latency the derivatives are of.

    optimum  the least of all real-valued cuts into as many fragments as the answer has
    cut      that of the answer's own cut, which is kept as it is
    """

    OPTIMUM = "optimum"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class Slope:
    """The derivatives of a latency on both sides of a value; equal but at a kink.

    `falling` is that from below, `rising` that from above. None: the value cannot go that way, or
    the derivative is not known.
    """

    falling: float | None = None
    rising: float | None = None


@dataclass(frozen=True, slots=True)
class CostChange:
    """What one stage's two costs, both times 1 + `by`, do to the latency, µs with the delay.

    `same_cut_us` is what the answer's cut then takes, `best_us` the best real-valued cut into as
    many fragments, of which `lower_bound_us` is proven; None where they were not solved.
    """

    by: float
    same_cut_us: float
    best_us: float | None
    lower_bound_us: float | None


@dataclass(frozen=True, slots=True)
class StageSensitivity:
    """One stage: by µs of overhead (1), by µs/byte of its cost (bytes), and 10 % less and more."""

    overhead: Slope
    per_byte: Slope
    changes: tuple[CostChange, ...]


@dataclass(frozen=True, slots=True)
class Sensitivities:
    """How a latency moves; `message` is by bytes of the message (µs/byte), the count held.

    `best_us` is that of the best real-valued cut into as many fragments, None where not solved.
    """

    basis: Basis
    latency_us: float
    best_us: float | None
    message: Slope
    stages: tuple[StageSensitivity, ...]

    @property
    def deciding(self) -> tuple[int, float] | None:
        """The stage whose lower costs save most, and the share of the latency; None: none do.

        Of best cuts where they were solved, else of the answer's cut, with which as much is saved
        at least.
        """
        lower = self._lower
        from_us, reached_us = self.latency_us, [one.same_cut_us for one in lower]
        if _are_solved(lower) and self.best_us is not None:
            from_us = self.best_us
            reached_us = [one.best_us or 0.0 for one in lower]
        stage = min(range(len(reached_us)), key=reached_us.__getitem__)
        saved_us = from_us - reached_us[stage]
        return (stage, saved_us / from_us) if saved_us > 0.0 else None

    @property
    def is_solved(self) -> bool:
        """Whether the best cuts of all lower costs were solved."""
        return _are_solved(self._lower)

    @property
    def _lower(self) -> list[CostChange]:
        return [min(stage.changes, key=lambda one: one.by) for stage in self.stages]


def _are_solved(changes: list[CostChange]) -> bool:
    return all(one.best_us is not None for one in changes)
