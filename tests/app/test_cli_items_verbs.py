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
