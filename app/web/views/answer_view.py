"""An answer as its page shows it at once: all of it out of the stored answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.schemas.optimize import BaselineOut, BestFixedOut, OptimizeOut
from app.text.numbers import (
    format_count,
    format_excess,
    format_gap,
    format_percent,
    format_signed_percent,
)
from app.text.units import TimeUnit, format_time
from app.web.views.answer_words import (
    Cut,
    Proof,
    bottleneck_name,
    cut_of,
    is_at_most,
    latency_and_bound,
    latency_unit,
    limited_words,
    limits_words,
    proof_of,
    through_words,
)
from domain.solution import relative_excess
from domain.units import format_bytes


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its name above it and a remark beside it."""

    name: str
    value: str
    remark: str = ""
    is_name: bool = False


@dataclass(frozen=True, slots=True)
class Rival:
    """A row of the table of strategies: above the bound, and above the answer, in per cent.

    Texts are empty where there is nothing to say.
    """

    name: str
    how: str
    latency: str
    above_bound: str
    above_answer: str
    fragments: str
    declined: str = ""
    is_answer: bool = False


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
    gains: tuple[str, ...]
    profile: str
    warnings: tuple[str, ...]
    cut: Cut
    levels: tuple[Cut, ...]
    limits: tuple[str, ...]
    unit: str
    rivals: tuple[Rival, ...]

    @classmethod
    def of(cls, answer: OptimizeOut) -> AnswerView:
        """Of an OptimizeOut."""
        unit = latency_unit(answer)
        return cls(
            id=answer.id,
            title=through_words(answer),
            created_at=answer.created_at,
            is_aggregate=answer.pipeline is None,
            proof=proof_of(answer),
            limited=limited_words(answer),
            figures=tuple(_figures(answer)),
            gains=tuple(_gains(answer)),
            profile=answer.profile.reference if answer.profile else "",
            warnings=tuple(dict.fromkeys(one.detail for one in answer.warnings)),
            cut=cut_of(answer.fragment_bytes),
            levels=tuple(_levels(answer)),
            limits=limits_words(answer),
            unit=unit.name,
            rivals=tuple(_rivals(answer, unit)),
        )


def _figures(answer: OptimizeOut) -> Iterator[Figure]:
    at_most = "at most, whichever stages these are" if is_at_most(answer) else ""
    latency, bound = latency_and_bound(answer)
    yield Figure("Latency", latency, at_most)
    yield Figure("Proven bound", bound)
    yield Figure("Gap to the bound", format_gap(answer.relative_gap))
    yield Figure("Fragments", format_count(answer.fragments), _range_words(answer))
    yield Figure("Strategy", answer.strategy)
    best = answer.best_fixed
    if best:
        yield Figure("Best fixed size", format_bytes(best.size_bytes), _cost_words(answer, best))
    if answer.pipeline is not None:
        yield Figure("Bottleneck", bottleneck_name(answer), is_name=True)


def _range_words(answer: OptimizeOut) -> str:
    cut = answer.fragment_bytes
    least, greatest = format_bytes(min(cut)), format_bytes(max(cut))
    each = "each" if len(cut) > 1 else ""
    return f"{least} to {greatest}" if least != greatest else f"{least} {each}".strip()


def _cost_words(answer: OptimizeOut, best: BestFixedOut) -> str:
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


# --- beside the usual settings --------------------------------------------------------------------


def _gains(answer: OptimizeOut) -> Iterator[str]:
    """What the answer saves of the latency of each usual setting, in words."""
    best = answer.best_fixed
    if best:
        repeated = f"repeating the best fixed size of {format_bytes(best.size_bytes)}"
        yield from _gain(answer, repeated, best.latency_us)
    for one in answer.baselines:
        is_cut = one.strategy == "static" and (one.fragments or 0) > 1
        if one.latency_us is not None and (is_cut or one.strategy == "single"):
            yield from _gain(answer, _usual(one), one.latency_us)


def _gain(answer: OptimizeOut, what: str, other_us: float) -> Iterator[str]:
    saved_us = other_us - answer.latency_us
    if saved_us > 0.0:
        yield f"{format_percent(saved_us / other_us)} less than {what}"


def _usual(baseline: BaselineOut) -> str:
    if baseline.strategy == "single":
        return "sending it whole"
    return f"fragments of {format_bytes(baseline.static_bytes or 0)}"


def _rivals(answer: OptimizeOut, unit: TimeUnit) -> Iterator[Rival]:
    yield Rival(
        answer.strategy,
        "this answer",
        unit.text(answer.latency_us),
        format_gap(answer.relative_gap),
        "",
        format_count(answer.fragments),
        is_answer=True,
    )
    best = answer.best_fixed
    if best:
        how = f"best fixed size, {format_bytes(best.size_bytes)}"
        yield _rival(answer, "repeat", how, best.latency_us, best.fragments, unit)
    for one in answer.baselines:
        if one.latency_us is None or one.fragments is None:
            yield Rival(one.strategy, _how(one), "", "", "", "", declined=one.declined or "")
        else:
            yield _rival(answer, one.strategy, _how(one), one.latency_us, one.fragments, unit)


def _how(baseline: BaselineOut) -> str:
    if baseline.strategy == "single":
        return "not cut"
    if baseline.static_bytes:
        return f"{format_bytes(baseline.static_bytes)} each"
    return "equal fragments"


def _rival(
    answer: OptimizeOut, name: str, how: str, latency_us: float, fragments: int, unit: TimeUnit
) -> Rival:
    bound_us = answer.lower_bound_us
    return Rival(
        name,
        how,
        unit.text(latency_us),
        format_gap(relative_excess(latency_us, bound_us, bound_us)),
        format_excess(latency_us, answer.latency_us),
        format_count(fragments),
    )


# --- stages that cut differently ------------------------------------------------------------------


def _levels(answer: OptimizeOut) -> Iterator[Cut]:
    """The cut of each stage, neighbours with the same one together; none for a shared cut."""
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
