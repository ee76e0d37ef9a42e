"""A job that this process runs: its tasks, its progress, and the history of its best result."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from app.execution.engine import (
    Best,
    Crashed,
    Done,
    End,
    Event,
    Lost,
    Sink,
    Started,
    Steps,
    Stopped,
    Task,
)
from app.execution.local import JOBS
from app.jobs.ledger import LOST_TOO_OFTEN
from app.operations.operation import Divisible, Operation
from app.operations.tasks import result_of, task_of
from app.questions.source import FileWork
from app.schemas.base import dump_json, problem_out
from domain.errors import SluiceError
from models.records import Blame, JobChanges, JobRecord

if TYPE_CHECKING:
    pass


MAX_POINTS = 200


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """What was known from this time of the job on."""

    elapsed_s: float
    best_latency_us: float
    lower_bound_us: float


@dataclass(slots=True)
class JobHistory:
    """The points of one run, in order of time, never worse than those before; at most MAX_POINTS.

    Where there are more every second one goes, the first and the last aside.
    """

    points: list[HistoryPoint] = field(default_factory=list)

    def add(self, best_us: float, bound_us: float, *, elapsed_s: float) -> bool:
        """Return whether this is better than what was known, which then is the next point."""
        if self.points:
            last = self.points[-1]
            best_us, bound_us = (
                min(best_us, last.best_latency_us),
                max(bound_us, last.lower_bound_us),
            )
            if (best_us, bound_us) == (last.best_latency_us, last.lower_bound_us):
                return False
        self.points.append(HistoryPoint(round(max(0.0, elapsed_s), 3), best_us, bound_us))
        if len(self.points) > MAX_POINTS:
            self.points = [*self.points[:-1:2], self.points[-1]]
        return True

    def as_json(self) -> bytes:
        """Return it as a job's row keeps it: a list of JobPointOut."""
        return dump_json(self.points)


# --- a running job: its tasks, its progress, and what is to be written ----------------------------


Files: TypeAlias = tuple[tuple[FileWork[Any], Any], ...]
OnEnd = Callable[["RunningJob", "Part", End], None]


@dataclass(slots=True, eq=False)
class Part:
    """An operation that is a task of its own: the whole of a job, or what was split from it."""

    number: int
    operation: Operation[Any]
    task: Task
    best: bytes | None = None
    steps: Steps | None = None

    def result(self, end: End) -> Any:
        """Return its result, or its best so far. Raises what `result_of` does."""
        return result_of(self.operation, end, best=self.best, limits=self.task.limits)


class RunningJob:
    """For the runner's thread. `is_cancelled` once its end was requested; `files` are what workers
    have read for it before.
    """

    def __init__(
        self,
        record: JobRecord,
        operation: Operation[Any],
        files: Files = (),
        *,
        memory_bytes: int,
    ) -> None:
        self.record = record
        self.operation = operation
        self.files = files
        self.is_cancelled = False
        self.is_given_up = False  # its tasks were cancelled, and not because somebody asked
        self._began_s = time.monotonic()
        self._history = JobHistory()
        self._shown: JobChanges = {}
        self._unshown: JobChanges = {}
        self._best: bytes | None = None
        self._memory_bytes = memory_bytes
        self._results: dict[int, Any] = {}
        self._result: Any = None
        self._parts: list[Part] = []
        for part in _parts_of(operation):
            self._add(part)
        # Unless it has no parts but itself, one more puts them together.
        self._whole = self._parts[0] if self._parts[0].operation is operation else None
        self._to_submit = deque(self._parts)
        self.in_flight: set[Part] = set()

    # --- its tasks --------------------------------------------------------------------------------

    @property
    def tasks_in_flight(self) -> tuple[Task, ...]:
        """Return what the engine was given and has not ended. Any thread may ask."""
        return tuple(part.task for part in self.in_flight.copy())

    def next_part(self) -> Part | None:
        """Return a part that is to be submitted, which then counts as in flight."""
        if not self._to_submit:
            return None
        part = self._to_submit.popleft()
        self.in_flight.add(part)
        return part

    def put_back(self, part: Part) -> None:
        """Take it as not submitted."""
        self.in_flight.discard(part)
        self._to_submit.appendleft(part)

    def sink(self, part: Part, on_end: OnEnd) -> Sink:
        """Return the receiver of a part's events, in the engine's threads."""

        def take(message: Event | End) -> None:
            if isinstance(message, Best):
                part.best = message.result
            elif isinstance(message, Steps):
                part.steps = message
            elif not isinstance(message, Started):
                on_end(self, part, message)

        return take

    def ended(self, part: Part, result: Any) -> bool:
        """Keep a part's result; return whether that of the whole is known. Else there is more."""
        self.in_flight.discard(part)
        self._results[part.number] = self._result = result
        if part is self._whole:
            return True
        if len(self._results) < len(self._parts):
            return False
        results = [self._results[one.number] for one in self._parts]
        joined = cast(Divisible[Any, Any], self.operation).join(results)
        self._result = joined.run_here()
        if self._result is not None:
            return True
        self._whole = self._add(joined)
        self._to_submit.append(self._whole)
        return False

    def stop_submitting(self) -> None:
        """Leave what was not submitted yet."""
        self._to_submit.clear()

    def result(self) -> Any:
        """Return the result of the whole, once it is known."""
        return self._result

    def _add(self, operation: Operation[Any]) -> Part:
        number = len(self._parts)
        part = Part(number, operation, self._task(number, operation))
        self._parts.append(part)
        return part

    # --- what is shown of it ----------------------------------------------------------------------

    def progress(self) -> JobChanges:
        """Return what was reported and is not written yet."""
        heard: dict[str, Any] = {**self._unshown, **self._steps(), **self._newer_best()}
        new = {key: value for key, value in heard.items() if self._shown.get(key) != value}
        self._unshown = cast(JobChanges, new)
        return self._unshown

    def has_shown(self) -> None:
        """Count what `progress` returned as written."""
        self._shown = {**self._shown, **self._unshown}
        self._unshown = {}

    def last_changes(self, result: Any, document: bytes) -> JobChanges:
        """Return what is written with its end."""
        changes = self._steps()
        if "steps_total" in changes:
            changes["steps_done"] = changes["steps_total"]
        best = self.operation.best_so_far(result)
        if best is None:
            return {**changes, "best": document}
        self._history.add(best.latency_us, best.lower_bound_us, elapsed_s=self._elapsed_s)
        return {
            **changes,
            "best": best.document,
            "best_latency_us": best.latency_us,
            "lower_bound_us": best.lower_bound_us,
            "history": self._history.as_json(),
        }

    def _steps(self) -> JobChanges:
        if len(self._parts) > 1:
            return {"steps_done": len(self._results), "steps_total": len(self._parts)}
        steps = self._parts[0].steps
        return {"steps_done": steps.done, "steps_total": steps.total} if steps else {}

    def _newer_best(self) -> JobChanges:
        """Return the best so far of a job with one part, where it is better than the last one."""
        part = self._parts[0]
        if len(self._parts) > 1 or part.best is None or part.best is self._best:
            return {}
        self._best = part.best
        best = self.operation.best_so_far(part.result(Done(part.best)))
        if best is None or not self._history.add(
            best.latency_us, best.lower_bound_us, elapsed_s=self._elapsed_s
        ):
            return {}
        return {
            "best": best.document,
            "best_latency_us": best.latency_us,
            "lower_bound_us": best.lower_bound_us,
            "history": self._history.as_json(),
        }

    @property
    def _elapsed_s(self) -> float:
        return time.monotonic() - self._began_s

    def _task(self, number: int, part: Operation[Any]) -> Task:
        return task_of(
            part,
            id=f"{self.record.id}.{len(self.files)}.{number}",
            claim=self.record.claim,
            memory_bytes=self._memory_bytes,
            requester=JOBS,
        )


def is_divisible(operation: Operation[Any]) -> bool:
    """Return whether an operation has parts."""
    return hasattr(operation, "split")


def _parts_of(operation: Operation[Any]) -> Sequence[Operation[Any]]:
    if is_divisible(operation):
        return cast(Divisible[Any, Any], operation).split() or (operation,)
    return (operation,)


# --- what an end means for a job ------------------------------------------------------------------


def blame_of(end: End, job: RunningJob) -> Blame | None:
    """Return what counts against a job that is to be given back; None where this is its end."""
    if isinstance(end, Stopped) and (end.is_closing or job.is_given_up):
        return Blame.NONE
    if isinstance(end, Lost):
        return Blame.LOSS if end.was_started else Blame.NONE
    if isinstance(end, Crashed) and not job.is_cancelled:
        return Blame.CRASH
    return None


def crash_error(job: RunningJob, part: Part | None, end: End) -> bytes:
    """Return the error of a job that is given back for the last time."""
    if part is None or not isinstance(end, Crashed):
        return LOST_TOO_OFTEN
    try:
        part.best = None  # the error is asked for
        part.result(end)
    except SluiceError as error:
        return problem_of(error)
    raise AssertionError("a crash without a best result has an error")


def problem_of(error: SluiceError) -> bytes:
    """Return the problem document of an error, as a job keeps it."""
    return dump_json(problem_out(error))
