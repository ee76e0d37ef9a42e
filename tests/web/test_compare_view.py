"""Answers side by side: cuts as bars, and rows that differ."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import pytest

from app.verbs.answers.page.arrivals import MAX_POINTS, arrivals_chart
from app.verbs.answers.page.compare import HEIGHT, MAX_BARS, WIDTH, CompareView, drawn, letters_of
from contract.optimize import OptimizeOut
from tests.web.conftest import Ask


def rows(view: CompareView) -> dict[str, tuple[str, ...]]:
    """The rows by name."""
    return {row.name: row.values for row in view.rows}


@pytest.fixture
def pair(ask: Ask) -> list[OptimizeOut]:
    """One message by two strategies."""
    return [ask(strategy="exact"), ask(strategy="fixed")]


def test_only_what_differs_or_all(pair: list[OptimizeOut]) -> None:
    """The toggle's address has the same answers."""
    view = CompareView.from_answers(pair, shows_all=False)
    assert all(len(set(values)) > 1 for values in rows(view).values())
    assert "Message" not in rows(view)
    assert view.toggle == f"/ui/compare?id={pair[0].id}&id={pair[1].id}&all=1"
    whole = CompareView.from_answers(pair, shows_all=True)
    assert rows(whole)["Message"] == ("4 KiB", "4 KiB")
    assert len(whole.rows) == len(view.rows) + view.hidden
    assert rows(whole)["Stage 1"][0] == "sender copy: 7.2 µs + 7.03125 ns/byte"


@pytest.mark.usefixtures("native_kernels")
def test_latencies_are_beside_the_first(pair: list[OptimizeOut]) -> None:
    """The first as it is, others with their excess."""
    first, second = rows(CompareView.from_answers(pair, shows_all=False))["Latency"]
    assert first == "184.357 µs"
    assert second == "188.9 µs (+2.46 %)"


def test_an_answer_that_time_ended_is_marked(pair: list[OptimizeOut]) -> None:
    """In its name, and differences against it are between limits."""
    first, second = pair
    ended = replace(first, status="time_limit", lower_bound_us=0.9 * first.latency_us)
    view = CompareView.from_answers([ended, second], shows_all=False)
    assert view.is_cut_off
    assert [side.name.endswith("(cut off)") for side in view.sides] == [True, False]
    assert rows(view)["Latency"][1] == "188.9 µs (+2.46 % to +13.8 %)"
    assert [one.endswith("(cut off)") for one in letters_of([ended, second])] == [True, False]
    assert not CompareView.from_answers(pair, shows_all=False).is_cut_off


def test_equal_cuts_are_said(pair: list[OptimizeOut]) -> None:
    """Whatever strategy, costs or proof they come from."""
    first, second = pair
    assert CompareView.from_answers(pair, shows_all=False).same == ()
    again = replace(first, latency_us=1.0)
    view = CompareView.from_answers([first, second, again, first], shows_all=False)
    assert view.same == ("A, C and D are the same cut.",)


def test_bars_are_the_cut(pair: list[OptimizeOut]) -> None:
    """As wide as their part of the message; the greatest fragment of all is as high as can be."""
    view = CompareView.from_answers(pair, shows_all=False)
    for side, document in zip(view.sides, pair, strict=True):
        cut = document.fragment_bytes
        assert len(side.bars) == len(cut)
        assert side.bars[-1].x + side.bars[-1].width == pytest.approx(WIDTH, abs=1.1)
        assert side.bars[1].x == pytest.approx(WIDTH * cut[0] / sum(cut), abs=0.01)
    highest = max(bar.height for side in view.sides for bar in side.bars)
    assert highest == HEIGHT


def test_very_many_fragments_are_drawn_together(ask: Ask) -> None:
    """No page has a bar for each of a hundred thousand fragments; none of them is lost."""
    many = ask(message_bytes=2**17, strategy="static", static_bytes=64)
    view = CompareView.from_answers([many, ask(message_bytes=2**17)], shows_all=False)
    bars = view.sides[0].bars
    assert len(bars) <= MAX_BARS
    assert bars[-1].title.endswith(f"to {many.fragments}: 64 B")
    assert view.sides[0].is_merged


def test_timelines_of_one_message_alone(ask: Ask) -> None:
    """Else it is said why there are none, also for an aggregate."""
    other = ask(message_bytes=8192)
    assert (
        "the message is the same"
        in CompareView.from_answers([ask(), other], shows_all=False).why_no_timeline
    )
    line = {"name": "all", "overhead_us": 20.0, "ns_per_byte": 60.0}
    slowest = {"name": "slowest", "overhead_us": 7.0, "ns_per_byte": 25.0}
    outside = ask(aggregate={"total": line, "bottleneck": slowest})
    view = CompareView.from_answers([ask(), outside], shows_all=True)
    assert "aggregate" in view.why_no_timeline
    assert rows(view)["Bottleneck"][1] == "not known"
    assert rows(view)["Stage 1"][1].startswith("total: 20 µs")


def test_the_picture_names_the_answers(pair: list[OptimizeOut]) -> None:
    """By the letters that the page has for them."""
    picture = drawn(pair)
    assert "A exact: 6 fragments" in picture
    assert "B fixed: 5 fragments" in picture


def test_what_has_arrived_by_when_ends_at_the_latency(pair: list[OptimizeOut]) -> None:
    """A step at each fragment, as the evaluator has it; the table tells when a share is there."""
    chart = arrivals_chart(pair, ["A", "B"])
    for document, line in zip(pair, chart.data.lines, strict=True):
        assert line.points[0] == (0.0, 0.0)
        assert line.points[-1] == (pytest.approx(document.latency_us, rel=1e-12), 100.0)
        sizes = accumulate(document.fragment_bytes)
        assert [share for _, share in line.points[1:]] == [100.0 * one / 4096 for one in sizes]
    assert chart.headings == ("Arrived", "A, µs", "B, µs")
    assert chart.rows[-1] == ("100 %", "184.4", "188.9")
    half_us = next(us for us, share in chart.data.lines[0].points if share >= 50.0)
    assert chart.rows[2] == ("50 %", f"{half_us:.1f}", chart.rows[2][2])


def test_of_many_fragments_some_points_and_the_last(ask: Ask) -> None:
    """No more than can be distinguished; nothing of what is not known."""
    many = ask(message_bytes=2**20, strategy="static", static_bytes=512)
    (line,) = arrivals_chart([many], ["A"]).data.lines
    assert len(line.points) <= MAX_POINTS + 2
    assert line.points[-1][1] == 100.0
    assert arrivals_chart([replace(many, pipeline=None)], ["A"]).is_empty
