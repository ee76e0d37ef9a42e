"""sluice optimize and simulate with items of a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from tests.support.item_bodies import ORACLES, Body, small

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


def table_of(items: Body) -> str:
    """The file of these items."""
    sizes = items["bytes"] if "repeat" not in items else [items["bytes"]] * items["repeat"]
    ready = items.get("ready_us")
    if every_us := items.get("ready_every_us"):
        ready = [every_us * place for place in range(1, len(sizes) + 1)]
    if ready is None:
        return "\n".join(["bytes", *map(str, sizes)])
    return "\n".join(
        ["bytes,ready_us", *(f"{size},{us}" for size, us in zip(sizes, ready, strict=True))]
    )


def written(body: Body) -> None:
    """Write the stages and the items of a question beside each other."""
    Path("stages.json").write_text(json.dumps({"pipeline": body["pipeline"]}))
    Path("items.csv").write_text(table_of(body["items"]))


@pytest.mark.parametrize("rule", ["until", "before"])
@pytest.mark.parametrize("case", range(len(ORACLES)))
def test_the_oracle_cases_are_answered(run: Run, case: int, rule: str) -> None:
    asked, latency_us, ends, caps = ORACLES[case]
    written(asked)
    limit = asked.get("constraints", {}).get("max_fragment_bytes")
    limits = () if limit is None else ("--max-fragment-bytes", str(limit))
    words = ("optimize", "stages.json", "--items", "items.csv", "--fill", rule, "--json", *limits)
    code, out, err = run(*words)
    assert code == 0, err
    answer: dict[str, Any] = json.loads(out)
    assert (answer["latency_us"], answer["status"]) == (latency_us, "optimal")
    assert list(accumulate(answer["fragment_items"]))[-1] == ends[-1]
    assert (answer["best_cap"]["latency_us"], answer["best_cap"]["layouts"]) == caps[rule]


def test_the_first_line_says_what_to_set(run: Run) -> None:
    written(small())
    words = ("optimize", "stages.json", "--items", "items.csv", "--current", "4")
    code, out, _ = run(*words, "--first-bytes", "4")
    assert code == 0
    assert out.startswith("Set bucket_cap_mb_list=[")
    first = " ".join(out.split("\n\n")[0].split())
    assert first.endswith("faster than your 4 B.")
    assert "your cap" in out
    assert "what limits" in out


def test_a_request_file_has_items_too(run: Run) -> None:
    """Asked again, the stored answer is shown as it was given."""
    Path("asked.json").write_text(json.dumps(small(save_as="wire")))
    code, out, err = run("optimize", "asked.json", "--json")
    assert code == 0, err
    answer = json.loads(out)
    assert answer["fragment_items"] == [2, 3]
    code, shown, _ = run("answers", "show", answer["id"])
    assert code == 0
    assert "Set bucket_cap_mb_list=[" in shown
    written(small())
    code, out, _ = run("optimize", "wire", "--items", "items.csv", "--json")
    assert json.loads(out)["latency_us"] == 18.0


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--bytes", "64"), "message_bytes"),
        (("--timeline", "drawn.svg"), "timeline"),
        (("--sensitivities",), "sensitivities"),
        (("--alignment-bytes", "4"), "alignment_bytes"),
        (("--strategy", "repeat"), "strategies"),
        (("--robust",), "robust"),
    ],
)
def test_what_items_do_not_go_with_is_declined_by_name(
    run: Run, words: tuple[str, ...], field: str
) -> None:
    written(small())
    code, _, err = run("optimize", "stages.json", "--items", "items.csv", *words)
    assert code == 3
    assert field in err


def test_a_table_without_a_header_is_refused(run: Run) -> None:
    written(small())
    Path("items.csv").write_text("4\n1\n")
    code, _, err = run("optimize", "stages.json", "--items", "items.csv")
    assert code == 2
    assert "a header line" in err


@pytest.mark.parametrize(
    "words",
    [
        ("table", "asked.json", "--to", "4KiB"),
        ("export", "asked.json", "--target", "ucx"),
    ],
)
def test_commands_that_take_no_items_say_so(run: Run, words: tuple[str, ...]) -> None:
    """None leaves the items of a request file out."""
    Path("asked.json").write_text(json.dumps(small()))
    code, _, err = run(*words)
    assert code == 3, err
    assert "only optimize, simulate, compare, audit and hide take items" in " ".join(err.split())


# --- simulate -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", range(len(ORACLES)))
def test_a_cut_takes_what_the_oracle_says(run: Run, case: int) -> None:
    asked, latency_us, ends, _ = ORACLES[case]
    written(asked)
    cut = ",".join(map(str, ends))
    words = ("simulate", "stages.json", "--items", "items.csv", "--cut", cut)
    code, out, err = run(*words, "--json")
    assert code == 0, err
    assert json.loads(out)["latency_us"] == latency_us
    code, out, _ = run(*words)
    assert code == 0
    assert "what limits" in out


def test_a_cap_is_filled_by_the_rule(run: Run) -> None:
    written(small())
    words = ("simulate", "stages.json", "--items", "items.csv", "--cap", "5", "--json")
    assert json.loads(run(*words)[1])["cut"] == [2, 5]
    assert json.loads(run(*words, "--fill", "before")[1])["cut"] == [2, 4, 5]
    assert json.loads(run(*words, "--first-bytes", "4")[1])["cut"] == [1, 5]


@pytest.mark.parametrize(
    ("words", "code", "field"),
    [
        (("--cut", "2,4"), 2, "last item"),
        (("--cut", "5,2"), 2, "last item"),
        (("--cut", "2,2,5"), 2, "at least one item"),
        (("--cut", "2,5", "--cap", "4"), 2, "exactly one of cut, cap_bytes"),
        ((), 2, "exactly one of cut, cap_bytes"),
        (("--cut", "2,5", "--fill", "until"), 2, "fill"),
        (("--cut", "2,5", "--bytes", "12"), 3, "message_bytes"),
        (("--cap", "4", "--repeat", "4"), 3, "repeat"),
        (("--cap", "4", "--fragments", "4,8"), 3, "fragment"),
        (("--cap", "4", "--timeline", "drawn.svg"), 3, "timeline"),
    ],
)
def test_cuts_that_are_none_are_refused(
    run: Run, words: tuple[str, ...], code: int, field: str
) -> None:
    written(small())
    found, _, err = run("simulate", "stages.json", "--items", "items.csv", *words)
    assert found == code, err
    assert field in " ".join(err.split())


def test_a_cut_of_items_needs_items(run: Run) -> None:
    written(small())
    code, _, err = run("simulate", "stages.json", "--bytes", "12", "--repeat", "4", "--cut", "2,5")
    assert code == 2
    assert "items alone" in " ".join(err.split())
