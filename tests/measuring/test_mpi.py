"""Signatures over installed MPIs: two real ranks, what goes wrong; nothing stays behind."""

from __future__ import annotations

import os
import shutil
import signal
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from app.cli import main
from domain.errors import InvalidInput, NotMeasurable
from measuring.mpi import Mpi
from measuring.running import Probe, probe_of
from tests.support.system import require_system

LIBRARIES = ("mpich", "openmpi")
MARK = "TEST_OF_RANKS"
ARGUMENTS = ["signature", "mpi", "--max-bytes", "64"]


def installed(name: str) -> Mpi:
    """This MPI, which has to be here."""
    tools = [shutil.which(tool) for tool in (f"mpicc.{name}", f"mpirun.{name}")]
    packages = "apt-get install mpich libmpich-dev openmpi-bin libopenmpi-dev"
    require_system(all(tools), name, packages)
    return Mpi(f"mpicc.{name}", allow_run_as_root=True)


@pytest.fixture(scope="module", params=LIBRARIES)
def start(request: pytest.FixtureRequest) -> Iterator[Callable[[Sequence[str]], Probe]]:
    """The probe compiled for each of the two."""
    with probe_of(installed(request.param)) as found:
        yield found


@pytest.fixture(autouse=True)
def mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable by which the processes of this test are known, whoever their parents are."""
    monkeypatch.setenv(MARK, uuid4().hex)


def ranks() -> list[psutil.Process]:
    """What runs of the probes of this test."""
    mark = os.environ[MARK]
    return [one for one in psutil.process_iter(["environ"]) if _environment(one).get(MARK) == mark]


def _environment(one: psutil.Process) -> dict[str, str]:
    found: dict[str, str] = one.info["environ"] or {}
    return found if one.pid != os.getpid() else {}


class TestRanks:
    """Two ranks that answer as the other transports do."""

    def test_each_line_is_answered_and_nothing_stays(
        self, start: Callable[[Sequence[str]], Probe]
    ) -> None:
        with start([*ARGUMENTS, "--window", "16"]) as one:
            assert one.facts["library"]
            assert one.ask("burst 50 0").split()[:3] == ["burst", "50", "0"]
            assert int(one.ask("burst 3 20000").split()[3]) >= 3 * 20_000 - 1000
            assert one.ask("trip").split()[0] == "trip"
            assert one.ask("receive").split()[0] == "receive"
            assert ranks()
        with start(["signature", "mpi", "--max-bytes", "100000"]) as one:  # by rendezvous
            assert one.ask("burst 20 0").split()[:3] == ["burst", "20", "0"]
        assert not ranks()

    def test_a_rank_that_dies_ends_the_measurement(
        self, start: Callable[[Sequence[str]], Probe]
    ) -> None:
        with start(ARGUMENTS) as one:
            one.ask("trip")
            program = next(rank for rank in ranks() if rank.name() == "a.out")
            program.send_signal(signal.SIGKILL)
            with pytest.raises(NotMeasurable, match="mpi: "):
                one.ask("trip")
        assert not ranks()

    def test_a_launcher_of_another_mpi_is_named(self) -> None:
        one, other = map(installed, LIBRARIES)
        mixed = Mpi(one.mpicc, other.starts_with, allow_run_as_root=True)
        with probe_of(mixed) as start, pytest.raises(InvalidInput) as refusal:
            start(ARGUMENTS)
        assert refusal.value.field == "launcher"
        assert "each rank is alone" in str(refusal.value)
        assert not ranks()


class TestCommand:
    """sluice measure mpi."""

    def test_a_signature_is_measured_and_fitted(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        mpi = installed("mpich")
        path = tmp_path / "mpi.csv"
        words = ("measure", "mpi", "--mpicc", mpi.mpicc, "--allow-run-as-root", "--output", path)
        options = ("--bytes", "64,256", "--time-limit", "4", "--tolerance", "50%")
        assert main([str(word) for word in (*words, *options)]) == 0
        assert "o_s" in capsys.readouterr().out
        lines = path.read_text(encoding="utf-8").splitlines()
        head = dict(line[2:].split(": ", 1) for line in lines if line.startswith("#"))
        assert head["transport"] == "mpi"
        assert head["library"]

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("pipe", "--mpicc", "mpicc"), "mpicc: only signatures over MPI"),
            (("shm", "--what", "signature", "--launcher", "mpirun"), "launcher: only signatures"),
            (("memcpy", "--allow-run-as-root"), "allow_run_as_root: only signatures"),
            (("mpi", "--what", "stage"), "name: expected one of"),
            (("mpi", "--mpicc", "mpicc.none"), "there is no mpicc.none here"),
        ],
    )
    def test_what_does_not_go_together(
        self, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(("measure", *words)) == 2
        assert said in capsys.readouterr().err

    def test_a_wrapper_that_does_not_compile(self, tmp_path: Path) -> None:
        for name, text in (("mpicc", "echo 'x.c: error: no mpi.h'; exit 1"), ("mpirun", "exit 0")):
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            (tmp_path / name).chmod(stat.S_IRWXU)
        with (
            pytest.raises(InvalidInput, match=r"does not compile the probe: .*no mpi\.h"),
            probe_of(Mpi(str(tmp_path / "mpicc"))),
        ):
            pass

    def test_the_list_says_what_is_missing(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        mpi = installed("mpich")
        assert main(("measure", "--list", "--mpicc", mpi.mpicc)) == 0
        assert "two ranks, started by mpirun.mpich" in capsys.readouterr().out
        monkeypatch.setenv("PATH", str(tmp_path))
        assert main(("measure", "--list")) == 0
        assert "not here: there is no mpicc" in " ".join(capsys.readouterr().out.split())


def test_open_mpi_as_root_has_to_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of every program that a launcher starts."""
    name = installed("openmpi").mpicc
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(InvalidInput, match="--allow-run-as-root"):
        Mpi(name).launch()
    assert Mpi(name, allow_run_as_root=True).launch()[1:] == ["--allow-run-as-root", "-np", "2"]
