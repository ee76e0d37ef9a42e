"""The engine of several machines: Dask routes tasks, and each of its workers has a local engine.

Imported where SLUICE_ENGINE=dask alone. Dask keeps nothing: what is lost with a worker, with the
scheduler or with the connection is said to be `Lost`, and whoever submitted it tries again.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from distributed import Client
from distributed.scheduler import KilledWorker
from distributed.utils import LoopRunner
from tornado.ioloop import IOLoop

from app.execution.engine import Crashed, End, Event, Lost, Pool, Sink, Started, Stopped, Task
from app.execution.local import (
    JOBS,
    LONG_IDLE_S,
    LONG_WORKERS,
    AnySlot,
    LocalEngine,
    OnIdle,
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
    run_task,
    set_up_dask,
    versions,
)
from app.execution.slot import SlotOptions, SubmittedTask, deaths_of
from domain.errors import NotReady

log = logging.getLogger("sluice.engine")

MAX_SLOTS = 4096  # of a cluster that one process fills
_LOOK_S = 0.25  # between looks at the connection
_COUNT_LOOKS = 4  # looks between two counts of the cluster's slots
_ANSWER_S = 60.0  # for the scheduler to answer, before what it routes is taken for lost
_BATCH_S = 0.001  # between two messages to the scheduler
_GONE_S = 5.0  # for a worker to say that a cancelled task's process is gone
_RESULT_S = 120.0  # for a result to arrive
_CLIENTS_FIRST = 10  # priority of what a client waits for, before that of durable jobs


@dataclass(frozen=True, slots=True)
class _Over:
    """Dask has done with a task, somehow."""


@dataclass(frozen=True, slots=True)
class _Fetched:
    """How a task ended, as Dask has it."""

    end: End


@dataclass(frozen=True, slots=True)
class _Disconnected:
    """The connection is lost, and with it whatever is under way."""


# None: look whether there is a reason to stop.
_Message: TypeAlias = Event | End | _Over | _Fetched | Left | _Disconnected | None
_Inbox: TypeAlias = "queue.SimpleQueue[_Message]"


class _Connection:
    """One client of the scheduler, up to the loss of its connection: it is never mended."""

    def __init__(self, options: ClusterOptions, loop: IOLoop) -> None:
        self.client: Any = Client(  # whose types say that half of it may be None
            options.address,
            loop=loop,
            security=options.security(),
            timeout=CONNECT_S,
            set_as_default=False,
            name=NAME,
        )
        try:
            check_versions(self.client.run_on_scheduler(versions))
        except BaseException:
            self.client.close(timeout=CLOSE_S)
            raise
        self.topic = self.client.id  # one a client: the scheduler keeps topics
        self._stream = cast(Any, self.client.scheduler_comm)
        self._stream.interval = _BATCH_S
        self._lock = threading.Lock()
        self._inboxes: dict[tuple[str, int], _Inbox] = {}
        self._is_lost = False
        self.client.subscribe_topic(self.topic, self._hear)

    @property
    def lives(self) -> bool:
        """Whether nothing was lost yet. A client that connects again by itself has no topics."""
        is_same = self.client.scheduler_comm is self._stream
        return is_same and self.client.status == "running"

    def submit(self, task: Task) -> Any:
        """Have a task run; return Dask's future of it. Raises what Dask does."""
        return self.client.submit(
            run_task,
            task,
            self.topic,
            # One name for all but the first word of it: the scheduler keeps statistics of names.
            key=(NAME, task.id, task.claim, self.topic),
            pure=False,
            retries=0,
            priority=0 if task.requester == JOBS else _CLIENTS_FIRST,
        )

    def slots(self) -> int:
        """Return how many tasks the cluster runs at a time.

        Raises TimeoutError where the scheduler does not answer: it hangs, or was stopped.
        """
        asked = self.client.scheduler.identity(n_workers=0)
        loop = self.client.loop.asyncio_loop
        answer = asyncio.run_coroutine_threadsafe(asked, loop)
        return int(answer.result(_ANSWER_S)["total_threads"])

    def fetch(self, future: Any, inbox: _Inbox, *, was_started: bool) -> None:
        """Have how a task ended put into its inbox, once it is here."""

        async def fetch() -> None:
            inbox.put(_Fetched(await _fetched(self.client, future, was_started)))

        self.client.loop.add_callback(fetch)

    @contextmanager
    def hearing(self, key: tuple[str, int], inbox: _Inbox) -> Iterator[None]:
        """Put what is heard of a task into its inbox."""
        with self._lock:
            self._inboxes[key] = inbox
            if self._is_lost:
                inbox.put(_Disconnected())
        try:
            yield
        finally:
            with self._lock:
                del self._inboxes[key]

    def lose(self) -> None:
        """Tell all who wait that there is no connection any more, and close it."""
        with self._lock:
            self._is_lost = True
            for inbox in self._inboxes.values():
                inbox.put(_Disconnected())
        with suppress(Exception):  # it may be closed, or half of it
            self.client.close(timeout=CLOSE_S)

    def _hear(self, event: tuple[float, Any]) -> None:
        said = event[1]
        if isinstance(said, dict):
            return  # what Dask itself says of this client
        with self._lock:
            for task_id, claim, message in said:
                if inbox := self._inboxes.get((task_id, claim)):
                    inbox.put(pickle.loads(message))


class _Cluster:
    """Keeps a connection, in a thread; `on_slots` hears how many slots there are, 0 without one."""

    def __init__(self, options: ClusterOptions, on_slots: Callable[[int], None]) -> None:
        self._options = options
        self._on_slots = on_slots
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="sluice-cluster", daemon=True)
        self._loop = LoopRunner()  # of all connections: one that fails leaves its own behind
        self.connection: _Connection | None = None

    @property
    def is_broken(self) -> bool:
        """Whether the connection is lost, which its thread has not seen yet."""
        connection = self.connection
        return connection is not None and not connection.lives

    def start(self) -> None:
        """Begin to connect."""
        self._loop.start()
        self._thread.start()

    def close(self) -> None:
        """Leave the cluster; what runs there for this process ends."""
        self._closing.set()
        if (connection := self.connection) is not None:
            connection.lose()
        self._thread.join(CLOSE_S)
        with suppress(Exception):  # it may not be done with a connection that fails
            self._loop.stop(CLOSE_S)

    def _keep(self) -> None:
        said = ""
        while not self._closing.is_set():
            try:
                connection = _Connection(self._options, self._loop.loop)
            except Exception as error:  # whatever it is, it is tried again
                if str(error) != said:
                    log.warning("the scheduler cannot be used: %s", error)
                said = str(error)
                self._closing.wait(RETRY_S)
                continue
            said, self.connection = "", connection
            try:
                self._watch(connection)
            except Exception as error:
                log.warning("the connection to the scheduler failed: %s", str(error) or type(error))
            self.connection = None
            self._on_slots(0)
            connection.lose()

    def _watch(self, connection: _Connection) -> None:
        looks = 0
        while connection.lives and not self._closing.is_set():
            if looks % _COUNT_LOOKS == 0:
                self._on_slots(connection.slots())
            looks += 1
            self._closing.wait(_LOOK_S)


class RemoteSlot:
    """A slot whose tasks run somewhere in the cluster; those with files in a process beside it."""

    def __init__(
        self, cluster: _Cluster, local: LocalEngine, *, name: str, on_idle: OnIdle
    ) -> None:
        self._cluster = cluster
        self._local = local
        self._on_idle = on_idle
        self._given: queue.SimpleQueue[SubmittedTask | None] = queue.SimpleQueue()
        self._running: SubmittedTask | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.deaths: Counter[str] = Counter()

    @property
    def is_ready(self) -> bool:
        """Whether a task would begin at once."""
        return True

    def start(self) -> None:
        """Begin; it is idle then."""
        self._thread.start()

    def give(self, running: SubmittedTask, /) -> None:
        """Run a task, where the slot is idle alone."""
        self._given.put(running)

    def end(self) -> None:
        """Cut off what runs, and let the thread end."""
        self._closing.set()
        self._given.put(None)
        if (running := self._running) is not None:
            running.wake()

    def join(self, timeout_s: float, /) -> None:
        """Wait for the thread."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        self._on_idle(self, None)
        while (running := self._given.get()) is not None:
            self._running = running
            try:
                end = self._end_of(running)
            except Exception:  # a defect of this engine must not cost its thread
                log.exception("the engine failed on a task")
                end = Crashed("the engine failed")
            self._running = None
            self.deaths.update(deaths_of(end))
            running.end(end)
            while self._cluster.is_broken and not self._closing.is_set():
                self._closing.wait(_LOOK_S)  # what waits here is not lost
            self._on_idle(self, running)

    def _end_of(self, running: SubmittedTask) -> End:
        inbox: _Inbox = queue.SimpleQueue()
        running.wake = lambda: inbox.put(None)
        inbox.put(None)  # it may have been cancelled by now
        if running.files:
            return self._run_here(running, inbox)
        connection = self._cluster.connection
        if connection is None:
            return Lost(was_started=False)
        with connection.hearing(running.key, inbox):
            return self._run_there(running, inbox, connection)

    def _run_here(self, running: SubmittedTask, inbox: _Inbox) -> End:
        """Run a task with files, which are of this machine."""
        self._local.submit(replace(running.task, files=running.files), inbox.put)
        while True:
            message = inbox.get()
            if message is None:
                if self._reason_to_stop(running) is not None:
                    self._local.cancel(*running.key)
            elif isinstance(message, Event):
                running.send(message)
            elif isinstance(message, Stopped):
                return self._reason_to_stop(running) or message
            else:
                return cast(End, message)

    def _run_there(self, running: SubmittedTask, inbox: _Inbox, connection: _Connection) -> End:
        try:
            future = connection.submit(running.task)
        except Exception:
            if connection.lives:
                raise
            return Lost(was_started=False)
        future.add_done_callback(lambda _: inbox.put(_Over()))
        started = has_left = False
        stop: Stopped | None = None
        reported: End | None = None
        limit_s = float("inf")
        while True:
            try:
                wait_s = None if limit_s == float("inf") else max(0.0, limit_s - time.monotonic())
                message = inbox.get(timeout=wait_s)
            except queue.Empty:
                return stop or Lost(started)
            if isinstance(message, Started):
                if started:  # its worker is gone, and Dask tries another one: that is the ledger's
                    future.cancel()
                    return Lost(was_started=True)
                started = True
            if isinstance(message, Event):
                running.send(message)
            elif isinstance(message, _Disconnected):
                return stop or Lost(started)
            elif isinstance(message, Left):
                has_left, reported = True, message.end
                if stop is None and isinstance(reported, Stopped):  # its worker goes
                    return reported
            elif isinstance(message, _Fetched) and stop is None:
                return message.end
            elif isinstance(message, _Over) and stop is None:
                if reported is not None:  # not before: Dask takes its slot for free now
                    return reported
                connection.fetch(future, inbox, was_started=started)
                limit_s = time.monotonic() + _RESULT_S
            if stop is None and (stop := self._reason_to_stop(running)) is not None:
                future.cancel()
                limit_s = time.monotonic() + _GONE_S
            if stop is not None and (has_left or not started):
                return stop

    def _reason_to_stop(self, running: SubmittedTask) -> Stopped | None:
        if self._closing.is_set():
            return Stopped(is_closing=True)
        return Stopped() if running.is_cancelled else None


async def _fetched(client: Any, future: Any, was_started: bool) -> End:
    """Return how a task ended that Dask has done with."""
    try:
        return cast(End, await client.gather(future, asynchronous=True))
    except (KilledWorker, CancelledError, OSError, TimeoutError):  # with a worker or the scheduler
        return Lost(was_started)
    except Exception as error:
        log.warning("a worker of the cluster failed: %s: %s", type(error).__name__, error)
        return Crashed(f"the worker of the cluster failed: {type(error).__name__}")


class ClusterEngine(PooledEngine):
    """An `Engine` whose tasks run in the workers of a cluster, as many as these have slots."""

    def __init__(
        self, options: ClusterOptions, pools: Mapping[Pool, PoolOptions] | None = None
    ) -> None:
        """Raise InvalidInput for options that break a rule; `pools` say how much waits here."""
        options.check()
        set_up_dask()
        beside = SlotOptions(is_always_warm=False, idle_s=LONG_IDLE_S)
        self._local = LocalEngine(dict.fromkeys(Pool, PoolOptions(LONG_WORKERS, beside)))
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
        return RemoteSlot(self._cluster, self._local, name=name, on_idle=on_idle)

    def _resize(self, slots: int) -> None:
        for workers in self._pools.values():
            workers.resize(slots)

    def _leave(self) -> None:
        self._cluster.close()
        self._local.close()
