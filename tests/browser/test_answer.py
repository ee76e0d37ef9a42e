"""The answer view in a browser: at once, its parts, the timeline by keys, links that restore."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from analysis import explore
from tests.app.serving import MYRINET, Live

LONG = "a name that is long enough to be cut: " + "W" * 60
MANY = {
    "stages": [
        {"name": "fast", "overhead_us": 0.0001, "ns_per_byte": 1.0},
        {"name": "slow", "overhead_us": 0.0001, "ns_per_byte": 1.1},
    ]
}
ODD: dict[str, dict[str, Any]] = {
    "one fragment": {"pipeline": MYRINET, "message_bytes": 1},
    "no cost": {
        "pipeline": {"stages": [{"name": "free", "overhead_us": 0.0, "ns_per_byte": 0.0}]},
        "message_bytes": 4096,
    },
    "a delay, limits and a long name": {
        "pipeline": {
            "stages": [
                {"name": LONG, "overhead_us": 3.0, "ns_per_byte": 1.0},
                {"name": "<b>marked</b> & more", "overhead_us": 9.0, "ns_per_byte": 2.0},
            ],
            "delay_us": 40.0,
        },
        "message_bytes": 100_000,
        "constraints": {"alignment_bytes": 512, "max_fragment_bytes": 8192},
    },
    "stages that cut anew": {
        "pipeline": {
            "stages": [
                {"name": "fine", "overhead_us": 1.0, "ns_per_byte": 10.0},
                {"name": "coarse", "overhead_us": 50.0, "ns_per_byte": 10.0},
            ]
        },
        "message_bytes": 65536,
        "strategy": "hierarchical",
        "allow_refragmentation": True,
    },
    "64 stages": {
        "pipeline": {
            "stages": [
                {"name": f"stage {j}", "overhead_us": 1.0 + j % 3, "ns_per_byte": 2.0 + j % 5}
                for j in range(64)
            ]
        },
        "message_bytes": 65536,
        "time_limit_s": 0.5,
    },
}


@pytest.fixture(autouse=True)
def quick_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less time for what is drawn around an answer: the server is in this process."""
    monkeypatch.setattr(explore, "SIZES_LIMIT_S", 0.3)
    monkeypatch.setattr(explore, "ALTERNATIVES_LIMIT_S", 0.2)


def stored(live: Live, **question: Any) -> str:
    """The address of the answer to a question."""
    asked = {"pipeline": MYRINET, "message_bytes": 4096, **question}
    response = live.client.post("/optimize", json=asked)
    assert response.status_code == 200, response.text
    return f"/ui/answers/{response.json()['id']}"


def opened(page: Page, address: str) -> None:
    """The view with all of its parts."""
    page.goto(address)
    page.wait_for_selector("#timeline .timeline[data-started=yes], #timeline > p")
    expect(page.locator(".later")).to_have_count(0)
    expect(page.locator("#alternatives caption")).to_contain_text("every strategy")


def draw_charts(page: Page, count: int) -> None:
    """Come near to each chart, which is drawn then."""
    charts = page.locator("[data-chart]")
    expect(charts).to_have_count(count)
    for place in range(count):
        charts.nth(place).scroll_into_view_if_needed()
        expect(charts.nth(place)).to_have_attribute("data-drawn", "yes")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_of_it_is_accessible(
    new_page: Callable[..., Page], axe: Callable[[Page], list[str]], live: Live, scheme: str
) -> None:
    """Nothing serious with every part drawn, in either colour scheme."""
    page = new_page(color_scheme=scheme)
    opened(page, stored(live))
    draw_charts(page, 4)
    assert axe(page) == []


def test_the_parts_come_by_themselves(browser_page: Page, live: Live) -> None:
    """What is stored is shown while they are still being computed; then they are there."""
    page, waiting = browser_page, []
    page.route("**/parts/*", lambda route: waiting.append(route))
    page.goto(stored(live))
    expect(page.locator(".figures .foremost dd")).to_contain_text("184.357 µs")
    assert page.locator("#timeline svg .block").count() == 24
    expect(page.locator(".later")).to_have_count(6)
    while len(waiting) < 7:
        page.wait_for_timeout(20)
    for route in waiting:
        route.continue_()
    expect(page.locator(".later")).to_have_count(0)
    expect(page.locator("#why .binding")).to_have_count(2)


@pytest.mark.parametrize("name", ODD)
def test_odd_answers_are_drawn(new_page: Callable[..., Page], live: Live, name: str) -> None:
    """Each with all its parts, without a complaint, no wider than a narrow window."""
    page = new_page(width=360)
    opened(page, stored(live, **ODD[name]))
    assert page.locator("#timeline svg.sluice-timeline").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator(".refused").count() == 0


def test_an_aggregate_says_what_it_cannot_show(browser_page: Page, live: Live) -> None:
    """It has no stages, so there is no timeline and no binding stage; curves there are."""
    aggregate = {
        "total": {"name": "all", "overhead_us": 27.3, "ns_per_byte": 63.0},
        "bottleneck": {"name": "worst", "overhead_us": 7.5, "ns_per_byte": 24.3},
    }
    opened(browser_page, stored(live, pipeline=None, aggregate=aggregate, message_bytes=65536))
    expect(browser_page.locator("#timeline")).to_contain_text("nothing to draw")
    expect(browser_page.locator("#why")).to_contain_text("no stages are known")
    draw_charts(browser_page, 3)


def test_many_fragments_come_as_a_part(browser_page: Page, live: Live) -> None:
    """The sizes are summarised, all of them one step away, and the picture comes by itself."""
    page = browser_page
    address = stored(
        live,
        pipeline=MANY,
        message_bytes=2**24,
        strategy="exact",
        constraints={"max_fragments": 3000},
    )
    page.goto(address)
    page.wait_for_selector("#timeline .timeline[data-started=yes]")
    expect(page.locator("#timeline")).to_contain_text("merged")


def test_runs_come_apart_where_one_looks_closer(browser_page: Page, live: Live) -> None:
    """The server draws the stretch anew; hovering tells single fragments; a link shows the same."""
    page = browser_page
    page.goto(
        stored(
            live,
            pipeline=MANY,
            message_bytes=2**24,
            strategy="exact",
            constraints={"max_fragments": 3000},
        )
    )
    page.wait_for_selector("#timeline .timeline[data-started=yes]")
    page.locator(".timeline-picture").focus()
    for _ in range(12):
        page.keyboard.press("+")
    closer = page.locator(".timeline svg.sluice-timeline").nth(1)
    expect(closer).to_contain_text("Every block is drawn for itself.")
    expect(page.locator(".timeline svg.sluice-timeline").first).to_be_hidden()
    page.wait_for_url(re.compile(r"from_us=.*to_us="))
    box = closer.bounding_box()
    assert box is not None
    row = closer.locator(".stage .idle").nth(1).bounding_box()
    assert row is not None
    page.mouse.move(box["x"] + box["width"] / 2, row["y"] + row["height"] / 2)
    expect(page.locator(".timeline-tip")).to_contain_text(re.compile(r"slow\nfragment \d+ of "))
    page.reload()
    expect(closer).to_contain_text("Every block is drawn for itself.")
    page.locator(".timeline-picture").focus()
    page.keyboard.press("0")
    expect(page.locator(".timeline svg.sluice-timeline").first).to_be_visible()


def test_the_timeline_by_keys(browser_page: Page, live: Live) -> None:
    """Plus, minus, arrows and 0; what is shown stands in the address, and a link shows the same."""
    page = browser_page
    address = stored(live)
    page.goto(address)
    page.wait_for_selector(".timeline[data-started=yes]")
    whole = box_of(page)
    page.locator(".timeline-picture").focus()
    page.keyboard.press("+")
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    zoomed = box_of(page)
    assert zoomed[2] < 0.5 * whole[2]
    assert zoomed[3] == whole[3]
    page.wait_for_url(re.compile(r"from_us=.*to_us="))
    expect(page.locator("#announcement")).to_contain_text("Timeline: ")
    page.reload()
    page.wait_for_selector(".timeline[data-started=yes]")
    assert box_of(page) == pytest.approx(zoomed, rel=1e-3)
    page.locator(".timeline-picture").focus()
    page.keyboard.press("0")
    assert box_of(page) == whole
    page.wait_for_url(lambda url: "from_us" not in url)


def box_of(page: Page) -> list[float]:
    """The part of the picture that is shown."""
    shown = page.locator("#timeline svg.sluice-timeline").get_attribute("viewBox")
    return [float(part) for part in str(shown).split()]


def test_a_block_tells_its_size_and_times(browser_page: Page, live: Live) -> None:
    """Fragment, bytes, start and end, and the stage's name."""
    page = browser_page
    page.goto(stored(live))
    page.wait_for_selector(".timeline[data-started=yes]")
    page.locator(".timeline .stage .block").nth(7).hover()
    tip = page.locator(".timeline-tip")
    expect(tip).to_contain_text("sender host DMA")
    expect(tip).to_contain_text(re.compile(r"fragment 2 of 6: 729 B, [\d.]+ µs to [\d.]+ µs"))
    page.mouse.move(0, 0)
    expect(tip).to_be_hidden()


def test_beside_the_best_fixed_size(browser_page: Page, live: Live) -> None:
    """One click, an address of its own, and the way back."""
    page = browser_page
    page.goto(stored(live))
    page.wait_for_selector(".timeline[data-started=yes]")
    assert page.locator("#timeline .schedule").count() == 1
    page.get_by_role("link", name="Beside the best fixed size").click()
    expect(page.locator("#timeline .schedule")).to_have_count(2)
    page.wait_for_selector(".timeline[data-started=yes]")
    assert page.url.endswith("?beside=fixed")
    page.reload()
    expect(page.locator("#timeline .schedule")).to_have_count(2)
    page.get_by_role("link", name="Without the best fixed size").click()
    expect(page.locator("#timeline .schedule")).to_have_count(1)


def test_the_axis_of_the_sizes_is_kept_by_the_address(browser_page: Page, live: Live) -> None:
    """Chosen by keyboard, and the same after a reload."""
    page = browser_page
    opened(page, stored(live))
    chosen = page.get_by_role("button", name="Latency", exact=True)
    chosen.focus()
    page.keyboard.press("Enter")
    expect(chosen).to_have_attribute("aria-pressed", "true")
    assert page.url.endswith("?sizes=latency")
    page.reload()
    expect(page.get_by_role("button", name="Latency", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )


def test_charts_follow_the_colour_scheme(browser_page: Page, live: Live) -> None:
    """Light to dark while the page is open."""
    page = browser_page
    opened(page, stored(live))
    draw_charts(page, 4)
    place = page.locator("[data-chart=counts][data-drawn=yes] canvas").first
    light = place.evaluate("canvas => canvas.toDataURL()")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        "light => document.querySelector('[data-chart=counts] canvas').toDataURL() !== light",
        arg=light,
    )


def test_every_chart_has_its_table(browser_page: Page, live: Live) -> None:
    """By keyboard, with units in the headings."""
    page = browser_page
    opened(page, stored(live))
    for place, heading in (("#by-count", "Best sizes, µs"), ("#by-size", "repeat")):
        summary = page.locator(f"{place} .as-table summary")
        summary.focus()
        page.keyboard.press("Enter")
        expect(page.locator(f"{place} thead")).to_contain_text(heading)
        assert page.locator(f"{place} tbody tr").count() > 10


def test_no_part_is_needed_for_the_view(new_page: Callable[..., Page], live: Live) -> None:
    """Without scripts all that is stored is there, and the parts are links."""
    page = new_page(java_script_enabled=False)
    page.goto(stored(live))
    expect(page.locator("#answer-title")).to_have_text("4 KiB through 4 stages")
    assert page.locator("#timeline svg .block").count() == 24
    page.locator("#why a").click()
    expect(page.locator("#why")).to_contain_text("holds the message up")


def test_no_answer(browser_page: Page) -> None:
    """A page says so."""
    response = browser_page.goto("/ui/answers/" + "0" * 32)
    assert response is not None
    assert response.status == 404
    expect(browser_page.locator(".refused")).to_be_visible()


@pytest.mark.parametrize("has_scripts", [True, False], ids=["scripts", "no scripts"])
def test_where_panels_stack_the_answer_comes_first(
    new_page: Callable[..., Page], has_scripts: bool
) -> None:
    """On a phone what was asked for is what is seen, read and focused; its question follows."""
    more: dict[str, Any] = {"java_script_enabled": False}
    if has_scripts:
        more = {"permissions": ["clipboard-read", "clipboard-write"]}
    page = new_page(width=360, height=640, **more)
    page.goto("/?example=myrinet-gam")
    page.get_by_role("button", name="Optimise").last.click()
    title = page.locator("#answer-title")
    expect(title).to_be_in_viewport()
    answer, question = title.bounding_box(), page.locator("#input-title").bounding_box()
    assert answer is not None
    assert question is not None
    assert answer["y"] < question["y"]
    if has_scripts:
        expect(title).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator("[data-copy-link]")).to_have_text("Link copied")
        assert page.evaluate("navigator.clipboard.readText()") == page.url
        page.keyboard.press("Tab")
        expect(page.locator("summary", has_text="Name it")).to_be_focused()
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Change the question")).to_be_focused()
