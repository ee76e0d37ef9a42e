"""sluice model reproduce: the tables and figures of papers, published beside computed, as files."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from app.console.files import write_set
from app.console.running import ticking_line
from app.plots.curves_svg import Curve, CurvesPlot, HorizontalAxis, VerticalAxis, curves_element
from app.plots.models_svg import overlap_svg
from app.plots.svg import safe, tag
from app.plots.timeline_plan import DrawnSchedule
from app.plots.timeline_svg import timeline_element
from app.text.units import quoted
from app.ui.terminal import Output
from domain.errors import InconsistentInput, InvalidInput
from papers.items import Figure, Item, ItemSpec, Paper, Plot, Scale
from papers.registry import PAPERS

OUTSIDE = 1
_ALL = "all"
_MANY = 40  # numbers of an item that are not listed where they agree
_FIELD, _NOUN = "output", "the report"


@dataclass(frozen=True, slots=True)
class ReproducedOut:
    """One number in JSON; `ok` is null where the paper prints none and it is the model's own."""

    paper: str
    item: str
    figure: str
    unit: str
    published: float | None
    published_max: float | None
    computed: float
    difference: float | None
    tolerance: float | None
    ok: bool | None

    @classmethod
    def of(cls, paper: str, item: Item) -> Iterator[ReproducedOut]:
        """Yield the numbers of one item, in its order."""
        for figure in item.figures:
            yield cls(
                paper,
                item.name,
                figure.name,
                figure.unit,
                figure.published,
                figure.published_max,
                figure.computed,
                figure.difference,
                None if figure.published is None else figure.tolerance,
                figure.ok,
            )


def reproduce(arguments: argparse.Namespace, output: Output) -> int:
    """Compute everything, then write it; exit with 1 where a number is outside its tolerance."""
    chosen = _chosen(arguments.paper, arguments.only, _measured(arguments))
    folder = _folder(arguments.output)
    doing = "measuring" if arguments.measure else "computing"
    with ticking_line(output.err, f"{doing} {arguments.paper}"):
        computed = [(paper, [spec.compute() for spec in specs]) for paper, specs in chosen]
    results = [
        row
        for paper, items in computed
        for item in items
        for row in ReproducedOut.of(paper.name, item)
    ]
    body = orjson.dumps(results, option=orjson.OPT_INDENT_2) + b"\n"
    if folder is not None:
        write_set(folder, _files(computed, body), field=_FIELD, noun=_NOUN)
    if output.wants_json:
        output.document(body)
    else:
        output.parts(_lines(computed))
    return 0 if all(item.ok for _, items in computed for item in items) else OUTSIDE


def _measured(arguments: argparse.Namespace) -> tuple[ItemSpec, ...]:
    """What is measured here in place of computed; nothing where that is not asked for."""
    if not arguments.measure:
        if arguments.between is not None:
            raise InconsistentInput("only what is measured has a place", field="between")
        return ()
    if arguments.paper != "strumpen94":
        raise InconsistentInput("only strumpen94 is measured here", field="measure")
    from papers.measured import measured_items

    return measured_items(arguments.between)


def _chosen(
    name: str, only: str | None, measured: tuple[ItemSpec, ...]
) -> list[tuple[Paper, list[ItemSpec]]]:
    if name != _ALL and name not in PAPERS:
        known = ", ".join((*PAPERS, _ALL))
        raise InvalidInput(f"no paper is named {quoted(name)}; there are {known}", field="paper")
    papers = list(PAPERS.values()) if name == _ALL else [PAPERS[name]]
    if measured:
        papers = [replace(papers[0], items=measured)]
    chosen = [
        (paper, [spec for spec in paper.items if only in (None, spec.name)]) for paper in papers
    ]
    if not any(specs for _, specs in chosen):
        known = ", ".join(spec.name for paper in papers for spec in paper.items)
        raise InvalidInput(
            f"no item is named {quoted(only or '')}; there are {known}", field="only"
        )
    return [(paper, specs) for paper, specs in chosen if specs]


def _folder(name: str | None) -> Path | None:
    if name is None:
        return None
    folder = Path(name)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as refusal:
        reason = refusal.strerror or "it cannot be made"
        raise InvalidInput(f"the report's folder: {reason}", field=_FIELD) from None
    return folder


def _files(computed: Sequence[tuple[Paper, list[Item]]], body: bytes) -> list[tuple[str, bytes]]:
    files = []
    for paper, items in computed:
        for item in items:
            stem = f"{paper.name}-{item.name}"
            files.append((f"{stem}.csv", _csv(HEADINGS, map(figure_cells, item.figures))))
            files += [(f"{stem}-{plot.name}.csv", _points(plot)) for plot in item.plots]
            for name, drawing in item_svgs(item).items():
                files.append((f"{'-'.join(filter(None, (stem, name)))}.svg", drawing.encode()))
    files.append(("index.html", paper_page(computed).encode()))
    files.append(("results.json", body))
    return files


def _csv(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows(rows)
    return text.getvalue().encode()


def _points(plot: Plot) -> bytes:
    headings = ("curve", plot.across.words, plot.upwards.words)
    rows = (
        (curve.name, f"{across:.9g}", f"{upwards:.9g}")
        for curve in rounded_curves(plot)
        for across, upwards in curve.points
    )
    return _csv(headings, rows)


def _lines(computed: Sequence[tuple[Paper, list[Item]]]) -> list[str]:
    lines = []
    for paper, items in computed:
        for item in items:
            lines.append(f"{paper.name} {item.name}: {item.title}")
            shown = item.figures
            if len(shown) > _MANY:
                shown = tuple(one for one in shown if one.ok is False)
                agree = len(item.figures) - len(shown)
                lines.append(f"  {agree} of {len(item.figures)} numbers agree")
            for figure in shown:
                name, unit, published, value, _, _, verdict = figure_cells(figure)
                beside = f", published {published}" if published else ""
                lines.append(f"  {name}: {f'{value} {unit}'.strip()}{beside}: {verdict}")
            if item.name.endswith("-measured"):
                lines += [f"  {remark}" for remark in item.remarks]
    return lines


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
