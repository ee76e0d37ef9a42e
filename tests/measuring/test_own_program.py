"""A program of the user's own, really run: its time, its failures, and that all of it is ended."""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from uuid import uuid4

import pytest

from domain.errors import CannotRun, InvalidInput
from measuring import own_program
from measuring.own_program import OwnProgram, read_variable, read_words
from measuring.printed_times import TimeReader
from measuring.probe import object_path
from tests.measuring.test_killed import MARK, marked, wait_for
from tests.support.compiler import ROOT

PYTHON = sys.executable
MESSAGE = 1 << 20
SH = ("/bin/sh", "-c")


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    subprocess.run([PYTHON, ROOT / "tools" / "build_kernels.py"], check=True)


@pytest.fixture(params=["kept", "alone"])
def keeper(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the program that keeps, and as where there is no compiler."""
    if request.param == "alone":
        monkeypatch.setattr("measuring.running.object_path", lambda: Path("/no/such/probe"))
    elif not object_path().exists():
        pytest.skip("needs a C compiler")
    return str(request.param)


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> str:
    """What all that is started has in its environment, and this process has not."""
    made = uuid4().hex
    monkeypatch.setenv(MARK, made)
    return made


def of(*words: str, **more: object) -> OwnProgram:
    return OwnProgram((*words, "{bytes}"), MESSAGE, **more)  # type: ignore[arg-type]


def script(text: str, **more: object) -> OwnProgram:
    return of(*SH, text, "sh", **more)


LAST_MS = TimeReader.of("last", unit="ms")


@pytest.mark.usefixtures("keeper")
class TestOneRun:
    """What comes of it."""

    def test_wall_time(self) -> None:
        found = script("sleep 0.2").run(64, limit_s=20.0)
        assert found.latency_us is not None
        assert 0.2e6 <= found.latency_us <= found.took_s * 1e6
        assert found.reason == ""

    def test_the_size_is_in_words_and_environment_and_no_shell_reads_them(
        self, tmp_path: Path
    ) -> None:
        program = tmp_path / "s.py"
        program.write_text("import os, sys\nprint(*sys.argv[1:], os.environ['PART'])\n")
        words = (PYTHON, str(program), "n={bytes}/{bytes}", f"; touch {tmp_path}/made", "$PART")
        pattern = TimeReader.of(r"n=4096/4096 ; touch \S+ \$PART <(.*)>", unit="ms")
        own = OwnProgram(words, MESSAGE, {"PART": "<{bytes}>"}, reader=pattern)
        assert own.run(4096, limit_s=20.0).latency_us == 4096e3
        assert not (tmp_path / "made").exists()

    def test_what_is_run_before_is_not_timed(self, tmp_path: Path) -> None:
        before = (*SH, f"sleep 0.3; echo $0 >> {tmp_path}/before", "{bytes}")
        found = script(f"cat {tmp_path}/before", before=before, reader=LAST_MS).run(7, limit_s=20.0)
        assert found.latency_us == 7e3
        assert found.took_s > 0.3
        fails = script("true", before=(*SH, "echo no room >&2; exit 4")).run(7, limit_s=20.0)
        assert (fails.latency_us, fails.reason) == (None, "before: it ended with 4: no room")

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            (
                "echo first >&2; echo 'parts are too small\t!' >&2; exit 2",
                "ended with 2: parts are",
            ),
            ("exit 7", "it ended with 7"),
            ("kill -9 $$", "SIGKILL"),
            ("kill -15 $$", "SIGTERM"),
            ("printf '\\033[31mred\\n' >&2; exit 1", "it ended with 1:  [31mred"),
            ("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1", "x" * 100),
        ],
    )
    def test_a_failure_has_the_last_line_of_its_errors(self, text: str, reason: str) -> None:
        found = script(text).run(64, limit_s=20.0)
        assert found.latency_us is None
        assert reason in found.reason
        assert len(found.reason) < 300
        assert found.reason.isprintable()
        assert not found.is_too_long

    def test_no_time_is_a_failure(self) -> None:
        for text in ("true", "echo 0", "echo soon"):
            found = script(text, reader=LAST_MS).run(64, limit_s=20.0)
            assert found.latency_us is None
            assert found.reason

    def test_a_flood_is_kept_to_its_end(self) -> None:
        flood = "head -c 64000000 /dev/zero; echo; echo 5; head -c 9000000 /dev/zero >&2"
        own = script(flood, reader=LAST_MS)
        tracemalloc.start()
        found = own.run(64, limit_s=60.0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found.latency_us == 5e3
        assert peak < 16 << 20

    def test_a_program_that_is_not_here(self) -> None:
        with pytest.raises(CannotRun, match="no program of that name"):
            of("/no/such/program").check()
        with pytest.raises(CannotRun):
            of("/no/such/program").run(64, limit_s=20.0)
        with pytest.raises(CannotRun, match="nowhere"):
            script("true", before=("nowhere",)).check()
        script("true").check()

    def test_it_reads_nothing_and_leaves_the_descriptors(self) -> None:
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(3):
            assert script("cat").run(64, limit_s=20.0).reason == ""
        assert len(list(Path("/proc/self/fd").iterdir())) == before


class TestTooLong:
    """It is asked to end, and killed with all that it started."""

    def test_it_may_end_in_its_own_way(self, keeper: str, tmp_path: Path, mark: str) -> None:
        text = f"trap 'echo asked > {tmp_path}/said; kill $!; exit 0' TERM; sleep 600 & wait"
        found = script(text).run(64, limit_s=0.5)
        assert (found.latency_us, found.is_too_long) == (None, True)
        assert "longer than 0.5 s" in found.reason
        assert (tmp_path / "said").read_text() == "asked\n"
        assert found.took_s < 0.5 + own_program.END_S
        wait_for(lambda: not marked(mark), f"processes stay behind {keeper}")

    def test_who_does_not_end_is_killed(self, keeper: str, mark: str) -> None:
        begun_s = time.monotonic()
        found = script("trap '' TERM; sleep 600 & sleep 600").run(64, limit_s=0.3)
        assert found.is_too_long
        assert time.monotonic() - begun_s >= 0.3 + own_program.END_S
        wait_for(lambda: not marked(mark), f"processes stay behind {keeper}")

    def test_sessions_of_their_own_are_killed_too(self, mark: str) -> None:
        if not object_path().exists():
            pytest.skip("needs a C compiler")
        deep = "setsid sh -c 'trap \"\" TERM; setsid sleep 600 & sleep 600' & trap '' TERM; wait"
        found = script(f"{deep}; sleep 600").run(64, limit_s=0.5)
        assert found.is_too_long
        wait_for(lambda: not marked(mark), "processes stay behind")

    def test_what_is_run_before_counts(self, keeper: str, mark: str) -> None:
        found = script("true", before=(*SH, "sleep 600")).run(64, limit_s=0.3)
        assert found.is_too_long
        assert found.reason.startswith("before: ")
        wait_for(lambda: not marked(mark), f"processes stay behind {keeper}")


def test_an_exception_ends_it(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Ctrl-C does."""
    seen = list[int]()

    def interrupt(*_: object) -> bool:
        wait_for(lambda: len(marked(mark)) > 0, "it does not run")
        seen.extend(marked(mark))
        raise KeyboardInterrupt

    monkeypatch.setattr(own_program._Tails, "read_until_end", interrupt)
    with pytest.raises(KeyboardInterrupt):
        script("sleep 600 & sleep 600").run(64, limit_s=20.0)
    assert seen
    wait_for(lambda: not marked(mark), "processes stay behind")


@pytest.mark.parametrize("words", [(), ("",), ("true",), ("a\0", "{bytes}")])
def test_words_that_are_none(words: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput) as refused:
        OwnProgram(words, MESSAGE)
    assert refused.value.field == "program"


@pytest.mark.parametrize("text", ["", "PART", "=x", "1A=x", "A B=x", "Ä=x"])
def test_variables_that_are_none(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_variable(text)
    assert read_variable("PART={bytes}=x") == ("PART", "{bytes}=x")


@pytest.mark.parametrize("text", ["", "'", "a\0b"])
def test_commands_that_are_none(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_words(text, field="before")
    assert read_words("rm -f 'a b'", field="before") == ("rm", "-f", "a b")
