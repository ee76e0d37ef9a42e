"""What the service reports about itself (limits, health, metrics), keys, exception handlers."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any, Literal, cast

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from app.api.openapi import reads, refuses
from app.api.respond import json_document, problem
from app.execution.engine import Pool
from app.http.app import with_head
from app.http.bodies import read_json
from app.http.dependencies import body_rules, own_router, service_of
from app.http.metrics import CONTENT_TYPE, gauges_of_connections
from app.http.service import Service
from app.questions import keys as questions
from app.questions.question import known_identifier
from app.schemas.base import invalid_fields
from app.schemas.changes import changes_out
from app.schemas.keys import key_out, new_key_out
from app.schemas.queries import MAX_PAGE_SIZE, ChangesQuery, NoQuery
from app.schemas.service import limits_out
from contract.changes import ChangesOut
from contract.keys import KeyIn, KeysOut, NewKeyOut, RotationIn
from contract.service import AliveOut, LimitsOut, ReadyOut
from domain.errors import (
    Conflict,
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
from models.records import KeyScope

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


# --- keys -----------------------------------------------------------------------------------------


# Those that make one take no Idempotency-Key: what was answered under it is stored.
keys_router = own_router(prefix="/keys", tags=["keys"])
_SECRET = {"Cache-Control": "no-store"}


@keys_router.get("", **refuses(409, 422, 503, sends=KeysOut))
async def list_keys(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Every key of the owner, without the secrets."""
    service = _managing(request)
    found = await service.call(partial(questions.list_keys, service.context.store))
    return json_document(KeysOut(tuple(map(key_out, found))))


@keys_router.post("", **reads(KeyIn, 409, sends=NewKeyOut, status=201, keyed=False))
async def create_key(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """A new key; its secret is sent this once."""
    service = _managing(request)
    asked = await read_json(request, KeyIn, **body_rules(request))
    make = partial(
        questions.create_key,
        service.context.store,
        asked.name,
        KeyScope(asked.scope),
        expires_in_s=asked.expires_in_s,
        requests_per_s=asked.requests_per_s,
    )
    return await _with_secret(service, await service.write(make))


@keys_router.post(
    "/{id}/rotation", **reads(RotationIn, 404, 409, sends=NewKeyOut, status=201, keyed=False)
)
async def rotate_key(request: Request, id: str, _: Annotated[NoQuery, Query()]) -> Response:
    """A new key like this one, which goes on for a while."""
    service = _managing(request)
    asked = await read_json(request, RotationIn, **body_rules(request))
    _check(id)
    make = partial(questions.rotate_key, service.context.store, id, kept_s=asked.kept_s)
    return await _with_secret(service, await service.write(make))


@keys_router.delete(
    "/{id}", status_code=204, response_class=Response, **refuses(404, 409, 422, 503)
)
async def revoke_key(request: Request, id: str, _: Annotated[NoQuery, Query()]) -> Response:
    """End a key, and the browsers that signed in by it, at once."""
    service = _managing(request)
    _check(id)
    await service.write(partial(questions.revoke_key, service.context.store, id))
    await service.lookups.refresh()
    return Response(status_code=204)


def _managing(request: Request) -> Service:
    """Return the service where keys mean something.

    Where nobody is asked who he is, anybody could make himself a key for later. Raises Conflict.
    """
    if request.app.state.gate is None:
        raise Conflict("this service asks nobody who he is: see SLUICE_AUTH")
    return service_of(request)


async def _with_secret(service: Service, made: questions.NewKey) -> Response:
    await service.lookups.refresh()
    return json_document(new_key_out(made), status=201, headers=_SECRET)


def _check(identifier: str) -> None:
    if identifier != questions.FIRST_KEY:
        known_identifier(identifier, "key")


@router.get("/changes", **refuses(422, 503, sends=ChangesOut))
async def changes(request: Request, query: Annotated[ChangesQuery, Query()]) -> Response:
    """Who changed what of the owner's, the newest first; of one subject where it is named."""
    store = service_of(request).context.store
    listed = partial(
        questions.list_changes,
        store,
        subject=query.subject,
        after=query.cursor,
        limit=query.limit,
    )
    return json_document(changes_out(await service_of(request).call(listed)))


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
