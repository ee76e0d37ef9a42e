"""app/console: operations that are watched, what progress says, streams that lack characters."""

from __future__ import annotations

import io
import pickle
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.solve import Solved
from app.cli import main
from app.console.running import (
    OperationRun,
    Show,
    counting_line,
    format_solving,
    run_operation,
    share_line,
    solving_line,
)
from app.execution.engine import (
    Best,
    Capacity,
    End,
    Engine,
    Limit,
    LimitExceeded,
    Pool,
    Sink,
    Started,
    Steps,
    Stopped,
    Task,
)
from app.questions.question import Question, prepare
from app.questions.source import Stored
from app.settings import Settings
from app.ui.parts import Column, Facts, Grid
from app.ui.terminal import Screen
from app.verbs.optimize.operation import Optimize
from domain.errors import Cancelled, StrategyDeclined, TimeLimitReached
from domain.pipeline import pipeline_of_lines
from domain.problem import Problem
from domain.schedule import Schedule, latency_us
from domain.solution import Solution, Status, Strategy
from models.session import create_store
from tests.support.in_process_engine import InProcessEngine

PIPELINE = pipeline_of_lines([("wire", 1.0, 10.0), ("copy", 1.0, 10.0)])
PROBLEM = Problem(PIPELINE, 1024)
Tell = Callable[[Solution], None]


def solution_of(*sizes: int, status: Status = Status.PROVEN_GAP) -> Solution:
    total = latency_us(PIPELINE, sizes)
    return Solution(PROBLEM, Strategy.AUTO, Schedule(sizes), total, total / 2, status)


def solver(monkeypatch: pytest.MonkeyPatch, behaviour: Callable[[Tell], Solution]) -> None:
    """Have every solve behave so, and none be quick enough for the command's own thread."""

    def solve(problem: Problem, strategy: Strategy, *, on_incumbent: Tell, **rest: Any) -> Solution:
        return behaviour(on_incumbent)

    monkeypatch.setattr("solvers.solve", solve)
    monkeypatch.setattr("solvers.is_quick", lambda *_: False)


class Scripted:
    """An engine whose task ends so at once, or else where it is cancelled."""

    def __init__(self, end: End | None = None) -> None:
        self._end = end

    def submit(self, task: Task, sink: Sink) -> None:
        self._sink = sink
        sink(Started("here"))
        if self._end is not None:
            sink(self._end)

    def cancel(self, task_id: str, claim: int) -> None:
        self._sink(Stopped())

    def capacity(self, pool: Pool) -> Capacity:
        return Capacity(1, 1, 1, 1)

    def close(self, *, drain_s: float = 0.0) -> None:
        """Nothing to close."""


def ran(
    show: Show | None = None,
    *,
    time_limit_s: float = 10.0,
    open_engine: Callable[[], Engine] = InProcessEngine,
) -> OperationRun[Solved]:
    question = Question(message_bytes=1024, source=PIPELINE, time_limit_s=time_limit_s)
    operation = Optimize(prepare(question, Stored(), fragment_cap=10**6), lambda _: b"")
    return run_operation(operation, Settings(), show, open_engine=open_engine)


def goes_on(*best: Solution) -> Callable[[Tell], Solution]:
    """Finds these, and then nothing better; it can be ended at each report."""

    def behave(tell: Tell) -> Solution:
        while True:
            for one in best:
                tell(one)
            time.sleep(0.02)

    return behave


class Interrupts:
    """Ctrl-C at the first moment that there is something to show, or that nothing is."""

    def __init__(self, *, at_best: bool = True) -> None:
        self._at_best = at_best

    def __call__(self, event: object, elapsed_s: float) -> None:
        if isinstance(event, Best) is self._at_best:
            raise KeyboardInterrupt


class TestWatchedOperation:
    @pytest.mark.usefixtures("native_kernels")
    def test_a_quick_one_needs_no_engine(self) -> None:
        """Nothing is opened, and nothing shown."""

        def open_engine() -> Any:
            raise AssertionError("an engine was opened")

        question = Question(message_bytes=1024, source=PIPELINE)
        prepared = prepare(question, Stored(), fragment_cap=10**6)
        found = run_operation(
            Optimize(prepared, lambda _: b""), Settings(), open_engine=open_engine
        )
        assert not found.is_interrupted
        assert found.result.solution.status in (Status.OPTIMAL, Status.OPTIMAL_BEFORE_ROUNDING)

    def test_a_result_is_handed_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answer = solution_of(512, 512)
        solver(monkeypatch, lambda tell: answer)
        found = ran()
        assert found.result.solution == answer
        assert not found.is_interrupted

    def test_a_refusal_is_handed_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(tell: Tell) -> Solution:
            raise StrategyDeclined("needs two stages")

        solver(monkeypatch, refuse)
        with pytest.raises(StrategyDeclined, match="needs two stages"):
            ran()

    def test_ctrl_c_keeps_the_best_so_far(self, monkeypatch: pytest.MonkeyPatch) -> None:
        solver(monkeypatch, goes_on(solution_of(512, 512)))
        found = ran(Interrupts())
        assert found.is_interrupted
        assert found.result.solution.schedule.fragments == 2
        assert found.result.solution.status is Status.TIME_LIMIT
        assert [notice.code for notice in found.result.solution.notices] == ["cancelled"]

    def test_ctrl_c_without_any_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        solver(monkeypatch, goes_on())
        with pytest.raises(Cancelled):
            ran(Interrupts(at_best=False), open_engine=Scripted)

    def test_a_solver_that_ignores_its_limit_is_not_waited_for(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.verbs.optimize.operation.GRACE_S", 0.0)
        solver(monkeypatch, goes_on(solution_of(1024)))
        assert ran(time_limit_s=0.05).result.solution.status is Status.TIME_LIMIT
        with pytest.raises(TimeLimitReached, match=r"the solve took longer than 0\.05 s"):
            ran(open_engine=lambda: Scripted(LimitExceeded(Limit.TIME)), time_limit_s=0.05)

    def test_a_proven_incumbent_stays_proven(self, monkeypatch: pytest.MonkeyPatch) -> None:
        solver(monkeypatch, goes_on(solution_of(1024, status=Status.OPTIMAL)))
        assert ran(Interrupts()).result.solution.status is Status.OPTIMAL


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def best(solution: Solution) -> Best:
    return Best(pickle.dumps(Solved(solution, 1.0)))


class TestProgress:
    def test_a_terminal_sees_best_bound_and_gap_and_a_clean_line_after(self) -> None:
        stream = Terminal()
        with solving_line(Screen(stream)) as tell:
            tell(best(solution_of(1024)), 1.0)
        shown = stream.getvalue()
        assert "best 22.48 µs  bound 11.24 µs  gap 100 %" in shown
        assert shown.endswith("\r\x1b[K")

    def test_nothing_is_shown_elsewhere_or_for_what_ends_at_once(self) -> None:
        elsewhere, terminal = io.StringIO(), Terminal()
        with solving_line(Screen(elsewhere)) as tell:
            tell(best(solution_of(1024)), 9.0)
        with counting_line(Screen(elsewhere)) as count:
            count(Steps(1, 2), 9.0)
        with solving_line(Screen(terminal)) as tell:
            tell(None, 0.1)
        assert elsewhere.getvalue() == ""
        assert terminal.getvalue().replace("\r\x1b[K", "") == ""

    def test_steps_are_counted_or_a_share(self) -> None:
        counted, shared = Terminal(), Terminal()
        with counting_line(Screen(counted)) as count, share_line(Screen(shared), "compiling") as of:
            count(Steps(3, 4), 1.0)
            of(Steps(3, 4), 1.0)
        assert "1.0 s  3 of 4 solved" in counted.getvalue()
        assert "1.0 s  compiling: 75%" in shared.getvalue()

    def test_before_the_first_answer(self) -> None:
        assert "no answer yet" in format_solving(None)


EXAMPLES = Path(__file__).parents[2] / "examples"
TRACE, LEGS = str(EXAMPLES / "local-path-direct.csv"), str(EXAMPLES / "accelerator-legs.csv")
MYRINET = str(EXAMPLES / "myrinet-gam.json")
LONG = [
    ("fit", LEGS),
    ("optimize", TRACE, "--bytes", "64KiB", "--strategy", "single"),
    ("compare", LEGS, "--bytes", "64KiB", "--strategies", "fixed"),
    ("table", MYRINET, "--to", "2KiB"),
    ("export", MYRINET, "--target", "mpich", "--max-message", "2KiB"),
    ("audit", MYRINET, "--setting", "4KiB", "--max-message", "2KiB"),
    ("model", "layer", "cmam-finite", "--bytes", "64", "--clock", "33MHz", "--tune"),
    ("model", "reproduce", "wang98", "--only", "table-1"),
    ("measure", "memcpy", "--bytes", "64,4KiB", "--time-limit", "0.2", "--output", "memcpy.csv"),
    ("model", "mover", "heat", "--columns", "9", "--rows", "9", "--steps", "2", "--processes", "2"),
    ("profiles", "save", "legs", LEGS),
    ("admin", "collect", "--keep", "jobs=1d"),
    ("admin", "backup", "everything.sluice"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a database is."""
    folder = tmp_path_factory.mktemp("long")
    store = create_store(f"sqlite:///{folder / 'cli.db'}")
    store.upgrade()
    store.dispose()
    return folder


class TestEveryLongCommand:
    """With no time that is too short to show anything."""

    @pytest.mark.parametrize("words", LONG, ids=lambda words: words[0])
    @pytest.mark.usefixtures("native_kernels")
    def test_a_terminal_sees_progress_and_nobody_else(
        self,
        words: tuple[str, ...],
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """A line that is erased before anything else is printed, on standard error alone."""
        monkeypatch.chdir(folder)
        monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{folder / 'cli.db'}")
        monkeypatch.setattr("app.console.running._QUIET_S", 0.0)
        for quick in ("verbs.compare.operation.Compare", "operations.fits.FitFiles"):
            monkeypatch.setattr(f"app.{quick}.run_here", lambda _: None)
        if words[0] == "fit":
            assert main(words) == 0
            assert "\r" not in capsys.readouterr().err
        terminal = Terminal()
        with monkeypatch.context() as patched:
            patched.setattr("sys.stderr", terminal)
            assert main(words) == 0
        *lines, rest = terminal.getvalue().split("\r\x1b[K")
        assert any(re.match(r"\d", line) for line in lines)
        # Either of progress, or what is printed once that is erased.
        assert all("\n" not in line or line.startswith("sluice: ") for line in lines)
        assert rest == "" or rest.startswith("sluice: ")
        assert "\x1b[K" not in capsys.readouterr().out


class TestScreen:
    def test_a_stream_without_the_characters_gets_plain_ones(self) -> None:
        raw = io.BytesIO()
        screen = Screen(io.TextIOWrapper(raw, encoding="latin-1"))
        grid = Grid((Column("stage", is_number=False), Column("µs ± R²")), (("複製 é", "1 × 2"),))
        screen.show(["a … b", grid, Facts((("≤", "≥"),))])
        text = raw.getvalue().decode("ascii")
        assert "a ... b" in text
        assert "us +- R^2" in text
        assert "?? e" in text
        assert "1 x 2" in text

    def test_brackets_are_text_and_not_markup(self) -> None:
        stream = Terminal()
        Screen(stream).show(["[bold]x[/bold]", Grid((Column("a"),), (("[red]y",),))])
        assert "[bold]x[/bold]" in stream.getvalue()
        assert "[red]y" in stream.getvalue()

    def test_no_line_ends_in_blanks(self) -> None:
        stream = io.StringIO()
        Screen(stream).show([Facts((("a", "b"), ("longer", "c")))])
        assert all(line == line.rstrip() for line in stream.getvalue().splitlines())
