"""Communication hidden behind calculation: run times, gains, and the best number of processes.

Source    V. Strumpen, Communication Latency Hiding, ETH report 216, 1994, eq. (1)-(9); the optima
          are derived in docs/theory.md sec. 19.
Notation  c: calculation of one process and iteration, µs; T: its communication, µs; f: the share of
          c during which messages may be under way; o = Omega c: what hiding adds, µs; r = T / c.
Traps     the run time without hiding never carries Omega, so f = 0 with hiding is another, dearer
          algorithm. r may be infinite (c = 0): the gain is then 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, exp, floor, inf, isfinite, isnan, log

from contract.limits import MAX_CALCULATION_US, MAX_EXPONENT, MAX_OVERHEAD, MAX_PROCESSES
from domain.errors import InvalidInput

_MAX_LOG = 709.0  # exp of more is not finite
_BISECTIONS = 200  # halves an interval of 1600 down to neighbouring floats


def check_number(field: str, value: float, maximum: float) -> None:
    """Raise InvalidInput, naming the field, unless the value is from 0 to the greatest."""
    if isnan(value) or not 0.0 <= value <= maximum:
        raise InvalidInput(f"expected 0 <= {field} <= {maximum:g}, got {value!r}", field=field)


@dataclass(frozen=True, slots=True)
class HiddenBehind:
    """The calculation that messages of B bytes are hidden behind: c = fixed + per byte B, µs.

    f of it may go on while a message is under way, with the time `overhead_us` that hiding adds;
    the rest is over before. `processors` has, for each processor that calculates and communicates,
    the indices of its stages. Raises InvalidInput.
    """

    calculation_us: float
    calculation_us_per_byte: float = 0.0
    hideable_fraction: float = 1.0
    overhead_us: float = 0.0
    processors: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        check_number("calculation", self.calculation_us, MAX_CALCULATION_US)
        check_number("calculation_per_byte", self.calculation_us_per_byte, MAX_CALCULATION_US)
        check_number("hideable_fraction", self.hideable_fraction, 1.0)
        check_number("hiding_overhead", self.overhead_us, MAX_CALCULATION_US)

    @property
    def meanwhile_us(self) -> tuple[float, float]:
        """What is left to calculate while a message is under way: fixed, and for each byte."""
        share = self.hideable_fraction
        return self.overhead_us + share * self.calculation_us, share * self.calculation_us_per_byte

    def before_us(self, message_bytes: int) -> float:
        """Return what is over before a message begins to leave."""
        whole = self.calculation_us + self.calculation_us_per_byte * message_bytes
        return (1.0 - self.hideable_fraction) * whole


@dataclass(frozen=True, slots=True)
class Activity:
    """When a process of an exchange did what, in µs from the iteration's beginning.

    `row` is calculation, send or receive; `variant` names the order of the exchange.
    """

    variant: str
    process: int
    row: str
    begin_us: float
    end_us: float


class Regime(StrEnum):
    """What decides the run time with hiding.

    fully_hidden          the calculation: all communication is done behind it
    communication_bound   the communication, of which the calculation hides a part
    loss                  hiding takes longer than calculating and then communicating
    """

    FULLY_HIDDEN = "fully_hidden"
    COMMUNICATION_BOUND = "communication_bound"
    LOSS = "loss"


class SpeedupReference(StrEnum):
    """What the run time on p processes is compared with.

    calculation   the calculation of the whole alone: p / (1 + r) without hiding
    same          the run time of one process without hiding, for both
    own           each by its own run time of one process
    """

    CALCULATION = "calculation"
    SAME = "same"
    OWN = "own"


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers from `low` to `high`, both included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much of the calculation can hide communication, and what hiding costs.

    `hideable_fraction` is f, 0 to 1; `overhead` is Omega, the time that hiding adds relative to the
    calculation. Raises InvalidInput.
    """

    hideable_fraction: float = 1.0
    overhead: float = 0.0

    def __post_init__(self) -> None:
        check_number("hideable_fraction", self.hideable_fraction, 1.0)
        check_number("overhead", self.overhead, MAX_OVERHEAD)

    @property
    def rest(self) -> float:
        """The share of the calculation that hides nothing, 1 - f."""
        return 1.0 - self.hideable_fraction

    @property
    def full_at(self) -> float:
        """The greatest r = T / c that is hidden wholly, f + Omega; there the gain peaks."""
        return self.hideable_fraction + self.overhead

    @property
    def peak_gain(self) -> float:
        """The greatest gain over all r, 1 + f / (1 + Omega)."""
        return 1.0 + self.hideable_fraction / (1.0 + self.overhead)

    def relative_us(self, ratio: float) -> float:
        """Return the run time with hiding relative to the calculation: (1-f) + max(f+Omega, r)."""
        return self.rest + max(self.full_at, ratio)

    def gain(self, ratio: float) -> float:
        """Return the run time without hiding over that with it, at r = T / c (eq. 4).

        Below 1 exactly where r < Omega. An infinite r (no calculation) has the gain 1.
        """
        if ratio == inf:
            return 1.0
        if ratio >= self.full_at:  # as 1 + f / (...): 1 + r would lose what differs at large r
            return 1.0 + self.hideable_fraction / (self.rest + ratio)
        return (1.0 + ratio) / (self.rest + self.full_at)

    def regime(self, ratio: float) -> Regime:
        """Return what decides the run time at r = T / c."""
        if ratio < self.overhead:
            return Regime.LOSS
        return Regime.FULLY_HIDDEN if ratio <= self.full_at else Regime.COMMUNICATION_BOUND

    def window(self, min_gain: float) -> Interval | None:
        """Return the r = T / c whose gain is this at least; None where there are none or all.

        Defined for 1 < g <= 1 + f / (1 + Omega); any other g has no window.
        """
        if not 1.0 < min_gain <= self.peak_gain:
            return None
        low = min_gain * (1.0 + self.overhead) - 1.0
        high = (1.0 - min_gain * self.rest) / (min_gain - 1.0)
        # At the peak both ends are r = f + Omega, which rounding may put in the wrong order.
        return Interval(min(low, self.full_at), max(high, self.full_at))


@dataclass(frozen=True, slots=True)
class Granularity:
    """The paper's own terms: `software` γ_s (instructions per byte), `hardware` γ_h (instructions
    that take as long as a byte does to be sent). Raises InvalidInput unless both are above 0.
    """

    software: float
    hardware: float

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not (isfinite(value) and value > 0.0):
                raise InvalidInput(f"expected {name} > 0, got {value!r}", field=name)

    @property
    def ratio(self) -> float:
        """r = T / c of one message without start-up: γ_h / γ_s."""
        return self.hardware / self.software


@dataclass(frozen=True, slots=True)
class CountRange:
    """The numbers of processes that are asked about, both included. Raises InvalidInput."""

    first: int = 1
    last: int = MAX_PROCESSES

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not 1 <= value <= MAX_PROCESSES:
                raise InvalidInput(
                    f"expected 1 <= {name} <= {MAX_PROCESSES}, got {value}", field=name
                )
        if self.first > self.last:
            raise InvalidInput("expected the first count not above the last", field="first")


@dataclass(frozen=True, slots=True)
class ProcessPoint:
    """One number of processes: speed-ups without and with hiding, and the gain."""

    processes: int
    speedup: float
    hidden_speedup: float
    gain: float


@dataclass(frozen=True, slots=True)
class BestProcesses:
    """The numbers of processes with the greatest speed-up without and with hiding, and gain."""

    without: int
    hidden: int
    gain: int


@dataclass(frozen=True, slots=True)
class Scaling:
    """How the run time changes when p processes share a calculation.

    r(p) = `ratio` p^(1 + `exponent`): the calculation of each falls with p, and the number of its
    messages grows as p^s (0: constant, 1/2: a mesh, 1: all to all). Omega(p) is the overlap's
    `overhead`, times p where `overhead_grows` (a cost per message and not per calculation).
    Raises InvalidInput.
    """

    ratio: float
    exponent: float = 0.0
    overlap: Overlap = Overlap()
    overhead_grows: bool = False

    def __post_init__(self) -> None:
        if not (isfinite(self.ratio) and self.ratio > 0.0):
            raise InvalidInput(
                "expected the ratio of communication to calculation above 0 and finite",
                field="ratio",
            )
        check_number("exponent", self.exponent, MAX_EXPONENT)

    def ratio_at(self, processes: float) -> float:
        """Return r(p)."""
        power: float = float(processes) ** (1.0 + self.exponent)
        return self.ratio * power

    def overlap_at(self, processes: float) -> Overlap:
        """Return the overlap with Omega(p)."""
        if not self.overhead_grows:
            return self.overlap
        grown = min(MAX_OVERHEAD, self.overlap.overhead * processes)
        return Overlap(self.overlap.hideable_fraction, grown)

    def gain(self, processes: float) -> float:
        """Return the gain on p processes."""
        return self.overlap_at(processes).gain(self.ratio_at(processes))

    def speedup(self, processes: float) -> float:
        """Return p / (1 + r(p)), without hiding, relative to the calculation alone."""
        return 1.0 / (1.0 / processes + self._sent_per_process(processes))

    def hidden_speedup(self, processes: float) -> float:
        """Return p / ((1-f) + max(f + Omega, r)), relative to the calculation alone."""
        overlap = self.overlap_at(processes)
        # Each term is divided by p beforehand: r / p is then constant where the exponent is 0.
        behind = max(overlap.full_at / processes, self._sent_per_process(processes))
        return 1.0 / (overlap.rest / processes + behind)

    def point(
        self, processes: int, reference: SpeedupReference = SpeedupReference.CALCULATION
    ) -> ProcessPoint:
        """Return what p processes give, relative to this reference."""
        scale, hidden_scale = self._scales(reference)
        return ProcessPoint(
            processes,
            self.speedup(processes) * scale,
            self.hidden_speedup(processes) * hidden_scale,
            self.gain(processes),
        )

    def curve(
        self,
        counts: CountRange,
        points: int,
        reference: SpeedupReference = SpeedupReference.CALCULATION,
    ) -> tuple[ProcessPoint, ...]:
        """Return at most so many points, evenly spaced in log p, with both ends and all optima."""
        best = self.best(counts)
        kept = {counts.first, counts.last, best.without, best.hidden, best.gain}
        low, high = log(counts.first), log(counts.last)
        spaced = max(2, points - len(kept))
        places = (round(exp(low + (high - low) * i / (spaced - 1))) for i in range(spaced))
        kept.update(min(counts.last, max(counts.first, place)) for place in places)
        return tuple(self.point(count, reference) for count in sorted(kept))

    def best(self, counts: CountRange) -> BestProcesses:
        """Return the best whole numbers of processes within the range; the smallest of equals."""
        corner = self.corner()
        return BestProcesses(
            without=_best_of(self.speedup, counts, self._best_without()),
            hidden=_best_of(self.hidden_speedup, counts, self._best_hidden()),
            gain=_best_of(self.gain, counts, corner),
        )

    def _best_without(self) -> float:
        """r = 1 / s; infinite where the number of messages is constant."""
        return self._count_at(-_log(self.exponent))

    def _best_hidden(self) -> float:
        """r = (1-f) / s where that is beyond the corner, else the corner r = f + Omega."""
        corner, overlap = self.corner(), self.overlap
        if self.exponent == 0.0:
            return corner if overlap.rest == 0.0 else inf
        stationary = self._count_at(_log(overlap.rest) - log(self.exponent))
        return max(stationary, corner)

    def corner(self) -> float:
        """Return the real p at which r = f + Omega; infinite where r never reaches it."""
        overlap = self.overlap
        if not self.overhead_grows:
            return self._count_at(_log(overlap.full_at))
        if self._is_below_corner(_MAX_LOG):
            return inf
        low, high = -_MAX_LOG, _MAX_LOG
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self._is_below_corner(middle) else (low, middle)
        return exp(high)

    def _is_below_corner(self, log_count: float) -> bool:
        """r / p < f / p + Omega'; the left side less the right one rises with p."""
        sent = _exp(log(self.ratio) + self.exponent * log_count)
        return sent < self.overlap.hideable_fraction * _exp(-log_count) + self.overlap.overhead

    def _count_at(self, log_ratio: float) -> float:
        """The p at which log r(p) is this, by logarithms, since powers overflow."""
        return _exp((log_ratio - log(self.ratio)) / (1.0 + self.exponent))

    def _sent_per_process(self, processes: float) -> float:
        """r(p) / p."""
        power: float = float(processes) ** self.exponent
        return self.ratio * power

    def _scales(self, reference: SpeedupReference) -> tuple[float, float]:
        alone = 1.0 + self.ratio
        if reference is SpeedupReference.CALCULATION:
            return 1.0, 1.0
        if reference is SpeedupReference.SAME:
            return alone, alone
        return alone, self.overlap_at(1).relative_us(self.ratio)


def gains(
    granularities: Sequence[float], *, hardware: float, overlap: Overlap
) -> tuple[float, ...]:
    """Return the gain at each software granularity γ_s, given γ_h (Strumpen94, Figs 3-8)."""
    return tuple(overlap.gain(Granularity(one, hardware).ratio) for one in granularities)


def conjugate_gradients(parallelism: float, nonzeros: float) -> Scaling:
    """Return the scaling of parallel conjugate gradients (Strumpen94 sec. 4.3, Fig 24).

    `parallelism` is λ = (9 + 4 n_z) t_fl N / (6 (t_s + 3 t_w)), `nonzeros` n_z. A message of the
    exchange costs 4 times what one of the 6 does, so Omega(p) = 4 p / λ, r(p) = p^(3/2) / λ and
    f = 2 n_z / (9 + 4 n_z). Raises InvalidInput.
    """
    check_number("nonzeros", nonzeros, 1e12)
    if not (isfinite(parallelism) and parallelism > 0.0):
        raise InvalidInput("expected parallelism > 0", field="parallelism")
    fraction = 2.0 * nonzeros / (9.0 + 4.0 * nonzeros)
    overlap = Overlap(fraction, 4.0 / parallelism)
    return Scaling(1.0 / parallelism, 0.5, overlap, overhead_grows=True)


def _best_of(value: Callable[[int], float], counts: CountRange, optimum: float) -> int:
    """The best whole count beside a real optimum, or at an end.

    Speed-ups are p over a convex function and so rise and then fall; the gain is quasi-convex up to
    the corner and falls beyond it.
    """
    inside = min(float(counts.last), max(float(counts.first), optimum))
    tried = sorted({counts.first, floor(inside), ceil(inside), counts.last})
    return max(tried, key=lambda count: (value(count), -count))


def _log(value: float) -> float:
    return log(value) if value > 0.0 else -inf


def _exp(value: float) -> float:
    return inf if value > _MAX_LOG else exp(value)
