"""When every stage of a mover worked on every fragment: what tells which stages overlap.

from domain.traced_events import TracedEvents
events = TracedEvents(("hash", "send"), (0, 0), (0, 1), (4096, 4096),
                      begin_ns=((0, 900), (950, 2100)), duration_ns=((880, 890), (1100, 1090)),
                      busy_ns=((870, 880), (-1, -1)))

Source    own: durations alone do not tell a serial mover from a pipelined one, begins do.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from operator import eq, lt
from typing import Protocol, runtime_checkable

from contract.limits import MAX_MESSAGE_BYTES, MAX_STAGES
from domain.errors import UnreadableTrace

NOT_KNOWN = -1  # a begin and a duration of an event that is missing, and a busy time without one
MAX_NUMBER = 2**48  # of messages and of fragments
MAX_EVENT_NS = 2**53 - 2  # 104 days: what a double holds exactly
_FIELD = "measurements"


@dataclass(frozen=True, slots=True)
class TracedEvents:
    """Events of a trace, one row a fragment, by ascending (message, fragment), by column.

    Row r is fragment `fragment[r]` of message `message[r]`, of `fragment_bytes[r]` bytes. For stage
    j, named `stages[j]`, `begin_ns[j][r]` is when it began on this fragment, in ns from the file's
    first event, `duration_ns[j][r]` how long it took, in ns, and `busy_ns[j][r]` how long its
    thread computed in this time, in ns. An event that is missing has begin and duration NOT_KNOWN,
    a busy time that nobody measured is NOT_KNOWN. Every row has one event or more. With NumPy,
    `np.array(events.begin_ns).T` has the shape (rows, stages).

    Raises UnreadableTrace where a rule is broken: columns of different lengths, numbers out of
    range, rows out of order or twice, a begin without a duration.
    """

    stages: tuple[str, ...]
    message: Sequence[int]
    fragment: Sequence[int]
    fragment_bytes: Sequence[int]
    begin_ns: tuple[Sequence[int], ...]
    duration_ns: tuple[Sequence[int], ...]
    busy_ns: tuple[Sequence[int], ...]

    def __post_init__(self) -> None:
        _refuse(
            not 1 <= len(self.stages) <= MAX_STAGES, f"expected events of 1 to {MAX_STAGES} stages"
        )
        _refuse(
            len(set(self.stages)) < len(self.stages), "expected a name of its own for every stage"
        )
        by_stage = (self.begin_ns, self.duration_ns, self.busy_ns)
        _refuse(
            any(len(columns) != len(self.stages) for columns in by_stage),
            "expected columns of begins, durations and busy times of every stage",
        )
        columns = (self.fragment, self.fragment_bytes, *self.begin_ns)
        columns += (*self.duration_ns, *self.busy_ns)
        _refuse(len(self.message) == 0, "expected the event of at least one fragment")
        _refuse(
            any(len(column) != len(self.message) for column in columns),
            "expected columns of the same length",
        )
        self._check_numbers()
        self._check_events()

    def __len__(self) -> int:
        """How many fragments there are, over all messages."""
        return len(self.message)

    @property
    def end_ns(self) -> tuple[Sequence[int], ...]:
        """Return when each stage ended on each fragment, in ns; NOT_KNOWN where it is missing."""
        return tuple(
            array(
                "q",
                [
                    NOT_KNOWN if begin < 0 else begin + duration
                    for begin, duration in zip(begins, durations, strict=True)
                ],
            )
            for begins, durations in zip(self.begin_ns, self.duration_ns, strict=True)
        )

    @property
    def missing(self) -> int:
        """Return how many events are missing, over all fragments and stages."""
        return sum(sum(1 for begin in begins if begin < 0) for begins in self.begin_ns)

    def _check_numbers(self) -> None:
        for name, column in (("messages", self.message), ("fragments", self.fragment)):
            minimum, maximum = _extremes(column)
            _refuse(
                not 0 <= minimum <= maximum <= MAX_NUMBER,
                f"expected numbers of {name} from 0 to {MAX_NUMBER}",
            )
        minimum, maximum = _extremes(self.fragment_bytes)
        _refuse(
            not 1 <= minimum <= maximum <= MAX_MESSAGE_BYTES,
            f"expected fragments of 1 to {MAX_MESSAGE_BYTES} bytes",
        )
        keys = list(zip(self.message, self.fragment, strict=True))
        _refuse(
            not all(map(lt, keys, islice(keys, 1, None))),
            "expected every fragment of a message once, in ascending order",
        )

    def _check_events(self) -> None:
        for column in (*self.begin_ns, *self.duration_ns, *self.busy_ns):
            minimum, maximum = _extremes(column)
            _refuse(
                not NOT_KNOWN <= minimum <= maximum <= MAX_EVENT_NS,
                f"expected whole numbers of ns from 0 to {MAX_EVENT_NS}, or {NOT_KNOWN}",
            )
        incomplete = [False] * len(self.stages)
        for place, begins in enumerate(self.begin_ns):
            durations, busy = self.duration_ns[place], self.busy_ns[place]
            if min(_extremes(begins)[0], _extremes(durations)[0]) >= 0:
                continue
            incomplete[place] = True
            is_missing = [begin < 0 for begin in begins]
            _refuse(
                not all(map(eq, is_missing, [one < 0 for one in durations])),
                "expected a duration where there is a begin, and nowhere else",
            )
            _refuse(
                any(missing and one >= 0 for missing, one in zip(is_missing, busy, strict=True)),
                "expected no busy time of an event that is missing",
            )
        if all(incomplete):
            _refuse(
                any(max(row) < 0 for row in zip(*self.begin_ns, strict=True)),
                "expected an event or more of every fragment",
            )


def one_after_the_other(parts: Sequence[TracedEvents]) -> TracedEvents:
    """Return the events of one part or more as one, messages and begins of each after the last.

    Raises UnreadableTrace where stages differ, or numbers would be out of range.
    """
    _refuse(len({part.stages for part in parts}) != 1, "expected events of the same stages")
    message = array("q")
    columns = [array("q") for _ in range(2 + 3 * len(parts[0].stages))]
    first_message = first_ns = 0
    for part in parts:
        message.extend([number + first_message for number in part.message])
        begins = [
            [NOT_KNOWN if begin < 0 else begin + first_ns for begin in column]
            for column in part.begin_ns
        ]
        read = (part.fragment, part.fragment_bytes, *begins, *part.duration_ns, *part.busy_ns)
        for column, values in zip(columns, read, strict=True):
            column.extend(values)
        first_message += max(part.message) + 1
        first_ns += max(map(max, part.end_ns))
    fragment, fragment_bytes, *of_stages = columns
    by_kind = len(parts[0].stages)
    return TracedEvents(
        parts[0].stages,
        message,
        fragment,
        fragment_bytes,
        tuple(of_stages[:by_kind]),
        tuple(of_stages[by_kind : 2 * by_kind]),
        tuple(of_stages[2 * by_kind :]),
    )


def _refuse(wrong: bool, rule: str) -> None:
    if wrong:
        raise UnreadableTrace(rule, field=_FIELD)


@runtime_checkable
class _KnowsExtremes(Protocol):
    """A column that gives its extremes without a loop over a million objects."""

    def min(self) -> int: ...

    def max(self) -> int: ...


def _extremes(column: Sequence[int]) -> tuple[int, int]:
    """The smallest and the largest number."""
    if isinstance(column, _KnowsExtremes):
        return column.min(), column.max()
    return min(column), max(column)
