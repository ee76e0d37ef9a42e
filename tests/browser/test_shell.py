"""The frame of every view."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.app.serving import Live


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_workbench_is_accessible(
    new_page: Callable[..., Page], axe: Callable[[Page], list[str]], scheme: str
) -> None:
    """Nothing serious on the first view, in either colour scheme."""
    page = new_page(color_scheme=scheme)
    page.goto("/")
    assert page.title() == "16 MiB through 3 stages · Sluice"
    assert axe(page) == []


def test_the_first_tab_skips_to_the_content(browser_page: Page) -> None:
    """Keyboard users need not pass the navigation on every page."""
    browser_page.goto("/")
    browser_page.keyboard.press("Tab")
    assert browser_page.evaluate("document.activeElement.className") == "skip"
    browser_page.keyboard.press("Enter")
    assert browser_page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize("width", [320, 768, 1280, 1920])
def test_nothing_is_wider_than_the_window(new_page: Callable[..., Page], width: int) -> None:
    """No view scrolls sideways as a whole; 320 pixels are 1280 at a zoom of 400 %."""
    page = new_page(width=width)
    page.goto("/")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


VIEWS = (
    "/",
    "/ui/answers",
    "/ui/compose",
    "/ui/profiles",
    "/ui/audit",
    "/ui/delivery",
    "/ui/hiding",
    "/ui/layers",
    "/docs",
    "/ui/no-such-view",
)


@pytest.mark.parametrize("width", [320, 1920])
def test_every_section_is_reached_from_the_bar(new_page: Callable[..., Page], width: int) -> None:
    """By its link, which then says that it is where one is; nothing is wider than the window."""
    page = new_page(width=width)
    page.goto("/ui/no-such-view")
    assert page.locator("nav [aria-current]").count() == 0
    for name in page.locator(".bar nav a").all_text_contents():
        page.locator(".bar nav a", has_text=name).click()
        expect(page.locator("nav [aria-current=page]")).to_have_text(name)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("address", VIEWS)
def test_every_first_view_names_itself(browser_page: Page, address: str) -> None:
    """A title of its own, one heading of the first rank, and landmarks."""
    browser_page.goto(address)
    assert "Sluice" in browser_page.title()
    assert browser_page.locator("h1:visible").count() == 1
    assert browser_page.locator("main#main").count() == 1
    assert browser_page.locator("html").get_attribute("lang") == "en"


def test_a_refusal_is_accessible(browser_page: Page, axe: Callable[[Page], list[str]]) -> None:
    """And leads back."""
    browser_page.goto("/ui/answers/no-such-answer")
    assert axe(browser_page) == []
    browser_page.get_by_role("link", name="To the workbench").click()
    expect(browser_page).to_have_url(re.compile("/$"))


SWAP = (
    "([address, target]) => htmx.ajax('GET', address, {target, select: target, swap: 'outerHTML'})"
)


def test_a_swap_brings_what_the_other_page_loads(browser_page: Page) -> None:
    """Sheets and scripts of its head, each once, and the focus goes to what has come."""
    browser_page.goto("/ui/no-such-view")
    for _ in range(2):
        browser_page.evaluate(SWAP, ["/docs", "#main"])
        expect(browser_page.locator(".opblock").first).to_be_visible()
    assert browser_page.locator("script[src*=swagger]").count() == 1
    assert browser_page.locator("link[href*=swagger]").count() == 1
    assert browser_page.evaluate("document.activeElement.id") == "main"


def test_a_service_that_is_silent_is_told_of(browser: Browser, live: Live) -> None:
    """In a page that nobody watches, because htmx itself writes the failure to the console."""
    context = browser.new_context(base_url=f"http://127.0.0.1:{live.port}")
    page = context.new_page()
    page.goto("/ui/no-such-view")
    page.evaluate("() => { window.fetch = () => Promise.reject(new TypeError('away')); }")
    page.evaluate(SWAP, ["/docs", "#main"])
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    expect(page.locator("h1")).to_have_text("No such path")
    context.close()


def test_a_refused_part_takes_the_place_of_the_part(browser_page: Page) -> None:
    """Not a page within a page."""
    browser_page.goto("/")
    browser_page.evaluate(
        "htmx.ajax('GET', '/ui/no-such-view', {target: '#result', swap: 'innerHTML'})"
    )
    expect(browser_page.locator("#result .refused h2")).to_have_text("No such path")
    assert browser_page.locator("main#main").count() == 1


def test_on_paper_there_are_neither_bars_nor_dark_grounds(new_page: Callable[..., Page]) -> None:
    """Whatever the screen's colours."""
    page = new_page(color_scheme="dark")
    page.goto("/ui/no-such-view")
    page.emulate_media(media="print")
    assert not page.locator(".bar").is_visible()
    ground = page.evaluate("getComputedStyle(document.querySelector('.panel')).backgroundColor")
    assert ground == "rgb(255, 255, 255)"


def test_without_scripts_every_section_is_reached(new_page: Callable[..., Page]) -> None:
    """By plain links; what needs a script says so."""
    page = new_page(java_script_enabled=False)
    page.goto("/ui/no-such-view")
    for name in page.locator(".bar nav a").all_text_contents():
        page.locator(".bar nav a", has_text=name).click()
        expect(page.locator("nav [aria-current=page]")).to_have_text(name)
        expect(page.locator("h1")).to_be_visible()
    # The browser's switch for tests leaves this part unrendered.
    assert "without it the document above says the same" in page.content()


def test_where_the_system_chooses_the_colours(new_page: Callable[..., Page]) -> None:
    """The section is told from the others, though their edges may not be see-through there."""
    page = new_page(forced_colors="active")
    page.goto("/ui/answers")
    edge = "(link) => getComputedStyle(link).borderBottomColor"
    here = page.locator(".bar nav [aria-current]").evaluate(edge)
    others = page.locator(".bar nav a:not([aria-current])")
    assert {one.evaluate(edge) for one in others.all()}.isdisjoint({here})


MOVING = """() => {
  const button = document.createElement("button");
  button.className = "first htmx-request";
  document.querySelector("main").append(button);
  return document.getAnimations().length;
}"""


def test_nothing_moves_for_those_who_want_less(new_page: Callable[..., Page]) -> None:
    """What waits is animated for the others alone."""
    moving = {}
    for wish in ("no-preference", "reduce"):
        page = new_page(reduced_motion=wish)
        page.goto("/ui/no-such-view")
        moving[wish] = page.evaluate(MOVING)
    assert moving == {"no-preference": 1, "reduce": 0}
