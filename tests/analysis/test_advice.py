"""Advice that could contradict the answer beside it: questions on which it once did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from analysis.uncertainty import LARGEST, UncertaintyQuestion, assess, assess_solution
from app.text.notices import decision_sentence
from domain.fit import TraceFit
from domain.pipeline import pipeline_of_lines
from domain.problem import FragmentLimits, problem_of
from domain.solution import Strategy
from domain.uncertain_answer import DecisionCode
from domain.uncertain_fit import measured_whole_us, uncertain_model
from domain.uncertainty import NamedCut, stated_model
from fitting import fit, read
from solvers import solve


def asked(
    lines: list[tuple[float, float]],
    message_bytes: int,
    *,
    relative: float = 0.05,
    current: int | None = None,
    **limits: int,
) -> UncertaintyQuestion:
    """A question about typed lines, (overhead in us, ns a byte)."""
    pipeline = pipeline_of_lines([(f"stage {at}", *line) for at, line in enumerate(lines)])
    return UncertaintyQuestion(
        stated_model(pipeline, relative),
        message_bytes,
        FragmentLimits(**limits),
        current=None if current is None else NamedCut("current", current),
    )


@pytest.mark.parametrize(
    ("lines", "message_bytes"),
    [
        ([(1.0, 1.0), (1.0, 1.0)], 10_000),
        ([(3.75, 18.515), (6.99, 3.077), (59.57, 10.765)], 20_000),
    ],
)
def test_a_gain_in_every_draw_is_set(lines: list[tuple[float, float]], message_bytes: int) -> None:
    """Where the best round size is far from the best, it is not what is advised."""
    question = asked(lines, message_bytes, current=4096)
    problem = problem_of(question.model.model, message_bytes, question.limits)
    found = assess_solution(question, solve(problem, Strategy.AUTO))
    assert found is not None
    current = next(one for one in found.against if one.name == "current")
    assert current.probability_faster == 1.0
    assert found.decision.code is DecisionCode.SET_IT
    assert found.decision.gain.p05 > 0.0


def test_the_largest_size_is_that_of_the_limits() -> None:
    """However far from good it is."""
    question = asked([(5.0, 10.0), (5.0, 12.0), (5.0, 10.0)], 2**20, max_fragment_bytes=524_288)
    found = assess(question)
    assert found.decision.against == LARGEST
    assert found.decision.code is DecisionCode.SET_IT
    assert found.decision.gain.p05 > 0.35


def test_where_the_largest_size_is_best_it_is_advised() -> None:
    """One piece is forbidden: the sentence does not speak of not cutting."""
    question = asked([(50.0, 1.0), (0.1, 0.1)], 2**20, max_fragment_bytes=5000)
    found = assess(question)
    assert found.best_size_bytes == 5000
    assert found.decision.advised.size_bytes == 5000
    assert found.decision.code is DecisionCode.NO_GAIN_PROVABLE
    assert decision_sentence(found, question).startswith("Repeat 5000 B: no other size")


def test_a_setting_that_the_limits_forbid_is_not_kept() -> None:
    question = asked([(50.0, 1.0), (0.1, 0.1)], 2**20, current=8000, max_fragment_bytes=5000)
    found = assess(question)
    assert found.decision.code is not DecisionCode.KEEP_YOURS
    assert found.decision.against == LARGEST
    assert [one.name for one in found.against] == ["current"]
    said = decision_sentence(found, question)
    assert said.startswith("Your 8000 B is not within the limits. Repeat 5000 B")


def test_what_is_kept_is_what_is_advised() -> None:
    """So that a program that reads the size alone does what the sentence says."""
    found = assess(asked([(7.2, 7.0), (5.2, 24.3), (7.5, 24.3)], 65_536, current=3784))
    assert found.decision.code is DecisionCode.KEEP_YOURS
    assert found.decision.advised.size_bytes == 3784
    assert (found.decision.gain.p05, found.decision.gain.p95) == (0.0, 0.0)


def test_costs_of_nothing_are_not_worth_measuring() -> None:
    question = asked([(0.0, 0.0)], 4096, relative=1.0)
    found = assess(question)
    assert found.decision.measure is None
    assert "Timing" not in decision_sentence(found, question)


def test_units_beyond_the_message_round_nothing() -> None:
    """A multiple of the alignment and the MTU may be longer than any number of 64 bits."""
    question = asked([(50.0, 1.0), (0.1, 0.1)], 4096, alignment_bytes=2**48 - 1)
    found = assess(replace(question, mtu_bytes=2**48 - 3))
    assert found.decision.advised.size_bytes == 4096


def test_the_measured_piece_is_beside_the_model_of_it() -> None:
    """The interval is the model's; what it rests on too, whatever was measured; limits or not."""
    question = asked([(10.0, 10.0), (10.0, 10.0)], 65_536, current=65_536)
    free = assess(replace(question, answer=NamedCut("answer", 65_536)))
    held = assess(replace(question, answer=NamedCut("answer", 65_536), measured_us=100.0))
    assert held.latency_us == free.latency_us
    assert held.rests_on == free.rests_on == ()
    limited = replace(question, limits=FragmentLimits(max_fragment_bytes=40_000), measured_us=100.0)
    against = assess(limited).against[0]
    assert against.name == "current"
    assert against.probability_faster == 0.0


SIZES = tuple(2**power for power in range(1, 24))


def tables(latency_us: Callable[[int], float], rate: Callable[[int], float]) -> TraceFit:
    """The fit of what `ib_write_lat -a` and `ib_write_bw -a` print, in their layout; the figures
    are those of a model. A rate is in messages/µs.
    """
    latencies = [f" {size} 20000 0 0 {latency_us(size):.2f} 0 0 0 0" for size in SIZES]
    rates = [f" {size} 50000 0.00 {size * rate(size) / 1.048576:.2f} 0" for size in SIZES]
    texts = (
        "RDMA_Write Latency Test\n #bytes #iterations t_min[usec] t_max[usec] t_typical[usec] "
        "t_avg[usec] t_stdev[usec] 99% percentile[usec] 99.9% percentile[usec]",
        "RDMA_Write BW Test\n #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]",
    )
    files = ["\n".join([text, *rows]) for text, rows in zip(texts, (latencies, rates), strict=True)]
    return fit([read(one.encode()) for one in files])


@pytest.mark.parametrize("message_bytes", [65536, 2**20, 2**23])
def test_rdma_tables_do_not_make_sizes_cheap_that_nobody_measured(message_bytes: int) -> None:
    """5.4 messages/µs up to 3.8 GB/s, which they reach between 512 and 1024 B: fragments of up to
    1023 B once seemed to pass at the rate of messages, a third cheaper than any that was measured.
    """
    found = tables(
        lambda size: 0.98 + 0.0019 * size if size <= 128 else 1.66 + 0.2609 * size / 1000.0,
        lambda size: 1.0 / max(0.185, 0.2604 * size / 1000.0),
    )
    known = uncertain_model(found)
    assert known is not None
    question = UncertaintyQuestion(
        known, message_bytes, measured_us=measured_whole_us(found, message_bytes)
    )
    said = assess(question)
    assert question.measured_us == pytest.approx(1.66 + 0.2609 * message_bytes / 1000.0, rel=0.001)
    assert said.decision.code is DecisionCode.NO_GAIN_PROVABLE
    assert decision_sentence(said, question).startswith("Do not cut")
    assert said.evpi_us < 0.01 * said.latency_us.p50
    (near,) = [one for one in said.good_sizes if one.within == 0.02]
    assert near.intervals[-1][1] == message_bytes
