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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from domain.errors import InvalidInput, UnreadableTrace
from domain.own_transfers import MAX_TRANSFERS, OwnTransfer, OwnTransfers, TransferStatus
from domain.units import (
    format_number,
)
from fitting.plain_text import cleaned, without_prefix
from fitting.readers.columns import fields_of
from fitting.readers.text import MAX_LINE_LENGTH, BadRows, first_rows
from fitting.transfer_columns import (
    COLUMNS_RULE,
    FRAGMENT,
    LATENCY,
    MAX_COLUMNS,
    MAX_NAME,
    MAX_REASON,
    MESSAGE,
    OPTIONAL,
    Columns,
    columns_of,
    measure_of,
    refuse,
)
from fitting.transfer_rows import Rows, one_line

MAX_FILE_ROWS = 1_000_000

_MAX_COMMENTS = 200
_MAX_LINES = 2 * MAX_FILE_ROWS


@dataclass(frozen=True, slots=True)
class OwnTransfersFile:
    """What a file holds: the transfers, its comments, and the columns that are not used."""

    transfers: OwnTransfers
    comments: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


def is_own_transfers(text: str) -> bool:
    """Return whether the first line that is no comment names both sizes and a time or a rate, in
    plain text (`fitting.plain_text`).
    """
    return _plain(text) is not None


def _plain(text: str) -> str | None:
    """The plain text of own transfers, as it is or behind prefixes; None for another file."""
    content = text.encode(errors="replace")
    plain = cleaned(content)
    if plain.content is content:
        if _begins_here(text):
            return text
    elif _begins_here(found := plain.content.decode()):
        return found
    for texts in without_prefix(content, plain):
        if _begins_here(found := texts[0].content.decode()):
            return found
    return None


def _begins_here(text: str) -> bool:
    for line in first_rows(text[: 4 * MAX_LINE_LENGTH], 1):
        names = [name.strip().strip('"').strip() for name in line.split(",", MAX_COLUMNS)]
        has_sizes = {MESSAGE, FRAGMENT} <= {*names}
        return has_sizes and any(measure_of(name) for name in names[:MAX_COLUMNS])
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
        return _read(_plain(text) or text, dict(where or {}), message_bytes)
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
        out.write(f"# {one_line(comment, MAX_LINE_LENGTH - 2)}\n")
    cells = [_cells(row) for row in transfers.rows]
    used = [name for at, name in enumerate(OPTIONAL) if any(row[at + 2] for row in cells)]
    keep = [0, 1, *(2 + OPTIONAL.index(name) for name in used)]
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
        one_line(row.reason, MAX_REASON),
    )


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """(number from 1, line) of every line that is not empty. Raises UnreadableTrace."""
    start, number = (1 if text.startswith("\ufeff") else 0), 0
    while start < len(text):
        number += 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if end - start > MAX_LINE_LENGTH or number > _MAX_LINES:
            refuse(f"line {number}: longer than {MAX_LINE_LENGTH} characters, or too many lines")
        line = text[start:end].strip()
        start = end + 1
        if line:
            yield number, line


def _read(text: str, where: dict[str, str], message_bytes: int | None) -> OwnTransfersFile:
    comments, rows, columns, bad = list[str](), None, None, BadRows()
    with bad.collected():
        for number, line in _lines(text):
            if line.startswith("#"):
                if len(comments) < _MAX_COMMENTS and (rows is None or not rows.num_read):
                    comments.append(line[1:].strip())
                continue
            if rows is None:
                columns = columns_of(fields_of(line, number), number)
                _check_where(where, columns)
                rows = Rows(columns, where, message_bytes)
                continue
            if rows.num_read == MAX_FILE_ROWS:
                refuse(f"line {number}: expected at most {MAX_FILE_ROWS} rows")
            if len(rows.rows) > MAX_TRANSFERS:
                refuse(f"line {number}: expected at most {MAX_TRANSFERS} transfers")
            fields = bad.tried(fields_of, line, number)
            if fields is not None:
                bad.tried(rows.add, fields, number)
    if rows is None or columns is None:
        refuse(f"the file is empty: {COLUMNS_RULE}")
    return OwnTransfersFile(rows.transfers(), tuple(comments), tuple(columns.unused))


def _check_where(where: Mapping[str, str], columns: Columns) -> None:
    for name in where:
        if name not in columns.conditions:
            known = ", ".join(columns.conditions) or "none"
            refuse(f"there is no condition {name[:MAX_NAME]} in the file; it has {known}")
