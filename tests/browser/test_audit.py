"""Audits by hand: asked, seen, shared as a link."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.app.serving import Live, wait_for_end

MAX_TABS = 40

# A workload of two sizes, for audits to be short: those and the powers of two between them are
# solved.
WORKLOAD = "workload=4KiB%0A16KiB+3"
ASKED = f"/ui/audit?profile=myrinet-gam&setting=2KiB&{WORKLOAD}"
STAGES = "name=bus&overhead=5&cost=1&up_to=&name=link&overhead=2&cost=8&up_to=&cost_unit=gbit_per_s"


# Long enough to be seen at work: 32 stages, over the whole default range.
SLOW = "&".join(f"name=s{j}&overhead={5 + j % 7}&cost={10 + 3 * (j % 5)}&up_to=" for j in range(32))


def tab_to(page: Page, place: Locator) -> None:
    """Press Tab until this has the focus."""
    for _ in range(MAX_TABS):
        if place.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError("the keyboard does not get there")


def test_a_size_is_audited_and_shared_by_keyboard_alone(browser_page: Page) -> None:
    """From an empty form to a verdict; the address has all of it."""
    page = browser_page
    page.goto("/ui/audit")
    for label, text in (
        ("Stored profile", "myrinet-gam"),
        ("A size, “whole”", "always 2 KiB"),
        ("Allowed regret", "1 %"),
    ):
        tab_to(page, page.get_by_label(label))
        page.keyboard.type(text)
    tab_to(page, page.locator("summary", has_text="Workload, objective, time"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_label("A workload of your own"))
    page.keyboard.type("4KiB\n16KiB 3")
    tab_to(page, page.get_by_role("button", name="Audit"))
    page.keyboard.press("Enter")
    expect(page.locator(".audited .badge")).to_have_text("over 1 %")
    expect(page.locator("#announcement")).to_have_text("The audit is done.")
    expect(page.get_by_role("rowheader", name="16 KiB")).to_be_visible()
    expect(page.locator(".regret-chart canvas")).to_be_visible()
    expect(page.locator(".changes li").first).to_be_visible()
    address = page.url
    assert "setting=always+2+KiB" in address
    page.goto(address)
    expect(page.get_by_label("A size, “whole”")).to_have_value("always 2 KiB")
    expect(page.locator(".audited .badge")).to_have_text("over 1 %")


def test_an_audit_shows_how_far_it_is_and_is_cancelled(
    browser_page: Page, live: Live, axe: Callable[[Page], list[str]]
) -> None:
    """Loaded again it is the same job; Cancel by keyboard says when it has stopped; and again."""
    page = browser_page
    page.goto(f"/ui/audit?{SLOW}&setting=64KiB&time_limit=60")
    work = page.locator(".work")
    expect(work.locator("[data-field=steps]")).to_contain_text(" messages")
    expect(work.locator("progress")).to_have_attribute("value", re.compile("[0-9]+"))
    first = work.get_attribute("data-work")
    assert axe(page) == []
    page.reload()
    expect(work).to_have_attribute("data-work", str(first))
    tab_to(page, work.get_by_role("button", name="Cancel"))
    page.keyboard.press("Enter")
    expect(work.locator("[data-field=word]")).to_have_text("stopped")
    expect(page.locator("#announcement")).to_have_text("Stopped.")
    assert live.client.get(f"/jobs/{first}").json()["state"] == "cancelled"
    assert axe(page) == []
    tab_to(page, page.get_by_role("button", name="Start again"))
    page.keyboard.press("Enter")
    expect(work.get_by_role("button", name="Cancel")).to_be_visible()
    again = work.get_attribute("data-work")
    assert again != first
    live.client.delete(f"/jobs/{again}")
    expect(work.locator("[data-field=word]")).to_have_text("stopped")


def test_an_audit_without_scripts(new_page: Callable[..., Page], live: Live) -> None:
    """A button begins it, a link shows where it stands, and the address keeps what was found."""
    page = new_page(java_script_enabled=False)
    page.goto(ASKED)
    page.get_by_role("button", name="Audit it").click()
    page.wait_for_url("**/ui/audits/*")
    where = page.get_by_role("link", name="its address")
    if where.count():  # it may have ended at once
        where.click()
        wait_for_end(live.client, f"/jobs/{page.url.rpartition('/')[2]}")
    if where.count():
        where.click()
    expect(page.locator(".audited h2")).to_have_text("2 KiB for every message")
    expect(page.get_by_label("A size, “whole”")).to_have_value("2 KiB")
    assert "/ui/audits/" in page.url


def test_stages_of_the_workbench_come_along(browser_page: Page) -> None:
    """In the units that they were typed in."""
    browser_page.goto(f"/ui/audit?{STAGES}&setting=whole&{WORKLOAD}")
    expect(browser_page.get_by_role("group", name="Stages")).to_contain_text("Cost, Gb/s")
    expect(browser_page.locator(".audited h2")).to_have_text("every message whole")


def test_a_pasted_configuration(browser_page: Page) -> None:
    """A short one is in the address; the browser's line ends do not matter."""
    page = browser_page
    page.goto(f"/ui/audit?profile=myrinet-gam&{WORKLOAD}")
    page.get_by_text("Or a library's own configuration").click()
    page.get_by_label("Of", exact=True).select_option("ucx")
    page.get_by_label("Its text").fill("# ours\nUCX_RNDV_FRAG_SIZE=host:4096\n")
    page.get_by_role("button", name="Audit").click()
    expect(page.locator(".audited h2")).to_have_text("4 KiB for every message")
    assert "target=ucx" in page.url


def test_a_configuration_too_long_for_an_address(browser_page: Page) -> None:
    """Its job's address keeps the question and the result."""
    page = browser_page
    page.goto(f"/ui/audit?profile=myrinet-gam&{WORKLOAD}&max_regret=2%25")
    page.get_by_text("Or a library's own configuration").click()
    page.get_by_label("Of", exact=True).select_option("ucx")
    content = "# a remark\n" * 900 + "UCX_RNDV_FRAG_SIZE=host:4096"
    page.get_by_label("Its text").fill(content)
    page.get_by_role("button", name="Audit").click()
    page.wait_for_url("**/ui/audits/*")
    expect(page.locator(".audited h2")).to_have_text("4 KiB for every message")
    page.goto(page.url)
    expect(page.locator(".audited h2")).to_have_text("4 KiB for every message")
    expect(page.get_by_label("Its text")).to_have_value(content)
    expect(page.get_by_label("Of", exact=True)).to_have_value("ucx")
    expect(page.get_by_label("Allowed regret")).to_have_value("2 %")
    expect(page.get_by_label("A workload of your own")).to_have_value("4KiB 1\n16KiB 3")
    expect(page.get_by_label("Stored profile")).to_have_value("myrinet-gam@1")


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("profile=myrinet-gam&setting=big", "setting", "expected a size"),
        ("setting=4KiB", "profile", "expected the name"),
        ("profile=myrinet-gam&setting=4KiB&min_message=x", "min_message", "expected a size"),
        ("profile=myrinet-gam&setting=4KiB&max_regret=low", "max_regret", "expected a share"),
        ("profile=myrinet-gam&setting=4KiB&time_limit=900", "time_limit", "<= 60"),
        ("profile=myrinet-gam&setting=4KiB&workload=x", "workload", "line 1"),
        ("profile=myrinet-gam&configuration=x", "target", "expected the library"),
        ("profile=myrinet-gam&configuration=x&target=ucx", "configuration", ""),
        (
            "profile=myrinet-gam&setting=4KiB&min_message=2KiB&max_message=1KiB",
            "max_message",
            "min_message_bytes",
        ),
    ],
)
def test_mistakes_are_marked(browser_page: Page, query: str, field: str, words: str) -> None:
    """Where they are, and nothing is audited."""
    browser_page.goto(f"/ui/audit?{query}")
    marked = browser_page.locator(f"[name={field}]")
    expect(marked).to_have_attribute("aria-invalid", "true")
    reported = browser_page.locator(f"#{marked.get_attribute('aria-describedby')}")
    expect(reported).to_contain_text(words)
    expect(browser_page.locator(".asking, .work")).to_have_count(0)


def test_a_profile_that_is_not_stored(browser_page: Page) -> None:
    """The refusal stands where the result would, beside the form."""
    browser_page.goto("/ui/audit?profile=none-such&setting=4KiB")
    expect(browser_page.locator(".refused")).to_contain_text("There is no hardware profile")
    expect(browser_page.get_by_label("Stored profile")).to_have_value("none-such")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_audits_are_accessible(
    new_page: Callable[..., Page], axe: Callable[[Page], list[str]], scheme: str, width: int
) -> None:
    """Nothing serious on the form, a mistake, and a result; nothing is wider than the window."""
    page = new_page(color_scheme=scheme, width=width)
    for path in ("/ui/audit", "/ui/audit?setting=x"):
        page.goto(path)
        assert axe(page) == []
    page.goto(f"{ASKED}&max_regret=5%25")
    expect(page.locator(".regret-chart canvas")).to_be_visible()
    assert axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width == 1280:  # the last column is in sight without scrolling
        table = page.get_by_role("group", name="Regret at each message size")
        assert table.evaluate("one => one.scrollWidth <= one.clientWidth")
