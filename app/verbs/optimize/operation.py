"""Optimize: one message cut into fragments, with a proof; its answer is stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import solvers
from analysis.items import ItemsQuestion, ItemsSolved, solve_items_question
from analysis.solve import MessageQuestion, Solved, solve
from app.execution.engine import Pool
from app.operations.call import Call
from app.operations.operation import (
    BestSoFar,
    OperationDefaults,
    OperationKind,
    Outcome,
    Report,
    digest_of,
)
from app.operations.solves import GRACE_S, cut_off
from app.questions.fits import keep_given, name_fit, save_fit
from app.questions.items import PreparedItems, are_quick, prepare_items
from app.questions.question import PreparedQuestion, Question, prepare
from app.questions.source import Resolved, Source, Stored
from app.schemas.base import dump_json, parse_json
from app.schemas.items import asked_items, crossed_by, items_answer
from app.schemas.source import as_job
from app.verbs.optimize.answer import (
    Answer,
    best_so_far_out,
    conclude,
    optimize_out,
    render_answer,
)
from app.verbs.optimize.request import optimize_question
from contract.optimize import ItemsOptimizeOut, OptimizeIn, OptimizeOut
from domain.model import CostModel
from domain.profile import Origin, ProfileReference, ProfileRevision, Provenance
from domain.solution import Status, Strategy
from domain.verification import Contradiction
from models.identifiers import new_id
from models.records import AnswerRecord

if TYPE_CHECKING:
    from app.settings import Settings
    from domain.errors import SluiceError
    from models.session import UnitOfWork


_QUICK_IN_DRAWS = 100  # items times stages, where errors are known


@dataclass(frozen=True, slots=True)
class Optimize(OperationDefaults[Solved]):
    """One optimisation. `request_for` gives its request with the profile pinned to a revision."""

    prepared: PreparedQuestion
    request_for: Callable[[ProfileRevision | None], bytes]

    kind: ClassVar = OperationKind.OPTIMIZE
    noun: ClassVar = "solve"
    pool: ClassVar = Pool.SOLVE  # clients wait for it briefly
    stores: ClassVar = True  # the answer

    @property
    def time_s(self) -> float:
        """The limit asked for, and a grace."""
        return self.prepared.question.time_limit_s + GRACE_S

    @property
    def request(self) -> bytes:
        """An OptimizeIn as JSON."""
        return self.request_for(self.prepared.profile)

    @property
    def digest(self) -> str:
        question = self.prepared.question
        return digest_of(self.kind, self.prepared.digest, question.time_limit_s, question.save_as)

    @property
    def asked(self) -> MessageQuestion:
        """The solver's arguments; the measurements and their fit stay here."""
        question, verified = self.prepared.question, self.prepared.verification
        return MessageQuestion(
            problem=self.prepared.problem,
            strategy=question.strategy,
            relative_gap=question.relative_gap,
            time_limit_s=question.time_limit_s,
            static_bytes=question.static_bytes,
            uncertain=self.prepared.uncertain,
            current_bytes=question.current_bytes,
            misfit=verified.misfit if verified else 0.0,
        )

    @property
    def work(self) -> Call[Solved]:
        return Call(solve, self.asked, ("best",))

    def stored(self, unit: UnitOfWork) -> Outcome | None:
        """Return a stored answer to the identical question, where it is good enough."""
        record = _find_stored(unit, self.prepared)
        return None if record is None else Outcome(record.body, answer_id=record.id)

    @property
    def is_quick(self) -> bool:
        """Whether solving is small enough to be tried in this process."""
        uncertain = self.prepared.uncertain
        if uncertain is not None and uncertain.robust:
            return False  # its best cut is solved in every draw
        return solvers.is_quick(self.prepared.problem, self.prepared.question.strategy)

    def run_here(self) -> Solved | None:
        """Solve where that is quick."""
        return self.asked.solved_quickly() if self.is_quick else None

    def run(self, report: Report) -> Solved:
        """Solve. Raises what `solvers.solve` does."""
        return self.work.run(report)

    def cut_off(self, best: Solved, why: SluiceError) -> Solved:
        """Return the best so far, with the note that the search for a better one was ended."""
        return self.asked.completed(replace(best, solution=cut_off(best.solution, why)))

    def best_so_far(self, result: Solved) -> BestSoFar:
        """Return the schedule with its latency and the bound on it."""
        solution = result.solution
        document = dump_json(best_so_far_out(solution))
        return BestSoFar(document, solution.latency_us, solution.lower_bound_us)

    def answer(self, result: Solved) -> Answer:
        """Return the answer that a solution gives."""
        return conclude(
            self.prepared,
            result.solution,
            solve_ms=result.solve_ms,
            baselines=result.baselines,
            uncertainty=result.uncertainty,
            sensitivities=result.sensitivities,
            choice=result.choice,
            in_flight=result.in_flight,
        )

    def document(self, result: Solved) -> OptimizeOut:
        """Return the answer as it is sent; it is stored nowhere."""
        return optimize_out(self.answer(result))

    def keep(self, unit: UnitOfWork, result: Solved) -> Outcome:
        """Store the answer, and the profile where the question says so."""
        record = _keep(unit, self.answer(result))
        return Outcome(record.body, answer_id=record.id)


@dataclass(frozen=True, slots=True)
class OptimizeItems(OperationDefaults[ItemsSolved]):
    """One optimisation of a message that is cut between items alone."""

    prepared: PreparedItems
    request_for: Callable[[ProfileRevision | None], bytes]

    kind: ClassVar = OperationKind.OPTIMIZE
    noun: ClassVar = "solve"
    pool: ClassVar = Pool.SOLVE
    stores: ClassVar = True  # the answer

    @property
    def time_s(self) -> float:
        """The limit asked for, and a grace."""
        return self.prepared.asked.time_limit_s + GRACE_S

    @property
    def request(self) -> bytes:
        """An OptimizeIn as JSON."""
        return self.request_for(self.prepared.found.profile)

    @property
    def digest(self) -> str:
        asked = self.prepared.asked
        return digest_of(self.kind, self.prepared.digest, asked.time_limit_s, asked.save_as)

    @property
    def work(self) -> Call[ItemsSolved]:
        return Call(self._solver, self.prepared.question)

    def stored(self, unit: UnitOfWork) -> Outcome | None:
        """Return a stored answer to the identical question, where it is good enough."""
        asked = self.prepared.asked
        record = None if asked.save_as else unit.answers.find(self.prepared.digest)
        if record is None or not _is_reusable(record, asked.relative_gap):
            return None
        return Outcome(record.body, answer_id=record.id)

    @property
    def is_quick(self) -> bool:
        """Whether solving is small enough to be tried in this process."""
        problem = self.prepared.problem
        if self.prepared.errors is not None:
            return len(problem.sequence) * len(problem.pipeline) <= _QUICK_IN_DRAWS
        return are_quick((problem,))

    def run_here(self) -> ItemsSolved | None:
        """Solve where that is quick."""
        return self._solver(self.prepared.question) if self.is_quick else None

    @property
    def _solver(self) -> Callable[[ItemsQuestion], ItemsSolved]:
        if self.prepared.errors is None:
            return solve_items_question
        from analysis.item_draws import solve_in_draws

        return solve_in_draws

    def run(self, report: Report) -> ItemsSolved:
        """Solve. Raises what `solvers.items.solve.solve_items` does."""
        return self.work.run(report)

    def document(self, result: ItemsSolved) -> ItemsOptimizeOut:
        """Return the answer as it is sent; it is stored nowhere."""
        return self._answer(result, self.prepared.found.profile)

    def keep(self, unit: UnitOfWork, result: ItemsSolved) -> Outcome:
        """Store the answer, and the profile where the question says so."""
        found, solution = self.prepared.found, result.solution
        profile, name = found.profile, self.prepared.asked.save_as
        if name is not None:
            profile = _saved(unit, name, found, crossed_by(self.prepared.problem))[0]
        answer = self._answer(result, profile)
        record = AnswerRecord(
            id=answer.id,
            created_at=datetime.fromisoformat(answer.created_at),
            question_digest=self.prepared.digest,
            strategy=Strategy(answer.strategy),
            message_bytes=answer.message_bytes,
            fragments=answer.fragments,
            latency_us=solution.latency_us,
            lower_bound_us=solution.lower_bound_us,
            relative_gap=solution.relative_gap,
            status=solution.status,
            profile_name=profile.name if profile else None,
            profile_revision=profile.revision if profile else None,
            body=dump_json(answer),
        )
        unit.answers.add(record)
        return Outcome(record.body, answer_id=record.id)

    def _answer(self, result: ItemsSolved, profile: ProfileRevision | None) -> ItemsOptimizeOut:
        return items_answer(
            self.prepared, result, id=new_id(), created_at=datetime.now(UTC), profile=profile
        )


def operation(
    asked: OptimizeIn, stored: Stored, settings: Settings, costs: Source | None = None
) -> Optimize | OptimizeItems:
    """Find or fit the model; `costs` stand in place of those that the request names.

    Raises NotFound, InvalidInput, and what `prepare` does, and for items `prepare_items`.
    """
    if asked.items is not None:
        items = asked_items(asked)
        if costs is not None:
            items = replace(items, source=costs)
        found = prepare_items(items, stored, fragment_cap=settings.max_fragments)
        return OptimizeItems(found, partial(as_job, asked))
    question = optimize_question(asked)
    if costs is not None:
        question = replace(question, source=costs)
    prepared = prepare(question, stored, fragment_cap=settings.max_fragments, machines=True)
    return Optimize(prepared, partial(as_job, asked))


def requested(request: bytes, stored: Stored, settings: Settings) -> Optimize | OptimizeItems:
    """Read a job's request again. Raises NotFound where the profile is gone."""
    return operation(parse_json(OptimizeIn, request), stored, settings)


def schedule(
    reference: ProfileReference, message_bytes: int, stored: Stored, settings: Settings
) -> Optimize:
    """Ask for the best schedule of a message on a stored profile. Raises NotFound."""
    question = Question(message_bytes=message_bytes, source=reference)
    prepared = prepare(question, stored, fragment_cap=settings.max_fragments, machines=True)
    asked = OptimizeIn(message_bytes=message_bytes, profile=reference.name)
    return Optimize(prepared, partial(as_job, asked))


def _find_stored(unit: UnitOfWork, prepared: PreparedQuestion) -> AnswerRecord | None:
    """Return a stored answer to the identical question, where it is good enough."""
    if prepared.question.save_as is not None:
        return None  # the answer has to name the revision that it stores
    record = unit.answers.find(prepared.digest)
    if record is None or not _is_reusable(record, prepared.question.relative_gap):
        return None
    return record


def _keep(unit: UnitOfWork, answer: Answer) -> AnswerRecord:
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
        body=render_answer(answer),
    )
    unit.answers.add(record)
    return record


def _with_saved_profile(unit: UnitOfWork, answer: Answer) -> Answer:
    name, prepared = answer.prepared.question.save_as, answer.prepared
    if name is None:
        return answer
    revision, found = _saved(unit, name, prepared, prepared.problem.model)
    return replace(answer, profile=revision, contradicts=found)


def _saved(
    unit: UnitOfWork, name: str, costs: PreparedQuestion | Resolved, model: CostModel
) -> tuple[ProfileRevision, Contradiction | None]:
    """Store the model under this name, with the fit that it is of; and return what that says
    against the revisions before it.
    """
    found = None
    if costs.fitted is not None:
        saved = save_fit(unit, costs.fitted, name=name)
        profile, found = saved.profile, saved.contradiction
    elif costs.given is not None:
        saved = name_fit(unit, keep_given(unit, costs.given), name=name)
        profile, found = saved.profile, saved.contradiction
    else:
        provenance = Provenance(Origin.GIVEN, "saved with an optimisation")
        profile = unit.profiles.save(name, model, provenance)
    return ProfileRevision(profile.name, profile.current.number), found


def _is_reusable(record: AnswerRecord, relative_gap: float) -> bool:
    proven = (Status.OPTIMAL, Status.OPTIMAL_BEFORE_ROUNDING)
    return record.status in proven or record.relative_gap <= relative_gap
