"""A listener and its peer: between two network namespaces where this user may make them, else over
loopback; what is refused, and that nobody waits for a side that has gone. No times are asserted.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from app.cli import main
from domain.errors import InvalidInput, NotMeasurable
from fitting import read
from measuring import running
from measuring.probe import FLAGS, LIBRARIES, program, sources
from measuring.running import Probe
from measuring.signature import Signature, SignaturePlan, signatures_csv
from tests.support.compiler import ROOT, compiler
from tests.support.undisturbed import as_if_undisturbed

pytestmark = pytest.mark.usefixtures("native_kernels")

TOKEN = "0123456789abcdef" * 2
LOOPBACK = "127.0.0.1"
NAME = b"SLUICE-PROBE-1\0\0"
STAGE, SIGNATURE = 1, 2
WELCOME, VERSION, WRONG_TOKEN, TOO_LARGE, _, UNKNOWN = range(6)
MAX = 65536
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


class Place(NamedTuple):
    """Where a listener runs: words before its program, its address, words before the peer's."""

    before: list[str]
    address: str
    peer: list[str]


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The probe under sanitizers, which waits for two seconds where else it does for minutes."""
    made = tmp_path_factory.mktemp("probe") / "probe"
    names = [str(path) for path in sources()]
    waits = ("-DGREETING_S=1", "-DIDLE_S=2")
    line = [compiler(), *FLAGS, *SANITIZED, *waits, "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*line, "-o", str(made), *names, *LIBRARIES], check=True)
    return made


@pytest.fixture(scope="module")
def built() -> Path:
    """The probe as it is built for use."""
    subprocess.run([sys.executable, ROOT / "tools" / "build_kernels.py"], check=True)
    return program()


def _is_done(line: str) -> bool:
    return subprocess.run(line.split(), capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """Two namespaces with a link between them; loopback where they cannot be made."""
    near, far = (f"sluice-{os.getpid()}-{side}" for side in ("near", "far"))
    enter = "ip netns exec"
    lines = (
        *(f"ip netns add {near}", f"ip netns add {far}"),
        f"ip link add v0 netns {near} type veth peer v0 netns {far}",
        *(f"ip -n {near} addr add 10.93.7.1/24 dev v0", f"ip -n {near} link set v0 up"),
        *(f"ip -n {far} addr add 10.93.7.2/24 dev v0", f"ip -n {far} link set v0 up"),
    )
    try:
        if shutil.which("ip") is not None and all(map(_is_done, lines)):
            yield Place(f"{enter} {far}".split(), "10.93.7.2", f"{enter} {near}".split())
        else:
            yield Place([], LOOPBACK, [])
    finally:
        if shutil.which("ip") is not None:
            for space in (near, far):
                _is_done(f"ip netns del {space}")


def _started(words: list[str], token: str = TOKEN) -> Probe:
    return Probe(Path(words[0]), words[1:], token=token)


@contextmanager
def listening(probe: Path, place: Place | None = None) -> Iterator[tuple[Probe, int]]:
    """A listener and its port."""
    at = place or Place([], LOOPBACK, [])
    words = [*at.before, str(probe), "listen", at.address, "--max-bytes", str(MAX)]
    with _started(words) as one:
        yield one, int(one.facts["port"])


def far(
    probe: Path, what: str, port: int, *, size: int = MAX, token: str = TOKEN, name: str = "tcp"
) -> Probe:
    """The peer of a listener on loopback."""
    options = ["--max-bytes", str(size), "--host", LOOPBACK, "--port", str(port)]
    return _started([str(probe), what, name, *options], token)


def greeting(name: bytes = NAME, token: str = TOKEN, kind: int = STAGE, size: int = MAX) -> bytes:
    return name + token.encode() + struct.pack("<QQ", kind, size)


def answered(port: int, sent: bytes) -> bytes:
    """All that a listener answers to some bytes, behind which nothing more comes."""
    with socket.create_connection((LOOPBACK, port), 20.0) as one:
        one.settimeout(20.0)
        one.sendall(sent)
        got = b""
        try:
            while piece := one.recv(4096):
                got += piece
                if len(got) >= 24:
                    break
        except ConnectionResetError:
            pass
        return got


class TestBetweenTwo:
    """Samples, with the listener elsewhere."""

    def test_a_stage(self, sanitized: Path, place: Place) -> None:
        with listening(sanitized, place) as (_, port):
            options = ["--max-bytes", str(MAX), "--host", place.address, "--port", str(port)]
            with _started([*place.peer, str(sanitized), "stage", "tcp", *options]) as one:
                for size in (1, 7, 8, 15, 16, 4096, MAX, 1):
                    answer, ns, preempted = one.ask(str(size)).split()
                    assert int(answer) == size
                    assert float(ns) > 0.0
                    assert preempted in "01"

    def test_a_signature(self, built: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """As far as the plan goes, and it is read."""
        as_if_undisturbed(monkeypatch)
        with listening(built, place) as (_, port):
            options = ["--max-bytes", "64", "--host", place.address, "--port", str(port)]
            with _started([*place.peer, str(built), "signature", "tcp", *options]) as one:
                found = Signature(SignaturePlan(64, tolerance=0.5, time_limit_s=20.0))
                found.run(one.ask)
        assert dict(read(signatures_csv([found], {}).encode()).understood)["receives"]

    @pytest.mark.parametrize("size", [1, 8, 100])
    def test_every_line_of_a_signature(self, sanitized: Path, size: int) -> None:
        with (
            listening(sanitized) as (_, port),
            far(sanitized, "signature", port, size=size) as one,
        ):
            for line in ("burst 300 0", "burst 3 20000", "trip", "receive"):
                assert one.ask(line).split()[0] == line.split()[0]

    def test_one_after_the_other(self, sanitized: Path) -> None:
        with listening(sanitized) as (listener, port):
            lines = listener.lines()
            for what, line in (("stage", "64"), ("signature", "trip")) * 2:
                with far(sanitized, what, port) as one:
                    one.ask(line)
                    assert next(lines) == f"peer {LOOPBACK}: measures"


def _verdict(port: int) -> int:
    got = answered(port, greeting())
    return int(struct.unpack("<Q", got[16:])[0])


class TestRefusals:
    """What the listener checks; it goes on after each."""

    @pytest.mark.parametrize(
        ("sent", "verdict"),
        [
            (greeting(name=b"SLUICE-PROBE-2\0\0"), VERSION),
            (greeting(name=b"SLUICE-PROBE-10\0"), VERSION),
            (greeting(token="0" * 32), WRONG_TOKEN),
            (greeting(size=MAX + 1), TOO_LARGE),
            (greeting(size=0), TOO_LARGE),
            (greeting(size=2**64 - 1), TOO_LARGE),
            (greeting(kind=0), UNKNOWN),
            (greeting(kind=2**64 - 1), UNKNOWN),
            (greeting(), WELCOME),
        ],
    )
    def test_a_greeting(self, sanitized: Path, sent: bytes, verdict: int) -> None:
        with listening(sanitized) as (_, port):
            got = answered(port, sent)
            assert got == NAME + struct.pack("<Q", verdict)

    @pytest.mark.parametrize(
        "sent", [b"", b"S", b"GET / HTTP/1.1\r\n\r\n", Random(7).randbytes(64), b"\0" * 5000, NAME]
    )
    def test_strangers_get_no_word(self, sanitized: Path, sent: bytes) -> None:
        """Scanners, garbage and silence: closed after a while, and the next is served."""
        with listening(sanitized) as (_, port):
            assert answered(port, sent) == b""
            with far(sanitized, "stage", port) as one:
                one.ask("64")

    def test_silent_ones_keep_nobody_waiting(self, sanitized: Path) -> None:
        with listening(sanitized) as (_, port), ExitStack() as silent:
            for _ in range(5):
                silent.enter_context(socket.create_connection((LOOPBACK, port)))
            with far(sanitized, "stage", port) as one:
                one.ask("64")

    @pytest.mark.parametrize("order", [(0, 1), (MAX + 1, 1), (2**64 - 1, 1)])
    def test_an_order_beyond_the_limit_ends_it(
        self, sanitized: Path, order: tuple[int, int]
    ) -> None:
        with (
            listening(sanitized) as (_, port),
            socket.create_connection((LOOPBACK, port), 20.0) as one,
        ):
            one.sendall(greeting())
            assert len(one.recv(24, socket.MSG_WAITALL)) == 24
            one.sendall(struct.pack("<QQ", *order))
            assert one.recv(1) == b""

    def test_one_peer_at_a_time(self, sanitized: Path) -> None:
        with listening(sanitized) as (_, port), far(sanitized, "stage", port) as first:
            with pytest.raises(NotMeasurable, match="measures with another machine"):
                far(sanitized, "stage", port)
            assert first.ask("64")

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ({"token": "x" * 32}, "another token"),
            ({"size": MAX + 1}, "takes no messages of 65537 bytes"),
        ],
    )
    def test_the_peer_says_why(self, sanitized: Path, words: dict[str, object], said: str) -> None:
        with (
            listening(sanitized) as (_, port),
            pytest.raises(NotMeasurable, match=said),
        ):
            far(sanitized, "stage", port, **words)  # type: ignore[arg-type]

    def test_only_tcp_goes_there(self, sanitized: Path) -> None:
        with pytest.raises(InvalidInput, match="only tcp"):
            far(sanitized, "stage", 1, name="pipe")

    def test_an_address_that_is_none(self, sanitized: Path) -> None:
        with pytest.raises(InvalidInput):
            _started([str(sanitized), "listen", "nowhere", "--max-bytes", "64"])

    def test_nobody_listens(self, sanitized: Path) -> None:
        with socket.socket() as one:
            one.bind((LOOPBACK, 0))
            with pytest.raises(NotMeasurable, match="Connection refused"):
                far(sanitized, "stage", one.getsockname()[1])


class TestOtherListeners:
    """What listens may be anything."""

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            (b"", "it is no probe"),
            (b"220 mail.example ESMTP ready, go on\r\n", "no probe"),
            (b"SLUICE-PROBE-2\0\0" + bytes(8), "another version"),
            (NAME + struct.pack("<Q", VERSION), "another version"),
            (NAME + struct.pack("<Q", 99), "does not know"),
        ],
    )
    def test_it_is_said(self, sanitized: Path, answer: bytes, said: str) -> None:
        with socket.create_server((LOOPBACK, 0)) as server:

            def serve() -> None:
                one, _ = server.accept()
                with one:
                    one.recv(64, socket.MSG_WAITALL)
                    one.sendall(answer)

            thread = threading.Thread(target=serve)
            thread.start()
            with pytest.raises(NotMeasurable, match=said):
                far(sanitized, "stage", server.getsockname()[1])
            thread.join(20.0)


def _ask_on(one: Probe, line: str) -> None:
    for _ in range(1000):
        one.ask(line)


class TestEnds:
    """Sides that go, and that hang."""

    @pytest.mark.parametrize(("what", "line"), [("stage", "64"), ("signature", "burst 4000 0")])
    def test_a_listener_that_is_killed(self, sanitized: Path, what: str, line: str) -> None:
        with listening(sanitized) as (listener, port), far(sanitized, what, port) as one:
            one.ask(line)
            os.kill(listener._process.pid, signal.SIGKILL)
            listener._process.wait()
            with pytest.raises(NotMeasurable, match=r"has ended|Broken pipe|reset"):
                _ask_on(one, line)

    @pytest.mark.parametrize(("what", "line"), [("stage", "64"), ("signature", "burst 4000 0")])
    def test_a_listener_that_hangs(
        self, sanitized: Path, what: str, line: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(running, "ANSWER_S", 1.0)
        with listening(sanitized) as (listener, port), far(sanitized, what, port) as one:
            os.killpg(listener._process.pid, signal.SIGSTOP)
            with pytest.raises(NotMeasurable, match="no answer in 1 s"):
                one.ask(line)

    @pytest.mark.parametrize("what", ["stage", "signature"])
    @pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
    def test_a_peer_that_goes_or_hangs(
        self, sanitized: Path, what: str, how: signal.Signals
    ) -> None:
        """The place is free again, after some time at most."""
        with listening(sanitized) as (_, port), far(sanitized, what, port) as one:
            one.ask("64" if what == "stage" else "trip")
            os.kill(one._process.pid, how)
            for _ in range(400):
                if _verdict(port) == WELCOME:
                    return
                threading.Event().wait(0.05)
            raise AssertionError("the place is not free again")

    def test_a_listener_ends_with_its_input(self, sanitized: Path) -> None:
        with listening(sanitized) as (listener, _):
            assert listener._process.stdin is not None
            listener._process.stdin.close()
            assert listener._process.wait(20.0) == 0


class TestCommand:
    """`sluice measure --host` and `--listen`."""

    def test_a_stage_is_kept_and_fitted(
        self,
        built: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        as_if_undisturbed(monkeypatch)
        with listening(built) as (_, port):
            words = ["tcp", "--host", f"{LOOPBACK}:{port}", "--token", TOKEN]
            words += ["--bytes", "64,1024,16KiB", "--tolerance", "100%", "--time-limit", "60"]
            assert main(["measure", *words]) == 0
        assert "tcp" in capsys.readouterr().out
        text = (tmp_path / "tcp-stage.csv").read_text()
        assert f"# far_side: {LOOPBACK}:{port}\n" in text
        assert "# clock: this machine's alone" in text
        assert "# stage:" not in text  # else verify would run it here
        assert TOKEN not in text

    @pytest.mark.parametrize(
        ("words", "field"),
        [
            (("tcp", "--host", "a:b:c", "--token", TOKEN), "host"),
            (("tcp", "--host", "a:0", "--token", TOKEN), "host"),
            (("tcp", "--host", "a:65536", "--token", TOKEN), "host"),
            (("tcp", "--host", "", "--token", TOKEN), "host"),
            (("tcp", "--host", "10.0.0.2"), "token"),
            (("tcp", "--host", "10.0.0.2", "--token", "short"), "token"),
            (("tcp", "--host", "10.0.0.2", "--token", "ä" * 32), "token"),
            (("pipe", "--host", "10.0.0.2", "--token", TOKEN), "host"),
            (("--stage", "x=true {bytes}", "--host", "10.0.0.2"), "host"),
            (("tcp", "--listen", "127.0.0.1"), "listen"),
            (("--listen", "127.0.0.1:99999"), "listen"),
            (("--listen", "nowhere:7411"), "nowhere"),
            (("--listen", "127.0.0.1:0", "--token", "x"), "token"),
        ],
    )
    def test_words_that_go_with_nothing(
        self,
        built: Path,
        words: tuple[str, ...],
        field: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv(running.TOKEN, raising=False)
        assert main(["measure", *words]) == 2
        assert field in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    def test_a_listener_says_its_port_and_token(self, built: Path) -> None:
        """And ends with Ctrl-C."""
        words = [sys.executable, "-m", "app.cli", "measure", "--listen", f"{LOOPBACK}:0"]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=ROOT) as one:
            assert one.stderr is not None
            port = one.stderr.readline().split("port ")[1].partition(";")[0]
            token = one.stderr.readline().split()[-1]
            with far(built, "stage", int(port), token=token) as peer:
                peer.ask("64")
            assert "measures" in one.stderr.readline()
            one.send_signal(signal.SIGINT)
            assert one.wait(20.0) == 130
