"""POST /optimize, the stored answers, /compare, /simulate, /thresholds, /audit, /hide, layers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query, Request, Response

from analysis.explain import EXPLAINED_AT_ONCE, explain
from analysis.layer_cost import disagreements, shipped_layers
from app.api.openapi import UNCHANGED, changes, reads, refuses
from app.api.respond import (
    JSON,
    accepted,
    answer_expected,
    answer_tag,
    json_bytes,
    json_document,
    keyed,
    once,
    tagged,
)
from app.http.bodies import read_json
from app.http.call_threads import Requester
from app.http.dependencies import body_rules, client_of, own_router, prefers_async, service_of
from app.operations.compare import (
    Compare,
    audit_operation,
    compare_operation,
    threshold_operation,
)
from app.operations.models import get_hidden_answer, hide_operation, layer_operation
from app.operations.operation import Outcome
from app.operations.optimize import Optimize, optimize_operation
from app.questions.compare import PricedCut, Simulation, draw, run
from app.questions.optimize import AnswerFilter, describe_answer, get_answer, list_answers
from app.questions.transfers import MAX_ASKED_ROWS, TransfersQuestion, decide
from app.schemas.audit import AuditIn, AuditOut
from app.schemas.base import dump_json
from app.schemas.compare import AnyCompareOut, CompareIn, ExplanationOut, explained_of
from app.schemas.hide import HideIn, StoredHideOut
from app.schemas.layer_costs import LayerCostsIn, LayerCostsOut
from app.schemas.layers import LayersOut, PublishedLayerOut, layer_named
from app.schemas.optimize import AnyOptimizeOut, OptimizeIn, StoredOptimizeOut, read_answer
from app.schemas.priced_cut import PricedCutOut, simulated
from app.schemas.queries import (
    DescriptionIn,
    ExplanationQuery,
    NoQuery,
    OptimizationsOut,
    OptimizationsQuery,
    SummaryOut,
)
from app.schemas.simulate import (
    DeliveredOut,
    SimulateIn,
    SimulateOut,
    SimulateQuery,
    SimulationFormat,
    ThresholdsIn,
    ThresholdsOut,
)
from app.schemas.transfers import TransfersOut

if TYPE_CHECKING:
    from models.session import UnitOfWork

router = own_router(tags=["optimise"])


@router.post("/optimize", **reads(OptimizeIn, 404, may_be_async=True, sends=AnyOptimizeOut))
@keyed
async def optimize(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Cut a message into fragments, with a proof, of this model, of how good the cut is; own
    transfers of it decide without a model, at once.
    """
    service = service_of(request)
    asked = await read_json(request, OptimizeIn, **body_rules(request))
    if (alone := asked.of_transfers()) is not None:
        return json_bytes(await _decided(request, alone))
    settings = service.context.settings

    def make(unit: UnitOfWork) -> Optimize:  # in a thread: a long body takes milliseconds
        return optimize_operation(asked.to_domain(), asked.as_job, unit, settings)

    if prefers_async(request):
        return accepted(await service.start_job(make, once(request, accepted)))
    return json_bytes(await service.optimize(make, client_of(request), once(request, _sent)))


def _sent(outcome: Outcome) -> Response:
    return json_bytes(outcome.document)


async def _decided(request: Request, question: TransfersQuestion) -> bytes:
    """What own transfers decide: thousands of rows take seconds, and wait where pictures do."""
    service, client = service_of(request), client_of(request)

    def decided() -> bytes:
        return dump_json(TransfersOut.of(decide(question, max_rows=MAX_ASKED_ROWS)))

    requester = Requester(client.name, "transfers")
    return await service.pictures.run(
        decided, client.wait_disconnected, requester=requester, question=("transfers", question)
    )


@router.get("/optimizations", **refuses(422, 503, sends=OptimizationsOut))
async def optimizations(
    request: Request, query: Annotated[OptimizationsQuery, Query()]
) -> Response:
    """Stored answers, newest first."""
    service = service_of(request)
    wanted = AnswerFilter(query.profile, query.revision, query.message_bytes, query.strategy)
    page = await service.call(
        lambda: list_answers(service.context.store, wanted, after=query.cursor, limit=query.limit)
    )
    return json_document(OptimizationsOut.of(page))


@router.get(
    "/optimizations/{id}", **refuses(404, 422, 503, also=UNCHANGED, sends=StoredOptimizeOut)
)
async def optimization(request: Request, id: str, _: Annotated[NoQuery, Query()]) -> Response:
    """A stored answer, byte for byte as it was first sent; its ETag is what If-Match takes."""
    service = service_of(request)
    record = await service.call(lambda: get_answer(service.context.store, id))
    return tagged(request, record.body, etag=answer_tag(record))


@router.patch(
    "/optimizations/{id}", **changes(reads(DescriptionIn, 404, sends=SummaryOut, keyed=False))
)
async def describe_optimization(
    request: Request, id: str, _: Annotated[NoQuery, Query()]
) -> Response:
    """Give a stored answer a name and a note; the answer itself never changes."""
    service = service_of(request)
    asked = await read_json(request, DescriptionIn, **body_rules(request))
    store, expected = service.context.store, answer_expected(request)
    named = await service.write(
        lambda: describe_answer(store, id, name=asked.name, note=asked.note, expected=expected)
    )
    return json_document(SummaryOut.of(named.summary()), headers={"ETag": answer_tag(named)})


@router.get(
    "/optimizations/{id}/explanation",
    **refuses(404, 409, 422, 503, sends=ExplanationOut),
)
async def explanation(
    request: Request, id: str, query: Annotated[ExplanationQuery, Query()]
) -> Response:
    """Where a stored answer's latency is spent, and what each cost, made cheaper, would buy."""
    service = service_of(request)
    cap = service.context.settings.max_fragments
    record = await service.call(lambda: get_answer(service.context.store, id))
    asked = await service.call(
        lambda: explained_of(
            read_answer(record.body), cheaper_by=query.cheaper_by, fragment_cap=cap
        )
    )
    if asked.cells <= EXPLAINED_AT_ONCE:
        found = await service.call(lambda: explain(asked))
    else:
        client = client_of(request)
        found = await service.pictures.run(
            lambda: explain(asked),
            client.wait_disconnected,
            requester=Requester(client.name, id),
            question=("explanation", id, query.cheaper_by),
        )
    return json_document(ExplanationOut.of(found, answer_id=id))


# --- POST /compare --------------------------------------------------------------------------------


@router.post("/compare", **reads(CompareIn, 404, may_be_async=True, sends=AnyCompareOut))
@keyed
async def compare(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """What each strategy gives on each message size."""
    service = service_of(request)
    if not prefers_async(request):  # nothing that is stored would answer it: refused unread
        service.backlog.check(client_of(request).name)
    asked = await read_json(request, CompareIn, **body_rules(request))
    settings = service.context.settings

    def make(unit: UnitOfWork) -> Compare:  # in a thread: a long body takes milliseconds
        return compare_operation(asked.to_domain(), asked.as_job, unit, settings)

    if prefers_async(request):
        return accepted(await service.start_job(make, once(request, accepted)))
    performed = await service.perform(make, client_of(request))
    return json_bytes(performed.outcome.document)


# --- POST /simulate -------------------------------------------------------------------------------


SVG = "image/svg+xml"
_MEDIA = {SimulationFormat.JSON: "application/json", SimulationFormat.SVG: SVG}
_PICTURE: dict[int, dict[str, Any]] = {200: {"content": {SVG: {"schema": {"type": "string"}}}}}
# Opened by itself the picture is a page of this service: nothing is loaded, its own colours aside.
_POLICY = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}


@router.post(
    "/simulate",
    **reads(SimulateIn, 404, also=_PICTURE, sends=SimulateOut | DeliveredOut | PricedCutOut),
)
@keyed
async def simulate(request: Request, query: Annotated[SimulateQuery, Query()]) -> Response:
    """When each fragment is in each stage, for a cut that is given: as data, or drawn."""
    service = service_of(request)
    asked = await read_json(request, SimulateIn, **body_rules(request))
    cut = asked.cut()

    def run_cut() -> Simulation | PricedCut:  # in a thread: measurements are fitted there
        return run(service.context.store, asked.source(), asked.options(), cut)

    if (query.format or _accepted(request)) is SimulationFormat.SVG:
        picture = await service.call(lambda: draw(run_cut(), cut))
        return Response(picture, headers=_POLICY, media_type=SVG)
    body = await service.call(lambda: dump_json(simulated(run_cut())))
    return json_bytes(body)


def _accepted(request: Request) -> SimulationFormat:
    """Return the first media type that the client names and that there is; else JSON."""
    for part in ",".join(request.headers.getlist("accept")).split(","):
        named = part.split(";")[0].strip().lower()
        for wanted, media in _MEDIA.items():
            if named == media:
                return wanted
    return SimulationFormat.JSON


# --- POST /thresholds -----------------------------------------------------------------------------


@router.post("/thresholds", **reads(ThresholdsIn, 404, may_be_async=True, sends=ThresholdsOut))
@keyed
async def thresholds(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Latencies by threshold or pulse size, the best of each message, and the best one for all."""
    service = service_of(request)
    asked = await read_json(request, ThresholdsIn, **body_rules(request))
    make = partial(threshold_operation, asked, settings=service.context.settings)
    if prefers_async(request):
        return accepted(await service.start_job(make, once(request, accepted)))
    performed = await service.perform(make, client_of(request))
    return json_bytes(performed.outcome.document)


# --- POST /audit ----------------------------------------------------------------------------------


@router.post("/audit", **reads(AuditIn, 404, 409, may_be_async=True, sends=AuditOut))
@keyed
async def audit(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """What an existing setting costs over the optimum of the model, and what to change."""
    service = service_of(request)
    asked = await read_json(request, AuditIn, **body_rules(request))
    make = partial(audit_operation, asked, settings=service.context.settings)
    if prefers_async(request):
        return accepted(await service.start_job(make, once(request, accepted)))
    performed = await service.perform(make, client_of(request))
    return json_bytes(performed.outcome.document)


# --- POST /hide -----------------------------------------------------------------------------------


_HIDDEN_AGAIN = {
    200: {
        "description": "The same was asked before",
        "content": {JSON: {"schema": {"$ref": "#/components/schemas/StoredHideOut"}}},
    }
}


@router.post(
    "/hide",
    **reads(HideIn, 404, sends=StoredHideOut, status=201, may_be_async=True, also=_HIDDEN_AGAIN),
)
@keyed
async def hide(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """What hiding a message behind a calculation gains, and the fragments for it."""
    service = service_of(request)
    asked = await read_json(request, HideIn, **body_rules(request))
    make = partial(hide_operation, asked, settings=service.context.settings)
    if prefers_async(request):
        return accepted(await service.start_job(make, once(request, accepted)))
    stated = once(request, partial(_hidden, status=201))
    performed = await service.perform(make, client_of(request), stated)
    return _hidden(performed.outcome, status=201 if performed.is_new else 200)


def _hidden(outcome: Outcome, *, status: int) -> Response:
    headers = {"Location": f"/hide/{outcome.hidden_id}"}
    return json_bytes(outcome.document, status=status, headers=headers)


@router.get("/hide/{id}", **refuses(404, 422, 503, sends=StoredHideOut))
async def hidden_answer(request: Request, id: str, _: Annotated[NoQuery, Query()]) -> Response:
    """A stored answer about hiding, byte for byte as it was first sent."""
    service = service_of(request)
    return json_bytes(await service.call(lambda: get_hidden_answer(service.context.store, id)))


# --- messaging layers ----------------------------------------------------------------------------


layers_router = own_router(tags=["layers"])


@layers_router.get("/layers", **refuses(422, 503, sends=LayersOut))
async def layers(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """The published messaging layers."""
    found = await service_of(request).call(lambda: LayersOut.of(iter(shipped_layers().values())))
    return json_document(found)


@layers_router.get("/layers/{name}", **refuses(404, 422, 503, sends=PublishedLayerOut))
async def layer(request: Request, name: str, _: Annotated[NoQuery, Query()]) -> Response:
    """A published layer, and where its publication contradicts itself."""
    found = await service_of(request).call(
        lambda: PublishedLayerOut.of(layer_named(name), disagreements())
    )
    return json_document(found)


@layers_router.post(
    "/layer-costs", **reads(LayerCostsIn, 404, may_be_async=True, sends=LayerCostsOut)
)
@keyed
async def layer_costs(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """What a messaging layer's software costs, and what features of a network would save."""
    service = service_of(request)
    asked = await read_json(request, LayerCostsIn, **body_rules(request))
    settings = service.context.settings
    if prefers_async(request):
        stated = once(request, accepted)
        return accepted(await service.start_job(lambda _: layer_operation(asked, settings), stated))
    performed = await service.perform(
        lambda _: layer_operation(asked, settings), client_of(request)
    )
    return json_bytes(performed.outcome.document)
