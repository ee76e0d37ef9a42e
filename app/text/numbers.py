"""Numbers as a reader meets them: figures, shares, gaps, regrets, counts.

Figures have four significant digits, shares three. What was found is rounded to nearest; what is
proven, a gap or a regret over a bound, is rounded up: it is never less than the gap left open.
Scripts follow the same rules (app/ui/assets/numbers.js).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_HALF_UP, Context, Decimal
from itertools import groupby
from math import floor, isfinite, log10

from domain.units import format_bytes

DIGITS = 4
COST_DIGITS = 6
MAX_RUNS = 12
MIN_SHARE = 1e-6  # of a whole; less is written in words
_BINARY = ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"))
_HUGE = 1e6  # times the whole; more has an exponent
_ENDLESS = 1e300  # more stands for what nothing can be divided by
_ARITHMETIC = 1e-12  # what two ways of adding up may differ by
_UP, _NEAREST = Context(prec=3, rounding=ROUND_CEILING), Context(prec=3, rounding=ROUND_HALF_UP)


def format_figure(value: float, digits: int = DIGITS) -> str:
    """Return a number with so many significant digits, plain where that is readable."""
    if value == 0.0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    last = Decimal(1).scaleb(min(0, floor(log10(abs(value))) - digits + 1))
    return f"{Decimal(value).quantize(last, ROUND_HALF_UP):f}"


def format_cost(value: float) -> str:
    """Return a stage's cost, in the unit beside it: six digits, as somebody gave it."""
    return without_exponent(f"{value:.{COST_DIGITS}g}")


def without_exponent(text: str) -> str:
    """Return a number as text without an exponent above 0: 1e+06 is 1000000."""
    return f"{float(text):.0f}" if "e+" in text and float(text) < 1e15 else text


def format_count(value: int) -> str:
    """Return a whole number with thin spaces between thousands."""
    return f"{value:,}".replace(",", "\u202f")


def format_counted(value: int, noun: str) -> str:
    """Return a count of things by their noun: 1 stage, 2 stages."""
    return f"{format_count(value)} {noun}{'' if value == 1 else 's'}"


def format_instructions(value: float) -> str:
    """Return a number of instructions or cycles, which may be a mean and so no whole one."""
    return format_count(int(value)) if value == int(value) else format_figure(value, 6)


def format_percent(share: float) -> str:
    """Return a share in per cent, three digits, from 100 % on whole ones: 0.0246 is 2.46 %."""
    size = abs(share)
    if 0.0 < size < MIN_SHARE:
        return "< 0.0001 %" if share > 0.0 else "> −0.0001 %"
    sign = "−" if share < 0.0 else ""
    return f"{sign}{_percent(size, _NEAREST)} %"


def format_signed_percent(share: float) -> str:
    """Return a change in per cent with its sign: +2.46 %; "0 %" for none."""
    text = format_percent(share)
    if share <= 0.0:
        return text
    return text.replace("< ", "< +") if text.startswith("<") else f"+{text}"


def format_gap(gap: float) -> str:
    """Return a relative gap in per cent: what was proven, so never less than the gap itself.

    Three digits, rounded up in the last one, from 100 % on whole ones. Above 0 and below one in a
    million it is "< 0.0001 %"; 0 is for a gap that is 0.
    """
    if gap <= 0.0:
        return "0 %"
    return "< 0.0001 %" if gap < MIN_SHARE else f"{_percent(gap, _UP)} %"


def format_excess(latency_us: float, reference_us: float) -> str:
    """Return by how much a latency is above another: "+12.3 %"; "" over nothing.

    "equal" is for what differs by the arithmetic alone.
    """
    if reference_us <= 0.0:
        return ""
    excess = latency_us / reference_us - 1.0
    return "equal" if abs(excess) < _ARITHMETIC else format_signed_percent(excess)


def format_excess_span(at_least: float, at_most: float | None) -> str:
    """Return by how much a latency is above another, from at least to at most; one figure where
    they agree, "at least" where the other may take no time.
    """
    minimum = format_signed_percent(at_least)
    if at_most is None:
        return f"at least {minimum}"
    maximum = format_signed_percent(at_most)
    return minimum if minimum == maximum else f"{minimum} to {maximum}"


def format_regret(regret: float | None) -> str:
    """Return what a setting was found to cost over the best; None is without a bound."""
    return "unbounded" if regret is None or not isfinite(regret) else format_percent(regret)


def format_proven_regret(at_most: float | None, at_least: float | None) -> str:
    """Return what a regret is at most, rounded up, unless it is known to be `at_least`."""
    if at_most is None or at_least is None or not isfinite(at_most):
        return format_regret(at_most)
    if at_most - at_least <= _ARITHMETIC * (1.0 + at_most):
        return format_regret(at_most)
    return format_gap(at_most)


def format_regret_span(
    at_least: float | None, at_most: float | None, *, worth_saying: float = 0.0
) -> str:
    """Return a regret between what was found and what is proven: one figure where they agree, or
    are not further apart than what is worth saying.
    """
    if at_least is not None and at_most is not None and at_most - at_least <= worth_saying:
        return format_regret(at_least)
    minimum, maximum = format_regret(at_least), format_proven_regret(at_most, at_least)
    return minimum if minimum == maximum else f"{minimum} to {maximum}"


def format_estimate(value: float, interval: tuple[float, float], unit: str) -> str:
    """Return a value and its interval, with the decimals that the interval's width needs."""
    low, high = interval
    width = high - low
    decimals = 1 - floor(log10(width)) if width > 0.0 else 99
    if max(abs(value), high) >= 1e7 or decimals > 6:
        return f"{format_figure(value)} {unit} ({format_figure(low)} … {format_figure(high)})"
    decimals = max(0, decimals)
    shown = f"{value:.{decimals}f}" if value else "0"
    return f"{shown} {unit} ({low:.{decimals}f} … {high:.{decimals}f})"


def format_sizes(sizes: Sequence[int]) -> str:
    """Return sizes in order, equal neighbours together: "3 × 4096, 17"; long lists shortened."""
    runs = [(size, len(list(group))) for size, group in groupby(sizes)]
    if len(runs) <= MAX_RUNS:
        return ", ".join(map(_run, runs))
    left_out = sum(count for _, count in runs[8:-3])
    words = [*map(_run, runs[:8]), f"… {left_out} more …", *map(_run, runs[-3:])]
    return ", ".join(words)


def format_step_size(size_bytes: int | None) -> str:
    """Return the size of a step of a setting; None sends messages whole."""
    return "whole" if size_bytes is None else format_bytes(size_bytes)


_MOST_DIGITS = 7  # of a size in whole units


def format_size(size_bytes: int, *, with_bytes: bool = True) -> str:
    """Return a size in whole units where it is some, else in four digits with its bytes: 2 MiB,
    1.778 MiB (1 864 136 B). Sizes below 10 KiB are told in bytes; `with_bytes`: others too, and
    thousands stand apart, by a space that terminals do not have.
    """
    text = format_bytes(size_bytes)
    is_whole = not text.endswith(" B") and len(text.partition(" ")[0]) <= _MOST_DIGITS
    if is_whole or size_bytes < 10_240:
        is_grouped = with_bytes and text.endswith(" B")
        return f"{format_count(size_bytes)} B" if is_grouped else text
    power, unit = next(one for one in _BINARY if size_bytes >= 2 ** one[0])
    exact = f" ({format_count(size_bytes)} B)" if with_bytes else ""
    return f"{size_bytes / 2**power:.4g} {unit}{exact}"


def format_size_span(minimum: int, maximum: int) -> str:
    """Return message sizes, inclusive: 1 B … 16 MiB, or the one that there is."""
    if minimum == maximum:
        return format_bytes(minimum)
    return f"{format_bytes(minimum)} … {format_bytes(maximum)}"


def without_zeros(text: str) -> str:
    """Return a decimal number without zeros at its end."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _percent(share: float, context: Context) -> str:
    """Return a share of 0 or more in per cent, without its sign."""
    if share > _ENDLESS:
        return "∞"
    exact = Decimal(repr(share))
    if share >= _HUGE:
        mantissa, _, exponent = f"{context.create_decimal(exact) * 100:.2e}".partition("e")
        return f"{mantissa}e{int(exponent):+d}"
    if share >= 1.0:
        return f"{(exact * 100).to_integral_value(context.rounding)}"
    return without_zeros(f"{context.create_decimal(exact) * 100:f}")


def _run(run: tuple[int, int]) -> str:
    size, count = run
    return f"{count} × {size}" if count > 1 else str(size)


def format_probability(share: float) -> str:
    """Return the share of draws in which something holds, of two digits."""
    if share >= 1.0:
        return "in all draws"
    if share <= 0.0:
        return "in no draw"
    return f"in about {min(99, max(1, round(share * 100)))} % of the draws"


def two_digits(share: float) -> str:
    """Return a share in per cent, of two digits."""
    value = abs(share) * 100.0
    sign = "−" if share < 0.0 and value >= 0.05 else ""
    return f"{sign}{value:.0f}" if value >= 9.95 else f"{sign}{value:.1f}".removesuffix(".0")


def span_in_percent(low: float, high: float) -> str:
    """Return shares in per cent, of two digits: "21 to 27", one of them where both are the same."""
    shown = (two_digits(low), two_digits(high))
    return shown[0] if shown[0] == shown[1] else " to ".join(shown)


def format_gain(gain: tuple[float | None, float | None]) -> str:
    """Return the 5 % and the 95 % quantile of what a cut gains, in words."""
    low, high = (0.0 if one is None else one for one in gain)
    slow, fast = two_digits(-low), two_digits(high)
    if fast == slow == "0":
        return "as fast"
    if low >= 0.0:
        return f"{span_in_percent(low, high)} % faster"
    if high <= 0.0 or fast == "0":
        return f"up to {slow} % slower"
    return f"up to {fast} % faster" if slow == "0" else f"{fast} % faster or {slow} % slower"
