"""Runs durable jobs: claims them where the engine has free slots, and writes down how they end.

A job's row is the truth. Every write of a runner is guarded by the claim under which it has the
job; one that comes too late, since another runner was given the job meanwhile, changes nothing, and
what it would have stored is rolled back with it.

One thread does all of this, so that nothing here is locked; the engine's threads only leave what
they have to say. Whatever the database refuses to take for now is tried again until it does.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from app.execution.engine import End, Engine, Pool, Stopped
from app.jobs.ledger import LOST_TOO_OFTEN, Heartbeat, RunnerOptions
from app.jobs.running_job import Files, Part, RunningJob, blame_of, crash_error, problem_of
from app.operations.fits import ReadFiles
from app.operations.operation import Operation
from app.operations.tasks import prepare_request
from app.questions.source import ReadElsewhere, Stored
from app.telemetry import events
from domain.errors import (
    Conflict,
    LimitReached,
    NotReady,
    Overloaded,
    QuotaExceeded,
    SluiceError,
    StoreUnavailable,
)
from models.errors import Fenced
from models.records import Blame, ChangedBy, JobChanges, JobRecord, JobState

if TYPE_CHECKING:
    from app.settings import Settings
    from models.session import Store, UnitOfWork


log = logging.getLogger("sluice.jobs")

_DRAIN_LOOK_S = 0.1
_CLOSE_S = 10.0  # for what is given back at the end

Prepare: TypeAlias = Callable[[str, bytes, "Stored"], Operation[Any]]
Write: TypeAlias = Callable[["UnitOfWork"], object]


@dataclass(frozen=True, slots=True)
class _Ended:
    job: RunningJob
    part: Part
    end: End


@dataclass(slots=True)
class _Unwritten:
    """How a job ends, which the database would not take yet."""

    record: JobRecord
    write: Write
    retry_at_s: float


class Runner:
    """One per process. `start` begins to run jobs; `close` gives back what has not ended."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        prepare: Prepare,
        options: RunnerOptions | None = None,
        *,
        memory_bytes: int,
    ) -> None:
        self._store = store
        self._engine = engine
        self._prepare = prepare
        self._options = options or RunnerOptions()
        self._memory_bytes = memory_bytes
        self._heartbeat = Heartbeat(store, self._options, self._give_up_all)
        self._jobs: dict[str, RunningJob] = {}
        self._unwritten: deque[_Unwritten] = deque()
        self._ends: deque[_Ended] = deque()
        self._wake = threading.Event()
        self._news = threading.Event()  # of the database: jobs to run or to stop
        self._draining = threading.Event()
        self._closing = threading.Event()
        self._is_empty = threading.Event()
        self._threads = (
            threading.Thread(target=self._work, name="sluice-runner", daemon=True),
            threading.Thread(target=self._listen, name="sluice-notices", daemon=True),
        )
        self._next_poll_s = 0.0
        self._next_show_s = 0.0
        self._waiting_by_pool: dict[str, int] = {}
        self.fenced = 0  # writes that came too late
        self.waiting = 0  # jobs of all services that wait, as it was seen last

    @property
    def running(self) -> int:
        """Return how many jobs this process runs."""
        return len(self._jobs)

    @property
    def name(self) -> str:
        """Return the name under which it claims jobs."""
        return self._heartbeat.name

    @property
    def collected(self) -> Mapping[str, int]:
        """Return how many rows this process has deleted, by kind."""
        return self._heartbeat.collector.collected

    def start(self) -> None:
        """Begin to claim jobs. Raises StoreUnavailable."""
        self._heartbeat.start()
        self._store.watch_jobs(self._notice)
        for thread in self._threads:
            thread.start()

    def close(self, *, drain_s: float = 0.0, at_once: threading.Event | None = None) -> None:
        """Claim no more, wait so long for what runs, and give the rest back, which counts nothing.

        `at_once` ends the wait where it is set. Close the engine after it.
        """
        self._draining.set()
        self._wake.set()
        until_s = time.monotonic() + drain_s
        while time.monotonic() < until_s and not (at_once and at_once.is_set()):
            if self._is_empty.wait(_DRAIN_LOOK_S):
                break
        self._closing.set()
        self._give_up_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=_CLOSE_S)
        self._store.unwatch_jobs(self._notice)
        self._heartbeat.close()

    # --- in any thread ----------------------------------------------------------------------------

    def _notice(self) -> None:
        self._news.set()
        self._wake.set()

    def _task_ended(self, job: RunningJob, part: Part, end: End) -> None:
        self._ends.append(_Ended(job, part, end))
        self._wake.set()

    def _give_up_all(self) -> None:
        """End all tasks: their jobs are taken for lost, or the service stops."""
        for job in tuple(self._jobs.values()):
            job.is_given_up = True
            self._cancel_tasks(job)
        self._wake.set()

    def _cancel_tasks(self, job: RunningJob) -> None:
        for task in job.tasks_in_flight:
            self._engine.cancel(task.id, task.claim)

    # --- threads ----------------------------------------------------------------------------------

    def _listen(self) -> None:
        self._store.listen_for_jobs(self._notice, self._closing)

    def _work(self) -> None:
        closed_at_s = float("inf")
        while time.monotonic() < closed_at_s:
            self._wake.wait(self._pause_s())
            self._wake.clear()
            try:
                self._turn()
            except StoreUnavailable as error:
                log.warning("the runner waits for the database: %s", error)
                self._news.set()  # what this round would have done is still to be done
                self._closing.wait(self._options.retry_s)
            except Exception:
                log.exception("the runner met an unexpected error")
                self._closing.wait(self._options.retry_s)
            is_empty = not (self._jobs or self._unwritten or self._ends)
            if self._draining.is_set() and is_empty:
                self._is_empty.set()
            if self._closing.is_set():
                if is_empty:
                    return
                closed_at_s = min(closed_at_s, time.monotonic() + _CLOSE_S / 2)

    def _pause_s(self) -> float:
        due_s = self._next_poll_s
        if self._jobs:
            due_s = min(due_s, self._next_show_s)
        if self._unwritten:
            due_s = min(due_s, self._unwritten[0].retry_at_s)
        return max(0.0, due_s - time.monotonic())

    def _turn(self) -> None:
        while self._ends:
            ended = self._ends.popleft()
            self._see_end(ended)
        self._write_again()
        now_s = time.monotonic()
        is_poll = now_s >= self._next_poll_s
        if is_poll:
            self._next_poll_s = now_s + self._options.poll_s
        if is_poll or self._news.is_set():
            self._news.clear()
            self._look_for_cancels()
            self._count_waiting()
        for job in tuple(self._jobs.values()):
            self._submit_parts(job)
        if not self._draining.is_set():
            self._claim(is_poll=is_poll)
        if now_s >= self._next_show_s:
            self._next_show_s = now_s + self._options.show_s
            self._show_all()

    # --- claims -----------------------------------------------------------------------------------

    def _count_waiting(self) -> None:
        with self._store.reading() as unit:
            self._waiting_by_pool = unit.jobs.waiting(*Pool)
        self.waiting = sum(self._waiting_by_pool.values())

    def _claim(self, *, is_poll: bool) -> None:
        for pool in Pool:
            while self._waiting_by_pool.get(pool) and self._has_free_slot(pool, is_poll=is_poll):
                job = self._claimed(pool)
                if job is None:  # others were faster, or it is to wait
                    self._waiting_by_pool.pop(pool, None)
                    break
                self._begin(job)

    def _claimed(self, pool: Pool) -> JobRecord | None:
        try:
            with self._store.unit_of_work() as unit:
                return unit.jobs.claim(self._heartbeat.name, pool=pool)
        except Conflict:  # it was removed by another one, and has no new name yet
            return None

    def _has_free_slot(self, pool: Pool, *, is_poll: bool) -> bool:
        """Return whether to claim a job for this pool.

        Where clients keep all slots busy one job waits in the engine's queue, so that
        jobs go on; it is taken at a poll only, so that a runner with a free slot is first.
        """
        mine = sum(
            max(1, len(job.in_flight)) for job in self._jobs.values() if job.record.pool == pool
        )
        capacity = self._engine.capacity(pool)
        if mine >= capacity.for_jobs:
            return False
        return capacity.busy < capacity.slots or (is_poll and mine == 0)

    def _begin(self, record: JobRecord, files: Files = ()) -> None:
        """Prepare a claimed job, and give its tasks to the engine: those that read its files first,
        which are then among `files`.
        """
        operation: Operation[Any]
        try:
            try:
                with self._store_of(record).reading() as unit:
                    stored = Stored.of_unit(unit, files)
                    operation = self._prepare(record.kind, record.request, stored)
                if self._is_stored(record, operation):
                    return
            except ReadElsewhere as missing:
                operation = ReadFiles(missing.work)
            job = RunningJob(record, operation, files, memory_bytes=self._memory_bytes)
        except Exception as error:
            self._end_unbegun(record, error)
            return
        self._jobs[record.id] = job
        fields = {"kind": record.kind, "attempts": record.claim}
        events.info("job begun", extra={"job": record.id, "owner": record.owner, "fields": fields})
        self._submit_parts(job)

    def _store_of(self, record: JobRecord) -> Store:
        """Return the store for a job's owner; what is changed is changed by the job."""
        return self._store.of(record.owner, ChangedBy(f"job {record.id}"))

    def _is_stored(self, record: JobRecord, operation: Operation[Any]) -> bool:
        """End a job whose result is stored already."""
        with self._store_of(record).unit_of_work() as unit:
            outcome = operation.stored(unit)
            if outcome is None:
                return False
            unit.jobs.finish(
                record,
                JobState.DONE,
                {} if outcome.answer_id else {"best": outcome.document},
                answer_id=outcome.answer_id,
                request_digest=operation.digest,
            )
        return True

    def _end_unbegun(self, record: JobRecord, error: Exception) -> None:
        if isinstance(error, Fenced):
            self.fenced += 1
        elif isinstance(error, StoreUnavailable):
            self._write(record, lambda unit: unit.jobs.give_back(record, error=LOST_TOO_OFTEN))
        else:
            self._write_failure(record, error)

    def _submit_parts(self, job: RunningJob) -> None:
        """Give the engine as many parts as it has slots; the others follow as these end."""
        if job.is_cancelled or job.is_given_up:
            job.stop_submitting()
        slots = max(1, self._engine.capacity(job.operation.pool).slots)
        while len(job.in_flight) < slots and (part := job.next_part()):
            try:
                self._engine.submit(part.task, job.sink(part, self._task_ended))
            except Overloaded:
                job.put_back(part)  # the next round tries again
                return
            except NotReady:
                self._task_ended(job, part, Stopped(is_closing=True))
        if not job.in_flight:  # stopped between two parts
            self._conclude(job, None, Stopped(is_closing=not job.is_cancelled))

    # --- ends -------------------------------------------------------------------------------------

    def _see_end(self, ended: _Ended) -> None:
        job, part = ended.job, ended.part
        if self._jobs.get(job.record.id) is not job:
            return  # it has ended, or is not ours any more; this was another part of it
        try:
            self._conclude(job, part, ended.end)
        except Exception as error:
            self._drop(job)
            self._write_failure(job.record, error)

    def _conclude(self, job: RunningJob, part: Part | None, end: End) -> None:
        """Write how a job ends, where this end of a part is its end."""
        blame = blame_of(end, job)
        if blame is not None:
            error = crash_error(job, part, end)
            wait_s = 0.0
            if blame is Blame.CRASH:
                wait_s = self._options.crash_wait_s * 4.0**job.record.crashes
            self._drop(job)
            self._write(
                job.record,
                lambda unit: unit.jobs.give_back(job.record, blame, error=error, wait_s=wait_s),
            )
            return
        if part is None:
            self._end(job, JobState.CANCELLED)
            return
        try:
            result = part.result(end)
        except LimitReached as error:
            state = JobState.CANCELLED if job.is_cancelled else JobState.FAILED
            self._end(job, state, error=error)
        except SluiceError as error:
            if job.is_cancelled:
                self._end(job, JobState.CANCELLED)
            else:
                self._end(job, JobState.FAILED, error=error)
        else:
            if job.ended(part, result):
                self._keep_or_go_on(job, job.result())
            else:
                self._submit_parts(job)

    def _keep_or_go_on(self, job: RunningJob, result: Any) -> None:
        """Keep the result; that of reading a file is what the job is prepared of."""
        if not isinstance(job.operation, ReadFiles):
            self._keep(job, result)
        elif job.is_cancelled:
            self._end(job, JobState.CANCELLED)
        else:
            self._drop(job)
            self._begin(job.record, (*job.files, (job.operation.files_work, result)))

    def _keep(self, job: RunningJob, result: Any) -> None:
        """Store the result and end the job, in one unit of work."""
        state = JobState.CANCELLED if job.is_cancelled else JobState.DONE
        record, operation = job.record, job.operation
        self._drop(job)

        def write(unit: UnitOfWork) -> None:
            outcome = operation.keep(unit, result)
            unit.jobs.finish(
                record,
                state,
                job.last_changes(result, outcome.document),
                answer_id=outcome.answer_id,
                request_digest=operation.digest,
            )

        self._write(record, write)

    def _end(self, job: RunningJob, state: JobState, *, error: SluiceError | None = None) -> None:
        problem = None if error is None else problem_of(error)
        changes = job.progress()
        self._drop(job)
        self._write(
            job.record,
            lambda unit: unit.jobs.finish(job.record, state, changes, error=problem),
        )

    def _drop(self, job: RunningJob) -> None:
        """Have nothing more to do with a job but to write its end."""
        self._jobs.pop(job.record.id, None)
        self._cancel_tasks(job)

    # --- writes -----------------------------------------------------------------------------------

    def _write(self, record: JobRecord, write: Write, *, is_failure: bool = False) -> None:
        """Write how a job ends, now or when the database is back; as failed where it cannot be."""
        try:
            with self._store_of(record).unit_of_work() as unit:
                write(unit)
        except Fenced:
            self.fenced += 1
            log.warning("job %s came too late", record.id, extra={"job": record.id})
        except StoreUnavailable as error:
            log.warning("the end of a job waits for the database: %s", error)
            retry_at_s = time.monotonic() + self._options.retry_s
            self._unwritten.append(_Unwritten(record, write, retry_at_s))
        except Exception as error:
            if is_failure:
                raise
            self._write_failure(record, error)

    def _write_failure(self, record: JobRecord, error: Exception) -> None:
        """End a job as failed; an error that is not to be shown is logged."""
        if not isinstance(error, SluiceError):
            log.error("job %s failed", record.id, exc_info=error, extra={"job": record.id})
            error = SluiceError("the job met an unexpected error; it has been logged")
        problem = problem_of(error)
        # What there is no room for is not kept by half either.
        changes: JobChanges = {}
        if isinstance(error, QuotaExceeded):
            changes = {"best": None, "history": None}
        self._write(
            record,
            lambda unit: unit.jobs.finish(record, JobState.FAILED, changes, error=problem),
            is_failure=True,
        )

    def _write_again(self) -> None:
        for _ in range(len(self._unwritten)):
            if self._unwritten[0].retry_at_s > time.monotonic() and not self._closing.is_set():
                return
            unwritten = self._unwritten.popleft()
            self._write(unwritten.record, unwritten.write)

    def _show_all(self) -> None:
        for job in tuple(self._jobs.values()):
            try:
                changes = job.progress()
            except Exception as error:  # a best result that cannot be read: of this job alone
                self._drop(job)
                self._write_failure(job.record, error)
                continue
            if not changes:
                continue
            try:
                with self._store.unit_of_work() as unit:
                    is_cancelled = unit.jobs.show(job.record, **changes)
            except Fenced:
                self.fenced += 1
                self._drop(job)
            else:
                job.has_shown()
                if is_cancelled:
                    self._cancel(job)

    def _look_for_cancels(self) -> None:
        if not self._jobs:
            return
        with self._store.reading() as unit:
            asked = unit.jobs.to_cancel(self._heartbeat.name)
        for identifier in asked & self._jobs.keys():
            self._cancel(self._jobs[identifier])

    def _cancel(self, job: RunningJob) -> None:
        if not job.is_cancelled:
            job.is_cancelled = True
            job.stop_submitting()
            self._cancel_tasks(job)
            if not job.in_flight:
                self._end(job, JobState.CANCELLED)


# --- the runner of a service or of `sluice admin work`, as its settings want it -------------------


def open_runner(store: Store, engine: Engine, settings: Settings) -> Runner:
    """Return the runner of a service or of a worker, which is still to be started."""

    def prepare(kind: str, request: bytes, stored: Stored) -> Operation[Any]:
        return prepare_request(kind, request, stored, settings)

    options = RunnerOptions.of_lease(settings.lease_s)
    bounded = store.bounded(settings.stored_bytes_quota)
    return Runner(bounded, engine, prepare, options, memory_bytes=settings.worker_memory)
