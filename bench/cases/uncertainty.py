"""What an answer over draws of its costs takes: draws, prices, decision, what to measure."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import numpy as np

from analysis.uncertainty import UncertaintyQuestion, assess
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.timing import interleaved
from bench.workloads import KIB, MIB
from domain.pipeline import FitRange
from domain.uncertainty import NamedCut, UncertainLine, UncertainPipeline, UncertainStage

_STAGES, _RANGES = 5, 4
_MEASURED = tuple(64 << octave for octave in range(18))
_MESSAGES = (4 * KIB, 128 * KIB, MIB, 16 * MIB)
_FRAGMENTS = (100, 1000, 10_000)
_REPEATED_MS, _CUT_MS = 50.0, 1000.0


def _pipeline() -> UncertainPipeline:
    """Five stages of four ranges, overheads known to 10 %, per-byte costs to 5 %."""
    return UncertainPipeline(tuple(_stage(j) for j in range(_STAGES)))


def _stage(j: int) -> UncertainStage:
    lines = []
    for r in range(_RANGES):
        overhead_us, ns_per_byte = 6.0 + 3.0 * j + 8.0 * r, (3.0 + 4.0 * j) * (1.0 - 0.1 * r)
        end = None if r == _RANGES - 1 else (KIB * 8**r, 2 * KIB * 8**r)
        estimate = FitRange(overhead_us, ns_per_byte, end and end[0] * 3 // 2)
        sd, other = 0.1 * overhead_us, 0.05 * ns_per_byte
        covariance = (sd**2, -0.3 * sd * other, other**2)
        lines.append(UncertainLine(estimate, overhead_us, ns_per_byte, covariance, end))
    return UncertainStage(f"stage {j}", tuple(lines), 12, 0.02, 0.05, _MEASURED)


def _repeated(size: int) -> UncertaintyQuestion:
    defaults = (NamedCut("4 KiB", 4 * KIB), NamedCut("64 KiB", 64 * KIB))
    return UncertaintyQuestion(
        _pipeline(), size, current=NamedCut("current", 8192), defaults=defaults
    )


def _cut(fragments: int) -> UncertaintyQuestion:
    """An uneven answer of so many fragments."""
    sizes = (1000 + np.arange(fragments) % 7).tolist()
    answer = NamedCut.of_fragments("answer", sizes)
    return UncertaintyQuestion(_pipeline(), sum(sizes), answer=answer)


def _run(effort: Effort) -> CaseResult:
    repeated = {f"{size // KIB} KiB, repeated sizes": _repeated(size) for size in _MESSAGES}
    cuts = {f"{count} uneven fragments": _cut(count) for count in _FRAGMENTS}
    sides = {name: partial(assess, one) for name, one in (repeated | cuts).items()}
    timed = interleaved(sides, rounds=effort.pick(25, quick=3))
    rows: list[tuple[Cell, ...]] = []
    for name, one in timed.items():
        found = one.timing
        rows.append((name, found.median_ms, one.processor.median_ms, found.min_ms, found.max_ms))
    slowest = {
        kind: max(timed[name].timing.median_ms for name in names)
        for kind, names in (("repeated sizes", repeated), ("schedules", cuts))
    }
    columns = ("question", "median, ms", "processor, ms", "fastest, ms", "slowest, ms")
    return CaseResult(
        (Table(f"400 draws, {_STAGES} stages of {_RANGES} ranges", columns, tuple(rows)),),
        (
            Check("repeated sizes, slowest median", slowest["repeated sizes"], _REPEATED_MS, "ms"),
            Check("schedules, slowest median", slowest["schedules"], _CUT_MS, "ms"),
        ),
    )


def _workload(question: UncertaintyQuestion) -> AbstractContextManager[Callable[[], object]]:
    return nullcontext(partial(assess, question))


SPEC = BenchSpec(
    name="uncertainty",
    title="What it takes to say how sure an answer is",
    about=(
        "Draws of the costs, all repeated sizes priced in each of them, good and round sizes, the "
        "decision and what to measure next; below, the same with an uneven answer, which "
        "is priced fragment by fragment."
    ),
    run=_run,
    workloads={
        "1 MiB, repeated sizes": partial(_workload, _repeated(MIB)),
        "1000 uneven fragments": partial(_workload, _cut(1000)),
    },
)
