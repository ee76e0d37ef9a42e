"""The walk over the layouts of one cap: against every cap at which a run of items ends."""

from __future__ import annotations

from random import Random

import pytest

from domain.items import CapChoice, Fill, FillRule, ItemProblem, ItemSequence, layout
from solvers.contract import Deadline
from solvers.items import caps
from solvers.items.caps import best_cap, layouts, priced_above, priced_layouts
from solvers.kernels.native import Choice
from tests.solvers.items.item_cases import ORACLES, oracle, pipeline_of, some_problem
from tests.support.counts import count
from tests.support.kernels import computed_by

LONG = 60.0
LISTED = [
    (number, rule, expected)
    for number, (*_, until, before) in enumerate(ORACLES)
    for rule, expected in ((Fill.UNTIL, until), (Fill.BEFORE, before))
    if expected is not None
]


def best(problem: ItemProblem, rule: FillRule) -> CapChoice | None:
    return best_cap(problem, rule, Deadline.after(LONG))


def some_rule(random: Random, problem: ItemProblem) -> FillRule:
    first = random.choice((None, None, random.randint(1, problem.sequence.total_bytes)))
    return FillRule(random.choice(list(Fill)), first)


def run_sums(problem: ItemProblem) -> list[int]:
    """The bytes of every run of items: between two of them no cap changes a layout."""
    ends = problem.sequence.ends_bytes
    pairs = ((first, last) for last in range(len(ends)) for first in range(last))
    return sorted({ends[last] - ends[first] for first, last in pairs})


def tried_caps(problem: ItemProblem, rule: FillRule) -> list[int]:
    """These sums, and what lies just above each, as far as the walk looks."""
    total = problem.sequence.total_bytes
    sums = run_sums(problem)
    caps = sorted({1, *sums, *(size + 1 for size in sums)})
    if rule.rule is Fill.UNTIL:
        return [cap for cap in caps if cap <= total]
    limit, largest = problem.max_fragment_bytes or total, max(problem.sequence.item_bytes)
    lowest = min(largest, limit)
    return [cap for cap in caps if lowest <= cap <= max(min(limit, total), lowest)] or [lowest]


@pytest.mark.parametrize(("number", "rule", "expected"), LISTED)
def test_published_caps(
    number: int, rule: Fill, expected: tuple[float, int], kernels: Choice
) -> None:
    with computed_by(kernels):
        found = best(oracle(number), FillRule(rule))
    assert found is not None
    assert (found.latency_us, found.layouts, found.is_complete) == (*expected, True)


def test_every_layout_once() -> None:
    """Both rules, with and without a cap for the first fragment."""
    random = Random(1)
    for _ in range(count(800)):
        problem = some_problem(random, random.randint(1, 14), 1)
        rule = some_rule(random, problem)
        walked = list(layouts(problem, rule))
        cuts = [one.cut for one in walked]
        expected = [layout(problem.sequence, cap, rule) for cap in tried_caps(problem, rule)]
        assert len(set(cuts)) == len(cuts)
        assert set(cuts) == set(expected)
        for one in walked:
            last = one.to_bytes or problem.sequence.total_bytes + 5
            assert layout(problem.sequence, one.from_bytes, rule) == one.cut
            assert layout(problem.sequence, last, rule) == one.cut


def test_the_best_of_all() -> None:
    random = Random(2)
    for case in range(count(800)):
        problem = some_problem(
            random, random.randint(1, 14), 1 + case % 4, has_ranges=case % 3 == 0
        )
        rule = some_rule(random, problem)
        cuts = {layout(problem.sequence, cap, rule) for cap in tried_caps(problem, rule)}
        latencies = [problem.latency_us(cut) for cut in cuts if problem.admits(cut)]
        found = best(problem, rule)
        if not latencies:
            assert found is None
            continue
        assert found is not None
        assert found.latency_us == pytest.approx(min(latencies), rel=1e-9)
        assert problem.admits(found.cut)
        for cap in (found.from_bytes, found.to_bytes or problem.sequence.total_bytes + 5):
            assert layout(problem.sequence, cap, rule) == found.cut
        assert found.layouts == len(cuts)


def test_of_equals_the_fewest_fragments() -> None:
    """All ready late: every cut waits, and without overheads all take the same."""
    problem = ItemProblem(pipeline_of([(0.0, 0.0)]), ItemSequence.of([3, 1, 2], [9, 9, 9]))
    found = best(problem, FillRule())
    assert found is not None
    assert (found.cut, found.from_bytes, found.to_bytes) == ((3,), 5, None)


def test_c_and_python_walk_alike() -> None:
    random = Random(3)
    for case in range(count(200)):
        problem = some_problem(random, random.randint(1, 60), 1 + case % 3, has_ranges=True)
        rule = some_rule(random, problem)
        with computed_by("numpy"):
            expected = best(problem, rule)
        assert best(problem, rule) == expected


def test_a_walk_that_is_cut_off() -> None:
    random = Random(4)
    problem = some_problem(random, 3000, 1, is_ready=True, has_limits=False)
    found = best_cap(problem, FillRule(), Deadline.after(0.0))
    assert found is not None
    assert not found.is_complete
    assert found.latency_us == problem.latency_us(found.cut)


def test_items_above_the_limit_by_before() -> None:
    """The only cap is the limit: a program sends what is larger by itself."""
    problem = ItemProblem(pipeline_of([(1, 1000)]), ItemSequence.of([9, 1, 1, 9]), 4)
    found = best(problem, FillRule(Fill.BEFORE))
    assert found is not None
    assert (found.cut, found.from_bytes, found.layouts) == ((1, 3, 4), 4, 1)


def test_every_layout_has_its_price(kernels: Choice) -> None:
    """The evaluator's, by both kernels; None exactly where the limits do not admit it."""
    random = Random(5)
    for case in range(count(200)):
        problem = some_problem(
            random, random.randint(1, 12), 1 + case % 4, has_ranges=case % 3 == 0
        )
        rule = some_rule(random, problem)
        with computed_by(kernels):
            found, is_complete = priced_layouts(problem, rule, Deadline.after(LONG))
        walked = list(layouts(problem, rule))
        assert is_complete
        assert [one.from_bytes for one in found] == [one.from_bytes for one in walked]
        for one, other in zip(found, walked, strict=True):
            if problem.admits(other.cut):
                assert one.latency_us == pytest.approx(problem.latency_us(other.cut), rel=1e-12)
                assert (one.fragments, one.to_bytes) == (len(other.cut), other.to_bytes)
            else:
                assert (one.fragments, one.latency_us) == (0, None)


def test_caps_beyond_are_tried_where_time_ends_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice is a layout with all caps that give it, and no worse than any that was tried."""
    monkeypatch.setattr(caps, "_WORK", 1)  # the clock is looked at after each layout
    random, ended, cases = Random(6), Deadline.after(0.0), count(400)
    unfinished = 0
    for case in range(cases):
        problem = some_problem(random, random.randint(2, 14), 1 + case % 3)
        rule = some_rule(random, problem)
        found, walked = best_cap(problem, rule, ended), list(layouts(problem, rule))
        if len(walked) < 2:
            continue
        tried = priced_above(problem, rule, walked[1].from_bytes, caps.TRIED)
        latencies = [one.latency_us for one in tried if one.latency_us is not None]
        if found is None:
            assert not latencies
            continue
        assert not found.is_complete
        unfinished += 1
        same = next(one for one in walked if one.cut == found.cut)
        assert (same.from_bytes, same.to_bytes) == (found.from_bytes, found.to_bytes)
        assert found.latency_us == problem.latency_us(found.cut)
        assert found.latency_us <= min(latencies, default=found.latency_us) * (1 + 1e-9)
    assert unfinished > cases // 3


def test_the_walk_over_prices_ends_with_the_time() -> None:
    """After one layout at the least."""
    problem = oracle(2)
    found, is_complete = priced_layouts(problem, FillRule(), Deadline.after(0.0))
    assert (len(found), is_complete) == (1, False)
