"""The engine of several machines: Dask routes tasks, and each of its workers has a local engine.

Imported where SLUICE_ENGINE=dask alone. Dask keeps nothing: what is lost with a worker, with the
scheduler or with the connection is said to be `Lost`, and whoever submitted it tries again.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, TypeAlias, cast

from distributed import KilledWorker, wait

from app.execution.engine import Crashed, End, Event, Lost, Pool, Sink, Started, Stopped, Task
from app.execution.local import (
    JOBS,
    LocalEngine,
    PooledEngine,
    PoolOptions,
)
from app.execution.node import (
    CLOSE_S,
    CONNECT_S,
    NAME,
    RETRY_S,
    ClusterOptions,
    Left,
    check_versions,
    client_of,
    end_tasks,
    run_task,
    set_up_dask,
    versions,
)
from app.execution.slot import AnySlot, OnIdle, SlotOptions, SubmittedTask
from domain.errors import NotReady

log = logging.getLogger("sluice.engine")

MAX_SLOTS = 4096  # of a cluster that one process fills
_COUNT_S = 1.0  # between two counts of the cluster's slots
_ANSWER_S = 60.0  # for the scheduler to answer, before what it routes is taken for lost
_GONE_S = 5.0  # for a worker to say that a cancelled task's process is gone
_RESULT_S = 120.0  # for a result to arrive
_TOGETHER_S = 0.1  # for tasks whose ends were heard of, before Dask is told to forget them
_CLIENTS_FIRST = 10  # priority of what a client waits for, before that of durable jobs

_Key: TypeAlias = tuple[str, int]
_Ends: TypeAlias = set[asyncio.Future[Any]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A task that the cluster was asked to run. `gone` is told once its worker has no process of it
    any more, with its end where that was not too long.
    """

    task: Task
    send: Sink
    begun_at: list[str]  # the workers that have begun it, by their addresses
    stop: asyncio.Future[None]
    gone: asyncio.Future[End | None]


class _Connection:
    """One client of the scheduler, up to the loss of its connection: it is never mended.

    Dask's client connects again by itself, but has lost what was under way and what it wanted to
    hear. For the event loop's thread; `on_lost` is called once, before anybody hears of the loss.
    """

    def __init__(self, client: Any, on_lost: Callable[[], None]) -> None:
        self._client = client
        self._on_lost = on_lost
        self._topic = client.id  # one a client: the scheduler keeps topics
        self._loop = asyncio.get_running_loop()
        self._asked: dict[_Key, _Asked] = {}
        self._calls: set[asyncio.Future[Any]] = set()
        self._ended: list[Any] = []  # futures; Dask forgets those that nothing refers to
        self.lost: asyncio.Future[None] = self._loop.create_future()

    @property
    def lives(self) -> bool:
        """Whether nothing was lost yet."""
        return not self.lost.done()

    def submit(self, task: Task, send: Sink) -> None:
        """Have a task run; `send` takes its events and its end."""
        stop, gone = self._loop.create_future(), self._loop.create_future()
        asked = _Asked(task, send, [], stop, gone)
        self._asked[task.id, task.claim] = asked
        self._keep(self._run(asked))

    def cancel(self, key: _Key) -> None:
        """Have a task end soon."""
        if (asked := self._asked.get(key)) is not None:
            _tell(asked.stop, None)

    def lose(self) -> None:
        """Tell all who wait that there is no connection any more."""
        if self.lives:
            self._on_lost()
            self.lost.set_result(None)

    async def _run(self, asked: _Asked) -> None:
        end: End = Lost(was_started=False)
        try:
            end = await self._end_of(asked)
        except Exception:  # a defect of this engine must not cost its slot
            log.exception("the engine failed on a task")
            end = Crashed("the engine failed")
        finally:
            del self._asked[asked.task.id, asked.task.claim]
            asked.send(end)

    async def _end_of(self, asked: _Asked) -> End:
        for attempt in count():
            if not self.lives:
                break
            future = self._submitted(asked, attempt)
            fetched = asyncio.ensure_future(self._fetched(future, asked))
            ends: _Ends = {fetched, asked.stop, asked.gone, self.lost}
            while ends:
                done, ends = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                if done == {asked.gone} and not isinstance(asked.gone.result(), Stopped | Lost):
                    continue  # Dask does not take its slot for free yet
                break
            if asked.stop.done():
                fetched.cancel()  # first: what is released is cancelled as by a lost connection
                await self._stop(asked, future)
                return Stopped()
            if fetched.done():
                if (end := fetched.result()) is not None:
                    return end
                continue  # its worker was killed before it had begun
            fetched.cancel()
            future.release()
            if asked.gone.done():
                return cast(End, asked.gone.result())
        return Lost(bool(asked.begun_at))

    def _submitted(self, asked: _Asked, attempt: int) -> Any:
        task = asked.task
        # Before each: a client that has connected again by itself has no topics.
        self._client.subscribe_topic(self._topic, self._hear)
        return self._client.submit(
            run_task,
            task,
            self._topic,
            # One name for all but the first word of it: the scheduler keeps statistics of names.
            key=(NAME, task.id, task.claim, self._topic, attempt),
            pure=False,
            retries=0,
            priority=0 if task.requester == JOBS else _CLIENTS_FIRST,
        )

    async def _fetched(self, future: Any, asked: _Asked) -> End | None:
        """Return how a task ended that Dask has done with; None where it has not begun."""
        try:
            with self._client.as_current():
                await wait(future)
            if asked.gone.done() and (reported := asked.gone.result()) is not None:
                self._release_soon(future)
                return reported
            return cast(End, await asyncio.wait_for(future, _RESULT_S))
        except CancelledError:  # by Dask's client, which has lost its connection
            self.lose()
        except asyncio.CancelledError:
            raise
        except KilledWorker:
            return Lost(was_started=True) if asked.begun_at else None
        except (OSError, TimeoutError):
            pass
        except Exception as error:
            log.warning("a worker of the cluster failed: %s: %s", type(error).__name__, error)
            return Crashed(f"the worker of the cluster failed: {type(error).__name__}")
        return Lost(bool(asked.begun_at))

    def _release_soon(self, future: Any) -> None:
        """Let go of what a worker keeps no result of, together with what ends meanwhile.

        At once it would be a message, for whose 10 ms Dask's client keeps what is submitted next.
        """
        if not self._ended:
            self._loop.call_later(_TOGETHER_S, self._ended.clear)
        self._ended.append(future)

    async def _stop(self, asked: _Asked, future: Any) -> None:
        """End a task, and wait until its process is gone where it has one."""
        future.release()
        if asked.begun_at and not asked.gone.done() and self.lives:
            self._end_at(asked.begun_at[-1], (asked.task.id, asked.task.claim))
            ends: _Ends = {asked.gone, self.lost}
            await asyncio.wait(ends, timeout=_GONE_S, return_when=asyncio.FIRST_COMPLETED)

    def _hear(self, event: tuple[float, Any]) -> None:
        said = event[1]
        if isinstance(said, dict):
            return  # what Dask itself says of this client
        for task_id, claim, worker, packed in said:
            message, key = pickle.loads(packed), (task_id, claim)
            if (asked := self._asked.get(key)) is None:
                if isinstance(message, Started):  # nobody waits for it any more
                    self._end_at(worker, key)
            elif isinstance(message, Left):
                _tell(asked.gone, message.end)
            elif isinstance(message, Started) and asked.begun_at:
                # Its worker is gone, and Dask tries another one: that is the ledger's to do.
                self._end_at(worker, key)
                _tell(asked.gone, Lost(was_started=True))
            else:
                if isinstance(message, Started):
                    asked.begun_at.append(worker)
                asked.send(message)

    def _end_at(self, worker: str, key: _Key) -> None:
        self._keep(
            self._client.run(end_tasks, self._topic, key, workers=[worker], on_error="ignore")
        )

    def _keep(self, call: Awaitable[Any]) -> None:
        """Have it done in the loop, which keeps no reference of its own."""
        kept = asyncio.ensure_future(call)
        self._calls.add(kept)
        kept.add_done_callback(self._calls.discard)


def _tell(future: asyncio.Future[Any], said: Any) -> None:
    if not future.done():
        future.set_result(said)


class _Cluster:
    """Keeps a connection, in a thread; `on_slots` hears how many slots there are, 0 without one."""

    def __init__(self, options: ClusterOptions, on_slots: Callable[[int], None]) -> None:
        self._options = options
        self._on_slots = on_slots
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="sluice-cluster", daemon=True)
        self.connection: _Connection | None = None

    def start(self) -> None:
        """Begin to connect."""
        self._thread.start()

    def call_soon(self, work: Callable[..., object], *arguments: object) -> None:
        """Have this done in the loop."""
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(work, *arguments)

    def close(self) -> None:
        """Leave the cluster; what runs there for this process ends."""
        self.call_soon(self._closing.set)
        self._thread.join(CONNECT_S + CLOSE_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._keep())

    async def _keep(self) -> None:
        closing = asyncio.ensure_future(self._closing.wait())
        said = ""
        while not closing.done():
            client: Any = None  # of types that say that half of it may be None
            try:
                client = client_of(self._options, self._options.address)
                await client
                check_versions(await client.run_on_scheduler(versions))
                said, connection = "", _Connection(client, self._lost)
                await self._use(client, connection, closing)
            except Exception as error:  # whatever it is, it is tried again
                if str(error) != said:
                    log.warning("the scheduler cannot be used: %s", str(error) or type(error))
                said = str(error)
            with suppress(Exception):  # it may be closed, or half of it, or not be there
                # As a block that fails leaves it: at once, as Dask would connect again meanwhile.
                await asyncio.wait_for(client.__aexit__(OSError, None, None), CLOSE_S)
            if client is not None and client.status != "closed":  # the scheduler hangs
                with suppress(Exception):
                    client.scheduler_comm.abort()
                client.status = "closed"  # else garbage collection would try again
            await asyncio.wait({closing}, timeout=RETRY_S)

    async def _use(
        self, client: Any, connection: _Connection, closing: asyncio.Future[Any]
    ) -> None:
        self.connection = connection
        ends = {closing, connection.lost}
        first = asyncio.FIRST_COMPLETED
        try:
            while connection.lives and not closing.done():
                counted = asyncio.ensure_future(client.nthreads())
                await asyncio.wait({counted, *ends}, timeout=_ANSWER_S, return_when=first)
                if not counted.done():
                    counted.cancel()
                    break
                self._on_slots(sum(counted.result().values()))
                await asyncio.wait(ends, timeout=_COUNT_S, return_when=first)
        finally:
            connection.lose()

    def _lost(self) -> None:
        """Have nothing more begin here: what waits is not lost."""
        self.connection = None
        self._on_slots(0)


class RemoteSlot(AnySlot):
    """A slot whose tasks run somewhere in the cluster; those with files in a process beside it.

    What it does is begun in the cluster's loop. Who listens is told by a thread of the slot: one
    that takes long delays its own task alone.
    """

    def __init__(self, cluster: _Cluster, local: LocalEngine, name: str, on_idle: OnIdle) -> None:
        super().__init__(on_idle)
        self._cluster = cluster
        self._local = local
        self._running: SubmittedTask | None = None
        self._is_idle = threading.Event()
        self._thread = ThreadPoolExecutor(1, name)

    def start(self) -> None:
        """Begin to take tasks."""
        self._is_idle.set()
        self._on_idle(self, None)

    def give(self, running: SubmittedTask) -> None:
        """Run a task."""
        self._running = running
        self._is_idle.clear()
        self._cluster.call_soon(self._begin, running)

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of what runs, then end the thread."""
        self._is_idle.wait(timeout)
        self._thread.shutdown(wait=False)

    def _wake_up(self) -> None:
        if (running := self._running) is not None:
            running.wake()

    def _begin(self, running: SubmittedTask) -> None:
        def take(message: Event | End) -> None:
            self._thread.submit(self._take, running, message)

        try:
            if running.files:  # which are of this machine
                cancel = partial(self._local.cancel, *running.key)
                self._local.submit(replace(running.task, files=running.files), take)
            elif (connection := self._cluster.connection) is not None:
                cancel = partial(connection.cancel, running.key)
                connection.submit(running.task, take)
            else:
                take(Lost(was_started=False))
                return
        except Exception:  # a defect of this engine must not cost its slot
            log.exception("the engine failed on a task")
            take(Crashed("the engine failed"))
            return

        def look() -> None:
            if self._reason_to_stop(running) is not None:
                cancel()

        running.wake = partial(self._cluster.call_soon, look)
        look()  # it may have been cancelled by now

    def _take(self, running: SubmittedTask, message: Event | End) -> None:
        if isinstance(message, Event):
            running.send(message)
            return
        if isinstance(message, Stopped | Lost):
            message = self._reason_to_stop(running) or message
        self._running = None
        self._report(running, message)
        self._is_idle.set()
        self._on_idle(self, running)


class ClusterEngine(PooledEngine):
    """An `Engine` whose tasks run in the workers of a cluster, as many as these have slots."""

    def __init__(
        self,
        options: ClusterOptions,
        pools: Mapping[Pool, PoolOptions] | None = None,
        *,
        workers_here: int = 2,
    ) -> None:
        """Raise InvalidInput for options that break a rule; `pools` say how much waits here, and
        `workers_here` run what cannot leave this machine.
        """
        options.check()
        set_up_dask()
        beside = SlotOptions(is_always_warm=False)
        self._local = LocalEngine(dict.fromkeys(Pool, PoolOptions(workers_here, beside)))
        self._cluster = _Cluster(options, self._resize)
        pools = pools or dict.fromkeys(Pool, PoolOptions(MAX_SLOTS))
        super().__init__(pools, self._new_slot, self._leave)
        self._cluster.start()

    def submit(self, task: Task, sink: Sink) -> None:
        """Queue a task. Raises NotReady while the scheduler cannot be reached, and as others do."""
        if self._cluster.connection is None and not self._is_closing:
            raise NotReady("the scheduler of the cluster cannot be reached; try again")
        super().submit(task, sink)

    def _new_slot(self, _: PoolOptions, name: str, on_idle: OnIdle) -> AnySlot:
        return RemoteSlot(self._cluster, self._local, name, on_idle)

    def _resize(self, slots: int) -> None:
        for workers in self._pools.values():
            workers.resize(slots)

    def _leave(self) -> None:
        self._cluster.close()
        self._local.close()
