"""Schedules as CSV."""

from __future__ import annotations

import csv
import io

import pytest

from app.verbs.optimize.page.schedule_csv import cell_of, schedule_csv
from contract.optimize import OptimizeOut
from tests.app.serving import MYRINET, Live
from tests.web.conftest import Ask

HOSTILE = ("=1+2", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "a;=1", 'a","=1', "a\r\n=1")


def rows_of(document: OptimizeOut) -> list[dict[str, str]]:
    """The file, read as others read it."""
    text = schedule_csv(document).decode()
    assert text.count("\r\n") == text.count("\n")
    return list(csv.DictReader(io.StringIO(text)))


def test_it_has_the_times_of_the_simulation(ask: Ask, live: Live) -> None:
    """Every fragment's offset, size, start and end, as POST /simulate has them, to the last bit."""
    document = ask()
    rows = rows_of(document)
    body = {"pipeline": MYRINET, "fragment_bytes": document.fragment_bytes}
    simulated = live.client.post("/simulate", json=body).json()
    assert [int(row["fragment_bytes"]) for row in rows] == list(document.fragment_bytes)
    assert [int(row["offset_bytes"]) for row in rows] == [
        sum(document.fragment_bytes[:i]) for i in range(len(rows))
    ]
    names = [stage["name"] for stage in MYRINET["stages"]]
    for one in simulated["intervals"]:
        row, name = rows[one["fragment"]], names[one["stage"]]
        begin = f"stage {one['stage'] + 1} {name}"
        assert float(row[f"{begin} start_us"]) == one["start_us"]
        assert float(row[f"{begin} end_us"]) == one["exit_us"]


def test_stages_that_cut_differently_have_rows_of_their_own(ask: Ask) -> None:
    """A row for each fragment of each stage."""
    document = ask(profile="gms", strategy="hierarchical", allow_refragmentation=True)
    assert document.pipeline is not None
    stages = document.pipeline.stages
    levels = document.levels
    assert len({tuple(cut) for cut in levels}) > 1
    rows = rows_of(document)
    for number, cut in enumerate(levels, start=1):
        own = [row for row in rows if row["stage"] == str(number)]
        assert [int(row["fragment_bytes"]) for row in own] == list(cut)
        assert {row["stage_name"] for row in own} == {stages[number - 1].name}
        assert sum(cut[:-1]) == int(own[-1]["offset_bytes"])
    ends_us = document.latency_us - document.pipeline.delay_us
    assert float(rows[-1]["end_us"]) == pytest.approx(ends_us)


def test_of_an_aggregate_sizes_are_known(ask: Ask) -> None:
    """No stage, no times."""
    line = {"name": "x", "overhead_us": 3.0, "ns_per_byte": 9.0}
    total = {"name": "total", "overhead_us": 9.0, "ns_per_byte": 20.0}
    document = ask(aggregate={"total": total, "bottleneck": line})
    rows = rows_of(document)
    assert list(rows[0]) == ["fragment", "offset_bytes", "fragment_bytes"]
    assert [int(row["fragment_bytes"]) for row in rows] == list(document.fragment_bytes)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_cell_is_a_formula(name: str, ask: Ask) -> None:
    """Neither where commas separate nor where another mark does."""
    stages = [{**stage, "name": name} for stage in MYRINET["stages"][:2]]
    pipeline = {"stages": stages}
    if not name.isprintable():
        assert not cell_of(name).strip().startswith(("=", "+", "-", "@"))
        return
    text = schedule_csv(ask(message_bytes=4097, pipeline=pipeline)).decode()
    for separator in ",;\t|":
        for line in csv.reader(io.StringIO(text), delimiter=separator):
            assert not any(cell.strip(" '\"").startswith(("=", "@")) for cell in line[3:])
            assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in line)


def test_a_plain_name_stays_as_it_is() -> None:
    """Letters of any script, spaces and marks inside."""
    assert cell_of("récepteur (DMA) 2-3 µs") == "récepteur (DMA) 2-3 µs"
    assert cell_of("-minus") == "'-minus"
