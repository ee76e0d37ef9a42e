"""Messages that are cut between items, through windows: asked by HTTP and command line, refused."""

from __future__ import annotations

import json
from itertools import accumulate
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main
from app.schemas.answers import read_answer
from contract.optimize import ItemsOptimizeOut
from tests.app.serving import MYRINET, Live
from tests.support.item_bodies import Body, question, stages

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "weight-sync.json")
WINDOW = {"from": "stage 1", "to": "stage 2", "bytes": 2}


def six(window: Body | None = None, overhead_us: float = 10.0, **more: Any) -> Body:
    """Six items of a byte through two stages alike, and a window over both."""
    pipeline = stages((overhead_us, 1000), (overhead_us, 1000))
    pipeline["windows"] = [WINDOW if window is None else window]
    return question(pipeline, {"repeat": 6, "bytes": 1}, **more)


def refused(client: httpx.Client, path: str, body: Body) -> tuple[str, str]:
    """The code of a refusal, and the field that it names."""
    answer = client.post(path, json=body)
    assert answer.status_code == 422, answer.text
    return answer.json()["code"], answer.json()["errors"][0]["pointer"]


# --- what is answered -----------------------------------------------------------------------------


def test_memory_is_slots_of_one_size(client: httpx.Client) -> None:
    """Two of a byte where overheads are small, one of both where they are not."""
    two = client.post("/optimize", json=six(overhead_us=0.0)).json()
    assert (two["latency_us"], two["fragment_items"], two["status"]) == (7.0, [1] * 6, "optimal")
    assert two["set_items"]["slots"] == [
        {"window": 0, "slots": 2, "slot_bytes": 1, "used": 2, "enough": 2, "costs_us": 0.0}
    ]
    one = client.post("/optimize", json=six()).json()
    assert (one["latency_us"], one["fragment_items"]) == (72.0, [2, 2, 2])
    slots = one["set_items"]["slots"][0]
    assert (slots["slots"], slots["slot_bytes"], slots["enough"]) == (1, 2, 1)
    assert slots["costs_us"] == 24.0  # of 48 without it
    assert one["best_cap"]["slots"] == [1]


def test_the_first_line_has_size_and_number(client: httpx.Client) -> None:
    """Of packed buffers; of gradient buckets how many at a time."""
    mib = 2**20
    pipeline = stages((0, 1000), (0, 1000))
    pipeline["windows"] = [{"from": "stage 1", "to": "stage 2", "bytes": 2 * mib}]
    body = question(
        pipeline,
        {"repeat": 6, "bytes": mib},
        fill={"rule": "before"},
        uncertainty={"current": {"repeat": 2 * mib}},
    )
    answer = client.post("/optimize", json=body).json()
    assert answer["set_items"]["sentence"] == (
        "Set 2 buffers of 1 MiB (1048576 bytes): 41.7 % faster than your 2 MiB."
    )
    assert answer["current"]["slots"] == [1]
    body["fill"] = {"rule": "until"}
    sentence = client.post("/optimize", json=body).json()["set_items"]["sentence"]
    assert sentence == "Set 1 item a fragment, 2 at a time: 41.7 % faster than your 2 MiB."


def test_a_way_back_is_a_part_of_the_time(client: httpx.Client) -> None:
    window = {"from": "stage 1", "to": "stage 2", "fragments": 1, "return_us": 100}
    answer = client.post("/optimize", json=six(window, constraints={"max_fragments": 2})).json()
    assert answer["fragment_items"] == [6]  # the way back costs more than any overlap
    body = six(window, cut=[3, 6])
    ran = client.post("/simulate", json=body).json()
    assert ran["latency_us"] == 2 * 26.0 + 100.0
    limit = ran["limit"]
    assert (limit["kind"], limit["return_us"]) == ("return", 100.0)
    parts = limit["calculation_us"] + limit["bytes_us"] + limit["overheads_us"]
    assert parts + limit["return_us"] == ran["latency_us"]
    assert [(step["fragment"], step["stage"]) for step in ran["critical_path"]] == [
        *((0, 0), (0, 1), (1, 0), (1, 1))
    ]
    assert (ran["slots"][0]["slots"], ran["slots"][0]["slot_bytes"]) == (1, 3)


def test_a_run_takes_what_the_answer_says(client: httpx.Client) -> None:
    """Of its cut, and of its best cap."""
    body = six(fill={"rule": "before"})
    answer = client.post("/optimize", json=body).json()
    ends = list(accumulate(answer["fragment_items"]))
    ran = client.post("/simulate", json={**six(), "cut": ends}).json()
    assert ran["latency_us"] == answer["latency_us"]
    assert ran["pipeline"] == answer["pipeline"]
    capped = {**six(fill={"rule": "before"}), "cap_bytes": answer["best_cap"]["from_bytes"]}
    assert (
        client.post("/simulate", json=capped).json()["latency_us"]
        == (answer["best_cap"]["latency_us"])
    )


def test_a_stored_answer_is_the_same_bytes(live: Live) -> None:
    """Asked again, read, shown by its page; another window is another question."""
    client = live.client
    first = client.post("/optimize", json=six())
    answer = first.json()
    assert client.post("/optimize", json=six()).content == first.content
    assert client.get(f"/optimizations/{answer['id']}").content == first.content
    read = read_answer(first.content, items=True)
    assert isinstance(read, ItemsOptimizeOut)
    assert read.set_items.slots[0].slots == 1
    other = client.post("/optimize", json=six({**WINDOW, "bytes": 3})).json()
    assert other["id"] != answer["id"]
    again = {name: answer[name] for name in ("pipeline", "items", "fill", "constraints")}
    assert client.post("/optimize", json=again).json()["id"] == answer["id"]
    page = client.get(f"/ui/answers/{answer['id']}")
    assert page.status_code == 200
    assert "1 slot of 2 B" in page.text


def test_a_profile_with_windows_is_a_source(live: Live) -> None:
    """Saved with the windows, and asked about by name."""
    live.client.post("/optimize", json=six(save_as="two-buffers"))
    body = {"profile": "two-buffers", "items": {"repeat": 6, "bytes": 1}}
    assert live.client.post("/optimize", json=body).json()["latency_us"] == 72.0
    large = {"profile": "two-buffers", "items": {"bytes": [3]}}
    assert refused(live.client, "/optimize", large) == ("infeasible", "/profile")


def test_a_plain_answer_says_nothing_of_slots(client: httpx.Client) -> None:
    answer = client.post(
        "/optimize", json=question(stages((1, 1), (1, 1)), {"repeat": 3, "bytes": 1})
    )
    assert b"slots" not in answer.content
    assert b"return_us" not in answer.content
    assert b"max_fragment_items" not in answer.content


# --- how many items a fragment has ----------------------------------------------------------------


def test_a_cap_on_the_number_of_items(client: httpx.Client) -> None:
    """Holds for the cut and for the best cap, and is repeated."""
    body = question(
        stages((100, 1000)),
        {"repeat": 7, "bytes": 1, "ready_every_us": 1},
        constraints={"max_fragment_items": 3},
    )
    answer = client.post("/optimize", json=body).json()
    assert max(answer["fragment_items"]) == 3
    assert len(answer["fragment_items"]) == 3
    assert answer["constraints"]["max_fragment_items"] == 3
    again = {name: answer[name] for name in ("pipeline", "items", "fill", "constraints")}
    assert client.post("/optimize", json=again).json()["id"] == answer["id"]


@pytest.mark.parametrize("path", ["/optimize", "/compare", "/hide"])
def test_that_cap_goes_with_items_alone(client: httpx.Client, path: str) -> None:
    more: dict[str, Body] = {
        "/optimize": {"message_bytes": 64},
        "/compare": {"message_bytes": [64], "strategies": ["fixed"]},
        "/hide": {"message_bytes": 64, "calculation_us": 9},
    }
    body = {"pipeline": MYRINET, "constraints": {"max_fragment_items": 2}, **more[path]}
    code, field = refused(client, path, body)
    assert (code, field) == ("inconsistent_input", "/constraints/max_fragment_items")


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "refusal"),
    [
        ({"bytes": 0}, ("invalid_input", "/pipeline/windows/0/bytes")),
        ({"from": "stage 9"}, ("invalid_stage", "/pipeline/windows/0/from")),
        ({"from": "stage 2", "to": "stage 1"}, ("invalid_stage", "/pipeline/windows/0/to")),
        ({"bytes": None}, ("invalid_stage", "/pipeline/windows/0/fragments")),
        ({"return_us": -1}, ("invalid_input", "/pipeline/windows/0/return_us")),
    ],
)
def test_windows_that_break_a_rule_name_the_field(
    client: httpx.Client, window: Body, refusal: tuple[str, str]
) -> None:
    assert refused(client, "/optimize", six({**WINDOW, **window})) == refusal


def test_an_item_above_a_window_names_the_window(client: httpx.Client) -> None:
    body = six()
    body["items"] = {"bytes": [1, 3], "names": ["a", "embedding"]}
    answer = client.post("/optimize", json=body).json()
    assert answer["code"] == "infeasible"
    assert answer["errors"][0]["pointer"] == "/pipeline/windows/0/bytes"
    assert answer["detail"].startswith("embedding of 3 bytes does not fit the window of 2 bytes")
    run = {**body, "cut": [1, 2]}
    assert refused(client, "/simulate", run) == ("infeasible", "/pipeline/windows/0/bytes")


def test_an_item_above_the_cap_is_a_fragment_and_takes_slots(client: httpx.Client) -> None:
    body = six({**WINDOW, "bytes": 6}, constraints={"max_fragment_bytes": 2})
    body["items"] = {"bytes": [1, 3, 1, 1]}
    answer = client.post("/optimize", json=body).json()
    assert [one["code"] for one in answer["warnings"]] == ["item_above_cap"]
    assert answer["set_items"]["slots"][0]["slots"] == 2


def test_a_cut_and_a_cap_that_do_not_fit_are_refused(client: httpx.Client) -> None:
    for more, field in (({"cut": [3, 6]}, "/cut"), ({"cap_bytes": 3}, "/cap_bytes")):
        assert refused(client, "/simulate", six(**more)) == ("infeasible", field)
    current = six(uncertainty={"current": {"repeat": 4}})
    assert refused(client, "/optimize", current) == ("infeasible", "/uncertainty/current")


@pytest.mark.parametrize(
    ("word", "value"), [("lanes", 2), ("delay_us", 3.0), ("processor", "core")]
)
def test_other_words_of_machines_are_declined(client: httpx.Client, word: str, value: Any) -> None:
    body = six()
    for stage in body["pipeline"]["stages"]:
        stage[word] = value
    code, field = refused(client, "/optimize", body)
    assert (code, field) == ("needs_plain_stages", f"/pipeline/stages/0/{word}")


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/compare", {}),
        ("/hide", {"calculation_us": 3}),
        ("/audit", {"setting": {"static_bytes": 2}}),
    ],
)
def test_where_windows_do_not_go_with_items_is_said(
    client: httpx.Client, path: str, more: Body
) -> None:
    answer = client.post(path, json={**six(), **more}).json()
    assert (answer["code"], answer["errors"][0]["pointer"]) == (
        *("needs_plain_stages", "/pipeline/windows"),
    )
    assert "optimize and simulate take windows, too" in answer["detail"]
    assert "compare" not in answer["detail"]


def test_limits_that_clash_with_a_window_are_named(client: httpx.Client) -> None:
    answer = client.post("/optimize", json=six(constraints={"max_fragments": 2})).json()
    assert answer["code"] == "infeasible"
    assert "needs at least 3 fragments" in answer["detail"]


# --- sluice, and 70B ------------------------------------------------------------------------------


def ran(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """What `sluice` with these words prints."""
    code = main(list(words))
    found = capsys.readouterr()
    return code, found.out, found.err


def test_one_cap_is_the_best_cut_within_2_gib(capsys: pytest.CaptureFixture[str]) -> None:
    """Tensors of a 70B model, 218 ms a bucket: there the number of buffers decides."""
    words = ("optimize", EXAMPLE, "--max-fragment-bytes", "2GiB", "--json")
    answer = json.loads(ran(capsys, *words)[1])
    assert answer["status"] == "optimal"
    assert answer["best_cap"]["loss"] < 1e-6
    assert answer["fragments"] == 82
    one = json.loads(ran(capsys, "optimize", EXAMPLE, "--memory", "2GiB", "--json")[1])
    assert one["set_items"]["slots"][0]["slots"] == 1
    assert one["latency_us"] > 2.5 * answer["latency_us"]


def test_memory_goes_with_items(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window over all stages; the first line, the table and the run say how many buffers."""
    monkeypatch.chdir(tmp_path)
    Path("stages.json").write_text(json.dumps({"pipeline": stages((0, 1000), (0, 1000))}))
    Path("items.csv").write_text("\n".join(["bytes", *["1 MiB"] * 6]))
    files = ("stages.json", "--items", "items.csv", "--fill", "before")
    code, out, err = ran(capsys, "optimize", *files, "--memory", "2MiB", "--current", "2MiB")
    assert code == 0, err
    assert out.startswith("Set 2 buffers of 1 MiB (1048576 bytes): 41.7 % faster")
    assert "stage 1 to stage 2: 2 slots of 1 MiB" in out
    code, out, err = ran(
        capsys, "optimize", *files, "--memory", "2MiB", "--max-fragment-items", "1", "--json"
    )
    assert json.loads(out)["constraints"]["max_fragment_items"] == 1
    code, out, err = ran(capsys, "optimize", *files, "--memory", "1000")
    assert code != 0
    assert "does not fit the window of 1000 bytes" in err
    words = ("optimize", "stages.json", "--bytes", "64", "--max-fragment-items", "1")
    code, out, err = ran(capsys, *words)
    assert code != 0
    assert "max_fragment_items goes with items alone" in err
    question = {"pipeline": stages((0, 1000)), "items": {"repeat": 3, "bytes": 1}}
    Path("items.json").write_text(json.dumps(question))
    code, out, err = ran(capsys, "optimize", "items.json", "--max-fragment-items", "1", "--json")
    assert json.loads(out)["fragment_items"] == [1, 1, 1]
    code, out, err = ran(capsys, "optimize", *files, "--max-fragment-items", "none")
    assert code != 0
    assert "max-fragment-items" in err


# --- shown ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "advised"),
    [
        ({}, "The list"),
        ({"fill": {"rule": "before"}}, "The best cap"),
    ],
)
def test_the_page_marks_what_the_first_sentence_says(live: Live, more: Body, advised: str) -> None:
    """Buffers of one size, where a program packs them; and what is in flight."""
    answer = live.client.post("/optimize", json=six(**more)).json()
    page = live.client.get(f"/ui/answers/{answer['id']}").text
    _, _, chosen = page.partition('<tr class="chosen">')
    assert advised in chosen.partition("</th>")[0]
    assert "In flight" in page


def test_the_page_says_how_sure_a_cut_is(live: Live) -> None:
    """As the command line does, and marks the cap that is advised, where it is one."""
    pipeline = stages((10.0, 1000), (10.0, 1000))
    body = question(pipeline, {"repeat": 6, "bytes": 1}, uncertainty={"relative": 0.2})
    answer = live.client.post("/optimize", json=body).json()
    page = live.client.get(f"/ui/answers/{answer['id']}").text
    assert "How sure" in page
    assert answer["uncertainty"]["sentence"] == answer["set_items"]["sentence"]
    _, _, chosen = page.partition('<tr class="chosen">')
    is_list = answer["uncertainty"]["advised_bytes"] is None
    assert ("The list" if is_list else "The best cap") in chosen.partition("</th>")[0]
