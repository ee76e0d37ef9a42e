"""fitting/readers/event_rows.py: begins beside today's columns, how they are joined, refusals."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from dataclasses import replace
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from domain.errors import UnreadableTrace
from domain.fit import FitOptions
from domain.measurement import DirectTrace
from domain.traced_events import MAX_EVENT_NS, MAX_NUMBER, NOT_KNOWN, TracedEvents
from fitting import fit, join, part_within, read
from fitting.readers.csv_direct import SPEC
from fitting.readers.event_rows import EventRows
from tests.fitting.test_csv_direct import refusal

NUMBERED = "message_bytes,repetition,message,fragment,hash_us,send_us"
HEADER = f"{NUMBERED},hash_begin_ns,hash_busy_ns,send_begin_ns,send_busy_ns"
BY_ORDER = "message_bytes,message,hash_us,send_us,hash_begin_ns,send_begin_ns"


def text_of(*rows: str, header: str = HEADER) -> str:
    return "\n".join((header, *rows)) + "\n"


def trace_of(*rows: str, header: str = HEADER) -> DirectTrace:
    trace = read(text_of(*rows, header=header).encode()).trace
    assert isinstance(trace, DirectTrace)
    return trace


def events_of(*rows: str, header: str = HEADER) -> TracedEvents:
    events = trace_of(*rows, header=header).events
    assert events is not None
    return events


def lists(events: TracedEvents) -> list[list[int]]:
    """All columns behind message, fragment and bytes: begins, durations, busy times."""
    return [list(c) for c in (*events.begin_ns, *events.duration_ns, *events.busy_ns)]


def keys(events: TracedEvents) -> list[tuple[int, int]]:
    return list(zip(events.message, events.fragment, strict=True))


class TestByNumber:
    def test_a_plain_file(self) -> None:
        trace = trace_of("4096,0,7,0,1.5,2.25,0,1400,1500,-1", "512,0,7,1,.5,1,1500,,3750,-1")
        assert (list(trace.message_bytes), list(trace.repetitions)) == ([4096, 512], [0, 0])
        assert [list(column) for column in trace.stage_us] == [[1.5, 0.5], [2.25, 1.0]]
        events = trace.events
        assert events is not None
        assert (events.stages, keys(events)) == (("hash", "send"), [(7, 0), (7, 1)])
        assert list(events.fragment_bytes) == [4096, 512]
        assert lists(events) == [
            [0, 1500],
            [1500, 3750],
            [1500, 500],
            [2250, 1000],
            [1400, NOT_KNOWN],
            [NOT_KNOWN, NOT_KNOWN],
        ]

    def test_what_was_read_is_said(self) -> None:
        stated = dict(
            read(text_of("64,0,0,0,1,2,0,1,2,3", "64,1,0,1,,2,,,9,3").encode()).understood
        )
        assert stated["begins"] == "of 2 fragments of 1 messages, without 1 events"
        assert stated["joined"] == "by message and fragment"
        assert (stated["rows"], stated["stages"]) == ("1", "hash, send")

    def test_columns_in_any_order_without_busy_times_and_with_a_total(self) -> None:
        header = "bytes,send_begin_ns,fragment,hash_us,message,hash_begin_ns,send_us,total_us"
        trace = trace_of("64,5,0,1,3,4,2,9", header=header)
        assert trace.events is not None
        assert trace.total_us is not None
        assert list(trace.total_us) == [9.0]
        assert lists(trace.events) == [[0], [1], [1000], [2000], [-1], [-1]]

    def test_begins_count_from_the_first(self) -> None:
        assert lists(events_of(f"64,0,0,0,1,2,{2**52},1,{2**52 + 7},3"))[:2] == [[0], [7]]

    def test_rows_are_sorted_in_the_events_and_not_in_the_trace(self) -> None:
        trace = trace_of("2,0,1,0,1,1,9,1,9,1", "1,0,0,1,1,1,5,1,5,1", "3,0,0,0,1,1,0,1,0,1")
        assert list(trace.message_bytes) == [2, 1, 3]
        assert trace.events is not None
        assert list(trace.events.fragment_bytes) == [3, 1, 2]

    def test_a_lost_event_leaves_a_hole_and_shifts_nothing(self) -> None:
        whole = [f"64,{i},0,{i},1,1,{i * 10},1,{i * 10 + 5},1" for i in range(5)]
        lost = [*whole[:2], "64,2,0,2,1,,20,1,,", *whole[3:]]
        events, trace = events_of(*lost), trace_of(*lost)
        assert list(events.begin_ns[1]) == [5, 15, NOT_KNOWN, 35, 45]
        assert list(events.begin_ns[0]) == list(events_of(*whole).begin_ns[0])
        assert list(trace.repetitions) == [0, 1, 3, 4]
        assert events.missing == 1

    def test_stages_in_rows_of_their_own_are_joined(self) -> None:
        rows = [f"64,0,0,{i},1,,{i * 10},1,," for i in range(4)]
        rows += [f"64,0,0,{i},,2,,,{i * 10 + 5},-1" for i in (3, 0, 2)]
        trace = trace_of(*rows)
        assert [list(column) for column in trace.stage_us] == [[1.0] * 3, [2.0] * 3]
        assert trace.events is not None
        assert list(trace.events.begin_ns[1]) == [5, NOT_KNOWN, 25, 35]

    def test_the_limits_themselves_are_taken(self) -> None:
        row = f"64,0,{MAX_NUMBER},{MAX_NUMBER},1e12,0,0,{MAX_EVENT_NS},{MAX_EVENT_NS},0"
        assert keys(events_of(row)) == [(MAX_NUMBER, MAX_NUMBER)]

    def test_a_row_with_a_time_below_zero_is_left_out(self) -> None:
        reading = read(text_of(*["64,0,0,0,1,2,0,1,2,3"], "64,1,0,1,-1,2,9,1,2,3").encode())
        assert len(reading.trace) == 1
        assert [notice.code for notice in reading.notices] == ["times_below_zero"]


class TestByOrder:
    def test_the_ith_begin_of_a_message_in_each_stage(self) -> None:
        rows = ["64,0,1,1,0,9000", "64,0,2,2,5000,3000", "64,1,1,1,90000,95000"]
        events = events_of(*rows, header=BY_ORDER)
        assert keys(events) == [(0, 0), (0, 1), (1, 0)]
        assert lists(events)[:4] == [
            [0, 5000, 90000],
            [3000, 9000, 95000],
            [1000, 2000, 1000],
            [2000, 1000, 1000],
        ]

    def test_a_lost_event_concerns_its_message_alone(self) -> None:
        rows = [f"64,{i // 2},1,1,{i * 5000},{i * 5000 + 2000}" for i in range(6)]
        rows[3] = "64,1,1,,15000,"
        assert keys(events_of(*rows, header=BY_ORDER)) == [(0, 0), (0, 1), (2, 0), (2, 1)]

    def test_a_row_an_event(self) -> None:
        rows = ["64,0,1,,0,", "64,0,,2,,1000", "64,0,1,,1000,", "64,0,,3,,3000"]
        trace = trace_of(*rows, header=BY_ORDER)
        assert [list(column) for column in trace.stage_us] == [[1.0, 1.0], [2.0, 3.0]]

    def test_where_no_message_is_whole_there_are_no_events(self) -> None:
        rows = ["64,0,1,1,0,1000", "64,0,1,,1000,"]
        reading = read(text_of(*rows, header=BY_ORDER).encode())
        assert isinstance(reading.trace, DirectTrace)
        assert reading.trace.events is None
        assert "are not used" in dict(reading.understood)["begins"]

    def test_several_at_once_in_a_stage_need_numbers(self) -> None:
        rows = [f"64,0,1,20,{i * 5000},{i * 5000 + 2000}" for i in range(4)]
        detail = refusal(text_of(*rows, header=BY_ORDER))
        assert detail.startswith("line 3: a stage has several fragments of this message at once")
        assert "expected a column fragment" in detail

    def test_messages_may_overlap_and_times_may_be_rounded(self) -> None:
        rows = [f"64,{i % 2},1.01,1,{i // 2 * 1000},{i // 2 * 1000}" for i in range(20)]
        assert len(events_of(*rows, header=BY_ORDER)) == 20


class TestRefused:
    @pytest.mark.parametrize(
        ("header", "rule"),
        [
            (f"{NUMBERED}", "line 1, column 5: no column of its begins"),
            (f"{NUMBERED},hash_begin_ns", "line 1, column 6: no column of its begins"),
            (f"{NUMBERED},hash_begin_ns,wire_begin_ns", "column 8: of no stage of this file"),
            (f"{NUMBERED},hash_begin_ns,total_busy_ns", "column 8: of no stage of this file"),
            (f"{HEADER},hash_begin_ns", "columns 7 and 11 have the same name"),
            (f"{HEADER},message", "columns 3 and 11 have the same name"),
            ("message_bytes,a_us,a_begin_ns", "line 1: begins of no message"),
            ("message_bytes,fragment,a_us,a_begin_ns", "line 1: begins of no message"),
            ("message_bytes,message,fragment", "expected 1 to 64 stage columns, got 0"),
            ("message_bytes,message,a_us,a_begin_ms", "column 4: expected the name of a stage"),
            ("message_bytes,message,avg_us,avg_begin_ns", "column 3: avg_us may be a statistic"),
        ],
    )
    def test_headers(self, header: str, rule: str) -> None:
        assert rule in refusal(text_of("1", header=header))

    @pytest.mark.parametrize(
        ("row", "rule"),
        [
            ("64,0,0,1,1,2,0,1,2", "expected 10 fields, as in the header, got 9"),
            ("0,0,0,1,1,2,0,1,2,3", "column 1: expected a whole number from 1"),
            ("64,-1,0,1,1,2,0,1,2,3", "column 2: expected a whole number from 0"),
            ("64,0,1.0,1,1,2,0,1,2,3", "column 3: expected a whole number from 0"),
            ("64,0,,1,1,2,0,1,2,3", "column 3: expected a whole number from 0"),
            (f"64,0,{MAX_NUMBER + 1},1,1,2,0,1,2,3", "column 3: expected a whole number"),
            ("64,0,0,-1,1,2,0,1,2,3", "column 4: expected a whole number"),
            ("64,0,0,1,nan,2,0,1,2,3", "column 5: expected a finite decimal number"),
            ("64,0,0,1,1e999,2,0,1,2,3", "column 5: expected a time from 0"),
            ("64,0,0,1,1,2,1e3,1,2,3", "column 7: expected a whole number from 0 to"),
            ("64,0,0,1,1,2,-2,1,2,3", "of ns from the file's first event"),
            (f"64,0,0,1,1,2,{MAX_EVENT_NS + 1},1,2,3", "column 7: expected a whole number"),
            (f"64,0,0,1,1,2,{MAX_EVENT_NS + 2},1,2,3", "column 7: expected a whole number"),
            (f"64,0,0,1,{MAX_EVENT_NS + 1},2,0,1,2,3", "column 5: expected a time"),
            ("64,0,0,1,1,2,0,1.5,2,3", "column 8: expected a whole number"),
            ("64,0,0,1,1,2,0,-2,2,3", ", or -1"),
            ("64,0,0,1,1,2,0,1,,3", "column 9: the stage has a time and no begin"),
            ("64,0,0,1,1,2,0,1,-1,3", "column 9: the stage has a time and no begin"),
            ("64,0,0,1,,2,0,1,2,3", "column 5: the stage has a begin and no time"),
            ("64,0,0,1,,2,,1,2,3", "column 8: expected no processor time of a stage"),
            ("64,0,0,1,,,,,,", "expected the time and the begin of one stage at least"),
            ('64,0,0,1,1,2,0,1,2,"3', "a quoted field is not closed"),
            ("64,0,0,0,1,2,0,1,2,3", "stage 1 has this fragment of this message in line 2"),
            ("64,0,0,0,,2,,,2,3", "stage 2 has this fragment of this message in line 2"),
        ],
    )
    def test_rows_with_line_column_and_rule(self, row: str, rule: str) -> None:
        detail = refusal(text_of("64,0,0,0,1,2,0,1,2,3", "", "# 1", row, "64,1,9,1,1,2,0,1,2,3"))
        assert detail.startswith("line 5")
        assert rule in detail

    def test_nothing_whole_and_nothing_at_all(self) -> None:
        assert "no fragment has a time of every stage" in refusal(text_of("64,0,0,0,1,,0,,,"))
        assert "at least one row" in refusal(text_of())
        assert "below 0" in refusal(text_of("64,0,0,0,-1,2,0,1,2,3"))


words = st.sampled_from(
    ["0", "1", "2", "17", "-1", "-2", "", "1.5", "1e2", "nan", str(2**53 - 1), str(2**53 - 2), "x"]
)
good = st.builds(
    "{},{},{},{},{}.{:03},2.5,{},{},{},-1".format,
    st.integers(1, 2**48),
    st.integers(0, 2**48),
    st.integers(0, 3),
    st.integers(0, 2**20),
    st.integers(0, 10**6),
    st.integers(0, 999),
    st.integers(0, 2**50),
    st.integers(-1, 10**9),
    st.integers(0, 2**50),
)
rows_of_file = st.lists(
    st.one_of(good, good, good, st.lists(words, min_size=10, max_size=10).map(",".join)),
    max_size=6,
)


def outcome(rows: Sequence[str]) -> DirectTrace | str:
    try:
        trace = SPEC.read(text_of(*rows).encode(), None).trace
    except UnreadableTrace as refused:
        return refused.detail
    assert isinstance(trace, DirectTrace)
    return trace


padding = st.sampled_from(["", "", "", " ", "\t", "\u00a0", "\x0b"])
marks = st.sampled_from(["", "", "", "", '"', "#", "'", "\ufeff"])


def dressed(rows: list[str], dress: DataObject, *, is_plain: bool) -> list[str]:
    """Blanks and marks around fields."""
    if is_plain:
        return rows

    def field(word: str) -> str:
        before, after, mark = dress.draw(padding), dress.draw(padding), dress.draw(marks)
        return f"{before}{mark}{word}{mark if mark == chr(34) else ''}{after}"

    return [",".join(map(field, row.split(","))) for row in rows]


@settings(max_examples=300, deadline=None)
@given(rows_of_file, st.booleans(), st.data())
def test_many_rows_at_once_are_read_as_one_by_one(
    rows: list[str], is_plain: bool, dress: DataObject
) -> None:
    rows = dressed(rows, dress, is_plain=is_plain)
    with mock.patch.object(EventRows, "take", return_value=False):
        one_by_one = outcome(rows)
    assert outcome(rows) == one_by_one


@pytest.mark.parametrize(
    "row",
    [
        "64, {0}, 0,\t{0}, 1.5, 2, {1}, 7, {1}, -1",
        '"64","{0}","0","{0}","1.5","2","{1}","7","{1}","-1"',
        "64,{0},0,{0},1.5e0,+2,{1},7,{1},-1",
        "64,{0},0,{0},1.5,2,{1},7,{1},-1\r",
        "64,{0},0,{0},1.5,2,{1},,{1},",
    ],
)
def test_what_is_unusual_in_every_row_is_no_reason_to_go_row_by_row(row: str) -> None:
    usual = "64,{0},0,{0},1.5,2,{1},7,{1},-1"
    rows, expected = ([one.format(i, i * 2000) for i in range(5)] for one in (row, usual))
    with mock.patch.object(EventRows, "add", side_effect=AssertionError):
        found = events_of(*rows)
        assert lists(found)[:4] == lists(events_of(*expected))[:4]


def test_rows_below_zero_are_counted_among_others() -> None:
    rows = [f"64,{i},0,{i},{1 if i % 3 else -1},2,{i * 2000},7,{i * 2000},-1" for i in range(9)]
    reading = read(text_of(*rows).encode())
    assert len(reading.trace) == 6
    assert "3 of 9" in reading.notices[0].detail


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, unique=True),
    st.randoms(use_true_random=False),
)
def test_events_do_not_depend_on_the_order_of_rows(
    numbers: list[tuple[int, int]], shuffled: random.Random
) -> None:
    """Nor on whether stages stand in rows of their own."""
    rows = [
        f"64,0,{m},{f},1.5,2,{m * 10**6 + f * 2000},7,{m * 10**6 + f * 2000 + 500},-1"
        for m, f in numbers
    ]
    split = [",".join((*r[:5], "", r[6], r[7], "", "")) for row in rows if (r := row.split(","))]
    split += [",".join((*r[:4], "", r[5], "", "", *r[8:])) for row in rows if (r := row.split(","))]
    shuffled.shuffle(split)
    assert events_of(*split) == events_of(*rows)


def long_trace(begins: bool) -> bytes:
    sizes = [2**power for power in range(6, 17) for _ in range(12)]
    header = "message_bytes,repetition,hash_us,send_us"
    rows = [
        f"{size},{i % 12},{1 + size / 1000:.3f},{2 + size / 500:.3f}"
        for i, size in enumerate(sizes)
    ]
    if begins:
        header += ",message,fragment,hash_begin_ns,send_begin_ns"
        rows = [f"{row},{i},0,{i * 10**6},{i * 10**6 + 10**5}" for i, row in enumerate(rows)]
    return text_of(*rows, header=header).encode()


class TestFits:
    def test_a_fit_is_the_same_with_begins_and_has_them(self) -> None:
        plain, begun = (fit([read(long_trace(begins))]) for begins in (False, True))
        assert plain.events is None
        assert begun.events is not None
        assert len(begun.events) == 132
        assert replace(begun, understood=(), events=None) == replace(plain, understood=())

    def test_they_are_not_sent_elsewhere(self) -> None:
        found = fit([read(long_trace(True))])
        copied = pickle.loads(pickle.dumps(found))
        assert copied == found
        assert copied.events is None

    def test_parts_and_several_files_keep_them(self) -> None:
        reading = read(long_trace(True))
        part = part_within(reading.trace, 64, 1024)
        assert isinstance(part, DirectTrace)
        assert isinstance(reading.trace, DirectTrace)
        assert part.events is reading.trace.events
        both = join([reading, reading])
        assert isinstance(both, DirectTrace)
        assert both.events is not None
        assert list(both.events.message) == list(range(264))
        later = 131 * 10**6 + 10**5 + 133_072
        assert list(both.events.begin_ns[0])[132:134] == [later, later + 10**6]
        one_without = join([reading, read(long_trace(False))])
        assert isinstance(one_without, DirectTrace)
        assert one_without.events is None

    def test_groups_leave_the_steps_in_the_events(self) -> None:
        from domain.fit import Combine, StepGroup

        options = FitOptions(groups=(StepGroup("both", ("hash", "send"), Combine.SEQUENCE),))
        found = fit([read(long_trace(True))], options)
        assert [stage.name for stage in found.stages] == ["both"]
        assert found.events is not None
        assert found.events.stages == ("hash", "send")
