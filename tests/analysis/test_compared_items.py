"""Ways to cut between items side by side, against every cut and every cap."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from analysis.compared_items import (
    ItemsCompareQuestion,
    ItemWay,
    broken_limit,
    compare_items,
)
from analysis.items import ItemsQuestion, solve_items_question
from domain.items import Fill, FillRule, ItemProblem, ItemSequence, layout
from tests.solvers.items.item_cases import (
    best_of_all_us,
    is_admitted,
    oracle,
    pipeline_of,
    plain_latency_us,
    some_problem,
)

_GAP = 1e-9


def compared(
    problem: ItemProblem, *caps: int, fill: FillRule | None = None
) -> ItemsCompareQuestion:
    """The question of this problem."""
    return ItemsCompareQuestion(problem, fill or FillRule(), caps, _GAP, 10.0)


@pytest.mark.parametrize("seed", range(60))
def test_every_way_is_what_it_says(seed: int) -> None:
    """The best cut of all there are, the best cap of all there are, and the evaluator's times."""
    random = Random(seed)
    problem = some_problem(
        random, random.randint(1, 8), random.randint(1, 3), has_ranges=seed % 3 == 0
    )
    total = problem.sequence.total_bytes
    fill = FillRule(random.choice((Fill.UNTIL, Fill.BEFORE)))
    caps = tuple(random.randint(1, total) for _ in range(2))
    rows = compare_items(compared(problem, *caps, fill=fill))
    found = {row.way: row for row, _ in rows}
    assert [row.way for row, _ in rows].count(ItemWay.CAP) == 2
    assert found[ItemWay.EXACT].latency_us == pytest.approx(best_of_all_us(problem), rel=1e-9)
    for way, rule in ((ItemWay.BEST_CAP_UNTIL, Fill.UNTIL), (ItemWay.BEST_CAP_BEFORE, Fill.BEFORE)):
        if rule is Fill.BEFORE and problem.max_fragment_bytes is not None:
            continue  # caps above the limit, and below the largest item, are no settings there
        first = 1 if rule is Fill.UNTIL else max(problem.sequence.item_bytes)
        layouts = {layout(problem.sequence, cap, FillRule(rule)) for cap in range(first, total + 1)}
        times = [plain_latency_us(problem, cut) for cut in layouts if is_admitted(problem, cut)]
        if not times:
            assert found[way].declined == "the limits admit no layout of one cap"
            continue
        assert found[way].latency_us == pytest.approx(min(times), rel=1e-9)
        lowest = found[way].from_bytes
        assert lowest is not None
        assert layout(problem.sequence, lowest, FillRule(rule)) == found[way].cut
    given = [row for row, _ in rows if row.way is ItemWay.CAP]
    for cap, row in zip(caps, given, strict=True):
        cut = layout(problem.sequence, cap, fill)
        assert (row.declined is None) == is_admitted(problem, cut) == (row.cut == cut)
        assert broken_limit(problem, cut) == row.declined
    for row, excess in rows:
        assert (row.latency_us is None) == (excess is None) == (row.declined is not None)
        if row.cut is not None and excess is not None:
            assert row.latency_us == problem.latency_us(row.cut)
            assert excess.at_least == excess.at_most
    best = min(row.latency_us for row, _ in rows if row.latency_us is not None)
    assert best == pytest.approx(best_of_all_us(problem), rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_is_what_optimize_finds(seed: int) -> None:
    random = Random(seed)
    problem = some_problem(random, random.randint(5, 40), random.randint(1, 3))
    answer = solve_items_question(ItemsQuestion(problem, FillRule(), _GAP, 10.0))
    rows = compare_items(compared(problem))
    exact, excess = rows[0]
    assert exact.latency_us == answer.solution.latency_us
    assert exact.cut == answer.solution.cut
    assert excess is not None
    assert excess.at_least == 0.0
    by_until = rows[1][0]
    if answer.best_cap is not None:
        assert by_until.latency_us == answer.best_cap.latency_us


def test_pytorch_closes_the_first_bucket_at_a_mebibyte() -> None:
    mib = 2**20
    sequence = ItemSequence.of([mib // 2] * 4 + [10 * mib] * 6, list(range(0, 10_000, 1000)))
    problem = ItemProblem(pipeline_of([(100, 1)]), sequence)
    rows = {row.way: row for row, _ in compare_items(compared(problem))}
    assert rows[ItemWay.PYTORCH_DEFAULT].cut == (2, 7, 10)


def test_the_limit_that_a_way_breaks_is_named() -> None:
    problem = replace(oracle(0), max_fragment_items=2)
    assert (
        broken_limit(problem, (5,)) == "its fragment 1 has 5 items, and max_fragment_items allows 2"
    )
    assert broken_limit(replace(problem, max_fragment_bytes=4), (2, 3, 4, 5)) == (
        "its fragment 1 has 5 bytes, and max_fragment_bytes allows 4"
    )


def test_a_first_cap_is_of_its_own_rule_alone() -> None:
    rows = {
        row.way: row for row, _ in compare_items(compared(oracle(0), fill=FillRule(Fill.UNTIL, 4)))
    }
    by_until, by_before = rows[ItemWay.BEST_CAP_UNTIL], rows[ItemWay.BEST_CAP_BEFORE]
    assert by_until.fill == FillRule(Fill.UNTIL, 4)
    assert by_until.cut is not None
    assert by_until.cut[0] == 1
    assert (by_before.fill, by_before.latency_us) == (FillRule(Fill.BEFORE), 19.0)
