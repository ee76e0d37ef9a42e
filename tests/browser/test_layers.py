"""Messaging layers by hand: asked, computed, tuned, optimised."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

ASKED = "/ui/layers?bytes=64%2C+4+KiB&clock=33+MHz&packet_words=4..128"


@pytest.mark.parametrize("width", [390, 1280])
def test_a_layer_is_tuned_and_its_stages_optimised(
    new_page: Callable[..., Page], axe: Callable[[Page], list[str]], width: int
) -> None:
    """From the empty form to an answer; nothing is wider than the window, the picture is drawn."""
    page = new_page(width=width)
    page.goto("/ui/layers")
    assert axe(page) == []
    page.get_by_label("Sizes, as 64").fill("64, 4 KiB")
    page.get_by_label("Clock of the processors").fill("33 MHz")
    page.get_by_label("Choose fragments anew").check()
    page.get_by_role("button", name="Compute").click()
    expect(page.locator(".audited h2")).to_have_text("cmam-finite")
    expect(page.locator("#announcement")).to_have_text("The costs are there.")
    expect(page.get_by_role("columnheader", name="Fragments anew").first).to_be_visible()
    drawn = "one => one.complete && one.naturalWidth > 0"
    expect(page.locator(".picture img")).to_be_visible()
    assert page.locator(".picture img").evaluate(drawn)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe(page) == []
    assert "tune=1" in page.url
    page.get_by_role("button", name=re.compile("Optimise 64 B")).click()
    expect(page).to_have_url(re.compile("/ui/answers/"))
    expect(page.locator("#message")).to_have_value("64 B")


def test_a_layer_without_scripts(new_page: Callable[..., Page]) -> None:
    """Work comes with the page; a mistake stands at its field."""
    page = new_page(java_script_enabled=False)
    page.goto(ASKED)
    expect(page.get_by_role("group", name="Services of 64 B")).to_contain_text("buffering")
    page.get_by_label("Sizes, as 64").fill("0")
    page.get_by_role("button", name="Compute").click()
    expect(page.locator("#bytes-mistake")).to_contain_text("64..4MiB")
