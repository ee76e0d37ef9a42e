"""Stored answers: one by its identifier, or a page of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain.errors import InvalidInput, NotFound
from domain.solution import Strategy

if TYPE_CHECKING:
    from models.records import AnswerRecord, AnswerSummary
    from models.session import Store

IDENTIFIER = re.compile(r"[0-9a-f]{32}", re.ASCII)


@dataclass(frozen=True, slots=True)
class AnswerFilter:
    """Which answers to list; None admits any."""

    profile: str | None = None
    revision: int | None = None
    message_bytes: int | None = None
    strategy: Strategy | None = None


@dataclass(frozen=True, slots=True)
class AnswerPage:
    """One page, newest first; `after` is where the next one starts, None at the end."""

    summaries: tuple[AnswerSummary, ...]
    after: str | None


def get_answer(store: Store, identifier: str) -> AnswerRecord:
    """The stored answer. Raises NotFound."""
    known_identifier(identifier, "answer")
    with store.reading() as unit:
        return unit.answers.get(identifier)


def get_answers(store: Store, identifiers: Iterable[str]) -> dict[str, AnswerRecord]:
    """Those of these stored answers that are there, by identifier."""
    found = {}
    with store.reading() as unit:
        for one in identifiers:
            with suppress(NotFound):
                found[one] = unit.answers.get(one)
    return found


def has_active_table(store: Store, profile: str, revision: int, message_bytes: int) -> bool:
    """Whether this revision's look-ups of this message are answered from a compiled table."""
    with store.reading() as unit:
        found = unit.tables.active_summary(profile, revision)
    return found is not None and found.covers(message_bytes)


def list_answers(
    store: Store, wanted: AnswerFilter, *, after: str | None = None, limit: int = 50
) -> AnswerPage:
    """A page of summaries. Raises InvalidInput for a cursor that is none."""
    if after is not None and IDENTIFIER.fullmatch(after) is None:
        raise InvalidInput("expected the next_cursor of an earlier page", field="cursor")
    with store.reading() as unit:
        found = tuple(
            unit.answers.list(
                profile=wanted.profile,
                revision=wanted.revision,
                message_bytes=wanted.message_bytes,
                strategy=wanted.strategy,
                after=after,
                limit=limit + 1,
            )
        )
    return AnswerPage(found[:limit], found[limit - 1].id if len(found) > limit else None)


def known_identifier(identifier: str, noun: str) -> None:
    """Raise NotFound for what cannot be an identifier; nothing is stored under it."""
    if IDENTIFIER.fullmatch(identifier) is None:
        raise NotFound(f"there is no {noun} with this id")
