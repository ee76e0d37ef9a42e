"""app/plots: SVG that any program reads, with everything in its place."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, pairwise
from math import exp, log

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.plots.fit_svg import render_fit_svg
from app.plots.svg import (
    Axis,
    burst_ticks,
    log_axis,
    nice_above,
    number,
    size_ticks,
    text_width,
    time_ticks,
    wrapped,
)
from app.text.numbers import format_estimate, format_figure, format_signed_percent
from app.text.units import format_given_time, printable
from domain.fit import AggregateFit, FitMethod, TraceFit, Verdict
from domain.measurement import MessageTrace, Reading, Samples, TraceKind
from domain.solution import Notice
from domain.units import parse_bytes
from fitting import plot
from tests.support.plot_style import assert_light_and_dark
from tests.support.plotted import (
    SIZES,
    direct_fit,
    direct_reading,
    line,
    one_stage,
    samples,
    signatures,
    stage_fit,
    switched,
)

SVG = "{http://www.w3.org/2000/svg}"
TIME_UNITS = {"ns": 1e-3, "µs": 1.0, "ms": 1e3, "s": 1e6}


def drawn(fit: TraceFit, readings: list[Reading]) -> ET.Element:
    return ET.fromstring(render_fit_svg(fit, plot(fit, readings)).encode())


def by_class(root: ET.Element, *names: str) -> list[ET.Element]:
    """Elements that have all of these classes."""
    return [one for one in root.iter() if set(names) <= set(one.get("class", "").split())]


def texts(root: ET.Element) -> list[str]:
    return ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]


def points_of(path: ET.Element) -> list[tuple[float, float]]:
    """The absolute points that a path passes."""
    found = re.findall(r"[ML](-?[0-9.]+) (-?[0-9.]+)", path.get("d", ""))
    return [(float(x), float(y)) for x, y in found]


def time_of(label: str) -> float:
    value, unit = label.split()
    return float(value) * TIME_UNITS[unit]


class Panel:
    """One panel, and its data coordinates as its own labels tell them."""

    def __init__(self, element: ET.Element) -> None:
        self.element = element
        upper, lower = by_class(element, "axes")
        self.x = self.scale(lower, "middle", "x", parse_bytes)
        self.y = self.scale(upper, "end", "y", time_of, shift=-4.0)

    @staticmethod
    def scale(
        axes: ET.Element,
        side: str,
        name: str,
        read: Callable[[str], float],
        shift: float = 0.0,
    ) -> Callable[[float], float]:
        labels = by_class(axes, "tick", side)
        known = [(float(one.get(name, "")) + shift, log(read(one.text or ""))) for one in labels]
        (first, low), (last, high) = min(known), max(known)
        return lambda pixel: exp(low + (pixel - first) * (high - low) / (last - first))

    def data(self, points: list[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(self.x(x), self.y(y)) for x, y in points]


def panels(root: ET.Element) -> list[Panel]:
    return [Panel(one) for one in by_class(root, "panel")]


class TestInData:
    """What the picture shows, read back through the labels of its own axes."""

    def test_every_sample_is_where_it_was_measured(self) -> None:
        fit, readings = one_stage(repetitions=2)
        (panel,) = panels(drawn(fit, readings))
        shown = [
            pair
            for path in by_class(panel.element, "dot", "sample")
            for pair in panel.data(points_of(path))
        ]
        stage = plot(fit, readings).stages[0]
        measured = zip(stage.points.message_bytes, stage.points.time_us, strict=True)
        for pair in measured:
            assert any(pair == pytest.approx(one, rel=0.01) for one in shown), pair
        assert len(shown) <= len(stage.points)

    def test_the_lines_are_the_fitted_ones_each_in_its_range(self) -> None:
        fit, readings = one_stage()
        (panel,) = panels(drawn(fit, readings))
        paths = [one for one in by_class(panel.element, "fitted") if one.tag == f"{SVG}path"]
        assert len(paths) == len(by_class(panel.element, "band")) == 2
        ends = []
        for path, part in zip(paths, switched(), strict=True):
            pairs = panel.data(points_of(path))
            for size, time in pairs:
                expected = part.overhead_us + part.ns_per_byte * size / 1000.0
                assert time == pytest.approx(expected, rel=0.01)
            ends += [pairs[0][0], pairs[-1][0]]
        assert ends == pytest.approx([64, 8192, 8193, 2**20], rel=0.01)

    def test_the_end_of_a_range_is_marked_in_both_frames_and_named(self) -> None:
        fit, readings = one_stage()
        (panel,) = panels(drawn(fit, readings))
        marks = by_class(panel.element, "range-end")
        assert [float(panel.x(float(one.get("x1", "")))) for one in marks] == pytest.approx(
            [8192, 8192], rel=0.01
        )
        assert "≤ 8 KiB" in texts(panel.element)

    @pytest.mark.parametrize("ratio", [1.02, 1.1, 1.5, 2.0])
    def test_labels_of_close_ends_do_not_touch(self, ratio: float) -> None:
        """What has no room in any row has its line all the same."""
        ends = [round(4000 * ratio**number) for number in range(6)]
        lines = [line(4.0 + end / 100, 2.0, up_to_bytes=end) for end in ends]
        lines.append(line(900.0, 0.5))
        sizes, times = samples(lines, repetitions=2)
        fit = direct_fit(stage_fit("wire", lines, sizes, times))
        (panel,) = panels(drawn(fit, [direct_reading(["wire"], sizes, [times])]))
        labels = [
            (float(one.get("x", "")), float(one.get("y", "")), text_width(one.text or "", 11.0))
            for one in by_class(panel.element, "on-lines")
        ]
        assert len(by_class(panel.element, "range-end")) == 2 * len(ends)
        assert 3 <= len(labels) <= len(ends)
        assert (len(labels) == len(ends)) == (ratio >= 1.5)
        for (x, y, width), (other_x, other_y, other_width) in combinations(labels, 2):
            assert y != other_y or abs(x - other_x) >= (width + other_width) / 2

    def test_outliers_are_rings(self) -> None:
        fit, readings = one_stage(outliers_a_size=1)
        root = drawn(fit, readings)
        (panel,) = panels(root)
        rings = by_class(panel.element, "outlier", "sample")
        assert {one.tag for one in rings} == {f"{SVG}circle"}
        assert len(rings) == len(SIZES)
        placed = [(float(one.get("cx", "")), float(one.get("cy", ""))) for one in rings]
        assert [size for size, _ in panel.data(placed)] == pytest.approx(SIZES, rel=0.01)
        assert "outlier, weighted down" in texts(root)

    def test_estimates_are_printed_with_their_intervals_and_verdicts(self) -> None:
        part = line(4.0, 2.0, verdict=Verdict.WEAK)
        clipped = replace(
            part,
            overhead_us=0.0,
            overhead_us_interval=(0.0, 0.4),
            overhead_verdict=Verdict.SUPPORTED,
            clipped=("overhead_us",),
        )
        fit = direct_fit(stage_fit("wire", [clipped]))
        found = texts(drawn(fit, [direct_reading(["wire"], SIZES, [[9.0] * len(SIZES)])]))
        assert "0 µs (0.00 … 0.40), set to 0" in found
        assert "2.00 ns (1.79 … 2.21), weak" in found

    def test_residuals_beyond_the_strip_are_counted(self) -> None:
        sizes, times = samples([line(4.0, 2.0)])
        times[0] *= 50.0
        times[-1] /= 50.0
        fit = direct_fit(stage_fit("wire", [line(4.0, 2.0)], sizes, times))
        root = drawn(fit, [direct_reading(["wire"], sizes, [times])])
        assert "beyond: 1 above, 1 below" in texts(root)
        assert len(by_class(root, "beyond")) == 2

    def test_times_of_0_stand_on_the_floor_and_that_is_said(self) -> None:
        sizes, times = samples([line(4.0, 2.0)])
        times[:3] = [0.0, 0.0, 0.0]
        fit = direct_fit(stage_fit("wire", [line(4.0, 2.0)], sizes, times))
        root = drawn(fit, [direct_reading(["wire"], sizes, [times])])
        assert "▾ 3 samples of 0 µs, on the floor of the axis" in texts(root)
        assert len(by_class(root, "zero")) == 1

    def test_medians_are_drawn_as_such_where_there_are_no_samples(self) -> None:
        fit, _ = one_stage()
        (panel,) = by_class(drawn(fit, []), "panel")
        assert f"medians of {len(SIZES)} sizes" in " ".join(texts(panel))
        assert by_class(panel, "dot") == []
        scatter, strip = by_class(panel, "median")
        for path in (scatter, strip):
            assert len(points_of(path)) == len(SIZES)

    def test_many_samples_are_said_to_be_a_choice(self) -> None:
        fit, readings = one_stage(repetitions=1000)
        found = drawn(fit, readings)
        assert any(re.match(r"[0-9]+ of 15000 samples shown", one) for one in texts(found))


class TestDocument:
    def test_it_stands_alone(self) -> None:
        """No script, no address but the name of SVG itself, no reference but inside."""
        for fit, readings in (one_stage(outliers_a_size=1), signatures()):
            text = render_fit_svg(fit, plot(fit, readings))
            assert re.findall(r"https?://[^\"']*", text) == ["http://www.w3.org/2000/svg"]
            assert not re.search(r"<script|<foreignObject|<image|href|@import|@font-face", text)
            assert set(re.findall(r"url\((.)", text)) <= {"#"}
            assert not re.search(r"\b(nan|inf)\b", text, flags=re.IGNORECASE)

    def test_the_same_fit_gives_the_same_bytes(self) -> None:
        fit, readings = one_stage(outliers_a_size=1)
        assert render_fit_svg(fit, plot(fit, readings)) == render_fit_svg(fit, plot(fit, readings))

    def test_everything_has_a_title_and_a_description(self) -> None:
        for fit, readings in (one_stage(), signatures()):
            root = drawn(fit, readings)
            named = {one.get("id"): one for one in root.iter() if one.get("id")}
            assert len(named) == sum(1 for one in root.iter() if one.get("id"))
            for one in [root, *by_class(root, "panel")]:
                title, description = (
                    named[ident] for ident in one.get("aria-labelledby", "").split()
                )
                assert (title.tag, description.tag) == (f"{SVG}title", f"{SVG}desc")
                assert title.text
                assert len(description.text or "") > 20

    def test_light_and_dark(self) -> None:
        fit, readings = one_stage()
        (style,) = drawn(fit, readings).iter(f"{SVG}style")
        assert_light_and_dark(style.text or "", "@media (prefers-color-scheme:dark)")

    @example("</text><script>alert(1)</script>&\"'")
    @example("\x00\x08\ud800\ufffe\u202e]]>")
    @example("w" * 100)
    @example("複製" * 50)
    @given(st.text(min_size=1, max_size=100))
    def test_hostile_names_stay_text(self, name: str) -> None:
        lines = [line(4.0, 2.0)]
        fit = replace(
            direct_fit(stage_fit(name, lines)),
            notices=(Notice("code", f"stage {name}: {name}"),),
            understood=(("format", name),),
        )
        root = drawn(fit, [direct_reading([name], SIZES, [[9.0] * len(SIZES)])])
        assert {one.tag.removeprefix(SVG) for one in root.iter()} <= {
            *("svg", "title", "desc", "style", "rect", "g", "text", "line", "path", "circle"),
            *("defs", "clipPath"),
        }
        (panel,) = by_class(root, "panel")
        assert (panel.findtext(f"{SVG}title") or "") == printable(name)

    def test_a_million_samples_stay_below_a_megabyte(self) -> None:
        lines = switched()
        noise = np.random.default_rng(3)
        sizes = noise.integers(64, 2**20, 1_000_000)
        base = np.where(sizes <= 8192, 4.0 + 0.002 * sizes, 30.0 + 0.0005 * sizes)
        columns = [base * np.exp(0.05 * noise.standard_normal(len(sizes))) for _ in range(5)]
        names = [f"stage {place}" for place in range(5)]
        fit = direct_fit(
            *[
                replace(stage_fit(name, lines, SIZES, [1.0] * len(SIZES)), outliers=99)
                for name in names
            ]
        )
        text = render_fit_svg(fit, plot(fit, [direct_reading(names, sizes, columns)]))
        assert 100_000 < len(text.encode()) < 1_000_000

    def test_the_most_stages_there_can_be(self) -> None:
        names = [f"stage {place}" for place in range(64)]
        sizes, times = samples(switched(), repetitions=100)
        fit = direct_fit(*[stage_fit(name, switched(), sizes, times) for name in names])
        text = render_fit_svg(fit, plot(fit, [direct_reading(names, sizes, [times] * 64)]))
        assert len(panels(ET.fromstring(text.encode()))) == 64
        assert len(text.encode()) < 3_000_000

    def test_panels_do_not_overlap_and_lie_on_the_paper(self) -> None:
        fit, readings = one_stage()
        wide = direct_fit(*[fit.stages[0]] * 5)
        root = drawn(wide, readings)
        places = [
            tuple(map(float, re.findall(r"[0-9.]+", one.get("transform", ""))))
            for one in by_class(root, "panel")
        ]
        assert len(set(places)) == 5
        assert {x for x, _ in places} == {32.0, 632.0}
        tops = sorted({y for _, y in places})
        assert all(below - above > 450 for above, below in pairwise(tops))
        assert tops[-1] + 450 < float(root.get("height", ""))

    @example(0.0, 0.0, [(1, 2e-300), (2, 1e12)])
    @given(
        st.floats(0.0, 1e12),
        st.floats(0.0, 1e9),
        st.lists(st.tuples(st.integers(1, 2**48), st.floats(0.0, 1e12)), min_size=1, max_size=12),
    )
    def test_whatever_was_measured_can_be_drawn(
        self, overhead_us: float, ns_per_byte: float, rows: list[tuple[int, float]]
    ) -> None:
        """One size, one sample, zeros, 15 decades: a picture with finite coordinates in it."""
        sizes, times = zip(*sorted(rows), strict=True)
        part = line(overhead_us, ns_per_byte, from_bytes=sizes[0], to_bytes=sizes[-1])
        fit = direct_fit(stage_fit("wire", [part], sizes, times))
        root = drawn(fit, [direct_reading(["wire"], sizes, [times])])
        upper, lower = by_class(root, "axes")
        assert by_class(upper, "tick", "end")
        assert by_class(lower, "tick", "middle")


class TestOtherFits:
    def test_total_and_bottleneck(self) -> None:
        sizes, times = samples([line(4.0, 2.0)])
        total = stage_fit("total", [line(4.0, 2.0)], sizes, times)
        slowest = stage_fit("bottleneck", [line(2.0, 1.0)])
        fit = TraceFit(
            TraceKind.INDIRECT, FitMethod.ROBUST, (), aggregate=AggregateFit(total, slowest)
        )
        outside = MessageTrace(Samples(sizes, times), Samples(sizes, times))
        root = drawn(fit, [Reading("message CSV", outside)])
        assert len(panels(root)) == 2
        assert any(one.startswith("latencies of messages") for one in texts(root))
        assert any(one.startswith("inter-arrival times ") for one in texts(root))

    def test_signatures_and_parameters(self) -> None:
        """A panel a size with a curve for each computation, the parameters, and the stages."""
        fit, readings = signatures()
        root = drawn(fit, readings)
        headings = [one.text for one in by_class(root, "heading")]
        assert headings == [
            "signature of 64 B messages",
            "signature of 1 KiB messages",
            "LogP parameters by message size",
            "send",
        ]
        first, _, parameters, _ = by_class(root, "panel")
        assert len(by_class(first, "curve")) == 3
        assert {"no computation", "5 µs between", "20 µs between"} <= set(texts(first))
        assert "2.00 µs (1.90 … 2.10)" in texts(first)
        for curve, computation in zip(by_class(first, "curve"), (0.0, 5.0, 20.0), strict=True):
            scale = Panel.scale(by_class(first, "axes")[0], "end", "y", time_of, shift=-4.0)
            costs = [scale(y) for _, y in points_of(curve)]
            assert costs == pytest.approx([3.064 + computation] * 4, rel=0.01)
        assert len(by_class(parameters, "series")) == 5
        assert len(by_class(parameters, "whisker")) == 7
        assert "time per byte of long messages 3.10 ns (2.94 … 3.26)" in texts(parameters)

    def test_nothing_to_draw_is_still_a_document(self) -> None:
        fit = TraceFit(TraceKind.LOGP, FitMethod.ROBUST, (), notices=(Notice("code", "why"),))
        assert "• why (code)" in texts(drawn(fit, []))


class TestScales:
    @given(st.floats(1e-300, 1e300), st.floats(1.0, 1e12), st.integers(2, 9))
    def test_ticks_lie_on_the_axis_and_there_are_some(
        self, minimum: float, ratio: float, maximum: int
    ) -> None:
        axis = log_axis([minimum, min(minimum * ratio, 1e300)], start=400.0, end=0.0)
        ticks = time_ticks(axis, maximum)
        labels = [tick for tick in ticks if tick.label]
        assert 1 <= len(labels) <= 3 * maximum + 3
        assert all(0.0 <= axis.place(tick.value) <= 400.0 for tick in ticks)
        assert [tick.value for tick in ticks] == sorted({tick.value for tick in ticks})

    @given(st.integers(1, 2**48), st.integers(1, 2**48), st.integers(2, 9))
    def test_sizes_are_marked_at_powers_of_two(self, one: int, other: int, maximum: int) -> None:
        axis = log_axis([float(one), float(other)], start=0.0, end=400.0)
        ticks = size_ticks(axis, maximum)
        assert 1 <= len(ticks) <= max(2, maximum)
        assert all(parse_bytes(tick.label) == tick.value for tick in ticks)

    def test_bursts_are_plain_numbers(self) -> None:
        axis = log_axis([1.0, 256.0], start=0.0, end=400.0)
        assert [tick.label for tick in burst_ticks(axis, 5)] == ["1", "4", "16", "64", "256"]

    def test_a_log_axis_puts_0_out_of_sight_and_clamps_the_rest(self) -> None:
        axis = Axis(1.0, 100.0, 400.0, 0.0)
        assert axis.place(10.0) == pytest.approx(200.0)
        assert axis.place(0.0) == 600.0
        assert axis.place(1e300) == -200.0

    @pytest.mark.parametrize(
        ("time_us", "label"),
        [
            (0.0, "0 µs"),
            (5e-4, "0.5 ns"),
            (0.1, "100 ns"),
            (50.0, "50 µs"),
            (2e3, "2 ms"),
            (1e6, "1 s"),
        ],
    )
    def test_times(self, time_us: float, label: str) -> None:
        assert format_given_time(time_us) == label

    def test_figures(self) -> None:
        assert [format_figure(value) for value in (0.0, 0.12345, 12345.6, 1e-9, 3e9)] == [
            "0",
            "0.1235",
            "12346",
            "1.000e-09",
            "3.000e+09",
        ]
        assert format_estimate(52.93, (51.2, 54.6), "µs") == "52.9 µs (51.2 … 54.6)"
        assert format_estimate(4.0, (4.0, 4.0), "µs") == "4.000 µs (4.000 … 4.000)"
        assert [nice_above(value) for value in (0.03, 1.0, 2.1, 7.0)] == [0.05, 1.0, 5.0, 10.0]
        assert [format_signed_percent(value) for value in (-0.1, 0.0, 0.5)] == [
            "−10 %",
            "0 %",
            "+50 %",
        ]

    def test_coordinates(self) -> None:
        assert [number(value) for value in (1.0, -0.001, 2.346, -10.5)] == [
            "1",
            "0",
            "2.35",
            "-10.5",
        ]
        for value in (float("nan"), float("inf"), 1e9):
            with pytest.raises(ValueError, match="coordinate"):
                number(value)

    @given(st.text(max_size=400), st.integers(40, 900))
    def test_wrapped_lines_fit(self, text: str, room: int) -> None:
        assert all(text_width(one, 12.0) <= room for one in wrapped(text, room, 12.0))
