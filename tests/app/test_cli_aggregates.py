"""Pipelines known from outside, on the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from tests.support.outside_traces import BOTH_CSV, INTERARRIVAL_CSV, LATENCY_CSV

AGGREGATE: dict[str, Any] = {
    "total": {"name": "all", "overhead_us": 27.3, "ns_per_byte": 63.37890625},
    "bottleneck": {"name": "slowest", "overhead_us": 7.5, "ns_per_byte": 24.31640625},
}


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database of its own, and nothing of the caller's environment."""
    for name in [name for name in os.environ if name.startswith("SLUICE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def outside(tmp_path: Path) -> str:
    """A file that holds an aggregate."""
    path = tmp_path / "outside.json"
    path.write_text(json.dumps(AGGREGATE))
    return str(path)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """main(argv) in this process: (exit code, standard output, standard error)."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


class TestOptimize:
    def test_the_report(self, printed: Any, outside: str) -> None:
        code, out, _ = printed("optimize", outside, "--bytes", "4KiB", "--strategy", "fixed")
        assert code == 0
        assert out.startswith(
            "Measure first: 1 KiB may be faster.\n\n4 KiB through a pipeline seen from outside\n"
        )
        assert "latency     at most 18" in out
        assert "no Gantt: outside measurements" in out
        assert "latency_is_upper_bound" in out

    def test_an_exact_latency_is_not_called_the_most(self, printed: Any, outside: str) -> None:
        options = ("--bytes", "4KiB", "--strategy", "static", "--static-bytes", "1KiB")
        _, out, _ = printed("optimize", outside, *options)
        assert "latency     1" in out
        assert "latency_is_upper_bound" not in out

    def test_the_document(self, printed: Any, outside: str) -> None:
        _, out, _ = printed("optimize", outside, "--bytes", "4096", "--json")
        document = json.loads(out)
        assert document["pipeline"] is None
        assert document["aggregate"]["total"] == AGGREGATE["total"]

    def test_a_cut_of_one_s_own_is_priced(self, printed: Any, outside: str, tmp_path: Path) -> None:
        """By the formula of `optimize`; its stages are not drawn."""
        cut = ("simulate", outside, "--bytes", "4KiB", "--repeat", "1KiB")
        code, out, _ = printed(*cut)
        assert code == 0
        assert "4 KiB through a pipeline seen from outside" in out
        assert "fragments  4: 4 × 1024 bytes" in out
        document = json.loads(printed(*cut, "--json")[1])
        static = ("--strategy", "static", "--static-bytes", "1KiB", "--json")
        solved = json.loads(printed("optimize", outside, "--bytes", "4KiB", *static)[1])
        assert document["latency_us"] == solved["latency_us"]
        code, _, err = printed(*cut, "--timeline", str(tmp_path / "drawn.svg"))
        assert code == 3
        assert "a timeline shows every stage" in err

    def test_a_refusal_says_what_is_missing(self, printed: Any, outside: str) -> None:
        code, out, err = printed("optimize", outside, "--bytes", "4KiB", "--strategy", "exact")
        assert (code, out) == (3, "")
        assert "time of every stage" in err

    def test_latencies_alone(self, printed: Any, tmp_path: Path) -> None:
        trace = tmp_path / "latency.csv"
        trace.write_text(LATENCY_CSV)
        for command in ("optimize", "compare"):
            code, out, err = printed(command, str(trace), "--bytes", "4KiB")
            assert (code, out) == (3, "")
            assert "inter-arrival times of back-to-back messages are missing" in err

    @pytest.mark.parametrize("trace", [LATENCY_CSV, INTERARRIVAL_CSV])
    def test_a_fit_of_half_of_it_is_no_pipeline(
        self, printed: Any, tmp_path: Path, trace: str
    ) -> None:
        """Nor is it one when it comes as the document that `fit --json` printed."""
        measured, path = tmp_path / "half.csv", tmp_path / "fit.json"
        measured.write_text(trace)
        _, document, _ = printed("fit", str(measured), "--json")
        path.write_text(document)
        code, _, err = printed("optimize", str(path), "--bytes", "4KiB")
        assert code == 3
        assert "are missing" in err


class TestFit:
    def test_what_fit_printed_can_be_solved(self, printed: Any, tmp_path: Path) -> None:
        """The aggregate of a fit, as `fit --json` prints it."""
        trace, path = tmp_path / "both.csv", tmp_path / "fit.json"
        trace.write_text(BOTH_CSV)
        code, out, _ = printed("fit", str(trace), "--json")
        assert code == 0
        path.write_text(out)
        options = ("--bytes", "4KiB", "--strategy", "fixed", "--json")
        code, out, _ = printed("optimize", str(path), *options)
        assert code == 0
        document = json.loads(out)
        assert document["aggregate"]["sum_overhead_us"] == pytest.approx(27.3, rel=0.02)
        assert document["fragments"] == 5

    def test_the_report_shows_total_and_bottleneck(self, printed: Any, tmp_path: Path) -> None:
        trace = tmp_path / "both.csv"
        trace.write_text(BOTH_CSV)
        code, out, _ = printed("fit", str(trace), "--save-as", "seen")
        assert code == 0
        assert "end to end" in out
        assert "bottleneck" in out
        assert "seen from outside" in printed("profiles", "show", "seen")[1]

    def test_a_fit_that_cannot_be_cut_by_is_shown_and_not_saved(
        self, printed: Any, tmp_path: Path
    ) -> None:
        trace = tmp_path / "latency.csv"
        trace.write_text(LATENCY_CSV)
        code, out, _ = printed("fit", str(trace))
        assert code == 0
        assert "end to end" in out
        code, _, err = printed("fit", str(trace), "--save-as", "half")
        assert code == 3
        assert "missing" in err
        assert printed("profiles", "show", "half")[0] == 4


class TestProfiles:
    def test_saved_shown_listed_copied(self, printed: Any, outside: str) -> None:
        code, out, _ = printed("profiles", "save", "seen", outside)
        assert code == 0
        assert "seen from outside" in out
        assert "total" in out
        assert "63.3789" in out
        assert "bottleneck" in out
        assert "aggregate" in printed("profiles", "list")[1]
        assert "aggregate" in printed("profiles", "revisions", "seen")[1]
        assert printed("profiles", "save", "copy", "seen")[0] == 0
        shown = json.loads(printed("profiles", "show", "copy", "--json")[1])
        assert shown["aggregate"]["total"] == AGGREGATE["total"]
        assert shown["pipeline"] is None
        code, out, _ = printed("optimize", "seen", "--bytes", "64KiB")
        assert code == 0
        assert "profile seen@1" in out

    def test_save_as(self, printed: Any, outside: str) -> None:
        assert printed("optimize", outside, "--bytes", "4KiB", "--save-as", "kept")[0] == 0
        assert "seen from outside" in printed("profiles", "show", "kept")[1]


class TestCompare:
    def test_rows_and_refusals(self, printed: Any, outside: str) -> None:
        code, out, _ = printed("compare", outside, "--bytes", "4KiB")
        assert code == 0
        assert out.startswith("a pipeline seen from outside\n")
        assert "repeat" in out
        assert out.count("time of every stage") + out.count("time of\nevery") >= 1

    def test_a_trace(self, printed: Any, tmp_path: Path) -> None:
        """A trace that holds both kinds of times."""
        trace = tmp_path / "both.csv"
        trace.write_text(BOTH_CSV)
        code, out, _ = printed("compare", str(trace), "--bytes", "4KiB", "--json")
        assert code == 0
        assert json.loads(out)["aggregate"]["total"]["name"] == "end to end"
