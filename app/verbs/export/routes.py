"""Export targets, and a profile as a library's configuration."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response

from app.api.openapi import UNCHANGED, refuses
from app.api.respond import accepted as accepted_job
from app.api.respond import (
    tagged,
)
from app.http.dependencies import client_of, own_router, prefers_async, service_of
from app.questions.profiles import known_reference
from app.schemas.base import dump_json
from app.schemas.export import ExportQuery, export_scope
from app.schemas.queries import NoQuery
from app.verbs.export.answer import export_targets_out
from app.verbs.export.operation import operation
from contract.export import ExportTargetsOut
from domain.errors import NotFound
from exports.targets.registry import TARGETS

router = own_router(tags=["exports"])
BODIES = ()
OUTPUTS = (ExportTargetsOut,)
_NAMES = sorted(target.name for target in TARGETS)
_Target = Annotated[str, Path(json_schema_extra={"enum": list(_NAMES)})]
_MEDIA_TYPES = sorted({target.media_type.partition(";")[0] for target in TARGETS})
_TEXT: dict[str, Any] = {"schema": {"type": "string"}}
_CONFIGURATION: dict[int, dict[str, Any]] = {
    200: {
        "description": "The configuration, in the target's own syntax",
        "content": dict.fromkeys(_MEDIA_TYPES, _TEXT),
    },
    **UNCHANGED,
}


@router.get("/exports", **refuses(422, also=UNCHANGED, sends=ExportTargetsOut))
async def export_targets(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Every target: what it takes, its options, and the program that reads it back in tests."""
    return tagged(request, dump_json(export_targets_out()))


@router.get(
    "/profiles/{name}/exports/{target}",
    response_class=Response,
    **refuses(404, 409, 422, 503, may_be_async=True, also=_CONFIGURATION),
)
async def export(
    request: Request, name: str, target: _Target, query: Annotated[ExportQuery, Query()]
) -> Response:
    """A profile as a library's configuration. `name@2` pins a revision."""
    reference = known_reference(name)
    if target not in _NAMES:
        raise NotFound("there is no export target of this name")
    scope = export_scope(query, target)
    service = service_of(request)
    settings = service.context.settings
    make = partial(operation, reference, scope, settings=settings, table=query.table)
    if prefers_async(request):
        return accepted_job(await service.start_job(make, client_of(request)))
    found = await service.remembered(make, client_of(request))
    return tagged(request, found.content, media_type=found.media_type, file_name=found.file_name)
