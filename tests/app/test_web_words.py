"""Numbers and refusals as a reader wants them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.console.words import agreeing_digits
from app.web.views.answer_words import TimeUnit
from app.web.words import bound_text, grouped, sentence, share, size, time_us


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (184.361, "184.36 µs"),
        (1208.74, "1.2087 ms"),
        (2_500_000.0, "2.5 s"),
        (0.0307, "30.7 ns"),
        (0.0, "0 µs"),
        (-12.5, "-12.5 µs"),
    ],
)
def test_times_have_a_unit_that_suits_them(value: float, text: str) -> None:
    assert time_us(value) == text


@pytest.mark.parametrize(
    ("value", "latency_us", "text"),
    [
        (1840.99, 1841.003, "1.8409 ms"),  # 1.841 ms is not proven
        (19.95563, 19.95563, "19.956 µs"),  # the latency itself
        (4.1, 4.2, "4.1 µs"),
        (0.0, 1.0, "0 µs"),
        (123456.78, None, "123.45 ms"),
    ],
)
def test_bounds_say_no_more_than_is_proven(
    value: float, latency_us: float | None, text: str
) -> None:
    assert bound_text(value, latency_us) == text


@pytest.mark.parametrize(
    ("latency_us", "bound_us", "told"),
    [
        (143.64594, 143.64593, ("143.6459 µs", "143.6459 µs")),  # below a millionth
        (184.36081, 184.34775, ("184.3608 µs", "184.3477 µs")),
        (100.0, 97.5, ("100 µs", "97.5 µs")),
        (1.0, 1.0, ("1 µs", "1 µs")),
        (4.0, 0.0, ("4 µs", "0 µs")),
        (1e-310, 9e-311, ("1e-307 ns", "9e-308 ns")),
    ],
)
def test_a_latency_and_its_bound_are_as_far_apart_as_their_gap(
    latency_us: float, bound_us: float, told: tuple[str, str]
) -> None:
    digits = agreeing_digits(latency_us, bound_us)
    assert (time_us(latency_us, digits), bound_text(bound_us, latency_us, digits)) == told


@given(st.floats(1e-3, 1e10), st.floats(1e-9, 0.9))
def test_the_gap_can_be_read_off(bound_us: float, gap: float) -> None:
    """From what is shown, to a twentieth of itself; below a millionth nothing is told anyway."""
    latency_us = bound_us * (1.0 + gap)
    unit = TimeUnit.of(latency_us, bound_us)
    shown = float(unit.text(latency_us)) / float(unit.bound(bound_us, latency_us).split()[0]) - 1.0
    assert shown == pytest.approx(gap, rel=0.051) or max(shown, gap) < 1.01e-6


def test_shares_sizes_and_whole_numbers() -> None:
    assert share(0.0246) == "2.46 %"
    assert size(4096) == "4 KiB"
    assert size(820) == "820 B"
    assert grouped(1234567) == "1\u202f234\u202f567"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("there is no such path", "There is no such path."),
        ("message_bytes is missing", "message_bytes is missing."),
        ("Is it there?", "Is it there?"),
        ("", ""),
    ],
)
def test_refusals_are_sentences(text: str, said: str) -> None:
    assert sentence(text) == said
