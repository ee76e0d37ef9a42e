"""A real browser on a real server; a page fails its test where it complains or goes elsewhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect, sync_playwright

from tests.app.serving import Live, serving, settings_for
from tests.support.system import require_system

# The first has the same engine without the windows around it, which cost half of the time.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--process-per-site",
]
Scheme = Literal["light", "dark"]
VIOLATIONS = "async () => (await axe.run({resultTypes: ['violations']})).violations"
SERIOUS = ("serious", "critical")
WAIT_MS = 120_000  # against tests that hang: a worker starts anew in some of them
expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="package")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server on SQLite that the browser's tests share."""
    folder = tmp_path_factory.mktemp("browsed")
    with serving(settings_for(f"sqlite:///{folder / 'sluice.db'}")) as running:
        yield running


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a window.

    Not for the session: Playwright keeps an event loop running in this thread, in which tests of
    other folders could not start theirs.
    """
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    require_system(found, "a browser", "apt-get install chromium")
    os.environ.setdefault("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="package")
def shared(browser: Browser) -> Iterator[dict[int, BrowserContext]]:
    """By port of a server: where pages are opened that ask for nothing special.

    So that each file of the pages is fetched and read once. One page of each stays open and empty:
    with the last page of a site the process that has its scripts compiled would end.
    """
    contexts: dict[int, BrowserContext] = {}
    yield contexts
    for context in contexts.values():
        context.close()


@pytest.fixture
def new_page(
    browser: Browser, live: Live, shared: dict[int, BrowserContext]
) -> Iterator[Callable[..., Page]]:
    """Opens pages, `new_page(width=…, height=…, color_scheme=…)`, on the shared server.

    What else is given are options of a context, which such a page has to itself. At the end of the
    test none may have written an error to its console (a refusal of the content policy is one), met
    an uncaught error, or asked another host for anything.
    """
    complaints: list[str] = []
    if live.port not in shared:
        shared[live.port] = _context(browser, live)
        shared[live.port].new_page().goto("/healthz")
    common = shared[live.port]
    kept = common.pages[0]
    own: list[BrowserContext] = []

    def watch(page: Page) -> None:
        page.on("console", lambda stated: _note(complaints, stated.type, stated.text))
        page.on("pageerror", lambda error: complaints.append(f"uncaught: {error}"))
        page.on("request", lambda request: _own_host(complaints, request, live.port))

    def opened(
        *, width: int = 1280, height: int = 900, color_scheme: Scheme = "light", **more: Any
    ) -> Page:
        if more:
            own.append(_context(browser, live, **more))
        page = (own[-1] if more else common).new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=color_scheme)
        watch(page)
        return page

    yield opened
    for left in (*own, *common.pages):
        if left is not kept:
            left.close()
    common.clear_cookies()
    assert complaints == []


@pytest.fixture
def browser_page(new_page: Callable[..., Page]) -> Page:
    """A page of common size."""
    return new_page()


def _context(browser: Browser, live: Live, **options: Any) -> BrowserContext:
    context = browser.new_context(base_url=f"http://127.0.0.1:{live.port}", **options)
    context.set_default_timeout(WAIT_MS)
    return context


def _note(complaints: list[str], kind: str, text: str) -> None:
    # The browser itself reports an answer of 4xx, which a form with a mistake is meant to get.
    if kind in ("error", "warning") and "the server responded with a status of 4" not in text:
        complaints.append(f"{kind}: {text}")


def _own_host(complaints: list[str], request: Request, port: int) -> None:
    place = urlsplit(request.url)
    if place.scheme in ("http", "https", "ws", "wss") and place.netloc != f"127.0.0.1:{port}":
        complaints.append(f"asked another host: {request.url[:200]}")


@pytest.fixture
def axe_of_any_impact() -> Callable[[Page], list[str]]:
    """What axe finds on a page: impact, rule and place."""

    def findings(page: Page) -> list[str]:
        # Outside the page's content policy, which refuses what it did not bring itself.
        page.evaluate(AXE.read_text(encoding="utf-8"))
        return [
            f"{one['impact']} {one['id']}: {node['target']}"
            for one in page.evaluate(VIOLATIONS)
            for node in one["nodes"]
        ]

    return findings


@pytest.fixture
def axe(axe_of_any_impact: Callable[[Page], list[str]]) -> Callable[[Page], list[str]]:
    """What axe finds on a page that is serious or worse."""
    return lambda page: [one for one in axe_of_any_impact(page) if one.startswith(SERIOUS)]
