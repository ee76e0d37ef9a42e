"""Profiles by hand: found, looked at, rolled back, compiled, exported, deleted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from app.text.numbers import format_gap
from tests.app.serving import MYRINET, Live

WIDTHS = [360, 768, 1280, 1920]


@pytest.fixture
def profile(live: Live, request: pytest.FixtureRequest) -> str:
    """A profile with two revisions; its name is this test's own."""
    name = f"p{abs(hash(request.node.name)) % 10**8}-nic"
    first = live.client.post("/profiles", json={"name": name, "pipeline": MYRINET})
    assert first.status_code == 201
    changed: dict[str, Any] = copy.deepcopy(MYRINET)
    changed["stages"][0]["overhead_us"] = 8.1
    second = live.client.put(
        f"/profiles/{name}", json={"pipeline": changed, "detail": "new firmware"}
    )
    assert second.status_code == 200
    return name


def test_a_profile_is_found_and_rolled_back(browser_page: Page, profile: str) -> None:
    """Search, the difference between revisions, another revision, and back to it, confirmed."""
    page = browser_page
    page.goto("/ui/profiles")
    page.get_by_label("Name contains").fill(profile[2:].upper())
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("link", name=profile, exact=True).click()
    revisions = page.get_by_role("region", name="Revisions")
    expect(revisions).to_contain_text("sender copy: overhead +12.5 %")
    expect(revisions).to_contain_text("new firmware")
    revisions.get_by_role("link", name="1", exact=True).click()
    expect(page).to_have_url(f"/ui/profiles/{profile}@1")
    expect(page.get_by_role("group", name="Stages")).to_contain_text("7.2")
    page.get_by_text("Make current…").click()
    page.get_by_role("button", name="Use revision 1 from now on").click()
    expect(page).to_have_url(f"/ui/profiles/{profile}")
    expect(page.locator(".badge").first).to_have_text("revision 1, current")
    assert page.get_by_role("link", name="Optimise a message with this").get_attribute("href") == (
        f"/?profile={profile}@1"
    )


def test_a_table_is_compiled_activated_and_downloaded(
    browser_page: Page, profile: str, live: Live
) -> None:
    """Mistakes are marked; the first table is active; switching to another and its file."""
    page = browser_page
    page.goto(f"/ui/profiles/{profile}")
    page.get_by_label("to", exact=True).fill("64 KB and a half")
    page.get_by_role("button", name="Compile").click()
    expect(page.get_by_label("to", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".mistake")).to_contain_text("expected a size")
    expect(page.get_by_text("It will be the first of revision 2")).to_be_visible()
    reported = {
        "16 KiB": "It is the first of revision 2",
        "32 KiB": "still answer from the active one",
    }
    for max_message, words in reported.items():
        page.get_by_label("to", exact=True).fill(max_message)
        page.get_by_label("Tolerance").fill("5 %")
        page.get_by_role("button", name="Compile").click()
        expect(page.locator(".notice.good")).to_contain_text(f"1 B to {max_message} is compiled")
        expect(page.locator(".notice.good")).to_contain_text(words)
        expect(page.locator("#announcement")).to_contain_text(words)
    tables = page.get_by_role("region", name="Compiled tables")
    expect(tables.get_by_text("active", exact=True)).to_have_count(1)
    expect(tables.get_by_role("row", name="16 KiB")).to_contain_text("active")
    tables.get_by_role("button", name="Activate the table of 1 B to 32 KiB").click()
    expect(tables.get_by_role("row", name="32 KiB")).to_contain_text("active")
    expect(tables.get_by_role("row", name="16 KiB")).not_to_contain_text("active")
    with page.expect_download() as awaited:
        tables.get_by_role("link", name="Table of 1 B to 32 KiB as .slt").click()
    digest = live.client.get(f"/profiles/{profile}/table").json()["digest"]
    stored = live.client.get(f"/tables/{digest}?format=slt").content
    assert awaited.value.path().read_bytes() == stored


def test_a_table_that_misses_its_tolerance_is_activated_where_that_is_confirmed(
    browser_page: Page, profile: str, live: Live, axe: Callable[[Page], list[str]]
) -> None:
    """It is said with the compilation; its page has the ranges and the cause."""
    kept = live.client.post(f"/profiles/{profile}/tables", json={"max_message_bytes": 8192})
    page = browser_page
    page.goto(f"/ui/profiles/{profile}")
    page.get_by_label("to", exact=True).fill("4 KiB")
    page.locator("summary", has_text="Limits of fragments").click()
    page.get_by_label("Multiples of").fill("512 B")
    page.get_by_role("button", name="Compile").click()
    stated = page.locator(".notice.bad")
    expect(stated).to_contain_text("It misses its tolerance of 0.1 %")
    expect(page.locator("#announcement")).to_contain_text("It misses its tolerance")
    page.get_by_role("link", name="which misses its tolerance…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Compiled table of 1 B to 4 KiB")
    missed = page.get_by_role("group", name="Where the tolerance is missed")
    reported = live.client.get(f"/tables/{page.url.rpartition('/')[2]}").json()["missed"]
    expect(missed.get_by_role("row")).to_have_count(1 + len(reported))
    proven = format_gap(reported[0]["relative_gap"])
    expect(missed.get_by_role("row").nth(1)).to_contain_text(proven)
    expect(page.locator(".notice.bad")).to_contain_text("not proven to the tolerance")
    assert axe(page) == []
    active = f"/profiles/{profile}/table"
    assert live.client.get(active).json()["digest"] == kept.json()["digest"]
    page.get_by_role("button", name="Activate all the same").click()
    expect(page.get_by_role("row", name="4 KiB")).to_contain_text("active")
    assert live.client.get(active).json()["digest"] != kept.json()["digest"]


def test_a_compilation_goes_on_without_its_page(
    browser_page: Page, profile: str, live: Live
) -> None:
    """Its address shows where it stands; Cancel says so, and the form keeps what was asked."""
    page = browser_page
    page.goto(f"/ui/profiles/{profile}")
    page.get_by_label("to", exact=True).fill("4 MiB")
    page.get_by_label("Tolerance").fill("0.0002 %")
    page.get_by_role("button", name="Compile").click()
    work = page.locator(".work")
    expect(work.locator("[data-field=steps]")).to_contain_text("% of the range")
    expect(work.get_by_role("heading")).to_be_in_viewport()
    job, address = work.get_attribute("data-work"), page.url
    page.goto("/ui/profiles")
    assert live.client.get(f"/jobs/{job}").json()["state"] == "running"
    page.goto(f"/ui/profiles/{profile}")
    expect(work).to_have_attribute("data-work", str(job))
    expect(work.get_by_role("progressbar")).to_be_visible()
    page.goto(address)
    expect(work).to_have_attribute("data-work", str(job))
    work.get_by_role("button", name="Cancel").click()
    expect(work.locator("[data-field=word]")).to_have_text("stopped")
    expect(page.locator("#announcement")).to_have_text("Stopped.")
    expect(page.get_by_role("button", name="Start again")).to_be_visible()
    expect(page.get_by_label("Tolerance")).to_have_value("0.0002 %")
    expect(page.get_by_role("region", name="Compiled tables")).to_contain_text("None is compiled")


def test_limits_that_exclude_each_other_are_said_at_the_form(
    browser_page: Page, profile: str
) -> None:
    """The form keeps what was typed, and its limits are open."""
    page = browser_page
    page.goto(f"/ui/profiles/{profile}")
    page.get_by_text("Limits of fragments", exact=True).first.click()
    page.get_by_label("At least").fill("8 KiB")
    page.get_by_label("At most").fill("4 KiB")
    page.get_by_role("button", name="Compile").click()
    expect(page.locator(".mistake, [role=alert]").first).to_be_visible()
    expect(page.get_by_label("At least")).to_have_value("8 KiB")


def test_an_export_is_written_copied_and_kept(new_page: Callable[..., Page], profile: str) -> None:
    """The text comes by itself; another choice has another address; copy and download agree."""
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    page.goto(f"/ui/profiles/{profile}/exports/nccl-env?min_message=4KiB&max_message=4100")
    text = page.locator("#exported-text")
    expect(text).to_contain_text("NCCL_P2P_NET_CHUNKSIZE=")
    expect(page.locator(".exported .verdict")).to_contain_text(" in the mean, ")
    expect(page.get_by_text("The target takes sizes of ")).to_be_visible()
    expect(page.get_by_role("link", name="An audit of this size")).to_be_visible()
    page.get_by_label("form").select_option("shell")
    page.get_by_role("button", name="Write it").click()
    expect(text).to_contain_text("export NCCL_P2P_NET_CHUNKSIZE=")
    assert "option.form=shell" in page.url
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    with page.expect_download() as awaited:
        page.get_by_role("link", name="Download").click()
    assert copied == awaited.value.path().read_text() == text.text_content()


def test_an_export_that_needs_a_table_says_so(browser_page: Page, profile: str) -> None:
    """The refusal stands where the text would."""
    browser_page.goto(f"/ui/profiles/{profile}/exports/nccl")
    expect(browser_page.locator(".refused")).to_contain_text("there is no active one")
    browser_page.goto(f"/ui/profiles/{profile}/exports/loggopsim?option.eager_bytes=many")
    expect(browser_page.locator(".mistake")).to_contain_text("expected eager_bytes to match")


def test_deleting_asks_first(browser_page: Page, profile: str, live: Live) -> None:
    """One click shows what goes; the second deletes; answers stay."""
    live.client.post("/optimize", json={"profile": profile, "message_bytes": 5000})
    page = browser_page
    page.goto(f"/ui/profiles/{profile}")
    expect(page.get_by_role("button", name=f"Delete {profile}")).not_to_be_visible()
    page.get_by_text("Delete this profile…").click()
    page.get_by_role("button", name=f"Delete {profile}").click()
    expect(page).to_have_url("/ui/profiles")
    assert live.client.get(f"/profiles/{profile}").status_code == 404
    page.goto(f"/ui/profiles/{profile}")
    expect(page.locator(".refused")).to_contain_text("Not found")
    page.goto(f"/ui/answers?profile={profile}")
    expect(page.get_by_role("row")).to_have_count(2)


def test_a_revision_is_made_current_by_keyboard_alone(browser_page: Page, profile: str) -> None:
    """Tab to it, open it, confirm it."""
    page = browser_page
    page.goto(f"/ui/profiles/{profile}")
    page.get_by_text("Make current…").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".badge").first).to_have_text("revision 1, current")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_profiles_are_accessible(
    new_page: Callable[..., Page],
    axe: Callable[[Page], list[str]],
    profile: str,
    live: Live,
    scheme: str,
) -> None:
    """Nothing serious on the list, a profile with everything on it, and an export."""
    scope = {"max_message_bytes": 16384, "relative_gap": 0.05}
    assert live.client.post(f"/profiles/{profile}/tables", json=scope).status_code == 201
    page = new_page(color_scheme=scheme)
    for path in ("", f"/{profile}", f"/{profile}@1/exports/simgrid"):
        page.goto(f"/ui/profiles{path}")
        page.wait_for_load_state("networkidle")
        assert axe(page) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_no_profile_is_wider_than_the_window(
    new_page: Callable[..., Page], profile: str, width: int
) -> None:
    """Tables scroll in themselves."""
    page = new_page(width=width)
    for path in ("", f"/{profile}", f"/{profile}/exports/ucx"):
        page.goto(f"/ui/profiles{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_where_a_counted_profile_is_from_does_not_widen_the_list(
    new_page: Callable[..., Page], live: Live
) -> None:
    """Its layer's document has words that are longer than a line: they are broken."""
    asked = {"layer": "cmam-finite", "message_bytes": [64], "clock_mhz": 33.0}
    answer = live.client.post("/layer-costs", json={**asked, "save_as": "counted-wide"})
    assert answer.status_code == 200, answer.text
    page = new_page(width=1300, height=900)
    page.goto("/ui/profiles?q=counted-wide")
    expect(page.get_by_role("row", name="counted-wide")).to_contain_text("counted: {")
    width = "table => table.scrollWidth - table.parentElement.clientWidth"
    assert page.locator("table.listing").evaluate(width) <= 0
