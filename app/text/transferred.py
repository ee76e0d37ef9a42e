"""What measured transfers decide in the place of a model, in sentences; and how to make them."""

from __future__ import annotations

from analysis.transferred import MeasuredChoice, MeasuredSize, TransfersSay
from app.text.numbers import format_gain
from app.text.units import format_time
from domain.uncertain_answer import DecisionCode
from domain.units import format_bytes
from domain.verification import Contradiction

_FAILED = "Measure first: this model failed its verification, so that it sets no size"


def sweep_command(message_bytes: int, current_bytes: int | None = None) -> str:
    """Return the command that measures a user's own program at the sizes that decide."""
    current = "" if current_bytes is None else f" --current {_plain(current_bytes)}"
    return f"sluice sweep --bytes {_plain(message_bytes)}{current} -- PROGRAM … {{bytes}}"


def _plain(size_bytes: int) -> str:
    return format_bytes(size_bytes).replace(" ", "")


def choice_sentence(choice: MeasuredChoice) -> str:
    """Return what to do, and the measured times that say so."""
    if choice.own is not None:
        return choice.own.sentence()
    size, other, best = choice.size, choice.other, choice.best
    if choice.code is DecisionCode.SET_IT and size and other and choice.gain:
        first = "Do not cut" if size.fragment_bytes >= choice.message_bytes else _set(size)
        return (
            f"{first}: {format_gain(choice.gain)} than {_current(choice)}, as transferred: "
            f"{_took(size)}, {_took(other)}."
        )
    if choice.code is not DecisionCode.MEASURE_FIRST and size and best:
        keep = f"Keep {_current(choice)}" if choice.is_current_known else "Do not cut"
        if best.fragment_bytes == size.fragment_bytes:
            return f"{keep}: of the sizes that were transferred none took less than {_time(size)}."
        return f"{keep}: it took {_time(size)}, within 2 % of the best transferred ({_took(best)})."
    return " ".join(_undecided(choice))


def transfers_sentence(say: TransfersSay) -> str:
    """Return what the transfers that a profile keeps say to do."""
    if say.choice is not None:
        return choice_sentence(say.choice)
    found, command = say.against, sweep_command(say.messages[1])
    if isinstance(found, Contradiction):
        return f"{_contradicted(found)} {command} would tell."
    best = found.best_measured
    took = f"{format_bytes(best.fragment_bytes)} took {format_time(best.measured_us)}"
    return (
        f"{_FAILED}. Of {format_bytes(found.message_bytes)} {took}, the least transferred. "
        f"{command} would tell."
    )


def _contradicted(found: Contradiction) -> str:
    return f"Measure first: {found.found}, so that it sets no size."


def _undecided(choice: MeasuredChoice) -> list[str]:
    best, other, size = choice.best, choice.other, format_bytes(choice.message_bytes)
    said = [f"{_FAILED}."]
    if choice.contradiction is not None:
        said[0] = _contradicted(choice.contradiction)
    elif best is None:
        said[0] = (
            f"Measure first: this model failed its verification, and messages of {size} were not "
            "transferred."
        )
    elif other is None:
        said.append(f"Of the sizes that were transferred {_took(best)}, the least.")
    elif choice.gain is not None:
        said.append(
            f"As transferred {format_bytes(best.fragment_bytes)} is {format_gain(choice.gain)} "
            f"than {_current(choice)}."
        )
    current = choice.size_bytes if choice.is_current_known else None
    said.append(f"{sweep_command(choice.message_bytes, current)} would tell.")
    return said


def _set(size: MeasuredSize) -> str:
    return f"Set {format_bytes(size.fragment_bytes)}"


def _current(choice: MeasuredChoice) -> str:
    size = choice.other.fragment_bytes if choice.other else choice.size_bytes
    if size >= choice.message_bytes:
        return "sending it whole, your setting" if choice.is_current_known else "one piece"
    return f"your {format_bytes(size)}" if choice.is_current_known else format_bytes(size)


def _took(size: MeasuredSize) -> str:
    return f"{format_bytes(size.fragment_bytes)} took {_time(size)}"


def _time(size: MeasuredSize) -> str:
    return format_time(size.latency_us)
