"""Draws of the costs of stages: what they may be, given their estimates and errors.

A fitted line is drawn around its estimate before clipping, its error scaled by one chi-square a
stage, and projected onto costs >= 0 in the metric of its covariance: what an overhead loses at 0,
the per-byte cost keeps. Draw 0 is the estimate itself. Of a machine what lanes share counts as
known, and is a part of the cost per byte: where less is drawn, the cost is what they share.

The words of Philox, a counter-based generator, are the same for a seed on every platform and with
every version of NumPy, and a longer run begins with the shorter one. Normal numbers are made of
them here (Box-Muller), so that the draws are the same but for the rounding of log, sin and cos.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from contract.limits import DEFAULT_DRAWS, MAX_NS_PER_BYTE, MAX_OVERHEAD_US, MAX_SEED
from domain.derived import Derived
from domain.errors import InvalidInput
from domain.machine import Machine
from domain.model import CostModel
from domain.pipeline import FitRange, Pipeline, Stage, ends_of
from domain.uncertainty import (
    AnyStage,
    StatedStage,
    UncertainAggregate,
    UncertainMachine,
    UncertainModel,
    UncertainStage,
    seed_of,
    stated_model,
)

Floats = NDArray[np.float64]

MAX_DRAWS = 10_000
MIN_DEGREES = 3  # fewer give no scale at all
MAX_DEGREES = 64  # more are as good as a normal distribution
_NO_VARIANCE = 1e-200  # a cost with less is known; beyond it quotients may overflow
_SINGULAR = 1e-12  # of a variance that correlations take away
_KEPT_CELLS = 2**15  # stages, ranges and draws of what is kept for a model's next question
MEANS_DIFFER = 0.05  # of the medians: means that differ by more are what is told
_MEANS_STREAM = 2**33  # beyond those of the stages, and of measurements' noise
_MIN_FACTOR = 0.5  # of a ratio of means to medians, however wide its error
_SWEEPS = 4  # of the projections that keep a bottleneck below the total


@dataclass(frozen=True, eq=False)  # no slots: what kernels take is kept beside the fields
class Draws(Derived):
    """Costs of n stages with at most m ranges, in d draws; of an aggregate (total, bottleneck).

    `overhead_us` and `ns_per_byte` are (n, m, d); `ends_bytes` (n, m - 1, d) are the last bytes of
    ranges, whole numbers, ascending, infinite where there is no further range. `kind` and
    `delay_us` are those of the model. `mean_factors` (n, d) are what both costs were multiplied by
    to be those of mean times, 1 where they are of medians; None where they are so everywhere.
    `machine` is that of the estimates, whose rules and windows hold in every draw; None of others.
    """

    kind: str
    names: tuple[str, ...]
    overhead_us: Floats
    ns_per_byte: Floats
    ends_bytes: Floats
    delay_us: float
    mean_factors: Floats | None = None
    machine: Machine | None = None

    @property
    def count(self) -> int:
        """How many draws there are."""
        return int(self.overhead_us.shape[-1])

    @property
    def stages(self) -> int:
        """How many stages there are; of an aggregate two."""
        return len(self.names)

    @property
    def are_means(self) -> bool:
        """Whether the costs of every draw are those of mean times."""
        return self.derived(_are_means)

    def part(self, first: int, last: int) -> Draws:
        """Return the draws from `first` to the one before `last`."""
        return replace(
            self,
            overhead_us=self.overhead_us[..., first:last],
            ns_per_byte=self.ns_per_byte[..., first:last],
            ends_bytes=self.ends_bytes[..., first:last],
            mean_factors=None if self.mean_factors is None else self.mean_factors[:, first:last],
        )


def pipeline_of(draws: Draws, at: int) -> Pipeline:
    """Return the stages as they are in one draw."""
    stages = []
    for j, name in enumerate(draws.names):
        ends = [int(end) for end in draws.ends_bytes[j, :, at] if np.isfinite(end)]
        costs = draws.overhead_us[j, :, at].tolist(), draws.ns_per_byte[j, :, at].tolist()
        parts = [FitRange(costs[0][r], costs[1][r], end) for r, end in enumerate([*ends, None])]
        stages.append(Stage(name, tuple(parts)))
    return Pipeline(tuple(stages), draws.delay_us)


def draw(model: UncertainModel, count: int, seed: int, *, sums_many: bool = False) -> Draws:
    """Return `count` draws of the costs; the first is the estimate.

    Source: docs/theory.md, "Uncertain costs". Every draw is of mean times where these differ from
    the medians that lines are fitted to by more than 5 % in a stage, or what is priced
    `sums_many` fragments or messages; else every second one. The usual ones are kept with the
    model: every message is priced on the same. Raises InvalidInput for a count outside 1..10 000
    or a seed outside 64 bits.
    """
    if not 1 <= count <= MAX_DRAWS:
        raise InvalidInput(f"expected 1 to {MAX_DRAWS} draws", field="draws")
    if not 0 <= seed <= MAX_SEED:
        raise InvalidInput("expected a seed of 64 bits, >= 0", field="seed")
    known = None
    if count == DEFAULT_DRAWS and seed == seed_of(model):
        known = model.derived(_usual_of_many if sums_many else _usual)
    return known or _of_means(model, _draw(model, count, seed), seed, sums_many=sums_many)


def _are_means(draws: Draws) -> bool:
    factors = draws.mean_factors
    return factors is not None and bool(np.all(np.any(factors != 1.0, axis=0)))


def at_estimates(model: CostModel) -> Draws:
    """Return the costs as they stand, as one draw; made once for each pipeline."""
    return model.derived(_as_they_stand) if isinstance(model, Derived) else _as_they_stand(model)


def _as_they_stand(model: CostModel) -> Draws:
    return _draw(stated_model(model, 0.0), 1, 0)


def takes_means(model: UncertainModel) -> bool:
    """Return whether the mean times of a stage differ from its medians by more than 5 %."""
    return any(abs(ratio - 1.0) > MEANS_DIFFER for ratio, _ in _mean_ratios(model))


def _usual(model: UncertainModel) -> Draws | None:
    """The draws that most answers are over; None where they are too many to be kept."""
    stages, ranges, _ = _shape(model, DEFAULT_DRAWS)
    if stages * ranges * DEFAULT_DRAWS > _KEPT_CELLS:
        return None
    seed = seed_of(model)
    return _of_means(model, _draw(model, DEFAULT_DRAWS, seed), seed, sums_many=False)


def _usual_of_many(model: UncertainModel) -> Draws | None:
    """The same of many fragments: the very same ones where means are all that is drawn."""
    usual = model.derived(_usual)
    if usual is None or usual.mean_factors is None or takes_means(model):
        return usual
    seed = seed_of(model)
    return _of_means(model, _draw(model, DEFAULT_DRAWS, seed), seed, sums_many=True)


def _of_means(model: UncertainModel, drawn: Draws, seed: int, *, sums_many: bool) -> Draws:
    """The costs of mean times: a stage's own factor, known to its error, in every draw or in every
    second one.
    """
    ratios = _mean_ratios(model)
    if all(ratio == 1.0 and error == 0.0 for ratio, error in ratios):
        return drawn
    factors = np.ones((drawn.stages, drawn.count))
    for j, (ratio, error) in enumerate(ratios):
        score = normals(uniforms(seed, _MEANS_STREAM + j, drawn.count, 2))[0]
        factors[j] = np.maximum(ratio + error * score, _MIN_FACTOR * ratio)
        factors[j, 0] = ratio
    if not (sums_many or takes_means(model)):
        factors[:, 0::2] = 1.0
    overhead_us, ns_per_byte = (
        one * factors[:, None, :] for one in (drawn.overhead_us, drawn.ns_per_byte)
    )
    if isinstance(model, UncertainMachine):
        _keep_shared(model, ns_per_byte)
    for array in (overhead_us, ns_per_byte, factors):
        array.flags.writeable = False
    return replace(drawn, overhead_us=overhead_us, ns_per_byte=ns_per_byte, mean_factors=factors)


def _mean_ratios(model: UncertainModel) -> list[tuple[float, float]]:
    return [
        (stage.mean_ratio, stage.mean_ratio_error)
        if isinstance(stage, UncertainStage)
        else (1.0, 0.0)
        for stage in model.stages
    ]


def _shape(model: UncertainModel, count: int) -> tuple[int, int, int]:
    return len(model.stages), max(len(stage.stage.ranges) for stage in model.stages), count


def _draw(model: UncertainModel, count: int, seed: int) -> Draws:
    shape = _shape(model, count)
    overhead_us, ns_per_byte = np.zeros(shape), np.zeros(shape)
    ends_bytes = np.full((shape[0], shape[1] - 1, count), np.inf)
    for j, stage in enumerate(model.stages):
        ranges = len(stage.stage.ranges)
        drawn = _drawn(stage, count, seed, j)
        overhead_us[j, :ranges], ns_per_byte[j, :ranges], ends_bytes[j, : ranges - 1] = drawn
    if isinstance(model, UncertainAggregate):
        _keep_below_total(model, overhead_us, ns_per_byte)
    np.clip(overhead_us, 0.0, MAX_OVERHEAD_US, out=overhead_us)
    np.clip(ns_per_byte, 0.0, MAX_NS_PER_BYTE, out=ns_per_byte)
    if isinstance(model, UncertainMachine):
        _keep_shared(model, ns_per_byte)
    for j, stage in enumerate(model.stages):  # last: the estimate stays as it is
        for r, part in enumerate(stage.stage.ranges):
            overhead_us[j, r, 0], ns_per_byte[j, r, 0] = part.overhead_us, part.ns_per_byte
            if part.up_to_bytes is not None:
                ends_bytes[j, r, 0] = part.up_to_bytes
    for array in (overhead_us, ns_per_byte, ends_bytes):
        array.flags.writeable = False
    names = tuple(stage.name for stage in model.stages)
    machine = model.model if isinstance(model, UncertainMachine) else None
    costs = overhead_us, ns_per_byte, ends_bytes
    return Draws(model.kind, names, *costs, model.delay_us, machine=machine)


def project(overhead_us: Floats, ns_per_byte: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Return the nearest costs >= 0 in the metric of the covariance, elementwise.

    `covariance` is (3, ...): the variance of the overhead, the covariance, and the variance of the
    per-byte cost, each broadcast with the costs.
    On the edge where the overhead is 0 the nearest per-byte cost is b - a V_ab/V_aa, and likewise
    on the other one; where an estimate is outside, the nearer of the two edges' points is taken.
    """
    variance, both, per_byte_variance = covariance
    at_left = ns_per_byte - _ratio(both, variance) * overhead_us
    at_bottom = overhead_us - _ratio(both, per_byte_variance) * ns_per_byte
    left, bottom = np.maximum(at_left, 0.0), np.maximum(at_bottom, 0.0)
    to_left = _distance(overhead_us, ns_per_byte - left, covariance)
    to_bottom = _distance(overhead_us - bottom, ns_per_byte, covariance)
    nearer_left = (to_left < to_bottom) | ((to_left == to_bottom) & (overhead_us < 0.0))
    inside = (overhead_us >= 0.0) & (ns_per_byte >= 0.0)
    projected_us = np.where(inside, overhead_us, np.where(nearer_left, 0.0, bottom))
    return projected_us, np.where(inside, ns_per_byte, np.where(nearer_left, left, 0.0))


def uniforms(seed: int, stream: int, count: int, width: int) -> Floats:
    """Return uniform numbers inside (0, 1), (width, count), of a stream of this seed.

    Those of number d do not depend on how many there are.
    """
    words = np.random.Philox(counter=[0, 0, 0, stream], key=seed).random_raw(count * width)
    places = (words.reshape(count, width) >> np.uint64(11)).astype(np.float64)
    found: Floats = np.ascontiguousarray(((places + 0.5) * 2.0**-53).T)
    return found


def normals(pairs: Floats) -> Floats:
    """Return standard normal numbers, rows 2i and 2i + 1 of uniform ones together (Box-Muller)."""
    radius = np.sqrt(-2.0 * np.log(pairs[0::2]))
    angle = 2.0 * np.pi * pairs[1::2]
    found = np.empty_like(pairs)
    found[0::2], found[1::2] = radius * np.cos(angle), radius * np.sin(angle)
    return found


def _drawn(stage: AnyStage, count: int, seed: int, stream: int) -> tuple[Floats, Floats, Floats]:
    """Overheads and per-byte costs (ranges, count), ends (ranges - 1, count)."""
    if isinstance(stage, StatedStage):
        return _drawn_stated(stage, count, seed, stream)
    return _drawn_fitted(stage, count, seed, stream)


def _drawn_stated(
    stage: StatedStage, count: int, seed: int, stream: int
) -> tuple[Floats, Floats, Floats]:
    """Lognormal on either side of the typed value, its median; ends are as they are."""
    ranges = stage.stage.ranges
    scores = normals(uniforms(seed, stream, count, 2 * len(ranges)))
    below, above = np.array(stage.known).reshape(-1, 2, 1).transpose(1, 0, 2)
    factors = np.exp(np.where(scores < 0.0, below, above) * scores)
    overhead_us = np.array([[part.overhead_us] for part in ranges]) * factors[0::2]
    ns_per_byte = np.array([[part.ns_per_byte] for part in ranges]) * factors[1::2]
    ends = np.array([[part.up_to_bytes] for part in ranges[:-1]], dtype=np.float64)
    return overhead_us, ns_per_byte, np.broadcast_to(ends.reshape(-1, 1), (len(ends), count))


def _drawn_fitted(
    stage: UncertainStage, count: int, seed: int, stream: int
) -> tuple[Floats, Floats, Floats]:
    """A t distribution of both costs, projected; ends log-uniform between measured sizes."""
    lines, ends = stage.lines, len(stage.lines) - 1
    degrees = min(max(stage.degrees_of_freedom, MIN_DEGREES), MAX_DEGREES)
    for_scale = degrees // 2 + 2  # an odd degree needs one normal number, made of two
    numbers = uniforms(seed, stream, count, for_scale + 2 * len(lines) + ends)
    chi_square = -2.0 * np.log(numbers[: degrees // 2]).sum(axis=0)
    if degrees % 2:
        chi_square += normals(numbers[for_scale - 2 : for_scale])[0] ** 2
    scale = np.sqrt(degrees / chi_square)
    errors = scale * normals(numbers[for_scale : for_scale + 2 * len(lines)])
    free_us, free_ns = (
        np.array([[value] for value in found])
        for found in zip(
            *((one.free_overhead_us, one.free_ns_per_byte) for one in lines), strict=True
        )
    )
    covariance = np.array([line.covariance for line in lines]).T[:, :, None]
    one, other, rest = _factor(covariance)
    overhead_us, ns_per_byte = project(
        free_us + one * errors[0::2],
        free_ns + other * errors[0::2] + rest * errors[1::2],
        covariance,
    )
    ends_bytes = np.empty((ends, count))
    for r, (line, place) in enumerate(zip(lines, numbers[numbers.shape[0] - ends :], strict=False)):
        if line.end_between is None:
            ends_bytes[r] = line.estimate.up_to_bytes
            continue
        left, right = line.end_between  # the first size of the next range is `right` at most
        drawn = left * np.exp(place * np.log(right / left))
        met = _met(overhead_us[r : r + 2], ns_per_byte[r : r + 2])
        drawn = np.where((left < met) & (met < right), met, drawn)
        ends_bytes[r] = np.clip(np.floor(drawn), left, right - 1)
    return overhead_us, ns_per_byte, ends_bytes


def _met(overhead_us: Floats, ns_per_byte: Floats) -> Floats:
    """The size at which the second of two lines, the steeper one, crosses the first; else 0.

    Where it lies between the measured sizes nothing jumps there: each line goes on as far as it is
    the dearer one. An end beyond would make sizes that nobody measured cheaper than all that were.
    """
    steeper = ns_per_byte[1] - ns_per_byte[0]
    less_us = overhead_us[0] - overhead_us[1]
    found: Floats = np.divide(
        1000.0 * less_us, steeper, out=np.zeros_like(steeper), where=steeper > 0
    )
    return found


def _factor(covariance: Floats) -> tuple[Floats, Floats, Floats]:
    """The lower triangle of the Cholesky factors of 2x2 matrices, semidefinite ones included."""
    variance, both, per_byte_variance = covariance
    below = _ratio(both, np.sqrt(variance))
    return np.sqrt(variance), below, np.sqrt(np.maximum(0.0, per_byte_variance - below**2))


def _ratio(both: Floats, scale: Floats) -> Floats:
    """Their quotient; 0 where the scale is next to 0: the covariance is too."""
    found: Floats = np.divide(both, scale, out=np.zeros_like(both), where=scale > _NO_VARIANCE)
    return found


def _distance(overhead_us: Floats, ns_per_byte: Floats, covariance: Floats) -> Floats:
    """The squared Mahalanobis distance times the determinant, which may be 0."""
    variance, both, per_byte_variance = covariance
    found: Floats = per_byte_variance * overhead_us**2 + variance * ns_per_byte**2
    found -= 2.0 * both * overhead_us * ns_per_byte
    return found


def _keep_below_total(model: UncertainAggregate, overhead_us: Floats, ns_per_byte: Floats) -> None:
    """Project both lines onto: the bottleneck takes no longer than the total, where both hold.

    On sizes where each is one line it is enough at both ends of these sizes; without an end the
    per-byte costs count. One half space after the other, in the metric of both covariances; what
    is left after the last sweep the evaluator settles: the larger of the two counts as the total.
    """
    errors = [_covariances(stage) for stage in model.stages]
    for _ in range(_SWEEPS):
        for i, j, first, last in _overlaps(model.total.stage, model.bottleneck.stage):
            for at in ((1.0, first / 1000.0), (1.0, last / 1000.0) if last else (0.0, 1.0)):
                covariances = (errors[0][i], errors[1][j])
                _move_below(overhead_us, ns_per_byte, (i, j), at, covariances)
        np.maximum(overhead_us, 0.0, out=overhead_us)
        np.maximum(ns_per_byte, 0.0, out=ns_per_byte)


def _keep_shared(model: UncertainMachine, ns_per_byte: Floats) -> None:
    """Raise costs per byte, (stages, ranges, draws), to what the lanes of their stage share."""
    for j, rules in enumerate(model.rules):
        ranges = len(model.stages[j].stage.ranges)
        np.maximum(ns_per_byte[j, :ranges], rules.shared_ns_per_byte, out=ns_per_byte[j, :ranges])


def _move_below(
    overhead_us: Floats,
    ns_per_byte: Floats,
    ranges: tuple[int, int],
    at: tuple[float, float],
    covariances: tuple[tuple[float, float, float], tuple[float, float, float]],
) -> None:
    """Project the line of a range of the total and that of one of the bottleneck onto the half
    space where `at` times (overhead, per-byte cost) is no more for the second.
    """
    one, per_byte = at
    moved = [_times(covariance, one, per_byte) for covariance in covariances]
    variance = sum(one * by + per_byte * by_byte for by, by_byte in moved)
    apart = sum(one**2 * each[0] + per_byte**2 * each[2] for each in covariances)
    if variance <= max(_SINGULAR * apart, _NO_VARIANCE):
        return  # the difference is known: nothing that may be moved changes it
    total, bottleneck = ranges
    above_us = one * (overhead_us[1, bottleneck] - overhead_us[0, total])
    above_us += per_byte * (ns_per_byte[1, bottleneck] - ns_per_byte[0, total])
    np.maximum(above_us, 0.0, out=above_us)
    for row, place, sign, (by, by_byte) in ((0, total, 1, moved[0]), (1, bottleneck, -1, moved[1])):
        overhead_us[row, place] += sign * by / variance * above_us
        ns_per_byte[row, place] += sign * by_byte / variance * above_us


def _covariances(stage: AnyStage) -> list[tuple[float, float, float]]:
    if isinstance(stage, UncertainStage):
        return [line.covariance for line in stage.lines]
    deviations = [
        (sum(overhead) / 2.0 * part.overhead_us, sum(per_byte) / 2.0 * part.ns_per_byte)
        for part, (overhead, per_byte) in zip(stage.stage.ranges, stage.known, strict=True)
    ]
    return [(overhead**2, 0.0, per_byte**2) for overhead, per_byte in deviations]


def _overlaps(total: Stage, bottleneck: Stage) -> Iterator[tuple[int, int, int, int | None]]:
    """Pairs of ranges with sizes in common, and the first and the last of these; None: no end."""
    before = 0
    ends = sorted({*ends_of((total, bottleneck))})
    for end in (*ends, None):
        size = before + 1
        places = [
            next(r for r, part in enumerate(stage.ranges) if part is stage.range_at(size))
            for stage in (total, bottleneck)
        ]
        yield places[0], places[1], size, end
        before = end or before


def _times(
    covariance: tuple[float, float, float], one: float, per_byte: float
) -> tuple[float, float]:
    """The covariance times a vector."""
    variance, both, per_byte_variance = covariance
    return variance * one + both * per_byte, both * one + per_byte_variance * per_byte
