"""Pictures of the page for the documents: `make screenshots` writes docs/screenshots/.

A service of its own on an empty database is asked the README's questions, and Debian's Chromium
looks at the answers. Sizes of windows are fixed, nothing moves, and times of day are all the same.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, Page

from bench.browser import NoBrowser, browsing
from bench.service import serving
from tools.walk import WALKS, Walk, take, wait_loaded

CHECKOUT = Path(__file__).resolve().parent.parent
FOLDER = CHECKOUT / "docs" / "screenshots"
EXAMPLES = CHECKOUT / "examples"
Scheme = Literal["light", "dark"]
AUDITED = "profile=myrinet-gam&setting=4KiB&min_message=1KiB&max_message=1MiB&max_regret=5%25"
# When something was stored, and how long it took, changes from run to run.
SAME_TIMES = r"""() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    node.data = node.data
      .replace(/(Audited in )[\d.]+ s/, "$17 s")
      .replace(/\d{4}-\d\d-\d\d(.)\d\d:\d\d(:\d\d)?/g, "2026-01-31$112:00");
  }
}"""
WALK_WIDTH, WALK_HEIGHT, JPEG_QUALITY = 1152, 720, 70
SETTLED_MS = 400  # what charts need to have drawn their last frame


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture: where to go, how wide, and how much of it from the top (CSS pixels)."""

    name: str
    address: str
    width: int = 1280
    height: int = 900
    scheme: Scheme = "light"


def main() -> int:
    """Take all pictures, or those that are named. Returns an exit code."""
    wanted = set(sys.argv[1:])
    try:
        with (
            tempfile.TemporaryDirectory(prefix="sluice-screenshots-") as folder,
            serving(f"sqlite:///{Path(folder, 'sluice.db')}") as service,
            browsing() as browser,
        ):
            address = f"http://127.0.0.1:{service.port}"
            for shot in shots(_stored(browser, address)):
                if not wanted or shot.name in wanted:
                    _take(browser, address, shot)
            for walk in WALKS:
                if not wanted or f"walk-{walk.name}" in wanted:
                    _take_walk(browser, address, walk)
    except NoBrowser as missing:
        print(f"sluice: {missing}", file=sys.stderr)
        return 1
    return 0


def shots(ids: Mapping[str, str]) -> tuple[Shot, ...]:
    """The pictures, of answers and fits with these identifiers."""
    staging = f"/ui/answers/{ids['staging']}?relative=10+%25&current=64+KiB"
    compared = f"/ui/compare?id={ids['exact']}&id={ids['fixed']}"
    return (
        Shot("workbench", "/"),
        Shot("answer", staging, height=1620),
        Shot("answer-dark", staging, height=1080, scheme="dark"),
        Shot("answer-narrow", staging + "#result", width=360, height=1400),
        Shot("fit", f"/ui/fits/{ids['fit']}", height=1400),
        Shot("profiles", "/ui/profiles/myrinet-gam", height=1200),
        Shot("compare", compared, height=1200),
        Shot("audit", f"/ui/audit?{AUDITED}", height=1100),
    )


def _stored(browser: Browser, address: str) -> dict[str, str]:
    """The identifiers of what the pictures show, which is stored first."""
    context = browser.new_context(base_url=address)
    asked: dict[str, Any] = {"profile": "myrinet-gam", "message_bytes": 4096}
    trace = (EXAMPLES / "local-path-direct.csv").read_bytes()
    found = {
        strategy: _posted(context.request.post("/optimize", data={**asked, "strategy": strategy}))
        for strategy in ("exact", "fixed")
    }
    staging = json.loads((EXAMPLES / "kv-staging.json").read_text("utf-8"))
    staging["uncertainty"] = {"relative": 0.1, "current": {"repeat": 65536}}
    found["staging"] = _posted(context.request.post("/optimize", data=staging))
    found["fit"] = _posted(
        context.request.post(
            "/fit?save_as=local-path", data=trace, headers={"Content-Type": "text/csv"}
        )
    )
    context.close()
    return found


def _posted(response: Any) -> str:
    if not response.ok:
        raise RuntimeError(f"{response.url} answered {response.status}")
    document = response.json()
    return str(document.get("id") or document["fit_id"])


def _take(browser: Browser, address: str, shot: Shot) -> None:
    page = _opened(browser, address, shot)
    page.goto(shot.address, wait_until="networkidle")
    wait_loaded(page)
    # Parts that came later have moved what the address points at.
    page.evaluate("document.querySelector(':target')?.scrollIntoView()")
    _write(page, f"{shot.name}.png")
    page.context.close()


def _take_walk(browser: Browser, address: str, walk: Walk) -> None:
    page = _opened(browser, address, Shot(walk.name, "/", width=WALK_WIDTH, height=WALK_HEIGHT))

    def seen(step: int) -> None:
        if step:  # the first view has a picture
            _write(page, walk.picture(step), type="jpeg", quality=JPEG_QUALITY)

    take(walk, page, seen)
    page.context.close()


def _opened(browser: Browser, address: str, shot: Shot) -> Page:
    context = browser.new_context(
        base_url=address,
        viewport={"width": shot.width, "height": shot.height},
        color_scheme=shot.scheme,
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
    )
    return context.new_page()


def _write(page: Page, name: str, **how: Any) -> None:
    page.evaluate(SAME_TIMES)
    page.wait_for_timeout(SETTLED_MS)
    FOLDER.mkdir(parents=True, exist_ok=True)
    place = FOLDER / name
    page.screenshot(path=place, **how)
    print(f"{place.relative_to(CHECKOUT)}: {place.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    sys.exit(main())
