"""POST /crossover, sluice crossover and its page: one answer, and every refusal."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main
from app.console import running
from app.schemas.base import read_output
from contract.crossover import CrossoverOut
from tests.support.in_process_engine import InProcessEngine

# openucx/ucx, pull request 5132: one message by either protocol.
EAGER = {"pipeline": {"stages": [{"name": "eager", "overhead_us": 0.82, "ns_per_byte": 2.66}]}}
RENDEZVOUS = {
    "pipeline": {"stages": [{"name": "rendezvous", "overhead_us": 12.84, "ns_per_byte": 0.0346}]}
}
ASKED = {"a": EAGER, "b": RENDEZVOUS, "current_bytes": 262144}
SIZES = [2**power for power in range(4, 21)]


def latencies(overhead_us: float, ns_per_byte: float, sizes: list[int], wave: float = 0.02) -> str:
    """An OSU file of latencies, which differ from their line by a share that alternates."""
    rows = [
        f"{size:<12d}{(overhead_us + ns_per_byte * size / 1000) * (1 + wave * (-1) ** place):12.4f}"
        for place, size in enumerate(sizes)
    ]
    return "\n".join(("# OSU MPI Latency Test v5.8", "# Size          Latency (us)", *rows, ""))


def measured(text: str) -> dict[str, Any]:
    """A file of measurements as a source."""
    return {"measurements": {"content": text}}


def answer(client: httpx.Client, **more: Any) -> dict[str, Any]:
    response = client.post("/crossover", json={**ASKED, **more})
    assert response.status_code == 200, response.text
    read_output(CrossoverOut, response.content)
    found: dict[str, Any] = response.json()
    return found


def test_the_public_figures(client: httpx.Client) -> None:
    """4.6 KB, and 32 times as long just below UCX's default."""
    found = answer(client)
    assert found["verdict"] == "one"
    (place,) = found["crossovers"]
    assert f"{place['at_bytes'] / 1000:.1f}" == "4.6"
    assert found["advised"]["threshold_bytes"] == place["at_bytes"]
    assert found["current"]["worst_bytes"] == 262143
    assert round(found["current"]["more_by"] + 1.0) == 32
    assert [run["faster"] for run in found["runs"]] == ["a", "b"]
    assert [one["code"] for one in found["warnings"]] == ["costs_taken_as_exact"]


def test_files_of_latencies_are_enough(client: httpx.Client) -> None:
    """Their times decide between the sizes that both have, and the crossover has its interval."""
    a, b = (latencies(one, other, SIZES) for one, other in ((0.82, 2.66), (12.84, 0.0346)))
    found = answer(client, a=measured(a), b=measured(b), a_name="eager.out")
    assert (found["a"]["name"], found["b"]["name"]) == ("eager.out", "path B")
    assert found["a"]["measured_bytes"] == [SIZES[0], SIZES[-1]]
    (place,) = found["crossovers"]
    low, high = place["between_bytes"]
    assert 4096 < low <= place["at_bytes"] <= high <= 8192
    assert place["basis"] == "measured"
    assert [one["message_bytes"] for one in found["timed_by_both"]] == SIZES
    assert "measured_decides" in [one["code"] for one in found["warnings"]]


def test_a_file_and_a_profile(client: httpx.Client) -> None:
    """A stored profile has its revision; a path has its name."""
    found = answer(client, a={"profile": "myrinet-gam"}, b=measured(latencies(1.0, 0.5, SIZES)))
    assert found["a"]["profile"] == {"name": "myrinet-gam", "revision": 1}
    assert found["a"]["name"] == "myrinet-gam"
    assert found["b"]["profile"] is None


@pytest.mark.parametrize(
    ("more", "status", "pointer", "words"),
    [
        ({"a": {}}, 422, "/a/pipeline", "path A: expected exactly one"),
        ({"b": {"profile": "none-such"}}, 404, "", "path B: there is no"),
        ({"b": {"fit_id": "0" * 32}}, 404, "", "path B"),
        ({"b": measured("nothing")}, 422, "/b/measurements", "path B: the file"),
        ({"min_message_bytes": 9, "max_message_bytes": 8}, 422, "/min_message_bytes", "expected"),
        ({"current_bytes": 0}, 422, "/current_bytes", ""),
        ({"target": "ucx"}, 422, "/target", ""),
        ({"target": "ucx-rndv-thresh", "form": "xml"}, 422, "/form", "conf, shell"),
        ({"target": "ucx-rndv-thresh", "parameter": "x"}, 422, "/parameter", "no option"),
        ({"target": "mpich-eager-limit", "a": RENDEZVOUS, "b": RENDEZVOUS}, 422, "/target", ""),
    ],
)
def test_refusals_name_the_path_and_its_field(
    client: httpx.Client, more: dict[str, Any], status: int, pointer: str, words: str
) -> None:
    response = client.post("/crossover", json={**ASKED, **more})
    assert response.status_code == status, response.text
    problem = response.json()
    if status == 422:
        assert pointer in [one["pointer"] for one in problem["errors"]], problem
    assert words in json.dumps(problem, ensure_ascii=False)


def test_bandwidths_alone_are_no_path(client: httpx.Client) -> None:
    """What one message takes is missing, and that is said."""
    text = "# OSU MPI Bandwidth Test v5.8\n# Size          Bandwidth (MB/s)\n" + "".join(
        f"{size} {size / (1.0 + size * 0.0001):.4f}\n" for size in SIZES
    )
    response = client.post("/crossover", json={**ASKED, "a": measured(text)})
    assert response.status_code == 422
    assert "latencies of unpipelined messages are missing" in response.json()["detail"]


def test_a_setting_says_what_it_is_made_of(client: httpx.Client) -> None:
    """Both paths, the crossover, and today's loss, in comments."""
    found = answer(client, target="openmpi-eager-limit", parameter="btl_vader_eager_limit")
    at = found["crossovers"][0]["at_bytes"]
    text = found["setting"]["text"]
    assert f"\nbtl_vader_eager_limit = {at - 1}\n" in text
    assert "below it path A, from it on path B" in text
    assert "today's threshold of 256 KiB" in re.sub(r"\n#\s+", " ", text)
    assert found["setting"]["file_name"] == "openmpi-eager-limit.conf"


def test_paths_that_are_named_the_other_way_round_have_no_setting(client: httpx.Client) -> None:
    """No threshold of the program has the second path below it."""
    swapped = {"a": RENDEZVOUS, "b": EAGER}
    assert "paths_swapped" in [one["code"] for one in answer(client, **swapped)["warnings"]]
    refused = client.post("/crossover", json={**ASKED, **swapped, "target": "ucx-rndv-thresh"})
    assert refused.status_code == 422
    assert refused.json()["code"] == "strategy_declined"
    assert "path B is faster below" in refused.json()["detail"]
    assert "name them the other way round" in refused.json()["detail"]


@pytest.mark.parametrize("field", ["form", "parameter"])
def test_how_a_setting_is_written_needs_a_target(
    client: httpx.Client, here: Path, capsys: pytest.CaptureFixture[str], field: str
) -> None:
    """The field is named at every door."""
    refused = client.post("/crossover", json={**ASKED, field: "shell"})
    assert refused.status_code == 422
    assert [one["pointer"] for one in refused.json()["errors"]] == [f"/{field}"]
    files = [str(here / name) for name in ("eager.out", "rendezvous.out")]
    assert main(["crossover", *files, f"--{field}", "shell"]) == 2
    assert f"{field}: says how the setting of a target is written" in capsys.readouterr().err
    page = client.get("/ui/crossover", params={"a": "trapeze", "b": "trapeze", field: "shell"})
    assert page.status_code == 422
    assert field in html.unescape(page.text)


# --- the terminal ---------------------------------------------------------------------------------


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with both files; commands compute in this process."""
    monkeypatch.setattr(running, "ProcessEngine", InProcessEngine, raising=False)
    for name, costs in (("eager.out", (0.82, 2.66)), ("rendezvous.out", (12.84, 0.0346))):
        (tmp_path / name).write_text(latencies(*costs, SIZES))
    return tmp_path


def test_the_command_prints_what_the_service_answers(
    client: httpx.Client, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a document, and for a person."""
    words = ["crossover", str(here / "eager.out"), str(here / "rendezvous.out")]
    assert main([*words, "--current", "256KiB", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    texts = [(here / name).read_text() for name in ("eager.out", "rendezvous.out")]
    names = {"a_name": "eager.out", "b_name": "rendezvous.out"}
    assert printed == answer(client, a=measured(texts[0]), b=measured(texts[1]), **names)
    assert main([*words, "--current", "256KiB"]) == 0
    shown = capsys.readouterr().out
    first = re.sub(r"\s+", " ", shown)
    assert re.match(r"From 4 \d{3} B on rendezvous\.out is faster, below that eager\.out \(", first)
    assert "today's" in shown


def test_the_command_prints_a_setting_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For a file that a program reads."""
    words = ["crossover", str(here / "eager.out"), str(here / "rendezvous.out")]
    assert main([*words, "--target", "ucx-rndv-thresh", "--form", "shell"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if not line.startswith("#")] == [lines[-1]]
    assert re.fullmatch(r"export UCX_RNDV_THRESH=4\d{3}", lines[-1])


def test_standard_input_is_one_path(capsys: pytest.CaptureFixture[str]) -> None:
    """It is read once."""
    assert main(["crossover", "-", "-"]) == 2
    assert "for one path alone" in capsys.readouterr().err


def test_a_threshold_of_nothing_is_refused_by_its_option(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the words of the command line."""
    files = [str(here / name) for name in ("eager.out", "rendezvous.out")]
    assert main(["crossover", *files, "--current", "0"]) == 2
    assert "error: --current: expected a number >= 1" in capsys.readouterr().err


def test_rows_of_both_files_are_chosen(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of two runs is refused with an option that this command has."""
    paths = {"eager.out": (0.82, 2.66), "rendezvous.out": (12.84, 0.0346)}
    files = []
    for name, (overhead_us, slope) in paths.items():
        file = here / f"two-{name}"
        runs = (latencies(overhead_us * times, slope * times, SIZES) for times in (1.0, 3.0))
        file.write_text("".join(runs))
        files.append(str(file))
    assert main(["crossover", *files]) == 2
    refused = capsys.readouterr().err
    assert "--run 1 or --run 2" in refused
    assert "has no --run" not in refused
    assert main(["crossover", *files, "--run", "1", "--json"]) == 0
    of_one = json.loads(capsys.readouterr().out)
    plain = [str(here / name) for name in paths]
    assert main(["crossover", *plain, "--json"]) == 0
    assert of_one["crossovers"] == json.loads(capsys.readouterr().out)["crossovers"]


def test_columns_of_both_files_are_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables of any tool."""
    files = []
    for name, (overhead_us, slope) in (("a.csv", (0.82, 0.00266)), ("b.csv", (12.84, 0.0000346))):
        rows = [f"{size},x,{overhead_us + slope * size:.6f}" for size in SIZES]
        (here / name).write_text("\n".join(("part,tag,took", *rows, "")))
        files.append(str(here / name))
    words = ["--columns", "size=part,time=took:us", "--json"]
    assert main(["crossover", *files, *words]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "one"


def test_rows_are_of_files(capsys: pytest.CaptureFixture[str]) -> None:
    """And of no profiles."""
    assert main(["crossover", "trapeze", "myrinet-gam", "--run", "1"]) == 2
    assert "--run: said of a file of measurements" in capsys.readouterr().err


# --- the page -------------------------------------------------------------------------------------


def test_the_page_has_the_answer_and_the_command(client: httpx.Client) -> None:
    """And the setting where one is asked for."""
    asked = {"a": "myrinet-gam", "b": "trapeze", "current": "64 KiB", "target": "ucx-rndv-thresh"}
    page = client.get("/ui/crossover", params=asked)
    assert page.status_code == 200, page.text
    text = html.unescape(page.text)
    assert "sluice crossover myrinet-gam trapeze --current 64KiB --target ucx-rndv-thresh" in text
    found = answer(
        client,
        **{place: {"profile": asked[place]} for place in ("a", "b")},
        current_bytes=65536,
        target="ucx-rndv-thresh",
    )
    assert found["setting"]["text"] in text


def test_the_page_says_what_is_wrong_at_its_field(client: httpx.Client) -> None:
    """A profile that is not there."""
    page = client.get("/ui/crossover", params={"a": "none-such", "b": "trapeze"})
    assert page.status_code == 422
    assert "path A: there is no hardware profile" in html.unescape(page.text)
