"""What the time of whole messages says about how their steps run.

Source    theory of abstract stages: steps that overlap count with the larger time, steps of one
          processor with the sum. A total below the sum of the steps means that some overlap; above
          it, that something between them was not measured.
Notation  rows of the trace; S the sum of a row's steps, T its total; n steps.
Cost      O(rows n) for at most some thousand rows; all runs of neighbours up to LONGEST are tried,
          and all pairs of disjoint ones where n is small.
Traps     outliers strike step and total of the same row together, so rows are compared and not
          medians. Two groups may explain a total equally well: the smallest is named, and it stays
          a suggestion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from domain.fit import WholeMessages
from domain.pipeline import Stage
from domain.solution import Notice
from fitting.samples import Floats

LONGEST = 4
_MAX_ROWS = 2_000
_MAX_SIZES = 512
_MAX_FOR_PAIRS = 12
_APART = 0.03  # of the total; totals closer to the sum agree with it
_EXPLAINED = 0.25  # of what is missing may be left

Run = tuple[int, int]  # first and last step, both included


def explain_total(
    message_bytes: Sequence[int],
    columns: Sequence[tuple[str, Sequence[float]]],
    total_us: Sequence[float],
) -> list[Notice]:
    """Return what to say where totals and sums of the steps disagree; [] where they agree."""
    chosen = np.unique(np.linspace(0, len(total_us) - 1, _MAX_ROWS).astype(np.int64))
    steps = np.array([np.asarray(times, np.float64)[chosen] for _, times in columns])
    total = np.asarray(total_us, np.float64)[chosen]
    sizes = np.asarray(message_bytes, np.int64)[chosen]
    kept = (total > 0.0) & (steps.sum(axis=0) > 0.0)
    if not kept.any():
        return []
    steps, total, sizes = steps[:, kept], total[kept], sizes[kept]
    off = total / steps.sum(axis=0) - 1.0
    names = [name for name, _ in columns]
    if _share(off < -_APART) > 0.5:
        return [_overlap(names, steps, total, float(np.median(off)))]
    if _share(off > _APART) > 0.5:
        return [_not_measured(steps, total, sizes)]
    return []


def timed_whole(
    message_bytes: Sequence[int], total_us: Sequence[float], stages: Sequence[Stage]
) -> tuple[WholeMessages, ...]:
    """Return the medians of whole messages by size beside the stages' sum, of at most 512 sizes."""
    sizes, total = np.asarray(message_bytes, np.int64), np.asarray(total_us, np.float64)
    order = np.lexsort((total, sizes))
    sizes, total = sizes[order], total[order]
    distinct, starts = np.unique(sizes, return_index=True)
    ends = np.append(starts[1:], len(sizes))
    chosen = np.unique(np.linspace(0, len(distinct) - 1, _MAX_SIZES).astype(np.int64))
    return tuple(
        WholeMessages(
            size := int(distinct[at]),
            int(ends[at] - starts[at]),
            float(np.median(total[starts[at] : ends[at]])),
            sum(stage.time_us(size) for stage in stages),
        )
        for at in chosen
    )


def _share(rows: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float:
    return float(np.mean(rows))


def _overlap(names: list[str], steps: Floats, total: Floats, off: float) -> Notice:
    start = f"messages take {-off:.0%} less than the sum of their steps (median)"
    runs = _best(steps, total)
    if runs is None:
        return Notice(
            "steps_overlap",
            f"{start}: some of them overlap, and no single group of neighbouring steps explains "
            "the totals; state groups with combine: overlap",
        )
    stated = " and ".join(", ".join(names[low : high + 1]) for low, high in runs)
    return Notice(
        "steps_overlap",
        f"{start}; that is explained where these run at the same time: {stated}. To make them one "
        "stage, state a group with combine: overlap",
    )


def _best(steps: Floats, total: Floats) -> tuple[Run, ...] | None:
    """The fewest steps that explain the totals about as well as any do."""
    saved = {
        (low, high): steps[low : high + 1].sum(axis=0) - steps[low : high + 1].max(axis=0)
        for low, high in _runs(len(steps))
    }
    whole = steps.sum(axis=0)
    missing = float(np.median(np.abs(total - whole) / total))
    misfit = {
        runs: float(np.median(np.abs(total - whole + sum(saved[run] for run in runs)) / total))
        for runs in _sets(list(saved), len(steps))
    }
    if not misfit or min(misfit.values()) > _EXPLAINED * missing:
        return None
    close = min(misfit.values()) * 1.2 + 1e-3
    return min(
        (runs for runs, value in misfit.items() if value <= close),
        key=lambda runs: (sum(high - low for low, high in runs), len(runs), misfit[runs]),
    )


def _runs(n: int) -> Iterator[Run]:
    for width in range(2, min(n, LONGEST) + 1):
        yield from ((low, low + width - 1) for low in range(n - width + 1))


def _sets(runs: list[Run], n: int) -> Iterator[tuple[Run, ...]]:
    yield from ((run,) for run in runs)
    if n <= _MAX_FOR_PAIRS:
        yield from (pair for pair in combinations(sorted(runs), 2) if pair[0][1] < pair[1][0])


def _not_measured(
    steps: Floats, total: Floats, sizes: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> Notice:
    left = total - steps.sum(axis=0)
    more = float(np.median(left / total))
    small, large = (float(np.median(left[sizes == at])) for at in (sizes.min(), sizes.max()))
    return Notice(
        "time_not_measured",
        f"messages take longer than the sum of their steps, by {more:.0%} of their "
        f"time (median; {small:.3g} µs at the smallest size, {large:.3g} µs at the "
        "largest): a step is missing in the trace",
    )
