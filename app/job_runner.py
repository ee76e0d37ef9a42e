"""Runs durable jobs: a few threads that take a job each and see it to its end.

A job's row is the truth. A runner claims it, shows the best so far in it, looks there for a cancel
that another process was asked for, and ends it together with its answer in one transaction. What
was left running when a process died is queued again by the next one that starts.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from app.errors import NotReady, Overloaded, problem_document
from app.flows import compare as comparing
from app.flows import solve_message as solving
from app.flows.context import Context
from app.flows.durable_jobs import JobKind
from app.job_history import JobHistory
from app.schemas.base import dump_json, parse_json
from app.schemas.compare import CompareIn, comparison_document
from app.schemas.optimize import OptimizeIn, render_answer, solution_document
from domain.errors import Cancelled, Conflict, LimitReached, SluiceError
from domain.solution import Solution
from models.records import JobRecord, JobState

if TYPE_CHECKING:
    from app.jobs import SolveTask

log = logging.getLogger("sluice.jobs")

MAX_ATTEMPTS = 3  # a job that has taken the process down this often is not run again
MAX_WAITING = 10_000
_LOOK_S = 0.1  # between looks at the engine
_SHOW_S = 0.5  # between writes of the best so far, and looks for a cancel asked elsewhere


class _Ended(Exception):
    """The job has ended in the meantime; what was about to be stored is rolled back."""


class JobRunner:
    """Thread-safe. `start` takes up what was left unfinished, `close` waits for the threads."""

    def __init__(self, context: Context, *, threads: int) -> None:
        self._context = context
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._cancelled: set[str] = set()
        self._closing = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"sluice-job-{number}", daemon=True)
            for number in range(threads)
        ]

    @property
    def waiting(self) -> int:
        """How many jobs wait for a thread."""
        return self._waiting.qsize()

    def start(self) -> int:
        """Queue every job that was left unfinished, start the threads; how many were queued."""
        left = self._left_unfinished()
        for identifier in left:
            self._waiting.put(identifier)
        for thread in self._threads:
            thread.start()
        return len(left)

    def check_room(self) -> None:
        """Raise Overloaded where no further job may wait."""
        if self.waiting >= MAX_WAITING:
            raise Overloaded("more jobs are waiting than this service accepts")

    def submit(self, identifier: str) -> None:
        """Run a stored job when a thread is free."""
        self._waiting.put(identifier)

    def cancel(self, identifier: str) -> None:
        """Stop a job at once where it runs in this process; its row says so already."""
        self._cancelled.add(identifier)

    def close(self) -> None:
        """End the threads. Close the engine first: what they wait for ends with it."""
        self._closing.set()
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=30.0)

    def _left_unfinished(self) -> list[str]:
        with self._context.store.unit_of_work() as unit:
            jobs = unit.jobs.unfinished()
            for job in jobs:
                if job.state is JobState.RUNNING:
                    unit.jobs.update(job.id, state=JobState.QUEUED)
        return [job.id for job in jobs]

    # --- threads ----------------------------------------------------------------------------------

    def _work(self) -> None:
        while (identifier := self._waiting.get()) is not None and not self._closing.is_set():
            try:
                self._run(identifier)
            except Exception:
                # The row could not be read or written; the job is still open and runs at restart.
                log.exception("job %s could not be run", identifier)
            finally:
                self._cancelled.discard(identifier)

    def _run(self, identifier: str) -> None:
        job = self._claim(identifier)
        if job is None:
            return
        try:
            _WORK[JobKind(job.kind)](self, job)
        except (NotReady, _Ended):
            return  # the service is stopping, or the job was ended by another process
        except Cancelled:
            self._finish(job, JobState.CANCELLED)
        except LimitReached as error:
            state = JobState.CANCELLED if self._is_cancelled(job) else JobState.FAILED
            self._finish(job, state, error=error)
        except SluiceError as error:
            self._finish(job, JobState.FAILED, error=error)
        except Exception:
            log.exception("job %s failed", identifier)
            unexpected = SluiceError("the job met an unexpected error; it has been logged")
            self._finish(job, JobState.FAILED, error=unexpected)

    def _claim(self, identifier: str) -> JobRecord | None:
        """The job, now running, unless it has ended or was taken by another process."""
        with self._context.store.unit_of_work() as unit:
            if not unit.jobs.claim(identifier):
                return None
            job = unit.jobs.get(identifier)
        if job.cancel_requested:
            self._finish(job, JobState.CANCELLED)
            return None
        if job.attempts > MAX_ATTEMPTS:
            error = SluiceError(f"the job was begun {MAX_ATTEMPTS} times and never ended")
            self._finish(job, JobState.FAILED, error=error)
            return None
        return job

    def _finish(self, job: JobRecord, state: JobState, *, error: SluiceError | None = None) -> None:
        problem = None if error is None else dump_json(problem_document(error))
        with self._context.store.unit_of_work() as unit:
            unit.jobs.finish(job.id, state, error=problem)

    # --- one optimisation -------------------------------------------------------------------------

    def _optimize(self, job: JobRecord) -> None:
        context = self._context
        question = parse_json(OptimizeIn, job.request).to_domain()
        with context.store.reading() as unit:
            prepared = solving.prepare(
                question,
                solving.stored_revision(unit),
                fragment_cap=context.settings.max_fragments,
            )
            stored = solving.find_stored(unit, prepared)
        if stored is not None:
            with context.store.unit_of_work() as unit:
                unit.jobs.finish(job.id, JobState.DONE, answer_id=stored.id)
            return
        started_s, history = time.perf_counter(), JobHistory()
        solution = self._solve(solving.task_of(prepared), job, history)
        solve_ms = (time.perf_counter() - started_s) * 1e3
        answer = solving.conclude(prepared, solution, solve_ms=solve_ms)
        state = JobState.CANCELLED if self._is_cancelled(job) else JobState.DONE
        with context.store.unit_of_work() as unit:
            record = solving.keep(unit, answer, render_answer)
            history.note(solution, elapsed_s=_elapsed_s(job))
            _show(unit.jobs.update, job, solution, history)
            if not unit.jobs.finish(job.id, state, answer_id=record.id):
                raise _Ended

    # --- one comparison ---------------------------------------------------------------------------

    def _compare(self, job: JobRecord) -> None:
        context = self._context
        comparison = parse_json(CompareIn, job.request).to_domain()

        with context.store.reading() as unit:
            resolved = comparing.resolve(comparison, solving.stored_revision(unit))
        table = comparing.tabulate(
            resolved,
            lambda task: self._solve(task, job, None),
            fragment_cap=context.settings.max_fragments,
        )
        with context.store.unit_of_work() as unit:
            unit.jobs.update(job.id, best=dump_json(comparison_document(table)))
            if not unit.jobs.finish(job.id, JobState.DONE):
                raise _Ended

    # --- waiting for the engine -------------------------------------------------------------------

    def _solve(self, task: SolveTask, job: JobRecord, history: JobHistory | None) -> Solution:
        """Solve in the engine, and show what is found on the way where a history is kept.

        A cancel ends it with the best so far, or raises Cancelled.
        """
        engine = self._context.engine
        if self._is_cancelled(job):
            raise Cancelled("the job was cancelled")
        ticket = self._submit(task)
        look_at_s = time.monotonic() + _SHOW_S
        while not (progress := engine.progress(ticket)).state.is_terminal:
            if self._is_cancelled(job):
                engine.cancel(ticket)
            elif time.monotonic() >= look_at_s:
                look_at_s = time.monotonic() + _SHOW_S
                self._look(job, progress.best, history)
            time.sleep(_LOOK_S)
        return engine.result(ticket)

    def _submit(self, task: SolveTask) -> str:
        """A place in the engine's line; jobs wait for one, since nobody waits for them."""
        while True:
            try:
                return self._context.engine.submit(task, lane="jobs")
            except Overloaded:
                if self._closing.wait(_SHOW_S):
                    raise NotReady("the service is stopping") from None

    def _is_cancelled(self, job: JobRecord) -> bool:
        return job.id in self._cancelled

    def _look(self, job: JobRecord, best: Solution | None, history: JobHistory | None) -> None:
        """Show the best so far, and see whether another process was asked to cancel."""
        store = self._context.store
        try:
            if best is None or history is None or not history.note(best, elapsed_s=_elapsed_s(job)):
                with store.reading() as unit:
                    now = unit.jobs.get(job.id)
            else:
                with store.unit_of_work() as unit:
                    now = _show(unit.jobs.update, job, best, history)
        except Conflict:
            self._cancelled.add(job.id)  # ended by another process: stop the solve
            return
        if now.cancel_requested or now.state.is_terminal:
            self._cancelled.add(job.id)


def _elapsed_s(job: JobRecord) -> float:
    return (datetime.now(UTC) - (job.started_at or job.created_at)).total_seconds()


def _show(
    update: Callable[..., JobRecord], job: JobRecord, solution: Solution, history: JobHistory
) -> JobRecord:
    return update(
        job.id,
        best=dump_json(solution_document(solution)),
        best_latency_us=solution.latency_us,
        lower_bound_us=solution.lower_bound_us,
        history=history.as_json(),
    )


_WORK: dict[JobKind, Callable[[JobRunner, JobRecord], None]] = {
    JobKind.OPTIMIZE: JobRunner._optimize,
    JobKind.COMPARE: JobRunner._compare,
}
