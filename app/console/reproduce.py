"""sluice reproduce: the tables and figures of papers, published beside computed, as files."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from app.console.files import write_set
from app.console.screen import Output
from app.plots.paper_page import HEADINGS, figure_cells, item_svgs, paper_page, rounded_curves
from app.text.units import quoted
from domain.errors import InvalidInput
from papers.items import Item, ItemSpec, Paper, Plot
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
    chosen = _chosen(arguments.paper, arguments.only)
    folder = _folder(arguments.output)
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


def _chosen(name: str, only: str | None) -> list[tuple[Paper, list[ItemSpec]]]:
    if name != _ALL and name not in PAPERS:
        known = ", ".join((*PAPERS, _ALL))
        raise InvalidInput(f"no paper is named {quoted(name)}; there are {known}", field="paper")
    papers = list(PAPERS.values()) if name == _ALL else [PAPERS[name]]
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
    return lines
