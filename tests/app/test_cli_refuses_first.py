"""What measure, verify and tune refuse before anything is measured.

A probe, a command or a tool that is started fails the test.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from app.cli import main
from app.verbs.tune.operation import stage_of
from measuring import feasibility
from measuring.running import Command, Probe
from measuring.tools import ToolRun
from tests.support.compiler import ROOT, build_gpu_driver, compiler

TOKEN = "a" * 32
MIB, GIB = 1 << 20, 1 << 30
TWO = ("--stage", "memcpy", "--stage", "pipe")
DIRECT = ("--stage", "tcp", "--stage", "write-direct")


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """The probe from the sources as they are."""
    compiler()
    subprocess.run([sys.executable, ROOT / "tools" / "build_kernels.py"], check=True)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with the profile `path` in it, of two stages, which no refusal changes."""
    folder = tmp_path_factory.mktemp("database")
    address = f"sqlite:///{folder / 'cli.db'}"
    stages = [{"name": name, "overhead_us": 2.0, "ns_per_byte": 1.0} for name in ("a", "b")]
    model = folder / "model.json"
    model.write_text(json.dumps({"pipeline": {"stages": stages}}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLUICE_DATABASE_URL", address)
        assert main(["profiles", "save", "path", str(model)]) == 0
    return address


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    """A folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_DATABASE_URL", database)


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """main(argv) without a probe: exit code and what was said, which is one line."""

    def started(*_: object, **__: object) -> NoReturn:
        pytest.fail("something was started")

    monkeypatch.setattr(Probe, "__init__", started)
    monkeypatch.setattr(Command, "ask", started)
    monkeypatch.setattr(ToolRun, "_call", started)
    before = sorted(Path.cwd().iterdir())
    capsys.readouterr()

    def call(*words: object) -> tuple[int, str]:
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("sluice: error: ")
        assert captured.err.count("\n") == 1, captured.err
        return code, captured.err

    yield call
    assert sorted(Path.cwd().iterdir()) == before  # no file was written


@pytest.mark.parametrize(
    ("words", "said"),
    [
        # --bytes
        (("memcpy", "--bytes", "64"), "bytes: expected two sizes or more"),
        (("memcpy", "--bytes", "64,2TiB"), "expected sizes of 1 to 1099511627776 bytes"),
        (("write-direct", "--bytes", "4KiB,5000"), "multiples of 4096 bytes, got 5000"),
        (("sim", "--bytes", "64,2TiB"), "expected sizes of 1 to 1099511627776 bytes"),
        (("mpi", "--bytes", "64,4GiB"), "expected sizes of 1 to 2147483647 bytes"),
        (
            ("tcp", "--host", "h", "--token", TOKEN, "--bytes", "64..128MiB"),
            "expected sizes of 1 to 67108864 bytes, got 134217728",
        ),
        (("--stage", "a=true {bytes}", "--bytes", "64"), "bytes: expected two sizes or more"),
        # names
        (("nope",), "name: expected one of memcpy"),
        (("tcp:x",), "name: tcp:x: expected near/far/address"),
        (("tcp:a/b/10.0.0.300",), "name: tcp:a/b/10.0.0.300: expected near/far/address"),
        (("pipe", "--cold"), "only copies and checksums can be cold"),
        (("sim", "--cold"), "only copies and checksums can be cold"),
        (("--stage", "a=true {bytes}", "--cpus", "0"), "cpus: a command is run as it is"),
        (("--stage", "a=true"), "expected {bytes} among its words"),
        # counts, limits and processors
        (("sim", "--window", "0"), "window: expected a whole number from 1 to"),
        (("memcpy", "--cpus", "9999"), "and cpu 9999 is none"),
        (("sim", "--cpus", "0,9999"), "and cpu 9999 is none"),
        (("memcpy", "--tolerance", "0"), "expected 0 < tolerance <= 1"),
        (("sim", "--tolerance", "200%"), "expected 0 < tolerance <= 1"),
        (("memcpy", "--time-limit", "0"), "time_limit: expected 0 < time limit"),
        (("sim", "--time-limit", "-1"), "time_limit: expected 0 < time limit"),
        (("--stage", "a=true {bytes}", "--time-limit", "0"), "expected 0 < time limit"),
        # what is written
        (("memcpy", "--output", "no/such/x.csv"), "the folder for the file of measurements"),
        (("memcpy", "--output", "/proc/x.csv"), "output: the folder for the file of measurements"),
        (("memcpy", "--plot", "/proc/x.svg"), "the folder for the file of the plot"),
        (("memcpy", "--output", "a.csv", "--plot", "./a.csv"), "plot: expected another file"),
        (("memcpy", "--save-as", "No name"), "save_as: expected a profile's name"),
        (("sim", "--save-as", "one"), "save_as: a profile is made of signatures of two sizes"),
        (("--stage", "a=true {bytes}", "--save-as", "-"), "save_as: expected a profile's name"),
        (("write", "--path", "nowhere"), "path: expected a folder that exists"),
        # the far side
        (("tcp", "--host", "h", "--token", "short"), "token: expected 32 characters"),
        (("tcp", "--host", ""), "expected a host and a port"),
        (("pipe", "--host", "h", "--token", TOKEN), "only tcp goes to another machine"),
    ],
)
def test_measure(refused: Any, words: tuple[str, ...], said: str) -> None:
    """Each names its option and its rule."""
    code, stated = refused("measure", *words)
    assert code == 2
    assert said in stated


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*TWO, "--bytes", "64MiB", "--current", "512"), "current: expected at most 65536 fragmen"),
        ((*DIRECT, "--bytes", "5000"), "multiples of 4096 bytes, got 5000"),
        ((*DIRECT, "--current", "5000"), "current: direct transfers are of multiples of 4096"),
        ((*TWO, "--bytes", "0"), "expected a message of 1 B to 4 GiB, got 0 B"),
        ((*TWO, "--bytes", "8GiB"), "expected a message of 1 B to 4 GiB, got 8 GiB"),
        ((*TWO, "--depth", "0"), "depth: expected a whole number from 1 to 65536, got 0"),
        ((*TWO, "--depth", "65537"), "depth: expected a whole number from 1 to 65536"),
        ((*TWO, "--cpus", "0,9999"), "and cpu 9999 is none"),
        ((*TWO, "--tolerance", "0"), "expected 0 < tolerance <= 1"),
        ((*TWO, "--time-limit", "0"), "time_limit: expected 0 < time limit"),
        (("--stage", "memcpy", "--stage", "nope"), "stage: expected one of memcpy"),
        (("--stage", "memcpy", "--stage", "pipe,tcp"), "stage: expected one of memcpy"),
        (("--stage", "memcpy", "--stage", "tcp:a"), "stage: tcp:a: expected near/far/address"),
        (("--stage", "memcpy") * 17, "expected at most 16 stages, got 17"),
        (("--stage", "pipe", "--stage", "tcp:" + "a" * 300), "expected at most"),
        (("--stage", "pipe", "--stage", "write", "--path", "nowhere"), "path: expected a folder"),
    ],
)
@pytest.mark.parametrize("command", [("verify", "path"), ("tune",)], ids=["verify", "tune"])
def test_transfers(
    refused: Any, command: tuple[str, ...], words: tuple[str, ...], said: str
) -> None:
    """What a transfer cannot be is refused by verify, and by tune before its first stage."""
    code, stated = refused(*command, *words)
    assert code == 2
    assert said in stated


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--bytes", "1"), "bytes: expected a longer message: tcp is measured at its halves"),
        (("--stage", "write-direct", "--bytes", "4KiB"), "4 KiB has none"),
        (("--folder", "nowhere"), "expected a folder that exists"),
        (("--folder", "/proc"), "the folder for the file of the measurements"),
        (("--save-as", "No name"), "save_as: expected a profile's name"),
        (("--target", "nope"), "target"),
        (("--target", "nccl"), "expected a target of sizes or costs: nccl takes a compiled table"),
        (("--target", "ucx", "--option", "nope=1"), "ucx has no option"),
        (("--option", "form=rdma"), "expected the --target whose option it is"),
    ],
)
def test_tune(refused: Any, words: tuple[str, ...], said: str) -> None:
    """What is wanted of it at the end, too."""
    code, stated = refused("tune", *words)
    assert code == 2
    assert said in stated


@pytest.mark.parametrize(
    ("words", "said", "expected"),
    [
        (("path@7", *TWO), "revision", 4),
        (("nothing", *TWO), "there is no hardware profile 'nothing'", 4),
        (("path",), "which stages were measured is not known of this source", 2),
        (("path", "--stage", "memcpy"), "the model has 2 stages, and 1 are named", 2),
        (("path", *TWO, "--output", "no/such/t.csv"), "output", 2),
        (("path", *TWO, "--output", "/proc/t.csv"), "output: the folder for the file", 2),
    ],
)
def test_verify(refused: Any, words: tuple[str, ...], said: str, expected: int) -> None:
    """What is read and what is written."""
    code, stated = refused("verify", *words)
    assert (code, said in stated) == (expected, True)


KEEPING = (
    ("measure", "memcpy", "--save-as", "x"),
    ("measure", "sim", "--bytes", "64,256", "--save-as", "x"),
    ("measure", "--stage", "a=true {bytes}", "--save-as", "x"),
    ("verify", "path", *TWO),
    ("tune",),
)


@pytest.mark.parametrize("words", KEEPING, ids=lambda words: " ".join(words[:2]))
def test_a_database_that_is_not_there(
    refused: Any, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Is seen before what would be lost is measured."""
    monkeypatch.setenv("SLUICE_DATABASE_URL", "postgresql+psycopg://nobody@127.0.0.1:1/none")
    code, stated = refused(*words)
    assert code != 0
    assert "the database cannot be reached" in stated


@pytest.mark.parametrize(
    "words",
    [
        ("measure", "memcpy", "--bytes", "64..1MiB"),
        ("measure", "memcpy", "--bytes", "64,128", "--cold"),
        ("measure", "sim", "--bytes", "64,1MiB"),
        ("verify", "path", *TWO),
        ("tune", *TWO),
    ],
    ids=" ".join,
)
def test_memory_that_is_not_there(
    refused: Any, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Needed and free are said; what is less than is free goes on to the probe."""
    monkeypatch.setattr(feasibility, "free_memory_bytes", lambda: 1_500_000)
    code, stated = refused(*words)
    assert code == 2
    assert re.search(
        r"bytes: expected a size that memory is there for: \S+ [MG]iB are needed, 1.4 MiB", stated
    )


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (("measure", "write", "--bytes", "64,128"), "64.0 MiB"),
        (("measure", "read", "--bytes", "1MiB,32MiB"), "128.0 MiB"),
        (("verify", "path", "--stage", "write", "--stage", "read", "--bytes", "1MiB"), "2.0 MiB"),
        (("tune", "--bytes", "2MiB"), "2.0 MiB"),
    ],
)
def test_a_disk_that_has_no_room(
    refused: Any, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], needed: str
) -> None:
    """Of each file; other stages need none."""
    found = os.statvfs(".")
    full = os.statvfs_result((found.f_bsize, 4096, *found[2:4], 10, *found[5:]))
    monkeypatch.setattr(feasibility.os, "statvfs", lambda _: full)
    code, stated = refused(*words)
    assert (code, f".: {needed} are needed, 40.0 KiB are free" in stated) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ("measure", "write-direct"),
        ("verify", "path", *DIRECT),
        ("tune", *DIRECT),
    ],
    ids=lambda words: words[0],
)
def test_a_file_system_without_direct_transfers(
    refused: Any, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """It is not here, as a tool that is not."""
    opened = os.open

    def refuse(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & os.O_DIRECT:
            raise OSError(22, "Invalid argument")
        return opened(path, flags, *more, **named)

    monkeypatch.setattr(feasibility.os, "open", refuse)
    code, stated = refused(*words)
    assert (code, "no files without a name past the page cache" in stated) == (3, True)


def test_stages_of_a_gpu_and_of_namespaces_that_are_not_here(refused: Any) -> None:
    """Before the first stage, which is here."""
    code, stated = refused("tune", "--stage", "memcpy", "--stage", "tcp:no-a/no-b/10.0.0.2")
    assert (code, "there is no network namespace no-a" in stated) == (3, True)
    code, stated = refused("measure", "tcp:no-a/no-b/10.0.0.2")
    assert (code, "there is no network namespace no-a" in stated) == (3, True)
    known = {("stage", "memcpy"): "a copy", ("stage", "h2d"): "not here: there is no GPU"}
    with pytest.raises(Exception, match="h2d: not here: there is no GPU"):
        feasibility.check_stages(("memcpy", "h2d"), known)


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        (("memcpy", "d2h"), "what comes before d2h leaves the message in memory of the host"),
        (("h2d", "memcpy"), "what comes before memcpy leaves the message in memory of the GPU"),
        (("d2h", "d2h"), "what comes before d2h leaves the message in memory of the host"),
    ],
)
def test_the_order_of_a_gpus_copies(
    refused: Any,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    stages: tuple[str, ...],
    said: str,
) -> None:
    """With a driver that is here."""
    folder = tmp_path_factory.mktemp("driver")
    build_gpu_driver(folder)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    words = [word for stage in stages for word in ("--stage", stage)]
    code, stated = refused("tune", *words)
    assert (code, said in stated) == (2, True)


def test_tools(refused: Any) -> None:
    """Sizes, limits and what is kept, whether the tool is here or not."""
    for words, said in (
        (("iperf3", "--bytes", "4KiB"), "bytes: expected two sizes or more"),
        (("iperf3", "--time-limit", "0"), "time_limit: expected 0 < time limit"),
        (("iperf3", "--save-as", "No name"), "save_as: expected a profile's name"),
        (("iperf3", "--plot", "no/x.svg"), "plot"),
    ):
        code, stated = refused("measure", *words)
        assert (code, said in stated) == (2, True)


def test_tune_starts_its_transfers_before_it_measures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What only the probe of the transfers finds is found first too."""
    opened = list[str]()

    def started(self: Probe, program: Path, words: list[str], **_: object) -> None:
        opened.append(words[0])
        raise feasibility.NotMeasurable("it does not start")

    monkeypatch.setattr(Probe, "__init__", started)
    assert main(["tune"]) == 3
    assert opened == ["transfer"]
    assert "measuring" not in capsys.readouterr().err


def test_sizes_that_are_measured_are_of_the_message() -> None:
    """What tune checks is what it measures: the message and its halves, whole pages past caches."""
    asked = stage_of("write-direct", 3 * 4096, ("write-direct",), _Arguments())
    assert asked.bytes == [4096, 8192, 12288]
    assert stage_of("memcpy", 6, ("memcpy", "h2d"), _Arguments()).cold


class _Arguments:
    """Some of the options of tune."""

    def __init__(self) -> None:
        self.time_limit = 10.0


def test_limits_are_those_of_the_probe() -> None:
    """As its sources have them."""
    sources = {path.name: path.read_text() for path in (ROOT / "measuring/probe").glob("*.c")}
    for name, words in {
        "transfer.c": f"MAX_STAGES = {feasibility.MAX_STAGES}, MAX_FRAGMENTS = 1 << 16",
        "stages.c": "COLD_BYTES = (size_t)256 << 20",
        "main.c": 'count_of("--max-bytes", value, 1ull << 40)',
    }.items():
        assert words in sources[name]
    assert 'count_of("--window", value, 1ull << 40)' in sources["main.c"]
    assert 'count_of("--depth", value, 1ull << 16)' in sources["main.c"]
    assert "FILE_BYTES = (size_t)64 << 20" in sources["stages.c"]
    assert (feasibility.MAX_FRAGMENTS, feasibility.MAX_DEPTH) == (1 << 16, 1 << 16)
    assert (feasibility.MAX_BYTES, feasibility.MAX_WINDOW) == (1 << 40, 1 << 40)
    assert (feasibility.COLD_BYTES, feasibility.FILE_BYTES) == (256 << 20, 64 << 20)


def test_processors_are_as_before_after_they_were_tried() -> None:
    """Also where one of them is refused."""
    before = os.sched_getaffinity(0)
    feasibility.check_processors(sorted(before))
    with pytest.raises(Exception, match="cpu 9999"):
        feasibility.check_processors((min(before), 9999))
    assert os.sched_getaffinity(0) == before


def test_memory_is_what_the_kernel_and_the_group_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The less of both; nothing where neither is known."""
    free_bytes = feasibility.free_memory_bytes()
    assert free_bytes is not None
    assert 16 * MIB < free_bytes < 1024 * 1024 * GIB
    for available, limit, expected in ((5, None, 5), (None, 7, 7), (5, 3, 3), (None, None, None)):
        monkeypatch.setattr(feasibility, "_memory_available", lambda found=available: found)
        monkeypatch.setattr(feasibility, "_memory_limit", lambda found=limit: found)
        assert feasibility.free_memory_bytes() == expected
