"""Tables whose columns the user names."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInput, UnreadableTrace
from domain.measurement import TraceKind
from domain.table_columns import ColumnRole, parse_columns
from fitting import read
from tests.fitting.readers.test_tools import messages, near, pairs, understood


def latencies(content: str, columns: str) -> Sequence[tuple[int, float]]:
    return pairs(messages(read(content.encode(), columns=columns)).latency)


class TestWord:
    """`size=column,time=column:unit`."""

    def test_columns_by_name_and_by_place(self) -> None:
        size, rate = parse_columns("rate=#12:GB/s,size=Block: of disk:KiB")
        assert (size.role, size.name, size.unit, size.place) == (
            ColumnRole.SIZE,
            "Block: of disk",
            "KiB",
            None,
        )
        assert (rate.name, rate.unit, rate.place) == ("#12", "GB/s", 11)

    @pytest.mark.parametrize(
        ("text", "rule"),
        [
            ("", "role=column"),
            ("size", "role=column"),
            ("size=a", "size and a time or a rate"),
            ("time=a:us", "size and a time"),
            ("size=a,size=b,time=c", "one column for size"),
            ("size=a,time=b:parsecs", "time: expected a unit of times"),
            ("size=a:us,time=b", "size: expected a unit of sizes"),
            ("size=a,rate=b:ns/byte", "rate: expected a unit of rates"),
            ("size=a,rate=b:gb/s", "rate: expected a unit of rates"),
            ("size=a,rate=b:GB/s,interarrival=c:us", "not both"),
            ("size=#0,time=#1:us", "from #1 to #999"),
            ("size=#1000,time=#1:us", "from #1 to #999"),
            ("size=,time=b", "name of a column"),
            ("size=a:,time=b", "behind the colon"),
            ("size=a\0,time=b", "name of a column"),
            ("x" * 501, "at most 500"),
        ],
    )
    def test_rules(self, text: str, rule: str) -> None:
        with pytest.raises(InvalidInput, match=rule) as refusal:
            parse_columns(text)
        assert refusal.value.field == "columns"

    @given(text=st.text(max_size=40) | st.from_regex(r"size=.{0,9},(time|rate)=.{0,9}"))
    def test_any_text_is_columns_or_refused(self, text: str) -> None:
        try:
            size, *others = parse_columns(text)
        except InvalidInput:
            return
        assert size.role is ColumnRole.SIZE
        assert others


class TestTables:
    """Separators, units, header lines, and what stands around the rows."""

    @pytest.mark.parametrize("separator", [",", ";", "\t", " | ", "  "])
    def test_separators(self, separator: str) -> None:
        rows = [["i", "bytes", "t_ms"], ["1", "64", "0.5"], ["2", "4096", "1.5"]]
        content = "".join(separator.join(row) + "\n" for row in rows)
        assert latencies(content, "size=bytes,time=t_ms") == near([(64, 500.0), (4096, 1500.0)])

    @pytest.mark.parametrize(
        ("unit", "scale"), [("ns", 1e-3), ("us", 1.0), ("µs", 1.0), ("ms", 1e3), ("s", 1e6)]
    )
    def test_units_of_the_word_of_the_name_and_of_the_cell(self, unit: str, scale: float) -> None:
        expected = near([(64, 3.0 * scale)])
        assert latencies("a,b\n64,3\n", f"size=a,time=b:{unit}") == expected
        assert latencies(f"a,b ({unit})\n64,3\n", f"size=a,time=b ({unit})") == expected
        assert latencies(f"a,b\n64,3 {unit}\n", "size=a,time=b") == expected

    @pytest.mark.parametrize(
        ("unit", "per_second"),
        [("GB/s", 1e9), ("GiB/s", 2.0**30), ("MB/s", 1e6), ("MiB/s", 2.0**20), ("Gb/s", 1.25e8)],
    )
    def test_rates_are_times_between_messages(self, unit: str, per_second: float) -> None:
        reading = read(b"a,b\n4096,2\n", columns=f"size=a,rate=b:{unit}")
        assert pairs(messages(reading).interarrival) == near(
            [(4096, 4096 / (2 * per_second) * 1e6)]
        )
        assert understood(reading)["interarrival_is"] == "size / rate"

    def test_sizes_with_units(self) -> None:
        content = "block [KiB],t_us\n4,1\n0.5,2\n64K,3\n1MB,4\n0.3,5\n"
        expected = near([(4096, 1.0), (65536, 3.0), (2**20, 4.0)])
        assert latencies(content, "size=block [KiB],time=t_us") == [
            expected[0],
            *near([(512, 2.0)]),
            *expected[1:],
        ]

    def test_places_need_no_header_line(self) -> None:
        content = "# made by hand\nhello world\n64 x 3\n4096 y 5\nmean - 4\n"
        reading = read(content.encode(), columns="size=#1,time=#3:us")
        assert pairs(messages(reading).latency) == [(64, 3.0), (4096, 5.0)]
        assert understood(reading)["rows_left_out"] == "1: 1 cut off or not a number"

    def test_a_header_line_in_a_comment_after_others(self) -> None:
        content = "tool 1.0, run of today\n# Bytes, Lat_us\n64, 3\n# Bytes, Lat_us\n64, 3.1\n"
        assert latencies(content, "size=bytes,time=lat_us") == [(64, 3.0), (64, 3.1)]

    def test_quoted_fields(self) -> None:
        content = 'size,"what, how",t_us\n64,"a, b",3\n'
        assert latencies(content, "size=size,time=t_us") == [(64, 3.0)]

    def test_rows_that_are_none_are_counted(self) -> None:
        content = "size,rate,t_us\n0,1,2\n64,0,2\n64,1\n64,x,\n128,2,-1\n64,2,3"
        reading = read(content.encode(), columns="size=size,rate=rate:MB/s,time=t_us")
        assert pairs(messages(reading).interarrival) == near([(128, 64.0)])
        assert pairs(messages(reading).latency) == [(64, 2.0)]
        left_out = understood(reading)["rows_left_out"]
        for why in (
            "of 0 bytes",
            "of a rate that is not above 0",
            "another number",
            "empty",
            "cut off",
            "1 with a time below 0",
        ):
            assert why in left_out

    def test_kind_is_checked(self) -> None:
        with pytest.raises(UnreadableTrace, match="it is end_to_end"):
            read(b"a,b_us\n1,2\n", kind=TraceKind.DIRECT, columns="size=a,time=b_us")

    @pytest.mark.parametrize(
        ("content", "columns", "rule"),
        [
            ("a,b\n1,2\n", "size=a,time=b", "time: expected a unit of times.*time=b:us"),
            ("a,gbps\n1,2\n", "size=a,rate=gbps", "written of bits and of bytes"),
            ("a,b\n1,2\n", "size=a,time=c:us", "no line of the table has the columns a, c"),
            ("a,a,b\n1,2,3\n", "size=a,time=b:us", "2 columns are called a: name one by its place"),
            ("a b\n", "size=#1,time=#2:us", "no line of the table has numbers at the places"),
        ],
    )
    def test_what_the_word_gets_wrong_is_said(self, content: str, columns: str, rule: str) -> None:
        with pytest.raises(InvalidInput, match=rule) as refusal:
            read(content.encode(), columns=columns)
        assert refusal.value.field == "columns"

    def test_a_table_without_rows_is_refused(self) -> None:
        with pytest.raises(UnreadableTrace, match="left out are 1: 1 of 0 bytes"):
            read(b"a,b\n0,2\n", columns="size=a,time=b:us")


@given(
    rows=st.lists(st.tuples(st.integers(1, 2**40), st.floats(0.0, 1e9)), min_size=1, max_size=20),
    separator=st.sampled_from([",", ";", "\t", " ", "|"]),
    swap=st.booleans(),
)
def test_what_is_written_is_read(
    rows: list[tuple[int, float]], separator: str, *, swap: bool
) -> None:
    """Whatever separates the columns, and in whichever order they are."""
    order = (1, 0) if swap else (0, 1)
    lines = [("n", "t"), *((str(size), repr(time_us)) for size, time_us in rows)]
    content = "".join(separator.join(line[at] for at in order) + "\n" for line in lines)
    assert latencies(content, "size=n,time=t:us") == rows


@given(content=st.binary(max_size=200) | st.text(',;\t| \n"#abnt019.e-_us', max_size=200))
def test_any_content_is_read_or_refused(content: bytes | str) -> None:
    raw = content if isinstance(content, bytes) else content.encode()
    for columns in ("size=a,time=b:us", "size=#1,rate=#2:GB/s", "size=a,time=b"):
        try:
            reading = read(raw, columns=columns)
        except (UnreadableTrace, InvalidInput):
            continue
        assert len(messages(reading)) >= 1
