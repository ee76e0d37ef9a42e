"""sluice compare, audit and model hide with items of a file, and of a request."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cli import main
from tests.support.item_bodies import small

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """main(argv) in an empty folder, with a database of its own: exit code, output, errors."""
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'sluice.db'}")
    monkeypatch.chdir(tmp_path)

    def ran(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        found = capsys.readouterr()
        return code, found.out, found.err

    return ran


# --- compare --------------------------------------------------------------------------------------


def test_the_command_prints_a_row_a_way(run: Run) -> None:
    Path("asked.json").write_text(json.dumps({"pipeline": small()["pipeline"], "message_bytes": 9}))
    Path("items.csv").write_text("bytes,ready (us)\n4,1\n1,2\n1,3\n2,5\n4,9\n")
    words = ("compare", "asked.json", "--items", "items.csv", "--cap", "4", "6")
    code, out, err = run(*words)
    assert code == 0, err
    assert out.startswith("5 items, 12 B, through 1 stage")
    assert "PyTorch's" in out
    code, out, _ = run(*words, "--json", "--fill", "before")
    rows = json.loads(out)["rows"]
    assert [row["rule"] for row in rows if row["way"] == "cap"] == ["before"] * 2
    code, _, err = run(*words, "--bytes", "64")
    assert code == 3
    assert "message_bytes does not go with items" in " ".join(err.split())


def test_a_request_file_has_items_too(run: Run) -> None:
    Path("asked.json").write_text(json.dumps(small()))
    code, out, err = run("compare", "asked.json", "--json")
    assert code == 0, err
    assert json.loads(out)["rows"][0]["latency_us"] == 18.0


# --- audit ----------------------------------------------------------------------------------------


def written() -> tuple[str, ...]:
    """Write stages and items beside each other; the words that name them."""
    Path("stages.json").write_text(json.dumps({"pipeline": small()["pipeline"]}))
    Path("items.csv").write_text("name,bytes,ready (us)\na,4,1\nb,1,2\nc,1,3\nd,2,5\ne,4,9\n")
    return "stages.json", "--items", "items.csv"


def test_an_audit_of_a_cap_ends_by_its_limit(run: Run) -> None:
    words = ("audit", *written(), "--current", "4")
    code, out, err = run(*words, "--max-regret", "5%")
    assert code == 7, err
    assert out.startswith("4 B, filled until")
    assert "b to d" in out
    assert "What to set:" in out
    assert run(*words, "--max-regret", "6%")[0] == 0
    code, out, _ = run(*words, "--fill", "until", "--first-bytes", "6", "--json")
    assert code == 0
    assert json.loads(out)["fill"] == {"rule": "until", "first_bytes": 6}
    code, out, _ = run("audit", *written(), "--setting", "whole")
    assert code == 0
    assert out.startswith("one fragment")


def test_the_cap_in_use_is_said_once(run: Run) -> None:
    words = ("audit", *written(), "--current", "4", "--setting", "4")
    code, _, err = run(*words)
    assert code == 2
    assert "--current and --setting say the same" in " ".join(err.split())


def test_several_sequences_are_a_request(run: Run) -> None:
    body = {
        "pipeline": small()["pipeline"],
        "sequences": [{"items": small()["items"], "weight": 2}, {"items": {"bytes": [3, 3]}}],
    }
    Path("asked.json").write_text(json.dumps(body))
    code, out, err = run("audit", "asked.json", "--current", "4")
    assert code == 0, err
    assert "mean regret" in out
    assert "The fragments of sequence 2 that it makes:" in out


def test_an_audit_of_items_refuses_what_is_of_bytes(run: Run) -> None:
    code, _, err = run("audit", *written(), "--current", "4", "--min-message", "4")
    assert code == 3
    assert "min_message_bytes does not go with items" in " ".join(err.split())


# --- hide -----------------------------------------------------------------------------------------


def test_items_are_hidden_behind_their_ready_times(run: Run) -> None:
    words = ("model", "hide", *written(), "--current", "4")
    code, out, err = run(*words)
    assert code == 0, err
    assert out.startswith("Set bucket_cap_mb_list=")
    assert "by itself, 35.7 % of it hidden; 9.000 µs are not" in " ".join(out.split())
    assert "which makes the items" in out
    code, out, _ = run(*words, "--fragment-overhead", "1", "--json")
    assert code == 0
    assert json.loads(out)["fragment_overhead_us"] == 1.0
    code, _, err = run(*words, "--plot", "drawn.svg")
    assert code == 2
    assert "pictures are of a message that may be cut at any byte" in " ".join(err.split())


def test_items_are_loaded_by_a_calculation(run: Run) -> None:
    Path("asked.json").write_text(json.dumps({"pipeline": small()["pipeline"], "message_bytes": 9}))
    Path("items.csv").write_text("bytes\n4\n2\n1\n1\n4\n")
    words = ("model", "hide", "asked.json", "--items", "items.csv", "--loading")
    code, out, err = run(*words, "--calculation", "12")
    assert code == 0, err
    assert "which takes the items" in out
    code, _, err = run(*words, "--calculation", "12", "--both-ways")
    assert code == 3
    assert "exchange does not go with items" in " ".join(err.split())


# --- the limit on items of a fragment -------------------------------------------------------------


@pytest.mark.parametrize("words", [("compare",), ("model", "hide"), ("optimize",)])
def test_every_command_takes_a_limit_on_the_items_of_a_fragment(
    run: Run, words: tuple[str, ...]
) -> None:
    """Beside items; without any it is refused, as over HTTP."""
    asked = (*words, *written())
    code, out, err = run(*asked, "--max-fragment-items", "2", "--json")
    assert code == 0, err
    assert json.loads(out)["constraints"]["max_fragment_items"] == 2
    plain = tuple(word for word in asked if word not in ("--items", "items.csv"))
    calculates = ("--calculation", "9") if "hide" in words else ()
    code, _, err = run(*plain, *calculates, "--bytes", "12", "--max-fragment-items", "2")
    assert code != 0
    assert "max_fragment_items goes with items alone" in " ".join(err.split())
