"""Plan tables: compiled, listed, activated, and read by their digest."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request, Response

from app.api.openapi import changes, reads, refuses
from app.api.respond import accepted as accepted_job
from app.api.respond import (
    if_none_match,
    json_bytes,
    json_document,
    keyed,
    once,
    sent,
    table_expected,
)
from app.http.bodies import read_json
from app.http.dependencies import body_rules, client_of, own_router, prefers_async, service_of
from app.http.fastpath.responses import ACTIVE, JSON, SLT, STORED, TWIN, accepted, table_form
from app.operations.operation import Outcome
from app.questions import tables as questions
from app.questions.profiles import known_reference
from app.schemas.queries import NoQuery, TableFormat, TableQuery, TablesQuery
from app.schemas.table import activated, said_now, tables_out
from app.verbs.table.operation import operation
from app.verbs.table.request import scope_of
from contract.table import ActivateIn, TableIn, TableOut, TablesOut
from models.records import TableRecord

router = own_router(tags=["tables"])
BODIES = (TableIn, ActivateIn)
OUTPUTS = (TableOut, TablesOut)

_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_FORMATS: dict[int, dict[str, Any]] = {
    200: {"content": {SLT: _BINARY, TWIN: {"schema": {"type": "object"}}}},
    304: {"description": "The client holds these very bytes"},
}
_AGAIN = {
    200: {
        "description": "The same was compiled before",
        "content": {JSON: {"schema": {"$ref": "#/components/schemas/TableOut"}}},
    }
}


@router.post(
    "/profiles/{name}/tables",
    **reads(TableIn, 404, 409, sends=TableOut, status=201, may_be_async=True, also=_AGAIN),
)
@keyed
async def compile_table(request: Request, name: str, _: Annotated[NoQuery, Query()]) -> Response:
    """Compile a schedule and a repeated size for every message of a range. `name@2` pins one."""
    service = service_of(request)
    reference = known_reference(name)
    asked = await read_json(request, TableIn, **body_rules(request))
    make = partial(
        operation,
        reference,
        scope_of(asked),
        settings=service.context.settings,
        activate=asked.activate,
    )
    if prefers_async(request):
        return accepted_job(
            await service.start_job(make, client_of(request), once(request, accepted_job))
        )
    stated = once(request, partial(_compiled, status=201))
    performed = await service.perform(make, client_of(request), stated)
    return _compiled(performed.outcome, status=201 if performed.is_new else 200)


def _compiled(outcome: Outcome, *, status: int) -> Response:
    headers = {"Location": f"/tables/{outcome.table_digest}"}
    return json_bytes(outcome.document, status=status, headers=headers)


@router.get("/profiles/{name}/tables", **refuses(404, 422, 503, sends=TablesOut))
async def tables(request: Request, name: str, query: Annotated[TablesQuery, Query()]) -> Response:
    """The profile's compiled tables, newest first; those of one revision for `name@2`."""
    service = service_of(request)
    reference = known_reference(name)
    page = await service.call(
        lambda: questions.list_tables(
            service.context.store,
            reference.name,
            revision=reference.revision,
            after=query.cursor,
            limit=query.limit,
        )
    )
    return json_document(tables_out(page))


@router.get("/profiles/{name}/table", **refuses(404, 422, 503, also=_FORMATS, sends=TableOut))
async def active_table(
    request: Request, name: str, query: Annotated[TableQuery, Query()]
) -> Response:
    """The table that lookups answer from: what is told of it, its file, or the JSON twin."""
    service = service_of(request)
    reference = known_reference(name)
    record = await service.call(lambda: questions.active_table(service.context.store, reference))
    form, body, said = await _form(request, query, record)
    wanted = if_none_match(request)
    return sent(table_form(wanted, record.digest, form, body, route=ACTIVE, said=said))


@router.post("/profiles/{name}/table", **changes(reads(ActivateIn, 404, 409, sends=TableOut)))
@keyed
async def activate_table(request: Request, name: str, _: Annotated[NoQuery, Query()]) -> Response:
    """Switch to a compiled table of the profile, or back; `name@2` means only that revision."""
    service = service_of(request)
    reference = known_reference(name)
    asked = await read_json(request, ActivateIn, **body_rules(request))
    table = await service.write(
        lambda: questions.activate_table(
            service.context.store,
            reference,
            asked.digest,
            expected=table_expected(request),
            then=once(request, _activated),
        )
    )
    return _activated(table)


def _activated(table: questions.MeasuredTable) -> Response:
    location = {"Content-Location": f"/tables/{table[0].digest}"}
    return json_bytes(activated(*table), headers=location)


@router.get("/tables/{digest}", **refuses(404, 422, 503, also=_FORMATS, sends=TableOut))
async def table(request: Request, digest: str, query: Annotated[TableQuery, Query()]) -> Response:
    """A compiled table: what is told of it, its file (`slt`), or the file's JSON twin."""
    service = service_of(request)
    record = await service.call(lambda: questions.get_table(service.context.store, digest))
    form, body, said = await _form(request, query, record)
    wanted = if_none_match(request)
    return sent(table_form(wanted, digest, form, body, route=STORED, said=said))


async def _form(
    request: Request, query: TableQuery, record: TableRecord
) -> tuple[TableFormat, bytes, str]:
    """Return the form that is wanted, its bytes, and what these say of what was measured since."""
    service = service_of(request)
    form = query.format or accepted(request.headers.getlist("accept"))
    if form is TableFormat.SUMMARY:
        found = await service.call(lambda: questions.measured_of(service.context.store, record))
        if found is None:
            return form, record.document, ""
        return form, said_now(record.document, *found), found[1].notice().detail
    if form is TableFormat.SLT:
        return form, record.file, ""
    return form, await service.call(lambda: questions.json_twin(record.file)), ""
