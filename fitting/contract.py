"""What a reader is. Shared by every module of this room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from domain.measurement import Reading, TraceKind


@dataclass(frozen=True, slots=True)
class ReaderSpec:
    """A registered file format.

    `layout` says in a few words how the format is told ("a header line message_bytes,..."), for the
    refusal of a file that nothing recognises. `recognises(head)` is given the first 64 KiB as text,
    undecodable bytes replaced; it answers whether the file claims this format, and never raises.
    `read(content, kind)` is given the whole file; it raises UnreadableTrace naming line and rule.
    """

    format: str
    layout: str
    recognises: Callable[[str], bool]
    read: Callable[[bytes, TraceKind | None], Reading]
