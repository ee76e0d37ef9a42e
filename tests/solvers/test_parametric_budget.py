"""Tables whose tolerance takes more entries than are tried: spread evenly, and said."""

from __future__ import annotations

from itertools import pairwise

import pytest

from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits
from solvers import compile_table
from solvers.contract import Deadline
from solvers.tables import compile as table_compiler
from solvers.tables import range_repeat, ranges, repeat
from solvers.tables.budget import MARGIN, EvenCompilation
from solvers.tables.repeat import RepeatCompiler
from tests.solvers.table_cases import check_cut, check_entries, check_repeat, random_sizes
from tests.support.plan_tables import a_line_pipeline, a_ranged_pipeline

NO_LIMITS = FragmentLimits()
MYRINET = pipeline_of_lines(
    [
        ("sender copy", 7.2, 7.03125),
        ("sender host DMA", 5.2, 24.31640625),
        ("network and receiver DMA", 7.5, 24.31640625),
        ("receiver copy", 7.4, 7.71484375),
    ]
)
RANGED = Pipeline(
    (
        Stage("copy", (FitRange(0.05, 9.0, 40), FitRange(0.2, 4.0, 90), FitRange(0.0, 7.0))),
        Stage("write", (FitRange(0.3, 2.0, 33), FitRange(0.1, 11.0))),
    )
)
QUESTIONS = [
    pytest.param(MYRINET, NO_LIMITS, 30, id="myrinet"),
    pytest.param(a_line_pipeline(), NO_LIMITS, 40, id="lines"),
    pytest.param(MYRINET, FragmentLimits(alignment_bytes=16), 22, id="aligned"),
    pytest.param(MYRINET, FragmentLimits(max_fragment_bytes=2048), 45, id="greatest size"),
    pytest.param(RANGED, NO_LIMITS, 110, id="ranges"),
]
TOLERANCES = (1e-2, 1e-3, 1e-5)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> int:
    """As many message sizes are tried as the question says."""
    maximum: int = request.getfixturevalue("maximum")
    for module in (table_compiler, repeat, ranges, range_repeat):
        monkeypatch.setattr(module, "_MAX_POINTS", maximum)
    return maximum


def compiled(
    pipeline: Pipeline, limits: FragmentLimits, relative_gap: float
) -> tuple[PlanTable, list[float], list[float]]:
    """The table, the tolerance that it was loosened to, and the progress."""
    loosened: list[float] = []
    reported: list[float] = []
    table = compile_table(
        pipeline,
        limits,
        min_message_bytes=1,
        max_message_bytes=256 if len(pipeline) == 2 else 2**12,
        relative_gap=relative_gap,
        time_limit_s=3600.0,
        on_progress=reported.append,
        on_loosened=loosened.append,
    )
    return table, loosened, reported


def worst_gaps(table: PlanTable) -> tuple[float, float]:
    """Of the cuts and of the repeated sizes."""
    return (
        max(cut.relative_gap for cut in table.cuts),
        max(repeat.relative_gap for repeat in table.repeats),
    )


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("pipeline", "limits", "maximum"), QUESTIONS)
def test_a_stricter_tolerance_is_not_worse(
    pipeline: Pipeline, limits: FragmentLimits, maximum: int
) -> None:
    """The tolerance that is stated is the one asked for; certificates hold; progress grows."""
    tables = [compiled(pipeline, limits, tolerance) for tolerance in TOLERANCES]
    for (loose, _, _), (strict, _, _) in pairwise(tables):
        for before, after in zip(worst_gaps(loose), worst_gaps(strict), strict=True):
            assert after <= 1.01 * before + 1e-9
    for asked, (table, _, reported) in zip(TOLERANCES, tables, strict=True):
        assert table.relative_gap == asked
        assert reported == sorted(reported)
        assert (reported.count(1.0), reported[-1]) == (1, 1.0)
    strictest, loosened, _ = tables[-1]
    assert loosened
    assert loosened[0] > TOLERANCES[-1]
    assert len(strictest.cuts) < 2 * maximum
    check_entries(strictest)
    for size in random_sizes(strictest, 4, seed=1) if pipeline != RANGED else ():
        check_cut(strictest, size)
        check_repeat(strictest, size)


def test_what_takes_too_much_is_compiled_as_what_does_not() -> None:
    """Two tolerances out of reach give the same entries, at the loosened tolerance everywhere."""
    limits = FragmentLimits(max_fragments=1_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_compiler, "_MAX_POINTS", 60)
        patch.setattr(repeat, "_MAX_POINTS", 60)
        one, kept, _ = compiled(MYRINET, limits, 1e-5)
        other, also, _ = compiled(MYRINET, limits, 2e-6)
    assert kept == also
    assert [cut.message_bytes for cut in one.cuts] == [cut.message_bytes for cut in other.cuts]
    assert max(cut.relative_gap for cut in one.cuts) <= kept[0]


def test_nothing_is_said_where_the_tolerance_fits() -> None:
    """Nor loosened."""
    table, loosened, _ = compiled(MYRINET, NO_LIMITS, 1e-2)
    assert loosened == []
    assert max(worst_gaps(table)) <= 1e-2


def test_without_time_the_first_pass_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It covers the whole range, and the worst that it states is what it was loosened to."""
    from domain.problem import Problem

    monkeypatch.setattr(repeat, "_MAX_POINTS", 60)
    compiler = RepeatCompiler(
        Problem(MYRINET, 2**13),
        min_message_bytes=1,
        max_message_bytes=2**13,
        tolerance=1e-5 * MARGIN,
    )
    even = EvenCompilation(compiler, 1e-5)
    even.first(Deadline.after(3600.0), lambda size: None)
    entries, kept = even.loosened(Deadline.after(0.0), lambda size, before: None)
    assert (entries[0].message_bytes, entries[-1].message_bytes) == (1, 2**13)
    assert kept == max(entry.relative_gap for entry in entries) > 1e-5


@pytest.mark.parametrize(
    ("pipeline", "limits"), [(MYRINET, NO_LIMITS), (a_ranged_pipeline(), NO_LIMITS)]
)
@pytest.mark.parametrize("ends", [True, False], ids=["time ends", "the caller ends it"])
def test_where_time_ends_the_gaps_reached_are_the_answer(
    pipeline: Pipeline, limits: FragmentLimits, ends: bool
) -> None:
    """All of the range is there, each certificate holds, and the caller is told."""
    told: list[bool] = []
    table = compile_table(
        pipeline,
        limits,
        min_message_bytes=1,
        max_message_bytes=2**12,
        relative_gap=1e-4,
        time_limit_s=1e-9 if ends else 300.0,
        on_cut_off=lambda: told.append(True),
        is_ended=None if ends else lambda: True,
    )
    assert told == [True]
    check_entries(table)
    for size in random_sizes(table, 4, seed=2) if pipeline != a_ranged_pipeline() else ():
        check_cut(table, size)
        check_repeat(table, size)
