"""A pool: slots of one kind, and the queue of tasks that wait for one of them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from app.execution.engine import Capacity
from app.execution.fair_queue import FairQueue, Requester
from app.execution.running import Running
from app.execution.slot import Slot, SlotOptions
from domain.errors import Overloaded

Ended = Callable[[Running], None]


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """How many tasks a pool runs at a time, how many may wait, and how its workers are kept.

    `max_running` says of some requesters how many slots their tasks may fill.
    """

    slots: int
    slot: SlotOptions = field(default_factory=SlotOptions)
    max_waiting: int = 1000
    max_of_requester: int = 1000
    max_running: Mapping[str, int] = field(default_factory=dict)


class WorkerPool:
    """Thread-safe. Tasks go to the slot that was used last, so that others may end their worker."""

    def __init__(self, options: PoolOptions, *, name: str, on_end: Ended) -> None:
        self._options = options
        self._on_end = on_end
        self._lock = threading.Lock()
        self._queue: FairQueue[Running] = FairQueue(
            max_waiting=options.max_waiting,
            max_of_requester=options.max_of_requester,
            noun="tasks",
        )
        self._idle: list[Slot] = []
        self._busy: Counter[str] = Counter()
        self._is_closed = False
        self._slots = tuple(
            Slot(options.slot, name=f"sluice-{name}-{number}", on_idle=self._slot_is_idle)
            for number in range(options.slots)
        )

    def start(self) -> None:
        """Start the threads, and with them the workers that are always there."""
        for slot in self._slots:
            slot.start()

    def add(self, running: Running) -> None:
        """Queue a task, and run it as soon as it has a slot. Raises Overloaded."""
        requester = running.task.requester
        if self._queue.add(running, requester=requester) is not None:
            raise Overloaded(
                f"{self._options.max_of_requester} tasks of this client are waiting, "
                "which is the maximum"
            )
        self._dispatch()

    def remove(self, running: Running) -> bool:
        """Take a task out of the queue; return whether it still waited."""
        return self._queue.remove(running, requester=running.task.requester)

    def drain(self) -> list[Running]:
        """Take out everything that waits."""
        return self._queue.drain()

    @property
    def waiting(self) -> int:
        """How many tasks wait."""
        return len(self._queue)

    def capacity(self) -> Capacity:
        """Slots, how many of them are at work, and how many are warm."""
        return Capacity(
            slots=len(self._slots),
            busy=self._busy.total(),
            ready=sum(slot.is_ready for slot in self._slots),
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

    def _slot_is_idle(self, slot: Slot, ended: Running | None) -> None:
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
            while self._idle and not self._is_closed:
                running = self._queue.take(self._may_run)
                if running is None:
                    return
                self._busy[running.task.requester] += 1
                self._take_slot().give(running)

    def _take_slot(self) -> Slot:
        """A warm one where there is one, and the one that was used last."""
        ready = [slot for slot in self._idle if slot.is_ready]
        slot = (ready or self._idle)[-1]
        self._idle.remove(slot)
        return slot

    def _may_run(self, requester: Requester) -> bool:
        name = str(requester)
        return self._busy[name] < self._options.max_running.get(name, len(self._slots))
