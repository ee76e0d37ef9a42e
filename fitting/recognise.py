"""Which reader a file is for."""

from __future__ import annotations

from domain.errors import UnreadableTrace
from domain.measurement import Reading, TraceKind
from fitting.contract import ReaderSpec
from fitting.readers import csv_direct

READERS: tuple[ReaderSpec, ...] = (csv_direct.SPEC,)
_HEAD_BYTES = 65_536


def read_recognised(content: bytes, kind: TraceKind | None) -> Reading:
    """Read with the first reader that knows the layout. Raises UnreadableTrace."""
    head = content[:_HEAD_BYTES].decode("utf-8", errors="replace")
    for reader in READERS:
        if reader.recognises(head):
            return reader.read(content, kind)
    raise UnreadableTrace(
        "the file is not recognised; looked for: "
        + "; ".join(f"{reader.format} ({reader.layout})" for reader in READERS),
        field="measurements",
    )
