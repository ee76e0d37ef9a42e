"""Which reader a file is for.

Which formats a file that nothing recognises comes near to, and what it lacks of them.

Every format names a few marks that all of its files have. Those that a file has some of are near
it, by the share that it has. Headers of simple tables (`size,time`) get the names that the
project's own CSV would give them. Reported of the file are line numbers, and names of columns that
are short and plain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NoReturn

from domain.conditions import NO_CHOICE, RowChoice
from domain.errors import InconsistentInput, SluiceError, UnreadableTrace
from domain.measurement import Reading, TraceKind
from domain.table_columns import TableColumn
from domain.trace_formats import FormatMiss, HeaderHint, TraceFormat, UnrecognisedTrace
from fitting.conditions import settled
from fitting.contract import ReaderSpec
from fitting.odd_runs import abort_in, odd_run_notices
from fitting.own_transfers import is_own_transfers
from fitting.plain_text import (
    PlainText,
    cleaned,
    from_place,
    prefix_somewhere,
    with_json_cleaned,
    without_prefix,
)
from fitting.readers import (
    csv_direct,
    csv_messages,
    csv_signature,
    fabric_pingpong,
    fio,
    gpu_copies,
    imb,
    json_trace,
    nccl_tests,
    netgauge,
    nixlbench,
    npkit,
    osu,
    perftest,
    perftest_json,
    pingpongs,
    pycewise,
    rccl_results,
    simgrid,
    sockets,
    tebench,
    transfer_engine,
    ucx_perftest,
    ucx_table,
)
from fitting.readers.table import read_table, refuse_sweep
from fitting.readers.text import (
    INTERARRIVAL,
    OF_WHOLE_MESSAGES,
    UNIT,
    is_no_stage,
    is_repetition,
    is_size,
    with_below_zero,
)
from fitting.table_header import columns_word

MAX_NEAR = 4
_MAX_LINES = 400
_MAX_COLUMNS = 12
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_ .-]{0,39}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9.][0-9.eE+-]*", re.ASCII)
_RATE = re.compile(
    r"(?:[kmgt]i?b(?:it|yte)?s?(?:/s|ps|_s|_per_s)|bandwidth|\brate)\b", re.IGNORECASE
)
_BANDWIDTH = re.compile(r"(?:^|[^a-z])bw(?:[^a-z]|$)|bandwidth|throughput|rate", re.IGNORECASE)
# What tells rows apart, or is counted: no time of anything.
_CONDITION = re.compile(
    r"^(?:num|nr|n|no|#)[_ ]|^n?(?:batch|conn|thread|proc|rank|node|host|device|gpu|stream|job|task"
    r"|worker|queue|qps|depth|iodepth|mode|type|op|test|name|unit|date|version|notes?|label)"
    r"|[_ ](?:size|bytes|count|id|depth|name|type)$|%",
    re.IGNORECASE,
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
    times = _times(others)
    if not times or any(_RATE.search(name) for name in times):
        return None  # no time, and nobody would want it called one
    whole = _whole(times)
    if whole is None and any(is_no_stage(UNIT.sub("", name)) for name in times):
        return None  # columns of statistics are neither stages nor one time
    columns = whole or [_stage_column(name, at) for at, name in enumerate(times, 1)]
    units = {found.group(1).lower() for name in times if (found := UNIT.search(name))}
    needs = ["with commas between columns"] if separator != "," else []
    needs += ["with all times in µs"] if units - _MICROSECONDS else []
    return _hint(columns, needs)


def _times(names: Sequence[str]) -> list[str]:
    """The names of times: those with a unit of times, where any has one, or else what is neither a
    repetition nor a condition.
    """
    timed = [name for name in names if UNIT.search(name) and not _BANDWIDTH.search(name)]
    return timed or [
        name
        for name in names
        if not is_repetition(name) and not is_size(name) and not _CONDITION.search(name)
    ]


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
    rccl_results.SPEC,
    fio.JSON_SPEC,
    fio.LOG_SPEC,
    gpu_copies.NVBANDWIDTH_SPEC,
    gpu_copies.CUDA_SPEC,
    pingpongs.MPI4PY_SPEC,
    pingpongs.NETPIPE_SPEC,
    nixlbench.SPEC,
    tebench.SPEC,
    transfer_engine.SPEC,
    fabric_pingpong.SPEC,
    sockets.SOCKPERF_SPEC,
    sockets.IPERF_SPEC,
    perftest_json.SPEC,
    npkit.SPEC,
    json_trace.SPEC,
)
_OUR_OWN = (csv_messages.SPEC, csv_signature.SPEC, csv_direct.SPEC, json_trace.SPEC)
_HEAD_BYTES = 65_536
OWN_TRANSFERS = (
    "these are whole transfers of a message by fragment size, not times of stages: they decide "
    "without a fit, by sluice optimize FILE --bytes SIZE, or as transfers of POST /optimize; and "
    "sluice verify SOURCE --recorded FILE says by them whether a model holds"
)
_FIELD = "measurements"


def read_recognised(
    content: bytes, kind: TraceKind | None, choice: RowChoice = NO_CHOICE
) -> Reading:
    """Read with the first reader that knows the layout. Raises UnreadableTrace; InconsistentInput
    for a choice that the file does not have.

    The text is tried as it is, and then without what launchers put before its lines.
    """
    plain = _checked(content)

    def read(text: PlainText) -> Reading:
        return _read_plain(text, kind, choice.test)

    found = _first_read(_tries(content, plain), read, plain)
    if found is None:
        _refuse(content, plain, choice.test)
    return _finished(settled(found, choice, kind), plain)


def read_named(
    content: bytes,
    columns: Sequence[TableColumn],
    kind: TraceKind | None = None,
    choice: RowChoice = NO_CHOICE,
) -> Reading:
    """Read the named columns of a table, as `read_table` does, in the same texts, under the
    conditions that are chosen.
    """
    plain = _checked(content)

    def read(text: PlainText) -> Reading:
        return read_table(text.content, columns, kind)

    tries = chain([[plain]], without_prefix(content, plain), prefix_somewhere(plain))
    found = _first_read(tries, read, plain)
    assert found is not None  # a table refuses what it does not read
    found = settled(found, choice, kind)
    refuse_sweep(found)
    return _finished(found, plain)


def reader_of(content: bytes) -> ReaderSpec:
    """Return the reader for this content. Raises UnreadableTrace; UnrecognisedTrace if none knows
    it.
    """
    plain = _checked(content)
    for texts in _tries(content, plain):
        for text in texts:
            for reader, _ in _claims(text):
                return reader
    return _refuse(content, plain)


def _checked(content: bytes) -> PlainText:
    """The text without what is never part of a measurement. Raises UnreadableTrace for what is no
    text, and for whole transfers by fragment size: no stage takes such times.
    """
    if not content.strip():
        raise UnreadableTrace("the file is empty", field=_FIELD)
    if content[:2] == b"\x1f\x8b":
        raise UnreadableTrace("the file is compressed (gzip): expand it first", field=_FIELD)
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise UnreadableTrace("the file is UTF-16: expected UTF-8", field=_FIELD)
    if b"\0" in content[:_HEAD_BYTES]:
        raise UnreadableTrace("the file is binary: it has NUL bytes", field=_FIELD)
    if is_own_transfers(_decoded(content[:_HEAD_BYTES])):
        raise UnreadableTrace(OWN_TRANSFERS, field=_FIELD)
    return cleaned(content)


def _tries(content: bytes, plain: PlainText) -> Iterator[Sequence[PlainText]]:
    """The texts to try in turn; those of one item stand side by side."""
    yield from without_prefix(content, plain)
    if plain.content != content and _is_our_own(content):
        yield [PlainText(content)]  # what looks like a tag may be part of a name
    yield [plain]
    if (tagged := with_json_cleaned(plain)) is not None:
        yield [tagged]
    yield from prefix_somewhere(plain)


def _is_our_own(content: bytes) -> bool:
    """Whether a format of ours claims this text as it is."""
    head = _decoded(content[:_HEAD_BYTES])
    return any(reader.detects(head) for reader in _OUR_OWN)


def _first_read(
    tries: Iterable[Sequence[PlainText]],
    read: Callable[[PlainText], Reading],
    plain: PlainText,
) -> Reading | None:
    """The reading of the first item of which a text can be read; None where no reader claims any.

    Raises what the first claim was refused for, of a text that stands behind prefixes rather than
    of one with them; and UnreadableTrace where several writers have a run each.
    """
    refused = dict[bool, SluiceError]()
    for texts in tries:
        found = dict[str, Reading]()
        for text in texts:
            try:
                reading = read(text)
            except UnrecognisedTrace:
                continue
            except (UnreadableTrace, InconsistentInput) as refusal:
                if refusal.field == "kind":
                    raise
                refused.setdefault(text.is_stripped, refusal)
                continue
            stated = (*reading.understood, *text.removed)
            found[text.writer] = replace(reading, understood=stated)
        if found:
            return _only_one(found)
    if refused:
        raise _with_abort(refused.get(True) or refused[False], plain) from None
    return None


def _with_abort(refusal: SluiceError, plain: PlainText) -> SluiceError:
    """The refusal, with the abort that the text tells of: it may be why nothing can be read."""
    aborted = abort_in(_decoded(plain.content))
    if aborted is None or type(refusal) is not UnreadableTrace:
        return refusal
    line, words = aborted
    return UnreadableTrace(
        f'{refusal.detail}; the run was aborted: line {line} says "{words}"', field=refusal.field
    )


def _only_one(found: Mapping[str, Reading]) -> Reading:
    """The reading of one writer, or of all that say the same. Raises UnreadableTrace."""
    first, *others = found.items()
    different = [name for name, reading in others if reading.trace != first[1].trace]
    if not different:
        return first[1]
    names = " and ".join(name for name in (first[0], *different[:2]))
    raise UnreadableTrace(
        f"the lines of {names} are each a run of {first[1].format}, and they differ: pass those of "
        f"one, as grep -F '{first[0]}' FILE gives them",
        field=_FIELD,
    )


def _read_plain(plain: PlainText, kind: TraceKind | None, test: str | None) -> Reading:
    """Read with the first reader that claims this text and can read it. Raises UnreadableTrace;
    UnrecognisedTrace if none claims it.
    """
    refused: UnreadableTrace | None = None
    claims = list(_claims(plain))
    if not claims or claims[0][0] is pycewise.SPEC:  # which are but numbers as well
        claims = [*((reader, plain) for reader in _knowing(test)), *claims]
    for reader, text in claims:
        try:
            read = reader.read if test is None else reader.read_test(test)
            reading = read(text.content, kind)
        except UnreadableTrace as refusal:
            refused = refused or refusal
            continue
        more = text.removed[len(plain.removed) :]
        return replace(reading, understood=(*reading.understood, *more))
    if refused is None:
        raise UnrecognisedTrace("the file is not recognised", field=_FIELD)
    raise _with_columns(refused, *claims[0])


def _with_columns(refusal: UnreadableTrace, reader: ReaderSpec, text: PlainText) -> UnreadableTrace:
    """The refusal of a CSV that is like ours and names its sizes otherwise, with how it is read as
    anybody's table.
    """
    head = _decoded(text.content[:_HEAD_BYTES])
    if type(refusal) is not UnreadableTrace or reader not in _OUR_OWN or "message_bytes" in head:
        return refusal
    if (word := columns_word(head)) is None:
        return refusal
    detail = f"{refusal.detail}; {_as_table(word)}"
    return UnreadableTrace(detail, field=refusal.field)


def _as_table(word: str) -> str:
    return f"as a table it is read with its columns, as by --columns {word} (columns)"


def _knowing(test: str | None) -> list[ReaderSpec]:
    """The readers that know a test of this name."""
    if test is None:
        return []
    return [
        reader for reader in READERS if reader.named is not None and reader.named.names.search(test)
    ]


def _claims(plain: PlainText) -> Iterator[tuple[ReaderSpec, PlainText]]:
    """Readers of this text: that of its first 64 KiB, that of all of it; where there is neither,
    those of what begins further down.
    """
    head = _decoded(plain.content[:_HEAD_BYTES])
    first = next((reader for reader in READERS if reader.detects(head)), None)
    if first is not None:
        yield first, plain
    if len(plain.content) <= _HEAD_BYTES:
        text = head
    else:
        text = _decoded(plain.content)
        whole = next((reader for reader in READERS if reader.detects(text)), None)
        if whole is not None and whole is not first:
            yield whole, plain
        first = first or whole
    if first is None:
        yield from _claims_below(plain, text)


def _claims_below(plain: PlainText, text: str) -> Iterator[tuple[ReaderSpec, PlainText]]:
    """Readers of what begins below other lines."""
    places = dict[str, int]()
    for reader in READERS:
        if reader.begins is None:
            continue
        if reader.begins.pattern not in places:
            found = reader.begins.search(text)
            places[reader.begins.pattern] = found.start() if found else -1
        place = places[reader.begins.pattern]
        for with_comments in (True, False) if place > 0 else ():
            below = from_place(plain, text, place, with_comments=with_comments)
            if reader.detects(_decoded(below.content[: place + _HEAD_BYTES])):
                yield reader, below
                break


def _decoded(content: bytes) -> str:
    return content.decode("utf-8", errors="replace").removeprefix("\ufeff")


def _finished(reading: Reading, plain: PlainText) -> Reading:
    """The reading with what a user must see, whatever the format."""
    odd = tuple(odd_run_notices(reading, _decoded(plain.content)))
    return with_below_zero(replace(reading, notices=(*reading.notices, *odd)))


def known_formats() -> tuple[TraceFormat, ...]:
    """Return what is read, in the order in which it is looked for."""
    return tuple(TraceFormat(one.format, one.about, one.layout) for one in READERS)


def _refuse(content: bytes, plain: PlainText, test: str | None = None) -> NoReturn:
    """Say what a text that nothing recognises comes near to, without its prefixes where it has
    them.
    """
    best = next((texts[0] for texts in without_prefix(content, plain)), plain)
    head = _decoded(best.content[:_HEAD_BYTES])
    near, hint = nearest_formats(head, READERS), header_hint(head)
    detail = "the file is not recognised"
    if near:
        near = tuple(map(_with_layout, near))
        detail += f": nearest is {near[0].format}, but {near[0].words}"
    elif hint is None:
        detail += f" as any format that is read: {', '.join(one.format for one in READERS)}"
    if hint is not None:
        detail += f"; times in a CSV would begin {hint.header}"
    if (word := columns_word(head)) is not None:
        detail += f"; {_as_table(word)}"
    elif not near and hint is None:
        detail += "; a table is read once its columns are named, as in size=bytes,time=copy:us or "
        detail += "size=bytes,rate=h2d:GB/s (columns)"
    if test is not None and not _knowing(test):
        known = ", ".join(reader.named.example for reader in READERS if reader.named is not None)
        detail += f"; no test is called {test[:40]}: expected one as {known}"
    elif near and (named := _spec(near[0].format).named) is not None and test is None:
        detail += f"; if it is of one of its tests, name it, as by --test {named.example} (test)"
    raise UnrecognisedTrace(detail, field=_FIELD, nearest=near, hint=hint)


def _with_layout(miss: FormatMiss) -> FormatMiss:
    """What a file with all marks of a format lacks is their arrangement."""
    layout = _spec(miss.format).layout
    return miss if miss.missing else replace(miss, missing=(f"its layout, {layout}",))


def _spec(format_name: str) -> ReaderSpec:
    return next(reader for reader in READERS if reader.format == format_name)
