"""Jobs whose solves run in the engine: one optimisation, or a comparison cell by cell."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from app.errors import NotReady, Overloaded
from app.flows import compare as comparing
from app.flows import solve_message as solving
from app.flows.context import Context
from app.job_history import JobHistory
from app.open_job import SHOW_S, OpenJob
from app.progress_file import Steps
from app.schemas.base import dump_json, parse_json
from app.schemas.compare import CompareIn, CompareOut
from app.schemas.optimize import BestSoFarOut, OptimizeIn, render_answer
from domain.errors import Cancelled
from domain.solution import Solution
from models.records import JobChanges, JobState

if TYPE_CHECKING:
    from app.jobs import SolveTask
    from models.session import UnitOfWork

_LOOK_S = 0.1  # between looks at the engine


def optimize(job: OpenJob, context: Context) -> None:
    """Solve, and end the job together with its answer, or with the one that is stored already."""
    question = parse_json(OptimizeIn, job.record.request).to_domain()
    with context.store.reading() as unit:
        prepared = solving.prepare(
            question,
            solving.stored_revision(unit),
            fragment_cap=context.settings.max_fragments,
        )
        stored = solving.find_stored(unit, prepared)
    if stored is not None:
        found = stored.id
        job.settle(lambda unit: job.end(unit, JobState.DONE, answer_id=found))
        return
    started_s, history = time.perf_counter(), JobHistory()
    solution = _solve(solving.task_of(prepared), job, context, history)
    solve_ms = (time.perf_counter() - started_s) * 1e3
    answer = solving.conclude(prepared, solution, solve_ms=solve_ms)
    state = JobState.CANCELLED if job.is_cancelled() else JobState.DONE
    history.note(solution, elapsed_s=job.elapsed_s)

    def end(unit: UnitOfWork) -> None:
        record = solving.keep(unit, answer, render_answer)
        job.end(unit, state, _shown(solution, history), answer_id=record.id)

    job.settle(end)


def compare(job: OpenJob, context: Context) -> None:
    """Tabulate, and end the job with the table. Its steps are cells."""
    comparison = parse_json(CompareIn, job.record.request).to_domain()
    with context.store.reading() as unit:
        resolved = comparing.resolve(comparison, solving.stored_revision(unit))
    table = comparing.tabulate(
        resolved,
        lambda task: _solve(task, job, context, None),
        fragment_cap=context.settings.max_fragments,
        progress=lambda done, total: job.step(Steps(done, total)),
    )
    document, cells = dump_json(CompareOut.of(table)), len(table.cells)
    last: JobChanges = {"best": document, "steps_done": cells, "steps_total": cells}
    job.settle(lambda unit: job.end(unit, JobState.DONE, last))


def _solve(task: SolveTask, job: OpenJob, context: Context, history: JobHistory | None) -> Solution:
    """Solve in the engine, and show what is found on the way where a history is kept.

    A cancel ends it with the best so far, or raises Cancelled.
    """
    engine = context.engine
    if job.is_cancelled():
        raise Cancelled("the job was cancelled")
    ticket = _submit(task, job, context)
    while not (progress := engine.progress(ticket)).state.is_terminal:
        if job.is_cancelled():
            engine.cancel(ticket)
        elif job.is_due():
            _look(job, progress.best, history)
        time.sleep(_LOOK_S)
    return engine.result(ticket)


def _submit(task: SolveTask, job: OpenJob, context: Context) -> str:
    """A place in the engine's line; jobs wait for one, since nobody waits for them."""
    while True:
        try:
            return context.engine.submit(task, lane="jobs")
        except Overloaded:
            if job.closing.wait(SHOW_S):
                raise NotReady("the service is stopping") from None


def _look(job: OpenJob, best: Solution | None, history: JobHistory | None) -> None:
    """Show the best so far, and see whether another process was asked to cancel."""
    if best is None or history is None or not history.note(best, elapsed_s=job.elapsed_s):
        job.show()
    else:
        job.show(**_shown(best, history))


def _shown(solution: Solution, history: JobHistory) -> JobChanges:
    return {
        "best": dump_json(BestSoFarOut.of(solution)),
        "best_latency_us": solution.latency_us,
        "lower_bound_us": solution.lower_bound_us,
        "history": history.as_json(),
    }
