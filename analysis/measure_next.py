"""What a measurement is worth before a size is chosen, in µs a message.

Source    docs/theory.md, "Uncertain costs". Knowing all costs exactly saves E[T(s)] - E[min T], s
          the size of least expected latency. Of one measurement y the saving is that of choosing
          by the expected latencies given y; these are a cubic in y, regressed over the draws, so
          that an estimate is good for one digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import hypot, sqrt

import numpy as np
from numpy.typing import NDArray

from analysis.decision import PricedCut
from analysis.draw_costs import mean_of, stage_times_us
from analysis.draws import Draws, normals, uniforms
from domain.uncertain_answer import Measurement, MeasurementKind
from domain.uncertainty import AnyStage, NamedCut, UncertainStage

Floats = NDArray[np.float64]

REPETITIONS = 20
_STATED_DEVIATION, _STATED_SPREAD = 0.02, 0.05  # of stages whose noise nobody has measured
_MAX_CANDIDATES = 40
_MAX_SIZES = 8  # a stage
_LEADING = 16  # cuts among which one is chosen after the measurement
_NEARER = 1.1  # measured sizes that are closer than this leave no size to measure between them
_EXPLAINED = 1e-9
_NOISE_STREAM = 2**32  # beyond those of the stages


def perfect_information_us(latency_us: Floats) -> tuple[int, float]:
    """Return the row of least expected latency and what knowing the costs would save, in µs.

    `latency_us` is (choices, draws).
    """
    mean = latency_us.mean(axis=1)
    chosen = int(mean.argmin())
    return chosen, saved_by_knowing_us(float(mean[chosen]), latency_us.min(axis=0))


def saved_by_knowing_us(expected_us: float, best_us: Floats) -> float:
    """Return what knowing the costs would save of the least expected latency, in µs: `best_us` is
    the least latency of each draw, (draws,).
    """
    return max(0.0, expected_us - mean_of(best_us))


def measurements(
    stages: Sequence[AnyStage],
    draws: Draws,
    latency_us: Floats,
    pairs: Sequence[tuple[PricedCut, PricedCut]],
    *,
    largest_bytes: int,
    seed: int,
) -> tuple[Measurement, ...]:
    """Return candidates and what each saves, the best first.

    Candidates are stages at sizes up to `largest_bytes` that were not measured, since repeating a
    size does not remove its own deviation, and whole messages in two ways, for each of `pairs`.
    `latency_us` is (choices, draws): what is chosen among. The noise is drawn by the seed.
    """
    chosen, evpi_us = perfect_information_us(latency_us)
    asked, values, deviations = list[Measurement](), list[Floats](), list[float]()
    share = max(1, min(_MAX_SIZES, _MAX_CANDIDATES // len(stages)))
    for j, stage in enumerate(stages):
        sizes = _new_sizes(stage, largest_bytes, share)
        between, single = _noise(stage)
        for size, times_us in zip(sizes, stage_times_us(draws, j, np.array(sizes)), strict=True):
            asked.append(_at_stage(stage.name, size))
            values.append(times_us)
            deviations.append(hypot(between, single / sqrt(REPETITIONS)) * float(times_us.mean()))
    spread = max(_noise(stage)[1] for stage in stages)
    for one, other in pairs:
        asked.append(_of_whole_messages(one.cut, other.cut))
        values.append(one.latency_us - other.latency_us)
        deviations.append(spread * sqrt(2.0 / REPETITIONS) * float(one.latency_us.mean()))
    noise = normals(uniforms(seed, _NOISE_STREAM, draws.count, len(asked) + len(asked) % 2))
    noisy = np.stack(values) + noise[: len(asked)] * np.array(deviations)[:, None]
    saved_us = np.minimum(_savings_us(latency_us, chosen, noisy), evpi_us)
    found = [replace(one, saves_us=float(us)) for one, us in zip(asked, saved_us, strict=True)]
    return tuple(sorted(found, key=lambda one: -one.saves_us))


def _at_stage(name: str, size: int) -> Measurement:
    return Measurement(MeasurementKind.STAGE, REPETITIONS, 0.0, stage=name, fragment_bytes=size)


def _of_whole_messages(one: NamedCut, other: NamedCut) -> Measurement:
    return Measurement(MeasurementKind.WHOLE_MESSAGES, REPETITIONS, 0.0, cuts=(one, other))


def _noise(stage: AnyStage) -> tuple[float, float]:
    """Relative deviations between sizes, and of single times."""
    if isinstance(stage, UncertainStage):
        return stage.size_deviation, stage.spread
    return _STATED_DEVIATION, _STATED_SPREAD


def _new_sizes(stage: AnyStage, largest_bytes: int, count: int) -> list[int]:
    """Sizes half-way in log between measured ones; powers of four where none were measured."""
    measured = stage.measured_bytes if isinstance(stage, UncertainStage) else ()
    if len(measured) > 1:
        gaps = [(low, high) for low, high in pairwise(measured) if high >= _NEARER * low]
        sizes = [round(sqrt(low * high)) for low, high in gaps]
    else:
        sizes = [4**power for power in range(3, 25)]
    sizes = [size for size in sizes if size <= largest_bytes] or [largest_bytes]
    places = np.linspace(0, len(sizes) - 1, min(count, len(sizes))).astype(int)
    return [sizes[place] for place in places]


def _savings_us(latency_us: Floats, chosen: int, values: Floats) -> Floats:
    """What choosing after each measurement saves, (measurements,).

    The difference of each leading cut to the chosen one is regressed on a cubic in the value.
    """
    gains = latency_us[chosen] - latency_us[_leading(latency_us)]  # (cuts, draws)
    rows = _cubics(values)
    fitted = np.ascontiguousarray((rows @ gains.T).transpose(0, 2, 1))  # (measurements, cuts, 4)
    expected = fitted @ rows  # (measurements, cuts, draws)
    saved: Floats = np.maximum(expected.max(axis=1), 0.0).mean(axis=-1)
    return saved


def _cubics(values: Floats) -> Floats:
    """Orthonormal polynomials up to cubic in each row of values: (rows, 4, draws).

    Gram and Schmidt's way; a power that the lower ones explain already is 0.
    """
    y = values - values.mean(axis=1, keepdims=True)
    scale = y.std(axis=1, keepdims=True)
    y /= np.where(scale > 0.0, scale, 1.0)
    found, power = list[Floats](), np.ones_like(y)
    for _ in range(4):
        column = power
        for one in found:
            column = column - (column * one).sum(axis=1, keepdims=True) * one
        length = np.sqrt((column**2).sum(axis=1, keepdims=True))
        is_new = length > _EXPLAINED * np.sqrt((power**2).sum(axis=1, keepdims=True))
        found.append(np.where(is_new, column / np.where(is_new, length, 1.0), 0.0))
        power = power * y
    return np.stack(found, axis=1)


def _leading(latency_us: Floats) -> NDArray[np.intp]:
    """The cuts that are best in most draws, and those of least expected latency."""
    times_best = np.bincount(latency_us.argmin(axis=0), minlength=len(latency_us))
    often = np.argsort(-times_best, kind="stable")[:_LEADING]
    cheap = np.argsort(latency_us.mean(axis=1), kind="stable")[: _LEADING // 2]
    return np.union1d(often[times_best[often] > 0], cheap)
