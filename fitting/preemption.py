"""Times that jump because others wanted the processor: by duration, not by size.

Source    a scheduler lets a thread run for a slice of some milliseconds, then the others that wait.
Notation  of a jump: `before` what the line before it says of its last size, `expected` what it says
          of the next one, `after` what the line behind it says of that one, in µs.
Cost      a fit more for every stage that is found so.
Exact     no: two stages that switch at the same duration by chance, at different sizes, look so.
Traps     a stage alone cannot tell a slice from a switch: several that jump between the same
          durations, at sizes of their own, can. Stages that wait, for a disk or a network, do not.
          All sizes behind such a jump are slowed down, and no line of theirs is that of the stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from domain.fit import FitOptions, SizeFit, StageFit
from domain.solution import Notice
from domain.units import format_bytes
from fitting.goodness import misfit_of
from fitting.stage import fit_stage

_MIN_US, _MAX_US = 1_500.0, 50_000.0  # of a slice
_MIN_JUMP_US, _MIN_JUMP = 1_000.0, 0.3  # beyond what was expected, and relative to that
_TOLERANCE = 1.1  # that noise of lines is granted
_MIN_SIZES = 3  # before a jump, for a line of their own

Fitted = tuple[StageFit, tuple[Notice, ...]]
Column = tuple[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class _Jump:
    """Of one stage, by its place: the last size before it and the two durations it lies between."""

    stage: int
    last_bytes: int
    before_us: float
    expected_us: float


def without_preempted(
    fitted: Sequence[Fitted],
    message_bytes: Sequence[int],
    columns: Sequence[Column],
    options: FitOptions,
) -> tuple[list[Fitted], tuple[Notice, ...]]:
    """Return the fits of all stages, those that others slowed down by the sizes before that alone,
    and what is to be said of it. `columns` are the times of the stages in µs, (N,) each.
    """
    out = list(fitted)
    jumps = [jump for place, (stage, _) in enumerate(fitted) for jump in _jumps(place, stage)]
    found = _same_duration(jumps)
    if not found:
        return out, ()
    x = np.asarray(message_bytes, dtype=np.int64)
    for jump in found:
        stage, _ = fitted[jump.stage]
        if sum(size.message_bytes <= jump.last_bytes for size in stage.sizes) < _MIN_SIZES:
            continue
        kept = x <= jump.last_bytes
        times = np.asarray(columns[jump.stage][1], dtype=np.float64)[kept]
        again, notices = fit_stage(stage.name, x[kept].tolist(), times.tolist(), options)
        out[jump.stage] = (_with_slowed(again, stage, jump.last_bytes), notices)
    return out, (_notice(found, [stage.name for stage, _ in fitted]),)


def _jumps(place: int, stage: StageFit) -> list[_Jump]:
    """The first jump of a stage that may be a slice's end, if there is one."""
    for left, right in pairwise(stage.lines):
        last, following = left.to_bytes, right.from_bytes
        before, expected = (
            left.overhead_us + left.ns_per_byte * x / 1000.0 for x in (last, following)
        )
        after = right.overhead_us + right.ns_per_byte * following / 1000.0
        jumped = after - expected >= max(_MIN_JUMP_US, _MIN_JUMP * expected)
        if jumped and expected >= _MIN_US and before <= _MAX_US:
            return [_Jump(place, last, before, expected)]
    return []


def _same_duration(jumps: Sequence[_Jump]) -> list[_Jump]:
    """The most jumps that hold one duration between them, of two stages or more at two sizes."""
    best = list[_Jump]()
    for at in jumps:
        slice_us = max(at.before_us, _MIN_US)
        same = [
            jump
            for jump in jumps
            if jump.before_us <= slice_us * _TOLERANCE and slice_us <= jump.expected_us * _TOLERANCE
        ]
        if len({jump.last_bytes for jump in same}) >= 2 and len(same) > len(best):
            best = same
    return best


def _with_slowed(again: StageFit, first: StageFit, last_bytes: int) -> StageFit:
    """The fit to the sizes before the jump, with all sizes that were measured."""
    model = again.to_stage()
    behind = [size for size in first.sizes if size.message_bytes > last_bytes]
    slowed = [_slowed(size, model.time_us(size.message_bytes)) for size in behind]
    sizes = (*again.sizes, *slowed)
    more = sum(size.num_samples for size in slowed)
    line = again.lines[-1]
    return replace(
        again,
        lines=(*again.lines[:-1], replace(line, num_samples=line.num_samples + more)),
        sizes=sizes,
        num_samples=again.num_samples + more,
        outliers=again.outliers + more,
        misfit=misfit_of(sizes),
    )


def _slowed(size: SizeFit, fitted_us: float) -> SizeFit:
    return replace(
        size,
        fitted_us=fitted_us,
        relative_residual=(size.median_us - fitted_us) / fitted_us,
        outliers=size.num_samples,
    )


def _notice(found: Sequence[_Jump], names: Sequence[str]) -> Notice:
    low = max(jump.before_us for jump in found)
    high = max(low, min(jump.expected_us for jump in found))
    stated = ", ".join(
        f"{names[jump.stage]} above {format_bytes(jump.last_bytes)}" for jump in found
    )
    slice_us = (low * high) ** 0.5
    return Notice(
        "preempted",
        f"times jump at {slice_us / 1000.0:.2g} ms in several stages ({stated}): others wanted the "
        "processor. What lies above counts for no line; measure on an idle machine",
        values=(("slice_us", slice_us), ("stages", len(found))),
    )
