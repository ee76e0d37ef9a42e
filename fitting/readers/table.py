"""Any table whose columns the user names: CSV, TSV, semicolons, bars or blanks.

    Block [KiB];Copy [ms];note
    4;0.0125;warm

Source: `domain/table_columns.py` has the word that names the columns. The header line is the first
one that has all of the named columns; what stands before it is passed over. Where all columns are
named by their place, every line with numbers there is a row. Names may have blanks, where two or
more are between columns; bars around a row are none of its columns. A unit is the word's, else a
cell's, else that of the column's name; a time or a rate without any is asked back, for a wrong unit
would be a wrong answer without a word. KB and the like are of 1024 bytes where the word or the name
says KiB, or where times and rates of the table say it, and of 1000 elsewhere.

Other columns tell conditions apart, as `connections`, where each of their values was measured at
most of the sizes from its smallest to its largest; one whose name has a unit of times or rates, as
delay_ms, where each was measured at nearly all of them. Counts of errors and the like are none. A
header line that comes again begins a run. So do sizes that start anew below an empty line or words,
where the blocks between have mostly the same sizes: else these only interrupt one sweep.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf, log
from statistics import median

from domain.conditions import Condition
from domain.errors import InconsistentInput, UnitMismatch
from domain.measurement import MessageTrace, Reading, TraceKind
from domain.table_columns import ColumnRole, TableColumn, unit_bytes
from domain.units import CostUnit, OverheadUnit, format_bytes, parse_bytes, unit_named
from fitting.readers.columns import fields_of
from fitting.readers.text import (
    UNIT,
    Collector,
    Line,
    check_kind,
    format_left_out,
    format_sizes,
    is_no_stage,
    is_repetition,
    lines_of,
    number_of,
    refuse,
    size_of,
)

FORMAT = "table"
_APART = re.compile(r"\s{2,80}")
_WIDE, _NARROW = "  ", " "
SEPARATORS = {
    ",": "commas",
    ";": "semicolons",
    "\t": "tabs",
    "|": "bars",
    _WIDE: "two blanks or more",
    _NARROW: "blanks",
}
_UNIT_IN_NAME = re.compile(r"^.*?[\s_(\[]([A-Za-zµμ/]{1,12})[)\]]?$")
_EITHER = re.compile(r"[gm]bps", re.IGNORECASE)  # written of bits, and of bytes
_CELL = re.compile(r"([0-9.eE+-]+)\s*([A-Za-zµμ/]{1,12})", re.ASCII)
_MAX_SHOWN = 60
RULED = "-=+|: \t"  # what a line under a header is drawn with
_DECIMAL = re.compile(r"([KMGT])B$", re.IGNORECASE)
_OF_1024 = {"mb_per_s": 1.024**2, "gb_per_s": 1.024**3, "tb_per_s": 1.024**4}
_NEAR_RATE = 0.006  # a rate of three digits; KB of 1000 and of 1024 are 0.024 apart
_MAX_RATES = 1000
_MAX_LOOKED_AT, _MAX_TELLING = 100, 12  # columns that may tell conditions apart, and that do
_MAX_VALUES = 64  # of a column that tells conditions apart
_NEARLY = 0.75  # of all sizes, for a value of a column that has a unit
_MOSTLY = 2  # more than one of so many sizes is most of them
_MAX_COUNTED = 4096  # of a column that would, with fewer of them
_RESULT = re.compile(
    r"(?:num(?:ber)?[_ ](?:of[_ ])?|total[_ ])?(?:(?:tcp|packet|crc|rx|tx)[_ ])?"
    r"(?:retrans(?:mits?|missions?|mitted)?|retr(?:y|ies)|err(?:or)?s?|failures?|failed|time-?outs?|"
    r"drop(?:s|ped)?|lost|loss(?:es)?|nacks?|naks?|context[_ ]switches|page[_ ]faults|"
    r"(?:cache[_ ])?misses)(?:[_ ](?:count|s|packets))?",
    re.IGNORECASE,
)
_RUN = "run"
# What a column with a unit is called that was measured, and not set.
_MEASURED = re.compile(
    r"^(?:t|time)$|(?:^|[^a-z])(?:lat|avg|mean|min|max|median|std|p[0-9]{1,4}|total|elapsed|duration"
    r"|bw|rtt)(?:[^a-z]|$)|bandwidth|throughput|latency",
    re.IGNORECASE,
)
_AT_ONCE = re.compile(
    r"(?:num(?:ber)?(?:_| of |_of_)?)?(?:(?:parallel|tcp)[ _])?"
    r"(?:conn(?:ection)?s?|threads?|streams?|qps|lanes?|channels?|io[ _]?depth|queue[ _]?depth|"
    r"num[ _]?jobs|batch(?:[ _]size)?|parallel(?:ism)?|concurren(?:cy|t)|tasks?|workers?|"
    r"in[ _]flight)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the lines of a table are split, and what each of its columns holds.

    `names` are those of all columns; none where all that count are named by their places.
    """

    separator: str
    columns: tuple[TableColumn, ...]
    places: tuple[int, ...]
    names: tuple[str, ...] = ()

    def fields(self, line: Line) -> list[str] | None:
        """Return the fields of a row; None where they are not as many as the header has."""
        found = fields_apart(line, self.separator)
        if not self.names or len(found) == len(self.names):
            return found
        # Below names with blanks rows may have a single one between their columns.
        words = line.fields if self.separator == _WIDE else ()
        return list(words) if len(words) == len(self.names) else None


@dataclass(frozen=True, slots=True)
class _Implied:
    """The size of a row with KB of 1000 and of 1024 bytes, and what its time and a rate make of it:
    with the rate's MB as written, and of 1024 bytes a KB.
    """

    decimal: int
    binary: int
    implied: float
    implied_of_1024: float


@dataclass(slots=True)
class _Rows:
    """The rows so far, before it is known what KB are and which columns tell conditions apart.

    `runs` begin with header lines, and `blocks` where sizes start anew below what is no row;
    those `unordered` are no sweeps, up or down, again and again.
    `sizes` are those with KB of 1000 and of 1024 bytes; `others` the values of all columns that may
    be conditions, in the order of `names`.
    """

    sizes: list[tuple[int, int]] = field(default_factory=list)
    values: list[tuple[float | None, ...]] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    unordered: set[int] = field(default_factory=set)
    others: list[tuple[str, ...]] = field(default_factory=list)
    names: tuple[str, ...] = ()
    rates: list[_Implied] = field(default_factory=list)


@dataclass(slots=True)
class _Table:
    """What was found of the table, and its rows so far."""

    asked: Sequence[TableColumn]
    samples: dict[ColumnRole, Collector]
    layouts: tuple[_Layout, ...] = ()
    rows: _Rows = field(default_factory=_Rows)
    alike: str = ""  # what is wrong with a header that has several columns of a name
    size_unit: str = ""  # in words, where it is not as the column is named
    _known: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    unlisted: list[str] = field(default_factory=list)  # columns of too many values to compare
    _run: int = 1
    _block: int = 0
    _first_size: int = -1
    _second_size: int = -1  # the first other one of the block
    _last_size: int = -1
    _last_line: int = 0
    _is_interrupted: bool = False

    @property
    def columns(self) -> tuple[TableColumn, ...]:
        """The columns with their units."""
        return self.layouts[0].columns

    @property
    def separator(self) -> str:
        """What columns are apart by."""
        return self.layouts[0].separator

    def take(self, line: Line) -> None:
        """Read one line. Raises UnreadableTrace."""
        gap = line.number > self._last_line + 1
        self._last_line = line.number
        may_be_header = any(column.name in line.text for column in self.asked)
        if (may_be_header or not self.layouts) and self._header(line):
            self._begin_run()
            return
        if not self.layouts or not line.text.strip(RULED):
            return
        self._is_interrupted = self._is_interrupted or gap or line.text.startswith("#")
        if line.text.startswith("#"):
            return
        layout, fields = self._fields(line)
        if layout is None or fields is None:
            self._leave_out("with another number of columns than the header")
        elif len(fields) <= max(layout.places):
            self._leave_out("with fewer columns than were named")
        elif _may_be_cut(line) and fields[-1] in [fields[place] for place in layout.places]:
            self._leave_out("without an end of line: perhaps cut off")
        else:
            self._row(layout, fields)

    def _leave_out(self, why: str) -> None:
        self._is_interrupted = True
        self.samples[self.asked[1].role].leave_out(why)

    def _begin_run(self) -> None:
        self._run += bool(self.rows.runs) and self.rows.runs[-1] == self._run
        self._begin_block()

    def _begin_block(self) -> None:
        self._block += 1
        self._first_size = self._second_size = self._last_size = -1
        self._is_interrupted = False

    def _starts_anew(self, size: int) -> bool:
        """Whether this size turns back the way that the block has come."""
        if self._second_size > self._first_size:
            return size < self._last_size
        return self._second_size < self._first_size and size > self._last_size

    def _header(self, line: Line) -> bool:
        """Whether this line has all columns that are named; those by place need none."""
        if all(column.place is not None for column in self.asked):
            self.layouts = self.layouts or tuple(_layout_by_places(line, self.asked))[:1]
            return False
        found = tuple(_layouts_by_names(line, self.asked))
        if not found:
            self.alike = self.alike or _names_alike(line, self.asked)
            return False
        self.layouts = found
        self.rows.names = self.rows.names or found[0].names
        return True

    def _fields(self, line: Line) -> tuple[_Layout | None, list[str] | None]:
        """The fields of a row, by the first layout that has as many; from then on by that one."""
        for layout in self.layouts:
            fields = layout.fields(line)
            if fields is not None:
                if len(self.layouts) > 1:
                    self.layouts = (layout,)
                    self.rows.names = layout.names
                return layout, fields
        return None, None

    def _row(self, layout: _Layout, fields: list[str]) -> None:
        size_column, *columns = layout.columns
        words = [fields[place] for place in layout.places]
        sizes = _sizes(words[0], size_column.unit, is_asked=bool(self.asked[0].unit))
        values = tuple(
            _quantity(word, column) if word else None
            for column, word in zip(columns, words[1:], strict=True)
        )
        for column, word, value in zip(columns, words[1:], values, strict=True):
            if not word:
                self.samples[column.role].leave_out("with an empty field")
            elif sizes is None or value is None:
                self.samples[column.role].leave_out("cut off or not a number")
        if sizes is None or all(value is None for value in values):
            self._is_interrupted = True
            return
        if self._is_interrupted and self._starts_anew(sizes[0]):
            self._begin_block()
        if self._first_size < 0:
            self._first_size = self._second_size = sizes[0]
        if self._second_size == self._first_size:
            self._second_size = sizes[0]
        if self._starts_anew(sizes[0]) and sizes[0] != self._first_size:
            self.rows.unordered.add(self._block)
        self._last_size, self._is_interrupted = sizes[0], False
        self.rows.sizes.append(sizes)
        self.rows.values.append(values)
        self.rows.runs.append(self._run)
        self.rows.blocks.append(self._block)
        self._keep_others(layout, fields)
        if sizes[0] != sizes[1] and len(self.rows.rates) < _MAX_RATES:
            self.rows.rates.extend(_implied_sizes(layout, fields, sizes, values))

    def _keep_others(self, layout: _Layout, fields: list[str]) -> None:
        others = tuple("" if place in layout.places else word for place, word in enumerate(fields))
        self.rows.others.append(self._known.setdefault(others, others))

    def finish(self) -> None:
        """All lines were read: give the rows to the collectors."""
        rows, columns = self.rows, self.columns
        base = _base(rows.rates)
        if any(decimal != binary for decimal, binary in rows.sizes):
            says = "" if base is None else ", as its rates say"
            self.size_unit = f"KB of {1024 if base else 1000} bytes{says}"
        sizes = [one[base or 0] for one in rows.sizes]
        telling, self.unlisted = _telling_columns(rows, sizes)
        runs = _runs_of(rows, sizes)
        for size, values, run, others in zip(sizes, rows.values, runs, rows.others, strict=True):
            condition = _condition(run, telling, others)
            for column, value in zip(columns[1:], values, strict=True):
                samples = self.samples[column.role]
                if value is None:
                    continue
                if column.role is not ColumnRole.RATE:
                    samples.add(size, value, condition)
                elif value > 0.0:
                    samples.add(size, size * value, condition)
                else:
                    samples.leave_out("of a rate that is not above 0 and finite")


def _may_be_cut(line: Line) -> bool:
    """Whether the end of the row may lack: a bar behind it is its end."""
    return not (line.is_whole or (line.text.startswith("|") and line.text.endswith("|")))


def _layout_by_places(line: Line, asked: Sequence[TableColumn]) -> Iterator[_Layout]:
    """Yield how a line is split where it has numbers at all of these places."""
    places = tuple(column.place or 0 for column in asked)
    for separator in (*(separator for separator in SEPARATORS if separator != _WIDE), _WIDE):
        fields = fields_apart(line, separator)
        if len(fields) > max(places) and all(cell_number(fields[at]) is not None for at in places):
            yield _Layout(separator, tuple(asked), places)


def _layouts_by_names(line: Line, asked: Sequence[TableColumn]) -> Iterator[_Layout]:
    """Yield how the rows may be split below this line: where names are apart by blanks, its rows
    tell which of them belong to one name.
    """
    bare = replace(line, text=line.text.lstrip("#").strip())
    for separator in SEPARATORS:
        fields = fields_apart(bare, separator)
        places = [_place(fields, column) for column in asked]
        known = tuple(place for place in places if place is not None and place < len(fields))
        if len(known) < len(places):
            continue
        if separator == _WIDE and fields == bare.fields:
            continue
        columns = tuple(
            _with_unit(column, fields[place], line)
            for column, place in zip(asked, known, strict=True)
        )
        yield _Layout(separator, columns, known, tuple(fields))
        if separator != _WIDE:
            return


def _names_alike(line: Line, asked: Sequence[TableColumn]) -> str:
    """What to say where a header has all names, but one of them several times; else nothing."""
    bare = replace(line, text=line.text.lstrip("#").strip())
    for separator in SEPARATORS:
        fields = [field.casefold() for field in fields_apart(bare, separator)]
        counts = [(column, fields.count(column.name.casefold())) for column in asked]
        several = [(column, count) for column, count in counts if count > 1]
        if several and all(count or column.place is not None for column, count in counts):
            column, count = several[0]
            at = fields.index(column.name.casefold()) + 1
            unit = f":{column.unit}" if column.unit else ""
            return (
                f"line {line.number}: {count} columns are called {column.name[:_MAX_SHOWN]}: name "
                f"one by its place, as in {column.role}=#{at}{unit}"
            )
    return ""


def fields_apart(line: Line, separator: str) -> list[str]:
    """Return the fields of a line, without quotes; where bars are around it, those between them."""
    if separator == "," and "," in line.text and '"' in line.text:
        return fields_of(line.text, line.number)
    if separator == _WIDE:
        words = _APART.split(line.text)
    else:
        text = line.text
        if separator == "|" and text.startswith("|"):  # bars around a row part nothing
            text = text[1:].removesuffix("|").lstrip("# ")
        words = line.fields if separator == _NARROW else text.split(separator)
    return [word.strip().strip('"').strip() for word in words]


def _place(fields: Sequence[str], column: TableColumn) -> int | None:
    """The index of a column in a line; None where the line has none, or several, of its name."""
    if column.place is not None:
        return column.place
    for match in (str, str.casefold):
        same: Callable[[str], str] = match
        found = [at for at, name in enumerate(fields) if same(name) == same(column.name)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _with_unit(column: TableColumn, name: str, line: Line) -> TableColumn:
    """The column with the unit that its name has, where the user named none.

    Raises InconsistentInput for one that is written of bits and of bytes.
    """
    if column.unit:
        return column
    unit = unit_in_name(name)
    if _EITHER.fullmatch(unit):
        raise InconsistentInput(
            f"line {line.number}: {unit} is written of bits and of bytes; say which, as in "
            f"{column.role}={name[:_MAX_SHOWN]}:GB/s or :Gb/s",
            field="columns",
        )
    return replace(column, unit=unit) if column.knows(unit) else column


def unit_in_name(name: str) -> str:
    """Return what stands at the end of a name where units do; the name where nothing does."""
    found = _UNIT_IN_NAME.match(name)
    return found.group(1) if found else name


# --- conditions -----------------------------------------------------------------------------------


def _runs_of(rows: _Rows, sizes: Sequence[int]) -> list[int]:
    """The run of each row: the blocks below one header are runs where they have the same sizes."""
    blocks = dict[int, dict[int, set[int]]]()
    for run, block, size in zip(rows.runs, rows.blocks, sizes, strict=True):
        blocks.setdefault(run, {}).setdefault(block, set()).add(size)
    number, count = dict[int, int](), 0
    for of_run in blocks.values():
        every = set[int]().union(*of_run.values())
        are_runs = rows.unordered.isdisjoint(of_run) and all(
            _MOSTLY * len(found) > len(every) for found in of_run.values()
        )
        count += not are_runs
        for block in of_run:
            count += are_runs
            number[block] = count
    return [number[block] for block in rows.blocks]


def _telling_columns(
    rows: _Rows, sizes: Sequence[int]
) -> tuple[tuple[tuple[int, str], ...], list[str]]:
    """The places and names of columns that tell conditions apart, or have one value everywhere;
    and the names of those that would but for too many values.

    Times, rates, statistics and counts of errors are measured, and a column whose value follows
    from the size, or that has a value of its own in each row, tells nothing.
    """
    width = max(map(len, rows.others), default=0)
    names = rows.names or tuple(f"#{at + 1}" for at in range(width))
    telling, unlisted = list[tuple[int, str]](), list[str]()
    for at in range(min(width, len(names), _MAX_LOOKED_AT)):
        if _is_measured(names[at]) or not (count := _telling_values(rows.others, sizes, at)):
            continue
        if _has_unit(names[at]) and not _is_grid(rows.others, sizes, at):
            continue
        if count > _MAX_VALUES:
            unlisted.append(f"{names[at][:_MAX_SHOWN]} ({count} values)")
        elif len(telling) < _MAX_TELLING:
            telling.append((at, names[at]))
        else:
            unlisted.append(names[at][:_MAX_SHOWN])
    return tuple(telling), unlisted


def _is_measured(name: str) -> bool:
    bare = _without_unit(name)
    return (
        not bare
        or is_no_stage(bare)
        or (is_repetition(bare) and bare.casefold() != _RUN)
        or _RESULT.fullmatch(bare) is not None
        or (_has_unit(name) and _MEASURED.search(bare) is not None)
    )


def _has_unit(name: str) -> bool:
    """Whether a name ends in a unit of times or rates: it is measured, or set, as delay_ms."""
    return UNIT.search(name) is not None or unit_named(unit_in_name(name), CostUnit) is not None


def _without_unit(name: str) -> str:
    bare = UNIT.sub("", name)
    if bare == name and _has_unit(name):
        bare = (
            name.removesuffix("]").removesuffix(")").removesuffix(unit_in_name(name)).rstrip("_([ ")
        )
    return bare.strip()


def _is_grid(others: Sequence[tuple[str, ...]], sizes: Sequence[int], at: int) -> bool:
    """Whether each value of a column was measured at nearly all sizes, as what is set is."""
    by_value = dict[str, set[int]]()
    for row, size in zip(others, sizes, strict=True):
        by_value.setdefault(row[at], set()).add(size)
    every = set(sizes)
    return len(every) > 1 and all(len(found) >= _NEARLY * len(every) for found in by_value.values())


def _telling_values(others: Sequence[tuple[str, ...]], sizes: Sequence[int], at: int) -> int:
    """How many values a column has, if they tell conditions apart or are one; else 0."""
    by_value, by_size = dict[str, set[int]](), dict[int, set[str]]()
    for row, size in zip(others, sizes, strict=True):
        value = row[at] if at < len(row) else ""
        if not value:
            return 0
        by_value.setdefault(value, set()).add(size)
        by_size.setdefault(size, set()).add(value)
        if len(by_value) > _MAX_COUNTED:
            return 0
    if len(by_value) == 1:
        return 1
    every = sorted(by_size)
    place = {size: at for at, size in enumerate(every)}
    are_crossed = any(len(found) > 1 for found in by_size.values()) and all(
        len(found) > 1 and _MOSTLY * len(found) > place[max(found)] - place[min(found)] + 1
        for found in by_value.values()
    )
    return len(by_value) if are_crossed else 0


def _condition(run: int, telling: Sequence[tuple[int, str]], others: tuple[str, ...]) -> Condition:
    named = tuple((name, others[at] if at < len(others) else "") for at, name in telling)
    counts = [size_of(value) or 1 for name, value in named if _AT_ONCE.fullmatch(name)]
    return Condition(run, max(counts, default=1), named)


# --- cells ----------------------------------------------------------------------------------------


def cell_number(word: str) -> float | None:
    """Return the number of a cell, whatever its unit; None for anything else."""
    found = _CELL.fullmatch(word)
    return number_of(found.group(1) if found else word)


def _sizes(word: str, unit: str, *, is_asked: bool) -> tuple[int, int] | None:
    """Whole bytes, with KB and the like of 1000 and of 1024 bytes; None for what is no size.

    Both are the same where the unit says which: KiB does, and so does the unit of the column, where
    the user named it or where it is one of 1024, for the cells below it.
    """
    of_column = "" if not unit or unit_bytes(unit) == 1 else unit
    if not of_column and word.isascii() and word.isdigit() and len(word) <= 20:
        return int(word), int(word)
    written = word if word[-1:].isalpha() else f"{word}{of_column}"
    try:
        either = parse_bytes(written), parse_bytes(_DECIMAL.sub(r"\1iB", written))
    except UnitMismatch:
        return None
    if either[0] == either[1]:
        return either
    if of_column and _DECIMAL.search(of_column) is None:
        return either[1], either[1]
    return (either[0], either[0]) if of_column and is_asked else either


def _implied_sizes(
    layout: _Layout, fields: Sequence[str], sizes: tuple[int, int], values: Sequence[float | None]
) -> Iterator[_Implied]:
    """Yield the sizes of a row, and what its time and each of its rates give for it."""
    times = [
        value
        for column, value in zip(layout.columns[1:], values, strict=True)
        if column.role is ColumnRole.TIME
    ]
    if not times or times[0] is None:
        return
    asked = {at: one.unit for one, at in zip(layout.columns, layout.places, strict=True)}
    for at, name in enumerate(layout.names):
        unit = unit_named(asked.get(at, unit_in_name(name)), CostUnit)
        value = number_of(fields[at])
        if unit is not None and unit.is_bandwidth and value is not None and 0.0 < value < inf:
            implied = times[0] * 1e3 / unit.to_ns_per_byte(value)
            scale = _OF_1024.get(unit.value, 1.0)
            if implied > 0.0:
                yield _Implied(*sizes, implied, implied * scale)


def _base(rates: Sequence[_Implied]) -> int | None:
    """1 where the rates of a table say that its KB are of 1024 bytes, 0 of 1000; None where they
    say neither. A rate in MB/s may itself be of 2^20 bytes.
    """
    if not rates:
        return None
    off = [
        min(
            median(abs(log(size / implied)) for size, implied in of_base)
            for of_base in (
                [((rate.decimal, rate.binary)[base], rate.implied) for rate in rates],
                [((rate.decimal, rate.binary)[base], rate.implied_of_1024) for rate in rates],
            )
        )
        for base in (0, 1)
    ]
    best = 0 if off[0] <= off[1] else 1
    is_clear = off[best] < _NEAR_RATE and off[1 - best] > 2.0 * _NEAR_RATE
    return best if is_clear else None


def _quantity(word: str, column: TableColumn) -> float | None:
    """The time in µs, or for a rate µs a byte (0 for a rate that is none); None for no number.

    Raises InconsistentInput where no unit is known.
    """
    value, unit = number_of(word), column.unit
    if value is None and (found := _CELL.fullmatch(word)):
        value, unit = number_of(found.group(1)), found.group(2)
        if not column.knows(unit):
            return None
    if value is None:
        return None
    if not unit:
        example = "GB/s" if column.role is ColumnRole.RATE else "us"
        raise InconsistentInput(
            f"{column.role}: {column.expected}, as in "
            f"{column.role}={column.name[:_MAX_SHOWN]}:{example}",
            field="columns",
        )
    if column.role is ColumnRole.RATE:
        rate = unit_named(unit, CostUnit)
        assert rate is not None
        return rate.to_ns_per_byte(value) / 1e3 if 0.0 < value < inf else 0.0
    time = unit_named(unit, OverheadUnit)
    assert time is not None
    return time.to_us(value)


def read_table(
    content: bytes, columns: Sequence[TableColumn], kind: TraceKind | None = None
) -> Reading:
    """Return the measurements in these columns of a table (`parse_columns` gives them).

    Raises UnreadableTrace for what is no such table; InconsistentInput, naming `columns`, where it
    has no such columns.
    """
    table = _Table(tuple(columns), {column.role: Collector() for column in columns[1:]})
    for line in lines_of(content):
        table.take(line)
    if table.layouts:
        table.finish()
    parts = {role: part.samples() for role, part in table.samples.items()}
    if not table.layouts:
        raise InconsistentInput(
            table.alike
            or f"no line of the table has the columns {', '.join(one.name for one in columns)}"
            if any(one.place is None for one in columns)
            else "no line of the table has numbers at the places of the columns",
            field="columns",
        )
    if not any(parts.values()):
        left_out = "".join(value for _, value in format_left_out(*table.samples.values()))
        refuse(f"no row of the table can be read; left out are {left_out or 'none'}")
    interarrival = parts.get(ColumnRole.INTERARRIVAL) or parts.get(ColumnRole.RATE)
    trace = MessageTrace(parts.get(ColumnRole.TIME), interarrival)
    check_kind(trace, kind, FORMAT)
    spans = [table.samples[role].spans() if role in table.samples else () for role in ColumnRole]
    _, of_times, of_gaps, of_rates = spans
    stated = _understood(trace, table)
    return Reading(FORMAT, trace, stated, conditions=(of_times, of_gaps or of_rates))


_MIN_FALL, _MIN_STEP, _MIN_STEPS = 1.5, 1.1, 2
# Where sizes are so large and grow so much, times of messages do not fall at all.
_LARGE, _GROWS, _MIN_FALL_OF_LARGE = 16384, 8, 1.2


def refuse_sweep(reading: Reading) -> None:
    """Raise UnreadableTrace for times that fall as sizes grow, from the smallest size on: of one
    message by the size of its fragments, and not of messages of these sizes.
    """
    trace = reading.trace
    if not isinstance(trace, MessageTrace) or trace.latency is None:
        return
    times = dict[int, list[float]]()
    for size, time_us in zip(trace.latency.message_bytes, trace.latency.times_us, strict=True):
        times.setdefault(size, []).append(time_us)
    curve = [(size, median(times[size])) for size in sorted(times)]
    falling = 1
    while falling < len(curve) and curve[falling - 1][1] > _MIN_STEP * curve[falling][1]:
        falling += 1
    (first, slowest), (last, fastest) = curve[0], curve[falling - 1]
    largest, of_largest = curve[-1]
    is_large = first >= _LARGE and largest >= _GROWS * first
    never_grows = is_large and slowest > _MIN_FALL_OF_LARGE * of_largest
    if falling > _MIN_STEPS and (never_grows or slowest > _MIN_FALL * fastest):
        refuse(
            f"times fall as sizes grow, from {slowest:.6g} µs at {format_bytes(first)} to "
            f"{fastest:.6g} µs at {format_bytes(last)}: these look like whole transfers of one "
            "message by the size of its fragments, which no stage takes. With columns "
            "message_bytes,fragment_bytes,latency_us they decide by themselves: sluice optimize "
            "FILE --bytes SIZE, or as transfers of POST /optimize"
        )


def _understood(trace: MessageTrace, table: _Table) -> tuple[tuple[str, str], ...]:
    stated = [("format", FORMAT), ("columns_apart_by", SEPARATORS[table.separator])]
    for column in table.columns:
        unit = column.unit or ("B" if column.role is ColumnRole.SIZE else "as the cells have it")
        if column.role is ColumnRole.SIZE and table.size_unit:
            unit = table.size_unit
        stated.append((f"{column.role}_column", f"{column.name[:_MAX_SHOWN]}, unit {unit}"))
    if ColumnRole.RATE in table.samples:
        stated.append(("interarrival_is", "size / rate"))
    if trace.latency is not None:
        stated.append(("latency_is", "the named column, one way"))
    if table.unlisted:
        stated.append(
            ("not_compared", f"{', '.join(table.unlisted)}: too many to tell conditions apart by")
        )
    left_out = format_left_out(*table.samples.values())
    return (*stated, *format_sizes(trace.latency, trace.interarrival), *left_out)
