"""What the service reports about itself (limits, health, metrics), and exception handlers."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal, cast

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from app.api.openapi import refuses
from app.api.respond import json_document, problem
from app.execution.engine import Pool
from app.http.app import with_head
from app.http.dependencies import own_router, service_of
from app.http.metrics import CONTENT_TYPE, gauges_of_connections
from app.schemas.base import invalid_fields
from app.schemas.queries import MAX_PAGE_SIZE, NoQuery
from app.schemas.service import limits_out
from contract.service import AliveOut, LimitsOut, ReadyOut
from domain.errors import (
    FieldProblem,
    MethodNotAllowed,
    NotFound,
    NotJson,
    NotReady,
    Overloaded,
    RouteNotFound,
    SluiceError,
    StoreUnavailable,
)

router = own_router(tags=["service"])
_PING_LIMIT_S = 5.0
_METRICS = {
    200: {
        "description": "Prometheus text format",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}


@router.get("/limits", **refuses(422, sends=LimitsOut))
async def limits(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Everything that a request is measured against."""
    settings = service_of(request).context.settings
    return json_document(limits_out(settings, max_page_size=MAX_PAGE_SIZE))


@router.get("/healthz", **refuses(422, sends=AliveOut))
async def alive(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """The process answers."""
    return json_document(AliveOut("alive"))


@router.get("/readyz", **refuses(422, 503, sends=ReadyOut))
async def ready(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """The database and the workers can be reached, and the service is not about to end.

    What is not so is named in `errors`, all of it at once.
    """
    if request.app.state.is_draining:
        raise NotReady("draining: this service ends soon; send requests elsewhere")
    service = service_of(request)
    store, engine = service.context.store, service.context.engine
    missing: list[FieldProblem] = []
    try:
        await asyncio.wait_for(service.is_reached(), _PING_LIMIT_S)
    except TimeoutError:
        missing.append(FieldProblem("/database", "the database does not answer"))
    except (StoreUnavailable, Overloaded) as refusal:
        missing.append(FieldProblem("/database", refusal.detail))
    workers = engine.capacity(Pool.SOLVE).ready
    if workers < 1:
        missing.append(FieldProblem("/workers", "no worker is ready"))
    if missing:
        raise NotReady("; ".join(one.detail for one in missing), problems=tuple(missing))
    if request.app.state.gate is not None:  # anybody may ask this
        return json_document(ReadyOut("ready", None, workers))
    database: Literal["sqlite", "postgresql"] = (
        "postgresql" if store.dialect == "postgresql" else "sqlite"
    )
    return json_document(ReadyOut("ready", database, workers))


@router.get("/metrics", response_class=Response, **refuses(422, also=_METRICS))
async def metrics(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Requests, answers and what is waiting, for Prometheus."""
    state = request.app.state
    connections = gauges_of_connections(state.door)
    is_serving = not state.is_draining
    text = await service_of(request).exposition(connections, is_serving=is_serving)
    return Response(text, media_type=CONTENT_TYPE)


# --- exception handlers: every refusal becomes a problem document ---------------------------------


_CLIENT_GONE = 499  # nobody reads it; the number is the common one in logs


def register(app: FastAPI) -> None:
    """Have this application answer every refusal with a problem document."""
    app.add_exception_handler(SluiceError, _refused)
    app.add_exception_handler(HTTPException, _not_routed)
    app.add_exception_handler(RequestValidationError, _invalid_parameters)
    app.add_exception_handler(ClientDisconnect, _client_gone)


async def _refused(request: Request, error: Exception) -> Response:
    refusal = cast(SluiceError, error)
    request.app.state.metrics.refused(refusal.code)
    return problem(refusal)


async def _client_gone(request: Request, error: Exception) -> Response:
    return Response(status_code=_CLIENT_GONE)


async def _not_routed(request: Request, error: Exception) -> Response:
    status = cast(HTTPException, error).status_code
    if status == 404:
        return problem(RouteNotFound("there is no such path; /docs lists those there are"))
    if status == 405:
        allowed = _allowed_methods(request)
        refusal = MethodNotAllowed(f"this path answers {allowed}")
        return problem(refusal, headers={"Allow": allowed})
    return problem(NotJson("the request could not be read"))


async def _invalid_parameters(request: Request, error: Exception) -> Response:
    found = list(cast(RequestValidationError, error).errors())
    if found[0]["loc"][0] == "path":
        return problem(NotFound("nothing is stored under this name or id"))
    without_place: list[dict[str, Any]] = [{**one, "loc": tuple(one["loc"])[1:]} for one in found]
    return problem(invalid_fields(without_place, total=len(found)))


def _allowed_methods(request: Request) -> str:
    # The router names the methods of the first route with this path only.
    path = getattr(request.scope.get("route"), "path", "")
    return ", ".join(sorted(with_head(request.app.state.methods.get(path, {"GET"}))))
