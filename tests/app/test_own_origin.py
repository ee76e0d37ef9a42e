"""Pages of other hosts: what they have a browser send is refused, whatever path it goes to."""

from __future__ import annotations

import re
from collections.abc import Mapping

import httpx
import pytest

from app.http.dependencies import OwnRoute
from tests.app.serving import Live

FORM = "application/x-www-form-urlencoded"
FOREIGN: tuple[Mapping[str, str], ...] = (
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:3000"},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
)
ASKED = (
    ("/ui/optimize", FORM, "message=4096"),
    ("/ui/fits", "text/plain", "bytes,us\n1,1\n"),
    ("/ui/fits/none/again", FORM, ""),
    ("/ui/jobs/none/cancel", FORM, ""),
    ("/ui/profiles/myrinet-gam/delete", FORM, ""),
    ("/ui/profiles/myrinet-gam/table", FORM, "digest=0"),
    ("/fit?save_as=foreign", "text/plain", "bytes,us\n1,1\n"),
    ("/optimize", "", '{"message_bytes": 1}'),
)


@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize(("path", "kind", "body"), ASKED)
def test_a_foreign_page_is_refused(
    client: httpx.Client, headers: Mapping[str, str], path: str, kind: str, body: str
) -> None:
    """Before anything is read: the same code on every path, and nothing has changed."""
    sent = {**headers, "Content-Type": kind, "Accept": "application/json"}
    refused = client.post(path, content=body, headers=sent)
    assert (refused.status_code, refused.json()["code"]) == (403, "foreign_origin")
    assert client.get("/profiles/myrinet-gam").status_code == 200
    assert client.get("/profiles/foreign").status_code == 404


def test_no_route_can_lack_the_check(live: Live) -> None:
    """A router that is another would pass all of them on; the document alone is the framework's."""
    others = {getattr(one, "path", one) for one in live.app.routes if not isinstance(one, OwnRoute)}
    assert others == {"/openapi.json"}


def test_the_refusal_is_a_page_where_pages_are_looked_at(client: httpx.Client) -> None:
    """With the strict policy of every page."""
    sent = {"Sec-Fetch-Site": "cross-site", "Accept": "text/html", "Content-Type": FORM}
    refused = client.post("/ui/optimize", content="message=4096", headers=sent)
    assert refused.status_code == 403
    assert "A page of another host asks" in refused.text
    assert "script-src 'self'" in refused.headers["content-security-policy"]


def test_own_pages_programs_and_proxies_are_let_through(live: Live) -> None:
    """What they lack is another matter: here the job."""
    here = f"127.0.0.1:{live.port}"
    for headers in (
        {},
        {"Sec-Fetch-Site": "same-origin", "Origin": f"http://{here}"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": f"http://{here}"},
        {"Origin": "HTTP://LocalHost:80", "Host": "localhost"},
        {"Origin": "https://sluice.example", "Host": "sluice.example"},
        {"Origin": "https://sluice.example", "Host": "sluice.example:443"},
        {"Origin": "https://sluice.example", "X-Forwarded-Host": "sluice.example"},
        # A proxy that hands nothing on, and a browser that says where it is.
        {"Origin": "https://sluice.example", "Sec-Fetch-Site": "same-origin"},
    ):
        sent = {**headers, "Content-Type": FORM, "Accept": "application/json"}
        answer = live.client.post("/ui/jobs/none-such/cancel", content="", headers=sent)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), headers


def test_a_foreign_page_may_lead_here(client: httpx.Client) -> None:
    """A link on another host is only a link."""
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Accept": "text/html"}
    assert client.get("/ui/profiles", headers=headers).status_code == 200


def test_a_foreign_name_for_this_machine_is_refused(live: Live) -> None:
    """DNS rebinding: the browser takes such a page for one of this service, so reading counts."""
    for name in ("evil.example", "rebound.evil.example.", "127.0.0.1.evil.example"):
        host = f"{name}:{live.port}"
        headers = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
        for method, path in (("GET", "/profiles"), ("GET", "/ui/profiles"), ("POST", "/optimize")):
            sent = {**headers, "Accept": "application/json"}
            answer = live.client.request(method, path, headers=sent)
            assert answer.json()["code"] == "foreign_origin", (name, path)


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST.", "a.localhost", "[::1]", "here"])
def test_names_of_this_machine(live: Live, name: str) -> None:
    """Which no foreign host can have."""
    answer = live.client.get("/profiles", headers={"Host": f"{name}:{live.port}"})
    assert answer.status_code == 200


def test_every_route_that_changes_something_is_guarded(live: Live) -> None:
    """Also those that are added later."""
    operations = live.app.openapi()["paths"]
    every = {path: {method.upper() for method in found} for path, found in operations.items()}
    for path, methods in live.app.state.page_methods.items():
        every.setdefault(path, set()).update(methods)
    unsafe = [(m, path) for path, found in every.items() for m in found - {"GET", "HEAD"}]
    assert len(unsafe) > 20
    for method, path in unsafe:
        headers = {"Sec-Fetch-Site": "cross-site", "Accept": "application/json"}
        answer = live.client.request(method, re.sub(r"{\w+}", "x", path), headers=headers)
        assert answer.json()["code"] == "foreign_origin", (method, path)


def test_own_forms_may_say_where_they_come_from(client: httpx.Client) -> None:
    """Under "no-referrer" browsers would say `Origin: null`, also of a form of this page."""
    assert client.get("/").headers["referrer-policy"] == "same-origin"
