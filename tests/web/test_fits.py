"""The view of a fit over HTTP."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.console.arguments import parse
from app.questions.fits import find_fit, plot_stored
from app.web.fits.view import ROWS_A_PAGE, chart_views, fit_view, sample_value
from domain.fit import ExcludedSample
from fitting import formats
from tests.app.serving import Live

FOLDER = Path(__file__).parents[2] / "examples"
TRACE = (FOLDER / "local-path-direct.csv").read_bytes()
FORM = {"content-type": "application/x-www-form-urlencoded"}


def fitted(live: Live, content: bytes = TRACE) -> str:
    """The address of a new fit."""
    sent = live.client.post("/ui/fits", content=content)
    assert sent.status_code == 303, sent.text
    return sent.headers["location"]


def post(live: Live, address: str, *fields: tuple[str, str]):  # type: ignore[no-untyped-def]
    """A form as a browser sends it."""
    return live.client.post(address, content=urlencode(fields), headers=FORM)


def test_a_fit_is_a_page(live: Live) -> None:
    """With its parameters, what was read, and what to beware of; no profile was stored."""
    page = live.client.get(fitted(live))
    assert page.status_code == 200
    for words in ("copy_in", "write_fdatasync", "Optimise with this", "To know about these"):
        assert words in page.text


def test_charts_come_by_themselves(live: Live) -> None:
    """As a part of the page, with the data that they draw and the outliers in words."""
    part = live.client.get(f"{fitted(live)}/parts/charts")
    assert part.status_code == 200
    assert "<html" not in part.text
    assert part.text.count("data-fit-chart") == 5
    assert 'name="excluded"' in part.text


def test_outliers_are_left_out_and_taken_back(live: Live) -> None:
    """Each time it is another fit with an address of its own; the first one stays as it was."""
    address = fitted(live)
    charts = live.client.get(f"{address}/parts/charts").text
    value = unescape(re.findall(r'name="excluded" value="([^"]+)"', charts)[0])
    sent = post(live, f"{address}/again", ("excluded", value), ("message", "1 MiB"))
    assert sent.status_code == 303
    again, query = sent.headers["location"].split("?")
    assert again != address
    assert query == f"bytes=1+MiB&before={address.rsplit('/', 1)[1]}"
    page = live.client.get(f"{again}?{query}").text
    assert "1 sample left out by hand" in page
    assert "What changed" in page
    assert f'href="{address}?bytes=1%20MiB">The earlier fit' in page
    ticked = re.findall(r'value="([^"]+)" checked', page)
    assert list(map(unescape, ticked)) == [value]
    reported = live.client.get(again.replace("/ui/", "/")).json()["excluded"]
    assert [f"{one['message_bytes']}|{one['time_us']!r}|{one['stage']}" for one in reported] == [
        value
    ]
    back = post(live, f"{again}/again").headers["location"].partition("?")[0]
    first, last = (live.service.context.store, live.client.get)
    with first.reading() as unit:
        fits = [unit.fits.get(place.rsplit("/", 1)[1]).fit for place in (address, again, back)]
    assert fits[0] == fits[2] != fits[1]
    assert last(address).status_code == 200


def test_a_file_in_no_format_is_told_what_it_lacks(live: Live) -> None:
    """Pasted or sent: the nearest formats, and how a simple header would be written."""
    text = "bytes,copy\n64,1.5\n"
    pasted = post(live, "/ui/optimize", ("source", "trace"), ("trace", text))
    sent = live.client.post("/ui/fits", content=text, headers={"hx-request": "true"})
    for stated in (pasted, sent):
        assert stated.status_code == 422
        assert 'id="mistake-trace"' in stated.text
        assert "message_bytes,copy_us\n" in stated.text
        assert "<b>message CSV</b>, line 1 lacks" in stated.text
    assert sent.text.count("<html") == 0
    several = {"measurements": [{"content": text}, {"content": text}]}
    assert (
        "file 1" in live.client.post("/ui/fits", json=several, headers={"hx-request": "true"}).text
    )
    plain = live.client.post("/ui/fits", content=text, headers={"accept": "application/json"})
    assert plain.json()["detail"].startswith("the file is not recognised: nearest is message CSV")


def test_all_rows_that_cannot_be_read_are_listed(live: Live) -> None:
    """Each with its rule, pasted or sent, to the page and to programs."""
    text = "bytes,copy_us\n64,1.5\n64,x\n128,2\n0,1\n"
    pasted = post(live, "/ui/optimize", ("source", "trace"), ("trace", text))
    sent = live.client.post("/ui/fits", content=text, headers={"hx-request": "true"})
    for stated in (pasted, sent):
        assert stated.status_code == 422
        assert "<p>2 rows cannot be read:</p>" in stated.text
        assert "<li>line 3, column 2: expected a finite decimal number of µs" in stated.text
        assert "<li>line 5: message_bytes: expected a whole number" in stated.text
    reported = live.client.post("/fit", content=text).json()
    assert reported["detail"].startswith("2 rows cannot be read: line 3, column 2: expected")
    assert [one["pointer"] for one in reported["errors"]] == ["/measurements"] * 2
    assert reported["errors"][1]["detail"].startswith("line 5: message_bytes")


def test_every_format_is_offered(live: Live) -> None:
    """By the readers themselves."""
    page = unescape(live.client.get("/").text)
    assert all(f"<dt>{one.name}</dt><dd>{one.about}" in page for one in formats())


@pytest.fixture(scope="module")
def local(live: Live) -> str:
    """The address of a fit that tests look at and go on from."""
    return fitted(live)


@pytest.mark.parametrize(
    ("fields", "place", "words"),
    [
        *((("excluded", value), "again", "xpected samples as") for value in ("", "a|b|c", "1|x|a")),
        (("max_ranges", "17"), "max_ranges", "1 &lt;= max_ranges &lt;= 16"),
        (("max_ranges", "many"), "max_ranges", "whole number from 1 to 16"),
        (("join", "overlap sequence"), "join", "all at the same time or all one after the other"),
        (("shape", "narrowed"), "again", "needs a message"),
    ],
)
def test_what_cannot_be_fitted_again_is_marked(
    live: Live, local: str, fields: tuple[str, str], place: str, words: str
) -> None:
    """At its field, or at the form."""
    name, values = fields
    sent = post(live, f"{local}/again", *((name, one) for one in values.split(" ")))
    assert sent.status_code == 422
    assert f'id="mistake-{place}"' in sent.text
    assert words in sent.text


def test_a_fit_is_made_in_another_way(live: Live, local: str) -> None:
    """Steps that form one stage, another method and fewer ranges; the page says what changed."""
    joins = [("join", "overlap"), *[("join", "own")] * 3]
    asked = ("method", "weighted"), ("max_ranges", "1"), *joins
    place = post(live, f"{local}/again", *asked).headers["location"]
    page = unescape(live.client.get(place).text)
    for words in (
        "one stage made of copy_in and crc32",
        "ethod weighted instead of robust",
        "1 instead of 12 ranges",
        "Fit ranges: ",
        "copy_in + crc32 instead of copy_in and crc32",
        "No longer said",
    ):
        assert words.lower() in page.lower()
    assert re.search(r'<option value="overlap" selected>', page)
    apart = post(live, f"{place.partition('?')[0]}/again", *[("join", "own")] * 4)
    page = unescape(live.client.get(apart.headers["location"]).text)
    assert "stages of their own for copy_in and crc32" in page.lower()


def test_times_may_be_those_of_one_stage(live: Live) -> None:
    """A sweep of latencies becomes a fit of one stage, and goes back; stages have no such field."""
    address = fitted(live, (FOLDER / "osu-latency.txt").read_bytes())
    assert 'name="as_stage"' in live.client.get(address).text
    place = post(live, f"{address}/again", ("as_stage", " memcpy ")).headers["location"]
    page = unescape(live.client.get(place).text)
    assert "Times of the stage memcpy" in page
    assert re.search(r'name="as_stage"[^>]*value="memcpy"', page)
    back = post(live, f"{place.partition('?')[0]}/again", ("as_stage", "")).headers["location"]
    assert "Times of messages" in unescape(live.client.get(back).text)
    tall = post(live, f"{address}/again", ("as_stage", "x" * 101))
    assert tall.status_code == 422
    assert 'id="mistake-as_stage"' in tall.text


def test_stages_are_not_called_one_stage(live: Live, local: str) -> None:
    """Their form does not offer it, and a form that says it is refused."""
    assert 'name="as_stage"' not in live.client.get(local).text
    assert post(live, f"{local}/again", ("as_stage", "copy")).status_code == 422


def test_changes_are_of_the_same_measurements(live: Live, local: str) -> None:
    """Another trace's fit, and one that is not there, are refused."""
    other = fitted(live, (FOLDER / "osu-latency.txt").read_bytes()).rsplit("/", 1)[1]
    assert live.client.get(f"{local}?before={other}").status_code == 422
    assert live.client.get(f"{local}?before={'0' * 32}").status_code == 404


def test_signatures_are_charts_with_tables(live: Live) -> None:
    """As stages are."""
    traces = Path(__file__).parents[1] / "data" / "traces"
    address = fitted(live, (traces / "signature.csv").read_bytes())
    part = live.client.get(f"{address}/parts/charts").text
    for words in ("data-signature=", "data-logp", "no computation", "20 µs between"):
        assert words in part


def test_a_fit_leads_to_an_answer_or_its_job(live: Live) -> None:
    """With what was fitted."""
    sent = post(live, f"{fitted(live)}/optimize", ("message", "4 KiB"))
    assert sent.status_code == 303
    assert re.match(r"/ui/(answers|jobs)/[0-9a-f]{32}", sent.headers["location"])


def test_a_fit_from_outside_leads_to_an_answer(live: Live) -> None:
    """All stages together and the slowest of them are enough."""
    texts = [(FOLDER / name).read_text() for name in ("osu-latency.txt", "osu-bw.txt")]
    sent = live.client.post("/ui/fits", json={"measurements": [{"content": t} for t in texts]})
    assert sent.status_code == 303, sent.text
    address = sent.headers["location"]
    assert "bottleneck" in live.client.get(address).text
    answer = post(live, f"{address}/optimize", ("message", "1 MiB"))
    assert answer.status_code == 303, answer.text


def test_latencies_alone_say_what_is_missing(live: Live) -> None:
    """Shown all the same, with a place for it: then a message can be cut by both."""
    address = fitted(live, (FOLDER / "osu-latency.txt").read_bytes())
    page = live.client.get(address)
    assert page.status_code == 200
    assert "inter-arrival times" in page.text
    assert "osu_bw" in page.text
    assert "Optimise with this" not in page.text
    beside = f"{address}/beside"
    bandwidth = (FOLDER / "osu-bw.txt").read_text()
    pasted = post(live, beside, ("trace", bandwidth), ("message", "1 MiB"))
    sent = live.client.post(f"{beside}?message=1+MiB", content=bandwidth)
    for reported in (pasted, sent):
        assert reported.status_code == 303, reported.text
        assert reported.headers["location"].endswith("?bytes=1+MiB")
        assert "Optimise with this" in live.client.get(reported.headers["location"]).text


def test_what_does_not_go_beside_is_told(live: Live) -> None:
    """At its field with what was pasted, to whoever sends a file, and to programs."""
    beside = f"{fitted(live, (FOLDER / 'osu-latency.txt').read_bytes())}/beside"
    unknown = post(live, beside, ("trace", "<b>,x\n"))
    assert unknown.status_code == 422
    assert "file 2: This is in no format" in unknown.text
    assert ">&lt;b&gt;,x" in unknown.text
    stages = post(live, beside, ("trace", TRACE.decode()))
    assert stages.status_code == 422
    assert 'id="mistake-trace"' in stages.text
    rows = "bytes,interarrival_us\n64,x\n64,y\n"
    listed = live.client.post(beside, content=rows, headers={"hx-request": "true"})
    assert "file 2: 2 rows cannot be read" in listed.text
    reported = live.client.post(beside, content=rows, headers={"accept": "application/json"})
    assert reported.json()["code"] == "unreadable_trace"
    assert live.client.post(f"/ui/fits/{'0' * 32}/beside", content=rows).status_code == 404


@pytest.mark.parametrize(
    ("place", "name", "text"),
    [("optimize", "message", "much"), ("optimize", "message", "0"), ("profile", "name", "a b")],
)
def test_mistakes_are_marked(live: Live, place: str, name: str, text: str) -> None:
    """Where they were typed, with what was typed."""
    sent = post(live, f"{fitted(live)}/{place}", (name, text))
    assert sent.status_code == 422
    assert f'id="mistake-{name}"' in sent.text
    assert f'value="{text}"' in sent.text


def test_a_fit_is_saved_as_a_profile(live: Live) -> None:
    """Whose revision tells where it came from."""
    address = fitted(live)
    sent = post(live, f"{address}/profile", ("name", "from-a-fit"))
    assert sent.headers["location"] == "/ui/profiles/from-a-fit"
    with live.service.context.store.reading() as unit:
        provenance = unit.profiles.get("from-a-fit").current.provenance
    assert provenance.detail == "robust of trace (direct)"
    assert provenance.fit_id == address.rsplit("/", 1)[1]


def test_a_drawing_for_those_without_scripts(live: Live) -> None:
    """The one that the command line writes."""
    drawn = live.client.get(f"{fitted(live)}/plot.svg")
    assert drawn.headers["content-type"] == "image/svg+xml"
    assert drawn.text.lstrip().startswith(("<?xml", "<svg"))
    assert "sandbox" in drawn.headers["content-security-policy"]


@pytest.mark.parametrize("place", ["", "/parts/charts", "/plot.svg"])
def test_fits_that_are_not_there(live: Live, place: str) -> None:
    """Are refused as pages."""
    for name in ("0" * 32, "..%2f", "x"):
        assert live.client.get(f"/ui/fits/{name}{place}").status_code == 404


def test_axes_suit_the_data(live: Live) -> None:
    """Log axes where there are decades; residuals far out stay within their axis' reach."""
    fit_id = fitted(live).rsplit("/", 1)[1]
    with live.service.context.store.reading() as unit:
        record = unit.fits.get(fit_id)
    charts = chart_views(plot_stored(find_fit(live.service.context.store, fit_id)))
    assert all(chart.data["logSize"] for chart in charts)
    assert all(0.02 <= chart.data["residualEnd"] < 10.0 for chart in charts)
    for chart in charts:
        off = [abs(row.residual or 0.0) for row in chart.rows]
        assert off == sorted(off, reverse=True)
        assert len(off) == min(ROWS_A_PAGE, chart.num_rows)
        assert chart.num_rows <= len(chart.data["points"])
    assert {stage.name for stage in fit_view(record).stages} == {chart.name for chart in charts}


def test_samples_are_named_to_the_last_digit() -> None:
    """So that a form finds them again."""
    sample = ExcludedSample("a|b", 4096, 0.1 + 0.2)
    assert sample_value(sample) == "4096|0.30000000000000004|a|b"


# --- stages that were measured each by itself -----------------------------------------------------


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
