"""The OpenAPI document. Bodies are read raw, so what they are is declared here and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import UnionType
from typing import Any, TypeAlias, get_args

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from app.api.respond import PROBLEM
from app.http.access import is_public, scope_of
from app.registry import modules
from contract.declare import Input, Output
from contract.jobs import AnyJobOut
from contract.problem import ProblemOut
from contract.service import AliveOut, LimitsOut, ReadyOut

_REF = "#/components/schemas/{model}"
_BODIES: tuple[type[Input], ...] = ()
# FastAPI would make a validator of each for every route; no route validates what it sends.
_OUTPUTS: tuple[type[Output], ...] = (
    ProblemOut,
    LimitsOut,
    AliveOut,
    ReadyOut,
)
OutputType: TypeAlias = type[Output] | UnionType | None
_MEANINGS = {
    400: "The body is not JSON",
    401: "Who asks is not known: no key, or none that is valid",
    403: "The key does not have the scope that this takes, or a browser asks for a page of another "
    "host",
    404: "Nothing is stored under this name or id",
    408: "The body did not arrive in time",
    409: "The stored state contradicts the request, or a request with this key is under way",
    412: "What is to be changed is not in the state that If-Match names",
    413: "The body is over the limit",
    415: "The media type or encoding is not read here",
    422: "Well-formed, but cannot be honoured: `errors` says which field breaks which rule",
    429: "Too many requests by one owner or key, or as much as one may have",
    503: "Not ready, or too much work is waiting; `Retry-After` says when to try again",
}
_BODY_ERRORS = (400, 408, 413, 415, 422, 503)
_PREFER = {
    "name": "Prefer",
    "in": "header",
    "required": False,
    "description": "`respond-async` gives 202 and a durable job",
    "schema": {"type": "string"},
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same request with the same key is answered once, and again with the same "
    "bytes for a day",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}
_MATCH = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "description": "ETags, one of which what is to be changed has to have, or `*`",
    "schema": {"type": "string"},
}
UNCHANGED: dict[int, dict[str, Any]] = {304: {"description": "The client holds these very bytes"}}
_JOB = {
    "description": "A durable job was stored",
    "headers": {
        "Location": {"description": "The job", "required": True, "schema": {"type": "string"}}
    },
    "content": {
        "application/json": {
            "schema": {
                "anyOf": [{"$ref": _REF.format(model=one.__name__)} for one in get_args(AnyJobOut)]
            }
        }
    },
}


def reads(
    model: type[Input],
    *errors: int,
    sends: OutputType = None,
    status: int = 200,
    may_be_async: bool = False,
    keyed: bool = True,
    also: Mapping[int, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return keywords for the route of an operation with a JSON body.

    `sends` is the output of its `status`; `also` are further responses. `keyed`: it takes an
    Idempotency-Key, as every POST does.
    """
    extra: dict[str, Any] = {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": _REF.format(model=model.__name__)}}
            },
        }
    }
    if keyed:
        extra["parameters"] = [_KEY]
        errors = (*errors, 409)
    responses = _sent(sends, status, also or {})
    found = {*_BODY_ERRORS, *errors}
    keywords = _keywords(extra, (*found,), responses, may_be_async=may_be_async)
    return {**keywords, "status_code": status}


def changes(keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of an operation that takes If-Match as well."""
    extra = keywords["openapi_extra"]
    extra = {**extra, "parameters": [*extra.get("parameters", ()), _MATCH]}
    responses = {**_refusals((412,)), **keywords["responses"]}
    return {**keywords, "openapi_extra": extra, "responses": dict(sorted(responses.items()))}


def reads_traces(
    several: type[Input], media_types: Sequence[str], *, sends: OutputType
) -> dict[str, Any]:
    """Return keywords for the route of an operation that reads a file, or JSON of several."""
    content: dict[str, Any] = {kind: {"schema": {"type": "string"}} for kind in media_types}
    content["application/json"] = {"schema": {"$ref": _REF.format(model=several.__name__)}}
    extra = {"requestBody": {"required": True, "content": content}, "parameters": [_KEY]}
    return _keywords(extra, (*_BODY_ERRORS, 409), _sent(sends, 200, {}), may_be_async=False)


def sends_text(*errors: int) -> dict[str, Any]:
    """Return keywords for a route that answers with a file."""
    response = {
        "description": "The file",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
    return refuses(*errors, also={200: response})


def refuses(
    *errors: int,
    sends: OutputType = None,
    may_be_async: bool = False,
    also: Mapping[int, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return keywords for the route of an operation without a body, as `reads` does."""
    responses = _sent(sends, 200, also or {})
    return _keywords({}, errors, responses, may_be_async=may_be_async)


def _sent(
    model: OutputType, status: int, also: Mapping[int, Mapping[str, Any]]
) -> dict[int, Mapping[str, Any]]:
    responses = dict(also)
    if model is not None:
        choices = [{"$ref": _REF.format(model=one.__name__)} for one in get_args(model) or (model,)]
        schema = choices[0] if len(choices) == 1 else {"anyOf": choices}
        other = responses.get(status, {})
        content = {"application/json": {"schema": schema}, **other.get("content", {})}
        responses[status] = {**other, "content": content}
    return responses


def _keywords(
    extra: dict[str, Any],
    errors: tuple[int, ...],
    also: Mapping[int, Mapping[str, Any]],
    *,
    may_be_async: bool,
) -> dict[str, Any]:
    responses = _refusals({*errors, 403})
    if may_be_async:
        responses[202] = _JOB
        extra = {**extra, "parameters": [_PREFER, *extra.get("parameters", ())]}
    responses.update((status, dict(response)) for status, response in also.items())
    return {"openapi_extra": extra, "responses": responses}


def _refusals(errors: Iterable[int]) -> dict[int | str, Any]:
    return {
        status: {
            "description": _MEANINGS[status],
            "content": {PROBLEM: {"schema": {"$ref": _REF.format(model="ProblemOut")}}},
        }
        for status in sorted(errors)
    }


def publish(app: FastAPI) -> None:
    """Have this application publish the document with the bodies' schemas in it."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _build(app: FastAPI) -> dict[str, Any]:
    built = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        servers=[{"url": root}] if (root := app.state.settings.root_path) else None,
    )
    routes = [*modules("routes")]
    bodies = (*_BODIES, *(model for module in routes for model in module.BODIES))
    outputs = (*_OUTPUTS, *(model for module in routes for model in module.OUTPUTS))
    _, definitions = TypeAdapter.json_schemas(
        [
            *((model.__name__, "validation", TypeAdapter(model)) for model in bodies),
            *((model.__name__, "serialization", TypeAdapter(model)) for model in outputs),
        ],
        ref_template=_REF,
    )
    schemas = built.setdefault("components", {}).setdefault("schemas", {})
    schemas.update(_named_plainly(definitions["$defs"]))
    if app.state.settings.asks_who:
        _add_security(built)
    return built


def _named_plainly(definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas without what distinguishes two of one class: a fit that is sent keeps its
    name, one that is given in a request, where defaults may be left out, is a `FitGiven`.
    """
    text = json.dumps(definitions).replace('Out-Output"', 'Out"').replace('Out-Input"', 'Given"')
    named: dict[str, Any] = json.loads(text)
    return named


def _add_security(document: dict[str, Any]) -> None:
    """Say of each operation that not everybody may ask what it takes, and how it is refused."""
    document["components"]["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "A key of the service"}
    }
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if is_public(path):
                continue
            scope = scope_of(method.upper(), path)
            operation["security"] = [{"key": []}]
            operation["x-scope"] = scope.value
            refusals = {str(status): one for status, one in _refusals((401, 429)).items()}
            operation["responses"] = {**refusals, **operation["responses"]}
