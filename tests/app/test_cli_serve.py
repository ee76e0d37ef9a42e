"""`sluice serve`: its port, and its end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx
import pytest
import uvicorn

from app.cli import main
from app.http.connections import DrainingServer
from app.serving import Listener, check_access, listen, listen_at_file
from app.settings import Settings
from domain.errors import Conflict, InvalidInput
from sluice_client import Client
from tests.app.serving import MYRINET, wait_until

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


class TestSocket:
    """`sluice serve --socket`: a service for one user of a machine that several share."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "sluice.sock"

    def test_its_user_asks_and_nobody_else(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What answers at a port answers here; the file is its user's, and goes at the end."""
        monkeypatch.setenv("SLUICE_DRAIN_S", "0")
        with started("--socket", str(path)) as (child, told), at_socket(path) as client:
            assert told == {"address": f"unix:{path}"}
            wait_until(lambda: client.get("/readyz").status_code == 200)
            found = path.lstat()
            assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o600, os.geteuid())
            assert client.get("/healthz").json() == {"status": "alive"}
            asked = {"pipeline": MYRINET, "message_bytes": 65536}
            assert client.post("/optimize", json=asked).status_code == 200
            known = Client("http://localhost", http=client).profile("myrinet-gam")
            assert known.name == "myrinet-gam"
            child.send_signal(signal.SIGTERM)
            assert child.wait(60) == -signal.SIGTERM
            assert not path.exists()

    def test_who_comes_by_it_has_no_address_and_says_none(self, path: Path) -> None:
        """A foreign name is refused whatever its port: a browser may come through a tunnel."""
        with started("--socket", str(path)) as (_, _told), at_socket(path) as client:
            wait_until(lambda: client.get("/readyz").status_code == 200)
            said = {"x-forwarded-for": "192.0.2.1", "x-forwarded-proto": "https"}
            assert "secure" not in client.get("/", headers=said).headers["set-cookie"].lower()
            for name in ("evil.example", "evil.example:8080"):
                answer = client.get("/profiles", headers={"host": name})
                assert answer.json()["code"] == "foreign_origin", name
            for name in ("localhost", "localhost:9000", "127.0.0.1:8080", "here"):
                assert client.get("/profiles", headers={"host": name}).status_code == 200, name
            foreign = {"origin": "http://evil.example", "accept": "application/json"}
            assert client.post("/optimize", headers=foreign).status_code == 403

    def test_keys_are_asked_for_where_the_settings_say_so(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SLUICE_AUTH", "keys")
        with started("--socket", str(path)) as (_, told), at_socket(path) as client:
            wait_until(lambda: client.get("/readyz").status_code == 200)
            sent = {"authorization": f"Bearer {told['first_key']}"}
            codes = [client.get("/profiles", headers=one).status_code for one in ({}, sent)]
            assert codes == [401, 200]

    def test_what_a_killed_service_has_left_is_replaced(self, path: Path) -> None:
        with started("--socket", str(path)):
            left = path.lstat().st_ino, path.lstat().st_ctime_ns
        assert path.is_socket()  # it was killed
        listener = listen_at_file(path)
        assert (path.lstat().st_ino, path.lstat().st_ctime_ns) != left
        listener.close()
        assert not path.exists()

    def test_what_a_service_listens_at_stays_its_own(
        self, path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        listener = listen_at_file(path)
        assert main(["serve", "--socket", str(path)]) == 5
        assert f"another service listens at {path}" in capsys.readouterr().err
        with at_socket(path) as other, pytest.raises(httpx.ReadTimeout):
            other.get("/", timeout=0.05)  # it still takes connections
        os.rename(path, path.with_suffix(".moved"))
        listen_at_file(path)
        listener.close()
        assert path.is_socket()  # it is another's by now

    def test_of_two_that_begin_at_once_one_listens(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Before it listens, a file looks like one that a killed service has left."""
        ends: list[Listener | Exception] = []

        def begin() -> None:
            try:
                ends.append(listen_at_file(path))
            except Conflict as refused:
                ends.append(refused)

        other = Thread(target=begin)
        listen_really = socket.socket.listen

        def late(bound: socket.socket, backlog: int) -> None:
            if not other.ident:
                other.start()
                other.join(0.5)
            listen_really(bound, backlog)

        monkeypatch.setattr(socket.socket, "listen", late)
        listener = listen_at_file(path)
        other.join()
        assert [type(one) for one in ends] == [Conflict]
        with socket.socket(socket.AF_UNIX) as asks:
            asks.connect(str(path))
        listener.close()
        assert not path.exists()

    @pytest.mark.parametrize("kind", ["file", "folder", "link to a socket", "link to nothing"])
    def test_what_is_no_socket_is_never_removed(
        self, path: Path, kind: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        if kind == "file":
            path.write_text("mine")
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to(path.with_suffix(".other"))
            if kind == "link to a socket":
                listen_at_file(path.with_suffix(".other")).socket.close()
        before = path.lstat()
        assert main(["serve", "--socket", str(path)]) == 2
        assert "it stays as it is" in capsys.readouterr().err
        after = path.lstat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)

    @pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
    def test_a_folder_that_others_write_to_is_refused(self, path: Path, mode: int) -> None:
        """They could put a socket of their own there, which this user's clients would trust."""
        path.parent.chmod(mode)
        with pytest.raises(InvalidInput, match="writable by its user alone: chmod go-w"):
            listen_at_file(path)
        path.parent.chmod(0o755)
        listen_at_file(path).close()

    def test_a_folder_of_another_user_is_refused(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: path.parent.stat().st_uid + 1)
        with pytest.raises(InvalidInput, match="a folder of this user, not of user"):
            listen_at_file(path)

    def test_a_path_that_no_socket_can_have_is_named(self, path: Path) -> None:
        for bad, said in (
            (path.with_name("x" * 200), "too long"),
            (path.with_name("none") / "x", "No such file or directory"),
            (Path("/dev/null/x"), "expected /dev/null to be a folder"),
        ):
            with pytest.raises(InvalidInput, match=said) as refused:
                listen_at_file(bad)
            assert refused.value.field == "socket"

    def test_it_is_in_place_of_a_port(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["serve", "--socket", "x", "--port", "1"]) == 2
        assert "expected a socket, or a host and port" in capsys.readouterr().err

    def test_a_proxy_is_known_by_an_address(self) -> None:
        with pytest.raises(InvalidInput, match="by their addresses"):
            check_access(Settings(auth="proxy", trusted_proxies="127.0.0.1"), None)
        check_access(Settings(auth="off"), None)


def at_socket(path: Path) -> httpx.Client:
    """A client of the service that listens there."""
    transport = httpx.HTTPTransport(uds=str(path))
    return httpx.Client(transport=transport, base_url="http://localhost", timeout=60)


@contextmanager
def serving() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A service as a process, and its address."""
    with started() as (child, told):
        yield child, told["address"]


@contextmanager
def started(*where: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """A service as a process, at any port where nothing is said, and what it tells at its start."""
    words = ("serve", *(where or ("--port", "0")), "--workers", "1", "--json")
    child = subprocess.Popen(
        [sys.executable, "-m", "app.cli", *words],
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
