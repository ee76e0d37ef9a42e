"""The local engine against solvers that keep no promise at all."""

from __future__ import annotations

import asyncio
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

import app.errors
import models.errors  # noqa: F401  (its errors are in the tree too)
from app.jobs import Engine, LocalEngine, SolveTask
from domain.errors import (
    Cancelled,
    Infeasible,
    MemoryLimitReached,
    NotFound,
    SluiceError,
    SolverFailed,
    TimeLimitReached,
)
from domain.pipeline import pipeline_of_lines
from domain.problem import Problem
from domain.solution import Solution, Status, Strategy
from models.records import JobState
from tests.support.counts import count

MIB = 2**20
MEMORY_BYTES = 256 * MIB
RUNNER = "tests.app.engine_children:solve"
GUARD_S = 30.0  # against tests that hang; nothing that works comes near
BEYOND_LIMIT_S = 2.0  # what is promised of a solve that does not end by itself

HANGS = ("sleep", "spin", "stubborn_grandchild", "forks", "stopped")
BALLOONS = ("balloon_at_once", "balloon_slowly", "balloon_in_grandchild", "balloon_shared")
CRASHES = ("exits", "aborts", "segfaults")


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


@pytest.fixture
def marker(monkeypatch: pytest.MonkeyPatch) -> str:
    """Handed down to every process that a worker starts."""
    name = f"engine-{uuid.uuid4().hex}"
    monkeypatch.setenv("ENGINE_TEST_MARKER", name)
    return name


@pytest.fixture
def new_engine(marker: str) -> Iterator[Callable[..., LocalEngine]]:
    """Makes engines of misbehaving solvers; at the end none of their processes may be left."""
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
        task = task_of("large_incumbent_then_sleep", time_limit_s=0.6, message_bytes=200_000)
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


def parent_of(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


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
            "from tests.app.test_engine import LocalEngine, MEMORY_BYTES, RUNNER, task_of\n"
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


class TestCancel:
    def test_a_waiting_solve(self, new_engine: Callable[..., LocalEngine]) -> None:
        engine = new_engine()
        running, waiting = (engine.submit(task_of("sleep")) for _ in range(2))
        wait_until(lambda: engine.progress(running).state is JobState.RUNNING)
        engine.cancel(waiting)
        assert engine.progress(waiting).state is JobState.CANCELLED
        with pytest.raises(Cancelled):
            engine.result(waiting, GUARD_S)
        assert engine.progress(running).state is JobState.RUNNING

    def test_a_running_solve_without_an_answer(
        self, new_engine: Callable[..., LocalEngine]
    ) -> None:
        engine = new_engine()
        ticket = engine.submit(task_of("spin"))
        wait_until(lambda: engine.progress(ticket).state is JobState.RUNNING)
        engine.cancel(ticket)
        with pytest.raises(Cancelled):
            engine.result(ticket, GUARD_S)
        assert engine.result(engine.submit(task_of("quick")), GUARD_S).schedule.fragments == 1

    def test_a_running_solve_keeps_its_best(self, new_engine: Callable[..., LocalEngine]) -> None:
        engine = new_engine()
        ticket = engine.submit(task_of("incumbents_then_spin"))
        wait_until(lambda: fragments_of(engine.progress(ticket).best) == 4)
        engine.cancel(ticket)
        future = engine.future(ticket)
        assert future.result(GUARD_S).status is Status.TIME_LIMIT
        assert [notice.code for notice in future.result().notices] == ["cancelled"]
        assert engine.progress(ticket).state is JobState.CANCELLED

    def test_solves_that_are_just_finishing(self, new_engine: Callable[..., LocalEngine]) -> None:
        """Either the answer or the cancellation, and never neither."""
        engine = new_engine(2)
        for _ in range(count(200)):
            ticket = engine.submit(task_of("quick"))
            engine.cancel(ticket)
            try:
                assert engine.result(ticket, GUARD_S).schedule.fragments == 1
            except Cancelled:
                continue

    def test_solves_that_have_ended_or_never_were(
        self, new_engine: Callable[..., LocalEngine]
    ) -> None:
        engine = new_engine()
        ticket = engine.submit(task_of("quick"))
        engine.future(ticket).result(GUARD_S)
        engine.cancel(ticket)
        engine.cancel("no such ticket")
        assert engine.progress(ticket).state is JobState.DONE
        assert engine.result(ticket).schedule.fragments == 1


def fragments_of(solution: Solution | None) -> int:
    return 0 if solution is None else solution.schedule.fragments


class TestTickets:
    def test_progress_from_submission_to_result(
        self, new_engine: Callable[..., LocalEngine]
    ) -> None:
        engine = new_engine()
        first = engine.submit(task_of("incumbents_then_spin", time_limit_s=0.4))
        second = engine.submit(task_of("quick"))
        queued = engine.progress(second)
        assert (queued.state, queued.best, queued.elapsed_s) == (JobState.QUEUED, None, 0.0)
        wait_until(lambda: fragments_of(engine.progress(first).best) == 4)
        engine.future(second).result(GUARD_S)
        done = engine.progress(first)
        assert done.state is JobState.DONE
        assert done.elapsed_s >= 0.4
        assert done.best == engine.result(first)

    def test_a_result_is_fetched_once(self, new_engine: Callable[..., LocalEngine]) -> None:
        engine = new_engine()
        ticket = engine.submit(task_of("quick"))
        engine.result(ticket, GUARD_S)
        with pytest.raises(NotFound):
            engine.result(ticket)
        with pytest.raises(NotFound):
            engine.progress(ticket)

    def test_waiting_for_a_result_may_end_without_it(
        self, new_engine: Callable[..., LocalEngine]
    ) -> None:
        engine = new_engine()
        ticket = engine.submit(task_of("sleep", time_limit_s=0.5))
        with pytest.raises(TimeoutError):
            engine.result(ticket, 0.01)
        with pytest.raises(TimeLimitReached):
            engine.result(ticket, GUARD_S)

    def test_results_that_nobody_fetches_are_dropped(
        self, new_engine: Callable[..., LocalEngine]
    ) -> None:
        few = new_engine(most_ended=2)
        tickets = [few.submit(task_of("quick")) for _ in range(3)]
        few.future(tickets[-1]).result(GUARD_S)
        with pytest.raises(NotFound):
            few.result(tickets[0])
        assert few.result(tickets[1]).schedule.fragments == 1

    def test_results_expire(self, new_engine: Callable[..., LocalEngine]) -> None:
        engine = new_engine(keep_s=0.0)
        first = engine.submit(task_of("quick"))
        engine.future(first).result(GUARD_S)
        engine.result(engine.submit(task_of("quick")), GUARD_S)
        with pytest.raises(NotFound):
            engine.progress(first)

    def test_too_many_waiting_solves_are_refused(
        self, new_engine: Callable[..., LocalEngine]
    ) -> None:
        engine = new_engine(most_waiting=2)
        running = engine.submit(task_of("sleep"))
        wait_until(lambda: engine.progress(running).state is JobState.RUNNING)
        waiting = [engine.submit(task_of("quick")) for _ in range(2)]
        with pytest.raises(app.errors.Overloaded):
            engine.submit(task_of("quick"))
        engine.cancel(waiting[0])
        engine.submit(task_of("quick"))

    def test_lanes_take_turns(self, new_engine: Callable[..., LocalEngine]) -> None:
        """A flood in one lane delays another lane by one solve."""
        engine = new_engine()
        running = engine.submit(task_of("sleep"))
        wait_until(lambda: engine.progress(running).state is JobState.RUNNING)
        order: list[str] = []
        for lane in ("flood",) * 5 + ("single",):
            future = engine.future(engine.submit(task_of("quick"), lane=lane))
            future.add_done_callback(lambda _, lane=lane: order.append(lane))  # type: ignore[misc]
        engine.cancel(running)
        future.result(GUARD_S)
        wait_until(lambda: len(order) == 6)
        assert order.index("single") == 1

    def test_results_can_be_awaited(self, new_engine: Callable[..., LocalEngine]) -> None:
        """Ending the wait does not end the solve."""
        engine = new_engine()

        async def scene() -> int:
            slow = engine.submit(task_of("incumbents_then_spin", time_limit_s=0.3))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.wrap_future(engine.future(slow)), 0.01)
            return (await asyncio.wrap_future(engine.future(slow))).schedule.fragments

        assert asyncio.run(scene()) == 4


class TestClose:
    def test_everything_open_is_told_to_ask_again(
        self, new_engine: Callable[..., LocalEngine]
    ) -> None:
        engine = new_engine()
        running, waiting = (engine.submit(task_of("incumbents_then_spin")) for _ in range(2))
        wait_until(lambda: engine.progress(running).best is not None)
        engine.close()
        for ticket in (running, waiting):
            with pytest.raises(app.errors.NotReady):
                engine.result(ticket, GUARD_S)
        with pytest.raises(app.errors.NotReady):
            engine.submit(task_of("quick"))

    def test_closing_twice_and_closing_while_workers_start(self, marker: str) -> None:
        engine = LocalEngine(2, MEMORY_BYTES, runner=RUNNER)
        engine.close()
        engine.close()
        assert marked(marker) == set()


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


def all_error_kinds(kind: type[SluiceError] = SluiceError) -> Iterator[type[SluiceError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from all_error_kinds(child)


@pytest.mark.parametrize("kind", list(all_error_kinds()), ids=lambda kind: kind.__name__)
def test_every_error_crosses_processes(kind: type[SluiceError]) -> None:
    import pickle

    error = kind.__new__(kind, "detail")
    error.__dict__.update(detail="detail", field="stages.0", extra=("a", 1))
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.__dict__) == (kind, "detail", error.__dict__)
