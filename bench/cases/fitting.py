"""Fits: errors against known truth and time against peers, and long traces through the service."""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import psutil

from bench.client import Connection
from bench.fits.peers import Found, Peer, line_peers, range_peers
from bench.fits.truth import (
    AFTER,
    BEFORE,
    NS_PER_BYTE,
    OVERHEAD_US,
    SWITCH_BYTES,
    Data,
    direct_csv,
    one_line,
    with_switch,
)
from bench.service import RunningService, serving
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.timing import interleaved

ERROR_TARGET = 0.01
MILLION_TARGET_S = 5.0
MEMORY_TARGET_MIB = 512.0
_OUTLIERS = (0.0, 0.1, 0.25)
_POLL_S = 0.005
_MIB = 2**20


def _run(effort: Effort) -> CaseResult:
    line_tables, line_checks = _lines(effort)
    rows, row_checks = _long_traces(effort)
    notes = () if len(range_peers()) > 1 else ("pycewise is not installed here: left out",)
    return CaseResult(
        (*line_tables, *_switches(effort), _reading(effort), rows), line_checks + row_checks, notes
    )


# ---- one line -----------------------------------------------------------------------------------


def _lines(effort: Effort) -> tuple[list[Table], tuple[Check, ...]]:
    tables, checks = [], list[Check]()
    for share in _OUTLIERS:
        draws = [one_line(s, outlier_share=share) for s in range(effort.pick(100, quick=10))]
        errors = {name: _median_errors(peer, draws) for name, peer in line_peers().items()}
        times = _times_ms(line_peers(), draws[0], effort)
        tables.append(_line_table(share, len(draws), errors, times))
        if share == max(_OUTLIERS):
            for what, value in zip(("overhead", "cost"), errors["sluice robust"], strict=True):
                title = f"median error of {what}, robust, {100 * share:.0f} % outliers"
                checks.append(Check(title, value, ERROR_TARGET, "relative"))
    return tables, tuple(checks)


def _median_errors(peer: Peer, draws: list[Data]) -> tuple[float, float]:
    found = [peer(data).lines[0] for data in draws]
    return (
        statistics.median(abs(overhead / OVERHEAD_US - 1.0) for overhead, _ in found),
        statistics.median(abs(cost / NS_PER_BYTE - 1.0) for _, cost in found),
    )


def _line_table(
    share: float,
    draws: int,
    errors: dict[str, tuple[float, float]],
    times: dict[str, tuple[float, float]],
) -> Table:
    rows = tuple((name, times[name][0], times[name][1], *errors[name]) for name in errors)
    return Table(
        f"One line, {100 * share:.0f} % outliers, 15 sizes x 20 repetitions, {draws} draws",
        ("method", "time / robust", "median ms", "overhead off by", "cost off by"),
        rows,
        is_detail=share < max(_OUTLIERS),
    )


def _times_ms(peers: dict[str, Peer], data: Data, effort: Effort) -> dict[str, tuple[float, float]]:
    """For each peer the ratio to the first of them, and its median."""
    sides: dict[str, Callable[[], Found]] = {
        name: partial(peer, data) for name, peer in peers.items()
    }
    timed = interleaved(sides, rounds=effort.pick(15, quick=3))
    reference = timed[next(iter(timed))].timing
    return {
        name: (side.timing.ratio_to(reference), side.timing.median_ms)
        for name, side in timed.items()
    }


# ---- switches -----------------------------------------------------------------------------------


def _switches(effort: Effort) -> Iterator[Table]:
    number = effort.pick(20, quick=3)
    for share in (0.0, 0.25):
        with_one = [with_switch(seed, outlier_share=share) for seed in range(number)]
        without = [one_line(seed, outlier_share=share) for seed in range(number)]
        times = _times_ms(range_peers(), with_one[0], effort)
        rows = tuple(
            (name, *times[name], *_switch_row(peer, with_one, without))
            for name, peer in range_peers().items()
        )
        yield Table(
            f"A switch at {SWITCH_BYTES} bytes, {100 * share:.0f} % outliers, {number} draws with "
            f"and {number} without one",
            (
                "method",
                "time / sluice",
                "median ms",
                "found, and only it",
                "invented",
                "overheads off by",
                "costs off by",
            ),
            rows,
            is_detail=True,
        )


def _switch_row(peer: Peer, with_one: list[Data], without: list[Data]) -> tuple[Cell, ...]:
    found = [peer(data) for data in with_one]
    right = [one for one in found if one.ends_bytes == (SWITCH_BYTES,)]
    invented = sum(bool(peer(data).ends_bytes) for data in without)
    errors = [
        statistics.median(
            abs(line[i] / truth[i] - 1.0)
            for one in right
            for line, truth in zip(one.lines, (BEFORE, AFTER), strict=True)
        )
        if right
        else None
        for i in (0, 1)
    ]
    return f"{len(right)} of {len(found)}", f"{invented} of {len(without)}", *errors


# ---- long traces --------------------------------------------------------------------------------


def _reading(effort: Effort) -> Table:
    """Reading and fitting in this process."""
    import fitting

    rows: list[tuple[Cell, ...]] = []
    for number in effort.pick((1_000, 10_000, 100_000, 1_000_000), quick=(1_000, 10_000)):
        content = direct_csv(number)
        started_s = time.perf_counter()
        reading = fitting.read(content)
        read_s = time.perf_counter() - started_s
        fitting.fit([reading])
        whole_s = time.perf_counter() - started_s
        rows.append((f"{number:,}", number / whole_s, read_s, whole_s - read_s))
    return Table(
        "Reading and fitting a direct trace of five stages in one process",
        ("rows", "rows per s", "reading s", "fitting s"),
        tuple(rows),
        is_detail=True,
    )


def _long_traces(effort: Effort) -> tuple[Table, tuple[Check, ...]]:
    """POST /fit of a service on SQLite, nothing stored and stored."""
    number = effort.pick(1_000_000, quick=20_000)
    content = direct_csv(number)
    posted: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'bench.db'}"
        for name, path in (("fitted", "/fit"), ("fitted and stored", "/fit?save_as=long")):
            with serving(url) as service:
                posted[name] = _posted(service, path, content)
    table = Table(
        f"{number:,} rows through POST /fit",
        ("request", "rows per s", "seconds", "peak MiB, service and children", "MiB sent"),
        tuple(
            (name, number / seconds, seconds, peak_mib, len(content) / _MIB)
            for name, (seconds, peak_mib) in posted.items()
        ),
    )
    slowest_s, max_mib = (max(figures[i] for figures in posted.values()) for i in (0, 1))
    return table, (
        Check(f"{number:,} rows through POST /fit, slowest", slowest_s, MILLION_TARGET_S, "s"),
        Check("its peak memory, all processes", max_mib, MEMORY_TARGET_MIB, "MiB"),
    )


def _posted(service: RunningService, path: str, content: bytes) -> tuple[float, float]:
    """Seconds that the request took, and the most memory that all processes held meanwhile."""
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: text/csv\r\n"
    request = f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content
    connection = Connection(service.port)
    try:
        with _watched(service.process) as peaks:
            started_s = time.perf_counter()
            status, body = connection.ask(request)
            seconds = time.perf_counter() - started_s
    finally:
        connection.close()
    if status != 200:
        raise RuntimeError(f"POST {path} answered {status}: {body[:200]!r}")
    return seconds, max(peaks) / _MIB


@contextmanager
def _watched(process: psutil.Process) -> Iterator[list[int]]:
    """Resident bytes of a process and its children, looked at every few milliseconds."""
    peaks, done = [_resident(process)], threading.Event()

    def watch() -> None:
        while not done.wait(_POLL_S):
            peaks.append(_resident(process))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peaks
    finally:
        done.set()
        watcher.join()


def _resident(process: psutil.Process) -> int:
    total = 0
    for member in (process, *process.children(recursive=True)):
        try:
            total += int(member.memory_info().rss)
        except psutil.NoSuchProcess:
            continue
    return total


def _read_and_fit() -> AbstractContextManager[Callable[[], object]]:
    import fitting

    content = direct_csv(100_000)
    return nullcontext(lambda: fitting.fit([fitting.read(content)]))


SPEC = BenchSpec(
    name="fitting",
    title="From measurements to stages",
    about=(
        "Errors are medians over draws of synthetic measurements with known truth: sizes over "
        "five decades, 2 % multiplicative noise, outliers of 2 to 8 times the time. Our times "
        "include intervals, diagnostics and warnings, which the peers do not compute."
    ),
    run=_run,
    workloads={"100,000 rows": _read_and_fit},
)
