"""Times the Python client's reader of table files, in a process of its own: JSON on its output.

    python -m bench.reader_child TABLE.slt SIZES

SIZES is a text file of message sizes, one a line. The client is found by PYTHONPATH, as an
installed one would be by the interpreter. Figures are ns for one lookup: the mean of one pass over
all sizes, and of these the median over the passes.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sluice_client import Table

_PASSES = 15


def main() -> None:
    """Read, look up, print."""
    path, sizes_file = sys.argv[1:]
    sizes = [int(line) for line in Path(sizes_file).read_text().split()]
    table = Table.open(path)
    schedules = [table.schedule(size) for size in sizes]
    few = [size for size, cut in zip(sizes, schedules, strict=True) if len(cut) <= 8]
    reported = {
        "repeat_ns": _per_lookup_ns(table.repeat, sizes),
        "schedule_ns": _per_lookup_ns(table.schedule, sizes),
        "short_schedule_ns": _per_lookup_ns(table.schedule, few) if few else None,
        "mean_fragments": statistics.fmean(map(len, schedules)),
        "open_ns": _open_ns(path),
    }
    print(json.dumps(reported))


def _per_lookup_ns(lookup: Callable[[int], object], sizes: Sequence[int]) -> float:
    return statistics.median(_pass_ns(lookup, sizes) for _ in range(_PASSES))


def _pass_ns(lookup: Callable[[int], object], sizes: Sequence[int]) -> float:
    started_ns = time.perf_counter_ns()
    for size in sizes:
        lookup(size)
    return (time.perf_counter_ns() - started_ns) / len(sizes)


def _open_ns(path: str) -> float:
    def opened() -> float:
        started_ns = time.perf_counter_ns()
        Table.open(path).close()
        return time.perf_counter_ns() - started_ns

    return statistics.median(opened() for _ in range(_PASSES))


if __name__ == "__main__":
    main()
