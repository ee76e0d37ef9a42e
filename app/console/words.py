"""Numbers and names as a reader meets them; every function is pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from itertools import groupby
from math import floor, inf, log10

from app.text.names import printable
from domain.solution import relative_excess

MOST_RUNS = 12
_LEAST_TOLD = 1e-6  # of a whole; less is told in words
_MOST_DIGITS = 12
_TOLD_US = (1e-9, 1e15)  # beyond, the least digits do
_READ_OFF = 0.05  # relative, of a gap
_ARITHMETIC = 1e-12  # relative: what two ways of adding up may differ by
_UP, _NEAREST = Context(prec=3, rounding=ROUND_CEILING), Context(prec=3)


def time_text(time_us: float, micro: str = "µs") -> str:
    """A time in µs with digits that suit its magnitude."""
    if time_us >= 1e9:
        return f"{time_us:.6g} {micro}"
    decimals = 1 if time_us >= 100_000 else 3
    return f"{time_us:.{decimals}f} {micro}"


def gap_text(gap: float) -> str:
    """A relative gap in per cent: what was proven, so never less than the gap itself.

    Three digits, rounded up in the last one, and without an exponent below a million; whole per
    cents from 100 on. Above 0 and below one in a million it is "< 0.0001 %"; 0 is for a gap that is
    0. Scripts that write gaps follow the same rule.
    """
    if gap <= 0.0:
        return "0 %"
    if gap < _LEAST_TOLD:
        return "< 0.0001 %"
    if gap >= 1e6:
        return f"{_UP.create_decimal(repr(gap)) * 100:.2e} %" if gap < inf else "∞ %"
    percent = Decimal(repr(gap)) * 100
    if gap >= 1.0:
        return f"{percent.to_integral_value(ROUND_CEILING)} %"
    return f"{_plain(_UP.create_decimal(percent))} %"


def agreeing_digits(
    latency_us: float,
    bound_us: float,
    *,
    least: int = 5,
    rounded: Callable[[float], int] = round,
) -> int:
    """Significant digits of a latency with which its bound is as far below it as the gap says.

    The latency is `rounded` to them, the bound to the same place, down. Gaps as read off are within
    a twentieth of the gap itself, or below what is told at all where it is. Scripts follow this.
    """
    gap = relative_excess(latency_us, bound_us, bound_us)
    if not (0.0 < gap < 1.0 and _TOLD_US[0] < latency_us < _TOLD_US[1]):
        return least
    magnitude = floor(log10(latency_us)) + 1
    for digits in range(least, _MOST_DIGITS):
        scale = 10.0 ** (digits - magnitude)
        shown_bound = floor(bound_us * scale)
        shown = rounded(latency_us * scale) / shown_bound - 1.0 if shown_bound else inf
        if abs(shown - gap) <= _READ_OFF * gap or max(shown, gap) < _LEAST_TOLD:
            return digits
    return _MOST_DIGITS


def excess_text(latency_us: float, reference_us: float) -> str:
    """By how much a latency is above another: "+12.3 %"; "" where there is nothing to divide by.

    Nearly nothing is "< +0.0001 %"; "equal" is for what differs by the arithmetic alone.
    """
    if reference_us <= 0.0:
        return ""
    excess = latency_us / reference_us - 1.0
    if abs(excess) < _ARITHMETIC:
        return "equal"
    if abs(excess) < _LEAST_TOLD:
        return "< +0.0001 %" if excess > 0.0 else "> -0.0001 %"
    return f"{excess * 100.0:+.3g} %" if excess < 1.0 else f"{excess * 100.0:+.0f} %"


def share_text(share: float) -> str:
    """A share in per cent, three digits, without an exponent: 0.0246 is 2.46 %."""
    if 0.0 < share < _LEAST_TOLD:
        return "< 0.0001 %"
    if not _LEAST_TOLD <= share < 1e6:
        return f"{100.0 * share:.3g} %"
    return f"{_plain(_NEAREST.create_decimal(repr(share)) * 100)} %"


def _plain(value: Decimal) -> str:
    """Without an exponent and without zeros at its end."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def sizes_text(sizes: Sequence[int]) -> str:
    """Fragment sizes in order, equal neighbours together: "3 x 4096, 17"; long lists shortened."""
    runs = [(size, len(list(group))) for size, group in groupby(sizes)]
    if len(runs) <= MOST_RUNS:
        return ", ".join(map(_run_text, runs))
    left_out = sum(count for _, count in runs[8:-3])
    words = [*map(_run_text, runs[:8]), f"… {left_out} more …", *map(_run_text, runs[-3:])]
    return ", ".join(words)


def _run_text(run: tuple[int, int]) -> str:
    size, count = run
    return f"{count} × {size}" if count > 1 else str(size)


def width_of(text: str) -> int:
    """Columns that a text takes: East Asian wide characters two, combining ones none."""
    return sum(_columns(character) for character in printable(text))


def fit_to(text: str, columns: int, *, cut_off: str = "…") -> str:
    """The text in exactly so many columns: padded, or cut with a mark."""
    text = printable(text)
    if width_of(text) > columns:
        while text and width_of(text) > columns - 1:
            text = text[:-1]
        text += cut_off
    return text + " " * (columns - width_of(text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
