"""GET /exports and GET /profiles/{name}/exports/{target}."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.api.openapi import refuses
from app.api.respond import if_none_match, sent, tagged
from app.deps import gone, service_of
from app.flows.profiles import known_reference
from app.lookup.answers import REVALIDATED, conditional
from app.schemas.base import dump_json
from app.schemas.exports import ExportQuery, ExportTargetsOut, targets_document
from app.schemas.queries import NoQuery
from domain.errors import InvalidInput, NotFound
from domain.profile import ProfileReference
from exports.targets import TARGETS

router = APIRouter(tags=["exports"])
_UNCHANGED: dict[int, dict[str, Any]] = {
    304: {"description": "The client holds these very bytes"},
}
_TEXT: dict[str, Any] = {"schema": {"type": "string"}}
_FILE: dict[int, dict[str, Any]] = {
    200: {
        "description": "The configuration, in the target's own syntax",
        "content": dict.fromkeys(("text/plain", "application/json", "application/xml"), _TEXT),
    },
    **_UNCHANGED,
}


@router.get("/exports", response_model=ExportTargetsOut, **refuses(422, also=_UNCHANGED))
async def export_targets(request: Request, _: Annotated[NoQuery, Query()]) -> Response:
    """Every target: what it takes, its options, and the program that reads it back in tests."""
    return tagged(request, dump_json(targets_document()))


@router.get(
    "/profiles/{name}/exports/{target}",
    response_class=Response,
    **refuses(404, 409, 422, 503, also=_FILE),
)
async def export(
    request: Request, name: str, target: str, query: Annotated[ExportQuery, Query()]
) -> Response:
    """A profile as a library's configuration. `name@2` pins a revision."""
    reference = ProfileReference.parse(known_reference(name))
    if all(target != known.name for known in TARGETS):
        raise NotFound("there is no export target of this name")
    try:
        scope = query.to_domain(target)
    except InvalidInput as refusal:
        raise _named_here(refusal) from None
    desk = service_of(request).exports
    found = await desk.export(reference, scope, gone(request), table=query.table)
    etag = f'"{hashlib.sha256(found.content).hexdigest()[:32]}"'
    return sent(
        conditional(
            if_none_match(request),
            found.content,
            found.media_type,
            (("etag", etag), ("cache-control", REVALIDATED)),
            disposition=f'attachment; filename="{found.file_name}"',
        )
    )


def _named_here(refusal: InvalidInput) -> InvalidInput:
    """The refusal with the name that its field has as a parameter."""
    if refusal.field == "options":
        refusal.field = "option"
    return refusal
