"""A stranger's walk over the page: three questions, and what to do for each from the first view.

The tests walk it, `make screenshots` pictures it, and docs/walk.md has its words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

MAX_STEPS = 5
STILL_LOADING = ".later, .waiting, .asking, [data-work], [aria-busy=true], .htmx-request"


@dataclass(frozen=True, slots=True)
class Step:
    """A click, or keys that do what a click does: in words, and done."""

    words: str
    act: Callable[[Page], None]


@dataclass(frozen=True, slots=True)
class Walk:
    """A question, and the steps from the page's first view to its answer."""

    name: str
    question: str
    steps: tuple[Step, ...]

    def picture(self, step: int) -> str:
        """Return the file name of the picture after a step, counted from 1."""
        return f"walk-{self.name}-{step}.jpg"


def take(walk: Walk, page: Page, seen: Callable[[int], None]) -> None:
    """Walk from the first view; `seen` is given the number of steps once all has been loaded."""
    page.goto("/")
    wait_loaded(page)
    seen(0)
    for number, step in enumerate(walk.steps, start=1):
        step.act(page)
        wait_loaded(page)
        seen(number)


def wait_loaded(page: Page) -> None:
    """Wait until every part of the page is there."""
    page.wait_for_function("(there) => !document.querySelector(there)", arg=STILL_LOADING)


def _open_whole_text(page: Page) -> None:
    page.locator("#library").get_by_text("The whole text").click()


def _type_setting(page: Page) -> None:
    page.get_by_label("Your setting now").click()
    page.keyboard.type("64 KiB")


def _optimise(page: Page) -> None:
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile("current=64"))


def _go_to_what_if(page: Page) -> None:
    page.get_by_role("link", name="What if a cost were another").click()


def _double_network(page: Page) -> None:
    page.get_by_role("button", name="twice as fast: 400G RDMA write").click()
    page.wait_for_url(re.compile("last="))


def _compare(page: Page) -> None:
    page.locator(".changed").get_by_role("link", name="Compare").click()
    page.wait_for_url(re.compile("/ui/compare"))


WALKS = (
    Walk(
        "ucx",
        "I copy 16 MiB from GPU to GPU through host memory: what do I set in UCX, what do I gain, "
        "how sure is it?",
        (Step("Click *The whole text*", _open_whole_text),),
    ),
    Walk(
        "team",
        "My team uses 64 KiB everywhere: what does that cost us?",
        (
            Step("Click *Your setting now* and type 64 KiB", _type_setting),
            Step("Press Ctrl+Enter", _optimise),
        ),
    ),
    Walk(
        "network",
        "What if the network were twice as fast?",
        (
            Step("Click *What if a cost were another*", _go_to_what_if),
            Step("Click *twice as fast* beside the network", _double_network),
            Step("Click *Compare*", _compare),
        ),
    ),
)
