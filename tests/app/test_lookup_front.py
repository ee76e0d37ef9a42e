"""Lookups from memory: fresh, bounded, counted, and there while the database is not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count as numbers
from pathlib import Path
from typing import Any

import httpx
import pytest

import solvers
from app.questions import tables as questions
from app.verbs.table.answer import render_table
from domain.errors import StoreUnavailable
from domain.profile import ProfileRevision
from domain.verification import ModelVerdict
from models.session import Store, create_store
from tests.app.lookup_support import fast_path_of, is_warm, warm
from tests.app.serving import MYRINET, Live, serving, settings_for, wait_until
from tests.support.plan_tables import whole_messages
from tests.support.records import a_verification

BODY: dict[str, Any] = {"min_message_bytes": 100, "max_message_bytes": 1000, "relative_gap": 0.01}
SCHEDULE = "/profiles/{name}/schedule"
_NAMES = numbers(1)


# --- fresh ----------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compilations of nothing but whole messages, in the thread."""
    monkeypatch.setattr(solvers, "compile_table", whole_messages)


def compiled(client: httpx.Client, name: str, **changes: Any) -> str:
    """The digest of a table that is compiled now."""
    answer = client.post(f"/profiles/{name}/tables", json={**BODY, **changes})
    assert answer.status_code == 201
    return str(answer.json()["digest"])


def looked_up(client: httpx.Client, reference: str) -> Any:
    """Which table answers, None for a solve."""
    answer = client.get(f"/profiles/{reference}/schedule?bytes=500")
    assert answer.status_code == 200
    return answer.json().get("table")


@pytest.mark.parametrize("verdict", ModelVerdict)
def test_what_transfers_said_of_the_model_is_said_first(
    own: Live, quick: None, verdict: ModelVerdict
) -> None:
    """By memory and framework alike; another tag; as before where the revision is another one."""
    client, path = own.client, "/profiles/p/schedule?bytes=500"
    client.post("/profiles", json={"name": "p", "pipeline": MYRINET})
    compiled(client, "p")
    warm(own, "p")
    before = client.get(path)
    with own.service.context.store.unit_of_work() as unit:
        found = replace(a_verification(verdict), stages=("only",), reasons=())
        unit.profiles.verify("p", 1, found)
    cold = client.get(path, headers={"If-None-Match": before.headers["etag"]})
    warm(own, "p")
    hot = client.get(path)
    said = client.get("/profiles/p").json()["verification"]
    assert cold.status_code == 200
    assert cold.content == hot.content
    assert cold.headers["etag"] == hot.headers["etag"] != before.headers["etag"]
    first, *others = hot.json()["warnings"]
    assert first["detail"] == said["detail"]
    assert {**hot.json(), "warnings": others} == before.json()
    again = client.get(path, headers={"If-None-Match": hot.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get(path).content == client.get(path).content == hot.content
    unverified = client.put("/profiles/p", json={"pipeline": MYRINET}).json()["revision"]
    compiled(client, "p")
    assert unverified == 2
    assert client.get(path).json()["warnings"] == others


def test_whoever_wrote_reads_what_they_wrote(own: Live, quick: None) -> None:
    """Every write that changes a choice, while the fast path knew another one."""
    client = own.client
    client.post("/profiles", json={"name": "p", "pipeline": MYRINET})
    first = compiled(client, "p")
    assert looked_up(client, "p") == first
    warm(own, "p")
    second = compiled(client, "p", max_message_bytes=900)
    assert looked_up(client, "p") == first
    third = compiled(client, "p", max_message_bytes=901, activate=True)
    assert looked_up(client, "p") == third
    for digest in (second, first):
        warm(own, "p")
        reported = client.post("/profiles/p/table", json={"digest": digest})
        assert (reported.status_code, reported.json()["digest"]) == (200, digest)
        assert reported.headers["content-location"] == f"/tables/{digest}"
        assert looked_up(client, "p") == looked_up(client, "p@1") == digest
    warm(own, "p")
    client.put("/profiles/p", json={"pipeline": MYRINET})
    assert (looked_up(client, "p"), looked_up(client, "p@1")) == (None, first)
    assert client.get("/profiles/p/table").status_code == 404
    assert client.get("/profiles/p@1/table").json()["digest"] == first
    client.post("/profiles/p/current", json={"revision": 1})
    assert looked_up(client, "p") == first
    warm(own, "p")
    client.delete("/profiles/p")
    assert client.get("/profiles/p/schedule?bytes=500").status_code == 404
    assert client.get("/profiles/p/table?format=slt").status_code == 404
    assert client.get(f"/tables/{first}?format=slt").status_code == 200


def test_a_saved_profile_switches_at_once(own: Live, quick: None) -> None:
    """An answer saved as a revision, which has no table."""
    client = own.client
    client.post("/profiles", json={"name": "p", "pipeline": MYRINET})
    compiled(client, "p")
    warm(own, "p")
    question = {"message_bytes": 99, "pipeline": MYRINET, "save_as": "p"}
    assert client.post("/optimize", json=question).json()["profile"]["revision"] == 2
    assert looked_up(client, "p") is None


def test_activation_by_request(own: Live, quick: None) -> None:
    """False keeps a first table out; a stored one becomes active where it is asked for again."""
    client = own.client
    client.post("/profiles", json={"name": "p", "pipeline": MYRINET})
    first = compiled(client, "p", activate=False)
    assert looked_up(client, "p") is None
    again = client.post("/profiles/p/tables", json=BODY)
    assert (again.status_code, again.json()["digest"]) == (200, first)
    assert looked_up(client, "p") == first
    second = compiled(client, "p", max_message_bytes=900, activate=True)
    assert client.post("/profiles/p/tables", json=BODY).status_code == 200
    assert looked_up(client, "p") == second
    assert client.post("/profiles/p/tables", json={**BODY, "activate": True}).status_code == 200
    assert looked_up(client, "p") == first
    items = client.get("/profiles/p/tables").json()["items"]
    assert {one["digest"]: one["active"] for one in items} == {first: True, second: False}


def test_what_cannot_be_activated(own: Live, quick: None) -> None:
    """What is not stored, what is another's, what is no digest; nothing changes."""
    client = own.client
    for name in ("p", "q"):
        client.post("/profiles", json={"name": name, "pipeline": MYRINET})
    mine, other = compiled(client, "p"), compiled(client, "q")
    client.put("/profiles/p", json={"pipeline": MYRINET})
    for reference, digest, status, code in (
        ("p", other, 409, "conflict"),
        ("p@2", mine, 409, "conflict"),
        ("p@3", mine, 404, "not_found"),
        ("absent", mine, 404, "not_found"),
        ("Upper", mine, 404, "not_found"),
        ("p", "0" * 64, 409, "conflict"),
        ("p", mine[:-1], 422, "invalid_input"),
        ("p", mine.upper(), 422, "invalid_input"),
        ("p", None, 422, "invalid_input"),
    ):
        refused = client.post(f"/profiles/{reference}/table", json={"digest": digest})
        assert (refused.status_code, refused.json()["code"]) == (status, code), (reference, digest)
    assert client.post("/profiles/p/table", json={"digest": mine}).status_code == 200
    assert (looked_up(client, "p"), looked_up(client, "p@1")) == (None, mine)


def test_the_active_table_in_its_forms(own: Live, quick: None) -> None:
    """As under its digest, to be asked for again."""
    client = own.client
    client.post("/profiles", json={"name": "p", "pipeline": MYRINET})
    digest = compiled(client, "p")
    for form, suffix in (("slt", ""), ("json", "-json"), ("summary", "-summary")):
        active = client.get(f"/profiles/p/table?format={form}")
        stored = client.get(f"/tables/{digest}?format={form}")
        assert active.content == stored.content
        tag = f'"{digest}{suffix}"'
        assert active.headers["etag"] == stored.headers["etag"] == tag
        assert active.headers["cache-control"] == "no-cache"
        assert active.headers["content-location"] == f"/tables/{digest}"
        held = client.get(f"/profiles/p/table?format={form}", headers={"If-None-Match": tag})
        assert (held.status_code, held.content) == (304, b"")


def elsewhere(url: str, name: str, *, max_message_bytes: int) -> str:
    """Another process compiles a table and makes it the active one."""
    with opened(url) as store:
        with store.reading() as unit:
            revision = unit.profiles.revision(name)
        scope = questions.TableScope(min_message_bytes=100, max_message_bytes=max_message_bytes)
        question = questions.table_question(
            revision.model, ProfileRevision(name, revision.number), scope, fragment_cap=1000
        )
        with store.unit_of_work() as unit:
            table = questions.compile_table(question)
            return questions.keep_table(unit, table, render_table, activate=True).digest


@contextmanager
def opened(url: str) -> Iterator[Store]:
    """A store, until the block ends."""
    store = create_store(url)
    yield store
    store.dispose()


def test_what_other_processes_write_is_seen(database_url: str, quick: None) -> None:
    """Within the pause between two looks, on each database."""
    with serving(settings_for(database_url)) as live:
        first = compiled(live.client, "gms")
        warm(live, "gms")
        assert looked_up(live.client, "gms") == first
        second = elsewhere(database_url, "gms", max_message_bytes=777)
        wait_until(lambda: looked_up(live.client, "gms") == second)
        with opened(database_url) as store, store.unit_of_work() as unit:
            unit.profiles.delete("gms")
        url = "/profiles/gms/schedule?bytes=500"
        wait_until(lambda: live.client.get(url).status_code == 404)


def test_tables_are_there_after_a_restart(database_url: str, quick: None) -> None:
    """Before the first request."""
    with serving(settings_for(database_url)) as live:
        compiled(live.client, "gms")
        before = live.client.get("/profiles/gms/schedule?bytes=500")
    with serving(settings_for(database_url)) as live:
        assert is_warm(live, "gms")
        after = live.client.get("/profiles/gms/schedule?bytes=500")
        assert (after.content, after.headers["etag"]) == (before.content, before.headers["etag"])


# --- without the database, without room, counted --------------------------------------------------


def test_lookups_go_on_while_the_database_is_away(
    own: Live, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From memory, also after the service has seen that it is away; the rest is 503."""
    digest = compiled(own.client, "gms")
    warm(own, "gms")
    met = threading.Event()

    @contextmanager
    def away() -> Iterator[None]:
        met.set()
        raise StoreUnavailable("the database cannot be reached or is not usable")
        yield

    with monkeypatch.context() as patched:
        patched.setattr(own.service.context.store, "reading", away)
        wait_until(met.is_set)
        for path in (
            "/profiles/gms/schedule?bytes=500",
            "/profiles/gms@1/schedule?bytes=999",
            "/profiles/gms/table?format=slt",
            f"/tables/{digest}?format=slt",
        ):
            assert own.client.get(path).status_code == 200
        for path in ("/profiles/gms/schedule?bytes=99", "/profiles/disk-study/schedule?bytes=500"):
            refused = own.client.get(path)
            assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
    second = compiled(own.client, "gms", max_message_bytes=900, activate=True)
    assert looked_up(own.client, "gms") == second


def test_memory_is_bounded_and_answers_are_right(tmp_path: Path, quick: None) -> None:
    """Room for two tables of three: the one that was not used goes, and comes back when asked."""
    url = f"sqlite:///{tmp_path / 'sluice.db'}"
    with serving(settings_for(url)) as live:
        digests = {name: compiled(live.client, name) for name in ("gms", "myrinet-gam")}
        client = live.client
        client.post("/profiles", json={"name": "p", "pipeline": MYRINET})
        digests["p"] = compiled(client, "p")
        for name in digests:
            warm(live, name)
        cache = fast_path_of(live).cache
        room = cache.loaded_bytes - 1
        answers = {name: client.get(f"/profiles/{name}/schedule?bytes=500") for name in digests}
    with serving(settings_for(url, lookup_memory_bytes=room)) as live:
        cache = fast_path_of(live).cache
        assert len(cache) == 2
        for _ in range(2):
            for name, answer in answers.items():
                again = live.client.get(f"/profiles/{name}/schedule?bytes=500")
                assert (again.content, again.headers["etag"]) == (
                    answer.content,
                    answer.headers["etag"],
                )
                assert cache.peek(digests[name]) is not None
                assert len(cache) == 2
                assert cache.loaded_bytes <= room
        exposition = live.client.get("/metrics").text
        assert "\nsluice_loaded_tables 2.0\n" in exposition


def test_they_are_counted_and_guarded_as_every_request(own: Live, quick: None) -> None:
    """By the template of the route; with the headers that every answer has."""
    compiled(own.client, "gms")
    warm(own, "gms")
    for _ in range(3):
        answer = own.client.get("/profiles/gms/schedule?bytes=500")
        assert answer.headers["x-content-type-options"] == "nosniff"
    own.client.get("/profiles/gms/schedule?bytes=500", headers={"If-None-Match": "*"})
    own.client.get("/profiles/gms/table?format=slt")
    reported = own.client.get("/metrics").text
    for route, status, number in ((SCHEDULE, 200, 3), (SCHEDULE, 304, 1)):
        labels = f'method="GET",route="{route}",status="{status}"'
        assert f"sluice_http_requests_total{{{labels}}} {number}.0" in reported.splitlines()
    assert 'route="/profiles/{name}/table",status="200"} 1' in reported


def test_a_defect_of_the_front_costs_no_answer(
    own: Live, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The framework gives it, and the log has the reason."""
    digest = compiled(own.client, "gms")

    def broken(_: object) -> None:
        raise RuntimeError("a defect")

    app: Any = own.app
    monkeypatch.setattr(app, "_ask", broken)
    assert looked_up(own.client, "gms") == digest
