"""Bad input of items: every door names the field and the rule, from one table.

The library raises, HTTP answers 422 with a pointer, the command line says it of a request and of a
table of items. The page has no fields of items.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from app.cli import main
from contract.limits import MAX_ITEMS, MAX_MESSAGE_BYTES
from domain.aggregate import Aggregate
from domain.errors import SluiceError
from domain.item_table import read_item_table
from domain.items import FillRule, ItemProblem, ItemSequence, item_problem_of
from domain.pipeline import Pipeline, Stage
from domain.problem import FragmentLimits
from tests.support.item_bodies import Body, stages

STAGE: Body = {"overhead_us": 2, "ns_per_byte": 1000}
LINE = Stage.of_line("stage 1", overhead_us=2.0, ns_per_byte=1000.0)
PIPELINE = Pipeline((LINE,))
FOUR = ItemSequence.of([4])
NAN, HALF = float("nan"), cast(int, 1.5)
Run = Callable[..., tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Row:
    """A mistake: as a request with its pointer, in the library with its field, and where a table of
    items or options can make it these.

    `rule` is in what is said of the request, `in_file` of a file with it that is no JSON,
    `in_library` and `in_table` in what the others say.
    """

    name: str
    request: Body
    pointer: str
    rule: str
    library: Callable[[], Any] | None = None
    field: str = ""
    in_library: str = ""
    table: str = ""
    in_table: str = ""
    words: tuple[str, ...] = ()
    code: str = "invalid_input"
    in_file: str = ""


def asked(items: Body, **more: Any) -> Body:
    """A question about these items and one stage."""
    return {"pipeline": stages((2, 1000)), "items": items, **more}


ROWS = (
    Row(
        "no items",
        asked({"bytes": []}),
        "/items/bytes",
        "expected at least 1 item",
        lambda: ItemSequence.of([]),
        "bytes",
        f"expected 1 to {MAX_ITEMS} items",
        "bytes\n",
        "expected at least 1 item",
    ),
    Row(
        "too many items",
        asked({"repeat": MAX_ITEMS + 1, "bytes": 1}),
        "/items/repeat",
        f"expected a number <= {MAX_ITEMS}",
        lambda: ItemSequence.of([1] * (MAX_ITEMS + 1)),
        "bytes",
        f"expected 1 to {MAX_ITEMS}",
        "bytes\n" + "1\n" * (MAX_ITEMS + 1),
        f"expected at most {MAX_ITEMS} items",
    ),
    Row(
        "an item of no bytes",
        asked({"bytes": [4, 0]}),
        "/items/bytes/1",
        "expected a number >= 1",
        lambda: ItemSequence.of([4, 0]),
        "bytes.1",
        "expected at least 1 byte",
        "bytes\n4\n0\n",
        "/items/bytes/1: expected a number >= 1",
    ),
    Row(
        "an item of negative bytes",
        asked({"bytes": [4, -1]}),
        "/items/bytes/1",
        "expected a number >= 1",
        lambda: ItemSequence.of([4, -1]),
        "bytes.1",
        "expected at least 1 byte",
        "bytes\n4\n-1\n",
        "item 2, bytes",
    ),
    Row(
        "an item of a fraction of bytes",
        asked({"bytes": [4, 1.5]}),
        "/items/bytes/1",
        "expected a whole number",
        lambda: ItemSequence.of([4, HALF]),
        "bytes.1",
        "expected a whole number",
        "bytes\n4\n1.5\n",
        "item 2, bytes",
    ),
    Row(
        "items of too many bytes",
        asked({"bytes": [MAX_MESSAGE_BYTES, 1]}),
        "/items/bytes",
        "sum to at most",
        lambda: ItemSequence.of([MAX_MESSAGE_BYTES, 1]),
        "bytes",
        "sum to at most",
        f"bytes\n{MAX_MESSAGE_BYTES}\n1\n",
        "items.bytes: expected items that sum to at most",
        code="inconsistent_input",
    ),
    Row(
        "ready before the beginning",
        asked({"bytes": [4, 1], "ready_us": [1, -1]}),
        "/items/ready_us/1",
        "expected a number >= 0",
        lambda: ItemSequence.of([4, 1], [1, -1]),
        "ready_us.1",
        "expected a time from 0",
        "bytes,ready (us)\n4,1\n1,-1\n",
        "item 2, ready: expected a number of µs, 0 or more",
    ),
    Row(
        "ready at no number",
        asked({"bytes": [4, 1], "ready_us": [1, NAN]}),
        "/items/ready_us/1",
        "expected a finite number",
        lambda: ItemSequence.of([4, 1], [1, NAN]),
        "ready_us.1",
        "expected a time from 0",
        "bytes,ready (us)\n4,1\n1,nan\n",
        "item 2, ready: ",
        in_file="expected a JSON value",
    ),
    Row(
        "columns of unlike length",
        asked({"bytes": [4, 1], "ready_us": [1]}),
        "/items/ready_us",
        "expected 2 values, one for each item, got 1",
        lambda: ItemSequence.of([4, 1], [1]),
        "ready_us",
        "expected 2 values",
        "bytes,ready (us)\n4,1\n1\n",
        "item 2: expected 2 cells, got 1",
        code="inconsistent_input",
    ),
    Row(
        "the time of an unknown stage",
        asked({"bytes": [4], "stage_us": {"none": [1]}}),
        "/items/stage_us/none",
        "expected the name of one stage",
        lambda: ItemProblem(PIPELINE, ItemSequence.of([4], stage_us={"none": [1]})),
        "stage_us.none",
        "expected the name of one stage",
        "bytes,none (us)\n4,1\n",
        "items.stage_us.none: expected the name of one stage",
        code="inconsistent_input",
    ),
    Row(
        "items and a message",
        asked({"bytes": [4]}, message_bytes=4),
        "/message_bytes",
        "does not go with items",
        table="bytes\n4\n",
        words=("--bytes", "4"),
        in_table="message_bytes does not go with items",
        code="items_declined",
    ),
    Row(
        "an alignment",
        asked({"bytes": [4]}, constraints={"alignment_bytes": 4}),
        "/constraints/alignment_bytes",
        "fragments end where items do",
        lambda: item_problem_of(PIPELINE, FOUR, FragmentLimits(alignment_bytes=4)),
        "alignment_bytes",
        "fragments end where items do",
        "bytes\n4\n",
        "alignment_bytes does not go with items",
        ("--alignment-bytes", "4"),
        code="items_declined",
    ),
    Row(
        "bytes that are handed on",
        {"pipeline": {"stages": [{**STAGE, "handoff_bytes": 1}]}, "items": {"bytes": [4]}},
        "/pipeline/stages/0/handoff_bytes",
        "handed on whole",
        lambda: ItemProblem(Pipeline((Stage("stage 1", LINE.ranges, handoff_bytes=1),)), FOUR),
        "stages.0.handoff_bytes",
        "handed on whole",
        code="items_declined",
    ),
    Row(
        "an aggregate",
        {"aggregate": {"total": STAGE, "bottleneck": STAGE}, "items": {"bytes": [4]}},
        "/aggregate",
        "items need the time of every stage",
        lambda: item_problem_of(Aggregate(LINE, LINE), FOUR, FragmentLimits()),
        "items",
        "items need plain stages",
        code="items_declined",
    ),
    Row(
        "another cut for each stage",
        asked({"bytes": [4]}, allow_refragmentation=True),
        "/allow_refragmentation",
        "all stages share the cut",
        lambda: item_problem_of(PIPELINE, FOUR, FragmentLimits(), allow_refragmentation=True),
        "allow_refragmentation",
        "all stages share their cut",
        "bytes\n4\n",
        "all stages share the cut",
        ("--allow-refragmentation",),
        code="items_declined",
    ),
    Row(
        "a first cap without a rule",
        asked({"bytes": [4]}, fill={"first_bytes": 4}),
        "/fill/first_bytes",
        "first_bytes needs a rule",
        lambda: FillRule.named(None, 4),
        "first_bytes",
        "first_bytes needs a rule",
    ),
)
NAMES = [row.name for row in ROWS]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """main(argv) in an empty folder: exit code, and errors on one line."""
    monkeypatch.chdir(tmp_path)

    def ran(*words: str) -> tuple[int, str]:
        code = main(["optimize", *words])
        found = capsys.readouterr()
        assert found.out == ""
        return code, " ".join(found.err.split())

    return ran


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.library], ids=[row.name for row in ROWS if row.library]
)
def test_the_library_names_field_and_rule(row: Row) -> None:
    assert row.library is not None
    with pytest.raises(SluiceError) as refused:
        row.library()
    assert refused.value.field == row.field
    assert row.in_library in refused.value.detail


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_http_names_field_and_rule(client: httpx.Client, row: Row) -> None:
    body = json.dumps(row.request).encode()
    answer = client.post("/optimize", content=body, headers={"content-type": "application/json"})
    found = answer.json()
    assert (answer.status_code, found["code"]) == (422, row.code)
    assert row.rule in found["detail"]
    assert [each["pointer"] for each in found["errors"]] == [row.pointer]


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_the_command_line_names_field_and_rule_of_a_request(run: Run, row: Row) -> None:
    Path("asked.json").write_text(json.dumps(row.request))
    code, err = run("asked.json")
    assert code == (3 if row.code == "items_declined" else 2), err
    assert (row.in_file or row.rule) in err
    assert row.in_file or row.pointer.rpartition("/")[2] in err


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.table], ids=[row.name for row in ROWS if row.table]
)
def test_the_command_line_names_field_and_rule_of_a_table(run: Run, row: Row) -> None:
    Path("stages.json").write_text(json.dumps({"pipeline": stages((2, 1000))}))
    Path("items.csv").write_text(row.table)
    code, err = run("stages.json", "--items", "items.csv", *row.words)
    assert code == (3 if row.code == "items_declined" else 2), err
    assert row.in_table in err


def test_a_table_without_a_header_is_refused(run: Run) -> None:
    """By the library, and by the command line."""
    with pytest.raises(SluiceError, match="a header line") as refused:
        read_item_table("4\n1\n")
    assert refused.value.field == "items"
    Path("stages.json").write_text(json.dumps({"pipeline": stages((2, 1000))}))
    Path("items.csv").write_text("4\n1\n")
    code, err = run("stages.json", "--items", "items.csv")
    assert code == 2
    assert "a header line, of which one column is bytes" in err
