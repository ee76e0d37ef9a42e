"""What would make an answer faster, in one sentence, in the units that its costs were given in."""

from __future__ import annotations

from collections.abc import Iterable

from analysis.explanation import Cost, Explanation, Saving
from app.text.numbers import format_figure, format_percent, without_zeros
from app.text.units import TimeUnit
from app.web.shown_units import ShownUnits
from app.web.views.answer_words import Document

_LEAST_SHARE = 1e-6  # of the latency: less than this is nothing


def saved_us(one: Saving) -> float:
    """With the schedule that is best then, where that was solved, else with the one there is."""
    return one.same_cut_us if one.best_cut_us is None else one.best_cut_us


def worthwhile(found: Explanation) -> list[Saving]:
    """The savings that are more than nothing, the greatest first."""
    ranked = sorted(found.savings, key=lambda one: -saved_us(one))
    return [one for one in ranked if saved_us(one) > _LEAST_SHARE * found.latency_us]


def advice_of(found: Explanation, pipeline: Document, units: ShownUnits) -> str:
    """The one cost of one stage whose change helps most; "" where none does."""
    useful = worthwhile(found)
    if not useful:
        return ""
    best = useful[0]
    unit = TimeUnit.of(found.latency_us)
    saved = saved_us(best)
    how = _change(pipeline["stages"][best.stage], best, units, left=1.0 - found.cheaper_by)
    anew = ", cut anew" if best.best_cut_us is not None else ""
    part = format_percent(saved / found.latency_us)
    return f"{best.name} {how}: −{unit.named(saved)} ({part}){anew}."


def _change(stage: Document, saving: Saving, units: ShownUnits, *, left: float) -> str:
    ranges = stage.get("ranges") or [stage]
    if saving.cost is Cost.OVERHEAD:
        one_us = units.overhead.to_us(1.0)
        times = [part["overhead_us"] / one_us for part in ranges]
        return f"with an overhead of {_instead(times, left)} {units.overhead.words}"
    one_ns, costs = units.cost.to_ns_per_byte(1.0), [part["ns_per_byte"] for part in ranges]
    if units.cost.is_bandwidth and min(costs) > 0.0:
        rates = [one_ns / cost for cost in costs]
        return f"at {_instead(rates, 1.0 / left)} {units.cost.words}"
    if units.cost.is_bandwidth:
        return f"at {_instead(costs, left)} ns/byte"
    return f"at {_instead([cost / one_ns for cost in costs], left)} {units.cost.words}"


def _instead(values: Iterable[float], factor: float) -> str:
    """The values changed, and as they are; of several ranges from the first to the last."""
    kept = list(values)
    return f"{_span([value * factor for value in kept])} instead of {_span(kept)}"


def _span(values: list[float]) -> str:
    return " to ".join(
        dict.fromkeys(without_zeros(format_figure(value)) for value in (values[0], values[-1]))
    )
