"""What draws of the costs leave of an answer: interval, regrets, good sizes, and the decision.

Source    docs/theory.md, "Uncertain costs". Everything is compared on the same draws; intervals
          are never compared with each other.

from analysis.uncertainty import UncertaintyQuestion, assess
found = assess(UncertaintyQuestion(uncertain_pipeline, message_bytes=65536))
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from analysis.decision import (
    Choices,
    PricedCut,
    advise,
    decide,
    gain_of,
    is_near,
    is_set,
    quantiles,
    savings_of,
    thresholds_of,
)
from analysis.draw_costs import (
    PricedSizes,
    cut_us,
    mean_of,
    means_over_medians,
    quantiles_of,
    regrets_over,
)
from analysis.draws import Draws, draw
from analysis.file_rules import file_vote, held_to_file, refused_by_file
from analysis.measure_next import measurements, saved_by_knowing_us
from analysis.measured import Measured
from analysis.overlap import held_to_overlap, priced_both_ways, slower_by_file
from analysis.premise import held_back
from analysis.repeated_sizes import (
    admits,
    good_sizes,
    largest_admitted,
    price_sizes,
    round_sizes,
)
from analysis.rests_on import rests_on
from analysis.robust_cut import robust_choice
from contract.limits import DEFAULT_DRAWS
from domain.default_sizes import ONE_PIECE
from domain.errors import InvalidInput, StrategyDeclined
from domain.fit import beyond_measured, cut_sizes
from domain.measured_times import MeasuredTimes
from domain.nested import NestedSchedule
from domain.problem import DEFAULT_FRAGMENT_CAP, FragmentLimits, MessageProblem, problem_of
from domain.solution import Notice, Solution
from domain.structure import KnownOverlap
from domain.uncertain_answer import (
    MAX_OFF,
    WORTH_LISTING,
    Against,
    Decision,
    DecisionCode,
    FileVote,
    Measurement,
    Quantiles,
    RegretFigures,
    RoundSize,
    Thresholds,
    Uncertainty,
    round_or_best,
)
from domain.uncertainty import ANSWER, NamedCut, UncertainModel, seed_of, source_of

Floats = NDArray[np.float64]

ADVISED = "advised"
LARGEST = "largest"
MAX_MEASUREMENTS = 3
MANY_FRAGMENTS = 8  # of which a message takes the sum of means, whatever their medians are
MAX_CELLS = 20_000  # fragments times stages of an uneven answer that is priced in every draw


@dataclass(frozen=True, slots=True)
class UncertaintyQuestion:
    """Costs that are not known exactly, a message, limits, and what to compare.

    `answer` is what a solver said for the estimates: an uneven cut of it is advised where it is
    certain enough to beat every repeated size. `current` is the user's setting, `defaults` those of
    other systems, each under a name of its own. `measured_us` is what this message in one piece was
    measured to take, where it was: it is priced no higher. `misfit` is the share of the latency by
    which measured whole messages differ from the model. No repeated size beside `measured_bytes`,
    the least and the greatest size that every stage was measured at, is advised while the limits
    admit one between. `times` are what the measured sizes took: without them no cut is held against
    the file. `overlap` is what is known of the stages' overlap: a pipeline, where nothing is said.
    Without `seed` the costs have one. With `robust` the solution's cut is `robust_from`,
    for which the best in the worst draw is sought.
    """

    model: UncertainModel
    message_bytes: int
    limits: FragmentLimits = field(default_factory=FragmentLimits)
    fragment_cap: int = DEFAULT_FRAGMENT_CAP
    answer: NamedCut | None = None
    current: NamedCut | None = None
    defaults: tuple[NamedCut, ...] = ()
    mtu_bytes: int | None = None
    misfit: float = 0.0
    measured_us: float | None = None
    measured_bytes: tuple[int, int] | None = None
    times: MeasuredTimes | None = None
    overlap: KnownOverlap = field(default_factory=KnownOverlap)
    draws: int = DEFAULT_DRAWS
    seed: int | None = None
    robust: bool = False
    robust_from: tuple[int, ...] | None = None

    def beyond(self, cut: NamedCut) -> Notice | None:
        """Return that a cut has sizes that were not measured, None where they were, or no matter.

        The remainder of a cut is not looked at.
        """
        if cut.schedule is None:
            sizes = {min(cut.size_bytes or 1, self.message_bytes)}
        else:
            sizes = {size for one in cut.schedule.stage_bytes for size in cut_sizes(one)}
        return beyond_measured(sizes, self.measured_bytes, "what is advised")


def assess(question: UncertaintyQuestion) -> Uncertainty:
    """Return what is known of the message's latency and of the cuts to choose among.

    O(sizes x draws x stages), for some 200 sizes; an uneven cut of k fragments adds
    O(k x draws x stages). Raises InvalidInput for a cut of another message or a misfit below 0,
    Infeasible, and StrategyDeclined where the limits admit no repeated size.
    """
    return _assessed(question, question.answer, question.robust_from)


def _assessed(
    question: UncertaintyQuestion, answer: NamedCut | None, robust_from: tuple[int, ...] | None
) -> Uncertainty:
    """The same of this answer in the place of the question's."""
    if not 0.0 <= question.misfit < 1.0:
        raise InvalidInput("expected 0 <= misfit < 1", field="misfit")
    if question.mtu_bytes is not None and question.mtu_bytes < 1:
        raise InvalidInput("expected mtu_bytes >= 1", field="mtu_bytes")
    problem = problem_of(
        question.model.model,
        question.message_bytes,
        question.limits,
        fragment_cap=question.fragment_cap,
    )
    seed = seed_of(question.model) if question.seed is None else question.seed
    sent = answer or question.current
    sums_many = sent is not None and sent.fragments(question.message_bytes) >= MANY_FRAGMENTS
    draws = draw(question.model, question.draws, seed, sums_many=sums_many)
    named = (answer, question.current, *question.defaults)
    also = [one.size_bytes for one in named if one is not None and one.size_bytes is not None]
    priced = price_sizes(
        problem,
        draws,
        also=also,
        mtu_bytes=question.mtu_bytes,
        measured_bytes=question.measured_bytes,
    )
    if question.measured_us:
        priced = priced.capped(question.message_bytes, _whole_us(question, draws))
    found = round_sizes(problem, priced, mtu_bytes=question.mtu_bytes)
    measured = Measured(
        problem,
        question.model,
        question.times,
        question.measured_bytes,
        question.measured_us,
        are_means=draws.are_means,
    )
    if question.measured_bytes != priced.between:
        question = replace(question, measured_bytes=priced.between)
    return _concluded(question, answer, robust_from, measured, draws, priced, found, seed)


def _whole_us(question: UncertaintyQuestion, draws: Draws) -> Floats | float:
    """What one piece takes at most in each draw: its measured time is a median."""
    most_us = question.measured_us or 0.0
    return most_us * means_over_medians(draws, question.message_bytes)


def forbids_current(question: UncertaintyQuestion) -> bool:
    """Return whether the limits forbid the user's setting."""
    current = question.current
    if current is None or current.size_bytes is None:
        return False
    problem = problem_of(
        question.model.model,
        question.message_bytes,
        question.limits,
        fragment_cap=question.fragment_cap,
    )
    size = min(current.size_bytes, question.message_bytes)
    return not admits(problem, size)


def assess_solution(question: UncertaintyQuestion, solution: Solution) -> Uncertainty | None:
    """Return the same with a solution as the answer; None where the limits admit no repeated size.

    An uneven cut of very many fragments is left out: it would take longer than solving it.
    """
    levels = solution.levels or (solution.schedule.fragment_bytes,)
    first, last = levels[0][0], levels[0][-1]
    if len(levels) == 1 and last <= first and all(one == first for one in levels[0][:-1]):
        answer: NamedCut | None = NamedCut(ANSWER, first)
    elif sum(map(len, levels)) * len(question.model.stages) // len(levels) > MAX_CELLS:
        answer = None
    else:
        answer = NamedCut(ANSWER, schedule=NestedSchedule(levels))
    robust_from = levels[0] if question.robust and len(levels) == 1 else None
    with suppress(StrategyDeclined):
        return _assessed(question, answer, robust_from)
    return None


def _concluded(
    question: UncertaintyQuestion,
    of_answer: NamedCut | None,
    robust_from: tuple[int, ...] | None,
    measured: Measured,
    draws: Draws,
    priced: PricedSizes,
    rounded: tuple[RoundSize, ...],
    seed: int,
) -> Uncertainty:
    problem, thresholds = measured.problem, thresholds_of(question.misfit)
    answer, current = (
        None if one is None else _priced_cut(question, draws, priced, one)
        for one in (of_answer, question.current)
    )
    total = problem.message_bytes
    if answer and question.beyond(answer.cut) and not answer.cut.is_whole(total):
        answer = None  # nothing is said of sizes that were not measured
    usable = None if forbids_current(question) else current
    largest = NamedCut(LARGEST, largest_admitted(problem, priced))
    choices = _choices(
        problem,
        priced,
        rounded,
        answer,
        usable,
        _priced_cut(question, draws, priced, largest),
        thresholds,
    )
    advice = advise(choices, thresholds)
    evpi_us = _perfect_information_us(priced, answer)
    to_measure: tuple[Measurement, ...] = ()
    if evpi_us > WORTH_LISTING * mean_of(priced.best_us):
        to_measure = measurements(
            question.model.stages,
            draws,
            _to_choose_among(priced, answer),
            _pairs(choices, priced),
            largest_bytes=problem.largest_fragment_bytes,
            seed=seed,
        )
    decision = decide(
        choices,
        advice,
        best_us=np.minimum(priced.best_us, advice.advised.latency_us),
        evpi_us=evpi_us,
        measurement=next(iter(to_measure), None),
        thresholds=thresholds,
    )
    decision = held_to_file(decision, choices, advice.advised, measured, thresholds)

    def refused(found: Decision, cut: NamedCut) -> Decision | None:
        priced_cut = _priced_cut(question, draws, priced, cut)
        stopped = refused_by_file(found, choices, priced_cut, measured)
        return stopped or slower_by_file(found, choices, cut, question.times, total)

    decision, both_ways = held_to_overlap(
        decision,
        question.overlap,
        choices,
        draws,
        partial(priced_both_ways, choices, draws, priced, total),
        total,
        rounder=[one.size_bytes for one in rounded],
        refused=refused,
        knows=measured.knows,
    )
    subject = answer or advice.advised
    if answer is None and decision.code is DecisionCode.SET_IT:
        subject = _priced_cut(question, draws, priced, decision.advised)
    regret = regrets_over(subject.latency_us, priced.best_us)
    others = [one for one in (choices.whole, current) if one is not None]
    others += (_priced_cut(question, draws, priced, one) for one in question.defaults)
    modelled_us = subject.latency_us
    if question.measured_us and subject.cut.is_whole(total):
        modelled_us = cut_us(draws, total, subject.cut)
    latency = quantiles(modelled_us)
    file = file_of_repeated = file_vote(measured, decision.advised, choices.baseline.cut)
    if decision.advised.size_bytes is None:
        repeated = NamedCut(ADVISED, round_or_best(rounded, _size(choices.best)))
        file_of_repeated = file_vote(measured, repeated, choices.baseline.cut)
    if file is not None:
        decision = _with_file_gain(decision, choices, measured, file)
        is_replaced = (
            file.replaces_lines or abs(_off_lines(measured, subject.cut, decision, file)) > MAX_OFF
        )
        latency = _with_file(latency, measured, draws, subject.cut, is_replaced=is_replaced)
        if is_replaced:
            subject, *others = (_by_file(measured, one) for one in (subject, *others))
    return Uncertainty(
        source=source_of(question.model),
        draws=question.draws,
        seed=seed,
        decision=held_back(decision, question.model.model),
        subject=subject.cut,
        latency_us=latency,
        against=_against(subject, others),
        regret=RegretFigures(mean_of(regret), *quantiles_of(regret, (0.95, 1.0))),
        best_size_bytes=_size(choices.best),
        good_sizes=good_sizes(problem, draws, priced),
        round_sizes=rounded,
        evpi_us=evpi_us,
        measure_next=_to_measure(decision, to_measure),
        rests_on=rests_on(
            question.model,
            draws,
            problem.message_bytes,
            PricedCut(subject.cut, modelled_us),
            thresholds,
        ),
        robust=None if robust_from is None else robust_choice(problem, draws, priced, robust_from),
        file=file,
        file_of_repeated=file_of_repeated,
        are_means=draws.are_means,
        overlap=question.overlap,
        both_ways=both_ways,
    )


def _off_lines(measured: Measured, cut: NamedCut, decision: Decision, file: FileVote) -> float:
    """By which share the file is off the lines for a cut, which most often is the advised one."""
    same = replace(cut, name=decision.advised.name) == decision.advised
    return file.off if same else measured.off_lines(cut)


def _with_file_gain(
    decision: Decision, choices: Choices, measured: Measured, file: FileVote
) -> Decision:
    """The decision with the gain in redrawn files, where these are told and a cut is set."""
    if not file.replaces_lines or decision.code is not DecisionCode.SET_IT:
        return decision
    gains = measured.gains_redrawn(decision.advised, choices.baseline.cut)
    return replace(decision, gain=quantiles(gains[int(measured.are_means)]))


def _with_file(
    latency: Quantiles, measured: Measured, draws: Draws, cut: NamedCut, *, is_replaced: bool
) -> Quantiles:
    """The interval of the lines, widened to hold that of the file's own times, and what fragments
    that vary hold each other up; that of the file alone where it is told instead. It is of means
    where the draws are, else of medians and means. Of sizes that were not measured the file says
    nothing.
    """
    if not measured.knows(cut):
        return latency
    redrawn_us = measured.redrawn_us(cut)
    own = quantiles(redrawn_us[1] if draws.are_means else redrawn_us.ravel())
    if is_replaced:
        return own
    longer = measured.held_up(cut)
    middle, high = longer * latency.p50, longer * latency.p95
    return Quantiles(min(latency.p05, own.p05), middle, max(high, own.p95))


def _to_measure(decision: Decision, others: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """What the decision asks for, and what knowing the costs better is worth besides."""
    first = [] if decision.measure is None else [decision.measure]
    return (*first, *(one for one in others if one not in first))[:MAX_MEASUREMENTS]


def _by_file(measured: Measured, one: PricedCut) -> PricedCut:
    """The cut with its mean times in redrawn files."""
    return PricedCut(one.cut, measured.redrawn_us(one.cut)[1])


def _choices(
    problem: MessageProblem,
    priced: PricedSizes,
    rounded: tuple[RoundSize, ...],
    answer: PricedCut | None,
    current: PricedCut | None,
    largest: PricedCut,
    thresholds: Thresholds,
) -> Choices:
    """The cut is the recommended round size, where its mean regret is at most 2 %, unless only the
    best repeated size below the message gains enough to be set, over a setting that is not near the
    best; or the uneven answer, where that gains 1 % over the best repeated size in 95 % of the
    draws. `answer` is None where fragments of it were not measured.
    """
    total = problem.message_bytes
    best = _repeated(priced, int(priced.sizes[priced.order[0]]))
    sizes = [
        one.size_bytes
        for one in rounded
        if one.size_bytes < total and one.regret_mean <= thresholds.regret_p95
    ][:1]
    ordered = priced.sizes[priced.order[:2]].tolist()
    sizes += [size for size in ordered if size < total][:1]
    whole = _repeated(priced, total, ONE_PIECE) if priced.sizes[-1] == total else None
    cuts = [_repeated(priced, size) for size in sizes]
    compared = current or whole or largest
    if current is not None and is_near(current, priced.best_us, thresholds):
        cuts = cuts[:1]  # nobody changes from there to an odd size
    cut = next((one for one in cuts if is_set(one, compared, thresholds)), next(iter(cuts), None))
    if _is_uneven(answer):
        gain = gain_of(answer.latency_us, best.latency_us)
        if gain.p05 >= thresholds.uneven_gain:
            cut = PricedCut(replace(answer.cut, name=ADVISED), answer.latency_us)
    return Choices(
        best=best,
        cut=cut,
        whole=whole,
        current=current,
        largest=largest,
    )


def _is_uneven(answer: PricedCut | None) -> TypeGuard[PricedCut]:
    """Whether this is a cut into fragments that are no repeated size."""
    return answer is not None and answer.cut.schedule is not None


def _repeated(priced: PricedSizes, size: int, name: str = ADVISED) -> PricedCut:
    latency_us = priced.row(size)
    assert latency_us is not None
    return PricedCut(NamedCut(name, size), latency_us)


def _priced_cut(
    question: UncertaintyQuestion, draws: Draws, priced: PricedSizes, cut: NamedCut
) -> PricedCut:
    """The cut with its latencies, which most repeated sizes have already; one piece takes no more
    than it was measured to take.
    """
    total = question.message_bytes
    known = priced.row(min(cut.size_bytes or 0, total))
    latency_us = cut_us(draws, total, cut) if known is None else known
    if question.measured_us and cut.is_whole(total):
        latency_us = np.minimum(latency_us, _whole_us(question, draws))
    return PricedCut(cut, latency_us)


def _to_choose_among(priced: PricedSizes, answer: PricedCut | None) -> Floats:
    """The latencies of all repeated sizes and of an uneven answer, (choices, draws)."""
    if not _is_uneven(answer):
        return priced.latency_us
    return np.concatenate([priced.latency_us, answer.latency_us[None]])


def _perfect_information_us(priced: PricedSizes, answer: PricedCut | None) -> float:
    """What knowing the costs would save, as of all that is to choose among."""
    mean_us, best_us = float(priced.mean_us.min()), priced.best_us
    if _is_uneven(answer):
        mean_us = min(mean_us, mean_of(answer.latency_us))
        best_us = np.minimum(best_us, answer.latency_us)
    return saved_by_knowing_us(mean_us, best_us)


def _pairs(choices: Choices, priced: PricedSizes) -> list[tuple[PricedCut, PricedCut]]:
    """Two ways to cut whole messages, to be timed in turns: to cut or not, to change the setting or
    not, and the size that is best in the mean against the one that is best most often beside it.
    """
    times_best = np.bincount(priced.latency_us.argmin(axis=0), minlength=len(priced.sizes))
    times_best[np.searchsorted(priced.sizes, _size(choices.best))] = -1
    often = _repeated(priced, int(priced.sizes[times_best.argmax()]))
    found = [(choices.best, often)] if often.cut != choices.best.cut else []
    if choices.cut is None:
        return found
    others = [one for one in (choices.whole, choices.current) if one is not None]
    return [*found, *((choices.cut, other) for other in others)]


def _against(subject: PricedCut, others: Sequence[PricedCut]) -> tuple[Against, ...]:
    if not others:
        return ()
    found = savings_of(subject.latency_us, np.array([one.latency_us for one in others]))
    return tuple(
        Against(other.cut.name, other.cut.size_bytes, probability, saves)
        for other, (probability, saves) in zip(others, found, strict=True)
    )


def _size(cut: PricedCut) -> int:
    assert cut.cut.size_bytes is not None
    return cut.cut.size_bytes
