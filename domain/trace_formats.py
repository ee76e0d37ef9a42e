"""Formats of measurements, as a user reads of them; and refusals of a file that say more.

That of a file which is in none of them, and that of one with several unreadable rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.errors import UnreadableTrace


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """A format that is read: its name, what it holds or writes it, and how a file of it begins."""

    name: str
    about: str
    layout: str


@dataclass(frozen=True, slots=True)
class FormatMiss:
    """What a file lacks of a format, in a few words each, and the line that comes nearest to it."""

    format: str
    line: int
    missing: tuple[str, ...]

    @property
    def words(self) -> str:
        """In a part of a sentence."""
        return f"line {self.line} lacks {' and '.join(self.missing)}"


@dataclass(frozen=True, slots=True)
class HeaderHint:
    """How the columns of a simple file would be named, with a row, and what the row means."""

    header: str
    row: str
    about: str


class UnrecognisedTrace(UnreadableTrace):
    """No reader knows the layout. `nearest` is what the file has something of, nearest first."""

    def __init__(
        self,
        detail: str,
        *,
        field: str | None = None,
        nearest: tuple[FormatMiss, ...] = (),
        hint: HeaderHint | None = None,
    ) -> None:
        super().__init__(detail, field=field)
        self.nearest = nearest
        self.hint = hint
        self.place = ""

    def in_file(self, number: int) -> None:
        """Say which of several files it was, counted from 1."""
        self.place = f"file {number}"


class UnreadableRows(UnreadableTrace):
    """Several rows break rules. `rows` says of the first ones which line and which rule each."""

    def __init__(self, rows: tuple[str, ...], *, has_more: bool = False) -> None:
        self.title = (
            f"more than {len(rows)} rows cannot be read, the first ones"
            if has_more
            else f"{len(rows)} rows cannot be read"
        )
        super().__init__(f"{self.title}: {'; '.join(rows)}", field="measurements")
        self.rows = rows
        self.place = ""

    def in_file(self, number: int) -> None:
        """Say which of several files it was, counted from 1."""
        self.place = f"file {number}"
