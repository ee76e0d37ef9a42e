"""How sure a cut of items is: asked by HTTP and by command, and said in the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main
from app.schemas.answers import read_answer
from tests.app.serving import MYRINET, Live
from tests.support.item_bodies import Body, question, small, stages

MIB = 2**20
LAYERS: Body = {
    "bytes": [4 * MIB, MIB, MIB, 2 * MIB, 4 * MIB] * 4,
    "ready_us": [4e3 * place for place in range(1, 21)],
}
WIRE = stages((2000, 1000 / 1048.576))


def sure(client: httpx.Client, current: Any, **known: Any) -> dict[str, Any]:
    """An answer to these layers with what is known of their errors."""
    uncertainty = {"current": current, **known}
    answer = client.post("/optimize", json=question(WIRE, LAYERS, uncertainty=uncertainty))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_what_is_certain_to_gain_is_set(client: httpx.Client) -> None:
    """The first sentence is the decision's, and its gain that of the draws."""
    answer = sure(client, {"repeat": MIB}, relative=0.05)
    known = answer["uncertainty"]
    assert (known["decision"], known["compared_with"]) == ("set_it", "current")
    assert known["gain"]["p05"] > 0.01
    assert answer["set_items"]["sentence"] == known["sentence"]
    assert known["sentence"].startswith("Set bucket_cap_mb")
    assert "faster than your 1 MiB (between" in known["sentence"]
    assert known["sentence"].endswith("For costs that are known to ±5 %.")
    assert [one["within"] for one in known["good_sizes"]] == [0.01, 0.02, 0.05]
    assert known["regret"]["basis"] == "best cap"
    assert {one["name"] for one in known["against"]} >= {"one piece", "current"}
    assert (known["robust"], known["round"]) == (None, [])


def test_what_is_near_the_best_is_kept(client: httpx.Client) -> None:
    """No headline says to set what gains less than the draws prove."""
    best = sure(client, {"repeat": MIB}, relative=0.05)["uncertainty"]["good_sizes"][0]
    answer = sure(client, {"repeat": best["intervals"][0][0]}, relative=0.05)
    assert answer["uncertainty"]["decision"] == "keep_yours"
    assert answer["set_items"]["sentence"].startswith("Keep your ")


def test_without_known_errors_it_is_said_as_before(client: httpx.Client) -> None:
    answer = sure(client, {"repeat": MIB})
    assert answer["uncertainty"] is None
    assert " (or bucket_cap_mb=" in answer["set_items"]["sentence"]


def test_ready_times_alone_may_be_uncertain(client: httpx.Client) -> None:
    answer = sure(client, {"repeat": MIB}, ready_relative=0.03)
    known = answer["uncertainty"]
    assert known["source"] == "ready"
    assert known["sentence"].endswith("Ready times are known to ±3 %.")
    low, high = known["latency_us"]["p05"], known["latency_us"]["p95"]
    assert low < answer["latency_us"] < high


def test_the_same_question_has_the_same_draws(client: httpx.Client) -> None:
    """Another deviation is another question."""
    first = sure(client, "whole", relative=0.1, ready_relative=0.02)
    again = sure(client, "whole", relative=0.1, ready_relative=0.02)
    other = sure(client, "whole", relative=0.1, ready_relative=0.04)
    seeded = sure(client, "whole", relative=0.1, ready_relative=0.02, seed="7", draws=200)
    assert first["id"] == again["id"]
    assert len({first["id"], other["id"], seeded["id"]}) == 3
    assert (seeded["uncertainty"]["seed"], seeded["uncertainty"]["draws"]) == ("7", 200)


def test_some_layouts_alone_are_priced_where_they_are_too_many(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said."""
    from analysis import item_draws

    monkeypatch.setattr(item_draws, "_CELLS", 20_000)
    monkeypatch.setattr(item_draws, "_PLAIN_CELLS", 20_000)
    codes = [one["code"] for one in sure(client, "whole", relative=0.1)["warnings"]]
    assert "some_layouts_in_draws" in codes


def test_no_cap_to_compare_with_is_said(client: httpx.Client) -> None:
    """By `until` a cap up to 3 bytes makes three fragments, and a greater one too large a one."""
    items, limits = {"bytes": [2, 1, 8, 1]}, {"max_fragments": 2, "max_fragment_bytes": 10}
    body = question(stages((1, 1000)), items, constraints=limits)
    answer = client.post("/optimize", json={**body, "uncertainty": {"relative": 0.1}}).json()
    assert (answer["uncertainty"], answer["best_cap"]) == (None, None)
    assert "answer_not_in_draws" in [one["code"] for one in answer["warnings"]]


def test_a_fit_says_how_sure_its_answer_is(client: httpx.Client) -> None:
    """Its errors are known, and what it does not know of the overlap is asked."""
    rows = [
        f"{size},{turn},{5 + 5e-4 * size + 0.01 * turn},{9 + 9e-4 * size + 0.01 * turn}"
        for size in (1024, 4096, 16384, 65536, 262144)
        for turn in range(5)
    ]
    content = "\n".join(["message_bytes,repetition,copy_us,send_us", *rows])
    items = {"repeat": 64, "bytes": 16384}
    body = {
        "measurements": {"content": content},
        "items": items,
        "uncertainty": {"current": {"repeat": 16384}},
    }
    known = client.post("/optimize", json=body).json()["uncertainty"]
    assert known["source"] == "fit"
    assert known["decision"] in ("measure_first", "keep_yours")
    overlapping = {**body, "fit_options": {"stages_overlap": True}}
    assert client.post("/optimize", json=overlapping).json()["uncertainty"]["source"] == "fit"


@pytest.mark.parametrize("path", ["", "/schedule.json"])
def test_a_page_shows_such_an_answer(live: Live, path: str) -> None:
    uncertainty = {"current": {"repeat": MIB}, "relative": 0.05}
    answer = live.client.post("/optimize", json=question(WIRE, LAYERS, uncertainty=uncertainty))
    page = live.client.get(f"/ui/answers/{answer.json()['id']}{path}")
    assert page.status_code == 200
    assert "Set bucket_cap_mb" in page.text
    read_answer(answer.content, items=True)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        (small(uncertainty={"ready_relative": 2}), "invalid_input", "ready_relative"),
        (
            question(WIRE, {"bytes": [1, 2]}, uncertainty={"ready_relative": 0.1}),
            *("inconsistent_input", "ready_relative"),
        ),
        (
            {"pipeline": MYRINET, "message_bytes": 64, "uncertainty": {"ready_relative": 0.1}},
            *("inconsistent_input", "ready_relative"),
        ),
        (small(uncertainty={"draws": 100}), "inconsistent_input", "relative"),
        (small(uncertainty={"robust": True}), "items_declined", "robust"),
    ],
)
def test_errors_that_are_none_name_the_field(
    client: httpx.Client, body: Body, code: str, field: str
) -> None:
    answer = client.post("/optimize", json=body)
    document = answer.json()
    assert (answer.status_code, document["code"]) == (422, code), answer.text
    assert document["errors"][0]["pointer"] == f"/uncertainty/{field}"


# --- by command -----------------------------------------------------------------------------------


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty one with a wire, and five calculations of which the third is slow."""
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'sluice.db'}")
    monkeypatch.chdir(tmp_path)
    Path("wire.json").write_text(json.dumps({"pipeline": WIRE}))
    factors = (1.0, 1.02, 1.1, 0.99, 1.0)
    names = ["ready_us", *(f"ready_us_{number}" for number in range(2, 6))]
    rows = [
        [str(size), *(str(us * factor) for factor in factors)]
        for size, us in zip(LAYERS["bytes"], LAYERS["ready_us"], strict=True)
    ]
    Path("layers.csv").write_text("\n".join(map(",".join, [["bytes", *names], *rows])))
    return tmp_path


WORDS = ("optimize", "wire.json", "--items", "layers.csv", "--current", "1MiB")


@pytest.mark.usefixtures("folder")
def test_several_calculations_are_known_by_their_deviation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Medians count, and the answer says how far one calculation differs from the next."""
    assert main([*WORDS]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Ready times are known to ±4.4 %." in shown
    assert "of the deviation of ready times given" in shown
    assert "within 2 %" in shown
    assert main([*WORDS, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["items"]["ready_us"] == pytest.approx(LAYERS["ready_us"])


@pytest.mark.usefixtures("folder")
def test_an_option_wins_over_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "--ready-relative", "2%", "--relative", "5%"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "known to ±5 %. Ready times are known to ±2 %." in shown
