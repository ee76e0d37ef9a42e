"""What a careful engineer would say about a stage's samples and its fit, in words.

Source    common practice; each check compares an effect with its own standard error and with the
          least effect that matters, so that neither noise nor trifles speak.
Notation  by cell of fitting/centres.py, (m,): x, z, s; r = z / f - 1 with f the fitted time; e the
          standard error of r; q a quadratic in log x, freed of what a line can explain.
Cost      O(N + m).
Traps     one size that sits off the line alone looks like curvature: the worst size is left out
          before curvature is asked, and what a quadratic leaves over widens its error. In a trace
          with outliers the first repetition is one of them now and then: warm-up is measured by its
          rank among all repetitions, over all sizes.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from domain.fit import FitMethod, StageFit, Verdict
from domain.solution import Notice
from domain.units import format_bytes
from fitting.centres import MAX_CELLS
from fitting.end_pairs import is_pair
from fitting.evidence import Evidence
from fitting.pieces import Piece

MAX_NOTICES = 8
_FEW_SIZES, _FEW_REPETITIONS, _NARROW = 5, 3, 4.0
_NOISE = 0.5  # relative; above, a stage that shows no dependence on size shows nothing
_ERRORS = 4.0  # standard errors, for an effect
_MIN_BENT = 6  # sizes, for curvature
_APART = 1.125  # times a size is the next one, for nothing to be measured between them
_OFF, _BENT = 0.05, 0.03  # relative, for a size off the line and for curvature
_COARSE = 0.02  # a clock's step, relative to the shortest times
_SHARE, _LARGE_SHARE, _INFLUENCE = 0.01, 0.05, 0.02  # of outliers
_HARDLY = 0.001  # of a time; smaller influences have no digits
_SURE = 3.7  # standard deviations of the mean rank of first repetitions


def verdicts_of(evidence: Evidence) -> list[tuple[Verdict, Verdict]]:
    """Return the verdict on overhead and per-byte cost of every piece."""
    if _decides_nothing(evidence):
        return [(Verdict.UNSUPPORTED, Verdict.UNSUPPORTED)] * len(evidence.pieces)
    out = []
    for piece in evidence.pieces:
        a, b = piece.verdicts()
        is_weak = is_pair(piece.cells, len(evidence.centres.x))
        if is_weak or _bent(evidence, piece) is not None:
            a, b = _at_most_weak(a), _at_most_weak(b)
        out.append((a, b))
    return out


def diagnose(evidence: Evidence, stage: StageFit) -> tuple[Notice, ...]:
    """Return at most MAX_NOTICES, the important ones first."""
    if _decides_nothing(evidence):
        found = [_nothing(evidence), _few_sizes(evidence), _few_repetitions(evidence)]
    else:
        found = [
            _few_sizes(evidence),
            _narrow(evidence, stage),
            _switches(evidence),
            _capped(evidence),
            _unmeasured(evidence),
            _quantised(evidence),
            _curvature(evidence),
            _off_the_line(evidence),
            _clipped_overhead(evidence),
            _clipped_cost(evidence),
            _not_monotone(evidence),
            _outliers(evidence, stage),
            _warm_up(evidence),
            _drift(evidence),
            _unsupported_overhead(evidence, stage),
            _unsupported_cost(evidence, stage),
            _few_repetitions(evidence),
        ]
    return tuple(notice for notice in found if notice is not None)[:MAX_NOTICES]


def _at_most_weak(verdict: Verdict) -> Verdict:
    return Verdict.WEAK if verdict is Verdict.SUPPORTED else verdict


# ---- how much was measured ----------------------------------------------------------------------


def _few_sizes(evidence: Evidence) -> Notice | None:
    m = len(evidence.samples.sizes)
    if m >= _FEW_SIZES:
        return None
    return Notice.of_stage(
        evidence.name,
        "too_few_sizes",
        f"{m} message sizes were measured; whether the times lie on a line, "
        f"and where they change over to another, needs {_FEW_SIZES} and more",
        sizes=m,
    )


def _few_repetitions(evidence: Evidence) -> Notice | None:
    middle = int(np.median(evidence.centres.count))
    if middle >= _FEW_REPETITIONS:
        return None
    return Notice.of_stage(
        evidence.name,
        "too_few_repetitions",
        f"most sizes were measured {'once' if middle == 1 else 'twice'}; "
        "noise is told from misfit only by how far sizes lie off the line, and outliers hardly",
        repetitions=middle,
    )


def _narrow(evidence: Evidence, stage: StageFit) -> Notice | None:
    sizes = evidence.samples.sizes
    if float(sizes[-1]) >= _NARROW * float(sizes[0]) or _all_supported(stage):
        return None
    return Notice.of_stage(
        evidence.name,
        "range_too_narrow",
        f"sizes from {format_bytes(int(sizes[0]))} to "
        f"{format_bytes(int(sizes[-1]))} are too close to tell overhead and per-byte cost apart; "
        "an error of one is made up for by the other",
        from_bytes=int(sizes[0]),
        to_bytes=int(sizes[-1]),
    )


def _all_supported(stage: StageFit) -> bool:
    return all(
        verdict is Verdict.SUPPORTED
        for line in stage.lines
        for verdict in (line.overhead_verdict, line.ns_per_byte_verdict)
    )


# ---- what was found -----------------------------------------------------------------------------


def _decides_nothing(evidence: Evidence) -> bool:
    verdicts = [piece.verdicts() for piece in evidence.pieces]
    noise = float(np.median(evidence.centres.s))
    if all(one is Verdict.UNSUPPORTED for both in verdicts for one in both):
        # Or sizes off the lines hide it, and not single times.
        return noise >= min(evidence.deviation, _NOISE)
    noisy = noise >= _NOISE
    return noisy and all(Verdict.UNSUPPORTED in both for both in verdicts)


def _nothing(evidence: Evidence) -> Notice:
    noise = float(np.median(evidence.centres.s))
    return Notice.of_stage(
        evidence.name,
        "noise_decides_nothing",
        f"single times scatter by {noise:.0%} and hide whatever depends on "
        "size; neither overhead nor per-byte cost is supported by these measurements",
        relative_noise=noise,
    )


def _switches(evidence: Evidence) -> Notice | None:
    if len(evidence.pieces) == 1:
        return None
    stated = [_switch(left, right) for left, right in pairwise(evidence.pieces)]
    return Notice.of_stage(
        evidence.name,
        "switch_found",
        f"{len(evidence.pieces)} fit ranges; the line changes " + "; ".join(stated),
        ranges=len(evidence.pieces),
    )


def _switch(left: Piece, right: Piece) -> str:
    last, following = left.to_bytes, right.from_bytes
    before, after = _at_following(left, right)
    between = f"between {format_bytes(last)} and {format_bytes(following)}"
    if left.up_to_bytes not in (last, following - 1):
        between = f"{between}, where both lines meet"
    else:
        between = f"{between} (at {format_bytes(following)} from {before:.4g} to {after:.4g} µs)"
    low, high = left.end_interval or (last, following - 1)
    if low >= last and high < following:
        return between
    low, high = min(low, last), max(high + 1, following)
    return f"{between}; it may be anywhere between {format_bytes(low)} and {format_bytes(high)}"


def _at_following(left: Piece, right: Piece) -> tuple[float, float]:
    """What both lines say of the first size of the right range, in µs."""
    here = np.array([float(right.from_bytes)])
    return float(left.at(here)[0]), float(right.at(here)[0])


def _capped(evidence: Evidence) -> Notice | None:
    if evidence.ranges_wanted <= len(evidence.pieces) or len(evidence.pieces) < evidence.max_ranges:
        return None
    return Notice.of_stage(
        evidence.name,
        "more_ranges_supported",
        f"the measurements support more fit ranges than the {evidence.max_ranges} allowed; "
        "allow more, or lines run across places where the times change",
        allowed=evidence.max_ranges,
    )


def _unmeasured(evidence: Evidence) -> Notice | None:
    """Jumps between two sizes so far apart that the size of the switch matters."""
    found = []
    for left, right in pairwise(evidence.pieces):
        last, following = left.to_bytes, right.from_bytes
        before, after = _at_following(left, right)
        jump = after / before - 1.0
        met = left.up_to_bytes not in (last, following - 1)
        if following >= _APART * last and abs(jump) >= _OFF and not met:
            found.append((jump, last, following))
    if not found:
        return None
    stated = " and ".join(
        f"between {format_bytes(last)} and {format_bytes(following)} ({jump:+.0%})"
        for jump, last, following in found
    )
    worst = max(found, key=lambda one: abs(one[0]))
    return Notice.of_stage(
        evidence.name,
        "jump_not_measured",
        f"nothing was measured {stated}, where the times jump; costs of sizes in there are a guess",
        relative_jump=worst[0],
        from_bytes=worst[1],
        to_bytes=worst[2],
    )


def _bent(evidence: Evidence, piece: Piece) -> float | None:
    """Amplitude of the curvature, positive where both ends lie above the line; None for none."""
    r, e = evidence.residuals(piece)
    if len(r) < _MIN_BENT:
        return None
    kept = np.arange(len(r)) != int(np.argmax(np.abs(r) / e))
    x = evidence.centres.x[piece.cells][kept]
    f, w, r = piece.at(x), 1.0 / e[kept] ** 2, r[kept]
    log_x = np.log(x)
    q = (log_x - log_x.mean()) ** 2
    D = np.stack([float(f[0]) / f, x / x[-1] * (float(f[-1]) / f)], axis=1)
    q = q - D @ np.linalg.lstsq(D * w[:, None] ** 0.5, q * w**0.5, rcond=None)[0]
    weight = float(w @ q**2)
    if weight <= 0.0:
        return None
    height = float(w @ (q * r)) / weight
    left = r - D @ np.linalg.lstsq(D * w[:, None] ** 0.5, r * w**0.5, rcond=None)[0] - height * q
    widened = max(1.0, float(w @ left**2) / (len(r) - 3)) ** 0.5
    amplitude = height * float(np.max(np.abs(q)))
    clear = abs(height) * weight**0.5 >= _ERRORS * widened
    return amplitude if clear and abs(amplitude) >= _BENT else None


def _curvature(evidence: Evidence) -> Notice | None:
    bent = [(_bent(evidence, piece), piece) for piece in evidence.pieces]
    found = [(amplitude, piece) for amplitude, piece in bent if amplitude is not None]
    if not found:
        return None
    amplitude, piece = max(found, key=lambda pair: abs(pair[0]))
    where = "more" if amplitude > 0.0 else "less"
    return Notice.of_stage(
        evidence.name,
        "curvature",
        f"from {piece.words} the times bend away from the line by "
        f"{abs(amplitude):.0%}; both ends take {where} than it says",
        relative_amplitude=amplitude,
    )


def _off_the_line(evidence: Evidence) -> Notice | None:
    found = []
    for piece in evidence.pieces:
        if _bent(evidence, piece) is not None:  # that says it for all sizes of this range
            continue
        r, e = evidence.residuals(piece)
        sizes = np.round(evidence.centres.x[piece.cells])
        off = np.abs(r) > np.maximum(_OFF, _ERRORS * e)
        found += [(float(r[at]), int(sizes[at])) for at in np.flatnonzero(off)]
    if not found:
        return None
    worst = sorted(found, key=lambda pair: -abs(pair[0]))[:3]
    stated = ", ".join(f"{format_bytes(size)} ({off:+.0%})" for off, size in worst)
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return Notice.of_stage(
        evidence.name,
        "sizes_off_the_line",
        f"times of {stated}{more} do not lie on the line, by more than their own noise explains"
        + _at_an_end(evidence, {size for _, size in found}),
        sizes=len(found),
    )


def _at_an_end(evidence: Evidence, off: set[int]) -> str:
    """What is to be said where the least or the greatest size is off, and the next one is not."""
    x = np.round(evidence.centres.x).astype(np.int64).tolist()
    alone = [
        (size, side)
        for size, beside, side in ((x[0], x[1], "below"), (x[-1], x[-2], "above"))
        if size in off and beside not in off
    ]
    return "".join(
        f"; {format_bytes(size)} is off alone, and what is {side} was not measured"
        for size, side in alone
    )


def _not_monotone(evidence: Evidence) -> Notice | None:
    z, e = evidence.centres.z, evidence.centres.errors()
    tick = evidence.tick_us / np.maximum(z[1:], 5e-324)
    fall = 1.0 - z[1:] / np.maximum(z[:-1], 5e-324)
    clear = fall > np.maximum(_OFF, _ERRORS * np.hypot(e[1:], e[:-1]) + tick)
    clear[[piece.cells.stop - 1 for piece in evidence.pieces[:-1]]] = False  # a switch says so
    if not clear.any():
        return None
    at = int(np.argmax(np.where(clear, fall, 0.0)))
    x = evidence.centres.x
    more = int(clear.sum()) - 1
    return Notice.of_stage(
        evidence.name,
        "not_monotone",
        f"{format_bytes(round(x[at]))} takes longer ({z[at]:.4g} µs) than "
        f"{format_bytes(round(x[at + 1]))} ({z[at + 1]:.4g} µs)"
        + (f", and so at {more} more sizes" if more else "")
        + "; no line with a per-byte cost of 0 or more explains that",
        sizes=more + 1,
    )


# ---- what is supported --------------------------------------------------------------------------


def _clipped_overhead(evidence: Evidence) -> Notice | None:
    clipped = [piece for piece in evidence.pieces if piece.estimate.clipped == "a"]
    if not clipped:
        return None
    return Notice.of_stage(
        evidence.name,
        "negative_overhead_clipped",
        f"the estimated overhead was negative{_where(evidence, clipped)} "
        "and is set to 0; ns_per_byte was fitted again through the origin",
    )


def _clipped_cost(evidence: Evidence) -> Notice | None:
    clipped = [piece for piece in evidence.pieces if piece.estimate.clipped == "b"]
    if not clipped:
        return None
    return Notice.of_stage(
        evidence.name,
        "negative_ns_per_byte_clipped",
        "the estimated per-byte cost was negative"
        f"{_where(evidence, clipped)} and is set to 0; overhead_us is the mean time",
    )


def _unsupported_overhead(evidence: Evidence, stage: StageFit) -> Notice | None:
    found = [
        (piece, line.overhead_us, line.overhead_us_interval)
        for piece, line in zip(evidence.pieces, stage.lines, strict=True)
        if piece.verdicts()[0] is not Verdict.SUPPORTED and "overhead_us" not in line.clipped
    ]
    if not found or _narrow(evidence, stage) is not None:
        return None
    stated = "; ".join(_format_estimate(evidence, one, "µs") for one in found)
    return Notice.of_stage(
        evidence.name,
        "overhead_not_supported",
        f"the measurements do not determine the overhead: {stated}",
    )


def _unsupported_cost(evidence: Evidence, stage: StageFit) -> Notice | None:
    found = [
        (piece, line.ns_per_byte, line.ns_per_byte_interval)
        for piece, line in zip(evidence.pieces, stage.lines, strict=True)
        if piece.verdicts()[1] is not Verdict.SUPPORTED and "ns_per_byte" not in line.clipped
    ]
    if not found or _narrow(evidence, stage) is not None:
        return None
    stated = "; ".join(_format_estimate(evidence, one, "ns per byte") for one in found)
    return Notice.of_stage(
        evidence.name,
        "cost_not_supported",
        f"the measurements do not determine the per-byte cost: {stated}",
    )


def _format_estimate(
    evidence: Evidence, one: tuple[Piece, float, tuple[float, float]], unit: str
) -> str:
    piece, value, (low, high) = one
    where = "" if len(evidence.pieces) == 1 else f" from {piece.words}"
    return f"{value:.3g} {unit}{where} may be anything from {low:.3g} to {high:.3g}"


def _where(evidence: Evidence, pieces: list[Piece]) -> str:
    if len(evidence.pieces) == 1:
        return ""
    return " from " + " and ".join(piece.words for piece in pieces)


# ---- single times -------------------------------------------------------------------------------


def _quantised(evidence: Evidence) -> Notice | None:
    minimum = float(evidence.centres.median.min())
    if evidence.tick_us <= _COARSE * minimum or evidence.tick_us <= 0.0:
        return None
    at = int(np.argmin(evidence.centres.median))
    return Notice.of_stage(
        evidence.name,
        "quantised_clock",
        f"the clock steps by {evidence.tick_us:.3g} µs, and times of "
        f"{format_bytes(round(evidence.centres.x[at]))} are only {minimum:.3g} µs; time several "
        "repetitions at once",
        clock_us=evidence.tick_us,
    )


def _outliers(evidence: Evidence, stage: StageFit) -> Notice | None:
    robust = evidence.method is FitMethod.ROBUST
    many = stage.outliers if robust else _far(evidence)
    share = many / stage.num_samples
    if share < _SHARE or (share < _LARGE_SHARE and stage.outlier_influence < _INFLUENCE and robust):
        return None
    lie, were, count, them = (
        ("lies", "was", "counts", "it") if many == 1 else ("lie", "were", "count", "them")
    )
    effect = (
        f"{were} weighted down; with {them} fitted times would move by "
        f"{_at_most(stage.outlier_influence)}"
        if robust
        else f"{count} in full here: {evidence.method} least squares follows {them}"
    )
    return Notice.of_stage(
        evidence.name,
        "outliers",
        f"{many} of {stage.num_samples} times ({share:.0%}) {lie} far off the others and {effect}",
        outliers=many,
        samples=stage.num_samples,
    )


def _at_most(share: float) -> str:
    if share < _HARDLY:
        return f"less than {_HARDLY:.1%}"
    return f"up to {share:.0%}" if share >= 0.01 else f"up to {share:.1%}"


def _far(evidence: Evidence) -> int:
    """Samples far from the centre of their size, whatever the line."""
    return int(np.round(np.sum(evidence.centres.count - evidence.centres.n)))


def _warm_up(evidence: Evidence) -> Notice | None:
    samples, z = evidence.samples, evidence.centres.z
    m = len(samples.sizes)
    if m > MAX_CELLS or int(samples.count.min()) < _FEW_REPETITIONS:
        return None
    group, c = samples.group, samples.c
    first = samples.first[group]
    below = np.add.reduceat(c * ((samples.y < first) + 0.5 * (samples.y == first)), samples.start)
    rank = float(np.mean(below / np.add.reduceat(c, samples.start)))
    excess = float(np.median(samples.first / np.maximum(z, 5e-324))) - 1.0
    if (rank - 0.5) * (12.0 * m) ** 0.5 < _SURE or excess < _OFF:
        return None
    slow = int(np.sum(samples.first > z))
    return Notice.of_stage(
        evidence.name,
        "warm_up",
        f"the first repetition is slower than the rest at {slow} of {m} "
        f"sizes, by {excess:.0%} in the middle; leave first repetitions out",
        sizes=slow,
        relative_excess=excess,
    )


def _drift(evidence: Evidence) -> Notice | None:
    found = evidence.samples.drift
    if abs(found.change) >= _OFF:
        way = "rise" if found.change > 0.0 else "fall"
        moved = f"{way} by {abs(found.change):.0%} from the first to the last repetitions"
    elif found.deviation >= _OFF:
        moved = f"of all sizes move together, by {found.deviation:.0%} in the mean of the file"
    else:
        return None
    return Notice.of_stage(
        evidence.name,
        "drift_found",
        f"times {moved}; the intervals allow for that",
        relative_change=found.change,
        relative_deviation=found.deviation,
    )
