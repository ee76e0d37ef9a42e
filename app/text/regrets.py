"""Regrets of settings, and what an audit advises, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from analysis.audit import WORTH_SAYING, Audit, Change
from analysis.setting_price import Averages, Priced
from app.text.numbers import format_gap, format_regret_span
from contract.limits import MAX_MESSAGE_BYTES
from domain.regret import Objective
from domain.uncertain_answer import DecisionCode, Reason
from domain.units import format_bytes

REGRET_OF: Mapping[str, str] = {
    Objective.TIME: "regret of the total time",
    Objective.MEAN: "mean regret",
    Objective.WORST: "worst regret",
}


def changes_title(decision: str | None, reason: str | None, *, by_transfers: bool) -> str:
    """Return what heads an audit's changes: where draws or the file decide against setting them, or
    for one size alone whether stages overlap or not, that they are the model's. `by_transfers`:
    they are what transfers say to do, or a later trace.
    """
    is_set = decision in (None, DecisionCode.SET_IT) and reason != Reason.EITHER_WAY
    if by_transfers or is_set:
        return "What to change"
    return "What would change by the model alone"


def format_change(outcome: Audit, change: Change) -> str:
    """Return one of the audit's changes in words, with what it would cost."""
    if change is Change.NO_OTHER_SIZE:
        return "no other single size for all messages gains 0.1 % or more"
    if change is Change.ONE_SIZE:
        return f"{_for_all(outcome)}: {_costs(outcome.single)}"
    if change is Change.STEPS and outcome.size_steps is not None:
        steps = len(outcome.size_steps.setting.steps)
        costs = _costs(outcome.size_steps)
        return f"let the size grow with the message, in {steps} steps: {costs}"
    if change is Change.LOOKUP and outcome.repeats is not None:
        return (
            "look the size up for each message in a compiled table: "
            f"{_average_costs(outcome.repeats)}"
        )
    left = outcome.schedules.value(outcome.question.scope.decides_by).at_most
    words = "less than 0.1 %" if left < WORTH_SAYING else f"at most {format_gap(left)}"
    return (
        "send schedules of several sizes out of a compiled table: regret 0 %; any other schedules "
        f"could gain {words} more"
    )


def format_advised_regret(at_least: float | None, at_most: float | None) -> str:
    """Return the regret of what is advised, with its limits where more than what is worth saying
    lies between them.
    """
    return format_regret_span(at_least, at_most, worth_saying=WORTH_SAYING)


class _Limits(Protocol):
    """A regret as far as it is known, None without end."""

    @property
    def at_least(self) -> float | None: ...

    @property
    def at_most(self) -> float | None: ...


def format_averages(time: _Limits | None, mean: _Limits) -> str:
    """Return the regrets of the total time, which older audits lack, and in the mean, in short."""
    total = "" if time is None else f"total time {_advised(time)}, "
    return f"{total}mean {_advised(mean)}"


def _advised(span: _Limits) -> str:
    return format_advised_regret(span.at_least, span.at_most)


def _costs(priced: Priced) -> str:
    where = format_bytes(priced.worst.message_bytes)
    return f"{_average_costs(priced.averages)}, worst {_advised(priced.worst_span)} at {where}"


def _average_costs(averages: Averages) -> str:
    time, mean = _advised(averages.time), _advised(averages.mean)
    return f"total time {time} over the best, mean regret {mean}"


def _for_all(outcome: Audit) -> str:
    size = outcome.single.setting.size_at(MAX_MESSAGE_BYTES)
    if size >= outcome.workload.sizes[-1].message_bytes:
        return "send every message whole"
    return f"repeat {format_bytes(size)} for all messages"
