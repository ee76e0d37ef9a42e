"""What contract/crossover.py declares, as the domain has it: two paths, found or fitted."""

from __future__ import annotations

from analysis.crossover import CrossoverQuestion, Path, TimedSize
from app.questions.question import known_errors
from app.questions.source import FitNow, Resolved, Source, Stored, of_path, resolve
from app.schemas.source import options_of, source_of
from contract.crossover import CrossoverIn
from contract.source import SourceIn
from domain.errors import InconsistentInput, InvalidInput
from domain.fit import TraceFit
from domain.measured_times import MeasuredTimes
from domain.solution import Notice
from domain.verification import said_of
from exports.targets.path_thresholds import PathThreshold, path_threshold_named


def crossover_question(
    asked: CrossoverIn, stored: Stored, costs: tuple[Source, Source] | None = None
) -> CrossoverQuestion:
    """Return both paths and the messages; `costs` stand in place of the sources of the request.

    Raises NotFound, InvalidInput, what a fit does, and MeasurementMissing for a path of which no
    whole message was timed.
    """
    first, second = costs or (None, None)
    a, said_of_a = _path("a", asked, asked.a, first, stored)
    b, said_of_b = _path("b", asked, asked.b, second, stored)
    return CrossoverQuestion(
        a=a,
        b=b,
        min_message_bytes=asked.min_message_bytes,
        max_message_bytes=asked.max_message_bytes,
        current_bytes=asked.current_bytes,
        said=(*said_of_a, *said_of_b),
    )


def setting_of(asked: CrossoverIn) -> tuple[PathThreshold, dict[str, str]] | None:
    """Return the setting that is to be written, and its options; None where none is asked for.

    Raises InconsistentInput for an option that it has not, and for one without a target.
    """
    given = {
        name: value for name in ("form", "parameter") if (value := getattr(asked, name)) is not None
    }
    if asked.target is None:
        for name in given:
            raise InconsistentInput(
                "says how the setting of a target is written, and no target is named", field=name
            )
        return None
    target = path_threshold_named(asked.target)
    for name, value in given.items():
        try:
            target.options_from({name: value})
        except InvalidInput as refusal:
            raise InconsistentInput(
                f"{refusal.detail} for the target {target.name}", field=name
            ) from None
    return target, target.options_from(given)


def _path(
    place: str, asked: CrossoverIn, source: SourceIn, costs: Source | None, stored: Stored
) -> tuple[Path, tuple[Notice, ...]]:
    """One path, and what transfers said of its profile."""
    with of_path(place):
        found = resolve(
            costs or source_of(source),
            stored,
            FitNow(options_of(source), path=place),
            model_of=TraceFit.to_whole_model,
        )
        span = asked.min_message_bytes, asked.max_message_bytes
        errors = known_errors(
            found.model, found.fit, None, message_bytes=span, verification=found.verification
        )
    path = Path(
        name=getattr(asked, f"{place}_name") or _named(found, place),
        model=found.model,
        errors=errors,
        timed=() if errors is None or errors.times is None else timed_sizes(errors.times, found),
        measured_bytes=None if found.fit is None else found.fit.measured_bytes,
        profile=found.profile,
    )
    said = said_of(found.verification)
    return path, () if said is None else (said,)


def timed_sizes(times: MeasuredTimes, found: Resolved) -> tuple[TimedSize, ...]:
    """Return the whole messages that a path's files timed, ascending: those of its one stage or its
    total, or whole messages that were timed beside its stages.
    """
    if len(times.stages) == 1 or found.model.stages is None:
        return tuple(
            TimedSize(size.message_bytes, size.median_us + times.delay_us, size.median_error_us)
            for size in times.stages[0].sizes
        )
    assert found.fit is not None, "times are of a fit"
    return tuple(
        TimedSize(message.message_bytes, message.measured_us)
        for message in found.fit.whole_messages
    )


def _named(found: Resolved, place: str) -> str:
    return f"path {place.upper()}" if found.profile is None else found.profile.name
