"""Jobs as parts: a list of them, and where one stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from app.text.moments import format_minute
from app.text.units import PROVEN_BOUND, format_proven, printable
from app.ui.parts import Column, Facts, Grid, Part
from app.ui.work import format_attempt, format_seconds, format_steps
from contract.jobs import JobOut, JobsOut

_WORDS = ("created", "kind", "state")


def listing(jobs: JobsOut) -> list[Part]:
    """Return a table of jobs."""
    columns = [Column("id"), *(Column(name, is_number=False) for name in _WORDS), Column("done")]
    rows = (
        (job.id, format_minute(job.created_at), job.kind, job.state, _progress(job))
        for job in jobs.items
    )
    return [Grid(tuple(columns), tuple(rows))]


def parts(job: JobOut) -> list[Part]:
    """Return where a job stands, and where its result is."""
    return [Facts(tuple(_facts(job)))]


def _facts(job: JobOut) -> Iterator[tuple[str, str]]:
    yield "kind", job.kind
    yield "state", job.state
    yield "created", format_minute(job.created_at)
    progress = job.progress
    if done := format_steps(job.kind, progress.steps_done, progress.steps_total):
        yield "done", done
    if job.started_at is not None:
        yield "time", format_seconds(progress.elapsed_s)
    if again := format_attempt(job.attempts):
        yield "again", again
    if progress.best_latency_us is not None and progress.lower_bound_us is not None:
        latency, bound = format_proven(progress.best_latency_us, progress.lower_bound_us)
        yield "best so far", f"{latency}, {PROVEN_BOUND} {bound}"
    if job.answer_id is not None:
        yield "answer", f"sluice answers show {job.answer_id}"
    elif job.error is not None:
        stored: Any = job.error  # JSON already, as `job_out` has it
        yield "error", printable(json.loads(bytes(stored))["detail"])
    elif job.has_ended:
        yield "result", "in the document of --json"


def _progress(job: JobOut) -> str:
    done, total = job.progress.steps_done, job.progress.steps_total
    return "" if done is None or not total else f"{done / total:.0%}"
