"""sluice measure, with the real probe: files, fits, profiles, refusals and interrupts."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from tests.support.compiler import ROOT, compiler

SMALL = ("--bytes", "64..64KiB", "--time-limit", "5", "--tolerance", "50%")


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """The probe from the sources as they are."""
    compiler()
    subprocess.run([sys.executable, ROOT / "tools" / "build_kernels.py"], check=True)


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a database of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """main(argv) in this process: (exit code, standard output, standard error)."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(word) for word in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


class TestMeasure:
    """From the machine to a profile."""

    def test_a_stage_becomes_a_profile(self, printed: Any, tmp_path: Path) -> None:
        code, out, err = printed(
            "measure", "memcpy", *SMALL, "--save-as", "copy", "--plot", "c.svg"
        )
        assert (code, err) == (0, "sluice: measured into memcpy-stage.csv\n")
        assert "saved as copy@1" in out
        assert "<svg" in (tmp_path / "c.svg").read_text()
        lines = (tmp_path / "memcpy-stage.csv").read_text().splitlines()
        head = dict(line[2:].split(": ", 1) for line in lines if line.startswith("#"))
        assert {"stage", "machine", "kernel", "timer_ns", "preempted", "ended"} <= set(head)
        sizes = {int(line.split(",")[0]) for line in lines[len(head) + 1 :]}
        assert sizes == {64 << power for power in range(11)}
        assert printed("optimize", "copy", "--bytes", "64KiB")[0] == 0

    def test_measured_stages_are_composed(self, printed: Any) -> None:
        for name in ("memcpy", "crc32"):
            assert printed("measure", name, *SMALL, "--output", f"{name}.csv")[0] == 0
        asked = [word for name in ("memcpy", "crc32") for word in ("--stage", f"{name}={name}.csv")]
        code, out, _ = printed("compose", *asked, "--save-as", "both")
        assert (code, "saved as both@1" in out) == (0, True)

    def test_a_signature_is_measured(self, printed: Any, tmp_path: Path) -> None:
        options = ("--time-limit", "3", "--tolerance", "50%", "--bytes", "64,256")
        code, out, _ = printed("measure", "sim", *options)
        assert (code, "signature CSV" in out) == (0, True)
        text = (tmp_path / "sim-signature.csv").read_text()
        assert "# timer_subtracted: true\n" in text
        assert "message_bytes,repetition,receive_us\n" in text

    def test_without_the_probe_the_list_says_so(
        self, printed: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """And has what is here all the same."""
        monkeypatch.setattr("measuring.probe.BUILD", tmp_path)
        code, out, _ = printed("measure", "--list")
        assert code == 0
        assert "not here: the probe is not built here" in " ".join(out.split())
        assert "fio" in out
        code, _, err = printed("measure", "memcpy")
        assert (code, "a C compiler" in err) == (3, True)

    def test_what_can_be_measured_is_listed(self, printed: Any) -> None:
        listed = printed("measure", "--list")
        assert listed == printed("measure")
        code, out, _ = listed
        assert code == 0
        assert all(word in out for word in ("memcpy", "write-sync", "signature", "tcp"))

    @pytest.mark.parametrize(
        ("asked", "words"),
        [
            (("nope",), "name: expected one of memcpy"),
            (("write", "--what", "signature"), "name: expected one of shm"),
            (("write-direct", "--bytes", "5000"), "multiples of 4096"),
            (("memcpy", "--output", "no/such/x.csv"), "output"),
            (("memcpy", "--cpus", "4000"), "cpu 4000"),
            (("pipe", "--what", "signature", "--cold"), "cold"),
            (("memcpy", "--tolerance", "0"), "tolerance"),
            (("memcpy", "--time-limit", "-1"), "time_limit"),
            (("pipe", "--what", "signature", "--window", "0"), "window"),
        ],
    )
    def test_what_cannot_be_measured(
        self, printed: Any, tmp_path: Path, asked: tuple[str, ...], words: str
    ) -> None:
        """One line that names the option and the rule; nothing is written."""
        code, out, err = printed("measure", *asked)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert words in err
        assert list(tmp_path.glob("*.csv")) == []

    def test_a_disk_that_is_full(self, printed: Any) -> None:
        """Is said, with the option that named it."""
        asked = ("memcpy", "--bytes", "64,128", "--time-limit", "0.2", "--output", "/dev/full")
        code, out, err = printed("measure", *asked)
        assert (code, out) == (2, "")
        assert "output" in err
        assert "No space left" in err

    def test_a_file_beyond_the_limit_of_the_process(self, tmp_path: Path) -> None:
        """Is said as that, and not as the signal that such a write would end a process by."""
        asked = (sys.executable, "-m", "app.cli", "measure", "write", "--path", str(tmp_path))
        limits = (512 * 1024, 512 * 1024)
        done = subprocess.run(
            (*asked, "--bytes", "64KiB..1MiB", "--time-limit", "1", "--output", "write.csv"),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits),
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert (done.returncode, done.stdout) == (3, "")
        assert "File too large" in done.stderr
        assert list(tmp_path.iterdir()) == []

    def test_one_processor_for_two_that_spin(self, printed: Any, tmp_path: Path) -> None:
        """No burst is ever undisturbed: said with what helps, and nothing is written."""
        both = ",".join(2 * [str(min(os.sched_getaffinity(0)))])
        target = tmp_path / "one.csv"
        options = ("--what", "signature", "--time-limit", "0.2", "--cpus", both)
        code, out, err = printed("measure", "shm", *options, "--output", str(target))
        assert (code, out) == (3, "")
        assert "preempted" in err
        assert "--cpus 0,1" in err
        assert not target.exists()

    @pytest.mark.parametrize("sizes", ["4KiB..64", "0", "x", "1..", "64,,65"])
    def test_sizes_that_are_none(self, sizes: str) -> None:
        assert main(["measure", "memcpy", "--bytes", sizes]) == 2


def test_an_interrupt_keeps_what_was_measured(tmp_path: Path) -> None:
    """Ctrl-C in the middle: the file is there, the exit code is 130, and no process stays."""
    target = tmp_path / "kept.csv"
    options = ["--what", "signature", "--time-limit", "300", "--output", str(target)]
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "measure", "sim", "--bytes", "8,16,32,64", *options],
        cwd=ROOT,
        env={**os.environ, "SLUICE_DATABASE_URL": f"sqlite:///{tmp_path / 'x.db'}"},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    probe = _busy_child_of(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60.0)
    assert b"interrupted; what was measured is in" in said
    assert process.returncode == 130
    assert "# ended: interrupted\n" in target.read_text()
    assert not Path(f"/proc/{probe}").exists()


def test_a_signal_to_tune_keeps_what_was_measured(tmp_path: Path) -> None:
    """SIGTERM, as a batch system sends it: as Ctrl-C, also where no stage is whole yet."""
    options = ["--bytes", "16MiB", "--tolerance", "0.01%", "--time-limit", "300"]
    stages = ["--stage", "memcpy", "--stage", "crc32"]
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "tune", *stages, *options, "--folder", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "SLUICE_DATABASE_URL": f"sqlite:///{tmp_path / 'x.db'}"},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    probe = _busy_child_of(process.pid)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60.0)
    assert b"interrupted" in said
    assert process.returncode == 130
    assert not Path(f"/proc/{probe}").exists()


def _busy_child_of(process: int) -> int:
    """A child that has computed for a while: it is beyond its first samples."""
    end_s = time.monotonic() + 60.0
    while time.monotonic() < end_s:
        for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
            try:
                used = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11]
            except OSError:
                continue  # it has ended
            if int(used) > 10:  # hundredths of a second
                return int(child)
        time.sleep(0.01)
    raise AssertionError("no probe was started")
