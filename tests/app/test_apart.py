"""app/apart.py: work in a process of its own, and every way in which that can end."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import psutil
import pytest

from app import apart
from app.apart import Apart
from app.fit_apart import FitApart
from app.flows.held_trace import HeldTrace
from app.progress_file import Steps
from domain.errors import (
    Cancelled,
    Conflict,
    MemoryLimitReached,
    PoorFit,
    SolverFailed,
    TimeLimitReached,
    UnreadableTrace,
)
from domain.measurement import TraceKind
from models.records import FitRequest
from tests.app.apart_tasks import Do
from tests.app.serving import GUARD_S, MIB, wait_until

EXAMPLE = (Path(__file__).parents[2] / "examples" / "local-path-direct.csv").read_bytes()


def done(what: str, *, memory_bytes: int = 512 * MIB) -> object:
    return Apart(Do(what), memory_bytes=memory_bytes).run()


def children() -> list[psutil.Process]:
    """Those of this module: a run of all tests has servers with workers beside it."""
    found = psutil.Process().children(recursive=True)
    return [child for child in found if child.is_running() and "app.apart" in child.cmdline()]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


class TestEndings:
    def test_an_answer(self) -> None:
        assert done("answer") == ("fine", 1.5)

    def test_a_refusal_is_raised_here(self) -> None:
        with pytest.raises(PoorFit, match="too little") as caught:
            done("refuse")
        assert caught.value.field == "measurements"

    @pytest.mark.parametrize("what", ["die", "crash"])
    def test_a_process_that_ends_is_a_defect(self, what: str) -> None:
        """kill -9 from outside too: there is no answer, and nothing is left behind."""
        before = open_files()
        with pytest.raises(SolverFailed, match="the work ended unexpectedly"):
            done(what)
        assert (children(), open_files()) == ([], before)

    def test_a_service_that_ended_before_it_was_watched(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The process then ends by itself: nobody would ever end it."""
        monkeypatch.setattr(apart.os, "getpid", lambda: 1)
        with pytest.raises(SolverFailed):
            done("answer")

    def test_memory(self) -> None:
        with pytest.raises(MemoryLimitReached, match="268435456 bytes"):
            done("allocate", memory_bytes=256 * MIB)

    def test_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(apart, "TIME_LIMIT_S", 0.5)
        with pytest.raises(TimeLimitReached, match=r"longer than 0\.5 s"):
            done("sleep")
        assert children() == []

    def test_an_outcome_that_is_too_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is not even read."""
        monkeypatch.setattr(apart, "MAX_OUTCOME_BYTES", 10)
        with pytest.raises(SolverFailed):
            done("answer")

    def test_cancelled_while_it_runs(self) -> None:
        child = Apart(Do("sleep"), memory_bytes=512 * MIB)
        raised: list[BaseException] = []

        def run() -> None:
            try:
                child.run()
            except Cancelled as ended:
                raised.append(ended)

        thread = threading.Thread(target=run)
        thread.start()
        wait_until(lambda: bool(children()))
        child.cancel()
        thread.join(GUARD_S)
        assert (len(raised), children()) == (1, [])

    def test_cancelled_before_it_runs(self) -> None:
        child = Apart(Do("answer"), memory_bytes=512 * MIB)
        child.cancel()
        with pytest.raises(Cancelled):
            child.run()

    def test_how_far_it_is(self) -> None:
        """To the last step, also of a child that ended between two looks."""
        seen: list[Steps | None] = []
        assert Apart(Do("count"), memory_bytes=512 * MIB).run(seen.append) == "counted"
        assert seen[-1] == Steps(3, 3)

    def test_who_watches_may_end_it(self) -> None:
        """What they raise comes out, and the process is gone at once."""
        seen: list[Steps | None] = []

        def watch(steps: Steps | None) -> None:
            seen.append(steps)
            if steps is not None:
                raise Conflict("enough")

        before = open_files()
        with pytest.raises(Conflict, match="enough"):
            Apart(Do("begin"), memory_bytes=512 * MIB).run(watch)
        assert (seen[-1], children(), open_files()) == (Steps(1, 3), [], before)

    def test_what_it_is_given(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing of the service: the address of its database may hold a password."""
        monkeypatch.setenv("SLUICE_DATABASE_URL", "postgresql://user:secret@host/name")
        monkeypatch.setenv("SLUICE_KERNELS", "numpy")
        names = done("environment")
        assert isinstance(names, list)
        assert "PATH" in names
        given = [name for name in names if name.startswith("SLUICE_")]
        assert given == ["SLUICE_KERNELS"]  # it says how to solve
        assert done("limits") == (10, (0, 0))


class TestFits:
    @staticmethod
    def fitted(*contents: bytes, memory_bytes: int = 512 * MIB, **options: object) -> FitApart:
        request = FitRequest(**options)  # type: ignore[arg-type]
        return FitApart(
            [HeldTrace.of(content) for content in contents],
            request,
            memory_bytes=memory_bytes,
            fragment_cap=1000,
        )

    def test_as_here(self) -> None:
        """Several files in memory, with the digests of both; the files are closed."""
        before = open_files()
        found = self.fitted(EXAMPLE, EXAMPLE).run()
        assert found.fit.stages[0].num_samples == 700
        assert found.trace_digests == (HeldTrace.of(EXAMPLE).digest,) * 2
        assert open_files() == before

    def test_refusals(self) -> None:
        with pytest.raises(UnreadableTrace):
            self.fitted(b"\x00\x01junk").run()
        with pytest.raises(UnreadableTrace) as caught:
            self.fitted(EXAMPLE, kinds=(TraceKind.LOGP,)).run()
        assert caught.value.field == "kind"

    def test_memory(self) -> None:
        """A cap below what NumPy holds already: the first array of the trace does not fit."""
        head, rows = EXAMPLE.split(b"_us\n", 1)
        with pytest.raises(MemoryLimitReached, match="the fit needed more than"):
            self.fitted(head + b"_us\n" + rows * 1000, memory_bytes=16 * MIB).run()
