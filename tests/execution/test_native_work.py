"""Limits around the real solvers while they are deep in native code, where no one asks Python."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.execution.child import WorkerOptions
from app.execution.engine import LimitExceeded, Pool, Stopped
from app.execution.local import LocalEngine
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.problem import Problem
from domain.solution import Solution, Status, Strategy
from tests.execution.support import GUARD_S, MEMORY_BYTES, MIB, pool_options, submit, wait_until
from tests.support.engines import shared_fork_server


def heavy() -> Problem:
    """64 stages next to each other in speed: some 100 000 fragments, gigabytes where all wait."""
    draw = random.Random(3)
    rows = [(str(j), draw.uniform(1e-4, 1e-3), draw.uniform(1.0, 1.05)) for j in range(64)]
    return Problem(pipeline_of_lines(rows), 2**30)


def light() -> Problem:
    return Problem(Pipeline(heavy().pipeline.stages[:3]), 4096)


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    worker = WorkerOptions(warm_up="solvers:warm_up", niceness=0)
    engine = LocalEngine(
        {Pool.SOLVE: pool_options(worker=worker)}, fork_server=shared_fork_server()
    )
    yield engine
    engine.close()


def admissible(solution: Any) -> Solution:
    """An answer to the heavy problem that says how far it is."""
    assert isinstance(solution, Solution)
    assert heavy().admits(solution.schedule.fragment_bytes)
    assert 0.0 < solution.lower_bound_us <= solution.latency_us
    return solution


def test_a_search_that_is_cut_off_leaves_its_best_and_says_how_far_it_is(
    engine: LocalEngine,
) -> None:
    """In the middle of an iteration; and the next task is answered as ever."""
    memory_bytes = MEMORY_BYTES + 256 * MIB
    heard = submit(engine, "solves", heavy(), 1e-9, GUARD_S, memory_bytes=memory_bytes)
    wait_until(lambda: heard.best is not None and heard.best.relative_gap < 0.01)
    engine.cancel(*heard.key)
    assert heard.end() == Stopped()
    assert admissible(heard.best).relative_gap < 0.01
    after = submit(engine, "solves", light(), 1e-6, 10.0)
    assert after.result().status is not Status.TIME_LIMIT


def test_a_search_that_ends_at_its_own_limit_answers(engine: LocalEngine) -> None:
    memory_bytes = MEMORY_BYTES + 256 * MIB
    heard = submit(engine, "solves", heavy(), 1e-9, 1.0, memory_bytes=memory_bytes)
    solution = admissible(heard.result())
    assert solution.status is Status.TIME_LIMIT
    assert solution == heard.best or solution.relative_gap <= heard.best.relative_gap


def test_memory_that_is_not_there_costs_closeness_and_not_the_answer(engine: LocalEngine) -> None:
    """A kernel that is refused its arrays leaves the best so far, with its true gap."""
    heard = submit(engine, "solves", heavy(), 1e-9, 2.0, time_s=3.0)
    end = heard.end()
    admissible(heard.best if isinstance(end, LimitExceeded) else heard.result())


def test_the_real_solvers_answer_as_they_do_in_this_process(engine: LocalEngine) -> None:
    """Also that their libraries fit below the memory cap at rest."""
    from solvers import solve

    pipeline = pipeline_of_lines([("host", 10.0, 7.5), ("wire", 4.0, 12.0), ("host", 8.0, 9.0)])
    problem = Problem(pipeline, 65_536)
    found = submit(engine, "solves", problem, 1e-6, 10.0).result()
    assert found == solve(problem, Strategy.AUTO)


def test_a_warm_up_starts_no_thread() -> None:
    """It is called in what forks the workers; a fork takes one thread along."""
    code = (
        "import os, sys\n"
        "from app.execution.operation_process import named\n"
        "from app.operations.tasks import SOLVE_WARM_UP\n"
        "named(SOLVE_WARM_UP)()\n"
        "print(len(os.listdir('/proc/self/task')))\n"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1"]
