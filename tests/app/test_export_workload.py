"""Exports for a workload: through HTTP, as jobs, by the command line and on the page, as audits."""

from __future__ import annotations

import re
from itertools import count as numbers
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main
from app.console import running
from app.verbs.export.page.form import export_form
from domain.regret import Objective
from tests.app.serving import MYRINET
from tests.support.in_process_engine import InProcessEngine

_NAMES = numbers(1)
WEIGHTS = {4096: 700.0, 16_384: 250.0, 262_144: 50.0}
QUERY = [f"{size}:{weight}" for size, weight in WEIGHTS.items()]
LINES = "".join(f"{size} {weight}\n" for size, weight in WEIGHTS.items())
WORKLOAD = [{"message_bytes": size, "weight": weight} for size, weight in WEIGHTS.items()]


@pytest.fixture
def name(client: httpx.Client) -> str:
    """A profile of this test."""
    chosen = f"workload-{next(_NAMES)}"
    body = {"name": chosen, "pipeline": MYRINET}
    assert client.post("/profiles", json=body).status_code == 201
    return chosen


def exported(client: httpx.Client, name: str, **query: Any) -> str:
    """The text for Mooncake, whose slices are any multiples of 4 KiB."""
    answer = client.get(f"/profiles/{name}/exports/mooncake", params=query)
    assert answer.status_code == 200, answer.text
    return answer.text


def audited(client: httpx.Client, name: str, text: str, **more: Any) -> dict[str, Any]:
    """What an audit says of this text."""
    setting = {"configuration": {"target": "mooncake", "content": text}}
    body = {"profile": name, "setting": setting, "workload": WORKLOAD, **more}
    answer = client.post("/audit", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("objective", [None, *Objective])
def test_the_size_is_the_one_that_an_audit_advises(
    client: httpx.Client, name: str, objective: Objective | None
) -> None:
    """By each objective, with the regrets that it tells; without one by the total time."""
    asked = {} if objective is None else {"objective": str(objective)}
    text = exported(client, name, workload=QUERY, **asked)
    flat = re.sub(r"\n#\s+", " ", text)
    least = {Objective.MEAN: "mean regret", Objective.WORST: "worst regret"}
    chosen_for = least.get(objective or Objective.TIME, "total time")
    assert f"chosen for least {chosen_for} over the workload: the given workload of 3 sizes" in flat
    found = audited(client, name, text, **asked)
    assert found["objective"] == (objective or "time")
    assert found["setting"]["steps"] == found["best_size"]["steps"]
    setting = found["setting"]
    figures = [
        f"{part} {100.0 * setting[key]['at_least']:.2f} %"
        for part, key in (("total time", "time"), ("mean", "mean"))
    ]
    worst = 100.0 * setting["worst"]["regret"]["at_least"]
    known = f"regret over the best schedules known: {', '.join(figures)}, worst {worst:.2f} %"
    assert known in flat


def test_a_job_writes_the_same(client: httpx.Client, name: str) -> None:
    """Its request has the workload; its answer the objective and the total time."""
    text = exported(client, name, workload=QUERY)
    started = client.get(
        f"/profiles/{name}/exports/mooncake",
        params={"workload": QUERY},
        headers={"prefer": "respond-async"},
    )
    assert started.status_code == 202
    job = client.get(started.headers["location"], headers={"prefer": "wait=60"}).json()
    while job["state"] not in ("done", "failed"):
        job = client.get(started.headers["location"]).json()
    made = job["export"]
    assert made["text"] == text
    chosen = made["chosen"]
    assert list(chosen)[:3] == ["steps", "objective", "time_regret"]
    assert chosen["objective"] == "time"
    assert chosen["time_regret"] <= chosen["time_at_most"]
    kept = client.get(f"/ui/jobs/{job['id']}", follow_redirects=True)
    assert kept.status_code == 200
    assert "workload=" in kept.text or "the given workload of 3 sizes" in kept.text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"workload": ["4096:1"], "min_message_bytes": 4096}, "not both"),
        ({"workload": ["4096:1", "0:1"]}, "expected sizes and weights, as 1048576:700"),
        ({"workload": ["4096:-1"]}, "expected sizes and weights, as 1048576:700"),
        ({"workload": ["4096:1e9e9"]}, "expected sizes and weights, as 1048576:700"),
        ({"workload": ["4096:0"]}, "expected weights of a finite sum above 0"),
        ({"workload": ["4096"]}, "expected text that matches"),
        ({"workload": [f"{size}:1" for size in range(1, 514)]}, "512"),
    ],
)
def test_what_is_no_workload(
    client: httpx.Client, name: str, query: dict[str, Any], said: str
) -> None:
    answer = client.get(f"/profiles/{name}/exports/mooncake", params=query)
    assert answer.status_code == 422
    assert said in answer.text
    assert answer.json()["errors"][0]["pointer"].startswith("/workload")


def test_the_command_line_writes_the_same(
    client: httpx.Client,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """From a file of lines; of an empty one and with a range nothing."""
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    monkeypatch.setattr(running, "open_local_engine", InProcessEngine)
    file = tmp_path / "workload.txt"
    file.write_text(LINES)
    myrinet = str(Path(__file__).parents[2] / "examples" / "myrinet-gam.json")
    asked = ["export", myrinet, "--target", "mooncake", "--workload", str(file)]
    assert main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    served = exported(client, name, workload=QUERY).splitlines()
    assert lines[-4:] == served[-4:]
    assert main([*asked, "--min-message", "4KiB"]) == 2
    assert "not both" in capsys.readouterr().err
    file.write_text("# none\n")
    assert main(asked) == 2
    assert "workload: expected lines of a size and a weight" in capsys.readouterr().err


def test_the_page_asks_for_the_same(client: httpx.Client, name: str) -> None:
    """Its form has the workload, and leads to the text by an address that has it too."""
    form = export_form("mooncake", {"workload": LINES})
    assert form.scope is not None
    assert form.scope.decides_by is Objective.TIME
    address = form.file_address(name)
    assert "workload=4096%3A700.0" in address
    assert "min_message_bytes" not in address
    assert client.get(address).text == exported(client, name, workload=QUERY)
    shown = client.get(f"/ui/profiles/{name}/exports/mooncake", params={"workload": LINES})
    assert shown.status_code == 200
    assert "16384 250.0" in shown.text
    assert f'hx-post="/ui/profiles/{name}/exports/mooncake/text?workload=' in shown.text


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"workload": "4 KiB, 1"}, "line 1: expected a size and a weight"),
        ({"workload": "64 1", "min_message": "1 KiB"}, "not both"),
        ({"workload": "64 1\n" * 2000}, "at most 6000 characters"),
    ],
)
def test_what_the_page_refuses(texts: dict[str, str], said: str) -> None:
    form = export_form("ucx", texts)
    assert form.scope is None
    assert said in form.mistakes["workload"]
