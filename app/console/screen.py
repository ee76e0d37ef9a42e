"""Where text goes: a stream, its width, and what its encoding can show.

rich lays the parts out and is loaded on first use.
"""

from __future__ import annotations

import codecs
import shutil
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

from app.console.gantt import ASCII, UNICODE, Ink

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

WIDTH_ELSEWHERE = 80  # files, pipes, logs
GREATEST_WIDTH = 120
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
    """A table's column: its heading and on which side its cells are aligned."""

    heading: str
    is_number: bool = True


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
        return min(GREATEST_WIDTH, shutil.get_terminal_size((WIDTH_ELSEWHERE, 24)).columns)

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
        """One line of text, without loading anything."""
        self.stream.write(self.words(text) + "\n")
        self.stream.flush()

    def _laid_out(self, part: Part) -> RenderableType:
        if isinstance(part, Grid):
            return _table(part, self.words, is_unicode=self.is_unicode)
        if isinstance(part, Facts):
            return _facts(part, self.words)
        return self.words(part)

    def words(self, text: str) -> str:
        """The text in characters that the encoding has."""
        return text if self.is_unicode else "".join(map(_plain_character, text))


def make_plain(stream: TextIO) -> None:
    """Let a stream that cannot encode a character print its nearest plain one, not fail."""
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
            no_wrap=column.is_number,
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
