"""Models of papers: what a messaging layer costs, and what hiding a message gains.

A layer's stages are stored where they are to be kept as a profile; answers about hiding always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from analysis.hidden_ratios import ModelHidden, ModelQuestion
from analysis.hiding import Hidden, HideQuestion
from analysis.layer_answer import LayerAnswer, LayerQuestion, ended, layer_costs
from analysis.premise import unknown_overlap
from app.execution.engine import Pool
from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report, digest_of
from app.operations.solves import GRACE_S
from app.operations.work import HideWork, LayerWork
from app.plots.models_svg import CountTimes, Picture, gain_svg, run_time_svg, speedup_svg
from app.questions.optimize import (
    PreparedQuestion,
    prepare,
)
from app.questions.question import known_identifier
from app.questions.source import Stored
from app.schemas.base import dump_json, parse_json
from app.schemas.hide import HideIn, HideOut, StoredHideOut
from app.schemas.layer_costs import LayerCostsIn, LayerCostsOut
from app.schemas.layers import LayerOut
from app.text.numbers import format_count, format_figure, format_percent, format_sizes
from app.text.units import PROVEN_BOUND, format_proven, format_time
from domain.errors import InconsistentInput
from domain.hiding import BestProcesses, Overlap, ProcessPoint
from domain.profile import Origin, ProfileRevision, Provenance
from domain.solution import Notice, Status
from domain.verification import said_of
from models.identifiers import new_id
from models.records import HiddenAnswerRecord

if TYPE_CHECKING:
    from app.settings import Settings
    from domain.errors import SluiceError
    from models.session import Store, UnitOfWork


LAYER_GRACE_S = 0.1  # for the last of many solves; what was found before is kept
MAX_QUICK_ROWS = 500  # work at so many packet sizes takes no longer than 50 ms


@dataclass(frozen=True, slots=True)
class CostLayer(OperationDefaults[LayerAnswer]):
    """One question about a layer, as it was asked."""

    question: LayerQuestion
    asked: bytes
    save_as: str | None = None

    @property
    def kind(self) -> OperationKind:
        return OperationKind.LAYER

    @property
    def noun(self) -> str:
        return "layer's costs"

    @property
    def time_s(self) -> float:
        """The limit asked for, and a grace."""
        return self.question.time_limit_s + LAYER_GRACE_S

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
        return Outcome(dump_json(LayerCostsOut.of(result, profile)))

    def _saved(self, unit: UnitOfWork, result: LayerAnswer) -> ProfileRevision:
        assert self.save_as is not None
        document = dump_json(LayerOut.of(self.question.layer)).decode()
        provenance = Provenance(Origin.LAYER, document)
        profile = unit.profiles.save(self.save_as, result.pipelines[0].stages.pipeline, provenance)
        return ProfileRevision(profile.name, profile.current.number)


def layer_operation(asked: LayerCostsIn, settings: Settings) -> CostLayer:
    """Check what is asked. Raises NotFound, InvalidInput, MissingClassCost and NotPublished."""
    question = asked.to_domain(fragment_cap=settings.max_fragments)
    if asked.save_as is not None and not question.pipelines():
        raise InconsistentInput(
            "expected clock_mhz, and transfers that do not wait for each other: there are no "
            "stages to store",
            field="save_as",
        )
    return CostLayer(question, asked.model_dump_json().encode(), asked.save_as)


def requested_layer(request: bytes, unit: UnitOfWork, settings: Settings) -> CostLayer:
    """Read a job's request again."""
    return layer_operation(parse_json(LayerCostsIn, request), settings)


@dataclass(frozen=True, slots=True)
class Hide(OperationDefaults[Hidden | ModelHidden]):
    """One question; `prepared` is None where the paper's terms stand in place of a pipeline.

    `request_for` gives its request with the profile pinned to a revision.
    """

    question: HideQuestion | ModelQuestion
    prepared: PreparedQuestion | None
    request_for: Callable[[ProfileRevision | None], bytes]

    @property
    def kind(self) -> OperationKind:
        return OperationKind.HIDE

    @property
    def noun(self) -> str:
        return "search for the hidden fragments"

    @property
    def pool(self) -> Pool:
        """Clients wait for it briefly."""
        return Pool.SOLVE

    @property
    def time_s(self) -> float:
        """The limit asked for, and a grace."""
        limit_s = self.question.time_limit_s if isinstance(self.question, HideQuestion) else 1.0
        return limit_s + GRACE_S

    @property
    def request(self) -> bytes:
        """A HideIn as JSON."""
        return self.request_for(None if self.prepared is None else self.prepared.profile)

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.question, self._source_digest)

    @property
    def answer_digest(self) -> str:
        """Equal exactly for questions that one stored answer serves, whatever their time limits."""
        asked = self.question
        if isinstance(asked, HideQuestion):
            asked = replace(asked, time_limit_s=0.0)
        return digest_of(self.kind, asked, self._source_digest)

    @property
    def _source_digest(self) -> str | None:
        return None if self.prepared is None else self.prepared.digest

    @property
    def stores(self) -> bool:
        """The answer."""
        return True

    def stored(self, unit: UnitOfWork) -> Outcome | None:
        """Return a stored answer to the identical question that time did not end."""
        record = unit.hidden_answers.find(self.answer_digest)
        return None if record is None else Outcome(record.body, hidden_id=record.id)

    @property
    def work(self) -> HideWork:
        return HideWork(self.question)

    def run_here(self) -> Hidden | ModelHidden | None:
        """Compute what needs no search."""
        return self.work.run_quickly()

    def run(self, report: Report) -> Hidden | ModelHidden:
        """Search. Raises SluiceError."""
        return self.work.run(report)

    def unreported(self) -> Hidden | ModelHidden:
        """Return what is found without time for any search: the closed forms and their bounds."""
        if isinstance(self.question, ModelQuestion):
            return HideWork(self.question).compute()
        return HideWork(replace(self.question, time_limit_s=0.0)).compute()

    def cut_off(self, best: Hidden | ModelHidden, why: SluiceError) -> Hidden | ModelHidden:
        """Return the best so far; its status says that time ended the search."""
        return best

    def document(self, result: Hidden | ModelHidden) -> HideOut:
        """Return the answer as it is sent."""
        if isinstance(result, ModelHidden):
            return HideOut.of_model(result)
        assert self.prepared is not None, "a pipeline has been prepared"
        fit, said = self.prepared.fit, said_of(self.prepared.verification)
        of_fit: tuple[Notice, ...] = ()
        if fit is not None:
            of_fit = (*unknown_overlap(fit.overlap, len(fit.stages)), *fit.notices)
        return HideOut.of(result, self.prepared.profile, of_fit, said)

    def keep(self, unit: UnitOfWork, result: Hidden | ModelHidden) -> Outcome:
        """Store the answer."""
        id, created_at = new_id(), datetime.now(UTC)
        sent = StoredHideOut.stored(self.document(result), id=id, created_at=created_at)
        record = HiddenAnswerRecord(
            id=id,
            created_at=created_at,
            question_digest=self.answer_digest,
            cut_off=isinstance(result, Hidden) and result.status is Status.TIME_LIMIT,
            body=dump_json(sent),
        )
        unit.hidden_answers.add(record)
        return Outcome(record.body, hidden_id=id)


def hide_operation(asked: HideIn, unit: UnitOfWork, settings: Settings) -> Hide:
    """Find or fit the pipeline. Raises NotFound, InvalidInput, and what a fit does."""
    return prepared_hide(asked, Stored.of_unit(unit), fragment_cap=settings.max_fragments)


def prepared_hide(asked: HideIn, stored: Stored, *, fragment_cap: int) -> Hide:
    """Return the operation by what is stored. Raises as `hide_operation`."""
    model = asked.to_model()
    if model is not None:
        return Hide(model, None, asked.as_job)
    prepared = prepare(asked.to_question(), stored, fragment_cap=fragment_cap)
    return Hide(asked.to_domain(prepared.problem, prepared.uncertain), prepared, asked.as_job)


def requested_hide(request: bytes, unit: UnitOfWork, settings: Settings) -> Hide:
    """Read a job's request again. Raises NotFound where the profile is gone."""
    return hide_operation(parse_json(HideIn, request), unit, settings)


def get_hidden_answer(store: Store, identifier: str) -> bytes:
    """Return a stored answer, byte for byte as it was first sent. Raises NotFound."""
    known_identifier(identifier, "stored answer")
    with store.reading() as unit:
        return unit.hidden_answers.get(identifier).body


# --- as a person reads it -------------------------------------------------------------------------


_REGIMES = {
    "fully_hidden": "the message is hidden wholly",
    "communication_bound": "the message ends after the calculation",
    "loss": "hiding loses",
}


def hide_facts(found: HideOut) -> Iterator[tuple[str, str]]:
    """Yield labels and values of an answer."""
    if found.with_us is not None and found.without_us is not None:
        assert found.lower_bound_us is not None
        took, bound = format_proven(found.with_us, found.lower_bound_us)
        yield "with hiding", f"{took}, {PROVEN_BOUND} {bound}"
        yield "without", format_time(found.without_us)
    at_most = found.gain_at_most
    limit = "" if at_most is None else f", at most {format_figure(at_most)}"
    yield "gain", f"{format_figure(found.gain)}{limit}: {_REGIMES[found.regime]}"
    if found.gamma is not None:
        yield "c / T", f"{format_figure(found.gamma)}, calculation over communication"
    if found.min_gain is not None:
        yield f"gain {format_figure(found.min_gain)}", _window(found)
    if found.fragment_bytes is not None:
        yield "fragments", f"{len(found.fragment_bytes)}: {format_sizes(found.fragment_bytes)}"
    if other := found.latency_optimal:
        more = format_percent(other.more_by)
        took = format_time(other.with_us)
        yield "least latency", f"{format_count(other.fragments)} fragments: {took}, {more} more"
    if found.calculation_for_full_hiding_us is not None:
        yield "hidden wholly", f"from {format_time(found.calculation_for_full_hiding_us)} on"
    if best := found.best_processes:
        counts = (best.without, best.hidden, best.gain)
        without, hidden, gain = map(format_count, counts)
        yield "best processes", f"{without} without, {hidden} with hiding; greatest gain {gain}"


def _window(found: HideOut) -> str:
    if found.window is None:
        return "at no ratio of calculation to communication"
    high = found.window.high
    end = "" if high is None else f" to {format_figure(high)}"
    return f"where c / T is from {format_figure(found.window.low)}{end}"


def hide_drawing(found: HideOut, picture: str | None) -> str:
    """Return the picture asked for as SVG; by itself that of the run times, or of the gain.

    Raises InconsistentInput where the answer has nothing of it.
    """
    wanted = Picture(picture or (Picture.RUN_TIME if found.counts else Picture.GAIN))
    if wanted is Picture.RUN_TIME:
        if not found.counts or found.fragments is None or found.latency_optimal is None:
            raise InconsistentInput("run times need a pipeline", field="picture")
        counts = [
            CountTimes(one.fragments, one.latency_us, one.host_us, one.with_us)
            for one in found.counts
        ]
        optimal = found.latency_optimal.fragments
        return run_time_svg(counts, hidden=found.fragments, latency_optimal=optimal)
    if wanted is Picture.SPEEDUP:
        best = found.best_processes
        if best is None:
            raise InconsistentInput("speed-ups need --processes", field="picture")
        points = [
            ProcessPoint(one.processes, one.speedup, one.hidden_speedup, one.gain)
            for one in found.curve
        ]
        return speedup_svg(points, BestProcesses(best.without, best.hidden, best.gain))
    window = found.window
    ends = None if window is None or window.high is None else (window.low, window.high)
    point = None if not found.gamma else (found.gamma, found.gain)
    return gain_svg(_overlap(found), point=point, window=ends)


def _overlap(found: HideOut) -> Overlap:
    """The model's terms of an answer. Raises InconsistentInput where there are none."""
    if found.overhead is None:
        raise InconsistentInput("the gain is drawn of a calculation, not streamed", field="picture")
    return Overlap(found.hideable_fraction, found.overhead)
