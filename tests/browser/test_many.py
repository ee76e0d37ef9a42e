"""Lists of many stored answers, a chart of many samples: how soon they are there is printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from models.session import create_store
from tests.app.serving import Live, serving, settings_for
from tests.support.counts import count
from tests.support.records import an_answer

STORED, BATCH = count(50_000, share=100), 500
FROM_THE_START = "performance.now()"  # of the navigation


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server that has stored as many."""
    url = f"sqlite:///{tmp_path_factory.mktemp('many') / 'sluice.db'}"
    store = create_store(url)
    store.upgrade()
    for start in range(0, STORED, BATCH):
        with store.unit_of_work() as unit:
            for number in range(start, start + BATCH):
                unit.answers.add(an_answer(message_bytes=1024 * (1 + number), name=f"n{number}"))
    store.dispose()
    with serving(settings_for(url)) as running:
        yield running


def test_many_answers_are_listed(browser_page: Page, axe: Callable[[Page], list[str]]) -> None:
    """The newest first, older ones by a click; Back and the address show the same again."""
    page, rows = browser_page, browser_page.get_by_role("row")
    name = rows.nth(1).get_by_role("textbox")
    page.goto("/ui/answers")
    expect(name).to_have_value(f"n{STORED - 1}")
    print(f"\n{STORED} answers listed after {page.evaluate(FROM_THE_START):.0f} ms")
    assert axe(page) == []
    shown = rows.count() - 1
    page.get_by_role("button", name="Older").click()
    expect(name).to_have_value(f"n{STORED - 1 - shown}")
    older, address = rows.all_inner_texts(), page.url
    page.go_back()
    expect(name).to_have_value(f"n{STORED - 1}")
    page.goto(address)
    assert rows.all_inner_texts() == older
    page.get_by_label("Message size").fill("7 KiB")
    page.get_by_role("button", name="Filter").click()
    expect(rows).to_have_count(2)
    expect(name).to_have_value("n6")


def test_many_samples_are_drawn(browser_page: Page, live: Live) -> None:
    """Thinned on the server; samples that are no numbers are refused by their lines."""
    head = "message_bytes,repetition,wire_us\n"
    content = head + "\n".join(
        f"{64 << (n % 12)},{n // 12},{5 + n % 12 + n % 7 / 10}" for n in range(100_000)
    )
    place = "/ui/fits?method=ordinary&shape=line"
    sent = live.client.post(place, content=content.encode())
    browser_page.goto(sent.headers["location"])
    expect(browser_page.locator("[data-fit-chart][data-drawn=yes]")).to_have_count(1)
    print(f"\n100 000 samples drawn after {browser_page.evaluate(FROM_THE_START):.0f} ms")
    browser_page.goto("/?empty=yes")
    browser_page.locator("#file").set_input_files(
        {"name": "odd.csv", "mimeType": "text/csv", "buffer": f"{head}64,0,nan\n128,0,inf".encode()}
    )
    stated = browser_page.locator("#mistake-trace")
    expect(stated).to_contain_text(re.compile("line 2.*line 3", re.DOTALL))
