"""app/console/reports.py: what a person reads of documents that the examples do not reach."""

from __future__ import annotations

from typing import Any

from app.console.gantt import ASCII
from app.console.reports import (
    answer_parts,
    comparison_grid,
    comparison_note_parts,
    fit_table,
    gantt_parts,
    instead_table,
    profile_parts,
    revisions_table,
    stages_table,
)
from app.console.screen import Facts, Grid

RANGES = {
    "name": "wire",
    "ranges": [
        {"up_to_bytes": 8192, "overhead_us": 10.0, "ns_per_byte": 20.0},
        {"up_to_bytes": None, "overhead_us": 60.0, "ns_per_byte": 11.3},
    ],
}
LINE = {"name": "copy", "overhead_us": 1.0, "ns_per_byte": 1.0}


def answer(**changes: Any) -> dict[str, Any]:
    return {
        "strategy": "exact",
        "message_bytes": 128,
        "fragment_bytes": [64, 64],
        "fragments": 2,
        "latency_us": 30.0,
        "lower_bound_us": 25.0,
        "relative_gap": 0.2,
        "status": "proven_gap",
        "limited_by": None,
        "bottleneck_stage": 0,
        "best_fixed": None,
        "baselines": [],
        "levels": None,
        "pipeline": {"stages": [RANGES, LINE], "delay_us": 0.0},
        "profile": None,
        "warnings": [],
        **changes,
    }


def facts_of(document: dict[str, Any]) -> dict[str, str]:
    parts = answer_parts(document, width=80, ink=ASCII)
    return dict(next(part for part in parts if isinstance(part, Facts)).pairs)


def row(**changes: Any) -> dict[str, Any]:
    return {
        "strategy": "exact",
        "chosen": "exact",
        "fragments": 2,
        "largest_fragment_bytes": 64,
        "latency_us": 30.0,
        "relative_gap": 0.0,
        "status": "optimal",
        "declined": None,
        **changes,
    }


class TestAnswer:
    def test_a_cap_and_its_name_are_told(self) -> None:
        assert facts_of(answer(limited_by="max_fragments"))["limited by"] == "max_fragments"
        assert "limited by" not in facts_of(answer())

    def test_every_status_is_explained_truthfully(self) -> None:
        said = {
            status: facts_of(answer(status=status))["status"]
            for status in ("optimal", "optimal_before_rounding", "proven_gap", "time_limit")
        }
        assert "proven optimal" in said["optimal"]
        assert "not proven" in said["proven_gap"]
        assert "stopped" in said["time_limit"]

    def test_nested_cuts_are_told_and_drawn(self) -> None:
        nested = answer(levels=[[128], [64, 64]], fragment_bytes=[128], fragments=1)
        assert "cut differently" in facts_of(nested)["levels"]
        (chart,) = gantt_parts(nested, width=60, ink=ASCII)
        assert isinstance(chart, str)
        assert "-" in chart.splitlines()[1]  # the second stage has a second block

    def test_more_blocks_than_can_be_drawn(self) -> None:
        many = answer(fragment_bytes=[1] * 150_000, fragments=150_000)
        assert list(gantt_parts(many, width=80, ink=ASCII)) == [
            "(no Gantt: 300000 blocks are more than can be told apart)"
        ]

    def test_what_limits_forbid_is_said_to_be_impossible(self) -> None:
        declined = {
            "strategy": "single",
            "static_bytes": None,
            "latency_us": None,
            "fragments": None,
            "declined": "max_fragment_bytes 64",
        }
        grid = instead_table(answer(baselines=[declined]))
        assert grid.rows == (("single", "not possible: max_fragment_bytes 64", "", ""),)

    def test_a_latency_of_nothing_is_divided_by_nowhere(self) -> None:
        free = {"name": "free", "overhead_us": 0.0, "ns_per_byte": 0.0}
        nothing = answer(
            latency_us=0.0,
            lower_bound_us=0.0,
            relative_gap=0.0,
            pipeline={"stages": [free], "delay_us": 0.0},
            best_fixed={"size_bytes": 128, "fragments": 1, "latency_us": 0.0},
        )
        assert facts_of(nothing)["latency"] == "0 µs"


class TestTables:
    def test_ranges_take_a_row_each_and_lines_need_no_column_for_them(self) -> None:
        both = stages_table({"stages": [RANGES, LINE]})
        assert [cells[-1] for cells in both.rows] == ["8 KiB", "larger", "any"]
        assert [cells[0] for cells in both.rows] == ["wire", "", "copy"]
        assert len(stages_table({"stages": [LINE]}).columns) == 3

    def test_the_least_is_marked_and_nested_cuts_have_a_footnote(self) -> None:
        rows = [
            row(),
            row(strategy="auto", chosen="hierarchical", latency_us=20.0),
            row(strategy="static", chosen="static", latency_us=40.0, status="time_limit"),
        ]
        cells = comparison_grid(rows).rows
        assert [line[4] for line in cells] == ["+50 %", "least", "+100 %"]
        assert cells[1][0] == "auto (hierarchical) *"
        assert "cut off" in cells[2][5]
        assert next(comparison_note_parts(rows)).startswith("* ")  # type: ignore[union-attr]

    def test_what_was_declined_is_told_with_its_reason(self) -> None:
        rows = [row(strategy="ramp", chosen=None, latency_us=None, declined="needs two stages")]
        assert list(comparison_note_parts(rows)) == ["ramp: needs two stages"]

    def test_intervals_are_shown_where_there_is_room(self) -> None:
        line = {
            "up_to_bytes": None,
            "overhead_us": 1.0,
            "ns_per_byte": 2.0,
            "overhead_std_error_us": 0.1,
            "ns_per_byte_std_error": 0.2,
            "overhead_us_interval": (0.8, 1.2),
            "ns_per_byte_interval": (1.6, 2.4),
        }
        stage = {"name": "copy", "ranges": [line], "relative_residual_std": 0.02}
        assert "0.80 … 1.20" in fit_table([stage], width=120).rows[0]
        assert "0.80 … 1.20" not in fit_table([stage], width=80).rows[0]

    def test_a_profile_with_a_delay(self) -> None:
        document = {
            "name": "mine",
            "revision": 2,
            "pipeline": {"stages": [LINE], "delay_us": 5.0},
            "provenance": {"origin": "given", "detail": ""},
        }
        parts = list(profile_parts(document))
        assert parts[0] == "mine@2  given"
        assert "5 µs" in str(parts[-1])

    def test_revisions(self) -> None:
        item = {
            "revision": 1,
            "is_current": True,
            "created_at": "2026-01-02T03:04:05.000000Z",
            "pipeline": {"stages": [LINE]},
            "provenance": {"origin": "paper", "detail": "Table 1"},
        }
        grid = revisions_table({"name": "mine", "revisions": [item]})
        assert isinstance(grid, Grid)
        assert grid.rows == (("1", "current", "2026-01-02 03:04:05", "1", "paper: Table 1"),)
