"""Files of several runs, machines, connections and queue pairs: what agrees is taken together, and
for the rest the user says which is meant.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.conditions import NO_CHOICE, Condition, RowChoice, named_test, parse_where
from domain.errors import InvalidInput, UnreadableTrace
from domain.measurement import Reading, TraceKind
from fitting import fit, read
from tests.fitting.readers.test_tools import content_of, messages, near, pairs, understood

_NEAR = 0.03
SIZES = (1, 64, 4096, 65_536, 1_048_576, 4_194_304)


def line(overhead_us: float, ns_per_byte: float, sizes: Sequence[int] = SIZES) -> list[float]:
    return [overhead_us + size * ns_per_byte / 1e3 for size in sizes]


def osu(*columns: Sequence[float], sizes: Sequence[int] = SIZES) -> str:
    head = "   ".join("Latency (us)" for _ in columns)
    rows = [
        f"{size}   " + "   ".join(f"{time_us:.4f}" for time_us in times)
        for size, *times in zip(sizes, *columns, strict=True)
    ]
    return f"# OSU MPI Latency Test v7.2\n# Size          {head}\n" + "\n".join(rows) + "\n"


def taken(text: str, columns: str | None = None, **choice: str | int | None) -> Reading:
    return read(text.encode(), columns=columns, choice=RowChoice(**choice))


def costs_of(reading: Reading) -> tuple[float, float]:
    (stage,) = fit([reading]).stages
    (line_of_all,) = stage.lines
    return line_of_all.overhead_us, line_of_all.ns_per_byte


def codes(reading: Reading) -> list[str]:
    return [notice.code for notice in reading.notices]


class TestWords:
    """`connections=1,threads=2`, the number of a run, and the name of a test."""

    def test_names_and_values(self) -> None:
        assert parse_where(" queue pairs = 4 ,mode=a b") == (("queue pairs", "4"), ("mode", "a b"))
        assert Condition(named=(("Threads", "2"),)).value("threads") == "2"

    def test_values_with_commas(self) -> None:
        assert parse_where("cpus=0,1,threads=2") == (("cpus", "0,1"), ("threads", "2"))
        whole = ("mode", "a=b, c=d")
        told = parse_where("mode=a=b, c=d,n=1", lambda name, value: (name, value) == whole)
        assert told == (whole, ("n", "1"))

    @pytest.mark.parametrize(
        ("choice", "field"),
        [
            ({"where": "connections"}, "where"),
            ({"where": "=1"}, "where"),
            ({"where": "a=1,"}, "where"),
            ({"where": "a=\0"}, "where"),
            ({"where": "a=" + "1" * 300}, "where"),
            ({"run": 0}, "run"),
            ({"run": 10_001}, "run"),
            ({"test": " "}, "test"),
            ({"test": "a\n"}, "test"),
            ({"test": "a" * 61}, "test"),
        ],
    )
    def test_rules(self, choice: dict[str, str | int], field: str) -> None:
        with pytest.raises(InvalidInput) as refusal:
            RowChoice(**choice)
        assert refusal.value.field == field

    @pytest.mark.parametrize(
        ("name", "test"),
        [
            ("logs/sendrecv_perf.2nodes.log", "sendrecv_perf"),
            ("all_reduce_perf-8gpus.txt", "all_reduce_perf"),
            ("run3_ib_read_lat.out", "ib_read_lat"),
            ("osu_latency.out", "osu_latency"),
            ("job7/osu_latency_mt.1.txt", "osu_latency_mt"),
            ("osu_bw-cuda.txt", "osu_bw"),
            ("IMB-MPI1_PingPong.out", "imb-mpi1_pingpong"),
            ("nvme_clat.1.log", "fio_clat"),
            ("nvme_bw.12.log", "fio_bw"),
            ("osu.out", None),
            ("pingpong.txt", None),
            ("mysendrecv_perfect.log", None),
        ],
    )
    def test_the_test_in_a_name(self, name: str, test: str | None) -> None:
        assert named_test(name) == test


class TestRuns:
    """Several runs of one tool in one file."""

    before, after = osu(line(2.0, 0.3)), osu(line(9.0, 1.1))

    def test_runs_that_differ_are_asked_for(self) -> None:
        with pytest.raises(UnreadableTrace, match=r"2 runs.* 350 % .*--run 1 or --run 2 \(run\)"):
            taken(self.before + "\n$ UCX_TLS=tcp osu_latency\n" + self.after)

    @pytest.mark.parametrize(("run", "costs"), [(1, (2.0, 0.3)), (2, (9.0, 1.1))])
    def test_one_is_taken(self, run: int, costs: tuple[float, float]) -> None:
        reading = taken(self.before + self.after, run=run)
        assert costs_of(reading) == pytest.approx(costs, rel=_NEAR)
        assert understood(reading)["runs"] == f"run {run} of 2"
        assert understood(reading)["rows"] == str(len(SIZES))

    def test_there_is_no_third(self) -> None:
        with pytest.raises(InvalidInput, match="this file has 2 runs: there is no run 3"):
            taken(self.before + self.after, run=3)

    def test_runs_that_agree_are_repetitions(self) -> None:
        reading = taken(self.before + osu(line(2.1, 0.31)))
        assert len(messages(reading)) == 2 * len(SIZES)
        assert understood(reading)["runs"] == "2"

    def test_runs_within_their_scatter_are_repetitions(self) -> None:
        noisy = [time * (1.3 if at % 2 else 0.8) for at, time in enumerate(line(2.0, 0.3))]
        other = [time * (0.8 if at % 2 else 1.3) for at, time in enumerate(line(2.0, 0.3))]
        assert len(messages(taken(osu(noisy) + osu(other)))) == 2 * len(SIZES)

    @pytest.mark.parametrize("place", range(len(SIZES)))
    def test_one_size_that_is_off_alone_is_an_outlier(self, place: int) -> None:
        times = line(2.0, 0.3)
        off = [time * (8.0 if at == place else 1.0) for at, time in enumerate(times)]
        assert len(messages(taken(osu(times) * 4 + osu(off)))) == 5 * len(SIZES)

    @pytest.mark.parametrize(
        ("other", "worst"), [(line(8.0, 0.3), "300 % .of 1 B"), (line(2.0, 0.9), "200 %")]
    )
    def test_a_difference_of_small_or_of_large_sizes_counts(
        self, other: list[float], worst: str
    ) -> None:
        with pytest.raises(UnreadableTrace, match=worst):
            taken(osu(line(2.0, 0.3)) + osu(other))

    def test_a_difference_that_fades_from_the_smallest_size_counts(self) -> None:
        rates = ((1000.0, 9000.0, 1e4, 10_100.0), (8000.0, 9900.0, 10_200.0, 10_300.0))
        sizes = (1024, 65_536, 1_048_576, 4_194_304)
        one, other = ([size / rate for size, rate in zip(sizes, of, strict=True)] for of in rates)
        with pytest.raises(UnreadableTrace, match=r"700 % \(of 1 KiB\)"):
            taken(osu(one, sizes=sizes) + osu(other, sizes=sizes))

    def test_many_runs_of_noise_are_repetitions(self) -> None:
        random = Random(3)
        runs = [
            osu([time * random.lognormvariate(0.0, 0.05) for time in line(2.0, 0.3)])
            for _ in range(8)
        ]
        assert len(messages(taken("".join(runs)))) == len(runs) * len(SIZES)

    def test_runs_of_other_sizes_are_one_sweep(self) -> None:
        few = [osu(line(2.0, 0.3, [size]), sizes=[size]) for size in SIZES]
        assert costs_of(taken("".join(few))) == pytest.approx((2.0, 0.3), rel=_NEAR)

    def test_runs_of_sizes_between_each_other_are_one_sweep(self) -> None:
        def switched(sizes: Sequence[int]) -> str:
            times = [3.0 + size * (5e-4 if size < 16_384 else 2e-3) for size in sizes]
            return osu(times, sizes=sizes)

        sizes = tuple(1 << power for power in range(22))
        assert len(messages(taken(switched(sizes[::2]) + switched(sizes[1::2])))) == len(sizes)
        one_shared = switched(sizes[:12]) + switched(sizes[11:])
        assert len(messages(taken(one_shared))) == len(sizes) + 1
        other = switched(sizes[:12]) + osu([900.0] * 11, sizes=sizes[11:])
        with pytest.raises(UnreadableTrace, match=r"differ by up to 224 times \(of 2 KiB\)"):
            taken(other)
        one_after_another = osu(line(2.0, 0.3, sizes[:11]), sizes=sizes[:11]) + osu(
            line(2.0, 0.3, sizes[11:]), sizes=sizes[11:]
        )
        assert costs_of(taken(one_after_another)) == pytest.approx((2.0, 0.3), rel=_NEAR)

    def test_runs_that_nothing_compares_are_asked_for(self) -> None:
        sizes = tuple(1 << power for power in range(22))
        apart = osu(line(2.0, 0.3, sizes[:11]), sizes=sizes[:11]) + osu(
            line(9.0, 2.0, sizes[12:]), sizes=sizes[12:]
        )
        rule = r"no two sizes in common.* --run 1 or --run 2 \(run\); parts of one sweep"
        with pytest.raises(UnreadableTrace, match=rule):
            taken(apart)
        assert costs_of(taken(apart, run=2)) == pytest.approx((9.0, 2.0), rel=_NEAR)
        between = osu(line(2.0, 0.3, sizes[::2]), sizes=sizes[::2]) + osu(
            line(6.0, 0.9, sizes[1::2]), sizes=sizes[1::2]
        )
        with pytest.raises(UnreadableTrace, match=r"differ by up to 2.. %.*--run 1 or --run 2"):
            taken(between)

    def test_header_lines_of_our_own_format_begin_runs(self) -> None:
        def rows(scale: float) -> str:
            return "message_bytes,latency_us,interarrival_us\n" + "".join(
                f"{size},{3.0 * scale + size / 100},{'' if size == 64 else scale * size / 200}\n"
                for size in SIZES
            )

        assert len(taken(rows(1.0) + rows(1.02)).trace) == 2 * len(taken(rows(1.0)).trace)
        with pytest.raises(UnreadableTrace, match="--run 1 or --run 2"):
            taken(rows(1.0) + rows(5.0))
        second, alone = (
            messages(one) for one in (taken(rows(1.0) + rows(5.0), run=2), taken(rows(5.0)))
        )
        assert pairs(second.latency) == pairs(alone.latency)
        assert pairs(second.interarrival) == pairs(alone.interarrival)

    def test_runs_on_both_sides_of_a_switch_are_connected_by_one_of_all(self) -> None:
        sizes = tuple(1 << power for power in range(22))
        times = [3.0 + size * (5e-4 if size < 16_384 else 9e-3) for size in sizes]

        def part(first: int, last: int) -> str:
            return osu(times[first:last], sizes=sizes[first:last])

        with pytest.raises(UnreadableTrace, match="no two sizes in common"):
            taken(part(0, 12) + part(15, 22))
        assert len(messages(taken(part(0, 12) + part(0, 22) + part(15, 22)))) == 12 + 22 + 7

    def test_sweeps_below_one_header_are_runs(self) -> None:
        slower = osu(line(9.0, 1.1)).partition("(us)\n")[2]
        with pytest.raises(UnreadableTrace, match="--run 1 or --run 2"):
            taken(self.before + slower)
        assert costs_of(taken(self.before + slower, run=2)) == pytest.approx((9.0, 1.1), rel=_NEAR)
        again = self.before.partition("(us)\n")[2]
        assert understood(taken(self.before + again))["runs"] == "2"
        each_twice = self.before.splitlines(keepends=True)[2:]
        head = "".join(self.before.splitlines(keepends=True)[:2])
        repeated = taken(head + "".join(row * 2 for row in each_twice))
        assert understood(repeated)["runs"] == "1"

    def test_a_format_of_one_run_has_nothing_to_choose(self) -> None:
        for choice in ({"run": 2}, {"where": "a=1"}):
            with pytest.raises(InvalidInput, match="there is nothing to choose"):
                taken(content_of("direct.json").decode(), **choice)
        assert taken(content_of("direct.json").decode(), run=1).trace.kind is TraceKind.DIRECT


def doubled(name: str) -> str:
    """A file twice, the second time with each of its times and rates in other figures."""
    text = content_of(name).decode()
    return text + _FIGURE.sub(_threefold, text)


_FIGURE = re.compile(r"(?<![\w.:])[0-9]+\.[0-9]+(e-[0-9]+)?(?![\w.])")


def _threefold(found: re.Match[str]) -> str:
    return f"{float(found[0]) * 3.0:.7e}" if found[1] else f"{float(found[0]) * 3.0:.8f}"


@pytest.mark.parametrize(
    "name",
    [
        *("osu-latency-v5.txt", "imb-pingpong.txt", "perftest-write-lat.txt"),
        *("perftest-write-bw.txt", "netpipe-screen.txt", "netpipe.out", "mpi4py-pingpong.txt"),
        *("nccl-sendrecv.txt", "nixlbench.txt", "fi-pingpong.txt", "perftest.json"),
        *("netgauge-loggp.out", "rccl-sendrecv.txt"),
        *("cuda-bandwidth.txt", "nvbandwidth.txt", "ucx-table.txt"),
    ],
)
def test_a_file_and_another_of_its_format(name: str) -> None:
    """The union where they agree, and else the question which is meant."""
    text = content_of(name).decode()
    once, twice = taken(text), taken(text + text)
    assert len(twice.trace) == 2 * len(once.trace)
    with pytest.raises(UnreadableTrace, match=r"--run 1 or --run \d"):
        taken(doubled(name))
    assert taken(doubled(name), run=1).trace == once.trace


@given(
    first=st.tuples(st.floats(0.5, 50.0), st.floats(0.01, 2.0)),
    second=st.tuples(st.floats(0.5, 50.0), st.floats(0.01, 2.0)),
)
@settings(max_examples=60, deadline=None)
def test_runs_of_two_lines_are_one_where_no_size_differs(
    first: tuple[float, float], second: tuple[float, float]
) -> None:
    """Files without noise: two sizes that are 10 % off to one side make the runs two."""
    ratios = [a / b for a, b in zip(line(*first), line(*second), strict=True)]
    worst = max(max(ratio, 1.0 / ratio) for ratio in ratios)
    second_worst = max(sorted(ratios)[-2], 1.0 / sorted(ratios)[1])
    text = osu(line(*first)) + osu(line(*second))
    if worst < 1.09:
        assert len(messages(taken(text))) == 2 * len(SIZES)
    elif second_worst > 1.11:
        with pytest.raises(UnreadableTrace, match="take one of them"):
            taken(text)


class TestNamedValues:
    """Values that a shell would split, and runs beside other choices."""

    @staticmethod
    def table(name: str, *values: str) -> str:
        return f"bytes;{name};t_us\n" + "".join(
            f"{size};{value};{scale * (3.0 + size / 100)}\n"
            for scale, value in enumerate(values, 1)
            for size in SIZES
        )

    @pytest.mark.parametrize(
        ("name", "values", "advice"),
        [
            ("cpus", ("0,1", "2,3"), "cpus=0,1"),
            ("block size", ("64", "1024"), "'block size=64'"),
            ("mode", ("a=b c", "c,d'e"), "'mode=a=b c'"),
            ("mode", ("a, b=c", "b=c"), "'mode=a, b=c'"),
        ],
    )
    def test_the_advice_is_one_word_of_a_shell(
        self, name: str, values: tuple[str, ...], advice: str
    ) -> None:
        text, columns = self.table(name, *values), "size=bytes,time=t_us"
        with pytest.raises(UnreadableTrace) as refusal:
            taken(text, columns)
        assert f"as by --where {advice} (where)" in str(refusal.value)
        assert len(shlex.split(advice)) == 1
        for scale, value in enumerate(values, 1):
            reading = taken(text, columns, where=f"{name}={value}")
            assert costs_of(reading) == pytest.approx((3.0 * scale, 10.0 * scale), rel=_NEAR)

    @pytest.mark.parametrize(
        "name", ["delay_ms", "think_time_us", "pause (s)", "limit_MB/s", "run", "Run"]
    )
    def test_what_is_set_may_have_a_unit_and_runs_a_number(self, name: str) -> None:
        text, columns = self.table(name, "1", "20"), "size=bytes,time=t_us"
        with pytest.raises(UnreadableTrace) as refusal:
            taken(text, columns)
        assert f"{name} has the values 1, 20, whose times differ" in str(refusal.value)
        reading = taken(text, columns, where=f"{name}=20")
        assert costs_of(reading) == pytest.approx((6.0, 20.0), rel=_NEAR)
        same = text.replace(";20;", ";1;")
        assert len(messages(taken(same, columns))) == 2 * len(SIZES)

    def test_what_is_set_may_lack_a_size(self) -> None:
        lines = self.table("delay_ms", "1", "20").splitlines(keepends=True)
        with pytest.raises(UnreadableTrace, match="delay_ms has the values 1, 20"):
            taken("".join(lines[:-1]), "size=bytes,time=t_us")

    @pytest.mark.parametrize("name", ["p50_us", "avg_ms", "bw_MB/s", "elapsed (s)", "sample"])
    def test_what_was_measured_is_no_condition(self, name: str) -> None:
        text = self.table(name, "1", "20")
        assert len(messages(taken(text, "size=bytes,time=t_us"))) == 2 * len(SIZES)

    def test_a_unit_is_no_condition_where_values_follow_the_sizes(self) -> None:
        text = "bytes;delay_ms;t_us\n" + "".join(
            f"{size};{size // 4096};{3.0 + size / 100}\n" for size in SIZES for _ in range(2)
        )
        assert len(messages(taken(text, "size=bytes,time=t_us"))) == 2 * len(SIZES)

    def test_long_values_are_chosen_whole_or_by_their_beginning(self) -> None:
        long = [f"/opt/{'x' * 70}/{end}" for end in ("a/libmpi.so", "b/libmpi.so")]
        text, columns = self.table("library", *long), "size=bytes,time=t_us"
        with pytest.raises(UnreadableTrace) as refusal:
            taken(text, columns)
        assert f"--where library={long[0]} (where)" in str(refusal.value)
        for scale, value in enumerate(long, 1):
            for word in (value, value[:78]):
                reading = taken(text, columns, where=f"library={word}")
                assert costs_of(reading) == pytest.approx((3.0 * scale, 10.0 * scale), rel=_NEAR)
        longer = ["y" * 400, "z" * 400]
        with pytest.raises(UnreadableTrace) as refusal:
            taken(self.table("library", *longer), columns)
        advice = str(refusal.value).partition("--where ")[2].partition(" (where)")[0]
        taken(self.table("library", *longer), columns, where=advice)

    def test_named_values_without_sizes_in_common_are_asked_for(self) -> None:
        several = TestSeveralAtOnce.perftest
        one, four = several(1, 3e3, 9e3, 1.2e4), several(4, 9e3, 2e4, 2.2e4)
        small = one.replace(" 1048576 ", " 5.1 ").replace(" 65536 ", " 5.2 ")
        large = four.replace(" 4096 ", " 5.3 ")
        rule = r"qps has the values 1, 4, and nothing shows .* --where qps=1 \(where\)"
        with pytest.raises(UnreadableTrace, match=rule):
            taken(small + large)
        assert len(taken(small + large, where="qps=4").trace) == 2
        at_one_size = one.replace(" 1048576 ", " 5.1 ") + several(4, 9e3, 9.1e3, 2.2e4).replace(
            " 4096 ", " 5.3 "
        )
        with pytest.raises(UnreadableTrace, match=rule):
            taken(at_one_size)

    def test_values_whose_runs_have_a_size_each_are_compared_as_a_whole(self) -> None:
        text = "".join(
            TestSeveralAtOnce.perftest(qps, 3e3, 9e3, 1.2e4)
            .replace("1048576 " if size != 1_048_576 else " 5.1", " 5.1 ")
            .replace(" 65536 " if size != 65_536 else " 5.2", " 5.2 ")
            .replace(" 4096 " if size != 4096 else " 5.3", " 5.3 ")
            for qps in (1, 4)
            for size in (4096, 65_536, 1_048_576)
        )
        assert len(taken(text).trace) == 6

    def test_two_names_that_hide_each_other_are_asked_for_in_turn(self) -> None:
        text = "bytes;conns;depth;t_us\n" + "".join(
            f"{size};{conns};{depth};{conns * depth * (3.0 + size / 100)}\n"
            for conns in (1, 2)
            for depth in (1, 2)
            for size in SIZES
        )
        columns = "size=bytes,time=t_us"
        with pytest.raises(UnreadableTrace, match=r"--where depth=1 \(where\)"):
            taken(text, columns)
        with pytest.raises(UnreadableTrace, match=r"--where conns=1 \(where\)"):
            taken(text, columns, where="depth=2")
        both = taken(text, columns, where="conns=2,depth=2")
        assert costs_of(both) == pytest.approx((12.0, 40.0), rel=_NEAR)

    def test_values_that_others_connect_agree(self) -> None:
        text = "bytes;threads;t_us\n" + "".join(
            f"{size};{threads};{3.0 + size / 100}\n"
            for threads, sizes in (
                (1, (64, 128, 256)),
                (2, (128, 256, 4096, 8192)),
                (4, (4096, 8192)),
            )
            for size in sizes
        )
        assert len(messages(taken(text, "size=bytes,time=t_us"))) == 9

    def test_runs_keep_the_numbers_of_the_whole_file(self) -> None:
        columns = "size=bytes,time=t_us"
        text = "".join(
            "bytes,conns,t_us\n"
            + "".join(f"{size},{conns},{scale * (3.0 + size / 100)}\n" for size in SIZES)
            for conns, scale in ((1, 1.0), (1, 1.0), (4, 2.0), (4, 3.0))
        )
        with pytest.raises(UnreadableTrace, match=r"2 runs of 4 \(3, 4\) .*--run 3 or --run 4"):
            taken(text, columns, where="conns=4")
        fourth = taken(text, columns, where="conns=4", run=4)
        assert costs_of(fourth) == pytest.approx((9.0, 30.0), rel=_NEAR)
        assert understood(fourth)["runs"] == "run 4 of 4"
        assert understood(taken(text, columns, where="conns=1"))["runs"] == "1, 2 of 4"
        with pytest.raises(InvalidInput, match=r"nothing in run 1 has conns=4.* the runs 3, 4"):
            taken(text, columns, where="conns=4", run=1)

    def test_lanes_that_were_taken_together_are_a_range(self) -> None:
        text = "bytes,threads,t_us\n" + "".join(
            f"{size},{threads},{3.0 + size / 100}\n" for threads in (1, 8) for size in SIZES
        )
        (notice,) = taken(text, "size=bytes,time=t_us").notices
        assert notice.values == (("lanes", 8.0), ("fewest_lanes", 1.0))
        assert notice.detail.startswith("1 to 8 transfers at once, taken together (threads 8")


class TestSeveralAtOnce:
    """Queue pairs, streams, batches: lanes, which are kept and said."""

    @staticmethod
    def perftest(qps: int, *rates: float) -> str:
        rows = [
            f" {size}      5000        {rate:.2f}         {rate:.2f}      {rate / 65536:.6f}\n"
            for size, rate in zip((4096, 65_536, 1_048_576), rates, strict=True)
        ]
        return (
            "                    RDMA_Write BW Test\n"
            f" Number of qps   : {qps}\t\tTransport type : IB\n"
            " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n"
        ) + "".join(rows)

    def test_the_rate_of_queue_pairs_is_said_to_be_that_of_lanes(self) -> None:
        reading = taken(self.perftest(8, 9000.0, 20000.0, 22000.0))
        (notice,) = reading.notices
        assert (notice.code, notice.values) == ("several_lanes", (("lanes", 8.0),))
        assert "8 transfers at once (qps 8): this is the rate of 8 lanes" in notice.detail
        assert codes(taken(self.perftest(1, 9000.0, 20000.0, 22000.0))) == []

    def test_the_queue_pairs_of_a_command(self) -> None:
        table = self.perftest(1, 9.0, 20.0, 22.0).partition("\n #")[2]
        reading = taken(f"$ ib_write_bw -a -q 4 node2\n #{table}")
        assert [notice.values for notice in reading.notices] == [(("lanes", 4.0),)]

    def test_runs_of_several_queue_pairs_are_asked_for(self) -> None:
        text = self.perftest(1, 3000.0, 9000.0, 12000.0) + self.perftest(4, 9e3, 2e4, 2.2e4)
        with pytest.raises(UnreadableTrace, match=r"qps has the values 1, 4.*--where qps=1 \("):
            taken(text)
        one = taken(text, where="qps=1")
        assert pairs(messages(one).interarrival)[0] == near([(4096, 4096 / (3e3 * 2**20) * 1e6)])[0]
        assert codes(one) == []
        assert codes(taken(text, where="QPS=4.0")) == ["several_lanes"]

    def test_streams_of_iperf(self) -> None:
        document = json.loads(content_of("iperf3.json"))
        single = json.dumps(document)
        document["start"]["test_start"]["num_streams"] = 4
        several = json.dumps(document)
        assert codes(taken(several)) == ["several_lanes"]
        both = taken(single + several)
        assert both.trace == taken(single).trace
        assert understood(both)["streams"] == "1, of the values 1, 4"
        assert taken(single + several, where="streams=4").trace == taken(several).trace

    def test_batches_of_nixlbench(self) -> None:
        text = content_of("nixlbench.txt").decode()
        batch = taken(text, where="batch=4")
        rate = 17.8e9
        assert pairs(messages(batch).interarrival) == near([(2**24, 2**24 / rate * 1e6)])
        assert codes(batch) == ["several_lanes"]
        with pytest.raises(UnreadableTrace, match="it is indirect"):
            read(text.encode(), kind=TraceKind.END_TO_END, choice=RowChoice(where="batch=4"))


class TestMachines:
    """Columns of one name beside each other."""

    text = osu(line(1.0, 0.2), line(3.0, 0.25), line(7.0, 0.6))

    def test_they_are_asked_for_by_place(self) -> None:
        with pytest.raises(UnreadableTrace, match=r"column has the values 1, 2, 3.*column=1"):
            taken(self.text)

    @pytest.mark.parametrize(("column", "costs"), [(1, (1.0, 0.2)), (3, (7.0, 0.6))])
    def test_one_is_taken(self, column: int, costs: tuple[float, float]) -> None:
        reading = taken(self.text, where=f"column={column}")
        assert costs_of(reading) == pytest.approx(costs, rel=_NEAR)
        by_place = taken(self.text, f"size=#1,time=#{column + 1}:us")
        assert by_place.trace == reading.trace

    def test_other_columns_of_the_tool_are_none(self) -> None:
        text = self.text.replace("Latency (us)   Latency", "Avg Latency(us)   Min Latency", 1)
        assert pairs(messages(taken(text)).latency)[0] == near([(1, 1.0002)])[0]

    def test_named_as_columns_of_a_table_the_place_is_asked_for(self) -> None:
        with pytest.raises(InvalidInput, match=r"3 columns are called Latency \(us\).*time=#2"):
            taken(self.text, "size=Size,time=Latency (us)")

    def test_what_the_file_does_not_have_is_said(self) -> None:
        with pytest.raises(InvalidInput, match="no condition of this file is called host; it has"):
            taken(self.text, where="host=1")
        with pytest.raises(InvalidInput, match="values 1, 2, 3: expected one of them"):
            taken(self.text, where="column=4")


class TestTest:
    """Which test a file is of, where it does not say."""

    @staticmethod
    def unnamed() -> str:
        text = content_of("nccl-sendrecv.txt").decode()
        lines = [one for one in text.splitlines(keepends=True) if "sendrecv_perf" not in one]
        return "".join(lines)

    @pytest.mark.parametrize("test", ["sendrecv_perf", "sendrecv", "sendrecv_perf_mpi"])
    def test_it_is_told(self, test: str) -> None:
        with pytest.raises(UnreadableTrace, match=r"--test sendrecv_perf \(test\)"):
            taken(self.unnamed())
        reading = taken(self.unnamed(), test=test)
        assert messages(reading) == messages(read(content_of("nccl-sendrecv.txt")))
        assert understood(reading)["tests"] == "sendrecv_perf, as you said"

    def test_a_collective_is_refused_by_its_name(self) -> None:
        with pytest.raises(UnreadableTrace, match="all_reduce_perf: the time of a collective"):
            taken(self.unnamed(), test="all_reduce_perf")

    def test_what_the_file_says_counts(self) -> None:
        reading = taken(content_of("nccl-sendrecv.txt").decode(), test="all_reduce_perf")
        assert understood(reading)["tests"] == "sendrecv_perf"

    def test_a_read_of_perftest(self) -> None:
        text = content_of("perftest-read-lat.txt").decode()
        table = text[text.index("#bytes") :]
        assert understood(taken(table))["latency_is"].startswith("taken as half a round trip")
        told = taken(table, test="ib_read_lat")
        assert understood(told)["latency_is"] == "a whole Read operation"
        assert "read_is_round_trip" in codes(told)

    def test_other_formats_say_their_own(self) -> None:
        text = content_of("netpipe.out")
        assert read(text, choice=RowChoice(test="x")).trace == read(text, choice=NO_CHOICE).trace
