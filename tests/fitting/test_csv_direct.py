"""fitting/readers/csv_direct.py: what is understood, and that every refusal names line and rule."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from contract.limits import MAX_MESSAGE_BYTES, MAX_NAME_LENGTH, MAX_STAGES
from domain.errors import UnreadableTrace
from domain.measurement import DirectTrace
from domain.trace_formats import UnreadableRows
from fitting.readers.csv_direct import MAX_LINE_LENGTH, SPEC

HEADER = "message_bytes,repetition,copy_us,wire_us"
EXAMPLE = Path(__file__).parents[2] / "examples" / "local-path-direct.csv"


def read_direct_csv(text: str) -> DirectTrace:
    trace = SPEC.read(text.encode(errors="surrogatepass"), None).trace
    assert isinstance(trace, DirectTrace)
    return trace


def text_of(*rows: str, header: str = HEADER) -> str:
    return "\n".join(("# a comment", header, *rows)) + "\n"


def refusal(text: str) -> str:
    with pytest.raises(UnreadableTrace) as caught:
        read_direct_csv(text)
    assert caught.value.field == "measurements"
    return caught.value.detail


class TestUnderstood:
    def test_a_plain_file(self) -> None:
        trace = read_direct_csv(text_of("64,0,0.5,1.25", "128,1,.75,2e0"))
        assert trace.stage_names == ("copy", "wire")
        assert list(trace.message_bytes) == [64, 128]
        assert list(trace.repetitions) == [0, 1]
        assert [list(column) for column in trace.stage_us] == [[0.5, 0.75], [1.25, 2.0]]

    @pytest.mark.parametrize(
        "text",
        [
            "\ufeff" + text_of("64,0,1,2"),
            text_of("64,0,1,2").replace("\n", "\r\n"),
            text_of("64,0,1,2").rstrip("\n"),
            text_of("", "  # indented comment", " 64 , 0 , 1 , 2 ", ""),
            text_of('"64","0","1","2"', header='"message_bytes","repetition","copy_us","wire_us"'),
        ],
        ids=["byte order mark", "CRLF", "no last line end", "blanks and comments", "quotes"],
    )
    def test_how_editors_and_spreadsheets_write_it(self, text: str) -> None:
        trace = read_direct_csv(text)
        assert (list(trace.message_bytes), trace.stage_names) == ([64], ("copy", "wire"))
        assert [column[0] for column in trace.stage_us] == [1.0, 2.0]

    def test_a_quoted_stage_name_may_hold_a_comma(self) -> None:
        trace = read_direct_csv(text_of("64,0,1", header='message_bytes,repetition,"dma, host_us"'))
        assert trace.stage_names == ("dma, host",)

    def test_the_limits_themselves_are_accepted(self) -> None:
        columns = [f"{'n' * (MAX_NAME_LENGTH - 2)}{place:02}_us" for place in range(MAX_STAGES)]
        row = f"{MAX_MESSAGE_BYTES},0," + ",".join(["1e12"] * MAX_STAGES)
        trace = read_direct_csv(
            text_of(row, header="message_bytes,repetition," + ",".join(columns))
        )
        assert len(trace.stage_names) == MAX_STAGES

    def test_the_measured_example(self) -> None:
        trace = read_direct_csv(EXAMPLE.read_text(encoding="utf-8"))
        assert len(trace) == 14 * 25
        assert trace.stage_names[-1] == "write_fdatasync"

    def test_memory_grows_with_the_numbers_and_not_with_objects(self) -> None:
        text = text_of(*["64,0,0.125,1.25"] * 400_000)
        tracemalloc.start()
        trace = read_direct_csv(text)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(trace) == 400_000
        assert peak < 2.5 * 4 * 8 * 400_000  # four columns of 8 bytes, and what growing them takes


class TestRefusedHeaders:
    @pytest.mark.parametrize(
        ("header", "rule"),
        [
            ("message_bytes;repetition;copy_us", "separated by semicolons; expected commas"),
            ("message_bytes\trepetition\tcopy_us", "separated by tabs; expected commas"),
            ("node,repetition,copy_us", "message_bytes,<stage>_us"),
            ("64,0,1.5", "message_bytes,<stage>_us"),
            ("message_bytes,time_us", "column 2: time_us may be a statistic or a whole message"),
            ("bytes,copy_us,avg_us", "column 3: avg_us may be a statistic"),
            ("message_bytes,repetition", "expected 1 to 64 stage columns, got 0"),
            ("message_bytes,repetition,copy_ms", "column 3: expected the name of a stage"),
            ("message_bytes,repetition,a_us,_us", "column 4: expected the name of a stage"),
            ("message_bytes,repetition,a_us,b_us,a_us", "columns 3 and 5 have the same name"),
            ("message_bytes,repetition,a\x1b[2J_us", "without control characters"),
            ('message_bytes,repetition,"a_us', "a quoted field is not closed"),
            ("message_bytes,repetition,a_us\r64,0,1", "not in CR alone"),
        ],
    )
    def test_names_the_line_and_the_rule(self, header: str, rule: str) -> None:
        detail = refusal(text_of("64,0,1", header=header))
        assert detail.startswith("line 2")
        assert rule in detail

    def test_too_many_stages(self) -> None:
        columns = ",".join(f"s{place}_us" for place in range(MAX_STAGES + 1))
        assert "expected 1 to 64 stage columns, got 65" in refusal(
            text_of(header="message_bytes,repetition," + columns)
        )

    def test_a_name_that_is_too_long(self) -> None:
        name = "n" * (MAX_NAME_LENGTH + 1)
        detail = refusal(text_of(header=f"message_bytes,repetition,{name}_us"))
        assert "at most 100 characters" in detail
        assert name not in detail

    @pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
    def test_nothing_in_it(self, text: str) -> None:
        assert "the file is empty" in refusal(text)

    def test_no_rows(self) -> None:
        assert "no measurements" in refusal(HEADER + "\n")


class TestRefusedRows:
    @pytest.mark.parametrize(
        ("row", "rule"),
        [
            ("64,0,1", "expected 4 fields, as in the header, got 3"),
            ("64,0,1.5\x1d,2", "expected decimal numbers separated by commas"),
            ("64\x1c,0,1.5,2", "expected decimal numbers separated by commas"),
            ("64,0,1,2,3", "expected 4 fields, as in the header, got 5"),
            ("0,0,1,2", "message_bytes: expected a whole number from 1"),
            (f"{MAX_MESSAGE_BYTES + 1},0,1,2", "message_bytes: expected a whole number"),
            ("64.0,0,1,2", "message_bytes: expected a whole number"),
            ("6_4,0,1,2", "message_bytes: expected a whole number"),
            ("9" * 5000 + ",0,1,2", "message_bytes: expected a whole number"),
            ("64,-1,1,2", "repetition: expected a whole number from 0"),
            ("64,x,1,2", "repetition: expected a whole number"),
            ("64,0,nan,2", "column 3: expected a finite decimal number"),
            ("64,0,1,inf", "column 4: expected a finite decimal number"),
            ("64,0,1,1e999", "column 4: expected a time from 0 to 1e+12"),
            ("64,0,-1.1e12,2", "column 3: expected a time from 0"),
            ("64,0,1,1.1e12", "column 4: expected a time from 0"),
            ("64,0,,2", "column 3: expected a finite decimal number"),
            ("64,0,0x1p3,2", "column 3: expected a finite decimal number"),
            ("64,0,1_0,2", "column 3: expected a finite decimal number"),
            ("64,0,١,2", "column 3: expected a finite decimal number"),
            ('64,0,1,"2', "a quoted field is not closed"),
        ],
    )
    def test_names_the_line_and_the_rule(self, row: str, rule: str) -> None:
        detail = refusal(text_of("64,0,1,2", "", row, "64,1,1,2"))
        assert detail.startswith("line 5")
        assert rule in detail

    def test_several_are_told_together(self) -> None:
        with pytest.raises(UnreadableRows) as caught:
            read_direct_csv(text_of("64,0,1,2", "64,1,x,2", "64,2,1", "0,0,1,2", '64,3,"1,2'))
        assert [row.partition(":")[0] for row in caught.value.rows] == [
            "line 4, column 3",
            "line 5",
            "line 6",
            "line 7",
        ]
        assert caught.value.detail.startswith("4 rows cannot be read: line 4, column 3: expected")

    def test_no_more_than_ten_are_told(self) -> None:
        with pytest.raises(UnreadableRows) as caught:
            read_direct_csv(text_of(*["64,0,nan,2"] * 1000))
        assert len(caught.value.rows) == 10
        assert caught.value.detail.startswith("more than 10 rows cannot be read")

    def test_what_ends_the_reading_comes_last(self) -> None:
        with pytest.raises(UnreadableRows) as caught:
            read_direct_csv(text_of("64,0,1", "64,0,1," + "2" * MAX_LINE_LENGTH))
        assert caught.value.rows[1].startswith("line 4: longer than")

    def test_a_line_without_end(self) -> None:
        assert refusal(text_of("64,0,1," + "2" * MAX_LINE_LENGTH)).startswith("line 3: longer than")
