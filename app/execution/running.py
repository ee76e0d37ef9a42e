"""A task that an engine has taken, and those who hear of it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from app.execution.engine import End, Event, Sink, Task

_log = logging.getLogger(__name__)


def _nobody() -> None:
    """Nobody runs it yet: whoever begins to will look."""


@dataclass(eq=False, slots=True)
class Running:
    """A task from its submission to its end. `files` are its own duplicates.

    `wake` is set by the slot that runs it, which then looks whether it was cancelled.
    Its events and its end are sent by one thread at a time: that of the slot which it was given
    to, or of the engine where it never got to one.
    """

    task: Task
    sink: Sink
    files: tuple[int, ...] = ()
    wake: Callable[[], None] = _nobody
    is_cancelled: bool = field(default=False, init=False)
    has_ended: bool = field(default=False, init=False)

    @classmethod
    def of(cls, task: Task, sink: Sink) -> Running:
        """Take a task, with duplicates of its files. Raises OSError where one is not open."""
        return cls(task, sink, _duplicates(task.files))

    @property
    def key(self) -> tuple[str, int]:
        """What the engine knows it by."""
        return self.task.id, self.task.claim

    def cancel(self) -> None:
        """Have it end soon; its end is told by whoever runs it."""
        self.is_cancelled = True
        self.wake()

    def send(self, event: Event) -> None:
        """Tell what it reports."""
        if not self.has_ended:
            self._call(event)

    def end(self, end: End) -> None:
        """Tell how it ended. Only the first end counts."""
        if self.has_ended:
            return
        self.has_ended = True
        self.close_files()
        self._call(end)

    def close_files(self) -> None:
        """Close its duplicates."""
        files, self.files = self.files, ()
        for file in files:
            os.close(file)

    def _call(self, message: Event | End) -> None:
        try:
            self.sink(message)
        except Exception:  # a defect of whoever listens must not cost the engine its thread
            _log.exception("a task's sink failed at %s", type(message).__name__)


def _duplicates(files: tuple[int, ...]) -> tuple[int, ...]:
    made: list[int] = []
    try:
        made.extend(map(os.dup, files))
    except OSError:
        for file in made:
            os.close(file)
        raise
    return tuple(made)
