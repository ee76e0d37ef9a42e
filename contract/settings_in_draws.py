"""How sure settings for many messages are: what answers about audits, exports and tables say."""

from __future__ import annotations

from .declare import Output, output, sent
from .uncertainty import QuantilesOut, RegretOut


@output
class SettingInDrawsOut(Output):
    """What a setting costs over the best repeated sizes, in the mean over the messages of a draw.

    In `good` of the draws that is 2 % at most; `kept` is the share in which `max_regret` is kept.
    """

    name: str = sent("the setting, by the field of the answer that has it")
    regret: RegretOut = sent("its regret over the draws, in the mean over the messages")
    good: float = sent("the share of draws in which its regret is 2 % at most")
    kept: float | None = sent(
        "the share of draws in which it keeps `max_regret`; null: none is asked for"
    )


@output
class SettingsInDrawsOut(Output):
    """A setting over draws of the costs, and what to do: `decision`, and `sentence` in words.

    `reason` says why it is to be measured first, that transfers decide, or that it is faster
    `either_way`, whether stages overlap or not; null elsewhere.
    `advised` names one of `settings`, by their fields, or is `transferred`, a size that was
    measured best and is none of them; the best of the others gains `gain` over the first, more than
    `margin` in `probability` of the draws: in the mean over the messages, or where the `objective`
    is `time` of their total time.
    """

    source: str = sent("what is known of the errors of the costs")
    draws: int = sent("how many draws of the costs there are")
    seed: str = sent("the seed of the draws, in decimal digits")
    messages: int = sent("how many messages were priced")
    decision: str | None = sent("what to do; null: there is no other setting")
    reason: str | None = sent("why, where the draws alone do not say so")
    sentence: str = sent("what to do, in words")
    advised: str = sent("the setting to use: a name of `settings`, or transferred")
    gain: QuantilesOut = sent("what the best of the others gains over the first, as a share")
    probability: float = sent("the share of draws in which it gains more than `margin`")
    margin: float = sent("the gain below which nothing is to be changed, as a share")
    settings: tuple[SettingInDrawsOut, ...] = sent("the settings; the one in question is the first")
