"""A stranger's walk: three questions, each answered in at most five steps from the first view."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from analysis import explore
from tests.app.serving import MYRINET, Live
from tests.architecture.documents import ROOT
from tools.walk import MAX_STEPS, WALKS, take


@pytest.fixture(autouse=True)
def quick_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less time for what is drawn around an answer: the server is in this process."""
    monkeypatch.setattr(explore, "SIZES_LIMIT_S", 0.3)
    monkeypatch.setattr(explore, "ALTERNATIVES_LIMIT_S", 0.2)


def walked(page: Page, name: str) -> None:
    """Take all steps of a walk."""
    walk = next(one for one in WALKS if one.name == name)
    assert len(walk.steps) <= MAX_STEPS
    take(walk, page, lambda _: None)


def set_of(page: Page) -> str:
    """What the answer opens with."""
    return page.locator("#set-this").inner_text()


def test_what_do_i_set_in_ucx(browser_page: Page) -> None:
    """ "I copy 16 MiB from GPU to GPU through host memory": what to set, its gain, how sure."""
    walked(browser_page, "ucx")
    said = set_of(browser_page)
    assert "Repeat 2 MiB" in said
    assert re.search(r"[\d.]+ % to [\d.]+ % faster than the defaults of 4 systems", said)
    assert "within 2 % of the best size in 90 % of the draws or more" in said
    assert "costs that are known to ±10 %" in said
    library = browser_page.locator("#library")
    expect(library).to_contain_text("UCX_RNDV_FRAG_SIZE=host:2097152")
    expect(library.locator("pre")).to_contain_text("library's default: 524288 bytes")


def test_what_does_64_kib_cost_us(browser_page: Page) -> None:
    """ "My team uses 64 KiB everywhere": one field and Optimise, or Ctrl+Enter."""
    walked(browser_page, "team")
    assert re.search(r"[\d.]+ % faster than your 64 KiB", set_of(browser_page))
    row = browser_page.locator("#choices tr", has_text="your setting")
    expect(row).to_contain_text("64 KiB")
    expect(row).to_contain_text(re.compile(r"37\d %"))
    expect(browser_page.locator(".changed")).to_contain_text("Against the answer before")


def test_what_if_the_network_were_twice_as_fast(browser_page: Page) -> None:
    """One click, and the answer says what it changes, and where both are side by side."""
    seen = []

    def note(step: int) -> None:
        seen.append(browser_page.locator(".changed").inner_text() if step == 2 else "")

    take(next(one for one in WALKS if one.name == "network"), browser_page, note)
    assert len(seen) <= 1 + MAX_STEPS
    assert re.search(r"latency [\d.]+ µs, instead of [\d.]+ µs \(−[\d.]+ %\)", seen[2])
    assert "bottleneck device to host copy, as before" in seen[2]
    assert "1.4 µs + 0.0102 ns/byte instead of 2.8 µs + 0.0204 ns/byte" in seen[2]
    expect(browser_page.get_by_role("heading", level=1)).to_have_text("2 answers side by side")


def test_the_document_has_every_step_with_its_picture() -> None:
    """docs/walk.md says them in their order, in the words of what was walked here."""
    text = (ROOT / "docs/walk.md").read_text(encoding="utf-8")
    at = 0
    for walk in WALKS:
        at = text.index(f"## {walk.question}", at)
        for number, step in enumerate(walk.steps, start=1):
            at = text.index(f"{number}. {step.words}", at)
            picture = f"screenshots/{walk.picture(number)}"
            at = text.index(f"]({picture})", at)
            assert (ROOT / "docs" / picture).stat().st_size < 150_000


def test_a_cost_slides_and_the_answer_follows(browser_page: Page) -> None:
    """By the keyboard, in place: the slider keeps the focus; its answer can be opened."""
    page = browser_page
    page.goto("/")
    slider = page.get_by_role("slider", name="400G RDMA write, cost a byte")
    slider.focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    expect(slider).to_have_attribute("aria-valuetext", "×0.5")
    found = page.locator("#what-if-found")
    expect(found).to_contain_text("0.0102 ns/byte instead of 2.8 µs + 0.0204 ns/byte")
    expect(slider).to_be_focused()
    page.get_by_role("button", name="All as they are").click()
    expect(found).to_contain_text("Slide costs")
    expect(slider).to_have_attribute("aria-valuetext", "×1")
    slider.focus()
    page.keyboard.press("End")
    expect(found).to_contain_text("0.0816 ns/byte instead of")
    page.keyboard.press("Enter")
    expect(page.locator(".panel.answer .changed")).to_contain_text("0.0816 ns/byte instead of")


def test_a_refusal_of_slid_costs_is_said_until_they_are_others(
    browser_page: Page, live: Live
) -> None:
    """It stands where what they change would, and can be slid away."""
    stages = [{"name": "slow", "overhead_us": 5e11, "ns_per_byte": 1}, MYRINET["stages"][0]]
    asked = {"message_bytes": 4096, "pipeline": {"stages": stages}}
    answer = live.client.post("/optimize", json=asked).json()["id"]
    browser_page.goto(f"/ui/answers/{answer}")
    found = browser_page.locator("#what-if-found")
    browser_page.get_by_role("slider", name="slow, overhead").focus()
    browser_page.keyboard.press("End")
    expect(found).to_contain_text("Invalid stage")
    browser_page.keyboard.press("Home")
    expect(found).to_contain_text("With these costs")
    expect(found).not_to_contain_text("Invalid stage")
    browser_page.get_by_role("button", name="All as they are").click()
    expect(found).to_contain_text("Slide costs")


def test_all_three_by_keyboard_alone(browser_page: Page) -> None:
    """The answer, its libraries, the setting and what if: reached by Tab, worked by Enter."""
    page = browser_page
    page.goto("/")
    expect(page.locator("#library.later")).to_have_count(0)
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # skip to the answer
    assert page.evaluate("document.activeElement.id") == "answer-title"
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent.trim()"))
        if reached[-1] == "NCCL":
            break
    assert len(reached) <= 8  # a few stops from the answer to its libraries
    page.keyboard.press("Enter")
    expect(page.locator("#library")).to_contain_text("NCCL_P2P_NET_CHUNKSIZE")
    expect(page.locator("#library .notice.bad").first).to_contain_text("the wrong knob here")
    page.get_by_label("Your setting now").focus()
    page.keyboard.type("64 KiB")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("current=64"))
    page.get_by_role("button", name="½: 400G RDMA write, cost a byte").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("last="))
    expect(page.locator(".changed")).to_contain_text("0.0102 ns/byte instead of")
    assert "your 64 KiB" in set_of(page)


def test_no_charting_script_before_the_first_chart(browser_page: Page) -> None:
    """It is loaded when somebody comes near one."""
    page, asked = browser_page, []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/")
    expect(page.locator(".later")).to_have_count(0)
    assert not [url for url in asked if "echarts" in url]
    page.locator("#by-fragment [data-chart]").scroll_into_view_if_needed()
    expect(page.locator("#by-fragment [data-chart]")).to_have_attribute("data-drawn", "yes")
    assert [url for url in asked if "echarts" in url]


@pytest.mark.parametrize("width", [1440, 1280, 768, 390])
@pytest.mark.parametrize("look", ["light", "dark", "forced"])
def test_the_first_view_at_every_width(
    new_page: Callable[..., Page], axe: Callable[[Page], list[str]], width: int, look: str
) -> None:
    """No wider than the window, nothing serious for axe, in every scheme and forced colours."""
    more: dict[str, Any] = {"forced_colors": "active"} if look == "forced" else {}
    page = new_page(width=width, color_scheme="dark" if look == "dark" else "light", **more)
    page.goto("/")
    expect(page.locator(".later")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe(page) == []
