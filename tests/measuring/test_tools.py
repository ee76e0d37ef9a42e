"""Existing tools: run as they are, what they print kept untouched, and killed in every case.

The tools here print what the real ones printed on another machine, so that none needs to be there.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from app.cli import main
from domain.errors import InvalidInput, NotMeasurable
from measuring import tools as module
from measuring.tools import TOOLS, ToolRun
from tests.support.compiler import ROOT

TRACES = ROOT / "tests" / "data" / "traces"
SERVER = "import sys, time\nif '-s' in sys.argv[1:2] or 'server' in sys.argv: time.sleep(60)\n"


def quiet(_: int, __: int) -> None:
    """Say nothing of how far it is."""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in front of all others on PATH, and a folder to be in."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    monkeypatch.chdir(tmp_path)
    return folder


def put(folder: Path, name: str, program: str) -> None:
    """A tool that is this Python program."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{program}")
    path.chmod(0o755)


def printing(trace: str) -> str:
    return f"print(open({str(TRACES / trace)!r}).read(), end='')\n"


def is_running(word: str) -> bool:
    """Whether a process has this among its words."""
    return any(
        word.encode() in path.read_bytes()
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.exists()
    )


class TestRuns:
    """What is kept, and what is refused."""

    def test_what_a_tool_prints_is_kept_and_fitted(
        self, tools: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        put(tools, "mpirun", printing("osu-latency-and-bw.txt"))
        put(tools, "osu_latency", "")
        code = main(["measure", "osu_latency", "--bytes", "1KiB..64KiB", "--save-as", "mpi"])
        captured = capsys.readouterr()
        assert (code, "saved as mpi@1" in captured.out) == (0, True), captured.err
        kept = tmp_path / "osu_latency-tool"
        recorded = TRACES / "osu-latency-and-bw.txt"
        assert (kept / "osu_latency.txt").read_bytes() == recorded.read_bytes()
        assert "osu_latency -m 1024:65536" in (kept / "commands.txt").read_text()
        assert (kept / "version.txt").read_text() != ""

    def test_both_sides_of_a_tool(self, tools: Path, tmp_path: Path) -> None:
        put(tools, "iperf3", SERVER + printing("iperf3.json"))
        run = ToolRun(TOOLS["iperf3"], (65_536,), tmp_path / "out", limit_s=1.0)
        run.run(quiet)
        assert run.files[0].read_bytes() == (TRACES / "iperf3.json").read_bytes()
        commands = (tmp_path / "out" / "commands.txt").read_text().splitlines()
        server, client = map(shlex.split, commands)
        assert server[:3] == ["iperf3", "-s", "-1"]
        assert client[-2:] == ["-l", "65536"]
        assert server[-1] == client[client.index("-p") + 1]  # one port for both sides

    def test_a_file_that_the_tool_writes(self, tools: Path, tmp_path: Path) -> None:
        place = "sys.argv[sys.argv.index('--full-log') + 1]"
        copied = f"open({place}, 'w').write(open({str(TRACES / 'sockperf.csv')!r}).read())"
        put(tools, "sockperf", f"{SERVER}if 'ping-pong' in sys.argv: {copied}\n")
        run = ToolRun(TOOLS["sockperf"], (64, 1024), tmp_path / "out", limit_s=1.0)
        run.run(quiet)
        assert [file.name for file in run.files] == ["sockperf-64.csv", "sockperf-1024.csv"]
        assert run.files[0].read_bytes() == (TRACES / "sockperf.csv").read_bytes()

    def test_the_command_stands_above_what_does_not_say_its_size(
        self, tools: Path, tmp_path: Path
    ) -> None:
        put(
            tools,
            "ucx_perftest",
            "import sys, time\n'-t' in sys.argv or time.sleep(60)\nprint('rows')\n",
        )
        run = ToolRun(TOOLS["ucx_perftest"], (4096,), tmp_path / "out", limit_s=1.0)
        run.run(quiet)
        first, rest = run.files[0].read_text().split("\n", 1)
        assert (first.startswith("$ ucx_perftest 127.0.0.1 -p "), rest) == (True, "rows\n")
        assert "-t tag_lat -s 4096" in first

    def test_what_a_failing_tool_printed_before_is_named(
        self,
        tools: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """The first size is there, the second one fails."""
        monkeypatch.setattr(module, "_FAR_SIDE_S", 1.0)
        fails = "import sys\nif '-c' in sys.argv and '4096' in sys.argv: sys.exit(3)\n"
        put(tools, "iperf3", SERVER + fails + printing("iperf3.json"))
        assert main(["measure", "iperf3", "--bytes", "1024,4096", "--time-limit", "20"]) == 3
        assert "what was measured until then is in iperf3-tool" in capsys.readouterr().err
        assert (tmp_path / "iperf3-tool" / "iperf3-1024.json").exists()

    def test_a_tool_that_is_not_here(self, tools: Path, tmp_path: Path) -> None:
        """Is said, here and in the list, and nothing is written."""
        for name, program in (("osu_latency", "osu_latency"), ("imb", "IMB-MPI1")):
            assert program in (TOOLS[name].missing or "")
            with pytest.raises(NotMeasurable, match="not on PATH"):
                ToolRun(TOOLS[name], (64,), tmp_path / "out", limit_s=1.0)
        assert not (tmp_path / "out").exists()

    def test_a_module_that_is_not_here(self, tools: Path) -> None:
        put(tools, "mpirun", "")
        put(tools, "python3", "raise SystemExit(1)")
        assert (
            TOOLS["mpi4py"].missing
            == "not here: the python3 on PATH has no mpi4py of version 4 and later"
        )
        put(tools, "python3", "print('4.1.0')")
        assert TOOLS["mpi4py"].missing is None
        assert TOOLS["mpi4py"].version_line() == "4.1.0"

    def test_a_folder_that_holds_something(self, tools: Path, tmp_path: Path) -> None:
        put(tools, "iperf3", SERVER + printing("iperf3.json"))
        (tmp_path / "kept.txt").write_text("mine")
        with pytest.raises(InvalidInput, match="empty folder"):
            ToolRun(TOOLS["iperf3"], (1024,), tmp_path, limit_s=1.0).run(quiet)
        assert (tmp_path / "kept.txt").read_text() == "mine"

    def test_sizes_that_a_tool_does_not_take(
        self, tools: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        put(tools, "iperf3", "")
        put(tools, "fio", "")
        for asked in (("iperf3", "--bytes", "1MiB,2MiB"), ("fio", "--bytes", "64,512")):
            assert main(["measure", *asked]) == 2
            assert " bytes for " in capsys.readouterr().err
        assert main(["measure", "fio", "--cpus", "0"]) == 2
        assert main(["measure", "memcpy", "--what", "tool"]) == 2


class TestEnds:
    """A tool that fails or hangs ends with its reason, and leaves nothing running."""

    @pytest.mark.parametrize(
        ("program", "words", "limit_s"),
        [
            (SERVER + "print('no route')\nraise SystemExit(1)", "ended with 1: no route", 20.0),
            (SERVER + "time.sleep(60)", "took longer", 0.3),
            ("raise SystemExit(4)", "ended with 4", 20.0),
        ],
    )
    def test_both_sides_are_gone(
        self,
        tools: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        program: str,
        words: str,
        limit_s: float,
    ) -> None:
        monkeypatch.setattr("measuring.tools._FAR_SIDE_S", 0.5)
        put(tools, "iperf3", program)
        with pytest.raises(NotMeasurable, match=words):
            ToolRun(TOOLS["iperf3"], (1024,), tmp_path / "out", limit_s=limit_s).run(quiet)
        assert not is_running(str(tools / "iperf3"))
        assert (tmp_path / "out" / "commands.txt").exists()
