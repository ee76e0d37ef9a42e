"""A stored answer to optimize, read again, and what others than its own pages ask of it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from app.schemas.base import read_output
from contract.optimize import (
    DeliveredOptimizeOut,
    ItemsOptimizeOut,
    MachineOptimizeOut,
    OptimizeOut,
)
from domain.default_sizes import CURRENT
from domain.errors import ItemsDeclined, StrategyDeclined, UnreadableRecord
from domain.pipeline import unique_names


def read_answer(body: bytes, *, items: bool = False) -> OptimizeOut:
    """Return what a stored answer says, of stages that choose their pulses and of machines too, and
    where who asks takes them, `items`.

    Raises UnreadableRecord for one of another version, and else ItemsDeclined for one of items.
    """
    for kind in (OptimizeOut, DeliveredOptimizeOut, MachineOptimizeOut):
        with suppress(UnreadableRecord):
            return read_output(kind, body)
    found = read_output(ItemsOptimizeOut, body)
    if not items:
        raise ItemsDeclined(
            "this answer is of a message that is cut between items alone: what is asked for needs "
            "one that may be cut at any byte"
        )
    return found


def read_items_answer(body: bytes) -> ItemsOptimizeOut:
    """Return a stored answer about items. Raises UnreadableRecord, and StrategyDeclined for one of
    a message that may be cut at any byte.
    """
    found = read_answer(body, items=True)
    if not isinstance(found, ItemsOptimizeOut):
        raise StrategyDeclined(
            "this answer is of a message that may be cut at any byte: a curve over caps needs one "
            "that is cut between items"
        )
    return found


def current_of(answer: OptimizeOut) -> int | None:
    """Return the size that is repeated today, bytes; None where the answer does not have it."""
    found = next((baseline for baseline in answer.baselines if baseline.name == CURRENT), None)
    return None if found is None else found.static_bytes or answer.message_bytes


def with_unique_names(answer: OptimizeOut) -> OptimizeOut:
    """Return an answer whose stages have names of their own: the same one where they have."""
    if answer.pipeline is None:
        return answer
    stages = answer.pipeline.stages
    names = [stage.name for stage in stages]
    if len(set(names)) == len(names):
        return answer
    renamed = tuple(
        replace(stage, name=name) for stage, name in zip(stages, unique_names(names), strict=True)
    )
    return replace(answer, pipeline=replace(answer.pipeline, stages=renamed))
