"""How many processes of their own run at a time: for clients that wait, and for durable jobs.

A client that waits is refused where it would have to queue; a job, for which nobody waits, queues.
Neither kind may take all places, so that however many jobs there are a client is still served, and
however many clients there are the jobs go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from domain.errors import Overloaded

MOST_FOR_CLIENTS = 2
MOST_FOR_JOBS = 2
MOST_TOGETHER = 3
_LOOK_S = 0.1  # between looks whether a job that waits is still wanted


class ChildPlaces:
    """Thread-safe. One per service."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._clients = 0
        self._jobs = 0

    @property
    def of_clients(self) -> int:
        """How many processes run for clients that wait."""
        return self._clients

    @property
    def of_jobs(self) -> int:
        """How many run for jobs."""
        return self._jobs

    def take_for_client(self) -> None:
        """Take a place; `leave_client` gives it back. Raises Overloaded where none is free."""
        with self._changed:
            if self._clients >= MOST_FOR_CLIENTS or self._taken >= MOST_TOGETHER:
                raise Overloaded("more long fits and compilations are running than are accepted")
            self._clients += 1

    def leave_client(self) -> None:
        """Give a client's place back."""
        with self._changed:
            self._clients -= 1
            self._changed.notify_all()

    @contextmanager
    def for_job(self, check: Callable[[], None]) -> Iterator[None]:
        """A job's place, once there is one. While it waits `check` may raise."""
        with self._changed:
            while self._jobs >= MOST_FOR_JOBS or self._taken >= MOST_TOGETHER:
                check()
                self._changed.wait(_LOOK_S)
            self._jobs += 1
        try:
            yield
        finally:
            with self._changed:
                self._jobs -= 1
                self._changed.notify_all()

    @property
    def _taken(self) -> int:
        return self._clients + self._jobs
