"""The queue of pictures: whose turn it is, one answer for equal questions, clients that go."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from app.execution.engine import End, Started, Stopped
from app.http.call_threads import (
    MAX_PENDING_PICTURES,
    MAX_PICTURES_OF_CLIENT,
    RenderQueue,
    Requester,
    TaskWait,
)
from domain.errors import Cancelled, InvalidInput, NotReady, Overloaded, SluiceError

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


class TestTaskWait:
    """Who waits for a task gives it up where it does not begin."""

    @pytest.mark.parametrize(
        ("slots", "max_wait_s", "refusal"), [(1, 0.0, Overloaded), (0, 60.0, NotReady)]
    )
    def test_a_task_that_has_not_begun_is_given_up(
        self,
        slots: int,
        max_wait_s: float,
        refusal: type[SluiceError],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("app.http.call_threads._LOOK_S", 0.001)
        monkeypatch.setattr("app.http.call_threads.WORKERLESS_S", 0.0)

        async def gone() -> None:
            await asyncio.Event().wait()

        async def waits(*, has_begun: bool) -> End:
            waiting = TaskWait(asyncio.get_running_loop())
            if has_begun:
                waiting.take(Started("here"))
                asyncio.get_running_loop().call_later(0.05, waiting.take, Stopped())
            return await waiting.until_end(gone, lambda: slots, max_wait_s)

        assert asyncio.run(waits(has_begun=True)) == Stopped()
        with pytest.raises(refusal):
            asyncio.run(waits(has_begun=False))
