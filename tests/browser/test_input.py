"""The input panel in a browser: keys, paste, units, files, mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

TRACE = Path(__file__).parents[2] / "examples" / "local-path-direct.csv"
ANSWER = re.compile(r"/ui/answers/[0-9a-f]{32}")
FIT = re.compile(r"/ui/fits/[0-9a-f]{32}")
SHEET = "Stage\tOverhead (ns)\tBandwidth (Gb/s)\ncopy\t1500\t80\nwire, far\t2500\t8\n"


def column(page: Page, name: str) -> list[str]:
    """What a column of the table holds."""
    values: list[str] = page.eval_on_selector_all(
        f"[data-column={name}]", "cells => cells.map(cell => cell.value)"
    )
    return values


def paste(page: Page, text: str, cell: str = "#name-0") -> None:
    """Paste as the keyboard does."""
    page.eval_on_selector(
        cell,
        """(cell, text) => {
            const data = new DataTransfer();
            data.setData("text/plain", text);
            const how = {clipboardData: data, bubbles: true, cancelable: true};
            cell.dispatchEvent(new ClipboardEvent("paste", how));
        }""",
        text,
    )


def drop(page: Page, *files: tuple[str, str]) -> None:
    """Drop files on the panel."""
    page.evaluate(
        """files => {
            const data = new DataTransfer();
            for (const [name, text] of files) data.items.add(new File([text], name));
            document.getElementById("input").dispatchEvent(
                new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
        }""",
        list(files),
    )


def focused(page: Page) -> str:
    """The id of what has the focus."""
    found: str = page.evaluate("document.activeElement.id")
    return found


def test_a_spreadsheet_with_a_header_is_pasted(browser_page: Page) -> None:
    """Columns and units come from its header, and it takes the empty rows' place."""
    browser_page.goto("/?empty=yes")
    paste(browser_page, SHEET)
    assert column(browser_page, "name") == ["copy", "wire, far"]
    assert column(browser_page, "overhead") == ["1500", "2500"]
    assert browser_page.input_value("#overhead-unit") == "ns"
    assert browser_page.input_value("#cost-unit") == "gbit_per_s"
    expect(browser_page.locator("#stage-count")).to_have_text("2 of 64 stages")
    expect(browser_page.locator("#announcement")).to_have_text("2 rows pasted.")


@pytest.mark.parametrize(
    ("text", "names", "overheads", "costs"),
    [
        ("a,1,2\nb,3,4", ["a", "b"], ["1", "3"], ["2", "4"]),
        ('"a, b";1,5;2\nc;3;4', ["a, b", "c"], ["1.5", "3"], ["2", "4"]),
        ("1\t2\n3\t4\n", ["", ""], ["1", "3"], ["2", "4"]),
        ("G,g,name\n1,2,x", ["x"], ["2"], ["1"]),
        ("cost_ns_per_byte,overhead_us\r\n1,2\r\n", [""], ["2"], ["1"]),
    ],
)
def test_other_sheets(
    browser_page: Page, text: str, names: list[str], overheads: list[str], costs: list[str]
) -> None:
    """Commas, semicolons, decimal commas, no header, no names, the papers' letters."""
    browser_page.goto("/?empty=yes")
    paste(browser_page, text)
    assert column(browser_page, "name")[: len(names)] == names
    assert column(browser_page, "overhead")[: len(names)] == overheads
    assert column(browser_page, "cost")[: len(names)] == costs


def test_units_in_cells_are_read(browser_page: Page) -> None:
    """The first row's units become the columns'; the others' numbers are converted to them."""
    browser_page.goto("/?empty=yes")
    paste(browser_page, "copy\t1.2 µs\t10 GB/s\nwire\t800 ns\t80 Gb/s")
    assert column(browser_page, "overhead")[:2] == ["1.2", "0.8"]
    assert column(browser_page, "cost")[:2] == ["10", "10"]
    assert browser_page.input_value("#cost-unit") == "gb_per_s"
    expect(browser_page.locator("#pasted p")).to_have_text("2 rows pasted.")
    paste(browser_page, "disk\t1 ms\t16 Gb/s\nlast\t1 ns\t8 Gb/s", "#name-1")
    assert column(browser_page, "overhead") == ["1.2", "1000", "0.001"]
    assert column(browser_page, "cost") == ["10", "2", "1"]


def test_numbers_without_units_say_how_they_were_read(browser_page: Page) -> None:
    """Choosing a unit afterwards converts, which is not what a bandwidth that was pasted needs."""
    browser_page.goto("/?empty=yes")
    paste(browser_page, "copy\t1.2\t9.5\nwire\t0.4\t11.2")
    expect(browser_page.locator("#pasted")).to_contain_text("Read as µs and ns/byte")
    expect(browser_page.locator("#announcement")).to_contain_text(
        "2 rows pasted. Read as µs and ns/byte"
    )


def test_an_answer_shows_the_units_that_were_sent(
    browser_page: Page, new_page: Callable[..., Page]
) -> None:
    """Its address has them, so that whoever is sent it sees what was typed."""
    browser_page.goto("/?empty=yes")
    paste(browser_page, "Stage\tOverhead (us)\tRate (GB/s)\ncopy\t1.2\t9.5\nwire\t0.4\t11.2")
    browser_page.keyboard.press("Control+Enter")
    browser_page.wait_for_selector("#answer-title")
    expect(browser_page.locator("#cost-unit")).to_have_value("gb_per_s")
    assert column(browser_page, "cost") == ["9.5", "11.2"]
    assert column(browser_page, "overhead") == ["1.2", "0.4"]
    assert browser_page.url.endswith("?cost_unit=gb_per_s")
    colleague = new_page(java_script_enabled=False)
    colleague.goto(browser_page.url)
    expect(colleague.locator("#cost-0")).to_have_value("9.5")
    expect(colleague.locator("#cost-unit")).to_have_value("gb_per_s")


HEADERS = {
    "Bandwidth (GiB/s)": "gib_per_s",
    "BW (MB/s)": "mb_per_s",
    "Throughput GB/sec": "gb_per_s",
    "bandwidth gbps": "gbit_per_s",
    "Bandwidth_GBs": "gb_per_s",
    "rate, TB/s": "tb_per_s",
    "Mb/s": "mbit_per_s",
    "Time per byte (ns)": "ns_per_byte",
    "cost a byte": "ns_per_byte",
    "Bandwidth": "unspecified",
    "Speed [x]": "unspecified",
    "BW (gb/s)": "unspecified",
    "cost_cycles": "unspecified",
    "per byte (us)": "unspecified",
}


def test_headers_and_their_units(browser_page: Page) -> None:
    """One that is not known is no time per byte."""
    browser_page.goto("/?empty=yes")
    found = browser_page.evaluate(
        """headers => headers.map(header => {
            const text = `Stage\\t${header}\\na\\t10`;
            const read = SluiceSheet.read(text, "name", {cost: "ns_per_byte"});
            const known = read.units.cost ?? "ns_per_byte";
            return [header, read.rows[0].cost, "cost" in read.asked ? "unspecified" : known];
        })""",
        list(HEADERS),
    )
    assert found == [[header, "10", unit] for header, unit in HEADERS.items()]


def test_a_bandwidth_without_a_unit_is_asked_back(
    browser_page: Page, axe: Callable[[Page], list[str]]
) -> None:
    """By the page at once and by the server; the unit that is chosen converts nothing."""
    browser_page.goto("/?empty=yes")
    paste(
        browser_page, "Stage\tOvh\tFoo\tBW (GiB per x)\na\t1\t7\t10\nb\t2\t7\t20\nTotal\t3\t7\t30"
    )
    stated = browser_page.locator("#pasted p")
    expect(stated).to_contain_text("2 rows pasted. Column “Foo” was not pasted")
    expect(stated).to_contain_text("Row “Total” was not pasted")
    expect(stated).to_contain_text("Cost: which unit is “GiB per x”? Choose it above.")
    assert axe(browser_page) == []
    browser_page.keyboard.press("Control+Enter")
    expect(browser_page.locator("#mistakes")).to_contain_text("One field needs a change")
    assert focused(browser_page) == "cost-unit"
    browser_page.select_option("#cost-unit", "gib_per_s")
    assert column(browser_page, "cost") == ["10", "20"]
    expect(browser_page.locator("#mistake-cost-unit")).to_have_count(0)
    browser_page.keyboard.press("Control+Enter")
    browser_page.wait_for_url(ANSWER)


WRITTEN = [
    ("12,6 1,5", "12.6 1.5", "2 numbers were rewritten: 12,6 to 12.6, 1,5 to 1.5."),
    ("1,200 12,345.5", "1200 12345.5", "1,200 to 1200, 12,345.5 to 12345.5"),
    ("1,200 2.5", "1200 2.5", "1,200 to 1200"),
    ("1,200 12,6", "1.200 12.6", "1,200 to 1.200"),
    ("0,125 1.234,5", "0.125 1234.5", "1.234,5 to 1234.5"),
    ("1,200 1,300", "1,200 1,300", "2 cells not read"),
    ("1,200 7", "1,200 7", "1 cell not read"),
    ("12,6 1.200", "12.6 1.200?", "1 cell not read"),
    ("9.5x 7", "9.5x 7", "1 cell not read"),
    ("9.5GB/s 7", "9.5 7?", "1 cell not read"),
    ("9.5GB/s 8Gb/s", "9.5 1", "2 rows pasted."),
]


def test_numbers_as_people_write_them(browser_page: Page) -> None:
    """Read where the column makes them certain, said in either case, and marked where not."""
    browser_page.goto("/?empty=yes")
    for cells, costs, words in WRITTEN:
        first, second = cells.split()
        paste(browser_page, f"Stage\tOverhead (us)\tCost\na\t1\t{first}\nb\t2\t{second}")
        found = [cell.replace(" ", "") for cell in column(browser_page, "cost")[:2]]
        assert found == costs.split()
        expect(browser_page.locator("#pasted p")).to_contain_text(words)
        wrong = re.search(r"(\d) cells? not read", words)
        marked = browser_page.locator("[data-column=cost][aria-invalid=true]")
        expect(marked).to_have_count(int(wrong[1]) if wrong else 0)


def test_commas_within_numbers_do_not_shift_cells(browser_page: Page) -> None:
    """Neither those of one column nor those of a row that has too many cells."""
    browser_page.goto("/?empty=yes")
    paste(browser_page, "1,200\n3,400", "#overhead-0")
    assert column(browser_page, "overhead")[:2] == ["1,200", "3,400"]
    paste(browser_page, "Stage,Overhead,Cost\na,1,200,5\nb,1,2")
    assert column(browser_page, "overhead")[0] == "1 ?"
    assert column(browser_page, "cost")[0] == "200 ?"
    expect(browser_page.locator("#pasted p")).to_contain_text("Row 1 has more cells than others")


def test_what_was_pasted_is_taken_back(browser_page: Page) -> None:
    """With the units and rows that were there, by keys or by its button."""
    browser_page.goto("/?example=gms")
    before = [column(browser_page, name) for name in ("name", "overhead", "cost")]
    for way in ("keys", "button"):
        paste(browser_page, "Stage\tOverhead (ns)\tBW\na\t1\tx")
        expect(browser_page.locator("#mistake-cost-0")).to_contain_text("“x” is not read")
        if way == "keys":
            browser_page.keyboard.press("Control+z")
        else:
            browser_page.click("#undo-paste")
        assert [column(browser_page, name) for name in ("name", "overhead", "cost")] == before
        assert browser_page.input_value("#overhead-unit") == "us"
        assert browser_page.input_value("#cost-unit") == "ns_per_byte"
        expect(browser_page.locator("[aria-invalid=true]")).to_have_count(0)
        expect(browser_page.locator("#pasted button")).to_be_hidden()


def test_one_cell_takes_a_cells_place_with_its_unit(browser_page: Page) -> None:
    """Pasted or typed; the first of a column brings its unit."""
    browser_page.goto("/?empty=yes")
    browser_page.fill("#cost-0", "11.9 GB/s")
    browser_page.press("#cost-0", "Tab")
    assert browser_page.input_value("#cost-unit") == "gb_per_s"
    browser_page.fill("#cost-1", "12.6")
    paste(browser_page, "100 Gb/s", "#cost-1")
    assert column(browser_page, "cost")[:2] == ["11.9", "12.5"]
    expect(browser_page.locator("#pasted p")).to_have_text("“100 Gb/s” was read as 12.5 GB/s.")
    browser_page.fill("#cost-2", "9.5x")
    browser_page.press("#cost-2", "Tab")
    expect(browser_page.locator("#mistake-cost-2")).to_have_text("Cost: “9.5x” is not read.")
    browser_page.fill("#name-0", "old")
    paste(browser_page, "copy\n", "#name-0")
    assert column(browser_page, "name")[0] == "copy"


def test_a_size_is_echoed_in_bytes(browser_page: Page) -> None:
    """K is 1024 as KiB is, and KB is 1000."""
    browser_page.goto("/?empty=yes")
    for text, size in (
        ("64K", "= 65 536 B."),
        ("1.5 MB", "= 1 500 000 B."),
        ("4096", ""),
        ("x", ""),
    ):
        browser_page.fill("#message", text)
        expect(browser_page.locator("#message-bytes")).to_have_text(size)


def test_a_sheet_without_a_header_goes_below_what_is_there(browser_page: Page) -> None:
    """From the cell that it was pasted into on."""
    browser_page.goto("/?example=gms")
    paste(browser_page, "7\t8\t\tx\n9\t10", "#overhead-3")
    expect(browser_page.locator("#pasted")).to_contain_text("Cells right of the table's columns")
    assert column(browser_page, "overhead")[3:] == ["7", "9"]
    assert column(browser_page, "cost")[3:] == ["8", "10"]
    assert column(browser_page, "name")[3:] == ["requester CPU", ""]


@pytest.mark.parametrize(
    ("which", "unit", "shown"),
    [
        ("overhead", "ns", "30000"),
        ("overhead", "ms", "0.03"),
        ("cost", "us_per_kb", "30"),
        ("cost", "us_per_kib", "30.72"),
        ("cost", "gb_per_s", "0.0333333333333"),
        ("cost", "gbit_per_s", "0.266666666667"),
        ("cost", "mib_per_s", "31.789143880"),
    ],
)
def test_another_unit_converts_and_converts_back(
    browser_page: Page, which: str, unit: str, shown: str
) -> None:
    """To the very text that was typed; also where the text has too many digits for a double."""
    browser_page.goto("/?empty=yes")
    browser_page.fill(f"#{which}-0", "30")
    browser_page.fill(f"#{which}-1", "0.10000000000000000000000001")
    browser_page.fill(f"#{which}-2", "x")
    before = column(browser_page, which)
    old = browser_page.input_value(f"#{which}-unit")
    browser_page.select_option(f"#{which}-unit", unit)
    assert column(browser_page, which)[0].startswith(shown[:12])
    assert column(browser_page, which)[2] == "x"
    browser_page.select_option(f"#{which}-unit", old)
    assert column(browser_page, which) == before


def test_rows_are_added_deleted_moved_and_reversed(browser_page: Page) -> None:
    """By buttons, with numbers that follow and ranges that stay with their stage."""
    browser_page.goto("/?example=gms")
    names = column(browser_page, "name")
    browser_page.get_by_label("Row 1: move down").click()
    assert column(browser_page, "name") == [names[1], names[0], *names[2:]]
    browser_page.get_by_label("Row 2: move up").click()
    assert column(browser_page, "name") == names
    browser_page.get_by_role("button", name="Reverse").click()
    assert column(browser_page, "name") == names[::-1]
    browser_page.get_by_label("Row 2: delete").click()
    assert column(browser_page, "name") == [names[3], names[1], names[0]]
    browser_page.get_by_role("button", name="Add a stage").click()
    assert focused(browser_page) == "name-3"
    browser_page.check("#with-ranges")
    browser_page.fill("#up_to-0", "4 KiB")
    expect(browser_page.locator("#stage-count")).to_have_text("2 of 64 stages")
    browser_page.get_by_role("button", name="Reverse").click()
    assert column(browser_page, "up_to")[-2:] == ["4 KiB", ""]


def test_the_limit_on_stages_is_shown_before_it_is_hit(browser_page: Page) -> None:
    """And what is over it is marked by the server."""
    browser_page.goto("/?empty=yes")
    paste(browser_page, "\n".join(f"s{n},1,2" for n in range(65)))
    count = browser_page.locator("#stage-count")
    expect(count).to_have_text("65 of 64 stages")
    expect(count).to_have_class(re.compile("over"))
    expect(browser_page.locator("#pasted")).to_contain_text("64 is the limit")
    browser_page.keyboard.press("Control+Enter")
    expect(browser_page.locator("#name-64")).to_have_attribute("aria-invalid", "true")


def test_from_an_empty_page_to_an_answer_by_keys_alone(browser_page: Page) -> None:
    """Enter goes to the next row, arrows between cells, Control and Enter asks."""
    browser_page.goto("/?empty=yes")
    browser_page.focus("#name-0")
    for cell in ("copy", "7.2", "7"):
        browser_page.keyboard.type(cell)
        browser_page.keyboard.press("Tab")
    browser_page.focus("#cost-0")
    browser_page.keyboard.press("Enter")
    assert focused(browser_page) == "cost-1"
    browser_page.keyboard.type("24")
    browser_page.keyboard.press("ArrowLeft")
    browser_page.keyboard.press("Home")
    browser_page.keyboard.press("ArrowLeft")
    assert focused(browser_page) == "overhead-1"
    browser_page.keyboard.type("5")
    browser_page.keyboard.press("ArrowUp")
    assert focused(browser_page) == "overhead-0"
    browser_page.keyboard.press("Alt+ArrowDown")
    assert column(browser_page, "overhead") == ["5", "7.2", ""]
    browser_page.keyboard.press("Control+Enter")
    browser_page.wait_for_url(ANSWER)


def test_enter_below_the_last_row_adds_one(browser_page: Page) -> None:
    """And begins at its name."""
    browser_page.goto("/?empty=yes")
    browser_page.focus("#cost-2")
    browser_page.keyboard.press("Enter")
    assert focused(browser_page) == "name-3"


def test_mistakes_are_marked_and_the_first_has_the_focus(
    browser_page: Page, axe: Callable[[Page], list[str]]
) -> None:
    """All are announced; a cell that is typed into again is marked no more."""
    browser_page.goto("/?example=gms")
    browser_page.fill("#cost-1", "fast")
    browser_page.fill("#overhead-2", "-1")
    browser_page.fill("#message", "a lot")
    browser_page.get_by_role("button", name="Optimise").click()
    expect(browser_page.locator("#mistakes")).to_contain_text("3 fields need a change")
    assert focused(browser_page) == "cost-1"
    for cell in ("cost-1", "overhead-2", "message"):
        place = browser_page.locator(f"#{cell}")
        expect(place).to_have_attribute("aria-invalid", "true")
        stated = place.get_attribute("aria-describedby")
        expect(browser_page.locator(f"#{stated}")).to_contain_text("expected")
    assert browser_page.input_value("#cost-1") == "fast"
    assert axe(browser_page) == []
    browser_page.fill("#cost-1", "25")
    expect(browser_page.locator("#cost-1")).not_to_have_attribute("aria-invalid", "true")
    expect(browser_page.locator("#mistake-cost-1")).to_have_count(0)


@pytest.mark.parametrize(
    "example", ["GPU staging", "Myrinet GAM", "GMS", "disk", "disk, two networks"]
)
def test_an_example_is_one_click_and_its_answer_another(browser_page: Page, example: str) -> None:
    """Each of the published pipelines."""
    browser_page.goto("/?empty=yes")
    browser_page.get_by_role("link", name=example, exact=True).first.click()
    browser_page.get_by_role("button", name="Optimise").click()
    browser_page.wait_for_url(re.compile(r"/ui/(answers|jobs)/[0-9a-f]{32}"))


def test_a_stored_profile_is_offered_by_name(browser_page: Page) -> None:
    """Names load by themselves."""
    browser_page.goto("/?empty=yes")
    browser_page.get_by_role("radio", name="Stored profile").check()
    expect(browser_page.locator("#profile-names option[value=gms]")).to_have_count(1)
    browser_page.fill("#profile", "gms@1")
    browser_page.get_by_role("button", name="Optimise").click()
    browser_page.wait_for_url(ANSWER)


def test_a_pasted_trace_is_fitted(browser_page: Page) -> None:
    """The measured example, from its link."""
    browser_page.goto("/?empty=yes")
    browser_page.get_by_role("link", name="a measured trace").click()
    expect(browser_page.locator("#trace")).to_have_value(re.compile("loopback_tcp_us"))
    browser_page.get_by_role("button", name="Fit").click()
    browser_page.wait_for_url(FIT)


@pytest.mark.parametrize("way", ["drop", "choose"])
def test_a_trace_is_a_file(browser_page: Page, way: str) -> None:
    """Dropped anywhere on the panel, or chosen."""
    browser_page.goto("/?empty=yes")
    if way == "drop":
        drop(browser_page, (TRACE.name, TRACE.read_text(encoding="utf-8")))
    else:
        browser_page.get_by_role("radio", name="Trace").check()
        browser_page.set_input_files("#file", TRACE)
    browser_page.wait_for_url(FIT)


def test_a_bad_trace_is_marked(browser_page: Page, axe: Callable[[Page], list[str]]) -> None:
    """Where it was dropped, with what the reader says; so is an empty one."""
    browser_page.goto("/?empty=yes")
    drop(browser_page, ("a.csv", "not,measurements\nx,y\n"))
    stated = browser_page.locator("#mistake-trace")
    expect(stated).to_be_visible()
    assert focused(browser_page) == "trace"
    expect(browser_page.locator("#trace")).to_have_attribute("aria-invalid", "true")
    assert axe(browser_page) == []
    drop(browser_page, ("a.csv", ""))
    expect(stated).to_have_text("the file is empty")


@pytest.mark.parametrize("source", ["Stages", "Stored profile", "Trace"])
@pytest.mark.parametrize("width", [360, 1280])
def test_every_source_is_accessible_and_fits_its_window(
    new_page: Callable[..., Page], axe: Callable[[Page], list[str]], source: str, width: int
) -> None:
    """With all that can be opened open."""
    page = new_page(width=width, color_scheme="dark" if width == 360 else "light")
    page.goto("/?example=myrinet-gam")
    page.check("#with-ranges")
    page.get_by_role("radio", name=source).check()
    for part in page.locator("details:visible > summary").all():
        part.click()
    assert axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_the_form_works(new_page: Callable[..., Page]) -> None:
    """Rows by buttons of the server, and an answer."""
    page = new_page(java_script_enabled=False)
    page.goto("/?example=gms")
    page.get_by_role("button", name="Add a stage").click()
    assert page.locator("[data-column=name]").count() == 5
    page.get_by_role("button", name="Optimise").click()
    page.wait_for_url(ANSWER)
