"""Question to answer: resolve the pipeline, look for a stored answer, solve, keep the answer.

    prepare -> find_stored -> (solve here, or in the engine) -> conclude -> keep

Each step is a function of values, so that HTTP, the command line and the job runner put their own
waiting between them. Only `keep` writes, and all that it writes is one transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

import solvers
from analysis.narrowed_fit import SizesUsed, equal_sizes
from analysis.repeated_sizes import admits
from analysis.size_curve import SizeChoice, SizePoint
from analysis.transferred import MeasuredChoice, choice_of
from analysis.uncertainty import UncertaintyQuestion
from app.questions.fits import FittedTrace, keep_given, name_fit, save_fit
from app.questions.question import (
    IDENTIFIER,
    GivenFit,
    Question,
    UncertaintyOptions,
    known_errors,
    known_identifier,
)
from app.questions.source import FitNow, Resolved, Stored, resolve
from app.questions.transfers import MAX_ROWS_BESIDE, TransfersWork
from contract.limits import MAX_ANSWER_NAME, MAX_NOTE
from domain.default_sizes import CURRENT, default_sizes
from domain.errors import InvalidInput, NotFound
from domain.fit import FitShape, TraceFit
from domain.model import CostModel
from domain.own_transfers import SizeDecision
from domain.pipeline import Pipeline
from domain.problem import AnyProblem, problem_of
from domain.profile import Origin, ProfileRevision, Provenance
from domain.schedule import busiest_stage
from domain.sensitivity import Sensitivities
from domain.solution import Solution, Status, Strategy
from domain.structure import KnownOverlap
from domain.uncertain_answer import Uncertainty
from domain.uncertain_fit import measured_whole_us
from domain.uncertainty import NamedCut, seed_of
from domain.verification import Against, Contradiction
from models.identifiers import new_id
from models.records import AnswerRecord

if TYPE_CHECKING:
    from models.records import AnswerSummary
    from models.session import Store, UnitOfWork
    from solvers.default_settings import BaselineSet


@dataclass(frozen=True, slots=True)
class PreparedQuestion:
    """A question whose model is known: a problem, and where its costs came from.

    `digest` is equal exactly for questions that one stored answer can serve. `uncertain` is what
    is known of the costs' errors, None where nothing is; `fit` what the costs were fitted by;
    `verification` what transfers said of the profile, None where there were none. `given` is there
    where a fit was the source; `own` is what a user's own transfers decide, where there are any.
    """

    question: Question
    problem: AnyProblem
    profile: ProfileRevision | None
    fitted: FittedTrace | None
    digest: str
    uncertain: UncertaintyQuestion | None = None
    fit: TraceFit | None = None
    verification: Against | None = None
    given: GivenFit | None = None
    own: SizeDecision | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A solution and what is reported with it."""

    id: str
    created_at: datetime
    prepared: PreparedQuestion
    solution: Solution
    baselines: BaselineSet
    bottleneck_stage: int | None
    solve_ms: float
    profile: ProfileRevision | None
    uncertainty: Uncertainty | None = None
    sensitivities: Sensitivities | None = None
    choice: SizeChoice | None = None
    measured: MeasuredChoice | None = None
    contradicts: Contradiction | None = None


Render: TypeAlias = Callable[[Answer], bytes]


def prepare(question: Question, stored: Stored, *, fragment_cap: int) -> PreparedQuestion:
    """Find or fit the model. Raises NotFound, UnreadableTrace, PoorFit, MeasurementMissing,
    Infeasible, and InconsistentInput where uncertainty is asked for and no errors are known.
    """
    found = resolve(question.source, stored, _fit_now(question, fragment_cap))
    problem = problem_of(
        found.model,
        question.message_bytes,
        question.limits,
        fragment_cap=fragment_cap,
        allow_refragmentation=question.allow_refragmentation,
    )
    problem.count_range()  # what no cut can satisfy is refused before anything is queued
    uncertain = _uncertain(question, problem, found.fit, fragment_cap, found.verification)
    own = None
    if question.transfers is not None:
        own = stored.read(TransfersWork(question.transfers, MAX_ROWS_BESIDE)).decision
    return PreparedQuestion(
        question=question,
        problem=problem,
        profile=found.profile,
        fitted=found.fitted,
        digest=_digest(question, problem, found, uncertain, own),
        uncertain=uncertain,
        fit=found.fit,
        verification=found.verification,
        given=found.given,
        own=own,
    )


def _uncertain(
    question: Question,
    problem: AnyProblem,
    fit: TraceFit | None,
    fragment_cap: int,
    verification: Against | None,
) -> UncertaintyQuestion | None:
    options = question.uncertainty or UncertaintyOptions()
    size = problem.message_bytes
    errors = known_errors(
        problem.model,
        fit,
        question.uncertainty,
        message_bytes=(size, size),
        verification=verification,
    )
    if errors is None:
        return None
    current_bytes = question.current_bytes
    return UncertaintyQuestion(
        errors.model,
        problem.message_bytes,
        problem.limits,
        fragment_cap,
        current=None if current_bytes is None else NamedCut(CURRENT, current_bytes),
        defaults=tuple(
            NamedCut(one.name, one.fragment_bytes)
            for one in default_sizes(problem, current_bytes=current_bytes)
        ),
        mtu_bytes=options.mtu_bytes,
        misfit=errors.misfit,
        measured_us=None if fit is None else measured_whole_us(fit, size),
        measured_bytes=None if fit is None else fit.measured_bytes,
        times=errors.times,
        overlap=errors.overlap,
        draws=errors.draws,
        seed=errors.seed,
        robust=options.robust,
    )


def _fit_now(question: Question, fragment_cap: int) -> FitNow:
    options = question.fit_options
    is_narrowed = options is not None and options.shape is FitShape.NARROWED
    if not is_narrowed:
        return FitNow(options)
    sizes_used = SizesOfQuestion(replace(question, source=(), save_as=None), fragment_cap)
    return FitNow(options, question.message_bytes, sizes_used)


@dataclass(frozen=True, slots=True)
class SizesOfQuestion:
    """The fragment sizes that a question's answer would have for a model. Picklable.

    Where its strategy may take long, the best equal fragments stand for it: which sizes a fit is
    of must not depend on how busy the machine is.
    """

    question: Question
    fragment_cap: int

    def __call__(self, model: CostModel) -> tuple[int, ...]:
        """Solve for this model."""
        question = self.question
        problem = problem_of(
            model,
            question.message_bytes,
            question.limits,
            fragment_cap=self.fragment_cap,
            allow_refragmentation=question.allow_refragmentation,
        )
        if not solvers.is_quick(problem, question.strategy):
            return equal_sizes(problem)
        solution = solvers.solve(
            problem,
            question.strategy,
            relative_gap=question.relative_gap,
            static_bytes=question.static_bytes,
        )
        return solution.schedule.fragment_bytes


def sizes_used_for(message_bytes: int | None, *, fragment_cap: int) -> SizesUsed:
    """Return the same for a message without a question; asked only where there is one."""
    if message_bytes is None:
        return lambda _: ()
    return SizesOfQuestion(Question(message_bytes=message_bytes, source=()), fragment_cap)


def find_stored(unit: UnitOfWork, prepared: PreparedQuestion) -> AnswerRecord | None:
    """Return a stored answer to the identical question, where it is good enough."""
    if prepared.question.save_as is not None:
        return None  # the answer has to name the revision that it stores
    record = unit.answers.find(prepared.digest)
    if record is None or not _is_reusable(record, prepared.question.relative_gap):
        return None
    return record


def is_quick(prepared: PreparedQuestion) -> bool:
    """Return whether solving is small enough to be tried in this process."""
    if prepared.uncertain is not None and prepared.uncertain.robust:
        return False  # its best cut is solved in every draw
    return solvers.is_quick(prepared.problem, prepared.question.strategy)


def conclude(
    prepared: PreparedQuestion,
    solution: Solution,
    *,
    solve_ms: float,
    baselines: BaselineSet | None = None,
    uncertainty: Uncertainty | None = None,
    sensitivities: Sensitivities | None = None,
    choice: SizeChoice | None = None,
) -> Answer:
    """Return a solution's answer: with what other settings cost and its busiest stage."""
    question, fit, size = prepared.question, prepared.fit, prepared.problem.message_bytes
    others = baselines or solvers.baselines(prepared.problem, current_bytes=question.current_bytes)
    best = others.best_repeat
    if choice is None and best is not None:
        point = SizePoint(best.size_bytes, best.fragments, best.latency_us)
        choice = SizeChoice(point, point, None)
    return Answer(
        id=new_id(),
        created_at=datetime.now(UTC),
        prepared=prepared,
        solution=solution,
        baselines=others.measured(None if fit is None else measured_whole_us(fit, size)),
        bottleneck_stage=bottleneck_stage(solution),
        solve_ms=solve_ms,
        profile=prepared.profile,
        uncertainty=uncertainty,
        sensitivities=sensitivities,
        choice=choice,
        measured=choice_of(
            prepared.verification,
            prepared.own,
            message_bytes=size,
            current_bytes=question.current_bytes,
            is_admitted=lambda one: admits(prepared.problem, one),
        ),
    )


def bottleneck_stage(solution: Solution) -> int | None:
    """Return the stage occupied longest; where cuts differ, each stage counts by the cut it sees.

    None of an aggregate, which knows how slow the slowest stage is and not which one it is.
    """
    pipeline = solution.problem.model
    if not isinstance(pipeline, Pipeline):
        return None
    if solution.levels is None:
        return busiest_stage(pipeline, solution.schedule.fragment_bytes)
    busy = [
        sum(stage.time_us(size) for size in cut)
        for stage, cut in zip(pipeline.stages, solution.levels, strict=True)
    ]
    return busy.index(max(busy))


def keep(unit: UnitOfWork, answer: Answer, render: Render) -> AnswerRecord:
    """Store the answer, and the profile where the question says so, in this unit of work."""
    answer = _with_saved_profile(unit, answer)
    solution = answer.solution
    record = AnswerRecord(
        id=answer.id,
        created_at=answer.created_at,
        question_digest=answer.prepared.digest,
        strategy=solution.strategy,
        message_bytes=solution.problem.message_bytes,
        fragments=solution.schedule.fragments,
        latency_us=solution.latency_us,
        lower_bound_us=solution.lower_bound_us,
        relative_gap=solution.relative_gap,
        status=solution.status,
        profile_name=answer.profile.name if answer.profile else None,
        profile_revision=answer.profile.revision if answer.profile else None,
        body=render(answer),
    )
    unit.answers.add(record)
    return record


def _with_saved_profile(unit: UnitOfWork, answer: Answer) -> Answer:
    name, fitted = answer.prepared.question.save_as, answer.prepared.fitted
    given = answer.prepared.given
    if name is None:
        return answer
    found = None
    if fitted is not None:
        saved = save_fit(unit, fitted, name=name)
        profile, found = saved.profile, saved.contradiction
    elif given is not None:
        saved = name_fit(unit, keep_given(unit, given), name=name)
        profile, found = saved.profile, saved.contradiction
    else:
        provenance = Provenance(Origin.GIVEN, "saved with an optimisation")
        profile = unit.profiles.save(name, answer.prepared.problem.model, provenance)
    revision = ProfileRevision(profile.name, profile.current.number)
    return replace(answer, profile=revision, contradicts=found)


def _is_reusable(record: AnswerRecord, relative_gap: float) -> bool:
    proven = (Status.OPTIMAL, Status.OPTIMAL_BEFORE_ROUNDING)
    return record.status in proven or record.relative_gap <= relative_gap


# Another one when the rules that decide change: what others decided is not given for an answer.
_DECIDED_BY = "rules 5"


def _digest(
    question: Question,
    problem: AnyProblem,
    found: Resolved,
    uncertain: UncertaintyQuestion | None,
    own: SizeDecision | None,
) -> str:
    # The answer's body names the profile, shows the fit and says how it was verified, so all three
    # are part of the question.
    profile, fitted, given = found.profile, found.fitted, found.given
    parts: tuple[str, ...] = (
        problem.digest(),
        str(question.strategy),
        repr(question.static_bytes),
        repr(float(question.relative_gap)),
        repr((profile.name, profile.revision) if profile else None),
        repr((fitted.trace_digests, fitted.request)) if fitted else "",
        _DECIDED_BY,
    )
    if given is not None:
        parts += (given.digest,)
    if uncertain is not None:
        errors = seed_of(uncertain.model)
        cuts, drawn = (uncertain.current, uncertain.mtu_bytes), (uncertain.draws, uncertain.seed)
        parts += (repr((errors, uncertain.misfit, cuts, drawn)),)
        parts += ("robust",) if uncertain.robust else ()
        parts += (repr(uncertain.measured_bytes),) if uncertain.measured_bytes else ()
        parts += (uncertain.times.digest,) if uncertain.times else ()
        parts += () if uncertain.overlap == KnownOverlap() else (repr(uncertain.overlap),)
        parts += (repr(uncertain.measured_us),) if uncertain.measured_us else ()
    elif question.current_bytes is not None:
        parts += (repr(("current", question.current_bytes)),)
    if found.verification is not None:
        parts += (repr(found.verification), repr(found.verification.notice()))
    if own is not None:
        parts += (repr(own),)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


# --- stored answers -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnswerFilter:
    """Which answers to list; None admits any."""

    profile: str | None = None
    revision: int | None = None
    message_bytes: int | None = None
    strategy: Strategy | None = None


@dataclass(frozen=True, slots=True)
class AnswerPage:
    """One page, newest first; `after` is where the next one starts, None at the end."""

    summaries: tuple[AnswerSummary, ...]
    after: str | None


def get_answer(store: Store, identifier: str) -> AnswerRecord:
    """Return the stored answer. Raises NotFound."""
    known_identifier(identifier, "answer")
    with store.reading() as unit:
        return unit.answers.get(identifier)


def describe_answer(
    store: Store,
    identifier: str,
    *,
    name: str | None = None,
    note: str | None = None,
    expected: Callable[[AnswerRecord], None] = lambda _: None,
) -> AnswerRecord:
    """Give an answer a name and a note, and say so in the log of changes.

    None leaves what is there, "" takes it away; a note's lines end as a program's do, however a
    form has sent them. Raises NotFound, what `expected` raises for the answer as it is so far, and
    InvalidInput for what is too long, and for a name of several lines.
    """
    given_name, given_note = (None if one is None else _lines(one) for one in (name, note))
    texts = (("name", given_name, MAX_ANSWER_NAME), ("note", given_note, MAX_NOTE))
    for field, text, longest in texts:
        if text is not None and (len(text) > longest or (field == "name" and "\n" in text)):
            one_line = "one line of " if field == "name" else ""
            raise InvalidInput(f"expected {one_line}at most {longest} characters", field=field)
    known_identifier(identifier, "answer")
    with store.unit_of_work() as unit:
        found = unit.answers.get(identifier, to_describe=True)
        expected(found)
        new_name = found.name if given_name is None else given_name or None
        new_note = found.note if given_note is None else given_note or None
        if (new_name, new_note) != (found.name, found.note):
            unit.answers.describe(identifier, name=new_name, note=new_note)
            unit.changes.note("answer.describe", identifier, before=found.name, after=new_name)
    return replace(found, name=new_name, note=new_note)


def _lines(text: str) -> str:
    return "\n".join(text.splitlines()).strip()


def get_answers(store: Store, identifiers: Iterable[str]) -> dict[str, AnswerRecord]:
    """Return those of these stored answers that exist, by identifier."""
    found = {}
    with store.reading() as unit:
        for one in identifiers:
            with suppress(NotFound):
                found[one] = unit.answers.get(one)
    return found


def has_active_table(store: Store, profile: str, revision: int, message_bytes: int) -> bool:
    """Return whether this revision's lookups of this message are answered from a compiled table."""
    with store.reading() as unit:
        found = unit.tables.active_summary(profile, revision)
    return found is not None and found.covers(message_bytes)


def list_answers(
    store: Store, wanted: AnswerFilter, *, after: str | None = None, limit: int = 50
) -> AnswerPage:
    """Return a page of summaries. Raises InvalidInput for a cursor that is none."""
    if after is not None and IDENTIFIER.fullmatch(after) is None:
        raise InvalidInput("expected the next_cursor of an earlier page", field="cursor")
    with store.reading() as unit:
        found = tuple(unit.answers.list(**asdict(wanted), after=after, limit=limit + 1))
    return AnswerPage(found[:limit], found[limit - 1].id if len(found) > limit else None)
