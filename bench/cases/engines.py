"""One exact solve for a given number of fragments, against each library called directly."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

from bench.engines.others import OTHERS
from bench.engines.ours import OURS
from bench.engines.primal import EngineRun
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.timing import Timed, interleaved
from bench.workloads import KIB, MIB, lines_of, myrinet, random_pipeline
from domain.pipeline import Pipeline
from solvers.line_problem import LineProblem

AGREEMENT = 1e-7  # relative
TARGET_RATIO = 1.2


@dataclass(frozen=True, slots=True)
class _Instance:
    """A pipeline, a message and k; `rounds` is how often each engine runs in a full benchmark."""

    name: str
    pipeline: Pipeline
    message_bytes: int
    k: int
    rounds: int

    @property
    def size(self) -> str:
        """k x n."""
        return f"{self.k}x{len(self.pipeline)}"

    @property
    def is_target(self) -> bool:
        """Whether the target was set for this size."""
        return self.size == "200x4"


def _instances(effort: Effort) -> list[_Instance]:
    seeds = effort.pick(range(1, 5), quick=range(1, 2))
    small = [
        _Instance("Table 1, 4 KiB", myrinet(), 4 * KIB, 6, 21),
        _Instance("Table 1, 128 KiB", myrinet(), 128 * KIB, 50, 11),
        _Instance("Table 1, 1 MiB", myrinet(), MIB, 200, 9),
        *(
            _Instance(f"random {seed}, 1 MiB", random_pipeline(4, seed=seed), MIB, 200, 7)
            for seed in seeds
        ),
        _nearly_equal(4, 200, rounds=7),
    ]
    large = [
        _Instance("random 1, 1 MiB", random_pipeline(8, seed=1), MIB, 200, 5),
        _nearly_equal(8, 200, rounds=5),
        _Instance("random 1, 4 MiB", random_pipeline(8, seed=1), 4 * MIB, 500, 3),
        _nearly_equal(8, 500, rounds=3),
    ]
    return small + effort.pick(large, quick=[])


def _nearly_equal(stages: int, k: int, *, rounds: int) -> _Instance:
    pipeline = random_pipeline(stages, seed=1, spread=1.1)
    return _Instance("stages within 10 %, 1 MiB", pipeline, MIB, k, rounds)


def _run(effort: Effort) -> CaseResult:
    found = [(instance, _measure(instance, effort)) for instance in _instances(effort)]
    summary = Table(
        "Ratio to the fastest other engine",
        ("k x n", "instance", "ratio", "sluice ms", "fastest other", "its ms", "certified gap"),
        tuple(_summary_row(instance, sides) for instance, sides in found),
        is_detail=True,
    )
    details = tuple(_detail(instance, sides) for instance, sides in found)
    return CaseResult((summary, *details), _checks(found), _notes(found))


def _measure(instance: _Instance, effort: Effort) -> dict[str, Timed[EngineRun]]:
    lines = lines_of(instance.pipeline, instance.message_bytes)
    sides: dict[str, Callable[[], EngineRun]] = {
        engine.name: partial(engine.solve, lines, instance.k) for engine in (OURS, *OTHERS)
    }
    return interleaved(sides, rounds=effort.pick(instance.rounds, quick=3))


def _fastest_other(sides: dict[str, Timed[EngineRun]]) -> str:
    """The fastest of those that say they have solved it."""
    solved = [
        name for name, side in sides.items() if name != OURS.name and _says_solved(side.result)
    ]
    return min(solved, key=lambda name: sides[name].timing.median_ms)


def _says_solved(run: EngineRun) -> bool:
    return run.status in ("optimal", "certified")


def _ratio(sides: dict[str, Timed[EngineRun]]) -> float:
    return sides[OURS.name].timing.ratio_to(sides[_fastest_other(sides)].timing)


def _summary_row(instance: _Instance, sides: dict[str, Timed[EngineRun]]) -> tuple[Cell, ...]:
    ours, fastest = sides[OURS.name], _fastest_other(sides)
    return (
        instance.size,
        instance.name,
        _ratio(sides),
        ours.timing.median_ms,
        fastest,
        sides[fastest].timing.median_ms,
        ours.result.certified_gap,
    )


def _detail(instance: _Instance, sides: dict[str, Timed[EngineRun]]) -> Table:
    return Table(
        f"{instance.size}, {instance.name}",
        ("engine", "time / sluice", "median ms", "min-max ms", "ended", "objective µs", "apart by"),
        tuple(_detail_row(name, side, sides) for name, side in sides.items()),
        is_detail=True,
    )


def _detail_row(
    name: str, side: Timed[EngineRun], sides: dict[str, Timed[EngineRun]]
) -> tuple[Cell, ...]:
    ours = sides[OURS.name]
    distance = _distance(side.result, ours.result)
    return (
        name,
        side.timing.ratio_to(ours.timing),
        side.timing.median_ms,
        side.timing.spread,
        side.result.status,
        f"{side.result.objective_us:.6f}" if side.result.objective_us is not None else None,
        distance,
    )


def _distance(run: EngineRun, ours: EngineRun) -> float | None:
    """Relative difference of an objective from ours; None where there is none."""
    if run.objective_us is None or not ours.objective_us:
        return None
    return abs(run.objective_us - ours.objective_us) / ours.objective_us


def _checks(found: list[tuple[_Instance, dict[str, Timed[EngineRun]]]]) -> tuple[Check, ...]:
    targets = [(instance, sides) for instance, sides in found if instance.is_target]
    checks = [
        Check(
            f"time at 200x4 over the fastest other, {instance.name}",
            _ratio(sides),
            TARGET_RATIO,
            "ratio",
        )
        for instance, sides in targets
    ]
    gaps = [sides[OURS.name].result.certified_gap or 0.0 for _, sides in targets]
    checks.append(Check("certified gap at 200x4, worst", max(gaps), AGREEMENT, "relative"))
    return tuple(checks)


def _notes(found: list[tuple[_Instance, dict[str, Timed[EngineRun]]]]) -> tuple[str, ...]:
    """Every disagreement and every failure, in words."""
    notes = []
    for instance, sides in found:
        ours = sides[OURS.name].result
        for name, side in sides.items():
            distance = _distance(side.result, ours)
            if not _says_solved(side.result):
                notes.append(f"{instance.size}, {instance.name}: {name} ended {side.result.status}")
            elif distance is not None and distance > AGREEMENT:
                notes.append(
                    f"{instance.size}, {instance.name}: the objective of {name} is {distance:.1e} "
                    f"{_direction(side.result, ours)} ours, which is certified to "
                    f"{ours.certified_gap:.1e}"
                )
    return tuple(notes) or (f"All objectives agree to {AGREEMENT:g} relative.",)


def _direction(run: EngineRun, ours: EngineRun) -> str:
    return "above" if (run.objective_us or 0.0) > (ours.objective_us or 0.0) else "below"


def _lines(k: int, stages: int) -> LineProblem:
    pipeline = myrinet() if stages == 4 else random_pipeline(stages, seed=1)
    return lines_of(pipeline, MIB if k <= 200 else 4 * MIB)


def _workload(k: int, stages: int) -> AbstractContextManager[Callable[[], object]]:
    return nullcontext(partial(OURS.solve, _lines(k, stages), k))


SPEC = BenchSpec(
    name="engines",
    title="One exact solve for a given number of fragments",
    about=(
        "Our default engine, model building and certificate included, against libraries that are "
        "called directly on the linear program of the recurrence, model building included. "
        "Times are medians; a ratio is the median of the ratios within rounds. `apart by` is "
        "the relative difference of an engine's objective from ours."
    ),
    run=_run,
    workloads={
        "6x4": partial(_workload, 6, 4),
        "200x4": partial(_workload, 200, 4),
        "500x8": partial(_workload, 500, 8),
    },
)
