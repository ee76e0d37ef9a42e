"""The queue of pictures: whose turn it is, one answer for equal questions, clients that go."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, nullcontext
from typing import Any

import pytest

from app.execution.engine import End, Started, Stopped
from app.execution.local import MAX_PENDING_PICTURES, MAX_PICTURES_OF_CLIENT
from app.http.call_threads import (
    BURST,
    CALM_S,
    MAX_WAIT_S,
    STANDING_S,
    STANDING_SOLVES,
    Backlog,
    RenderQueue,
    Requester,
    TaskWait,
)
from domain.errors import Cancelled, InvalidInput, Overloaded

GUARD_S = 30.0


class Scene:
    """A queue whose thread is held until `go`, and what it did, in order."""

    def __init__(self) -> None:
        self.queue = RenderQueue()
        self.go = threading.Event()
        self.did: list[str] = []

    def work(self, name: str) -> Callable[[], str]:
        """Does nothing but to note that it was done."""

        def done() -> str:
            assert self.go.wait(GUARD_S)
            self.did.append(name)
            return name

        return done

    def ask(
        self,
        name: str,
        client: str,
        view: str = "",
        *,
        wait_disconnected: Callable[[], Awaitable[None]] | None = None,
    ) -> asyncio.Task[str]:
        """Somebody asks for this."""
        return asyncio.ensure_future(
            self.queue.run(
                self.work(name),
                wait_disconnected or _stays,
                requester=Requester(client, view),
                question=name,
            )
        )


async def _stays() -> None:
    await asyncio.Event().wait()


@pytest.fixture
def scene() -> Iterator[Scene]:
    """One for each test, with its thread ended."""
    made = Scene()
    yield made
    made.go.set()
    made.queue.close()


def run(coroutine: Any) -> Any:
    """In a loop of its own, guarded."""
    return asyncio.run(asyncio.wait_for(coroutine, GUARD_S))


def test_a_flood_holds_up_another_client_for_one_work(scene: Scene) -> None:
    """However many wait for the one, the other is next."""

    async def flooded() -> None:
        flood = [
            scene.ask(f"flood {i}", "flood", f"view {i}") for i in range(MAX_PICTURES_OF_CLIENT + 1)
        ]
        await asyncio.sleep(0)
        other = scene.ask("other", "other")
        await asyncio.sleep(0)
        scene.go.set()
        assert await other == "other"
        await asyncio.gather(*flood)

    run(flooded())
    assert scene.did[:2] == ["flood 0", "other"]
    assert len(scene.did) == MAX_PICTURES_OF_CLIENT + 2


def test_too_much_of_one_client_is_refused_at_once(scene: Scene) -> None:
    """Without waiting for anything; what is in the queue keeps its place."""

    async def flooded() -> list[Any]:
        asked = [scene.ask(str(i), "flood") for i in range(2 * MAX_PICTURES_OF_CLIENT)]
        await asyncio.wait(asked[MAX_PICTURES_OF_CLIENT + 1 :])
        assert not any(one.done() for one in asked[: MAX_PICTURES_OF_CLIENT + 1])
        assert scene.queue.waiting == MAX_PICTURES_OF_CLIENT
        scene.go.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    ended = run(flooded())
    assert ended[: MAX_PICTURES_OF_CLIENT + 1] == scene.did
    assert all(isinstance(one, Overloaded) for one in ended[MAX_PICTURES_OF_CLIENT + 1 :])


def test_the_same_question_is_worked_out_once(scene: Scene) -> None:
    """For whoever asks while it waits or runs, at the first turn that one of them has."""

    async def asked_twice() -> list[Any]:
        running = scene.ask("held", "someone")
        tasks = [scene.ask(f"own {i}", "first", f"{i}") for i in range(3)]
        tasks += [scene.ask("shared", "first", "4"), scene.ask("shared", "second")]
        await asyncio.sleep(0)
        scene.go.set()
        return await asyncio.gather(running, *tasks)

    found = run(asked_twice())
    assert found[-2:] == ["shared", "shared"]
    assert scene.did == ["held", "own 0", "shared", "own 1", "own 2"]


def test_a_failure_is_told_to_all_who_wait(scene: Scene) -> None:
    """And the next work is done."""

    def fails() -> str:
        assert scene.go.wait(GUARD_S)
        raise InvalidInput("no")

    async def asked() -> list[Any]:
        queue = scene.queue
        tasks = [
            asyncio.ensure_future(
                queue.run(fails, _stays, requester=Requester(client), question="it fails")
            )
            for client in "ab"
        ]
        tasks.append(scene.ask("after", "c"))
        await asyncio.sleep(0)
        scene.go.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second, after = run(asked())
    assert isinstance(first, InvalidInput)
    assert isinstance(second, InvalidInput)
    assert after == "after"


def test_what_nobody_waits_for_is_not_begun(scene: Scene) -> None:
    """Unless another one asks the same."""

    async def left() -> tuple[str, str]:
        leaves = asyncio.Event()

        async def wait_disconnected() -> None:
            await leaves.wait()

        held = scene.ask("held", "someone")
        alone = scene.ask("alone", "reader", wait_disconnected=wait_disconnected)
        shared = scene.ask("shared", "reader", wait_disconnected=wait_disconnected)
        stays = scene.ask("shared", "other")
        await asyncio.sleep(0)
        leaves.set()
        for task in (alone, shared):
            with pytest.raises(Cancelled):
                await task
        scene.go.set()
        return await asyncio.gather(held, stays)

    assert list(run(left())) == ["held", "shared"]
    assert scene.did == ["held", "shared"]
    assert scene.queue.waiting == 0


def test_too_many_of_all_clients_are_refused(scene: Scene) -> None:
    """And leave nothing behind: the same question may be asked again."""

    async def flooded() -> list[Any]:
        asked = [scene.ask(str(i), f"client {i}") for i in range(MAX_PENDING_PICTURES + 2)]
        await asyncio.wait(asked[-1:])
        scene.go.set()
        ended = await asyncio.gather(*asked, return_exceptions=True)
        return [*ended, await scene.ask(str(MAX_PENDING_PICTURES + 1), "again")]

    *ended, refused, again = run(flooded())
    assert ended == scene.did[:-1]
    assert isinstance(refused, Overloaded)
    assert again == str(MAX_PENDING_PICTURES + 1)


class TestBacklog:
    """What would wait is refused where something has waited for long, and not in a burst."""

    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """The time, to be moved."""
        now_s = [100.0]
        monkeypatch.setattr("app.http.call_threads.time.monotonic", lambda: now_s[0])
        return now_s

    def overloaded(self, clock: list[float], stack: ExitStack, client: str = "a") -> Backlog:
        """A backlog of one worker in which one of this client runs, and others have waited."""
        backlog = Backlog(lambda: 1)
        stack.enter_context(backlog.entered(client))
        with backlog.entered(client):
            for _ in range(STANDING_SOLVES):
                with backlog.entered(client):
                    pass
            clock[0] += 1.01 * STANDING_S
            with pytest.raises(Overloaded):
                backlog.check(client)
        return backlog

    def test_a_burst_waits(self, clock: list[float]) -> None:
        backlog = Backlog(lambda: 1)
        with ExitStack() as stack:
            for _ in range(100):
                stack.enter_context(backlog.entered("a"))
            backlog.check_begin()

    def test_long_solves_may_be_waited_for(self, clock: list[float]) -> None:
        backlog = Backlog(lambda: 1)
        with backlog.entered("a"), backlog.entered("b"):
            clock[0] += 60.0
            backlog.check("c")
            backlog.check_begin()

    @pytest.mark.parametrize("share", [0.9, 1.1])
    def test_a_burst_that_is_soon_done_is_not_refused(
        self, clock: list[float], share: float
    ) -> None:
        """By what solves have taken of a worker, and how many wait."""
        backlog, waiting = Backlog(lambda: 2), 10
        for solve_s in (0.0, *[share * STANDING_S * 2 / waiting] * 100):
            backlog.took(solve_s)
        with ExitStack() as stack:
            for _ in range(2 + waiting):
                stack.enter_context(backlog.entered("a"))
            for _ in range(2 * STANDING_SOLVES):
                with backlog.entered("a"):
                    pass
            clock[0] += 1.01 * STANDING_S
            assert backlog.is_overloaded == (share > 1.0)

    @pytest.mark.parametrize("share", [0.9, 1.1])
    def test_more_than_a_burst_waits_only_where_it_is_soon_done(
        self, clock: list[float], share: float
    ) -> None:
        """Whoever has nothing here is let in all the same."""
        backlog = Backlog(lambda: 2)
        for _ in range(2):
            backlog.took(share * MAX_WAIT_S / BURST)
        with ExitStack() as stack:
            for _ in range(2 + 2 * BURST):
                stack.enter_context(backlog.entered("a"))
            backlog.check("b")
            with pytest.raises(Overloaded) if share > 1.0 else nullcontext():
                backlog.check("a")
            backlog.check_begin()  # those who wait go on waiting

    def test_what_would_wait_is_refused_until_it_has_been_quiet(self, clock: list[float]) -> None:
        with ExitStack() as stack:
            backlog = self.overloaded(clock, stack)
            with pytest.raises(Overloaded):
                stack.enter_context(backlog.entered("a"))
            with pytest.raises(Overloaded):
                backlog.check_begin()
            clock[0] += 1.01 * CALM_S
            stack.enter_context(backlog.entered("a"))

    def test_what_need_not_wait_is_let_in(self, clock: list[float]) -> None:
        with ExitStack() as stack:
            backlog = self.overloaded(clock, stack)
            stack.close()
            assert backlog.is_overloaded
            backlog.check("a")

    def test_who_has_nothing_here_is_let_in_beside_a_flood(self, clock: list[float]) -> None:
        with ExitStack() as stack:
            backlog = self.overloaded(clock, stack)
            with pytest.raises(Overloaded):
                backlog.check("b")  # "a" has one, as "b" would have
            clock[0] += 1.01 * CALM_S
            stack.enter_context(backlog.entered("a"))
            for _ in range(STANDING_SOLVES):
                with backlog.entered("a"):
                    pass
            clock[0] += 1.01 * STANDING_S
            with pytest.raises(Overloaded):
                backlog.check("a")
            backlog.check("b")

    def test_a_task_that_has_not_begun_is_given_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("app.http.call_threads._LOOK_S", 0.001)

        async def gone() -> None:
            await asyncio.Event().wait()

        def refuse() -> None:
            raise Overloaded("too late")

        async def waits(*, has_begun: bool) -> End:
            waiting = TaskWait(asyncio.get_running_loop())
            if has_begun:
                waiting.take(Started("here"))
                asyncio.get_running_loop().call_later(0.05, waiting.take, Stopped())
            return await waiting.until_end(gone, refuse, lambda: 1)

        assert asyncio.run(waits(has_begun=True)) == Stopped()
        with pytest.raises(Overloaded):
            asyncio.run(waits(has_begun=False))
