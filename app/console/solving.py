"""Solving in this process while a person watches: progress, a firm end, and Ctrl-C.

The solve runs in a thread, because a solver inside native code hears neither Ctrl-C nor a limit.
When it is not waited for any longer, the best answer so far is taken, and the process has to end
without waiting for the thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from domain.errors import Cancelled, TimeLimitReached
from domain.solution import Solution, Status

if TYPE_CHECKING:
    from app.pool.protocol import SolveTask

GRACE_S = 2.0
_LOOK_S = 0.1
_THREAD_NAME = "sluice-solve"

Watch = Callable[[Solution | None, float], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A solution, and whether Ctrl-C ended the search for a better one."""

    solution: Solution
    is_interrupted: bool
    solve_ms: float


@dataclass(slots=True)
class _Run:
    """What the thread tells."""

    done: threading.Event = field(default_factory=threading.Event)
    best: Solution | None = None
    result: Solution | None = None
    failure: BaseException | None = None


def solve_watched(task: SolveTask, watch: Watch | None = None) -> Outcome:
    """Solve; `watch` is told the best so far and the seconds since the start, ten times a second.

    Raises what `solvers.solve` raises, TimeLimitReached or Cancelled where the limit or Ctrl-C came
    before any answer.
    """
    run, started_s = _Run(), time.perf_counter()
    threading.Thread(target=_solve, args=(task, run), name=_THREAD_NAME, daemon=True).start()
    is_interrupted = False
    try:
        while not run.done.wait(_LOOK_S):
            elapsed_s = time.perf_counter() - started_s
            if watch is not None:
                watch(run.best, elapsed_s)
            if elapsed_s > task.time_limit_s + GRACE_S:
                break
    except KeyboardInterrupt:
        is_interrupted = True
    solution = run.result or _best_of(run, is_interrupted=is_interrupted)
    return Outcome(solution, is_interrupted, (time.perf_counter() - started_s) * 1e3)


def _solve(task: SolveTask, run: _Run) -> None:
    def remember(better: Solution) -> None:
        run.best = better

    try:
        import solvers

        run.result = solvers.solve(
            task.problem,
            task.strategy,
            relative_gap=task.relative_gap,
            time_limit_s=task.time_limit_s,
            static_bytes=task.static_bytes,
            on_incumbent=remember,
        )
    except BaseException as failure:  # handed to the thread that waits
        run.failure = failure
    finally:
        run.done.set()


def _best_of(run: _Run, *, is_interrupted: bool) -> Solution:
    if run.failure is not None:
        raise run.failure
    if run.best is not None:
        is_proven = run.best.status is Status.OPTIMAL
        return run.best if is_proven else replace(run.best, status=Status.TIME_LIMIT)
    if is_interrupted:
        raise Cancelled("interrupted before there was an answer")
    raise TimeLimitReached("the time limit passed before there was an answer", field="time_limit_s")


def is_still_solving() -> bool:
    """Whether a solve that is no longer waited for goes on.

    The process then has to end by `os._exit`: a library must not be torn down under native code.
    """
    return any(thread.name == _THREAD_NAME for thread in threading.enumerate())
