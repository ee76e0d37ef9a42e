"""The example of a proxy that signs people in, between a browser, a provider and a service."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from app.questions.keys import create_key
from models.records import KeyScope
from tests.app.access_support import bearer
from tests.app.serving import GUARD_S, MYRINET, Live, serving, settings_for
from tests.support.long_work import long_here_engine

ROOT = Path(__file__).parents[2]
HTML = {"accept": "text/html"}


class Provider(ThreadingHTTPServer):
    """An OpenID provider at which whoever comes is signed in as `claims` say."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _ProviderHandler)
        self.issuer = f"http://127.0.0.1:{self.server_address[1]}"
        self.claims: dict[str, Any] = {}
        self.asked: dict[str, dict[str, str]] = {}  # by code


class _ProviderHandler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        if place.path == "/.well-known/openid-configuration":
            names = ("issuer", "authorization_endpoint", "token_endpoint")
            ends = ("", "/authorize", "/token")
            self._send(
                {name: self.server.issuer + end for name, end in zip(names, ends, strict=True)}
            )
            return
        asked = {name: values[0] for name, values in parse_qs(place.query).items()}
        code = f"code{len(self.server.asked)}"
        self.server.asked[code] = asked
        self.send_response(302)
        back = urlencode({"code": code, "state": asked["state"]})
        self.send_header("location", f"{asked['redirect_uri']}?{back}")
        self.end_headers()

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        sent = {name: one[0] for name, one in parse_qs(self.rfile.read(length).decode()).items()}
        asked = self.server.asked.pop(sent["code"])
        digest = hashlib.sha256(sent["code_verifier"].encode()).digest()
        assert asked["code_challenge"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        assert sent["client_secret"] == "secret"
        claims = {
            "iss": self.server.issuer,
            "aud": asked["client_id"],
            "exp": time.time() + 60,
            "nonce": asked["nonce"],
            **self.server.claims,
        }
        parts = ({"alg": "RS256"}, claims)
        token = ".".join(
            base64.urlsafe_b64encode(json.dumps(one).encode()).decode() for one in parts
        )
        self._send({"id_token": f"{token}.signature"})

    def _send(self, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def provided() -> Iterator[Provider]:
    """A provider until the block ends."""
    provider = Provider()
    thread = threading.Thread(target=provider.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield provider
    finally:
        provider.shutdown()
        thread.join()
        provider.server_close()


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, Provider, str]]:
    """A service that trusts the proxy, the provider, and the proxy's address."""
    url = f"sqlite:///{tmp_path_factory.mktemp('signed') / 'sluice.db'}"
    settings = settings_for(url, auth="proxy", trusted_proxies="127.0.0.1")
    with serving(settings, open_engine=long_here_engine) as live, provided() as provider:
        proxy = subprocess.Popen(
            [
                *(sys.executable, str(ROOT / "examples/oidc_proxy.py"), "--port", "0"),
                *("--upstream", f"127.0.0.1:{live.port}"),
            ],
            env={
                **os.environ,
                "OIDC_ISSUER": provider.issuer,
                "OIDC_CLIENT_ID": "sluice",
                "OIDC_CLIENT_SECRET": "secret",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert proxy.stdout is not None
            yield live, provider, proxy.stdout.readline().strip()
        finally:
            proxy.kill()
            proxy.communicate()


def browser(proxy: str) -> httpx.Client:
    """A browser that nobody knows yet."""
    return httpx.Client(base_url=proxy, timeout=GUARD_S, follow_redirects=True)


def test_a_person_signs_in_and_is_that_owner(signed: tuple[Live, Provider, str]) -> None:
    """With the scope that the provider says, `read` without one, and back at the page asked for."""
    live, provider, proxy = signed
    profile = {"name": "by-hand", "pipeline": MYRINET}
    for claims, status in (
        ({"sluice_owner": "team-a", "sluice_scope": "write"}, 201),
        ({"sluice_owner": "team-b"}, 403),
    ):
        provider.claims = claims
        with browser(proxy) as person:
            page = person.get("/ui/profiles", headers=HTML)
            assert (page.status_code, page.url.path) == (200, "/ui/profiles")
            assert person.post("/profiles", json=profile).status_code == status
            found = person.get("/profiles").json()["items"]
            assert [one["name"] for one in found] == (["by-hand"] if status == 201 else [])
    with live.service.context.store.of("team-a").reading() as unit:
        (change,) = unit.changes.list(subject="by-hand", limit=9)
    assert (change.made_by, change.action, change.key_id) == ("proxy", "profile.create", None)


def test_what_a_client_says_of_itself_does_not_count(signed: tuple[Live, Provider, str]) -> None:
    """Nobody is whom a header names, with a session or without; programs come with keys."""
    live, provider, proxy = signed
    said = {"x-sluice-owner": "team-a", "X-Sluice-Scope": "admin"}
    with browser(proxy) as stranger:
        assert stranger.get("/profiles", headers=said).status_code == 401
        assert stranger.post("/profiles", json={}, headers=said).status_code == 401
        key = create_key(live.service.context.store.of("program"), "p", KeyScope.READ)
        for _ in range(100):
            answer = stranger.get("/profiles", headers={**said, **bearer(key.secret)})
            if answer.status_code == 200:
                break
            time.sleep(0.05)
        assert len(answer.json()["items"]) > 3  # the owner's own, of the papers
        assert stranger.get("/keys", headers={**said, **bearer(key.secret)}).status_code == 403
    provider.claims = {"sluice_owner": "team-c"}
    with browser(proxy) as person:
        assert person.get("/ui/profiles", headers=HTML).status_code == 200
        assert person.get("/profiles", headers=said).json()["items"] == []
        assert person.get("/keys", headers=said).status_code == 403


def test_every_method_of_the_service_is_handed_on(signed: tuple[Live, Provider, str]) -> None:
    """Such as PATCH, which names an answer; what is refused is refused by the service."""
    _, provider, proxy = signed
    provider.claims = {"sluice_owner": "team-d", "sluice_scope": "write"}
    with browser(proxy) as person:
        person.get("/ui/profiles", headers=HTML)
        document = person.get("/openapi.json").json()
        for method in {method for path in document["paths"].values() for method in path}:
            assert person.request(method, "/nowhere").status_code == 404


@pytest.mark.parametrize("lengths", [("{0}", "0"), ("0", "{0}"), ("{0}", "{0}"), ("\xb2",)])
def test_a_request_in_the_body_of_another_is_none(
    signed: tuple[Live, Provider, str], lengths: tuple[str, ...]
) -> None:
    """However often, and however differently, a client says how long its body is."""
    live, _, proxy = signed
    profile = json.dumps({"name": "smuggled", "pipeline": MYRINET})
    inner = (
        "POST /profiles HTTP/1.1\r\nHost: sluice\r\nX-Sluice-Owner: victim\r\n"
        "X-Sluice-Scope: admin\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(profile)}\r\n\r\n{profile}"
    )
    said = "".join(f"Content-Length: {one.format(len(inner))}\r\n" for one in lengths)
    outer = f"POST /optimize HTTP/1.1\r\nHost: sluice\r\nAuthorization: Bearer x\r\n{said}\r\n"
    with socket.create_connection(("127.0.0.1", urlsplit(proxy).port or 0), GUARD_S) as client:
        client.sendall((outer + inner).encode("latin-1"))
        client.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(partial(client.recv, 65536), b""))
    assert answer.startswith(b"HTTP/1.1 413")
    with live.service.context.store.of("victim").reading() as unit:
        assert "smuggled" not in {one.name for one in unit.profiles.list(limit=99)}


@pytest.mark.parametrize(
    "claims",
    [
        {"sluice_owner": "team-a", "aud": "another"},
        {"sluice_owner": "team-a", "aud": ["sluice", "another"]},
        {"sluice_owner": "team-a", "aud": ["sluice", "another"], "azp": "another"},
        {"sluice_owner": "team-a", "iss": "http://elsewhere"},
        {"sluice_owner": "team-a", "exp": 1.0},
        {"sluice_owner": "team-a", "nonce": "of another"},
        {},
        {"sluice_owner": ["team-a", "team-b"]},
    ],
)
def test_a_token_that_is_not_for_us_signs_nobody_in(
    signed: tuple[Live, Provider, str], claims: dict[str, Any]
) -> None:
    """Of another audience, issuer, time or request, or of nobody."""
    _, provider, proxy = signed
    provider.claims = claims
    with browser(proxy) as person:
        assert person.get("/ui/profiles", headers=HTML).status_code == 403
        assert person.get("/profiles").status_code == 401


def test_an_answer_to_another_browser_signs_nobody_in(signed: tuple[Live, Provider, str]) -> None:
    """Its state is in a cookie of the one that asked, and counts once."""
    _, provider, proxy = signed
    provider.claims = {"sluice_owner": "team-a"}
    with httpx.Client(base_url=proxy, timeout=GUARD_S) as one, browser(proxy) as other:
        asked = one.get("/ui/profiles", headers=HTML)
        back = httpx.get(asked.headers["location"]).headers["location"]
        assert other.get(back).status_code == 400
        assert one.get(back).status_code == 302
        assert one.get(back).status_code == 400
        assert one.get("/profiles").status_code == 200
        assert other.get("/profiles").status_code == 401


def test_an_owner_that_is_none_is_refused(signed: tuple[Live, Provider, str]) -> None:
    """By the service, whatever the provider says."""
    _, provider, proxy = signed
    provider.claims = {"sluice_owner": "Team A"}
    with browser(proxy) as person:
        assert person.get("/ui/profiles", headers=HTML).status_code == 401
