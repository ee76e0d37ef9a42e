"""How much work runs at a time and how much of it may wait: the numbers of admission.

What is beyond them is refused at once with `Overloaded`, which clients read as 503 with a time to
try again. The operations page lists these numbers with those of bodies and of the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.execution.engine import Pool
from app.execution.local import PoolOptions
from app.execution.slot import SlotOptions
from app.execution.worker import WorkerOptions

JOBS = "jobs"  # the requester of durable jobs, which wait in the ledger and not here

# Bodies that are held at once, in full bodies' worth of bytes.
BODIES_HELD = 32
TRACES_HELD = 2

# The service's own threads.
MAX_PENDING_CALLS = 512
SOLVES_HERE_PER_TASK = (
    2  # small solves that may wait here for each task in the engine, and for none
)
MAX_PENDING_PICTURES = 256
MAX_PICTURES_OF_CLIENT = 12  # three views with all of their parts
MAX_EVENT_STREAMS = 500

# The engine.
MAX_WAITING_SOLVES = 1000
MAX_WAITING_SOLVES_OF_REQUESTER = 64
LONG_WORKERS = 2
LONG_IDLE_S = 60.0  # a worker for long work that had none for this time is ended
MAX_WAITING_LONG = 64
MAX_WAITING_LONG_OF_REQUESTER = 8

# The ledger.
MAX_WAITING_JOBS = 10_000  # of all owners and services together


def job_slots(slots: int) -> int:
    """Return how many slots of a LONG pool durable jobs may fill: all but one, and one at least.

    So that however many jobs there are a client that waits is still served.
    """
    return max(1, slots - 1)


def service_pools(
    *, solve_workers: int, long_workers: int = LONG_WORKERS, solve_warm_up: str = ""
) -> Mapping[Pool, PoolOptions]:
    """Return the pools of a service or of a runner: solving is always warm, the rest on demand.

    `solve_warm_up` ("module:function") is what its workers call before their first task.
    """
    return {
        Pool.SOLVE: PoolOptions(
            solve_workers,
            SlotOptions(WorkerOptions(warm_up=solve_warm_up)),
            max_waiting=MAX_WAITING_SOLVES,
            max_of_requester=MAX_WAITING_SOLVES_OF_REQUESTER,
        ),
        Pool.LONG: PoolOptions(
            long_workers,
            SlotOptions(is_always_warm=False, idle_s=LONG_IDLE_S),
            max_waiting=MAX_WAITING_LONG,
            max_of_requester=MAX_WAITING_LONG_OF_REQUESTER,
            max_running={JOBS: job_slots(long_workers)},
        ),
    }


def console_pools(workers: int = 1) -> Mapping[Pool, PoolOptions]:
    """Return the pools of a command: on demand, at normal priority, since somebody waits for it."""
    slot = SlotOptions(WorkerOptions(niceness=0), is_always_warm=False)
    return dict.fromkeys(Pool, PoolOptions(workers, slot))
