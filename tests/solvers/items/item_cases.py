"""Random problems of items, and what independent, slow methods say of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf, log10
from random import Random

from domain.items import ItemCut, ItemProblem, ItemSequence
from domain.machine import Window
from domain.pipeline import FitRange, Pipeline, Stage

ORACLES = (
    # bytes, ready times, stages (overhead; ns per byte), most bytes, optimum, cut, best cap by
    # `until` and `before` with the number of layouts; None: not asked
    ([4, 1, 1, 2, 4], [1, 2, 3, 5, 9], [(2, 1000)], None, 18, (2, 5), (18, 7), (19, 5)),
    ([1] * 6, [1, 2, 3, 4, 5, 6], [(1, 1000)], None, 10, (1, 3, 6), (11, 6), (11, 6)),
    (
        [3, 1, 4, 1, 5, 9, 2, 6],
        None,
        [(1, 1000), (2, 1000)],
        None,
        48,
        (3, 5, 6, 8),
        (48, 12),
        (49, 7),
    ),
    (
        [3, 1, 4, 1, 5, 9, 2, 6],
        [2, 3, 5, 6, 9, 14, 15, 20],
        [(1, 500), (3, 1000), (1, 250)],
        None,
        53,
        (1, 4, 6, 8),
        (53.5, 12),
        (57, 7),
    ),
    (
        [3, 1, 4, 1, 5, 9, 2, 6],
        [2, 3, 5, 6, 9, 14, 15, 20],
        [(3, 1000)],
        9,
        48,
        (3, 5, 6, 8),
        None,
        (49, 1),
    ),
)


def pipeline_of(stages: Sequence[tuple[float, float]], delay_us: float = 0.0) -> Pipeline:
    """Stages of one line each, called s0, s1, .."""
    lines = (
        Stage.of_line(f"s{place}", overhead_us=overhead, ns_per_byte=cost)
        for place, (overhead, cost) in enumerate(stages)
    )
    return Pipeline(tuple(lines), delay_us)


def oracle(number: int) -> ItemProblem:
    """One of the oracles as a problem."""
    sizes, ready, stages, cap, *_ = ORACLES[number]
    return ItemProblem(pipeline_of(stages), ItemSequence.of(sizes, ready), cap)


def some_problem(
    random: Random,
    items: int,
    stages: int,
    *,
    is_ready: bool | None = None,
    has_limits: bool | None = None,
    has_ranges: bool = False,
    has_costs: bool = True,
) -> ItemProblem:
    """Items and stages on comparable scales; None: by lot."""
    sizes = [
        random.choice((random.randint(1, 10), random.randint(1, 100), 50)) for _ in range(items)
    ]
    mean = sum(sizes) / items
    columns, found = {}, []
    for place in range(stages):
        cost = 10.0 ** random.uniform(-1, 1)
        overhead = random.choice((0, 1, 1)) * 10.0 ** random.uniform(-1.5, 0.5) * cost * mean
        ranges = [FitRange(overhead, 1000.0 * cost)]
        if has_ranges and random.random() < 0.7:
            end = random.randint(1, sum(sizes))
            factors = random.choice((0.5, 1, 2)), random.choice((0.25, 1, 2))
            ranges = [
                FitRange(overhead, 1000.0 * cost, end),
                FitRange(overhead * factors[0], 1000.0 * cost * factors[1]),
            ]
        found.append(Stage(f"s{place}", tuple(ranges)))
        if has_costs and random.random() < 0.5:
            columns[f"s{place}"] = [
                random.choice((0.0, random.random())) * cost * mean for _ in range(items)
            ]
    ready = None
    if is_ready is not False and (is_ready or random.random() < 0.7):
        rate, time, ready = 10.0 ** random.uniform(-1, 1), 0.0, []
        for size in sizes:
            time += rate * size * random.choice((1.0, random.random(), 3.0 * random.random()))
            ready.append(time)
    limits: list[int | None] = [None, None, None]
    if has_limits is not False and (has_limits or random.random() < 0.5):
        cap = max(1, sum(sizes) // random.randint(2, items + 1))
        limits[0] = random.choice((None, cap, max(max(sizes), cap)))
        limits[1] = random.choice((None, None, random.randint(1, items)))
    pipeline = Pipeline(tuple(found), random.choice((0.0, 0.0, mean)))
    sequence = ItemSequence.of(sizes, ready, stage_us=columns)
    free = ItemProblem(pipeline, sequence, limits[0], limits[1])
    if has_limits is not False and random.random() < 0.25:
        limits[2] = random.randint(free.min_fragments, items)
    return ItemProblem(pipeline, sequence, limits[0], limits[1], limits[2])


def rising_stages(random: Random, problem: ItemProblem, most: int = 4) -> ItemProblem:
    """The same with stages of 1 to so many ranges, none of which begins below the one before."""
    total, mean = problem.sequence.total_bytes, problem.sequence.total_bytes / len(problem.sequence)
    stages = []
    for stage in problem.pipeline.stages:
        ends = sorted({random.randint(1, total) for _ in range(random.randint(0, most - 1))})
        us, low, parts = random.choice((0.0, random.uniform(0, 3 * mean))), 0, []
        for end in (*ends, None):
            us += 1e-9 * us + random.choice((0.0, random.uniform(0, 4 * mean)))
            rate = min(random.choice((0.0, 0.2, 1.0, 2.0)), us / max(low, 1)) if low else 1.0
            parts.append(FitRange(max(0.0, us - rate * low), 1000.0 * rate, end))
            us, low = us + rate * ((end or low) - low), end or low
        stages.append(Stage(stage.name, tuple(parts)))
    return replace(problem, pipeline=Pipeline(tuple(stages), problem.pipeline.delay_us))


def all_cuts(items: int) -> Iterator[ItemCut]:
    """Every cut of so many items."""
    for mask in range(1 << (items - 1)):
        yield (*(item + 1 for item in range(items - 1) if mask >> item & 1), items)


def with_windows(random: Random, problem: ItemProblem, *, has_bytes: bool = True) -> ItemProblem:
    """The same with one or two windows of up to 4 fragments, or of bytes that hold every item."""
    sizes, stages = problem.sequence.item_bytes, len(problem.pipeline)
    mean_us = sum(stage.time_us(sum(sizes) / len(sizes)) for stage in problem.pipeline.stages)
    windows = []
    for _ in range(random.randint(1, 2)):
        first = random.randint(0, stages - 1)
        last = random.randint(first, stages - 1)
        fragments: int | None = random.randint(1, 4)
        held = None
        if has_bytes and random.random() < 0.6:
            held = random.randint(max(sizes), max(sizes) + sum(sizes))
            fragments = random.choice((None, fragments))
        back_us = random.choice((0.0, 0.0, random.random() * mean_us))
        windows.append(Window(first, last, fragments, held, back_us))
    free = replace(problem, windows=tuple(windows), max_fragments=None)
    if problem.max_fragments is None:
        return free
    return replace(free, max_fragments=max(problem.max_fragments, free.min_fragments))


def plain_latency_us(problem: ItemProblem, cut: ItemCut) -> float:
    """The latency stage by stage, from the items themselves and the stages' own costs; with windows
    each rule by itself, again and again until nothing is later.
    """
    stages, ready = problem.pipeline.stages, problem.sequence.ready_us
    columns = dict(problem.sequence.stage_us)
    spans = list(pairwise((0, *cut)))
    sizes = [sum(problem.sequence.item_bytes[first:last]) for first, last in spans]
    takes = [
        [
            stage.time_us(size)
            + (sum(columns[stage.name][first:last]) if stage.name in columns else 0.0)
            for stage in stages
        ]
        for (first, last), size in zip(spans, sizes, strict=True)
    ]
    starts = [[max(ready[: cut[q]]) if ready else 0.0] * len(stages) for q in range(len(cut))]
    has_changed = True
    while has_changed:
        has_changed = False
        for q, place in ((q, place) for q in range(len(cut)) for place in range(len(stages))):
            waits = []
            if q:
                waits.append(starts[q - 1][place] + takes[q - 1][place])
            if place:
                waits.append(starts[q][place - 1] + takes[q][place - 1])
            for window in problem.windows:
                held = len(cut) if window.fragments is None else window.fragments
                if window.bytes is not None:
                    held = min(held, window.bytes // max(sizes))
                if window.first == place and q >= held:
                    end = starts[q - held][window.last] + takes[q - held][window.last]
                    waits.append(end + window.return_us)
            latest = max([starts[q][place], *waits])
            if latest > starts[q][place]:
                starts[q][place], has_changed = latest, True
    return starts[-1][-1] + takes[-1][-1] + problem.pipeline.delay_us


def is_admitted(problem: ItemProblem, cut: ItemCut) -> bool:
    """Whether the limits hold, fragment by fragment."""
    if len(cut) > (problem.max_fragments or len(cut)):
        return False
    for first, last in pairwise((0, *cut)):
        size = sum(problem.sequence.item_bytes[first:last])
        if any(window.bytes is not None and size > window.bytes for window in problem.windows):
            return False
        if last - first == 1:
            continue
        if size > (problem.max_fragment_bytes or size):
            return False
        if last - first > (problem.max_fragment_items or last):
            return False
    return True


def best_of_all_us(problem: ItemProblem) -> float:
    """The optimum by trying every cut."""
    return min(
        (
            plain_latency_us(problem, cut)
            for cut in all_cuts(len(problem.sequence))
            if is_admitted(problem, cut)
        ),
        default=inf,
    )


def quadratic_us(problem: ItemProblem) -> float:
    """The optimum of one stage in O(m^2): the best fragment that ends with each item."""
    stage, sequence = problem.pipeline.stages[0], problem.sequence
    ends, ready, own = sequence.ends_bytes, sequence.all_ready_us, problem.item_us[0]
    done = [0.0] + [inf] * len(sequence)
    for last in range(1, len(done)):
        own_us = 0.0
        for first in range(last - 1, -1, -1):
            if last > problem.longest_from(first):
                break
            own_us += own[first] if own is not None else 0.0
            time_us = stage.time_us(ends[last] - ends[first]) + own_us
            done[last] = min(done[last], max(done[first], ready[last]) + time_us)
    return done[-1] + problem.pipeline.delay_us


def shaped_problem(random: Random, items: int, stages: int, shape: str) -> ItemProblem:
    """Equal items, layers of a transformer, or sizes over three decades, behind ready times."""
    if shape == "equal":
        sizes = [100] * items
    elif shape == "layers":
        layer = [random.randint(1, 2) for _ in range(2)] + [
            random.randint(20, 60) for _ in range(7)
        ]
        sizes = (layer * (items // len(layer) + 1))[:items]
    else:
        sizes = [1 + int(10.0 ** random.uniform(0, 3)) for _ in range(items)]
    total = sum(sizes)
    costs = [
        (10.0 ** random.uniform(-3, -1) * total * 0.05, 1000.0 * 10.0 ** random.uniform(-0.5, 0))
        for _ in range(stages)
    ]
    rate = 10.0 ** random.uniform(log10(0.25), 0.1)
    ready, time = [], 0.0
    for size in sizes:
        time += rate * size
        ready.append(time)
    return ItemProblem(pipeline_of(costs), ItemSequence.of(sizes, ready))
