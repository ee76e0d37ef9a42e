"""Benchmarks of transfer engines, and results of rccl-tests: what they prove is read."""

from __future__ import annotations

import json
import re

import pytest

from domain.conditions import RowChoice
from domain.errors import UnreadableTrace
from domain.measurement import Reading
from fitting import read
from tests.fitting.readers.test_tools import content_of, messages, near, pairs, understood

COMMAND = "./transfer_engine_bench --mode=initiator --segment_id=n2:15428"


def taken(text: str, where: str | None = None) -> Reading:
    return read(text.encode(), choice=RowChoice(where=where))


def codes(reading: Reading) -> list[str]:
    return [notice.code for notice in reading.notices]


def run(flags: str, batches: int, rate: str, *, threads: int = 1, seconds: str = "10.00") -> str:
    """A run of transfer_engine_bench, with its command and its log."""
    glog = "I0504 10:11:12.345678  4711 transfer_engine_bench.cpp:397]"
    workers = "".join(f"{glog} Worker {at} stopped!\n" for at in range(threads))
    done = f"{glog} Test completed: duration {seconds}, batch count {batches}, throughput {rate}\n"
    return f"{COMMAND} {flags}\n{workers}{done}"


class TestTransferEngineBench:
    """Block and batch size are the command's, and only where the throughput agrees."""

    def test_single_transfers_have_latencies(self) -> None:
        reading = read(content_of("mooncake-bench.txt"))
        found = pairs(messages(reading).latency)
        assert found[0] == near([(65_536, 10e6 / 806_452)])[0]
        assert found[-1] == near([(4_194_304, 10e6 / 36_127)])[0]
        assert understood(reading)["tests"] == "write"
        assert codes(reading) == []

    def test_a_read_has_its_request_in_it(self) -> None:
        text = content_of("mooncake-bench.txt").decode().replace("--operation=write ", "")
        assert codes(taken(text)) == ["read_is_round_trip"]

    def test_batches_of_several_threads_are_lanes(self) -> None:
        flags = "--block_size=65536 --batch_size=128 --threads=12"
        reading = taken(run(flags, 141_295, "118.53 GB/s", threads=12))
        (pair,) = pairs(messages(reading).interarrival)
        assert pair == near([(65_536, 10e6 / 141_295 / 128)])[0]
        (notice,) = reading.notices
        assert notice.values == (("lanes", 128.0 * 12.0),)

    def test_batches_beside_single_transfers_are_taken_where_they_are_chosen(self) -> None:
        single = content_of("mooncake-bench.txt").decode()
        flags = "--block_size=65536 --batch_size=16 --threads=2"
        both = single + run(flags, 200_000, "20.97 GB/s", threads=2)
        assert taken(both).trace == taken(single).trace
        (pair,) = pairs(messages(taken(both, "batch=16")).interarrival)
        assert pair == near([(65_536, 10e6 / 200_000 / 16)])[0]

    @pytest.mark.parametrize(
        ("rate", "unit"),
        [
            ("4.88 GiB/s", 2**30),
            ("41.94 Gb/s", 1e9 / 8),
            ("5242.88 MB/s", 1e6),
            ("5.24", 1e9),
            ("5.243 Gbps", 1e9),  # of a program that means bytes
            ("41.94 Gbps", 1e9 / 8),
        ],
    )
    def test_units_of_the_throughput(self, rate: str, unit: float) -> None:
        assert float(rate.split()[0]) * unit == pytest.approx(5.24288e9, rel=2e-3)
        text = run("--block_size=65536 --batch_size=1 --threads=1", 800_000, rate)
        assert pairs(messages(taken(text)).latency) == [(65_536, 12.5)]

    @pytest.mark.parametrize(
        ("block", "batches", "rate"), [(4096, 4895, "0.26"), (65_536, 22_000, "18.45 GB/s")]
    )
    def test_what_a_command_leaves_out_is_of_the_version_that_the_throughput_tells(
        self, block: int, batches: int, rate: str
    ) -> None:
        (pair,) = pairs(messages(taken(run("", batches, rate, threads=12))).interarrival)
        assert pair[0] == block

    def test_a_command_of_several_lines_and_that_of_the_other_side(self) -> None:
        flags = "\\\n   --block_size=131072 \\\n   --batch_size=1 \\\n   --threads 1"
        target = "./transfer_engine_bench --mode=target --block_size=65536 --threads=12\n"
        text = run(flags, 500_000, "6.55 GB/s")
        begin, end = text.split("I0504", 1)
        reading = taken(f"{begin}{target}I0504{end}")
        assert pairs(messages(reading).latency) == [(131_072, 20.0)]

    def test_sizes_that_a_script_prints(self) -> None:
        text = run("", 500_000, "6.55 GB/s").replace(COMMAND, "=== block_size=131072 batch_size: 1")
        assert pairs(messages(taken(text)).latency) == [(131_072, 20.0)]

    def test_without_its_command_it_says_nothing_of_blocks(self) -> None:
        text = run("", 500_000, "6.55 GB/s").removeprefix(COMMAND)
        with pytest.raises(UnreadableTrace, match=r"not of which blocks: keep the command above"):
            taken(text)

    @pytest.mark.parametrize(
        ("flags", "rate", "why"),
        [
            ("--block_size=65536 --batch_size=1", "6.55 GB/s", "throughput contradicts the block"),
            ("--block_size=131072 --batch_size=2", "6.55 GB/s", "throughput contradicts"),
            ("--block_size=131072 --batch_size=1", "0.00 GB/s", "printed as 0"),
            ("--block_size=131072 --batch_size=1", "0.01 GB/s", "too few digits to check"),
        ],
    )
    def test_what_is_not_proven_is_left_out(self, flags: str, rate: str, why: str) -> None:
        with pytest.raises(UnreadableTrace, match=rf"{why}.*report_precision=6"):
            taken(run(flags, 500_000, rate))
        both = run(flags, 500_000, rate) + content_of("mooncake-bench.txt").decode()
        assert why in understood(taken(both))["rows_left_out"]

    def test_threads_that_nothing_counts(self) -> None:
        text = run("--block_size=131072 --batch_size=1", 500_000, "6.55 GB/s", threads=0)
        with pytest.raises(UnreadableTrace, match="nothing says the number of threads"):
            taken(text)
        told = run("--block_size=131072 --batch_size=1 --threads=1", 500_000, "6.55 GB/s")
        assert pairs(messages(taken(told)).latency) == [(131_072, 20.0)]

    def test_programs_that_print_their_blocks(self) -> None:
        line = "I0504 10:11:12.1 7 transfer_engine_ascend_perf.cpp:229] Test completed: duration "
        text = "".join(
            f"{line}{us}us, block size {kb}KB, total size {20 * kb}KB , throughput {rate} GB/s\n"
            for us, kb, rate in ((800, 32, "0.82"), (1000, 64, "1.31"), (1400, 128, "1.87"))
        )
        reading = taken(text)
        found = pairs(messages(reading).interarrival)
        assert found == near([(32_768, 40.0), (65_536, 50.0), (131_072, 70.0)])
        assert codes(reading) == ["several_lanes"]


class TestTebench:
    """Rows do not say their threads; bandwidth and time do."""

    def test_single_transfers_have_latencies(self) -> None:
        reading = read(content_of("tebench.txt"))
        found = pairs(messages(reading).latency)
        assert found == [(4096, 9.0), (65_536, 13.0), (1_048_576, 75.0), (4_194_304, 260.0)]
        assert understood(reading)["threads"] == "1, of the values 1, 2"

    def test_threads_and_batches_are_chosen(self) -> None:
        text = content_of("tebench.txt").decode()
        batches = pairs(messages(taken(text, "batch=8")).interarrival)
        assert batches == near([(4096, 4.096 / 1.927529), (65_536, 65.536 / 14.563556)])
        threads = taken(text, "threads=2")
        assert pairs(messages(threads).interarrival)[0] == near([(4096, 5.0)])[0]
        assert codes(threads) == ["several_lanes"]

    def test_further_columns_are_passed_over(self) -> None:
        lines = content_of("tebench.txt").decode().splitlines()
        wider = [
            line.replace("Avg Lat", "Avg Inst GB/s     Avg Lat").replace("GB/S", "GB/s")
            if line.startswith("Blk")
            else line.replace("  9.0 ", "  0.5  9.0 ").replace(" 13.0 ", "  5.1  13.0 ")
            for line in lines[:4] + lines[6:7]
        ]
        text = "\n".join(wider) + "\n" + "65536   1   5.041231  5.1   13.0  12.8  15.5  21.1\n"
        assert pairs(messages(taken(text)).latency)[-1] == (65_536, 13.0)

    @pytest.mark.parametrize(
        ("old", "new"), [("BW (GB/S)  ", "BW (GB/S) 0"), ("Avg Lat (us)", "Avg Lat (ms)")]
    )
    def test_a_header_without_its_columns_is_refused(self, old: str, new: str) -> None:
        with pytest.raises(UnreadableTrace, match="line 3: expected the columns BlkSize"):
            taken(content_of("tebench.txt").decode().replace(old, new))

    def test_a_row_that_contradicts_itself_is_left_out(self) -> None:
        text = content_of("tebench.txt").decode().replace("5.041231 ", "7.541231 ")
        left_out = understood(taken(text))["rows_left_out"]
        assert left_out == "1: 1 whose bandwidth and time contradict each other"


class TestRcclResults:
    """JSON and CSV of --output_file, and the table with further columns."""

    expected = ((4096, 12.0), (65_536, 15.0), (1_048_576, 60.0))

    @pytest.mark.parametrize("name", ["rccl-results.json", "rccl-sendrecv.txt"])
    def test_out_of_place_rows_are_taken(self, name: str) -> None:
        assert pairs(messages(read(content_of(name))).latency) == list(self.expected)

    def test_rows_in_place_are_chosen(self) -> None:
        chosen = taken(content_of("rccl-results.json").decode(), "in_place=1")
        assert pairs(messages(chosen).latency)[0] == (4096, 11.8)

    def test_cycles_are_runs(self) -> None:
        reading = read(content_of("rccl-results.csv"))
        assert understood(reading)["runs"] == "2"
        one = read(content_of("rccl-results.csv"), choice=RowChoice(run=1))
        assert pairs(messages(one).latency) == list(self.expected)

    def test_two_files_of_results_are_compared(self) -> None:
        text = content_of("rccl-results.json").decode()
        slower = re.sub(
            r'("time":|"algBw":)([0-9.]+)',
            lambda found: f"{found[1]}{float(found[2]) * (3 if 'time' in found[1] else 1 / 3):.6f}",
            text,
        )
        with pytest.raises(UnreadableTrace, match=r"2 runs .* 200 % .*--run 1 or --run 2"):
            taken(text + slower)
        assert understood(taken(text + text))["runs"] == "2"

    def test_layouts_of_other_versions(self) -> None:
        document = json.loads(content_of("rccl-results.json"))
        lines = "".join(
            json.dumps({("#wrong" if key == "wrong" else key): one for key, one in row.items()})
            + "\n"
            for row in document
        )
        assert pairs(messages(taken(lines)).latency) == list(self.expected)
        header = "collective, gpus, size, type, redop, inplace, time, algbw, busbw, #wrong\n"
        older = header + "".join(
            f'"SendRecv", 2, {size}, "float", "sum", 0, {time_us:f}, {size / time_us / 1e3:f}, '
            f'{size / time_us / 1e3:f}, "0"\n'
            for size, time_us in self.expected
        )
        assert pairs(messages(taken(older)).latency) == list(self.expected)
        with_nodes = (
            content_of("rccl-results.csv").decode().replace('"SendRecv",2', '"SendRecv",2,2')
        )
        assert taken(with_nodes).trace == read(content_of("rccl-results.csv")).trace

    def test_collectives_are_refused_by_name(self) -> None:
        for name in ("rccl-results.json", "rccl-results.csv"):
            text = content_of(name).decode().replace("SendRecv", "AllReduce")
            with pytest.raises(UnreadableTrace, match="AllReduce: the time of a collective"):
                taken(text)

    @pytest.mark.parametrize(
        ("old", "new", "why"),
        [
            ('"wrong":"0"', '"wrong":"3"', "with wrong values"),
            ('"time":12.0', '"time":99.0', "whose bandwidth is not size / time"),
            ('"time":12.0', '"time":null, "t":1', "without a time"),
        ],
    )
    def test_rows_that_do_not_hold_are_left_out(self, old: str, new: str, why: str) -> None:
        text = content_of("rccl-results.json").decode().replace(old, new, 1)
        assert understood(taken(text))["rows_left_out"] == f"1: 1 {why}"

    @pytest.mark.parametrize(
        ("kind", "rule"),
        [("half", r"type has the values .*type=float \(where"), ("float", "--run 1")],
    )
    def test_sizes_that_start_anew_below_a_header_are_compared(self, kind: str, rule: str) -> None:
        head, end, rest = content_of("nccl-sendrecv.txt").decode().partition("# Out of bounds")
        row = "    {}    256     {}     sum      -1    {}    0.09    0.09       0\n"
        sizes = (1024, 4096, 16_384, 65_536)
        again = "".join(row.format(size, kind, 40.0 + size / 1e4) for size in sizes)
        line = re.compile(r"(?m)((?: +[0-9.]+){4})(?: +[0-9.]+){3} +N/A$")
        alone = line.sub(r"\1", head).replace("  #wrong     time   algbw   busbw", "", 1)
        with pytest.raises(UnreadableTrace, match=rule):
            taken(f"{alone}# Testing 2 cycle.\n{again}{end}{rest}")
        assert taken(alone + alone.rpartition("#")[2].partition("\n")[2]).trace.kind == "end_to_end"

    def test_a_table_of_times_in_place_alone_says_so(self) -> None:
        lines = content_of("nccl-sendrecv.txt").decode().splitlines()
        alone = "".join(
            re.sub(r"((?: +[0-9.]+){4})((?: +[0-9.]+){3} +N/A)$", r"\2", line)
            .replace("out-of-place", "")
            .replace("  #wrong     time   algbw   busbw", "")
            + "\n"
            for line in lines
        )
        reading = taken(alone)
        assert pairs(messages(reading).latency)[0] == (1024, 11.51)
        assert understood(reading)["buffers"].startswith("in place")
        assert "buffers" not in understood(read(content_of("nccl-sendrecv.txt")))

    def test_the_time_of_a_processor_is_refused(self) -> None:
        text = content_of("nccl-sendrecv.txt").decode().replace("    time ", " cputime ")
        with pytest.raises(UnreadableTrace, match="cputime is the time in which a processor"):
            taken(text)
