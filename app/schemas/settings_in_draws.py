"""How sure settings for many messages are: what audits, exports and tables say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from analysis.transferred import TransfersSay
from app.schemas.base import Output
from app.schemas.uncertainty import MEASURED_PROBABILITY, QuantilesOut, RegretOut
from app.text.notices import settings_sentence
from app.text.transferred import transfers_sentence
from domain.uncertain_answer import DecisionCode, SettingsInDraws
from domain.uncertainty import KnownErrors
from domain.units import format_bytes

TRANSFERRED = "transferred"  # what is advised where none of the settings has the size


@dataclass(frozen=True)
class SettingInDrawsOut(Output):
    """What a setting costs over the best repeated sizes, in the mean over the messages of a draw.

    In `good` of the draws that is 2 % at most; `kept` is the share in which `max_regret` is kept.
    """

    name: str
    regret: RegretOut
    good: float
    kept: float | None


@dataclass(frozen=True)
class SettingsInDrawsOut(Output):
    """A setting over draws of the costs, and what to do: `decision`, and `sentence` in words.

    `reason` says why it is to be measured first, or that transfers decide, null elsewhere.
    `advised` names one of `settings`, by their fields, or is `transferred`, a size that was
    measured best and is none of them; the best of the others gains `gain` over the first, more than
    `margin` in `probability` of the draws: in the mean over the messages, or where the `objective`
    is `time` of their total time.
    """

    source: str
    draws: int
    seed: str
    messages: int
    decision: str | None
    reason: str | None
    sentence: str
    advised: str
    gain: QuantilesOut
    probability: float
    margin: float
    settings: tuple[SettingInDrawsOut, ...]

    @classmethod
    def of(
        cls,
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
        sent = cls(
            source=found.source,
            draws=found.draws,
            seed=str(found.seed),
            messages=found.messages,
            decision=found.code,
            reason=found.reason,
            sentence=settings_sentence(found, errors, words),
            advised=found.advised,
            gain=QuantilesOut.of(found.gain),
            probability=found.probability,
            margin=found.thresholds.margin,
            settings=tuple(
                SettingInDrawsOut(one.name, RegretOut.of(one.regret), one.good, one.kept)
                for one in found.settings
            ),
        )
        return sent if say is None else sent.measured(say, words)

    def measured(
        self, say: TransfersSay, words: Mapping[str, str] | None = None
    ) -> SettingsInDrawsOut:
        """Return the same where the transfers of its profile decide, and not the draws."""
        choice = say.choice
        is_set = choice is not None and say.code is DecisionCode.SET_IT
        low, high = (choice.gain if is_set and choice is not None else None) or (0.0, 0.0)
        advised = self.settings[0].name
        if is_set and choice is not None:
            size = format_bytes(choice.size_bytes)
            named = (name for name, said in (words or {}).items() if said == size)
            advised = next(named, TRANSFERRED)
        return replace(
            self,
            decision=say.code,
            reason=say.reason,
            sentence=transfers_sentence(say),
            advised=advised,
            gain=QuantilesOut(low, (low + high) / 2.0, high),
            probability=MEASURED_PROBABILITY if is_set else 0.0,
        )
