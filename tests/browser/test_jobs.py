"""Jobs in a browser: what is known while they run, how they end, and what a Cancel keeps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.app.scripted_solver import CRASHES, IMPROVES, WAITS
from tests.app.serving import (
    LARGE,
    LARGE_BYTES,
    Live,
    scripted_engine,
    serving,
    settings_for,
    wait_for_end,
)
from tests.support.engines import solver_gate

Axe = Callable[[Page], list[str]]


@pytest.fixture(scope="module")
def gate() -> Iterator[Path]:
    """Where this file is, solvers that wait end."""
    yield solver_gate()
    solver_gate().unlink(missing_ok=True)


@pytest.fixture
def opened(gate: Path) -> Iterator[None]:
    """The gate is open for this test; compilations wait for it too."""
    gate.touch()
    yield
    gate.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def live(gate: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server whose solvers follow a script."""
    folder = tmp_path_factory.mktemp("jobs")
    settings = settings_for(f"sqlite:///{folder / 'sluice.db'}")
    with serving(settings, open_engine=scripted_engine) as running:
        yield running


@pytest.fixture
def start(live: Live, gate: Path) -> Iterator[Callable[..., str]]:
    """Starts a job whose solver behaves as named; its identifier."""
    started = []

    def job(behaviour: str, **more: Any) -> str:
        stages = [{"name": behaviour, "overhead_us": 9.0, "ns_per_byte": 9.0}, *LARGE["stages"]]
        body = {"message_bytes": LARGE_BYTES, "pipeline": {"stages": stages}, **more}
        response = live.client.post("/optimize", json=body, headers={"prefer": "respond-async"})
        started.append(response.headers["location"])
        return str(response.json()["id"])

    yield job
    for location in started:
        live.client.delete(location)
    gate.unlink(missing_ok=True)


def test_a_job_leads_to_its_answer(
    browser_page: Page, start: Callable[..., str], gate: Path, axe: Axe
) -> None:
    """What is known is shown as it comes, and again where the page is loaded anew; the answer
    follows by itself, and Back skips the job.
    """
    page = browser_page
    page.goto("/?empty=yes")
    job = start(IMPROVES)
    page.goto(f"/ui/jobs/{job}?follow=1")
    expect(page.locator("[data-field=word]")).to_have_text("running")
    expect(page.locator("[data-field=best]")).to_contain_text("ms")
    expect(page.locator("[data-field=fragments]")).to_have_text("2")
    expect(page.locator("[data-job-chart] canvas")).to_be_visible()
    assert axe(page) == []
    page.reload()
    expect(page.locator("[data-field=fragments]")).to_have_text("2")
    expect(page.locator("[data-job-chart] canvas")).to_be_visible()
    gate.touch()
    page.wait_for_url("**/ui/answers/*")
    expect(page.locator("#answer-title")).to_be_visible()
    page.wait_for_load_state()
    page.go_back()
    page.wait_for_url(lambda url: url.endswith("/?empty=yes"))


def test_cancel_says_when_it_has_stopped_and_keeps_the_best(
    browser_page: Page, start: Callable[..., str], live: Live
) -> None:
    """Stopping…, then stopped, with the answer that was there."""
    page = browser_page
    job = start(IMPROVES)
    page.goto(f"/ui/jobs/{job}?follow=1")
    expect(page.locator("[data-field=fragments]")).to_have_text("2")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("[data-field=word]")).to_have_text("stopped")
    expect(page.locator("#announcement")).to_have_text("Stopped. The best answer so far is kept.")
    expect(page.locator("#job")).to_contain_text("The best answer so far is kept")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    page.get_by_role("link", name="See the answer").click()
    expect(page.locator("#answer-title")).to_be_visible()
    assert live.client.get(f"/jobs/{job}").json()["state"] == "cancelled"


def test_cancel_of_what_has_stopped_meanwhile_says_so_too(
    browser_page: Page, start: Callable[..., str], live: Live
) -> None:
    """The answer to Cancel shows the end; no event has told of it."""
    page = browser_page
    seen = {"content_type": "text/event-stream", "body": ""}
    page.route("**/events", lambda route: route.fulfill(**seen))
    job = start(WAITS)
    page.goto(f"/ui/jobs/{job}")
    live.client.delete(f"/jobs/{job}")
    wait_for_end(live.client, f"/jobs/{job}")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("[data-field=word]")).to_have_text("stopped")
    expect(page.locator("#announcement")).to_have_text("Stopped before there was an answer.")


def test_a_cancelled_job_without_an_answer_says_so(
    browser_page: Page, start: Callable[..., str]
) -> None:
    """Also by the keyboard alone."""
    page = browser_page
    page.goto(f"/ui/jobs/{start(WAITS)}")
    page.get_by_role("button", name="Cancel").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#job")).to_contain_text("Stopped before there was an answer.")
    expect(page.get_by_role("link", name="See the answer")).to_have_count(0)


def test_a_failure_is_told(browser_page: Page, start: Callable[..., str], axe: Axe) -> None:
    """With the problem's own words, beside the question."""
    page = browser_page
    page.goto(f"/ui/jobs/{start(CRASHES)}?follow=1")
    expect(page.locator("[data-field=word]")).to_have_text("failed")
    expect(page.locator("#job")).to_contain_text("solver_failed")
    expect(page.locator("#announcement")).to_have_text("A solver failed.")
    assert axe(page) == []


def test_the_question_is_beside_it(browser_page: Page, start: Callable[..., str]) -> None:
    """As it was asked, to be changed."""
    page = browser_page
    asked = {"strategy": "exact", "constraints": {"max_fragment_bytes": 65536}, "time_limit_s": 60}
    page.goto(f"/ui/jobs/{start(WAITS, **asked)}")
    expect(page.locator("[name=message]")).to_have_value("4 MB")
    expect(page.locator("[name=max_fragment]")).to_have_value("64 KiB")
    expect(page.locator("[name=strategy]")).to_have_value("exact")
    expect(page.locator("[name=time_limit]")).to_have_value("60")
    expect(page.locator("[name=name]").first).to_have_value(WAITS)


def test_a_job_that_has_ended_is_shown_as_it_was(
    browser_page: Page, start: Callable[..., str], gate: Path, live: Live
) -> None:
    """Its address restores it; with `follow` it leads on."""
    page = browser_page
    job = start(IMPROVES)
    page.goto(f"/ui/jobs/{job}")
    expect(page.locator("[data-field=fragments]")).to_have_text("2")
    gate.touch()
    page.wait_for_url("**/ui/answers/*")
    answer = page.url
    page.goto(f"/ui/jobs/{job}")
    expect(page.locator("[data-field=word]")).to_have_text("done")
    expect(page.locator("[data-job-chart] canvas")).to_be_visible()
    expect(page.locator("#job-rows tr")).to_have_count(2)
    page.goto(f"/ui/jobs/{job}?follow=1")
    assert page.url == answer


def test_a_silent_service_is_said_to_be_silent(
    browser_page: Page, start: Callable[..., str], live: Live
) -> None:
    """Nothing is claimed of the job, its clock stands; one that is begun again says so."""
    page, job = browser_page, start(WAITS)
    seen = {"content_type": "text/event-stream", "body": ""}
    page.route("**/events", lambda route: route.fulfill(**seen))
    page.goto(f"/ui/jobs/{job}")
    trouble, clock = page.locator("[data-field=trouble]"), page.locator("[data-field=elapsed]")
    expect(trouble).to_contain_text(re.compile(r"has not answered for [1-9]\d* s"))
    stood = clock.inner_text()
    expect(trouble).to_contain_text(re.compile(r"has not answered for [2-9]\d* s"))
    assert clock.inner_text() == stood
    expect(page.locator("[data-field=again]")).to_be_hidden()
    again = {**live.client.get(f"/jobs/{job}").json(), "attempts": 2}
    seen["body"] = f"event: progress\ndata: {json.dumps(again)}\n\n"
    expect(page.locator("[data-field=again]")).to_contain_text("This is attempt 2.")


def test_it_works_without_scripts(
    new_page: Callable[..., Page], start: Callable[..., str], gate: Path
) -> None:
    """The page looks again by itself, and the Cancel is a form."""
    page = new_page(java_script_enabled=False)
    page.goto(f"/ui/jobs/{start(WAITS)}")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#job")).to_contain_text("Stopped before there was an answer.")
    page.goto(f"/ui/jobs/{start(IMPROVES)}")
    gate.touch()
    page.wait_for_url("**/ui/answers/*")
    expect(page.locator("#answer-title")).to_be_visible()


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (768, "light")])
def test_it_fits_every_window(
    new_page: Callable[..., Page], start: Callable[..., str], width: int, scheme: str, axe: Axe
) -> None:
    """Nothing serious, nothing wider than the window."""
    page = new_page(width=width, color_scheme=scheme)
    page.goto(f"/ui/jobs/{start(IMPROVES)}")
    expect(page.locator("[data-job-chart] canvas")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe(page) == []


def test_a_comparison_has_a_table(browser_page: Page, live: Live) -> None:
    """Jobs that another program has started are shown as well."""
    body = {"profile": "gms", "message_bytes": [4096, 8192], "strategies": ["single", "ramp"]}
    response = live.client.post("/compare", json=body, headers={"prefer": "respond-async"})
    page = browser_page
    page.goto(f"/ui/jobs/{response.json()['id']}")
    expect(page.locator("#job-title")).to_have_text("Comparing strategies on 2 messages")
    expect(page.locator("[data-field=word]")).to_have_text("done")
    expect(page.locator("[data-field=steps]")).to_have_text("4 of 4 cells")
    expect(page.locator("#compared-title + .scroll tbody tr")).to_have_count(2)
    page.get_by_text("2 not possible here").click()
    expect(page.locator(".impossible li")).to_have_count(2)
    expect(page.locator(".impossible li").first).to_contain_text("ramp needs exactly two stages")


def test_every_kind_of_work_has_a_page(browser_page: Page, live: Live, opened: None) -> None:
    """It says what it is, and leads to what was found."""
    page = browser_page
    headers = {"prefer": "respond-async"}
    scope = {"min_message_bytes": 4096, "max_message_bytes": 8192, "relative_gap": 0.05}
    asked = {
        "profile": "gms",
        "setting": {"static_bytes": 4096},
        "workload": [{"message_bytes": 8192}],
    }
    started = {
        "Compiling 4 KiB to 8 KiB": live.client.post(
            "/profiles/gms/tables", json=scope, headers=headers
        ),
        "Exporting gms@1 to simgrid": live.client.get(
            "/profiles/gms/exports/simgrid", headers=headers
        ),
        "Auditing 4 KiB": live.client.post("/audit", json=asked, headers=headers),
    }
    for title, response in started.items():
        job = response.json()["id"]
        page.goto(f"/ui/jobs/{job}")
        expect(page.get_by_role("heading", level=2)).to_contain_text(title)
        expect(page.locator("[data-field=word]")).to_have_text("done")
        page.goto(f"/ui/jobs/{job}?follow=1")
        expect(page.locator(".notice.good, .exported, .audited").first).to_be_visible()


def test_an_unknown_job_is_said_to_be_unknown(browser: Browser, live: Live) -> None:
    """404, as a page."""
    page = browser.new_page()
    answer = page.goto(f"http://127.0.0.1:{live.port}/ui/jobs/{'0' * 32}")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.close()
