"""Pages of durable jobs: progress, question, result, and where they lead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import orjson
from fastapi import Query, Request, Response

from app import registry
from app.http.dependencies import own_router, service_of
from app.jobs.ledger import get_job
from app.operations.operation import OperationKind
from app.schemas.base import dump_json, problem_out, read_output, read_request
from app.schemas.jobs import history_of, problem_of, progress_out
from app.schemas.stages import asked_pipeline, limits_of
from app.text.numbers import format_count, format_gap
from app.text.units import TimeUnit, format_proven, format_time, workload_lines
from app.ui.addresses import address, in_path
from app.ui.pages import has_own_place, is_htmx, moved, own_address, page, says_refusals
from app.ui.panel.choices import ShownUnits
from app.ui.panel.page import panel_page
from app.ui.panel.state import InputState
from app.web.forms import sent_fields
from app.web.jobs.work import (
    WORDS,
    WorkPlace,
    WorkView,
    format_attempt,
    format_seconds,
    format_steps,
)
from app.web.profiles.tables import format_table_range, work_address
from contract.compare import CompareIn, CompareOut, VerifiedCompareOut
from contract.jobs import ExportJobIn, JobPointOut, TableJobIn
from contract.notices import NoticeOut
from contract.optimize import BestSoFarOut, OptimizeIn
from contract.problem import ProblemOut
from contract.uncertainty import RepeatIn
from domain.errors import UnreadableRecord
from domain.solution import relative_excess
from domain.units import format_bytes, format_number, format_share
from models.records import JobRecord, JobState

SECTIONS = {
    **{OperationKind(verb.name): verb.part for verb in registry.jobs()},
}
_SOLVED = (OperationKind.OPTIMIZE, OperationKind.COMPARE)  # whose page shows how far they got
WORKS = frozenset(SECTIONS).difference(_SOLVED)
_LIMITS = {
    "min_fragment_bytes": "min",
    "max_fragment_bytes": "max",
    "alignment_bytes": "align",
    "max_fragments": "max_fragments",
}


def place_of(job: JobRecord) -> WorkPlace:
    """Return the page of a table, an export, an audit or a paper's model."""
    title, result, words = _MAKERS.get(job.kind, _of_verb)(job)
    if job.state is not JobState.DONE:
        words = "See what was asked"
    here = f"/ui/jobs/{job.id}"
    return WorkPlace(
        title=title, here=here, part=here, into="#main", result=result, result_words=words
    )


def _table(job: JobRecord) -> tuple[str, str, str]:
    asked = read_request(TableJobIn, job.request)
    title = f"Compiling {format_table_range(asked)} for {asked.profile}"
    return title, work_address(asked.profile, job.id), "See the table"


def _export(job: JobRecord) -> tuple[str, str, str]:
    asked = read_request(ExportJobIn, job.request)
    reference, target = asked.profile, asked.target
    pairs = [*_choices(asked), ("work", job.id)]
    result = address(f"/ui/profiles/{in_path(reference)}/exports/{target}", pairs)
    return f"Exporting {reference} to {target}", result, "See the text"


def _choices(asked: ExportJobIn) -> Iterator[tuple[str, str]]:
    """Yield the request as the page of an export has it in its address."""
    for name, value in asked.options.items():
        yield f"option.{name}", value
    for name, bound in (
        ("min_message", asked.min_message_bytes),
        ("max_message", asked.max_message_bytes),
    ):
        if bound is not None and not asked.workload:
            yield name, format_bytes(bound)
    if asked.workload:
        yield "workload", "\n".join(workload_lines(asked.workload))
    if asked.objective is not None:
        yield "objective", asked.objective
    limits = vars(asked.constraints) if asked.constraints else {}
    for key, name in _LIMITS.items():
        if limits.get(key) is not None:
            yield name, str(limits[key])


def _of_verb(job: JobRecord) -> tuple[str, str, str]:
    verb = registry.VERBS[job.kind]
    title = verb.module("request").title(job.request)
    return title, verb.result.format(id=job.id), verb.result_words


_MAKERS: Mapping[str, Callable[[JobRecord], tuple[str, str, str]]] = {
    OperationKind.TABLE: _table,
    OperationKind.EXPORT: _export,
}


# --- the page of a job ----------------------------------------------------------------------------


MAX_ROWS = 40  # of the table of improvements, the newest ones


@dataclass(frozen=True, slots=True)
class Improvement:
    """A row of the table: what was known from a time on."""

    elapsed: str
    best: str
    bound: str
    gap: str


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A row of a comparison's table."""

    message: str
    strategy: str
    latency: str
    gap: str
    serial: str
    declined: str


@dataclass(frozen=True, slots=True)
class JobView:
    """What templates/job.html is given. `data` is what the script draws and goes on from."""

    id: str
    title: str
    kind: str
    word: str
    is_open: bool
    is_stopping: bool
    elapsed: str
    limit: str
    limit_s: float
    elapsed_s: float
    best: str
    bound: str
    gap: str
    fragments: str
    steps: str
    again: str
    history: tuple[Improvement, ...]
    compared: tuple[ComparedRow, ...]
    verified: tuple[NoticeOut, ...]
    is_comparison: bool
    answer_id: str
    error_title: str
    error_detail: str
    error_code: str
    was_cancelled: bool
    data: Mapping[str, object]

    @classmethod
    def of(cls, job: JobRecord) -> JobView:
        asked, progress = _asked(job), progress_out(job)
        kind, word = WORDS[job.state]
        is_stopping = job.cancel_requested and not job.state.is_terminal
        best_us, bound_us = progress.best_latency_us, progress.lower_bound_us
        best_text, bound_text = known_texts(best_us, bound_us)
        found, error = _found(job)
        return cls(
            id=job.id,
            title=_title(asked),
            kind="warn" if is_stopping else kind,
            word="stopping…" if is_stopping else word,
            is_open=not job.state.is_terminal,
            is_stopping=is_stopping,
            elapsed=format_seconds(progress.elapsed_s),
            limit=format_number(asked.time_limit_s),
            limit_s=asked.time_limit_s,
            elapsed_s=progress.elapsed_s,
            best=best_text,
            bound=bound_text,
            gap=_gap(progress.relative_gap),
            fragments=format_count(found.fragments) if isinstance(found, BestSoFarOut) else "–",
            steps=format_steps(job),
            again=format_attempt(job),
            history=tuple(_improvements(history_of(job))),
            compared=tuple(_compared(found) if isinstance(found, CompareOut) else ()),
            verified=_verified(found),
            is_comparison=job.kind == OperationKind.COMPARE,
            answer_id=job.answer_id or "",
            error_title=error.title if error else "",
            error_detail=error.detail if error else "",
            error_code=error.code if error else "",
            was_cancelled=job.state is JobState.CANCELLED,
            data={"state": job.state, "progress": orjson.loads(dump_json(progress))},
        )


def entry_of(job: JobRecord) -> InputState:
    """Return the input panel with the question of the job."""
    asked = _asked(job)
    entry = InputState.of_question(
        asked.message_bytes if isinstance(asked, OptimizeIn) else asked.message_bytes[0],
        limits_of(asked.constraints),
        may_refragment=asked.allow_refragmentation,
        profile=asked.profile,
        pipeline=asked_pipeline(asked.pipeline) if asked.pipeline else None,
    )
    if not isinstance(asked, OptimizeIn):
        return entry
    return replace(
        entry,
        strategy=str(asked.strategy),
        static_size=format_bytes(asked.static_bytes) if asked.static_bytes else "",
        relative_gap=format_share(asked.relative_gap),
        time_limit=format_number(asked.time_limit_s),
        current=_current(asked),
    )


def _current(asked: OptimizeIn) -> str:
    current = asked.uncertainty.current if asked.uncertainty else None
    return format_bytes(current.repeat) if isinstance(current, RepeatIn) else current or ""


def _asked(job: JobRecord) -> OptimizeIn | CompareIn:
    if job.kind == OperationKind.COMPARE:
        return read_request(CompareIn, job.request)
    return read_request(OptimizeIn, job.request)


def _found(job: JobRecord) -> tuple[BestSoFarOut | CompareOut | None, ProblemOut | None]:
    """Return what the job has found, and why it failed, or why what it found cannot be shown."""
    try:
        if job.best is None:
            return None, problem_of(job)
        if job.kind == OperationKind.COMPARE:
            return _read_comparison(job.best), problem_of(job)
        return read_output(BestSoFarOut, job.best), problem_of(job)
    except UnreadableRecord as refusal:
        return None, problem_out(refusal)


def _read_comparison(body: bytes) -> CompareOut:
    """Return what a stored comparison says, of a verified profile too.

    Raises UnreadableRecord for one of another version.
    """
    try:
        return read_output(VerifiedCompareOut, body)
    except UnreadableRecord:
        return read_output(CompareOut, body)


def _title(asked: OptimizeIn | CompareIn) -> str:
    if isinstance(asked, CompareIn):
        return f"Comparing strategies on {len(asked.message_bytes)} messages"
    through = "a pipeline seen from outside"
    if asked.pipeline is not None:
        stages = len(asked.pipeline.stages)
        through = f"{stages} stages" if stages > 1 else "1 stage"
    elif asked.profile is not None:
        through = asked.profile
    elif asked.measurements is not None:
        through = "a measured pipeline"
    return f"{format_bytes(asked.message_bytes)} through {through}"


def known_texts(best_us: float | None, bound_us: float | None) -> tuple[str, str]:
    """Return the best latency and the bound on it as texts that agree; "–" for one not known."""
    if best_us is not None and bound_us is not None:
        return format_proven(best_us, bound_us)
    if best_us is not None:
        return format_time(best_us), "–"
    return "–", "–" if bound_us is None else TimeUnit.of(bound_us).bound(bound_us, None)


def _gap(gap: float | None) -> str:
    return "–" if gap is None else format_gap(gap)


def _improvements(history: Sequence[JobPointOut]) -> Iterator[Improvement]:
    for point in history[-MAX_ROWS:]:
        best_us, bound_us = point.best_latency_us, point.lower_bound_us
        gap = relative_excess(best_us, bound_us, bound_us)
        elapsed = f"{point.elapsed_s:.1f} s"
        best, bound = known_texts(best_us, bound_us)
        yield Improvement(elapsed, best, bound, format_gap(gap))


def _verified(found: BestSoFarOut | CompareOut | None) -> tuple[NoticeOut, ...]:
    """Return what transfers said of the profile that was compared on."""
    return found.said if isinstance(found, CompareOut) else ()


def _compared(comparison: CompareOut) -> Iterator[ComparedRow]:
    for row in comparison.rows:
        yield ComparedRow(
            format_bytes(row.message_bytes),
            row.strategy,
            "–" if row.latency_us is None else format_time(row.latency_us),
            _gap(row.relative_gap) + (" (cut off)" if row.status == "time_limit" else ""),
            "" if row.serial_us is None else format_time(row.serial_us),
            row.declined or "",
        )


# --- routes ---------------------------------------------------------------------------------------


router = own_router(include_in_schema=False)


@router.get("/ui/jobs/{id}")
@says_refusals
async def job(request: Request, id: str, follow: Annotated[str, Query()] = "") -> Response:
    """Show the job as it stands. With `follow` a job that is done leads on to its answer.

    The question is shown in the units of the address, and so is the answer's.
    """
    service, units = service_of(request), ShownUnits.of(request.query_params)
    found = await service.call(lambda: get_job(service.context.store, id))
    is_done = follow and found.state is JobState.DONE
    if is_done and found.answer_id is not None:
        return moved(request, units.onto(f"/ui/answers/{found.answer_id}"))
    if found.kind in WORKS:
        place = place_of(found)
        if is_done:
            return moved(request, place.result)
        view = WorkView.of(found, place)
        return page(
            request, "job_work.html", section=SECTIONS[OperationKind(found.kind)], work=view
        )

    def made() -> Response:
        view, entry = JobView.of(found), entry_of(found).in_units(units)
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
