"""Items behind a calculation against every cut, priced by hand; and loading, the mirror."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, pairwise
from random import Random

import pytest

from analysis.hidden_items import HiddenItemsQuestion, ItemWork, hide_items
from analysis.items import ItemLimit, ItemsQuestion, solve_items_question
from contract.limits import MAX_STAGES
from domain.errors import InconsistentInput
from domain.hiding import Regime
from domain.items import FillRule, ItemCut, ItemProblem, ItemSequence
from domain.pipeline import Pipeline
from tests.solvers.items.item_cases import all_cuts, is_admitted, pipeline_of, some_problem

_GAP = 1e-9


def asked(
    problem: ItemProblem,
    work: ItemWork,
    overhead_us: float = 0.0,
    *,
    is_loading: bool = False,
    cap_bytes: int | None = None,
) -> HiddenItemsQuestion:
    """The question of this problem beside this calculation."""
    return HiddenItemsQuestion(
        problem, work, overhead_us, is_loading, FillRule(), cap_bytes, _GAP, 20.0
    )


def some(random: Random) -> tuple[ItemProblem, ItemWork]:
    """A problem without ready times, and a calculation by items."""
    problem = some_problem(
        random, random.randint(1, 8), random.randint(1, 3), is_ready=False, has_ranges=True
    )
    scale = 10.0 ** random.uniform(-1, 1) * sum(problem.sequence.item_bytes)
    work = [random.choice((0.0, random.random())) * scale for _ in problem.sequence.item_bytes]
    return problem, ItemWork.of_work(work)


def stage_us(problem: ItemProblem, cut: ItemCut, place: int) -> list[float]:
    """What each fragment takes in a stage."""
    stage, own = problem.pipeline.stages[place], dict(problem.sequence.stage_us)
    return [
        stage.time_us(sum(problem.sequence.item_bytes[first:last]))
        + (sum(own[stage.name][first:last]) if stage.name in own else 0.0)
        for first, last in pairwise((0, *cut))
    ]


def run_us(question: HiddenItemsQuestion, cut: ItemCut) -> float:
    """The run time by rows of stages: each ends a fragment behind the row before, and itself."""
    problem, work, overhead = question.problem, question.work, question.fragment_overhead_us
    own = [sum(work.work_us[first:last]) + overhead for first, last in pairwise((0, *cut))]
    rows = [stage_us(problem, cut, place) for place in range(len(problem.pipeline))]
    rows = [*rows, own] if question.is_loading else [own, *rows]
    ends = [0.0] * len(cut)
    for row in rows:
        free, done = 0.0, []
        for arrival, takes in zip(ends, row, strict=True):
            free = max(free, arrival) + takes
            done.append(free)
        ends = done
    return ends[-1] + problem.pipeline.delay_us


@pytest.mark.parametrize("is_loading", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_the_run_time_is_the_least_of_all_cuts(seed: int, is_loading: bool) -> None:
    """With and without an overhead, one stage and several, limits and ranges."""
    random = Random(seed)
    problem, work = some(random)
    mean_us = work.whole_us / len(problem.sequence)
    overhead = random.choice((0.0, 0.1, 1.0)) * mean_us
    question = asked(problem, work, overhead, is_loading=is_loading)
    found = hide_items(question)
    times = {
        cut: run_us(question, cut)
        for cut in all_cuts(len(problem.sequence))
        if is_admitted(problem, cut)
    }
    assert found.with_us == pytest.approx(min(times.values()), rel=1e-8, abs=1e-9)
    assert found.with_us == pytest.approx(times[found.run.solution.cut], rel=1e-12, abs=1e-9)
    assert found.run.solution.lower_bound_us <= found.with_us
    still = ItemWork.of_work([0.0] * len(problem.sequence))
    without = replace(question, work=still, fragment_overhead_us=0.0 if is_loading else overhead)
    alone = min(run_us(without, cut) for cut in times)
    once = overhead if is_loading else 0.0
    assert found.without_us == pytest.approx(alone + work.whole_us + once, rel=1e-8, abs=1e-9)
    assert found.latency_optimal.with_us == pytest.approx(times[found.alone.cut], abs=1e-9)
    path = found.path
    parts = path.calculation_us + path.bytes_us + path.overheads_us
    assert parts + problem.pipeline.delay_us == pytest.approx(found.with_us, rel=1e-9, abs=1e-9)
    if not is_loading:  # the cut without hiding is a cut with it
        assert found.gain >= 1.0 - 1e-9
        assert found.regime is not Regime.LOSS


@pytest.mark.parametrize("seed", range(20))
def test_without_overhead_it_is_optimize_with_ready_times(seed: int) -> None:
    random = Random(seed)
    problem = some_problem(random, random.randint(3, 30), random.randint(1, 3), is_ready=True)
    cap = random.randint(1, problem.sequence.total_bytes)
    best = solve_items_question(ItemsQuestion(problem, FillRule(), _GAP, 14.0, cap))
    still = replace(problem, sequence=replace(problem.sequence, ready_us=None))
    question = asked(still, ItemWork.of_ready(problem.sequence), cap_bytes=cap)
    found = hide_items(question)
    assert found.run.solution.cut == best.solution.cut
    assert found.with_us == best.solution.latency_us
    assert found.run.current == best.current
    assert found.run.best_cap == best.best_cap
    assert found.path == best.path


@pytest.mark.parametrize("seed", range(20))
def test_loading_is_the_mirror(seed: int) -> None:
    """Stages and items reversed: the run time stays."""
    random = Random(seed)
    problem, work = some(random)
    free = ItemProblem(problem.pipeline, problem.sequence)
    turned = ItemProblem(
        Pipeline(free.pipeline.stages[::-1], free.pipeline.delay_us), free.sequence.reversed()
    )
    overhead = random.choice((0.0, 0.3)) * work.whole_us
    made = hide_items(asked(free, work, overhead))
    loaded = hide_items(
        asked(turned, ItemWork.of_work(work.work_us[::-1]), overhead, is_loading=True)
    )
    assert loaded.with_us == pytest.approx(made.with_us, rel=1e-8, abs=1e-9)


def test_a_calculation_is_shared_by_bytes() -> None:
    sequence = ItemSequence.of([1, 3, 4])
    work = ItemWork.by_bytes(sequence, 16.0)
    assert (work.work_us, work.done_us, work.whole_us) == ((2.0, 6.0, 8.0), (2.0, 8.0, 16.0), 16.0)
    ready = ItemWork.of_ready(ItemSequence.of([1, 1, 1], [2, 1, 5]))
    assert (ready.work_us, ready.done_us) == ((2.0, 0.0, 3.0), tuple(accumulate((2.0, 0.0, 3.0))))


def test_what_is_hidden_is_a_share_of_the_communication() -> None:
    """c = 4, four items of 1 byte and 1 µs a byte: the last is not hidden, 3 of 4 µs are."""
    problem = ItemProblem(pipeline_of([(0, 1000)]), ItemSequence.of([1] * 4))
    found = hide_items(asked(problem, ItemWork.by_bytes(problem.sequence, 4.0)))
    assert (found.with_us, found.without_us, found.exposed_us) == (5.0, 8.0, 1.0)
    assert (found.hidden_share, found.gain, found.gain_at_most) == (0.75, 1.6, 1.6)
    assert found.path.limit is ItemLimit.CALCULATION
    nothing = ItemProblem(pipeline_of([(0, 0)]), ItemSequence.of([1]))
    found = hide_items(asked(nothing, ItemWork.of_work([0.0])))
    assert (found.hidden_share, found.gain, found.gain_at_most) == (None, 1.0, 1.0)
    assert found.regime is Regime.FULLY_HIDDEN


def test_loading_may_lose() -> None:
    """A dear handing over is paid for each fragment, and the limits forbid one."""
    problem = ItemProblem(pipeline_of([(0, 1)]), ItemSequence.of([1, 1]), max_fragment_items=1)
    found = hide_items(asked(problem, ItemWork.of_work([1.0, 1.0]), 100.0, is_loading=True))
    assert found.regime is Regime.LOSS
    assert found.hidden_share is not None
    assert found.hidden_share < 0.0


def test_the_calculation_is_one_of_the_stages_that_are_allowed() -> None:
    problem = ItemProblem(pipeline_of([(0, 1)] * MAX_STAGES), ItemSequence.of([1]))
    work = ItemWork.of_work([1.0])
    assert asked(problem, work).calculation_stage is None
    for overhead, is_loading in ((1.0, False), (0.0, True)):
        with pytest.raises(InconsistentInput):
            asked(problem, work, overhead, is_loading=is_loading)
