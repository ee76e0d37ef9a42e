"""Audits by hand: asked, seen, shared as a link."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

# A mix of two sizes, for audits to be short: those and the powers of two between them are solved.
MIX = "mix=4KiB%0A16KiB+3"
ASKED = f"/ui/audit?profile=myrinet-gam&setting=2KiB&{MIX}"
STAGES = "name=bus&overhead=5&cost=1&up_to=&name=link&overhead=2&cost=8&up_to=&cost_unit=gbit_per_s"


def test_a_size_is_audited_and_shared(browser_page: Page) -> None:
    """From an empty form to a verdict; the address has all of it."""
    page = browser_page
    page.goto("/ui/audit")
    page.get_by_label("Stored profile").fill("myrinet-gam")
    page.get_by_label("A size, “whole”").fill("2 KiB")
    page.get_by_text("Mix, objective, time").click()
    page.get_by_label("A mix of your own").fill("4KiB\n16KiB 3")
    page.get_by_label("Allowed regret").fill("1 %")
    page.get_by_role("button", name="Audit").click()
    expect(page.locator(".audited .badge")).to_have_text("not kept")
    expect(page.get_by_role("rowheader", name="16 KiB")).to_be_visible()
    expect(page.locator(".regret-chart canvas")).to_be_visible()
    expect(page.locator(".changes li").first).to_be_visible()
    address = page.url
    assert "setting=2+KiB" in address
    page.goto(address)
    expect(page.get_by_label("A size, “whole”")).to_have_value("2 KiB")
    expect(page.locator(".audited .badge")).to_have_text("not kept")


def test_stages_of_the_workbench_come_along(browser_page: Page) -> None:
    """In the units that they were typed in."""
    browser_page.goto(f"/ui/audit?{STAGES}&setting=whole&{MIX}")
    expect(browser_page.get_by_role("group", name="Stages")).to_contain_text("Cost, Gb/s")
    expect(browser_page.locator(".audited h2")).to_have_text("every message whole")


def test_a_pasted_configuration(browser_page: Page) -> None:
    """A short one is in the address; the browser's line ends do not matter."""
    page = browser_page
    page.goto(f"/ui/audit?profile=myrinet-gam&{MIX}")
    page.get_by_label("Of", exact=True).select_option("ucx")
    page.get_by_label("Its text").fill("# ours\nUCX_RNDV_FRAG_SIZE=host:4096\n")
    page.get_by_role("button", name="Audit").click()
    expect(page.locator(".audited h2")).to_have_text("4 KiB for every message")
    assert "target=ucx" in page.url


def test_a_configuration_too_long_for_an_address(browser_page: Page) -> None:
    """It is audited all the same, and that it cannot be shared is said."""
    page = browser_page
    page.goto(f"/ui/audit?profile=myrinet-gam&{MIX}")
    page.get_by_label("Of", exact=True).select_option("ucx")
    page.get_by_label("Its text").fill("# a remark\n" * 900 + "UCX_RNDV_FRAG_SIZE=host:4096\n")
    page.get_by_role("button", name="Audit").click()
    expect(page.get_by_text("too long for an address")).to_be_visible()
    expect(page.locator(".audited h2")).to_have_text("4 KiB for every message")


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("profile=myrinet-gam&setting=big", "setting", "expected a size"),
        ("setting=4KiB", "profile", "expected the name"),
        ("profile=myrinet-gam&setting=4KiB&least=x", "least", "expected a size"),
        ("profile=myrinet-gam&setting=4KiB&max_regret=low", "max_regret", "expected a share"),
        ("profile=myrinet-gam&setting=4KiB&time_limit=900", "time_limit", "at most 60 s"),
        ("profile=myrinet-gam&setting=4KiB&mix=x", "mix", "line 1"),
        ("profile=myrinet-gam&configuration=x", "target", "expected the library"),
        ("profile=myrinet-gam&configuration=x&target=ucx", "configuration", ""),
        ("profile=myrinet-gam&setting=4KiB&least=2KiB&greatest=1KiB", "greatest", "least_bytes"),
    ],
)
def test_mistakes_are_marked(browser_page: Page, query: str, field: str, words: str) -> None:
    """Where they are, and nothing is audited."""
    browser_page.goto(f"/ui/audit?{query}")
    marked = browser_page.locator(f"[name={field}]")
    expect(marked).to_have_attribute("aria-invalid", "true")
    told = browser_page.locator(f"#{marked.get_attribute('aria-describedby')}")
    expect(told).to_contain_text(words)
    expect(browser_page.locator(".waiting")).to_have_count(0)


def test_a_profile_that_is_not_stored(browser_page: Page) -> None:
    """The refusal stands where the result would, beside the form."""
    browser_page.goto("/ui/audit?profile=none-such&setting=4KiB")
    expect(browser_page.locator(".refused")).to_contain_text("there is no hardware profile")
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
