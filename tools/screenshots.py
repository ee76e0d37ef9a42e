"""Pictures of the page for the documents: `make screenshots` writes docs/screenshots/*.png.

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

from playwright.sync_api import Browser

from bench.browser import NoBrowser, browsing
from bench.service import serving

CHECKOUT = Path(__file__).resolve().parent.parent
FOLDER = CHECKOUT / "docs" / "screenshots"
EXAMPLES = CHECKOUT / "examples"
Scheme = Literal["light", "dark"]
AUDITED = "profile=myrinet-gam&setting=4KiB&min_message=1KiB&max_message=1MiB&max_regret=5%25"
STILL_LOADING = ".later, .waiting, .asking, [data-work], [aria-busy=true], .htmx-request"
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
    context = browser.new_context(
        base_url=address,
        viewport={"width": shot.width, "height": shot.height},
        color_scheme=shot.scheme,
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
    )
    page = context.new_page()
    page.goto(shot.address, wait_until="networkidle")
    page.wait_for_function("(there) => !document.querySelector(there)", arg=STILL_LOADING)
    page.evaluate(SAME_TIMES)
    # Parts that came later have moved what the address points at.
    page.evaluate("document.querySelector(':target')?.scrollIntoView()")
    page.wait_for_timeout(SETTLED_MS)
    FOLDER.mkdir(parents=True, exist_ok=True)
    place = FOLDER / f"{shot.name}.png"
    page.screenshot(path=place)
    print(f"{place.relative_to(CHECKOUT)}: {place.stat().st_size / 1024:.0f} KiB")
    context.close()


if __name__ == "__main__":
    sys.exit(main())
