"""The running service: where blocking work goes, and how much of it is accepted.

The event loop parses and answers, and never blocks. A unit of work takes one hop to a worker thread
with all its statements. A small solve, ended after 40 ms if it turns out to be long, and the
storing of its answer take one hop to the thread for solves, so that look-ups never queue behind
solves. Every other solve goes to the engine, and a waiting thread sleeps until it ends. What is
more than can wait is refused at once with a time to try again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from app.apart import Child
from app.child_places import ChildPlaces
from app.errand import Errand
from app.explorer import Explorer
from app.export_desk import ExportDesk
from app.fit_apart import FitApart
from app.flows import compare as comparing
from app.flows import solve_message as solving
from app.flows.compare import Comparison, ComparisonTable
from app.flows.context import Context
from app.flows.durable_jobs import JobKind, accept_job, cancel_job
from app.flows.fit_plot import find_fit, plot_stored
from app.flows.fit_trace import (
    FittedTrace,
    SavedFit,
    fit_traces,
    get_fit,
    get_trace,
    options_named,
    save_fit,
)
from app.flows.held_trace import HeldTrace
from app.flows.questions import Question
from app.flows.solve_message import sizes_used_for
from app.job_runner import JobRunner
from app.lookup.answers import Ready
from app.lookup.front import Front
from app.lookup.held import HeldTable
from app.lookup.lookups import Lookups
from app.metrics import Metrics
from app.plot_apart import plot_apart
from app.schemas.optimize import render_answer
from app.table_desk import TableDesk
from app.work_desk import WorkDesk
from domain.errors import Overloaded
from domain.fit_plot import FitPlot
from domain.profile import ProfileReference
from domain.solution import Solution
from models.packing import PackedTrace
from models.records import FitRecord, FitRequest, JobRecord

if TYPE_CHECKING:
    from app.jobs import SolveTask

CALL_THREADS = 4
MAX_PENDING_CALLS = 512
MAX_PENDING_SOLVES = 64
HERE_PER_SOLVE = 2  # small solves that may wait here for each one that waits in the engine
LONG_TRACE_BYTES = 2**20

T = TypeVar("T")
Gone = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class FitOutcome:
    """A fit, and what it was saved as."""

    fitted: FittedTrace
    saved: SavedFit | None


@dataclass(frozen=True, slots=True)
class Found:
    """A question that no stored answer serves, and whether it may be solved in this process."""

    prepared: solving.Prepared
    is_quick: bool


@dataclass(frozen=True, slots=True)
class Lookup:
    """A message to look up; `if_none_match` are the tags that the client holds."""

    reference: ProfileReference
    message_bytes: int
    if_none_match: str


@dataclass(frozen=True, slots=True)
class FromTable:
    """A table's answer, and the table where it is to be held from now on."""

    ready: Ready
    table: HeldTable | None


class Service:
    """One per process. Coroutines are for the event loop's thread; `close` is not."""

    def __init__(self, context: Context, metrics: Metrics, front: Front) -> None:
        self.context = context
        self.metrics = metrics
        self.places = ChildPlaces()
        self.exports = ExportDesk(self)
        self.tables = TableDesk(self)
        self.work = WorkDesk(self)
        self.explorer = Explorer()
        self.lookups = Lookups(context.store, front, refresh_s=context.settings.lookup_refresh_s)
        self.runner = JobRunner(context, self.places, threads=context.settings.worker_count + 1)
        self.pending_calls = 0
        self.pending_solves = 0
        self.open_streams = 0
        self._solving_here = 0
        self._calls = ThreadPoolExecutor(CALL_THREADS, thread_name_prefix="sluice-call")
        # One thread: solving holds the interpreter's lock, and more would only take turns.
        self._quick = ThreadPoolExecutor(1, thread_name_prefix="sluice-quick")
        self._waits = ThreadPoolExecutor(MAX_PENDING_SOLVES, thread_name_prefix="sluice-wait")

    async def call(self, work: Callable[[], T]) -> T:
        """Run short blocking work in a worker thread. Raises Overloaded."""
        return await self._in(self._calls, work)

    async def optimize(self, question: Question, gone: Gone) -> bytes:
        """The JSON of the answer: a stored one, or one that is solved and stored now."""
        found = await self.call(lambda: self._look_up(question))
        return await self._answered(found, gone)

    async def table_answer(self, asked: Lookup) -> Ready | None:
        """What the profile's active table says; None where there is none for this message."""
        found = await self.call(lambda: self._from_table(asked))
        return None if found is None else self._served(found)

    async def look_up(self, asked: Lookup, question: Question, gone: Gone) -> Ready | bytes:
        """What the profile's active table says, or the JSON of the answer where it has none."""
        found = await self.call(lambda: self._from_table(asked) or self._look_up(question))
        if isinstance(found, FromTable):
            return self._served(found)
        return await self._answered(found, gone)

    async def _answered(self, found: bytes | Found, gone: Gone) -> bytes:
        if isinstance(found, bytes):
            self.metrics.answer("stored")
            return found
        quick = await self._quick_answer(found)
        if quick is not None:
            self.metrics.answer("quick")
            return quick
        body = await self._wait(lambda errand: self._through_engine(found, errand), gone)
        self.metrics.answer("engine")
        return body

    async def _quick_answer(self, found: Found) -> bytes | None:
        """The answer solved in this process, or None where the engine has to solve it."""
        if not found.is_quick or self._solving_here > HERE_PER_SOLVE * (1 + self.pending_solves):
            return None
        self._solving_here += 1
        try:
            return await self._in(self._quick, lambda: self._solve_here(found))
        finally:
            self._solving_here -= 1

    async def compare(self, comparison: Comparison, gone: Gone) -> ComparisonTable:
        """The table; in a worker thread where it is small, else cell by cell in the engine."""
        cap = self.context.settings.max_fragments
        resolved = await self.call(lambda: self.resolve(comparison))
        if comparing.is_quick(resolved, fragment_cap=cap):
            table = await self._in(self._quick, lambda: self._quick_table(resolved))
            if table is not None:
                return table
        return await self._wait(lambda errand: self._table(resolved, errand.solve), gone)

    async def start_job(self, kind: JobKind, make_request: Callable[[], bytes]) -> JobRecord:
        """Check a request, store it as a job, and have it run. Raises what the check raises."""
        self.runner.check_room()
        job = await self.call(lambda: accept_job(self.context.store, kind, make_request()))
        self.runner.submit(job)
        return job

    async def cancel_job(self, identifier: str) -> JobRecord:
        """Cancel a job, also one that this process is running. Raises NotFound."""
        job = await self.call(lambda: cancel_job(self.context.store, identifier))
        self.runner.cancel(identifier)
        return job

    async def fit(
        self,
        traces: Sequence[HeldTrace],
        request: FitRequest,
        *,
        save_as: str | None,
        gone: Gone,
        wants_plot: bool = False,
    ) -> FitOutcome:
        """Fit traces, and store all of it as a profile where a name is given.

        Long ones are fitted in a process of their own: they would hold up every other thread.
        Raises what `fit_traces` does, Overloaded, Cancelled, LimitReached and SolverFailed.
        """
        with options_named({"groups": "group"}):
            fitted = await self._fitted(traces, request, gone, wants_plot=wants_plot)
        if save_as is None:
            return FitOutcome(fitted, None)
        return FitOutcome(fitted, await self.call(lambda: self._save_fit(fitted, save_as)))

    async def stored_fit(self, fit_id: str) -> FitRecord:
        """A stored fit. Raises NotFound."""
        return await self.call(lambda: get_fit(self.context.store, fit_id))

    async def stored_trace(self, digest: str) -> PackedTrace:
        """A stored trace. Raises NotFound."""
        return await self.call(lambda: get_trace(self.context.store, digest))

    async def stored_plot(self, fit_id: str) -> FitPlot:
        """What a plot of a stored fit shows; of a long trace in a process of its own.

        Raises NotFound, Overloaded and LimitReached.
        """
        stored = await self.call(lambda: find_fit(self.context.store, fit_id))
        if len(stored) <= LONG_TRACE_BYTES:
            return await self.call(lambda: plot_stored(stored))
        memory_bytes = self.context.settings.worker_memory_bytes
        return await self._long_fit(lambda: plot_apart(stored, memory_bytes=memory_bytes))

    async def apart(self, child: Child[T], gone: Gone) -> T:
        """Wait for a process of its own, and end it where the client goes away.

        Raises Overloaded where there are enough of them, and what the child does.
        """
        watcher = asyncio.ensure_future(_then(gone, child.cancel))
        try:
            return await self._long_fit(child.run)
        finally:
            child.cancel()
            watcher.cancel()

    def exposition(self) -> str:
        """The metrics as text."""
        return self.metrics.exposition(
            {
                "sluice_pending_calls": ("Requests in worker threads.", self.pending_calls),
                "sluice_pending_solves": ("Requests that wait for a solve.", self.pending_solves),
                "sluice_waiting_jobs": ("Durable jobs that wait.", self.runner.waiting),
                "sluice_event_streams": ("Open event streams.", self.open_streams),
                "sluice_held_tables": ("Compiled tables in memory.", len(self.lookups.front.shelf)),
                "sluice_held_bytes": ("Bytes of them.", self.lookups.front.shelf.held_bytes),
                "sluice_ready_workers": ("Workers ready.", self.context.engine.ready_workers),
            }
        )

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
        self.explorer.close()
        self._waits.shutdown(cancel_futures=True)
        self._quick.shutdown(cancel_futures=True)
        self._calls.shutdown()

    # --- in worker threads ------------------------------------------------------------------------

    def _look_up(self, question: Question) -> bytes | Found:
        with self.context.store.reading() as unit:
            prepared = solving.prepare(
                question,
                solving.stored_revision(unit),
                fragment_cap=self.context.settings.max_fragments,
            )
            stored = solving.find_stored(unit, prepared)
        if stored is not None:
            return stored.body
        return Found(prepared, solving.is_quick(prepared))

    def _solve_here(self, found: Found) -> bytes | None:
        answer = solving.solve_here(found.prepared)
        return None if answer is None else self._keep(answer)

    def _through_engine(self, found: Found, errand: Errand) -> bytes:
        started_s = time.perf_counter()
        solution = errand.solve(solving.task_of(found.prepared))
        solve_ms = (time.perf_counter() - started_s) * 1e3
        answer = solving.conclude(found.prepared, solution, solve_ms=solve_ms)
        errand.check()
        # Through the threads for calls: they are as few as the database has connections for.
        return self._calls.submit(self._keep, answer).result()

    def _keep(self, answer: solving.Answer) -> bytes:
        with self.context.store.unit_of_work() as unit:
            return solving.keep(unit, answer, render_answer).body

    def _from_table(self, asked: Lookup) -> FromTable | None:
        """The active table's answer, and the table where it was not held."""
        name, revision = asked.reference.name, asked.reference.revision
        with self.context.store.reading() as unit:
            summary = unit.tables.active_summary(name, revision)
            if summary is None or not summary.covers(asked.message_bytes):
                return None
            held = self.lookups.front.shelf.peek(summary.digest)
            file = b"" if held else unit.tables.get(summary.digest).file
        table = held or HeldTable.of(summary.digest, file)
        ready = table.sibling().schedule(asked.if_none_match, asked.message_bytes)
        return FromTable(ready, None if held else table)

    def _served(self, found: FromTable) -> Ready:
        if found.table is not None:
            self.lookups.keep(found.table)
        return found.ready

    def _save_fit(self, fitted: FittedTrace, name: str) -> SavedFit:
        with self.context.store.unit_of_work() as unit:
            return save_fit(unit, fitted, name=name)

    async def _fitted(
        self, traces: Sequence[HeldTrace], request: FitRequest, gone: Gone, *, wants_plot: bool
    ) -> FittedTrace:
        settings = self.context.settings
        if sum(trace.content_bytes for trace in traces) <= LONG_TRACE_BYTES:
            sizes_used = sizes_used_for(request.message_bytes, fragment_cap=settings.max_fragments)
            return await self.call(
                lambda: fit_traces(traces, request, sizes_used=sizes_used, wants_plot=wants_plot)
            )
        child = FitApart(
            traces,
            request,
            memory_bytes=settings.worker_memory_bytes,
            fragment_cap=settings.max_fragments,
            wants_plot=wants_plot,
        )
        return await self.apart(child, gone)

    async def _long_fit(self, work: Callable[[], T]) -> T:
        """Wait for a process of its own. Raises Overloaded where there are enough of them."""
        self.places.take_for_client()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._waits, work)
        finally:
            self.places.leave_client()

    def _table(
        self, resolved: comparing.Resolved, solve: Callable[[SolveTask], Solution]
    ) -> ComparisonTable:
        return comparing.tabulate(resolved, solve, fragment_cap=self.context.settings.max_fragments)

    def _quick_table(self, resolved: comparing.Resolved) -> ComparisonTable | None:
        """The table solved in this process, or None where a cell turned out to be long."""
        try:
            return self._table(resolved, comparing.solve_quickly)
        except comparing.NotQuick:
            return None

    async def _in(self, threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        """Run short blocking work in one of these threads. Raises Overloaded."""
        if self.pending_calls >= MAX_PENDING_CALLS:
            raise Overloaded("more requests are waiting than this service accepts")
        self.pending_calls += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, work)
        finally:
            self.pending_calls -= 1

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


async def _then(gone: Gone, act: Callable[[], None]) -> None:
    """Act once the client has gone."""
    await gone()
    act()
