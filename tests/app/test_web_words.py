"""Numbers and refusals as a reader wants them."""

from __future__ import annotations

import pytest

from app.web.words import grouped, sentence, share, size, time_us


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
