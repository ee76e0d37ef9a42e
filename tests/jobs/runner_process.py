"""A runner in a process of its own: `python -m tests.jobs.runner_process URL LEASE_S [SCHEDULER]`.

It has a worker, or the cluster of the scheduler at this address.

It says its name and its time of day when it is ready, and at its end how many of its writes came
too late.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time

from app.execution.child import WorkerOptions
from app.execution.engine import Engine, Pool
from app.execution.local import LocalEngine, PoolOptions
from app.execution.slot import SlotOptions
from app.jobs.ledger import RunnerOptions
from app.jobs.runner import Runner
from models.session import create_store
from tests.support.job_operations import prepare


def main() -> None:
    """Run jobs until SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    store = create_store(sys.argv[1])
    engine = _engine(*sys.argv[3:])
    options = RunnerOptions.of_lease(float(sys.argv[2]))
    runner = Runner(store, engine, prepare, options, memory_bytes=2**30)
    runner.start()
    print(json.dumps({"runner": runner.name, "time_s": time.time()}), flush=True)
    stop.wait()
    runner.close()
    print(json.dumps({"fenced": runner.fenced}), flush=True)
    engine.close()
    store.dispose()


def _engine(address: str = "") -> Engine:
    if not address:
        slots = SlotOptions(WorkerOptions(niceness=0))
        return LocalEngine({Pool.SOLVE: PoolOptions(1, slots)})
    from app.execution.cluster import ClusterEngine
    from app.execution.node import ClusterOptions

    return ClusterEngine(ClusterOptions(address), dict.fromkeys(Pool, PoolOptions(64)))


if __name__ == "__main__":
    main()
