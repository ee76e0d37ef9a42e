"""Runs durable jobs: a few threads that take a job each and see it to its end.

A job's row is the truth. A runner claims it, shows the best so far in it, looks there for a cancel
that another process was asked for, and ends it together with its answer in one transaction. What
was left running when a process died is queued again by the next one that starts; what another
process is at is left to it.

Jobs wait in two lines, each in the order in which they came, with threads of its own. Those of one
line solve in the engine; those of the other start a process of their own, for minutes maybe. So
neither ever waits for the other: a hundred compilations delay no optimisation.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from app.child_places import MOST_FOR_JOBS, ChildPlaces
from app.errors import NotReady, Overloaded
from app.flows.context import Context
from app.flows.durable_jobs import JobKind
from app.job_solving import compare, optimize
from app.job_work import run_work
from app.open_job import EndedElsewhere, OpenJob, patiently
from app.schemas.base import dump_json
from app.schemas.problems import ProblemOut
from domain.errors import Cancelled, LimitReached, SluiceError
from models.records import JobRecord, JobState

if TYPE_CHECKING:
    from models.presence import Presence
    from models.session import UnitOfWork

log = logging.getLogger("sluice.jobs")

MAX_ATTEMPTS = 3  # a job that was running when the process died this often is not run again
MAX_WAITING = 10_000
T = TypeVar("T")
_SOLVING = (JobKind.OPTIMIZE, JobKind.COMPARE)


class _Line:
    """Identifiers of jobs that wait, and the threads that take them, the first one first."""

    def __init__(self, name: str, threads: int, work: Callable[[_Line], None]) -> None:
        self._waiting: OrderedDict[str, None] = OrderedDict()
        self._changed = threading.Condition()
        self._is_closed = False
        self.threads = [
            threading.Thread(target=work, args=(self,), name=f"{name}-{number}", daemon=True)
            for number in range(threads)
        ]

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, identifier: str) -> None:
        """Wait at the end."""
        with self._changed:
            self._waiting[identifier] = None
            self._changed.notify()

    def leave(self, identifier: str) -> None:
        """Wait no more; nothing happens where it does not."""
        with self._changed:
            self._waiting.pop(identifier, None)

    def take(self) -> str | None:
        """The first one, once there is one; None when the line is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            return None if self._is_closed else self._waiting.popitem(last=False)[0]

    def close(self) -> None:
        """End the threads."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self.threads:
            if thread.is_alive():
                thread.join(timeout=30.0)


class JobRunner:
    """Thread-safe. `start` takes up what was left unfinished, `close` waits for the threads."""

    def __init__(self, context: Context, places: ChildPlaces, *, threads: int) -> None:
        self._context = context
        self._places = places
        self._stops: dict[str, threading.Event] = {}
        self._closing = threading.Event()
        self._presence: Presence | None = None
        self._solving = _Line("sluice-job", threads, self._work)
        self._apart = _Line("sluice-work", MOST_FOR_JOBS, self._work)

    @property
    def waiting(self) -> int:
        """How many jobs wait for a thread."""
        return len(self._solving) + len(self._apart)

    def start(self) -> int:
        """Queue every job that was left unfinished, start the threads; how many were queued."""
        left = self._left_unfinished()
        for identifier, kind in left.items():
            self._line_of(kind).join(identifier)
        for thread in (*self._solving.threads, *self._apart.threads):
            thread.start()
        return len(left)

    def check_room(self) -> None:
        """Raise Overloaded where no further job may wait."""
        if self.waiting >= MAX_WAITING:
            raise Overloaded("more jobs are waiting than this service accepts")

    def submit(self, job: JobRecord) -> None:
        """Run a stored job when a thread is free."""
        self._line_of(job.kind).join(job.id)

    def cancel(self, identifier: str) -> None:
        """Stop a job at once where it waits or runs in this process; its row says so already."""
        for line in (self._solving, self._apart):
            line.leave(identifier)
        stop = self._stops.get(identifier)
        if stop is not None:
            stop.set()

    def close(self) -> None:
        """End the threads. Close the engine first: what they wait for ends with it."""
        self._closing.set()
        self._solving.close()
        self._apart.close()
        if self._presence is not None:
            self._presence.close()

    def _line_of(self, kind: str) -> _Line:
        return self._solving if kind in _SOLVING else self._apart

    def _left_unfinished(self) -> dict[str, str]:
        """The kinds of the jobs that wait, by identifier; also those whose process is gone."""
        store = self._context.store
        self._presence = here = store.presence()
        with store.reading() as unit:
            runners = unit.jobs.runners()
        gone = [name for name in runners if name is None or not here.lives(name)]
        with store.unit_of_work() as unit:
            return unit.jobs.take_up(gone)

    # --- threads ----------------------------------------------------------------------------------

    def _work(self, line: _Line) -> None:
        while (identifier := line.take()) is not None and not self._closing.is_set():
            self._stops[identifier] = threading.Event()
            try:
                self._run(identifier, self._stops[identifier])
            except NotReady:
                pass  # the service stopped while the database was away
            except Exception:
                # The row could not be read or written; the job is still open and runs at restart.
                log.exception("job %s could not be run", identifier)
            finally:
                del self._stops[identifier]

    def _run(self, identifier: str, stop: threading.Event) -> None:
        record = self._claim(identifier)
        if record is None:
            return
        job = OpenJob(record, self._context.store, stop=stop, closing=self._closing)
        try:
            patiently(lambda: self._see_through(job), self._closing)
        except NotReady:
            self._release(record)
        except EndedElsewhere:
            return
        except Cancelled:
            self._finish(record, JobState.CANCELLED)
        except LimitReached as error:
            state = JobState.CANCELLED if job.is_cancelled() else JobState.FAILED
            self._finish(record, state, error=error)
        except SluiceError as error:
            self._finish(record, JobState.FAILED, error=error)
        except Exception:
            log.exception("job %s failed", identifier)
            unexpected = SluiceError("the job met an unexpected error; it has been logged")
            self._finish(record, JobState.FAILED, error=unexpected)

    def _see_through(self, job: OpenJob) -> None:
        kind = JobKind(job.record.kind)
        if kind is JobKind.OPTIMIZE:
            optimize(job, self._context)
        elif kind is JobKind.COMPARE:
            compare(job, self._context)
        else:
            run_work(job, self._context, self._places)

    def _release(self, job: JobRecord) -> None:
        """The service is stopping, on purpose: that counts as no attempt."""
        with self._context.store.unit_of_work() as unit:
            unit.jobs.release(job)

    def _claim(self, identifier: str) -> JobRecord | None:
        """The job, now running, unless it has ended or was taken by another process."""

        here = self._presence
        assert here is not None
        patiently(here.keep, self._closing)

        def claimed(unit: UnitOfWork) -> JobRecord | None:
            is_claimed = unit.jobs.claim(identifier, runner=here.name)
            return unit.jobs.get(identifier) if is_claimed else None

        job = self._patiently(claimed)
        if job is None:
            return None
        if job.cancel_requested:
            self._finish(job, JobState.CANCELLED)
            return None
        if job.attempts > MAX_ATTEMPTS:
            error = SluiceError(f"the job was begun {MAX_ATTEMPTS} times and never ended")
            self._finish(job, JobState.FAILED, error=error)
            return None
        return job

    def _finish(self, job: JobRecord, state: JobState, *, error: SluiceError | None = None) -> None:
        problem = None if error is None else dump_json(ProblemOut.of(error))
        self._patiently(lambda unit: unit.jobs.finish(job.id, state, error=problem))

    def _patiently(self, work: Callable[[UnitOfWork], T]) -> T:
        def once() -> T:
            with self._context.store.unit_of_work() as unit:
                return work(unit)

        return patiently(once, self._closing)
