"""Each door takes lanes, delays, processors and windows, or names the one that it cannot take.

None passes over a word: the answer would be one to another question.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app import cli
from tests.app.serving import MYRINET, serving, settings_for
from tests.support.long_work import long_here_engine
from tests.support.machine_bodies import by_word, staging

WORDS = by_word()
SHORT = {"time_limit_s": 2}
LINE = {"name": "wire", "overhead_us": 1.0, "ns_per_byte": 2.0}

# What each question of plain stages is asked with beside its costs, at the place of those.
DECLINING: dict[str, tuple[str, str, dict[str, Any]]] = {
    "hide": ("/hide", "", {"message_bytes": 4096, "calculation_us": 100}),
    "thresholds": ("/thresholds", "", {"message_bytes": [4096]}),
    "crossover a": ("/crossover", "a", {"b": {"pipeline": MYRINET}, "max_message_bytes": 4096}),
    "crossover b": ("/crossover", "b", {"a": {"pipeline": MYRINET}, "max_message_bytes": 4096}),
}
TAKING: dict[str, tuple[str, dict[str, Any]]] = {
    "optimize": ("/optimize", {"message_bytes": 64, "strategy": "repeat"}),
    "compare": ("/compare", {"message_bytes": [64], "strategies": ["repeat", "ramp_repeat"]}),
    "audit": ("/audit", {"setting": {"static_bytes": 16}, "max_message_bytes": 32, **SHORT}),
    "simulate": ("/simulate", {"fragment_bytes": [32, 32]}),
}
# What a machine cannot be asked with, by the field.
ONLY_PLAIN: dict[str, tuple[str, dict[str, Any]]] = {
    "allow_refragmentation": (
        "/optimize",
        {"message_bytes": 64, "allow_refragmentation": True},
    ),
    "uncertainty/robust": (
        "/optimize",
        {"message_bytes": 64, "uncertainty": {"relative": 0.1, "robust": True}},
    ),
    "levels": ("/simulate", {"levels": [[64], [64], [64]]}),
    "delivery": ("/simulate", {"message_bytes": 64, "delivery": [{"rule": "same"}] * 3}),
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A service that holds a machine for each word as a profile, by the word's name."""
    url = f"sqlite:///{tmp_path_factory.mktemp('machines') / 'sluice.db'}"
    with serving(settings_for(url), open_engine=long_here_engine) as live:
        for word, machine in WORDS.items():
            answer = live.client.post("/profiles", json={"name": word, "pipeline": machine})
            assert answer.status_code == 201, answer.text
        yield live.client


def refused(answer: httpx.Response) -> str:
    """The field that a refusal names, which says that plain stages are needed."""
    document = answer.json()
    assert answer.status_code == 422, answer.text
    assert document["code"] == "needs_plain_stages"
    (error,) = document["errors"]
    assert "needs plain stages" in document["detail"]
    pointer: str = error["pointer"]
    return pointer


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("door", DECLINING)
def test_a_door_for_plain_stages_names_the_word(client: httpx.Client, door: str, word: str) -> None:
    """Typed, and of a profile, where the field is the profile and the sentence has the word."""
    path, inside, body = DECLINING[door]

    def ask(costs: dict[str, Any]) -> httpx.Response:
        return client.post(path, json={**body, **({inside: costs} if inside else costs)})

    place = f"{inside}/" if inside else ""
    typed = ask({"pipeline": WORDS[word]})
    assert refused(typed) == f"/{place}pipeline/{word.replace('.', '/')}"
    stored = ask({"profile": word})
    assert refused(stored) == f"/{place}profile"
    assert f"{word.rpartition('.')[2]} " in stored.json()["detail"]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("target", ["ucx", "simgrid", "c-header", "s3"])
def test_exports_name_the_profile(client: httpx.Client, target: str, word: str) -> None:
    """Of sizes, of costs, and of tables."""
    assert refused(client.get(f"/profiles/{word}/exports/{target}")) == "/profile"


@pytest.mark.parametrize("word", WORDS)
def test_tables_and_verifications_name_the_profile(client: httpx.Client, word: str) -> None:
    """Neither is of a machine."""
    table = client.post(f"/profiles/{word}/tables", json={"max_message_bytes": 64})
    assert refused(table) == "/profile"
    transfers = "message_bytes,fragment_bytes,latency_us\n64,16,9\n64,32,9\n"
    verified = client.post(f"/profiles/{word}/verification", json={"transfers": transfers})
    assert refused(verified) == "/source"


@pytest.mark.parametrize("word", ["lanes", "delay_us", "shared_ns_per_byte", "processor"])
def test_stages_of_a_layer_have_no_words(client: httpx.Client, word: str) -> None:
    """They are the stages between its two ends."""
    said = {"lanes": 2, "shared_ns_per_byte": 1.0, "delay_us": 1.0, "processor": "p"}[word]
    between = [LINE | ({"lanes": 2} if word == "shared_ns_per_byte" else {}) | {word: said}]
    body = {"layer": "cmam-finite", "message_bytes": [64], "clock_mhz": 33, "between": between}
    named = "lanes" if word == "shared_ns_per_byte" else word
    assert refused(client.post("/layer-costs", json=body)) == f"/between/0/{named}"


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("door", TAKING)
def test_a_door_that_takes_machines_answers_about_them(
    client: httpx.Client, door: str, word: str
) -> None:
    """About what was asked: the answer has the word, and asks the same again."""
    path, body = TAKING[door]
    typed = client.post(path, json={**body, "pipeline": WORDS[word]})
    assert typed.status_code == 200, typed.text
    sent = typed.json()["pipeline"]
    at: Any = sent
    for step in word.split("."):
        at = at[int(step) if step.isdigit() else step]
    assert at
    stored = client.post(path, json={**body, "profile": word})
    assert stored.status_code == 200, stored.text
    assert stored.json()["pipeline"] == sent
    again = client.post(path, json={**body, "pipeline": sent})
    assert again.json()["pipeline"] == sent


@pytest.mark.parametrize("field", ONLY_PLAIN)
def test_what_only_plain_stages_can_be_asked_is_named(client: httpx.Client, field: str) -> None:
    """And is no word of the costs."""
    path, body = ONLY_PLAIN[field]
    answer = client.post(path, json={**body, "pipeline": staging()})
    assert refused(answer) == f"/{field}"


def test_comparing_with_refragmentation_is_refused(client: httpx.Client) -> None:
    """As solving with it."""
    body = {"pipeline": staging(), "message_bytes": [64], "strategies": ["repeat"]}
    answer = client.post("/compare", json={**body, "allow_refragmentation": True})
    assert refused(answer) == "/allow_refragmentation"


@pytest.mark.parametrize("strategy", ["ramp", "ramp_up_down", "hierarchical", "eager", "pulses"])
def test_a_strategy_for_plain_stages_says_so(client: httpx.Client, strategy: str) -> None:
    """The strategy is at fault, and those that hold are named."""
    answer = client.post(
        "/optimize", json={"pipeline": staging(), "message_bytes": 64, "strategy": strategy}
    )
    document = answer.json()
    assert (answer.status_code, document["code"]) == (422, "strategy_declined")
    assert document["errors"][0]["pointer"] == "/strategy"
    assert "single, static, repeat, fixed, ramp_repeat, exact, auto" in document["detail"]


def test_the_strategy_of_machines_says_so_of_plain_stages(client: httpx.Client) -> None:
    """It is known, and declined."""
    answer = client.post(
        "/optimize", json={"pipeline": MYRINET, "message_bytes": 64, "strategy": "ramp_repeat"}
    )
    assert answer.json()["code"] == "strategy_declined"
    assert "lanes, delays, processors or windows" in answer.json()["detail"]


def test_an_answer_s_page_holds(client: httpx.Client) -> None:
    """It shows what there is, and says what it does not show; its files are there."""
    asked = {"pipeline": staging(), "message_bytes": 4096, "strategy": "repeat"}
    id = client.post("/optimize", json=asked).json()["id"]
    page = client.get(f"/ui/answers/{id}")
    assert page.status_code == 200
    assert "network, lane 1" in page.text
    for part in ("timeline", "cut", "why", "fragments", "counts", "alternatives", "sweep"):
        assert client.get(f"/ui/answers/{id}/parts/{part}").status_code == 200, part
    assert "needs plain stages" in client.get(f"/ui/answers/{id}/parts/why").text
    for file in ("schedule.svg", "schedule.csv", "schedule.json", "report.html"):
        assert client.get(f"/ui/answers/{id}/{file}").status_code == 200, file
    explained = client.get(f"/optimizations/{id}/explanation")
    assert explained.json()["code"] == "needs_plain_stages"


def test_more_lanes_than_a_picture_has_are_not_drawn(client: httpx.Client) -> None:
    """The page says so, and the times are in the file."""
    wide = {**LINE, "lanes": 200}
    asked = {"pipeline": {"stages": [wide]}, "message_bytes": 256, "static_bytes": 1}
    id = client.post("/optimize", json={**asked, "strategy": "static"}).json()["id"]
    page = client.get(f"/ui/answers/{id}")
    assert "these stages use 200" in page.text
    assert client.get(f"/ui/answers/{id}/schedule.svg").status_code == 422
    lines = client.get(f"/ui/answers/{id}/schedule.csv").text.splitlines()
    assert len(lines) == 1 + 256
    assert client.get(f"/ui/answers/{id}/report.html").status_code == 200


def test_a_profile_s_page_says_every_word_and_what_has_changed(client: httpx.Client) -> None:
    """Costs alone would be another profile."""
    made = client.post("/profiles", json={"name": "changed", "pipeline": staging()})
    assert made.json()["pipeline"] == staging()
    other = staging()
    other["stages"][1]["lanes"] = 4
    other["windows"].pop()
    client.put("/profiles/changed", json={"pipeline": other})
    page = client.get("/ui/profiles/changed").text
    assert "network handles 4 fragments at once, on lanes in turn" in page
    assert "device to host takes turns on copy engine" in page
    assert "at most 2 fragments from device to host to network" in page
    assert "network: lanes 4 instead of 2" in page
    assert "Compile one for" not in page
    assert page.count("needs plain stages") == 2
    assert "window removed: at most 4 MiB from network to host to device" in page
    revisions = client.get("/profiles/changed/revisions").json()["revisions"]
    assert [one["pipeline"] for one in revisions] == [staging(), other]
    plain = client.post("/profiles", json={"name": "plain-one", "pipeline": MYRINET})
    assert plain.status_code == 201
    assert "Compile one for" in client.get("/ui/profiles/plain-one").text
    assert client.get("/?profile=changed").status_code == 200


def test_a_profile_is_saved_with_an_answer(client: httpx.Client) -> None:
    """As it was asked about."""
    body = {"pipeline": staging(), "message_bytes": 64, "strategy": "repeat", "save_as": "kept"}
    answer = client.post("/optimize", json=body)
    assert answer.json()["profile"] == {"name": "kept", "revision": 1}
    assert client.get("/profiles/kept").json()["pipeline"] == staging()


# --- the command line -----------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a machine in a file, and a database of its own."""
    (tmp_path / "machine.json").write_text(json.dumps(staging()))
    (tmp_path / "plain.json").write_text(json.dumps(MYRINET))
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> tuple[int, str, str]:
    """The exit code of a command, and what it prints."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(words)
    return code, out.getvalue(), err.getvalue()


COMMANDS: dict[str, tuple[str, ...]] = {
    "model hide": ("--bytes", "4KiB", "--calculation", "1000"),
    "model thresholds": ("--bytes", "4KiB"),
    "model deliver": ("--bytes", "4KiB", "--rules", "same,same,same"),
    "crossover": ("plain.json",),
    "table": ("--to", "4KiB"),
    "export": ("--target", "ucx"),
    "verify": ("--stage", "pipe", "--stage", "pipe", "--stage", "pipe", "--bytes", "4KiB"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_for_plain_stages_names_the_word(here: Path, command: str) -> None:
    """Of a file with the field, of a profile with the profile."""
    code, _, err = run(*command.split(), "machine.json", *COMMANDS[command])
    assert code == 3
    assert "pipeline.stages.0.processor: " in err
    assert "needs plain stages" in err
    assert run("profiles", "save", "mine", "machine.json")[0] == 0
    code, _, err = run(*command.split(), "mine", *COMMANDS[command])
    assert (code, "needs plain stages" in err) == (3, True)


@pytest.mark.parametrize(
    "words",
    [
        ("optimize", "--bytes", "4KiB", "--strategy", "repeat"),
        ("compare", "--bytes", "4KiB", "--strategies", "repeat,fixed"),
        ("simulate", "--bytes", "4KiB", "--repeat", "1KiB", "--timeline", "drawn.svg"),
        ("audit", "--setting", "16", "--max-message", "32", "--time-limit", "2"),
        ("profiles save", "--json"),
    ],
)
def test_a_command_that_takes_machines_answers_about_them(
    here: Path, words: tuple[str, ...]
) -> None:
    """The file's windows come through."""
    name, *rest = words
    source = ["mine", "machine.json"] if name.startswith("profiles") else ["machine.json"]
    code, out, err = run(*name.split(), *source, *rest, *["--json"] * ("--json" not in rest))
    assert code == 0, err
    assert json.loads(out)["pipeline"] == staging()


def test_a_file_may_have_units(here: Path) -> None:
    """As those of costs."""
    machine = staging()
    machine["stages"][1] |= {"delay_us": "3 us", "shared_ns_per_byte": "0.01 ns/B"}
    machine["windows"][1] |= {"bytes": "4 MiB", "return_us": "1 us"}
    (here / "units.json").write_text(json.dumps(machine))
    code, out, err = run("profiles", "save", "mine", "units.json", "--json")
    assert code == 0, err
    assert json.loads(out)["pipeline"] == staging()


def test_without_a_list_machines_are_compared_by_what_holds_for_them(here: Path) -> None:
    """Of a file and of a profile; with a size to repeat also by that."""
    (here / "small.json").write_text(json.dumps(WORDS["stages.1.lanes"]))
    words = ("--bytes", "64", "--time-limit", "20", "--json")
    expected = ["single", "repeat", "fixed", "ramp_repeat", "exact"]
    code, out, err = run("compare", "small.json", *words)
    assert code == 0, err
    assert [row["strategy"] for row in json.loads(out)["rows"]] == expected
    assert run("profiles", "save", "small", "small.json")[0] == 0
    code, out, _ = run("compare", "small", *words, "--static-bytes", "16")
    assert [row["strategy"] for row in json.loads(out)["rows"]] == [*expected, "static"]


def test_a_backup_holds_machines(here: Path) -> None:
    """And a restore puts them back."""
    assert run("profiles", "save", "mine", "machine.json")[0] == 0
    assert run("admin", "backup", "kept.backup")[0] == 0
    assert run("profiles", "delete", "mine", "--yes")[0] == 0
    code, _, err = run("admin", "restore", "kept.backup", "--replace")
    assert code == 0, err
    code, out, _ = run("profiles", "show", "mine", "--json")
    assert json.loads(out)["pipeline"] == staging()
