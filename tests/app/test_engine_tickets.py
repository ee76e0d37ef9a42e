"""The local engine as seen by those who hand in work: tickets, cancelling, waiting, errors."""

from __future__ import annotations

import asyncio
import pickle
import uuid
from collections.abc import Callable, Iterator

import pytest

from app.jobs import LocalEngine
from domain.errors import (
    Cancelled,
    NotFound,
    NotReady,
    Overloaded,
    SluiceError,
    TimeLimitReached,
)
from domain.solution import Status
from models.records import JobState
from tests.app.engine_support import (
    GUARD_S,
    MARKER,
    MEMORY_BYTES,
    RUNNER,
    fragments_of,
    marked,
    misbehaving_engines,
    task_of,
    wait_until,
)
from tests.support.counts import count


@pytest.fixture
def marker(monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"engine-{uuid.uuid4().hex}"
    monkeypatch.setenv(MARKER, name)
    return name


@pytest.fixture
def new_engine(marker: str) -> Iterator[Callable[..., LocalEngine]]:
    with misbehaving_engines(marker) as make:
        yield make


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
        with pytest.raises(Overloaded):
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
            with pytest.raises(NotReady):
                engine.result(ticket, GUARD_S)
        with pytest.raises(NotReady):
            engine.submit(task_of("quick"))

    def test_closing_twice_and_closing_while_workers_start(self, marker: str) -> None:
        engine = LocalEngine(2, MEMORY_BYTES, runner=RUNNER)
        engine.close()
        engine.close()
        assert marked(marker) == set()


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
