"""Times below 0, as differences of noisy times are now and then: left out, counted, and said."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import UnreadableTrace
from domain.measurement import DirectTrace, MessageTrace, Reading, SignatureTrace
from fitting import fit, read


def notice_of(reading: Reading) -> str:
    return next(notice.detail for notice in reading.notices if notice.code == "times_below_zero")


def differences(rows: int = 150, below: int = 4) -> tuple[list[int], list[float]]:
    """Times of 10 sizes, so many of them below 0."""
    sizes = [1024 * (row % 10 + 1) for row in range(rows)]
    times = [size / 1000.0 + 0.25 * (row % 3) for row, size in enumerate(sizes)]
    for row in range(below):
        times[7 * row] = -0.5
    return sizes, times


def direct(times: list[float], sizes: list[int], last: str = "") -> bytes:
    rows = [
        f"{size},{at},{time},2.0" for at, (size, time) in enumerate(zip(sizes, times, strict=True))
    ]
    return "\n".join(["message_bytes,repetition,copy_us,wire_us", *rows, last]).encode()


class TestEachFormat:
    def test_four_rows_of_a_trace(self) -> None:
        """The whole row goes: its other times are of the same message."""
        sizes, times = differences()
        reading = read(direct(times, sizes))
        assert isinstance(reading.trace, DirectTrace)
        assert len(reading.trace) == 146
        assert min(reading.trace.stage_us[0]) >= 0.0
        assert dict(reading.understood)["rows_left_out"] == "4: 4 with a time below 0"
        assert notice_of(reading).startswith("4 of 150 times are below 0")
        assert "times_below_zero" in [notice.code for notice in fit([reading]).notices]

    def test_rows_read_one_by_one_are_the_same(self) -> None:
        """A quoted field makes that necessary."""
        sizes, times = differences()
        quick = read(direct(times, sizes, "1024,200,1.5,2.0"))
        slow = read(direct(times, sizes, '1024,200,"1.5",2.0'))
        assert quick.understood == slow.understood
        assert quick.notices == slow.notices
        assert quick.trace.stage_us[0].tolist() == slow.trace.stage_us[0].tolist()  # type: ignore[union-attr]

    @pytest.mark.parametrize("quoted", [False, True])
    def test_a_time_of_a_message_that_may_be_absent(self, quoted: bool) -> None:
        """The row's other time stays."""
        last = '"40.0"' if quoted else "40.0"
        reading = read(
            b"message_bytes,repetition,latency_us,interarrival_us\n"
            b"64,0,20,10\n64,1,21,-1\n128,0,-3,12\n128,1,30,\n" + f"256,0,{last},15\n".encode()
        )
        assert isinstance(reading.trace, MessageTrace)
        assert reading.trace.latency is not None
        assert reading.trace.interarrival is not None
        assert list(reading.trace.latency.times_us) == [20.0, 21.0, 30.0, 40.0]
        assert list(reading.trace.interarrival.times_us) == [10.0, 12.0, 15.0]
        assert notice_of(reading).startswith("2 of 9 times are below 0")

    def test_costs_of_a_signature(self) -> None:
        reading = read(
            b"message_bytes,burst,computation_us,cost_us\n16,1,0,2.9\n16,2,0,-2\n16,4,0,3\n"
            b"message_bytes,repetition,round_trip_us\n16,0,25.1\n16,1,-25.1\n"
        )
        assert isinstance(reading.trace, SignatureTrace)
        assert list(reading.trace.cost_us) == [2.9, 3.0]
        assert reading.trace.round_trip is not None
        assert list(reading.trace.round_trip.times_us) == [25.1]
        assert "times_below_zero" in [notice.code for notice in reading.notices]

    def test_columns_of_json(self) -> None:
        sizes, times = differences(20, 2)
        document = {
            "kind": "direct",
            "message_bytes": sizes,
            "stages": [{"name": "copy", "time_us": times}, {"time_us": [1] * 20}],
            "total_us": [3.0] * 20,
        }
        reading = read(json.dumps(document).encode())
        assert isinstance(reading.trace, DirectTrace)
        assert len(reading.trace) == len(reading.trace.total_us or ()) == 18
        assert notice_of(reading).startswith("2 of 20 times are below 0")
        samples = {"message_bytes": sizes, "time_us": times}
        messages = read(json.dumps({"kind": "end_to_end", "latency": samples}).encode())
        assert len(messages.trace) == 18
        assert notice_of(messages).startswith("2 of 20")

    def test_a_table_and_the_output_of_a_tool(self) -> None:
        table = read(b"bytes;took\n64;1.5\n128;-1\n256;2.5\n", columns="size=bytes,time=took:us")
        assert notice_of(table).startswith("1 of 3 times is below 0")
        osu = read(b"# OSU MPI Latency Test v7.0\n# Size Latency (us)\n64 2.0\n128 -1.0\n256 3.0\n")
        assert notice_of(osu).startswith("1 of 3 times is below 0")

    def test_a_reading_of_0_stays(self) -> None:
        """A clock that steps shows it."""
        sizes, times = differences(20, 0)
        reading = read(direct([0.0, -0.0, *times[2:]], sizes))
        assert len(reading.trace) == 20
        assert reading.notices == ()


class TestTooMany:
    @pytest.mark.parametrize("below", [11, 20])
    def test_more_than_half_are_refused(self, below: int) -> None:
        sizes, times = differences(20, 0)
        times = [-time if row < below else time for row, time in enumerate(times)]
        documents = (
            direct(times, sizes),
            json.dumps(
                {"kind": "end_to_end", "latency": {"message_bytes": sizes, "time_us": times}}
            ).encode(),
            "\n".join(
                [
                    "message_bytes,latency_us",
                    *(f"{a},{b}" for a, b in zip(sizes, times, strict=True)),
                ]
            ).encode(),
        )
        for content in documents:
            with pytest.raises(UnreadableTrace) as caught:
                read(content)
            assert f"{below} of 20 times are below 0" in caught.value.detail
            assert caught.value.field == "measurements"

    def test_half_of_them_are_not(self) -> None:
        sizes, times = differences(20, 0)
        times = [-1.0 if row < 10 else time for row, time in enumerate(times)]
        assert len(read(direct(times, sizes)).trace) == 10

    def test_what_is_no_time_is_refused_as_before(self) -> None:
        with pytest.raises(UnreadableTrace, match="line 2, column 3: expected a time from 0"):
            read(b"message_bytes,repetition,copy_us\n64,0,-2e12\n64,1,1\n128,0,2\n")


@given(st.lists(st.floats(-100.0, 100.0), min_size=4, max_size=40))
def test_any_rows(times: list[float]) -> None:
    """What stays are the rows that are not below 0, in their order, by either way of reading."""
    kept = [time for time in times if not time < 0.0]
    sizes = [64 * (at % 4 + 1) for at in range(len(times))]
    for content in (direct(times, sizes), direct(times, sizes, '64,0,"-1",1')):
        below = len(times) - len(kept) + (b'"' in content)
        if below > len(kept):
            with pytest.raises(UnreadableTrace, match="below 0"):
                read(content)
            continue
        trace = read(content).trace
        assert isinstance(trace, DirectTrace)
        assert np.array_equal(np.asarray(trace.stage_us[0]), np.array(kept))
