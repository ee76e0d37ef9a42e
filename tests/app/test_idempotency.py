"""Requests under a key are answered once, and changes are made in the state that is expected."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.errors import RETRY_AFTER_S
from app.jobs import ledger
from domain.errors import StoreUnavailable
from models.repositories import RequestKeyRepository
from models.session import create_store
from tests.app.serving import GUARD_S, MYRINET, Live, serving, settings_for, wait_for_end
from tests.support.counts import count, is_campaign
from tests.support.long_work import long_here_engine

ROOT = Path(__file__).parents[2]
ASYNC = {"Prefer": "respond-async"}


def asked(message_bytes: int = 4096, **more: Any) -> dict[str, Any]:
    return {"message_bytes": message_bytes, "pipeline": MYRINET, **more}


def named(key: str, **more: str) -> dict[str, str]:
    return {"Idempotency-Key": key, **more}


def told(response: httpx.Response) -> tuple[int, bytes, str | None, str | None]:
    """All of an answer that has to come again."""
    headers = response.headers
    return response.status_code, response.content, headers.get("location"), headers.get("etag")


PROFILE = {"name": "once", "pipeline": MYRINET}
REVISION = {"pipeline": MYRINET}
ROWS = (f"{size},{place},{1 + size / 100}\n" for size in (64, 128, 256) for place in range(3))
FIT = "message_bytes,repetition,copy_us\n" + "".join(ROWS)


class TestOnce:
    def test_every_operation_that_stores_is_done_once(self, own: Live) -> None:
        """Repeated, each gets its status, headers and body again, and stores nothing more."""
        post = own.client.post
        calls: dict[str, Callable[[dict[str, str]], httpx.Response]] = {
            "optimize": lambda more: post("/optimize", json=asked(), headers=more),
            "saved": lambda more: post("/optimize", json=asked(save_as="saved"), headers=more),
            "job": lambda more: post("/optimize", json=asked(5000), headers={**ASYNC, **more}),
            "profile": lambda more: post("/profiles", json=PROFILE, headers=more),
            "current": lambda more: post(
                "/profiles/gms/current", json={"revision": 1}, headers=more
            ),
            "fit": lambda more: post(
                "/fit?save_as=fitted", content=FIT, headers={"Content-Type": "text/csv", **more}
            ),
            "table": lambda more: post(
                "/profiles/gms/tables",
                json={"min_message_bytes": 1000, "max_message_bytes": 1100},
                headers=more,
            ),
        }
        for key, call in calls.items():
            first = call(named(key))
            assert first.status_code in (200, 201, 202), (key, first.text)
            assert "idempotent-replayed" not in first.headers
            if first.status_code == 202:  # what the job stores is not what the repetition does
                wait_for_end(own.client, first.headers["location"])
            before = own.stored()
            revisions = own.client.get("/profiles").json()
            again = call(named(key))
            assert told(again) == told(first), key
            assert again.headers["idempotent-replayed"] == "true"
            assert (own.stored(), own.client.get("/profiles").json()) == (before, revisions)
        assert own.client.post("/profiles", json=PROFILE).status_code == 409

    def test_another_request_is_refused(self, own: Live) -> None:
        """Another body, path, query or preference; neither more nor less of the same."""
        post = own.client.post
        assert post("/optimize", json=asked(), headers=named("k")).status_code == 200
        others = (
            post("/optimize", json=asked(4097), headers=named("k")),
            post("/optimize", json=asked(), headers=named("k", **ASYNC)),
            post("/optimize", content=json.dumps(asked()) + " ", headers=named("k")),
            post("/optimize", content=json.dumps(asked())[:-1], headers=named("k")),
            post("/compare", json=asked(), headers=named("k")),
        )
        for refused in others:
            assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
        assert post("/optimize", json=asked(), headers=named("k")).status_code == 200
        assert post("/optimize", json=asked(), headers=named("K")).status_code == 200

    @pytest.mark.parametrize("key", ["", "a b", "é", "a" * 256, "tab\there"])
    def test_what_is_no_key(self, live: Live, key: str) -> None:
        headers = [(b"Idempotency-Key", key.encode("latin-1"))]
        refused = live.client.post("/optimize", json=asked(), headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (400, "malformed_idempotency_key")

    def test_two_keys_are_none(self, live: Live) -> None:
        headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
        assert live.client.post("/optimize", json=asked(), headers=headers).status_code == 400

    def test_what_was_refused_is_not_kept(self, own: Live, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing was done: the key is free for the request once it is put right."""
        post = own.client.post
        for body in (asked(0), {"message_bytes": 1, "profile": "unknown"}):
            for _ in range(2):
                refused = post("/optimize", json=body, headers=named("k"))
                assert refused.status_code in (404, 422)
                assert refused.json()["code"] != "idempotency_key_reused"
        assert post("/optimize", json=asked(), headers=named("k")).status_code == 200

        # An answer that could not be kept is rolled back with what was to be stored.
        def away(*_: object) -> None:
            raise StoreUnavailable("the database is away")

        with monkeypatch.context() as patched:
            patched.setattr(RequestKeyRepository, "complete", away)
            refused = post("/profiles", json=PROFILE, headers=named("p"))
            assert refused.status_code == 503
        assert own.client.get("/profiles/once").status_code == 404
        assert post("/profiles", json=PROFILE, headers=named("p")).status_code == 201

    def test_one_that_is_under_way(self, own: Live, monkeypatch: pytest.MonkeyPatch) -> None:
        """409 and a time to try again, while its process lives; then another one takes it over."""
        post = own.client.post
        store = own.service.context.store
        mine = ledger.KeyClaim("local", "k", "t" * 32, ledger.this_process())
        ledger.claim_key(store, mine)
        busy = post("/profiles", json=PROFILE, headers=named("k"))
        assert (busy.status_code, busy.json()["code"]) == (409, "idempotency_key_in_flight")
        assert busy.headers["retry-after"] == "1"
        assert own.client.get("/profiles/once").status_code == 404
        monkeypatch.setattr(ledger, "KEY_LEASE_S", -1.0)
        assert post("/profiles", json=PROFILE, headers=named("k")).status_code == 201
        assert not ledger.touch_key(store, mine)

    def test_a_day_later_it_is_done_again(self, own: Live, monkeypatch: pytest.MonkeyPatch) -> None:
        post = own.client.post
        assert post("/profiles", json=PROFILE, headers=named("k")).status_code == 201
        monkeypatch.setattr(ledger, "KEPT_S", -1.0)
        assert post("/profiles", json=PROFILE, headers=named("k")).status_code == 409
        assert ledger.sweep_keys(own.service.context.store) == 0  # nothing of a refusal stays


# --- many at once, and a kill ---------------------------------------------------------------------


@contextmanager
def service(url: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A service as a process that accepts jobs and runs none, and its address."""
    environment = {
        **os.environ,
        "SLUICE_DATABASE_URL": url,
        "SLUICE_WORKERS": "1",
        "SLUICE_RUN_JOBS": "0",
        "SLUICE_DRAIN_S": "0",
    }
    child = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--json"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert child.stdout is not None
        yield child, json.loads(child.stdout.readline())["address"]
    finally:
        child.kill()
        child.communicate()


@dataclass
class Asking:
    """Many requests at once, each key several times; what each key was answered in the end."""

    keys: int
    times: int
    answers: dict[int, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    statuses: Counter[int] = field(default_factory=Counter)

    def all(self, address: str, *, victim: subprocess.Popen[str] | None = None) -> None:
        """Ask for all; where there is a victim it is killed once a third is answered."""
        asked_for = [key for key in range(self.keys) for _ in range(self.times)]
        with (
            httpx.Client(base_url=address, timeout=GUARD_S) as client,
            ThreadPoolExecutor(self.times) as pool,
        ):
            found = [pool.submit(self.one, client, key) for key in asked_for]
            if victim is not None:
                found[len(found) // 3].result()
                victim.kill()
            for one in found:
                one.result()

    def one(self, client: httpx.Client, key: int) -> None:
        """Ask until there is an answer, or the service is gone."""
        headers = named(f"key-{key}", **ASYNC)
        while True:
            try:
                response = client.post("/optimize", json=asked(10_000 + key), headers=headers)
            except httpx.TransportError:
                return
            self.statuses[response.status_code] += 1
            if response.status_code == 202:
                self.answers[key].add(response.content)
                return
            assert int(response.headers["retry-after"]) in RETRY_AFTER_S
            time.sleep(0.05)  # less than it says: it is to be met while it is under way

    def check(self, url: str) -> None:
        """Each key has one answer, which is its job, and there are no other jobs."""
        assert set(self.statuses) <= {202, 409, 503}
        assert [len(self.answers[key]) for key in range(self.keys)] == [1] * self.keys
        said = {json.loads(body)["id"] for (body,) in self.answers.values()}
        store = create_store(url)
        with store.reading() as unit:
            jobs = [job.id for job in unit.jobs.list(limit=10 * self.keys)]
        store.dispose()
        assert len(jobs) == self.keys
        assert set(jobs) == said


def test_each_key_is_one_job(database_url: str) -> None:
    """Of many requests at once: as many jobs as keys, every answer to a key the same bytes."""
    asking = Asking(*((1000, 20) if is_campaign() else (50, 10)))
    settings = settings_for(database_url, run_jobs=False)
    with serving(settings, open_engine=long_here_engine) as running:
        asking.all(f"http://127.0.0.1:{running.port}")
    asking.check(database_url)


def test_each_key_is_one_job_across_a_kill(database_url: str) -> None:
    """What was answered before is answered again, what was under way is done once."""
    asking = Asking(*((1000, 20) if is_campaign() else (15, 4)))
    with service(database_url) as (child, address):
        asking.all(address, victim=child)
    settings = settings_for(database_url, run_jobs=False)
    with serving(settings, open_engine=long_here_engine) as running:
        asking.all(f"http://127.0.0.1:{running.port}")
    asking.check(database_url)


def test_an_answer_that_is_lost_on_its_way_is_given_again(database_url: str) -> None:
    """The connection is cut once the answer has begun, or sooner; asked again, one job each."""
    asking = Asking(count(1000), 1)
    settings = settings_for(database_url, run_jobs=False)
    with serving(settings, open_engine=long_here_engine) as running:
        with ThreadPoolExecutor(8) as pool:
            cut = pool.map(lambda key: _cut_off(running.port, key), range(asking.keys))
            assert sum(cut) >= asking.keys // 2  # its job was there when it was lost
        asking.all(f"http://127.0.0.1:{running.port}")
    asking.check(database_url)


def _cut_off(port: int, key: int) -> bool:
    """Ask as `Asking` does, and close the connection; whether an answer had begun."""
    body = httpx.Request("POST", "http://x", json=asked(10_000 + key)).content  # the same bytes
    head = (
        "POST /optimize HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        f"prefer: respond-async\r\nidempotency-key: key-{key}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), GUARD_S) as connection:
        connection.sendall(head.encode() + body)
        return key % 4 != 0 and len(connection.recv(1)) == 1


# --- If-Match -------------------------------------------------------------------------------------


class TestIfMatch:
    def test_a_profile_is_changed_only_in_the_state_that_is_named(self, own: Live) -> None:
        """Each answer has the tag of the new state; what was refused changed nothing."""
        client = own.client
        made = client.post("/profiles", json=PROFILE)
        first = client.get("/profiles/once").headers["etag"]
        assert made.headers["etag"] == first
        held = client.get("/profiles/once", headers={"If-None-Match": first})
        assert held.status_code == 304
        revised = client.put("/profiles/once", json=REVISION, headers={"If-Match": first})
        second = revised.headers["etag"]
        assert (revised.status_code, revised.json()["revision"]) == (200, 2)
        assert client.get("/profiles/once").headers["etag"] == second != first
        for wanted in (first, f"W/{second}", '"x"', '*, "x"', ""):
            headers = {"If-Match": wanted}
            for refused in (
                client.put("/profiles/once", json=REVISION, headers=headers),
                client.post("/profiles/once/current", json={"revision": 1}, headers=headers),
                client.delete("/profiles/once", headers=headers),
            ):
                assert (refused.status_code, refused.json()["code"]) == (412, "precondition_failed")
        assert client.get("/profiles/once").headers["etag"] == second
        back = client.post(
            "/profiles/once/current", json={"revision": 1}, headers={"If-Match": f'"x", {second}'}
        )
        assert (back.status_code, back.json()["revision"]) == (200, 1)
        assert client.delete("/profiles/once", headers={"If-Match": "*"}).status_code == 204
        unknown = client.put("/profiles/once", json=REVISION, headers={"If-Match": "*"})
        assert unknown.status_code == 404

    def test_an_answer_is_described_only_in_the_state_that_is_named(self, own: Live) -> None:
        """Its tag is of its name and note too; its bytes stay the same, and are not sent again."""
        client = own.client
        path = f"/optimizations/{client.post('/optimize', json=asked(4099)).json()['id']}"
        whole = client.get(path)
        first = whole.headers["etag"]
        assert client.get(path, headers={"If-None-Match": first}).status_code == 304
        named = client.patch(path, json={"name": "NIC x2"}, headers={"If-Match": first})
        second = named.headers["etag"]
        assert (named.status_code, named.json()["name"]) == (200, "NIC x2")
        again = client.get(path, headers={"If-None-Match": first})
        assert (again.content, again.headers["etag"]) == (whole.content, second)
        assert second != first
        for wanted in (first, f"W/{second}", '"x"'):
            refused = client.patch(path, json={"note": "lost"}, headers={"If-Match": wanted})
            assert (refused.status_code, refused.json()["code"]) == (412, "precondition_failed")
        noted = client.patch(path, json={"note": "kept"}, headers={"If-Match": second})
        assert (noted.json()["name"], noted.json()["note"]) == ("NIC x2", "kept")
        same = client.patch(path, json={"note": "kept"}, headers={"If-Match": "*"})
        assert same.headers["etag"] == noted.headers["etag"] == client.get(path).headers["etag"]

    def test_a_table_is_activated_only_in_the_place_of_the_one_that_is_named(
        self, own: Live
    ) -> None:
        client, path = own.client, "/profiles/gms/table"
        digests = []
        for size in (1000, 2000):
            body = {"min_message_bytes": size, "max_message_bytes": size + 50, "activate": False}
            digests.append(client.post("/profiles/gms/tables", json=body).json()["digest"])
        first, second = ({"digest": digest} for digest in digests)
        assert client.post(path, json=first, headers={"If-Match": "*"}).status_code == 412
        assert client.post(path, json=first).status_code == 200
        tag = client.get(path).headers["etag"]
        assert client.post(path, json=second, headers={"If-Match": '"x"'}).status_code == 412
        assert client.get(path).headers["etag"] == tag
        assert client.post(path, json=second, headers={"If-Match": tag}).status_code == 200
        assert client.post(path, json=first, headers={"If-Match": tag}).status_code == 412
        assert client.get(path).json()["digest"] == second["digest"]
