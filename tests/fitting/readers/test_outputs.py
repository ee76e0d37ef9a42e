"""Outputs as people have them, in small: what each is to be read as.

The files are in own words and numbers; the forms are those of public ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.errors import UnreadableTrace
from domain.measurement import Reading
from domain.trace_formats import UnrecognisedTrace
from fitting import fit, read
from fitting.plain_text import PASSED_OVER, PREFIX
from tests.fitting.readers.test_tools import content_of, messages, near, pairs, understood

OUTPUTS = Path(__file__).parents[2] / "data" / "outputs"
_NEAR = 0.03


def output(name: str) -> bytes:
    return (OUTPUTS / name).read_bytes()


def line_of(reading: Reading) -> tuple[float, float]:
    """Overhead in µs and ns a byte of the only line that is fitted."""
    (stage,) = fit([reading]).stages
    (line,) = stage.lines
    return line.overhead_us, line.ns_per_byte


def codes(reading: Reading) -> list[str]:
    return [notice.code for notice in reading.notices]


PREFIXED = {
    "ansi": ("colours", "removed from 7 lines"),
    "jenkins-clock": (PREFIX, "09:15:22 and the like removed from 8 lines"),
    "pdsh": (PREFIX, "node7: removed from 8 lines"),
    "prepend-rank": (PREFIX, "[0] removed from 8 lines"),
    "srun-label": (PREFIX, "0: removed from 8 lines"),
    "tag-output": (PREFIX, "[1,0]<stdout>: removed from 8 lines"),
    "timestamp": (PREFIX, "2026-05-04T10:11:12Z and the like removed from 8 lines"),
}


class TestLaunchers:
    """One file in nine forms is one measurement, and what was removed is said."""

    @pytest.mark.parametrize("form", ["plain", "crlf", *PREFIXED])
    def test_nine_forms_of_one_file(self, form: str) -> None:
        reading = read(output(f"m01-{form}.txt"))
        assert reading.trace == read(output("m01-plain.txt")).trace
        assert line_of(reading) == pytest.approx((3.05, 0.2545), rel=_NEAR)
        if form in PREFIXED:
            name, said = PREFIXED[form]
            assert understood(reading)[name] == said

    def test_tags_inside_of_rows(self) -> None:
        reading = read(output("m05-nccl-tag-output.log"))
        assert line_of(reading) == pytest.approx((25.0, 0.0715), rel=_NEAR)

    def test_a_table_below_a_long_prologue(self) -> None:
        """The form of m15, whose 78 kB are made here."""
        said = "NCCL INFO Channel 00/32 : 0[0] -> 1[1] via P2P/CUMEM/read"
        prologue = [f"n{at}:{4000 + at}:{4100 + at} [{at % 8}] {said}" for at in range(1000)]
        table = output("m05-nccl-tag-output.log").decode().replace("[1,0]<stdout>:", "")
        reading = read("\n".join([*prologue, table]).encode())
        assert line_of(reading) == pytest.approx((25.0, 0.0715), rel=_NEAR)

    def test_a_mail_in_html(self) -> None:
        reading = read(output("m17-netpipe-mail.html"))
        assert line_of(reading) == pytest.approx((50.0, 10.0), rel=_NEAR)

    def test_cells_of_html_stay_apart(self) -> None:
        text = "<table><tr><td># OSU MPI Latency Test v7.2</td></tr>\n"
        text += "<tr><td># Size </td><td>Latency (us)</td></tr>\n"
        text += "<tr><td>1</td><td>2.5</td></tr><tr><td>64</td><td>3.5</td></tr></table>\n"
        assert pairs(messages(read(text.encode())).latency) == [(1, 2.5), (64, 3.5)]

    def test_two_writers_with_a_run_each_are_not_pooled(self) -> None:
        lines = output("m01-plain.txt").decode().splitlines()
        slower = [line.replace(".00", "9.00") for line in lines]
        text = "".join(f"n1: {a}\nn2: {b}\n" for a, b in zip(lines, slower, strict=True))
        with pytest.raises(UnreadableTrace, match=r"n1: and n2: are each a run .* grep -F 'n1:'"):
            read(text.encode())
        alone = "".join(f"n1: {line}\n" for line in lines) + "n2: started\nn2: ended\n"
        reading = read(alone.encode())
        assert len(reading.trace) == 6
        said = "n1: removed from 8 lines; 2 lines of other writers passed over"
        assert understood(reading)[PREFIX] == said

    def test_lines_before_a_csv_are_passed_over_and_its_comments_kept(self) -> None:
        text = "loading modules\n# handles_replies: false\nready\n"
        content = text.encode() + content_of("signature.csv")
        reading = read(content)
        assert understood(reading)[PASSED_OVER] == "2 lines before line 4"
        assert reading.trace.handles_replies is False  # type: ignore[union-attr]

    def test_a_program_is_no_json(self) -> None:
        """Its braces begin lines, too."""
        with pytest.raises(UnrecognisedTrace, match="not recognised"):
            read(b"#include <mpi.h>\nint main(void)\n{\n    MPI_Abort(MPI_COMM_WORLD, 1);\n}\n")

    def test_what_a_refused_file_lacks_is_never_nothing(self) -> None:
        with pytest.raises(UnrecognisedTrace) as refusal:
            read(b"x # OSU MPI Latency Test v7.2\nx # Size   Latency (us)\nx y\n")
        assert all(miss.missing for miss in refusal.value.nearest)
        assert "lacks its layout, lines" in refusal.value.detail


class TestOddRuns:
    """Aborts, warnings and rows that are cut off are said, whatever the tool."""

    def test_an_abort_is_named(self) -> None:
        reading = read(output("m07-imb-aborted.txt"))
        assert len(reading.trace) == 5
        assert codes(reading) == ["run_aborted"]
        assert "BAD TERMINATION" in reading.notices[0].detail
        assert reading.notices[0].value("line") == 11.0

    @pytest.mark.parametrize(
        "said",
        [
            "srun: error: node7: task 0: Exited with exit code 1",
            "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-05-04 DUE TO TIME LIMIT ***",
            "mpirun noticed that process rank 1 with PID 5 on node n2 exited on signal 11",
            "Segmentation fault (core dumped)",
            "application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0",
        ],
    )
    @pytest.mark.parametrize(
        "name", ["osu-latency-v5.txt", "perftest-write-lat.txt", "nccl-sendrecv.txt", "netpipe.out"]
    )
    def test_by_every_reader(self, name: str, said: str) -> None:
        content = content_of(name)
        reading = read(content + said.encode() + b"\n")
        assert "run_aborted" in codes(reading)
        assert reading.trace == read(content).trace
        assert "run_aborted" not in codes(read(content))

    def test_where_nothing_was_measured_the_refusal_names_it(self) -> None:
        text = b"# OSU MPI Latency Test v7.2\n# Size  Latency (us)\nBus error\n"
        with pytest.raises(UnreadableTrace, match=r'aborted: line 3 says "Bus error"'):
            read(text)

    def test_warnings_are_counted(self) -> None:
        said = b"[n1:7] WARNING: no device found\nUCX  WARN  transport 'rc' is not available\n"
        reading = read(said + content_of("osu-latency-v5.txt"))
        assert codes(reading) == ["tool_warned"]
        assert reading.notices[0].detail.startswith(
            "2 lines are warnings, the first of them line 1"
        )

    def test_rows_that_are_cut_off_are_said(self) -> None:
        reading = read(output("m01-plain.txt")[:-4])
        assert codes(reading) == ["rows_cut_off"]
        hosts = read(output("m01-plain.txt") + b"10.0.0.7 is node7\n")
        assert codes(hosts) == []


class TestTools:
    """Tools that were not read before."""

    def test_pingpong_and_its_partner(self) -> None:
        reading = read(output("m06-imb-pingpong-uniband.txt"))
        trace = messages(reading)
        assert dict(pairs(trace.latency))[1_048_576] == 200.0
        assert dict(pairs(trace.interarrival))[1_048_576] == pytest.approx(100.0)
        assert understood(reading)["tests"] == "PingPong, Uniband"

    def test_uniband_of_two_processes_alone(self) -> None:
        reading = read(content_of("imb-uniband.txt"))
        expected = near([(8, 1 / 3), (4096, 1.0), (1_048_576, 100.0)])
        assert pairs(messages(reading).interarrival) == expected
        assert understood(reading)["benchmarks_left_out"] == "Uniband of 4 processes, Biband"

    def test_pairs_of_one_are_a_bandwidth_test_and_more_are_none(self) -> None:
        content = content_of("osu-mbw-mr-one-pair.txt")
        found = dict(pairs(messages(read(content)).interarrival))
        assert found[1_048_576] == pytest.approx(102.4)
        with pytest.raises(UnreadableTrace, match=r"Multiple Bandwidth .* several pairs"):
            read(content.replace(b"pairs: 1", b"pairs: 4"))
        with pytest.raises(UnreadableTrace, match="several pairs"):
            read(content.replace(b"# [ pairs: 1 ] [ window size: 64 ]\n", b""))

    def test_ucx_without_a_column_stage(self) -> None:
        found = messages(read(content_of("ucx-without-stage.txt"))).latency
        assert pairs(found) == [(4096, 4.0), (65_536, 15.2)]
        command = b"ucx_perftest -t tag_lat -s 4096\n"
        reading = read(command + output("m09-ucx-old-layout.txt"))
        assert pairs(messages(reading).latency) == [(4096, 4.0)]

    def test_nixlbench_on_the_screen_and_in_a_csv(self) -> None:
        reading = read(content_of("nixlbench.txt"))
        found = pairs(messages(reading).latency)
        assert found[0] == (4096, 10.5)
        assert found[-1] == (16_777_216, 972.0)
        assert understood(reading)["batch"] == "1, of the values 1, 4"
        assert line_of(reading) == pytest.approx((10.26, 0.0572), rel=_NEAR)
        in_csv = pairs(messages(read(content_of("nixlbench.csv"))).latency)
        assert in_csv == found[1:4]

    @pytest.mark.parametrize(
        ("old", "new", "rule"),
        [
            (b": 1\n", b": 8\n", "of 8 threads: they transfer at once.*--num_threads=1"),
            (b"P99 Tx (us)", b"Aggregate B/W (GB/Sec)", "more than two workers"),
        ],
    )
    def test_nixlbench_of_several_at_once_is_refused(
        self, old: bytes, new: bytes, rule: str
    ) -> None:
        with pytest.raises(UnreadableTrace, match=rule):
            read(content_of("nixlbench.txt").replace(old, new))

    def test_fi_pingpong(self) -> None:
        reading = read(content_of("fi-pingpong.txt"))
        found = pairs(messages(reading).latency)
        assert found == [(64, 2.4), (1536, 2.6), (4096, 3.3), (1_048_576, 90.0)]
        left_out = understood(reading)["rows_left_out"]
        assert left_out == "1: 1 with fewer messages acknowledged than sent"
        with pytest.raises(UnreadableTrace, match=r"do not say which.*name the columns"):
            read(b"bytes   iters   total  time  MB/sec  usec/xfer  Mxfers/sec\n64 1 1 1 1 1 1\n")

    @pytest.mark.parametrize("test", ["all_reduce", "all_gather", "reduce_scatter", "alltoall"])
    def test_collectives_are_refused_as_what_they_are(self, test: str) -> None:
        content = content_of("nccl-sendrecv.txt").replace(b"sendrecv", test.encode())
        rule = rf"{test}_perf: the time of a collective .*sendrecv_perf -b 8"
        with pytest.raises(UnreadableTrace, match=rule):
            read(content)
