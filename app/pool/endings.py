"""What is answered when a solve is ended from outside: the best so far, or an error saying why."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from enum import Enum, auto

from app.pool.desk import stopping
from app.pool.task import SolveTask
from app.pool.tickets import Ticket
from domain.errors import (
    Cancelled,
    MemoryLimitReached,
    SluiceError,
    SolverFailed,
    TimeLimitReached,
)
from domain.solution import Notice, Solution, Status
from domain.units import format_bytes
from models.records import JobState


class End(Enum):
    """Why a solve was ended before its solver answered."""

    TIME = auto()
    MEMORY = auto()
    CANCEL = auto()
    CRASH = auto()
    CLOSE = auto()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task ended: with an answer or an error, and in which state."""

    value: Solution | SluiceError
    state: JobState


def concluded(ticket: Ticket, end: End, *, memory_bytes: int, how: str) -> Outcome:
    """The outcome of a solve that was ended so; `how` tells of a crash.

    An answer known before counts, and says what cut its search off. What the end of the service
    cuts short has no outcome worth keeping: it can be asked again.
    """
    if end is End.CLOSE:
        return Outcome(stopping(), JobState.FAILED)
    error = _error(ticket.task, end, memory_bytes=memory_bytes, how=how)
    if ticket.incumbent is None:
        return Outcome(error, JobState.CANCELLED if end is End.CANCEL else JobState.FAILED)
    best: Solution = pickle.loads(ticket.incumbent)
    notices = (*best.notices, Notice(error.code, f"{error.detail}; this is the best answer so far"))
    solution = replace(best, status=Status.TIME_LIMIT, notices=notices)
    return Outcome(solution, JobState.CANCELLED if end is End.CANCEL else JobState.DONE)


def _error(task: SolveTask, end: End, *, memory_bytes: int, how: str) -> SluiceError:
    if end is End.TIME:
        return TimeLimitReached(f"the solve was stopped at time_limit_s {task.time_limit_s:g}")
    if end is End.MEMORY:
        return MemoryLimitReached(
            f"the solve was stopped at the memory limit of {format_bytes(memory_bytes)}"
        )
    if end is End.CANCEL:
        return Cancelled("the solve was cancelled")
    return SolverFailed(f"the process that solved has ended: {how or 'nothing is known of why'}")
