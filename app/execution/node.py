"""What a cluster is made of: a Dask scheduler and Dask workers that host a local engine each.

Imported where a cluster is used alone. All sides exchange pickles, and trust each other with it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import platform
import queue
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from ipaddress import ip_address
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import uuid4

import dask
import distributed
from distributed import Client, Scheduler, Worker, get_worker
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.security import Security

from app.execution.engine import Done, End, Event, Pool, Started, Stopped, Task
from app.execution.local import LONG_IDLE_S, LocalEngine, PoolOptions
from app.execution.slot import SlotOptions
from app.execution.worker import WorkerOptions
from app.settings import VERSION
from domain.errors import Conflict, InvalidInput

log = logging.getLogger("sluice.engine")

NAME = "sluice"
CONNECT_S = 5.0
RETRY_S = 1.0
CLOSE_S = 2.0
_DRAIN_LOOK_S = 0.05

# What is not Dask's to do, and what would grow or cost without end. One rule for tries: the
# ledger's. No part of HTTP: it would be served in clear beside TLS.
_OPTIONS: Mapping[str, Any] = {
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.scheduler.worker-ttl": "30s",
    "distributed.scheduler.events-cleanup-delay": "60s",
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.admin.low-level-log-length": 10,
    "distributed.admin.tick.interval": "500ms",
    "distributed.comm.timeouts.connect": "10s",
    "distributed.comm.timeouts.tcp": "30s",
}


def set_up_dask() -> None:
    """Have Dask do this much and no more, in this process."""
    dask.config.set(_OPTIONS)
    # It tells of each lost connection at length; this package does in a line.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Where the scheduler is, `tls://host:port` or on this machine `tcp://127.0.0.1:port`, and the
    files in PEM by which all that belong to it know each other.
    """

    address: str
    ca: str = ""
    certificate: str = ""
    key: str = ""

    def check(self) -> None:
        """Raise InvalidInput for what would let in others, or could not work."""
        parts = urlsplit(self.address)
        try:
            is_address = parts.scheme in ("tls", "tcp") and parts.hostname and parts.port != -1
        except ValueError:  # of the port
            is_address = False
        if not is_address or parts.hostname is None:
            raise InvalidInput(
                "expected SLUICE_DASK_ADDRESS to be tls://HOST:PORT, or tcp://127.0.0.1:PORT",
                field="SLUICE_DASK_ADDRESS",
            )
        if parts.scheme == "tcp":
            if not _is_loopback(parts.hostname):
                raise InvalidInput(
                    "expected SLUICE_DASK_ADDRESS to begin with tls:// beyond this machine: "
                    "whoever reaches a scheduler without TLS runs what he likes on it",
                    field="SLUICE_DASK_ADDRESS",
                )
            return
        files = {
            "SLUICE_DASK_TLS_CA": self.ca,
            "SLUICE_DASK_TLS_CERT": self.certificate,
            "SLUICE_DASK_TLS_KEY": self.key,
        }
        for name, file in files.items():
            if not os.access(file, os.R_OK):
                raise InvalidInput(
                    f"expected {name} to be a file that can be read, for tls://", field=name
                )

    def security(self) -> Security | None:
        """Return what Dask takes: each side shows its certificate, or none on this machine."""
        if not self.address.startswith("tls:"):
            return None
        roles = ("client", "scheduler", "worker")
        files = {f"tls_{role}_cert": self.certificate for role in roles}
        files |= {f"tls_{role}_key": self.key for role in roles}
        return Security(tls_ca_file=self.ca, require_encryption=True, **files)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def versions() -> tuple[str, ...]:
    """Return what has to be the same of all that belong to a cluster: they exchange pickles."""
    python = ".".join(platform.python_version_tuple()[:2])
    return VERSION, version("distributed"), python


def check_versions(found: Any) -> None:
    """Raise Conflict where another process of the cluster has other versions."""
    if tuple(found) != versions():
        raise Conflict(f"the scheduler has {found}, this process {versions()}: expected the same")


# --- tasks in a worker ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Left:
    """A worker has done with a task. `end` is how it ended, None where that is too long to be told
    by an event and has to be fetched: of events the scheduler keeps the last.
    """

    end: End | None


_MAX_REPORTED_BYTES = 2**18  # of a result that an event reports
_TOGETHER_S = 0.01  # for what is reported meanwhile: the scheduler handles a message, not an event


def run_task(task: Task, topic: str) -> End | None:
    """Run a task in a thread of a worker, which has a slot for it. What Dask is given to call.

    Returns what has to be fetched, None where `Left` has told it.
    """
    worker = get_worker()
    return cast(Node, worker.plugins[NAME]).run(worker, task, topic)


@dataclass(frozen=True, slots=True)
class _Running:
    """A task in a worker, the name by which its engine knows it, and the topic that hears of it."""

    name: str
    task: Task
    topic: str


class Node(WorkerPlugin):
    """What makes a Dask worker one of ours: tasks run in the local engine, and end when Dask has
    no use for them any more.
    """

    name = NAME

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._running: dict[Any, _Running] = {}
        self._unwanted: set[Any] = set()  # released before they had begun here
        self._unsaid: dict[str, list[tuple[str, int, bytes]]] = {}  # by topic
        self._is_closing = False

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """Cancel what is released while it runs: Dask frees its slot, but ends no thread."""
        with self._lock:
            if finish == "forgotten":
                self._unwanted.discard(key)
            if start != "executing" or finish not in ("cancelled", "released"):
                return
            running = self._running.get(key)
            if running is None:
                self._unwanted.add(key)
        if running is not None:
            self._engine.cancel(running.name, running.task.claim)

    def teardown(self, worker: Worker) -> None:
        """Cancel everything, and say so: the scheduler is gone, or the worker goes."""
        with self._lock:
            self._is_closing = True
            left = list(self._running.values())
        for running in left:
            self._say(worker, running, Left(Stopped(is_closing=True)))
            self._tell(worker, running.topic)
            self._engine.cancel(running.name, running.task.claim)

    def run(self, worker: Worker, task: Task, topic: str) -> End | None:
        """Run a task, and tell its topic what is to be told."""
        ended: queue.SimpleQueue[End] = queue.SimpleQueue()
        # Another name each time: a result that was lost before it was fetched is asked for again.
        key, running = worker.get_current_task(), _Running(f"{uuid4().hex} {task.id}", task, topic)

        def take(message: Event | End) -> None:
            if isinstance(message, Event):
                self._say(worker, running, message)
            else:
                ended.put(message)

        with self._lock:
            is_unwanted = self._is_closing or key in self._unwanted
            self._unwanted.discard(key)
            if not is_unwanted:
                # Of whom it is was settled where it was submitted.
                self._engine.submit(replace(task, id=running.name, requester=""), take)
                self._running[key] = running
        if is_unwanted:
            return Stopped(is_closing=True)
        end = ended.get()
        with self._lock:
            del self._running[key]
        if isinstance(end, Stopped):  # whoever has cancelled it does not ask how it ended
            end = Stopped(is_closing=True)
        is_reported = not isinstance(end, Done) or len(end.result) <= _MAX_REPORTED_BYTES
        self._say(worker, running, Left(end if is_reported else None))
        return None if is_reported else end

    def _say(self, worker: Worker, running: _Running, message: Event | Left) -> None:
        """Tell a topic in its turn: results and steps together, what begins or ends at once."""
        topic, task = running.topic, running.task
        with self._lock:
            unsaid = self._unsaid.setdefault(topic, [])
            unsaid.append((task.id, task.claim, pickle.dumps(message)))
            is_first = len(unsaid) == 1
        loop = worker.loop
        if isinstance(message, Started | Left):
            loop.add_callback(self._tell, worker, topic)
        elif is_first:  # the others go with it
            loop.add_callback(loop.call_later, _TOGETHER_S, self._tell, worker, topic)

    def _tell(self, worker: Worker, topic: str) -> None:
        """Send what a topic has not heard yet; by one thread, which keeps the order."""
        with self._lock:
            unsaid = self._unsaid.pop(topic, None)
        if unsaid:
            worker.log_event(topic, unsaid)


class _Scheduler(Scheduler):
    """Holds back what no worker has a free slot for, so that it goes to the first that has one."""

    def is_rootish(self, ts: Any) -> bool:
        """Return that a task has nothing to wait for but a slot."""
        return True


def run_scheduler(options: ClusterOptions, ready: Callable[[str], None]) -> None:
    """Route tasks until SIGTERM or SIGINT; `ready` is told the address. Raises Conflict."""
    options.check()
    set_up_dask()
    parts = urlsplit(options.address)

    async def serve() -> None:
        stop = _stop_by_signals()
        try:
            scheduler = await _Scheduler(
                protocol=parts.scheme,
                host=parts.hostname,
                port=8786 if parts.port is None else parts.port,
                security=options.security(),
                dashboard=False,
                dashboard_address="127.0.0.1:0",
            )
        except OSError as error:
            raise Conflict(f"the scheduler cannot listen on {options.address}: {error}") from None
        async with scheduler:
            ready(scheduler.address)
            await stop.wait()

    asyncio.run(serve())


def run_worker(
    options: ClusterOptions,
    ready: Callable[[str], None],
    *,
    slots: int,
    warm_up: str,
    drain_s: float,
) -> None:
    """Run tasks of the scheduler until SIGTERM or SIGINT, so many at a time.

    Connects again whenever the scheduler was lost. At its end it takes no more, and waits for
    what it runs.
    """
    options.check()
    set_up_dask()
    # Nobody else is answered by such a process, so that its children give way to nobody.
    solves, others = WorkerOptions(warm_up=warm_up, niceness=0), WorkerOptions(niceness=0)
    long = SlotOptions(others, is_always_warm=False, idle_s=LONG_IDLE_S)
    engine = LocalEngine(
        {
            Pool.SOLVE: PoolOptions(slots, SlotOptions(solves)),
            Pool.LONG: PoolOptions(slots, long),
        }
    )
    try:
        with tempfile.TemporaryDirectory(prefix="sluice-engine-") as folder:
            asyncio.run(_work(options, ready, engine, slots=slots, folder=folder, drain_s=drain_s))
    finally:
        engine.close()


async def _work(
    options: ClusterOptions,
    ready: Callable[[str], None],
    engine: LocalEngine,
    *,
    slots: int,
    folder: str,
    drain_s: float,
) -> None:
    stop = _stop_by_signals()
    stopped = asyncio.create_task(stop.wait())
    is_local = options.address.startswith("tcp:")
    said = ""
    while not stop.is_set():
        try:
            async with Client(
                options.address,
                security=options.security(),
                asynchronous=True,
                timeout=CONNECT_S,
                set_as_default=False,
            ) as client:
                check_versions(await client.run_on_scheduler(versions))
            worker = await Worker(
                options.address,
                nthreads=slots,
                memory_limit=0,
                security=options.security(),
                host="127.0.0.1" if is_local else None,
                dashboard_address="127.0.0.1:0",
                local_directory=folder,
                plugins=(Node(engine),),
                death_timeout=CONNECT_S,
            )
        except Exception as error:  # whatever it is, it is tried again
            if str(error) != said:
                log.warning("the scheduler cannot be used: %s", error)
            said = str(error)
            await asyncio.wait({stopped}, timeout=RETRY_S)
            continue
        said = ""
        ready(worker.address)
        ended = asyncio.create_task(worker.finished())
        await asyncio.wait({stopped, ended}, return_when=asyncio.FIRST_COMPLETED)
        if stop.is_set():
            await _drain(worker, drain_s)
        await worker.close(timeout=CLOSE_S)
        await ended


async def _drain(worker: Worker, drain_s: float) -> None:
    """Begin nothing more; wait for what runs, and for its results to be fetched."""
    until_s = time.monotonic() + drain_s
    worker.status = distributed.Status.paused
    while time.monotonic() < until_s and (worker.state.executing or worker.data):
        await asyncio.sleep(_DRAIN_LOOK_S)


def _stop_by_signals() -> asyncio.Event:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
