"""Messages that may be cut only between items: tensors, layers, files.

Source    docs/theory.md, "Items". Items have a fixed order and a size each, perhaps a time at which
          they are ready and a time of their own in some stage. A fragment is a run of whole items:
          it enters the first stage when all of them are ready.
Notation  a cut is the number of items up to the end of each fragment, ascending; the last end is
          the number of items. Items and fragments are counted from 0, ends from 1.
Cost      the evaluator takes O(items x stages), a layout O(fragments x log items).
Traps     ready times that fall count as their running maximum: a fragment waits for all its items,
          and those behind it for the fragment. A fragment of one item may exceed every limit on
          bytes but a window's: nothing can cut it. A window in bytes holds as many fragments as
          there are of the cut's greatest size in it: slots of one size.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import accumulate, pairwise
from math import isfinite
from operator import lt, sub

from contract.limits import MAX_ITEMS, MAX_MESSAGE_BYTES, MAX_NAME_LENGTH, MAX_OVERHEAD_US
from domain.derived import Derived
from domain.errors import (
    InconsistentInput,
    Infeasible,
    InvalidInput,
    InvalidLimits,
    ItemsDeclined,
)
from domain.machine import Machine, StageRules, Window
from domain.model import CostModel
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits, Problem
from domain.schedule import FragmentTimes
from domain.solution import Notice, Status, relative_excess

ItemCut = tuple[int, ...]
StageCosts = tuple[tuple[str, tuple[float, ...]], ...]

_MAX_NAMED = 3  # items that a notice names


@dataclass(frozen=True)
class ItemSequence(Derived):
    """Items in the order in which they are sent.

    `item_bytes` (m,) are whole sizes; `ready_us` (m,) when each may be sent, None for at once;
    `stage_us` pairs the name of a stage with what each item takes there besides the stage's own
    cost, (m,) µs, in the order of names; `names` (m,) are for people alone. Raises InvalidInput,
    whose field is `bytes`, `ready_us`, `stage_us.NAME` or `names`, and the item's number behind it.
    """

    item_bytes: tuple[int, ...]
    ready_us: tuple[float, ...] | None = None
    stage_us: StageCosts = ()
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _check_bytes(self.item_bytes)
        count = len(self.item_bytes)
        if self.ready_us is not None:
            object.__setattr__(self, "ready_us", _times("ready_us", self.ready_us, count))
        stages = [stage for stage, _ in self.stage_us]
        if len(set(stages)) < len(stages):
            raise InvalidInput("expected each stage once", field="stage_us")
        columns = ((name, _times(f"stage_us.{name}", us, count)) for name, us in self.stage_us)
        object.__setattr__(self, "stage_us", tuple(sorted(columns)))
        if self.names is not None:
            _check_names(self.names, count)

    @classmethod
    def of(
        cls,
        item_bytes: Sequence[int],
        ready_us: Sequence[float] | None = None,
        *,
        stage_us: Mapping[str, Sequence[float]] | None = None,
        names: Sequence[str] | None = None,
    ) -> ItemSequence:
        """Return the sequence of these columns, lists or tuples. Raises InvalidInput."""
        return cls(
            tuple(item_bytes),
            None if ready_us is None else tuple(ready_us),
            tuple((name, tuple(column)) for name, column in (stage_us or {}).items()),
            None if names is None else tuple(names),
        )

    def __len__(self) -> int:
        return len(self.item_bytes)

    @cached_property
    def ends_bytes(self) -> tuple[int, ...]:
        """The bytes of the first 0, 1, .. m items, (m + 1,)."""
        return tuple(accumulate(self.item_bytes, initial=0))

    @property
    def total_bytes(self) -> int:
        """The bytes of all items."""
        return self.ends_bytes[-1]

    @cached_property
    def all_ready_us(self) -> tuple[float, ...]:
        """When the first 0, 1, .. m items are all ready, (m + 1,): the running maximum."""
        times = self.ready_us or (0.0,) * len(self)
        return tuple(accumulate(times, max, initial=0.0))

    def fragment_bytes(self, cut: Sequence[int]) -> tuple[int, ...]:
        """Return the size of each fragment of this cut."""
        ends = [self.ends_bytes[last] for last in cut]
        return tuple(map(sub, ends, (0, *ends)))

    def reversed(self) -> ItemSequence:
        """Return the items in the opposite order, without ready times. Raises InvalidInput where
        there are some: reversed they are no ready times, but the costs of a last stage.
        """
        if self.ready_us is not None:
            raise InvalidInput("expected items without ready times", field="ready_us")
        stage_us = {name: column[::-1] for name, column in self.stage_us}
        names = None if self.names is None else self.names[::-1]
        return ItemSequence.of(self.item_bytes[::-1], stage_us=stage_us, names=names)

    @cached_property
    def canonical(self) -> bytes:
        """The sequence as the bytes that are stored: JSON, sorted keys, no spaces; columns that
        there are not are left out.
        """
        columns: dict[str, object] = {"bytes": self.item_bytes}
        if self.ready_us is not None:
            columns["ready_us"] = self.ready_us
        if self.stage_us:
            columns["stage_us"] = dict(self.stage_us)
        if self.names is not None:
            columns["names"] = self.names
        return _canonical(columns)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical bytes, in hexadecimal."""
        return hashlib.sha256(self.canonical).hexdigest()

    def label(self, item: int) -> str:
        """Return what people call this item: its name, or its number counted from 1."""
        return f"item {item + 1}" if self.names is None else self.names[item]

    @cached_property
    def notices(self) -> tuple[Notice, ...]:
        """What a user must know of the items themselves."""
        fallen = [
            item
            for item, (before, time) in enumerate(pairwise(self.ready_us or ()), start=1)
            if time < before
        ]
        if not fallen:
            return ()
        words = (
            f"{_counted(len(fallen), 'item is', 'items are')} ready before the one in front, the "
            f"first of them {self.label(fallen[0])}; items are sent in their order, so that the "
            "latest time so far counts"
        )
        return (Notice("ready_not_in_order", words, values=(("items", len(fallen)),)),)


class Fill(StrEnum):
    """When a program that fills fragments up to a cap closes one.

    until    with the item that reaches the cap: gradient buckets
    before   before the item that would exceed it: packed buffers
    """

    UNTIL = "until"
    BEFORE = "before"


@dataclass(frozen=True, slots=True)
class FillRule:
    """How a cap in bytes cuts a sequence; the first fragment may have a cap of its own, in bytes.

    Raises InvalidInput, whose field is `rule` or `first_bytes`.
    """

    rule: Fill = Fill.UNTIL
    first_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.first_bytes is not None:
            _check_limit(InvalidInput, "first_bytes", self.first_bytes, MAX_MESSAGE_BYTES)

    @classmethod
    def named(cls, rule: str | None, first_bytes: int | None = None) -> FillRule | None:
        """Return the rule of this name, None where none is asked for. Raises InvalidInput."""
        if rule is None:
            if first_bytes is not None:
                raise InconsistentInput(
                    "first_bytes needs a rule that it begins", field="first_bytes"
                )
            return None
        if rule not in Fill.__members__.values():
            raise InvalidInput(f"expected one of {', '.join(Fill)}", field="rule")
        return cls(Fill(rule), first_bytes)


def layout(sequence: ItemSequence, cap_bytes: int, rule: FillRule) -> ItemCut:
    """Return the cut that a program makes which fills fragments up to this cap by this rule.

    An item above the cap is a fragment of its own by `before`, and ends one by `until`. Raises
    InvalidInput for a cap below 1 byte.
    """
    _check_limit(InvalidInput, "cap_bytes", cap_bytes, MAX_MESSAGE_BYTES)
    ends, count = sequence.ends_bytes, len(sequence)
    cut, last = list[int](), 0
    while last < count:
        is_first = not cut and rule.first_bytes is not None
        filled = ends[last] + ((rule.first_bytes or 0) if is_first else cap_bytes)
        if rule.rule is Fill.UNTIL:
            last = min(count, bisect_left(ends, filled, lo=last + 1))
        else:
            last = max(last + 1, bisect_right(ends, filled, lo=last + 1) - 1)
        cut.append(last)
    return tuple(cut)


@dataclass(frozen=True, slots=True)
class ItemTimes:
    """When each fragment of a cut is ready, (k,) µs, and when it is in each stage."""

    cut: ItemCut
    ready_us: tuple[float, ...]
    in_stages: FragmentTimes

    @property
    def latency_us(self) -> float:
        """Time from 0 until the last stage has done the last fragment, the delay included."""
        return self.in_stages.latency_us


@dataclass(frozen=True)
class ItemProblem(Derived):
    """A sequence, the pipeline that it crosses, and limits: all that an answer depends on.

    Limits hold for every fragment, but one of a single item may exceed `max_fragment_bytes`:
    nothing can cut it. `windows` bound the fragments under way between stages; those in bytes
    bound a fragment, too. Raises InvalidInput, with the field.
    """

    pipeline: Pipeline
    sequence: ItemSequence
    max_fragment_bytes: int | None = None
    max_fragment_items: int | None = None
    max_fragments: int | None = None
    windows: tuple[Window, ...] = ()

    def __post_init__(self) -> None:
        if self.pipeline.hands_on:
            stage = next(
                place
                for place, one in enumerate(self.pipeline.stages)
                if one.handoff_bytes is not None
            )
            raise ItemsDeclined(
                "handoff_bytes does not go with items: fragments of items are handed on whole",
                field=f"stages.{stage}.handoff_bytes",
            )
        for name in ("max_fragment_bytes", "max_fragment_items", "max_fragments"):
            value = getattr(self, name)
            if value is not None:
                _check_limit(InvalidLimits, name, value, MAX_MESSAGE_BYTES)
        names = [stage.name for stage in self.pipeline.stages]
        for name, _ in self.sequence.stage_us:
            if names.count(name) != 1:
                what = "is no stage" if name not in names else "names several stages"
                raise InconsistentInput(
                    f"expected the name of one stage: this {what} of the pipeline",
                    field=f"stage_us.{name}",
                )
        if self.windows:
            _ = self.model

    @cached_property
    def model(self) -> Machine:
        """What the items cross, with its windows. Raises InvalidStage for windows over other
        stages.
        """
        return Machine(self.pipeline, (StageRules(),) * len(self.pipeline), self.windows)

    @cached_property
    def most_bytes(self) -> int | None:
        """The most bytes of a fragment of several items; None without a limit."""
        given = [window.bytes for window in self.windows]
        return min(
            (one for one in (self.max_fragment_bytes, *given) if one is not None), default=None
        )

    @cached_property
    def item_us(self) -> tuple[tuple[float, ...] | None, ...]:
        """What each item takes in each stage by itself, (n,) columns of (m,) µs or None."""
        columns = dict(self.sequence.stage_us)
        return tuple(columns.get(stage.name) for stage in self.pipeline.stages)

    @cached_property
    def min_fragments(self) -> int:
        """The fewest fragments that the limits on bytes and items admit."""
        count, last = 0, 0
        while last < len(self.sequence):
            count, last = count + 1, self.longest_from(last)
        return count

    def longest_from(self, first: int) -> int:
        """Return the end of the longest admitted fragment that begins with this item."""
        ends = self.sequence.ends_bytes
        last = len(self.sequence)
        if self.max_fragment_items is not None:
            last = min(last, first + self.max_fragment_items)
        if self.most_bytes is not None:
            last = min(last, bisect_right(ends, ends[first] + self.most_bytes) - 1)
        return max(last, first + 1)

    def check_feasible(self) -> None:
        """Raise Infeasible, naming the limits that clash, where no cut is admitted."""
        sizes = self.sequence.item_bytes
        for place, window in enumerate(self.windows):
            if window.bytes is not None and window.bytes < max(sizes):
                item = sizes.index(max(sizes))
                raise Infeasible(
                    f"{self.sequence.label(item)} of {sizes[item]} bytes does not fit the window "
                    f"of {window.bytes} bytes, and nothing can cut it",
                    field=f"windows.{place}.bytes",
                )
        if self.max_fragments is not None and self.min_fragments > self.max_fragments:
            given = {
                "max_fragment_bytes": self.max_fragment_bytes,
                "max_fragment_items": self.max_fragment_items,
                "a window of bytes:": min(
                    (one.bytes for one in self.windows if one.bytes is not None), default=None
                ),
            }
            named = " and ".join(f"{name} {one}" for name, one in given.items() if one is not None)
            raise Infeasible(
                f"{named} needs at least {self.min_fragments} fragments of these items, and "
                f"max_fragments allows {self.max_fragments}",
                field="constraints",
            )

    def check_cut(self, cut: Sequence[int]) -> None:
        """Raise InvalidInput unless these are the ends of a cut of these items."""
        if not cut or cut[-1] != len(self.sequence):
            raise InvalidInput("expected a last end at the last item", field="fragment_items")
        if not all(map(lt, (0, *cut), cut)):
            raise InvalidInput("expected at least one item a fragment", field="fragment_items")

    def admits(self, cut: Sequence[int]) -> bool:
        """Return whether this cut satisfies every limit. Raises InvalidInput where it is none."""
        self.check_cut(cut)
        if self.max_fragments is not None and len(cut) > self.max_fragments:
            return False
        limits = self.max_fragment_bytes, self.max_fragment_items
        if limits == (None, None) and not self.windows:
            return True
        return all(last <= self.longest_from(first) for first, last in pairwise((0, *cut)))

    def places(self, cut: Sequence[int]) -> tuple[int, ...]:
        """Return how many fragments of this cut each window holds, counted at the greatest one.
        Raises Infeasible where it does not fit.
        """
        if not self.windows:
            return ()
        largest = max(self.sequence.fragment_bytes(cut))
        found = tuple(window.places(largest) for window in self.windows)
        if 0 in found:
            place = found.index(0)
            raise Infeasible(
                f"a fragment of {largest} bytes does not fit the window of "
                f"{self.windows[place].bytes} bytes",
                field=f"windows.{place}.bytes",
            )
        return found

    def latency_us(self, cut: Sequence[int]) -> float:
        """Return the latency of this cut in µs, from time 0 on, the delay included.

        Every latency of items that is shown is computed here. O(m n + k windows) time. Raises
        InvalidInput where it is no cut of these items, Infeasible where it does not fit a window.
        """
        if self.windows:
            _, _, exits_us = deque(self._run(cut), maxlen=1).pop()
            return exits_us[-1] + self.pipeline.delay_us
        self.check_cut(cut)
        entry_us = self._ready_us(cut)
        for times_us in self._times_us(cut):
            free_us = 0.0
            entry_us = [
                free_us := (ready_us if ready_us > free_us else free_us) + time_us
                for ready_us, time_us in zip(entry_us, times_us, strict=True)
            ]
        return entry_us[-1] + self.pipeline.delay_us

    def simulate(self, cut: Sequence[int]) -> ItemTimes:
        """Return every (fragment, stage) interval of this cut, for a timeline. Raises as
        `latency_us` does.
        """
        ready, starts, exits = zip(*self._run(cut), strict=True)
        in_stages = FragmentTimes(starts, exits, self.pipeline.delay_us)
        return ItemTimes(tuple(cut), ready, in_stages)

    def _run(
        self, cut: Sequence[int]
    ) -> Iterator[tuple[float, tuple[float, ...], tuple[float, ...]]]:
        """When each fragment is ready, and when it enters and leaves each stage."""
        self.check_cut(cut)
        waits: list[list[tuple[int, int, float]]] = [[] for _ in self.pipeline.stages]
        for window, places in zip(self.windows, self.places(cut), strict=True):
            waits[window.first].append((places, window.last, window.return_us))
        exit_us = [0.0] * len(self.pipeline)
        past = list[tuple[float, ...]]()
        fragments = zip(self._ready_us(cut), *self._times_us(cut), strict=True)
        for fragment, (ready_us, *times_us) in enumerate(fragments):
            starts, arrived_us = list[float](), ready_us
            for stage, time_us in enumerate(times_us):
                start_us = max(arrived_us, exit_us[stage])
                for places, last, return_us in waits[stage]:
                    if fragment >= places:
                        start_us = max(start_us, past[fragment - places][last] + return_us)
                arrived_us = exit_us[stage] = start_us + time_us
                starts.append(start_us)
            past.append(tuple(exit_us))
            yield ready_us, tuple(starts), past[-1]

    def _ready_us(self, cut: Sequence[int]) -> list[float]:
        """When each fragment is ready."""
        all_ready_us = self.sequence.all_ready_us
        return [all_ready_us[last] for last in cut]

    def _times_us(self, cut: Sequence[int]) -> list[list[float]]:
        """What each fragment takes in each stage, a list a stage."""
        sizes, found = self.sequence.fragment_bytes(cut), list[list[float]]()
        for stage, column in zip(self.pipeline.stages, self.item_us, strict=True):
            times_us = stage.times_us(sizes)
            if column is not None:
                parts = zip(times_us, pairwise((0, *cut)), strict=True)
                times_us = [time_us + sum(column[first:last]) for time_us, (first, last) in parts]
            found.append(times_us)
        return found

    @cached_property
    def notices(self) -> tuple[Notice, ...]:
        """What a user must know before any cut: of the items, the limits, and what is at stake."""
        found = [*self.sequence.notices]
        above = self._above_cap()
        if above:
            named = ", ".join(self.sequence.label(item) for item in above[:_MAX_NAMED])
            more = f" and {len(above) - _MAX_NAMED} more" if len(above) > _MAX_NAMED else ""
            words = (
                f"{named}{more}: above max_fragment_bytes {self.max_fragment_bytes}; nothing can "
                "cut an item, so that each is a fragment of its own"
            )
            found.append(Notice("item_above_cap", words, values=(("items", len(above)),)))
        if self._one_is_best():
            words = (
                "all items are ready at once and there is one stage: one fragment is best, and "
                "each further one costs another overhead"
            )
            found.append(Notice("one_fragment_is_best", words))
        return tuple(found)

    def _above_cap(self) -> list[int]:
        cap = self.max_fragment_bytes
        if cap is None:
            return []
        return [item for item, size in enumerate(self.sequence.item_bytes) if size > cap]

    def _one_is_best(self) -> bool:
        is_ready = not any(self.sequence.ready_us or ())
        is_line = len(self.pipeline) == 1 and self.pipeline.all_lines
        return is_ready and is_line and self.min_fragments == 1

    def digest(self) -> str:
        """Return SHA-256 of the question, in hexadecimal; equal exactly for identical questions."""
        of_bytes = Problem(
            self.pipeline,
            self.sequence.total_bytes,
            FragmentLimits(
                max_fragment_bytes=self.max_fragment_bytes, max_fragments=self.max_fragments
            ),
        )
        document: dict[str, object] = {
            "bytes": of_bytes.digest(),
            "items": self.sequence.digest,
            "max_fragment_items": self.max_fragment_items,
        }
        if self.windows:
            document["windows"] = self.model.words()["windows"]
        return hashlib.sha256(_canonical(document)).hexdigest()


def item_problem_of(
    model: CostModel,
    sequence: ItemSequence,
    limits: FragmentLimits,
    *,
    max_fragment_items: int | None = None,
    allow_refragmentation: bool = False,
) -> ItemProblem:
    """Return the problem of a question that gives items in place of a message's bytes.

    Raises InvalidInput, naming the field, for what items do not go with: models that are no plain
    stages, an alignment, a smallest fragment, and cuts that differ from stage to stage;
    NeedsPlainStages for a machine that has more than windows.
    """
    windows: tuple[Window, ...] = ()
    if isinstance(model, Machine):
        model.check_windows_alone()
        windows, model = model.windows, model.pipeline
    if not isinstance(model, Pipeline):
        raise InvalidInput(
            f"items need plain stages, and this is of the kind {model.kind}", field="items"
        )
    if limits.alignment_bytes != 1:
        raise InvalidLimits(
            "expected no alignment_bytes beside items: fragments end where items do",
            field="alignment_bytes",
        )
    if limits.min_fragment_bytes != 1:
        raise InvalidLimits(
            "expected no min_fragment_bytes beside items: an item may be smaller",
            field="min_fragment_bytes",
        )
    if allow_refragmentation:
        raise InvalidInput(
            "expected no refragmentation beside items: all stages share their cut",
            field="allow_refragmentation",
        )
    return ItemProblem(
        model,
        sequence,
        limits.max_fragment_bytes,
        max_fragment_items,
        limits.max_fragments,
        windows,
    )


@dataclass(frozen=True, slots=True)
class CapChoice:
    """A layout, and every cap in bytes that gives it; `to_bytes` None: any greater one does.

    `layouts` is how many layouts were looked at, and `is_complete` says that these were all that
    one cap can give.
    """

    rule: FillRule
    cut: ItemCut
    latency_us: float
    from_bytes: int
    to_bytes: int | None
    layouts: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class ItemSolution:
    """A cut, its latency by the evaluator, and a proven lower bound over every admitted cut (µs,
    delay included). `status` says no more than the two show; `cut_off`: time was up.
    """

    problem: ItemProblem
    cut: ItemCut
    latency_us: float
    lower_bound_us: float
    status: Status
    notices: tuple[Notice, ...] = ()
    cut_off: bool = False

    @property
    def fragment_bytes(self) -> tuple[int, ...]:
        """The size of each fragment, in sending order."""
        return self.problem.sequence.fragment_bytes(self.cut)

    @property
    def fragment_items(self) -> tuple[int, ...]:
        """How many items each fragment holds, in sending order."""
        return tuple(last - first for first, last in pairwise((0, *self.cut)))

    @property
    def relative_gap(self) -> float:
        """(latency - bound) / bound; 0 where they are equal, 0 included."""
        return relative_excess(self.latency_us, self.lower_bound_us, self.lower_bound_us)


def _canonical(document: object) -> bytes:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode()


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_limit(error: type[InvalidInput], field: str, value: int, maximum: int) -> None:
    if not _is_whole(value):
        raise error(f"expected {field} to be a whole number", field=field)
    if not 1 <= value <= maximum:
        raise error(f"expected 1 <= {field} <= {maximum}, got {value}", field=field)


def _check_bytes(sizes: Sequence[int]) -> None:
    if not 1 <= len(sizes) <= MAX_ITEMS:
        raise InvalidInput(f"expected 1 to {MAX_ITEMS} items, got {len(sizes)}", field="bytes")
    if set(map(type, sizes)) != {int}:
        item = _first(not _is_whole(size) for size in sizes)
        if item is not None:
            raise InvalidInput("expected a whole number of bytes", field=f"bytes.{item}")
    if min(sizes) < 1:
        item = _first(size < 1 for size in sizes)
        raise InvalidInput("expected at least 1 byte an item", field=f"bytes.{item}")
    if sum(sizes) > MAX_MESSAGE_BYTES:
        raise InvalidInput(
            f"expected items that sum to at most {MAX_MESSAGE_BYTES} bytes", field="bytes"
        )


def _times(field: str, column: Sequence[float], count: int) -> tuple[float, ...]:
    """A column of times as floats, negative zero as zero."""
    _check_length(field, column, count)
    if not set(map(type, column)) <= {int, float}:
        item = _first(isinstance(us, bool) or not isinstance(us, int | float) for us in column)
        if item is not None:
            raise InvalidInput("expected a time in µs", field=f"{field}.{item}")
    item = _first(not (isfinite(us) and 0.0 <= us <= MAX_OVERHEAD_US) for us in column)
    if item is not None:
        raise InvalidInput(
            f"expected a time from 0 to {MAX_OVERHEAD_US:g} µs", field=f"{field}.{item}"
        )
    return tuple(float(us) + 0.0 for us in column)


def _check_names(names: Sequence[str], count: int) -> None:
    _check_length("names", names, count)
    item = _first(not 1 <= len(name) <= MAX_NAME_LENGTH for name in names)
    if item is not None:
        raise InvalidInput(
            f"expected a name of 1 to {MAX_NAME_LENGTH} characters", field=f"names.{item}"
        )


def _check_length(field: str, column: Sequence[object], count: int) -> None:
    if len(column) != count:
        raise InvalidInput(
            f"expected {count} values, one for each item, got {len(column)}", field=field
        )


def _first(found: Iterable[bool]) -> int | None:
    """The number of the first item of which this holds."""
    return next((item for item, is_found in enumerate(found) if is_found), None)
