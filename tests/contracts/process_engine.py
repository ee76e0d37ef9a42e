"""What every engine whose workers are processes keeps, beside `EngineContract`."""

from __future__ import annotations

import os
import re
import signal
import time

import pytest

from app.execution.engine import Crashed, Engine, Limit, LimitExceeded, Pool, Stopped
from tests.contracts.engine import EngineContract, NewEngine
from tests.execution.support import (
    GUARD_S,
    MIB,
    is_alive,
    is_idle,
    parent_of,
    submit,
    wait_until,
)
from tests.support.counts import count

HANGS = ("sleeps", "spins", "stubborn_grandchild", "forks", "stops")
BALLOONS = (
    "balloons_at_once",
    "balloons_slowly",
    "balloons_in_grandchildren",
    "balloons_shared",
)
CRASHES = {
    "exits": "exited with code 3",
    "aborts": "SIGABRT",
    "segfaults": "SIGSEGV",
    "kills_itself": "SIGKILL",
    "closes_descriptors": "ended|exited",
    "scribbles": "channel",
}


class ProcessEngineContract(EngineContract):
    """What holds besides where every task runs in a process that can be killed."""

    # --- limits

    def test_tasks_that_hang_or_balloon_are_ended_while_others_go_on(
        self, new_engine: NewEngine
    ) -> None:
        """Whatever they do, and however many processes they start."""
        engine = new_engine(2)
        behaviours = HANGS + BALLOONS
        for number in range(count(100)):
            behaviour = behaviours[number % len(behaviours)]
            time_s = 0.3 if behaviour in HANGS else GUARD_S
            hostile, answered = submit(engine, behaviour, time_s=time_s), 0
            until_s = time.monotonic() + GUARD_S
            while not hostile.has_ended:
                assert time.monotonic() < until_s, behaviour
                assert submit(engine, "answers", requester="lookups").result() == "answer"
                answered += 1
                time.sleep(0.02)  # the hostile one gives way to this process
            limit = Limit.TIME if behaviour in HANGS else Limit.MEMORY
            assert hostile.end() == LimitExceeded(limit), behaviour
            assert answered > 0

    def test_the_last_best_result_survives_every_end(self, new_engine: NewEngine) -> None:
        """Also where the operation never lets its own interpreter run again. Each is counted."""
        engine = new_engine()
        spins = submit(engine, "improves_then_spins", time_s=0.3)
        assert spins.end() == LimitExceeded(Limit.TIME)
        assert (spins.best, spins.steps) == (4, [(4, 9)])
        balloons = submit(engine, "improves_then_balloons")
        assert balloons.end() == LimitExceeded(Limit.MEMORY)
        assert balloons.best == 2
        crashes = submit(engine, "improves_then_crashes")
        assert isinstance(crashes.end(), Crashed)
        assert crashes.best == 3
        assert engine.capacity(Pool.SOLVE).deaths == {"time": 1, "memory": 1, "crash": 1}

    def test_a_best_result_larger_than_the_channel_arrives(self, engine: Engine) -> None:
        heard = submit(engine, "large_best_then_sleeps", 4 * MIB, time_s=2.0)
        assert heard.end() == LimitExceeded(Limit.TIME)
        assert heard.best == b"x" * 4 * MIB

    def test_a_best_result_that_is_too_long_is_none(self, engine: Engine) -> None:
        heard = submit(engine, "large_best_then_sleeps", 4 * MIB, time_s=0.3, result_bytes=MIB)
        assert heard.end() == LimitExceeded(Limit.TIME)
        assert heard.best is None

    def test_memory_that_processes_share_counts_once(self, engine: Engine) -> None:
        heard = submit(engine, "shares_with_forks", 100 * MIB, 4)
        assert heard.result() == 100 * MIB

    def test_each_task_has_its_own_memory_limit(self, engine: Engine) -> None:
        few, many = 200 * MIB, 512 * MIB
        assert submit(engine, "fills_and_frees", 300 * MIB, memory_bytes=many).result() == "freed"
        end = submit(engine, "fills_and_frees", 300 * MIB, memory_bytes=few).end()
        assert end == LimitExceeded(Limit.MEMORY)

    # --- crashes

    @pytest.mark.parametrize("behaviour", CRASHES)
    def test_a_crash_costs_its_own_task_alone(self, engine: Engine, behaviour: str) -> None:
        crash = submit(engine, behaviour)
        others = [submit(engine, "answers", number) for number in range(3)]
        end = crash.end()
        assert isinstance(end, Crashed)
        assert re.search(CRASHES[behaviour], end.how), end.how
        assert [other.result() for other in others] == [0, 1, 2]

    def test_an_abort_because_memory_was_refused_is_the_memory_limit(self, engine: Engine) -> None:
        assert submit(engine, "says_bad_alloc").end() == LimitExceeded(Limit.MEMORY)

    @pytest.mark.parametrize("whom", ["operation", "guardian"])
    def test_a_worker_that_was_killed_between_two_tasks_costs_nothing(
        self, engine: Engine, whom: str
    ) -> None:
        before = submit(engine, "process_id").result()
        wait_until(lambda: is_idle(engine))
        os.kill(before if whom == "operation" else parent_of(before), signal.SIGKILL)
        wait_until(lambda: not is_alive(before))
        after = submit(engine, "process_id")
        assert after.result() != before
        assert len(after.messages) == 2

    @pytest.mark.parametrize("whom", ["operation", "guardian"])
    def test_a_worker_that_is_killed_in_a_task_ends_it(self, engine: Engine, whom: str) -> None:
        heard = submit(engine, "improves_then_spins")
        waiting = submit(engine, "answers")
        wait_until(lambda: heard.best == 4)
        os.kill(heard.pid if whom == "operation" else parent_of(heard.pid), signal.SIGKILL)
        end = heard.end()
        assert isinstance(end, Crashed)
        assert ("SIGKILL" if whom == "operation" else "guards it was killed") in end.how
        assert waiting.result() == "answer"

    # --- cancel

    @pytest.mark.parametrize("behaviour", ["sleeps", "spins", "stops", "forks"])
    def test_cancel_ends_the_process(self, engine: Engine, behaviour: str) -> None:
        """It is gone by the time that the end is told."""
        heard = submit(engine, behaviour)
        wait_until(lambda: heard.has_started)
        engine.cancel(*heard.key)
        assert heard.end() == Stopped()
        assert not is_alive(heard.pid)
        assert submit(engine, "answers").result() == "answer"

    # --- isolation

    def test_what_an_operation_prints_disturbs_nothing(
        self, engine: Engine, capfd: pytest.CaptureFixture[str]
    ) -> None:
        assert submit(engine, "prints").result() == "printed"
        assert capfd.readouterr() == ("", "")

    def test_a_worker_that_kept_memory_is_replaced(self, engine: Engine) -> None:
        first = submit(engine, "keeps", 150 * MIB).result()
        assert submit(engine, "process_id").result() != first

    def test_a_warm_worker_is_used_again(self, engine: Engine) -> None:
        found = {submit(engine, "process_id").result() for _ in range(3)}
        assert len(found) == 1
