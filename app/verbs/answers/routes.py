"""GET /optimizations and what is below it: stored answers, listed, read, named, and explained."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Request, Response

from analysis.explain import EXPLAINED_AT_ONCE, explain
from app.api.openapi import UNCHANGED, changes, reads, refuses
from app.api.respond import answer_expected, answer_tag, json_document, tagged
from app.http.bodies import read_json
from app.http.call_threads import Requester
from app.http.dependencies import body_rules, client_of, own_router, service_of
from app.questions.answers import AnswerFilter, describe_answer, get_answer, list_answers
from app.schemas.answers import read_answer
from app.schemas.explanation import explained_of, explanation_out
from app.schemas.export import ItemExportQuery, options_of_target
from app.schemas.item_settings import ItemSetting, item_setting
from app.schemas.queries import ExplanationQuery, NoQuery, OptimizationsQuery
from app.verbs.answers.answer import answers_out, summary_out
from contract.answers import DescriptionIn, ExplanationOut, OptimizationsOut, SummaryOut
from contract.optimize import StoredOptimizeOut
from domain.errors import NotFound
from exports.targets.item_cuts import ITEM_TARGETS

router = own_router(tags=["optimise"])
BODIES = (DescriptionIn,)
OUTPUTS = (OptimizationsOut, ExplanationOut)
_RENDERED_AT_ONCE = 2**17  # bytes of an answer with some thousand items: milliseconds
_TARGETS = sorted(target.name for target in ITEM_TARGETS)
_Target = Annotated[str, Path(json_schema_extra={"enum": list(_TARGETS)})]
_SETTING: dict[int, dict[str, Any]] = {
    200: {
        "description": "What is set, in the program's own syntax",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    },
    **UNCHANGED,
}


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
    return json_document(answers_out(page))


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
    return json_document(summary_out(named.summary()), headers={"ETag": answer_tag(named)})


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
    return json_document(explanation_out(found, answer_id=id))


@router.get(
    "/optimizations/{id}/exports/{target}",
    response_class=Response,
    **refuses(404, 409, 422, 503, also=_SETTING),
)
async def item_export(
    request: Request, id: str, target: _Target, query: Annotated[ItemExportQuery, Query()]
) -> Response:
    """A stored answer about items as what a program is given: a cap for each fragment, or one
    number; what it takes stands above it.
    """
    if target not in _TARGETS:
        raise NotFound("there is no export target of this name")
    options = options_of_target(query.option)
    service = service_of(request)
    record = await service.call(lambda: get_answer(service.context.store, id))

    def render() -> ItemSetting:
        return item_setting(read_answer(record.body, items=True), target, options)

    if len(record.body) <= _RENDERED_AT_ONCE:
        made = await service.call(render)
    else:
        client = client_of(request)
        made = await service.pictures.run(
            render,
            client.wait_disconnected,
            requester=Requester(client.name, id),
            question=("item setting", id, target, tuple(sorted(options.items()))),
        )
    return tagged(request, made.text.encode(), media_type=made.media_type, file_name=made.file_name)
