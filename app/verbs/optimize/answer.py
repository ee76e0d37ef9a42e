"""What was found of one message, and how it is sent: as contract/optimize.py declares it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import solvers
from analysis.premise import words_taken_as_known
from analysis.repeated_sizes import admits
from analysis.size_curve import SizeChoice, SizePoint
from analysis.transferred import MeasuredChoice, choice_of
from app.questions.question import PreparedQuestion, notices_of_costs
from app.schemas.base import dump_json, notices_out, revision_out, same_named, timestamp
from app.schemas.fits import fit_out, given_fit_out
from app.schemas.in_flight import machine_answer
from app.schemas.stages import (
    aggregate_or_none,
    constraints_out,
    pipeline_or_none,
    sensitivities_out,
)
from app.schemas.uncertainty import (
    measured_set_this,
    measured_uncertainty,
    set_this_out,
    uncertainty_out,
)
from app.text.in_flight import in_flight_notices
from app.text.measured_times import mean_times
from contract.fit import FitOut
from contract.optimize import (
    BaselineOut,
    BestFixedOut,
    BestSoFarOut,
    DeliveredOptimizeOut,
    OptimizeOut,
    StageDeliveryOut,
)
from domain.delivery import (
    Delivery,
    DeliveryRule,
    busy_us,
    ideal_us,
    store_and_forward_us,
    sustained_mb_per_s,
)
from domain.fit import BEYOND_MEASURED, beyond_measured, cut_sizes
from domain.in_flight import InFlight
from domain.machine import Machine
from domain.machine_timeline import busiest_stage as busiest_of_machine
from domain.pipeline import Pipeline
from domain.profile import ProfileRevision
from domain.schedule import busiest_stage
from domain.sensitivity import Sensitivities
from domain.solution import Notice, Solution
from domain.uncertain_answer import Uncertainty
from domain.uncertain_fit import measured_whole_us
from domain.uncertainty import ANSWER
from domain.verification import Contradiction
from models.identifiers import new_id

if TYPE_CHECKING:
    from solvers.default_settings import BaselineSet

_ERRORS_NOT_KNOWN = Notice(
    "errors_not_known",
    "how sure this answer is cannot be told: the errors of its fitted costs are not known. Measure "
    "more sizes of each stage, and fit them again, or give the deviation of the costs (relative)",
)
_ANSWER_NOT_IN_DRAWS = Notice(
    "answer_not_in_draws",
    "how sure this cut is was not computed: it has too many fragments of different sizes to be "
    "priced in every draw of the costs. What is said is of the cut that is advised instead",
)
_ANSWER_NOT_MEASURED = Notice(
    "answer_not_in_draws",
    "how sure this cut is was not computed: its fragments were not measured. What is said is of "
    "the cut that is advised instead",
)
_NOTHING_IN_DRAWS = Notice(
    "no_repeated_size",
    "how sure this answer is was not computed: no size can be repeated within the limits, so that "
    "there is nothing to compare it with",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A solution and what is reported with it."""

    id: str
    created_at: datetime
    prepared: PreparedQuestion
    solution: Solution
    baselines: BaselineSet
    bottleneck_stage: int | None
    solve_ms: float
    profile: ProfileRevision | None
    uncertainty: Uncertainty | None = None
    sensitivities: Sensitivities | None = None
    choice: SizeChoice | None = None
    measured: MeasuredChoice | None = None
    contradicts: Contradiction | None = None
    in_flight: InFlight | None = None


def conclude(
    prepared: PreparedQuestion,
    solution: Solution,
    *,
    solve_ms: float,
    baselines: BaselineSet | None = None,
    uncertainty: Uncertainty | None = None,
    sensitivities: Sensitivities | None = None,
    choice: SizeChoice | None = None,
    in_flight: InFlight | None = None,
) -> Answer:
    """Return a solution's answer: with what other settings cost and its busiest stage."""
    question, fit, size = prepared.question, prepared.fit, prepared.problem.message_bytes
    others = baselines or solvers.baselines(prepared.problem, current_bytes=question.current_bytes)
    best = others.best_repeat
    if choice is None and best is not None:
        point = SizePoint(best.size_bytes, best.fragments, best.latency_us)
        choice = SizeChoice(point, point, None)
    return Answer(
        id=new_id(),
        created_at=datetime.now(UTC),
        prepared=prepared,
        solution=solution,
        baselines=others.measured(None if fit is None else measured_whole_us(fit, size)),
        bottleneck_stage=bottleneck_stage(solution),
        solve_ms=solve_ms,
        profile=prepared.profile,
        uncertainty=uncertainty,
        sensitivities=sensitivities,
        choice=choice,
        measured=choice_of(
            prepared.verification,
            prepared.own,
            message_bytes=size,
            current_bytes=question.current_bytes,
            is_admitted=lambda one: admits(prepared.problem, one),
        ),
        in_flight=in_flight,
    )


def bottleneck_stage(solution: Solution) -> int | None:
    """Return the stage occupied longest; where cuts differ, each stage counts by the cut it sees.

    None of an aggregate, which knows how slow the slowest stage is and not which one it is.
    """
    pipeline = solution.problem.model
    if isinstance(pipeline, Machine):
        return busiest_of_machine(pipeline, solution.schedule.fragment_bytes)
    if not isinstance(pipeline, Pipeline):
        return None
    if solution.levels is None:
        return busiest_stage(pipeline, solution.schedule.fragment_bytes)
    busy = [
        sum(stage.time_us(size) for size in cut)
        for stage, cut in zip(pipeline.stages, solution.levels, strict=True)
    ]
    return busy.index(max(busy))


# --- as it is sent --------------------------------------------------------------------------------


def best_so_far_out(solution: Solution) -> BestSoFarOut:
    """Return a solution as a job shows it."""
    return BestSoFarOut(
        strategy=solution.strategy.value,
        message_bytes=solution.problem.message_bytes,
        fragment_bytes=solution.schedule.fragment_bytes,
        fragments=solution.schedule.fragments,
        latency_us=solution.latency_us,
        unrounded_latency_us=solution.unrounded_latency_us,
        lower_bound_us=solution.lower_bound_us,
        relative_gap=solution.relative_gap,
        rounding_gap=solution.rounding_gap,
        status=solution.status.value,
        limited_by=solution.limited_by,
        levels=solution.levels,
        latency_paper_us=solution.latency_paper_us,
    )


def optimize_out(answer: Answer) -> OptimizeOut:
    """Return an answer as it is sent and stored."""
    solution, sent = answer.solution, _cut_out(answer)
    pipeline = solution.problem.model
    if answer.in_flight is not None and isinstance(pipeline, Machine):
        return machine_answer(sent, pipeline, answer.in_flight)
    if solution.delivery is None or solution.levels is None or not isinstance(pipeline, Pipeline):
        return sent
    return _delivered_out(sent, pipeline, solution.delivery, solution.levels)


def _cut_out(answer: Answer) -> OptimizeOut:
    """Return the same without what stages choose."""
    solution = answer.solution
    problem, best = solution.problem, answer.baselines.best_repeat
    known = uncertainty_out(answer.uncertainty, answer.prepared.uncertain)
    set_this = set_this_out(
        answer.choice,
        known,
        problem.message_bytes,
        has_premise=bool(problem.model.premise),
        machine=problem.model if isinstance(problem.model, Machine) else None,
    )
    if answer.measured is not None:
        set_this = measured_set_this(answer.measured, set_this)
        known = None if known is None else measured_uncertainty(known, answer.measured)
    of_costs = notices_of_costs(problem.model, answer.prepared.fit)
    return OptimizeOut(
        id=answer.id,
        created_at=timestamp(answer.created_at),
        **vars(best_so_far_out(solution)),
        bottleneck_stage=answer.bottleneck_stage,
        best_fixed=same_named(BestFixedOut, best) if best else None,
        baselines=tuple(same_named(BaselineOut, entry) for entry in answer.baselines.entries),
        constraints=constraints_out(problem.limits),
        allow_refragmentation=problem.allow_refragmentation,
        pipeline=pipeline_or_none(problem.model),
        aggregate=aggregate_or_none(problem.model),
        fit=_fit_out(answer),
        profile=revision_out(answer.profile),
        solve_ms=round(answer.solve_ms, 3),
        warnings=notices_out(
            (*_notices_of(answer), *solution.notices, *_of_machine(answer), *of_costs)
        ),
        uncertainty=known,
        sensitivities=sensitivities_out(answer.sensitivities, problem.model),
        set_this=set_this,
    )


def _delivered_out(
    answer: OptimizeOut,
    pipeline: Pipeline,
    rules: Sequence[Delivery],
    levels: Sequence[tuple[int, ...]],
) -> DeliveredOptimizeOut:
    """Return an answer with what its stages do."""
    delivery = tuple(
        StageDeliveryOut(
            stage,
            rule.rule.value,
            rule.threshold if rule.rule is DeliveryRule.EAGER else None,
            rule.pulse_bytes,
            rule.max_pulse_bytes,
            len(pulses),
            busy,
        )
        for stage, (rule, pulses, busy) in enumerate(
            zip(rules, levels, busy_us(pipeline, levels), strict=True)
        )
    )
    return DeliveredOptimizeOut(
        **vars(answer),
        delivery=delivery,
        ideal_us=ideal_us(pipeline, answer.message_bytes),
        store_and_forward_us=store_and_forward_us(pipeline, answer.message_bytes),
        sustained_mb_per_s=sustained_mb_per_s(pipeline, levels),
    )


def _fit_out(answer: Answer) -> FitOut | None:
    """The fit that was asked about, or made: a profile names its own."""
    fitted, given = answer.prepared.fitted, answer.prepared.given
    if fitted is not None:
        return fit_out(fitted, None)
    return None if given is None else given_fit_out(given)


def render_answer(answer: Answer) -> bytes:
    """Return the JSON of an answer, as it is sent and stored."""
    return dump_json(optimize_out(answer))


# --- what it warns of first -----------------------------------------------------------------------


def _notices_of(answer: Answer) -> tuple[Notice, ...]:
    """Return what transfers said of the profile, sizes that were not measured, and what is not
    known of the answer's errors.
    """
    return (*_known(answer), *_unsure(answer))


def _of_machine(answer: Answer) -> Iterator[Notice]:
    """Yield what limits a machine, idles in it, and where its model is known to be off."""
    model, found = answer.solution.problem.model, answer.in_flight
    if isinstance(model, Machine) and found is not None:
        yield from in_flight_notices(model, found, answer.solution.latency_us)


def _known(answer: Answer) -> Iterator[Notice]:
    """Yield what transfers said of the profile, before all else, and sizes not measured."""
    solution, fit = answer.solution, answer.prepared.fit
    for against in (answer.contradicts, answer.prepared.verification):
        if against is not None:
            yield against.notice()
    cuts = solution.levels or (solution.schedule.fragment_bytes,)
    sizes = {size for cut in cuts for size in cut_sizes(cut)}
    if beyond := beyond_measured(sizes, fit.measured_bytes if fit else None):
        yield beyond


def _unsure(answer: Answer) -> tuple[Notice, ...]:
    """What is said where costs may be wrong and the answer cannot say how much that matters."""
    if answer.prepared.uncertain is None:
        return (_ERRORS_NOT_KNOWN,) if answer.prepared.fit is not None else ()
    if answer.uncertainty is None:
        return (_NOTHING_IN_DRAWS,)
    means = tuple(mean_times(answer.prepared.uncertain.model, answer.uncertainty))
    means = (*words_taken_as_known(answer.prepared.uncertain.model), *means)
    if answer.uncertainty.subject.name == ANSWER:
        return means
    is_long = not any(notice.code == BEYOND_MEASURED for notice in _known(answer))
    return (_ANSWER_NOT_IN_DRAWS if is_long else _ANSWER_NOT_MEASURED, *means)
