"""The examples at work: a file kept fresh over HTTP, and a reader that notices."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from exports.table.slt import encode
from tests.app.serving import Live, serving, settings_for
from tests.clients.c_support import CLIENT, GUARD_S, TABLES, program, require, run
from tests.support.plan_tables import a_plan_table

KEEP_FRESH = CLIENT / "examples" / "keep_fresh.sh"
FIRST = (TABLES / "v1" / "worked-example.slt").read_bytes()
OTHER = a_plan_table()
SECOND = encode(OTHER, profile="other", revision=1)


@dataclass
class Origin:
    """A server of one file with a strong ETag; `requests` are the ETags that were asked with."""

    body: bytes = FIRST
    status: int = 200
    requests: list[str | None] = field(default_factory=list)
    url: str = ""

    @property
    def etag(self) -> str:
        """As the service's: the digest, quoted."""
        return f'"{hashlib.sha256(self.body).hexdigest()}"'

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """200 with the file, 304 where it is known, or the status that the test has set."""
        known = request.headers["If-None-Match"]
        self.requests.append(known)
        status = 304 if known == self.etag and self.status == 200 else self.status
        body = self.body if status == 200 else b""
        request.send_response(status)
        request.send_header("ETag", self.etag)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)


@pytest.fixture
def origin() -> Iterator[Origin]:
    """A server on a free port of this machine."""
    here = Origin()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            here.answer(self)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        here.url = f"http://127.0.0.1:{server.server_address[1]}/table?format=slt"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield here
        server.shutdown()
        thread.join()


def refresh(origin: Origin, path: Path) -> int:
    """Run the script once; its exit status."""
    return refresh_from(origin.url, path)


def refresh_from(url: str, path: Path) -> int:
    """It leaves no file but its own two."""
    require("curl")
    command = ["sh", str(KEEP_FRESH), url, str(path)]
    environment = {"PATH": os.environ["PATH"], "no_proxy": "*"}
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=GUARD_S, check=False
    )
    assert {other.name for other in path.parent.iterdir()} <= {path.name, path.name + ".etag"}
    return ended.returncode


def test_a_file_is_fetched_once_and_again_when_it_changes(origin: Origin, tmp_path: Path) -> None:
    """With the ETag of what is there; an unchanged one is left alone."""
    path = tmp_path / "profile.slt"
    assert refresh(origin, path) == 0
    assert path.read_bytes() == FIRST
    before = path.stat()
    assert refresh(origin, path) == 0
    assert path.stat().st_ino == before.st_ino
    first, origin.body = origin.etag, SECOND
    assert refresh(origin, path) == 0
    assert path.read_bytes() == SECOND
    assert path.stat().st_ino != before.st_ino
    assert origin.requests == [None, first, first]


def test_a_lost_file_is_fetched_again(origin: Origin, tmp_path: Path) -> None:
    """What it was called is of no use without it."""
    path = tmp_path / "profile.slt"
    assert refresh(origin, path) == 0
    path.unlink()
    assert refresh(origin, path) == 0
    assert path.read_bytes() == FIRST
    assert origin.requests == [None, None]


@pytest.mark.parametrize("status", [404, 500, 503])
def test_an_error_leaves_the_file(status: int, origin: Origin, tmp_path: Path) -> None:
    """And says so by its exit status."""
    path = tmp_path / "profile.slt"
    assert refresh(origin, path) == 0
    origin.status, origin.body = status, SECOND
    assert refresh(origin, path) == 1
    assert path.read_bytes() == FIRST
    origin.status = 200
    assert refresh(origin, path) == 0
    assert path.read_bytes() == SECOND


def test_nobody_there_leaves_the_file(origin: Origin, tmp_path: Path) -> None:
    """A service that is down is no reason to be without a table."""
    path = tmp_path / "profile.slt"
    assert refresh(origin, path) == 0
    wait_disconnected = Origin(url="http://127.0.0.1:9/table")
    assert refresh(wait_disconnected, path) == 1
    assert path.read_bytes() == FIRST


def test_it_follows_the_service(tmp_path: Path) -> None:
    """The active table of a profile; unchanged, switched, and switched back."""
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    path = fresh / "gms.slt"
    with serving(settings_for(f"sqlite:///{tmp_path / 'sluice.db'}")) as live:
        url = f"http://127.0.0.1:{live.port}/profiles/gms/table?format=slt"
        assert refresh_from(url, path) == 1  # there is none yet
        first, second = (_compiled(live, max_message_bytes=size) for size in (4096, 8192))
        assert refresh_from(url, path) == 0
        before = path.stat()
        assert hashlib.sha256(path.read_bytes()).hexdigest() == first
        assert refresh_from(url, path) == 0
        assert path.stat().st_ino == before.st_ino
        for digest in (second, first):
            switched = live.client.post("/profiles/gms/table", json={"digest": digest})
            assert switched.status_code == 200
            assert refresh_from(url, path) == 0
            assert hashlib.sha256(path.read_bytes()).hexdigest() == digest


def _compiled(live: Live, *, max_message_bytes: int) -> str:
    """The digest of a new table for the profile."""
    asked = {"max_message_bytes": max_message_bytes, "relative_gap": 0.05}
    made = live.client.post("/profiles/gms/tables", json=asked)
    assert made.status_code == 201, made.text
    return made.headers["location"].rpartition("/")[2]


@contextmanager
def watching(path: Path, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The reader on this file, asked for messages of 333 bytes; ended by SIGTERM."""
    made = program("examples/watch", folder, compiler="gcc", options=("-O1", "-g"))
    command = [str(made), str(path), "333"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        guard = threading.Timer(60.0, running.kill)
        guard.start()
        try:
            yield running
            running.terminate()
            assert running.wait() == 0
        finally:
            guard.cancel()
            running.kill()


def test_the_reader_notices_a_new_file(tmp_path: Path) -> None:
    """One that is refused changes nothing; the next good one is read."""
    path, beside = tmp_path / "profile.slt", tmp_path / "beside.slt"
    path.write_bytes(FIRST)
    expected = OTHER.repeated_size_at(333)
    assert expected != 167
    with watching(path, tmp_path) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "333 bytes: repeat 167\n"
        for content in (SECOND[:-1], SECOND):
            beside.write_bytes(content)
            beside.rename(path)
            running.send_signal(signal.SIGHUP)
        assert running.stdout.readline() == f"333 bytes: repeat {expected}\n"


def test_the_lookup_goes_on_without_a_table(tmp_path: Path) -> None:
    """A library whose table is missing starts all the same, and says so."""
    made = program("examples/lookup", tmp_path, compiler="gcc")
    assert "fragments 146 187 (333 in all)" in run([made, TABLES / "v1/worked-example.slt", "333"])
    absent = [str(made), str(tmp_path / "absent.slt"), "333"]
    ended = subprocess.run(absent, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "333 bytes: repeat 65536" in ended.stdout
    assert "the operating system refused" in ended.stderr
