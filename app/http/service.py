"""The running service: where blocking work goes, and how much of it is accepted.

The event loop parses and answers, and never blocks. A unit of work takes one hop to a worker thread
with all its statements; what may wait for the database's writer has threads of its own. A small
solve is tried in that very hop where no other thread solves, and ended after 40 ms. Everything else
goes to the engine. What is more than can wait is refused unread with a time to try again.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from app.execution.engine import Engine, Pool
from app.http.admission import Admission
from app.http.call_threads import (
    MAX_READ_WAIT_S,
    READ_THREADS,
    WRITE_THREADS,
    CallPool,
    Counts,
    RenderQueue,
    TaskWait,
)
from app.http.fastpath.fast_path import FastPath, LoadedTable
from app.http.fastpath.lookups import Lookups
from app.http.fastpath.responses import CachedResponse
from app.http.metrics import Metrics, gauges_of_service
from app.jobs.ledger import accept_job, cancel_job, get_job
from app.jobs.metrics import Gauges, gauges_of, gauges_of_runner
from app.operations.fits import FitTraces, PlotFit, ReadFiles
from app.operations.operation import Operation, Outcome
from app.operations.recent import RecentResults, Remembered
from app.operations.tasks import result_of, task_of
from app.operations.work import Fitted
from app.questions.fits import find_fit
from app.questions.source import FileWork, ReadElsewhere, Stored
from app.registry import VERBS
from app.settings import Settings
from domain.errors import SluiceError
from domain.profile import ProfileReference
from domain.verification import said_of
from models.engines import database_folder
from models.identifiers import new_id
from models.records import StoredBytes

if TYPE_CHECKING:
    from app.http.access import Gate
    from app.jobs.runner import Runner
    from domain.fit_plot import FitPlot
    from models.records import ChangedBy, JobRecord, Waiting
    from models.session import Store, UnitOfWork

_LOOK_S = 0.05  # between looks at a job that may end soon
_COUNT_LIMIT_S = 2.0  # for what waits to be counted when metrics are asked for

T = TypeVar("T")

# Prepares a question by the store's current state, and by what workers have read of its files.
Make: TypeAlias = Callable[["Stored"], T]

# What is stored with an outcome, in the same transaction.
Then: TypeAlias = Callable[["UnitOfWork", Outcome], None]


# What workers have read, with what they were asked to.
Files: TypeAlias = tuple[tuple[FileWork[Any], Any], ...]


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
class Unstored:
    """An optimisation that no stored answer serves, and what was solved in this process, for a
    thread that may wait to store it; without that a worker has to solve it.
    """

    operation: Operation[Any]
    result: Any


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
        self.admissions = {pool: Admission(partial(self._workers, pool)) for pool in Pool}
        self._recent = RecentResults()
        self._counted: tuple[tuple[Waiting, ...], StoredBytes] = ((), StoredBytes())
        # One solve at a time, in threads that have other things to do.
        self.solving = threading.Lock()
        self._keeping = threading.Lock()  # taken without waiting
        store, waited = context.store, metrics.waited
        # A write may wait for others of other processes: readings never wait for it.
        self._reads = CallPool(
            "read",
            READ_THREADS,
            waited,
            max_wait_s=store.max_wait_s,
            too_late="the database has been read too slowly",
        )
        self._writes = CallPool(
            "write",
            min(WRITE_THREADS, store.parallel_writes),
            waited,
            max_wait_s=store.max_wait_s,
            too_late="the database has taken no write for some time",
        )
        # One of its own: whether the service is ready must not wait for what holds up the others.
        self._looks = CallPool("ready", 1, waited)
        # Short blocking work, which may change the database only by `write`.
        self.call, self.write = self._reads.run, self._writes.run

    def of(self, owner: str, by: ChangedBy) -> Service:
        """Return the same service for another owner, who sees nothing of what is others', and for
        who asks.
        """
        view, known = copy(self), self.context
        view.context = Context(known.store.of(owner, by), known.engine, known.settings)
        return view

    async def is_reached(self) -> None:
        """Return where the database answers. Raises StoreUnavailable and Overloaded."""
        await self._looks.run_shared(self.context.store.ping)

    async def read(self, work: FileWork[T], client: Client) -> T:
        """Return what a worker reads off files. Raises what reading does."""
        return await self.run(ReadFiles(work), client)

    async def prepare(self, make: Make[T], client: Client) -> T:
        """Return what is made of the store's current state, files being read by workers."""

        def prepared(files: Files) -> T:
            with self.context.store.reading() as unit:
                return make(Stored.of_unit(unit, files))

        return await self.with_files(lambda files: self.call(partial(prepared, files)), client)

    async def with_files(self, attempt: Callable[[Files], Awaitable[T]], client: Client) -> T:
        """Return what is attempted, as soon as workers have read the files for it."""
        files: Files = ()
        while True:
            try:
                return await attempt(files)
            except ReadElsewhere as missing:
                files = (*files, (missing.work, await self.read(missing.work, client)))

    # --- optimisations ----------------------------------------------------------------------------

    async def optimize(
        self, make: Make[Operation[Any]], client: Client, then: Then = nothing
    ) -> bytes:
        """Return the JSON of the answer: a stored one, or one that is solved and stored now, with
        what `then` stores.
        """

        async def answered(files: Files) -> bytes:
            # Entered anew where a file had to be read: that is no queue for those that solve.
            with self.admissions[Pool.SOLVE].entered(client.name):
                found = await self.call(lambda: self._answered_here(make, files, then))
                return await self._answer(found, client, then)

        return await self.with_files(answered, client)

    async def table_answer(self, asked: Lookup) -> CachedResponse | None:
        """Return the active table's response; None where there is none for this message."""
        found = await self.call(lambda: self._from_table(asked))
        return None if found is None else self._served(found)

    async def lookup(self, asked: Lookup, client: Client) -> CachedResponse | bytes:
        """Return the active table's response, or the JSON of the answer where it has none."""
        found = await self.call(
            lambda: self._from_table(asked) or self._answered_here(self.asked_schedule(asked), ())
        )
        if isinstance(found, FromTable):
            return self._served(found)
        with self.admissions[Pool.SOLVE].entered(client.name):
            return await self._answer(found, client)

    def asked_schedule(self, asked: Lookup) -> Make[Operation[Any]]:
        """Return the optimisation that a lookup asks for where no table answers it."""
        schedule = VERBS["optimize"].module("operation").schedule
        return partial(
            schedule, asked.reference, asked.message_bytes, settings=self.context.settings
        )

    async def _answer(
        self, found: Answered | Unstored, client: Client, then: Then = nothing
    ) -> bytes:
        """Return what is there, or is stored, or solved by a worker, now."""
        if isinstance(found, Unstored):
            operation, solved, origin = found.operation, found.result, "quick"
            if solved is None:
                solved, origin = await self.through_engine(operation, client), "engine"
            found = Answered((await self.keep(operation, solved, then)).document, origin)
        self.metrics.answer(found.origin)
        return found.body

    # --- other operations -------------------------------------------------------------------------

    async def perform(
        self,
        make: Make[Operation[Any]],
        client: Client,
        then: Then = nothing,
    ) -> Performed:
        """Find the result where it is stored, or compute it and keep it, with what `then` stores.

        Raises what preparing and running raise, Overloaded, Cancelled, LimitReached, SolverFailed.
        """
        found = await self.with_files(
            lambda files: self.call(partial(self._performed_here, make, files)), client
        )
        if isinstance(found, Performed):
            return found
        if found.stores:
            stored = await self._in_unit(found, found.stored)
            if stored is not None:
                return Performed(stored, is_new=False)
        result = await self.run(found, client)
        return Performed(await self.keep(found, result, then), is_new=True)

    def _performed_here(
        self, make: Make[Operation[Any]], files: Files
    ) -> Performed | Operation[Any]:
        """Return what is computed at once and stored nowhere; else what is left to do."""
        store = self.context.store
        with store.reading() as unit:
            operation = make(Stored.of_unit(unit, files))
            if operation.stores:
                return operation
            stored = operation.stored(unit)
        if stored is not None:
            return Performed(stored, is_new=False)
        result = self._run_here(operation)
        if result is None:
            return operation
        with store.reading() as unit:
            return Performed(operation.keep(unit, result), is_new=True)

    async def run(self, operation: Operation[T], client: Client) -> T:
        """Compute: here where that is quick, else in the engine. Nothing is stored."""
        with self.admissions[operation.pool].entered(client.name):
            found = None
            if operation.pool is not Pool.READ:
                found = await self.call(lambda: self._run_here(operation))
            return found if found is not None else await self.through_engine(operation, client)

    async def fit(self, operation: FitTraces, client: Client) -> Fitted:
        """Fit in a worker, which is given the traces as open files."""
        with self.admissions[operation.pool].entered(client.name), ExitStack() as stack:
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

    async def remembered(self, make: Make[Remembered[T]], client: Client) -> T:
        """Run; the last results that took long are cached, so that polling costs one lookup."""
        operation = await self.prepare(make, client)
        owner = self.context.store.owner
        found = self._recent.find(owner, operation)
        if found is None:
            found = await self.run(operation, client)
        self._recent.add(owner, operation, found)
        return found

    async def through_engine(self, operation: Operation[T], client: Client) -> T:
        """Have a worker process compute it, and end that where the client goes away."""
        engine, settings = self.context.engine, self.context.settings
        task = await self.call(
            lambda: task_of(
                operation,
                id=new_id(),
                memory_bytes=settings.worker_memory,
                requester=client.name,
            )
        )
        waiting = TaskWait(asyncio.get_running_loop())
        self.counts.pending_tasks += 1
        submitted_s = time.monotonic()
        try:
            engine.submit(task, waiting.take)
            end = await waiting.until_end(
                client.wait_disconnected,
                lambda: engine.capacity(task.pool).slots,
                MAX_READ_WAIT_S if task.pool is Pool.READ else math.inf,
            )
            found = partial(result_of, operation, end, best=waiting.best, limits=task.limits)
            return await self.call(found)
        finally:
            engine.cancel(task.id, task.claim)
            run_s = max(0.0, waiting.run_s)
            waited_s = time.monotonic() - submitted_s - run_s
            self.metrics.waited(f"worker-{task.pool.value}", waited_s)
            self.counts.pending_tasks -= 1

    # --- durable jobs -----------------------------------------------------------------------------

    async def start_job(
        self,
        make: Make[Operation[Any]],
        client: Client,
        then: Callable[[UnitOfWork, JobRecord], None] = nothing,
    ) -> JobRecord:
        """Have an operation run as a job: a new one, or one of the same question; store with it
        what `then` stores.

        Raises what its preparation raises.
        """
        store, quota = self.context.store, self.context.settings.waiting_jobs_quota
        operation = await self.prepare(make, client)
        return await self.write(lambda: accept_job(store, operation, most_waiting=quota, then=then))

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
        self, make: Make[Operation[Any]], files: Files, then: Then = nothing
    ) -> Answered | Unstored:
        """Return the stored answer, or solve and store it at once; else return what is left to do.

        Of the threads for readings one at a time stores: where that has to wait, the others go on.
        """
        with self.context.store.reading() as unit:
            operation = make(Stored.of_unit(unit, files))
            stored = operation.stored(unit)
        if stored is not None:
            return Answered(stored.document, "stored")
        solved = self._run_here(operation)
        if solved is None or not self._keeping.acquire(blocking=False):
            return Unstored(operation, solved)
        try:
            with self._unit(operation) as unit:
                kept = operation.keep(unit, solved)
                then(unit, kept)
                return Answered(kept.document, "quick")
        finally:
            self._keeping.release()

    def _run_here(self, operation: Operation[T]) -> T | None:
        """Return what is quick enough for this process; None where that is not, or is solving.

        One solves at a time: solving holds the interpreter's lock, and more would only take turns.
        """
        if operation.pool is not Pool.SOLVE:
            return operation.run_here()
        if not self.solving.acquire(blocking=False):
            return None
        try:
            return operation.run_here()
        finally:
            self.solving.release()

    def _workers(self, pool: Pool, clients: int) -> int:
        """How many workers so many clients may have. What is quick is done here, and waits less."""
        capacity = self.context.engine.capacity(pool)
        return capacity.for_each if clients == 1 else capacity.slots

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
            self.lookups.fast_path.cache.put(found.table, self.context.store.owner)
        return found.response

    async def exposition(self, more: Gauges, *, is_serving: bool) -> str:
        """Return the metrics as text, with more of them; what waits and is stored as it was seen
        last where the database is away.
        """
        has_database = False
        with suppress(SluiceError, TimeoutError):
            self._counted = await asyncio.wait_for(self.call(self._count), _COUNT_LIMIT_S)
            has_database = True
        waiting, stored = self._counted
        cache, counts, context = self.lookups.fast_path.cache, self.counts, self.context
        has_workers = context.engine.capacity(Pool.SOLVE).ready > 0
        ready = {"serving": is_serving, "database": has_database, "workers": has_workers}
        folder = database_folder(context.settings.database_url)
        return self.metrics.exposition(
            {
                "sluice_pending_calls": (
                    "Requests in worker threads.",
                    self._reads.pending + self._writes.pending,
                ),
                "sluice_pending_solves": ("Requests that wait for a worker.", counts.pending_tasks),
                **gauges_of(context.store, context.engine, waiting),
                **gauges_of_service(ready, stored, context.store.most_bytes, folder),
                **gauges_of_runner(self.runner),
                "sluice_event_streams": ("Open event streams.", counts.open_streams),
                "sluice_loaded_tables": ("Compiled tables in memory.", len(cache)),
                "sluice_loaded_bytes": ("Bytes of them.", cache.loaded_bytes),
                **more,
            }
        )

    def _count(self) -> tuple[tuple[Waiting, ...], StoredBytes]:
        with self.context.store.reading() as unit:
            return unit.jobs.waiting_by_kind(), unit.stored_bytes.totals()

    def close(self) -> None:
        """End the threads; the engine has to be closed first."""
        self.pictures.close()
        for pool in (self._reads, self._looks, self._writes):
            pool.close()
