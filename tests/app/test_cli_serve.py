"""`sluice serve`: its port, and its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.cli import main
from app.serving import listen
from app.settings import Settings
from domain.errors import Conflict

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

    def test_it_serves_until_ctrl_c(self) -> None:
        child = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--workers", "1", "--json"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert child.stdout is not None
            address = json.loads(child.stdout.readline())["address"]
            with urllib.request.urlopen(f"{address}/healthz", timeout=60) as answer:
                assert answer.status == 200
            child.send_signal(signal.SIGINT)
            assert child.wait(60) == 0
        finally:
            child.kill()
            child.communicate()


@contextmanager
def taken_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]
