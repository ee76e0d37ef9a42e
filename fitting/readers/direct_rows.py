"""The rows of the project's own format of direct measurements.

A row of plain decimal numbers is read at once with its neighbours, any other by itself: that is
where every refusal comes from, with its line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from contract.limits import MAX_MESSAGE_BYTES, MAX_TIME_US
from domain.measurement import DirectTrace
from fitting.columns import Sizes, Times
from fitting.readers.columns import plain_rows
from fitting.readers.direct_header import (
    REPETITION_COLUMN,
    SIZE_COLUMN,
    TOTAL,
    Header,
    split_fields,
    unreadable,
)
from fitting.readers.event_rows import numbered
from fitting.readers.text import refuse_below_zero

if TYPE_CHECKING:
    from fitting.readers.columns import Matrix

MAX_REPETITION = 2**48

# A row of plain decimal numbers: neither nan, inf and hexadecimal nor 1_000 and foreign digits.
_PLAIN_ROW = re.compile(r"[0-9eE+\-., \t]*", re.ASCII)
_PLAIN_NUMBER = re.compile(r"[+-]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_WHOLE_NUMBER = re.compile(r"\+?[0-9]{1,20}", re.ASCII)


class Columns:
    """The numbers read so far, by column."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._sizes, self._repetitions = Sizes("q"), Sizes("q")
        self._times = tuple(Times("d") for _ in header.names)
        self.below_zero = 0

    def take(self, chunk: bytes, _first: int) -> bool:
        """Take all rows of this chunk at once; False, and nothing taken, where that cannot be."""
        rows = plain_rows(chunk, self._header.width, num_whole=self._header.num_whole)
        if rows is None:
            return False
        if not len(rows):
            return True
        if not self._are_within(rows):
            return False
        is_below = (rows < 0.0).any(axis=1)
        if is_below.any():
            self.below_zero += int(is_below.sum())
            rows = rows[~is_below]
        by_column, first = rows.T, self._header.num_whole
        self._sizes.frombytes(by_column[0].astype("q").data.cast("B"))
        if self._header.has_repetitions:
            self._repetitions.frombytes(by_column[1].astype("q").data.cast("B"))
        for column, times in zip(self._times, by_column[first:], strict=True):
            column.frombytes(times.copy().data.cast("B"))
        return True

    def _are_within(self, rows: Matrix) -> bool:
        low, high = rows.min(axis=0), rows.max(axis=0)
        first = self._header.num_whole
        return bool(
            low[0] >= 1
            and high[0] <= MAX_MESSAGE_BYTES
            and high[1:first].max(initial=0) <= MAX_REPETITION
            and low[:first].min() >= 0.0
            and low[first:].min() >= -MAX_TIME_US
            and high[first:].max() <= MAX_TIME_US
        )

    def add(self, line: str, number: int) -> None:
        """Read one row. Raises UnreadableTrace."""
        fields, expected = split_fields(line, number), self._header.width
        if len(fields) != expected:
            raise unreadable(
                f"line {number}: expected {expected} fields, as in the header, got {len(fields)}"
            )
        wholes, times = _numbers(fields, number, self._header.num_whole)
        if min(times) < 0.0:  # a difference of noisy times
            self.below_zero += 1
            return
        self._sizes.append(wholes[0])
        self._repetitions.extend(wholes[1:])
        for column, time in zip(self._times, times, strict=True):
            column.append(time)

    def trace(self) -> DirectTrace:
        """The trace of these columns. Raises UnreadableTrace where there is no row."""
        if self.below_zero and not self._sizes:
            refuse_below_zero(self.below_zero, self.below_zero)
        if not self._sizes:
            raise unreadable("no measurements: expected at least one row after the header")
        names, times, total = self._header.names, self._times, None
        if names[-1] == TOTAL:
            names, times, total = names[:-1], times[:-1], times[-1]
        if not self._header.has_repetitions:
            self._repetitions = _numbered(self._sizes)
        return DirectTrace(names, self._sizes, self._repetitions, times, total)


def _numbered(sizes: Sizes) -> Sizes:
    """For each row how many rows of its size come before it."""
    import numpy as np

    found = Sizes("q")
    found.frombytes(numbered(np.frombuffer(sizes, np.int64)).data.cast("B"))
    return found


def _numbers(fields: list[str], number: int, num_whole: int) -> tuple[list[int], list[float]]:
    """Size, repetition where it is given, and times of a row. Raises UnreadableTrace."""
    try:
        wholes = list(map(int, fields[:num_whole]))
        times = list(map(float, fields[num_whole:]))
    except ValueError:
        _explain(fields, number, num_whole)
    if (
        _PLAIN_ROW.fullmatch("".join(fields)) is None
        or not 1 <= wholes[0] <= MAX_MESSAGE_BYTES
        or not all(0 <= repetition <= MAX_REPETITION for repetition in wholes[1:])
        or not -MAX_TIME_US <= min(times) <= max(times) <= MAX_TIME_US
    ):
        _explain(fields, number, num_whole)
    return wholes, times


def _explain(fields: list[str], number: int, num_whole: int) -> NoReturn:
    """Raise for the first field of a refused row that breaks a rule."""
    _explain_whole(fields[0], f"line {number}: {SIZE_COLUMN}", (1, MAX_MESSAGE_BYTES))
    for field in fields[1:num_whole]:
        _explain_whole(field, f"line {number}: {REPETITION_COLUMN}", (0, MAX_REPETITION))
    for place, field in enumerate(fields[num_whole:], num_whole + 1):
        if _PLAIN_NUMBER.fullmatch(field.strip()) is None:
            raise unreadable(
                f"line {number}, column {place}: expected a finite decimal number of µs, as 12.5"
            )
        if not -MAX_TIME_US <= float(field.strip()) <= MAX_TIME_US:
            raise unreadable(
                f"line {number}, column {place}: expected a time from 0 to {MAX_TIME_US:g} µs"
            )
    raise unreadable(f"line {number}: expected decimal numbers separated by commas")


def _explain_whole(field: str, where: str, limits: tuple[int, int]) -> None:
    minimum, maximum = limits
    word = field.strip()  # which takes away more than int() and float() do
    if _WHOLE_NUMBER.fullmatch(word) is None or not minimum <= int(word) <= maximum:
        raise unreadable(f"{where}: expected a whole number from {minimum} to {maximum}")
