"""Signatures over installed MPIs and UCX: two real ends, what goes wrong; nothing stays behind.

What every transport of any machine keeps to (relations, no times) is a campaign.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from uuid import uuid4

import psutil
import pytest

from app.cli import main
from domain.errors import InvalidInput, NotMeasurable
from domain.loggp import LogGPParameters
from domain.measurement import SignatureTrace
from fitting import fit, read
from measuring.mpi import Mpi, first_line
from measuring.running import Probe, probe_of
from measuring.ucx import Ucx
from tests.support.counts import is_campaign
from tests.support.system import require_system
from tests.support.undisturbed import as_if_undisturbed

LIBRARIES = ("mpich", "openmpi")
MARK = "TEST_OF_RANKS"
ARGUMENTS = ["signature", "mpi", "--max-bytes", "64"]
MYRINET = (("send_overhead_us", 2.0), ("receive_overhead_us", 2.6), ("message_gap_us", 12.4))
MYRINET_LATENCY_US = 11.1

Start = Callable[[Sequence[str]], Probe]


def installed(name: str) -> Mpi:
    """This MPI, which has to be here."""
    tools = [shutil.which(tool) for tool in (f"mpicc.{name}", f"mpirun.{name}")]
    packages = "apt-get install mpich libmpich-dev openmpi-bin libopenmpi-dev"
    require_system(all(tools), name, packages)
    return Mpi(f"mpicc.{name}", allow_run_as_root=True)


def installed_ucx() -> Ucx:
    """UCX with its headers, which has to be here."""
    found = Ucx()
    require_system(not found.missing, "libucp", "apt-get install libucx-dev")
    return found


@pytest.fixture(scope="module", params=[*LIBRARIES, "ucx"])
def start(request: pytest.FixtureRequest) -> Iterator[Start]:
    """The probe compiled for each of them: started with what follows the transport."""
    name = "ucx" if request.param == "ucx" else "mpi"
    with probe_of(installed_ucx() if name == "ucx" else installed(request.param)) as found:
        yield lambda words: found(["signature", name, *words])


@pytest.fixture(autouse=True)
def mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable by which the processes of this test are known, whoever their parents are."""
    monkeypatch.setenv(MARK, uuid4().hex)


def ranks() -> list[psutil.Process]:
    """What runs of the probes of this test."""
    mark = os.environ[MARK]
    return [one for one in psutil.process_iter(["environ"]) if _environment(one).get(MARK) == mark]


def left() -> list[psutil.Process]:
    """What still runs of them: what was killed may take a moment to be gone on a busy machine."""
    return psutil.wait_procs(ranks(), timeout=10.0)[1]


def _environment(one: psutil.Process) -> dict[str, str]:
    found: dict[str, str] = one.info["environ"] or {}
    return found if one.pid != os.getpid() else {}


class TestRanks:
    """Two ranks that answer as the other transports do."""

    def test_each_line_is_answered_and_nothing_stays(self, start: Start) -> None:
        with start(["--max-bytes", "64", "--window", "16"]) as one:
            assert one.facts["library"]
            assert one.ask("burst 50 0").split()[:3] == ["burst", "50", "0"]
            assert int(one.ask("burst 3 20000").split()[3]) >= 3 * 20_000 - 1000
            assert one.ask("trip").split()[0] == "trip"
            assert one.ask("receive").split()[0] == "receive"
            assert ranks()
        for size in ("1", "8192", "100000"):  # the last by rendezvous
            with start(["--max-bytes", size]) as one:
                assert one.ask("burst 20 0").split()[:3] == ["burst", "20", "0"]
        assert not left()

    def test_a_rank_that_dies_ends_the_measurement(self, start: Start) -> None:
        with start(["--max-bytes", "64"]) as one:
            one.ask("trip")
            program = next(rank for rank in ranks() if rank.name() == "a.out")
            program.send_signal(signal.SIGKILL)
            with pytest.raises(NotMeasurable, match=r"(mpi|ucx): "):
                one.ask("trip")
        assert not left()

    def test_a_launcher_of_another_mpi_is_named(self) -> None:
        one, other = map(installed, LIBRARIES)
        mixed = Mpi(one.mpicc, other.starts_with, allow_run_as_root=True)
        with probe_of(mixed) as start, pytest.raises(InvalidInput) as refusal:
            start(ARGUMENTS)
        assert refusal.value.field == "launcher"
        assert "each rank is alone" in str(refusal.value)
        assert not left()


class TestCommand:
    """sluice measure mpi."""

    def test_a_signature_is_measured_and_fitted(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        as_if_undisturbed(monkeypatch)
        mpi = installed("mpich")
        path = tmp_path / "mpi.csv"
        words = ("measure", "mpi", "--mpicc", mpi.mpicc, "--allow-run-as-root", "--output", path)
        options = ("--bytes", "64,256", "--time-limit", "120", "--tolerance", "100%")
        assert main([str(word) for word in (*words, *options)]) == 0
        assert "o_s" in capsys.readouterr().out
        lines = path.read_text(encoding="utf-8").splitlines()
        head = dict(line[2:].split(": ", 1) for line in lines if line.startswith("#"))
        assert head["transport"] == "mpi"
        assert head["library"]

    def test_active_messages_of_ucx(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        installed_ucx()
        as_if_undisturbed(monkeypatch)
        path = tmp_path / "ucx.csv"
        options = ("--time-limit", "60", "--tolerance", "100%", "--output", str(path))
        assert main(["measure", "ucx", *options]) == 0
        assert "o_s" in capsys.readouterr().out
        lines = path.read_text(encoding="utf-8").splitlines()
        head = dict(line[2:].split(": ", 1) for line in lines if line.startswith("#"))
        assert head["library"].startswith("UCX 1.")
        assert "/" in head["lanes"]

    @pytest.mark.usefixtures("native_kernels")
    def test_without_ucx_it_is_said(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for name in ("cc", "pkg-config"):
            (tmp_path / name).write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
            (tmp_path / name).chmod(stat.S_IRWXU)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("CC", raising=False)
        assert main(["measure", "--list"]) == 0
        assert "there is no ucp/api/ucp.h" in " ".join(capsys.readouterr().out.split())
        assert main(["measure", "ucx"]) == 3
        assert "ucx: not here: there is no ucp/api/ucp.h" in capsys.readouterr().err

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
    @pytest.mark.usefixtures("native_kernels")
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

    def test_programs_that_cannot_be_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An interpreter that is not there; the name may be one of this folder."""
        monkeypatch.chdir(tmp_path)
        for name, text in (
            ("mpicc", "#!/none\n"),
            ("fine", "#!/bin/sh\n"),
            ("mpirun", "#!/none\n"),
        ):
            Path(name).write_text(text, encoding="utf-8")
            Path(name).chmod(stat.S_IRWXU)
        with (
            pytest.raises(InvalidInput, match="mpicc cannot be run: No such file"),
            probe_of(Mpi("./mpicc", "./fine")),
        ):
            pass
        assert first_line(["./mpirun", "--version"]) == ""
        with pytest.raises(NotMeasurable, match="mpirun cannot be run: No such file"):
            Probe(Path("program"), ["signature", "mpi"], launch=["./mpirun"])
        monkeypatch.setenv("CC", "./mpicc")
        assert Ucx().missing == "not here: ./mpicc cannot be run: No such file or directory"

    def test_the_list_says_what_is_missing(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        mpi = installed("mpich")
        assert main(("measure", "--list", "--mpicc", mpi.mpicc)) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "between two ranks, started by mpirun.mpich" in said
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


def fitted(path: Path) -> tuple[LogGPParameters, ...]:
    """LogP's parameters of a file, of each size."""
    found = fit([read(path.read_bytes())]).loggp
    assert found is not None
    return tuple(found.sizes)


class TestRelations:
    """What real transports keep to on any machine: in campaigns, since they take seconds each."""

    __test__ = is_campaign()

    @pytest.mark.parametrize("name", ["shm", "pipe", "unix", "tcp", "ucx", *LIBRARIES])
    def test_a_transport(
        self, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "signature.csv"
        words = ["--mpicc", f"mpicc.{name}", "--allow-run-as-root"] if name in LIBRARIES else []
        transport = "mpi" if words else name
        words += ["--what", "signature", "--cpus", "0,1", "--output", str(path)]
        assert main(["measure", transport, *words, "--time-limit", "12"]) == 0
        trace = read(path.read_bytes()).trace
        (one,) = fitted(path)
        ends_us = sum(
            found.value for found in (one.send_overhead_us, one.receive_overhead_us) if found
        )
        assert isinstance(trace, SignatureTrace)
        assert trace.round_trip is not None
        assert one.message_gap_us is not None
        trip_us = median(trace.round_trip.times_us)
        costs_us = defaultdict[int, list[float]](list)
        rows = zip(trace.bursts, trace.computation_us, trace.cost_us, strict=True)
        for length, computation_us, cost_us in rows:
            if computation_us == 0.0:
                costs_us[length].append(cost_us)
        medians = [median(costs_us[length]) for length in sorted(costs_us)]
        falls = max(max(medians[: at + 1]) / each - 1.0 for at, each in enumerate(medians))
        with capsys.disabled():
            print(
                f"\n{name}: o_s + o_r {ends_us:.3g}, g {one.message_gap_us.value:.3g}, round trip "
                f"{trip_us:.3g} us; round trip / ends {trip_us / ends_us:.2f}, g / ends "
                f"{one.message_gap_us.value / ends_us:.2f}, costs fall by {falls:.0%}"
            )
        assert trip_us >= ends_us
        assert one.message_gap_us.value >= 0.7 * ends_us

    def test_a_simulated_machine(self, tmp_path: Path) -> None:
        path = tmp_path / "signature.csv"
        words = ["--cpus", "0,1", "--time-limit", "12", "--output", str(path)]
        assert main(["measure", "sim", *words]) == 0
        (one,) = fitted(path)
        for name, expected in MYRINET:
            assert getattr(one, name).value == pytest.approx(expected, rel=0.05), name
        assert one.wire_latency_us is not None
        assert one.wire_latency_us.value == pytest.approx(MYRINET_LATENCY_US, rel=0.1)
