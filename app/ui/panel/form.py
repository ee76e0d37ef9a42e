"""The input panel as a form: its request or its mistakes, and changes of its table."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TypeVar

from app.registry import VERBS
from app.schemas.base import dump_json, parse_json
from app.schemas.items import asked_items
from app.ui.panel.request import request_of
from app.ui.panel.state import MAX_ROWS, InputState, StageRow
from contract.optimize import OptimizeIn
from domain.errors import SluiceError

T = TypeVar("T")
_CHANGE = re.compile(r"(add|reverse|(?:up|down|delete)\.[0-9]{1,4})", re.ASCII)


class InvalidForm(Exception):
    """The form holds mistakes; `entry` has them."""

    def __init__(self, entry: InputState) -> None:
        super().__init__("the form holds mistakes")
        self.entry = entry


def asked_of(entry: InputState) -> OptimizeIn:
    """Return the request that the panel makes. Raises InvalidForm."""
    request = request_of(entry)
    if request.mistakes:
        raise InvalidForm(entry.with_mistakes(request.mistakes))
    try:
        asked = parse_json(OptimizeIn, dump_json(request.document))
        # What fields say together is checked where the question is made.
        if asked.items is None:
            VERBS["optimize"].module("request").optimize_question(asked)
        else:
            asked_items(asked)
    except SluiceError as refusal:
        raise InvalidForm(entry.with_mistakes(request.mistakes_in(refusal))) from None
    return asked


def change_of(pairs: list[tuple[str, str]]) -> str:
    """Return the change of the table that a button asks for, or ""."""
    asked = next((value for name, value in reversed(pairs) if name == "do"), "")
    return asked if _CHANGE.fullmatch(asked) else ""


def changed(entry: InputState, change: str) -> InputState:
    """Return the panel with its table changed, for browsers that run no script."""
    rows = list(entry.rows)
    verb, _, number = change.partition(".")
    place = int(number or 0)
    if verb == "add":
        rows.append(StageRow())
    elif verb == "reverse":
        rows = _reversed(rows)
    elif place < len(rows):
        move_row(rows, place, verb)
    return replace(entry, rows=tuple(rows[: MAX_ROWS + 1]) or (StageRow(),))


def move_row(rows: list[T], place: int, verb: str) -> None:
    """Move the row at a place up or down by one, or delete it."""
    row = rows.pop(place)
    if verb != "delete":
        rows.insert(max(0, place - 1) if verb == "up" else place + 1, row)


def _reversed(rows: list[StageRow]) -> list[StageRow]:
    """Return the stages in the other direction, the ranges of each in their order."""
    stages: list[list[StageRow]] = []
    goes_on = False
    for row in rows:
        if goes_on:
            stages[-1].append(row)
        else:
            stages.append([row])
        goes_on = bool(row.up_to)
    return [row for stage in reversed(stages) for row in stage]
