"""What was priced, as contract/thresholds.py sends it."""

from __future__ import annotations

from analysis.thresholds import OneChoice, Thresholds
from app.schemas.base import notices_out, revision_out
from app.schemas.stages import pipeline_out
from app.text.overlap import PricedBothWays, with_both_times
from contract.thresholds import MessageThresholdsOut, OneChoiceOut, ThresholdsOut, TriedRule
from domain.delivery import DeliveryRule
from domain.units import format_bytes

_TRIED: dict[DeliveryRule, TriedRule] = {
    DeliveryRule.STATIC: "static",
    DeliveryRule.EAGER: "eager",
}


def priced(found: Thresholds) -> ThresholdsOut:
    """Return the prices as they are sent."""
    question, choices, one = found.question, found.question.choices, found.one
    rule = _TRIED[question.rule]
    messages = [
        MessageThresholdsOut(
            message_bytes=message.message_bytes,
            latencies_us=message.latencies_us,
            best_bytes=None if message.best is None else choices[message.best],
            best_us=None if message.best is None else message.latencies_us[message.best],
            store_and_forward_us=message.store_and_forward_us,
            ideal_us=message.ideal_us,
            lower_bound_us=message.lower_bound_us,
            serial_us=message.serial_us,
        )
        for message in found.messages
    ]
    both = [_both_ways(message, rule) for message in messages]
    known = [message for message in both if message is not None]
    stages = len(question.pipeline)
    return ThresholdsOut(
        rule=rule,
        stages=question.stages,
        choices=choices,
        messages=tuple(messages),
        one=None if one is None else _one_choice(one, choices),
        cut_off=found.cut_off,
        pipeline=pipeline_out(question.pipeline),
        profile=revision_out(question.profile),
        warnings=notices_out(with_both_times(found.notices, known, question.overlap, stages)),
    )


def _one_choice(one: OneChoice, choices: tuple[tuple[int, ...], ...]) -> OneChoiceOut:
    """Return the choice as it is sent."""
    return OneChoiceOut(
        choices[one.place], one.mean_regret, one.max_regret, one.worst_message_bytes
    )


def _both_ways(message: MessageThresholdsOut, rule: TriedRule) -> PricedBothWays | None:
    """Return what the best choice takes both ways, beside the whole message, where it is known."""
    if message.serial_us is None or message.best_us is None or message.best_bytes is None:
        return None
    return PricedBothWays(
        message.message_bytes,
        f"{noun(rule)} {choice(message.best_bytes)}",
        message.best_us,
        message.serial_us,
        "one piece",
        message.store_and_forward_us,
        "no more than one piece",
    )


def noun(rule: TriedRule) -> str:
    """Return what a choice is of."""
    return "threshold" if rule == "eager" else "pulse size"


def choice(sizes: tuple[int, ...]) -> str:
    """Return the sizes of a choice."""
    return " / ".join(map(format_bytes, sizes))
