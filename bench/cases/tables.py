"""Compiling tables: how long it takes, how large the file is, and how much it promises."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import solvers
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.workloads import MIB, example_trace, myrinet
from domain.pipeline import Pipeline
from domain.plan_table import PlanTable, TableCut, TableRepeat
from domain.problem import FragmentLimits
from exports.table.slt import encode

_MIN_MESSAGE_BYTES, _MAX_MESSAGE_BYTES = 1, 16 * MIB
_QUICK_BYTES = MIB // 16
_TOLERANCE = 1e-3
_CAP = 100_000
_TARGET_S = 2.0
_TARGET_MIB = 1.0
_LIMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A table, its file, and the seconds of every time it was compiled."""

    name: str
    table: PlanTable
    file: bytes
    samples_s: tuple[float, ...]

    @property
    def median_s(self) -> float:
        """The middle one."""
        return statistics.median(self.samples_s)


def _run(effort: Effort) -> CaseResult:
    solvers.warm_up()
    maximum = effort.pick(_MAX_MESSAGE_BYTES, quick=_QUICK_BYTES)
    pipelines = {"Table 1 (Myrinet)": myrinet(), "example trace": example_trace()}
    found = [
        _measure(name, pipeline, maximum, effort.pick(3, quick=1))
        for name, pipeline in pipelines.items()
    ]
    columns = (
        "pipeline",
        "s",
        "KiB",
        "cut entries",
        "repeat entries",
        "max k",
        "worst relative gap",
        "at bytes",
        "within 0.1 %",
        "last byte beyond",
        "repeats: worst relative gap",
        "repeats within 0.1 %",
    )
    title = f"Every message size from {_MIN_MESSAGE_BYTES} to {maximum:,} bytes, 0.1 % asked for"
    rows = tuple(map(_row, found))
    return CaseResult((Table(title, columns, rows),), tuple(_checks(found)))


def _measure(name: str, pipeline: Pipeline, max_message_bytes: int, rounds: int) -> _Compiled:
    samples_s = []
    for _ in range(rounds):
        started_s = time.perf_counter()
        table = _compile(pipeline, max_message_bytes)
        samples_s.append(time.perf_counter() - started_s)
    file = encode(table, profile="", revision=0)
    return _Compiled(name, table, file, tuple(samples_s))


def _compile(pipeline: Pipeline, max_message_bytes: int) -> PlanTable:
    return solvers.compile_table(
        pipeline,
        FragmentLimits(),
        min_message_bytes=_MIN_MESSAGE_BYTES,
        max_message_bytes=max_message_bytes,
        relative_gap=_TOLERANCE,
        fragment_cap=_CAP,
        time_limit_s=_LIMIT_S,
    )


@dataclass(frozen=True, slots=True)
class _Stretch:
    """From one entry to just before the next, and what is promised there."""

    from_bytes: int
    sizes: int
    gap: float


def _stretches(entries: Sequence[TableCut | TableRepeat]) -> list[_Stretch]:
    """The last entry is a stretch of one size."""
    inner = [
        _Stretch(low.message_bytes, high.message_bytes - low.message_bytes, low.relative_gap)
        for low, high in pairwise(entries)
    ]
    return [*inner, _Stretch(entries[-1].message_bytes, 1, entries[-1].relative_gap)]


def _within(stretches: list[_Stretch]) -> float:
    """The share of message sizes that keep to the tolerance."""
    kept = sum(one.sizes for one in stretches if one.gap <= _TOLERANCE)
    return kept / sum(one.sizes for one in stretches)


def _row(compiled: _Compiled) -> tuple[Cell, ...]:
    table = compiled.table
    cuts, repeats = _stretches(table.cuts), _stretches(table.repeats)
    worst = max(cuts, key=lambda one: one.gap)
    beyond = [one.from_bytes + one.sizes - 1 for one in cuts if one.gap > _TOLERANCE]
    return (
        compiled.name,
        compiled.median_s,
        len(compiled.file) / 1024.0,
        len(table.cuts),
        len(table.repeats),
        max(cut.fragments for cut in table.cuts),
        worst.gap,
        worst.from_bytes,
        f"{_within(cuts):.4%}",
        max(beyond, default=None),
        max(one.gap for one in repeats),
        f"{_within(repeats):.4%}",
    )


def _checks(found: list[_Compiled]) -> list[Check]:
    checks = []
    for compiled in found:
        what = f"table of 1 B to {compiled.table.max_message_bytes // MIB or '1/16'} MiB"
        what = f"{what}, {compiled.name}"
        checks.append(Check(f"{what}: time", compiled.median_s, _TARGET_S, "s"))
        checks.append(Check(f"{what}: file", len(compiled.file) / MIB, _TARGET_MIB, "MiB"))
    return checks


def _workload(pipeline: Callable[[], Pipeline]) -> AbstractContextManager[Callable[[], object]]:
    solvers.warm_up()
    return nullcontext(partial(_compile, pipeline(), _MAX_MESSAGE_BYTES))


SPEC = BenchSpec(
    name="tables",
    title="Compiling tables",
    about=(
        "`solvers.compile_table` inside one process, and the file that comes of it. A gap is what "
        "the table itself promises for a stretch of message sizes, against the bound over all k; "
        "where whole bytes cannot keep to 0.1 %, the stretch says so, and the share of message "
        "sizes that keep to it is of all sizes, whatever can be had there."
    ),
    run=_run,
    workloads={
        "myrinet": partial(_workload, myrinet),
        "example trace": partial(_workload, example_trace),
    },
)
