"""A cluster of this machine: what routing costs beside the work, and how soon it is heard of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import psutil

from app.execution.cluster import ClusterEngine
from app.execution.engine import Pool
from app.execution.local import PoolOptions
from app.execution.node import ClusterOptions
from bench.cases.engine import (
    begin,
    cancels,
    events_of,
    no_op,
    nothing,
    processor_s,
    row_of,
)
from bench.engine_work import Burn, Nothing, Tell
from bench.machine import CHECKOUT
from bench.spec import BenchSpec, CaseResult, Check, Effort, Table

UNIT_S = 0.5
_SCHEDULER_SHARE = 0.3  # of a core: what its scheduler may take of a cluster
_MACHINES, _SLOTS = 100, 16


def _run(effort: Effort) -> CaseResult:
    with _cluster(workers=2) as (engine, scheduler):
        round_trips, no_ops = no_op(engine, effort)
        ended, exited, usable = cancels(engine, effort)
        heard = events_of(engine, effort)
        task_ms, event_ms = _routing(engine, scheduler, effort)
        useful, share = _useful(engine, effort)
    limit = _SCHEDULER_SHARE * 1e3 / task_ms
    slots = _MACHINES * _SLOTS
    tables = (
        round_trips,
        Table(
            "From an event to whoever listens",
            ("event", "p50 ms", "p99 ms", "max ms", "number"),
            (
                row_of("a result every 2 ms", heard),
                row_of("cancel to the end, process gone", ended),
                row_of("the same, its pid gone", exited),
                row_of("cancel to the next result of a slot", usable),
            ),
        ),
        useful,
        Table(
            f"On paper, of a scheduler that takes {_SCHEDULER_SHARE:.0%} of a core",
            ("what", "value"),
            (
                ("processor ms of the scheduler, a task", task_ms),
                ("the same, an event", event_ms),
                ("tasks a second", limit),
                (f"unit for {_MACHINES} machines of {_SLOTS} slots, s", slots / limit),
                ("share of a core for 2 events a second of each slot", 2e-3 * slots * event_ms),
                (f"wall speed-up on {slots} slots, of units of that length", slots * share),
            ),
        ),
    )
    checks = (
        Check("cluster: a task that does nothing, p50", no_ops.median_ms, 15.0, "ms"),
        Check("cluster: cancel to process gone, p99", exited.quantile_ms(0.99), 200.0, "ms"),
        Check("cluster: cancel to slot usable, p99", usable.quantile_ms(0.99), 1500.0, "ms"),
        Check("cluster: event to listener, p99", heard.quantile_ms(0.99), 50.0, "ms"),
        Check("cluster: the scheduler, a task", task_ms, 1.5, "processor ms"),
        Check("cluster: the scheduler, an event", event_ms, 0.1, "processor ms"),
        Check("cluster: useful share of processor time", share, 0.93, "share", "at least"),
    )
    load = f"Load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
    paper = "What is on paper was computed from these figures: nothing ran on a second machine."
    return CaseResult(tables, checks, (load, paper))


@contextmanager
def _cluster(*, workers: int) -> Iterator[tuple[ClusterEngine, psutil.Process]]:
    """A scheduler and workers of one slot, below this process."""
    with ExitStack() as stack:
        scheduler, address = _member(stack, "tls://127.0.0.1:0", "scheduler")
        for _ in range(workers):
            _member(stack, address, "worker", "--workers", "1")
        engine = ClusterEngine(
            ClusterOptions(address), dict.fromkeys(Pool, PoolOptions(64, max_of_requester=10**6))
        )
        stack.callback(engine.close)
        while engine.capacity(Pool.SOLVE).slots < workers:
            pass
        for run in [begin(engine, Burn(0.01)) for _ in range(workers)]:
            run.result()
        yield engine, scheduler


def _member(stack: ExitStack, address: str, *words: str) -> tuple[psutil.Process, str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "admin", "engine", *words, "--json"],
        cwd=CHECKOUT,
        env={**os.environ, "SLUICE_DASK_ADDRESS": address},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    stack.callback(process.communicate)
    stack.callback(process.terminate)
    assert process.stdout is not None
    return psutil.Process(process.pid), str(json.loads(process.stdout.readline())["address"])


def _routing(
    engine: ClusterEngine, scheduler: psutil.Process, effort: Effort
) -> tuple[float, float]:
    """Processor ms of the scheduler for a task that does nothing, and for an event."""
    tasks, events = effort.pick((1000, 5000), quick=(100, 500))

    def used_ms(act: Callable[[], object]) -> float:
        before = scheduler.cpu_times()
        act()
        after = scheduler.cpu_times()
        return (after.user + after.system - before.user - before.system) * 1e3

    def run_all() -> None:
        for run in [begin(engine, Nothing()) for _ in range(tasks)]:
            run.result()

    a_task = used_ms(run_all) / tasks
    an_event = used_ms(lambda: begin(engine, Tell(events, 0.001)).result()) / events
    return a_task, an_event


def _useful(engine: ClusterEngine, effort: Effort) -> tuple[Table, float]:
    """Processor time of the work over that of scheduler, workers, their children and this one."""
    number = effort.pick(80, quick=6)
    before_s = processor_s()
    runs = [begin(engine, Burn(UNIT_S)) for _ in range(number)]
    useful_s = sum(float(str(run.result())) for run in runs)
    all_s = processor_s() - before_s
    row = (f"{number} tasks of {UNIT_S} s on 2 workers", useful_s / all_s, useful_s, all_s)
    columns = ("work", "useful share", "useful s", "processor s in all")
    return Table("Useful share of the processor time", columns, (row,)), useful_s / all_s


@contextmanager
def _nothing() -> Iterator[Callable[[], object]]:
    with _cluster(workers=1) as (engine, _):
        yield partial(nothing, engine)


SPEC = BenchSpec(
    name="cluster",
    title="The engine whose workers are a Dask cluster",
    about=(
        "A scheduler and two workers on this machine. Shares and processor times hold on a busy "
        "machine too; milliseconds are upper bounds there."
    ),
    run=_run,
    workloads={"nothing": _nothing},
)
