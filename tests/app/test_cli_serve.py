"""`sluice serve`: its port, and its end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn

from app.cli import main
from app.http.connections import DrainingServer
from app.serving import check_access, listen
from app.settings import Settings
from domain.errors import Conflict
from tests.app.serving import wait_until

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database of its own, and nothing of the caller's environment."""
    for name in [name for name in os.environ if name.startswith("SLUICE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")


class TestServe:
    def test_a_taken_default_port_means_the_next_free_one(self) -> None:
        with taken_port() as port:
            listener = listen(Settings(port=port), may_move=True)
            listener.socket.close()
            assert listener.address != f"http://127.0.0.1:{port}"
            assert f"port {port} is taken" in (listener.notice() or "")

    def test_a_taken_port_that_was_asked_for_is_an_error(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with taken_port() as port:
            assert main(["serve", "--port", str(port)]) == 5
            assert f"port {port} is taken" in capsys.readouterr().err
            with pytest.raises(Conflict):
                listen(Settings(port=port), may_move=False)

    def test_kernels_that_cannot_be_had_end_the_start(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SLUICE_KERNELS", "fortran")
        assert main(["serve", "--port", "0"]) == 2
        assert capsys.readouterr().err == (
            "sluice: error: SLUICE_KERNELS: expected one of auto, native, numpy\n"
        )

    @pytest.mark.parametrize(
        ("auth", "host", "said"),
        [
            ("", "0.0.0.0", "expected SLUICE_AUTH=keys where the service listens beyond loopback"),
            ("off", "::", "SLUICE_AUTH=open lets everybody in"),
            ("proxy", "127.0.0.1", "takes SLUICE_TRUSTED_PROXIES"),
        ],
    )
    def test_it_does_not_let_in_everybody_unless_it_is_told_to(
        self,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        auth: str,
        host: str,
        said: str,
    ) -> None:
        """Where others than this machine's could come; the port is closed again."""
        monkeypatch.setenv("SLUICE_AUTH", auth)
        assert main(["serve", "--host", host, "--port", "0"]) == 2
        assert said in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("auth", "address"),
        [
            ("off", "127.0.0.1"),
            ("off", "127.8.9.1"),
            ("off", "::1"),
            ("open", "0.0.0.0"),
            ("keys", "::"),
            ("keys", "192.0.2.1"),
        ],
    )
    def test_it_serves_this_machine_and_whom_it_knows(self, auth: str, address: str) -> None:
        check_access(Settings(auth=auth), address)

    def test_the_first_key_is_told_at_the_first_start(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With it everything can be asked, and without one nothing; the second start tells none."""
        monkeypatch.setenv("SLUICE_AUTH", "keys")
        with started() as (_, told):
            sent = {"authorization": f"Bearer {told['first_key']}"}
            wait_until(lambda: ask(told["address"], "/readyz").status_code == 200)
            assert ask(told["address"], "/keys").status_code == 401
            listed = httpx.get(f"{told['address']}/keys", headers=sent, timeout=60).json()
            assert [one["scope"] for one in listed["items"]] == ["admin"]
        with started() as (_, told):
            assert set(told) == {"address"}
            wait_until(lambda: ask(told["address"], "/readyz").status_code == 200)
            assert httpx.get(f"{told['address']}/keys", headers=sent, timeout=60).is_success

    def test_it_serves_until_ctrl_c(self) -> None:
        with serving() as (child, address):
            assert ask(address, "/healthz").status_code == 200
            child.send_signal(signal.SIGINT)
            assert child.wait(60) == 0

    def test_after_sigterm_it_serves_on_and_says_that_it_is_not_ready(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each answer is then the last one of its connection. A second signal does not wait."""
        monkeypatch.setenv("SLUICE_DRAIN_S", "3600")
        with serving() as (child, address), httpx.Client(base_url=address, timeout=60) as client:
            wait_until(lambda: client.get("/readyz").status_code == 200)  # its workers are there
            before = client.get("/readyz")
            assert before.status_code == 200
            assert "connection" not in before.headers
            child.send_signal(signal.SIGTERM)
            while (found := ask(address, "/readyz")).status_code == 200:
                pass
            assert (found.status_code, found.json()["code"]) == (503, "not_ready")
            assert found.json()["detail"].startswith("draining")
            for path in ("/healthz", "/profiles/myrinet-gam/schedule?bytes=4096"):
                answer = client.get(path)
                assert (answer.status_code, answer.headers["connection"]) == (200, "close")
            assert child.poll() is None
            child.send_signal(signal.SIGTERM)
            assert child.wait(60) == -signal.SIGTERM

    def test_the_port_is_closed_once_the_time_to_drain_is_over(self) -> None:
        """Not before, and at once where there is none; what is asked first is asked once."""
        begun: list[str] = []
        config = uvicorn.Config(lambda: None)
        server = DrainingServer(config, 3600.0, lambda: begun.append("once"))
        server.started = True
        server.handle_exit(signal.SIGTERM, None)
        assert (asyncio.run(server.on_tick(1)), begun) == (False, ["once"])
        server = DrainingServer(config, 1e-9, lambda: begun.append("twice"))
        server.started = True
        server.handle_exit(signal.SIGTERM, None)
        assert not server.should_exit
        assert (asyncio.run(server.on_tick(1)), begun) == (True, ["once", "twice"])
        server = DrainingServer(config, 0.0, lambda: begun.append("never"))
        server.started = True
        server.handle_exit(signal.SIGTERM, None)
        assert (asyncio.run(server.on_tick(1)), begun) == (True, ["once", "twice"])


@contextmanager
def serving() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A service as a process, and its address."""
    with started() as (child, told):
        yield child, told["address"]


@contextmanager
def started() -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """A service as a process, and what it tells at its start."""
    child = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--workers", "1", "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert child.stdout is not None
        yield child, json.loads(child.stdout.readline())
    finally:
        child.kill()
        child.communicate()


def ask(address: str, path: str) -> httpx.Response:
    """An answer on a connection of its own."""
    return httpx.get(address + path, timeout=60)


@contextmanager
def taken_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]
