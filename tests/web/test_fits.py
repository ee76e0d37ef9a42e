"""The view of a fit over HTTP."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from app.questions.fits import find_fit, plot_stored
from app.verbs.fit.page.charts import ROWS_A_PAGE, chart_views, sample_value
from app.verbs.fit.page.fit_view import fit_view
from domain.fit import ExcludedSample
from fitting import formats
from tests.app.serving import Live, wait_for_end

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


@pytest.fixture(scope="session")
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


def test_a_form_that_is_refused_keeps_what_was_chosen(live: Live, local: str) -> None:
    """All of it, not how the fit was made: what is right is not chosen again."""
    sent = post(
        live,
        f"{local}/again",
        ("method", "ordinary"),
        ("shape", "line"),
        ("max_ranges", "none"),
        ("stages_overlap", "false"),
        *[("join", join) for join in ("overlap", "own", "own", "sequence")],
        ("excluded", "64|1.5|copy_in"),
        ("excluded", "no sample"),
        ("message", "1 MiB"),
    )
    assert sent.status_code == 422
    assert 'name="max_ranges" inputmode="numeric" value="none"' in sent.text
    chosen = re.findall(r'<option value="(\w*)" selected', sent.text)
    assert chosen == ["ordinary", "line", "false", "", "overlap", "own", "own", "sequence"]
    assert re.findall(r'name="excluded" value="([^"]+)" checked', sent.text) == ["64|1.5|copy_in"]
    assert sent.text.count('value="1 MiB"') == 2


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


def test_what_is_said_of_the_overlap_goes_with_the_fit(live: Live, local: str) -> None:
    """Fitted again, pasted, and sent as a file; the page says what changed."""
    page = live.client.get(local).text
    for name in ("stages_overlap", "several_at_once"):
        assert re.search(rf'name="{name}"[^>]*>\s*<option value="" selected>not said', page)
    place = post(live, f"{local}/again", ("stages_overlap", "false")).headers["location"]
    page = unescape(live.client.get(place).text)
    assert "tages overlap: no instead of not said" in page
    assert "no, as you said" in page
    assert re.search(r'name="stages_overlap"[^>]*>.*?<option value="false" selected>', page, re.S)
    back = post(live, f"{place.partition('?')[0]}/again", ("stages_overlap", "true"))
    page = unescape(live.client.get(back.headers["location"]).text)
    assert "yes, as you said" in page
    assert "write_fdatasync" in page
    sent = live.client.post("/ui/fits", content=TRACE, params={"stages_overlap": "true"})
    assert "yes, as you said" in live.client.get(sent.headers["location"]).text
    pasted = post(
        *(live, "/ui/optimize", ("source", "trace"), ("trace", TRACE.decode())),
        *(("stages_overlap", "false"), ("message", "1 MiB")),
    )
    assert "no, as you said" in live.client.get(pasted.headers["location"]).text


def test_what_of_the_overlap_does_not_go_together_is_marked(live: Live, local: str) -> None:
    """At its field, of the fit's form and of the panel."""
    said = ("stages_overlap", "false"), ("several_at_once", "true")
    pasted = ("source", "trace"), ("trace", TRACE.decode()), ("message", "1 MiB")
    for sent in (
        post(live, f"{local}/again", *said),
        post(live, "/ui/optimize", *pasted, *said),
    ):
        assert sent.status_code == 422
        assert 'id="mistake-stages_overlap"' in sent.text
        assert "everal fragments at once overlap" in sent.text


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


def test_the_size_in_use_goes_from_the_trace_to_the_decision(live: Live) -> None:
    """Typed beside the trace, it is kept on the way, and the answer compares with it."""
    pasted = ("source", "trace"), ("trace", TRACE.decode()), ("message", "1 MiB")
    address = post(live, "/ui/optimize", *pasted, ("current", "4 KiB")).headers["location"]
    assert address.endswith("?bytes=1+MiB&current=4+KiB")
    page = live.client.get(address).text
    assert page.count('name="current" value="4 KiB"') == 2  # of the question, and to fit again
    fit = address.partition("?")[0]
    again = post(live, f"{fit}/again", ("message", "1 MiB"), ("current", "4 KiB"))
    assert "?bytes=1+MiB&current=4+KiB&before=" in again.headers["location"]
    sent = live.client.post("/ui/fits?message=1+MiB&current=whole", content=TRACE)
    assert sent.headers["location"].endswith("?bytes=1+MiB&current=whole")
    answer = post(live, f"{fit}/optimize", ("message", "1 MiB"), ("current", "4 KiB"))
    place = answer.headers["location"].partition("?")[0].replace("/ui/", "/")
    if place.startswith("/jobs/"):
        place = f"/answers/{wait_for_end(live.client, place)['answer_id']}"
    stored = place.replace("/answers/", "/optimizations/")
    known = live.client.get(stored).json()["uncertainty"]
    assert known["compared_with"] == "current"
    assert "your 4 KiB" in known["sentence"]


@pytest.mark.parametrize("current", ["4 QiB", "0", "-1", "<b>"])
def test_a_size_in_use_that_is_none_is_marked_beside_the_trace(current: str, live: Live) -> None:
    pasted = ("source", "trace"), ("trace", TRACE.decode()), ("message", "1 MiB")
    sent = post(live, "/ui/optimize", *pasted, ("current", current))
    assert sent.status_code == 422
    assert 'id="mistake-current"' in sent.text
    assert "<b>" not in sent.text.replace("<b>direct", "")


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
    [
        ("optimize", "message", "much"),
        ("optimize", "message", "0"),
        ("optimize", "current", "4 QiB"),
        ("profile", "name", "a b"),
    ],
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
    names = {stage.name for stage in record.fit.fitted_stages}
    assert names == {chart.name for chart in charts}
    assert all(f">{name}</th>" in fit_view(record).parameters for name in names)


def test_samples_are_named_to_the_last_digit() -> None:
    """So that a form finds them again."""
    sample = ExcludedSample("a|b", 4096, 0.1 + 0.2)
    assert sample_value(sample) == "4096|0.30000000000000004|a|b"
