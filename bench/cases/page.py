"""The engineer's page in a real browser: until it is usable, and from the click to the answer."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.browser import browsing
from bench.service import serving
from bench.spec import BenchSpec, CaseResult, Check, Effort, Table
from bench.timing import Timing

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FIRST_LIMIT_MS, ANSWER_LIMIT_MS = 250.0, 500.0
SEND = "#input [data-send]:visible"
# Two frames after the look says so, what it asked for has been drawn.
DRAWN = """(there) => new Promise((done) => {
  const look = () => document.querySelector(there)
    ? requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())))
    : requestAnimationFrame(look);
  look();
})"""
FOCUSED = """(place) => new Promise((done) => {
  const look = () => {
    const field = [...document.querySelectorAll(place)].find((one) => one.checkVisibility());
    field?.focus();
    if (field && document.activeElement === field && document.readyState !== "loading") {
      requestAnimationFrame(() => done(performance.now()));
    } else {
      requestAnimationFrame(look);
    }
  };
  look();
})"""
# As a time of day, and kept where a page that follows finds it: a plain form leads to another one.
NOTE_CLICK = """() => document.addEventListener("click", (event) => {
  sessionStorage.setItem("clicked", performance.timeOrigin + event.timeStamp);
}, {capture: true, once: true})"""
SINCE_CLICK = """(ms) => performance.timeOrigin + ms - Number(sessionStorage.getItem("clicked"))"""
NOTE_TASKS = """
  window.longestMs = 0;
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) {
      window.longestMs = Math.max(window.longestMs, task.duration);
    }
  }).observe({type: "longtask", buffered: true});
"""
FIRST, AGAIN = "first view, empty cache", "first view, cache filled"
NEW, STORED = "answer drawn, new question", "answer drawn, stored one"
PARTS, TASK = "every part drawn, new question", "longest task in the browser, new question"


def _run(effort: Effort) -> CaseResult:
    rounds = effort.pick(9, quick=1)
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for what, taken_ms in _round().items():
            found.setdefault(what, []).append(taken_ms)
    timings = {what: Timing(tuple(samples)) for what, samples in found.items()}
    table = Table(
        f"Myrinet (Table 1), 4 KB, in Chromium on loopback, {rounds} services and browsers",
        ("what", "median ms", "min-max ms"),
        tuple((what, timing.median_ms, timing.spread) for what, timing in timings.items()),
    )
    checks = tuple(
        Check(f"page, {what}, median", timings[what].median_ms, limit_ms, "ms")
        for what, limit_ms in ((FIRST, FIRST_LIMIT_MS), (NEW, ANSWER_LIMIT_MS))
    )
    return CaseResult((table,), checks, _NOTES)


_NOTES = (
    "First view: from the start of the navigation until the document, which has a solved example, "
    "is loaded and a field has taken the focus and has been drawn so. With an empty cache that "
    "example is solved too. Answer: from the click on Optimise until the frame "
    "with figures, schedule and timeline has been drawn. Every part: the curves, the table of "
    "strategies and the reasons too, which load by themselves afterwards.",
    "Each round has a service, a database and a browser profile of its own. A new question is one "
    "that the database does not hold; the stored one is the same question again.",
)


def _round() -> dict[str, float]:
    """Each figure once, in ms."""
    with _browsed() as (browser, address):
        context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.add_init_script(NOTE_TASKS)
        found = {FIRST: _until_usable(page)}
        found[AGAIN] = _until_usable(page)
        found.update(_until_drawn(page))
        found[STORED] = _until_drawn(page)[NEW]
        context.close()
    return found


def _until_usable(page: Page) -> float:
    """Milliseconds from the start of the navigation until a field has the focus."""
    page.goto("/", wait_until="commit")
    return float(page.evaluate(FOCUSED, "#input input:not([type=hidden], [type=radio])"))


def _until_drawn(page: Page) -> dict[str, float]:
    """Milliseconds from the click to the answer, and to all of its parts."""
    page.goto("/?example=myrinet-gam&bytes=4096", wait_until="load")
    page.evaluate(NOTE_CLICK)
    page.locator(SEND).click()
    page.wait_for_url("**/ui/answers/**", wait_until="commit")
    drawn_ms = _since_click(page, "#result #timeline svg")
    whole_ms = _since_click(page, "#result:not(:has(.later, [aria-busy=true]))")
    return {NEW: drawn_ms, PARTS: whole_ms, TASK: float(page.evaluate("window.longestMs"))}


def _since_click(page: Page, place: str) -> float:
    """Milliseconds from the click until there is such a place, and it has been drawn."""
    return float(page.evaluate(SINCE_CLICK, page.evaluate(DRAWN, place)))


@contextmanager
def _browsed() -> Iterator[tuple[Browser, str]]:
    with (
        tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder,
        serving(f"sqlite:///{Path(folder, 'bench.db')}") as service,
        browsing() as browser,
    ):
        yield browser, f"http://127.0.0.1:{service.port}"


@contextmanager
def _answering() -> Iterator[Callable[[], object]]:
    with _browsed() as (browser, address):
        page = browser.new_context(base_url=address).new_page()
        yield lambda: _until_drawn(page)


SPEC = BenchSpec(
    name="page",
    title="The engineer's page",
    about=(
        "The service as `sluice serve` starts it, on a new SQLite file, and Debian's Chromium "
        "without a window on the same machine. Targets: one second each."
    ),
    run=_run,
    workloads={"answer": _answering},
)
