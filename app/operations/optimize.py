"""Optimize: one message cut into fragments, with a proof; its answer is stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from app.execution.engine import Pool
from app.operations.operation import (
    BestSoFar,
    OperationDefaults,
    OperationKind,
    Outcome,
    Report,
    digest_of,
)
from app.operations.solves import GRACE_S, Solve, Solved, cut_off
from app.questions import optimize
from app.questions.optimize import PreparedQuestion
from app.questions.question import Question
from app.questions.source import Stored
from app.schemas.base import dump_json, parse_json
from app.schemas.optimize import best_so_far_out, optimize_question, render_answer
from app.schemas.source import as_job
from contract.optimize import OptimizeIn
from domain.profile import ProfileRevision

if TYPE_CHECKING:
    from app.settings import Settings
    from domain.errors import SluiceError
    from domain.profile import ProfileReference
    from models.session import UnitOfWork

RequestFor = Callable[[ProfileRevision | None], bytes]


@dataclass(frozen=True, slots=True)
class Optimize(OperationDefaults[Solved]):
    """One optimisation. `request_for` gives its request with the profile pinned to a revision."""

    prepared: PreparedQuestion
    request_for: RequestFor

    @property
    def kind(self) -> OperationKind:
        return OperationKind.OPTIMIZE

    @property
    def noun(self) -> str:
        return "solve"

    @property
    def pool(self) -> Pool:
        """Clients wait for it briefly."""
        return Pool.SOLVE

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
    def work(self) -> Solve:
        """The solver's arguments; the measurements and their fit stay here."""
        question, verified = self.prepared.question, self.prepared.verification
        return Solve(
            problem=self.prepared.problem,
            strategy=question.strategy,
            relative_gap=question.relative_gap,
            time_limit_s=question.time_limit_s,
            static_bytes=question.static_bytes,
            uncertain=self.prepared.uncertain,
            current_bytes=question.current_bytes,
            misfit=verified.misfit if verified else 0.0,
        )

    def stored(self, unit: UnitOfWork) -> Outcome | None:
        """Return a stored answer to the identical question, where it is good enough."""
        record = optimize.find_stored(unit, self.prepared)
        return None if record is None else Outcome(record.body, answer_id=record.id)

    @property
    def is_quick(self) -> bool:
        """Whether solving is small enough to be tried in this process."""
        return optimize.is_quick(self.prepared)

    def run_here(self) -> Solved | None:
        """Solve where that is quick."""
        return self.work.run_quickly() if self.is_quick else None

    def run(self, report: Report) -> Solved:
        """Solve. Raises what `solvers.solve` does."""
        return self.work.run(report)

    def cut_off(self, best: Solved, why: SluiceError) -> Solved:
        """Return the best so far, with the note that the search for a better one was ended."""
        return self.work.completed(replace(best, solution=cut_off(best.solution, why)))

    def best_so_far(self, result: Solved) -> BestSoFar:
        """Return the schedule with its latency and the bound on it."""
        solution = result.solution
        document = dump_json(best_so_far_out(solution))
        return BestSoFar(document, solution.latency_us, solution.lower_bound_us)

    def answer(self, result: Solved) -> optimize.Answer:
        """Return the answer that a solution gives."""
        return optimize.conclude(
            self.prepared,
            result.solution,
            solve_ms=result.solve_ms,
            baselines=result.baselines,
            uncertainty=result.uncertainty,
            sensitivities=result.sensitivities,
            choice=result.choice,
        )

    @property
    def stores(self) -> bool:
        """The answer."""
        return True

    def keep(self, unit: UnitOfWork, result: Solved) -> Outcome:
        """Store the answer, and the profile where the question says so."""
        record = optimize.keep(unit, self.answer(result), render_answer)
        return Outcome(record.body, answer_id=record.id)


def optimize_operation(
    question: Question, request_for: RequestFor, stored: Stored, settings: Settings
) -> Optimize:
    """Find or fit the model. Raises what `optimize.prepare` does."""
    prepared = optimize.prepare(question, stored, fragment_cap=settings.max_fragments)
    return Optimize(prepared, request_for)


def requested_optimize(request: bytes, stored: Stored, settings: Settings) -> Optimize:
    """Read a job's request again. Raises NotFound where the profile is gone."""
    asked = parse_json(OptimizeIn, request)
    return optimize_operation(optimize_question(asked), partial(as_job, asked), stored, settings)


def schedule_operation(
    reference: ProfileReference, message_bytes: int, stored: Stored, settings: Settings
) -> Optimize:
    """Ask for the best schedule of a message on a stored profile. Raises NotFound."""
    question = Question(message_bytes=message_bytes, source=reference)

    def request_for(profile: ProfileRevision | None) -> bytes:
        assert profile is not None
        name = f"{profile.name}@{profile.revision}"
        return as_job(OptimizeIn(message_bytes=message_bytes, profile=name), profile)

    return optimize_operation(question, request_for, stored, settings)
