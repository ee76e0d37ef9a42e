"""What surrounds an answer, for its report: other counts, other messages, other strategies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis import explore
from app.plots.curves_svg import Across, Curve, CurvesPlot, Upwards, curves_element
from app.web.views.answer_around import (
    counts_chart,
    rivals_of,
    rivals_remarks,
    sizes_chart,
    surroundings_of,
)
from app.web.views.answer_view import AnswerView, Rival

Document = Mapping[str, Any]

LEAST_SHOWN = 1e-4  # of what lies above the best known
_COUNTS_S, _SIZES_S, _RIVALS_S = 0.4, 0.9, 0.6  # less than on the page, where each comes by itself


@dataclass(frozen=True, slots=True)
class Around:
    """Two pictures as markup, the table of strategies, and what has to be said of them."""

    counts_svg: str
    sizes_svg: str
    rivals: tuple[Rival, ...]
    rival_remarks: tuple[str, ...]
    remarks: tuple[str, ...]

    @classmethod
    def of(cls, document: Document, fragment_cap: int) -> Around:
        """Of an OptimizeOut; each part has a time of its own."""
        asked = surroundings_of(document, fragment_cap=fragment_cap)
        points = explore.counts(asked, time_limit_s=min(_COUNTS_S, explore.COUNTS_LIMIT_S))
        counts = counts_chart(document, points)
        sizes = sizes_chart(
            document, explore.sizes(asked, time_limit_s=min(_SIZES_S, explore.SIZES_LIMIT_S))
        )
        rivals = explore.rivals(asked, time_limit_s=min(_RIVALS_S, explore.RIVALS_LIMIT_S))
        return cls(
            curves_element(counts_plot(counts.data)),
            curves_element(sizes_plot(sizes.data)),
            rivals_of(document, rivals) if rivals else AnswerView.of(document).rivals,
            rivals_remarks(document, rivals),
            (*counts.remarks, *sizes.remarks),
        )


def counts_plot(data: Document) -> CurvesPlot:
    """Latency against the number of fragments, with the proven bound, as `counts_chart` has it."""
    curves = [
        Curve(name, _pairs(data["fragments"], data[key]))
        for name, key in (
            ("equal fragments", "equal_us"),
            ("best sizes", "best_us"),
            ("proven bound", "bound_us"),
        )
    ]
    marks = (("this answer", data["answer"]), ("best fixed size", data["fixed"]))
    curves += [
        Curve(name, _pairs([point[0]], [point[1]]), is_mark=True) for name, point in marks if point
    ]
    title = "Latency by number of fragments, with the proven bound"
    return CurvesPlot(title, Across.FRAGMENTS, Upwards.LATENCY, tuple(curves))


def sizes_plot(data: Document) -> CurvesPlot:
    """How far each strategy is above the best known, by message size, as `sizes_chart` has it."""
    curves = tuple(
        Curve(line["name"], _excesses(data["messages"], line["latency_us"], data["best_us"]))
        for line in data["lines"]
    )
    title = "Latency above the best known, by size of the message, for every strategy"
    return CurvesPlot(title, Across.MESSAGE, Upwards.EXCESS, curves, floor=LEAST_SHOWN)


def _pairs(across: list[float], upwards: list[float | None]) -> tuple[tuple[float, float], ...]:
    pairs = zip(across, upwards, strict=True)
    return tuple((float(x), y) for x, y in pairs if y is not None)


def _excesses(
    messages: list[float], latencies: list[float | None], best: list[float | None]
) -> tuple[tuple[float, float], ...]:
    rows = zip(messages, latencies, best, strict=True)
    return tuple((float(x), us / least - 1.0) for x, us, least in rows if us and least)
