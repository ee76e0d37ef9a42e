"""The running service: where blocking work goes, and how much of it is accepted.

The event loop parses and answers, and never blocks. A unit of work takes one hop to a worker thread
with all its statements; what may wait for the database's writer has threads of its own. A small
solve is tried in that very hop where no other thread solves, and ended after 40 ms. Everything else
goes to the engine. What is more than can wait is refused at once with a time to try again.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from app.execution.engine import Engine, Pool
from app.execution.local import SOLVES_HERE_PER_TASK
from app.http.call_threads import Backlog, CallThreads, Counts, RenderQueue, TaskWait
from app.http.fastpath.fast_path import FastPath, LoadedTable
from app.http.fastpath.lookups import Lookups
from app.http.fastpath.responses import CachedResponse
from app.http.metrics import Metrics, gauges_of, gauges_of_runner
from app.jobs.ledger import accept_job, cancel_job, get_job
from app.operations.fits import FitTraces, PlotFit
from app.operations.operation import Operation, Outcome
from app.operations.optimize import Optimize, schedule_operation
from app.operations.tables import ExportSetting, RecentExports
from app.operations.tasks import result_of, task_of
from app.operations.work import Fitted
from app.questions.fits import find_fit
from app.settings import Settings
from domain.errors import SluiceError
from domain.profile import ProfileReference
from domain.verification import said_of
from models.identifiers import new_id

if TYPE_CHECKING:
    from app.http.access import Gate
    from app.jobs.runner import Runner
    from app.operations.solves import Solved
    from app.questions.settings import Exported
    from domain.fit_plot import FitPlot
    from models.records import ChangedBy, JobRecord, Waiting
    from models.session import Store, UnitOfWork

_LOOK_S = 0.05  # between looks at a job that may end soon
_COUNT_LIMIT_S = 2.0  # for what waits to be counted when metrics are asked for

T = TypeVar("T")

# What is stored with an outcome, in the same transaction.
Then: TypeAlias = Callable[["UnitOfWork", Outcome], None]


def nothing(_unit: UnitOfWork, _stored: object) -> None:
    """Store nothing more."""


@dataclass(frozen=True, slots=True)
class Context:
    """The store, the engine and the settings of a running service."""

    store: Store
    engine: Engine
    settings: Settings


@dataclass(frozen=True, slots=True)
class Client:
    """A waiting client: its name in queues, and a wait for its disconnection."""

    name: str
    wait_disconnected: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Performed:
    """What was stored, and whether it was computed for this call."""

    outcome: Outcome
    is_new: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """The JSON of an answer, and where it came from."""

    body: bytes
    origin: str


@dataclass(frozen=True, slots=True)
class Unsolved:
    """An optimisation that no stored answer serves; `is_quick`: it may be tried in this process."""

    operation: Optimize
    is_quick: bool


@dataclass(frozen=True, slots=True)
class Unstored:
    """What was solved in this process and is to be stored by a thread that may wait."""

    operation: Optimize
    result: Solved


@dataclass(frozen=True, slots=True)
class Lookup:
    """A message to look up; `if_none_match` are the tags that the client holds."""

    reference: ProfileReference
    message_bytes: int
    if_none_match: str


@dataclass(frozen=True, slots=True)
class FromTable:
    """A table's response, and the table where it is to be cached from now on."""

    response: CachedResponse
    table: LoadedTable | None


class Service:
    """One per process. Coroutines are for the event loop's thread; `close` is not."""

    def __init__(
        self,
        context: Context,
        metrics: Metrics,
        fast_path: FastPath,
        runner: Runner | None = None,
        gate: Gate | None = None,
    ) -> None:
        self.context = context
        self.metrics = metrics
        self.runner = runner
        self.pictures = RenderQueue()
        self.lookups = Lookups(
            context.store, fast_path, refresh_s=context.settings.lookup_refresh_s, gate=gate
        )
        self.counts = Counts()
        self.backlog = Backlog(lambda: context.engine.capacity(Pool.SOLVE).slots)
        self._exports = RecentExports()
        self._waiting_jobs: tuple[Waiting, ...] = ()
        # One solve at a time, in threads that have other things to do.
        self.solving = threading.Lock()
        self._keeping = threading.Lock()  # taken without waiting
        self._threads = CallThreads(
            max_wait_s=context.store.max_wait_s, parallel_writes=context.store.parallel_writes
        )

    def of(self, owner: str, by: ChangedBy) -> Service:
        """Return the same service for another owner, who sees nothing of what is others', and for
        who asks.
        """
        view, known = copy(self), self.context
        view.context = Context(known.store.of(owner, by), known.engine, known.settings)
        return view

    @property
    def pending_tasks(self) -> int:
        """How many requests wait for a worker."""
        return self.counts.pending_tasks

    @property
    def open_streams(self) -> int:
        """How many event streams are open."""
        return self.counts.open_streams

    async def call(self, work: Callable[[], T]) -> T:
        """Run short blocking work that changes nothing in the database. Raises Overloaded."""
        return await self._threads.read(work)

    async def write(self, work: Callable[[], T]) -> T:
        """Run short blocking work that may change the database.

        Raises Overloaded, and StoreUnavailable where the database takes no write in time.
        """
        return await self._threads.write(work)

    async def prepare(self, make: Callable[[UnitOfWork], T]) -> T:
        """Return what is made of the store's current state."""

        def prepared() -> T:
            with self.context.store.reading() as unit:
                return make(unit)

        return await self.call(prepared)

    # --- optimisations ----------------------------------------------------------------------------

    async def optimize(
        self, make: Callable[[UnitOfWork], Optimize], client: Client, then: Then = nothing
    ) -> bytes:
        """Return the JSON of the answer: a stored one, or one that is solved and stored now, with
        what `then` stores.
        """
        found = await self.call(lambda: self._answered_here(make, then))
        return await self._answer(found, client, then)

    async def table_answer(self, asked: Lookup) -> CachedResponse | None:
        """Return the active table's response; None where there is none for this message."""
        found = await self.call(lambda: self._from_table(asked))
        return None if found is None else self._served(found)

    async def lookup(self, asked: Lookup, client: Client) -> CachedResponse | bytes:
        """Return the active table's response, or the JSON of the answer where it has none."""
        found = await self.call(
            lambda: self._from_table(asked) or self._answered_here(self.asked_schedule(asked))
        )
        if isinstance(found, FromTable):
            return self._served(found)
        return await self._answer(found, client)

    def asked_schedule(self, asked: Lookup) -> Callable[[UnitOfWork], Optimize]:
        """Return the optimisation that a lookup asks for where no table answers it."""
        settings = self.context.settings
        return lambda unit: schedule_operation(asked.reference, asked.message_bytes, unit, settings)

    async def _answer(
        self, found: Answered | Unsolved | Unstored, client: Client, then: Then = nothing
    ) -> bytes:
        if isinstance(found, Unsolved):
            found = await self._solved(found, client, then)
        elif isinstance(found, Unstored):
            kept = await self.keep(found.operation, found.result, then)
            found = Answered(kept.document, "quick")
        self.metrics.answer(found.origin)
        return found.body

    async def _solved(self, found: Unsolved, client: Client, then: Then) -> Answered:
        """Return the answer, solved in this process once it may, or by the engine."""
        operation, quick = found.operation, None
        with self.backlog.entered(client.name):
            if found.is_quick:
                quick = await self._tried_here(operation)
            if quick is None:
                solved = await self.through_engine(operation, client)
                return Answered((await self.keep(operation, solved, then)).document, "engine")
        return Answered((await self.keep(operation, quick, then)).document, "quick")

    async def _tried_here(self, operation: Operation[T]) -> T | None:
        """Return what is solved in this process, once it may; None where that takes long."""
        counts = self.counts
        is_full = counts.waiting_here > SOLVES_HERE_PER_TASK * (1 + counts.pending_tasks)
        if is_full or self.backlog.is_overloaded:
            return None
        counts.waiting_here += 1
        try:
            return await self._threads.solve(lambda: self._run_in_turn(operation))
        finally:
            counts.waiting_here -= 1

    # --- other operations -------------------------------------------------------------------------

    async def perform(
        self,
        make: Callable[[UnitOfWork], Operation[Any]],
        client: Client,
        then: Then = nothing,
    ) -> Performed:
        """Find the result where it is stored, or compute it and keep it, with what `then` stores.

        Raises what preparing and running raise, Overloaded, Cancelled, LimitReached, SolverFailed.
        """
        found = await self.call(lambda: self._performed_here(make))
        if isinstance(found, Performed):
            return found
        if found.stores:
            stored = await self._in_unit(found, found.stored)
            if stored is not None:
                return Performed(stored, is_new=False)
        result = await self.run(found, client)
        return Performed(await self.keep(found, result, then), is_new=True)

    def _performed_here(
        self, make: Callable[[UnitOfWork], Operation[Any]]
    ) -> Performed | Operation[Any]:
        """Return what is computed at once and stored nowhere; else what is left to do."""
        store = self.context.store
        with store.reading() as unit:
            operation = make(unit)
            if operation.stores:
                return operation
            stored = operation.stored(unit)
        if stored is not None:
            return Performed(stored, is_new=False)
        result = None if operation.pool is Pool.SOLVE else operation.run_here()
        if result is None:
            return operation
        with store.reading() as unit:
            return Performed(operation.keep(unit, result), is_new=True)

    async def run(self, operation: Operation[T], client: Client) -> T:
        """Compute: here where that is quick, else in the engine. Nothing is stored."""
        with ExitStack() as stack:
            if operation.pool is Pool.SOLVE:
                stack.enter_context(self.backlog.entered(client.name))
                found = await self._tried_here(operation)
            else:
                found = await self.call(operation.run_here)
            return found if found is not None else await self.through_engine(operation, client)

    async def fit(self, operation: FitTraces, client: Client) -> Fitted:
        """Fit; long traces are given to a worker as open files."""
        if not operation.is_long:
            return await self.run(operation, client)
        with ExitStack() as stack:
            in_files = await self.call(lambda: operation.in_files(stack))
            return await self.through_engine(in_files, client)

    async def keep(self, operation: Operation[T], result: T, then: Then = nothing) -> Outcome:
        """Store what is to be stored, and where that is anything what `then` stores."""

        def kept(unit: UnitOfWork) -> Outcome:
            outcome = operation.keep(unit, result)
            if operation.stores:
                then(unit, outcome)
            return outcome

        return await self._in_unit(operation, kept)

    async def _in_unit(self, operation: Operation[Any], act: Callable[[UnitOfWork], T]) -> T:
        """Act on the store in a unit that may write only where the operation stores."""

        def acted() -> T:
            with self._unit(operation) as unit:
                return act(unit)

        return await (self.write(acted) if operation.stores else self.call(acted))

    async def plot(self, fit_id: str, client: Client) -> FitPlot:
        """Return what a plot of a fit shows. Raises NotFound, Overloaded and LimitReached."""
        fit = await self.call(lambda: find_fit(self.context.store, fit_id))
        return await self.run(PlotFit(fit), client)

    async def export(self, make: Callable[[UnitOfWork], ExportSetting], client: Client) -> Exported:
        """Export; the last exports are cached, so that polling costs one lookup."""
        operation = await self.prepare(make)
        owner = self.context.store.owner
        found = self._exports.find(owner, operation)
        if found is None:
            found = await self.run(operation, client)
        self._exports.add(owner, operation, found)
        return found

    async def through_engine(self, operation: Operation[T], client: Client) -> T:
        """Have a worker process compute it, and end that where the client goes away."""
        engine, settings = self.context.engine, self.context.settings
        task = await self.call(
            lambda: task_of(
                operation,
                id=new_id(),
                memory_bytes=settings.worker_memory_bytes,
                requester=client.name,
            )
        )
        waiting = TaskWait(asyncio.get_running_loop())
        begins = self.backlog.check_begin if operation.pool is Pool.SOLVE else lambda: None
        self.counts.pending_tasks += 1
        try:
            engine.submit(task, waiting.take)
            end = await waiting.until_end(
                client.wait_disconnected, begins, lambda: engine.capacity(task.pool).slots
            )
            if operation.pool is Pool.SOLVE and waiting.run_s >= 0.0:
                self.backlog.took(waiting.run_s)
            found = partial(result_of, operation, end, best=waiting.best, limits=task.limits)
            return await self.call(found)
        finally:
            engine.cancel(task.id, task.claim)
            self.counts.pending_tasks -= 1

    # --- durable jobs -----------------------------------------------------------------------------

    async def start_job(
        self,
        make: Callable[[UnitOfWork], Operation[Any]],
        then: Callable[[UnitOfWork, JobRecord], None] = nothing,
    ) -> JobRecord:
        """Have an operation run as a job: a new one, or one of the same question; store with it
        what `then` stores.

        Raises what its preparation raises.
        """
        store, quota = self.context.store, self.context.settings.waiting_jobs_quota

        def accepted() -> JobRecord:
            with store.reading() as unit:
                operation = make(unit)
            return accept_job(store, operation, most_waiting=quota, then=then)

        return await self.write(accepted)

    async def settled(self, job: JobRecord, within_s: float = 0.4) -> JobRecord:
        """Return the job as it is at its end, or after this time."""
        end_s = time.monotonic() + within_s
        while not job.state.is_terminal and (left_s := end_s - time.monotonic()) > 0.0:
            await asyncio.sleep(min(_LOOK_S, left_s))
            job = await self.call(partial(get_job, self.context.store, job.id))
        return job

    async def cancel_job(self, identifier: str) -> JobRecord:
        """Ask a job to stop, wherever it runs. Raises NotFound."""
        return await self.write(lambda: cancel_job(self.context.store, identifier))

    # --- in worker threads ------------------------------------------------------------------------

    def _answered_here(
        self, make: Callable[[UnitOfWork], Optimize], then: Then = nothing
    ) -> Answered | Unsolved | Unstored:
        """Return the stored answer, or solve and store it at once; else return what is left to do.

        Of the threads for readings one at a time stores: where that has to wait, the others go on.
        """
        with self.context.store.reading() as unit:
            operation = make(unit)
            stored = operation.stored(unit)
        if stored is not None:
            return Answered(stored.document, "stored")
        if not self.solving.acquire(blocking=False):
            return Unsolved(operation, operation.is_quick)
        try:
            solved = operation.run_here()
        finally:
            self.solving.release()
        if solved is None:
            return Unsolved(operation, is_quick=False)
        if not self._keeping.acquire(blocking=False):
            return Unstored(operation, solved)
        try:
            with self._unit(operation) as unit:
                kept = operation.keep(unit, solved)
                then(unit, kept)
                return Answered(kept.document, "quick")
        finally:
            self._keeping.release()

    def _run_in_turn(self, operation: Operation[T]) -> T | None:
        with self.solving:
            self.backlog.check_begin()
            return operation.run_here()

    def _unit(self, operation: Operation[Any]) -> AbstractContextManager[UnitOfWork]:
        store = self.context.store
        return store.unit_of_work() if operation.stores else store.reading()

    def _from_table(self, asked: Lookup) -> FromTable | None:
        """Return the active table's answer, and the table where it was not held."""
        name, revision = asked.reference.name, asked.reference.revision
        with self.context.store.reading() as unit:
            summary = unit.tables.active_summary(name, revision)
            if summary is None or not summary.covers(asked.message_bytes):
                return None
            verified = said_of(unit.profiles.revision(name, summary.profile_revision).verification)
            held = self.lookups.fast_path.cache.peek(summary.digest, unit.owner)
            file = b"" if held else unit.tables.get(summary.digest).file
        table = held or LoadedTable.of(summary.digest, file)
        response = table.sibling().schedule(asked.if_none_match, asked.message_bytes, verified)
        return FromTable(response, None if held else table)

    # --- on the event loop ------------------------------------------------------------------------

    def _served(self, found: FromTable) -> CachedResponse:
        if found.table is not None:
            self.lookups.keep(found.table, self.context.store.owner)
        return found.response

    async def exposition(self) -> str:
        """Return the metrics as text; what waits as it was seen last where the database is away."""
        with suppress(SluiceError, TimeoutError):
            self._waiting_jobs = await asyncio.wait_for(self.call(self._waiting), _COUNT_LIMIT_S)
        cache, runner, context = self.lookups.fast_path.cache, self.runner, self.context
        return self.metrics.exposition(
            {
                "sluice_pending_calls": ("Requests in worker threads.", self._threads.pending),
                "sluice_pending_solves": ("Requests that wait for a worker.", self.pending_tasks),
                **gauges_of(context.store, context.engine, self._waiting_jobs),
                **gauges_of_runner(runner),
                "sluice_event_streams": ("Open event streams.", self.open_streams),
                "sluice_loaded_tables": ("Compiled tables in memory.", len(cache)),
                "sluice_loaded_bytes": ("Bytes of them.", cache.loaded_bytes),
            }
        )

    def _waiting(self) -> tuple[Waiting, ...]:
        with self.context.store.reading() as unit:
            return unit.jobs.waiting_by_kind()

    def close(self) -> None:
        """End the threads; the engine has to be closed first."""
        self.pictures.close()
        self._threads.close()
