"""Further layouts of OSU, Intel MPI Benchmarks, perftest and ucx_perftest, and files cut off."""

from __future__ import annotations

import pytest

from domain.errors import UnreadableTrace
from domain.measurement import TraceKind
from fitting import read
from tests.fitting.readers.test_tools import content_of, messages, near, pairs, understood

OSU_HEAD = b"# OSU MPI Latency Test v7.5\n# Size       Avg Latency(us)\n"
PERFTEST_HEAD = (
    b" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]\n"
)
UCX_HEAD = b"iterations,typical_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"


class TestOsuVariants:
    """Titles and columns of other versions; tests that are not one message on its way."""

    def test_version_2_in_html_with_warnings_in_the_table(self) -> None:
        reading = read(content_of("osu-v2-mailing-list.html"))
        assert pairs(messages(reading).latency) == [(1, 5.06), (4096, 9.17), (65536, 61.44)]
        assert understood(reading)["tool_version"] == "2.1"

    def test_all_columns_and_memory_of_devices(self) -> None:
        reading = read(content_of("osu-cuda-full.txt"))
        trace = messages(reading)
        assert pairs(trace.latency) == [(1, 2.48), (8192, 5.31)]
        assert pairs(trace.interarrival) == near([(8192, 1.6), (1048576, 1048576 / 23879.32)])
        stated = understood(reading)
        assert stated["tests"] == "MPI-CUDA Latency Test, MPI-CUDA Bandwidth Test"
        assert stated["buffers"].startswith("Send Buffer on DEVICE (D)")
        assert stated["rows_left_out"] == "1: 1 with failed validation"

    @pytest.mark.parametrize(
        "head",
        [
            "# OMB-Py MPI Latency Test\n# Size (B)     Latency (us)\n",
            "# OSU MPI Latency Persistent Test v7.5\n# Datatype: MPI_CHAR.\n"
            "# Size       Avg Latency(us)\n",
            "# OSU MPI-CUDA Persistent Latency Test v7.5\n# Size       Avg Latency(us)\n",
        ],
    )
    def test_in_python_and_with_persistent_requests(self, head: str) -> None:
        reading = read(f"{head}8                 1.93\n4096              2.75\n".encode())
        assert pairs(messages(reading).latency) == [(8, 1.93), (4096, 2.75)]
        assert understood(reading)["latency_is"] == "half a round trip"

    def test_both_directions_in_python_are_refused(self) -> None:
        text = "# OMB-Py MPI Bi-Directional Bandwidth Test\n# Size (B)  Bandwidth (MB/s)\n8  12.5\n"
        with pytest.raises(UnreadableTrace, match="both directions at once"):
            read(text.encode())

    def test_collectives_and_one_sided_tests_are_left_out_by_name(self) -> None:
        """A broadcast's "Avg Latency(us)" is laid out like that of a single message."""
        reading = read(content_of("osu-with-others.txt"))
        assert pairs(messages(reading).latency) == [(1, 2.01), (1024, 2.84)]
        reported = understood(reading)["tests_left_out"]
        assert "MPI Broadcast Latency Test: not one message" in reported
        assert "MPI_Get latency Test: the time of a one-sided operation" in reported
        assert "Multiple Bandwidth / Message Rate Test: several pairs" in reported

    @pytest.mark.parametrize(
        ("name", "why"),
        [
            ("MPI Broadcast", "not one message"),
            ("MPI All-to-All Personalized Exchange", "not one message"),
            ("MPI Allreduce", "not one message"),
            ("MPI Multi", "several pairs"),
            ("MPI Multi-threaded", "several pairs or threads"),
            ("MPI_Put", "one-sided"),
            ("One Sided MPI_Get", "one-sided"),
        ],
    )
    def test_alone_they_are_refused_with_the_reason(self, name: str, why: str) -> None:
        content = f"# OSU {name} Latency Test v5.9\n# Size       Avg Latency(us)\n1    2.42\n"
        with pytest.raises(UnreadableTrace, match=f"OSU {name} Latency Test is not read: .*{why}"):
            read(content.encode())

    def test_memory_of_different_kinds_is_not_mixed(self) -> None:
        content = content_of("osu-cuda-full.txt") + content_of("osu-latency-v5.txt")
        with pytest.raises(UnreadableTrace, match=r"line 1\d: .* different pipelines"):
            read(content)

    @pytest.mark.parametrize("end", [b"1048576               26", b"1048576               262.1"])
    def test_a_last_row_cut_off_is_left_out_and_said(self, end: bytes) -> None:
        reading = read(
            OSU_HEAD + b"64                      2.00\n4096                    5.02\n" + end
        )
        assert pairs(messages(reading).latency) == [(64, 2.0), (4096, 5.02)]
        assert understood(reading)["rows_left_out"] == "1: 1 cut off or not a number"

    def test_a_last_row_that_only_lacks_its_line_end_is_read(self) -> None:
        reading = read(OSU_HEAD + b"64                      2.00\n4096                    5.02")
        assert pairs(messages(reading).latency) == [(64, 2.0), (4096, 5.02)]

    def test_numbers_out_of_range_are_left_out_and_said(self) -> None:
        rows = b"64 2.00\n128 1e400\n256 -1.00\n9223372036854775808 2.00\n99 inf\n7 ---\n"
        reading = read(OSU_HEAD + rows)
        assert pairs(messages(reading).latency) == [(64, 2.0)]
        reported = understood(reading)["rows_left_out"]
        assert reported.startswith("5: ")
        assert "2 not finite" in reported
        assert "1 with a time below 0" in reported
        assert "1 of more than" in reported
        assert "1 cut off or not a number" in reported

    def test_byte_order_mark_and_crlf(self) -> None:
        content = b"\xef\xbb\xbf" + content_of("osu-latency-v5.txt").replace(b"\n", b"\r\n")
        whole = read(content_of("osu-latency-v5.txt"))
        assert pairs(messages(read(content)).latency) == pairs(messages(whole).latency)


class TestImbVariants:
    """PingPong of two processes among those of more, with more columns."""

    def test_several_pairs_at_once_are_left_out(self) -> None:
        reading = read(content_of("imb-p2p.txt"))
        assert pairs(messages(reading).latency) == [(8, 1.12), (8192, 3.40)]
        stated = understood(reading)
        assert stated["tool_version"] == "Intel(R) MPI Benchmarks 2021.3, P2P part"
        assert stated["benchmarks_left_out"] == "PingPong of 8 processes, PingPing"

    def test_defects_time_outs_and_groups(self) -> None:
        reading = read(content_of("imb-checked-groups.txt"))
        assert pairs(messages(reading).latency) == [(1, 1.71), (1024, 3.05), (4096, 5.21)]
        stated = understood(reading)
        assert stated["tool_version"].startswith("Intel (R) MPI Benchmark Suite V3.2")
        assert stated["rows_left_out"] == "2: 1 with defects; 1 cut off or not a number"
        assert stated["benchmarks_left_out"] == "Multi-PingPong"

    @pytest.mark.parametrize("keep", [b"15", b"15.0", b"15.02"])
    def test_a_last_row_cut_off_is_left_out(self, keep: bytes) -> None:
        content = content_of("imb-pingpong.txt")
        cut = content[: content.index(b"15.02")] + keep
        reading = read(cut)
        assert pairs(messages(reading).latency) == [(1, 2.26), (64, 2.36), (4096, 4.11)]
        assert "1 cut off" in understood(reading)["rows_left_out"]


class TestPerftestVariants:
    """Dumps of iterations, runs by duration, further units and columns."""

    def test_every_iteration_in_place_of_the_median(self) -> None:
        reading = read(content_of("perftest-send-lat-unsorted.txt"))
        expected = [(2, 1.52), (2, 1.47), (2, 9.81), (4096, 2.5), (4096, 2.25), (4096, 2.375)]
        assert pairs(messages(reading).latency) == expected
        stated = understood(reading)
        assert stated["statistic"] == "every iteration"
        assert stated["tests"] == "Send Latency"
        assert "rows_left_out" not in stated

    def test_a_dump_in_cycles_is_refused(self) -> None:
        content = content_of("perftest-send-lat-unsorted.txt").replace(b"#, usec", b"#, cycles")
        with pytest.raises(UnreadableTrace, match=r"line 5: the times are in cycles"):
            read(content)

    def test_duration_service_level_and_mixed_units(self) -> None:
        reading = read(content_of("perftest-write-duration.txt"))
        trace = messages(reading)
        assert pairs(trace.latency) == [(64, 1.02), (4096, 2.05)]
        expected = [(4096, 4096 / (10000.0 * 2**20) * 1e6), (65536, 65536 * 8 / 96e3)]
        assert pairs(trace.interarrival) == near(expected)
        stated = understood(reading)
        assert stated["interarrival_is"].endswith("MB/sec of 2^20 bytes and Gb/sec of 10^9 bits")
        assert stated["latency_is"] == "half a round trip"

    def test_both_directions_at_once_are_refused(self) -> None:
        with pytest.raises(UnreadableTrace, match=r"line 1: RDMA_Write Bidirectional BW is not"):
            read(content_of("perftest-bidirectional.txt"))

    def test_different_operations_are_not_mixed(self) -> None:
        content = content_of("perftest-write-lat.txt") + content_of("perftest-read-lat.txt")
        with pytest.raises(UnreadableTrace, match="RDMA_Read after RDMA_Write in one file"):
            read(content)

    @pytest.mark.parametrize("end", [b" 64   1000   1.9   9.9   2", b" 64   1000   1.9"])
    def test_a_last_row_cut_off_is_left_out(self, end: bytes) -> None:
        reading = read(PERFTEST_HEAD + b" 2    1000   1.8   9.0   1.90   1.95\n" + end)
        assert pairs(messages(reading).latency) == [(2, 1.90)]
        assert understood(reading)["rows_left_out"] == "1: 1 cut off or not a number"
        assert understood(reading)["latency_is"].endswith("the test is not named")


class TestUcxVariants:
    """Names of batch files, progress of threads, percentiles, and the box on the screen."""

    def test_batch_files_with_progress_and_a_transport_that_ends_in_a_digit(self) -> None:
        reading = read(content_of("ucx-batch-files.csv"))
        assert pairs(messages(reading).latency) == [(8, 1.012), (16, 1.015), (512, 1.320)]
        stated = understood(reading)
        assert stated["tests"] == "am_short_lat,rc_mlx5"
        assert stated["statistic"] == "median (50.0_percentile_lat)"
        assert not reading.notices

    def test_a_get_is_a_whole_operation_and_a_tail_is_no_median(self) -> None:
        reading = read(content_of("ucx-get.csv"))
        assert pairs(messages(reading).latency) == [(64, 2.036), (4096, 4.110)]
        stated = understood(reading)
        assert stated["latency_is"] == "a whole operation"
        assert stated["statistic"] == "mean (overall_lat)"
        assert [notice.code for notice in reading.notices] == ["read_is_round_trip"]

    def test_a_name_that_the_numbers_contradict_is_not_believed(self) -> None:
        """4096 bytes, by bandwidth over message rate; the 8 is a number of something else."""
        content = (
            b"batch," + UCX_HEAD + b"tag_lat_8,1000,4.02,4.11,4.11,950.43,950.43,243309,243309\n"
        )
        assert pairs(messages(read(content)).latency) == [(4096, 4.02)]

    def test_different_tests_are_not_mixed(self) -> None:
        content = content_of("ucx-batch-files.csv").replace(b"16,am_short_lat", b"16,put_lat")
        with pytest.raises(UnreadableTrace, match="several latency tests"):
            read(content)

    def test_a_last_row_cut_off_is_left_out(self) -> None:
        content = content_of("ucx-plain.csv")
        cut = content[: content.index(b"87704\n") + 3]
        reading = read(cut, kind=TraceKind.INDIRECT)
        assert pairs(messages(reading).interarrival) == near([(4096, 1e6 / 243309)])
        assert "perhaps cut off" in understood(reading)["rows_left_out"]

    def test_the_box_on_the_screen(self) -> None:
        reading = read(content_of("ucx-table.txt"))
        trace = messages(reading)
        assert pairs(trace.latency) == [(4096, 4.020), (65536, 11.020)]
        assert pairs(trace.interarrival) == near([(65536, 1e6 / 178259)])
        stated = understood(reading)
        assert stated["tests"] == "tag match latency, tag match bandwidth"
        assert stated["statistic"] == "median"

    def test_several_threads_have_no_row_to_read(self) -> None:
        content = content_of("ucx-table.txt").split(b"Final:")[0]
        final = b"Final:       1000000                 4.110             950.43       243309\n"
        with pytest.raises(UnreadableTrace, match="no row of results"):
            read(content + final)

    def test_different_tests_of_boxes_are_not_mixed(self) -> None:
        content = content_of("ucx-table.txt")
        other = content.replace(b"tag match latency", b"put latency      ")
        with pytest.raises(UnreadableTrace, match="tag match latency and put latency"):
            read(content + other)


class TestUcxLogs:
    """The server names the test and its size, the client prints the numbers."""

    @pytest.mark.parametrize("name", ["ucx-two-logs.txt", "ucx-client.txt"])
    def test_logs_together_and_a_client_with_its_commands(self, name: str) -> None:
        trace = messages(read(content_of(name)))
        assert pairs(trace.latency) == [(4096, 2.585)]
        assert pairs(trace.interarrival) == near([(65536, 1e6 / 2063)])

    def test_the_order_of_the_logs_is_the_users(self) -> None:
        content = content_of("ucx-two-logs.txt")
        at = content.index(b"+--------------+")
        assert read(content[at:] + content[:at]).trace == read(content).trace

    def test_a_result_that_was_cut_off_keeps_its_place(self) -> None:
        content = content_of("ucx-two-logs.txt").replace(b"2.585", b"2.5x5")
        trace = messages(read(content))
        assert trace.latency is None
        assert pairs(trace.interarrival) == near([(65536, 1e6 / 2063)])

    def test_a_client_alone_is_told_what_lacks(self) -> None:
        content = b"\n".join(
            line for line in content_of("ucx-client.txt").splitlines() if b"ucx_perf" not in line
        )
        with pytest.raises(UnreadableTrace, match=r"2 tables.*0 boxes.*one file, .*--test tag_lat"):
            read(content + b"\n")

    def test_a_server_alone_is_told_what_lacks(self) -> None:
        content = content_of("ucx-two-logs.txt")
        with pytest.raises(UnreadableTrace, match=r"no row.*put both logs into one file"):
            read(content[: content.index(b"+--------------+")])

    def test_commands_name_the_rows_of_the_csv(self) -> None:
        """Which test they are of nothing else says."""
        content = content_of("ucx-commands.csv")
        trace = messages(read(content))
        assert pairs(trace.latency) == [(64, 5.396), (1024, 5.428), (4096, 5.702)]
        assert pairs(trace.interarrival) == near(
            [(64, 1e6 / 1544863), (1024, 1e6 / 1360683), (4096, 1e6 / 997456)]
        )
        lines = content.splitlines(keepends=True)
        bare = b"".join(line for line in lines if not line.startswith(b"$"))
        with pytest.raises(UnreadableTrace, match="does not say whether it is of a latency"):
            read(bare)

    def test_a_table_that_may_be_of_either_box_is_refused(self) -> None:
        content = content_of("ucx-table.txt")
        last = content.rindex(b"|    Stage")
        box = (
            content[content.index(b"| Test:") : content.index(b"| Data")] + b"| Message size: 8 |\n"
        )
        with pytest.raises(UnreadableTrace, match="boxes that name a test"):
            read(content[:last] + box + content[last:])

    def test_without_a_size_it_is_that_of_the_tool(self) -> None:
        content = content_of("ucx-client.txt").replace(b" -s 4096", b"")
        assert pairs(messages(read(content)).latency) == [(8, 2.585)]
