"""Length, media type, encoding and time of bodies; judged before anything is parsed."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any

import httpx
import psutil
import pytest
from fastapi import Request

from app.http.bodies import (
    BodyBudget,
    held_body,
    read_json,
)
from app.text.gzipped import FREE_EXPANSION_BYTES, expand
from contract.profiles import CurrentIn
from domain.errors import BodyTooLarge, BodyTooSlow, Overloaded, UnsupportedMediaType
from tests.app.access_support import MINE, Guarded, bearer
from tests.app.serving import GUARD_S, MIB, Live, serving, settings_for

CAP = 4 * MIB
CHUNK = 64 * 1024
CSV = "message_bytes,repetition,a_us\n" + "".join(
    f"{size},{repetition},{1 + size * 0.01 + 0.1 * repetition}\n"
    for size in (64, 512, 4096)
    for repetition in range(4)
)


def raw(port: int, head: bytes, body: Iterator[bytes]) -> bytes:
    """The answer to a request written by hand; what is left to send is given up with the answer."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=GUARD_S)) as connection:
        connection.sendall(head)
        connection.settimeout(0.0)
        for piece in body:
            try:
                if connection.recv(1, socket.MSG_PEEK):
                    break
            except BlockingIOError:
                pass
            connection.settimeout(GUARD_S)
            connection.sendall(piece)
            connection.settimeout(0.0)
        connection.settimeout(GUARD_S)
        return connection.recv(65536)


class TestLength:
    def test_an_honest_length_over_the_limit_is_refused_unread(self, live: Live) -> None:
        """Nothing of the body has to arrive."""
        head = (
            b"POST /optimize HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"content-length: 1073741824\r\n\r\n"
        )
        answer = raw(live.port, head, iter(()))
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"application/problem+json" in answer

    def test_an_absent_length_is_refused_once_the_limit_has_arrived(self, live: Live) -> None:
        head = (
            b"POST /optimize HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )
        piece = b"%x\r\n" % CHUNK + b" " * CHUNK + b"\r\n"
        answer = raw(live.port, head, (piece for _ in range(1024)))
        assert answer.startswith(b"HTTP/1.1 413")

    def test_the_limit_itself_is_accepted(self, client: httpx.Client) -> None:
        body = json.dumps({"message_bytes": 4096, "profile": "gms"}).encode()
        headers = {"content-type": "application/json"}
        padded = body.ljust(CAP)
        assert client.post("/optimize", content=padded, headers=headers).status_code == 200
        over = client.post("/optimize", content=padded + b" ", headers=headers)
        assert over.status_code == 413
        assert over.json()["code"] == "body_too_large"

    def test_a_hundred_large_bodies_at_once(self, live: Live) -> None:
        """They are refused, the others are answered, and little memory is taken."""
        process = psutil.Process()
        before = process.memory_info().rss

        async def flood() -> list[int]:
            limits = httpx.Limits(max_connections=100)
            base = f"http://127.0.0.1:{live.port}"
            async with httpx.AsyncClient(base_url=base, limits=limits, timeout=GUARD_S) as many:
                return await asyncio.gather(*(_endless(many) for _ in range(100)))

        statuses = asyncio.run(flood())
        assert set(statuses) <= {413, 503}
        assert live.client.get("/healthz").status_code == 200
        assert process.memory_info().rss - before < 256 * MIB

    def test_no_more_than_the_limit_and_a_chunk_is_read(self) -> None:
        """Whatever was declared: the application stops asking for more."""
        for declared in (None, str(10), str(CAP)):
            request, asked = endless_request(declared)
            with pytest.raises(BodyTooLarge):
                asyncio.run(read_json(request, CurrentIn, limit=CAP, budget=BodyBudget(2 * CAP)))
            assert asked[0] * CHUNK <= CAP + CHUNK

    def test_the_budget_is_given_back(self) -> None:
        budget = BodyBudget(CAP // 2)
        request, _ = endless_request(None)
        with pytest.raises(Overloaded):
            asyncio.run(read_json(request, CurrentIn, limit=CAP, budget=budget))
        assert budget.held_bytes == 0

    def test_an_owner_has_half_of_the_room(self) -> None:
        """Over all his requests, and what he holds counts for all together."""
        whole = BodyBudget(100)
        mine, theirs = whole.of("mine"), whole.of("theirs")
        assert whole.of("mine") is mine
        mine.take(50)
        for refused in (mine, whole.of("mine")):
            with pytest.raises(Overloaded):
                refused.take(1)
        theirs.take(40)
        assert whole.held_bytes == 90
        whole.take(10)  # of who is not known
        with pytest.raises(Overloaded):
            theirs.take(1)
        assert (whole.held_bytes, theirs.held_bytes) == (100, 40)
        mine.give_back(50)
        theirs.take(10)
        assert (whole.held_bytes, mine.held_bytes, theirs.held_bytes) == (60, 0, 50)

    def test_a_key_that_sends_slowly_leaves_room(self, guarded: Guarded) -> None:
        """Of one owner half of the room is held; his next body is refused, another one's is not."""
        budget: BodyBudget = guarded.live.app.state.bodies
        mine = budget.of(MINE)
        mine.take(mine.max_bytes)
        try:
            asked = {"message_bytes": 4096, "profile": "gms"}
            sent = [
                guarded.live.client.post("/optimize", json=asked, headers=bearer(secret))
                for secret in (guarded.mine["write"], guarded.theirs)
            ]
            assert [one.status_code for one in sent] == [503, 200]
            assert sent[0].json()["code"] == "overloaded"
        finally:
            mine.give_back(mine.max_bytes)


async def _endless(client: httpx.AsyncClient) -> int:
    async def spaces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * CHUNK

    headers = {"content-type": "application/json"}
    return (await client.post("/optimize", content=spaces(), headers=headers)).status_code


def endless_request(declared: str | None) -> tuple[Request, list[int]]:
    """A request whose body never ends, and how often it was asked for more."""
    asked = [0]

    async def receive() -> dict[str, Any]:
        asked[0] += 1
        return {"type": "http.request", "body": b" " * CHUNK, "more_body": True}

    headers = [(b"content-type", b"application/json")]
    if declared is not None:
        headers.append((b"content-length", declared.encode()))
    return Request({"type": "http", "headers": headers}, receive), asked


class TestTime:
    def test_a_body_that_does_not_arrive(self) -> None:
        async def receive() -> dict[str, Any]:
            await asyncio.Event().wait()
            return {}

        async def read() -> None:
            request = Request({"type": "http", "headers": []}, receive)
            async with held_body(request, CAP, BodyBudget(CAP), within_s=0.01):
                pass

        with pytest.raises(BodyTooSlow):
            asyncio.run(read())


class TestMediaTypes:
    @pytest.mark.parametrize(
        "headers",
        [
            {"content-type": "text/plain"},
            {"content-type": "application/x-www-form-urlencoded"},
            {"content-type": "multipart/form-data; boundary=x"},
            {"content-type": "application/xml"},
            {"content-type": "application/json; charset=utf-16"},
            {"content-type": "application/json", "content-encoding": "gzip"},
            {"content-type": "application/json", "content-encoding": "br"},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("path", ["/optimize", "/simulate", "/compare", "/profiles"])
    def test_only_json_is_read(
        self, client: httpx.Client, path: str, headers: dict[str, str]
    ) -> None:
        response = client.post(path, content=b"{}", headers=headers)
        assert response.status_code == 415
        assert response.json()["code"] == "unsupported_media_type"

    @pytest.mark.parametrize(
        "kind", ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON"]
    )
    def test_spellings_of_json(self, client: httpx.Client, kind: str) -> None:
        body = b'{"message_bytes": 64, "profile": "gms"}'
        response = client.post("/optimize", content=body, headers={"content-type": kind})
        assert response.status_code == 200

    @pytest.mark.parametrize(
        "headers",
        [
            {"content-type": "application/xml"},
            {"content-type": "application/x-www-form-urlencoded"},
            {"content-type": "text/csv; charset=utf-16"},
            {"content-type": "text/csv", "content-encoding": "br"},
            {"content-type": "text/csv", "content-encoding": "gzip, gzip"},
            {"content-type": "text/csv", "content-encoding": "deflate"},
            {"content-type": "text/csv", "content-encoding": "zstd"},
        ],
        ids=str,
    )
    def test_traces_are_text_or_gzip(self, client: httpx.Client, headers: dict[str, str]) -> None:
        assert client.post("/fit", content=CSV, headers=headers).status_code == 415


class TestGzip:
    @pytest.mark.parametrize(
        "headers",
        [
            {"content-type": "text/csv", "content-encoding": "gzip"},
            {"content-type": "application/gzip"},
            {"content-type": "text/csv"},
        ],
        ids=str,
    )
    def test_a_packed_trace_is_the_trace(
        self, client: httpx.Client, headers: dict[str, str]
    ) -> None:
        packed = client.post("/fit", content=gzip.compress(CSV.encode()), headers=headers)
        plain = client.post("/fit", content=CSV, headers={"content-type": "text/csv"})
        assert packed.status_code == 200, packed.text
        assert packed.json() == plain.json()

    def test_what_is_no_gzip(self, client: httpx.Client) -> None:
        for content in (b"plain", b"\x1f\x8b\x08", gzip.compress(CSV.encode())[:-9]):
            headers = {"content-type": "application/gzip"}
            assert client.post("/fit", content=content, headers=headers).status_code == 415

    def test_bombs(self, client: httpx.Client) -> None:
        """A file that expands a thousand times is refused long before it is expanded."""
        bomb = gzip.compress(bytes(64 * MIB))
        nested = gzip.compress(gzip.compress(bytes(64 * MIB)))
        for content, status in ((bomb, 413), (nested, 422)):
            headers = {"content-type": "application/gzip"}
            assert client.post("/fit", content=content, headers=headers).status_code == status

    def test_expansion_stops_at_the_limit(self) -> None:
        packed = gzip.compress(bytes(50 * MIB))
        with pytest.raises(BodyTooLarge):
            expand(packed, CAP)
        assert expand(gzip.compress(b"x" * 1000), 1000) == b"x" * 1000
        with pytest.raises(BodyTooLarge):
            expand(gzip.compress(b"x" * 1001), 1000)

    def test_no_more_is_expanded_than_may_be(self) -> None:
        """Bounded by what was read for it, not by what it would become or what comes behind it."""
        packed = gzip.compress(bytes(200 * MIB))
        tracemalloc.start()
        try:
            with pytest.raises(BodyTooLarge):
                expand(packed, 256 * MIB)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak <= FREE_EXPANSION_BYTES + 2 * MIB

    def test_an_unfinished_file(self) -> None:
        with pytest.raises(UnsupportedMediaType):
            expand(gzip.compress(CSV.encode())[:20], CAP)


def test_limits_are_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("small")
    settings = settings_for(
        f"sqlite:///{folder / 'sluice.db'}", max_body_bytes=200, max_trace_bytes=300
    )
    with serving(settings) as small:
        reported = small.client.get("/limits").json()
        assert (reported["max_body_bytes"], reported["max_trace_bytes"]) == (200, 300)
        body = {"message_bytes": 1, "profile": "gms", "x": "y" * 200}
        assert small.client.post("/optimize", json=body).status_code == 413
        headers = {"content-type": "text/csv"}
        assert small.client.post("/fit", content="x" * 301, headers=headers).status_code == 413
