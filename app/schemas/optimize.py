"""What contract/optimize.py declares, as the domain has it, and what was found as it is sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from app.questions.optimize import Answer
from app.questions.question import Question, UncertaintyOptions, notices_of_costs
from app.questions.transfers import TransfersQuestion
from app.schemas.base import (
    dump_json,
    notices_out,
    read_output,
    revision_out,
    same_named,
    timestamp,
)
from app.schemas.fits import fit_out, given_fit_out
from app.schemas.source import options_of, source_of
from app.schemas.stages import (
    aggregate_or_none,
    constraints_out,
    limits_of,
    pipeline_or_none,
    sensitivities_out,
)
from app.schemas.sureness import notices_of
from app.schemas.transfers import transfers_question
from app.schemas.uncertainty import (
    draws_of,
    measured_set_this,
    measured_uncertainty,
    set_this_out,
    uncertainty_out,
)
from app.text.numbers import format_count, format_figure
from app.text.units import format_time
from contract.fit import FitOut
from contract.optimize import (
    BaselineOut,
    BestFixedOut,
    BestSoFarOut,
    DeliveredOptimizeOut,
    OptimizeIn,
    OptimizeOut,
    StageDeliveryOut,
)
from contract.source import SOURCES
from domain.default_sizes import CURRENT
from domain.delivery import (
    Delivery,
    DeliveryRule,
    busy_us,
    ideal_us,
    store_and_forward_us,
    sustained_mb_per_s,
)
from domain.errors import InconsistentInput, UnreadableRecord
from domain.pipeline import Pipeline, unique_names
from domain.solution import Solution, Strategy

_OWN_TRANSFERS = frozenset({"message_bytes", "transfers", "uncertainty"})


def optimize_question(asked: OptimizeIn) -> Question:
    """Return the question. Raises InvalidInput for sources or fields that exclude others."""
    return Question(
        message_bytes=asked.message_bytes,
        source=source_of(asked),
        strategy=Strategy(asked.strategy),
        static_bytes=asked.static_bytes,
        limits=limits_of(asked.constraints),
        allow_refragmentation=asked.allow_refragmentation,
        relative_gap=asked.relative_gap,
        time_limit_s=asked.time_limit_s,
        save_as=asked.save_as,
        fit_options=options_of(asked),
        uncertainty=draws_of(asked.uncertainty) if asked.uncertainty else None,
        transfers=_transfers_question(asked),
    )


def alone_question(asked: OptimizeIn) -> TransfersQuestion | None:
    """Return what is asked of own transfers alone, None of a question about a model. Raises
    InvalidInput.
    """
    if asked.transfers is None or any(getattr(asked, name) is not None for name in SOURCES):
        return None
    for name in sorted(asked.said().keys() - _OWN_TRANSFERS):
        raise InconsistentInput(
            "own transfers decide alone, among the sizes that were transferred", field=name
        )
    return _transfers_question(asked)


def _transfers_question(asked: OptimizeIn) -> TransfersQuestion | None:
    if asked.transfers is None:
        return None
    known = draws_of(asked.uncertainty) if asked.uncertainty else UncertaintyOptions()
    return transfers_question(
        asked.transfers,
        asked.message_bytes,
        current_bytes=known.current_bytes,
        sends_whole=known.sends_whole,
    )


# --- the answer -----------------------------------------------------------------------------------


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
    )
    if answer.measured is not None:
        set_this = measured_set_this(answer.measured, set_this)
        known = None if known is None else measured_uncertainty(known, answer.measured)
    of_costs = notices_of_costs(problem.model, answer.prepared.fit)
    return OptimizeOut(
        id=answer.id,
        created_at=timestamp(answer.created_at),
        strategy=solution.strategy.value,
        message_bytes=problem.message_bytes,
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
        warnings=notices_out((*notices_of(answer), *solution.notices, *of_costs)),
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


def delivery_facts(answer: OptimizeOut) -> Iterator[tuple[str, str]]:
    """Yield labels and values of what its stages choose, as a person reads it; else nothing."""
    if not isinstance(answer, DeliveredOptimizeOut):
        return
    for stage in answer.delivery:
        eager = f"eager from {format_count(stage.threshold_bytes or 1)} bytes"
        static = f"{format_count(stage.pulse_bytes or 0)} bytes each"
        what = static if stage.threshold_bytes is None else eager
        noun = "pulse" if stage.pulses == 1 else "pulses"
        yield f"stage {stage.stage}", f"{format_count(stage.pulses)} {noun}, {what}"
    yield "cut-through", f"{format_time(answer.ideal_us)} at best"
    yield "whole", f"{format_time(answer.store_and_forward_us)}, store and forward"
    if answer.sustained_mb_per_s is not None:
        yield "back to back", f"{format_figure(answer.sustained_mb_per_s)} MB/s at most"


def read_answer(body: bytes) -> OptimizeOut:
    """Return what a stored answer says, of stages that choose their pulses too.

    Raises UnreadableRecord for one of another version.
    """
    try:
        return read_output(OptimizeOut, body)
    except UnreadableRecord:
        return read_output(DeliveredOptimizeOut, body)


def current_of(answer: OptimizeOut) -> int | None:
    """Return the size that is repeated today, bytes; None where the answer does not have it."""
    found = next((one for one in answer.baselines if one.name == CURRENT), None)
    return None if found is None else found.static_bytes or answer.message_bytes


def _fit_out(answer: Answer) -> FitOut | None:
    """The fit that was asked about, or made: a profile names its own."""
    fitted, given = answer.prepared.fitted, answer.prepared.given
    if fitted is not None:
        return fit_out(fitted, None)
    return None if given is None else given_fit_out(given)


def render_answer(answer: Answer) -> bytes:
    """Return the JSON of an answer, as it is sent and stored."""
    return dump_json(optimize_out(answer))


def with_unique_names(answer: OptimizeOut) -> OptimizeOut:
    """Return an answer whose stages have names of their own: the same one where they have."""
    if answer.pipeline is None:
        return answer
    stages = answer.pipeline.stages
    names = [stage.name for stage in stages]
    if len(set(names)) == len(names):
        return answer
    renamed = tuple(
        replace(stage, name=name) for stage, name in zip(stages, unique_names(names), strict=True)
    )
    return replace(answer, pipeline=replace(answer.pipeline, stages=renamed))
