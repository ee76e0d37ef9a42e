"""What the tests of the local engine share: tasks, engines, and a look at what is running."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.pool.protocol import LocalEngine, SolveTask
from domain.pipeline import pipeline_of_lines
from domain.problem import Problem
from domain.solution import Solution, Strategy

MIB = 2**20
MEMORY_BYTES = 256 * MIB
RUNNER = "tests.app.engine_children:solve"
GUARD_S = 30.0  # against tests that hang; nothing that works comes near
MARKER = "ENGINE_TEST_MARKER"  # handed down to every process that a worker starts


def task_of(
    behaviour: str, *, time_limit_s: float = GUARD_S, message_bytes: int = 4096
) -> SolveTask:
    pipeline = pipeline_of_lines([(behaviour, 10.0, 2.0), ("other", 5.0, 9.0)])
    return SolveTask(Problem(pipeline, message_bytes), Strategy.EXACT, 1e-6, time_limit_s)


def marked(marker: str) -> set[int]:
    """Processes, zombies aside, that carry the marker in their environment or their arguments."""
    found = set()
    for folder in filter(lambda path: path.name.isdigit(), Path("/proc").iterdir()):
        try:
            text = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
        except OSError:  # ended meanwhile, or another user's
            continue
        if marker.encode() in text and int(folder.name) != os.getpid():
            found.add(int(folder.name))
    return found


def wait_until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + GUARD_S
    while not condition():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(0.01)


def parent_of(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def fragments_of(solution: Solution | None) -> int:
    return 0 if solution is None else solution.schedule.fragments


@contextmanager
def misbehaving_engines(marker: str) -> Iterator[Callable[..., LocalEngine]]:
    """Makes engines of the solvers in engine_children; none of them may leave a process."""
    engines: list[LocalEngine] = []

    def make(workers: int = 1, *, grace_s: float = 0.2, **options: float) -> LocalEngine:
        engine = LocalEngine(
            workers,
            MEMORY_BYTES,
            grace_s=grace_s,
            runner=RUNNER,
            **options,  # type: ignore[arg-type]
        )
        engines.append(engine)
        wait_until(lambda: engine.ready_workers == workers)
        return engine

    yield make
    for engine in engines:
        engine.close()
    assert marked(marker) == set()
