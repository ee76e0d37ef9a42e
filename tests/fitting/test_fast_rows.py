"""fitting/readers/columns.py: many rows at once give what one row after the other gives."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from domain.errors import UnreadableTrace
from domain.measurement import DirectTrace
from fitting.readers import csv_direct, direct_rows
from fitting.readers.columns import plain_rows
from tests.support.counts import count

HEADER = b"message_bytes,repetition,copy_us,wire_us\n"
WITHOUT_REPETITIONS = b"message_bytes,pack_us,copy_us,wire_us\n"

digits = st.text("0123456789", min_size=1, max_size=25)
decimals = st.builds("{}.{}".format, st.text("0123456789", max_size=9), digits)
floats = st.floats(0.0, 1e12).map(repr)
odd = st.sampled_from(
    [
        "1e400",
        "1e-400",
        "-0",
        "-0.0",
        "+5",
        "-1",
        ".",
        "1.",
        ".5",
        "1.2.3",
        "1e",
        "1e+",
        "e5",
        "1_0",
        "nan",
        "inf",
        "0x1",
        "--",
        "1e12",
        "1.1e12",
        "999999999999.9999",
        "9007199254740993",
        "9223372036854775808",
        "0.1e-5",
        "٣",
        "1;2",
    ]
) | st.just("")
plain = st.one_of(st.integers(1, 10**6).map(str), decimals, floats)
blanks = st.sampled_from(["", "", "", " ", "\t", "  "])
field = st.builds("{}{}{}".format, blanks, st.one_of(plain, plain, plain, digits, odd), blanks)
quoted = field.map('"{}"'.format)
wholes = st.one_of(st.integers(0, 2**50).map(str), digits, field)
good_row = st.builds(
    "{},{},{},{}".format, st.integers(1, 2**48), st.integers(0, 2**48), plain, plain
)
any_row = st.one_of(
    st.builds("{},{},{},{}".format, wholes, wholes, field, st.one_of(field, quoted)),
    st.lists(field, max_size=6).map(",".join),
    st.sampled_from(["", "  ", "# a comment", " # another", "\r", "1,2,3,4 # no comment", '"']),
)
files = st.builds(
    lambda rows, end, last: (end.join(rows) + (end if last else "")).encode(),
    st.lists(st.one_of(good_row, good_row, good_row, any_row), max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)


def read(content: bytes) -> DirectTrace:
    trace = csv_direct.SPEC.read(content, None).trace
    assert isinstance(trace, DirectTrace)
    return trace


def outcome(content: bytes) -> DirectTrace | str:
    try:
        return read(content)
    except UnreadableTrace as refusal:
        return refusal.detail


def slow_outcome(content: bytes) -> DirectTrace | str:
    with mock.patch.object(direct_rows, "plain_rows", return_value=None):
        return outcome(content)


@settings(max_examples=count(3000))
@given(rows=files)
@example(rows=b"64,0,1 ,2\n64,0,1,2 \n")
@example(rows=b"64,0,1,2\r\r\n64,0,1,2")
@example(rows=b"64,0,9007199254740993.5,0.30000000000000004\n")
@example(rows=b"1 2,0,1,2\n")
@example(rows=b",0,1,2\n")
@example(rows=b"64,0,1,\n")
def test_both_ways_agree(rows: bytes) -> None:
    """To the last bit, and to the last word of a refusal."""
    for header in (HEADER, WITHOUT_REPETITIONS):
        content = header + rows
        assert outcome(content) == slow_outcome(content)


@settings(max_examples=count(3000))
@given(st.lists(st.tuples(decimals, floats), min_size=1, max_size=20))
def test_decimal_numbers_are_what_float_makes_of_them(numbers: list[tuple[str, str]]) -> None:
    """Correctly rounded, however many digits there are."""
    rows = "\n".join(f"1,2,{one},{other}" for one, other in numbers).encode()
    found = plain_rows(rows, 4)
    assert found is not None
    assert found[:, 2:].tolist() == [[float(one), float(other)] for one, other in numbers]


@pytest.mark.parametrize(
    "rows",
    [
        b"64,0,1.5,2\n128,1,3,.5\n",
        b"64,0,1.5e3,2\n",
        b" 64 , 0 , 1 , 2 \n",
        b"64,0,1,2\r\n64,0,1,2\r\n",
        b"# a comment\n\n64,0,1,2",
    ],
)
def test_what_is_usual_is_read_at_once(rows: bytes) -> None:
    """The fast path is taken, or it would be of no use."""
    assert plain_rows(rows, 4) is not None


def test_chunks_meet_at_line_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever their length; a refusal still counts its line from the first one."""
    rows = b"".join(b"%d,%d,%d.5,2\n" % (size, size, size) for size in range(1, 200))
    whole = outcome(HEADER + rows)
    for length in (41, 64, 1000):
        monkeypatch.setattr(csv_direct, "_CHUNK_BYTES", length)
        assert outcome(HEADER + rows) == whole
        refused = outcome(b"\xef\xbb\xbf" + HEADER + rows + b"64,0,x,2\n")
        assert isinstance(refused, str)
        assert refused.startswith("line 201, column 3")
        broken = outcome(b"\xef\xbb\xbf" + HEADER + b"64,0,1,2\n\xff\n")
        assert broken == f"byte {3 + len(HEADER) + 9} is not UTF-8"


def test_the_time_of_the_whole_message_is_no_stage() -> None:
    """It may be the last column, and nothing else."""
    trace = read(b"message_bytes,repetition,a_us,total_us\n64,0,1,2\n")
    assert (trace.stage_names, list(trace.total_us or ())) == (("a",), [2.0])
    assert "to be the last column" in str(
        outcome(b"message_bytes,repetition,total_us,a_us\n64,0,1,2\n")
    )
    assert "latency_us" in str(outcome(b"message_bytes,repetition,total_us\n64,0,1\n"))
