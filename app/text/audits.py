"""What an audit advises, in sentences."""

from __future__ import annotations

from math import ceil, isfinite

from analysis.audit import WORTH_SAYING, Audit, Change, Priced
from domain.pipeline import MAX_MESSAGE_BYTES
from domain.units import format_bytes


def change_words(outcome: Audit, change: Change) -> str:
    """Return one of the audit's changes in words, with what it would cost."""
    if change is Change.NO_OTHER_SIZE:
        return "no other single size for all messages gains 0.1 % or more"
    if change is Change.ONE_SIZE:
        return f"{_for_all(outcome)}: {_costs(outcome.single)}"
    if change is Change.STEPS and outcome.ladder is not None:
        steps = len(outcome.ladder.setting.steps)
        costs = _costs(outcome.ladder)
        return f"let the size grow with the message, in {steps} steps: {costs}"
    if change is Change.LOOKUP and outcome.repeats is not None:
        return (
            "look the size up for each message in a compiled table: mean regret "
            f"{percent(outcome.repeats)}"
        )
    left = outcome.schedules_at_most
    words = "less than 0.1 %" if left < WORTH_SAYING else f"at most {_percent_up(left)}"
    return (
        "send schedules of several sizes out of a compiled table: mean regret 0 %; any other "
        f"schedules could gain {words} more"
    )


def _costs(priced: Priced) -> str:
    where = format_bytes(priced.worst.message_bytes)
    worst = percent(priced.worst_span.at_least)
    return f"mean regret {percent(priced.mean.at_least)}, worst {worst} at {where}"


def _for_all(outcome: Audit) -> str:
    size = outcome.single.setting.size_at(MAX_MESSAGE_BYTES)
    if size >= outcome.mix.sizes[-1].message_bytes:
        return "send every message whole"
    return f"repeat {format_bytes(size)} for all messages"


def _percent_up(share: float) -> str:
    """What is proven is rounded up."""
    if not isfinite(share):
        return percent(share)
    steps = 1e3 if share < 1.0 else 1e2
    return percent(ceil(share * steps) / steps)


def percent(share: float) -> str:
    """A share in per cent with the digits that a reader can use."""
    value = 100.0 * share
    if value != value or value in (float("inf"), -float("inf")):
        return "unbounded"
    return f"{value:.0f} %" if abs(value) >= 100.0 else f"{value:.1f} %"
