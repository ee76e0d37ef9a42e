"""The line of messages that are queued one behind the other, as the all-reduces of gradients are.

Source    own; weights as in fitting/weighted.py.
Notation  x sizes in bytes, y what one of several queued messages of a size takes, µs.
Exact     relative least squares, both parameters >= 0.
Traps     a message by itself is no such time: behind a limit that lets a burst pass after a pause
          it is faster than in a flow, and its start may be hidden behind the one in front, or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import NamedTuple

import numpy as np

from domain.errors import InvalidInput
from domain.pipeline import Stage
from fitting.weighted import weighted_line

MIN_SIZES = 3  # two are always on a line, which then says nothing of its misfit


class QueuedLine(NamedTuple):
    """The cost of a queued message, and by what share the line misses a measured time at most."""

    stage: Stage
    misfit: float


def queued_line(times_us: Mapping[int, float], name: str = "all-reduce") -> QueuedLine:
    """Return the line of these times (µs) by message size in bytes.

    Raises InvalidInput for fewer than three sizes, a size below 1, or a time that is not positive.
    """
    if len(times_us) < MIN_SIZES:
        raise InvalidInput(f"expected times of at least {MIN_SIZES} sizes", field="times_us")
    for size, time_us in times_us.items():
        if size < 1 or not (isfinite(time_us) and time_us > 0.0):
            raise InvalidInput(
                "expected sizes of at least 1 byte and times above 0", field=f"times_us.{size}"
            )
    sizes = np.array(sorted(times_us), dtype=np.float64)
    times = np.array([times_us[size] for size in sorted(times_us)])
    x, y = sizes / sizes[-1], times / times.max()
    line = weighted_line(x, y, np.ones(len(x)))
    slowest, largest = float(times.max()), float(sizes[-1])
    stage = Stage.of_line(
        name,
        overhead_us=line.a * slowest,
        ns_per_byte=1000.0 * line.b * slowest / largest,
    )
    return QueuedLine(stage, float(np.max(np.abs(line.at(x) - y) / y)))
