"""Compiled plan tables: compiled for a profile, listed, and read by their digest."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.api.body import read_json
from app.api.openapi import reads, refuses
from app.api.respond import JSON, immutable, json_bytes, json_document
from app.deps import body_rules, gone, service_of
from app.flows.build_table import get_table, json_twin, list_tables
from app.flows.profiles import known_reference
from app.schemas.queries import NoQuery, TableFormat, TableQuery, TablesQuery
from app.schemas.tables import TableIn, TableOut, TablesOut, tables_document
from domain.profile import ProfileReference

router = APIRouter(tags=["tables"])

SLT = "application/vnd.sluice.table"
TWIN = "application/vnd.sluice.table+json"
_MEDIA = {TableFormat.SLT: SLT, TableFormat.JSON: TWIN, TableFormat.SUMMARY: JSON}
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
    status_code=201,
    response_model=TableOut,
    **reads(TableIn, 404, 409, also=_AGAIN),
)
async def compile_table(request: Request, name: str, _: Annotated[NoQuery, Query()]) -> Response:
    """Compile a schedule and a repeated size for every message of a range. `name@2` pins one."""
    service = service_of(request)
    reference = ProfileReference.parse(known_reference(name))
    asked = await read_json(request, TableIn, **body_rules(request))
    outcome = await service.compile_table(reference, asked.to_domain(), gone(request))
    headers = {"Location": f"/tables/{outcome.record.digest}"}
    status = 201 if outcome.is_new else 200
    return json_bytes(outcome.record.document, status=status, headers=headers)


@router.get("/profiles/{name}/tables", response_model=TablesOut, **refuses(404, 422, 503))
async def tables(request: Request, name: str, query: Annotated[TablesQuery, Query()]) -> Response:
    """The profile's compiled tables, newest first; those of one revision for `name@2`."""
    service = service_of(request)
    reference = ProfileReference.parse(known_reference(name))
    page = await service.call(
        lambda: list_tables(
            service.context.store,
            reference.name,
            revision=reference.revision,
            after=query.cursor,
            limit=query.limit,
        )
    )
    return json_document(tables_document(page))


@router.get("/tables/{digest}", response_model=TableOut, **refuses(404, 422, 503, also=_FORMATS))
async def table(request: Request, digest: str, query: Annotated[TableQuery, Query()]) -> Response:
    """A compiled table: what is told of it, its file (`slt`), or the file's JSON twin."""
    service = service_of(request)
    wanted = query.format or _accepted(request)
    record = await service.call(lambda: get_table(service.context.store, digest))
    if wanted is TableFormat.SUMMARY:
        return immutable(request, record.document, JSON, tag=f"{digest}-summary")
    if wanted is TableFormat.SLT:
        name = f'attachment; filename="{digest[:16]}.slt"'
        return immutable(request, record.file, SLT, tag=digest, disposition=name)
    body = await service.call(lambda: json_twin(record.file))
    return immutable(request, body, TWIN, tag=f"{digest}-json")


def _accepted(request: Request) -> TableFormat:
    """The first media type that the client names and that there is; else what is told."""
    for part in ",".join(request.headers.getlist("accept")).split(","):
        named = part.split(";")[0].strip().lower()
        for wanted, media in _MEDIA.items():
            if named == media:
                return wanted
        if named == "application/octet-stream":
            return TableFormat.SLT
    return TableFormat.SUMMARY
