"""What contract/compare.py declares, as the domain has it: strategies on messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.compare import CompareQuestion
from app.questions.question import check_static_bytes
from app.questions.source import Resolved
from app.schemas.base import read_request
from app.schemas.stages import limits_of
from contract.compare import CompareIn
from contract.limits import MAX_COMPARED
from domain.errors import InconsistentInput
from domain.solution import Strategy

if TYPE_CHECKING:
    from analysis.compared_items import ItemsCompareQuestion
    from domain.items import FillRule, ItemProblem, ItemSequence

_NOT_OF_ITEMS = {
    "message_bytes": "items are given: they are the message, and their sizes say its own",
    "strategies": "every way to cut between items is a row",
    "static_bytes": "items have sizes of their own: caps_bytes are priced",
    "aggregate": "items need the time of every stage, and this is an aggregate",
    "allow_refragmentation": "all stages share the cut of items",
}


def messages_of(asked: CompareIn) -> tuple[list[int], list[str]]:
    """Return the messages and the strategies. Raises InvalidFields where there are none, and
    InconsistentInput for what goes with items alone.
    """
    from app.schemas.items import missing_fields, refuse_without_items

    messages, strategies = asked.message_bytes, asked.strategies
    if messages is None or strategies is None:
        given = {"message_bytes": messages, "strategies": strategies}
        raise missing_fields(*(name for name, value in given.items() if value is None))
    refuse_without_items(asked.said(), "fill", "caps_bytes")
    return messages, [*strategies]


def compared_items(asked: CompareIn) -> tuple[ItemSequence, FillRule]:
    """Return the items, and how caps are filled. Raises ItemsDeclined for what they do not go with,
    and InvalidInput.
    """
    from app.schemas.items import fill_of, refuse_beside_items, refuse_limits, sequence_of
    from domain.items import FillRule

    assert asked.items is not None, "items are asked about"
    refuse_beside_items(_NOT_OF_ITEMS, asked.said())
    refuse_limits(asked.constraints)
    return sequence_of(asked.items), fill_of(asked.fill) or FillRule()


def items_question(asked: CompareIn, problem: ItemProblem, fill: FillRule) -> ItemsCompareQuestion:
    """Return the question about items across stages that were found."""
    from analysis.compared_items import ItemsCompareQuestion

    caps = tuple(asked.caps_bytes or ())
    return ItemsCompareQuestion(problem, fill, caps, asked.relative_gap, asked.time_limit_s)


def check(asked: CompareIn) -> None:
    """Raise InconsistentInput for more cells than one comparison may have, and unless a size to
    repeat is given exactly where it is used; and what `messages_of` does.
    """
    messages, strategies = messages_of(asked)
    if len(messages) * len(strategies) > MAX_COMPARED:
        raise InconsistentInput(
            f"expected message sizes x strategies <= {MAX_COMPARED} in one comparison",
            field="message_bytes",
        )
    strategy = Strategy.STATIC if Strategy.STATIC in strategies else Strategy.AUTO
    check_static_bytes(strategy, asked.static_bytes)


def compare_question(asked: CompareIn, found: Resolved, *, fragment_cap: int) -> CompareQuestion:
    """Return the question about a model that was found. Raises InvalidInput."""
    messages, strategies = messages_of(asked)
    return CompareQuestion(
        model=found.model,
        message_bytes=tuple(messages),
        strategies=tuple(map(Strategy, strategies)),
        static_bytes=asked.static_bytes,
        limits=limits_of(asked.constraints),
        allow_refragmentation=asked.allow_refragmentation,
        relative_gap=asked.relative_gap,
        time_limit_s=asked.time_limit_s,
        fragment_cap=fragment_cap,
        profile=found.profile,
        said=found.said,
        overlap=found.overlap,
    )


def title(request: bytes) -> str:
    """Return what a job is called on its page."""
    asked = read_request(CompareIn, request)
    if asked.items is not None:
        return "Comparing ways to cut between items"
    return f"Comparing strategies on {len(asked.message_bytes or ())} messages"
