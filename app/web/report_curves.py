"""What surrounds an answer, for its report: other counts, other messages, other strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis import explore
from app.plots.curves_svg import Across, Curve, CurvesPlot, Upwards, curves_element
from app.schemas.optimize import OptimizeOut
from app.web.views.answer_around import (
    CountsData,
    SizesData,
    counts_chart,
    rivals_of,
    rivals_remarks,
    sizes_chart,
    surroundings_of,
)
from app.web.views.answer_view import AnswerView, Rival

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
    def of(cls, answer: OptimizeOut, fragment_cap: int) -> Around:
        """Of an answer; each part has a time of its own."""
        asked = surroundings_of(answer, fragment_cap=fragment_cap)
        points = explore.counts(asked, time_limit_s=min(_COUNTS_S, explore.COUNTS_LIMIT_S))
        counts = counts_chart(answer, points)
        sizes = sizes_chart(
            answer, explore.sizes(asked, time_limit_s=min(_SIZES_S, explore.SIZES_LIMIT_S))
        )
        rivals = explore.rivals(asked, time_limit_s=min(_RIVALS_S, explore.RIVALS_LIMIT_S))
        return cls(
            curves_element(counts_plot(counts.data)),
            curves_element(sizes_plot(sizes.data)),
            rivals_of(answer, rivals) if rivals else AnswerView.of(answer).rivals,
            rivals_remarks(answer, rivals),
            (*counts.remarks, *sizes.remarks),
        )


def counts_plot(data: CountsData) -> CurvesPlot:
    """Latency against the number of fragments, with the proven bound."""
    curves = [
        Curve(name, _pairs(data.fragments, upwards))
        for name, upwards in (
            ("equal fragments", data.equal_us),
            ("best sizes", data.best_us),
            ("proven bound", data.bound_us),
        )
    ]
    marks = (("this answer", data.answer), ("best fixed size", data.fixed))
    curves += [
        Curve(name, _pairs([point[0]], [point[1]]), is_mark=True) for name, point in marks if point
    ]
    title = "Latency by number of fragments, with the proven bound"
    return CurvesPlot(title, Across.FRAGMENTS, Upwards.LATENCY, tuple(curves))


def sizes_plot(data: SizesData) -> CurvesPlot:
    """How far each strategy is above the best known, by message size."""
    curves = tuple(
        Curve(line.name, _excesses(data.messages, line.latency_us, data.best_us))
        for line in data.lines
    )
    title = "Latency above the best known, by size of the message, for every strategy"
    return CurvesPlot(title, Across.MESSAGE, Upwards.EXCESS, curves, floor=LEAST_SHOWN)


def _pairs(
    across: Sequence[float], upwards: Sequence[float | None]
) -> tuple[tuple[float, float], ...]:
    pairs = zip(across, upwards, strict=True)
    return tuple((float(x), y) for x, y in pairs if y is not None)


def _excesses(
    messages: Sequence[float], latencies: Sequence[float | None], best: Sequence[float | None]
) -> tuple[tuple[float, float], ...]:
    rows = zip(messages, latencies, best, strict=True)
    return tuple((float(x), us / least - 1.0) for x, us, least in rows if us and least)
