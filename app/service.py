"""The running service: where blocking work goes, and how much of it is accepted.

The event loop parses and answers, and never blocks. A unit of work with all its statements, and a
solve that is certain to end within 50 ms, take one hop to a worker thread together. Every other
solve goes to the engine, and a waiting thread sleeps until it ends. What is more than can wait is
refused at once with a time to try again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from app.errors import Overloaded
from app.flows import compare as comparing
from app.flows import solve_message as solving
from app.flows.compare import Comparison, ComparisonTable
from app.flows.context import Context
from app.flows.durable_jobs import JobKind, accept_job, cancel_job
from app.flows.questions import Question
from app.job_runner import JobRunner
from app.metrics import Metrics
from app.schemas.optimize import render_answer
from domain.errors import Cancelled
from domain.solution import Solution
from models.records import JobRecord

if TYPE_CHECKING:
    from app.jobs import Engine, SolveTask

CALL_THREADS = 4
MAX_PENDING_CALLS = 512
MAX_PENDING_SOLVES = 64

T = TypeVar("T")
Gone = Callable[[], Awaitable[None]]


class Service:
    """One per process. Coroutines are for the event loop's thread; `close` is not."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.metrics = Metrics()
        self.runner = JobRunner(context, threads=context.settings.worker_count + 1)
        self.pending_calls = 0
        self.pending_solves = 0
        self._calls = ThreadPoolExecutor(CALL_THREADS, thread_name_prefix="sluice-call")
        self._waits = ThreadPoolExecutor(MAX_PENDING_SOLVES, thread_name_prefix="sluice-wait")

    async def call(self, work: Callable[[], T]) -> T:
        """Run short blocking work in a worker thread. Raises Overloaded."""
        if self.pending_calls >= MAX_PENDING_CALLS:
            raise Overloaded("more requests are waiting than this service accepts")
        self.pending_calls += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._calls, work)
        finally:
            self.pending_calls -= 1

    async def optimize(self, question: Question, gone: Gone) -> bytes:
        """The JSON of the answer: a stored one, or one that is solved and stored now."""
        outcome = await self.call(lambda: self._answer_at_once(question))
        if isinstance(outcome, tuple):
            origin, body = outcome
        else:
            prepared = outcome
            body = await self._wait(lambda errand: self._through_engine(prepared, errand), gone)
            origin = "engine"
        self.metrics.answer(origin)
        return body

    async def compare(self, comparison: Comparison, gone: Gone) -> ComparisonTable:
        """The table; in a worker thread where it is small, else cell by cell in the engine."""
        outcome = await self.call(lambda: self._compare_at_once(comparison))
        if isinstance(outcome, ComparisonTable):
            return outcome
        resolved = outcome
        return await self._wait(lambda errand: self._table(resolved, errand.solve), gone)

    async def start_job(self, kind: JobKind, make_request: Callable[[], bytes]) -> JobRecord:
        """Check a request, store it as a job, and have it run. Raises what the check raises."""
        self.runner.check_room()
        job = await self.call(lambda: accept_job(self.context.store, kind, make_request()))
        self.runner.submit(job.id)
        return job

    async def cancel_job(self, identifier: str) -> JobRecord:
        """Cancel a job, also one that this process is running. Raises NotFound."""
        job = await self.call(lambda: cancel_job(self.context.store, identifier))
        if not job.state.is_terminal:
            self.runner.cancel(identifier)
        return job

    def prepare(self, question: Question) -> solving.Prepared:
        """Resolve a question against the store. Blocks."""
        with self.context.store.reading() as unit:
            return solving.prepare(
                question,
                solving.stored_revision(unit),
                fragment_cap=self.context.settings.max_fragments,
            )

    def resolve(self, comparison: Comparison) -> comparing.Resolved:
        """Resolve a comparison against the store. Blocks. Raises NotFound."""
        with self.context.store.reading() as unit:
            return comparing.resolve(comparison, solving.stored_revision(unit))

    def close(self) -> None:
        """End the threads; the engine has to be closed first."""
        self.runner.close()
        self._waits.shutdown(cancel_futures=True)
        self._calls.shutdown()

    # --- in worker threads ------------------------------------------------------------------------

    def _answer_at_once(self, question: Question) -> tuple[str, bytes] | solving.Prepared:
        with self.context.store.reading() as unit:
            prepared = solving.prepare(
                question,
                solving.stored_revision(unit),
                fragment_cap=self.context.settings.max_fragments,
            )
            stored = solving.find_stored(unit, prepared)
        if stored is not None:
            return "stored", stored.body
        if not solving.is_quick(prepared):
            return prepared
        return "quick", self._keep(solving.solve_here(prepared))

    def _through_engine(self, prepared: solving.Prepared, errand: Errand) -> bytes:
        started_s = time.perf_counter()
        solution = errand.solve(solving.task_of(prepared))
        solve_ms = (time.perf_counter() - started_s) * 1e3
        answer = solving.conclude(prepared, solution, solve_ms=solve_ms)
        errand.check()
        # Through the threads for calls: they are as few as the database has connections for.
        return self._calls.submit(self._keep, answer).result()

    def _keep(self, answer: solving.Answer) -> bytes:
        with self.context.store.unit_of_work() as unit:
            return solving.keep(unit, answer, render_answer).body

    def _compare_at_once(self, comparison: Comparison) -> ComparisonTable | comparing.Resolved:
        resolved = self.resolve(comparison)
        if not comparing.is_quick(resolved, fragment_cap=self.context.settings.max_fragments):
            return resolved
        return self._table(resolved, comparing.solve_in_process)

    def _table(
        self, resolved: comparing.Resolved, solve: Callable[[SolveTask], Solution]
    ) -> ComparisonTable:
        return comparing.tabulate(resolved, solve, fragment_cap=self.context.settings.max_fragments)

    # --- waiting ----------------------------------------------------------------------------------

    async def _wait(self, work: Callable[[Errand], T], gone: Gone) -> T:
        """Run long work in a waiting thread, and cancel it where the client goes away."""
        if self.pending_solves >= MAX_PENDING_SOLVES:
            raise Overloaded("more solves are waiting than this service accepts")
        errand = Errand(self.context.engine)
        self.pending_solves += 1
        watcher = asyncio.ensure_future(gone())
        try:
            loop = asyncio.get_running_loop()
            worker = loop.run_in_executor(self._waits, work, errand)
            await asyncio.wait((worker, watcher), return_when=asyncio.FIRST_COMPLETED)
            if not worker.done():
                errand.cancel()
            return await worker
        finally:
            errand.cancel()
            watcher.cancel()
            self.pending_solves -= 1


class Errand:
    """Work in the engine on behalf of one client; `cancel` may be called by any thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ticket: str | None = None
        self._cancelled = False

    def solve(self, task: SolveTask) -> Solution:
        """The engine's solution. Raises Cancelled where nobody waits for it any more."""
        self.check()
        self._ticket = self._engine.submit(task)
        if self._cancelled:
            self._engine.cancel(self._ticket)
        solution = self._engine.result(self._ticket)
        self._ticket = None
        self.check()
        return solution

    def check(self) -> None:
        """Raise Cancelled where nobody waits for the result any more."""
        if self._cancelled:
            raise Cancelled("the client went away")

    def cancel(self) -> None:
        """Nobody waits any more. Nothing happens where the work has ended."""
        self._cancelled = True
        ticket = self._ticket
        if ticket is not None:
            self._engine.cancel(ticket)
