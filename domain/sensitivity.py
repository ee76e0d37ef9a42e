"""How an answer's latency moves with the costs of the stages and with the message."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter


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
class Deciding:
    """A stage, and the share of the latency that costs lower `by` this share save there.

    `is_solved`: whether the best cuts of all stages' lower costs were solved.
    """

    stage: int
    saved: float
    by: float
    is_solved: bool


@dataclass(frozen=True, slots=True)
class PlacesChange:
    """What one lane or place fewer, and one more, than those there are do to the latency of a
    repeated size, µs with the delay; None where there cannot be as many.
    """

    places: int
    fewer_us: float | None
    more_us: float | None


@dataclass(frozen=True, slots=True)
class WordSensitivity:
    """How a latency moves with what a machine has beside its costs.

    `delay` is by each stage's delay (1), `way_back` by each window's return (1). `lanes` are those
    of stages, None where a stage has one, and `windows` the places of windows, both for the message
    in `size_bytes` repeated, which takes `repeated_us`. They are empty where no size is repeated.
    """

    delay: tuple[Slope, ...]
    way_back: tuple[Slope, ...]
    size_bytes: int | None = None
    repeated_us: float | None = None
    lanes: tuple[PlacesChange | None, ...] = ()
    windows: tuple[PlacesChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Sensitivities:
    """How a latency moves; `message` is by bytes of the message (µs/byte), the count held.

    `best_us` is that of the best real-valued cut into as many fragments, None where not solved.
    `words` are there of a machine alone.
    """

    basis: Basis
    latency_us: float
    best_us: float | None
    message: Slope
    stages: tuple[StageSensitivity, ...]
    words: WordSensitivity | None = None

    @property
    def deciding(self) -> Deciding | None:
        """The stage whose lower costs save most; None: none do.

        Of best cuts where they were solved, else of the answer's cut, with which as much is saved
        at least.
        """
        lower = [min(stage.changes, key=_by) for stage in self.stages]
        from_us, reached_us = self.latency_us, [one.same_cut_us for one in lower]
        best_us = [one.best_us for one in lower if one.best_us is not None]
        is_solved = len(best_us) == len(lower)
        if is_solved and self.best_us is not None:
            from_us, reached_us = self.best_us, best_us
        saved_us = from_us - min(reached_us)
        if saved_us <= 0.0:
            return None
        stage = reached_us.index(min(reached_us))
        return Deciding(stage, saved_us / from_us, -lower[stage].by, is_solved)


_by = attrgetter("by")
