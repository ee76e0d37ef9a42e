"""A stored profile that a trace with begins contradicts is told so, and its former model sets no
size until it is chosen again.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine, event

from app.cli import main
from app.questions.profiles import list_revisions
from app.questions.source import Stored
from domain.profile import Origin, Provenance
from domain.structure import Evidence, KnownOverlap, Structure, StructureKind
from domain.verification import ModelVerdict
from models.session import Store
from tests.support.records import GIVEN, a_fit, a_pipeline, a_verification

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
    body = {"profile": f"{name}@1", "fragment_bytes": [4 * KIB, 4 * KIB]}
    assert codes(client.post("/simulate", json=body).json()) == ["model_contradicted"]
    assert codes(client.post("/simulate", json={**body, "profile": name}).json()) == []
    first, second = client.get(f"/profiles/{name}/revisions").json()["revisions"]
    assert (codes(first), codes(second)) == (["model_contradicted"], [])

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


def test_a_compiled_table_says_it_whenever_it_is_read(client: httpx.Client) -> None:
    client.post("/profiles", json={"name": "tabled", "pipeline": TYPED})
    asked = {"min_message_bytes": MIB, "max_message_bytes": MIB}
    made = client.post("/profiles/tabled/tables", json=asked)
    assert made.status_code == 201, made.text
    own = f"/tables/{made.json()['digest']}"
    before = client.get(own)
    assert codes(client.get("/profiles/tabled/tables").json()["items"][0]) == []
    fitted(client, "tabled", SERIAL)
    seen = {"if-none-match": before.headers["etag"]}
    for path in (own, "/profiles/tabled@1/table"):
        after = client.get(path, headers=seen)
        assert after.status_code == 200, after.text
        assert codes(after.json())[0] == "model_contradicted"
        again = client.get(path, headers={"if-none-match": after.headers["etag"]})
        assert again.status_code == 304
    (item,) = client.get("/profiles/tabled@1/tables").json()["items"]
    assert codes(item) == ["model_contradicted"]
    file = client.get(own, params={"format": "slt"})
    assert file.headers["cache-control"].endswith("immutable")  # its bytes are as they were
    chosen = {"if-match": after.headers["etag"]}
    body = {"digest": made.json()["digest"]}
    kept = client.post("/profiles/tabled@1/table", json=body, headers=chosen)
    assert kept.status_code == 200, kept.text
    assert codes(kept.json())[0] == "model_contradicted"
    keyed = {"idempotency-key": "tabled-again"}
    stored, again = (
        client.post("/profiles/tabled@1/table", json=body, headers=keyed) for _ in range(2)
    )
    assert stored.content == again.content == kept.content
    compiled = client.post("/profiles/tabled@1/tables", json=asked)
    assert codes(compiled.json())[0] == "model_contradicted"


def test_a_verification_of_the_former_revision_says_it(client: httpx.Client) -> None:
    client.post("/profiles", json={"name": "verified-late", "pipeline": TYPED})
    body = {"transfers": transfers_by(client, "verified-late")}
    before = client.post("/profiles/verified-late/verification", json=body)
    assert codes(before.json()) == ["model_holds"]
    fitted(client, "verified-late", SERIAL)
    after = client.post("/profiles/verified-late@1/verification", json=body)
    assert after.status_code == 200, after.text
    assert after.json()["verification"]["verdict"] == "holds"
    assert codes(after.json()) == ["model_contradicted"]
    first, _ = client.get("/profiles/verified-late/revisions").json()["revisions"]
    assert first["warnings"] == after.json()["warnings"]


def test_what_is_said_of_a_list_is_read_at_once(sqlite_store: Store) -> None:
    """The same as of each by itself, in as many statements as of a few."""
    bare, seen = a_fit(), Evidence(50, 800, 0.03, 0.4, 0.0, 0.01)
    serial = Structure(StructureKind.SERIAL, ("copy", "send"), seen)
    with sqlite_store.unit_of_work() as unit:
        digest = unit.traces.add(b"a trace", kind=bare.kind)
        fits = (bare, replace(bare, overlap=KnownOverlap(serial)))
        of = [unit.fits.add((digest,), fit) for fit in fits]
        unit.profiles.create("listed", a_pipeline(), GIVEN)
        for at in (0, 0, 1, 0):
            fitted_by = Provenance(Origin.FIT, "fitted", of[at])
            unit.profiles.add_revision("listed", a_pipeline(), fitted_by)
        unit.profiles.verify("listed", 2, a_verification(ModelVerdict.DOES_NOT_HOLD))
        unit.profiles.set_current("listed", 3)
    _, revisions = list_revisions(sqlite_store, "listed")
    stored = Stored.of_store(sqlite_store)
    known = stored.with_against(revisions)
    assert known == tuple((one, stored.against(one)) for one in revisions)
    assert [of and of.notice().code for _, of in known] == [
        "model_contradicted",
        "model_does_not_hold",
        *(None, None, None),
    ]
    few, many = (statements_of(partial(stored.with_against, revisions[:some])) for some in (2, 5))
    assert few == many


def statements_of(asked: Callable[[], object]) -> int:
    found: list[object] = []

    def record(*seen: object) -> None:
        found.append(seen[2])

    event.listen(Engine, "before_cursor_execute", record)
    try:
        asked()
    finally:
        event.remove(Engine, "before_cursor_execute", record)
    return len(found)


def transfers_by(client: httpx.Client, name: str) -> str:
    """Own transfers of 1 MiB, six runs of each size, that take what the model says."""
    rows = ["message_bytes,fragment_bytes,latency_us"]
    for size in (16 * KIB, 64 * KIB, 256 * KIB):
        cut = {"profile": f"{name}@1", "fragment_bytes": [size] * (MIB // size)}
        took_us = client.post("/simulate", json=cut).json()["latency_us"]
        rows += [f"{MIB},{size},{took_us * (1.0 + turn / 1e4)}" for turn in range(6)]
    return "\n".join(rows) + "\n"


def test_later_fits_of_durations_alone_hide_no_contradiction(client: httpx.Client) -> None:
    client.post("/profiles", json={"name": "hidden", "pipeline": TYPED})
    fitted(client, "hidden", SERIAL)
    for _ in range(10):
        fitted(client, "hidden", durations(CHAIN))
    assert codes(set_of(client, "hidden@1"))[0] == "model_contradicted"
    assert codes(set_of(client, "hidden@3"))[:1] != ["model_contradicted"]  # later than the trace
    fitted(client, "hidden", CHAIN)  # the newest trace that tells
    assert "model_contradicted" not in codes(set_of(client, "hidden@1"))


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
    audit = run(
        "audit", "mover@1", "--setting", "4KiB", "--max-message", "1MiB", "--time-limit", "1"
    )
    assert f"What to change: - Measure first: revision 1 {SAID}" in audit
    export = run("export", "mover@1", "--target", "ucx").replace(" # ", " ")
    assert f"revision 1 {SAID}" in export
    for of_model in ("premise", "draws of the"):
        assert of_model not in export
    cut = ("--repeat", "4KiB", "--bytes", "16KiB")
    assert run("simulate", "mover@1", *cut).startswith("This profile's revision 1 says pipelined")
    assert run("profiles", "show", "mover@1").startswith("This profile's revision 1 says")
    assert "This profile's" not in run("simulate", "mover", *cut)
    run("profiles", "use", "mover", "1")
    run("table", "mover", "--min-message", "1MiB", "--max-message", "1MiB")
    run("profiles", "use", "mover", "2")
    (table,) = json.loads(run("profiles", "tables", "mover@1", "--json"))["items"]
    activate = ("profiles", "activate", "mover@1", table["digest"])
    assert run(*activate).startswith("This profile's revision 1 says pipelined")
    assert codes(json.loads(run(*activate, "--json")))[0] == "model_contradicted"
