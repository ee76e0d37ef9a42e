"""sluice verify: real transfers over the stages of a model, beside what it predicts of them.

No service measures: who asks a server to burn its processors has found a hole.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.console.commands import fit_source, opened_store, store_for
from app.console.files import ProfileSource, TraceSource, read_source
from app.console.measure import INTERRUPTED
from app.console.transfers import Model, Verified, current_of, recommended_of, transferred
from app.questions.profiles import (
    first_lines,
    recorded_transfers,
    smallest_measured,
    smallest_of,
    stages_measured,
    verification_by,
)
from app.settings import Settings
from app.text.notices import capitalised
from app.text.units import format_time, printable
from app.ui.parts import Column, Facts, Grid, Part
from app.ui.terminal import Output
from domain.errors import InvalidInput
from domain.pipeline import Pipeline
from domain.profile import ProfileReference, Revision
from domain.units import format_bytes
from domain.verification import Contradiction, ModelVerdict, VerifiedSize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract.verification import VerificationOut
    from domain.model import CostModel

STOPPED, DOES_NOT_HOLD = 6, 7  # exit codes, as in the table of app/console/arguments.py
EXIT_CODES = {ModelVerdict.NOT_DECIDED: STOPPED, ModelVerdict.DOES_NOT_HOLD: DOES_NOT_HOLD}


def verify(arguments: argparse.Namespace, output: Output) -> int:
    """Transfer, compare, keep the verdict with the profile, and print it."""
    settings = Settings.from_environment()
    model = _model(arguments.source, settings, output)
    if arguments.recorded is not None:
        found = _recorded(model, arguments)
    else:
        found = transferred(model, arguments, output)
    found = kept_with(model.revision, found, settings)
    if found.contradicted:
        output.note(found.contradicted)
    _show(found, output)
    if model.revision is not None:
        output.note(f"kept with {model.revision.profile}@{model.revision.number}")
    if found.is_interrupted:
        output.note("interrupted; the verdict is of what was transferred")
        return INTERRUPTED
    return EXIT_CODES.get(found.verification.verdict, 0)


def _model(name: str, settings: Settings, output: Output) -> Model:
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


def pipeline_of(model: CostModel) -> Pipeline:
    """Return a model's stages. Raises InvalidInput for an aggregate."""
    if isinstance(model, Pipeline):
        return model
    raise InvalidInput(
        "expected a pipeline: of an aggregate no stage is known that could be run", field="source"
    )


def _recorded(model: Model, arguments: argparse.Namespace) -> Verified:
    """Return the verification of transfers in a file. Raises InvalidInput and UnreadableTrace."""
    try:
        text = Path(arguments.recorded).read_text(encoding="utf-8", errors="replace")
    except OSError as refusal:
        reason = refusal.strerror or "it cannot be read"
        raise InvalidInput(f"the transfers' file: {reason}", field="recorded") from None
    recorded = recorded_transfers(text)
    if arguments.bytes is not None and arguments.bytes != recorded.message_bytes:
        raise InvalidInput(
            "expected the message of the transfers, "
            f"{format_bytes(recorded.message_bytes)}, and not {format_bytes(arguments.bytes)}",
            field="bytes",
        )
    stages = arguments.stages or model.stages
    verification = verification_by(model.pipeline, recorded, stages=stages or ())
    recommended = recommended_of(model, recorded.message_bytes, recorded.stages)
    current_bytes = current_of(arguments.current, recorded.message_bytes)
    return Verified(verification, recommended, current_bytes, False)


def kept_with(revision: Revision | None, found: Verified, settings: Settings) -> Verified:
    """Keep the verdict with the revision where there is one, and return it with its date."""
    if revision is None:
        return found
    from app.questions.source import Stored

    with opened_store(settings) as store, store.unit_of_work() as unit:
        kept = unit.profiles.verify(revision.profile, revision.number, found.verification)
        against = Stored.of_unit(unit).against(kept)
    said = against.notice().detail if isinstance(against, Contradiction) else ""
    verification = kept.verification or found.verification
    return replace(found, verification=verification, contradicted=said)


# --- what is printed ------------------------------------------------------------------------------


def _show(found: Verified, output: Output) -> None:
    from app.schemas.base import dump_json
    from app.schemas.verification import verification_out

    shown = verification_out(found.verification)
    if output.wants_json:
        output.document(dump_json(shown))
        return
    output.parts([*verification_parts(shown), "", Facts(tuple(_comparison(found)))])


def _comparison(found: Verified) -> Iterator[tuple[str, str]]:
    """Yield the sizes that matter, with what was measured of each."""
    best = found.verification.best_measured
    named = (("recommended", found.recommended_bytes), ("current", found.current_bytes))
    for name, size in named:
        one = found.verification.of_size(size)
        if one is not None:
            more = one.measured_us / best.measured_us - 1.0
            yield name, f"{with_times(one)}; {more:.1%} over the best measured"
    yield "best measured", with_times(best)


def with_times(size: VerifiedSize) -> str:
    """Return a size with what was measured and predicted of it."""
    predicted, measured = format_time(size.predicted_us), format_time(size.measured_us)
    return f"{format_bytes(size.fragment_bytes)}: measured {measured}, predicted {predicted}"


def verification_parts(found: VerificationOut) -> Iterator[Part]:
    """Yield a verdict, what it rests on, and the further reasons that the times speak for."""
    yield capitalised(printable(found.detail)) + "."
    yield ""
    names = ("fragments of", "predicted", "measured", "95 % interval", "ratio", "runs")
    rows = tuple(
        (
            f"{format_bytes(size.fragment_bytes)} ({size.fragments})",
            format_time(size.predicted_us),
            format_time(size.measured_us),
            " to ".join(map(format_time, size.measured_us_interval)),
            f"{size.ratio:.3f}",
            str(size.runs),
        )
        for size in found.sizes
    )
    yield Grid(tuple(map(Column, names)), rows)
    for reason in found.reasons[1:]:
        yield f"also: {printable(reason.detail)}"
