"""The local engine as tests open it: engines of one process of tests share what forks workers."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

from app.execution.engine import Engine
from app.execution.local import LocalEngine
from app.execution.worker import ForkServer
from app.operations.tasks import service_pools
from app.settings import Settings

GATE = "TEST_SOLVER_GATE"  # names a file; a scripted solver that waits ends when it is there


@cache
def solver_gate() -> Path:
    """The file that scripted solvers of this process's engines wait for. Tests leave none behind.

    One for all tests, since workers have the environment of what forks them.
    """
    return Path(os.environ.setdefault(GATE, str(Path(tempfile.mkdtemp()) / "gate")))


@cache
def shared_fork_server() -> ForkServer:
    """What loads the solvers once for all tests of this process. It ends with the process."""
    solver_gate()
    return ForkServer()


def local_engine(settings: Settings) -> Engine:
    """As app.operations.tasks.open_engine, but for what forks its workers."""
    pools = service_pools(
        solve_workers=settings.worker_count,
        long_workers=settings.long_workers,
        read_warm_up="",
    )
    return LocalEngine(pools, fork_server=shared_fork_server())
