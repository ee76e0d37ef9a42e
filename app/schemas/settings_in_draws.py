"""What contract/settings_in_draws.py declares, made of settings over draws of the costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from analysis.transferred import TransfersSay
from app.schemas.uncertainty import MEASURED_PROBABILITY, quantiles_out, regret_out
from app.text.notices import settings_sentence
from app.text.transferred import transfers_sentence
from contract.settings_in_draws import SettingInDrawsOut, SettingsInDrawsOut
from contract.uncertainty import QuantilesOut
from domain.uncertain_answer import DecisionCode, SettingsInDraws
from domain.uncertainty import KnownErrors
from domain.units import format_bytes

TRANSFERRED = "transferred"  # what is advised where none of the settings has the size


def settings_in_draws_out(
    found: SettingsInDraws | None,
    errors: KnownErrors | None,
    words: Mapping[str, str],
    say: TransfersSay | None = None,
) -> SettingsInDrawsOut | None:
    """Return the same as it is sent; `words` say what each setting is, and `say` is there where
    transfers decide in the place of the model.
    """
    if found is None or errors is None:
        return None
    drawn = SettingsInDrawsOut(
        source=found.source,
        draws=found.draws,
        seed=str(found.seed),
        messages=found.messages,
        decision=found.code,
        reason=found.reason,
        sentence=settings_sentence(found, errors, words),
        advised=found.advised,
        gain=quantiles_out(found.gain),
        probability=found.probability,
        margin=found.thresholds.margin,
        settings=tuple(
            SettingInDrawsOut(setting.name, regret_out(setting.regret), setting.good, setting.kept)
            for setting in found.settings
        ),
    )
    return drawn if say is None else measured_settings(drawn, say, words)


def measured_settings(
    drawn: SettingsInDrawsOut, say: TransfersSay, words: Mapping[str, str] | None = None
) -> SettingsInDrawsOut:
    """Return the same where the transfers of its profile decide, and not the draws."""
    choice = say.choice
    is_set = choice is not None and say.code is DecisionCode.SET_IT
    low, high = (choice.gain if is_set and choice is not None else None) or (0.0, 0.0)
    advised = drawn.settings[0].name
    if is_set and choice is not None:
        size = format_bytes(choice.size_bytes)
        named = (name for name, words_of in (words or {}).items() if words_of == size)
        advised = next(named, TRANSFERRED)
    return replace(
        drawn,
        decision=say.code,
        reason=say.reason,
        sentence=transfers_sentence(say),
        advised=advised,
        gain=QuantilesOut(low, (low + high) / 2.0, high),
        probability=MEASURED_PROBABILITY if is_set else 0.0,
    )
