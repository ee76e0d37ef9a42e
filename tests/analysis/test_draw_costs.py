"""Prices of all draws at once equal the domain's evaluators, draw by draw."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.draw_costs import cut_us, repeated_us, stage_times_us
from analysis.draws import draw
from domain.errors import InvalidInput
from domain.nested import NestedSchedule, nested_latency_us
from domain.pipeline import Pipeline
from domain.uncertainty import NamedCut, UncertainAggregate, UncertainPipeline
from solvers.kernels import active
from tests.support.uncertain import (
    MYRINET,
    aggregates,
    model_of,
    pipelines,
    stages,
    stated,
)

seeds = st.integers(0, 2**64 - 1)
cuts = st.lists(st.integers(1, 3000), min_size=1, max_size=15).map(tuple)
sizes = st.lists(st.integers(1, 9000), min_size=1, max_size=6)


def repeated(message_bytes: int, size: int) -> tuple[int, ...]:
    """The fragments of a repeated size."""
    full, rest = divmod(message_bytes, min(size, message_bytes))
    return (min(size, message_bytes),) * full + ((rest,) if rest else ())


@given(pipelines | aggregates, seeds, st.integers(1, 8000), sizes)
def test_repeated_sizes_cost_what_the_evaluator_says(
    model: UncertainPipeline | UncertainAggregate, seed: int, message: int, found: list[int]
) -> None:
    """Ranges, drawn ends and remainders included."""
    draws = draw(model, 7, seed)
    priced = repeated_us(draws, message, np.array(found))
    for at in range(draws.count):
        one = model_of(draws, at)
        expected = [one.latency_us(repeated(message, size)) for size in found]
        assert priced[:, at] == pytest.approx(expected, rel=1e-11, abs=1e-9)


@given(pipelines, seeds, st.integers(1, 8000), sizes, st.integers(0, 3))
def test_kernels_price_as_numpy_does(
    model: UncertainPipeline, seed: int, message: int, found: list[int], first: int
) -> None:
    """To the bit, in all draws and in a part of them; nothing to compare without a build."""
    draws, asked = draw(model, 7, seed), np.array(found)
    for some in (draws, draws.part(first, 6)):
        ours = repeated_us(some, message, asked)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(active, "NATIVE", None)
            assert repeated_us(some, message, asked).tolist() == ours.tolist()


@given(pipelines | aggregates, seeds, cuts)
def test_uneven_cuts_cost_what_the_evaluator_says(
    model: UncertainPipeline | UncertainAggregate, seed: int, fragments: tuple[int, ...]
) -> None:
    """The recurrence, or the bound from outside, of any cut that all stages share."""
    draws = draw(model, 7, seed)
    priced = cut_us(draws, sum(fragments), NamedCut.of_fragments("cut", fragments))
    expected = [model_of(draws, at).latency_us(fragments) for at in range(7)]
    assert priced == pytest.approx(expected, rel=1e-11, abs=1e-9)


@given(pipelines, seeds, cuts, st.integers(0, 3))
def test_kernels_price_uneven_cuts_as_numpy_does(
    model: UncertainPipeline, seed: int, fragments: tuple[int, ...], first: int
) -> None:
    """But for rounding, in all draws and in a part of them."""
    cut = NamedCut.of_fragments("cut", fragments)
    draws = draw(model, 7, seed)
    for some in (draws, draws.part(first, 6)):
        ours = cut_us(some, sum(fragments), cut)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(active, "NATIVE", None)
            assert cut_us(some, sum(fragments), cut) == pytest.approx(ours, rel=1e-11, abs=1e-9)


@given(st.data(), seeds, st.integers(1, 4))
def test_cuts_of_their_own_for_every_stage(data: st.DataObject, seed: int, count: int) -> None:
    """A block starts when the block before that holds its last byte has ended."""
    message = data.draw(st.integers(1, 5000))
    ends = st.lists(st.integers(1, message), max_size=8).map(lambda found: {*found, message})
    model = UncertainPipeline(tuple(data.draw(stages) for _ in range(count)))
    levels = tuple(tuple(np.diff([0, *sorted(data.draw(ends))]).tolist()) for _ in range(count))
    schedule = NestedSchedule(levels)
    draws = draw(model, 5, seed)
    priced = cut_us(draws, message, NamedCut("nested", schedule=schedule))
    for at in range(5):
        one = model_of(draws, at)
        assert isinstance(one, Pipeline)
        expected = nested_latency_us(one, schedule)
        assert priced[at] == pytest.approx(expected, rel=1e-11, abs=1e-9)


def test_many_fragments_are_priced_in_parts() -> None:
    """More cells than are priced at once give the same: 30 000 fragments, uneven."""
    draws = draw(stated(MYRINET, 0.1), 9, 1)
    fragments = tuple(int(size) for size in 40 + np.arange(30_000) % 7)
    priced = cut_us(draws, sum(fragments), NamedCut.of_fragments("cut", fragments))
    for at in (0, 8):
        assert priced[at] == pytest.approx(model_of(draws, at).latency_us(fragments), rel=1e-11)


def test_a_huge_message_byte_by_byte() -> None:
    """The closed form takes no time for many fragments: 2^48 of one byte."""
    draws = draw(stated(MYRINET, 0.1), 3, 1)
    slowest_us = stage_times_us(draws, 2, np.array([1]))[0, 0]
    assert repeated_us(draws, 2**48, np.array([1]))[0, 0] == pytest.approx(2**48 * slowest_us)


@given(pipelines, seeds, st.integers(1, 8000), sizes)
def test_the_order_of_sizes_and_draws_changes_nothing(
    model: UncertainPipeline, seed: int, message: int, found: list[int]
) -> None:
    """Each is priced for itself."""
    draws = draw(model, 9, seed)
    priced = repeated_us(draws, message, np.array(found))
    reverse = repeated_us(draws, message, np.array(found[::-1]))
    assert (reverse[::-1] == priced).all()
    halves = [repeated_us(draws.part(*part), message, np.array(found)) for part in ((0, 4), (4, 9))]
    assert (np.concatenate(halves, axis=1) == priced).all()


@given(pipelines, seeds, st.integers(1, 300), st.integers(1, 20))
def test_equal_fragments_do_not_mind_the_order_of_stages(
    model: UncertainPipeline, seed: int, size: int, count: int
) -> None:
    """The sum of all stages and the slowest of them is all that counts (theory sec. 2)."""
    draws = draw(model, 5, seed)
    turned = type(draws)(
        draws.kind,
        draws.names[::-1],
        draws.overhead_us[::-1],
        draws.ns_per_byte[::-1],
        draws.ends_bytes[::-1],
        draws.delay_us,
    )
    one, other = (repeated_us(each, size * count, np.array([size])) for each in (draws, turned))
    assert one == pytest.approx(other, rel=1e-12)


def test_what_cannot_be_priced_is_refused() -> None:
    """Another message's fragments, and neither one cut nor one a stage."""
    draws = draw(stated(MYRINET, 0.1), 3, 1)
    with pytest.raises(InvalidInput, match="100 bytes in all"):
        cut_us(draws, 100, NamedCut.of_fragments("cut", (50, 49)))
    with pytest.raises(InvalidInput, match="one a stage"):
        cut_us(draws, 100, NamedCut("cut", schedule=NestedSchedule(((100,), (50, 50)))))
