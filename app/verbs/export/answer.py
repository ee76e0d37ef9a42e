"""Export targets and exports, as contract/export.py sends them."""

from __future__ import annotations

from app.questions.settings import Exported, ExportQuestion
from app.schemas.base import revision_out, same_named
from app.schemas.settings import finite, steps_out
from app.schemas.settings_in_draws import settings_in_draws_out
from app.text.notices import setting_words
from contract.export import (
    ChosenOut,
    ComparedSettingOut,
    ExportedOut,
    ExportOptionOut,
    ExportSizesOut,
    ExportTargetOut,
    ExportTargetsOut,
)
from domain.regret import ChosenSetting, PricedSetting
from domain.units import format_bytes
from exports.targets.registry import TARGETS
from exports.targets.target import Takes, Target

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
            made.over_draws, question.errors, _words(made), question.transfers
        ),
        is_gain_known=made.is_gain_known,
        warnings=made.warnings,
    )


def _words(made: Exported) -> dict[str, str]:
    """What the chosen sizes and those beside them are, by their names in draws."""
    if made.chosen is None or made.over_draws is None:
        return {}
    others = made.over_draws.settings[1:]
    words = {setting.name: format_bytes(int(setting.name)) for setting in others}
    return {made.over_draws.settings[0].name: setting_words(made.chosen.setting), **words}
