"""One condition of a file, or several that agree: the rule for all formats.

A file may hold several runs, several numbers of connections, or the times of several machines. What
was measured under different conditions is not one pipeline: only where their times differ by less
than 10 %, or by less than they scatter, are they taken as repetitions of each other. Elsewhere the
user says which condition is meant.

Source      own. Times of a size are represented by their median; conditions are compared at the
            sizes that both have. Where these are fewer than two, at the sizes of each that lie
            within the other's, whose times are interpolated there; where none do, the line
            through the sizes next to the gap has to lead to the other's.
Notation    n the number of common sizes; r the logarithm of the ratio of two medians; σ the
            scatter of the logarithm of a single time, of both conditions together, each at least
            as large as that of the middle one of all conditions; z = 3 + sqrt(2 log pairs), for of
            many pairs some are far apart by chance.
Cost        O(N log N) in the rows, and at most 120 pairs of conditions, or 2 a condition.
Exact       conditions differ where |median r| > max(log 1.1, 1.25 z σ / sqrt(n)), or where
            r > max(log 1.1, (z + 1) σ) at a third of the sizes, and at two, or at the smallest or
            the largest if r > max(log 1.05, (z - 1) σ) at the next one too; so for -r. At a
            single size they differ where |r| > max(log 1.1, (z + 1) σ), and on both sides of a gap
            where it is more than max(log 1.5, (z + 1) σ).
Traps       where a size has one time, σ is how far it lies from the line through its neighbours: a
            switch of protocols counts as scatter of one size there, and the median passes it over;
            of few sizes an outlier is in half of these distances, so that no more than 20 % of
            them are believed.
            One size that is off alone is an outlier, which the fit passes over.
            What nothing compares is not taken to agree: named conditions without two sizes to
            compare are asked for. Runs of one or two sizes each are the way that some tools
            measure a sweep, and are taken together; so are conditions that others connect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from shlex import quote
from typing import TYPE_CHECKING, TypeAlias

from contract.limits import MAX_WHERE_LENGTH
from domain.conditions import Condition, RowChoice, parse_where
from domain.errors import InconsistentInput, UnreadableTrace
from domain.measurement import (
    DirectTrace,
    MessageTrace,
    Reading,
    Samples,
    SignatureTrace,
    Spans,
    TraceKind,
)
from domain.solution import Notice
from domain.units import format_bytes
from fitting.readers.text import check_kind, format_sizes

if TYPE_CHECKING:
    import numpy as np

    Floats: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]
    Places: TypeAlias = np.ndarray[tuple[int], np.dtype[np.intp]]

_NEAR = 1.1  # conditions whose times are within this ratio are one
_SURE = 3.0  # times its scatter that a ratio of a single pair may be off
_OF_MEDIAN = 1.25  # the scatter of a median of many over that of their mean
_PART = 3  # one of so many sizes tells conditions apart, if two do
_GAP = 1.5  # a line leads to a time beyond a gap if within this ratio
_OF_LINE = 3  # sizes next to a gap through which a line goes
_MAX_COMPARED = 16  # conditions of which all pairs are compared
_MAX_LISTED, _MAX_SHOWN = 8, 40
_LONG = 60  # characters of a value that say which it is, where none other begins so
_MOST = 0.2  # of a scatter that no repetition shows: a single outlier may make more of it
_NORMAL = 1.4826  # a standard deviation over the median of what is its absolute value
_OF_THREE = 1.5**0.5  # the scatter of a time less the mean of two others, over that of one


@dataclass(frozen=True, slots=True)
class _Part:
    """Samples of one kind: sizes, times of each stage, and which conditions they have."""

    sizes: Sequence[int]
    times_us: tuple[Sequence[float], ...]
    spans: Spans
    carried: tuple[Sequence[float], ...] = ()  # columns that are not compared

    @property
    def places(self) -> dict[Condition, list[range]]:
        """Which samples each condition has."""
        found: dict[Condition, list[range]] = {}
        ends = [start for start, _ in self.spans[1:]] + [len(self.sizes)]
        for (start, condition), end in zip(self.spans, ends, strict=True):
            found.setdefault(condition, []).append(range(start, end))
        return found

    def part_of(self, conditions: Sequence[Condition]) -> _Part | None:
        """Return the samples under these conditions; None for none."""
        kept = set(conditions)
        places, spans = list[int](), list[tuple[int, Condition]]()
        ends = [start for start, _ in self.spans[1:]] + [len(self.sizes)]
        for (start, condition), end in zip(self.spans, ends, strict=True):
            if condition in kept:
                spans.append((len(places), condition))
                places.extend(range(start, end))
        if not places:
            return None
        times, carried = (
            tuple(tuple(column[at] for at in places) for column in columns)
            for columns in (self.times_us, self.carried)
        )
        return _Part(tuple(self.sizes[at] for at in places), times, tuple(spans), carried)


def settled(reading: Reading, choice: RowChoice, kind: TraceKind | None = None) -> Reading:
    """Return the reading of the conditions that are chosen, where those that stay agree.

    Raises UnreadableTrace where they do not, and InconsistentInput for a choice that the file does
    not have.
    """
    if not reading.conditions:
        if choice.run not in (None, 1) or choice.where is not None:
            raise InconsistentInput(
                f"a file of {reading.format} is read as one run: there is nothing to choose",
                field="where" if choice.where is not None else "run",
            )
        return reading
    before = _parts(reading)
    runs = [_runs(part) for part in before]
    parts = _chosen_run(_without_spare(_chosen_values(before, choice)), choice, runs)
    for part, known in zip(parts, runs, strict=True):
        if part is not None:
            _check_agreement(part, known)
    out = reading if parts == before else _with_parts(reading, parts)
    check_kind(out.trace, kind, reading.format)
    stated = _stated(out, before, parts, choice)
    return replace(out, understood=stated, notices=(*out.notices, *_lanes(out, parts)))


def _parts(reading: Reading) -> tuple[_Part | None, ...]:
    trace = reading.trace
    if isinstance(trace, MessageTrace):
        known = (trace.latency, trace.interarrival)
        return tuple(
            None if part is None else _Part(part.message_bytes, (part.times_us,), spans)
            for part, spans in zip(known, reading.conditions, strict=True)
        )
    if isinstance(trace, SignatureTrace):
        return _signature_parts(trace, reading.conditions)
    return (_Part(trace.message_bytes, trace.stage_us, reading.conditions[0]),)


def _signature_parts(
    trace: SignatureTrace, conditions: Sequence[Spans]
) -> tuple[_Part | None, ...]:
    """Costs, those without computation and those with it compared apart; round trips; receives."""
    idle, busy = (
        [
            cost if (computation > 0.0) is is_busy else 0.0
            for cost, computation in zip(trace.cost_us, trace.computation_us, strict=True)
        ]
        for is_busy in (False, True)
    )
    carried = (trace.cost_us, trace.computation_us, trace.bursts)
    costs = _Part(trace.message_bytes, (idle, busy), conditions[0], carried)
    samples = (
        None if part is None else _Part(part.message_bytes, (part.times_us,), spans)
        for part, spans in zip((trace.round_trip, trace.receive), conditions[1:], strict=True)
    )
    return (costs, *samples)


def _signature_of(trace: SignatureTrace, parts: Sequence[_Part | None]) -> SignatureTrace:
    """The trace of these costs, round trips and receives alone."""
    costs, *others = parts
    assert costs is not None
    cost_us, computation_us, bursts = costs.carried
    round_trip, receive = (
        None if part is None else Samples(part.sizes, part.times_us[0]) for part in others
    )
    return replace(
        trace,
        message_bytes=costs.sizes,
        bursts=tuple(map(int, bursts)),
        computation_us=computation_us,
        cost_us=cost_us,
        round_trip=round_trip,
        receive=receive,
    )


def _with_parts(reading: Reading, parts: Sequence[_Part | None]) -> Reading:
    """The reading of these samples alone."""
    trace = reading.trace
    if isinstance(trace, MessageTrace):
        latency, interarrival = (
            None if part is None else Samples(part.sizes, part.times_us[0]) for part in parts
        )
        trace = MessageTrace(latency, interarrival)
        counted = dict(format_sizes(latency, interarrival))
    elif isinstance(trace, SignatureTrace):
        trace = _signature_of(trace, parts)
        counted = dict(
            format_sizes(trace.round_trip or Samples(trace.message_bytes, trace.cost_us))
        )
    else:
        (part,) = parts
        assert part is not None
        seen = Counter[int]()
        repetitions = list[int]()
        for size in part.sizes:
            repetitions.append(seen[size])
            seen[size] += 1
        trace = DirectTrace(trace.stage_names, part.sizes, tuple(repetitions), part.times_us)
        counted = dict(format_sizes(Samples(part.sizes, part.times_us[0])))
    understood = tuple((name, counted.get(name, value)) for name, value in reading.understood)
    spans = tuple(() if part is None else part.spans for part in parts)
    return replace(reading, trace=trace, understood=understood, conditions=spans)


# --- what the user chooses ------------------------------------------------------------------------


def _chosen_values(parts: Sequence[_Part | None], choice: RowChoice) -> tuple[_Part | None, ...]:
    """The samples under the named conditions that are chosen. Raises InconsistentInput."""
    out = tuple(parts)

    def has(name: str, value: str) -> bool:
        return any(_is_same(value, one) for one in _values(parts, name))

    for name, value in parse_where(choice.where, has) if choice.where is not None else ():
        values = _values(out, name)
        if not values:
            known = ", ".join(_names(out)) or "none"
            raise InconsistentInput(
                f"no condition of this file is called {name}; it has {known}", field="where"
            )
        if not any(_is_same(value, one) for one in values):
            raise InconsistentInput(
                f"{name} has {_listed(values)}: expected one of them, as "
                f"{f'{name}={values[0]}'[:MAX_WHERE_LENGTH]}",
                field="where",
            )
        out = tuple(_with_value(part, name, value) for part in out)
    return out


def _with_value(part: _Part | None, name: str, value: str) -> _Part | None:
    """The samples of a part with this value; all where the part tells none of this name."""
    if part is None:
        return None
    known = [(condition, condition.value(name)) for condition in part.places]
    if all(one is None for _, one in known):
        return part
    kept = [condition for condition, one in known if one is not None and _is_same(value, one)]
    return part if len(kept) == len(known) else part.part_of(kept)


def _without_spare(parts: Sequence[_Part | None]) -> tuple[_Part | None, ...]:
    """The samples of single transfers, where there are any."""
    conditions = [place for part in parts if part is not None for place in part.places]
    kept = [condition for condition in conditions if not condition.is_spare]
    if not kept or len(kept) == len(conditions):
        return tuple(parts)
    return tuple(None if part is None else part.part_of(kept) for part in parts)


def _is_same(value: str, other: str) -> bool:
    """Whether a word means this value: the same word or number, or of a long one its beginning."""
    if value.casefold() == other.casefold():
        return True
    if len(value) >= _LONG:
        return other.casefold().startswith(value.casefold())
    try:
        return float(value) == float(other)
    except ValueError:
        return False


def _chosen_run(
    parts: Sequence[_Part | None], choice: RowChoice, runs: Sequence[Sequence[int]]
) -> tuple[_Part | None, ...]:
    """The samples of a run, counted in every part that has several, before any other choice.

    Raises InconsistentInput.
    """
    run = choice.run
    if run is None:
        return tuple(parts)
    count = max(map(len, runs))
    if run > count:
        of = "1 run" if count == 1 else f"{count} runs"
        raise InconsistentInput(f"this file has {of}: there is no run {run}", field="run")
    out = tuple(
        part
        if part is None or len(known) == 1
        else part.part_of([place for place in part.places if place.run in known[run - 1 : run]])
        for part, known in zip(parts, runs, strict=True)
    )
    if not any(out):
        left = sorted(
            {
                known.index(one) + 1
                for part, known in zip(parts, runs, strict=True)
                for one in _runs(part)
            }
        )
        has = f"has {choice.where}" if choice.where is not None else "is of single transfers"
        raise InconsistentInput(
            f"nothing in run {run} {has}: expected one of the runs {_counted(left)}", field="run"
        )
    return out


def _counted(runs: Sequence[int]) -> str:
    more = ", ..." if len(runs) > _MAX_LISTED else ""
    return f"{', '.join(map(str, runs[:_MAX_LISTED]))}{more}"


def _runs(part: _Part | None) -> list[int]:
    return [] if part is None else sorted({condition.run for condition in part.places})


def _names(parts: Sequence[_Part | None]) -> list[str]:
    """What the conditions of a file are called."""
    conditions = [place for part in parts if part is not None for place in part.places]
    return list(dict.fromkeys(name for condition in conditions for name, _ in condition.named))


def _values(parts: Sequence[_Part | None], name: str) -> list[str]:
    conditions = [place for part in parts if part is not None for place in part.places]
    found = [condition.value(name) for condition in conditions]
    return sorted({value for value in found if value is not None}, key=_order)


def _order(value: str) -> tuple[float, str]:
    try:
        return float(value), value
    except ValueError:
        return float("inf"), value


def _listed(values: Sequence[str]) -> str:
    more = ", ..." if len(values) > _MAX_LISTED else ""
    return f"the values {', '.join(map(_shown, values[:_MAX_LISTED]))}{more}"


def _shown(value: str) -> str:
    return value if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]}…"


# --- whether conditions agree ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Curve:
    """Sizes that were measured under a condition, medians of their times, and the scatter."""

    sizes: Floats
    times_us: Floats
    scatter: float

    def __len__(self) -> int:
        """How many sizes it has."""
        return len(self.sizes)


def _check_agreement(part: _Part, runs: Sequence[int]) -> None:
    """Raise UnreadableTrace where conditions differ, or nothing shows that they agree, naming what
    tells them apart; `runs` are those of the whole file.
    """
    places = part.places
    if len(places) < 2 or (apart := _apart(part, [[place] for place in places])) is None:
        return
    by_name: list[tuple[float, int, str]] = []
    for name in _names((part,)):
        found = _apart_by(part, name)
        if found is not None:
            by_name.append((*found, name))
    if by_name:
        ratio, size, name = max(by_name)
        values = _values((part,), name)
        differ = (
            f"whose times differ by up to {_percent(ratio)} (of {format_bytes(size)}): "
            if ratio
            else "and nothing shows that their times agree, for they have no two sizes in common: "
        )
        raise UnreadableTrace(
            f"{name} has {_listed(values)}, {differ}take one of them, as by --where "
            f"{quote(f'{name}={values[0]}'[:MAX_WHERE_LENGTH])} (where)",
            field="measurements",
        )
    groups = _grouped(list(places), lambda one: str(one.run))
    of_runs = _apart(part, groups, are_runs=True)
    if of_runs is None and apart == _UNKNOWN:
        return  # single conditions are too small to compare, all of a value or of a run are not
    ratio, size = of_runs or apart
    numbers = [runs.index(run) + 1 for run in _runs(part)]
    of = "" if len(numbers) == len(runs) else f" of {len(runs)} ({_counted(numbers)})"
    differ = (
        f"differ by up to {_percent(ratio)} (of {format_bytes(size)}), and are no repetitions of "
        "each other"
        if ratio
        else "have no two sizes in common, and none goes on as another ends"
    )
    raise UnreadableTrace(
        f"{len(numbers)} runs{of} in this file {differ}: take one of them, as by "
        f"--run {numbers[0]} or --run {numbers[-1]} (run)"
        + ("" if ratio else "; parts of one sweep are read as a file each"),
        field="measurements",
    )


def _apart_by(part: _Part, name: str) -> tuple[float, int] | None:
    """As `_apart`, of the values of a name: of all conditions, or of those alike in all else."""

    def others(one: Condition) -> str:
        return repr((one.run, [(key, value) for key, value in one.named if key != name]))

    places = list(part.places)
    for alike in (places, *_grouped(places, others)):
        found = _apart(part, _grouped(alike, lambda one: one.value(name) or ""))
        if found is not None:
            return found
    return None


def _percent(ratio: float) -> str:
    return f"{100.0 * (ratio - 1.0):.0f} %" if ratio < 100.0 else f"{ratio:.0f} times"


def _grouped(
    conditions: Sequence[Condition], key: Callable[[Condition], str]
) -> list[list[Condition]]:
    found: dict[str, list[Condition]] = {}
    for condition in conditions:
        found.setdefault(key(condition), []).append(condition)
    return list(found.values())


def _apart(
    part: _Part, groups: Sequence[Sequence[Condition]], *, are_runs: bool = False
) -> tuple[float, int] | None:
    """The greatest ratio between groups that differ, and the size it is at; a ratio of 0 where
    nothing shows that they agree; None where all agree. `are_runs`: names do not count.

    Of many groups each is compared with the one before it and with the first.
    """
    import numpy as np

    worst: tuple[float, int] | None = None
    for column in range(len(part.times_us)):
        found = list(_curves(part, groups, column))
        curves = [curve for curve, _ in found]
        if len(curves) < 2:
            continue
        of_all = float(np.median([curve.scatter for curve in curves]))
        count = len(curves)
        pairs = (
            [*combinations(range(count), 2)]
            if count <= _MAX_COMPARED
            else [*pairwise(range(count)), *((0, at) for at in range(2, count))]
        )
        allowance = _SURE + float(np.sqrt(2.0 * np.log(len(pairs))))
        connected = _Connected(len(curves))
        for at, other in pairs:
            pair = curves[at], curves[other]
            of_one, of_other = (max(curve.scatter, of_all) for curve in pair)
            scatter = float(np.hypot(of_one, of_other))
            ratio = _ratio(*pair, scatter, allowance)
            are_named = not are_runs and _named(found[at][1]) != _named(found[other][1])
            if ratio == _AT_ONE:
                ratio = None if are_named else _AGREE
            elif ratio is None and not are_named and min(map(len, pair)) < _OF_LINE:
                ratio = _AGREE  # one of many runs of a size each
            if ratio == _AGREE:
                connected.join(at, other)
            elif ratio not in (None, _UNKNOWN) and (worst is None or ratio > worst):
                worst = ratio
        if not connected.is_one and worst is None:
            worst = _UNKNOWN
    return worst


_AGREE, _AT_ONE, _UNKNOWN = (1.0, 0), (1.0, 1), (0.0, 0)


class _Connected:
    """Which of so many conditions agree, by others that both agree with."""

    def __init__(self, count: int) -> None:
        self._next = list(range(count))
        self._groups = count

    def join(self, one: int, other: int) -> None:
        """Take note that two agree."""
        last, end = self._last(one), self._last(other)
        self._next[last] = end
        self._groups -= last != end

    def _last(self, at: int) -> int:
        while self._next[at] != at:
            self._next[at] = at = self._next[self._next[at]]
        return at

    @property
    def is_one(self) -> bool:
        return self._groups == 1


def _named(group: Sequence[Condition]) -> set[tuple[tuple[str, str], ...]]:
    return {condition.named for condition in group}


def _curves(
    part: _Part, groups: Sequence[Sequence[Condition]], column: int
) -> Iterator[tuple[_Curve, Sequence[Condition]]]:
    """The curve of each group that has times in this column, and the group."""
    import numpy as np

    sizes = np.asarray(part.sizes, np.float64)
    times = np.asarray(part.times_us[column], np.float64)
    places = part.places
    for group in groups:
        ranges = [np.arange(at.start, at.stop) for one in group for at in places[one]]
        at: Places = np.concatenate(ranges)
        at = at[times[at] > 0.0]
        if len(at):
            yield _curve(sizes[at], times[at]), group


def _curve(sizes: Floats, times_us: Floats) -> _Curve:
    """Medians by size, and the scatter around them, or around neighbours where none repeats."""
    import numpy as np

    order = np.lexsort((times_us, sizes))
    sizes, times_us = sizes[order], times_us[order]
    distinct, start, count = np.unique(sizes, return_index=True, return_counts=True)
    low, high = start + (count - 1) // 2, start + count // 2
    medians = (times_us[low] + times_us[high]) / 2.0
    repeated = np.repeat(count > 1, count)
    if np.count_nonzero(repeated) >= 3:
        off = np.abs(np.log(times_us / np.repeat(medians, count)))[repeated]
        # Of two times each lies half their distance from the median.
        of_few = np.repeat(np.sqrt(count / np.maximum(count - 1.0, 1.0)), count)[repeated]
        return _Curve(distinct, medians, float(_NORMAL * np.median(off * of_few)))
    if len(distinct) < 3:
        return _Curve(distinct, medians, 0.0)
    share = (distinct[1:-1] - distinct[:-2]) / (distinct[2:] - distinct[:-2])
    between = medians[:-2] + share * (medians[2:] - medians[:-2])
    off = np.abs(np.log(medians[1:-1] / between))
    return _Curve(distinct, medians, min(_MOST, float(_NORMAL * np.median(off)) / _OF_THREE))


def _ratio(
    one: _Curve, other: _Curve, scatter: float, allowance: float
) -> tuple[float, int] | None:
    """The greatest ratio of two conditions that differ, and its size; _AGREE where they agree,
    _AT_ONE where they do at the only size that is compared, None where nothing says it.
    """
    import numpy as np

    sizes, ratios = _compared(one, other)
    near = float(np.log(_NEAR))
    of_size = max(near, (allowance + 1.0) * scatter)
    if not len(sizes):
        return _across_gap(one, other, max(float(np.log(_GAP)), of_size))
    at = int(np.abs(ratios).argmax())
    worst = float(np.exp(np.abs(ratios[at]))), int(sizes[at])
    if len(sizes) == 1:
        return worst if abs(float(ratios[0])) > of_size else _AT_ONE
    of_median = max(near, allowance * _OF_MEDIAN * scatter / len(sizes) ** 0.5)
    is_many = max(2.0, len(sizes) / _PART)
    above, below = np.count_nonzero(ratios > of_size), np.count_nonzero(ratios < -of_size)
    of_next = max(near / 2.0, (allowance - 1.0) * scatter)
    fades = any(
        sign * end[0] > of_size and sign * end[1] > of_next
        for end in (ratios[:2], ratios[:-3:-1])
        for sign in (1.0, -1.0)
    )
    is_median_off = abs(float(np.median(ratios))) > of_median
    return worst if is_median_off or fades or max(above, below) >= is_many else _AGREE


def _compared(one: _Curve, other: _Curve) -> tuple[Floats, Floats]:
    """The sizes at which two conditions are compared, and logarithms of the ratios there."""
    import numpy as np

    sizes, first, second = np.intersect1d(one.sizes, other.sizes, return_indices=True)
    if len(sizes) < 2:
        every = np.union1d(one.sizes, other.sizes)
        low, high = max(one.sizes[0], other.sizes[0]), min(one.sizes[-1], other.sizes[-1])
        sizes = every[(every >= low) & (every <= high)]
        times, others = (np.interp(sizes, of.sizes, of.times_us) for of in (one, other))
    else:
        times, others = one.times_us[first], other.times_us[second]
    return sizes, np.log(times / others)


def _across_gap(one: _Curve, other: _Curve, allowed: float) -> tuple[float, int] | None:
    """As `_ratio`, of conditions one of which begins beyond the sizes of the other."""
    import numpy as np

    low, high = (one, other) if one.sizes[-1] < other.sizes[0] else (other, one)
    if min(len(low.sizes), len(high.sizes)) < _OF_LINE:
        return None
    last, first = slice(-_OF_LINE, None), slice(None, _OF_LINE)
    for sizes, times, size, time_us in (
        (low.sizes[last], low.times_us[last], high.sizes[0], high.times_us[0]),
        (high.sizes[first], high.times_us[first], low.sizes[-1], low.times_us[-1]),
    ):
        slope, at_zero = np.polyfit(sizes, times, 1, w=1.0 / times)
        led_to = at_zero + slope * size
        if led_to > 0.0 and abs(float(np.log(led_to / time_us))) <= allowed:
            return _AGREE
    return _UNKNOWN


# --- what is said ---------------------------------------------------------------------------------


def _stated(
    reading: Reading,
    before: Sequence[_Part | None],
    parts: Sequence[_Part | None],
    choice: RowChoice,
) -> tuple[tuple[str, str], ...]:
    """What was understood, with the conditions that were taken, and those taken together."""
    stated = dict(reading.understood)
    count, taken = (max(len(_runs(part)) for part in these) for these in (before, parts))
    if choice.run is not None:
        stated["runs"] = f"run {choice.run} of {max(count, choice.run)}"
    elif taken < count and choice.where is not None:
        numbers = sorted(
            {
                _runs(whole).index(run) + 1
                for whole, part in zip(before, parts, strict=True)
                for run in _runs(part)
            }
        )
        stated["runs"] = f"{_counted(numbers)} of {count}"
    elif taken != count or (taken > 1 and stated.get("runs", "1") == "1"):
        stated["runs"] = str(taken)
    for name in _names(before):
        values, all_values = _values(parts, name), _values(before, name)
        if len(values) > 1:
            stated[name] = f"{_listed(values)}: they agree, and count as repetitions"
        elif len(all_values) > 1:
            stated[name] = f"{_shown(values[0])}, of {_listed(all_values)}"
    return tuple(stated.items())


def _lanes(reading: Reading, parts: Sequence[_Part | None]) -> Iterator[Notice]:
    """What was measured with several transfers at once, which is not one lane's."""
    for place, part in enumerate(parts):
        several = [] if part is None else [one for one in part.places if one.at_once > 1]
        if not several:
            continue
        most = max(several, key=lambda one: one.at_once)
        how = ", ".join(f"{name} {value}" for name, value in most.named)
        lowest = min(one.at_once for one in part.places) if part is not None else 1
        is_rate = isinstance(reading.trace, MessageTrace) and place == 1
        if lowest < most.at_once:
            yield Notice(
                "several_lanes",
                f"{lowest} to {most.at_once} transfers at once, taken together ({how} at most): "
                + ("rates" if is_rate else "times")
                + " of fewer and of more do not differ by more than they scatter",
                values=(("lanes", float(most.at_once)), ("fewest_lanes", float(lowest))),
            )
            return
        what = (
            f"this is the rate of {most.at_once} lanes together, and one alone takes longer"
            if is_rate
            else f"each took this long beside others, as on {most.at_once} lanes"
        )
        yield Notice(
            "several_lanes",
            f"{most.at_once} transfers at once ({how}): {what}",
            values=(("lanes", float(most.at_once)),),
        )
        return
