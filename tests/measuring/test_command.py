"""A program of the user's own as a stage: what it prints, and every way in which it can fail."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from app.cli import main
from app.console import files
from domain.errors import InvalidInput, NotMeasurable
from measuring.running import Command


def prints(text: str) -> str:
    return f"{sys.executable} -c \"print('''{text}''')\" {{bytes}}"


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("12.5", 12_500),
        ("12.5 us", 12_500),
        ("12.5µs", 12_500),
        ("0.0012 s", 1_200_000),
        ("3 ms", 3_000_000),
        ("7 ns", 7),
        ("1e-3 s", 1_000_000),
        ("warming up\\n5\\n\\n", 5_000),
        ("0", 0),
    ],
)
def test_the_last_line_is_the_time(text: str, ns: int) -> None:
    assert Command("x", prints(text)).ask("64") == f"64 {ns} 0"


def test_the_size_is_among_the_words_and_no_shell_reads_them(tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    script.write_text("import sys\nprint(int(sys.argv[1].removeprefix('n=')))\n")
    command = Command("x", f"{sys.executable} {script} n={{bytes}} ';touch' {tmp_path}/made")
    assert command.ask("4096") == "4096 4096000 0"
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (prints("fast"), "expected a time"),
        (prints("-1"), "expected a time"),
        (prints("nan"), "expected a time"),
        (prints("1e300 s"), "expected a time"),
        (prints("1 h"), "expected a time"),
        (prints(""), "expected a time"),
        ("false {bytes}", "ended with 1"),
        ("yes {bytes}", "more than 65536 bytes"),
        ("/no/such/program {bytes}", "cannot be run"),
    ],
)
def test_what_is_no_time_is_refused(line: str, words: str) -> None:
    with pytest.raises(NotMeasurable, match=words):
        Command("x", line).ask("64")


@pytest.mark.parametrize("line", ["", "sleep 1", "'{bytes}"])
def test_words_that_are_none(line: str) -> None:
    with pytest.raises(InvalidInput):
        Command("x", line)


def test_it_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    file = tmp_path / "child"
    script = tmp_path / "s.py"
    script.write_text(
        "import os, subprocess, sys\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(file)!r}, 'w').write(str(child.pid))\n"
        "child.wait()\n"
    )
    with pytest.raises(NotMeasurable, match="longer than 2 s"):
        Command("x", f"{sys.executable} {script} {{bytes}}", limit_s=2.0).ask("64")
    child = int(file.read_text())
    for _ in range(600):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError("its child is still there")


def test_a_command_is_measured_and_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the probe; the samples are kept as a file that says which program it was."""
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "s.py"
    script.write_text("import sys\nprint(3 + 0.01 * int(sys.argv[1]))\n")
    words = ("--bytes", "64,1024,4096", "--time-limit", "60")
    stage = f"mine={sys.executable} {script} {{bytes}}"
    assert main(["measure", "--stage", stage, *words]) == 0
    assert "mine" in capsys.readouterr().out
    text = (tmp_path / "mine-stage.csv").read_text()
    assert text.startswith("# program: ")
    assert "message_bytes,repetition,mine_us\n64,0,3.64\n" in text


def test_what_was_measured_before_a_program_failed_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it is before a kill: the file is written while samples are taken."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "_KEPT_EVERY_S", 0.0)
    script = tmp_path / "s.sh"
    script.write_text(
        f"echo >> {tmp_path}/runs; [ $(wc -l < {tmp_path}/runs) -lt 24 ] && echo $1\n"
    )
    words = ("--bytes", "64,1024", "--time-limit", "60", "--tolerance", "0.000001")
    assert main(["measure", "--stage", f"mine=/bin/sh {script} {{bytes}}", *words]) == 3
    assert "it ended with 1" in capsys.readouterr().err
    text = (tmp_path / "mine-stage.csv").read_text()
    assert "# ended: interrupted\n" in text
    assert text.count("\n64,") == text.count("\n1024,") == 9  # without the first two, and the last
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine-stage.csv", "runs", "s.sh"]


@pytest.mark.parametrize(
    "words",
    [
        ("--stage", "x"),
        ("--stage", "a b=true {bytes}"),
        ("--stage", "x=true {bytes}", "--cold"),
        ("pipe", "--stage", "x=true {bytes}"),
        ("--stage", "x=true {bytes}", "--what", "signature"),
    ],
)
def test_arguments_that_go_with_nothing(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", *words]) == 2
    assert "stage" in capsys.readouterr().err
