"""Work that a job does, as work.html shows it: how far it is, and how it has ended."""

from __future__ import annotations

from dataclasses import dataclass

from app import registry
from app.operations.operation import OperationKind
from app.schemas.jobs import elapsed_s, problem_of
from app.text.numbers import format_count
from models.records import JobRecord, JobState

SHORT_S = 1.0  # what ends within this time is shown as if there had been nothing to wait for
WORDS = {
    JobState.QUEUED: ("", "waiting"),
    JobState.RUNNING: ("", "running"),
    JobState.DONE: ("good", "done"),
    JobState.FAILED: ("bad", "failed"),
    JobState.CANCELLED: ("warn", "stopped"),
}
# What is counted; of a table it is the share of the range.
UNITS = {
    **{OperationKind(verb.name): verb.counts for verb in registry.jobs()},
}
_DOING = {
    **{OperationKind(verb.name): verb.doing for verb in registry.jobs()},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPlace:
    """Where a page shows work.

    `here` is the address that shows where it stands, `part` what takes its place when it has ended,
    `into` the element that does ("": the work's own). Either the form `again_form` starts it again,
    or `result` leads to where that can be done.
    """

    title: str
    here: str
    part: str
    into: str = ""
    again_form: str = ""
    result: str = ""
    result_words: str = ""


@dataclass(frozen=True, slots=True)
class WorkView:
    """What work.html is given."""

    id: str
    kind: str
    word: str
    is_open: bool
    is_stopping: bool
    steps: str
    done: int
    total: int
    unit: str
    elapsed: str
    again: str
    stated: str
    ending: str
    error_title: str
    error_detail: str
    error_code: str
    place: WorkPlace

    @property
    def title(self) -> str:
        """What is done."""
        return self.place.title

    @property
    def here(self) -> str:
        """The address that shows where it stands."""
        return self.place.here

    @property
    def part(self) -> str:
        """What takes its place when it has ended."""
        return self.place.part

    @property
    def into(self) -> str:
        """What that is put in the place of; empty: the work itself."""
        return self.place.into

    @property
    def again_form(self) -> str:
        """The form that starts it again."""
        return self.place.again_form

    @property
    def result(self) -> str:
        """Where the result is."""
        return self.place.result

    @property
    def result_words(self) -> str:
        """What is there."""
        return self.place.result_words

    @classmethod
    def from_job(cls, job: JobRecord, place: WorkPlace) -> WorkView:
        kind, word = WORDS[job.state]
        is_stopping = job.cancel_requested and not job.state.is_terminal
        error = problem_of(job)
        return cls(
            id=job.id,
            kind="warn" if is_stopping else kind,
            word="stopping…" if is_stopping else word,
            is_open=not job.state.is_terminal,
            is_stopping=is_stopping,
            steps=format_steps(job.kind, job.steps_done, job.steps_total),
            done=job.steps_done or 0,
            total=job.steps_total or 0,
            unit=UNITS.get(OperationKind(job.kind), ""),
            elapsed=format_seconds(elapsed_s(job)),
            again=format_attempt(job.claim),
            stated=_reported(job),
            ending=_ending(job),
            error_title=error.title if error else "",
            error_detail=error.detail if error else "",
            error_code=error.code if error else "",
            place=place,
        )


def format_steps(kind: str, done: int | None, total: int | None) -> str:
    """Return how far the counted part is; assets/follow.js goes on with the same text."""
    if not total:
        return ""
    done, unit = done or 0, UNITS.get(OperationKind(kind), "")
    if not unit:
        return f"{100 * done // total} % of the range"
    return f"{format_count(done)} of {format_count(total)} {unit}"


def format_attempt(attempts: int) -> str:
    """Return that a job was begun before; assets/follow.js goes on with the same text."""
    if attempts < 2:
        return ""
    return f"Started again: what ran it stopped. This is attempt {attempts}."


def format_seconds(seconds: float) -> str:
    """Return a time of waiting, to a tenth of a second."""
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s"


def _reported(job: JobRecord) -> str:
    if not job.state.is_terminal:
        return f"{_DOING[OperationKind(job.kind)]}…"
    return {JobState.CANCELLED: "Stopped.", JobState.FAILED: "It failed."}.get(job.state, "Done.")


def _ending(job: JobRecord) -> str:
    after = format_seconds(elapsed_s(job))
    if job.state is JobState.CANCELLED:
        steps = format_steps(job.kind, job.steps_done, job.steps_total)
        reached = f" and {steps}" if steps else ""
        return f"Stopped after {after}{reached}. Nothing of it is kept."
    return f"It ended after {after}." if job.state is not JobState.DONE else f"It took {after}."
