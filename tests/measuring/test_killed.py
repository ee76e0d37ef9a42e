"""Commands that are killed, for real, with SIGKILL: nothing that they started stays behind.

Processes are known by a word of their environment, which all that they start inherits: sessions and
parents change.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from measuring.probe import FLAGS, LIBRARIES, sources
from measuring.running import output_of, own_folder
from tests.support.compiler import ROOT, compiler

pytestmark = pytest.mark.usefixtures("native_kernels")

PYTHON = sys.executable
MARK = "SLUICE_TEST_OF"
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# It leaves behind a process in a session of its own, whose parent has ended, and waits.
LEAVES = f"""#!{PYTHON}
import os, subprocess, sys, time
if "--version" in sys.argv:
    raise SystemExit(0)
subprocess.Popen(["/bin/sh", "-c", "setsid sleep 600 & exit 0"]).wait()
time.sleep(600)
"""


def marked(mark: str) -> list[int]:
    """The processes with this word that run."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                is_marked = f"{MARK}={mark}".encode() in (place / "environ").read_bytes()
                state = (place / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if is_marked and state != "Z":
                found.append(int(place.name))
    return found


def wait_for(holds: Callable[[], bool], why: str) -> None:
    """Wait until it holds."""
    end_s = time.monotonic() + 60.0
    while not holds():
        assert time.monotonic() < end_s, why
        time.sleep(0.02)


def sleeps(mark: str) -> bool:
    """Whether what is left behind runs."""
    names = []
    for process in marked(mark):
        try:
            names.append(Path(f"/proc/{process}/comm").read_text().strip())
        except OSError:
            continue
    return "sleep" in names


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    subprocess.run([PYTHON, ROOT / "tools" / "build_kernels.py"], check=True)


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The probe under sanitizers."""
    made = tmp_path_factory.mktemp("probe") / "probe"
    names = [str(path) for path in sources()]
    line = [compiler(), *FLAGS, *SANITIZED, "-Wall", "-Wextra", "-Werror", "-o", str(made)]
    subprocess.run([*line, *names, *LIBRARIES], check=True)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a tool, a program, and a profile of one stage."""
    (tmp_path / "iperf3").write_text(LEAVES)
    (tmp_path / "iperf3").chmod(0o755)
    rows = "".join(
        f"{size},{at},{5 + size / 1000}\n" for size in (1024, 65536, 1 << 20) for at in range(5)
    )
    (tmp_path / "pipe.csv").write_text(f"# stage: pipe\nmessage_bytes,repetition,pipe_us\n{rows}")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "processes", "leaves"),
    [
        ("measure pipe --bytes 2MiB,4MiB --time-limit 600 --tolerance 0.000001", 3, False),
        ("measure shm --what signature --time-limit 600 --tolerance 0.000001", 3, False),
        ("measure iperf3 --bytes 64,128 --time-limit 600", 5, True),
        ("measure --stage x={folder}/iperf3\t{{bytes}} --time-limit 600", 3, True),
        ("measure --listen 127.0.0.1:0", 2, False),
        ("verify pipe.csv --bytes 1MiB --time-limit 600 --tolerance 0.000001", 2, False),
    ],
)
def test_a_killed_command_leaves_nothing(
    folder: Path, words: str, processes: int, leaves: bool
) -> None:
    mark = uuid4().hex
    line = [word.replace("\t", " ") for word in words.format(folder=folder).split(" ")]
    environment = {
        **os.environ,
        MARK: mark,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    with subprocess.Popen(
        [PYTHON, "-m", "app.cli", *line],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as command:
        try:
            wait_for(
                lambda: len(marked(mark)) >= processes and (sleeps(mark) or not leaves),
                "it does not run",
            )
            assert command.poll() is None
        finally:
            command.kill()
        command.wait()
        wait_for(lambda: not marked(mark), "processes stay behind")


def test_what_a_program_leaves_behind_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it ends by itself, too: in a session of its own, and without a parent."""
    mark = uuid4().hex
    monkeypatch.setenv(MARK, mark)
    words = ["/bin/sh", "-c", "setsid sleep 600 > /dev/null & echo 5"]
    assert output_of(words, name="x", limit_s=20.0).printed == b"5\n"
    wait_for(lambda: [os.getpid()] == marked(mark) or not marked(mark), "a process stays behind")


class TestKeeper:
    """The program between a command and what it runs, under sanitizers."""

    @pytest.mark.parametrize(
        ("script", "status"),
        [
            ("exit 0", 0),
            ("exit 7", 7),
            ("kill -9 $$", -signal.SIGKILL),
            ("kill -15 $$", -signal.SIGTERM),
            ("setsid sleep 600 & (sleep 600 &) ; exit 3", 3),
        ],
    )
    def test_it_ends_as_the_program_does(self, sanitized: Path, script: str, status: int) -> None:
        words = [str(sanitized), "keep", str(os.getpid()), "/bin/sh", "-c", script]
        assert subprocess.run(words, check=False).returncode == status

    def test_a_program_that_cannot_be_run(self, sanitized: Path) -> None:
        words = [str(sanitized), "keep", str(os.getpid()), "/no/such/program"]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        assert done.returncode == 126
        assert done.stderr == "/no/such/program: No such file or directory\n"

    def test_a_parent_that_has_gone(self, sanitized: Path, tmp_path: Path) -> None:
        """Nothing is begun for whoever is there no more."""
        words = [str(sanitized), "keep", "1073741823", "/bin/sh", "-c", f"touch {tmp_path}/made"]
        assert subprocess.run(words, check=False).returncode == 4
        assert list(tmp_path.iterdir()) == []

    def test_it_is_asked_to_end(self, sanitized: Path) -> None:
        mark = uuid4().hex
        words = [
            str(sanitized),
            "keep",
            str(os.getpid()),
            "/bin/sh",
            "-c",
            "setsid sleep 600 & wait",
        ]
        with subprocess.Popen(words, env={**os.environ, MARK: mark}) as one:
            wait_for(lambda: sleeps(mark), "it does not run")
            one.terminate()
            assert one.wait(20.0) == 4
        assert marked(mark) == []


def test_folders_of_killed_runs_go_and_those_in_use_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In use is what is locked, however old; what is young, of another name or no folder stays."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("sluice-x-left", "sluice-x-young", "sluice-y-other"):
        (tmp_path / name / "below").mkdir(parents=True)
    (tmp_path / "sluice-x-link").symlink_to(tmp_path / "sluice-y-other")
    (tmp_path / "sluice-x-file").touch()
    with own_folder("sluice-x-") as used:
        for path in tmp_path.iterdir():
            if path.name != "sluice-x-young":
                os.utime(path, (1.0, 1.0), follow_symlinks=False)
        with own_folder("sluice-x-") as other:
            assert used.is_dir()
            assert other != used
            names = {path.name for path in tmp_path.iterdir()} - {used.name, other.name}
    kept = {"sluice-x-young", "sluice-y-other", "sluice-x-link", "sluice-x-file"}
    assert names == kept == {path.name for path in tmp_path.iterdir()}
