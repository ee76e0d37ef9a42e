"""What was found, as contract/audit.py sends it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from analysis.audit import ADVISED, SETTING, Audit
from analysis.setting_price import Priced, Span, span_of
from app.schemas.base import echoes, notices_out, revision_out
from app.schemas.settings import finite, steps_out
from app.schemas.settings_in_draws import settings_in_draws_out
from app.schemas.stages import aggregate_or_none, pipeline_or_none
from app.text.notices import setting_words
from app.text.regrets import format_change
from app.text.transferred import transfers_sentence
from contract.audit import (
    AdvisedCapOut,
    AuditedItemsOut,
    AuditOut,
    AuditRowOut,
    AuditWorkloadOut,
    BucketOut,
    CapRegretsOut,
    ItemsAuditOut,
    PricedOut,
    SpanOut,
)
from domain.regret import Regret

if TYPE_CHECKING:
    from analysis.item_audit import ItemAudit, Regrets
    from analysis.items import ItemsSolved
    from app.questions.items import ItemsAcross
    from domain.items import FillRule, ItemCut, ItemProblem
    from domain.solution import Notice


def audited(audit: Audit) -> AuditOut:
    """Return an audit as it is sent."""
    question, scope = audit.question, audit.question.scope
    repeats, schedules = audit.repeats, audit.schedules
    return AuditOut(
        pipeline=pipeline_or_none(question.model),
        aggregate=aggregate_or_none(question.model),
        profile=revision_out(question.profile),
        **echoes(AuditOut, scope),
        workload=AuditWorkloadOut(audit.workload.words, len(audit.workload.sizes)),
        worst_of=audit.worst_of,
        objective=scope.decides_by.value,
        setting=priced_out(audit.priced),
        at_powers=tuple(map(_row_out, audit.at_powers)),
        best_size=priced_out(audit.single),
        best_size_steps=priced_out(audit.size_steps) if audit.size_steps else None,
        best_repeats=finite(repeats.mean.at_least if repeats else None),
        schedules_at_most=finite(schedules.mean.at_most),
        over=scope.reference.value,
        verdict=None if audit.verdict is None else audit.verdict.value,
        is_kept=audit.is_kept,
        changes=_changes(audit),
        audit_ms=round(audit.audit_ms, 3),
        fit_warnings=notices_out(question.fit_notices),
        warnings=notices_out(audit.notices),
        uncertainty=settings_in_draws_out(
            audit.over_draws, question.errors, _words(audit), question.transfers
        ),
        best_repeats_at_most=finite(repeats.mean.at_most if repeats else None),
        best_repeats_time=_span_out(repeats.time) if repeats else None,
        schedules_time_at_most=finite(schedules.time.at_most),
    )


def _span_out(span: Span) -> SpanOut:
    return SpanOut(finite(span.at_least), finite(span.at_most))


def _row_out(regret: Regret) -> AuditRowOut:
    best = regret.best
    return AuditRowOut(
        message_bytes=regret.message_bytes,
        size_bytes=regret.size_bytes,
        fragments=-(-regret.message_bytes // regret.size_bytes),
        latency_us=regret.latency_us,
        best_us=best.latency_us,
        lower_bound_us=best.lower_bound_us,
        best_repeat_bytes=best.repeat_bytes,
        best_repeat_us=best.repeat_us,
        regret=_span_out(span_of(regret)),
    )


def priced_out(priced: Priced) -> PricedOut:
    """Return a setting with its regret as it is sent."""
    return PricedOut(
        steps=steps_out(priced.setting),
        time=_span_out(priced.time),
        mean=_span_out(priced.mean),
        worst=_row_out(priced.worst),
        worst_at_most=finite(priced.worst_at_most),
    )


def _changes(audit: Audit) -> tuple[str, ...]:
    """What to change, in words: what transfers say, where they decide in the place of the model."""
    say = audit.question.transfers
    if say is not None:
        return (transfers_sentence(say),)
    return tuple(format_change(audit, change) for change in audit.changes)


def _words(audit: Audit) -> dict[str, str]:
    """What the setting and those that may be advised are, by their names in draws."""
    priced = (audit.priced, audit.single, audit.size_steps)
    named = zip((SETTING, *ADVISED), priced, strict=True)
    return {name: setting_words(found.setting) for name, found in named if found is not None}


# --- caps of items --------------------------------------------------------------------------------


def audited_items(audit: ItemAudit, across: Sequence[ItemsAcross]) -> ItemsAuditOut:
    """Return an audit of a cap as it is sent."""
    from analysis.item_audit import ItemAdvice
    from app.schemas.items import fill_out
    from app.schemas.stages import pipeline_out
    from app.text.item_audit import change_words

    asked = audit.question
    said = [notice for one, solved in _pairs(across, audit) for notice in _said(one, solved)]
    return ItemsAuditOut(
        pipeline=pipeline_out(asked.problems[0].pipeline),
        profile=revision_out(across[0].found.profile),
        cap_bytes=asked.cap_bytes,
        fill=fill_out(asked.fill),
        objective=asked.objective.value,
        setting=_regrets_out(audit.regrets),
        best_cap=_advised_out(audit),
        sequences=tuple(
            _sequence_out(solved, weight, asked.fill)
            for solved, weight in zip(audit.sequences, asked.weights, strict=True)
        ),
        max_regret=asked.max_regret,
        over=asked.reference.value,
        verdict=None if audit.verdict is None else audit.verdict.value,
        is_kept=audit.is_kept,
        advice="keep" if audit.changes == (ItemAdvice.KEEP,) else "set",
        changes=tuple(change_words(audit, change) for change in audit.changes),
        audit_ms=round(audit.audit_ms, 3),
        warnings=notices_out(dict.fromkeys(said)),
    )


def _pairs(
    across: Sequence[ItemsAcross], audit: ItemAudit
) -> Iterator[tuple[ItemsAcross, ItemsSolved]]:
    return zip(across, audit.sequences, strict=True)


def _said(one: ItemsAcross, solved: ItemsSolved) -> tuple[Notice, ...]:
    """What is said of the model, for the fragments that the cap in use makes."""
    return one.notices(one.problem.sequence.fragment_bytes(_cut_of(solved)))


def _cut_of(solved: ItemsSolved) -> ItemCut:
    assert solved.current is not None, "an audit has a cap in use"
    return solved.current.cut


def _regrets_out(found: Regrets) -> CapRegretsOut:
    spans = (found.time, found.mean, found.worst)
    return CapRegretsOut(*map(_span_out, spans))


def _advised_out(audit: ItemAudit) -> AdvisedCapOut | None:
    from analysis.items import cap_mib

    best = audit.best_cap
    if best is None:
        return None
    return AdvisedCapOut(
        from_bytes=best.from_bytes,
        to_bytes=best.to_bytes,
        cap_mb=cap_mib(best.from_bytes, best.to_bytes),
        regret=_regrets_out(best.regrets),
        layouts=best.layouts,
        is_complete=best.is_complete,
    )


def _sequence_out(solved: ItemsSolved, weight: float, fill: FillRule) -> AuditedItemsOut:
    from analysis.item_audit import excess_span
    from analysis.items import item_path
    from app.schemas.items import best_cap_out, items_out, limit_out, set_items_out

    solution, cut = solved.solution, _cut_of(solved)
    problem = solution.problem
    latency_us, best_us = problem.latency_us(cut), solved.best_us
    regret = excess_span(latency_us, best_us, solution.lower_bound_us)
    return AuditedItemsOut(
        items=items_out(problem.sequence),
        weight=weight,
        message_bytes=problem.sequence.total_bytes,
        latency_us=latency_us,
        buckets=tuple(_buckets(problem, cut)),
        limit=limit_out(problem, item_path(problem, cut)),
        best_us=best_us,
        lower_bound_us=solution.lower_bound_us,
        status=solution.status.value,
        fragment_items=solution.fragment_items,
        set_items=set_items_out(fill, solved),
        best_cap=best_cap_out(solved.solution.problem, solved.best_cap, best_us),
        regret=_span_out(regret),
    )


def _buckets(problem: ItemProblem, cut: ItemCut) -> Iterator[BucketOut]:
    """Each fragment of a cut, and when it is where."""
    times, sequence = problem.simulate(cut), problem.sequence
    sizes = sequence.fragment_bytes(cut)
    for place, (first, last) in enumerate(pairwise((0, *cut))):
        yield BucketOut(
            first_item=sequence.label(first),
            last_item=sequence.label(last - 1),
            items=last - first,
            bytes=sizes[place],
            ready_us=times.ready_us[place],
            begins_us=times.in_stages.start_us[place][0],
            done_us=times.in_stages.exit_us[place][-1],
        )
