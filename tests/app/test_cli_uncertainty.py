"""sluice optimize where costs have errors: the decision first, and how sure it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
MYRINET = str(EXAMPLES / "myrinet-gam.json")
TRACE = str(EXAMPLES / "local-path-direct.csv")


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """main(argv) in this process: (exit code, standard output, standard error)."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


class TestUncertainty:
    def test_what_to_do_comes_first(self, printed: Any) -> None:
        code, out, _ = printed(
            *("optimize", TRACE, "--bytes", "1MiB", "--strategy", "repeat", "--current", "64KiB"),
            *("--stages-overlap", "yes"),
        )
        assert code == 0
        first = out.index("Set ")
        assert "faster than your 64 KiB" in " ".join(out[first:].split())
        assert first < out.index("1 MiB through 5 stages")
        for name in ("interval", "against one piece", "within 2 %", "round size"):
            assert name in out

    def test_one_piece_is_left_where_no_gain_is_provable(self, printed: Any) -> None:
        _, out, _ = printed("optimize", TRACE, "--bytes", "128KiB", "--strategy", "repeat")
        assert "Do not cut:" in out

    def test_typed_costs_have_it_with_their_deviation(self, printed: Any) -> None:
        code, out, _ = printed("optimize", MYRINET, "--bytes", "64KiB", "--relative", "10%")
        assert code == 0
        assert "For costs that are known to ±10 %." in " ".join(out.split())
        code, out, _ = printed("optimize", MYRINET, "--bytes", "64KiB", "--current", "16KiB")
        assert code == 0
        assert "interval" not in out
        assert "your setting     16 KiB each: 4 fragments" in out


def test_sensitivities_and_the_cut_for_the_worst_draw_are_asked_for(printed: Any) -> None:
    asked = ("optimize", MYRINET, "--bytes", "16KiB", "--relative", "10%")
    _, plain, _ = printed(*asked)
    assert "what decides" not in plain
    assert "for the worst draw" not in plain
    code, out, _ = printed(*asked, "--robust", "--sensitivities")
    assert code == 0
    words = " ".join(out.split())
    assert "for the worst draw" in words
    assert "10 % less cost there saves" in words
    assert "per µs of overhead" in words


def test_sizes_that_nobody_measured_are_said_before_all_else(
    printed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By every command whose answer may have them, and no decision advises one."""
    monkeypatch.setenv("SLUICE_DATABASE_URL", f"sqlite:///{tmp_path}/sluice.db")
    trace, header = tmp_path / "trace.csv", tmp_path / "plan.h"
    sizes = [4096 << power for power in range(5)]
    off = (1.0, 1.002, 0.998, 1.001)
    rows = [
        f"{size},{(0.2 + size * 1e-3) * one:.6f},{(0.3 + size * 1.2e-3) * one:.6f}"
        for size in sizes
        for one in off
    ]
    trace.write_text("\n".join(["size_bytes,copy_us,wire_us", *rows]))
    at_most = ("--max-message", "16KiB", "--relative-gap", "1%")
    code, _, _ = printed("fit", str(trace), "--stages-overlap", "yes", "--save-as", "few")
    assert code == 0
    _, answer, _ = printed("optimize", "few", "--bytes", "32KiB")
    _, audit, _ = printed("audit", "few", "--setting", "1KiB", *at_most[:2])
    _, table, _ = printed("table", "few", "--output", str(tmp_path / "few.slt"), *at_most)
    for shown, noun in ((answer, "answer"), (audit, "setting"), (table, "table")):
        assert shown.startswith(f"The {noun} has fragments of ")
        assert "every stage was measured from 4 KiB to 64 KiB" in " ".join(shown.split())
    assert "Set 4 KiB." in answer
    code, _, noted = printed("export", "few", "--target", "c-header", "--output", str(header))
    assert code == 0
    assert "NOT MEASURED: it has fragments of " in noted
    assert "NOT MEASURED: it has fragments of " in header.read_text()
