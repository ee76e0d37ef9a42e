"""What forms and lists share: bodies of forms, times; and the input panel's form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import parse_qsl

from fastapi import Request

from app.http.bodies import ARRIVAL_LIMIT_S, held_body, media_type
from app.http.dependencies import body_rules, service_of
from app.questions.question import Question
from app.schemas.base import dump_json, parse_json
from app.schemas.optimize import optimize_question
from app.web.workbench.request import request_of
from app.web.workbench.state import MAX_ROWS, InputState, StageRow
from contract.optimize import OptimizeIn
from domain.errors import InvalidInput, SluiceError, UnsupportedMediaType

T = TypeVar("T")
FORM = "application/x-www-form-urlencoded"
_MAX_FIELDS = 4 * MAX_ROWS + 64
_CHANGE = re.compile(r"(add|reverse|(?:up|down|delete)\.[0-9]{1,4})", re.ASCII)


@dataclass(frozen=True, slots=True)
class ValidRequest:
    """A request whose every field is valid."""

    given: OptimizeIn
    question: Question


class InvalidForm(Exception):
    """The form holds mistakes; `entry` has them."""

    def __init__(self, entry: InputState) -> None:
        super().__init__("the form holds mistakes")
        self.entry = entry


async def read_form(request: Request, limit: int | None = None) -> list[tuple[str, str]]:
    """Return the fields of a form of this page, of at most `limit` bytes, else of what bodies have.

    Raises UnsupportedMediaType, InvalidInput, and what `held_body` does.
    """
    if media_type(request)[0] != FORM:
        raise UnsupportedMediaType(f"expected Content-Type: {FORM}")
    rules = body_rules(request)
    if limit is not None:
        rules["limit"] = min(limit, rules["limit"])
    async with held_body(request, **rules, within_s=ARRIVAL_LIMIT_S) as body:
        if len(body) < 2**16:
            return form_fields(body)
        return await service_of(request).call(lambda: form_fields(body))


def form_fields(body: bytes) -> list[tuple[str, str]]:
    """Return the fields of a form. Raises InvalidInput."""
    try:
        return parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MAX_FIELDS,
        )
    except ValueError:
        raise InvalidInput(
            f"expected a form of at most {_MAX_FIELDS} fields of text in UTF-8"
        ) from None


def asked_of(entry: InputState) -> ValidRequest:
    """Return the question that the panel asks. Raises InvalidForm."""
    request = request_of(entry)
    if request.mistakes:
        raise InvalidForm(entry.with_mistakes(request.mistakes))
    try:
        return asked_document(request.document)
    except SluiceError as refusal:
        raise InvalidForm(entry.with_mistakes(request.mistakes_in(refusal))) from None


def asked_document(document: Mapping[str, object]) -> ValidRequest:
    """Return the question of a request's fields. Raises InvalidInput."""
    given = parse_json(OptimizeIn, dump_json(document))
    return ValidRequest(given, optimize_question(given))


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


def format_timestamp(time: datetime) -> str:
    """Return a time in UTC, to the minute."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


async def sent_fields(request: Request, limit: int | None = None) -> dict[str, str]:
    """Return the fields of a form, the last of each name. Raises what `read_form` does."""
    return dict(await read_form(request, limit))
