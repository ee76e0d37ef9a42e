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

    `same_cut_us` is what the answer's cut then takes: no best cut takes longer. `lower_bound_us`
    is proven of all cuts into as many fragments; None where there is none.
    """

    by: float
    same_cut_us: float
    lower_bound_us: float | None


@dataclass(frozen=True, slots=True)
class StageSensitivity:
    """One stage: by µs of overhead (1), by µs/byte of its cost (bytes), and 10 % less and more."""

    overhead: Slope
    per_byte: Slope
    changes: tuple[CostChange, ...]


@dataclass(frozen=True, slots=True)
class Sensitivities:
    """How a latency moves; `message` is by bytes of the message (µs/byte), the count held."""

    basis: Basis
    latency_us: float
    message: Slope
    stages: tuple[StageSensitivity, ...]

    @property
    def deciding(self) -> tuple[int, float] | None:
        """The stage whose lower costs save most, and the share of the latency; None: none do."""
        least_us = [min(one.same_cut_us for one in stage.changes) for stage in self.stages]
        stage = min(range(len(least_us)), key=least_us.__getitem__)
        saved_us = self.latency_us - least_us[stage]
        return (stage, saved_us / self.latency_us) if saved_us > 0.0 else None
