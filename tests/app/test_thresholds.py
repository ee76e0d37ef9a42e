"""POST /thresholds, sluice model thresholds and deliver: one answer, and every refusal."""

from __future__ import annotations

import base64
import html
import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from analysis.thresholds import price_thresholds
from app.cli import main
from app.console import running
from app.schemas.base import dump_json, parse_json, read_output
from app.schemas.stages import asked_pipeline
from app.verbs.thresholds.answer import priced
from app.verbs.thresholds.page import views
from app.verbs.thresholds.request import grid_question
from contract.limits import MAX_MESSAGE_BYTES
from contract.thresholds import ThresholdsIn, ThresholdsOut
from tests.app.serving import MYRINET
from tests.support.in_process_engine import InProcessEngine

ASKED = {"profile": "trapeze", "message_bytes": [8192], "stages": [1, 2], "sizes": [32, 64, 512]}


def answer(client: httpx.Client, **more: Any) -> dict[str, Any]:
    response = client.post("/thresholds", json={**ASKED, **more})
    assert response.status_code == 200, response.text
    read_output(ThresholdsOut, response.content)
    found: dict[str, Any] = response.json()
    return found


def test_the_best_of_the_choices(client: httpx.Client) -> None:
    found = answer(client)
    (message,) = found["messages"]
    assert message["best_bytes"] == [64, 32]
    assert message["best_us"] == pytest.approx(177.6604, abs=1e-4)
    assert message["latencies_us"][found["choices"].index([512, 512])] == pytest.approx(181.1164)
    assert found["profile"] == {"name": "trapeze", "revision": 1}
    assert found["one"]["sizes_bytes"] == [64, 32]
    assert found["one"]["mean_regret"] == 0.0
    assert (found["cut_off"], found["warnings"]) == (False, [])


def test_a_pipeline_and_all_stages_alike(client: httpx.Client) -> None:
    body = {"pipeline": MYRINET, "message_bytes": [4096, 64], "rule": "static"}
    response = client.post("/thresholds", json=body)
    found = response.json()
    assert found["choices"] == [[2**power] for power in range(13)]
    assert found["stages"] is None
    assert found["messages"][0]["best_bytes"] == [1024]


@pytest.mark.parametrize(
    ("more", "status", "pointer", "words"),
    [
        ({"pipeline": MYRINET}, 422, "/pipeline", "exactly one"),
        ({"profile": None}, 422, "/pipeline", "exactly one"),
        ({"profile": "none-such"}, 404, "", "no hardware profile"),
        ({"message_bytes": []}, 422, "/message_bytes", "at least 1"),
        ({"message_bytes": [0]}, 422, "/message_bytes/0", ">= 1"),
        ({"message_bytes": [MAX_MESSAGE_BYTES + 1]}, 422, "/message_bytes/0", "<="),
        ({"message_bytes": [1.5]}, 422, "/message_bytes/0", "whole"),
        ({"rule": "planned"}, 422, "/rule", "static"),
        ({"stages": []}, 422, "/stages", "at least 1"),
        ({"stages": [3]}, 422, "/stages/0", "0 to 2"),
        ({"stages": [-1]}, 422, "/stages/0", ">= 0"),
        ({"stages": [1, 1]}, 422, "/stages", "different"),
        ({"sizes": [0]}, 422, "/sizes/0", ">= 1"),
        ({"sizes": [*range(1, 143)]}, 422, "/sizes", "20164"),
        ({"time_limit_s": 0}, 422, "/time_limit_s", "> 0"),
        ({"unknown": 1}, 422, "/unknown", "unknown"),
    ],
)
def test_what_is_wrong_names_field_and_rule(
    client: httpx.Client, more: dict[str, Any], status: int, pointer: str, words: str
) -> None:
    body = {name: value for name, value in {**ASKED, **more}.items() if value is not None}
    response = client.post("/thresholds", json=body)
    assert response.status_code == status
    found = response.json()
    error = next(iter(found["errors"]), {"pointer": "", "detail": found["detail"]})
    assert error["pointer"] == pointer
    assert words in error["detail"]


def test_an_aggregate_has_no_stages_to_cut(client: httpx.Client) -> None:
    aggregate = {
        "total": {"overhead_us": 10.0, "ns_per_byte": 5.0},
        "bottleneck": {"overhead_us": 4.0, "ns_per_byte": 2.0},
    }
    made = client.post("/profiles", json={"name": "sum", "aggregate": aggregate})
    assert made.status_code == 201, made.text
    response = client.post("/thresholds", json={**ASKED, "profile": "sum"})
    assert response.status_code == 422
    assert response.json()["code"] == "strategy_declined"


# --- the command line -----------------------------------------------------------------------------


@pytest.fixture
def printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """main(argv): (exit code, standard output, standard error)."""
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(running, "open_local_engine", InProcessEngine)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_the_command_answers_as_the_service_does(client: httpx.Client, printed: Any) -> None:
    code, out, _ = printed(
        *(
            "model",
            "thresholds",
            "trapeze",
            "--bytes",
            "8KiB",
            "--stages",
            "1,2",
            "--sizes",
            "32,64,512",
        ),
        "--json",
    )
    assert code == 0
    assert json.loads(out) == answer(client)


def test_the_report_has_the_best_and_the_grid(printed: Any, tmp_path: Path) -> None:
    plot = tmp_path / "t.svg"
    code, out, _ = printed("model", "thresholds", "trapeze", "--bytes", "8KiB", "--plot", str(plot))
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "8 KiB 64 B 178.0 µs 174.4 µs 306.2 µs" in lines
    assert "512 B 181.1 µs 1.77 %" in lines
    texts = [one.text for one in ElementTree.parse(plot).iter() if one.text]
    assert {"threshold", "store and forward", "ideal cut-through"} <= set(texts)


def test_one_threshold_for_all_messages_comes_first(printed: Any) -> None:
    code, out, _ = printed(
        "model", "thresholds", "trapeze", "--bytes", "1KiB..64KiB", "--rule", "static"
    )
    assert code == 0
    assert out.startswith("one pulse size")
    assert "above the best" not in out.splitlines()[-1]


def test_a_plot_of_two_stages_has_a_curve_for_others(printed: Any, tmp_path: Path) -> None:
    plot = tmp_path / "t.svg"
    arguments = ("--bytes", "8KiB", "--stages", "1,2", "--rule", "static", "--plot", str(plot))
    code, _, _ = printed("model", "thresholds", "trapeze", *arguments)
    assert code == 0
    texts = [one.text for one in ElementTree.parse(plot).iter() if one.text]
    assert {"1 B before", "512 B before", "8 KiB before", "pulse size"} <= set(texts)


def test_deliver_shows_the_pulses_and_draws_them(printed: Any, tmp_path: Path) -> None:
    figure = tmp_path / "d.svg"
    rules = "eager,eager=512,eager=512..8KiB"
    code, out, _ = printed(
        *(
            "model",
            "deliver",
            "trapeze",
            "--bytes",
            "8KiB",
            "--rules",
            rules,
            "--timeline",
            str(figure),
        )
    )
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0].startswith("latency 181.1 µs, proven bound of this model 174.4 µs")
    assert "bus write 5 512, 860, 1525, 2595, 2700 139.8 µs" in lines
    assert ElementTree.parse(figure).getroot().tag.endswith("svg")


@pytest.mark.parametrize(
    ("rules", "pulses"),
    [
        ("store_and_forward,same,static=4096", [[8192], [8192], [4096, 4096]]),
        ("planned=4096+4096,same,same", [[4096, 4096]] * 3),
    ],
)
def test_deliver_takes_every_rule(printed: Any, rules: str, pulses: list[list[int]]) -> None:
    code, out, _ = printed(
        "model", "deliver", "trapeze", "--bytes", "8KiB", "--rules", rules, "--json"
    )
    assert code == 0
    assert json.loads(out)["levels"] == pulses


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("model", "thresholds", "trapeze"), 2, "expected --bytes"),
        (("model", "deliver", "trapeze", "--rules", "eager,eager,eager"), 2, "expected --bytes"),
        (
            ("model", "deliver", "trapeze", "--bytes", "8KiB", "--rules", "eager"),
            2,
            "expected 3 rules",
        ),
        (("model", "thresholds", "none-such", "--bytes", "1"), 4, "none-such"),
        (("model", "thresholds", "trapeze", "--bytes", "1", "--stages", "7"), 2, "0 to 2"),
    ],
)
def test_what_is_wrong_on_the_command_line(
    printed: Any, arguments: tuple[str, ...], code: int, words: str
) -> None:
    found, _, err = printed(*arguments)
    assert found == code
    assert words in err


@pytest.mark.parametrize("rules", ["fast", "static", "eager=", "planned", "same=3", "eager=1..x"])
def test_rules_that_are_none(printed: Any, rules: str) -> None:
    code, _, err = printed("model", "deliver", "trapeze", "--bytes", "8KiB", "--rules", rules)
    assert code == 2
    assert "--rules" in err


# --- the page -------------------------------------------------------------------------------------


def page(client: httpx.Client, status: int = 200, **query: str) -> str:
    response = client.get("/ui/delivery", params=query, headers={"Accept": "text/html"})
    assert response.status_code == status, response.text
    return html.unescape(response.text)


def pictures(text: str) -> list[str]:
    found = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', text)
    return [base64.b64decode(one).decode() for one in found]


def test_the_page_begins_with_an_example(client: httpx.Client) -> None:
    text = page(client)
    assert 'value="trapeze"' in text
    assert 'value="8 KiB"' in text
    assert "appears here" in text


def test_the_page_has_the_service_s_figures(client: httpx.Client) -> None:
    """The best of the same choices, curves, and the pulses of the best or of the one asked for."""
    query = {"profile": "trapeze", "message": "8 KiB", "stages": "1,2", "sizes": "32,64,512"}
    text = page(client, **query, rule="eager")
    assert "Threshold 64 B / 32 B" in text
    assert "177.7 µs" in text
    curves, pulses = pictures(text)
    assert "ideal cut-through" in curves
    assert "8 KiB through 3 stages" in pulses
    assert "Pulses with 64 B / 32 B" in text
    place = answer(client)["choices"].index([512, 512])
    other = page(client, **query, rule="eager", at=str(place))
    assert "512, 860, 1525, 2595, 2700" in other
    assert f"sluice model thresholds trapeze --bytes 8KiB --stages {query['stages']}" in other
    assert page(client, **query, at="99").count("Pulses with 64 B / 32 B") == 1


def test_the_page_says_no_figures_where_nothing_was_priced() -> None:
    """Time ended before the first price: no latency of 0 µs, nothing saved, no empty table."""
    asked = parse_json(ThresholdsIn, dump_json({"pipeline": MYRINET, "message_bytes": [8192]}))
    assert asked.pipeline is not None
    question = grid_question(asked, asked_pipeline(asked.pipeline), None, max_pulses=1000)
    nothing = price_thresholds(replace(question, time_limit_s=0.0))
    view = views._view(asked, dump_json(priced(nothing)), {"at": ""})
    assert view["title"] == "no threshold was priced in time"
    assert "not known, at least" in view["parts"]
    assert "saved" not in view["parts"]
    assert (view["tables"], view["curves"], view["pulses"]) == ("", "", None)


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ({"profile": "none-such", "message": "1"}, 422, "there is no hardware profile"),
        ({"profile": "trapeze"}, 422, "expected one"),
        ({"profile": "trapeze", "message": "x"}, 422, "expected a size"),
        ({"profile": "trapeze", "message": "9", "stages": "a"}, 422, "as 1,2"),
        ({"profile": "trapeze", "message": "9", "stages": "7"}, 422, "from 0 to 2"),
        ({"profile": "trapeze", "message": "9", "sizes": "8..4"}, 422, "64..4MiB"),
        ({"profile": "trapeze", "message": "9", "rule": "planned"}, 422, "static"),
        ({"profile": "<b>", "message": "9"}, 422, "<b>"),
    ],
)
def test_mistakes_stand_at_their_fields(
    client: httpx.Client, query: dict[str, str], status: int, words: str
) -> None:
    text = page(client, status, **query)
    assert words in text
    assert 'class="mistake"' in text or 'role="alert"' in text


def test_long_lists_of_pulses_take_nothing_from_the_other_columns(printed: Any) -> None:
    code, out, _ = printed(
        "model", "deliver", "trapeze", "--bytes", "64MiB", "--rules", "eager,eager,eager"
    )
    assert code == 0
    assert re.search(r"^bus write +26 .* 1\.049 s$", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rule": "nonsense"}, "/rule: expected one of 'static' or 'eager'"),
        ({"stages": [64]}, "/stages/0: expected a number < 64"),
    ],
)
def test_refusals_are_in_words(client: httpx.Client, given: dict[str, Any], words: str) -> None:
    response = client.post("/thresholds", json={**ASKED, **given})
    assert response.status_code == 422
    assert response.json()["detail"] == words
