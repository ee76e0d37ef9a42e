"""The only exception handlers: every refusal becomes a problem document."""

from __future__ import annotations

from typing import Any, cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from app.api.respond import problem
from app.head import with_head
from app.schemas.base import invalid_fields
from domain.errors import MethodNotAllowed, NotFound, NotJson, RouteNotFound, SluiceError

_CLIENT_GONE = 499  # nobody reads it; the number is the common one in logs


def register(app: FastAPI) -> None:
    """Have this application answer every refusal with a problem document."""
    app.add_exception_handler(SluiceError, _refused)
    app.add_exception_handler(HTTPException, _not_routed)
    app.add_exception_handler(RequestValidationError, _invalid_parameters)
    app.add_exception_handler(ClientDisconnect, _client_gone)


async def _refused(request: Request, error: Exception) -> Response:
    return problem(cast(SluiceError, error))


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
    # The router names the methods of the first route with this path only; the document has all.
    path = getattr(request.scope.get("route"), "path", "")
    operations = request.app.openapi()["paths"].get(path)
    if operations is None:  # a page, or the document itself
        operations = request.app.state.page_methods.get(path, {"GET"})
    methods = {method.upper() for method in operations}
    return ", ".join(sorted(with_head(methods)))
