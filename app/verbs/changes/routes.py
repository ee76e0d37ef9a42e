"""Who changed what of an owner's."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query, Request, Response

from app.api.openapi import refuses
from app.api.respond import json_document
from app.http.dependencies import own_router, service_of
from app.questions.changes import list_changes
from app.schemas.queries import ChangesQuery
from app.verbs.changes.answer import changes_out
from contract.changes import ChangesOut

router = own_router(tags=["service"])
BODIES = ()
OUTPUTS = (ChangesOut,)


@router.get("/changes", **refuses(422, 503, sends=ChangesOut))
async def changes(request: Request, query: Annotated[ChangesQuery, Query()]) -> Response:
    """Who changed what of the owner's, the newest first; of one subject where it is named."""
    store = service_of(request).context.store
    listed = partial(
        list_changes,
        store,
        subject=query.subject,
        after=query.cursor,
        limit=query.limit,
    )
    return json_document(changes_out(await service_of(request).call(listed)))
