"""Crossover: prepared from a request and the store, run anywhere, nothing kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from analysis.crossover import CrossoverQuestion, Crossovers, find_crossovers
from app.execution.engine import Pool
from app.operations.call import Call
from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report, digest_of
from app.operations.solves import GRACE_S
from app.questions.source import Source, Stored
from app.schemas.base import dump_json, dump_request
from app.schemas.source import pinned
from app.verbs.crossover import answer
from app.verbs.crossover.request import crossover_question, setting_of
from contract.crossover import CrossoverIn, CrossoverOut

if TYPE_CHECKING:
    from app.settings import Settings
    from models.session import UnitOfWork


@dataclass(frozen=True, slots=True)
class FindCrossovers(OperationDefaults[Crossovers]):
    """Two paths, and the messages in question."""

    question: CrossoverQuestion
    asked: CrossoverIn

    kind: ClassVar = OperationKind.CROSSOVER
    noun: ClassVar = "search for crossovers"
    pool: ClassVar = Pool.SOLVE  # clients wait for it briefly
    time_s: ClassVar = 10.0 + GRACE_S

    @property
    def request(self) -> bytes:
        """A CrossoverIn as JSON, its profiles pinned to the revisions that were found."""
        a, b = self.question.a.profile, self.question.b.profile
        return dump_request(
            replace(self.asked, a=pinned(self.asked.a, a), b=pinned(self.asked.b, b))
        )

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.question)

    @property
    def work(self) -> Call[Crossovers]:
        return Call(find_crossovers, self.question)

    def run(self, report: Report) -> Crossovers:
        """Search."""
        return self.work.run(report)

    def document(self, result: Crossovers) -> CrossoverOut:
        """Return the answer as it is sent. Raises StrategyDeclined where the program whose setting
        was asked for has none for it.
        """
        return answer.sent(result, setting_of(self.asked))

    def keep(self, unit: UnitOfWork, result: Crossovers) -> Outcome:
        """Store nothing."""
        return Outcome(dump_json(self.document(result)))


def operation(
    asked: CrossoverIn,
    stored: Stored,
    settings: Settings,
    costs: tuple[Source, Source] | None = None,
) -> FindCrossovers:
    """Find or fit both paths; `costs` stand in place of those that the request names.

    Raises NotFound, InvalidInput, and what a fit does.
    """
    setting_of(asked)  # what is no setting is refused before anything is read
    return FindCrossovers(crossover_question(asked, stored, costs), asked)
