"""Server-sent events as they arrive (WHATWG HTML, "Interpreting an event stream")."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from sluice_client.calls import Answer, Call, segment
from sluice_client.contract.jobs import AnyJobOut, JobOut
from sluice_client.dataclass_json import from_json
from sluice_client.errors import UnexpectedAnswer

_EVENT_SILENCE_S = 15.0  # a stream says something this often, if only that it is still there
_END_OF_LINE = re.compile(rb"\r\n|\n|\r")
_MAX_LINE_BYTES = 64 * 2**20  # a stream that never ends a line is none


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One event of a job's stream: `progress`, or the state that it ended in, and all of it."""

    name: str
    job: JobOut


@dataclass(slots=True)
class EventParser:
    """Takes bytes as they come, in any pieces, and gives the events that they complete.

    Lines end with LF, CR or both; other separators that Python knows are part of the data.
    `last_id` is that of the last whole event.
    """

    last_id: str = ""
    _id: str = field(init=False)
    _rest: bytes = b""
    _name: str = ""
    _data: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._id = self.last_id

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield the events that end in this piece: name and data. Raises UnexpectedAnswer."""
        pending = self._rest + piece
        at = 0
        for end in _END_OF_LINE.finditer(pending):
            if end.group() == b"\r" and end.end() == len(pending):
                break  # a line feed may still belong to it
            line, at = pending[at : end.start()], end.end()
            if line:
                self._field(line)
                continue
            name, data, self._name, self._data = self._name, self._data, "", []
            self.last_id = self._id
            if data:
                yield name or "message", b"\n".join(data)
        self._rest = pending[at:]
        if len(self._rest) > _MAX_LINE_BYTES:
            raise UnexpectedAnswer("the events' stream has a line without end")

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._name = value.decode(errors="replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode(errors="replace")


def events_call(id: str) -> Call[Answer]:
    """Return the request for the changes of a job, as server-sent events."""
    return Call(
        "GET",
        f"/jobs/{segment(id)}/events",
        lambda answer: answer,
        headers={"Accept": "text/event-stream", "Cache-Control": "no-store"},
        may_repeat=True,
        takes_s=_EVENT_SILENCE_S,
    )


def event_of(name: str, data: bytes) -> JobEvent:
    """Return an event of a job's stream. Raises UnexpectedAnswer."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise UnexpectedAnswer("an event's data is not JSON") from None
    return JobEvent(name, read_job(document))


def read_job(document: Any) -> JobOut:
    """Return a job, as the class of its kind. Raises UnexpectedAnswer."""
    job: JobOut = from_json(cast(Any, AnyJobOut), document)
    return job
