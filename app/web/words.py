"""Numbers as a reader wants them: what templates call filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import ROUND_FLOOR, Context
from typing import Any

from app.console.words import share_text
from domain.units import format_bytes

DIGITS = 5  # of a time, where nothing asks for more


def time_us(value: float, digits: int = DIGITS) -> str:
    """A time with a unit that suits it, five digits: 184.36 µs, 1.2087 ms."""
    for factor, unit in ((1e6, "s"), (1e3, "ms"), (1.0, "µs")):
        if abs(value) >= factor:
            return f"{_digits(value / factor, digits)} {unit}"
    return f"{_digits(value * 1e3, digits)} ns" if value else "0 µs"


def bound_text(value: float, latency_us: float | None, digits: int = DIGITS) -> str:
    """A lower bound on this latency, as a time.

    It is rounded down unless it is reached: rounded up it would say more than is proven.
    """
    if value == latency_us:
        return time_us(value, digits)
    down = Context(prec=digits, rounding=ROUND_FLOOR)
    return time_us(float(down.create_decimal(repr(value))), digits)


def share(value: float) -> str:
    """A share as per cent, three digits: 0.0246 is 2.46 %."""
    return share_text(value)


def signed_share(value: float) -> str:
    """A change as per cent, with its sign: +2.46 %."""
    return f"{100.0 * value:+.3g} %"


def capitalised(text: str) -> str:
    """With a capital, the rest as it is."""
    return text[:1].upper() + text[1:]


def grouped(value: int) -> str:
    """A whole number with thin spaces between thousands."""
    return f"{value:,}".replace(",", "\u202f")


def size(value: int) -> str:
    """Bytes, with a unit where they are a whole number of one: 4 KiB, 820 B."""
    return format_bytes(value)


def sentence(text: str) -> str:
    """A refusal's words with a capital and a full stop; a name of a field stays as it is."""
    first = text.partition(" ")[0]
    begun = text[:1].upper() + text[1:] if first.isalpha() else text
    return begun if not begun or begun.endswith((".", "!", "?", ":")) else f"{begun}."


def _digits(value: float, digits: int) -> str:
    return f"{value:.{digits if abs(value) < 10.0**digits else digits + 1}g}"


FILTERS: Mapping[str, Callable[..., Any]] = {
    "time_us": time_us,
    "share": share,
    "signed_share": signed_share,
    "capitalised": capitalised,
    "grouped": grouped,
    "size": size,
    "sentence": sentence,
}
