"""POST /compose: parse, one operation, return."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query, Request, Response

from app.api.openapi import reads
from app.api.respond import json_bytes, keyed, once
from app.http.bodies import read_json
from app.http.dependencies import body_rules, client_of, own_router, service_of
from app.operations.operation import Outcome
from app.questions.fits import options_named
from app.schemas.queries import NoQuery
from app.verbs.compose.operation import operation
from contract.compose import ComposeIn
from contract.fit import FitOut

router = own_router(tags=["fit"])
BODIES = (ComposeIn,)
OUTPUTS = ()  # what POST /fit answers
_OF_STAGES = dict.fromkeys(("measurements", "kind", "columns", "test", "run", "where"), "stages")


@router.post("/compose", **reads(ComposeIn, sends=FitOut))
@keyed
async def compose(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Fit a pipeline of stages that were measured each by itself, in files of their own."""
    service = service_of(request)
    asked = await read_json(request, ComposeIn, **body_rules(request))
    made = await service.call(partial(operation, asked, service.context.settings))
    with options_named(_OF_STAGES):
        found = await service.fit(made, client_of(request))
    return _sent(await service.keep(made, found, once(request, _sent)))


def _sent(outcome: Outcome) -> Response:
    return json_bytes(outcome.document)
