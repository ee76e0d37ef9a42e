"""Verifications: real transfers beside what the model predicts of them, and what follows.

A model that transfers, or begins of a later trace, have contradicted sets no size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeAlias

from domain.solution import Notice
from domain.structure import Structure
from domain.units import format_bytes

DOES_NOT_HOLD = "model_does_not_hold"  # the code of the notice that comes before an answer
CONTRADICTED = "model_contradicted"  # the same, of a model that a trace has contradicted
_MAX_MISFIT = 1.0 - 1e-9
TOLERANCE = 0.05  # of the latency: how near a model has to be, to hold


class ModelVerdict(StrEnum):
    """What the measured latencies decide about a model, never more.

    holds           every size's interval is within TOLERANCE of the prediction
    holds_offset    it is once one constant is added to every prediction, at most a quarter of it
    does_not_hold   no such constant brings every size's interval within reach of TOLERANCE
    not_decided     the intervals are too wide for any of the three
    """

    HOLDS = "holds"
    HOLDS_OFFSET = "holds_offset"
    DOES_NOT_HOLD = "does_not_hold"
    NOT_DECIDED = "not_decided"


@dataclass(frozen=True, slots=True)
class VerifiedSize:
    """One fragment size: the latency predicted and measured of the message cut by it, in µs.

    `measured_us` is the median of the runs, `low_us` and `high_us` its 95 % interval.
    """

    fragment_bytes: int
    fragments: int
    predicted_us: float
    measured_us: float
    low_us: float
    high_us: float
    runs: int

    @property
    def ratio(self) -> float:
        """Measured over predicted."""
        return self.measured_us / self.predicted_us


@dataclass(frozen=True, slots=True)
class Verification:
    """A verdict and what it rests on: the stages that ran, and every size, the smallest first.

    `offset_us` is the constant of HOLDS_OFFSET, else None. `reasons` are those that the measured
    times speak for, the likeliest first; none where the model holds. `verified_at` is when it was
    stored, None before: of what was found it says nothing, and two that differ in it are equal.
    """

    verdict: ModelVerdict
    message_bytes: int
    stages: tuple[str, ...]
    sizes: tuple[VerifiedSize, ...]
    offset_us: float | None = None
    reasons: tuple[Notice, ...] = ()
    verified_at: datetime | None = field(default=None, compare=False)

    def notice(self) -> Notice:
        """Return the verdict in one sentence, with the likeliest reason where there is one."""
        sizes = tuple(size.fragment_bytes for size in self.sizes)
        where = (
            f"transfers of {format_bytes(self.message_bytes)} in fragments of "
            f"{format_bytes(min(sizes))} to {format_bytes(max(sizes))}"
        )
        why = f"; likely {self.reasons[0].detail}" if self.reasons else ""
        at = self.verified_at
        on = "" if at is None else f" on {at.astimezone(UTC):%Y-%m-%d}"
        if self.verdict is ModelVerdict.HOLDS:
            return Notice(
                "model_holds", f"the model was verified{on}: {where} took what it says, within 5 %"
            )
        if self.verdict is ModelVerdict.HOLDS_OFFSET:
            return Notice(
                "model_holds_with_offset",
                f"the model was verified{on}: {where} took what it says and {self.offset_us:.3g} "
                f"µs more, within 5 %{why}",
                values=(("offset_us", self.offset_us or 0.0),),
            )
        if self.verdict is ModelVerdict.NOT_DECIDED:
            return Notice(
                "model_not_decided",
                f"whether the model holds was not decided{on} by {where}{why}",
            )
        worst = max(self.sizes, key=lambda size: abs(size.ratio - 1.0))
        return Notice(
            "model_does_not_hold",
            f"this model does not hold here and failed its verification{on}: of {where}, those of "
            f"{format_bytes(worst.fragment_bytes)} took {_times(worst.ratio)} times what it "
            f"says{why}; it sets no size, and of these "
            f"{format_bytes(self.best_measured.fragment_bytes)} took the least",
            values=(("ratio", worst.ratio), ("fragment_bytes", float(worst.fragment_bytes))),
        )

    @property
    def has_failed(self) -> bool:
        """Whether transfers have contradicted the model, so that it sets no size."""
        return self.verdict is ModelVerdict.DOES_NOT_HOLD

    @property
    def misfit(self) -> float:
        """Return the gain of one cut over another, in the model, that transfers left nothing of.

        With r measured over predicted, a gain of q becomes 1 - r (1 - q) / r_other, which is above
        0 exactly where q is above 1 - r_other / r. Returned is the most that two sizes' intervals
        show for certain; 0 where they leave room for a common factor.
        """
        low = min(size.high_us / size.predicted_us for size in self.sizes)
        high = max(size.low_us / size.predicted_us for size in self.sizes)
        return min(max(0.0, 1.0 - low / high), _MAX_MISFIT)

    @property
    def best_measured(self) -> VerifiedSize:
        """The size with the least measured latency."""
        return min(self.sizes, key=lambda size: size.measured_us)

    def of_size(self, fragment_bytes: int | None) -> VerifiedSize | None:
        """Return what was measured of a size, None where it was not transferred."""
        return next((one for one in self.sizes if one.fragment_bytes == fragment_bytes), None)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A profile's revision whose stages are taken to overlap, and the later one of a trace whose
    begins show that they do not.

    It stands while the former one is not the profile's current one. `transfers` are those that the
    former one keeps: of their message they decide.
    """

    revision: int
    by_revision: int
    structure: Structure
    transfers: Verification | None = None

    @property
    def has_failed(self) -> bool:
        """That the revision's model sets no size."""
        return True

    @property
    def misfit(self) -> float:
        """Nothing: no latency was compared."""
        return 0.0

    @property
    def found(self) -> str:
        """What was found, as a clause."""
        share = f"{100.0 * self.structure.evidence.overlap:.0f} % of the time"
        seen = f"here stages overlapped {share}"
        if not self.structure.is_priced_as_a_sum:
            sentence = self.structure.sentence.rstrip(".")
            seen = sentence[:1].lower() + sentence[1:]
        return f"revision {self.revision} says pipelined; {seen}"

    def notice(self) -> Notice:
        """Return what is said of both revisions."""
        return Notice(
            "model_contradicted",
            f"this profile's {self.found}, in the trace of revision {self.by_revision}: "
            f"revision {self.revision} sets no size until it is chosen again (profile use)",
            values=(("by_revision", float(self.by_revision)),),
        )


# What was measured for or against a profile's model.
Against: TypeAlias = Verification | Contradiction


def said_of(against: Against | None) -> Notice | None:
    """Return what every answer about a model says first; None where nothing was measured of it."""
    return None if against is None else against.notice()


def _times(ratio: float) -> str:
    """A ratio in so many digits as say something."""
    if ratio < 0.005:
        return "less than 0.01"
    return f"{ratio:.2f}" if ratio < 99.5 else f"{ratio:,.0f}"
