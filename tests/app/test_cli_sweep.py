"""sluice sweep: real programs, whose times are read, and which are really killed."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from app.cli import main
from domain.own_transfers import TransferStatus
from fitting.own_transfers import read_own_transfers
from measuring.own_program import OwnProgram
from measuring.probe import object_path
from tests.measuring.test_killed import MARK, marked, wait_for
from tests.support.compiler import ROOT

# It says how long it took: a curve with its best at 512 KiB of 4 MiB, and a little noise.
MOVER = """
import sys, zlib
size, runs = int(sys.argv[1]), sys.argv[2]
with open(runs, "a") as file:
    file.write(f"{size}\\n")
count = len(open(runs).readlines())
time_ms = 10 + size / 2**16 + 64 * (2**22 / size) / 64
print("done in", time_ms * (1 + (zlib.crc32(b"%d" % count) % 1000 - 500) / 50000), "ms")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mover.py").write_text(MOVER)
    return tmp_path


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """main(argv) in this process: (exit code, standard output, standard error)."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(word) for word in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


LAST = ("sweep", "--time", "last", "--time-limit", "300")
BYTES = ("--bytes", "4MiB")
PROGRAM = ("--", sys.executable, "mover.py", "{bytes}", "runs")
SH = ("--", "/bin/sh", "-c")


def rows(name: str = "own.csv") -> Any:
    return read_own_transfers(Path(name).read_text()).rows


class TestVerdicts:
    """What is said at the end, and kept."""

    def test_a_faster_size_is_set(self, printed: Any) -> None:
        code, out, err = printed(*LAST, *BYTES, "--current", "64KiB", *PROGRAM)
        assert code == 0
        said = " ".join(out.split())
        assert re.match(
            r"Set (384|512|768) KiB: \d+ to \d+ % faster than your 64 KiB \(\d+ runs", said
        )
        assert "regret at most" in said
        ran = [int(line) for line in Path("runs").read_text().split()]
        assert [row.fragment_bytes for row in rows()] == ran
        assert rows()[0].status is TransferStatus.WARM_UP
        assert len(ran) <= 40
        lines = err.splitlines()
        assert lines[0].startswith("sluice: run 1: 64 KiB, ")
        assert re.match(r"sluice: \S+ s a run: about 24 runs, \d+", lines[1])
        assert len(lines) == 1 + len(ran)
        facts = Path("own.csv").read_text().splitlines()
        assert facts[0] == f"# command: {sys.executable} mover.py '{{bytes}}' runs"
        assert facts[1:3] == ["# time: --time last", "# current: 64 KiB"]

    def test_the_best_one_is_kept_and_quietly(self, printed: Any) -> None:
        words = (*LAST, *BYTES, "--current", "512KiB", "--quiet", "--out", "x.csv", *PROGRAM)
        code, out, err = printed(*words)
        assert (code, err) == (0, "")
        assert " ".join(out.split()).startswith("Keep your 512 KiB: no round size from ")
        assert not Path("own.csv").exists()
        assert len(rows("x.csv")) > 6

    def test_too_few_runs_decide_nothing_and_a_file_goes_on(self, printed: Any) -> None:
        code, out, _ = printed(*LAST, *BYTES, "--current", "256KiB", "--max-runs", "6", *PROGRAM)
        assert code == 6
        said = " ".join(out.split())
        assert said.startswith("Not decided in 5 runs, ")
        assert said.endswith("go on: the same command with --continue own.csv")
        before = rows()
        code, out, _ = printed(*LAST, "--continue", "own.csv", *PROGRAM)
        assert code == 0
        assert rows()[: len(before)] == before
        begins = [row.began_s for row in rows()]
        assert begins == sorted(begins)

    def test_the_document(self, printed: Any) -> None:
        code, out, _ = printed(*LAST, *BYTES, "--current", "64KiB", "--json", *PROGRAM)
        assert code == 0
        found = json.loads(out)
        assert found["set_this"]["verdict"] == "set"
        assert found["current_bytes"] == 65536
        assert found["set_this"]["sentence"].startswith("Set ")

    def test_words_of_the_program_are_not_ours(self, printed: Any) -> None:
        """Behind -- even --json and --help are the program's."""
        text = 'test "$1" = --json && echo 5 ms'
        words = (*SH, text, "sh", "--json", "--help", "{bytes}")
        code, out, _ = printed(*LAST, *BYTES, "--max-runs", "6", *words)
        assert code in (0, 6)
        assert not out.startswith("{")

    def test_wall_times_that_hardly_differ(self, printed: Any) -> None:
        code, out, _ = printed(
            "sweep", *BYTES, "--max-runs", "9", *SH, "sleep 0.3", "sh", "{bytes}"
        )
        assert code in (0, 6)
        if max(row.latency_us for row in rows()) < 1.04 * min(row.latency_us for row in rows()):
            assert "the time hardly depends on the size" in " ".join(out.split())

    def test_rates_patterns_and_variables(self, printed: Any) -> None:
        text = 'echo "copied at $((PART / 4096 + 1)) MB/s."'
        how = ("--time", r"at (\S+ MB/s)", "--rate", "--env", "PART={bytes}", "--max-runs", "8")
        code, _, err = printed("sweep", *BYTES, "--current", "64KiB", *how, *SH, text)
        assert code in (0, 6), err
        first = rows()[0]
        assert first.latency_us == pytest.approx(2**22 / 17e6 * 1e6, abs=0.01)


class TestRefusedSizes:
    """Sizes at which the program fails."""

    def test_one_that_fails_twice_is_left_out(self, printed: Any) -> None:
        text = (
            'if [ "$0" -gt 1048576 ]; then echo; echo "parts of $0 are too large" >&2; exit 2; fi; '
            f"{sys.executable} mover.py $0 runs"
        )
        code, out, _ = printed(*LAST, *BYTES, "--current", "64KiB", *SH, text, "{bytes}")
        assert code == 0
        assert "it ended with 2: parts of 4194304 are too large" in " ".join(out.split())
        failed = [row for row in rows() if row.status is TransferStatus.REFUSED]
        assert len(failed) == 2 * len({row.fragment_bytes for row in failed})
        assert {row.reason for row in failed if row.fragment_bytes == 2**22} == {
            "it ended with 2: parts of 4194304 are too large"
        }

    def test_the_one_in_use(self, printed: Any) -> None:
        code, out, _ = printed(
            *LAST, *BYTES, "--current", "64KiB", *SH, "echo no >&2; exit 3", "{bytes}"
        )
        assert code == 3
        assert "the program fails at your 64 KiB: it ended with 3: no" in " ".join(out.split())
        assert [row.status for row in rows()] == [TransferStatus.REFUSED] * 2

    def test_a_fifth_that_fails_now_and_then_ends_it(self, printed: Any) -> None:
        """Every third run fails, whatever its size."""
        text = (
            "echo >> count; [ $(($(wc -l < count) % 3)) -ne 0 ] || exit 1; "
            f"{sys.executable} mover.py $0 runs"
        )
        code, out, _ = printed(*LAST, *BYTES, "--current", "64KiB", *SH, text, "{bytes}")
        assert len(rows()) < 40
        assert code == 0 or "more than a fifth of the runs failed" in " ".join(out.split())


class TestLimits:
    """Time, and who ends it."""

    def test_a_first_run_that_outlasts_the_limit(self, printed: Any) -> None:
        begun_s = time.monotonic()
        words = ("sweep", *BYTES, "--time-limit", "0.5", *SH, "sleep 600", "{bytes}")
        code, out, _ = printed(*words)
        assert code == 6
        assert "no further run fits into the 0.5 s" in " ".join(out.split())
        assert time.monotonic() - begun_s < 60.0
        assert not Path("own.csv").exists()

    def test_the_limit_ends_it_between_runs(self, printed: Any) -> None:
        words = ("sweep", *BYTES, "--time-limit", "3", *SH, "sleep 0.7", "{bytes}")
        code, _, err = printed(*words)
        assert code == 6
        assert "; 3 s allow " in err
        assert 0 < len(rows()) <= 4

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_ctrl_c_keeps_the_runs_and_ends_everything(
        self, folder: Path, number: signal.Signals
    ) -> None:
        mark = uuid4().hex
        text = "echo >> count; [ $(wc -l < count) -gt 3 ] || exit 0; setsid sleep 600 & sleep 600"
        with _swept(folder, mark, text) as process:
            wait_for(lambda: _has_lines(folder / "count", 4), "it does not run")
            process.send_signal(number)
            _, err = process.communicate(timeout=60.0)
        assert process.returncode == 130
        assert "interrupted; every run is in own.csv" in err
        assert len(rows()) == 3
        if object_path().exists():
            wait_for(lambda: not marked(mark), "processes stay behind")

    def test_a_kill_loses_the_run_under_way_alone(self, folder: Path) -> None:
        mark = uuid4().hex
        text = "echo >> count; [ $(wc -l < count) -gt 5 ] || exit 0; sleep 600"
        with _swept(folder, mark, text) as process:
            wait_for(lambda: _has_lines(folder / "count", 6), "it does not run")
            process.kill()
        assert len(rows()) == 5
        assert not list(folder.glob(".*part"))
        if object_path().exists():
            wait_for(lambda: not marked(mark), "processes stay behind")


def _swept(folder: Path, mark: str, text: str) -> subprocess.Popen[str]:
    """Start `sluice sweep` of a shell's words; all that it starts has the mark."""
    words = ["sweep", *BYTES, "--time-limit", "500", *SH, text, "{bytes}"]
    return subprocess.Popen(
        [sys.executable, "-m", "app.cli", *words],
        cwd=folder,
        env={**os.environ, MARK: mark, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _has_lines(path: Path, count: int) -> bool:
    return path.exists() and len(path.read_text().splitlines()) >= count


REFUSALS = [
    (("sweep", *PROGRAM), 2, "expected --bytes"),
    (("sweep", *BYTES), 2, "expected a program behind --"),
    (("sweep", *BYTES, "--", "true"), 2, "expected {bytes} among its words, or --env NAME={bytes}"),
    (("sweep", *BYTES, "--", "/no/such", "{bytes}"), 69, "there is no program of that name"),
    (("sweep", *BYTES, "--before", "nowhere", *PROGRAM), 69, "nowhere: there is no program"),
    (("sweep", *BYTES, "--before", "'", *PROGRAM), 2, "before: expected a command"),
    (("sweep", *BYTES, "--env", "1=x", *PROGRAM), 2, "env: expected NAME=VALUE"),
    (
        ("sweep", *BYTES, "--env", "A={bytes}", "--env", "B=1", "--env", "A=2", *PROGRAM),
        2,
        "env: expected the value of A once",
    ),
    (("sweep", *BYTES, "--current", "0", *PROGRAM), 2, "error: expected a current size"),
    (("sweep", *BYTES, "--max-runs", "2", *PROGRAM), 2, "max_runs: expected 6 to 1000 runs"),
    (("sweep", *BYTES, "--min-fragment-bytes", "8MiB", *PROGRAM), 2, "min_fragment_bytes: "),
    (("sweep", *BYTES, "--time-limit", "0", *PROGRAM), 2, "time_limit: expected 0 < time limit"),
    (("sweep", *BYTES, "--time", "(", *PROGRAM), 2, "time: expected wall, last or a regular"),
    (("sweep", *BYTES, "--time", "none", *PROGRAM), 2, "a regular expression with one group"),
    (("sweep", *BYTES, "--unit", "ms", *PROGRAM), 2, "unit: it goes with --time last"),
    (("sweep", *BYTES, "--rate", *PROGRAM), 2, "rate: it goes with --time last"),
    (("sweep", *BYTES, "--time", "last", "--unit", "h", *PROGRAM), 2, "expected a unit, as ns"),
    (("sweep", *BYTES, "--out", "no/own.csv", *PROGRAM), 2, "out: the folder"),
    (("sweep", *BYTES, "--continue", "nowhere.csv", *PROGRAM), 2, "No such file"),
    (("sweep", *BYTES, "--continue", "mover.py", *PROGRAM), 2, "continue: "),
    (("sweep", "--bytes", "0", *PROGRAM), 2, "bytes"),
]


def test_every_refusal_is_of_an_option(printed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """As the document names it, which programs read."""
    with pytest.raises(SystemExit):
        main(["sweep", "--help"])
    known = {"program", *re.findall(r"--([a-z-]+)", capsys.readouterr().out)}
    for words, code, _ in REFUSALS:
        if code != 2:
            continue
        _, _, err = printed(words[0], "--json", *words[1:])
        (problem,) = json.loads(err)["errors"]
        assert problem["pointer"].removeprefix("/").replace("_", "-") in known, words


def test_a_size_in_use_beyond_the_message_is_the_message(printed: Any) -> None:
    """As everywhere else."""
    code, out, _ = printed(*LAST, *BYTES, "--current", "8MiB", "--max-runs", "6", *PROGRAM)
    assert code in (0, 6)
    assert "your 4 MiB" in " ".join(out.split())
    assert "# current: 4 MiB" in Path("own.csv").read_text()


def test_a_pattern_that_takes_forever_is_refused_in_time(
    printed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("measuring.printed_times.MATCH_S", 0.5)
    text = "echo " + "a" * 40
    words = ("sweep", *BYTES, "--time", "((?:a+)+)b", *SH, text, "sh", "{bytes}")
    code, out, err = printed(*words)
    assert (code, out) == (2, "")
    assert "time: no match after 0.5 s" in err


@pytest.mark.parametrize(("words", "code", "said"), REFUSALS)
def test_what_is_refused_before_anything_is_run(
    printed: Any,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    monkeypatch.setattr(OwnProgram, "run", lambda *_, **__: pytest.fail("something was run"))
    found, out, err = printed(*words)
    assert (found, out) == (code, "")
    assert err.startswith("sluice: error: ")
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*LAST, "--", sys.executable, "mover.py", "{bytes}", "others"), "command"),
        (("sweep", *PROGRAM), "time"),
        ((*LAST, "--current", "128KiB", *PROGRAM), "current"),
        ((*LAST, "--bytes", "8MiB", *PROGRAM), "8 MiB"),
    ],
)
def test_a_file_of_something_else_is_not_continued(
    printed: Any, words: tuple[str, ...], said: str
) -> None:
    printed(*LAST, *BYTES, "--current", "64KiB", "--max-runs", "6", *PROGRAM)
    before = Path("own.csv").read_text()
    at = words.index("--")
    code, _, err = printed(*words[:at], "--continue", "own.csv", *words[at:])
    assert code == 2
    assert said in err
    assert Path("own.csv").read_text() == before


FACTS = f"# command: {shlex.join(PROGRAM[1:])}\n# time: --time last\n"
HEAD = "message_bytes,fragment_bytes,latency_us,block,status,challenge\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            FACTS + "# current: many\n" + HEAD + "4MiB,64KiB,5,0,,\n",
            "continue: current: expected a size",
        ),
        (FACTS + "# current: 8MiB\n" + HEAD + "4MiB,64KiB,5,0,,\n", "current"),
        (FACTS + HEAD + "4MiB,64KiB,5,0,,3\n", "challenge"),
        (HEAD + "4MiB,64KiB,5,0,,\n8MiB,64KiB,5,0,,\n", "4 MiB and 8 MiB"),
        (HEAD + "4MiB,64KiB,nan,0,,\n", "line 2"),
        (FACTS + HEAD + "".join(f"4MiB,{size},5,0,,\n" for size in range(1, 250)), "256 sizes"),
        ("", "empty"),
    ],
)
def test_files_that_no_race_goes_on_from(
    printed: Any, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setattr(OwnProgram, "run", lambda *_, **__: pytest.fail("something was run"))
    Path("own.csv").write_text(text)
    code, out, err = printed(*LAST, "--continue", "own.csv", *PROGRAM)
    assert (code, out) == (2, "")
    assert said in err
    assert Path("own.csv").read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        "message_bytes,fragment_bytes,time_ms\n4MiB,64KiB,75\n4MiB,1MiB,30\n",
        FACTS + "message_bytes,fragment_bytes,latency_us,note\n4MiB,64KiB,75,mine\n",
    ],
)
def test_a_file_of_another_origin_is_neither_continued_nor_replaced(
    printed: Any, text: str
) -> None:
    """Its times may be of another program, and what is not read would be lost."""
    Path("own.csv").write_text(text)
    words = ("--current", "64KiB", "--max-runs", "12", *PROGRAM)
    code, _, err = printed(*LAST, *BYTES, "--continue", "own.csv", *words)
    assert code == 2
    assert "continue: expected a file that sluice sweep has written" in err
    code, _, err = printed(*LAST, *BYTES, *words)
    assert code == 2
    assert "own.csv has something in it" in err
    assert Path("own.csv").read_text() == text


def test_a_number_without_a_unit_is_asked_back(printed: Any) -> None:
    """At the first run, which is all that is run."""
    code, _, err = printed(*LAST, *BYTES, *SH, "echo >> count; echo 12.5", "{bytes}")
    assert code == 2
    assert "expected a unit beside the 12.5 that it printed, as 12.5 ms, or --unit" in err
    assert _has_lines(Path("count"), 1)
    assert not _has_lines(Path("count"), 2)
