"""sluice model reproduce yocum97: figures to their digits, and curves by closed form."""

from __future__ import annotations

from functools import cache

import pytest

from domain.nested import NestedSchedule, nested_latency_us
from domain.pipeline import pipeline_of_lines
from papers.items import Item
from papers.yocum97 import PAPER

PAGE = 8192


@cache
def item(name: str) -> Item:
    return next(spec for spec in PAPER.items if spec.name == name).compute()


def value(of: str, figure: str) -> float:
    return next(one.computed for one in item(of).figures if one.name == figure)


def points(of: str, plot: str, curve: str) -> dict[float, float]:
    drawn = next(one for one in item(of).plots if one.name == plot)
    return dict(next(one.points for one in drawn.curves if one.name == curve))


@pytest.mark.parametrize(
    ("of", "figure", "computed"),
    [
        ("floor", "store and forward", 256.0),
        ("floor", "of it on both buses", 75.0),
        ("fig-2", "pulses of the link", 6.0),
        ("fig-2", "pulses of the bus write", 5.0),
        ("fig-2", "eager at 512 bytes, visible 64 bytes at a time", 181.1164),
        ("fig-2", "eager at 512 bytes, visible 256 bytes at a time", 181.1164),
        ("fig-2", "eager at 512 bytes, visible 1024 bytes at a time", 190.0829),
        ("fig-2", "eager at 512 bytes, visible when complete", 306.2124),
        ("fig-4", "store and forward", 306.2124),
        ("fig-4", "best pair of thresholds", 194.1328),
        ("fig-4", "send threshold of the best pair", 256.0),
        ("fig-4", "receive threshold of the best pair", 1024.0),
        ("fig-4", "send 1280, receive 1280", 199.2660),
        ("fig-4", "send 8192, receive 128", 376.0416),
        ("fig-5", "bus read, 8192 bytes", 119.7661),
        ("fig-5", "at most, store and forward", 62.8462),
        ("fig-5", "at most, eager 512", 58.6190),
        ("fig-5", "at most, static 1280", 56.7117),
        ("fig-5", "at most, static 128", 29.4253),
        ("fig-6", "send 384, receive 512", 181.1164),
        ("fig-6", "send 512, receive 384", 182.2248),
        ("fig-6", "best pair of thresholds", 177.6604),
        ("fig-6", "send threshold of the best pair", 64.0),
        ("fig-6", "receive threshold of the best pair", 32.0),
        ("fig-7", "1 KiB, store and forward", 68.6828),
        ("fig-7", "1 KiB, cut through", 62.0664),
        ("fig-7", "smallest payload from which on all gain", 656.0),
        ("fig-8", "ratio 8", 1.25),
        ("fig-8", "ratio 1, pulses of 128 bytes", 32 / 11),
        ("fig-8", "ratio 1, pulses of 512 bytes", 8 / 3),
        ("demand-fetch", "store and forward", 333.2124),
    ],
)
def test_own_numbers_stay(of: str, figure: str, computed: float) -> None:
    assert value(of, figure) == pytest.approx(computed, rel=1e-6)


def test_what_the_paper_contradicts_is_shown_and_not_compared() -> None:
    fetch = next(one for one in item("demand-fetch").figures if one.name == "store and forward")
    assert fetch.published == 310.0
    assert fetch.ok is None
    others = [one for spec in PAPER.items for one in item(spec.name).figures if one != fetch]
    assert all(one.tolerance is not None for one in others)
    assert any("310" in said.statement and "335" in said.statement for said in PAPER.disagreements)


def test_one_static_size_is_a_repeated_size() -> None:
    """The diagonal of Figure 4 is a shared cut of the pipeline that streams its first stage."""
    streamed = pipeline_of_lines(
        [("bus read", 0.0, 7.8125), ("link", 1.0, 9.7), ("bus write", 2.35, 15.625)],
        delay_us=27.0 + 4.4,
    )
    for size in (128, 512, 1280, 4096):
        fragments = (size,) * (PAGE // size) + ((PAGE % size,) if PAGE % size else ())
        expected = nested_latency_us(streamed, NestedSchedule((fragments,) * 3))
        for plot, other in (("by-send", "receive"), ("by-receive", "send")):
            drawn = points("fig-4", plot, f"{other} {size}")
            assert drawn[float(size)] == pytest.approx(expected, rel=1e-9)


def test_both_views_of_a_matrix_meet() -> None:
    """A latency by both thresholds is the same from either side, for static pulses and eager."""
    for of in ("fig-4", "fig-6"):
        for send in (128, 512, 1280, 4096, 8192):
            for receive in (128, 512, 1280, 4096, 8192):
                one = points(of, "by-send", f"receive {receive}")[float(send)]
                assert one == points(of, "by-receive", f"send {send}")[float(receive)]


def test_no_eager_curve_is_below_the_bound_or_far_above_store_and_forward() -> None:
    """Eager pulses cost at most one set-up a stage more than store and forward."""
    bound_us = value("fig-6", "proven lower bound, any pulses of every stage")
    assert bound_us == pytest.approx(174.434, abs=1e-3)
    stored_us = value("fig-4", "store and forward")
    for plot in item("fig-6").plots:
        for curve in plot.curves:
            assert all(bound_us <= us <= stored_us + 1.0 + 2.35 for _, us in curve.points)
    for plot in item("fig-4").plots:
        assert all(bound_us <= us for curve in plot.curves for _, us in curve.points)


def test_the_speed_up_by_closed_form() -> None:
    """(1 + 2/r) / max(1, 1/r); a bus loaded in the other direction too has half its rate."""

    def expected(ratio: float) -> float:
        return (1.0 + 2.0 / ratio) / max(1.0, 1.0 / ratio)

    alone = points("fig-8", "by-ratio", "bus for this message alone")
    loaded = points("fig-8", "by-ratio", "bus loaded in the other direction too")
    assert list(alone) == list(loaded)
    for ratio, speedup in alone.items():
        assert speedup == pytest.approx(expected(ratio), rel=1e-9)
        assert loaded[ratio] == pytest.approx(expected(ratio / 2.0), rel=1e-9)
    assert max(alone.values()) == pytest.approx(3.0)


def test_payloads_by_closed_form() -> None:
    """Store and forward is the sum of all; cut through is it up to the threshold."""
    stored = points("fig-7", "by-payload", "store and forward")
    eager = points("fig-7", "by-payload", "cut through")
    for size, latency_us in stored.items():
        expected = 27.0 + 4.4 + 1.0 + 2.35 + size * (7.8125 + 9.7 + 15.625) / 1000.0
        assert latency_us == pytest.approx(expected, rel=1e-12)
        if size <= 512:
            assert eager[size] == pytest.approx(expected, rel=1e-12)
        else:
            assert eager[size] <= latency_us + 1.0 + 2.35


def test_the_timeline_has_the_pulses_of_the_eager_rule() -> None:
    cut, stored = item("fig-2").runs
    link, write = (stage.fragment_bytes for stage in cut.timeline.stages[1:])
    assert link == (512, 763, 1076, 1464, 1945, 2432)
    assert write == (512, 860, 1525, 2595, 2700)
    assert cut.timeline.stages[2].start_us[0] == pytest.approx(14.366, abs=1e-3)
    assert cut.timeline.latency_us == pytest.approx(181.116, abs=1e-3)
    assert [stage.fragment_bytes for stage in stored.timeline.stages] == [(PAGE,)] * 3
