"""The local engine: workers on this machine, and the desk where their tasks are handed in."""

from __future__ import annotations

from concurrent.futures import Future

from app.pool.desk import Desk
from app.pool.supervisor import Rules, Supervisor
from app.pool.task import SolveTask
from app.pool.tickets import Progress
from app.pool.worker import Worker
from domain.solution import Solution

DEFAULT_GRACE_S = 1.0
DEFAULT_RUNNER = "solvers:solve"
_CLOSE_LIMIT_S = 10.0


class LocalEngine:
    """Solves in `workers` child processes, started at once and replaced when they end.

    A worker and all that it starts may use `memory_bytes`, what the solvers need at rest included.
    The solver keeps its own time limit; `grace_s` after it the worker is killed, and the best
    answer so far is the result, or TimeLimitReached where there is none. `runner`
    ("module:function") is called as `solvers.solve` is, in the worker, after the `warm_up` of its
    module. Every method may be called by any thread; none but `result` waits.
    """

    def __init__(
        self,
        workers: int,
        memory_bytes: int,
        *,
        grace_s: float = DEFAULT_GRACE_S,
        runner: str = DEFAULT_RUNNER,
        most_waiting: int = 1000,
        most_ended: int = 256,
        keep_s: float = 600.0,
    ) -> None:
        self._desk = Desk(most_waiting=most_waiting, most_ended=most_ended, keep_s=keep_s)
        rules = Rules(memory_bytes, grace_s)

        def start_worker() -> Worker:
            return Worker(runner=runner, memory_bytes=memory_bytes)

        self._supervisors = tuple(
            Supervisor(self._desk, rules, name=f"solver-{number}", start_worker=start_worker)
            for number in range(workers)
        )
        for supervisor in self._supervisors:
            supervisor.start()

    @property
    def ready_workers(self) -> int:
        """How many workers are warm, busy or not."""
        return sum(supervisor.is_ready for supervisor in self._supervisors)

    def submit(self, task: SolveTask, *, lane: str = "") -> str:
        """Hand in a task; returns its ticket. Lanes take turns, so that a flood in one delays no
        other. Raises Overloaded where too many wait, NotReady once closed.
        """
        return self._desk.submit(task, lane=lane)

    def progress(self, ticket: str) -> Progress:
        """Where the task stands, with the best answer so far. Raises NotFound."""
        return self._desk.ticket(ticket).progress()

    def cancel(self, ticket: str) -> None:
        """End the task; an answer known before stays its result. Nothing where it has ended."""
        self._desk.cancel(ticket)

    def future(self, ticket: str) -> Future[Solution]:
        """The result to come, for those who must not wait in a thread (`asyncio.wrap_future`).

        Its callbacks run in the engine's threads and have to be short. Raises NotFound.
        """
        return self._desk.ticket(ticket).future

    def result(self, ticket: str, timeout_s: float | None = None) -> Solution:
        """Wait for the result and fetch it: it can be fetched once, and is kept only for a time.

        Raises what the solver raised; LimitReached, SolverFailed or Cancelled where the solve was
        ended without any answer; NotReady where the engine was closed; NotFound; and TimeoutError
        where the result was not there in time, which changes nothing.
        """
        found = self._desk.ticket(ticket)
        error = found.future.exception(timeout_s)
        self._desk.forget(found)
        if error is not None:
            raise error
        return found.future.result()

    def close(self) -> None:
        """End all workers and whatever they started. What has no result yet raises NotReady."""
        self._desk.close()
        for supervisor in self._supervisors:
            supervisor.join(_CLOSE_LIMIT_S)
        self._desk.fail_open()
