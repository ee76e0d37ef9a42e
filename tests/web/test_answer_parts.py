"""Readers of answers take turns: real requests at the same time, and what is said of too many."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from analysis import explain as explain_answer
from analysis import explore
from app.http.call_threads import MAX_PICTURES_OF_CLIENT, RenderQueue
from app.http.dependencies import READER_COOKIE
from app.verbs.optimize.page import answer as answers
from tests.app.serving import GUARD_S, Live, wait_until
from tests.web.conftest import Ask


def test_a_flood_does_not_hold_up_another_reader(
    live: Live, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is too much of it is refused at once, in words, with a part that asks again by itself;
    a reader with a name of its own is served after one work.
    """
    go = threading.Event()
    begun: list[int] = []

    def held(*_: Any, **__: Any) -> tuple[explore.Line, ...]:
        begun.append(len(begun))
        assert go.wait(GUARD_S)
        return ()

    monkeypatch.setattr(explore, "sizes", held)
    pictures = live.service.pictures
    flood = [ask(message_bytes=6000 + i).id for i in range(2 * MAX_PICTURES_OF_CLIENT)]
    base = f"http://127.0.0.1:{live.port}"

    def part(id: str, name: str, **more: Any) -> httpx.Response:
        return httpx.get(f"{base}/ui/answers/{id}/parts/{name}", timeout=GUARD_S, **more)

    with ThreadPoolExecutor(2 * MAX_PICTURES_OF_CLIENT + 1) as pool:
        asked = [pool.submit(part, id, "sizes") for id in flood]
        wait_until(
            lambda: pictures.waiting == MAX_PICTURES_OF_CLIENT and sum(map(_is_done, asked)) > 10
        )
        page = httpx.get(f"{base}/ui/answers/{flood[0]}", timeout=GUARD_S)
        name = page.cookies[READER_COOKIE]
        other = pool.submit(part, flood[0], "why", cookies={READER_COOKIE: name})
        wait_until(lambda: pictures.waiting == MAX_PICTURES_OF_CLIENT + 1)
        go.set()
        assert "holds the message up" in other.result().text
        found = [one.result() for one in asked]
    refused = [one for one in found if one.status_code == 503]
    assert len(refused) == len(flood) - MAX_PICTURES_OF_CLIENT - 1
    assert sum(one.status_code == 200 for one in found) == MAX_PICTURES_OF_CLIENT + 1 == len(begun)
    for one in refused:
        assert int(one.headers["retry-after"]) >= 1
        assert 'hx-trigger="load delay:' in one.text
        assert "tried again by itself" in one.text


def _is_done(one: Any) -> bool:
    return bool(one.done())


def test_programs_get_the_problem_document(
    live: Live, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks for JSON is refused as everywhere."""
    monkeypatch.setattr("app.http.call_threads.MAX_PENDING_PICTURES", 0)
    full = RenderQueue()
    monkeypatch.setattr(live.service, "pictures", full)
    address = f"/ui/answers/{ask().id}/parts/why"
    response = live.client.get(address, headers={"accept": "application/json"})
    assert (response.status_code, response.json()["code"]) == (503, "overloaded")
    assert live.client.get(address).status_code == 503
    full.close()


def test_why_says_what_it_cannot_tell(
    live: Live, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the page, with what is known all the same."""
    for module in (answers, explain_answer):
        monkeypatch.setattr(module, "MAX_CELLS", 10)
    response = live.client.get(f"/ui/answers/{ask().id}/parts/why")
    assert response.status_code == 200
    assert "for up to 10" in response.text
    assert "network DMAs and receiver host DMA is occupied longest" in response.text


def test_equal_names_are_told_apart(live: Live, ask: Ask) -> None:
    """On the page, in its parts, in the timeline and at the cell."""
    stages = [{"name": "copy", "overhead_us": 5.0, "ns_per_byte": cost} for cost in (1.0, 3.0, 1.0)]
    id = ask(pipeline={"stages": stages}, message_bytes=65536).id
    page = live.client.get(f"/ui/answers/{id}").text
    assert "answers call this one “copy (2)”" in page
    assert "an earlier stage has this name; answers call this one “copy (3)”" in page
    assert page.count('placeholder="stage 3"') == 1
    for address in ("parts/why", "parts/timeline", "schedule.svg", "report.html"):
        assert "copy (2)" in live.client.get(f"/ui/answers/{id}/{address}").text
    assert "/ui/audit?name=copy&amp;overhead=5&amp;cost=1&amp;" in page
