"""Keys by which programs and browsers say who they are: made, listed, exchanged and revoked."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query, Request, Response

from app.api.openapi import reads, refuses
from app.api.respond import json_document
from app.http.bodies import read_json
from app.http.dependencies import body_rules, own_router, service_of
from app.http.service import Service
from app.questions import keys as questions
from app.schemas.queries import NoQuery
from app.verbs.keys.answer import key_out, new_key_out
from contract.keys import KeyIn, KeyOut, KeysOut, NewKeyOut, RotationIn
from domain.errors import Conflict
from models.identifiers import known_identifier
from models.records import KeyScope

# Those that make one take no Idempotency-Key: what was answered under it is stored.
router = own_router(prefix="/keys", tags=["keys"])
BODIES = (KeyIn, RotationIn)
OUTPUTS = (KeyOut, NewKeyOut, KeysOut)
_SECRET = {"Cache-Control": "no-store"}


@router.get("", **refuses(409, 422, 503, sends=KeysOut))
async def list_keys(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Every key of the owner, without the secrets."""
    service = _managing(request)
    found = await service.call(partial(questions.list_keys, service.context.store))
    return json_document(KeysOut(tuple(map(key_out, found))))


@router.post("", **reads(KeyIn, 409, sends=NewKeyOut, status=201, keyed=False))
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


@router.post(
    "/{id}/rotation", **reads(RotationIn, 404, 409, sends=NewKeyOut, status=201, keyed=False)
)
async def rotate_key(request: Request, id: str, _: Annotated[NoQuery, Query()]) -> Response:
    """A new key like this one, which goes on for a while."""
    service = _managing(request)
    asked = await read_json(request, RotationIn, **body_rules(request))
    _check(id)
    make = partial(questions.rotate_key, service.context.store, id, kept_s=asked.kept_s)
    return await _with_secret(service, await service.write(make))


@router.delete("/{id}", status_code=204, response_class=Response, **refuses(404, 409, 422, 503))
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
