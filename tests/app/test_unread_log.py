"""A log that nobody reads stops no answer: standard error is a pipe that is full."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.app.serving import GUARD_S, wait_until

ROOT = Path(__file__).parents[2]
REQUESTS = 1500  # of two lines each they would fill a pipe of 64 KiB four times
HOST = b"Host: localhost\r\n"
UPGRADE = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
MALFORMED = b"GET /healthz HTTP/1.1\r\nno header\r\n\r\n"
ASKED = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"


@contextmanager
def unread(form: str, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A service whose standard error nobody reads, and its address."""
    unset = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    own = {"SLUICE_LOG": form, "SLUICE_DATABASE_URL": f"sqlite:///{tmp_path / 'own.db'}"}
    child = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--workers", "1", "--json"],
        cwd=ROOT,
        env={**unset, **own, "SLUICE_DRAIN_S": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        address = json.loads(child.stdout.readline())["address"]
        wait_until(lambda: httpx.get(f"{address}/readyz", timeout=GUARD_S).is_success)
        yield child, address
    finally:
        child.kill()
        child.communicate()


def answer_to(address: str, request: bytes) -> bytes:
    """What comes back on a connection of its own, which the client ends."""
    where = urlsplit(address)
    with socket.create_connection((str(where.hostname), int(where.port or 0)), 10.0) as connection:
        connection.sendall(request)
        return connection.recv(2**16)


def counted(address: str, name: str) -> float:
    """The value of a counter without labels."""
    text = httpx.get(f"{address}/metrics", timeout=GUARD_S).text
    found = {one.name: one for one in text_string_to_metric_families(text)}
    (sample,) = [one for one in found[name].samples if one.name == f"{name}_total"]
    return sample.value


@pytest.mark.parametrize("form", ["text", "json"])
def test_requests_that_are_refused_fill_no_log(form: str, tmp_path: Path) -> None:
    """Upgrades, which nothing here speaks, and what is no HTTP; each is counted, and no line."""
    with unread(form, tmp_path) as (child, address):
        for number in range(REQUESTS):
            assert answer_to(address, UPGRADE).startswith(b"HTTP/1.1 200"), number
        for number in range(REQUESTS):
            assert answer_to(address, MALFORMED).startswith(b"HTTP/1.1 400"), number
        assert answer_to(address, ASKED).startswith(b"HTTP/1.1 200")
        assert counted(address, "sluice_upgrade_requests") == REQUESTS
        assert counted(address, "sluice_malformed_requests") == REQUESTS
        child.send_signal(signal.SIGTERM)
        assert child.wait(GUARD_S) == -signal.SIGTERM
        assert child.stderr is not None
        assert "upgrade" not in child.stderr.read().lower()
