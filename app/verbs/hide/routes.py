"""POST /hide and GET /hide/{id}: parse, one operation, return."""

from __future__ import annotations

from functools import partial
from typing import Annotated, get_args

from fastapi import Query, Request, Response

from app.api.openapi import reads, refuses
from app.api.respond import JSON, accepted, json_bytes, keyed, once
from app.http.bodies import read_json
from app.http.dependencies import body_rules, client_of, own_router, prefers_async, service_of
from app.operations.operation import Outcome
from app.schemas.queries import NoQuery
from app.verbs.hide.operation import operation, stored_answer
from contract.hide import AnyHideOut, HideIn

router = own_router(tags=["optimise"])
BODIES = (HideIn,)
OUTPUTS = get_args(AnyHideOut)
_AGAIN = {
    200: {
        "description": "The same was asked before",
        "content": {
            JSON: {
                "schema": {
                    "anyOf": [
                        {"$ref": "#/components/schemas/ItemsHideOut"},
                        {"$ref": "#/components/schemas/StoredHideOut"},
                    ]
                }
            }
        },
    }
}


@router.post(
    "/hide", **reads(HideIn, 404, sends=AnyHideOut, status=201, may_be_async=True, also=_AGAIN)
)
@keyed
async def hide(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """What hiding a message behind a calculation gains, and the fragments for it."""
    service = service_of(request)
    asked = await read_json(request, HideIn, **body_rules(request))
    make = partial(operation, asked, settings=service.context.settings)
    if prefers_async(request):
        return accepted(await service.start_job(make, client_of(request), once(request, accepted)))
    stated = once(request, partial(_sent, status=201))
    performed = await service.perform(make, client_of(request), stated)
    return _sent(performed.outcome, status=201 if performed.is_new else 200)


def _sent(outcome: Outcome, *, status: int) -> Response:
    headers = {"Location": f"/hide/{outcome.hidden_id}"}
    return json_bytes(outcome.document, status=status, headers=headers)


@router.get("/hide/{id}", **refuses(404, 422, 503, sends=AnyHideOut))
async def hidden_answer(request: Request, id: str, _: Annotated[NoQuery, Query()]) -> Response:
    """A stored answer about hiding, byte for byte as it was first sent."""
    service = service_of(request)
    return json_bytes(await service.call(lambda: stored_answer(service.context.store, id)))
