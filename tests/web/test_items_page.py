"""A message that is cut between items, on the page: asked by its form, answered as by the API."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.plots.timeline_items import ITEM_STYLE
from app.text.numbers import format_count
from app.ui.pages import FOLDER, JOINED, all_pages
from app.ui.panel.request import request_of
from app.ui.panel.state import MAX_SHOWN_ITEMS, InputSource, InputState
from tests.app.serving import Live
from tests.support.item_bodies import ORACLES, PI, PI_READY, Body, question, small, stages
from tests.web.test_answer import chart_of, text_of

FORM = {"content-type": "application/x-www-form-urlencoded"}
Pairs = list[tuple[str, str]]
TABLE = "name,bytes,ready (us)\na,4,1\nb,1,2\nc,1,3\nd,2,5\ne,4,9\n"


def fields(pipeline: Body, table: str, **more: str) -> Pairs:
    """What a browser sends of a pipeline and items."""
    found = [("source", "table"), ("message", "64 KiB"), ("has_items", "on"), ("items", table)]
    for stage in pipeline["stages"]:
        found += [("name", stage["name"]), ("overhead", repr(stage["overhead_us"]))]
        found += [("cost", repr(stage["ns_per_byte"])), ("up_to", "")]
    return [*found, *more.items()]


def post(live: Live, pairs: Pairs):  # type: ignore[no-untyped-def]
    return live.client.post("/ui/optimize", content=urlencode(pairs), headers=FORM)


def address_of(live: Live, body: Body) -> str:
    """Where the answer to a question is shown."""
    response = live.client.post("/optimize", json=body)
    assert response.status_code == 200, response.text
    return f"/ui/answers/{response.json()['id']}"


# --- what is asked --------------------------------------------------------------------------------


@st.composite
def questions(draw: st.DrawFn) -> tuple[Pairs, Body]:
    """A form as it is filled in, and the same as a request."""
    count = draw(st.integers(1, 12))
    sizes = draw(st.lists(st.integers(1, 10**6), min_size=count, max_size=count))
    pipeline = stages(
        *draw(st.lists(st.sampled_from([(1, 10), (200, 1), (9.5, 0.25)]), min_size=1))
    )
    items: Body = {"bytes": sizes}
    heads, columns = ["bytes"], [list(map(str, sizes))]
    if draw(st.booleans()):
        items["ready_us"] = draw(st.lists(st.integers(0, 9999), min_size=count, max_size=count))
        heads.append("ready (us)")
        columns.append(list(map(str, items["ready_us"])))
    if draw(st.booleans()):
        items["names"] = [f"item {place}" for place in range(count)]
        heads.append("name")
        columns.append(items["names"])
    rows = [heads, *map(list, zip(*columns, strict=True))]
    body, typed = question(pipeline, items), dict[str, str]()
    if draw(st.booleans()):
        body["uncertainty"] = {"current": {"repeat": 4096}}
        typed["current"] = "4 KiB"
    rule = draw(st.sampled_from(["until", "before"]))
    if rule == "before":
        body["fill"], typed["fill"] = {"rule": rule}, rule
    if draw(st.booleans()):
        body["fill"], typed["first_cap"] = {"rule": rule, "first_bytes": 512}, "512"
    if draw(st.booleans()):
        body["constraints"], typed["max_fragment"] = {"max_fragment_bytes": 2**19}, "512 KiB"
    return fields(pipeline, "\n".join(map(",".join, rows)), **typed), body


@settings(max_examples=25)
@given(asked=questions())
def test_the_form_gives_the_answer_of_the_interface(live: Live, asked: tuple[Pairs, Body]) -> None:
    """It leads to the very answer that POST /optimize stores, whose figures the page has."""
    pairs, body = asked
    answer = live.client.post("/optimize", json=body).json()
    sent = post(live, pairs)
    assert sent.status_code == 303, sent.text
    place = sent.headers["location"]
    assert place.partition("?")[0] == f"/ui/answers/{answer['id']}"
    text = text_of(live, place)
    assert answer["set_items"]["sentence"] in text
    sizes = answer["items"]["bytes"]
    is_alike = len(sizes) > 1 and len(set(sizes)) == 1
    name = "" if is_alike or "fill" in body else "bucket_cap_mb_list="
    assert f"{name}{answer['set_items']['caps_mb']}" in text
    assert str(answer["fragment_items"]) in text
    data = chart_or_none(live, f"/ui/answers/{answer['id']}/parts/caps")
    if data is None:
        return
    assert data["list_us"] == answer["latency_us"]
    marks = {name: us for name, _, _, us in data["marks"]}
    for name, key in (("best cap", "best_cap"), ("your cap", "current")):
        expected = answer[key]["latency_us"] if answer[key] else None
        assert marks.get(name) == expected
    drawn = [us for us in data["latency_us"] if us is not None]
    if answer["best_cap"]:
        assert min(drawn) == pytest.approx(answer["best_cap"]["latency_us"], rel=1e-12)
        assert len(data["caps"]) == answer["best_cap"]["layouts"]


def chart_or_none(live: Live, address: str) -> dict[str, Any] | None:
    text = live.client.get(address).text
    return chart_of(text) if "application/json" in text else None


def test_the_page_asks_the_same_again(live: Live) -> None:
    """What stands in the panel beside an answer gives that answer."""
    bodies = [
        small(uncertainty={"current": {"repeat": 4}}, fill={"rule": "before"}),
        small(uncertainty={"current": "whole"}, constraints={"max_fragments": 3}),
        small(constraints={"max_fragment_items": 2}),
        ORACLES[3][0],
        question(
            stages((1, 1000)),
            {"bytes": [1, 2], "names": ["a, b", '"c"'], "stage_us": {"stage 1": [0.5, 3]}},
        ),
    ]
    for body in bodies:
        place = address_of(live, body)
        sent = post(live, panel_of(live, place))
        assert sent.headers["location"].partition("?")[0] == place, body


def test_the_chosen_row_is_what_the_headline_sets(live: Live) -> None:
    """Of memory that holds buffers of one size the best cap, whose latency it is of."""
    pipeline = stages((0.0, 1000), (0.0, 1000))
    pipeline["windows"] = [{"from": "stage 1", "to": "stage 2", "bytes": 12}]
    items = {"bytes": [1, 4, 1, 1, 4, 1, 4]}
    for fill, chosen in (("before", "The best cap"), ("until", "The list")):
        place = address_of(live, question(pipeline, items, fill={"rule": fill}))
        found = re.search(
            r'<tr class="chosen">\s*<th scope="row">(.*?)</th>', live.client.get(place).text
        )
        assert found is not None
        assert found[1] == chosen


def test_a_limit_on_items_is_said(live: Live) -> None:
    place = address_of(live, small(constraints={"max_fragment_items": 2}))
    assert "at most 2 items a fragment" in text_of(live, place)


class Panel(HTMLParser):
    """Reads the fields of the panel's form as a browser would send them."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: Pairs = []
        self.is_inside = False
        self.area = self.choice = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given_names = dict(attrs)
        if tag == "form":
            self.is_inside = given_names.get("id") == "input"
        if not self.is_inside:
            return
        name, value = given_names.get("name") or "", given_names.get("value")
        if tag == "textarea":
            self.area = name
            self.fields.append((name, ""))
        elif tag == "select":
            self.choice = name
        elif tag == "option" and "selected" in given_names:
            self.fields.append((self.choice, value or ""))
        elif tag == "input" and name:
            is_chosen = (
                given_names.get("type") not in ("checkbox", "radio") or "checked" in given_names
            )
            self.fields += [(name, "on" if value is None else value)] * is_chosen

    def handle_data(self, data: str) -> None:
        if self.area:
            self.fields[-1] = (self.area, self.fields[-1][1] + data)

    def handle_endtag(self, tag: str) -> None:
        self.area = "" if tag == "textarea" else self.area
        self.is_inside = self.is_inside and tag != "form"


def panel_of(live: Live, place: str) -> Pairs:
    """What stands in the panel of this page."""
    return fields_in(live.client.get(place).text)


def fields_in(text: str) -> Pairs:
    panel = Panel()
    panel.feed(text)
    return panel.fields


@pytest.mark.parametrize(
    ("table", "more", "field", "words"),
    [
        ("", {}, "items", "expected a table with a header line, of which one column is bytes"),
        ("bytes\n4\nx", {}, "items", "item 2, bytes: "),
        ("bytes\n4\n0", {}, "items", "item 2, bytes: expected"),
        ("bytes,ready\n4,1", {}, "items", "item 1, ready: expected a unit of times"),
        ("bytes,ready (s)\n4,1e9", {}, "items", "item 1, ready: expected"),
        ("bytes,copy (us)\n4,1", {}, "items", "copy: expected the name of one stage"),
        ("bytes\n4", {"first_cap": "x"}, "first_cap", "expected"),
        ("bytes\n4", {"fill": "after"}, "fill", "expected one of"),
        ("bytes\n4", {"current": "0"}, "current", "expected at least 1"),
        ("bytes\n4", {"max_fragments": "0"}, "max_fragments", "expected at least 1"),
        (
            "bytes\n4\n4",
            {"max_fragment": "4", "max_fragments": "1"},
            "max_fragment",
            "needs at least",
        ),
    ],
)
def test_mistakes_stand_at_their_fields(
    live: Live, table: str, more: dict[str, str], field: str, words: str
) -> None:
    """And what was typed is still there."""
    sent = post(live, fields(stages((2, 1000)), table, relative="10 %", alignment="512", **more))
    assert sent.status_code == 422
    text = html.unescape(sent.text)
    found = re.search(rf'id="mistake-{field}">([^<]*)<', text)
    assert found is not None, text
    assert words in found[1]
    kept = dict(fields_in(sent.text))
    assert kept["items"].strip() == table
    assert kept["has_items"] == "on"
    assert (kept["relative"], kept["alignment"], kept["message"]) == ("10 %", "512", "64 KiB")
    for name, typed in more.items():
        assert kept.get(name) == typed or name == "fill"  # a choice has no other


def test_the_switch_is_off_where_nobody_turned_it_on(live: Live) -> None:
    text = text_of(live, "/?empty=yes")
    switch = re.search(r"<input[^>]*has_items[^>]*>", text)
    assert switch is not None
    assert "checked" not in switch[0]


def test_the_example_is_filled_in(live: Live) -> None:
    """And gives a list that is faster than the cap in use."""
    sent = post(live, panel_of(live, "/?example=resnet50-gradients"))
    assert sent.status_code == 303
    text = text_of(live, sent.headers["location"])
    assert "161 items, 97.49 MiB, through 1 stage" in text
    assert "5.66 % faster than your 25 MiB" in text


def test_a_trace_is_fitted_for_a_message() -> None:
    """Items that are left in the form change nothing."""
    entry = InputState(source=InputSource.TRACE, trace="x", has_items=True, items="x")
    read = request_of(entry)
    assert read.mistakes == {}
    assert read.document["message_bytes"] == 2**16
    assert "items" not in read.document


# --- what is answered -----------------------------------------------------------------------------


def test_the_page_has_what_there_is_of_items_and_nothing_else(live: Live) -> None:
    """No curve of equal sizes, no other message, no costs to change."""
    body = question(
        stages((1, 500), (3, 1000)),
        {"bytes": PI, "ready_us": PI_READY, "names": [f"t{place}" for place in range(8)]},
        uncertainty={"current": {"repeat": 30}},
    )
    place = address_of(live, body)
    text = text_of(live, place)
    for part in ("timeline", "by-cap", "library", "why"):
        assert f'id="{part}"' in text
    for part in ("what-if", "by-count", "by-size", "by-fragment", "sweep", "alternatives"):
        assert f'id="{part}"' not in text
    assert "The list" in text
    assert "The best cap" in text
    assert "Your cap" in text
    assert "items.js" in text
    svg = text[text.index('<svg xmlns="http') : text.index("</svg>")]
    assert "calculation" in svg
    assert "calculation: items become ready, the last after 20.00 µs" in svg
    assert "(t3)" in svg
    assert "ready at" in svg
    beside = text_of(live, f"{place}?beside=fixed")
    assert "your cap: " in beside
    assert "Without your cap" in beside
    named = live.client.post(place, content=urlencode({"name": "mine"}), headers=FORM)
    assert named.status_code == 303
    assert "mine" in text_of(live, place)


def test_the_table_of_the_curve_has_its_figures(live: Live) -> None:
    """A row for each step, and first those that are marked."""
    place = address_of(live, small(uncertainty={"current": {"repeat": 4}}))
    answer = live.client.get(f"/optimizations/{place.rsplit('/', 1)[1]}").json()
    text = text_of(live, f"{place}/parts/caps")
    data = chart_of(text)
    rows = re.findall(r"<tr>(<th scope=\"row\".*?)</tr>", text)
    cells = [re.findall(r">([^<]*)</t[hd]>", row) for row in rows]
    assert [row[0] for row in cells[:3]] == ["the list", "The best cap", "Your cap"]
    assert cells[0][2] == "18.00"
    assert cells[2][1:] == ["3", "19.00", "+5.56 %"]
    assert len(cells) == 3 + len(data["caps"]) == 3 + answer["best_cap"]["layouts"]


def test_limits_leave_the_curve_open(live: Live) -> None:
    body = small(constraints={"max_fragments": 2})
    text = text_of(live, f"{address_of(live, body)}/parts/caps")
    assert "not admitted" in text
    assert "the limits do not admit the cut" in text
    assert None in chart_of(text)["latency_us"]


def test_time_that_ends_the_walk_is_said(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.item_caps.CURVE_LIMIT_S", 0.0)
    text = text_of(live, f"{address_of(live, small())}/parts/caps")
    assert "Time ended the walk over all caps" in text


def test_one_layout_is_no_curve(live: Live) -> None:
    text = text_of(live, f"{address_of(live, question(stages((1, 1)), {'bytes': [5]}))}/parts/caps")
    assert "Every cap gives the same fragments" in text


def test_messages_that_may_be_cut_anywhere_have_no_curve_of_caps(live: Live) -> None:
    body = {"pipeline": stages((1, 1)), "message_bytes": 4096}
    found = live.client.get(
        f"{address_of(live, body)}/parts/caps", headers={"accept": "application/json"}
    )
    assert (found.status_code, found.json()["code"]) == (422, "strategy_declined")


def test_many_items_are_drawn_as_a_part_and_not_repeated(live: Live) -> None:
    """The table of more than some thousand has no place beside the answer."""
    count = MAX_SHOWN_ITEMS + 1
    items = {"repeat": count, "bytes": 1 << 16, "ready_every_us": 60}
    place = address_of(live, question(stages((5000, 1.0)), items))
    text = text_of(live, place)
    assert f"{count} items are too many to stand here" in text
    assert format_count(count) in text
    assert 'id="timeline"' in text
    assert "/parts/timeline?" in text
    part = text_of(live, f"{place}/parts/timeline")
    assert "stand together" in part
    assert 'data-merged="yes"' in part
    closer = text_of(live, f"{place}/parts/timeline?from_us=100000&to_us=101000")
    assert re.search(r"item \d+: 64 KiB, ready at", closer)


def test_a_picture_stands_alone(live: Live) -> None:
    """With the rules of items in it."""
    place = address_of(live, small())
    found = live.client.get(f"{place}/schedule.svg")
    assert found.headers["content-type"] == "image/svg+xml"
    assert ".within{" in found.text


def test_the_rules_of_items_are_those_of_the_picture() -> None:
    text = (FOLDER / "items.css").read_text(encoding="utf-8")
    assert text.startswith(ITEM_STYLE.lstrip("\n"))


def test_other_pages_load_nothing_of_items_but_what_reads_a_file(live: Live) -> None:
    """The curve's script and style come with answers about items alone."""
    text = text_of(live, "/?empty=yes")
    assert "items.js" not in text
    assert "items.css" not in text
    assert "items_file.js" in JOINED["workbench.js"]
    assert b"makers.caps" not in all_pages().assets["workbench.js"].body
