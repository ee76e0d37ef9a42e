"""Which reader a file is for."""

from __future__ import annotations

from domain.errors import UnreadableTrace
from domain.measurement import Reading, TraceKind
from domain.trace_formats import TraceFormat, UnrecognisedTrace
from fitting.contract import ReaderSpec
from fitting.nearness import header_hint, nearest_formats
from fitting.readers import (
    csv_direct,
    csv_messages,
    csv_signature,
    imb,
    json_trace,
    netgauge,
    osu,
    perftest,
    pycewise,
    simgrid,
    ucx_perftest,
    ucx_table,
)

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
    json_trace.SPEC,
)
_HEAD_BYTES = 65_536
_FIELD = "measurements"


def read_recognised(content: bytes, kind: TraceKind | None) -> Reading:
    """Read with the first reader that knows the layout. Raises UnreadableTrace."""
    return reader_of(content).read(content, kind)


def reader_of(content: bytes) -> ReaderSpec:
    """The reader for this content. Raises UnreadableTrace; UnrecognisedTrace if none knows it."""
    if not content.strip():
        raise UnreadableTrace("the file is empty", field=_FIELD)
    if content[:2] == b"\x1f\x8b":
        raise UnreadableTrace("the file is compressed (gzip): expand it first", field=_FIELD)
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise UnreadableTrace("the file is UTF-16: expected UTF-8", field=_FIELD)
    if b"\0" in content[:_HEAD_BYTES]:
        raise UnreadableTrace("the file is binary: it has NUL bytes", field=_FIELD)
    head = content[:_HEAD_BYTES].decode("utf-8", errors="replace").removeprefix("\ufeff")
    for reader in READERS:
        if reader.recognises(head):
            return reader
    raise _unrecognised(head)


def known_formats() -> tuple[TraceFormat, ...]:
    """What is read, in the order in which it is looked for."""
    return tuple(TraceFormat(one.format, one.about, one.layout) for one in READERS)


def _unrecognised(head: str) -> UnrecognisedTrace:
    near, hint = nearest_formats(head, READERS), header_hint(head)
    detail = "the file is not recognised"
    if near:
        detail += f": nearest is {near[0].format}, but {near[0].words}"
    elif hint is None:
        detail += f" as any format that is read: {', '.join(one.format for one in READERS)}"
    if hint is not None:
        detail += f"; times in a CSV would begin {hint.header}"
    return UnrecognisedTrace(detail, field=_FIELD, nearest=near, hint=hint)
