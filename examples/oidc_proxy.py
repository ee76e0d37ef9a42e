"""A reverse proxy that signs people in by OpenID Connect and says to a Sluice who they are.

    SLUICE_AUTH=proxy SLUICE_TRUSTED_PROXIES=127.0.0.1 sluice serve
    OIDC_ISSUER=https://id.example.org OIDC_CLIENT_ID=sluice OIDC_CLIENT_SECRET=... \\
        python3 examples/oidc_proxy.py --port 8081 --upstream 127.0.0.1:8080

It shows all that such a proxy has to do, in the standard library alone: the authorization code flow
with PKCE (OpenID Connect Core 1.0, section 3.1; RFC 7636), the claims that have to be checked, and
that both headers are removed from what clients send. The claim `sluice_owner` is the owner, and
`sluice_scope` the scope, `read` without it. What carries `Authorization` goes on as it is: that is
a program with a key. Sessions are in memory, answers are handed on whole, and there is no TLS: in
production put oauth2-proxy behind nginx, or whatever signs people in already.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import http.client
import json
import os
import secrets
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CALLBACK, COOKIE = "/oidc/callback", "proxy_session"
PENDING_S, SESSION_S, MAX_PENDING = 600.0, 3600.0, 10_000
LIMIT_S, MAX_BYTES = 30.0, 16 * 2**20
# Only the proxy says these, and what belongs to one connection is not handed on: of two lengths the
# service would believe the other one, and take the end of a body for a request of anyone's.
OWN = {"x-sluice-owner", "x-sluice-scope", "x-forwarded-for"}
HOP = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
HOP |= {"content-length"}

Headers = Sequence[tuple[str, str]]


class Provider:
    """An OpenID provider, as its discovery document describes it."""

    def __init__(self, issuer: str, client_id: str, client_secret: str) -> None:
        self.issuer, self.client_id, self._secret = issuer.rstrip("/"), client_id, client_secret
        place = f"{self.issuer}/.well-known/openid-configuration"
        with urllib.request.urlopen(place, timeout=LIMIT_S) as answer:
            self.places = json.load(answer)
        if self.places["issuer"].rstrip("/") != self.issuer:
            raise ValueError("the provider's document names another issuer")

    def address(self, back: str, state: str, nonce: str, verifier: str) -> str:
        """Return where to send a browser that is to sign in."""
        digest = hashlib.sha256(verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "scope": "openid",
            "client_id": self.client_id,
            "redirect_uri": back,
            "state": state,
            "nonce": nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        return f"{self.places['authorization_endpoint']}?{urllib.parse.urlencode(asked)}"

    def claims(self, code: str, back: str, nonce: str, verifier: str) -> dict[str, object]:
        """Exchange a code; return who it is. Raises ValueError for a token that is not for us.

        The token comes straight from the provider, so TLS vouches for it in the place of its
        signature (section 3.1.3.7, 6).
        """
        sent = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": back,
            "client_id": self.client_id,
            "client_secret": self._secret,
            "code_verifier": verifier,
        }
        body = urllib.parse.urlencode(sent).encode()
        with urllib.request.urlopen(self.places["token_endpoint"], body, LIMIT_S) as answer:
            part = json.load(answer)["id_token"].split(".")[1]
        found: dict[str, object] = json.loads(
            base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        )
        audience = found["aud"] if isinstance(found["aud"], list) else [found["aud"]]
        asked_by = found.get("azp", self.client_id if len(audience) == 1 else "")
        is_ours = self.client_id in audience and asked_by == self.client_id
        if str(found["iss"]).rstrip("/") != self.issuer or not is_ours:
            raise ValueError("the token is another one's")
        if float(str(found["exp"])) <= time.time() or found.get("nonce") != nonce:
            raise ValueError("the token is old, or an answer to another request")
        return found


class Proxy(BaseHTTPRequestHandler):
    """One connection of a client. `server` holds the provider, the upstream and the sessions."""

    protocol_version = "HTTP/1.1"
    server: Server

    def handle_any(self) -> None:
        """Sign in, or hand on."""
        path, _, query = self.path.partition("?")
        if path == CALLBACK:
            self._signed_in(urllib.parse.parse_qs(query))
            return
        session = self._session()
        if "authorization" in self.headers:
            self._hand_on({})
        elif session is not None:
            self._hand_on(session)
        elif self.command == "GET" and "text/html" in self.headers.get("accept", ""):
            self._sign_in()
        else:
            self._answer(401, b"sign in first, or send a key\n")

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815

    def _session(self) -> dict[str, str] | None:
        found = SimpleCookie(self.headers.get("cookie", "")).get(COOKIE)
        headers, until_s = self.server.sessions.get(found.value if found else "", ({}, 0.0))
        return headers if until_s > time.time() else None

    def _back(self) -> str:
        return f"http://{self.headers['host']}{CALLBACK}"

    def _sign_in(self) -> None:
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        self.server.remember(state, (nonce, verifier, self.path, time.time() + PENDING_S))
        place = self.server.provider.address(self._back(), state, nonce, verifier)
        # Of this browser: another one's answer must not sign it in.
        cookie = f"proxy_state={state}; HttpOnly; SameSite=Lax; Path={CALLBACK}"
        self._answer(302, b"", [("location", place), ("set-cookie", cookie)])

    def _signed_in(self, query: dict[str, list[str]]) -> None:
        state = query.get("state", [""])[0]
        mine = SimpleCookie(self.headers.get("cookie", "")).get("proxy_state")
        waiting = self.server.pending.pop(state, None) if mine and mine.value == state else None
        if waiting is None or waiting[3] <= time.time() or "code" not in query:
            self._answer(400, b"this is no answer to a request of yours\n")
            return
        nonce, verifier, path, _ = waiting
        path = "/" + path.lstrip("/")  # "//host" would be another host
        try:
            claims = self.server.provider.claims(query["code"][0], self._back(), nonce, verifier)
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            self._answer(403, b"the provider did not say who you are\n")
            return
        if not isinstance(claims.get("sluice_owner"), str):
            self._answer(403, b"you belong to no owner\n")
            return
        headers = {"X-Sluice-Owner": str(claims["sluice_owner"])}
        headers["X-Sluice-Scope"] = str(claims.get("sluice_scope", "read"))
        session = secrets.token_urlsafe(32)
        self.server.sessions[session] = (headers, time.time() + SESSION_S)
        cookie = f"{COOKIE}={session}; HttpOnly; SameSite=Lax; Path=/"
        self._answer(302, b"", [("location", path), ("set-cookie", cookie)])

    def _hand_on(self, who: dict[str, str]) -> None:
        length = ",".join(self.headers.get_all("content-length", ["0"]))
        is_known = length.isdecimal() and "transfer-encoding" not in self.headers
        if not is_known or int(length) > MAX_BYTES:
            self.close_connection = True  # what follows of the body is no request
            self._answer(413, b"say how long the body is, at most 16 MiB\n")
            return
        body = self.rfile.read(int(length)) or None
        sent = {n: v for n, v in self.headers.items() if n.lower() not in OWN | HOP} | who
        sent["X-Forwarded-For"] = self.client_address[0]
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=LIMIT_S)
        try:
            upstream.request(self.command, self.path, body, sent)
            answer = upstream.getresponse()
            kept = [(n, v) for n, v in answer.getheaders() if n.lower() not in HOP]
            self._answer(answer.status, answer.read(), kept)
        except OSError:
            self._answer(502, b"the service does not answer\n")
        finally:
            upstream.close()

    def _answer(self, status: int, body: bytes, headers: Headers = ()) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """What all connections share."""

    daemon_threads = True

    def __init__(self, port: int, upstream: str, provider: Provider) -> None:
        super().__init__(("127.0.0.1", port), Proxy)
        self.upstream, self.provider = upstream, provider
        self.sessions: dict[str, tuple[dict[str, str], float]] = {}
        self.pending: dict[str, tuple[str, str, str, float]] = {}

    def remember(self, state: str, waiting: tuple[str, str, str, float]) -> None:
        """Keep who is about to sign in; the oldest are forgotten first."""
        while len(self.pending) >= MAX_PENDING:
            self.pending.pop(next(iter(self.pending)), None)
        self.pending[state] = waiting


def main() -> int:
    """Serve until it is ended."""
    parser = argparse.ArgumentParser(description="Sign people in and say to Sluice who they are.")
    parser.add_argument("--port", type=int, default=8081)
    parser.add_argument("--upstream", default="127.0.0.1:8080")
    given = parser.parse_args()
    names = ("OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET")
    server = Server(given.port, given.upstream, Provider(*(os.environ[name] for name in names)))
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
