"""What time cuts off holds what more time finds: audits, choices of sizes and comparisons."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations, count
from types import SimpleNamespace

import pytest

from analysis import audit as audits
from analysis import best_known
from analysis.audit import Audit, AuditQuestion, AuditScope, Priced, audit, price
from analysis.comparison import Cell, each_cell, excesses
from analysis.size_choice import Messages, choose_sizes
from domain.fragment_setting import FragmentSetting, breakpoints
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import AnyProblem, Problem
from domain.regret import BestKnown, ChosenSetting, Objective, SizeRule
from domain.solution import Solution, Status, Strategy
from domain.workload import Workload
from solvers import solve
from tests.support.counts import is_campaign

_EQUAL = 1.0 + 1e-9
LINES = pipeline_of_lines([("copy", 4.0, 3.0), ("wire", 6.0, 9.0), ("copy out", 5.0, 2.0)])


def ranged(stages: int, ranges: int) -> Pipeline:
    """Stages whose costs change at ends that no two of them share."""

    def part(i: int, r: int) -> FitRange:
        overhead_us = (2.0 + 0.37 * i) * (1.0 + 0.45 * ((i + r) % 4))
        ns_per_byte = (3.0 + 0.9 * (i * 7 % 5)) / (1.0 + 0.07 * r) * (1.0 + 0.2 * ((i * 3 + r) % 3))
        end = 2 ** (8 + r) + 64 * i if r < ranges - 1 else None
        return FitRange(overhead_us, ns_per_byte, end)

    return Pipeline(
        tuple(Stage(f"s{i}", tuple(part(i, r) for r in range(ranges))) for i in range(stages))
    )


@contextmanager
def keeping_best() -> Iterator[list[tuple[BestKnown, ...]]]:
    """Keep what each audit knew of its messages at the end."""
    kept: list[tuple[BestKnown, ...]] = []
    plain = audits._audit_of

    def keep(
        question: AuditQuestion, best: tuple[BestKnown, ...], *rest: object, **named: object
    ) -> Audit:
        kept.append(best)
        return plain(question, best, *rest, **named)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audits, "_audit_of", keep)
        yield kept


def advised(found: Audit) -> list[Priced]:
    """The setting, and what is advised in its place."""
    return [one for one in (found.priced, found.single, found.size_steps) if one is not None]


def check_holds(found: Audit, more: Audit, best: tuple[BestKnown, ...]) -> None:
    """Each figure of an audit has one by what more time found between its limits."""
    scope = found.question.scope
    for one in advised(found):
        turns = breakpoints(one.setting, scope.min_message_bytes, scope.max_message_bytes)
        sizes = {*turns, *(size.message_bytes for size in found.workload.sizes)}
        also = [known.message_bytes for known in best if known.message_bytes in sizes]
        now = price(found.question.model, one.setting, best, found.workload, also=also)
        for figure, later in ((one.time, now.time), (one.mean, now.mean)):
            assert figure.at_least <= later.at_most * _EQUAL
            assert later.at_least <= figure.at_most * _EQUAL
        assert now.worst_span.at_least <= one.worst_at_most * _EQUAL
        assert one.worst.over_best <= one.worst_at_most * _EQUAL
    if found.repeats is not None and more.repeats is not None:
        assert more.repeats.mean.at_least <= found.repeats.mean.at_most * _EQUAL
        assert more.repeats.time.at_least <= found.repeats.time.at_most * _EQUAL
    assert found.schedules.mean.at_most >= found.schedules.mean.at_least == 0.0
    assert found.schedules.time.at_most >= found.schedules.time.at_least == 0.0


def tick(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Have every look at the clock of the messages take this long: solves are not cut short."""
    ticks = count()
    clock = SimpleNamespace(monotonic=lambda: next(ticks) * seconds)
    monkeypatch.setattr(best_known, "time", clock)


class TestAudit:
    @pytest.mark.parametrize("is_lines", [True, False], ids=["lines", "ranges"])
    def test_limits_hold_what_more_time_finds(
        self, monkeypatch: pytest.MonkeyPatch, is_lines: bool
    ) -> None:
        """Wherever time ended the messages."""
        few = Workload.weighted([(1000 * at, 1.0) for at in range(2, 60, 7)], "few")
        pipeline = LINES if is_lines else ranged(3, 4)
        found, best = [], []
        for seconds in (10.0, 1.0, 0.3, 0.0):
            with monkeypatch.context() as patch, keeping_best() as kept:
                tick(patch, seconds)
                scope = AuditScope(
                    setting=FragmentSetting.always(4096),
                    min_message_bytes=2**10,
                    max_message_bytes=2**16,
                    workload=None if is_lines else few,
                    time_limit_s=30.0 if is_lines else 2.0,
                )
                found.append(audit(AuditQuestion(pipeline, scope, fragment_cap=256)))
                best.append(kept[-1])
        for place, one in enumerate(found):
            for at in range(place + 1, len(found)):
                check_holds(one, found[at], best[at])
        said = ["time_limit" in [notice.code for notice in one.notices] for one in found]
        assert said[0]
        assert not (is_lines and said[-1])

    def test_what_is_reported_on_the_way_holds_the_end(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Reports of an audit that time does not end."""
        tick(monkeypatch, 0.02)
        reports: list[Audit] = []
        scope = AuditScope(
            setting=FragmentSetting.always(4096), min_message_bytes=2**10, max_message_bytes=2**16
        )
        with keeping_best() as kept:
            end = audit(AuditQuestion(LINES, scope, fragment_cap=256), on_best=reports.append)
        assert len(reports) > 1
        for one in reports:
            check_holds(one, end, kept[-1])

    def test_the_time_that_parts_took_is_no_longer_left(self) -> None:
        """Messages at which only advised settings turn: none is solved when no time is left."""
        scope = AuditScope(
            setting=FragmentSetting.always(4096), min_message_bytes=2**10, max_message_bytes=2**16
        )
        asked = AuditQuestion(LINES, scope, fragment_cap=256)
        part = audits.solve_part(asked, lambda _done, _all: None, sizes=audits.messages_of(asked))
        with keeping_best() as kept:
            for seconds in (0.0, scope.time_limit_s):
                audit(asked, known=replace(part, seconds=seconds))
        before = {one.message_bytes for one in part.best}
        solved, late = (
            [one.is_partial for one in best if one.message_bytes not in before] for best in kept
        )
        assert solved
        assert not any(solved)
        assert late
        assert all(late)

    @pytest.mark.parametrize("busy", [0, 10] if is_campaign() else [0])
    def test_what_more_time_finds_by_the_real_clock(self, busy: int) -> None:
        """5, 30 and 60 s, alone and beside ten busy processes; outside a campaign hundredths."""
        pipeline, limits_s = ranged(2, 3), (0.02, 0.1, 0.5)
        if is_campaign():
            pipeline, limits_s = ranged(16, 16), (5.0, 30.0, 60.0)
        loops = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(busy)]
        try:
            for loop in loops:
                loop.start()
            found, best = [], []
            for limit_s in limits_s:
                scope = AuditScope(setting=FragmentSetting.always(65536), time_limit_s=limit_s)
                with keeping_best() as kept:
                    found.append(audit(AuditQuestion(pipeline, scope)))
                best.append(kept[-1])
        finally:
            for loop in loops:
                loop.kill()
        for (one, _), (more, known) in combinations(zip(found, best, strict=True), 2):
            check_holds(one, more, known)
        if is_campaign():  # else the last would have nothing to be compared with
            assert all("time_limit" in [each.code for each in one.notices] for one in found)


def _spin() -> None:
    while True:
        pass


class TestChoice:
    def test_a_choice_holds_what_more_time_finds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """And says that more of it may choose others."""
        messages = Messages(2**10, 2**16)

        def chosen(seconds: float, reports: list[ChosenSetting] | None = None) -> ChosenSetting:
            with monkeypatch.context() as patch:
                tick(patch, seconds)
                return choose_sizes(
                    LINES,
                    messages,
                    rule=SizeRule(),
                    takes_size_steps=True,
                    objective=Objective.MEAN,
                    table=None,
                    fragment_cap=256,
                    on_best=None if reports is None else reports.append,
                )

        reports: list[ChosenSetting] = []
        end = chosen(0.02, reports)
        short = chosen(10.0)
        workload = Workload.log_uniform(2**10, 2**16)
        with monkeypatch.context() as patch:
            tick(patch, 0.0)
            sizes = [size.message_bytes for size in workload.sizes]
            found = best_known.each_known(
                LINES, sizes, table=None, limits=audits._PLAIN, fragment_cap=256, time_limit_s=30.0
            )
            best = tuple(found)
        assert reports
        assert (end.is_partial, short.is_partial) == (False, True)
        assert all(one.is_partial for one in reports)
        for one in (*reports, short, end):
            now = price(LINES, one.setting, best, workload)
            assert 0.0 <= one.mean_regret <= now.mean.at_most * _EQUAL
            assert now.mean.at_least <= one.mean_at_most * _EQUAL
            assert now.worst.over_best <= one.worst_at_most * _EQUAL

    def test_sizes_beyond_the_cap_on_fragments_cost_nothing(self) -> None:
        """Without overheads a byte at a time beats the fragments that may be planned."""
        found = choose_sizes(
            pipeline_of_lines([("a", 0.0, 1e-9), ("b", 0.0, 1e-9)]),
            Messages(2**10, 2**12),
            rule=SizeRule(),
            takes_size_steps=False,
            objective=Objective.MEAN,
            table=None,
            fragment_cap=64,
        )
        assert 0.0 <= found.mean_regret <= found.mean_at_most


class TestComparison:
    def cells(self, *found: tuple[float, float, bool]) -> tuple[Cell, ...]:
        """Cells by their latency, bound, and whether time ended them."""
        base = solve(Problem(LINES, 4096), Strategy.SINGLE)

        def cell(latency_us: float, bound_us: float, is_ended: bool) -> Cell:
            status = Status.TIME_LIMIT if is_ended else Status.PROVEN_GAP
            fields = {name: getattr(base, name) for name in base.__slots__}
            fields |= {"latency_us": latency_us, "lower_bound_us": bound_us, "status": status}
            return Cell(4096, Strategy.SINGLE, Solution(**fields), None)

        return tuple(cell(*one) for one in found)

    def test_differences_lie_between_what_time_left_open(self) -> None:
        """Of a search that time ended, and against one."""
        one, other, best = excesses(
            self.cells((20.0, 5.0, False), (15.0, 12.0, True), (10.0, 8.0, True))
        )
        assert one is not None
        assert other is not None
        assert best is not None
        assert (one.at_least, one.at_most) == pytest.approx((1.0, 1.5))
        assert (other.at_least, other.at_most) == pytest.approx((0.2, 0.875))
        assert (best.at_least, best.at_most) == (0.0, 0.0)

    def test_without_an_ended_search_they_are_exact(self) -> None:
        """Whatever their bounds are; what has no solution has none."""
        one, best = excesses(self.cells((20.0, 5.0, False), (10.0, 5.0, False)))
        assert one is not None
        assert best is not None
        assert one.at_least == one.at_most == pytest.approx(1.0)
        assert best.at_least == best.at_most == 0.0
        assert excesses((Cell(1, Strategy.RAMP, None, "no"),)) == (None,)

    def test_a_best_that_takes_no_time_has_no_upper_limit(self) -> None:
        """Nothing can be divided by its bound of 0."""
        one, best = excesses(self.cells((20.0, 0.0, True), (10.0, 0.0, True)))
        assert one is not None
        assert best is not None
        assert (one.at_least, one.at_most) == (0.0, None)
        assert (best.at_least, best.at_most) == (0.0, None)

    def test_cheap_strategies_come_first(self) -> None:
        """Of all messages, and each cell has its place in the order asked for."""
        asked = (Strategy.AUTO, Strategy.SINGLE, Strategy.FIXED)
        order = []

        def solved(problem: AnyProblem, strategy: Strategy, **how: object) -> Solution:
            order.append((problem.message_bytes, strategy))
            return solve(problem, Strategy.SINGLE)

        problems = [Problem(LINES, 1024), Problem(LINES, 2048)]
        found = dict(each_cell(problems, asked, solved, relative_gap=0.1, time_limit_s=60.0))
        assert [strategy for _, strategy in order] == [
            *[Strategy.SINGLE] * 2,
            *[Strategy.FIXED] * 2,
            *[Strategy.AUTO] * 2,
        ]
        cells = [found[place] for place in range(6)]
        assert [(one.message_bytes, one.strategy) for one in cells] == [
            (size, strategy) for size in (1024, 2048) for strategy in asked
        ]
