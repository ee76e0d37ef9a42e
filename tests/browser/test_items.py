"""Items in a browser: the switch, a pasted table, a file, mistakes, the timeline, the curve."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.app.serving import Live
from tests.support.item_bodies import PI, PI_READY, question, stages

TABLE = "name,bytes,ready (us)\nhead,4,1\nnorm,1,2\nbias,1,3\nup,2,5\ndown,4,9\n"
NAMES = [f"layer.{place}" for place in range(8)]
ANSWER = re.compile(r"/ui/answers/[0-9a-f]{32}")


def stored(live: Live) -> str:
    """The address of an answer with all there is: names, ready times, a cap in use."""
    body = question(
        stages((1, 500), (3, 1000)),
        {"bytes": PI, "ready_us": PI_READY, "names": NAMES},
        uncertainty={"current": {"repeat": 30}},
    )
    response = live.client.post("/optimize", json=body)
    assert response.status_code == 200, response.text
    return f"/ui/answers/{response.json()['id']}"


def drawn(page: Page) -> Locator:
    """The curve, once somebody has come near it."""
    chart = page.locator("[data-chart=caps]")
    expect(chart).to_have_count(1)
    chart.scroll_into_view_if_needed()
    expect(chart).to_have_attribute("data-drawn", "yes")
    return chart


def turned_on(page: Page) -> None:
    page.goto("/?empty=yes")
    page.fill("#name-0", "wire")
    page.fill("#overhead-0", "2")
    page.fill("#cost-0", "1000")
    page.check("#has-items")


def test_the_switch_shows_items_in_place_of_the_message(browser_page: Page) -> None:
    """And takes them away again; what was typed stays."""
    page = browser_page
    page.goto("/?empty=yes")
    expect(page.locator("#items")).to_be_hidden()
    page.check("#has-items")
    expect(page.locator("#items")).to_be_visible()
    expect(page.locator("#first_cap")).to_be_visible()
    for hidden in ("#message", "#message-limits"):
        expect(page.locator(hidden)).to_be_hidden()
    page.fill("#items", TABLE)
    page.check("[name=source][value=trace]")
    expect(page.locator("#items")).to_be_hidden()
    expect(page.locator("#message")).to_be_visible()
    page.check("[name=source][value=table]")
    page.uncheck("#has-items")
    expect(page.locator("#message")).to_be_visible()
    expect(page.locator("#items")).to_have_value(TABLE)


def test_a_pasted_table_is_answered(browser_page: Page) -> None:
    """By keys alone; the answer has what to set, and the items beside it."""
    page = browser_page
    turned_on(page)
    page.fill("#items", TABLE)
    page.fill("#current", "4")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(ANSWER)
    expect(page.locator(".headline")).to_contain_text("5.26 % faster than your 4 B.")
    expect(page.locator("#answer-title")).to_be_focused()
    expect(page.locator("#line-items")).to_have_text("[2, 3]")
    expect(page.locator("#items")).to_have_value(TABLE.strip())


def test_a_mistake_is_marked_and_what_was_typed_stays(browser_page: Page) -> None:
    page = browser_page
    turned_on(page)
    page.fill("#items", "bytes,ready (us)\n4,1\nx,2")
    page.fill("#first_cap", "1 MiB")
    page.click("[data-send]:visible")
    expect(page.locator("#mistake-items")).to_contain_text("item 2, bytes: ")
    expect(page.locator("#items")).to_be_focused()
    expect(page.locator("#first_cap")).to_have_value("1 MiB")
    page.locator("#items").press("End")
    page.keyboard.type("0")
    expect(page.locator("#mistake-items")).to_have_count(0)


def test_a_file_becomes_the_table(browser_page: Page) -> None:
    """Chosen or dropped; one that the form cannot send is refused at once."""
    page = browser_page
    turned_on(page)
    file = {"name": "grads.csv", "mimeType": "text/csv", "buffer": TABLE.encode()}
    page.set_input_files("#items-file", file)  # type: ignore[arg-type]
    expect(page.locator("#items")).to_have_value(TABLE)
    page.fill("#items", "")
    page.evaluate(
        """text => {
            const data = new DataTransfer();
            data.items.add(new File([text], "grads.csv"));
            document.getElementById("items").dispatchEvent(
                new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
        }""",
        TABLE,
    )
    expect(page.locator("#items")).to_have_value(TABLE)
    expect(page.locator("[name=source][value=table]")).to_be_checked()
    page.evaluate("document.getElementById('input').dataset.maxBodyBytes = '60'")
    page.set_input_files("#items-file", file)  # type: ignore[arg-type]
    expect(page.locator("#mistake-items")).to_contain_text(
        "expected a table that the form can send"
    )


def test_the_timeline_names_its_items(browser_page: Page, live: Live) -> None:
    """Where one is pointed at, its fragment stands out in every row."""
    page = browser_page
    page.goto(stored(live))
    page.wait_for_selector("#timeline .timeline[data-started=yes]")
    rows = page.locator("#timeline .stage")
    expect(rows).to_have_count(3)
    assert rows.nth(0).get_attribute("data-tip").startswith("calculation: ")  # type: ignore[union-attr]
    item = page.locator("#timeline .stage").nth(2).locator(".item").first
    item.scroll_into_view_if_needed()
    item.hover()
    tip = page.locator(".timeline-tip")
    expect(tip).to_contain_text(
        re.compile(r"fragment \d of 4, item \d \(layer\.\d\): \d B, ready at")
    )
    expect(page.locator("#timeline .block.pointed")).to_have_count(3)


def test_the_curve_is_drawn_with_its_marks(browser_page: Page, live: Live) -> None:
    """Steps, the list as a line, the best cap and the one in use."""
    page = browser_page
    page.goto(stored(live))
    drawn(page)
    names = page.evaluate(
        """() => echarts.getInstanceByDom(document.querySelector("[data-chart=caps]"))
            .getOption().series.map((one) => [one.name, one.step || ""])"""
    )
    assert names == [["one cap", "end"], ["the list", ""], ["best cap", ""], ["your cap", ""]]
    page.click("#by-cap summary")
    expect(page.locator("#by-cap tbody tr").first).to_contain_text("the list")


def test_lines_are_copied(new_page: Callable[..., Page], live: Live) -> None:
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    page.goto(stored(live))
    page.click("[data-copy=line-items]")
    expect(page.locator("[data-copy=line-items]")).not_to_have_text("Copy")
    assert page.evaluate("navigator.clipboard.readText()") == page.inner_text("#line-items")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_of_it_is_accessible(
    new_page: Callable[..., Page], axe: Callable[[Page], list[str]], live: Live, scheme: str
) -> None:
    """The switch turned on, and an answer with its curve; nothing is wider than a small screen."""
    page = new_page(color_scheme=scheme, width=390)
    turned_on(page)
    assert axe(page) == []
    page.goto(stored(live))
    page.wait_for_selector("#timeline .timeline[data-started=yes]")
    drawn(page)
    assert axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
