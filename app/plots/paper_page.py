"""What is computed of papers as one HTML page that stands alone, and its curves as drawings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.plots.curves_svg import Curve, CurvesPlot, HorizontalAxis, VerticalAxis, curves_element
from app.plots.svg import safe, tag
from app.plots.timeline_plan import DrawnSchedule
from app.plots.timeline_svg import timeline_element
from papers.items import Figure, Item, Paper, Plot, Scale

_STYLE = """body{font:15px/1.45 system-ui,sans-serif;color:#1c2128;background:#fff;max-width:52rem;
margin:2rem auto;padding:0 1rem}table{border-collapse:collapse}th,td{padding:.2rem .7rem;
text-align:right;border-bottom:1px solid #e3e7ec}th:first-child,td:first-child{text-align:left}
td:last-child{white-space:nowrap}.outside{color:#a11}"""
OWN = "model's own"
_BESIDE = "not compared"
_RUNS = "runs"
_PLACES = 9  # of a difference: what is smaller is the rounding of floats


def figure_cells(figure: Figure) -> tuple[str, ...]:
    """Return name, unit, published, computed, difference, tolerance and verdict of one number."""
    if figure.published is None or figure.difference is None:
        return (figure.name, figure.unit, "", f"{figure.computed:.6g}", "", "", OWN)
    verdict = {None: _BESIDE, True: "agrees", False: "outside"}[figure.ok]
    published = f"{figure.published:g}"
    if figure.published_max is not None:
        published += f" to {figure.published_max:g}"
    return (
        figure.name,
        figure.unit,
        published,
        f"{figure.computed:.6g}",
        f"{round(figure.difference, _PLACES) + 0.0:+.3g}",  # no "-0"
        "" if figure.tolerance is None else f"{figure.tolerance:g}",
        verdict,
    )


HEADINGS = ("figure", "unit", "published", "computed", "difference", "tolerance", "verdict")


def item_svgs(item: Item) -> dict[str, str]:
    """Return the item's drawings, each an <svg>, by name: "" for its curves by fragments."""
    curves = tuple(Curve(curve.name, curve.points) for curve in item.curves)
    title = f"{item.title}: {OWN}"
    own = CurvesPlot(title, HorizontalAxis.FRAGMENTS, VerticalAxis.LATENCY, curves)
    drawings = {"": curves_element(own)}
    drawings |= {plot.name: _plot_svg(item, plot) for plot in item.plots}
    if item.runs:
        drawings[_RUNS] = timeline_element(
            [DrawnSchedule(run.name, run.timeline) for run in item.runs]
        )
    return {name: drawing for name, drawing in drawings.items() if drawing}


_ACROSS = {
    Scale.BYTES: HorizontalAxis.MESSAGE,
    Scale.COUNT: HorizontalAxis.PROCESSES,
    Scale.NUMBER: HorizontalAxis.RATIO,
}
_UPWARDS = {Scale.TIME_US: VerticalAxis.LATENCY, Scale.NUMBER: VerticalAxis.SPEEDUP}


def rounded_curves(plot: Plot) -> tuple[Curve, ...]:
    """Return its curves without the last digits, in which machines differ."""
    return tuple(
        Curve(
            curve.name,
            tuple((_rounded(across), _rounded(upwards)) for across, upwards in curve.points),
            curve.is_mark,
        )
        for curve in plot.curves
    )


def _rounded(value: float) -> float:
    return float(f"{value:.9g}")


def _plot_svg(item: Item, plot: Plot) -> str:
    return curves_element(
        CurvesPlot(
            f"{item.title}. {plot.title}: {OWN}",
            _ACROSS[plot.across.scale],
            _UPWARDS[plot.upwards.scale],
            rounded_curves(plot),
            x_words=plot.across.words,
            y_words=plot.upwards.words,
        )
    )


def paper_page(papers: Sequence[tuple[Paper, Sequence[Item]]]) -> str:
    """Return the page of all of them: tables, drawings, and where the papers err."""
    parts = [part for paper, items in papers for part in _paper(paper, items)]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f"<title>Papers, reproduced</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _paper(paper: Paper, items: Iterable[Item]) -> list[str]:
    parts = [tag("h1", safe(paper.citation))]
    for item in items:
        parts += [tag("h2", safe(item.title)), tag("p", safe(item.source)), _table(item)]
        if item.curves:
            parts += [tag("p", f"The curve is the {OWN}: the paper prints no numbers of it.")]
        captions = {plot.name: f"{plot.title}: {OWN}, not the paper's data." for plot in item.plots}
        captions[_RUNS] = f"When each stage has which bytes: {OWN}, not the paper's data."
        for name, drawing in item_svgs(item).items():
            parts += [tag("p", safe(captions.get(name, ""))), drawing]
        parts += [tag("p", safe(remark)) for remark in item.remarks]
    if paper.disagreements:
        rows = (f"{said.where}: {said.statement}" for said in paper.disagreements)
        parts += [tag("h2", "Where the paper contradicts itself")]
        parts += [tag("ul", *(tag("li", safe(row)) for row in rows))]
    return [part for part in parts if part]


def _table(item: Item) -> str:
    rows = [tag("tr", *(tag("th", heading) for heading in HEADINGS))]
    for figure in item.figures:
        named = {"class_": "outside"} if figure.ok is False else {}
        cells = (tag("td", safe(cell)) for cell in figure_cells(figure))
        rows.append(tag("tr", *cells, **named))
    return tag("table", *rows)
