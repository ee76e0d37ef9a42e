"""Rows of a direct CSV with begins: which columns they have, and how their events are joined.

    message_bytes,repetition,message,fragment,hash_us,send_us,hash_begin_ns,hash_busy_ns,...

`message` and `fragment` number what was sent, `<stage>_begin_ns` says when a stage began on it, in
ns from the file's first event, `<stage>_busy_ns` how long its thread computed in this time (-1: not
known). A stage whose time and begin are empty has no event in the row; several rows of one fragment
are one. Fits take the fragments that every stage has a time of.

Source: own. Cost: O(n log n) for n rows, in NumPy.
Traps: joined by numbers a lost event leaves a hole. Without `fragment` the i-th begin of a message
in each stage is taken for that of one fragment, which holds where a stage keeps the order and no
event of the message is lost; what shows that it does not is refused or left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from operator import gt, lt
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from contract.limits import MAX_MESSAGE_BYTES, MAX_TIME_US
from domain.measurement import DirectTrace
from domain.traced_events import MAX_EVENT_NS, MAX_NUMBER, NOT_KNOWN, TracedEvents
from fitting.columns import Sizes, Times
from fitting.readers.columns import fields_of, plain_rows
from fitting.readers.text import MAX_LINE_LENGTH, refuse, refuse_below_zero

if TYPE_CHECKING:
    import numpy as np

    from fitting.readers.columns import Matrix

    Wholes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
    WholeTable: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.int64]]
    Column: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64 | np.float64]]
    Rows: TypeAlias = tuple[list[Column], Wholes]  # and the line of each
    Marks: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]

MESSAGE, FRAGMENT = "message", "fragment"
BEGIN_SUFFIX, BUSY_SUFFIX = "_begin_ns", "_busy_ns"
_TOTAL = "total"
_SHARED = 0.01  # of a stage's time in which it may have two fragments at once by rounding
# Stand for an empty field and for -1 while a chunk is read at once: beyond every column's limits.
_EMPTY, _MINUS_ONE = 2**53 - 1, 2**53 - 2
_EMPTY_TEXT, _MINUS_ONE_TEXT = str(_EMPTY).encode(), str(_MINUS_ONE).encode()
_MINUS_ONE_FIELD = re.compile(rb",-1(?=[,\n])")
_NOT_GIVEN = ("", "-1")
# A field in quotes that holds none, as between two commas or at an end of a line.
_QUOTED = re.compile(rb'(^|,)"([^",\r\n]*)"(?=,|$)', re.MULTILINE)
_PLAIN_ROW = re.compile(r"[0-9eE+\-.]*", re.ASCII)
_UNPADDED = re.compile(r"[^\s]*(?:\r?\n[^\s]*)*")
_WHOLE = re.compile(r"\+?[0-9]{1,20}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


def is_of_events(column: str) -> bool:
    """Return whether a column of this name says which fragment it is or when a stage had it."""
    return column in (MESSAGE, FRAGMENT) or column.endswith((BEGIN_SUFFIX, BUSY_SUFFIX))


@dataclass(frozen=True, slots=True)
class EventLayout:
    """Where the columns of a file with begins are, each by its place from 0.

    `stages` and `times` go together; so do `begins` and `busy`, where busy times may be absent.
    """

    width: int
    repetition: int | None
    message: int
    fragment: int | None
    stages: tuple[str, ...]
    times: tuple[int, ...]
    total: int | None
    begins: tuple[int, ...]
    busy: tuple[int | None, ...]

    @property
    def wholes(self) -> tuple[int, ...]:
        """Return the places of whole numbers, in order."""
        of_times = {*self.times, self.total}
        return tuple(place for place in range(self.width) if place not in of_times)


def event_layout(
    columns: Sequence[str], timed: Sequence[tuple[int, str]], number: int, *, has_repetitions: bool
) -> EventLayout:
    """Return where the columns of this header line are.

    `timed` are the places and names of those of times. Raises UnreadableTrace, which names line
    `number` of the file.
    """
    places = {name: place for place, name in enumerate(columns) if is_of_events(name)}
    for place, name in enumerate(columns):
        if is_of_events(name) and places[name] != place:
            refuse(f"line {number}: columns {place + 1} and {places[name] + 1} have the same name")
    of_stages = [(place, name) for place, name in timed if name != _TOTAL]
    stages = tuple(name for _, name in of_stages)
    known = {MESSAGE, FRAGMENT}
    known |= {stage + suffix for stage in stages for suffix in (BEGIN_SUFFIX, BUSY_SUFFIX)}
    for name, place in places.items():
        if name not in known:
            refuse(
                f"line {number}, column {place + 1}: of no stage of this file; expected the name "
                f"of a stage, which has a column of times in µs, followed by {BEGIN_SUFFIX} or "
                f"{BUSY_SUFFIX}"
            )
    without = [stage for stage in stages if stage + BEGIN_SUFFIX not in places]
    if without:
        at = next(place for place, name in of_stages if name == without[0])
        refuse(
            f"line {number}, column {at + 1}: no column of its begins; expected <stage>"
            f"{BEGIN_SUFFIX} of every stage, or neither begins nor numbers"
        )
    if MESSAGE not in places:
        refuse(
            f"line {number}: begins of no message; expected a column {MESSAGE} with the number of "
            f"the message, and {FRAGMENT} with that of the fragment in it"
        )
    return EventLayout(
        len(columns),
        1 if has_repetitions else None,
        places[MESSAGE],
        places.get(FRAGMENT),
        stages,
        tuple(place for place, _ in of_stages),
        next((place for place, name in timed if name == _TOTAL), None),
        tuple(places[stage + BEGIN_SUFFIX] for stage in stages),
        tuple(places.get(stage + BUSY_SUFFIX) for stage in stages),
    )


class EventRows:
    """The numbers read so far of a file with begins, by column, and the line of each row."""

    def __init__(self, layout: EventLayout) -> None:
        self._layout = layout
        self._times = tuple(place for place in range(layout.width) if place not in layout.wholes)
        self._columns = [
            Times("d") if place in self._times else Sizes("q") for place in range(layout.width)
        ]
        self._lines = Sizes("q")
        limits = [_limits(layout, place) for place in range(layout.width)]
        self._lowest, self._highest = zip(*limits, strict=True)
        self._readers = [
            _time_of if place in self._times else int if low > NOT_KNOWN else _whole_of
            for place, (low, _) in enumerate(limits)
        ]
        self.below_zero = 0

    def take(self, chunk: bytes, first: int) -> bool:
        """Take all rows of this chunk, whose first line has this number, at once.

        Returns False, with nothing taken, where that cannot be.
        """
        import numpy as np

        found = self._plain(chunk, first) or self._by_column(chunk, first)
        if found is None:
            return False
        columns, lines = found
        if not len(lines):
            return True
        if not self._are_within(columns):
            return False
        is_below = (np.array([columns[place] for place in self._times]) < 0.0).any(axis=0)
        self.below_zero += int(is_below.sum())
        for column, values in zip(self._columns, columns, strict=True):
            column.frombytes(values[~is_below].data.cast("B"))
        self._lines.frombytes(lines[~is_below].data.cast("B"))
        return True

    def _plain(self, chunk: bytes, first: int) -> Rows | None:
        """The columns of rows of digits and points alone, and the rows' lines."""
        layout = self._layout
        filled = _filled(chunk)
        if filled is None:
            return None
        rows = plain_rows(filled, layout.width, num_whole=0, whole=layout.wholes)
        lines = _content_lines(chunk, first)
        if rows is None or len(rows) != len(lines):
            return None
        columns: list[Column] = []
        for place, column in enumerate(self._columns):
            values = rows[:, place].astype(column.typecode)
            if place in self._times:
                values[values == _EMPTY] = nan
            else:
                values[values >= _MINUS_ONE] = NOT_KNOWN
            columns.append(values)
        return columns, lines

    def _by_column(self, chunk: bytes, first: int) -> Rows | None:
        """The same of rows with exponents, signs, blanks or quotes."""
        import numpy as np

        numbered_words = _words_of(chunk, first, self._layout.width)
        if numbered_words is None:
            return None
        lines, words = numbered_words
        columns: list[Column] = []
        try:
            for at, column in enumerate(words):
                is_time = at in self._times
                if "" in column and self._readers[at] is not int:
                    column = tuple(word or ("nan" if is_time else "-1") for word in column)
                values = list(map(float if is_time else int, column))
                columns.append(np.array(values, np.float64 if is_time else np.int64))
        except (ValueError, OverflowError):
            return None
        return columns, np.array(lines, np.int64)

    def _are_within(self, columns: Sequence[Column]) -> bool:
        """Whether every number is in its limits, and every row whole, so that none is refused."""
        import numpy as np

        layout = self._layout
        for values, low, high in zip(columns, self._lowest, self._highest, strict=True):
            if ((values < low) | (values > high)).any():  # neither holds of a NaN
                return False
        for at, begin, busy in zip(layout.times, layout.begins, layout.busy, strict=True):
            is_there = ~np.isnan(columns[at])
            if (is_there != (columns[begin] != NOT_KNOWN)).any():
                return False
            if busy is not None and ((columns[busy] != NOT_KNOWN) & ~is_there).any():
                return False
        return bool(np.any([~np.isnan(columns[at]) for at in layout.times], axis=0).all())

    def add(self, line: str, number: int) -> None:
        """Read one row. Raises UnreadableTrace naming line, column and rule."""
        words = fields_of(line, number)
        if len(words) != self._layout.width:
            refuse(
                f"line {number}: expected {self._layout.width} fields, as in the header, got "
                f"{len(words)}"
            )
        numbers = self._numbers(words, number)
        self._check_events(numbers, number)
        if any(numbers[place] < 0.0 for place in self._times):  # a difference of noisy times
            self.below_zero += 1
            return
        for column, value in zip(self._columns, numbers, strict=True):
            column.append(value)  # type: ignore[arg-type]
        self._lines.append(number)

    def _numbers(self, words: Sequence[str], number: int) -> list[float]:
        """The numbers of a row: whole ones, and times, NaN where a field is empty.

        Raises UnreadableTrace.
        """
        if _PLAIN_ROW.fullmatch("".join(words)) is None:
            self._explain(words, number)
        try:
            numbers = [read(word) for read, word in zip(self._readers, words, strict=True)]
        except ValueError:
            self._explain(words, number)
        # Neither holds of a NaN.
        if any(map(lt, numbers, self._lowest)) or any(map(gt, numbers, self._highest)):
            self._explain(words, number)
        return numbers

    def _explain(self, words: Sequence[str], number: int) -> NoReturn:
        """Raise for the first field of a refused row that breaks a rule."""
        for place, word in enumerate(words):
            where = f"line {number}, column {place + 1}"
            if place in self._times:
                _check_time(word, where)
                continue
            lowest, maximum = _limits(self._layout, place)
            if lowest == NOT_KNOWN and word in _NOT_GIVEN:
                continue
            minimum = max(lowest, 0)
            if _WHOLE.fullmatch(word) is None or not minimum <= int(word) <= maximum:
                begins = " of ns from the file's first event" * (place in self._layout.begins)
                unknown = f", or {NOT_KNOWN}" * (place in self._layout.busy)
                refuse(
                    f"{where}: expected a whole number from {minimum} to {maximum}{begins}{unknown}"
                )
        refuse(f"line {number}: expected decimal numbers separated by commas")

    def _check_events(self, numbers: Sequence[float], number: int) -> None:
        """Refuse a stage with half an event, and a row without any."""
        layout, has_event = self._layout, False
        for at, begin, busy in zip(layout.times, layout.begins, layout.busy, strict=True):
            is_there = numbers[at] == numbers[at]
            has_event |= is_there
            if is_there is not (numbers[begin] != NOT_KNOWN):
                has, lacks, place = ("time", "begin", begin) if is_there else ("begin", "time", at)
                refuse(
                    f"line {number}, column {place + 1}: the stage has a {has} and no {lacks}; "
                    "expected both, or neither"
                )
            if busy is not None and not is_there and numbers[busy] != NOT_KNOWN:
                refuse(
                    f"line {number}, column {busy + 1}: expected no processor time of a stage "
                    "that has no begin"
                )
        if not has_event:
            refuse(f"line {number}: expected the time and the begin of one stage at least")

    def trace(self) -> DirectTrace:
        """Return the trace of these rows. Raises UnreadableTrace."""
        if self.below_zero and not self._lines:
            refuse_below_zero(self.below_zero, self.below_zero)
        if not self._lines:
            refuse("no measurements: expected at least one row after the header")
        table = _Table.of(self._layout, self._columns, self._lines)
        if self._layout.fragment is None:
            return table.trace(table.joined_by_order())
        table = table.joined_by_number()
        return table.trace(table.events_by_number())


def _time_of(word: str) -> float:
    """A time in µs, NaN where there is none."""
    return float(word) if word else nan


def _whole_of(word: str) -> int:
    """Begin or busy time in ns, NOT_KNOWN where there is none."""
    return NOT_KNOWN if word in _NOT_GIVEN else int(word)


def _limits(layout: EventLayout, place: int) -> tuple[float, float]:
    """Between which numbers the fields of a column are; from NOT_KNOWN where it may be empty."""
    if place in layout.times or place == layout.total:
        return -MAX_TIME_US, MAX_TIME_US
    if place in layout.begins or place in layout.busy:
        return NOT_KNOWN, MAX_EVENT_NS
    return (0, MAX_NUMBER) if place else (1, MAX_MESSAGE_BYTES)


def _filled(chunk: bytes) -> bytes | None:
    """With a number in place of each empty field and each -1; None where that cannot be."""
    if _EMPTY_TEXT in chunk or _MINUS_ONE_TEXT in chunk:
        return None
    filled = chunk.replace(b"\r\n", b"\n").removesuffix(b"\n") + b"\n"
    filled = _MINUS_ONE_FIELD.sub(b"," + _MINUS_ONE_TEXT, filled)
    if any(letter in filled for letter in b"eE+-\"' \t"):
        return None
    for _ in range(2):  # a second time for the fields between those of the first
        filled = filled.replace(b",,", b"," + _EMPTY_TEXT + b",")
    return filled.replace(b",\n", b"," + _EMPTY_TEXT + b"\n")


def _content_lines(chunk: bytes, first: int) -> Wholes:
    """The numbers of the lines that are neither empty nor comments."""
    import numpy as np

    if b"#" not in chunk and b"\n\n" not in chunk and b"\r\n\r\n" not in chunk:
        return np.arange(first, first + chunk.count(b"\n") + (not chunk.endswith(b"\n")))
    kept = [
        number
        for number, line in enumerate(chunk.split(b"\n"), first)
        if line.strip(b" \t\r") and not line.lstrip(b" \t\r").startswith(b"#")
    ]
    return np.array(kept, np.int64)


def _words_of(
    chunk: bytes, first: int, width: int
) -> tuple[list[int], list[tuple[str, ...]]] | None:
    """The lines of the rows, and the words of each column; None where a row may be refused."""
    if b'"' in chunk:
        if b"#" in chunk:  # which is none of a comment in a quoted field
            return None
        chunk = _QUOTED.sub(rb"\1\2", chunk.replace(b"\r\n", b"\n"))
    try:
        text = chunk.decode()
    except UnicodeDecodeError:
        return None
    lines, rows = list[int](), list[list[str]]()
    raws = text.split("\n")
    for number, raw in enumerate(raws, first):
        line = raw.strip(" \t\r")
        if line and line[0] != "#":
            lines.append(number)
            rows.append(line.split(","))
    if any(len(words) != width for words in rows) or max(map(len, raws)) > MAX_LINE_LENGTH:
        return None
    if not _UNPADDED.fullmatch(text):
        rows = [[word.strip() for word in words] for words in rows]
    if not all(map(_PLAIN_ROW.fullmatch, map("".join, rows))):
        return None
    return lines, list(zip(*rows, strict=True)) if rows else [()] * width


def _check_time(word: str, where: str) -> None:
    """Raise UnreadableTrace unless this is a time in µs, or nothing."""
    if word and _NUMBER.fullmatch(word) is None:
        refuse(f"{where}: expected a finite decimal number of µs, as 12.5")
    if word and not -MAX_TIME_US <= float(word) <= MAX_TIME_US:
        refuse(f"{where}: expected a time from 0 to {MAX_TIME_US:g} µs")


# --- joining --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Table:
    """All rows, as arrays (rows,): times in µs and NaN, begins and busy in ns and NOT_KNOWN."""

    stages: tuple[str, ...]
    sizes: Wholes
    repetitions: Wholes | None
    message: Wholes
    fragment: Wholes | None
    lines: Wholes
    times: Matrix  # (stages, rows)
    total: Matrix | None  # (1, rows)
    begins: WholeTable  # (stages, rows)
    busy: WholeTable  # (stages, rows)

    @classmethod
    def of(cls, layout: EventLayout, columns: Sequence[Sizes | Times], lines: Sizes) -> _Table:
        """The columns as they were read; begins count from the first of them."""
        import numpy as np

        read = [np.frombuffer(column, column.typecode) for column in columns]
        unknown = np.full(len(lines), NOT_KNOWN, np.int64)
        begins = np.array([read[place] for place in layout.begins])
        is_there = begins != NOT_KNOWN
        begins[is_there] -= begins[is_there].min()
        return cls(
            layout.stages,
            read[0],
            None if layout.repetition is None else read[layout.repetition],
            read[layout.message],
            None if layout.fragment is None else read[layout.fragment],
            np.frombuffer(lines, np.int64),
            np.array([read[place] for place in layout.times]),
            None if layout.total is None else read[layout.total][None, :],
            begins,
            np.array([unknown if place is None else read[place] for place in layout.busy]),
        )

    def joined_by_number(self) -> _Table:
        """One row a fragment, in the order of first rows. Raises UnreadableTrace for an event that
        is there twice.
        """
        import numpy as np

        assert self.fragment is not None
        order = np.lexsort((self.fragment, self.message))
        message, fragment = self.message[order], self.fragment[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (message[1:] != message[:-1]) | (fragment[1:] != fragment[:-1])
        if is_first.all():
            return self
        self._refuse_repeated(order, np.cumsum(is_first) - 1)
        starts = np.flatnonzero(is_first)
        firsts = order[starts]
        back = np.argsort(firsts)
        firsts = firsts[back]
        sizes = np.maximum.reduceat(self.sizes[order], starts)[back]

        def of(column: Matrix) -> Matrix:
            # At most one row has the number, the others have NaN.
            out: Matrix = np.fmax.reduceat(column[:, order], starts, axis=1)[:, back]
            return out

        return _Table(
            self.stages,
            sizes,
            None if self.repetitions is None else self.repetitions[firsts],
            self.message[firsts],
            self.fragment[firsts],
            self.lines[firsts],
            of(self.times),
            None if self.total is None else of(self.total),
            np.maximum.reduceat(self.begins[:, order], starts, axis=1)[:, back],
            np.maximum.reduceat(self.busy[:, order], starts, axis=1)[:, back],
        )

    def _refuse_repeated(self, order: Wholes, group: Wholes) -> None:
        import numpy as np

        for stage, begins in zip(self.stages, self.begins[:, order], strict=True):
            at = np.flatnonzero(begins != NOT_KNOWN)
            again = np.flatnonzero(group[at][1:] == group[at][:-1])
            if len(again):
                first, second = (int(self.lines[order[at[again[0] + one]]]) for one in (0, 1))
                place = self.stages.index(stage)
                refuse(
                    f"line {second}: stage {place + 1} has this fragment of this message in line "
                    f"{first} already; expected every pair of {MESSAGE} and {FRAGMENT} once"
                )

    def events_by_number(self) -> TracedEvents:
        """The events, sorted by message and fragment."""
        import numpy as np

        assert self.fragment is not None
        order = np.lexsort((self.fragment, self.message))
        durations = self._durations()
        return _events(
            self.stages,
            (self.message[order], self.fragment[order], self.sizes[order]),
            (self.begins[:, order], durations[:, order], self.busy[:, order]),
        )

    def _durations(self) -> WholeTable:
        import numpy as np

        times = np.where(self.begins == NOT_KNOWN, 0.0, self.times)
        out = np.rint(times * 1000.0).astype(np.int64)
        out[self.begins == NOT_KNOWN] = NOT_KNOWN
        return out

    def joined_by_order(self) -> TracedEvents | None:
        """The i-th begin of a message in each stage is of its fragment i.

        None where no message has as many begins in every stage. Raises UnreadableTrace where a
        stage has several fragments at once.
        """
        import numpy as np

        durations = self._durations()
        distinct, message = np.unique(self.message, return_inverse=True)
        rows: list[Wholes] = []
        counts: list[Wholes] = []
        for place, begins in enumerate(self.begins):
            at = np.flatnonzero(begins != NOT_KNOWN)
            at = at[np.lexsort((begins[at], message[at]))]
            self._refuse_lanes(at, message[at], begins[at], durations[place, at])
            rows.append(at)
            counts.append(np.bincount(message[at], minlength=len(distinct)))
        is_whole = (np.array(counts) == counts[0]).all(axis=0) & (counts[0] > 0)
        if not is_whole.any():
            return None
        kept = [at[is_whole[message[at]]] for at in rows]
        of_message = message[kept[0]]
        starts = np.flatnonzero(np.diff(of_message, prepend=-1))
        sizes = np.diff(starts, append=len(of_message))
        fragment = np.arange(len(of_message)) - np.repeat(starts, sizes)
        columns = (self.begins, durations, self.busy)
        begins, taken, busy = (
            np.array([by_stage[place][at] for place, at in enumerate(kept)]) for by_stage in columns
        )
        numbers = (distinct[of_message], fragment, self.sizes[kept[0]])
        return _events(self.stages, numbers, (begins, taken, busy))

    def _refuse_lanes(self, rows: Wholes, message: Wholes, begins: Wholes, taken: Wholes) -> None:
        """Refuse events of a stage, by message and begin, of which several ran at once."""
        import numpy as np

        if len(begins) < 2:
            return
        ends = begins + taken
        ranks = np.empty(len(ends), np.int64)
        ranks[np.argsort(ends, kind="stable")] = np.arange(len(ends))
        # The latest end so far of each message: messages ascend, so that a new one begins anew.
        latest = np.maximum.accumulate(message * len(ends) + ranks)
        before = np.sort(ends)[latest[:-1] - message[:-1] * len(ends)]
        shared = np.minimum(before - begins[1:], taken[1:]).astype(np.float64)
        shared = np.where(message[1:] == message[:-1], np.maximum(shared, 0.0), 0.0)
        if shared.sum() > _SHARED * taken.sum(dtype=np.float64):
            line = int(self.lines[rows[1 + int(np.flatnonzero(shared)[0])]])
            refuse(
                f"line {line}: a stage has several fragments of this message at once, so that "
                f"their order does not tell which is which; expected a column {FRAGMENT} with the "
                "number of each fragment in its message"
            )

    def trace(self, events: TracedEvents | None) -> DirectTrace:
        """The rows with a time of every stage, and the events. Raises UnreadableTrace for none."""
        import numpy as np

        times = self.times if self.total is None else np.concatenate((self.times, self.total))
        is_whole = ~np.isnan(times).any(axis=0)
        sizes, repetitions = self.sizes[is_whole], self.repetitions
        times = times[:, is_whole]
        if not is_whole.any():
            sizes, times = self._of_events(events)
            repetitions = None
        elif repetitions is not None:
            repetitions = repetitions[is_whole]
        columns = tuple(Times("d", column.tobytes()) for column in times)
        has_total = len(columns) > len(self.stages)
        return DirectTrace(
            self.stages,
            _column(sizes),
            _column(numbered(sizes) if repetitions is None else repetitions),
            columns[: len(self.stages)],
            columns[-1] if has_total else None,
            events,
        )

    def _of_events(self, events: TracedEvents | None) -> tuple[Wholes, Matrix]:
        """Sizes and times of fragments whose stages are in rows of their own."""
        import numpy as np

        if events is None or self.fragment is not None or self.total is not None:
            refuse(
                "no measurements: no fragment has a time of every stage; expected rows with all "
                f"times, or rows of the same {MESSAGE} and {FRAGMENT}"
            )
        durations = np.array(events.duration_ns, np.float64)
        return np.array(events.fragment_bytes, np.int64), durations / 1000.0


def numbered(sizes: Wholes) -> Wholes:
    """Return for each row how many rows of its size come before it."""
    import numpy as np

    order = np.argsort(sizes, kind="stable")
    _, starts, counts = np.unique(sizes[order], return_index=True, return_counts=True)
    numbers = np.empty(len(sizes), np.int64)
    numbers[order] = np.arange(len(sizes)) - np.repeat(starts, counts)
    return numbers


def _events(
    stages: tuple[str, ...],
    numbers: tuple[Wholes, Wholes, Wholes],
    by_stage: tuple[WholeTable, WholeTable, WholeTable],
) -> TracedEvents:
    message, fragment, sizes = map(_column, numbers)
    begins, durations, busy = (tuple(map(_column, columns)) for columns in by_stage)
    return TracedEvents(stages, message, fragment, sizes, begins, durations, busy)


def _column(values: Wholes) -> Sizes:
    return Sizes("q", values.tobytes())
