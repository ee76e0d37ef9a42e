"""Output of tools that time devices and the paths between them: nccl-tests, fio, copies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from domain.conditions import RowChoice
from domain.errors import UnreadableTrace
from domain.measurement import DirectTrace, Reading
from fitting import read
from tests.fitting.readers.test_tools import content_of, messages, near, pairs, understood


def stages(reading: Reading) -> dict[str, list[tuple[int, float]]]:
    trace = reading.trace
    assert isinstance(trace, DirectTrace)
    return {
        name: list(zip(trace.message_bytes, times, strict=True))
        for name, times in zip(trace.stage_names, trace.stage_us, strict=True)
    }


class TestNcclTests:
    """sendrecv_perf, and what is not that."""

    def test_ranks_of_several_tests_are_the_same_ones(self) -> None:
        content = content_of("nccl-sendrecv.txt").decode()
        other = content.replace("sendrecv_perf", "all_reduce_perf")
        ranks = understood(read(content.encode()))["ranks"]
        assert understood(read(f"{content}\n{other}".encode()))["ranks"] == ranks

    def test_out_of_place_times(self) -> None:
        reading = read(content_of("nccl-sendrecv.txt"))
        assert pairs(messages(reading).latency) == [
            (1024, 11.62),
            (4096, 11.90),
            (16384, 13.05),
            (65536, 15.33),
            (1048576, 34.87),
        ]
        stated = understood(reading)
        assert stated["rows_left_out"] == "1: 1 with wrong values"
        assert stated["ranks"] == "2"

    def test_the_document_of_an_output_file(self) -> None:
        """As src/util.cu of 2.17 writes it: nulls, or cpu_time, in places."""
        content = content_of("nccl-sendrecv.json")
        reading = read(content)
        assert pairs(messages(reading).latency)[0] == (1024, 11.62)
        assert len(pairs(messages(reading).latency)) == 6
        assert understood(reading)["runs"] == "1"
        wrong = content.replace(b'"nwrong":0.0', b'"nwrong":3.0', 1)
        wrong = wrong.replace(b'"time":12.3', b'"cpu_time":12.3')
        stated = understood(read(wrong))
        assert stated["rows_left_out"] == "2: 1 with wrong values; 1 without a time of the devices"
        with pytest.raises(UnreadableTrace, match="all_reduce_perf: the time of a collective"):
            read(content.replace(b"sendrecv_perf", b"all_reduce_perf"))
        with pytest.raises(UnreadableTrace, match="not JSON"):
            read(content[:-50])

    def test_the_layout_of_earlier_versions_after_a_command(self) -> None:
        content = (
            b"$ mpirun -np 2 ./build/sendrecv_perf -b 8\n"
            b"#       size         count      type     time   algbw   busbw  error     time\n"
            b"          64            16     float     7.10    0.01    0.01  0e+00     7.00\n"
            b"         128            32               7.20    0.01    0.01  0e+00     7.00\n"
            b"         256            64     float     7.3"
        )
        reading = read(content)
        assert pairs(messages(reading).latency) == [(64, 7.1), (128, 7.2)]
        assert understood(reading)["rows_left_out"] == "1: 1 cut off or not a number"

    @pytest.mark.parametrize("name", ["all_reduce_perf", "broadcast_perf", "alltoall_perf"])
    def test_collectives_are_refused_by_name(self, name: str) -> None:
        content = content_of("nccl-sendrecv.txt").replace(b"sendrecv_perf", name.encode())
        with pytest.raises(UnreadableTrace, match=f"{name}: the time of a collective"):
            read(content)

    def test_collectives_beside_it_are_left_out(self) -> None:
        content = content_of("nccl-sendrecv.txt")
        both = content.replace(b"sendrecv_perf", b"all_gather_perf") + content
        reading = read(both)
        assert reading.trace == read(content).trace
        assert understood(reading)["tests_left_out"] == "all_gather_perf"

    def test_timestamps_iterations_and_suffixed_programs(self) -> None:
        """As src/util.cu prints rows with -S and per iteration, of a program built for MPI."""
        one = "time algbw busbw #wrong i_min i_max i_p99 i_cv%"
        content = (
            "# Collective test starting: sendrecv_perf_mpi\n"
            f"# size count type redop root {one} {one} timestamp\n"
            " 1024  256 float sum -1 11.50 0.09 0.09 0 11.50 13.80 13.80 7.42"
            " 11.62 0.09 0.09 N/A 11.50 13.80 13.80 7.42  2026-11-25 01:03:07\n"
            " 4096 1024 float sum -1 14.95 0.27 0.27 0 14.95 17.94 17.94 7.42"
            " 15.10 0.27 0.27 N/A 14.95 17.94 17.94 7.42  2026-11-25 01:03:08\n"
        ).encode()
        assert pairs(messages(read(content)).latency) == [(1024, 11.5), (4096, 14.95)]
        document = content_of("nccl-sendrecv.json")
        suffixed = document.replace(b"sendrecv_perf", b"sendrecv_perf_mpi")
        assert read(suffixed).trace == read(document).trace

    def test_a_test_without_a_name_is_refused(self) -> None:
        lines = content_of("nccl-sendrecv.txt").splitlines(keepends=True)
        with pytest.raises(UnreadableTrace, match="does not say which test it is of"):
            read(b"".join(line for line in lines if b"_perf" not in line))


def fio(jobs: list[dict[str, Any]], **common: str) -> bytes:
    document = {"fio version": "fio-3.33", "global options": common, "jobs": jobs}
    return b"fio: warning\n" + json.dumps(document).encode()


def job(options: dict[str, str], **results: Any) -> dict[str, Any]:
    return {"jobname": "a", "job options": options, **results}


def times(mean_ns: float, ios: int = 4) -> dict[str, Any]:
    return {"total_ios": ios, "io_bytes": ios * 8192, "clat_ns": {"mean": mean_ns, "N": ios}}


class TestJsonThatIsCutOff:
    """As of a run that was stopped."""

    @pytest.mark.parametrize("keep", [0.3, 0.62, 0.95])
    def test_it_says_so(self, keep: float) -> None:
        content = content_of("fio.json")
        with pytest.raises(UnreadableTrace, match=r"not JSON, line .*the file ends there"):
            read(content[: int(keep * len(content))])

    def test_a_mistake_in_the_middle_is_none(self) -> None:
        content = content_of("fio.json").replace(b'"jobs"', b'"jobs" x', 1)
        with pytest.raises(UnreadableTrace, match="not JSON, line") as refusal:
            read(content)
        assert "ends there" not in refusal.value.detail


class TestFio:
    """The stage of storage, one block size a job."""

    def test_deciles_of_each_block_size(self) -> None:
        reading = read(content_of("fio.json"))
        (found,) = stages(reading).values()
        assert [size for size, _ in found] == [4096] * 9 + [65536] * 9 + [1048576] * 9
        printed = json.loads(content_of("fio.json"))["jobs"][0]["read"]["clat_ns"]["percentile"]
        deciles = [printed[f"{tens}0.000000"] / 1e3 for tens in range(1, 10)]
        assert [time_us for _, time_us in found[:9]] == pytest.approx(deciles)
        assert understood(reading)["statistic"] == "deciles from 10 to 90 % of each job"

    def test_means_options_in_common_and_older_versions(self) -> None:
        older = {"total_ios": 4, "clat": {"mean": 2.1}}
        jobs = [job({}, write=times(2000)), job({"bs": "8k,64k"}, write=times(3000))]
        reading = read(fio([*jobs, job({}, write=older)], bs="4k"))
        assert stages(reading) == {"write": [(4096, 2.0), (4096, 2.1), (65536, 3.0)]}
        assert understood(reading)["statistic"] == "mean of each job"

    def test_the_block_size_that_nobody_names_is_measured(self) -> None:
        assert stages(read(fio([job({}, read=times(1000))]))) == {"read": [(8192, 1.0)]}

    def test_reads_and_writes_of_two_jobs_are_two_stages(self) -> None:
        jobs = [job({}, read=times(1000)), job({}, write=times(2000)), job({}, read=times(1500))]
        reading = read(fio(jobs))
        assert stages(reading) == {"read": [(8192, 1.0)], "write": [(8192, 2.0)]}
        assert "without a time of every other stage" in understood(reading)["rows_left_out"]

    @pytest.mark.parametrize(
        ("options", "results", "why"),
        [
            ({"bsrange": "4k-8k"}, {"read": times(1)}, "several block sizes"),
            ({}, {"read": {**times(1), "io_bytes": 3}}, "several block sizes"),
            ({}, {"read": times(1), "write": times(1)}, "reads and writes mixed"),
            ({}, {"trim": times(1)}, "without reads or writes"),
            ({}, {"read": {"total_ios": 1, "io_bytes": 1}}, "without completion latencies"),
            ({}, {"read": {**times(1), "clat_ns": {"mean": "x"}}}, "without completion"),
        ],
    )
    def test_what_is_no_time_of_one_io(
        self, options: dict[str, str], results: dict[str, Any], why: str
    ) -> None:
        with pytest.raises(UnreadableTrace, match=f"no job of fio.*left out are 1 .*{why}"):
            read(fio([job(options, **results)]))
        both = read(fio([job(options, **results), job({}, read=times(1000))]))
        assert stages(both) == {"read": [(8192, 1.0)]}
        assert understood(both)["jobs_left_out"].startswith("1 ")

    @pytest.mark.parametrize(
        ("options", "depth", "at_once"),
        [({"iodepth": "8"}, 8, 8), ({"numjobs": "2", "iodepth": "4"}, 4, 8)],
    )
    def test_several_ios_at_once_are_lanes(
        self, options: dict[str, str], depth: int, at_once: int
    ) -> None:
        """Beside single ones they are taken only if they are chosen."""
        alone = read(fio([job(options, read=times(4000))]))
        assert stages(alone) == {"read": [(8192, 4.0)]}
        (notice,) = alone.notices
        assert (notice.code, notice.values) == ("several_lanes", (("lanes", float(at_once)),))
        both = fio([job(options, read=times(4000)), job({}, read=times(1000))])
        reading = read(both)
        assert stages(reading) == {"read": [(8192, 1.0)]}
        assert reading.notices == ()
        assert understood(reading)["iodepth"] == f"1, of the values 1, {depth}"
        chosen = read(both, choice=RowChoice(where=f"iodepth={depth}"))
        assert stages(chosen) == stages(alone)

    def test_every_io_of_a_log(self) -> None:
        reading = read(content_of("fio-clat.log"))
        found = stages(reading)["read"]
        assert found[:2] == near([(4096, 3392.779), (4096, 145.345)])
        assert [notice.code for notice in reading.notices] == ["unit_assumed"]

    def test_logs_of_mixed_directions_and_of_trims(self) -> None:
        rows = b"1, 2000, 1, 4096, 0\n2, 3000, 1, 4096, 0, 0\n"
        reading = read(rows + b"3, 4000, 2, 4096, 0\n3, 40")
        assert stages(reading) == {"write": [(4096, 2.0), (4096, 3.0)]}
        assert understood(reading)["rows_left_out"].startswith("2: ")
        with pytest.raises(UnreadableTrace, match="reads and writes mixed"):
            read(rows + b"3, 4000, 0, 4096, 0\n")
        with pytest.raises(UnreadableTrace, match="block size and a latency"):
            read(b"1, 2000, 0, 0, 0\n2, 2000, 0, 0, 0\n")

    def test_json_of_no_known_tool_says_what_would_do(self) -> None:
        with pytest.raises(UnreadableTrace, match=r"JSON of fio, iperf3.*read with columns"):
            read(b'{"lat": [1, 2]}')


class TestCopies:
    """nvbandwidth with its command, and bandwidthTest, of several sizes."""

    def test_sizes_are_those_of_the_commands(self) -> None:
        reading = read(content_of("nvbandwidth.txt"))
        small, large = 2**20, 2**24
        expected = [(small, small / 42.10e3), (small, small / 42.31e3)]
        expected += [(large, large / 54.20e3), (large, large / 54.33e3)]
        assert stages(reading) == {"host_to_device_memcpy_ce": near(expected)}
        assert "bidirectional_memcpy_ce: several" in understood(reading)["tests_left_out"]

    def test_without_a_size_in_the_command_it_is_that_of_the_tool(self) -> None:
        content = content_of("nvbandwidth.txt").replace(b" -b 1 ", b" ")
        assert 2**29 in [size for size, _ in stages(read(content))["host_to_device_memcpy_ce"]]

    def test_without_a_command_the_size_is_asked_back(self) -> None:
        content = content_of("nvbandwidth.txt").replace(b"$ ./nvbandwidth", b"$ ./run.sh")
        with pytest.raises(UnreadableTrace, match="without the size of the buffer"):
            read(content)

    def test_a_test_that_shares_its_path_is_refused_alone(self) -> None:
        content = content_of("nvbandwidth.txt")
        command, rest = content[:16], content[content.index(b"Running host_to_device_bidir") :]
        with pytest.raises(UnreadableTrace, match="bidirectional_memcpy_ce: several copies"):
            read(command + b"\n" + rest)

    def test_json_has_the_same_matrices(self) -> None:
        """As json_output.cpp of 0.8 writes them, below the command."""
        content = content_of("nvbandwidth.json.txt")
        small, large = 2**20, 2**24
        expected = [(small, small / 42.10e3), (small, small / 42.31e3)]
        expected += [(large, large / 54.20e3), (large, large / 54.33e3)]
        reading = read(content)
        assert stages(reading) == {"host_to_device_memcpy_ce": near(expected)}
        assert "bidirectional_memcpy_ce: several" in understood(reading)["tests_left_out"]
        assert "host_device_latency_sm: no bandwidth" in understood(reading)["tests_left_out"]
        with pytest.raises(UnreadableTrace, match="without the size of the buffer"):
            read(content.replace(b"$ ./nvbandwidth", b"$ ./run.sh"))
        with pytest.raises(UnreadableTrace, match="not JSON, line"):
            read(content[:-40])

    def test_pairs_that_are_none(self) -> None:
        content = content_of("nvbandwidth.txt").replace(b"42.10", b"  N/A").replace(b"54.20", b"x")
        reading = read(content)
        assert len(stages(reading)["host_to_device_memcpy_ce"]) == 2
        assert understood(reading)["rows_left_out"] == "1: 1 cut off or not a number"

    def test_bandwidth_test_of_either_direction(self) -> None:
        reading = read(content_of("cuda-bandwidth.txt"))
        found = stages(reading)
        assert list(found) == ["host_to_device", "device_to_host"]
        assert found["host_to_device"][:2] == near(
            [(65536, 65536 / 8.7e3), (262144, 262144 / 17.1e3)]
        )

    def test_bandwidth_test_of_earlier_versions_and_of_several_devices(self) -> None:
        content = content_of("cuda-bandwidth.txt").replace(b"GB/s", b"MB/s")
        reading = read(content.replace(b"Host Bandwidth, 1 D", b"Host Bandwidth, 2 D"))
        assert stages(reading)["host_to_device"][0] == near([(65536, 65536 / 8.7 / 1.048576)])[0]
        assert understood(reading)["tests_left_out"].startswith("device_to_host of 2 devices")

    def test_bandwidths_of_0_and_cut_off(self) -> None:
        content = content_of("cuda-bandwidth.txt").replace(b"8.7", b"0.0").split(b"\t\t\t23.9")[0]
        reading = read(content)
        assert [size for size, _ in stages(reading)["host_to_device"]] == [262144]
        assert "printed as 0" in understood(reading)["rows_left_out"]


class TestNpkit:
    """Events with a beginning and an end; each kind is a stage."""

    def test_each_kind_of_event_is_a_stage(self) -> None:
        found = stages(read(content_of("npkit.json")))
        assert found["net_send"] == near([(65536, 7.2768)] * 2 + [(262144, 17.1072)] * 2)
        assert [size for size, _ in found["net_recv"]] == [65536, 65536, 262144, 262144]

    def test_events_that_are_none(self) -> None:
        name = "NPKIT_EVENT_A_ENTRY"
        events: list[Any] = [
            {"ph": "E", "ts": 1.0, "pid": 0, "tid": 0},
            {"ph": "X", "ts": 1.0, "dur": 2.0, "name": "kernel"},
            {"ph": "B", "ts": 1.0, "pid": 0, "tid": 1, "name": name, "args": {"size_0": 64}},
            {"ph": "E", "ts": 3.0, "pid": 0, "tid": 1, "args": {"size": 0}},
            {"ph": "B", "ts": None, "pid": 0, "tid": 1, "name": name, "args": {"size_0": 64}},
            {"ph": "E", "ts": 3.0, "pid": 0, "tid": 1},
            {"ph": "B", "ts": 9.0, "pid": 0, "tid": 1, "name": name, "args": {"size_0": 64}},
            {"ph": "E", "ts": 3.0, "pid": 0, "tid": 1},
            "no event",
        ]
        reading = read(json.dumps({"traceEvents": events}).encode())
        assert stages(reading) == {"a": [(64, 2.0)]}
        assert understood(reading)["events_left_out"] == "2"
        assert understood(reading)["rows_left_out"].startswith(
            "2: 1 not a number; 1 with a time below 0"
        )

    def test_other_trace_events_and_statistics_are_refused(self) -> None:
        with pytest.raises(UnreadableTrace, match="1 others: trace events are read of NPKit alone"):
            read(b'{"traceEvents": [{"ph": "X", "ts": 1, "dur": 2, "name": "kernel"}]}')
        with pytest.raises(UnreadableTrace, match=r"pass npkit_event_trace\.json"):
            read(b"gpu_rank_0\nNPKIT_EVENT_SEND_EXIT\tsize:65536\t12.3\n")


class TestSockets:
    """sockperf's packets and iperf3's intervals."""

    def test_every_packet_of_sockperf(self) -> None:
        found = pairs(messages(read(content_of("sockperf.csv"))).latency)
        assert found[:2] == near([(1024, 7.636), (1024, 6.891)])
        assert len(found) == 40

    def test_several_logs_in_one_file_and_a_row_cut_off(self) -> None:
        content = content_of("sockperf.csv")
        both = content + content.replace(b"--msg-size=1024", b"--msg-size=64")[:-3]
        reading = read(both)
        assert {size for size, _ in pairs(messages(reading).latency)} == {64, 1024}
        assert understood(reading)["rows_left_out"] == "1: 1 cut off or not a number"

    @pytest.mark.parametrize(
        ("old", "new", "rule"),
        [
            (b"--reply-every=1 ", b"--reply-every=100 ", "reply-every=100 is of a test under load"),
            (b"--msg-size=1024", b"", "no rows of packets with their message size"),
        ],
    )
    def test_what_is_no_ping_pong_of_a_size(self, old: bytes, new: bytes, rule: str) -> None:
        with pytest.raises(UnreadableTrace, match=rule):
            read(content_of("sockperf.csv").replace(old, new))

    def test_the_summary_is_told_what_would_do(self) -> None:
        with pytest.raises(UnreadableTrace, match="with --full-log FILE"):
            read(b"sockperf: Summary: Latency is 19.749 usec\n")

    def test_each_interval_of_iperf3(self) -> None:
        document = json.loads(content_of("iperf3.json"))
        rates = [one["sum"]["bits_per_second"] for one in document["intervals"]]
        expected = near([(65536, 65536 * 8e6 / rate) for rate in rates])
        assert pairs(messages(read(content_of("iperf3.json"))).interarrival) == expected

    def test_intervals_that_are_none(self) -> None:
        document = json.loads(content_of("iperf3.json"))
        first = document["intervals"][0]
        for change in ({"omitted": True}, {"bits_per_second": 0}, {"bits_per_second": "x"}):
            document["intervals"].append({"sum": {**first["sum"], **change}})
        reading = read(json.dumps(document).encode())
        assert len(pairs(messages(reading).interarrival)) == 2
        assert understood(reading)["rows_left_out"].startswith("3: ")

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"num_streams": 0}, "no stream"),
            ({"bidir": 1}, "both directions"),
            ({"target_bitrate": 1048576}, "bit rate that was asked for"),
            ({"blksize": 0}, "left out are none"),
        ],
    )
    def test_runs_that_are_not_one_stream(self, change: dict[str, int], why: str) -> None:
        document = json.loads(content_of("iperf3.json"))
        document["start"]["test_start"].update(change)
        with pytest.raises(UnreadableTrace, match=why):
            read(json.dumps(document).encode())
        if "blksize" not in change:
            both = read(json.dumps(document).encode() + content_of("iperf3.json"))
            assert why in understood(both)["runs_left_out"]

    @pytest.mark.parametrize("name", ["sum_bidir_reverse", "sum_sent_bidir_reverse"])
    def test_both_directions_that_only_the_end_tells(self, name: str) -> None:
        """As versions before 3.13 do, whose beginning does not have it."""
        document = json.loads(content_of("iperf3.json"))
        document["end"] = {"sum_sent": {}, name: {"bits_per_second": 1.0}}
        with pytest.raises(UnreadableTrace, match="both directions"):
            read(json.dumps(document).encode())

    def test_a_run_that_failed(self) -> None:
        with pytest.raises(UnreadableTrace, match="ended with an error"):
            read(b'{"start": {"tcp_mss_default": 1}, "intervals": [], "error": "refused"}')


class TestPerftestJson:
    """One size and one test a document."""

    def test_medians_and_message_rates(self) -> None:
        reading = read(content_of("perftest.json"))
        trace = messages(reading)
        assert pairs(trace.latency) == [(4096, 3.07), (65536, 8.42)]
        assert pairs(trace.interarrival) == near([(65536, 1 / 0.183982)])
        assert understood(reading)["latency_is"] == "half a round trip"

    def test_reads_are_whole_operations_and_durations_have_means(self) -> None:
        content = content_of("perftest.json").replace(b"RDMA_Write", b"RDMA_Read")
        reading = read(content.replace(b"t_typical", b"t_other"))
        assert pairs(messages(reading).latency) == [(4096, 3.1), (65536, 8.5)]
        assert [notice.code for notice in reading.notices] == ["read_is_round_trip"]

    @pytest.mark.parametrize(
        ("old", "new", "rule"),
        [
            (b"Write_BW", b"Write_Bidirectional_BW", "both directions share"),
            (b"RDMA_Write_BW", b"Send_BW", "Send, Write in one file"),
            (b"MsgSize", b"Size", "no results with a message size"),
        ],
    )
    def test_what_is_not_read(self, old: bytes, new: bytes, rule: str) -> None:
        with pytest.raises(UnreadableTrace, match=rule):
            read(content_of("perftest.json").replace(old, new))

    def test_rates_of_0_and_without_a_size(self) -> None:
        content = content_of("perftest.json").replace(b"0.183982", b"0.0")
        content += b'{"test_info": {"test": "RDMA_Write_BW_Test"}, "results": {}}'
        reading = read(content.replace(b'"MsgSize": 4096', b'"MsgSize": -1'))
        assert pairs(messages(reading).latency) == [(65536, 8.42)]
        assert understood(reading)["rows_left_out"].startswith("3: ")


class TestPingPongs:
    """mpi4py.bench and NetPIPE: half a round trip."""

    def test_mpi4py(self) -> None:
        reading = read(content_of("mpi4py-pingpong.txt"))
        found = pairs(messages(reading).latency)
        assert found[:2] == near([(64, 2.4968), (128, 2.3149200)])
        assert len(found) == 15
        assert understood(reading)["latency_is"] == "half a round trip"

    def test_mpi4py_without_statistics(self) -> None:
        content = b"# MPI PingPong Test\n# Size [B]  Bandwidth [MB/s]\n 64   25.60\n 128 0.00\n 1 5"
        reading = read(content)
        assert pairs(messages(reading).latency) == near([(64, 2.5)])
        assert understood(reading)["rows_left_out"].startswith("2: ")

    def test_netpipe_in_its_file_and_on_the_screen(self) -> None:
        in_file = pairs(messages(read(content_of("netpipe.out"))).latency)
        on_screen = pairs(messages(read(content_of("netpipe-screen.txt"))).latency)
        assert in_file[:3] == near([(1, 7.07), (2, 17.19), (3, 13.93)])
        assert on_screen == near(in_file[: len(on_screen)])

    def test_three_columns_of_anything_else_are_not_netpipes(self) -> None:
        with pytest.raises(UnreadableTrace, match="not recognised"):
            read(b"1 1.5 0.00001\n2 1.6 0.00001\n")

    def test_without_rows_both_are_refused(self) -> None:
        for content in (
            b"# MPI PingPong Test\n# Size [B]  Bandwidth [MB/s]\n",
            b"  0:  0 bytes  1 times -->  1.08 Mbps in  7.07 usec\n",
        ):
            with pytest.raises(UnreadableTrace, match="no row with a size above 0"):
                read(content)
