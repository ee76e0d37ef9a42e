"""How sure an answer is: what is asked, and what is said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isfinite

from analysis.range_size import RangeSize
from analysis.size_curve import SizeChoice, SizePoint, gain_over
from analysis.transferred import MeasuredChoice
from analysis.uncertainty import UncertaintyQuestion
from app.questions.question import UncertaintyOptions
from app.schemas.base import same_named
from app.text.in_flight import at_once_words, format_whole
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
from contract.uncertainty import (
    AgainstOut,
    DrawsIn,
    FileVoteOut,
    GoodSizesOut,
    MeasureOut,
    QuantilesOut,
    RangeSizeOut,
    RegretOut,
    RepeatIn,
    RestsOnOut,
    RobustOut,
    RoundSizeOut,
    SetThisOut,
    StatedIntervalIn,
    UncertaintyIn,
    UncertaintyOut,
)
from domain.default_sizes import CURRENT, ONE_PIECE
from domain.errors import InconsistentInput, InvalidInput
from domain.machine import Machine
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
from domain.uncertainty import StatedInterval
from domain.units import format_bytes

MEASURED_PROBABILITY = 0.95  # of a gain that transfers have shown: of their rules


def draws_of(given: DrawsIn) -> UncertaintyOptions:
    """Return the options of a request. Raises InconsistentInput naming an interval at fault."""
    options = UncertaintyOptions(
        given.draws,
        None if given.seed is None else int(given.seed),
        given.relative,
        intervals=tuple(_interval(one, at) for at, one in enumerate(given.intervals)),
    )
    if not isinstance(given, UncertaintyIn):
        return options
    current = given.current
    return replace(
        options,
        current_bytes=current.repeat if isinstance(current, RepeatIn) else None,
        sends_whole=current == "whole",
        mtu_bytes=given.mtu_bytes,
        robust=given.robust,
        ready_relative=given.ready_relative,
    )


def _interval(given: StatedIntervalIn, at: int) -> StatedInterval:
    try:
        return StatedInterval(given.stage, given.range, given.overhead_us, given.ns_per_byte)
    except InvalidInput as refusal:
        field = f"uncertainty.intervals.{at}.{refusal.field}"
        raise InconsistentInput(refusal.detail, field=field) from None


def quantiles_out(found: Quantiles) -> QuantilesOut:
    """Return the quantiles."""
    shares = found.p05, found.p50, found.p95
    return QuantilesOut(*(shares if isfinite(sum(shares)) else map(finite, shares)))


def regret_out(found: RegretFigures) -> RegretOut:
    """Return the figures."""
    return RegretOut(finite(found.mean), finite(found.p95), finite(found.worst_drawn))


def measure_out(one: Measurement) -> MeasureOut:
    """Return a measurement; a cut into unequal fragments is null."""
    cuts = tuple(cut.size_bytes for cut in one.cuts) if one.cuts else None
    at = (one.stage, one.fragment_bytes)
    return MeasureOut(one.kind, one.repetitions, one.saves_us, *at, cuts)


def robust_out(found: RobustChoice | None) -> RobustOut | None:
    """Return the same as it is sent, None where it was not asked for or is not known."""
    if found is None:
        return None
    basis = "best cut into as many fragments"
    others, before = (
        None if one is None else replace(regret_out(one), basis=basis)
        for one in (found.other_draws, found.answer_in_other_draws)
    )
    return replace(same_named(RobustOut, found), other_draws=others, answer_in_other_draws=before)


def robust_words(found: RobustOut) -> str:
    """Return what it sends, and the figures that say why."""
    bound = f", no such cut below {format_percent(found.lower_bound)}" * (found.lower_bound > 0.0)
    rest = f"; {format_percent(found.answer_worst_regret)} for this answer"
    size = f"{format_bytes(found.size_bytes)} repeated: {format_percent(found.size_worst_regret)}"
    return (
        f"{format_sizes(found.fragment_bytes)} bytes: at most "
        f"{format_percent(found.worst_regret)} above the best of each of {found.draws} draws"
        f"{bound}{rest}; {size}"
    )


def file_vote_out(found: Uncertainty) -> FileVoteOut | None:
    """Return the same as it is sent, None for costs of no measured sizes."""
    file, at = found.file, int(found.are_means)
    if file is None:
        return None
    both = file.latency_us[at], file.against_us[at]
    return FileVoteOut(*both, *file.gains, file.off, file.against_off, file.replaces_lines)


def uncertainty_out(
    found: Uncertainty | None, question: UncertaintyQuestion | None
) -> UncertaintyOut | None:
    """Return what is known of an answer as it is sent and stored, None where nothing is."""
    if found is None or question is None:
        return None
    return with_sentence(
        found, decision_sentence(found, question), measured_us=question.measured_us
    )


def with_sentence(
    found: Uncertainty, sentence: str, *, measured_us: float | None = None
) -> UncertaintyOut:
    """Return the same with this sentence; `measured_us` is what one piece was measured to take."""
    decision = found.decision
    return UncertaintyOut(
        source=found.source,
        draws=found.draws,
        seed=str(found.seed),
        decision=decision.code,
        reason=decision.reason,
        sentence=sentence,
        advised_bytes=decision.advised.size_bytes,
        compared_with=decision.against,
        gain=quantiles_out(decision.gain),
        probability=decision.probability,
        margin=decision.thresholds.margin,
        latency_us=quantiles_out(found.latency_us),
        one_piece_measured_us=measured_us,
        against=tuple(
            AgainstOut(one.name, one.size_bytes, one.probability_faster, quantiles_out(one.saves))
            for one in found.against
        ),
        regret=regret_out(found.regret),
        good_sizes=tuple(same_named(GoodSizesOut, sizes) for sizes in found.good_sizes),
        round=tuple(
            RoundSizeOut(one.size_bytes, one.rule, finite(one.regret_mean), finite(one.regret_p95))
            for one in found.round_sizes
        ),
        evpi_us=found.evpi_us,
        measure_next=tuple(map(measure_out, found.measure_next)),
        rests_on=tuple(
            RestsOnOut(one.stage, one.range_index, one.parameter, "unsupported", one.share_of_draws)
            for one in found.rests_on
        ),
        robust=robust_out(found.robust),
        file=file_vote_out(found),
        of_means=found.are_means,
    )


def measured_uncertainty(known: UncertaintyOut, choice: MeasuredChoice) -> UncertaintyOut:
    """Return the same where measured transfers decide: nothing is left that the model claims of
    sizes.
    """
    size, gain = choice.size, choice.gain or (0.0, 0.0)
    is_set = choice.code is DecisionCode.SET_IT
    low, high = gain if is_set or choice.code is DecisionCode.MEASURE_FIRST else (0.0, 0.0)
    latency_us = known.latency_us
    if size is not None:
        latency_us = QuantilesOut(size.low_us, size.latency_us, size.high_us)
    return replace(
        known,
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


def tells_file(known: UncertaintyOut) -> bool:
    """Whether latencies and gains are of the measured times, not of the lines."""
    is_replaced = known.file is not None and known.file.replaces_lines
    return is_replaced or known.reason == Reason.FILE_FASTER


def _sets(known: UncertaintyOut, size_bytes: int) -> bool:
    """Return whether this size is to be set for what it gains over the user's setting."""
    is_advised = known.decision == DecisionCode.SET_IT and known.advised_bytes == size_bytes
    return is_advised and known.compared_with == CURRENT and known.reason != Reason.NEVER_SLOWER


def is_refused(known: UncertaintyOut) -> bool:
    """Whether what the draws would set is to be measured first."""
    return known.reason in REFUSED


def repeats_bytes(known: UncertaintyOut) -> int | None:
    """The size to repeat: the advised one; of uneven fragments the round one, where one is
    within 2 % of the best.
    """
    if known.advised_bytes is not None or not known.round:
        return known.advised_bytes
    first, limit = known.round[0], Thresholds().regret_p95
    is_near = first.regret_mean is not None and first.regret_mean <= limit
    return first.size_bytes if is_near else None


def uncertainty_facts(known: UncertaintyOut) -> Iterator[tuple[str, str]]:
    """Yield how sure it is, in words: names and figures."""
    latency = known.latency_us
    if latency.p05 is not None and latency.p95 is not None:
        given = {
            "relative": ", of the deviations given",
            "intervals": ", of the intervals given",
            "ready": ", of the deviation of ready times given",
        }
        typed = given.get(known.source, "")
        low, high = format_time(latency.p05), format_time(latency.p95)
        means = ", of mean times" if known.of_means else ""
        yield "interval", f"{low} to {high}, 90 %{typed}{means}"
    if known.one_piece_measured_us is not None:
        yield "one piece took", f"{format_time(known.one_piece_measured_us)}, measured"
    for other in known.against:
        name = f"against {format_setting_name(other.name)}"
        if other.saves.p05 == other.saves.p95 == 0.0:
            yield name, "the same"
            continue
        faster = format_gain((other.saves.p05, other.saves.p95))
        share = format_probability(other.probability_faster)
        yield name, f"{faster}; faster {share}"
    for good in known.good_sizes:
        if good.intervals:
            ends = ([format_size(end, with_bytes=False) for end in one] for one in good.intervals)
            sizes = [" to ".join(dict.fromkeys(one)) for one in ends]  # found to 1 %
            more = f" and {len(sizes) - 4} more" if len(sizes) > 4 else ""
            yield f"within {good.within * 100:.0f} %", ", ".join(sizes[:4]) + more
    for size in known.round[:1]:
        mean = size.regret_mean
        costs = "" if mean is None else f"; costs {format_percent(mean)}"
        yield "round size", f"{format_bytes(size.size_bytes)}, {size.rule}{costs}"
    if known.robust is not None:
        yield "for the worst draw", robust_words(known.robust)
    worth_us = WORTH_LISTING * (latency.p50 or 0.0)
    for one in [one for one in known.measure_next if one.saves_us > worth_us][:1]:
        what = both_ways(one.cuts_bytes or ())
        if one.stage is not None:
            what = f"{printable(one.stage)} at {format_bytes(one.fragment_bytes or 0)}"
        saves = f"saves about {format_time(float(f'{one.saves_us:.1g}'))}"
        yield "measure next", f"{what}, {one.repetitions} times: {saves}"


def range_size_out(found: RangeSize | None, *, set_bytes: int) -> RangeSizeOut | None:
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
    return RangeSizeOut(
        found.min_message_bytes, found.max_message_bytes, found.size_bytes, sentence
    )


def set_this_out(
    choice: SizeChoice | None,
    known: UncertaintyOut | None,
    message_bytes: int,
    *,
    has_premise: bool = False,
    machine: Machine | None = None,
) -> SetThisOut | None:
    """Return the same as it is sent, None where no size can be repeated; `has_premise` says
    that the model has one, and of a `machine` it is said how many at a time.
    """
    if choice is None:
        return None

    def at_once(size_bytes: int) -> str:
        return "" if machine is None else at_once_words(machine, size_bytes, message_bytes)

    # Others say sizes as they always have.
    written = format_size if machine is None else format_whole
    by_model = by_premise(choice, message_bytes, has_premise=has_premise)
    chosen, current = choice.chosen, choice.current
    is_kept = current is not None and current.size_bytes == chosen.size_bytes
    if known is not None and is_refused(known):
        kept = format_until_then(chosen.size_bytes, message_bytes, is_yours=is_kept)
        may = format_set_this(
            choice.recommended.size_bytes,
            message_bytes,
            is_kept=False,
            decision=known.decision,
            at_once=at_once(choice.recommended.size_bytes),
        )
        return _set_this(chosen, f"{may}; {kept}.", choice, is_kept=is_kept)
    said = format_set_this(
        chosen.size_bytes,
        message_bytes,
        is_kept=is_kept,
        decision=known.decision if known else by_model,
        is_uneven=known is not None and known.advised_bytes is None,
        at_once=at_once(chosen.size_bytes),
        written=written,
    )
    more = ""
    if is_kept and current is not None and known is None:
        other = choice.recommended
        more = format_not_worth(other.size_bytes, gain_over(other, current), written=written)
    elif current is not None and not is_kept:
        yours = format_current(current.size_bytes, message_bytes, written=written)
        more = format_against(chosen.latency_us, current.latency_us, yours)
        if known is not None and _sets(known, chosen.size_bytes):  # one gain, that of the draws
            more = f"{two_digits(known.gain.p50 or 0.0)} % faster than {yours}"
    sentence = f"{said}: {more}." if more else f"{said}."
    return _set_this(chosen, sentence, choice, is_kept=is_kept)


def measured_set_this(choice: MeasuredChoice, by_model: SetThisOut | None) -> SetThisOut | None:
    """Return what measured transfers set in the place of the model; None where the size in use
    was not transferred, and no size can be repeated.
    """
    size = choice.size
    if size is None and by_model is None:
        return None
    latency_us = size.latency_us if size else by_model.latency_us if by_model else 0.0
    return SetThisOut(
        size_bytes=choice.size_bytes,
        fragments=-(-choice.message_bytes // choice.size_bytes),
        latency_us=latency_us,
        keeps_current=choice.is_current_known and choice.code is not DecisionCode.SET_IT,
        sentence=choice_sentence(choice),
        by_transfers=True,
    )


def _set_this(point: SizePoint, sentence: str, choice: SizeChoice, *, is_kept: bool) -> SetThisOut:
    over = range_size_out(choice.over, set_bytes=point.size_bytes)
    return SetThisOut(
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
