"""A problem of items as arrays, and the kernels that read them.

Source    docs/theory.md, "Items".
Notation  m items, n stages; columns u = 0 .. m stand for the first u items.
Cost      O(m n), once for each problem.
Exact     costs of stages with several ranges are looked up by the kernels.
Traps     the pipeline's constant delay is in none of these.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from domain.items import ItemProblem
from domain.machine import Window
from solvers.kernels import active
from solvers.kernels.items import ItemArrays, PlainItems
from solvers.kernels.native_items import NativeItems

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_PLAIN = PlainItems()


def item_kernels() -> NativeItems | PlainItems:
    """Return the kernels that this process computes with."""
    return _PLAIN if active.NATIVE is None else active.NATIVE.items


def arrays_of(problem: ItemProblem) -> ItemArrays:
    """Return the arrays of this problem, made once. Raises Infeasible where no cut is admitted."""
    return problem.derived(_arrays)


def _arrays(problem: ItemProblem) -> ItemArrays:
    problem.check_feasible()
    sequence, stages = problem.sequence, problem.pipeline.stages
    ends = np.array(sequence.ends_bytes, dtype=np.int64)
    spent, overheads = np.zeros((len(stages), len(ends))), np.zeros(len(stages))
    for place, (stage, column) in enumerate(zip(stages, problem.item_us, strict=True)):
        if column is not None:
            spent[place, 1:] = np.cumsum(column)
        if stage.is_line:
            overheads[place] = stage.ranges[0].overhead_us
            spent[place] += stage.ranges[0].ns_per_byte * ends / 1000.0
    counts = np.array([len(stage.ranges) for stage in stages], dtype=np.int64)
    parts = [part for stage in stages for part in stage.ranges]
    most = min(problem.max_fragments or len(sequence), len(sequence))
    windows = [window for window in problem.windows if _may_bind(window, most)]
    return ItemArrays(
        ready_us=np.array(sequence.all_ready_us),
        ends_bytes=ends,
        spent_us=spent,
        overhead_us=overheads,
        ranges=counts,
        first_range=np.cumsum(counts) - counts,
        range_ends_bytes=np.array([part.up_to_bytes or inf for part in parts]),
        range_overhead_us=np.array([part.overhead_us for part in parts]),
        range_ns_per_byte=np.array([part.ns_per_byte for part in parts]),
        earliest=_earliest(problem, ends),
        max_fragments=most,
        window_first=np.array([window.first for window in windows], dtype=np.int64),
        window_last=np.array([window.last for window in windows], dtype=np.int64),
        window_places=np.array([window.fragments or 0 for window in windows], dtype=np.int64),
        window_bytes=np.array([window.bytes or 0 for window in windows], dtype=np.int64),
        window_return_us=np.array([window.return_us for window in windows], dtype=np.float64),
    )


def _may_bind(window: Window, most: int) -> bool:
    """Whether a fragment may wait for a place of this window, of so many fragments at most."""
    is_own_stage = window.first == window.last and window.return_us == 0.0
    is_enough = window.bytes is None and (window.fragments or 0) >= most
    return not (is_own_stage or is_enough)


def _earliest(problem: ItemProblem, ends: Ints) -> Ints:
    """(m+1,) the least i of an admitted fragment (i, j]; a single item always is one."""
    items = np.arange(len(ends))
    first: Ints = np.zeros(len(ends), dtype=np.int64)
    if problem.most_bytes is not None:
        first = np.searchsorted(ends, ends - problem.most_bytes).astype(np.int64)
    if problem.max_fragment_items is not None:
        first = np.maximum(first, items - problem.max_fragment_items)
    return np.maximum(np.minimum(first, items - 1), 0)
