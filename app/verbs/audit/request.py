"""What contract/audit.py declares, as the domain has it: a setting, and what it is audited over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.audit import AuditScope, Reference
from app.questions.question import Question
from app.schemas.base import read_request
from app.schemas.settings import workload_of
from app.schemas.source import costs_question
from app.schemas.uncertainty import draws_of
from app.text.units import format_setting_text
from contract.audit import AuditIn, SequenceIn
from contract.setting import AnySettingIn, ConfiguredIn, StaticIn, WholeIn
from domain.errors import InconsistentInput, InvalidInput, ItemsDeclined
from domain.fragment_setting import FragmentSetting, SettingStep
from domain.items import FillRule
from domain.regret import Objective, SizeRule
from domain.workload import DEFAULT_MAX_MESSAGE_BYTES, default_min_message_bytes
from exports.targets.registry import target_named
from exports.targets.target import Takes

if TYPE_CHECKING:
    from analysis.item_audit import ItemAuditQuestion
    from domain.items import ItemProblem, ItemSequence

_NOT_OF_ITEMS = {
    "min_message_bytes": "items say which messages there are",
    "max_message_bytes": "items say which messages there are",
    "workload": "items say which messages there are: sequences have weights",
    "in_draws": "cuts between items are not priced in draws of the costs",
    "uncertainty": "cuts between items are not priced in draws of the costs",
    "aggregate": "items need the time of every stage, and this is an aggregate",
}
_IN_BYTES = "the cap in use is static_bytes, or whole: {} are of messages that are cut at any byte"
MAX_TITLE = 40  # characters of a setting


@dataclass(frozen=True, slots=True)
class AuditedCap:
    """A cap in use, None for all items in one fragment, how it is filled, and the sequences that it
    cuts, with their weights and their places in the request.
    """

    cap_bytes: int | None
    fill: FillRule
    sequences: tuple[ItemSequence, ...]
    weights: tuple[float, ...]
    places: tuple[str, ...]


def is_of_items(asked: AuditIn) -> bool:
    """Return whether a cap of items is audited."""
    return asked.items is not None or asked.sequences is not None


def audited_cap(asked: AuditIn) -> AuditedCap:
    """Return the cap of items that is audited. Raises ItemsDeclined for what items do not go with,
    and InvalidInput.
    """
    from app.schemas.items import fill_of, refuse_beside_items, sequence_of

    refuse_beside_items(_NOT_OF_ITEMS, asked.said())
    if asked.items is not None and asked.sequences is not None:
        raise InconsistentInput("expected one of items and sequences", field="sequences")
    given = asked.sequences or []
    places = tuple(f"sequences.{place}.items" for place in range(len(given)))
    if asked.items is not None:
        given, places = [SequenceIn(items=asked.items)], ("items",)
    weights = tuple(one.weight for one in given)
    if not sum(weights) > 0.0:
        raise InconsistentInput("expected a weight above 0", field="sequences")
    return AuditedCap(
        _cap_of(asked.setting),
        fill_of(asked.fill) or FillRule(),
        tuple(sequence_of(one.items, place) for one, place in zip(given, places, strict=True)),
        weights,
        places,
    )


def _cap_of(given: AnySettingIn) -> int | None:
    """The cap in use. Raises ItemsDeclined for settings of messages that are cut at any byte."""
    if isinstance(given, StaticIn):
        return given.static_bytes
    if isinstance(given, WholeIn):
        return None
    name = "configuration" if isinstance(given, ConfiguredIn) else "steps"
    words = "a library's sizes" if name == "configuration" else "steps by message size"
    raise ItemsDeclined(_IN_BYTES.format(words), field=f"setting.{name}")


def cap_question(
    asked: AuditIn, cap: AuditedCap, problems: Sequence[ItemProblem]
) -> ItemAuditQuestion:
    """Return the question about sequences across stages that were found."""
    from analysis.item_audit import ItemAuditQuestion

    return ItemAuditQuestion(
        tuple(problems),
        cap.weights,
        cap.cap_bytes,
        cap.fill,
        Objective.TIME if asked.objective is None else Objective(asked.objective),
        asked.max_regret,
        Reference(asked.over),
        asked.time_limit_s,
    )


def audit_scope(asked: AuditIn) -> AuditScope:
    """Return what is audited. Raises InvalidInput."""
    if asked.fill is not None:
        raise InconsistentInput("fill goes with items alone", field="fill")
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
    asked = read_request(AuditIn, request)
    named = title_of(format_setting_text(asked.setting))
    return f"{named} as a cap of items" if is_of_items(asked) else named


def title_of(setting: str) -> str:
    """Return what an audit of this setting, as it is typed, is called."""
    named = setting or "a configuration"
    return f"Auditing {named if len(named) <= MAX_TITLE else 'steps by message size'}"
