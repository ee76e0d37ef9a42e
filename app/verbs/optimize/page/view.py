"""An answer as its page shows it: its figures, its cuts in groups, and what stands beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from app.schemas.in_flight import has_counts, in_flight_facts
from app.schemas.stages import sensitivity_facts
from app.schemas.uncertainty import uncertainty_facts
from app.text.notices import capitalised
from app.text.numbers import (
    format_count,
    format_excess,
    format_gap,
    format_signed_percent,
    format_size,
)
from app.text.units import (
    PROVEN_BOUND,
    TimeUnit,
    format_setting_name,
    format_time,
)
from app.verbs.optimize.show import (
    Proof,
    bottleneck_name,
    cut_words,
    delivery_facts,
    format_constraints,
    format_limiting,
    format_path,
    is_at_most,
    latency_and_bound,
    latency_unit,
    proof_of,
)
from contract.optimize import BaselineOut, BestFixedOut, MachineOptimizeOut, OptimizeOut
from domain.default_sizes import CURRENT
from domain.solution import relative_excess
from domain.units import format_bytes

MIN_NEAR_BYTES = 1024  # sizes from here on that differ by a byte are shown together
MAX_RUNS = 24  # groups of a cut that are shown at once
_FIRST, _LAST = 12, 6  # of the groups, where there are more


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
    """What templates/answer.html is given; `is_counted`: it has lanes or places to count by."""

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
    in_flight: tuple[tuple[str, str], ...]
    is_counted: bool
    limits: tuple[str, ...]
    unit: str
    alternatives: tuple[Alternative, ...]
    caption: str

    @classmethod
    def from_answer(cls, answer: OptimizeOut) -> AnswerView:
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
            in_flight=tuple(in_flight_facts(answer))
            if isinstance(answer, MachineOptimizeOut)
            else (),
            is_counted=isinstance(answer, MachineOptimizeOut) and has_counts(answer),
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
    for other in answer.baselines:
        how = _how(answer, other)
        if other.latency_us is None or other.fragments is None:
            yield Alternative(other.strategy, how, "", "", "", "", declined=other.declined or "")
        else:
            row = _alternative(answer, other.strategy, how, other.latency_us, other.fragments, unit)
            if other.measured_us is not None:  # the bound is of the model
                row = replace(row, above_bound="")
            yield replace(row, parameter=other.parameter or "", source=other.source or "")


def _how(answer: OptimizeOut, other: BaselineOut) -> str:
    name, cut = format_setting_name(other.name or ""), cut_words(answer, other)
    is_named = bool(other.static_bytes) or other.name == CURRENT
    return f"{name}: {cut}" if name and is_named else cut


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
