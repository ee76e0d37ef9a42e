"""Decisions that measured times make or undo, through HTTP and the command line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from app.cli import main
from app.schemas.base import read_output
from contract.optimize import OptimizeOut
from tests.support.measured import trace

SIZES = tuple(2**power for power in range(10, 21))
# The second stage costs half as much again in the last two sizes: too few for a range of its own.
SWITCH = trace(
    SIZES,
    20,
    [
        lambda x: 20.0 + 0.002 * x,
        lambda x: (30.0 + 0.003 * x) * (1.5 if x > 2**18 else 1.0),
    ],
)
FAR = "message_bytes,repetition,path_us\n" + "".join(
    f"{x},{r},{20.0 + 7e-5 * x * (1.0 + 0.001 * (r % 3))}\n"
    for x in (2**30, 2**31, 3 * 2**30, 2**32)
    for r in range(3)
)
BIMODAL = "message_bytes,repetition,a_us,b_us\n" + "".join(
    f"{x},{r},{(10 + x / 1000) * (1.6 if r % 4 == 0 else 1 + r % 3 / 100)},{20 + x / 500}\n"
    for x in SIZES[:9]
    for r in range(12)
)


def ask(client: httpx.Client, content: str, total: int, current: int | None) -> dict[str, Any]:
    """The answer about a trace, with the size that is repeated today."""
    body = {
        "message_bytes": total,
        "measurements": {"content": content},
        "fit_options": {"stages_overlap": True},
        "strategy": "repeat",
        "uncertainty": {} if current is None else {"current": {"repeat": current}},
    }
    found = client.post("/optimize", json=body)
    assert found.status_code == 200, found.text
    answer: dict[str, Any] = found.json()
    assert read_output(OptimizeOut, orjson.dumps(answer)).uncertainty is not None
    return answer


class TestOverHttp:
    def test_what_was_measured_is_set_in_the_place_of_a_line(self, client: httpx.Client) -> None:
        """1 MiB is repeated today; by the file 256 KiB is faster, or what is near it."""
        answer = ask(client, SWITCH, 2**22, 2**20)
        known, said = answer["uncertainty"], answer["set_this"]
        assert known["decision"] == "set_it"
        assert known["file"]["gain_by_medians"] > 0.02
        assert known["file"]["gain_by_means"] > 0.02
        assert said["size_bytes"] == known["advised_bytes"]
        assert said["sentence"].startswith("Repeat ")

    def test_sizes_that_were_not_measured_are_measured_first(self, client: httpx.Client) -> None:
        """One piece of 64 MiB is never slower than 512 KiB; nothing below 1 GiB is known."""
        answer = ask(client, FAR, 2**26, 2**19)
        known, said = answer["uncertainty"], answer["set_this"]
        assert (known["decision"], known["reason"]) == ("measure_first", "not_measured")
        first = known["measure_next"][0]
        assert (first["stage"], first["fragment_bytes"]) == ("path", 2**26)
        assert "Timing stage path at 64 MiB, 20 times, would tell." in known["sentence"]
        assert said["keeps_current"]
        assert said["size_bytes"] == 2**19
        assert said["sentence"] == (
            "Measure first: the whole message may be faster; keep your 512 KiB until then."
        )

    def test_a_profile_says_the_same(self, client: httpx.Client) -> None:
        """Its fit was stored with it."""
        body = {
            "message_bytes": 2**26,
            "strategy": "repeat",
            "uncertainty": {"current": {"repeat": 2**19}},
        }
        fitted = {"measurements": {"content": FAR}, "save_as": "far"}
        first = client.post("/optimize", json={**body, **fitted}).json()
        again = client.post("/optimize", json={**body, "profile": "far"}).json()
        assert again["uncertainty"] == first["uncertainty"]

    def test_means_are_told(self, client: httpx.Client) -> None:
        """A quarter of the times is 1.6 times as long: the mean is 15 % above the median."""
        answer = ask(client, BIMODAL, 2**18, 2**12)
        known = answer["uncertainty"]
        assert known["of_means"]
        (said,) = (one for one in answer["warnings"] if one["code"] == "mean_times")
        assert said["values"]["a"] == pytest.approx(0.14, abs=0.02)
        assert "b" not in said["values"]
        assert known["latency_us"]["p95"] > answer["latency_us"]

    def test_an_answer_tells_one_gain(self, client: httpx.Client) -> None:
        """By mean times, as it was decided; by the lines, which are of medians, it is another."""
        answer = ask(client, BIMODAL, 2**18, 2**17)
        known, said = answer["uncertainty"], answer["set_this"]
        assert known["decision"] == "set_it"
        gains = [
            re.search(r"(\d+) % faster than your 128 KiB", one["sentence"]) for one in (known, said)
        ]
        assert gains[0] is not None
        assert gains[1] is not None
        assert gains[0][1] == gains[1][1]

    @pytest.mark.parametrize("current", [2**16, None])
    def test_what_is_kept_by_lines_alone_is_said_to_be(
        self, client: httpx.Client, current: int | None
    ) -> None:
        """Sizes up to 64 B were measured, and 1 MiB is sent."""
        small = tuple(2**power for power in range(7))
        content = trace(small, 10, [lambda x: 1.0 + 0.01 * x, lambda x: 2.0 + 0.02 * x])
        sentence = ask(client, content, 2**20, current)["uncertainty"]["sentence"]
        begun = "Do not cut: " if current is None else "Keep your 64 KiB: "
        assert sentence.startswith(
            f"{begun}by the lines, continued beyond the sizes that were measured, "
        )

    @pytest.mark.parametrize(
        ("costs", "reason"),
        [
            (lambda x: 500.0 + 0.001 * x, "not_measured"),  # one piece of 64 MiB
            (lambda x: 3600.0 + 6e6 / x, "falls_with_size"),  # a whole message in such fragments
        ],
    )
    def test_an_audit_sets_nothing_else(
        self, client: httpx.Client, costs: Callable[[float], float], reason: str
    ) -> None:
        """What is refused for one message is not set for many."""
        total, content = 2**26, trace(SIZES[:6], 5, [costs])
        fitted = {"measurements": {"content": content}, "save_as": "file", "message_bytes": total}
        assert client.post("/optimize", json=fitted).status_code == 200
        workload = {"min_message_bytes": total, "max_message_bytes": total}
        body = {"profile": "file", "setting": {"static_bytes": 4096}, **workload}
        found = client.post("/audit", json=body)
        assert found.status_code == 200, found.text
        known = found.json()["uncertainty"]
        assert (known["decision"], known["reason"]) == ("measure_first", reason)
        assert known["sentence"].startswith("Measure first: by the fitted lines ")


@pytest.fixture
def printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Any:
    """What `sluice optimize` says of a trace, in one line."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)

    def call(content: str, *arguments: str) -> str:
        Path("trace.csv").write_text(content)
        assert main(("optimize", "trace.csv", "--strategy", "repeat", *arguments)) == 0
        return " ".join(capsys.readouterr().out.split())

    return call


class TestCommandLine:
    def test_a_size_that_was_not_measured(self, printed: Any) -> None:
        out = printed(FAR, "--bytes", "64MiB", "--current", "512KiB")
        assert "64 MiB is outside the sizes that were measured." in out

    def test_means(self, printed: Any) -> None:
        out = printed(BIMODAL, "--bytes", "256KiB", "--current", "4KiB")
        assert "90 %, of mean times" in out
        assert "(mean_times)" in out

    def test_a_margin_of_whole_messages_is_in_the_sentence(self, printed: Any) -> None:
        """They took half as long again as their stages add up to."""
        rows = "".join(
            f"{x},{r},{20 + 0.002 * x},{30 + 0.003 * x},{(50 + 0.005 * x) * (1.5 + r / 100)}\n"
            for x in SIZES
            for r in range(4)
        )
        content = f"message_bytes,repetition,a_us,b_us,total_us\n{rows}"
        out = printed(content, "--bytes", "1MiB", "--current", "256KiB")
        assert "Whole messages differ from this model by 5" in out
        assert "no gain below that counts." in out
