"""Limits, health, metrics, documentation, and what every answer has in common."""

from __future__ import annotations

import re

import httpx
import pytest
from fastapi.routing import APIRoute
from starlette.routing import Match

from app.errors import RETRY_AFTER_S
from app.http.app import Outermost
from app.http.dependencies import OwnRoute
from app.http.metrics import Metrics
from app.main import create_app
from app.schemas.base import read_output
from app.settings import Settings
from contract.limits import MAX_MESSAGE_BYTES, MAX_STAGES
from contract.problem import ProblemOut
from contract.service import LimitsOut, ReadyOut
from domain.errors import StoreUnavailable
from tests.app.serving import GUARD_S, Live, settings_for, wait_until


class TestLimits:
    def test_every_limit_is_told(self, client: httpx.Client) -> None:
        response = client.get("/limits")
        read_output(LimitsOut, response.content)
        limits = response.json()
        assert limits["max_stages"] == MAX_STAGES == 64
        assert limits["max_message_bytes"] == MAX_MESSAGE_BYTES == 2**48
        assert limits["max_fragments"] == 100_000
        assert limits["max_body_bytes"] == 4 * 2**20


class TestHealth:
    def test_alive(self, client: httpx.Client) -> None:
        assert client.get("/healthz").json() == {"status": "alive"}

    def test_ready_names_the_database(self, own: Live) -> None:
        wait_until(lambda: own.client.get("/readyz").status_code == 200)
        response = own.client.get("/readyz")
        read_output(ReadyOut, response.content)
        assert response.json()["database"] == own.service.context.store.dialect

    def test_not_ready_without_the_database(
        self, live: Live, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Alive all the same; the answer says when to try again and nothing of the address."""

        def refuse() -> None:
            raise StoreUnavailable("the database cannot be reached")

        monkeypatch.setattr(type(live.service.context.store), "ping", lambda _: refuse())
        response = live.client.get("/readyz")
        assert (response.status_code, response.json()["code"]) == (503, "not_ready")
        assert int(response.headers["retry-after"]) in RETRY_AFTER_S
        missing = {"pointer": "/database", "detail": "the database cannot be reached"}
        assert missing in response.json()["errors"]
        assert live.client.get("/healthz").status_code == 200

    def test_not_ready_before_it_has_started(self) -> None:
        app = create_app(settings_for("sqlite:///never-opened.db"))
        transport = httpx.ASGITransport(app=app)

        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
                return await client.get("/readyz")

        import asyncio

        response = asyncio.run(ask())
        assert (response.status_code, response.json()["code"]) == (503, "not_ready")


class TestMetrics:
    def test_routes_are_templates(self, client: httpx.Client) -> None:
        """What a client invents does not become a series."""
        client.get("/profiles/gms")
        client.get("/invented-by-a-client")
        client.request("BREW", "/healthz")
        text = client.get("/metrics").text
        assert 'route="/profiles/{name}"' in text
        assert "invented-by-a-client" not in text
        assert "BREW" not in text
        assert 'route="unmatched",status="404"' in text

    def test_the_format(self, client: httpx.Client) -> None:
        """Every line is a comment or a sample, and each histogram ends with its count."""
        response = client.get("/metrics")
        assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
        sample = re.compile(r'[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [0-9.e+-]+')
        lines = response.text.splitlines()
        assert all(line.startswith("# ") or sample.fullmatch(line) for line in lines)
        ends = [line for line in lines if 'le="+Inf"' in line]
        counts = [line for line in lines if "_count{" in line]
        assert [line.split()[-1] for line in ends] == [line.split()[-1] for line in counts]


class TestProblems:
    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [
            ("GET", "/optimise", 404),
            ("GET", "/profiles/", 404),
            ("GET", "/profiles/gms/revisions/", 404),
            ("GET", "/optimize", 405),
            ("POST", "/healthz", 405),
            ("DELETE", "/profiles", 405),
            ("TRACE", "/limits", 405),
            ("PATCH", "/profiles/gms", 405),
        ],
    )
    def test_routing_refusals(
        self, client: httpx.Client, method: str, path: str, status: int
    ) -> None:
        response = client.request(method, path)
        assert response.status_code == status
        assert response.headers["content-type"] == "application/problem+json"
        read_output(ProblemOut, response.content)

    def test_405_names_every_method_of_the_path(self, client: httpx.Client) -> None:
        assert client.patch("/profiles/gms").headers["allow"] == "DELETE, GET, HEAD, PUT"

    def test_unexpected_errors_tell_nothing(self) -> None:
        """500 as a problem document; the text of the exception goes to the log only."""
        import asyncio

        async def broken(scope: object, receive: object, send: object) -> None:
            raise RuntimeError("secret")

        transport = httpx.ASGITransport(app=Outermost(broken, Metrics()))  # type: ignore[arg-type]

        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
                return await client.get("/")

        response = asyncio.run(ask())
        assert response.status_code == 500
        assert response.json()["code"] == "internal_error"
        assert "secret" not in response.text

    def test_an_unexpected_error_is_found_in_the_log(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """By the identifier of its answer, which is the request's own where it has one."""
        import asyncio

        async def broken(scope: object, receive: object, send: object) -> None:
            raise RuntimeError

        transport = httpx.ASGITransport(app=Outermost(broken, Metrics()))  # type: ignore[arg-type]

        async def ask(**headers: str) -> str:
            async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
                return (await client.get("/", headers=headers)).headers["x-request-id"]

        found = [asyncio.run(ask()), asyncio.run(ask(**{"X-Request-ID": "mine-1"}))]
        assert re.fullmatch(r"[0-9a-f]{32}", found[0])
        assert found[1] == "mine-1"
        assert [one in line for one, line in zip(found, caplog.messages, strict=True)] == [True] * 2

    @pytest.mark.parametrize("given", ["", "a b", "a" * 65, "\u00e9".encode().decode("latin-1")])
    def test_an_identifier_that_is_none_is_replaced(self, client: httpx.Client, given: str) -> None:
        """It is never repeated: what comes from outside stays out of headers and logs."""
        headers = {"X-Request-ID": given.encode("latin-1")}
        refused = client.get("/nothing", headers=headers)  # type: ignore[arg-type]
        assert re.fullmatch(r"[0-9a-f]{32}", refused.headers["x-request-id"])
        assert "x-request-id" not in client.get("/healthz").headers
        answered = client.get("/healthz", headers={"X-Request-ID": "b.2"})
        assert answered.headers["x-request-id"] == "b.2"

    def test_headers_of_every_answer(self, client: httpx.Client) -> None:
        for path in ("/healthz", "/docs", "/nothing"):
            assert client.get(path).headers["x-content-type-options"] == "nosniff"


class TestDocumentation:
    def test_openapi_is_served(self, live: Live) -> None:
        document = live.client.get("/openapi.json", timeout=GUARD_S).json()
        assert document == live.app.openapi()


def test_routes_match_what_the_framework_has_them_match() -> None:
    """On the path of each of them and on paths near it, also below a root path."""
    routes = [route for route in create_app(Settings()).routes if isinstance(route, OwnRoute)]
    paths = {re.sub(r"\{.*?\}", word, route.path) for route in routes for word in ("a", "a/b", "")}
    changed = (
        str,
        str.upper,
        lambda path: f"/{path}",
        lambda path: f"{path}/",
        lambda path: path[1:],
    )
    asked = [
        {"type": "http", "method": "GET", "path": root + change(path), "root_path": root}
        for path in paths
        for change in changed
        for root in ("", "/root")
    ]
    matched = 0
    for scope in asked:
        for route in routes:
            found, _ = route.matches(dict(scope))
            assert found == APIRoute.matches(route, dict(scope))[0], (route.path, scope)
            matched += found is not Match.NONE
    assert matched > 2 * len(routes)
