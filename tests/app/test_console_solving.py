"""app/console: a solve that is watched, what progress says, and streams that lack characters."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from app.console.progress import counting_line, solving_line, solving_text
from app.console.screen import Column, Facts, Grid, Screen
from app.console.solving import is_still_solving, solve_watched
from app.pool.protocol import SolveTask
from domain.errors import Cancelled, StrategyDeclined, TimeLimitReached
from domain.pipeline import pipeline_of_lines
from domain.problem import Problem
from domain.schedule import Schedule, latency_us
from domain.solution import Solution, Status, Strategy

PIPELINE = pipeline_of_lines([("wire", 1.0, 10.0), ("copy", 1.0, 10.0)])
PROBLEM = Problem(PIPELINE, 1024)
TASK = SolveTask(
    problem=PROBLEM,
    strategy=Strategy.AUTO,
    relative_gap=1e-6,
    time_limit_s=10.0,
    static_bytes=None,
)


def solution_of(*sizes: int, status: Status = Status.PROVEN_GAP) -> Solution:
    total = latency_us(PIPELINE, sizes)
    return Solution(PROBLEM, Strategy.AUTO, Schedule(sizes), total, total / 2, status)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Holds a solve back; opened at the end, so that no thread is left."""
    event = threading.Event()
    yield event
    event.set()
    for thread in threading.enumerate():
        if thread.name == "sluice-solve":
            thread.join(10)
    assert not is_still_solving()


def solver(monkeypatch: pytest.MonkeyPatch, behaviour: Any) -> None:
    def solve(problem: Problem, strategy: Strategy, *, on_incumbent: Any, **rest: Any) -> Any:
        return behaviour(on_incumbent)

    monkeypatch.setattr("solvers.solve", solve)


def interrupt(best: Solution | None, elapsed_s: float) -> None:
    raise KeyboardInterrupt


class TestWatchedSolve:
    def test_a_result_is_handed_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answer = solution_of(512, 512)
        solver(monkeypatch, lambda tell: answer)
        outcome = solve_watched(TASK)
        assert outcome.solution is answer
        assert not outcome.is_interrupted

    def test_a_refusal_is_handed_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(tell: Any) -> None:
            raise StrategyDeclined("needs two stages")

        solver(monkeypatch, refuse)
        with pytest.raises(StrategyDeclined, match="needs two stages"):
            solve_watched(TASK)

    def test_ctrl_c_keeps_the_best_so_far(
        self, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
    ) -> None:
        def hang(tell: Any) -> None:
            tell(solution_of(1024))
            tell(solution_of(512, 512))
            gate.wait(60)

        solver(monkeypatch, hang)
        outcome = solve_watched(TASK, interrupt)
        assert outcome.is_interrupted
        assert outcome.solution.schedule.fragments == 2
        assert outcome.solution.status is Status.TIME_LIMIT
        assert is_still_solving()

    def test_ctrl_c_without_any_answer(
        self, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
    ) -> None:
        solver(monkeypatch, lambda tell: gate.wait(60))
        with pytest.raises(Cancelled):
            solve_watched(TASK, interrupt)

    def test_a_solver_that_ignores_its_limit_is_not_waited_for(
        self, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
    ) -> None:
        monkeypatch.setattr("app.console.solving.GRACE_S", 0.0)
        solver(monkeypatch, lambda tell: gate.wait(60))
        task = SolveTask(
            problem=PROBLEM,
            strategy=Strategy.AUTO,
            relative_gap=1e-6,
            time_limit_s=0.05,
            static_bytes=None,
        )
        with pytest.raises(TimeLimitReached, match="time limit"):
            solve_watched(task)

    def test_a_proven_incumbent_stays_proven(
        self, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
    ) -> None:
        def hang(tell: Any) -> None:
            tell(solution_of(1024, status=Status.OPTIMAL))
            gate.wait(60)

        solver(monkeypatch, hang)
        assert solve_watched(TASK, interrupt).solution.status is Status.OPTIMAL


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class TestProgress:
    def test_a_terminal_sees_best_bound_and_gap_and_a_clean_line_after(self) -> None:
        stream = Terminal()
        with solving_line(Screen(stream)) as tell:
            tell(solution_of(1024), 1.0)
        shown = stream.getvalue()
        assert "best 22.480 µs  bound 11.240 µs  gap 100 %" in shown
        assert shown.endswith("\r\x1b[K")

    def test_nothing_is_shown_elsewhere_or_for_what_ends_at_once(self) -> None:
        elsewhere, terminal = io.StringIO(), Terminal()
        with solving_line(Screen(elsewhere)) as tell:
            tell(solution_of(1024), 9.0)
        with counting_line(Screen(elsewhere)) as count:
            count(1, 2)
        with solving_line(Screen(terminal)) as tell:
            tell(None, 0.1)
        assert elsewhere.getvalue() == ""
        assert terminal.getvalue().replace("\r\x1b[K", "") == ""

    def test_before_the_first_answer(self) -> None:
        assert "no answer yet" in solving_text(None)


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
