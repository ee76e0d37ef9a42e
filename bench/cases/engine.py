"""The local engine: what it costs to run work in a worker process, and how fast it ends there."""

from __future__ import annotations

import itertools
import os
import pickle
import queue
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import psutil

from app.console.running import console_pools
from app.execution.engine import Best, Done, End, Engine, Event, Limits, Pool, Started, Task
from app.execution.local import LocalEngine
from app.operations.tasks import service_pools
from bench.engine_work import Burn, Carry, Nothing, Spin, Tell
from bench.spec import BenchSpec, CaseResult, Check, Effort, Table
from bench.timing import Timing, interleaved

MIB = 2**20
_MEMORY_BYTES = 1024 * MIB
_LIMIT_S = 60.0
_WAIT_S = 120.0
_NUMBERS = itertools.count()


@dataclass(eq=False, slots=True)
class _Run:
    """A task under way: when each of its messages was heard."""

    key: tuple[str, int]
    heard: queue.SimpleQueue[tuple[float, Event | End]] = field(default_factory=queue.SimpleQueue)

    def __call__(self, message: Event | End) -> None:
        self.heard.put((time.monotonic(), message))

    def next(self) -> tuple[float, Event | End]:
        """The next message, and when it came."""
        return self.heard.get(timeout=_WAIT_S)

    def started(self) -> tuple[float, Started]:
        """When it reached its worker."""
        received_s, message = self.next()
        assert isinstance(message, Started)
        return received_s, message

    def end(self) -> tuple[float, End]:
        """How it ended, and when; what it reports is passed over."""
        while True:
            received_s, message = self.next()
            if not isinstance(message, Event):
                return received_s, message

    def result(self) -> object:
        """Its result."""
        _, end = self.end()
        assert isinstance(end, Done), end
        return pickle.loads(end.result)


def begin(engine: Engine, work: object, *, time_s: float = _LIMIT_S) -> _Run:
    task = Task(
        id=f"bench-{next(_NUMBERS)}",
        claim=0,
        kind="bench",
        work=pickle.dumps(work, pickle.HIGHEST_PROTOCOL),
        limits=Limits(time_s, _MEMORY_BYTES, 65 * MIB),
    )
    run = _Run((task.id, task.claim))
    engine.submit(task, run)
    return run


@contextmanager
def _engine(workers: int = 1) -> Iterator[LocalEngine]:
    """Workers at normal priority: what else runs on the machine is to count for both sides."""
    engine = LocalEngine(console_pools(workers))
    try:
        for run in [begin(engine, Burn(0.01)) for _ in range(workers)]:
            run.result()
        yield engine
    finally:
        engine.close()


def _run(effort: Effort) -> CaseResult:
    with _engine() as engine:
        round_trips, noop = no_op(engine, effort)
        ended, exited, usable = cancels(engine, effort)
        events = events_of(engine, effort)
        late = _limit(engine, effort)
        carried = _carried(engine, effort)
    useful = _efficiency(effort)
    tables = (
        round_trips,
        Table(
            "From an event to whoever listens",
            ("event", "p50 ms", "p99 ms", "max ms", "number"),
            (
                row_of("a result every 2 ms", events),
                row_of("cancel to the end, process gone", ended),
                row_of("the same, its pid gone", exited),
                row_of("cancel to the next result of this slot", usable),
                row_of("beyond the time limit", late),
            ),
        ),
        carried,
        useful.table,
        _rest(),
    )
    checks = (
        Check("engine: a task that does nothing, p50", noop.median_ms, 3.0, "ms"),
        Check("engine: cancel to process gone, p99", exited.quantile_ms(0.99), 200.0, "ms"),
        Check("engine: cancel to slot usable, p99", usable.quantile_ms(0.99), 1500.0, "ms"),
        Check("engine: event to listener, p99", events.quantile_ms(0.99), 50.0, "ms"),
        Check("engine: beyond the time limit, slowest", late.max_ms, 1000.0, "ms"),
        Check("engine: useful share of processor time", useful.share, 0.93, "share", "at least"),
    )
    load = f"Load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
    return CaseResult(tables, checks, (load,))


def row_of(name: str, timing: Timing) -> tuple[str, float, float, float, int]:
    return (
        name,
        timing.median_ms,
        timing.quantile_ms(0.99),
        timing.max_ms,
        len(timing.samples_ms),
    )


def no_op(engine: Engine, effort: Effort) -> tuple[Table, Timing]:
    """A task that does nothing, beside a byte to a process and back."""
    rounds = effort.pick(2000, quick=200)
    with _echo() as there_and_back:
        pipe = _timed(there_and_back, rounds)
        ours = _timed(partial(nothing, engine), rounds)
    rows = tuple(
        (name, side.median_ms, side.quantile_ms(0.99), processor_ms)
        for name, (side, processor_ms) in (("pipe", pipe), ("engine", ours))
    )
    columns = ("way", "p50 ms", "p99 ms", "processor ms here")
    table = Table("A task that does nothing, and a byte to a process and back", columns, rows)
    return table, ours[0]


def _timed(call: Callable[[], object], rounds: int) -> tuple[Timing, float]:
    """Wall times, and the processor time of this process for one call in the mean, in ms."""
    samples_ms, used_s = [], time.process_time()
    for _ in range(rounds):
        started_s = time.perf_counter()
        call()
        samples_ms.append((time.perf_counter() - started_s) * 1e3)
    return Timing(tuple(samples_ms)), (time.process_time() - used_s) * 1e3 / rounds


@contextmanager
def _echo() -> Iterator[Callable[[], object]]:
    here, there = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        here.close()
        while byte := there.recv(1):
            there.sendall(byte)
        os._exit(0)
    there.close()

    def there_and_back() -> object:
        here.sendall(b"x")
        return here.recv(1)

    try:
        yield there_and_back
    finally:
        here.close()
        os.waitpid(pid, 0)


def cancels(engine: Engine, effort: Effort) -> tuple[Timing, Timing, Timing]:
    """Cancel a call in C that holds the lock: until its end is reported, until its process has
    exited, and until the slot has run something else.
    """
    ended: list[float] = []
    exited: list[float] = []
    usable: list[float] = []
    for _ in range(effort.pick(50, quick=5)):
        run = begin(engine, Spin())
        _, started = run.started()
        pid = int(started.where.rpartition(":")[2])
        time.sleep(0.01)
        begun_s = time.monotonic()
        watcher = threading.Thread(target=_until_exited, args=(pid, begun_s, exited))
        watcher.start()
        engine.cancel(*run.key)
        ended.append((run.end()[0] - begun_s) * 1e3)
        begin(engine, Nothing()).result()
        usable.append((time.monotonic() - begun_s) * 1e3)
        watcher.join()
    return Timing(tuple(ended)), Timing(tuple(exited)), Timing(tuple(usable))


def _until_exited(pid: int, begun_s: float, into: list[float]) -> None:
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.001)
    into.append((time.monotonic() - begun_s) * 1e3)


def events_of(engine: Engine, effort: Effort) -> Timing:
    run = begin(engine, Tell(effort.pick(1000, quick=100), 0.002))
    run.started()
    late: list[float] = []
    while True:
        received_s, message = run.next()
        if not isinstance(message, Event):
            return Timing(tuple(late))
        assert isinstance(message, Best)
        late.append((received_s - pickle.loads(message.result)) * 1e3)


def _limit(engine: LocalEngine, effort: Effort) -> Timing:
    late: list[float] = []
    for _ in range(effort.pick(20, quick=3)):
        run = begin(engine, Spin(), time_s=0.2)
        begun_s, _started = run.started()
        late.append((run.end()[0] - begun_s - 0.2) * 1e3)
    return Timing(tuple(late))


def _carried(engine: LocalEngine, effort: Effort) -> Table:
    rounds = effort.pick(9, quick=2)
    sides: dict[str, Callable[[], object]] = {
        "8 MiB in": lambda: begin(engine, Carry(bytes(8 * MIB), 0)).result(),
        "64 MiB out": lambda: begin(engine, Carry(b"", 64 * MIB)).result(),
        "5,000 steps": lambda: begin(engine, Tell(1, 0.0, 5000)).result(),
    }
    found = interleaved(sides, rounds=rounds)
    rows = tuple(
        (name, side.timing.median_ms, side.timing.spread, side.processor.median_ms)
        for name, side in found.items()
    )
    columns = ("task", "median ms", "min-max ms", "processor ms here")
    return Table("Much to carry", columns, rows)


@dataclass(frozen=True, slots=True)
class _Useful:
    share: float
    table: Table


def _efficiency(effort: Effort) -> _Useful:
    """Processor time of the work itself over that of everything, start of the workers aside."""
    number, unit_s = effort.pick(40, quick=4), 0.5
    with _engine(2) as engine:
        before_s = processor_s()
        runs = [begin(engine, Burn(unit_s)) for _ in range(number)]
        useful_s = sum(float(str(run.result())) for run in runs)
        all_s = processor_s() - before_s
    row = (f"{number} tasks of {unit_s} s on 2 workers", useful_s / all_s, useful_s, all_s)
    columns = ("work", "useful share", "useful s", "processor s in all")
    return _Useful(useful_s / all_s, Table("Useful share of the processor time", columns, (row,)))


def processor_s() -> float:
    """Of this process and of all below it."""
    children = psutil.Process().children(recursive=True)
    times = [child.cpu_times() for child in children]
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime + sum(one.user + one.system for one in times)


def _rest() -> Table:
    """A worker at rest, with the solvers in it and without."""
    rows = []
    for name, warm_up in (("solvers", "solvers:warm_up"), ("nothing", "")):
        begun_s = time.monotonic()
        pools = service_pools(solve_workers=1, long_workers=2, solve_warm_up=warm_up)
        engine = LocalEngine({Pool.SOLVE: pools[Pool.SOLVE]})
        try:
            while not engine.capacity(Pool.SOLVE).ready:
                time.sleep(0.005)
            start_ms = (time.monotonic() - begun_s) * 1e3
            family = psutil.Process().children(recursive=True)
            sizes = [one.memory_full_info().pss / MIB for one in family]
            rows.append((name, start_ms, len(family), min(sizes), max(sizes)))
        finally:
            engine.close()
    columns = ("loaded", "start ms", "processes", "guardian MiB", "operation process MiB")
    return Table("A worker at rest (proportional set size)", columns, tuple(rows))


@contextmanager
def _nothing() -> Iterator[Callable[[], object]]:
    with _engine() as engine:
        yield partial(nothing, engine)


def nothing(engine: Engine) -> object:
    """The result of a task that does nothing."""
    return begin(engine, Nothing()).result()


SPEC = BenchSpec(
    name="engine",
    title="The engine that runs operations in worker processes",
    about=(
        "What it costs to have work done in a guarded process instead of here, how soon it ends "
        "there, and what its workers take at rest. Shares and processor times hold on a busy "
        "machine too; milliseconds are upper bounds there."
    ),
    run=_run,
    workloads={"nothing": _nothing},
)
