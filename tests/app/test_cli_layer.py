"""sluice model layer, by main(argv), and its drawing."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from analysis.layer_answer import LayerQuestion, layer_costs
from analysis.published_layers import shipped_layers
from app.cli import main
from app.console import running
from app.plots.models_svg import MAX_MESSAGES, STYLE, render_layer_svg
from app.schemas.base import dump_json, read_output
from app.schemas.layer import layer_out
from contract.layer_costs import LayerCostsOut
from domain.messaging_layer import NetworkFeature
from tests.support.in_process_engine import InProcessEngine
from tests.support.plot_style import assert_light_and_dark

SVG = "{http://www.w3.org/2000/svg}"
FINITE = shipped_layers()["cmam-finite"]


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database of its own, and solves in this process."""
    for name in [name for name in os.environ if name.startswith("SLUICE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(running, "open_local_engine", InProcessEngine)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """main(argv): (exit code, standard output, standard error)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(("model", "layer", *arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.parametrize(
    "words", [("check", "missing"), ("cmam-finite", "--bytes", "64", "--between", "missing")]
)
def test_a_file_that_is_not_there(words: tuple[str, ...], printed: Any) -> None:
    """It is said, also where its name could be a profile's."""
    code, _, said = printed(*words)
    assert code == 4
    assert "there is no file 'missing'" in said


def test_a_report(printed: Any, tmp_path: Path) -> None:
    """With the work, the savings, other packets and the stages; no database is touched."""
    code, reported, _ = printed(
        "cmam-finite", "--bytes", "64", "4KiB", "--packet-words", "4..128", "--clock", "33MHz"
    )
    assert code == 0
    words = " ".join(reported.split())
    for word in ("397 instructions", "54.4 %", "buffering 47 101 148", "all of them 216", "2 561"):
        assert word in words.replace("\u202f", " ")
    for word in ("sender software", "7.697 µs", "9.22 %"):
        assert word in words
    assert not (tmp_path / "cli.db").exists()


def test_tuned_savings(printed: Any) -> None:
    """Say by how much the latency falls, at the old cut and at a new one."""
    code, reported, _ = printed("cmam-indefinite", "--bytes", "4KiB", "--clock", "1MHz", "--tune")
    assert code == 0
    assert "old cut" in reported
    assert "best cut" in reported


def test_the_document_of_the_service(printed: Any, tmp_path: Path) -> None:
    """A file in the form of either route, stages between, and a stored profile."""
    layer = tmp_path / "layer.json"
    layer.write_bytes(dump_json({"layer": layer_out(FINITE), "disagreements": []}))
    between = tmp_path / "between.json"
    between.write_text('{"stages": [{"name": "wire", "overhead_us": "1 us", "ns_per_byte": 2}]}')
    options = ("--bytes", "64", "--clock", "0.033GHz", "--between", str(between), "--json")
    code, reported, _ = printed(str(layer), *options, "--save-as", "kc", "--wire", "100ns")
    assert code == 0
    found = read_output(LayerCostsOut, reported.encode())
    assert found.clock_mhz == 33.0
    assert found.stages is not None
    assert [one.name for one in found.stages.pipeline.stages][1] == "wire"
    assert found.stages.pipeline.delay_us == pytest.approx(254 / 33 + 0.2)
    assert found.profile is not None
    assert main(("profiles", "show", "kc")) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("cmam-finite",), "--bytes"),
        (("cmam-finite", "--bytes", "x"), "size"),
        (("cmam-finite", "--bytes", "64", "--clock", "33"), "unit"),
        (("cmam-finite", "--bytes", "64", "--cycles", "reg"), "reg=1"),
        (("cmam-finite", "--bytes", "64", "--cycles", "reg=nan"), "finite"),
        (("cmam-finite", "--bytes", "64", "--packet-words", "4..x"), "whole numbers"),
        (("cmam-finite", "--bytes", "64", "--packet-words", "1..9999999"), "1048576"),
        (("cmam-finite", "--bytes", "64", "--features", "x"), "in_order"),
        (("cmam-finite", "--bytes", "64", "--mapping", "x"), "packet"),
        (("cmam-finite", "--bytes", "64", "--tune"), "clock_mhz"),
        (("cmam-finite", "--bytes", "64", "--plot", "/nowhere/x.svg"), "folder"),
    ],
)
def test_bad_input(printed: Any, options: tuple[str, ...], said: str) -> None:
    """Exit code 2, and a sentence that says what is wrong."""
    code, _, reported = printed(*options)
    assert code == 2
    assert said in reported


def test_files_that_are_no_layers(printed: Any, tmp_path: Path) -> None:
    """A trace, stages for a layer, a layer for stages; one that is not there."""
    text, stages = tmp_path / "a.csv", tmp_path / "stages.json"
    text.write_text("a,b\n1,2\n")
    stages.write_text('{"stages": []}')
    assert printed(str(text), "--bytes", "64")[0] == 2
    assert printed(str(stages), "--bytes", "64")[0] == 2
    layer = tmp_path / "layer.json"
    layer.write_bytes(dump_json(layer_out(FINITE)))
    assert printed("cmam-finite", "--bytes", "64", "--between", str(layer))[0] == 2
    assert printed("cmam-finite", "--bytes", "64", "--between", str(tmp_path / "no.json"))[0] == 4
    assert printed("cmam-none", "--bytes", "64")[0] == 4


# --- the drawing ----------------------------------------------------------------------------------


def drawn(*sizes: int, packet_words: tuple[int, ...] = ()) -> ET.Element:
    """The drawing of these messages."""
    question = LayerQuestion(
        layer=FINITE,
        costs=None,
        message_bytes=sizes,
        features=tuple(NetworkFeature),
        packet_words=packet_words,
    )
    return ET.fromstring(render_layer_svg(layer_costs(question)))


def bars(root: ET.Element) -> list[ET.Element]:
    """The parts of the bars, without those of the legend."""
    return [one for one in root.iter(f"{SVG}rect") if one.find(f"{SVG}title") is not None]


def test_bars_are_as_long_as_their_counts(printed: Any, tmp_path: Path) -> None:
    """On one scale for both ends of a message, and what they show is told in words."""
    root = drawn(64)
    shown = {}
    for one in bars(root):
        title = one.findtext(f"{SVG}title") or ""
        shown.setdefault(float(title.split()[1]), float(one.get("width") or 0))
    scales = {round(width / count, 3) for count, width in shown.items() if width > 20}
    assert len(scales) == 1
    assert [count for count in (91, 47, 8, 27, 90, 101, 13, 20) if float(count) not in shown] == []
    description = root.findtext(f"{SVG}desc") or ""
    assert "64 B, 397 instructions: source: base 91, buffering 47" in description
    plot = tmp_path / "layer.svg"
    code, reported, _ = printed("cmam-finite", "--bytes", "64", "--plot", str(plot))
    assert code == 0
    assert "plot written" in reported
    assert ET.parse(plot).getroot().tag == f"{SVG}svg"


def test_curves_are_drawn_where_packets_differ() -> None:
    """A point for each packet size; without other sizes there is no chart."""
    root = drawn(64, 4096, packet_words=(4, 8, 128))
    assert len([*root.iter(f"{SVG}path")]) == 2
    assert len([*root.iter(f"{SVG}circle")]) == 6
    assert not [*drawn(64).iter(f"{SVG}path")]


def test_many_messages_are_not_all_drawn() -> None:
    """And the picture says so."""
    root = drawn(*(64 * place for place in range(1, MAX_MESSAGES + 3)))
    text = " ".join("".join(one.itertext()) for one in root.iter(f"{SVG}text"))
    assert "2 more messages are not drawn" in text


def test_colours_are_literal() -> None:
    """For light paper and for dark."""
    assert_light_and_dark(STYLE, "@media (prefers-color-scheme:dark)")
