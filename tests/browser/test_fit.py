"""The view of a fit in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.app.serving import Live

TRACE = (Path(__file__).parents[2] / "examples" / "local-path-direct.csv").read_bytes()


@pytest.fixture(scope="module")
def address(live: Live) -> str:
    """A fit of the measured example."""
    place: str = live.client.post("/ui/fits", content=TRACE).headers["location"]
    return place


def drawn(page: Page, address: str) -> None:
    """Open it, and wait until its charts are there."""
    page.goto(address)
    expect(page.locator("[data-fit-chart][data-drawn=yes]")).to_have_count(5)


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_it_is_accessible_and_fits_its_window(
    new_page: Callable[..., Page],
    axe: Callable[[Page], list[str]],
    address: str,
    width: int,
    scheme: str,
) -> None:
    """With its charts drawn and everything opened."""
    page = new_page(width=width, color_scheme=scheme)
    drawn(page, address)
    for part in page.locator("details > summary").all():
        part.click()
    assert axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_outliers_are_ticked_and_the_fit_is_redone(browser_page: Page, address: str) -> None:
    """It has another address, which shows it again with the same samples left out."""
    drawn(browser_page, address)
    again = browser_page.locator("#again")
    expect(again).to_be_disabled()
    browser_page.locator("summary", has_text="outliers").first.click()
    browser_page.locator("[name=excluded]").nth(0).check()
    browser_page.locator("[name=excluded]").nth(1).check()
    expect(again).to_have_text("Fit again without 2 samples")
    again.click()
    browser_page.wait_for_url(lambda url: address not in url)
    expect(browser_page.locator("#fit-title + p")).to_contain_text("2 samples left out by hand")
    expect(browser_page.locator("[name=excluded]:checked")).to_have_count(2)


def test_a_sample_is_clicked_in_its_chart(browser_page: Page, address: str) -> None:
    """And the button says how many are left out; a second click takes it back."""
    drawn(browser_page, address)
    place = browser_page.locator("[data-fit-chart='0']")
    place.scroll_into_view_if_needed()
    spot = browser_page.evaluate(
        """() => {
            const place = document.querySelector("[data-fit-chart='0']");
            const chart = window.echarts.getInstanceByDom(place);
            const [size, time] = Sluice.data("fit-chart-0").points.at(-1);
            return chart.convertToPixel({xAxisIndex: 0, yAxisIndex: 0}, [size, time]);
        }"""
    )
    place.click(position={"x": spot[0], "y": spot[1]})
    again = browser_page.locator("#again")
    expect(again).to_have_text("Fit again without 1 sample")
    expect(browser_page.locator("#said")).to_contain_text("left out")
    expect(browser_page.locator(".picked [name=excluded]")).to_have_count(1)


def test_it_leads_on(browser_page: Page, address: str) -> None:
    """To an answer, or to a profile."""
    browser_page.goto(f"{address}?bytes=4+KiB")
    expect(browser_page.get_by_label("Message size", exact=True)).to_have_value("4 KiB")
    browser_page.get_by_role("button", name="Optimise with this").click()
    browser_page.wait_for_url(re.compile("/ui/(answers|jobs)/"))
    browser_page.goto(address)
    browser_page.get_by_label("Profile name").fill("no good")
    browser_page.get_by_role("button", name="Save as profile").click()
    expect(browser_page.get_by_label("Profile name")).to_have_attribute("aria-invalid", "true")
    browser_page.get_by_label("Profile name").fill("good")
    browser_page.get_by_role("button", name="Save as profile").click()
    browser_page.wait_for_url("**/ui/profiles/good")


def test_a_hundred_thousand_samples_are_thinned(browser_page: Page, live: Live) -> None:
    """On the server, and the page says so; it stays quick."""
    rows = (f"{64 << (n % 12)},{n // 12},{5 + n % 12 + n % 7 / 10}" for n in range(100_000))
    content = "message_bytes,repetition,wire_us\n" + "\n".join(rows)
    place = "/ui/fits?method=ordinary&shape=line"
    sent = live.client.post(place, content=content.encode())
    assert sent.status_code == 303, sent.text
    browser_page.goto(sent.headers["location"])
    expect(browser_page.locator("[data-fit-chart][data-drawn=yes]")).to_have_count(1)
    expect(browser_page.locator("#charts")).to_contain_text("of 100000 samples are drawn")
    count = browser_page.evaluate("Sluice.data('fit-chart-0').points.length")
    assert count <= 2_000
