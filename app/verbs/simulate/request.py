"""What contract/simulate.py declares, as the domain has it: one cut, a cut a stage, or rules."""

from __future__ import annotations

from app.questions.simulate import Cut
from app.schemas.source import check_exactly_one
from contract.simulate import DeliveryIn, SimulateIn
from domain.delivery import Delivery, DeliveryRule
from domain.errors import InconsistentInput, InvalidInput


def cut_of(asked: SimulateIn) -> Cut:
    """Return the shared cut, the cuts by stage, or the rules. Raises InvalidInput for more than
    one of them, or none, and for rules that contradict themselves.
    """
    check_exactly_one(
        {
            "fragment_bytes": asked.fragment_bytes,
            "levels": asked.levels,
            "delivery": asked.delivery,
        }
    )
    if (asked.delivery is None) != (asked.message_bytes is None):
        raise InconsistentInput(
            "delivery needs message_bytes, and other cuts say it themselves",
            field="message_bytes",
        )
    if asked.delivery is not None:
        rules = tuple(_delivery(rule, place) for place, rule in enumerate(asked.delivery))
        return Cut((), is_nested=True, rules=rules, message_bytes=asked.message_bytes or 0)
    levels = asked.levels or [asked.fragment_bytes or []]
    return Cut(tuple(tuple(sizes) for sizes in levels), is_nested=asked.levels is not None)


def _delivery(given: DeliveryIn, place: int) -> Delivery:
    """Return the rule. Raises InvalidInput naming the field of this place."""
    planned = None if given.planned_bytes is None else tuple(given.planned_bytes)
    sizes = given.pulse_bytes, given.threshold_bytes, given.max_pulse_bytes, planned
    try:
        return Delivery(DeliveryRule(given.rule), *sizes)
    except InvalidInput as refusal:
        refusal.field = f"delivery.{place}.{refusal.field}"
        raise
