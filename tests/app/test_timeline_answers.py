"""sluice optimize --timeline and POST /simulate as a picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

from app.cli import main
from tests.app.serving import MYRINET
from tests.support.drawn_timelines import (
    Panel,
    by_class,
    panels,
    text_of,
)


def drawn_file(path: Path) -> list[Panel]:
    return panels(ET.fromstring(path.read_bytes()))


def headings(found: list[Panel]) -> list[str]:
    return [text_of(by_class(panel.element, "heading")[0]) for panel in found]


class TestCommand:
    @pytest.fixture(autouse=True)
    def environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
        monkeypatch.setenv("COLUMNS", "80")

    @pytest.mark.usefixtures("native_kernels")
    def test_the_answer_above_the_best_fixed_size(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = tmp_path / "out.svg"
        file.write_text("before", encoding="utf-8")
        assert main(["optimize", "myrinet-gam", "--bytes", "4KiB", "--timeline", str(file)]) == 0
        assert f"timeline written to {file}" in " ".join(capsys.readouterr().out.split())
        upper, lower = drawn_file(file)
        assert headings([upper, lower]) == [
            "exact: 6 fragments, 184.357 µs",
            "best fixed size: 5 fragments, 188.9 µs (+2.46 %)",
        ]
        assert len(by_class(upper.element, "bound")) == 1
        assert [len(lower.blocks(j)) for j in range(4)] == [5] * 4

    def test_one_schedule_where_the_answer_is_the_best_fixed_size(self, tmp_path: Path) -> None:
        file = tmp_path / "out.svg"
        arguments = ["--bytes", "4KiB", "--strategy", "repeat", "--json", "--timeline", str(file)]
        assert main(["optimize", "myrinet-gam", *arguments]) == 0
        assert headings(drawn_file(file)) == ["repeat: 5 fragments, 188.9 µs"]

    def test_the_stages_own_cuts(self, tmp_path: Path) -> None:
        file = tmp_path / "out.svg"
        arguments = ["--bytes", "64KiB", "--strategy", "hierarchical", "--allow-refragmentation"]
        assert main(["optimize", "disk-study", *arguments, "--timeline", str(file)]) == 0
        upper, _ = drawn_file(file)
        assert [len(upper.blocks(j)) for j in range(5)] == [26, 26, 26, 26, 2]

    def test_an_aggregate_is_answered_and_not_drawn(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        source, file = tmp_path / "source.json", tmp_path / "out.svg"
        part = '{"name": "s", "overhead_us": 7, "ns_per_byte": 20}'
        source.write_text(f'{{"total": {part}, "bottleneck": {part}}}', encoding="utf-8")
        assert main(["optimize", str(source), "--bytes", "4KiB", "--timeline", str(file)]) == 3
        captured = capsys.readouterr()
        assert "latency" in captured.out
        assert "an aggregate does not know" in captured.err
        assert not file.exists()

    @pytest.mark.parametrize("name", ["", "-", "{folder}", "{folder}/none/out.svg"])
    def test_a_file_that_cannot_be_written_is_refused_first(
        self, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        place = name.format(folder=tmp_path)
        assert main(["optimize", "nowhere.json", "--bytes", "4KiB", "--timeline", place]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "timeline" in captured.err

    @pytest.mark.usefixtures("native_kernels")
    def test_the_picture_in_the_documents_is_what_the_command_draws(self, tmp_path: Path) -> None:
        file = tmp_path / "out.svg"
        assert main(["optimize", "myrinet-gam", "--bytes", "4KiB", "--timeline", str(file)]) == 0
        shown = Path(__file__).parents[2] / "docs" / "plots" / "timeline-myrinet-gam.svg"
        assert file.read_bytes() == shown.read_bytes()


class TestService:
    BODY: ClassVar[dict[str, Any]] = {"pipeline": MYRINET, "fragment_bytes": [1024] * 4}

    @pytest.mark.parametrize(
        ("query", "accept"),
        [
            ("?format=svg", "*/*"),
            ("", "image/svg+xml"),
            ("", "text/html, image/svg+xml;q=0.9"),
            ("?format=svg", "application/json"),
        ],
    )
    def test_a_picture_where_it_is_asked_for(
        self, client: httpx.Client, query: str, accept: str
    ) -> None:
        answer = client.post(f"/simulate{query}", json=self.BODY, headers={"accept": accept})
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "image/svg+xml"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        (panel,) = panels(ET.fromstring(answer.content))
        assert [len(panel.blocks(j)) for j in range(4)] == [4] * 4

    @pytest.mark.parametrize(
        ("query", "accept"),
        [("", "*/*"), ("", "application/json, image/svg+xml"), ("?format=json", "image/svg+xml")],
    )
    def test_data_otherwise(self, client: httpx.Client, query: str, accept: str) -> None:
        answer = client.post(f"/simulate{query}", json=self.BODY, headers={"accept": accept})
        assert answer.headers["content-type"] == "application/json"
        assert len(answer.json()["intervals"]) == 16

    def test_levels(self, client: httpx.Client) -> None:
        levels = [[2048, 2048], [1024] * 4, [4096], [512] * 8]
        answer = client.post("/simulate?format=svg", json={"pipeline": MYRINET, "levels": levels})
        (panel,) = panels(ET.fromstring(answer.content))
        assert [len(panel.blocks(j)) for j in range(4)] == [2, 4, 1, 8]

    @pytest.mark.parametrize("query", ["?format=png", "?form=svg"])
    def test_another_format_is_refused(self, client: httpx.Client, query: str) -> None:
        assert client.post(f"/simulate{query}", json=self.BODY).status_code == 422
