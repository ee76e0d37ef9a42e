"""What the tests of engines share: tasks, a sink that remembers, and a look at what is running."""

from __future__ import annotations

import itertools
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from app.execution.child import WorkerOptions
from app.execution.engine import Best, Done, End, Engine, Event, Limits, Pool, Started, Steps, Task
from app.execution.local import PoolOptions
from app.execution.slot import SlotOptions
from tests.execution.behaviours import Behave

MIB = 2**20
MEMORY_BYTES = 256 * MIB
GUARD_S = 60.0  # against tests that hang; nothing that works comes near
MARKER = "ENGINE_TEST_MARKER"  # handed down to every process that a worker starts

_NUMBERS = itertools.count()


def task_of(
    behaviour: str,
    *given: Any,
    time_s: float = GUARD_S,
    memory_bytes: int = MEMORY_BYTES,
    result_bytes: int = 64 * MIB,
    **task: Any,
) -> Task:
    """Return a task of its own identifier that behaves so."""
    return Task(
        **{
            "id": f"task-{next(_NUMBERS)}",
            "claim": 0,
            "kind": behaviour,
            "work": pickle.dumps(Behave(behaviour, given)),
            "limits": Limits(time_s, memory_bytes, result_bytes),
            **task,
        }
    )


@dataclass(eq=False)
class Heard:
    """A sink: everything that it was told, in order. `key` is what cancels its task."""

    key: tuple[str, int] = ("", 0)
    messages: list[Event | End] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __call__(self, message: Event | End) -> None:
        self.threads.add(threading.current_thread().name)
        self.messages.append(message)
        if not isinstance(message, Event):
            self._ended.set()

    @property
    def has_started(self) -> bool:
        return bool(self.messages)

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    @property
    def events(self) -> list[Event]:
        return [one for one in self.messages if isinstance(one, Event)]

    @property
    def best(self) -> Any:
        """The last best result, unpickled; None where none came."""
        found = [one for one in self.events if isinstance(one, Best)]
        return pickle.loads(found[-1].result) if found else None

    @property
    def steps(self) -> list[tuple[int, int]]:
        return [(one.done, one.total) for one in self.events if isinstance(one, Steps)]

    @property
    def pid(self) -> int:
        """The process that runs it, where the engine has processes."""
        first = self.messages[0]
        assert isinstance(first, Started)
        return int(first.where.rpartition(":")[2])

    def end(self) -> End:
        """Wait for the end."""
        assert self._ended.wait(GUARD_S), "no end"
        last = self.messages[-1]
        assert not isinstance(last, Event)
        return last

    def result(self) -> Any:
        """Wait for the result, unpickled."""
        end = self.end()
        assert isinstance(end, Done), end
        return pickle.loads(end.result)


def submit(engine: Engine, behaviour: str, *given: Any, **task: Any) -> Heard:
    """Submit a task that behaves so."""
    asked = task_of(behaviour, *given, **task)
    heard = Heard((asked.id, asked.claim))
    engine.submit(asked, heard)
    return heard


def is_idle(engine: Engine, pool: Pool = Pool.SOLVE) -> bool:
    return engine.capacity(pool).busy == 0


def marked(marker: str) -> set[int]:
    """Processes, zombies aside, that carry the marker in their environment or their arguments."""
    found = set()
    for folder in filter(lambda path: path.name.isdigit(), Path("/proc").iterdir()):
        try:
            text = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
        except OSError:  # ended meanwhile, or another user's
            continue
        if marker.encode() in text and int(folder.name) != os.getpid():
            found.add(int(folder.name))
    return found


def wait_until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + GUARD_S
    while not condition():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether this process runs; one that only waits to be reaped does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def parent_of(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


@contextmanager
def open_file(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def pool_options(
    slots: int = 1, *, max_waiting: int = 1000, max_of_requester: int = 1000, **slot: Any
) -> PoolOptions:
    """Return a pool without niceness, so that tests are short."""
    return PoolOptions(
        slots,
        SlotOptions(**{"worker": WorkerOptions(niceness=0), **slot}),
        max_waiting=max_waiting,
        max_of_requester=max_of_requester,
    )
