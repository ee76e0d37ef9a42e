"""Durable jobs: what is sent of them, and requests of profiles' tables and exports as kept."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .audit import AnyAuditOut
from .compare import AnyCompareOut
from .constraints import ConstraintsIn
from .declare import Input, Output, asked, output, rule, sent
from .export import ExportedOut
from .hide import AnyHideOut
from .layer_costs import LayerCostsOut
from .limits import DEFAULT_AUDIT_LIMIT_S, DIGEST_RULE
from .optimize import BestSoFarOut
from .problem import ProblemOut
from .rules import Bytes, ProfileAt
from .table import TableIn, TableOut
from .thresholds import ThresholdsOut
from .workload import Objective, WorkloadList

JobKind: TypeAlias = Literal[
    "optimize", "compare", "table", "export", "audit", "layer", "hide", "thresholds"
]
JobState: TypeAlias = Literal["queued", "running", "done", "failed", "cancelled"]


class TableJobIn(TableIn):
    """A table for a revision of a profile."""

    profile: ProfileAt = asked("the revision of the profile, as name@2")


class ExportJobIn(Input):
    """An export of a revision of a profile. `table` null: without a compiled table."""

    profile: ProfileAt = asked("the revision of the profile, as name@2")
    target: str = asked("the export target")
    options: dict[str, str] = asked("options of the target, by name")
    min_message_bytes: Bytes | None = asked(
        "the smallest message, bytes; null: of the workload or the table, or 1 KiB", default=None
    )
    max_message_bytes: Bytes | None = asked(
        "the largest message, bytes; null: of the workload or the table, or 16 MiB", default=None
    )
    workload: WorkloadList | None = asked(
        "the messages and their weights; null: every octave of the range counts the same",
        default=None,
    )
    objective: Objective | None = asked(
        "what the sizes are chosen for; null: time of a workload, mean over a range", default=None
    )
    constraints: ConstraintsIn | None = asked(
        "limits of fragments; null: those of the table", default=None
    )
    time_limit_s: float = asked("time limit of the searches, s", default=DEFAULT_AUDIT_LIMIT_S)
    table: Annotated[str | None, rule(pattern=f"^{DIGEST_RULE}$")] = asked(
        "the digest of a compiled table; null: without one", default=None
    )


# --- what is sent ---------------------------------------------------------------------------------


@output
class JobPointOut(Output):
    """What an optimisation knew from this moment on."""

    elapsed_s: float = sent("the moment, s from the job's start")
    best_latency_us: float = sent("latency of the best cut so far, µs")
    lower_bound_us: float = sent("proven so far of this model: no cut takes less, µs")


@output
class JobProgressOut(Output):
    """How long a job has run, and how good its best answer is; null before there is one.

    `history` is how an optimisation came there: each improvement, thinned out where there are many.
    Steps are counted of a comparison (cells), a compilation (thousandths of it), an audit and an
    export (messages), of a messaging layer (solves), and of thresholds (evaluations).
    """

    elapsed_s: float = sent("how long the job has run, or ran, s")
    best_latency_us: float | None = sent(
        "latency of the best cut so far, µs; null: there is none yet"
    )
    lower_bound_us: float | None = sent(
        "proven so far of this model: no cut takes less, µs; null: nothing is yet"
    )
    relative_gap: float | None = sent(
        "how far the latency is at most above the bound, as a share of that; null: not known"
    )
    history: tuple[JobPointOut, ...] = sent(
        "the improvements of an optimisation, thinned out where there are many"
    )
    steps_done: int | None = sent("steps that are done; null: of an optimisation none are counted")
    steps_total: int | None = sent("all steps; null: of an optimisation none are counted")


@output
class JobOut(Output):
    """A job. `answer_id` names the stored answer once it has one, also after a cancel.

    `best` is the best so far of an optimisation; `comparison`, `table`, `audit` and
    `export` are the results of these, at their end.
    """

    id: str = sent("the identifier of the job")
    kind: JobKind = sent("what the job does")
    state: JobState = sent(
        "where the job stands; there is no way out of done, failed and cancelled"
    )
    created_at: str = sent("when it was asked for, in UTC, as RFC 3339")
    started_at: str | None = sent("when it was begun, in UTC, as RFC 3339; null: not yet")
    finished_at: str | None = sent("when it ended, in UTC, as RFC 3339; null: not yet")
    attempts: int = sent("how often it was begun")
    cancel_requested: bool = sent("whether it was asked to stop")
    progress: JobProgressOut = sent("how far it has come")
    best: BestSoFarOut | None = sent(
        "the best so far of an optimisation; null before there is one, and of other kinds"
    )
    answer_id: str | None = sent("the stored answer, once there is one, also after a cancel")
    comparison: AnyCompareOut | None = sent(
        "the result of a comparison, so far while it runs; null of other kinds"
    )
    table: TableOut | None = sent(
        "the result of a compilation; null before its end, and of other kinds"
    )
    audit: AnyAuditOut | None = sent(
        "the result of an audit; null before there is one, and of other kinds"
    )
    export: ExportedOut | None = sent(
        "the result of an export; null before there is one, and of other kinds"
    )
    error: ProblemOut | None = sent("why it failed; null: it has not")

    @property
    def has_ended(self) -> bool:
        """Whether nothing about it will change."""
        return self.state in ("done", "failed", "cancelled")


@output
class LayerJobOut(JobOut):
    """A job about a messaging layer, whose result is `layer_costs`. No other kind has this field:
    the documents of the others stay as they were before there was this one.
    """

    layer_costs: LayerCostsOut | None = sent("what the layer costs; null before there is a result")


@output
class HideJobOut(JobOut):
    """A job about a message behind a calculation; `hidden` is its answer, which is stored too."""

    hidden: AnyHideOut | None = sent("the answer, which is stored too; null before its end")


@output
class ThresholdsJobOut(JobOut):
    """A job that prices thresholds or pulse sizes; `thresholds` is its result."""

    thresholds: ThresholdsOut | None = sent("what was priced; null before there is a result")


AnyJobOut: TypeAlias = JobOut | LayerJobOut | HideJobOut | ThresholdsJobOut


@output
class JobsOut(Output):
    """Jobs, the newest first."""

    items: tuple[AnyJobOut, ...] = sent("the jobs, the newest first")
