"""How sure an answer is: what is asked, and what is said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite
from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from analysis.range_size import RangeSize
from analysis.size_curve import SizeChoice, SizePoint, gain_over
from analysis.transferred import MeasuredChoice
from analysis.uncertainty import UncertaintyQuestion
from app.questions.question import UncertaintyOptions
from app.schemas.base import STATIC, WHOLE, Bytes, Input, Output, Seed, same_named, whole
from app.text.notices import both_ways, decision_sentence
from app.text.numbers import (
    format_gain,
    format_percent,
    format_probability,
    format_size,
    format_sizes,
    two_digits,
)
from app.text.transferred import choice_sentence
from app.text.units import (
    format_against,
    format_current,
    format_not_worth,
    format_set_this,
    format_setting_name,
    format_time,
    format_until_then,
    printable,
)
from domain.default_sizes import CURRENT, ONE_PIECE
from domain.errors import InconsistentInput, InvalidInput
from domain.uncertain_answer import (
    REFUSED,
    WORTH_LISTING,
    DecisionCode,
    Measurement,
    Quantiles,
    Reason,
    RegretFigures,
    RobustChoice,
    Thresholds,
    Uncertainty,
)
from domain.uncertainty import DEFAULT_DRAWS, MAX_RELATIVE, StatedInterval
from domain.units import format_bytes

MAX_INTERVALS = 1000
MEASURED_PROBABILITY = 0.95  # of a gain that transfers have shown: of their rules
_OF_TYPED = {"relative": ", of the deviations given", "intervals": ", of the intervals given"}


class RepeatIn(Input):
    """One size is repeated."""

    repeat: Bytes


CurrentIn = Annotated[
    Annotated[RepeatIn, Tag(STATIC)] | Annotated[Literal["whole"], Tag(WHOLE)],
    Discriminator(lambda value: WHOLE if isinstance(value, str) else STATIC),
]


Pair = Annotated[tuple[float, float], Field(description="[low, high]")]


class StatedIntervalIn(Input):
    """95 % intervals, [low, high], of what a stage costs in one of its ranges, counted from 0."""

    stage: Annotated[str, Field(min_length=1)]
    range: Annotated[int, Field(ge=0), BeforeValidator(whole)] = 0
    overhead_us: Pair | None = None
    ns_per_byte: Pair | None = None

    def to_domain(self, at: int) -> StatedInterval:
        """Return the intervals, which are those at this place. Raises InconsistentInput without."""
        try:
            return StatedInterval(self.stage, self.range, self.overhead_us, self.ns_per_byte)
        except InvalidInput as refusal:
            field = f"uncertainty.intervals.{at}.{refusal.field}"
            raise InconsistentInput(refusal.detail, field=field) from None


class DrawsIn(Input):
    """Over how many draws of the costs an answer is looked at, each cost drawn by its error.

    The errors are those of the fit, or `relative`, one standard deviation of every cost, and
    `intervals` of single ones, without `relative` the only ones that are not known exactly.
    """

    draws: Annotated[int, Field(ge=50, le=2000), BeforeValidator(whole)] = DEFAULT_DRAWS
    seed: Seed | None = None
    relative: Annotated[float, Field(ge=0.001, le=MAX_RELATIVE)] | None = None
    intervals: Annotated[tuple[StatedIntervalIn, ...], Field(max_length=MAX_INTERVALS)] = ()

    def to_domain(self) -> UncertaintyOptions:
        """Return the options. Raises InvalidInput."""
        seed = None if self.seed is None else int(self.seed)
        intervals = tuple(one.to_domain(at) for at, one in enumerate(self.intervals))
        return UncertaintyOptions(self.draws, seed, self.relative, intervals=intervals)


class UncertaintyIn(DrawsIn):
    """How sure the answer is, over draws of the costs.

    `current` is the setting in use, `mtu_bytes` a size whose multiples are round; `robust` asks for
    the cut whose greatest regret over the draws is least.
    """

    current: CurrentIn | None = None
    mtu_bytes: Bytes | None = None
    robust: bool = False

    def to_domain(self) -> UncertaintyOptions:
        """Return the options."""
        current = self.current
        return replace(
            super().to_domain(),
            current_bytes=current.repeat if isinstance(current, RepeatIn) else None,
            sends_whole=current == "whole",
            mtu_bytes=self.mtu_bytes,
            robust=self.robust,
        )


@dataclass(frozen=True)
class QuantilesOut(Output):
    """Quantiles over the draws; null where nothing can be divided by."""

    p05: float | None
    p50: float | None
    p95: float | None

    @classmethod
    def of(cls, found: Quantiles) -> QuantilesOut:
        """Return the quantiles."""
        shares = found.p05, found.p50, found.p95
        return cls(*(shares if isfinite(sum(shares)) else map(finite, shares)))


@dataclass(frozen=True)
class AgainstOut(Output):
    """The answer against another cut on the same draws; `saves` is 1 - T/T_other."""

    name: str
    size_bytes: int | None
    probability_faster: float
    saves: QuantilesOut


@dataclass(frozen=True)
class RegretOut(Output):
    """What the answer takes over the best repeated size of each draw, as a share of that."""

    mean: float | None
    p95: float | None
    worst_drawn: float | None
    basis: str = "best repeated size"

    @classmethod
    def of(cls, found: RegretFigures) -> RegretOut:
        """Return the figures."""
        return cls(finite(found.mean), finite(found.p95), finite(found.worst_drawn))


@dataclass(frozen=True)
class GoodSizesOut(Output):
    """Sizes, low to high in bytes, within this share of the best in this share of the draws."""

    within: float
    in_draws: float
    intervals: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class RoundSizeOut(Output):
    """The best size that keeps a rule, and its regret."""

    size_bytes: int
    rule: str
    regret_mean: float | None
    regret_p95: float | None


@dataclass(frozen=True)
class MeasureOut(Output):
    """What to measure: a stage at a size, or whole messages cut by `cuts_bytes` in turns.

    `saves_us` is by how much that lowers the latency to expect, worth one digit.
    """

    kind: str
    repetitions: int
    saves_us: float
    stage: str | None
    fragment_bytes: int | None
    cuts_bytes: tuple[int | None, ...] | None

    @classmethod
    def of(cls, one: Measurement) -> MeasureOut:
        """Return a measurement; a cut into unequal fragments is null."""
        cuts = tuple(cut.size_bytes for cut in one.cuts) if one.cuts else None
        at = (one.stage, one.fragment_bytes)
        return cls(one.kind, one.repetitions, one.saves_us, *at, cuts)


@dataclass(frozen=True)
class RestsOnOut(Output):
    """A cost that the measurements do not determine, and that matters in this share of draws."""

    stage: str
    range: int
    parameter: str
    verdict: str
    share_of_draws: float


@dataclass(frozen=True)
class RobustOut(Output):
    """The cut, and the repeated size, whose greatest regret over the first draws is least.

    Regret is T/T* - 1, T* that of the best cut into as many fragments or of the best repeated size,
    whichever is less. No cut into as many fragments has less than `lower_bound` in these draws. Of
    stages with ranges T* is that of the best cut that was tried, and the bound 0. The figures of
    the other draws, null without any, have not chosen it; `answer_` are the answer's.
    `is_best_size`: of all admitted sizes, not of some.
    """

    fragment_bytes: tuple[int, ...]
    draws: int
    worst_regret: float
    lower_bound: float
    is_proven: bool
    answer_worst_regret: float
    other_draws: RegretOut | None
    answer_in_other_draws: RegretOut | None
    size_bytes: int
    size_worst_regret: float
    is_best_size: bool

    @classmethod
    def of(cls, found: RobustChoice | None) -> RobustOut | None:
        """Return the same as it is sent, None where it was not asked for or is not known."""
        if found is None:
            return None
        basis = "best cut into as many fragments"
        others, before = (
            None if one is None else replace(RegretOut.of(one), basis=basis)
            for one in (found.other_draws, found.answer_in_other_draws)
        )
        return replace(same_named(cls, found), other_draws=others, answer_in_other_draws=before)

    def words(self) -> str:
        """Return what it sends, and the figures that say why."""
        bound = f", no such cut below {format_percent(self.lower_bound)}" * (self.lower_bound > 0.0)
        rest = f"; {format_percent(self.answer_worst_regret)} for this answer"
        size = f"{format_bytes(self.size_bytes)} repeated: {format_percent(self.size_worst_regret)}"
        return (
            f"{format_sizes(self.fragment_bytes)} bytes: at most "
            f"{format_percent(self.worst_regret)} above the best of each of {self.draws} draws"
            f"{bound}{rest}; {size}"
        )


@dataclass(frozen=True)
class FileVoteOut(Output):
    """The advised cut and what it is compared with by the times of the measured sizes, no line
    between them; `off_lines` is by which share the message is above the lines so. `replaces_lines`:
    the answer says these latencies, since the lines are more than 25 % beside them.
    """

    latency_us: float
    compared_us: float
    gain_by_medians: float
    gain_by_means: float
    off_lines: float
    compared_off_lines: float
    replaces_lines: bool

    @classmethod
    def of(cls, found: Uncertainty) -> FileVoteOut | None:
        """Return the same as it is sent, None for costs of no measured sizes."""
        file, at = found.file, int(found.are_means)
        if file is None:
            return None
        both = file.latency_us[at], file.against_us[at]
        return cls(*both, *file.gains, file.off, file.against_off, file.replaces_lines)


@dataclass(frozen=True)
class UncertaintyOut(Output):
    """How sure the answer is, and what to do: `decision`, and `sentence` in words.

    `advised_bytes` is the size to repeat, null for the answer's own fragments; it gains `gain` over
    `compared_with`, more than `margin` in `probability` of the draws. `one_piece_measured_us` is
    what this message in one piece was measured to take, null where it was not. `robust` is null
    where it was not asked for, and for stages that hand bytes on as they move. `of_means`:
    latencies are of mean times, else of medians.
    """

    source: str
    draws: int
    seed: str
    decision: str
    reason: str
    sentence: str
    advised_bytes: int | None
    compared_with: str
    gain: QuantilesOut
    probability: float
    margin: float
    latency_us: QuantilesOut
    one_piece_measured_us: float | None
    against: tuple[AgainstOut, ...]
    regret: RegretOut
    good_sizes: tuple[GoodSizesOut, ...]
    round: tuple[RoundSizeOut, ...]
    evpi_us: float
    measure_next: tuple[MeasureOut, ...]
    rests_on: tuple[RestsOnOut, ...]
    robust: RobustOut | None = None
    file: FileVoteOut | None = None
    of_means: bool = False

    @classmethod
    def of(
        cls, found: Uncertainty | None, question: UncertaintyQuestion | None
    ) -> UncertaintyOut | None:
        """Return what is known of an answer as it is sent and stored, None where nothing is."""
        if found is None or question is None:
            return None
        decision = found.decision
        return cls(
            source=found.source,
            draws=found.draws,
            seed=str(found.seed),
            decision=decision.code,
            reason=decision.reason,
            sentence=decision_sentence(found, question),
            advised_bytes=decision.advised.size_bytes,
            compared_with=decision.against,
            gain=QuantilesOut.of(decision.gain),
            probability=decision.probability,
            margin=decision.thresholds.margin,
            latency_us=QuantilesOut.of(found.latency_us),
            one_piece_measured_us=question.measured_us,
            against=tuple(
                AgainstOut(
                    one.name, one.size_bytes, one.probability_faster, QuantilesOut.of(one.saves)
                )
                for one in found.against
            ),
            regret=RegretOut.of(found.regret),
            good_sizes=tuple(same_named(GoodSizesOut, one) for one in found.good_sizes),
            round=tuple(
                RoundSizeOut(
                    one.size_bytes, one.rule, finite(one.regret_mean), finite(one.regret_p95)
                )
                for one in found.round_sizes
            ),
            evpi_us=found.evpi_us,
            measure_next=tuple(map(MeasureOut.of, found.measure_next)),
            rests_on=tuple(
                RestsOnOut(
                    one.stage, one.range_index, one.parameter, "unsupported", one.share_of_draws
                )
                for one in found.rests_on
            ),
            robust=RobustOut.of(found.robust),
            file=FileVoteOut.of(found),
            of_means=found.are_means,
        )

    def measured(self, choice: MeasuredChoice) -> UncertaintyOut:
        """Return the same where measured transfers decide: nothing is left that the model claims of
        sizes.
        """
        size, gain = choice.size, choice.gain or (0.0, 0.0)
        is_set = choice.code is DecisionCode.SET_IT
        low, high = gain if is_set or choice.code is DecisionCode.MEASURE_FIRST else (0.0, 0.0)
        latency_us = self.latency_us
        if size is not None:
            latency_us = QuantilesOut(size.low_us, size.latency_us, size.high_us)
        return replace(
            self,
            decision=choice.code,
            reason=choice.reason,
            sentence=choice_sentence(choice),
            advised_bytes=choice.size_bytes,
            compared_with=CURRENT if choice.is_current_known else ONE_PIECE,
            gain=QuantilesOut(low, (low + high) / 2.0, high),
            probability=MEASURED_PROBABILITY if is_set else 0.0,
            latency_us=latency_us,
            against=(),
            good_sizes=(),
            round=(),
            measure_next=(),
            rests_on=(),
            file=None,
        )

    @property
    def tells_file(self) -> bool:
        """Whether latencies and gains are of the measured times, not of the lines."""
        is_replaced = self.file is not None and self.file.replaces_lines
        return is_replaced or self.reason == Reason.FILE_FASTER

    def sets(self, size_bytes: int) -> bool:
        """Return whether this size is to be set for what it gains over the user's setting."""
        is_advised = self.decision == DecisionCode.SET_IT and self.advised_bytes == size_bytes
        return is_advised and self.compared_with == CURRENT and self.reason != Reason.NEVER_SLOWER

    @property
    def is_refused(self) -> bool:
        """Whether what the draws would set is to be measured first."""
        return self.reason in REFUSED

    @property
    def repeats_bytes(self) -> int | None:
        """The size to repeat: the advised one; of uneven fragments the round one, where one is
        within 2 % of the best.
        """
        if self.advised_bytes is not None or not self.round:
            return self.advised_bytes
        first, limit = self.round[0], Thresholds().regret_p95
        is_near = first.regret_mean is not None and first.regret_mean <= limit
        return first.size_bytes if is_near else None

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield how sure it is, in words: names and figures."""
        latency = self.latency_us
        if latency.p05 is not None and latency.p95 is not None:
            given = {
                "relative": ", of the deviations given",
                "intervals": ", of the intervals given",
            }
            typed = given.get(self.source, "")
            low, high = format_time(latency.p05), format_time(latency.p95)
            means = ", of mean times" if self.of_means else ""
            yield "interval", f"{low} to {high}, 90 %{typed}{means}"
        if self.one_piece_measured_us is not None:
            yield "one piece took", f"{format_time(self.one_piece_measured_us)}, measured"
        for other in self.against:
            name = f"against {format_setting_name(other.name)}"
            if other.saves.p05 == other.saves.p95 == 0.0:
                yield name, "the same"
                continue
            faster = format_gain((other.saves.p05, other.saves.p95))
            share = format_probability(other.probability_faster)
            yield name, f"{faster}; faster {share}"
        for good in self.good_sizes:
            if good.intervals:
                ends = (
                    [format_size(end, with_bytes=False) for end in one] for one in good.intervals
                )
                sizes = [" to ".join(dict.fromkeys(one)) for one in ends]  # found to 1 %
                more = f" and {len(sizes) - 4} more" if len(sizes) > 4 else ""
                yield f"within {good.within * 100:.0f} %", ", ".join(sizes[:4]) + more
        for size in self.round[:1]:
            mean = size.regret_mean
            costs = "" if mean is None else f"; costs {format_percent(mean)}"
            yield "round size", f"{format_bytes(size.size_bytes)}, {size.rule}{costs}"
        if self.robust is not None:
            yield "for the worst draw", self.robust.words()
        worth_us = WORTH_LISTING * (latency.p50 or 0.0)
        for one in [one for one in self.measure_next if one.saves_us > worth_us][:1]:
            what = both_ways(one.cuts_bytes or ())
            if one.stage is not None:
                what = f"{printable(one.stage)} at {format_bytes(one.fragment_bytes or 0)}"
            saves = f"saves about {format_time(float(f'{one.saves_us:.1g}'))}"
            yield "measure next", f"{what}, {one.repetitions} times: {saves}"


@dataclass(frozen=True)
class RangeSizeOut(Output):
    """The power of two that is best as the one size of messages of a range, of those that were
    measured and at the costs as they stand; `sentence` says it.
    """

    min_message_bytes: int
    max_message_bytes: int
    size_bytes: int
    sentence: str

    @classmethod
    def of(cls, found: RangeSize | None, *, set_bytes: int) -> RangeSizeOut | None:
        """Return it with its sentence beside one to set `set_bytes`; None where it is not known."""
        if found is None:
            return None
        first, last = map(format_bytes, (found.min_message_bytes, found.max_message_bytes))
        is_whole = found.size_bytes >= found.max_message_bytes
        if found.size_bytes == set_bytes:
            best = "sending them whole" if is_whole else format_bytes(set_bytes)
            sentence = f"Over {first} to {last} too {best} is best of all powers of two."
        else:
            best = "sends them whole" if is_whole else f"is {format_bytes(found.size_bytes)}"
            sentence = (
                f"This is for messages of {last} alone: over {first} to {last} the best single "
                f"power of two {best}."
            )
        return cls(found.min_message_bytes, found.max_message_bytes, found.size_bytes, sentence)


@dataclass(frozen=True)
class SetThisOut(Output):
    """The size to set where a library repeats one, with its latency in µs; `sentence` says it.

    `keeps_current`: it is the one that is repeated today, which nothing gains enough over. `over`
    is what would be set for shorter messages too, null where costs were not measured.
    `by_transfers`: measured transfers say so, or have contradicted the model.
    """

    size_bytes: int
    fragments: int
    latency_us: float
    keeps_current: bool
    sentence: str
    over: RangeSizeOut | None = None
    by_transfers: bool = False

    @classmethod
    def of(
        cls,
        choice: SizeChoice | None,
        known: UncertaintyOut | None,
        message_bytes: int,
        *,
        has_premise: bool = False,
    ) -> SetThisOut | None:
        """Return the same as it is sent, None where no size can be repeated; `has_premise` says
        that the model has one.
        """
        if choice is None:
            return None
        by_model = by_premise(choice, message_bytes, has_premise=has_premise)
        chosen, current = choice.chosen, choice.current
        is_kept = current is not None and current.size_bytes == chosen.size_bytes
        if known is not None and known.is_refused:
            kept = format_until_then(chosen.size_bytes, message_bytes, is_yours=is_kept)
            may = format_set_this(
                choice.recommended.size_bytes,
                message_bytes,
                is_kept=False,
                decision=known.decision,
            )
            return cls._at(chosen, f"{may}; {kept}.", choice, is_kept=is_kept)
        said = format_set_this(
            chosen.size_bytes,
            message_bytes,
            is_kept=is_kept,
            decision=known.decision if known else by_model,
            is_uneven=known is not None and known.advised_bytes is None,
        )
        more = ""
        if is_kept and current is not None and known is None:
            other = choice.recommended
            more = format_not_worth(other.size_bytes, gain_over(other, current))
        elif current is not None and not is_kept:
            yours = format_current(current.size_bytes, message_bytes)
            more = format_against(chosen.latency_us, current.latency_us, yours)
            if known is not None and known.sets(chosen.size_bytes):  # one gain, that of the draws
                more = f"{two_digits(known.gain.p50 or 0.0)} % faster than {yours}"
        sentence = f"{said}: {more}." if more else f"{said}."
        return cls._at(chosen, sentence, choice, is_kept=is_kept)

    @classmethod
    def measured(cls, choice: MeasuredChoice, by_model: SetThisOut | None) -> SetThisOut | None:
        """Return what measured transfers set in the place of the model; None where the size in use
        was not transferred, and no size can be repeated.
        """
        size = choice.size
        if size is None and by_model is None:
            return None
        latency_us = size.latency_us if size else by_model.latency_us if by_model else 0.0
        return cls(
            size_bytes=choice.size_bytes,
            fragments=-(-choice.message_bytes // choice.size_bytes),
            latency_us=latency_us,
            keeps_current=choice.is_current_known and choice.code is not DecisionCode.SET_IT,
            sentence=choice_sentence(choice),
            by_transfers=True,
        )

    @classmethod
    def _at(
        cls, point: SizePoint, sentence: str, choice: SizeChoice, *, is_kept: bool
    ) -> SetThisOut:
        over = RangeSizeOut.of(choice.over, set_bytes=point.size_bytes)
        return cls(
            point.size_bytes, point.fragments, point.latency_us, is_kept, sentence, over=over
        )


def by_premise(choice: SizeChoice, message_bytes: int, *, has_premise: bool) -> str:
    """Return the decision where no errors of the costs are known: `measure_first` where a change of
    setting rests on a premise of the model, else none.
    """
    is_change = choice.current is not None or choice.chosen.size_bytes < message_bytes
    return DecisionCode.MEASURE_FIRST if has_premise and is_change else ""


def finite(value: float) -> float | None:
    """Return the value, None where it is infinite or no number."""
    return value if isfinite(value) else None
