"""The view of a fit in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from fitting import formats
from tests.app.serving import Live

TRACES = Path(__file__).parents[1] / "data" / "traces"
TRACE = (Path(__file__).parents[2] / "examples" / "local-path-direct.csv").read_bytes()


@pytest.fixture(scope="package")
def address(live: Live) -> str:
    """A fit of the measured example."""
    place: str = live.client.post("/ui/fits", content=TRACE).headers["location"]
    return place


def drawn(page: Page, address: str) -> None:
    """Open it, and wait until its charts are there."""
    page.goto(address)
    expect(page.locator("[data-fit-chart][data-drawn=yes]")).to_have_count(5)


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_it_is_accessible_and_fits_its_window(
    new_page: Callable[..., Page],
    axe: Callable[[Page], list[str]],
    address: str,
    width: int,
    scheme: str,
) -> None:
    """With its charts drawn and everything opened."""
    page = new_page(width=width, color_scheme=scheme)
    drawn(page, address)
    for part in page.locator("details > summary").all():
        part.click()
    assert axe(page) == []
    unique = "async () => (await axe.run({runOnly: ['landmark-unique']})).violations"
    assert page.evaluate(unique) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_samples_go_by_keyboard_alone(browser_page: Page, address: str) -> None:
    """From the table below a chart to a fit of another address, which says what changed."""
    drawn(browser_page, address)
    again = browser_page.locator("#again")
    expect(again).to_be_disabled()
    samples = browser_page.locator(".samples").nth(1)
    samples.locator("summary").focus()
    browser_page.keyboard.press("Enter")
    boxes = samples.locator("[name=excluded]")
    expect(boxes).to_have_count(50)
    expect(samples.locator("caption")).to_have_text(
        "1 to 50 of 325 different samples (350 with equal ones), farthest off the line first"
    )
    boxes.nth(0).focus()
    browser_page.keyboard.press("Space")
    expect(browser_page.locator("#announcement")).to_contain_text("left out")
    samples.get_by_role("button", name="Next").focus()
    browser_page.keyboard.press("Enter")
    expect(samples.locator("caption")).to_contain_text("51 to 100 of 325")
    boxes.nth(49).focus()
    browser_page.keyboard.press("Space")
    samples.get_by_label("Order").select_option("size")
    expect(samples.locator("caption")).to_contain_text("1 to 50 of 325 different")
    expect(browser_page.locator("#picked [name=excluded]")).to_have_count(2)
    expect(again).to_have_text("Fit again without 2 samples")
    browser_page.locator("summary", has_text="How to fit").focus()
    browser_page.keyboard.press("Enter")
    browser_page.get_by_role("combobox", name="crc32").select_option("sequence")
    again.focus()
    browser_page.keyboard.press("Enter")
    browser_page.wait_for_url("**/ui/fits/*before=*")
    expect(browser_page.locator("#changes header")).to_contain_text("2 samples left out")
    expect(browser_page.locator("#changes header")).to_contain_text(
        "one stage made of copy_in and crc32"
    )
    expect(browser_page.locator("[name=excluded]:checked")).to_have_count(2)
    expect(browser_page.locator("[data-fit-chart][data-drawn=yes]")).to_have_count(4)
    expect(browser_page.locator("#again")).to_be_disabled()
    browser_page.get_by_role("link", name="The earlier fit").click()
    browser_page.wait_for_url(f"**{address}*")


def test_a_sample_is_clicked_in_its_chart(browser_page: Page, address: str) -> None:
    """And the button says how many are left out; a second click takes it back."""
    drawn(browser_page, address)
    place = browser_page.locator("[data-fit-chart='0']")
    place.scroll_into_view_if_needed()
    spot = browser_page.evaluate(
        """() => {
            const place = document.querySelector("[data-fit-chart='0']");
            const chart = window.echarts.getInstanceByDom(place);
            const [size, time] = Sluice.data("fit-chart-0").points.at(-1);
            return chart.convertToPixel({xAxisIndex: 0, yAxisIndex: 0}, [size, time]);
        }"""
    )
    place.click(position={"x": spot[0], "y": spot[1]})
    again = browser_page.locator("#again")
    expect(again).to_have_text("Fit again without 1 sample")
    expect(browser_page.locator("#announcement")).to_contain_text("left out")
    expect(browser_page.locator("#picked [name=excluded]")).to_have_count(1)
    place.click(position={"x": spot[0], "y": spot[1]})
    expect(again).to_be_disabled()
    expect(browser_page.locator("#picked [name=excluded]")).to_have_count(0)
    edges = browser_page.evaluate(
        """() => {
            const place = document.querySelector("[data-fit-chart='0']");
            const model = window.echarts.getInstanceByDom(place).getModel();
            const grid = (number) => model.getComponent("grid", number).coordinateSystem;
            return [0, 1].map((number) => grid(number).getRect());
        }"""
    )
    assert edges[0]["x"] == edges[1]["x"]
    assert edges[0]["width"] == edges[1]["width"]


def test_signatures_are_drawn(
    new_page: Callable[..., Page], axe: Callable[[Page], list[str]], live: Live
) -> None:
    """And the parameters found in them, with a table of each; nothing complains of what is 0."""
    content = (TRACES / "netgauge-loggp.out").read_bytes()
    page = new_page(width=360, color_scheme="dark")
    page.goto(live.client.post("/ui/fits", content=content).headers["location"])
    expect(page.locator("[data-signature][data-drawn=yes]")).to_have_count(3)
    expect(page.locator("[data-logp][data-drawn=yes]")).to_have_count(1)
    for part in page.locator("details > summary").all():
        part.click()
    assert axe(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_file_in_no_format_says_what_is_nearest(browser_page: Page) -> None:
    """Dropped or pasted; and how its header would be written."""
    browser_page.goto("/?empty=yes")
    browser_page.get_by_label("Trace", exact=True).check()
    browser_page.locator("#file").set_input_files(
        {"name": "a.csv", "mimeType": "text/csv", "buffer": b"bytes,copy\n64,1.5\n"}
    )
    stated = browser_page.locator("#mistake-trace")
    expect(stated.locator("pre")).to_contain_text("message_bytes,copy_us")
    expect(stated).to_contain_text("direct CSV, line 1 lacks")
    expect(stated).to_contain_text("a.csv begins: bytes,copy")
    expect(browser_page.locator("#trace")).to_be_focused()
    browser_page.locator("#trace").fill("size,time\n64,1\n")
    browser_page.get_by_role("button", name="Fit", exact=True).click()
    expect(stated.locator("pre")).to_contain_text("message_bytes,latency_us")
    browser_page.locator(".formats summary").click()
    expect(browser_page.locator(".formats dt")).to_have_count(len(formats()))


FAILS_ONCE = """() => {
    const {send} = XMLHttpRequest.prototype;
    XMLHttpRequest.prototype.send = function () {
        XMLHttpRequest.prototype.send = send;
        for (const name of ["error", "loadend"]) this.dispatchEvent(new ProgressEvent(name));
    };
}"""


def test_latencies_get_a_bandwidth_test_beside_them(
    browser_page: Page, axe: Callable[[Page], list[str]], live: Live
) -> None:
    """Where they are shown; if nobody answers, the file is sent again by a button."""
    examples = TRACES.parents[2] / "examples"
    latency = (examples / "osu-latency.txt").read_bytes()
    browser_page.goto(live.client.post("/ui/fits", content=latency).headers["location"])
    assert axe(browser_page) == []
    expect(browser_page.get_by_text("Choose files…")).to_be_visible()
    browser_page.evaluate(FAILS_ONCE)
    browser_page.locator("#file").set_input_files(examples / "osu-bw.txt")
    stated = browser_page.locator("#mistake-trace")
    expect(stated).to_contain_text("The service does not answer. Is it running?")
    expect(stated).to_contain_text("osu-bw.txt begins: # OSU MPI Bandwidth")
    stated.get_by_role("button", name="Send again").click()
    expect(browser_page.get_by_role("button", name="Optimise with this")).to_be_visible()
    expect(browser_page.get_by_text("seen from outside")).to_be_visible()


def test_what_lies_beyond_the_residuals_is_an_arrow(browser_page: Page, live: Live) -> None:
    """With its value; equal samples are one row, and the table says so."""
    rows = [f"{64 << n},{2 + (64 << n) / 100}" for n in range(8) for _ in range(6)]
    content = "bytes,copy_us\n" + "\n".join([*rows, "1024,99.5"])
    browser_page.goto(live.client.post("/ui/fits", content=content).headers["location"])
    expect(browser_page.locator("[data-fit-chart][data-drawn=yes]")).to_have_count(1)
    arrows = browser_page.evaluate(
        """() => {
            const place = document.querySelector("[data-fit-chart]");
            const chart = window.echarts.getInstanceByDom(place);
            return chart.getOption().series.filter((one) => one.symbol === "triangle")
                .flatMap((one) => one.data.map(({value, point}) => [value[1], point[2]]));
        }"""
    )
    assert len(arrows) == 1
    edge, off = arrows[0]
    assert 0.0 < edge < off
    expect(browser_page.locator("#charts")).to_contain_text("an arrow marks it")
    browser_page.locator(".samples summary").click()
    expect(browser_page.locator(".samples caption")).to_contain_text(
        "1 to 9 of 9 different samples (49 with equal ones)"
    )
    expect(browser_page.locator(".samples tbody tr").first).to_contain_text("99.5")


def test_it_leads_on(browser_page: Page, address: str) -> None:
    """To an answer, or to a profile."""
    browser_page.goto(f"{address}?bytes=4+KiB")
    expect(browser_page.get_by_label("Message size", exact=True)).to_have_value("4 KiB")
    browser_page.get_by_role("button", name="Optimise with this").click()
    browser_page.wait_for_url(re.compile("/ui/(answers|jobs)/"))
    browser_page.goto(address)
    browser_page.get_by_label("Profile name").fill("no good")
    browser_page.get_by_role("button", name="Save as profile").click()
    expect(browser_page.get_by_label("Profile name")).to_have_attribute("aria-invalid", "true")
    browser_page.get_by_label("Profile name").fill("good")
    browser_page.get_by_role("button", name="Save as profile").click()
    browser_page.wait_for_url("**/ui/profiles/good")


def test_a_hundred_thousand_samples_are_thinned(browser_page: Page, live: Live) -> None:
    """On the server, and the page says so; it stays quick."""
    rows = (f"{64 << (n % 12)},{n // 12},{5 + n % 12 + n % 7 / 10}" for n in range(100_000))
    content = "message_bytes,repetition,wire_us\n" + "\n".join(rows)
    place = "/ui/fits?method=ordinary&shape=line"
    sent = live.client.post(place, content=content.encode())
    assert sent.status_code == 303, sent.text
    browser_page.goto(sent.headers["location"])
    expect(browser_page.locator("[data-fit-chart][data-drawn=yes]")).to_have_count(1)
    expect(browser_page.locator("#charts")).to_contain_text(
        "of 100\u202f000 samples are drawn and listed"
    )
    count = browser_page.evaluate("Sluice.data('fit-chart-0').points.length")
    assert count <= 2_000
