"""The timeline as SVG: what it shows is read back through its own axis and held to the
evaluator.
"""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.plots.timeline_plan import DrawnSchedule, TimeScale, format_moment, marks_of
from app.plots.timeline_rows import SCOPE, STYLE
from app.plots.timeline_svg import render_timeline_svg, timeline_element
from app.text.numbers import format_gap
from app.text.units import format_proven, printable
from domain.errors import InvalidInput
from domain.nested import NestedSchedule, simulate_nested
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.schedule import simulate
from domain.timeline import Timeline, nested_timeline_of, timeline_of
from tests.support.drawn_timelines import (
    SVG,
    UNITS,
    by_class,
    corners,
    drawn,
    one,
    panels,
    shift,
    text_of,
    title_of,
    value,
)
from tests.support.plot_style import assert_light_and_dark

FOUR = pipeline_of_lines(
    [("copy", 7.2, 7.03), ("dma", 5.2, 24.3), ("network", 7.5, 24.3), ("out", 7.4, 7.7)],
    delay_us=3.0,
)
CUT = (293, 729, 824, 919, 1013, 318)
WIDTH, ROUNDING = 960.0, 0.011  # of the sheet; of a coordinate with two decimals


class TestGeometry:
    def test_every_block_is_where_the_evaluator_has_it(self) -> None:
        """Start, the end of the overhead, and exit, of every fragment in every stage."""
        (panel,) = panels(one(timeline_of(FOUR, CUT)))
        timeline, near = simulate(FOUR, CUT), 2 * ROUNDING * panel.us_per_pixel
        for j, stage in enumerate(FOUR.stages):
            expected = [
                (row[j], row[j] + stage.ranges[0].overhead_us, exits[j])
                for row, exits in zip(timeline.start_us, timeline.exit_us, strict=True)
            ]
            for shown, known in zip(panel.blocks(j), expected, strict=True):
                assert shown == pytest.approx(known, abs=near)

    def test_the_ends_bound_and_latency(self) -> None:
        timeline = timeline_of(FOUR, CUT)
        (panel,) = panels(one(timeline, 180.0))
        (latency,) = by_class(panel.element, "latency")
        (bound,) = by_class(panel.element, "bound")
        near = 2 * ROUNDING * panel.us_per_pixel
        assert panel.time_us(value(latency, "x1")) == pytest.approx(timeline.latency_us, abs=near)
        assert panel.time_us(value(bound, "x1")) == pytest.approx(180.0, abs=near)

    def test_nested_cuts_are_drawn_each_in_its_stage(self) -> None:
        schedule = NestedSchedule(((400,) * 10, (1000,) * 4, (2000,) * 2, (500,) * 8))
        (panel,) = panels(one(nested_timeline_of(FOUR, schedule)))
        timeline, near = simulate_nested(FOUR, schedule), 2 * ROUNDING * panel.us_per_pixel
        for j in range(4):
            known = list(zip(timeline.start_us[j], timeline.exit_us[j], strict=True))
            shown = [(start, end) for start, _, end in panel.blocks(j)]
            assert len(shown) == len(known)
            assert sum(shown, ()) == pytest.approx(sum(known, ()), abs=near)

    def test_the_overhead_is_that_of_the_range_that_holds_the_fragment(self) -> None:
        stage = Stage("wire", (FitRange(10.0, 20.0, 1000), FitRange(50.0, 10.0)))
        (panel,) = panels(one(timeline_of(Pipeline((stage,)), (1000, 1001))))
        near = 2 * ROUNDING * panel.us_per_pixel
        overheads = [middle - start for start, middle, _ in panel.blocks(0)]
        assert overheads == pytest.approx([10.0, 50.0], abs=near)
        assert "10…50 µs + 10…20 ns/B" in text_of(panel.element)

    def test_idle_time_is_the_ground_between_the_first_block_and_the_last(self) -> None:
        (panel,) = panels(one(timeline_of(FOUR, CUT)))
        timeline, near = simulate(FOUR, CUT), 2 * ROUNDING * panel.us_per_pixel
        for j, row in enumerate(panel.rows()):
            (ground,) = by_class(row, "idle")
            left = value(ground, "x")
            ends = panel.time_us(left), panel.time_us(left + value(ground, "width"))
            known = timeline.start_us[0][j], timeline.exit_us[-1][j]
            assert ends == pytest.approx(known, abs=near)

    def test_several_schedules_have_one_time_scale(self) -> None:
        """The shorter one ends where its latency is on the axis of the longer one."""
        fast, slow = timeline_of(FOUR, CUT), timeline_of(FOUR, (4096,))
        upper, lower = panels(drawn(DrawnSchedule("a", fast), DrawnSchedule("b", slow)))
        assert upper.us_per_pixel == lower.us_per_pixel
        ends = [value(by_class(panel.element, "latency")[0], "x1") for panel in (upper, lower)]
        assert ends[1] == WIDTH - 24
        assert upper.time_us(ends[0]) == pytest.approx(fast.latency_us, rel=1e-3)
        assert shift(lower.element) > shift(upper.element)


class TestCriticalPath:
    @pytest.mark.parametrize("delay_us", [0.0, 3.0])
    def test_its_stretches_sum_to_the_latency(self, delay_us: float) -> None:
        timeline = timeline_of(Pipeline(FOUR.stages, delay_us), CUT)
        (panel,) = panels(one(timeline))
        (path,) = by_class(panel.element, "path")
        places = corners(path)
        assert all((c >= a and d == b) or (c == a and d > b) for (a, b), (c, d) in pairwise(places))
        level = [right - left for (left, y), (right, z) in pairwise(places) if y == z]
        near = 10 * ROUNDING * panel.us_per_pixel
        assert sum(level) * panel.us_per_pixel == pytest.approx(timeline.latency_us, abs=near)
        assert panel.time_us(places[0][0]) == pytest.approx(0.0, abs=near)

    def test_it_passes_the_blocks_that_the_evaluator_names(self) -> None:
        (panel,) = panels(one(timeline_of(FOUR, CUT)))
        marked = [
            (int(re.findall(r"fragment ([0-9]+)", title_of(block))[0]) - 1, j)
            for j, row in enumerate(panel.rows())
            for block in by_class(row, "block", "critical")
        ]
        assert tuple(marked) == simulate(FOUR, CUT).critical_path()

    def test_it_is_told_in_the_description(self) -> None:
        root = one(timeline_of(pipeline_of_lines([("a", 2.0, 0.0), ("b", 3.0, 0.0)]), (1, 1)))
        stated = root.findtext(f"{SVG}desc") or ""
        assert (
            "a with fragment 1 from 0 µs to 2 µs, b with fragments 1 to 2 from 2 µs to 8" in stated
        )


class TestWords:
    def test_what_a_reader_must_know_is_said(self) -> None:
        timeline = timeline_of(FOUR, CUT)
        root = one(timeline, 180.0)
        stated = text_of(root.find(f"{SVG}title") or root)
        latency, bound = format_proven(timeline.latency_us, 180.0)
        gap = format_gap(timeline.latency_us / 180.0 - 1)
        for words in ("4 KiB through 4 stages", "exact: 6 fragments", latency, bound, gap):
            assert words in stated
        (heading,) = by_class(root, "heading")
        assert text_of(heading) == f"exact: 6 fragments, {latency}"
        assert "293, 729, 824, 919, 1013, 318 bytes" in text_of(root)

    def test_each_stage_has_its_name_and_costs_and_one_is_the_bottleneck(self) -> None:
        root = one(timeline_of(FOUR, CUT))
        labels = [text_of(label) for label in by_class(root, "label")]
        assert [label.split("ns/B")[0] for label in labels[:2]] == [
            "copy7.2 µs + 7.03 ",
            "dma5.2 µs + 24.3 ",
        ]
        assert labels[4] == "constant delay3 µs"
        (slowest,) = by_class(root, "stage", "bottleneck")
        assert title_of(slowest).startswith("network, the bottleneck: ")

    def test_pointing_at_a_block_tells_it(self) -> None:
        (panel,) = panels(one(timeline_of(FOUR, CUT)))
        start, end = simulate(FOUR, CUT).start_us[1][0], simulate(FOUR, CUT).exit_us[1][0]
        reported = title_of(by_class(panel.rows()[0], "block")[1])
        span = f"{format_moment(start)} to {format_moment(end)}"
        assert reported == f"fragment 2 of 6: 729 B, {span}, critical path"

    def test_what_the_other_takes_more(self) -> None:
        timeline = timeline_of(FOUR, CUT)
        root = drawn(DrawnSchedule("a", timeline), DrawnSchedule("b", timeline_of(FOUR, (4096,))))
        first, second = (text_of(heading) for heading in by_class(root, "heading"))
        assert "%" not in first
        assert re.search(r"b: 1 fragment, .* \(\+[0-9.]+ %\)$", second)

    def test_schedules_of_different_messages_have_no_scale_in_common(self) -> None:
        with pytest.raises(InvalidInput, match="one message"):
            drawn(
                DrawnSchedule("a", timeline_of(FOUR, (1,))),
                DrawnSchedule("b", timeline_of(FOUR, (2,))),
            )
        with pytest.raises(InvalidInput):
            render_timeline_svg([])

    @pytest.mark.parametrize(
        ("time_us", "text"),
        [
            (0.0, "0 µs"),
            (0.0123456, "12.3456 ns"),
            (184.3608, "184.361 µs"),
            (1500.0, "1.5 ms"),
            (2.5e6, "2.5 s"),
            (1.5e13, "15000000 s"),
            (5e-324, "4.941e-321 ns"),
        ],
    )
    def test_times_are_told_in_the_unit_that_suits_them(self, time_us: float, text: str) -> None:
        assert format_moment(time_us) == text


class TestAxis:
    @example(5e-324)
    @example(7.3e-280)
    @example(1e21)
    @given(st.floats(1e-12, 1e18))
    def test_ticks_are_round_in_order_and_neither_few_nor_many(self, span_us: float) -> None:
        ticks = TimeScale(span_us, 24.0, 912.0).ticks(6)
        assert (ticks[0].value, ticks[0].label) == (0.0, "0")
        if TimeScale(span_us, 24.0, 912.0).is_empty:
            assert len(ticks) == 1
            return
        assert 3 <= len(ticks) <= 7
        assert len({tick.label for tick in ticks}) == len(ticks)
        assert len({tick.label.split()[1] for tick in ticks[1:]}) == 1
        for tick in ticks[1:]:
            amount, unit = tick.label.split()
            assert float(amount) * UNITS[unit] == pytest.approx(tick.value, rel=1e-5)
            assert tick.value <= span_us * (1 + 1e-9)


class TestMerging:
    def check_marks(self, timeline: Timeline, min_us: float, longest_us: float) -> None:
        for stage in timeline.stages:
            marks = list(marks_of(stage, min_us=min_us, longest_us=longest_us))
            held = [i for mark in marks for i in range(mark.first, mark.last + 1)]
            assert held == list(range(len(stage.fragment_bytes)))
            assert sum(mark.busy_us for mark in marks) == pytest.approx(stage.busy_us)
            for mark in marks:
                first, last = stage.start_us[mark.first], stage.exit_us[mark.last]
                assert (mark.start_us, mark.exit_us) == (first, last)
                assert mark.until_us >= mark.exit_us
                over, busy = mark.shares
                assert 0.0 <= over <= busy <= 1.0
            for mark, after in pairwise(marks):
                assert mark.until_us <= after.start_us

    def check_runs(self, timeline: Timeline, min_us: float, longest_us: float) -> None:
        for stage in timeline.stages:
            for mark in marks_of(stage, min_us=min_us, longest_us=longest_us):
                inside = range(mark.first, mark.last + 1)
                taken = [stage.exit_us[i] - stage.start_us[i] for i in inside]
                pauses = [stage.start_us[i + 1] - stage.exit_us[i] for i in inside[:-1]]
                if mark.is_run:
                    assert max(taken) < min_us
                    assert max(pauses) < min_us
                    assert mark.exit_us - mark.start_us <= longest_us

    @given(st.integers(0, 2**32), st.floats(0.0, 60.0), st.integers(1, 80))
    def test_runs_hold_what_cannot_be_seen_and_nothing_is_lost(
        self, seed: int, min_us: float, fragments: int
    ) -> None:
        chance = random.Random(seed)
        timeline = timeline_of(FOUR, tuple(chance.randint(1, 2000) for _ in range(fragments)))
        self.check_marks(timeline, min_us, 6 * min_us)
        self.check_runs(timeline, min_us, 6 * min_us)

    def test_the_picture_says_that_it_merged(self) -> None:
        cut = (10,) * 3000
        root = one(timeline_of(FOUR, cut))
        runs = by_class(root, "run")
        (first, second) = (text_of(note) for note in by_class(root, "note"))
        reported = [
            re.findall(r"fragments ([0-9]+) to ([0-9]+) of 3000", title_of(run)) for run in runs
        ]
        merged = sum(int(last) - int(start) + 1 for ((start, last),) in reported)
        assert first == f"{merged} blocks narrower than 2 px are merged into runs."
        assert "heights are shares of time" in second
        assert merged + len(by_class(root, "block")) == 4 * 3000

    def test_the_heights_of_a_run_are_shares_of_its_time(self) -> None:
        pipeline = pipeline_of_lines([("slow", 2.0, 0.0), ("quick", 0.25, 0.25)])
        (panel,) = panels(one(timeline_of(pipeline, (1000,) * 5000)))
        slow, quick = (by_class(row, "run")[5] for row in panel.rows())
        (whole,) = slow.iter(f"{SVG}rect")
        over, byte = quick.iter(f"{SVG}rect")
        shares = [value(box, "height") / value(whole, "height") for box in (over, byte)]
        assert shares == pytest.approx([0.125, 0.125], rel=0.01)
        assert value(over, "y") == pytest.approx(value(byte, "y") + value(byte, "height"), abs=0.02)

    def test_100_000_fragments(self) -> None:
        chance = random.Random(4)
        cut = tuple(chance.randint(1, 9000) for _ in range(100_000))
        assert len(render_timeline_svg([DrawnSchedule("exact", timeline_of(FOUR, cut))])) < 60_000

    @pytest.mark.parametrize("fragments", [3, 90, 400, 2000])
    def test_64_stages(self, fragments: int) -> None:
        """However wide the blocks come out, two schedules of all of them stay below 4 MB."""
        chance = random.Random(5)
        lines = [(f"stage {j}", chance.random(), chance.random()) for j in range(64)]
        timeline = timeline_of(
            pipeline_of_lines(lines), tuple(chance.randint(900, 1100) for _ in range(fragments))
        )
        text = render_timeline_svg([DrawnSchedule("a", timeline), DrawnSchedule("b", timeline)])
        assert len(text.encode()) < 4_000_000
        assert [len(panel.rows()) for panel in panels(ET.fromstring(text.encode()))] == [64, 64]


COST = st.sampled_from([0.0, 5e-324, 1e-9, 0.5, 7.5, 1e9])


class TestAnything:
    @example([(0.0, 0.0)] * 2, [1, 2, 3], 0.0)
    @example([(5.0, 0.0)], [4096], 30.0)
    @example([(0.0, 0.0), (4.0, 0.0), (0.0, 1.0)], [1000, 2000], 0.0)
    @given(
        st.lists(st.tuples(COST, COST), min_size=1, max_size=12),
        st.lists(st.integers(1, 2**40), min_size=1, max_size=40),
        COST,
    )
    def test_whatever_it_costs_it_can_be_drawn(
        self, costs: list[tuple[float, float]], cut: list[int], delay_us: float
    ) -> None:
        """Zeros, one fragment, 18 decades: finite coordinates on the sheet, every stage a row."""
        lines = [(f"s{j}", overhead, per_byte) for j, (overhead, per_byte) in enumerate(costs)]
        timeline = timeline_of(pipeline_of_lines(lines, delay_us=delay_us), tuple(cut))
        root = one(timeline, timeline.latency_us)
        (panel,) = panels(root)
        assert len(panel.rows()) == len(costs)
        for row in panel.rows():
            assert by_class(row, "block") or by_class(row, "run")
        for box in (box for part in panels(root) for box in part.element.iter(f"{SVG}rect")):
            assert 0.0 <= value(box, "x") <= WIDTH
            assert 0.0 <= value(box, "width") <= WIDTH
        assert by_class(root, "tick")

    def test_a_message_that_takes_no_time_is_said_to(self) -> None:
        root = one(timeline_of(pipeline_of_lines([("a", 0.0, 0.0)]), (1, 2)), 0.0)
        assert [text_of(note) for note in by_class(root, "note")] == [
            "Nothing takes any time here: all of it stands at 0."
        ]


class TestDocument:
    def schedules(self) -> Iterator[Sequence[DrawnSchedule]]:
        yield [DrawnSchedule("exact", timeline_of(FOUR, CUT), 180.0)]
        yield [DrawnSchedule(name, timeline_of(FOUR, CUT)) for name in ("one", "other")]
        yield [DrawnSchedule("many", timeline_of(FOUR, (9,) * 4000))]

    def test_it_stands_alone(self) -> None:
        """No script, no address but the name of SVG itself, no reference but inside."""
        for schedules in self.schedules():
            text = render_timeline_svg(schedules)
            assert re.findall(r"https?://[^\"']*", text) == ["http://www.w3.org/2000/svg"]
            assert not re.search(r"<script|<foreignObject|<image|href|@import|@font-face", text)
            assert not re.search(r"\son[a-z]+=|\sstyle=", text)
            assert set(re.findall(r"url\((.)", text)) == {"#"}
            assert not re.search(r"\b(nan|inf)\b", text, flags=re.IGNORECASE)

    def test_the_same_schedules_give_the_same_bytes_and_others_other_names(self) -> None:
        names: set[str] = set()
        for schedules in self.schedules():
            text = render_timeline_svg(schedules)
            assert text == render_timeline_svg(list(schedules))
            own = set(re.findall(r'\sid="([^"]+)"', text))
            assert len(own) == 3
            assert set(re.findall(r"url\(#([^)]+)\)", text)) <= own
            assert not names & own
            names |= own

    def test_it_is_named_and_described(self) -> None:
        for schedules in self.schedules():
            root = drawn(*schedules)
            title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
            assert title is not None
            assert description is not None
            assert root.get("role") == "img"
            assert root.get("aria-labelledby") == title.get("id")
            assert root.get("aria-describedby") == description.get("id")
            assert "Critical path" in (description.text or "")

    def test_every_rule_stays_inside_the_picture(self) -> None:
        rules = re.sub(r"@media (screen and )?\([^)]*\)\{", "", STYLE)
        selectors = [part for rule in re.findall(r"([^{}]+)\{", rules) for part in rule.split(",")]
        assert all(part.strip().startswith(f".{SCOPE}") for part in selectors)

    def test_light_and_dark(self) -> None:
        assert_light_and_dark(STYLE, "@media screen and (prefers-color-scheme:dark)")

    def test_a_page_can_take_the_element(self) -> None:
        (schedules, *_) = self.schedules()
        assert timeline_element(schedules).startswith("<svg ")
        assert timeline_element(schedules) in render_timeline_svg(schedules)

    @pytest.mark.parametrize("name", ["w" * 100, "複製" * 50, "x"])
    def test_at_360_pixels_letters_fit_and_can_be_read(self, name: str) -> None:
        """The narrow style's letters are 9 px there, and no label is wider than the sheet."""
        narrow = STYLE.split("@media (max-width:480px)")[1]
        sizes = [int(size) for size in re.findall(r"font-size:([0-9]+)px", narrow)]
        assert min(sizes) * 360 / WIDTH >= 9
        stages = tuple(Stage.of_line(name, overhead_us=1.23456, ns_per_byte=7.65432) for _ in "ab")
        root = one(timeline_of(Pipeline(stages), CUT), 10.0)
        for label in by_class(root, "label"):
            spans = [span for span in label if "wide" not in (span.get("class") or "")]
            columns = sum(
                2 if ord(letter) > 0x2E80 else 1 for span in spans for letter in text_of(span)
            )
            assert columns * min(sizes) * 0.57 <= WIDTH - 2 * 24

    @example("</text><script>alert(1)</script>&\"'")
    @example("\x00\x08\ud800\ufffe\u202e]]>")
    @given(st.text(min_size=1, max_size=100))
    def test_hostile_names_stay_text(self, name: str) -> None:
        stage = Stage.of_line(name, overhead_us=1.0, ns_per_byte=1.0)
        root = drawn(DrawnSchedule(name, timeline_of(Pipeline((stage, stage)), (7, 8))))
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
            *("svg", "title", "desc", "style", "defs", "pattern", "rect", "g", "text", "tspan"),
            *("line", "path"),
        }
        assert title_of(by_class(root, "stage")[0]).startswith(printable(name))
