"""Items through windows: what a cut takes, every cut tried, bounds at any width, slots of bytes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from domain.errors import Infeasible
from domain.items import Fill, FillRule, ItemProblem, ItemSequence
from domain.machine import Window
from domain.solution import Status
from solvers.contract import Deadline, SolveOptions
from solvers.items.arrays import arrays_of, item_kernels
from solvers.items.bounds import (
    any_byte,
    any_byte_in_windows,
    label_bounds,
    lower_bound_us,
)
from solvers.items.caps import best_cap, layouts
from solvers.items.labels import Labelled, search
from solvers.items.slots import all_slots
from solvers.items.solve import solve_items
from solvers.kernels.native import Choice
from tests.solvers.items.item_cases import (
    all_cuts,
    best_of_all_us,
    is_admitted,
    pipeline_of,
    plain_latency_us,
    shaped_problem,
    some_problem,
    with_windows,
)
from tests.support.counts import count
from tests.support.kernels import computed_by

SAME = 1e-9
KERNELS: tuple[Choice, ...] = ("native", "numpy")
TO_THE_END = SolveOptions(relative_gap=0.0, time_limit_s=60.0)


def windowed(random: Random, case: int, items: int, *, has_bytes: bool = True) -> ItemProblem:
    problem = some_problem(random, items, 1 + case % 8, has_ranges=case % 3 == 0)
    return with_windows(random, problem, has_bytes=has_bytes)


def searched(problem: ItemProblem, width: int, known_us: float = 1e300) -> Labelled:
    bounds = label_bounds(problem, known_us)
    deadline = Deadline.after(60.0)
    return search(problem, bounds, width=width, target_us=known_us, deadline=deadline)


def some_cut(random: Random, problem: ItemProblem) -> tuple[int, ...]:
    """An admitted cut."""
    cut, last = list[int](), 0
    while last < len(problem.sequence):
        last = random.randint(last + 1, problem.longest_from(last))
        cut.append(last)
    return tuple(cut)


# --- what a cut takes -----------------------------------------------------------------------------


def test_the_evaluator_is_every_rule_by_itself() -> None:
    """And the kernels are the evaluator, in C and in Python."""
    random = Random(1)
    for case in range(count(400)):
        problem = windowed(random, case, random.randint(1, 12))
        problem = replace(problem, max_fragments=None)
        cut = some_cut(random, problem)
        latency_us = problem.latency_us(cut)
        assert latency_us == pytest.approx(plain_latency_us(problem, cut), rel=SAME)
        assert problem.simulate(cut).latency_us == latency_us
        for kernels in KERNELS:
            with computed_by(kernels):
                found = item_kernels().latency_us(arrays_of(problem), cut)
            assert found + problem.pipeline.delay_us == pytest.approx(latency_us, rel=SAME)


def test_the_evaluator_is_the_machine_s() -> None:
    """Of items that are bytes alone, counted at the greatest fragment."""
    random = Random(2)
    for case in range(count(200)):
        problem = some_problem(
            random, 9, 1 + case % 6, is_ready=False, has_limits=False, has_costs=False
        )
        problem = with_windows(random, problem)
        cut = some_cut(random, problem)
        expected = problem.model.latency_us(problem.sequence.fragment_bytes(cut))
        assert problem.latency_us(cut) == pytest.approx(expected, rel=1e-12)


def test_more_places_never_take_longer() -> None:
    random = Random(3)
    for case in range(count(200)):
        problem = windowed(random, case, 10, has_bytes=False)
        more = tuple(replace(one, fragments=(one.fragments or 0) + 1) for one in problem.windows)
        problem = replace(problem, max_fragments=None)
        cut = some_cut(random, problem)
        assert replace(problem, windows=more).latency_us(cut) <= problem.latency_us(cut)


def test_the_mirror_takes_as_long() -> None:
    """Stages, items and windows reversed."""
    random = Random(4)
    for case in range(count(100)):
        plain = some_problem(random, 8, 2 + case % 3, is_ready=False, has_limits=False)
        problem = with_windows(random, plain)
        last = len(problem.pipeline) - 1
        windows = tuple(
            replace(one, first=last - one.last, last=last - one.first) for one in problem.windows
        )
        mirror = ItemProblem(
            problem.pipeline.reversed(), problem.sequence.reversed(), windows=windows
        )
        one, other = (solve_items(each, TO_THE_END) for each in (problem, mirror))
        assert one.latency_us == pytest.approx(other.latency_us, rel=SAME)


# --- every cut ------------------------------------------------------------------------------------


def test_labels_with_windows() -> None:
    """A wide search is exact; any width bounds every cut."""
    random = Random(5)
    for case in range(count(400)):
        problem = windowed(random, case, random.randint(1, 10), has_bytes=False)
        best_us = best_of_all_us(problem) - problem.pipeline.delay_us
        found = searched(problem, 10_000)
        assert found.cut is not None
        assert problem.admits(found.cut)
        reached_us = problem.latency_us(found.cut) - problem.pipeline.delay_us
        assert reached_us == pytest.approx(best_us, rel=SAME)
        assert found.bound_us == pytest.approx(best_us, rel=SAME)
        for width in (1, 2, 3):
            narrow = searched(problem, width)
            assert narrow.bound_us <= best_us * (1.0 + SAME)
        assert searched(problem, 10_000, best_us * (1.0 - 1e-12)).cut is None


def test_every_cut() -> None:
    """1 to 8 stages, one or two windows of fragments and of bytes, limits, ranges, items' own
    costs.
    """
    random = Random(6)
    for case in range(count(400)):
        problem = windowed(random, case, random.randint(1, 10))
        best_us = best_of_all_us(problem)
        found = solve_items(problem, TO_THE_END)
        assert found.latency_us == pytest.approx(best_us, rel=SAME)
        assert found.lower_bound_us == pytest.approx(best_us, rel=SAME)
        assert is_admitted(problem, found.cut)
        assert found.latency_us == problem.latency_us(found.cut)


def test_bounds_before_any_search() -> None:
    random = Random(7)
    for case in range(count(200)):
        problem = windowed(random, case, 8, has_bytes=False)
        best_us = best_of_all_us(problem) - problem.pipeline.delay_us
        bounds = label_bounds(problem, best_us)
        assert lower_bound_us(problem, bounds) <= best_us * (1.0 + SAME)
        for bound in (any_byte, any_byte_in_windows):
            assert bound(problem, Deadline.after(5.0)).bound_us <= best_us * (1.0 + SAME)


def test_c_and_python_search_alike() -> None:
    random = Random(8)
    for case in range(count(150)):
        problem = windowed(random, case, random.randint(1, 20), has_bytes=False)
        width = random.choice((1, 2, 5, 50))
        with computed_by("numpy"):
            expected = searched(problem, width)
        assert searched(problem, width) == expected


def test_every_cap() -> None:
    """The best layout of one cap, each priced with the slots of its own greatest fragment."""
    random = Random(9)
    for case in range(count(150)):
        problem = windowed(random, case, 9)
        rule = FillRule(random.choice(tuple(Fill)))
        priced = [
            plain_latency_us(problem, found.cut)
            for found in layouts(problem, rule)
            if is_admitted(problem, found.cut)
        ]
        for kernels in KERNELS:
            with computed_by(kernels):
                choice = best_cap(problem, rule, Deadline.after(60.0))
            assert (choice is None) == (not priced)
            if choice is not None:
                assert choice.latency_us == pytest.approx(min(priced), rel=SAME)


# --- slots of bytes -------------------------------------------------------------------------------


def test_ranges_of_slots_hold_every_cut_once() -> None:
    """Split to the end: each admitted cut is in one, and takes there what it takes."""
    random = Random(10)
    for case in range(count(100)):
        problem = windowed(random, case, 7)
        singles, waiting = [], [all_slots(problem)]
        while waiting:
            here = waiting.pop()
            if here.is_single:
                singles.append(here)
            else:
                waiting += here.parts()
        for cut in all_cuts(7):
            if not is_admitted(problem, cut):
                continue
            largest = max(problem.sequence.fragment_bytes(cut))
            held = [one for one in singles if one.from_bytes <= largest <= one.to_bytes]
            assert len(held) == 1
            assert held[0].problem.admits(cut)
            assert held[0].problem.latency_us(cut) == problem.latency_us(cut)


def test_memory_decides_how_many_slots() -> None:
    """One item a slot in two of them, where one slot of two items would wait for itself."""
    stages = pipeline_of([(0, 1000), (0, 1000)])
    items = ItemSequence.of([1] * 6)
    found = solve_items(ItemProblem(stages, items, windows=(Window(0, 1, bytes=2),)))
    assert found.cut == (1, 2, 3, 4, 5, 6)
    assert found.latency_us == 7.0
    assert found.problem.places(found.cut) == (2,)
    dear = pipeline_of([(2, 1000), (2, 1000)])
    found = solve_items(ItemProblem(dear, items, windows=(Window(0, 1, bytes=2),)))
    assert found.latency_us == 7 * 3.0
    dear = pipeline_of([(10, 1000), (10, 1000)])
    found = solve_items(ItemProblem(dear, items, windows=(Window(0, 1, bytes=2),)))
    assert (found.cut, found.latency_us) == ((2, 4, 6), 3 * 24.0)
    alone = solve_items(ItemProblem(dear, items, windows=(Window(0, 1, 1, bytes=2),)))
    assert alone.cut == (2, 4, 6)
    assert alone.latency_us == 3 * 24.0


def test_many_slots_of_fine_items_end() -> None:
    """A thousand slots are not tried one by one."""
    problem = shaped_problem(Random(11), 300, 3, "equal")
    window = Window(0, 2, bytes=problem.sequence.total_bytes // 3)
    found = solve_items(replace(problem, windows=(window,)))
    assert found.lower_bound_us <= found.latency_us
    assert found.relative_gap < 0.1


def test_a_status_says_no_more_than_the_bound() -> None:
    random = Random(12)
    for case in range(count(12)):
        problem = shaped_problem(random, 80, 2 + case % 3, ("equal", "layers", "random")[case % 3])
        last = len(problem.pipeline) - 1
        window = Window(0, last, bytes=problem.sequence.total_bytes // random.randint(2, 8))
        found = solve_items(replace(problem, windows=(window,)))
        is_close = found.latency_us <= found.lower_bound_us * (1.0 + 1e-6)
        assert (found.status is Status.OPTIMAL) == is_close


# --- what does not fit ----------------------------------------------------------------------------


def test_an_item_that_no_window_holds() -> None:
    problem = ItemProblem(
        pipeline_of([(1, 1)]), ItemSequence.of([2, 5, 1]), windows=(Window(0, 0, bytes=4),)
    )
    with pytest.raises(Infeasible, match="item 2 of 5 bytes does not fit") as refusal:
        solve_items(problem)
    assert refusal.value.field == "windows.0.bytes"


def test_a_fragment_that_no_window_holds() -> None:
    problem = ItemProblem(
        pipeline_of([(1, 1)]), ItemSequence.of([2, 1]), windows=(Window(0, 0, bytes=2),)
    )
    with pytest.raises(Infeasible, match="a fragment of 3 bytes"):
        problem.latency_us((2,))
    assert not problem.admits((2,))


def test_an_item_above_the_cap_takes_slots_of_its_size() -> None:
    """A cap holds for runs of items; the slots are counted at the greatest fragment."""
    problem = ItemProblem(
        pipeline_of([(1, 1000), (1, 1000)]),
        ItemSequence.of([1, 1, 6, 1, 1]),
        2,
        windows=(Window(0, 1, bytes=12),),
    )
    found = solve_items(problem, TO_THE_END)
    assert found.latency_us == pytest.approx(best_of_all_us(problem))
    assert problem.places(found.cut) == (2,)
