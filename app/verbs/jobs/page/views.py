"""Pages of durable jobs: progress, question, result, and where they lead."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from app import registry
from app.http.dependencies import own_router, service_of
from app.jobs.ledger import get_job
from app.operations.operation import OperationKind
from app.ui.pages import has_own_place, is_htmx, moved, own_address, page, says_refusals
from app.ui.panel.choices import ShownUnits
from app.ui.panel.page import panel_page
from app.ui.work import WorkPlace, WorkView
from app.verbs.jobs.page.view import JobView, entry_of
from app.web.forms import sent_fields
from models.records import JobRecord, JobState

router = own_router(include_in_schema=False)

SECTIONS = {OperationKind(verb.name): verb.part for verb in registry.jobs()}
_SOLVED = (OperationKind.OPTIMIZE, OperationKind.COMPARE)  # whose page shows how far they got
WORKS = frozenset(SECTIONS).difference(_SOLVED)


def place_of(job: JobRecord) -> WorkPlace:
    """Return the page of a job whose verb says what it is called and where its result is."""
    verb = registry.VERBS[job.kind]
    title, here = verb.module("request").title(job.request), f"/ui/jobs/{job.id}"
    result = verb.result.format(id=job.id) or verb.module("page.views").result(job)
    words = verb.result_words if job.state is JobState.DONE else "See what was asked"
    return WorkPlace(
        title=title, here=here, part=here, into="#main", result=result, result_words=words
    )


@router.get("/ui/jobs/{id}")
@says_refusals
async def job(request: Request, id: str, follow: Annotated[str, Query()] = "") -> Response:
    """Show the job as it stands. With `follow` a job that is done leads on to its answer.

    The question is shown in the units of the address, and so is the answer's.
    """
    service, units = service_of(request), ShownUnits.from_texts(request.query_params)
    found = await service.call(lambda: get_job(service.context.store, id))
    is_done = follow and found.state is JobState.DONE
    if is_done and found.answer_id is not None:
        return moved(request, units.onto(f"/ui/answers/{found.answer_id}"))
    if found.kind in WORKS:
        place = place_of(found)
        if is_done:
            return moved(request, place.result)
        view = WorkView.from_job(found, place)
        return page(
            request, "job_work.html", section=SECTIONS[OperationKind(found.kind)], work=view
        )

    def made() -> Response:
        view, entry = JobView.from_job(found), entry_of(found).in_units(units)
        return panel_page(request, "job.html", entry, section="Workbench", job=view, units=units)

    return await service.call(made)


@router.post("/ui/jobs/{id}/cancel")
@says_refusals
async def cancel(request: Request, id: str) -> Response:
    """Stop the job; its page shows when it has stopped.

    The best answer of a solve so far is kept.
    """
    sent = await sent_fields(request)
    found = await service_of(request).cancel_job(id)
    if is_htmx(request) and not has_own_place(request):
        return Response(status_code=204)  # the part that asked follows the job, and sees its end
    return moved(request, own_address(sent.get("back", ""), otherwise=f"/ui/jobs/{found.id}"))
