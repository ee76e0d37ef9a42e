"""What was found, as contract/audit.py sends it."""

from __future__ import annotations

from analysis.audit import ADVISED, SETTING, Audit
from analysis.setting_price import Priced, Span, span_of
from app.schemas.base import echoes, notices_out, revision_out
from app.schemas.settings import finite, steps_out
from app.schemas.settings_in_draws import settings_in_draws_out
from app.schemas.stages import aggregate_or_none, pipeline_or_none
from app.text.notices import setting_words
from app.text.regrets import format_change
from app.text.transferred import transfers_sentence
from contract.audit import AuditOut, AuditRowOut, AuditWorkloadOut, PricedOut, SpanOut
from domain.regret import Regret


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
