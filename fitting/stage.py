"""The samples of one stage to its fit: ranges, a line for each, what to beware of.

Notation  x sizes in bytes, y times in µs, c how many samples an entry stands for, (N,); f fitted
          times; w the weights of the fit; b in µs per byte, 1/1000 of Wang's G in ns per byte.
Cost      one sort; then as fitting/ranges.py and fitting/robust.py on at most 20 000 entries.
Traps     a knee is where two lines meet, and lies between two measured sizes; a switch jumps, and
          all that is known is that it lies behind the last size of its left range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from contract.limits import MAX_NS_PER_BYTE
from domain.errors import PoorFit
from domain.fit import FitMethod, FitOptions, FitShape, StageFit
from domain.solution import Notice
from domain.units import format_bytes
from fitting.between import MAX_DEVIATION, between_size_deviation, neighbours_correlation
from fitting.centres import Centres, centres_of
from fitting.diagnostics import diagnose, verdicts_of
from fitting.end_pairs import unseen_by_pair
from fitting.ends import end_intervals, without_falls
from fitting.estimate import Between, Estimate, FittedLine, estimate_of, fitted_line
from fitting.evidence import Evidence
from fitting.goodness import goodness_of, influence_of, misfit_of, sizes_of
from fitting.line import TINY, Floats
from fitting.pieces import Piece
from fitting.ranges import FoundEnds, find_ends
from fitting.samples import SortedSamples, clock_step, sort_samples
from fitting.size_times import size_times

MIN_SAMPLES = 3  # two fix the line; the third is the least that tells how far off it may be


def fit_stage(
    name: str, message_bytes: Sequence[int], times_us: Sequence[float], options: FitOptions
) -> tuple[StageFit, tuple[Notice, ...]]:
    """Fit one stage: sizes (N,) in bytes, times (N,) in µs. Raises PoorFit."""
    samples = sort_samples(message_bytes, times_us)
    _check_support(samples, len(message_bytes))
    tick = clock_step(samples)
    centres = centres_of(samples, resolution_us=tick)
    found = find_ends(samples, centres, _max_ranges(options))
    if found.places:  # bins that reach over an end hold two kinds of times
        centres = centres_of(samples, found.places, resolution_us=tick)
    pieces, deviation = _pieces(samples, centres, found, method=options.method, tick=tick)
    maximum = _max_ranges(options)
    evidence = Evidence(
        name, options.method, samples, centres, pieces, tick, deviation, found.wanted, maximum
    )
    verdicts = verdicts_of(evidence)
    lines = tuple(piece.to_line(both) for piece, both in zip(pieces, verdicts, strict=True))
    sizes = sizes_of(evidence, size_times(samples, centres, found.places, resolution_us=tick))
    relative, std_us, r_squared = goodness_of(evidence)
    stage = StageFit(
        name=name,
        method=options.method,
        lines=lines,
        sizes=sizes,
        num_samples=len(message_bytes),
        outliers=sum(size.outliers for size in sizes),
        relative_residual_std=relative,
        residual_std_us=std_us,
        r_squared=r_squared,
        outlier_influence=max(influence_of(piece) for piece in pieces),
        size_deviation=_known(deviation, free=_free(centres, len(pieces))),
        misfit=misfit_of(sizes),
        common_error=samples.repetitions.common_error,
    )
    return stage, diagnose(evidence, stage)


def _check_support(samples: SortedSamples, rows: int) -> None:
    if len(samples.sizes) == 1:
        raise PoorFit(
            f"all rows measure messages of {format_bytes(int(samples.sizes[0]))}; to tell overhead "
            "and per-byte cost apart, rows of at least 2 distinct message sizes are needed",
            field="measurements",
        )
    if rows < MIN_SAMPLES:
        raise PoorFit(
            f"expected at least {MIN_SAMPLES} rows, got {rows}: a line through two "
            "samples leaves nothing to estimate its error from; add a size or a repetition",
            field="measurements",
        )


def _max_ranges(options: FitOptions) -> int:
    return options.max_ranges if options.shape is FitShape.RANGES else 1


def _pieces(
    samples: SortedSamples,
    centres: Centres,
    ends: FoundEnds,
    *,
    method: FitMethod,
    tick: float,
) -> tuple[tuple[Piece, ...], float]:
    """The ranges, and the relative deviation between sizes."""
    bounds = [-1, *ends.places, len(samples.sizes) - 1]
    parts = [samples.between(low + 1, high) for low, high in pairwise(bounds)]
    cells = [
        slice(int(low), int(high))
        for low, high in pairwise(
            [0, *np.searchsorted(centres.last, np.array(bounds[1:]), side="right")]
        )
    ]
    free = _free(centres, len(parts))
    lines = [fitted_line(part, method, resolution_us=tick) for part in parts]
    h = ends.shape.relative(centres.s)
    deviation, correlation = _deviation(centres, lines, cells, h, tick=tick, free=free)
    found = [
        estimate_of(
            part,
            line,
            resolution_us=tick,
            between=Between(
                centres.common(where)
                + _common(deviation * h[where], correlation)
                + unseen_by_pair(centres, where),
                free,
                centres.start[where] - centres.start[where.start],
            ),
        )
        for part, line, where in zip(parts, lines, cells, strict=True)
    ]
    for estimate in found:
        if estimate.b * 1000.0 > MAX_NS_PER_BYTE:
            raise PoorFit(
                f"the per-byte cost of a stage comes out above {MAX_NS_PER_BYTE:g} ns per byte; "
                "are its times in µs and its sizes in bytes?",
                field="measurements",
            )
    found = without_falls(found, [int(part.sizes[-1]) for part in parts[:-1]])
    found = [estimate.with_level(samples.drift.deviation) for estimate in found]
    ups: list[int | None] = [
        _range_end(left, int(part.sizes[-1]), right, int(samples.sizes[end + 1]))
        for left, right, part, end in zip(found, found[1:], parts, ends.places, strict=False)
    ]
    pieces = tuple(
        Piece(part, estimate, where, up_to, int(part.count.sum()))
        for part, estimate, where, up_to in zip(parts, found, cells, [*ups, None], strict=True)
    )
    ends_within = end_intervals(centres, pieces, deviation * h, samples.sizes)
    return tuple(
        replace(piece, end_interval=within)
        for piece, within in zip(pieces, [*ends_within, None], strict=True)
    ), deviation


def _free(centres: Centres, num_lines: int) -> int:
    """How many sizes are left by two parameters a line, and the ends between lines."""
    return len(centres.x) - 3 * num_lines + 1


def _known(deviation: float, *, free: int) -> float | None:
    """The deviation between sizes as it is stated: None where no size is left to tell it from, or
    where it is beyond all that is tried.
    """
    return deviation if free >= 1 and deviation < MAX_DEVIATION else None


def _deviation(
    centres: Centres,
    lines: list[FittedLine],
    cells: list[slice],
    h: Floats,
    *,
    tick: float,
    free: int,
) -> tuple[float, float]:
    """The relative deviation between sizes, of all ranges together, and that of neighbours."""
    f = np.concatenate(
        [one.times_us(centres.x[where]) for one, where in zip(lines, cells, strict=True)]
    )
    f = np.maximum(f, max(float(centres.z.max()) * TINY, 5e-324))
    off = centres.z - f  # a reading is as wide as the clock's step, and agrees with all within
    r = np.clip(np.sign(off) * np.maximum(np.abs(off) - tick / 2.0, 0.0) / f, -1.0, 1e9)
    e = np.hypot(centres.errors(), tick / f / 2.0)
    deviation = between_size_deviation(r, e, h, free)
    z = r / np.maximum(np.hypot(e, deviation * h), 1e-300)
    return deviation, neighbours_correlation(z, free)


def _common(deviation: Floats, correlation: float) -> Floats:
    """The relative covariance of deviations of sizes, falling in powers with their distance."""
    places = np.arange(len(deviation))
    apart = np.abs(places[:, None] - places[None, :])
    out: Floats = np.outer(deviation, deviation) * correlation**apart
    return out


def _range_end(left: Estimate, last: int, right: Estimate, following: int) -> int:
    """Where the left range ends: where the lines meet, if they do between these two sizes.

    Elsewhere the dearer line counts between them, where nothing was measured: no size in there is
    priced below both neighbours, and a range begins or ends at a measured size.
    """
    if left.b != right.b:
        meet = (right.a - left.a) / (left.b - right.b)
        if last <= meet < following:
            return int(meet)
    falls = left.a + left.b * following > right.a + right.b * following
    return following - 1 if falls else last
