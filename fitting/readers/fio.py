"""fio: completion latencies of each block size, as the stage of storage that they are.

    {"fio version": "fio-3.33", "jobs": [{"job options": {"bs": "4k", "iodepth": "1"},
     "read": {"io_bytes": 8388608, "total_ios": 2048, "clat_ns": {"percentile": {...}}}}]}

of --output-format=json (or json+; other forms are refused), and the log of --write_lat_log, a row
an I/O:

    3, 145345, 0, 4096, 0          time in ms, latency in ns, 0 for a read, block size, offset

Of a job's percentiles the deciles from 10 to 90 are taken, each as one time; where they are not
printed, the mean. Of several I/Os at once (conditions `iodepth` and `numjobs`) each waits in a
queue: they are taken where no job has one at a time, or where they are chosen. Jobs of several
block sizes are left out. Reads are the stage "read", writes "write", and a job that mixes them is
left out. A log does not say what it holds: its name does, or the user, as fio_clat or fio_lat; one
of bandwidths, of I/Os a second, or of times in which I/Os are handed over has no time of a stage.
"""

from __future__ import annotations

import re
from math import prod
from typing import Any

from domain.errors import UnitMismatch
from domain.measurement import DirectTrace, Reading, Samples, TraceKind
from domain.solution import Notice
from domain.units import parse_bytes
from fitting.contract import JSON_BEGINS, NamedTests, ReaderSpec, mark
from fitting.readers.stage_rows import StageRows
from fitting.readers.text import (
    check_kind,
    decoded,
    first_lines,
    format_left_out,
    format_sizes,
    lines_of,
    refuse,
    size_of,
)
from fitting.readers.tool_json import documents_of, number, part, parts, tool_of, whole

JSON_FORMAT, LOG_FORMAT = "fio JSON", "fio latency log"
_ROW = re.compile(r"^([0-9]{1,15}), ([0-9]{1,18}), ([012]), ([0-9]{1,15})(?:, [0-9x]{1,20}){0,3}$")
_BEGINS = re.compile(_ROW.pattern, re.MULTILINE)
_DIRECTIONS = ("read", "write", "trim")
_DECILES = tuple(f"{tens}0.000000" for tens in range(1, 10))
_NS_PER_US, _US_PER_US = 1e3, 1.0
_MIN_ROWS = 2  # of those at the beginning that have to look like a log's
_QUEUES = ("iodepth", "numjobs")
_KEY = '"fio version"'
_TERSE = re.compile(r"^[2-5];fio-[0-9.]{1,12};", re.MULTILINE)
_SUMMARY = re.compile(r"^[^\n:]{1,100}: \(g=[0-9]{1,6}\): rw=[a-z]{2,12}, bs=", re.MULTILINE)
_TESTS = re.compile(r"^(?:fio_)?(clat|slat|lat|bw|iops)$", re.IGNORECASE)
_NOT_SAID = "what the log is of: clat, slat or lat, which only its name tells"
_NO_TIMES = {"bw": "of bandwidths", "iops": "of I/Os a second"}


def _detects_json(head: str) -> bool:
    return tool_of(head) == "fio" or _is_other_form(head)


def _is_other_form(text: str) -> bool:
    """Whether this is what fio prints for people or in one line, and no JSON."""
    if _KEY in text:
        return False
    has_summary = ": (g=" in text and _SUMMARY.search(text) is not None
    return has_summary or _TERSE.search(text) is not None


def _read_json(content: bytes, kind: TraceKind | None) -> Reading:
    rows, versions, statistics = StageRows(), dict[str, None](), dict[str, None]()
    left_out: dict[str, int] = {}
    text = decoded(content)
    if _is_other_form(text):
        form = "terse output" if _TERSE.search(text) else "summary"
        refuse(
            f"the {form} of fio is not read: run it with --output-format=json, or with "
            "--write_lat_log, one block size and --iodepth=1 a job"
        )
    for document in documents_of(text):
        versions[str(document.get("fio version"))[:40]] = None
        common = part(document, "global options")
        for job in parts(document, "jobs"):
            why = _take_job(job, {**common, **part(job, "job options")}, rows, statistics)
            if why:
                left_out[why] = left_out.get(why, 0) + 1
    listed = "; ".join(f"{count} {why}" for why, count in left_out.items())
    trace = rows.trace()
    if trace is None:
        refuse(f"no job of fio that can be read; left out are {listed or 'none'}")
    stated = [
        ("format", f"{JSON_FORMAT}, {', '.join(versions)[:100]}"),
        ("time_unit", "ns, turned into µs"),
        ("measured", "completion latency (clat) of each I/O"),
        ("statistic", ", ".join(statistics)),
    ]
    if listed:
        stated.append(("jobs_left_out", listed))
    return _reading(JSON_FORMAT, trace, rows, kind, stated)


def _take_job(
    job: dict[str, Any], options: dict[str, Any], rows: StageRows, statistics: dict[str, None]
) -> str:
    """Take the times of a job, or return why not."""
    busy = [name for name in _DIRECTIONS if (whole(part(job, name), "total_ios") or 0) > 0]
    if len(busy) != 1 or busy == ["trim"]:
        return "with reads and writes mixed" if len(busy) > 1 else "without reads or writes"
    queues = [(name, str(options.get(name, "1"))[:20]) for name in _QUEUES]
    if any(size_of(value) is None for _, value in queues):
        return "of a number of I/Os at once that is none"
    result = part(job, *busy)
    size = _block_bytes(result, options, busy[0])
    if size is None:
        return "of several block sizes (fio's latency log has each)"
    clat, scale = part(result, "clat_ns"), _NS_PER_US
    if not clat:
        clat, scale = part(result, "clat"), _US_PER_US
    quantiles = part(clat, "percentile")
    times = [number(quantiles, key) for key in _DECILES]
    statistic = "deciles from 10 to 90 % of each job"
    if None in times:
        times, statistic = [number(clat, "mean")], "mean of each job"
    known = [time for time in times if time is not None]
    if not known:
        return "without completion latencies"
    stage, at_once = rows.of(busy[0]), prod(max(1, int(value)) for _, value in queues)
    stage.begin_size(size, at_once=at_once, named=tuple(queues), is_spare=at_once > 1)
    for time in known:
        stage.add(size, time / scale)
    statistics[statistic] = None
    return ""


def _block_bytes(result: dict[str, Any], options: dict[str, Any], direction: str) -> int | None:
    """The one block size of a job; None where it had several, or nobody can tell."""
    if any(name in options for name in ("bsrange", "bssplit", "blocksize_range")):
        return None
    total, ios = whole(result, "io_bytes"), whole(result, "total_ios")
    named = options.get("bs", options.get("blocksize"))
    if isinstance(named, str):
        words = named.split(",")
        word = words[min(_DIRECTIONS.index(direction), len(words) - 1)]
        try:
            return parse_bytes(word)
        except UnitMismatch:
            return None
    if not total or not ios or total % ios:
        return None
    return total // ios


def _detects_log(head: str) -> bool:
    lines = first_lines(head, 20)
    whole_lines = lines if len(lines) < 20 and head.endswith("\n") else lines[:-1]
    return len(whole_lines) >= _MIN_ROWS and all(map(_ROW.match, whole_lines[:8]))


def _read_log(content: bytes, kind: TraceKind | None, test: str = "") -> Reading:
    found = _TESTS.match(test)
    holds = found.group(1).lower() if found else ""
    if holds in _NO_TIMES:
        refuse(f"a log {_NO_TIMES[holds]} has no times: pass that of --write_lat_log, *_clat.*.log")
    if holds == "slat":
        refuse(
            "a log of submission latencies has the time in which an I/O is handed over, and not "
            "that of the stage: pass *_clat.*.log"
        )
    rows, mixed = StageRows(), 0
    for line in lines_of(content):
        found = _ROW.match(line.text)
        if found is None or not line.is_whole:
            rows.of("read").leave_out("cut off or not a row of the log")
            continue
        _, value, direction, size = found.groups()
        if direction == "2":
            rows.of("trim").leave_out("of trims")
            continue
        mixed |= 1 << int(direction)
        rows.of(_DIRECTIONS[int(direction)]).add(size_of(size) or 0, int(value) / _NS_PER_US)
    if mixed == 3:
        refuse(
            "the log has reads and writes mixed, which hold each other up: run fio with --rw=read, "
            "write, randread or randwrite"
        )
    trace = rows.trace()
    if trace is None:
        refuse(
            "no row of the log has a block size and a latency; logs of bandwidths and of I/Os a "
            "second are not read"
        )
    stated = [
        ("format", LOG_FORMAT),
        ("time_unit", "ns is assumed, turned into µs"),
        ("measured", f"{holds}, as you said" if holds else _NOT_SAID),
        ("statistic", "every row"),
    ]
    said = (
        f"{holds} is taken to be in ns, and of one I/O at a time (fio before version 3 wrote µs)"
        if holds
        else "the log does not say what it holds: taken as latencies in ns, as of --write_lat_log "
        "and one I/O at a time (fio before version 3 wrote µs; logs of bandwidths look the same)"
    )
    notice = Notice("unit_assumed", said)
    return _reading(LOG_FORMAT, trace, rows, kind, stated, notice)


def _reading(
    format_name: str,
    trace: DirectTrace,
    rows: StageRows,
    kind: TraceKind | None,
    stated: list[tuple[str, str]],
    *notices: Notice,
) -> Reading:
    check_kind(trace, kind, format_name)
    counted = format_sizes(Samples(trace.message_bytes, trace.stage_us[0]))
    left_out = format_left_out(*rows.stages.values())
    return Reading(format_name, trace, (*stated, *counted, *left_out), notices, (rows.spans(),))


JSON_SPEC = ReaderSpec(
    format=JSON_FORMAT,
    about="fio --output-format=json: a stage of storage",
    layout='JSON with "fio version" and "jobs"',
    marks=(
        mark('the key "fio version"', r'"fio version"'),
        mark('the key "jobs"', r'"jobs"\s*:'),
    ),
    detects=_detects_json,
    read=_read_json,
    begins=JSON_BEGINS,
)
LOG_SPEC = ReaderSpec(
    format=LOG_FORMAT,
    about="fio --write_lat_log: a stage of storage, every I/O",
    layout="rows of time in ms, latency in ns, direction, block size",
    marks=(mark("rows of four whole numbers after each other", _ROW.pattern),),
    detects=_detects_log,
    read=_read_log,
    begins=_BEGINS,
    named=NamedTests(_TESTS, "fio_clat", _read_log),
)
