"""What contract/audit.py declares, as the domain has it, and what was found as it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from analysis.audit import ADVISED, SETTING, Audit, AuditScope, Reference
from analysis.setting_price import Priced, Span, span_of
from app.questions.question import Question
from app.schemas.base import dump_json, notices_out, revision_out, same_named
from app.schemas.optimize import optimize_question
from app.schemas.settings_in_draws import settings_in_draws_out
from app.schemas.source import given_source
from app.schemas.stages import aggregate_or_none, pipeline_or_none
from app.schemas.uncertainty import draws_of
from app.text.notices import setting_words
from app.text.regrets import changes_title, format_change
from app.text.transferred import transfers_sentence
from contract.audit import AuditIn, AuditOut, AuditRowOut, AuditWorkloadOut, PricedOut, SpanOut
from contract.optimize import OptimizeIn
from contract.setting import ConfiguredIn, SettingStepOut, StaticIn, StepsIn, WholeIn
from contract.workload import WorkloadSizeIn
from domain.errors import InconsistentInput, InvalidInput
from domain.fragment_setting import FragmentSetting, SettingStep
from domain.regret import Objective, Regret, SizeRule
from domain.workload import DEFAULT_MAX_MESSAGE_BYTES, Workload, default_min_message_bytes
from exports.targets.registry import target_named
from exports.targets.target import Takes


def audit_scope(asked: AuditIn) -> AuditScope:
    """Return what is audited. Raises InvalidInput."""
    workload = None if asked.workload is None else workload_of(asked.workload)
    maximum = workload.sizes[-1].message_bytes if workload else DEFAULT_MAX_MESSAGE_BYTES
    if not workload and asked.min_message_bytes is not None:
        maximum = max(maximum, asked.min_message_bytes)
    minimum = (
        workload.sizes[0].message_bytes
        if workload
        else default_min_message_bytes(asked.max_message_bytes or maximum)
    )
    return AuditScope(
        setting=_setting(asked.setting),
        min_message_bytes=asked.min_message_bytes or minimum,
        max_message_bytes=asked.max_message_bytes or maximum,
        workload=workload,
        objective=None if asked.objective is None else Objective(asked.objective),
        max_regret=asked.max_regret,
        in_draws=asked.in_draws,
        reference=Reference(asked.over),
        time_limit_s=asked.time_limit_s,
        **_library(asked),
    )


def audit_question_of(asked: AuditIn) -> Question:
    """Return the question that finds or fits the model. Raises InvalidInput."""
    question = optimize_question(
        OptimizeIn(
            message_bytes=asked.max_message_bytes or DEFAULT_MAX_MESSAGE_BYTES,
            **given_source(asked),
        )
    )
    draws = None if asked.uncertainty is None else draws_of(asked.uncertainty)
    return replace(question, uncertainty=draws)


def workload_of(sizes: Sequence[WorkloadSizeIn]) -> Workload:
    """Return the workload that is given. Raises InconsistentInput."""
    weights = [(size.message_bytes, size.weight) for size in sizes]
    try:
        return Workload.weighted(weights, f"the given workload of {len(weights)} sizes")
    except InvalidInput as refusal:
        raise InconsistentInput(refusal.detail, field="workload") from None


def _setting(given: StaticIn | WholeIn | StepsIn | ConfiguredIn) -> FragmentSetting:
    """Return the setting. Raises InvalidInput, also for steps that do not ascend from 1."""
    if isinstance(given, ConfiguredIn):
        return read_configuration(given.configuration.target, given.configuration.content)
    if isinstance(given, StaticIn):
        return FragmentSetting.always(given.static_bytes)
    if isinstance(given, WholeIn):
        return FragmentSetting.always(None)
    steps = tuple(SettingStep(step.from_bytes, step.size_bytes) for step in given.steps)
    try:
        return FragmentSetting(steps)
    except InvalidInput as refusal:
        raise InconsistentInput(refusal.detail, field="setting.steps") from None


def _library(asked: AuditIn) -> dict[str, Any]:
    """Return what the configuration's library can be set to, and so be advised."""
    if not isinstance(asked.setting, ConfiguredIn):
        return {"rule": SizeRule(), "takes_size_steps": True}
    target = target_named(asked.setting.configuration.target)
    return {"rule": target.sizes, "takes_size_steps": target.takes is not Takes.ONE_SIZE}


def read_configuration(name: str, content: str) -> FragmentSetting:
    """Return the setting in a library's configuration. Raises InvalidInput that names the field."""
    at = "setting.configuration"
    try:
        target = target_named(name)
    except InvalidInput as refusal:
        raise InvalidInput(refusal.detail, field=f"{at}.target") from None
    if target.read is None:
        raise InvalidInput(f"{target.name} cannot be read back", field=f"{at}.target")
    try:
        return target.read(content)
    except InvalidInput as refusal:
        raise InconsistentInput(refusal.detail, field=f"{at}.content") from None


# --- the answer -----------------------------------------------------------------------------------


def audit_out(audit: Audit) -> AuditOut:
    """Return an audit as it is sent."""
    question, scope = audit.question, audit.question.scope
    repeats, schedules = audit.repeats, audit.schedules
    return AuditOut(
        pipeline=pipeline_or_none(question.model),
        aggregate=aggregate_or_none(question.model),
        profile=revision_out(question.profile),
        min_message_bytes=scope.min_message_bytes,
        max_message_bytes=scope.max_message_bytes,
        workload=AuditWorkloadOut(audit.workload.words, len(audit.workload.sizes)),
        worst_of=audit.worst_of,
        objective=scope.decides_by.value,
        setting=priced_out(audit.priced),
        at_powers=tuple(map(_row_out, audit.at_powers)),
        best_size=priced_out(audit.single),
        best_size_steps=priced_out(audit.size_steps) if audit.size_steps else None,
        best_repeats=finite(repeats.mean.at_least if repeats else None),
        schedules_at_most=finite(schedules.mean.at_most),
        max_regret=scope.max_regret,
        over=scope.reference.value,
        verdict=None if audit.verdict is None else audit.verdict.value,
        is_kept=audit.is_kept,
        changes=_changes(audit),
        audit_ms=round(audit.audit_ms, 3),
        fit_warnings=notices_out(question.fit_notices),
        warnings=notices_out(audit.notices),
        in_draws=scope.in_draws,
        uncertainty=settings_in_draws_out(
            audit.in_draws, question.errors, _words(audit), question.transfers
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


def title_of_changes(audit: AuditOut) -> str:
    """Return what heads the changes."""
    known = audit.uncertainty
    # In the place of the draws' sentence and of the changes alike stands what transfers say.
    by_transfers = known is not None and audit.changes == (known.sentence,)
    decided = (known.decision, known.reason) if known else (None, None)
    return changes_title(*decided, by_transfers=by_transfers)


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


def render_audit(audit: Audit) -> bytes:
    """Return the JSON of an audit, as it is sent and stored."""
    return dump_json(audit_out(audit))


def steps_out(setting: FragmentSetting) -> tuple[SettingStepOut, ...]:
    """Return the steps of a setting as they are sent."""
    return tuple(same_named(SettingStepOut, step) for step in setting.steps)


def finite(share: float | None) -> float | None:
    """Return a regret, None for one without end: of an optimum of the model that takes no time."""
    return share if share is not None and isfinite(share) else None
