"""Comma-separated files with header lines: what readers of such formats share.

Rows of plain numbers are taken a chunk at a time; a chunk with anything else in it is
read row by row, which is where every refusal comes from, with line and column. The results are the
same. A file may have several header lines, each with its rows below it.

Rows of plain numbers, many at a time.

Source: own. A decimal number of at most 15 digits is m / 10^d with m and 10^d both exact in a
double, and IEEE division rounds that quotient correctly: the result is the very double that
`float(text)` gives. So the digits of a whole chunk are read as integers, and the places of the
points give d.
Notation: m, the digits without the point; d, how many of them come after it.
Cost: about 60 ns a number; rows with exponents, signs or blanks go through numpy.loadtxt, 200 ns.
Exact: equal to reading row by row (tests/fitting/test_fast_rows.py).
Traps: what is unusual in any way is not decided here: the answer is None, and the slow path, which
names line and rule, has to look.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, TypeAlias

from contract.limits import MAX_MESSAGE_BYTES, MAX_TIME_US
from domain.measurement import Samples
from fitting.columns import Sizes, Times
from fitting.readers.text import (
    MAX_LINE_LENGTH,
    BadRows,
    first_rows,
    is_size,
    number_of,
    refuse,
    size_of,
)

if TYPE_CHECKING:
    import numpy as np

    Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
    Places: TypeAlias = np.ndarray[tuple[int], np.dtype[np.intp]]

_DIGITS = b"0123456789"
_OTHER = b"eE+- \t"  # what a plain row may hold besides digits, points and separators
_JOINED = bytes.maketrans(b"\n", b",")
_NEWLINE, _COMMA, _POINT = 10, 44, 46
_MAX_EXACT = 2**53
_MAX_DECIMALS = 22  # 10^22 is the greatest power of ten that a double holds exactly
_MAX_PLAIN_LINE = 4_000  # int() refuses more digits than this on its own account


def plain_rows(
    chunk: bytes, num_columns: int, *, num_whole: int = 2, whole: Collection[int] = ()
) -> Matrix | None:
    """Return whole lines as numbers, (rows, num_columns); None unless every line is a plain row.

    The first `num_whole` columns are whole numbers, and those of the places `whole`, from 0; with
    such places rows are of digits and points alone. Empty lines and comments are left out. Nothing
    is said about the range of a value, beyond that it is exact up to 2^53.
    """
    import numpy as np

    rows = _without_comments(chunk.replace(b"\r\n", b"\n")).strip(b"\n")
    if not rows:
        return np.empty((0, num_columns))
    num_rows = rows.count(b"\n") + 1
    separators = (b"," * (num_columns - 1) + b"\n") * num_rows
    if rows.translate(None, _DIGITS + b"." + _OTHER) != separators[:-1] or _has_long_line(rows):
        return None
    if whole and any(letter in rows for letter in _OTHER):
        return None
    if any(letter in rows for letter in _OTHER):
        return _general(rows, (num_rows, num_columns), num_whole)
    return _decimal(rows, (num_rows, num_columns), num_whole, whole)


def _without_comments(chunk: bytes) -> bytes:
    if b"#" not in chunk and b"\n\n" not in chunk:
        return chunk
    lines = chunk.split(b"\n")
    kept = [line for line in lines if line.strip(b" \t\r") and line.lstrip(b" \t\r")[:1] != b"#"]
    return b"\n".join(kept)


def _has_long_line(rows: bytes) -> bool:
    import numpy as np

    ends = np.flatnonzero(np.frombuffer(rows, np.uint8) == _NEWLINE)
    inner = int(np.diff(ends).max()) if len(ends) > 1 else 0
    first, last = (int(ends[0]), len(rows) - int(ends[-1])) if len(ends) else (len(rows), 0)
    return max(inner, first, last) > _MAX_PLAIN_LINE


def _decimal(
    rows: bytes, shape: tuple[int, int], num_whole: int, whole: Collection[int]
) -> Matrix | None:
    """Numbers of digits and points alone."""
    import numpy as np

    letters = np.frombuffer(rows.translate(_JOINED) + b",", np.uint8)
    marks = np.flatnonzero((letters == _COMMA) | (letters == _POINT))
    points = np.flatnonzero(letters[marks] == _POINT)
    fields = points - np.arange(len(points))
    lengths = np.diff(marks, prepend=-1) - 1  # of the digits before each mark
    num_columns = shape[1]
    columns = fields % num_columns
    if not _are_numbers(lengths, points, columns, num_whole):
        return None
    if whole and np.isin(columns, np.fromiter(whole, np.intp)).any():
        return None
    digits = np.fromstring(rows.translate(_JOINED, b"."), dtype=np.int64, sep=",")
    decimals = lengths[points + 1]
    if digits.max() >= _MAX_EXACT or decimals.max(initial=0) > _MAX_DECIMALS:
        if whole:
            return None
        return _general(rows, shape, num_whole)
    values = digits.astype(np.float64)
    values[fields] /= (10.0 ** np.arange(_MAX_DECIMALS + 1))[decimals]
    return values.reshape(-1, num_columns)


def _are_numbers(lengths: Places, points: Places, columns: Places, num_whole: int) -> bool:
    """Whether every field is digits with at most one point, the first columns without one.

    `lengths` counts the digits before each mark, a point or the end of a field; `points` says which
    marks are points, `columns` the column of each.
    """
    import numpy as np

    has_point = np.zeros(len(lengths), dtype=bool)
    has_point[points] = True
    if len(points) and (
        has_point[points + 1].any()
        or columns.min() < num_whole
        or (lengths[points] + lengths[points + 1]).min() == 0
    ):
        return False
    ends = ~has_point
    ends[1:] &= ~has_point[:-1]  # fields without a point
    return not (lengths[ends] == 0).any()


def _general(rows: bytes, shape: tuple[int, int], num_whole: int) -> Matrix | None:
    """Numbers with exponents, signs or blanks."""
    import numpy as np

    pattern = rows.translate(None, _DIGITS + b" \t")
    bare = b"," * num_whole
    if pattern.count(b"\n" + bare) + pattern.startswith(bare) != shape[0]:
        return None
    lines = rows.decode("ascii").split("\n")
    try:
        values = np.loadtxt(lines, np.float64, comments=None, delimiter=",", ndmin=2)
    except ValueError:
        return None
    return values if values.shape == shape else None


_CHUNK_BYTES = 2**18  # more than the longest line that is read
# Stands for an empty field while a chunk is read at once: beyond the limits of every column.
_EMPTY = 2**53 - 1
_EMPTY_TEXT = str(_EMPTY).encode()


@dataclass(frozen=True, slots=True)
class Column:
    """The rule of a column: whole numbers or times in µs, within limits, given in every row."""

    name: str
    minimum: int = 0
    maximum: float = MAX_TIME_US
    is_whole: bool = False
    may_be_empty: bool = False

    def value(self, word: str, where: str) -> float:
        """Return the number in this field, NaN where it may be empty and is. Raises
        UnreadableTrace.
        """
        if not word and self.may_be_empty:
            return nan
        value = size_of(word) if self.is_whole else number_of(word)
        if value is None or not self.lowest <= value <= self.maximum:
            refuse(f"{where}: {self.rule}" + ("" if word else ", got an empty field"))
        return value

    @property
    def lowest(self) -> float:
        """What is read: a time below 0, a difference of noisy ones, is left out and not refused."""
        return self.minimum if self.is_whole else -self.maximum

    @property
    def rule(self) -> str:
        """What a field has to be, in words."""
        if self.is_whole:
            return f"expected a whole number from {self.minimum} to {self.maximum:.0f}"
        return f"expected a time from {self.minimum} to {self.maximum:g} µs"


SIZE = Column("message_bytes", 1, MAX_MESSAGE_BYTES, is_whole=True)
REPETITION = Column("repetition", 0, 2**48, is_whole=True)
BURST = Column("burst", 1, 2**31, is_whole=True)


class Block:
    """The rows below one header line, by column: SIZE, other whole numbers, then times.

    `below_zero` counts times below 0: such a time is not there where it may be empty, elsewhere its
    row is not.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)
        self._num_whole = sum(column.is_whole for column in self.columns)
        self._values = tuple(Sizes("q") if c.is_whole else Times("d") for c in self.columns)
        self.below_zero = 0

    def __len__(self) -> int:
        return len(self._values[0])

    def whole(self, name: str) -> Sizes:
        """Return a column of whole numbers."""
        found = self._of(name)
        assert isinstance(found, Sizes)
        return found

    def times(self, name: str) -> Times:
        """Return a column of times in µs, NaN where a field was empty."""
        found = self._of(name)
        assert isinstance(found, Times)
        return found

    def add(self, fields: Sequence[str], number: int) -> None:
        """Read one row. Raises UnreadableTrace naming line and column."""
        if len(fields) != len(self.columns):
            refuse(f"line {number}: expected {len(self.columns)} columns, got {len(fields)}")
        row = [
            column.value(word, f"line {number}, column {place}")
            for place, (column, word) in enumerate(zip(self.columns, fields, strict=True), 1)
        ]
        below = [value < 0.0 for value in row]
        self.below_zero += any(below)
        if any(at and not one.may_be_empty for at, one in zip(below, self.columns, strict=True)):
            return
        for values, value in zip(self._values, row, strict=True):
            values.append(nan if value < 0.0 else value)  # type: ignore[arg-type]

    def take(self, chunk: bytes) -> bool:
        """Take all rows of this chunk at once; False, and nothing taken, where that cannot be."""
        rows = plain_rows(self._filled(chunk), len(self.columns), num_whole=self._num_whole)
        if rows is None or not self._are_within(rows):
            return False
        rows = self._without_negative(rows)
        for values, column in zip(self._values, rows.T, strict=True):
            if isinstance(values, Times):
                column[column == _EMPTY] = nan
            values.frombytes(column.astype(values.typecode).data.cast("B"))
        return True

    def _filled(self, chunk: bytes) -> bytes:
        """With a number in each field that is empty, where a field may be."""
        if not any(column.may_be_empty for column in self.columns):
            return chunk
        if _EMPTY_TEXT in chunk or b"e" in chunk or b"E" in chunk:
            return chunk
        filled = chunk.replace(b"\r\n", b"\n").removesuffix(b"\n") + b"\n"
        for _ in range(2):  # a second time for the fields between those of the first
            filled = filled.replace(b",,", b"," + _EMPTY_TEXT + b",")
        return filled.replace(b",\n", b"," + _EMPTY_TEXT + b"\n")

    def _are_within(self, rows: Matrix) -> bool:
        for column, values in zip(self.columns, rows.T, strict=True):
            given = values[values != _EMPTY] if column.may_be_empty else values
            if len(given) and not column.lowest <= given.min() <= given.max() <= column.maximum:
                return False
        return True

    def _without_negative(self, rows: Matrix) -> Matrix:
        """The rows without times below 0, which are counted."""
        import numpy as np

        negative = rows < 0.0
        if not negative.any():
            return rows
        self.below_zero += int(negative.any(axis=1).sum())
        optional = np.array([column.may_be_empty for column in self.columns])
        filled = np.where(negative & optional, _EMPTY, rows)
        out: Matrix = filled[~(negative & ~optional).any(axis=1)]
        return out

    def _of(self, name: str) -> Sizes | Times:
        return self._values[[column.name for column in self.columns].index(name)]


def read_blocks(content: bytes, block_of: Callable[[tuple[str, ...], int], Block]) -> None:
    """Read every row into the block that `block_of(names, line number)` has for its header line.

    A header line is one that begins with a name of the size column. Raises UnreadableTrace; rows
    that break a rule are reported together.
    """
    block: Block | None = None
    bad = BadRows()
    with bad.collected():
        for chunk, first in _chunks(content.removeprefix(codecs.BOM_UTF8)):
            if block is not None and block.take(chunk):
                continue
            for number, line in _lines(chunk, first):
                fields = bad.tried(fields_of, line, number)
                if fields is None:
                    continue
                if is_size(fields[0]):
                    block = block_of(tuple(fields), number)
                elif block is None:
                    refuse(f"line {number}: expected a header line {SIZE.name},...")
                else:
                    bad.tried(block.add, fields, number)


def _chunks(body: bytes) -> Iterator[tuple[bytes, int]]:
    """Pieces of whole lines, and the number of the first line of each."""
    start, number = 0, 1
    while start < len(body):
        end = start + _CHUNK_BYTES
        if end < len(body):
            end = body.rfind(b"\n", start, end) + 1
            if end == 0:
                refuse(f"line {number}: longer than {MAX_LINE_LENGTH} characters")
        chunk = body[start:end]
        yield chunk, number
        start, number = start + len(chunk), number + chunk.count(b"\n")


def _lines(chunk: bytes, first: int) -> Iterator[tuple[int, str]]:
    """(line number, line) of all that is neither empty nor a comment."""
    for number, raw in enumerate(chunk.split(b"\n"), first):
        if len(raw) > MAX_LINE_LENGTH:
            refuse(f"line {number}: longer than {MAX_LINE_LENGTH} characters")
        try:
            line = raw.decode().strip()
        except UnicodeDecodeError as refusal:
            refuse(f"line {number}: byte {refusal.start + 1} is not UTF-8")
        if line and not line.startswith("#"):
            yield number, line


def fields_of(line: str, number: int) -> list[str]:
    """Return the fields of a line, without the white space around them. Raises UnreadableTrace."""
    if '"' not in line:
        return [field.strip() for field in line.split(",")]
    try:
        return [field.strip() for field in next(csv.reader([line], strict=True))]
    except csv.Error:
        refuse(f"line {number}: a quoted field is not closed")


def header_of(head: str) -> tuple[str, ...]:
    """Return the first header line's columns in the beginning of a file; empty where it has none.

    A header line begins with a column of sizes.
    """
    for line in first_rows(head, 1):
        names = tuple(name.strip().strip('"').strip() for name in line.split(","))
        return names if is_size(names[0]) else ()
    return ()


def samples_of(blocks: Iterable[Block], name: str) -> Samples | None:
    """Return the sizes and times where this column was measured; None where it never was."""
    import numpy as np

    sizes, times = Sizes("q"), Times("d")
    for block in blocks:
        if all(column.name != name for column in block.columns):
            continue
        of_block = np.frombuffer(block.times(name), np.float64)
        is_given = ~np.isnan(of_block)
        given = np.frombuffer(block.whole(SIZE.name), np.int64)[is_given]
        sizes.frombytes(given.data.cast("B"))
        times.frombytes(of_block[is_given].data.cast("B"))
    return Samples(sizes, times) if sizes else None
