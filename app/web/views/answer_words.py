"""What an answer says in words: what was proven and never more, limits, cuts in groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from app.schemas.optimize import OptimizeOut
from app.text.numbers import format_count, format_gap
from app.text.units import TimeUnit, format_proven
from domain.solution import Status
from domain.units import format_bytes

MOST_RUNS = 24  # groups of a cut that are shown at once
_FIRST, _LAST = 12, 6  # of the groups, where there are more
_AT_MOST = "latency_is_upper_bound"
_LIMITS = {
    "max_fragments": "the greatest number of fragments that was allowed",
    "SLUICE_MAX_FRAGMENTS": "the service's own cap on fragments, SLUICE_MAX_FRAGMENTS",
    "min_fragment_bytes": "the least fragment size that was allowed",
    "alignment_bytes": "the alignment that was asked for",
}


@dataclass(frozen=True, slots=True)
class Proof:
    """A status in words: a word or two with a colour, and the whole sentence."""

    kind: str
    word: str
    sentence: str


@dataclass(frozen=True, slots=True)
class SizeRun:
    """Fragments `first` to `last`, counted from 1, of one size."""

    first: int
    last: int
    size_bytes: int

    @property
    def count(self) -> int:
        """How many they are."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut in groups of equal neighbours. `left_out` of its fragments stand between the two."""

    name: str
    fragments: int
    head: tuple[SizeRun, ...]
    left_out: int
    tail: tuple[SizeRun, ...]
    least_bytes: int
    greatest_bytes: int


def runs_of(sizes: Sequence[int]) -> Iterator[SizeRun]:
    """Equal neighbours together."""
    first = 1
    for size_bytes, members in groupby(sizes):
        count = sum(1 for _ in members)
        yield SizeRun(first, first + count - 1, size_bytes)
        first += count


def cut_of(sizes: Sequence[int], *, name: str = "") -> Cut:
    """All groups, or the first and the last of many."""
    runs = tuple(runs_of(sizes))
    if len(runs) <= MOST_RUNS:
        return Cut(name, len(sizes), runs, 0, (), min(sizes), max(sizes))
    head, tail = runs[:_FIRST], runs[-_LAST:]
    left_out = tail[0].first - head[-1].last - 1
    return Cut(name, len(sizes), head, left_out, tail, min(sizes), max(sizes))


def latency_and_bound(answer: OptimizeOut) -> tuple[str, str]:
    """Both in one unit, with as many digits as tell the gap between them."""
    return format_proven(answer.latency_us, answer.lower_bound_us)


def latency_unit(answer: OptimizeOut) -> TimeUnit:
    """Return the unit and decimals of the latency beside its bound."""
    return TimeUnit.of(answer.latency_us, answer.lower_bound_us)


def is_at_most(answer: OptimizeOut) -> bool:
    """Whether the latency is the most that a pipeline with these costs can take."""
    return any(found.code == _AT_MOST for found in answer.warnings)


def proof_of(answer: OptimizeOut) -> Proof:
    """What was proven of an answer."""
    status, gap = Status(answer.status), answer.relative_gap
    _, bound = latency_and_bound(answer)
    admitted = _class_of(answer)
    if status is Status.OPTIMAL:
        said = f"No {admitted} is faster"
        return Proof("good", "optimal", f"{said}{_by_more_than(gap)}.")
    if status is Status.OPTIMAL_BEFORE_ROUNDING:
        return Proof("good", "optimal before rounding", _before_rounding(answer, admitted))
    between = f"No {admitted} is faster than {bound}; this one is {_about(gap)} above that."
    if status is Status.TIME_LIMIT:
        told = "The time limit ended the search: this is the best found until then. "
        return Proof("warn", "time limit reached", told + between)
    return Proof("", "proven gap", between)


def _class_of(answer: OptimizeOut) -> str:
    """Which schedules the proof speaks of."""
    if answer.allow_refragmentation or answer.levels:
        return "schedule within these limits, also one that cuts anew between stages,"
    return "schedule within these limits"


def _by_more_than(gap: float) -> str:
    return f" by more than {format_gap(gap).removeprefix('< ')}" if gap > 0.0 else ""


def _about(gap: float) -> str:
    """A gap inside a sentence."""
    return format_gap(gap).replace("< ", "less than ")


def _before_rounding(answer: OptimizeOut, admitted: str) -> str:
    _, bound = latency_and_bound(answer)
    gap = _about(answer.relative_gap)
    unit = answer.constraints.alignment_bytes
    whole = "whole bytes" if unit == 1 else f"whole multiples of {format_bytes(unit)}"
    return (
        f"With sizes in fractions of a byte the optimum is proven, and no {admitted} is faster "
        f"than {bound}; {whole} are {gap} above that."
    )


def limited_words(answer: OptimizeOut) -> str:
    """What keeps another fragment from helping; nothing where nothing does."""
    name = answer.limited_by
    if not name:
        return ""
    return f"More fragments could be faster, but for {_LIMITS.get(name, name)}."


def limits_words(answer: OptimizeOut) -> tuple[str, ...]:
    """Each limit that the schedule keeps, in a few words; none where any cut was admitted."""
    limits, found = answer.constraints, []
    if limits.min_fragment_bytes > 1:
        found.append(f"fragments of at least {format_bytes(limits.min_fragment_bytes)}")
    if limits.max_fragment_bytes:
        found.append(f"fragments of at most {format_bytes(limits.max_fragment_bytes)}")
    if limits.alignment_bytes > 1:
        found.append(f"all but the last a multiple of {format_bytes(limits.alignment_bytes)}")
    if limits.max_fragments:
        found.append(f"at most {format_count(limits.max_fragments)} fragments")
    if answer.allow_refragmentation:
        found.append("stages may cut anew")
    return tuple(found)


def through_words(answer: OptimizeOut) -> str:
    """The message and what it crosses."""
    message = format_bytes(answer.message_bytes)
    if answer.pipeline is None:
        return f"{message} through a pipeline seen from outside"
    stages = len(answer.pipeline.stages)
    return f"{message} through {stages} stage{'s' * (stages != 1)}"


def bottleneck_name(answer: OptimizeOut) -> str:
    """The name of the stage that is occupied longest; "" where no stage is known."""
    if answer.pipeline is None or answer.bottleneck_stage is None:
        return ""
    return answer.pipeline.stages[answer.bottleneck_stage].name
