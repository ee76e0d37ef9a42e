"""A stored answer to take away: the same question for a shell, for Python, the schedule for C.

    take_away(answer, "http://localhost:8080", has_table=False)

What is written runs as it stands. Texts that somebody chose (names of stages, the address in a
request's header) are quoted for the language that they stand in; C has none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from fastapi import Request

from app.flows.answers import has_active_table
from app.web.c_snippet import c_of_schedule, c_of_table, is_too_long
from app.web.python_snippet import plain_python_of, python_of
from app.web.questions import json_lines, question_of
from app.web.schedule_csv import leaves_out_times

if TYPE_CHECKING:
    from app.schemas.optimize import OptimizeOut
    from models.session import Store


@dataclass(frozen=True, slots=True)
class Snippet:
    """A text to copy: `key` is its identifier in the page, `about` says what it needs."""

    key: str
    name: str
    about: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """A file to download."""

    address: str
    name: str
    about: str


@dataclass(frozen=True, slots=True)
class TakeAway:
    """What templates/take_away.html is given. `picture` is what a PNG is made of, or nothing."""

    files: tuple[AnswerFile, ...]
    snippets: tuple[Snippet, ...]
    picture: str
    png_name: str


def take_away_of(store: Store, answer: OptimizeOut, base_url: str) -> TakeAway:
    """The same, for an answer of this store."""
    profile = answer.profile
    has_table = profile is not None and has_active_table(
        store, profile.name, profile.revision, answer.message_bytes
    )
    return take_away(answer, base_url, has_table=has_table)


def take_away(answer: OptimizeOut, base_url: str, *, has_table: bool = False) -> TakeAway:
    """Everything that an answer can be taken away as.

    `base_url` is the service's own address, without a slash at its end. `has_table`: the profile
    has an active compiled table that holds this message.
    """
    place = f"/ui/answers/{answer.id}"
    picture = f"{place}/schedule.svg" if answer.pipeline else ""
    return TakeAway(
        tuple(_files(answer, place)),
        tuple(_snippets(answer, base_url, has_table=has_table)),
        picture,
        f"{file_stem(answer.message_bytes, answer.id)}.png",
    )


def base_url_of(request: Request) -> str:
    """The address that this request was sent to, without a slash at its end."""
    return str(request.base_url).rstrip("/")


def file_stem(message_bytes: int, id: str) -> str:
    """How files of an answer are named: safe in a header and on every disk."""
    return f"sluice-{message_bytes}-bytes-{id[-8:]}"


def _files(answer: OptimizeOut, place: str) -> Iterator[AnswerFile]:
    yield AnswerFile(f"{place}/report.html", "Report", "one page that stands alone, to print")
    yield AnswerFile(f"{place}/schedule.csv", "CSV", _csv_words(answer))
    yield AnswerFile(f"{place}/schedule.json", "JSON", "the stored answer, byte for byte")
    if answer.pipeline:
        yield AnswerFile(f"{place}/schedule.svg", "SVG", "the timeline")


def _csv_words(answer: OptimizeOut) -> str:
    if leaves_out_times(answer):
        return "fragments with offsets and sizes; of the many times when each begins and arrives"
    return "fragments with offsets, sizes and times"


def _snippets(answer: OptimizeOut, base_url: str, *, has_table: bool) -> Iterator[Snippet]:
    yield Snippet(
        "curl", "curl", "Asks the service the same question again.", curl_of(answer, base_url)
    )
    question = question_of(answer)
    yield Snippet(
        "python",
        "Python",
        "Any Python 3, with nothing to install.",
        plain_python_of(question, base_url),
    )
    yield Snippet(
        "client",
        "Python with the client",
        "The package sluice-client: pip install ./clients/python in a checkout.",
        python_of(question, base_url),
    )
    if has_table and answer.profile:
        said = "Looks every message up in the profile's compiled table, with libsluice."
        yield Snippet("c", "C", said, c_of_table(answer.profile, answer.message_bytes, base_url))
        return
    if is_too_long(answer):
        address = f"{base_url}/optimizations/{answer.id}"
        said = "So many sizes are a file rather than something to paste; this fetches them."
        yield Snippet("c", "C", said, f"curl -fsS {quote(address)} -o schedule.json\n")
        return
    yield Snippet("c", "C", "The sizes, for this message; C11.", c_of_schedule(answer))


def curl_of(answer: OptimizeOut, base_url: str) -> str:
    """A command for a shell: its output is an OptimizeOut."""
    body = json_lines(question_of(answer))
    return (
        f"curl -sS {quote(base_url + '/optimize')} \\\n"
        "  -H 'content-type: application/json' \\\n"
        f"  --data-binary @- <<'END'\n{body}\nEND\n"
    )
