"""The engine that runs tasks in worker processes of this machine, and what all engines have.

How much work runs at a time and how much of it may wait is said of each pool: what is beyond is
refused at once with `Overloaded`, which clients read as 503 with a time to try again.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from app.execution.engine import Capacity, FairQueue, Pool, Requester, Sink, Stopped, Task
from app.execution.operation_process import MAX_FILES
from app.execution.slot import AnySlot, OnIdle, Slot, SlotOptions, SubmittedTask
from app.execution.worker import ForkServer
from domain.errors import NotReady, Overloaded

JOBS = "jobs"  # the requester of durable jobs, which wait in the ledger and not here

Ended: TypeAlias = Callable[[SubmittedTask], None]
NewSlot: TypeAlias = Callable[["PoolOptions", str, OnIdle], AnySlot]


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """How many tasks a pool runs at a time, how many may wait, and how its workers are kept.

    Of its slots so many are `left_by_jobs` to others, but never the only one, and so many
    `left_by_each` requester.
    """

    slots: int
    slot: SlotOptions = field(default_factory=SlotOptions)
    max_waiting: int = 1000
    max_of_requester: int = 1000
    left_by_jobs: int = 0
    left_by_each: int = 0


class WorkerPool:
    """Thread-safe. Tasks go to the slot that was used last, so that others may end their worker.

    There are no slots before `resize`.
    """

    def __init__(
        self, options: PoolOptions, new_slot: NewSlot, *, name: str, on_end: Ended
    ) -> None:
        self._options = options
        self._new_slot = new_slot
        self._name = name
        self._on_end = on_end
        self._lock = threading.Lock()
        self._queue: FairQueue[SubmittedTask] = FairQueue(
            max_waiting=options.max_waiting,
            max_of_requester=options.max_of_requester,
            noun="tasks",
        )
        self._idle: list[AnySlot] = []
        self._busy: Counter[str] = Counter()
        self._is_closed = False
        self._slots: tuple[AnySlot, ...] = ()
        self._count = 0

    def resize(self, count: int) -> None:
        """Run so many tasks at a time, but no more than its options say; what runs goes on."""
        with self._lock:
            self._count = min(count, self._options.slots)
            added = tuple(
                self._new_slot(self._options, f"sluice-{self._name}-{number}", self._slot_is_idle)
                for number in range(len(self._slots), self._count)
            )
            self._slots += added
        for slot in added:
            slot.start()
        self._dispatch()

    def add(self, running: SubmittedTask) -> None:
        """Queue a task, and run it as soon as it has a slot. Raises Overloaded."""
        requester = running.task.requester
        if self._queue.add(running, requester=requester) is not None:
            raise Overloaded(
                f"{self._options.max_of_requester} tasks of this client are waiting, "
                "which is the maximum"
            )
        self._dispatch()

    def remove(self, running: SubmittedTask) -> bool:
        """Take a task out of the queue; return whether it still waited."""
        return self._queue.remove(running, requester=running.task.requester)

    def drain(self) -> list[SubmittedTask]:
        """Take out everything that waits."""
        return self._queue.drain()

    def capacity(self) -> Capacity:
        """Slots, how many of them are at work and how many are warm, and what has ended."""
        return Capacity(
            slots=self._count,
            busy=self._busy.total(),
            ready=min(self._count, sum(slot.is_ready for slot in self._slots)),
            for_jobs=self._for_jobs,
            for_each=self._but(self._options.left_by_each),
            deaths=sum((slot.deaths for slot in self._slots), Counter()),
        )

    def end(self) -> None:
        """Cut off what runs, and let the threads end."""
        self._is_closed = True
        for slot in self._slots:
            slot.end()

    def join(self, timeout_s: float) -> None:
        """Wait for the threads."""
        for slot in self._slots:
            slot.join(timeout_s)

    def _slot_is_idle(self, slot: AnySlot, ended: SubmittedTask | None) -> None:
        with self._lock:
            if ended is not None:
                self._busy[ended.task.requester] -= 1
                self._busy += Counter()  # forgets those with none
            self._idle.append(slot)
        if ended is not None:
            self._on_end(ended)
        self._dispatch()

    def _dispatch(self) -> None:
        with self._lock:
            while self._idle and self._busy.total() < self._count and not self._is_closed:
                running = self._queue.take(self._may_run)
                if running is None:
                    return
                self._busy[running.task.requester] += 1
                self._take_slot().give(running)

    def _take_slot(self) -> AnySlot:
        """Return an idle slot: a warm one first, and of these the one that was used last."""
        ready = [slot for slot in self._idle if slot.is_ready]
        slot = (ready or self._idle)[-1]
        self._idle.remove(slot)
        return slot

    def _may_run(self, requester: Requester) -> bool:
        share = self._for_jobs if requester == JOBS else self._but(self._options.left_by_each)
        return self._busy[str(requester)] < share

    @property
    def _for_jobs(self) -> int:
        return self._but(max(self._options.left_by_jobs, self._options.left_by_each))

    def _but(self, left: int) -> int:
        return max(min(1, self._count), self._count - left)


# --- the engines ----------------------------------------------------------------------------------


_CLOSE_LIMIT_S = 10.0
_DRAIN_LOOK_S = 0.02
_REMEMBERED = 1024  # tasks that have ended


class PooledEngine:
    """An `Engine` of pools of slots, whatever these are.

    `(id, claim)` that is submitted again changes nothing: the first sink alone hears of it.
    `when_closed` is called once no slot runs anything any more.
    """

    def __init__(
        self,
        pools: Mapping[Pool, PoolOptions],
        new_slot: NewSlot,
        when_closed: Callable[[], None],
    ) -> None:
        self._when_closed = when_closed
        self._lock = threading.Lock()
        self._open: dict[tuple[str, int], SubmittedTask] = {}
        self._ended: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._is_closing = False
        self._stops = ThreadPoolExecutor(1, "sluice-ends")  # of what no slot was given
        self._pools = MappingProxyType(
            {
                pool: WorkerPool(options, new_slot, name=pool.value, on_end=self._forget)
                for pool, options in pools.items()
            }
        )

    def submit(self, task: Task, sink: Sink) -> None:
        """Queue a task. Raises Overloaded where too many wait, NotReady once closed."""
        if len(task.files) > MAX_FILES:
            raise ValueError(f"a task brings {MAX_FILES} files at most, not {len(task.files)}")
        running = SubmittedTask.of(task, sink)
        try:
            with self._lock:
                if self._is_closing:
                    raise NotReady("the service is stopping")
                is_new = running.key not in self._open and running.key not in self._ended
                if is_new:
                    self._open[running.key] = running
            if is_new:
                self._pools[task.pool].add(running)
            else:
                running.close_files()
        except BaseException:
            self._drop(running)
            raise

    def cancel(self, task_id: str, claim: int) -> None:
        """End a task: its worker process is gone within 1 s. Nothing happens once it has ended."""
        with self._lock:
            running = self._open.get((task_id, claim))
        if running is None:
            return
        running.cancel()
        if self._pools[running.task.pool].remove(running):
            self._stops.submit(self._stop, running, Stopped())

    def capacity(self, pool: Pool) -> Capacity:
        """Return how many tasks run and how many could."""
        return self._pools[pool].capacity()

    def close(self, *, drain_s: float = 0.0) -> None:
        """Take no more, wait this long for what runs, end the rest, leave no process behind."""
        with self._lock:
            was_closing, self._is_closing = self._is_closing, True
        if was_closing:
            return
        for workers in self._pools.values():
            for running in workers.drain():
                self._stops.submit(self._stop, running, Stopped(is_closing=True))
        self._wait_for_running(time.monotonic() + drain_s)
        for workers in self._pools.values():
            workers.end()
        for workers in self._pools.values():
            workers.join(_CLOSE_LIMIT_S)
        self._when_closed()
        with self._lock:
            left = list(self._open.values())
        for running in left:  # given to a slot that ended before it took it
            self._stops.submit(self._stop, running, Stopped(is_closing=True))
        self._stops.shutdown()

    def _wait_for_running(self, until_s: float) -> None:
        while time.monotonic() < until_s and self._open:
            time.sleep(_DRAIN_LOOK_S)

    def _stop(self, running: SubmittedTask, end: Stopped) -> None:
        running.end(end)
        self._forget(running)

    def _forget(self, running: SubmittedTask) -> None:
        with self._lock:
            if self._open.pop(running.key, None) is None:
                return
            self._ended[running.key] = None
            while len(self._ended) > _REMEMBERED:
                self._ended.popitem(last=False)

    def _drop(self, running: SubmittedTask) -> None:
        """Forget a task that was not taken."""
        running.close_files()
        with self._lock:
            if self._open.get(running.key) is running:
                del self._open[running.key]


class LocalEngine(PooledEngine):
    """An `Engine` of guarded child processes: one for each slot of each pool.

    A task may use its `limits.memory_bytes`, what its worker needs at rest included, together with
    all that it starts. A `fork_server` that is given may be other engines' too, and is left to the
    caller.
    """

    def __init__(
        self, pools: Mapping[Pool, PoolOptions], *, fork_server: ForkServer | None = None
    ) -> None:
        server = fork_server or ForkServer()

        def new_slot(options: PoolOptions, name: str, on_idle: OnIdle) -> AnySlot:
            return Slot(options.slot, server, name=name, on_idle=on_idle)

        super().__init__(pools, new_slot, server.close if fork_server is None else lambda: None)
        for pool, workers in self._pools.items():
            workers.resize(pools[pool].slots)
