"""What contract/audit.py declares, as the domain has it: a setting, and what it is audited over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from analysis.audit import AuditScope, Reference
from app.questions.question import Question
from app.schemas.base import read_request
from app.schemas.settings import workload_of
from app.schemas.source import costs_question
from app.schemas.uncertainty import draws_of
from app.text.units import format_setting_text
from contract.audit import AuditIn
from contract.setting import AnySettingIn, ConfiguredIn, StaticIn, WholeIn
from domain.errors import InconsistentInput, InvalidInput
from domain.fragment_setting import FragmentSetting, SettingStep
from domain.regret import Objective, SizeRule
from domain.workload import DEFAULT_MAX_MESSAGE_BYTES, default_min_message_bytes
from exports.targets.registry import target_named
from exports.targets.target import Takes

MAX_TITLE = 40  # characters of a setting


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
    question = costs_question(asked, asked.max_message_bytes or DEFAULT_MAX_MESSAGE_BYTES)
    draws = None if asked.uncertainty is None else draws_of(asked.uncertainty)
    return replace(question, uncertainty=draws)


def _setting(given: AnySettingIn) -> FragmentSetting:
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


def title(request: bytes) -> str:
    """Return what a job is called on its page."""
    return title_of(format_setting_text(read_request(AuditIn, request).setting))


def title_of(setting: str) -> str:
    """Return what an audit of this setting, as it is typed, is called."""
    named = setting or "a configuration"
    return f"Auditing {named if len(named) <= MAX_TITLE else 'steps by message size'}"
