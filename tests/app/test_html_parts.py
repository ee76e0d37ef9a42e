"""app/ui/html.py: tables whose cells belong together, and cells with a word that warns."""

from __future__ import annotations

import io

from app.ui.html import as_html
from app.ui.parts import Column, Grid, Marked
from app.ui.terminal import Screen

TABLE = Grid(
    (
        Column("stage", is_number=False, is_joined=True),
        Column("cost"),
        Column("outliers", is_joined=True),
    ),
    (
        ("copy", "1", "3"),
        ("", Marked("2 <", "weak"), ""),
        ("", Marked("4", "not determined", is_bad=True), ""),
        ("wire", "5", "0"),
    ),
    "Costs",
)


def test_an_empty_cell_belongs_to_the_one_above() -> None:
    """Which is then the heading of its rows; a table of others has one cell a row."""
    html = str(as_html([TABLE]))
    assert '<th scope="rowgroup" rowspan="3">copy</th>' in html
    assert '<td class="number" rowspan="3">3</td>' in html
    assert '<th scope="row">wire</th><td class="number">5</td><td class="number">0</td>' in html
    assert html.count("<td") == 4 + 2
    plain = str(as_html([Grid((Column("a"), Column("b")), (("1", ""), ("", "2")))]))
    assert plain.count("<td") == plain.count('<th scope="row"') == 2


def test_a_mark_is_shown_behind_its_cell() -> None:
    """As what it says, and in a terminal as text."""
    html = str(as_html([TABLE]))
    assert '2 &lt; <span class="badge warn">weak</span>' in html
    assert '4 <span class="badge bad">not determined</span>' in html
    shown = io.StringIO()
    Screen(shown).show([TABLE])
    assert "4 not determined" in shown.getvalue()
