"""How a text becomes the value of a declared word, by its unit; the same at every door."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from app.text.choices import expected_one_of
from app.text.delivery_rules import parse_rules
from app.text.units import (
    format_setting_text,
    parse_counts,
    parse_prices,
    parse_setting,
    parse_size_or_whole,
    parse_sizes,
    parse_whole,
    parse_workload,
    weights_of,
    workload_lines,
)
from contract.declare import Asked
from domain.errors import InvalidInput
from domain.solution import Strategy
from domain.units import (
    format_bytes,
    parse_bytes,
    parse_clock_mhz,
    parse_number,
    parse_share,
    parse_time_us,
)

_DAY_S = 86_400


def _places(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):
        raise InvalidInput("expected stages from 0, as 1,2")
    return [int(part) for part in parts]


def _stage(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else text


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _features(text: str) -> list[str] | None:
    """Return which features of a network are meant; None for each that would remove something."""
    return {"all": None, "none": []}.get(text, _names(text))


def _strategies(text: str) -> list[str]:
    names = _names(text)
    for name in names:
        if name not in set(Strategy):
            raise InvalidInput(expected_one_of(Strategy, name))
    return names


def _option(text: str) -> str:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput("expected NAME=VALUE")
    return f"{name}:{value}"


def _weights(text: str) -> list[str]:
    sizes = parse_workload(text)
    if not sizes:
        raise InvalidInput("expected lines of a size and a weight", field="workload")
    return list(weights_of(sizes))


def _lines(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


def _seconds(text: str) -> float:
    return parse_number(text.removesuffix("s").strip())


def _condition(text: str) -> str:
    name, equals, value = text.partition("=")
    if not (name.strip() and equals and value.strip()):
        raise InvalidInput(f"expected NAME=VALUE, as connections=4, got {text!r}")
    return f"{name.strip()}={value.strip()}"


def _yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise InvalidInput("expected yes or no")
    return text == "yes"


UNITS: Mapping[str, Callable[[str], Any]] = {
    "text": str,
    "lines": _lines,
    "seconds": _seconds,
    "setting": parse_setting,
    "size_or_whole": parse_size_or_whole,
    "workload": parse_workload,
    "weights": _weights,
    "option": _option,
    "bytes": parse_bytes,
    "sizes": lambda text: list(parse_sizes(text)),
    "listed_sizes": lambda text: [parse_bytes(part) for part in text.split(",")],
    "number": parse_number,
    "days": lambda text: _DAY_S * parse_number(text),
    "share": parse_share,
    "whole": parse_whole,
    "names": _names,
    "features": _features,
    "prices": parse_prices,
    "counts": parse_counts,
    "clock": parse_clock_mhz,
    "time": parse_time_us,
    "strategies": _strategies,
    "places": _places,
    "stage": _stage,
    "stored": lambda text: {"profile": text},
    "yes_or_no": _yes_or_no,
    "condition": _condition,
    "rules": parse_rules,
}


_SHOWN: Mapping[str, Callable[[Any], str]] = {
    "bytes": format_bytes,
    "share": lambda share: f"{100.0 * share:.12g} %",
    "seconds": lambda seconds: f"{seconds:g}",
    "lines": str.strip,
    "setting": format_setting_text,
    "workload": lambda workload: "\n".join(workload_lines(workload)),
}


def shown(word: Asked, asked: object) -> str:
    """Return what is typed for a word of this request, "" where it says nothing."""
    value: Any = asked
    for step in word.place:
        value = getattr(value, step, None)
    if word.mark is not None:
        return "1" if value == word.mark else ""
    return "" if value is None else _SHOWN.get(word.unit, str)(value)


def read(word: Asked, text: str) -> Any:
    """Return the value of what was typed. Raises InvalidInput."""
    if word.mark is not None:
        return word.mark
    if word.is_repeated:
        return [UNITS[word.unit](part) for part in parts_of(text)]
    return UNITS[word.unit](text)


def parts_of(text: str) -> Iterator[str]:
    """Yield what commas part, without what is empty."""
    return filter(None, (part.strip() for part in text.split(",")))
