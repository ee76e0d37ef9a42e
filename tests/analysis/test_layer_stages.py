"""Stages of messaging layers against the work that they stand for, and cuts tuned again."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import solvers
from analysis import comparison
from analysis.feature_savings import TuningQuestion, stages_with_features, tuned
from analysis.layer_answer import LayerAnswer, LayerQuestion, ended, layer_costs
from analysis.layer_cost import work_of
from analysis.layer_stages import (
    RECEIVER,
    SENDER,
    Handshake,
    StageMapping,
    StageQuestion,
    layer_stages,
)
from analysis.published_layers import shipped_layers
from domain.errors import InvalidInput, TimeLimitReached
from domain.instruction_counts import CycleModel
from domain.messaging_layer import End, MessagingLayer, NetworkFeature, Per, When
from domain.pipeline import Pipeline, Stage
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from domain.solution import Solution, Status, Strategy
from tests.analysis.test_layer_cost import layers

FINITE, INDEFINITE = (shipped_layers()[f"cmam-{name}"] for name in ("finite", "indefinite"))
COSTS = CycleModel((("reg", 1.0), ("mem", 2.0), ("dev", 5.0)), clock_mhz=2.0)
TRANSFER = StageQuestion(mapping=StageMapping.TRANSFER)


def work_us(layer: MessagingLayer, message_bytes: int, end: End) -> Fraction:
    """What an end does for a message, µs."""
    return COSTS.us_of(work_of(layer, message_bytes).of(end=end))


@given(layers, st.integers(1, 12))
def test_a_transfer_takes_the_work_of_its_end(layer: MessagingLayer, groups: int) -> None:
    """Whole groups of packets exactly, at either end."""
    stages = layer_stages(layer, COSTS, TRANSFER)
    assert stages is not None
    size = groups * stages.limits.alignment_bytes
    for stage, end in zip(stages.pipeline.stages, End, strict=True):
        assert stage.time_us(size) == pytest.approx(float(work_us(layer, size, end)), rel=1e-12)


@given(layers, st.integers(1, 400))
def test_the_last_fragment_is_bounded(layer: MessagingLayer, size: int) -> None:
    """No transfer takes less than the stages say, nor more than by what is stated."""
    stages = layer_stages(layer, COSTS, TRANSFER)
    assert stages is not None
    said = sum(stage.time_us(size) for stage in stages.pipeline.stages)
    truth = float(sum(work_us(layer, size, end) for end in End))
    assert said <= truth * (1 + 1e-12) + 1e-12
    assert truth - said <= stages.last_fragment_us_at_most * (1 + 1e-12) + 1e-9


@given(layers, st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_packets_take_the_work_of_their_end(layer: MessagingLayer, words: list[int]) -> None:
    """All packets of a message, and what is once, are what its ends do, acknowledged one by one."""
    layer = replace(layer, acknowledge_every=1)
    stages = layer_stages(layer, COSTS, StageQuestion())
    assert stages is not None
    sizes = [2 * one * layer.word_bytes for one in words]
    said = stages.pipeline.delay_us + sum(
        stage.time_us(size) for stage in stages.pipeline.stages for size in sizes
    )
    once = tuple(one for one in layer.components if one.per is Per.TRANSFER)
    truth = COSTS.us_of(work_of(replace(layer, components=once), 1).counts) if once else Fraction()
    others = tuple(one for one in layer.components if one.per is not Per.TRANSFER)
    for size in sizes if others else ():
        a_packet = replace(layer, components=others, packet_words=size // layer.word_bytes)
        truth += COSTS.us_of(work_of(a_packet, size).counts)
    assert said == pytest.approx(float(truth), rel=1e-12)


def test_groups_that_share_an_acknowledgement_are_aligned() -> None:
    """A transfer of fewer packets would pay a whole acknowledgement for a part of one."""
    grouped = replace(INDEFINITE, acknowledge_every=4)
    stages = layer_stages(grouped, COSTS, TRANSFER)
    assert stages is not None
    assert stages.limits == FragmentLimits(alignment_bytes=64)
    kept = layer_stages(replace(FINITE, acknowledge_every=4), COSTS, TRANSFER)
    assert kept is not None
    assert kept.limits == FragmentLimits(alignment_bytes=16)  # which has none for packets


def test_limits_of_packets() -> None:
    """Two words at a time, up to the largest packet."""
    for words, limits in (
        (None, FragmentLimits(alignment_bytes=8)),
        (128, FragmentLimits(max_fragment_bytes=512, alignment_bytes=8)),
        (1, FragmentLimits(max_fragment_bytes=4, alignment_bytes=4)),
    ):
        stages = layer_stages(FINITE, COSTS, StageQuestion(max_packet_words=words))
        assert stages is not None
        assert stages.limits == limits


def test_stages_between_the_ends() -> None:
    """Stand in their order, with names of their own."""
    between = (
        Stage.of_line("wire", overhead_us=1.0, ns_per_byte=2.0),
        Stage.of_line(SENDER, overhead_us=1.0, ns_per_byte=2.0),
    )
    stages = layer_stages(FINITE, COSTS, StageQuestion(between=between, wire_us=3.0))
    assert stages is not None
    names = [stage.name for stage in stages.pipeline.stages]
    assert names == [SENDER, "wire", f"{SENDER} (2)", RECEIVER]
    none = layer_stages(FINITE, COSTS, StageQuestion())
    assert none is not None
    assert stages.pipeline.delay_us == none.pipeline.delay_us + 6.0


def test_transfers_that_wait_are_no_pipeline() -> None:
    """Unless a network with flow control has nothing to wait for."""
    blocking = replace(TRANSFER, handshake=Handshake.BLOCKING)
    assert layer_stages(FINITE, COSTS, blocking) is None
    assert stages_with_features(FINITE, COSTS, blocking, tuple(NetworkFeature)) == ()
    free = FINITE.with_features([NetworkFeature.FLOW_CONTROL])
    assert layer_stages(free, COSTS, blocking) is not None
    assert layer_stages(FINITE, COSTS, replace(blocking, mapping=StageMapping.PACKET)) is not None


def test_assumptions_are_told() -> None:
    """About what is left out of the latency, or too much in it."""
    packet = layer_stages(FINITE, COSTS, StageQuestion(wire_us=2.0))
    transfer = layer_stages(FINITE, COSTS, TRANSFER)
    spread = layer_stages(replace(INDEFINITE, acknowledge_every=2), COSTS, StageQuestion())
    assert packet is not None
    assert transfer is not None
    assert spread is not None
    assert any("left out" in one for one in packet.assumptions)
    assert any("2 one-way trips of 2 µs" in one for one in packet.assumptions)
    assert any("above the truth" in one for one in transfer.assumptions)
    assert any("evenly" in one for one in spread.assumptions)
    assert any(one.when is When.AFTER for one in FINITE.components)


def test_costs_beyond_every_limit_are_refused() -> None:
    """By the field that makes them."""
    slow = CycleModel((("reg", 1e9), ("mem", 1e9), ("dev", 1e9)), clock_mhz=1e-300)
    with pytest.raises(InvalidInput) as refusal:
        layer_stages(FINITE, slow, TRANSFER)
    assert refusal.value.field == "cycles"
    with pytest.raises(InvalidInput) as unclocked:
        layer_stages(FINITE, replace(COSTS, clock_mhz=None), TRANSFER)
    assert unclocked.value.field == "clock_mhz"
    with pytest.raises(InvalidInput):
        StageQuestion(max_packet_words=0)


# --- tuning ---------------------------------------------------------------------------------------


def best_us(pipeline: Pipeline, message_bytes: int, limits: FragmentLimits) -> float:
    """The least latency over every cut that the limits admit."""
    unit = limits.alignment_bytes
    units, rest = divmod(message_bytes, unit)
    found = []
    for cuts in itertools.product((False, True), repeat=max(0, units - 1)):
        sizes, size = [], unit
        for cut in cuts:
            if cut:
                sizes.append(size)
                size = 0
            size += unit
        found.append([*sizes, size + rest])
        if rest:
            found.append([*sizes, size, rest])
    return min(latency_us(pipeline, sizes) for sizes in found)


@pytest.mark.parametrize("layer", [FINITE, INDEFINITE], ids=lambda one: one.name)
@pytest.mark.parametrize("mapping", StageMapping)
def test_tuned_cuts_are_the_best(layer: MessagingLayer, mapping: StageMapping) -> None:
    """Of all cuts of short messages, one by one; with their bounds below, the old cut above."""
    asked = StageQuestion(mapping=mapping)
    sets = stages_with_features(layer, COSTS, asked, layer.features)
    assert [one.features for one in sets][:2] == [(), (layer.features[0],)]
    done: list[int] = []
    question = TuningQuestion(pipelines=sets, message_bytes=(60, 88))
    messages = tuned(question, on_cell=lambda count, _: done.append(count))
    assert done == [*range(1, 2 * len(sets) + 1)]
    for message in messages:
        for one, cell, old_us in zip(sets, message.cells, message.at_old_cut_us, strict=True):
            assert cell is not None
            assert cell.solution is not None
            best = best_us(one.stages.pipeline, message.message_bytes, one.stages.limits)
            assert cell.solution.latency_us == pytest.approx(best, rel=1e-9)
            assert cell.solution.lower_bound_us <= best * (1 + 1e-9)
            assert old_us is not None
            assert old_us >= best * (1 - 1e-9)


def test_solves_without_an_answer_say_why() -> None:
    """And then there is no old cut."""

    def never(*_: object, **__: object) -> None:
        raise TimeLimitReached("too long")

    sets = stages_with_features(FINITE, COSTS, StageQuestion(), ())
    question = TuningQuestion(pipelines=sets, message_bytes=(64,))
    (message,) = tuned(question, solve=never)  # type: ignore[arg-type]
    assert message.before is None
    assert message.cells[0] is not None
    assert message.cells[0].declined == "too long"
    assert message.at_old_cut_us == (None,)


def test_an_answer_that_is_cut_off_says_so() -> None:
    """Cell by cell: what was solved stays, the rest has a reason; also where nothing was."""
    so_far: list[LayerAnswer] = []
    question = LayerQuestion(
        layer=FINITE,
        costs=COSTS,
        message_bytes=(64, 128),
        features=(NetworkFeature.IN_ORDER,),
        tune=True,
    )
    whole = layer_costs(question, on_progress=lambda done, total, best: so_far.append(best))
    assert len(so_far) == 5
    for place, best in enumerate(so_far):
        found = [cell for message in ended(best, "too long").tuned for cell in message.cells]
        declined = [cell.declined for cell in found if cell is not None]
        assert declined.count(None) == place
        assert declined.count("not tried: too long") == 4 - place
    assert ended(whole, "too long") == whole


def test_no_cut_is_sought_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found before stays, and a notice counts what is missing and what was not ended."""
    now_s = [0.0]
    monkeypatch.setattr(comparison, "time", SimpleNamespace(monotonic=lambda: now_s[0]))

    def slow(problem: Problem, strategy: Strategy, *, time_limit_s: float, **_: Any) -> Solution:
        found = solvers.solve(problem, strategy, relative_gap=0.0, time_limit_s=time_limit_s)
        now_s[0] += 1.0
        if now_s[0] == 2.0:
            raise TimeLimitReached("too long")
        return replace(found, status=Status.TIME_LIMIT) if now_s[0] == 1.0 else found

    question = LayerQuestion(
        layer=FINITE,
        costs=COSTS,
        message_bytes=(64, 128),
        features=(NetworkFeature.IN_ORDER,),
        tune=True,
        time_limit_s=2.5,
    )
    answer = layer_costs(question, solve=slow)
    cells = [cell for message in answer.tuned for cell in message.cells if cell is not None]
    assert [cell.solution is not None for cell in cells] == [True, False, True, False]
    assert [cell.is_late for cell in cells] == [False, True, False, True]
    assert now_s == [3.0]
    (said,) = [one for one in answer.notices if one.code == "time_limit"]
    assert said.values == (("missing", 2.0), ("not_ended", 1.0))
