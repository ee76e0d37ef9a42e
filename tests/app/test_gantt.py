"""app/ui/gantt.py and app/text: pure functions, judged by what they mean."""

from __future__ import annotations

from decimal import Decimal
from math import inf

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.text.numbers import format_excess, format_gap, format_percent, format_sizes
from app.text.units import fit_to, format_time, printable, width_of
from app.ui.gantt import ASCII, UNICODE, Ink, chart_of, draw, paint
from app.ui.parts import Chart, GanttRow
from domain.pipeline import pipeline_of_lines
from domain.schedule import latency_us

PIPELINE = pipeline_of_lines([("copy", 1.0, 1.0), ("wire", 2.0, 20.0), ("out", 1.0, 1.0)])


def row_of(*blocks: tuple[float, float]) -> GanttRow:
    return GanttRow("stage", blocks)


def runs(cells: str) -> list[tuple[str, int]]:
    """Neighbouring equal characters together."""
    found: list[tuple[str, int]] = []
    for cell in cells:
        if found and found[-1][0] == cell:
            found[-1] = (cell, found[-1][1] + 1)
        else:
            found.append((cell, 1))
    return found


class TestPaint:
    def test_a_block_takes_its_share_of_the_columns(self) -> None:
        cells = paint(row_of((0, 25), (50, 100)), 100.0, 40, ASCII)
        assert runs(cells) == [("#", 10), (" ", 10), ("-", 20)]

    def test_neighbours_alternate_without_a_hole_between_them(self) -> None:
        cells = paint(row_of((0, 3.3), (3.3, 6.6), (6.6, 10)), 10.0, 41, ASCII)
        assert [cell for cell, _ in runs(cells)] == ["#", "-", "#"]

    def test_a_block_shorter_than_half_a_column_leaves_a_mark(self) -> None:
        cells = paint(row_of((50.1, 50.2)), 100.0, 40, ASCII)
        assert cells.strip() == ASCII.thin

    def test_blocks_too_many_to_tell_apart_are_dense(self) -> None:
        blocks = tuple((i / 100, (i + 1) / 100) for i in range(1000))
        assert set(paint(GanttRow("stage", blocks), 10.0, 40, ASCII)) == {ASCII.dense}

    def test_a_message_that_takes_no_time_is_drawn_too(self) -> None:
        assert paint(row_of((0, 0)), 0.0, 40, ASCII).strip() == ASCII.thin

    @example([0.0, 5e-324], 40)
    @given(
        st.lists(st.floats(0, 1e12, allow_nan=False), min_size=2, max_size=60),
        st.integers(1, 120),
    )
    def test_every_row_has_the_width_asked_for_and_is_never_blank(
        self, times: list[float], columns: int
    ) -> None:
        times.sort()
        blocks = tuple(zip(times[::2], times[1::2], strict=False))
        cells = paint(GanttRow("stage", blocks), max(times), columns)
        assert len(cells) == columns
        assert cells.strip()


class TestDraw:
    @pytest.mark.parametrize("ink", [UNICODE, ASCII])
    @pytest.mark.parametrize("width", [40, 80, 100])
    def test_rows_are_the_stages_and_the_bottleneck_is_marked(self, ink: Ink, width: int) -> None:
        lines = draw(chart_of(PIPELINE, (64, 64, 64), bottleneck=1), width=width, ink=ink)
        assert [line.split()[0] for line in lines[:3]] == ["copy", ink.bottleneck, "out"]
        assert lines[1].split()[1] == "wire"
        assert max(map(len, lines)) <= width
        assert max(map(len, lines)) >= width - 1

    def test_the_axis_ends_at_the_latency_and_the_delay_is_said(self) -> None:
        pipeline = pipeline_of_lines([("wire", 2.0, 20.0)], delay_us=5.0)
        chart = chart_of(pipeline, (100, 100), bottleneck=0)
        lines = draw(chart, width=80, ink=ASCII)
        total = latency_us(pipeline, (100, 100))
        assert lines[1].endswith(format_time(total - 5.0).replace("µs", "us"))
        assert "5 us of constant delay" in lines[2]

    def test_ascii_ink_is_ascii(self) -> None:
        lines = draw(chart_of(PIPELINE, (64,) * 50, bottleneck=1), width=80, ink=ASCII)
        assert "\n".join(lines).isascii()

    def test_a_long_name_is_cut_and_wide_ones_stay_aligned(self) -> None:
        rows = (GanttRow("n" * 90, ((0.0, 5.0),)), GanttRow("複製" * 9, ((5.0, 10.0),)))
        lines = draw(Chart(rows, 0, 0.0), width=60)
        assert "…" in lines[0]
        assert width_of(lines[0].split("█")[0]) + 14 < width_of(lines[1].split("█")[0])
        assert all(width_of(line) <= 60 for line in lines)

    def test_nested_cuts_show_each_stage_its_own_blocks(self) -> None:
        levels = ((64, 64, 64, 64), (256,), (128, 128))
        chart = chart_of(PIPELINE, (256,), bottleneck=1, levels=levels)
        assert [len(row.blocks) for row in chart.rows] == [4, 1, 2]
        first_end, second_start = chart.rows[0].blocks[-1][1], chart.rows[1].blocks[0][0]
        assert first_end == second_start  # reassembly: the wire waits for the last byte


class TestWords:
    @pytest.mark.parametrize(
        ("sizes", "text"),
        [
            ((4096,), "4096"),
            ((4096, 4096, 17), "2 × 4096, 17"),
            (tuple(range(1, 12)), ", ".join(map(str, range(1, 12)))),
        ],
    )
    def test_equal_neighbours_are_told_once(self, sizes: tuple[int, ...], text: str) -> None:
        assert format_sizes(sizes) == text

    def test_a_long_list_is_shortened_and_says_by_how_many(self) -> None:
        assert "… 89 more …" in format_sizes(range(1, 101))

    @pytest.mark.parametrize(
        ("gap", "text"),
        [
            (0.0, "0 %"),
            (1e-12, "< 0.0001 %"),
            (9.99e-7, "< 0.0001 %"),
            (1e-6, "0.0001 %"),
            (1.1e-4, "0.011 %"),
            (0.0246, "2.46 %"),
            (0.024601, "2.47 %"),
            (0.99999, "100 %"),
            (2.5, "250 %"),
            (2.501, "251 %"),
            (2e9, "2.00e+11 %"),
            (inf, "∞ %"),
        ],
    )
    def test_a_gap_is_zero_only_where_it_is(self, gap: float, text: str) -> None:
        assert format_gap(gap) == text

    @given(st.floats(0.0, 1e12))
    def test_no_gap_is_told_smaller_than_it_is(self, gap: float) -> None:
        reported = format_gap(gap).removesuffix(" %").removeprefix("< ")
        assert Decimal(reported) >= 100 * Decimal(gap) * (1 - Decimal(2) ** -52)
        assert "e-" not in reported

    @pytest.mark.parametrize(
        ("share", "text"), [(0.0, "0 %"), (9e-7, "< 0.0001 %"), (3e-6, "0.0003 %"), (0.5, "50 %")]
    )
    def test_a_share_has_no_exponent(self, share: float, text: str) -> None:
        assert format_percent(share) == text

    def test_excess(self) -> None:
        assert format_excess(150.0, 100.0) == "+50 %"
        assert format_excess(90.0, 100.0) == "−10 %"
        assert format_excess(100.0, 100.0) == "equal"
        assert format_excess(1671.0, 100.0) == "+1571 %"
        assert format_excess(100.0 + 1e-6, 100.0) == "< +0.0001 %"
        assert format_excess(100.0 - 1e-6, 100.0) == "> −0.0001 %"
        assert format_excess(1.0, 0.0) == ""

    def test_names_cannot_steer_a_terminal(self) -> None:
        assert printable("a\x1b[2Jb\n") == "a?[2Jb?"
        assert fit_to("a\x1bb", 4) == "a?b "
