"""The parts of a report, without widths and without HTML: terminal.py and html.py render them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column: its heading, on which side its cells are aligned, and whether they are
    lists, which take several lines before another column loses anything.

    Of one that `is_joined` an empty cell belongs to the one above it.
    """

    heading: str
    is_number: bool = True
    is_list: bool = False
    is_joined: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A cell that leads somewhere; a terminal shows its text, `said` is read aloud behind it."""

    text: str
    address: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class Marked:
    """A cell with a word behind its text that warns, `is_bad` where it says that nothing is known;
    a terminal shows both.
    """

    text: str
    mark: str
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class Beyond:
    """A cell whose number is beyond a limit: a page has it stand out, and has `said` read aloud
    behind it; a terminal shows its text.
    """

    text: str
    said: str


Cell: TypeAlias = str | Link | Marked | Beyond


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: columns and rows of cells, and what it shows."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Labels and values, the values aligned and wrapped under themselves."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Bars:
    """Rows of blocks, (start, end) each, on one scale from 0 to `end`."""

    rows: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]
    end: float


@dataclass(frozen=True, slots=True)
class GanttRow:
    """One stage and when it handles each of its blocks: (start, end) in µs, in order."""

    name: str
    blocks: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """When each block of a message is where: all rows, the bottleneck's index, and the delay (µs)
    after the last stage.
    """

    rows: tuple[GanttRow, ...]
    bottleneck: int
    delay_us: float

    @property
    def end_us(self) -> float:
        """When the last block leaves the last stage, without the delay."""
        return max(end for row in self.rows for _, end in row.blocks)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a user must see: its stable name and its sentence.

    One that `is_first` stands before all else.
    """

    code: str
    detail: str
    is_first: bool = False


Part: TypeAlias = str | Grid | Facts | Bars | Chart | Notice


# --- notices as parts -----------------------------------------------------------------------------


class Said(Protocol):
    """A notice, as it is found or as it is sent."""

    @property
    def code(self) -> str:
        """Its stable name."""

    @property
    def detail(self) -> str:
        """Its sentence."""


SaidT = TypeVar("SaidT", bound=Said)


def failures(notices: Iterable[Said]) -> Iterator[Notice]:
    """Yield that the model failed on the machine, that sizes of the answer were not measured, or
    that it holds if stages overlap.
    """
    for notice in notices:
        if _is_first(notice):
            yield Notice(notice.code, notice.detail, is_first=True)


def others(notices: Iterable[SaidT]) -> list[SaidT]:
    """Return the notices that `failures` leaves."""
    return [notice for notice in notices if not _is_first(notice)]


def noted(notices: Iterable[Said]) -> Iterator[Notice]:
    """Yield these notices."""
    for notice in notices:
        yield Notice(notice.code, notice.detail)


def _is_first(notice: Said) -> bool:
    from app.text.overlap import IF_OVERLAPPING
    from domain.fit import BEYOND_MEASURED
    from domain.verification import CONTRADICTED, DOES_NOT_HOLD

    if notice.code in (DOES_NOT_HOLD, CONTRADICTED, BEYOND_MEASURED):
        return True
    return notice.detail.startswith(IF_OVERLAPPING)
