"""The real probe: every stage and transport, its refusals, and that nothing stays behind.

Only relations are asserted, never times.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.errors import InvalidInput, NotMeasurable
from fitting import read
from measuring import running
from measuring.probe import FLAGS, FOLDER, LIBRARIES, object_path, program, sources
from measuring.running import Probe
from measuring.signature import Signature, SignaturePlan, signatures_csv
from tests.support.compiler import ROOT, build_gpu_driver, compiler

STAGES = ["memcpy", "crc32", "pipe", "unix", "tcp", "shm", "write", "write-sync", "read"]
TRANSPORTS = ["shm", "pipe", "unix", "tcp", "sim"]
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
WARNINGS = ("-Wall", "-Wextra", "-Werror")


@pytest.fixture(scope="module")
def probe() -> Path:
    """The probe as it is built for use."""
    compiler()
    subprocess.run([sys.executable, ROOT / "tools" / "build_kernels.py"], check=True)
    return program()


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same under sanitizers."""
    made = tmp_path_factory.mktemp("probe") / "probe"
    names = [str(path) for path in sources()]
    line = [compiler(), *FLAGS, *SANITIZED, *WARNINGS, "-o", str(made), *names, *LIBRARIES]
    subprocess.run(line, check=True)
    return made


@pytest.fixture(params=["built", "sanitized"])
def either(request: pytest.FixtureRequest) -> Path:
    """Each of the two."""
    found: Path = request.getfixturevalue({"built": "probe"}.get(request.param, request.param))
    return found


def _children(group: int) -> list[int]:
    """The processes of a group that run."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                fields = (place / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                found.append(int(place.name))
    return found


def _answers(probe: Path, words: list[str], line: str) -> str:
    """Why there is no answer; nothing where there is one."""
    try:
        with Probe(probe, words) as one:
            assert one.ask(line).split()[0] == line
    except NotMeasurable as refusal:
        return refusal.detail
    return ""


class TestStages:
    """Samples of each stage."""

    @pytest.mark.parametrize("name", STAGES)
    def test_a_stage_answers_each_size(self, either: Path, name: str, tmp_path: Path) -> None:
        options = ["--max-bytes", "65536", "--path", str(tmp_path)]
        with Probe(either, ["stage", name, *options]) as one:
            assert int(one.facts["timer_ns"]) >= 0
            for size in (1, 7, 8, 15, 16, 4096, 65536, 1):
                answered, ns, preempted = one.ask(str(size)).split()
                assert int(answered) == size
                assert float(ns) >= 0.0
                assert preempted in "01"
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("name", ["write-direct", "read-direct"])
    def test_direct_transfers_are_of_whole_pages(self, either: Path, name: str) -> None:
        """Where the folder's file system has them; else it is said that they are not here."""
        options = ["--max-bytes", "65536", "--path", str(ROOT)]
        why = _answers(either, ["stage", name, *options], "8192")
        assert why in ("", f"{name}: {ROOT}: Invalid argument")

    def test_cold_copies_walk_through_memory(self, probe: Path) -> None:
        with Probe(probe, ["stage", "memcpy", "--max-bytes", "1048576", "--cold"]) as one:
            assert {one.ask("1048576").split()[0] for _ in range(300)} == {"1048576"}

    def test_a_gpu_that_is_not_here_is_said(self, probe: Path) -> None:
        why = _answers(probe, ["stage", "h2d", "--max-bytes", "4096"], "4096")
        assert not why or "libcuda" in why or "GPU" in why

    def test_larger_messages_take_longer(self, probe: Path) -> None:
        """By far: 4 MiB against 64 B, the fastest of some."""
        with Probe(probe, ["stage", "unix", "--max-bytes", str(2**22)]) as one:
            small, large = (
                min(float(one.ask(size).split()[1]) for _ in range(20))
                for size in ("64", str(2**22))
            )
        assert small < large


class TestSignatures:
    """Signatures of each transport."""

    @pytest.mark.parametrize("name", TRANSPORTS)
    @pytest.mark.parametrize("size", [8, 100])
    def test_a_transport_answers_each_line(self, either: Path, name: str, size: int) -> None:
        options = ["--max-bytes", str(size), "--window", "16"]
        with Probe(either, ["signature", name, *options]) as one:
            assert one.ask("burst 50 0").split()[:3] == ["burst", "50", "0"]
            assert int(one.ask("burst 3 20000").split()[3]) >= 3 * 20_000 - 1000
            assert one.ask("trip").split()[0] == "trip"
            assert one.ask("receive").split()[0] == "receive"
            assert float(one.ask("compute 1000").split()[2]) >= 1000.0

    def test_the_simulated_machine_is_fitted(self, probe: Path) -> None:
        """As far as the plan goes; how near is a matter of the machine's load."""
        with Probe(probe, ["signature", "sim", "--max-bytes", "64"]) as one:
            found = Signature(SignaturePlan(64, tolerance=0.5, time_limit_s=20.0))
            found.run(one.ask)
        reading = read(signatures_csv([found], one.facts).encode())
        assert dict(reading.understood)["receives"]

    def test_a_window_of_one_waits_for_each_reply(self, probe: Path) -> None:
        with Probe(probe, ["signature", "sim", "--max-bytes", "8", "--window", "1"]) as one:
            took_ns = int(one.ask("burst 20 0").split()[3])
        assert took_ns >= 19 * 2 * 11_100  # the wire twice, for each but the last


class TestTransfers:
    """A message through several stages at once; the probe itself compares its bytes."""

    @pytest.mark.parametrize("depth", [1, 3])
    @pytest.mark.parametrize("names", [",".join(STAGES), "read,pipe,memcpy,write-sync", "shm"])
    def test_a_message_arrives_in_every_cut(
        self, either: Path, names: str, depth: int, tmp_path: Path
    ) -> None:
        options = ["--max-bytes", "65536", "--path", str(tmp_path), "--depth", str(depth)]
        with Probe(either, ["transfer", names, *options]) as one:
            assert one.facts["depth"] == str(depth)
            for line in ("1 1", "4097 4096", "65536 65536", "65536 5000", "100 3"):
                message, fragment, ns, preempted, *stages = one.ask(line).split()
                assert f"{message} {fragment}" == line
                assert preempted in "01"
                occupied, processor = zip(
                    *(map(int, pair.split(":")) for pair in stages), strict=True
                )
                assert len(stages) == names.count(",") + 1
                assert 0 < max(occupied) <= int(ns) <= sum(occupied) + 10**9
                assert min(processor) >= 0
        assert list(tmp_path.iterdir()) == []

    def test_stages_work_at_the_same_time(self, probe: Path) -> None:
        """Cut into 16, two slow stages have fragments for longer together than all takes.

        In one of so many transfers: others may want the processors as well.
        """
        names, message = "pipe,unix,pipe", 2**22
        with Probe(probe, ["transfer", names, "--max-bytes", str(message)]) as one:
            answers = (one.ask(f"{message} {message // 16}").split() for _ in range(100))
            assert any(
                sum(int(pair.partition(":")[0]) for pair in stages) > 1.2 * int(ns)
                for _, _, ns, _, *stages in answers
            )

    @pytest.mark.parametrize(
        "line", ["1", "0 1", "65537 1", "64 65", "64 0", "x 1", "-1 1", "65536 0"]
    )
    def test_wrong_cuts(self, either: Path, line: str) -> None:
        with (
            Probe(either, ["transfer", "memcpy", "--max-bytes", "65536"]) as one,
            pytest.raises(InvalidInput),
        ):
            one.ask(line + "\nx")

    def test_too_many_fragments(self, probe: Path) -> None:
        with (
            Probe(probe, ["transfer", "memcpy", "--max-bytes", str(2**20)]) as one,
            pytest.raises(InvalidInput, match="at most 65536 fragments"),
        ):
            one.ask(f"{2**20} 1")

    def test_namespaces_that_are_not_there(self, either: Path) -> None:
        with pytest.raises(NotMeasurable, match="network namespace"):
            Probe(either, ["stage", "tcp:no-a/no-b/10.0.0.1", "--max-bytes", "64"])


@pytest.fixture(scope="module")
def gpu_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a driver of a GPU that is memory of the host."""
    made = tmp_path_factory.mktemp("driver")
    build_gpu_driver(made)
    return made


class TestGpu:
    """Copies of a GPU, by a driver that fails where it is told to."""

    @pytest.fixture(autouse=True)
    def _found(self, gpu_driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LD_LIBRARY_PATH", str(gpu_driver))

    @pytest.mark.parametrize("name", ["h2d", "d2h"])
    def test_copies_are_timed(self, either: Path, name: str) -> None:
        with Probe(either, ["stage", name, "--max-bytes", "65536"]) as one:
            assert one.facts["gpu"] == "Like a GPU"
            for size in ("1", "65536", "5"):
                answered, ns, preempted = one.ask(size).split()
                assert answered == size
                assert float(ns) > 0.0
                assert preempted in "01"

    @pytest.mark.parametrize(
        "names",
        ["d2h,h2d", "h2d", "h2d,d2h", "d2h,memcpy,crc32,h2d", "tcp,h2d,d2h,write", "read,h2d"],
    )
    def test_a_message_goes_through_it(self, either: Path, names: str, tmp_path: Path) -> None:
        options = ["--max-bytes", "65536", "--path", str(tmp_path)]
        with Probe(either, ["transfer", names, *options]) as one:
            for line in ("1 1", "65536 65536", "65536 5000", "100 3"):
                assert len(one.ask(line).split()) == 4 + names.count(",") + 1

    @pytest.mark.parametrize("names", ["h2d,memcpy", "d2h,d2h", "tcp,d2h", "h2d,crc32"])
    def test_stages_meet_in_one_memory(self, either: Path, names: str) -> None:
        with pytest.raises(InvalidInput, match=r"in memory of the (GPU|host)"):
            Probe(either, ["transfer", names, "--max-bytes", "64"])

    @pytest.mark.parametrize(
        ("part", "said"),
        [
            ("init", "no GPU that can be used"),
            ("memory", "no memory for 64 bytes on the GPU"),
            ("pinned", "no pinned memory for 64 bytes"),
            ("copy", "a copy of 64 bytes: error 999"),
            ("wait", "a copy of 64 bytes: error 999"),
            ("bytes", "is not as it was sent"),
        ],
    )
    def test_what_fails_is_said(
        self, either: Path, part: str, said: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LIKE_CUDA_FAILS", part)
        with pytest.raises(NotMeasurable, match=said):
            self._transfer_twice(either)

    def _transfer_twice(self, probe: Path) -> None:
        """Bytes are compared after an answer, so that a second one is asked for."""
        with Probe(probe, ["transfer", "d2h,memcpy,h2d", "--max-bytes", "64"]) as one:
            one.ask("64 64")
            one.ask("64 64")


class TestRefusals:
    """One line, and what it is about."""

    @pytest.mark.parametrize(
        "words",
        [
            ["stage", "nope", "--max-bytes", "64"],
            ["signature", "nope", "--max-bytes", "64"],
            ["what", "memcpy", "--max-bytes", "64"],
            ["stage", "memcpy"],
            ["stage", "memcpy", "--max-bytes"],
            ["stage", "memcpy", "--max-bytes", "0"],
            ["stage", "memcpy", "--max-bytes", "-5"],
            ["stage", "memcpy", "--max-bytes", "1e99"],
            ["stage", "memcpy", "--max-bytes", "99999999999999999999"],
            ["stage", "memcpy", "--max-bytes", "64", "--cpus", "x"],
            ["stage", "memcpy", "--max-bytes", "64", "--cpus", "1000"],
            ["stage", "memcpy", "--max-bytes", "64", "--other", "1"],
            ["stage", "tcp:a/b", "--max-bytes", "64"],
            ["stage", "tcp:a/b/host", "--max-bytes", "64"],
            ["transfer", ",", "--max-bytes", "64"],
            ["transfer", ",".join(["memcpy"] * 17), "--max-bytes", "64"],
            ["transfer", "memcpy", "--max-bytes", "64", "--depth", "0"],
            ["transfer", "memcpy", "--max-bytes", "64", "--depth", "65537"],
            ["transfer", "memcpy", "--max-bytes", "64", "--cpus", "1000"],
        ],
    )
    def test_wrong_words(self, either: Path, words: list[str]) -> None:
        with pytest.raises(InvalidInput):
            Probe(either, words)

    @pytest.mark.parametrize("line", ["0", "65", "x", "-1", "18446744073709551617"])
    def test_wrong_sizes(self, either: Path, line: str) -> None:
        with (
            Probe(either, ["stage", "memcpy", "--max-bytes", "64"]) as one,
            pytest.raises(InvalidInput),
        ):
            one.ask(line)

    @pytest.mark.parametrize("line", ["burst", "burst 0 0", "burst 1 -1", "burst 99999999 0", "x"])
    def test_wrong_bursts(self, either: Path, line: str) -> None:
        with (
            Probe(either, ["signature", "pipe", "--max-bytes", "64"]) as one,
            pytest.raises(InvalidInput),
        ):
            one.ask(line)

    def test_a_folder_that_is_not_there(self, probe: Path) -> None:
        with pytest.raises(NotMeasurable, match="No such file"):
            Probe(probe, ["stage", "write", "--max-bytes", "64", "--path", "/nowhere"])

    def test_no_answer_in_time(self, probe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(running, "ANSWER_S", 0.2)
        with (
            Probe(probe, ["signature", "sim", "--max-bytes", "64"]) as one,
            pytest.raises(NotMeasurable, match=r"no answer in 0\.2 s"),
        ):
            one.ask("burst 100000 0")


@pytest.fixture
def running_probe(probe: Path) -> Iterator[subprocess.Popen[bytes]]:
    """One in a session of its own, with another process behind it."""
    made = subprocess.Popen(
        [probe, "signature", "shm", "--max-bytes", "64"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert made.stdout is not None
    while not made.stdout.readline().startswith(b"# ready"):
        pass
    yield made
    made.kill()
    made.wait()
    for pipe in (made.stdin, made.stdout):
        assert pipe is not None
        pipe.close()


def _wait_for_none(group: int) -> None:
    end_s = time.monotonic() + 20.0
    while _children(group):
        assert time.monotonic() < end_s, "processes stay behind"
        time.sleep(0.01)


class TestProcesses:
    """Nothing that was started stays."""

    def test_the_other_end_goes_with_the_probe(
        self, running_probe: subprocess.Popen[bytes]
    ) -> None:
        """Even where it is killed."""
        assert len(_children(running_probe.pid)) == 2
        running_probe.kill()
        running_probe.wait()
        _wait_for_none(running_probe.pid)

    def test_all_goes_with_the_asking_process(self, probe: Path) -> None:
        with Probe(probe, ["signature", "tcp", "--max-bytes", "64"]) as one:
            group = one._process.pid
            assert len(_children(group)) == 2
        _wait_for_none(group)

    @pytest.mark.parametrize("name", ["shm", "pipe", "unix", "tcp"])
    def test_it_ends_with_the_other_end(self, probe: Path, name: str) -> None:
        """And says so, at once: also where it waits for memory that nobody writes any more."""
        with Probe(probe, ["signature", name, "--max-bytes", "64"]) as one:
            group = one._process.pid
            one.ask("burst 4 0")
            (other,) = {*_children(group)} - {group}
            os.kill(other, signal.SIGKILL)
            with pytest.raises(NotMeasurable, match=r"ended|Broken pipe|Connection reset"):
                one.ask("burst 4000 0")
            assert one._process.wait(20.0) != 0
        _wait_for_none(group)

    def test_two_take_different_ports(self, probe: Path) -> None:
        """The kernel chooses them, so that none is ever taken."""
        asked = ["signature", "tcp", "--max-bytes", "64"]
        with Probe(probe, asked) as first, Probe(probe, asked) as second:
            for one in (first, second):
                assert one.ask("burst 4 0").startswith("burst 4 0 ")

    def test_it_ends_with_its_input(self, running_probe: subprocess.Popen[bytes]) -> None:
        assert running_probe.stdin is not None
        running_probe.stdin.close()
        assert running_probe.wait(20.0) == 0
        _wait_for_none(running_probe.pid)


class TestProgram:
    """The built program."""

    def test_it_is_named_by_its_sources(self) -> None:
        assert object_path().name.startswith("probe-linux-")
        assert {path.name for path in sources()} == {path.name for path in FOLDER.glob("*.c")}

    def test_without_one_it_is_said_what_is_missing(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr("measuring.probe.BUILD", tmp_path)
        with pytest.raises(NotMeasurable, match="not built here"):
            program()

    def test_its_list_is_of_three_columns(self, probe: Path) -> None:
        listed = subprocess.run([probe, "list"], capture_output=True, text=True, check=True).stdout
        rows = [line.split("\t") for line in listed.splitlines()]
        assert {kind for kind, _, _ in rows} == {"stage", "transport"}
        assert {*STAGES} < {name for kind, name, _ in rows if kind == "stage"}
        assert [name for kind, name, _ in rows if kind == "transport"] == TRANSPORTS

    def test_files_are_closed(self, probe: Path) -> None:
        """After each use."""
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            with Probe(probe, ["stage", "pipe", "--max-bytes", "64"]) as one:
                one.ask("64")
        assert len(os.listdir("/proc/self/fd")) == before
