"""Numbers and refusals as a reader wants them."""

from __future__ import annotations

import pytest

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
