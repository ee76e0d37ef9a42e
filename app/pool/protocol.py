"""Work that must not run in the server: the protocol of engines, and the engines there are.

An engine takes solves and answers for them: that they end within their limits, that the best
answer so far is never lost, and that whatever a solver does hurts nobody else. Durability is not
its business: jobs live in the store, and are handed in again by whoever finds them unfinished.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

from app.pool.engine import LocalEngine
from app.pool.task import SolveTask
from app.pool.tickets import Progress
from domain.solution import Solution

__all__ = ["Engine", "LocalEngine", "Progress", "SolveTask"]


class Engine(Protocol):
    """Where solves run. Every method may be called by any thread; none but `result` waits."""

    @property
    def ready_workers(self) -> int:
        """How many workers are ready for work or at it; 0 means not ready."""
        ...

    def submit(self, task: SolveTask, *, lane: str = "") -> str:
        """Hand in a task; returns its ticket. Lanes take turns.

        Raises Overloaded where too many wait, NotReady once closed.
        """
        ...

    def progress(self, ticket: str) -> Progress:
        """Where the task stands, with the best answer so far. Raises NotFound."""
        ...

    def cancel(self, ticket: str) -> None:
        """End the task; an answer known before stays its result. Nothing where it has ended."""
        ...

    def future(self, ticket: str) -> Future[Solution]:
        """The result to come, for those who must not wait in a thread. Raises NotFound."""
        ...

    def result(self, ticket: str, timeout_s: float | None = None) -> Solution:
        """Wait for the result and fetch it, which can be done once.

        Raises what the solver raised; LimitReached, SolverFailed or Cancelled where the solve was
        ended without any answer; NotReady where the engine was closed; NotFound; and TimeoutError
        where the result was not there in time, which changes nothing.
        """
        ...

    def close(self) -> None:
        """End all work and leave no process behind."""
        ...


def local_engine(workers: int, memory_bytes: int) -> Engine:
    """The engine that needs nothing but this machine."""
    return LocalEngine(workers, memory_bytes)
