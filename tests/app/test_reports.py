"""What a person reads of outputs that the examples do not reach."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.console.reports import (
    stages_table,
)
from app.schemas.fits import stage_fit_out
from app.schemas.stages import stored_pipeline
from app.ui.fit_parts import fit_table
from app.ui.parts import Chart, Facts, Grid
from app.verbs.compare.show import grid, notes
from app.verbs.optimize.show import gantt_part, instead_table
from app.verbs.optimize.show import parts as answer_parts
from app.verbs.profiles import show as profiles
from contract.compare import CompareRowOut
from contract.optimize import BaselineOut, BestFixedOut, OptimizeOut
from contract.pipeline import LineStageOut, PipelineOut, RangeOut, RangesStageOut
from contract.profiles import ProvenanceOut, RevisionOut, RevisionsOut
from domain.fit import FitMethod, LineFit, StageFit, Verdict
from domain.solution import Status, Strategy
from tests.support.answers import solved

RANGES = RangesStageOut("wire", (RangeOut(8192, 10.0, 20.0), RangeOut(None, 60.0, 11.3)))
LINE = LineStageOut("copy", 1.0, 1.0)
GIVEN = ProvenanceOut("given", "", None)


def answer(**changes: Any) -> OptimizeOut:
    base = solved(stored_pipeline(PipelineOut((RANGES, LINE), 0.0)))
    plain: dict[str, Any] = {
        "strategy": Strategy.EXACT,
        "fragment_bytes": (64, 64),
        "fragments": 2,
        "latency_us": 30.0,
        "lower_bound_us": 25.0,
        "relative_gap": 0.2,
        "status": Status.PROVEN_GAP,
        "limited_by": None,
        "bottleneck_stage": 0,
        "best_fixed": None,
        "baselines": (),
    }
    return replace(base, **{**plain, **changes})


def facts_of(shown: OptimizeOut) -> dict[str, str]:
    parts = answer_parts(shown)
    return dict(next(part for part in parts if isinstance(part, Facts)).pairs)


def row(**changes: Any) -> CompareRowOut:
    plain: dict[str, Any] = {
        "message_bytes": 128,
        "strategy": Strategy.EXACT,
        "chosen": Strategy.EXACT,
        "latency_us": 30.0,
        "lower_bound_us": 30.0,
        "relative_gap": 0.0,
        "fragments": 2,
        "largest_fragment_bytes": 64,
        "status": Status.OPTIMAL,
        "declined": None,
    }
    return CompareRowOut(**{**plain, **changes})


class TestAnswer:
    def test_a_cap_and_its_name_are_told(self) -> None:
        assert facts_of(answer(limited_by="max_fragments"))["limited by"] == "max_fragments"
        assert "limited by" not in facts_of(answer())

    def test_every_status_is_explained_truthfully(self) -> None:
        stated = {status: facts_of(answer(status=status))["status"] for status in Status}
        assert "proven optimum of this model" in stated["optimal"]
        assert "no proven optimum" in stated["proven_gap"]
        assert "stopped" in stated["time_limit"]

    def test_nested_cuts_are_told_and_drawn(self) -> None:
        nested = answer(levels=((128,), (64, 64)), fragment_bytes=(128,), fragments=1)
        assert "cut differently" in facts_of(nested)["levels"]
        chart = gantt_part(nested)
        assert isinstance(chart, Chart)
        assert [len(row.blocks) for row in chart.rows] == [1, 2]

    def test_more_blocks_than_can_be_drawn(self) -> None:
        many = answer(fragment_bytes=(1,) * 150_000, fragments=150_000)
        assert gantt_part(many) == "(no Gantt: 300000 blocks are more than can be distinguished)"

    def test_what_limits_forbid_is_said_to_be_impossible(self) -> None:
        declined = BaselineOut(Strategy.SINGLE, None, None, None, "max_fragment_bytes 64")
        grid = instead_table(answer(baselines=(declined,)))
        assert grid.rows == (("single", "not possible: max_fragment_bytes 64", "", ""),)

    def test_a_latency_of_nothing_is_divided_by_nowhere(self) -> None:
        free = LineStageOut("free", 0.0, 0.0)
        nothing = answer(
            latency_us=0.0,
            lower_bound_us=0.0,
            relative_gap=0.0,
            pipeline=PipelineOut((free,), 0.0),
            best_fixed=BestFixedOut(128, 1, 0.0),
        )
        assert facts_of(nothing)["latency"] == "0 µs"


class TestTables:
    def test_ranges_take_a_row_each_and_lines_need_no_column_for_them(self) -> None:
        both = stages_table(PipelineOut((RANGES, LINE), 0.0))
        assert [cells[-1] for cells in both.rows] == ["8 KiB", "larger", "any"]
        assert [cells[0] for cells in both.rows] == ["wire", "", "copy"]
        assert len(stages_table(PipelineOut((LINE,), 0.0)).columns) == 3

    def test_the_least_is_marked_and_nested_cuts_have_a_footnote(self) -> None:
        rows = [
            row(),
            row(strategy=Strategy.AUTO, chosen=Strategy.HIERARCHICAL, latency_us=20.0),
            row(
                strategy=Strategy.STATIC,
                chosen=Strategy.STATIC,
                latency_us=40.0,
                status=Status.TIME_LIMIT,
            ),
        ]
        cells = grid(rows).rows
        assert [line[4] for line in cells] == ["+50 %", "best", "+100 %"]
        assert cells[1][0] == "auto (hierarchical) *"
        assert "cut off" in cells[2][5]
        assert next(notes(rows)).startswith("* ")  # type: ignore[union-attr]

    def test_differences_that_time_left_open_have_limits(self) -> None:
        """Also of the best, which may not stay it; without a bound at least."""
        ended = {"status": Status.TIME_LIMIT, "lower_bound_us": 10.0}
        rows = [
            row(excess_at_least=0.0, excess_at_most=2.0, latency_us=30.0),
            row(excess_at_least=0.0, excess_at_most=0.0, latency_us=20.0, **ended),
            row(excess_at_least=0.5, excess_at_most=None, latency_us=40.0, **ended),
            row(excess_at_least=0.0, excess_at_most=0.5, latency_us=20.0, **ended),
        ]
        shown = [line[4] for line in grid(rows).rows]
        assert shown == ["0 % to +200 %", "best", "at least +50 %", "best so far"]
        assert next(notes(rows)).startswith("cut off")  # type: ignore[union-attr]

    def test_what_was_declined_is_told_with_its_reason(self) -> None:
        rows = [
            row(strategy=Strategy.RAMP, chosen=None, latency_us=None, declined="needs two stages")
        ]
        assert list(notes(rows)) == ["ramp: needs two stages"]

    def test_intervals_are_shown_where_there_is_room(self) -> None:
        line = LineFit(
            overhead_us=1.0,
            ns_per_byte=2.0,
            overhead_std_error_us=0.1,
            ns_per_byte_std_error=0.2,
            correlation=0.0,
            overhead_us_interval=(0.8, 1.2),
            ns_per_byte_interval=(1.6, 2.4),
            overhead_verdict=Verdict.SUPPORTED,
            ns_per_byte_verdict=Verdict.SUPPORTED,
            from_bytes=1,
            to_bytes=2,
            up_to_bytes=None,
            num_samples=2,
        )
        fitted = StageFit("copy", FitMethod.ROBUST, (line,), (), 2, 0, 0.02, 0.1, 1.0)
        stage = stage_fit_out(fitted)
        assert "0.80 … 1.20" in fit_table([stage], width=120).rows[0]
        assert "0.80 … 1.20" not in fit_table([stage], width=80).rows[0]

    def test_a_profile_with_a_delay(self) -> None:
        pipeline = PipelineOut((LINE,), 5.0)
        revision = RevisionOut(2, True, "2026-01-02T03:04:05.000000Z", pipeline, None, GIVEN, ())
        parts = list(profiles.parts("mine", revision))
        assert parts[0] == "mine@2  given"
        assert "5 µs" in str(parts[-1])

    def test_revisions(self) -> None:
        paper = ProvenanceOut("paper", "Table 1", None)
        pipeline = PipelineOut((LINE,), 0.0)
        item = RevisionOut(1, True, "2026-01-02T03:04:05.000000Z", pipeline, None, paper, ())
        grid = profiles.revisions(RevisionsOut("mine", (item,)))
        assert isinstance(grid, Grid)
        assert grid.rows == (("1", "current", "2026-01-02 03:04:05", "1", "published: Table 1"),)
