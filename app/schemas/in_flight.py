"""What an answer of a machine has in flight, as it is sent and as it is read."""

from __future__ import annotations

from collections.abc import Iterator

from app.schemas.base import same_named
from app.schemas.stages import stored_stages
from app.text.in_flight import format_in_budget, limit_sentence
from app.text.numbers import format_count, format_counted, format_size
from app.text.units import format_time, printable
from contract.in_flight import (
    FullRateOut,
    InFlightOut,
    InUseOut,
    LimitOut,
    ProcessorLagOut,
    StageLanesOut,
    WindowPlacesOut,
)
from contract.optimize import MachineOptimizeOut, OptimizeOut
from contract.pipeline import WindowOut
from domain.in_flight import InFlight, InUse
from domain.machine import Machine


def machine_answer(sent: OptimizeOut, machine: Machine, found: InFlight) -> MachineOptimizeOut:
    """Return an answer with what it has in flight."""
    return MachineOptimizeOut(
        **vars(sent),
        in_flight=in_flight_out(found),
        period_us=found.period_us,
        limit=limit_out(machine, found),
    )


def in_flight_out(found: InFlight) -> InFlightOut:
    """Return what is in flight as it is sent."""
    return InFlightOut(
        found.size_bytes,
        tuple(StageLanesOut(one.stage, _in_use_out(one.lanes)) for one in found.stages),
        tuple(
            WindowPlacesOut(
                one.window,
                _in_use_out(one.places),
                None if one.bytes is None else _in_use_out(one.bytes),
            )
            for one in found.windows
        ),
        tuple(ProcessorLagOut(one.name, one.lag, one.max_lag) for one in found.processors),
    )


def limit_out(machine: Machine, found: InFlight) -> LimitOut:
    """Return what sets the pace as it is sent."""
    limit = found.limit
    return LimitOut(
        limit.kind,
        limit.first,
        limit.last,
        limit.window,
        limit.processor,
        limit.round_trip_us,
        limit.places,
        None if limit.full_rate is None else same_named(FullRateOut, limit.full_rate),
        limit_sentence(machine, found),
    )


def _in_use_out(found: InUse) -> InUseOut:
    return InUseOut(found.given, found.used, found.enough)


# --- as it is read --------------------------------------------------------------------------------


def machine_of(answer: MachineOptimizeOut) -> Machine:
    """Return the machine that an answer is of. Raises InvalidStage."""
    assert answer.pipeline is not None, "a machine is sent as its pipeline"
    model = stored_stages(answer.pipeline)
    assert isinstance(model, Machine), "a pipeline without a word has answers of its own"
    return model


def has_counts(answer: MachineOptimizeOut) -> bool:
    """Return whether an answer has lanes or places, and a size to repeat with fewer of them."""
    found = answer.in_flight
    return answer.best_fixed is not None and bool(found.stages or found.windows)


def in_flight_facts(answer: MachineOptimizeOut) -> Iterator[tuple[str, str]]:
    """Yield labels and values of what an answer has in flight."""
    found, pipeline = answer.in_flight, answer.pipeline
    assert pipeline is not None, "a machine is sent as its pipeline"
    names = [printable(stage.name) for stage in pipeline.stages]
    yield "pace", printable(answer.limit.sentence)
    yield "period", f"{format_time(answer.period_us)} between two fragments"
    for stage in found.stages:
        yield "lanes", f"{names[stage.stage]}: {_counted(stage.lanes)}"
    size = format_size(found.size_bytes, with_bytes=False)
    for one in found.windows:
        words = _counted(one.places, f" places of {size}")
        if one.bytes is not None:
            words = f"{words}; {_in_bytes(one.bytes)}"
        yield "window", f"{ends_of(pipeline.windows[one.window])}: {words}"
    for lag in found.processors:
        first, last = (
            name
            for name, stage in zip(names, pipeline.stages, strict=True)
            if stage.processor == lag.processor
        )
        ahead = f"{first} is {format_counted(lag.lag, 'fragment')} ahead of {last}"
        most = lag.max_lag
        beyond = "" if most is None else f"; more than {format_count(most)} would deadlock"
        yield "processor", f"{printable(lag.processor)}: {ahead}{beyond}"


def ends_of(window: WindowOut) -> str:
    """Return the stages between which a window is."""
    ends = (printable(str(window[end])) for end in ("from", "to"))
    return " to ".join(dict.fromkeys(ends))


def _counted(found: InUseOut, what: str = "") -> str:
    """How many of what were given, are in use at once, and are enough."""
    words = [f"{format_count(found.given)}{what} given"]
    if found.used is not None:
        words.append(f"{format_count(found.used)} in use at once")
    if found.enough is not None:
        is_all = found.enough == found.given
        enough = f"{format_count(found.enough)} {'is' if found.enough == 1 else 'are'} enough"
        words.append(enough if is_all else f"{enough} with {_best_size(found.enough)}")
    return ", ".join(words)


def _best_size(count: int) -> str:
    return "its best size" if count == 1 else "their best size"


def _in_bytes(found: InUseOut) -> str:
    """The same of bytes, in the units of what was given."""
    words = [f"{format_in_budget(found.given, found.given)} given"]
    if found.used is not None:
        words.append(f"{format_in_budget(found.used, found.given)} in use at once")
    if found.enough is not None:
        words.append(f"{format_in_budget(found.enough, found.given)} are enough")
    return ", ".join(words)
