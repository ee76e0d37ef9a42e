"""What routes ask for: the running service, and the state of the connection."""

from __future__ import annotations

from typing import TypedDict

from fastapi import Request

from app.bodies import BodyBudget
from app.service import Client, Service
from domain.errors import NotReady

READER_COOKIE = "sluice_reader"  # tells the readers behind one address apart, and nothing else
_MAX_COOKIE = 64


def service_of(request: Request) -> Service:
    """The running service. Raises NotReady before it has started and after it has ended."""
    service: Service | None = getattr(request.app.state, "service", None)
    if service is None:
        raise NotReady("the service is starting or stopping")
    return service


def client_of(request: Request) -> Client:
    """Who waits for the answer, after the body was read: an address, and there a reader."""

    async def wait_disconnected() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    address = request.client.host if request.client else ""
    reader = request.cookies.get(READER_COOKIE, "")[:_MAX_COOKIE]
    return Client(f"{address} {reader}", wait_disconnected)


def prefers_async(request: Request) -> bool:
    """Whether the client prefers a job (RFC 7240 `Prefer: respond-async`)."""
    given = ",".join(request.headers.getlist("prefer"))
    return any(
        preference.split(";")[0].strip().lower() == "respond-async"
        for preference in given.split(",")
    )


class BodyRules(TypedDict):
    """How long a body may be, and the budget it counts against."""

    limit: int
    budget: BodyBudget


def body_rules(request: Request) -> BodyRules:
    """For JSON bodies."""
    state = request.app.state
    return {"limit": state.settings.max_body_bytes, "budget": state.bodies}


def trace_rules(request: Request) -> BodyRules:
    """For files of measurements."""
    state = request.app.state
    return {"limit": state.settings.max_trace_bytes, "budget": state.traces}
