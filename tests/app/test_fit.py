"""POST /fit, through HTTP."""

from __future__ import annotations

import hashlib
from pathlib import Path

import httpx
import pytest

from app.operations import fits
from app.schemas.base import read_output
from contract.fit import FitOut, FitPlotOut
from tests.app.serving import Live

EXAMPLE = Path(__file__).parents[2] / "examples" / "local-path-direct.csv"
TEXT = {"content-type": "text/csv"}
HEADER = "message_bytes,repetition,copy_us\n"
ROWS = "".join(
    f"{size},{repetition},{3.0 + size * 0.02}\n"
    for size in (100, 1000, 10000)
    for repetition in range(3)
)


class TestFit:
    def test_a_real_measurement(self, client: httpx.Client) -> None:
        """Every stage with its interval, which holds the estimate, and what was understood."""
        response = client.post("/fit", content=EXAMPLE.read_bytes(), headers=TEXT)
        read_output(FitOut, response.content)
        fit = response.json()
        assert (fit["kind"], fit["aggregate"], fit["profile"]) == ("direct", None, None)
        assert fit["understood"]["rows"] == "350"
        stages = fit["pipeline"]["stages"]
        assert [stage["name"] for stage in stages] == [
            "copy_in",
            "crc32",
            "loopback_tcp",
            "copy_out",
            "write_fdatasync",
        ]
        for line in (line for stage in stages for line in stage["ranges"]):
            for name in ("overhead_us", "ns_per_byte"):
                low, high = line[f"{name}_interval"]
                assert 0.0 <= low <= line[name] <= high
        assert all(one["code"] and one["detail"] for one in fit["warnings"])
        assert fit["trace_digests"] == [hashlib.sha256(EXAMPLE.read_bytes()).hexdigest()]

    def test_an_exact_line(self, client: httpx.Client) -> None:
        fit = client.post("/fit?kind=direct", content=HEADER + ROWS, headers=TEXT).json()
        (stage,) = fit["pipeline"]["stages"]
        assert stage["overhead_us"] == pytest.approx(3.0)
        assert stage["ns_per_byte"] == pytest.approx(20.0)

    def test_saved_as_a_profile(self, client: httpx.Client) -> None:
        response = client.post("/fit?save_as=fitted", content=HEADER + ROWS, headers=TEXT)
        read_output(FitOut, response.content)
        assert response.json()["profile"] == {"name": "fitted", "revision": 1}
        profile = client.get("/profiles/fitted").json()
        assert profile["provenance"]["origin"] == "fit"
        assert profile["provenance"]["fit_id"] == response.json()["fit_id"]
        assert profile["pipeline"]["stages"][0]["name"] == "copy"
        again = client.post("/fit?save_as=fitted", content=HEADER + ROWS, headers=TEXT).json()
        assert again["profile"]["revision"] == 2

    def test_saved_on_each_database(self, own: Live) -> None:
        content = EXAMPLE.read_bytes()
        saved = own.client.post("/fit?save_as=path", content=content, headers=TEXT).json()
        with own.service.context.store.reading() as unit:
            record = unit.fits.get(saved["fit_id"])
            (digest,) = record.trace_digests
            assert unit.traces.get(digest) == content
        assert (len(record.fit.stages), saved["trace_digests"]) == (5, [digest])

    def test_a_long_trace_is_fitted_by_a_worker(
        self, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With the same result, and the same refusals."""
        short = client.post("/fit", content=HEADER + ROWS, headers=TEXT).json()
        bad = client.post("/fit", content=HEADER + "x", headers=TEXT)
        monkeypatch.setattr(fits, "LONG_TRACE_BYTES", 10)
        assert client.post("/fit", content=HEADER + ROWS, headers=TEXT).json() == short
        refused = client.post("/fit", content=HEADER + "x", headers=TEXT)
        assert (refused.status_code, refused.json()) == (422, bad.json())


class TestPlot:
    def test_only_where_it_is_asked_for(self, client: httpx.Client) -> None:
        for query in ("", "?plot=false"):
            answer = client.post(f"/fit{query}", content=HEADER + ROWS, headers=TEXT)
            assert answer.json()["plot"] is None

    def test_every_sample_and_the_line(self, client: httpx.Client) -> None:
        response = client.post("/fit?plot=true", content=HEADER + ROWS, headers=TEXT)
        read_output(FitOut, response.content)
        (stage,) = response.json()["plot"]["stages"]
        assert (stage["name"], stage["role"], stage["num_samples"]) == ("copy", "stage", 9)
        points = stage["points"]
        assert points["message_bytes"] == [100] * 3 + [1000] * 3 + [10000] * 3
        assert points["time_us"] == pytest.approx([5.0] * 3 + [23.0] * 3 + [203.0] * 3)
        (piece,) = stage["pieces"]
        assert (piece["message_bytes"][0], piece["message_bytes"][-1]) == (100, 10000)
        assert (piece["time_us"][0], piece["time_us"][-1]) == pytest.approx((5.0, 203.0))

    def test_of_a_long_trace(self, client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
        """Drawn where it is fitted, with the same result."""
        content = EXAMPLE.read_bytes()
        short = client.post("/fit?plot=true", content=content, headers=TEXT).json()
        monkeypatch.setattr(fits, "LONG_TRACE_BYTES", 10)
        assert client.post("/fit?plot=true", content=content, headers=TEXT).json() == short

    def test_of_a_stored_fit(self, own: Live, monkeypatch: pytest.MonkeyPatch) -> None:
        """On each database, here and by a worker: what the fit itself came with."""
        content = EXAMPLE.read_bytes()
        saved = own.client.post("/fit?save_as=path&plot=true", content=content, headers=TEXT).json()
        address = f"/fits/{saved['fit_id']}/plot"
        response = own.client.get(address)
        read_output(FitPlotOut, response.content)
        assert response.json() == saved["plot"]
        monkeypatch.setattr(fits, "LONG_TRACE_BYTES", 10)
        assert own.client.get(address).json() == saved["plot"]

    def test_of_a_fit_that_is_not_stored(self, client: httpx.Client) -> None:
        for name in ("0" * 32, "no", "%00"):
            response = client.get(f"/fits/{name}/plot")
            assert (response.status_code, response.json()["code"]) == (404, "not_found")

    def test_true_or_false(self, client: httpx.Client) -> None:
        response = client.post("/fit?plot=1", content=HEADER + ROWS, headers=TEXT)
        assert response.status_code == 422
        (error,) = response.json()["errors"]
        assert error["pointer"] == "/plot"
        assert error["detail"] == "expected true or false"


class TestRefusals:
    @pytest.mark.parametrize(
        "content",
        [
            "",
            "\n\n",
            HEADER,
            "size,time\n1,2\n",
            HEADER + "1,0,NaN\n",
            HEADER + "1,0,1e999\n",
            HEADER + "1,0,-5\n",
            HEADER + "0,0,5\n",
            HEADER + "1,0\n",
            HEADER + "1,0,5,6\n",
            HEADER + "1,0,5\n" * 5,
            HEADER + '1,0,"5\n',
            HEADER + "=cmd(),0,5\n",
            "\x00" * 100,
            "a" * 100_000,
        ],
        ids=range(15),
    )
    def test_unreadable_traces(self, live: Live, content: str) -> None:
        """422 with the line and the rule; nothing is stored."""
        before = live.stored()
        response = live.client.post("/fit?save_as=bad", content=content, headers=TEXT)
        assert response.status_code == 422
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json()["code"] in ("unreadable_trace", "poor_fit")
        assert live.stored() == before

    def test_not_utf_8(self, client: httpx.Client) -> None:
        response = client.post("/fit", content=b"\xff\xfe" + HEADER.encode(), headers=TEXT)
        assert (response.status_code, response.json()["code"]) == (422, "unreadable_trace")

    @pytest.mark.parametrize(
        ("query", "pointer"),
        [
            ("kind=other", "/kind"),
            ("kind=logp", "/kind"),
            ("save_as=No", "/save_as"),
            ("save_as=..%2fx", "/save_as"),
            ("other=1", "/other"),
        ],
    )
    def test_queries(self, client: httpx.Client, query: str, pointer: str) -> None:
        response = client.post(f"/fit?{query}", content=HEADER + ROWS, headers=TEXT)
        assert response.status_code == 422
        assert [one["pointer"] for one in response.json()["errors"]] == [pointer]
