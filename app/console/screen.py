"""Text output: what commands print to, its width and encoding, and a Gantt of one message.

    > wire         ####----####----
      copy             ####----####
                   0 us       12 us

A block is painted in every column of which it covers at least half; where it reaches no column in
that way it leaves a thin mark, so that no fragment vanishes. Where more than two blocks share a
column they can no longer be distinguished, and the column is painted dense.
"""

from __future__ import annotations

import codecs
import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TextIO, TypeVar

from app.text.units import fit_to, format_given_time, format_time, printable, quoted, width_of
from domain.errors import InvalidFields, SluiceError
from domain.fit import BEYOND_MEASURED
from domain.nested import NestedSchedule, simulate_nested
from domain.pipeline import Pipeline
from domain.schedule import simulate
from domain.verification import CONTRADICTED, DOES_NOT_HOLD

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

MAX_BLOCKS = 200_000
MIN_WIDTH = 40
_MARK_WIDTH = 2
_MAX_NAME = 30
_MAX_DISTINCT_BLOCKS = 2


@dataclass(frozen=True, slots=True)
class Ink:
    """The characters of a chart: two alternating fills, and the rest."""

    fills: tuple[str, str]
    dense: str
    thin: str
    bottleneck: str
    cut_off: str
    micro: str


UNICODE = Ink(fills=("█", "░"), dense="▒", thin="▏", bottleneck="▶", cut_off="…", micro="µs")
ASCII = Ink(fills=("#", "-"), dense="+", thin="|", bottleneck=">", cut_off="~", micro="us")


@dataclass(frozen=True, slots=True)
class GanttRow:
    """One stage and when it handles each of its blocks: (start, end) in µs, in order."""

    name: str
    blocks: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """All rows of one message, the bottleneck's index, and the delay (µs) after the last stage."""

    rows: tuple[GanttRow, ...]
    bottleneck: int
    delay_us: float

    @property
    def end_us(self) -> float:
        """When the last block leaves the last stage, without the delay."""
        return max(end for row in self.rows for _, end in row.blocks)


def chart_of(
    pipeline: Pipeline,
    fragment_bytes: Sequence[int],
    *,
    bottleneck: int,
    levels: Sequence[Sequence[int]] | None = None,
) -> Chart:
    """Return the chart of this cut, or of the nested cuts in `levels`, one a stage. O(blocks)."""
    names = [stage.name for stage in pipeline.stages]
    starts: Sequence[Sequence[float]]
    exits: Sequence[Sequence[float]]
    if levels is None:
        timeline = simulate(pipeline, fragment_bytes)
        starts = list(zip(*timeline.start_us, strict=True))
        exits = list(zip(*timeline.exit_us, strict=True))
    else:
        nested = simulate_nested(pipeline, NestedSchedule(tuple(map(tuple, levels))))
        starts, exits = nested.start_us, nested.exit_us
    rows = tuple(
        GanttRow(name, tuple(zip(start, end, strict=True)))
        for name, start, end in zip(names, starts, exits, strict=True)
    )
    return Chart(rows, bottleneck, pipeline.delay_us)


def draw(chart: Chart, *, width: int, ink: Ink = UNICODE) -> list[str]:
    """Return the chart as lines of at most `width` columns (at least 40)."""
    width = max(MIN_WIDTH, width)
    longest = max(width_of(row.name) for row in chart.rows)
    label = min(longest, _MAX_NAME, width // 3)
    columns = width - _MARK_WIDTH - label - 1
    end_us = chart.end_us
    lines = []
    for place, row in enumerate(chart.rows):
        mark = ink.bottleneck if place == chart.bottleneck else " "
        name = fit_to(row.name, label, cut_off=ink.cut_off)
        lines.append(f"{mark} {name} {paint(row, end_us, columns, ink)}".rstrip())
    indent = " " * (_MARK_WIDTH + label + 1)
    return [*lines, indent + _axis(end_us, columns, ink), *_delay_note(chart, indent, ink)]


def paint(row: GanttRow, end_us: float, columns: int, ink: Ink = UNICODE) -> str:
    """Return one row of `columns` characters for the time from 0 to `end_us`."""
    whole_us = end_us or 1.0  # a message may take no time at all
    cells = [" "] * columns
    touching = [0] * columns
    hidden: list[int] = []
    for index, (start_us, stop_us) in enumerate(row.blocks):
        start, stop = start_us / whole_us * columns, stop_us / whole_us * columns
        first, last = min(int(start), columns - 1), min(int(stop), columns - 1)
        # Columns whose centre lies inside the block are those of which it covers half or more,
        # short blocks aside.
        left, right = round(start), min(round(stop), columns)
        cells[left:right] = ink.fills[index % 2] * (right - left)
        if right <= left:
            hidden.append((first + last) // 2)
        if first == last:
            touching[first] += 1
    for column in hidden:
        if cells[column] == " ":
            cells[column] = ink.thin
    for column, count in enumerate(touching):
        if count > _MAX_DISTINCT_BLOCKS:
            cells[column] = ink.dense
    return "".join(cells)


def _axis(end_us: float, columns: int, ink: Ink) -> str:
    left, right = f"0 {ink.micro}", _time(end_us, ink)
    middle = _time(end_us / 2, ink)
    start = (columns - len(middle)) // 2
    if len(left) + len(middle) + len(right) + 4 <= columns and end_us > 0.0:
        left = left.ljust(start) + middle
    return left + right.rjust(columns - len(left))


def _time(time_us: float, ink: Ink) -> str:
    return format_time(time_us).replace("µs", ink.micro)


def _delay_note(chart: Chart, indent: str, ink: Ink) -> list[str]:
    if chart.delay_us <= 0.0:
        return []
    delay = format_given_time(chart.delay_us).replace("µs", ink.micro)
    return [f"{indent}and then {delay} of constant delay"]


# --- the stream that text goes to -----------------------------------------------------------------


WIDTH_ELSEWHERE = 80  # files, pipes, logs
MAX_WIDTH = 120
_HANDLER = "sluice.plain"
_PLAIN = {
    "µ": "u",
    "²": "^2",
    "×": "x",
    "…": "...",
    "≤": "<=",
    "≥": ">=",
    "±": "+-",
    "·": "-",
    "–": "-",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column: its heading, on which side its cells are aligned, and whether they are
    lists, which take several lines before another column loses anything.
    """

    heading: str
    is_number: bool = True
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: columns and rows of cells."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Labels and values, the values aligned and wrapped under themselves."""

    pairs: tuple[tuple[str, str], ...]


Part = str | Grid | Facts


@dataclass(frozen=True)
class Screen:
    """One output stream."""

    stream: TextIO

    @property
    def is_terminal(self) -> bool:
        """Whether a person is looking."""
        return self.stream.isatty()

    @property
    def is_unicode(self) -> bool:
        """Whether the encoding can show block characters."""
        return (self.stream.encoding or "").lower().replace("-", "").startswith("utf")

    @property
    def ink(self) -> Ink:
        """The characters that a Gantt is painted with."""
        return UNICODE if self.is_unicode else ASCII

    @cached_property
    def width(self) -> int:
        """Columns: the terminal's, at most 120; COLUMNS or 80 where there is no terminal."""
        return min(MAX_WIDTH, shutil.get_terminal_size((WIDTH_ELSEWHERE, 24)).columns)

    @cached_property
    def console(self) -> Console:
        """The rich console on this stream; text is shown as it is, never as markup."""
        from rich.console import Console

        make_plain(self.stream)
        return Console(
            file=self.stream, width=self.width, markup=False, emoji=False, highlight=False
        )

    def show(self, parts: Iterable[Part]) -> None:
        """Print these, one after the other, without blanks at the ends of lines."""
        for part in parts:
            with self.console.capture() as captured:
                self.console.print(self._laid_out(part))
            lines = captured.get().split("\n")
            self.stream.write("\n".join(line.rstrip() for line in lines))
            self.stream.flush()  # here, because rich answers a closed pipe by leaving with 1

    def write_line(self, text: str) -> None:
        """Write one line of text, without loading anything."""
        self.stream.write(self.words(text) + "\n")
        self.stream.flush()

    def _laid_out(self, part: Part) -> RenderableType:
        if isinstance(part, Grid):
            return _table(part, self.words, is_unicode=self.is_unicode)
        if isinstance(part, Facts):
            return _facts(part, self.words)
        return self.words(part)

    def words(self, text: str) -> str:
        """Return the text in characters that the encoding has."""
        return text if self.is_unicode else "".join(map(_plain_character, text))


def make_plain(stream: TextIO) -> None:
    """Have a stream replace a character that it cannot encode, not fail."""
    codecs.register_error(_HANDLER, _nearest)
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors=_HANDLER)


def _nearest(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(map(_plain_character, lost)), error.end


def _plain_character(character: str) -> str:
    if character.isascii():
        return character
    known = _PLAIN.get(character)
    if known is not None:
        return known
    ascii_part = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return ascii_part or "?"


def _table(grid: Grid, words: Callable[[str], str], *, is_unicode: bool) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    lines = (
        box.SIMPLE_HEAD if is_unicode else box.Box("    \n    \n -- \n" + "    \n" * 5, ascii=True)
    )
    table = Table(box=lines, pad_edge=False, show_edge=False, collapse_padding=True)
    for column in grid.columns:
        table.add_column(
            Text(words(column.heading)),
            justify="right" if column.is_number else "left",
            overflow="fold",
            no_wrap=column.is_number and not column.is_list,
        )
    for row in grid.rows:
        table.add_row(*(Text(words(cell)) for cell in row))
    return table


def _facts(facts: Facts, words: Callable[[str], str]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for label, value in facts.pairs:
        table.add_row(Text(words(label)), Text(words(value), overflow="fold"))
    return table


READER_LEFT = 141  # what a shell reports for a program that a closed pipe ended


@dataclass(frozen=True, slots=True)
class Output:
    """Standard output and standard error, and whether documents are wanted."""

    out: Screen
    err: Screen
    wants_json: bool

    @classmethod
    def standard(cls, *, wants_json: bool) -> Output:
        """Return the process's own streams."""
        return cls(Screen(sys.stdout), Screen(sys.stderr), wants_json)

    def document(self, body: bytes) -> None:
        """Print a document as it is, or in ASCII where the stream has no more."""
        text = body.decode()
        if not self.out.is_unicode:
            text = json.dumps(json.loads(text), separators=(",", ":"))
        self.out.stream.write(text + "\n")
        self.out.stream.flush()

    def parts(self, parts: Iterable[Part]) -> None:
        """Print for a person."""
        self.out.show(parts)

    def note(self, text: str) -> None:
        """Something beside the result, in one line on standard error."""
        self.err.write_line(f"sluice: {text}")

    def error(self, error: SluiceError) -> None:
        """Print one line that names field and rule, or the problem document."""
        if self.wants_json:
            from app.schemas.base import ProblemOut

            self.err.write_line(json.dumps(asdict(ProblemOut.of(error))))
        else:
            self.err.write_line(f"sluice: error: {format_error(error)}")


def leave_reader() -> int:
    """Write nowhere from now on: the reader of standard output has left. Return the exit code.

    Python would otherwise complain once more when it flushes at exit.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return READER_LEFT


def format_error(error: SluiceError) -> str:
    """Return the error in one line; the field comes first where the sentence does not name it."""
    detail = printable(" ".join(error.detail.split()))
    if error.subject is not None:
        detail = f"{detail} {quoted(error.subject)}"
    if isinstance(error, InvalidFields) or error.field is None or error.field in detail:
        return detail
    return f"{error.field}: {detail}"


# --- notices of the model -------------------------------------------------------------------------


class Said(Protocol):
    """A notice, as it is found or as it is sent."""

    @property
    def code(self) -> str:
        """Its stable name."""

    @property
    def detail(self) -> str:
        """Its sentence."""


SaidT = TypeVar("SaidT", bound=Said)


_FIRST = (DOES_NOT_HOLD, CONTRADICTED, BEYOND_MEASURED)


def failure_lines(notices: Iterable[Said]) -> Iterator[str]:
    """Yield that the model failed on the machine, or that sizes of the answer were not measured,
    which is printed before all else.
    """
    from app.text.notices import capitalised

    for one in notices:
        if one.code in _FIRST:
            yield capitalised(printable(one.detail)) + "."
            yield ""


def others(notices: Iterable[SaidT]) -> list[SaidT]:
    """Return the notices that `failure_lines` leaves."""
    return [one for one in notices if one.code not in _FIRST]


def warning_parts(warnings: Iterable[Said]) -> Iterator[str]:
    """Yield the warnings, one line each."""
    for warning in warnings:
        yield f"note: {printable(warning.detail)} ({warning.code})"
