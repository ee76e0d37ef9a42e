"""Which reader a file is for.

Which formats a file that nothing recognises comes near to, and what it lacks of them.

Every format names a few marks that all of its files have. Those that a file has some of are near
it, by the share that it has. Headers of simple tables (`size,time`) get the names that the
project's own CSV would give them. Reported of the file are line numbers, and names of columns that
are short and plain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from domain.errors import UnreadableTrace
from domain.measurement import Reading, TraceKind
from domain.trace_formats import FormatMiss, HeaderHint, TraceFormat, UnrecognisedTrace
from fitting.contract import ReaderSpec
from fitting.own_transfers import is_own_transfers
from fitting.readers import (
    csv_direct,
    csv_messages,
    csv_signature,
    fio,
    gpu_copies,
    imb,
    json_trace,
    nccl_tests,
    netgauge,
    npkit,
    osu,
    perftest,
    perftest_json,
    pingpongs,
    pycewise,
    simgrid,
    sockets,
    ucx_perftest,
    ucx_table,
)
from fitting.readers.text import (
    INTERARRIVAL,
    OF_WHOLE_MESSAGES,
    UNIT,
    is_no_stage,
    is_repetition,
    is_size,
    with_below_zero,
)

MAX_NEAR = 4
_MAX_LINES = 400
_MAX_COLUMNS = 12
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_ .-]{0,39}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9.][0-9.eE+-]*", re.ASCII)
_RATE = re.compile(
    r"(?:[kmgt]i?b(?:it|yte)?s?(?:/s|ps|_s|_per_s)|bandwidth|\brate)\b", re.IGNORECASE
)
_MICROSECONDS = {"us", "usec", "µs", "μs"}


def nearest_formats(head: str, readers: Sequence[ReaderSpec]) -> tuple[FormatMiss, ...]:
    """Return what the file has some marks of, nearest first; none where it has none."""
    lines = _lines(head)
    found = [(*_miss(lines, reader), place) for place, reader in enumerate(readers)]
    near = sorted((-share, -count, place) for share, count, _, place in found if count)
    return tuple(found[place][2] for _, _, place in near[:MAX_NEAR])


def _lines(head: str) -> list[tuple[int, str]]:
    numbered = enumerate(head.splitlines()[:_MAX_LINES], 1)
    return [(number, line.strip()) for number, line in numbered if line.strip()]


def _miss(lines: list[tuple[int, str]], reader: ReaderSpec) -> tuple[float, int, FormatMiss]:
    """The share of its marks that the file has, how many these are, and what is missing."""
    has = {
        number: {mark for mark in reader.marks if mark.pattern.search(line)}
        for number, line in lines
    }
    known = set().union(*has.values())
    at = max(has, key=lambda number: (len(has[number]), -number), default=1)
    missing = tuple(mark.words for mark in reader.marks if mark not in known)
    share = len(known) / len(reader.marks)
    return share, len(known), FormatMiss(reader.format, at, missing)


def header_hint(head: str) -> HeaderHint | None:
    """Return how the header of a simple table would be written; None where there is none to be
    seen.
    """
    content = [line for _, line in _lines(head) if not line.startswith("#")]
    separator, names = _columns(content[0]) if content else (None, [])
    if not 2 <= len(names) <= _MAX_COLUMNS:
        return None
    if separator and all(_NUMBER.fullmatch(name) for name in names):
        return _hint([f"stage{at}_us" for at in range(1, len(names))])
    place = next((at for at, name in enumerate(names) if is_size(name)), None)
    if place is None or any(_NUMBER.fullmatch(name) for name in names):
        return None
    others = [name for at, name in enumerate(names) if at != place]
    times = [name for name in others if not is_repetition(name)]
    if not times:
        return None
    if any(_RATE.search(name) for name in times):
        return None  # no time, and nobody would want it called one
    whole = _whole(times)
    if whole is None and any(is_no_stage(UNIT.sub("", name)) for name in times):
        return None  # columns of statistics are neither stages nor one time
    columns = whole or [_stage_column(name, at) for at, name in enumerate(times, 1)]
    units = {found.group(1).lower() for name in times if (found := UNIT.search(name))}
    needs = ["with commas between columns"] if separator != "," else []
    needs += ["with all times in µs"] if units - _MICROSECONDS else []
    return _hint(columns, needs)


def _columns(line: str) -> tuple[str | None, list[str]]:
    """What separates the columns, None for blanks, and their names."""
    separator = next((one for one in (",", ";", "\t", "|") if one in line), None)
    return separator, [name.strip().strip('"').strip() for name in line.split(separator)]


def _whole(times: list[str]) -> list[str] | None:
    """The column of whole messages, where a single one is named as theirs are."""
    if len(times) != 1:
        return None
    name = UNIT.sub("", times[0]) or times[0]
    if INTERARRIVAL.fullmatch(name):
        return ["interarrival_us"]
    return ["latency_us"] if OF_WHOLE_MESSAGES.fullmatch(name) else None


def _stage_column(name: str, place: int) -> str:
    bare = UNIT.sub("", name)
    plain = re.sub(r"\W+", "_", bare.strip()).strip("_")
    return f"{plain}_us" if plain and _PLAIN_NAME.fullmatch(bare) else f"stage{place}_us"


def _hint(columns: list[str], needs: Sequence[str] = ()) -> HeaderHint:
    row = ",".join(f"{12.5 + 4 * at:g}" for at in range(len(columns)))
    if columns == ["latency_us"]:
        about = (
            "a row is one message: its size in bytes, its one-way "
            "latency in µs. If the time is that of a stage, name the column for the stage, as in "
            "copy_us; if it is the time between back-to-back messages, interarrival_us"
        )
    elif columns == ["interarrival_us"]:
        about = (
            "a row is one message: its size in bytes, the time between back-to-back messages in µs"
        )
    else:
        about = "a row is one message: its size in bytes, the time of each stage in µs"
    about = f"{about}; {' and '.join(needs)}" if needs else about
    return HeaderHint(f"message_bytes,{','.join(columns)}", f"4096,{row}", about)


# In this order: the direct CSV claims every header of its two first columns, so it comes after the
# two others that begin alike.
READERS: tuple[ReaderSpec, ...] = (
    csv_messages.SPEC,
    csv_signature.SPEC,
    csv_direct.SPEC,
    osu.SPEC,
    imb.SPEC,
    perftest.SPEC,
    ucx_perftest.SPEC,
    ucx_table.SPEC,
    netgauge.SPEC,
    simgrid.SPEC,
    pycewise.SPEC,
    nccl_tests.SPEC,
    fio.JSON_SPEC,
    fio.LOG_SPEC,
    gpu_copies.NVBANDWIDTH_SPEC,
    gpu_copies.CUDA_SPEC,
    pingpongs.MPI4PY_SPEC,
    pingpongs.NETPIPE_SPEC,
    sockets.SOCKPERF_SPEC,
    sockets.IPERF_SPEC,
    perftest_json.SPEC,
    npkit.SPEC,
    json_trace.SPEC,
)
_HEAD_BYTES = 65_536
OWN_TRANSFERS = (
    "these are whole transfers of a message by fragment size, not times of stages: they decide "
    "without a fit, by sluice optimize FILE --bytes SIZE, or as transfers of POST /optimize; beside "
    "a model, sluice verify SOURCE --recorded FILE says whether it holds"
)
_FIELD = "measurements"


def read_recognised(content: bytes, kind: TraceKind | None) -> Reading:
    """Read with the first reader that knows the layout. Raises UnreadableTrace."""
    return with_below_zero(reader_of(content).read(content, kind))


def reader_of(content: bytes) -> ReaderSpec:
    """Return the reader for this content. Raises UnreadableTrace; UnrecognisedTrace if none knows
    it.
    """
    if not content.strip():
        raise UnreadableTrace("the file is empty", field=_FIELD)
    if content[:2] == b"\x1f\x8b":
        raise UnreadableTrace("the file is compressed (gzip): expand it first", field=_FIELD)
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise UnreadableTrace("the file is UTF-16: expected UTF-8", field=_FIELD)
    if b"\0" in content[:_HEAD_BYTES]:
        raise UnreadableTrace("the file is binary: it has NUL bytes", field=_FIELD)
    head = content[:_HEAD_BYTES].decode("utf-8", errors="replace").removeprefix("\ufeff")
    if is_own_transfers(head):
        raise UnreadableTrace(OWN_TRANSFERS, field=_FIELD)
    for reader in READERS:
        if reader.detects(head):
            return reader
    raise _unrecognised(head)


def known_formats() -> tuple[TraceFormat, ...]:
    """Return what is read, in the order in which it is looked for."""
    return tuple(TraceFormat(one.format, one.about, one.layout) for one in READERS)


def _has_rates(head: str) -> bool:
    """Whether a column of the first line is named like a rate."""
    first = next((line for _, line in _lines(head) if not line.startswith("#")), "")
    return any(_RATE.search(name) for name in _columns(first)[1])


def _unrecognised(head: str) -> UnrecognisedTrace:
    near, hint = nearest_formats(head, READERS), header_hint(head)
    detail = "the file is not recognised"
    if near:
        detail += f": nearest is {near[0].format}, but {near[0].words}"
    elif hint is None:
        detail += f" as any format that is read: {', '.join(one.format for one in READERS)}"
    if hint is not None:
        detail += f"; times in a CSV would begin {hint.header}"
    elif _has_rates(head):
        detail += "; a table of rates is read with its columns, as in size=bytes,rate=h2d:GB/s"
    return UnrecognisedTrace(detail, field=_FIELD, nearest=near, hint=hint)
