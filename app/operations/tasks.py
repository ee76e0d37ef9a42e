"""Operations as tasks of the engine, results of ended tasks, and requests of durable jobs."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from app.execution.child import WorkerOptions
from app.execution.engine import (
    Crashed,
    Done,
    End,
    Engine,
    Limit,
    LimitExceeded,
    Limits,
    Lost,
    Pool,
    Refused,
    Stopped,
    Task,
)
from app.execution.local import LocalEngine, PoolOptions
from app.execution.slot import SlotOptions
from app.operations.operation import Operation
from app.registry import VERBS, jobs
from domain.errors import (
    Cancelled,
    InvalidInput,
    LimitReached,
    MemoryLimitReached,
    NotReady,
    SluiceError,
    SolverFailed,
    TimeLimitReached,
)
from domain.units import format_bytes

if TYPE_CHECKING:
    from app.execution.node import ClusterOptions
    from app.questions.source import Stored
    from app.settings import Settings


SOLVE_WARM_UP = "app.operations.solves:warm_up"  # called by workers that solve
READ_WARM_UP = "app.operations.work:warm_up"  # called by workers that read files

T = TypeVar("T")


def task_of(
    operation: Operation[Any],
    *,
    id: str,
    claim: int = 0,
    memory_bytes: int,
    requester: str = "",
) -> Task:
    """Return the task that runs an operation."""
    return Task(
        id=id,
        claim=claim,
        kind=operation.kind,
        work=pickle.dumps(operation.work, pickle.HIGHEST_PROTOCOL),
        limits=Limits(operation.time_s, memory_bytes),
        pool=operation.pool,
        requester=requester,
        files=tuple(operation.files),
    )


def result_of(operation: Operation[T], end: End, *, best: bytes | None, limits: Limits) -> T:
    """Return the result of an operation whose task has ended, or of its best result so far.

    Raises what the operation raised; LimitReached, Cancelled or SolverFailed where it was ended
    without any result; NotReady where the engine was closed or the machine was lost: what is cut
    short so can be asked again.
    """
    if isinstance(end, Done):
        return cast(T, pickle.loads(end.result))
    why = _error(operation, end, limits)
    if isinstance(end, Refused) or isinstance(why, NotReady):
        raise why
    known = operation.unreported() if best is None else cast(T, pickle.loads(best))
    found = None if known is None else operation.cut_off(known, why)
    if found is None:
        raise why
    return found


def _error(operation: Operation[Any], end: End, limits: Limits) -> SluiceError:
    noun = operation.noun
    match end:
        case Refused(error=pickled):
            return cast(SluiceError, pickle.loads(pickled))
        case LimitExceeded(limit=Limit.TIME):
            return TimeLimitReached(f"the {noun} took longer than {limits.time_s:g} s")
        case LimitExceeded(limit=Limit.MEMORY):
            return MemoryLimitReached(
                f"the {noun} needed more memory than {format_bytes(limits.memory_bytes)}"
            )
        case LimitExceeded():
            size = format_bytes(limits.result_bytes)
            return LimitReached(f"the result of the {noun} is longer than {size}")
        case Crashed(how=how):
            return SolverFailed(f"the process of the {noun} ended unexpectedly: {how}")
        case Stopped(is_closing=False):
            return Cancelled(f"the {noun} was cancelled")
        case Lost():
            return NotReady(f"the machine that ran the {noun} was lost; try again")
        case Stopped():
            return NotReady("the service is stopping")
        case Done():
            raise AssertionError("a task that is done has no error")


# --- requests of durable jobs ---------------------------------------------------------------------


Prepare: TypeAlias = Callable[[bytes, "Stored", "Settings"], Operation[Any]]

JOB_KINDS = tuple(verb.name for verb in jobs())


def prepare_request(
    kind: str, request: bytes, stored: Stored, settings: Settings
) -> Operation[Any]:
    """Return the operation that a stored request asks for.

    Raises what its checks raise: NotFound for what was deleted since, InvalidInput, what a fit
    does; ValueError for a kind that is no job's.
    """
    verb = VERBS.get(kind)
    if verb is None or not verb.doing:
        raise ValueError(f"{kind!r} is the kind of no job")
    prepare: Prepare = verb.module("operation").requested
    return prepare(request, stored, settings)


# --- the engine of a service or of a runner -------------------------------------------------------


# How much may wait, in all and of one requester; the operations page lists these numbers.
MAX_WAITING_SOLVES = 1000
MAX_WAITING_SOLVES_OF_REQUESTER = 64
READ_WORKERS = 2  # for files: one client's keep one of them at most
MAX_WAITING_READS = 256
MAX_WAITING_READS_OF_REQUESTER = 64
MAX_WAITING_LONG = 64
MAX_WAITING_LONG_OF_REQUESTER = 8


def service_pools(
    *,
    solve_workers: int,
    long_workers: int,
    solve_warm_up: str = SOLVE_WARM_UP,
    read_warm_up: str = READ_WARM_UP,
    has_clients: bool = True,
) -> Mapping[Pool, PoolOptions]:
    """Return the pools of a service or of a runner: what clients wait for briefly is always warm.

    `solve_warm_up` and `read_warm_up` ("module:function") are what workers call before their first
    task. However many jobs there are a client that waits for long work is still served, where there
    are two `long_workers`; where nobody does, jobs have as many workers for it as for solving.
    """
    return {
        Pool.SOLVE: PoolOptions(
            solve_workers,
            SlotOptions(WorkerOptions(warm_up=solve_warm_up)),
            max_waiting=MAX_WAITING_SOLVES,
            max_of_requester=MAX_WAITING_SOLVES_OF_REQUESTER,
        ),
        Pool.READ: PoolOptions(
            READ_WORKERS,
            SlotOptions(WorkerOptions(warm_up=read_warm_up), is_always_warm=has_clients),
            max_waiting=MAX_WAITING_READS,
            max_of_requester=MAX_WAITING_READS_OF_REQUESTER,
            left_by_each=1,
        ),
        Pool.LONG: PoolOptions(
            long_workers if has_clients else solve_workers,
            SlotOptions(is_always_warm=False),
            max_waiting=MAX_WAITING_LONG,
            max_of_requester=MAX_WAITING_LONG_OF_REQUESTER,
            left_by_jobs=int(has_clients),
        ),
    }


def open_engine(settings: Settings, *, has_clients: bool = True) -> Engine:
    """Return the engine that the settings want, of a process that answers clients or only runs
    jobs. Raises InvalidInput.
    """
    pools = service_pools(
        solve_workers=settings.worker_count,
        long_workers=settings.long_workers,
        has_clients=has_clients,
    )
    if settings.engine == "local":
        return LocalEngine(pools)
    options = cluster_options(settings)
    from app.execution.cluster import MAX_SLOTS, ClusterEngine

    # As much may wait here as elsewhere, and as much may run as the cluster has slots.
    there = {pool: replace(one, slots=MAX_SLOTS) for pool, one in pools.items()}
    return ClusterEngine(options, there, workers_here=settings.long_workers)


def cluster_options(settings: Settings) -> ClusterOptions:
    """Return where the cluster is and who belongs to it. Raises InvalidInput."""
    try:
        from app.execution.node import ClusterOptions
    except ImportError:
        raise InvalidInput(
            "SLUICE_ENGINE=dask and sluice admin engine take Dask: "
            "pip install '.[dask]' in the checkout",
            field="SLUICE_ENGINE",
        ) from None
    options = ClusterOptions(
        settings.dask_address, settings.dask_tls_ca, settings.dask_tls_cert, settings.dask_tls_key
    )
    options.check()
    return options
