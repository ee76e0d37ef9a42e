"""The tables and figures of papers as lines, as files, and as one page that stands alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.console.files import csv_of
from app.plots.curves_svg import Curve, CurvesPlot, HorizontalAxis, VerticalAxis, curves_element
from app.plots.models_svg import overlap_svg
from app.plots.svg import safe, tag
from app.plots.timeline_plan import DrawnSchedule
from app.plots.timeline_svg import timeline_element
from papers.items import Figure, Item, Paper, Plot, Scale

_MANY = 40  # numbers of an item that are not listed where they agree


def files(computed: Sequence[tuple[Paper, list[Item]]], body: bytes) -> list[tuple[str, bytes]]:
    """Return each file of a report, by name: tables, curves, drawings, the page, the numbers."""
    found = []
    for paper, items in computed:
        for item in items:
            stem = f"{paper.name}-{item.name}"
            found.append((f"{stem}.csv", csv_of(HEADINGS, map(figure_cells, item.figures))))
            found += [(f"{stem}-{plot.name}.csv", _points(plot)) for plot in item.plots]
            for name, drawing in item_svgs(item).items():
                found.append((f"{'-'.join(filter(None, (stem, name)))}.svg", drawing.encode()))
    found.append(("index.html", paper_page(computed).encode()))
    found.append(("results.json", body))
    return found


def _points(plot: Plot) -> bytes:
    headings = ("curve", plot.across.words, plot.upwards.words)
    rows = (
        (curve.name, f"{across:.9g}", f"{upwards:.9g}")
        for curve in rounded_curves(plot)
        for across, upwards in curve.points
    )
    return csv_of(headings, rows)


def lines(computed: Sequence[tuple[Paper, list[Item]]]) -> list[str]:
    """Return a line for each number, or of many for each that does not agree."""
    found = []
    for paper, items in computed:
        for item in items:
            found.append(f"{paper.name} {item.name}: {item.title}")
            shown = item.figures
            if len(shown) > _MANY:
                shown = tuple(one for one in shown if one.ok is False)
                agree = len(item.figures) - len(shown)
                found.append(f"  {agree} of {len(item.figures)} numbers agree")
            for figure in shown:
                name, unit, published, value, _, _, verdict = figure_cells(figure)
                beside = f", published {published}" if published else ""
                found.append(f"  {name}: {f'{value} {unit}'.strip()}{beside}: {verdict}")
            if item.name.endswith("-measured"):
                found += [f"  {remark}" for remark in item.remarks]
    return found


# --- one page that stands alone, and its curves as drawings -----------------------------------


_STYLE = """body{font:15px/1.45 system-ui,sans-serif;color:#1c2128;background:#fff;max-width:52rem;
margin:2rem auto;padding:0 1rem}table{border-collapse:collapse}th,td{padding:.2rem .7rem;
text-align:right;border-bottom:1px solid #e3e7ec}th:first-child,td:first-child{text-align:left}
td:last-child{white-space:nowrap}.outside{color:#a11}"""
OWN = "model's own"
MEASURED = "measured here"
_BESIDE = "not compared"
_RUNS = "runs"
_OVERLAP = "overlap"
_PLACES = 9  # of a difference: what is smaller is the rounding of floats


def figure_cells(figure: Figure) -> tuple[str, ...]:
    """Return name, unit, published, computed, difference, tolerance and verdict of one number."""
    if figure.published is None or figure.difference is None:
        verdict = MEASURED if figure.is_measured else OWN
        return (figure.name, figure.unit, "", f"{figure.computed:.6g}", "", "", verdict)
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


def _whose(item: Item) -> str:
    return MEASURED if any(one.is_measured for one in item.figures) else OWN


def item_svgs(item: Item) -> dict[str, str]:
    """Return the item's drawings, each an <svg>, by name: "" for its curves by fragments."""
    curves = tuple(Curve(curve.name, curve.points) for curve in item.curves)
    title = f"{item.title}: {_whose(item)}"
    own = CurvesPlot(title, HorizontalAxis.FRAGMENTS, VerticalAxis.LATENCY, curves)
    drawings = {"": curves_element(own)}
    drawings |= {plot.name: _plot_svg(item, plot) for plot in item.plots}
    if item.runs:
        drawings[_RUNS] = timeline_element(
            [DrawnSchedule(run.name, run.timeline) for run in item.runs]
        )
    if item.activities:
        drawings[_OVERLAP] = overlap_svg(item.activities)
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
            f"{item.title}. {plot.title}: {_whose(item)}",
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
        captions = {
            plot.name: f"{plot.title}: {_whose(item)}, not the paper's data." for plot in item.plots
        }
        captions[_OVERLAP] = "Who did what in the shortest iteration of each: measured here."
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
