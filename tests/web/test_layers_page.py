"""The page of messaging layers, without a browser: what a form asks, and what is shown of it."""

from __future__ import annotations

import base64
import html
import json
import re

import pytest

from analysis.published_layers import shipped_layers
from app.schemas.layer import given_layer
from app.verbs.layer.page.form import LayerForm
from domain.layer_document import layer_document
from domain.messaging_layer import NetworkFeature
from tests.app.serving import Live

FORM = {"content-type": "application/x-www-form-urlencoded"}


def shown(live: Live, path: str, *, status: int = 200) -> str:
    """What a page says, without its tags."""
    response = live.client.get(path)
    assert response.status_code == status, response.text
    return html.unescape(response.text)


def test_an_empty_form_asks_nothing() -> None:
    """So it is shown without a mistake."""
    assert not LayerForm.from_pairs([]).is_asked
    assert LayerForm.from_pairs([("clock", " 33 MHz ")]).text("clock") == "33 MHz"


def test_texts_become_a_request() -> None:
    """Sizes with units, prices by class, one feature; and the address that asks the same."""
    pairs = [
        *(("bytes", "4 KiB, 64"), ("packet_words", "4..16"), ("cycles", "reg=1, dev=5")),
        *(("clock", "33 MHz"), ("wire", "250 ns"), ("features", "in_order")),
        *(("mapping", "transfer"), ("tune", "yes"), ("time_limit", "2.5"), ("unknown", "x")),
    ]
    asked, form = LayerForm.from_pairs(pairs).asked()
    assert asked is not None
    assert (asked.layer, asked.message_bytes, asked.packet_words) == (
        "cmam-finite",
        [64, 4096],
        [4, 8, 16],
    )
    assert (asked.cycles, asked.clock_mhz, asked.wire_us) == ({"reg": 1.0, "dev": 5.0}, 33.0, 0.25)
    assert asked.features == [NetworkFeature.IN_ORDER]
    assert (asked.mapping, asked.tune, asked.time_limit_s) == ("transfer", True, 2.5)
    assert form.has_more
    assert "unknown" not in form.query()
    assert LayerForm.from_pairs([("bytes", "64"), ("features", "all")]).query() == "bytes=64"


@pytest.mark.parametrize("as_sent", [False, True])
def test_a_document_takes_the_place_of_a_published_layer(as_sent: bool) -> None:
    """As it is, or inside the file that has it."""
    document = layer_document(shipped_layers()["cmam-single"])
    text = json.dumps({"layer": document} if as_sent else document)
    asked, _ = LayerForm.from_pairs([("bytes", "16"), ("document", text)]).asked()
    assert asked is not None
    assert not isinstance(asked.layer, str)
    assert given_layer(asked.layer) == shipped_layers()["cmam-single"]


@pytest.mark.parametrize(
    ("field", "text", "rule"),
    [
        ("bytes", "0", "64..4MiB"),
        ("bytes", ", ".join(map(str, range(1, 66))), "64"),
        ("bytes", "nan", "64KiB"),
        ("packet_words", "0", ">= 1"),
        ("packet_words", "four", "4..128"),
        ("cycles", "reg", "reg=1,mem=1,dev=5"),
        ("cycles", "reg=-1", ">= 0"),
        ("clock", "33", "unit"),
        ("wire", "-1 us", "0 or more"),
        ("features", "quantum", "in_order"),
        ("mapping", "bundle", "packet"),
        ("time_limit", "1e9", "3600"),
        ("document", "{", "JSON"),
        ("document", "[]", "JSON"),
        ("document", "{}", "name"),
        ("layer", "none-such", "cmam-finite"),
        ("bytes", "x" * 3000, "characters"),
    ],
)
def test_what_is_wrong_stands_at_its_field(live: Live, field: str, text: str, rule: str) -> None:
    """With its rule, in a page that keeps what was typed."""
    fields = {"bytes": "64", field: text}
    response = live.client.post("/ui/layers", data=fields, headers=FORM)
    assert response.status_code == 422
    said = re.search(rf'id="{field}-mistake">([^<]*)', response.text)
    assert said is not None, response.text
    assert rule in html.unescape(said.group(1))
    assert field in ("features", "mapping", "layer") or html.escape(text)[:40] in response.text


def test_what_is_not_among_the_offers_is_kept(live: Live) -> None:
    """Several features, which a command may ask for: so the form asks the same once more."""
    page = shown(live, "/ui/layers?bytes=64&features=in_order,+flow_control")
    assert '<option value="in_order, flow_control" selected>' in page
    assert "--features in_order,flow_control" in page


def test_the_command_of_a_document_reads_a_file(live: Live) -> None:
    """And the page says which one that is."""
    document = json.dumps(layer_document(shipped_layers()["cmam-single"]))
    page = live.client.post(
        "/ui/layers", data={"bytes": "16", "document": document}, follow_redirects=True
    )
    assert "sluice model layer layer.json --bytes 16" in page.text
    assert "layer.json is the document that the form has" in page.text


def test_work_is_shown_by_service_and_end(live: Live) -> None:
    """Of Table 2: 47 and 101 instructions of buffering among 397; and a picture of it."""
    page = shown(live, "/ui/layers?bytes=64&clock=33+MHz")
    row = re.search(r'<th scope="row">buffering</th>(.*?)</tr>', page, re.DOTALL)
    assert row is not None
    assert re.findall(r">([^<>]+)</td>", row.group(1)) == ["47", "101", "148", "37.3 %", "34.3 %"]
    assert "Fragments anew" not in page
    drawn = re.search(r"data:image/svg\+xml;base64,([^\"]+)", page)
    assert drawn is not None
    assert b"397 instructions" in base64.b64decode(drawn.group(1))
    assert 'name="name" value="sender software"' in page


def test_stages_of_the_page_are_optimised(live: Live) -> None:
    """The hidden fields are a form of the workbench, which has an answer to them."""
    page = shown(live, "/ui/layers?bytes=4+KiB&clock=1+MHz")
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page)
    body = "&".join(f"{name}={value.replace(' ', '+')}" for name, value in fields)
    response = live.client.post("/ui/optimize", content=body, headers=FORM)
    assert response.status_code == 303, response.text
    answer = live.client.get(response.headers["location"].replace("/ui/answers", "/optimizations"))
    assert answer.json()["latency_us"] == pytest.approx(3696.0 + 254.0)


def test_savings_of_fragments_chosen_anew(live: Live) -> None:
    """As a part that loads by itself, and as a page of its own without scripts."""
    query = "bytes=4+KiB&clock=1+MHz&tune=yes&layer=cmam-indefinite"
    assert f'hx-post="/ui/layers/result?{query}"' not in shown(live, "/ui/layers?bytes=64")
    assert 'hx-post="/ui/layers/result?' in shown(live, f"/ui/layers?{query}")
    whole = live.client.post(f"/ui/layers/result?{query}")
    part = live.client.post(f"/ui/layers/result?{query}", headers={"hx-request": "true"})
    assert "<html" in whole.text
    assert "<html" not in part.text
    for text in (whole.text, part.text):
        assert "Fragments anew" in text
        assert "is proven for this model" in html.unescape(text)


def test_without_a_clock_there_are_neither_times_nor_stages(live: Live) -> None:
    """And to choose fragments is refused by its field."""
    page = shown(live, "/ui/layers?bytes=64")
    assert "no clock is given" in page.lower()
    assert "Optimise" not in page
    assert 'id="clock-mistake"' in shown(live, "/ui/layers?bytes=64&tune=yes", status=422)


def test_a_document_too_long_for_an_address(live: Live) -> None:
    """Has its result at once; a short question has an address."""
    document = layer_document(shipped_layers()["cmam-finite"])
    long = {"bytes": "64", "document": json.dumps({**document, "source": "s" * 400}, indent=8)}
    response = live.client.post("/ui/layers", data=long)
    assert response.status_code == 200
    assert "397" in response.text
    short = live.client.post("/ui/layers", data={"bytes": "64", "clock": "33 MHz"})
    assert short.status_code == 303
    assert short.headers["location"] == "/ui/layers?bytes=64&clock=33+MHz"
