"""GET /layers, POST /layer-costs, and their durable job, through HTTP."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from analysis.layer_stages import StageQuestion, layer_stages
from analysis.published_layers import disagreements, shipped_layers
from app.execution.engine import Limit, LimitExceeded, Limits
from app.operations.tasks import result_of
from app.questions.source import Stored
from app.schemas.base import parse_json, read_output
from app.settings import Settings
from app.verbs.layer import answer
from app.verbs.layer.operation import operation as prepared
from contract.layer import LayersOut, PublishedLayerOut
from contract.layer_costs import LayerCostsIn, LayerCostsOut
from domain.instruction_counts import CycleModel
from domain.layer_document import layer_of_document
from domain.messaging_layer import NetworkFeature
from domain.pipeline import Pipeline
from domain.problem import Problem
from domain.schedule import latency_us
from solvers import solve
from tests.app.serving import Live, wait_for_end

FINITE = shipped_layers()["cmam-finite"]
_PACKETS = StageQuestion()
ASYNC = {"Prefer": "respond-async"}


def ask(**more: Any) -> dict[str, Any]:
    """A request about one transfer of 16 words."""
    return {"layer": "cmam-finite", "message_bytes": [64], **more}


def document() -> dict[str, Any]:
    """A layer of one component."""
    part = {"name": "send", "service": "base", "end": "source", "per": "packet"}
    return {
        "name": "own",
        "word_bytes": 4,
        "packet_words": 4,
        "components": [{**part, "counts": {"reg": 10, "system_call": 1}}],
    }


def costs_of(client: httpx.Client, **more: Any) -> LayerCostsOut:
    """The answer to a request, which has every field and no other."""
    response = client.post("/layer-costs", json=ask(**more))
    assert response.status_code == 200, response.text
    return read_output(LayerCostsOut, response.content)


class TestLayers:
    def test_published_layers_are_listed(self, client: httpx.Client) -> None:
        found = read_output(LayersOut, client.get("/layers").content)
        assert [one.name for one in found.items] == [*shipped_layers()]
        single = found.items[-1]
        assert (single.services, single.features) == (("base",), ())

    @pytest.mark.parametrize("name", shipped_layers())
    def test_a_layer_can_be_sent_back(self, client: httpx.Client, name: str) -> None:
        response = client.get(f"/layers/{name}")
        found = read_output(PublishedLayerOut, response.content)
        sent = response.json()["layer"]
        assert layer_of_document(sent) == shipped_layers()[name]
        own = [one.says for one in disagreements() if one.layer == name]
        assert [one.says for one in found.disagreements] == own
        by_name = client.post("/layer-costs", json=ask(layer=name))
        given = client.post("/layer-costs", json=ask(layer=sent))
        assert by_name.content == given.content

    def test_an_unknown_layer(self, client: httpx.Client) -> None:
        for response in (client.get("/layers/x"), client.post("/layer-costs", json=ask(layer="x"))):
            assert response.status_code == 404
            assert "cmam-finite, cmam-indefinite, cmam-single" in response.json()["detail"]


class TestCosts:
    def test_work_of_table_2(self, client: httpx.Client) -> None:
        costs = costs_of(client)
        (message,) = costs.messages
        assert (message.words, message.packets, message.acknowledgements) == (16, 4, 4)
        assert (message.instructions, message.cycles, message.us) == (397.0, 665.0, None)
        assert message.counts == {"reg": 296.0, "mem": 34.0, "dev": 67.0}
        base, *_ = message.services
        assert (base.service, base.end, base.instructions) == ("base", "source", 91.0)
        assert base.counts == {"reg": 62.0, "mem": 9.0, "dev": 20.0}
        assert sum(one.share_of_instructions for one in message.services) == pytest.approx(1.0)
        assert message.overhead_of_instructions == pytest.approx(0.544081, abs=1e-6)
        assert message.overhead_of_cycles == pytest.approx(0.505263, abs=1e-6)
        assert message.savings[-1].instructions == 216.0
        assert [one.code for one in costs.warnings] == ["no_clock"]
        assert costs.stages is None

    def test_without_any_cycles_instructions_are_told(self, client: httpx.Client) -> None:
        costs = costs_of(client, layer=document())
        (message,) = costs.messages
        assert (message.instructions, message.cycles, message.savings) == (44.0, None, ())
        assert [one.code for one in costs.warnings] == ["no_cycle_model"]

    def test_words_that_do_not_fill_a_packet(self, client: httpx.Client) -> None:
        costs = costs_of(client, message_bytes=[61, 50, 64])
        rounded, partial, full = costs.messages
        assert (rounded.words, rounded.partial_packet) == (16, True)
        assert (partial.words, partial.packets, partial.instructions) == (13, 4, 391.0)
        assert partial.full_packets is not None
        assert partial.full_packets.instructions == full.instructions == 397.0
        assert full.full_packets is None
        codes = [one.code for one in costs.warnings]
        assert codes == ["no_clock", "partial_packet", "half_instructions"]

    def test_stages_are_those_of_the_analysis(self, client: httpx.Client) -> None:
        between = [{"name": "wire", "overhead_us": 1.0, "ns_per_byte": 2.0}]
        costs = costs_of(client, clock_mhz=33, between=between, packet_words=[4, 128])
        assert costs.stages is not None
        names = [stage.name for stage in costs.stages.pipeline.stages]
        assert names == ["sender software", "wire", "receiver software"]
        assert costs.stages.constraints.max_fragment_bytes == 512
        assert [one.packet_words for one in costs.messages[0].packet_sizes] == [4, 128]
        assert len(costs.with_features) == 4

    def test_transfers_that_wait_are_no_pipeline(self, client: httpx.Client) -> None:
        more = {"mapping": "transfer", "handshake": "blocking", "clock_mhz": 1, "tune": True}
        costs = costs_of(client, **more)
        assert costs.stages is None
        assert costs.messages[0].best is None
        assert [one.code for one in costs.warnings] == ["not_a_pipeline"]

    def test_tuned_savings(self, client: httpx.Client) -> None:
        """Each latency is the evaluator's, with its bound; savings are differences of them."""
        costs = costs_of(client, clock_mhz=1, tune=True, message_bytes=[4096])
        (message,) = costs.messages
        assert message.best is not None
        assert message.best.latency_us == pytest.approx(3696.0 + 254.0)
        *_, everything = message.savings
        assert everything.features == tuple(NetworkFeature)
        assert everything.best is not None
        assert everything.best.latency_us == pytest.approx(3666.0 + 25.0)
        assert everything.saved_us == pytest.approx(3950.0 - 3691.0)
        hardware = self.pipeline_of(FINITE.with_features(NetworkFeature))
        found = solve(Problem(self.pipeline_of(FINITE), 4096, self.limits()))
        old_us = latency_us(hardware, found.schedule.fragment_bytes)
        assert everything.old_cut_us == pytest.approx(old_us)
        for saving in message.savings:
            assert saving.best is not None
            assert saving.best.lower_bound_us is not None
            assert saving.best.latency_us is not None
            assert saving.best.lower_bound_us <= saving.best.latency_us
            assert saving.old_cut_us is not None
            assert saving.best.latency_us <= saving.old_cut_us + 1e-9

    @staticmethod
    def pipeline_of(layer: Any) -> Pipeline:
        found = layer_stages(layer, CycleModel(layer.cycles, 1.0), _PACKETS)
        assert found is not None
        return found.pipeline

    @staticmethod
    def limits() -> Any:
        found = layer_stages(FINITE, CycleModel(FINITE.cycles, 1.0), _PACKETS)
        assert found is not None
        return found.limits


class TestStoring:
    def test_stages_are_stored_with_the_layer(self, own: Live) -> None:
        """As a profile whose provenance is the layer's document; again as its next revision."""
        body = ask(clock_mhz=33, save_as="kc")
        costs = read_output(LayerCostsOut, own.client.post("/layer-costs", json=body).content)
        assert costs.profile is not None
        assert costs.profile.reference == "kc@1"
        profile = own.client.get("/profiles/kc").json()
        assert profile["provenance"]["origin"] == "layer"
        assert layer_of_document(json.loads(profile["provenance"]["detail"])) == FINITE
        assert (
            profile["pipeline"]
            == json.loads(own.client.post("/layer-costs", json=body).content)["stages"]["pipeline"]
        )
        assert own.client.get("/profiles/kc").json()["revision"] == 2
        assert own.client.get("/ui/profiles/kc").status_code == 200

    def test_nothing_is_stored_without_stages(self, own: Live) -> None:
        response = own.client.post("/layer-costs", json=ask(save_as="kc"))
        assert response.status_code == 422
        assert response.json()["errors"][0]["pointer"] == "/save_as"
        assert own.client.get("/profiles/kc").status_code == 404


def test_a_job_has_the_same_result(own: Live) -> None:
    """And is done once for the same question; its page leads to it."""
    body = ask(clock_mhz=1, tune=True)
    response = own.client.post("/layer-costs", json=body, headers=ASYNC)
    assert response.status_code == 202
    job = wait_for_end(own.client, response.headers["location"])
    assert (job["kind"], job["state"]) == ("layer", "done")
    assert job["progress"]["steps_done"] == job["progress"]["steps_total"] == 5
    direct = own.client.post("/layer-costs", json=body).json()
    assert job["layer_costs"] == direct
    again = own.client.post("/layer-costs", json=body, headers=ASYNC)
    assert again.json()["id"] == job["id"]
    page = own.client.get(f"/ui/jobs/{job['id']}")
    assert page.status_code == 200
    assert "Costs of cmam-finite on 64 B" in page.text


def test_a_search_that_is_ended_at_once_has_the_work() -> None:
    """Also where the worker had reported nothing yet; each cut says why it is missing."""
    asked = parse_json(LayerCostsIn, json.dumps(ask(clock_mhz=1, tune=True)).encode())
    operation = prepared(asked, Stored(), Settings())
    limits = Limits(operation.time_s, 1)
    found = result_of(operation, LimitExceeded(Limit.TIME), best=None, limits=limits)
    sent = answer.sent(found)
    assert sent.messages[0].instructions == 397.0
    assert sent.messages[0].best is not None
    assert "not tried" in (sent.messages[0].best.declined or "")
    assert [one.code for one in sent.warnings] == ["time_limit"]
    assert {one.saved_us for one in sent.messages[0].savings} == {None}


def changed(**more: Any) -> dict[str, Any]:
    """The layer of one component with other fields."""
    return {**document(), **more}


def counted(count: Any, name: str = "reg") -> dict[str, Any]:
    """The layer with another count."""
    part = document()["components"][0]
    return changed(components=[{**part, "counts": {name: count}}])


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"layer": counted(-1)}, "/layer/components/0/counts/reg", ">= 0"),
    ({"layer": counted(1.1e9)}, "/layer/components/0/counts/reg", "<= 1000000000"),
    ({"layer": counted("1")}, "/layer/components/0/counts/reg", "a number"),
    ({"layer": counted(1, "Reg")}, "/layer/components/0/counts/Reg", "[a-z]"),
    ({"layer": changed(packet_words=0)}, "/layer/packet_words", ">= 1"),
    ({"layer": changed(packet_words=2**20 + 1)}, "/layer/packet_words", "<= 1048576"),
    ({"layer": changed(acknowledge_every=0)}, "/layer/acknowledge_every", ">= 1"),
    ({"layer": changed(word_bytes=0)}, "/layer/word_bytes", ">= 1"),
    ({"layer": changed(components=[])}, "/layer/components", "at least 1"),
    ({"layer": changed(components=document()["components"] * 1001)}, "/layer/components", "1000"),
    ({"layer": changed(cycles={"reg": 1})}, "/cycles", "system_call"),
    ({"layer": 7}, "/layer", "object"),
    ({"cycles": {"reg": -1}}, "/cycles/reg", ">= 0"),
    ({"clock_mhz": 0}, "/clock_mhz", "> 0"),
    ({"clock_mhz": -1}, "/clock_mhz", "> 0"),
    ({"clock_mhz": 1.1e6}, "/clock_mhz", "<= 1000000"),
    ({"features": ["quantum"]}, "/features/0", "'in_order', 'flow_control'"),
    ({"out_of_order": 0.25}, "/out_of_order", "do not tell"),
    ({"layer": "cmam-indefinite", "out_of_order": 0.25}, "/out_of_order", "35 reg, 23 mem"),
    ({"message_bytes": [64] * 65}, "/message_bytes", "64"),
    ({"message_bytes": []}, "/message_bytes", "at least 1"),
    ({"message_bytes": [0]}, "/message_bytes/0", ">= 1"),
    ({"message_bytes": [2**48], "packet_words": [1]}, "/message_bytes", "packets"),
    ({"packet_words": [*range(1, 202)]}, "/packet_words", "200"),
    ({"packet_words": [0]}, "/packet_words/0", ">= 1"),
    ({"tune": True}, "/clock_mhz", "clock"),
    ({"between": [{"overhead_us": -1, "ns_per_byte": 1}]}, "/between/0/overhead_us", ">= 0"),
    ({"clock_mhz": 1e-300}, "/cycles", "more than"),
    ({"clock_mhz": 1, "save_as": "No Name"}, "/save_as", "small letters"),
    ({"packet_words": [2**20 + 1]}, "/packet_words/0", "<= 1048576"),
    ({"message_bytes": [2**48 + 1]}, "/message_bytes/0", "<="),
    ({"cycles": {"devv": 10}}, "/cycles/devv", "class of this layer: reg, mem, dev"),
    ({"cycles": {"reg": 1.1e9}}, "/cycles/reg", "<= 1000000000"),
    ({"cycles": {f"c{place}": 1 for place in range(33)}}, "/cycles", "32"),
    ({"layer": changed(out_of_order=1.5)}, "/layer/out_of_order", "<= 1"),
    ({"layer": changed(crossings_before=-1)}, "/layer/crossings_before", ">= 0"),
    ({"wire_us": -1}, "/wire_us", ">= 0"),
    ({"time_limit_s": 0}, "/time_limit_s", "> 0"),
    ({"mapping": "bundle"}, "/mapping", "packet"),
    ({"handshake": "firm"}, "/handshake", "blocking"),
    ({"unknown": 1}, "/unknown", "unknown field"),
    (
        {"clock_mhz": 1e-300, "mapping": "transfer", "handshake": "blocking"},
        "/clock_mhz",
        "more than",
    ),
]
NUMBERS = {
    "/layer/components/0/counts/reg": {"layer": counted("@")},
    "/layer/packet_words": {"layer": changed(packet_words="@")},
    "/layer/out_of_order": {"layer": changed(out_of_order="@")},
    "/message_bytes/0": {"message_bytes": ["@"]},
    "/packet_words/0": {"packet_words": ["@"]},
    "/cycles/reg": {"cycles": {"reg": "@"}},
    "/clock_mhz": {"clock_mhz": "@"},
    "/wire_us": {"wire_us": "@"},
    "/out_of_order": {"out_of_order": "@"},
}


@pytest.mark.parametrize("pointer", NUMBERS)
@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999", "-1e400", "9" * 400])
def test_no_numbers(client: httpx.Client, pointer: str, literal: str) -> None:
    """What is no finite number is refused wherever a number belongs, by its field or as no JSON."""
    body = json.dumps(ask(**NUMBERS[pointer])).replace('"@"', literal)
    response = client.post(
        "/layer-costs", content=body, headers={"content-type": "application/json"}
    )
    assert response.status_code in (400, 422), response.text
    pointers = [error["pointer"] for error in response.json()["errors"]]
    assert response.json()["code"] == "malformed_json" or pointers == [pointer]


@pytest.mark.parametrize(("wrong", "pointer", "rule"), BAD, ids=lambda one: str(one)[:60])
def test_bad_input(client: httpx.Client, wrong: dict[str, Any], pointer: str, rule: str) -> None:
    """Is refused by its field, with the rule, and nothing is stored."""
    response = client.post("/layer-costs", json=ask(**wrong))
    assert response.status_code == 422, response.text
    (error,) = response.json()["errors"]
    assert error["pointer"] == pointer
    assert rule in error["detail"]


def test_codes_of_their_own(client: httpx.Client) -> None:
    """For a class without its cycles, and for a cost that was not published."""
    layer = changed(cycles={"reg": 1})
    missing = client.post("/layer-costs", json=ask(layer=layer)).json()
    assert missing["code"] == "missing_class_cost"
    unpublished = client.post("/layer-costs", json=ask(out_of_order=0.1)).json()
    assert unpublished["code"] == "not_published"


def test_a_document_of_more_than_a_mebibyte(client: httpx.Client) -> None:
    """Is refused, also where each of its parts is within the limits."""
    many = {f"class_{place:026d}": 123456789.12345678 for place in range(12)}
    part = {**document()["components"][0], "name": "𝄞" * 100, "counts": many}
    response = client.post("/layer-costs", json=ask(layer=changed(components=[part] * 1000)))
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/layer"
