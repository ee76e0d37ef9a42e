"""Stored answers to optimize: found, listed, and given a name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from contract.limits import MAX_ANSWER_NAME, MAX_NOTE
from domain.errors import InvalidInput, NotFound
from domain.solution import Strategy
from models.identifiers import IDENTIFIER, known_identifier

if TYPE_CHECKING:
    from models.records import AnswerRecord, AnswerSummary
    from models.session import Store


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
    """Return the stored answer. Raises NotFound."""
    known_identifier(identifier, "answer")
    with store.reading() as unit:
        return unit.answers.get(identifier)


def describe_answer(
    store: Store,
    identifier: str,
    *,
    name: str | None = None,
    note: str | None = None,
    expected: Callable[[AnswerRecord], None] = lambda _: None,
) -> AnswerRecord:
    """Give an answer a name and a note, and say so in the log of changes.

    None leaves what is there, "" takes it away; a note's lines end as a program's do, however a
    form has sent them. Raises NotFound, what `expected` raises for the answer as it is so far, and
    InvalidInput for what is too long, and for a name of several lines.
    """
    given_name, given_note = (None if given is None else _lines(given) for given in (name, note))
    texts = (("name", given_name, MAX_ANSWER_NAME), ("note", given_note, MAX_NOTE))
    for field, text, longest in texts:
        if text is not None and (len(text) > longest or (field == "name" and "\n" in text)):
            one_line = "one line of " if field == "name" else ""
            raise InvalidInput(f"expected {one_line}at most {longest} characters", field=field)
    known_identifier(identifier, "answer")
    with store.unit_of_work() as unit:
        found = unit.answers.get(identifier, to_describe=True)
        expected(found)
        new_name = found.name if given_name is None else given_name or None
        new_note = found.note if given_note is None else given_note or None
        if (new_name, new_note) != (found.name, found.note):
            unit.answers.describe(identifier, name=new_name, note=new_note)
            unit.changes.note("answer.describe", identifier, before=found.name, after=new_name)
    return replace(found, name=new_name, note=new_note)


def _lines(text: str) -> str:
    return "\n".join(text.splitlines()).strip()


def get_answers(store: Store, identifiers: Iterable[str]) -> dict[str, AnswerRecord]:
    """Return those of these stored answers that exist, by identifier."""
    found = {}
    with store.reading() as unit:
        for identifier in identifiers:
            with suppress(NotFound):
                found[identifier] = unit.answers.get(identifier)
    return found


def has_active_table(store: Store, profile: str, revision: int, message_bytes: int) -> bool:
    """Return whether this revision's lookups of this message are answered from a compiled table."""
    with store.reading() as unit:
        found = unit.tables.active_summary(profile, revision)
    return found is not None and found.covers(message_bytes)


def list_answers(
    store: Store, wanted: AnswerFilter, *, after: str | None = None, limit: int = 50
) -> AnswerPage:
    """Return a page of summaries. Raises InvalidInput for a cursor that is none."""
    if after is not None and IDENTIFIER.fullmatch(after) is None:
        raise InvalidInput("expected the next_cursor of an earlier page", field="cursor")
    with store.reading() as unit:
        found = tuple(unit.answers.list(**asdict(wanted), after=after, limit=limit + 1))
    return AnswerPage(found[:limit], found[limit - 1].id if len(found) > limit else None)
