"""Refusals as pages for those who look at pages, and as problem documents for all others."""

from __future__ import annotations

import asyncio
import html

import httpx
import pytest

from app.main import create_app
from app.schemas.base import read_output
from app.text.notices import sentence
from app.ui.pages import POLICY
from contract.problem import ProblemOut
from tests.app.serving import settings_for

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
PAGE = "text/html; charset=utf-8"
PROBLEM = "application/problem+json"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/ui/no-such-view", 404),
        ("GET", "/ui/assets/0123/sluice.css", 404),
        ("GET", "/ui/assets/0123/%2e%2e%2fpages.py", 404),
        ("DELETE", "/", 405),
        ("POST", "/docs", 405),
        ("GET", "/ui/", 404),
    ],
)
def test_below_the_pages_paths_a_refusal_is_a_page(
    client: httpx.Client, method: str, path: str, status: int
) -> None:
    """With the status and the words of the document that others get, under the strict policy."""
    shown = client.request(method, path, headers={"Accept": BROWSER})
    document = client.request(method, path, headers={"Accept": "application/json"})
    assert (shown.status_code, document.status_code) == (status, status)
    assert shown.headers["content-type"] == PAGE
    assert shown.headers["content-security-policy"] == POLICY
    assert shown.headers["vary"] == "Accept"
    assert shown.headers["x-content-type-options"] == "nosniff"
    assert document.headers["content-type"] == PROBLEM
    stated = read_output(ProblemOut, document.content)
    text = html.unescape(shown.text)
    assert stated.title in text
    assert sentence(stated.detail) in text
    assert f"<code>{stated.code}</code>" in text
    assert shown.headers.get("allow") == document.headers.get("allow")


def test_a_path_that_nothing_serves(client: httpx.Client) -> None:
    """A page where HTML is asked for; what programs send gets the document."""
    for accept, kind in ((BROWSER, PAGE), ("*/*", PROBLEM), ("", PROBLEM)):
        response = client.get("/optimise", headers={"Accept": accept})
        assert (response.status_code, response.headers["content-type"]) == (404, kind)


@pytest.mark.parametrize("path", ["/profiles/none-such", "/optimizations?limit=0", "/optimize"])
def test_operations_answer_browsers_as_they_answer_programs(
    client: httpx.Client, path: str
) -> None:
    """What the API serves stays JSON, whatever the Accept header of the client's library says."""
    response = client.get(path, headers={"Accept": BROWSER})
    assert response.headers["content-type"] == PROBLEM


def test_a_refusal_of_a_part_is_a_part(client: httpx.Client) -> None:
    """What htmx puts into a page is not a page."""
    asked = {"HX-Request": "true", "HX-Request-Type": "partial", "Accept": "text/html"}
    response = client.get("/ui/no-such-view", headers=asked)
    assert response.status_code == 404
    assert response.text.startswith('<section class="panel refused"')
    assert "<html" not in response.text


def test_what_a_client_invents_is_escaped_and_no_label(client: httpx.Client) -> None:
    """Neither in a page nor in the metrics."""
    shown = client.get("/ui/<script>alert(1)</script>", headers={"Accept": BROWSER})
    assert "alert(1)" not in shown.text
    client.get("/docs")
    client.get("/ui/assets/0/invented-by-a-client.css")
    metrics = client.get("/metrics").text
    assert 'route="/ui/assets/{digest}/{name}",status="404"' in metrics
    assert 'route="/docs",status="200"' in metrics
    assert "invented-by-a-client" not in metrics


@pytest.mark.parametrize(("accept", "kind"), [(BROWSER, PAGE), ("application/json", PROBLEM)])
def test_an_unexpected_error_tells_nothing(accept: str, kind: str) -> None:
    """500 as a page; the text of the exception goes to the log only."""
    app = create_app(settings_for("sqlite:///never-opened.db"))

    def broken() -> None:
        raise RuntimeError("secret")

    app.add_api_route("/ui/broken", broken)
    response = asyncio.run(_asked(app, "/ui/broken", accept))
    assert (response.status_code, response.headers["content-type"]) == (500, kind)
    stated = response.headers.get("content-security-policy")
    assert stated == (POLICY if kind == PAGE else None)
    assert "internal_error" in response.text
    assert "secret" not in response.text


def test_pages_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the templates are what fails, the error is a document after all."""
    app = create_app(settings_for("sqlite:///never-opened.db"))

    def broken(*given: object, **named: object) -> str:
        raise RuntimeError("secret")

    monkeypatch.setattr(app.state.pages, "html", broken)
    response = asyncio.run(_asked(app, "/", BROWSER))
    assert (response.status_code, response.headers["content-type"]) == (500, PROBLEM)
    assert response.json()["code"] == "internal_error"


async def _asked(app: object, path: str, accept: str) -> httpx.Response:
    transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        return await client.get(path, headers={"Accept": accept})


def test_below_the_pages_paths_json_is_had_for_the_asking(client: httpx.Client) -> None:
    """Also of what a view itself refuses."""
    for path in ("/ui/jobs/none-such", "/ui/answers/none-such", "/ui/profiles/none-such"):
        response = client.get(path, headers={"Accept": "application/json"})
        assert (response.status_code, response.headers["content-type"]) == (404, PROBLEM)
