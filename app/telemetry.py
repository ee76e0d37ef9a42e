"""Logs as JSON, one object a line, with the request and the job that a line is about.

Off unless settings ask for it: then lines are the logging library's, as before. Lines are written
by a thread of their own, out of a bounded queue: standard error that nobody reads must not stop
what writes to it.
"""

from __future__ import annotations

import json
import logging
import queue
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

MAX_LINES = 10_000  # that wait to be written; what is more is counted

# What a line is about where it does not say so itself; each thread and task has its own.
REQUEST: ContextVar[str] = ContextVar("sluice_request", default="")
OWNER: ContextVar[str] = ContextVar("sluice_owner", default="")

# What only a log for programs tells: each request, and how jobs begin and end.
events = logging.getLogger("sluice.events")

_OWN = ("request", "job", "owner")
_END = None


class JsonLines(logging.Formatter):
    """Lines of JSON: time, level, logger, message, request, job, owner, then what a line adds.

    A line adds `extra={"job": id, "owner": name, "fields": {...}}`; `error` is a traceback.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line without its end."""
        when = datetime.fromtimestamp(record.created, UTC)
        about = {name: getattr(record, name, "") for name in _OWN}
        line = {
            "time": when.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **about,
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class QueuedLines(logging.Handler):
    """Writes lines in a thread; who logs never waits. What has no place in the queue is counted,
    and the next line that has says how many there were.
    """

    def __init__(self, stream: TextIO, *, max_lines: int = MAX_LINES) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self._stream = stream
        self._lines: queue.Queue[str | None] = queue.Queue(max_lines)
        self._dropped = 0
        self._thread = threading.Thread(target=self._write, name="sluice-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Have it written, or count it."""
        for name, current in (("request", REQUEST), ("owner", OWNER)):
            if not getattr(record, name, ""):
                setattr(record, name, current.get())
        if self._dropped:
            record.fields = {**getattr(record, "fields", {}), "dropped": self._dropped}
        try:
            self._lines.put_nowait(self.format(record))
            self._dropped = 0
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Write what waits, for a second at most, and end the thread."""
        try:
            self._lines.put(_END, timeout=1.0)
            self._thread.join(1.0)
        except queue.Full:
            pass
        super().close()

    def _write(self) -> None:
        while (line := self._lines.get()) is not _END:
            try:
                self._stream.write(line + "\n")
                if self._lines.empty():
                    self._stream.flush()
            except (OSError, ValueError):  # nobody reads any more: nothing else is to end for it
                continue


@contextmanager
def logging_as(form: str, stream: TextIO | None = None) -> Iterator[None]:
    """Have this process log in this form, "text" or "json", until the block ends."""
    was = events.level
    if form != "json":
        events.setLevel(logging.WARNING)
        try:
            yield
        finally:
            events.setLevel(was)
        return
    root = logging.getLogger()
    handler, level = QueuedLines(stream or sys.stderr), root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
        handler.close()
