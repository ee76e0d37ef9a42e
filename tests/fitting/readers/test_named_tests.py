"""Files that do not name their test, and may be bare columns: the user names it, or their name."""

from __future__ import annotations

import pytest

from domain.conditions import RowChoice
from domain.errors import UnreadableTrace
from domain.fit import FitOptions
from domain.measurement import Reading
from domain.trace_formats import UnrecognisedTrace
from fitting import read
from tests.fitting.readers.test_tools import content_of, messages, near, pairs, understood

OSU = "1 2.00\n4096 3.25\n65536 12.50\n1048576 190.00\n"
RATES = "1 4.00\n4096 2048.00\n65536 9000.00\n1048576 11000.00\n"
IMB = "1 1000 1.10 0.91\n1024 1000 1.90 538.95\n65536 640 14.00 4681.14\n"
UNIBAND = "1 1000 4.00 4000000\n1024 1000 2048.00 2000000\n65536 640 8192.00 125000\n"


def taken(text: str, test: str | None = None, run: int | None = None) -> Reading:
    return read(text.encode(), choice=RowChoice(test=test, run=run))


class TestOsu:
    def test_bare_columns(self) -> None:
        reading = taken(OSU, "osu_latency")
        assert pairs(messages(reading).latency)[1] == (4096, 3.25)
        assert understood(reading)["tests"] == "osu_latency, as you said"
        found = pairs(messages(taken(RATES, "OSU_BW")).interarrival)
        assert found[1] == near([(4096, 2.0)])[0]

    @pytest.mark.parametrize("test", ["osu_latency", "osu_bw"])
    def test_a_header_without_its_title(self, test: str) -> None:
        name = "Latency (us)" if test == "osu_latency" else "Bandwidth (MB/s)"
        text = f"# Size          {name}\n{OSU}"
        with pytest.raises(UnrecognisedTrace, match=r"name it, as by --test osu_latency \(test\)"):
            taken(text)
        assert len(taken(text, test).trace) == 4
        other = "osu_bw" if test == "osu_latency" else "osu_latency"
        with pytest.raises(UnreadableTrace, match=f"line 1: the header is of .* not of {other}"):
            taken(text, other)

    def test_columns_apart_by_commas_and_further_ones(self) -> None:
        commas = OSU.replace(" ", ",")
        expected = taken(OSU, "osu_latency").trace
        for text in (commas, f"Size,Latency (us)\n{commas}", OSU.replace(" ", "\t")):
            assert taken(text, "osu_latency").trace == expected
        full = "1 2.00 1.90 2.40 1000\n4096 3.25 3.10 4.00 1000\n"
        assert pairs(messages(taken(full, "osu_latency")).latency) == [(1, 2.0), (4096, 3.25)]
        for other in ("2,1,64,3.1\n2,1,4096,4.2\n", "2 1 3\n4 1 3\n"):
            with pytest.raises(UnreadableTrace, match="no rows"):
                taken(other, "osu_latency")

    def test_prefixes_are_removed_first(self) -> None:
        text = "".join(f"node7: {line}\n" for line in OSU.splitlines())
        assert taken(text, "osu_latency").trace == taken(OSU, "osu_latency").trace

    def test_sizes_that_start_anew_begin_a_run(self) -> None:
        slower = OSU.replace(" ", " 9")
        with pytest.raises(UnreadableTrace, match="--run 1 or --run 2"):
            taken(OSU + slower, "osu_latency")
        assert taken(OSU + slower, "osu_latency", 1).trace == taken(OSU, "osu_latency").trace

    @pytest.mark.parametrize(
        ("test", "why"),
        [
            ("osu_bibw", "both directions"),
            ("osu_mbw_mr", "several pairs"),
            ("osu_latency_mt", "several pairs or threads"),
            ("osu_put_latency", "one-sided"),
            ("osu_allreduce", "not one message on its way"),
        ],
    )
    def test_others_are_refused_by_name(self, test: str, why: str) -> None:
        with pytest.raises(UnreadableTrace, match=rf"{test} is not read: .*{why}"):
            taken(OSU, test)

    def test_what_the_file_says_counts(self) -> None:
        content = content_of("osu-latency-v5.txt").decode()
        assert taken(content, "osu_bw").trace == taken(content).trace


class TestImb:
    @pytest.mark.parametrize("test", ["PingPong", "imb-mpi1_pingpong", "IMB_PingPong"])
    def test_bare_columns(self, test: str) -> None:
        reading = taken(IMB, test)
        assert pairs(messages(reading).latency) == [(1, 1.1), (1024, 1.9), (65_536, 14.0)]
        found = pairs(messages(taken(UNIBAND, "uniband")).interarrival)
        assert found == near([(1, 0.25), (1024, 0.5), (65_536, 8.0)])

    def test_columns_of_something_else_are_none(self) -> None:
        for test in ("pingpong", "uniband"):
            with pytest.raises(UnreadableTrace, match="no rows"):
                taken(OSU, test)
            other = UNIBAND if test == "pingpong" else IMB
            with pytest.raises(UnreadableTrace, match="no rows"):
                taken(other, test)

    def test_a_header_without_its_title(self) -> None:
        text = f"#bytes #repetitions t[usec] Mbytes/sec\n{IMB}"
        assert understood(taken(text))["tests"] == "not named: taken as PingPong"
        assert understood(taken(text, "PingPong"))["tests"] == "PingPong, as you said"
        with pytest.raises(UnreadableTrace, match="only pingping"):
            taken(text, "PingPing")
        rates = f"#bytes #repetitions Mbytes/sec Msg/sec\n{UNIBAND}"
        assert len(taken(rates, "Uniband").trace) == 3
        with pytest.raises(UnreadableTrace):
            taken(rates)


class TestFio:
    text = content_of("fio-clat.log").decode()

    @pytest.mark.parametrize("test", ["fio_clat", "lat"])
    def test_a_log_of_latencies(self, test: str) -> None:
        reading = taken(self.text, test)
        assert reading.trace == taken(self.text).trace
        assert understood(reading)["measured"].endswith(", as you said")

    @pytest.mark.parametrize(
        ("test", "why"),
        [("fio_bw", "of bandwidths"), ("iops", "I/Os a second"), ("fio_slat", "handed over")],
    )
    def test_other_logs_are_refused(self, test: str, why: str) -> None:
        with pytest.raises(UnreadableTrace, match=rf"{why}.*clat"):
            taken(self.text, test)


def test_a_name_that_no_tool_has() -> None:
    with pytest.raises(UnrecognisedTrace, match=r"no test is called abc: expected one as osu_lat"):
        taken(OSU, "abc")


def test_several_files_have_a_test_each() -> None:
    options = FitOptions(choice=RowChoice(test="osu_latency,,osu_bw"))
    assert [options.choice_of(at).test for at in range(4)] == ["osu_latency", None, "osu_bw", None]
