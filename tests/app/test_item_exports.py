"""A cut between items as a program's setting: of a stored answer over HTTP, and by optimize."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from app.cli import main
from exports.targets.item_cuts import ITEM_TARGETS
from tests.app.serving import MYRINET
from tests.support.item_bodies import Body, question, small, stages

Run = Callable[..., tuple[int, str, str]]
NAMES = [target.name for target in ITEM_TARGETS]
RULES = {"slime": "before", "verl": "before"}
LAYERS: Body = question(
    stages((2000, 0.08)), {"repeat": 80, "bytes": 2**25, "ready_every_us": 4322}
)


def answer_id(client: httpx.Client, body: Body) -> str:
    """The stored answer's."""
    found = client.post("/optimize", json=body)
    assert found.status_code == 200, found.text
    identifier: str = found.json()["id"]
    return identifier


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """main(argv) in a folder with a question about layers: exit code, output, errors."""
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'sluice.db'}")
    monkeypatch.chdir(tmp_path)
    Path("layers.json").write_text(json.dumps(LAYERS))
    Path("whole.json").write_text(json.dumps({"pipeline": MYRINET, "message_bytes": 64}))

    def ran(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        found = capsys.readouterr()
        return code, found.out, " ".join(found.err.split())

    return ran


@pytest.mark.parametrize("name", NAMES)
def test_both_doors_write_the_same(client: httpx.Client, run: Run, name: str) -> None:
    """A line that sets it, below what it takes; the command line fills by the target's rule."""
    fill = {"rule": RULES.get(name, "until")}
    address = f"/optimizations/{answer_id(client, {**LAYERS, 'fill': fill})}/exports/{name}"
    found = client.get(address)
    assert found.status_code == 200, found.text
    assert found.headers["content-type"] == "text/plain; charset=utf-8"
    assert f'filename="sluice-{name}.' in found.headers["content-disposition"]
    assert "over the best cut" in found.text
    tag = found.headers["etag"]
    assert client.get(address, headers={"if-none-match": tag}).status_code == 304
    code, out, err = run("optimize", "layers.json", "--target", name)
    assert (code, out, err) == (0, found.text, "")


def test_a_layer_at_a_time_is_not_what_is_written(client: httpx.Client) -> None:
    """Two layers a push are the best number."""
    found = client.get(f"/optimizations/{answer_id(client, LAYERS)}/exports/lmcache").text
    assert found.splitlines()[-1] == "--layerwise-batch 2"


def test_options_are_those_of_the_target(client: httpx.Client, run: Run) -> None:
    address = f"/optimizations/{answer_id(client, LAYERS)}/exports/torch"
    found = client.get(address, params={"option": "form:cap"}).text
    assert "ddp_keywords = {'bucket_cap_mb': " in found
    assert run("optimize", "layers.json", "--target", "torch", "--option", "form=cap")[1] == found


def test_a_long_answer_is_written_in_its_turn(client: httpx.Client) -> None:
    """Ten thousand items: the same text, beside the loop that serves others."""
    sizes = [4 * (1 + place % 97) for place in range(10_000)]
    items = {"bytes": sizes, "ready_us": [0.2 * place for place in range(10_000)]}
    identifier = answer_id(client, question(stages((50, 1)), items))
    found = client.get(f"/optimizations/{identifier}/exports/megatron")
    assert "# 10000 items, " in found.text
    assert client.get(f"/optimizations/{identifier}/exports/megatron").content == found.content


def test_a_saved_profile_is_named(client: httpx.Client) -> None:
    identifier = answer_id(client, {**LAYERS, "save_as": "layer-pushes"})
    found = client.get(f"/optimizations/{identifier}/exports/torch").text
    assert "# made by Sluice from profile 'layer-pushes', revision 1\n" in found


@pytest.mark.parametrize(
    ("name", "params", "code", "pointer"),
    [
        ("ucx", {}, "not_found", None),
        ("slime", {}, "strategy_declined", "/target"),
        ("vllm", {"option": "backend:ipc"}, "strategy_declined", "/target"),
        ("torch", {"option": "form:both"}, "inconsistent_input", "/option"),
        ("torch", {"option": "shape:cap"}, "inconsistent_input", "/option"),
        ("torch", {"option": ["form:cap", "form:list"]}, "inconsistent_input", "/option"),
        ("torch", {"option": "form"}, "invalid_input", "/option/0"),
        ("torch", {"form": "cap"}, "invalid_input", "/form"),
    ],
)
def test_what_cannot_be_written_is_refused_by_name(
    client: httpx.Client, name: str, params: Body, code: str, pointer: str | None
) -> None:
    address = f"/optimizations/{answer_id(client, LAYERS)}/exports/{name}"
    found = client.get(address, params=params).json()
    assert found["code"] == code, found
    if pointer is not None:
        assert [each["pointer"] for each in found["errors"]] == [pointer]


def test_an_answer_without_items_is_declined(client: httpx.Client) -> None:
    identifier = answer_id(client, {"pipeline": MYRINET, "message_bytes": 64})
    found = client.get(f"/optimizations/{identifier}/exports/torch").json()
    assert (found["code"], found["errors"][0]["pointer"]) == ("strategy_declined", "/target")
    assert "exports of profiles" in found["detail"]
    assert client.get(f"/optimizations/{'0' * 32}/exports/torch").status_code == 404


def test_another_first_cap_is_declined(client: httpx.Client) -> None:
    body = small(fill={"rule": "until", "first_bytes": 4})
    address = f"/optimizations/{answer_id(client, body)}/exports/torch"
    assert client.get(address).status_code == 200  # a list makes any cut
    found = client.get(address, params={"option": "form:cap"}).json()
    assert "without first_bytes" in found["detail"]


@pytest.mark.parametrize(
    ("words", "code", "stated"),
    [
        (("layers.json", "--target", "torc"), 2, "did you mean torch?"),
        (("layers.json", "--option", "form=cap"), 2, "--option is of a --target"),
        (("layers.json", "--target", "torch", "--option", "form=both"), 2, "one of list, cap"),
        (("layers.json", "--target", "torch", "--json"), 2, "expected --json without it"),
        (("layers.json", "--target", "slime", "--fill", "until"), 3, "the fill rule before"),
        (("whole.json", "--target", "torch"), 2, "expected --items"),
    ],
)
def test_misuse_of_a_target_is_one_line(
    run: Run, words: tuple[str, ...], code: int, stated: str
) -> None:
    found, out, err = run("optimize", *words)
    assert (found, out) == (code, ""), err
    assert stated in err


def test_the_door_is_named_where_export_is_asked(run: Run) -> None:
    code, _, err = run("export", "whole.json", "--target", "torch")
    assert code == 2
    assert "sluice optimize SOURCE --items FILE --target torch" in err


def test_the_help_names_every_target(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["optimize", "--help"])
    assert left.value.code == 0
    words = capsys.readouterr().out.partition("--target NAME")[2].partition("--option")[0]
    assert [name for name in NAMES if name in words] == NAMES
