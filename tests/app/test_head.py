"""HEAD: the status and the headers of GET, and no body, whichever route answers."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import MutableMapping
from typing import Any

import httpx

from app.http.app import Outermost
from app.http.metrics import Metrics
from tests.app.lookup_support import warm
from tests.app.serving import LARGE, LARGE_BYTES, MYRINET, Live, wait_until

PAGE = {"Accept": "text/html"}
COMPILED = {"min_message_bytes": 1000, "max_message_bytes": 2000}
ASKED = (
    ("/", PAGE, 200),
    ("/ui/answers", PAGE, 200),
    ("/ui/no-such-view", PAGE, 404),
    ("/docs", PAGE, 200),
    ("/ICON", {"Accept-Encoding": "gzip"}, 200),
    ("/ICON", {"Accept-Encoding": "identity"}, 200),
    ("/openapi.json", {}, 200),
    ("/limits", {}, 200),
    ("/limits?odd=1", {}, 422),
    ("/profiles/gms", {}, 200),
    ("/exports", {}, 200),
    ("/exports", {"If-None-Match": "*"}, 304),
    ("/profiles/no-such-profile", {}, 404),
    ("/optimize", {}, 405),
    # In front of the framework, once the table is in the cache.
    ("/profiles/head/schedule?bytes=1500", {}, 200),
    ("/profiles/head/schedule?bytes=1500", {"If-None-Match": "*"}, 304),
    ("/profiles/head/table?format=slt", {}, 200),
)


def asked(client: httpx.Client, method: str, path: str, sent: dict[str, str]) -> httpx.Response:
    """The answer, without the headers that tell the time and which request it was."""
    answer = client.request(method, path, headers=sent)
    answer.headers.pop("date")
    answer.headers.pop("x-request-id", None)
    return answer


def test_every_kind_of_route(live: Live) -> None:
    """Pages, assets, files, refusals, and lookups that memory answers."""
    stored = {"name": "head", "pipeline": MYRINET}
    assert live.client.post("/profiles", json=stored).status_code == 201
    assert live.client.post("/profiles/head/tables", json=COMPILED).status_code == 201
    warm(live, "head")
    icon = re.search(r'href="/(ui/assets/[0-9a-f]+/icon\.svg)"', live.client.get("/").text)
    assert icon is not None
    for path, sent, status in ASKED:
        path = path.replace("ICON", icon[1])
        whole, reported = (asked(live.client, method, path, sent) for method in ("GET", "HEAD"))
        assert (reported.status_code, whole.status_code) == (status, status), path
        assert reported.headers.multi_items() == whole.headers.multi_items(), path
        assert reported.content == b"", path


def test_every_path_with_get_has_it(live: Live) -> None:
    """Also those that are added later; and where it is refused, no other is promised."""
    operations = live.app.openapi()["paths"]
    methods = {path: {method.upper() for method in found} for path, found in operations.items()}
    for path, found in live.app.state.page_methods.items():
        methods.setdefault(path, set()).update(found)
    assert len(methods) > 40
    for path, found in methods.items():
        filled = re.sub(r"{\w+}", "x", path)
        refused = live.client.request("LINK", filled, headers={"Accept": "application/json"})
        allowed = refused.headers["allow"].split(", ")
        assert ("HEAD" in allowed) == ("GET" in found), path
        reported = live.client.head(filled)
        assert reported.content == b"", path
        assert (reported.status_code == 405) == ("GET" not in found), path


def test_of_an_event_stream_the_headers(live: Live) -> None:
    """At once, though the job goes on; and the stream is closed."""
    body = {"pipeline": LARGE, "message_bytes": LARGE_BYTES + 83}  # which no other test asks
    job = live.client.post("/optimize", json=body, headers={"Prefer": "respond-async"})
    assert job.status_code == 202
    events = f"{job.headers['location']}/events"
    reported = live.client.head(events)
    assert (reported.status_code, reported.content) == (200, b"")
    assert reported.headers["content-type"].startswith("text/event-stream")
    wait_until(lambda: live.service.counts.open_streams == 0)
    live.client.delete(job.headers["location"])


def test_it_is_counted_as_itself(live: Live) -> None:
    """By its route."""
    live.client.head("/limits")
    counted = live.client.get("/metrics").text
    assert re.search(r'method="HEAD",route="/limits",status="200"', counted)


def test_the_connection_goes_on(live: Live) -> None:
    """No byte follows the headers: what is asked next is answered next."""
    request = "{} /limits HTTP/1.1\r\nHost: localhost\r\n{}\r\n"
    with socket.create_connection(("127.0.0.1", live.port), timeout=30) as connection:
        both = request.format("HEAD", "") + request.format("GET", "Connection: close\r\n")
        connection.sendall(both.encode())
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    head, get, document = received.split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert get.startswith(b"HTTP/1.1 200")
    assert b"content-length: %d\r" % len(document) in head


def test_an_unexpected_error() -> None:
    """500, without a body as well, also where the server leaves that to the application."""
    sent: list[dict[str, Any]] = []

    async def broken(scope: object, receive: object, send: object) -> None:
        raise RuntimeError("secret")

    async def keep(message: MutableMapping[str, Any]) -> None:
        sent.append(dict(message))

    scope = {"type": "http", "method": "HEAD", "path": "/x", "headers": []}
    asyncio.run(Outermost(broken, Metrics())(scope, nothing, keep))
    start, end = sent
    assert start["status"] == 500
    assert end == {"type": "http.response.body", "body": b""}


async def nothing() -> MutableMapping[str, Any]:
    """The body of such a request."""
    return {"type": "http.request", "body": b"", "more_body": False}
