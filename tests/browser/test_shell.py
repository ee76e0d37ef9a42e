"""The frame of every view."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_workbench_is_accessible(
    new_page: Callable[..., Page], axe: Callable[[Page], list[str]], scheme: str
) -> None:
    """Nothing serious on the first view, in either colour scheme."""
    page = new_page(color_scheme=scheme)
    page.goto("/")
    assert page.title().startswith("Sluice")
    assert axe(page) == []


def test_the_first_tab_skips_to_the_content(browser_page: Page) -> None:
    """Keyboard users need not pass the navigation on every page."""
    browser_page.goto("/")
    browser_page.keyboard.press("Tab")
    assert browser_page.evaluate("document.activeElement.className") == "skip"
    browser_page.keyboard.press("Enter")
    assert browser_page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize("width", [360, 768, 1280, 1920])
def test_nothing_is_wider_than_the_window(new_page: Callable[..., Page], width: int) -> None:
    """No view scrolls sideways as a whole."""
    page = new_page(width=width)
    page.goto("/")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
