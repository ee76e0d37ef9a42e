"""Quantities in and out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInput, UnitMismatch
from domain.units import (
    format_bytes,
    format_number,
    format_seconds,
    format_share,
    ns_per_byte_from_mb_per_s,
    ns_per_byte_from_us_per_kb,
    parse_bytes,
    parse_clock_mhz,
    parse_ns_per_byte,
    parse_number,
    parse_share,
    parse_time_us,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("64 KiB", 65536),
        ("64kib", 65536),
        ("64K", 65536),
        ("1.5 m", 3 * 2**19),
        ("2G", 2**31),
        ("1t", 2**40),
        ("1MB", 10**6),
        ("1.5 KiB", 1536),
        (" 2GiB ", 2**31),
    ],
)
def test_sizes_are_read_with_their_units(text: str, size: int) -> None:
    """KiB and K are 1024, KB is 1000."""
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    "text", ["", "KiB", "-1", "1e3", "4 XB", "1.2345 KB extra", "1.0001B", "1,000"]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    """The message lists what is accepted."""
    with pytest.raises(UnitMismatch):
        parse_bytes(text)


def test_sizes_are_printed_in_the_unit_that_divides_them() -> None:
    """No rounding in print."""
    assert [format_bytes(size) for size in (1, 1000, 1024, 65536, 3 << 20)] == [
        "1 B",
        "1000 B",
        "1 KiB",
        "64 KiB",
        "3 MiB",
    ]


def test_sizes_of_many_digits_are_decimal_where_they_are_whole() -> None:
    sizes = (10**6, 2 * 10**9, 6 * 10**9, 10**12, 10**9 + 1, 999_999 * 1024, 2**60 + 1024)
    written = ["1 MB", "2 GB", "6 GB", "1 TB", "1000000001 B", "999999 KiB"]
    assert [format_bytes(size) for size in sizes] == [*written, "1125899906842625 KiB"]
    assert all(parse_bytes(format_bytes(size)) == size for size in sizes)


def test_per_byte_costs_convert() -> None:
    """1 µs/KB with 1024 bytes is 0.9765625 ns per byte; 5 MB/s decimal is 200 ns per byte."""
    assert ns_per_byte_from_us_per_kb(1.0, bytes_per_kb=1024) == 0.9765625
    assert ns_per_byte_from_mb_per_s(5.0, bytes_per_mb=10**6) == pytest.approx(200.0)


@pytest.mark.parametrize(
    ("text", "us"), [("3 µs", 3.0), ("250ns", 0.25), ("1.5 ms", 1500.0), ("2 s", 2e6)]
)
def test_times_are_read_with_their_unit(text: str, us: float) -> None:
    assert parse_time_us(text) == us


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("0.08 ns/byte", 0.08),
        ("12.5 GB/s", 0.08),
        ("100 Gb/s", 0.08),
        ("1 GiB/s", 1e9 / 2**30),
        ("2 us/KB", 2.0),
        ("2 us/KiB", 1.953125),
    ],
)
def test_a_cost_a_byte_is_a_time_or_a_bandwidth(text: str, cost: float) -> None:
    assert parse_ns_per_byte(text) == pytest.approx(cost, rel=1e-15)


@pytest.mark.parametrize("text", ["", "12", "12 gb/s", "1,000 GB/s", "-1 GB/s", "0 GB/s", "x"])
def test_a_rate_that_may_mean_two_things_is_refused(text: str) -> None:
    """Without a unit too: a time a byte is not a bandwidth."""
    with pytest.raises(UnitMismatch):
        parse_ns_per_byte(text)


@pytest.mark.parametrize("value", [0.0, 1.0, 4096.0, 0.1, 1 / 3, 1e-9, 1e15, 1.5e300])
def test_what_is_shown_of_a_number_is_read_as_it(value: float) -> None:
    assert parse_number(format_number(value)) == value


@pytest.mark.parametrize("text", ["", "nan", "inf", "1_000", "1e999", "1" * 41, "１２"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="expected a finite number"):
        parse_number(text)


@pytest.mark.parametrize(
    ("text", "share"),
    [("5 %", 0.05), ("5%", 0.05), ("0.05", 0.05), ("1e-6", 1e-6), (".5", 0.5), ("0", 0.0)],
)
def test_a_sign_means_per_cent_and_a_number_alone_a_share(text: str, share: float) -> None:
    assert parse_share(text) == pytest.approx(share, rel=1e-15)


@pytest.mark.parametrize("text", ["1", "5", "1.0", "500", "1e3"])
def test_a_bare_number_from_one_on_is_refused_with_both_ways_to_write_it(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"write 5 % or 0\.05"):
        parse_share(text)


@pytest.mark.parametrize(
    "text", ["", "%", "low", "nan", "inf %", "-1", "1e999 %", "5 % %", "1" * 99]
)
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="expected a share"):
        parse_share(text)


@pytest.mark.parametrize("share", [0.0, 1e-6, 0.05, 1 / 3, 1.0, 5.0])
def test_what_is_shown_of_a_share_is_read_as_it(share: float) -> None:
    assert parse_share(format_share(share)) == share


@pytest.mark.parametrize(
    ("text", "mhz"), [("33MHz", 33.0), ("2.6 GHz", 2600.0), ("500 khz", 0.5), (" 1 Hz ", 1e-6)]
)
def test_clocks_are_read_with_their_units(text: str, mhz: float) -> None:
    """In MHz."""
    assert parse_clock_mhz(text) == pytest.approx(mhz)


@pytest.mark.parametrize("text", ["33", "MHz", "-1 MHz", "1.2.3 MHz", "1e3 MHz", "9" * 50 + "MHz"])
def test_clocks_that_are_none(text: str) -> None:
    """Without a unit, or no number."""
    with pytest.raises(InvalidInput):
        parse_clock_mhz(text)


@pytest.mark.parametrize(
    ("time_s", "words"),
    [
        (0.0, "0 s"),
        (2e-10, "less than 0.1 µs"),
        (1.3e-5, "13 µs"),
        (9.95e-5, "0.1 ms"),
        (6.93e-3, "6.9 ms"),
        (9.96e-3, "0.01 s"),
        (0.01, "0.01 s"),
        (9.04, "9 s"),
        (99.0, "99 s"),
        (221.3, "221 s"),
        (1e7, "10000000 s"),
    ],
)
def test_seconds_in_sentences(time_s: float, words: str) -> None:
    assert format_seconds(time_s) == words


@given(st.floats(0.0, 1e12))
def test_seconds_have_no_exponent(time_s: float) -> None:
    assert "e" not in format_seconds(time_s).replace("less", "")
