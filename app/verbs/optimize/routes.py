"""POST /optimize: parse, one operation, return."""

from __future__ import annotations

from functools import partial
from typing import Annotated, get_args

from fastapi import Query, Request, Response

from app.api.openapi import reads
from app.api.respond import accepted, json_bytes, keyed, once
from app.http.bodies import read_json
from app.http.dependencies import body_rules, client_of, own_router, prefers_async, service_of
from app.operations.operation import Outcome
from app.questions.transfers import TransfersQuestion, TransfersWork
from app.schemas.base import dump_json
from app.schemas.queries import NoQuery
from app.schemas.transfers import transfers_out
from app.verbs.optimize.operation import operation
from app.verbs.optimize.request import alone_question
from contract.limits import MAX_ASKED_ROWS
from contract.optimize import AnyOptimizeOut, OptimizeIn

router = own_router(tags=["optimise"])
BODIES = (OptimizeIn,)
OUTPUTS = get_args(AnyOptimizeOut)


@router.post("/optimize", **reads(OptimizeIn, 404, may_be_async=True, sends=AnyOptimizeOut))
@keyed
async def optimize(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Cut a message into fragments, with a proof, of this model, of how good the cut is; own
    transfers of it decide without a model, at once.
    """
    service = service_of(request)
    asked = await read_json(request, OptimizeIn, **body_rules(request))
    if (alone := alone_question(asked)) is not None:
        return json_bytes(await _decided(request, alone))
    # Called in a thread: a long body takes milliseconds.
    make = partial(operation, asked, settings=service.context.settings)
    if prefers_async(request):
        return accepted(await service.start_job(make, client_of(request), once(request, accepted)))
    return json_bytes(await service.optimize(make, client_of(request), once(request, _sent)))


def _sent(outcome: Outcome) -> Response:
    return json_bytes(outcome.document)


async def _decided(request: Request, question: TransfersQuestion) -> bytes:
    """What own transfers decide: thousands of rows take a worker seconds."""
    service, work = service_of(request), TransfersWork(question, MAX_ASKED_ROWS)
    found = await service.read(work, client_of(request))
    return await service.call(lambda: dump_json(transfers_out(found)))
