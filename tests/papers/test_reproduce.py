"""sluice model reproduce: the verdict rule, every item of the registry, files, refusals."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import cache
from math import inf, isfinite, nan
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli import main
from app.verbs.reproduce.show import figure_cells, item_svgs
from domain.logp_machine import QUEUE, LogPMachine
from papers.items import Figure, Item, ItemSpec, Paper
from papers.registry import PAPERS

ITEMS = [(paper.name, spec) for paper in PAPERS.values() for spec in paper.items]
DOCS = Path(__file__).parents[2] / "docs"
FINITE = st.floats(-1e9, 1e9)


@given(FINITE, FINITE, st.floats(0.0, 1e9))
def test_a_number_agrees_exactly_within_its_tolerance(
    computed: float, published: float, tolerance: float
) -> None:
    figure = Figure("a", "µs", computed, published, tolerance=tolerance)
    assert figure.ok == (abs(computed - published) <= tolerance)


@given(FINITE, FINITE, st.floats(0.0, 1e6))
def test_a_range_agrees_from_end_to_end(computed: float, low: float, width: float) -> None:
    assert Figure("a", "", computed, low, low + width).ok == (low <= computed <= low + width)


@pytest.mark.parametrize("computed", [nan, inf, -inf])
def test_no_number_never_agrees(computed: float) -> None:
    assert Figure("a", "µs", computed, 1.0, tolerance=1e300).ok is False
    assert Figure("a", "µs", computed, 1.0, 2.0, tolerance=1e300).ok is False


OWN = {  # items of which the papers print no number
    "culler96 figure-11",
    "culler96 uses-of-the-model",
    "karamcheti94 tuned-savings",
    "strumpen94 fig-9-3",
    "strumpen94 fragments",
    "wang98 figure-2",
    "wang98 figure-7",
}


@pytest.mark.parametrize(("paper", "spec"), ITEMS, ids=[f"{p}-{s.name}" for p, s in ITEMS])
def test_every_item_has_its_name_and_agrees(paper: str, spec: ItemSpec) -> None:
    item = spec.compute()
    assert paper in PAPERS
    assert item.name == spec.name
    assert item.figures
    assert [figure.name for figure in item.figures if figure.ok is False] == []
    compares = any(figure.published is not None for figure in item.figures)
    assert compares != (f"{paper} {spec.name}" in OWN)


@cache
def computed(spec: ItemSpec) -> Item:
    return spec.compute()


@pytest.mark.parametrize(("paper", "spec"), ITEMS, ids=[f"{p}-{s.name}" for p, s in ITEMS])
def test_drawings_have_the_words_and_curves_of_their_plots(paper: str, spec: ItemSpec) -> None:
    item = computed(spec)
    drawn = item_svgs(item)
    names = [plot.name for plot in item.plots]
    expected = {*([""] if item.curves else []), *names, *(["runs"] if item.runs else [])}
    assert (set(drawn), len(set(names))) == (expected, len(names))
    for plot in item.plots:
        texts = list(ElementTree.fromstring(drawn[plot.name]).itertext())
        assert {plot.across.words, plot.upwards.words} <= set(texts)
        assert {curve.name for curve in plot.curves} <= set(texts)
        assert len({curve.name for curve in plot.curves}) == len(plot.curves)
        for curve in plot.curves:
            places = [across for across, _ in curve.points]
            assert places == sorted(places)
            assert all(isfinite(one) and one > 0.0 for point in curve.points for one in point)
    for run in item.runs:
        assert any(
            text.startswith(run.name) for text in ElementTree.fromstring(drawn["runs"]).itertext()
        )


def test_names_are_unique_in_a_paper() -> None:
    for paper in PAPERS.values():
        names = [spec.name for spec in paper.items]
        assert len(set(names)) == len(names)


@given(
    st.floats(0.1, 20.0),
    st.floats(0.1, 20.0),
    st.floats(0.1, 40.0),
    st.floats(0.0, 20.0),
    st.integers(1, 200),
)
def test_no_burst_is_faster_than_its_sender_or_its_interface(
    send: float, receive: float, gap: float, wire: float, messages: int
) -> None:
    burst_us = LogPMachine(send, receive, gap, wire).burst_us(messages, 0.0)
    held = QUEUE + 1  # in the interface, and the one that is issued last
    assert burst_us >= messages * send * (1 - 1e-9)
    assert burst_us >= (messages - held) * gap * (1 - 1e-9)


@pytest.mark.parametrize(
    ("messages", "cost_us"), [(1, 1.4), (16, 5.875), (64, 7.1688), (256, 7.4922), (4096, 7.5933)]
)
def test_the_paragon_fills_its_interface_and_then_pays_the_gap(
    messages: int, cost_us: float
) -> None:
    """While the queue fills, M messages end with the start of transfer M - 4: M - 4 gaps later."""
    machine = LogPMachine(1.4, 2.2, 7.6, 6.3)
    assert machine.burst_us(messages, 0.0) / messages == pytest.approx(cost_us, abs=5e-5)


def test_slow_ends_hide_the_gap() -> None:
    """Where o_s + o_r is above g, a message of a long burst costs both ends (Figure 9's case)."""
    machine = LogPMachine(60.0, 40.0, 30.0, 10.0)
    slope = (machine.burst_us(2000, 0.0) - machine.burst_us(1000, 0.0)) / 1000
    assert slope == pytest.approx(100.0, rel=1e-3)


@given(FINITE, FINITE)
def test_what_is_not_compared_has_a_difference_and_no_verdict(
    computed: float, published: float
) -> None:
    figure = Figure("a", "µs", computed, published, tolerance=None)
    assert (figure.difference, figure.ok) == (computed - published, None)
    assert figure_cells(figure)[5:] == ("", "not compared")
    assert Item("i", "i", "i", (figure,)).ok


def run(folder: Path, *words: str) -> dict[str, bytes]:
    assert main(["model", "reproduce", *words, "--output", str(folder)]) == 0
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_all_files_are_the_same_twice_and_well_formed(tmp_path: Path) -> None:
    first, second = run(tmp_path / "a", "all"), run(tmp_path / "b", "all")
    assert first == second
    assert {f"{paper}-{spec.name}.csv" for paper, spec in ITEMS} <= set(first)
    page = first["index.html"].decode()
    ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    for elsewhere in ("src=", "href=", "@import", "<script", "<link"):
        assert elsewhere not in page
    for name, content in first.items():
        if name.endswith(".svg"):
            ElementTree.fromstring(content)
    rows = json.loads(first["results.json"])
    assert {(row["paper"], row["item"]) for row in rows} == {(p, s.name) for p, s in ITEMS}
    assert all((row["ok"] is None) == (row["tolerance"] is None) for row in rows)


def test_only_one_item(tmp_path: Path) -> None:
    files = run(tmp_path / "a", "wang98", "--only", "table-3")
    assert {row["item"] for row in json.loads(files["results.json"])} == {"table-3"}


def falsified(*, fails: bool = False) -> MappingProxyType[str, Paper]:
    def compute() -> Item:
        if fails:
            raise KeyboardInterrupt
        return Item("t", "A table", "none", (Figure("x", "µs", 2.0, 1.0, tolerance=0.5),))

    paper = replace(PAPERS["wang98"], name="false", items=(ItemSpec("t", compute),))
    return MappingProxyType({"false": paper})


def test_a_number_outside_its_tolerance_exits_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("papers.registry.PAPERS", falsified())
    assert main(["model", "reproduce", "false", "--output", str(tmp_path)]) == 1
    assert json.loads((tmp_path / "results.json").read_bytes())[0]["ok"] is False
    assert "outside" in (tmp_path / "index.html").read_text()


def test_an_interrupted_computation_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("papers.registry.PAPERS", falsified(fails=True))
    assert main(["model", "reproduce", "false", "--output", str(tmp_path)]) == 130
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_no_half_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    assert main(["model", "reproduce", "wang98", "--output", str(tmp_path)]) == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", range(7))
def test_an_interrupted_write_leaves_the_whole_old_set(
    place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of the renames Ctrl-C comes before; beyond the last the new set is there."""
    run(tmp_path, "culler96", "--only", "table-4-latency")
    (tmp_path / "index.html").write_text("an old page")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    calls, replace_file = iter(range(1000)), os.replace

    def interrupted(source: str, target: str) -> None:
        if next(calls) == place:
            raise KeyboardInterrupt
        replace_file(source, target)

    monkeypatch.setattr(os, "replace", interrupted)
    # A new file takes one rename, and each of two in place of old ones takes two.
    ended = main(
        ["model", "reproduce", "culler96", "--only", "paragon-signature", "--output", str(tmp_path)]
    )
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    if ended == 0:
        assert place >= 5
        assert after["index.html"] != b"an old page"
        assert set(after) == {*before, "culler96-paragon-signature.csv"}
    else:
        assert (ended, after) == (130, before)
        assert place < 5


def test_results_are_the_last_file_to_appear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who sees them has all others too."""
    appeared, replace_file = [], os.replace

    def seen(source: Path, target: Path) -> None:
        appeared.append(target)
        replace_file(source, target)

    monkeypatch.setattr(os, "replace", seen)
    files = run(tmp_path, "culler96")
    assert appeared[-1] == tmp_path / "results.json"
    assert {path.name for path in appeared} == set(files)


def test_a_folder_in_the_place_of_a_file_is_refused_and_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results.json").mkdir()
    (tmp_path / "results.json" / "mine").write_text("kept")
    assert main(["model", "reproduce", "culler96", "--output", str(tmp_path)]) == 2
    assert "output" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
    assert (tmp_path / "results.json" / "mine").read_text() == "kept"


@pytest.mark.parametrize(
    ("words", "known"),
    [
        (("nobody",), "wang98, yocum97, strumpen94, culler96, karamcheti94, all"),
        (("wang98", "--only", "table-9"), "table-1, table-2, table-3, figure-2"),
        (("wang98", "--output", "/proc/none"), "folder"),
        (("wang98", "--output", "/dev/null"), "folder"),
    ],
)
def test_what_cannot_be_done_is_refused(
    words: tuple[str, ...], known: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["model", "reproduce", *words]) == 2
    assert known in capsys.readouterr().err


@pytest.mark.parametrize("paper", sorted(PAPERS))
def test_pictures_of_the_documents_are_those_of_the_report(paper: str) -> None:
    """And each paper has its page, which lists every item."""
    page = (DOCS / "papers" / f"{paper}.md").read_text(encoding="utf-8")
    drawn = {
        f"{'-'.join(filter(None, (paper, spec.name, name)))}.svg": drawing
        for spec in PAPERS[paper].items
        for name, drawing in item_svgs(computed(spec)).items()
    }
    assert [spec.name for spec in PAPERS[paper].items if f"`{spec.name}`" not in page] == []
    for kept in DOCS.glob(f"plots/{paper}-*.svg"):
        assert kept.read_text(encoding="utf-8") == drawn[kept.name]
        assert f"(../plots/{kept.name})" in page
