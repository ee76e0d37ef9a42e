"""A stored answer as files: CSV, JSON, a picture, a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fastapi import Request, Response

from app.http.dependencies import base_url_of, client_of, own_router, service_of
from app.operations.fits import Draw, answer_schedules
from app.plots.timeline_svg import render_timeline_svg
from app.questions.answers import get_answer
from app.schemas.answers import read_answer
from app.ui.pages import HTML, says_refusals
from app.verbs.optimize.page.queued_parts import explored
from app.verbs.optimize.page.report import Report, report_html, report_of
from app.verbs.optimize.page.schedule_csv import schedule_csv
from app.verbs.optimize.page.snippets import file_stem
from app.verbs.optimize.page.timelines import EXPLORED_CELLS, IN_THREAD_CELLS, drawn_cells
from contract.optimize import OptimizeOut
from domain.errors import StrategyDeclined
from models.records import AnswerRecord

router = own_router(include_in_schema=False)


class FileKind(StrEnum):
    """How a file's name ends."""

    CSV = "csv"
    SVG = "svg"


@dataclass(frozen=True, slots=True)
class FileTask:
    """The CSV or the picture of the answer whose JSON is `body`."""

    body: bytes
    kind: FileKind

    @property
    def noun(self) -> str:
        return f"{self.kind} file"

    def draw(self) -> bytes:
        """Return the file. Raises StrategyDeclined for a picture of an aggregate; LimitReached."""
        if self.kind is FileKind.SVG:
            return _picture(read_answer(self.body, items=True))
        return schedule_csv(read_answer(self.body))


@dataclass(frozen=True, slots=True)
class ReportTask:
    """What a report shows of the answer whose JSON is `body`."""

    body: bytes
    fragment_cap: int

    @property
    def noun(self) -> str:
        return "report"

    def draw(self) -> Report:
        """Return all of it. Raises LimitReached."""
        return report_of(self.body, fragment_cap=self.fragment_cap)


def _picture(answer: OptimizeOut) -> bytes:
    if answer.pipeline is None:
        raise StrategyDeclined(
            "a timeline shows every stage, and an aggregate does not know their times"
        )
    return render_timeline_svg(list(answer_schedules(answer))).encode()


# --- routes ---------------------------------------------------------------------------------------


_MEDIA = {
    FileKind.CSV: "text/csv; charset=utf-8; header=present",
    FileKind.SVG: "image/svg+xml",
}
# Opened by themselves these are pages of this service. They load nothing and run nothing, but
# bring their own style, since they have to stand alone.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"


@router.get("/ui/answers/{id}/schedule.json")
@says_refusals
async def stored(request: Request, id: str) -> Response:
    """Show the answer, byte for byte as it was first sent."""
    record = await _record(request, id)
    return _file(
        record.body, "application/json", f"{file_stem(record.message_bytes, record.id)}.json"
    )


@router.get("/ui/answers/{id}/schedule.csv")
@says_refusals
async def table(request: Request, id: str) -> Response:
    """Show a row for each fragment: offset, size, and its times in every stage."""
    return await _made(request, id, FileKind.CSV)


@router.get("/ui/answers/{id}/schedule.svg")
@says_refusals
async def picture(request: Request, id: str) -> Response:
    """Show the timeline, with the best fixed size below the answer."""
    return await _made(request, id, FileKind.SVG)


@router.get("/ui/answers/{id}/report.html")
@says_refusals
async def report(request: Request, id: str) -> Response:
    """Show all that is known of the answer, in one file."""
    service, pages = service_of(request), request.app.state.pages
    record = await _record(request, id)
    answer = await service.call(lambda: read_answer(record.body))
    task = ReportTask(record.body, service.context.settings.max_fragments)
    if answer.cells <= EXPLORED_CELLS:
        found = await explored(request, id, "report", task.draw)
    else:
        found = await service.run(Draw(task), client_of(request))
    made = await service.call(
        lambda: report_html(
            pages,
            found,
            record.summary(),
            base_url=base_url_of(request),
            version=request.app.version,
        )
    )
    return _file(made, HTML, f"{file_stem(record.message_bytes, record.id)}.html")


async def _made(request: Request, id: str, kind: FileKind) -> Response:
    """Draw in a thread for calls, queued by reader, or in a worker, by how much there is."""
    service = service_of(request)
    record = await _record(request, id)
    is_picture = kind is FileKind.SVG
    answer = await service.call(lambda: read_answer(record.body, items=is_picture))
    task, cells = FileTask(record.body, kind), drawn_cells(answer)
    if cells <= IN_THREAD_CELLS:
        made = await service.call(task.draw)
    elif cells <= EXPLORED_CELLS:
        made = await explored(request, id, kind, task.draw)
    else:
        made = await service.run(Draw(task), client_of(request))
    return _file(made, _MEDIA[kind], f"{file_stem(record.message_bytes, record.id)}.{kind}")


async def _record(request: Request, id: str) -> AnswerRecord:
    service = service_of(request)
    return await service.call(lambda: get_answer(service.context.store, id))


def _file(body: bytes, media_type: str, name: str) -> Response:
    headers: Mapping[str, str] = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Security-Policy": _POLICY,
        "Cache-Control": "no-cache",
    }
    return Response(body, headers=headers, media_type=media_type)
