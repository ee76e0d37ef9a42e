"""The workbench over HTTP: what a browser without scripts gets."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ui.panel.choices import ShownUnits
from domain.units import CostUnit, OverheadUnit
from tests.app.serving import LARGE, LARGE_BYTES, MYRINET, Live

FORM = {"content-type": "application/x-www-form-urlencoded"}
STAGES = [("name", "in"), ("overhead", "1"), ("cost", "2"), ("up_to", "")]


def post(live: Live, *fields: tuple[str, str]):  # type: ignore[no-untyped-def]
    """The form as a browser sends it."""
    pairs = [("source", "table"), ("message", "64 KiB"), *fields]
    return live.client.post("/ui/optimize", content=urlencode(pairs), headers=FORM)


def rows_of(pipeline: dict) -> list[tuple[str, str]]:  # type: ignore[type-arg]
    """The fields of a pipeline's stages."""
    found = []
    for stage in pipeline["stages"]:
        found += [("name", stage["name"]), ("overhead", str(stage["overhead_us"]))]
        found += [("cost", str(stage["ns_per_byte"])), ("up_to", "")]
    return found


def test_an_answer_has_an_address_of_its_own(live: Live) -> None:
    """The form leads to it, and it is what the API stores and says."""
    sent = post(live, *rows_of(MYRINET), ("message", "4 KiB"))
    assert sent.status_code == 303
    place = sent.headers["location"]
    assert re.fullmatch("/ui/answers/[0-9a-f]{32}", place)
    document = live.client.get(f"/optimizations/{place.rsplit('/', 1)[1]}").json()
    assert document["message_bytes"] == 4096
    assert document["pipeline"]["stages"] == MYRINET["stages"]


def test_the_setting_in_use_is_compared_with(live: Live) -> None:
    """First of the other settings; the panel has it again, and says what is wrong with it."""
    stages = rows_of(MYRINET)
    sent = post(live, *stages, ("current", "16 KiB"))
    page = live.client.get(sent.headers["location"]).text
    assert "faster than your 16 KiB" in page
    assert "your setting: 16 KiB each" in page
    assert 'name="current" value="16 KiB"' in page
    place = sent.headers["location"].partition("?")[0]
    later = live.client.get(place + "/parts/alternatives").text
    assert "your setting: 16 KiB each" in later
    assert "GAM: 4 KiB each (Wang et al. 1998, section 3)" in later
    sent = post(live, *stages, ("current", "whole"))
    page = live.client.get(sent.headers["location"]).text
    assert "than sending it whole, your setting" in page
    assert 'name="current" value="whole"' in page
    refused = post(live, *stages, ("current", "16 apples"))
    assert refused.status_code == 422
    assert 'id="mistake-current"' in refused.text


def test_the_units_that_were_typed_are_in_the_address(live: Live) -> None:
    """Of an answer, of its timeline's links and of a job, and the question is shown in them."""
    units = [("overhead_unit", "ns"), ("cost_unit", "gb_per_s")]
    cells = [("name", "copy"), ("overhead", "1230"), ("cost", "9.8"), ("up_to", "")]
    for message in ("4 KiB", "64 MiB"):
        sent = post(live, *units, *cells, ("message", message))
        place = sent.headers["location"]
        assert place.endswith("overhead_unit=ns&cost_unit=gb_per_s")
        page = live.client.get(place).text
        assert 'value="1230"' in page
        assert 'value="9.8"' in page
        assert "beside=fixed&amp;overhead_unit=ns&amp;cost_unit=gb_per_s" in page
    many = [*rows_of(LARGE), *cells]
    sent = post(live, *units, *many, ("message", str(LARGE_BYTES)))
    assert "/ui/jobs/" in sent.headers["location"]
    page = live.client.get(sent.headers["location"]).text
    assert 'data-units="?overhead_unit=ns&amp;cost_unit=gb_per_s"' in page
    assert 'value="9.8"' in page


def test_a_stage_without_a_cost_has_no_bandwidth(live: Live) -> None:
    """Its column stays as it is stored; what is no unit counts as nothing."""
    sent = post(live, ("name", "fixed"), ("overhead", "3"), ("cost", "0"), ("message", "4 KiB"))
    page = live.client.get(sent.headers["location"] + "?cost_unit=gb_per_s&overhead_unit=x").text
    assert '<option value="ns_per_byte" selected>' in page
    assert '<option value="us" selected>' in page


@given(st.floats(1e-6, 1e6), st.sampled_from([*CostUnit]), st.sampled_from([*OverheadUnit]))
def test_what_was_typed_is_shown_again(
    typed: float, cost: CostUnit, overhead: OverheadUnit
) -> None:
    """And means the same, to the last bit."""
    units = ShownUnits.from_texts({"overhead_unit": overhead, "cost_unit": cost})
    text = f"{typed:.6g}"
    ns, us = units.cost.to_ns_per_byte(float(text)), units.overhead.to_us(float(text))
    assert float(units.format_cost(ns)) == float(units.format_overhead(us)) == float(text)


def test_what_may_take_long_becomes_a_job(live: Live) -> None:
    """The browser is sent to where it can be watched."""
    sent = post(live, *rows_of(LARGE), ("message", str(LARGE_BYTES)))
    assert sent.status_code == 303
    place = sent.headers["location"]
    assert re.fullmatch(r"/ui/jobs/[0-9a-f]{32}\?follow=1", place)
    assert live.client.get(place.removeprefix("/ui").partition("?")[0]).json()["kind"] == "optimize"


def test_mistakes_come_back_in_the_page(live: Live) -> None:
    """With status 422, the cell marked and described, what was typed kept, and none of it run."""
    typed = '"><script>alert(1)</script>'
    sent = post(live, ("name", typed), ("overhead", "much"), ("cost", "2"), ("up_to", ""))
    assert sent.status_code == 422
    assert "<script>alert" not in sent.text
    assert "&lt;script&gt;alert(1)" in sent.text
    cell = re.search(r'<input id="overhead-0"[^>]*>', sent.text)
    assert cell is not None
    assert 'aria-invalid="true"' in cell[0]
    assert 'aria-describedby="mistake-overhead-0"' in cell[0]
    assert "autofocus" in cell[0]
    assert re.search(r'id="mistake-overhead-0">Overhead: expected a number of µs', sent.text)


def test_limits_that_clash_are_said_above(live: Live) -> None:
    """They are no single field's mistake."""
    sent = post(live, *STAGES, ("max_fragment", "1"), ("max_fragments", "2"))
    assert sent.status_code == 422
    alert = re.search(r'role="alert"[^>]*>(.*?)</div>', sent.text, re.S)
    assert alert is not None
    assert "<p>" in alert[1]


def test_a_profile_that_is_not_there_is_marked(live: Live) -> None:
    """In its own field."""
    sent = post(live, ("source", "profile"), ("profile", "nothing-like-it"))
    assert sent.status_code == 422
    assert 'id="mistake-profile"' in sent.text


def test_buttons_work_without_scripts(live: Live) -> None:
    """A button sends the form, and its table comes back changed."""
    sent = post(live, *STAGES, ("name", "out"), ("do", "reverse"))
    assert sent.status_code == 200
    assert re.findall(r'name="name" value="([^"]*)"', sent.text) == ["out", "in"]


def test_only_forms_are_read(live: Live) -> None:
    """JSON has an address of its own."""
    assert live.client.post("/ui/optimize", json={}).status_code == 415
    long = live.client.post("/ui/optimize", content=b"x" * (5 * 2**20), headers=FORM)
    assert long.status_code == 413


@pytest.mark.parametrize("query", ["example=gms", "profile=gms", "profile=gms%401&bytes=2MB"])
def test_links_fill_the_panel(live: Live, query: str) -> None:
    """Examples and stored profiles, each by a plain link."""
    page = live.client.get(f"/?{query}")
    assert page.status_code == 200
    assert 'value="requester CPU"' in page.text
    assert ('value="2MB"' in page.text) == ("bytes" in query)


@pytest.mark.parametrize("query", ["example=none", "profile=none", "profile=a%20b"])
def test_links_to_nothing_are_refused(live: Live, query: str) -> None:
    """As pages."""
    assert live.client.get(f"/?{query}").status_code in (404, 422)


def test_a_bad_size_in_a_link_is_marked(live: Live) -> None:
    """The page is shown all the same."""
    page = live.client.get("/?example=gms&bytes=much")
    assert page.status_code == 200
    assert 'id="mistake-message"' in page.text


def test_pasted_measurements_are_fitted_and_kept(live: Live) -> None:
    """Under an address of their own, and without a profile."""
    before = live.stored()[1]
    page = live.client.get("/?example=local-path-direct").text
    trace = page.split('wrap="off"')[1].split(">", 1)[1].split("</textarea>")[0]
    sent = post(live, ("source", "trace"), ("trace", trace), ("message", "1 MiB"))
    assert sent.status_code == 303
    place, query = sent.headers["location"].split("?")
    assert query == "bytes=1+MiB"
    stored = live.client.get(place.removeprefix("/ui")).json()
    assert [stage["name"] for stage in stored["pipeline"]["stages"]][:2] == ["copy_in", "crc32"]
    assert live.stored()[1] == before


@pytest.mark.parametrize("trace", ["", "no measurements", "message_bytes,a_us\n1,x"])
def test_bad_measurements_are_marked(live: Live, trace: str) -> None:
    """Where they were pasted."""
    sent = post(live, ("source", "trace"), ("trace", trace))
    assert sent.status_code == 422
    assert 'id="mistake-trace"' in sent.text


def test_a_file_is_sent_as_it_is(live: Live) -> None:
    """By a script, which is told where to go, or what is wrong, as JSON."""
    body = (Path(__file__).parents[2] / "examples" / "local-path-direct.csv").read_bytes()
    asked = {"hx-request": "true", "accept": "application/problem+json"}
    sent = live.client.post("/ui/fits?message=1+KiB", content=body, headers=asked)
    assert sent.status_code == 204
    assert '"path": "/ui/fits/' in sent.headers["hx-location"]
    bad = live.client.post("/ui/fits", content=b"\x00\x01", headers=asked)
    assert bad.status_code == 422
    assert bad.json()["code"] == "unreadable_trace"


def test_thousands_of_wrong_cells(live: Live) -> None:
    """All are marked, the first one has the focus, and finding it does not take longer by each."""
    rows = [("name", "in"), ("overhead", "1"), ("cost", "2"), ("up_to", "")]
    wrong = [("name", "in"), ("overhead", "q"), ("cost", "2"), ("up_to", "")]
    sent = post(live, *rows * 32, *wrong * 32)
    assert sent.status_code == 422
    assert sent.text.count('aria-invalid="true"') == 32
    focused = re.search(r'id="([a-z]+-[0-9]+)"[^>]*autofocus', sent.text)
    assert focused is not None
    assert focused[1] == "overhead-32"


def test_the_address_under_mistakes_leads_back(live: Live) -> None:
    """What a browser shows there after a refusal can be opened again, if without what was typed."""
    opened = live.client.get("/ui/optimize", headers={"Accept": "text/html"})
    assert (opened.status_code, opened.headers["location"]) == (303, "/")


@pytest.mark.usefixtures("native_kernels")
def test_the_table_says_that_it_has_no_handoffs(live: Live) -> None:
    """An answer of stages that hand bytes on as they move; a change of it is another question."""
    stages = [{**stage, "handoff_bytes": 1} for stage in MYRINET["stages"]]
    asked = {"message_bytes": 4096, "pipeline": {**MYRINET, "stages": stages}}
    answer = live.client.post("/optimize", json=asked).raise_for_status().json()
    page = live.client.get(f"/ui/answers/{answer['id']}")
    assert page.status_code == 200
    assert "no column for handoff_bytes" in page.text
    plain = live.client.post("/optimize", json={**asked, "pipeline": MYRINET}).json()
    assert "handoff_bytes" not in live.client.get(f"/ui/answers/{plain['id']}").text
    assert plain["fragment_bytes"] == answer["fragment_bytes"]


def test_the_first_view_is_solved(live: Live) -> None:
    """A modern example with what to set and how sure that is; asked once, and kept; or empty."""
    first, again = (unescape(live.client.get("/").text) for _ in range(2))
    found = re.findall(r'data-answer="([0-9a-f]{32})"', first + again)
    assert len(found) == 2
    assert len(set(found)) == 1
    assert "Repeat 2 MiB" in first
    assert "of the best size in 90 % of the draws or more" in first
    assert 'name="relative" value="10 %"' in first
    assert "The schedule appears here" in unescape(live.client.get("/?empty=yes").text)


def test_what_was_asked_stays_in_the_address(live: Live) -> None:
    """The setting in use, how well costs are known, and the answer before; nothing else does."""
    given = [*STAGES, ("current", "64 KiB"), ("relative", "5 %"), ("delay", "0")]
    sent = post(live, *given, ("last", "0" * 32))
    assert sent.status_code == 303
    query = urlsplit(sent.headers["location"]).query
    assert dict(parse_qsl(query)) == {"current": "64 KiB", "relative": "5 %", "last": "0" * 32}
    page = unescape(live.client.get(sent.headers["location"]).text)
    assert 'name="current" value="64 KiB"' in page
    assert 'name="relative" value="5 %"' in page
    assert "last" not in post(live, *given, ("last", "../x")).headers["location"]
    wrong = post(live, *STAGES, ("relative", "5"), ("delay", "0"))
    assert wrong.status_code == 422
    assert 'id="mistake-relative"' in wrong.text
