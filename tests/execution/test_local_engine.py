"""The local engine: its processes, how it keeps its workers, and what those see."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import app.errors  # noqa: F401  (its errors are in the tree too)
import models.errors  # noqa: F401  (and these)
from app.console.running import console_pools
from app.execution import slot
from app.execution.child import WorkerOptions
from app.execution.engine import Crashed, Pool
from app.execution.local import JOBS, LocalEngine, PoolOptions
from app.execution.slot import SlotOptions
from app.execution.worker import ForkServer
from app.operations.tasks import service_pools
from domain.errors import SluiceError
from tests.execution.support import (
    MARKER,
    is_alive,
    is_idle,
    marked,
    parent_of,
    pool_options,
    submit,
    wait_until,
)

NewEngine = Callable[..., LocalEngine]
BEHAVIOURS = "tests.execution.behaviours"


@pytest.fixture
def marker(monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"engine-{uuid.uuid4().hex}"
    monkeypatch.setenv(MARKER, name)
    return name


@pytest.fixture
def new_engine(marker: str) -> Iterator[NewEngine]:
    """Makes engines of one pool; none of them may leave a process."""
    engines: list[LocalEngine] = []

    def make(slots: int = 1, **options: Any) -> LocalEngine:
        engine = LocalEngine({Pool.SOLVE: pool_options(slots, **options)})
        engines.append(engine)
        if options.get("is_always_warm", True):
            wait_until(lambda: engine.capacity(Pool.SOLVE).ready == slots)
        return engine

    yield make
    for engine in engines:
        engine.close()
    assert marked(marker) == set()


def ready(engine: LocalEngine) -> int:
    return engine.capacity(Pool.SOLVE).ready


def fork_server_of(operation: int) -> int:
    """What forked the guardian of this operation process."""
    return parent_of(parent_of(operation))


class TestProcesses:
    def test_what_a_killed_guardian_guarded_is_killed_too(
        self, new_engine: NewEngine, marker: str
    ) -> None:
        engine = new_engine()
        heard = submit(engine, "forks")
        wait_until(lambda: len(marked(marker)) == 10)  # two that guard, and what is two cubed
        os.kill(parent_of(heard.pid), signal.SIGKILL)
        end = heard.end()
        assert isinstance(end, Crashed)
        assert "guards" in end.how
        wait_until(lambda: len(marked(marker)) == 3)

    def test_processes_that_a_task_has_left_are_killed(
        self, new_engine: NewEngine, marker: str
    ) -> None:
        engine = new_engine()
        before = marked(marker)
        assert submit(engine, "leaves_process").result() == "left"
        wait_until(lambda: marked(marker) == before)

    def test_nothing_survives_an_engine_whose_process_is_killed(self, marker: str) -> None:
        """Not the workers, and not the orphans of what they started."""
        script = (
            "import time\n"
            "from app.execution.engine import Pool\n"
            "from app.execution.local import LocalEngine\n"
            "from tests.execution.support import pool_options, submit\n"
            "engine = LocalEngine({Pool.SOLVE: pool_options(2)})\n"
            "submit(engine, 'stubborn_grandchild')\n"
            "submit(engine, 'forks')\n"
            "time.sleep(1000)\n"
        )
        server = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])
        try:
            # The service, its fork server, two guardians, two operations, a stubborn orphan, and
            # seven forks.
            wait_until(lambda: len(marked(marker)) >= 14)
        finally:
            server.kill()
            server.wait()
        wait_until(lambda: marked(marker) == set())

    def test_a_worker_sees_neither_sockets_nor_settings_of_the_service(
        self, new_engine: NewEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its channel is its only socket (the output is a pipe); how to solve is no secret."""
        monkeypatch.setenv("SLUICE_DATABASE_URL", "postgresql://user:secret@host/name")
        monkeypatch.setenv("SLUICE_KERNELS", "numpy")
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.set_inheritable(True)
            seen = submit(new_engine(), "sees").result()
        assert sum(name.startswith("socket:") for name in seen["files"]) == 1
        environment = seen["environment"]
        assert [name for name in environment if name.startswith("SLUICE_")] == ["SLUICE_KERNELS"]
        assert environment["OMP_NUM_THREADS"] == "1"
        assert "sluice-worker-" in environment["TMPDIR"]

    def test_workers_give_way_where_they_are_told_to(self, new_engine: NewEngine) -> None:
        """Those of a service do; the one of a command does not. None leaves a core file."""
        here = os.nice(0)
        for niceness in (0, 10):
            engine = new_engine(worker=WorkerOptions(niceness=niceness))
            seen = submit(engine, "sees").result()
            assert seen["niceness"] == min(19, here + niceness)
            assert seen["core"] == (0, 0)

    def test_the_folder_of_a_worker_goes_with_it(self, new_engine: NewEngine) -> None:
        engine = new_engine()
        folder = Path(submit(engine, "sees").result()["environment"]["TMPDIR"])
        assert folder.is_dir()
        engine.close()
        assert not folder.exists()


class TestWorkers:
    @pytest.mark.parametrize("whom", ["operation", "guardian"])
    def test_a_waiting_worker_that_is_killed_is_replaced_before_it_is_missed(
        self, new_engine: NewEngine, marker: str, whom: str
    ) -> None:
        engine = new_engine()
        pid = submit(engine, "process_id").result()
        wait_until(lambda: is_idle(engine))
        stays = {fork_server_of(pid)}
        before = marked(marker) - stays
        os.kill(pid if whom == "operation" else parent_of(pid), signal.SIGKILL)

        def is_replaced() -> bool:
            now = marked(marker)  # once: a killed process is there for a moment yet
            return stays < now and len(now) == 3 and not now & before

        wait_until(is_replaced)
        assert engine.capacity(Pool.SOLVE).deaths == {"idle": 1}

    def test_a_worker_that_does_not_take_its_task_is_replaced(
        self, new_engine: NewEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It was stopped from outside between two tasks, which is no attempt of the second."""
        monkeypatch.setattr(slot, "_ARRIVE_LIMIT_S", 0.5)
        engine = new_engine()
        pid = submit(engine, "process_id").result()
        os.kill(pid, signal.SIGSTOP)
        heard = submit(engine, "answers")
        assert heard.result() == "answer"
        assert heard.pid != pid
        assert not is_alive(pid)

    @pytest.mark.parametrize(
        "worker",
        [
            WorkerOptions(runner=f"{BEHAVIOURS}:no_such_function"),
            WorkerOptions(warm_up=f"{BEHAVIOURS}:cannot_warm_up"),
        ],
        ids=["runner", "warm-up"],
    )
    def test_workers_that_cannot_start_end_their_tasks(
        self, marker: str, worker: WorkerOptions
    ) -> None:
        engine = LocalEngine({Pool.SOLVE: pool_options(worker=worker)})
        heard = submit(engine, "answers")
        assert heard.end() == Crashed("no worker process could be started")
        assert len(heard.messages) == 1
        assert ready(engine) == 0
        engine.close()
        assert marked(marker) == set()

    def test_a_warm_up_that_ends_the_process(self, marker: str) -> None:
        """Whatever process it is called in."""
        engine = LocalEngine(
            {
                Pool.SOLVE: pool_options(
                    worker=WorkerOptions(warm_up=f"{BEHAVIOURS}:ends_in_warm_up")
                )
            }
        )
        heard = submit(engine, "answers")
        assert heard.end() == Crashed("no worker process could be started")
        engine.close()
        assert marked(marker) == set()

    def test_a_warm_up_that_hangs(
        self, marker: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Its worker is given up, and with it what should have forked it."""
        monkeypatch.setattr(slot, "_START_LIMIT_S", 1.0)
        worker = WorkerOptions(warm_up=f"{BEHAVIOURS}:hangs_in_warm_up")
        engine = LocalEngine({Pool.SOLVE: pool_options(worker=worker)})
        heard = submit(engine, "answers")
        assert heard.end() == Crashed("no worker process could be started")
        assert "did not start" in caplog.text
        engine.close()
        assert marked(marker) == set()

    def test_a_killed_fork_server_is_replaced_when_it_is_missed(
        self, new_engine: NewEngine, marker: str
    ) -> None:
        """What it has forked works on, and is killed and replaced as ever."""
        engine = new_engine()
        pid = submit(engine, "process_id").result()
        server = fork_server_of(pid)
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: not is_alive(server))
        assert submit(engine, "process_id").result() == pid
        assert isinstance(submit(engine, "exits").end(), Crashed)
        after = submit(engine, "process_id").result()
        assert fork_server_of(after) != server
        wait_until(lambda: len(marked(marker)) == 3)

    def test_engines_share_one_that_is_given(self, marker: str) -> None:
        """It is nobody's of them to close."""
        forks = ForkServer()
        engines = [LocalEngine({Pool.SOLVE: pool_options()}, fork_server=forks) for _ in range(2)]
        found = [submit(engine, "process_id").result() for engine in engines]
        assert len({fork_server_of(pid) for pid in found}) == 1
        engines[0].close()
        assert submit(engines[1], "process_id").result() == found[1]
        engines[1].close()
        assert len(marked(marker)) == 1
        forks.close()
        assert marked(marker) == set()

    def test_a_system_without_processes_left(
        self, new_engine: NewEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        engine = new_engine(is_always_warm=False)
        with monkeypatch.context() as patched:
            patched.setattr(slot, "Worker", _cannot_start)
            assert isinstance(submit(engine, "answers").end(), Crashed)
        assert submit(engine, "answers").result() == "answer"

    def test_a_defect_of_the_engine_costs_one_task(
        self, new_engine: NewEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        engine = new_engine()
        with monkeypatch.context() as patched:
            patched.setattr(slot, "TaskFrame", None)
            assert submit(engine, "answers").end() == Crashed("the engine failed")
        assert submit(engine, "answers").result() == "answer"

    def test_the_warm_up_runs_once_before_the_first_task(
        self, new_engine: NewEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("ENGINE_TEST_WARM_UPS", str(tmp_path / "warm-ups"))
        engine = new_engine(worker=WorkerOptions(warm_up=f"{BEHAVIOURS}:warm_up"))
        assert (tmp_path / "warm-ups").read_text() == "w"
        for _ in range(2):
            submit(engine, "answers").end()
        assert (tmp_path / "warm-ups").read_text() == "w"

    def test_closing_while_workers_start(self, marker: str) -> None:
        engine = LocalEngine({Pool.SOLVE: pool_options(2)})
        engine.close()
        assert marked(marker) == set()

    def test_cancel_while_the_worker_starts(self, new_engine: NewEngine) -> None:
        engine = new_engine(is_always_warm=False)
        heard = submit(engine, "spins")
        engine.cancel(*heard.key)
        heard.end()
        assert submit(engine, "answers").result() == "answer"


class TestOnDemand:
    def test_a_worker_is_started_for_a_task_and_ended_when_it_has_had_none_for_long(
        self, new_engine: NewEngine, marker: str
    ) -> None:
        engine = new_engine(2, is_always_warm=False, idle_s=0.0)
        assert (ready(engine), marked(marker)) == (0, set())
        first = submit(engine, "process_id").result()
        assert first in marked(marker)
        wait_until(lambda: ready(engine) == 0)
        wait_until(lambda: len(marked(marker)) == 1)  # what forks the next one
        assert submit(engine, "process_id").result() != first

    def test_one_after_the_other_runs_in_one_worker(self, new_engine: NewEngine) -> None:
        """However many slots there are: a warm one is taken first."""
        engine = new_engine(3, is_always_warm=False)
        found = set()
        for _ in range(4):
            found.add(submit(engine, "process_id").result())
            wait_until(lambda: is_idle(engine))
        assert (len(found), ready(engine)) == (1, 1)


class TestShares:
    def test_jobs_leave_a_slot_to_others(self, marker: str) -> None:
        """And take it up again when one of theirs has ended."""
        pools = {Pool.LONG: PoolOptions(2, SlotOptions(is_always_warm=False), left_by_jobs=1)}
        engine = LocalEngine(pools)
        try:
            jobs = [
                submit(engine, "ends_at_reports", pool=Pool.LONG, requester=JOBS) for _ in range(2)
            ]
            wait_until(lambda: jobs[0].has_started)
            client = submit(engine, "answers", pool=Pool.LONG, requester="client")
            assert client.result() == "answer"
            assert not jobs[1].has_started
            engine.cancel(*jobs[0].key)
            wait_until(lambda: jobs[1].has_started)
        finally:
            engine.close()
        assert marked(marker) == set()

    def test_the_numbers(self) -> None:
        """Neither kind may take all slots for long work, and jobs may always take one."""
        service = service_pools(solve_workers=3, long_workers=2)
        assert (service[Pool.SOLVE].slots, service[Pool.SOLVE].slot.is_always_warm) == (3, True)
        assert (service[Pool.LONG].slots, service[Pool.LONG].left_by_jobs) == (2, 1)
        for clients, expected in ((True, [1, 2, 1]), (False, [1, 2, 2])):
            engine = LocalEngine(
                service_pools(solve_workers=2, long_workers=2, has_clients=clients)
            )
            solve, long = engine.capacity(Pool.SOLVE), engine.capacity(Pool.LONG)
            engine.close()
            assert [int(solve.for_jobs == solve.slots), long.slots, long.for_jobs] == expected
        assert not service[Pool.LONG].slot.is_always_warm
        assert {pool.slot.worker.niceness for pool in service.values()} == {10}
        assert {pool.slot.worker.niceness for pool in console_pools().values()} == {0}


def _cannot_start(*_: object) -> None:
    raise OSError("Resource temporarily unavailable")


def all_error_kinds(kind: type[SluiceError] = SluiceError) -> Iterator[type[SluiceError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from all_error_kinds(child)


@pytest.mark.parametrize("kind", list(all_error_kinds()), ids=lambda kind: kind.__name__)
def test_every_error_crosses_processes(kind: type[SluiceError]) -> None:
    error = kind.__new__(kind, "detail")
    error.__dict__.update(detail="detail", field="stages.0", extra=("a", 1))
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.__dict__) == (kind, "detail", error.__dict__)
