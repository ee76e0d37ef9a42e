"""Tables of items: columns, units, and what is refused by row and column."""

from __future__ import annotations

from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.limits import MAX_OVERHEAD_US
from domain.errors import InvalidInput
from domain.item_table import item_table, read_item_table


def test_every_kind_of_column_is_read() -> None:
    text = "name,bytes,ready (us),copy_ms,load\na,4,1,0.5,3 us\n\nb,2 KiB,2.5,1,250 ns\n"
    assert read_item_table(text).items == {
        "names": ["a", "b"],
        "bytes": [4, 2048],
        "ready_us": [1.0, 2.5],
        "stage_us": {"copy": [500.0, 1000.0], "load": [3.0, 0.25]},
    }


def test_sizes_have_the_unit_of_their_heading() -> None:
    """But for those that have their own."""
    assert read_item_table("bytes (MiB)\n1\n3 KiB\n").items == {"bytes": [2**20, 3072]}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_cells_are_parted_as_spreadsheets_do(separator: str) -> None:
    rows = (["name", "bytes (KiB)", "ready (us)", '"a;b, (us)"'], ['"x,;"', "1", "2", "0.5"])
    found = read_item_table("\r\n".join(map(separator.join, rows))).items
    assert found == {
        "names": ["x,;"],
        "bytes": [1024],
        "ready_us": [2.0],
        "stage_us": {"a;b,": [0.5]},
    }


def test_a_quote_that_is_not_closed_is_refused() -> None:
    with pytest.raises(InvalidInput, match="its quotes closed") as refusal:
        read_item_table('bytes,name\n1,"' + "x\n" * 200_000)
    assert refusal.value.field == "items"


def test_names_may_hold_commas() -> None:
    found = read_item_table('name,bytes\n"a, b",1\n').items
    assert found["names"] == ["a, b"]


@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=50))
def test_whole_sizes_are_themselves(sizes: list[int]) -> None:
    text = "\n".join(["bytes", *map(str, sizes)])
    assert read_item_table(text).items == {"bytes": sizes}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a header line"),
        ("1\n2\n", "a header line"),
        ("size\n1\n", "a header line"),
        ("bytes,bytes\n1,1\n", "each column once"),
        ("bytes,\n1,1\n", "a heading over each column"),
        ("bytes,ready\n1,2\n", "item 1, ready: expected a unit of times"),
        ("bytes,ready (kg)\n1,2\n", "item 1, ready: expected a unit of times in the heading"),
        ("bytes\n1\nx\n", "item 2, bytes"),
        ("bytes\n1.5\n", "item 1, bytes"),
        ("bytes,name\n1\n", "item 1: expected 2 cells, got 1"),
    ],
)
def test_what_is_no_table_of_items_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words.split(":")[0]) as refused:
        read_item_table(text)
    assert words in refused.value.detail
    assert refused.value.field == "items"


def test_several_calculations_are_their_medians_and_how_much_they_differ() -> None:
    """Numbered or not, of units of their own; the factors 0.9, 1 and 1.2 here."""
    text = "bytes,ready_us,ready_us_2,ready 3 (ms)\n4,90,100,0.12\n4,180,200,0.24\n"
    found = read_item_table(text)
    assert found.items["ready_us"] == [100.0, 200.0]
    factors = [0.9, 1.0, 1.2]
    assert found.ready_relative == pytest.approx(stdev(factors) / mean(factors))


@pytest.mark.parametrize(
    "text", ["bytes\n4\n", "bytes,ready (us)\n4,1\n", "bytes,ready_us,ready_us_2\n4,1,1\n"]
)
def test_one_calculation_has_no_deviation(text: str) -> None:
    assert read_item_table(text).ready_relative is None


def test_too_many_calculations_are_refused() -> None:
    heading = ",".join(["bytes", *["ready (us)"] * 101])
    with pytest.raises(InvalidInput, match="at most 100 columns ready"):
        read_item_table(f"{heading}\n{','.join('1' * 102)}\n")


# --- written --------------------------------------------------------------------------------------

NAMES = st.text(min_size=1, max_size=12).filter(lambda name: name == name.strip())
TIMES = st.floats(0.0, MAX_OVERHEAD_US)


@st.composite
def some_columns(draw: st.DrawFn) -> dict[str, object]:
    """Columns of one length, as a request has them."""
    count = draw(st.integers(1, 5))

    def column(cells: st.SearchStrategy[object]) -> st.SearchStrategy[list[object]]:
        return st.lists(cells, min_size=count, max_size=count)

    found: dict[str, object] = {"bytes": draw(column(st.integers(1, 2**40)))}
    if draw(st.booleans()):
        found["names"] = draw(column(NAMES))
    if draw(st.booleans()):
        found["ready_us"] = draw(column(TIMES))
    stages = draw(st.dictionaries(NAMES, column(TIMES), max_size=2))
    return found | ({"stage_us": stages} if stages else {})


@given(some_columns())
def test_what_is_written_is_read_again(columns: dict[str, object]) -> None:
    """Or nothing is written."""
    text = item_table(columns)
    if text is not None:
        assert read_item_table(text).items == columns


@pytest.mark.parametrize(
    "more",
    [
        {"names": ["a\nb"]},
        {"names": [" a"]},
        {"stage_us": {"ready": [1.0]}},
        {"stage_us": {"copy\r": [1.0]}},
    ],
)
def test_what_no_table_says_is_not_written(more: dict[str, object]) -> None:
    assert item_table({"bytes": [1], **more}) is None


def test_whole_times_have_no_point() -> None:
    columns = {
        "bytes": [4, 2],
        "ready_us": [1.0, 2.5],
        "names": None,
        "stage_us": {"copy": [0.0, 3.0]},
    }
    assert item_table(columns) == "bytes,ready (us),copy (us)\n4,1,0\n2,2.5,3\n"
