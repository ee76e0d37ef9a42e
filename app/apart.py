"""Runs one piece of work in a process of its own, with a memory cap and a time limit.

Started as `python -m app.apart <parent> <memory bytes> <task> <outcome> <progress>`, the last three
being descriptors of files without names: the child unpickles its task from the first, leaves its
outcome in the second, and tells on the way how far it is in the third.
The task comes from this program alone, and so does the outcome, whose length is checked all the
same: the text that the child has read is anybody's.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import IO, Generic, Protocol, TypeAlias, TypeVar, cast

from app.pool.child import NICENESS
from app.pool.processes import die_with_parent, environment_for_children, give_way
from app.progress_file import Steps, read_steps, write_steps
from app.settings import CHECKOUT, MIB
from domain.errors import (
    Cancelled,
    MemoryLimitReached,
    SluiceError,
    SolverFailed,
    TimeLimitReached,
)

TIME_LIMIT_S = 120.0
MAX_OUTCOME_BYTES = 64 * MIB
_LOOK_S = 0.1  # between looks at how far the child is
_OOM_SCORE = 500  # where the machine runs out of memory, it is this process that goes
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Out_co = TypeVar("Out_co", covariant=True)
T = TypeVar("T")
ReportSteps: TypeAlias = Callable[[int, int], None]  # steps done, of all
Watch: TypeAlias = Callable[[Steps | None], None]  # what it raises ends the child


class Task(Protocol[Out_co]):
    """Work that can be pickled. `noun` names it in a refusal."""

    @property
    def noun(self) -> str:
        """What it is called in a refusal."""

    def prepare(self) -> None:
        """Load libraries; the memory cap holds from here on."""

    def run(self, report: ReportSteps, /) -> Out_co:
        """Do the work, and report how far it is where that can be said. Raises SluiceError."""


class Child(Protocol[Out_co]):
    """A piece of work in a process of its own, for whoever waits."""

    def run(self, watch: Watch = ...) -> Out_co:
        """The outcome; `watch` is called while it runs. Raises SluiceError."""

    def cancel(self) -> None:
        """Nobody waits any more: end it. May be called by another thread."""


def unreported(done: int, total: int) -> None:
    """For work in this process that nobody asks how far it is."""


def unwatched(steps: Steps | None) -> None:
    """For whoever does not ask how far it is."""


class Apart(Generic[T]):
    """One child process. `run` blocks; `cancel` may be called by another thread, at any time."""

    def __init__(
        self, task: Task[T], *, memory_bytes: int, descriptors: Sequence[int] = ()
    ) -> None:
        self._task = task
        self._memory_bytes = memory_bytes
        self._descriptors = tuple(descriptors)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_cancelled = False

    def run(self, watch: Watch = unwatched) -> T:
        """The outcome. Raises what the task does, Cancelled, LimitReached and SolverFailed.

        `watch` is told every tenth of a second how far it is; what it raises ends the child.
        """
        with _unnamed() as asked, _unnamed() as told, _unnamed() as progress:
            pickle.dump(self._task, asked)
            asked.seek(0)
            with self._started(asked, told, progress) as process:
                code = self._watched(process, progress, watch)
            return self._outcome(code, told)

    def cancel(self) -> None:
        """Kill the child; `run` raises Cancelled. Nothing happens once it has ended."""
        with self._lock:
            self._is_cancelled = True
            if self._process is not None:
                self._process.kill()

    def _started(self, *files: IO[bytes]) -> subprocess.Popen[bytes]:
        ends = [file.fileno() for file in files]
        given = (self._memory_bytes, *ends)
        with self._lock:
            if self._is_cancelled:
                raise Cancelled("the client went away")
            self._process = subprocess.Popen(
                [sys.executable, "-m", "app.apart", *map(str, (os.getpid(), *given))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(*ends, *self._descriptors),
                cwd=CHECKOUT,
                env=_environment(),
            )
            return self._process

    def _watched(self, process: subprocess.Popen[bytes], progress: IO[bytes], watch: Watch) -> int:
        """The child's exit code. Nothing leaves this while the child runs."""
        end_s = time.monotonic() + TIME_LIMIT_S
        try:
            while (code := _ended(process, until_s=end_s)) is None:
                if time.monotonic() >= end_s:
                    raise TimeLimitReached(
                        f"the {self._task.noun} took longer than {TIME_LIMIT_S:g} s"
                    )
                watch(read_steps(progress.fileno()))
            watch(read_steps(progress.fileno()))  # what it came to since
        except BaseException:
            process.kill()
            raise
        return code

    def _outcome(self, code: int, told: IO[bytes]) -> T:
        if self._is_cancelled:
            raise Cancelled("the client went away")
        length = os.fstat(told.fileno()).st_size
        if code != 0 or not 0 < length <= MAX_OUTCOME_BYTES:
            raise SolverFailed(f"the process of the {self._task.noun} ended unexpectedly")
        told.seek(0)
        outcome = pickle.loads(told.read(MAX_OUTCOME_BYTES))
        if isinstance(outcome, SluiceError):
            raise outcome
        return cast(T, outcome)


def _ended(process: subprocess.Popen[bytes], *, until_s: float) -> int | None:
    """Its exit code, or None at the next moment to look."""
    try:
        return process.wait(max(0.0, min(_LOOK_S, until_s - time.monotonic())))
    except subprocess.TimeoutExpired:
        return None


def _unnamed() -> IO[bytes]:
    return tempfile.TemporaryFile()


def _environment() -> dict[str, str]:
    return {**environment_for_children(), **dict.fromkeys(_ONE_THREAD, "1")}


# --- the child ------------------------------------------------------------------------------------


def _main() -> None:
    parent, memory_bytes, asked, told, progress = map(int, sys.argv[1:])
    die_with_parent()
    if os.getppid() != parent:
        sys.exit("the service has ended already")
    os.setsid()
    give_way(NICENESS)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write that is too long fails instead
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_OUTCOME_BYTES, MAX_OUTCOME_BYTES))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(str(_OOM_SCORE))
    with open(asked, "rb") as source:
        task = pickle.load(source)
    outcome = _result(task, memory_bytes, partial(write_steps, progress))
    with open(told, "wb") as target:
        pickle.dump(outcome, target)


def _result(task: Task[object], memory_bytes: int, report: ReportSteps) -> object:
    task.prepare()
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    try:
        return task.run(report)
    except SluiceError as refusal:
        return refusal
    except MemoryError:
        pass  # said outside, where what the work still holds has been given back
    return MemoryLimitReached(f"the {task.noun} needed more than {memory_bytes} bytes of memory")


if __name__ == "__main__":
    _main()
