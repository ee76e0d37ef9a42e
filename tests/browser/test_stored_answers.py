"""Stored answers by hand: filtered, paged, and put side by side."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.app.serving import MYRINET, Live

NAME = "listed-nic"
SIZE = 5120


@pytest.fixture(scope="package")
def stored(live: Live) -> list[str]:
    """Answers of a profile of their own: of one message by two strategies, and of another."""
    live.client.post("/profiles", json={"name": NAME, "pipeline": MYRINET})
    asked = [(SIZE, "exact"), (SIZE, "fixed"), (7 * 1024, "exact")]
    found = []
    for message_bytes, strategy in asked:
        body = {"profile": NAME, "message_bytes": message_bytes, "strategy": strategy}
        response = live.client.post("/optimize", json=body)
        assert response.status_code == 200
        found.append(response.json()["id"])
    return found


def test_filters_have_units_and_an_address(browser_page: Page, stored: list[str]) -> None:
    """A size in KiB; the address restores the list; a row leads to its answer."""
    page = browser_page
    page.goto("/ui/answers")
    page.get_by_label("Profile").fill(f"{NAME}@1")
    page.get_by_label("Message size").fill("5 KiB")
    page.get_by_label("Strategy").select_option("fixed")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("row")).to_have_count(2)
    address = page.url
    page.goto(address)
    expect(page.get_by_label("Message size")).to_have_value("5 KiB")
    expect(page.get_by_role("row")).to_have_count(2)
    expect(page.get_by_role("row").last).to_contain_text("network DMAs and receiver host DMA, of 4")
    link = page.get_by_role("link", name="5 KiB")
    assert link.get_attribute("href") == f"/ui/answers/{stored[1]}"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("message=many", "expected a size"),
        ("message=0", "at least 1 byte"),
        ("profile=No%20Name", "expected a profile"),
        ("strategy=best", "expected one of"),
    ],
)
def test_a_filter_that_cannot_be_read_is_marked(browser_page: Page, query: str, words: str) -> None:
    """Where it is, in words, and announced with the field."""
    browser_page.goto(f"/ui/answers?{query}")
    field = browser_page.locator("[aria-invalid=true]")
    expect(field).to_have_count(1)
    reported = browser_page.locator(f"#{field.get_attribute('aria-describedby')}")
    expect(reported).to_contain_text(words)


def test_nothing_that_meets_the_filters_is_said(browser_page: Page, stored: list[str]) -> None:
    """And a cursor that is none is a refusal."""
    browser_page.goto(f"/ui/answers?profile={NAME}&message=3KiB")
    expect(browser_page.get_by_text("No stored answer meets these filters.")).to_be_visible()
    browser_page.goto("/ui/answers?after=x")
    expect(browser_page.locator(".refused")).to_contain_text("cursor")


def test_two_are_compared_by_keyboard(browser_page: Page, stored: list[str]) -> None:
    """Ticked with the space bar; both timelines on one scale; only what differs, then all."""
    page = browser_page
    page.goto(f"/ui/answers?profile={NAME}&message=5KiB")
    button = page.get_by_role("button", name="Compare those that are ticked")
    expect(button).to_be_disabled()
    boxes = page.get_by_role("checkbox")
    boxes.first.focus()
    page.keyboard.press("Space")
    expect(button).to_be_disabled()
    boxes.nth(1).focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("2 are ticked.")).to_be_visible()
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("2 answers side by side")
    assert page.url.endswith(f"/ui/compare?id={stored[1]}&id={stored[0]}")
    expect(page.locator("svg.sluice-timeline")).to_contain_text("B exact: ")
    expect(page.locator(".cut rect").first).to_be_visible()
    page.locator("[data-chart=arrivals]").scroll_into_view_if_needed()
    expect(page.locator("[data-chart=arrivals][data-drawn=yes] canvas").first).to_be_visible()
    page.get_by_text("As a table").click()
    expect(page.get_by_role("columnheader", name="B 5 KiB, exact, µs")).to_be_visible()
    table = page.get_by_role("region", name="What differs")
    expect(table.get_by_role("rowheader", name="Strategy")).to_be_visible()
    expect(table.get_by_role("rowheader", name="Message")).to_have_count(0)
    page.get_by_role("link", name="Also what is the same").click()
    expect(page.get_by_role("rowheader", name="Message")).to_be_visible()


@pytest.mark.parametrize("has_script", [True, False])
def test_ticks_go_along_from_page_to_page(
    new_page: Callable[..., Page],
    stored: list[str],
    monkeypatch: pytest.MonkeyPatch,
    has_script: bool,
) -> None:
    """Also without scripts, and what is ticked anywhere is compared."""
    monkeypatch.setattr("app.verbs.answers.page.views.PAGE_SIZE", 1)
    page = new_page(java_script_enabled=has_script)
    page.goto(f"/ui/answers?profile={NAME}")
    page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Older").click()
    page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Newest").click()
    expect(page.get_by_role("checkbox")).to_be_checked()
    page.get_by_role("button", name="Compare those that are ticked").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("2 answers side by side")
    assert all(one in page.url for one in stored[1:])


@pytest.mark.parametrize("has_script", [True, False])
def test_answers_are_named_where_they_are_listed_and_shown(
    new_page: Callable[..., Page], stored: list[str], has_script: bool
) -> None:
    """Enter saves a name; the comparison has it, and the answer's own page changes it."""
    page = new_page(java_script_enabled=has_script)
    page.goto(f"/ui/answers?profile={NAME}&message=5KiB")
    field = page.get_by_label("Name of 5 KiB, exact")
    field.fill("NIC ×2")
    with page.expect_response(lambda sent: sent.request.method == "POST"):
        field.press("Enter")
    page.goto(f"/ui/answers?profile={NAME}&message=5KiB")
    expect(field).to_have_value("NIC ×2")
    page.goto(f"/ui/compare?id={stored[1]}&id={stored[0]}")
    expect(page.get_by_role("columnheader", name="B NIC ×2")).to_be_visible()
    expect(page.locator("svg.sluice-timeline")).to_contain_text("B NIC ×2: ")
    page.goto(f"/ui/answers/{stored[1]}?last={stored[0]}")
    expect(page.get_by_role("link", name="Compare this answer with NIC ×2")).to_be_visible()
    page.goto(f"/ui/answers/{stored[0]}")
    page.get_by_text("Name or note…").click()
    page.get_by_label("Name", exact=True).fill("")
    page.get_by_label("Note", exact=True).fill("of next year")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".called")).to_have_text(["of next year"])
    page.goto(f"/ui/answers?profile={NAME}&message=5KiB")
    expect(field).to_have_value("")
    expect(page.get_by_text("of next year")).to_be_visible()


def test_a_name_that_is_not_kept_is_said(browser_page: Page, stored: list[str]) -> None:
    """In words, in the place of the list."""
    page = browser_page
    page.goto(f"/ui/answers?profile={NAME}&message=7KiB")
    field = page.get_by_label("Name of 7 KiB, exact")
    field.evaluate("field => field.removeAttribute('maxlength')")
    field.fill("a" * 101)
    field.press("Enter")
    expect(page.locator("#main")).to_contain_text("at most 100 characters")


@pytest.mark.parametrize("width", [390, 1280])
def test_a_name_without_spaces_makes_no_page_wider(
    new_page: Callable[..., Page], live: Live, stored: list[str], width: int
) -> None:
    """Neither the comparison nor the list nor the answer nor its report, whose note has lines."""
    given = {"name": "W" * 100, "note": "n" * 999 + "\nand more"}
    live.client.patch(f"/optimizations/{stored[2]}", json=given)
    page = new_page(width=width)
    ids = f"id={stored[2]}&id={stored[0]}"
    for place in (f"compare?{ids}", f"answers/{stored[2]}", "answers"):
        page.goto(f"/ui/{place}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.goto("about:blank")  # the report's style is in it, which the service's own pages forbid
    page.set_content(live.client.get(f"/ui/answers/{stored[2]}/report.html").text)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("header").inner_text().count("n\nand more") == 1


def test_answers_of_different_messages(browser_page: Page, stored: list[str]) -> None:
    """Their timelines have no common scale, which is said; all else is there."""
    query = "&".join(f"id={one}" for one in stored)
    browser_page.goto(f"/ui/compare?{query}")
    expect(browser_page.get_by_text("only where the message is the same")).to_be_visible()
    expect(browser_page.get_by_role("img", name="Cut of C")).to_be_visible()
    browser_page.get_by_role("link", name="leave out C").click()
    expect(browser_page.locator("svg.sluice-timeline")).to_be_visible()


def test_long_timelines_come_by_themselves(browser_page: Page, live: Live) -> None:
    """Answers with many fragments: the page at once, its picture afterwards."""
    ids = []
    for size in (16, 20):
        body = {"pipeline": MYRINET, "message_bytes": 2**16, "strategy": "static"}
        response = live.client.post("/optimize", json={**body, "static_bytes": size})
        assert response.status_code == 200
        ids.append(f"id={response.json()['id']}")
    browser_page.goto(f"/ui/compare?{'&'.join(ids)}")
    expect(browser_page.locator("svg.sluice-timeline")).to_be_visible()
    expect(browser_page.get_by_text("a bar is several fragments").first).to_be_visible()


@pytest.mark.parametrize("query", ["", "?id=one", "?id=a&id=b"])
def test_what_cannot_be_compared_is_refused(browser_page: Page, query: str) -> None:
    """Fewer than two, and answers that are not stored."""
    browser_page.goto(f"/ui/compare{query}")
    expect(browser_page.locator(".refused")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lists_and_comparisons_are_accessible(
    new_page: Callable[..., Page],
    axe: Callable[[Page], list[str]],
    stored: list[str],
    scheme: str,
) -> None:
    """Nothing serious, also with a mistake and with everything shown."""
    page = new_page(color_scheme=scheme)
    for path in (
        "/ui/answers",
        "/ui/answers?message=x",
        f"/ui/compare?id={stored[0]}&id={stored[1]}&all=1",
    ):
        page.goto(path)
        assert axe(page) == []


@pytest.mark.parametrize("width", [360, 768, 1280, 1920])
def test_no_list_is_wider_than_the_window(
    new_page: Callable[..., Page], stored: list[str], width: int
) -> None:
    """Tables scroll in themselves."""
    page = new_page(width=width)
    for path in ("/ui/answers", f"/ui/compare?id={stored[0]}&id={stored[1]}"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
