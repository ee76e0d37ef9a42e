"""Latencies by one cost, from a quarter of it to four times as much, as a chart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from analysis.size_curve import ChangedCost, size_curve, with_cost
from app.schemas.stages import limits_of, stored_model
from app.text.numbers import format_size
from app.verbs.optimize.page.surroundings import NOT_REPEATED, Chart, drawable
from app.verbs.optimize.show import latency_unit
from contract.optimize import OptimizeOut
from domain.errors import Infeasible, StrategyDeclined
from domain.pipeline import Pipeline
from domain.problem import problem_of

if TYPE_CHECKING:
    from contract.optimize import OptimizeOut


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepData:
    """Latencies by one cost times a factor, µs; `own` is the cost as it is."""

    kind: Literal["sweep"] = "sweep"
    unit: str
    us: float
    factors: list[float]
    lines: list[tuple[str, list[float | None]]]


_FACTORS = tuple(2.0 ** (step / 4.0) for step in range(-8, 9))


def sweep_chart(
    answer: OptimizeOut, wanted: str, *, sizes: tuple[int | None, int | None], fragment_cap: int
) -> tuple[Chart[SweepData], tuple[tuple[str, str], ...], str]:
    """Return the curves, the costs to choose from with their names, and the chosen one; none for
    stages that are not known or hand bytes on. `sizes` are the one to set and today's, or None.
    """
    unit = latency_unit(answer)
    pipeline = stored_model(answer.model)
    nothing = SweepData(unit=unit.name, us=unit.us, factors=[], lines=[])
    if not isinstance(pipeline, Pipeline) or pipeline.without_handoffs is not pipeline:
        return Chart(nothing, (), (), (), NOT_REPEATED), (), ""
    costs = tuple(
        (f"{place}.{cost}", f"{stage.name}, {words}")
        for place, stage in enumerate(pipeline.stages)
        for cost, words in _COST_WORDS.items()
    )
    bottleneck = f"{answer.bottleneck_stage or 0}.{ChangedCost.PER_BYTE}"
    chosen = next((name for name, _ in costs if name == wanted), bottleneck)
    stage, _, cost = chosen.partition(".")
    shown = {name: size for name, size in zip(("to set", "yours"), sizes, strict=True) if size}
    lines: dict[str, list[float | None]] = {"best size at each cost": []}
    best, limits = [], limits_of(answer.constraints)
    for factor in _FACTORS:
        changed = with_cost(pipeline, int(stage), ChangedCost(cost), factor)
        problem = problem_of(changed, answer.message_bytes, limits, fragment_cap=fragment_cap)
        try:
            curve = size_curve(problem, also=tuple(shown.values()))
        except (StrategyDeclined, Infeasible):
            return Chart(nothing, (), (), (), NOT_REPEATED), costs, chosen
        best.append(curve.recommended)
        lines["best size at each cost"].append(drawable(curve.best.latency_us))
        for (name, size), point in zip(shown.items(), curve.asked, strict=True):
            key = f"{format_size(size)}, {name}"
            lines.setdefault(key, []).append(drawable(point.latency_us) if point else None)
    data = SweepData(unit=unit.name, us=unit.us, factors=list(_FACTORS), lines=list(lines.items()))
    headings = ("Times the cost", "Size to set", *(f"{name}, {unit.name}" for name in lines))
    rows = tuple(
        (
            f"{factor:.3g}",
            format_size(best[at].size_bytes),
            *("–" if line[at] is None else unit.text(line[at] or 0.0) for line in lines.values()),
        )
        for at, factor in enumerate(_FACTORS)
    )
    return Chart(data, headings, rows, ("The table has the size to set.",)), costs, chosen


_COST_WORDS = {
    ChangedCost.OVERHEAD: "overhead",
    ChangedCost.PER_BYTE: "cost a byte",
    ChangedCost.BOTH: "both costs",
}
