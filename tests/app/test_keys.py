"""Keys: made, exchanged and revoked; browsers that sign in; rates and quotas; proxies."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.http.access import SESSION_COOKIE, Gate, Rate, admitted_of, with_peer
from app.http.dependencies import READER_COOKIE
from app.http.fastpath.fast_path import FastPath, TableCache
from app.questions.keys import create_first_key, create_key, revoke_key
from app.settings import Settings
from app.telemetry import OWNER
from app.verbs.jobs.routes import MAX_EVENT_STREAMS_OF_OWNER
from models.records import KeyScope
from models.session import Store
from tests.app.access_support import FORM, MINE, THEIRS, Guarded, bearer, key_of
from tests.app.serving import MYRINET, serving, settings_for, wait_until
from tests.support.long_work import long_here_engine


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


@pytest.mark.parametrize("auth", ["keys", "proxy"])
@pytest.mark.parametrize("trusted", ["127.0.0.1/32", "192.0.2.0/24"])
def test_cookies_are_secure_where_a_trusted_proxy_says_https(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, auth: str, trusted: str
) -> None:
    """What nobody trusted says does not count, and is warned of once."""
    settings = settings_for(
        f"sqlite:///{tmp_path / 'sluice.db'}", auth=auth, trusted_proxies=trusted
    )
    is_trusted = trusted.startswith("127")
    with serving(settings, open_engine=long_here_engine) as live:
        form = {"key": key_of(live, MINE, "read")}
        with httpx.Client(base_url=f"http://127.0.0.1:{live.port}", timeout=60.0) as browser:
            plain = browser.post("/ui/sign-in", data=form)
            assert "secure" not in plain.headers["set-cookie"].lower()
            assert "SLUICE_TRUSTED_PROXIES" not in caplog.text
            for said in ("http", "HTTPS", "https", "https"):
                proxied = {"x-forwarded-proto": said}
                browser.get("/ui/sign-in", headers=proxied)
                signed = browser.post("/ui/sign-in", data=form, headers=proxied)
                cookie = signed.headers["set-cookie"]
                is_secure = is_trusted and said == "https"
                assert ("; Secure" in cookie) == is_secure, cookie
                known = {SESSION_COOKIE: signed.cookies[SESSION_COOKIE]}
                page = httpx.get(f"http://127.0.0.1:{live.port}/", headers=proxied, cookies=known)
                reader = page.headers["set-cookie"]
                assert reader.startswith(READER_COOKIE)
                assert ("; Secure" in reader, "; HttpOnly" in reader) == (is_secure, True)
            out = browser.post("/ui/sign-out", headers={**FORM, "x-forwarded-proto": "https"})
            assert ("; Secure" in out.headers["set-cookie"]) == is_trusted
    warned = [one for one in caplog.records if "SLUICE_TRUSTED_PROXIES" in one.getMessage()]
    assert len(warned) == (0 if is_trusted else 1)


def test_a_browser_signs_in_and_out(guarded: Guarded) -> None:
    """It gets a key of its own, which no script reads; the key that was typed in is not kept."""
    port = guarded.live.port
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60.0) as browser:
        html = {"accept": "text/html"}
        refused = browser.get("/ui/profiles", headers=html)
        assert refused.status_code == 401
        assert 'action="/ui/sign-in?back=/ui/profiles"' in refused.text
        assert browser.get("/ui/sign-in", headers=html).status_code == 200
        wrong = browser.post("/ui/sign-in", data={"key": "slk_wrong"}, headers=html)
        assert (wrong.status_code, 'action="/ui/sign-in"' in wrong.text) == (401, True)
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


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("/ui/answers?strategy=fixed&limit=5", None),
        ("/ui/profiles/%C5%82%20%22%3E%3Cb%3E", None),
        ("/?bytes=4096", None),
        ("/ui/sign-in?back=//evil.example", "/"),
        ("/ui/sign-in?back=/ui/%5C%0D%0Aset-cookie:a=b", "/"),
    ],
)
def test_a_browser_comes_back_to_where_it_was(
    guarded: Guarded, address: str, place: str | None
) -> None:
    """What a stranger asked for has the form in its place, also after a wrong key."""
    html, key = {"accept": "text/html"}, guarded.mine["read"]
    with httpx.Client(base_url=guarded.live.client.base_url, timeout=60.0) as browser:
        form = browser.get(address, headers=html).text if place is None else f'action="{address}"'
        for typed in ("slk_wrong", key):
            sent_to = re.search(r'action="(/ui/sign-in[^"]*)"', form)
            assert sent_to is not None
            found = browser.post(unescape(sent_to[1]), data={"key": typed}, headers=html)
            form = found.text if place is None else form
        assert (found.status_code, found.headers["location"]) == (303, place or address)


def test_who_is_nobody_fills_no_memory(guarded: Guarded) -> None:
    """Of what all bodies may take together, a stranger gets no more than a key needs."""
    wrong = guarded.live.client.post("/ui/sign-in", data={"key": "x" * 900})
    assert wrong.status_code == 401
    long = guarded.live.client.post("/ui/sign-in", data={"key": "x" * 1024})
    assert (long.status_code, "1024 bytes" in long.text) == (413, True)


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


def test_so_many_browsers_sign_in_by_a_key(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more ends the oldest, and those that have ended leave no rows."""
    monkeypatch.setattr("app.questions.keys.MAX_BROWSERS", 2)
    client, secret = guarded.live.client, key_of(guarded.live, MINE, "read")
    with guarded.store.of(MINE).reading() as unit:
        before = unit.api_keys.count()
    cookies = []
    for _ in range(4):
        entered = client.post("/ui/sign-in", data={"key": secret})
        cookies.append({"cookie": entered.headers["set-cookie"].partition(";")[0]})
        client.cookies.clear()
    found = [client.get("/limits", headers=cookie).status_code for cookie in cookies]
    assert found == [401, 401, 200, 200]
    assert client.post("/ui/sign-out", headers={**cookies[3], **FORM}).status_code == 303
    client.post("/ui/sign-in", data={"key": secret})
    client.cookies.clear()
    assert client.get("/limits", headers=cookies[2]).status_code == 200
    with guarded.store.of(MINE).reading() as unit:
        assert unit.api_keys.count() == before + 2


def test_signing_in_counts_as_asking(tmp_path: Any) -> None:
    """It is open to all, and would else be as often as somebody with a key likes."""
    url = f"sqlite:///{tmp_path / 'sluice.db'}"
    settings = settings_for(url, auth="keys", root_path="/tools", owner_requests_per_s=1)
    with serving(settings, open_engine=long_here_engine) as live:
        made = create_key(live.service.context.store.of(MINE), "a", KeyScope.READ)
        gate: Gate = live.app.state.gate
        wait_until(lambda: gate.by_secret(made.secret.encode()) is not None)
        known = gate.by_secret(made.secret.encode())
        assert known is not None
        entered = live.client.post("/ui/sign-in", data={"key": made.secret})
        assert entered.status_code == 303
        assert "Path=/tools;" in entered.headers["set-cookie"]
        known.rates[0].count(time.monotonic() + 600.0)
        refused = live.client.post("/ui/sign-in", data={"key": made.secret})
        assert (refused.status_code, "set-cookie" in refused.headers) == (429, False)


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


def test_an_owner_follows_so_many_jobs(guarded: Guarded) -> None:
    """Another one follows his all the same."""
    client, job = guarded.live.client, guarded.paths["/jobs/{id}/events"]
    counts = guarded.live.service.counts
    counts.streams_of_owner[THEIRS] = MAX_EVENT_STREAMS_OF_OWNER
    refused = client.get(job, headers=bearer(guarded.theirs))
    assert (refused.status_code, refused.json()["code"]) == (429, "quota_exceeded")
    del counts.streams_of_owner[THEIRS]
    counts.streams_of_owner[MINE] = MAX_EVENT_STREAMS_OF_OWNER
    assert client.get(job, headers=bearer(guarded.theirs)).status_code == 200
    del counts.streams_of_owner[MINE]
    wait_until(lambda: not counts.streams_of_owner)


def test_events_end_with_the_key(tmp_path: Any) -> None:
    """A stream that is open when its key is revoked goes no further; others do."""
    url = f"sqlite:///{tmp_path / 'sluice.db'}"
    settings = settings_for(url, auth="keys", run_jobs=False)
    with serving(settings, open_engine=long_here_engine) as live:
        secrets = [key_of(live, MINE, "write") for _ in range(2)]
        store = live.service.context.store.of(MINE)
        body = {"pipeline": MYRINET, "message_bytes": 4096}
        sent = {**bearer(secrets[0]), "prefer": "respond-async"}
        job = live.client.post("/optimize", json=body, headers=sent).headers["location"]
        with (
            live.client.stream("GET", f"{job}/events", headers=bearer(secrets[0])) as ending,
            live.client.stream("GET", f"{job}/events", headers=bearer(secrets[1])) as staying,
        ):
            ends, stays = ending.iter_lines(), staying.iter_lines()
            assert next(ends) == next(stays) == "id: 1"
            gate: Gate = live.app.state.gate
            known = gate.by_secret(secrets[0].encode())
            assert known is not None
            revoke_key(store, known.key_id)
            assert sum(line.startswith("id:") for line in ends) == 0  # returns: it has ended
            with store.unit_of_work() as unit:
                unit.jobs.cancel(job.rpartition("/")[2])
            assert "event: cancelled" in list(stays)
        assert not gate.still_admits(known)


def test_strangers_are_not_told_the_database(guarded: Guarded, client: httpx.Client) -> None:
    """Where anybody may ask without a key."""
    ready = guarded.live.client.get("/readyz").json()
    assert (ready["status"], ready["database"]) == ("ready", None)
    assert client.get("/readyz").json()["database"] is not None


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


@pytest.mark.parametrize(
    ("more", "peer", "is_known"),
    [
        ([], "::ffff:10.1.2.3", True),
        ([], "::ffff:11.1.2.3", False),
        ([(b"x-sluice-owner", b"team-b")], "10.1.2.3", False),
        ([(b"x-sluice-scope", b"admin"), (b"x-sluice-scope", b"read")], "10.1.2.3", False),
    ],
)
def test_a_proxy_says_it_once(more: list[tuple[bytes, bytes]], peer: str, is_known: bool) -> None:
    """One of two may be the client's. And an address of IPv4 is the same on a socket of IPv6."""
    gate = Gate(Settings(auth="proxy", trusted_proxies="10.0.0.0/8"), FastPath(TableCache(0)))
    scope: dict[str, Any] = {
        "method": "GET",
        "path": "/profiles",
        "headers": [(b"x-sluice-owner", b"team-a"), *more],
        "sluice.peer": (peer, 1),
    }
    OWNER.set("of the request before")
    gate.answer(scope)
    assert (admitted_of(scope) is not None) == is_known
    assert OWNER.get() == ("team-a" if is_known else "")


def test_the_peer_is_that_of_the_connection() -> None:
    """What came in the request under that name does not count."""
    seen: list[object] = []

    async def app(scope: Any, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        seen.append(scope["sluice.peer"])

    told: Any = with_peer(app)
    asyncio.run(told({"type": "http", "client": ("10.0.0.1", 5), "sluice.peer": 1}, None, None))
    assert seen == [("10.0.0.1", 5)]
