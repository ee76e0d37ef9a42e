"""Parts of a report as HTML. Nothing inline that a page's policy refuses: bars are rectangles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, takewhile

from markupsafe import Markup

from app.text.notices import capitalised, sentence
from app.ui.parts import Bars, Beyond, Cell, Chart, Facts, Grid, Link, Marked, Notice, Part

_NOTICES = Markup('<div class="notice" role="note" aria-label="To beware of">{}</div>')
_BARS = Markup('<svg class="bars" viewBox="0 0 1000 {}" role="img" aria-label="{}">{}</svg>')
_BAR = Markup('<text x="0" y="{}">{}</text><rect x="{:.2f}" y="{}" width="{:.2f}" height="14"/>')
_TABLE = Markup(
    '<div class="scroll" tabindex="0" role="group" aria-label="{caption}"><table class="listing">'
    '<caption class="unseen">{caption}</caption><thead><tr>{head}</tr></thead>'
    "<tbody>{body}</tbody></table></div>"
)
_MARKED = Markup('{} <span class="badge {}">{}</span>')
_LINK = Markup('<a href="{}">{}<span class="unseen">{}</span></a>')


def as_html(parts: Iterable[Part]) -> Markup:
    """Return the parts, one after the other; notices that follow each other in one box."""
    return Markup("\n").join(_each(parts))


def _each(parts: Iterable[Part]) -> Iterator[Markup]:
    for kind, several in groupby(parts, type):
        drawn = Markup("").join(filter(None, map(_markup, several)))
        yield _NOTICES.format(drawn) if kind is Notice else drawn


def _markup(part: Part) -> Markup:
    match part:
        case Facts(pairs):
            rows = (
                Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(capitalised(label), value)
                for label, value in pairs
            )
            return Markup('<dl class="figures">{}</dl>').format(Markup("").join(rows))
        case Grid():
            return _table(part)
        case Bars(rows, end):
            return _bars(part) if end > 0.0 else Markup("")
        case Chart():
            return Markup("")  # pages draw it
        case Notice(_, detail, _):
            return Markup("<p>{}</p>").format(sentence(detail))
        case str(text):
            return Markup("<p>{}</p>").format(text) if text else Markup("")


def _table(grid: Grid) -> Markup:
    head = (
        Markup('<th scope="col"{}>{}</th>').format(
            _number(column.is_number), capitalised(column.heading)
        )
        for column in grid.columns
    )
    return _TABLE.format(
        caption=grid.caption,
        head=Markup("").join(head),
        body=Markup("").join(_row(grid, place) for place in range(len(grid.rows))),
    )


def _row(grid: Grid, place: int) -> Markup:
    cells = [
        Markup("<{tag}{number}{span}>{cell}</{end}>").format(
            tag=Markup(_tag(at, span)),
            number=_number(column.is_number, is_beyond=isinstance(grid.rows[place][at], Beyond))
            or _wide(column.is_list),
            span=Markup(f' rowspan="{span}"' if span > 1 else ""),
            cell=_cell(grid.rows[place][at]),
            end="td" if at else "th",
        )
        for at, column in enumerate(grid.columns)
        if (span := _span(grid, place, at))
    ]
    return Markup("<tr>{}</tr>").format(Markup("").join(cells))


def _span(grid: Grid, place: int, at: int) -> int:
    """Return how many rows a cell takes, 0 of one that belongs to the cell above it."""
    if not grid.columns[at].is_joined:
        return 1
    if place and grid.rows[place][at] == "":
        return 0
    below = takewhile(lambda row: row[at] == "", grid.rows[place + 1 :])
    return 1 + sum(1 for _ in below)


def _tag(at: int, span: int) -> str:
    return "td" if at else f'th scope="{"row" if span == 1 else "rowgroup"}"'


def _cell(cell: Cell) -> Markup:
    if isinstance(cell, Link):
        return _LINK.format(cell.address, cell.text, cell.said)
    if isinstance(cell, Marked):
        return _MARKED.format(cell.text, "bad" if cell.is_bad else "warn", cell.mark)
    if isinstance(cell, Beyond):
        return Markup('{}<span class="unseen">{}</span>').format(cell.text, cell.said)
    return Markup("{}").format(cell)


def _number(is_number: bool, *, is_beyond: bool = False) -> Markup:
    names = [name for name, is_so in (("number", is_number), ("more", is_beyond)) if is_so]
    return Markup(' class="{}"').format(" ".join(names)) if names else Markup("")


def _wide(is_list: bool) -> Markup:
    return Markup(' class="wide"' if is_list else "")


def _bars(bars: Bars) -> Markup:
    drawn = [
        _BAR.format(24 * at + 16, name, 160 + 840 * start / bars.end, 24 * at + 4,
                    840 * (end - start) / bars.end)
        for at, (name, blocks) in enumerate(bars.rows)
        for start, end in blocks
    ]  # fmt: skip
    names = ", ".join(name for name, _ in bars.rows)
    return _BARS.format(24 * len(bars.rows), names, Markup("").join(drawn))
