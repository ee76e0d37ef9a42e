"""Parts of a report in a terminal: what commands print to, its width and encoding."""

from __future__ import annotations

import codecs
import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

from app.text.units import printable, quoted
from app.ui.gantt import ASCII, UNICODE, Ink, draw, paint
from app.ui.parts import (
    Bars,
    Beyond,
    Cell,
    Chart,
    Facts,
    GanttRow,
    Grid,
    Link,
    Marked,
    Notice,
    Part,
)
from domain.errors import InvalidFields, SluiceError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

WIDTH_ELSEWHERE = 80  # files, pipes, logs
MAX_WIDTH = 120
_MIN_BAR = 20  # columns
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
        return self.words("\n".join(self._lines(part)))

    def _lines(self, part: Bars | Chart | Notice | str) -> Iterator[str]:
        if isinstance(part, Bars):
            yield from _bars(part, self.width, self.ink)
        elif isinstance(part, Chart):
            yield from draw(part, width=self.width, ink=self.ink)
        elif isinstance(part, str):
            yield part
        elif part.is_first:
            from app.text.notices import capitalised

            yield capitalised(printable(part.detail)) + "."
            yield ""
        else:
            yield f"note: {printable(part.detail)} ({part.code})"

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
        table.add_row(*(Text(words(_text(cell))) for cell in row))
    return table


def _text(cell: Cell) -> str:
    match cell:
        case Link(text) | Beyond(text):
            return text
        case Marked(text, mark):
            return f"{text} {mark}"
    return cell


def _bars(bars: Bars, width: int, ink: Ink) -> Iterator[str]:
    names = max(len(name) for name, _ in bars.rows)
    columns = max(_MIN_BAR, width - names - 2)
    for name, blocks in bars.rows:
        painted = paint(GanttRow(name, blocks), bars.end, columns, ink) if bars.end > 0.0 else ""
        yield f"{name:<{names}} {painted}"


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
            from app.schemas.base import problem_out

            self.err.write_line(json.dumps(asdict(problem_out(error))))
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
