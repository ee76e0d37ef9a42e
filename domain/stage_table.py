"""Tables of what stages cost, as spreadsheets and files have them: columns, units, rows to stages.

    stage,overhead,bandwidth (GB/s)
    copy,3 us,24
    wire,1.5 us,12.5

Exact     what may mean two things is never guessed: a number without a unit, a comma that may part
          thousands, a row with more cells than the header has, a column that is not known and a sum
          that is no stage are refused, naming the row.
Traps     g and G are the papers' letters for the two costs, so that these two alone are told apart
          by their case. A text beside a size column is a table of measurements, which is no
          business of this reader. app/ui/assets/sheet.js reads what is pasted by the same patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from contract.limits import MAX_RANGES, MAX_STAGES
from domain.errors import InvalidInput, SluiceError, UnitMismatch
from domain.pipeline import FitRange, Pipeline, Stage, stage_name
from domain.units import CostUnit, OverheadUnit, parse_bytes, parse_quantity, unit_named

MAX_TEXT = 2**18  # characters: more than any table of as many stages as there may be
_LOOKED_AT = 2**12
_FIELD = "pipeline"


class StageColumn(StrEnum):
    """What a column of a stage table holds."""

    UP_TO = "up_to"
    NAME = "name"
    OVERHEAD = "overhead"
    COST = "cost"


_BANDWIDTH = r"(bandwidth|bw(?![a-z])|throughput|(data.?|transfer.?)?rate|speed)"
# In this order: "up to" before "to", the papers' letters before words that begin with them.
_COLUMNS: tuple[tuple[StageColumn, str, bool], ...] = (  # the column, how it begins, any case
    (StageColumn.UP_TO, r"(up.?to|until|to|range.?end|max(imum)?.?size)(?![a-z])", True),
    (StageColumn.NAME, r"(stage|name|step|hop|resource)", True),
    (StageColumn.COST, r"G(?![A-Za-z/])", False),
    (StageColumn.COST, _BANDWIDTH, True),
    (StageColumn.COST, r"(cost|ns.?per.?byte|(time.?)?per.?byte|slope)", True),
    (StageColumn.OVERHEAD, r"[go](?![A-Za-z/])", False),
    (
        StageColumn.OVERHEAD,
        r"(overhead|ovh?d?(?![a-z])|latency|fixed|start|set.?up|(time.?)?per.?fragment|alpha"
        r"|intercept)",
        True,
    ),
)
_PATTERNS = tuple(
    (column, re.compile(text, re.IGNORECASE if any_case else 0))
    for column, text, any_case in _COLUMNS
)
_SUM = re.compile(r"(grand )?(total|sum|mean|average|avg|median)\b", re.IGNORECASE)
_SIZE = re.compile(r"(#?\s*(bytes|size)|message|msg|block|length)", re.IGNORECASE)
_IN_BRACKETS = re.compile(r"[(\[]([^)\]]*)[)\]]")
_PLAIN = re.compile(
    r"(an?|the|of|per|in|and|each|to|up|times?|costs?|overheads?|latency|fixed|start|startup|setup"
    r"|fragments?|messages?|packets?|bytes?|stages?|copy|mean|median|average|value|range)?",
    re.IGNORECASE,
)
_EITHER = re.compile(r"[gm]bps", re.IGNORECASE)  # written of bits, and of bytes
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?=\D|$)", re.ASCII)
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}(?=\D|$)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Heading:
    """What a header says of its column: what it holds, and in which unit where it names one.

    `asked` is a text at its end that is no unit that is known.
    """

    column: StageColumn
    overhead_unit: OverheadUnit = OverheadUnit.UNSPECIFIED
    cost_unit: CostUnit = CostUnit.UNSPECIFIED
    asked: str = ""


def heading_of(header: str) -> Heading | None:
    """Return what a header says; None where it is none of a stage table."""
    text = header.strip().strip('"')
    for column, pattern in _PATTERNS:
        if found := pattern.match(text):
            return _with_unit(column, text, text[found.end() :])
    if _EITHER.fullmatch(text):
        return Heading(StageColumn.COST, asked=text)
    named = unit_named(text, OverheadUnit), unit_named(text, CostUnit)
    if named[0] is not None:
        return Heading(StageColumn.OVERHEAD, overhead_unit=named[0])
    return None if named[1] is None else Heading(StageColumn.COST, cost_unit=named[1])


def _with_unit(column: StageColumn, text: str, rest: str) -> Heading:
    """The column with the unit that stands in brackets or at the end of its header."""
    if column in (StageColumn.NAME, StageColumn.UP_TO):
        return Heading(column)
    bracketed = _IN_BRACKETS.search(rest)
    named = re.sub(r"^[\s,:;_./-]+|[\s_:]+$", "", bracketed[1] if bracketed else rest)
    if column is StageColumn.OVERHEAD:
        time = unit_named(named, OverheadUnit)
        if time is not None:
            return Heading(column, overhead_unit=time)
    elif not _EITHER.fullmatch(named):
        whole = unit_named(re.sub(r"^cost[\s_:]*", "", text, flags=re.IGNORECASE), CostUnit)
        cost = unit_named(named, CostUnit) or whole
        if cost is None and named.lower() == "ns" and re.search(r"byte", text, re.IGNORECASE):
            cost = CostUnit.NS_PER_BYTE
        if cost is not None:
            return Heading(column, cost_unit=cost)
    is_plain = all(_PLAIN.fullmatch(word) for word in re.split(r"[\s_]+", named))
    return Heading(column, asked="" if is_plain else named)


def overhead_us(text: str, heading: Heading) -> float:
    """Return a fixed time of a fragment in µs, in its own unit or the header's. Raises
    UnitMismatch.
    """
    value, unit = parse_quantity(_with_point(text), heading.overhead_unit)
    if unit is OverheadUnit.UNSPECIFIED:
        raise UnitMismatch(_which_unit(text, heading, "250 ns or 3 us"))
    return unit.to_us(value)


def ns_per_byte(text: str, heading: Heading) -> float:
    """Return a cost a byte, of a bandwidth too, in its own unit or the header's. Raises
    UnitMismatch.
    """
    plain = _with_point(text)
    of_cell = re.search(r"[a-zA-Z]*$", plain)
    if of_cell is not None and _EITHER.fullmatch(of_cell[0]):
        raise UnitMismatch(_which_of_both(of_cell[0]))
    value, unit = parse_quantity(plain, heading.cost_unit)
    if unit is CostUnit.UNSPECIFIED and _EITHER.fullmatch(heading.asked):
        raise UnitMismatch(_which_of_both(heading.asked))
    if unit is CostUnit.UNSPECIFIED:
        raise UnitMismatch(_which_unit(text, heading, "24 GB/s or 0.08 ns/byte"))
    return unit.to_ns_per_byte(value)


def _which_of_both(unit: str) -> str:
    return f"{unit} is written of bits and of bytes; say which, as in {unit[0]}B/s or {unit[0]}b/s"


def _which_unit(text: str, heading: Heading, example: str) -> str:
    said = f"; “{heading.asked}” is none that is known" if heading.asked else ""
    return (
        f"expected a unit for {text.strip()[:24]}, in the header or beside it, as {example}{said}"
    )


def _with_point(text: str) -> str:
    """The text with a decimal comma as a point; one that may part thousands stays."""
    plain = text.strip()
    is_decimal = _DECIMAL_COMMA.match(plain) and not _GROUPED.match(plain)
    return plain.replace(",", ".", 1) if is_decimal else plain


# --- a table as text ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Row:
    """A line with its number from 1, and its cells."""

    number: int
    cells: tuple[str, ...]


def is_stage_table(text: str) -> bool:
    """Return whether the first line that is no comment is the header of a stage table: both costs,
    and no size of messages.
    """
    first = next(_rows(text[:_LOOKED_AT]), None)
    if first is None or len(first.cells) < 2 or any(map(_SIZE.match, first.cells)):
        return False
    headings = [heading_of(cell) for cell in first.cells]
    found = {heading.column for heading in headings if heading is not None}
    return {StageColumn.OVERHEAD, StageColumn.COST} <= found


def read_stage_table(text: str) -> Pipeline:
    """Return the stages of a table, in the order of its rows. Raises InvalidInput naming the row.

    A row whose column "up to" has a size is a range of its stage, which the next row goes on with.
    """
    if len(text) > MAX_TEXT:
        raise InvalidInput(f"expected a table of at most {MAX_TEXT} characters", field=_FIELD)
    header, *rows = _rows(text)
    headings = _headings(header)
    if not rows:
        raise InvalidInput("expected at least one stage below the header", field=_FIELD)
    stages: list[list[tuple[_Row, Mapping[StageColumn, str]]]] = []
    goes_on = False
    for row in rows:
        cells = _cells(row, header, headings)
        if goes_on:
            stages[-1].append((row, cells))
        else:
            stages.append([(row, cells)])
        goes_on = bool(cells.get(StageColumn.UP_TO))
    if len(stages) > MAX_STAGES:
        raise InvalidInput(f"expected at most {MAX_STAGES} stages", field=_FIELD)
    by_column = {heading.column: heading for heading in headings}
    made = (_stage(rows, by_column, place) for place, rows in enumerate(stages, start=1))
    return Pipeline(tuple(made))


def _rows(text: str) -> Iterator[_Row]:
    """The lines that are not blank and no comments, split at tabs, else semicolons, else commas."""
    lines = [
        (number, line)
        for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    separators = (one for one in ("\t", ";", ",") if lines and one in lines[0][1])
    separator = next(separators, "")
    for number, line in lines:
        cells = _split(line, separator) if separator else [line]
        yield _Row(number, tuple(cell.strip() for cell in cells))


def _split(line: str, separator: str) -> list[str]:
    """The cells of a line; a separator between quotes parts nothing."""
    cells, is_quoted = [""], False
    for sign in line:
        if sign == '"':
            is_quoted = not is_quoted
        elif sign == separator and not is_quoted:
            cells.append("")
        else:
            cells[-1] += sign
    return cells


def _headings(header: _Row) -> list[Heading]:
    """What each column holds, each once."""
    found: list[Heading] = []
    for cell in header.cells:
        heading = heading_of(cell)
        if heading is None:
            raise _refused(header, f"the column {_shown(cell)} is not understood: leave it out")
        if heading.column in [one.column for one in found]:
            raise _refused(header, f"the column {_shown(cell)} says the same as one before it")
        found.append(heading)
    return found


def _cells(row: _Row, header: _Row, headings: Sequence[Heading]) -> Mapping[StageColumn, str]:
    if len(row.cells) > len(header.cells):
        raise _refused(row, "more cells than columns: is there a comma within a number?")
    cells = dict(zip((heading.column for heading in headings), row.cells, strict=False))
    if _SUM.match(cells.get(StageColumn.NAME, "")):
        name = _shown(cells[StageColumn.NAME])
        raise _refused(row, f"{name} is a sum and no stage: leave the row out")
    return cells


def _stage(
    rows: Sequence[tuple[_Row, Mapping[StageColumn, str]]],
    headings: Mapping[StageColumn, Heading],
    place: int,
) -> Stage:
    name = rows[0][1].get(StageColumn.NAME, "") or stage_name(place)
    if len(rows) > MAX_RANGES:
        raise _refused(rows[0][0], f"expected at most {MAX_RANGES} ranges a stage")
    if rows[-1][1].get(StageColumn.UP_TO):
        raise _refused(
            rows[-1][0], "a stage's last range has no end: leave it empty, or add the next range"
        )
    for row, cells in rows[1:]:
        if cells.get(StageColumn.NAME, "") not in ("", name):
            raise _refused(
                row, "the row above ends at a size, so this row continues its stage: leave the name"
                " empty, or that size",
            )  # fmt: skip
    return _made(name, rows, headings)


def _made(
    name: str,
    rows: Sequence[tuple[_Row, Mapping[StageColumn, str]]],
    headings: Mapping[StageColumn, Heading],
) -> Stage:
    ranges = []
    for row, cells in rows:
        overhead, cost = (cells.get(one, "") for one in (StageColumn.OVERHEAD, StageColumn.COST))
        end = cells.get(StageColumn.UP_TO)
        try:
            ranges.append(
                FitRange(
                    overhead_us(overhead, headings[StageColumn.OVERHEAD]),
                    ns_per_byte(cost, headings[StageColumn.COST]),
                    parse_bytes(end) if end else None,
                )
            )
        except SluiceError as refusal:
            raise _refused(row, refusal.detail) from None
    try:
        return Stage(name, tuple(ranges))
    except SluiceError as refusal:
        raise _refused(rows[0][0], refusal.detail) from None


def _refused(row: _Row, rule: str) -> InvalidInput:
    return InvalidInput(f"stage table, line {row.number}: {rule}", field=_FIELD)


def _shown(cell: str) -> str:
    return f"“{cell if len(cell) <= 24 else cell[:24] + '…'}”"
