"""Tables of stages' costs: columns, units, ranges, and what may mean two things."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInput, SluiceError
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.stage_table import (
    MAX_TEXT,
    StageColumn,
    heading_of,
    is_stage_table,
    read_stage_table,
)
from domain.units import CostUnit, OverheadUnit

EXPECTED = pipeline_of_lines([("copy", 3.0, 1.0 / 24.0), ("wire", 1.5, 0.08)])


def same(found: Pipeline, expected: Pipeline) -> None:
    """Names, ends and costs, these to the last digits."""
    assert [one.name for one in found.stages] == [one.name for one in expected.stages]
    for one, other in zip(found.stages, expected.stages, strict=True):
        for part, wanted in zip(one.ranges, other.ranges, strict=True):
            assert part.up_to_bytes == wanted.up_to_bytes
            assert part.overhead_us == pytest.approx(wanted.overhead_us)
            assert part.ns_per_byte == pytest.approx(wanted.ns_per_byte)


@pytest.mark.parametrize(
    "text",
    [
        "stage,overhead,bandwidth\ncopy,3 us,24 GB/s\nwire,1500 ns,12.5 GB/s\n",
        "Stage\tOverhead (us)\tBandwidth (GB/s)\ncopy\t3\t24\nwire\t1.5\t12.5\n",
        "# ours\n\nname;overhead [µs];cost (ns/byte)\ncopy;3;0,0416666666667\nwire;1,5;0,08\n",
        "\ufeffhop,overhead_us,ns_per_byte\r\ncopy,3,0.0416666666667\r\nwire,1.5,0.08\r\n",
        'stage,"latency, us",BW GB/s\n"copy",3,24\nwire,1.5 us,100 Gb/s\n',
        "step,g (us),G (ns/byte)\ncopy,3,0.0416666666667\nwire,1.5,0.08\n",
        "stage,us,ns/byte\ncopy,3,0.0416666666667\nwire,1.5,0.08\n",
    ],
)
def test_tables_as_people_have_them(text: str) -> None:
    """Commas, tabs, semicolons with decimal commas; units in the header or beside the number."""
    assert is_stage_table(text)
    same(read_stage_table(text), EXPECTED)


def test_a_row_that_ends_at_a_size_is_a_range() -> None:
    """The next row goes on with its stage."""
    rows = ("stage,up to,overhead,cost", "nic,8 KiB,1 us,0.4 ns/byte", ",,6 us,10 GB/s")
    text = "\n".join((*rows, "cpu,,2 us,1 ns/byte"))
    ranges = (FitRange(1.0, 0.4, 8192), FitRange(6.0, 0.1))
    expected = Pipeline((Stage("nic", ranges), Stage.of_line("cpu", overhead_us=2, ns_per_byte=1)))
    same(read_stage_table(text), expected)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("stage,overhead,bandwidth\ncopy,3,24 GB/s", "line 2: expected a unit for 3"),
        ("stage,overhead us,bandwidth\ncopy,3,24", "line 2: expected a unit for 24"),
        ("stage,overhead us,bandwidth (furlong)\na,3,24", "“furlong” is none that is known"),
        ("stage,overhead us,gb/s bandwidth,bw GB/s\na,3,1,24", "not understood"),
        ("stage,overhead us,bw GB/s,foo\na,3,24,1", "“foo” is not understood"),
        ("stage,overhead us,bw GB/s\na,1,200,24", "line 2: more cells than columns"),
        ("stage;overhead us;bw GB/s\na;1,200;24", "line 2: 1200 or 1.2?"),
        ("stage,overhead us,bw GB/s\na,3,24\nTotal,3,24", "line 3: “Total” is a sum"),
        ("stage,overhead us,bw GB/s\n", "expected at least one stage"),
        ("stage,overhead us,bw GB/s\na,3,0", "bandwidth above 0"),
        ("stage,overhead us,bw GB/s\na,-3,24", "0 or more"),
        ("stage,overhead us,bw GB/s\na,,24", "line 2: expected a number of µs"),
        ("stage,up to,overhead us,bw GB/s\na,4 KiB,3,24", "last range has no end"),
        ("stage,up to,overhead us,bw GB/s\na,4 KiB,3,24\nb,,3,24", "continues its stage"),
        ("stage,up to,overhead us,bw GB/s\na,4K,3,24\n,2K,3,24\n,,3,24", "must increase"),
        ("stage,overhead us,bw GB/s\n" + "a,3,24\n" * 65, "at most 64 stages"),
    ],
)
def test_what_may_mean_two_things_is_refused(text: str, why: str) -> None:
    """With the row and the reason."""
    with pytest.raises(InvalidInput) as refused:
        read_stage_table(text)
    assert why in refused.value.detail


@pytest.mark.parametrize(
    "text",
    [
        "message_bytes,stage1_us,stage2_us\n1,2,3\n",
        "size,latency,bandwidth\n1,2,3\n",
        "# Size          Latency (us)\n1 2\n",
        "bytes,overhead,bandwidth\n1,2,3\n",
        "",
        "\n\n#\n",
        "overhead us\n3\n",
        "1,2,3\n",
        "x" * 10_000,
    ],
)
def test_measurements_are_none(text: str) -> None:
    """Nor is any other text."""
    assert not is_stage_table(text)


def test_a_text_beyond_any_table_is_refused() -> None:
    """Before it is read."""
    with pytest.raises(InvalidInput, match="characters"):
        read_stage_table("stage,overhead us,bw GB/s\n" + "a" * MAX_TEXT)


@pytest.mark.parametrize(
    ("header", "column", "unit"),
    [
        ("Bandwidth (GiB/s)", StageColumn.COST, CostUnit.GIB_PER_S),
        ("bw_Gb/s", StageColumn.COST, CostUnit.GBIT_PER_S),
        ("bw_gbps", StageColumn.COST, CostUnit.UNSPECIFIED),
        ("cost_ns_per_byte", StageColumn.COST, CostUnit.NS_PER_BYTE),
        ("ns_per_byte", StageColumn.COST, CostUnit.NS_PER_BYTE),
        ("time per byte, ns", StageColumn.COST, CostUnit.NS_PER_BYTE),
        ("overhead_us", StageColumn.OVERHEAD, OverheadUnit.US),
        ("Startup (ms)", StageColumn.OVERHEAD, OverheadUnit.MS),
        ("latency", StageColumn.OVERHEAD, OverheadUnit.UNSPECIFIED),
        ("up to", StageColumn.UP_TO, None),
        ("Stage", StageColumn.NAME, None),
    ],
)
def test_headers(header: str, column: StageColumn, unit: Any) -> None:
    """The column and the unit that each names."""
    found = heading_of(header)
    assert found is not None
    assert found.column is column
    if unit is not None:
        assert unit in (found.overhead_unit, found.cost_unit)


@given(st.text(max_size=200) | st.text("stage,overhead us;\t\n\"'()GB/s0123456789.", max_size=200))
def test_any_text_is_a_table_or_refused(text: str) -> None:
    """Never another error."""
    for one in (text, f"stage,overhead us,bandwidth GB/s\n{text}"):
        if is_stage_table(one):
            with suppress(SluiceError):
                assert read_stage_table(one).stages


@pytest.mark.parametrize("unit", ["Mbps", "Gbps", "gbps"])
@pytest.mark.parametrize(
    "table",
    ["overhead us,rate ({unit})\n9,24\n", "overhead us,{unit}\n9,24\n", "o us,bw\n9,24 {unit}\n"],
)
def test_bits_or_bytes_are_asked_back(table: str, unit: str) -> None:
    """In the header and beside a number, as by the reader of measurements."""
    with pytest.raises(InvalidInput, match=f"{unit} is written of bits and of bytes") as refused:
        read_stage_table("stage," + table.format(unit=unit).replace("\n9", "\ncopy,9"))
    assert "line 2" in refused.value.detail


def test_a_cell_that_says_which_counts_below_such_a_header() -> None:
    """Its own unit is the nearer one."""
    found = read_stage_table("stage,overhead us,rate (Gbps)\ncopy,9,24 GB/s\n")
    assert found == read_stage_table("stage,overhead us,rate\ncopy,9,24 GB/s\n")
