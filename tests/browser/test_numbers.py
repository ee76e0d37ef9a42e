"""What the scripts write is what the server writes: the same numbers, the same texts."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page

from app.text.numbers import format_figure, format_gap, format_percent
from app.text.units import format_given_time, format_time
from tests.app.text.test_numbers import FORMATTERS, TEXTS, proven

NUMBERS = [
    *(0.5 * 1.0000000001**power * 10**scale for power in (-3, 1, 7) for scale in range(-2, 8)),
    *(184.354999, 184.355001, 999.9999, 999.99001, 0.99999999, 1e6 - 1e-4, 184.36, 1.0, 0.0),
    *(0.00246, 0.0123, 0.5, 1.23, 0.07, 0.29, 1e-12, 3e22, 1000.5, 12345678901.0),
]
_CALL = """([name, rows]) => rows.map((row) => {
  const told = SluiceText[name](...row);
  return name === "proven" ? [told.latency, told.bound, told.gap] : [told];
})"""


def reported(page: Page, name: str, rows: list[list[float]]) -> list[list[str]]:
    """What the script's formatter of this name says of each row of numbers."""
    found: list[list[str]] = page.evaluate(_CALL, [name, rows])
    return found


@pytest.fixture
def scripted(browser_page: Page) -> Page:
    """A page with the scripts."""
    browser_page.goto("/?empty=yes")
    return browser_page


def test_the_examples(scripted: Page) -> None:
    """Those that the server's formatters are held to."""
    for name, (count, _) in FORMATTERS.items():
        rows: list[Any] = TEXTS[name]
        expected = [row[count:] for row in rows]
        assert reported(scripted, name, [row[:count] for row in rows]) == expected, name


def test_other_numbers(scripted: Page) -> None:
    """Around where digits, units and rounding change."""
    for name, formatter in {
        "time": format_time,
        "givenTime": format_given_time,
        "percent": format_percent,
        "gap": format_gap,
        "figure": format_figure,
    }.items():
        assert reported(scripted, name, [[one] for one in NUMBERS]) == [
            [formatter(one)] for one in NUMBERS
        ], name


def test_latencies_with_their_bounds(scripted: Page) -> None:
    """What is written into a running job is what the server writes at its end."""
    pairs = [[us * (1.0 + gap), us] for us in NUMBERS for gap in NUMBERS if 0.0 < us < 1e15 > gap]
    pairs += [[us, us] for us in NUMBERS]
    assert reported(scripted, "proven", pairs) == [list(proven(*pair)) for pair in pairs]
