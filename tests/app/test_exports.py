"""Exports through HTTP: the targets, the choice of sizes, tables, options, limits, refusals."""

from __future__ import annotations

import json
import re
import socket
from contextlib import ExitStack
from functools import partial
from itertools import count as numbers
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

from analysis.size_choice import narrowed
from app.operations import export_work
from app.questions import settings as export_setting
from app.schemas.base import dump_json, parse_json
from app.verbs.audit.request import audit_scope
from contract.audit import AuditIn
from domain.errors import Infeasible, LimitReached
from domain.pipeline import pipeline_of_lines
from domain.problem import FragmentLimits
from domain.profile import ProfileRevision
from domain.regret import SizeRule
from exports.targets.registry import TARGETS, mooncake
from exports.targets.target import Takes
from tests.app.serving import MYRINET, serving, settings_for, wait_until
from tests.support.long_work import SLOTS, GatedRun, long_here_engine, note_questions

_NAMES = numbers(1)
AGGREGATE = {
    "total": {"name": "all", "overhead_us": 10.0, "ns_per_byte": 5.0},
    "bottleneck": {"name": "slowest", "overhead_us": 5.0, "ns_per_byte": 2.0},
}
SIZED = [target.name for target in TARGETS if target.takes in (Takes.ONE_SIZE, Takes.SIZE_STEPS)]
TABLED = [target.name for target in TARGETS if target.takes is Takes.TABLE]
HTTP = "HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
SMALL = {"min_message_bytes": 65_536, "max_message_bytes": 65_536}  # one message: quickly chosen


@pytest.fixture
def name(client: httpx.Client) -> str:
    """A profile of this test."""
    chosen = f"exports-{next(_NAMES)}"
    created = client.post("/profiles", json={"name": chosen, "pipeline": MYRINET})
    assert created.status_code == 201
    return chosen


def compiled(client: httpx.Client, name: str, **body: Any) -> str:
    """The digest of a compiled table."""
    made = client.post(f"/profiles/{name}/tables", json={"max_message_bytes": 70_000, **body})
    assert made.status_code in (200, 201), made.text
    digest: str = made.json()["digest"]
    return digest


def refused(response: httpx.Response, status: int, code: str, pointer: str | None = None) -> None:
    """Assert that this is such a problem."""
    reported = response.json()
    assert (response.status_code, reported["code"]) == (status, code), response.text
    if pointer is not None:
        assert [error["pointer"] for error in reported["errors"]] == [pointer]


def assigned(text: str, variable: str) -> int:
    """The value of a line NAME=VALUE."""
    found = re.search(rf"^{variable}=([0-9]+)$", text, flags=re.MULTILINE)
    assert found, text
    return int(found[1])


# --- the targets ----------------------------------------------------------------------------------


def test_the_list_says_what_the_registry_has(client: httpx.Client) -> None:
    """Every target by name, with its options; 304 to who has it."""
    answer = client.get("/exports")
    items = {item["name"]: item for item in answer.json()["items"]}
    assert list(items) == sorted(target.name for target in TARGETS)
    for target in TARGETS:
        reported = items[target.name]
        assert reported["takes"] == target.takes
        assert (reported["verified_by"] or "") == target.verified_by
        assert reported["is_audited"] == (target.read is not None)
        assert (reported["sizes"] is None) == (target.name not in SIZED)
        assert [option["name"] for option in reported["options"]] == [
            o.name for o in target.options
        ]
    again = client.get("/exports", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    refused(client.get("/exports?what=1"), 422, "invalid_input")


def test_costs_are_exported_at_once(client: httpx.Client, name: str) -> None:
    """As an XML document to be saved, with a strong tag; a revision can be pinned."""
    answer = client.get(f"/profiles/{name}/exports/simgrid")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/xml"
    assert answer.headers["content-disposition"] == (f'attachment; filename="{name}-1-simgrid.xml"')
    root = ElementTree.fromstring(answer.text)
    assert {prop.get("id") for prop in root} == {"smpi/os", "smpi/ois", "smpi/or"}
    tag = answer.headers["etag"]
    held = client.get(f"/profiles/{name}@1/exports/simgrid", headers={"If-None-Match": tag})
    assert (held.status_code, held.content, held.headers["etag"]) == (304, b"", tag)
    client.put(f"/profiles/{name}", json={"pipeline": {"stages": MYRINET["stages"][:2]}})
    revised = client.get(f"/profiles/{name}/exports/simgrid", headers={"If-None-Match": tag})
    assert revised.status_code == 200
    assert "revision 2" in revised.text
    assert client.get(f"/profiles/{name}@1/exports/simgrid").content == answer.content


def test_another_form_is_another_file(client: httpx.Client, name: str) -> None:
    """Its suffix and media type follow the option."""
    query = {"option": ["form:tent"], **SMALL}
    answer = client.get(f"/profiles/{name}/exports/mooncake", params=query)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-disposition"].endswith('-mooncake.json"')
    assert json.loads(answer.text)["transports"]["rdma"]["workers"]["block_size"] >= 4096


# --- choosing sizes -------------------------------------------------------------------------------


def test_a_size_is_chosen_for_the_range(client: httpx.Client, name: str) -> None:
    """The best for messages of one size is the best repeated size that the target takes."""
    query = {"min_message_bytes": 65536, "max_message_bytes": 65536}
    answer = client.get(f"/profiles/{name}/exports/mooncake", params=query)
    assert answer.status_code == 200, answer.text
    size = assigned(answer.text, "MC_SLICE_SIZE")
    asked = {"profile": name, "message_bytes": 65536, "strategy": "static"}
    us = {
        other: client.post("/optimize", json={**asked, "static_bytes": other}).json()["latency_us"]
        for other in (size, 4096, 4160, 8192, 16384, 65536)
    }
    assert size % 64 == 0
    assert us[size] == min(us.values())
    assert "messages of 65536 bytes" in answer.text


def test_least_worst_regret_is_another_objective(client: httpx.Client, name: str) -> None:
    """Its worst regret is no greater than that of the least mean, and the other way round."""
    figures = {}
    for objective in ("mean", "worst"):
        query = {"min_message_bytes": 8192, "max_message_bytes": 2**17, "objective": objective}
        text = client.get(f"/profiles/{name}/exports/mooncake", params=query).text
        found = re.search(r"mean ([0-9.]+) %, worst ([0-9.]+) %", text)
        assert found, text
        figures[objective] = (float(found[1]), float(found[2]))
        assert f"least {objective} regret" in text
    assert figures["mean"][0] <= figures["worst"][0]
    assert figures["worst"][1] <= figures["mean"][1]


def test_limits_narrow_the_sizes(client: httpx.Client, name: str) -> None:
    """Each of the four; what no size keeps is infeasible."""
    where = f"/profiles/{name}/exports/mooncake"

    def size(**limits: int) -> int:
        answer = client.get(where, params={**SMALL, **limits})
        assert answer.status_code == 200, answer.text
        return assigned(answer.text, "MC_SLICE_SIZE")

    free = size()
    assert size(max_fragment_bytes=free - 1) < free
    assert size(min_fragment_bytes=free * 2) >= free * 2
    assert size(alignment_bytes=1000) % 8000 == 0
    assert size(max_fragments=2) >= 32_768
    for limits in ({"max_fragment_bytes": 4000}, {"min_fragment_bytes": 2**32}):
        refused(client.get(where, params={**SMALL, **limits}), 422, "infeasible", "/constraints")


def test_the_active_table_gives_range_limits_and_figures(client: httpx.Client, name: str) -> None:
    """Its digest is in the head; a limit that is given puts its limits out of force."""
    limits = {"max_fragment_bytes": 6000, "alignment_bytes": 64}
    digest = compiled(client, name, min_message_bytes=60_000, constraints=limits)
    where = f"/profiles/{name}/exports/mooncake"
    text = client.get(where).text
    assert f"plan table {digest}" in text
    assert "log-uniform from 60000 to 70000 bytes" in text
    assert assigned(text, "MC_SLICE_SIZE") <= 6000
    freed = client.get(where, params={"min_fragment_bytes": 6016}).text
    assert assigned(freed, "MC_SLICE_SIZE") >= 6016


def test_short_messages_are_not_in_the_usual_mix(client: httpx.Client, name: str) -> None:
    """Of a table from 1 byte the part from 1 KiB on; an audit takes the same."""
    compiled(client, name, max_message_bytes=1100)
    text = client.get(f"/profiles/{name}/exports/mooncake").text
    assert "log-uniform from 1024 to 1100 bytes" in text
    scopes = [
        audit_scope(
            parse_json(AuditIn, dump_json({"profile": name, "setting": {"whole": True}, **given}))
        )
        for given in (
            {},
            {"max_message_bytes": 1100},
            {"max_message_bytes": 99},
            {"min_message_bytes": 2**25},
        )
    ]
    ranges = [(scope.min_message_bytes, scope.max_message_bytes) for scope in scopes]
    assert ranges == [(1024, 2**24), (1024, 1100), (1, 99), (2**25, 2**25)]


@pytest.mark.parametrize("target", SIZED)
def test_every_target_with_sizes_is_read_back(client: httpx.Client, name: str, target: str) -> None:
    """Chosen by a real choice, for a range that every target has sizes for."""
    query: dict[str, str | int | list[str]] = {
        "min_message_bytes": 2**19,
        "max_message_bytes": 2**19,
    }
    if target in ("openmpi-rules", "openmpi-json"):  # they force an algorithm: it is to be named
        query["option"] = ["collective:reduce", "algorithm:in-order_binary"]
    answer = client.get(f"/profiles/{name}/exports/{target}", params=query)
    assert answer.status_code == 200, answer.text
    read = next(one.read for one in TARGETS if one.name == target)
    assert read is not None
    assert read(answer.text).size_at(2**19) >= 1


def test_what_was_made_is_kept(
    client: httpx.Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked again, whatever the order of its options, no worker is asked."""
    where = f"/profiles/{name}/exports/mooncake"
    query = {**SMALL, "option": ["form:rdma", "rest:own"]}
    first = client.get(where, params=query)
    assert first.status_code == 200
    monkeypatch.setattr(export_work, "export", None)
    again = client.get(where, params={**query, "option": ["rest:own", "form:rdma"]})
    assert again.content == first.content
    held = client.get(where, params=query, headers={"If-None-Match": first.headers["etag"]})
    assert held.status_code == 304


def test_the_oldest_is_let_go(
    client: httpx.Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one place the last export has it; a long one is never kept."""
    asked = note_questions(monkeypatch, export_work, "export")
    monkeypatch.setattr("app.operations.recent.MAX_RECENT", 1)
    where = f"/profiles/{name}/exports/mooncake"

    def made(rest: str) -> int:
        before = len(asked)
        answer = client.get(where, params={**SMALL, "option": f"rest:{rest}"})
        assert answer.status_code == 200
        return len(asked) - before

    assert [made(rest) for rest in ("own", "own", "absorbed", "own", "own")] == [1, 0, 1, 1, 0]
    monkeypatch.setattr("app.verbs.export.operation.MAX_RECENT_BYTES", 10)
    assert [made(rest) for rest in ("absorbed", "absorbed", "own")] == [1, 1, 0]


# --- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TABLED)
def test_a_target_of_tables_needs_one(client: httpx.Client, name: str, target: str) -> None:
    """The active one, or one that is named; of this revision."""
    where = f"/profiles/{name}/exports/{target}"
    refused(client.get(where), 409, "conflict")
    active = compiled(client, name, min_message_bytes=60_000)
    answer = client.get(where)
    assert answer.status_code == 200, answer.text
    assert active in answer.text
    other = compiled(client, name, min_message_bytes=50_000)
    assert other != active
    assert other in client.get(where, params={"table": other}).text
    assert active in client.get(where).text
    client.put(f"/profiles/{name}", json={"pipeline": {"stages": MYRINET["stages"][:2]}})
    refused(client.get(where), 409, "conflict")
    refused(client.get(where, params={"table": active}), 409, "conflict")
    assert client.get(f"/profiles/{name}@1/exports/{target}").content == answer.content


def test_a_table_that_is_not_stored_is_not_found(client: httpx.Client, name: str) -> None:
    """And one that is no digest is refused as a parameter."""
    where = f"/profiles/{name}/exports/mooncake"
    refused(client.get(where, params={"table": "0" * 64}), 404, "not_found")
    refused(client.get(where, params={"table": "0" * 63}), 422, "invalid_input", "/table")


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({"colour": "red"}, "invalid_input", "/colour"),
        ({"min_message_bytes": "0"}, "invalid_input", "/min_message_bytes"),
        ({"max_message_bytes": "1e6"}, "invalid_input", "/max_message_bytes"),
        (
            {"min_message_bytes": "2", "max_message_bytes": "1"},
            "inconsistent_input",
            "/max_message_bytes",
        ),
        ({"min_message_bytes": str(2**25)}, "inconsistent_input", "/min_message_bytes"),
        ({"objective": "median"}, "invalid_input", "/objective"),
        ({"max_fragments": "-1"}, "invalid_input", "/max_fragments"),
        ({"option": "form"}, "invalid_input", "/option/0"),
        ({"option": "form:sun"}, "inconsistent_input", "/option"),
        ({"option": "colour:red"}, "inconsistent_input", "/option"),
        ({"option": ["form:rdma", "form:tcp"]}, "inconsistent_input", "/option"),
        ({"option": "rest:" + "x" * 200}, "invalid_input", "/option/0"),
        ({"option": ["form:rdma"] * 33}, "invalid_input", "/option"),
    ],
)
def test_a_bad_parameter_is_named(
    client: httpx.Client, name: str, query: dict[str, Any], code: str, pointer: str
) -> None:
    """By its pointer, before anything is solved."""
    refused(client.get(f"/profiles/{name}/exports/mooncake", params=query), 422, code, pointer)


def test_what_is_not_there_is_not_found(client: httpx.Client, name: str) -> None:
    """Neither the profile, nor the revision, nor the target."""
    for path in ("no-such/exports/simgrid", f"{name}@7/exports/simgrid", f"{name}/exports/no"):
        refused(client.get(f"/profiles/{path}"), 404, "not_found")


def test_an_aggregate_has_no_stages_to_export(client: httpx.Client) -> None:
    """It is said so where stages are needed; repeated sizes and tables are exported."""
    name = f"exports-{next(_NAMES)}"
    assert client.post("/profiles", json={"name": name, "aggregate": AGGREGATE}).status_code == 201
    refused(client.get(f"/profiles/{name}/exports/simgrid"), 422, "strategy_declined")
    refused(client.get(f"/profiles/{name}/exports/nccl"), 409, "conflict")
    sized = client.get(f"/profiles/{name}/exports/mooncake", params=SMALL)
    assert sized.status_code == 200, sized.text
    assert sized.text.startswith("# NOT KNOWN TO BE BETTER than the library's default: premise: ")


# --- long ones ------------------------------------------------------------------------------------


def test_an_export_ends_with_its_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no more of them wait than may."""
    held = GatedRun()
    monkeypatch.setattr(export_work.ExportWork, "run", held.as_method())
    settings = settings_for(f"sqlite:///{tmp_path / 'sluice.db'}")
    with serving(settings, open_engine=partial(long_here_engine, max_waiting=1)) as own:
        own.client.post("/profiles", json={"name": "endless", "pipeline": MYRINET})
        where = "/profiles/endless/exports/mooncake"
        with ExitStack() as askers:
            for number in (1, 2, 3):
                asker = askers.enter_context(socket.create_connection(("127.0.0.1", own.port)))
                asker.sendall(f"GET {where}?min_message_bytes={number} {HTTP}".encode())
                wait_until(lambda: held.running == min(number, SLOTS))  # noqa: B023  (called here)
            wait_until(lambda: own.service.counts.pending_tasks == 3)
            refused(own.client.get(where, params={"min_message_bytes": 4}), 503, "overloaded")
        wait_until(lambda: held.running == 0 and own.service.counts.pending_tasks == 0)


# --- the flow's own rules -------------------------------------------------------------------------


def test_the_regret_is_told_at_the_powers_of_two_of_the_range(
    client: httpx.Client, name: str
) -> None:
    """At both its ends, which no size of the workload need be."""
    query = {"min_message_bytes": 4096, "max_message_bytes": 16384}
    text = client.get(f"/profiles/{name}/exports/mooncake", params=query).text
    reported = re.findall(r"^# +([0-9]+) +([0-9]+) +([0-9.]+) %$", text, flags=re.MULTILINE)
    assert [int(row[0]) for row in reported] == [4096, 8192, 16384]
    size = assigned(text, "MC_SLICE_SIZE")
    for message_bytes, repeated, regret in reported:
        asked = {"profile": name, "message_bytes": int(message_bytes)}
        best = client.post("/optimize", json=asked).json()["latency_us"]
        asked |= {"strategy": "static", "static_bytes": min(size, int(message_bytes))}
        found = client.post("/optimize", json=asked).json()["latency_us"]
        assert int(repeated) == min(size, int(message_bytes))
        assert float(regret) == pytest.approx(100 * (found / best - 1), abs=0.02)


@pytest.mark.parametrize(
    ("rule", "limits", "found"),
    [
        (SizeRule(), FragmentLimits(), SizeRule()),
        (
            SizeRule(4096, 2**20, 64),
            FragmentLimits(5000, 100_001, 48),
            SizeRule(5184, 99_840, 192),
        ),
        (SizeRule(1, 2**20), FragmentLimits(max_fragments=3), SizeRule(334, 2**20)),
        (
            SizeRule(64, 2**20, 1, is_power_of_two=True),
            FragmentLimits(100, 5000),
            SizeRule(100, 5000, 1, is_power_of_two=True),
        ),
    ],
)
def test_limits_and_rules_are_both_kept(
    rule: SizeRule, limits: FragmentLimits, found: SizeRule
) -> None:
    """For messages of up to 1000 bytes."""
    assert narrowed(rule, limits, 1000) == found


@pytest.mark.parametrize(
    ("rule", "limits"),
    [
        (mooncake.SIZES, FragmentLimits(max_fragment_bytes=4095)),
        (SizeRule(1, 1000, 64), FragmentLimits(961)),
        (SizeRule(1, 2**20, 1, is_power_of_two=True), FragmentLimits(33, 63)),
        (SizeRule(1, 2**20, 1, is_power_of_two=True), FragmentLimits(alignment_bytes=3)),
        (SizeRule(1, 900), FragmentLimits(max_fragments=1)),
    ],
)
def test_rules_that_admit_nothing_are_infeasible(rule: SizeRule, limits: FragmentLimits) -> None:
    """Rather than an export that breaks one of them."""
    with pytest.raises(Infeasible, match="no size"):
        narrowed(rule, limits, 1000)


def test_an_export_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is sent from one process to another."""
    monkeypatch.setattr(export_setting, "MAX_EXPORT_BYTES", 100)
    question = export_setting.export_question(
        pipeline_of_lines([("a", 1.0, 1.0)]),
        ProfileRevision("p", 1),
        export_setting.ExportScope(target="simgrid"),
        None,
        fragment_cap=1000,
    )
    with pytest.raises(LimitReached, match="longer than 100 bytes"):
        export_setting.export(question)
