"""The local engine: workers on this machine, each a process that can be ended whatever it does.

    engine ── worker.py ──▶ child.py: guardian ──▶ operation process ──▶ whatever that starts

Each worker is two processes. The guardian is small and runs nothing foreign: whatever the operation
starts, in whichever group or session, stays below it, and it ends all of that when the engine says
so or is gone. The operation process keeps no promise at all: it may hang, crash, or eat memory.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType

from app.execution.engine import Capacity, Pool, Sink, Stopped, Task
from app.execution.frames import MAX_FILES
from app.execution.running import Running
from app.execution.worker_pool import PoolOptions, WorkerPool
from domain.errors import NotReady

_CLOSE_LIMIT_S = 10.0
_DRAIN_LOOK_S = 0.02
_REMEMBERED = 1024  # tasks that have ended


class LocalEngine:
    """An `Engine` of guarded child processes: one for each slot of each pool.

    A task may use its `limits.memory_bytes`, what its worker needs at rest included, together with
    all that it starts. `(id, claim)` that is submitted again changes nothing: the first sink alone
    hears of it.
    """

    def __init__(self, pools: Mapping[Pool, PoolOptions]) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[str, int], Running] = {}
        self._ended: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._is_closing = False
        self._stops: queue.SimpleQueue[tuple[Running, Stopped] | None] = queue.SimpleQueue()
        self._stopper = threading.Thread(target=self._send_stops, name="sluice-ends", daemon=True)
        self._pools = MappingProxyType(
            {
                pool: WorkerPool(options, name=pool.value, on_end=self._forget)
                for pool, options in pools.items()
            }
        )
        self._stopper.start()
        for workers in self._pools.values():
            workers.start()

    def submit(self, task: Task, sink: Sink) -> None:
        """Queue a task. Raises Overloaded where too many wait, NotReady once closed."""
        if len(task.files) > MAX_FILES:
            raise ValueError(f"a task brings {MAX_FILES} files at most, not {len(task.files)}")
        running = Running.of(task, sink)
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
            self._stops.put((running, Stopped()))

    def capacity(self, pool: Pool) -> Capacity:
        """How many tasks run and how many could."""
        return self._pools[pool].capacity()

    def waiting(self, pool: Pool) -> int:
        """How many tasks wait for a slot."""
        return self._pools[pool].waiting

    def close(self, *, drain_s: float = 0.0) -> None:
        """Take no more, wait this long for what runs, end the rest, leave no process behind."""
        with self._lock:
            was_closing, self._is_closing = self._is_closing, True
        if was_closing:
            return
        for workers in self._pools.values():
            for running in workers.drain():
                self._stops.put((running, Stopped(is_closing=True)))
        self._wait_for_running(time.monotonic() + drain_s)
        for workers in self._pools.values():
            workers.end()
        for workers in self._pools.values():
            workers.join(_CLOSE_LIMIT_S)
        with self._lock:
            left = list(self._open.values())
        for running in left:  # given to a slot that ended before it took it
            self._stops.put((running, Stopped(is_closing=True)))
        self._stops.put(None)
        self._stopper.join(_CLOSE_LIMIT_S)

    def _wait_for_running(self, until_s: float) -> None:
        while time.monotonic() < until_s and self._open:
            time.sleep(_DRAIN_LOOK_S)

    def _send_stops(self) -> None:
        while (stop := self._stops.get()) is not None:
            running, end = stop
            running.end(end)
            self._forget(running)

    def _forget(self, running: Running) -> None:
        with self._lock:
            if self._open.pop(running.key, None) is None:
                return
            self._ended[running.key] = None
            while len(self._ended) > _REMEMBERED:
                self._ended.popitem(last=False)

    def _drop(self, running: Running) -> None:
        """It was not taken."""
        running.close_files()
        with self._lock:
            if self._open.get(running.key) is running:
                del self._open[running.key]
