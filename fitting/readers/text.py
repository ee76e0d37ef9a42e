"""What the readers of other tools' output share: lines, numbers, and tables with things in between.

Readers are given plain text: what terminals, mails and launchers put around lines is away
(`fitting.plain_text`).

Names of columns as people write them: of sizes, of repetitions, of what is no stage.

Whether a file is what the user says it is.

Rows that break rules, so that a user mends all of them at once and not one a try.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NoReturn, ParamSpec, TypeVar

from contract.limits import MAX_MESSAGE_BYTES, MAX_TIME_US
from domain.conditions import Condition
from domain.errors import UnreadableTrace
from domain.measurement import Reading, Samples, Spans, Trace, TraceKind
from domain.solution import Notice
from domain.trace_formats import UnreadableRows
from domain.units import format_bytes

BELOW_ZERO = "with a time below 0"  # a reason why rows were left out
LEFT_OUT = "rows_left_out"  # the entry of `understood` that counts them, by reason
MAX_LINES = 5_000_000
MAX_LINE_LENGTH = 16_384
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)(?:\([a-z0-9_]*\))?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the file, without outer white space, and its number from 1.

    `is_whole` is False for a last line without an end: it may have been cut off.
    """

    number: int
    text: str
    is_whole: bool = True

    @property
    def fields(self) -> list[str]:
        """Its words."""
        return self.text.split()


def lines_of(content: bytes) -> Iterator[Line]:
    """Yield the lines that are not empty. Raises UnreadableTrace for what is no text."""
    text = decoded(content)
    start, number = 0, 0
    while start < len(text):
        number += 1
        end = text.find("\n", start)
        is_whole = end >= 0
        end = end if is_whole else len(text)
        if end - start > MAX_LINE_LENGTH or number > MAX_LINES:
            refuse(f"line {number}: longer than {MAX_LINE_LENGTH} characters, or too many lines")
        line = text[start:end].replace("\xa0", " ").strip()
        start = end + 1
        if line:
            yield Line(number, line, is_whole)


def first_lines(text: str, count: int) -> list[str]:
    """Return the first lines that are not empty, without outer white space."""
    return list(islice(_bare_lines(text), count))


def first_rows(text: str, count: int) -> list[str]:
    """Return those of them that are no comments."""
    return list(islice((line for line in _bare_lines(text) if not line.startswith("#")), count))


def _bare_lines(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if line := text[start:end].strip().removeprefix("\ufeff"):
            yield line
        start = end + 1


def decoded(content: bytes) -> str:
    """Return the text. Raises UnreadableTrace for bytes that are not text in UTF-8."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        refuse("the file is UTF-16: expected UTF-8")
    if b"\0" in content:
        refuse("the file is binary: it has NUL bytes")
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as refusal:
        refuse(f"byte {refusal.start} is not UTF-8")


def number_of(word: str) -> float | None:
    """Return a plain decimal number; nan and inf as they are; None for anything else."""
    if _NUMBER.fullmatch(word):
        return float(word)
    if _NOT_FINITE.fullmatch(word):
        return math.nan
    return None


def size_of(word: str) -> int | None:
    """Return a whole number of bytes, or None."""
    return int(word) if word.isascii() and word.isdigit() and len(word) <= 20 else None


def refuse(detail: str) -> NoReturn:
    """Raise UnreadableTrace."""
    raise UnreadableTrace(detail, field="measurements")


@dataclass(slots=True)
class Collector:
    """Samples as they are read, under which conditions, and why rows were left out.

    `condition` is that of the rows to come.
    """

    sizes: list[int] = field(default_factory=list)
    times_us: list[float] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    condition: Condition = field(default_factory=Condition)
    _spans: list[tuple[int, Condition]] = field(default_factory=list)
    _first: int = 0  # size of the run, where it has begun
    _begun: Counter[tuple[int, tuple[tuple[str, str], ...]]] = field(default_factory=Counter)

    def begin_run(self, *, at_once: int = 1, named: tuple[tuple[str, str], ...] = ()) -> None:
        """Rows to come are of a run of their own, unless the last one has no rows yet.

        So are those after a row that turns back to the run's first size.
        """
        run = self._spans[-1][1].run + 1 if self._spans else 1
        self.condition = Condition(run, at_once, named)
        self._first = -1

    def begin_size(
        self,
        size: int,
        *,
        at_once: int = 1,
        named: tuple[tuple[str, str], ...] = (),
        is_spare: bool = False,
    ) -> None:
        """Rows to come are of one size, as tools print them that measure one a run: the n-th time
        that a size begins under these conditions is of the n-th run.
        """
        self._first = 0
        self._begun[size, named] += 1
        run = self._begun[size, named]
        self.condition = Condition(run, at_once, named, is_spare)

    def add(self, size: int, time_us: float, condition: Condition | None = None) -> None:
        """Take a row, under a condition of its own or under that of its run, or count why not."""
        if size == 0:
            self.leave_out("of 0 bytes")
        elif size > MAX_MESSAGE_BYTES:
            self.leave_out(f"of more than {MAX_MESSAGE_BYTES} bytes")
        elif not math.isfinite(time_us):
            self.leave_out("not finite")
        elif time_us < 0.0:
            self.leave_out(BELOW_ZERO)
        elif time_us > MAX_TIME_US:
            self.leave_out(f"of more than {MAX_TIME_US:g} µs")
        else:
            if condition is None and self._turns_back(size):
                self.begin_run(at_once=self.condition.at_once, named=self.condition.named)
            self._first = size if self._first < 0 else self._first
            condition = condition or self.condition
            if not self._spans or self._spans[-1][1] != condition:
                self._spans.append((len(self.sizes), condition))
            self.sizes.append(size)
            self.times_us.append(time_us)

    def _turns_back(self, size: int) -> bool:
        """Whether a sweep of the run has ended, and this is the first size of the next one."""
        return 0 < self._first == size and self.sizes[-1] != size

    def leave_out(self, why: str) -> None:
        """Count a row that is not used."""
        self.left_out[why] = self.left_out.get(why, 0) + 1

    def __len__(self) -> int:
        return len(self.sizes)

    def samples(self) -> Samples | None:
        """Return what was collected; None where that is nothing."""
        return Samples(tuple(self.sizes), tuple(self.times_us)) if self.sizes else None

    def spans(self) -> Spans:
        """Return from which sample on which condition holds."""
        return tuple(self._spans)


def format_left_out(*collectors: Collector) -> tuple[tuple[str, str], ...]:
    """Return the entry of `understood` that says what was left out and why."""
    reasons: dict[str, int] = {}
    for collector in collectors:
        for why, count in collector.left_out.items():
            reasons[why] = reasons.get(why, 0) + count
    return format_reasons(reasons)


def format_reasons(reasons: Mapping[str, int]) -> tuple[tuple[str, str], ...]:
    """Return that entry of these counts by reason; nothing where none was left out."""
    counted = {why: count for why, count in reasons.items() if count}
    if not counted:
        return ()
    listed = "; ".join(f"{count} {why}" for why, count in counted.items())
    return ((LEFT_OUT, f"{sum(counted.values())}: {listed}"),)


def refuse_below_zero(count: int, total: int) -> NoReturn:
    """Raise UnreadableTrace for times of which too many are below 0."""
    refuse(
        f"{count} of {total} times are below 0: as differences of two times they may be now and "
        "then, but not half of them; was the earlier one taken from the later one?"
    )


def with_below_zero(reading: Reading) -> Reading:
    """Return the reading with a notice of the times below 0 that were left out, if there are any.

    Raises UnreadableTrace where they are more than those that stayed.
    """
    stated = dict(reading.understood).get(LEFT_OUT, "")
    found = re.search(rf"([0-9]+) {BELOW_ZERO}", stated)
    if found is None:
        return reading
    count = int(found[1])
    total = count + len(reading.trace)
    if 2 * count > total:
        refuse_below_zero(count, total)
    are = "is" if count == 1 else "are"
    notice = Notice(
        "times_below_zero",
        f"{count} of {total} times {are} below 0, as a difference of noisy times may be, and left "
        "out; of sizes that take no longer than the noise what stays is too long",
        values=(("rows", float(count)), ("of", float(total))),
    )
    return replace(reading, notices=(*reading.notices, notice))


def format_sizes(*parts: Samples | None) -> tuple[tuple[str, str], ...]:
    """Return the entries of `understood` that count rows and sizes."""
    known = [part for part in parts if part is not None]
    distinct = set[int]().union(*(part.message_bytes for part in known))
    span = f"{len(distinct)}: {format_bytes(min(distinct))} to {format_bytes(max(distinct))}"
    return (("rows", str(sum(map(len, known)))), ("sizes", span))


UNIT = re.compile(
    r"(?:[\s_]{1,16}|\s{0,16}[(\[]\s{0,16})"
    r"(us|usec|µs|μs|ms|msec|ns|nsec|s|sec|seconds)\s*[)\]]?$",
    re.IGNORECASE,
)
OF_WHOLE_MESSAGES = re.compile(
    r"t|time|lat(?:ency)?|duration|elapsed|rtt|avg|mean|median|us|usec", re.IGNORECASE
)
INTERARRIVAL = re.compile(r"inter[_ -]?arrival\w*|gap", re.IGNORECASE)
_SIZE = re.compile(
    r"(?:(?:message|msg|packet|block|buffer|transfer|data)[_ ]?)?"
    r"(?:bytes?|size|length|len)(?:[_ ]?[(\[]?(?:b|bytes?)[)\]]?)?",
    re.IGNORECASE,
)
_REPETITION = re.compile(r"#|i|n|no|rep\w*|iter\w*|run|trial|sample|count", re.IGNORECASE)
_STATISTIC = re.compile(
    r"(?:(?:t|time|lat|latency)[_ ]?)?"
    r"(?:min(?:imum)?|max(?:imum)?|avg|average|mean|median|typical|std\w*|sd|var\w*|"
    r"p\d+|\d+(?:th)?|q\d+|percentile\w*)",
    re.IGNORECASE,
)


def is_size(name: str) -> bool:
    """Return whether a column of this name holds the sizes of messages, in bytes."""
    return _SIZE.fullmatch(name) is not None


def is_repetition(name: str) -> bool:
    """Return whether it numbers the repetitions."""
    return _REPETITION.fullmatch(name) is not None


def is_no_stage(name: str) -> bool:
    """Return whether this, without its unit, names a whole message or a statistic and not a
    stage.
    """
    return any(rule.fullmatch(name) for rule in (OF_WHOLE_MESSAGES, INTERARRIVAL, _STATISTIC))


_ASKED = {
    TraceKind.DIRECT: "the time of every stage",
    TraceKind.INDIRECT: "inter-arrival times",
    TraceKind.END_TO_END: "latencies alone",
    TraceKind.LOGP: "signatures of an end point",
}


def check_kind(trace: Trace, kind: TraceKind | None, format_name: str) -> None:
    """Raise UnreadableTrace, naming the kind, where it contradicts what the file holds."""
    if kind is None or kind is trace.kind:
        return
    raise UnreadableTrace(
        f"kind {kind} means {_ASKED[kind]}; this file ({format_name}) holds {_ASKED[trace.kind]}: "
        f"it is {trace.kind}",
        field="kind",
    )


MAX_LISTED = 10
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class BadRows:
    """The refusals of the rows of one file, in their order."""

    def __init__(self) -> None:
        self._refusals: list[str] = []

    def tried(
        self,
        read: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result | None:
        """Return what reading a row gives; None where it is refused, which is kept.

        Raises UnreadableRows once there are more than MAX_LISTED.
        """
        try:
            return read(*arguments, **named)
        except UnreadableTrace as refusal:
            if len(self._refusals) == MAX_LISTED:
                raise UnreadableRows(tuple(self._refusals), has_more=True) from None
            self._refusals.append(refusal.detail)
            return None

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Read rows inside; what was refused is raised at the end. Raises UnreadableTrace.

        A refusal that leaves the block ends the reading; it comes after those of rows.
        """
        try:
            yield
        except UnreadableRows:
            raise
        except UnreadableTrace as refusal:
            if not self._refusals:
                raise
            self._refusals.append(refusal.detail)
        if len(self._refusals) == 1:
            raise UnreadableTrace(self._refusals[0], field="measurements")
        if self._refusals:
            raise UnreadableRows(tuple(self._refusals))
