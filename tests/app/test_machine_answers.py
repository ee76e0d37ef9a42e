"""What answers of machines have beside those of plain stages, through every door that has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main
from app.schemas.answers import read_answer
from contract.optimize import MachineOptimizeOut
from tests.app.serving import MYRINET, Live, wait_for_end

EXAMPLES = Path(__file__).parents[2] / "examples"
MIB, GB = 2**20, 10**9
MACHINE_ALONE = ("in_flight", "period_us", "limit")
S3: dict[str, Any] = json.loads((EXAMPLES / "s3-connections.json").read_text())
WEIGHTS: dict[str, Any] = json.loads((EXAMPLES / "weight-update.json").read_text())
CURRENT = {"uncertainty": {"current": {"repeat": 8 * MIB}}}


def repeated(question: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The question for the best repeated size."""
    return {**question, "strategy": "repeat", **more}


def test_a_machine_says_what_is_enough_and_what_sets_the_pace(client: httpx.Client) -> None:
    """It opens with size and count."""
    answer = client.post("/optimize", json=repeated(S3, **CURRENT)).json()
    found = answer["in_flight"]
    assert found["stages"] == [{"stage": 1, "lanes": {"given": 10, "used": 10, "enough": 10}}]
    assert found["windows"] == [
        {
            "window": 0,
            "places": {"given": 12, "used": 12, "enough": 12},
            "bytes": {
                "given": 256 * MIB,
                "used": 12 * found["size_bytes"],
                "enough": 256 * MIB,
            },
        }
    ]
    assert found["processors"] == []
    assert found["size_bytes"] == answer["fragment_bytes"][0]
    limit = answer["limit"]
    assert (limit["kind"], limit["first_stage"], limit["last_stage"]) == ("lanes", 1, 1)
    assert limit["full_rate"]["places"] == 18
    assert answer["period_us"] == limit["round_trip_us"] / limit["places"]
    assert limit["sentence"].startswith("The 10 lanes of connection set the pace: ")
    sentence = answer["set_this"]["sentence"]
    assert " on 10 lanes of connection: " in sentence
    assert sentence.endswith("% faster than your 8 MiB.")
    codes = {one["code"] for one in answer["warnings"]}
    assert "lanes_idle" in codes
    assert "rest_may_overtake" not in codes  # the smaller rest enters late, and leaves last


def test_plain_stages_have_none_of_it(client: httpx.Client) -> None:
    """Nor do words that say nothing make them a machine."""
    plain = {"message_bytes": 4096, "pipeline": MYRINET}
    stages = [{**stage, "lanes": 1, "delay_us": 0.0} for stage in MYRINET["stages"]]
    same = {"message_bytes": 4096, "pipeline": {"stages": stages, "windows": []}}
    answers = [client.post("/optimize", json=body).json() for body in (plain, same)]
    assert not [name for answer in answers for name in MACHINE_ALONE if name in answer]
    assert answers[0]["id"] == answers[1]["id"]


def test_a_stored_answer_and_a_job_have_the_same_fields(client: httpx.Client) -> None:
    """The stored one to the byte."""
    question = repeated(WEIGHTS)
    first = client.post("/optimize", json=question)
    stored = client.get(f"/optimizations/{first.json()['id']}")
    assert stored.content == first.content
    read = read_answer(stored.content)
    assert isinstance(read, MachineOptimizeOut)
    assert read.in_flight.windows[0].places.enough == 2
    assert read.set_this is not None
    assert " 2 buffers of 3 GB in your 6 GB" in read.set_this.sentence
    begun = client.post("/optimize", json=question, headers={"prefer": "respond-async"})
    job = wait_for_end(client, begun.headers["location"])
    by_job = client.get(f"/optimizations/{job['answer_id']}").json()
    assert {name: by_job[name] for name in MACHINE_ALONE} == {
        name: first.json()[name] for name in MACHINE_ALONE
    }


def test_a_page_has_the_same_facts_and_the_table(live: Live) -> None:
    """The table comes as a part."""
    answer = live.client.post("/optimize", json=repeated(S3, **CURRENT)).json()
    address = f"/ui/answers/{answer['id']}"
    text = live.client.get(address).text
    assert "on 10 lanes of connection" in text.split('class="headline"')[1][:200]
    assert answer["limit"]["sentence"] in text
    assert "connection: 10 given, 10 in use at once, 10 are enough" in text
    table = live.client.get(f"{address}/parts/lanes").text
    assert "Size and time by lanes of connection" in table
    assert table.count("<tr") == 6  # the heading, and 1, 2, 4, 8, 10
    assert answer["limit"]["sentence"] in live.client.get(f"{address}/report.html").text


def test_a_page_of_plain_stages_has_no_table(live: Live) -> None:
    """Nor the facts."""
    body = {"message_bytes": 4096, "pipeline": MYRINET}
    answer = live.client.post("/optimize", json=body).json()
    text = live.client.get(f"/ui/answers/{answer['id']}").text
    assert 'id="in-flight"' not in text
    assert "parts/lanes" not in text
    assert "<table" not in live.client.get(f"/ui/answers/{answer['id']}/parts/lanes").text


# --- the command line -----------------------------------------------------------------------------


@pytest.fixture
def printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Any:
    """main(argv) in this process, with a database of its own."""
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def without_window(folder: Path) -> str:
    """The file of the weights without its memory."""
    pipeline = {"stages": WEIGHTS["pipeline"]["stages"]}
    name = folder / "weights.json"
    name.write_text(json.dumps({**WEIGHTS, "pipeline": pipeline}))
    return str(name)


def test_an_audit_advises_no_table(client: httpx.Client) -> None:
    """Tables are of plain stages: what would change is the size."""
    asked = {"pipeline": S3["pipeline"], "setting": {"static_bytes": 6 * MIB}}
    workload = [{"message_bytes": 256 * MIB, "weight": 1}]
    found = client.post("/audit", json={**asked, "workload": workload})
    assert found.status_code == 200, found.text
    audit = found.json()
    assert audit["best_repeats"] is None
    assert audit["changes"][0].startswith("repeat ")
    assert not any("table" in change for change in audit["changes"])


def test_memory_is_a_window_over_all_stages(printed: Any, tmp_path: Path) -> None:
    """The same answer as with the window in the file, and a row for each number of buffers."""
    options = ("--strategy", "repeat", "--current", "2GB")
    code, with_option, _ = printed(
        "optimize", without_window(tmp_path), "--memory", "6GB", *options
    )
    assert code == 0
    assert with_option.startswith("Repeat 2861 MiB, 2 buffers of 3 GB in your 6 GB: ")
    file = str(EXAMPLES / "weight-update.json")
    assert printed("optimize", file, *options)[1] == with_option
    rows = [line.split() for line in with_option.splitlines()]
    table = {row[0]: row for row in rows if len(row) > 5 and row[0] in "1248"}
    assert [table[count][4] for count in "124"] == ["206.7", "155.2", "227.7"]


def test_memory_stands_beside_other_windows(printed: Any) -> None:
    """The tighter one binds."""
    file = str(EXAMPLES / "s3-connections.json")
    code, out, _ = printed("optimize", file, "--memory", "64MiB", "--json", "--strategy", "fixed")
    assert code == 0
    document = json.loads(out)
    assert [one["bytes"] for one in document["pipeline"]["windows"]] == [256 * MIB, 64 * MIB]
    assert document["in_flight"]["size_bytes"] <= 64 * MIB


AGGREGATE = {
    "total": {"overhead_us": 27.3, "ns_per_byte": 63.0},
    "bottleneck": {"overhead_us": 7.5, "ns_per_byte": 24.3},
}


@pytest.mark.parametrize("source", ["myrinet-gam", "local-path-direct.csv", "aggregate.json"])
def test_memory_needs_stages(printed: Any, tmp_path: Path, source: str) -> None:
    """Not those of a profile, of measurements, or of what all stages take together."""
    (tmp_path / "aggregate.json").write_text(json.dumps({"aggregate": AGGREGATE}))
    folder = tmp_path if source == "aggregate.json" else EXAMPLES
    name = source if "." not in source else str(folder / source)
    code, _, err = printed("optimize", name, "--bytes", "64KiB", "--memory", "1MiB")
    assert code != 0
    assert "memory" in err
    assert "expected stages beside --memory" in err


def test_memory_below_every_fragment_is_refused(printed: Any) -> None:
    """It names the window."""
    file = str(EXAMPLES / "s3-connections.json")
    code, _, err = printed("optimize", file, "--memory", "1MiB")
    assert code != 0
    assert "1048576" in err
