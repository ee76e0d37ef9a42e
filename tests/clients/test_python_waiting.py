"""One course of all that is done for the Python client that blocks and the one that waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest

from sluice_client import AsyncClient, Client, Unreachable
from sluice_client.connections import finish, finish_each
from tests.clients.scripted_http import answer, close, pieces, scripted
from tests.clients.test_python_freshness import QUICK, job

READY = {"status": "ready", "database": "sqlite", "workers": 1}


async def _numbers(ended: list[str]) -> AsyncGenerator[int, None]:
    try:
        for number in range(3):
            yield number
    finally:
        ended.append("ended")


def test_what_never_suspends_is_run_to_its_end() -> None:
    """A value, an error, or one item after the other; leaving early ends the generator too."""

    async def two() -> int:
        return 2

    async def fails() -> int:
        raise ValueError("as meant")

    assert finish(two()) == 2
    with pytest.raises(ValueError, match="as meant"):
        finish(fails())
    ended: list[str] = []
    assert list(finish_each(_numbers(ended))) == [0, 1, 2]
    left = finish_each(_numbers(ended))
    assert next(left) == 0
    assert ended == ["ended"]
    left.close()  # type: ignore[attr-defined]
    assert ended == ["ended"] * 2


def test_what_suspends_is_a_defect_and_says_so() -> None:
    """It would never be resumed."""

    class Suspended:
        def __await__(self) -> Iterator[None]:
            yield

    async def waits() -> None:
        await Suspended()

    with pytest.raises(AssertionError, match="nothing to suspend for"):
        finish(waits())


def test_a_stream_that_is_left_gives_its_connection_back() -> None:
    """In both clients, which then ask something else."""
    line = f"id: 1\nevent: progress\ndata: {json.dumps(job('running'))}\n\n".encode()
    with scripted(lambda _: [pieces(line, is_whole=False), answer(READY)] * 2) as server:
        with Client(server.address, retry=QUICK) as client:
            for event in client.job_events("j"):
                assert event.job.state == "running"
                break
            assert client.readiness().workers == 1

        async def watch() -> None:
            async with AsyncClient(server.address, retry=QUICK) as client:
                async for event in client.job_events("j"):
                    assert event.job.state == "running"
                    break
                assert (await client.readiness()).workers == 1

        asyncio.run(watch())
    assert [one.target for one in server.requests] == ["/jobs/j/events", "/readyz"] * 2


def test_a_blocking_client_works_where_an_event_loop_runs() -> None:
    """It needs none, and disturbs none; its lists too."""
    page: dict[str, Any] = {"items": [], "next_cursor": None}

    async def ask(address: str) -> int:
        with Client(address, retry=QUICK) as client:
            assert list(client.each_profile()) == []
            workers: int = client.readiness().workers
            return workers

    with scripted(lambda _: [close, answer(page), close, answer(READY)]) as server:
        assert asyncio.run(ask(server.address)) == 1


def test_many_tasks_share_a_client() -> None:
    """Each has its own answer or its own error."""

    async def ask(address: str) -> list[object]:
        async with AsyncClient(address, retry=QUICK) as client:
            asked = [client.readiness() for _ in range(8)]
            return await asyncio.gather(*asked, return_exceptions=True)

    with scripted(lambda _: [answer(READY)] * 8) as server:
        found = asyncio.run(ask(server.address))
    assert [getattr(one, "workers", None) for one in found] == [1] * 8
    assert all(isinstance(one, Unreachable) for one in asyncio.run(ask(server.address)))
