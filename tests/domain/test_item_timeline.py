"""The timeline of items: the evaluator's times, and where items end within fragments."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from domain.errors import InvalidInput
from domain.item_timeline import Calculation, item_timeline_of
from domain.items import ItemProblem, ItemSequence
from domain.pipeline import pipeline_of_lines
from tests.solvers.items.item_cases import some_problem
from tests.support.counts import count


def some_cut(random: Random, items: int) -> tuple[int, ...]:
    inner = random.sample(range(1, items), random.randint(0, items - 1))
    return (*sorted(inner), items)


def test_the_times_are_the_evaluators() -> None:
    """Of every row; the first one is when items are ready, where that is not at once."""
    random = Random(1)
    for case in range(count(200)):
        problem = some_problem(random, random.randint(1, 9), 1 + case % 4, has_ranges=case % 3 == 0)
        cut = some_cut(random, len(problem.sequence))
        found, times = item_timeline_of(problem, cut), problem.simulate(cut)
        rows = found.stages[found.has_calculation :]
        for place, row in enumerate(rows):
            assert list(row.start_us) == [starts[place] for starts in times.in_stages.start_us]
            assert list(row.exit_us) == [exits[place] for exits in times.in_stages.exit_us]
        assert found.latency_us == problem.latency_us(cut)
        assert found.has_calculation == (problem.sequence.all_ready_us[-1] > 0.0)
        if found.has_calculation:
            assert isinstance(found.stages[0], Calculation)
            assert list(found.stages[0].exit_us) == list(times.ready_us)
        assert found.number_of_stages == len(problem.pipeline)
        busy = times.in_stages.busy_us()
        busiest = found.stages[found.busiest_stage]
        assert busiest.priced_us == pytest.approx(max(busy))
        assert not isinstance(busiest, Calculation)


def test_items_end_within_their_fragment() -> None:
    """In their order; the last ends with it, and each as if it and those before were a fragment,
    where costs are one line.
    """
    random = Random(2)
    for case in range(count(200)):
        problem = some_problem(random, random.randint(1, 9), 1 + case % 3)
        found = item_timeline_of(problem, some_cut(random, len(problem.sequence)))
        for row, stage in enumerate(found.stages):
            for fragment in range(len(found.cut)):
                ends = found.item_ends_us(row, fragment)
                start_us, exit_us = stage.start_us[fragment], stage.exit_us[fragment]
                assert len(ends) == len(found.items_of(fragment))
                assert ends[-1] == pytest.approx(exit_us)
                assert all(one <= other for one, other in pairwise(ends))
                assert ends[0] >= start_us or isinstance(stage, Calculation)
                if isinstance(stage, Calculation):
                    continue
                sizes = [problem.sequence.item_bytes[item] for item in found.items_of(fragment)]
                column = problem.item_us[row - found.has_calculation] or (0.0,) * len(sizes) * 99
                first = found.items_of(fragment).start
                for place, end_us in enumerate(ends, start=1):
                    own_us = sum(column[first : first + place])
                    alone_us = stage.stage.time_us(sum(sizes[:place])) + own_us
                    assert end_us == pytest.approx(start_us + alone_us)


def test_the_critical_path_has_no_pause() -> None:
    """From 0 to the end; through the calculation where the first stage waits for it."""
    random = Random(3)
    for case in range(count(200)):
        problem = some_problem(random, random.randint(1, 9), 1 + case % 4)
        found = item_timeline_of(problem, some_cut(random, len(problem.sequence)))
        parts = found.critical_parts()
        assert parts[0].start_us == 0.0
        assert parts[-1].exit_us == found.exit_us
        for before, after in pairwise(parts):
            assert before.exit_us == after.start_us
            assert found.stages[before.stage].exit_us[before.last] == before.exit_us
        for part in parts:
            stage = found.stages[part.stage]
            for fragment in range(part.first, part.last):
                assert stage.exit_us[fragment] == stage.start_us[fragment + 1]


def test_another_cut_is_refused() -> None:
    problem = ItemProblem(pipeline_of_lines([("wire", 1.0, 1.0)]), ItemSequence.of([1, 2]))
    with pytest.raises(InvalidInput):
        item_timeline_of(problem, (3,))
