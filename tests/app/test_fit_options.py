"""How to fit: the parameters of POST /fit, `fit_options`, several files, stored fits and traces."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.operations import fits
from app.schemas.base import read_output
from contract.fit import FitOut
from contract.optimize import OptimizeOut
from tests.app.serving import Live

EXAMPLE = (Path(__file__).parents[2] / "examples" / "local-path-direct.csv").read_bytes()
TEXT = {"content-type": "text/csv"}
SIZES = (64, 256, 1024, 4096, 16384, 65536)
DIRECT = "message_bytes,repetition,copy_us,crc_us,wire_us\n" + "".join(
    f"{size},{repetition},{2 + size * 0.004:.6f},{1 + size * 0.005:.6f},{9 + size * 0.03:.6f}\n"
    for size in SIZES
    for repetition in range(3)
)
# One line to 4 KiB, another beyond.
SWITCH = "message_bytes,repetition,wire_us\n" + "".join(
    f"{size},{repetition},{(5 + size * 0.02) if size <= 4096 else (90 + size * 0.01):.6f}\n"
    for size in (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
    for repetition in range(5)
)
LATENCY = "message_bytes,repetition,latency_us\n" + "".join(
    f"{size},{repetition},{30 + size * 0.05:.6f}\n" for size in SIZES for repetition in range(3)
)
INTERARRIVAL = "message_bytes,repetition,interarrival_us\n" + "".join(
    f"{size},{repetition},{12 + size * 0.03:.6f}\n" for size in SIZES for repetition in range(3)
)


def fit(client: httpx.Client, content: str | bytes = DIRECT, **query: Any) -> dict[str, Any]:
    response = client.post("/fit", content=content, headers=TEXT, params=query)
    assert response.status_code == 200, response.text
    read_output(FitOut, response.content)
    document: dict[str, Any] = response.json()
    return document


def several(*contents: str, **more: Any) -> dict[str, Any]:
    return {"measurements": [{"content": content, **more} for content in contents]}


def codes(document: dict[str, Any]) -> set[str]:
    return {one["code"] for one in document["warnings"]}


class TestOptions:
    @pytest.mark.parametrize("method", ["robust", "weighted", "ordinary"])
    def test_method(self, client: httpx.Client, method: str) -> None:
        document = fit(client, method=method)
        assert document["method"] == method
        assert document["pipeline"]["stages"][2]["ns_per_byte"] == pytest.approx(30.0, rel=1e-3)

    def test_shape_and_most_ranges(self, client: httpx.Client) -> None:
        """Where the data have two lines."""

        def ranges(**query: Any) -> list[int | None]:
            (stage,) = fit(client, SWITCH, **query)["pipeline"]["stages"]
            return [line["up_to_bytes"] for line in stage["ranges"]]

        assert ranges() == ranges(shape="ranges") == [4096, None]
        assert ranges(shape="line") == ranges(max_ranges=1) == [None]

    def test_groups(self, client: httpx.Client) -> None:
        """The sum, and the larger one, of two steps."""
        summed = fit(client, group="host:sequence:copy,crc")["pipeline"]["stages"]
        assert [stage["name"] for stage in summed] == ["host", "wire"]
        assert summed[0]["overhead_us"] == pytest.approx(3.0, rel=1e-3)
        assert summed[0]["ns_per_byte"] == pytest.approx(9.0, rel=1e-3)
        larger = fit(client, group="all:overlap:copy,crc,wire")["pipeline"]["stages"]
        assert larger[0]["ns_per_byte"] == pytest.approx(30.0, rel=1e-3)

    @pytest.mark.parametrize(
        ("query", "pointer"),
        [
            ("method=best", "/method"),
            ("shape=curve", "/shape"),
            ("max_ranges=0", "/max_ranges"),
            ("max_ranges=17", "/max_ranges"),
            ("max_ranges=two", "/max_ranges"),
            ("group=host", "/group/0"),
            ("group=host:both:copy,crc", "/group/0"),
            ("group=host:overlap:copy", "/group/0"),
            ("group=:overlap:copy,crc", "/group/0"),
            ("group=" + "n" * 101 + ":overlap:copy,crc", "/group"),
            ("group=host:overlap:copy,unknown", "/group"),
            ("group=host:overlap:copy,wire", "/group"),
            ("group=a:overlap:copy,crc&group=b:overlap:crc,wire", "/group"),
            ("shape=narrowed", "/message_bytes"),
            ("message_bytes=4096", "/message_bytes"),
            ("shape=narrowed&message_bytes=0", "/message_bytes"),
            ("kind=logp", "/kind"),
            ("kind=end_to_end", "/kind"),
            ("kind=nothing", "/kind"),
        ],
    )
    @pytest.mark.parametrize("is_long", [False, True], ids=["here", "worker"])
    def test_refusals(
        self,
        live: Live,
        query: str,
        pointer: str,
        is_long: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """422 that names the parameter."""
        if is_long:
            monkeypatch.setattr(fits, "LONG_TRACE_BYTES", 10)
        before = live.stored()
        response = live.client.post(f"/fit?save_as=never&{query}", content=DIRECT, headers=TEXT)
        assert response.status_code == 422
        assert [one["pointer"] for one in response.json()["errors"]] == [pointer]
        assert live.stored() == before


class TestExcluded:
    def test_one_file(self, client: httpx.Client) -> None:
        """Left out in every stage of the row; told in the answer, and what is not there too."""
        document = fit(client, exclude=["64:2.256:copy", "64:2.25:copy"])
        assert [stage["num_samples"] for stage in document["pipeline"]["stages"]] == [15, 15, 15]
        assert document["understood"]["left out by hand"] == "3 of 18 measured messages"
        assert [one["time_us"] for one in document["excluded"]] == [2.256, 2.25]
        assert "excluded_not_found" in codes(document)

    def test_several_files_and_an_optimisation(self, client: httpx.Client) -> None:
        """By the body."""
        left = [{"stage": "total", "message_bytes": 64, "time_us": 33.2}]
        body = {**several(LATENCY, INTERARRIVAL), "excluded": left}
        document = client.post("/fit", json=body).json()
        assert document["excluded"] == left
        assert document["aggregate"]["total"]["num_samples"] == 15
        assert document["aggregate"]["bottleneck"]["num_samples"] == 18
        asked = {**body, "message_bytes": 65536, "fit_options": {"excluded": left}}
        del asked["excluded"]
        answer = client.post("/optimize", json=asked).json()
        assert answer["fit"]["excluded"] == left

    @pytest.mark.parametrize("word", ["64:2.256", "x:1:copy", "64:nan:copy", "0:1:copy", "64:-1:a"])
    def test_refusals(self, client: httpx.Client, word: str) -> None:
        response = client.post("/fit", content=DIRECT, headers=TEXT, params={"exclude": word})
        assert response.status_code == 422
        assert "exclude" in response.json()["errors"][0]["pointer"]


class TestAsStage:
    """A measurement that is a stage may be called one."""

    def test_latencies_alone(self, client: httpx.Client) -> None:
        """They become a pipeline of this one stage."""
        document = fit(client, LATENCY, as_stage="memcpy")
        assert document["kind"] == "direct"
        (stage,) = document["pipeline"]["stages"]
        assert stage["name"] == "memcpy"
        assert document["understood"]["measured stage"] == "memcpy"
        assert "no_bottleneck" not in codes(document)

    def test_in_a_question(self, client: httpx.Client) -> None:
        asked = {
            "message_bytes": 65536,
            "measurements": {"content": LATENCY},
            "fit_options": {"as_stage": "memcpy"},
        }
        answer = client.post("/optimize", json=asked).json()
        assert [stage["name"] for stage in answer["pipeline"]["stages"]] == ["memcpy"]

    @pytest.mark.parametrize("content", [DIRECT])
    def test_stages_have_names_already(self, client: httpx.Client, content: str) -> None:
        response = client.post("/fit?as_stage=copy", content=content, headers=TEXT)
        assert response.status_code == 422
        assert response.json()["errors"][0]["pointer"] == "/as_stage"


class TestColumns:
    """Tables whose columns are named: in the query, in a body, and of a stage."""

    TABLE = "n;block;bw\n" + "".join(
        f"{n};{size};{size / (3000 + size):.9f}\n" for n, size in enumerate(SIZES * 3)
    )
    WORD = "size=block,rate=bw:GB/s"  # 3 µs and 1 ns a byte

    def test_of_one_stage(self, client: httpx.Client) -> None:
        """Fitted, stored, and drawn of the files again."""
        document = fit(client, self.TABLE, columns=self.WORD, as_stage="disk", save_as="table")
        (stage,) = document["pipeline"]["stages"]
        assert stage["name"] == "disk"
        assert stage["overhead_us"] == pytest.approx(3.0, rel=1e-3)
        assert stage["ns_per_byte"] == pytest.approx(1.0, rel=1e-3)
        assert document["understood"]["rate_column"] == "bw, unit GB/s"
        plot = client.get(f"/fits/{document['fit_id']}/plot").raise_for_status().json()
        assert plot["stages"][0]["num_samples"] == len(SIZES) * 3

    def test_in_other_bodies(self, client: httpx.Client) -> None:
        measured = {"content": self.TABLE}
        stage = {"name": "disk", "measurements": measured, "columns": self.WORD}
        composed = client.post("/compose", json={"stages": [stage]}).raise_for_status().json()
        asked = {
            "message_bytes": 65536,
            "measurements": measured,
            "fit_options": {"as_stage": "disk", "columns": self.WORD},
        }
        answer = client.post("/optimize", json=asked).raise_for_status().json()
        ((solved,), (fitted,)) = (one["pipeline"]["stages"] for one in (answer, composed))
        for cost in ("name", "overhead_us", "ns_per_byte"):
            assert solved[cost] == fitted[cost]

    @pytest.mark.parametrize(
        "columns", ["size=block", "size=no,rate=bw:GB/s", "size=block,rate=bw"]
    )
    def test_what_is_wrong_is_named(self, client: httpx.Client, columns: str) -> None:
        measured = {"content": self.TABLE}
        stage = {"name": "disk", "measurements": measured, "columns": columns}
        optimize = {"message_bytes": 1, "measurements": measured}
        for response, pointer in (
            (client.post("/fit", params={"columns": columns}, content=self.TABLE), "/columns"),
            (
                client.post("/optimize", json={**optimize, "fit_options": {"columns": columns}}),
                "/fit_options/columns",
            ),
            (client.post("/compose", json={"stages": [stage]}), "/stages"),
        ):
            assert response.status_code == 422
            assert response.json()["errors"][0]["pointer"].startswith(pointer)


class TestCompose:
    """Stages of files of their own."""

    def test_a_pipeline_of_two_files(self, client: httpx.Client) -> None:
        """Fitted, stored, shown again, drawn, and answered from."""
        other = LATENCY + "4096,99,30.5\n"
        asked: dict[str, Any] = {
            "stages": [
                {"name": "d2h", "measurements": {"content": DIRECT}, "step": "copy"},
                {"name": "pack", "measurements": [{"content": DIRECT}], "step": "crc"},
                {"name": "net", "measurements": [{"content": other}, {"content": other}]},
            ],
            "save_as": "composed",
            "plot": True,
        }
        for stage in asked["stages"][:2]:
            stage["processor"] = "cpu"
        document = client.post("/compose", json=asked).raise_for_status().json()
        names = ["d2h + pack", "net"]
        assert [stage["name"] for stage in document["pipeline"]["stages"]] == names
        assert "stages_measured_apart" in codes(document)
        assert [one["name"] for one in document["plot"]["stages"]] == names
        stored = client.get(f"/fits/{document['fit_id']}").json()
        assert stored["pipeline"] == document["pipeline"]
        plot = client.get(f"/fits/{document['fit_id']}/plot").json()
        assert plot == document["plot"]
        answer = client.post("/optimize", json={"profile": "composed", "message_bytes": 65536})
        assert answer.json()["uncertainty"]["source"] == "fit"
        page = client.get(f"/ui/fits/{document['fit_id']}")
        assert page.status_code == 200
        assert "The stages were measured apart" in page.text
        assert 'name="join"' not in page.text

    @pytest.mark.parametrize(
        ("wrong", "pointer"),
        [
            ({"stages": []}, "/stages"),
            ({"stages": [{"name": "a", "measurements": {"content": DIRECT}}]}, "/stages"),
            ({"stages": [{"name": "a", "measurements": {"content": "x"}}]}, "/stages"),
            ({"shape": "narrowed"}, "/shape"),
            ({"max_ranges": 17}, "/max_ranges"),
        ],
    )
    def test_what_cannot_be_composed(
        self, client: httpx.Client, wrong: dict[str, object], pointer: str
    ) -> None:
        asked = {"stages": [{"name": "a", "measurements": {"content": LATENCY}}], **wrong}
        response = client.post("/compose", json=asked)
        assert response.status_code == 422, response.text
        assert response.json()["errors"][0]["pointer"].startswith(pointer)


class TestNarrowed:
    def test_one_line_over_the_sizes_in_use(
        self, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The line of the small sizes for a small message, with a notice of the range."""
        document = fit(client, SWITCH, shape="narrowed", message_bytes=1024)
        (stage,) = document["pipeline"]["stages"]
        (line,) = stage["ranges"]
        assert line["to_bytes"] <= 4096
        assert line["overhead_us"] == pytest.approx(5.0, rel=1e-3)
        assert line["ns_per_byte"] == pytest.approx(20.0, rel=1e-3)
        assert "narrowed_fit" in codes(document)
        assert document["understood"]["rows"] == "60"
        monkeypatch.setattr(fits, "LONG_TRACE_BYTES", 10)
        assert fit(client, SWITCH, shape="narrowed", message_bytes=1024) == document

    def test_from_outside(self, client: httpx.Client) -> None:
        query = {"shape": "narrowed", "message_bytes": "65536"}
        body = several(LATENCY, INTERARRIVAL)
        response = client.post("/fit", params=query, json=body)
        assert response.status_code == 200, response.text
        assert response.json()["aggregate"]["sum_ns_per_byte"] == pytest.approx(50.0, rel=1e-3)

    def test_what_cannot_be_scheduled_cannot_be_narrowed(self, client: httpx.Client) -> None:
        response = client.post(
            "/fit?shape=narrowed&message_bytes=4096", content=LATENCY, headers=TEXT
        )
        assert (response.status_code, response.json()["code"]) == (422, "measurement_missing")


class TestOptimize:
    def test_fit_options(self, client: httpx.Client) -> None:
        """They change the pipeline that is solved, and they are part of the question."""
        ask: dict[str, Any] = {"message_bytes": 4096, "measurements": {"content": SWITCH}}
        answers = {}
        for name, options in (
            ("usual", None),
            ("line", {"shape": "line"}),
            ("narrowed", {"shape": "narrowed"}),
            ("named", {"method": "robust", "shape": "ranges", "max_ranges": 12.0, "groups": []}),
        ):
            response = client.post("/optimize", json={**ask, "fit_options": options})
            assert response.status_code == 200, response.text
            read_output(OptimizeOut, response.content)
            answers[name] = response.json()
        kinds = {name: len(one["pipeline"]["stages"][0]) for name, one in answers.items()}
        assert kinds["line"] == kinds["narrowed"] > kinds["usual"]
        assert answers["named"]["id"] == answers["usual"]["id"]
        assert len({one["id"] for one in answers.values()}) == 3
        assert "narrowed_fit" in codes(answers["narrowed"])

    def test_groups(self, client: httpx.Client) -> None:
        group = {"name": "host", "steps": ["copy", "crc"], "combine": "sequence"}
        ask = {
            "message_bytes": 4096,
            "measurements": {"content": DIRECT},
            "fit_options": {"groups": [group]},
        }
        answer = client.post("/optimize", json=ask).json()
        assert [stage["name"] for stage in answer["pipeline"]["stages"]] == ["host", "wire"]

    @pytest.mark.parametrize(
        ("options", "pointer"),
        [
            ({"method": "best"}, "/fit_options/method"),
            ({"more": 1}, "/fit_options/more"),
            ({"max_ranges": 0}, "/fit_options/max_ranges"),
            ({"groups": [{"name": "a"}]}, "/fit_options/groups/0/steps"),
            (
                {"groups": [{"name": "a", "steps": ["copy", "no"], "combine": "overlap"}]},
                "/fit_options/groups",
            ),
        ],
    )
    def test_refusals(self, client: httpx.Client, options: dict[str, Any], pointer: str) -> None:
        ask = {"message_bytes": 64, "measurements": {"content": DIRECT}, "fit_options": options}
        response = client.post("/optimize", json=ask)
        assert response.status_code == 422
        assert response.json()["errors"][0]["pointer"] == pointer

    def test_only_with_measurements(self, client: httpx.Client) -> None:
        ask = {"message_bytes": 64, "profile": "gms", "fit_options": {"shape": "line"}}
        response = client.post("/optimize", json=ask)
        assert response.status_code == 422
        assert [one["pointer"] for one in response.json()["errors"]] == ["/fit_options"]


class TestSeveralFiles:
    @pytest.mark.parametrize("is_long", [False, True], ids=["here", "worker"])
    def test_of_one_pipeline(
        self, client: httpx.Client, is_long: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if is_long:
            monkeypatch.setattr(fits, "LONG_TRACE_BYTES", 10)
        response = client.post("/fit", json=several(LATENCY, INTERARRIVAL))
        read_output(FitOut, response.content)
        document = response.json()
        assert (document["kind"], document["pipeline"]["stages"]) == ("indirect", [])
        assert document["aggregate"]["bottleneck"]["ns_per_byte"] == pytest.approx(30.0, rel=1e-3)
        assert document["trace_digests"] == [
            hashlib.sha256(content.encode()).hexdigest() for content in (LATENCY, INTERARRIVAL)
        ]

    def test_kinds_are_said_of_each(self, client: httpx.Client) -> None:
        body = several(LATENCY, kind="logp")
        response = client.post("/fit", json=body)
        assert (response.status_code, response.json()["errors"][0]["pointer"]) == (422, "/kind")
        response = client.post("/fit?kind=end_to_end", json=several(LATENCY))
        assert (response.status_code, response.json()["errors"][0]["pointer"]) == (422, "/kind")

    def test_a_refusal_names_the_file(self, client: httpx.Client) -> None:
        response = client.post("/fit", json=several(LATENCY, "nonsense"))
        assert response.status_code == 422
        assert response.json()["detail"].startswith("file 2: ")

    def test_what_does_not_go_together(self, client: httpx.Client) -> None:
        response = client.post("/fit", json=several(LATENCY, DIRECT))
        assert (response.status_code, response.json()["code"]) == (422, "unreadable_trace")

    def test_one_file_in_json_of_our_own(self, client: httpx.Client) -> None:
        """As JSON, and as any text."""
        trace = {
            "kind": "direct",
            "message_bytes": [100, 200, 300, 400],
            "repetition": [0, 0, 0, 0],
            "stages": [{"name": "copy", "time_us": [3.0, 5.0, 7.0, 9.0]}],
        }
        content = json.dumps(trace)
        for kind in ("application/json", "text/plain"):
            response = client.post("/fit", content=content, headers={"content-type": kind})
            assert response.status_code == 200, response.text
            (stage,) = response.json()["pipeline"]["stages"]
            assert stage["ns_per_byte"] == pytest.approx(20.0, rel=1e-6)


class TestStored:
    def test_fits_and_traces_come_back(self, own: Live) -> None:
        """On each database: several files in their order, and what a revision leads to."""
        body = several(LATENCY, INTERARRIVAL, LATENCY)
        saved = own.client.post("/fit?save_as=seen&method=weighted", json=body).json()
        fit_id = own.client.get("/profiles/seen").json()["provenance"]["fit_id"]
        assert fit_id == saved["fit_id"]
        response = own.client.get(f"/fits/{fit_id}")
        read_output(FitOut, response.content)
        assert response.json() == {**saved, "profile": None}
        for digest, content in zip(
            saved["trace_digests"], (LATENCY, INTERARRIVAL, LATENCY), strict=True
        ):
            trace = own.client.get(f"/traces/{digest}")
            assert trace.text == content
            assert trace.headers["content-type"] == "text/plain; charset=utf-8"
            assert trace.headers["content-disposition"].startswith("attachment")
            assert trace.headers["x-content-type-options"] == "nosniff"
        with own.service.context.store.reading() as unit:
            request = unit.fits.get(fit_id).request
        assert request is not None
        assert (request.options.method, request.kinds) == ("weighted", (None, None, None))

    def test_a_long_trace_is_stored_as_it_came(
        self, own: Live, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """From its file: more than one piece, and bytes that are no text are kept as they are."""
        monkeypatch.setattr(fits, "LONG_TRACE_BYTES", 10)
        head, rows = EXAMPLE.split(b"_us\n", 1)
        content = b"\xef\xbb\xbf" + head + b"_us\r\n" + rows * 60
        saved = own.client.post("/fit?save_as=long", content=content, headers=TEXT).json()
        (digest,) = saved["trace_digests"]
        assert digest == hashlib.sha256(content).hexdigest()
        assert own.client.get(f"/traces/{digest}").content == content

    def test_a_fit_without_a_model_stores_nothing(self, live: Live) -> None:
        """Latencies alone are no pipeline: a fit, and no profile."""
        before = live.stored()
        assert fit(live.client, LATENCY)["pipeline"]["stages"][0]["name"] == "end to end"
        response = live.client.post("/fit?save_as=alone", content=LATENCY, headers=TEXT)
        assert (response.status_code, response.json()["code"]) == (422, "measurement_missing")
        assert live.stored() == before
        digest = hashlib.sha256(LATENCY.encode()).hexdigest()
        assert live.client.get(f"/traces/{digest}").status_code == 404

    def test_a_store_that_fails_stores_nothing(
        self, own: Live, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Even at the last of several statements."""

        def fail(*_: object, **__: object) -> None:
            raise RuntimeError("power cut")

        before = own.stored()
        monkeypatch.setattr("models.repositories.profiles.ProfileRepository.save", fail)
        response = own.client.post("/fit?save_as=half", content=DIRECT, headers=TEXT)
        assert response.status_code == 500
        assert own.stored() == before
        digest = hashlib.sha256(DIRECT.encode()).hexdigest()
        assert own.client.get(f"/traces/{digest}").status_code == 404

    @pytest.mark.parametrize(
        "path",
        [
            "/fits/" + "0" * 32,
            "/fits/%00",
            "/fits/no",
            "/traces/" + "0" * 64,
            "/traces/" + "A" * 64,
            "/traces/%00",
            "/traces/x",
        ],
    )
    def test_unknown_ones(self, client: httpx.Client, path: str) -> None:
        response = client.get(path)
        assert (response.status_code, response.json()["code"]) == (404, "not_found")
