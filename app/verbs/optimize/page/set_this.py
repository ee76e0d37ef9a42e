"""What to set by an answer: one size, what it gains, and the sizes to choose from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from analysis.size_curve import SizeChoice, SizeCurve, SizePoint, gain_over, preferred
from app.schemas.answers import current_of
from app.schemas.in_flight import machine_of
from app.schemas.uncertainty import by_premise, is_refused, repeats_bytes, tells_file
from app.text.in_flight import at_once_words, format_whole
from app.text.numbers import (
    MIN_SHARE,
    format_count,
    format_gap,
    format_percent,
    format_size,
)
from app.text.units import (
    SAME,
    SizeWords,
    TimeUnit,
    format_against,
    format_current,
    format_not_worth,
    format_set_this,
    format_setting_name,
)
from app.verbs.optimize.page.surroundings import curve_of, defaults_of
from app.verbs.optimize.show import latency_unit
from contract.optimize import BaselineOut, MachineOptimizeOut, OptimizeOut
from domain.default_sizes import CURRENT
from domain.solution import relative_excess
from domain.uncertain_answer import RoundRule, Thresholds

_RULES = {
    RoundRule.WHOLE: "the whole message",
    RoundRule.THREE_POWERS: "three times a power of two",
}
_LIMITS = Thresholds()


@dataclass(frozen=True, slots=True)
class SizeRow:
    """A size to repeat: what it is, and what it takes, above the proven bound too."""

    size: str
    what: str
    fragments: str
    latency: str
    above: str
    is_chosen: bool
    parameter: str = ""
    source: str = ""

    @property
    def link(self) -> str:
        """The address of the source, "" for a source that is printed."""
        return self.source if self.source.startswith("http") else ""


@dataclass(frozen=True, slots=True)
class SetThis:
    """What an answer opens with: one thing to set, what it gains, and a sentence that decides.

    `size_bytes` is the size to repeat, None where none can be repeated within the limits.
    """

    headline: str
    facts: tuple[str, ...]
    sentence: str
    sureness: str
    rows: tuple[SizeRow, ...]
    unit: str
    size_bytes: int | None


def set_this(answer: OptimizeOut, curve: SizeCurve | None, *, current_bytes: int | None) -> SetThis:
    """Return what to set, told against the size that is repeated today, else systems' defaults."""
    unit = latency_unit(answer)
    best = answer.best_fixed
    if curve is None and best is not None:
        bound_us = answer.lower_bound_us
        above = format_gap(relative_excess(best.latency_us, bound_us, bound_us))
        facts = (f"{above} above the best possible of this model",)
        headline = f"Repeat {format_size(best.size_bytes)}"
        return SetThis(headline, facts, "", "", (), unit.name, best.size_bytes)
    if curve is None:
        sentence = "No size can be repeated within these limits, so the fragments are uneven."
        return SetThis("Send the fragments below", (), sentence, "", (), unit.name, None)
    current = curve.asked[0] if current_bytes else None
    chosen = _chosen(answer, curve, current)
    unit = TimeUnit.of(curve.best.latency_us)
    has_current = bool(current_bytes)
    is_forbidden = current is None and current_bytes and answer.uncertainty is None
    forbidden = f"your {format_size(current_bytes or 0)} is not within the limits"
    over = answer.set_this.over if answer.set_this else None
    return SetThis(
        headline=_headline(answer, SizeChoice(chosen, chosen, current)),
        facts=(
            *_facts(answer, curve, chosen, current),
            *([forbidden] if is_forbidden else []),
            *([over.sentence.removesuffix(".")] if over else []),
        ),
        sentence=_deciding(answer, curve, current),
        sureness=_sureness(answer, chosen),
        rows=tuple(_size_rows(answer, curve, chosen, current, unit, has_current=has_current)),
        unit=unit.name,
        size_bytes=chosen.size_bytes,
    )


def set_this_of(
    answer: OptimizeOut, *, fragment_cap: int, current_bytes: int | None = None
) -> SetThis:
    """Return what to set by an answer; without `current_bytes` its own setting of today counts."""
    current = current_bytes or current_of(answer)
    curve = curve_of(answer, fragment_cap=fragment_cap, current_bytes=current)
    return set_this(answer, curve, current_bytes=current)


def _chosen(answer: OptimizeOut, curve: SizeCurve, current: SizePoint | None) -> SizePoint:
    """The size to repeat: what the answer says to set, where it is about this setting of today.

    Else that of its decision where its costs have errors, or a round one; today's where that gains
    no more than 1 % by the model and no decision says otherwise.
    """
    every = {one.size_bytes: one for one in (*curve.points, *filter(None, curve.asked))}
    known, stated = answer.uncertainty, answer.set_this
    if stated is not None and _is_of_own_setting(answer, current):
        return every.get(stated.size_bytes, curve.recommended)
    wanted = min(repeats_bytes(known) or 0, answer.message_bytes) if known else 0
    is_about = known is not None and known.advised_bytes and _is_about(answer, current)
    decision = known.decision if known and is_about else ""
    return preferred(every.get(wanted, curve.recommended), current, decision)


def _is_about(answer: OptimizeOut, current: SizePoint | None) -> bool:
    """Whether the answer's decision is about this setting of today: not of one in the address."""
    if answer.uncertainty is None or current is None:
        return answer.uncertainty is not None
    is_compared = answer.uncertainty.compared_with == CURRENT
    return is_compared and min(current_of(answer) or 0, answer.message_bytes) == current.size_bytes


def _is_by_transfers(answer: OptimizeOut) -> bool:
    """Whether measured transfers decide, or have contradicted the model: it claims nothing then."""
    return answer.set_this is not None and answer.set_this.by_transfers


def _is_of_own_setting(answer: OptimizeOut, current: SizePoint | None) -> bool:
    """Whether this setting of today is the answer's, and not one in the address."""
    own_bytes = min(current_of(answer) or 0, answer.message_bytes)
    return own_bytes == (current.size_bytes if current else 0)


def _measured_headline(answer: OptimizeOut, current: SizePoint | None) -> str:
    stated = answer.set_this
    assert stated is not None
    is_about = _is_of_own_setting(answer, current)
    if not is_about or stated.sentence.startswith(("Measure first", "Not decided", "Try ")):
        return "Measure first"
    return format_set_this(stated.size_bytes, answer.message_bytes, is_kept=stated.keeps_current)


def _headline(answer: OptimizeOut, choice: SizeChoice) -> str:
    known, chosen, current = answer.uncertainty, choice.chosen, choice.current
    if _is_by_transfers(answer):
        return _measured_headline(answer, current)
    by_model = by_premise(choice, answer.message_bytes, has_premise=answer.has_premise)
    is_kept = current is not None and chosen.size_bytes == current.size_bytes
    is_unsure = known is not None and is_refused(known)
    asked = repeats_bytes(known) if known is not None and is_unsure else None
    size_bytes = asked or chosen.size_bytes
    machine = machine_of(answer) if isinstance(answer, MachineOptimizeOut) else None
    return format_set_this(
        size_bytes,
        answer.message_bytes,
        is_kept=is_kept and not is_unsure,
        decision=known.decision if known else by_model,
        is_uneven=known is not None and known.advised_bytes is None,
        at_once=at_once_words(machine, size_bytes, answer.message_bytes) if machine else "",
        written=_sizes_of(answer),
    )


def _sizes_of(answer: OptimizeOut) -> SizeWords:
    """How the sizes of an answer are written: of other models as they always were."""
    return format_whole if isinstance(answer, MachineOptimizeOut) else format_size


def _facts(
    answer: OptimizeOut, curve: SizeCurve, chosen: SizePoint, current: SizePoint | None
) -> Iterator[str]:
    if _is_by_transfers(answer):
        return
    bound_us = answer.lower_bound_us
    above = format_gap(relative_excess(chosen.latency_us, bound_us, bound_us))
    is_uneven = answer.uncertainty is not None and answer.uncertainty.advised_bytes is None
    of = f"{format_size(chosen.size_bytes)} repeated: " if is_uneven else ""
    yield f"{of}{above} above the best possible of this model"
    other = curve.recommended
    if current is None:
        yield from _against_defaults(answer, chosen)
    elif chosen.size_bytes != current.size_bytes:
        yield from _against_current(answer, chosen, current)
    elif answer.uncertainty is None and (gain := gain_over(other, current)) > SAME:
        yield format_not_worth(other.size_bytes, gain, written=_sizes_of(answer))
    is_by_lines = answer.uncertainty is None or not tells_file(answer.uncertainty)
    if is_by_lines and chosen.fragments > 1 and (current is None or current.fragments > 1):
        whole = next((one for one in curve.points if one.fragments == 1), None)
        if whole is not None:
            yield format_against(chosen.latency_us, whole.latency_us, "sending it whole")


def _against_current(answer: OptimizeOut, chosen: SizePoint, current: SizePoint) -> Iterator[str]:
    """What it gains over today's setting, by the measured times where the answer tells these."""
    written, known = _sizes_of(answer), answer.uncertainty
    yours = format_current(current.size_bytes, answer.message_bytes, written=written)
    if known is None or not tells_file(known):
        yield format_against(chosen.latency_us, current.latency_us, yours)
    elif known.file is not None and known.advised_bytes == chosen.size_bytes:
        yield format_against(known.file.latency_us, known.file.compared_us, yours)


def _against_defaults(answer: OptimizeOut, chosen: SizePoint) -> Iterator[str]:
    """What it gains over the defaults of systems that fit: over the best and the worst of them."""
    known = [one for one in defaults_of(answer) if one.latency_us]
    gains = [1.0 - chosen.latency_us / (one.latency_us or 1.0) for one in known]
    if len(known) == 1:
        name = f"{format_size(known[0].static_bytes or 0)}, the default of {known[0].name}"
        yield format_against(chosen.latency_us, known[0].latency_us or 0.0, name)
    elif known and min(gains) > SAME:
        low, high = format_percent(min(gains)), format_percent(max(gains))
        yield f"{low} to {high} faster than the defaults of {len(known)} systems"


def _deciding(answer: OptimizeOut, curve: SizeCurve, current: SizePoint | None) -> str:
    """The sentence that decides: the answer's own, or whether uneven sizes are worth it."""
    if _is_by_transfers(answer) and answer.set_this is not None:
        if _is_of_own_setting(answer, current):
            return answer.set_this.sentence
        return "Transfers decide of the setting in use: optimise again with this one."
    if answer.uncertainty is not None and (current is None or _is_about(answer, current)):
        sentence = answer.uncertainty.sentence
        if answer.set_this is None:  # stored by an earlier version, whose rules were others
            return f"Said by an earlier version: “{sentence}” Optimise again to decide anew."
        return sentence
    best_us = curve.best.latency_us
    if answer.pipeline is not None and len(answer.pipeline.stages) == 1 and best_us > 0.0:
        return "One stage has nothing to overlap with: the largest fragment is best."
    gain = 1.0 - answer.latency_us / best_us if best_us > 0.0 else 0.0
    possible = 1.0 - answer.lower_bound_us / best_us if best_us > 0.0 else 0.0
    if gain >= _LIMITS.uneven_gain:
        return (
            f"Uneven sizes gain another {format_percent(gain)}: worth it where your library takes "
            "a list of sizes, which is below."
        )
    if possible >= _LIMITS.uneven_gain:
        return f"Uneven sizes could gain {format_gap(possible)} more at most."
    if max(gain, possible) < MIN_SHARE:
        return "No uneven sizes are faster than the best repeated one."
    return f"Uneven sizes gain another {format_gap(max(gain, possible))} at most: not worth it."


def _sureness(answer: OptimizeOut, chosen: SizePoint) -> str:
    found = answer.uncertainty
    if _is_by_transfers(answer):
        return ""
    if found is None:
        if any(one.code == "errors_not_known" for one in answer.warnings):
            return "How sure this is cannot be told: the errors of its fitted costs are not known."
        return "These costs are taken as exact."
    for good in found.good_sizes:
        if any(low <= chosen.size_bytes <= high for low, high in good.intervals):
            share = f"{good.in_draws * 100:.0f} % of the draws"
            return f"within {good.within * 100:.0f} % of the best size in {share} or more"
    return "further than 5 % from the best size in more than a tenth of the draws"


def _size_rows(
    answer: OptimizeOut,
    curve: SizeCurve,
    chosen: SizePoint,
    current: SizePoint | None,
    unit: TimeUnit,
    *,
    has_current: bool,
) -> Iterator[SizeRow]:
    """The sizes to choose from, the fastest first, each once."""
    found: dict[int, tuple[SizePoint, list[str], BaselineOut | None]] = {}

    def note(point: SizePoint, words: str, source: BaselineOut | None = None) -> None:
        _, known, before = found.setdefault(point.size_bytes, (point, [], source))
        if words not in known:
            known.append(words)
        found[point.size_bytes] = (point, known, before or source)

    note(chosen, "to set")
    note(curve.best, "best of all sizes")
    for rounded, point in curve.round_sizes:
        note(point, _RULES.get(rounded.rule, rounded.rule.value))
    if current is not None:
        note(current, "your setting")
    for one, other in zip(defaults_of(answer), curve.asked[has_current:], strict=False):
        if other is not None:
            note(other, format_setting_name(one.name or ""), one)
    bound_us, (low, high) = answer.lower_bound_us, _measured(answer)
    for point, words, source in sorted(found.values(), key=lambda row: row[0].latency_us):
        yield SizeRow(
            size=_sizes_of(answer)(point.size_bytes),
            what=", ".join(["not measured"] * (not low <= point.size_bytes <= high) + words),
            fragments=format_count(point.fragments),
            latency=unit.text(point.latency_us),
            above=format_gap(relative_excess(point.latency_us, bound_us, bound_us)),
            is_chosen=point.size_bytes == chosen.size_bytes,
            parameter=(source.parameter or "") if source is not None else "",
            source=(source.source or "") if source is not None else "",
        )


def _measured(answer: OptimizeOut) -> tuple[float, float]:
    """The least and the greatest size that every stage was measured at, where it is warned of."""
    known = (one.values or {} for one in answer.warnings if one.code == "beyond_measured_sizes")
    values = next(known, {})
    return float(values.get("min_bytes", 0.0)), float(values.get("max_bytes", inf))
