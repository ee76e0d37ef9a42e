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
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from ipaddress import ip_address
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import uuid4

import dask
from distributed import (
    Client,
    Reschedule,
    Scheduler,
    SchedulerPlugin,
    Security,
    Worker,
    WorkerPlugin,
    get_worker,
)

from app.execution.child import WorkerOptions
from app.execution.engine import Done, End, Event, Pool, Started, Stopped, Task
from app.execution.local import LocalEngine, PoolOptions
from app.execution.slot import SlotOptions
from app.settings import VERSION, check_own_folder
from domain.errors import Conflict, InvalidInput

log = logging.getLogger("sluice.engine")

NAME = "sluice"
CONNECT_S = 5.0
RETRY_S = 1.0
CLOSE_S = 2.0
_DRAIN_LOOK_S = 0.05
_BACK_S = 0.25  # before a worker that ends gives back what it is sent

# What is not Dask's to do, and what would grow or cost without end. One rule for tries: the
# ledger's. No part of HTTP: it would be served in clear beside TLS.
_OPTIONS: Mapping[str, Any] = {
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.work-stealing": True,  # to whoever has a free slot
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
    """Where the scheduler is, `tls://host:port`, and the files in PEM by which all its members know
    each other; on loopback those of this user where none is named.
    """

    address: str
    ca: str = ""
    certificate: str = ""
    key: str = ""

    @property
    def is_local(self) -> bool:
        """Whether the scheduler listens on loopback alone."""
        return _is_loopback(urlsplit(self.address).hostname or "")

    def check(self) -> None:
        """Raise InvalidInput for what would let in others, or could not work."""
        parts = urlsplit(self.address)
        try:
            is_address = parts.scheme == "tls" and parts.hostname and parts.port != -1
        except ValueError:  # of the port
            is_address = False
        if not is_address:
            raise InvalidInput(
                "expected SLUICE_DASK_ADDRESS to be tls://HOST:PORT: whoever reaches a scheduler "
                "without TLS, another user of this machine too, runs what he likes on it",
                field="SLUICE_DASK_ADDRESS",
            )
        if self._is_by_user:
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

    def security(self) -> Security:
        """Return what Dask takes: each side shows its certificate.

        Raises Conflict without any, and InvalidInput where others may have put it there.
        """
        ca, certificate, key = self.ca, self.certificate, self.key
        if self._is_by_user:
            certificate, key = (str(_own_folder() / name) for name in (_CERTIFICATE, _KEY))
            ca = certificate  # which has signed itself, and nothing else
            if not os.access(key, os.R_OK):
                raise Conflict(
                    f"{key} is not there: start sluice admin engine scheduler as this user first"
                )
            check_own_folder(_own_folder())
        roles = ("client", "scheduler", "worker")
        files = {f"tls_{role}_cert": certificate for role in roles}
        files |= {f"tls_{role}_key": key for role in roles}
        return Security(tls_ca_file=ca, require_encryption=True, **files)

    def make_certificate(self) -> None:
        """Make this user's certificate where it is to be used and is not there. Raises Conflict."""
        if self._is_by_user:
            _make_certificate(_own_folder())

    @property
    def _is_by_user(self) -> bool:
        return self.is_local and not (self.ca or self.certificate or self.key)


_CERTIFICATE, _KEY = "cert.pem", "key.pem"
_MAKE_CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 "
    f"-subj /CN=sluice-engine -keyout {_KEY} -out {_CERTIFICATE}"
).split()


def _own_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "sluice" / "engine"


def _make_certificate(folder: Path) -> None:
    """Make it in a folder of this user alone; one that is there already stays."""
    if (folder / _KEY).exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = tempfile.mkdtemp(prefix="engine-", dir=folder.parent)  # of mode 0700
    try:
        subprocess.run(_MAKE_CERTIFICATE, cwd=made, check=True, capture_output=True)
        os.rename(made, folder)
    except (OSError, subprocess.CalledProcessError) as error:
        shutil.rmtree(made, ignore_errors=True)
        if not (folder / _KEY).exists():  # another scheduler's was sooner
            raise Conflict(f"no certificate can be made in {folder}: {error}") from None


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
    return cast(Node, get_worker().plugins[NAME]).run(task, topic)


def end_tasks(topic: str, key: tuple[str, int] | None = None, *, dask_worker: Worker) -> None:
    """End the task of this identifier and claim in a worker, or all of a topic."""
    cast(Node, dask_worker.plugins[NAME]).end(topic, key)


@dataclass(frozen=True, slots=True)
class _Running:
    """A task in a worker, the name by which its engine knows it, and the topic that hears of it."""

    name: str
    task: Task
    topic: str


class Node(WorkerPlugin):
    """What makes a Dask worker one of ours: tasks run in the local engine, and end when nobody has
    any use for them.
    """

    name = NAME

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._running: dict[str, _Running] = {}
        self._unsaid: dict[str, list[tuple[str, int, str, bytes]]] = {}  # by topic
        self._is_closing = False
        self.is_draining = False

    def setup(self, worker: Worker) -> None:
        """Begin, in the worker's event loop."""
        self._worker, self._loop = worker, asyncio.get_running_loop()

    def teardown(self, worker: Worker) -> None:
        """Cancel everything, and say so: the scheduler is gone, or the worker goes."""
        with self._lock:
            self._is_closing = True
            left = list(self._running.values())
        for running in left:
            self._say(running, Left(Stopped(is_closing=True)))
            self._tell(running.topic)
            self._engine.cancel(running.name, running.task.claim)

    def end(self, topic: str, key: tuple[str, int] | None) -> None:
        """Cancel the task of this identifier and claim, or all of a topic."""
        with self._lock:
            left = [one for one in self._running.values() if one.topic == topic]
        for running in left:
            if key is None or tuple(key) == (running.task.id, running.task.claim):
                self._engine.cancel(running.name, running.task.claim)

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs."""
        return not self._running

    def run(self, task: Task, topic: str) -> End | None:
        """Run a task, and tell its topic what is to be told. Raises Reschedule while it drains."""
        if self.is_draining:
            time.sleep(_BACK_S)  # there may be no other worker to send it to
            raise Reschedule
        ended: queue.SimpleQueue[End] = queue.SimpleQueue()
        # Another name each time: a result that was lost before it was fetched is asked for again.
        running = _Running(f"{uuid4().hex} {task.id}", task, topic)

        def take(message: Event | End) -> None:
            if isinstance(message, Event):
                self._say(running, message)
            else:
                ended.put(message)

        with self._lock:
            if self._is_closing:
                return Stopped(is_closing=True)
            # Of whom it is was settled where it was submitted.
            self._engine.submit(replace(task, id=running.name, requester=""), take)
            self._running[running.name] = running
        end = ended.get()
        with self._lock:
            del self._running[running.name]
        if isinstance(end, Stopped):  # whoever has cancelled it does not ask how it ended
            end = Stopped(is_closing=True)
        is_reported = not isinstance(end, Done) or len(end.result) <= _MAX_REPORTED_BYTES
        self._say(running, Left(end if is_reported else None))
        return None if is_reported else end

    def _say(self, running: _Running, message: Event | Left) -> None:
        """Tell a topic in its turn: results and steps together, what begins or ends at once."""
        topic, task = running.topic, running.task
        packed = pickle.dumps(message)
        with self._lock:
            unsaid = self._unsaid.setdefault(topic, [])
            unsaid.append((task.id, task.claim, self._worker.address, packed))
            is_first = len(unsaid) == 1
        with suppress(RuntimeError):  # the worker has ended
            if isinstance(message, Started | Left):
                self._loop.call_soon_threadsafe(self._tell, topic)
            elif is_first:  # the others go with it
                later = partial(self._loop.call_later, _TOGETHER_S, self._tell, topic)
                self._loop.call_soon_threadsafe(later)

    def _tell(self, topic: str) -> None:
        """Send what a topic has not heard yet; by one thread, which keeps the order."""
        with self._lock:
            unsaid = self._unsaid.pop(topic, None)
        if unsaid:
            self._worker.log_event(topic, unsaid)


class _EndsOfClients(SchedulerPlugin):
    """Has workers end what ran for a client that is gone."""

    name = NAME

    def __init__(self, client: Any) -> None:
        self._client = client
        self._calls: set[asyncio.Future[Any]] = set()  # of which the loop keeps no reference

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """Tell all workers, beside what the scheduler does."""
        call = asyncio.ensure_future(self._client.run(end_tasks, client, on_error="ignore"))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)


def client_of(options: ClusterOptions, address: str) -> Client:
    """Return a client of the scheduler at this address, which connects where it is awaited."""
    return Client(
        address,
        security=options.security(),
        timeout=CONNECT_S,
        set_as_default=False,
        name=NAME,
        asynchronous=True,
    )


def run_scheduler(options: ClusterOptions, ready: Callable[[str], None]) -> None:
    """Route tasks until SIGTERM or SIGINT; `ready` is told the address. Raises Conflict."""
    options.check()
    options.make_certificate()
    set_up_dask()
    parts = urlsplit(options.address)

    async def serve() -> None:
        stop = _stop_by_signals()
        try:
            scheduler = await Scheduler(
                protocol=parts.scheme,
                host=parts.hostname,
                port=8786 if parts.port is None else parts.port,
                security=options.security(),
                dashboard=False,
                dashboard_address="127.0.0.1:0",
            )
        except OSError as error:
            raise Conflict(f"the scheduler cannot listen on {options.address}: {error}") from None
        async with scheduler, client_of(options, scheduler.address) as client:
            scheduler.add_plugin(_EndsOfClients(client))
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
    long = SlotOptions(others, is_always_warm=False)
    engine = LocalEngine(
        {
            Pool.SOLVE: PoolOptions(slots, SlotOptions(solves)),
            Pool.READ: PoolOptions(slots, long),
            Pool.LONG: PoolOptions(slots, long),
        }
    )

    async def serve(folder: str) -> None:
        stop = _stop_by_signals()
        stopped = asyncio.create_task(stop.wait())
        said = ""
        while not stop.is_set():
            try:
                async with client_of(options, options.address) as client:
                    check_versions(await client.run_on_scheduler(versions))
                node = Node(engine)
                worker = await Worker(
                    options.address,
                    nthreads=slots,
                    memory_limit=0,
                    security=options.security(),
                    host="127.0.0.1" if options.is_local else None,
                    dashboard_address="127.0.0.1:0",
                    local_directory=folder,
                    plugins=(node,),
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
            if stop.is_set():  # begin nothing more; wait for what runs, and for its results
                until_s = time.monotonic() + drain_s
                node.is_draining = True
                while time.monotonic() < until_s and not (node.is_idle and not worker.data):
                    await asyncio.sleep(_DRAIN_LOOK_S)
            await worker.close(timeout=CLOSE_S)
            await ended

    try:
        with tempfile.TemporaryDirectory(prefix="sluice-engine-") as folder:
            asyncio.run(serve(folder))
    finally:
        engine.close()


def _stop_by_signals() -> asyncio.Event:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
