"""What the page of a job shows, and the question that it was asked, for the input panel."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.operations.operation import OperationKind
from app.schemas.base import dump_json
from app.schemas.jobs import job_document
from app.text.numbers import format_count, format_gap
from app.text.units import TimeUnit, format_proven, format_time
from app.web.input_state import InputState
from app.web.views.work_view import WORDS, again_words, seconds_words, steps_words
from domain.profile import ProfileReference
from domain.units import format_bytes, format_number, format_share
from models.records import JobRecord, JobState

MOST_ROWS = 40  # of the table of improvements, the newest ones

Document = Mapping[str, Any]
_UNLIMITED: dict[str, int | None] = {
    "min_fragment_bytes": 1,
    "max_fragment_bytes": None,
    "alignment_bytes": 1,
    "max_fragments": None,
}


@dataclass(frozen=True, slots=True)
class Improvement:
    """A row of the table: what was known from a moment on."""

    elapsed: str
    best: str
    bound: str
    gap: str


@dataclass(frozen=True, slots=True)
class Compared:
    """A row of a comparison's table."""

    message: str
    strategy: str
    latency: str
    gap: str
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
    compared: tuple[Compared, ...]
    is_comparison: bool
    answer_id: str
    error_title: str
    error_detail: str
    error_code: str
    was_cancelled: bool
    data: Document

    @classmethod
    def of(cls, job: JobRecord) -> JobView:
        """Of a row of the store."""
        document = json.loads(dump_json(job_document(job)))
        asked, progress = json.loads(job.request), document["progress"]
        kind, word = WORDS[job.state]
        is_stopping = job.cancel_requested and not job.state.is_terminal
        best_us, bound_us = progress["best_latency_us"], progress["lower_bound_us"]
        best_text, bound_text = known_texts(best_us, bound_us)
        best, error = document["best"], document["error"] or {}
        return cls(
            id=job.id,
            title=_title(asked),
            kind="warn" if is_stopping else kind,
            word="stopping…" if is_stopping else word,
            is_open=not job.state.is_terminal,
            is_stopping=is_stopping,
            elapsed=seconds_words(progress["elapsed_s"]),
            limit=format_number(asked.get("time_limit_s") or 0.0),
            limit_s=asked.get("time_limit_s") or 0.0,
            elapsed_s=progress["elapsed_s"],
            best=best_text,
            bound=bound_text,
            gap=_gap(progress["relative_gap"]),
            fragments=format_count(best["fragments"]) if best else "–",
            steps=steps_words(job),
            again=again_words(job),
            history=tuple(_improvements(progress["history"])),
            compared=tuple(_compared(document["comparison"])),
            is_comparison=job.kind == OperationKind.COMPARE,
            answer_id=job.answer_id or "",
            error_title=error.get("title", ""),
            error_detail=error.get("detail", ""),
            error_code=error.get("code", ""),
            was_cancelled=job.state is JobState.CANCELLED,
            data={"state": job.state, "progress": progress},
        )


def entry_of(job: JobRecord) -> InputState:
    """The input panel as the job was asked for."""
    asked = json.loads(job.request)
    size_bytes = asked["message_bytes"]
    first = size_bytes[0] if isinstance(size_bytes, list) else size_bytes
    entry = InputState.of_answer(
        {
            "message_bytes": first,
            "constraints": {**_UNLIMITED, **asked.get("constraints", {})},
            "allow_refragmentation": asked.get("allow_refragmentation", False),
            "profile": _profile_of(asked),
            "pipeline": asked.get("pipeline"),
        }
    )
    if job.kind != OperationKind.OPTIMIZE:
        return entry
    static_bytes = asked.get("static_bytes")
    return replace(
        entry,
        strategy=asked["strategy"],
        static_size=format_bytes(static_bytes) if static_bytes else "",
        relative_gap=format_share(asked["relative_gap"]),
        time_limit=format_number(asked["time_limit_s"]),
    )


def _profile_of(asked: Document) -> Document | None:
    if asked.get("profile") is None:
        return None
    reference = ProfileReference.parse(asked["profile"])
    return {"name": reference.name, "revision": reference.revision}


def _title(asked: Document) -> str:
    size_bytes = asked["message_bytes"]
    if isinstance(size_bytes, list):
        return f"Comparing strategies on {len(size_bytes)} messages"
    through = "a pipeline seen from outside"
    if asked.get("pipeline") is not None:
        stages = len(asked["pipeline"]["stages"])
        through = f"{stages} stages" if stages > 1 else "1 stage"
    elif asked.get("profile") is not None:
        through = asked["profile"]
    elif asked.get("measurements") is not None:
        through = "a measured pipeline"
    return f"{format_bytes(size_bytes)} through {through}"


def known_texts(best_us: float | None, bound_us: float | None) -> tuple[str, str]:
    """Return the best latency and the bound on it as texts that agree; "–" for one not known."""
    if best_us is not None and bound_us is not None:
        return format_proven(best_us, bound_us)
    if best_us is not None:
        return format_time(best_us), "–"
    return "–", "–" if bound_us is None else TimeUnit.of(bound_us).bound(bound_us, None)


def _gap(gap: float | None) -> str:
    return "–" if gap is None else format_gap(gap)


def _improvements(history: list[Document]) -> Iterator[Improvement]:
    from domain.solution import relative_excess

    for point in history[-MOST_ROWS:]:
        best_us, bound_us = point["best_latency_us"], point["lower_bound_us"]
        gap = relative_excess(best_us, bound_us, bound_us)
        elapsed = f"{point['elapsed_s']:.1f} s"
        best, bound = known_texts(best_us, bound_us)
        yield Improvement(elapsed, best, bound, format_gap(gap))


def _compared(comparison: Document | None) -> Iterator[Compared]:
    for row in comparison["rows"] if comparison else ():
        yield Compared(
            format_bytes(row["message_bytes"]),
            row["strategy"],
            "–" if row["latency_us"] is None else format_time(row["latency_us"]),
            _gap(row["relative_gap"]),
            row["declined"] or "",
        )
