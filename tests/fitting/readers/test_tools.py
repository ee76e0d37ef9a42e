"""Readers of other tools' output, on files in the layouts that the tools print."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

import pytest

from domain.errors import UnreadableTrace
from domain.measurement import (
    DirectTrace,
    MessageTrace,
    Reading,
    Samples,
    SignatureTrace,
    TraceKind,
)
from domain.trace_formats import UnrecognisedTrace
from fitting import read
from fitting.detect import READERS, nearest_formats, reader_of
from fitting.plain_text import cleaned

TRACES = Path(__file__).parents[2] / "data" / "traces"
EXAMPLE = Path(__file__).parents[3] / "examples" / "local-path-direct.csv"
FORMATS = {
    "osu-latency-v5.txt": "OSU micro-benchmarks",
    "osu-latency-v7-validated.txt": "OSU micro-benchmarks",
    "osu-latency-and-bw.txt": "OSU micro-benchmarks",
    "osu-bw-mailing-list.html": "OSU micro-benchmarks",
    "osu-bibw.txt": "OSU micro-benchmarks",
    "osu-v2-mailing-list.html": "OSU micro-benchmarks",
    "osu-cuda-full.txt": "OSU micro-benchmarks",
    "osu-with-others.txt": "OSU micro-benchmarks",
    "imb-pingpong.txt": "Intel MPI Benchmarks",
    "imb-mailing-list.html": "Intel MPI Benchmarks",
    "imb-p2p.txt": "Intel MPI Benchmarks",
    "imb-checked-groups.txt": "Intel MPI Benchmarks",
    "perftest-write-lat.txt": "perftest",
    "perftest-read-lat.txt": "perftest",
    "perftest-write-bw.txt": "perftest",
    "perftest-send-bw-gbit.txt": "perftest",
    "perftest-cycles.txt": "perftest",
    "perftest-send-lat-unsorted.txt": "perftest",
    "perftest-write-duration.txt": "perftest",
    "perftest-bidirectional.txt": "perftest",
    "ucx-batch.csv": "ucx_perftest CSV",
    "ucx-plain.csv": "ucx_perftest CSV",
    "ucx-batch-files.csv": "ucx_perftest CSV",
    "ucx-get.csv": "ucx_perftest CSV",
    "ucx-commands.csv": "ucx_perftest CSV",
    "ucx-table.txt": "ucx_perftest output",
    "ucx-two-logs.txt": "ucx_perftest output",
    "ucx-client.txt": "ucx_perftest output",
    "netgauge-loggp.out": "Netgauge LogGP",
    "simgrid-pingpong.csv": "SimGrid calibration CSV",
    "simgrid-isend.csv": "SimGrid calibration CSV",
    "pycewise.csv": "pycewise CSV",
    "nccl-sendrecv.txt": "nccl-tests",
    "fio.json": "fio JSON",
    "fio-clat.log": "fio latency log",
    "iperf3.json": "iperf3 JSON",
    "sockperf.csv": "sockperf full log",
    "perftest.json": "perftest JSON",
    "npkit.json": "NPKit trace",
    "nvbandwidth.txt": "nvbandwidth",
    "cuda-bandwidth.txt": "CUDA bandwidthTest",
    "mpi4py-pingpong.txt": "mpi4py.bench pingpong",
    "netpipe.out": "NetPIPE",
    "netpipe-screen.txt": "NetPIPE",
    "messages.csv": "message CSV",
    "signature.csv": "signature CSV",
    "nixlbench.txt": "nixlbench",
    "nixlbench.csv": "nixlbench",
    "fi-pingpong.txt": "fi_pingpong",
    "mooncake-bench.txt": "transfer_engine_bench",
    "tebench.txt": "tebench",
    "rccl-sendrecv.txt": "nccl-tests",
    "rccl-results.json": "rccl-tests results",
    "rccl-results.csv": "rccl-tests results",
    "imb-uniband.txt": "Intel MPI Benchmarks",
    "osu-mbw-mr-one-pair.txt": "OSU micro-benchmarks",
    "ucx-without-stage.txt": "ucx_perftest output",
    "direct.json": "JSON",
    "indirect.json": "JSON",
}


def content_of(name: str) -> bytes:
    return (TRACES / name).read_bytes()


def understood(reading: Reading) -> dict[str, str]:
    return dict(reading.understood)


def messages(reading: Reading) -> MessageTrace:
    assert isinstance(reading.trace, MessageTrace)
    return reading.trace


def pairs(samples: Samples | None) -> list[tuple[int, float]]:
    assert samples is not None
    return list(zip(samples.message_bytes, samples.times_us, strict=True))


def near(expected: Sequence[tuple[int, float]]) -> list[tuple[int, object]]:
    return [(size, pytest.approx(time_us, rel=1e-9)) for size, time_us in expected]


def near_us(time_us: float) -> list[object]:
    return [pytest.approx(time_us, rel=1e-9)]


class TestRecognition:
    """Each file is claimed by one reader, and what nothing claims is refused in words."""

    @pytest.mark.parametrize("name", FORMATS)
    def test_one_reader_claims_each_file(self, name: str) -> None:
        head = cleaned(content_of(name)).content.decode()
        claims = [reader.format for reader in READERS if reader.detects(head)]
        assert claims == [FORMATS[name]]

    def test_the_example_is_a_direct_trace(self) -> None:
        assert reader_of(EXAMPLE.read_bytes()).format == "direct CSV"

    @pytest.mark.parametrize(
        ("content", "rule"),
        [
            (b"", "empty"),
            (b" \n\t\n", "empty"),
            (b"\x7fELF\x02\x01\x01\x00\x00", "NUL"),
            ("message_bytes,repetition".encode("utf-16"), "UTF-16"),
            (gzip.compress(b"message_bytes,repetition,copy_us\n64,0,1\n", mtime=0), "gzip"),
            (b"hello world\n1 2 3\n", "not recognised as any .*OSU .*perftest.*JSON"),
            (b"\x80\x81\x82,1,2", "not recognised"),
        ],
    )
    def test_what_nothing_claims_is_refused(self, content: bytes, rule: str) -> None:
        with pytest.raises(UnreadableTrace, match=rule):
            read(content)

    @pytest.mark.parametrize("name", FORMATS)
    def test_each_file_lacks_nothing_of_its_format(self, name: str) -> None:
        """So that what a refused file is told to lack is what all others have."""
        nearest, *_ = nearest_formats(cleaned(content_of(name)).content.decode(), READERS)
        assert (nearest.format, nearest.missing) == (FORMATS[name], ())

    @pytest.mark.parametrize(
        ("text", "nearest", "lacks"),
        [
            (
                "node,copy_us\n64,1\n",
                "direct CSV",
                "line 1 lacks message_bytes as the first",
            ),
            ("\n# Size   Latency (us)\n1  2.4\n", "OSU micro-benchmarks", "line 2 lacks its title"),
            ("#bytes #repetitions t_min\n", "Intel MPI Benchmarks", "lacks a column t[usec]"),
            ("size,time\n64,1\n", "message CSV", "lacks a column latency_us"),
            ("MPI_Send 64 1.0 0.1\n", "SimGrid calibration CSV", "lacks commas"),
        ],
    )
    def test_what_is_nearest_comes_first(self, text: str, nearest: str, lacks: str) -> None:
        with pytest.raises(UnrecognisedTrace) as refusal:
            read(text.encode())
        assert refusal.value.nearest[0].format == nearest
        assert lacks in refusal.value.detail
        assert len(refusal.value.detail) < 250

    @pytest.mark.parametrize(
        ("text", "columns"),
        [
            (
                "tasks,part_size,p99 (ms),p50 (ms)\n1,64,3,1\n1,128,6,2\n",
                "size=part_size,time=p50 (ms)",
            ),
            (
                "a log\n\n| Chunk | Time |\n|--|--|\n| 64 KiB | 1 ms |\n| 1 MiB | 2 ms |\n",
                "size=Chunk,time=Time",
            ),
            (
                "Object Size   Mean Lat. (us)\n64   1\n128   2\n",
                "size=Object Size,time=Mean Lat. (us)",
            ),
            ('"" "bytes" "usec"\n"1" 64 1\n"2" 128 2\n', "size=bytes,time=usec"),
            (
                "+---+---+\n| MsgSize (B) | Avg Bw (GB/s) |\n+---+---+\n| 64 | 3 |\n| 128 | 4 |\n",
                "size=MsgSize (B),rate=Avg Bw (GB/s)",
            ),
            ("block, bytes;x:y=time_us\n64;1\n128;2\n", "size=#1,time=#2"),
        ],
    )
    def test_a_table_is_told_how_its_columns_are_named(self, text: str, columns: str) -> None:
        """And is read so, where a unit is known."""
        with pytest.raises(UnrecognisedTrace) as refusal:
            read(text.encode())
        assert f"--columns {quote(columns)} (columns)" in refusal.value.detail
        if "#" not in columns:
            assert len(read(text.encode(), columns=columns).trace) == 2

    def test_so_is_a_csv_like_ours(self) -> None:
        """Not one that names its sizes as ours do."""
        rows = ",latency_us,errors\n64,3,0\n128,4,0\n"
        with pytest.raises(UnreadableTrace) as refusal:
            read(f"size{rows}".encode())
        assert refusal.value.detail.endswith("--columns size=size,time=latency_us (columns)")
        assert len(read(f"size{rows}".encode(), columns="size=size,time=latency_us").trace) == 2
        with pytest.raises(UnreadableTrace) as refusal:
            read(f"message_bytes{rows}".encode())
        assert "--columns" not in refusal.value.detail

    @pytest.mark.parametrize(
        "text",
        [
            "50000 records sent, 980 records/sec (95.7 MB/sec), 4 ms avg latency\n",
            "Latency,Jitter\n1,2\n3,4\n",
        ],
    )
    def test_what_is_no_table_of_sizes_is_told_of_tables(self, text: str) -> None:
        with pytest.raises(UnrecognisedTrace, match="a table is read once its columns are named"):
            read(text.encode())

    @pytest.mark.parametrize(
        ("header", "ours", "about"),
        [
            ("bytes,copy", "message_bytes,copy_us", "each stage"),
            ("size,time", "message_bytes,latency_us", "one-way latency"),
            ("bytes\tcopy [us]\twire [us]", "message_bytes,copy_us,wire_us", "commas"),
            ("message bytes,rep,pack_ns", "message_bytes,pack_us", "all times in µs"),
            ("size,inter-arrival (us)", "message_bytes,interarrival_us", "back-to-back"),
            ("64,1.5,2.5", "message_bytes,stage1_us,stage2_us", "each stage"),
        ],
    )
    def test_a_simple_header_is_told_how_it_would_be_read(
        self, header: str, ours: str, about: str
    ) -> None:
        """And a file that is written so is read."""
        with pytest.raises(UnrecognisedTrace) as refusal:
            read(f"{header}\n".encode())
        hint = refusal.value.hint
        assert hint is not None
        assert hint.header == ours
        assert about in hint.about
        assert len(read(f"{hint.header}\n{hint.row}\n".encode()).trace) == 1

    def test_names_that_are_no_names_are_not_repeated(self) -> None:
        """Nothing of a file but short plain names comes back."""
        with pytest.raises(UnrecognisedTrace) as refusal:
            read(("bytes,<script>,\x1b[31m," + "x" * 9000 + "\n").encode())
        assert refusal.value.hint is not None
        assert refusal.value.hint.header == "message_bytes,stage1_us,stage2_us,stage3_us"

    @pytest.mark.parametrize("name", FORMATS)
    @pytest.mark.parametrize("kind", list(TraceKind))
    def test_a_kind_that_contradicts_the_file_is_refused(self, name: str, kind: TraceKind) -> None:
        """`kind` is checked, never believed."""
        try:
            reading = read(content_of(name), kind=kind)
        except UnreadableTrace:
            return
        assert reading.trace.kind is kind


class TestOsu:
    """Half round trips in µs; MB/s of 10^6 bytes."""

    def test_latency(self) -> None:
        reading = read(content_of("osu-latency-v5.txt"))
        trace = messages(reading)
        assert trace.kind is TraceKind.END_TO_END
        assert pairs(trace.latency)[:2] == [(1, 1.19), (64, 1.31)]
        stated = understood(reading)
        assert stated["tool_version"] == "5.3.2"
        assert stated["latency_is"] == "half a round trip"
        assert stated["rows_left_out"] == "1: 1 of 0 bytes"

    def test_validation_and_nan(self) -> None:
        reading = read(content_of("osu-latency-v7-validated.txt"))
        assert [size for size, _ in pairs(messages(reading).latency)] == [1, 2, 4096, 65536]
        assert understood(reading)["rows_left_out"] == "2: 1 with failed validation; 1 not finite"

    def test_several_runs_and_tests_in_one_file(self) -> None:
        reading = read(content_of("osu-latency-and-bw.txt"))
        trace = messages(reading)
        assert trace.kind is TraceKind.INDIRECT
        assert len(pairs(trace.latency)) == 8
        expected = [(1024, 1024 / 1120.45), (65536, 65536 / 5210.30), (1048576, 1048576 / 5880.12)]
        assert pairs(trace.interarrival) == near(expected)
        assert understood(reading)["runs"] == "3"
        assert "printed as 0" in understood(reading)["rows_left_out"]

    def test_a_copy_from_a_mailing_list(self) -> None:
        reading = read(content_of("osu-bw-mailing-list.html"))
        expected = [(1, 1 / 1.2), (1024, 1.6), (65536, 65536 / 1100.25)]
        assert pairs(messages(reading).interarrival) == near(expected)

    def test_both_directions_at_once_are_refused(self) -> None:
        with pytest.raises(UnreadableTrace, match=r"Bi-Directional.*share the stages"):
            read(content_of("osu-bibw.txt"))


class TestImb:
    """t[usec] of PingPong."""

    def test_pingpong_among_others(self) -> None:
        reading = read(content_of("imb-pingpong.txt"))
        expected = [(1, 2.26), (64, 2.36), (4096, 4.11), (65536, 15.02), (1048576, 182.40)]
        assert pairs(messages(reading).latency) == expected
        stated = understood(reading)
        assert stated["statistic"] == "mean over 40 to 1000 repetitions"
        assert stated["benchmarks_left_out"] == "Sendrecv"
        assert stated["rows_left_out"] == "2: 1 of 0 bytes; 1 cut off or not a number"

    def test_a_copy_from_a_mailing_list(self) -> None:
        reading = read(content_of("imb-mailing-list.html"))
        assert pairs(messages(reading).latency) == [(1, 1.54), (2048, 2.90)]

    def test_without_pingpong_it_is_refused(self) -> None:
        content = content_of("imb-pingpong.txt").split(b"# Benchmarking PingPong")[0]
        tail = content_of("imb-pingpong.txt").split(b"# Benchmarking Sendrecv")[1]
        with pytest.raises(UnreadableTrace, match=r"no PingPong .*, only Sendrecv:"):
            read(content + b"# Benchmarking Sendrecv" + tail)


class TestPerftest:
    """The typical (median) time; warnings inside the table."""

    def test_write_latency_with_warnings_and_tabs(self) -> None:
        reading = read(content_of("perftest-write-lat.txt"))
        assert pairs(messages(reading).latency) == [(2, 1.90), (4096, 3.05), (65536, 8.21)]
        assert understood(reading)["latency_is"] == "half a round trip"
        assert [notice.code for notice in reading.notices] == ["tool_warned"]

    def test_a_read_is_a_whole_operation(self) -> None:
        reading = read(content_of("perftest-read-lat.txt"))
        assert pairs(messages(reading).latency) == [(2, 4.83), (8192, 6.25)]
        assert [notice.code for notice in reading.notices] == ["read_is_round_trip"]

    def test_bandwidth_in_mebibytes(self) -> None:
        reading = read(content_of("perftest-write-bw.txt"))
        expected = [(4096, 4096 / (9050.11 * 2**20) * 1e6), (65536, 62500 / 10401.68)]
        assert pairs(messages(reading).interarrival) == near(expected)

    def test_bandwidth_in_gigabits(self) -> None:
        reading = read(content_of("perftest-send-bw-gbit.txt"))
        expected = [(2, 16 / 58.226), (4194304, 4194304 * 8 / 165.55e3)]
        assert pairs(messages(reading).interarrival) == near(expected)

    def test_cycles_are_no_times(self) -> None:
        with pytest.raises(UnreadableTrace, match=r"line 1: the times are in cycles"):
            read(content_of("perftest-cycles.txt"))


class TestUcx:
    """The size comes from the test's name, or from bandwidth over message rate."""

    def test_a_batch(self) -> None:
        trace = messages(read(content_of("ucx-batch.csv")))
        assert pairs(trace.latency) == [(8, 2.012), (4096, 4.020)]
        assert pairs(trace.interarrival) == near([(65536, 1e6 / 87704)])

    @pytest.mark.parametrize(
        ("kind", "times"),
        [
            (TraceKind.END_TO_END, [(4096, 4.020), (65536, 11.020)]),
            (TraceKind.INDIRECT, [(4096, 1e6 / 243309), (65536, 1e6 / 87704)]),
        ],
    )
    def test_without_names_the_user_says_what_it_is(
        self, kind: TraceKind, times: list[tuple[int, float]]
    ) -> None:
        reading = read(content_of("ucx-plain.csv"), kind=kind)
        trace = messages(reading)
        assert pairs(trace.interarrival or trace.latency) == near(times)
        assert "several threads" in understood(reading)["rows_left_out"]

    def test_without_names_and_kind_it_is_refused(self) -> None:
        with pytest.raises(UnreadableTrace, match=r"pass kind end_to_end .* indirect"):
            read(content_of("ucx-plain.csv"))


class TestNetgauge:
    """PRTT(n,d,s) by the sender, o_r by the receiver; its own regression is not used."""

    def test_signature(self) -> None:
        reading = read(content_of("netgauge-loggp.out"))
        trace = reading.trace
        assert isinstance(trace, SignatureTrace)
        assert not trace.handles_replies
        rows = list(zip(trace.message_bytes, trace.bursts, trace.computation_us, strict=True))
        assert rows[:4] == [(1, 10, 0.0), (1, 10, 10.25), (1025, 10, 0.0), (1025, 10, 12.25)]
        assert list(trace.cost_us[:2]) == pytest.approx([2.0, (131.5 - 10.25) / 9])
        assert pairs(trace.round_trip) == [(1, 10.25), (1025, 12.25), (2049, 14.5)]
        assert pairs(trace.receive) == [(1, 2.21), (1025, 2.33)]
        assert "receive overheads below 0" in understood(reading)["rows_left_out"]
        assert "cut off" in understood(reading)["rows_left_out"]


class TestSimGrid:
    """Seconds; a send and the receive of its answer are one round trip."""

    def test_pingpong(self) -> None:
        reading = read(content_of("simgrid-pingpong.csv"))
        assert pairs(messages(reading).latency) == near([(4096, 100.0), (64, 50.0), (4096, 101.0)])
        stated = understood(reading)
        assert stated["time_unit"] == "s, turned into µs"
        assert stated["calls_left_out"].startswith("1:")
        assert stated["rows_left_out"] == "1: 1 of 0 bytes"

    def test_sends_and_receives_alone_are_stages(self) -> None:
        rows = b"MPI_Recv,4096,32.6,3.000000e-06\nMPI_Test,1,32.6,1.000000e-06\n"
        reading = read(content_of("simgrid-isend.csv") + rows)
        assert isinstance(reading.trace, DirectTrace)
        assert reading.trace.stage_names == ("MPI_Isend", "MPI_Recv")
        assert list(reading.trace.message_bytes) == [4096]
        assert [list(times) for times in reading.trace.stage_us] == [near_us(2.1), near_us(3.0)]
        stated = understood(reading)
        assert stated["calls_left_out"] == "MPI_Test"
        assert stated["rows_left_out"] == "1: 1 without a time of every other stage"

    def test_costs_of_other_calls_are_refused(self) -> None:
        with pytest.raises(UnreadableTrace, match=r"no ping-pong .* only MPI_Test"):
            read(b"MPI_Test,64,32.6,1.000000e-06\n")


class TestPycewise:
    """size, duration; the unit is assumed, and that is said."""

    def test_seconds_are_assumed(self) -> None:
        reading = read(content_of("pycewise.csv"))
        expected = [(64, 23.1), (4096, 46.2), (65536, 212.0)]
        assert pairs(messages(reading).latency) == near(expected)
        assert [notice.code for notice in reading.notices] == ["unit_assumed"]

    def test_a_column_that_names_its_unit(self) -> None:
        reading = read(b"size,duration_us\n64,23.1\n128,24\n")
        assert pairs(messages(reading).latency) == [(64, 23.1), (128, 24.0)]
        assert not reading.notices


class TestOwnFormats:
    """What the project itself defines."""

    def test_messages(self) -> None:
        trace = messages(read(content_of("messages.csv")))
        assert pairs(trace.latency) == [(1024, 40.5), (1024, 41.0), (65536, 820.0)]
        assert pairs(trace.interarrival) == [(1024, 12.5), (65536, 310.5), (65536, 311.0)]

    def test_latencies_alone_are_end_to_end_and_no_stage(self) -> None:
        reading = read(b"message_bytes,repetition,latency_us\n64,0,9\n128,0,10\n")
        assert reading.trace.kind is TraceKind.END_TO_END

    def test_signature(self) -> None:
        trace = read(content_of("signature.csv")).trace
        assert isinstance(trace, SignatureTrace)
        assert trace.handles_replies
        assert list(trace.cost_us) == [2.9, 5.8, 24.9]
        assert pairs(trace.round_trip) == [(16, 21.6)]

    def test_direct_json(self) -> None:
        trace = read(content_of("direct.json")).trace
        assert isinstance(trace, DirectTrace)
        assert trace.stage_names == ("copy", "wire")
        assert trace.stage_us[1] == (8.0, 9.5, 40.25)
        assert trace.total_us == (8.4, 10.7, 52.25)

    @pytest.mark.parametrize(
        ("content", "rule"),
        [
            (
                b"message_bytes,repetition,latency_us\n64,0,nan\n",
                "line 2, column 3: expected a time",
            ),
            (b"message_bytes,repetition,latency_us\n0,0,1\n", "line 2, column 1: expected a whole"),
            (b"message_bytes,repetition,latency_us\n64,0\n", "line 2: expected 3 columns, got 2"),
            (b"message_bytes,repetition,latency_us\n64,0,\n", "at least one row with a time"),
            (b"message_bytes,burst,computation_us,cost_us\n64,0,1,2\n", "line 2, column 2"),
            (b"message_bytes,burst,computation_us,cost_us\n64,1,,2\n", "got an empty field"),
            (b'{"kind": "direct"}', "message_bytes: expected a list"),
            (b'{"kind": "indirect", "x": 1}', "x: not a key of indirect traces"),
            (b'{"kind": "osu"}', "kind: expected one of direct"),
            (
                b'{"kind": "end_to_end", "latency": {"message_bytes": [1], "time_us": [1e999]}}',
                "0 to",
            ),
            (
                b'{"kind": "end_to_end", "latency": {"message_bytes": [1], "time_us": [NaN]}}',
                "finite",
            ),
            (b'{"kind": ', "not JSON, line 1"),
            (b"[" * 100_000, "not recognised"),
            (b'{"a":' * 100_000, "nested too deeply|not JSON"),
        ],
    )
    def test_rules(self, content: bytes, rule: str) -> None:
        with pytest.raises(UnreadableTrace, match=rule):
            read(content)


class TestOddities:
    """Layouts that tools print now and then, and what cannot be told."""

    def test_a_key_given_twice_is_refused(self) -> None:
        with pytest.raises(UnreadableTrace, match="kind: given twice"):
            read(b'{"kind": "logp", "kind": "direct"}')

    def test_columns_of_different_lengths_name_the_column(self) -> None:
        content = b'{"kind": "end_to_end", "latency": {"message_bytes": [1, 2], "time_us": [1]}}'
        with pytest.raises(UnreadableTrace, match=r"latency\.time_us: expected 2 numbers"):
            read(content)

    def test_simgrid_with_a_header_line(self) -> None:
        content = b"op,size,start,duration\nMPI_Recv,64,1.0,3.0e-05\nMPI_Send,64,1.0,1.0e-05\n"
        assert pairs(messages(read(content)).latency) == near([(64, 20.0)])

    def test_netgauge_prints_a_row_twice_at_a_switch(self) -> None:
        content = content_of("netgauge-loggp.out").splitlines(keepends=True)
        again = read(b"".join([*content[:4], *content[3:]]))
        assert again.trace == read(b"".join(content)).trace
        assert "1 printed twice" in understood(again)["rows_left_out"]

    def test_what_netgauge_prints_on_the_screen_holds_no_times(self) -> None:
        with pytest.raises(UnreadableTrace, match="which it writes with -o FILE"):
            read(b" L=5.1  s=1  o_s=2.0  o_r=1.0  g=0.2 \n")

    def test_two_columns_without_a_header_need_a_kind(self) -> None:
        content = b"64,0.00002\n128,0.00003\n"
        with pytest.raises(UnreadableTrace, match="do not say what was timed"):
            read(content)
        trace = messages(read(content, kind=TraceKind.INDIRECT))
        assert pairs(trace.interarrival) == near([(64, 20.0), (128, 30.0)])

    def test_two_operations_in_one_file_are_refused(self) -> None:
        with pytest.raises(UnreadableTrace, match="line 3: a second operation"):
            read(b"op,size,duration\nSend,64,0.1\nRecv,64,0.2\n")

    def test_empty_fields_in_many_rows(self) -> None:
        """Rows taken a chunk at a time keep what was not measured apart."""
        body = "".join(f"{64 + n},{n},{n},\n{64 + n},{n},,{n}\n" for n in range(1, 5000))
        trace = messages(
            read(f"message_bytes,repetition,latency_us,interarrival_us\n{body}".encode())
        )
        assert trace.latency is not None
        assert trace.interarrival is not None
        assert len(trace.latency) == len(trace.interarrival) == 4999
        assert list(trace.latency.times_us) == list(range(1, 5000))

    def test_ping_pongs_of_one_start_are_paired_in_order(self) -> None:
        """Clocks are coarse: two ping-pongs may begin at the same printed time."""
        rows = ((call, n) for n in (1, 2) for call in ("MPI_Send", "MPI_Recv"))
        content = "".join(f"{call},64,1.000000,{n}.000000e-05\n" for call, n in rows)
        assert pairs(messages(read(content.encode())).latency) == near([(64, 10.0), (64, 20.0)])
