"""Runs and regret of the race of sizes, a full sweep and golden section, on the same movers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from math import exp, log
from statistics import median

import numpy as np

from bench.simulated_movers import (
    KINDS,
    MESSAGE_BYTES,
    OCTAVES,
    RaceOutcome,
    current_of,
    mover,
    outcome,
    race_outcome,
)
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table

_REPEATS = 3
_GOLDEN = (5**0.5 - 1.0) / 2.0
_FIRST_SEED = 20_000
Procedure = Callable[[str, int], RaceOutcome]


def _full_sweep(kind: str, seed: int) -> RaceOutcome:
    """Thirteen sizes, a factor of 2 apart, three times in random order; the least median is set."""
    simulated, current = mover(kind, seed), current_of(seed)
    random = np.random.default_rng(seed)
    times: dict[int, list[float]] = {MESSAGE_BYTES >> octave: [] for octave in range(OCTAVES + 1)}
    for _ in range(_REPEATS):
        for size in random.permutation(list(times)).tolist():
            times[size].append(simulated.run_us(size))
    best = min(times, key=lambda size: median(times[size]))
    return outcome(simulated, current, best, _REPEATS * len(times))


def _golden_section(kind: str, seed: int) -> RaceOutcome:
    """Medians of three runs, over the logarithm of the size, in as many runs as the full sweep."""
    simulated, current = mover(kind, seed), current_of(seed)
    found = dict[int, float]()

    def centre_us(log_size: float) -> float:
        size = round(exp(log_size))
        found[size] = median(simulated.run_us(size) for _ in range(_REPEATS))
        return found[size]

    low, high = log(MESSAGE_BYTES >> OCTAVES), log(MESSAGE_BYTES)
    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    inner_us, outer_us = centre_us(inner), centre_us(outer)
    centre_us(log(current))
    for _ in range(OCTAVES + 1 - 3):
        if inner_us < outer_us:
            high, outer, outer_us = outer, inner, inner_us
            inner = high - _GOLDEN * (high - low)
            inner_us = centre_us(inner)
        else:
            low, inner, inner_us = inner, outer, outer_us
            outer = low + _GOLDEN * (high - low)
            outer_us = centre_us(outer)
    best = min(found, key=lambda size: found[size])
    return outcome(simulated, current, best, _REPEATS * (OCTAVES + 1))


_PROCEDURES: dict[str, Procedure] = {
    "race": race_outcome,
    "full sweep": _full_sweep,
    "golden section": _golden_section,
}


def _missed(found: Sequence[RaceOutcome]) -> float:
    """The share of gains above 10 % after which the current size stays."""
    gains = [one for one in found if one.has_large_gain]
    return sum(not one.is_set for one in gains) / max(1, len(gains))


def _true_claims(found: Sequence[RaceOutcome]) -> float | None:
    claims = [one.is_near for one in found if one.claims_near]
    return sum(claims) / len(claims) if claims else None


def _row(
    label: str, found: Sequence[RaceOutcome], beside: Sequence[RaceOutcome]
) -> tuple[Cell, ...]:
    regrets = [one.regret for one in found]
    return (
        label,
        sum(one.runs for one in found) / sum(one.runs for one in beside),
        float(np.median([one.runs for one in found])),
        float(np.quantile([one.runs for one in found], 0.9)),
        float(np.median(regrets)),
        float(np.quantile(regrets, 0.9)),
        float(np.quantile(regrets, 0.95)),
        max(regrets),
        sum(one.is_slower for one in found) / len(found),
        _missed(found),
        _true_claims(found),
    )


_COLUMNS = (
    "procedure",
    "runs over the full sweep's",
    "runs, median",
    "runs, 90 %",
    "regret, median",
    "regret, 90 %",
    "regret, 95 %",
    "regret, worst",
    "set and > 1 % slower",
    "gains > 10 % missed",
    "within 2 %, true",
)


def _run(effort: Effort) -> CaseResult:
    number = effort.pick(60, quick=2)
    seeds = range(_FIRST_SEED, _FIRST_SEED + number)
    found = {
        name: [procedure(kind, seed) for kind in KINDS for seed in seeds]
        for name, procedure in _PROCEDURES.items()
    }
    beside = found["full sweep"]
    rows = tuple(_row(name, outcomes, beside) for name, outcomes in found.items())
    by_kind = tuple(
        _row(
            kind,
            [one for one in found["race"] if one.kind == kind],
            [one for one in beside if one.kind == kind],
        )
        for kind in KINDS
    )
    race = found["race"]
    return CaseResult(
        (
            Table(f"{len(race)} movers", _COLUMNS, rows),
            Table("the race by kind of mover", ("kind", *_COLUMNS[1:]), by_kind, is_detail=True),
        ),
        (
            Check("runs, median", float(np.median([one.runs for one in race])), 27.0, "runs"),
            Check(
                "set and more than 1 % slower",
                sum(one.is_slower for one in race) / len(race),
                0.005,
                "of all movers",
            ),
            Check("gains above 10 % missed", _missed(race), 0.03, "of such gains"),
            Check("within 2 %, true", _true_claims(race) or 0.0, 0.88, "of claims", "at least"),
        ),
    )


def _workload(kind: str) -> AbstractContextManager[Callable[[], object]]:
    return nullcontext(partial(race_outcome, kind, _FIRST_SEED))


SPEC = BenchSpec(
    name="sweep",
    title="Runs that decide a user's own size",
    about=(
        "The race of sizes beside a full sweep and golden section, on simulated movers of ten "
        "kinds. The full sweep runs 13 sizes 3 times, golden section 13 points. The message has 64 "
        "MiB, the current size is anywhere from a 4096th of it, and the noise is 3 % (of one kind "
        "1 to 20 %). Regret is over the best of sixteen sizes an octave; the race keeps the "
        "current size where it is not certain."
    ),
    run=_run,
    workloads={"stages": partial(_workload, "stages")},
)
