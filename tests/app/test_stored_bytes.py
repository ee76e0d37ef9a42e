"""How much an owner may store, as clients and operators meet it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from models.collection import recount
from models.session import Store
from tests.app.access_support import MINE, THEIRS, bearer, key_of
from tests.app.serving import MYRINET, Live, serving, settings_for, wait_for_end
from tests.contracts.stored_bytes_repository import by_hand, figures
from tests.support.long_work import long_here_engine

ROOM = 30_000  # bytes: some answers, and what the first key of an owner brings with it
SAID = re.compile(
    r"expected at most (\d+) bytes stored by one owner: (\S+) stores (\d+), and this adds (\d+);"
)


@pytest.fixture
def bounded(database_url: str) -> Iterator[Live]:
    """A service where an owner may store so much."""
    settings = settings_for(database_url, auth="keys", owner_stored_bytes=ROOM)
    with serving(settings, open_engine=long_here_engine) as live:
        yield live


def asked(message_bytes: int) -> dict[str, Any]:
    return {"pipeline": MYRINET, "message_bytes": message_bytes}


def fill(live: Live, secret: str, **more: str) -> tuple[int, httpx.Response]:
    """Ask new questions until one is refused: how many were answered, and the refusal."""
    for number in range(1000):
        headers = {**bearer(secret), **more}
        answer = live.client.post("/optimize", json=asked(10_000 + number), headers=headers)
        if answer.status_code != 200:
            return number, answer
    raise AssertionError("nothing is refused")


def store_of(live: Live) -> Store:
    return live.service.context.store


def test_who_stores_as_much_as_he_may_is_told_so(bounded: Live) -> None:
    """With the figures, and nothing is half stored; what is there is answered, and others go on."""
    mine, theirs = (key_of(bounded, owner, "write") for owner in (MINE, THEIRS))
    body = {"name": "big", "pipeline": MYRINET}
    assert bounded.client.post("/profiles", json=body, headers=bearer(mine)).status_code == 201
    answered, refused = fill(bounded, mine)
    assert answered > 3
    assert (refused.status_code, refused.json()["code"]) == (429, "quota_exceeded")
    assert refused.headers["retry-after"] == "10"
    said = SAID.match(refused.json()["detail"])
    assert said is not None
    most, owner, stored, added = said.groups()
    assert (int(most), owner) == (ROOM, MINE)
    assert figures(store_of(bounded)) == by_hand(store_of(bounded))
    assert int(stored) == figures(store_of(bounded))[MINE] <= ROOM < int(stored) + int(added)
    again = bounded.client.post("/optimize", json=asked(10_000), headers=bearer(mine))
    assert again.status_code == 200
    other = bounded.client.post("/optimize", json=asked(1), headers=bearer(theirs))
    assert other.status_code == 200
    # A lookup that no table answers is stored too.
    lookup = bounded.client.get("/profiles/big/schedule?bytes=77", headers=bearer(mine))
    assert (lookup.status_code, lookup.json()["code"]) == (429, "quota_exceeded")
    assert bounded.client.delete("/profiles/big", headers=bearer(mine)).status_code == 204
    assert figures(store_of(bounded)) == by_hand(store_of(bounded))
    assert figures(store_of(bounded))[MINE] < int(stored)


def test_a_refused_request_may_come_again_under_its_key(bounded: Live) -> None:
    """The refusal is not kept; once there is room the same key is answered, and that counts."""
    mine = key_of(bounded, MINE, "write")
    fill(bounded, mine)
    body, headers = asked(5), {**bearer(mine), "Idempotency-Key": "once"}
    refused = bounded.client.post("/optimize", json=body, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (429, "quota_exceeded")
    with store_of(bounded).of(MINE).unit_of_work() as work:
        for profile in work.profiles.list(limit=100):
            work.profiles.delete(profile.name)
    before = figures(store_of(bounded))[MINE]
    answered = [bounded.client.post("/optimize", json=body, headers=headers) for _ in range(2)]
    assert [one.status_code for one in answered] == [200, 200]
    assert answered[0].content == answered[1].content
    # The answer, and what is kept of it under the key.
    assert figures(store_of(bounded))[MINE] > before + len(answered[0].content)
    assert figures(store_of(bounded)) == by_hand(store_of(bounded))


def test_a_stored_answer_is_given_back_but_not_kept_again_under_a_new_key(bounded: Live) -> None:
    """Where there is no more room: without a key, or under one that has it already."""
    mine = key_of(bounded, MINE, "write")
    used, new = ({**bearer(mine), "Idempotency-Key": key} for key in ("used", "new"))
    first = bounded.client.post("/optimize", json=asked(10_000), headers=used)
    assert first.status_code == 200
    for size in (100_000, 1_000):  # what is left is less than an answer
        for number in range(1000):
            body = {
                "name": f"of-{size}-{number}",
                "pipeline": MYRINET,
                "detail": "x" * (size // 100),
            }
            if bounded.client.post("/profiles", json=body, headers=bearer(mine)).status_code == 429:
                break
    for headers in (bearer(mine), used):
        again = bounded.client.post("/optimize", json=asked(10_000), headers=headers)
        assert (again.status_code, again.content) == (200, first.content)
    refused = bounded.client.post("/optimize", json=asked(10_000), headers=new)
    assert (refused.status_code, refused.json()["code"]) == (429, "quota_exceeded")


def test_a_job_without_room_for_its_result_fails(database_url: str) -> None:
    """It is accepted while there is room for the question; then it says why there is no answer."""
    settings = settings_for(database_url, owner_stored_bytes=ROOM)
    with serving(settings, open_engine=long_here_engine) as live:
        stored = figures(store_of(live))["local"]
    settings = replace(settings, owner_stored_bytes=stored + 600)
    with serving(settings, open_engine=long_here_engine) as live:
        sent = live.client.post("/optimize", json=asked(4096), headers={"Prefer": "respond-async"})
        assert sent.status_code == 202, sent.text
        job = wait_for_end(live.client, sent.headers["location"])
        assert (job["state"], job["error"]["code"]) == ("failed", "quota_exceeded")
        assert SAID.match(job["error"]["detail"])
        assert job["best"] is None
        with store_of(live).reading() as work:
            assert work.answers.list(limit=9) == []
        assert figures(store_of(live)) == by_hand(store_of(live))


def test_a_service_starts_whatever_is_stored(database_url: str) -> None:
    """The papers' profiles are there: nobody asked for them."""
    settings = settings_for(database_url, owner_stored_bytes=1)
    with serving(settings, open_engine=long_here_engine) as live:
        assert live.client.get("/profiles/gms").status_code == 200
        refused = live.client.post("/optimize", json=asked(4096))
        assert (refused.status_code, refused.json()["code"]) == (429, "quota_exceeded")
        text = live.client.get("/metrics").text
        stored = figures(store_of(live))["local"]
        assert stored == by_hand(store_of(live))["local"]
        told = dict(re.findall(r"^(sluice_(?:stored|fullest)\w+) (\S+)$", text, re.MULTILINE))
        assert {name: float(value) for name, value in told.items()} == {
            "sluice_stored_bytes": stored,
            "sluice_fullest_owner_ratio": stored,
        }


def test_without_a_bound_nothing_is_refused_and_all_is_counted(database_url: str) -> None:
    """The ratio is of nothing."""
    settings = settings_for(database_url)
    with serving(settings, open_engine=long_here_engine) as live:
        assert live.client.post("/optimize", json=asked(4096)).status_code == 200
        assert "sluice_fullest_owner_ratio 0.0\n" in live.client.get("/metrics").text
        assert figures(store_of(live)) == by_hand(store_of(live))
        assert recount(store_of(live)) == {}
