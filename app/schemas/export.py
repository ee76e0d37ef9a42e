"""What contract/export.py declares: what is asked as the domain has it, and exports as sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from app.questions.settings import Exported, ExportQuestion, ExportScope
from app.schemas.base import dump_json, parse_json, revision_out, same_named
from app.schemas.queries import MessageBytes, Query
from app.schemas.settings import finite, steps_out, workload_of
from app.schemas.settings_in_draws import settings_in_draws_out
from app.text.notices import setting_words
from contract.declare import words_of
from contract.export import (
    ChosenOut,
    ComparedSettingOut,
    ExportedOut,
    ExportIn,
    ExportOptionOut,
    ExportSizesOut,
    ExportTargetOut,
    ExportTargetsOut,
    ExportTimeLimitS,
    TargetOption,
    Weighted,
)
from contract.limits import DEFAULT_AUDIT_LIMIT_S, MAX_AUDIT_WORKLOAD_SIZES, MAX_EXPORT_OPTIONS
from contract.table import Digest
from contract.workload import Objective as ObjectiveName
from contract.workload import WorkloadSizeIn
from domain.errors import InconsistentInput, InvalidFields, InvalidInput
from domain.problem import FragmentLimits
from domain.regret import ChosenSetting, Objective, PricedSetting
from domain.units import format_bytes
from domain.workload import Workload
from exports.targets.registry import TARGETS
from exports.targets.target import Takes, Target

_MEANS = {word.place[0]: word.means for word in words_of(ExportIn)}


class ExportQuery(Query):
    """The parameters of an export: those of ExportIn, and the table that it is written by."""

    min_message_bytes: MessageBytes | None = Field(None, description=_MEANS["min_message_bytes"])
    max_message_bytes: MessageBytes | None = Field(None, description=_MEANS["max_message_bytes"])
    workload: Annotated[tuple[Weighted, ...], Field(max_length=MAX_AUDIT_WORKLOAD_SIZES)] = Field(
        (), description=_MEANS["workload"]
    )
    objective: ObjectiveName | None = Field(None, description=_MEANS["objective"])
    min_fragment_bytes: MessageBytes | None = Field(None, description=_MEANS["min_fragment_bytes"])
    max_fragment_bytes: MessageBytes | None = Field(None, description=_MEANS["max_fragment_bytes"])
    alignment_bytes: MessageBytes | None = Field(None, description=_MEANS["alignment_bytes"])
    max_fragments: MessageBytes | None = Field(None, description=_MEANS["max_fragments"])
    option: Annotated[tuple[TargetOption, ...], Field(max_length=MAX_EXPORT_OPTIONS)] = Field(
        (), description=_MEANS["option"]
    )
    time_limit_s: ExportTimeLimitS = Field(
        DEFAULT_AUDIT_LIMIT_S, description=_MEANS["time_limit_s"]
    )
    table: Digest | None = Field(None, description="a compiled table, not the active one")


def export_scope(asked: ExportIn | ExportQuery, target: str) -> ExportScope:
    """Return what is asked for. Raises InvalidInput."""
    minimum, maximum = asked.min_message_bytes, asked.max_message_bytes
    workload = _workload(asked) if asked.workload else None
    if workload is not None:
        minimum, maximum = workload.sizes[0].message_bytes, workload.sizes[-1].message_bytes
    if minimum is not None and maximum is not None and minimum > maximum:
        raise InconsistentInput(
            "expected min_message_bytes <= max_message_bytes", field="max_message_bytes"
        )
    return ExportScope(
        target=target,
        options=tuple(split_option(option) for option in asked.option),
        min_message_bytes=minimum,
        max_message_bytes=maximum,
        workload=workload,
        objective=None if asked.objective is None else Objective(asked.objective),
        limits=_limits(asked),
        time_limit_s=asked.time_limit_s,
    )


def _workload(asked: ExportIn | ExportQuery) -> Workload:
    if asked.min_message_bytes is not None or asked.max_message_bytes is not None:
        raise InconsistentInput(
            "expected a range of messages or a workload, not both", field="workload"
        )
    return workload_of_weights(asked.workload)


def _limits(asked: ExportIn | ExportQuery) -> FragmentLimits | None:
    given = {name: getattr(asked, name) for name in FragmentLimits.__slots__}
    given = {name: value for name, value in given.items() if value is not None}
    return FragmentLimits(**given) if given else None


def workload_of_weights(weighted: Sequence[str]) -> Workload:
    """Return the workload of `message_bytes:weight`, once each or repeated. Raises InvalidInput and
    InconsistentInput.
    """
    if not 1 <= len(weighted) <= MAX_AUDIT_WORKLOAD_SIZES:
        raise InvalidInput(
            f"expected 1 to {MAX_AUDIT_WORKLOAD_SIZES} message sizes", field="workload"
        )
    pairs = [pair.split(":") for pair in weighted]
    try:
        given = ({"message_bytes": int(size), "weight": float(weight)} for size, weight in pairs)
        sizes = [parse_json(WorkloadSizeIn, dump_json(size)) for size in given]
    except (ValueError, InvalidFields):
        raise InvalidInput("expected sizes and weights, as 1048576:700", field="workload") from None
    return workload_of(sizes)


def weights_of(sizes: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    """Return the sizes and weights of a request as the query of an export has them."""
    return tuple(f"{size['message_bytes']}:{size['weight']!r}" for size in sizes)


def split_option(text: str) -> tuple[str, str]:
    """Return name and value of `name:value`."""
    name, _, value = text.partition(":")
    return name, value


# --- the targets ----------------------------------------------------------------------------------


def export_target_out(target: Target) -> ExportTargetOut:
    """Return a target as it is sent."""
    takes_sizes = target.takes in (Takes.ONE_SIZE, Takes.SIZE_STEPS)
    return ExportTargetOut(
        name=target.name,
        title=target.title,
        takes=target.takes.value,
        suffix=target.suffix,
        media_type=target.media_type,
        verified_by=target.verified_by or None,
        grammar=target.grammar,
        is_audited=target.read is not None,
        sizes=same_named(ExportSizesOut, target.sizes) if takes_sizes else None,
        options=tuple(
            ExportOptionOut(
                option.name,
                option.default,
                option.meaning,
                option.choices,
                "" if option.choices else option.pattern,
            )
            for option in target.options
        ),
    )


def export_targets_out() -> ExportTargetsOut:
    """Return every target, in the order of their names."""
    named = sorted(TARGETS, key=lambda target: target.name)
    return ExportTargetsOut(tuple(map(export_target_out, named)))


# --- an export, out -------------------------------------------------------------------------------


def _compared(priced: PricedSetting | None) -> ComparedSettingOut | None:
    if priced is None:
        return None
    return ComparedSettingOut(
        steps=steps_out(priced.setting),
        time_regret=finite(priced.time_regret),
        mean_regret=finite(priced.mean_regret),
        worst_regret=finite(priced.worst_regret),
    )


def chosen_out(chosen: ChosenSetting | None) -> ChosenOut | None:
    """Return the chosen sizes as they are sent, None where none were chosen."""
    if chosen is None:
        return None
    return ChosenOut(
        steps=steps_out(chosen.setting),
        objective=chosen.objective.value,
        time_regret=finite(chosen.time_regret),
        time_at_most=finite(chosen.time_at_most),
        mean_regret=finite(chosen.mean_regret),
        mean_at_most=finite(chosen.mean_at_most),
        worst_regret=finite(chosen.worst_regret),
        worst_at_most=finite(chosen.worst_at_most),
        is_partial=chosen.is_partial,
        default=_compared(chosen.default),
        wanted=_compared(chosen.wanted),
    )


def exported_out(question: ExportQuestion, made: Exported) -> ExportedOut:
    """Return an export as it is sent."""
    return ExportedOut(
        profile=revision_out(question.profile),
        target=question.target.name,
        file_name=made.file_name,
        media_type=made.media_type,
        text=made.content.decode(),
        chosen=chosen_out(made.chosen),
        uncertainty=settings_in_draws_out(
            made.in_draws, question.errors, _words(made), question.transfers
        ),
        is_gain_known=made.is_gain_known,
        warnings=made.warnings,
    )


def _words(made: Exported) -> dict[str, str]:
    """What the chosen sizes and those beside them are, by their names in draws."""
    if made.chosen is None or made.in_draws is None:
        return {}
    others = made.in_draws.settings[1:]
    words = {setting.name: format_bytes(int(setting.name)) for setting in others}
    return {made.in_draws.settings[0].name: setting_words(made.chosen.setting), **words}


def render_exported(question: ExportQuestion, made: Exported) -> bytes:
    """Return the JSON of an export, as it is sent and stored."""
    return dump_json(exported_out(question, made))
