"""A model beside real transfers over its stages: new ones, or those of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.console.commands import fit_source, opened_store, store_for
from app.console.files import ProfileSource, TraceSource, check_target, read_source, write_whole
from app.console.measurable import check_store
from app.console.probe_runs import shown
from app.console.transfers import (
    TRANSFERS_FILE,
    Model,
    alignment_of,
    check_transfers,
    current_of,
    facts_of,
    message_bytes_of,
    pipeline_of,
    recommended_of,
    started,
    verdict_of,
)
from app.questions.profiles import (
    first_lines,
    recorded_transfers,
    smallest_measured,
    smallest_of,
    stages_measured,
    verification_by,
)
from app.settings import Settings
from app.text.units import printable
from app.ui.grammar import Arguments
from app.ui.terminal import Output
from domain.errors import InconsistentInput, InvalidInput
from domain.profile import ProfileReference
from domain.units import format_bytes
from domain.verification import Verification

_COUNTS = (1, 2, 4, 8, 16, 32, 64)  # fragments of the sweep
_NOUN = "the transfers"


@dataclass(frozen=True, slots=True)
class Verified:
    """A verification, and whether it was ended before its plan was."""

    verification: Verification
    recommended_bytes: int
    current_bytes: int | None
    is_interrupted: bool


def transferred(model: Model, arguments: Arguments, output: Output) -> Verified:
    """Run the transfers, write every run into a file, and return what they say."""
    from measuring.transfers import TransferPlan, Transfers

    stages = tuple(arguments.stages or model.stages)
    _check_stages(model, stages)
    message_bytes = message_bytes_of(arguments)
    current_bytes = current_of(arguments.uncertainty_current, message_bytes)
    target = arguments.output or TRANSFERS_FILE
    check_target(target, field="output", noun=_NOUN, example="transfers.csv")
    if model.revision is not None:
        check_store(Settings.from_environment())
    check_transfers(stages, message_bytes, current_bytes, arguments)
    recommended = recommended_of(model, message_bytes, stages)
    sizes = _sizes(message_bytes, stages, (recommended, current_bytes))
    plan = TransferPlan(
        message_bytes, sizes, stages, arguments.tolerance, arguments.time_limit, arguments.seed
    )
    found, is_interrupted = Transfers(plan), False
    with started(stages, message_bytes, arguments) as one:
        facts = facts_of(one, arguments)
        try:
            with shown(output, "sizes", target, lambda: found.to_csv(facts)) as on_block:
                found.run(one.ask, on_block)
        except KeyboardInterrupt:
            is_interrupted = True
    text = found.to_csv(facts)
    write_whole(target, text.encode(), field="output", noun=_NOUN)
    output.note(f"every transfer is in {printable(target)}")
    verification = verdict_of(text, model.pipeline, is_interrupted=is_interrupted)
    return Verified(verification, recommended, current_bytes, is_interrupted)


def _check_stages(model: Model, stages: Sequence[str]) -> None:
    if not stages:
        raise InconsistentInput(
            "which stages were measured is not known of this source: name each with --stage, in "
            "their order, as sluice measure --list has them",
            field="stage",
        )
    if len(stages) < len(model.pipeline):
        raise InconsistentInput(
            f"the model has {len(model.pipeline)} stages, and {len(stages)} are named",
            field="stage",
        )


def _sizes(
    message_bytes: int, stages: Sequence[str], further: Sequence[int | None]
) -> tuple[int, ...]:
    """Return the sizes of the sweep, and those that are asked for."""
    step = alignment_of(stages)
    swept = {-(-message_bytes // count) for count in _COUNTS}
    found = {-(-size // step) * step for size in swept} | {size for size in further if size}
    return tuple(sorted(size for size in found if size <= message_bytes))


def model_of(name: str, settings: Settings, output: Output) -> Model:
    """Return what a source names. Raises NotFound, InvalidInput, and what reading it does."""
    from app.questions.source import FitNow, Stored, resolve
    from app.schemas.base import dump_json, parse_json
    from app.schemas.source import options_of, source_of
    from contract.source import SOURCE_FIELDS, SourceIn

    source = read_source(name, settings)
    if isinstance(source, ProfileSource):
        with opened_store(settings) as store, store.reading() as unit:
            reference = ProfileReference.parse(source.reference)
            revision = unit.profiles.revision(reference.name, reference.revision)
            return Model(
                pipeline_of(revision.model),
                revision,
                stages_measured(unit, revision),
                smallest_measured(unit, revision),
            )
    if isinstance(source, TraceSource):
        stage = first_lines(source.content).get("stage")
        fitted = fit_source(source, settings, output.err).fit
        stages = (stage,) if stage else ()
        return Model(pipeline_of(fitted.to_model()), None, stages, smallest_of(fitted))
    given = {name: source.body.get(name) for name in SOURCE_FIELDS}
    asked = parse_json(SourceIn, dump_json(given))
    costs = source_of(asked)
    with store_for(costs, settings) as known:
        found = resolve(costs, Stored.of_store(known), FitNow(options_of(asked)))
    min_bytes = 1 if found.fit is None else smallest_of(found.fit)
    return Model(pipeline_of(found.model), None, (), min_bytes)


def recorded(model: Model, arguments: Arguments) -> Verified:
    """Return the verification of transfers in a file. Raises InvalidInput and UnreadableTrace."""
    try:
        text = Path(arguments.transfers).read_text(encoding="utf-8", errors="replace")
    except OSError as refusal:
        reason = refusal.strerror or "it cannot be read"
        raise InvalidInput(f"the transfers' file: {reason}", field="recorded") from None
    transfers = recorded_transfers(text)
    given = arguments.message_bytes
    if given is not None and given != transfers.message_bytes:
        raise InvalidInput(
            "expected the message of the transfers, "
            f"{format_bytes(transfers.message_bytes)}, and not {format_bytes(given)}",
            field="bytes",
        )
    stages = arguments.stages or model.stages
    verification = verification_by(model.pipeline, transfers, stages=stages or ())
    recommended = recommended_of(model, transfers.message_bytes, transfers.stages)
    current_bytes = current_of(arguments.uncertainty_current, transfers.message_bytes)
    return Verified(verification, recommended, current_bytes, False)
