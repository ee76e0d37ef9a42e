"""An answer as its page shows it: its proof and never more, its limits, its cuts in groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from analysis.size_curve import ChangedCost
from app.schemas.answers import with_unique_names
from app.schemas.stages import sensitivity_facts
from app.schemas.uncertainty import uncertainty_facts
from app.text.notices import capitalised
from app.text.numbers import (
    format_count,
    format_excess,
    format_figure,
    format_gap,
    format_signed_percent,
    format_size,
    without_zeros,
)
from app.text.units import (
    NOT_OF_MACHINE,
    OF_MODEL,
    PROVEN_BOUND,
    TimeUnit,
    format_proven,
    format_repeated,
    format_setting_name,
    format_time,
)
from app.verbs.optimize.show import delivery_facts
from contract.optimize import BaselineOut, BestFixedOut, OptimizeOut
from contract.pipeline import StageOut
from domain.default_sizes import CURRENT
from domain.solution import Status, relative_excess
from domain.units import format_bytes

MIN_NEAR_BYTES = 1024  # sizes from here on that differ by a byte are shown together
MAX_RUNS = 24  # groups of a cut that are shown at once
_FIRST, _LAST = 12, 6  # of the groups, where there are more
_AT_MOST = "latency_is_upper_bound"
_LIMITS = {
    "max_fragments": "the greatest number of fragments that was allowed",
    "SLUICE_MAX_FRAGMENTS": "the service's own cap on fragments, SLUICE_MAX_FRAGMENTS",
    "min_fragment_bytes": "the least fragment size that was allowed",
    "alignment_bytes": "the alignment that was asked for",
}


STATUS_WORDS = {
    Status.OPTIMAL: ("good", f"optimum {OF_MODEL}"),
    Status.OPTIMAL_BEFORE_ROUNDING: ("good", f"optimum {OF_MODEL} before rounding"),
    Status.PROVEN_GAP: ("", f"proven gap {OF_MODEL}"),
    Status.TIME_LIMIT: ("warn", "time limit reached"),
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
    or_bytes: int | None = None  # some are one byte larger

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
    min_message_bytes: int
    max_message_bytes: int


def runs_of(sizes: Sequence[int]) -> Iterator[SizeRun]:
    """Yield equal neighbours together."""
    first = 1
    for size_bytes, members in groupby(sizes):
        count = sum(1 for _ in members)
        yield SizeRun(first, first + count - 1, size_bytes)
        first += count


def near_runs_of(sizes: Sequence[int]) -> Iterator[SizeRun]:
    """Yield equal neighbours together, and those that rounding made one byte larger with them."""
    found: list[SizeRun] = []
    for run in runs_of(sizes):
        if found and found[-1].size_bytes >= MIN_NEAR_BYTES:
            before = found[-1]
            both = {before.size_bytes, before.or_bytes or before.size_bytes, run.size_bytes}
            if max(both) - min(both) <= 1:
                found[-1] = SizeRun(before.first, run.last, min(both), max(both))
                continue
        found.append(run)
    yield from found


def cut_of(sizes: Sequence[int], *, name: str = "") -> Cut:
    """Return all groups, or the first and the last of many."""
    runs = tuple(near_runs_of(sizes))
    if len(runs) <= MAX_RUNS:
        return Cut(name, len(sizes), runs, 0, (), min(sizes), max(sizes))
    head, tail = runs[:_FIRST], runs[-_LAST:]
    left_out = tail[0].first - head[-1].last - 1
    return Cut(name, len(sizes), head, left_out, tail, min(sizes), max(sizes))


def latency_and_bound(answer: OptimizeOut) -> tuple[str, str]:
    """Return both in one unit, with as many digits as show their gap."""
    return format_proven(answer.latency_us, answer.lower_bound_us)


def latency_unit(answer: OptimizeOut) -> TimeUnit:
    """Return the unit and decimals of the latency beside its bound."""
    return TimeUnit.of(answer.latency_us, answer.lower_bound_us)


def is_at_most(answer: OptimizeOut) -> bool:
    """Return whether the latency is the maximum of all pipelines with these costs."""
    return any(found.code == _AT_MOST for found in answer.warnings)


def proof_of(answer: OptimizeOut) -> Proof:
    """Return what was proven of an answer."""
    status, gap = Status(answer.status), answer.relative_gap
    _, bound = latency_and_bound(answer)
    admitted = _class_of(answer, f" {OF_MODEL}")
    of_fit = f" Proven {NOT_OF_MACHINE}." if answer.is_fitted else ""
    if status is Status.OPTIMAL:
        stated = f"No {admitted} is faster"
        return Proof(*STATUS_WORDS[status], f"{stated}{_by_more_than(gap)}.{of_fit}")
    if status is Status.OPTIMAL_BEFORE_ROUNDING:
        return Proof(*STATUS_WORDS[status], _before_rounding(answer) + of_fit)
    between = f"No {admitted} is faster than {bound}; this one is {_about(gap)} above that."
    if status is Status.TIME_LIMIT:
        between = f"The time limit ended the search: this is the best found until then. {between}"
    return Proof(*STATUS_WORDS[status], between + of_fit)


def _class_of(answer: OptimizeOut, of_model: str = "") -> str:
    """Return which schedules the proof speaks of."""
    if answer.allow_refragmentation or answer.levels:
        return f"schedule{of_model} within these limits, also one that cuts anew between stages,"
    return f"schedule{of_model} within these limits"


def _by_more_than(gap: float) -> str:
    return f" by more than {format_gap(gap).removeprefix('< ')}" if gap > 0.0 else ""


def _about(gap: float) -> str:
    """Return a gap inside a sentence."""
    return format_gap(gap).replace("< ", "less than ")


def _before_rounding(answer: OptimizeOut) -> str:
    _, bound = latency_and_bound(answer)
    gap = _about(answer.relative_gap)
    unit = answer.constraints.alignment_bytes
    whole = "whole bytes" if unit == 1 else f"whole multiples of {format_bytes(unit)}"
    return (
        f"With sizes in fractions of a byte the optimum {OF_MODEL} is proven, and no "
        f"{_class_of(answer)} is faster than {bound}; {whole} are {gap} above that."
    )


def format_limiting(answer: OptimizeOut) -> str:
    """Return what keeps another fragment from helping; "" where nothing does."""
    name = answer.limited_by
    if not name:
        return ""
    return f"More fragments could be faster, but for {_LIMITS.get(name, name)}."


def format_constraints(answer: OptimizeOut) -> tuple[str, ...]:
    """Return each limit that the schedule keeps; none where any cut was admitted."""
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


def format_path(answer: OptimizeOut) -> str:
    """Return the message and what it crosses."""
    message = format_bytes(answer.message_bytes)
    if answer.pipeline is None:
        return f"{message} through a pipeline seen from outside"
    stages = len(answer.pipeline.stages)
    return f"{message} through {stages} stage{'s' * (stages != 1)}"


def bottleneck_name(answer: OptimizeOut) -> str:
    """Return the name of the stage that is occupied longest; "" where no stage is known."""
    if answer.pipeline is None or answer.bottleneck_stage is None:
        return ""
    return answer.pipeline.stages[answer.bottleneck_stage].name


# --- the page of an answer ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its name above it and a remark beside it."""

    name: str
    value: str
    remark: str = ""
    is_name: bool = False


@dataclass(frozen=True, slots=True)
class Alternative:
    """A row of the table of strategies: above the bound, and above the answer, in per cent.

    Texts are empty where there is nothing to say. Of a system's default `parameter` sets the size,
    and `source` is where it is written. `is_unfinished`: time ended the search at a cut slower than
    the answer, so that its latency would say nothing of the strategy.
    """

    name: str
    how: str
    latency: str
    above_bound: str
    above_answer: str
    fragments: str
    declined: str = ""
    is_answer: bool = False
    is_unfinished: bool = False
    parameter: str = ""
    source: str = ""

    @property
    def link(self) -> str:
        """The address of the source, "" for a source that is printed."""
        return self.source if self.source.startswith("http") else ""


@dataclass(frozen=True, slots=True)
class AnswerView:
    """What templates/answer.html is given."""

    id: str
    title: str
    created_at: str
    is_aggregate: bool
    proof: Proof
    limited: str
    figures: tuple[Figure, ...]
    certainty: tuple[tuple[str, str], ...]
    sensitivities: tuple[tuple[str, str], ...]
    draws: int
    profile: str
    warnings: tuple[str, ...]
    cut: Cut
    levels: tuple[Cut, ...]
    delivery: tuple[tuple[str, str], ...]
    limits: tuple[str, ...]
    unit: str
    alternatives: tuple[Alternative, ...]
    caption: str

    @classmethod
    def of(cls, answer: OptimizeOut) -> AnswerView:
        unit = latency_unit(answer)
        return cls(
            id=answer.id,
            title=format_path(answer),
            created_at=answer.created_at,
            is_aggregate=answer.pipeline is None,
            proof=proof_of(answer),
            limited=format_limiting(answer),
            figures=tuple(_figures(answer)),
            draws=answer.uncertainty.draws if answer.uncertainty else 0,
            certainty=tuple(uncertainty_facts(answer.uncertainty)) if answer.uncertainty else (),
            sensitivities=tuple(sensitivity_facts(answer.sensitivities))
            if answer.sensitivities
            else (),
            profile=answer.profile.reference if answer.profile else "",
            warnings=tuple(dict.fromkeys(one.detail for one in answer.warnings)),
            cut=cut_of(answer.fragment_bytes),
            levels=tuple(_levels(answer)),
            delivery=tuple(delivery_facts(answer)),
            limits=format_constraints(answer),
            unit=unit.name,
            alternatives=tuple(_alternatives(answer, unit)),
            caption=_caption(answer),
        )


def _caption(answer: OptimizeOut) -> str:
    """Say why the ends of the cut are small, or that its fragments are equal."""
    cut = answer.fragment_bytes
    if answer.levels or answer.pipeline is None or len(cut) < 2 or len(answer.pipeline.stages) < 2:
        return ""
    first, last, near = cut[0], cut[-1], 0.9 * max(cut)
    later = "later stages start early"
    earlier = "nothing waits long for the end"
    if first < near and last < near:
        return f"The first and the last fragments are small, so that {later} and {earlier}."
    if first < near:
        return f"The first fragments are small, so that {later}."
    if last < near:
        return f"The last fragments are small, so that {earlier}."
    return "The fragments are as good as equal: each stage works on one while the next one is sent."


def _figures(answer: OptimizeOut) -> Iterator[Figure]:
    at_most = "at most, whichever stages these are" if is_at_most(answer) else ""
    latency, bound = latency_and_bound(answer)
    yield Figure("Latency", latency, at_most or "of the fragments below")
    yield Figure(capitalised(PROVEN_BOUND), bound, "no cut of these stages takes less")
    yield Figure(
        "Gap to the bound", format_gap(answer.relative_gap), "what is left to gain at most"
    )
    yield Figure("Fragments", format_count(answer.fragments), _format_size_range(answer))
    yield Figure("Strategy", answer.strategy)
    best = answer.best_fixed
    if best:
        yield Figure("Best fixed size", format_size(best.size_bytes), _format_cost(answer, best))
    if answer.pipeline is not None:
        yield Figure("Bottleneck", bottleneck_name(answer), is_name=True)


def _format_size_range(answer: OptimizeOut) -> str:
    cut = answer.fragment_bytes
    if min(cut) >= MIN_NEAR_BYTES and max(cut) - min(cut) == 1:
        return f"{format_size(max(cut))} each, some a byte less"
    smallest, largest = format_size(min(cut)), format_size(max(cut))
    each = "each" if len(cut) > 1 else ""
    return f"{smallest} to {largest}" if smallest != largest else f"{smallest} {each}".strip()


def _format_cost(answer: OptimizeOut, best: BestFixedOut) -> str:
    more_us = best.latency_us - answer.latency_us
    unit = latency_unit(answer)
    latency = unit.named(best.latency_us)
    if more_us == 0.0:
        return f"{latency}, the same"
    return f"{latency}, {_signed(more_us, unit)}{_signed_share(more_us, answer.latency_us)}"


def _signed(more_us: float, unit: TimeUnit) -> str:
    more = (
        unit.named(abs(more_us))
        if abs(more_us) >= 10.0 * unit.step_us
        else format_time(abs(more_us))
    )
    return f"{'+' if more_us > 0.0 else '−'}{more}"


def _signed_share(more_us: float, reference_us: float) -> str:
    if reference_us <= 0.0 or more_us == 0.0:
        return ""
    return f" ({format_signed_percent(more_us / reference_us)})"


# --- beside the default settings ------------------------------------------------------------------


def _alternatives(answer: OptimizeOut, unit: TimeUnit) -> Iterator[Alternative]:
    yield Alternative(
        answer.strategy,
        "this answer",
        unit.text(answer.latency_us),
        format_gap(answer.relative_gap),
        "",
        format_count(answer.fragments),
        is_answer=True,
    )
    best = answer.best_fixed
    if best and answer.strategy != "repeat":
        how = f"best fixed size, {format_bytes(best.size_bytes)}"
        yield _alternative(answer, "repeat", how, best.latency_us, best.fragments, unit)
    for one in answer.baselines:
        if one.latency_us is None or one.fragments is None:
            yield Alternative(one.strategy, _how(one), "", "", "", "", declined=one.declined or "")
        else:
            row = _alternative(answer, one.strategy, _how(one), one.latency_us, one.fragments, unit)
            if one.measured_us is not None:  # the bound is of the model
                row = replace(row, above_bound="", how=f"{row.how}, at most as measured")
            yield replace(row, parameter=one.parameter or "", source=one.source or "")


def _how(baseline: BaselineOut) -> str:
    name = format_setting_name(baseline.name or "")
    if baseline.strategy == "single":
        return f"{name}: not cut" if baseline.name == CURRENT else "not cut"
    if baseline.static_bytes:
        each = format_repeated(baseline.static_bytes, baseline.default_bytes)
        return f"{name}: {each}" if name else each
    return "equal fragments"


def _alternative(
    answer: OptimizeOut, name: str, how: str, latency_us: float, fragments: int, unit: TimeUnit
) -> Alternative:
    bound_us = answer.lower_bound_us
    return Alternative(
        name,
        how,
        unit.text(latency_us),
        format_gap(relative_excess(latency_us, bound_us, bound_us)),
        format_excess(latency_us, answer.latency_us),
        format_count(fragments),
    )


# --- what if a cost were another ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WhatIfCost:
    """A cost of a stage as it is; `name` is how a form calls it."""

    words: str
    value: str
    name: str


@dataclass(frozen=True, slots=True)
class WhatIfRow:
    """A stage: its costs, both together last."""

    stage: str
    costs: tuple[WhatIfCost, ...]


def what_if(answer: OptimizeOut) -> tuple[WhatIfRow, ...]:
    """Return every stage with costs that can be changed."""
    if answer.pipeline is None:
        return ()
    stages = with_unique_names(answer).pipeline
    return tuple(
        WhatIfRow(stage.name, tuple(_what_if_costs(place, stage)))
        for place, stage in enumerate(stages.stages if stages else ())
    )


def _what_if_costs(place: int, stage: StageOut) -> Iterator[WhatIfCost]:
    first, last = stage.parts[0], stage.parts[-1]
    overheads, per_bytes = (
        dict.fromkeys(without_zeros(format_figure(value)) for value in values)
        for values in (
            (first.overhead_us, last.overhead_us),
            (first.ns_per_byte, last.ns_per_byte),
        )
    )
    for cost, words, value in (
        (ChangedCost.OVERHEAD, "overhead", f"{' to '.join(overheads)} µs"),
        (ChangedCost.PER_BYTE, "cost a byte", f"{' to '.join(per_bytes)} ns/B"),
        (ChangedCost.BOTH, "both costs", ""),
    ):
        yield WhatIfCost(words, value, f"{place}.{cost}")


# --- stages that cut differently ------------------------------------------------------------------


def _levels(answer: OptimizeOut) -> Iterator[Cut]:
    """Return the cut of each stage, equal neighbours together; none for a shared cut."""
    cuts = answer.levels
    if not cuts or answer.pipeline is None or all(cut == cuts[0] for cut in cuts):
        return
    names = [stage.name for stage in answer.pipeline.stages]
    first = 0
    for place in range(1, len(cuts) + 1):
        if place == len(cuts) or cuts[place] != cuts[first]:
            name = names[first] if place - first == 1 else f"{names[first]} to {names[place - 1]}"
            yield cut_of(cuts[first], name=name)
            first = place
