"""After transfers have contradicted a profile's model no door sets a size by it."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main
from tests.app.serving import wait_for_end
from tests.app.test_transfers_decide import KIB, MESSAGE, MIB, STAGES, TOOK_MS, rows_of

NAME = "failed-model"
FAILED = "Measure first: this model failed its verification, so that it sets no size."
BEST = "Of 32 MiB 1 MiB took 26.10 ms, the least transferred."
SETS_NO_SIZE = "it sets no size, and of these 1 MiB took the least"
SIZES = [2**power for power in range(12, 23)]
Run = Callable[..., str]


def trace() -> str:
    """Durations of the stages alone, with 1 % noise: the errors of their costs are known."""
    lines = ["message_bytes," + ",".join(f"{stage['name']}_us" for stage in STAGES)]
    for run in range(12):
        for at, size in enumerate(SIZES):
            noise = 1.0 + 0.01 * ((run * 3 + at) % 5 - 2) / 2
            times = (
                noise * (stage["overhead_us"] + stage["ns_per_byte"] * size * 1e-3)
                for stage in STAGES
            )
            lines.append(f"{size}," + ",".join(f"{one:.3f}" for one in times))
    return "\n".join(lines) + "\n"


@pytest.fixture(params=["fitted", "typed"])
def profile(request: pytest.FixtureRequest, client: httpx.Client) -> str:
    """A profile of which transfers of 32 MiB said that it does not hold."""
    name = f"{NAME}-{request.param}"
    if request.param == "fitted":
        sent = client.post("/fit", content=trace().encode(), params={"save_as": name})
        assert sent.status_code == 200, sent.text
    else:
        client.post("/profiles", json={"name": name, "pipeline": {"stages": STAGES}})
    told = client.post(f"/profiles/{name}/verification", json={"transfers": rows_of(TOOK_MS)})
    assert told.json()["verification"]["verdict"] == "does_not_hold", told.text
    return name


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """What the command prints, on a store in which the same fit was verified."""
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    file, recorded = tmp_path / "trace.csv", tmp_path / "own.csv"
    file.write_text(trace())
    recorded.write_text(rows_of(TOOK_MS))

    def ran(*arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        code = main(arguments)
        captured = capsys.readouterr()
        assert code in codes, captured.err
        return captured.out

    ran("fit", str(file), "--save-as", NAME)
    ran("verify", NAME, "--recorded", str(recorded), codes=(7,))
    return ran


def posted(client: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    sent = client.post(path, json=body)
    assert sent.status_code in (200, 201), sent.text
    found: dict[str, Any] = sent.json()
    return found


def sent_whole_now(first: int, last: int, size: int = 64 * KIB) -> dict[str, Any]:
    messages = {"min_message_bytes": first, "max_message_bytes": last}
    return {"setting": {"static_bytes": size}, "time_limit_s": 2, **messages}


class TestAudit:
    @pytest.mark.parametrize("between", [(MIB, MESSAGE), (4 * MIB, 4 * MIB)])
    def test_of_other_messages_nothing_is_changed(
        self, between: tuple[int, int], client: httpx.Client, profile: str
    ) -> None:
        audit = posted(client, "/audit", {"profile": profile, **sent_whole_now(*between)})
        (said,) = audit["changes"]
        assert said.startswith("Measure first: this model failed its verification")
        assert f"sluice sweep --bytes {between[1] // MIB}MiB" in said
        assert audit["warnings"][0]["code"] == "model_does_not_hold"
        assert SETS_NO_SIZE in audit["warnings"][0]["detail"]
        if profile.endswith("fitted"):
            known = audit["uncertainty"]
            assert (known["decision"], known["reason"]) == ("measure_first", "does_not_hold")
            assert known["sentence"] == said
            assert known["advised"] == "setting"

    def test_of_the_message_that_was_transferred_its_times_decide(
        self, client: httpx.Client, profile: str
    ) -> None:
        audit = posted(client, "/audit", {"profile": profile, **sent_whole_now(MESSAGE, MESSAGE)})
        (said,) = audit["changes"]
        assert said.startswith("Set 1 MiB: ")
        assert "faster than your 64 KiB, as transferred" in said
        if profile.endswith("fitted"):
            known = audit["uncertainty"]
            assert (known["decision"], known["reason"]) == ("set_it", "transferred")
            assert known["gain"]["p05"] > 0.3
        kept = posted(
            client, "/audit", {"profile": profile, **sent_whole_now(MESSAGE, MESSAGE, MIB)}
        )
        assert kept["changes"][0].startswith("Keep your 1 MiB")


class TestExport:
    def test_it_is_not_known_to_be_better(self, client: httpx.Client, profile: str) -> None:
        sent = client.get(f"/profiles/{profile}/exports/ucx")
        assert sent.status_code == 200, sent.text
        text = " ".join(sent.text.replace("\n# ", " ").split())
        assert f"NOT KNOWN TO BE BETTER than the library's default: {FAILED}" in text
        assert BEST in text
        assert "premise" not in text
        assert "draws of the" not in text

    def test_of_the_message_that_was_transferred_the_best_measured_is_written(
        self, client: httpx.Client, profile: str
    ) -> None:
        ends = {"min_message_bytes": MESSAGE, "max_message_bytes": MESSAGE}
        sent = client.get(f"/profiles/{profile}/exports/ucx", params=ends)
        assert sent.status_code == 200, sent.text
        text = " ".join(sent.text.replace("\n# ", " ").split())
        assert "NOT KNOWN TO BE BETTER" in text
        assert "as transferred: 1 MiB took 26.10 ms" in text
        assert "host:1048576" in text

    @pytest.mark.parametrize(
        ("target", "limits"), [("s3", {}), ("ucx", {"max_fragment_bytes": 256 * 1024})]
    )
    def test_no_size_is_set_that_limits_do_not_admit(
        self, client: httpx.Client, profile: str, target: str, limits: dict[str, int]
    ) -> None:
        """Parts of S3 have 5 MiB or more, and what was measured best has 1 MiB."""
        ends = {"min_message_bytes": MESSAGE, "max_message_bytes": MESSAGE, **limits}
        sent = client.get(f"/profiles/{profile}/exports/{target}", params=ends)
        assert sent.status_code == 200, sent.text
        text = " ".join(sent.text.replace("\n# ", " ").split())
        assert "Set 1 MiB" not in text


def test_a_table_says_so_where_it_is_compiled(client: httpx.Client, profile: str) -> None:
    """Also one that was compiled before; and so does its page."""
    body = {"min_message_bytes": MIB, "max_message_bytes": 2 * MIB, "relative_gap": 0.2}
    for _ in range(2):
        table = posted(client, f"/profiles/{profile}/tables", body)
        assert SETS_NO_SIZE in table["warnings"][0]["detail"]
        if profile.endswith("fitted"):
            known = table["uncertainty"]
            assert (known["decision"], known["reason"]) == ("measure_first", "does_not_hold")
            assert known["sentence"].startswith(FAILED)
    page = unescape(client.get(f"/ui/profiles/{profile}/tables/{table['digest']}").text)
    assert SETS_NO_SIZE in page
    assert SETS_NO_SIZE in unescape(client.get(f"/ui/profiles/{profile}").text)
    looked_up = client.get(f"/profiles/{profile}/schedule", params={"bytes": MIB}).json()
    assert SETS_NO_SIZE in looked_up["warnings"][0]["detail"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/compare", {"message_bytes": [MIB], "strategies": ["repeat"]}),
        ("/thresholds", {"message_bytes": [MIB]}),
        ("/hide", {"message_bytes": MIB, "calculation_us": 500.0, "time_limit_s": 1}),
        ("/optimize", {"message_bytes": MIB}),
    ],
)
def test_what_states_sizes_says_first_that_the_model_sets_none(
    path: str, body: dict[str, Any], client: httpx.Client, profile: str
) -> None:
    answer = posted(client, path, {"profile": profile, **body})
    assert answer["warnings"][0]["code"] == "model_does_not_hold"
    assert SETS_NO_SIZE in answer["warnings"][0]["detail"]


def test_an_audits_page_says_it(client: httpx.Client, profile: str) -> None:
    asked = client.post(
        "/audit",
        json={"profile": profile, **sent_whole_now(MIB, MESSAGE)},
        headers={"prefer": "respond-async"},
    )
    job = wait_for_end(client, asked.headers["location"])
    page = unescape(client.get(f"/ui/audits/{job['id']}").text)
    assert "this model failed its verification" in page
    assert "for all messages" not in page


DOORS = (
    ("audit", NAME, "--setting", "64KiB", "--min-message", "1MiB", "--max-message", "32MiB"),
    ("export", NAME, "--target", "ucx"),
    ("table", NAME, "--min-message", "1MiB", "--max-message", "2MiB", "--gap", "0.2"),
    ("compare", NAME, "--bytes", "1MiB", "--strategies", "repeat"),
    ("model", "thresholds", NAME, "--bytes", "1MiB"),
    ("model", "hide", NAME, "--bytes", "1MiB", "--calculation", "500"),
    ("optimize", NAME, "--bytes", "1MiB"),
)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door[0])
def test_the_command_says_it_first(door: tuple[str, ...], run: Run) -> None:
    printed = " ".join(re.sub(r"\n# ?", " ", run(*door)).split())
    assert SETS_NO_SIZE in printed
    if door[0] in ("audit", "export"):
        assert BEST in printed
    assert "Set " not in printed


@pytest.mark.parametrize("asked", [(MIB, MESSAGE), (MESSAGE, MESSAGE)])
def test_an_audit_is_the_same_through_both_doors(
    asked: tuple[int, int], run: Run, client: httpx.Client
) -> None:
    name = f"{NAME}-parity"
    client.post("/fit", content=trace().encode(), params={"save_as": name})
    client.post(f"/profiles/{name}/verification", json={"transfers": rows_of(TOOK_MS)})
    first, last = (f"{one}" for one in asked)
    body = sent_whole_now(*asked)
    by_http = posted(client, "/audit", {"profile": name, **body})
    words = ("--setting", "64KiB", "--min-message", first, "--max-message", last)
    by_command = json.loads(run("audit", NAME, *words, "--json"))
    assert by_http["changes"] == by_command["changes"]
    assert by_http["warnings"][0] == by_command["warnings"][0]
    for part in ("decision", "reason", "sentence", "gain"):
        assert by_http["uncertainty"][part] == by_command["uncertainty"][part]
