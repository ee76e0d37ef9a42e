"""sluice model hide, by main(argv): report, the service's document, pictures, and what is wrong."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from app.console import running
from app.plots.models_svg import gain_svg, speedup_svg
from app.schemas.base import read_output
from contract.hide import HideOut
from domain.hiding import CountRange, Overlap, Scaling
from tests.support.in_process_engine import InProcessEngine

EXAMPLES = Path(__file__).parents[2] / "examples"
MYRINET = str(EXAMPLES / "myrinet-gam.json")
COPIES = ("--sender-stage", "0", "--receiver-stage", "receiver copy", "--both-ways")
ASKED = (MYRINET, "--bytes", "4096", "--calculation", "120")
TERMS = ("--software", "5", "--hardware", "5", "--overhead", "0.2")


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database of its own, and searches in this process."""
    for name in [name for name in os.environ if name.startswith("SLUICE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(running, "open_local_engine", InProcessEngine)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """main(argv): (exit code, standard output, standard error)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(("model", "hide", *arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_the_report_has_bars_figures_counts_and_warnings(printed: Any, tmp_path: Path) -> None:
    code, reported, _ = printed(*ASKED, *COPIES, "--min-gain", "1.2")
    assert code == 0
    lines = reported.splitlines()
    assert lines[0].startswith("calculation   ")
    assert lines[1].startswith("communication ")
    assert lines[0].count("█") < lines[1].count("█")
    words = " ".join(reported.split())
    for text in (
        "without 304.4 µs",
        "gain 1.427",
        "where c / T is from 0.2000 to 5.000",
        "6 fragments: 268.0 µs, 25.7 % more",
        "2 213.3 µs 209.6 µs 213.3 µs",
        "(latency_cut_is_not_best)",
    ):
        assert text in words
    assert not (tmp_path / "cli.db").exists()


def test_json_is_the_services_document(printed: Any) -> None:
    code, document, _ = printed(*ASKED, "--processes", "100", "--communication", "sqrt", "--json")
    assert code == 0
    found = read_output(HideOut, document.encode())
    assert found.message_bytes == 4096
    assert found.best_processes is not None
    assert found.curve[-1].processes == 100


def test_a_trace_is_fitted(printed: Any) -> None:
    code, document, _ = printed(
        str(EXAMPLES / "local-path-direct.csv"),
        *("--bytes", "64KiB", "--calculation", "50", "--streamed", "--hideable-fraction", "0"),
        "--json",
    )
    assert code == 0
    found = json.loads(document)
    assert found["streamed"]
    assert found["with_us"] < found["without_us"]


def test_terms_need_no_source(printed: Any) -> None:
    code, reported, _ = printed(*TERMS, "--processes", "64")
    assert code == 0
    assert "1.667" in reported
    assert "best processes" in reported


@pytest.mark.parametrize(
    ("asked", "picture", "title"),
    [
        ((*ASKED, *COPIES), (), "Run time behind a calculation by number of fragments"),
        ((*ASKED, "--min-gain", "1.5"), ("--picture", "gain"), "Gain by calculation"),
        ((*ASKED, "--processes", "99"), ("--picture", "speedup"), "Speed-up by number"),
        (TERMS, (), "Gain by calculation"),
    ],
)
def test_pictures_are_drawn(
    printed: Any, tmp_path: Path, asked: tuple[str, ...], picture: tuple[str, ...], title: str
) -> None:
    file = tmp_path / "drawn.svg"
    code, reported, _ = printed(*asked, *picture, "--plot", str(file))
    assert code == 0
    assert "plot written to" in reported
    root = ElementTree.fromstring(file.read_text())
    assert root.get("role") == "img"
    assert title in str(root[0].text)
    described = {str(one.text) for one in root.iter() if one.tag.endswith("desc")}
    assert any("curves" in text for text in described)


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        ((MYRINET, "--bytes", "4096"), 2, "calculation_us"),
        (("myrinet-gam", "--calculation", "1"), 2, "message_bytes"),
        ((*ASKED, "--sender-stage", "nowhere"), 2, "host_stages.sender.0"),
        ((*ASKED, "--instructions", "3"), 2, "calculation_us"),
        ((*ASKED, "--hideable-fraction", "200%"), 2, "hideable_fraction"),
        ((*ASKED, *TERMS), 2, "granularity"),
        ((*ASKED, "--plot", "x.svg", "--picture", "speedup"), 2, "processes"),
        (("--software", "5"), 2, "hardware"),
        (("nowhere-at-all", "--bytes", "8", "--calculation", "1"), 4, "nowhere-at-all"),
    ],
)
def test_what_is_wrong_is_named(
    printed: Any, arguments: tuple[str, ...], code: int, named: str
) -> None:
    found, _, complaint = printed(*arguments)
    assert found == code
    assert named in complaint.replace("/", ".")


def test_curves_with_extreme_values_are_drawn() -> None:
    counts = CountRange(1, 10**9)
    for scaling in (Scaling(1e-12, 1.0), Scaling(1e6, 0.0), Scaling(1.0, 4.0, Overlap(0.0, 9.0))):
        drawn = speedup_svg(scaling.curve(counts, 400), scaling.best(counts))
        ElementTree.fromstring(drawn)
    for overlap in (Overlap(0.0, 0.0), Overlap(1.0, 0.0), Overlap(0.0, 1e12)):
        ElementTree.fromstring(gain_svg(overlap, point=None, window=None))
