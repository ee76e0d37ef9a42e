"""The layouts of outputs that people have published, each in a file of our own figures.

What is read is read right, what is refused says why and what to do, and what is not read yet is
refused as well.

Names as a10 are those of the outputs that were collected, m01 those of the small inputs made after
them (tests/data/outputs), and threads those in which a size was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import pytest

from domain.conditions import RowChoice
from domain.errors import InvalidInput, UnreadableTrace
from domain.measurement import MessageTrace
from domain.stage_table import is_stage_table
from fitting import fit, read
from fitting.own_transfers import is_own_transfers
from tests.fitting.readers.test_tools import content_of, understood

OUTPUTS = Path(__file__).parents[1] / "data" / "outputs"
SIZES = (1024, 16_384, 262_144, 4_194_304)
A, B, C = (3.0, 0.25), (9.0, 0.75), (5.0, 0.1)  # µs and ns a byte
_NEAR = 0.03


class Fate(StrEnum):
    READ = "read"
    REFUSED = "rightly refused"
    NOT_YET = "not read yet"


@dataclass(frozen=True, slots=True)
class Layout:
    """One layout: of which output, in words, a file of it, and what becomes of it.

    `says` is the line of what is read (µs and ns a byte, or ns a byte alone), or what the refusal
    has to say.
    """

    of: str
    what: str
    text: str
    says: tuple[float, float] | float | str
    columns: str | None = None
    choice: RowChoice = field(default_factory=RowChoice)
    fate: Fate = Fate.REFUSED
    understood: tuple[str, str] | None = None


def times(costs: tuple[float, float], sizes: Sequence[int] = SIZES) -> list[float]:
    return [costs[0] + size * costs[1] / 1e3 for size in sizes]


def rates(costs: tuple[float, float], sizes: Sequence[int] = SIZES) -> list[float]:
    """In MB/s of 10^6 bytes."""
    return [size / time_us for size, time_us in zip(sizes, times(costs, sizes), strict=True)]


def rows(line: str, *columns: Sequence[float], sizes: Sequence[int] = SIZES) -> str:
    """A line for each size, of its number and those of these columns."""
    return "".join(line.format(size, *of) + "\n" for size, *of in zip(sizes, *columns, strict=True))


def osu(*costs: tuple[float, float]) -> str:
    names = "   ".join("Latency (us)" for _ in costs)
    line = "{}" + "     {:.4f}" * len(costs)
    return f"# OSU MPI Latency Test v7.2\n# Size     {names}\n" + rows(line, *map(times, costs))


def pairs(count: int, costs: tuple[float, float]) -> str:
    head = "# OSU MPI Multiple Bandwidth / Message Rate Test v7.2\n"
    head += f"# [ pairs: {count} ] [ window size: 64 ]\n# Size         MB/s       Messages/s\n"
    return head + rows("{} {:.4f} 1.0", rates(costs))


def imb(name: str, processes: int, costs: tuple[float, float]) -> str:
    head = f"# Benchmarking {name}\n# #processes = {processes}\n"
    if name == "PingPong":
        table = "#bytes #repetitions      t[usec]   Mbytes/sec\n"
        return head + table + rows("{} 100 {:.4f} {:.2f}", times(costs), rates(costs))
    gaps = [1e6 / time_us for time_us in times(costs)]
    table = "#bytes #repetitions   Mbytes/sec      Msg/sec\n"
    return head + table + rows("{} 100 {:.2f} {:.3f}", rates(costs), gaps)


def nccl(test: str, costs: tuple[float, float], *, names: bool = True) -> str:
    head = f"# Collective test starting: {test}\n" if names else ""
    head += (
        "# nThread 1 nGpus 1 minBytes 1024 maxBytes 4194304\n#\n#  Rank  0 Group  0 Pid 7 on n1\n"
    )
    head += (
        "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
    )
    line = "{} 256 float sum -1 {:.3f} 1.00 1.00 0 {:.3f} 1.00 1.00 N/A"
    return head + rows(line, times(costs), times(costs))


def perftest(qps: int, costs: tuple[float, float]) -> str:
    mebibytes = [rate * 1e6 / 2**20 for rate in rates(costs)]
    return (
        f"                    RDMA_Write BW Test\n Number of qps   : {qps}\n"
        " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n"
    ) + rows(" {} 5000 {:.4f} {:.4f} 0.1", mebibytes, mebibytes)


def nixl(costs: tuple[float, float], *, batch: int = 1, csv: bool = False) -> str:
    rate = [value / 1e3 for value in rates(costs)]
    if csv:
        head = "block_size,batch_size,bw_gb_us,avg_lat_us,avg_prep_us,p99_prep_us\n"
        return head + rows(f"{{}},{batch},{{:.6f}},{{:.4f}},1.0,1.5", rate, times(costs))
    head = "Block Size (B)      Batch Size     B/W (GB/Sec)   Avg Lat. (us)  Avg Prep (us)\n"
    line = f"{{}}   {batch}   {{:.6f}}   {{:.4f}}   1.0"
    return head + "-" * 70 + "\n" + rows(line, rate, times(costs))


def fabric(costs: tuple[float, float]) -> str:
    head = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"
    return head + rows("{} 10 =10 1m 0.00s 1.00 {:.4f} 0.05", times(costs))


def fio(costs: tuple[float, float]) -> str:
    jobs = [
        {
            "job options": {"bs": str(size)},
            "read": {"io_bytes": size, "total_ios": 1, "clat_ns": {"mean": time_us * 1e3}},
        }
        for size, time_us in zip(SIZES, times(costs), strict=True)
    ]
    return json.dumps({"fio version": "fio-3.33", "jobs": jobs}) + "\n"


def table(separator: str, names: str, line: str, *columns: Sequence[float]) -> str:
    return f"{names}\n" + rows(line.replace(",", separator), *columns)


def conditions(*costs: tuple[float, float], name: str = "tasks") -> str:
    return f"part,{name},seconds\n" + "".join(
        rows(f"{{}},{4**at},{{:.9f}}", [time_us / 1e6 for time_us in times(of)])
        for at, of in enumerate(costs)
    )


def lines(prefix: Callable[[int], str], text: str) -> str:
    return "".join(f"{prefix(at)}{line}\n" for at, line in enumerate(text.splitlines()))


def html(text: str) -> str:
    body = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<html><body><pre>\n{body}</pre></body></html>\n"


PROLOGUE = "n1:7:9 [0] NCCL INFO Channel 00/02 : 0[0] -> 1[1] via P2P/CUMEM\n"
NETPIPE = rows(
    "  0: {} bytes    100 times -->    {:.2f} Mbps in {:.4f} usec",
    [rate * 8e6 / 2**20 for rate in rates(A)],
    times(A),
)
SOURCE = "run(), common.cu:{}, "
SWEEP = "message_bytes,fragment_bytes,latency_us\n" + rows("16MiB,{},{:.1f}", (9e3, 5e3, 4e3, 7e3))
BENCH = (
    "./transfer_engine_bench --mode=initiator --block_size={} --batch_size=1 --threads=1\n"
    "I0504 10:11:12.345678  4711 transfer_engine_bench.cpp:397] Worker 0 stopped!\n"
    "I0504 10:11:12.345678  4711 transfer_engine_bench.cpp:513] Test completed: duration 10.00, "
    "batch count {:.0f}, throughput {:.6f} GB/s"
)
ENGINE = rows(BENCH, [1e7 / time_us for time_us in times(A)], [rate / 1e3 for rate in rates(A)])
SLIME = "Batch size        : 160\nBlock size        : {}\nThroughput        : {:.1f} MiB/s"
FIO_TERSE = "3;fio-3.33;seq;0;0;" + ";".join(str(at) for at in range(120)) + "\n"
READ, NOT_YET = Fate.READ, Fate.NOT_YET
PAIRS = (
    "# OSU MPI Multiple Bandwidth / Message Rate Test v7.2\n# [ pairs: {} ] [ window size: 64 ]\n"
)

LAYOUTS = (
    # 1, 5: costs far off, and switches at the end
    Layout(
        "m12",
        "rates of far sizes",
        (OUTPUTS / "m12-far-sizes-one-stage.csv").read_text(),
        0.0716,
        "size=size:B,rate=GBps:GB/s",
        fate=READ,
    ),
    # 2: one message by fragment size
    Layout(
        "m16",
        "chunks and the whole time of one message, by columns",
        table(",", "chunk,total_ms", "{},{:.3f}", (90.0, 50.0, 40.0, 30.0)),
        "whole transfers of one message .*sluice optimize FILE",
        "size=chunk:B,time=total_ms:ms",
    ),
    Layout(
        "Ozone, AutoMQ, Azure gRPC, megfile",
        "a sweep in the form of own transfers",
        SWEEP,
        "whole transfers of a message by fragment size.*sluice optimize FILE",
    ),
    # 3: several conditions
    Layout(
        "a27, m11",
        "a table by tasks",
        conditions(A, B),
        "tasks has the values 1, 4.*--where tasks=1",
        "size=part:B,time=seconds:s",
    ),
    Layout(
        "a27, m11",
        "a table by tasks, one of them",
        conditions(A, B),
        A,
        "size=part:B,time=seconds:s",
        RowChoice(where="tasks=1"),
        READ,
    ),
    Layout(
        "m02",
        "two blocks under words",
        "# with 2 processes\n"
        + table(" ", "size t_us", "{} {:.4f}", times(A))
        + "# with 16 processes\n"
        + table(" ", "size t_us", "{} {:.4f}", times(B)),
        "2 runs in this file differ.*--run 1 or --run 2",
        "size=size:B,time=t_us",
    ),
    Layout(
        "a10",
        "Uniband of several numbers of processes",
        "".join(imb("Uniband", count, A if count == 2 else B) for count in (2, 4, 8, 16, 32)),
        A,
        fate=READ,
        understood=("benchmarks_left_out", "Uniband of 4 processes"),
    ),
    Layout(
        "a13",
        "fi_pingpong of two kinds of end points",
        fabric(A) + fabric(B),
        "2 runs in this file differ.*--run 1 or --run 2",
    ),
    Layout(
        "a13",
        "fi_pingpong, one of them",
        fabric(A) + fabric(B),
        B,
        choice=RowChoice(run=2),
        fate=READ,
    ),
    Layout(
        "a09, m18",
        "three machines as columns of one name",
        osu(A, B, C),
        "column has the values 1, 2, 3.*--where column=1",
    ),
    Layout(
        "a09, m18",
        "one of three machines",
        osu(A, B, C),
        C,
        choice=RowChoice(where="column=3"),
        fate=READ,
    ),
    Layout(
        "m14",
        "before and after a change",
        osu(A) + "$ UCX_TLS=tcp osu_latency\n" + osu(B),
        "2 runs in this file differ.*--run 1 or --run 2",
    ),
    Layout(
        "m14",
        "two drivers in one mail, that agree",
        osu(A) + "> second driver\n" + osu(A),
        A,
        fate=READ,
        understood=("runs", "2"),
    ),
    Layout("a38, m13", "ib_write_bw -q 8", perftest(8, A), A, fate=READ),
    Layout("a11", "nixlbench of batches", nixl(A, batch=8), A, fate=READ),
    # 4: what launchers, mails and logs put around lines
    Layout("a39, m17", "NetPIPE in an HTML mail", html(NETPIPE), A, fate=READ),
    *(
        Layout(of, f"OSU behind {what}", lines(prefix, osu(A)), A, fate=READ)
        for of, what, prefix in (
            ("a06, m01", "[0]", lambda at: "[0] "),
            ("a18, m01", "0:", lambda at: "0: "),
            ("a26, m01", "clock times", lambda at: f"09:15:{at:02} "),
            ("m01", "ISO times", lambda at: f"2026-05-04T10:11:{at:02}Z "),
            ("m01", "node7:", lambda at: "node7: "),
            ("m01, m05", "--tag-output", lambda at: "[1,0]<stdout>:"),
            ("m01", "colours", lambda at: "\x1b[0m"),
        )
    ),
    Layout(
        "m15",
        "a table below 90 KB of a log",
        PROLOGUE * 1400 + nccl("sendrecv_perf", A),
        A,
        fate=READ,
    ),
    Layout(
        "a05, m04",
        "nccl-tests without its name",
        nccl("sendrecv_perf", A, names=False),
        r"--test sendrecv_perf \(test\)",
    ),
    Layout(
        "a05, m04",
        "nccl-tests whose name is said",
        nccl("sendrecv_perf", A, names=False),
        A,
        choice=RowChoice(test="sendrecv_perf"),
        fate=READ,
    ),
    Layout(
        "nccl-tests logs",
        "lines that say where in the source they are printed",
        "".join(
            SOURCE.format(at) + line + "\n" if line.startswith("#") else line + "\n"
            for at, line in enumerate(nccl("sendrecv_perf", A).splitlines(), 900)
        ),
        A,
        fate=READ,
    ),
    Layout(
        "nccl-tests logs",
        "a file that is named after another program",
        "NCCL INFO NCCL_TOPO_DUMP_FILE set to topo_sendrecv_perf.xml\n" + nccl("", A, names=False),
        A,
        fate=READ,
    ),
    Layout(
        "N5",
        "all_reduce_perf",
        nccl("all_reduce_perf", A),
        "time of a collective.*sendrecv_perf -b",
    ),
    Layout(
        "N5",
        "a warning of MCA before the test",
        "[host01:221] Some MCA warning\n" + osu(A),
        A,
        fate=READ,
    ),
    # 6: NIXL, Mooncake
    Layout("a11", "nixlbench in a CSV", nixl(A, csv=True), A, fate=READ),
    Layout("a12, m03", "nixlbench on the screen", nixl(A), A, fate=READ),
    Layout(
        "a23, a35, m03",
        "names of columns with blanks",
        table(
            " ",
            "Block Size (B)      Batch     Avg Lat. (ns)",
            "{}        1        {:.1f}",
            [time_us * 1e3 for time_us in times(A)],
        ),
        A,
        "size=Block Size (B):B,time=Avg Lat. (ns):ns",
        fate=READ,
    ),
    Layout("N5", "transfer_engine_bench with its commands", ENGINE, A, fate=READ),
    Layout(
        "N5",
        "transfer_engine_bench without",
        "".join(line + "\n" for line in ENGINE.splitlines() if "--mode" not in line),
        "not of which blocks: keep the command above its lines",
    ),
    Layout(
        "N5",
        "tebench of Mooncake",
        "BlkSize (B)   Batch   BW (GB/s)   Avg Lat (us)   Avg Tx (us)\n"
        + rows(
            "{}   1   {:.6f}   {:.1f}   1.0",
            [rate / 1e3 for rate in rates((3.0, 0.2))],
            times((3.0, 0.2)),
        ),
        (3.0, 0.2),
        fate=READ,
    ),
    Layout(
        "Slime",
        "a transfer engine's lines of batch, block and throughput",
        rows(SLIME, rates(A)),
        "not recognised",
        fate=NOT_YET,
    ),
    # 7: the partner of PingPong
    Layout(
        "m06",
        "PingPong and Uniband",
        (OUTPUTS / "m06-imb-pingpong-uniband.txt").read_text(),
        "two lines",
        fate=READ,
        understood=("tests", "PingPong, Uniband"),
    ),
    Layout("7", "Biband alone", imb("Biband", 2, A), "no PingPong or Uniband .*Biband"),
    Layout(
        "7",
        "osu_mbw_mr of one pair",
        pairs(1, A),
        A,
        fate=READ,
    ),
    Layout(
        "7",
        "osu_mbw_mr of four pairs",
        pairs(4, A),
        "several pairs",
    ),
    # 8: lanes
    Layout(
        "megfile, skywire",
        "rates by part and number of lanes",
        conditions(B, A, name="connections"),
        "connections has the values 1, 4.*--where connections=1",
        "size=part:B,time=seconds:s",
    ),
    # 10: smaller ones
    Layout(
        "a08, a19, m10",
        "cells in KB whose column is named in KiB",
        table(
            "|",
            "| Part | Avg (us) |",
            "| {}KB | {:.4f} |",
            [A[0] + size * 1024 * A[1] / 1e3 for size in SIZES],
        ),
        A,
        "size=Part:KiB,time=Avg (us):us",
        fate=READ,
    ),
    Layout(
        "a16, m07",
        "a run that was aborted",
        (OUTPUTS / "m07-imb-aborted.txt").read_text(),
        "run_aborted",
        fate=READ,
    ),
    Layout(
        "m09",
        "ucx_perftest before it had a column Stage",
        (OUTPUTS / "m09-ucx-old-layout.txt").read_text().partition("\n")[2],
        "put both logs into one file, or say what the client ran",
    ),
    Layout(
        "N5",
        "osu_latency.out of bare columns",
        rows("{} {:.4f}", times(A)),
        A,
        choice=RowChoice(test="osu_latency"),
        fate=READ,
    ),
    Layout(
        "7",
        "PingPong of bare columns",
        rows("{} 100 {:.4f} {:.2f}", times(A), rates(A)),
        A,
        choice=RowChoice(test="imb_pingpong"),
        fate=READ,
    ),
    # what was looked for, and not found
    Layout(
        "not found",
        "fio in its terse form",
        FIO_TERSE,
        "terse output of fio is not read: run it with --output-format=json",
    ),
    Layout(
        "not found",
        "the summary of fio",
        "seq: (g=0): rw=read, bs=(R) 4096B-4096B, (W) 4096B-4096B, ioengine=psync, iodepth=1\n"
        "fio-3.33\n  read: IOPS=20.1k, BW=78.6MiB/s (82.4MB/s)\n"
        "    clat (usec): min=31, max=902, avg=48.20, stdev=11.41\n",
        "summary of fio is not read: run it with --output-format=json",
    ),
    Layout(
        "not found",
        "JSON of fio below its summary",
        "seq: (g=0): rw=read, bs=(R) 4096B-4096B\n" * 120 + fio(A),
        A,
        fate=READ,
    ),
    Layout(
        "not found",
        "iperf3 on the screen",
        "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n"
        "[  5]   0.00-1.00   sec  1.10 GBytes  9.41 Gbits/sec    0    613 KBytes\n",
        "do not say the size of its blocks: run iperf3 -c HOST -l 64K -J",
    ),
    Layout(
        "not found",
        "rocm_bandwidth_test by size",
        "RocmBandwidthTest Version: 2.6.0\n"
        + table(
            " ",
            "Data Size      Avg Time(us)   Avg BW(GB/s)",
            "{} B   {:.3f}   {:.3f}",
            times(A),
            [rate / 1e3 for rate in rates(A)],
        ),
        "not recognised",
        fate=NOT_YET,
    ),
)


@pytest.mark.parametrize(
    "layout", LAYOUTS, ids=[f"{layout.of}-{layout.what}" for layout in LAYOUTS]
)
def test_a_layout_is_read_right_or_refused_in_words(layout: Layout) -> None:
    content = layout.text.encode()
    if layout.fate is not Fate.READ:
        assert isinstance(layout.says, str)
        with pytest.raises((UnreadableTrace, InvalidInput), match=layout.says):
            read(content, columns=layout.columns, choice=layout.choice)
        return
    reading = read(content, columns=layout.columns, choice=layout.choice)
    if layout.understood is not None:
        name, value = layout.understood
        assert understood(reading)[name].startswith(value)
    if layout.says == "run_aborted":
        assert "run_aborted" in [notice.code for notice in reading.notices]
    elif layout.says == "two lines":
        assert isinstance(reading.trace, MessageTrace)
        assert reading.trace.latency is not None
        assert reading.trace.interarrival is not None
    else:
        (stage,) = fit([reading]).stages
        (line,) = stage.lines
        if isinstance(layout.says, float):
            assert line.ns_per_byte == pytest.approx(layout.says, rel=_NEAR)
            return
        assert (line.overhead_us, line.ns_per_byte) == pytest.approx(layout.says, rel=_NEAR)


def test_forms_that_other_readers_take() -> None:
    """A sweep is of own transfers, and costs of stages are no measurements: each has its door."""
    assert is_own_transfers(SWEEP)
    assert is_stage_table("stage,overhead_us,bandwidth\nwire,1.5,12.5 GB/s\n")
    assert json.loads(content_of("rccl-results.json"))


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (
            "# OSU MPI Allreduce Latency Test v7.2\n# Size  Avg Latency(us)\n8  9.1\n",
            "run osu_latency",
        ),
        (
            "# OSU MPI Bi-Directional Bandwidth Test v7.2\n# Size  Bandwidth (MB/s)\n8  9.1\n",
            "run osu_l",
        ),
        (
            "# Benchmarking Exchange \n# #processes = 4 \n #bytes #repetitions t_min[usec] "
            "t_max[usec] t_avg[usec] Mbytes/sec\n 8 1000 1.1 1.3 1.2 6.6\n",
            "run IMB-MPI1 PingPong",
        ),
        (
            "   RDMA_Write Bidirectional BW Test\n #bytes #iterations BW peak[MB/sec] "
            "BW average[MB/sec] MsgRate[Mpps]\n 8 1000 9.1 9.0 1.1\n",
            "run it without -b",
        ),
    ],
)
def test_what_is_refused_for_its_test_says_which_to_run(text: str, step: str) -> None:
    with pytest.raises(UnreadableTrace, match=step):
        read(text.encode())


def test_nothing_is_left_open() -> None:
    """What is not read yet: few, and each said to be so."""
    open_ones = [layout.what for layout in LAYOUTS if layout.fate is Fate.NOT_YET]
    assert len(open_ones) == 2
    assert len(LAYOUTS) - len(open_ones) > 40
