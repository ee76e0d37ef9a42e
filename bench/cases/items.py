"""Cuts between items: one stage exactly, every layout of a cap, several stages with a proof."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np

import solvers
from analysis.item_draws import assess_items
from bench.item_cases import (
    ARCHITECTURES,
    gradients,
    kv_loading,
    kv_pushes,
    small_files,
    weight_sync,
)
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.timing import interleaved
from domain.items import Fill, FillRule, ItemProblem, ItemSequence
from domain.pipeline import pipeline_of_lines
from domain.uncertain_items import ItemErrors
from domain.uncertainty import KnownErrors, stated_model
from solvers.contract import Deadline
from solvers.items.caps import best_cap
from solvers.items.solve import solve_items

_ITEMS = 1000
_SHAPES = ("equal", "layers", "random")
_CASES = 20
_STAGES = (4, 8)
_ONE_WIRE_MS, _CAPS_MS = 1.0, 10.0
_MEDIAN_S, _WORST_S = 1.0, 3.0
_GAP, _WITHIN = 0.01, 18
_CAPS_S = 60.0
_PROVEN = 1e-4  # the gap of a realistic case
_DRAWN_ITEMS, _DRAWN_STAGES, _DRAWS_MS = 300, (1, 2, 3), 150.0


def _problem(seed: int, stages: int, shape: str, items: int = _ITEMS) -> ItemProblem:
    """Behind a calculation: equal items, layers of small and large ones, or three decades."""
    rng = np.random.default_rng((seed, stages))
    if shape == "equal":
        sizes = np.full(items, 100)
    elif shape == "layers":
        layer = np.concatenate((rng.integers(1, 3, 2), rng.integers(20, 61, 7)))
        sizes = np.resize(layer, items)
    else:
        sizes = np.ceil(10.0 ** rng.uniform(0, 3, items)).astype(np.int64)
    total = float(sizes.sum())
    overheads = 10.0 ** rng.uniform(-3, -1, stages) * total * 0.05
    costs = 1000.0 * 10.0 ** rng.uniform(-0.5, 0, stages)
    names = [f"stage {place + 1}" for place in range(stages)]
    rows = list(zip(names, overheads.tolist(), costs.tolist(), strict=True))
    ready = 10.0 ** rng.uniform(-0.6, 0.1) * np.cumsum(sizes)
    sequence = ItemSequence.of(sizes.tolist(), ready.tolist())
    return ItemProblem(pipeline_of_lines(rows), sequence)


def _run(effort: Effort) -> CaseResult:
    solvers.warm_up()
    rows, checks = list[tuple[Cell, ...]](), list[Check]()
    for shape in _SHAPES:
        row, found = _one_wire(shape, effort.pick(50, quick=5))
        rows.append(row)
        checks += found
    one_wire = Table(
        f"{_ITEMS:,} items behind ready times, one stage: the exact cut, and all layouts of a cap",
        ("sizes", "exact, median ms", "fragments", "all caps, median ms", "layouts"),
        tuple(rows),
    )
    measured = [_stages(stages, effort.pick(_CASES, quick=3)) for stages in _STAGES]
    several = Table(
        f"{_ITEMS:,} items behind ready times, several stages",
        ("stages", "cases", "median s", "worst s", "median gap", "worst gap", "within 1 %"),
        tuple(row for row, _ in measured),
    )
    checks += [check for _, found in measured for check in found]
    priced = [_in_draws(stages, effort.pick(10, quick=2)) for stages in _DRAWN_STAGES]
    in_draws = Table(
        f"{_DRAWN_ITEMS} items behind ready times, layouts over three decades of sizes: how sure a "
        "cut is, over 400 draws",
        ("stages", "layouts", "priced in draws", "median ms"),
        tuple(row for row, _ in priced),
    )
    checks += [check for _, check in priced]
    realistic, found = _realistic(effort.pick(18, quick=2))
    return CaseResult((one_wire, several, in_draws, realistic), tuple(checks + found))


def _realistic(cases: int) -> tuple[Table, list[Check]]:
    """Layers of public architectures: what an answer costs, and what it proves."""
    rows, checks = list[tuple[Cell, ...]](), list[Check]()
    several = {
        "KV layers, pushed": kv_pushes(8192, 100.0, 2000.0),
        "KV layers, loaded": kv_loading(8192, 100.0, 2000.0),
        "weights of a 70B": weight_sync(),
        "the same, at most 2 GiB": weight_sync(2**31),
        "4,000 files": small_files(),
    }
    problems = {
        **{
            f"{name}, gradients": [case.problem for case in islice(gradients(tensors()), cases)]
            for name, tensors in ARCHITECTURES.items()
        },
        **{name: [problem] for name, problem in several.items()},
    }
    for name, group in problems.items():
        seconds, gaps, caps = list[float](), list[float](), list[float]()
        for problem in group:
            timed = interleaved({"solve": partial(solve_items, problem)}, rounds=1, warm_ups=0)
            solution = timed["solve"].result
            seconds.append(timed["solve"].timing.median_ms / 1e3)
            gaps.append(solution.relative_gap)
            cap = best_cap(problem, FillRule(), Deadline.after(_CAPS_S))
            caps.append(cap.latency_us / solution.latency_us - 1.0 if cap else 0.0)
        items, stages = len(group[0].sequence), len(group[0].pipeline)
        row = (name, items, stages, len(group), statistics.median(seconds), max(seconds))
        rows.append((*row, max(gaps), statistics.median(caps), max(caps)))
        checks.append(Check(f"{name}, worst gap", max(gaps), _PROVEN, ""))
    columns = ("case", "items", "stages", "cases", "median s", "worst s", "worst gap")
    return Table(
        "Layers of public architectures, costs assumed",
        (*columns, "best cap above, median", "worst"),
        tuple(rows),
    ), checks


def _in_draws(stages: int, rounds: int) -> tuple[tuple[Cell, ...], Check]:
    """An answer's cut and all layouts in draws, of costs known to 10 % and ready times to 3 %."""
    problem = _problem(1, stages, "random", _DRAWN_ITEMS)
    errors = ItemErrors(KnownErrors(stated_model(problem.pipeline, 0.1)), 0.03)
    cut, rule = solve_items(problem).cut, FillRule()
    sides = {"draws": lambda: assess_items(problem, rule, cut, None, errors)}
    timed = interleaved(sides, rounds=rounds, warm_ups=1)["draws"]
    median_ms, found = timed.timing.median_ms, timed.result
    assert found is not None, "caps are admitted"
    row = (stages, found.layouts, found.priced, median_ms)
    return row, Check(f"{stages} stages in draws, median", median_ms, _DRAWS_MS, "ms")


def _one_wire(shape: str, rounds: int) -> tuple[tuple[Cell, ...], list[Check]]:
    problem = _problem(1, 1, shape)
    sides: dict[str, Callable[[], object]] = {
        "exact": lambda: solve_items(replace(problem)),
        "caps": lambda: [_all_caps(problem, rule) for rule in Fill],
    }
    timed = interleaved(sides, rounds=rounds, warm_ups=2)
    exact, caps = (timed[name].timing.median_ms for name in ("exact", "caps"))
    fragments = len(solve_items(problem).cut)
    layouts = sum(_all_caps(problem, rule) for rule in Fill)
    checks = [
        Check(f"one stage, {shape} items, exact cut, median", exact, _ONE_WIRE_MS, "ms"),
        Check(f"one stage, {shape} items, all caps, median", caps, _CAPS_MS, "ms"),
    ]
    return (shape, exact, fragments, caps, layouts), checks


def _all_caps(problem: ItemProblem, rule: Fill) -> int:
    """Walk over all layouts; return how many there are."""
    found = best_cap(problem, FillRule(rule), Deadline.after(_CAPS_S))
    return 0 if found is None else found.layouts


def _stages(stages: int, cases: int) -> tuple[tuple[Cell, ...], list[Check]]:
    seconds, gaps = list[float](), list[float]()
    for seed in range(cases):
        problem = _problem(seed, stages, _SHAPES[seed % len(_SHAPES)])
        timed = interleaved({"solve": partial(solve_items, problem)}, rounds=1, warm_ups=0)
        seconds.append(timed["solve"].timing.median_ms / 1e3)
        gaps.append(timed["solve"].result.relative_gap)
    median_s, within = statistics.median(seconds), sum(gap <= _GAP for gap in gaps)
    row = (stages, cases, median_s, max(seconds), statistics.median(gaps), max(gaps), within)
    share = _WITHIN / _CASES
    return row, [
        Check(f"{stages} stages, median", median_s, _MEDIAN_S, "s"),
        Check(f"{stages} stages, worst", max(seconds), _WORST_S, "s"),
        Check(f"{stages} stages, share within 1 %", within / cases, share, "", "at least"),
    ]


def _workload(stages: int) -> AbstractContextManager[Callable[[], object]]:
    return nullcontext(partial(solve_items, _problem(1, stages, "layers")))


SPEC = BenchSpec(
    name="items",
    title="Cuts between items",
    about=(
        "A message that may be cut only between items: the exact cut of one stage behind a "
        "calculation, every layout that one cap gives, several stages by labels, how sure a cut is "
        "in draws, and layers of public architectures."
    ),
    run=_run,
    workloads={f"{stages} stages": partial(_workload, stages) for stages in _STAGES},
)
