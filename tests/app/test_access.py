"""Who may ask what: every operation and page, by every scope, about what is another owner's."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from app.http.access import Gate, admitted_of, scope_of
from app.main import create_app
from app.settings import Settings
from models.records import ChangeRecord, KeyScope
from tests.app.access_support import (
    FORM,
    GRANTED,
    MINE,
    OPERATIONS,
    PROFILE,
    PUBLIC_PAGES,
    THEIRS,
    Guarded,
    bearer,
    key_of,
)
from tests.app.serving import MYRINET, wait_for_end, wait_until
from tests.app.test_fit import HEADER, ROWS, TEXT


def test_every_operation_has_an_entry(guarded: Guarded) -> None:
    """And the document says of each what it takes, and how it is refused."""
    document = guarded.live.app.openapi()
    found = {
        f"{method.upper()} {path}": operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    assert set(found) == set(OPERATIONS)
    for name, operation in found.items():
        scope = OPERATIONS[name].scope
        assert operation.get("x-scope") == scope
        assert ("security" in operation) == (scope is not None)
        assert len({"401", "429"} & set(operation["responses"])) == (2 if scope else 0)
        assert "403" in operation["responses"]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_only_who_may_is_answered(guarded: Guarded, operation: str) -> None:
    """Nobody without a key; a key of each scope as the matrix says, and what is another owner's is
    as if it were not there.
    """
    asked = OPERATIONS[operation]
    for nobody in (None, "slk_wrong", "x" * 300):
        answer = guarded.ask(operation, nobody)
        if asked.scope is None:
            assert answer.status_code == 200
            continue
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"].startswith("Bearer")
    if asked.scope is None:
        return
    for scope, secret in guarded.mine.items():
        answer = guarded.ask(operation, secret)
        if asked.scope not in GRANTED[scope]:
            assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")
            assert asked.scope in answer.json()["detail"]
        elif asked.names:
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), answer.text
        else:
            assert answer.status_code in (200, 201, 409), answer.text


@pytest.mark.parametrize("operation", [name for name, one in OPERATIONS.items() if one.scope])
def test_the_owner_is_answered(guarded: Guarded, operation: str) -> None:
    """So that what another one does not find was there. No cache that several share may keep it.

    What it changes is noted with it, by the name of the key: answers and computations change
    nothing that was there.
    """
    before = len(noted(guarded))
    answer = guarded.ask(operation, guarded.theirs)
    changes = noted(guarded)[before:]
    assert tuple(one.action for one in changes) == OPERATIONS[operation].changes
    assert {(one.made_by, one.request) for one in changes} <= {("admin", "asked")}
    assert answer.status_code not in (401, 403, 404, 429), answer.text
    assert answer.status_code < 500
    kept = answer.headers["cache-control"]
    assert "public" not in kept
    assert kept.startswith(("private", "no-cache", "no-store"))


def noted(guarded: Guarded) -> list[ChangeRecord]:
    """Their changes by keys, the oldest first."""
    with guarded.store.of(THEIRS).reading() as unit:
        found = unit.changes.list(limit=1000)
    return [one for one in reversed(found) if one.key_id is not None]


def test_changes_are_read_by_who_manages(guarded: Guarded) -> None:
    """With time, key and request; of what a job changes, the job that a key started."""
    client, key = guarded.live.client, bearer(guarded.theirs)
    sent = {**key, **TEXT, "x-request-id": "fit-it"}
    client.post("/fit?save_as=noted", content=HEADER + ROWS, headers=sent).raise_for_status()
    table = {"min_message_bytes": 512, "max_message_bytes": 520}
    started = client.post(
        "/profiles/noted/tables", json=table, headers={**key, "prefer": "respond-async"}
    )
    job = started.headers["location"].rpartition("/")[2]

    def changes(**query: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = client.get("/changes", params=query, headers=key).json()[
            "items"
        ]
        return items

    wait_until(lambda: len(changes(subject="noted@1")) == 2)
    (begun,) = changes(subject=job)
    assert (begun["action"], begun["made_by"]) == ("job.start", "admin")
    assert begun["key_id"] in {
        one["id"] for one in client.get("/keys", headers=key).json()["items"]
    }
    assert [(one["action"], one["made_by"]) for one in changes(subject="noted@1")] == [
        ("table.activate", f"job {job}"),
        ("table.store", f"job {job}"),
    ]
    (created,) = changes(subject="noted")
    assert (created["action"], created["request"], created["after"]) == (
        *("profile.create", "fit-it"),
        "1",
    )
    page = client.get("/changes?limit=2", headers=key).json()
    more = client.get(f"/changes?limit=2&cursor={page['next_cursor']}", headers=key).json()
    times = [one["created_at"] for one in (*page["items"], *more["items"])]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == 4
    mine = client.get("/changes?subject=noted", headers=bearer(guarded.mine["admin"])).json()
    assert mine == {"items": [], "next_cursor": None}


def test_lists_have_what_is_ones_own(guarded: Guarded) -> None:
    """Profiles of papers, which each owner has, and nothing of the others."""
    client, mine = guarded.live.client, bearer(guarded.mine["admin"])
    names = [one["name"] for one in client.get("/profiles", headers=mine).json()["items"]]
    assert "myrinet-gam" in names
    assert PROFILE not in names
    assert client.get("/optimizations", headers=mine).json()["items"] == []
    owners = {one["owner"] for one in client.get("/keys", headers=mine).json()["items"]}
    assert owners == {MINE}


def test_the_same_question_of_two_owners_has_two_answers(guarded: Guarded) -> None:
    """And a job, and the answer to a request's key, is that of its owner."""
    client = guarded.live.client
    body = {"message_bytes": 8192, "pipeline": MYRINET}
    sent = [
        client.post("/optimize", json=body, headers={**bearer(one), "idempotency-key": "same"})
        for one in (guarded.mine["write"], guarded.theirs)
    ]
    assert all("idempotent-replayed" not in one.headers for one in sent)
    assert sent[0].json()["id"] != sent[1].json()["id"]
    jobs = [
        client.post("/optimize", json=body, headers={**bearer(one), "prefer": "respond-async"})
        for one in (guarded.mine["write"], guarded.theirs)
    ]
    assert jobs[0].headers["location"] != jobs[1].headers["location"]
    for one, job in zip((guarded.mine["write"], guarded.theirs), jobs, strict=True):
        client.headers.update(bearer(one))
        try:
            assert wait_for_end(client, job.headers["location"])["state"] == "done"
        finally:
            del client.headers["authorization"]


def test_a_job_is_run_with_what_is_its_owners(guarded: Guarded) -> None:
    """It finds his profile, of a name that others have too, and keeps its answer for him."""
    client = guarded.live.client
    for secret, overhead_us in ((guarded.mine["write"], 3.0), (guarded.theirs, 50.0)):
        stage = {"name": "only", "overhead_us": overhead_us, "ns_per_byte": 1.0}
        key, profile = bearer(secret), {"name": "of-each", "pipeline": {"stages": [stage]}}
        client.post("/profiles", json=profile, headers=key).raise_for_status()
        body = {"profile": "of-each", "message_bytes": 1000}
        started = client.post("/optimize", json=body, headers={**key, "prefer": "respond-async"})
        ended: dict[str, Any] = {}

        def has_ended() -> bool:
            ended.update(client.get(started.headers["location"], headers=key).json())  # noqa: B023
            return ended["state"] not in ("queued", "running")  # noqa: B023

        wait_until(has_ended)
        assert ended["state"] == "done"
        answer = f"/optimizations/{ended['answer_id']}"
        assert client.get(answer, headers=key).json()["latency_us"] == overhead_us + 1.0
    assert client.get(answer, headers=bearer(guarded.mine["admin"])).status_code == 404


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_pages_take_a_key_too(guarded: Guarded, method: str) -> None:
    """Of every path of the page; what only shows takes `read`."""
    client = guarded.live.client
    for path, methods in guarded.live.app.state.page_methods.items():
        if method not in methods or path in PUBLIC_PAGES:
            continue
        target = path.replace("{", "").replace("}", "")
        answer = client.request(method, target, headers={"accept": "application/json", **FORM})
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), path
        answer = client.request(
            method,
            target,
            headers={"accept": "application/json", **FORM, **bearer(guarded.mine["read"])},
        )
        assert (answer.status_code == 403) == (method == "POST"), path
    assert client.get("/openapi.json").status_code == 401
    assert client.get("/no-such-path").status_code == 401


def test_pages_of_what_is_anothers_are_not_found(guarded: Guarded) -> None:
    """Every page about something stored, for each kind of it."""
    ids = {
        "/ui/answers": guarded.paths["/optimizations/{id}"],
        "/ui/jobs": guarded.paths["/jobs/{id}"],
        "/ui/fits": guarded.paths["/fits/{id}"],
        "/ui/audits": guarded.paths["/jobs/{id}"],
        "/ui/exports": guarded.paths["/jobs/{id}"],
    }
    seen = 0
    for path, methods in guarded.live.app.state.page_methods.items():
        kind = next((one for one in (*ids, "/ui/profiles") if path.startswith(f"{one}/{{")), None)
        if "GET" not in methods or kind is None:
            continue
        number = ids.get(kind, "").rpartition("/")[2]
        target = path.replace("{id}", number).replace("{fit_id}", number)
        target = target.replace("{name}", PROFILE).replace("{digest}", guarded.values["digest"])
        target = target.replace("{target}", "simgrid").replace("{part}", "why")
        sent = {"accept": "text/html", **bearer(guarded.mine["admin"])}
        answer = guarded.live.client.get(target, headers=sent)
        assert answer.status_code == 404, (target, answer.status_code)
        seen += 1
    assert seen > 15


# --- the fast path --------------------------------------------------------------------------------


def test_the_fast_path_asks_the_same(guarded: Guarded) -> None:
    """It answers the owner from memory, and nobody else: by name, the active table, by digest."""
    live, digest = guarded.live, guarded.values["digest"]
    paths = live.service.lookups.fast_path
    targets = (
        ("/profiles/{name}/schedule", b"bytes=1026"),
        ("/profiles/{name}/table", b"format=slt"),
        (f"/tables/{digest}", b"format=slt"),
    )
    wait_until(lambda: paths.cache.peek(digest, THEIRS) is not None)
    gate: Gate = live.app.state.gate
    name = "fast"
    store = guarded.store.of(THEIRS)
    live.client.post(
        "/profiles", json={"name": name, "pipeline": MYRINET}, headers=bearer(guarded.theirs)
    ).raise_for_status()
    made = live.client.post(
        f"/profiles/{name}/tables",
        json={"min_message_bytes": 1024, "max_message_bytes": 1040},
        headers=bearer(guarded.theirs),
    ).json()["digest"]
    wait_until(lambda: _answers(gate, f"/tables/{made}", b"format=slt", guarded.theirs))
    readers = {secret for scope, secret in guarded.mine.items() if "read" in GRANTED[scope]}
    for path, query in (*targets[:2], (f"/tables/{made}", b"format=slt")):
        target = path.replace("{name}", name)
        wait_until(lambda: _answers(gate, target, query, guarded.theirs))  # noqa: B023
        for stranger in (*readers, "slk_wrong", None):
            assert not _answers(gate, target, query, stranger)
            sent = live.client.get(f"{target}?{query.decode()}", headers=bearer(stranger))
            assert sent.status_code == (404 if stranger in readers else 401)
    with store.reading() as unit:
        assert unit.tables.get(made).profile_name == name


def _answers(gate: Gate, path: str, query: bytes, secret: str | None) -> bool:
    headers = [] if secret is None else [(b"authorization", f"Bearer {secret}".encode())]
    scope = {"method": "GET", "path": path, "query_string": query, "headers": headers}
    found = gate.answer(scope)
    assert found is None or admitted_of(scope) is not None
    return found is not None


def test_owners_with_the_same_table_hold_it_each(guarded: Guarded) -> None:
    """The same bytes under the same digest; one deletes his profile, the other goes on."""
    live = guarded.live
    owners = [key_of(live, owner, "write") for owner in ("one", "two")]
    for secret in owners:
        sent = bearer(secret)
        live.client.post(
            "/profiles", json={"name": "twin", "pipeline": MYRINET}, headers=sent
        ).raise_for_status()
        table = {"min_message_bytes": 2048, "max_message_bytes": 2064}
        digest = live.client.post("/profiles/twin/tables", json=table, headers=sent).json()[
            "digest"
        ]
    gate: Gate = live.app.state.gate
    for secret in owners:
        wait_until(
            lambda: _answers(gate, "/profiles/twin/schedule", b"bytes=2050", secret)  # noqa: B023
        )
    live.client.delete("/profiles/twin", headers=bearer(owners[0])).raise_for_status()
    wait_until(lambda: _answers(gate, "/profiles/twin/schedule", b"bytes=2050", owners[1]))
    assert not _answers(gate, "/profiles/twin/schedule", b"bytes=2050", owners[0])
    missing = live.client.get("/profiles/twin/schedule?bytes=2050", headers=bearer(owners[0]))
    assert missing.status_code == 404
    assert live.client.get(f"/tables/{digest}", headers=bearer(owners[0])).status_code == 200


# --- without keys ---------------------------------------------------------------------------------


def test_nobody_is_asked_by_default(client: httpx.Client) -> None:
    """The embedded default; keys mean nothing there, and cannot be made for later."""
    assert client.get("/profiles", headers=bearer("slk_any")).status_code == 200
    for answer in (client.get("/keys"), client.post("/keys", json={"name": "a", "scope": "read"})):
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    page = client.get("/ui/sign-in")
    assert "asks nobody" in page.text
    assert client.post("/ui/sign-in", data={"key": "slk_any"}).status_code == 401


@pytest.mark.parametrize("path", ["/keys", "/keys/x", "/keys/x/rotation", "/changes"])
def test_scopes_are_told_by_paths(path: str) -> None:
    """Of what is below a path too, and of no path that only begins so."""
    assert scope_of("GET", path) is KeyScope.ADMIN
    other = path.replace("keys", "keyset").replace("changes", "y")
    assert scope_of("GET", other) is KeyScope.READ
    assert scope_of("DELETE", "/keyset") is KeyScope.WRITE
    assert scope_of("GET", "/metrics") is scope_of("GET", "/metrics/x") is KeyScope.METRICS
    assert scope_of("GET", "/metricsx") is KeyScope.READ


def test_a_scraper_reads_metrics_alone(guarded: Guarded) -> None:
    """No page, no document, no other method, and no browser signs in by its key."""
    client, key = guarded.live.client, bearer(guarded.mine["metrics"])
    found = client.get("/metrics", headers=key)
    assert found.status_code == 200
    assert "sluice_http_requests_total" in found.text
    assert client.head("/metrics", headers=key).status_code == 200
    for path in ("/", "/openapi.json", "/ui/docs", "/limits", "/profiles", "/keys", "/nowhere"):
        assert client.get(path, headers=key).status_code == 403, path
    assert client.post("/metrics", headers=key).status_code == 405
    signed = client.post("/ui/sign-in", data={"key": guarded.mine["metrics"]})
    assert signed.status_code == 403
    assert "set-cookie" not in signed.headers


def test_an_application_without_keys_has_no_gate() -> None:
    """Nor does its document speak of any."""
    app = create_app(Settings(database_url="sqlite:///nowhere/x.db"))
    assert app.state.gate is None
    assert "securitySchemes" not in app.openapi()["components"]
