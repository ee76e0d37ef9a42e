"""A stored profile that a trace with begins contradicts is told so, and its former model sets no
size until it is chosen again.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main

MOVERS = Path(__file__).resolve().parents[1] / "data" / "movers"
SERIAL = (MOVERS / "serial.csv").read_bytes()
CHAIN = (MOVERS / "relay.csv").read_bytes()
KIB, MIB = 1 << 10, 1 << 20
TYPED = {
    "stages": [
        {"name": "read", "overhead_us": 5.0, "ns_per_byte": 0.4},
        {"name": "send", "overhead_us": 5.0, "ns_per_byte": 0.5},
    ]
}
SAID = "says pipelined; here stages overlapped"
Run = Callable[..., str]


def durations(trace: bytes) -> bytes:
    """The same without begins: what serial and pipelined movers write alike."""
    header, *rows = [line for line in trace.decode().splitlines() if not line.startswith("#")]
    names = header.split(",")
    kept = [at for at, name in enumerate(names) if name == "message_bytes" or name.endswith("_us")]
    if "message_bytes" not in names:
        kept = [at for at, name in enumerate(names) if name.endswith(("_bytes", "_us"))]
    lines = [",".join(line.split(",")[at] for at in kept) for line in (header, *rows)]
    return ("\n".join(lines) + "\n").encode()


def fitted(client: httpx.Client, name: str, trace: bytes) -> dict[str, Any]:
    sent = client.post("/fit", content=trace, params={"save_as": name})
    assert sent.status_code == 200, sent.text
    found: dict[str, Any] = sent.json()
    return found


def codes(answer: dict[str, Any]) -> list[str]:
    return [one["code"] for one in answer["warnings"]]


def set_of(client: httpx.Client, reference: str) -> dict[str, Any]:
    uncertainty = {"relative": 0.05, "current": {"repeat": 4 * KIB}}
    body = {"message_bytes": MIB, "profile": reference, "uncertainty": uncertainty}
    sent = client.post("/optimize", json=body)
    assert sent.status_code == 200, sent.text
    found: dict[str, Any] = sent.json()
    return found


@pytest.mark.parametrize("former", ["typed", "durations"])
def test_the_former_model_sets_no_size_until_it_is_chosen_again(
    former: str, client: httpx.Client
) -> None:
    name = f"contradicted-{former}"
    if former == "typed":
        client.post("/profiles", json={"name": name, "pipeline": TYPED})
    else:
        assert "model_contradicted" not in codes(fitted(client, name, durations(CHAIN)))
    before = set_of(client, f"{name}@1")
    assert before["uncertainty"]["reason"] != "structure"
    stored = fitted(client, name, SERIAL)
    assert stored["warnings"][0]["code"] == "model_contradicted"
    assert f"revision 1 {SAID}" in stored["warnings"][0]["detail"]
    revision = client.get(f"/profiles/{name}").json()["revision"]
    assert revision == 2
    told = client.get(f"/profiles/{name}").json()["provenance"]["detail"]
    assert f"revision 1 {SAID}" in told

    after = set_of(client, f"{name}@1")
    known, set_this = after["uncertainty"], after["set_this"]
    assert (known["decision"], known["reason"]) == ("measure_first", "structure")
    assert known["sentence"].startswith(f"Measure first: revision 1 {SAID}")
    assert "sluice sweep --bytes 1MiB --current 4KiB" in known["sentence"]
    assert set_this["size_bytes"] == 4 * KIB
    assert after["warnings"][0]["code"] == "model_contradicted"
    body = {"profile": f"{name}@1", "setting": {"static_bytes": 4 * KIB}, "time_limit_s": 1}
    audit = client.post("/audit", json={**body, "max_message_bytes": MIB}).json()
    (change,) = audit["changes"]
    assert f"revision 1 {SAID}" in change
    export = client.get(f"/profiles/{name}@1/exports/ucx").text.replace("\n# ", " ")
    assert "NOT KNOWN TO BE BETTER" in export
    assert f"revision 1 {SAID}" in export
    pages = [unescape(client.get(f"/ui/profiles/{name}{at}").text) for at in ("", "@1")]
    assert all(f"revision 1 {SAID}" in page for page in pages)
    assert "model_contradicted" not in codes(set_of(client, name))  # by its own structure

    chosen = client.post(f"/profiles/{name}/current", json={"revision": 1})
    assert chosen.status_code in (200, 204), chosen.text
    assert set_of(client, name)["uncertainty"] == before["uncertainty"]


def test_a_trace_that_agrees_contradicts_nothing(client: httpx.Client) -> None:
    client.post("/profiles", json={"name": "agreeing", "pipeline": TYPED})
    assert "model_contradicted" not in codes(fitted(client, "agreeing", CHAIN))
    assert "model_contradicted" not in codes(set_of(client, "agreeing@1"))
    one = {"stages": TYPED["stages"][:1]}
    client.post("/profiles", json={"name": "one-stage", "pipeline": one})
    assert "model_contradicted" not in codes(fitted(client, "one-stage", SERIAL))


def test_a_revision_and_an_answer_that_store_the_fit_say_it_too(client: httpx.Client) -> None:
    fit = client.post("/fit", content=SERIAL).json()
    for name in ("revised", "answered"):
        client.post("/profiles", json={"name": name, "pipeline": TYPED})
    etag = client.get("/profiles/revised").headers["etag"]
    put = client.put("/profiles/revised", json={"fit": fit}, headers={"if-match": etag})
    assert put.status_code == 200, put.text
    assert f"revision 1 {SAID}" in put.json()["provenance"]["detail"]
    body = {"message_bytes": MIB, "fit": fit, "save_as": "answered"}
    answer = client.post("/optimize", json=body).json()
    assert answer["warnings"][0]["code"] == "model_contradicted"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")

    def ran(*arguments: str) -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        assert main(arguments) == 0, capsys.readouterr().err
        return " ".join(capsys.readouterr().out.split())

    return ran


def test_the_command_says_it(run: Run, tmp_path: Path) -> None:
    bare, serial = tmp_path / "bare.csv", tmp_path / "serial.csv"
    bare.write_bytes(durations(CHAIN))
    serial.write_bytes(SERIAL)
    assert SAID not in run("fit", str(bare), "--save-as", "mover")
    assert f"revision 1 {SAID}" in run("fit", str(serial), "--save-as", "mover")
    assert f"revision 1 {SAID}" in run("profiles", "show", "mover")
    printed = run("optimize", "mover@1", "--bytes", "1MiB", "--current", "4KiB")
    assert printed.startswith("This profile's revision 1 says pipelined")
    assert f"Measure first: revision 1 {SAID}" in printed
    assert "Set " not in printed
