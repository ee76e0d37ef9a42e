"""What every door that prices a cut says of stages of which nobody has said that they overlap."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main
from app.registry import command_words
from app.schemas.base import read_output
from app.verbs.audit.show import title_of_changes
from contract.audit import AuditOut
from tests.support.measured import trace

KIB = 1 << 10
SIZES = tuple(2**power for power in range(10, 17))
BARE = trace(SIZES, 6, (lambda size: 20.0 + size / 1000.0, lambda size: 10.0 + size / 500.0))
DOORS: dict[str, dict[str, Any]] = {
    "simulate": {"fragment_bytes": [4 * KIB, 4 * KIB]},
    "thresholds": {"message_bytes": [8 * KIB], "sizes": [KIB, 2 * KIB]},
    "compare": {"message_bytes": [8 * KIB], "strategies": ["repeat"]},
    "hide": {"message_bytes": 8 * KIB, "calculation_us": 50.0},
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "simulate": ("--repeat", "4KiB", "--bytes", "8KiB"),
    "deliver": ("--bytes", "8KiB", "--rules", "static=1024,eager"),
    "thresholds": ("--bytes", "8KiB", "--sizes", "1KiB,2KiB"),
    "compare": ("--bytes", "8KiB", "--strategies", "repeat"),
    "hide": ("--bytes", "8KiB", "--calculation", "50"),
}
ADVISED = {
    "thresholds": "If these stages overlap: ",
    "compare": "takes the least of these strategies, whether stages overlap or not",
}
SAID = "stages that overlap, which nobody has said (stages_overlap)"


def sent(client: httpx.Client, door: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(f"/{door}", json={**body, **DOORS[door]})
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


def codes(answer: dict[str, Any]) -> list[str]:
    return [one["code"] for one in answer.get("warnings", ())]


@pytest.mark.parametrize("door", DOORS)
def test_a_service_says_it_of_measurements_and_of_a_profile(
    door: str, client: httpx.Client
) -> None:
    measured = {"measurements": {"content": BARE}}
    found = sent(client, door, measured)
    (said,) = (one for one in found["warnings"] if one["code"] == "overlap_not_known")
    assert ADVISED.get(door, SAID) in said["detail"]
    for word in (True, False):
        known = sent(client, door, {**measured, "fit_options": {"stages_overlap": word}})
        assert "overlap_not_known" not in codes(known)
        if word is False or door == "thresholds":
            break
    client.post("/fit", content=BARE, params={"save_as": f"bare-{door}"})
    assert "overlap_not_known" in codes(sent(client, door, {"profile": f"bare-{door}"}))
    assert "overlap_not_known" not in codes(sent(client, door, {"profile": "myrinet-gam"}))


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    file = tmp_path / "bare.csv"
    file.write_text(BARE)

    def ran(door: str, *arguments: str, source: str = str(file)) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        code = main((*command_words(door).split(), source, *COMMANDS[door], *arguments))
        out, err = capsys.readouterr()
        return code, out, err

    return ran


@pytest.mark.parametrize("door", COMMANDS)
def test_a_command_says_it_and_is_told(door: str, run: Callable[..., tuple[int, str, str]]) -> None:
    code, printed, error = run(door)
    assert code == 0, error
    assert ADVISED.get(door, SAID) in " ".join(printed.split())
    code, printed, error = run(door, "--stages-overlap", "yes", "--json")
    assert code == 0, error
    assert "overlap_not_known" not in codes(json.loads(printed))
    assert len(json.loads(printed).get("pipeline", {"stages": "12"})["stages"]) == 2


@pytest.mark.parametrize("door", ["simulate", "compare", "hide"])
def test_stages_that_do_not_overlap_are_one(
    door: str, run: Callable[..., tuple[int, str, str]]
) -> None:
    code, printed, error = run(door, "--stages-overlap", "no", "--json")
    assert code == 0, error
    (stage,) = json.loads(printed)["pipeline"]["stages"]
    assert stage["name"] == "s0 + s1"


@pytest.mark.parametrize("door", COMMANDS)
def test_of_a_profile_nothing_is_said_here(
    door: str, run: Callable[..., tuple[int, str, str]]
) -> None:
    code, _, error = run(door, "--stages-overlap", "yes", source="myrinet-gam")
    assert code == 2
    assert "fit the file again and say it there" in " ".join(error.split())


LONG = 64 * KIB


@pytest.mark.parametrize("door", ADVISED)
def test_what_is_advised_is_told_both_ways(door: str, client: httpx.Client) -> None:
    """As the sum of the stages prices it, which who says that they do not overlap is answered."""
    asked = {**DOORS[door], "measurements": {"content": BARE}, "message_bytes": [LONG, KIB]}
    asked |= {"rule": "static", "sizes": [16 * KIB, 32 * KIB]} if door == "thresholds" else {}
    found = client.post(f"/{door}", json=asked).json()
    (said,) = (one["detail"] for one in found["warnings"] if one["code"] == "overlap_not_known")
    assert said.startswith("If these stages overlap: ")
    assert " of 64 KiB, " in said
    assert "sluice sweep --bytes 64KiB -- PROGRAM" in said
    if door == "compare":
        row = found["rows"][0]
        size = row["largest_fragment_bytes"]
        took_us, serial_us = row["latency_us"], row["serial_us"]
    else:
        (message, _) = found["messages"]
        took_us, serial_us = message["best_us"], message["serial_us"]
        (size,) = message["best_bytes"]
    sizes = [size] * (LONG // size) + [LONG % size] * (LONG % size > 0)
    sums = {"fit_options": {"stages_overlap": False}, "fragment_bytes": sizes}
    alone = client.post("/simulate", json={"measurements": {"content": BARE}, **sums}).json()
    assert serial_us == pytest.approx(alone["latency_us"], rel=0.02)
    whole = {**sums, "fragment_bytes": [LONG]}
    one = client.post("/simulate", json={"measurements": {"content": BARE}, **whole}).json()
    times = (took_us, serial_us, one["latency_us"])
    told = re.fullmatch(
        r"If these stages overlap: .*, (.*) µs\. One after another: (.*) µs, and one piece "
        r"(.*) µs\. Say which with the file \(stages_overlap, --stages-overlap yes\|no\), trace "
        r"begins, or `sluice sweep --bytes 64KiB -- PROGRAM … \{bytes\}`",
        said,
    )
    assert told is not None, said
    assert [*map(float, told.groups())] == pytest.approx(times, rel=0.02)
    for known in (True, None):
        body = {**asked, "fit_options": {"stages_overlap": known}} if known else asked
        if known is None:
            body = {**body, "measurements": None, "profile": "myrinet-gam"}
        other = client.post(f"/{door}", json=body)
        assert other.is_success, other.text
        parts = other.json()["rows" if door == "compare" else "messages"]
        assert {one["serial_us"] for one in parts} == {None}
        assert "overlap_not_known" not in codes(other.json())


@pytest.mark.parametrize("door", ADVISED)
def test_what_is_best_both_ways_has_no_condition(door: str, client: httpx.Client) -> None:
    """One piece, of a message too short to be cut."""
    sizes = {} if door == "compare" else {"sizes": [KIB, 2 * KIB]}
    asked = {**DOORS[door], "message_bytes": [2 * KIB], **sizes}
    asked_first = ", if no stage handles several fragments at once (several_at_once)"
    for several, condition in ((None, asked_first), (False, "")):
        options = {"fit_options": {"several_at_once": several}} if several is not None else {}
        body = {**asked, **options, "measurements": {"content": DEAR}}
        found = client.post(f"/{door}", json=body).json()
        (said,) = (one["detail"] for one in found["warnings"] if one["code"] == "overlap_not_known")
        least = "the least of these strategies" if door == "compare" else "no more than one piece"
        assert f" takes {least}, whether stages overlap or not{condition}: " in said
        assert "If these" not in said


def test_thresholds_are_held_against_one_piece_alone(client: httpx.Client) -> None:
    """Where long pieces cost more, another size may take less one after another: none is said to
    take the least.
    """
    kinked = trace(
        tuple(2**power for power in range(10, 21)),
        6,
        (lambda size: 1.8 + 0.0004 * size + 0.002 * max(0, size - 64 * KIB),) * 6,
    )
    asked = {"rule": "static", "message_bytes": [1024 * KIB], "measurements": {"content": kinked}}
    taken = dict[int, tuple[float, str]]()
    for sizes in ([16 * KIB, 64 * KIB], [64 * KIB]):
        found = client.post("/thresholds", json={**asked, "sizes": sizes}).json()
        (message,) = found["messages"]
        (said,) = (one["detail"] for one in found["warnings"] if one["code"] == "overlap_not_known")
        taken[message["best_bytes"][0]] = message["serial_us"], said
    assert taken[64 * KIB][0] < 0.9 * taken[16 * KIB][0]
    assert taken[16 * KIB][1].startswith("pulse size 16 KiB takes no more than one piece, whether")


def test_pages_tell_both_times(client: httpx.Client) -> None:
    client.post("/fit", content=BARE, params={"save_as": "paged"})
    asked = {"profile": "paged", "message": "64 KiB", "sizes": "4KiB,16KiB"}
    page = client.get("/ui/delivery", params=asked)
    text = " ".join(unescape(page.text).split())
    assert page.status_code == 200, text
    assert "If these stages overlap: threshold " in text
    assert "<dt>One after another</dt>" in text
    body = {"profile": "paged", "message_bytes": [LONG], "strategies": ["repeat", "single"]}
    job = client.post("/compare", json=body, headers={"prefer": "respond-async"})
    assert job.status_code == 202, job.text
    place = f"/ui/jobs/{job.json()['id']}"
    deadline = time.monotonic() + 60.0
    while "One after another</th>" not in (shown := unescape(client.get(place).text)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "If these stages overlap: repeat, " in shown


DEAR = trace(
    tuple(2**power for power in range(10, 18)),
    6,
    (lambda size: 90.0 + size / 1000.0, lambda size: 60.0 + size / 500.0),
)


@pytest.mark.parametrize("messages", [(32 * KIB, 32 * KIB), (16 * KIB, 64 * KIB)])
def test_a_head_names_no_premise_of_what_is_faster_both_ways(
    messages: tuple[int, int], client: httpx.Client
) -> None:
    """Larger pieces than the library's, where their overheads are saved whether stages overlap."""
    ends = {"min_message_bytes": messages[0], "max_message_bytes": messages[1]}
    asked = "premise: one fragment at a time in each stage, which nobody has said (several_at_once)"
    for name, said in (("dear-asked", {}), ("dear-said", {"several_at_once": "false"})):
        stored = client.post("/fit", content=DEAR, params={"save_as": name, **said})
        assert stored.is_success, stored.text
        export = client.get(f"/profiles/{name}/exports/ucx-shm", params=ends)
        assert export.is_success, export.text
        head = " ".join(export.text.replace("\n#", " ").split())
        assert "library's default: 8256 bytes" in head
        assert "If these stages overlap" not in head
        assert (asked in head) is not bool(said)
        assert ("NOT KNOWN TO BE BETTER" in head) is not bool(said)


def test_a_head_names_no_premise_where_the_answer_is_not_to_cut(client: httpx.Client) -> None:
    client.post("/fit", content=DEAR, params={"save_as": "dear-whole"})
    body = {"message_bytes": 64 * KIB, "profile": "dear-whole"}
    sentence = client.post("/optimize", json=body).json()["uncertainty"]["sentence"]
    assert sentence.startswith("Do not cut")
    ends = {"min_message_bytes": 64 * KIB, "max_message_bytes": 64 * KIB}
    export = client.get("/profiles/dear-whole/exports/ucx", params=ends)
    assert "size for every message: 65536 bytes" in export.text
    assert "If these stages overlap" not in export.text
    assert "stages_overlap" not in export.text


def test_an_audit_says_what_is_faster_both_ways(client: httpx.Client) -> None:
    """Of a small setting: for every message larger pieces save overheads either way; what else is
    to change is by the model alone.
    """
    setting = {"static_bytes": KIB}
    asked = {"setting": setting, "min_message_bytes": 16 * KIB, "max_message_bytes": 64 * KIB}
    found = dict[bool, dict[str, Any]]()
    for is_said in (False, True):
        options = {"fit_options": {"several_at_once": False}} if is_said else {}
        body = {**asked, **options, "measurements": {"content": DEAR}, "time_limit_s": 5}
        audit = client.post("/audit", json=body)
        assert audit.is_success, audit.text
        found[is_said] = audit.json()["uncertainty"]
        title = title_of_changes(read_output(AuditOut, audit.content))
        assert title == "What would change by the model alone"
    told = [(one["decision"], one["reason"]) for one in found.values()]
    assert told == [("measure_first", "one_at_a_time"), ("set_it", "either_way")]
    unsaid, said = (one["sentence"] for one in found.values())
    assert said.startswith("Set ")
    assert ", whether stages overlap or not." in said
    assert unsaid.startswith("Measure first: ")
    assert "if no stage handles several fragments at once (several_at_once)." in unsaid


def test_the_head_of_an_export_says_which_stages_it_holds_for(client: httpx.Client) -> None:
    """Of one message it writes what an answer about that message sets."""
    one = {"min_message_bytes": 64 * KIB, "max_message_bytes": 64 * KIB}
    for name, said in (("head-bare", {}), ("head-said", {"stages_overlap": "true"})):
        stored = client.post("/fit", content=BARE, params={"save_as": name, **said})
        assert stored.is_success, stored.text
        for ends in ({}, one):
            export = client.get(f"/profiles/{name}/exports/ucx", params=ends)
            assert export.is_success, export.text
            assert export.text.startswith("# If these stages overlap: ") is not bool(said)
            assert ("(stages_overlap, " in export.text) is not bool(said)
        asked = client.post("/optimize", json={"message_bytes": 64 * KIB, "profile": name})
        size = asked.json()["set_this"]["size_bytes"]
        if not said:  # of one piece until it was measured
            assert size == 64 * KIB
            assert "size for every message: 65536 bytes" in export.text


def test_an_audit_sets_nothing_that_gains_less_than_the_margin_one_way(
    client: httpx.Client,
) -> None:
    """Where most messages are cut alike, and the others gain more if stages overlap."""
    dear = trace(
        tuple(2**power for power in range(9, 20)),
        4,
        (lambda size: 60.0 + 0.0004 * size, *(lambda size: 0.2 + 0.0062 * size,) * 3),
    )
    sent_bytes = [{"message_bytes": 512 * KIB}, {"message_bytes": KIB, "weight": 12}]
    body = {"setting": {"static_bytes": 8 * KIB}, "workload": sent_bytes, "objective": "mean"}
    body |= {"measurements": {"content": dear}, "fit_options": {"several_at_once": False}}
    audit = client.post("/audit", json={**body, "time_limit_s": 5})
    assert audit.is_success, audit.text
    found = audit.json()["uncertainty"]
    assert (found["decision"], found["reason"]) == ("measure_first", "if_overlapping")
    assert found["probability"] >= 0.9


def test_a_message_without_a_price_has_a_dash_in_each_column(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    """256 MiB by 16 bytes are too many pulses; 8 KiB are not, so there is a column `serial`."""
    options = ("--rule", "static", "--sizes", "16", "--bytes", "8KiB,256MiB")
    code, printed, error = run("thresholds", *options)
    assert code == 0, error
    (cells,) = (line.split() for line in printed.splitlines() if line.startswith("256 MiB"))
    assert [cells[2], cells[3], cells[-1]] == ["–", "–", "–"]
