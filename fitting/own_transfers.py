"""The file of a user's own transfers: the whole time of one message by fragment size.

    # command: ./upload --part {bytes}
    message_bytes,fragment_bytes,latency_us
    64MiB,4MiB,912000
    64MiB,8MiB,640000

A row is one transfer, in the order in which they were made; sizes may have units. In place of
latency_us there may be another time with its unit (time_s, total_ms) or a rate (rate_MB/s,
"bandwidth (Gb/s)"): the time is then the message over the rate. These columns may come too:

    block      numbers transfers made close together in time, a whole number
    began_s    when the transfer began, in s from any origin
    status     ok, warm_up, refused, ended; the two last have no time
    challenge  n where the transfer is one of a pair that compares the n-th size with the one in use
    reason     why there is no time

Any other column is a condition, as connections are: transfers under several are not of one
program, so that one has to be chosen. Columns that number repetitions, notes, and further times
are none, and are not used.

Cost    linear in the file; 10 to 30 µs a row that is kept, 3 µs one that is not.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import NoReturn

from domain.errors import InvalidInput, UnitMismatch, UnreadableTrace
from domain.measurement import MAX_TIME_US
from domain.own_transfers import MAX_TRANSFERS, OwnTransfer, OwnTransfers, TransferStatus
from domain.pipeline import MAX_MESSAGE_BYTES
from domain.units import (
    CostUnit,
    OverheadUnit,
    format_bytes,
    format_number,
    parse_bytes,
    parse_ns_per_byte,
    parse_time_us,
    unit_named,
)
from fitting.readers.columns import fields_of
from fitting.readers.text import MAX_LINE_LENGTH, BadRows, is_repetition, number_of, size_of

MESSAGE, FRAGMENT, LATENCY = "message_bytes", "fragment_bytes", "latency_us"
_OPTIONAL = ("block", "began_s", "status", "challenge", "reason")
_UNUSED = frozenset({"preempted", "timestamp", "date", "note", "notes", "comment"})
_TIMES = frozenset({"", "latency", "time", "duration", "elapsed", "total", "total_time", "wall"})
_RATES = frozenset({"", "rate", "bandwidth", "bw", "throughput", "speed"})
_EITHER = frozenset({"gbps", "mbps"})  # written of bits, and of bytes
MAX_FILE_ROWS = 1_000_000
MAX_COLUMNS = 64
MAX_CHALLENGES = 256
_MAX_WHOLE = 2**48
_MAX_BEGAN_S = 1e12
_MAX_NAME, _MAX_VALUE, _MAX_REASON = 60, 100, 300
_MAX_COMMENTS = 200
_MAX_LINES = 2 * MAX_FILE_ROWS
_MAX_VALUES = 8  # of a condition, that are listed
_RULE = f"expected the columns {MESSAGE},{FRAGMENT},{LATENCY} or, for the last, a rate"


@dataclass(frozen=True, slots=True)
class OwnTransfersFile:
    """What a file holds: the transfers, its comments, and the columns that are not used."""

    transfers: OwnTransfers
    comments: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


def is_own_transfers(text: str) -> bool:
    """Return whether the first line that is no comment names both sizes and a time or a rate."""
    for raw in text[: 4 * MAX_LINE_LENGTH].removeprefix("\ufeff").splitlines():
        line = raw.strip()
        if line and not line.startswith("#"):
            names = [name.strip().strip('"').strip() for name in line.split(",", MAX_COLUMNS)]
            has_sizes = {MESSAGE, FRAGMENT} <= {*names}
            return has_sizes and any(_measure_of(name) for name in names[:MAX_COLUMNS])
    return False


def read_own_transfers(
    text: str, *, where: Mapping[str, str] | None = None, message_bytes: int | None = None
) -> OwnTransfers:
    """Return the transfers in the text of such a file, in its order.

    `where` chooses a value of a condition, `message_bytes` a message where the file has several.
    Fragments larger than the message are the message in one piece. Raises UnreadableTrace, which
    names line, column and rule; also for several values of a condition.
    """
    return read_own_file(text, where=where, message_bytes=message_bytes).transfers


def read_own_file(
    text: str, *, where: Mapping[str, str] | None = None, message_bytes: int | None = None
) -> OwnTransfersFile:
    """Return the transfers, as `read_own_transfers` does, and what else the file says."""
    try:
        return _read(text, dict(where or {}), message_bytes)
    except UnreadableTrace as refusal:
        refusal.field = "transfers"
        raise
    except InvalidInput as refusal:
        raise UnreadableTrace(refusal.detail, field="transfers") from None


def own_transfers_text(transfers: OwnTransfers, comments: Sequence[str] = ()) -> str:
    """Return the text of a file of these transfers, which reads back as the same.

    Comments become lines behind "# "; optional columns are written where some transfer has them.
    """
    out = io.StringIO()
    for comment in comments:
        out.write(f"# {_plain(comment, MAX_LINE_LENGTH - 2)}\n")
    cells = [_cells(row) for row in transfers.rows]
    used = [name for at, name in enumerate(_OPTIONAL) if any(row[at + 2] for row in cells)]
    keep = [0, 1, *(2 + _OPTIONAL.index(name) for name in used)]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((MESSAGE, FRAGMENT, LATENCY, *used, *(n for n, _ in transfers.conditions)))
    values = [value for _, value in transfers.conditions]
    for row in cells:
        writer.writerow((transfers.message_bytes, *(row[at] for at in keep), *values))
    return out.getvalue()


def _cells(row: OwnTransfer) -> tuple[str, ...]:
    """The fragment, the time, and the optional columns; what is usual is left empty."""
    return (
        str(row.fragment_bytes),
        "" if row.latency_us is None else format_number(row.latency_us),
        "" if row.block is None else str(row.block),
        "" if row.began_s is None else format_number(row.began_s),
        "" if row.status is TransferStatus.OK else row.status.value,
        "" if row.challenge is None else str(row.challenge),
        _plain(row.reason, _MAX_REASON),
    )


def _plain(text: str, max_length: int) -> str:
    """A text on one line."""
    joined = " ".join(text.split())
    return "".join(letter for letter in joined if letter.isprintable())[:max_length].strip()


# --- columns --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Measure:
    """How a column tells how long a transfer took; without a unit each cell has its own."""

    is_rate: bool
    unit: OverheadUnit | CostUnit | None

    def latency_us(self, word: str, message_bytes: int) -> float:
        """Return the time in µs. Raises InvalidInput."""
        value = self._value(word)
        latency_us = message_bytes * value / 1e3 if self.is_rate else value
        if not 0.0 < latency_us <= MAX_TIME_US:
            raise InvalidInput(f"expected a time above 0, of at most {MAX_TIME_US:g} µs")
        return latency_us

    def _value(self, word: str) -> float:
        """The time in µs, or the rate in ns a byte."""
        if self.unit is None:
            return parse_ns_per_byte(word) if self.is_rate else parse_time_us(word)
        value = number_of(word)
        if value is None or not isfinite(value):
            raise InvalidInput("expected a finite decimal number")
        if isinstance(self.unit, CostUnit):
            return self.unit.to_ns_per_byte(value)
        return self.unit.to_us(value)


def _measure_of(name: str) -> _Measure | None:
    """What a column of this name tells of a transfer's length; None where it tells nothing."""
    lowered = name.casefold()
    if lowered in _TIMES and name:
        return _Measure(is_rate=False, unit=None)
    if lowered in _RATES and name:
        return _Measure(is_rate=True, unit=None)
    for base, unit in _split_units(name):
        time = unit_named(unit, OverheadUnit)
        if base in _TIMES and time is not None:
            return _Measure(is_rate=False, unit=time)
        cost = unit_named(unit, CostUnit)
        if base in _RATES and cost is not None and cost.is_bandwidth:
            return _Measure(is_rate=True, unit=cost)
    return None


def _split_units(name: str) -> Iterator[tuple[str, str]]:
    """Every way to part a name into what it names and a unit: rate_MB/s is ("rate", "MB/s")."""
    yield "", name
    for at, letter in enumerate(name):
        if letter in "_ ([":
            base = name[:at].strip().casefold().replace(" ", "_").rstrip("_")
            yield base, name[at + 1 :].strip(" ([)]_")


def _has_unit_of_time(name: str) -> bool:
    """Whether this is a further time, as that of a stage."""
    return any(base and unit_named(unit, OverheadUnit) for base, unit in _split_units(name))


@dataclass(slots=True)
class _Columns:
    """The columns of the header line, by place."""

    width: int
    message: int
    fragment: int
    latency: int
    measure: _Measure
    optional: dict[str, int] = field(default_factory=dict)
    conditions: dict[str, int] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)


def _columns_of(fields: Sequence[str], number: int) -> _Columns:
    """Return the columns that a header line names. Raises UnreadableTrace."""
    if len(fields) > MAX_COLUMNS:
        _refuse(f"line {number}: expected at most {MAX_COLUMNS} columns, got {len(fields)}")
    for place, name in enumerate(fields, 1):
        if not name or len(name) > _MAX_NAME or not name.isprintable():
            _refuse(
                f"line {number}, column {place}: expected a name of 1 to {_MAX_NAME} printable "
                "characters"
            )
        if name in fields[: place - 1]:
            _refuse(f"line {number}, column {place}: {name} is there twice")
    missing = [name for name in (MESSAGE, FRAGMENT) if name not in fields]
    if missing:
        _refuse(f"line {number} lacks {' and '.join(missing)}: {_RULE}")
    at, measure = _latency_of(fields, number)
    columns = _Columns(len(fields), fields.index(MESSAGE), fields.index(FRAGMENT), at, measure)
    for place, name in enumerate(fields):
        if place in (columns.message, columns.fragment, columns.latency):
            continue
        if name in _OPTIONAL:
            columns.optional[name] = place
        elif _is_unused(name):
            columns.unused.append(name)
        else:
            columns.conditions[name] = place
    return columns


def _is_unused(name: str) -> bool:
    is_measure = _measure_of(name) is not None or _has_unit_of_time(name)
    return is_measure or is_repetition(name) or name.casefold() in _UNUSED


def _latency_of(fields: Sequence[str], number: int) -> tuple[int, _Measure]:
    """The place of the column that tells how long: latency_us, else the only one that does."""
    if LATENCY in fields:
        return fields.index(LATENCY), _Measure(is_rate=False, unit=OverheadUnit.US)
    measures = {at: one for at, name in enumerate(fields) if (one := _measure_of(name)) is not None}
    if len(measures) > 1:
        names = " and ".join(fields[at] for at in measures)
        _refuse(f"line {number}: {names} each tell how long a transfer took: leave one of them")
    if not measures:
        _refuse(f"line {number} lacks a time or a rate with its unit: {_RULE}, as rate_MB/s")
    at, measure = next(iter(measures.items()))
    words = fields[at].casefold().replace("_", " ").replace("(", " ").replace(")", " ").split()
    if not _EITHER.isdisjoint(words):
        _refuse(
            f"line {number}, column {fields[at]}: this is written of bits and of bytes; name it "
            "rate_GB/s or rate_Gb/s"
        )
    return at, measure


# --- rows -----------------------------------------------------------------------------------------


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """(number from 1, line) of every line that is not empty. Raises UnreadableTrace."""
    start, number = (1 if text.startswith("\ufeff") else 0), 0
    while start < len(text):
        number += 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if end - start > MAX_LINE_LENGTH or number > _MAX_LINES:
            _refuse(f"line {number}: longer than {MAX_LINE_LENGTH} characters, or too many lines")
        line = text[start:end].strip()
        start = end + 1
        if line:
            yield number, line


class _Rows:
    """The rows so far, and the values of what has to be the same in all of them."""

    def __init__(self, columns: _Columns, where: Mapping[str, str], message: int | None) -> None:
        self._columns, self._where, self._message = columns, where, message
        self._values = {name: dict[str, None]() for name in columns.conditions}
        self.messages = dict[int, None]()
        self.rows = list[OwnTransfer]()
        self.num_read = 0

    def add(self, fields: Sequence[str], number: int) -> None:
        """Take a row, unless another one was chosen. Raises UnreadableTrace."""
        columns = self._columns
        if len(fields) != columns.width:
            _refuse(f"line {number}: expected {columns.width} fields, got {len(fields)}")
        self.num_read += 1
        message = _size(fields[columns.message], number, MESSAGE)
        if self._message is not None and message != self._message:
            self._note(self.messages, message)
            return
        if any(fields[columns.conditions[name]] != value for name, value in self._where.items()):
            self._note_values(fields, self._where)
            return
        self._note(self.messages, message)
        self._note_values(fields, columns.conditions)
        self.rows.append(self._transfer(fields, message, number))

    def _note_values(self, fields: Sequence[str], names: Mapping[str, object]) -> None:
        for name in names:
            self._note(self._values[name], fields[self._columns.conditions[name]])

    @staticmethod
    def _note(values: dict[int, None] | dict[str, None], value: int | str) -> None:
        if len(values) <= _MAX_VALUES:
            values[value] = None  # type: ignore[index]

    def _transfer(self, fields: Sequence[str], message: int, number: int) -> OwnTransfer:
        columns = self._columns
        fragment = _size(fields[columns.fragment], number, FRAGMENT)

        def cell(name: str) -> str:
            place = columns.optional.get(name)
            return "" if place is None else fields[place]

        def optional(name: str, read: Callable[[str], float | int]) -> float | int | None:
            word = cell(name)
            return _tried(read, word, number, name) if word else None

        status = self._status(cell("status"), number)
        block, challenge = optional("block", _whole), optional("challenge", _challenge)
        return OwnTransfer(
            min(fragment, message),
            self._latency_us(fields[columns.latency], message, status, number),
            block=None if block is None else int(block),
            began_s=optional("began_s", _began_s),
            status=status,
            challenge=None if challenge is None else int(challenge),
            reason=_plain(cell("reason"), _MAX_REASON),
        )

    def _status(self, word: str, number: int) -> TransferStatus:
        try:
            return TransferStatus(word or "ok")
        except ValueError:
            _refuse(f"line {number}, status: expected {', '.join(TransferStatus)}")

    def _latency_us(
        self, word: str, message: int, status: TransferStatus, number: int
    ) -> float | None:
        is_timed = status in (TransferStatus.OK, TransferStatus.WARM_UP)
        if is_timed and not word:
            _refuse(
                f"line {number}, {LATENCY}: expected a time, or the status refused or ended for a "
                "transfer that has none"
            )
        if not is_timed:
            return None
        return _tried(
            lambda cell: self._columns.measure.latency_us(cell, message), word, number, LATENCY
        )

    # --- at the end -------------------------------------------------------------------------------

    def transfers(self) -> OwnTransfers:
        """Return the rows as transfers of one message. Raises UnreadableTrace, InvalidInput."""
        if not self.num_read:
            _refuse(f"expected at least one transfer below the line {MESSAGE},{FRAGMENT},…")
        if not self.rows:
            self._refuse_choice()
        if self._message is None and len(self.messages) > 1:
            sizes = [format_bytes(size) for size in self.messages]
            _refuse(f"{MESSAGE} has {_listed(sizes)}: choose the message that is asked for")
        conditions = list[tuple[str, str]]()
        for name, found in self._chosen_values().items():
            if len(found) > 1:
                _refuse(
                    f"{name} has {_listed(list(found))}: transfers under several are not of one "
                    f"program; choose one, as in {name}={next(iter(found))}"
                )
            conditions += [(name, value) for value in found if value]
        return OwnTransfers(next(iter(self._own_messages())), tuple(self.rows), tuple(conditions))

    def _own_messages(self) -> tuple[int, ...]:
        return (self._message,) if self._message is not None else tuple(self.messages)

    def _chosen_values(self) -> dict[str, dict[str, None]]:
        chosen = {name: {value: None} for name, value in self._where.items()}
        return {**self._values, **chosen}

    def _refuse_choice(self) -> NoReturn:
        """Say what there is in place of what was chosen."""
        if self._message is not None and self._message not in self.messages:
            sizes = _listed([format_bytes(size) for size in self.messages])
            _refuse(
                f"{MESSAGE} has {sizes}: these transfers say nothing of a message of "
                f"{format_bytes(self._message)}"
            )
        chosen = " and ".join(f"{name}={value}" for name, value in self._where.items())
        known = "; ".join(f"{name} has {_listed(list(self._values[name]))}" for name in self._where)
        _refuse(f"no transfer has {chosen}: {known}")


def _listed(values: Sequence[str]) -> str:
    """As in "2 values, 1 and 16"; more than are listed are "more than 8 values"."""
    shown = [value[:_MAX_NAME] or "nothing" for value in values[:_MAX_VALUES]]
    if len(values) > _MAX_VALUES:
        return f"more than {_MAX_VALUES} values, {', '.join(shown[:3])} among them"
    if len(shown) == 1:
        return f"the value {shown[0]}"
    return f"{len(shown)} values, {', '.join(shown[:-1])} and {shown[-1]}"


def _read(text: str, where: dict[str, str], message_bytes: int | None) -> OwnTransfersFile:
    comments, rows, columns, bad = list[str](), None, None, BadRows()
    with bad.collected():
        for number, line in _lines(text):
            if line.startswith("#"):
                if len(comments) < _MAX_COMMENTS and (rows is None or not rows.num_read):
                    comments.append(line[1:].strip())
                continue
            if rows is None:
                columns = _columns_of(fields_of(line, number), number)
                _check_where(where, columns)
                rows = _Rows(columns, where, message_bytes)
                continue
            if rows.num_read == MAX_FILE_ROWS:
                _refuse(f"line {number}: expected at most {MAX_FILE_ROWS} rows")
            if len(rows.rows) > MAX_TRANSFERS:
                _refuse(f"line {number}: expected at most {MAX_TRANSFERS} transfers")
            fields = bad.tried(fields_of, line, number)
            if fields is not None:
                bad.tried(rows.add, fields, number)
    if rows is None or columns is None:
        _refuse(f"the file is empty: {_RULE}")
    return OwnTransfersFile(rows.transfers(), tuple(comments), tuple(columns.unused))


def _check_where(where: Mapping[str, str], columns: _Columns) -> None:
    for name in where:
        if name not in columns.conditions:
            known = ", ".join(columns.conditions) or "none"
            _refuse(f"there is no condition {name[:_MAX_NAME]} in the file; it has {known}")


# --- cells ----------------------------------------------------------------------------------------


def _size(word: str, number: int, column: str) -> int:
    """A size in bytes, with or without a unit. Raises UnreadableTrace."""
    size = size_of(word)
    if size is None:
        try:
            size = parse_bytes(word)
        except UnitMismatch as refusal:
            _refuse(f"line {number}, {column}: {refusal.detail}")
    if not 1 <= size <= MAX_MESSAGE_BYTES:
        _refuse(f"line {number}, {column}: expected 1 to {MAX_MESSAGE_BYTES} bytes")
    return size


def _tried(read: Callable[[str], float], word: str, number: int, column: str) -> float:
    try:
        return read(word)
    except InvalidInput as refusal:
        _refuse(f"line {number}, {column}: {refusal.detail}")


def _whole(word: str) -> int:
    value = size_of(word)
    if value is None or value > _MAX_WHOLE:
        raise InvalidInput(f"expected a whole number from 0 to {_MAX_WHOLE}")
    return value


def _challenge(word: str) -> int:
    value = size_of(word)
    if value is None or not 1 <= value <= MAX_CHALLENGES:
        raise InvalidInput(f"expected a whole number from 1 to {MAX_CHALLENGES}")
    return value


def _began_s(word: str) -> float:
    value = number_of(word)
    if value is None or not abs(value) <= _MAX_BEGAN_S:
        raise InvalidInput(f"expected a time in s of at most {_MAX_BEGAN_S:g}")
    return value


def _refuse(detail: str) -> NoReturn:
    raise UnreadableTrace(detail, field="transfers")
