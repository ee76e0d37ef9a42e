"""Pipelines of stages that were measured each by itself, over HTTP."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.console.arguments import parse
from app.questions.fits import find_fit
from domain.fit import ExcludedSample
from tests.app.serving import Live
from tests.web.test_fits import TRACE, post

COMPOSE_COLUMNS = ("name", "trace", "stored", "step", "processor")
COPY = "message_bytes,copy_us\n" + "".join(
    f"{2**power},{5 + 2**power / 1000 + noise}\n"
    for power in range(8, 18)
    for noise in (0.0, 0.01, 0.02)
)
MESSAGES = "message_bytes,latency_us\n" + COPY.partition("\n")[2]
WIRE = "message_bytes,wire_us\n" + "".join(
    f"{2**power},{9 + 2**power / 400 + noise}\n"
    for power in range(8, 18)
    for noise in (0.0, 0.01, 0.03)
)


def composed(live: Live, *rows: dict[str, str], **more: str):  # type: ignore[no-untyped-def]
    """The answer to the form with these rows."""
    cells = [(column, row.get(column, "")) for row in rows for column in COMPOSE_COLUMNS]
    return post(live, "/ui/compose", *cells, *more.items())


def numbers_of(fit: dict[str, Any]) -> dict[str, Any]:
    """A stored fit without what names it."""
    return {name: fit[name] for name in ("pipeline", "warnings", "understood", "kind", "method")}


def costs_of(stage: dict[str, Any]) -> list[tuple[object, ...]]:
    """Its ranges alone."""
    names = ("up_to_bytes", "overhead_us", "ns_per_byte")
    return [tuple(one.get(name) for name in names) for one in stage.get("ranges", [stage])]


def test_the_page_composes_as_the_service_does(live: Live) -> None:
    """Files, order, processors and method: the same numbers, and the processor is stored."""
    rows = [
        {"name": "in", "trace": COPY, "processor": "cpu0"},
        {"name": "sum", "trace": COPY.replace("copy", "crc"), "processor": "cpu0"},
        {},
        {"name": "wire", "trace": WIRE.replace("\n", "\r\n")},
    ]
    sent = composed(live, *rows, method="weighted", shape="line")
    assert sent.status_code == 303, sent.text
    shown = live.client.get(sent.headers["location"])
    assert "in + sum" in shown.text
    found = live.client.get(sent.headers["location"].removeprefix("/ui").split("?")[0]).json()
    stages = [
        {
            "name": row["name"],
            "measurements": {"content": row["trace"].replace("\r", "")},
            **({"processor": row["processor"]} if "processor" in row else {}),
        }
        for row in rows
        if row
    ]
    asked = {"stages": stages, "method": "weighted", "shape": "line", "save_as": "one-processor"}
    same = live.client.post("/compose", json=asked).json()
    assert numbers_of(found) == numbers_of(same)
    assert found["trace_digests"] == same["trace_digests"]
    assert [stage["name"] for stage in found["pipeline"]["stages"]] == ["in + sum", "wire"]
    fit_id = sent.headers["location"].rpartition("/")[2]
    kept = find_fit(live.service.context.store, fit_id).options.composed
    assert [stage.processor for stage in kept] == ["cpu0", "cpu0", None]


def test_stages_of_stored_profiles_are_measured_again(live: Live) -> None:
    """A step of a direct file, and a stage of a composed one: their own samples, others' left."""
    live.client.post("/fit?save_as=direct-path", content=TRACE)
    asked = {"stages": [{"name": "copy", "measurements": {"content": COPY}}], "save_as": "apart"}
    live.client.post("/compose", json=asked)
    sent = composed(
        live,
        {"name": "first", "stored": "direct-path@1/crc32"},
        {"name": "b", "stored": "apart/copy"},
    )
    assert sent.status_code == 303, sent.text
    found = live.client.get(sent.headers["location"].removeprefix("/ui").split("?")[0]).json()
    first, second = map(costs_of, found["pipeline"]["stages"])
    whole = live.client.get("/profiles/direct-path").json()["pipeline"]["stages"]
    assert [first] == [costs_of(stage) for stage in whole if stage["name"] == "crc32"]
    apart = live.client.get("/profiles/apart").json()["pipeline"]["stages"]
    assert [second] == list(map(costs_of, apart))


def test_samples_that_were_left_out_stay_left_out(live: Live) -> None:
    """Of the stage that is taken, under its new name, and not those of another."""
    left_out = [
        {"stage": stage, "message_bytes": 256, "time_us": time_us}
        for stage, time_us in (("copy", 5.266), ("wire", 9.65))
    ]
    stages = [
        {"name": name, "measurements": {"content": text}}
        for name, text in (("copy", COPY), ("wire", WIRE))
    ]
    asked = {"stages": stages, "excluded": left_out, "save_as": "without-some"}
    assert live.client.post("/compose", json=asked).is_success
    sent = composed(live, {"name": "again", "stored": "without-some/wire"})
    assert sent.status_code == 303, sent.text
    fit_id = sent.headers["location"].rpartition("/")[2]
    found = find_fit(live.service.context.store, fit_id)
    assert found.options.excluded == (ExcludedSample("again", 256, 9.65),)
    before = live.client.get("/profiles/without-some").json()["pipeline"]["stages"][1]
    assert costs_of(before) == [
        (line.up_to_bytes, line.overhead_us, line.ns_per_byte) for line in found.fit.stages[0].lines
    ]


def test_offered_stages_are_those_that_are_found(live: Live) -> None:
    """Those of one processor each by itself, those of a profile without samples not at all."""
    stages = [
        {"name": name, "measurements": {"content": COPY}, "processor": "cpu0"} for name in "ab"
    ]
    live.client.post("/compose", json={"stages": stages, "save_as": "shared"})
    live.client.post("/fit?save_as=one&as_stage=x/y", content=MESSAGES)
    live.client.post("/fit?save_as=outside", content=MESSAGES)
    shown = live.client.get("/ui/compose").text
    offered = re.findall(r'<option value="((?:one|outside|shared)@[^"]*)"', shown)
    assert offered == ["one@1/x/y", "shared@1/a", "shared@1/b"]
    rows = [{"name": f"s{at}", "stored": unescape(one)} for at, one in enumerate(offered)]
    assert composed(live, *rows).status_code == 303
    assert '<option value="robust" selected>' in shown
    (command,) = re.findall(r'<pre id="measure-command"[^>]*>sluice ([^<]*)</pre>', shown)
    assert parse(command.split()).name == "memcpy"


@pytest.mark.parametrize(
    ("row", "place", "words"),
    [
        ({"name": "a"}, "trace-1", "paste or drop a file"),
        ({"trace": COPY}, "name-1", "a name of the stage"),
        ({"name": "in", "trace": COPY}, "name-1", "another stage has this name"),
        ({"name": "a", "trace": COPY, "stored": "b/c"}, "trace-1", "not both"),
        ({"name": "a", "stored": "no-slash"}, "stored-1", "profile/stage"),
        ({"name": "a", "stored": "Not A Name/x"}, "stored-1", "a profile's name"),
        ({"name": "a", "stored": "nowhere/x"}, "stored-1", "there is no hardware profile"),
        ({"name": "a", "stored": "myrinet-gam/sender copy"}, "stored-1", "were not measured"),
        ({"name": "a", "stored": "direct/none"}, "stored-1", "expected a stage that was measured"),
        ({"name": "a", "trace": "<script>alert(1)</script>"}, "trace-1", "in no format"),
        ({"name": "a", "trace": "\x00\x01"}, "trace-1", ""),
        ({"name": "a", "trace": "message_bytes,a_us,b_us\n64,1,nan\n"}, "trace-1", "line 2"),
        ({"name": "a", "trace": TRACE.decode()}, "trace-1", "has several steps"),
        ({"name": "a", "trace": COPY, "step": "b" * 101}, "step-1", "at most 100 characters"),
        ({"name": "a", "trace": COPY, "step": "b"}, "trace-1", "has no step b"),
        ({"name": "a" * 101, "trace": COPY}, "name-1", "at most 100 characters"),
        ({"name": "a", "trace": "message_bytes,copy_us\n64,1\n"}, "trace-1", ""),
    ],
)
def test_what_is_wrong_is_said_at_its_row(
    live: Live, row: dict[str, str], place: str, words: str
) -> None:
    """Nothing is stored; what was filled in is still there."""
    live.client.post("/fit?save_as=direct", content=TRACE)
    sent = composed(live, {"name": "in", "trace": COPY}, row)
    assert sent.status_code == 422
    said = re.search(rf'id="{place}-mistake">(.*?)</(?:p|div)>', sent.text, re.DOTALL)
    assert said is not None, re.findall('class="mistake"[^>]*>[^<]*', sent.text)
    assert words.lower() in unescape(said[1]).lower()
    assert sent.text.count("autofocus") == 1
    assert "256,5.256" in sent.text
    assert "<script>alert" not in sent.text


def test_stages_of_one_processor_have_sizes_together(live: Live) -> None:
    """Else their sum is nowhere known, which is said at the processor."""
    above = "message_bytes,crc_us\n" + "".join(f"{2**power},{power}\n" for power in range(20, 28))
    rows = [{"name": name, "processor": "cpu0"} for name in ("in", "sum")]
    sent = composed(
        live, {"name": "far", "trace": WIRE}, rows[0] | {"trace": COPY}, rows[1] | {"trace": above}
    )
    assert sent.status_code == 422
    assert re.search('id="processor-1-mistake">In and sum share a processor', sent.text)


def test_a_form_without_stages_says_so(live: Live) -> None:
    """Also with more rows than there may be stages."""
    assert "measurements of one stage at least" in composed(live, {}, {}).text
    many = [{"name": f"s{number}", "trace": COPY[:100]} for number in range(70)]
    assert composed(live, *many).status_code == 422


def test_rows_move_without_a_script(live: Live) -> None:
    """Added, moved, reversed and deleted, each by its button; texts stay."""
    rows = [{"name": "first", "trace": "\nx"}, {"name": "second", "stored": "p/s"}]

    def names(change: str) -> list[str]:
        shown = composed(live, *rows, do=change)
        assert shown.status_code == 200
        return re.findall(r'id="name-[0-9]+" name="name" value="([^"]*)"', shown.text)

    assert names("add") == ["first", "second", ""]
    assert names("down.0") == names("up.1") == names("reverse") == ["second", "first"]
    assert names("delete.1") == ["first"]
    assert names("delete.9") == ["first", "second"]


CELLS = st.sampled_from(
    ["", " ", "a", "in + sum", "a" * 101, "=1", "\x00", "apart/copy", "apart@9/x", "@/", "9" * 40]
)
TEXTS = st.one_of(
    st.sampled_from(["", COPY, WIRE, MESSAGES, TRACE.decode(), "message_bytes,a_us\n1e9,1e400\n"]),
    st.text(max_size=40),
)
ROW = st.fixed_dictionaries(dict.fromkeys(COMPOSE_COLUMNS, CELLS) | {"trace": TEXTS})


@settings(max_examples=25, deadline=None)
@given(rows=st.lists(ROW, max_size=3), method=CELLS, shape=CELLS, change=CELLS)
def test_any_form_is_answered(
    live: Live, rows: list[dict[str, str]], method: str, shape: str, change: str
) -> None:
    """With a fit, with the form, or with what is wrong; never with an error of the service."""
    sent = composed(live, *rows, method=method, shape=shape, do=change)
    assert sent.status_code in (303, 422), sent.text
