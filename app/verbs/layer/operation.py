"""Layer: checked from a request, run anywhere, its stages kept where a profile is named."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from analysis.layer_answer import LayerAnswer, LayerQuestion, ended, layer_costs
from app.operations.layer_work import LayerWork
from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report, digest_of
from app.questions.source import Stored
from app.schemas.base import dump_json, parse_json
from app.schemas.layer import layer_out
from app.verbs.layer import answer
from app.verbs.layer.request import question_of
from contract.layer_costs import LayerCostsIn
from domain.errors import InconsistentInput
from domain.profile import Origin, ProfileRevision, Provenance

if TYPE_CHECKING:
    from app.settings import Settings
    from domain.errors import SluiceError
    from models.session import UnitOfWork


GRACE_S = 0.1  # for the last of many solves; what was found before is kept
MAX_QUICK_ROWS = 500  # work at so many packet sizes takes no longer than 50 ms


@dataclass(frozen=True, slots=True)
class CostLayer(OperationDefaults[LayerAnswer]):
    """One question about a layer, as it was asked."""

    question: LayerQuestion
    asked: bytes
    save_as: str | None = None

    kind: ClassVar = OperationKind.LAYER
    noun: ClassVar = "layer's costs"

    @property
    def time_s(self) -> float:
        """The limit asked for, and a grace."""
        return self.question.time_limit_s + GRACE_S

    @property
    def request(self) -> bytes:
        """A LayerCostsIn as JSON."""
        return self.asked

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.question, self.save_as)

    @property
    def stores(self) -> bool:
        return self.save_as is not None

    @property
    def work(self) -> LayerWork:
        return LayerWork(self.question)

    def run_here(self) -> LayerAnswer | None:
        """Compute where nothing is solved and few packet sizes are asked for."""
        question = self.question
        rows = len(question.message_bytes) * (1 + len(question.packet_words))
        few = rows * (1 + len(question.layer.components) // 20) <= MAX_QUICK_ROWS
        return self.work.compute() if few and not question.tune else None

    def run(self, report: Report) -> LayerAnswer:
        """Compute. Raises SluiceError."""
        return self.work.run(report)

    def unreported(self) -> LayerAnswer:
        """Return the answer without any cut: its work is known at once."""
        return layer_costs(replace(self.question, tune=False))

    def cut_off(self, best: LayerAnswer, why: SluiceError) -> LayerAnswer:
        """Return the answer by what was solved so far; the rest says why it has no cut."""
        return ended(best, why.detail)

    def keep(self, unit: UnitOfWork, result: LayerAnswer) -> Outcome:
        """Store the stages where a name is given for them."""
        profile = self._saved(unit, result) if self.save_as is not None else None
        return Outcome(dump_json(answer.sent(result, profile)))

    def _saved(self, unit: UnitOfWork, result: LayerAnswer) -> ProfileRevision:
        assert self.save_as is not None
        document = dump_json(layer_out(self.question.layer)).decode()
        provenance = Provenance(Origin.LAYER, document)
        profile = unit.profiles.save(self.save_as, result.pipelines[0].stages.pipeline, provenance)
        return ProfileRevision(profile.name, profile.current.number)


def operation(asked: LayerCostsIn, stored: Stored, settings: Settings) -> CostLayer:
    """Check what is asked. Raises NotFound, InvalidInput, MissingClassCost and NotPublished."""
    question = question_of(asked, fragment_cap=settings.max_fragments)
    if asked.save_as is not None and not question.pipelines():
        raise InconsistentInput(
            "expected clock_mhz, and transfers that do not wait for each other: there are no "
            "stages to store",
            field="save_as",
        )
    return CostLayer(question, dump_json(asked), asked.save_as)


def requested(request: bytes, stored: Stored, settings: Settings) -> CostLayer:
    """Read a job's request again."""
    return operation(parse_json(LayerCostsIn, request), stored, settings)
