"""The bodies of POST /fit: limits, gzip, junk, slow and leaving clients. Nothing is half stored."""

from __future__ import annotations

import gzip
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.errors import RETRY_AFTER_S
from app.http import bodies
from app.http.bodies import BodyBudget
from app.operations import fits
from app.operations.work import FitWork
from tests.app.serving import GUARD_S, MIB, Live, serving, settings_for, wait_until
from tests.support.counts import count
from tests.support.long_work import SLOTS, GatedRun, long_here_engine

EXAMPLE = (Path(__file__).parents[2] / "examples" / "local-path-direct.csv").read_bytes()
CSV = EXAMPLE
TEXT = {"content-type": "text/csv"}
GZIP = {"content-type": "application/gzip"}


def held(live: Live) -> int:
    """Bytes of traces that the service holds at the moment."""
    budget: BodyBudget = live.app.state.traces
    return budget.held_bytes


@contextmanager
def unchanged(live: Live) -> Iterator[None]:
    """Nothing is stored and nothing held at the end that was not at the beginning."""
    before = live.stored()
    yield
    wait_until(lambda: held(live) == 0)
    assert live.stored() == before
    assert live.client.get("/profiles/never").status_code == 404


@contextmanager
def sending(live: Live, *parts: bytes, length: int = 10**6) -> Iterator[socket.socket]:
    """A connection on which a part of POST /fit has been sent."""
    head = (
        f"POST /fit?save_as=never HTTP/1.1\r\nhost: x\r\ncontent-type: text/csv\r\n"
        f"content-length: {length}\r\n\r\n"
    )
    with closing(socket.create_connection(("127.0.0.1", live.port), GUARD_S)) as connection:
        connection.sendall(head.encode())
        for part in parts:
            connection.sendall(part)
        yield connection


class TestGzip:
    @pytest.mark.parametrize(
        "packed",
        [
            gzip.compress(CSV),
            gzip.compress(CSV[:1000]) + gzip.compress(CSV[1000:]),
            gzip.compress(CSV) + bytes(512),
            gzip.compress(b"") + gzip.compress(CSV),
        ],
        ids=["one member", "two members", "padded", "an empty member"],
    )
    def test_what_gzip_writes(self, client: httpx.Client, packed: bytes) -> None:
        answer = client.post("/fit", content=packed, headers=GZIP).json()
        assert answer == client.post("/fit", content=CSV, headers=TEXT).json()

    def test_told_by_its_first_bytes_however_they_arrive(self, live: Live) -> None:
        packed = gzip.compress(CSV)
        with sending(live, packed[:1], length=len(packed)) as connection:
            time.sleep(0.05)
            connection.sendall(packed[1:])
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        assert live.client.delete("/profiles/never").status_code == 204

    @pytest.mark.parametrize(
        "packed",
        [
            gzip.compress(CSV)[:-1],
            gzip.compress(CSV)[:-9],
            gzip.compress(CSV)[:20],
            gzip.compress(CSV)[:1000],
            gzip.compress(CSV) + b"and more",
            gzip.compress(CSV) + gzip.compress(CSV)[:30],
            gzip.compress(CSV)[:-8] + bytes(8),
            b"\x1f\x8b",
            b"",
        ],
        ids=range(9),
    )
    def test_broken_files(self, live: Live, packed: bytes) -> None:
        with unchanged(live):
            response = live.client.post("/fit?save_as=never", content=packed, headers=GZIP)
            assert response.status_code == 415
            assert response.json()["code"] == "unsupported_media_type"

    def test_bombs(self, live: Live) -> None:
        """Of one member or of a thousand, and one that begins like a trace."""
        bombs = (
            gzip.compress(bytes(64 * MIB)),
            b"".join([gzip.compress(bytes(64 * 1024))] * 1000),
            gzip.compress(CSV) + gzip.compress(b"# " + b"x" * 64 * MIB),
        )
        for bomb in bombs:
            with unchanged(live):
                response = live.client.post("/fit?save_as=never", content=bomb, headers=GZIP)
                assert (response.status_code, response.json()["code"]) == (413, "body_too_large")


class TestLength:
    def test_the_limit_is_of_what_comes_out(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        url = f"sqlite:///{tmp_path / 'sluice.db'}"
        with serving(settings_for(url, max_trace_bytes=len(CSV))) as small:
            for content, headers in ((CSV, TEXT), (gzip.compress(CSV), GZIP)):
                assert small.client.post("/fit", content=content, headers=headers).is_success
                longer = content if headers is GZIP else content + b"\n"
                if headers is GZIP:
                    longer = gzip.compress(CSV + b"\n")
                with unchanged(small):
                    refused = small.client.post(
                        "/fit?save_as=never", content=longer, headers=headers
                    )
                    assert refused.status_code == 413

    def test_more_bodies_than_there_is_room_for(
        self, live: Live, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Those that do not fit are turned away, with a time to try again."""
        with unchanged(live):
            monkeypatch.setattr(live.app.state.traces, "max_bytes", 1000)
            refused = live.client.post("/fit?save_as=never", content=CSV, headers=TEXT)
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) in RETRY_AFTER_S

    def test_a_full_disk(self, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_room(**_: Any) -> None:
            raise OSError(28, "No space left on device")

        with unchanged(live):
            monkeypatch.setattr("app.http.bodies.tempfile.TemporaryFile", no_room)
            refused = live.client.post("/fit?save_as=never", content=CSV, headers=TEXT)
            assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
            assert "No space" not in refused.text


class TestTime:
    def test_a_body_that_does_not_arrive(self, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
        for patient, limit_s in (("TRACE_ARRIVAL_LIMIT_S", 0.2), ("AT_ANY_RATE_S", 0.0)):
            with monkeypatch.context() as patched:
                patched.setattr(bodies, patient, limit_s)
                with unchanged(live), sending(live, CSV) as connection:
                    assert connection.recv(65536).startswith(b"HTTP/1.1 408"), patient

    def test_a_client_that_leaves_in_mid_body(self, live: Live) -> None:
        with unchanged(live):
            with sending(live, CSV):
                pass
            with sending(live, CSV * 50, length=10**8):
                wait_until(lambda: held(live) > 0)


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> GatedRun:
    """Every fit is long, and goes on until it is ended."""
    made = GatedRun()
    monkeypatch.setattr(fits, "LONG_TRACE_BYTES", 10)
    monkeypatch.setattr(FitWork, "run", made.as_method())
    return made


class TestLongFits:
    def test_a_client_that_leaves_stops_its_fit(self, live: Live, long: GatedRun) -> None:
        with unchanged(live):
            with sending(live, CSV, length=len(CSV)):
                wait_until(lambda: long.running == 1)
            wait_until(lambda: long.running == 0)

    def test_only_so_many_at_once(self, tmp_path: Path, long: GatedRun) -> None:
        """One more is told when to come back; when they are gone there is room again."""
        settings = settings_for(f"sqlite:///{tmp_path / 'sluice.db'}")
        with (
            serving(settings, open_engine=partial(long_here_engine, max_waiting=1)) as live,
            unchanged(live),
            ExitStack() as clients,
        ):
            for number in (1, 2, 3):
                clients.enter_context(sending(live, CSV, length=len(CSV)))
                wait_until(lambda: long.running == min(number, SLOTS))  # noqa: B023  (called here)
            wait_until(lambda: live.service.counts.pending_tasks == 3)
            refused = live.client.post("/fit?save_as=never", content=CSV, headers=TEXT)
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) in RETRY_AFTER_S
            assert live.client.get("/healthz").status_code == 200
        wait_until(lambda: long.running == 0)

    def test_memory_is_answered(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """In a worker process: too little memory is 422 with its own code."""
        monkeypatch.setattr(fits, "LONG_TRACE_BYTES", 10)
        url = f"sqlite:///{tmp_path / 'sluice.db'}"
        settings = settings_for(url, worker_memory_bytes=16 * MIB)
        with serving(settings) as live, unchanged(live):
            content = CSV + CSV.split(b"_us\n", 1)[1] * 1000
            response = live.client.post("/fit?save_as=never", content=content, headers=TEXT)
            assert (response.status_code, response.json()["code"]) == (422, "memory_limit")


class TestJunk:
    CONTENTS = (
        b"\x00" * 1000,
        "message_bytes,repetition,a_us\n1,0,2\n".encode("utf-16"),
        bytes(range(256)) * 100,
        b"\n" * 100_000,
        b"message_bytes,repetition,a_us\n" + b"1" * 100_000,
        b"message_bytes,repetition,a_us\n" + b"1,0,-nan\n" * 10,
        b"message_bytes,repetition,a_us\n1,0,inf\n",
        b"message_bytes,repetition,a_us\n1,0,-1\n",
        b"message_bytes,repetition,a_us\n1,0,\xff\n",
        b"message_bytes,repetition,a_us\n" + b"64,0,1\n" * 5,
        b"[" * 100_000,
        b'{"kind": "direct"',
        b'{"kind": "direct", "message_bytes": [' + b"1," * 100_000 + b"1]}",
        b"# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n",
    )

    @pytest.mark.parametrize("content", CONTENTS, ids=range(len(CONTENTS)))
    @pytest.mark.parametrize("is_long", [False, True], ids=["here", "worker"])
    def test_is_refused(
        self, live: Live, content: bytes, is_long: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """422 that says why, and nothing of the content in it."""
        if is_long:
            monkeypatch.setattr(fits, "LONG_TRACE_BYTES", 10)
        with unchanged(live):
            response = live.client.post("/fit?save_as=never", content=content, headers=TEXT)
            assert response.status_code == 422
            assert response.json()["code"] in ("unreadable_trace", "poor_fit")
            assert len(response.content) < 4000

    @settings(max_examples=count(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(content=st.binary(max_size=300), place=st.integers(0, len(CSV)))
    @example(content=b"\x1f\x8b", place=0)
    def test_damaged_files(self, live: Live, content: bytes, place: int) -> None:
        """Whatever is put into a file in whatever place: an answer, or a refusal; never a 5xx."""
        damaged = CSV[:place] + content + CSV[place + len(content) :]
        response = live.client.post("/fit", content=damaged, headers=TEXT)
        assert response.status_code in (200, 415, 422)

    @pytest.mark.parametrize("content", [b"", b"{", b"nonsense", b"{'a': 1}", b'{"a": NaN}', CSV])
    def test_what_is_said_to_be_json_and_is_not(self, live: Live, content: bytes) -> None:
        headers = {"content-type": "application/json"}
        with unchanged(live):
            response = live.client.post("/fit?save_as=never", content=content, headers=headers)
            assert (response.status_code, response.json()["code"]) == (400, "not_json")

    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({"measurements": []}, "/measurements"),
            ({"measurements": None}, "/measurements"),
            ({"measurements": "text"}, "/measurements"),
            ({"measurements": [{"content": "x"}] * 17}, "/measurements"),
            ({"measurements": [{"kind": "direct"}]}, "/measurements/0/content"),
            ({"measurements": [{"content": "x", "more": 1}]}, "/measurements/0/more"),
            ({"measurements": {"content": "x"}, "method": "robust"}, "/method"),
        ],
    )
    def test_malformed_json(self, live: Live, body: object, pointer: str) -> None:
        with unchanged(live):
            response = live.client.post("/fit?save_as=never", json=body)
            assert response.status_code == 422
            assert response.json()["errors"][0]["pointer"].startswith(pointer)

    def test_json_with_several_files_keeps_the_limit_of_json(self, live: Live) -> None:
        body = json.dumps({"measurements": {"content": "x" * 4 * MIB}}).encode()
        with unchanged(live):
            headers = {"content-type": "application/json"}
            response = live.client.post("/fit?save_as=never", content=body, headers=headers)
            assert (response.status_code, response.json()["code"]) == (413, "body_too_large")
