"""Numbers as readers meet them; tests/browser/test_numbers.py holds the scripts to the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text import numbers, units
from app.text.numbers import format_gap, format_proven_regret, format_regret
from app.text.units import TimeUnit, agreeing_digits, format_proven, format_time
from domain.solution import relative_excess
from domain.units import format_bytes

TEXTS = json.loads((Path(__file__).parents[2] / "data/texts.json").read_text(encoding="utf-8"))


def proven(latency_us: float, bound_us: float) -> tuple[str, str, str]:
    """Latency, bound and gap as they are told together."""
    gap = format_gap(relative_excess(latency_us, bound_us, bound_us))
    return (*format_proven(latency_us, bound_us), gap)


FORMATTERS: dict[str, tuple[int, Callable[..., Any]]] = {
    "time": (1, units.format_time),
    "givenTime": (1, units.format_given_time),
    "proven": (2, proven),
    "percent": (1, numbers.format_percent),
    "signedPercent": (1, numbers.format_signed_percent),
    "gap": (1, numbers.format_gap),
    "excess": (2, numbers.format_excess),
    "figure": (1, numbers.format_figure),
    "count": (1, numbers.format_count),
    "bytes": (1, format_bytes),
}


@pytest.mark.parametrize("name", FORMATTERS)
def test_the_examples(name: str) -> None:
    given_values, formatter = FORMATTERS[name]
    for example in TEXTS[name]:
        reported = formatter(*example[:given_values])
        expected = example[given_values:]
        assert (list(reported) if isinstance(reported, tuple) else [reported]) == expected, example


def test_every_formatter_of_the_scripts_has_examples() -> None:
    assert TEXTS.keys() == FORMATTERS.keys()


@given(st.floats(1e-6, 1e12), st.floats(0.0, 0.9))
def test_latency_bound_and_gap_agree_as_printed(latency_us: float, less: float) -> None:
    """The bound is never above what is proven, and the gap can be read off the two."""
    bound_us = latency_us * (1.0 - less)
    unit = TimeUnit.of(latency_us, bound_us)
    shown = [float(text.split()[0]) * unit.us for text in format_proven(latency_us, bound_us)]
    gap = relative_excess(latency_us, bound_us, bound_us)
    if bound_us < latency_us:
        assert shown[1] <= bound_us * (1.0 + 1e-12)
    if 1e-6 < gap < 1.0 and agreeing_digits(latency_us, bound_us) < units.MAX_DIGITS:
        assert shown[0] / shown[1] - 1.0 == pytest.approx(gap, rel=0.06, abs=2e-6)


@given(st.floats(0.0, 1e30))
def test_a_time_is_within_half_of_its_last_digit(time_us: float) -> None:
    value, name = format_time(time_us).split()
    factor = {"s": 1e6, "ms": 1e3, "µs": 1.0, "ns": 1e-3}[name]
    assert float(value) * factor == pytest.approx(time_us, rel=0.51e-3)


@given(st.floats(0.0, 1e12))
def test_a_gap_is_never_told_below_itself(gap: float) -> None:
    text = format_gap(gap).removesuffix(" %")
    shown = float(text.removeprefix("< ")) / 100.0
    assert shown >= gap * (1.0 - 1e-12)
    if not text.startswith("<"):
        assert shown <= gap * 1.0101 + 1e-15


def test_regrets() -> None:
    """What was found is rounded to nearest, what is proven up, and what is not bounded says so."""
    assert [format_regret(one) for one in (0.0, 0.01234, None, inf)] == [
        "0 %",
        "1.23 %",
        "unbounded",
        "unbounded",
    ]
    assert format_proven_regret(0.012301, 0.01) == "1.24 %"
    assert format_proven_regret(0.012301, 0.012301) == "1.23 %"
    assert format_proven_regret(None, 0.5) == "unbounded"
