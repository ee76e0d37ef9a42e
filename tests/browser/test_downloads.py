"""Taking an answer away: files, texts on the clipboard, the report."""

from __future__ import annotations

import csv
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Download, Page, expect

from app.schemas.base import read_output
from app.verbs.optimize.page.snippets import take_away
from contract.optimize import OptimizeOut
from tests.app.serving import MYRINET, Live

Axe = Callable[[Page], list[str]]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def answer(live: Live) -> str:
    """The identifier of the answer for 4 KiB through Myrinet."""
    body = {"message_bytes": 4096, "pipeline": MYRINET}
    return str(live.client.post("/optimize", json=body).json()["id"])


def downloaded(page: Page, role: str, name: str, folder: Path) -> tuple[Download, bytes]:
    """What a link or a button of the panel saves."""
    panel = page.locator("#take-away")
    with page.expect_download() as saved:
        panel.get_by_role(role, name=name, exact=True).click()  # type: ignore[arg-type]
    path = folder / saved.value.suggested_filename
    saved.value.save_as(path)
    return saved.value, path.read_bytes()


def test_files_of_an_answer(browser_page: Page, answer: str, live: Live, tmp_path: Path) -> None:
    """Each is saved under a name that says whose it is, and the page stays."""
    page = browser_page
    page.goto(f"/ui/answers/{answer}")
    stored = live.client.get(f"/optimizations/{answer}").content
    saved, body = downloaded(page, "link", "JSON", tmp_path)
    assert saved.suggested_filename == f"sluice-4096-bytes-{answer[-8:]}.json"
    assert body == stored
    _, body = downloaded(page, "link", "CSV", tmp_path)
    rows = list(csv.DictReader(body.decode().splitlines()))
    assert [int(row["fragment_bytes"]) for row in rows] == json.loads(stored)["fragment_bytes"]
    _, body = downloaded(page, "link", "SVG", tmp_path)
    assert b'class="sluice-timeline"' in body
    _, body = downloaded(page, "button", "PNG", tmp_path)
    assert body.startswith(PNG)
    width, height = struct.unpack(">II", body[16:24])
    assert width == 1920
    assert height > 500
    expect(page.locator("#announcement")).to_have_text("PNG saved")


def test_curves_are_saved_as_they_are_drawn(
    browser_page: Page, answer: str, tmp_path: Path
) -> None:
    """A picture of each, under the name of what it shows."""
    page = browser_page
    page.goto(f"/ui/answers/{answer}")
    expect(page.locator(".later")).to_have_count(0)
    expect(page.locator("[data-chart]")).to_have_count(4)
    saved: list[Download] = []
    page.on("download", lambda one: saved.append(one))
    shown = ("sweep", "fragments", "counts", "sizes")
    with page.expect_download(lambda one: f"-{shown[-1]}" in one.suggested_filename):
        page.locator("#take-away").get_by_role("button", name="Curves").click()
    names = [f"sluice-4096-bytes-{answer[-8:]}-{one}.png" for one in shown]
    assert [one.suggested_filename for one in saved] == names
    for one in saved:
        one.save_as(tmp_path / one.suggested_filename)
        assert (tmp_path / one.suggested_filename).read_bytes().startswith(PNG)


def test_texts_are_copied(new_page: Callable[..., Page], answer: str, live: Live) -> None:
    """Exactly what is shown lands on the clipboard, by mouse and by keyboard."""
    page = new_page(permissions=["clipboard-read", "clipboard-write"])
    page.goto(f"/ui/answers/{answer}")
    body = live.client.get(f"/optimizations/{answer}").content
    panel = page.locator("#take-away")
    for one in take_away(read_output(OptimizeOut, body), f"http://127.0.0.1:{live.port}").snippets:
        panel.get_by_text(f"Copy as {one.name}", exact=True).press("Enter")
        panel.locator(f"[data-copy=snippet-{one.key}]").click()
        expect(page.locator("#announcement")).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == one.text
        assert panel.locator("details[open]").count() == 1


def test_where_there_is_no_clipboard_the_text_is_selected(
    new_page: Callable[..., Page], answer: str
) -> None:
    """As on a page that came by plain HTTP from another machine."""
    page = new_page()
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.goto(f"/ui/answers/{answer}")
    page.get_by_text("Copy as curl", exact=True).click()
    page.locator("[data-copy=snippet-curl]").click()
    expect(page.locator("#announcement")).not_to_be_empty()
    shown = page.locator("#snippet-curl").text_content()
    assert page.evaluate("getSelection().toString()").strip() == (shown or "").strip()


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_the_panel_fits_every_window(
    new_page: Callable[..., Page], answer: str, width: int, scheme: str, axe: Axe
) -> None:
    """Open as well; nothing serious."""
    page = new_page(width=width, color_scheme=scheme)
    page.goto(f"/ui/answers/{answer}")
    page.get_by_text("Copy as C", exact=True).click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe(page) == []


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_the_report_stands_alone(
    browser: Browser,
    browser_page: Page,
    answer: str,
    axe: Axe,
    tmp_path: Path,
    width: int,
    scheme: str,
) -> None:
    """Opened from the disk, offline and without scripts, it has all of it and asks for nothing."""
    browser_page.goto(f"/ui/answers/{answer}")
    saved, _ = downloaded(browser_page, "link", "Report", tmp_path)
    options: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    context = browser.new_context(offline=True, **options)
    page = context.new_page()
    asked: list[str] = []
    stated: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: stated.append(message.text))
    page.goto(f"file://{tmp_path / saved.suggested_filename}")
    assert len(asked) == 1
    assert stated == []
    expect(page.get_by_role("heading", level=1)).to_have_text("4 KiB through 4 stages")
    assert page.locator("script").count() == 0
    assert page.locator("svg.sluice-timeline .block").count() > 20
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe(page) == []
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
    context.close()
