"""Compiling a plan table for 1 B to 16 MiB: time, size of its file, and what it promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import numpy as np

import solvers
from bench.published import example, papers
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.timing import Timed, interleaved
from bench.workloads import MIB, myrinet, random_pipeline
from domain.fit import FitShape
from domain.pipeline import Pipeline
from domain.plan_table import PlanTable, TableCut, TableRepeat
from domain.problem import FragmentLimits
from exports.slt import encode

GREATEST_BYTES = 16 * MIB
TOLERANCE = 1e-3
TIME_TARGET_S = 2.0
FILE_TARGET_BYTES = MIB


def _pipelines(effort: Effort) -> Iterator[tuple[str, Pipeline, bool]]:
    """Name, pipeline, and whether a target was set for it."""
    yield "myrinet-gam", papers()["myrinet-gam"], True
    yield "example trace, ranges", example(), True
    yield "example trace, one line a stage", example(FitShape.LINE), True
    for name in effort.pick(("gms", "disk-study", "disk-study-two-networks"), quick=()):
        yield name, papers()[name], False
    for seed in effort.pick((1, 2, 3), quick=()):
        yield f"random {seed}, 8 stages", random_pipeline(8, seed=seed), False


def _run(effort: Effort) -> CaseResult:
    solvers.warm_up()
    rows, checks = [], []
    for name, pipeline, is_target in _pipelines(effort):
        timed = interleaved(
            {"compile": partial(_compiled, pipeline)}, rounds=effort.pick(3, quick=1), warm_ups=0
        )["compile"]
        size = len(encode(timed.result, profile="", revision=0))
        rows.append(_row(name, timed, size))
        if is_target:
            seconds = timed.timing.median_ms / 1e3
            checks.append(Check(f"time to compile, {name}", seconds, TIME_TARGET_S, "s"))
            checks.append(Check(f"file, {name}", size, FILE_TARGET_BYTES, "bytes"))
            if pipeline.all_lines:
                worst = max(cut.relative_gap for cut in timed.result.cuts)
                checks.append(Check(f"worst proven gap, {name}", worst, TOLERANCE, "relative"))
    columns = (
        "pipeline",
        "seconds",
        "file bytes",
        "cuts",
        "worst gap",
        "sizes within",
        "repeats",
        "worst gap",
        "sizes within",
    )
    return CaseResult(
        (Table("Tables for 1 B to 16 MiB at 0.1 %", columns, tuple(rows)),), tuple(checks)
    )


def _compiled(pipeline: Pipeline) -> PlanTable:
    return solvers.compile_table(
        pipeline,
        FragmentLimits(),
        least_bytes=1,
        greatest_bytes=GREATEST_BYTES,
        relative_gap=TOLERANCE,
    )


def _row(name: str, timed: Timed[PlanTable], size: int) -> tuple[Cell, ...]:
    table = timed.result
    return (
        name,
        timed.timing.median_ms / 1e3,
        size,
        len(table.cuts),
        max(cut.relative_gap for cut in table.cuts),
        _share_within(table.cuts),
        len(table.repeats),
        max(repeat.relative_gap for repeat in table.repeats),
        _share_within(table.repeats),
    )


def _share_within(entries: Sequence[TableCut] | Sequence[TableRepeat]) -> float:
    """The share of message sizes, evenly on a logarithmic scale, that meet the tolerance."""
    sizes = [entry.message_bytes for entry in entries]
    lengths = np.diff(np.log(sizes))
    within = [entry.relative_gap <= TOLERANCE for entry in entries[:-1]]
    return float(np.dot(lengths, within) / np.sum(lengths))


def _workload() -> AbstractContextManager[Callable[[], object]]:
    return nullcontext(partial(_compiled, myrinet()))


SPEC = BenchSpec(
    name="plan_tables",
    title="Compiling a plan table",
    about=(
        "A whole table at the default tolerance of 0.1 %, certified for every byte size against "
        "every admitted cut. `sizes within` is the share of message sizes, evenly on a logarithmic "
        "scale, whose proven gap meets the tolerance; with fit ranges part of a gap is the bound's."
    ),
    run=_run,
    workloads={"Table 1": _workload},
)
