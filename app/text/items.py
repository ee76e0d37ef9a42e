"""What to do about a message that is cut between items, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from analysis.item_draws import LARGEST_CAP
from analysis.items import ItemsSolved, cap_mib, most_of_cap
from app.text.in_flight import format_in_budget
from app.text.measured_times import doubt, gain_words, stages_to_time
from app.text.notices import cannot_tell, capitalised, known_to, rest_on
from app.text.numbers import (
    format_count,
    format_counted,
    format_gain,
    format_percent,
    format_size,
    two_digits,
)
from app.text.overlap import either_way_words
from app.text.units import format_against
from domain.default_sizes import CURRENT, ONE_PIECE
from domain.items import CapChoice, Fill, FillRule, ItemProblem, ItemSolution, layout
from domain.uncertain_answer import (
    BothWays,
    Decision,
    DecisionCode,
    Measurement,
    MeasurementKind,
    Reason,
    Thresholds,
)
from domain.uncertain_items import ItemErrors, SureItems
from domain.uncertainty import NamedCut, Source
from domain.units import format_bytes

N = TypeVar("N", int, float)
MIB = 2**20
_SHOWN_CAPS = 8  # of a list in a sentence
_MARGIN = Thresholds().margin


@dataclass(frozen=True, slots=True)
class ItemWords:
    """What is set: a list of caps, and one cap, "" where the limits admit none."""

    of_list: str
    of_cap: str

    @classmethod
    def of(cls, fill: FillRule, found: ItemsSolved) -> ItemWords:
        """Return them as programs that fill by this rule call them; of items that are alike how
        many a fragment holds.
        """
        cap, sizes = one_cap_mib(found), found.solution.problem.sequence.item_bytes
        if len(sizes) > 1 and len(set(sizes)) == 1:
            each = "" if cap is None else f"{_items_of(fill, found, int(cap * MIB))} a fragment"
            counts = found.solution.fragment_items
            if len(set(counts[:-1])) <= 1 and counts[-1] <= counts[0]:
                return cls(f"{format_counted(counts[0], 'item')} a fragment", each)
            return cls(f"fragments of [{_listed(counts, str)}] items", each)
        of_list, of_cap = (
            ("bucket_cap_mb_list=", "bucket_cap_mb=")
            if fill.rule is Fill.UNTIL
            else ("caps in MiB: ", "one cap in MiB: ")
        )
        listed = _listed(_caps_of(found.solution), repr)
        return cls(f"{of_list}[{listed}]", "" if cap is None else f"{of_cap}{cap!r}")


def one_cap_mib(found: ItemsSolved) -> float | None:
    """Return one cap in MiB: that of least expected latency where errors are known, else of least
    latency; None where the limits admit none.
    """
    if found.sure is not None:
        return cap_mib(*found.sure.one_cap)
    best = found.best_cap
    if best is None:
        return None
    return cap_mib(best.from_bytes, most_of_cap(found.solution.problem, best.cut, best.to_bytes))


def what_to_set(fill: FillRule, found: ItemsSolved) -> str:
    """Return what to set, and how much faster that is than the cap in use, where nothing is known
    of errors.
    """
    solution, best, current, against = found.solution, found.best_cap, found.current, None
    if current is not None:
        yours = f"your {format_size(current.cap_bytes, with_bytes=False)}"
        against = (current.latency_us, yours)
    if fill.rule is Fill.BEFORE and found.slots and best is not None:
        return f"{_buffers_words(found, best, against)}."
    said = ItemWords.of(fill, found)
    words = f"Set {said.of_list}"
    if said.of_cap not in ("", said.of_list):
        words += f" (or {said.of_cap})"
    if found.slots:
        words += f", {format_count(found.slots[0].slots)} at a time"
    if against is not None:
        words += f": {format_against(solution.latency_us, *against)}"
    return f"{words}."


def _caps_of(solution: ItemSolution) -> list[float]:
    """Caps in MiB that make this cut."""
    return [size / MIB for size in solution.fragment_bytes]


def _listed(values: Sequence[N], written: Callable[[N], str]) -> str:
    shown = ", ".join(map(written, values[:_SHOWN_CAPS]))
    return shown if len(values) <= _SHOWN_CAPS else f"{shown}, … {format_count(len(values))} in all"


def _items_of(fill: FillRule, found: ItemsSolved, cap_bytes: int) -> str:
    """How many of items that are alike a fragment of this cap holds."""
    ends = layout(found.solution.problem.sequence, cap_bytes, fill)
    counts = [last - first for first, last in pairwise((0, *ends))]
    own = counts[1:] if fill.first_bytes is not None and len(counts) > 1 else counts
    return format_counted(max(own), "item")


def _buffers_words(found: ItemsSolved, best: CapChoice, against: tuple[float, str] | None) -> str:
    """How many buffers of what size to have for one cap, and for the best cut where that takes
    less.
    """
    problem, latency_us = found.solution.problem, found.solution.latency_us
    size = most_of_cap(problem, best.cut, best.to_bytes) or best.from_bytes
    words = f"Set {_buffers(problem, problem.places(best.cut)[0], size)}"
    if against is not None:
        words += f": {format_against(best.latency_us, *against)}"
    less = 1.0 - latency_us / best.latency_us
    if less <= _MARGIN:
        return words
    slots = found.slots[0]
    return (
        f"{words}. With {_buffers(problem, slots.slots, slots.slot_bytes)}, filled unequally to "
        f"[{_listed(_caps_of(found.solution), repr)}] MiB, it takes {format_percent(less)} less"
    )


def _buffers(problem: ItemProblem, count: int, size_bytes: int) -> str:
    budget = problem.windows[0].bytes
    size = format_in_budget(size_bytes, size_bytes if budget is None else budget)
    return f"{format_counted(count, 'buffer')} of {size} ({size_bytes} bytes)"


def items_sentence(
    sure: SureItems,
    words: ItemWords,
    problem: ItemProblem,
    fill: FillRule,
    errors: ItemErrors,
    current_bytes: int | None,
) -> str:
    """Return what to do and why, what it rests on, and what to measure where that is worth it."""
    return " ".join(_Sentences(sure, words, problem, fill, errors, current_bytes).sentences())


@dataclass(frozen=True, slots=True)
class _Sentences:
    sure: SureItems
    words: ItemWords
    problem: ItemProblem
    fill: FillRule
    errors: ItemErrors
    current_bytes: int | None

    @property
    def decision(self) -> Decision:
        return self.sure.uncertainty.decision

    def sentences(self) -> Iterator[str]:
        if self._forbids_current():
            yield f"Your {self._yours} is not within the limits."
        yield self._decided()
        yield from rest_on(self.sure.uncertainty)
        yield from self._known_to()
        if self.decision.measure is not None:
            yield self._to_measure(self.decision.measure)

    def _decided(self) -> str:
        decision = self.decision
        match decision.code:
            case DecisionCode.SET_IT:
                return self._set_it()
            case DecisionCode.KEEP_YOURS:
                return f"Keep your {self._yours}: {self._kept_because()}."
            case DecisionCode.MEASURE_FIRST:
                return self._measured_first()
            case DecisionCode.NO_GAIN_PROVABLE:
                return self._no_gain()

    def _set_it(self) -> str:
        decision, both = self.decision, self.sure.uncertainty.both_ways
        if decision.reason is Reason.EITHER_WAY and both is not None:
            first, gain = f"Set {self.words.of_cap}.", either_way_words(both, self._other)
            return f"{first} {capitalised(gain)}."
        gain = gain_words(decision, self._other)
        if decision.advised.size_bytes is None:
            cap = f" One cap instead: {self.words.of_cap}."
            if self.words.of_cap in ("", self.words.of_list):
                cap = ""
            return f"Set {self.words.of_list}. {gain}.{cap}"
        if self._is_whole(decision.advised):
            return f"Send all items in one fragment ({self.words.of_cap}). {gain}."
        return f"Set {self.words.of_cap}. {gain}.{self._near()}"

    def _near(self) -> str:
        """The caps around the advised one that are within 2 % of the best."""
        size = self.decision.advised.size_bytes or 0
        near = next((one for one in self.sure.uncertainty.good_sizes if one.within == 0.02), None)
        around = [one for one in near.intervals if one[0] <= size <= one[1]] if near else []
        if not around:
            return ""
        low, high = (format_size(end, with_bytes=False) for end in around[0])
        return "" if low == high else f" Caps from {low} to {high} are within about 2 %."

    def _kept_because(self) -> str:
        decision = self.decision
        if decision.reason is Reason.NEAR_BEST:
            return f"it is within {two_digits(decision.thresholds.regret_p95)} % of the best cap"
        why = "no other cut is certain to be faster"
        return why if decision.measure else f"{why}, and no measurement is worth its time"

    def _measured_first(self) -> str:
        decision, both = self.decision, self.sure.uncertainty.both_ways
        structure = self.errors.known.overlap.structure
        cut, may = self._cut(decision.advised), self._may(decision)
        if decision.reason is Reason.STRUCTURE and structure is not None:
            return (
                f"{structure.sentence} A pipeline's model does not hold for it. Measure first: "
                f"time {cut} and {self._other} in turns."
            )
        if decision.reason is Reason.ONE_AT_A_TIME and both is not None:
            return (
                "Does a stage handle several fragments at once? If none does, set "
                f"{self.words.of_cap}: {either_way_words(both, self._other)}. Say so with the file "
                "(several_at_once, --several-at-once no)."
            )
        if decision.reason is Reason.IF_OVERLAPPING and both is not None:
            return (
                f"Measure first: {_if_overlapping(both, self._other)}. Say which with the file "
                "(stages_overlap, --stages-overlap yes|no), or trace begins."
            )
        if decision.reason is Reason.SEVERAL_AT_ONCE:
            return (
                "Measure first: of stages that handle several fragments at once durations do not "
                "tell what a message takes."
            )
        if decision.reason is Reason.UNDECIDED:
            return f"Measure first: {cut} may be {may} than {self._other}."
        size = decision.measure.fragment_bytes if decision.measure else None
        return (
            f"Measure first: by the fitted lines {cut} is {may} than {self._other}, "
            f"{doubt(decision.reason, size)}."
        )

    def _no_gain(self) -> str:
        decision = self.decision
        cut, gain = decision.cut, decision.cut_gain
        if cut is None:
            return "Send all items in one fragment: nothing else is admitted."
        if gain is None:
            return f"Keep {self._cut(decision.advised)}: no other cut is certain to be faster."
        may = f"{self._cut(cut)} may be {format_gain((gain.p05, gain.p95))} than that"
        if decision.reason is Reason.ONE_PIECE_IS_BEST:
            why = f"it is expected to take least; {may}"
        elif decision.reason is Reason.DOES_NOT_MATTER:
            why = f"{may}, and no measurement is worth its time"
        elif decision.reason is Reason.WITHIN_MISFIT:
            off = two_digits(decision.thresholds.margin)
            why = f"{may}, and whole messages differ from this model by {off} %"
        else:
            why = f"{may}; {cannot_tell(self.errors.known.model)}"
        return f"Send all items in one fragment: {why}."

    def _known_to(self) -> Iterator[str]:
        if self.sure.uncertainty.source is not Source.READY:
            yield from known_to(self.errors.known.model)
        if self.sure.ready_relative > 0.0:
            yield f"Ready times are known to ±{two_digits(self.sure.ready_relative)} %."

    def _to_measure(self, one: Measurement) -> str:
        would = "would tell"
        if self.decision.code is DecisionCode.SET_IT:
            would = "may gain more"
        if one.kind is MeasurementKind.STAGE:
            size, measured = one.fragment_bytes or 0, self.errors.measured_bytes
            is_new = measured is not None and not measured[0] <= size <= measured[1]
            what = stages_to_time(self.errors.known.model, one.stage or "", is_new=is_new)
            return f"Timing {what} at {format_bytes(size)}, {one.repetitions} times, {would}."
        ways = " and by ".join(map(self._cut, one.cuts or ()))
        return f"Timing {one.repetitions} whole messages, by {ways} in turns, {would}."

    # --- names ------------------------------------------------------------------------------------

    @property
    def _yours(self) -> str:
        return format_size(self.current_bytes or 0, with_bytes=False)

    @property
    def _other(self) -> str:
        """What the advised cut is compared with."""
        if self.decision.against == CURRENT:
            return f"your {self._yours}"
        if self.decision.against == LARGEST_CAP:
            return "the largest cap that the limits admit"
        return "one fragment"

    def _cut(self, cut: NamedCut) -> str:
        if cut.size_bytes is None:
            return "this cut"
        if cut.name == CURRENT:
            return f"your {self._yours}"
        if self._is_whole(cut):
            return "one fragment"
        low, high = self.sure.one_cap
        if low <= cut.size_bytes and (high is None or cut.size_bytes <= high):
            return self.words.of_cap
        return f"a cap of {format_size(cut.size_bytes, with_bytes=False)}"

    def _is_whole(self, cut: NamedCut) -> bool:
        return cut.name == ONE_PIECE or cut.is_whole(self.problem.sequence.total_bytes)

    def _may(self, decision: Decision) -> str:
        return format_gain((decision.gain.p05, decision.gain.p95))

    def _forbids_current(self) -> bool:
        if self.current_bytes is None:
            return False
        cut = layout(self.problem.sequence, self.current_bytes, self.fill)
        return not self.problem.admits(cut)


def _if_overlapping(both: BothWays, other: str) -> str:
    """What a cap gains if stages overlap, and one if they do not."""
    overlapping, serial = (format_gain((gain, gain)) for gain in (both.gain, both.serial_gain))
    first, second = (
        format_size(size, with_bytes=False) for size in (both.size_bytes, both.serial_bytes)
    )
    return (
        f"if these stages overlap, a cap of {first} is {overlapping} than {other}, and if they "
        f"work one after another, one of {second} is {serial}"
    )
