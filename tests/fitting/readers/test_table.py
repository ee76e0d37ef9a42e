"""Tables whose columns the user names."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.conditions import RowChoice
from domain.errors import InvalidInput, UnreadableTrace
from domain.measurement import TraceKind
from domain.table_columns import ColumnRole, parse_columns
from fitting import read
from tests.fitting.readers.test_tools import messages, near, pairs, understood


def _switched(size: int) -> float:
    return 3.0 + size * 5e-4 if size < 16_384 else 25.0 + size * 2e-4


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

    @pytest.mark.parametrize("columns", ["size=#1,time=#3:us", "size=Size,time=Lat:us"])
    def test_bars_around_rows_part_nothing(self, columns: str) -> None:
        content = "| # Size | node | Lat |\n|--:|---|--:|\n| 64 | | 3 |\n| 4096 | b | 5 |"
        assert latencies(content, columns) == [(64, 3.0), (4096, 5.0)]

    def test_bars_between_columns_alone_part_empty_ones(self) -> None:
        assert latencies("size|lat|note\n64|3|\n4096|5|x\n", "size=size,time=lat:us") == [
            (64, 3.0),
            (4096, 5.0),
        ]

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


class TestNamesWithBlanks:
    """Names apart by two blanks or more, over rows apart by any."""

    header = "Block Size (B)      Batch     Avg Lat. (us)  B/W (GB/Sec)\n"
    rows = "8192 1 4.0 2.048\n131072                1         11.0            11.9\n"
    expected = ((8192, 4.0), (131_072, 11.0))

    @pytest.mark.parametrize(
        "columns",
        [
            "size=Block Size (B):B,time=Avg Lat. (us):us",
            "size=block size (b),time=avg lat. (us)",
            "size=#1,time=#3:us",
        ],
    )
    def test_they_are_found(self, columns: str) -> None:
        content = self.header + "-" * 60 + "\n" + self.rows
        assert latencies(content, columns) == near(self.expected)

    def test_a_name_without_blanks_beside_them_is_of_its_own_column(self) -> None:
        reading = read((self.header + self.rows).encode(), columns="size=Batch,time=Avg Lat. (us)")
        assert pairs(messages(reading).latency) == near([(1, 4.0), (1, 11.0)])
        assert understood(reading)["columns_apart_by"] == "two blanks or more"

    def test_cells_with_units_apart_by_a_blank(self) -> None:
        content = "Block size     Mean time\n8 KiB          4 us\n128 KiB        11 us\n"
        assert latencies(content, "size=Block size,time=Mean time") == near(self.expected)

    def test_single_blanks_between_some_names_are_read_as_before(self) -> None:
        content = "size  t_us Other Column\n8192 4.0 1 2\n131072 11.0 1 2\n"
        assert latencies(content, "size=size,time=t_us") == near(self.expected)

    def test_rows_of_neither_width_are_left_out(self) -> None:
        reading = read(
            (self.header + self.rows + "8192 9\n").encode(), columns="size=#1,time=#3:us"
        )
        assert "with fewer columns" in understood(reading)["rows_left_out"]


class TestUnits:
    """KB is what was named; where nothing was, times and rates of the table may say it."""

    cells = "| Part | Mean (ms) |\n|---|---|\n| 16KB | 1.0 |\n| 2MB | 9.0 |\n"

    @pytest.mark.parametrize(
        ("unit", "kilo"), [(":KiB", 1024), (":MiB", 1024), (":KB", 1000), (":B", 1000), ("", 1000)]
    )
    def test_the_unit_that_is_named_wins(self, unit: str, kilo: int) -> None:
        expected = near([(16 * kilo, 1e3), (2 * kilo**2, 9e3)])
        assert latencies(self.cells, f"size=Part{unit},time=Mean (ms)") == expected

    @pytest.mark.parametrize("kilo", [1000, 1024])
    @pytest.mark.parametrize(("unit", "of_rate"), [("GB/s", 1e9), ("MiB/s", 2.0**20)])
    def test_rates_decide(self, kilo: int, unit: str, of_rate: float) -> None:
        sizes = {"16KB": 16 * kilo, "512KB": 512 * kilo, "2MB": 2 * kilo**2}
        times_us = [5.0, 100.0, 390.0]
        content = f"part,t_us,speed ({unit})\n" + "".join(
            f"{cell},{time_us},{size / time_us * 1e6 / of_rate:.5g}\n"
            for (cell, size), time_us in zip(sizes.items(), times_us, strict=True)
        )
        reading = read(content.encode(), columns="size=part,time=t_us")
        expected = near([*zip(sizes.values(), times_us, strict=True)])
        assert pairs(messages(reading).latency) == expected
        said = f"part, unit KB of {kilo} bytes, as its rates say"
        assert understood(reading)["size_column"] == said

    def test_rates_that_fit_neither_decide_nothing(self) -> None:
        content = "part (KB),t_us,speed (GB/s)\n16,5,1.0\n512,100,9.9\n"
        reading = read(content.encode(), columns="size=part (KB),time=t_us")
        assert pairs(messages(reading).latency) == near([(16_000, 5.0), (512_000, 100.0)])
        assert understood(reading)["size_column"] == "part (KB), unit KB of 1000 bytes"


class TestConditions:
    """Other columns, blocks, and times that no stage takes."""

    columns = "size=part:B,time=seconds:s"
    rows = "part,sockets,seconds\n" + "".join(
        f"{mib}MiB,{sockets},{0.05 + mib * per_mib}\n"
        for sockets, per_mib in ((2, 0.02), (24, 0.002))
        for mib in (4, 16, 64)
    )

    def test_a_column_of_several_values_is_asked_for(self) -> None:
        with pytest.raises(
            UnreadableTrace, match=r"sockets has the values 2, 24.*--where sockets=2"
        ):
            read(self.rows.encode(), columns=self.columns)

    @pytest.mark.parametrize(("sockets", "per_mib"), [("2", 0.02), ("24", 0.002)])
    def test_one_is_taken(self, sockets: str, per_mib: float) -> None:
        choice = RowChoice(where=f"sockets={sockets}")
        reading = read(self.rows.encode(), columns=self.columns, choice=choice)
        expected = [(mib << 20, (0.05 + mib * per_mib) * 1e6) for mib in (4, 16, 64)]
        assert pairs(messages(reading).latency) == near(expected)
        assert understood(reading)["sockets"] == f"{sockets}, of the values 2, 24"

    def test_values_that_agree_are_repetitions(self) -> None:
        alike = "part,sockets,seconds\n" + "".join(
            f"{mib}MiB,{sockets},{0.05 + mib * 0.02 + sockets / 1e4}\n"
            for sockets in (1, 2)
            for mib in (4, 16, 64)
        )
        reading = read(alike.encode(), columns=self.columns)
        assert len(messages(reading)) == 6
        assert "they agree" in understood(reading)["sockets"]

    @pytest.mark.parametrize("name", ["connections", "Threads", "queue depth", "num_jobs"])
    def test_a_number_at_once_is_one_of_lanes(self, name: str) -> None:
        content = f"size,{name},t_us\n64,8,3.0\n4096,8,5.0\n65536,8,20.0\n"
        (notice,) = read(content.encode(), columns="size=size,time=t_us").notices
        assert (notice.code, notice.values) == ("several_lanes", (("lanes", 8.0),))

    def test_columns_that_are_measured_tell_nothing(self) -> None:
        content = "size,min_us,t_us,rep,GB/s\n" + "".join(
            f"{size},{at},{size / 1e3 + 5.0 * (1 + at / 50)},{at},{at}.5\n"
            for at in (1, 2)
            for size in (64, 4096, 65_536)
        )
        reading = read(content.encode(), columns="size=size,time=t_us")
        assert len(messages(reading)) == 6
        assert not {"min_us", "rep", "GB/s"} & set(understood(reading))

    @pytest.mark.parametrize("between", ["size  MBps\n", "# with 16 processes\n", "\n"])
    @pytest.mark.parametrize("columns", ["size=size:B,rate=MBps:MB/s", "size=#1:B,rate=#2:MB/s"])
    def test_blocks_are_runs(self, between: str, columns: str) -> None:
        first = "size  MBps\n2048  700.0\n32768 6000.0\n524288 9000.0\n"
        second = "2048  3500.0\n32768 8900.0\n524288 9400.0\n"
        content = (first + between + second).encode()
        with pytest.raises(UnreadableTrace, match=r"2 runs.* 400 % .of 2 KiB."):
            read(content, columns=columns)
        taken = read(content, columns=columns, choice=RowChoice(run=2))
        expected = [(2048, 2048 / 3500.0), (32_768, 32_768 / 8900.0), (524_288, 524_288 / 9400.0)]
        assert pairs(messages(taken).interarrival) == near(expected)
        assert understood(taken)["runs"] == "run 2 of 2"

    @pytest.mark.parametrize("between", ["\n", "# cooled down\n", "1024,timeout\n"])
    @pytest.mark.parametrize("order", ["random", "down", "up"])
    def test_what_stands_between_rows_of_one_sweep_begins_no_run(
        self, between: str, order: str
    ) -> None:
        random, sizes = Random(5), [1 << power for power in range(0, 21, 2) for _ in range(4)]
        if order == "random":
            random.shuffle(sizes)
        elif order == "down":
            sizes.reverse()
        rows = [
            f"{size},{_switched(size) * random.lognormvariate(0, 0.02):.4f}\n" for size in sizes
        ]
        pieces = ["".join(rows[at : at + 5]) for at in range(0, len(rows), 5)]
        reading = read(f"size,t_us\n{between.join(pieces)}".encode(), columns="size=size,time=t_us")
        assert len(messages(reading)) == len(sizes)
        assert "runs" not in understood(reading)

    @pytest.mark.parametrize("is_down", [False, True])
    def test_blocks_of_sweeps_again_and_again_are_runs(self, is_down: bool) -> None:
        sizes = sorted((64, 1024, 16_384, 262_144), reverse=is_down)
        first, second = (
            "".join(f"{size},{scale * (3 + size / 100)}\n" for size in sizes) * 3
            for scale in (1.0, 1.5)
        )
        with pytest.raises(UnreadableTrace, match="2 runs in this file differ by up to 50 %"):
            read(f"size,t_us\n{first}# tuned\n{second}".encode(), columns="size=size,time=t_us")

    @pytest.mark.parametrize("name", ["retransmits", "errors", "core", "tcp_retries"])
    def test_columns_of_results_tell_nothing(self, name: str) -> None:
        random, sizes = Random(7), [1 << power for power in range(6, 21, 2)]
        many = 16 if name == "core" else 2
        rows = [(size, random.randrange(many)) for size in sizes for _ in range(6)]
        content = f"size,{name},t_us\n" + "".join(
            f"{size},{found},{_switched(size) * (1.0 if many > 2 else 1 + found / 2):.4f}\n"
            for size, found in rows
        )
        reading = read(content.encode(), columns="size=size,time=t_us")
        assert len(messages(reading)) == len(rows)
        assert name not in understood(reading)

    def test_a_value_at_some_of_the_sizes_tells(self) -> None:
        content = "size,threads,t_us\n" + "".join(
            f"{size},{threads},{(3.0 + size / 100) * threads}\n"
            for threads, sizes in ((1, range(6, 21, 2)), (8, range(12, 17, 2)))
            for size in (1 << power for power in sizes)
        )
        with pytest.raises(UnreadableTrace, match="threads has the values 1, 8"):
            read(content.encode(), columns="size=size,time=t_us")

    def test_too_many_values_are_said(self) -> None:
        def table(count: int) -> str:
            return "size,pair,t_us\n" + "".join(
                f"{size},p{pair},{3.0 + size / 100}\n"
                for pair in range(count)
                for size in (64, 1024, 16_384)
            )

        few, many = (
            understood(read(table(count).encode(), columns="size=size,time=t_us"))
            for count in (64, 65)
        )
        assert "not_compared" not in few
        assert "they agree" in few["pair"]
        assert many["not_compared"] == "pair (65 values): too many to tell conditions apart by"

    def test_so_are_those_of_large_sizes_that_never_take_longer(self) -> None:
        """They fall by a third only, and end above the fastest."""
        times = {128: 18.4, 256: 15.0, 512: 13.4, 1024: 12.8, 2048: 12.9, 4096: 13.2}
        content = "buffer;s\n" + "".join(f"{size}MB;{time}\n" for size, time in times.items())
        with pytest.raises(UnreadableTrace, match="times fall as sizes grow"):
            read(content.encode(), columns="size=buffer,time=s")

    def test_small_sizes_may_fall_while_a_run_warms_up(self) -> None:
        content = "bytes;us\n8;18\n16;15\n32;13\n64;13.1\n128;13.2\n"
        assert len(latencies(content, "size=bytes,time=us")) == 5

    def test_times_that_fall_as_sizes_grow_are_a_sweep(self) -> None:
        content = "piece,total_ms\n32KiB,40.0\n256KiB,19.0\n2MiB,9.5\n16MiB,14.0\n"
        with pytest.raises(
            UnreadableTrace, match=r"times fall .*40000 µs at 32 KiB.*fragment_bytes"
        ):
            read(content.encode(), columns="size=piece:B,time=total_ms:ms")

    def test_a_slow_first_size_and_a_switch_are_none(self) -> None:
        slow_first = "size,t_us\n1,9.0\n64,3.0\n4096,3.1\n65536,20.0\n"
        switch = "size,t_us\n1024,4.0\n65536,170.0\n131072,20.0\n262144,31.0\n"
        for content in (slow_first, switch):
            assert len(messages(read(content.encode(), columns="size=size,time=t_us"))) == 4


@given(
    rows=st.lists(st.tuples(st.integers(1, 2**40), st.floats(0.0, 1e9)), min_size=1, max_size=20),
    separator=st.sampled_from([",", ";", "\t", " ", "|"]),
    swap=st.booleans(),
)
def test_what_is_written_is_read(
    rows: list[tuple[int, float]], separator: str, *, swap: bool
) -> None:
    """Whatever separates the columns, in whichever order they are; of times that do not fall."""
    sizes, times = map(sorted, zip(*rows, strict=True))
    rows = [(int(size), time_us) for size, time_us in zip(sizes, times, strict=True)]
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
