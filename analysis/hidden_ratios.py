"""Hiding by ratios alone: the gain, its window, and numbers of processes, without any pipeline.

Source    Strumpen94 eq. (4)-(9); docs/theory.md sec. 19.
Notation  gamma: calculation over communication, c / T, the inverse of r in `domain.hiding`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from contract.limits import MAX_EXPONENT, MAX_PROCESSES
from domain.errors import InvalidInput
from domain.hiding import (
    BestProcesses,
    CountRange,
    Granularity,
    Overlap,
    ProcessPoint,
    Regime,
    Scaling,
    SpeedupReference,
    check_number,
)
from domain.solution import Notice

MAX_CURVE_POINTS = 400
HIDING_LOSES = Notice("hiding_loses", "hiding takes longer than sending afterwards")


@dataclass(frozen=True, slots=True)
class ProcessQuestion:
    """Which numbers of processes are asked about, and how the number of messages grows with them.

    The calculation that is asked about is that of each of `at` processes. Raises InvalidInput.
    """

    counts: CountRange
    at: int = 1
    exponent: float = 0.0
    reference: SpeedupReference = SpeedupReference.CALCULATION

    def __post_init__(self) -> None:
        check_number("exponent", self.exponent, MAX_EXPONENT)
        if not 1 <= self.at <= MAX_PROCESSES:
            raise InvalidInput(f"expected 1 <= at <= {MAX_PROCESSES}, got {self.at}", field="at")


@dataclass(frozen=True, slots=True)
class GammaWindow:
    """Ratios of calculation to communication, c / T, with at least the gain asked for."""

    low: float
    high: float | None


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """The paper's own terms, without a pipeline: what is hidden behind what by ratios alone."""

    granularity: Granularity
    overlap: Overlap
    min_gain: float | None = None
    processes: ProcessQuestion | None = None


@dataclass(frozen=True, slots=True)
class ModelHidden:
    """Its answer: the gain, the ratio `gamma` of calculation to communication, c / T, and counts
    of processes.
    """

    question: ModelQuestion
    gain: float
    regime: Regime
    gamma: float
    window: GammaWindow | None
    best_processes: BestProcesses | None
    curve: tuple[ProcessPoint, ...]

    @property
    def warnings(self) -> tuple[Notice, ...]:
        """Whether hiding loses."""
        return (HIDING_LOSES,) if self.regime is Regime.LOSS else ()


def hide_model(question: ModelQuestion) -> ModelHidden:
    """Return gain, window and counts of processes of the paper's terms."""
    overlap, sent = question.overlap, question.granularity.ratio
    min_gain = question.min_gain
    curve, best = of_processes(question.processes, sent, overlap, overhead_grows=False)
    return ModelHidden(
        question=question,
        gain=overlap.gain(sent),
        regime=overlap.regime(sent),
        gamma=question.granularity.software / question.granularity.hardware,
        window=None if min_gain is None else gamma_window(overlap, min_gain),
        best_processes=best,
        curve=curve,
    )


def gamma_window(overlap: Overlap, min_gain: float) -> GammaWindow | None:
    """Return the ratios c / T whose gain is this at least; None where there are none."""
    window = overlap.window(min_gain)
    if window is None:
        return None
    return GammaWindow(1.0 / window.high, 1.0 / window.low if window.low > 0.0 else None)


def of_processes(
    asked: ProcessQuestion | None, sent: float, overlap: Overlap, *, overhead_grows: bool
) -> tuple[tuple[ProcessPoint, ...], BestProcesses | None]:
    """The model's curve and optima, where the communication of `at` processes is `sent` times their
    calculation and grows by the number of messages alone.
    """
    if asked is None:
        return (), None
    at_one = sent / asked.at ** (1.0 + asked.exponent)
    if not 0.0 < at_one < inf:  # nothing is sent, or it is not told apart from that
        return (), None
    alone = overlap
    if overhead_grows:
        alone = Overlap(overlap.hideable_fraction, overlap.overhead / asked.at)
    scaling = Scaling(at_one, asked.exponent, alone, overhead_grows=overhead_grows)
    return (
        scaling.curve(asked.counts, MAX_CURVE_POINTS, asked.reference),
        scaling.best(asked.counts),
    )
