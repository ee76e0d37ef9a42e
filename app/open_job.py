"""A job that is being run: what is shown of it on the way, its end, and whether it is to stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar, Unpack

from app.progress_file import Steps
from domain.errors import Cancelled, Conflict, NotReady, StoreUnavailable
from models.records import JobChanges, JobRecord, JobState

if TYPE_CHECKING:
    from models.session import Store, UnitOfWork

log = logging.getLogger("sluice.jobs")

SHOW_S = 0.5  # between writes of how far it is, and looks for a cancel asked elsewhere
RETRY_S = 1.0  # between tries while the database is away

T = TypeVar("T")


def patiently(work: Callable[[], T], closing: threading.Event) -> T:
    """What this gives, tried again while the database is away: nobody waits for a job.

    Raises NotReady where the service stops meanwhile.
    """
    while True:
        try:
            return work()
        except StoreUnavailable as error:
            log.warning("a job waits for the database: %s", error)
        if closing.wait(RETRY_S):
            raise NotReady("the service is stopping")


class EndedElsewhere(Exception):
    """The job has ended in the meantime; what was about to be stored is rolled back."""


class OpenJob:
    """For the thread that runs the job; `stop` may be set by any thread."""

    def __init__(
        self, record: JobRecord, store: Store, *, stop: threading.Event, closing: threading.Event
    ) -> None:
        self.record = record
        self.store = store
        self.closing = closing
        self._stop = stop
        self._look_at_s = time.monotonic() + SHOW_S
        self._unshown: JobChanges = {}

    def is_cancelled(self) -> bool:
        """Whether somebody wants it to stop."""
        return self._stop.is_set()

    @property
    def elapsed_s(self) -> float:
        """Since it began."""
        began = self.record.started_at or self.record.created_at
        return (datetime.now(UTC) - began).total_seconds()

    def check(self) -> None:
        """Raise Cancelled where it is to stop, and NotReady where the service is stopping."""
        if self.is_cancelled():
            raise Cancelled("the job was cancelled")
        if self.closing.is_set():
            raise NotReady("the service is stopping")

    def is_due(self) -> bool:
        """Whether it is time to write or look; the next time is SHOW_S later."""
        if time.monotonic() < self._look_at_s:
            return False
        self._look_at_s = time.monotonic() + SHOW_S
        return True

    def step(self, steps: Steps | None) -> None:
        """How far it is, where that is known; written with what is shown next."""
        if steps is not None:
            self._unshown["steps_done"] = steps.done
            self._unshown["steps_total"] = steps.total
        if self.is_due():
            self.show()

    def show(self, **changes: Unpack[JobChanges]) -> None:
        """Write these changes, or only look, and notice what another process was asked for.

        What cannot be written while the database is away is written the next time.
        """
        self._unshown.update(changes)
        try:
            now = self._written()
        except Conflict:
            self._stop.set()  # ended by another process
        except StoreUnavailable as error:
            log.warning("how far a job is could not be written: %s", error)
        else:
            self._unshown = {}
            if now.cancel_requested or now.state.is_terminal:
                self._stop.set()

    def _written(self) -> JobRecord:
        if not self._unshown:
            with self.store.reading() as unit:
                return unit.jobs.shown(self.record.id)
        with self.store.unit_of_work() as unit:
            return unit.jobs.update(self.record.id, **self._unshown)

    def settle(self, write: Callable[[UnitOfWork], None]) -> None:
        """Write this in one unit of work, which ends the job; as often as it takes.

        Raises what it does, but for a database that is away, and NotReady.
        """

        def once() -> None:
            with self.store.unit_of_work() as unit:
                write(unit)

        patiently(once, self.closing)

    def end(
        self,
        unit: UnitOfWork,
        state: JobState,
        last: JobChanges | None = None,
        *,
        answer_id: str | None = None,
    ) -> None:
        """End it in this unit of work, with the last changes. Raises EndedElsewhere."""
        try:
            if last:
                unit.jobs.update(self.record.id, **last)
        except Conflict:
            raise EndedElsewhere from None
        if not unit.jobs.finish(self.record.id, state, answer_id=answer_id):
            raise EndedElsewhere
