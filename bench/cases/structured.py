"""The exact solver against the general ones, on the fixed set of 30 pipelines, 500 x 8."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

from bench.engines import model_builder
from bench.engines.others import OTHERS
from bench.engines.ours import CERTIFIED, NATIVE, REDUCED_DUAL, has_native, numpy_engine
from bench.engines.primal import Engine, EngineRun
from bench.hardness import CLASSES
from bench.pipelines import COUNT, STORED, BenchPipeline, named, stored
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.timing import Timed, Timing, interleaved

AGREEMENT = 1e-7  # relative; what is farther apart is noted
_SAME_OPTIMUM = 1e-5  # relative; a side farther off has not reached the optimum, whatever it says
_GAP = 1e-9
_RATIOS = {"a": 1000.0}
_RATIO = 300.0
_WORST_RATIO = 30.0  # of every single problem
_CONTENDING = 2.0  # times the fastest other: who runs in the later rounds too
_LATER_ROUNDS = 2
_NUMPY = "sluice numpy"
_QUICK_NUMBER = 4
_QUICK_OTHERS = (model_builder.DUAL_SIMPLEX,)

Sides = dict[str, Timed[EngineRun]]


@dataclass(frozen=True, slots=True)
class _Measured:
    """One problem with every side's first round, and the later rounds of those that contend."""

    one: BenchPipeline
    first: Sides
    later: Sides

    @property
    def ours(self) -> EngineRun:
        """The certified result that the others are compared with: the one proven closest."""
        runs = [self.first[name].result for name in self.own_sides]
        return min(runs, key=lambda run: abs(run.certified_gap or 0.0))

    @property
    def own_sides(self) -> list[str]:
        """Native, where it was built, and NumPy."""
        return [name for name in (NATIVE.name, _NUMPY) if name in self.first]

    def timing(self, side: str) -> Timing:
        """All rounds of a side."""
        rounds = [sides[side].timing.samples_ms for sides in (self.first, self.later)]
        return Timing(rounds[0] + rounds[1])

    @property
    def fastest(self) -> str | None:
        """The fastest other that reached the optimum; None where none did."""
        contending = [name for name in self.later if name not in self.own_sides]
        return min(contending, key=lambda name: self.timing(name).median_ms, default=None)

    def ratio(self, side: str) -> float | None:
        """Its time over ours: the median of the ratios within rounds."""
        if self.fastest is None or side not in self.first:
            return None
        return self.timing(self.fastest).ratio_to(self.timing(side))


# ---- measuring -----------------------------------------------------------------------------------


def _run(effort: Effort) -> CaseResult:
    problems = [one for one in stored() if effort.pick(True, quick=one.number == _QUICK_NUMBER)]
    others = effort.pick(OTHERS, quick=_QUICK_OTHERS)
    with numpy_engine() as in_numpy:
        own = [NATIVE, in_numpy] if has_native() else [in_numpy]
        found = [_measure(one, own, [REDUCED_DUAL, *others]) for one in problems]
    tables = (_classes(found), _problems(found), _times(found), _ends(found))
    return CaseResult(tables, tuple(_checks(found)), tuple(_notes(found)))


def _measure(one: BenchPipeline, own: list[Engine], others: list[Engine]) -> _Measured:
    """Slow sides run once, without a warm-up: a warm-up matters to sides of milliseconds."""
    lines = one.lines

    def calls(engines: Iterable[Engine]) -> dict[str, Callable[[], EngineRun]]:
        return {engine.name: partial(engine.solve, lines, one.k) for engine in engines}

    interleaved(calls(own), rounds=1, warm_ups=1)
    first = interleaved(calls([*own, *others]), rounds=1, warm_ups=0)
    again = [*own, *_contending(first, others)]
    return _Measured(one, first, interleaved(calls(again), rounds=_LATER_ROUNDS, warm_ups=0))


def _contending(first: Sides, others: list[Engine]) -> list[Engine]:
    """Those that reach the optimum, in not much more time than the fastest of them."""
    ours = min(
        (side.result for side in first.values() if side.result.status == CERTIFIED),
        key=lambda run: run.certified_gap or 0.0,
    )
    solved = {
        other.name: first[other.name].timing.median_ms
        for other in others
        if other is not REDUCED_DUAL and _reached(first[other.name].result, ours)
    }
    maximum = _CONTENDING * min(solved.values(), default=0.0)
    return [other for other in others if solved.get(other.name, maximum + 1.0) <= maximum]


def _reached(run: EngineRun, ours: EngineRun) -> bool:
    distance = _distance(run, ours)
    return run.status == "optimal" and distance is not None and abs(distance) <= _SAME_OPTIMUM


def _distance(run: EngineRun, ours: EngineRun) -> float | None:
    """Relative difference of an objective from our certified one; None where there is none."""
    if run.objective_us is None or not ours.objective_us:
        return None
    return (run.objective_us - ours.objective_us) / ours.objective_us


# ---- tables --------------------------------------------------------------------------------------


def _classes(found: list[_Measured]) -> Table:
    columns = (
        "class",
        "native: median ratio",
        "worst",
        "NumPy: median ratio",
        "worst ",
        "native: median ms",
        "slowest ms",
        "NumPy: median ms",
        "slowest ms ",
        "certified gap, worst",
    )
    rows = tuple(
        _class_row(hardness.letter, f"{hardness.letter}: {hardness.name}", found)
        for hardness in CLASSES
    )
    title = "The fastest other that reaches the optimum, over ours"
    return Table(title, columns, rows)


def _class_row(letter: str, label: str, found: list[_Measured]) -> tuple[Cell, ...]:
    members = _of_class(letter, found)
    ratios: list[Cell] = []
    times: list[Cell] = []
    for side in (NATIVE.name, _NUMPY):
        own = _ratios(side, members)
        ratios += [statistics.median(own), min(own)] if own else [None, None]
        ms = [one.timing(side).median_ms for one in members if side in one.first]
        times += [statistics.median(ms), max(ms)] if ms else [None, None]
    return (label, *ratios, *times, max(map(_worst_gap, members)))


def _of_class(letter: str, found: list[_Measured]) -> list[_Measured]:
    return [measured for measured in found if measured.one.letter == letter]


def _ratios(side: str, members: list[_Measured]) -> list[float]:
    every = [measured.ratio(side) for measured in members]
    return [ratio for ratio in every if ratio is not None]


def _worst_gap(measured: _Measured) -> float:
    runs = [measured.first[side].result for side in measured.own_sides]
    return max(abs(run.certified_gap or 0.0) for run in runs)


def _problems(found: list[_Measured]) -> Table:
    columns = (
        "problem",
        "native ratio",
        "NumPy ratio",
        "bytes",
        "best k",
        "native ms",
        "NumPy ms",
        "fastest other",
        "its ms",
        "objective µs",
        "certified gap",
    )
    rows = tuple(map(_problem_row, found))
    return Table(f"Every problem, {COUNT} fragments", columns, rows, is_detail=True)


def _problem_row(measured: _Measured) -> tuple[Cell, ...]:
    one, fastest = measured.one, measured.fastest
    native = NATIVE.name in measured.first
    return (
        one.name,
        measured.ratio(NATIVE.name),
        measured.ratio(_NUMPY),
        one.message_bytes,
        one.best_k,
        measured.timing(NATIVE.name).median_ms if native else None,
        measured.timing(_NUMPY).median_ms,
        fastest or "none",
        measured.timing(fastest).median_ms if fastest else None,
        f"{measured.ours.objective_us:.6f}",
        _worst_gap(measured),
    )


def _times(found: list[_Measured]) -> Table:
    """First round; a mark where a side did not end at the optimum."""
    sides = list(found[0].first)
    rows = tuple(
        (measured.one.name, *(_time_cell(measured, side) for side in sides)) for measured in found
    )
    title = "Time of every side in the first round, ms (in brackets: the optimum was not reached)"
    return Table(title, ("problem", *sides), rows, is_detail=True)


def _time_cell(measured: _Measured, side: str) -> str:
    timed = measured.first[side]
    ms = timed.timing.median_ms
    shown = f"{ms:,.0f}" if ms >= 100.0 else f"{ms:.3g}"
    certified = timed.result.status == CERTIFIED
    reached = certified or _reached(timed.result, measured.ours)
    return shown if reached else f"({shown})"


def _ends(found: list[_Measured]) -> Table:
    """How every side ended, over all problems."""
    rows = tuple(_end_row(side, found) for side in found[0].first)
    columns = ("side", "reached", "of", "median ms", "slowest ms", "ended", "apart by, worst")
    return Table("How every side ended", columns, rows, is_detail=True)


def _end_row(side: str, found: list[_Measured]) -> tuple[Cell, ...]:
    runs = [measured.first[side].result for measured in found]
    ms = [measured.first[side].timing.median_ms for measured in found]
    reached = sum(
        run.status == CERTIFIED or _reached(run, measured.ours)
        for run, measured in zip(runs, found, strict=True)
    )
    ended = sorted({run.status for run in runs})
    every = [_distance(run, measured.ours) for run, measured in zip(runs, found, strict=True)]
    distance = [abs(value) for value in every if value is not None]
    return (
        side,
        reached,
        len(found),
        statistics.median(ms),
        max(ms),
        ", ".join(f"{word} {sum(run.status == word for run in runs)}" for word in ended),
        max(distance, default=None),
    )


# ---- targets and notes ---------------------------------------------------------------------------


def _checks(found: list[_Measured]) -> Iterable[Check]:
    yield Check(
        f"certified gap at {COUNT}x8, worst of {len(found)} problems, native and NumPy",
        max(map(_worst_gap, found)),
        _GAP,
        "relative",
    )
    every = _ratios(NATIVE.name, found)
    if every:
        where = f"worst of {len(every)} problems"
        yield Check(
            f"fastest other over native at {COUNT}x8, {where}",
            min(every),
            _WORST_RATIO,
            "ratio",
            "at least",
        )
    for hardness in CLASSES:
        ratios = _ratios(NATIVE.name, _of_class(hardness.letter, found))
        if ratios:  # none without a native build, or where no other has reached an optimum
            yield Check(
                f"fastest other over native at {COUNT}x8, median of class {hardness.letter}",
                statistics.median(ratios),
                _RATIOS.get(hardness.letter, _RATIO),
                "ratio",
                "at least",
            )


def _notes(found: list[_Measured]) -> Iterable[str]:
    """Every disagreement and every failure, in words."""
    for measured in found:
        for side, timed in measured.first.items():
            run = timed.result
            distance = _distance(run, measured.ours)
            if run.status not in ("optimal", CERTIFIED):
                yield f"{measured.one.name}: {side} ended {run.status}"
            elif distance is not None and abs(distance) > AGREEMENT:
                yield (
                    f"{measured.one.name}: the objective of {side}, which ended {run.status}, is "
                    f"{abs(distance):.1e} {'above' if distance > 0 else 'below'} ours, "
                    f"certified to {measured.ours.certified_gap:.1e}"
                )
    yield f"Objectives agree to {AGREEMENT:g} relative where nothing else is said."


def _workload(name: str) -> AbstractContextManager[Callable[[], object]]:
    one = named(name)
    return nullcontext(partial(NATIVE.solve, one.lines, one.k))


SPEC = BenchSpec(
    name="structured",
    title="The exact solver against the general ones",
    about=(
        f"Five classes of six pipelines with 8 stages, fixed in "
        f"`{STORED.parent.parent.name}/{STORED.parent.name}/{STORED.name}`: a, one stage is "
        "slowest at all sizes; b, the bottleneck moves with the size; c, all stages within four "
        "per cent; d, fragments wait in front of the bottleneck; e, overheads over six decades. "
        "Every side builds its own model, ours also proves the gap; all run in turns, the others "
        "for 30 s at most, and a ratio is the median of the ratios within rounds. A side has "
        "reached the optimum where it says so and its objective is within "
        f"{_SAME_OPTIMUM:g} of the proven one. `reduced dual by GLOP` is our own model in a "
        "general solver."
    ),
    run=_run,
    workloads={name: partial(_workload, name) for name in ("a1", "b1", "c1", "d1", "e1")},
)
