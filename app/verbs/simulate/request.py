"""What contract/simulate.py declares, as the domain has it: one cut, a cut a stage, or rules."""

from __future__ import annotations

from app.questions.items import ItemsCut
from app.questions.simulate import Cut
from app.schemas.items import fill_of, refuse_beside_items, sequence_of
from app.schemas.source import check_exactly_one
from contract.simulate import DeliveryIn, SimulateIn
from domain.delivery import Delivery, DeliveryRule
from domain.errors import InconsistentInput, InvalidInput, ItemsDeclined
from domain.items import FillRule

_NOT_OF_ITEMS = {
    "message_bytes": "items are given: they are the message, and their sizes say its own",
    "fragment_bytes": "a fragment is a run of whole items, which cut says",
    "levels": "all stages share the cut of items",
    "delivery": "stages do not choose fragments of items",
    "aggregate": "items need the time of every stage, and this is an aggregate",
}


def cut_of(asked: SimulateIn) -> Cut:
    """Return the shared cut, the cuts by stage, or the rules, of a message without items. Raises
    InvalidInput for more than one of them, or none, and for rules that contradict themselves.
    """
    if items_cut(asked) is not None:
        raise ItemsDeclined("stages do not choose fragments of items", field="items")
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


def items_cut(asked: SimulateIn) -> ItemsCut | None:
    """Return the cut between items, None where there are none. Raises ItemsDeclined for what items
    do not go with, and InvalidInput for what goes with them alone, and for no cut.
    """
    if asked.items is None:
        for name in ("cut", "cap_bytes", "fill"):
            if getattr(asked, name) is not None:
                raise InconsistentInput(f"{name} goes with items alone", field=name)
        return None
    refuse_beside_items(_NOT_OF_ITEMS, asked.said())
    check_exactly_one({"cut": asked.cut, "cap_bytes": asked.cap_bytes})
    if asked.cut is not None and asked.fill is not None:
        raise InconsistentInput("fill goes with cap_bytes: a cut is given", field="fill")
    sequence, fill = sequence_of(asked.items), fill_of(asked.fill) or FillRule()
    ends = None if asked.cut is None else tuple(asked.cut)
    return ItemsCut(sequence, ends, asked.cap_bytes or 0, fill)


def _delivery(given: DeliveryIn, place: int) -> Delivery:
    """Return the rule. Raises InvalidInput naming the field of this place."""
    planned = None if given.planned_bytes is None else tuple(given.planned_bytes)
    sizes = given.pulse_bytes, given.threshold_bytes, given.max_pulse_bytes, planned
    try:
        return Delivery(DeliveryRule(given.rule), *sizes)
    except InvalidInput as refusal:
        refusal.field = f"delivery.{place}.{refusal.field}"
        raise
