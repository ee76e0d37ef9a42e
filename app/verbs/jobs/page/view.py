"""The page of a solve or a comparison that a job does: how far it is, and its question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import orjson

from app.operations.operation import OperationKind
from app.schemas.base import dump_json, problem_out, read_output, read_request
from app.schemas.items import sequence_of
from app.schemas.jobs import history_of, problem_of, progress_out
from app.schemas.stages import asked_pipeline, limits_of
from app.text.numbers import format_count, format_gap
from app.text.units import TimeUnit, format_proven, format_time
from app.ui.panel.state import InputState
from app.ui.work import WORDS, format_attempt, format_seconds, format_steps
from contract.compare import CompareIn, CompareOut, ItemsCompareOut, VerifiedCompareOut
from contract.jobs import JobPointOut
from contract.notices import NoticeOut
from contract.optimize import BestSoFarOut, OptimizeIn
from contract.problem import ProblemOut
from contract.uncertainty import RepeatIn
from domain.errors import UnreadableRecord
from domain.solution import relative_excess
from domain.units import format_bytes, format_number, format_share
from models.records import JobRecord, JobState

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
    """What job.html is given. `data` is what the script draws and goes on from."""

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
    def from_job(cls, job: JobRecord) -> JobView:
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
            steps=format_steps(job.kind, job.steps_done, job.steps_total),
            again=format_attempt(job.claim),
            history=tuple(_improvements(history_of(job))),
            compared=tuple(_compared(found)),
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
        _message_bytes(asked),
        limits_of(asked.constraints, items=True),
        may_refragment=asked.allow_refragmentation,
        profile=asked.profile,
        pipeline=asked_pipeline(asked.pipeline) if asked.pipeline else None,
    )
    if asked.items is not None:  # the panel asks about messages that may be cut at any byte
        entry = replace(entry, message="")
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


def _message_bytes(asked: OptimizeIn | CompareIn) -> int:
    """The size of the message, of items their sum, of a comparison the first one."""
    if asked.items is not None:
        return sequence_of(asked.items).total_bytes
    if isinstance(asked, CompareIn):
        return (asked.message_bytes or [0])[0]
    return asked.message_bytes or 0


def _current(asked: OptimizeIn) -> str:
    current = asked.uncertainty.current if asked.uncertainty else None
    return format_bytes(current.repeat) if isinstance(current, RepeatIn) else current or ""


def _asked(job: JobRecord) -> OptimizeIn | CompareIn:
    if job.kind == OperationKind.COMPARE:
        return read_request(CompareIn, job.request)
    return read_request(OptimizeIn, job.request)


_Found: TypeAlias = BestSoFarOut | CompareOut | ItemsCompareOut | None


def _found(job: JobRecord) -> tuple[_Found, ProblemOut | None]:
    """Return what the job has found, and why it failed, or why what it found cannot be shown."""
    try:
        if job.best is None:
            return None, problem_of(job)
        if job.kind == OperationKind.COMPARE:
            return _read_comparison(job.best), problem_of(job)
        return read_output(BestSoFarOut, job.best), problem_of(job)
    except UnreadableRecord as refusal:
        return None, problem_out(refusal)


def _read_comparison(body: bytes) -> CompareOut | ItemsCompareOut:
    """Return what a stored comparison says, of a verified profile and of items too.

    Raises UnreadableRecord for one of another version.
    """
    if b'"items":' in body:
        return read_output(ItemsCompareOut, body)
    try:
        return read_output(VerifiedCompareOut, body)
    except UnreadableRecord:
        return read_output(CompareOut, body)


def _title(asked: OptimizeIn | CompareIn) -> str:
    if isinstance(asked, CompareIn):
        if asked.items is not None:
            return "Comparing ways to cut between items"
        return f"Comparing strategies on {len(asked.message_bytes or ())} messages"
    through = "a pipeline seen from outside"
    if asked.pipeline is not None:
        stages = len(asked.pipeline.stages)
        through = f"{stages} stages" if stages > 1 else "1 stage"
    elif asked.profile is not None:
        through = asked.profile
    elif asked.measurements is not None:
        through = "a measured pipeline"
    in_items = "" if asked.items is None else " in items"
    return f"{format_bytes(_message_bytes(asked))}{in_items} through {through}"


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


def _verified(found: _Found) -> tuple[NoticeOut, ...]:
    """Return what transfers said of the profile that was compared on."""
    return found.said if isinstance(found, CompareOut) else ()


def _compared(found: _Found) -> Iterator[ComparedRow]:
    """Yield the rows of a comparison; of another job there are none."""
    if isinstance(found, ItemsCompareOut):
        for way in found.rows:
            yield ComparedRow(
                format_bytes(found.message_bytes),
                way.way.replace("_", " "),
                "–" if way.latency_us is None else format_time(way.latency_us),
                _gap(way.relative_gap),
                "",
                way.declined or "",
            )
    if not isinstance(found, CompareOut):
        return
    for row in found.rows:
        yield ComparedRow(
            format_bytes(row.message_bytes),
            row.strategy,
            "–" if row.latency_us is None else format_time(row.latency_us),
            _gap(row.relative_gap) + (" (cut off)" if row.status == "time_limit" else ""),
            "" if row.serial_us is None else format_time(row.serial_us),
            row.declined or "",
        )
