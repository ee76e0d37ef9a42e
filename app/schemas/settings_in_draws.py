"""How sure settings for many messages are: what audits, exports and tables say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.schemas.base import Output
from app.schemas.uncertainty import QuantilesOut, RegretOut
from app.text.notices import settings_sentence
from domain.uncertain_answer import SettingsInDraws
from domain.uncertainty import KnownErrors


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

    `reason` says why it is to be measured first, null elsewhere.
    `advised` names one of `settings`, by their fields; the best of the others gains `gain` over the
    first, more than `margin` in `probability` of the draws: in the mean over the messages, or where
    the `objective` is `time` of their total time.
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
        cls, found: SettingsInDraws | None, errors: KnownErrors | None, words: Mapping[str, str]
    ) -> SettingsInDrawsOut | None:
        """Return the same as it is sent; `words` say what each setting is."""
        if found is None or errors is None:
            return None
        return cls(
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
