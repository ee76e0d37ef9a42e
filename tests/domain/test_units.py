"""Quantities in and out."""

import pytest

from domain.errors import UnitMismatch
from domain.units import (
    format_bytes,
    ns_per_byte_from_mb_per_s,
    ns_per_byte_from_us_per_kb,
    parse_bytes,
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


def test_per_byte_costs_convert() -> None:
    """1 µs/KB with 1024 bytes is 0.9765625 ns per byte; 5 MB/s decimal is 200 ns per byte."""
    assert ns_per_byte_from_us_per_kb(1.0, bytes_per_kb=1024) == 0.9765625
    assert ns_per_byte_from_mb_per_s(5.0, bytes_per_mb=10**6) == pytest.approx(200.0)
