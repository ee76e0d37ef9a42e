"""The local engine against solvers that keep no promise at all."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.pool.protocol import Engine, LocalEngine, SolveTask
from domain.errors import (
    Infeasible,
    MemoryLimitReached,
    SolverFailed,
    TimeLimitReached,
)
from domain.pipeline import pipeline_of_lines
from domain.problem import Problem
from domain.solution import Status, Strategy
from tests.app.engine_support import (
    GUARD_S,
    MARKER,
    MEMORY_BYTES,
    marked,
    misbehaving_engines,
    parent_of,
    task_of,
    wait_until,
)
from tests.support.counts import count

BEYOND_LIMIT_S = 2.0  # what is promised of a solve that does not end by itself

HANGS = ("sleep", "spin", "stubborn_grandchild", "forks", "stopped")
BALLOONS = ("balloon_at_once", "balloon_slowly", "balloon_in_grandchild", "balloon_shared")
CRASHES = ("exits", "aborts", "segfaults")


@pytest.fixture
def marker(monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"engine-{uuid.uuid4().hex}"
    monkeypatch.setenv(MARKER, name)
    return name


@pytest.fixture
def new_engine(marker: str) -> Iterator[Callable[..., LocalEngine]]:
    with misbehaving_engines(marker) as make:
        yield make


class TestLimits:
    def test_solves_that_hang_or_balloon_are_stopped_while_others_go_on(
        self, new_engine: Callable[..., LocalEngine], marker: str
    ) -> None:
        """Ends within limit + 2 s, whatever it does, and leaves no process."""
        engine = new_engine(2, grace_s=1.0)
        behaviours = HANGS + BALLOONS
        for number in range(count(100)):
            behaviour = behaviours[number % len(behaviours)]
            limit_s = 0.3 if behaviour in HANGS else GUARD_S
            hostile = engine.submit(task_of(behaviour, time_limit_s=limit_s))
            future, answered = engine.future(hostile), 0
            until_s = time.monotonic() + min(limit_s, 10.0) + BEYOND_LIMIT_S
            while not future.done():
                assert time.monotonic() < until_s, behaviour
                quick = engine.submit(task_of("quick"), lane="look-ups")
                engine.result(quick, GUARD_S)
                answered += 1
            with pytest.raises(TimeLimitReached if behaviour in HANGS else MemoryLimitReached):
                engine.result(hostile)
            assert answered > 0
            assert len(marked(marker)) <= 4  # two workers of two processes each

    def test_the_limit_is_in_the_error(self, new_engine: Callable[..., LocalEngine]) -> None:
        engine = new_engine()
        with pytest.raises(TimeLimitReached, match=r"time_limit_s 0\.25") as late:
            engine.result(engine.submit(task_of("sleep", time_limit_s=0.25)), GUARD_S)
        with pytest.raises(MemoryLimitReached, match="256 MiB") as large:
            engine.result(engine.submit(task_of("balloon_at_once")), GUARD_S)
        assert (late.value.code, large.value.code) == ("time_limit", "memory_limit")

    def test_the_last_incumbent_is_the_answer(self, new_engine: Callable[..., LocalEngine]) -> None:
        """Also where the solver never lets its own interpreter run again."""
        engine = new_engine()
        ticket = engine.submit(task_of("incumbents_then_spin", time_limit_s=0.3))
        solution = engine.result(ticket, GUARD_S)
        assert solution.schedule.fragments == 4
        assert solution.status is Status.TIME_LIMIT
        assert [notice.code for notice in solution.notices] == ["time_limit"]

    def test_an_incumbent_larger_than_the_channel_arrives(
        self, new_engine: Callable[..., LocalEngine]
    ) -> None:
        engine = new_engine()
        task = task_of("large_incumbent_then_sleep", time_limit_s=2.0, message_bytes=200_000)
        assert engine.result(engine.submit(task), GUARD_S).schedule.fragments == 200_000

    def test_an_incumbent_survives_the_memory_limit(
        self, new_engine: Callable[..., LocalEngine]
    ) -> None:
        engine = new_engine()
        solution = engine.result(engine.submit(task_of("incumbent_then_balloon")), GUARD_S)
        assert solution.schedule.fragments == 2
        assert [notice.code for notice in solution.notices] == ["memory_limit"]


class TestCrashes:
    @pytest.mark.parametrize("behaviour", CRASHES)
    def test_a_crash_costs_its_own_solve_only(
        self, new_engine: Callable[..., LocalEngine], behaviour: str
    ) -> None:
        engine = new_engine(2)
        crash = engine.submit(task_of(behaviour))
        others = [engine.submit(task_of("quick")) for _ in range(6)]
        with pytest.raises(SolverFailed):
            engine.result(crash, GUARD_S)
        assert all(engine.result(other, GUARD_S).schedule.fragments == 1 for other in others)

    def test_an_incumbent_survives_a_crash(self, new_engine: Callable[..., LocalEngine]) -> None:
        engine = new_engine()
        solution = engine.result(engine.submit(task_of("incumbent_then_crash")), GUARD_S)
        assert solution.schedule.fragments == 3
        assert [notice.code for notice in solution.notices] == ["solver_failed"]

    def test_errors_of_the_tree_arrive_as_they_are(
        self, new_engine: Callable[..., LocalEngine]
    ) -> None:
        engine = new_engine()
        with pytest.raises(Infeasible, match="no cut") as caught:
            engine.result(engine.submit(task_of("infeasible")), GUARD_S)
        assert caught.value.field == "constraints"

    def test_other_exceptions_are_solver_failures_that_tell_nothing_else(
        self, new_engine: Callable[..., LocalEngine]
    ) -> None:
        engine = new_engine()
        with pytest.raises(SolverFailed) as caught:
            engine.result(engine.submit(task_of("raises")), GUARD_S)
        assert "must not see" not in caught.value.detail

    @pytest.mark.parametrize("whom", ["solver", "guardian"])
    def test_a_waiting_worker_that_is_killed_is_replaced(
        self, new_engine: Callable[..., LocalEngine], marker: str, whom: str
    ) -> None:
        engine = new_engine()
        solver = self._solver(engine)
        os.kill(solver if whom == "solver" else parent_of(solver), signal.SIGKILL)
        wait_until(lambda: solver not in marked(marker))
        assert self._solver(engine) != solver

    @pytest.mark.parametrize("whom", ["solver", "guardian"])
    def test_a_working_worker_that_is_killed_fails_its_solve(
        self, new_engine: Callable[..., LocalEngine], whom: str
    ) -> None:
        engine = new_engine()
        solver = self._solver(engine)
        ticket = engine.submit(task_of("incumbents_then_spin"))
        wait_until(lambda: engine.progress(ticket).best is not None)
        waiting = engine.submit(task_of("sleep"))
        engine.cancel(waiting)
        os.kill(solver if whom == "solver" else parent_of(solver), signal.SIGKILL)
        assert engine.result(ticket, GUARD_S).status is Status.TIME_LIMIT
        assert self._solver(engine) != solver

    def test_what_a_killed_guardian_guarded_is_killed_too(
        self, new_engine: Callable[..., LocalEngine], marker: str
    ) -> None:
        engine = new_engine()
        solver = self._solver(engine)
        ticket = engine.submit(task_of("forks"))
        wait_until(lambda: len(marked(marker)) == 9)  # the guardian, and a solver times two cubed
        os.kill(parent_of(solver), signal.SIGKILL)
        with pytest.raises(SolverFailed, match="guards"):
            engine.result(ticket, GUARD_S)
        wait_until(lambda: len(marked(marker)) == 2)

    def test_workers_that_cannot_start_fail_their_solves(self, marker: str) -> None:
        engine = LocalEngine(1, MEMORY_BYTES, runner="tests.app.engine_children:no_such_function")
        try:
            with pytest.raises(SolverFailed):
                engine.result(engine.submit(task_of("quick")), GUARD_S)
            assert engine.ready_workers == 0
        finally:
            engine.close()
        assert marked(marker) == set()

    @staticmethod
    def _solver(engine: LocalEngine) -> int:
        solution = engine.result(engine.submit(task_of("process_id")), GUARD_S)
        return int(solution.notices[0].detail)


class TestIsolation:
    def test_a_process_left_by_an_answered_solve_is_killed(
        self, new_engine: Callable[..., LocalEngine], marker: str
    ) -> None:
        engine = new_engine()
        before = marked(marker)
        engine.result(engine.submit(task_of("leaves_process")), GUARD_S)
        wait_until(lambda: marked(marker) == before)

    def test_a_worker_has_neither_sockets_nor_settings_of_the_server(
        self, new_engine: Callable[..., LocalEngine], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its two sockets (the output is a pipe) are its own; the database's address is not."""
        monkeypatch.setenv("SLUICE_DATABASE_URL", "postgresql://user:secret@host/name")
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.set_inheritable(True)
            engine = new_engine()
            solution = engine.result(engine.submit(task_of("open_files")), GUARD_S)
        files, settings = (notice.detail for notice in solution.notices)
        assert sum(name.startswith("socket:") for name in files.split("\n")) == 1
        assert settings == ""

    def test_what_a_solver_prints_disturbs_nothing(
        self, new_engine: Callable[..., LocalEngine], capfd: pytest.CaptureFixture[str]
    ) -> None:
        engine = new_engine()
        engine.result(engine.submit(task_of("chatters")), GUARD_S)
        assert capfd.readouterr() == ("", "")

    def test_an_incumbent_never_reaches_the_next_solve(
        self, new_engine: Callable[..., LocalEngine]
    ) -> None:
        engine = new_engine()
        engine.result(engine.submit(task_of("late_incumbents")), GUARD_S)
        with pytest.raises(TimeLimitReached):
            engine.result(engine.submit(task_of("sleep", time_limit_s=0.3)), GUARD_S)

    def test_nothing_survives_a_server_that_is_killed(self, marker: str) -> None:
        """Not the workers, and not the orphans of what they started."""
        script = (
            "import sys, time\n"
            "from tests.app.engine_support import LocalEngine, MEMORY_BYTES, RUNNER, task_of\n"
            "engine = LocalEngine(2, MEMORY_BYTES, runner=RUNNER)\n"
            "engine.submit(task_of('stubborn_grandchild'))\n"
            "engine.submit(task_of('forks'))\n"
            "time.sleep(1000)\n"
        )
        server = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])
        try:
            # The server, two guardians, two solvers, a stubborn orphan, and seven forks.
            wait_until(lambda: len(marked(marker)) >= 13)
        finally:
            server.kill()
            server.wait()
        wait_until(lambda: marked(marker) == set())


def test_the_real_solvers_answer_as_they_do_in_this_process() -> None:
    """Also that their libraries fit below the memory cap at rest."""
    from solvers import solve

    pipeline = pipeline_of_lines([("host", 10.0, 7.5), ("wire", 4.0, 12.0), ("host", 8.0, 9.0)])
    problem = Problem(pipeline, 65_536)
    engine: Engine = LocalEngine(1, MEMORY_BYTES)
    try:
        ticket = engine.submit(SolveTask(problem, Strategy.AUTO, 1e-6, 10.0))
        assert engine.result(ticket, GUARD_S) == solve(problem, Strategy.AUTO)
    finally:
        engine.close()
