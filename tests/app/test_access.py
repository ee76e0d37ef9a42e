"""Who may ask what: every operation and page, by every scope, about what is another owner's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.http.access import Gate, Rate, admitted_of, scope_of, with_peer
from app.http.fastpath.fast_path import FastPath, TableCache
from app.main import create_app
from app.questions.keys import create_first_key, create_key, revoke_key
from app.settings import Settings
from models.records import KeyScope
from models.session import Store
from tests.app.serving import MYRINET, Live, serving, settings_for, wait_for_end, wait_until
from tests.app.test_fit import HEADER, ROWS, TEXT
from tests.support.long_work import long_here_engine

MINE, THEIRS = "mine", "theirs"
SCOPES = ("read", "write", "admin")
PROFILE = "their-own"
TRANSFERS = (Path(__file__).parents[1] / "data/transfers/two-links.csv").read_text()
FORM = {"content-type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True)
class Asked:
    """What to ask of an operation so that, but for who asks, it is answered well.

    `names`: what is asked about belongs to an owner, and to others is as if it were not there.
    """

    scope: str | None
    names: bool = False
    query: str = ""
    body: Any = None
    content: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


MESSAGE = {"message_bytes": 4096, "profile": PROFILE}
TRACE = Asked("write", content=HEADER + ROWS, headers=TEXT)
# Each operation of the document. A new one without an entry fails.
OPERATIONS: dict[str, Asked] = {
    "POST /optimize": Asked("write", True, body=MESSAGE),
    "GET /optimizations": Asked("read"),
    "GET /optimizations/{id}": Asked("read", True),
    "GET /optimizations/{id}/explanation": Asked("read", True),
    "POST /compare": Asked(
        "write", True, body={"profile": PROFILE, "message_bytes": [4096], "strategies": ["single"]}
    ),
    "POST /simulate": Asked(
        "write", True, body={"profile": PROFILE, "fragment_bytes": [2048, 2048]}
    ),
    "POST /thresholds": Asked(
        "write",
        True,
        body={"profile": PROFILE, "message_bytes": [65536], "sizes": [4096]},
    ),
    "POST /audit": Asked("write", True, body={"profile": PROFILE, "setting": {"whole": True}}),
    "POST /hide": Asked("write", True, body={**MESSAGE, "calculation_us": 120.0}),
    "GET /hide/{id}": Asked("read", True),
    "POST /fit": TRACE,
    "POST /compose": Asked(
        "write",
        body={"stages": [{"name": "copy", "measurements": {"content": HEADER + ROWS}}]},
    ),
    "GET /fits/{id}": Asked("read", True),
    "GET /traces/{digest}": Asked("read", True),
    "GET /fits/{id}/plot": Asked("read", True),
    "POST /measurement-plans": Asked(
        "write", body={"min_message_bytes": 64, "max_message_bytes": 65536}
    ),
    "GET /profiles": Asked("read"),
    "POST /profiles": Asked("write", body={"name": "a-name", "pipeline": MYRINET}),
    "GET /profiles/{name}": Asked("read", True),
    "PUT /profiles/{name}": Asked("write", True, body={"pipeline": MYRINET}),
    "GET /profiles/{name}/revisions": Asked("read", True),
    "POST /profiles/{name}/current": Asked("write", True, body={"revision": 1}),
    "POST /profiles/{name}/verification": Asked("write", True, body={"transfers": TRANSFERS}),
    "GET /profiles/{name}/schedule": Asked("read", True, query="?bytes=1024"),
    "POST /profiles/{name}/tables": Asked(
        "write", True, body={"min_message_bytes": 1024, "max_message_bytes": 1032}
    ),
    "GET /profiles/{name}/tables": Asked("read", True),
    "GET /profiles/{name}/table": Asked("read", True, query="?format=slt"),
    "POST /profiles/{name}/table": Asked("write", True, body={"digest": "{digest}"}),
    "GET /tables/{digest}": Asked("read", True, query="?format=slt"),
    "GET /exports": Asked("read"),
    "GET /profiles/{name}/exports/{target}": Asked("read", True, query="?option=form:cfg"),
    "GET /layers": Asked("read"),
    "GET /layers/{name}": Asked("read"),
    "POST /layer-costs": Asked("write", body={"layer": "cmam-finite", "message_bytes": [64]}),
    "GET /jobs/{id}": Asked("read", True),
    "GET /jobs/{id}/events": Asked("read", True),
    "GET /keys": Asked("admin"),
    "POST /keys": Asked("admin", body={"name": "a program", "scope": "read"}),
    "POST /keys/{id}/rotation": Asked("admin", True, body={}),
    "GET /limits": Asked("read"),
    "GET /healthz": Asked(None),
    "GET /readyz": Asked(None),
    "GET /metrics": Asked("admin"),
    # What ends something comes last.
    "DELETE /jobs/{id}": Asked("write", True),
    "DELETE /keys/{id}": Asked("admin", True),
    "DELETE /profiles/{name}": Asked("write", True),
}
PUBLIC_PAGES = {"/ui/sign-in", "/ui/sign-out", "/ui/assets/{digest}/{name}"}


@dataclass(frozen=True)
class Guarded:
    """A server that asks who asks: a key of each scope for me, one for all of theirs."""

    live: Live
    mine: dict[str, str]
    theirs: str
    paths: dict[str, str]
    values: dict[str, str]

    def ask(self, operation: str, secret: str | None, **changes: str) -> httpx.Response:
        """Ask an operation about what is theirs."""
        asked, (method, path) = OPERATIONS[operation], operation.split(" ")
        text = None if asked.body is None else json.dumps(asked.body)
        for name, value in {**self.values, **changes}.items():
            text = None if text is None else text.replace(f"{{{name}}}", value)
        kind = {} if text is None else {"content-type": "application/json"}
        return self.live.client.request(
            method,
            self.paths[path] + asked.query,
            content=text if text is not None else asked.content,
            headers={**kind, **asked.headers, **bearer(secret)},
        )

    @property
    def store(self) -> Store:
        return self.live.service.context.store


def bearer(secret: str | None) -> dict[str, str]:
    """The header that says who asks."""
    return {} if secret is None else {"authorization": f"Bearer {secret}"}


def key_of(live: Live, owner: str, scope: str, **more: Any) -> str:
    """The secret of a new key, once the server knows it."""
    made = create_key(live.service.context.store.of(owner), scope, KeyScope(scope), **more)
    known = bearer(made.secret)
    wait_until(lambda: live.client.get("/exports", headers=known).status_code == 200)
    return made.secret


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """What is theirs is one of everything. Names that I store are my own."""
    url = f"sqlite:///{tmp_path_factory.mktemp('guarded') / 'sluice.db'}"
    settings = settings_for(url, auth="keys", owner_requests_per_s=0)
    with serving(settings, open_engine=long_here_engine) as live:
        theirs = key_of(live, THEIRS, "admin")
        yield Guarded(
            live,
            {scope: key_of(live, MINE, scope) for scope in SCOPES},
            theirs,
            *_stored(live.client, bearer(theirs)),
        )


def _stored(client: httpx.Client, key: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Store one of everything; return the path of each operation, and what bodies name."""

    def post(path: str, body: Any, **headers: str) -> httpx.Response:
        answer = client.post(path, json=body, headers={**key, **headers})
        answer.raise_for_status()
        return answer

    post("/profiles", {"name": PROFILE, "pipeline": MYRINET})
    table = post(
        f"/profiles/{PROFILE}/tables", {"min_message_bytes": 1024, "max_message_bytes": 1032}
    ).json()
    fit = client.post("/fit?save_as=fitted", content=HEADER + ROWS, headers={**key, **TEXT}).json()
    fit_id = client.get("/profiles/fitted", headers=key).json()["provenance"]["fit_id"]
    hidden = post("/hide", {**MESSAGE, "calculation_us": 120.0}).headers["location"]
    job = post("/optimize", {**MESSAGE, "message_bytes": 5000}, prefer="respond-async")
    answer = post("/optimize", MESSAGE).json()["id"]
    made = post("/keys", {"name": "another", "scope": "read"}).json()["id"]
    layer = client.get("/layers", headers=key).json()["items"][0]["name"]
    ids = {
        "/optimizations": answer,
        "/hide": hidden.rpartition("/")[2],
        "/fits": fit_id,
        "/jobs": job.headers["location"].rpartition("/")[2],
        "/keys": made,
    }
    values = {"digest": table["digest"], "layer": layer}
    paths = {}
    for operation in OPERATIONS:
        path = operation.split(" ")[1]
        digest = fit["trace_digests"][0] if path.startswith("/traces") else table["digest"]
        name = layer if path.startswith("/layers") else PROFILE
        found = path.replace("{name}", name).replace("{digest}", digest)
        found = found.replace("{target}", "simgrid")
        paths[path] = found.replace("{id}", ids.get("/" + path.split("/")[1], ""))
    return paths, values


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
        refusals = {"401", "403", "429"} & set(operation["responses"])
        assert len(refusals) == (3 if scope else 0)


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
        if SCOPES.index(scope) < SCOPES.index(asked.scope):
            assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")
            assert asked.scope in answer.json()["detail"]
        elif asked.names:
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), answer.text
        else:
            assert answer.status_code in (200, 201, 409), answer.text


@pytest.mark.parametrize("operation", [name for name, one in OPERATIONS.items() if one.names])
def test_the_owner_is_answered(guarded: Guarded, operation: str) -> None:
    """So that what another one does not find was there."""
    answer = guarded.ask(operation, guarded.theirs)
    assert answer.status_code not in (401, 403, 404, 429), answer.text
    assert answer.status_code < 500


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
    for path, query in (*targets[:2], (f"/tables/{made}", b"format=slt")):
        target = path.replace("{name}", name)
        wait_until(lambda: _answers(gate, target, query, guarded.theirs))  # noqa: B023
        for stranger in (*guarded.mine.values(), "slk_wrong", None):
            assert not _answers(gate, target, query, stranger)
            sent = live.client.get(f"{target}?{query.decode()}", headers=bearer(stranger))
            assert sent.status_code == (404 if stranger in guarded.mine.values() else 401)
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


# --- the life of a key ----------------------------------------------------------------------------


def test_a_key_is_made_exchanged_and_revoked(guarded: Guarded) -> None:
    """By an administrator, at once; its secret is told once, and is nowhere in the database."""
    client, admin = guarded.live.client, bearer(guarded.mine["admin"])
    asked = {"name": "host 7", "scope": "read", "expires_in_s": 3600, "requests_per_s": 1000}
    made = client.post("/keys", json=asked, headers=admin)
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    first = made.json()
    assert client.get("/limits", headers=bearer(first["secret"])).status_code == 200
    second = client.post(f"/keys/{first['id']}/rotation", json={"kept_s": 0}, headers=admin).json()
    assert (second["name"], second["scope"], second["requests_per_s"]) == ("host 7", "read", 1000)
    assert second["expires_at"] is not None
    assert client.get("/limits", headers=bearer(first["secret"])).status_code == 401
    assert client.get("/limits", headers=bearer(second["secret"])).status_code == 200
    again = client.post(f"/keys/{first['id']}/rotation", json={}, headers=admin)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert client.delete(f"/keys/{second['id']}", headers=admin).status_code == 204
    assert client.get("/limits", headers=bearer(second["secret"])).status_code == 401
    listed = client.get("/keys", headers=admin)
    states = {one["id"]: one["revoked_at"] is None for one in listed.json()["items"]}
    assert states[first["id"]] is True
    assert states[second["id"]] is False
    assert first["secret"] not in listed.text
    with guarded.store.of(MINE).reading() as unit:
        assert first["secret"] not in str(unit.api_keys.get(first["id"]))


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"name": ""}, "/name"),
        ({"scope": "all"}, "/scope"),
        ({"expires_in_s": 0}, "/expires_in_s"),
        ({"requests_per_s": 0}, "/requests_per_s"),
        ({"owner": THEIRS}, "/owner"),
    ],
)
def test_what_is_no_key_is_refused(
    guarded: Guarded, change: dict[str, object], pointer: str
) -> None:
    """Naming the field; nobody makes a key for another owner."""
    body = {"name": "a", "scope": "read", **change}
    refused = guarded.live.client.post("/keys", json=body, headers=bearer(guarded.mine["admin"]))
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == pointer


def test_what_another_process_changes_counts_soon(guarded: Guarded) -> None:
    """A key that the command line revokes or makes."""
    client, secret = guarded.live.client, key_of(guarded.live, MINE, "read")
    with guarded.store.of(MINE).reading() as unit:
        newest = unit.api_keys.list()[0]
    revoke_key(guarded.store.of(MINE), newest.id)
    wait_until(lambda: client.get("/limits", headers=bearer(secret)).status_code == 401)


def test_a_key_that_expires_is_none_from_then_on(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the clock, before the keys are looked at again."""
    secret = key_of(guarded.live, MINE, "read", expires_in_s=3600)
    gate: Gate = guarded.live.app.state.gate
    assert gate.by_secret(secret.encode()) is not None
    later = (datetime.now(UTC) + timedelta(hours=1)).timestamp() + 1
    monkeypatch.setattr("app.http.access.time.time", lambda: later)
    assert gate.by_secret(secret.encode()) is None


def test_the_first_key_is_made_once(store: Store) -> None:
    """And only where there is none at all."""
    made = create_first_key(store)
    assert made is not None
    assert (made.record.scope, made.record.owner) == (KeyScope.ADMIN, "local")
    assert create_first_key(store) is None
    revoke_key(store, made.record.id)
    assert create_first_key(store) is None


# --- browsers -------------------------------------------------------------------------------------


def test_a_browser_signs_in_and_out(guarded: Guarded) -> None:
    """It gets a key of its own, which no script reads; the key that was typed in is not kept."""
    port = guarded.live.port
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60.0) as browser:
        html = {"accept": "text/html"}
        refused = browser.get("/ui/profiles", headers=html)
        assert refused.status_code == 401
        assert 'href="/ui/sign-in"' in refused.text
        assert browser.get("/ui/sign-in", headers=html).status_code == 200
        wrong = browser.post("/ui/sign-in", data={"key": "slk_wrong"}, headers=html)
        assert wrong.status_code == 401
        secret = guarded.mine["read"]
        entered = browser.post("/ui/sign-in", data={"key": secret}, headers=html)
        assert (entered.status_code, entered.headers["location"]) == (303, "/")
        cookie = entered.headers["set-cookie"]
        assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Max-Age=43200"))
        assert secret not in cookie
        assert browser.get("/ui/profiles", headers=html).status_code == 200
        stored = browser.post("/ui/optimize", data={"message": "4096"}, headers=html)
        assert stored.status_code == 403
        assert browser.get("/profiles/their-own").status_code == 404
        foreign = {**html, "origin": "http://evil.example"}
        assert browser.post("/ui/sign-out", headers={**foreign, **FORM}).status_code == 403
        kept = dict(browser.cookies)
        left = browser.post("/ui/sign-out", headers={**html, **FORM})
        assert (left.status_code, left.headers["location"]) == (303, "/ui/sign-in")
        browser.cookies.update(kept)
        assert browser.get("/ui/profiles", headers=html).status_code == 401


def test_browsers_end_with_their_key(guarded: Guarded) -> None:
    """A key that is revoked takes with it whoever signed in by it."""
    client, secret = guarded.live.client, key_of(guarded.live, MINE, "read")
    with guarded.store.of(MINE).reading() as unit:
        newest = unit.api_keys.list()[0]
    entered = client.post("/ui/sign-in", data={"key": secret})
    cookie = {"cookie": entered.headers["set-cookie"].partition(";")[0]}
    client.cookies.clear()
    assert client.get("/limits", headers=cookie).status_code == 200
    admin = bearer(guarded.mine["admin"])
    assert client.delete(f"/keys/{newest.id}", headers=admin).status_code == 204
    assert client.get("/limits", headers=cookie).status_code == 401


# --- rates and quotas -----------------------------------------------------------------------------


def test_a_rate_lets_through_what_it_says() -> None:
    """At most two seconds' worth at once, and then one each interval, whatever the times are."""
    rate, passed = Rate(10), 0
    for step in range(1000):
        now_s = 100.0 + step * 0.01
        if rate.wait_s(now_s) <= 0.0:
            rate.count(now_s)
            passed += 1
    assert 10 * 10 + 18 <= passed <= 10 * 10 + 21
    assert 0.0 < rate.wait_s(109.99) <= 0.1
    assert Rate(0).wait_s(0.0) <= 0.0


def test_who_asks_too_often_is_refused_and_others_are_not(tmp_path: Any) -> None:
    """By owner, whatever keys he has; a key may be slower still. The refusal says when to come."""
    url = f"sqlite:///{tmp_path / 'sluice.db'}"
    settings = settings_for(url, auth="keys", owner_requests_per_s=1)
    with serving(settings, open_engine=long_here_engine) as live:
        store = live.service.context.store
        several = [create_key(store.of(MINE), "a", KeyScope.READ).secret for _ in range(3)]
        other = create_key(store.of(THEIRS), "b", KeyScope.READ).secret
        gate: Gate = live.app.state.gate
        wait_until(lambda: all(gate.by_secret(one.encode()) for one in (*several, other)))
        answers = [live.client.get("/limits", headers=bearer(one)) for one in several * 4]
        refused = [one for one in answers if one.status_code == 429]
        assert 0 < len(refused) < len(answers)
        assert refused[-1].json()["code"] == "rate_limited"
        assert int(refused[-1].headers["retry-after"]) >= 1
        assert refused[-1].headers["ratelimit-policy"] == '"key";q=1;w=1'
        assert live.client.get("/limits", headers=bearer(other)).status_code == 200
        assert live.client.get("/healthz", headers=bearer(several[0])).status_code == 200


def test_an_owner_has_so_many_jobs_that_wait(tmp_path: Any) -> None:
    """Another one's are accepted."""
    url = f"sqlite:///{tmp_path / 'sluice.db'}"
    settings = settings_for(url, auth="keys", owner_waiting_jobs=2, run_jobs=False)
    with serving(settings, open_engine=long_here_engine) as live:
        mine, other = (key_of(live, owner, "write") for owner in (MINE, THEIRS))

        def start(secret: str, message_bytes: int) -> httpx.Response:
            body = {"pipeline": MYRINET, "message_bytes": message_bytes}
            sent = {**bearer(secret), "prefer": "respond-async"}
            return live.client.post("/optimize", json=body, headers=sent)

        assert [start(mine, 4096 + i).status_code for i in range(3)] == [202, 202, 429]
        refused = start(mine, 9000)
        assert (refused.json()["code"], refused.headers["retry-after"]) == ("quota_exceeded", "10")
        assert start(mine, 4096).status_code == 202  # the same question is the same job
        assert start(other, 4096).status_code == 202


# --- proxies --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("peer", "headers", "is_known"),
    [
        ("10.1.2.3", {"x-sluice-owner": "team-a"}, True),
        ("10.1.2.3", {"x-sluice-owner": "team-a", "x-sluice-scope": "write"}, True),
        ("10.1.2.3", {"x-sluice-owner": "team-a", "x-sluice-scope": "all"}, False),
        ("10.1.2.3", {"x-sluice-owner": "../a"}, False),
        ("10.1.2.3", {"x-sluice-owner": "a\xe9"}, False),
        ("10.1.2.3", {}, False),
        ("127.0.0.1", {"x-sluice-owner": "team-a"}, False),
        ("", {"x-sluice-owner": "team-a"}, False),
    ],
)
def test_who_somebody_is_says_a_trusted_proxy_alone(
    peer: str, headers: dict[str, str], is_known: bool
) -> None:
    """By the address of the connection; and in the mode that is for it."""
    settings = Settings(auth="proxy", trusted_proxies="10.0.0.0/8")
    gate = Gate(settings, FastPath(TableCache(0)))
    scope: dict[str, Any] = {
        "method": "GET",
        "path": "/profiles",
        "headers": [(name.encode(), text.encode("latin-1")) for name, text in headers.items()],
        "client": ("203.0.113.9", 1),
        "sluice.peer": (peer, 1),
    }
    gate.answer(scope)
    found = admitted_of(scope)
    assert (found is not None) == is_known
    if found is not None:
        assert found.owner == "team-a"
        assert found.scope.value == headers.get("x-sluice-scope", "read")
    for other in (Settings(auth="keys", trusted_proxies="10.0.0.0/8"), Settings(auth="proxy")):
        asked = dict(scope)
        Gate(other, FastPath(TableCache(0))).answer(asked)
        assert admitted_of(asked) is None


def test_the_peer_is_that_of_the_connection() -> None:
    """What came in the request under that name does not count."""
    seen: list[object] = []

    async def app(scope: Any, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        seen.append(scope["sluice.peer"])

    told: Any = with_peer(app)
    asyncio.run(told({"type": "http", "client": ("10.0.0.1", 5), "sluice.peer": 1}, None, None))
    assert seen == [("10.0.0.1", 5)]


# --- without keys ---------------------------------------------------------------------------------


def test_nobody_is_asked_by_default(client: httpx.Client) -> None:
    """The embedded default; keys mean nothing there, and cannot be made for later."""
    assert client.get("/profiles", headers=bearer("slk_any")).status_code == 200
    for answer in (client.get("/keys"), client.post("/keys", json={"name": "a", "scope": "read"})):
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    page = client.get("/ui/sign-in")
    assert "asks nobody" in page.text
    assert client.post("/ui/sign-in", data={"key": "slk_any"}).status_code == 401


@pytest.mark.parametrize("path", ["/keys", "/keys/x", "/keys/x/rotation", "/metrics"])
def test_scopes_are_told_by_paths(path: str) -> None:
    """Of what is below a path too, and of no path that only begins so."""
    assert scope_of("GET", path) is KeyScope.ADMIN
    assert scope_of("GET", path.replace("keys", "keyset").replace("metrics", "x")) is KeyScope.READ
    assert scope_of("DELETE", "/keyset") is KeyScope.WRITE


def test_an_application_without_keys_has_no_gate() -> None:
    """Nor does its document speak of any."""
    app = create_app(Settings(database_url="sqlite:///nowhere/x.db"))
    assert app.state.gate is None
    assert "securitySchemes" not in app.openapi()["components"]
