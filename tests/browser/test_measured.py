"""Measurements of a machine by hand: stages measured apart, and transfers that verify a profile."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from domain.pipeline import pipeline_of_lines
from tests.app.serving import Live
from tests.support.transfers import transfers_of
from tests.web.test_compose_page import COPY, WIRE
from tests.web.test_fits import TRACE

DROP = """([place, files]) => {
    const data = new DataTransfer();
    for (const [name, text] of files) data.items.add(new File([text], name));
    document.querySelector(place).dispatchEvent(
        new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
}"""


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_a_pipeline_is_composed_of_files_and_a_stored_stage(
    new_page: Callable[..., Page],
    axe_of_any_impact: Callable[[Page], list[str]],
    live: Live,
    tmp_path: Path,
    width: int,
    scheme: str,
) -> None:
    """One dropped, one chosen, one stored; a name is proposed, mistakes lead to their row."""
    live.client.post("/fit?save_as=direct-path", content=TRACE)
    page = new_page(width=width, color_scheme=scheme)
    page.goto("/?empty=yes")
    page.get_by_role("radio", name="Trace").check()
    page.get_by_role("link", name="Stages that were measured each by itself").click()
    expect(page.locator("h1")).to_have_text("Stages measured apart")
    assert axe_of_any_impact(page) == []
    page.get_by_role("button", name="Add a stage").click()
    expect(page.locator(".measured-row")).to_have_count(3)
    page.evaluate(DROP, ["#trace-0", [["copy.csv", f"# stage: memcpy\n{COPY}"]]])
    expect(page.locator("#name-0")).to_have_value("memcpy")
    page.locator("#name-0").fill("in")
    file = tmp_path / "sum.csv"
    file.write_text(COPY.replace("copy", "crc"))
    page.set_input_files("#file-1", file)
    expect(page.locator("#name-1")).to_have_value("sum")
    for row in ("0", "1"):
        page.locator(f"#processor-{row}").fill("cpu0")
    page.locator("#name-2").fill("wire")
    page.locator("#stored-2").fill("direct-path/none")
    page.get_by_role("button", name="Fit the pipeline").click()
    expect(page.locator("#stored-2-mistake")).to_contain_text("one of copy_in")
    expect(page.locator("#stored-2")).to_be_focused()
    expect(page.locator("#trace-0")).to_have_value(re.compile("256,5.256"))
    assert axe_of_any_impact(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("#stored-2").fill("direct-path@1/loopback_tcp")
    page.get_by_role("button", name="Stage 3: move up").click()
    expect(page.locator("#name-1")).to_have_value("wire")
    page.get_by_role("button", name="Stage 2: move down").click()
    page.get_by_role("button", name="Fit the pipeline").click()
    page.wait_for_url(re.compile("/ui/fits/"))
    expect(page.locator("main")).to_contain_text("in + sum")
    expect(page.locator("[data-fit-chart][data-drawn=yes]")).to_have_count(2)


def test_files_beside_the_rows_go_into_those_that_are_empty(browser_page: Page) -> None:
    """From above, each with its name; what finds no row is said, and the page stays."""
    page = browser_page
    page.goto("/ui/compose")
    page.locator("#trace-0").fill(WIRE)
    files = [["copy.csv", COPY], ["sum.csv", f"# stage: crc32\n{COPY}"]]
    page.evaluate(DROP, ["#compose", files[:1]])
    expect(page.locator("#name-1")).to_have_value("copy")
    expect(page.locator("#trace-1")).to_have_value(COPY)
    page.evaluate(DROP, ["#compose-title", files])
    refused = page.locator(".measured-row").nth(1).get_by_role("alert")
    expect(refused).to_contain_text("2 files find no empty field")
    expect(page.locator("#trace-0")).to_have_value(WIRE)
    page.get_by_role("button", name="Add a stage").click()
    expect(page.locator(".measured-row")).to_have_count(3)
    page.evaluate(DROP, ["#compose", files[1:]])
    expect(page.locator("#name-2")).to_have_value("crc32")


def test_what_is_no_file_of_measurements_is_refused_where_it_is_dropped(browser_page: Page) -> None:
    """Several, none, and what is no text; the field stays as it was."""
    page = browser_page
    page.goto("/ui/compose")
    page.locator("#trace-1").fill(WIRE)
    refused = page.locator(".measured-row").nth(1).get_by_role("alert")
    for files, words in (
        ([["a", "1"], ["b", "2"]], "One file a field"),
        ([["a", ""]], "empty"),
        ([["a", "1\0"]], "no plain text"),
        ([["a", "1,\n" * 2**19]], "the form would have more than 4 MiB"),
    ):
        page.evaluate(DROP, ["#trace-1", files])
        expect(refused).to_contain_text(words)
    expect(page.locator("#trace-1")).to_have_value(WIRE)


def test_stages_are_composed_without_scripts(new_page: Callable[..., Page]) -> None:
    """Rows are added and moved by buttons, and texts pasted."""
    page = new_page(java_script_enabled=False)
    page.goto("/ui/compose")
    for row, (name, text) in enumerate((("wire", WIRE), ("copy", COPY))):
        page.locator(f"#name-{row}").fill(name)
        page.locator(f"#trace-{row}").fill(text)
    page.get_by_role("button", name="Reverse").click()
    expect(page.locator("#name-0")).to_have_value("copy")
    page.get_by_role("button", name="Fit the pipeline").click()
    expect(page).to_have_url(re.compile("/ui/fits/"))


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_transfers_are_dropped_and_compared(
    new_page: Callable[..., Page],
    axe_of_any_impact: Callable[[Page], list[str]],
    live: Live,
    width: int,
    scheme: str,
) -> None:
    """The command is copied; a wrong file is said to be; the verdict has every size."""
    name = f"verified-{width}"
    stages = [
        {"name": stage, "measurements": {"content": f"# stage: {probed}\n{text}"}}
        for stage, probed, text in (("copy", "memcpy", COPY), ("wire", "tcp", WIRE))
    ]
    assert live.client.post("/compose", json={"stages": stages, "save_as": name}).is_success
    page = new_page(width=width, color_scheme=scheme)
    page.goto(f"/ui/profiles/{name}")
    part = page.get_by_role("region", name="Verification")
    expect(part).to_contain_text("Not verified")
    expect(part.locator("pre")).to_contain_text(f"verify {name}.json --stage memcpy --stage tcp")
    copy = part.get_by_role("button", name="Copy the commands")
    copy.click()
    expect(copy).to_have_text(re.compile("Copied|Selected: copy"))
    page.evaluate(DROP, ["#transfers", [["transfers.csv", "# stages: a\nno, transfers"]]])
    part.get_by_role("button", name="Keep the verdict").click()
    expect(page.locator("#transfers-mistake")).to_contain_text("sluice verify writes")
    expect(page.locator("#transfers")).to_be_focused()
    expect(page.locator("#transfers")).to_have_value("# stages: a\nno, transfers")
    assert axe_of_any_impact(page) == []
    runs = transfers_of(pipeline_of_lines([("copy", 5.0, 1.0), ("wire", 9.0, 3.5)]))
    page.evaluate(DROP, ["#transfers", [["transfers.csv", runs]]])
    part.get_by_role("button", name="Keep the verdict").click()
    expect(part.locator("strong")).to_have_text("The model does not hold here.")
    expect(page).to_have_url(f"/ui/profiles/{name}@1#verification")
    expect(part.locator("tbody tr")).to_have_count(7)
    expect(page.get_by_role("note").first).to_contain_text("failed its verification")
    assert axe_of_any_impact(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_transfers_are_pasted_without_scripts(new_page: Callable[..., Page], live: Live) -> None:
    """The form is one; a better machine takes the place of the verdict."""
    stages = [{"name": "copy", "overhead_us": 5.0, "ns_per_byte": 1.0}]
    live.client.post("/profiles", json={"name": "typed-in", "pipeline": {"stages": stages}})
    page = new_page(java_script_enabled=False)
    for ns_per_byte, words in ((2.0, "does not hold"), (1.0, "holds: every size")):
        page.goto("/ui/profiles/typed-in")
        machine = pipeline_of_lines([("copy", 5.0, ns_per_byte)])
        page.locator("#transfers").fill(transfers_of(machine, ("memcpy",)))
        page.get_by_role("button", name="the verdict").click()
        expect(page.locator("#verification strong")).to_contain_text(words)
