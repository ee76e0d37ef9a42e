"""The HTTP interface, to read and to try."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect


def test_an_operation_can_be_tried_under_the_strict_policy(browser_page: Page) -> None:
    """Nothing of Swagger UI needs more than the policy admits; the address names what is open."""
    browser_page.goto("/docs")
    operation = browser_page.locator("[id^=operations-][id$=-limits]")
    operation.get_by_role("button").first.click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table")).to_contain_text("max_fragments")
    assert browser_page.url.endswith("/limits")
    browser_page.reload()
    expect(operation.get_by_role("button", name="Try it out")).to_be_visible()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_every_operation_is_there_for_everybody(
    new_page: Callable[..., Page],
    axe_of_any_impact: Callable[[Page], list[str]],
    scheme: str,
    width: int,
) -> None:
    """As many as the document has, in a frame that fits the window, in either colour scheme."""
    page = new_page(color_scheme=scheme, width=width)
    page.goto("/docs")
    expect(page.locator(".opblock").first).to_be_visible()
    paths = page.request.get("/openapi.json").json()["paths"].values()
    assert page.locator(".opblock").count() == sum(map(len, paths))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    is_dark = page.evaluate("document.documentElement.classList.contains('dark-mode')")
    assert is_dark is (scheme == "dark")
    assert axe_of_any_impact(page) == []
