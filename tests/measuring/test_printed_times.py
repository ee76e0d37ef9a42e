"""The time of a run in what a program prints: numbers, units, rates, and what is none."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.errors import InvalidInput, NotMeasurable, UnitMismatch
from measuring.printed_times import TimeReader

SIZE = 1 << 20


def read(text: str, source: str = "last", errors: str = "", **options: object) -> float:
    reader = TimeReader.of(source, **options)  # type: ignore[arg-type]
    return reader.time_ns(text.encode(), errors.encode(), wall_ns=5.0, size=SIZE)


def test_wall_time_reads_nothing() -> None:
    assert read("12 s", "wall") == 5.0


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("12.5 ms", 12.5e6),
        ("warming up 3\n4.5 s\nbye", 4.5e9),
        ("took 0.25 s.", 0.25e9),
        ("1e-3 s", 1e6),
        (".5 us", 500.0),
        ("7 µs\n", 7000.0),
        ("took 3 seconds", 3e9),
    ],
)
def test_the_last_number_has_its_unit_beside_it(text: str, ns: float) -> None:
    assert read(text) == pytest.approx(ns)


def test_a_number_without_a_unit_has_that_of_the_option() -> None:
    assert read("12.5", unit="ms") == 12.5e6
    assert read("12.5 s", unit="ms") == 12.5e9
    with pytest.raises(UnitMismatch, match=r"a unit beside the 12\.5 that it printed") as refused:
        read("12.5")
    assert refused.value.field == "unit"


@pytest.mark.parametrize(
    "text",
    [
        *("", "fast", "-1 s", "nan", "1e300 s", "1 h", "3 files", "12 %", "1,234.5 ms", "12,5 ms"),
        *("1.2.3 s", "real 0m1.5s", "9" * 500, "\0", "\ufffd"),
    ],
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(NotMeasurable):
        read(text, unit="s")


def test_a_pattern_finds_the_last_match_in_either_stream() -> None:
    assert read("", r"copied, ([\d.]+) s", "64 MiB copied, 0.5 s", unit="s") == 0.5e9
    assert read("a=1 ms\na=2 ms\nb=3 ms", r"^a=(.*)$") == 2e6
    with pytest.raises(NotMeasurable, match="matches"):
        read("b=3", "a=(.*)", unit="s")
    with pytest.raises(NotMeasurable, match="a number in the group"):
        read("a=x", "a=(.*)", unit="s")


@pytest.mark.parametrize(
    ("text", "options", "bytes_per_s"),
    [
        ("2 GB/s", {}, 2e9),
        ("3.5 MiB/s", {}, 3.5 * 2**20),
        ("100 Mbit/s", {}, 100e6 / 8),
        ("512 kB/s", {}, 512e3),
        ("512 KiB/s", {}, 512 * 1024),
        ("2", {"unit": "GB/s"}, 2e9),
    ],
)
def test_a_rate_is_of_the_message(text: str, options: dict[str, str], bytes_per_s: float) -> None:
    assert read(text, is_rate=True, **options) == pytest.approx(SIZE / bytes_per_s * 1e9)


@pytest.mark.parametrize("text", ["0 GB/s", "-1 GB/s", "5 ms", "5 ns/byte", "x"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(NotMeasurable):
        read(text, is_rate=True)


@pytest.mark.parametrize(
    ("source", "options", "field"),
    [
        ("(", {}, "time"),
        ("no group", {}, "time"),
        ("(a)(b)", {}, "time"),
        ("(" + "a" * 300 + ")", {}, "time"),
        ("wall", {"unit": "s"}, "unit"),
        ("wall", {"is_rate": True}, "rate"),
        ("last", {"unit": "hours"}, "unit"),
        ("last", {"unit": "GB/s"}, "unit"),
        ("last", {"unit": "s", "is_rate": True}, "unit"),
    ],
)
def test_options_that_are_none(source: str, options: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read("1", source, **options)
    assert refused.value.field == field


@given(st.floats(1e-3, 1e6), st.sampled_from(["ns", "us", "ms", "s"]), st.text(max_size=20))
def test_what_is_printed_is_read_back(value: float, unit: str, before: str) -> None:
    """Whatever stands in the lines before it."""
    factor = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert read(f"{before}\n{value!r} {unit}\n") == pytest.approx(value * factor)


@given(st.text(max_size=200))
def test_any_text_is_a_time_or_is_refused(text: str) -> None:
    with suppress(NotMeasurable, UnitMismatch):
        assert 0.0 <= read(text.encode(errors="replace").decode(), unit="us") <= 1e15


SLOW = "((?:a+)+)b"


def test_a_pattern_has_so_long_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking in a text of 40 letters would take days."""
    reader = TimeReader.of(SLOW)
    with pytest.raises(NotMeasurable, match="no time was left"):
        reader.time_ns(b"a" * 40, b"", wall_ns=1.0, size=SIZE, limit_s=0.3)
    with pytest.raises(NotMeasurable, match="no time was left"):
        reader.time_ns(b"", b"", wall_ns=1.0, size=SIZE, limit_s=-1.0)
    monkeypatch.setattr("measuring.printed_times.MATCH_S", 0.3)
    with pytest.raises(InvalidInput, match="repetitions in repetitions") as refused:
        reader.time_ns(b"a" * 40, b"", wall_ns=1.0, size=SIZE, limit_s=9.0)
    assert refused.value.field == "time"


@given(st.text(max_size=30), st.text(max_size=30))
@settings(max_examples=15)
def test_a_pattern_finds_what_it_finds_here(printed: str, errors: str) -> None:
    """The last match of standard output, else of standard error, whatever was printed."""
    found = re.findall(r"(\d+)", printed, re.ASCII) or re.findall(r"(\d+)", errors, re.ASCII)
    reader = TimeReader.of(r"(?a:(\d+))", unit="ns")
    texts = (one.encode(errors="replace") for one in (printed, errors))
    if not found:
        with pytest.raises(NotMeasurable):
            reader.time_ns(*texts, wall_ns=1.0, size=SIZE)
    else:
        assert reader.time_ns(*texts, wall_ns=1.0, size=SIZE) == pytest.approx(float(found[-1]))


def test_a_group_that_takes_no_part_is_no_number() -> None:
    with pytest.raises(NotMeasurable, match="expected a number in the group"):
        read("done", r"done( \d+)?")
