"""What every engine does, and what every engine does whose tasks run in processes."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.execution.engine import (
    Best,
    Done,
    Engine,
    Event,
    Limit,
    LimitExceeded,
    Pool,
    Refused,
    Started,
    Steps,
    Stopped,
)
from domain.errors import Infeasible, NotReady, Overloaded, SolverFailed
from tests.execution.behaviours import BEHAVIOURS
from tests.execution.support import (
    GUARD_S,
    MIB,
    Heard,
    is_idle,
    open_file,
    submit,
    task_of,
    wait_until,
)
from tests.support.counts import count

NewEngine = Callable[..., Engine]


class EngineContract:
    """Rules of the protocol, for the engines that a subclass makes.

    Its fixture `new_engine`, of the scope of a class, gives a function that makes engines (slots,
    max_waiting=, max_of_requester=), and closes them.
    """

    @pytest.fixture(scope="class")
    @classmethod
    def shared(cls, new_engine: NewEngine) -> Engine:
        """One engine of one slot, for tests that leave it as it was."""
        return new_engine()

    @pytest.fixture
    def engine(self, shared: Engine) -> Engine:
        wait_until(lambda: is_idle(shared))
        return shared

    # --- results and errors

    @pytest.mark.parametrize("result", [None, ("fine", 1.5), {"a": [1, 2, 3]}, b"\0" * 100])
    def test_a_result_is_that_of_a_run_in_this_process(
        self, engine: Engine, result: object
    ) -> None:
        end = submit(engine, "answers", result).end()
        here = BEHAVIOURS["answers"](None, result)
        assert end == Done(pickle.dumps(here, pickle.HIGHEST_PROTOCOL))

    def test_errors_of_the_tree_arrive_as_they_are(self, engine: Engine) -> None:
        end = submit(engine, "refuses").end()
        assert isinstance(end, Refused)
        error = pickle.loads(end.error)
        assert (type(error), str(error), error.field) == (
            Infeasible,
            "no fragmentation",
            "constraints",
        )

    @pytest.mark.parametrize("behaviour", ["raises", "unpicklable"])
    def test_other_exceptions_are_failures_that_tell_nothing_else(
        self, engine: Engine, behaviour: str
    ) -> None:
        end = submit(engine, behaviour).end()
        assert isinstance(end, Refused)
        error = pickle.loads(end.error)
        assert isinstance(error, SolverFailed)
        assert "must not see" not in error.detail

    def test_a_long_request_and_a_long_result(self, engine: Engine) -> None:
        assert submit(engine, "measures", b"x" * 8 * MIB).result() == 8 * MIB
        heard = submit(engine, "fills", 64 * MIB, result_bytes=65 * MIB, memory_bytes=1024 * MIB)
        assert heard.result() == b"x" * 64 * MIB

    def test_a_result_that_is_too_long_is_none(self, engine: Engine) -> None:
        end = submit(engine, "fills", 4 * MIB, result_bytes=MIB).end()
        assert end == LimitExceeded(Limit.RESULT)
        assert submit(engine, "answers").result() == "answer"

    # --- events

    def test_started_comes_first_and_the_end_last(self, engine: Engine) -> None:
        heard = submit(engine, "reports", 3)
        heard.end()
        submit(engine, "answers").end()  # what is late would be here by now
        kinds = [type(message) for message in heard.messages]
        assert kinds[0] is Started
        assert kinds[-2:] == [Steps, Done]
        assert kinds.count(Started) == kinds.count(Done) == 1
        assert set(kinds) == {Started, Steps, Best, Done}

    def test_a_flood_of_events_blocks_nobody(self, new_engine: NewEngine) -> None:
        """Steps may be left out of it, but not the last of them, and the order stays."""
        engine = new_engine(2)
        flood, beside = submit(engine, "reports", 5000), 0
        while not flood.has_ended:
            submit(engine, "answers").result()
            beside += 1
        assert beside > 0
        assert flood.result() == flood.best == 5000
        assert flood.steps == sorted(flood.steps)
        assert flood.steps[-1] == (5000, 5000)

    def test_a_slow_sink_delays_its_own_task_alone(self, new_engine: NewEngine) -> None:
        engine, gate = new_engine(2), threading.Event()
        slow = Heard()

        def sink(message: object) -> None:
            assert gate.wait(GUARD_S)
            slow(message)  # type: ignore[arg-type]

        engine.submit(task_of("reports", 5), sink)
        assert submit(engine, "answers").result() == "answer"
        gate.set()
        assert slow.result() == 5

    def test_a_sink_that_fails_hurts_nobody(self, engine: Engine) -> None:
        def sink(_: object) -> None:
            raise RuntimeError("a defect of whoever listens")

        engine.submit(task_of("reports", 5), sink)
        assert submit(engine, "answers").result() == "answer"

    def test_sinks_are_called_by_the_engine(self, engine: Engine) -> None:
        """Whoever submits or cancels may hold a lock that the sink wants."""
        running = submit(engine, "ends_at_reports")
        waiting = submit(engine, "answers")
        engine.cancel(*waiting.key)
        engine.cancel(*running.key)
        for heard in (running, waiting):
            heard.end()
            assert threading.current_thread().name not in heard.threads

    def test_reports_of_several_threads_arrive_one_by_one(self, engine: Engine) -> None:
        heard = submit(engine, "reports_in_threads", 50)
        assert heard.result() == 50
        found = [pickle.loads(one.result) for one in heard.events if isinstance(one, Best)]
        assert sorted(found) == sorted(list(range(50)) * 4)

    def test_what_a_thread_reports_after_the_end_reaches_nobody(self, engine: Engine) -> None:
        late = submit(engine, "leaves_threads")
        assert late.result() == "left"
        heard = submit(engine, "ends_at_reports", time_s=0.3)
        assert heard.end() == LimitExceeded(Limit.TIME)
        assert heard.best is None
        assert isinstance(late.messages[-1], Done)

    # --- once

    def test_the_same_claim_runs_once(self, engine: Engine, tmp_path: Path) -> None:
        task = task_of("appends", str(tmp_path / "runs"), id="the same")
        first, second = Heard(), Heard()
        blocked = submit(engine, "ends_at_reports")
        engine.submit(task, first)
        engine.submit(task, second)
        engine.cancel(*blocked.key)
        first.end()
        engine.submit(task, second)
        third = submit(engine, "appends", str(tmp_path / "runs"), id="the same", claim=1)
        third.end()
        assert (tmp_path / "runs").read_text() == "xx"
        assert second.messages == []

    def test_many_threads_submit_at_once(self, new_engine: NewEngine) -> None:
        engine, heard = new_engine(2), [[] for _ in range(8)]  # type: list[list[Heard]]

        def some(mine: list[Heard]) -> None:
            mine.extend(submit(engine, "answers", number) for number in range(10))

        threads = [threading.Thread(target=some, args=(mine,)) for mine in heard]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for mine in heard:
            assert [one.result() for one in mine] == list(range(10))
            assert all(len(one.messages) == 2 for one in mine)

    # --- time

    def test_a_task_ends_at_its_time_limit(self, engine: Engine) -> None:
        heard = submit(engine, "improves_then_waits", time_s=0.3)
        assert heard.end() == LimitExceeded(Limit.TIME)
        assert heard.best == 4

    # --- cancel

    def test_cancel_of_a_waiting_task(self, engine: Engine) -> None:
        running = submit(engine, "ends_at_reports")
        wait_until(lambda: running.has_started)
        waiting = submit(engine, "answers")
        engine.cancel(*waiting.key)
        assert waiting.end() == Stopped()
        assert waiting.messages == [Stopped()]
        assert not running.has_ended
        engine.cancel(*running.key)
        assert running.end() == Stopped()

    def test_cancel_of_a_running_task_keeps_its_best(self, engine: Engine) -> None:
        heard = submit(engine, "improves_then_waits")
        wait_until(lambda: heard.best == 4)
        engine.cancel(*heard.key)
        assert heard.end() == Stopped()
        assert heard.best == 4
        assert submit(engine, "answers").result() == "answer"

    def test_cancel_of_tasks_that_are_just_finishing(self, new_engine: NewEngine) -> None:
        """Either the result or the cancellation, and never neither."""
        engine = new_engine(2)
        for _ in range(count(200)):
            heard = submit(engine, "answers")
            engine.cancel(*heard.key)
            assert isinstance(heard.end(), Done | Stopped)

    def test_cancel_of_tasks_that_have_ended_or_never_were(self, engine: Engine) -> None:
        heard = submit(engine, "answers")
        heard.end()
        engine.cancel(*heard.key)
        engine.cancel("no such task", 0)
        running = submit(engine, "answers", "another claim", id=heard.key[0], claim=1)
        engine.cancel(*heard.key)
        assert running.result() == "another claim"
        assert len(heard.messages) == 2

    # --- who is next, and who is refused

    def test_requesters_take_turns(self, engine: Engine) -> None:
        """A flood of one delays another by one task."""
        running = submit(engine, "ends_at_reports", requester="first")
        wait_until(lambda: running.has_started)
        order: list[str] = []
        heard = []
        for requester in ("flood",) * 5 + ("single",):
            one = _Noting(requester, order)
            engine.submit(task_of("answers", requester=requester), one)
            heard.append(one)
        engine.cancel(*running.key)
        for one in heard:
            one.end()
        assert order.index("single") == 1

    def test_too_many_tasks_are_refused(self, new_engine: NewEngine) -> None:
        """In all, and of one requester; whoever leaves makes space."""
        engine = new_engine(1, max_waiting=3, max_of_requester=2)
        running = submit(engine, "ends_at_reports")
        wait_until(lambda: running.has_started)
        waiting = [submit(engine, "answers", requester="one") for _ in range(2)]
        with pytest.raises(Overloaded):
            submit(engine, "answers", requester="one")
        other = submit(engine, "answers", requester="other")
        with pytest.raises(Overloaded):
            submit(engine, "answers", requester="third")
        engine.cancel(*waiting[0].key)
        waiting[0].end()
        submit(engine, "answers", requester="third")
        engine.cancel(*running.key)
        assert (waiting[1].result(), other.result()) == ("answer", "answer")

    def test_a_refused_task_may_come_again(self, new_engine: NewEngine) -> None:
        engine = new_engine(1, max_waiting=1)
        running = submit(engine, "ends_at_reports")
        wait_until(lambda: running.has_started)
        submit(engine, "answers")
        task, heard = task_of("answers"), Heard()
        with pytest.raises(Overloaded):
            engine.submit(task, heard)
        engine.cancel(*running.key)
        wait_until(lambda: is_idle(engine))
        engine.submit(task, heard)
        assert heard.result() == "answer"

    # --- files

    def test_files_are_the_engines_own(self, engine: Engine, tmp_path: Path) -> None:
        """Their descriptors may be closed as soon as `submit` has returned; none is left open."""
        (tmp_path / "a").write_bytes(b"first")
        (tmp_path / "b").write_bytes(b"second")
        submit(engine, "answers").result()  # a worker is there, with the files of its own
        before = _open_files()
        for _ in range(3):
            with open_file(tmp_path / "a") as first, open_file(tmp_path / "b") as second:
                heard = submit(engine, "reads_files", files=(first, second))
            assert heard.result() == [b"first", b"second"]
            assert submit(engine, "reads_files").result() == []
        wait_until(lambda: _open_files() <= before)

    def test_files_of_tasks_that_never_run_are_closed(
        self, new_engine: NewEngine, tmp_path: Path
    ) -> None:
        (tmp_path / "a").write_bytes(b"first")
        engine = new_engine(1, max_waiting=1)
        running = submit(engine, "ends_at_reports")
        wait_until(lambda: running.has_started)
        before = _open_files()
        with open_file(tmp_path / "a") as file:
            waiting = submit(engine, "reads_files", files=(file,))
            with pytest.raises(Overloaded):
                submit(engine, "reads_files", files=(file,))
        engine.cancel(*waiting.key)
        waiting.end()
        assert _open_files() == before
        with pytest.raises(OSError, match="Bad file descriptor"):
            submit(engine, "reads_files", files=(10_000,))
        engine.cancel(*running.key)

    # --- capacity and close

    def test_capacity(self, new_engine: NewEngine) -> None:
        engine = new_engine(2)
        assert _counts(engine) == (2, 0)
        running = submit(engine, "ends_at_reports")
        wait_until(lambda: running.has_started)
        assert _counts(engine) == (2, 1)
        engine.cancel(*running.key)
        running.end()
        wait_until(lambda: _counts(engine) == (2, 0))

    def test_close_ends_everything(self, new_engine: NewEngine) -> None:
        engine = new_engine()
        running = submit(engine, "improves_then_waits")
        waiting = submit(engine, "answers")
        wait_until(lambda: running.best == 4)
        engine.close()
        for heard in (running, waiting):
            assert heard.has_ended
            assert heard.end() == Stopped(is_closing=True)
        with pytest.raises(NotReady):
            submit(engine, "answers")
        engine.close()

    def test_close_may_wait_for_what_runs(self, new_engine: NewEngine) -> None:
        engine = new_engine()
        running, waiting = submit(engine, "waits", 0.3), submit(engine, "answers")
        wait_until(lambda: running.has_started)
        engine.close(drain_s=GUARD_S)
        assert running.result() == "waited"
        assert waiting.end() == Stopped(is_closing=True)


class _Noting(Heard):
    """A sink that notes whose task has ended."""

    def __init__(self, name: str, order: list[str]) -> None:
        super().__init__()
        self.name = name
        self.order = order

    def __call__(self, message: object) -> None:
        if not isinstance(message, Event):
            self.order.append(self.name)
        super().__call__(message)  # type: ignore[arg-type]


def _counts(engine: Engine) -> tuple[int, int]:
    capacity = engine.capacity(Pool.SOLVE)
    return capacity.slots, capacity.busy


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
